/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way back from the store. What is put back is taken as it is; a record that contradicts
 * its node (a guest being fenced on a node that is not lost) is led to where both agree. */
#include "scheduler/core/charge.h"
#include "scheduler/core/checkpoint.h"
#include "scheduler/core/core.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/entry.h"
#include "scheduler/core/freeze.h"
#include "scheduler/core/job.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/order.h"
#include "scheduler/core/owner.h"
#include "scheduler/core/predict.h"
#include "scheduler/core/room.h"
#include "scheduler/core/rounds.h"
#include "scheduler/core/sessions.h"
#include "scheduler/core/task.h"
#include "scheduler/core/task_steps.h"
#include "scheduler/core/timers.h"

void berth_core_restore_node(BerthCore *core, guint32 handle, BerthNodeState state,
                             gint64 since_usec, BerthNodeAdmission admission,
                             const BerthCoreNodeInfo *info)
{
    CoreNode *node = core_nodes_get(&core->nodes, handle);
    g_return_if_fail(node != NULL);
    node->state = state;
    node->since_usec = since_usec;
    node->admission = admission;
    if (info != NULL) {
        core_nodes_set_info(&core->nodes, node, info);
        node->has_joined = TRUE;
    }
}

/* The first guest stands where its task says; the others of a gang are told one by one. */
static void restore_guest(BerthCore *core, CoreGuest *guest, guint32 handle, BerthGuestPhase phase,
                          const BerthResources *resources)
{
    CoreNode *node = core_nodes_get(&core->nodes, handle);
    guest->has_left = phase == BERTH_GUEST_FENCING; /* or may have: nobody knows any more */
    if (guest->has_left && !core->config.can_fence) {
        guest->has_left = FALSE;
        phase = guest->task->record.phase = BERTH_GUEST_RELEASING;
    }
    if (guest->phase != BERTH_GUEST_NONE)
        core_nodes_unreserve(&core->nodes, core_nodes_get(&core->nodes, guest->node), guest);
    guest->size =
        resources->vcpus > 0 ? core_size_of(core, resources) : guest->task->job->class->shape.size;
    guest->phase = phase;
    core_predict_restore(core, guest);
    core_checkpoint_count_slack(core, guest);
    if (phase != BERTH_GUEST_NONE)
        core_nodes_reserve(&core->nodes, node, guest);
}

void berth_core_restore_guest(BerthCore *core, const BerthCoreGuest *source)
{
    CoreGuest *guest = core_guest_get(core, &source->id);
    g_return_if_fail(guest != NULL && core_nodes_get(&core->nodes, source->node) != NULL);
    core_move_unreopen(core, guest);
    restore_guest(core, guest, source->node, source->phase, &source->resources);
    if (guest->phase == BERTH_GUEST_NONE)
        return;
    CoreNode *node = core_nodes_get(&core->nodes, guest->node);
    core_nodes_unreserve(&core->nodes, node, guest);
    guest->cells = source->is_opportunistic ? 0 : source->cells;
    guest->is_opportunistic = source->is_opportunistic;
    guest->is_frozen = source->is_frozen;
    guest->balloon_mib = source->balloon_mib;
    core_predict_restore(core, guest);
    core_checkpoint_count_slack(core, guest);
    core_nodes_reserve(&core->nodes, node, guest);
    core_move_restore(core, guest, source);
    core_owner_recount(core, guest->task);
}

static void restore_slack(CoreGuest *guest, const BerthCoreTask *source)
{
    guest->is_opportunistic = source->is_opportunistic;
    guest->balloon_mib = guest->to_balloon_mib = source->balloon_mib;
}

static void restore_task(BerthCore *core, CoreJob *job, const BerthCoreTask *source)
{
    CoreTask *task = core_job_add_task(job, source->task);
    task->record = *source;
    task->record.job = job->id;
    core_checkpoint_restored(core, task);
    if (source->phase != BERTH_GUEST_NONE) {
        if (task->n_guests == 1)
            restore_slack(&task->guests[0], source);
        for (guint32 i = 0; i < task->n_guests; i++)
            restore_guest(core, &task->guests[i], source->node, source->phase, &source->resources);
        task->guests[0].is_frozen =
            source->state == BERTH_JOB_SUSPENDED && source->phase == BERTH_GUEST_RUNNING;
        if (source->freeze_is_open && source->phase == BERTH_GUEST_RUNNING)
            core_freeze_reopen(&task->guests[0]);
        if (source->migrate_to != 0 || source->resize_to.vcpus > 0)
            core_move_reopen(core, &task->guests[0], source);
        if (source->checkpoint_open != 0 && source->phase <= BERTH_GUEST_STOPPING)
            core_move_reopen_checkpoint(core, &task->guests[0]);
        core_charge_restored(task);
        core_task_restored(core, task);
        core_checkpoint_arm(core, task);
    } else if (berth_job_state_is_final(source->state)) {
        core_task_over(core, task);
    } else {
        /* From a checkpoint it will go on with what it needed. */
        task->guests[0].size = core_job_start_size(core, job, task);
        core_predict_restore(core, &task->guests[0]);
        if (source->state == BERTH_JOB_PENDING)
            core_task_wait(core, task);
    }
}

