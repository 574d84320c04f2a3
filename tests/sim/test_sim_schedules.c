/* SPDX-License-Identifier: Apache-2.0 */
/* Whole schedules that were worked out by hand, and EASY against a reference that was written for
 * nothing else. */
#include "tests/lib/sim_fixture.h"
#include "tests/lib/tempdir.h"

#define N_JOBS 4

typedef struct {
    const char *name;
    guint32 procs; /* of the machine */
    SimFixtureJob jobs[N_JOBS];
    gint64 fcfs[N_JOBS], easy[N_JOBS], conservative[N_JOBS]; /* starts */
} Schedule;

/* Worked out on paper: the comment says why. */
static const Schedule schedules[] = {
    /* 2 waits for 1 (to 100); 3 is short and narrow: it ends at 70, before that. */
    {"fills a hole",
     4,
     {{0, 100, 100, 3}, {10, 100, 100, 2}, {20, 50, 50, 1}, {30, 10, 10, 4}},
     {0, 100, 100, 200},
     {0, 100, 20, 200},
     {0, 100, 20, 200}},
    /* 3 would end at 120, and 2 needs all four processors at 100: only after it. */
    {"does not delay the first",
     4,
     {{0, 100, 100, 3}, {10, 100, 100, 4}, {20, 100, 100, 1}, {30, 10, 10, 1}},
     {0, 100, 200, 200},
     {0, 100, 200, 30},
     {0, 100, 200, 30}},
    /* At 100 one processor is left beside 2, so 3 may run past that on it. */
    {"runs beside the first",
     4,
     {{0, 100, 100, 3}, {10, 100, 100, 3}, {20, 200, 200, 1}, {30, 10, 10, 4}},
     {0, 100, 100, 300},
     {0, 100, 20, 220},
     {0, 100, 20, 220}},
    /* 3 (all four) is planned from 200 to 300, after 2. 4 (1 for 180) would not hurt 2, and EASY
     * lets it run at 40 to 220, which puts 3 off to 220; conservative does not: 4 starts at 300. */
    {"puts off the second, but not where all have plans",
     4,
     {{0, 100, 100, 3}, {10, 100, 100, 3}, {20, 100, 100, 4}, {40, 180, 180, 1}},
     {0, 100, 200, 300},
     {0, 100, 220, 40},
     {0, 100, 200, 300}},
    /* 1 was expected to run until 1000 and ends at 100: whoever was planned then moves up. */
    {"an estimate that was far too long",
     4,
     {{0, 100, 1000, 4}, {10, 100, 100, 4}, {20, 100, 100, 2}, {30, 100, 100, 2}},
     {0, 100, 200, 200},
     {0, 100, 200, 200},
     {0, 100, 200, 200}},
};

static void check_starts(void **state, const Schedule *schedule, SimPolicy policy, gboolean pool,
                         const gint64 expected[N_JOBS])
{
    SimConfig config;
    SimWorkloadConfig workload = {.is_pool = pool};
    sim_fixture_config(policy, &config);
    g_autofree char *text = sim_fixture_swf(schedule->procs, 1, schedule->jobs, N_JOBS);
    g_autoptr(SimFixtureRun) run = sim_fixture_run(*state, text, &config, &workload, NULL);
    for (guint i = 0; i < N_JOBS; i++) {
        gint64 start = sim_fixture_start_sec(run, i + 1);
        if (start != expected[i])
            fail_msg("%s, %s%s: job %u starts at %d, by hand it is %d", schedule->name,
                     sim_policy_name(policy), pool ? " (pool)" : "", i + 1, (int)start,
                     (int)expected[i]);
    }
}

static void schedules_by_hand_are_those_of_the_core(void **state)
{
    for (guint i = 0; i < G_N_ELEMENTS(schedules); i++) {
        for (guint pool = 0; pool <= 1; pool++) {
            const Schedule *schedule = &schedules[i];
            check_starts(state, schedule, SIM_POLICY_FCFS, (gboolean)pool, schedule->fcfs);
            check_starts(state, schedule, SIM_POLICY_EASY, (gboolean)pool, schedule->easy);
            check_starts(state, schedule, SIM_POLICY_CONSERVATIVE, (gboolean)pool,
                         schedule->conservative);
        }
    }
}

