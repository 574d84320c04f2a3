/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the core tells of what it knows: records of jobs, tasks, guests and nodes, and what memory it takes for them.
 * Changes nothing. Why a task waits: look.c. */
#include "scheduler/core/core.h"

#include "scheduler/core/cells.h"
#include "scheduler/core/checkpoint.h"
#include "scheduler/core/depend.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/hold.h"
#include "scheduler/core/job.h"
#include "scheduler/core/look.h"
#include "scheduler/core/loss.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/order_tree.h"
#include "scheduler/core/owner.h"
#include "scheduler/core/plan.h"
#include "scheduler/core/predict.h"
#include "scheduler/core/relief.h"
#include "scheduler/core/shapes.h"
#include "scheduler/core/task.h"
gboolean berth_core_get_task(BerthCore *core, guint64 number, guint32 task, BerthCoreTask *out_task)
{
    const CoreJob *job = core_job_get(core, number);
    return job != NULL && core_job_get_record(job, task, out_task);
}

gboolean berth_core_get_job(BerthCore *core, guint64 number, BerthCoreJob *out_job)
{
    const CoreJob *job = core_job_get(core, number);
    if (job == NULL)
        return FALSE;
    const CoreShape *shape = &job->class->shape;
    *out_job = (BerthCoreJob){
        .id = number,
        .uid = core_owner_uid(shape->owner),
        .account = core_owner_account(shape->owner),
        .qos = shape->qos,
        .may_move = shape->may_move,
        .may_checkpoint = shape->may_checkpoint,
        .checkpoint_every_usec = job->checkpoint_every_usec,
        .checkpoint_signal_usec = job->checkpoint_signal_usec,
        .opportunistic = shape->opportunistic,
        .on_timeout = shape->on_timeout,
        .on_limit = shape->on_limit,
        .ceiling = {shape->ceiling_vcpus, shape->ceiling_memory_mib, 0},
        .family = job->name,
        .resources = {shape->size.vcpus, shape->memory_mib, job->disk_mib},
        .time_limit_usec = shape->time_limit_usec,
        .stop_grace_usec = job->stop_grace_usec,
        .priority = shape->priority,
        .no_requeue = job->no_requeue,
        .submit_usec = job->submit_usec,
        .nodes = shape->nodes,
        .n_nodes = shape->n_nodes,
        .guests = shape->guests,
        .array_size = job->array_size,
        .array_throttle = job->throttle,
    };
    core_hold_record(job, out_job);
    return TRUE;
}

gboolean berth_core_next_unstarted(BerthCore *core, guint64 number, guint32 from, guint32 *out_task)
{
    const CoreJob *job = core_job_get(core, number);
    return job != NULL && core_job_next_fresh(job, from, out_task);
}

void berth_core_get_space(BerthCore *core, BerthCoreSpace *out_space)
{
    *out_space = (BerthCoreSpace){
        .stored_mib = core->stored_mib - core->kept_mib,
        .kept_mib = core->kept_mib + core->space_mib,
        .left_mib = core_checkpoint_space_left_mib(core),
    };
}

gboolean berth_core_get_guest(BerthCore *core, guint64 number, guint32 index, guint32 guest_index,
                              BerthCoreGuest *out_guest)
{
    const CoreJob *job = core_job_get(core, number);
    const CoreTask *task = job != NULL ? core_job_task(job, index) : NULL;
    if (task == NULL || guest_index >= task->n_guests ||
        task->guests[guest_index].phase == BERTH_GUEST_NONE)
        return FALSE;
    const CoreGuest *guest = &task->guests[guest_index];
    gboolean is_resized = guest->op == BERTH_OP_RESIZING;
    gboolean has_goal = is_resized || guest->op == BERTH_OP_MIGRATING;
    static const BerthResources none = {0, 0, 0};
    *out_guest = (BerthCoreGuest){
        .id = core_guest_id(guest),
        .node = guest->node,
        .phase = guest->phase,
        .resources = core_guest_resources(guest),
        .old_resources = is_resized ? core_guest_resources_of(guest, guest->old_size) : none,
        .to_resources = has_goal ? core_guest_resources_of(guest, guest->goal) : none,
        .cells = guest->cells,
        .op = guest->op,
        .op_serial = guest->op_serial,
        .balloon_mib = guest->balloon_mib,
        .to_balloon_mib = guest->op == BERTH_OP_RESIZING ? guest->to_balloon_mib : 0,
        .op_usec = guest->op != BERTH_OP_NONE ? guest->op_usec : 0,
        .op_reason = guest->op != BERTH_OP_NONE ? guest->op_reason : BERTH_REASON_NONE,
        .to = guest->op == BERTH_OP_MIGRATING ? guest->to : 0,
        .is_opportunistic_there = guest->op == BERTH_OP_MIGRATING && guest->is_opportunistic_there,
        .waits_for_room = guest->waits_for_room,
        .is_opportunistic = guest->is_opportunistic,
        .is_frozen = guest->is_frozen,
        .predicted_milli = guest->needs.cpu_milli,
        .predicted_mib = guest->needs.memory_mib,
        .used_milli = guest->used.cpu_milli,
        .starved_permille = guest->starved_permille,
    };
    return TRUE;
}

