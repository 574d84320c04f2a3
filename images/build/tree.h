/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The files of an image, in memory, without their data: what a source's entries amount to when they
 * are applied one after the other. Plain data; knows neither archives nor file systems. */

#include <glib.h>

/* Limits of one tree. Paths and links are those of Linux and ext4. */
#define BERTH_TREE_PATH_MAX    4095u
#define BERTH_TREE_NAME_MAX    255u
#define BERTH_TREE_TARGET_MAX  4095u
#define BERTH_TREE_LINKS_MAX   65000u
#define BERTH_TREE_INODES_MAX  8000000u
#define BERTH_TREE_FILE_MAX    (G_GUINT64_CONSTANT(1) << 43) /* 8 TiB in one file */
#define BERTH_TREE_XATTR_BYTES 3072u                         /* names and values of one inode */

typedef struct {
    char *name; /* "user.x", "trusted.x", "security.capability" */
    GBytes *value;
} BerthTreeXattr;

typedef struct BerthTreeInode BerthTreeInode;
struct BerthTreeInode {
    guint32 mode; /* type and permissions, as in stat(2) */
    guint32 uid;
    guint32 gid;
    guint32 rdev_major; /* devices only */
    guint32 rdev_minor;
    gint64 mtime_sec;
    guint32 mtime_nsec;
    guint64 size_bytes;   /* regular files only */
    guint64 data_bytes;   /* of size_bytes, what is not a hole */
    guint64 data_runs;    /* runs of data between holes */
    char *target;         /* symbolic links only */
    GPtrArray *xattrs;    /* of BerthTreeXattr; NULL: none */
    guint32 links;        /* names that it has; a directory has one */
    guint32 subdirs;      /* directories only */
    GHashTable *children; /* directories only: name -> BerthTreeInode */
    guint64 entry;        /* number of the entry that has its data */
    guint32 number;       /* for the writer of the file system: 0 until it has one */
};

typedef struct BerthTree BerthTree;

/* A tree with a root directory: 0755, root, time 0. */
BerthTree *berth_tree_new(void);
void berth_tree_free(BerthTree *tree);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthTree, berth_tree_free)

/* A new inode that is in no tree yet; berth_tree_add takes it. */
BerthTreeInode *berth_tree_inode_new(guint32 mode);
void berth_tree_inode_free(BerthTreeInode *inode);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthTreeInode, berth_tree_inode_free)
/* Copies NAME and VALUE; the later of two values of one name wins. Names that mean nothing in a
 * guest ("system.*", labels of security modules) are left out. RESOURCE_EXHAUSTED if they are more
 * than an inode can hold. */
gboolean berth_tree_inode_add_xattr(BerthTreeInode *inode, const char *name, const void *value,
                                    gsize length, GError **error);

/* Puts INODE (transfer full, also on failure) at PATH, as entry ENTRY of its source. A leading '/'
 * or "./" is dropped: paths start at the image's root. Missing parents are made. What is there is
 * replaced, but a directory gives way to another one only (which renews its attributes) or if it is
 * empty. INVALID_ARGUMENT: "..", a parent that is no directory (symbolic links are not followed),
 * a name or path that is too long, a type that no file has; RESOURCE_EXHAUSTED: too many files. */
gboolean berth_tree_add(BerthTree *tree, const char *path, BerthTreeInode *inode, guint64 entry,
                        GError **error);
/* Gives the file at TARGET the further name PATH. Linking a file to itself changes nothing.
 * INVALID_ARGUMENT also if TARGET does not exist or is a directory. */
gboolean berth_tree_link(BerthTree *tree, const char *path, const char *target, GError **error);

BerthTreeInode *berth_tree_root(BerthTree *tree);
/* The regular file whose data is that of entry ENTRY; NULL if it was replaced or has none. */
BerthTreeInode *berth_tree_find_entry(BerthTree *tree, guint64 entry);
/* What is at PATH, NULL if nothing. */
BerthTreeInode *berth_tree_lookup(BerthTree *tree, const char *path);

/* Sums over all inodes that are alive. */
typedef struct {
    guint64 inodes;           /* the root included */
    guint64 data_blocks;      /* of 4096 bytes: of files and of long symbolic links */
    guint64 directory_blocks; /* at least */
    guint64 extent_blocks;    /* at most, to index the data */
    guint64 xattr_blocks;     /* at most */
} BerthTreeTotals;
void berth_tree_totals(BerthTree *tree, BerthTreeTotals *out_totals);

/* Calls FUNC on each directory, parents first, and within one directory in the order of its names
 * (bytes). FUNC returns FALSE with an error to stop. NAMES are the directory's, sorted. */
typedef gboolean (*BerthTreeDirectoryFunc)(BerthTreeInode *directory, BerthTreeInode *parent,
                                           GPtrArray *names, gpointer user_data, GError **error);
gboolean berth_tree_foreach_directory(BerthTree *tree, BerthTreeDirectoryFunc func,
                                      gpointer user_data, GError **error);

/* Blocks of 4096 bytes that a directory with these NAMES takes on ext4 with checksums. */
guint64 berth_tree_directory_blocks(GPtrArray *names);
