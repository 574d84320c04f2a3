/* SPDX-License-Identifier: Apache-2.0 */

/* The tree of an image's files.
 *
 * Owns: names, inodes, hard links, and what replaces what. Does not own: data, and numbers of
 * inodes on a file system.
 * Invariants: an inode is in the tree as often as its `links` says, and is freed with its last
 * name; a directory has one name; no path of the tree is longer than BERTH_TREE_PATH_MAX, so that
 * recursion over it is bounded. */

#include "images/build/tree.h"

#include <string.h>
#include <sys/stat.h>

#include "common/error.h"

struct BerthTree {
    BerthTreeInode *root;
    GHashTable *data; /* entry number -> regular file whose data it has */
    guint64 inodes;
};

static void xattr_free(gpointer pointer)
{
    BerthTreeXattr *xattr = pointer;
    g_free(xattr->name);
    g_bytes_unref(xattr->value);
    g_free(xattr);
}

BerthTreeInode *berth_tree_inode_new(guint32 mode)
{
    BerthTreeInode *inode = g_new0(BerthTreeInode, 1);
    inode->mode = mode;
    return inode;
}

void berth_tree_inode_free(BerthTreeInode *inode)
{
    if (!inode)
        return;
    g_free(inode->target);
    g_clear_pointer(&inode->xattrs, g_ptr_array_unref);
    g_clear_pointer(&inode->children, g_hash_table_unref);
    g_free(inode);
}

/* Drops one name of INODE: a value of a directory's children. */
static void inode_unlink(gpointer pointer)
{
    BerthTreeInode *inode = pointer;
    if (--inode->links == 0)
        berth_tree_inode_free(inode);
}

static void become_directory(BerthTreeInode *inode)
{
    inode->children = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, inode_unlink);
}

BerthTree *berth_tree_new(void)
{
    BerthTree *tree = g_new0(BerthTree, 1);
    tree->root = berth_tree_inode_new(S_IFDIR | 0755);
    tree->root->links = 1;
    become_directory(tree->root);
    tree->data = g_hash_table_new(g_direct_hash, g_direct_equal);
    tree->inodes = 1;
    return tree;
}

void berth_tree_free(BerthTree *tree)
{
    if (!tree)
        return;
    g_hash_table_unref(tree->data);
    berth_tree_inode_free(tree->root);
    g_free(tree);
}

BerthTreeInode *berth_tree_root(BerthTree *tree)
{
    return tree->root;
}

/* --- extended attributes ------------------------------------------------------------------- */

static gboolean xattr_is_meant_for_guests(const char *name)
{
    return g_str_has_prefix(name, "user.") || g_str_has_prefix(name, "trusted.") ||
           g_str_equal(name, "security.capability");
}

gboolean berth_tree_inode_add_xattr(BerthTreeInode *inode, const char *name, const void *value,
                                    gsize length, GError **error)
{
    if (!xattr_is_meant_for_guests(name))
        return TRUE;
    gsize total = strlen(name) + length;
    guint same = G_MAXUINT;
    for (guint i = 0; inode->xattrs && i < inode->xattrs->len; i++) {
        BerthTreeXattr *other = g_ptr_array_index(inode->xattrs, i);
        if (g_str_equal(other->name, name))
            same = i;
        else
            total += strlen(other->name) + g_bytes_get_size(other->value);
    }
    if (strlen(name) > BERTH_TREE_NAME_MAX || total > BERTH_TREE_XATTR_BYTES) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                    "its extended attributes are more than the %u bytes that an image can hold for "
                    "one file",
                    BERTH_TREE_XATTR_BYTES);
        return FALSE;
    }
    if (!inode->xattrs)
        inode->xattrs = g_ptr_array_new_with_free_func(xattr_free);
    if (same != G_MAXUINT)
        g_ptr_array_remove_index(inode->xattrs, same);
    BerthTreeXattr *xattr = g_new0(BerthTreeXattr, 1);
    xattr->name = g_strdup(name);
    xattr->value = g_bytes_new(value, length);
    g_ptr_array_add(inode->xattrs, xattr);
    return TRUE;
}

/* --- paths ---------------------------------------------------------------------------------- */

