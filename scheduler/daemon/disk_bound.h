/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* How much of the file system with berthd's state is kept for what there is already: what becomes of each job has to be
 * written, and where that cannot be done nothing is decided any more. New jobs are refused before. */

typedef struct BerthDiskBound BerthDiskBound;

/* STATE: the database, as in berthd.conf(5), whose directory exists by now. KEPT_MIB of its file system are kept; 0: nothing
 * is, as where it is no file. */
BerthDiskBound *berth_disk_bound_new(const char *state, guint64 kept_mib);
void berth_disk_bound_free(BerthDiskBound *bound);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthDiskBound, berth_disk_bound_free)

/* FALSE with RESOURCE_EXHAUSTED, for who submits: there is no more than is kept. It is looked at once a second at most, so that it
 * costs nothing to ask for each job. */
gboolean berth_disk_bound_check(BerthDiskBound *bound, GError **error);
