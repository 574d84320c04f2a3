/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>
#include <sys/types.h>

/* Files that are written for a user, with that user's rights. On workers. */

typedef struct BerthOutputFile BerthOutputFile;

/* Opens (and makes, mode 0644) PATH as UID with GID and GROUPS would, and empties it. Anything but
 * a regular file is refused, so that nothing blocks. Only root can do this for others. NULL with
 * ERROR, which names PATH. */
BerthOutputFile *berth_output_file_open(const char *path, uid_t uid, gid_t gid, const gid_t *groups,
                                        gsize n_groups, GError **error);
/* Appends all of CONTENT as the user would: within the user's quota, and not from the blocks that a
 * file system keeps for root. */
gboolean berth_output_file_write(BerthOutputFile *file, GBytes *content, GError **error);
/* Closes it and frees FILE; FALSE: what was written may not be there. */
gboolean berth_output_file_close(BerthOutputFile *file, GError **error);
/* The same where that does not matter any more. */
void berth_output_file_free(BerthOutputFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthOutputFile, berth_output_file_free)
