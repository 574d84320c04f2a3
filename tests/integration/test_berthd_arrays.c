/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays through a real berthd: one record until a task runs, each task by itself from then on. */
#include "tests/lib/berthd_test.h"

#include "common/ranges.h"
#include "scheduler/daemon/pb.h"

static const ProtobufCServiceDescriptor *const jobs = &berth__jobs__descriptor;

/* As a message has them. */
static BerthRanges ranges_of(const char *text)
{
    g_autoptr(BerthIndexSet) set = text ? berth_index_set_parse(text, G_MAXINT32, NULL) : NULL;
    assert_true(!text || set);
    return berth_ranges_of(set);
}

static guint64 submit_with(BerthdTest *test, const char *tasks, guint32 running_max,
                           const char *stdout_path)
{
    g_auto(BerthRanges) ranges = ranges_of(tasks);
    Berth__JobArray array = BERTH__JOB_ARRAY__INIT;
    Berth__JobSpec spec = berthd_fixture_spec();
    array.tasks = ranges.ranges;
    array.n_tasks = ranges.n;
    array.running_max = running_max;
    spec.array = &array;
    spec.stdout_path = (char *)stdout_path;
    return berthd_fixture_submit(test->berthd, &spec);
}

static guint64 submit(BerthdTest *test, const char *tasks, guint32 running_max)
{
    return submit_with(test, tasks, running_max, "");
}

/* Of TASKS; NULL = those that have started and not ended. */
static Berth__Job *get(BerthdTest *test, guint64 job, const char *tasks)
{
    g_auto(BerthRanges) ranges = ranges_of(tasks);
    Berth__GetJobRequest request = BERTH__GET_JOB_REQUEST__INIT;
    request.job = job;
    request.tasks = ranges.ranges;
    request.n_tasks = ranges.n;
    return berthd_fixture_call(test->berthd, jobs, "Get", &request.base);
}

/* "0:RUNNING 3:PENDING" */
static void assert_tasks(BerthdTest *test, guint64 job, const char *tasks, const char *due)
{
    g_autoptr(Berth__Job) record = get(test, job, tasks);
    g_autoptr(GString) text = g_string_new(NULL);
    for (gsize i = 0; i < record->n_tasks; i++) {
        const ProtobufCEnumValue *state = protobuf_c_enum_descriptor_get_value(
            &berth__job_state__descriptor, (int)record->tasks[i]->state);
        g_string_append_printf(text, "%s%u:%s", i > 0 ? " " : "", record->tasks[i]->index,
                               state->name);
    }
    assert_string_equal(text->str, due);
}

static char *unstarted(const Berth__Job *job)
{
    g_autoptr(BerthIndexSet) set = berth_index_set_new();
    for (gsize i = 0; i < job->n_unstarted; i++)
        berth_index_set_add(set,
                            (BerthIndexRange){job->unstarted[i]->first, job->unstarted[i]->last,
                                              MAX(job->unstarted[i]->step, 1)});
    return berth_index_set_format(set);
}

static void assert_counts(BerthdTest *test, guint64 job, const char *waiting, guint pending,
                          guint running, guint completed, guint cancelled)
{
    g_autoptr(Berth__Job) record = get(test, job, NULL);
    g_autofree char *text = unstarted(record);
    assert_string_equal(text, waiting);
    assert_int_equal(record->counts->pending, pending);
    assert_int_equal(record->counts->running, running);
    assert_int_equal(record->counts->completed, completed);
    assert_int_equal(record->counts->cancelled, cancelled);
}

static gpointer cancel_call(BerthdTest *test, guint64 job, const char *tasks, GError **error)
{
    g_auto(BerthRanges) ranges = ranges_of(tasks);
    Berth__CancelRequest request = BERTH__CANCEL_REQUEST__INIT;
    request.job = job;
    request.tasks = ranges.ranges;
    request.n_tasks = ranges.n;
    if (!error)
        return berthd_fixture_call(test->berthd, jobs, "Cancel", &request.base);
    *error = berthd_fixture_call_error(test->berthd, jobs, "Cancel", &request.base);
    return NULL;
}

