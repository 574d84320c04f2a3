/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays with the indices that they are given, and requests that name some of their tasks. */
#include "tests/lib/assert.h"

#include "scheduler/core/core.h"
#include "tests/unit/core_script.h"

typedef struct {
    BerthCore *core;
    BerthCoreEffects *effects;
    guint32 node;
    gint64 now_usec;
} Array;

static void tell(Array *array, const BerthCoreEvent *event)
{
    g_autoptr(GError) error = NULL;
    berth_core_effects_clear(array->effects);
    if (!berth_core_handle(array->core, ++array->now_usec, event, array->effects, &error))
        fail_msg("refused: %s", error->message);
    berth_core_assert_invariants(array->core);
}

static void refuses(Array *array, const BerthCoreEvent *event, BerthErrorCode code, const char *why)
{
    g_autoptr(GError) error = NULL;
    berth_core_effects_clear(array->effects);
    assert_false(berth_core_handle(array->core, ++array->now_usec, event, array->effects, &error));
    assert_berth_error(error, code, why);
    berth_core_assert_invariants(array->core);
}

static int setup(void **state)
{
    Array *array = g_new0(Array, 1);
    array->core = berth_core_new(&core_script_config);
    array->effects = berth_core_effects_new();
    array->node = berth_core_add_node(array->core, "n1");
    *state = array;
    return 0;
}

static int teardown(void **state)
{
    Array *array = *state;
    berth_core_free(array->core);
    berth_core_effects_free(array->effects);
    g_free(array);
    return 0;
}

static void join(Array *array)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_JOINED, .node = array->node};
    event.joined.info.capacity = (BerthResources){8, 10000, 0};
    tell(array, &event);
}

/* Job 1 of TASKS, so many of which run at a time. */
static void submit(Array *array, const char *tasks, guint32 throttle)
{
    g_autoptr(BerthIndexSet) set = berth_index_set_parse(tasks, 1000000, NULL);
    assert_non_null(set);
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    event.submitted = (BerthCoreJob){.id = 1,
                                     .resources = {1, 100, 0},
                                     .array_size = berth_index_set_count(set),
                                     .array_throttle = throttle,
                                     .has_indices = TRUE,
                                     .may_checkpoint = TRUE,
                                     .indices = berth_index_set_range(set, 0),
                                     .n_indices = berth_index_set_n_ranges(set)};
    tell(array, &event);
}

static BerthIndexRange range_of(const char *text)
{
    BerthIndexRange range = {0};
    g_autoptr(GError) error = NULL;
    berth_index_range_parse(text, &range, &error);
    assert_no_error(error);
    return range;
}

static BerthCoreEvent request(BerthEventKind kind, const char *tasks)
{
    BerthCoreEvent event = {.kind = kind, .guest = {.job = 1}};
    if (tasks != NULL)
        event.request.tasks = range_of(tasks);
    return event;
}

/* What the latest event has begun: "2 5". */
static void assert_started(const Array *array, const char *due)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < array->effects->actions->len; i++) {
        const BerthCoreAction *action = &g_array_index(array->effects->actions, BerthCoreAction, i);
        if (action->kind == BERTH_ACTION_START)
            g_string_append_printf(text, "%s%u", text->len > 0 ? " " : "", action->guest.task);
    }
    assert_string_equal(text->str, due);
}

/* The tasks that it says have changed, with those for which they stand: "3-6 9". */
static void assert_changed(const Array *array, const char *due)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < array->effects->changed->len; i++) {
        const BerthGuestId *id = &g_array_index(array->effects->changed, BerthGuestId, i);
        BerthCoreTask task;
        assert_true(berth_core_get_task(array->core, id->job, id->task, &task));
        BerthIndexRange range = berth_index_range_of(task.task, task.rest_last, task.rest_step);
        g_autofree char *one = berth_index_range_format(&range);
        g_string_append_printf(text, "%s%s", text->len > 0 ? " " : "", one);
    }
    assert_string_equal(text->str, due);
}

