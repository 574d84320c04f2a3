/* SPDX-License-Identifier: Apache-2.0 */
/* Time limits: what they are charged, and what comes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_slack_script.h"

static void time_limit_saves_what_may_be_saved(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 limit=100 save may-checkpoint -> START 1.1@1\n"
        "submit 2 limit=100 save -> START 2.1@1\n"
        "running 1.1\n"
        "running 2.1\n"
        "at 100\n"
        "timer -> CHECKPOINT 1.1@1 STOP 2.1@1\n"
        "checkpointed 1.1 -> RELEASE 1.1@1\n"
        "? 1 SUSPENDED time-limit releasing\n"
        "released 1.1\n"
        "? 1 SUSPENDED time-limit none\n");
    run("node 1 4 1000\n"
        "submit 1 limit=100 save may-checkpoint -> START 1.1@1\n"
        "running 1.1\n"
        "at 100\n"
        "timer -> CHECKPOINT 1.1@1\n"
        "checkpointed 1.1 failed -> STOP 1.1@1\n"
        "exited 1.1 signal=15 -> RELEASE 1.1@1\n"
        "? 1 TIMEOUT time-limit releasing\n");
    core_script_run_tuned(BERTH_FEATURE_ALL, BERTH_TUNING_CHECKPOINT_SPACE_MIB, 100,
                          "node 1 4 1000\n"
                          "submit 1 limit=100 save may-checkpoint -> START 1.1@1\n"
                          "running 1.1\n"
                          "at 100\n"
                          "timer -> STOP 1.1@1\n"
                          "missed 1 100\n");
}

/* Of 800 MiB: 2 s at 400 MiB/s, and 5 s that are fixed. The checkpoint is never answered, and 3 is let in beside it then. */
static void saving_that_does_not_end_keeps_nobody_from_the_node(void **state)
{
    run("node 1 4 2000\n"
        "submit 1 v=2 m=800 limit=100 save may-checkpoint -> START 1.1@1\n"
        "running 1.1\n"
        "at 100\n"
        "timer -> CHECKPOINT 1.1@1\n"
        "submit 2 v=4 m=100 limit=1000\n"
        "planned 2 107\n"
        "submit 3 v=1 m=100 limit=100\n"
        "at 220\n"
        "timer -> START 3.1@1\n"
        "planned 2 340\n"
        "running 3.1\n"
        "exited 3.1 -> RELEASE 3.1@1\n"
        "released 3.1\n"
        "checkpointed 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> START 2.1@1\n");
}

/* What a guest may go on to lose is not in it, which would have it swing by days from one report to the next. */
static void time_that_is_left_is_counted_from_what_is_known(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 limit=1000 -> START 1.1@1\n"
        "running 1.1\n"
        "limit 1 1000\n"
        "at 20\n"
        "report 1.1 starved=19\n"
        "limit 1 1019\n"
        "at 40\n"
        "report 1.1\n"
        "limit 1 1019\n"
        "at 60\n"
        "report 1.1 starved=18\n"
        "limit 1 1037\n");
}

static void time_limit_does_not_charge_what_a_guest_was_starved_of(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 limit=100 -> START 1.1@1\n"
        "running 1.1\n"
        "at 20\n"
        "report 1.1 starved=20\n"
        "at 40\n"
        "report 1.1 starved=10\n" /* 30 were lost, and half of what follows is thought to be */
        "at 100\n"
        "timer\n"
        "next 130\n"
        "at 130\n"
        "timer\n"
        "at 140\n"
        "report 1.1 starved=20\n" /* it was a fifth: 10 of service are left */
        "at 152\n"
        "timer\n"
        "at 153\n"
        "timer -> STOP 1.1@1\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "? 1 TIMEOUT time-limit releasing\n");
    run("node 1 4 1000\n"
        "submit 1 limit=100 guests=2 -> START 1.1@1 START 1+1.1@1\n"
        "running 1.1\n"
        "running 1+1.1\n"
        "at 50\n"
        "report 1.1 starved=10\n"
        "report 1+1.1 starved=20\n" /* a gang goes at the pace of its slowest */
        "at 51\n"
        "report 1.1\n"
        "report 1+1.1\n"
        "at 119\n"
        "timer\n"
        "at 120\n"
        "timer -> STOP 1.1@1 STOP 1+1.1@1\n");
}