/* It is as it was when it was submitted, and needs no record of its own. */
static gboolean is_fresh(const BerthCoreJob *source, const BerthCoreTask *tasks, gsize n_tasks)
{
    return !source->has_indices && source->array_size <= 1 && n_tasks == 1 &&
           tasks[0].state == BERTH_JOB_PENDING && tasks[0].epoch == 0;
}

void berth_core_restore_job(BerthCore *core, const BerthCoreJob *source, const BerthCoreTask *tasks,
                            gsize n_tasks)
{
    g_return_if_fail(n_tasks <= MAX(source->array_size, 1) &&
                     core_job_get(core, source->id) == NULL);
    g_return_if_fail(core_job_check_indices(source));
    for (gsize i = 0; i < source->n_nodes; i++)
        g_return_if_fail(core_nodes_get(&core->nodes, source->nodes[i]) != NULL);
    for (gsize i = 0; i < n_tasks; i++)
        g_return_if_fail(tasks[i].phase == BERTH_GUEST_NONE ||
                         core_nodes_get(&core->nodes, tasks[i].node) != NULL);
    core_owner_add_job(core_owner_of_user(core, source->account, source->uid));
    CoreJob *job = core_job_add(core, source, TRUE);
    if (is_fresh(source, tasks, n_tasks))
        n_tasks = 0;
    for (gsize i = 0; i < n_tasks; i++)
        restore_task(core, job, &tasks[i]);
    /* Where nobody says which have never started, they are those behind the last that has. */
    if (!source->has_indices && n_tasks > 0)
        core_job_take_fresh(job, (BerthIndexRange){0, tasks[n_tasks - 1].task, 1});
    core_order_update(core, job);
}

/* What still boots was put back before it was known what time it is. */
static void plan_end_of_starting(BerthCore *core, const CoreGuest *guest)
{
    CoreTask *task = guest->task;
    if (guest->index == 0 && task->record.phase == BERTH_GUEST_STARTING)
        core_step_plan_end(core, task, core->now_usec);
}

static void resume_node(BerthCore *core, CoreNode *node)
{
    node->oversubscribed = !core_size_fits(node->reserved, core_node_capacity(node));
    core_nodes_fresh(&core->nodes, node);
    for (guint i = 0; i < node->guests->len; i++) {
        CoreGuest *guest = g_ptr_array_index(node->guests, i);
        core_predict_resume(core, guest);
        core_move_resume(core, guest);
        if (guest->has_left)
            core_step_fence(core, guest);
        plan_end_of_starting(core, guest);
    }
    if (node->state == BERTH_NODE_LOST) {
        core_room_forsake(core, node);
        core_session_give_up_guests(core, node);
        return;
    }
    if (node->state == BERTH_NODE_UP) {
        node->state = BERTH_NODE_DOWN;
        node->since_usec = core->now_usec;
        core_emit_node(core, node);
    }
    core_nodes_changed(&core->nodes, node);
    if (node->admission == BERTH_ADMISSION_DRAINING)
        core_arm_round_for_drain(core);
    if (node->has_joined)
        core_timer_set(core, &node->timer,
                       core_time_add(core->now_usec, core->config.node_timeout_usec));
}

void berth_core_resume(BerthCore *core, gint64 now_usec, BerthCoreEffects *effects)
{
    core_event_begin(core, now_usec, effects);
    core->resumed_usec = core->now_usec;
    core->pass_wanted = core->full_pass_wanted = TRUE;
    core_owners_resume(core);
    for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++)
        resume_node(core, core_nodes_get(&core->nodes, handle));
    core_arm_round(core);
    core_event_end(core);
}