/* Its guest runs, ends well, and is released. */
static void finish(Array *array, guint32 task)
{
    const BerthGuestId guest = {.job = 1, .task = task, .epoch = 1};
    tell(array,
         &(BerthCoreEvent){.kind = BERTH_EVENT_START_TAKEN, .guest = guest, .node = array->node});
    tell(array,
         &(BerthCoreEvent){.kind = BERTH_EVENT_GUEST_RUNNING, .guest = guest, .node = array->node});
    tell(array,
         &(BerthCoreEvent){.kind = BERTH_EVENT_GUEST_EXITED, .guest = guest, .node = array->node});
    tell(array, &(BerthCoreEvent){
                    .kind = BERTH_EVENT_GUEST_RELEASED, .guest = guest, .node = array->node});
}

/* The guests of TASKS run. */
static void run(Array *array, const char *tasks)
{
    g_autoptr(BerthIndexSet) set = berth_index_set_parse(tasks, 100, NULL);
    guint32 task = 0;
    for (; berth_index_set_next(set, task, &task); task++) {
        const BerthGuestId guest = {.job = 1, .task = task, .epoch = 1};
        tell(array, &(BerthCoreEvent){
                        .kind = BERTH_EVENT_GUEST_RUNNING, .guest = guest, .node = array->node});
    }
}

static gboolean is_known(const Array *array)
{
    BerthCoreJob job;
    return berth_core_get_job(array->core, 1, &job);
}

static void array_runs_the_tasks_that_it_is_given(void **state)
{
    Array *array = *state;
    join(array);
    submit(array, "2-8:3,20", 1);
    assert_started(array, "2");
    BerthCoreTask task;
    assert_true(berth_core_get_task(array->core, 1, 8, &task));
    assert_int_equal(task.state, BERTH_JOB_PENDING);
    assert_false(berth_core_get_task(array->core, 1, 3, &task));
    assert_false(berth_core_get_task(array->core, 1, 0, &task));
    static const guint32 order[] = {2, 5, 8, 20};
    for (guint i = 0; i < 4; i++) {
        finish(array, order[i]);
        g_autofree char *next = i < 3 ? g_strdup_printf("%u", order[i + 1]) : g_strdup("");
        assert_started(array, next);
    }
    tell(array, &(BerthCoreEvent){.kind = BERTH_EVENT_TIMER});
    assert_false(is_known(array));
}

static void array_of_one_index_is_an_array(void **state)
{
    Array *array = *state;
    join(array);
    submit(array, "7", 0);
    assert_started(array, "7");
    finish(array, 7);
    tell(array, &(BerthCoreEvent){.kind = BERTH_EVENT_TIMER});
    assert_false(is_known(array));
}

static void array_without_tasks_is_refused(void **state)
{
    Array *array = *state;
    static const BerthIndexRange bad[] = {{5, 1, 1}, {1, 5, 0}};
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    event.submitted = (BerthCoreJob){.id = 1, .resources = {1, 100, 0}, .has_indices = TRUE};
    refuses(array, &event, BERTH_ERROR_INVALID_ARGUMENT, "at least one task");
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        event.submitted.indices = &bad[i];
        event.submitted.n_indices = 1;
        refuses(array, &event, BERTH_ERROR_INVALID_ARGUMENT, "ranges that rise");
    }
    assert_false(is_known(array));
}

static void cancel_of_a_range_ends_those_tasks_alone(void **state)
{
    Array *array = *state;
    submit(array, "0-9", 1);
    BerthCoreEvent cancel = request(BERTH_EVENT_JOB_CANCELLED, "3-6");
    tell(array, &cancel);
    assert_changed(array, "3-6");
    refuses(array, &cancel, BERTH_ERROR_NOT_FOUND, "job 1 has no unfinished task 3-6");
    cancel = request(BERTH_EVENT_JOB_CANCELLED, "2-8:2");
    tell(array, &cancel);
    assert_changed(array, "2 8");
    cancel = request(BERTH_EVENT_JOB_CANCELLED, "30");
    refuses(array, &cancel, BERTH_ERROR_NOT_FOUND, "job 1 has no unfinished task 30");
    join(array);
    static const guint32 order[] = {0, 1, 7, 9};
    for (guint i = 0; i < 4; i++) {
        g_autofree char *due = g_strdup_printf("%u", order[i]);
        assert_started(array, due);
        finish(array, order[i]);
    }
    tell(array, &(BerthCoreEvent){.kind = BERTH_EVENT_TIMER});
    assert_false(is_known(array));
}

