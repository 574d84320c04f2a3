/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the fake world: its life, and what chance does to it. */
#include "tests/sim/world_internal.h"

/* 100 jobs of 5 tasks, one after the other. */
#define SETTLE_ROUNDS_MAX  60000u
#define TIME_STEP_MAX_USEC (4 * G_USEC_PER_SEC)

/* --- life ----------------------------------------------------------------------------------- */

World *world_new(const WorldConfig *config)
{
    World *world = g_new0(World, 1);
    world->config = *config;
    world->random = g_rand_new_with_seed(config->seed);
    world->now_usec = G_USEC_PER_SEC;
    world->hosts = g_array_new(FALSE, TRUE, sizeof(Host));
    world->guests = g_array_new(FALSE, TRUE, sizeof(Guest));
    world->orders = g_array_new(FALSE, TRUE, sizeof(BerthCoreAction));
    world->results = g_array_new(FALSE, TRUE, sizeof(Result));
    world->saved = g_array_new(FALSE, TRUE, sizeof(Saved));
    world->jobs = g_array_new(FALSE, TRUE, sizeof(Job));
    world->uses = g_array_new(FALSE, TRUE, sizeof(BerthCoreUse));
    world->priors = g_array_new(FALSE, TRUE, sizeof(BerthCorePrior));
    world->changes = g_array_new(FALSE, TRUE, sizeof(Change));
    world->reckoned_usec = world->now_usec;
    world->log = g_string_new(NULL);
    world->counts = g_hash_table_new(g_str_hash, g_str_equal);
    driver_start(world);
    people_set_up(world);
    return world;
}

void world_free(World *world)
{
    driver_stop(world);
    g_rand_free(world->random);
    g_array_unref(world->hosts);
    g_array_unref(world->guests);
    g_array_unref(world->orders);
    g_array_unref(world->results);
    g_array_unref(world->saved);
    g_array_unref(world->jobs);
    g_array_unref(world->uses);
    g_array_unref(world->priors);
    g_array_unref(world->changes);
    g_string_free(world->log, TRUE);
    g_hash_table_unref(world->counts);
    g_free(world);
}

const char *world_log(const World *world)
{
    return world->log->str;
}

guint world_count(const World *world, const char *what)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(world->counts, what));
}

void world_note(World *world, const char *what)
{
    g_hash_table_insert(world->counts, (gpointer)what,
                        GUINT_TO_POINTER(world_count(world, what) + 1));
}

gboolean world_chance(World *world, guint percent)
{
    return (guint)g_rand_int_range(world->random, 0, 100) < percent;
}

guint world_pick(World *world, guint n)
{
    return (guint)g_rand_int_range(world->random, 0, (gint32)n);
}

gboolean world_id_equal(const BerthGuestId *a, const BerthGuestId *b)
{
    return a->job == b->job && a->task == b->task && a->guest == b->guest && a->epoch == b->epoch;
}

Job *world_job(const World *world, guint64 number)
{
    return &g_array_index(world->jobs, Job, number - 1);
}

Host *world_host(const World *world, guint32 node)
{
    return &g_array_index(world->hosts, Host, node - 1);
}

guint world_user(guint32 account, guint32 uid)
{
    return N_ACCOUNTS + account * N_UIDS + uid;
}

/* --- chance --------------------------------------------------------------------------------- */

static void pass_time(World *world)
{
    gint64 to_usec = world->now_usec + g_rand_int_range(world->random, 1, TIME_STEP_MAX_USEC);
    /* Each at its own instant: what is to be so at one is not looked at later. */
    while (berth_core_next_timer_usec(world->core) <= to_usec) {
        world->now_usec = MAX(world->now_usec, berth_core_next_timer_usec(world->core));
        driver_handle(world, &(BerthCoreEvent){.kind = BERTH_EVENT_TIMER});
    }
    world->now_usec = to_usec;
}

static void ask(World *world, BerthEventKind kind)
{
    if (world->jobs->len > 0)
        people_ask(world, kind, 1 + world_pick(world, world->jobs->len), world_chance(world, 50));
}

