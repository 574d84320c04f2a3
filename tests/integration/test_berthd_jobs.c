/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs through a real berthd, over its socket, on a node that is fake: how each can end, and what
 * people do to them. */
#include "tests/lib/berthd_test.h"

#include "scheduler/core/core.h"
#include "scheduler/daemon/pb.h"

static const ProtobufCServiceDescriptor *const jobs = &berth__jobs__descriptor;

static Berth__JobReply *change(BerthdTest *test, const char *method, guint64 job)
{
    Berth__CancelRequest request = BERTH__CANCEL_REQUEST__INIT;
    Berth__HoldRequest hold = BERTH__HOLD_REQUEST__INIT;
    Berth__ReleaseRequest release = BERTH__RELEASE_REQUEST__INIT;
    const ProtobufCMessage *message = &request.base;
    request.job = hold.job = release.job = job;
    if (strcmp(method, "Hold") == 0) {
        message = &hold.base;
    } else if (strcmp(method, "Release") == 0) {
        message = &release.base;
    }
    return berthd_fixture_call(test->berthd, jobs, method, message);
}

/* --- how a job can end ------------------------------------------------------------------------- */

static void submit_plain_completes(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.out = "hello\n", .err = "oops\n"};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, job);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    const Berth__Task *task = berthd_test_task(record);
    assert_int_equal(record->state, BERTH__JOB_STATE__COMPLETED);
    assert_int_equal(task->exit->stdout_bytes, 6);
    assert_string_equal(task->node, "n1");
    assert_int_equal(task->epoch, 1);
    assert_true(task->start_usec >= record->submit_usec && task->end_usec >= task->start_usec);
    assert_int_equal(fake_agent_runs(test->agent, job), 1);
    assert_int_equal(fake_agent_n_guests(test->agent), 0);
    g_autofree char *out = berthd_fixture_logs(test->berthd, job, FALSE, FALSE);
    g_autofree char *err = berthd_fixture_logs(test->berthd, job, TRUE, TRUE);
    assert_string_equal(out, "hello\n");
    assert_string_equal(err, "oops\n");
}

typedef struct {
    FakePlan plan;
    Berth__JobState state;
    Berth__Reason reason;
    const char *text;
} EndCase;

static const EndCase ends[] = {
    {{.status = 3}, BERTH__JOB_STATE__FAILED, BERTH__REASON__REASON_EXIT_STATUS, "status 3"},
    {{.signal = 11}, BERTH__JOB_STATE__FAILED, BERTH__REASON__REASON_SIGNAL, "signal 11"},
    {{.signal = 9, .oom_kills = 1},
     BERTH__JOB_STATE__OUT_OF_MEMORY,
     BERTH__REASON__REASON_MEMORY_LIMIT,
     "64 MiB"},
    {{.status = 127, .error = "no such file: tru"},
     BERTH__JOB_STATE__FAILED,
     BERTH__REASON__REASON_COMMAND_NOT_FOUND,
     "no such file: tru"},
    {{.gone = BERTH__REASON__REASON_BOOT_DEADLINE, .console_tail = "Kernel panic"},
     BERTH__JOB_STATE__FAILED,
     BERTH__REASON__REASON_BOOT_DEADLINE,
     "did not boot in time (node n1)"},
    {{.gone = BERTH__REASON__REASON_DISK_FULL},
     BERTH__JOB_STATE__FAILED,
     BERTH__REASON__REASON_DISK_FULL,
     "ask for more with --disk"},
    {{.gone = BERTH__REASON__REASON_GUEST_CRASHED, .console_tail = "Kernel panic"},
     BERTH__JOB_STATE__FAILED,
     BERTH__REASON__REASON_GUEST_CRASHED,
     "crashed (node n1)"},
    {{.refuse = BERTH__START_GUEST_REPLY__FAULT__JOB},
     BERTH__JOB_STATE__FAILED,
     BERTH__REASON__REASON_START_FAILED,
     "the fake node refuses"},
};

static void guest_ends_job_says_why(void **state)
{
    BerthdTest *test = *state;
    for (gsize i = 0; i < G_N_ELEMENTS(ends); i++) {
        test->plan = ends[i].plan;
        guint64 job = berthd_fixture_submit_plain(test->berthd);
        berthd_fixture_wait_state(test->berthd, job, ends[i].state);
        g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
        const Berth__Task *task = berthd_test_task(record);
        assert_int_equal(task->reason, ends[i].reason);
        assert_non_null(strstr(task->reason_text, ends[i].text));
        if (ends[i].plan.console_tail) {
            assert_string_equal(task->console_tail, ends[i].plan.console_tail);
        }
    }
}

