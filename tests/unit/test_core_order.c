/* SPDX-License-Identifier: Apache-2.0 */
/* Who comes first, who has to wait for whom, and what nobody may have more of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler/core/owner.h"
#include "tests/unit/core_script.h"

static void run_weighted(gint64 fair_share, gint64 age, const char *script)
{
    gint64 tunings[BERTH_TUNING_N];
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        tunings[i] = berth_core_tuning((BerthCoreTuning)i)->value;
    tunings[BERTH_TUNING_WEIGHT_FAIR_SHARE] = fair_share;
    tunings[BERTH_TUNING_WEIGHT_AGE] = age;
    tunings[BERTH_TUNING_AGE_MAX_USEC] = 1000 * (gint64)G_USEC_PER_SEC;
    tunings[BERTH_TUNING_RANK_INTERVAL_USEC] = G_USEC_PER_SEC;
    tunings[BERTH_TUNING_HALF_LIFE_USEC] = 1000 * (gint64)G_USEC_PER_SEC;
    BerthCoreConfig config = core_script_config;
    config.policy = BERTH_POLICY_EASY;
    config.tunings = tunings;
    core_script_run(&config, script);
}

static void run(const char *script)
{
    run_weighted(0, 0, script);
}

/* --- priority ------------------------------------------------------------------------------- */

static void exp2_neg_is_exact_at_whole_numbers_and_falls(void **state)
{
    assert_int_equal(core_exp2_neg(0), 65536);
    assert_int_equal(core_exp2_neg(65536), 32768);
    assert_int_equal(core_exp2_neg(3 * 65536), 8192);
    assert_int_equal(core_exp2_neg(32768), 46341); /* 65536 / sqrt(2) */
    assert_int_equal(core_exp2_neg(40 * 65536), 0);
    assert_int_equal(core_exp2_neg(G_MAXUINT64), 0);
    for (guint64 x = 0; x < 20 * 65536; x += 37)
        assert_true(core_exp2_neg(x + 37) <= core_exp2_neg(x));
}

static void fair_share_puts_who_used_less_first(void **state)
{
    run_weighted(1000, 0,
                 "node 1 1 1000\n"
                 "submit 1 uid=1 limit=1000 -> START 1.1@1\n"
                 "running 1.1\n"
                 "submit 2 uid=1\n"
                 "submit 3 uid=2\n"
                 "at 500\n"
                 "exited 1.1 -> RELEASE 1.1@1\n"
                 "released 1.1 -> START 3.1@1\n"
                 "at 510\n"
                 "exited 3.1 -> RELEASE 3.1@1\n"
                 "submit 4 uid=2\n"
                 "released 3.1 -> START 4.1@1\n");
}

static void fair_share_follows_shares_of_accounts(void **state)
{
    /* Both accounts used as much; 2 is entitled to three times what 1 is. */
    run_weighted(1000, 0,
                 "node 1 2 1000\n"
                 "account 1 shares=1\n"
                 "account 2 shares=3\n"
                 "submit 1 uid=1 account=1 limit=1000 -> START 1.1@1\n"
                 "submit 2 uid=2 account=2 limit=1000 -> START 2.1@1\n"
                 "submit 3 uid=1 account=1 v=2\n"
                 "submit 4 uid=2 account=2 v=2\n"
                 "at 100\n"
                 "exited 1.1 -> RELEASE 1.1@1\n"
                 "exited 2.1 -> RELEASE 2.1@1\n"
                 "released 1.1\n"
                 "released 2.1 -> START 4.1@1\n");
}

/* It asked for the least, and has had the most. */
static void fair_share_counts_what_a_guest_has_grown_to(void **state)
{
    run_weighted(1000, 0,
                 "node 1 4 1000\n"
                 "submit 1 uid=1 m=100 mmax=500 -> START 1.1@1\n"
                 "running 1.1\n"
                 "submit 2 uid=2 m=400 -> START 2.1@1\n"
                 "running 2.1\n"
                 "resize 1 m=500 -> RESIZE 1.1@1=1/500\n"
                 "resized 1.1\n"
                 "submit 3 uid=1 v=4\n"
                 "submit 4 uid=2 v=4\n"
                 "at 100\n"
                 "exited 1.1 -> RELEASE 1.1@1\n"
                 "exited 2.1 -> RELEASE 2.1@1\n"
                 "released 1.1\n"
                 "released 2.1 -> START 4.1@1\n");
}

