/* SPDX-License-Identifier: Apache-2.0 */

/* The measures of new file systems, and the check of existing ones. */

#include "images/build/ext4_check.h"
#include "images/build/ext4_layout.h"
#include "images/build/ext4_writer.h"

#include <ext2fs/ext2fs.h>
#include <glib/gstdio.h>
#include <sys/stat.h>

#include "tests/lib/assert.h"
#include "tests/lib/image_fixture.h"

#define TIB (G_GUINT64_CONSTANT(1) << 40)

static BerthTreeTotals totals_of(guint64 inodes, guint64 data_blocks)
{
    return (BerthTreeTotals){.inodes = inodes, .data_blocks = data_blocks, .directory_blocks = 1};
}

/* --- layout --- */

static void layout_of_any_content_makes_a_file_system_with_room_for_it(void **state)
{
    g_autofree char *directory = image_fixture_directory();
    g_autofree char *path = g_build_filename(directory, "image", NULL);
    const guint64 group = BERTH_EXT4_BLOCKS_PER_GROUP;
    /* Around the ends of groups, where the last group may be too small to be one. */
    const guint64 sizes[] = {0,          1,          1000,        25000,       29000,     29500,
                             30000,      30500,      31000,       31500,       2 * group, 9 * group,
                             16 * group, 17 * group, 100 * group, 1000 * group};
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        for (guint64 step = 0; step < 1200; step += 150) {
            BerthExt4Layout layout;
            g_autoptr(GError) error = NULL;
            BerthTreeTotals totals = totals_of(1 + i * 3000, sizes[i] + step);
            berth_ext4_layout_compute(&totals, TIB, &layout, &error);
            assert_no_error(error);
            /* It says so itself if there is not as much room as was computed. */
            g_autoptr(BerthExt4Writer) writer = berth_ext4_writer_new(path, &layout, &error);
            assert_no_error(error);
            assert_int_equal(berth_ext4_writer_size_bytes(writer) % (1 << 20), 0);
        }
    }
    image_fixture_remove(g_steal_pointer(&directory));
}

static void layout_of_small_content_can_grow(void **state)
{
    BerthTreeTotals totals = totals_of(10, 100);
    BerthExt4Layout layout;
    g_autoptr(GError) error = NULL;
    assert_true(berth_ext4_layout_compute(&totals, TIB, &layout, &error));
    assert_int_equal(layout.groups, 1);
    assert_true(layout.blocks * BERTH_EXT4_BLOCK_BYTES <= 16 << 20);
    assert_int_equal(layout.inodes_per_group, 8192); /* one per 16 KiB of what is added */
    /* A descriptor block tells of 64 groups of 128 MiB: with those in use, 1 TiB. */
    assert_int_equal(1 + layout.reserved_descriptors, 128);
}

static void layout_of_many_small_files_has_inodes_for_all(void **state)
{
    BerthTreeTotals totals = totals_of(BERTH_TREE_INODES_MAX, BERTH_TREE_INODES_MAX);
    BerthExt4Layout layout;
    g_autoptr(GError) error = NULL;
    assert_true(berth_ext4_layout_compute(&totals, TIB, &layout, &error));
    assert_true((guint64)layout.inodes_per_group * layout.groups > totals.inodes);
    /* Empty files alone, so many that their tables decide the size. */
    totals.data_blocks = 0;
    assert_true(berth_ext4_layout_compute(&totals, TIB, &layout, &error));
    assert_true((guint64)layout.inodes_per_group * layout.groups > totals.inodes);
    assert_true(layout.inodes_per_group <= BERTH_EXT4_BLOCKS_PER_GROUP);
}

static void layout_beyond_the_limit_is_refused(void **state)
{
    static const struct {
        guint64 data_blocks;
        guint64 max_bytes;
    } cases[] = {
        {100, 1 << 20},
        {100000, 256 << 20},
        {TIB / 4096, TIB},
        {G_GUINT64_CONSTANT(1) << 54, G_MAXUINT64},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        BerthTreeTotals totals = totals_of(10, cases[i].data_blocks);
        BerthExt4Layout layout;
        g_autoptr(GError) error = NULL;
        assert_false(berth_ext4_layout_compute(&totals, cases[i].max_bytes, &layout, &error));
        assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "does not fit");
    }
}

/* --- data that do not agree with the tree --- */

static void append_beyond_the_size_or_backwards_is_refused(void **state)
{
    static const struct {
        guint64 offset;
        gsize length;
    } cases[] = {{0, 101}, {100, 1}, {101, 0}, {G_MAXUINT64, 2}, {49, 1}};
    g_autofree char *directory = image_fixture_directory();
    g_autofree char *path = g_build_filename(directory, "image", NULL);
    static const guint8 data[200];
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(BerthTree) tree = berth_tree_new();
        g_autoptr(GError) error = NULL;
        BerthExt4Layout layout;
        BerthTreeTotals totals;
        BerthTreeInode *file = berth_tree_inode_new(S_IFREG | 0644);
        file->size_bytes = file->data_bytes = 100;
        assert_true(berth_tree_add(tree, "x", file, 0, &error));
        berth_tree_totals(tree, &totals);
        assert_true(berth_ext4_layout_compute(&totals, TIB, &layout, &error));
        g_autoptr(BerthExt4Writer) writer = berth_ext4_writer_new(path, &layout, &error);
        assert_true(berth_ext4_writer_add_tree(writer, tree, &error));
        assert_int_equal(berth_ext4_writer_missing(writer), 1);
        assert_true(berth_ext4_writer_begin(writer, file, &error));
        assert_true(berth_ext4_writer_append(writer, 0, data, 50, &error));
        assert_false(
            berth_ext4_writer_append(writer, cases[i].offset, data, cases[i].length, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "do not agree");
    }
    /* What was not committed is gone. */
    assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    image_fixture_remove(g_steal_pointer(&directory));
}

