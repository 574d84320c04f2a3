/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what a turn writes of what the core has decided: the records of tasks, jobs and nodes, brought up
 * to what the core says, and the entries of the event log, each after what caused it.
 *
 * Invariant: a task whose record says that it has ended, and of which nothing is left to be done, is
 * written as finished with that record, and is in memory no more. */
#include "config.h"

#include "scheduler/daemon/turn_records.h"

#include "common/units.h"
#include "scheduler/daemon/event_log.h"
#include "scheduler/daemon/job_records.h"
#include "scheduler/daemon/job_requests.h"
#include "scheduler/daemon/learned.h"
#include "scheduler/daemon/pb.h"
#include "scheduler/daemon/records.h"
#include "scheduler/daemon/told.h"
#include "scheduler/daemon/turn_internal.h"

/* --- tasks ------------------------------------------------------------------------------------- */

static void log_task(BerthTurn *turn, const BerthTaskEntry *entry)
{
    Berth__Event event = BERTH__EVENT__INIT;
    berth_event_task_state(entry->stored, &event);
    berth_turn_log(turn, &event);
}

void berth_turn_put_task(BerthTurn *turn, guint64 job, guint32 task)
{
    BerthTaskEntry *entry = berth_job_table_find_task(turn->engine->jobs, job, task);
    g_return_if_fail(entry);
    berth_store_batch_put_task(turn->batch, entry->stored, FALSE);
}

static void log_output(BerthTurn *turn, const Berth__Task *task, const char *failure)
{
    Berth__Event event = BERTH__EVENT__INIT;
    event.kind = BERTH__EVENT__KIND__OUTPUT_COPIED;
    event.job = task->job;
    event.task = task->index;
    event.epoch = task->epoch;
    if (failure)
        event.text = (char *)failure;
    berth_turn_log(turn, &event);
}

static void put_job(BerthTurn *turn, const BerthJobEntry *job)
{
    g_autoptr(Berth__Job) record = berth_job_entry_record(job);
    berth_store_batch_update_job(turn->batch, record);
}

void berth_turn_output_copied(BerthTurn *turn, guint64 number, guint32 index, const char *failure)
{
    BerthEngine *engine = turn->engine;
    BerthTaskEntry *task = berth_job_table_find_task(engine->jobs, number, index);
    g_return_if_fail(task);
    task->wants_output = FALSE;
    Berth__StoredTask *stored = task->stored;
    stored->output_copied = TRUE;
    stored->task->output_pending = FALSE;
    log_output(turn, stored->task, failure);
    gboolean is_done = berth_job_state_is_final((BerthJobState)stored->task->state) &&
                       stored->phase == BERTH_GUEST_NONE;
    berth_store_batch_put_task(turn->batch, stored, is_done);
    if (is_done)
        berth_job_table_remove_task(engine->jobs, number, index);
}

/* Of TASK as it was before. */
static void log_missed(BerthTurn *turn, const Berth__Task *task, const BerthNews *news)
{
    if (news->is_missed)
        berth_turn_log_task(
            turn, task, BERTH__EVENT__KIND__GUEST_CHECKPOINT_FAILED,
            BERTH__REASON__REASON_CHECKPOINT_DUE,
            "it was due, and there is not so much space left for checkpoints "
            "(checkpoint_space_mib, checkpoint_room_permille of berthd.conf); it is tried "
            "again in its turn");
    if (news->not_to_disk != BERTH_REASON_NONE)
        berth_turn_log_task(
            turn, task, BERTH__EVENT__KIND__GUEST_CHECKPOINT_FAILED,
            (Berth__Reason)news->not_to_disk,
            "it was to be frozen to disk, and there is not so much space left for "
            "checkpoints (checkpoint_space_mib, checkpoint_room_permille of berthd.conf; "
            "berth checkpoint rm makes room): it is frozen in memory");
    if (news->is_drain_missed)
        berth_turn_log_task(
            turn, task, BERTH__EVENT__KIND__GUEST_CHECKPOINT_FAILED, BERTH__REASON__REASON_DRAIN,
            "its node is to be empty, there is no room for it elsewhere, and for a checkpoint "
            "there is not so much space left (checkpoint_space_mib, checkpoint_room_permille of "
            "berthd.conf; berth "
            "checkpoint rm makes room): it stays until there is either");
    if (news->is_unsaved)
        berth_turn_log_task(
            turn, task, BERTH__EVENT__KIND__GUEST_CHECKPOINT_FAILED,
            BERTH__REASON__REASON_TIME_LIMIT,
            "it was to be checkpointed at its time limit, and there is not so much space "
            "left for checkpoints (checkpoint_space_mib, checkpoint_room_permille of "
            "berthd.conf): it ends");
}

