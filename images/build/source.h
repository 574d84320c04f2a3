/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The entries of a directory or of a tar archive, one after the other; can be read again from the
 * start. The only file of Berth that uses libarchive is source.c. */

#include <gio/gio.h>

#include "images/build/tree.h"

typedef struct BerthSource BerthSource;

/* PATH is a directory, without symbolic links in its name (realpath). */
BerthSource *berth_source_open_directory(const char *path, GError **error);
/* FD is a regular file (not owned, must outlive the source); NAME is for messages. */
BerthSource *berth_source_open_tar(int fd, const char *name, GError **error);
void berth_source_free(BerthSource *source);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthSource, berth_source_free)

/* Back to before the first entry. */
gboolean berth_source_rewind(BerthSource *source, GError **error);

typedef struct {
    guint64 number;          /* 0, 1, 2...; the same whenever the source is read */
    const char *path;        /* as in the source; of a directory, relative to it */
    const char *hard_link;   /* the path of the file that this is another name of, or NULL */
    gboolean is_socket;      /* has no place in an image */
    guint64 size_bytes;      /* of a regular file, else 0 */
    const char *description; /* PATH as valid UTF-8, for messages */
} BerthSourceEntry;

/* The next entry, valid until the next call on SOURCE. FALSE without an error: no more. */
gboolean berth_source_next(BerthSource *source, BerthSourceEntry *out_entry, GError **error);
/* The current entry's attributes (transfer full); it is no hard link and no socket. */
BerthTreeInode *berth_source_inode(BerthSource *source, GError **error);
/* The next piece of the current entry's data: *OUT_DATA is valid until the next call; offsets
 * rise, what they leave out are holes. FALSE without an error: no more. */
gboolean berth_source_read(BerthSource *source, const void **out_data, gsize *out_length,
                           guint64 *out_offset, GError **error);
/* Passes over the current entry's data. */
gboolean berth_source_skip(BerthSource *source, GCancellable *cancellable, GError **error);
