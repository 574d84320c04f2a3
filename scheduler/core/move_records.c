/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the record of a task says of that which is under way with its guest, and puts that back from it. */
#include "scheduler/core/moves.h"

#include "scheduler/core/checkpoint.h"
#include "scheduler/core/class.h"
#include "scheduler/core/job.h"
#include "scheduler/core/leaving.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/predict.h"
#include "scheduler/core/room.h"
#include "scheduler/core/task.h"

static BerthResources without_disk(const CoreGuest *guest, CoreSize size)
{
    BerthResources resources = core_guest_resources_of(guest, size);
    resources.disk_mib = 0;
    return resources;
}

/* That of a gang's guests is their job's. */
static void record_size(const CoreGuest *guest, BerthCoreTask *record)
{
    gboolean is_up = guest->phase != BERTH_GUEST_NONE && guest->task->n_guests == 1;
    gboolean is_open = is_up && guest->phase == BERTH_GUEST_RUNNING &&
                       (guest->op == BERTH_OP_RESIZING || guest->op == BERTH_OP_MIGRATING);
    CoreSize size = is_open && guest->op == BERTH_OP_RESIZING ? guest->old_size : guest->size;
    gboolean is_sized = is_up && !core_size_equal(size, guest->task->job->class->shape.size);
    gboolean is_resized =
        is_open && (guest->op == BERTH_OP_RESIZING || !core_size_equal(guest->goal, size));
    record->resources = is_sized ? without_disk(guest, size) : (BerthResources){0, 0, 0};
    record->resize_to = is_resized ? without_disk(guest, guest->goal) : (BerthResources){0, 0, 0};
    record->resize_reason = is_resized ? guest->op_reason : BERTH_REASON_NONE;
}

/* Likewise. */
static void record_slack(const CoreGuest *guest, BerthCoreTask *record)
{
    gboolean is_up = guest->phase != BERTH_GUEST_NONE && guest->task->n_guests == 1;
    gboolean moves = is_up && guest->op == BERTH_OP_MIGRATING;
    gboolean is_resized = is_up && guest->op == BERTH_OP_RESIZING;
    record->is_opportunistic = is_up && guest->is_opportunistic;
    record->is_opportunistic_there = moves && guest->is_opportunistic_there;
    record->balloon_mib = is_up ? guest->balloon_mib : 0;
    record->to_balloon_mib = is_resized ? guest->to_balloon_mib : record->balloon_mib;
}

void core_move_record(const CoreGuest *guest, BerthCoreTask *record)
{
    record_size(guest, record);
    record_slack(guest, record);
    gboolean moves = guest->phase != BERTH_GUEST_NONE && guest->op == BERTH_OP_MIGRATING;
    record->migrate_to = moves ? guest->to : 0;
    record->migrate_reason = moves ? guest->op_reason : BERTH_REASON_NONE;
    record->migrate_is_unwanted = moves && guest->is_unwanted;
    record->waits_for_room = guest->op != BERTH_OP_NONE && guest->waits_for_room;
}

CoreSize core_move_size_or(const BerthCore *core, const BerthResources *resources, CoreSize other)
{
    return resources->vcpus > 0 ? core_size_of(core, resources) : other;
}

/* Nobody was asked for what waited for room. */
static void reopen_wait(BerthCore *core, CoreGuest *guest, gboolean waits)
{
    if (waits && guest->phase == BERTH_GUEST_RUNNING &&
        guest->task->record.stop_reason == BERTH_REASON_NONE)
        core_room_await(core, guest);
    else if (core_move_is_counted(guest->op))
        core_move_count(core, guest, 1);
}