gboolean berth_core_get_node(BerthCore *core, guint32 handle, BerthCoreNode *out_node)
{
    const CoreNode *node = core_nodes_get(&core->nodes, handle);
    if (node == NULL)
        return FALSE;
    *out_node = (BerthCoreNode){
        .handle = handle,
        .name = node->name,
        .state = node->state,
        .since_usec = node->since_usec,
        .capacity = node->capacity,
        .reserved = {.vcpus = node->reserved.vcpus, .memory_mib = node->reserved.memory_mib},
        .opportunistic = {.vcpus = node->slack.vcpus, .memory_mib = node->slack.memory_mib},
        .predicted_milli = core_predict_node(node).cpu_milli,
        .predicted_mib = core_predict_node(node).memory_mib,
        .extra_mib = node->extra_mib,
        .headroom_mib = core_relief_headroom_mib(core, node),
        .available_mib = node->available_mib,
        .ahead_mib = node->ahead_mib,
        .host_is_pressed = node->host_is_pressed,
        .used_milli = node->used.cpu_milli,
        .used_mib = node->used.memory_mib,
        .pressed_until_usec =
            node->pressed_until_usec > core->now_usec ? node->pressed_until_usec : 0,
        .is_short = node->is_short,
        .short_since_usec = node->short_since_usec,
        .admission = node->admission,
        .is_empty = core_node_is_empty(node),
        .cannot_start = node->cannot_start,
        .closed_until_usec = node->is_closed ? node->timer.due_usec : 0,
        .strays = node->n_strays,
        .is_oversubscribed = node->oversubscribed,
        .guests = node->guests->len,
    };
    return TRUE;
}

gint64 berth_core_planned_usec(BerthCore *core, guint64 job)
{
    return core_plan_start_of(core->plan, job);
}

guint32 berth_core_n_nodes(BerthCore *core)
{
    return core->nodes.nodes->len;
}

static gsize job_bytes(const CoreJob *job)
{
    guint32 n = job->n_tasks;
    gsize places =
        n > 1 ? (gsize)1 << g_bit_storage(n - 1) : n; /* job.c grows it to powers of two */
    gsize bytes = sizeof *job + places * sizeof job->tasks[0];
    if (job->fresh != NULL)
        bytes += sizeof(BerthIndexRange) * berth_index_set_n_ranges(job->fresh);
    bytes += core_depend_job_bytes(job) + core_hold_job_bytes(job);
    if (job->returned != NULL)
        bytes += sizeof *job->returned + job->returned->allocated * sizeof job->returned->links[0];
    for (guint32 i = 0; i < job->n_tasks; i++)
        bytes += sizeof(CoreTask) + job->tasks[i]->n_guests * sizeof(CoreGuest) +
                 core_loss_bytes(job->tasks[i]->loss) + core_loss_bytes(job->tasks[i]->saving_loss);
    return bytes;
}

static gsize node_bytes(const CoreNode *node)
{
    return sizeof *node + node->guests->len * sizeof(gpointer) +
           node->steps->len * sizeof(CoreStep) + core_cells_bytes(node);
}

gsize berth_core_memory_bytes(BerthCore *core)
{
    gsize bytes = sizeof *core + core_plan_bytes(core->plan) + core_shapes_bytes(core->shapes) +
                  core_owners_bytes(core) + core_depends_bytes(core) + core_predict_bytes(core);
    GHashTableIter iter;
    gpointer key;
    g_hash_table_iter_init(&iter, core->jobs);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        bytes += job_bytes(key) + CORE_SET_ENTRY_BYTES;
    g_hash_table_iter_init(&iter, core->classes);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        const CoreClass *class = key;
        bytes += sizeof *class + core_order_tree_bytes(class) +
                 class->waiting.allocated * sizeof(gpointer) +
                 class->shape.n_nodes * sizeof(guint32) + CORE_SET_ENTRY_BYTES;
    }
    for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++)
        bytes += node_bytes(core_nodes_get(&core->nodes, handle)) + CORE_SET_ENTRY_BYTES;
    return bytes + 2 * core->nodes.width * (sizeof(CoreSpan) + sizeof(CoreSlack)) +
           core->nodes.changes->len * sizeof(guint32);
}
