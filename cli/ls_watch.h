/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

/* A list that is shown anew when events say that it may be another one: at most once a second, and the less often the longer an answer
 * takes. */
typedef struct {
    /* Its lines (char *), for a terminal of WIDTH columns; 0 = of any length. *OUT_IS_LAST: it will not change any more.
     * (transfer full) */
    GPtrArray *(*list)(guint width, gboolean *out_is_last, gpointer user_data, GError **error);
    /* May it be another one after EVENT? */
    gboolean (*concerns)(const Berth__Event *event, gpointer user_data);
    const GArray *jobs; /* guint64: it has these alone; NULL = any */
    gpointer user_data;
} BerthWatchedList;

/* On a terminal draws it over the one before, until q is pressed; else prints one after the other, with the time before each. A signal ends
 * this program, with its terminal as it was. A daemon that is restarted is waited for. */
gboolean berth_ls_watch(BerthCli *cli, const BerthWatchedList *watched, GError **error);
