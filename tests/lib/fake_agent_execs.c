/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the commands that a fake node runs for people: the newest is the test's to let speak and end. */
#include "tests/lib/fake_agent_internal.h"

#include "common/error.h"
#include "common/message.h"

static FakeAgent *agent_of(Berth__Execs_Service *service)
{
    return ((FakeExecs *)(void *)service)->agent;
}

static void forget(FakeExecs *execs)
{
    g_clear_pointer(&execs->request, berth_message_free);
    execs->run = NULL;
}

static void on_cancelled(BerthRpcCall *call, gpointer user_data)
{
    FakeAgent *agent = user_data;
    g_autoptr(GError) error =
        g_error_new_literal(BERTH_ERROR, BERTH_ERROR_CANCELLED, "nobody waits for it any more");
    agent->execs.n_cancelled++;
    if (agent->execs.run == call)
        forget(&agent->execs);
    berth_rpc_call_fail(call, error);
}

static void execs_run(Berth__Execs_Service *service, const Berth__ExecRequest *request,
                      Berth__ExecOutput_Closure closure, void *closure_data)
{
    FakeAgent *agent = agent_of(service);
    Berth__ExecOutput item = BERTH__EXEC_OUTPUT__INIT;
    forget(&agent->execs);
    agent->execs.run = BERTH_RPC_CALL(closure_data);
    agent->execs.request = berth_message_copy(&request->base);
    item.body_case = BERTH__EXEC_OUTPUT__BODY_EXEC;
    item.exec = request->exec;
    berth_rpc_call_set_cancelled_func(agent->execs.run, on_cancelled, agent);
    berth_rpc_call_send_item(agent->execs.run, &item.base);
}

static void execs_input(Berth__Execs_Service *service, const Berth__ExecInputRequest *request,
                        Berth__ExecInputReply_Closure closure, void *closure_data)
{
    FakeExecs *execs = &agent_of(service)->execs;
    Berth__ExecInputReply reply = BERTH__EXEC_INPUT_REPLY__INIT;
    g_string_append_len(execs->input, (const char *)request->data.data, (gssize)request->data.len);
    execs->input_has_ended = execs->input_has_ended || request->end;
    execs->signal = request->signal != 0 ? request->signal : execs->signal;
    execs->acked = request->stdout_bytes;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &reply.base);
}

const Berth__ExecRequest *fake_agent_exec(FakeAgent *agent)
{
    return (const Berth__ExecRequest *)(const void *)agent->execs.request;
}

const FakeExecs *fake_agent_execs(FakeAgent *agent)
{
    return &agent->execs;
}

void fake_agent_exec_say(FakeAgent *agent, gboolean is_stderr, guint64 offset, const void *data,
                         gsize length)
{
    Berth__ExecOutput__Data body = BERTH__EXEC_OUTPUT__DATA__INIT;
    Berth__ExecOutput item = BERTH__EXEC_OUTPUT__INIT;
    body.is_stderr = is_stderr;
    body.offset = offset;
    body.data = (ProtobufCBinaryData){length, (guint8 *)data};
    item.body_case = BERTH__EXEC_OUTPUT__BODY_DATA;
    item.data = &body;
    berth_rpc_call_send_item(agent->execs.run, &item.base);
}

void fake_agent_exec_end(FakeAgent *agent, guint32 status, const char *error)
{
    Berth__Exit exit = BERTH__EXIT__INIT;
    Berth__ExecOutput item = BERTH__EXEC_OUTPUT__INIT;
    BerthRpcCall *call = agent->execs.run;
    exit.status = status;
    exit.error = (char *)error;
    item.body_case = BERTH__EXEC_OUTPUT__BODY_EXIT;
    item.exit = &exit;
    forget(&agent->execs);
    berth_rpc_call_send_item(call, &item.base);
    berth_rpc_call_end(call);
}

void fake_agent_execs_init(FakeAgent *agent)
{
    static const Berth__Execs_Service template = BERTH__EXECS__INIT(execs_);
    agent->execs.service = template;
    agent->execs.agent = agent;
    agent->execs.input = g_string_new(NULL);
    agent->services[1] = &agent->execs.service.base;
}

void fake_agent_execs_clear(FakeAgent *agent)
{
    forget(&agent->execs);
    g_string_free(agent->execs.input, TRUE);
}
