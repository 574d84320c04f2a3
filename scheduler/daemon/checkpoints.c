/* SPDX-License-Identifier: Apache-2.0 */
/* Owns CHECKPOINT actions between their commit and their answer, and the list of checkpoints in a task's record:
 * what is added to it, and what is dropped.
 *
 * Invariants: a checkpoint is in a record only after its node has said that its commit record is in storage; it is
 * removed from storage only after the record without it is durable. So what a record names can be restored from,
 * and what none names is garbage, which the collector removes if nobody else does. */
#include "config.h"

#include "scheduler/daemon/checkpoints.h"

#include "common/error.h"
#include "common/id.h"
#include "scheduler/daemon/checkpoint_removals.h"
#include "scheduler/daemon/event_log.h"
#include "scheduler/daemon/job_records.h"
#include "scheduler/daemon/records.h"
#include "scheduler/daemon/sessions.h"
#include "scheduler/daemon/task_name.h"
#include "scheduler/daemon/told.h"
#include "scheduler/daemon/turn_records.h"

#define RETRY_MIN_MSEC       250u
#define RETRY_MAX_MSEC       8000u
#define TRIES_AT_LIMIT       3u /* after the first, of a job at its time limit */
#define PATIENCES_AT_LIMIT   20u
#define TRY_COUNTED_MAX_USEC ((gint64)30 * G_USEC_PER_SEC)
#define BYTES_PER_MIB        ((guint64)1 << 20)
/* Who is frozen to disk only to go on elsewhere does so within that. */
#define RESTORED_SOON_SEC 10u

struct BerthCheckpoints {
    BerthDaemon *daemon;
    GHashTable *by_guest; /* BerthGuestId -> Saving, owned */
    BerthCheckpointRemovals *removals;
};

typedef struct {
    BerthCheckpoints *checkpoints;
    BerthCoreAction action;
    guint retry_msec;
    gint64 begun_usec;  /* when it was asked for of this agent, by this berthd */
    gint64 tried_usec;  /* when the try under way began */
    gint64 signal_usec; /* that the command is given in each */
    gint64 stood_usec;  /* for which the guest may have stood still in those that failed */
    gint64 waited_usec; /* for what may pass */
    gint64 pause_usec;  /* until the next try, for that */
    gboolean is_told;
    guint failures; /* that were no reason to wait */
    guint timer;
    GCancellable *cancellable; /* of its call */
} Saving;

/* A call of it that is under way. */
typedef struct {
    Saving *saving;
    GCancellable *cancellable; /* triggered: SAVING is no more */
} Call;

static void ask(Saving *saving);

/* --- life --------------------------------------------------------------------------------------- */

static void saving_free(gpointer data)
{
    Saving *saving = data;
    g_cancellable_cancel(saving->cancellable);
    g_object_unref(saving->cancellable);
    g_clear_handle_id(&saving->timer, g_source_remove);
    g_free(saving);
}

BerthCheckpoints *berth_checkpoints_new(BerthDaemon *daemon)
{
    BerthCheckpoints *checkpoints = g_new0(BerthCheckpoints, 1);
    checkpoints->daemon = daemon;
    checkpoints->by_guest =
        g_hash_table_new_full(berth_guest_id_hash, berth_guest_id_equal_func, NULL, saving_free);
    checkpoints->removals = berth_checkpoint_removals_new(daemon);
    return checkpoints;
}

void berth_checkpoints_free(BerthCheckpoints *checkpoints)
{
    if (!checkpoints)
        return;
    g_hash_table_unref(checkpoints->by_guest);
    berth_checkpoint_removals_free(checkpoints->removals);
    g_free(checkpoints);
}

static void forget(Saving *saving)
{
    g_hash_table_remove(saving->checkpoints->by_guest, &saving->action.guest);
}

static BerthTaskEntry *find_entry(BerthDaemon *daemon, const BerthGuestId *id)
{
    return berth_job_table_find_task(daemon->jobs, id->job, id->task);
}

/* Its job is ended if it is not saved, and loses its work: that it cannot be once, or for a while, is not enough. */
static gboolean is_at_limit(const Saving *saving)
{
    return saving->action.reason == BERTH_REASON_TIME_LIMIT;
}

