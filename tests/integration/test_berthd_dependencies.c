/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that come after others, through a real berthd: while those run, after they have ended, and when it is killed between. */
#include "tests/lib/berthd_test.h"

#include "scheduler/daemon/pb.h"

#define KIND(name)  BERTH__DEPENDENCY__KIND__##name
#define STATE(name) BERTH__JOB_STATE__##name

static guint64 submit_after(BerthdTest *test, Berth__Dependency__Kind kind, guint64 job)
{
    Berth__Dependency dependency = BERTH__DEPENDENCY__INIT;
    Berth__Dependency *dependencies[] = {&dependency};
    Berth__JobSpec spec = berthd_fixture_spec();
    dependency.kind = kind;
    dependency.job = job;
    spec.dependencies = dependencies;
    spec.n_dependencies = 1;
    return berthd_fixture_submit(test->berthd, &spec);
}

static guint64 submit_running(BerthdTest *test)
{
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    return job;
}

static void assert_state(BerthdTest *test, guint64 job, Berth__JobState state, Berth__Reason reason)
{
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_int_equal(record->state, state);
    assert_int_equal(record->tasks[0]->reason, reason);
}

/* JOB says which one it came after in vain. */
static void assert_names(BerthdTest *test, guint64 job, guint64 other)
{
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    g_autofree char *name = g_strdup_printf("job %" G_GUINT64_FORMAT ", which", other);
    assert_non_null(strstr(record->tasks[0]->reason_text, name));
}

static gboolean waits_for_another(BerthdTest *test, guint64 job)
{
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    return record->state == STATE(PENDING) &&
           record->tasks[0]->reason == BERTH__REASON__REASON_DEPENDENCY;
}

static void job_waits_until_the_other_has_ended_well(void **state)
{
    BerthdTest *test = *state;
    guint64 first = submit_running(test);
    guint64 second = submit_after(test, KIND(AFTER_OK), first);
    guint64 on_failure = submit_after(test, KIND(AFTER_NOT_OK), first);
    assert_state(test, second, STATE(PENDING), BERTH__REASON__REASON_DEPENDENCY);
    g_autoptr(Berth__Job) waits = berthd_fixture_get(test->berthd, second);
    assert_int_equal(waits->spec->dependencies[0]->job, first);
    assert_int_equal(waits->spec->dependencies[0]->state, STATE(RUNNING));
    test->plan = (FakePlan){.status = 0};
    assert_true(fake_agent_end_task(test->agent, first, 0, 0));
    berthd_fixture_wait_state(test->berthd, second, STATE(COMPLETED));
    berthd_fixture_wait_state(test->berthd, on_failure, STATE(CANCELLED));
    assert_state(test, on_failure, STATE(CANCELLED), BERTH__REASON__REASON_DEPENDENCY_NEVER);
    g_autoptr(Berth__Job) after = berthd_fixture_get(test->berthd, second);
    assert_int_equal(after->spec->dependencies[0]->state, STATE(COMPLETED));
}

/* And so do those that come after it in turn. */
static void job_whose_other_fails_is_cancelled(void **state)
{
    BerthdTest *test = *state;
    guint64 first = submit_running(test);
    guint64 second = submit_after(test, KIND(AFTER_OK), first);
    guint64 third = submit_after(test, KIND(AFTER_OK), second);
    guint64 cleanup = submit_after(test, KIND(AFTER_ANY), second);
    test->plan = (FakePlan){.status = 0};
    assert_true(fake_agent_end_task(test->agent, first, 0, 3));
    berthd_fixture_wait_state(test->berthd, first, STATE(FAILED));
    berthd_fixture_wait_state(test->berthd, cleanup, STATE(COMPLETED));
    assert_state(test, second, STATE(CANCELLED), BERTH__REASON__REASON_DEPENDENCY_NEVER);
    assert_state(test, third, STATE(CANCELLED), BERTH__REASON__REASON_DEPENDENCY_NEVER);
    assert_names(test, third, second);
}

static void job_that_has_ended_long_ago_counts_as_it_ended(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.status = 0};
    guint64 good = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, good, STATE(COMPLETED));
    test->plan = (FakePlan){.status = 1};
    guint64 bad = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, bad, STATE(FAILED));
    test->plan = (FakePlan){.status = 0};
    guint64 after_good = submit_after(test, KIND(AFTER_OK), good);
    guint64 after_bad = submit_after(test, KIND(AFTER_OK), bad);
    guint64 on_failure = submit_after(test, KIND(AFTER_NOT_OK), bad);
    berthd_fixture_wait_state(test->berthd, after_good, STATE(COMPLETED));
    berthd_fixture_wait_state(test->berthd, on_failure, STATE(COMPLETED));
    berthd_fixture_wait_state(test->berthd, after_bad, STATE(CANCELLED));
}

