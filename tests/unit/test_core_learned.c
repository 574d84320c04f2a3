/* SPDX-License-Identifier: Apache-2.0 */
/* What the core has learnt and owes, told to its driver and put back after a restart. */
#include "scheduler/core/mix.h"
#include "tests/lib/assert.h"

#include "scheduler/core/learned.h"

#define SECOND_USEC ((gint64)G_USEC_PER_SEC)
#define BEGIN_USEC  (1700000000 * SECOND_USEC) /* a time as the real clock's */
#define HALF_LIFE   (65536 * 10)               /* in seconds */
#define NODE_VCPUS  64
#define NODE_MIB    65536
#define JOB_MIB     1024

/* A core, and what a driver would have stored of it. */
typedef struct {
    BerthCore *core;
    BerthCoreEffects *effects;
    gint64 now_usec;
    GHashTable *uses; /* of uid, or -1 of the root: BerthCoreUse */
    GArray *priors;   /* all that were told */
    guint n_told;     /* uses, by the latest event */
} World;

static BerthCore *new_core(void)
{
    gint64 tunings[BERTH_TUNING_N];
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        tunings[i] = berth_core_tuning((BerthCoreTuning)i)->value;
    tunings[BERTH_TUNING_HALF_LIFE_USEC] = HALF_LIFE * SECOND_USEC;
    tunings[BERTH_TUNING_PEAK_MARGIN_PERMILLE] = 0;
    const BerthCoreConfig config = {.node_timeout_usec = 60 * SECOND_USEC,
                                    .requeues_max = 2,
                                    .policy = BERTH_POLICY_CONSERVATIVE,
                                    .features =
                                        BERTH_FEATURE_PREDICTION | BERTH_FEATURE_SIBLING_PRIOR,
                                    .tunings = tunings};
    return berth_core_new(&config);
}

static void note(World *world)
{
    world->n_told = world->effects->uses->len;
    for (guint i = 0; i < world->effects->uses->len; i++) {
        const BerthCoreUse *use = &g_array_index(world->effects->uses, BerthCoreUse, i);
        g_hash_table_insert(world->uses, GINT_TO_POINTER(use->is_user ? (gint)use->uid : -1),
                            g_memdup2(use, sizeof *use));
    }
    g_array_append_vals(world->priors, world->effects->priors->data, world->effects->priors->len);
    berth_core_effects_clear(world->effects);
    berth_core_assert_invariants(world->core);
}

static void handle(World *world, BerthCoreEvent *event)
{
    g_autoptr(GError) error = NULL;
    berth_core_handle(world->core, world->now_usec, event, world->effects, &error);
    assert_no_error(error);
    note(world);
}

static void join(World *world)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_JOINED, .node = 1};
    event.joined.info.capacity = (BerthResources){NODE_VCPUS, NODE_MIB, 0};
    handle(world, &event);
}

static World *world_new(void)
{
    World *world = g_new0(World, 1);
    world->core = new_core();
    world->effects = berth_core_effects_new();
    world->now_usec = BEGIN_USEC;
    world->uses = g_hash_table_new_full(NULL, NULL, NULL, g_free);
    world->priors = g_array_new(FALSE, FALSE, sizeof(BerthCorePrior));
    berth_core_add_node(world->core, "n");
    berth_core_resume(world->core, world->now_usec, world->effects);
    note(world);
    join(world);
    return world;
}

static void world_free(World *world)
{
    berth_core_free(world->core);
    berth_core_effects_free(world->effects);
    g_hash_table_unref(world->uses);
    g_array_unref(world->priors);
    g_free(world);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(World, world_free)

static void pass(World *world, gint64 seconds)
{
    world->now_usec += seconds * SECOND_USEC;
}

/* An event that changes nothing but what time it is. */
static void tick(World *world)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_QOS_SET};
    handle(world, &event);
}