/* In guests, which are planned for a minute longer; here they cost nothing. 1 is planned to end at 160,
 * 2 to run from then to 320, and 3 (all four) after it. 4 (one for 300, planned for 360) could run
 * beside 2, and is in the way of 3: with one planned start it runs from 40 to 340, and 3 after it; with
 * two it waits for 3. */
static void reserved_plans_for_as_many_as_plan_depth_says(void **state)
{
    static const SimFixtureJob jobs[N_JOBS] = {
        {0, 100, 100, 3}, {10, 100, 100, 3}, {20, 100, 100, 4}, {40, 300, 300, 1}};
    static const struct {
        gint64 depth;
        gint64 starts[N_JOBS];
    } cases[] = {{1, {0, 100, 340, 40}}, {2, {0, 100, 200, 300}}};
    g_autofree char *text = sim_fixture_swf(4, 1, jobs, N_JOBS);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        SimConfig config;
        gint64 tunings[BERTH_TUNING_N];
        for (guint k = 0; k < BERTH_TUNING_N; k++)
            tunings[k] = berth_core_tuning((BerthCoreTuning)k)->value;
        if (cases[i].depth == 1) /* the default */
            assert_int_equal(tunings[BERTH_TUNING_PLAN_DEPTH], 1);
        tunings[BERTH_TUNING_PLAN_DEPTH] = cases[i].depth;
        sim_fixture_config(SIM_POLICY_RESERVED, &config);
        sim_costs_of_processes(&config.costs);
        config.tunings = tunings;
        g_autoptr(SimFixtureRun) run = sim_fixture_run(*state, text, &config, NULL, NULL);
        for (guint k = 0; k < N_JOBS; k++)
            assert_int_equal(sim_fixture_start_sec(run, k + 1), cases[i].starts[k]);
    }
}

static void metrics_of_a_schedule_by_hand(void **state)
{
    /* "fills a hole" under EASY: waits 0, 90, 0, 170; responses over max(run, 10): 1, 1.9, 1, 18. */
    SimConfig config;
    SimFigures figures;
    sim_fixture_config(SIM_POLICY_EASY, &config);
    g_autofree char *text = sim_fixture_swf(4, 1, schedules[0].jobs, N_JOBS);
    g_autoptr(SimFixtureRun) run = sim_fixture_run(*state, text, &config, NULL, NULL);
    sim_figures(&run->metrics, &figures);
    assert_int_equal(run->metrics.jobs, 4);
    assert_true(figures.mean_wait_s == (90 + 170) / 4.0);
    assert_true(figures.mean_start_wait_s == (90 + 170) / 4.0);
    assert_true(ABS(figures.mean_bounded_slowdown - (1 + 1.9 + 1 + 18) / 4) < 1e-9);
    assert_true(figures.makespan_s == 210);
    /* By the last arrival (30): 3 x 30 s of job 1, 10 s of job 3; of 4 x 30. */
    assert_true(figures.work_done_cpu_s == 100);
    assert_true(ABS(figures.useful_cpu_utilisation - 100.0 / 120) < 1e-9);
    assert_true(run->metrics.useful_cpu_s == 300 + 200 + 50 + 40);
    assert_int_equal(run->metrics.kills + run->metrics.refused + run->metrics.lost, 0);
}

/* --- EASY, as Lifka (1995) has it, on a pool of processors --------------------------------------- */

typedef struct {
    const SimFixtureJob *job;
    gint64 start, end, expected_end;
    gboolean runs, waits;
} Ref;

static guint32 ref_free(const Ref *refs, guint n, guint32 procs)
{
    for (guint i = 0; i < n; i++)
        procs -= refs[i].runs ? refs[i].job->procs : 0;
    return procs;
}

/* When PROCS will be free at the latest, and how many are left beside them then. */
static gint64 ref_shadow(const Ref *refs, guint n, guint32 machine, guint32 procs,
                         guint32 *out_extra)
{
    for (gint64 at = -1;;) {
        gint64 next = G_MAXINT64;
        guint32 room = machine;
        for (guint i = 0; i < n; i++) {
            gboolean still = refs[i].runs && refs[i].expected_end > at;
            room -= still ? refs[i].job->procs : 0;
            if (still)
                next = MIN(next, refs[i].expected_end);
        }
        if (room >= procs) {
            *out_extra = room - procs;
            return at;
        }
        at = next;
    }
}