static void change_storage(World *world, gboolean is_down)
{
    world->storage_is_down = is_down;
    driver_handle_surely(world, &(BerthCoreEvent){.kind = is_down ? BERTH_EVENT_STORAGE_DOWN
                                                                  : BERTH_EVENT_STORAGE_UP});
}

static void leave(World *world)
{
    guint32 node = 1 + world_pick(world, world->hosts->len);
    if (!world_host(world, node)->has_session)
        return;
    agents_break_session(world, node);
    /* Sometimes the agent is back before the driver noticed. */
    if (world_chance(world, 80))
        driver_handle(world, &(BerthCoreEvent){.kind = BERTH_EVENT_NODE_LEFT, .node = node});
    if (world_chance(world, 5)) {
        driver_handle(world, &(BerthCoreEvent){.kind = BERTH_EVENT_NODE_GIVEN_UP, .node = node});
        world_note(world, "given up");
    }
}

static void fail_somehow(World *world)
{
    switch (world_pick(world, 12)) {
    case 0:
        agents_reboot(world, 1 + world_pick(world, world->hosts->len));
        break;
    case 1:
        driver_restart(world);
        break;
    case 2:
        change_storage(world, world_chance(world, 30));
        break;
    case 3:
        /* The next event is handled, but the scheduler dies before or after its commit. */
        world->dies_at = world_chance(world, 50) ? DIES_BEFORE_COMMIT : DIES_AFTER_COMMIT;
        break;
    default:
        leave(world);
    }
}

/* Where all are there, there is more time to measure. */
static void join_or_report(World *world)
{
    guint32 node = 1 + world_pick(world, world->hosts->len);
    if (world_host(world, node)->has_session)
        agents_report_usage(world);
    else
        agents_join(world, node);
}

/* Growth in what others leave unused waits for them, and is given up, so seldom that it is to be asked for often. */
static void ask_for_place(World *world)
{
    if (world_chance(world, 50)) {
        people_ask_for_move(world);
        return;
    }
    for (guint n = world->config.idles ? 4 : 1; n > 0; n--)
        people_ask_for_size(world);
}

void world_step(World *world)
{
    guint dice = world_pick(world, 100);
    if (dice < 10)
        people_submit(world);
    else if (dice < 34)
        agents_deliver_order(world);
    else if (dice < 59)
        agents_deliver_result(world);
    else if (dice < 63)
        agents_advance_guest(world);
    else if (dice < 71)
        agents_report_usage(world);
    else if (dice < 79)
        pass_time(world);
    else if (dice < 80)
        limits_ask(world);
    else if (dice < 90)
        join_or_report(world);
    else if (dice < 91)
        ask(world, BERTH_EVENT_JOB_CANCELLED);
    else if (dice < 92)
        ask(world, BERTH_EVENT_JOB_HELD);
    else if (dice < 93)
        ask(world, BERTH_EVENT_JOB_RELEASED);
    else if (dice < 95)
        savers_ask(world);
    else if (dice < 96)
        ask_for_place(world);
    else if (dice < 98)
        people_change_something(world);
    else if (world->config.failures)
        fail_somehow(world);
}

void world_settle(World *world)
{
    world->config.failures = FALSE;
    world->dies_at = DIES_NEVER;
    change_storage(world, FALSE);
    people_let_go(world);
    agents_break_hung(world);
    for (guint round = 0; driver_first_unfinished(world) != 0 || world->guests->len > 0; round++) {
        if (round > SETTLE_ROUNDS_MAX)
            g_error("seed %u: job %u never ends:\n%s", world->config.seed,
                    (guint)driver_first_unfinished(world), world->log->str);
        for (guint32 node = 1; node <= world->hosts->len; node++)
            agents_join(world, node);
        agents_deliver_order(world);
        agents_deliver_result(world);
        agents_advance_guest(world);
        if (round % 10 == 0)
            pass_time(world);
        if (round % 1000 == 999) /* a thaw that was on its way may have failed */
            people_let_go(world);
    }
}
