/* SPDX-License-Identifier: Apache-2.0 */
/* The engine with a real core and a real store: what leaves, and after which commit. */
#include "tests/lib/assert.h"

#include "scheduler/daemon/engine.h"
#include "tests/unit/store_fixture.h"

#define DEADLINE_SEC 60u

typedef struct {
    StoreFixture *files;
    BerthStore *store;
    BerthCore *core;
    BerthJobTable *jobs;
    BerthNodeTable *nodes;
    BerthEngine *engine;
    GArray *actions; /* BerthCoreAction that left */
} Test;

static void on_act(const BerthCoreAction *action, gpointer user_data)
{
    Test *test = user_data;
    g_array_append_val(test->actions, *action);
}

/* Job 1 has had its guest on node 1, which is lost: it is being fenced. */
static void restore_fencing(BerthCore *core)
{
    BerthCoreNodeInfo info = {.capacity = {4, 4096, 0}};
    BerthCoreJob job = {.id = 1, .resources = {1, 64, 0}, .submit_usec = 1};
    BerthCoreTask task = {.job = 1,
                          .state = BERTH_JOB_PENDING,
                          .reason = BERTH_REASON_REQUEUED,
                          .phase = BERTH_GUEST_FENCING,
                          .node = 1,
                          .epoch = 1,
                          .requeues = 1};
    assert_int_equal(berth_core_add_node(core, "n1"), 1);
    berth_core_restore_node(core, 1, BERTH_NODE_LOST, 1, &info);
    berth_core_restore_job(core, &job, &task, 1);
}

static int setup(void **state)
{
    static const BerthEngineHooks hooks = {.act = on_act};
    BerthCoreConfig config = {.node_timeout_usec = G_USEC_PER_SEC,
                              .requeues_max = 5,
                              .start_retries_max = 5,
                              .start_backoff_usec = 1000,
                              .can_fence = TRUE};
    Test *test = g_new0(Test, 1);
    test->files = store_fixture_new();
    test->store = store_open_ok(test->files->path);
    test->core = berth_core_new(&config);
    test->jobs = berth_job_table_new();
    test->nodes = berth_node_table_new();
    berth_node_table_add(test->nodes, 1, "n1");
    restore_fencing(test->core);
    test->engine = berth_engine_new(test->core, test->store, test->jobs, test->nodes, 0, 0);
    test->actions = g_array_new(FALSE, FALSE, sizeof(BerthCoreAction));
    berth_engine_set_hooks(test->engine, &hooks, test);
    *state = test;
    return 0;
}

static int teardown(void **state)
{
    Test *test = *state;
    berth_engine_stop(test->engine);
    berth_engine_free(test->engine);
    berth_node_table_free(test->nodes);
    berth_job_table_free(test->jobs);
    berth_core_free(test->core);
    berth_store_close(test->store);
    store_fixture_free(test->files);
    g_array_unref(test->actions);
    g_free(test);
    return 0;
}

static void assert_fence(const Test *test, guint index)
{
    const BerthCoreAction *action = &g_array_index(test->actions, BerthCoreAction, index);
    assert_true(index < test->actions->len);
    assert_int_equal(action->kind, BERTH_ACTION_FENCE);
    assert_int_equal(action->guest.job, 1);
    assert_int_equal(action->guest.epoch, 1);
    assert_int_equal(action->node, 1);
}

static void engine_start_while_fencing_sends_fence_again(void **state)
{
    Test *test = *state;
    berth_engine_start(test->engine);
    assert_int_equal(test->actions->len, 1);
    assert_fence(test, 0);
}

static void take_event(Test *test, BerthEventKind kind)
{
    g_autoptr(GError) error = NULL;
    BerthCoreEvent event = {.kind = kind, .guest = {.job = 1, .epoch = 1}, .node = 1};
    BerthTurn *turn = berth_engine_begin(test->engine);
    assert_true(berth_turn_event(turn, &event, NULL, &error));
    berth_turn_commit(turn);
}

static gboolean on_deadline(gpointer user_data)
{
    g_error("no action left within %u s", DEADLINE_SEC);
    return G_SOURCE_REMOVE;
}

static void engine_fence_that_failed_is_sent_until_it_works(void **state)
{
    Test *test = *state;
    guint deadline = g_timeout_add_seconds(DEADLINE_SEC, on_deadline, NULL);
    berth_engine_start(test->engine);
    for (guint i = 1; i <= 3; i++) {
        take_event(test, BERTH_EVENT_FENCE_FAILED);
        assert_int_equal(test->actions->len, i); /* after a pause */
        while (test->actions->len == i) {
            g_main_context_iteration(NULL, TRUE);
        }
        assert_fence(test, i);
    }
    g_source_remove(deadline);
    BerthCoreTask task;
    take_event(test, BERTH_EVENT_GUEST_FENCED);
    assert_true(berth_core_get_task(test->core, 1, 0, &task));
    assert_int_equal(task.phase, BERTH_GUEST_NONE);
}

#define ENGINE_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(engine_start_while_fencing_sends_fence_again),
        ENGINE_TEST(engine_fence_that_failed_is_sent_until_it_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
