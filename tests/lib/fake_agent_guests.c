/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the guests of nodes that are not there: a table of them, the timers by which they do what their
 * plan says, and the answers to what the node is told to do with them. */
#include "tests/lib/fake_agent_internal.h"

#include "common/error.h"
#include "common/id.h"
#include "common/message.h"

#include <signal.h>
#include <string.h>

typedef struct {
    FakeAgent *agent;
    BerthGuestId id;
    FakePlan plan;
    char *log_id;
    Berth__GuestStatus__Phase phase;
    gint64 start_usec;
    gint64 end_usec;
    gboolean is_frozen;
    gboolean is_coming;             /* and was not taken yet: nothing is said of it but in Join */
    guint64 bytes[2];               /* written to stdout, stderr */
    Berth__ResizeGuestRequest size; /* without an id; vcpus 0 = as it was started */
    guint timer;
    BerthRpcCall *start; /* to be refused; NULL = is not */
} Guest;

/* An answer that is held back. */
typedef struct {
    FakeAgent *agent;
    BerthRpcCall *call;
    const ProtobufCMessage *reply; /* static */
    guint timer;
} Delayed;

static FakeAgent *agent_of(Berth__Agent_Service *service)
{
    return (FakeAgent *)(void *)service;
}

static BerthGuestId id_of(const Berth__GuestId *id)
{
    return (BerthGuestId){.job = id->job, .task = id->task, .guest = id->guest, .epoch = id->epoch};
}

/* --- what the node says ------------------------------------------------------------------------ */

static void describe(const Guest *guest, FakeWords *words)
{
    berth__guest_id__init(&words->id);
    berth__exit__init(&words->exit);
    berth__usage__init(&words->usage);
    berth__guest_status__init(&words->status);
    words->id.job = guest->id.job;
    words->id.task = guest->id.task;
    words->id.guest = guest->id.guest;
    words->id.epoch = guest->id.epoch;
    words->exit.status = guest->plan.status;
    words->exit.signal = guest->plan.signal;
    words->exit.oom_kills = guest->plan.oom_kills;
    words->exit.disk_full = guest->plan.disk_full;
    words->exit.stdout_bytes = guest->bytes[0];
    words->exit.stderr_bytes = guest->bytes[1];
    if (guest->plan.error) {
        words->exit.error = (char *)guest->plan.error;
    }
    if (guest->plan.usage) {
        words->usage = *guest->plan.usage;
    } else {
        words->usage.cpu_usec = 1000;
        words->usage.memory_total_mib = 64;
    }
    words->status.id = &words->id;
    words->status.phase = guest->phase;
    words->status.start_usec = (guint64)guest->start_usec;
    words->status.end_usec = (guint64)guest->end_usec;
    words->status.exit = guest->phase == BERTH__GUEST_STATUS__PHASE__ENDED ? &words->exit : NULL;
    words->status.reason = guest->plan.gone;
    words->status.not_begun = guest->plan.not_begun;
    words->status.usage = &words->usage;
    words->status.stdout_bytes = guest->bytes[0];
    words->status.stderr_bytes = guest->bytes[1];
    if (guest->plan.console_tail) {
        words->status.console_tail = (char *)guest->plan.console_tail;
    }
    if (guest->plan.storage_client) {
        words->storage_clients[0] = (char *)guest->plan.storage_client;
        words->status.storage_clients = words->storage_clients;
        words->status.n_storage_clients = 1;
    }
}

void fake_agent_on_said(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, &error);
    if (reply) {
        FakeAgent *agent = user_data;
        agent->n_answers++;
        if (reply->descriptor == &berth__guest_changed_reply__descriptor)
            agent->n_kept += !((const Berth__GuestChangedReply *)(const void *)reply)->not_kept;
    }
}

void fake_agent_say(FakeAgent *agent, const Berth__GuestStatus *status)
{
    Berth__GuestChangedRequest request = BERTH__GUEST_CHANGED_REQUEST__INIT;
    request.status = (Berth__GuestStatus *)status;
    for (guint i = 0; i < agent->repeats && agent->peer; i++) {
        berth_rpc_peer_call_async(agent->peer, &berth__sessions__descriptor, "GuestChanged",
                                  &request.base, 0, agent->connection, fake_agent_on_said, agent);
    }
}