/* The core waits for its result, and for no later one's. */
static gboolean is_open(const Saving *saving, BerthCoreGuest *out_guest)
{
    BerthDaemon *daemon = saving->checkpoints->daemon;
    const BerthGuestId *id = &saving->action.guest;
    return !berth_engine_is_stopped(daemon->engine) && find_entry(daemon, id) &&
           berth_core_get_guest(daemon->core, id->job, id->task, id->guest, out_guest) &&
           out_guest->id.epoch == id->epoch && out_guest->op == BERTH_OP_CHECKPOINTING &&
           out_guest->op_serial == saving->action.serial;
}

/* --- the list ----------------------------------------------------------------------------------- */

gboolean berth_checkpoints_find(const Berth__Task *task, guint32 serial,
                                BerthCoreCheckpoint *out_checkpoint)
{
    for (gsize i = task->n_checkpoints; i > 0; i--) {
        const Berth__Checkpoint *checkpoint = task->checkpoints[i - 1];
        if (serial != 0 && checkpoint->serial != serial)
            continue;
        *out_checkpoint = (BerthCoreCheckpoint){checkpoint->serial,
                                                checkpoint->epoch,
                                                (gint64)checkpoint->ran_usec,
                                                {checkpoint->vcpus, checkpoint->memory_mib, 0}};
        return TRUE;
    }
    return FALSE;
}

static guint64 stored_mib(const Berth__Task *task)
{
    guint64 bytes = 0;
    for (gsize i = 0; i < task->n_checkpoints; i++)
        bytes += task->checkpoints[i]->memory_bytes + task->checkpoints[i]->disk_bytes;
    return (bytes + BYTES_PER_MIB - 1) / BYTES_PER_MIB;
}

static void add(Berth__Task *task, const Berth__Checkpoint *checkpoint)
{
    task->checkpoints = g_renew(Berth__Checkpoint *, task->checkpoints, task->n_checkpoints + 1);
    task->checkpoints[task->n_checkpoints++] = berth_pb_dup(&checkpoint->base);
}

/* Of one or more. */
static const Berth__Checkpoint *newest(const Berth__Task *task)
{
    return task->checkpoints[task->n_checkpoints - 1];
}

static void drop_at(Berth__Task *task, gsize at)
{
    berth__checkpoint__free_unpacked(task->checkpoints[at], NULL);
    task->n_checkpoints--;
    for (gsize i = at; i < task->n_checkpoints; i++)
        task->checkpoints[i] = task->checkpoints[i + 1];
}

static gboolean drop(Berth__Task *task, guint32 serial)
{
    for (gsize i = 0; i < task->n_checkpoints; i++) {
        if (task->checkpoints[i]->serial != serial)
            continue;
        drop_at(task, i);
        return TRUE;
    }
    return FALSE;
}

gboolean berth_checkpoints_is_dead(BerthJobTable *jobs, guint64 next_job, const char *id)
{
    guint64 job = 0;
    guint32 task = 0;
    guint32 serial = 0;
    BerthCoreCheckpoint found;
    if (!berth_checkpoint_id_parse(id, &job, &task, &serial, NULL) || job >= next_job)
        return FALSE;
    const BerthTaskEntry *entry = berth_job_table_find_task(jobs, job, task);
    return !entry || (entry->stored->task->checkpointing != serial &&
                      entry->stored->checkpoint_doubted != serial &&
                      !berth_checkpoints_find(entry->stored->task, serial, &found));
}

/* --- removal ------------------------------------------------------------------------------------ */

static void log_removed(BerthTurn *turn, const Berth__Task *task, guint32 serial,
                        const BerthAsker *asker, const char *why)
{
    Berth__Event event = BERTH__EVENT__INIT;
    g_autofree char *text = g_strdup_printf("%u: %s", serial, why);
    event.kind = BERTH__EVENT__KIND__CHECKPOINT_REMOVED;
    event.job = task->job;
    event.task = task->index;
    event.epoch = task->epoch;
    event.text = text;
    if (asker) {
        event.user = (char *)asker->user;
        event.why = (char *)asker->why;
    }
    berth_turn_log(turn, &event);
}