static void time_limit_reached_stops(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.time_limit_sec = 1;
    guint64 job = berthd_fixture_submit(test->berthd, &spec);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__TIMEOUT);
    assert_int_equal(fake_agent_n_stops(test->agent), 1);
}

static void start_refused_for_a_while_is_tried_again(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.refuse = BERTH__START_GUEST_REPLY__FAULT__NODE};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_START_FAILED, job);
    test->plan = (FakePlan){0};
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_true(berthd_test_task(record)->epoch > 1);
    assert_int_equal(fake_agent_runs(test->agent, job), 1);
}

static int setup_quick_retry(void **state)
{
    return berthd_test_setup_with(state, "[guests]\nstart_backoff = 1s\n");
}

static const Berth__Event *find_end(BerthdTest *test, guint64 job)
{
    GPtrArray *events = berthd_fixture_events(test->berthd);
    for (guint i = 0; i < events->len; i++) {
        const Berth__Event *event = g_ptr_array_index(events, i);
        if (event->job == job && event->kind == BERTH__EVENT__KIND__GUEST_EXITED)
            return event;
    }
    return NULL;
}

/* Nothing of the job has run: not even one that must not be requeued is given up. */
static void guest_that_crashes_before_its_command_starts_again(void **state)
{
    BerthdTest *test = *state;
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.no_requeue = TRUE;
    test->plan = (FakePlan){.gone = BERTH__REASON__REASON_GUEST_CRASHED,
                            .not_begun = TRUE,
                            .console_tail = "int3: 0000 [#1] SMP"};
    guint64 job = berthd_fixture_submit(test->berthd, &spec);
    run_until(find_end(test, job));
    test->plan = (FakePlan){0};
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_int_equal(berthd_test_task(record)->requeues, 0);
    assert_true(berthd_test_task(record)->epoch > 1);
    assert_int_equal(fake_agent_runs(test->agent, job), 1);
    const Berth__Event *end = find_end(test, job);
    assert_int_equal(end->epoch, 1);
    assert_int_equal(end->reason, BERTH__REASON__REASON_GUEST_CRASHED);
    assert_non_null(strstr(end->text, "int3: 0000 [#1] SMP"));
}

static void guest_that_always_crashes_before_its_command_fails_the_job(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.gone = BERTH__REASON__REASON_GUEST_CRASHED,
                            .not_begun = TRUE,
                            .console_tail = "Kernel panic"};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__FAILED);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    const Berth__Task *task = berthd_test_task(record);
    assert_int_equal(task->reason, BERTH__REASON__REASON_GUEST_CRASHED);
    assert_int_equal(task->epoch, 1 + 2); /* boot_retries_max */
    assert_string_equal(task->console_tail, "Kernel panic");
}

/* --- what people do ---------------------------------------------------------------------------- */

static void cancel_running_stops(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    berth_message_free(&change(test, "Cancel", job)->base);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__CANCELLED);
    assert_int_equal(fake_agent_n_stops(test->agent), 1);
    Berth__CancelRequest again = BERTH__CANCEL_REQUEST__INIT;
    again.job = job;
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, job);
    g_autoptr(GError) error = berthd_fixture_call_error(test->berthd, jobs, "Cancel", &again.base);
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "has ended already (CANCELLED)");
}

/* Its guest is gone and nobody has said so: as when its start never left. */
static void cancel_of_unknown_guest_ends_job(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    fake_agent_crash(test->agent);
    berth_message_free(&change(test, "Cancel", job)->base);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__CANCELLED);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, job);
}

static void cancel_crosses_failing_start_ends_job(void **state)
{
    BerthdTest *test = *state;
    test->plan =
        (FakePlan){.refuse = BERTH__START_GUEST_REPLY__FAULT__NODE, .refuse_on_stop = TRUE};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    run_until(fake_agent_start(test->agent, job) != NULL);
    berth_message_free(&change(test, "Cancel", job)->base);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__CANCELLED);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, job);
}

static void hold_pending_waits_until_released(void **state)
{
    BerthdTest *test = *state;
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.hold = TRUE;
    guint64 held = berthd_fixture_submit(test->berthd, &spec);
    guint64 other = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, other, BERTH__JOB_STATE__COMPLETED);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, held);
    assert_int_equal(record->state, BERTH__JOB_STATE__PENDING);
    assert_int_equal(berthd_test_task(record)->reason, BERTH__REASON__REASON_HELD_BY_USER);
    assert_true(record->held);
    Berth__JobReply *reply = change(test, "Release", held);
    assert_false(reply->job->held);
    berth_message_free(&reply->base);
    berthd_fixture_wait_state(test->berthd, held, BERTH__JOB_STATE__COMPLETED);
}