static void ref_start(Ref *ref, gint64 now)
{
    ref->waits = FALSE;
    ref->runs = TRUE;
    ref->start = now;
    ref->end = now + ref->job->run_sec;
    ref->expected_end = now + MAX(ref->job->limit_sec, ref->job->run_sec);
}

static void ref_pass(Ref *refs, guint n, guint32 machine, gint64 now)
{
    const Ref *first = NULL;
    gint64 shadow = 0;
    guint32 extra = 0;
    for (guint i = 0; i < n; i++) {
        Ref *ref = &refs[i];
        if (!ref->waits)
            continue;
        gboolean fits = ref->job->procs <= ref_free(refs, n, machine);
        gint64 end = now + MAX(ref->job->limit_sec, ref->job->run_sec);
        if (first == NULL && !fits) {
            first = ref;
            shadow = ref_shadow(refs, n, machine, ref->job->procs, &extra);
        } else if (fits && (first == NULL || end <= shadow || ref->job->procs <= extra)) {
            if (first != NULL && end > shadow)
                extra -= ref->job->procs;
            ref_start(ref, now);
        }
    }
}

static void ref_run(Ref *refs, guint n, guint32 machine)
{
    for (gint64 now = 0; now < G_MAXINT64;) {
        gint64 next = G_MAXINT64;
        for (guint i = 0; i < n; i++) {
            Ref *ref = &refs[i];
            if (ref->runs && ref->end <= now)
                ref->runs = FALSE;
            if (ref->job->submit_sec == now)
                ref->waits = TRUE;
        }
        ref_pass(refs, n, machine, now);
        for (guint i = 0; i < n; i++) {
            if (refs[i].runs)
                next = MIN(next, refs[i].end);
            if (refs[i].job->submit_sec > now)
                next = MIN(next, refs[i].job->submit_sec);
        }
        now = next;
    }
}

#define REF_JOBS  40
#define REF_PROCS 8
#define REF_SEEDS 200

static void random_jobs(guint32 seed, SimFixtureJob *jobs)
{
    gint64 now = 0;
    for (guint i = 0; i < REF_JOBS; i++) {
        guint64 drawn = sim_mix(seed, i);
        gint64 run = 1 + (gint64)(drawn % 5000);
        now += i == 0 ? 0 : 1 + (gint64)(drawn >> 16) % 700;
        jobs[i] = (SimFixtureJob){now, run, run + (gint64)(drawn >> 32) % 5000,
                                  1 + (guint32)(drawn >> 48) % REF_PROCS};
    }
}

/* Odd seeds: guests on nodes of one vCPU; even ones: one node. It must make no difference. */
static void easy_is_that_of_the_reference(void **state)
{
    guint compared = 0;
    for (guint32 seed = 1; seed <= REF_SEEDS; seed++) {
        SimFixtureJob jobs[REF_JOBS];
        Ref refs[REF_JOBS] = {{0}};
        SimConfig config;
        SimWorkloadConfig workload = {.is_pool = seed % 2 == 0};
        random_jobs(seed, jobs);
        for (guint i = 0; i < REF_JOBS; i++)
            refs[i].job = &jobs[i];
        ref_run(refs, REF_JOBS, REF_PROCS);
        sim_fixture_config(SIM_POLICY_EASY, &config);
        config.check = seed <= 4;
        g_autofree char *text = sim_fixture_swf(REF_PROCS, 1, jobs, REF_JOBS);
        g_autoptr(SimFixtureRun) run = sim_fixture_run(*state, text, &config, &workload, NULL);
        for (guint i = 0; i < REF_JOBS; i++, compared++)
            if (sim_fixture_start_sec(run, i + 1) != refs[i].start)
                fail_msg("seed %u%s: job %u starts at %d, in the reference at %d", seed,
                         workload.is_pool ? " (pool)" : "", i + 1,
                         (int)sim_fixture_start_sec(run, i + 1), (int)refs[i].start);
    }
    assert_int_equal(compared, REF_SEEDS * REF_JOBS);
}

/* --- limits that are too short ------------------------------------------------------------------ */

