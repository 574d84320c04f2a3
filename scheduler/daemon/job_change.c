/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the requests that change a job: whether the caller may, and in whose name. Whether the job
 * can be changed so is the core's to say. */
#include "config.h"

#include "scheduler/daemon/job_change.h"

#include "common/error.h"
#include "common/ranges.h"
#include "common/units.h"
#include "scheduler/daemon/checkpoints.h"
#include "scheduler/daemon/collector.h"
#include "scheduler/daemon/job_list.h"
#include "scheduler/daemon/pb.h"
#include "scheduler/daemon/refusals.h"
#include "scheduler/daemon/spec_check.h"
#include "scheduler/daemon/task_name.h"

typedef struct {
    BerthDaemon *daemon;
    BerthRpcCall *call;
    BerthEventKind kind; /* CHECKPOINTS_CHANGED: CHECKPOINT is to be removed */
    guint64 job;
    BerthIndexSet *tasks;     /* of an array; NULL = all. Owned */
    BerthTaskName one;        /* JOB_RESTORE_WANTED, CHECKPOINTS_CHANGED: of this one */
    const char *why;          /* CALL's */
    guint32 node;             /* where it is to go; 0 = not said */
    BerthResources resources; /* what it is to have; 0 = likewise */
    gboolean to_disk;         /* JOB_FREEZE_WANTED */
    guint32 checkpoint;       /* serial: JOB_RESTORE_WANTED, 0 = the newest */
    guint64 time_limit_sec;   /* JOB_TIME_LIMIT_SET: in all; 0 = so much more: */
    guint64 more_sec;
    guint32 every_sec;    /* JOB_CHECKPOINT_EVERY_SET: 0 = not */
    gboolean leaves_disk; /* of a job that is cancelled: no node removes it */
} Change;

static void change_free(Change *change)
{
    g_clear_pointer(&change->tasks, berth_index_set_free);
    g_free(change);
}

static void fail(Change *change, const GError *error)
{
    berth_rpc_call_fail(change->call, error);
    change_free(change);
}

static const char *state_name(Berth__JobState state)
{
    const ProtobufCEnumValue *value =
        protobuf_c_enum_descriptor_get_value(&berth__job_state__descriptor, (int)state);
    return value ? value->name : "?";
}

static void set_ended_error(const Berth__Job *job, GError **error)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                "job %" G_GUINT64_FORMAT " has ended already (%s)", job->id,
                state_name(job->state));
}

/* --- what is refused -------------------------------------------------------------------------- */

/* What is asked for beside the kind of it. (transfer full) */
static char *wish_of_all_text(const Change *change)
{
    g_autofree char *limit = NULL;
    switch (change->kind) {
    case BERTH_EVENT_JOB_RESIZE_WANTED:
        return berth_event_size_text(&change->resources);
    case BERTH_EVENT_JOB_FREEZE_WANTED:
        return g_strdup(change->to_disk ? "to disk" : "");
    case BERTH_EVENT_JOB_TIME_LIMIT_SET:
        limit = berth_format_duration_sec(MAX(change->time_limit_sec, change->more_sec));
        return g_strdup_printf("%s%s", limit, change->more_sec > 0 ? " more" : "");
    case BERTH_EVENT_JOB_CHECKPOINT_EVERY_SET:
        return berth_event_every_text((gint64)change->every_sec * G_USEC_PER_SEC);
    default:
        return change->checkpoint > 0 ? g_strdup_printf("%u", change->checkpoint) : g_strdup("");
    }
}

/* Likewise, and of which tasks. (transfer full) */
static char *wish_text(const Change *change)
{
    g_autofree char *wish = wish_of_all_text(change);
    if (!change->tasks)
        return g_steal_pointer(&wish);
    guint n = berth_index_set_n_ranges(change->tasks);
    g_autofree char *tasks =
        berth_event_tasks_text(berth_index_set_range(change->tasks, 0),
                               n > 1 ? berth_index_set_range(change->tasks, 1) : NULL, n - 1);
    return g_strdup_printf("%s%s%s", tasks, *wish ? ", " : "", wish);
}

/* Of a job that has ended nothing is written any more, nor of what is refused whatever it is. */
static gboolean is_worth_noting(const Change *change, const GError *error)
{
    const BerthJobEntry *entry = berth_job_table_find(change->daemon->jobs, change->job);
    return entry && !berth_job_state_is_final((BerthJobState)entry->job->state) &&
           !g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE);
}