static void fair_share_forgets_by_half_lives(void **state)
{
    /* 40 half lives later nothing of it is left, and the lower number is first. */
    run_weighted(1000, 0,
                 "node 1 1 1000\n"
                 "submit 1 uid=1 -> START 1.1@1\n"
                 "at 500\n"
                 "exited 1.1 -> RELEASE 1.1@1\n"
                 "released 1.1\n"
                 "at 60000\n"
                 "submit 2 uid=3 limit=1 -> START 2.1@1\n"
                 "submit 3 uid=1\n"
                 "submit 4 uid=2\n"
                 "exited 2.1 -> RELEASE 2.1@1\n"
                 "released 2.1 -> START 3.1@1\n");
}

static void age_lets_nobody_wait_forever(void **state)
{
    const char *script = "qos 1 p=500\n"
                         "node 1 1 1000\n"
                         "submit 1 -> START 1.1@1\n"
                         "submit 2\n"
                         "at 400\n"
                         "submit 3 qos=1\n"
                         "exited 1.1 -> RELEASE 1.1@1\n";
    g_autofree char *young = g_strconcat(script, "released 1.1 -> START 3.1@1\n", NULL);
    run_weighted(0, 1000, young);
    g_autofree char *old = g_strconcat(script, "at 1000\nreleased 1.1 -> START 3.1@1\n", NULL);
    run_weighted(0, 1000, old);
    g_autofree char *heavy = g_strconcat(script, "released 1.1 -> START 2.1@1\n", NULL);
    run_weighted(0, 2000, heavy);
}

/* Numbers below 0 are written as what they are modulo 2^32. */
static void least_and_highest_priorities_have_points_too(void **state)
{
    run("qos 1 p=4294966296\n" /* -1000 */
        "qos 2 p=1000\n"
        "node 1 1 1000\n"
        "submit 1 -> START 1.1@1\n"
        "submit 2 p=2147483648 qos=1\n" /* the least */
        "submit 3 p=2147483648\n"
        "submit 4\n"
        "submit 5 p=2147483647\n"
        "submit 6 p=2147483647 qos=2\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> START 6.1@1\n"
        "exited 6.1 -> RELEASE 6.1@1\n"
        "released 6.1 -> START 5.1@1\n"
        "exited 5.1 -> RELEASE 5.1@1\n"
        "released 5.1 -> START 4.1@1\n"
        "exited 4.1 -> RELEASE 4.1@1\n"
        "released 4.1 -> START 3.1@1\n"
        "exited 3.1 -> RELEASE 3.1@1\n"
        "released 3.1 -> START 2.1@1\n");
}

static void qos_is_bounded(void **state)
{
    run("qos 5000 p=1 ! number below\n"
        "qos 1 p=1001 ! from -1000 to 1000\n"
        "account 1 parent=2\n"
        "account 2 parent=1 ! itself below it\n");
}

/* What would let it go runs below somebody else now. */
static void account_that_moves_takes_along_who_waits(void **state)
{
    core_script_run(&core_script_config, "node 1 8 1000\n"
                                         "account 1\n"
                                         "account 2 tasks=1\n"
                                         "account 3 parent=2\n"
                                         "submit 1 account=3 -> START 1.1@1\n"
                                         "submit 2 account=3\n"
                                         "why 2 account-limit\n"
                                         "account 3 parent=1 -> START 2.1@1\n");
}

/* --- dependencies --------------------------------------------------------------------------- */

static void after_ok_waits_for_a_good_end(void **state)
{
    run("node 1 9 1000\n"
        "submit 1 -> START 1.1@1\n"
        "submit 2 ok:1\n"
        "submit 3 not:1\n"
        "submit 4 any:1\n"
        "submit 5 ok:3\n"
        "why 2 dependency\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "why 4 dependency\n"
        "released 1.1 -> START 2.1@1 START 4.1@1\n"
        "? 3 CANCELLED dependency-never none\n"
        "? 5 CANCELLED dependency-never none\n");
}

