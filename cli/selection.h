/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

/* Jobs that are not named one by one: all of a user's that have not ended, or those of them with a name. */

typedef struct {
    gboolean all;
    char *user; /* whose; NULL = who asks */
    char *name; /* of the job; NULL = any */
} BerthSelection;
void berth_selection_clear(BerthSelection *selection);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BerthSelection, berth_selection_clear)

/* Its entries among a verb's options. */
#define BERTH_CLI_SELECTION(selection)                                                             \
    {"all", 'a', 0, G_OPTION_ARG_NONE, &(selection)->all, "All of your jobs that have not ended",  \
     NULL},                                                                                        \
        {"user", 'u', 0, G_OPTION_ARG_STRING, &(selection)->user, "Those of this user", "NAME"},   \
    {                                                                                              \
        "name", 'n', 0, G_OPTION_ARG_STRING, &(selection)->name, "Those of this name", "NAME"      \
    }

gboolean berth_selection_is_made(const BerthSelection *selection);
/* The request for JOB, as a list has it, which stays valid until it is called again. NULL: there is nothing to ask of that job. */
typedef const ProtobufCMessage *(*BerthSelectionFill)(const Berth__Job *job, gpointer user_data);
/* Asks METHOD of Jobs of each, many at a time. Each refusal is printed, but that there is nothing to be done any more; *OUT_N: that were done.
 * FALSE: not all were asked. */
gboolean berth_selection_ask(BerthCli *cli, const BerthSelection *selection, const char *method,
                             BerthSelectionFill fill, gpointer user_data, guint64 *out_n,
                             int *out_status, GError **error);
