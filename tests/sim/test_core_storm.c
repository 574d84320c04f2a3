/* SPDX-License-Identifier: Apache-2.0 */
/* What comes over a whole cluster at once: all guests grow in the same instant, a third of the nodes
 * fails, guests whose use goes up and down for days, and small jobs without end. Caps of moves hold, backed guests get what is
 * theirs within the evacuation bound, nobody goes to and fro, nobody starves, and all jobs end well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/sim/storm.h"

#ifdef __SANITIZE_ADDRESS__ /* ten times slower, and the plain build runs them all */
#define N_SEEDS 1
#else
#define N_SEEDS 8
#endif
#define MINUTE    (60 * (gint64)G_USEC_PER_SEC)
#define GROW_USEC (2 * STORM_HOUR_USEC)

static guint64 mix(guint64 seed, guint64 n)
{
    guint64 z = seed * G_GUINT64_CONSTANT(0x9e3779b97f4a7c15) + n;
    z = (z ^ z >> 30) * G_GUINT64_CONSTANT(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * G_GUINT64_CONSTANT(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static StormDemand part_of(const BerthCoreJob *job, guint64 permille)
{
    return (StormDemand){job->resources.vcpus * (guint32)permille,
                         job->resources.memory_mib * permille / 1000};
}

/* A fifth to two fifths, until all use all that they reserved. */
static StormDemand grows_at_once(guint32 seed, const BerthCoreJob *job, gint64 now_usec)
{
    return part_of(job, now_usec < GROW_USEC ? 200 + mix(seed, job->id) % 200 : 1000);
}

static StormDemand stays_low(guint32 seed, const BerthCoreJob *job, gint64 now_usec)
{
    return part_of(job, 200 + mix(seed, job->id) % 200);
}

/* Another level every so often, each guest at its own pace. */
static StormDemand goes_up_and_down(guint32 seed, const BerthCoreJob *job, gint64 now_usec)
{
    guint64 own = mix(seed, job->id);
    gint64 pace_usec = (gint64)(5 + own % 90) * MINUTE;
    guint64 drawn = mix(own, (guint64)(now_usec / pace_usec));
    return part_of(job, drawn % 8 == 0 ? 900 : 100 + drawn / 8 % 400);
}

static StormConfig config_of(guint32 seed, guint32 n_nodes)
{
    StormConfig config = {.seed = seed, .n_nodes = n_nodes, .node = {16, 65536, 0}};
    storm_tunings(config.tunings);
    return config;
}

/* Twice to three times what the cluster has. */
static void submit_all(Storm *storm, const StormConfig *config, guint n_jobs)
{
    for (guint i = 1; i <= n_jobs; i++) {
        guint64 drawn = mix(config->seed, 1000 + i);
        guint32 vcpus = 1u << drawn % 4;
        BerthCoreJob job = {.uid = 1000,
                            .resources = {vcpus, vcpus * 4096u, 0},
                            .time_limit_usec = 24 * STORM_HOUR_USEC,
                            .may_move = (drawn >> 8) % 4 != 0,
                            .may_checkpoint = TRUE,
                            .opportunistic = TRUE};
        storm_submit(storm, &job, (gint64)(180 + (drawn >> 16) % 240) * MINUTE);
    }
}

static guint32 seed_from_environment(void)
{
    const char *text = g_getenv("BERTH_TEST_SEED");
    guint64 seed = 0;
    if (text != NULL)
        assert_true(g_ascii_string_to_unsigned(text, 10, 1, G_MAXUINT32, &seed, NULL));
    return (guint32)seed;
}

static void say(const StormConfig *config, const StormResult *result)
{
    print_message(
        "seed %u: %u in slack, %u migrations, %u checkpoints, %u at once; short for %d s; "
        "%.3f moves per guest-hour, %u of one guest in an hour, %u returns; %u waited for room, %d "
        "s at "
        "most; %d min\n",
        config->seed, result->starts_in_slack, result->migrations, result->checkpoints,
        result->most_under_way, (int)(result->longest_shortage_usec / (gint64)G_USEC_PER_SEC),
        (result->migrations + result->checkpoints) / result->guest_hours, result->most_in_an_hour,
        result->returns, result->waits, (int)(result->longest_wait_usec / (gint64)G_USEC_PER_SEC),
        (int)(result->last_end_usec / MINUTE));
}

/* Of a guest; the report that tells of it comes first. */
static gint64 bound_usec(const StormConfig *config)
{
    return config->tunings[BERTH_TUNING_EVACUATION_MAX_USEC] + STORM_REPORT_USEC;
}

typedef void (*Scenario)(guint32 seed);

static void play(Scenario scenario)
{
    guint32 only = seed_from_environment();
    for (guint32 seed = 1; only == 0 && seed <= N_SEEDS; seed++)
        scenario(seed);
    if (only != 0)
        scenario(only);
}

/* --- growth ----------------------------------------------------------------------------------- */

static void grow(guint32 seed)
{
    StormConfig config = config_of(seed, 10);
    config.demand = grows_at_once;
    g_autoptr(Storm) storm = storm_new(&config);
    submit_all(storm, &config, 100);
    storm_run(storm, GROW_USEC);
    const StormResult *result = storm_result(storm);
    assert_true(result->starts_in_slack >= 20);
    assert_int_equal(result->longest_shortage_usec, 0);
    storm_run_all(storm, 200 * STORM_HOUR_USEC);
    say(&config, result);
    assert_true(result->checkpoints >= 20);
    assert_true(result->longest_shortage_usec > 0);
    assert_true(result->longest_shortage_usec <= bound_usec(&config));
}

static void growth_of_all_is_relieved_within_the_evacuation_bound(void **state)
{
    play(grow);
}

/* --- failure ---------------------------------------------------------------------------------- */

static void fail_third(Storm *storm, const StormConfig *config)
{
    for (guint32 i = 0; i < config->n_nodes / 3; i++)
        storm_fail(storm, 1 + (3 * i + config->seed) % config->n_nodes);
}

static void repair_third(Storm *storm, const StormConfig *config)
{
    for (guint32 i = 0; i < config->n_nodes / 3; i++)
        storm_repair(storm, 1 + (3 * i + config->seed) % config->n_nodes);
}

static void fail_some(guint32 seed)
{
    StormConfig config = config_of(seed, 12);
    config.demand = stays_low;
    g_autoptr(Storm) storm = storm_new(&config);
    submit_all(storm, &config, 100);
    storm_run(storm, STORM_HOUR_USEC);
    fail_third(storm, &config);
    storm_run(storm, 2 * STORM_HOUR_USEC);
    repair_third(storm, &config);
    storm_run_all(storm, 200 * STORM_HOUR_USEC);
    say(&config, storm_result(storm));
    assert_true(storm_result(storm)->starts_in_slack >= 20);
    assert_int_equal(storm_result(storm)->longest_shortage_usec, 0);
}

static void failure_of_a_third_of_the_nodes_is_got_over(void **state)
{
    play(fail_some);
}

/* In the midst of the evacuations: guests are lost on their way, and there is less room to go to. */
static void fail_in_growth(guint32 seed)
{
    StormConfig config = config_of(seed, 12);
    config.demand = grows_at_once;
    g_autoptr(Storm) storm = storm_new(&config);
    submit_all(storm, &config, 100);
    storm_run(storm, GROW_USEC + MINUTE);
    fail_third(storm, &config);
    storm_run(storm, GROW_USEC + STORM_HOUR_USEC);
    repair_third(storm, &config);
    storm_run_all(storm, 200 * STORM_HOUR_USEC);
    say(&config, storm_result(storm));
    assert_true(storm_result(storm)->checkpoints >= 20);
    assert_true(storm_result(storm)->longest_shortage_usec <= bound_usec(&config));
}

static void failure_amid_growth_is_got_over(void **state)
{
    play(fail_in_growth);
}

/* Four fifths of what is to make room do not work out: who waits for it is given up, and no later than at the bound. Guests waver,
 * so that there are always some in the way. */
static void fail_actions(guint32 seed)
{
    StormConfig config = config_of(seed, 10);
    config.demand = goes_up_and_down;
    config.fails_permille = 800;
    g_autoptr(Storm) storm = storm_new(&config);
    submit_all(storm, &config, 100);
    storm_run_all(storm, 200 * STORM_HOUR_USEC);
    const StormResult *result = storm_result(storm);
    say(&config, result);
    assert_true(result->checkpoints >= 20);
    assert_true(result->waits >= 1);
}

static void nobody_waits_for_longer_than_the_bound_whatever_fails(void **state)
{
    play(fail_actions);
}

/* --- to and fro ------------------------------------------------------------------------------- */

/* None is moved more often than its cooldown allows, and hardly one comes back. On average one move in
 * two guest-hours, half of what seeds show at most, would be too many. */
static void waver(guint32 seed)
{
    StormConfig config = config_of(seed, 10);
    config.demand = goes_up_and_down;
    gint64 cooldown_usec = config.tunings[BERTH_TUNING_COOLDOWN_USEC];
    g_autoptr(Storm) storm = storm_new(&config);
    submit_all(storm, &config, 100);
    storm_run_all(storm, 200 * STORM_HOUR_USEC);
    const StormResult *result = storm_result(storm);
    guint moves = result->migrations + result->checkpoints;
    say(&config, result);
    assert_true(moves >= 20);
    assert_true(moves <= result->guest_hours / 2);
    assert_true(result->most_in_an_hour <= STORM_HOUR_USEC / cooldown_usec);
    assert_true(result->returns <= moves / 10);
    assert_true(result->longest_shortage_usec <= bound_usec(&config));
}

static void guests_that_waver_do_not_go_to_and_fro(void **state)
{
    play(waver);
}

/* --- without end ------------------------------------------------------------------------------ */

/* There are always small jobs of many users that wait, and could take whatever comes free, backed or in slack. Some jobs want a
 * whole node. */

#define ENDLESS_NODES 4u
#define ENDLESS_USEC  (12 * STORM_HOUR_USEC)
#define WIDE_USEC     (3 * STORM_HOUR_USEC) /* one comes so often */
#define N_WIDE        (ENDLESS_USEC / WIDE_USEC)
#define N_WAITING     10u
#define SMALL_USEC    STORM_HOUR_USEC /* their limit */

typedef struct {
    Storm *storm;
    guint32 seed;
    guint n_small;
    guint64 wide[N_WIDE]; /* ids */
    guint n_wide;
} Stream;

static void submit_small(Stream *stream)
{
    guint64 drawn = mix(stream->seed, ++stream->n_small);
    guint32 vcpus = 2u << drawn % 2;
    BerthCoreJob job = {.uid = 1000 + (guint32)(drawn >> 4) % 50,
                        .resources = {vcpus, vcpus * 4000u, 0},
                        .time_limit_usec = SMALL_USEC,
                        .may_move = TRUE,
                        .may_checkpoint = TRUE,
                        .opportunistic = TRUE};
    storm_submit(stream->storm, &job, (gint64)(10 + (drawn >> 16) % 45) * MINUTE);
}

static void submit_wide(Stream *stream, const StormConfig *config)
{
    BerthCoreJob job = {.uid = 999, .resources = config->node, .time_limit_usec = SMALL_USEC};
    storm_submit(stream->storm, &job, SMALL_USEC);
    stream->wide[stream->n_wide] = stream->n_small + stream->n_wide + 1;
    stream->n_wide++;
}

/* Small ones come as others start, so that the queue is never empty and never longer. */
static void stream_jobs(Stream *stream, const StormConfig *config)
{
    for (gint64 at_usec = 0; at_usec < ENDLESS_USEC; at_usec += MINUTE) {
        storm_run(stream->storm, at_usec);
        while (storm_waiting(stream->storm) < N_WAITING)
            submit_small(stream);
        if (at_usec % WIDE_USEC == STORM_HOUR_USEC)
            submit_wide(stream, config);
    }
}

/* Of those that have come. */
static gint64 longest_wait_usec(const Stream *stream)
{
    gint64 longest_usec = 0;
    for (guint i = 0; i < stream->n_wide; i++)
        longest_usec = MAX(longest_usec, storm_waited_usec(stream->storm, stream->wide[i]));
    return longest_usec;
}

/* Nobody of the small ones runs for longer than their limit: so long may it take until those before a wide one run, and once
 * more until it does. Those that come later but pass it for fair share are as much younger as its age counts for. */
static void stream(guint32 seed, gint64 weight, gint64 age_max_usec)
{
    StormConfig config = config_of(seed, ENDLESS_NODES);
    config.demand = stays_low;
    config.tunings[BERTH_TUNING_WEIGHT_FAIR_SHARE] = weight;
    config.tunings[BERTH_TUNING_WEIGHT_AGE] = weight;
    config.tunings[BERTH_TUNING_AGE_MAX_USEC] = MAX(age_max_usec, (gint64)G_USEC_PER_SEC);
    g_autoptr(Storm) storm = storm_new(&config);
    Stream stream = {.storm = storm, .seed = seed};
    stream_jobs(&stream, &config);
    say(&config, storm_result(storm));
    print_message("%u small jobs; a whole node was waited for for %d min at most\n", stream.n_small,
                  (int)(longest_wait_usec(&stream) / MINUTE));
    assert_int_equal(stream.n_wide, N_WIDE);
    assert_true(longest_wait_usec(&stream) <= age_max_usec + 2 * SMALL_USEC + bound_usec(&config));
}

static void stream_in_order(guint32 seed)
{
    stream(seed, 0, 0);
}

static void stream_by_share(guint32 seed)
{
    stream(seed, 1000, 4 * STORM_HOUR_USEC);
}

static void wide_jobs_have_their_turn_however_many_small_ones_come(void **state)
{
    play(stream_in_order);
}

static void wide_jobs_of_whom_used_most_have_their_turn_too(void **state)
{
    play(stream_by_share);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(growth_of_all_is_relieved_within_the_evacuation_bound),
        cmocka_unit_test(failure_of_a_third_of_the_nodes_is_got_over),
        cmocka_unit_test(failure_amid_growth_is_got_over),
        cmocka_unit_test(nobody_waits_for_longer_than_the_bound_whatever_fails),
        cmocka_unit_test(guests_that_waver_do_not_go_to_and_fro),
        cmocka_unit_test(wide_jobs_have_their_turn_however_many_small_ones_come),
        cmocka_unit_test(wide_jobs_of_whom_used_most_have_their_turn_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