/* However far apart they are, and whatever has started between them. */
static void cancel_of_a_range_leaves_few_records(void **state)
{
    Array *array = *state;
    submit(array, "0-9999", 1);
    join(array);
    assert_started(array, "0");
    BerthCoreEvent cancel = request(BERTH_EVENT_JOB_CANCELLED, "0-2997:3");
    tell(array, &cancel);
    assert_changed(array, "0 3-2997:3");
    cancel = request(BERTH_EVENT_JOB_CANCELLED, "5-9999:2");
    tell(array, &cancel);
    cancel = request(BERTH_EVENT_JOB_CANCELLED, NULL);
    tell(array, &cancel);
    assert_true(array->effects->changed->len < 1010);
}

static void cancel_of_a_range_stops_what_runs_of_it(void **state)
{
    Array *array = *state;
    join(array);
    submit(array, "0-99", 3);
    assert_started(array, "0 1 2");
    BerthCoreEvent cancel = request(BERTH_EVENT_JOB_CANCELLED, "1-50");
    tell(array, &cancel);
    assert_changed(array, "1 2 3-50");
    BerthCoreTask task;
    assert_true(berth_core_get_task(array->core, 1, 0, &task));
    assert_int_equal(task.stop_reason, BERTH_REASON_NONE);
    assert_true(berth_core_get_task(array->core, 1, 1, &task));
    assert_int_equal(task.stop_reason, BERTH_REASON_CANCELLED_BY_USER);
    finish(array, 1);
    assert_started(array, "51");
}

static void cancel_of_the_last_range_ends_the_job(void **state)
{
    Array *array = *state;
    submit(array, "0-9", 0);
    BerthCoreEvent cancel = request(BERTH_EVENT_JOB_CANCELLED, "0-4");
    tell(array, &cancel);
    cancel = request(BERTH_EVENT_JOB_CANCELLED, "5-999");
    tell(array, &cancel);
    assert_changed(array, "5-9");
    tell(array, &(BerthCoreEvent){.kind = BERTH_EVENT_TIMER});
    assert_false(is_known(array));
}

static BerthCoreEvent request_of_many(BerthEventKind kind, const BerthIndexSet *tasks)
{
    BerthCoreEvent event = {.kind = kind, .guest = {.job = 1}};
    event.request.tasks = *berth_index_set_range(tasks, 0);
    event.request.others = berth_index_set_range(tasks, 1);
    event.request.n_others = berth_index_set_n_ranges(tasks) - 1;
    return event;
}

static void cancel_of_several_ranges_is_one_decision(void **state)
{
    Array *array = *state;
    g_autoptr(BerthIndexSet) some = berth_index_set_parse("1,5-9,20-40:2,98", 100, NULL);
    g_autoptr(BerthIndexSet) ended = berth_index_set_parse("5,20,200-300", 200, NULL);
    join(array);
    submit(array, "0-99", 3);
    assert_started(array, "0 1 2");
    BerthCoreEvent event = request_of_many(BERTH_EVENT_JOB_CANCELLED, some);
    tell(array, &event);
    assert_changed(array, "1 5-9 20-40:2 98");
    finish(array, 1);
    assert_started(array, "3");
    event = request_of_many(BERTH_EVENT_JOB_CANCELLED, ended);
    refuses(array, &event, BERTH_ERROR_NOT_FOUND, "no unfinished task 5, nor any of the others");
}