static void log_short(BerthTurn *turn, const BerthJobEntry *job, const Berth__Task *task)
{
    g_autofree char *text = berth_told_short(job->job, task);
    berth_turn_log_task(turn, task, BERTH__EVENT__KIND__GUEST_SHORT, BERTH__REASON__REASON_AT_LIMIT,
                        text);
}

/* Since when a task is being ended is nothing that the core needs to know. */
static void note_stop(const BerthEngine *engine, Berth__Task *record, const BerthCoreTask *task)
{
    if (task->stop_reason == BERTH_REASON_NONE || task->state != BERTH_JOB_RUNNING) {
        record->stop_usec = 0;
        record->kill_usec = 0;
    } else if (record->stop_usec == 0) {
        record->stop_usec = (guint64)engine->now_usec;
    }
}

static void settle_requests(BerthTurn *turn, const BerthJobEntry *job, const BerthTaskEntry *task)
{
    if (!job->unstarted && berth_job_requests_settle(job->job, task->stored))
        put_job(turn, job);
}

/* Its tasks' counts have changed, or what has never started: it is written when the turn is committed. */
static void note_array(BerthTurn *turn, const BerthJobEntry *job)
{
    if (job->unstarted && !g_hash_table_contains(turn->arrays, &job->job->id))
        g_hash_table_add(turn->arrays, g_memdup2(&job->job->id, sizeof job->job->id));
}

/* Who has ended is held no more, but for who is amid others that are. */
static void refresh_holds(const BerthEngine *engine, const BerthJobEntry *job)
{
    BerthCoreJob known = {.held = job->job->held, .held_by_operator = job->job->held_by_operator};
    if (job->job->n_held_tasks + job->job->n_held_tasks_by_operator == 0)
        return;
    berth_core_get_job(engine->core, job->job->id, &known);
    berth_record_set_holds(job->job, &known);
}

static void write_array(BerthTurn *turn, guint64 number)
{
    const BerthJobEntry *job = berth_job_table_find(turn->engine->jobs, number);
    if (!job)
        return;
    refresh_holds(turn->engine, job);
    put_job(turn, job);
}

void turn_write_arrays(BerthTurn *turn)
{
    GHashTableIter iter;
    gpointer number;
    g_hash_table_iter_init(&iter, turn->arrays);
    while (g_hash_table_iter_next(&iter, &number, NULL))
        write_array(turn, *(const guint64 *)number);
    g_hash_table_remove_all(turn->arrays);
}

/* A task of an array that starts, or ends before it does, has an entry from then on. NULL: it has none yet. */
static BerthTaskEntry *begin_task(BerthJobEntry *job, const BerthCoreTask *task)
{
    gboolean is_unstarted = job->unstarted && berth_index_set_contains(job->unstarted, task->task);
    if (!is_unstarted || (task->state == BERTH_JOB_PENDING && task->epoch == 0))
        return NULL;
    berth_index_set_remove(job->unstarted,
                           berth_index_range_of(task->task, task->rest_last, task->rest_step));
    return berth_job_table_add_task(job, task->task, NULL);
}

static void count_task(const BerthJobEntry *job, const Berth__Task *record,
                       Berth__JobState old_state)
{
    BerthIndexRange range = berth_record_range(record);
    if (job->unstarted)
        berth_record_count(job->job, old_state, record->state, berth_index_range_count(&range));
}