static void reopen_resize(BerthCore *core, CoreGuest *guest, const BerthCoreTask *record)
{
    if (guest->phase != BERTH_GUEST_RUNNING)
        return;
    guest->old_size = guest->size;
    guest->to_balloon_mib = record->to_balloon_mib;
    core_move_hold_size(core, guest, core_size_max(guest->size, guest->goal));
    if (guest->size.memory_mib > guest->old_size.memory_mib)
        core_predict_grows(core, guest);
    guest->op = BERTH_OP_RESIZING;
    guest->op_usec = 0;
    guest->op_reason = record->resize_reason;
    reopen_wait(core, guest, record->waits_for_room);
}

void core_move_reopen(BerthCore *core, CoreGuest *guest, const BerthCoreTask *record)
{
    CoreNode *to = core_nodes_get(&core->nodes, record->migrate_to);
    gboolean is_resized = record->resize_to.vcpus > 0;
    guest->goal = core_move_size_or(core, &record->resize_to, guest->size);
    if (record->migrate_to == 0 && is_resized)
        reopen_resize(core, guest, record);
    if (to == NULL || record->migrate_to == guest->node ||
        (guest->phase != BERTH_GUEST_RUNNING && guest->phase != BERTH_GUEST_STOPPING))
        return;
    guest->is_opportunistic_there = record->is_opportunistic_there && !is_resized;
    guest->to_size = core_size_max(guest->size, guest->goal);
    core_nodes_hold(&core->nodes, to, guest);
    guest->op = BERTH_OP_MIGRATING;
    guest->op_usec = 0;
    guest->op_reason = record->migrate_reason;
    guest->is_unwanted = record->migrate_is_unwanted;
    core_checkpoint_count_slack(core, guest);
    reopen_wait(core, guest, record->waits_for_room);
}

void core_move_reopen_checkpoint(BerthCore *core, CoreGuest *guest)
{
    guest->op = BERTH_OP_CHECKPOINTING;
    guest->op_usec = 0;
    guest->op_reason = guest->task->record.checkpoint_reason;
    core_move_count(core, guest, 1);
}

void core_move_unreopen(BerthCore *core, CoreGuest *guest)
{
    gboolean waited = core_room_await_no_more(core, guest);
    if (guest->op == BERTH_OP_MIGRATING)
        core_nodes_unhold(&core->nodes, core_nodes_get(&core->nodes, guest->to), guest);
    if (core_move_is_counted(guest->op) && !waited)
        core_move_count(core, guest, -1);
    if (core_move_is_counted(guest->op) || guest->op == BERTH_OP_RESIZING)
        guest->op = BERTH_OP_NONE;
    core_predict_grew(guest);
}

void core_move_restore(BerthCore *core, CoreGuest *guest, const BerthCoreGuest *source)
{
    guest->op_serial = source->op_serial;
    if (source->op == BERTH_OP_NONE || guest->phase > BERTH_GUEST_STOPPING)
        return;
    CoreNode *to = core_nodes_get(&core->nodes, source->to);
    if (source->op == BERTH_OP_MIGRATING && to == NULL)
        return;
    guest->is_opportunistic_there = source->is_opportunistic_there;
    guest->old_size = core_move_size_or(core, &source->old_resources, guest->size);
    guest->goal = core_move_size_or(core, &source->to_resources, guest->size);
    guest->to_size = core_size_max(guest->size, guest->goal);
    if (source->op == BERTH_OP_MIGRATING)
        core_nodes_hold(&core->nodes, to, guest);
    guest->op = source->op;
    guest->op_usec = source->op_usec;
    guest->op_reason = source->op_reason;
    guest->to_balloon_mib = source->to_balloon_mib;
    if (guest->op == BERTH_OP_RESIZING && guest->size.memory_mib > guest->old_size.memory_mib)
        core_predict_grows(core, guest);
    core_checkpoint_count_slack(core, guest);
    reopen_wait(core, guest, source->waits_for_room);
}

void core_move_resume(BerthCore *core, CoreGuest *guest)
{
    if (guest->op != BERTH_OP_NONE && guest->op_usec == 0)
        guest->op_usec = core->now_usec;
    core_room_resume(core, guest);
    core_leaving_begins(core, guest);
}