static void after_itself_nobody_comes(void **state)
{
    static const char *const kinds[] = {"any", "ok", "not", "start"};
    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autofree char *script = g_strdup_printf("node 1 9 1000\n"
                                                  "submit 1 %s:1\n"
                                                  "? 1 CANCELLED dependency-never none\n",
                                                  kinds[i]);
        run(script);
    }
}

static void after_not_ok_waits_for_a_bad_end(void **state)
{
    run("node 1 9 1000\n"
        "submit 1 array=2 -> START 1.1@1 START 1/1.1@1\n"
        "submit 2 ok:1\n"
        "submit 3 not:1\n"
        "exited 1.1 status=1 -> RELEASE 1.1@1\n"
        "released 1.1\n"
        "exited 1/1.1 -> RELEASE 1/1.1@1\n"
        "released 1/1.1 -> START 3.1@1\n"
        "? 2 CANCELLED dependency-never none\n");
}

/* FIRST, and 1101 jobs that come after job 1 (transfer full). */
static GString *begin_with_many_after(const char *first)
{
    GString *script = g_string_new(first);
    for (guint job = 2; job <= 1102; job++)
        g_string_append_printf(script, "submit %u ok:1\n", job);
    return script;
}

/* Others are decided on between them; what comes after them comes last. */
static void many_that_never_start_are_ended_some_at_a_time(void **state)
{
    g_autoptr(GString) script = begin_with_many_after("node 1 1 1000\n"
                                                      "submit 1 -> START 1.1@1\n");
    g_string_append(script, "submit 1110 ok:1102\n"
                            "submit 1111\n"
                            "exited 1.1 status=1 -> RELEASE 1.1@1\n"
                            "released 1.1 -> START 1111.1@1\n"
                            "next 0\n"
                            "? 2 CANCELLED dependency-never none\n"
                            "? 1001 CANCELLED dependency-never none\n"
                            "why 1002 dependency\n"
                            "timer\n"
                            "? 1102 CANCELLED dependency-never none\n"
                            "? 1110 CANCELLED dependency-never none\n");
    run(script->str);
}

/* Other events of the same moment end no more of them. Tasks that come after others one by one do not wait for that. */
static void many_that_never_start_hold_up_no_tasks(void **state)
{
    g_autoptr(GString) script =
        begin_with_many_after("node 1 1 1000\n"
                              "submit 1 array=2 throttle=1 -> START 1.1@1\n");
    g_string_append(script, "submit 1110 array=2 corr:1\n"
                            "cancel 1 -> STOP 1.1@1\n"
                            "exited 1.1 status=1 -> RELEASE 1.1@1\n"
                            "released 1.1\n"
                            "? 1001 CANCELLED dependency-never none\n"
                            "? 1110 CANCELLED dependency-never none\n"
                            "submit 1111 -> START 1111.1@1\n"
                            "why 1002 dependency\n"
                            "timer\n"
                            "? 1102 CANCELLED dependency-never none\n");
    run(script->str);
}

static void after_start_waits_for_all_tasks(void **state)
{
    run("node 1 2 1000\n"
        "submit 1 array=3 -> START 1.1@1 START 1/1.1@1\n"
        "submit 2 start:1\n"
        "why 2 dependency\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> START 1/2.1@1\n"
        "why 2 resources\n"
        "submit 3 start:1\n"
        "why 3 priority\n");
}

/* The task that ended without a start is not waited for. */
static void after_start_does_not_wait_for_cancelled_tasks(void **state)
{
    run("node 1 2 1000\n"
        "submit 1 array=2 v=2 -> START 1.1@1\n"
        "submit 2 start:1 v=2\n"
        "running 1.1\n"
        "why 2 dependency\n"
        "cancel 1 -> STOP 1.1@1\n"
        "why 2 resources\n");
}

