/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "common/work.h"

/* Functions wait at the gate until a test opens it: no sleeps. */
typedef struct {
    GMutex lock;
    GCond changed;
    gboolean open;
    guint entered;
    guint abandoned; /* saw their cancellable triggered */
    guint inputs_freed;
    guint results_freed;
} Gate;

static Gate gate;

static int setup(void **state)
{
    memset(&gate, 0, sizeof(gate));
    g_mutex_init(&gate.lock);
    g_cond_init(&gate.changed);
    return 0;
}

static int teardown(void **state)
{
    g_mutex_clear(&gate.lock);
    g_cond_clear(&gate.changed);
    return 0;
}

static void open_gate(void)
{
    g_mutex_lock(&gate.lock);
    gate.open = TRUE;
    g_cond_broadcast(&gate.changed);
    g_mutex_unlock(&gate.lock);
}

static guint gate_count(const guint *counter)
{
    g_mutex_lock(&gate.lock);
    guint count = *counter;
    g_mutex_unlock(&gate.lock);
    return count;
}

static void count(guint *counter)
{
    g_mutex_lock(&gate.lock);
    (*counter)++;
    g_mutex_unlock(&gate.lock);
}

static void free_input(gpointer input)
{
    g_free(input);
    count(&gate.inputs_freed);
}

static void free_result(gpointer result)
{
    g_free(result);
    count(&gate.results_freed);
}

static gpointer copy_upper(gconstpointer input, GCancellable *cancellable, GError **error)
{
    return g_ascii_strup(input, -1);
}

static gpointer fail_always(gconstpointer input, GCancellable *cancellable, GError **error)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS, "bad %s", (const char *)input);
    return NULL;
}

static gpointer return_nothing(gconstpointer input, GCancellable *cancellable, GError **error)
{
    return NULL;
}

static gpointer wait_at_gate(gconstpointer input, GCancellable *cancellable, GError **error)
{
    g_mutex_lock(&gate.lock);
    gate.entered++;
    while (!gate.open)
        g_cond_wait(&gate.changed, &gate.lock);
    if (g_cancellable_is_cancelled(cancellable))
        gate.abandoned++;
    g_mutex_unlock(&gate.lock);
    return g_strdup("late");
}

static void store(GObject *source, GAsyncResult *result, gpointer data)
{
    assert_null(*(GAsyncResult **)data);
    *(GAsyncResult **)data = g_object_ref(result);
}

static void run(BerthWorkPool *pool, BerthWorkFunc func, guint timeout_msec,
                GCancellable *cancellable, GAsyncResult **result)
{
    berth_work_pool_run(pool, "test", func, g_strdup("input"), free_input, free_result,
                        timeout_msec, cancellable, store, result);
    assert_null(*result); /* never from inside the call */
}

static void run_result_arrives_in_the_callers_context(void **state)
{
    g_autoptr(BerthWorkPool) pool = berth_work_pool_new("pool", 2, 10);
    g_autoptr(GAsyncResult) result = NULL;
    g_autoptr(GError) error = NULL;
    run(pool, copy_upper, 0, NULL, &result);
    run_until(result != NULL);
    g_autofree char *text = berth_work_finish(result, &error);
    assert_no_error(error);
    assert_string_equal(text, "INPUT");
    assert_int_equal(gate_count(&gate.inputs_freed), 1);
    assert_int_equal(gate_count(&gate.results_freed), 0);
}

static void run_error_arrives(void **state)
{
    g_autoptr(BerthWorkPool) pool = berth_work_pool_new("pool", 1, 10);
    g_autoptr(GAsyncResult) result = NULL;
    g_autoptr(GError) error = NULL;
    run(pool, fail_always, 60000, NULL, &result);
    run_until(result != NULL);
    assert_null(berth_work_finish(result, &error));
    assert_berth_error(error, BERTH_ERROR_DATA_LOSS, "bad input");
}