static gboolean refuse(GError **error, const char *path, const char *why)
{
    g_autofree char *shown = g_utf8_make_valid(path, (gssize)MIN(strlen(path), 200));
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "'%s': %s", shown, why);
    return FALSE;
}

/* Takes the next name off *CURSOR into NAME; an empty NAME means that there is none. */
static gboolean next_name(const char *path, const char **cursor, char name[BERTH_TREE_NAME_MAX + 1],
                          GError **error)
{
    name[0] = '\0';
    while (**cursor) {
        gsize length = strcspn(*cursor, "/");
        const char *start = *cursor;
        *cursor += length + strspn(*cursor + length, "/");
        if (length == 0 || (length == 1 && start[0] == '.'))
            continue;
        if (length == 2 && start[0] == '.' && start[1] == '.')
            return refuse(error, path, "'..' in a path could lead out of the image");
        if (length > BERTH_TREE_NAME_MAX)
            return refuse(error, path, "a name is longer than 255 bytes");
        memcpy(name, start, length);
        name[length] = '\0';
        return TRUE;
    }
    return TRUE;
}

static gboolean tree_is_full(BerthTree *tree, GError **error)
{
    if (tree->inodes < BERTH_TREE_INODES_MAX)
        return FALSE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                "more than the %u files that an image may have", BERTH_TREE_INODES_MAX);
    return TRUE;
}

static void directory_insert(BerthTree *tree, BerthTreeInode *directory, const char *name,
                             BerthTreeInode *inode)
{
    inode->links++;
    if (inode->links == 1)
        tree->inodes++;
    if (S_ISDIR(inode->mode))
        directory->subdirs++;
    g_hash_table_insert(directory->children, g_strdup(name), inode);
}

static void directory_remove(BerthTree *tree, BerthTreeInode *directory, const char *name)
{
    BerthTreeInode *inode = g_hash_table_lookup(directory->children, name);
    if (S_ISDIR(inode->mode))
        directory->subdirs--;
    if (inode->links == 1) {
        tree->inodes--;
        if (g_hash_table_lookup(tree->data, GSIZE_TO_POINTER(inode->entry)) == inode)
            g_hash_table_remove(tree->data, GSIZE_TO_POINTER(inode->entry));
    }
    g_hash_table_remove(directory->children, name);
}

static BerthTreeInode *make_directory(BerthTree *tree, BerthTreeInode *parent, const char *name,
                                      GError **error)
{
    if (tree_is_full(tree, error))
        return NULL;
    BerthTreeInode *directory = berth_tree_inode_new(S_IFDIR | 0755);
    become_directory(directory);
    directory_insert(tree, parent, name, directory);
    return directory;
}

/* Walks PATH but for its last name, which goes to LEAF ("" for the root itself). With MAKE, makes
 * the directories that are missing; without it, returns NULL and no error for those. */
static BerthTreeInode *find_parent(BerthTree *tree, const char *path, gboolean make,
                                   char leaf[BERTH_TREE_NAME_MAX + 1], GError **error)
{
    if (strlen(path) > BERTH_TREE_PATH_MAX) {
        refuse(error, path, "the path is longer than 4095 bytes");
        return NULL;
    }
    const char *cursor = path;
    BerthTreeInode *directory = tree->root;
    if (!next_name(path, &cursor, leaf, error))
        return NULL;
    for (;;) {
        char next[BERTH_TREE_NAME_MAX + 1];
        if (!next_name(path, &cursor, next, error))
            return NULL;
        if (!next[0])
            return directory;
        BerthTreeInode *child = g_hash_table_lookup(directory->children, leaf);
        if (!child && make)
            child = make_directory(tree, directory, leaf, error);
        if (!child)
            return NULL;
        if (!S_ISDIR(child->mode)) {
            refuse(error, path,
                   S_ISLNK(child->mode) ? "a parent of it is a symbolic link, which is not followed"
                                        : "a parent of it is no directory");
            return NULL;
        }
        directory = child;
        memcpy(leaf, next, sizeof next);
    }
}

/* --- changing the tree ----------------------------------------------------------------------- */

static void renew_directory(BerthTreeInode *directory, BerthTreeInode *from)
{
    directory->mode = from->mode;
    directory->uid = from->uid;
    directory->gid = from->gid;
    directory->mtime_sec = from->mtime_sec;
    directory->mtime_nsec = from->mtime_nsec;
    g_clear_pointer(&directory->xattrs, g_ptr_array_unref);
    directory->xattrs = g_steal_pointer(&from->xattrs);
}