/* It comes before the one whose start it waited for. */
static void start_lets_a_higher_job_go_at_once(void **state)
{
    static const char *const script = "node 1 2 1000\n"
                                      "node 2 2 1000\n"
                                      "submit 1 v=2 -> START 1.1@1\n"
                                      "submit 9 v=2 -> START 9.1@2\n"
                                      "submit 2 v=1\n"
                                      "submit 3 v=1 p=2 start:2\n"
                                      "submit 4 v=2 p=1 nodes=2\n"
                                      "exited 1.1 -> RELEASE 1.1@1\n"
                                      "released 1.1 -> START 2.1@1 START 3.1@1\n";
    run(script);
    core_script_run(&core_script_config, script);
}

static void dependency_on_the_unknown_is_never_met(void **state)
{
    run("submit 1 ok:7\n"
        "? 1 CANCELLED dependency-never none\n"
        "submit 2 any:7\n"
        "why 2 node-unavailable\n");
}

static void cancelled_dependent_is_forgotten(void **state)
{
    run("node 1 9 1000\n"
        "submit 1 -> START 1.1@1\n"
        "submit 2 ok:1\n"
        "cancel 2\n"
        "timer\n"
        "? 2 -\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1\n");
}

static void submit_after(BerthCore *core, guint64 job, guint64 after, BerthCoreEffects *effects)
{
    BerthCoreDependency dependency = {BERTH_AFTER_ANY, after, 0};
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    event.submitted = (BerthCoreJob){.id = job,
                                     .resources = {1, 100, 0},
                                     .dependencies = &dependency,
                                     .n_dependencies = after != 0};
    assert_true(berth_core_handle(core, 1, &event, effects, NULL));
}

/* However many came after a job and were cancelled, what is left of them is of those who wait. */
static void cancelled_dependents_leave_nothing(void **state)
{
    g_autoptr(BerthCore) core = berth_core_new(&core_script_config);
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    BerthCoreTask task;
    gsize empty = berth_core_memory_bytes(core);
    submit_after(core, 1, 0, effects);
    submit_after(core, 2, 1, effects);
    gsize before = berth_core_memory_bytes(core);
    for (guint64 job = 3; job < 1000; job++) {
        submit_after(core, job, 1, effects);
        BerthCoreEvent cancel = {.kind = BERTH_EVENT_JOB_CANCELLED, .guest = {.job = job}};
        assert_true(berth_core_handle(core, 1, &cancel, effects, NULL));
    }
    BerthCoreEvent cancel = {.kind = BERTH_EVENT_JOB_CANCELLED, .guest = {.job = 1}};
    assert_int_equal(berth_core_pending_reason(core, 2, 0), BERTH_REASON_DEPENDENCY);
    assert_in_range(berth_core_memory_bytes(core), before, before + 2 * (before - empty));
    assert_true(berth_core_handle(core, 1, &cancel, effects, NULL));
    assert_int_equal(berth_core_pending_reason(core, 2, 0), BERTH_REASON_NODE_UNAVAILABLE);
    assert_false(berth_core_get_task(core, 3, 0, &task));
}

/* Before a restart, and after it. */
static void jobs_that_wait_cost_the_same_when_they_are_put_back(void **state)
{
    g_autoptr(BerthCore) submitted = berth_core_new(&core_script_config);
    g_autoptr(BerthCore) restored = berth_core_new(&core_script_config);
    g_autoptr(BerthCoreEffects) effects = berth_core_effects_new();
    for (guint64 job = 1; job <= 1000; job++) {
        const BerthCoreJob plain = {.id = job, .resources = {1, 100, 0}, .array_size = 1};
        const BerthCoreTask waits = {.job = job, .state = BERTH_JOB_PENDING};
        submit_after(submitted, job, 0, effects);
        berth_core_restore_job(restored, &plain, &waits, 1);
    }
    berth_core_resume(restored, 1, effects);
    assert_in_range(berth_core_memory_bytes(restored), 1,
                    berth_core_memory_bytes(submitted) * 11 / 10);
}

