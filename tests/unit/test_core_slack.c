/* SPDX-License-Identifier: Apache-2.0 */
/* Prediction and opportunistic placement. Who leaves slack again: test_core_relief, test_core_moves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

static void slack_takes_jobs_that_may_leave(void **state)
{
    run(IDLE_NODE "submit 2 v=2 m=500\n"
                  "submit 3 v=2 m=500 slack\n"
                  "submit 4 v=2 m=500 slack may-checkpoint -> START 4.1@1~\n"
                  "submit 5 v=1 m=101 slack may-checkpoint\n" /* the headroom is 100 */
                  "submit 6 v=1 m=100 slack may-checkpoint -> START 6.1@1~\n");
}

/* 1 runs until 1000 on 6 of 10 vCPUs and uses little; 2 (8) comes then, and 3 (all) after it: that is
 * planned once somebody could be in its way. */
#define TWO_ARE_PLANNED                                                                            \
    "node 1 10 1000\n"                                                                             \
    "submit 1 v=6 m=100 limit=1000 -> START 1.1@1\n"                                               \
    "running 1.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 1.1 cpu=500 mem=100\n"                                                                 \
    "submit 2 v=8 m=10 limit=1000\n"                                                               \
    "submit 3 v=10 m=10 limit=500\n"                                                               \
    "planned 2 1000\n"                                                                             \
    "planned 3 never\n"

static void second_plan_holds_for_those_who_have_slack_to_go_to(void **state)
{
    /* 4 would be in the way of 3 alone: backed if it cannot be in slack, as EASY has it... */
    run(TWO_ARE_PLANNED "submit 4 v=2 m=10 limit=5000 -> START 4.1@1\n");
    run(TWO_ARE_PLANNED "submit 4 v=2 m=850 limit=5000 slack may-checkpoint -> START 4.1@1\n");
    /* ... in slack if it can, and then it stays there; not at all if it is in the way of 2. */
    run(TWO_ARE_PLANNED "submit 4 v=2 m=10 limit=5000 slack may-checkpoint -> START 4.1@1~\n"
                        "running 4.1\n"
                        "submit 5 v=1 m=1 limit=10 -> START 5.1@1\n"
                        "planned 3 2000\n");
    run(TWO_ARE_PLANNED "submit 4 v=3 m=850 limit=5000 slack may-checkpoint\n");
    /* Nor is it backed if it would be over when 3 is to start: 1 may end long before its limit. */
    run(TWO_ARE_PLANNED "submit 4 v=2 m=10 limit=10 slack may-checkpoint -> START 4.1@1~\n");
    /* But wherever it is in nobody's way. */
    run(TWO_ARE_PLANNED "node 2 2 1000\n"
                        "submit 4 v=2 m=10 limit=5000 slack may-checkpoint -> START 4.1@2\n");
}

static void second_plan_stands_for_its_interval(void **state)
{
    core_script_run_tuned(
        BERTH_FEATURE_ALL, BERTH_TUNING_SLACK_PLAN_INTERVAL_USEC, 10 * G_USEC_PER_SEC,
        TWO_ARE_PLANNED "submit 4 v=2 m=10 limit=5000 slack may-checkpoint -> START 4.1@1~\n"
                        "running 4.1\n"
                        "planned 3 2000\n"
                        "submit 6 v=10 m=10 limit=100\n"
                        "at 29\n"
                        "submit 7 v=1 m=1 limit=9 slack may-checkpoint -> START 7.1@1~\n"
                        "planned 6 never\n"
                        "at 30\n"
                        "submit 8 v=1 m=1 limit=9 slack may-checkpoint -> START 8.1@1~\n"
                        "planned 3 2000\n"
                        "planned 6 2500\n"
                        "cancel 3\n"
                        "planned 3 never\n"
                        "planned 6 2500\n");
}

static void second_plan_ends_with_its_job(void **state)
{
    /* What was kept for 3 is free at once: 4, in slack, is backed. */
    run(TWO_ARE_PLANNED "submit 4 v=2 m=10 limit=5000 slack may-checkpoint -> START 4.1@1~\n"
                        "running 4.1\n"
                        "planned 3 2000\n"
                        "cancel 3 -> RESIZE 4.1@1\n"
                        "planned 3 never\n");
}