/* Makes room for PATH's last name. */
static gboolean clear_name(BerthTree *tree, BerthTreeInode *parent, const char *leaf,
                           const char *path, GError **error)
{
    BerthTreeInode *old = g_hash_table_lookup(parent->children, leaf);
    if (!old)
        return TRUE;
    if (S_ISDIR(old->mode) && g_hash_table_size(old->children) > 0)
        return refuse(error, path, "it would replace a directory that is not empty");
    directory_remove(tree, parent, leaf);
    return TRUE;
}

static gboolean check_inode(const char *path, BerthTreeInode *inode, GError **error)
{
    switch (inode->mode & S_IFMT) {
    case S_IFREG:
        if (inode->size_bytes > BERTH_TREE_FILE_MAX)
            return refuse(error, path, "it claims to be larger than 8 TiB");
        return TRUE;
    case S_IFLNK:
        if (!inode->target || !inode->target[0])
            return refuse(error, path, "a symbolic link without a target");
        if (strlen(inode->target) > BERTH_TREE_TARGET_MAX)
            return refuse(error, path, "the target of the link is longer than 4095 bytes");
        return TRUE;
    case S_IFDIR:
    case S_IFCHR:
    case S_IFBLK:
    case S_IFIFO:
        return TRUE;
    default:
        return refuse(error, path, "its type is none that an image can hold");
    }
}

gboolean berth_tree_add(BerthTree *tree, const char *path, BerthTreeInode *inode, guint64 entry,
                        GError **error)
{
    g_autoptr(BerthTreeInode) taken = inode;
    char leaf[BERTH_TREE_NAME_MAX + 1];
    if (!check_inode(path, inode, error))
        return FALSE;
    BerthTreeInode *parent = find_parent(tree, path, TRUE, leaf, error);
    if (!parent)
        return FALSE;
    BerthTreeInode *old = leaf[0] ? g_hash_table_lookup(parent->children, leaf) : tree->root;
    if (old && S_ISDIR(old->mode) && S_ISDIR(inode->mode)) {
        renew_directory(old, inode);
        return TRUE;
    }
    if (!leaf[0])
        return refuse(error, path, "the image's root must be a directory");
    if (tree_is_full(tree, error) || !clear_name(tree, parent, leaf, path, error))
        return FALSE;
    if (S_ISDIR(inode->mode))
        become_directory(inode);
    inode->entry = entry;
    if (S_ISREG(inode->mode) && inode->size_bytes > 0)
        g_hash_table_insert(tree->data, GSIZE_TO_POINTER(entry), inode);
    directory_insert(tree, parent, leaf, g_steal_pointer(&taken));
    return TRUE;
}

static BerthTreeInode *lookup(BerthTree *tree, const char *path, GError **error)
{
    char leaf[BERTH_TREE_NAME_MAX + 1];
    BerthTreeInode *parent = find_parent(tree, path, FALSE, leaf, error);
    if (!parent)
        return NULL;
    return leaf[0] ? g_hash_table_lookup(parent->children, leaf) : tree->root;
}

BerthTreeInode *berth_tree_lookup(BerthTree *tree, const char *path)
{
    g_autoptr(GError) ignored = NULL;
    return lookup(tree, path, &ignored);
}

gboolean berth_tree_link(BerthTree *tree, const char *path, const char *target, GError **error)
{
    char leaf[BERTH_TREE_NAME_MAX + 1];
    g_autoptr(GError) why = NULL;
    BerthTreeInode *inode = lookup(tree, target, &why);
    if (!inode || S_ISDIR(inode->mode)) {
        g_autofree char *shown = g_utf8_make_valid(target, (gssize)MIN(strlen(target), 200));
        g_autofree char *reason =
            g_strdup_printf("it is a hard link to '%s', which is %s", shown,
                            inode ? "a directory" : "not among the files before it");
        return refuse(error, path, reason);
    }
    BerthTreeInode *parent = find_parent(tree, path, TRUE, leaf, error);
    if (!parent)
        return FALSE;
    if (!leaf[0])
        return refuse(error, path, "the image's root must be a directory");
    if (g_hash_table_lookup(parent->children, leaf) == inode)
        return TRUE;
    if (inode->links >= BERTH_TREE_LINKS_MAX) {
        refuse(error, path, "its target has 65000 hard links already, ext4's limit");
        return FALSE;
    }
    if (!clear_name(tree, parent, leaf, path, error))
        return FALSE;
    directory_insert(tree, parent, leaf, inode);
    return TRUE;
}

