/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the line that shows progress. */
#include "cli/progress.h"

#include "cli/table.h"

#include <stdio.h>
#include <unistd.h>

#define INTERVAL_USEC (G_USEC_PER_SEC / 5)
#define CLEAR_LINE    "\r\033[K"
#define PATH_MIN      8u /* columns */

void berth_progress_begin(BerthProgress *progress, const char *verb, const char *path,
                          guint64 total_bytes)
{
    *progress = (BerthProgress){.verb = verb, .path = path, .total_bytes = total_bytes};
    progress->is_on = total_bytes >= BERTH_PROGRESS_MIN_BYTES && isatty(STDERR_FILENO);
}

char *berth_progress_line(const BerthProgress *progress, guint64 done_bytes, guint width)
{
    guint64 done_mib = done_bytes >> 20;
    guint64 total_mib = progress->total_bytes >> 20;
    g_autofree char *path = berth_printable(progress->path);
    g_autofree char *before = g_strdup_printf("%s: %s \"", g_get_prgname(), progress->verb);
    g_autofree char *after = g_strdup_printf(
        "\": %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " MiB (%" G_GUINT64_FORMAT "%%)",
        done_mib, total_mib, MIN(done_mib * 100 / total_mib, 100));
    /* In the last column some terminals begin the next line. */
    guint taken = berth_text_width(before) + berth_text_width(after) + 1;
    guint room = width == 0 ? G_MAXUINT : MAX(width, taken + PATH_MIN) - taken;
    g_autofree char *shown = berth_shorten_middle(path, room);
    return g_strconcat(before, shown, after, NULL);
}

void berth_progress_update(BerthProgress *progress, guint64 done_bytes)
{
    gint64 now_usec = g_get_monotonic_time();
    if (!progress->is_on ||
        (progress->shown_usec != 0 && now_usec - progress->shown_usec < INTERVAL_USEC))
        return;
    g_autofree char *line = berth_progress_line(progress, done_bytes, berth_terminal_width(stderr));
    fprintf(stderr, CLEAR_LINE "%s", line);
    progress->shown_usec = now_usec;
}

void berth_progress_end(BerthProgress *progress)
{
    if (progress->shown_usec != 0)
        fputs(CLEAR_LINE, stderr);
    progress->is_on = FALSE;
}