static void second_plan_is_off_at_depth_0(void **state)
{
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_SLACK_PLAN_DEPTH, 0,
                          "node 1 10 1000\n"
                          "submit 1 v=6 m=100 limit=1000 -> START 1.1@1\n"
                          "running 1.1\n"
                          "at 20\n"
                          "report 1.1 cpu=500 mem=100\n"
                          "submit 2 v=8 m=10 limit=1000\n"
                          "submit 3 v=10 m=10 limit=500\n"
                          "planned 3 never\n"
                          "submit 4 v=2 m=10 limit=5000 slack may-checkpoint -> START 4.1@1\n");
}

static void slack_is_off_without_its_feature(void **state)
{
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_OPPORTUNISTIC,
             IDLE_NODE "submit 2 v=2 m=500 slack may-checkpoint\n");
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_PREDICTION,
             IDLE_NODE "submit 2 v=2 m=500 slack may-checkpoint\n");
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_CHECKPOINT,
             IDLE_NODE "submit 2 v=2 m=500 slack may-checkpoint\n");
}

static void new_guest_is_taken_at_its_reservation_until_it_settled(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=4 m=1000 limit=10000 -> START 1.1@1\n"
        "running 1.1\n"
        "at 9\n"
        "report 1.1 cpu=1000 mem=300\n"
        "submit 2 v=2 m=500 slack may-checkpoint\n"
        "at 11\n"
        "report 1.1 cpu=1000 mem=300\n"
        "at 60\n"
        "timer -> START 2.1@1~\n");
}

static void prediction_rises_at_once_and_sinks_slowly(void **state)
{
    g_autoptr(BerthCore) core = NULL;
    BerthCoreConfig config = core_script_config;
    config.features = BERTH_FEATURE_ALL;
    core = berth_core_new(&config);
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    const gint64 minute_usec = 60 * (gint64)G_USEC_PER_SEC;
    BerthCoreEvent join = {.kind = BERTH_EVENT_NODE_JOINED, .node = berth_core_add_node(core, "n")};
    join.joined.info.capacity = (BerthResources){8, 10000, 0};
    BerthCoreEvent submit = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    submit.submitted = (BerthCoreJob){.id = 1, .resources = {8, 10000, 0}};
    BerthCoreEvent running = {.kind = BERTH_EVENT_GUEST_RUNNING, .guest = {1, 0, 0, 1}};
    BerthCoreEvent report = {.kind = BERTH_EVENT_GUEST_REPORTED, .guest = {1, 0, 0, 1}};
    assert_true(berth_core_handle(core, 1, &join, effects, NULL));
    assert_true(berth_core_handle(core, 1, &submit, effects, NULL));
    assert_true(berth_core_handle(core, 1, &running, effects, NULL));
    static const struct {
        gint64 minute;
        guint32 cpu_milli, expected_milli;
        guint64 used_mib, expected_mib;
    } steps[] = {
        {60, 1000, 1100, 200, 220},      /* settled: the peak and a tenth */
        {120, 4000, 4400, 1000, 1100},   /* up at once */
        {130, 0, 2200, 1000, 1100},      /* vCPUs: half of it after 10 minutes */
        {140, 0, 1100, 1000, 1100},      /* and again */
        {860, 0, 0, 0, 550},             /* memory: after 12 hours */
        {870, 8000, 8000, 10000, 10000}, /* never more than it reserved */
    };
    for (gsize i = 0; i < G_N_ELEMENTS(steps); i++) {
        BerthCoreGuest guest;
        report.usage =
            (BerthCoreUsage){.cpu_milli = steps[i].cpu_milli, .memory_used_mib = steps[i].used_mib};
        assert_true(berth_core_handle(core, steps[i].minute * minute_usec, &report, effects, NULL));
        assert_true(berth_core_get_guest(core, 1, 0, 0, &guest));
        assert_in_range(guest.predicted_milli, MAX(steps[i].expected_milli, 2) - 2,
                        steps[i].expected_milli + 2);
        assert_in_range(guest.predicted_mib, steps[i].expected_mib - 2, steps[i].expected_mib + 2);
        berth_core_assert_invariants(core);
    }
}

