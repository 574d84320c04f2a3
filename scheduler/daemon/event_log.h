/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "proto/berth.pb-c.h"
#include "scheduler/core/core.h"

/* What is written into the event log for what came, what was decided and what changed. The
 * strings of OUT_EVENT are those of the arguments (transfer none). */

/* FALSE: this kind of event has no entry of its own. NODE: name of event->node. */
gboolean berth_event_cause(const BerthCoreEvent *event, const char *node, const char *user,
                           Berth__Event *out_event);
/* Did a person ask for it? Such an event is logged also when it changed no task. */
gboolean berth_event_is_request(BerthEventKind kind);
/* What a node says of a guest that is gone (DETAIL, or NULL), and what its console said last. (transfer full) */
char *berth_event_gone_text(const char *detail, const char *console_tail);
/* FALSE: this kind of action has no entry of its own. */
gboolean berth_event_action(const BerthCoreAction *action, const char *node,
                            Berth__Event *out_event);
/* A FREEZE or THAW that was refused. */
void berth_event_freeze_failed(const BerthCoreAction *action, const char *node, const char *why,
                               Berth__Event *out_event);
void berth_event_task_state(const Berth__StoredTask *stored, Berth__Event *out_event);
/* USER has said what NODE is used for, and why. */
void berth_event_node_admission(const char *node, const Berth__NodeAdmission *admission,
                                Berth__Event *out_event);
/* KIND: an image of that NAME was imported, or removed, by USER. */
void berth_event_image(Berth__Event__Kind kind, const char *name, const char *user,
                       Berth__Event *out_event);
void berth_event_node_state(const char *name, BerthNodeState state, Berth__Event *out_event);
