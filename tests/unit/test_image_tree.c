/* SPDX-License-Identifier: Apache-2.0 */
#include "images/build/tree.h"

#include <sys/stat.h>

#include "tests/lib/assert.h"

static BerthTreeInode *file_of(guint64 size_bytes)
{
    BerthTreeInode *inode = berth_tree_inode_new(S_IFREG | 0644);
    inode->size_bytes = inode->data_bytes = size_bytes;
    inode->data_runs = 1;
    return inode;
}

static BerthTreeInode *link_to(const char *target)
{
    BerthTreeInode *inode = berth_tree_inode_new(S_IFLNK | 0777);
    inode->target = g_strdup(target);
    return inode;
}

static BerthTreeInode *directory_of(guint32 mode)
{
    return berth_tree_inode_new(S_IFDIR | mode);
}

static void add(BerthTree *tree, const char *path, BerthTreeInode *inode, guint64 entry)
{
    g_autoptr(GError) error = NULL;
    berth_tree_add(tree, path, inode, entry, &error);
    assert_no_error(error);
}

static void add_of_any_spelling_leads_to_one_place(void **state)
{
    static const char *const spellings[] = {"a/b/c",     "/a/b/c",   "./a/b/c",     "a//b/c",
                                            "a/./b/./c", "///a/b/c", "./././a/b//c"};
    for (gsize i = 0; i < G_N_ELEMENTS(spellings); i++) {
        g_autoptr(BerthTree) tree = berth_tree_new();
        add(tree, spellings[i], file_of(1), 0);
        BerthTreeInode *found = berth_tree_lookup(tree, "a/b/c");
        assert_non_null(found);
        assert_true(S_ISREG(found->mode));
        BerthTreeInode *parent = berth_tree_lookup(tree, "a/b");
        assert_int_equal(parent->mode, S_IFDIR | 0755);
        assert_int_equal(g_hash_table_size(parent->children), 1);
    }
}