static void siblings_are_taken_at_what_others_needed(void **state)
{
    const char *script = "node 1 4 1000\n"
                         "node 2 4 1000\n"
                         "submit 1 v=4 m=700 family=9 limit=100 array=3 throttle=1 -> START 1.1@1\n"
                         "running 1.1\n"
                         "report 1.1 cpu=500 mem=200\n"
                         "exited 1.1 -> RELEASE 1.1@1\n"
                         "released 1.1 -> START 1/1.1@1\n"
                         "running 1/1.1\n"
                         "report 1/1.1 cpu=500 mem=200\n"
                         "exited 1/1.1 -> RELEASE 1/1.1@1\n"
                         "released 1/1.1 -> START 1/2.1@1\n"
                         "running 1/2.1\n"
                         "report 1/2.1 cpu=500 mem=200\n"
                         "exited 1/2.1 -> RELEASE 1/2.1@1\n"
                         "released 1/2.1\n"
                         "submit 2 v=4 m=700 -> START 2.1@1\n"
                         "submit 3 v=4 m=700 -> START 3.1@2\n"
                         "submit 4 v=4 m=700 slack may-checkpoint\n"
                         "cancel 4\n"
                         "running 2.1\n"
                         "at 20\n"
                         "report 2.1 cpu=500 mem=200\n"
                         "submit 5 v=4 m=700 family=9 slack may-checkpoint";
    g_autofree char *with = g_strconcat(script, " -> START 5.1@1~\n", NULL);
    g_autofree char *without = g_strconcat(script, "\n", NULL);
    run(with);
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_SIBLING_PRIOR, without);
}

static void siblings_are_those_with_the_same_reservation(void **state)
{
    run("node 1 4 2000\n"
        "submit 1 v=4 m=1000 family=9 limit=100 array=3 throttle=1 -> START 1.1@1\n"
        "running 1.1\n"
        "report 1.1 cpu=500 mem=200\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> START 1/1.1@1\n"
        "running 1/1.1\n"
        "report 1/1.1 cpu=500 mem=200\n"
        "exited 1/1.1 -> RELEASE 1/1.1@1\n"
        "released 1/1.1 -> START 1/2.1@1\n"
        "running 1/2.1\n"
        "report 1/2.1 cpu=500 mem=200\n"
        "exited 1/2.1 -> RELEASE 1/2.1@1\n"
        "released 1/2.1\n"
        "submit 2 v=4 m=1000 -> START 2.1@1\n"
        "running 2.1\n"
        "at 20\n"
        "report 2.1 cpu=1500 mem=700\n"
        "submit 3 v=3 m=1000 family=9 slack may-checkpoint\n"
        "submit 4 v=4 m=1000 family=9 slack may-checkpoint -> START 4.1@1~\n");
}

/* 1 to 3 needed 1, 1 and 3.4 vCPUs; 4 leaves 2.5. */
#define JOBS_OF_A_USER                                                                             \
    "node 1 4 2000\n"                                                                              \
    "submit 1 v=4 m=1000 limit=100 -> START 1.1@1\n"                                               \
    "running 1.1\n"                                                                                \
    "report 1.1 cpu=1000 mem=200\n"                                                                \
    "exited 1.1 -> RELEASE 1.1@1\n"                                                                \
    "released 1.1\n"                                                                               \
    "submit 2 v=4 m=500 family=7 limit=100 -> START 2.1@1\n"                                       \
    "running 2.1\n"                                                                                \
    "report 2.1 cpu=1000 mem=200\n"                                                                \
    "exited 2.1 -> RELEASE 2.1@1\n"                                                                \
    "released 2.1\n"                                                                               \
    "submit 3 v=4 m=1000 family=8 limit=100 -> START 3.1@1\n"                                      \
    "running 3.1\n"                                                                                \
    "report 3.1 cpu=3400 mem=200\n"                                                                \
    "exited 3.1 -> RELEASE 3.1@1\n"                                                                \
    "released 3.1\n"                                                                               \
    "submit 4 v=4 m=1000 uid=7 -> START 4.1@1\n"                                                   \
    "running 4.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 4.1 cpu=1500 mem=700\n"

