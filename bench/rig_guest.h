/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Guests that are not there, as the agent's session (nodeagent/session.c) and its table of guests see them: what these
 * use of nodeagent/guest.h is defined here. */

#include "bench/rig.h"
#include "nodeagent/guest_table.h"

/* GUEST has news for the scheduler, which its node's session is to tell. */
typedef void (*RigGuestFunc)(BerthGuest *guest, gpointer user_data);

/* THREAD outlives it, and is the one that it is used in. It boots from now on. */
BerthGuest *rig_guest_new(RigThread *thread, const Berth__StartGuestRequest *request,
                          RigGuestFunc changed, gpointer user_data);
/* The scheduler seems not to have heard how it fares. */
void rig_guest_tell_again(BerthGuest *guest);
/* It is to be removed: if it has ended, that is stored, also where the answer which says so has not come yet. */
void rig_guest_released(BerthGuest *guest);
/* It ends by SIGTERM, if it has not ended. */
void rig_guest_stop(BerthGuest *guest);
/* Its time stands still, or goes on. FALSE: it has ended. */
gboolean rig_guest_freeze(BerthGuest *guest, gboolean freezes);
/* Measures it, if that is due within EARLY_USEC. */
void rig_guest_look(BerthGuest *guest, gint64 now_usec, const BerthPaceIntervals *intervals,
                    gint64 early_usec);
/* That its vCPUs use, in thousandths of one. */
guint32 rig_guest_cpu_milli(const BerthGuest *guest);