static void refuse(Change *change, const GError *error)
{
    BerthDaemon *daemon = change->daemon;
    BerthCoreEvent event = {.kind = change->kind, .guest = {.job = change->job}};
    BerthAsker asker = {"", change->why};
    Berth__Event wanted = BERTH__EVENT__INIT;
    const char *node = berth_node_table_name(daemon->nodes, change->node);
    g_autofree char *text = wish_text(change);
    if (!is_worth_noting(change, error)) {
        fail(change, error);
        return;
    }
    if (!berth_event_cause(&event, node, &asker, &wanted)) {
        wanted.kind = BERTH__EVENT__KIND__CHECKPOINT_REMOVED;
        wanted.job = change->job;
        wanted.why = (char *)change->why;
    }
    wanted.text = text;
    berth_refuse(daemon->refusals, change->call, &wanted, error);
    change_free(change);
}

/* --- jobs that memory does not have ------------------------------------------------------------ */

static gpointer read_job(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const Change *change = input;
    return berth_store_get_job(change->daemon->store, change->job, error);
}

static void job_free(gpointer job)
{
    berth__job__free_unpacked(job, NULL);
}

static void on_ended_job(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Change *change = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(Berth__Job) job = berth_work_finish(result, &error);
    if (job && berth_permission_check_job(&change->daemon->operators,
                                          berth_rpc_call_identity(change->call), job->id, job->uid,
                                          &error))
        set_ended_error(job, &error);
    fail(change, error);
}

static void look_up_ended(Change *change)
{
    berth_workers_run_for(change->daemon->workers, BERTH_LANE_READ,
                          berth_rpc_call_identity(change->call)->uid, "read a job", read_job,
                          change, NULL, job_free, 0, on_ended_job, change);
}

/* --- the others -------------------------------------------------------------------------------- */

static void on_committed(const GError *error, gpointer user_data)
{
    Change *change = user_data;
    if (error) {
        fail(change, error);
        return;
    }
    berth_job_reply(change->daemon, change->job, change->call);
    if (change->leaves_disk)
        berth_collector_run(change->daemon->collector);
    change_free(change);
}

/* What an operator has stopped in a job of an operator, that operator may let go, and for longer. */
static gboolean lets_go(BerthEventKind kind)
{
    return kind == BERTH_EVENT_JOB_RELEASED || kind == BERTH_EVENT_JOB_THAW_WANTED ||
           kind == BERTH_EVENT_JOB_MIGRATE_UNWANTED || kind == BERTH_EVENT_JOB_TIME_LIMIT_SET;
}

static gboolean find_time_limit(const Change *change, const BerthJobEntry *entry,
                                gint64 *out_limit_usec, GError **error)
{
    guint64 limit_sec = change->time_limit_sec > 0 ? change->time_limit_sec
                                                   : entry->job->time_limit_sec + change->more_sec;
    if (!berth_time_limit_check(limit_sec, error))
        return FALSE;
    *out_limit_usec = (gint64)limit_sec * G_USEC_PER_SEC;
    return TRUE;
}

static gboolean set_none_error(const char *name, GError **error)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                "job %s has no checkpoint: there is nothing to restore it from", name);
    return FALSE;
}

static gboolean find_checkpoint(const Change *change, BerthCoreCheckpoint *out_checkpoint,
                                GError **error)
{
    const BerthTaskEntry *entry =
        berth_job_table_find_task(change->daemon->jobs, change->job, change->one.task);
    g_autofree char *name = berth_task_name_in(change->daemon->jobs, change->job, change->one.task);
    if (!entry)
        return set_none_error(name, error);
    const Berth__StoredTask *stored = entry->stored;
    const Berth__Task *task = stored->task;
    gboolean is_found = berth_checkpoints_find(task, change->checkpoint, out_checkpoint);
    if (is_found &&
        (stored->cut_to_checkpoint == 0 || out_checkpoint->serial <= stored->cut_to_checkpoint))
        return TRUE;
    if (is_found)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "job %s is being put back to checkpoint %u, and what it put "
                    "out after that is gone: it cannot go on from checkpoint %u any more",
                    name, stored->cut_to_checkpoint, out_checkpoint->serial);
    else if (task->n_checkpoints == 0)
        return set_none_error(name, error);
    else
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                    "job %s has no checkpoint %u; berth checkpoint ls shows those that it has",
                    name, change->checkpoint);
    return FALSE;
}

/* It is done to those of them to which it can be. What is refused as a whole (there is no space for all; an operator has frozen one of
 * them), or is done to one task at a time, is asked for range by range, as each may be refused by itself. */