BerthTreeInode *berth_tree_find_entry(BerthTree *tree, guint64 entry)
{
    return g_hash_table_lookup(tree->data, GSIZE_TO_POINTER(entry));
}

/* --- reading the tree ------------------------------------------------------------------------- */

static int compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static gboolean walk(BerthTreeInode *directory, BerthTreeInode *parent, BerthTreeDirectoryFunc func,
                     gpointer user_data, GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_sized_new(g_hash_table_size(directory->children));
    GHashTableIter iter;
    gpointer name;
    g_hash_table_iter_init(&iter, directory->children);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        g_ptr_array_add(names, name);
    g_ptr_array_sort(names, compare_names);
    if (!func(directory, parent, names, user_data, error))
        return FALSE;
    for (guint i = 0; i < names->len; i++) {
        BerthTreeInode *child = g_hash_table_lookup(directory->children, names->pdata[i]);
        if (S_ISDIR(child->mode) && !walk(child, directory, func, user_data, error))
            return FALSE;
    }
    return TRUE;
}

gboolean berth_tree_foreach_directory(BerthTree *tree, BerthTreeDirectoryFunc func,
                                      gpointer user_data, GError **error)
{
    return walk(tree->root, tree->root, func, user_data, error);
}

guint64 berth_tree_directory_blocks(GPtrArray *names)
{
    /* "." and ".." take 24 bytes of the first block, the checksum 12 of each; a name takes 8 bytes
     * and its own, rounded up to 4. */
    guint64 blocks = 1;
    gsize used = 24 + 12;
    for (guint i = 0; i < names->len; i++) {
        gsize need = (8 + strlen(names->pdata[i]) + 3) & ~(gsize)3;
        if (used + need > 4096) {
            blocks++;
            used = 12;
        }
        used += need;
    }
    return blocks;
}

typedef struct {
    BerthTreeTotals totals;
    GHashTable *seen; /* inodes of several names */
} Totals;

static void add_inode(BerthTreeInode *inode, BerthTreeTotals *totals)
{
    totals->inodes++;
    if (inode->xattrs)
        totals->xattr_blocks++;
    if (S_ISLNK(inode->mode)) /* up to 59 bytes are kept in the inode */
        totals->data_blocks += strlen(inode->target) >= 60;
    if (!S_ISREG(inode->mode) || inode->size_bytes == 0)
        return;
    guint64 blocks = inode->data_bytes / 4096 + inode->data_runs;
    totals->data_blocks += MIN(blocks + 1, inode->size_bytes / 4096 + 1);
    /* Four extents are kept in the inode, about 340 in a block; an extent ends at a hole and where a
     * block group of 32768 blocks does. */
    guint64 extents = inode->data_runs + 2 * (blocks / 32768 + 1);
    totals->extent_blocks += extents <= 4 ? 0 : extents / 300 + 2;
}

static gboolean add_directory(BerthTreeInode *directory, BerthTreeInode *parent, GPtrArray *names,
                              gpointer user_data, GError **error)
{
    Totals *sum = user_data;
    add_inode(directory, &sum->totals);
    sum->totals.directory_blocks += berth_tree_directory_blocks(names);
    for (guint i = 0; i < names->len; i++) {
        BerthTreeInode *child = g_hash_table_lookup(directory->children, names->pdata[i]);
        if (S_ISDIR(child->mode) || (child->links > 1 && !g_hash_table_add(sum->seen, child)))
            continue;
        add_inode(child, &sum->totals);
    }
    return TRUE;
}

void berth_tree_totals(BerthTree *tree, BerthTreeTotals *out_totals)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_direct_hash, g_direct_equal);
    Totals sum = {.seen = seen};
    berth_tree_foreach_directory(tree, add_directory, &sum, NULL);
    *out_totals = sum.totals;
}
