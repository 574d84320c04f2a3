/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How far a long run is, on standard error: one line that is written over on a terminal, else a
 * line every ten seconds. */

#include <glib.h>

typedef struct SimProgress SimProgress;

SimProgress *sim_progress_new(gboolean quiet);
void sim_progress_free(SimProgress *progress);
void sim_progress_tell(SimProgress *progress, const char *policy, guint64 n_arrived,
                       guint64 n_ended, guint64 n_jobs, gint64 now_usec);
/* Before anything else is written. */
void sim_progress_clear(SimProgress *progress);