static void cancel(BerthdTest *test, guint64 job, const char *tasks)
{
    ProtobufCMessage *reply = cancel_call(test, job, tasks, NULL);
    berth_message_free(reply);
}

static gboolean has_tasks(BerthdTest *test, guint64 job, guint n_running, guint n_completed)
{
    g_autoptr(Berth__Job) record = get(test, job, NULL);
    guint n_started = 0;
    for (gsize i = 0; i < record->n_tasks; i++)
        n_started += record->tasks[i]->state == BERTH__JOB_STATE__RUNNING &&
                     record->tasks[i]->start_usec > 0;
    return n_started == n_running && record->counts->completed == n_completed;
}

/* So many tasks run, and so many have completed. */
static void wait_tasks(BerthdTest *test, guint64 job, guint n_running, guint n_completed)
{
    run_until(has_tasks(test, job, n_running, n_completed));
}

static gboolean is_over(BerthdTest *test, guint64 job, Berth__JobState state)
{
    g_autoptr(Berth__Job) record = get(test, job, NULL);
    return record->state == state && record->n_tasks == 0;
}

/* An event says of a task that it has ended; all have when the job has. */
static void wait_over(BerthdTest *test, guint64 job, Berth__JobState state)
{
    run_until(is_over(test, job, state));
}

/* --- running --------------------------------------------------------------------------------------- */

static void array_runs_each_task_once(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.out = "hello\n"};
    guint64 job = submit(test, "1-9:2,20", 0);
    wait_over(test, job, BERTH__JOB_STATE__COMPLETED);
    assert_int_equal(fake_agent_runs(test->agent, job), 6);
    assert_counts(test, job, "", 0, 0, 6, 0);
    assert_tasks(test, job, "0-5,20-30", "1:COMPLETED 3:COMPLETED 5:COMPLETED 20:COMPLETED");
    assert_tasks(test, job, NULL, "");
}

static void array_without_room_has_one_record(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = submit(test, "0-999999", 2);
    wait_tasks(test, job, 2, 0);
    assert_counts(test, job, "2-999999", 999998, 2, 0, 0);
    assert_tasks(test, job, NULL, "0:RUNNING 1:RUNNING");
    assert_tasks(test, job, "1-3,999999", "1:RUNNING 2:PENDING 3:PENDING 999999:PENDING");
    g_autoptr(Berth__Job) record = get(test, job, "5");
    assert_int_equal(record->tasks[0]->reason, BERTH__REASON__REASON_ARRAY_THROTTLE);
    assert_int_equal(record->state, BERTH__JOB_STATE__RUNNING);
    cancel(test, job, NULL);
    wait_over(test, job, BERTH__JOB_STATE__CANCELLED);
    assert_counts(test, job, "", 0, 0, 0, 1000000);
    assert_tasks(test, job, "0,5,999999", "0:CANCELLED 5:CANCELLED 999999:CANCELLED");
}

static void output_is_each_task_s_own(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *pattern =
        g_build_filename(berthd_fixture_dir(test->berthd), "out-%j-%a", NULL);
    test->plan = (FakePlan){.out = "hello\n"};
    guint64 job = submit_with(test, "3-4", 0, pattern);
    wait_over(test, job, BERTH__JOB_STATE__COMPLETED);
    for (guint i = 3; i <= 4; i++) {
        g_autofree char *name = g_strdup_printf("out-%u-%u", (guint)job, i);
        g_autofree char *path = g_build_filename(berthd_fixture_dir(test->berthd), name, NULL);
        g_autofree char *text = NULL;
        run_until(g_file_get_contents(path, &text, NULL, NULL) && *text);
        assert_string_equal(text, "hello\n");
    }
}