static void finish_empty_of_what_worked_is_true(void **state)
{
    g_autoptr(BerthWorkPool) pool = berth_work_pool_new("pool", 1, 10);
    g_autoptr(GAsyncResult) result = NULL;
    g_autoptr(GError) error = NULL;
    run(pool, return_nothing, 0, NULL, &result);
    run_until(result != NULL);
    assert_true(berth_work_finish_empty(result, &error));
    assert_no_error(error);
}

static void finish_empty_of_what_failed_is_false(void **state)
{
    g_autoptr(BerthWorkPool) pool = berth_work_pool_new("pool", 1, 10);
    g_autoptr(GAsyncResult) result = NULL;
    g_autoptr(GError) error = NULL;
    run(pool, fail_always, 0, NULL, &result);
    run_until(result != NULL);
    assert_false(berth_work_finish_empty(result, &error));
    assert_berth_error(error, BERTH_ERROR_DATA_LOSS, "bad input");
}

static void run_past_its_deadline_fails_and_its_result_is_dropped(void **state)
{
    g_autoptr(BerthWorkPool) pool = berth_work_pool_new("pool", 1, 10);
    g_autoptr(GAsyncResult) result = NULL;
    g_autoptr(GError) error = NULL;
    run(pool, wait_at_gate, 20, NULL, &result);
    run_until(result != NULL);
    assert_null(berth_work_finish(result, &error));
    assert_berth_error(error, BERTH_ERROR_DEADLINE_EXCEEDED, "test: not done after 20 ms");
    open_gate();
    run_until(gate_count(&gate.results_freed) == 1);
    assert_int_equal(gate.abandoned, 1);
}

static void run_past_its_deadline_in_the_queue_never_runs(void **state)
{
    g_autoptr(BerthWorkPool) pool = berth_work_pool_new("pool", 1, 10);
    g_autoptr(GAsyncResult) first = NULL;
    g_autoptr(GAsyncResult) second = NULL;
    g_autoptr(GError) error = NULL;
    run(pool, wait_at_gate, 0, NULL, &first);
    run(pool, wait_at_gate, 20, NULL, &second);
    run_until(second != NULL);
    assert_null(berth_work_finish(second, &error));
    assert_berth_error(error, BERTH_ERROR_DEADLINE_EXCEEDED, "test");
    open_gate();
    run_until(first != NULL && gate_count(&gate.inputs_freed) == 2);
    g_autofree char *text = berth_work_finish(first, NULL);
    assert_string_equal(text, "late");
    assert_int_equal(gate.entered, 1);
}

static void run_cancelled_fails_at_once(void **state)
{
    g_autoptr(BerthWorkPool) pool = berth_work_pool_new("pool", 1, 10);
    g_autoptr(GCancellable) cancellable = g_cancellable_new();
    g_autoptr(GAsyncResult) result = NULL;
    g_autoptr(GError) error = NULL;
    run(pool, wait_at_gate, 60000, cancellable, &result);
    run_until(gate_count(&gate.entered) == 1);
    g_cancellable_cancel(cancellable);
    run_until(result != NULL);
    assert_null(berth_work_finish(result, &error));
    assert_berth_error(error, BERTH_ERROR_CANCELLED, "test: cancelled");
    open_gate();
    run_until(gate_count(&gate.results_freed) == 1);
}

static void run_more_than_the_queue_takes_is_refused(void **state)
{
    g_autoptr(BerthWorkPool) pool = berth_work_pool_new("pool", 1, 2);
    GAsyncResult *results[4] = {NULL};
    g_autoptr(GError) error = NULL;
    run(pool, wait_at_gate, 0, NULL, &results[0]);
    run_until(gate_count(&gate.entered) == 1);
    for (guint i = 1; i < 4; i++)
        run(pool, wait_at_gate, 0, NULL, &results[i]);
    run_until(results[3] != NULL);
    assert_null(berth_work_finish(results[3], &error));
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "2 pieces of work wait for pool");
    assert_int_equal(gate_count(&gate.inputs_freed), 1);
    open_gate();
    for (guint i = 0; i < 4; i++) {
        run_until(results[i] != NULL);
        if (i < 3)
            g_free(berth_work_finish(results[i], NULL));
        g_object_unref(results[i]);
    }
}

