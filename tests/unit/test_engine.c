/* SPDX-License-Identifier: Apache-2.0 */
/* The engine with a real core and a real store: what leaves, and after which commit. */
#include "tests/lib/assert.h"

#include "scheduler/daemon/engine.h"
#include "scheduler/daemon/event_log.h"
#include "scheduler/daemon/job_records.h"
#include "tests/unit/store_fixture.h"

#define DEADLINE_SEC 60u

typedef struct {
    StoreFixture *files;
    BerthStore *store;
    BerthCore *core;
    BerthJobTable *jobs;
    BerthNodeTable *nodes;
    BerthEngine *engine;
    GArray *actions;       /* BerthCoreAction that left */
    guint64 watched;       /* a job, or 0 */
    guint32 durable_phase; /* of the watched job's guest, when the newest action left */
} Test;

static void on_act(const BerthCoreAction *action, gpointer user_data)
{
    Test *test = user_data;
    g_array_append_val(test->actions, *action);
    if (test->watched != 0) {
        g_autoptr(GError) error = NULL;
        Berth__StoredTask *task = berth_store_get_task(test->store, test->watched, 0, &error);
        assert_no_error(error);
        test->durable_phase = task->phase;
        berth__stored_task__free_unpacked(task, NULL);
    }
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
    berth_core_restore_node(core, 1, BERTH_NODE_LOST, 1, BERTH_ADMISSION_OPEN, &info);
    berth_core_restore_job(core, &job, &task, 1);
}