/* The records are written when the core has been told what is left. */
static void remove_in_turn(BerthDaemon *daemon, BerthTurn *turn, Berth__Task *task, guint32 serial,
                           const BerthAsker *asker, const char *why, guint later_sec)
{
    log_removed(turn, task, serial, asker, why);
    drop(task, serial);
    berth_checkpoint_removals_add(daemon->checkpoints->removals, turn, task, serial, later_sec);
}

/* CURRENT is what it goes on from, if that is not SERIAL, which is no more. */
static void tell_what_is_left(BerthTurn *turn, const Berth__Task *task, guint32 current)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_CHECKPOINTS_CHANGED,
                            .guest = {.job = task->job, .task = task->index}};
    g_autoptr(GError) error = NULL;
    if (!berth_checkpoints_find(task, current, &event.checkpoints.newest))
        berth_checkpoints_find(task, 0, &event.checkpoints.newest);
    event.checkpoints.stored_mib = stored_mib(task);
    if (!berth_turn_event(turn, &event, NULL, &error))
        g_critical("the core refused what is left of checkpoints: %s", error->message);
    berth_turn_put_task(turn, task->job, task->index);
}

gboolean berth_checkpoints_remove(BerthCheckpoints *checkpoints, BerthTurn *turn, guint64 job,
                                  guint32 index, guint32 serial, const BerthAsker *asker,
                                  GError **error)
{
    BerthDaemon *daemon = checkpoints->daemon;
    BerthTaskEntry *entry = berth_job_table_find_task(daemon->jobs, job, index);
    BerthCoreCheckpoint found;
    BerthCoreTask task;
    g_autofree char *name = berth_task_name_in(daemon->jobs, job, index);
    if (serial == 0 || !entry || !berth_checkpoints_find(entry->stored->task, serial, &found) ||
        !berth_core_get_task(daemon->core, job, index, &task)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                    "job %s has no checkpoint %u; berth checkpoint ls shows those that it has",
                    name, serial);
        return FALSE;
    }
    if (task.checkpoint == serial && task.phase != BERTH_GUEST_RUNNING) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "job %s does not run now, and goes on from checkpoint %u; "
                    "berth cancel ends it with all that it has",
                    name, serial);
        return FALSE;
    }
    remove_in_turn(daemon, turn, entry->stored->task, serial, asker, "it is not wanted any more",
                   0);
    tell_what_is_left(turn, entry->stored->task, task.checkpoint);
    return TRUE;
}

gboolean berth_checkpoints_give_up(BerthCheckpoints *checkpoints, const BerthGuestId *guest,
                                   const char *why)
{
    BerthDaemon *daemon = checkpoints->daemon;
    const BerthTaskEntry *entry = find_entry(daemon, guest);
    BerthCoreTask task;
    if (!entry || entry->stored->task->n_checkpoints < 2 ||
        !berth_core_get_task(daemon->core, guest->job, guest->task, &task) || task.checkpoint == 0)
        return FALSE;
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    remove_in_turn(daemon, turn, entry->stored->task, task.checkpoint, NULL, why, 0);
    tell_what_is_left(turn, entry->stored->task, 0);
    berth_turn_commit(turn);
    return TRUE;
}

/* The oldest go that are more than the job keeps; the newest stays. */
static void drop_old(BerthDaemon *daemon, BerthTurn *turn, Berth__Task *task, guint later_sec)
{
    const BerthJobEntry *job = berth_job_table_find(daemon->jobs, task->job);
    guint32 keep = MAX(job->job->checkpoint_keep, 1);
    while (task->n_checkpoints > keep)
        remove_in_turn(daemon, turn, task, task->checkpoints[0]->serial, NULL,
                       "newer ones are kept", later_sec);
}

void berth_checkpoints_restored(BerthCheckpoints *checkpoints, BerthTurn *turn,
                                BerthTaskEntry *entry)
{
    Berth__Task *task = entry->stored->task;
    guint32 restored = task->restores_from;
    g_autofree char *why = g_strdup_printf("the job was put back to %u", restored);
    gsize before = task->n_checkpoints;
    entry->stored->cut_to_checkpoint = 0;
    for (gsize i = before; i > 0; i--) {
        guint32 serial = task->checkpoints[i - 1]->serial;
        if (serial > restored)
            remove_in_turn(checkpoints->daemon, turn, task, serial, NULL, why, 0);
    }
    if (task->n_checkpoints < before)
        tell_what_is_left(turn, task, restored);
}

