/* SPDX-License-Identifier: Apache-2.0 */
/* What people may ask for, and what a restart does not change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/error.h"
#include "tests/unit/core_script.h"

static void run(const char *script)
{
    core_script_run(&core_script_config, script);
}

static void submit_checks_size_against_known_nodes(void **state)
{
    run("submit 1 v=1000 m=999999\n" /* nobody knows better yet */
        "node 1 4 1000\n"
        "node 2 8 500\n"
        "submit 2 v=4 m=1001 ! the largest, n1, has 4 vCPUs and 1000 MiB\n"
        "submit 2 v=8 m=501 ! no node is large enough for 8 vCPUs and 501 MiB\n"
        "submit 2 v=1 m=1001 ! no node is large enough for 1 vCPU and 1001 MiB\n"
        "submit 2 v=5 nodes=1 ! of those that you named, n1, has 4 vCPUs\n"
        "submit 2 v=0 ! at least 1 vCPU\n"
        "submit 2 m=0 ! at least 1 vCPU\n"
        "submit 2 nodes=7 ! handle 7\n"
        "submit 0 ! number 0 is in use\n"
        "submit 1 ! number 1 is in use\n"
        "left 2\n"
        "submit 2 v=8 m=500\n" /* away, but known */
        "why 2 node-unavailable\n"
        "why 1 node-unavailable\n"
        "node 3 16 300\n"
        "submit 3 v=17 m=300 ! the largest, n1, has 4 vCPUs and 1000 MiB\n"
        "submit 3 v=16 m=300 -> START 3.1@3\n");
}

/* As it is told of what a job begins with. */
static void submit_checks_ceiling_against_known_nodes(void **state)
{
    run("submit 1 v=1 m=100 vmax=64 mmax=512000 held\n" /* nobody knows better yet */
        "node 1 4 1000\n"
        "node 2 8 500\n"
        "submit 2 v=1 m=100 mmax=1001 ! ceiling (--vcpus-max, --memory-max) could never be "
        "reached\n"
        "submit 2 v=1 m=100 mmax=1001 ! no node is large enough for 1 vCPU and 1001 MiB\n"
        "submit 2 v=1 m=100 mmax=1001 ! the largest, n1, has 4 vCPUs and 1000 MiB\n"
        "submit 2 v=1 m=100 vmax=9 ! no node is large enough for 9 vCPUs and 100 MiB\n"
        "submit 2 v=5 m=100 mmax=501 ! no node is large enough for 5 vCPUs and 501 MiB\n"
        "submit 2 v=1 m=100 mmax=600 nodes=2 ! of those that you named, n2, has 8 vCPUs\n"
        "submit 2 v=1 m=100 vmax=8 mmax=1000 held\n"); /* each alone, on another node */
}

static void submit_to_node_that_never_joined_is_accepted(void **state)
{
    g_autoptr(BerthCore) core = berth_core_new(&core_script_config);
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    guint32 nodes[] = {berth_core_add_node(core, "future"), berth_core_add_node(core, "small")};
    assert_int_equal(berth_core_add_node(core, "future"), nodes[0]);
    assert_int_equal(berth_core_find_node(core, "small"), nodes[1]);
    assert_int_equal(berth_core_find_node(core, "none"), 0);
    BerthCoreEvent join = {.kind = BERTH_EVENT_NODE_JOINED, .node = nodes[1]};
    join.joined.info.capacity = (BerthResources){1, 100, 0};
    assert_true(berth_core_handle(core, 1, &join, effects, NULL));
    BerthCoreEvent submit = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    submit.submitted = (BerthCoreJob){.id = 1, .resources = {64, 4096, 0}};
    g_autoptr(GError) error = NULL;
    assert_false(berth_core_handle(core, 1, &submit, effects, &error));
    assert_true(g_error_matches(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT));
    submit.submitted.nodes = nodes;
    submit.submitted.n_nodes = 2;
    assert_true(berth_core_handle(core, 1, &submit, effects, NULL));
    berth_core_assert_invariants(core);
}

static void submit_of_absurd_memory_is_refused(void **state)
{
    BerthCoreConfig config = core_script_config;
    config.guest_overhead_mib = 100;
    g_autoptr(BerthCore) core = berth_core_new(&config);
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    BerthCoreEvent join = {.kind = BERTH_EVENT_NODE_JOINED,
                           .node = berth_core_add_node(core, "n1")};
    join.joined.info.capacity = (BerthResources){4, 1000, 0};
    assert_true(berth_core_handle(core, 1, &join, effects, NULL));
    BerthCoreEvent submit = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    submit.submitted = (BerthCoreJob){.id = 1, .resources = {1, G_MAXUINT64 - 50, 0}};
    assert_false(berth_core_handle(core, 1, &submit, effects, NULL));
}