/* It goes at the pace of its slowest guest, whichever that is at the time. */
static void time_limit_of_a_gang_is_not_charged_what_guests_lose_in_turn(void **state)
{
    /* It stood for 10, and for 20, and for 15 of which both lost some. */
    run("node 1 4 1000\n"
        "submit 1 limit=100 guests=2 -> START 1.1@1 START 1+1.1@1\n"
        "running 1.1\n"
        "running 1+1.1\n"
        "at 30\n"
        "report 1.1 starved=10\n"
        "report 1+1.1\n"
        "at 60\n"
        "report 1.1\n"
        "report 1+1.1 starved=20\n"
        "at 90\n"
        "report 1.1 starved=15\n"
        "report 1+1.1 starved=5\n"
        "at 91\n"
        "report 1.1\n"
        "report 1+1.1\n"
        "at 144\n"
        "timer\n"
        "at 145\n"
        "timer -> STOP 1.1@1 STOP 1+1.1@1\n");
    /* The same, told in the other order. */
    run("node 1 4 1000\n"
        "submit 1 limit=100 guests=2 -> START 1.1@1 START 1+1.1@1\n"
        "running 1.1\n"
        "running 1+1.1\n"
        "at 30\n"
        "report 1+1.1\n"
        "report 1.1 starved=10\n"
        "at 60\n"
        "report 1+1.1 starved=20\n"
        "report 1.1\n"
        "at 90\n"
        "report 1+1.1 starved=5\n"
        "report 1.1 starved=15\n"
        "at 91\n"
        "report 1+1.1\n"
        "report 1.1\n"
        "at 144\n"
        "timer\n"
        "at 145\n"
        "timer -> STOP 1.1@1 STOP 1+1.1@1\n");
    /* Reports are staggered: 15 of the first 30 s, and 20 of the 30 s from the 20th on, of which 10 s
     * are the same: there the gang lost the most, which is two thirds. */
    run("node 1 4 1000\n"
        "submit 1 limit=100 guests=2 -> START 1.1@1 START 1+1.1@1\n"
        "running 1.1\n"
        "running 1+1.1\n"
        "at 20\n"
        "report 1+1.1\n"
        "at 30\n"
        "report 1.1 starved=15\n"
        "at 50\n"
        "report 1+1.1 starved=20\n"
        "at 60\n"
        "report 1.1\n"
        "at 70\n"
        "report 1+1.1\n"
        "at 129\n"
        "timer\n"
        "at 130\n"
        "timer -> STOP 1.1@1 STOP 1+1.1@1\n");
    /* Both lose half of the time all the time: once. */
    run("node 1 4 1000\n"
        "submit 1 limit=100 guests=2 -> START 1.1@1 START 1+1.1@1\n"
        "running 1.1\n"
        "running 1+1.1\n"
        "at 20\n"
        "report 1.1 starved=10\n"
        "at 30\n"
        "report 1+1.1 starved=15\n"
        "at 40\n"
        "report 1.1 starved=10\n"
        "at 60\n"
        "report 1+1.1 starved=15\n"
        "report 1.1 starved=10\n"
        "at 61\n"
        "report 1.1\n"
        "report 1+1.1\n"
        "at 129\n"
        "timer\n"
        "at 130\n"
        "timer -> STOP 1.1@1 STOP 1+1.1@1\n");
}

/* --- constant loss -------------------------------------------------------------------------- */

/* What a guest lost between two of its reports. */
typedef gint64 (*LossFunc)(guint report, gint64 interval_usec, guint permille);

static gint64 lose_evenly(guint report, gint64 interval_usec, guint permille)
{
    return interval_usec / 1000 * permille;
}

static gint64 lose_every_other(guint report, gint64 interval_usec, guint permille)
{
    return report % 2 == 1 ? interval_usec : 0;
}