/* What is said while there is no session is said by the next Join. */
static void tell(Guest *guest)
{
    FakeWords words;
    describe(guest, &words);
    if (guest->agent->is_joined) {
        fake_agent_say(guest->agent, &words.status);
    }
}

FakeWords *fake_agent_describe_all(FakeAgent *agent, GPtrArray *pointers, gboolean for_join)
{
    guint n = g_hash_table_size(agent->guests);
    FakeWords *words = g_new0(FakeWords, n + 1);
    GHashTableIter iter;
    gpointer guest;
    g_hash_table_iter_init(&iter, agent->guests);
    for (guint i = 0; g_hash_table_iter_next(&iter, NULL, &guest); i++) {
        describe(guest, &words[i]);
        gboolean is_coming = ((const Guest *)guest)->is_coming;
        if (is_coming)
            words[i].status.phase = BERTH__GUEST_STATUS__PHASE__ARRIVING;
        if (for_join || !is_coming)
            g_ptr_array_add(pointers, &words[i].status);
    }
    return words;
}

static void on_reported(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *reply = berth_rpc_peer_call_finish(result, &error);
    FakeAgent *agent = user_data;
    if (!reply)
        return; /* the agent may be gone */
    berth_message_free(agent->report_reply ? &agent->report_reply->base : NULL);
    agent->report_reply = (Berth__ReportReply *)(void *)reply;
    agent->n_reports++;
}

void fake_agent_report_as(FakeAgent *agent, const Berth__ReportRequest *request)
{
    if (agent->is_joined)
        berth_rpc_peer_call_async(agent->peer, &berth__sessions__descriptor, "Report",
                                  &request->base, 0, agent->connection, on_reported, agent);
}

guint fake_agent_n_reports(FakeAgent *agent)
{
    return agent->n_reports;
}

const Berth__ReportReply *fake_agent_report_reply(FakeAgent *agent)
{
    return agent->report_reply;
}

void fake_agent_report_node(FakeAgent *agent, const Berth__NodeUsage *node)
{
    g_autoptr(GPtrArray) guests = g_ptr_array_new();
    g_autofree FakeWords *words = fake_agent_describe_all(agent, guests, FALSE);
    Berth__ReportRequest request = BERTH__REPORT_REQUEST__INIT;
    request.guests = (Berth__GuestStatus **)guests->pdata;
    request.n_guests = guests->len;
    request.node = (Berth__NodeUsage *)node;
    fake_agent_report_as(agent, &request);
}

void fake_agent_report(FakeAgent *agent)
{
    fake_agent_report_node(agent, NULL);
}

/* --- guests ------------------------------------------------------------------------------------ */

static void refuse(BerthRpcCall *call, Berth__StartGuestReply__Fault fault)
{
    Berth__Error error = BERTH__ERROR__INIT;
    Berth__StartGuestReply reply = BERTH__START_GUEST_REPLY__INIT;
    error.code = BERTH__ERROR_CODE__ERROR_INTERNAL;
    error.message = (char *)"the fake node refuses";
    reply.fault = fault;
    reply.error = &error;
    berth_rpc_call_reply(call, &reply.base);
}

static void guest_free(gpointer data)
{
    Guest *guest = data;
    g_clear_handle_id(&guest->timer, g_source_remove);
    if (guest->start) {
        refuse(guest->start, guest->plan.refuse);
    }
    g_free(guest->log_id);
    g_free(guest);
}

static void write_output(Guest *guest, gboolean is_stderr, const char *text)
{
    gsize length = text ? strlen(text) : 0;
    if (length == 0) {
        return;
    }
    if (guest->agent->config.storage) {
        g_autoptr(GError) error = NULL;
        g_autofree char *name = g_strconcat(guest->log_id, is_stderr ? ".err" : ".out", NULL);
        if (!berth_storage_log_write(guest->agent->config.storage, name, guest->bytes[is_stderr],
                                     text, length, &error)) {
            g_error("cannot write a log: %s", error->message);
        }
    }
    guest->bytes[is_stderr] += length;
}

/* To what the latest checkpoint had; nothing here has one of another agent. */
static void cut_output(Guest *guest)
{
    for (guint is_stderr = 0; is_stderr < 2 && guest->agent->config.storage; is_stderr++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *name = g_strconcat(guest->log_id, is_stderr ? ".err" : ".out", NULL);
        guest->bytes[is_stderr] = guest->agent->saved_bytes[is_stderr];
        if (guest->agent->n_saves > 0 && !berth_storage_log_cut(guest->agent->config.storage, name,
                                                                guest->bytes[is_stderr], &error))
            g_error("cannot cut a log: %s", error->message);
    }
}

