/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what records and events say of decisions for people: the latest move, why there is no checkpoint, that
 * a job is short of memory, and how a guest is where it goes. Pure but for the record that it is told to change. */
#include "config.h"

#include "scheduler/daemon/told.h"

#include "common/units.h"
#include "scheduler/daemon/event_log.h"

/* --- the latest move -------------------------------------------------------------------------- */

static void set_move(Berth__Task *record, const Berth__Move *move)
{
    Berth__Move *copy = berth_pb_dup(&move->base);
    if (record->moved)
        berth__move__free_unpacked(record->moved, NULL);
    record->moved = copy;
}

static void note_move(Berth__Task *record, const char *to, Berth__Reason reason, gint64 now_usec)
{
    Berth__Move move = BERTH__MOVE__INIT;
    move.from = record->node;
    move.to = (char *)to;
    move.reason = reason;
    move.time_usec = (guint64)now_usec;
    set_move(record, &move);
}

/* The latest start of it has failed. */
static gboolean is_tried_again(const Berth__StoredTask *stored)
{
    return stored->start_failures > 0 ||
           stored->task->reason == BERTH__REASON__REASON_STARTING_LATER;
}

/* One that is tried again, elsewhere perhaps, was never where it did not start, and is put back for the same reason. */
static void note_restore(Berth__StoredTask *stored, const char *to, gint64 now_usec)
{
    const Berth__Move *before = stored->task->moved;
    Berth__Move move = BERTH__MOVE__INIT;
    gboolean is_again = is_tried_again(stored) && before && before->from_checkpoint;
    move.from = is_again ? before->from : stored->task->node;
    move.to = (char *)to;
    move.reason = is_again ? before->reason : stored->task->reason;
    move.time_usec = (guint64)now_usec;
    move.from_checkpoint = TRUE;
    set_move(stored->task, &move);
}

/* One that begins anew was never moved. */
static void take_move(Berth__StoredTask *stored, const BerthCoreTask *task, const char *node,
                      gint64 now_usec)
{
    Berth__Task *record = stored->task;
    if (task->epoch > record->epoch && task->checkpoint_epoch != 0) {
        note_restore(stored, node, now_usec);
    } else if (task->epoch > record->epoch && record->moved) {
        berth__move__free_unpacked(record->moved, NULL);
        record->moved = NULL;
    } else if (task->epoch == record->epoch && task->node != 0 && record->migration &&
               g_str_equal(node, record->migration->to)) {
        note_move(record, node, record->migration->reason, now_usec);
    }
}

/* --- memory ----------------------------------------------------------------------------------- */

/* Told once for each size that it has, however often it stalls with that. */
static gboolean take_short(BerthTaskEntry *entry, const BerthCoreTask *task, guint64 memory_mib)
{
    Berth__StoredTask *stored = entry->stored;
    if (task->epoch > stored->task->epoch)
        stored->short_told_mib = 0;
    gboolean is_news = task->short_usec != 0 && stored->task->short_usec == 0 &&
                       stored->short_told_mib != memory_mib;
    stored->task->short_usec = (guint64)task->short_usec;
    if (is_news)
        stored->short_told_mib = memory_mib;
    return is_news;
}

char *berth_told_short(const Berth__Job *job, const Berth__Task *task)
{
    guint64 has_mib = task->memory_mib != 0 ? task->memory_mib : job->memory_mib;
    guint64 most_mib = MAX(job->memory_max_mib, job->memory_mib);
    g_autofree char *has = berth_format_size_mib(has_mib);
    g_autofree char *most = berth_format_size_mib(most_mib);
    if (has_mib >= most_mib)
        return g_strdup_printf("its %s of memory are too little, and all that it may have "
                               "(--memory-max): it goes on, slowly",
                               has);
    return g_strdup_printf(
        "its %s of memory are too little; of the %s that it may have there is no "
        "room for more where it is, nor on another node that it could be moved "
        "to: it goes on, slowly, and is grown as soon as there is",
        has, most);
}

/* --- the end of the time limit ---------------------------------------------------------------- */

void berth_told_unsaved(BerthTaskEntry *entry, const char *why)
{
    berth_pb_set_string(&entry->stored->task->unsaved_text, why);
}

static void take_unsaved(BerthTaskEntry *entry, const BerthCoreTask *task, BerthNews *news)
{
    gboolean is_missed =
        task->checkpoint_missed_usec > (gint64)entry->stored->checkpoint_missed_usec;
    gboolean is_at_end = task->stop_reason == BERTH_REASON_TIME_LIMIT;
    news->is_drain_missed = task->drain_missed_usec > (gint64)entry->stored->drain_missed_usec;
    news->is_unsaved = is_missed && is_at_end;
    if (is_missed && !is_at_end && entry->stored->freeze_to_disk && !task->freeze_to_disk)
        news->not_to_disk = task->freeze_reason;
    news->is_missed = is_missed && !is_at_end && news->not_to_disk == BERTH_REASON_NONE;
    if (news->is_unsaved)
        berth_told_unsaved(entry, "there was not so much space left for checkpoints "
                                  "(checkpoint_space_mib, checkpoint_room_permille of berthd.conf; "
                                  "berth checkpoint rm makes "
                                  "room)");
    else if (*entry->stored->task->unsaved_text && !is_at_end &&
             !berth_job_state_is_final(task->state))
        berth_told_unsaved(entry, NULL);
}

void berth_told_take(const Berth__Job *job, BerthTaskEntry *entry, const BerthCoreTask *task,
                     const char *node, gint64 now_usec, BerthNews *out_news)
{
    guint64 has_mib = task->resources.memory_mib;
    *out_news = (BerthNews){0};
    take_move(entry->stored, task, node, now_usec);
    take_unsaved(entry, task, out_news);
    out_news->is_short = take_short(entry, task, has_mib != 0 ? has_mib : job->memory_mib);
}

/* --- places ----------------------------------------------------------------------------------- */

static char *backed_text(const BerthCoreNode *node)
{
    guint32 vcpus = node->capacity.vcpus - MIN(node->capacity.vcpus, node->reserved.vcpus);
    guint64 mib =
        node->capacity.memory_mib - MIN(node->capacity.memory_mib, node->reserved.memory_mib);
    g_autofree char *memory = berth_format_size_mib(mib);
    return g_strdup_printf("backed: all that it reserves is kept for it; %u vCPU%s and %s of the "
                           "node are not reserved yet",
                           vcpus, vcpus == 1 ? "" : "s", memory);
}

static char *slack_text(const BerthCoreNode *node)
{
    g_autofree char *memory = berth_format_size_mib(node->predicted_mib);
    g_autofree char *all = berth_format_size_mib(node->capacity.memory_mib);
    return g_strdup_printf("in slack: all guests there, with it, are predicted to need %.1f of "
                           "%u vCPUs and %s of %s",
                           node->predicted_milli / 1000.0, node->capacity.vcpus, memory, all);
}

char *berth_told_place(BerthCore *core, const BerthCoreAction *action)
{
    BerthCoreNode node;
    gboolean moves = action->kind == BERTH_ACTION_MIGRATE;
    if ((!moves && action->kind != BERTH_ACTION_START && action->kind != BERTH_ACTION_RESTORE) ||
        !berth_core_get_node(core, moves ? action->to : action->node, &node))
        return g_strdup("");
    return action->is_opportunistic ? slack_text(&node) : backed_text(&node);
}