static void hold_and_release_know_who_may(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 held -> \n"
        "hold 1\n"
        "why 1 held-by-user\n"
        "hold 1 op\n"
        "why 1 held-by-operator\n"
        "hold 1\n"
        "why 1 held-by-operator\n"
        "release 1 ! held by an operator\n"
        "? 1 PENDING held-by-operator none\n"
        "release 1 op -> START 1.1@1\n"
        "release 1 ! is not held\n"
        "hold 1 ! only waiting jobs can be held\n"
        "submit 2 held-op\n"
        "release 2 ! held by an operator\n"
        "cancel 2\n"
        "? 2 CANCELLED cancelled-by-user none\n"
        "hold 3 ! no unfinished job 3\n"
        "release 3 ! no unfinished job 3\n"
        "cancel 3 ! no unfinished job 3\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "hold 1 ! already ended (COMPLETED)\n"
        "release 1 ! already ended (COMPLETED)\n"
        "cancel 1 ! already ended (COMPLETED)\n");
}

static void hold_survives_removal_and_backoff(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "start-failed 1.1 -> RELEASE 1.1@1\n"
        "hold 1\n"
        "released 1.1\n"
        "next never\n"
        "why 1 held-by-user\n"
        "release 1\n"
        "next 4\n"
        "hold 1\n"
        "next never\n"
        "at 9\n"
        "release 1 -> START 1.2@1\n");
}

static void refused_events_of_unknown_things_change_nothing(void **state)
{
    run("left 3\n"
        "join 3\n"
        "node 1 4 1000\n"
        "left 1\n"
        "left 1\n"
        "running 5.1\n"
        "released 5.1\n"
        "timer\n");
}

static void clock_that_goes_back_is_taken_as_still(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 limit=10 -> START 1.1@1\n"
        "at 100\n"
        "running 1.1\n"
        "next 110\n"
        "at 50\n"
        "left 1\n"
        "next 110\n" /* and the node's is 160 */
        "at 110\n"
        "timer\n"
        "next 160\n");
}

/* --- restart -------------------------------------------------------------------------------- */

static void restart_keeps_every_phase(void **state)
{
    run("node 1 8 8000\n"
        "node 2 8 8000\n"
        "submit 1 -> START 1.1@1\n" /* starting */
        "submit 2 limit=500 -> START 2.1@1\n"
        "running 2.1\n" /* running */
        "submit 3 -> START 3.1@1\n"
        "cancel 3 -> STOP 3.1@1\n" /* stopping */
        "submit 4 -> START 4.1@1\n"
        "exited 4.1 status=1 -> RELEASE 4.1@1\n" /* releasing */
        "submit 5 -> START 5.1@1\n"
        "start-failed 5.1 -> RELEASE 5.1@1\n"
        "released 5.1\n"         /* backing off */
        "submit 6 held-op\n"     /* held */
        "submit 7 v=8 nodes=1\n" /* waiting */
        "submit 8 -> START 8.1@2\n"
        "exited 8.1 -> RELEASE 8.1@2\n"
        "released 8.1\n" /* over */
        "at 2\n"
        "restart\n"
        "? 1 RUNNING - starting\n"
        "? 2 RUNNING - running\n"
        "? 3 RUNNING - stopping\n"
        "? 4 FAILED exit-status releasing\n"
        "? 5 PENDING starting-later none\n"
        "? 6 PENDING held-by-operator none\n"
        "? 7 PENDING - none\n"
        "? 8 -\n"
        "why 7 node-unavailable\n"
        "release 6 ! held by an operator\n"
        "next 4\n"
        "at 4\n"
        "timer\n"
        "next 62\n"
        "at 5\n"
        "join 1 2.1:running 3.1:running 4.1:exited:1 ->"
        " STOP 3.1@1 RELEASE 4.1@1 RELEASE 1.1@1 START 5.2@1\n"
        "join 2\n");
}

static void restart_goes_on_fencing(void **state)
{
    const char *lost = "node 1 4 1000\n"
                       "submit 1 -> START 1.1@1\n"
                       "running 1.1\n"
                       "left 1\n"
                       "at 60\n"
                       "timer -> FENCE 1.1@1\n";
    g_autofree char *fenced = g_strconcat(lost,
                                          "restart -> FENCE 1.1@1\n"
                                          "next never\n" /* a lost node is not lost again */
                                          "fenced 1.1\n"
                                          "? 1 PENDING requeued none\n",
                                          NULL);
    run(fenced);
}

