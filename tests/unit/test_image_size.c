/* SPDX-License-Identifier: Apache-2.0 */

/* Images of what is large: many entries, much data, and holes. */

#include <config.h>

#include <glib/gstdio.h>
#include <sys/stat.h>

#include "tests/lib/image_place.h"

static void archive_of_a_large_directory_finds_all_of_it(void **state)
{
    const ImagePlace *place = *state;
    ImageStat stat;
    ImageArchive *archive = image_archive_new(place->source, "none");
    for (guint i = 0; i < 6000; i++) {
        g_autofree char *path = g_strdup_printf("d/%*u", 1 + (int)(i % 200), i);
        g_autofree char *data = g_strdup_printf("%u", i);
        image_archive_add(archive, &(ImageEntry){.path = path, .data = data});
    }
    image_archive_close(archive);
    image_place_build(place);
    for (guint i = 0; i < 6000; i += 499) {
        g_autofree char *path = g_strdup_printf("d/%*u", 1 + (int)(i % 200), i);
        g_autofree char *data = g_strdup_printf("%u", i);
        assert_image_holds(place->image, path, data, strlen(data));
    }
    assert_true(image_stat(place->image, "d", &stat));
    assert_true(stat.size_bytes > 100 * 4096);
}

static void archive_of_many_directories_counts_their_links(void **state)
{
    const ImagePlace *place = *state;
    ImageStat stat;
    ImageArchive *archive = image_archive_new(place->source, "gzip");
    for (guint i = 0; i < 65100; i++) {
        g_autofree char *path = g_strdup_printf("%s/%u", i < 100 ? "few" : "many", i);
        image_archive_add(archive, &(ImageEntry){.path = path, .mode = S_IFDIR | 0755});
    }
    image_archive_close(archive);
    image_place_build(place);
    assert_true(image_stat(place->image, "few", &stat));
    assert_int_equal(stat.links, 102);
    assert_true(image_stat(place->image, "many", &stat));
    assert_int_equal(stat.links, 1); /* more than ext4 counts */
}

static void archive_of_thousands_of_hard_links_has_one_file(void **state)
{
    const ImagePlace *place = *state;
    ImageStat first, last;
    ImageArchive *archive = image_archive_new(place->source, "gzip");
    image_archive_add(archive, &(ImageEntry){.path = "0", .data = "shared"});
    for (guint i = 1; i < 20000; i++) {
        g_autofree char *path = g_strdup_printf("%u", i);
        image_archive_add(archive, &(ImageEntry){.path = path, .hard_link = "0"});
    }
    image_archive_close(archive);
    image_place_build(place);
    assert_true(image_stat(place->image, "0", &first));
    assert_true(image_stat(place->image, "19999", &last));
    assert_int_equal(first.number, last.number);
    assert_int_equal(last.links, 20000);
    assert_image_holds(place->image, "19999", "shared", 6);
}

static void archive_of_a_file_larger_than_a_group_keeps_its_data(void **state)
{
    const ImagePlace *place = *state;
    gsize length = 150 << 20;
    g_autofree guint32 *data = g_malloc(length);
    for (gsize i = 0; i < length / 4; i++)
        data[i] = (guint32)i * 2654435761u + 1;
    const ImageEntry entry = {.path = "big", .data = (const char *)data, .length = length - 5};
    image_archive_write(place->source, "none", &entry, 1);
    BerthImageInfo info = image_place_build(place);
    assert_int_equal(info.content_bytes, length - 5);
    assert_in_range(info.size_bytes, length, length + length / 5);
    assert_image_holds(place->image, "big", data, length - 5);
}

static void archive_of_a_file_with_a_hole_keeps_it(void **state)
{
    const ImagePlace *place = *state;
    static const ImageEntry entry = {.path = "holes", .data = "end", .hole_until = 50 << 20};
    ImageStat stat;
    image_archive_write(place->source, "none", &entry, 1);
    BerthImageInfo info = image_place_build(place);
    assert_true(info.size_bytes < 20 << 20);
    assert_true(image_stat(place->image, "holes", &stat));
    assert_int_equal(stat.size_bytes, (50 << 20) + 3);
    assert_int_equal(stat.blocks, 8);
    g_autoptr(GBytes) held = image_read(place->image, "holes");
    const char *data = g_bytes_get_data(held, NULL);
    assert_memory_equal(data + (50 << 20), "end", 3);
    assert_int_equal(data[0], 0);
}

/* Every second block is a hole: a tree of extents, not only a list of four. */
static void archive_of_a_file_full_of_holes_keeps_its_data(void **state)
{
    const ImagePlace *place = *state;
    gsize blocks = 3000;
    g_autofree char *data = g_malloc0(blocks * 4096);
    for (gsize i = 0; i < blocks; i += 2)
        memset(data + i * 4096, (int)(1 + i % 251), 4096);
    const ImageEntry entry = {.path = "sieve", .data = data, .length = blocks * 4096};
    ImageStat stat;
    image_place_build_entries(place, &entry, 1);
    assert_image_holds(place->image, "sieve", data, blocks * 4096);
    assert_true(image_stat(place->image, "sieve", &stat));
    assert_in_range(stat.blocks, blocks / 2 * 8, blocks / 2 * 8 + 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_place(archive_of_a_large_directory_finds_all_of_it),
        in_place(archive_of_many_directories_counts_their_links),
        in_place(archive_of_thousands_of_hard_links_has_one_file),
        in_place(archive_of_a_file_larger_than_a_group_keeps_its_data),
        in_place(archive_of_a_file_with_a_hole_keeps_it),
        in_place(archive_of_a_file_full_of_holes_keeps_its_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
