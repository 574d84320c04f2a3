/* SPDX-License-Identifier: Apache-2.0 */
/* The order of very many kinds of jobs: what is found in it, and after how many looks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scheduler/core/least.h"
#include "scheduler/core/order_tree.h"

#define SEC ((gint64)G_USEC_PER_SEC)

typedef struct {
    BerthCore *core;
    BerthCoreEffects *effects;
    gint64 now_usec;
    guint64 next_job;
} Bed;

static void handle(Bed *bed, const BerthCoreEvent *event)
{
    g_autoptr(GError) error = NULL;
    berth_core_effects_clear(bed->effects);
    if (!berth_core_handle(bed->core, bed->now_usec, event, bed->effects, &error))
        fail_msg("%s", error->message);
}

#define NODE_MIB ((guint64)1 << 20)

/* One node, and only so many classes that are tried in vain in a pass. */
static Bed *bed_new(guint32 vcpus, gint64 fair_share)
{
    Bed *bed = g_new0(Bed, 1);
    gint64 tunings[BERTH_TUNING_N];
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        tunings[i] = berth_core_tuning((BerthCoreTuning)i)->value;
    tunings[BERTH_TUNING_WEIGHT_FAIR_SHARE] = tunings[BERTH_TUNING_WEIGHT_AGE] = fair_share;
    tunings[BERTH_TUNING_RANK_INTERVAL_USEC] = SEC;
    BerthCoreConfig config = {.node_timeout_usec = 60 * SEC,
                              .policy = BERTH_POLICY_CONSERVATIVE,
                              .features = BERTH_FEATURE_ALL,
                              .tunings = tunings};
    bed->core = berth_core_new(&config);
    bed->effects = berth_core_effects_new();
    bed->now_usec = SEC;
    BerthCoreEvent join = {.kind = BERTH_EVENT_NODE_JOINED,
                           .node = berth_core_add_node(bed->core, "n")};
    join.joined.info.capacity = (BerthResources){vcpus, NODE_MIB, 0};
    handle(bed, &join);
    return bed;
}

static void bed_free(Bed *bed)
{
    berth_core_assert_invariants(bed->core);
    berth_core_effects_free(bed->effects);
    berth_core_free(bed->core);
    g_free(bed);
}

typedef struct {
    guint32 vcpus;
    guint64 memory_mib;
    gint64 limit_sec;
    guint32 guests;
} Kind;

/* Of a shape of its own. TRUE: it has started. */
static gboolean submit_kind(Bed *bed, Kind kind, gboolean slack)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    guint64 id = ++bed->next_job;
    event.submitted = (BerthCoreJob){.id = id,
                                     .uid = 1000 + (guint32)(id % 7),
                                     .resources = {kind.vcpus, kind.memory_mib, 1},
                                     .time_limit_usec = kind.limit_sec * SEC + (gint64)id,
                                     .submit_usec = bed->now_usec,
                                     .guests = kind.guests,
                                     .may_checkpoint = slack,
                                     .opportunistic = slack};
    handle(bed, &event);
    return bed->effects->actions->len > 0;
}

static gboolean submit(Bed *bed, guint32 vcpus, gint64 limit_sec, gboolean slack)
{
    return submit_kind(bed, (Kind){vcpus, 1, limit_sec, 1}, slack);
}

/* TRUE: JOB has been started by it. */
static gboolean end_first_starts(Bed *bed, guint64 first, guint64 job)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_EXITED, .guest = {first, 0, 0, 1}};
    event.exited.start_usec = event.exited.end_usec = bed->now_usec;
    handle(bed, &event);
    event = (BerthCoreEvent){.kind = BERTH_EVENT_GUEST_RELEASED, .guest = {first, 0, 0, 1}};
    handle(bed, &event);
    if (bed->effects->actions->len != 1)
        return FALSE;
    const BerthCoreAction *action = &g_array_index(bed->effects->actions, BerthCoreAction, 0);
    return action->kind == BERTH_ACTION_START && action->guest.job == job;
}

/* --- how often is looked --------------------------------------------------------------------- */

#define MANY     20000u
#define LOOKS_OK 200u

/* Two guests run, of 8 vCPUs and 8 GiB and of all else; the first ends, and there is so much room until the time
 * limit of the other. Of all that wait only the last one has room then. They are of KINDS by turns. */
