/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the calls of the service Execs, and which command each is about. Who may run what is the scheduler's to
 * say.
 *
 * Invariant: a command runs while the call that began it is open, and not longer; but one on the host, where systemd
 * runs that, may be the one that ends the agent, and goes on then. */
#include <config.h>

#include "nodeagent/exec_service.h"

#include "common/error.h"
#include "common/id.h"
#include "common/rpc.h"
#include "nodeagent/node_exec.h"

#include <string.h>

/* Of all guests: each has two calls of a connection, which may have 1024 open. */
#define NODE_EXECS_MAX 256u

struct BerthExecService {
    Berth__Execs_Service base; /* first: handlers get its address */
    BerthGuestTable *table;
    gboolean allows_host;
    gboolean is_ending;
    GHashTable *running; /* guint64 -> Running */
};

typedef struct {
    BerthExecService *service;
    guint64 id;
    gboolean is_on_host;
    BerthRpcCall *run;
    BerthExec *exec;     /* NULL once it has ended */
    BerthRpcCall *input; /* to be answered when the command has taken it, or NULL */
} Running;

static void fail(BerthRpcCall *call, BerthErrorCode code, const char *why)
{
    g_autoptr(GError) error = g_error_new_literal(BERTH_ERROR, (gint)code, why);
    berth_rpc_call_fail(call, error);
}

static void answer_input(Running *running)
{
    Berth__ExecInputReply reply = BERTH__EXEC_INPUT_REPLY__INIT;
    if (running->input != NULL)
        berth_rpc_call_reply(g_steal_pointer(&running->input), &reply.base);
}

/* --- what the command says -------------------------------------------------------------------- */

static void on_output(gboolean is_stderr, guint64 offset, const guint8 *data, gsize length,
                      gpointer user_data)
{
    const Running *running = user_data;
    Berth__ExecOutput__Data body = BERTH__EXEC_OUTPUT__DATA__INIT;
    Berth__ExecOutput item = BERTH__EXEC_OUTPUT__INIT;
    body.is_stderr = is_stderr;
    body.offset = offset;
    body.data = (ProtobufCBinaryData){length, (guint8 *)data};
    item.body_case = BERTH__EXEC_OUTPUT__BODY_DATA;
    item.data = &body;
    berth_rpc_call_send_item(running->run, &item.base); /* its window bounds what is queued */
}

static void on_taken(gpointer user_data)
{
    answer_input(user_data);
}

static void send_exit(BerthRpcCall *call, const Berth__Exit *exit)
{
    Berth__ExecOutput item = BERTH__EXEC_OUTPUT__INIT;
    item.body_case = BERTH__EXEC_OUTPUT__BODY_EXIT;
    item.exit = (Berth__Exit *)exit;
    berth_rpc_call_send_item(call, &item.base);
    berth_rpc_call_end(call);
}

static void on_ended(const Berth__Exit *exit, const GError *error, gpointer user_data)
{
    Running *running = user_data;
    running->exec = NULL;
    answer_input(running);
    if (exit != NULL)
        send_exit(running->run, exit);
    else
        berth_rpc_call_fail(running->run, error);
    g_hash_table_remove(running->service->running, &running->id);
}

static const BerthExecFuncs exec_funcs = {on_output, on_taken, on_ended};

/* --- what the scheduler says ------------------------------------------------------------------ */

static BerthExecService *service_of(Berth__Execs_Service *base)
{
    return (BerthExecService *)(void *)base;
}

static void on_cancelled(BerthRpcCall *call, gpointer user_data)
{
    Running *running = user_data;
    if (running->service->is_ending && running->is_on_host)
        berth_node_exec_leave(running->exec);
    else
        running->exec->class->close(running->exec);
    answer_input(running);
    fail(running->run, BERTH_ERROR_CANCELLED, "nobody waits for the command any more");
    g_hash_table_remove(running->service->running, &running->id);
}

static gboolean check_request(const BerthExecService *service, const Berth__ExecRequest *request,
                              GError **error)
{
    gsize bytes = 0;
    for (gsize i = 0; i < request->n_command; i++)
        bytes += strlen(request->command[i]) + 1;
    bytes += request->terminal != NULL ? strlen(request->terminal->type) : 0;
    if (request->n_command >= 1 && bytes <= BERTH_EXEC_COMMAND_MAX_BYTES && request->exec != 0 &&
        !g_hash_table_contains(service->running, &request->exec) &&
        (request->guest != NULL) != (*request->node != '\0'))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "the request names neither a guest nor a node, or both, no command of %u bytes at "
                "most, or one that runs",
                BERTH_EXEC_COMMAND_MAX_BYTES);
    return FALSE;
}