/* The first, the last and one amid them are found among a thousand, and none beside them. */
static void freeze_of_many_ranges_is_of_those_that_they_have(void **state)
{
    Array *array = *state;
    g_autoptr(BerthIndexSet) some = berth_index_set_new();
    for (guint32 i = 0; i < BERTH_RANGES_MAX; i++) /* at distances that differ */
        berth_index_set_add_one(some, 3 + i * (i + 3) / 2);
    guint32 last = berth_index_set_last(some);
    g_autofree char *tasks = g_strdup_printf("2-6,12,%u-%u", last - 1, last);
    g_autofree char *started = g_strdup_printf("2 3 4 5 6 12 %u %u", last - 1, last);
    g_autofree char *changed = g_strdup_printf("3 5 12 %u", last);
    join(array);
    submit(array, tasks, 0);
    assert_started(array, started);
    run(array, tasks);
    BerthCoreEvent event = request_of_many(BERTH_EVENT_JOB_FREEZE_WANTED, some);
    tell(array, &event);
    assert_changed(array, changed);
}

static void freeze_of_a_range_leaves_the_others_running(void **state)
{
    Array *array = *state;
    join(array);
    submit(array, "1-3", 0);
    assert_started(array, "1 2 3");
    run(array, "1-3");
    BerthCoreEvent freeze = request(BERTH_EVENT_JOB_FREEZE_WANTED, "2-3");
    tell(array, &freeze);
    assert_changed(array, "2 3");
    BerthCoreTask task;
    assert_true(berth_core_get_task(array->core, 1, 1, &task));
    assert_int_equal(task.freeze_reason, BERTH_REASON_NONE);
    BerthCoreEvent thaw = request(BERTH_EVENT_JOB_THAW_WANTED, "1");
    refuses(array, &thaw, BERTH_ERROR_FAILED_PRECONDITION, "not frozen");
    thaw = request(BERTH_EVENT_JOB_THAW_WANTED, "3");
    tell(array, &thaw);
    assert_true(berth_core_get_task(array->core, 1, 2, &task));
    assert_int_equal(task.freeze_reason, BERTH_REASON_FROZEN_BY_USER);
    BerthCoreEvent migrate = request(BERTH_EVENT_JOB_MIGRATE_WANTED, "1-3");
    refuses(array, &migrate, BERTH_ERROR_FAILED_PRECONDITION, "name one, as JOB[INDEX]");
}

/* The store has those that run; those that have ended are left out. */
static void restored_array_goes_on_with_what_never_started(void **state)
{
    Array *array = *state;
    static const BerthIndexRange fresh[] = {{5, 5, 1}, {9, 12, 3}};
    const BerthCoreJob job = {.id = 1,
                              .resources = {1, 100, 0},
                              .array_size = 13,
                              .array_throttle = 2,
                              .has_indices = TRUE,
                              .indices = fresh,
                              .n_indices = 2};
    const BerthCoreTask runs = {.job = 1,
                                .task = 7,
                                .state = BERTH_JOB_RUNNING,
                                .phase = BERTH_GUEST_STARTING,
                                .node = array->node,
                                .epoch = 1};
    berth_core_restore_job(array->core, &job, &runs, 1);
    berth_core_resume(array->core, ++array->now_usec, array->effects);
    join(array);
    assert_started(array, "5");
    tell(array, &(BerthCoreEvent){.kind = BERTH_EVENT_GUEST_RELEASED,
                                  .guest = {.job = 1, .task = 7, .epoch = 1},
                                  .node = array->node});
    BerthCoreTask task;
    assert_false(berth_core_get_task(array->core, 1, 6, &task));
    assert_false(berth_core_get_task(array->core, 1, 10, &task));
    assert_true(berth_core_get_task(array->core, 1, 12, &task));
}

