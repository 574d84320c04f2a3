/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the commands that people run beside jobs and on nodes: which call of a user's belongs to which of an agent's, and what
 * the event log has of it. Where one may run is exec_target.c's to say.
 *
 * Invariants: a command is logged before an agent hears of it, and its end before its user does; each has one of
 * the user's streams as long as it is known here; what an agent sends beyond the window ends it. */
#include "config.h"

#include "scheduler/daemon/execs.h"

#include <string.h>

#include "common/error.h"
#include "common/exec.h"
#include "scheduler/daemon/exec_target.h"
#include "scheduler/daemon/refusals.h"
#include "scheduler/daemon/services.h"
#include "scheduler/daemon/spec_check.h"

/* Of one user at a time: a node runs 256 for all. */
#define USER_EXECS_MAX 64u
/* Of a command, in the event log. */
#define TEXT_MAX_BYTES 1024u

struct BerthExecs {
    BerthDaemon *daemon;
    GHashTable *running; /* guint64 -> Exec */
};

typedef struct {
    BerthExecs *execs;
    guint64 id;
    BerthRpcCall *call;                /* of the user */
    BerthRpcPeer *client;              /* CALL's: a reference */
    const Berth__ExecRequest *request; /* CALL's */
    char *user;
    char *node_name;
    BerthGuestId guest;
    BerthRpcPeer *peer;        /* the agent's: a reference; NULL before it was asked */
    GCancellable *cancellable; /* of the agent's stream */
    guint64 sent[2], acked[2];
    char *outcome; /* NULL: it has not ended by itself */
    char *broken;  /* why the agent's stream was ended here, or NULL */
} Exec;

static void exec_free(gpointer data)
{
    Exec *exec = data;
    g_clear_pointer(&exec->peer, berth_rpc_peer_unref);
    g_clear_pointer(&exec->client, berth_rpc_peer_unref);
    g_object_unref(exec->cancellable);
    g_free(exec->user);
    g_free(exec->node_name);
    g_free(exec->outcome);
    g_free(exec->broken);
    g_free(exec);
}

/* Ends the user's call, with ERROR if it is not NULL, and forgets it. */
static void finish(Exec *exec, const GError *error)
{
    if (error)
        berth_rpc_call_fail(exec->call, error);
    else
        berth_rpc_call_end(exec->call);
    g_hash_table_remove(exec->execs->running, &exec->id);
}

/* --- the event log ------------------------------------------------------------------------------ */

/* As somebody would type it, and not more than is of use (transfer full). */
static char *command_text(const Berth__ExecRequest *request)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (gsize i = 0; i < request->n_command && text->len <= TEXT_MAX_BYTES; i++) {
        const char *word = request->command[i];
        gboolean is_plain = *word && strspn(word, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS
                                            "%+,-./:=@_") == strlen(word);
        g_autofree char *quoted = is_plain ? g_strdup(word) : g_shell_quote(word);
        g_string_append_printf(text, "%s%s", i > 0 ? " " : "", quoted);
    }
    if (text->len > TEXT_MAX_BYTES) {
        g_string_truncate(text, TEXT_MAX_BYTES);
        g_string_append(text, " ...");
    }
    return g_utf8_make_valid(text->str, (gssize)text->len);
}

static void log_event(BerthTurn *turn, const Exec *exec, Berth__Event__Kind kind, const char *text)
{
    Berth__Event event = BERTH__EVENT__INIT;
    event.kind = kind;
    event.job = exec->guest.job;
    event.task = exec->guest.task;
    event.epoch = exec->guest.epoch;
    event.node = exec->node_name;
    event.user = exec->user;
    event.text = (char *)text;
    event.exec = exec->id;
    if (kind == BERTH__EVENT__KIND__EXEC_BEGUN)
        event.why = exec->request->reason;
    berth_turn_log(turn, &event);
}

/* --- its end ------------------------------------------------------------------------------------ */

