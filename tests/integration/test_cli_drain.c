/* SPDX-License-Identifier: Apache-2.0 */
/* What `berth node drain` says of jobs that are left, with a daemon that says what becomes of each. */
#include "tests/lib/cli_process.h"
#include "tests/lib/scripted_daemon.h"

typedef struct {
    Berth__Jobs_Service jobs; /* first: handlers get its address */
    Berth__Nodes_Service nodes;
    ScriptedDaemon daemon;
} Script;

/* Of a guest that is left, by its place in the plan, from job 1 on. */
static const struct {
    gboolean moves, lacks_room, into_slack, checkpoints, lacks_space, is_leaving, has_ended;
    const char *why;
} left[] = {
    {.moves = TRUE, .why = "it was not moved in time"},
    {.moves = TRUE, .lacks_room = TRUE, .why = "there was no room for it elsewhere in time"},
    {.moves = TRUE,
     .lacks_room = TRUE,
     .checkpoints = TRUE,
     .why = "there was no room for it elsewhere in time"},
    {.moves = TRUE,
     .lacks_room = TRUE,
     .into_slack = TRUE,
     .checkpoints = TRUE,
     .why = "there was no room for it elsewhere in time but in slack, into which it has not moved "
            "yet"},
    {.is_leaving = TRUE, .why = "it is being checkpointed, which was not done in time"},
    {.checkpoints = TRUE, .why = "it cannot be moved, and was not checkpointed"},
    {.checkpoints = TRUE,
     .lacks_space = TRUE,
     .why = "it cannot be moved, and there is not so much space left for a checkpoint of it"},
    {.why = "it can be neither moved nor checkpointed"},
    {.has_ended = TRUE, .why = "it has ended, and its guest is being removed"},
};

static void on_cancelled(BerthRpcCall *call, gpointer user_data)
{
    berth_rpc_call_end(call);
}

/* Nothing happens. */
static void on_watch(Berth__Jobs_Service *service, const Berth__WatchRequest *request,
                     Berth__Event_Closure closure, void *closure_data)
{
    berth_rpc_call_set_cancelled_func(BERTH_RPC_CALL(closure_data), on_cancelled, NULL);
}

static void on_drain(Berth__Nodes_Service *service, const Berth__ChangeNodesRequest *request,
                     Berth__ChangeNodesReply_Closure closure, void *closure_data)
{
    Berth__ChangeNodesReply reply = BERTH__CHANGE_NODES_REPLY__INIT;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &reply.base);
}

static void on_get_node(Berth__Nodes_Service *service, const Berth__GetNodeRequest *request,
                        Berth__Node_Closure closure, void *closure_data)
{
    Berth__Node node = BERTH__NODE__INIT;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &node.base);
}

static void on_plan_drain(Berth__Nodes_Service *service, const Berth__PlanDrainRequest *request,
                          Berth__DrainPlan_Closure closure, void *closure_data)
{
    Berth__DrainStep steps[G_N_ELEMENTS(left)], *pointers[G_N_ELEMENTS(left)];
    Berth__GuestId guests[G_N_ELEMENTS(left)];
    Berth__DrainPlan plan = BERTH__DRAIN_PLAN__INIT;
    for (gsize i = 0; i < G_N_ELEMENTS(left); i++) {
        guests[i] = (Berth__GuestId)BERTH__GUEST_ID__INIT;
        guests[i].job = i + 1;
        steps[i] = (Berth__DrainStep)BERTH__DRAIN_STEP__INIT;
        steps[i].guest = &guests[i];
        steps[i].state =
            left[i].has_ended ? BERTH__JOB_STATE__COMPLETED : BERTH__JOB_STATE__RUNNING;
        steps[i].limit_usec = left[i].has_ended ? (guint64)g_get_real_time() : 0;
        steps[i].moves = left[i].moves;
        steps[i].lacks_room = left[i].lacks_room;
        steps[i].into_slack = left[i].into_slack;
        steps[i].checkpoints = left[i].checkpoints;
        steps[i].lacks_space = left[i].lacks_space;
        steps[i].is_leaving = left[i].is_leaving;
        pointers[i] = &steps[i];
    }
    plan.steps = pointers;
    plan.n_steps = G_N_ELEMENTS(left);
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &plan.base);
}

static int setup(void **state)
{
    Script *script = g_new0(Script, 1);
    script->jobs = (Berth__Jobs_Service){.watch = on_watch};
    script->nodes = (Berth__Nodes_Service){
        .base = {.descriptor = &berth__nodes__descriptor,
                 .invoke = protobuf_c_service_invoke_internal},
        .get = on_get_node,
        .drain = on_drain,
        .plan_drain = on_plan_drain,
    };
    script->daemon.services[2] = &script->nodes.base;
    scripted_daemon_start(&script->daemon, &script->jobs);
    *state = script;
    return 0;
}

static int teardown(void **state)
{
    Script *script = *state;
    scripted_daemon_stop(&script->daemon);
    g_free(script);
    return 0;
}

static void drain_that_is_late_says_why_each_is_left(void **state)
{
    Script *script = *state;
    const char *const words[] = {"node",     "drain",      "n1", "--reason",
                                 "upgrades", "--deadline", "1s", NULL};
    g_autoptr(CliProcess) cli = cli_start(script->daemon.socket, words, NULL);
    assert_cli_status(cli, 1);
    for (gsize i = 0; i < G_N_ELEMENTS(left); i++) {
        g_autofree char *line =
            g_strdup_printf("n1: job %zu is still there: %s\n", i + 1, left[i].why);
        assert_contains(cli_out(cli), line);
    }
    assert_contains(cli_err(cli), "9 jobs have not left n1 by the deadline");
}

static void plan_has_no_time_limit_of_one_that_has_ended(void **state)
{
    Script *script = *state;
    const char *const words[] = {"node", "drain", "n1", "--plan", NULL};
    g_autofree char *plan = cli_output_of(cli_start(script->daemon.socket, words, NULL));
    assert_true(g_regex_match_simple("\n.* 9 .* COMPLETED  is being removed +- +-\n", plan, 0, 0));
    assert_contains(plan, "\n1 of 9 have ended, and their guests are being removed\n");
    assert_contains(plan, "\nnobody knows when 1 of 9 end: ");
}

#define SCRIPTED(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCRIPTED(drain_that_is_late_says_why_each_is_left),
        SCRIPTED(plan_has_no_time_limit_of_one_that_has_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