/* What comes after all of it does not start, as one has failed that is not there any more. */
static void restored_array_knows_that_a_task_has_failed(void **state)
{
    Array *array = *state;
    static const BerthIndexRange fresh = {5, 5, 1};
    const BerthCoreJob job = {.id = 1,
                              .resources = {1, 100, 0},
                              .array_size = 6,
                              .has_indices = TRUE,
                              .has_failed = TRUE,
                              .indices = &fresh,
                              .n_indices = 1};
    const BerthCoreDependency ok = {.kind = BERTH_AFTER_OK, .job = 1};
    BerthCoreEvent after = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    after.submitted =
        (BerthCoreJob){.id = 2, .resources = {1, 1, 0}, .dependencies = &ok, .n_dependencies = 1};
    berth_core_restore_job(array->core, &job, NULL, 0);
    berth_core_resume(array->core, ++array->now_usec, array->effects);
    tell(array, &after);
    join(array);
    assert_started(array, "5");
    const BerthGuestId guest = {.job = 1, .task = 5, .epoch = 1};
    tell(array,
         &(BerthCoreEvent){.kind = BERTH_EVENT_GUEST_RUNNING, .guest = guest, .node = array->node});
    tell(array,
         &(BerthCoreEvent){.kind = BERTH_EVENT_GUEST_EXITED, .guest = guest, .node = array->node});
    tell(array, &(BerthCoreEvent){
                    .kind = BERTH_EVENT_GUEST_RELEASED, .guest = guest, .node = array->node});
    BerthCoreTask task;
    assert_true(berth_core_get_task(array->core, 2, 0, &task));
    assert_int_equal(task.reason, BERTH_REASON_DEPENDENCY_NEVER);
    assert_int_equal(task.never_after, 1);
    assert_false(task.never_by_task);
}

static void ask(Array *array, BerthEventKind kind, const char *tasks, gboolean by_operator)
{
    BerthCoreEvent event = request(kind, tasks);
    event.request.by_operator = by_operator;
    tell(array, &event);
}

static void hold_of_a_range_keeps_those_tasks_from_starting(void **state)
{
    Array *array = *state;
    submit(array, "0-9", 1);
    ask(array, BERTH_EVENT_JOB_HELD, "0-3", FALSE);
    join(array);
    assert_started(array, "4");
    finish(array, 4);
    assert_started(array, "5");
    ask(array, BERTH_EVENT_JOB_RELEASED, "2", FALSE);
    assert_started(array, "");
    assert_int_equal(berth_core_pending_reason(array->core, 1, 3), BERTH_REASON_HELD_BY_USER);
    finish(array, 5);
    assert_started(array, "2");
    const BerthCoreEvent running = request(BERTH_EVENT_JOB_HELD, "2");
    refuses(array, &running, BERTH_ERROR_FAILED_PRECONDITION, "has no waiting task");
}

static void hold_of_several_ranges_is_one_decision(void **state)
{
    Array *array = *state;
    static const BerthIndexRange others[] = {{1, 2, 1}, {4, 8, 2}};
    submit(array, "0-9", 1);
    BerthCoreEvent event = request(BERTH_EVENT_JOB_HELD, "0");
    event.request.others = others;
    event.request.n_others = 2;
    tell(array, &event);
    join(array);
    assert_started(array, "3");
    finish(array, 3);
    assert_started(array, "5");
    event.kind = BERTH_EVENT_JOB_RELEASED;
    event.request.n_others = 1;
    tell(array, &event);
    finish(array, 5);
    assert_started(array, "0");
    event.kind = BERTH_EVENT_JOB_HELD;
    event.request.tasks = range_of("3");
    event.request.others = &(const BerthIndexRange){20, 30, 1};
    refuses(array, &event, BERTH_ERROR_NOT_FOUND, "no unfinished task 3, nor any of the others");
}

/* Those that would be held in too many ranges are none of them held. */
static void hold_of_too_many_ranges_holds_none(void **state)
{
    Array *array = *state;
    BerthIndexRange others[BERTH_RANGES_MAX];
    for (guint32 i = 0; i < BERTH_RANGES_MAX; i++) /* at distances that differ */
        others[i] = (BerthIndexRange){3 + i * (i + 3) / 2, 3 + i * (i + 3) / 2, 1};
    submit(array, "0-999999", 1);
    BerthCoreEvent event = request(BERTH_EVENT_JOB_HELD, "0");
    event.request.others = others;
    event.request.n_others = BERTH_RANGES_MAX;
    refuses(array, &event, BERTH_ERROR_RESOURCE_EXHAUSTED, "in more than 1000 ranges");
    join(array);
    assert_started(array, "0");
}