static void submit(World *world, guint64 id, guint32 uid, guint64 memory_mib)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    event.submitted =
        (BerthCoreJob){.id = id, .uid = uid, .resources = {1, memory_mib, 0}, .family = 77};
    handle(world, &event);
}

static void guest(World *world, BerthEventKind kind, guint64 id)
{
    BerthCoreEvent event = {.kind = kind, .guest = {.job = id, .epoch = 1}};
    if (kind == BERTH_EVENT_GUEST_RUNNING)
        event.running.start_usec = world->now_usec;
    if (kind == BERTH_EVENT_GUEST_EXITED)
        event.exited.start_usec = event.exited.end_usec = world->now_usec;
    handle(world, &event);
}

static void end(World *world, guint64 id)
{
    guest(world, BERTH_EVENT_GUEST_EXITED, id);
    guest(world, BERTH_EVENT_GUEST_RELEASED, id);
}

static void report(World *world, guint64 id, guint64 used_mib, gint64 starved_usec)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_REPORTED, .guest = {.job = id, .epoch = 1}};
    event.usage = (BerthCoreUsage){.cpu_milli = 300,
                                   .memory_used_mib = used_mib,
                                   .memory_available_mib = NODE_MIB,
                                   .starved_usec = starved_usec};
    handle(world, &event);
}

static void restore_uses(World *world, BerthCore *core)
{
    GHashTableIter iter;
    gpointer use;
    g_hash_table_iter_init(&iter, world->uses);
    while (g_hash_table_iter_next(&iter, NULL, &use))
        berth_core_restore_use(core, use);
}

/* A driver that was killed, and begins again with what it had stored. JOBS: those that are not
 * over. */
static void restart(World *world, const guint64 *jobs, guint n_jobs, gboolean with_uses)
{
    BerthCore *core = new_core();
    BerthCoreNodeInfo info = {.capacity = {NODE_VCPUS, NODE_MIB, 0}};
    berth_core_restore_node(core, berth_core_add_node(core, "n"), BERTH_NODE_UP, BEGIN_USEC,
                            BERTH_ADMISSION_OPEN, &info);
    if (with_uses)
        restore_uses(world, core);
    for (guint i = 0; i < world->priors->len; i++)
        berth_core_restore_prior(core, &g_array_index(world->priors, BerthCorePrior, i));
    for (guint i = 0; i < n_jobs; i++) {
        BerthCoreJob job;
        BerthCoreTask task;
        assert_true(berth_core_get_job(world->core, jobs[i], &job));
        assert_true(berth_core_get_task(world->core, jobs[i], 0, &task));
        berth_core_restore_job(core, &job, &task, 1);
    }
    berth_core_free(world->core);
    world->core = core;
    berth_core_resume(core, world->now_usec, world->effects);
    note(world);
}

static guint64 used(const World *world, BerthCore *core, gint uid)
{
    BerthCoreUse use;
    assert_true(berth_core_get_use(core, 0, uid >= 0 ? (guint32)uid : 0, uid >= 0, &use));
    return use.used_mib_sec;
}

static void set_account(World *world, guint32 account, guint32 parent)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_ACCOUNT_SET};
    event.account_set.account = account;
    event.account_set.parent = parent;
    handle(world, &event);
}

static guint64 used_by_account(const World *world, guint32 account)
{
    BerthCoreUse use;
    assert_true(berth_core_get_use(world->core, account, 0, FALSE, &use));
    return use.used_mib_sec;
}

/* --- usage -------------------------------------------------------------------------------------- */