static void end_guest(Guest *guest)
{
    g_clear_handle_id(&guest->timer, g_source_remove);
    guest->phase = BERTH__GUEST_STATUS__PHASE__ENDED;
    guest->end_usec = g_get_real_time();
    tell(guest);
}

static gboolean on_ended(gpointer user_data)
{
    Guest *guest = user_data;
    guest->timer = 0;
    end_guest(guest);
    return G_SOURCE_REMOVE;
}

static gboolean on_booted(gpointer user_data)
{
    Guest *guest = user_data;
    FakeAgent *agent = guest->agent;
    gpointer key = GSIZE_TO_POINTER(guest->id.job);
    guest->timer = 0;
    if (guest->plan.gone != BERTH__REASON__REASON_NONE) {
        guest->phase = BERTH__GUEST_STATUS__PHASE__GONE;
        tell(guest);
        return G_SOURCE_REMOVE;
    }
    guest->phase = BERTH__GUEST_STATUS__PHASE__ACTIVE;
    guest->start_usec = g_get_real_time();
    guint runs = GPOINTER_TO_UINT(g_hash_table_lookup(agent->runs, key));
    g_hash_table_insert(agent->runs, key, GUINT_TO_POINTER(runs + 1));
    write_output(guest, FALSE, guest->plan.out);
    write_output(guest, TRUE, guest->plan.err);
    tell(guest);
    if (!guest->plan.runs_on) {
        guest->timer = g_timeout_add(guest->plan.run_msec, on_ended, guest);
    }
    return G_SOURCE_REMOVE;
}

static Guest *find_job(FakeAgent *agent, guint64 job)
{
    GHashTableIter iter;
    gpointer guest;
    g_hash_table_iter_init(&iter, agent->guests);
    while (g_hash_table_iter_next(&iter, NULL, &guest)) {
        if (((Guest *)guest)->id.job == job) {
            return guest;
        }
    }
    return NULL;
}

static Guest *find_task(FakeAgent *agent, guint64 job, guint32 index)
{
    GHashTableIter iter;
    gpointer guest;
    g_hash_table_iter_init(&iter, agent->guests);
    while (g_hash_table_iter_next(&iter, NULL, &guest)) {
        const BerthGuestId *id = &((Guest *)guest)->id;
        if (id->job == job && id->task == index) {
            return guest;
        }
    }
    return NULL;
}

const Berth__ResizeGuestRequest *fake_agent_size(FakeAgent *agent, guint64 job)
{
    const Guest *guest = find_job(agent, job);
    return guest && guest->size.vcpus > 0 ? &guest->size : NULL;
}

guint fake_agent_n_freezes(FakeAgent *agent)
{
    return agent->n_freezes;
}

/* A guest of JOB is what IS says. */
static gboolean any_of(FakeAgent *agent, guint64 job, gboolean (*is)(const Guest *guest))
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, agent->guests);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const Guest *guest = value;
        if (guest->id.job == job && is(guest))
            return TRUE;
    }
    return FALSE;
}

static gboolean is_frozen(const Guest *guest)
{
    return guest->is_frozen;
}

gboolean fake_agent_is_frozen(FakeAgent *agent, guint64 job)
{
    return any_of(agent, job, is_frozen);
}

static gboolean end_if_it_runs(Guest *guest, guint32 status)
{
    if (!guest || guest->phase != BERTH__GUEST_STATUS__PHASE__ACTIVE) {
        return FALSE;
    }
    guest->plan.status = status;
    end_guest(guest);
    return TRUE;
}

gboolean fake_agent_end(FakeAgent *agent, guint64 job, guint32 status)
{
    return end_if_it_runs(find_job(agent, job), status);
}

gboolean fake_agent_end_task(FakeAgent *agent, guint64 job, guint32 index, guint32 status)
{
    return end_if_it_runs(find_task(agent, job, index), status);
}

void fake_agent_write(FakeAgent *agent, guint64 job, gboolean is_stderr, const char *text)
{
    Guest *guest = find_job(agent, job);
    if (guest) {
        write_output(guest, is_stderr, text);
        fake_agent_report(agent);
    }
}

