/* SPDX-License-Identifier: Apache-2.0 */
/* How many starts are under way at a time, and whose turn is next. */
#include "tests/lib/assert.h"

#include "scheduler/daemon/start_window.h"

typedef struct {
    BerthStartWindow *window;
    guint under_way[4]; /* by node */
    guint in_memory;
    guint built;
    GString *order; /* nodes */
} Test;

typedef struct {
    Test *test;
    guint32 node;
    gboolean is_given_up; /* when its turn comes */
} Start;

static int setup(void **state)
{
    Test *test = g_new0(Test, 1);
    test->window = berth_start_window_new();
    test->order = g_string_new(NULL);
    *state = test;
    return 0;
}

static int teardown(void **state)
{
    Test *test = *state;
    berth_start_window_free(test->window);
    g_string_free(test->order, TRUE);
    g_free(test);
    return 0;
}

static void on_turn(gpointer user_data)
{
    g_autofree Start *start = user_data;
    Test *test = start->test;
    if (start->is_given_up) {
        berth_start_window_leave(test->window, start->node, FALSE);
        return;
    }
    test->built++;
    test->in_memory++;
    test->under_way[start->node]++;
    g_string_append_c(test->order, (char)('0' + start->node));
    assert_true(test->in_memory <= BERTH_START_WINDOW_MEMORY);
    assert_true(test->under_way[start->node] <= BERTH_START_WINDOW_NODE);
}

static void enter(Test *test, guint32 node, guint n, gboolean is_given_up)
{
    for (guint i = 0; i < n; i++) {
        Start *start = g_new(Start, 1);
        *start = (Start){test, node, is_given_up};
        berth_start_window_enter(test->window, node, on_turn, start);
    }
}

static void send_one(Test *test)
{
    test->in_memory--;
    berth_start_window_sent(test->window);
}

static void answer(Test *test, guint32 node)
{
    test->under_way[node]--;
    berth_start_window_leave(test->window, node, TRUE);
}

static void window_of_a_node_opens_with_each_answer(void **state)
{
    Test *test = *state;
    enter(test, 1, 100, FALSE);
    assert_int_equal(test->built, BERTH_START_WINDOW_NODE);
    for (guint i = 0; i < BERTH_START_WINDOW_NODE; i++) {
        send_one(test);
    }
    assert_int_equal(test->built, BERTH_START_WINDOW_NODE);
    while (test->built < 100) {
        guint built = test->built;
        answer(test, 1);
        assert_int_equal(test->built, built + 1);
        send_one(test);
    }
    for (guint i = 0; i < BERTH_START_WINDOW_NODE; i++) {
        answer(test, 1);
    }
}

static void window_of_memory_is_shared_by_turns(void **state)
{
    Test *test = *state;
    enter(test, 1, 8, FALSE);
    enter(test, 2, 8, FALSE);
    enter(test, 3, 8, FALSE); /* no memory is left */
    assert_int_equal(test->built, BERTH_START_WINDOW_MEMORY);
    for (guint i = 0; i < 8; i++) {
        send_one(test);
    }
    assert_int_equal(test->built, 24);
    for (guint i = 0; i < BERTH_START_WINDOW_MEMORY; i++) {
        send_one(test);
    }
    for (guint node = 1; node <= 3; node++) {
        for (guint i = 0; i < 8; i++) {
            answer(test, node);
        }
    }
    /* From here on each waits behind the others' next. */
    g_string_truncate(test->order, 0);
    enter(test, 1, 8, FALSE);
    enter(test, 2, 8, FALSE);
    enter(test, 1, 2, FALSE);
    enter(test, 3, 2, FALSE);
    answer(test, 1);
    answer(test, 1);
    for (guint i = 0; i < 4; i++) {
        send_one(test);
    }
    assert_string_equal(test->order->str + 16, "3131");
}

static void window_of_starts_that_were_given_up_is_free(void **state)
{
    Test *test = *state;
    enter(test, 1, 8, FALSE);
    enter(test, 1, 50, TRUE);
    enter(test, 1, 1, FALSE);
    assert_int_equal(test->built, 8);
    answer(test, 1);
    assert_int_equal(test->built, 9);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(window_of_a_node_opens_with_each_answer),
        TEST(window_of_memory_is_shared_by_turns),
        TEST(window_of_starts_that_were_given_up_is_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