/* It ends between when it is looked at and when that is decided on, in some of the rounds. */
static void job_after_one_that_is_ending_is_decided_by_its_end(void **state)
{
    BerthdTest *test = *state;
    Berth__Dependency dependency = BERTH__DEPENDENCY__INIT;
    Berth__Dependency *dependencies[] = {&dependency};
    Berth__JobSpec spec = berthd_fixture_spec();
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    request.spec = &spec;
    spec.dependencies = dependencies;
    spec.n_dependencies = 1;
    dependency.kind = KIND(AFTER_OK);
    for (guint i = 0; i < 40; i++) {
        g_autoptr(GAsyncResult) result = NULL;
        g_autoptr(GError) error = NULL;
        dependency.job = submit_running(test);
        test->plan = (FakePlan){.status = 0};
        if (i % 2 == 0)
            assert_true(fake_agent_end_task(test->agent, dependency.job, 0, 0));
        berth_rpc_peer_call_async(berthd_fixture_client(test->berthd), &berth__jobs__descriptor,
                                  "Submit", &request.base, 60000, NULL, berthd_test_keep_result,
                                  &result);
        if (i % 2 == 1)
            assert_true(fake_agent_end_task(test->agent, dependency.job, 0, 0));
        run_until(result != NULL);
        g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, &error);
        assert_no_error(error);
        berthd_fixture_wait_state(test->berthd, ((const Berth__SubmitReply *)reply)->job,
                                  STATE(COMPLETED));
    }
}

static void kill_and_restart(BerthdTest *test)
{
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    run_until(fake_agent_is_joined(test->agent));
}

/* What it waits for may have ended, or not, when berthd is killed; it is not asked anew. */
static void dependencies_outlive_berthd(void **state)
{
    BerthdTest *test = *state;
    guint64 first = submit_running(test);
    guint64 good = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, good);
    Berth__Dependency dependencies[] = {BERTH__DEPENDENCY__INIT, BERTH__DEPENDENCY__INIT};
    Berth__Dependency *pointers[] = {&dependencies[0], &dependencies[1]};
    Berth__JobSpec spec = berthd_fixture_spec();
    dependencies[0].kind = dependencies[1].kind = KIND(AFTER_OK);
    dependencies[0].job = first;
    dependencies[1].job = good;
    spec.dependencies = pointers;
    spec.n_dependencies = 2;
    guint64 both = berthd_fixture_submit(test->berthd, &spec);
    guint64 never = submit_after(test, KIND(AFTER_NOT_OK), first);
    assert_true(fake_agent_end_task(test->agent, good, 0, 0));
    /* So that it is known from the store alone. */
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, good);
    kill_and_restart(test);
    run_until(waits_for_another(test, both)); /* when storage answers */
    test->plan = (FakePlan){.status = 0};
    assert_true(fake_agent_end_task(test->agent, first, 0, 0));
    berthd_fixture_wait_state(test->berthd, both, STATE(COMPLETED));
    berthd_fixture_wait_state(test->berthd, never, STATE(CANCELLED));
}

static void jobs_of_one_name_run_one_after_the_other(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 first = submit_after(test, KIND(SINGLETON), 0);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, first);
    guint64 second = submit_after(test, KIND(SINGLETON), 0);
    assert_state(test, second, STATE(PENDING), BERTH__REASON__REASON_DEPENDENCY);
    test->plan = (FakePlan){.status = 0};
    assert_true(fake_agent_end_task(test->agent, first, 0, 1));
    berthd_fixture_wait_state(test->berthd, second, STATE(COMPLETED));
}

static void jobs_of_one_name_outlive_berthd(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 first = submit_after(test, KIND(SINGLETON), 0);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, first);
    guint64 second = submit_after(test, KIND(SINGLETON), 0);
    kill_and_restart(test);
    run_until(waits_for_another(test, second));
    test->plan = (FakePlan){.status = 0};
    assert_true(fake_agent_end_task(test->agent, first, 0, 0));
    berthd_fixture_wait_state(test->berthd, second, STATE(COMPLETED));
}

/* --- arrays ------------------------------------------------------------------------------------- */

/* An array, and the messages that it is made of. */
typedef struct {
    Berth__JobSpec spec;
    Berth__JobArray array;
    Berth__IndexRange range, *ranges[1];
    Berth__Dependency dependency, *dependencies[1];
} Array;