/* --- what the node is told ---------------------------------------------------------------------- */

static void delayed_free(gpointer data)
{
    Delayed *delayed = data;
    if (delayed->timer != 0) {
        g_source_remove(delayed->timer);
        berth_rpc_call_reply(delayed->call, delayed->reply);
    }
    g_free(delayed);
}

static gboolean on_delay(gpointer user_data)
{
    Delayed *delayed = user_data;
    delayed->timer = 0;
    berth_rpc_call_reply(delayed->call, delayed->reply);
    g_hash_table_remove(delayed->agent->delayed, delayed);
    return G_SOURCE_REMOVE;
}

static void answer(FakeAgent *agent, BerthRpcCall *call, const ProtobufCMessage *reply)
{
    if (agent->delay_msec == 0) {
        berth_rpc_call_reply(call, reply);
        return;
    }
    Delayed *delayed = g_new0(Delayed, 1);
    delayed->agent = agent;
    delayed->call = call;
    delayed->reply = reply;
    delayed->timer = g_timeout_add(agent->delay_msec, on_delay, delayed);
    g_hash_table_add(agent->delayed, delayed);
}

static void remember_start(FakeAgent *agent, const Berth__StartGuestRequest *request)
{
    g_hash_table_insert(agent->starts, GSIZE_TO_POINTER(request->id->job),
                        berth_message_copy(&request->base));
}

static void agent_start_guest(Berth__Agent_Service *service,
                              const Berth__StartGuestRequest *request,
                              Berth__StartGuestReply_Closure closure, void *closure_data)
{
    static const Berth__StartGuestReply reply = BERTH__START_GUEST_REPLY__INIT;
    FakeAgent *agent = agent_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    BerthGuestId id = id_of(request->id);
    remember_start(agent, request);
    if (g_hash_table_contains(agent->guests, &id)) {
        answer(agent, call, &reply.base); /* the same again */
        return;
    }
    FakePlan plan = {0};
    if (agent->config.plan) {
        agent->config.plan(request, &plan, agent->config.user_data);
    }
    if (plan.refuse && !plan.refuse_on_stop) {
        refuse(call, plan.refuse);
        return;
    }
    Guest *guest = g_new0(Guest, 1);
    guest->agent = agent;
    guest->id = id;
    guest->plan = plan;
    guest->log_id = g_strdup(request->log_id);
    if (request->restore)
        cut_output(guest);
    guest->phase = BERTH__GUEST_STATUS__PHASE__STARTING;
    g_hash_table_insert(agent->guests, &guest->id, guest);
    if (plan.refuse) {
        guest->start = call;
        return;
    }
    guest->timer = g_timeout_add(plan.boot_msec, on_booted, guest);
    answer(agent, call, &reply.base);
}

static void agent_stop_guest(Berth__Agent_Service *service, const Berth__StopGuestRequest *request,
                             Berth__StopGuestReply_Closure closure, void *closure_data)
{
    static const Berth__StopGuestReply known = BERTH__STOP_GUEST_REPLY__INIT;
    static Berth__StopGuestReply unknown = BERTH__STOP_GUEST_REPLY__INIT;
    unknown.unknown = TRUE;
    FakeAgent *agent = agent_of(service);
    BerthGuestId id = id_of(request->id);
    Guest *guest = g_hash_table_lookup(agent->guests, &id);
    agent->n_stops++;
    answer(agent, BERTH_RPC_CALL(closure_data), guest ? &known.base : &unknown.base);
    if (guest && guest->start) {
        g_hash_table_remove(agent->guests, &id);
        return;
    }
    if (!guest || guest->plan.ignores_stop || guest->phase == BERTH__GUEST_STATUS__PHASE__ENDED ||
        guest->phase == BERTH__GUEST_STATUS__PHASE__GONE) {
        return;
    }
    guest->is_frozen = FALSE;
    guest->plan.signal = SIGTERM;
    end_guest(guest);
}

