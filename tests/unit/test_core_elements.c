/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that come after others element by element, of which many elements, far apart, can never start. */
#include "tests/lib/assert.h"

#include "scheduler/core/core.h"
#include "tests/unit/core_script.h"

/* Tasks of each array, and about so many ranges of them that have failed. */
#define N_TASKS  1000000u
#define N_RANGES 20000u

typedef struct {
    BerthCore *core;
    BerthCoreEffects *effects;
    gint64 now_usec;
    BerthIndexSet *failed;
    GArray *completed; /* BerthTaskRange of job 1: the others */
} Elements;

static void tell(Elements *elements, const BerthCoreEvent *event)
{
    g_autoptr(GError) error = NULL;
    berth_core_effects_clear(elements->effects);
    if (!berth_core_handle(elements->core, ++elements->now_usec, event, elements->effects, &error))
        fail_msg("refused: %s", error->message);
}

/* What has ended is forgotten, before all others are looked at: of each that has, all that have would be gone through. */
static void go_on(Elements *elements)
{
    tell(elements, &(BerthCoreEvent){.kind = BERTH_EVENT_TIMER});
    berth_core_assert_invariants(elements->core);
}

/* At distances that differ, so that few of them are a range. */
static void fail_some(Elements *elements)
{
    GRand *rand = g_rand_new_with_seed(11);
    const gint32 mean = N_TASKS / N_RANGES;
    guint32 from = 0;
    for (guint32 i = 0; i < N_TASKS; i += (guint32)g_rand_int_range(rand, 1, 2 * mean)) {
        if (i > from) {
            BerthTaskRange good = {1, {from, i - 1, 1}};
            g_array_append_val(elements->completed, good);
        }
        berth_index_set_add_one(elements->failed, i);
        from = i + 1;
    }
    BerthTaskRange rest = {1, {from, N_TASKS - 1, 1}};
    if (from < N_TASKS)
        g_array_append_val(elements->completed, rest);
    g_rand_free(rand);
}

static int setup(void **state)
{
    Elements *elements = g_new0(Elements, 1);
    elements->core = berth_core_new(&core_script_config);
    elements->effects = berth_core_effects_new();
    elements->failed = berth_index_set_new();
    elements->completed = g_array_new(FALSE, FALSE, sizeof(BerthTaskRange));
    fail_some(elements);
    *state = elements;
    return 0;
}

static int teardown(void **state)
{
    Elements *elements = *state;
    berth_core_free(elements->core);
    berth_core_effects_free(elements->effects);
    berth_index_set_free(elements->failed);
    g_array_unref(elements->completed);
    g_free(elements);
    return 0;
}

static void join(Elements *elements)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_JOINED,
                            .node = berth_core_add_node(elements->core, "n1")};
    event.joined.info.capacity = (BerthResources){1, 1000, 0};
    tell(elements, &event);
}

/* The array NUMBER of TASKS (NULL: of all), which comes after OTHERS. */
static void submit(Elements *elements, guint64 number, const BerthIndexSet *tasks,
                   const BerthCoreDependency *others, gsize n_others)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    event.submitted = (BerthCoreJob){
        .id = number,
        .resources = {1, 100, 0},
        .array_size = tasks != NULL ? berth_index_set_count(tasks) : N_TASKS,
        .has_indices = tasks != NULL,
        .indices = tasks != NULL ? berth_index_set_range(tasks, 0) : NULL,
        .n_indices = tasks != NULL ? berth_index_set_n_ranges(tasks) : 0,
        .dependencies = others,
        .n_dependencies = n_others,
        .completed = (const BerthTaskRange *)(const void *)elements->completed->data,
        .n_completed = elements->completed->len,
    };
    tell(elements, &event);
}

static void cancel(Elements *elements, guint64 number)
{
    tell(elements, &(BerthCoreEvent){.kind = BERTH_EVENT_JOB_CANCELLED, .guest = {.job = number}});
}

/* The latest event has ended those of TASKS of the job NUMBER, each once and all as ones that never can start, for what they come
 * after: of the job AFTER those of their own indices. */