/* Brings the record of one task up to what the core says, and drops it once it is done, the job with its last one. */
static void write_task(BerthTurn *turn, const BerthGuestId *id)
{
    BerthEngine *engine = turn->engine;
    BerthCoreTask task;
    BerthJobEntry *job = berth_job_table_find(engine->jobs, id->job);
    BerthTaskEntry *entry = berth_job_table_find_task(engine->jobs, id->job, id->task);
    if (!job || !berth_core_get_task(engine->core, id->job, id->task, &task))
        return;
    if (!entry && !(entry = begin_task(job, &task)))
        return;
    Berth__Task *record = entry->stored->task;
    Berth__JobState old_task_state = record->state;
    gboolean is_new_state = record->state != (Berth__JobState)task.state ||
                            record->reason != (Berth__Reason)task.reason;
    BerthNews news;
    berth_told_take(job->job, entry, &task, berth_node_table_name(engine->nodes, task.node),
                    engine->now_usec, &news);
    log_missed(turn, record, &news);
    if (task.epoch > record->epoch)
        entry->started_at_usec = engine->now_usec;
    berth_record_from_core(entry, &task, berth_node_table_name(engine->nodes, task.node),
                           berth_node_table_name(engine->nodes, task.migrate_to));
    note_stop(engine, record, &task);
    if (news.is_short)
        log_short(turn, job, record);
    Berth__JobState old_state = job->job->state;
    Berth__Reason old_reason = job->job->reason;
    count_task(job, record, old_task_state);
    if (record->state == BERTH__JOB_STATE__COMPLETED && old_task_state != record->state)
        berth_elements_note(engine->elements, id->job, berth_record_range(record));
    berth_record_roll_up(job, record);
    gboolean is_final = berth_job_state_is_final(task.state);
    /* Once it has ended, others may have added to the text (outputs.c). */
    if (is_new_state || !is_final)
        berth_record_describe(job, entry);
    record->output_pending = is_final && entry->wants_output;
    gboolean is_done = is_final && task.phase == BERTH_GUEST_NONE && !entry->wants_output;
    berth_store_batch_put_task(turn->batch, entry->stored, is_done);
    if (job->unstarted)
        note_array(turn, job);
    else if (job->job->state != old_state || job->job->reason != old_reason)
        put_job(turn, job);
    if (is_new_state)
        log_task(turn, entry);
    settle_requests(turn, job, entry);
    g_array_append_val(turn->changed, *id);
    if (berth_job_state_is_final((BerthJobState)job->job->state))
        berth_job_table_finished(engine->jobs, id->job);
    if (!is_done)
        return;
    if (job->unstarted && job->n_tasks == 1 && berth_index_set_count(job->unstarted) == 0)
        write_array(turn, id->job); /* it is forgotten with this one */
    berth_job_table_remove_task(engine->jobs, id->job, id->task);
}

/* --- nodes ------------------------------------------------------------------------------------- */

void berth_turn_put_node(BerthTurn *turn, guint32 handle)
{
    BerthEngine *engine = turn->engine;
    BerthCoreNode node;
    BerthNodeEntry *entry = berth_node_table_find(engine->nodes, handle);
    if (!entry || !berth_core_get_node(engine->core, handle, &node))
        return;
    Berth__StoredNode stored = BERTH__STORED_NODE__INIT;
    stored.info = entry->info;
    stored.state = (Berth__NodeState)node.state;
    stored.since_usec = (guint64)node.since_usec;
    stored.heard_usec = (guint64)entry->heard_usec;
    stored.admission = entry->admission;
    entry->kept_heard_usec = entry->heard_usec;
    berth_store_batch_put_node(turn->batch, &stored);
}

static void log_node_state(BerthTurn *turn, BerthNodeEntry *entry, const BerthCoreNode *node)
{
    if (entry->told_state == (Berth__NodeState)node->state)
        return;
    entry->told_state = (Berth__NodeState)node->state;
    Berth__Event event = BERTH__EVENT__INIT;
    berth_event_node_state(node->name, node->state, &event);
    berth_turn_log(turn, &event);
}

static void log_node_shortage(BerthTurn *turn, BerthNodeEntry *entry, const BerthCoreNode *node)
{
    if (!berth_told_shortage_is_news(entry, node, turn->engine->now_usec))
        return;
    gint64 took_msec = (turn->engine->now_usec - node->short_since_usec) / 1000;
    g_autofree char *text = node->is_short
                                ? berth_told_shortage(node, FALSE)
                                : g_strdup_printf("after %.1f s", (double)took_msec / 1000);
    Berth__Event event = BERTH__EVENT__INIT;
    event.kind =
        node->is_short ? BERTH__EVENT__KIND__NODE_SHORT : BERTH__EVENT__KIND__NODE_RELIEVED;
    event.node = (char *)node->name;
    event.text = text;
    berth_turn_log(turn, &event);
}