static gboolean is_one_decision(const Change *change)
{
    return change->kind == BERTH_EVENT_JOB_CANCELLED || change->kind == BERTH_EVENT_JOB_HELD ||
           change->kind == BERTH_EVENT_JOB_RELEASED ||
           (change->kind == BERTH_EVENT_JOB_FREEZE_WANTED && !change->to_disk);
}

static gboolean apply_to_all(const Change *change, BerthTurn *turn, BerthCoreEvent *event,
                             const BerthAsker *asker, GError **error)
{
    guint n = berth_index_set_n_ranges(change->tasks);
    event->request.tasks = *berth_index_set_range(change->tasks, 0);
    event->request.n_others = n - 1;
    if (n > 1)
        event->request.others = berth_index_set_range(change->tasks, 1);
    return berth_turn_event(turn, event, asker, error);
}

/* Done if it can be done to some of them; else the first says why not. */
static gboolean apply_to_some(const Change *change, BerthTurn *turn, BerthCoreEvent *event,
                              const BerthAsker *asker, GError **error)
{
    g_autoptr(GError) first = NULL;
    gboolean is_done = FALSE;
    for (guint i = 0; i < berth_index_set_n_ranges(change->tasks); i++) {
        event->request.tasks = *berth_index_set_range(change->tasks, i);
        is_done |= berth_turn_event(turn, event, asker, first ? NULL : &first);
    }
    if (!is_done)
        g_propagate_error(error, g_steal_pointer(&first));
    return is_done;
}

/* In TURN. */
static gboolean apply(const Change *change, BerthTurn *turn, BerthCoreEvent *event,
                      const char *user, GError **error)
{
    BerthAsker asker = {user, change->why};
    if (change->kind == BERTH_EVENT_CHECKPOINTS_CHANGED)
        return berth_checkpoints_remove(change->daemon->checkpoints, turn, change->job,
                                        change->one.task, change->checkpoint, &asker, error);
    if (change->tasks && is_one_decision(change))
        return apply_to_all(change, turn, event, &asker, error);
    if (change->tasks)
        return apply_to_some(change, turn, event, &asker, error);
    return berth_turn_event(turn, event, &asker, error);
}

/* One that is cancelled has a disk for its checkpoints, and no guest that takes it along. */
static gboolean leaves_disk(const Change *change, const BerthJobEntry *entry)
{
    for (guint32 i = 0; i < entry->n_tasks; i++) {
        const Berth__StoredTask *stored = entry->tasks[i]->stored;
        gboolean is_wanted =
            !change->tasks || berth_index_set_contains(change->tasks, stored->task->index);
        if (is_wanted && stored->task->n_checkpoints > 0 && stored->phase == BERTH_GUEST_NONE)
            return TRUE;
    }
    return FALSE;
}

/* What waits of an array is kept as ranges, which are to stay few. */
static gboolean check_pieces(const Change *change, const BerthJobEntry *entry, GError **error)
{
    g_autoptr(BerthIndexSet) left = berth_index_set_copy(entry->unstarted);
    for (guint i = 0; i < berth_index_set_n_ranges(change->tasks); i++)
        berth_index_set_remove(left, *berth_index_set_range(change->tasks, i));
    if (berth_index_set_n_ranges(left) <= BERTH_RANGES_MAX)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                "what waits of job %" G_GUINT64_FORMAT
                " would be left in more than %u ranges: cancel whole ranges, or tasks that run",
                change->job, BERTH_RANGES_MAX);
    return FALSE;
}

static gboolean is_of_one(BerthEventKind kind)
{
    return kind == BERTH_EVENT_JOB_RESTORE_WANTED || kind == BERTH_EVENT_CHECKPOINTS_CHANGED;
}

static gboolean check_tasks(const Change *change, const BerthJobEntry *entry, GError **error)
{
    gboolean is_array = entry->unstarted != NULL;
    const BerthTaskName some = {.job = change->job, .is_named = TRUE};
    if (is_of_one(change->kind))
        return berth_task_name_check(&change->one, is_array, error);
    if (!change->tasks)
        return TRUE;
    if (change->kind == BERTH_EVENT_JOB_CANCELLED && is_array)
        return check_pieces(change, entry, error);
    return berth_task_name_check(&some, is_array, error);
}