static void restart_gives_nodes_time_to_come_back(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "left 1\n"
        "at 59\n"
        "restart\n"
        "next 119\n"
        "at 119\n"
        "timer -> FENCE 1.1@1\n");
}

static void restart_remembers_stops_for_absent_nodes(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 -> START 1.1@1\n"
        "running 1.1\n"
        "left 1\n"
        "cancel 1\n"
        "restart\n"
        "join 1 1.1:running -> STOP 1.1@1\n");
}

/* A record that contradicts its node: fenced on a node that is only down, where nobody can fence. */
static void restore_of_contradicting_record_is_mended(void **state)
{
    BerthCoreConfig config = core_script_config;
    config.can_fence = FALSE;
    g_autoptr(BerthCore) core = berth_core_new(&config);
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    guint32 node = berth_core_add_node(core, "n1");
    BerthCoreNodeInfo info = {.capacity = {4, 1000, 0}};
    berth_core_restore_node(core, node, BERTH_NODE_DOWN, 1, BERTH_ADMISSION_OPEN, &info);
    BerthCoreJob job = {.id = 1, .resources = {1, 100, 0}};
    BerthCoreTask task = {.job = 1,
                          .state = BERTH_JOB_PENDING,
                          .reason = BERTH_REASON_REQUEUED,
                          .phase = BERTH_GUEST_FENCING,
                          .node = node,
                          .epoch = 1};
    berth_core_restore_job(core, &job, &task, 1);
    BerthCoreJob fresh = {.id = 2, .resources = {1, 100, 0}};
    berth_core_restore_job(core, &fresh, NULL, 0);
    berth_core_resume(core, 5, effects);
    berth_core_assert_invariants(core);
    assert_int_equal(effects->actions->len, 0);
    assert_true(berth_core_get_task(core, 1, 0, &task));
    assert_int_equal(task.phase, BERTH_GUEST_RELEASING);
    assert_true(berth_core_get_task(core, 2, 0, &task));
    assert_int_equal(task.state, BERTH_JOB_PENDING);
}

static void getters_say_what_is_known(void **state)
{
    g_autoptr(BerthCore) core = berth_core_new(&core_script_config);
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    guint32 node = berth_core_add_node(core, "n1");
    assert_int_equal(berth_core_n_nodes(core), 1);
    BerthCoreEvent join = {.kind = BERTH_EVENT_NODE_JOINED, .node = node};
    join.joined.info.capacity = (BerthResources){4, 1000, 0};
    assert_true(berth_core_handle(core, 7, &join, effects, NULL));
    assert_int_equal(effects->nodes->len, 1);
    BerthCoreEvent submit = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    guint32 nodes[] = {node, node};
    submit.submitted = (BerthCoreJob){.id = 3,
                                      .uid = 12,
                                      .resources = {2, 300, 40},
                                      .time_limit_usec = 9,
                                      .stop_grace_usec = 77,
                                      .checkpoint_signal_usec = 55,
                                      .priority = -4,
                                      .submit_usec = 6,
                                      .no_requeue = TRUE,
                                      .nodes = nodes,
                                      .n_nodes = 2};
    assert_true(berth_core_handle(core, 8, &submit, effects, NULL));
    assert_int_equal(effects->changed->len, 1);
    BerthCoreJob job;
    assert_true(berth_core_get_job(core, 3, &job));
    assert_int_equal(job.uid, 12);
    assert_int_equal(job.resources.vcpus, 2);
    assert_int_equal(job.resources.memory_mib, 300);
    assert_int_equal(job.resources.disk_mib, 40);
    assert_int_equal(job.priority, -4);
    assert_int_equal(job.checkpoint_signal_usec, 55);
    assert_int_equal(job.n_nodes, 1);
    assert_int_equal(job.nodes[0], node);
    assert_true(job.no_requeue);
    BerthCoreNode seen;
    assert_true(berth_core_get_node(core, node, &seen));
    assert_string_equal(seen.name, "n1");
    assert_int_equal(seen.state, BERTH_NODE_UP);
    assert_int_equal(seen.since_usec, 7);
    assert_int_equal(seen.reserved.vcpus, 2);
    assert_int_equal(seen.reserved.memory_mib, 300);
    assert_int_equal(seen.guests, 1);
    assert_false(berth_core_get_node(core, 2, &seen));
    assert_false(berth_core_get_job(core, 4, &job));
    BerthCoreTask task;
    assert_false(berth_core_get_task(core, 3, 1, &task));
    assert_int_equal(berth_core_pending_reason(core, 3, 1), BERTH_REASON_NONE);
    assert_int_equal(berth_core_pending_reason(core, 3, 0), BERTH_REASON_NONE);

    BerthCoreEvent cancel = {.kind = BERTH_EVENT_JOB_CANCELLED, .guest = {.job = 3}};
    berth_core_effects_clear(effects);
    assert_true(berth_core_handle(core, 9, &cancel, effects, NULL));
    assert_int_equal(g_array_index(effects->actions, BerthCoreAction, 0).grace_usec, 77);
}