static void job_without_siblings_needs_vcpus_as_its_user_s_others(void **state)
{
    run(JOBS_OF_A_USER "submit 6 v=3 m=100 slack may-checkpoint\n"  /* other vCPUs */
                       "submit 7 v=4 m=1101 slack may-checkpoint\n" /* all of its memory, still */
                       "submit 8 v=4 m=1100 slack may-checkpoint -> START 8.1@1~\n");
    /* Of another user nothing is known, but of others' jobs. */
    run(JOBS_OF_A_USER "submit 5 v=4 m=100 uid=7 slack may-checkpoint -> START 5.1@1~\n");
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_SIBLING_PRIOR,
             JOBS_OF_A_USER "submit 8 v=4 m=1100 slack may-checkpoint\n");
}

/* Three siblings of 500 MiB needed 10. 4 uses 100 of the 400 MiB that it reserves on the node. */
#define FRUGAL_SIBLINGS                                                                            \
    "node 1 4 1000\n"                                                                              \
    "submit 1 v=2 m=500 family=9 limit=100 array=3 throttle=1 -> START 1.1@1\n"                    \
    "running 1.1\n"                                                                                \
    "report 1.1 cpu=500 mem=10\n"                                                                  \
    "exited 1.1 -> RELEASE 1.1@1\n"                                                                \
    "released 1.1 -> START 1/1.1@1\n"                                                              \
    "running 1/1.1\n"                                                                              \
    "report 1/1.1 cpu=500 mem=10\n"                                                                \
    "exited 1/1.1 -> RELEASE 1/1.1@1\n"                                                            \
    "released 1/1.1 -> START 1/2.1@1\n"                                                            \
    "running 1/2.1\n"                                                                              \
    "report 1/2.1 cpu=500 mem=10\n"                                                                \
    "exited 1/2.1 -> RELEASE 1/2.1@1\n"                                                            \
    "released 1/2.1\n"                                                                             \
    "submit 4 v=3 m=400 limit=10000 -> START 4.1@1\n"                                              \
    "running 4.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 4.1 cpu=500 mem=100\n"

/* One that is unlike its siblings may take all of its memory at once: whoever starts beside it, of
 * whom as much is true, could not get what it was promised. */
static void memory_of_a_guest_that_was_never_measured_is_all_that_it_reserved(void **state)
{
    run(FRUGAL_SIBLINGS "submit 5 v=2 m=500 family=9 slack may-checkpoint -> START 5.1@1~\n"
                        "submit 6 v=1 m=600 limit=1000 -> RELEASE 5.1@1\n"
                        "at 21\n"
                        "released 5.1 -> START 6.1@1\n");
    run(FRUGAL_SIBLINGS "submit 5 v=2 m=500 family=9 slack may-checkpoint -> START 5.1@1~\n"
                        "running 5.1\n"
                        "submit 6 v=1 m=600 limit=1000 -> CHECKPOINT 5.1@1~\n"
                        "at 22\n"
                        "checkpointed 5.1 -> RELEASE 5.1@1\n"
                        "at 24\n"
                        "released 5.1 -> START 6.1@1\n");
    /* Measured, it is taken at what they needed until it has settled. */
    run(FRUGAL_SIBLINGS "submit 5 v=2 m=500 family=9 slack may-checkpoint -> START 5.1@1~\n"
                        "running 5.1\n"
                        "report 5.1 cpu=100 mem=5\n"
                        "submit 6 v=1 m=600 limit=1000 -> START 6.1@1\n");
}

