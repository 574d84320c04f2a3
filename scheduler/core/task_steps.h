/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/outcome.h"
#include "scheduler/core/task.h"

/* Between the files of the task: steps that several transitions share, and those transitions that
 * have a file of their own. */

void core_step_finish(BerthCore *core, CoreTask *task, CoreOutcome outcome, gint64 end_usec);
void core_step_set_phase(BerthCore *core, CoreTask *task, BerthGuestPhase phase);
void core_step_update_phase(BerthCore *core, CoreTask *task);
/* Its START or RESTORE has not left, as it waits for room: nobody has it. (After a restart none waits for that.) */
gboolean core_step_is_unasked(const CoreGuest *guest);
/* RELEASE; of one that is unasked nothing is left at once. */
void core_step_release_guest(BerthCore *core, CoreGuest *guest);
void core_step_release(BerthCore *core, CoreTask *task);
void core_step_set_pending(BerthCore *core, CoreTask *task, BerthReason reason);
void core_step_requeue_or_fail(BerthCore *core, CoreTask *task, BerthReason reason);
/* Its guest in slack was ended by its node for those who are backed. That is no fault of it, nor of the node, and does not count among its
 * requeues: it cannot happen again, as it waits for a backed start. */
void core_step_crowded_out(BerthCore *core, CoreTask *task);
CoreNode *core_step_node_of(const BerthCore *core, const CoreGuest *guest);
void core_step_stop_now(BerthCore *core, CoreTask *task);
/* Its guests were just asked to end, or to be removed: they are thought to stay on if they do so for long. */
void core_step_expect_to_leave(BerthCore *core, CoreTask *task);
gboolean core_step_all_nodes_are_up(const BerthCore *core, const CoreTask *task);
void core_step_free_guest(BerthCore *core, CoreGuest *guest);
void core_step_fence(BerthCore *core, CoreGuest *guest);
void core_step_plan_end(BerthCore *core, CoreTask *task, gint64 start_usec);
void core_step_emit_start(BerthCore *core, const CoreGuest *guest);
/* A guest of TASK is gone: because it was to be stopped. Not if its time limit came while its node was
 * away, and nobody could tell it: it may have been dead for long before, and is taken as if it had been
 * given up at once. */
gboolean core_step_is_ended_by_stop(const CoreTask *task);
void core_step_end_by_stop(BerthCore *core, CoreTask *task, gint64 end_usec);

/* Its outcome is decided, and GUEST is not on its node any more, but may run somewhere else. */
void core_task_fence_left(BerthCore *core, CoreTask *task, CoreGuest *guest);

/* Transitions: task_ops.c, task_lost.c, and one of task.c. */
void core_on_migrated(BerthCore *core, CoreTask *task, CoreGuest *guest,
                      const CoreTaskInput *input);
void core_on_checkpointed(BerthCore *core, CoreTask *task, CoreGuest *guest,
                          const CoreTaskInput *input);
void core_on_resized(BerthCore *core, CoreTask *task, CoreGuest *guest, const CoreTaskInput *input);
void core_on_frozen(BerthCore *core, CoreTask *task, CoreGuest *guest, const CoreTaskInput *input);
void core_on_thawed(BerthCore *core, CoreTask *task, CoreGuest *guest, const CoreTaskInput *input);
void core_on_evict_starting(BerthCore *core, CoreTask *task, CoreGuest *guest,
                            const CoreTaskInput *input);
void core_on_no_room(BerthCore *core, CoreTask *task, CoreGuest *guest, const CoreTaskInput *input);
void core_on_found_alive(BerthCore *core, CoreTask *task, CoreGuest *guest,
                         const CoreTaskInput *input);
void core_on_found_starting(BerthCore *core, CoreTask *task, CoreGuest *guest,
                            const CoreTaskInput *input);
void core_on_missing_while_starting(BerthCore *core, CoreTask *task, CoreGuest *guest,
                                    const CoreTaskInput *input);
void core_on_missing(BerthCore *core, CoreTask *task, CoreGuest *guest, const CoreTaskInput *input);
void core_on_joined_while_removing(BerthCore *core, CoreTask *task, CoreGuest *guest,
                                   const CoreTaskInput *input);
void core_on_node_lost(BerthCore *core, CoreTask *task, CoreGuest *guest,
                       const CoreTaskInput *input);
void core_on_node_lost_while_removing(BerthCore *core, CoreTask *task, CoreGuest *guest,
                                      const CoreTaskInput *input);
void core_on_fenced(BerthCore *core, CoreTask *task, CoreGuest *guest, const CoreTaskInput *input);
void core_on_fence_failed(BerthCore *core, CoreTask *task, CoreGuest *guest,
                          const CoreTaskInput *input);
void core_on_fence_again(BerthCore *core, CoreTask *task, CoreGuest *guest,
                         const CoreTaskInput *input);
void core_on_gone(BerthCore *core, CoreTask *task, CoreGuest *guest, const CoreTaskInput *input);