static BerthCore *core_that_runs_an_hour(gint64 start_usec, BerthCoreEffects *effects)
{
    BerthCore *core = berth_core_new(&core_script_config);
    BerthCoreEvent joins = {.kind = BERTH_EVENT_NODE_JOINED, .node = 1};
    BerthCoreEvent submits = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    BerthCoreEvent runs = {
        .kind = BERTH_EVENT_GUEST_RUNNING, .guest = {.job = 1, .epoch = 1}, .node = 1};
    joins.joined.info.capacity = (BerthResources){4, 1000, 0};
    submits.submitted = (BerthCoreJob){.id = 1,
                                       .resources = {1, 100, 1},
                                       .time_limit_usec = 3600 * (gint64)G_USEC_PER_SEC,
                                       .submit_usec = start_usec};
    assert_int_equal(berth_core_add_node(core, "n1"), 1);
    assert_true(berth_core_handle(core, start_usec, &joins, effects, NULL));
    assert_true(berth_core_handle(core, start_usec, &submits, effects, NULL));
    assert_true(berth_core_handle(core, start_usec, &runs, effects, NULL));
    return core;
}

/* When STOP leaves, in microseconds after the start; 0 = not within a day. */
static gint64 stop_after_usec(gint64 interval_usec, LossFunc loss, guint permille)
{
    gint64 start_usec = 1000000 * (gint64)G_USEC_PER_SEC;
    gint64 report_usec = start_usec + interval_usec;
    gint64 now_usec = start_usec;
    guint reports = 0;
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    g_autoptr(BerthCore) core = core_that_runs_an_hour(start_usec, effects);
    BerthCoreTask task = {.phase = BERTH_GUEST_RUNNING};
    while (task.phase == BERTH_GUEST_RUNNING) {
        BerthCoreEvent event = {.kind = BERTH_EVENT_TIMER};
        gint64 timer_usec = berth_core_next_timer_usec(core);
        now_usec = MAX(now_usec, MIN(timer_usec, report_usec));
        if (timer_usec >= report_usec) {
            event = (BerthCoreEvent){
                .kind = BERTH_EVENT_GUEST_REPORTED, .guest = {.job = 1, .epoch = 1}, .node = 1};
            event.usage.starved_usec = loss(++reports, interval_usec, permille);
            report_usec += interval_usec;
        }
        assert_true(berth_core_handle(core, now_usec, &event, effects, NULL));
        berth_core_effects_clear(effects);
        assert_true(berth_core_get_task(core, 1, 0, &task));
        if (now_usec - start_usec > 24 * 3600 * (gint64)G_USEC_PER_SEC)
            return 0;
    }
    return now_usec - start_usec;
}

static void time_limit_of_a_starved_guest_comes_when_it_was_served_for_so_long(void **state)
{
    static const gint64 intervals[] = {1, 5, 7, 30, 45, 60, 120, 600, 3600};
    static const struct {
        guint permille;
        gint64 stop_sec;
    } cases[] = {{0, 3600}, {250, 4800}, {500, 7200}, {750, 14400}};
    for (gsize i = 0; i < G_N_ELEMENTS(intervals); i++) {
        gint64 interval_usec = intervals[i] * (gint64)G_USEC_PER_SEC;
        for (gsize j = 0; j < G_N_ELEMENTS(cases); j++) {
            gint64 stop_usec = stop_after_usec(interval_usec, lose_evenly, cases[j].permille);
            if (stop_usec != cases[j].stop_sec * (gint64)G_USEC_PER_SEC)
                fail_msg("%u permille lost, a report every %d s: STOP after %.6f s",
                         cases[j].permille, (int)intervals[i], (double)stop_usec / 1e6);
        }
    }
    assert_int_equal(stop_after_usec(60 * (gint64)G_USEC_PER_SEC, lose_every_other, 0),
                     7200 * (gint64)G_USEC_PER_SEC);
}

/* --- what is not charged ---------------------------------------------------------------------- */