/* Tasks FIRST to LAST by STEP, each after that of AFTER (0: none) with its index. */
static void array_init(Array *array, guint32 first, guint32 last, guint32 step, guint64 after)
{
    array->spec = berthd_fixture_spec();
    berth__job_array__init(&array->array);
    berth__index_range__init(&array->range);
    berth__dependency__init(&array->dependency);
    array->range.first = first;
    array->range.last = last;
    array->range.step = step;
    array->ranges[0] = &array->range;
    array->array.tasks = array->ranges;
    array->array.n_tasks = 1;
    array->spec.array = &array->array;
    array->dependency.kind = KIND(AFTER_CORR);
    array->dependency.job = after;
    array->dependencies[0] = &array->dependency;
    array->spec.dependencies = array->dependencies;
    array->spec.n_dependencies = after != 0 ? 1 : 0;
}

static guint64 submit_array(BerthdTest *test, guint32 last, guint64 after)
{
    Array array;
    array_init(&array, 0, last, 1, after);
    return berthd_fixture_submit(test->berthd, &array.spec);
}

/* Of two tasks, which run until they are told to end, at most so many at a time. */
static guint64 submit_pair(BerthdTest *test, guint32 running_max)
{
    Array array;
    array_init(&array, 0, 1, 1, 0);
    array.array.running_max = running_max;
    test->plan = (FakePlan){.runs_on = TRUE};
    return berthd_fixture_submit(test->berthd, &array.spec);
}

static guint n_running(BerthdTest *test, guint64 job)
{
    const GPtrArray *events = berthd_fixture_events(test->berthd);
    guint n = 0;
    for (guint i = 0; i < events->len; i++) {
        const Berth__Event *event = g_ptr_array_index(events, i);
        n += event->kind == BERTH__EVENT__KIND__GUEST_RUNNING && event->job == job;
    }
    return n;
}

/* That one of its tasks has failed is known from the store, too. */
static void array_of_which_a_task_failed_before_a_restart_has_failed(void **state)
{
    BerthdTest *test = *state;
    guint64 pair = submit_pair(test, 2);
    guint64 after_good = submit_after(test, KIND(AFTER_OK), pair);
    guint64 on_failure = submit_after(test, KIND(AFTER_NOT_OK), pair);
    run_until(n_running(test, pair) == 2);
    assert_true(fake_agent_end_task(test->agent, pair, 0, 1));
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, pair);
    kill_and_restart(test);
    run_until(waits_for_another(test, after_good));
    assert_true(waits_for_another(test, on_failure));
    test->plan = (FakePlan){.status = 0};
    assert_true(fake_agent_end_task(test->agent, pair, 1, 0));
    berthd_fixture_wait_state(test->berthd, on_failure, STATE(COMPLETED));
    berthd_fixture_wait_state(test->berthd, after_good, STATE(CANCELLED));
}

static void job_after_the_start_of_an_array_waits_for_its_last_task(void **state)
{
    BerthdTest *test = *state;
    guint64 pair = submit_pair(test, 1);
    run_until(n_running(test, pair) == 1);
    guint64 after = submit_after(test, KIND(AFTER_START), pair);
    assert_state(test, after, STATE(PENDING), BERTH__REASON__REASON_DEPENDENCY);
    assert_true(fake_agent_end_task(test->agent, pair, 0, 1));
    run_until(n_running(test, pair) == 2);
    run_until(n_running(test, after) == 1);
}

/* Of task TASK of JOB, by the newest event of it. */
static Berth__JobState task_state(BerthdTest *test, guint64 job, guint32 task)
{
    const GPtrArray *events = berthd_fixture_events(test->berthd);
    for (guint i = events->len; i > 0; i--) {
        const Berth__Event *event = g_ptr_array_index(events, i - 1);
        if (event->kind == BERTH__EVENT__KIND__TASK_STATE && event->job == job &&
            event->task == task)
            return event->state;
    }
    return STATE(PENDING);
}