static int setup(void **state)
{
    static const BerthEngineHooks hooks = {.act = on_act};
    BerthCoreConfig config = {.node_timeout_usec = G_USEC_PER_SEC,
                              .requeues_max = 5,
                              .start_retries_max = 5,
                              .start_backoff_usec = 1000,
                              .can_fence = TRUE,
                              .features = BERTH_FEATURE_MIGRATION | BERTH_FEATURE_FREEZING |
                                          BERTH_FEATURE_CHECKPOINT};
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

static void take(Test *test, const BerthCoreEvent *event)
{
    g_autoptr(GError) error = NULL;
    BerthTurn *turn = berth_engine_begin(test->engine);
    assert_true(berth_turn_event(turn, event, NULL, &error));
    berth_turn_commit(turn);
}

static void join(Test *test, guint32 node, const char *name)
{
    assert_int_equal(berth_core_add_node(test->core, name), node);
    berth_node_table_add(test->nodes, node, name);
    take(test, &(BerthCoreEvent){.kind = BERTH_EVENT_NODE_JOINED,
                                 .node = node,
                                 .joined = {.info = {.capacity = {4, 4096, 0}}}});
}

typedef struct {
    gint64 checkpoint_every_usec;
    Berth__OnLimit on_limit;
} Submission;

/* A job that needs all of node 2. */
static void submit_as(Test *test, guint64 id, const Submission *submission)
{
    g_autoptr(GError) error = NULL;
    Berth__JobSpec spec = BERTH__JOB_SPEC__INIT;
    spec.vcpus = 4;
    spec.memory_mib = 64;
    spec.on_limit = submission->on_limit;
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    Berth__Job *job = berth_record_new_job(id, &spec, NULL, "user", 1000, 1000, 1);
    berth_record_job_to_core(job, &spec, NULL, NULL, 0, &event.submitted);
    event.submitted.checkpoint_every_usec = submission->checkpoint_every_usec;
    BerthTurn *turn = berth_engine_begin(test->engine);
    assert_true(berth_turn_submit(turn, &event, job, &spec, NULL, &error));
    berth_turn_commit(turn);
    berth__job__free_unpacked(job, NULL);
}

static void submit(Test *test, guint64 id)
{
    submit_as(test, id, &(Submission){0});
}

static void wait_action(Test *test, BerthActionKind kind, guint64 job)
{
    const guint n = test->actions->len + 1;
    guint deadline = g_timeout_add_seconds(DEADLINE_SEC, on_deadline, NULL);
    while (test->actions->len < n) {
        g_main_context_iteration(NULL, TRUE);
    }
    g_source_remove(deadline);
    const BerthCoreAction *action = &g_array_index(test->actions, BerthCoreAction, n - 1);
    assert_int_equal(action->kind, kind);
    assert_int_equal(action->guest.job, job);
}

static guint32 reserved_vcpus(Test *test)
{
    BerthCoreNode node;
    assert_true(berth_core_get_node(test->core, 2, &node));
    return node.reserved.vcpus;
}

/* RELEASE leaves when the outcome is durable; what the guest reserved is another's when the node has
 * said that the guest is gone, and the other starts when that is durable, too. */
static void engine_room_of_a_guest_is_given_away_after_the_commit(void **state)
{
    Test *test = *state;
    berth_engine_start(test->engine);
    join(test, 2, "n2");
    submit(test, 2);
    wait_action(test, BERTH_ACTION_START, 2);
    test->watched = 2;
    submit(test, 3);
    const BerthGuestId guest = {.job = 2, .epoch = 1};
    take(test, &(BerthCoreEvent){.kind = BERTH_EVENT_GUEST_RUNNING, .guest = guest, .node = 2});
    guint before = test->actions->len;
    take(test, &(BerthCoreEvent){.kind = BERTH_EVENT_GUEST_EXITED, .guest = guest, .node = 2});
    assert_int_equal(test->actions->len, before); /* decided, not committed */
    wait_action(test, BERTH_ACTION_RELEASE, 2);
    assert_int_equal(test->durable_phase, BERTH_GUEST_RELEASING);
    assert_int_equal(reserved_vcpus(test), 4);
    BerthCoreTask next;
    assert_true(berth_core_get_task(test->core, 3, 0, &next));
    assert_int_equal(next.phase, BERTH_GUEST_NONE);

    before = test->actions->len;
    take(test, &(BerthCoreEvent){.kind = BERTH_EVENT_GUEST_RELEASED, .guest = guest, .node = 2});
    assert_true(berth_core_get_task(test->core, 3, 0, &next));
    assert_int_equal(next.phase, BERTH_GUEST_STARTING);
    assert_int_equal(test->actions->len, before);
    wait_action(test, BERTH_ACTION_START, 3);
    assert_int_equal(test->durable_phase, BERTH_GUEST_NONE);
}

/* ASKER: NULL = nobody. What comes of EVENT is durable. */
static void take_durably(Test *test, const BerthCoreEvent *event, const BerthAsker *asker)
{
    g_autoptr(GError) error = NULL;
    BerthTurn *turn = berth_engine_begin(test->engine);
    assert_true(berth_turn_event(turn, event, asker, &error));
    berth_turn_commit(turn);
    while (berth_engine_committed_seq(test->engine) < berth_engine_last_seq(test->engine))
        g_main_context_iteration(NULL, TRUE);
}

/* The move that was begun last is done. */
static void end_move(Test *test)
{
    const BerthCoreAction *move =
        &g_array_index(test->actions, BerthCoreAction, test->actions->len - 1);
    assert_int_equal(move->kind, BERTH_ACTION_MIGRATE);
    take_durably(test,
                 &(BerthCoreEvent){.kind = BERTH_EVENT_GUEST_MIGRATED,
                                   .guest = move->guest,
                                   .node = move->to,
                                   .result = {.ok = TRUE, .serial = move->serial}},
                 NULL);
}

/* The same done by the policy, for a drain, is nobody's. */
static void engine_move_that_was_asked_for_is_told_apart(void **state)
{
    static const BerthAsker asker = {"alice", "its disk is worn"};
    Test *test = *state;
    g_autoptr(GError) error = NULL;
    berth_engine_start(test->engine);
    join(test, 2, "n2");
    submit(test, 2);
    wait_action(test, BERTH_ACTION_START, 2);
    const BerthGuestId guest = {.job = 2, .epoch = 1};
    take(test, &(BerthCoreEvent){.kind = BERTH_EVENT_GUEST_RUNNING, .guest = guest, .node = 2});
    join(test, 3, "n3");
    take_durably(test, &(BerthCoreEvent){.kind = BERTH_EVENT_NODE_DRAINED, .node = 2}, NULL);
    end_move(test);
    take_durably(test, &(BerthCoreEvent){.kind = BERTH_EVENT_NODE_UNDRAINED, .node = 2}, NULL);
    take_durably(
        test,
        &(BerthCoreEvent){.kind = BERTH_EVENT_JOB_MIGRATE_WANTED, .guest = {.job = 2}, .node = 2},
        &asker);
    end_move(test);
    g_autoptr(Berth__Job) job = berth_store_get_job(test->store, 2, &error);
    assert_no_error(error);
    assert_int_equal(job->n_requests, 1);
    const Berth__JobRequest *request = job->requests[0];
    assert_int_equal(request->kind, BERTH__EVENT__KIND__JOB_MIGRATE_REQUESTED);
    assert_string_equal(request->asked->user, "alice");
    assert_string_equal(request->asked->why, "its disk is worn");
    assert_int_equal(request->outcome, BERTH__JOB_REQUEST__OUTCOME__DONE);
    assert_int_equal(request->settled->kind, BERTH__EVENT__KIND__GUEST_MIGRATED);
    assert_string_equal(request->settled->node, "n2");
}

/* --- requests and checkpoints ------------------------------------------------------------------- */

static void run(Test *test)
{
    const BerthGuestId guest = {.job = 2, .epoch = 1};
    wait_action(test, BERTH_ACTION_START, 2);
    take(test, &(BerthCoreEvent){.kind = BERTH_EVENT_GUEST_RUNNING, .guest = guest, .node = 2});
}

/* A checkpoint of job 2 that is later than BEFORE. */
static BerthCoreAction wait_checkpoint(Test *test, guint32 before)
{
    guint deadline = g_timeout_add_seconds(DEADLINE_SEC, on_deadline, NULL);
    for (;;) {
        for (guint i = 0; i < test->actions->len; i++) {
            const BerthCoreAction *action = &g_array_index(test->actions, BerthCoreAction, i);
            if (action->kind != BERTH_ACTION_CHECKPOINT || action->checkpoint <= before)
                continue;
            g_source_remove(deadline);
            return *action;
        }
        g_main_context_iteration(NULL, TRUE);
    }
}

/* What CHECKPOINT, which was begun for its reason, has come to. */
static void end_checkpoint(Test *test, const BerthCoreAction *checkpoint, gboolean ok)
{
    g_autoptr(GError) error = NULL;
    BerthCoreEvent result = {.kind = BERTH_EVENT_GUEST_CHECKPOINTED,
                             .guest = checkpoint->guest,
                             .node = checkpoint->node,
                             .result = {.ok = ok, .serial = checkpoint->serial}};
    Berth__Event event = BERTH__EVENT__INIT;
    berth_event_op_failed(checkpoint, "n2", "1", &event);
    if (ok)
        event.kind = BERTH__EVENT__KIND__GUEST_CHECKPOINTED;
    BerthTurn *turn = berth_engine_begin(test->engine);
    berth_turn_log(turn, &event);
    assert_true(berth_turn_event(turn, &result, NULL, &error));
    berth_turn_commit(turn);
    while (berth_engine_committed_seq(test->engine) < berth_engine_last_seq(test->engine))
        g_main_context_iteration(NULL, TRUE);
}

/* SETTLED 0: no event says it. */
static void assert_newest_request(Test *test, Berth__JobRequest__Outcome outcome,
                                  Berth__Event__Kind settled)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Berth__Job) job = berth_store_get_job(test->store, 2, &error);
    assert_no_error(error);
    assert_true(job->n_requests > 0);
    const Berth__JobRequest *request = job->requests[job->n_requests - 1];
    assert_int_equal(request->outcome, outcome);
    assert_int_equal(request->settled ? request->settled->kind : 0, settled);
}