/* --- what is to be stored ------------------------------------------------------------------- */

static void tell(BerthCore *core, BerthCoreEffects *effects, const BerthCoreEvent *event)
{
    berth_core_effects_clear(effects);
    assert_true(berth_core_handle(core, 9, event, effects, NULL));
}

static void check_changed(const BerthCoreEffects *effects, const char *expected)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < effects->changed->len; i++) {
        const BerthGuestId *id = &g_array_index(effects->changed, BerthGuestId, i);
        g_string_append_printf(text, "%u/%u ", (guint)id->job, id->task);
    }
    assert_string_equal(text->str, expected);
}

/* Two of its four tasks run. */
static void submit_array(BerthCore *core, BerthCoreEffects *effects)
{
    guint32 node = berth_core_add_node(core, "n1");
    BerthCoreEvent join = {.kind = BERTH_EVENT_NODE_JOINED, .node = node};
    join.joined.info.capacity = (BerthResources){8, 1000, 0};
    tell(core, effects, &join);
    BerthCoreEvent submit = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    submit.submitted =
        (BerthCoreJob){.id = 1, .resources = {1, 100, 0}, .array_size = 4, .array_throttle = 2};
    tell(core, effects, &submit);
    check_changed(effects, "1/0 1/1 ");
}

static void cancel_of_an_array_reports_each_task_once(void **state)
{
    g_autoptr(BerthCore) core = berth_core_new(&core_script_config);
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    submit_array(core, effects);
    tell(core, effects, &(BerthCoreEvent){.kind = BERTH_EVENT_JOB_CANCELLED, .guest = {.job = 1}});
    check_changed(effects, "1/0 1/1 1/2 ");
}

/* Nothing of it waits any more, but what a requeued task would find has changed. */
static void release_of_a_job_that_runs_is_reported(void **state)
{
    BerthCoreJob job;
    g_autoptr(BerthCore) core = berth_core_new(&core_script_config);
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    submit_array(core, effects);
    tell(core, effects, &(BerthCoreEvent){.kind = BERTH_EVENT_JOB_HELD, .guest = {.job = 1}});
    check_changed(effects, "1/2 ");
    tell(core, effects, &(BerthCoreEvent){.kind = BERTH_EVENT_JOB_CANCELLED, .guest = {.job = 1}});
    tell(core, effects, &(BerthCoreEvent){.kind = BERTH_EVENT_JOB_RELEASED, .guest = {.job = 1}});
    check_changed(effects, "1/0 ");
    assert_true(berth_core_get_job(core, 1, &job));
    assert_false(job.held);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(submit_checks_size_against_known_nodes),
        cmocka_unit_test(submit_checks_ceiling_against_known_nodes),
        cmocka_unit_test(submit_to_node_that_never_joined_is_accepted),
        cmocka_unit_test(submit_of_absurd_memory_is_refused),
        cmocka_unit_test(hold_and_release_know_who_may),
        cmocka_unit_test(hold_survives_removal_and_backoff),
        cmocka_unit_test(refused_events_of_unknown_things_change_nothing),
        cmocka_unit_test(clock_that_goes_back_is_taken_as_still),
        cmocka_unit_test(restart_keeps_every_phase),
        cmocka_unit_test(restart_goes_on_fencing),
        cmocka_unit_test(restart_gives_nodes_time_to_come_back),
        cmocka_unit_test(restart_remembers_stops_for_absent_nodes),
        cmocka_unit_test(restore_of_contradicting_record_is_mended),
        cmocka_unit_test(getters_say_what_is_known),
        cmocka_unit_test(cancel_of_an_array_reports_each_task_once),
        cmocka_unit_test(release_of_a_job_that_runs_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