/* Whoever reads what has not started waits for it, unless it was cancelled. */
static void logs_of_a_task_that_waits_are_followed(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.run_msec = 100, .out = "hello\n"};
    guint64 job = submit(test, "0-9", 1);
    cancel(test, job, "3-9");
    g_autofree char *followed = berthd_fixture_task_logs(test->berthd, job, 2, FALSE, TRUE);
    assert_string_equal(followed, "hello\n");
    g_autofree char *nothing = berthd_fixture_task_logs(test->berthd, job, 7, FALSE, TRUE);
    assert_string_equal(nothing, "");
}

/* --- some of them ------------------------------------------------------------------------------------ */

static void cancel_of_some_leaves_the_others(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = submit(test, "0-99", 2);
    wait_tasks(test, job, 2, 0);
    cancel(test, job, "10-19,50");
    assert_counts(test, job, "2-9,20-49,51-99", 87, 2, 0, 11);
    assert_tasks(test, job, "9-11,50", "9:PENDING 10:CANCELLED 11:CANCELLED 50:CANCELLED");
    g_autoptr(GError) error = NULL;
    cancel_call(test, job, "12-15", &error);
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "has no unfinished task 12-15");
    cancel(test, job, "0,2-99");
    wait_tasks(test, job, 1, 0);
    run_until(fake_agent_n_guests(test->agent) == 1);
    assert_counts(test, job, "", 0, 1, 0, 99);
    cancel(test, job, "1");
    wait_over(test, job, BERTH__JOB_STATE__CANCELLED);
}

/* Whether task 0 is among them or not; what came of it, each task tells. */
static void request_of_an_array_is_kept_once(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = submit(test, "5-9", 1);
    wait_tasks(test, job, 1, 0);
    cancel(test, job, "7");
    cancel(test, job, "5");
    wait_tasks(test, job, 1, 0);
    g_autoptr(Berth__Job) record = get(test, job, NULL);
    assert_int_equal(record->n_requests, 2);
    for (gsize i = 0; i < 2; i++) {
        const Berth__JobRequest *request = record->requests[i];
        assert_int_equal(request->kind, BERTH__EVENT__KIND__JOB_CANCEL_REQUESTED);
        assert_int_equal(request->outcome, BERTH__JOB_REQUEST__OUTCOME__TAKEN);
        assert_string_equal(request->asked->text, i == 0 ? "tasks 7" : "tasks 5");
    }
}

static void freeze(BerthdTest *test, guint64 job, const char *tasks)
{
    g_auto(BerthRanges) ranges = ranges_of(tasks);
    Berth__FreezeRequest request = BERTH__FREEZE_REQUEST__INIT;
    request.job = job;
    request.tasks = ranges.ranges;
    request.n_tasks = ranges.n;
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, jobs, "Freeze", &request.base);
}

static guint n_cancelled(BerthdTest *test, guint64 job)
{
    g_autoptr(Berth__Job) record = get(test, job, NULL);
    return (guint)record->counts->cancelled;
}

static void request_of_many_ranges_is_one(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(GString) tasks = g_string_new("0");
    test->plan = (FakePlan){.runs_on = TRUE};
    for (guint i = 0; i < 60; i++) /* at distances that differ */
        g_string_append_printf(tasks, ",%u", 3 + i * (i + 3) / 2);
    guint64 job = submit(test, "0-1999", 2);
    wait_tasks(test, job, 2, 0);
    freeze(test, job, "1,7-9,20");
    cancel(test, job, tasks->str);
    run_until(n_cancelled(test, job) == 61);
    g_autoptr(Berth__Job) record = get(test, job, NULL);
    assert_int_equal(record->n_requests, 2);
    assert_string_equal(record->requests[0]->asked->text, "tasks 1,7-9,20");
    assert_string_equal(record->requests[1]->asked->text,
                        "tasks 0,3,5,8,12,17,23,30,38,47,57,68,80,93,107,122 and 45 ranges more");
}

