/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* How far something long has come, as one line of a terminal at standard error that is written over.
 * Nothing is printed where standard error is none, or of less than BERTH_PROGRESS_MIN_BYTES. */

#define BERTH_PROGRESS_MIN_BYTES (G_GUINT64_CONSTANT(64) << 20)

typedef struct {
    const char *verb; /* "sending" */
    const char *path;
    guint64 total_bytes;
    gboolean is_on;
    gint64 shown_usec; /* when the line was written last; 0 = not yet */
} BerthProgress;

/* VERB and PATH must outlive it. */
void berth_progress_begin(BerthProgress *progress, const char *verb, const char *path,
                          guint64 total_bytes);
/* The line itself, for a terminal of WIDTH columns (0: as long as it is): a long path is shortened in its
 * middle, so that it is one line wherever the rest of it is. (transfer full) */
char *berth_progress_line(const BerthProgress *progress, guint64 done_bytes, guint width);
void berth_progress_update(BerthProgress *progress, guint64 done_bytes);
/* Removes the line. */
void berth_progress_end(BerthProgress *progress);