typedef struct {
    Exec *exec;
    GError *error; /* or NULL */
} Ending;

static void on_end_committed(const GError *error, gpointer user_data)
{
    Ending *ending = user_data;
    finish(ending->exec, ending->error ? ending->error : error);
    g_clear_error(&ending->error);
    g_free(ending);
}

/* ERROR (transfer full): it did not end by itself. */
static void end(Exec *exec, GError *error)
{
    BerthEngine *engine = exec->execs->daemon->engine;
    Ending *ending = g_new(Ending, 1);
    *ending = (Ending){exec, error};
    if (berth_engine_is_stopped(engine)) {
        on_end_committed(NULL, ending);
        return;
    }
    const char *text = exec->outcome                             ? exec->outcome
                       : berth_rpc_call_is_cancelled(exec->call) ? "left by who ran it, and ended"
                                                                 : error->message;
    BerthTurn *turn = berth_engine_begin(engine);
    log_event(turn, exec, BERTH__EVENT__KIND__EXEC_ENDED, text);
    berth_turn_then(turn, on_end_committed, ending);
    berth_turn_commit(turn);
}

static char *outcome_text(const Berth__Exit *exit)
{
    if (*exit->error)
        return g_utf8_make_valid(exit->error, -1);
    if (exit->signal != 0)
        return g_strdup_printf("ended by signal %u", exit->signal);
    return g_strdup_printf("ended with status %u", exit->status);
}

/* --- what comes from the agent ------------------------------------------------------------------ */

/* FALSE: more than its window, and more than may be queued for a user who does not read. */
static gboolean count(Exec *exec, const Berth__ExecOutput__Data *data)
{
    guint stream = data->is_stderr ? 1 : 0;
    if (data->offset != exec->sent[stream] ||
        data->data.len > exec->acked[stream] + BERTH_EXEC_WINDOW_BYTES - exec->sent[stream])
        return FALSE;
    exec->sent[stream] += data->data.len;
    return TRUE;
}

static gboolean take_item(const ProtobufCMessage *message, gpointer user_data)
{
    const Berth__ExecOutput *item = (const Berth__ExecOutput *)(const void *)message;
    Exec *exec = user_data;
    if (berth_rpc_call_is_cancelled(exec->call) || exec->outcome)
        return FALSE;
    if (item->body_case == BERTH__EXEC_OUTPUT__BODY_DATA && !count(exec, item->data)) {
        exec->broken = g_strdup("the node sent more of its output than was asked for");
        return FALSE;
    }
    if (item->body_case == BERTH__EXEC_OUTPUT__BODY_EXIT)
        exec->outcome = outcome_text(item->exit);
    berth_rpc_call_send_item(exec->call, message);
    return TRUE;
}

static void on_stream_ended(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Exec *exec = user_data;
    GError *error = NULL;
    gboolean ok = berth_rpc_peer_stream_finish(result, &error);
    if (exec->outcome) {
        g_clear_error(&error);
    } else if (ok) {
        error = g_error_new_literal(BERTH_ERROR, BERTH_ERROR_PROTOCOL,
                                    exec->broken ? exec->broken
                                                 : "the node did not say how the command ended");
    } else if (berth_rpc_peer_is_closed(exec->peer)) {
        g_prefix_error(&error,
                       "the connection to node %s was lost, and the command is ended there: ",
                       exec->node_name);
    }
    end(exec, error);
}

static void on_cancelled(BerthRpcCall *call, gpointer user_data)
{
    const Exec *exec = user_data;
    g_cancellable_cancel(exec->cancellable);
}

/* --- its beginning ------------------------------------------------------------------------------ */