/* --- the end ------------------------------------------------------------------------------------ */

static void log_done(BerthTurn *turn, const BerthGuestId *guest,
                     const Berth__Checkpoint *checkpoint, const char *guest_does)
{
    Berth__Event event = BERTH__EVENT__INIT;
    g_autofree char *text = g_strdup_printf(
        "%u: %" G_GUINT64_FORMAT " MiB of memory, %" G_GUINT64_FORMAT " MiB of disk; the guest %s",
        checkpoint->serial, checkpoint->memory_bytes / BYTES_PER_MIB,
        checkpoint->disk_bytes / BYTES_PER_MIB, guest_does);
    event.kind = BERTH__EVENT__KIND__GUEST_CHECKPOINTED;
    event.job = guest->job;
    event.task = guest->task;
    event.epoch = guest->epoch;
    event.node = checkpoint->node;
    event.reason = checkpoint->reason;
    event.text = text;
    berth_turn_log(turn, &event);
}

/* FAILURE NULL: it is done. What comes of it is decided, and SAVING is no more. */
static void tell(Saving *saving, BerthTurn *turn, gint64 paused_usec, const char *failure)
{
    BerthDaemon *daemon = saving->checkpoints->daemon;
    const BerthCoreAction *action = &saving->action;
    const BerthTaskEntry *entry = find_entry(daemon, &action->guest);
    BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_CHECKPOINTED,
                            .guest = action->guest,
                            .node = action->node,
                            .result = {.ok = failure == NULL,
                                       .serial = action->serial,
                                       .paused_usec = paused_usec,
                                       .stored_mib = stored_mib(entry->stored->task)}};
    g_autoptr(GError) error = NULL;
    if (!berth_turn_event(turn, &event, NULL, &error))
        g_critical("the core refused the result of a checkpoint: %s", error->message);
    berth_turn_commit(turn);
    forget(saving);
}

/* It may have been submitted when more was allowed. */
static guint32 signal_sec(const BerthDaemon *daemon, const BerthJobEntry *job)
{
    return MIN(berth_record_checkpoint_signal_sec(job->job),
               daemon->config->checkpoint_signal_max_sec);
}

static gint64 patience_usec(const Saving *saving)
{
    gint64 patience_sec = saving->checkpoints->daemon->config->checkpoint_patience_sec;
    gint64 times = is_at_limit(saving) ? PATIENCES_AT_LIMIT : 1;
    return times * patience_sec * G_USEC_PER_SEC;
}

static gboolean may_pass(const GError *error)
{
    return g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE) ||
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED);
}

/* Nothing is to be had by giving up while storage is known not to answer. */
static void count_wait(Saving *saving, gint64 usec)
{
    if (berth_storage_link_error(saving->checkpoints->daemon->storage) == NULL)
        saving->waited_usec += usec;
}

/* As a rule nothing but time helps. A try that took long had begun, and counts in part. */
static void note_refusal(Saving *saving, gint64 took_usec, const char *why)
{
    count_wait(saving, MIN(took_usec, TRY_COUNTED_MAX_USEC));
    saving->pause_usec = (gint64)saving->retry_msec * 1000;
    if (saving->is_told)
        return;
    g_autofree char *guest = berth_guest_name_format(&saving->action.guest);
    g_message("%s cannot be checkpointed now; it is tried for %" G_GINT64_FORMAT
              " s (checkpoint_patience): %s",
              guest, patience_usec(saving) / G_USEC_PER_SEC, why);
    saving->is_told = TRUE;
}

/* For so long the guest may have stood still: not while its command was given time for a signal. Returns how long berthd has
 * waited for this try. */
static gint64 count_try(Saving *saving)
{
    gint64 now_usec = berth_engine_now_usec(saving->checkpoints->daemon->engine);
    saving->stood_usec += MAX(now_usec - saving->tried_usec - saving->signal_usec, 0);
    return MAX(now_usec - MAX(saving->tried_usec, saving->begun_usec), 0);
}

