/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "proto/berth.pb-c.h"
#include "scheduler/core/core.h"

/* What is written into the event log for what came, what was decided and what changed. The
 * strings of OUT_EVENT are those of the arguments (transfer none). */

/* A person who asks for something. */
typedef struct {
    const char *user;
    const char *why; /* "" = not said */
} BerthAsker;

/* FALSE: this kind of event has no entry of its own. NODE: name of event->node. ASKER: NULL = nobody. */
gboolean berth_event_cause(const BerthCoreEvent *event, const char *node, const BerthAsker *asker,
                           Berth__Event *out_event);
/* Did a person ask for it? Such an event is logged also when it changed no task. */
/* An event of KIND is of one task, or of a range of them, and not of the job. */
gboolean berth_event_is_of_task(Berth__Event__Kind kind);
gboolean berth_event_is_request(BerthEventKind kind);
/* What a node says of a guest that is gone (DETAIL, or NULL), and what its console said last. (transfer full) */
char *berth_event_gone_text(const char *detail, const char *console_tail);
/* "2 vCPUs, 512M"; without what is 0. (transfer full) */
char *berth_event_size_text(const BerthResources *resources);
/* "every 00:30:00"; "never" for 0. (transfer full) */
char *berth_event_every_text(gint64 every_usec);
/* "tasks 1-3,7": FIRST and N_OTHERS further ranges, of which the last are left out where they are many. (transfer full) */
char *berth_event_tasks_text(const BerthIndexRange *first, const BerthIndexRange *others,
                             gsize n_others);
/* What a person asked for beside the kind of EVENT: to disk, to which checkpoint; "" = nothing. (transfer full) */
char *berth_event_request_text(const BerthCoreEvent *event);
/* FALSE: this kind of action has no entry of its own. TEXT: more of what is done. */
gboolean berth_event_action(const BerthCoreAction *action, const char *node, const char *text,
                            Berth__Event *out_event);
/* A FREEZE, THAW, MIGRATE, CHECKPOINT or RESIZE that has failed. */
void berth_event_op_failed(const BerthCoreAction *action, const char *node, const char *why,
                           Berth__Event *out_event);
void berth_event_task_state(const Berth__StoredTask *stored, Berth__Event *out_event);
/* USER has said what NODE is used for, and why. */
void berth_event_node_admission(const char *node, const Berth__NodeAdmission *admission,
                                Berth__Event *out_event);
/* KIND: an image of that NAME was imported, or removed, by USER. */
void berth_event_image(Berth__Event__Kind kind, const char *name, const char *user,
                       Berth__Event *out_event);
void berth_event_node_state(const char *name, BerthNodeState state, Berth__Event *out_event);