/* One job of 100 s, on one vCPU: its first limit is from 50 to 99 s. */
static SimFixtureRun *run_too_short(const char *dir, SimPolicy policy, guint64 fail_permille)
{
    static const SimFixtureJob job = {0, 100, 300, 1};
    SimConfig config;
    SimWorkloadConfig workload = {.short_permille = 1000, .seed = 1};
    sim_fixture_config(policy, &config);
    config.failures.action_permille = (guint32)fail_permille;
    g_autofree char *text = sim_fixture_swf(1, 1, &job, 1);
    return sim_fixture_run(dir, text, &config, &workload, NULL);
}

static void who_is_killed_at_his_limit_does_all_of_it_again(void **state)
{
    for (SimPolicy policy = SIM_POLICY_FCFS; policy <= SIM_POLICY_CONSERVATIVE; policy++) {
        g_autoptr(SimFixtureRun) run = run_too_short(*state, policy, 0);
        double limit_s = run->metrics.lost_cpu_s;
        assert_true(limit_s >= 50 && limit_s < 100 && limit_s == (double)(gint64)limit_s);
        assert_float_equal(run->metrics.wait_sum_s, limit_s + 1200, 1e-6);
        assert_true(run->metrics.start_wait_sum_s == 0);
        assert_float_equal(run->metrics.useful_cpu_s, 100, 1e-6);
        assert_int_equal(run->metrics.jobs, 1);
        assert_int_equal(run->metrics.kills, 1);
        assert_int_equal(run->metrics.limit_kills, 1);
        assert_int_equal(run->metrics.limit_extensions, 0);
    }
    g_autoptr(SimFixtureRun) run = run_too_short(*state, SIM_POLICY_RESERVED, 0);
    assert_int_equal(run->metrics.limit_kills, 1);
    assert_int_equal(run->metrics.guest_starts, 2);
    assert_true(run->metrics.lost_cpu_s >= 50);
}

static void who_is_checkpointed_at_his_limit_goes_on_from_there(void **state)
{
    g_autoptr(SimFixtureRun) run = run_too_short(*state, SIM_POLICY_BERTH, 0);
    assert_int_equal(run->metrics.jobs, 1);
    assert_int_equal(run->metrics.kills, 0);
    assert_int_equal(run->metrics.limit_extensions, 1);
    assert_int_equal(run->metrics.checkpoints, 1);
    assert_int_equal(run->metrics.restores, 1);
    assert_true(run->metrics.lost_cpu_s < 1e-6);
    assert_float_equal(run->metrics.useful_cpu_s, 100, 1e-6);
    /* A boot, a checkpoint, its removal and a restore, besides what its user takes. */
    assert_true(run->metrics.wait_sum_s > 1200 && run->metrics.wait_sum_s < 1260);
}

/* Where a checkpoint fails it ends as without one; and stops fail as all else does. */
static void limits_come_however_much_fails(void **state)
{
    SimFixtureRun *failing = run_too_short(*state, SIM_POLICY_BERTH, 700);
    assert_int_equal(failing->metrics.jobs, 1);
    assert_int_equal(failing->metrics.limit_kills + failing->metrics.limit_extensions, 1);
    assert_int_equal(failing->metrics.kills, failing->metrics.limit_kills);
    assert_float_equal(failing->metrics.useful_cpu_s, 100, 1e-6);
    assert_true(failing->metrics.ends_failed > 0);
    sim_fixture_run_free(failing);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(schedules_by_hand_are_those_of_the_core, tempdir_make,
                                        tempdir_remove),
        cmocka_unit_test_setup_teardown(reserved_plans_for_as_many_as_plan_depth_says, tempdir_make,
                                        tempdir_remove),
        cmocka_unit_test_setup_teardown(metrics_of_a_schedule_by_hand, tempdir_make,
                                        tempdir_remove),
        cmocka_unit_test_setup_teardown(easy_is_that_of_the_reference, tempdir_make,
                                        tempdir_remove),
        cmocka_unit_test_setup_teardown(who_is_killed_at_his_limit_does_all_of_it_again,
                                        tempdir_make, tempdir_remove),
        cmocka_unit_test_setup_teardown(who_is_checkpointed_at_his_limit_goes_on_from_there,
                                        tempdir_make, tempdir_remove),
        cmocka_unit_test_setup_teardown(limits_come_however_much_fails, tempdir_make,
                                        tempdir_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
