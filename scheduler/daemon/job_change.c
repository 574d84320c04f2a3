/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the requests that change a job: whether the caller may, and in whose name. Whether the job
 * can be changed so is the core's to say. */
#include "config.h"

#include "scheduler/daemon/job_change.h"

#include "common/error.h"
#include "scheduler/daemon/job_list.h"
#include "scheduler/daemon/pb.h"

typedef struct {
    BerthDaemon *daemon;
    BerthRpcCall *call;
    BerthEventKind kind;
    guint64 job;
} Change;

static void fail(Change *change, const GError *error)
{
    berth_rpc_call_fail(change->call, error);
    g_free(change);
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
    g_free(change);
}

/* What an operator has stopped in a job of an operator, that operator may let go. */
static gboolean lets_go(BerthEventKind kind)
{
    return kind == BERTH_EVENT_JOB_RELEASED || kind == BERTH_EVENT_JOB_THAW_WANTED;
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
    BerthCoreEvent event = {.kind = change->kind, .guest = {.job = change->job}};
    event.request.by_operator =
        who->uid != entry->job->uid ||
        (lets_go(change->kind) && berth_permission_is_operator(&daemon->operators, who));
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    gboolean is_taken = berth_turn_event(turn, &event, user, error);
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
        fail(change, error);
}

void berth_job_change(BerthDaemon *daemon, BerthEventKind kind, guint64 job, BerthRpcCall *call)
{
    const BerthRpcIdentity *who = berth_rpc_call_identity(call);
    const BerthJobEntry *entry = berth_job_table_find(daemon->jobs, job);
    Change *change = g_new0(Change, 1);
    *change = (Change){daemon, call, kind, job};
    if (!entry) {
        look_up_ended(change);
        return;
    }
    g_autoptr(GError) error = NULL;
    if (!berth_permission_check_job(&daemon->operators, who, job, entry->job->uid, &error)) {
        fail(change, error);
        return;
    }
    berth_users_name(daemon->users, who->uid, on_user, change);
}
