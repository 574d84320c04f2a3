/* SPDX-License-Identifier: Apache-2.0 */
/* What the core answers to who asks why a job waits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler/core/heap.h"
#include "tests/unit/core_slack_script.h"

static void wait_names_need_nearest_node_and_plan(void **state)
{
    run("node 1 4 1000\n"
        "node 2 2 1000\n"
        "node 3 8 1000\n"
        "submit 1 v=3 m=600 limit=100 -> START 1.1@1\n"
        "submit 2 v=7 m=600 limit=300 -> START 2.1@3\n"
        "running 1.1\n"
        "running 2.1\n"
        "submit 3 v=3 m=500 limit=50\n"
        "why 3 resources\n"
        /* node 2 never has 3 vCPUs; it lacks less memory, and 2 vCPUs, of node 1 than of node 3 */
        "waits 3 need=3/500 open=2 nearest=1:1/400 plan=100@1 leaves=1@100 slack=not-wanted\n"
        "cordon 3\n"
        "waits 3 need=3/500 open=1 nearest=1:1/400 plan=100@1 leaves=1@100 slack=not-wanted\n"
        "cordon 1\n"
        "waits 3 need=3/500 slack=not-wanted\n");
}

/* Who may use all of them is not told of each. */
static void wait_names_nodes_that_it_names_and_that_are_closed(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "node 3 4 1000\n"
        "cordon 1\n"
        "drain 2\n"
        "submit 1 v=1 m=500 nodes=1,2\n"
        "why 1 node-unavailable\n"
        "waits 1 need=1/500 closed=1,2 slack=not-wanted\n"
        "undrain 2 -> START 1.1@2\n"
        "cordon 3\n"
        "cordon 2\n"
        "submit 2 v=1 m=500\n"
        "waits 2 need=1/500 slack=not-wanted\n"
        "submit 3 v=4 m=500 nodes=2,3 held\n"
        "undrain 2 -> START 2.1@2\n"
        "waits 3 need=4/500 open=1 nearest=2:2/0 closed=3 slack=not-wanted\n");
}

static void wait_counts_closed_nodes_that_it_does_not_name(void **state)
{
    g_autoptr(GString) script = g_string_new(NULL);
    for (guint node = 1; node <= 20; node++)
        g_string_append_printf(script, "node %u 4 1000\ncordon %u\n", node, node);
    g_string_append(script, "submit 1 v=1 m=500 "
                            "nodes=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20\n"
                            "waits 1 need=1/500 closed=1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16+4 "
                            "slack=not-wanted\n");
    run(script->str);
}

static void wait_names_who_is_before_it(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=4 limit=100 -> START 1.1@1\n"
        "submit 2 v=2 limit=50\n"
        "submit 3 v=3 limit=50\n"
        "submit 4 v=2 limit=50\n"
        "submit 5 v=2 limit=50 p=1\n"
        "submit 6 v=2 limit=50 held\n"
        "submit 7 v=1 limit=50\n"
        "waits 5 need=2/100 open=1 nearest=1:0/900 plan=100@1 leaves=1@100 slack=not-wanted\n"
        "waits 2 need=2/100 before=1:5 open=1 nearest=1:0/900 slack=not-wanted\n"
        "waits 4 need=2/100 before=3:5,2,3 open=1 nearest=1:0/900 slack=not-wanted\n"
        "why 6 held-by-user\n"
        "waits 6 need=2/100 open=1 nearest=1:0/900 slack=not-wanted\n");
}

static void wait_names_eight_before_it_at_most(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=4 limit=100 -> START 1.1@1\n"
        "submit 2 v=4\nsubmit 3 v=4\nsubmit 4 v=3\nsubmit 5 v=4\nsubmit 6 v=4\n"
        "submit 7 v=4\nsubmit 8 v=3\nsubmit 9 v=4\nsubmit 10 v=4\nsubmit 11 v=4\n"
        "cancel 4\n"
        "waits 11 need=4/100 before=8:2,3,5,6,7,8,9,10 open=1 nearest=1:0/900 slack=not-wanted\n"
        "submit 12 v=4\n"
        "waits 12 need=4/100 before=9:2,3,5,6,7,8,9,10 open=1 nearest=1:0/900 "
        "slack=not-wanted\n");
}