static void agent_freeze_guest(Berth__Agent_Service *service,
                               const Berth__FreezeGuestRequest *request,
                               Berth__FreezeGuestReply_Closure closure, void *closure_data)
{
    static const Berth__FreezeGuestReply reply = BERTH__FREEZE_GUEST_REPLY__INIT;
    FakeAgent *agent = agent_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    BerthGuestId id = id_of(request->id);
    Guest *guest = g_hash_table_lookup(agent->guests, &id);
    g_autoptr(GError) error = NULL;
    agent->n_freezes++;
    if (!guest || guest->plan.freeze_error) {
        error = g_error_new_literal(BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                                    guest ? guest->plan.freeze_error : "there is no such guest");
        berth_rpc_call_fail(call, error);
        return;
    }
    guest->is_frozen = TRUE;
    answer(agent, call, &reply.base);
}

static void agent_thaw_guest(Berth__Agent_Service *service, const Berth__ThawGuestRequest *request,
                             Berth__ThawGuestReply_Closure closure, void *closure_data)
{
    static const Berth__ThawGuestReply reply = BERTH__THAW_GUEST_REPLY__INIT;
    FakeAgent *agent = agent_of(service);
    BerthGuestId id = id_of(request->id);
    Guest *guest = g_hash_table_lookup(agent->guests, &id);
    agent->n_freezes++;
    if (guest)
        guest->is_frozen = FALSE;
    answer(agent, BERTH_RPC_CALL(closure_data), &reply.base);
}

/* --- moves --------------------------------------------------------------------------------------- */

void fake_agent_set_moves(FakeAgent *agent, const FakeMoves *moves)
{
    agent->moves = *moves;
}

guint fake_agent_n_moves(FakeAgent *agent)
{
    return agent->n_moves;
}

static gboolean is_here(const Guest *guest)
{
    return !guest->is_coming;
}

gboolean fake_agent_has(FakeAgent *agent, guint64 job)
{
    return any_of(agent, job, is_here);
}

static void fail_call(BerthRpcCall *call, BerthErrorCode code, const char *why)
{
    g_autoptr(GError) error = g_error_new_literal(BERTH_ERROR, (gint)code, why);
    berth_rpc_call_fail(call, error);
}

static void agent_receive_guest(Berth__Agent_Service *service,
                                const Berth__ReceiveGuestRequest *request,
                                Berth__ReceiveGuestReply_Closure closure, void *closure_data)
{
    FakeAgent *agent = agent_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    Berth__MigrationTarget target = BERTH__MIGRATION_TARGET__INIT;
    Berth__ReceiveGuestReply reply = BERTH__RECEIVE_GUEST_REPLY__INIT;
    target.libvirt_uri = (char *)agent->config.name;
    reply.target = &target;
    if (agent->moves.receive_error)
        fail_call(call, BERTH_ERROR_FAILED_PRECONDITION, agent->moves.receive_error);
    else
        berth_rpc_call_reply(call, &reply.base);
}

/* As libvirt does it: it stands still there until it is taken. */
static void hand_over(FakeAgent *agent, Guest *guest)
{
    Guest *copy = g_memdup2(guest, sizeof *guest);
    copy->agent = agent->moves.to;
    copy->log_id = g_strdup(guest->log_id);
    copy->timer = 0;
    copy->plan.storage_client = g_intern_string(copy->agent->moves.client);
    copy->is_frozen = copy->is_coming = TRUE;
    g_hash_table_replace(copy->agent->guests, &copy->id, copy);
    g_hash_table_remove(agent->guests, &guest->id);
}

/* Its copy ends here. */
static void end_held_move(FakeAgent *agent)
{
    BerthRpcCall *held = g_steal_pointer(&agent->held_move);
    if (held)
        fail_call(held, BERTH_ERROR_CANCELLED, "it is to stay");
}

static void say_left(FakeAgent *agent, BerthRpcCall *call)
{
    Berth__MigrateGuestReply reply = BERTH__MIGRATE_GUEST_REPLY__INIT;
    reply.usage = (Berth__Usage *)agent->moves.used;
    berth_rpc_call_reply(call, &reply.base);
}

void fake_agent_end_copy(FakeAgent *agent, guint64 job)
{
    hand_over(agent, find_job(agent, job));
    say_left(agent, g_steal_pointer(&agent->held_move));
}

