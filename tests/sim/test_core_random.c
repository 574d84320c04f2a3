/* SPDX-License-Identifier: Apache-2.0 */
/* The core in a random world: jobs, arrays and gangs of all kinds, users and operators who change
 * their minds, and everything that can fail, at any time. Each seed is one history; a failing one is
 * printed and can be run alone with BERTH_TEST_SEED=N. One seed of each run is new. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/sim/world.h"

#ifdef __SANITIZE_ADDRESS__ /* ten times slower, and the plain build runs them all */
#define N_SEEDS 100
static const guint least = 0;
#else
#define N_SEEDS 900
static const guint least = 2; /* times that each thing happens in all of them */
#endif
#define N_STEPS 1500

/* Those of berthd by default, all of them, or all but one. */
static guint32 features_of(guint32 seed)
{
    if (seed % 8 == 3)
        return BERTH_FEATURE_PREDICTION | BERTH_FEATURE_SIBLING_PRIOR;
    return BERTH_FEATURE_ALL & ~(seed / 16 % 2 == 0 ? 0 : 1u << (seed / 32 % 10));
}

static WorldConfig config_of(guint32 seed)
{
    return (WorldConfig){.seed = seed,
                         .n_nodes = 1 + seed % 6,
                         .n_jobs = 10 + seed % 90,
                         .policy = (BerthCorePolicy)(seed / 5 % 3),
                         .features = seed % 2 == 0 ? 0 : features_of(seed),
                         .can_fence = seed % 3 != 0,
                         .fair_share = seed / 3 % 4 == 0,
                         .failures = seed % 7 != 0,
                         .idles = seed % 4 == 1};
}

static World *run(guint32 seed)
{
    WorldConfig config = config_of(seed);
    World *world = world_new(&config);
    for (guint i = 0; i < N_STEPS; i++)
        world_step(world);
    world_settle(world);
    return world;
}

static guint32 seed_from_environment(void)
{
    const char *text = g_getenv("BERTH_TEST_SEED");
    guint64 seed = 0;
    if (text != NULL)
        assert_true(g_ascii_string_to_unsigned(text, 10, 1, G_MAXUINT32, &seed, NULL));
    return (guint32)seed;
}

/* What has to have happened in all of them together. */
static const char *const covered[] = {
    "start",
    "start again",
    "start failed",
    "start after others",
    "tasks of many ranges",
    "many ranges cancelled",
    "many ranges to be frozen",
    "dependency never",
    "stop",
    "stop failed",
    "stop hung",
    "stop slow",
    "release failed",
    "release hung",
    "released unheard",
    "stray",
    "reboot",
    "restart",
    "fenced",
    "end",
    "completed",
    "fence failed",
    "slack",
    "migrate",
    "migrated",
    "checkpoint",
    "checkpoint wanted",
    "checkpoint due",
    "saved every",
    "saved no more",
    "checkpoints removed",
    "runs on",
    "to disk wanted",
    "to disk",
    "thawed to a node",
    "put back",
    "at time limit",
    "extended at its limit",
    "limit set",
    "restore",
    "promoted",
    "room needed",
    "pressure",
    "array",
    "some tasks",
    "some held",
    "some released",
    "drain",
    "cordon",
    "emptied",
    "drained",
    "undrain",
    "given up",
    "maintenance",
    "grow",
    "resized",
    "balloon",
    "balloon failed",
    "balloon taken",
    "balloon given back",
    "freeze",
    "freeze at limit",
    "freeze wanted",
    "thaw wanted",
    "thaw",
    "migrate wanted",
    "called off",
    "resize wanted",
    "resize wanted elsewhere",
    "shrunk",
    "balance",
    "defragment",
    "too many jobs",
    "peak grown",
    "peak changed",
    "peak put back",
    "start waits for room",
    "slack full",
    "start has waited",
    "move waits for room",
    "growth waits for room",
    "move given up",
    "growth given up",
};

static void random_histories_keep_every_invariant(void **state)
{
    guint counts[G_N_ELEMENTS(covered)] = {0};
    guint32 only = seed_from_environment();
    for (guint32 i = 1; i <= N_SEEDS; i++) {
        guint32 seed = only != 0 ? only : i < N_SEEDS ? i : g_random_int();
        if (only != 0 || i == N_SEEDS)
            print_message("seed %u\n", seed);
        g_autoptr(World) world = run(seed);
        for (guint k = 0; k < G_N_ELEMENTS(covered); k++)
            counts[k] += world_count(world, covered[k]);
        if (only != 0)
            return;
    }
    for (guint k = 0; k < G_N_ELEMENTS(covered); k++) {
        print_message("%s: %u\n", covered[k], counts[k]);
        if (counts[k] < least)
            fail_msg("only %u times: %s", counts[k], covered[k]);
    }
}

static void same_seed_gives_same_actions(void **state)
{
    for (guint32 seed = 1; seed <= 8; seed++) {
        g_autoptr(World) first = run(seed);
        g_autoptr(World) second = run(seed);
        assert_string_equal(world_log(first), world_log(second));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_histories_keep_every_invariant),
        cmocka_unit_test(same_seed_gives_same_actions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