static gboolean decide(Change *change, const BerthJobEntry *entry, const char *user, GError **error)
{
    BerthDaemon *daemon = change->daemon;
    const BerthRpcIdentity *who = berth_rpc_call_identity(change->call);
    if (!berth_engine_check(daemon->engine, error))
        return FALSE;
    if (berth_job_state_is_final((BerthJobState)entry->job->state)) {
        set_ended_error(entry->job, error);
        return FALSE;
    }
    if (!check_tasks(change, entry, error))
        return FALSE;
    BerthCoreEvent event = {.kind = change->kind,
                            .guest = {.job = change->job, .task = change->one.task},
                            .node = change->node};
    event.request.resources = change->resources;
    event.request.to_disk = change->to_disk;
    event.request.checkpoint_every_usec = (gint64)change->every_sec * G_USEC_PER_SEC;
    if (change->kind == BERTH_EVENT_JOB_RESTORE_WANTED &&
        !find_checkpoint(change, &event.request.checkpoint, error))
        return FALSE;
    if (change->kind == BERTH_EVENT_JOB_TIME_LIMIT_SET &&
        !find_time_limit(change, entry, &event.request.time_limit_usec, error))
        return FALSE;
    event.request.by_operator =
        who->uid != entry->job->uid ||
        (lets_go(change->kind) && berth_permission_is_operator(&daemon->operators, who));
    change->leaves_disk = change->kind == BERTH_EVENT_JOB_CANCELLED && leaves_disk(change, entry);
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    gboolean is_taken = apply(change, turn, &event, user, error);
    if (is_taken)
        berth_turn_then(turn, on_committed, change);
    berth_turn_commit(turn);
    return is_taken;
}

static void on_user(const char *name, const GError *unnamed, gpointer user_data)
{
    Change *change = user_data;
    g_autoptr(GError) error = NULL;
    const BerthJobEntry *entry = berth_job_table_find(change->daemon->jobs, change->job);
    if (!entry) {
        look_up_ended(change); /* it ended while the name was looked up */
        return;
    }
    if (!decide(change, entry, name, &error))
        refuse(change, error);
}

/* FALSE: CALL is answered. */
static gboolean take_tasks(Berth__IndexRange *const *ranges, gsize n_ranges, BerthRpcCall *call,
                           BerthIndexSet **out_tasks)
{
    g_autoptr(GError) error = NULL;
    gboolean ok = berth_ranges_take_tasks(ranges, n_ranges, out_tasks, &error);
    if (!ok)
        berth_rpc_call_fail(call, error);
    return ok;
}

/* WANTED is copied; its tasks are taken. */
static void begin(const Change *wanted)
{
    BerthDaemon *daemon = wanted->daemon;
    const BerthRpcIdentity *who = berth_rpc_call_identity(wanted->call);
    const BerthJobEntry *entry = berth_job_table_find(daemon->jobs, wanted->job);
    Change *change = g_memdup2(wanted, sizeof *wanted);
    g_autoptr(GError) error = NULL;
    if (!berth_why_check(wanted->why, &error)) {
        fail(change, error);
        return;
    }
    if (!entry) {
        look_up_ended(change);
        return;
    }
    if (!berth_permission_check_job(&daemon->operators, who, wanted->job, entry->job->uid,
                                    &error)) {
        refuse(change, error);
        return;
    }
    berth_users_name(daemon->users, who->uid, on_user, change);
}

void berth_job_change(BerthDaemon *daemon, BerthEventKind kind, guint64 job,
                      Berth__IndexRange *const *tasks, gsize n_tasks, const char *why,
                      BerthRpcCall *call)
{
    Change change = {.daemon = daemon, .call = call, .kind = kind, .job = job, .why = why};
    if (take_tasks(tasks, n_tasks, call, &change.tasks))
        begin(&change);
}

/* The handle of NAME; 0 = NAME is "". FALSE: there is no such node, and CALL is answered. */
static gboolean find_node(BerthDaemon *daemon, const char *name, BerthRpcCall *call,
                          guint32 *out_node)
{
    g_autoptr(GError) error = NULL;
    *out_node = *name ? berth_core_find_node(daemon->core, name) : 0;
    if (!*name || *out_node != 0)
        return TRUE;
    g_set_error(&error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                "there is no node \"%.253s\"; berth node ls shows those that there are", name);
    berth_rpc_call_fail(call, error);
    return FALSE;
}

void berth_job_migrate(BerthDaemon *daemon, const Berth__MigrateRequest *request,
                       BerthRpcCall *call)
{
    Change change = {.daemon = daemon,
                     .call = call,
                     .kind = BERTH_EVENT_JOB_MIGRATE_WANTED,
                     .job = request->job,
                     .why = request->reason};
    if (find_node(daemon, request->node, call, &change.node) &&
        take_tasks(request->tasks, request->n_tasks, call, &change.tasks))
        begin(&change);
}