/* Once for each drain. */
static void log_node_empty(BerthTurn *turn, BerthNodeEntry *entry, const BerthCoreNode *node)
{
    if (!node->is_empty || !berth_node_entry_is_draining(entry) ||
        entry->admission->empty_usec != 0)
        return;
    entry->admission->empty_usec = (guint64)turn->engine->now_usec;
    Berth__Event event = BERTH__EVENT__INIT;
    event.kind = BERTH__EVENT__KIND__NODE_EMPTY;
    event.node = (char *)node->name;
    berth_turn_log(turn, &event);
}

static void write_node(BerthTurn *turn, guint32 handle)
{
    BerthCoreNode node;
    BerthNodeEntry *entry = berth_node_table_find(turn->engine->nodes, handle);
    if (!entry || !berth_core_get_node(turn->engine->core, handle, &node))
        return;
    log_node_state(turn, entry, &node);
    log_node_shortage(turn, entry, &node);
    log_node_empty(turn, entry, &node);
    berth_turn_put_node(turn, handle);
}

/* --- actions ----------------------------------------------------------------------------------- */

/* The first STOP counts: one that is sent again does not lengthen the grace. */
static void write_kill_time(BerthTurn *turn, const BerthCoreAction *action)
{
    const BerthGuestId *guest = &action->guest;
    BerthTaskEntry *entry = berth_job_table_find_task(turn->engine->jobs, guest->job, guest->task);
    Berth__Task *record = entry ? entry->stored->task : NULL;
    if (action->kind == BERTH_ACTION_STOP && record && record->epoch == guest->epoch &&
        record->stop_usec != 0 && record->kill_usec == 0) {
        record->kill_usec = (guint64)(turn->engine->now_usec + action->grace_usec);
        berth_turn_put_task(turn, guest->job, guest->task);
    }
}

/* (transfer full) */
static char *text_of_action(const BerthTurn *turn, const BerthCoreAction *action)
{
    if (action->kind == BERTH_ACTION_MIGRATE)
        return g_strdup(berth_node_table_name(turn->engine->nodes, action->to));
    if (action->kind == BERTH_ACTION_RESIZE)
        return berth_event_size_text(&action->resources);
    if (action->kind == BERTH_ACTION_CHECKPOINT || action->kind == BERTH_ACTION_RESTORE)
        return g_strdup_printf("%u", action->checkpoint);
    return g_strdup("");
}

static void write_action(BerthTurn *turn, const BerthCoreAction *action)
{
    write_kill_time(turn, action);
    Berth__Event event = BERTH__EVENT__INIT;
    const char *node = berth_node_table_name(turn->engine->nodes, action->node);
    g_autofree char *text = text_of_action(turn, action);
    g_autofree char *place = berth_told_place(turn->engine->core, action);
    g_autofree char *cause = berth_told_cause(turn->engine->core, action);
    event.place = place;
    event.cause = cause;
    if (berth_event_action(action, node, text, &event))
        berth_turn_log(turn, &event);
    g_array_append_val(turn->actions, *action);
}

/* Nobody was asked for it. */
static void log_given_up(BerthTurn *turn, const BerthCoreAction *action)
{
    Berth__Event event = BERTH__EVENT__INIT;
    berth_event_op_failed(action, berth_node_table_name(turn->engine->nodes, action->node),
                          "it has not begun: it was to wait until guests in slack have made room "
                          "for it (evacuation_max_usec of berthd.conf at most), and is not waited "
                          "for any more",
                          &event);
    berth_turn_log(turn, &event);
}

/* --- an event ---------------------------------------------------------------------------------- */

static gboolean has_effects(const BerthCoreEffects *effects)
{
    return effects->actions->len > 0 || effects->changed->len > 0 || effects->nodes->len > 0;
}

void turn_take_effects(BerthTurn *turn)
{
    const BerthCoreEffects *effects = turn->engine->effects;
    for (guint i = 0; i < effects->nodes->len; i++)
        write_node(turn, g_array_index(effects->nodes, guint32, i));
    for (guint i = 0; i < effects->given_up->len; i++)
        log_given_up(turn, &g_array_index(effects->given_up, BerthCoreAction, i));
    for (guint i = 0; i < effects->changed->len; i++)
        write_task(turn, &g_array_index(effects->changed, BerthGuestId, i));
    for (guint i = 0; i < effects->actions->len; i++)
        write_action(turn, &g_array_index(effects->actions, BerthCoreAction, i));
    berth_learned_write(turn->batch, effects);
}