/* Each pays for the time in which the account was below it. */
static void use_is_charged_to_where_the_account_was(void **state)
{
    g_autoptr(World) world = world_new();
    set_account(world, 1, 0);
    set_account(world, 2, 0);
    set_account(world, 3, 2);
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    event.submitted =
        (BerthCoreJob){.id = 1, .uid = 1000, .account = 3, .resources = {1, JOB_MIB, 0}};
    handle(world, &event);
    pass(world, 100);
    set_account(world, 3, 1);
    assert_int_equal(used_by_account(world, 1), 0);
    assert_in_range(used_by_account(world, 2), 99 * JOB_MIB, 100 * JOB_MIB);
    pass(world, 50);
    tick(world);
    assert_in_range(used_by_account(world, 1), 49 * JOB_MIB, 50 * JOB_MIB);
    assert_in_range(used_by_account(world, 2), 99 * JOB_MIB, 100 * JOB_MIB);
    assert_in_range(used_by_account(world, 3), 149 * JOB_MIB, 150 * JOB_MIB);
}

static void use_after_a_restart_is_what_it_was(void **state)
{
    static const guint64 running[] = {2, 3};
    g_autoptr(World) world = world_new();
    g_autoptr(World) other = world_new(); /* the same, without a restart */
    World *worlds[] = {world, other};
    for (guint i = 0; i < G_N_ELEMENTS(worlds); i++) {
        World *at = worlds[i];
        submit(at, 1, 1000, JOB_MIB);
        submit(at, 2, 1000, 2 * JOB_MIB);
        pass(at, 500);
        submit(at, 3, 1001, JOB_MIB);
        pass(at, 1000);
        end(at, 1);
        pass(at, 3000);
    }
    restart(world, running, G_N_ELEMENTS(running), TRUE);
    pass(world, 4000);
    tick(world);
    pass(other, 4000);
    tick(other);
    /* 1500 s of one, 8500 s of the other and 8000 s of the third; what decays of it is below 2 %. */
    assert_in_range(used(other, other->core, 1000), 18500u * JOB_MIB * 98 / 100, 18500u * JOB_MIB);
    for (gint uid = 1000; uid <= 1001; uid++)
        assert_in_range(used(world, world->core, uid), used(other, other->core, uid) - 20,
                        used(other, other->core, uid) + 20);
    assert_in_range(used(world, world->core, -1), used(other, other->core, -1) - 20,
                    used(other, other->core, -1) + 20);
}

static void use_that_was_not_stored_begins_at_the_restart(void **state)
{
    static const guint64 running[] = {1};
    g_autoptr(World) world = world_new();
    submit(world, 1, 1000, JOB_MIB);
    guest(world, BERTH_EVENT_GUEST_RUNNING, 1);
    pass(world, 100);
    restart(world, running, 1, FALSE);
    pass(world, 10);
    tick(world);
    assert_in_range(used(world, world->core, 1000), 10 * JOB_MIB - 2, 10 * JOB_MIB);
}

/* A vCPU counts as much less memory at the end of the job than at its start. */
static void use_ends_with_the_job_whatever_a_vcpu_counts_for(void **state)
{
    g_autoptr(World) world = world_new();
    BerthCoreEvent shrink = {.kind = BERTH_EVENT_NODE_CHANGED, .node = 1};
    shrink.changed.capacity = (BerthResources){NODE_VCPUS, NODE_MIB / 16, 0};
    submit(world, 1, 1000, 1);
    pass(world, 10);
    handle(world, &shrink);
    end(world, 1);
    guint64 before = used(world, world->core, 1000);
    assert_in_range(before, 1, 10 * NODE_MIB / NODE_VCPUS);
    pass(world, 100);
    tick(world);
    assert_in_range(used(world, world->core, 1000), 1, before);
    assert_in_range(used(world, world->core, -1), 1, before);
}

static void use_is_told_once_an_event_and_not_by_reports(void **state)
{
    g_autoptr(World) world = world_new();
    submit(world, 1, 1000, JOB_MIB);
    assert_int_equal(world->n_told, 2); /* the user, and the root */
    guest(world, BERTH_EVENT_GUEST_RUNNING, 1);
    assert_int_equal(world->n_told, 0);
    for (guint i = 0; i < 20; i++) {
        pass(world, 5);
        report(world, 1, 100, 0);
        assert_int_equal(world->n_told, 0);
    }
    guest(world, BERTH_EVENT_GUEST_EXITED, 1);
    assert_int_equal(world->n_told, 0);
    guest(world, BERTH_EVENT_GUEST_RELEASED, 1);
    assert_int_equal(world->n_told, 2);
}