/* The wish for it goes with that, whether it worked or not. */
static void engine_checkpoint_that_is_asked_for_joins_one_that_was_due(void **state)
{
    static const BerthAsker asker = {"alice", ""};
    const BerthCoreEvent wanted = {.kind = BERTH_EVENT_JOB_CHECKPOINT_WANTED, .guest = {.job = 2}};
    Test *test = *state;
    BerthCoreAction due = {0};
    berth_engine_start(test->engine);
    join(test, 2, "n2");
    submit_as(test, 2, &(Submission){.checkpoint_every_usec = 1000});
    run(test);
    for (guint ok = 0; ok < 2; ok++) {
        due = wait_checkpoint(test, due.checkpoint);
        assert_int_equal(due.reason, BERTH_REASON_CHECKPOINT_DUE);
        take_durably(test, &wanted, &asker);
        assert_newest_request(test, BERTH__JOB_REQUEST__OUTCOME__OPEN, 0);
        end_checkpoint(test, &due, ok == 1);
        assert_newest_request(
            test, ok ? BERTH__JOB_REQUEST__OUTCOME__DONE : BERTH__JOB_REQUEST__OUTCOME__FAILED,
            ok ? BERTH__EVENT__KIND__GUEST_CHECKPOINTED
               : BERTH__EVENT__KIND__GUEST_CHECKPOINT_FAILED);
    }
}

