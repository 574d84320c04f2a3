/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What of its time limit a running task has used. */

/* TASK goes, or runs anew: what is kept of its losses is freed. */
void core_charge_clear(CoreTask *task);
/* A checkpoint of TASK is asked for, or is not under way any more. */
void core_charge_saves(CoreTask *task);
/* Its command runs, from now on. */
void core_charge_begin(BerthCore *core, CoreTask *task);
/* TASK was put back from the store, with what it had lost then. */
void core_charge_restored(CoreTask *task);
/* GUEST lost LOST_USEC of the time since its previous report. */
void core_charge_report(BerthCore *core, CoreGuest *guest, gint64 lost_usec);
/* GUEST stood still since FROM_USEC through no doing of its own, and goes on. */
void core_charge_pause(BerthCore *core, CoreGuest *guest, gint64 from_usec);
/* Likewise, but since FROM_USEC, in which it was being saved, it told of losses of its own already. */
void core_charge_failed_save(BerthCore *core, CoreGuest *guest, gint64 from_usec);
/* GUEST stands still from now on, frozen; and no longer, and is or is not charged for that. */
void core_charge_frozen(BerthCore *core, CoreGuest *guest);
void core_charge_thawed(BerthCore *core, CoreGuest *guest, gboolean is_charged);
/* What GUEST lost up to AT_USEC says nothing of what it will lose where, and when, it goes on: nothing is
 * expected of that. What it is thought to have lost since its latest report is until the next. */
void core_charge_feed(CoreGuest *guest, gint64 at_usec);
/* When TASK comes to its time limit, if its guests go on to lose what they lost before their latest
 * reports; G_MAXINT64 while it is frozen and not charged for that. */
gint64 core_charge_end_usec(const BerthCore *core, const CoreTask *task);
/* Likewise, if they lose nothing more. */
gint64 core_charge_known_end_usec(const BerthCore *core, const CoreTask *task);
/* That may have changed: so may when TASK is thought to leave, and its timer. */
void core_charge_plan(BerthCore *core, CoreTask *task);
/* What TASK has used of its time limit up to AT_USEC, which is not before the checkpoint under way, nor, without one, before its
 * latest report. */
gint64 core_charge_used_usec(const CoreTask *task, gint64 at_usec);