static void tell_failure(Saving *saving, const char *why)
{
    BerthDaemon *daemon = saving->checkpoints->daemon;
    const BerthCoreAction *action = &saving->action;
    const char *node = berth_node_table_name(daemon->nodes, action->node);
    g_autofree char *guest = berth_guest_name_format(&action->guest);
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    Berth__Event failure = BERTH__EVENT__INIT;
    g_message("%s on %s was not checkpointed: %s", guest, node, why);
    berth_event_op_failed(action, node, why, &failure);
    berth_turn_log(turn, &failure);
    if (is_at_limit(saving))
        berth_told_unsaved(find_entry(daemon, &action->guest), why);
    tell(saving, turn, MAX(saving->stood_usec, 1), why);
}

/* Of which WHAT says what its node did not measure. RUNS_ON: its guest does. */
static void add_taken(BerthDaemon *daemon, BerthTurn *turn, BerthTaskEntry *entry,
                      const Berth__Checkpoint *what, const Berth__CheckpointGuestReply *taken,
                      gboolean runs_on)
{
    Berth__Checkpoint checkpoint = *what;
    berth_record_take_usage(entry, taken->usage);
    checkpoint.taken_usec = MIN(taken->taken_usec, (guint64)berth_engine_now_usec(daemon->engine));
    checkpoint.memory_bytes = taken->memory_bytes;
    checkpoint.disk_bytes = taken->disk_bytes;
    checkpoint.pause_usec = taken->pause_usec;
    checkpoint.usage = entry->stored->task->usage;
    checkpoint.stdout_bytes = taken->stdout_bytes;
    checkpoint.stderr_bytes = taken->stderr_bytes;
    add(entry->stored->task, &checkpoint);
    drop_old(daemon, turn, entry->stored->task, runs_on ? 0 : RESTORED_SOON_SEC);
}

static void tell_done(Saving *saving, const Berth__CheckpointGuestReply *reply)
{
    BerthDaemon *daemon = saving->checkpoints->daemon;
    const BerthCoreAction *action = &saving->action;
    BerthTaskEntry *entry = find_entry(daemon, &action->guest);
    Berth__Checkpoint what = BERTH__CHECKPOINT__INIT;
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    const char *unheard =
        reply->unsignalled ? "; its command got no signal before, as it did not listen" : "";
    g_autofree char *pause = action->stops
                                 ? g_strdup_printf("stands still from then on%s", unheard)
                                 : g_strdup_printf("stood still for %" G_GUINT64_FORMAT " ms%s",
                                                   reply->pause_usec / 1000, unheard);
    what.serial = action->checkpoint;
    what.epoch = action->guest.epoch;
    what.reason = (Berth__Reason)action->reason;
    what.node = (char *)berth_node_table_name(daemon->nodes, action->node);
    add_taken(daemon, turn, entry, &what, reply, !action->stops);
    log_done(turn, &action->guest, newest(entry->stored->task), pause);
    guint64 paused_usec = action->stops ? reply->still_usec : reply->pause_usec;
    if (paused_usec != 0)
        paused_usec += (guint64)saving->stood_usec;
    tell(saving, turn, (gint64)MIN(paused_usec, (guint64)G_MAXINT64), NULL);
}

void berth_checkpoints_found(BerthCheckpoints *checkpoints, BerthTurn *turn,
                             const BerthGuestId *guest, guint32 node,
                             const BerthCoreCheckpoint *checkpoint,
                             const Berth__CheckpointGuestReply *taken)
{
    BerthDaemon *daemon = checkpoints->daemon;
    BerthTaskEntry *entry = find_entry(daemon, guest);
    Berth__Checkpoint what = BERTH__CHECKPOINT__INIT;
    what.serial = checkpoint->serial;
    what.epoch = checkpoint->epoch;
    what.ran_usec = (guint64)checkpoint->ran_usec;
    what.vcpus = checkpoint->resources.vcpus;
    what.memory_mib = checkpoint->resources.memory_mib;
    what.node = (char *)berth_node_table_name(daemon->nodes, node);
    add_taken(daemon, turn, entry, &what, taken, FALSE);
    log_done(turn, guest, newest(entry->stored->task), "was lost before its node could say so");
    tell_what_is_left(turn, entry->stored->task, 0);
}

/* --- asking ------------------------------------------------------------------------------------- */

static void on_retry(gpointer user_data)
{
    Saving *saving = user_data;
    saving->timer = 0;
    count_wait(saving, saving->pause_usec);
    saving->pause_usec = 0;
    saving->tried_usec = berth_engine_now_usec(saving->checkpoints->daemon->engine);
    ask(saving);
}