static void singleton_runs_alone_of_its_name(void **state)
{
    run("node 1 9 1000\n"
        "submit 1 family=5 -> START 1.1@1\n"
        "submit 2 family=5 singleton\n"
        "submit 3 family=5 singleton\n"
        "submit 4 family=6 singleton -> START 4.1@1\n"
        "submit 5 family=5 uid=7 singleton -> START 5.1@1\n"
        "why 2 dependency\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> START 2.1@1\n"
        "why 3 dependency\n"
        "cancel 2 -> STOP 2.1@1\n"
        "exited 2.1 -> RELEASE 2.1@1\n"
        "released 2.1 -> START 3.1@1\n");
}

/* They are forgotten in one event, and so is their family: with nobody to fence, and without. */
static void siblings_that_end_together_are_forgotten(void **state)
{
    BerthCoreConfig config = core_script_config;
    for (gint fence = 0; fence < 2; fence++) {
        config.can_fence = fence;
        core_script_run(&config, "node 1 9 1000\n"
                                 "submit 1 family=5 no-requeue -> START 1.1@1\n"
                                 "submit 2 family=5 no-requeue -> START 2.1@1\n"
                                 "running 1.1\n"
                                 "running 2.1\n"
                                 "exited 1.1 -> RELEASE 1.1@1\n"
                                 "exited 2.1 -> RELEASE 2.1@1\n"
                                 "left 1\n"
                                 "at 60\n"
                                 "timer\n"
                                 "timer\n"
                                 "? 1 -\n"
                                 "? 2 -\n"
                                 "node 1 9 1000\n"
                                 "submit 3 family=5 singleton -> START 3.1@1\n"
                                 "submit 4 family=5 singleton\n"
                                 "exited 3.1 -> RELEASE 3.1@1\n"
                                 "released 3.1 -> START 4.1@1\n");
    }
}

/* --- limits --------------------------------------------------------------------------------- */

static void limits_hold_for_users_and_accounts(void **state)
{
    run("node 1 9 1000\n"
        "account 1 v=4\n"
        "user 1 account=1 tasks=2\n"
        "submit 1 uid=1 account=1 -> START 1.1@1\n"
        "submit 2 uid=1 account=1 -> START 2.1@1\n"
        "submit 3 uid=1 account=1\n"
        "why 3 account-limit\n"
        "submit 4 uid=2 account=1 v=3\n"
        "why 4 account-limit\n"
        "submit 5 uid=2 account=1 v=2 -> START 5.1@1\n"
        "submit 6 uid=1 -> START 6.1@1\n"
        "exited 1.1 -> RELEASE 1.1@1\n"
        "released 1.1 -> START 3.1@1\n"
        "account 1 v=9 -> START 4.1@1\n");
}

static void limit_of_jobs_refuses_one_more(void **state)
{
    run("node 1 1 1000\n"
        "user 1 jobs=2\n"
        "submit 1 uid=1 -> START 1.1@1\n"
        "submit 2 uid=1\n"
        "submit 3 uid=1 ! as many unfinished jobs as it may\n"
        "cancel 2\n"
        "submit 3 uid=1\n");
}

static void parked_jobs_keep_nothing_from_others(void **state)
{
    run("node 1 4 1000\n"
        "user 1 tasks=1\n"
        "submit 1 uid=1 v=1 limit=100 -> START 1.1@1\n"
        "submit 2 uid=1 v=4\n"
        "why 2 account-limit\n"
        "submit 3 uid=2 v=3 limit=5000 -> START 3.1@1\n");
}

/* --- maintenance ---------------------------------------------------------------------------- */

static void run_with(guint32 features, const char *script)
{
    core_script_run_tuned(features, BERTH_TUNING_PLAN_DEPTH, 4, script);
}

static void maintenance_is_kept_clear(void **state)
{
    run_with(BERTH_FEATURE_MIGRATION, "node 1 5 1000\n"
                                      "maintenance 1 node=1 from=100 to=200\n"
                                      "submit 1 limit=100 -> START 1.1@1\n"
                                      "submit 2 v=3 limit=101\n"
                                      "planned 2 200\n"
                                      "submit 3 v=1 limit=101 may-move -> START 3.1@1\n"
                                      "maintenance 1 -> START 2.1@1\n");
    core_script_run(&core_script_config, "node 1 4 1000\n"
                                         "node 2 4 1000\n"
                                         "maintenance 1 node=1 from=100 to=200\n"
                                         "submit 1 v=3 limit=101 -> START 1.1@2\n"
                                         "submit 2 v=3 limit=100 -> START 2.1@1\n");
}