/* A busy user's usage is settled at each of its tasks. */
static void use_looked_at_often_halves_in_a_half_life(void **state)
{
    g_autoptr(World) world = world_new();
    submit(world, 1, 1000, NODE_MIB / 2);
    pass(world, 10000);
    end(world, 1);
    guint64 before = used(world, world->core, 1000);
    for (guint64 id = 2; id < 2 + HALF_LIFE / 5; id++) {
        submit(world, id, 1000, 1);
        end(world, id);
        pass(world, 5);
    }
    tick(world);
    assert_in_range(used(world, world->core, 1000), before / 2 - before / 1000,
                    before / 2 + before / 1000);
}

/* --- siblings ------------------------------------------------------------------------------------ */

static void run_sibling(World *world, guint64 id, guint64 used_mib)
{
    submit(world, id, 1000, JOB_MIB);
    guest(world, BERTH_EVENT_GUEST_RUNNING, id);
    report(world, id, used_mib, 0);
    end(world, id);
}

static guint64 predicted_mib(World *world, guint64 id)
{
    BerthCoreGuest got;
    assert_true(berth_core_get_guest(world->core, id, 0, 0, &got));
    return got.predicted_mib;
}

static void prior_after_a_restart_is_what_it_was(void **state)
{
    g_autoptr(World) world = world_new();
    run_sibling(world, 1, 200);
    run_sibling(world, 2, 300);
    run_sibling(world, 3, 100);
    assert_int_equal(world->priors->len, 9); /* of siblings, of the user's jobs, of all, in turn */
    assert_int_equal(g_array_index(world->priors, BerthCorePrior, 6).family, 77);
    for (guint i = 7; i < 9; i++) {
        const BerthCorePrior *prior = &g_array_index(world->priors, BerthCorePrior, i);
        assert_int_equal(prior->uid, i == 7 ? 1000 : BERTH_CORE_UID_ANY);
        assert_int_equal(prior->family, 0);
        assert_int_equal(prior->n, 3);
        assert_int_equal(prior->peak_milli, 300);
    }
    restart(world, NULL, 0, TRUE);
    join(world);
    submit(world, 4, 1000, JOB_MIB);
    guest(world, BERTH_EVENT_GUEST_RUNNING, 4);
    report(world, 4, 10, 0);
    assert_int_equal(predicted_mib(world, 4), 300);
}

/* It had not settled, so that nothing was told. */
static void guest_over_a_restart_teaches_nothing(void **state)
{
    static const guint64 running[] = {1};
    g_autoptr(World) world = world_new();
    submit(world, 1, 1000, JOB_MIB);
    guest(world, BERTH_EVENT_GUEST_RUNNING, 1);
    report(world, 1, 900, 0); /* a peak that nobody knows of after the restart */
    restart(world, running, 1, TRUE);
    report(world, 1, 100, 0);
    assert_int_equal(predicted_mib(world, 1), JOB_MIB); /* it settles anew */
    end(world, 1);
    assert_int_equal(world->priors->len, 0);
}