static void on_begin_committed(const GError *error, gpointer user_data)
{
    Exec *exec = user_data;
    if (error) {
        finish(exec, error);
        return;
    }
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    Berth__ExecRequest request = *exec->request;
    id.job = exec->guest.job;
    id.task = exec->guest.task;
    id.guest = exec->guest.guest;
    id.epoch = exec->guest.epoch;
    request.guest = exec->guest.job != 0 ? &id : NULL;
    request.exec = exec->id;
    request.reason = (char *)protobuf_c_empty_string; /* nothing that a node has to know */
    berth_rpc_peer_stream_async(exec->peer, &berth__execs__descriptor, "Run", &request.base, 0,
                                exec->cancellable, take_item, on_stream_ended, exec);
}

static void on_user(const char *name, const GError *unnamed, gpointer user_data)
{
    Exec *exec = user_data;
    BerthDaemon *daemon = exec->execs->daemon;
    BerthExecTarget target;
    g_autoptr(GError) error = NULL;
    if (!berth_engine_check(daemon->engine, &error) ||
        !berth_exec_target_find(daemon, exec->request, berth_rpc_call_identity(exec->call), &target,
                                &error)) {
        finish(exec, error);
        return;
    }
    exec->user = g_strdup(name);
    exec->node_name = g_strdup(berth_node_table_name(daemon->nodes, target.node));
    exec->guest = target.guest;
    exec->peer = berth_rpc_peer_ref(target.peer);
    g_autofree char *text = command_text(exec->request);
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    log_event(turn, exec, BERTH__EVENT__KIND__EXEC_BEGUN, text);
    berth_turn_then(turn, on_begin_committed, exec);
    berth_turn_commit(turn);
}

static gboolean check_request(const Berth__ExecRequest *request, GError **error)
{
    gsize bytes = 0;
    for (gsize i = 0; i < request->n_command; i++)
        bytes += strlen(request->command[i]) + 1;
    bytes += request->terminal ? strlen(request->terminal->type) : 0;
    if ((request->guest != NULL) != (*request->node != '\0') && request->n_command > 0 &&
        *request->command[0] && bytes <= BERTH_EXEC_COMMAND_MAX_BYTES)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "the request names neither a guest nor a node, or both, or no command of %u bytes "
                "at most",
                BERTH_EXEC_COMMAND_MAX_BYTES);
    return FALSE;
}

static gboolean check_number(BerthExecs *execs, const BerthRpcIdentity *who, GError **error)
{
    guint n = 0;
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, execs->running);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        n += berth_rpc_peer_identity(((const Exec *)value)->client)->uid == who->uid;
    if (n < USER_EXECS_MAX)
        return TRUE;
    g_set_error(
        error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
        "you run %u commands in guests or on nodes, which are all that one user may at a time", n);
    return FALSE;
}

/* Nobody can guess it, so that a command of one daemon is none of the next one's. */
static guint64 new_id(const BerthExecs *execs)
{
    guint64 id;
    do
        id = (guint64)g_random_int() << 32 | g_random_int();
    while (id == 0 || g_hash_table_contains(execs->running, &id));
    return id;
}

/* Of a job or node that there is, by who may not, or where none can run now. */
static gboolean is_worth_noting(const BerthDaemon *daemon, const Berth__ExecRequest *request,
                                const GError *error)
{
    if (!g_error_matches(error, BERTH_ERROR, BERTH_ERROR_PERMISSION_DENIED) &&
        !g_error_matches(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION))
        return FALSE;
    return request->guest ? berth_job_table_find(daemon->jobs, request->guest->job) != NULL
                          : berth_core_find_node(daemon->core, request->node) != 0;
}

static void refuse(BerthExecs *execs, const Berth__ExecRequest *request, BerthRpcCall *call,
                   const GError *error)
{
    BerthDaemon *daemon = execs->daemon;
    Berth__Event wanted = BERTH__EVENT__INIT;
    g_autofree char *text = command_text(request);
    if (!is_worth_noting(daemon, request, error)) {
        berth_rpc_call_fail(call, error);
        return;
    }
    wanted.kind = BERTH__EVENT__KIND__EXEC_BEGUN;
    wanted.job = request->guest ? request->guest->job : 0;
    wanted.task = request->guest ? request->guest->task : 0;
    wanted.node = request->node;
    wanted.text = text;
    wanted.why = request->reason;
    berth_refuse(daemon->refusals, call, &wanted, error);
}