/* Nothing else happens then: the core wants to be woken. */
static void maintenance_that_ends_lets_the_waiting_start(void **state)
{
    run("node 1 4 1000\n"
        "maintenance 1 node=1 from=100 to=200\n"
        "submit 1 limit=101\n"
        "next 100\n"
        "at 100\n"
        "timer\n"
        "next 200\n"
        "at 200\n"
        "timer -> START 1.1@1\n");
    core_script_run(&core_script_config, "node 1 4 1000\n"
                                         "maintenance 1 node=1 from=0 to=200\n"
                                         "submit 1 limit=101\n"
                                         "at 200\n"
                                         "timer -> START 1.1@1\n");
    run_with(BERTH_FEATURE_MIGRATION, "node 1 4 1000\n"
                                      "maintenance 1 node=1 from=0 to=200\n"
                                      "maintenance 2 node=1 from=150 to=300\n"
                                      "submit 1 limit=50 may-move\n"
                                      "planned 1 300\n");
}

/* Who can be moved may be there until it begins, and no longer. */
static void maintenance_that_begins_moves_guests_away(void **state)
{
    run_with(BERTH_FEATURE_MIGRATION, "node 1 4 1000\n"
                                      "maintenance 1 node=1 from=100 to=200\n"
                                      "submit 1 limit=500 may-move -> START 1.1@1\n"
                                      "running 1.1\n"
                                      "node 2 4 1000\n"
                                      "at 100\n"
                                      "timer -> MIGRATE 1.1@1>2\n"
                                      "migrated 1.1\n"
                                      "submit 2 v=4 limit=500 may-move\n"
                                      "at 200\n"
                                      "timer -> START 2.1@1\n");
}

/* Migration is off, or would have to move a part of a gang. */
static void maintenance_keeps_out_who_cannot_be_moved(void **state)
{
    run("node 1 4 1000\n"
        "maintenance 1 node=1 from=100 to=200\n"
        "submit 1 limit=101 may-move\n"
        "planned 1 200\n");
    run_with(BERTH_FEATURE_MIGRATION, "node 1 4 1000\n"
                                      "maintenance 1 node=1 from=100 to=200\n"
                                      "submit 1 limit=101 guests=2 may-move\n"
                                      "planned 1 200\n");
    run_with(BERTH_FEATURE_OPPORTUNISTIC | BERTH_FEATURE_CHECKPOINT | BERTH_FEATURE_PREDICTION,
             "node 1 4 1000\n"
             "submit 1 v=4 m=500 limit=90 -> START 1.1@1\n"
             "running 1.1\n"
             "report 1.1 cpu=100 mem=100\n"
             "at 20\n"
             "report 1.1 cpu=100 mem=100\n"
             "maintenance 1 node=1 from=100 to=200\n"
             "submit 2 v=1 m=100 limit=90 may-checkpoint slack\n"
             "submit 3 v=1 m=100 limit=80 may-checkpoint slack -> START 3.1@1~\n");
}

static void maintenance_of_a_gang_waits_for_its_end(void **state)
{
    run("node 1 1 1000\n"
        "node 2 1 1000\n"
        "maintenance 1 node=2 from=50 to=70\n"
        "submit 1 guests=2 limit=60\n"
        "planned 1 70\n"
        "submit 2 guests=1 limit=70 -> START 2.1@1\n");
}