static void time_limit_does_not_charge_checkpoints(void **state)
{
    run(IDLE_NODE "submit 2 v=1 m=200 slack may-checkpoint limit=100 -> START 2.1@1~\n"
                  "running 2.1\n"
                  "at 100\n"
                  "pressed 1 -> CHECKPOINT 2.1@1~\n"
                  "at 130\n"
                  "timer\n" /* it stands still since 100, and has used 80 */
                  "checkpointed 2.1 failed\n"
                  "next 150\n"
                  "at 150\n"
                  "timer -> STOP 2.1@1\n");
    run(IDLE_NODE
        "submit 2 v=1 m=200 slack may-checkpoint limit=100 -> START 2.1@1~\n"
        "running 2.1\n"
        "at 100\n"
        "pressed 1 -> CHECKPOINT 2.1@1~\n"
        "at 130\n"
        "timer\n"
        "checkpointed 2.1 -> RELEASE 2.1@1\n"
        "released 2.1\n"
        "at 400\n" /* nobody comes into the slack of a node that lacked memory before that */
        "timer -> RESTORE 2.2@1~\n"
        "running 2.2\n"
        "at 419\n"
        "timer\n"
        "at 420\n"
        "timer -> STOP 2.2@1\n");
}

static void time_limit_goes_on_after_a_restart(void **state)
{
    const char *half_way =
        "node 1 4 1000\n"
        "submit 1 limit=100 -> START 1.1@1\n"
        "running 1.1\n"
        "at 60\n"
        "report 1.1 starved=60\n"
        "at 61\n"
        "restart\n"
        "join 1 1.1:running\n"
        "at 121\n"
        "report 1.1 starved=60\n" /* since 60, or longer ago: at no known rate */;
    g_autofree char *served = g_strconcat(half_way,
                                          "at 219\n"
                                          "timer\n"
                                          "at 220\n"
                                          "timer -> STOP 1.1@1\n",
                                          NULL);
    g_autofree char *starved = g_strconcat(half_way,
                                           "at 141\n"
                                           "report 1.1 starved=10\n"
                                           "at 318\n"
                                           "timer\n"
                                           "at 319\n" /* 89 of service were left */
                                           "timer -> STOP 1.1@1\n",
                                           NULL);
    run(served);
    run(starved);
}

/* Half of each second is lost; the scheduler was away from 600 to 1100. */
static void time_limit_waits_after_a_restart_for_what_a_guest_lost(void **state)
{
    const char *away = "node 1 4 1000\n"
                       "submit 1 limit=700 -> START 1.1@1\n"
                       "running 1.1\n"
                       "at 600\n"
                       "report 1.1 starved=300\n"
                       "at 1100\n"
                       "restart\n"
                       "timer\n"
                       "join 1 1.1:running\n"
                       "timer\n"
                       "next 1160\n"; /* a round */
    g_autofree char *starved = g_strconcat(away,
                                           "at 1101\n"
                                           "report 1.1 starved=250\n"
                                           "at 1249\n"
                                           "timer\n"
                                           "? 1 RUNNING - running\n"
                                           "at 1400\n"
                                           "timer -> STOP 1.1@1\n",
                                           NULL);
    g_autofree char *served = g_strconcat(away,
                                          "at 1101\n"
                                          "report 1.1\n"
                                          "timer -> STOP 1.1@1\n",
                                          NULL);
    g_autofree char *silent = g_strconcat(away,
                                          "at 1219\n"
                                          "timer\n"
                                          "at 1220\n"
                                          "timer -> STOP 1.1@1\n",
                                          NULL);
    run(starved);
    run(served);
    run(silent);
}