/* One that runs, and has to wait again, does so held. */
static void release_of_a_range_leaves_those_held_that_ran(void **state)
{
    Array *array = *state;
    const BerthGuestId guest = {.job = 1, .task = 0, .epoch = 1};
    join(array);
    submit(array, "0-9", 1);
    assert_started(array, "0");
    ask(array, BERTH_EVENT_JOB_HELD, NULL, FALSE);
    ask(array, BERTH_EVENT_JOB_RELEASED, "5", FALSE);
    tell(array, &(BerthCoreEvent){.kind = BERTH_EVENT_GUEST_GONE,
                                  .guest = guest,
                                  .node = array->node,
                                  .gone.reason = BERTH_REASON_GUEST_VANISHED});
    tell(array, &(BerthCoreEvent){
                    .kind = BERTH_EVENT_GUEST_RELEASED, .guest = guest, .node = array->node});
    assert_started(array, "5");
    assert_int_equal(berth_core_pending_reason(array->core, 1, 0), BERTH_REASON_HELD_BY_USER);
}

/* But not those that were named, too. */
static void release_of_a_range_is_of_those_that_run_too(void **state)
{
    Array *array = *state;
    join(array);
    submit(array, "0-9", 1);
    ask(array, BERTH_EVENT_JOB_HELD, NULL, FALSE);
    ask(array, BERTH_EVENT_JOB_RELEASED, "0-2", FALSE);
    assert_int_equal(berth_core_pending_reason(array->core, 1, 3), BERTH_REASON_HELD_BY_USER);
    tell(array, &(BerthCoreEvent){.kind = BERTH_EVENT_GUEST_GONE,
                                  .guest = {.job = 1, .task = 0, .epoch = 1},
                                  .node = array->node,
                                  .gone.reason = BERTH_REASON_GUEST_VANISHED});
    tell(array, &(BerthCoreEvent){.kind = BERTH_EVENT_GUEST_RELEASED,
                                  .guest = {.job = 1, .task = 0, .epoch = 1},
                                  .node = array->node});
    assert_int_not_equal(berth_core_pending_reason(array->core, 1, 0), BERTH_REASON_HELD_BY_USER);
}

/* As long as there is any that nobody holds. */
static void array_waits_for_what_its_next_task_waits_for(void **state)
{
    Array *array = *state;
    submit(array, "0-9", 1);
    ask(array, BERTH_EVENT_JOB_HELD, "0-3", FALSE);
    join(array);
    assert_started(array, "4");
    assert_int_equal(berth_core_array_reason(array->core, 1), BERTH_REASON_ARRAY_THROTTLE);
    ask(array, BERTH_EVENT_JOB_HELD, "5-9", FALSE);
    assert_int_equal(berth_core_array_reason(array->core, 1), BERTH_REASON_HELD_BY_USER);
}

/* Of a job that is held as a whole the others stay held. */
static void release_of_a_range_leaves_the_others_held(void **state)
{
    Array *array = *state;
    submit(array, "0-9", 1);
    ask(array, BERTH_EVENT_JOB_HELD, NULL, FALSE);
    ask(array, BERTH_EVENT_JOB_HELD, "9", TRUE);
    join(array);
    assert_started(array, "");
    const BerthCoreEvent operators = request(BERTH_EVENT_JOB_RELEASED, "9");
    refuses(array, &operators, BERTH_ERROR_FAILED_PRECONDITION, "is held by an operator");
    ask(array, BERTH_EVENT_JOB_RELEASED, "8-9", FALSE);
    assert_started(array, "8");
    assert_int_equal(berth_core_pending_reason(array->core, 1, 9), BERTH_REASON_HELD_BY_OPERATOR);
    refuses(array, &operators, BERTH_ERROR_FAILED_PRECONDITION, "is held by an operator");
    finish(array, 8);
    assert_started(array, "");
    ask(array, BERTH_EVENT_JOB_RELEASED, NULL, FALSE); /* all but what the operator holds */
    assert_started(array, "0");
    ask(array, BERTH_EVENT_JOB_CANCELLED, "1-7", FALSE);
    const BerthCoreEvent all = request(BERTH_EVENT_JOB_RELEASED, NULL);
    refuses(array, &all, BERTH_ERROR_FAILED_PRECONDITION, "is held by an operator");
    ask(array, BERTH_EVENT_JOB_RELEASED, NULL, TRUE);
    finish(array, 0);
    assert_started(array, "9");
}