/* Every third of a million would leave as many pieces of what waits; every second leaves one. */
static void cancel_that_leaves_too_many_pieces_is_refused(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(GError) error = NULL;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = submit(test, "0-999999", 1);
    wait_tasks(test, job, 1, 0);
    cancel_call(test, job, "2-999999:3", &error);
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "in more than 1000 ranges");
    assert_counts(test, job, "1-999999", 999999, 1, 0, 0);
    cancel(test, job, "2-999998:2");
    assert_counts(test, job, "1-999999:2", 500000, 1, 0, 499999);
    cancel(test, job, NULL);
    wait_over(test, job, BERTH__JOB_STATE__CANCELLED);
}

static void plain_job_has_no_tasks_to_name(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(GError) error = NULL;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    cancel_call(test, job, "3", &error);
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "is no array");
}

static void wrong_arrays_are_refused(void **state)
{
    BerthdTest *test = *state;
    Berth__IndexRange range = BERTH__INDEX_RANGE__INIT;
    Berth__IndexRange *ranges[] = {&range};
    Berth__JobArray array = BERTH__JOB_ARRAY__INIT;
    Berth__JobSpec spec = berthd_fixture_spec();
    array.tasks = ranges;
    spec.array = &array;
    static const struct {
        guint32 first, last;
        gsize n;
        const char *path;
        const char *why;
    } cases[] = {
        {0, 0, 0, "", "the array has no tasks"},
        {5, 4, 1, "", "a range that ends before it begins"},
        {0, 1000000, 1, "", "more than 1000000"},
        {0, 2000000000, 1, "", "an index beyond 999999999"},
        {0, 9, 1, "/tmp/%j.out", "have %a in it"},
        {0, 9, 1, "/tmp/%%a.out", "have %a in it"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        range.first = cases[i].first;
        range.last = cases[i].last;
        array.n_tasks = cases[i].n;
        spec.stdout_path = (char *)cases[i].path;
        g_autoptr(GError) error = berthd_fixture_submit_error(test->berthd, &spec);
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].why);
    }
}

/* --- restarts ------------------------------------------------------------------------------------------ */

static void array_goes_on_after_a_kill(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = submit(test, "0-9", 2);
    wait_tasks(test, job, 2, 0);
    cancel(test, job, "4-6");
    assert_true(fake_agent_end_task(test->agent, job, 0, 0));
    wait_tasks(test, job, 2, 1);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    run_until(fake_agent_is_joined(test->agent));
    assert_counts(test, job, "3,7-9", 4, 2, 1, 3);
    assert_tasks(test, job, "0-3", "0:COMPLETED 1:RUNNING 2:RUNNING 3:PENDING");
    static const guint32 order[] = {1, 2, 3, 7, 8, 9};
    for (guint i = 0; i < G_N_ELEMENTS(order); i++)
        run_until(fake_agent_end_task(test->agent, job, order[i], 0));
    wait_over(test, job, BERTH__JOB_STATE__CANCELLED);
    assert_counts(test, job, "", 0, 0, 7, 3);
    assert_int_equal(fake_agent_runs(test->agent, job), 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BERTHD_TEST(array_runs_each_task_once),
        BERTHD_TEST(array_without_room_has_one_record),
        BERTHD_TEST(output_is_each_task_s_own),
        BERTHD_TEST(logs_of_a_task_that_waits_are_followed),
        BERTHD_TEST(cancel_of_some_leaves_the_others),
        BERTHD_TEST(request_of_an_array_is_kept_once),
        BERTHD_TEST(request_of_many_ranges_is_one),
        BERTHD_TEST(cancel_that_leaves_too_many_pieces_is_refused),
        BERTHD_TEST(plain_job_has_no_tasks_to_name),
        BERTHD_TEST(wrong_arrays_are_refused),
        BERTHD_TEST(array_goes_on_after_a_kill),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