static BerthExec *begin_on_host(Running *running, const Berth__ExecRequest *request, GError **error)
{
    if (!running->service->allows_host) {
        g_set_error(
            error, BERTH_ERROR, BERTH_ERROR_PERMISSION_DENIED,
            "no commands run on the host of node %s: to let them, set allow_exec = true in [node] "
            "of berth-node.conf there, and restart the agent",
            request->node);
        return NULL;
    }
    if (request->terminal != NULL) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED,
                            "a command on a host has no terminal");
        return NULL;
    }
    g_message("runs on this host, for an operator (exec %" G_GUINT64_FORMAT
              " in the event log): %s",
              request->exec, request->command[0]);
    return berth_node_exec_open(request->command, request->n_command, &exec_funcs, running, error);
}

static BerthExec *begin(Running *running, const Berth__ExecRequest *request, GError **error)
{
    if (request->guest == NULL)
        return begin_on_host(running, request, error);
    BerthGuestId id = {request->guest->job, request->guest->task, request->guest->guest,
                       request->guest->epoch};
    BerthGuest *guest = berth_guest_table_find(running->service->table, &id);
    if (guest != NULL)
        return berth_guest_exec(guest, request, &exec_funcs, running, error);
    g_autofree char *name = berth_guest_name_format(&id);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "there is no guest %s here", name);
    return NULL;
}

static void execs_run(Berth__Execs_Service *base, const Berth__ExecRequest *request,
                      Berth__ExecOutput_Closure closure, void *closure_data)
{
    BerthExecService *service = service_of(base);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    g_autoptr(GError) error = NULL;
    if (!check_request(service, request, &error)) {
        berth_rpc_call_fail(call, error);
        return;
    }
    if (g_hash_table_size(service->running) >= NODE_EXECS_MAX) {
        fail(call, BERTH_ERROR_RESOURCE_EXHAUSTED,
             "the node runs as many commands for people as it may at a time; try again later");
        return;
    }
    g_autofree Running *running = g_new0(Running, 1);
    *running = (Running){
        .service = service, .id = request->exec, .is_on_host = request->guest == NULL, .run = call};
    running->exec = begin(running, request, &error);
    if (running->exec == NULL) {
        berth_rpc_call_fail(call, error);
        return;
    }
    Berth__ExecOutput item = BERTH__EXEC_OUTPUT__INIT;
    item.body_case = BERTH__EXEC_OUTPUT__BODY_EXEC;
    item.exec = request->exec;
    g_hash_table_insert(service->running, &running->id, running);
    berth_rpc_call_set_cancelled_func(call, on_cancelled, running);
    g_steal_pointer(&running);
    berth_rpc_call_send_item(call, &item.base);
}

static void execs_input(Berth__Execs_Service *base, const Berth__ExecInputRequest *request,
                        Berth__ExecInputReply_Closure closure, void *closure_data)
{
    Running *running = g_hash_table_lookup(service_of(base)->running, &request->exec);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    gboolean has_input = request->data.len > 0 || request->end;
    if (running == NULL) {
        fail(call, BERTH_ERROR_NOT_FOUND, "the command has ended");
        return;
    }
    if (request->data.len > BERTH_EXEC_INPUT_MAX_BYTES || (has_input && running->input != NULL)) {
        fail(call, BERTH_ERROR_INVALID_ARGUMENT,
             "more input for a command than it may be given at a time");
        return;
    }
    const guint64 acked[2] = {request->stdout_bytes, request->stderr_bytes};
    running->exec->class->control(running->exec, acked, request->signal);
    if (request->size != NULL)
        running->exec->class->resize(running->exec, request->size);
    Berth__ExecInputReply reply = BERTH__EXEC_INPUT_REPLY__INIT;
    if (!has_input) {
        berth_rpc_call_reply(call, &reply.base);
        return;
    }
    running->input = call;
    running->exec->class->input(running->exec, request->data.data, request->data.len, request->end);
}

/* --- life ------------------------------------------------------------------------------------- */

BerthExecService *berth_exec_service_new(BerthGuestTable *table, gboolean allows_host)
{
    static const Berth__Execs_Service template = BERTH__EXECS__INIT(execs_);
    BerthExecService *service = g_new0(BerthExecService, 1);
    service->base = template;
    service->table = table;
    service->allows_host = allows_host;
    service->running = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, g_free);
    return service;
}

void berth_exec_service_end(BerthExecService *service)
{
    service->is_ending = TRUE;
}

void berth_exec_service_free(BerthExecService *service)
{
    if (service == NULL)
        return;
    g_hash_table_unref(service->running);
    g_free(service);
}

ProtobufCService *berth_exec_service_base(BerthExecService *service)
{
    return &service->base.base;
}