void berth_execs_run(BerthExecs *execs, const Berth__ExecRequest *request, BerthRpcCall *call)
{
    const BerthRpcIdentity *who = berth_rpc_call_identity(call);
    BerthExecTarget target;
    g_autoptr(GError) error = NULL;
    if (!check_request(request, &error) || !berth_why_check(request->reason, &error) ||
        !check_number(execs, who, &error)) {
        berth_rpc_call_fail(call, error);
        return;
    }
    if (!berth_exec_target_find(execs->daemon, request, who, &target, &error)) {
        refuse(execs, request, call, error);
        return;
    }
    Exec *exec = g_new0(Exec, 1);
    exec->execs = execs;
    exec->id = new_id(execs);
    exec->call = call;
    exec->client = berth_rpc_peer_ref(berth_rpc_call_peer(call));
    exec->request = request;
    exec->cancellable = g_cancellable_new();
    g_hash_table_insert(execs->running, &exec->id, exec);
    berth_rpc_call_set_cancelled_func(call, on_cancelled, exec);
    berth_users_name(execs->daemon->users, who->uid, on_user, exec);
}

/* --- what its user says ------------------------------------------------------------------------- */

static void on_input_answered(GObject *source, GAsyncResult *result, gpointer user_data)
{
    BerthRpcCall *call = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, &error);
    if (reply)
        berth_rpc_call_reply(call, reply);
    else
        berth_rpc_call_fail(call, error);
}

void berth_execs_input(BerthExecs *execs, const Berth__ExecInputRequest *request,
                       BerthRpcCall *call)
{
    Exec *exec = g_hash_table_lookup(execs->running, &request->exec);
    if (!exec || exec->client != berth_rpc_call_peer(call) || !exec->peer) {
        g_autoptr(GError) error =
            g_error_new_literal(BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                                "the command has ended, or is another connection's");
        berth_rpc_call_fail(call, error);
        return;
    }
    exec->acked[0] = CLAMP(request->stdout_bytes, exec->acked[0], exec->sent[0]);
    exec->acked[1] = CLAMP(request->stderr_bytes, exec->acked[1], exec->sent[1]);
    berth_rpc_peer_call_async(exec->peer, &berth__execs__descriptor, "Input", &request->base, 0,
                              exec->cancellable, on_input_answered, call);
}

/* --- the service -------------------------------------------------------------------------------- */

typedef BERTH_SERVICE(Berth__Execs_Service) ExecsService;

static BerthExecs *execs_of(Berth__Execs_Service *service)
{
    return ((ExecsService *)(void *)service)->daemon->execs;
}

static void execs_run(Berth__Execs_Service *service, const Berth__ExecRequest *request,
                      Berth__ExecOutput_Closure closure, void *closure_data)
{
    berth_execs_run(execs_of(service), request, BERTH_RPC_CALL(closure_data));
}

static void execs_input(Berth__Execs_Service *service, const Berth__ExecInputRequest *request,
                        Berth__ExecInputReply_Closure closure, void *closure_data)
{
    berth_execs_input(execs_of(service), request, BERTH_RPC_CALL(closure_data));
}

ProtobufCService *berth_execs_service_new(BerthDaemon *daemon)
{
    static const Berth__Execs_Service template = BERTH__EXECS__INIT(execs_);
    ExecsService *service = g_new0(ExecsService, 1);
    service->base = template;
    service->daemon = daemon;
    return &service->base.base;
}

BerthExecs *berth_execs_new(BerthDaemon *daemon)
{
    BerthExecs *execs = g_new0(BerthExecs, 1);
    execs->daemon = daemon;
    execs->running = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, exec_free);
    return execs;
}

void berth_execs_free(BerthExecs *execs)
{
    g_hash_table_unref(execs->running);
    g_free(execs);
}
