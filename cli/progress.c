/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the line that shows progress. */
#include "cli/progress.h"

#include "cli/table.h"

#include <stdio.h>
#include <unistd.h>

#define INTERVAL_USEC (G_USEC_PER_SEC / 5)
#define CLEAR_LINE    "\r\033[K"

void berth_progress_begin(BerthProgress *progress, const char *verb, const char *path,
                          guint64 total_bytes)
{
    *progress = (BerthProgress){.verb = verb, .path = path, .total_bytes = total_bytes};
    progress->is_on = total_bytes >= BERTH_PROGRESS_MIN_BYTES && isatty(STDERR_FILENO);
}

void berth_progress_update(BerthProgress *progress, guint64 done_bytes)
{
    gint64 now_usec = g_get_monotonic_time();
    if (!progress->is_on ||
        (progress->shown_usec != 0 && now_usec - progress->shown_usec < INTERVAL_USEC))
        return;
    g_autofree char *path = berth_printable(progress->path);
    guint64 done_mib = done_bytes >> 20;
    guint64 total_mib = progress->total_bytes >> 20;
    fprintf(stderr,
            CLEAR_LINE "%s: %s \"%s\": %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                       " MiB (%" G_GUINT64_FORMAT "%%)",
            g_get_prgname(), progress->verb, path, done_mib, total_mib,
            MIN(done_mib * 100 / total_mib, 100));
    progress->shown_usec = now_usec;
}

void berth_progress_end(BerthProgress *progress)
{
    if (progress->shown_usec != 0)
        fputs(CLEAR_LINE, stderr);
    progress->is_on = FALSE;
}
