/* SPDX-License-Identifier: Apache-2.0 */

/* What cannot become an image is refused with the reason, and leaves nothing behind. */

#include <config.h>

#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/lib/image_place.h"

static void archive_with_hostile_paths_is_refused(void **state)
{
    const ImagePlace *place = *state;
    static const struct {
        ImageEntry entries[3];
        const char *text;
    } cases[] = {
        {{{.path = "../x", .data = "x"}}, "'..'"},
        {{{.path = "a/../../x", .data = "x"}}, "'..'"},
        {{{.path = "l", .mode = S_IFLNK | 0777, .target = "/etc"}, {.path = "l/x", .data = "x"}},
         "symbolic link"},
        {{{.path = "f", .data = "x"}, {.path = "f/x", .data = "x"}}, "no directory"},
        {{{.path = "h", .hard_link = "missing"}}, "not among"},
        {{{.path = "h", .hard_link = "../../etc/passwd"}}, "not among"},
        {{{.path = "d", .mode = S_IFDIR | 0755}, {.path = "h", .hard_link = "d"}}, "a directory"},
        {{{.path = "d/x", .data = "x"}, {.path = "d", .data = "x"}}, "not empty"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        gsize count = 1;
        while (count < 3 && cases[i].entries[count].path)
            count++;
        image_archive_write(place->source, "none", cases[i].entries, count);
        g_autoptr(GError) error = image_place_build_fails(place, 0);
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].text);
    }
}

static void archive_cut_anywhere_in_its_data_is_refused(void **state)
{
    const ImagePlace *place = *state;
    static const char *const filters[] = {"none", "gzip", "xz", "zstd"};
    g_autofree char *data = g_malloc(200000);
    guint32 random = 1;
    for (gsize i = 0; i < 200000; i++)
        data[i] = (char)((random = random * 1103515245 + 12345) >> 24);
    const ImageEntry entries[] = {{.path = "a", .data = data, .length = 100000},
                                  {.path = "b", .data = data, .length = 200000}};
    for (gsize i = 0; i < G_N_ELEMENTS(filters); i++) {
        GStatBuf whole;
        image_archive_write(place->source, filters[i], entries, G_N_ELEMENTS(entries));
        assert_int_equal(g_stat(place->source, &whole), 0);
        const off_t cuts[] = {whole.st_size - 1, whole.st_size / 2, whole.st_size / 10, 1};
        for (gsize j = 0; j < G_N_ELEMENTS(cuts); j++) {
            image_archive_write(place->source, filters[i], entries, G_N_ELEMENTS(entries));
            assert_int_equal(truncate(place->source, cuts[j]), 0);
            /* Of the zeros that end a plain archive one block is enough. */
            if (j == 0 && g_str_equal(filters[i], "none"))
                continue;
            g_autoptr(GError) error = image_place_build_fails(place, 0);
            assert_int_equal(error->code, BERTH_ERROR_INVALID_ARGUMENT);
        }
    }
}

/* What is left is an archive of whole files, but for its end. */
static void archive_cut_between_two_files_is_refused(void **state)
{
    const ImagePlace *place = *state;
    static const ImageEntry entries[] = {{.path = "a", .data = "a"}, {.path = "b", .data = "b"}};
    g_autofree char *archive = NULL;
    gsize length = 0;
    image_archive_write(place->source, "none", entries, G_N_ELEMENTS(entries));
    assert_true(g_file_get_contents(place->source, &archive, &length, NULL));
    const char *second = memmem(archive, length, "PaxHeader/b", strlen("PaxHeader/b"));
    assert_non_null(second);
    assert_int_equal((second - archive) % 512, 0);
    assert_int_equal(truncate(place->source, second - archive), 0);
    g_autoptr(GError) error = image_place_build_fails(place, 0);
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "no end after entry 1");
}

/* A header of the old format, whose size field is given as it stands there. */
static void write_header(const char *path, const char size[12])
{
    char header[1536] = "claim";
    memcpy(header + 100,
           "0000644\0"
           "0000000\0"
           "0000000",
           23);
    memcpy(header + 124, size, 12);
    memcpy(header + 136,
           "00000000000\0"
           "        "
           "0",
           21);
    memcpy(header + 257,
           "ustar\0"
           "00",
           8);
    unsigned sum = 0;
    for (gsize i = 0; i < 512; i++)
        sum += (guint8)header[i];
    g_snprintf(header + 148, 8, "%06o", sum);
    assert_true(g_file_set_contents(path, header, sizeof header, NULL));
}

static void archive_that_claims_an_absurd_size_is_refused(void **state)
{
    const ImagePlace *place = *state;
    static const char *const sizes[] = {
        "77777777777",                                      /* 8 GiB, not there */
        "\x80\0\0\0\x0f\xff\xff\xff\xff\xff\xff\xff",       /* 2^60, not there */
        "\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff",       /* 2^63 - 1 */
        "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", /* -1 */
    };
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        write_header(place->source, sizes[i]);
        g_autoptr(GError) error = image_place_build_fails(place, 0);
        assert_int_equal(error->code, BERTH_ERROR_INVALID_ARGUMENT);
    }
}