#define N_MANY 10000u

typedef struct {
    CoreHeapLink link;
    guint rank;
} Ranked;

static guint n_compared;

static int compare_counted(const CoreHeapLink *a, const CoreHeapLink *b)
{
    n_compared++;
    return (int)CORE_CONTAINER_OF(a, const Ranked, link)->rank -
           (int)CORE_CONTAINER_OF(b, const Ranked, link)->rank;
}

/* However many there are: who asks why a job waits must not stop the scheduler for that. */
static void elder_ones_are_counted_by_looking_at_each_once(void **state)
{
    static Ranked all[N_MANY];
    CoreHeap heap;
    core_heap_init(&heap, compare_counted);
    for (guint i = 0; i < N_MANY; i++) {
        guint at = i * 7919 % N_MANY; /* a prime: each once, in no order */
        all[at].rank = at;
        core_heap_push(&heap, &all[at].link);
    }
    for (guint rank = 0; rank < N_MANY; rank += 1111) {
        n_compared = 0;
        assert_int_equal(core_heap_count_before(&heap, &all[rank].link, N_MANY), rank);
        assert_true(n_compared <= 2 * rank + 1);
    }
    n_compared = 0;
    assert_int_equal(core_heap_count_before(&heap, &all[N_MANY - 1].link, 100), 100);
    assert_true(n_compared <= 2 * 100 + 1);
    core_heap_clear(&heap);
}

static void wait_says_why_not_in_slack(void **state)
{
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_OPPORTUNISTIC,
             IDLE_NODE "submit 2 v=2 m=500 slack may-checkpoint\n"
                       "waits 2 need=2/500 open=1 nearest=1:0/0 plan=10000@1 leaves=1@10000 "
                       "slack=off\n");
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_CHECKPOINT,
             IDLE_NODE "submit 2 v=2 m=500 slack may-checkpoint\n"
                       "waits 2 need=2/500 open=1 nearest=1:0/0 plan=10000@1 leaves=1@10000 "
                       "slack=cannot-leave\n");
    run(IDLE_NODE "submit 2 v=4 m=800 slack may-checkpoint\n"
                  "waits 2 need=4/800 open=1 nearest=1:0/0 plan=10000@1 leaves=1@10000 "
                  "slack=no-room,cpu:1\n");
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_CHECKPOINT_SPACE_MIB, 100,
                          IDLE_NODE "submit 2 v=2 m=500 slack may-checkpoint\n"
                                    "waits 2 need=2/500 open=1 nearest=1:0/0 plan=10000@1 "
                                    "leaves=1@10000 slack=no-space\n");
}

/* Each of the nodes for another reason; 5 is too small for it, and is none that it may use. On 6 most is page cache. */
static void wait_counts_nodes_by_what_hinders_them(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=4 m=1000 limit=10000 -> START 1.1@1\n"
        "running 1.1\n"
        "node 2 4 1000\n"
        "submit 2 v=4 m=1000 limit=10000 -> START 2.1@2\n"
        "running 2.1\n"
        "node 3 4 1000\n"
        "submit 3 v=4 m=1000 limit=10000 -> START 3.1@3\n"
        "running 3.1\n"
        "node 4 4 1000\n"
        "submit 4 v=4 m=1000 limit=10000 -> START 4.1@4\n"
        "running 4.1\n"
        "node 5 1 1000\n"
        "node 6 4 1000\n"
        "submit 6 v=4 m=1000 limit=10000 -> START 6.1@6\n"
        "running 6.1\n"
        "at 20\n"
        "report 1.1 cpu=4000 mem=300\n"
        "report 2.1 cpu=1000 mem=900\n"
        "report 3.1 cpu=1000 mem=900\n"
        "report 4.1 cpu=1000 mem=300\n"
        "report 6.1 cpu=1000 mem=300 touched=900\n"
        "pressed 4\n"
        "submit 5 v=2 m=500 slack may-checkpoint\n"
        "waits 5 need=2/500 open=5 nearest=1:0/0 plan=10000@1 leaves=1@10000 "
        "slack=no-room,cpu:1,memory:2,pressed:1,occupied:1\n");
}

