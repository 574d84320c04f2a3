/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs a log of the core (scheduler/core/journal.h) again, and compares decisions. */

#include <glib.h>

typedef struct {
    guint64 n_events, n_actions; /* in the log */
    guint64 n_different;         /* events after which other actions were asked for */
} SimReplay;

/* TELL gets a line of text for each of the first differences: where, what the log has, what the core
 * does now. Errors: of the file; INVALID_ARGUMENT "FILE:LINE: why". */
gboolean sim_replay_run(const char *path, void (*tell)(const char *text, gpointer user_data),
                        gpointer user_data, SimReplay *out_replay, GError **error);