/* What was measured before is not known any more, and is no reason to send anybody away. */
static void restart_sends_nobody_away(void **state)
{
    const char *script = IDLE_NODE "submit 2 v=2 m=500 slack may-checkpoint -> START 2.1@1~\n"
                                   "running 2.1\n"
                                   "at 40\n"
                                   "report 2.1 cpu=100 mem=100\n"
                                   "restart guests\n"
                                   "join 1 1.1:running 2.1:running\n"
                                   "at 45\n"
                                   "report 1.1 cpu=1000 mem=300\n"
                                   "report 2.1 cpu=100 mem=100\n"
                                   "at 49\n";
    /* What is measured now is; and once each has been measured after it settled, so is what is predicted. */
    const char *const ends[] = {
        "pressed 1 -> CHECKPOINT 2.1@1~\n",
        "at 51\n"
        "report 1.1 cpu=1000 mem=300\n"
        "report 2.1 cpu=100 mem=100\n",
        "at 51\n"
        "report 2.1 cpu=100 mem=100\n"
        "report 1.1 cpu=1000 mem=300\n",
        "at 51\n"
        "report 2.1 cpu=100 mem=100\n"
        "report 1.1 cpu=1000 mem=900 -> CHECKPOINT 2.1@1~\n",
    };
    for (guint i = 0; i < G_N_ELEMENTS(ends); i++) {
        g_autofree char *whole = g_strconcat(script, ends[i], NULL);
        run(whole);
    }
}

/* From the records of tasks alone: who is in slack goes for who is backed. */
static void restart_knows_who_is_in_slack(void **state)
{
    run(FRUGAL_SIBLINGS "submit 5 v=2 m=500 family=9 slack may-checkpoint -> START 5.1@1~\n"
                        "running 5.1\n"
                        "restart\n"
                        "join 1 4.1:running 5.1:running\n"
                        "submit 6 v=1 m=600 limit=1000 -> CHECKPOINT 5.1@1~\n");
}

/* Its siblings needed 100; it is known to need 500 when it goes on. */
static void restored_guest_needs_what_it_needed(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=4 m=600 family=9 limit=100 array=3 throttle=1 -> START 1.1@1\n"
        "running 1.1\n"
        "report 1.1 cpu=500 mem=100\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> START 1/1.1@1\n"
        "running 1/1.1\n"
        "report 1/1.1 cpu=500 mem=100\n"
        "exited 1/1.1 -> RELEASE 1/1.1@1\n"
        "released 1/1.1 -> START 1/2.1@1\n"
        "running 1/2.1\n"
        "report 1/2.1 cpu=500 mem=100\n"
        "exited 1/2.1 -> RELEASE 1/2.1@1\n"
        "released 1/2.1\n"
        "submit 2 v=4 m=1000 limit=10000 -> START 2.1@1\n"
        "running 2.1\n"
        "at 20\n"
        "report 2.1 cpu=500 mem=300\n"
        "submit 3 v=4 m=600 family=9 slack may-checkpoint -> START 3.1@1~\n"
        "running 3.1\n"
        "report 3.1 cpu=500 mem=500\n"
        "report 2.1 cpu=500 mem=600 -> CHECKPOINT 3.1@1~\n"
        "checkpointed 3.1 -> RELEASE 3.1@1\n"
        "released 3.1\n"
        "at 100\n"
        "timer\n"
        "exited 2.1 -> RELEASE 2.1@1\n"
        "released 2.1 -> RESTORE 3.2@1\n");
}

/* It was let in because there was room beside whoever was backed. He has gone, and the room is for who ranks higher. */
static void who_ranks_higher_is_backed_before_others_start(void **state)
{
    run(IDLE_NODE "submit 3 p=1000 v=2 m=500 limit=10000 may-checkpoint slack -> START 3.1@1~\n"
                  "running 3.1\n"
                  "submit 4 v=4 m=700 limit=5000\n"
                  "at 40\n"
                  "report 3.1 cpu=1000 mem=400 left=100\n"
                  "report 1.1 cpu=1000 mem=300\n"
                  "exited 1.1 -> RELEASE 1.1@1\n"
                  "released 1.1 -> RESIZE 3.1@1\n"
                  "resized 3.1\n"
                  "why 4 resources\n");
}