static void add_of_impossible_path_is_refused(void **state)
{
    g_autofree char *long_name = g_strnfill(256, 'n');
    g_autofree char *dirs = g_strnfill(4096, '/');
    for (gsize i = 0; i < 4096; i += 2)
        dirs[i] = 'd';
    const struct {
        const char *path;
        const char *text;
    } cases[] = {
        {"..", "'..'"},
        {"../x", "'..'"},
        {"a/../../x", "'..'"},
        {"a/..", "'..'"},
        {"/../etc/passwd", "'..'"},
        {"link/x", "symbolic link"},
        {"file/x", "no directory"},
        {long_name, "255"},
        {dirs, "4095"},
        {"", "root must be a directory"},
        {"./", "root must be a directory"},
        {"full", "not empty"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(BerthTree) tree = berth_tree_new();
        g_autoptr(GError) error = NULL;
        add(tree, "link", link_to("etc"), 0);
        add(tree, "file", file_of(1), 1);
        add(tree, "full/x", file_of(1), 2);
        assert_false(berth_tree_add(tree, cases[i].path, file_of(1), 3, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].text);
        assert_null(berth_tree_find_entry(tree, 3));
    }
}

static void add_of_longest_name_is_taken(void **state)
{
    g_autoptr(BerthTree) tree = berth_tree_new();
    g_autofree char *name = g_strnfill(255, 'n');
    add(tree, name, file_of(1), 0);
    assert_non_null(berth_tree_lookup(tree, name));
}

static void add_of_impossible_inode_is_refused(void **state)
{
    g_autofree char *target = g_strnfill(4096, 't');
    const struct {
        BerthTreeInode *inode;
        const char *text;
    } cases[] = {
        {link_to(""), "without a target"},
        {link_to(NULL), "without a target"},
        {link_to(target), "4095"},
        {file_of(BERTH_TREE_FILE_MAX + 1), "8 TiB"},
        {file_of(G_MAXUINT64), "8 TiB"},
        {berth_tree_inode_new(S_IFSOCK | 0644), "type"},
        {berth_tree_inode_new(0644), "type"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(BerthTree) tree = berth_tree_new();
        g_autoptr(GError) error = NULL;
        assert_false(berth_tree_add(tree, "x", cases[i].inode, 0, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].text);
    }
}

static void add_of_same_path_lets_the_later_win(void **state)
{
    g_autoptr(BerthTree) tree = berth_tree_new();
    add(tree, "x", file_of(1), 0);
    add(tree, "x", file_of(2), 1);
    assert_int_equal(berth_tree_lookup(tree, "x")->size_bytes, 2);
    assert_null(berth_tree_find_entry(tree, 0));
    assert_ptr_equal(berth_tree_find_entry(tree, 1), berth_tree_lookup(tree, "x"));

    add(tree, "x", link_to("y"), 2);
    assert_true(S_ISLNK(berth_tree_lookup(tree, "x")->mode));
    assert_null(berth_tree_find_entry(tree, 1));

    add(tree, "x", directory_of(0700), 3);
    assert_int_equal(berth_tree_root(tree)->subdirs, 1);
    add(tree, "x", file_of(3), 4);
    assert_int_equal(berth_tree_root(tree)->subdirs, 0);
    assert_int_equal(berth_tree_lookup(tree, "x")->size_bytes, 3);
}

static void add_of_directory_again_renews_its_attributes_only(void **state)
{
    g_autoptr(BerthTree) tree = berth_tree_new();
    add(tree, "d/x", file_of(1), 0);
    add(tree, "d", directory_of(01777), 1);
    assert_int_equal(berth_tree_lookup(tree, "d")->mode, S_IFDIR | 01777);
    assert_non_null(berth_tree_lookup(tree, "d/x"));
    add(tree, "./", directory_of(0700), 2);
    assert_int_equal(berth_tree_root(tree)->mode, S_IFDIR | 0700);
    assert_non_null(berth_tree_lookup(tree, "d/x"));
}

static void link_of_file_shares_its_inode(void **state)
{
    g_autoptr(BerthTree) tree = berth_tree_new();
    g_autoptr(GError) error = NULL;
    add(tree, "a", file_of(1), 0);
    assert_true(berth_tree_link(tree, "d/b", "./a", &error));
    assert_true(berth_tree_link(tree, "d/b", "/a", &error)); /* again: nothing changes */
    assert_true(berth_tree_link(tree, "a", "a", &error));
    assert_ptr_equal(berth_tree_lookup(tree, "a"), berth_tree_lookup(tree, "d/b"));
    assert_int_equal(berth_tree_lookup(tree, "a")->links, 2);

    /* A name that is replaced leaves the other one what it was. */
    add(tree, "a", file_of(7), 1);
    assert_int_equal(berth_tree_lookup(tree, "d/b")->size_bytes, 1);
    assert_int_equal(berth_tree_lookup(tree, "d/b")->links, 1);
    assert_non_null(berth_tree_find_entry(tree, 0));
}

static void link_to_nothing_or_a_directory_is_refused(void **state)
{
    const struct {
        const char *target;
        const char *text;
    } cases[] = {
        {"missing", "not among the files before it"},
        {"missing/x", "not among the files before it"},
        {"d", "a directory"},
        {".", "a directory"},
        {"../a", "not among"},
        {"a/x", "not among"},
    };
    g_autoptr(BerthTree) tree = berth_tree_new();
    add(tree, "a", file_of(1), 0);
    add(tree, "d", directory_of(0755), 1);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        assert_false(berth_tree_link(tree, "b", cases[i].target, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].text);
        assert_null(berth_tree_lookup(tree, "b"));
    }
}

static void link_beyond_ext4s_limit_is_refused(void **state)
{
    g_autoptr(BerthTree) tree = berth_tree_new();
    g_autoptr(GError) error = NULL;
    add(tree, "0", file_of(1), 0);
    for (guint i = 1; i < BERTH_TREE_LINKS_MAX; i++) {
        g_autofree char *name = g_strdup_printf("%u", i);
        assert_true(berth_tree_link(tree, name, "0", &error));
    }
    assert_false(berth_tree_link(tree, "one-more", "0", &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "65000");
}

static void add_xattr_keeps_what_means_something_in_a_guest(void **state)
{
    static const struct {
        const char *name;
        gboolean kept;
    } cases[] = {
        {"user.note", TRUE},
        {"trusted.overlay.opaque", TRUE},
        {"security.capability", TRUE},
        {"security.selinux", FALSE},
        {"system.posix_acl_access", FALSE},
        {"nonsense", FALSE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(BerthTreeInode) inode = file_of(0);
        g_autoptr(GError) error = NULL;
        assert_true(berth_tree_inode_add_xattr(inode, cases[i].name, "v", 1, &error));
        assert_int_equal(inode->xattrs ? inode->xattrs->len : 0, cases[i].kept ? 1 : 0);
    }
}

static void add_xattr_beyond_what_fits_is_refused(void **state)
{
    g_autoptr(BerthTreeInode) inode = file_of(0);
    g_autoptr(GError) error = NULL;
    g_autofree char *value = g_strnfill(BERTH_TREE_XATTR_BYTES, 'v');
    assert_true(berth_tree_inode_add_xattr(inode, "user.a", value, 2000, &error));
    assert_true(berth_tree_inode_add_xattr(inode, "user.a", value, 2500, &error)); /* replaces */
    assert_int_equal(inode->xattrs->len, 1);
    assert_false(berth_tree_inode_add_xattr(inode, "user.b", value, 2500, &error));
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "extended attributes");
}

static void totals_count_each_inode_once(void **state)
{
    g_autoptr(BerthTree) tree = berth_tree_new();
    g_autoptr(GError) error = NULL;
    g_autofree char *target = g_strnfill(60, 't');
    BerthTreeTotals totals;
    add(tree, "d/a", file_of(3 * 4096), 0);
    assert_true(berth_tree_link(tree, "b", "d/a", &error));
    add(tree, "empty", file_of(0), 1);
    add(tree, "short", link_to("t"), 2);
    add(tree, "long", link_to(target), 3);
    berth_tree_totals(tree, &totals);
    assert_int_equal(totals.inodes, 6); /* with the root and d */
    assert_in_range(totals.data_blocks, 4, 5);
    assert_int_equal(totals.directory_blocks, 2);
    assert_int_equal(totals.extent_blocks, 0);
}

static void totals_of_a_file_full_of_holes_count_its_extents(void **state)
{
    g_autoptr(BerthTree) tree = berth_tree_new();
    BerthTreeTotals totals;
    BerthTreeInode *file = file_of(1 << 30);
    file->data_bytes = 1000 * 4096;
    file->data_runs = 1000;
    add(tree, "x", file, 0);
    berth_tree_totals(tree, &totals);
    assert_in_range(totals.data_blocks, 1000, 2001);
    assert_in_range(totals.extent_blocks, 3, 8); /* 340 in a block */
}

static gboolean collect(BerthTreeInode *directory, BerthTreeInode *parent, GPtrArray *names,
                        gpointer user_data, GError **error)
{
    for (guint i = 0; i < names->len; i++)
        g_string_append_printf(user_data, "%s ", (const char *)names->pdata[i]);
    g_string_append(user_data, "| ");
    return TRUE;
}

static void foreach_directory_goes_in_order_of_names(void **state)
{
    g_autoptr(BerthTree) tree = berth_tree_new();
    g_autoptr(GString) seen = g_string_new(NULL);
    g_autoptr(GError) error = NULL;
    static const char *const paths[] = {"z/2", "b", "a/y/1", "z/1", "a/x", "B"};
    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++)
        add(tree, paths[i], file_of(1), i);
    assert_true(berth_tree_foreach_directory(tree, collect, seen, &error));
    assert_string_equal(seen->str, "B a b z | x y | 1 | 1 2 | ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(add_of_any_spelling_leads_to_one_place),
        cmocka_unit_test(add_of_impossible_path_is_refused),
        cmocka_unit_test(add_of_longest_name_is_taken),
        cmocka_unit_test(add_of_impossible_inode_is_refused),
        cmocka_unit_test(add_of_same_path_lets_the_later_win),
        cmocka_unit_test(add_of_directory_again_renews_its_attributes_only),
        cmocka_unit_test(link_of_file_shares_its_inode),
        cmocka_unit_test(link_to_nothing_or_a_directory_is_refused),
        cmocka_unit_test(link_beyond_ext4s_limit_is_refused),
        cmocka_unit_test(add_xattr_keeps_what_means_something_in_a_guest),
        cmocka_unit_test(add_xattr_beyond_what_fits_is_refused),
        cmocka_unit_test(totals_count_each_inode_once),
        cmocka_unit_test(totals_of_a_file_full_of_holes_count_its_extents),
        cmocka_unit_test(foreach_directory_goes_in_order_of_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