static void time_limit_does_not_charge_a_checkpoint_over_a_restart(void **state)
{
    const char *script =
        IDLE_NODE "submit 2 v=1 m=200 slack may-checkpoint limit=100 -> START 2.1@1~\n"
                  "running 2.1\n"
                  "at 100\n"
                  "pressed 1 -> CHECKPOINT 2.1@1~\n"
                  "at 110\n"
                  "restart guests\n"
                  "join 1 1.1:running 2.1:running -> CHECKPOINT 2.1@1~\n"
                  "at 130\n"
                  "timer\n";
    g_autofree char *fails = g_strconcat(script,
                                         "report 1.1 cpu=1000 mem=300\n"
                                         "checkpointed 2.1 failed\n"
                                         "report 2.1 mem=100\n"
                                         "at 149\n" /* it had used 80, and stood still for 30 */
                                         "timer\n"
                                         "at 150\n"
                                         "timer -> STOP 2.1@1\n",
                                         NULL);
    g_autofree char *works = g_strconcat(script,
                                         "report 1.1 cpu=1000 mem=300\n"
                                         "checkpointed 2.1 -> RELEASE 2.1@1\n"
                                         "released 2.1 -> RESTORE 2.2@1~\n"
                                         "running 2.2\n"
                                         "at 149\n"
                                         "timer\n"
                                         "at 150\n"
                                         "timer -> STOP 2.2@1\n",
                                         NULL);
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_PROMOTION, fails);
    run_with(BERTH_FEATURE_ALL & ~BERTH_FEATURE_PROMOTION, works);
    run("node 1 4 1000\n"
        "submit 1 limit=100 save may-checkpoint -> START 1.1@1\n"
        "running 1.1\n"
        "at 100\n"
        "timer -> CHECKPOINT 1.1@1\n"
        "restart guests\n"
        "join 1 1.1:running -> CHECKPOINT 1.1@1\n"
        "checkpointed 1.1 -> RELEASE 1.1@1\n"
        "? 1 SUSPENDED time-limit releasing\n");
}

static void loss_of_a_run_is_forgotten_with_it(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 v=4 limit=100 -> START 1.1@1\n"
        "running 1.1\n"
        "at 90\n"
        "report 1.1 starved=80\n"
        "submit 2 v=4 limit=10\n"
        "planned 2 180\n"
        "gone 1.1 guest-vanished -> RELEASE 1.1@1\n"
        "released 1.1 -> START 1.2@1\n"
        "planned 2 190\n");
}

static void time_limit_takes_no_rate_from_before_a_freeze(void **state)
{
    run("node 1 4 1000\n"
        "submit 1 m=400 limit=1000 -> START 1.1@1\n"
        "running 1.1\n"
        "at 10\n"
        "report 1.1 mem=390 left=10 psi=100 -> FREEZE 1.1@1\n"
        "frozen 1.1\n"
        "at 510\n"
        "thaw 1 -> THAW 1.1@1\n"
        "thawed 1.1\n"
        "at 520\n"
        "report 1.1 starved=500\n" /* it can have lost 10 only, which is all of its time */
        "at 1010\n"
        "timer\n"
        "at 1020\n"
        "report 1.1\n"
        "timer -> STOP 1.1@1\n");
}

static void time_limit_that_is_to_save_waits_for_a_move(void **state)
{
    run("node 1 4 1000\n"
        "node 2 4 1000\n"
        "submit 1 limit=100 save may-checkpoint may-move -> START 1.1@1\n"
        "running 1.1\n"
        "at 99\n"
        "drain 1 -> MIGRATE 1.1@1>2\n"
        "at 100\n"
        "timer\n"
        "at 105\n"
        "migrated 1.1\n"
        "timer -> CHECKPOINT 1.1@2\n"
        "checkpointed 1.1 -> RELEASE 1.1@2\n"
        "? 1 SUSPENDED time-limit releasing\n");
}

/* 2 is starved in slack, and its limit thought to come after 10000 s. */
#define IS_STARVED                                                                                 \
    IDLE_NODE "submit 2 v=2 m=500 slack may-move limit=1000 -> START 2.1@1~\n"                     \
              "running 2.1\n"                                                                      \
              "at 30\n"                                                                            \
              "report 2.1 cpu=100 mem=100 left=400 starved=9\n"                                    \
              "at 1029\n"                                                                          \
              "timer\n"                                                                            \
              "report 2.1 cpu=100 mem=100 left=400 starved=900\n"

/* What it loses from now on is not known: it may be nothing. */
static void time_limit_of_who_is_starved_no_more_comes_in_time(void **state)
{
    run(IS_STARVED "node 2 4 1000\n"
                   "drain 1 -> MIGRATE 2.1@1>2\n"
                   "migrated 2.1\n"
                   "at 1930\n"
                   "report 2.1 cpu=2000 mem=100 left=400\n"
                   "timer -> STOP 2.1@2\n");
    run(IS_STARVED "freeze 2 -> FREEZE 2.1@1~\n"
                   "frozen 2.1\n"
                   "at 1060\n"
                   "thaw 2 -> THAW 2.1@1~\n"
                   "thawed 2.1\n"
                   "at 1930\n"
                   "report 2.1 cpu=2000 mem=100 left=400\n"
                   "timer -> STOP 2.1@1\n");
}

