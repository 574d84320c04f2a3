/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the progress line. */
#include "config.h"

#include "scheduler/sim/progress.h"

#include <stdio.h>
#include <unistd.h>

#define TERMINAL_PAUSE_USEC (G_USEC_PER_SEC / 2)
#define FILE_PAUSE_USEC     (10 * G_USEC_PER_SEC)

struct SimProgress {
    gboolean is_quiet, is_terminal, is_shown;
    gint64 next_usec;
};

SimProgress *sim_progress_new(gboolean quiet)
{
    SimProgress *progress = g_new0(SimProgress, 1);
    progress->is_quiet = quiet;
    progress->is_terminal = isatty(STDERR_FILENO);
    progress->next_usec =
        g_get_monotonic_time() + (progress->is_terminal ? TERMINAL_PAUSE_USEC : FILE_PAUSE_USEC);
    return progress;
}

void sim_progress_free(SimProgress *progress)
{
    if (progress == NULL)
        return;
    sim_progress_clear(progress);
    g_free(progress);
}

void sim_progress_tell(SimProgress *progress, const char *policy, guint64 n_arrived,
                       guint64 n_ended, guint64 n_jobs, gint64 now_usec)
{
    gint64 now = g_get_monotonic_time();
    if (progress->is_quiet || now < progress->next_usec)
        return;
    progress->next_usec = now + (progress->is_terminal ? TERMINAL_PAUSE_USEC : FILE_PAUSE_USEC);
    progress->is_shown = progress->is_terminal;
    fprintf(stderr,
            "%sberth-sim: %s: day %.1f, %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
            " jobs arrived, %" G_GUINT64_FORMAT " ended%s",
            progress->is_terminal ? "\r\033[K" : "", policy, (double)now_usec / 86400e6, n_arrived,
            n_jobs, n_ended, progress->is_terminal ? "" : "\n");
    fflush(stderr);
}

void sim_progress_clear(SimProgress *progress)
{
    if (progress->is_shown)
        fputs("\r\033[K", stderr);
    progress->is_shown = FALSE;
}