/* It is done after that, and while it is not it is still under way. */
static void engine_checkpoint_that_is_asked_for_outlives_a_freeze_that_fails(void **state)
{
    static const BerthAsker asker = {"alice", ""};
    Test *test = *state;
    berth_engine_start(test->engine);
    join(test, 2, "n2");
    submit(test, 2);
    run(test);
    take_durably(test,
                 &(BerthCoreEvent){.kind = BERTH_EVENT_JOB_FREEZE_WANTED,
                                   .guest = {.job = 2},
                                   .request = {.to_disk = TRUE}},
                 &asker);
    BerthCoreAction freeze = wait_checkpoint(test, 0);
    take_durably(test,
                 &(BerthCoreEvent){.kind = BERTH_EVENT_JOB_CHECKPOINT_WANTED, .guest = {.job = 2}},
                 &asker);
    end_checkpoint(test, &freeze, FALSE);
    assert_newest_request(test, BERTH__JOB_REQUEST__OUTCOME__OPEN, 0);
    BerthCoreAction theirs = wait_checkpoint(test, freeze.checkpoint);
    assert_int_equal(theirs.reason, BERTH_REASON_CHECKPOINTED_BY_USER);
    end_checkpoint(test, &theirs, TRUE);
    assert_newest_request(test, BERTH__JOB_REQUEST__OUTCOME__DONE,
                          BERTH__EVENT__KIND__GUEST_CHECKPOINTED);
}

/* It stands still for want of memory, and that is what its checkpoint is begun for: nothing is logged when it is on
 * disk. */
static void engine_freeze_to_disk_at_the_memory_limit_is_settled(void **state)
{
    static const BerthAsker asker = {"alice", ""};
    const BerthGuestId guest = {.job = 2, .epoch = 1};
    Test *test = *state;
    berth_engine_start(test->engine);
    join(test, 2, "n2");
    submit_as(test, 2, &(Submission){.on_limit = BERTH__ON_LIMIT__ON_LIMIT_FREEZE});
    run(test);
    take(test,
         &(BerthCoreEvent){.kind = BERTH_EVENT_GUEST_REPORTED,
                           .guest = guest,
                           .node = 2,
                           .usage = {.memory_used_mib = 64, .memory_pressure_permille = 1000}});
    wait_action(test, BERTH_ACTION_FREEZE, 2);
    take_durably(
        test,
        &(BerthCoreEvent){
            .kind = BERTH_EVENT_GUEST_FROZEN, .guest = guest, .node = 2, .result = {.ok = TRUE}},
        NULL);
    take_durably(test,
                 &(BerthCoreEvent){.kind = BERTH_EVENT_JOB_FREEZE_WANTED,
                                   .guest = {.job = 2},
                                   .request = {.to_disk = TRUE}},
                 &asker);
    BerthCoreAction save = wait_checkpoint(test, 0);
    assert_int_equal(save.reason, BERTH_REASON_AT_LIMIT);
    assert_newest_request(test, BERTH__JOB_REQUEST__OUTCOME__OPEN, 0);
    end_checkpoint(test, &save, TRUE);
    assert_newest_request(test, BERTH__JOB_REQUEST__OUTCOME__DONE, 0);
}

#define ENGINE_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(engine_start_while_fencing_sends_fence_again),
        ENGINE_TEST(engine_fence_that_failed_is_sent_until_it_works),
        ENGINE_TEST(engine_room_of_a_guest_is_given_away_after_the_commit),
        ENGINE_TEST(engine_move_that_was_asked_for_is_told_apart),
        ENGINE_TEST(engine_checkpoint_that_is_asked_for_joins_one_that_was_due),
        ENGINE_TEST(engine_checkpoint_that_is_asked_for_outlives_a_freeze_that_fails),
        ENGINE_TEST(engine_freeze_to_disk_at_the_memory_limit_is_settled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