static void check_looks(const Kind *kinds, guint n_kinds)
{
    static const Kind last = {8, 8192, 100, 1};
    Bed *bed = bed_new(64, 0);
    assert_true(submit_kind(bed, (Kind){8, 8192, 1000, 1}, FALSE));
    assert_true(submit_kind(bed, (Kind){56, NODE_MIB - 8192, 1000, 1}, FALSE));
    assert_false(submit(bed, 64, 1000, FALSE)); /* is planned for when both have ended */
    for (guint i = 0; i < MANY; i++)
        assert_false(submit_kind(bed, kinds[i % n_kinds], FALSE));
    assert_false(submit_kind(bed, last, FALSE));
    guint64 looks = bed->core->n_looked_at;
    assert_true(end_first_starts(bed, 1, bed->next_job));
    looks = bed->core->n_looked_at - looks;
    if (looks == 0 || looks > LOOKS_OK)
        fail_msg("%" G_GUINT64_FORMAT " looks", looks);
    bed_free(bed);
}

static void end_looks_at_few_of_many_that_are_too_large(void **state)
{
    check_looks(&(Kind){9, 1, 100, 1}, 1);
}

static void end_looks_at_few_of_many_that_are_too_long(void **state)
{
    check_looks(&(Kind){1, 1, 5000, 1}, 1);
}

/* All three are little enough for one of two, but for neither by itself. */
static void end_looks_at_few_of_many_that_are_each_too_large_in_another_way(void **state)
{
    static const Kind by_size[] = {{1, 16384, 100, 1}, {9, 512, 100, 1}};
    static const Kind by_vcpus_and_time[] = {{1, 1, 5000, 1}, {16, 1, 100, 1}};
    static const Kind by_memory_and_time[] = {{1, 1, 5000, 1}, {1, 8193, 100, 1}};
    static const Kind with_gangs[] = {
        {1, 16384, 100, 2}, {9, 512, 100, 1}, {9, 512, 100, 2}, {1, 16384, 100, 1}};
    check_looks(by_size, G_N_ELEMENTS(by_size));
    check_looks(by_vcpus_and_time, G_N_ELEMENTS(by_vcpus_and_time));
    check_looks(by_memory_and_time, G_N_ELEMENTS(by_memory_and_time));
    check_looks(with_gangs, G_N_ELEMENTS(with_gangs));
}

/* The more vCPUs one asks for, the less memory. */
static void check_stairs(guint n_kinds)
{
    g_autofree Kind *kinds = g_new(Kind, n_kinds);
    for (guint32 i = 0; i < n_kinds; i++)
        kinds[i] = (Kind){1 + i, 8 * 8192 / (1 + i) + 1, 100, 1};
    check_looks(kinds, n_kinds);
}

/* As many as are kept, and more: of these it is the closest that are not told apart. */
static void end_looks_at_few_of_many_on_stairs_around_what_is_free(void **state)
{
    check_stairs(CORE_LEASTS_MAX);
    check_stairs(64);
}

/* Neither those who may not run in slack, nor those for whom too many failed before, are looked at. */
static void slack_looks_at_few_of_many_that_may_not(void **state)
{
    Bed *bed = bed_new(4, 0);
    assert_true(submit(bed, 4, 1000, FALSE));
    for (guint i = 0; i < MANY; i++)
        assert_false(submit(bed, 4, 100, FALSE));
    guint64 looks = bed->core->n_looked_at;
    assert_false(submit(bed, 4, 100, TRUE));
    looks = bed->core->n_looked_at - looks;
    if (looks == 0 || looks > LOOKS_OK)
        fail_msg("%" G_GUINT64_FORMAT " looks", looks);
    bed_free(bed);
}

static guint depth_below(const CoreClass *class)
{
    if (class == NULL)
        return 0;
    guint left = depth_below(class->order.left);
    guint right = depth_below(class->order.right);
    return 1 + MAX(left, right);
}

/* Numbers that rise are what an array was best at, and a tree that is not balanced is worst at. */
static void tree_of_rising_numbers_is_shallow(void **state)
{
    Bed *bed = bed_new(4, 0);
    assert_true(submit(bed, 4, 1000, FALSE));
    for (guint i = 0; i < MANY; i++)
        assert_false(submit(bed, 4, 100, FALSE));
    assert_int_equal(core_order_n(bed->core), MANY);
    assert_true(depth_below(bed->core->order) < 4 * g_bit_storage(MANY));
    bed_free(bed);
}