/* --- superblocks --- */

typedef union {
    struct ext2_super_block super;
    guint8 bytes[BERTH_EXT4_SUPER_BYTES];
} Super;

/* As mkfs.ext4 makes one by default: 1000 blocks of 4 KiB. */
static Super good_super(void)
{
    Super good = {0};
    good.super.s_magic = EXT2_SUPER_MAGIC;
    good.super.s_rev_level = EXT2_DYNAMIC_REV;
    good.super.s_log_block_size = 2;
    good.super.s_blocks_count = 1000;
    good.super.s_state = EXT2_VALID_FS;
    good.super.s_feature_compat = 0x3c;
    good.super.s_feature_incompat = 0x2c2;
    good.super.s_feature_ro_compat = 0x46b;
    return good;
}

static void seal(Super *super)
{
    super->super.s_checksum = ext2fs_crc32c_le(~0u, super->bytes, BERTH_EXT4_SUPER_BYTES - 4);
}

static void super_check_of_sound_file_system_tells_its_size(void **state)
{
    Super good = good_super();
    guint64 bytes = 0;
    g_autoptr(GError) error = NULL;
    seal(&good);
    assert_true(berth_ext4_super_check(good.bytes, 4096000, &bytes, &error));
    assert_int_equal(bytes, 4096000);
    assert_true(berth_ext4_super_check(good.bytes, G_MAXUINT64, &bytes, &error));
    assert_int_equal(bytes, 4096000);
}

static void super_check_of_unfit_file_system_says_why(void **state)
{
    Super bad[10];
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        bad[i] = good_super();
    bad[0].super.s_magic = 0;
    bad[1].super.s_state = 0;
    bad[2].super.s_state = EXT2_VALID_FS | EXT2_ERROR_FS;
    bad[3].super.s_feature_incompat |= EXT3_FEATURE_INCOMPAT_RECOVER;
    bad[4].super.s_feature_incompat |= EXT4_FEATURE_INCOMPAT_ENCRYPT;
    bad[5].super.s_feature_ro_compat |= EXT4_FEATURE_RO_COMPAT_QUOTA;
    bad[6].super.s_feature_compat |= EXT4_FEATURE_COMPAT_SPARSE_SUPER2;
    bad[7].super.s_log_block_size = 6;
    bad[8].super.s_blocks_count = 1001;
    bad[9].super.s_blocks_count_hi = ~0u;
    const struct {
        BerthErrorCode code;
        const char *text;
    } expected[] = {
        {BERTH_ERROR_INVALID_ARGUMENT, "no ext4"},
        {BERTH_ERROR_FAILED_PRECONDITION, "not cleanly unmounted"},
        {BERTH_ERROR_FAILED_PRECONDITION, "errors"},
        {BERTH_ERROR_FAILED_PRECONDITION, "not cleanly unmounted"},
        {BERTH_ERROR_UNSUPPORTED, "incompat 0x10000"},
        {BERTH_ERROR_UNSUPPORTED, "ro_compat 0x100"},
        {BERTH_ERROR_UNSUPPORTED, "compat 0x200"},
        {BERTH_ERROR_UNSUPPORTED, "block size"},
        {BERTH_ERROR_INVALID_ARGUMENT, "truncated"},
        {BERTH_ERROR_INVALID_ARGUMENT, "truncated"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        guint64 bytes = 77;
        g_autoptr(GError) error = NULL;
        seal(&bad[i]);
        assert_false(berth_ext4_super_check(bad[i].bytes, 4096000, &bytes, &error));
        assert_berth_error(error, expected[i].code, expected[i].text);
        assert_int_equal(bytes, 77);
    }
}

static void super_check_of_damaged_superblock_is_data_loss(void **state)
{
    Super good = good_super();
    guint64 bytes;
    g_autoptr(GError) error = NULL;
    seal(&good);
    good.super.s_r_blocks_count ^= 1;
    assert_false(berth_ext4_super_check(good.bytes, 4096000, &bytes, &error));
    assert_berth_error(error, BERTH_ERROR_DATA_LOSS, "checksum");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_of_any_content_makes_a_file_system_with_room_for_it),
        cmocka_unit_test(layout_of_small_content_can_grow),
        cmocka_unit_test(layout_of_many_small_files_has_inodes_for_all),
        cmocka_unit_test(layout_beyond_the_limit_is_refused),
        cmocka_unit_test(append_beyond_the_size_or_backwards_is_refused),
        cmocka_unit_test(super_check_of_sound_file_system_tells_its_size),
        cmocka_unit_test(super_check_of_unfit_file_system_says_why),
        cmocka_unit_test(super_check_of_damaged_superblock_is_data_loss),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