static gpointer free_pool(gpointer pool)
{
    berth_work_pool_free(pool);
    return NULL;
}

static void pool_freed_waits_for_what_runs_and_fails_the_rest(void **state)
{
    BerthWorkPool *pool = berth_work_pool_new("pool", 1, 10);
    g_autoptr(GAsyncResult) running = NULL;
    g_autoptr(GAsyncResult) queued = NULL;
    g_autoptr(GError) error = NULL;
    run(pool, wait_at_gate, 0, NULL, &running);
    run_until(gate_count(&gate.entered) == 1);
    run(pool, wait_at_gate, 0, NULL, &queued);
    GThread *freer = g_thread_new("freer", free_pool, pool);
    open_gate();
    g_thread_join(freer);
    assert_null(running);
    run_until(running != NULL && queued != NULL);
    g_autofree char *text = berth_work_finish(running, NULL);
    assert_string_equal(text, "late");
    g_autofree char *other = berth_work_finish(queued, &error);
    /* The freer may come after the worker has taken it. */
    if (error != NULL)
        assert_berth_error(error, BERTH_ERROR_CANCELLED, "pool is shutting down");
    else
        assert_string_equal(other, "late");
}

/* What takes as long as it takes keeps nobody who ends. */
static void pool_abandoned_lets_run_what_runs_and_fails_the_rest(void **state)
{
    BerthWorkPool *pool = berth_work_pool_new("pool", 1, 10);
    g_autoptr(GAsyncResult) running = NULL;
    g_autoptr(GAsyncResult) queued = NULL;
    g_autoptr(GError) error = NULL;
    run(pool, wait_at_gate, 0, NULL, &running);
    run_until(gate_count(&gate.entered) == 1);
    run(pool, wait_at_gate, 0, NULL, &queued);
    berth_work_pool_abandon(pool); /* would hang if it waited: the gate is shut */
    assert_null(running);
    open_gate();
    run_until(running != NULL && queued != NULL);
    g_autofree char *text = berth_work_finish(running, NULL);
    assert_string_equal(text, "late");
    g_autofree char *other = berth_work_finish(queued, &error);
    assert_berth_error(error, BERTH_ERROR_CANCELLED, "pool is shutting down");
}

static void run_many_at_once_all_arrive(void **state)
{
    enum { N = 500 };
    g_autoptr(BerthWorkPool) pool = berth_work_pool_new("pool", 4, N);
    GAsyncResult *results[N] = {NULL};
    for (guint i = 0; i < N; i++)
        run(pool, copy_upper, i % 2 == 0 ? 60000 : 0, NULL, &results[i]);
    for (guint i = 0; i < N; i++) {
        run_until(results[i] != NULL);
        g_autofree char *text = berth_work_finish(results[i], NULL);
        assert_string_equal(text, "INPUT");
        g_object_unref(results[i]);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(run_result_arrives_in_the_callers_context),
        TEST(run_error_arrives),
        TEST(finish_empty_of_what_worked_is_true),
        TEST(finish_empty_of_what_failed_is_false),
        TEST(run_past_its_deadline_fails_and_its_result_is_dropped),
        TEST(run_past_its_deadline_in_the_queue_never_runs),
        TEST(run_cancelled_fails_at_once),
        TEST(run_more_than_the_queue_takes_is_refused),
        TEST(pool_freed_waits_for_what_runs_and_fails_the_rest),
        TEST(pool_abandoned_lets_run_what_runs_and_fails_the_rest),
        TEST(run_many_at_once_all_arrive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