/* --- what is found --------------------------------------------------------------------------- */

/* Room for so much. */
typedef struct {
    CoreLeast room;
    gboolean for_gangs;
} Ask;

static gboolean fits(const CoreLeast *least, const CoreLeast *room)
{
    return core_size_fits(least->size, room->size) && least->length_usec <= room->length_usec;
}

static gboolean may_fit(const CoreOrderSum *sum, gpointer user_data)
{
    const Ask *ask = user_data;
    guint n;
    const CoreLeast *leasts = ask->for_gangs ? core_leasts_gangs(&sum->leasts, &n)
                                             : core_leasts_singles(&sum->leasts, &n);
    guint i = 0;
    while (i < n && !fits(&leasts[i], &ask->room))
        i++;
    return i < n;
}

static void check_find(Bed *bed, guint from, Ask ask)
{
    guint n = core_order_n(bed->core);
    guint expected = from;
    for (; expected < n; expected++) {
        const CoreShape *shape = &core_order_at(bed->core, expected)->shape;
        CoreLeast least = {shape->start, shape->time_limit_usec};
        if ((shape->guests > 1) == ask.for_gangs && fits(&least, &ask.room))
            break;
    }
    guint at = from;
    const CoreClass *found = core_order_find(bed->core, &at, may_fit, &ask);
    assert_int_equal(at, MIN(expected, n));
    assert_ptr_equal(found, core_order_at(bed->core, at));
}

static void cancel(Bed *bed, guint64 job)
{
    handle(bed, &(BerthCoreEvent){.kind = BERTH_EVENT_JOB_CANCELLED, .guest = {.job = job}});
}

static guint32 pick(GRand *random, guint32 below)
{
    return (guint32)g_rand_int_range(random, 0, (gint32)below);
}

/* Mostly one that asks for little of something only where it asks for much of something else. */
static Kind random_kind(GRand *random)
{
    guint32 vcpus = 1 + pick(random, 8);
    gint64 limit_sec = 1 + pick(random, 999);
    guint64 memory_mib = 1000000 / (vcpus * (guint64)limit_sec) + pick(random, 50);
    return (Kind){vcpus, 1 + MIN(memory_mib, NODE_MIB / 2), limit_sec, 1 + pick(random, 2)};
}

/* With ranks that change, too: the invariants say that the order is one, and each class where it is. */
static void find_gives_what_a_look_at_each_gives(void **state)
{
    for (guint32 seed = 1; seed <= 8; seed++) {
        GRand *random = g_rand_new_with_seed(seed);
        Bed *bed = bed_new(16, seed % 2 == 0 ? 1000 : 0);
        submit(bed, 16, 100000, FALSE);
        for (guint step = 0; step < 400; step++) {
            bed->now_usec += g_rand_int_range(random, 0, 2 * (gint32)SEC);
            if (g_rand_int_range(random, 0, 4) > 0) {
                submit_kind(bed, random_kind(random), FALSE);
            } else if (core_order_n(bed->core) > 0) {
                guint at = pick(random, core_order_n(bed->core));
                cancel(bed, core_order_at(bed->core, at)->head);
            }
            berth_core_assert_invariants(bed->core);
            for (guint i = 0; i < 4; i++)
                check_find(bed, pick(random, 300),
                           (Ask){{{pick(random, 9), pick(random, 2000)}, pick(random, 1000) * SEC},
                                 i % 2 == 0});
        }
        bed_free(bed);
        g_rand_free(random);
        printf("seed %u\n", seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(end_looks_at_few_of_many_that_are_too_large),
        cmocka_unit_test(end_looks_at_few_of_many_that_are_too_long),
        cmocka_unit_test(end_looks_at_few_of_many_that_are_each_too_large_in_another_way),
        cmocka_unit_test(end_looks_at_few_of_many_on_stairs_around_what_is_free),
        cmocka_unit_test(slack_looks_at_few_of_many_that_may_not),
        cmocka_unit_test(tree_of_rising_numbers_is_shallow),
        cmocka_unit_test(find_gives_what_a_look_at_each_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