static void agent_migrate_guest(Berth__Agent_Service *service,
                                const Berth__MigrateGuestRequest *request,
                                Berth__MigrateGuestReply_Closure closure, void *closure_data)
{
    FakeAgent *agent = agent_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    BerthGuestId id = id_of(request->id);
    Guest *guest = g_hash_table_lookup(agent->guests, &id);
    agent->n_moves++;
    end_held_move(agent);
    if (guest && !request->target) {
        fail_call(call, BERTH_ERROR_CANCELLED, "it is to stay");
    } else if (guest && agent->moves.holds) {
        agent->held_move = call;
    } else if (guest && agent->moves.leave_error) {
        fail_call(call, BERTH_ERROR_INTERNAL, agent->moves.leave_error);
    } else {
        if (guest)
            hand_over(agent, guest);
        if (guest && agent->moves.loses_answer)
            fake_agent_drop(agent);
        say_left(agent, call);
    }
}

static void agent_take_guest(Berth__Agent_Service *service, const Berth__TakeGuestRequest *request,
                             Berth__TakeGuestReply_Closure closure, void *closure_data)
{
    Berth__TakeGuestReply reply = BERTH__TAKE_GUEST_REPLY__INIT;
    char *clients[1] = {NULL};
    FakeAgent *agent = agent_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    BerthGuestId id = id_of(request->id);
    if (agent->moves.loses_guest)
        g_hash_table_remove(agent->guests, &id);
    Guest *guest = g_hash_table_lookup(agent->guests, &id);
    if (!guest) {
        fail_call(call, BERTH_ERROR_NOT_FOUND, "it has not come");
        return;
    }
    if (!request->waits) {
        guest->is_coming = FALSE;
        guest->is_frozen = request->frozen;
    }
    if (!request->waits && agent->moves.is_cut_off)
        fake_agent_cut(agent);
    clients[0] = (char *)guest->plan.storage_client;
    reply.storage_clients = clients;
    reply.n_storage_clients = clients[0] != NULL;
    berth_rpc_call_reply(call, &reply.base);
}

static void agent_resize_guest(Berth__Agent_Service *service,
                               const Berth__ResizeGuestRequest *request,
                               Berth__ResizeGuestReply_Closure closure, void *closure_data)
{
    static const Berth__ResizeGuestReply reply = BERTH__RESIZE_GUEST_REPLY__INIT;
    FakeAgent *agent = agent_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    BerthGuestId id = id_of(request->id);
    Guest *guest = g_hash_table_lookup(agent->guests, &id);
    if (!guest) {
        fail_call(call, BERTH_ERROR_NOT_FOUND, "there is no such guest");
    } else if (guest->plan.resize_error && guest->plan.resize_has_mib > 0 && request->settles) {
        Berth__ResizeGuestReply settled = BERTH__RESIZE_GUEST_REPLY__INIT;
        Berth__Error why = BERTH__ERROR__INIT;
        why.code = BERTH__ERROR_CODE__ERROR_FAILED_PRECONDITION;
        why.message = (char *)guest->plan.resize_error;
        settled.error = &why;
        settled.vcpus = 1;
        settled.memory_mib = guest->plan.resize_has_mib;
        berth_rpc_call_reply(call, &settled.base);
    } else if (guest->plan.resize_error) {
        fail_call(call, BERTH_ERROR_FAILED_PRECONDITION, guest->plan.resize_error);
    } else {
        guest->size = *request;
        guest->size.id = NULL;
        answer(agent, call, &reply.base);
    }
}

static void agent_release_guest(Berth__Agent_Service *service,
                                const Berth__ReleaseGuestRequest *request,
                                Berth__ReleaseGuestReply_Closure closure, void *closure_data)
{
    static const Berth__ReleaseGuestReply reply = BERTH__RELEASE_GUEST_REPLY__INIT;
    FakeAgent *agent = agent_of(service);
    BerthGuestId id = id_of(request->id);
    g_hash_table_remove(agent->guests, &id);
    berth_message_free(agent->release ? &agent->release->base : NULL);
    agent->release = (Berth__ReleaseGuestRequest *)berth_message_copy(&request->base);
    answer(agent, BERTH_RPC_CALL(closure_data), &reply.base);
}

void fake_agent_set_saves(FakeAgent *agent, const FakeSaves *saves)
{
    agent->saves = *saves;
}

guint fake_agent_n_saves(FakeAgent *agent)
{
    return agent->n_saves;
}

const Berth__CheckpointGuestRequest *fake_agent_save(FakeAgent *agent)
{
    return agent->save;
}

const Berth__ReleaseGuestRequest *fake_agent_release(FakeAgent *agent)
{
    return agent->release;
}

