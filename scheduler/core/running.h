/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/error.h"
#include "scheduler/core/requests.h"

/* Which guest somebody means who wants something done to a running job, and whether that can be begun now.
 * WHAT is what it cannot be where it is refused: "moved". */

/* The guest of the job that is asked for; of an array, of these tasks the only one that has any.
 * NULL: ERROR says why there is none. */
CoreGuest *core_running_get(BerthCore *core, const CoreAsk *ask, const char *what, GError **error);
/* It runs, on a node that is reached, and nothing is being done to it. */
gboolean core_running_is_at_rest(const BerthCore *core, const CoreGuest *guest, const char *what,
                                 GError **error);
/* FALSE, with ERROR: "job JOB" and what the format says. */
gboolean core_refuse(GError **error, BerthErrorCode code, guint64 job, const char *format, ...)
    G_GNUC_PRINTF(4, 5);
