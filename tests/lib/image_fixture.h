/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For tests of images/build: archives to be made, and image files to be looked into. */

#include <glib.h>

/* A private temporary directory; removed with all that is in it. */
char *image_fixture_directory(void);
void image_fixture_remove(char *directory);

/* --- archives --- */

/* One entry. Zero means: a regular file of mode 0644, root's, at time 0, empty. */
typedef struct {
    const char *path;
    guint32 mode;
    const char *data;      /* content of a file, */
    gsize length;          /* of this length; 0: strlen(data) */
    const char *target;    /* of a symbolic link */
    const char *hard_link; /* the other name */
    guint32 uid, gid;
    gint64 mtime_sec;
    guint32 mtime_nsec;
    guint32 rdev_major, rdev_minor;
    const char *xattr_name; /* one attribute */
    const char *xattr_value;
    gsize xattr_length; /* 0: strlen(xattr_value) */
    gint64 hole_until;  /* > 0: the file is this much longer, with a hole before its data */
} ImageEntry;

typedef struct ImageArchive ImageArchive;
/* FILTER: "none", "gzip", "xz", "zstd". */
ImageArchive *image_archive_new(const char *path, const char *filter);
void image_archive_add(ImageArchive *archive, const ImageEntry *entry);
void image_archive_close(ImageArchive *archive);
/* All of it at once. */
void image_archive_write(const char *path, const char *filter, const ImageEntry *entries,
                         gsize count);

/* --- images --- */

/* Fails the test unless `e2fsck -fn` finds nothing. */
void assert_image_is_clean(const char *image);

typedef struct {
    guint32 number;
    guint32 mode;
    guint32 uid, gid;
    guint32 links;
    guint64 size_bytes;
    guint64 blocks; /* of 512 bytes */
    gint64 mtime_sec;
    guint32 mtime_nsec;
    guint32 words[2]; /* of a device: i_block */
} ImageStat;
/* FALSE if there is nothing at PATH. Symbolic links are not followed. */
gboolean image_stat(const char *image, const char *path, ImageStat *out_stat);
/* A file's content or a symbolic link's target; PATH must exist. */
GBytes *image_read(const char *image, const char *path);
/* NULL: no such attribute. */
GBytes *image_xattr(const char *image, const char *path, const char *name);

#define assert_image_holds(image, path, expected, length)                                          \
    do {                                                                                           \
        g_autoptr(GBytes) held = image_read((image), (path));                                      \
        assert_int_equal(g_bytes_get_size(held), (length));                                        \
        assert_memory_equal(g_bytes_get_data(held, NULL), (expected), (length));                   \
    } while (0)