/* Each for itself; one for which there is none, or whose has ended badly, never starts. */
static void tasks_come_after_those_of_their_index(void **state)
{
    run("node 1 8 1000\n"
        "submit 1 array=3 -> START 1.1@1 START 1/1.1@1 START 1/2.1@1\n"
        "submit 2 array=4 corr:1\n"
        "? 2/3 CANCELLED dependency-never none\n"
        "? 2/1 PENDING none none\n"
        "why 2 dependency\n"
        "running 1/1.1\n"
        "exited 1/1.1 -> RELEASE 1/1.1@1\n"
        "released 1/1.1 -> START 2/1.1@1\n"
        "why 2 dependency\n"
        "running 1.1\n"
        "exited 1.1 status=1 -> RELEASE 1.1@1\n"
        "released 1.1\n"
        "? 2 CANCELLED dependency-never none\n"
        "cancel 1 -> STOP 1/2.1@1\n"
        "exited 1/2.1 signal=15 -> RELEASE 1/2.1@1\n"
        "released 1/2.1\n"
        "? 2/2 CANCELLED dependency-never none\n"
        "running 2/1.1\n");
}

static void task_comes_after_those_of_its_index_of_two_arrays(void **state)
{
    run("node 1 8 1000\n"
        "submit 1 array=2 -> START 1.1@1 START 1/1.1@1\n"
        "submit 2 array=2 corr:1 -> \n"
        "submit 3 array=2 corr:2 throttle=1\n"
        "running 1/1.1\n"
        "exited 1/1.1 -> RELEASE 1/1.1@1\n"
        "released 1/1.1 -> START 2/1.1@1\n"
        "running 2/1.1\n"
        "exited 2/1.1 -> RELEASE 2/1.1@1\n"
        "released 2/1.1 -> START 3/1.1@1\n"
        "why 3 dependency\n"
        "cancel 2 \n"
        "? 3 CANCELLED dependency-never none\n"
        "? 3/1 RUNNING none starting\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exp2_neg_is_exact_at_whole_numbers_and_falls),
        cmocka_unit_test(fair_share_puts_who_used_less_first),
        cmocka_unit_test(fair_share_follows_shares_of_accounts),
        cmocka_unit_test(fair_share_counts_what_a_guest_has_grown_to),
        cmocka_unit_test(fair_share_forgets_by_half_lives),
        cmocka_unit_test(age_lets_nobody_wait_forever),
        cmocka_unit_test(least_and_highest_priorities_have_points_too),
        cmocka_unit_test(qos_is_bounded),
        cmocka_unit_test(after_ok_waits_for_a_good_end),
        cmocka_unit_test(after_itself_nobody_comes),
        cmocka_unit_test(after_not_ok_waits_for_a_bad_end),
        cmocka_unit_test(after_start_waits_for_all_tasks),
        cmocka_unit_test(tasks_come_after_those_of_their_index),
        cmocka_unit_test(task_comes_after_those_of_its_index_of_two_arrays),
        cmocka_unit_test(after_start_does_not_wait_for_cancelled_tasks),
        cmocka_unit_test(start_lets_a_higher_job_go_at_once),
        cmocka_unit_test(dependency_on_the_unknown_is_never_met),
        cmocka_unit_test(many_that_never_start_are_ended_some_at_a_time),
        cmocka_unit_test(many_that_never_start_hold_up_no_tasks),
        cmocka_unit_test(cancelled_dependent_is_forgotten),
        cmocka_unit_test(cancelled_dependents_leave_nothing),
        cmocka_unit_test(jobs_that_wait_cost_the_same_when_they_are_put_back),
        cmocka_unit_test(singleton_runs_alone_of_its_name),
        cmocka_unit_test(siblings_that_end_together_are_forgotten),
        cmocka_unit_test(limits_hold_for_users_and_accounts),
        cmocka_unit_test(limit_of_jobs_refuses_one_more),
        cmocka_unit_test(parked_jobs_keep_nothing_from_others),
        cmocka_unit_test(account_that_moves_takes_along_who_waits),
        cmocka_unit_test(maintenance_is_kept_clear),
        cmocka_unit_test(maintenance_that_ends_lets_the_waiting_start),
        cmocka_unit_test(maintenance_that_begins_moves_guests_away),
        cmocka_unit_test(maintenance_keeps_out_who_cannot_be_moved),
        cmocka_unit_test(maintenance_of_a_gang_waits_for_its_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
