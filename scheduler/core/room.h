/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* Who waits for room: a backed guest whose START, RESTORE, MIGRATE or RESIZE leaves when guests in slack have made room
 * for it in the memory of a node, and not before. */

/* GUEST does so from now on, for the evacuation bound at most: then it is given up. What it is to take there is counted
 * there already; its OP, if it does not start, has begun but for that. */
void core_room_await(BerthCore *core, CoreGuest *guest);
/* FALSE: it did not. */
gboolean core_room_await_no_more(BerthCore *core, CoreGuest *guest);
/* It was put back waiting: it may wait for the bound again. */
void core_room_resume(BerthCore *core, CoreGuest *guest);
/* In whose memory GUEST, which waits, is to have it, and how much (MiB, overhead included). */
CoreNode *core_room_node(const BerthCore *core, const CoreGuest *guest);
guint64 core_room_need_mib(const BerthCore *core, const CoreGuest *guest);
/* CoreGuest that wait on NODE, who has waited longest first. (transfer full) */
GPtrArray *core_room_waiting_on(const CoreNode *node);
/* GUEST has its room: what waited for that leaves. */
void core_room_let_in(BerthCore *core, CoreGuest *guest);
/* The timer of GUEST is due. */
void core_room_due(BerthCore *core, CoreGuest *guest);
/* Starts and moves that wait for room on NODE are given up: it is not to have them any more. */
void core_room_forsake(BerthCore *core, CoreNode *node);
/* Something that was under way at NODE has ended, or is not to come. It is looked at before the event ends: ... */
void core_room_vacated(BerthCore *core, CoreNode *node);
/* ... by this. */
void core_room_serve(BerthCore *core);
/* There is something to be looked at; a pass that is wanted looks at it, too. */
gboolean core_room_is_vacated(BerthCore *core);