/* On each of the nodes that a gang would start on, for all of it that would be there. */
static void who_ranks_higher_is_backed_before_a_gang_starts(void **state)
{
    run(IDLE_NODE "node 2 4 1000\n"
                  "submit 2 v=4 m=1000 limit=10000 -> START 2.1@2\n"
                  "running 2.1\n"
                  "report 2.1 cpu=4000 mem=1000\n"
                  "submit 3 p=1000 v=2 m=500 limit=10000 may-checkpoint slack -> START 3.1@1~\n"
                  "running 3.1\n"
                  "submit 4 v=4 m=700 limit=5000 guests=2\n"
                  "at 40\n"
                  "report 3.1 cpu=1000 mem=400 left=100\n"
                  "report 1.1 cpu=1000 mem=300\n"
                  "exited 1.1 -> RELEASE 1.1@1\n"
                  "exited 2.1 -> RELEASE 2.1@2\n"
                  "released 2.1\n"
                  "released 1.1 -> RESIZE 3.1@1\n"
                  "resized 3.1\n"
                  "why 4 resources\n");
    run(IDLE_NODE "submit 3 p=1000 v=2 m=500 limit=10000 may-checkpoint slack -> START 3.1@1~\n"
                  "running 3.1\n"
                  "submit 4 v=2 m=400 limit=5000 guests=2\n"
                  "at 40\n"
                  "report 3.1 cpu=1000 mem=400 left=100\n"
                  "report 1.1 cpu=1000 mem=300\n"
                  "exited 1.1 -> RELEASE 1.1@1\n"
                  "released 1.1 -> RESIZE 3.1@1\n");
}

/* By what it ranks now: nobody of its class has waited since it started. */
static void who_has_come_to_rank_higher_is_backed_too(void **state)
{
    run(IDLE_NODE "submit 3 qos=1 v=2 m=500 limit=10000 may-checkpoint slack -> START 3.1@1~\n"
                  "running 3.1\n"
                  "submit 4 v=4 m=700 limit=5000\n"
                  "qos 1 p=1000\n"
                  "at 40\n"
                  "report 3.1 cpu=1000 mem=400 left=100\n"
                  "report 1.1 cpu=1000 mem=300\n"
                  "exited 1.1 -> RELEASE 1.1@1\n"
                  "released 1.1 -> RESIZE 3.1@1\n");
}

/* Not to the eldest. */
static void room_goes_to_who_ranks_highest_in_slack(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=1 m=600 limit=10000 -> START 1.1@1\n"
        "submit 2 v=3 m=400 limit=10000 -> START 2.1@1\n"
        "running 1.1\n"
        "running 2.1\n"
        "at 20\n"
        "report 1.1 cpu=100 mem=100\n"
        "report 2.1 cpu=100 mem=100\n"
        "submit 3 v=1 m=200 limit=10000 may-checkpoint slack -> START 3.1@1~\n"
        "running 3.1\n"
        "submit 5 p=1000 v=1 m=200 limit=10000 may-checkpoint slack -> START 5.1@1~\n"
        "running 5.1\n"
        "at 40\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> RESIZE 5.1@1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_has_come_to_rank_higher_is_backed_too),
        cmocka_unit_test(room_goes_to_who_ranks_highest_in_slack),
        cmocka_unit_test(who_ranks_higher_is_backed_before_others_start),
        cmocka_unit_test(who_ranks_higher_is_backed_before_a_gang_starts),
        cmocka_unit_test(slack_takes_jobs_that_may_leave),
        cmocka_unit_test(second_plan_holds_for_those_who_have_slack_to_go_to),
        cmocka_unit_test(second_plan_stands_for_its_interval),
        cmocka_unit_test(second_plan_ends_with_its_job),
        cmocka_unit_test(second_plan_is_off_at_depth_0),
        cmocka_unit_test(slack_is_off_without_its_feature),
        cmocka_unit_test(new_guest_is_taken_at_its_reservation_until_it_settled),
        cmocka_unit_test(prediction_rises_at_once_and_sinks_slowly),
        cmocka_unit_test(siblings_are_taken_at_what_others_needed),
        cmocka_unit_test(siblings_are_those_with_the_same_reservation),
        cmocka_unit_test(job_without_siblings_needs_vcpus_as_its_user_s_others),
        cmocka_unit_test(memory_of_a_guest_that_was_never_measured_is_all_that_it_reserved),
        cmocka_unit_test(restart_sends_nobody_away),
        cmocka_unit_test(restart_knows_who_is_in_slack),
        cmocka_unit_test(restored_guest_needs_what_it_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