static void held_tasks_that_end_leave_no_more_ranges(void **state)
{
    Array *array = *state;
    BerthCoreJob job;
    submit(array, "0-99", 1);
    ask(array, BERTH_EVENT_JOB_HELD, "0-9:3", FALSE);
    ask(array, BERTH_EVENT_JOB_CANCELLED, "6", FALSE);
    assert_true(berth_core_get_job(array->core, 1, &job));
    assert_int_equal(job.n_held_by_user, 1);
    ask(array, BERTH_EVENT_JOB_CANCELLED, "9", FALSE);
    assert_true(berth_core_get_job(array->core, 1, &job));
    assert_int_equal(job.n_held_by_user, 1);
    assert_int_equal(job.tasks_held_by_user[0].last, 6);
}

/* Also of one in which tasks have ended here and there: its record does not tell these apart. */
static void release_of_a_range_needs_no_more_ranges(void **state)
{
    Array *array = *state;
    BerthCoreJob job;
    submit(array, "0-8999", 1);
    ask(array, BERTH_EVENT_JOB_CANCELLED, "0-8997:3", FALSE);
    ask(array, BERTH_EVENT_JOB_HELD, NULL, FALSE);
    ask(array, BERTH_EVENT_JOB_RELEASED, "4000-4999", FALSE);
    ask(array, BERTH_EVENT_JOB_CANCELLED, "6002-8000:6", FALSE);
    assert_true(berth_core_get_job(array->core, 1, &job));
    assert_int_equal(job.n_held_by_user, 2);
    join(array);
    assert_started(array, "4000");
    ask(array, BERTH_EVENT_JOB_RELEASED, "7000", FALSE);
    ask(array, BERTH_EVENT_JOB_RELEASED, "5000-8999", FALSE);
    assert_true(berth_core_get_job(array->core, 1, &job));
    assert_int_equal(job.n_held_by_user, 1);
    assert_int_equal(job.tasks_held_by_user[0].last, 3999);
}

/* What is named may be far more than there is. */
static void release_costs_what_the_array_has(void **state)
{
    Array *array = *state;
    submit(array, "0,999999999", 1);
    ask(array, BERTH_EVENT_JOB_HELD, NULL, FALSE);
    ask(array, BERTH_EVENT_JOB_RELEASED, "0-999999999:3", FALSE);
    join(array);
    assert_started(array, "0");
}

static void release_of_an_array_in_steps_costs_what_it_has(void **state)
{
    Array *array = *state;
    submit(array, "0-999998000:1000,1", 1);
    ask(array, BERTH_EVENT_JOB_HELD, NULL, FALSE);
    ask(array, BERTH_EVENT_JOB_RELEASED, "1", FALSE);
    ask(array, BERTH_EVENT_JOB_RELEASED, "0-999999998:2", FALSE);
    ask(array, BERTH_EVENT_JOB_HELD, "0-999999998:2", FALSE);
    join(array);
    assert_started(array, "1");
}

static void release_in_steps_of_an_array_in_steps_needs_no_more_ranges(void **state)
{
    Array *array = *state;
    BerthCoreJob job;
    submit(array, "0-9996:4", 1);
    ask(array, BERTH_EVENT_JOB_HELD, "0-5996:4", TRUE);
    ask(array, BERTH_EVENT_JOB_HELD, NULL, FALSE);
    ask(array, BERTH_EVENT_JOB_CANCELLED, "48-9600:12", FALSE);
    ask(array, BERTH_EVENT_JOB_RELEASED, "6000-9996:8", FALSE);
    join(array);
    assert_started(array, "6008");
    assert_true(berth_core_get_job(array->core, 1, &job));
    assert_int_equal(job.n_held_by_operator, 1);
    assert_int_equal(job.n_held_by_user, 1);
}