static void cancel_pending_never_starts(void **state)
{
    BerthdTest *test = *state;
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.hold = TRUE;
    guint64 job = berthd_fixture_submit(test->berthd, &spec);
    Berth__JobReply *reply = change(test, "Cancel", job);
    assert_int_equal(reply->job->state, BERTH__JOB_STATE__CANCELLED);
    berth_message_free(&reply->base);
    assert_int_equal(fake_agent_runs(test->agent, job), 0);
}

static void change_unknown_is_not_found(void **state)
{
    BerthdTest *test = *state;
    Berth__CancelRequest request = BERTH__CANCEL_REQUEST__INIT;
    request.job = 4711;
    g_autoptr(GError) error =
        berthd_fixture_call_error(test->berthd, jobs, "Cancel", &request.base);
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "4711");
}

/* --- lists ------------------------------------------------------------------------------------- */

static void list_pages_show_each_job_once(void **state)
{
    BerthdTest *test = *state;
    for (guint i = 0; i < 25; i++) {
        berthd_fixture_submit_plain(test->berthd);
    }
    Berth__ListJobsRequest request = BERTH__LIST_JOBS_REQUEST__INIT;
    request.all_states = TRUE;
    request.limit = 10;
    guint64 expected = 1;
    do {
        Berth__ListJobsReply *page = berthd_fixture_call(test->berthd, jobs, "List", &request.base);
        for (gsize i = 0; i < page->n_jobs; i++) {
            assert_int_equal(page->jobs[i]->id, expected++);
            assert_null(page->jobs[i]->spec);
        }
        request.after_job = page->next_after_job;
        berth_message_free(&page->base);
    } while (request.after_job != 0);
    assert_int_equal(expected, 26);
}

static gboolean reason_has(BerthdTest *test, guint64 job, const char *text)
{
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    return strstr(berthd_test_task(record)->reason_text, text) != NULL;
}

static void output_files_are_written(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.out = "to out\n", .err = "to err\n"};
    fake_agent_set_delay(test->agent, 500); /* its guest is released after the copy */
    g_autofree char *pattern =
        g_build_filename(berthd_fixture_dir(test->berthd), "out-%j.txt", NULL);
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.stdout_path = pattern;
    spec.stderr_path = (char *)"/nonexistent/err.txt";
    guint64 job = berthd_fixture_submit(test->berthd, &spec);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    g_autofree char *path = g_build_filename(berthd_fixture_dir(test->berthd), "out-1.txt", NULL);
    g_autofree char *text = NULL;
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__OUTPUT_COPIED, job);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, job);
    assert_true(reason_has(test, job, "/nonexistent/err.txt"));
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    assert_string_equal(text, "to out\n");
}

/* What the user does with the file after the copy is the user's. */
static void output_file_is_copied_once_over_a_restart(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.out = "to out\n"};
    fake_agent_set_delay(test->agent, 3000); /* its guest is released long after the copy */
    g_autofree char *path = g_build_filename(berthd_fixture_dir(test->berthd), "out.txt", NULL);
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.stdout_path = path;
    guint64 job = berthd_fixture_submit(test->berthd, &spec);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__OUTPUT_COPIED, job);
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    assert_string_equal(text, "to out\n");
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_false(record->tasks[0]->output_pending);
    assert_true(g_file_set_contents(path, "mine now\n", -1, NULL));
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, job);
    g_autofree char *after = NULL;
    assert_true(g_file_get_contents(path, &after, NULL, NULL));
    assert_string_equal(after, "mine now\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BERTHD_TEST(submit_plain_completes),
        BERTHD_TEST(guest_ends_job_says_why),
        BERTHD_TEST(time_limit_reached_stops),
        cmocka_unit_test_setup_teardown(guest_that_crashes_before_its_command_starts_again,
                                        setup_quick_retry, berthd_test_teardown),
        cmocka_unit_test_setup_teardown(guest_that_always_crashes_before_its_command_fails_the_job,
                                        setup_quick_retry, berthd_test_teardown),
        cmocka_unit_test_setup_teardown(start_refused_for_a_while_is_tried_again, setup_quick_retry,
                                        berthd_test_teardown),
        BERTHD_TEST(cancel_running_stops),
        BERTHD_TEST(cancel_of_unknown_guest_ends_job),
        BERTHD_TEST(cancel_crosses_failing_start_ends_job),
        BERTHD_TEST(hold_pending_waits_until_released),
        BERTHD_TEST(cancel_pending_never_starts),
        BERTHD_TEST(change_unknown_is_not_found),
        BERTHD_TEST(list_pages_show_each_job_once),
        BERTHD_TEST(output_files_are_written),
        BERTHD_TEST(output_file_is_copied_once_over_a_restart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