/* Each task for itself; also over the death of berthd, and of one that is submitted when some have ended. */
static void tasks_come_after_those_of_another_array(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 first = submit_array(test, 3, 0);
    run_until(n_running(test, first) == 4);
    guint64 second = submit_array(test, 3, first);
    assert_true(fake_agent_end_task(test->agent, first, 1, 0));
    run_until(task_state(test, second, 1) == STATE(RUNNING));
    assert_true(fake_agent_end_task(test->agent, first, 2, 1));
    run_until(task_state(test, second, 2) == STATE(CANCELLED));
    guint64 third = submit_array(test, 2, first);
    run_until(task_state(test, third, 1) == STATE(RUNNING));
    run_until(task_state(test, third, 2) == STATE(CANCELLED));
    kill_and_restart(test);
    assert_int_equal(task_state(test, second, 0), STATE(PENDING));
    assert_true(fake_agent_end_task(test->agent, first, 0, 0));
    run_until(task_state(test, second, 0) == STATE(RUNNING));
    run_until(task_state(test, third, 0) == STATE(RUNNING));
    assert_int_equal(task_state(test, second, 3), STATE(PENDING));
    assert_true(fake_agent_end_task(test->agent, first, 3, 0));
    run_until(task_state(test, second, 3) == STATE(RUNNING));
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, first);
    guint64 fourth = submit_array(test, 3, first);
    run_until(task_state(test, fourth, 2) == STATE(CANCELLED));
    run_until(task_state(test, fourth, 3) == STATE(RUNNING));
}

/* Many end while an array that comes after them is looked at: none of its tasks waits, or ends, for that. */
static void tasks_of_others_that_end_meanwhile_are_not_missed(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 first = submit_array(test, 19, 0);
    run_until(n_running(test, first) == 20);
    test->plan = (FakePlan){.status = 0};
    guint64 others[10];
    for (guint i = 0; i < G_N_ELEMENTS(others); i++) {
        assert_true(fake_agent_end_task(test->agent, first, 2 * i, 0));
        assert_true(fake_agent_end_task(test->agent, first, 2 * i + 1, 0));
        others[i] = submit_array(test, 19, first);
    }
    for (guint i = 0; i < G_N_ELEMENTS(others); i++) {
        for (guint task = 0; task < 20; task++)
            run_until(task_state(test, others[i], task) == STATE(COMPLETED));
    }
}

static void task_that_the_other_has_not_is_refused(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 first = submit_array(test, 3, 0);
    Array array;
    array_init(&array, 2, 4, 2, first);
    g_autoptr(GError) beyond = berthd_fixture_submit_error(test->berthd, &array.spec);
    assert_berth_error(beyond, BERTH_ERROR_INVALID_ARGUMENT, "has no task 4");
    array.spec.array = NULL;
    g_autoptr(GError) plain = berthd_fixture_submit_error(test->berthd, &array.spec);
    assert_berth_error(plain, BERTH_ERROR_INVALID_ARGUMENT, "only the tasks of an array");
}

static void wrong_dependencies_are_refused(void **state)
{
    static const struct {
        Berth__Dependency__Kind kind;
        guint64 job;
        const char *why;
    } cases[] = {
        {KIND(AFTER_OK), 999, "there is no job 999 that it could come after"},
        {KIND(AFTER_OK), G_MAXUINT64, "there is no job 18446744073709551615"},
        {KIND(AFTER_OK), 0, "names no job"},
        {KIND(SINGLETON), 3, "names no job"},
        {KIND(NONE), 3, "is not known here"},
        {(Berth__Dependency__Kind)77, 3, "is not known here"},
    };
    BerthdTest *test = *state;
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        Berth__Dependency dependency = BERTH__DEPENDENCY__INIT;
        Berth__Dependency *dependencies[] = {&dependency};
        Berth__JobSpec spec = berthd_fixture_spec();
        dependency.kind = cases[i].kind;
        dependency.job = cases[i].job;
        spec.dependencies = dependencies;
        spec.n_dependencies = 1;
        g_autoptr(GError) error = berthd_fixture_submit_error(test->berthd, &spec);
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].why);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BERTHD_TEST(job_waits_until_the_other_has_ended_well),
        BERTHD_TEST(job_whose_other_fails_is_cancelled),
        BERTHD_TEST(job_that_has_ended_long_ago_counts_as_it_ended),
        BERTHD_TEST(job_after_one_that_is_ending_is_decided_by_its_end),
        BERTHD_TEST(dependencies_outlive_berthd),
        BERTHD_TEST(jobs_of_one_name_run_one_after_the_other),
        BERTHD_TEST(jobs_of_one_name_outlive_berthd),
        BERTHD_TEST(array_of_which_a_task_failed_before_a_restart_has_failed),
        BERTHD_TEST(job_after_the_start_of_an_array_waits_for_its_last_task),
        BERTHD_TEST(tasks_come_after_those_of_another_array),
        BERTHD_TEST(tasks_of_others_that_end_meanwhile_are_not_missed),
        BERTHD_TEST(task_that_the_other_has_not_is_refused),
        BERTHD_TEST(wrong_dependencies_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