static void assert_ended(const Elements *elements, guint64 number, const BerthIndexSet *tasks,
                         guint64 after)
{
    g_autoptr(BerthIndexSet) ended = berth_index_set_new();
    guint32 count = 0;
    for (guint i = 0; i < elements->effects->changed->len; i++) {
        const BerthGuestId *id = &g_array_index(elements->effects->changed, BerthGuestId, i);
        BerthCoreTask task;
        if (id->job != number)
            continue;
        assert_true(berth_core_get_task(elements->core, number, id->task, &task));
        if (task.state == BERTH_JOB_PENDING)
            continue; /* the job itself is told of so */
        assert_int_equal(task.state, BERTH_JOB_CANCELLED);
        assert_int_equal(task.reason, BERTH_REASON_DEPENDENCY_NEVER);
        assert_int_equal(task.never_after, after);
        assert_true(task.never_by_task);
        BerthIndexRange range = berth_index_range_of(task.task, task.rest_last, task.rest_step);
        berth_index_set_add(ended, range);
        count += berth_index_range_count(&range);
    }
    berth_index_set_remove_all(ended, tasks);
    assert_int_equal(berth_index_set_count(ended), 0);
    assert_int_equal(count, berth_index_set_count(tasks));
}

static gboolean is_known(const Elements *elements, guint64 number)
{
    BerthCoreJob job;
    return berth_core_get_job(elements->core, number, &job);
}

static const BerthCoreDependency after_first = {.kind = BERTH_AFTER_CORR, .job = 1};

static void all_that_never_start_end_with_the_submission(void **state)
{
    Elements *elements = *state;
    assert_true(berth_index_set_n_ranges(elements->failed) > N_RANGES * 9 / 10);
    submit(elements, 2, NULL, &after_first, 1);
    assert_ended(elements, 2, elements->failed, 1);
    berth_core_assert_invariants(elements->core);
    join(elements);
    assert_int_equal(elements->effects->actions->len, 1);
    const BerthCoreAction *action = &g_array_index(elements->effects->actions, BerthCoreAction, 0);
    assert_int_equal(action->kind, BERTH_ACTION_START);
    assert_false(berth_index_set_contains(elements->failed, action->guest.task));
    assert_true(berth_index_set_contains(elements->failed, action->guest.task - 1));
}

static void array_none_of_which_ever_starts_ends(void **state)
{
    Elements *elements = *state;
    submit(elements, 2, elements->failed, &after_first, 1);
    assert_ended(elements, 2, elements->failed, 1);
    join(elements);
    assert_int_equal(elements->effects->actions->len, 0);
    go_on(elements);
    assert_false(is_known(elements, 2));
}

/* Those of either; those that come after both are ended once. */
static void what_comes_after_two_arrays_ends_with_either(void **state)
{
    Elements *elements = *state;
    const BerthCoreDependency both[] = {{.kind = BERTH_AFTER_CORR, .job = 7}, after_first};
    g_autoptr(BerthIndexSet) all = berth_index_set_new();
    berth_index_set_add(all, (BerthIndexRange){0, N_TASKS - 1, 1});
    submit(elements, 2, NULL, both, G_N_ELEMENTS(both)); /* of job 7 none has completed */
    assert_ended(elements, 2, all, 7);
    go_on(elements);
    assert_false(is_known(elements, 2));
}

/* One event for all that come after each other. */
static void what_comes_after_what_is_cancelled_ends_with_it(void **state)
{
    Elements *elements = *state;
    const BerthCoreDependency after_second = {.kind = BERTH_AFTER_CORR, .job = 2};
    const BerthCoreDependency after_third = {.kind = BERTH_AFTER_CORR, .job = 3};
    submit(elements, 2, elements->failed, NULL, 0);
    submit(elements, 3, NULL, &after_second, 1);
    submit(elements, 4, elements->failed, &after_second, 1);
    submit(elements, 5, NULL, &after_third, 1);
    go_on(elements);
    cancel(elements, 2);
    for (guint64 number = 3; number <= 5; number++)
        assert_ended(elements, number, elements->failed, number == 5 ? 3 : 2);
    go_on(elements);
    for (guint64 number = 2; number <= 5; number++)
        assert_false(is_known(elements, number));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(all_that_never_start_end_with_the_submission),
        TEST(array_none_of_which_ever_starts_ends),
        TEST(what_comes_after_two_arrays_ends_with_either),
        TEST(what_comes_after_what_is_cancelled_ends_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
