/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What of its time limit a running task has used. */

/* Its command runs, from now on. */
void core_charge_begin(BerthCore *core, CoreTask *task);
/* TASK was put back from the store, with what it had lost then. */
void core_charge_restored(CoreTask *task);
/* GUEST lost LOST_USEC of the time since it was last charged. */
void core_charge_report(BerthCore *core, CoreGuest *guest, gint64 lost_usec);
/* No report has come since: what GUEST lost since the last goes on as it was. */
void core_charge_until_now(BerthCore *core, CoreGuest *guest);
/* GUEST stood still since FROM_USEC through no doing of its own. */
void core_charge_pause(BerthCore *core, CoreGuest *guest, gint64 from_usec);
/* What TASK has used of its time limit up to AT_USEC, which is not before its latest report. */
gint64 core_charge_used_usec(const CoreTask *task, gint64 at_usec);