void turn_write_job(BerthTurn *turn, const BerthCoreEvent *event)
{
    BerthCoreJob job;
    BerthJobEntry *entry = berth_job_table_find(turn->engine->jobs, event->guest.job);
    if (!entry || !berth_core_get_job(turn->engine->core, event->guest.job, &job))
        return;
    berth_record_set_holds(entry->job, &job);
    entry->job->time_limit_sec = (guint64)job.time_limit_usec / G_USEC_PER_SEC;
    if (event->kind == BERTH_EVENT_JOB_CHECKPOINT_EVERY_SET)
        berth_record_set_checkpoint_every(entry->job, job.checkpoint_every_usec);
    put_job(turn, entry);
}

void turn_note_requests(BerthTurn *turn, const Berth__Event *event)
{
    BerthJobTable *jobs = turn->engine->jobs;
    const BerthJobEntry *job = berth_job_table_find(jobs, event->job);
    const BerthTaskEntry *task = berth_job_table_find_task(jobs, event->job, event->task);
    if (job && job->unstarted) {
        if (berth_job_requests_take(job->job, NULL, event))
            note_array(turn, job);
    } else if (task && berth_job_requests_take(job->job, task->stored, event)) {
        put_job(turn, job);
    }
}

void turn_settle_requests(BerthTurn *turn, const BerthGuestId *guest)
{
    BerthJobTable *jobs = turn->engine->jobs;
    const BerthJobEntry *job = berth_job_table_find(jobs, guest->job);
    const BerthTaskEntry *task = berth_job_table_find_task(jobs, guest->job, guest->task);
    if (task)
        settle_requests(turn, job, task);
}

/* What its node says of a guest that is gone, and the end of its console: its record keeps them only
 * until the task starts again. (transfer full) */
static char *text_of_gone(const BerthTurn *turn, const BerthCoreEvent *event)
{
    const BerthTaskEntry *entry =
        berth_job_table_find_task(turn->engine->jobs, event->guest.job, event->guest.task);
    if (!entry)
        return g_strdup("");
    return berth_event_gone_text(entry->detail, entry->stored->task->console_tail);
}

/* What the guest of EVENT has now. (transfer full) */
static char *text_of_size(const BerthTurn *turn, const BerthCoreEvent *event)
{
    const BerthGuestId *id = &event->guest;
    BerthCoreGuest guest;
    if (!berth_core_get_guest(turn->engine->core, id->job, id->task, id->guest, &guest))
        return g_strdup("");
    return berth_event_size_text(&guest.resources);
}

/* Its record still has the one before. */
static char *text_of_time_limit(const BerthTurn *turn, const BerthCoreEvent *event)
{
    const BerthJobEntry *entry = berth_job_table_find(turn->engine->jobs, event->guest.job);
    guint64 limit_sec = (guint64)event->request.time_limit_usec / G_USEC_PER_SEC;
    g_autofree char *now = berth_format_duration_sec(limit_sec);
    g_autofree char *before = berth_format_duration_sec(entry ? entry->job->time_limit_sec : 0);
    return g_strdup_printf("%s, before %s", now, before);
}

static char *text_of_cause(const BerthTurn *turn, const BerthCoreEvent *event)
{
    switch (event->kind) {
    case BERTH_EVENT_GUEST_GONE:
        return text_of_gone(turn, event);
    case BERTH_EVENT_GUEST_RESIZED:
        return text_of_size(turn, event);
    case BERTH_EVENT_JOB_RESIZE_WANTED:
        return berth_event_size_text(&event->request.resources);
    case BERTH_EVENT_JOB_TIME_LIMIT_SET:
        return text_of_time_limit(turn, event);
    case BERTH_EVENT_JOB_CHECKPOINT_EVERY_SET:
        return berth_event_every_text(event->request.checkpoint_every_usec);
    default:
        return berth_event_request_text(event);
    }
}

/* What a node sends twice changes nothing, and is not worth an entry. */
void turn_log_cause(BerthTurn *turn, const BerthCoreEvent *event, const BerthAsker *asker)
{
    Berth__Event cause = BERTH__EVENT__INIT;
    g_autofree char *text = text_of_cause(turn, event);
    cause.text = text;
    const char *node = berth_node_table_name(turn->engine->nodes, event->node);
    if (berth_event_cause(event, node, asker, &cause) &&
        (has_effects(turn->engine->effects) || berth_event_is_request(event->kind)))
        berth_turn_log(turn, &cause);
}