/* It is known to have needed so much; more if it has needed more since. */
static void guest_over_a_restart_teaches_what_was_told(void **state)
{
    static const guint64 running[] = {1, 2};
    g_autoptr(World) world = world_new();
    for (guint64 id = 1; id <= 2; id++) {
        submit(world, id, 1000, JOB_MIB);
        guest(world, BERTH_EVENT_GUEST_RUNNING, id);
    }
    pass(world, 300);
    report(world, 1, 400, 0);
    report(world, 2, 200, 0);
    restart(world, running, G_N_ELEMENTS(running), TRUE);
    end(world, 1);
    report(world, 2, 300, 0);
    end(world, 2);
    assert_int_equal(world->priors->len, 6); /* of siblings, of the user's jobs, of all, in turn */
    assert_int_equal(g_array_index(world->priors, BerthCorePrior, 0).peak_mib, 400);
    assert_int_equal(g_array_index(world->priors, BerthCorePrior, 3).peak_mib, 400);
    assert_int_equal(g_array_index(world->priors, BerthCorePrior, 3).n, 2);
}

static void priors_are_bounded_and_the_oldest_goes(void **state)
{
    g_autoptr(World) world = world_new();
    for (guint i = 0; i < BERTH_CORE_PRIORS_MAX; i++) {
        BerthCorePrior prior = {.uid = 5, .family = i + 1, .n = 3, .vcpus = 1, .memory_mib = 1};
        berth_core_restore_prior(world->core, &prior);
    }
    run_sibling(world, 1, 200);
    /* What is learnt of its siblings, of its user's jobs and of all, each in the place of the oldest. */
    static const guint64 families[] = {1, 77, 2, 0, 3, 0};
    assert_int_equal(world->priors->len, G_N_ELEMENTS(families));
    for (guint i = 0; i < G_N_ELEMENTS(families); i++) {
        const BerthCorePrior *told = &g_array_index(world->priors, BerthCorePrior, i);
        assert_int_equal(told->family, families[i]);
        assert_int_equal(told->n, i % 2); /* 0: forgotten */
    }
}

/* --- time limits ---------------------------------------------------------------------------------- */

static gint64 starved_usec(World *world, guint64 id)
{
    BerthCoreTask task;
    assert_true(berth_core_get_task(world->core, id, 0, &task));
    return task.starved_usec;
}

static void starvation_goes_on_after_a_restart(void **state)
{
    static const guint64 running[] = {1};
    g_autoptr(World) world = world_new();
    submit(world, 1, 1000, JOB_MIB);
    guest(world, BERTH_EVENT_GUEST_RUNNING, 1);
    pass(world, 300);
    report(world, 1, 100, 120 * SECOND_USEC);
    restart(world, running, 1, TRUE);
    assert_int_equal(starved_usec(world, 1), 120 * SECOND_USEC);
    pass(world, 100);
    report(world, 1, 100, 30 * SECOND_USEC);
    assert_int_equal(starved_usec(world, 1), 150 * SECOND_USEC);
}

/* A trace may number what a user runs as it numbers him. */
static void keys_whose_members_are_alike_are_apart(void **state)
{
    enum { N = 4096 };
    static gboolean is_taken[N];
    guint n = 0;
    for (guint64 i = 0; i < N; i++) {
        guint slot = core_mix_end(core_mix(core_mix(0, i), i)) % N;
        n += !is_taken[slot];
        is_taken[slot] = TRUE;
    }
    assert_true(n > N / 2); /* by chance 63 of 100 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_whose_members_are_alike_are_apart),
        cmocka_unit_test(use_is_charged_to_where_the_account_was),
        cmocka_unit_test(use_after_a_restart_is_what_it_was),
        cmocka_unit_test(use_that_was_not_stored_begins_at_the_restart),
        cmocka_unit_test(use_ends_with_the_job_whatever_a_vcpu_counts_for),
        cmocka_unit_test(use_is_told_once_an_event_and_not_by_reports),
        cmocka_unit_test(use_looked_at_often_halves_in_a_half_life),
        cmocka_unit_test(prior_after_a_restart_is_what_it_was),
        cmocka_unit_test(guest_over_a_restart_teaches_nothing),
        cmocka_unit_test(guest_over_a_restart_teaches_what_was_told),
        cmocka_unit_test(priors_are_bounded_and_the_oldest_goes),
        cmocka_unit_test(starvation_goes_on_after_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