static void ask_later(Saving *saving)
{
    saving->timer = g_timeout_add_once(saving->retry_msec, on_retry, saving);
    saving->retry_msec = MIN(saving->retry_msec * 2, RETRY_MAX_MSEC);
}

static void call_free(Call *call)
{
    g_object_unref(call->cancellable);
    g_free(call);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Call, call_free)

static gboolean is_worth_another_try(Saving *saving, const GError *error)
{
    return is_at_limit(saving) && !g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND) &&
           saving->failures++ < TRIES_AT_LIMIT;
}

static void on_refused(Saving *saving, const GError *error)
{
    gint64 took_usec = count_try(saving);
    if (may_pass(error))
        note_refusal(saving, took_usec, error->message);
    if ((may_pass(error) && saving->waited_usec < patience_usec(saving)) ||
        is_worth_another_try(saving, error))
        ask_later(saving);
    else
        tell_failure(saving, error->message);
}

static void on_answer(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(Call) call = user_data;
    BerthCoreGuest guest;
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, &error);
    if (g_cancellable_is_cancelled(call->cancellable))
        return;
    Saving *saving = call->saving;
    if (!is_open(saving, &guest))
        forget(saving);
    else if (reply)
        tell_done(saving, (const Berth__CheckpointGuestReply *)(const void *)reply);
    else
        on_refused(saving, error);
}

/* It takes as long as it takes. Where its node is away the core asks again when that is back. */
static void ask(Saving *saving)
{
    BerthDaemon *daemon = saving->checkpoints->daemon;
    const BerthCoreAction *action = &saving->action;
    BerthRpcPeer *peer = berth_sessions_peer(daemon->sessions, action->node);
    const BerthJobEntry *job = berth_job_table_find(daemon->jobs, action->guest.job);
    BerthCoreGuest guest;
    if (!is_open(saving, &guest) || !peer || !job) {
        forget(saving);
        return;
    }
    g_autofree char *disk_id = berth_disk_id_format(&action->guest);
    g_autofree char *checkpoint_id =
        berth_checkpoint_id_format(action->guest.job, action->guest.task, action->checkpoint);
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    id.job = action->guest.job;
    id.task = action->guest.task;
    id.guest = action->guest.guest;
    id.epoch = action->guest.epoch;
    Berth__CheckpointGuestRequest request = BERTH__CHECKPOINT_GUEST_REQUEST__INIT;
    request.id = &id;
    request.disk_id = disk_id;
    request.checkpoint_id = checkpoint_id;
    request.space_bytes = action->space_mib * BYTES_PER_MIB;
    request.stop = action->stops;
    request.frozen = guest.is_frozen;
    request.hurries = berth_core_action_is_pressing(action);
    request.signal = job->job->checkpoint_signal;
    request.signal_sec = signal_sec(daemon, job);
    saving->signal_usec = guest.is_frozen ? 0 : (gint64)request.signal_sec * G_USEC_PER_SEC;
    Call *call = g_new(Call, 1);
    *call = (Call){saving, g_object_ref(saving->cancellable)};
    berth_rpc_peer_call_async(peer, &berth__agent__descriptor, "CheckpointGuest", &request.base, 0,
                              saving->cancellable, on_answer, call);
}

/* Before a restart of berthd, if that was in its midst. */
static gint64 asked_usec(const Saving *saving)
{
    const BerthTaskEntry *entry = find_entry(saving->checkpoints->daemon, &saving->action.guest);
    return entry ? (gint64)entry->stored->task->checkpointing_usec : 0;
}

void berth_checkpoints_begin(BerthCheckpoints *checkpoints, const BerthCoreAction *action)
{
    Saving *saving = g_new0(Saving, 1);
    saving->checkpoints = checkpoints;
    saving->action = *action;
    saving->retry_msec = RETRY_MIN_MSEC;
    saving->begun_usec = berth_engine_now_usec(checkpoints->daemon->engine);
    saving->tried_usec = asked_usec(saving);
    saving->cancellable = g_cancellable_new();
    g_hash_table_replace(checkpoints->by_guest, &saving->action.guest, saving);
    ask(saving);
}