static void archive_beyond_the_limit_is_refused_before_it_is_written(void **state)
{
    const ImagePlace *place = *state;
    static const ImageEntry entry = {.path = "zeros", .data = "x", .hole_until = 1 << 20};
    image_archive_write(place->source, "none", &entry, 1);
    g_autoptr(GError) error = image_place_build_fails(place, 1 << 20);
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "does not fit");
}

static void archive_with_too_many_attributes_is_refused(void **state)
{
    const ImagePlace *place = *state;
    g_autofree char *value = g_strnfill(5000, 'v');
    const ImageEntry entry = {.path = "x", .xattr_name = "user.x", .xattr_value = value};
    image_archive_write(place->source, "none", &entry, 1);
    g_autoptr(GError) error = image_place_build_fails(place, 0);
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "extended attributes");
}

static void source_of_no_known_kind_is_refused(void **state)
{
    const ImagePlace *place = *state;
    static const char zeros[4096];
    static const char disk[4096] = {[510] = 0x55, [511] = (char)0xaa};
    const struct {
        const char *data;
        gsize length;
        const char *text;
    } cases[] = {
        {"", 0, "neither a directory"},
        {"text\n", 5, "neither a directory"},
        {zeros, sizeof zeros, "begins with zeros"},
        {"QFI\xfb", 4, "qcow2"},
        {"PK\x03\x04", 4, "zip"},
        {"hsqs", 4, "squashfs"},
        {disk, sizeof disk, "partitions"},
        {"\x1f\x8b\x08", 3, "neither a directory"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        assert_true(
            g_file_set_contents(place->source, cases[i].data, (gssize)cases[i].length, NULL));
        g_autoptr(GError) error = image_place_build_fails(place, 0);
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].text);
    }
}

static void archive_of_layers_is_refused_and_one_of_files_is_not(void **state)
{
    const ImagePlace *place = *state;
    static const ImageEntry saved[] = {{.path = "blobs/sha256/0", .data = "x"},
                                       {.path = "manifest.json", .data = "[]"}};
    static const ImageEntry layout[] = {{.path = "./oci-layout", .data = "{}"},
                                        {.path = "./index.json", .data = "{}"}};
    static const ImageEntry root[] = {{.path = "manifest.json", .data = "{}"},
                                      {.path = "usr/bin/true", .data = "x"}};
    image_archive_write(place->source, "none", saved, G_N_ELEMENTS(saved));
    g_autoptr(GError) error = image_place_build_fails(place, 0);
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "docker export");
    image_archive_write(place->source, "gzip", layout, G_N_ELEMENTS(layout));
    g_autoptr(GError) other = image_place_build_fails(place, 0);
    assert_berth_error(other, BERTH_ERROR_INVALID_ARGUMENT, "docker export");
    image_archive_write(place->source, "none", root, G_N_ELEMENTS(root));
    image_place_build(place);
}

static void source_that_is_missing_or_a_pipe_is_refused(void **state)
{
    const ImagePlace *place = *state;
    g_autoptr(GError) missing = image_place_build_fails(place, 0);
    assert_berth_error(missing, BERTH_ERROR_NOT_FOUND, place->source);
    assert_int_equal(mkfifo(place->source, 0600), 0);
    g_autoptr(GError) pipe = image_place_build_fails(place, 0);
    assert_berth_error(pipe, BERTH_ERROR_INVALID_ARGUMENT, "no regular file");
}

static void output_that_exists_is_left_alone(void **state)
{
    const ImagePlace *place = *state;
    static const ImageEntry entry = {.path = "x", .data = "content"};
    g_autoptr(GError) error = NULL;
    g_autofree char *kept = NULL;
    image_archive_write(place->source, "none", &entry, 1);
    assert_true(g_file_set_contents(place->image, "mine", -1, NULL));
    assert_false(berth_image_build(place->source, place->image, 0, NULL, NULL, NULL, NULL, &error));
    assert_berth_error(error, BERTH_ERROR_ALREADY_EXISTS, place->image);
    assert_true(g_file_get_contents(place->image, &kept, NULL, NULL));
    assert_string_equal(kept, "mine");
}

static void output_in_a_missing_directory_is_an_error(void **state)
{
    ImagePlace *place = *state;
    static const ImageEntry entry = {.path = "x", .data = "content"};
    image_archive_write(place->source, "none", &entry, 1);
    g_free(place->image);
    place->image = g_build_filename(place->directory, "missing", "image", NULL);
    g_autoptr(GError) error = image_place_build_fails(place, 0);
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "missing/image");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        in_place(archive_with_hostile_paths_is_refused),
        in_place(archive_cut_anywhere_in_its_data_is_refused),
        in_place(archive_cut_between_two_files_is_refused),
        in_place(archive_that_claims_an_absurd_size_is_refused),
        in_place(archive_beyond_the_limit_is_refused_before_it_is_written),
        in_place(archive_with_too_many_attributes_is_refused),
        in_place(source_of_no_known_kind_is_refused),
        in_place(archive_of_layers_is_refused_and_one_of_files_is_not),
        in_place(source_that_is_missing_or_a_pipe_is_refused),
        in_place(output_that_exists_is_left_alone),
        in_place(output_in_a_missing_directory_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