/* 2 has the firm start, on node 2; for 3 node 1 is gathered, as soon as somebody comes who could be in slack. */
static void wait_says_whether_a_plan_may_be_put_off(void **state)
{
    core_script_run_tuned(
        BERTH_FEATURE_ALL, BERTH_TUNING_PLAN_DEPTH, 1,
        "node 1 10 1000\n"
        "node 2 10 1000\n"
        "submit 1 v=4 m=500 nodes=1 limit=100000 -> START 1.1@1\n"
        "running 1.1\n"
        "submit 9 v=10 m=1000 nodes=2 limit=100000 -> START 9.1@2\n"
        "running 9.1\n"
        "at 20\n"
        "report 1.1 cpu=4000 mem=500\n"
        "report 9.1 cpu=10000 mem=1000\n"
        "submit 2 v=10 m=1000 nodes=2 limit=1000\n"
        "submit 3 v=10 m=1000 nodes=1 limit=1000\n"
        "submit 4 v=1 m=100 limit=100 may-checkpoint slack nodes=1 -> START 4.1@1~\n"
        "waits 2 need=10/1000 open=1 nearest=2:0/0 plan=100000@2 leaves=9@100000 "
        "slack=not-wanted\n"
        "waits 3 need=10/1000 before=1:2 open=1 nearest=1:6/500 plan=~100000@1 leaves=1@100000 "
        "slack=not-wanted\n");
}

/* Its guest was lost there, and may start there again. */
static void room_in_slack_may_be_where_it_was(void **state)
{
    run(IDLE_NODE "submit 2 v=2 m=500 slack may-checkpoint -> START 2.1@1~\n"
                  "running 2.1\n"
                  "gone 2.1 guest-vanished -> RELEASE 2.1@1\n"
                  "pressed 1\n"
                  "released 2.1\n"
                  "waits 2 need=2/500 open=1 nearest=1:0/0 plan=10000@1 leaves=1@10000 "
                  "slack=no-room,pressed:1\n"
                  "at 500\n"
                  "report 1.1 cpu=1000 mem=300\n"
                  "waits 2 need=2/500 open=1 nearest=1:0/0 plan=10000@1 leaves=1@10000 "
                  "slack=room\n");
}

/* Reports make room that is looked for with the next round only. */
static void wait_says_when_room_is_looked_for_next(void **state)
{
    run("looks never\n"
        "node 1 4 1000\n"
        "submit 1 v=4 m=1000 limit=10000 -> START 1.1@1\n"
        "running 1.1\n"
        "looks 60\n"
        "at 9\n"
        "report 1.1 cpu=1000 mem=300\n"
        "submit 2 v=2 m=500 slack may-checkpoint\n"
        "waits 2 need=2/500 open=1 nearest=1:0/0 plan=10000@1 leaves=1@10000 slack=no-room,cpu:1\n"
        "at 11\n"
        "report 1.1 cpu=1000 mem=300\n"
        "waits 2 need=2/500 open=1 nearest=1:0/0 plan=10000@1 leaves=1@10000 slack=room\n"
        "looks 60\n"
        "at 60\n"
        "timer -> START 2.1@1~\n"
        "looks 120\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wait_names_need_nearest_node_and_plan),
        cmocka_unit_test(wait_names_nodes_that_it_names_and_that_are_closed),
        cmocka_unit_test(wait_counts_closed_nodes_that_it_does_not_name),
        cmocka_unit_test(wait_names_who_is_before_it),
        cmocka_unit_test(wait_names_eight_before_it_at_most),
        cmocka_unit_test(elder_ones_are_counted_by_looking_at_each_once),
        cmocka_unit_test(wait_says_why_not_in_slack),
        cmocka_unit_test(wait_counts_nodes_by_what_hinders_them),
        cmocka_unit_test(wait_says_whether_a_plan_may_be_put_off),
        cmocka_unit_test(room_in_slack_may_be_where_it_was),
        cmocka_unit_test(wait_says_when_room_is_looked_for_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