/* Of a list that has no step of its own: those that there are. */
static void release_in_steps_of_a_list_is_of_those_that_there_are(void **state)
{
    Array *array = *state;
    submit(array, "0-9996:4,10001", 1);
    ask(array, BERTH_EVENT_JOB_HELD, NULL, FALSE);
    ask(array, BERTH_EVENT_JOB_RELEASED, "0-9996:8", FALSE);
    join(array);
    assert_started(array, "0");
    finish(array, 0);
    assert_started(array, "8");
}

static void held_task_that_is_cancelled_is_held_no_more(void **state)
{
    Array *array = *state;
    BerthCoreJob job;
    submit(array, "0-9", 1);
    ask(array, BERTH_EVENT_JOB_HELD, "3-4", FALSE);
    ask(array, BERTH_EVENT_JOB_CANCELLED, "4-6", FALSE);
    assert_true(berth_core_get_job(array->core, 1, &job));
    assert_int_equal(job.n_held_by_user, 1);
    assert_int_equal(job.tasks_held_by_user[0].first, 3);
    assert_int_equal(job.tasks_held_by_user[0].last, 3);
    ask(array, BERTH_EVENT_JOB_CANCELLED, "3", FALSE);
    assert_true(berth_core_get_job(array->core, 1, &job));
    assert_int_equal(job.n_held_by_user, 0);
}

/* A record of them stays small. */
static void held_tasks_are_in_few_ranges(void **state)
{
    Array *array = *state;
    g_autoptr(GError) error = NULL;
    guint32 index = 1;
    submit(array, "0-999999", 1);
    for (guint n = 0; n < 4000 && error == NULL; n++) {
        BerthCoreEvent event = request(BERTH_EVENT_JOB_HELD, NULL);
        index = (guint32)((guint64)index * 48271 % 999983);
        event.request.tasks = (BerthIndexRange){index, index, 1};
        berth_core_effects_clear(array->effects);
        berth_core_handle(array->core, ++array->now_usec, &event, array->effects, &error);
    }
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "more than 1000 ranges");
    berth_core_assert_invariants(array->core);
    join(array);
    assert_started(array, "0");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(array_runs_the_tasks_that_it_is_given),
        TEST(array_of_one_index_is_an_array),
        TEST(array_without_tasks_is_refused),
        TEST(cancel_of_a_range_ends_those_tasks_alone),
        TEST(cancel_of_a_range_leaves_few_records),
        TEST(cancel_of_a_range_stops_what_runs_of_it),
        TEST(cancel_of_the_last_range_ends_the_job),
        TEST(cancel_of_several_ranges_is_one_decision),
        TEST(freeze_of_many_ranges_is_of_those_that_they_have),
        TEST(freeze_of_a_range_leaves_the_others_running),
        TEST(hold_of_a_range_keeps_those_tasks_from_starting),
        TEST(hold_of_several_ranges_is_one_decision),
        TEST(hold_of_too_many_ranges_holds_none),
        TEST(release_of_a_range_leaves_the_others_held),
        TEST(release_of_a_range_needs_no_more_ranges),
        TEST(release_costs_what_the_array_has),
        TEST(release_of_an_array_in_steps_costs_what_it_has),
        TEST(release_in_steps_of_an_array_in_steps_needs_no_more_ranges),
        TEST(release_in_steps_of_a_list_is_of_those_that_there_are),
        TEST(held_tasks_that_end_leave_no_more_ranges),
        TEST(release_of_a_range_leaves_those_held_that_ran),
        TEST(release_of_a_range_is_of_those_that_run_too),
        TEST(array_waits_for_what_its_next_task_waits_for),
        TEST(held_task_that_is_cancelled_is_held_no_more),
        TEST(held_tasks_are_in_few_ranges),
        TEST(restored_array_goes_on_with_what_never_started),
        TEST(restored_array_knows_that_a_task_has_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
