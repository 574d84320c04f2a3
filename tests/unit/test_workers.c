/* SPDX-License-Identifier: Apache-2.0 */
/* Users who share lanes of workers: whose turn it is. Work stands at a gate until the test opens it. */
#include "tests/lib/assert.h"

#include "scheduler/daemon/workers.h"

#define ALICE 1000u
#define BOB   1001u

typedef struct {
    BerthWorkers *workers;
    GMutex lock;
    GCond changed;
    guint inside; /* functions that stand at the gate */
    gboolean is_open;
    GString *order; /* who has come back */
    guint failed;
} Test;

typedef struct {
    Test *test;
    char name;
} Piece;

static int setup(void **state)
{
    Test *test = g_new0(Test, 1);
    test->workers = berth_workers_new();
    test->order = g_string_new(NULL);
    g_mutex_init(&test->lock);
    g_cond_init(&test->changed);
    *state = test;
    return 0;
}

static void open_gate(Test *test)
{
    g_mutex_lock(&test->lock);
    test->is_open = TRUE;
    g_cond_broadcast(&test->changed);
    g_mutex_unlock(&test->lock);
}

static int teardown(void **state)
{
    Test *test = *state;
    open_gate(test);
    assert_true(berth_workers_drain(test->workers, 60000));
    berth_workers_free(test->workers);
    g_string_free(test->order, TRUE);
    g_mutex_clear(&test->lock);
    g_cond_clear(&test->changed);
    g_free(test);
    return 0;
}

static gpointer stand_at_gate(gconstpointer input, GCancellable *cancellable, GError **error)
{
    Test *test = ((const Piece *)input)->test;
    g_mutex_lock(&test->lock);
    test->inside++;
    while (!test->is_open)
        g_cond_wait(&test->changed, &test->lock);
    test->inside--;
    g_mutex_unlock(&test->lock);
    return NULL;
}

static guint inside(Test *test)
{
    g_mutex_lock(&test->lock);
    guint count = test->inside;
    g_mutex_unlock(&test->lock);
    return count;
}

static void on_back(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autofree Piece *piece = user_data;
    g_autoptr(GError) error = NULL;
    berth_work_finish(result, &error);
    if (error) {
        assert_berth_error(error, BERTH_ERROR_DEADLINE_EXCEEDED, "a piece");
        piece->test->failed++;
        return;
    }
    g_string_append_c(piece->test->order, piece->name);
}

static void ask(Test *test, BerthLane lane, guint32 uid, char name, guint timeout_msec)
{
    Piece *piece = g_new(Piece, 1);
    *piece = (Piece){test, name};
    berth_workers_run_for(test->workers, lane, uid, "a piece", stand_at_gate, piece, NULL, NULL,
                          timeout_msec, on_back, piece);
}

static void workers_of_one_user_leave_threads_to_others(void **state)
{
    Test *test = *state;
    for (guint i = 0; i < 10000; i++)
        ask(test, BERTH_LANE_READ, ALICE, 'a', 0);
    run_until(inside(test) == 2);
    ask(test, BERTH_LANE_READ, BOB, 'b', 0);
    /* Who asked last has a thread while nearly all others wait. */
    run_until(inside(test) == 3);
    open_gate(test);
    run_until(test->order->len == 10001);
    assert_int_equal(test->failed, 0); /* nobody was refused */
}

static void workers_take_turns_among_users(void **state)
{
    Test *test = *state;
    /* The daemon's own work fills the lane; users line up behind it. */
    ask(test, BERTH_LANE_STORAGE_CLEAN, BERTH_WORKERS_SELF, 's', 0);
    run_until(inside(test) == 1);
    for (guint i = 0; i < 3; i++)
        ask(test, BERTH_LANE_STORAGE_CLEAN, ALICE, 'a', 0);
    for (guint i = 0; i < 3; i++)
        ask(test, BERTH_LANE_STORAGE_CLEAN, BOB, 'b', 0);
    open_gate(test);
    run_until(test->order->len == 7);
    assert_string_equal(test->order->str, "sababab");
}

static void workers_of_output_stuck_for_one_user_go_on_for_others(void **state)
{
    Test *test = *state;
    for (guint i = 0; i < 20; i++)
        ask(test, BERTH_LANE_OUTPUT, ALICE, 'a', 0);
    for (guint32 uid = BOB; uid < BOB + 10; uid++)
        ask(test, BERTH_LANE_OUTPUT, uid, 'b', 0);
    run_until(inside(test) == 11);
    open_gate(test);
    run_until(test->order->len == 30);
}

static void workers_deadline_counts_while_it_waits(void **state)
{
    Test *test = *state;
    ask(test, BERTH_LANE_NAMES, ALICE, 'a', 0);
    run_until(inside(test) == 1);
    ask(test, BERTH_LANE_NAMES, ALICE, 'a', 50);
    ask(test, BERTH_LANE_NAMES, ALICE, 'a', 0);
    run_until(test->failed == 1);
    assert_int_equal(test->order->len, 0);
    open_gate(test);
    run_until(test->order->len == 2);
    assert_int_equal(test->failed, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(workers_of_one_user_leave_threads_to_others),
        TEST(workers_take_turns_among_users),
        TEST(workers_of_output_stuck_for_one_user_go_on_for_others),
        TEST(workers_deadline_counts_while_it_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