void berth_job_freeze(BerthDaemon *daemon, const Berth__FreezeRequest *request, BerthRpcCall *call)
{
    Change change = {.daemon = daemon,
                     .call = call,
                     .kind = BERTH_EVENT_JOB_FREEZE_WANTED,
                     .job = request->job,
                     .why = request->reason,
                     .to_disk = request->to_disk};
    if (take_tasks(request->tasks, request->n_tasks, call, &change.tasks))
        begin(&change);
}

void berth_job_thaw(BerthDaemon *daemon, const Berth__ThawRequest *request, BerthRpcCall *call)
{
    Change change = {.daemon = daemon,
                     .call = call,
                     .kind = BERTH_EVENT_JOB_THAW_WANTED,
                     .job = request->job,
                     .why = request->reason};
    if (find_node(daemon, request->node, call, &change.node) &&
        take_tasks(request->tasks, request->n_tasks, call, &change.tasks))
        begin(&change);
}

void berth_job_restore(BerthDaemon *daemon, const Berth__RestoreRequest *request,
                       BerthRpcCall *call)
{
    begin(&(Change){.daemon = daemon,
                    .call = call,
                    .kind = BERTH_EVENT_JOB_RESTORE_WANTED,
                    .job = request->job,
                    .why = request->reason,
                    .one = berth_task_name(request->job, request->task, request->of_array),
                    .checkpoint = request->checkpoint});
}

void berth_job_remove_checkpoint(BerthDaemon *daemon, const Berth__RemoveCheckpointRequest *request,
                                 BerthRpcCall *call)
{
    begin(&(Change){.daemon = daemon,
                    .call = call,
                    .kind = BERTH_EVENT_CHECKPOINTS_CHANGED,
                    .job = request->job,
                    .why = request->reason,
                    .one = berth_task_name(request->job, request->task, request->of_array),
                    .checkpoint = request->checkpoint});
}

void berth_job_resize(BerthDaemon *daemon, const Berth__ResizeRequest *request, BerthRpcCall *call)
{
    g_autoptr(GError) error = NULL;
    if (request->vcpus == 0 && request->memory_mib == 0)
        g_set_error(&error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "it is not said what job %" G_GUINT64_FORMAT " is to have", request->job);
    if (error ||
        !berth_size_check(request->vcpus > 0 ? request->vcpus : 1,
                          request->memory_mib > 0 ? request->memory_mib : BERTH_MEMORY_MIN_MIB,
                          &error)) {
        berth_rpc_call_fail(call, error);
        return;
    }
    Change change = {.daemon = daemon,
                     .call = call,
                     .kind = BERTH_EVENT_JOB_RESIZE_WANTED,
                     .job = request->job,
                     .why = request->reason,
                     .resources = {.vcpus = request->vcpus, .memory_mib = request->memory_mib}};
    if (take_tasks(request->tasks, request->n_tasks, call, &change.tasks))
        begin(&change);
}

void berth_job_checkpoint_every(BerthDaemon *daemon, const Berth__CheckpointEveryRequest *request,
                                BerthRpcCall *call)
{
    g_autoptr(GError) error = NULL;
    if (!berth_checkpoint_every_check(request->every_sec, daemon->config, &error)) {
        berth_rpc_call_fail(call, error);
        return;
    }
    begin(&(Change){.daemon = daemon,
                    .call = call,
                    .kind = BERTH_EVENT_JOB_CHECKPOINT_EVERY_SET,
                    .job = request->job,
                    .why = request->reason,
                    .every_sec = request->every_sec});
}

void berth_job_extend(BerthDaemon *daemon, const Berth__ExtendRequest *request, BerthRpcCall *call)
{
    g_autoptr(GError) error = NULL;
    if ((request->time_limit_sec == 0) == (request->by_sec == 0))
        g_set_error(&error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "it is not said for how long job %" G_GUINT64_FORMAT " may run", request->job);
    if (error || !berth_time_limit_check(MAX(request->time_limit_sec, request->by_sec), &error)) {
        berth_rpc_call_fail(call, error);
        return;
    }
    begin(&(Change){.daemon = daemon,
                    .call = call,
                    .kind = BERTH_EVENT_JOB_TIME_LIMIT_SET,
                    .job = request->job,
                    .why = request->reason,
                    .time_limit_sec = request->time_limit_sec,
                    .more_sec = request->by_sec});
}
