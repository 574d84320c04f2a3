/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How many files and sockets this process may have open. GLib and others end a process that gets none for what they cannot do
 * without: so that whoever takes some for what can wait asks before how many are left. */

#include <glib.h>

/* The soft limit becomes the hard one: at the start. */
void berth_descriptors_raise_limit(void);
/* What it was before, for a program that this process starts: a GSpawnChildSetupFunc. */
void berth_descriptors_restore_limit(gpointer unused);
/* The soft limit. */
guint berth_descriptors_max(void);
/* How many numbers there are from the lowest free one to the limit. Who takes none unless N are left leaves N to all others,
 * whatever has been closed meanwhile. It costs two system calls. */
guint berth_descriptors_left(void);
/* So few that none is to be taken for what can wait. */
gboolean berth_descriptors_are_few(void);