static void end_held_save(FakeAgent *agent)
{
    BerthRpcCall *held = g_steal_pointer(&agent->held_save);
    if (held)
        fail_call(held, BERTH_ERROR_UNAVAILABLE, "the agent ends");
}

/* One that takes for ever is answered when it is asked for again, or the agent ends. */
static void agent_checkpoint_guest(Berth__Agent_Service *service,
                                   const Berth__CheckpointGuestRequest *request,
                                   Berth__CheckpointGuestReply_Closure closure, void *closure_data)
{
    Berth__CheckpointGuestReply reply = BERTH__CHECKPOINT_GUEST_REPLY__INIT;
    FakeAgent *agent = agent_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    BerthGuestId id = id_of(request->id);
    Guest *guest = g_hash_table_lookup(agent->guests, &id);
    agent->n_saves++;
    berth_message_free(agent->save ? &agent->save->base : NULL);
    agent->save = (Berth__CheckpointGuestRequest *)berth_message_copy(&request->base);
    gboolean fails = agent->saves.error &&
                     (agent->saves.n_errors == 0 || agent->n_saves <= agent->saves.n_errors);
    if (!guest || fails) {
        BerthErrorCode code =
            agent->saves.passes ? BERTH_ERROR_UNAVAILABLE : BERTH_ERROR_RESOURCE_EXHAUSTED;
        fail_call(call, guest ? code : BERTH_ERROR_NOT_FOUND,
                  guest ? agent->saves.error : "there is no such guest");
        return;
    }
    end_held_save(agent);
    if (agent->saves.holds) {
        agent->held_save = call;
        return;
    }
    guest->is_frozen |= request->stop;
    reply.stdout_bytes = agent->saved_bytes[FALSE] = guest->bytes[FALSE];
    reply.stderr_bytes = agent->saved_bytes[TRUE] = guest->bytes[TRUE];
    reply.memory_bytes = agent->saves.memory_bytes;
    reply.disk_bytes = agent->saves.disk_bytes;
    reply.pause_usec = 5000;
    reply.taken_usec = (guint64)g_get_real_time();
    reply.usage = (Berth__Usage *)guest->plan.usage;
    answer(agent, call, &reply.base);
}

/* --- the table ----------------------------------------------------------------------------------- */

void fake_agent_guests_init(FakeAgent *agent)
{
    static const Berth__Agent_Service template = BERTH__AGENT__INIT(agent_);
    agent->service = template;
    agent->services[0] = &agent->service.base;
    agent->guests =
        g_hash_table_new_full(berth_guest_id_hash, berth_guest_id_equal_func, NULL, guest_free);
    agent->runs = g_hash_table_new(NULL, NULL);
    agent->starts = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)berth_message_free);
    agent->delayed = g_hash_table_new_full(NULL, NULL, delayed_free, NULL);
}

void fake_agent_guests_end_delays(FakeAgent *agent)
{
    end_held_move(agent);
    end_held_save(agent);
    g_clear_pointer(&agent->delayed, g_hash_table_unref);
    berth_message_free(agent->save ? &agent->save->base : NULL);
    berth_message_free(agent->release ? &agent->release->base : NULL);
}

void fake_agent_guests_clear(FakeAgent *agent)
{
    g_hash_table_unref(agent->guests);
    g_hash_table_unref(agent->runs);
    g_hash_table_unref(agent->starts);
    berth_message_free(agent->report_reply ? &agent->report_reply->base : NULL);
}

void fake_agent_tell_all(FakeAgent *agent)
{
    GHashTableIter iter;
    gpointer guest;
    g_hash_table_iter_init(&iter, agent->guests);
    while (g_hash_table_iter_next(&iter, NULL, &guest)) {
        if (!((const Guest *)guest)->is_coming)
            tell(guest);
    }
}

void fake_agent_crash(FakeAgent *agent)
{
    g_hash_table_remove_all(agent->guests);
}

guint fake_agent_n_guests(FakeAgent *agent)
{
    return g_hash_table_size(agent->guests);
}

guint fake_agent_n_stops(FakeAgent *agent)
{
    return agent->n_stops;
}

guint fake_agent_runs(FakeAgent *agent, guint64 job)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(agent->runs, GSIZE_TO_POINTER(job)));
}

const Berth__StartGuestRequest *fake_agent_start(FakeAgent *agent, guint64 job)
{
    return g_hash_table_lookup(agent->starts, GSIZE_TO_POINTER(job));
}