/* Nobody has said yet what it lost since its latest report, until it was moved: it is thought to be as much as before. */
static void time_limit_waits_for_what_was_lost_before_a_move(void **state)
{
    const char *moved = IS_STARVED "node 2 4 1000\n"
                                   "at 1500\n"
                                   "drain 1 -> MIGRATE 2.1@1>2\n"
                                   "migrated 2.1\n"
                                   "at 1930\n"
                                   "timer\n";
    g_autofree char *told = g_strconcat(moved,
                                        "report 2.1 cpu=2000 mem=100 left=400 starved=420\n"
                                        "at 2348\n"
                                        "timer\n"
                                        "at 2349\n"
                                        "timer -> STOP 2.1@2\n",
                                        NULL);
    g_autofree char *untold = g_strconcat(moved,
                                          "at 2352\n"
                                          "timer\n"
                                          "at 2353\n"
                                          "timer -> STOP 2.1@2\n",
                                          NULL);
    run(told);
    run(untold);
    run(IS_STARVED "at 1500\n"
                   "freeze 2 -> FREEZE 2.1@1~\n"
                   "frozen 2.1\n"
                   "at 1510\n"
                   "thaw 2 -> THAW 2.1@1~\n"
                   "thawed 2.1\n"
                   "at 1930\n"
                   "timer\n"
                   "report 2.1 cpu=2000 mem=100 left=400 starved=420\n"
                   "at 2348\n"
                   "timer\n"
                   "at 2349\n"
                   "timer -> STOP 2.1@1\n");
}

/* Right after a move little of the time is of the node that it is on. */
static void time_limit_makes_no_pace_of_what_was_thought_too_little_before_a_move(void **state)
{
    run(IDLE_NODE
        "submit 2 v=2 m=500 slack may-move limit=1000 -> START 2.1@1~\n"
        "running 2.1\n"
        "at 100\n"
        "report 2.1 cpu=100 mem=100 left=400 starved=24\n"
        "node 2 4 1000\n"
        "at 1000\n"
        "drain 1 -> MIGRATE 2.1@1>2\n"
        "migrated 2.1\n"
        "at 1010\n"
        "report 2.1 cpu=2000 mem=100 left=400 starved=300\n" /* 30 more than was thought */
        "limit 2 1344\n"
        "at 1600\n"
        "timer -> STOP 2.1@2\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(time_limit_saves_what_may_be_saved),
        cmocka_unit_test(saving_that_does_not_end_keeps_nobody_from_the_node),
        cmocka_unit_test(time_that_is_left_is_counted_from_what_is_known),
        cmocka_unit_test(time_limit_does_not_charge_what_a_guest_was_starved_of),
        cmocka_unit_test(time_limit_of_a_gang_is_not_charged_what_guests_lose_in_turn),
        cmocka_unit_test(time_limit_of_a_starved_guest_comes_when_it_was_served_for_so_long),
        cmocka_unit_test(time_limit_does_not_charge_checkpoints),
        cmocka_unit_test(time_limit_goes_on_after_a_restart),
        cmocka_unit_test(time_limit_waits_after_a_restart_for_what_a_guest_lost),
        cmocka_unit_test(time_limit_does_not_charge_a_checkpoint_over_a_restart),
        cmocka_unit_test(loss_of_a_run_is_forgotten_with_it),
        cmocka_unit_test(time_limit_takes_no_rate_from_before_a_freeze),
        cmocka_unit_test(time_limit_that_is_to_save_waits_for_a_move),
        cmocka_unit_test(time_limit_of_who_is_starved_no_more_comes_in_time),
        cmocka_unit_test(time_limit_waits_for_what_was_lost_before_a_move),
        cmocka_unit_test(time_limit_makes_no_pace_of_what_was_thought_too_little_before_a_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
