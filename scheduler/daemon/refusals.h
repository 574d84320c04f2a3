/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Requests of people that are refused, about a job or a node that there is: who, when, what and why not. */

/* So many of one user's are written in so long a time; of the others there is a number alone. */
#define BERTH_REFUSALS_MAX         20u
#define BERTH_REFUSALS_WINDOW_USEC (60 * G_USEC_PER_SEC)

BerthRefusals *berth_refusals_new(BerthDaemon *daemon);
void berth_refusals_free(BerthRefusals *refusals);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthRefusals, berth_refusals_free)

/* A request of UID is refused at NOW_USEC (monotonic). FALSE: it is only counted. *OUT_UNTOLD: so many were only
 * counted before it. */
gboolean berth_refusals_count(BerthRefusals *refusals, guint32 uid, gint64 now_usec,
                              guint32 *out_untold);

/* Ends CALL with ERROR, after the commit of what says so. WANTED (transfer none, as ERROR) is the event that there
 * would be if it were not refused: its kind, and job or node, text and why. */
void berth_refuse(BerthRefusals *refusals, BerthRpcCall *call, const Berth__Event *wanted,
                  const GError *error);
