/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what becomes of a checkpoint that was under way when its guest was lost: whether it is in storage is looked at when
 * the guest's node can write nothing of it any more, which is after it was fenced or has said that it is released.
 *
 * Invariant: as long as a task's record names it, neither it nor its disk is garbage. */
#include "config.h"

#include "scheduler/daemon/checkpoint_doubt.h"

#include "common/error.h"
#include "common/id.h"
#include "scheduler/daemon/checkpoints.h"

/* FALSE: what was asked about is settled. */
static gboolean find_doubted(BerthDaemon *daemon, const BerthGuestId *guest,
                             BerthCoreTask *out_task)
{
    return berth_core_get_task(daemon->core, guest->job, guest->task, out_task) &&
           !berth_job_state_is_final(out_task->state) && out_task->epoch == guest->epoch &&
           out_task->checkpoint_doubted != 0;
}

gboolean berth_checkpoint_is_known(BerthDaemon *daemon, const BerthGuestId *guest)
{
    BerthCoreTask task;
    return berth_core_get_task(daemon->core, guest->job, guest->task, &task) &&
           task.checkpoint_epoch != 0 && !berth_job_state_is_final(task.state);
}

char *berth_checkpoint_doubted(BerthDaemon *daemon, const BerthGuestId *guest)
{
    BerthCoreTask task;
    return find_doubted(daemon, guest, &task)
               ? berth_checkpoint_id_format(guest->job, guest->task, task.checkpoint_doubted)
               : NULL;
}

Berth__CheckpointRecord *berth_checkpoint_look(BerthStorage *storage, const char *checkpoint_id,
                                               GError **error)
{
    g_autoptr(GError) reason = NULL;
    Berth__CheckpointRecord *record = berth_checkpoint_record_read(storage, checkpoint_id, &reason);
    if (record == NULL && !g_error_matches(reason, BERTH_ERROR, BERTH_ERROR_DATA_LOSS))
        g_propagate_error(error, g_steal_pointer(&reason));
    return record;
}

static void take(BerthDaemon *daemon, BerthTurn *turn, const BerthCoreEvent *event,
                 const Berth__CheckpointRecord *record)
{
    const BerthGuestId *guest = &event->guest;
    BerthCoreTask task;
    if (!find_doubted(daemon, guest, &task))
        return;
    BerthCoreCheckpoint checkpoint = {task.checkpoint_doubted,
                                      guest->epoch,
                                      task.checkpoint_doubted_ran_usec,
                                      {record->vcpus, record->memory_mib, 0}};
    berth_checkpoints_found(daemon->checkpoints, turn, guest, event->node, &checkpoint,
                            record->taken);
}

void berth_checkpoint_tell(BerthDaemon *daemon, const BerthCoreEvent *event,
                           const Berth__CheckpointRecord *record)
{
    g_autoptr(GError) error = NULL;
    if (berth_engine_is_stopped(daemon->engine))
        return;
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    if (record)
        take(daemon, turn, event, record);
    if (!berth_turn_event(turn, event, NULL, &error))
        g_critical("the core refused that a guest is gone: %s", error->message);
    berth_turn_commit(turn);
}
