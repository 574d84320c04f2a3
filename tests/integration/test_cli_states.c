/* SPDX-License-Identifier: Apache-2.0 */
/* What is under way is shown: a job that is being ended, a node that is away. */
#include "tests/lib/berthd_test.h"
#include "tests/lib/cli_process.h"

#include "scheduler/daemon/pb.h"

#include <signal.h>

#define GRACE_SEC  3600u
#define GRACE_USEC (GRACE_SEC * (guint64)G_USEC_PER_SEC)

/* A job that runs and does not heed SIGTERM. */
static guint64 stubborn_job(BerthdTest *test)
{
    test->plan = (FakePlan){.runs_on = TRUE, .ignores_stop = TRUE};
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.stop_grace_sec = GRACE_SEC;
    guint64 job = berthd_fixture_submit(test->berthd, &spec);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    return job;
}

/* Of those that wait the first alone is planned for: it starts when what runs has used up its time. */
static void show_of_first_waiting_job_has_its_planned_start(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.vcpus = 64;
    spec.time_limit_sec = 3600;
    guint64 runs = berthd_fixture_submit(test->berthd, &spec);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, runs);
    guint64 first = berthd_fixture_submit(test->berthd, &spec);
    guint64 second = berthd_fixture_submit(test->berthd, &spec);
    g_autoptr(Berth__Job) running = berthd_fixture_get(test->berthd, runs);
    g_autoptr(Berth__Job) planned = berthd_fixture_get(test->berthd, first);
    g_autoptr(Berth__Job) not_planned = berthd_fixture_get(test->berthd, second);
    guint64 end_usec = berthd_test_task(running)->start_usec + 3600 * (guint64)G_USEC_PER_SEC;
    assert_int_equal(berthd_test_task(running)->planned_usec, 0);
    assert_true(berthd_test_task(planned)->planned_usec >= end_usec);
    assert_true(berthd_test_task(planned)->planned_usec < end_usec + 600 * (guint64)G_USEC_PER_SEC);
    assert_int_equal(berthd_test_task(not_planned)->planned_usec, 0);
    g_autofree char *text = cli_job(first);
    g_autofree char *shown = cli_output_of(CLI(test->berthd, "show", text));
    assert_contains(shown, "Planned start    20");
    assert_contains(shown, " at the latest, if nobody comes before it\n");
    guint64 jobs[] = {second, first, runs};
    for (gsize i = 0; i < G_N_ELEMENTS(jobs); i++) {
        g_autofree char *job = cli_job(jobs[i]);
        g_autofree char *none = cli_output_of(CLI(test->berthd, "cancel", job));
        berthd_fixture_wait_state(test->berthd, jobs[i], BERTH__JOB_STATE__CANCELLED);
    }
}

static void end_job(BerthdTest *test, guint64 job)
{
    assert_true(fake_agent_end(test->agent, job, 0));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__CANCELLED);
    g_autoptr(Berth__Job) ended = berthd_fixture_get(test->berthd, job);
    assert_int_equal(ended->reason, BERTH__REASON__REASON_CANCELLED_BY_USER);
    assert_int_equal(berthd_test_task(ended)->stop_usec, 0);
    assert_int_equal(berthd_test_task(ended)->kill_usec, 0);
}

static void cancel_of_running_job_shows_that_it_is_ending(void **state)
{
    BerthdTest *test = *state;
    guint64 job = stubborn_job(test);
    g_autofree char *text = cli_job(job);
    g_autofree char *before = cli_output_of(CLI(test->berthd, "show", text));
    assert_null(strstr(before, "Ending"));
    g_autofree char *json = cli_output_of(CLI(test->berthd, "cancel", "--json", text));
    assert_contains(json, "\"state\":\"RUNNING\",\"reason\":\"REASON_CANCELLED_BY_USER\"");
    assert_null(strstr(json, "\"stopUsec\":\"0\""));
    assert_null(strstr(json, "\"killUsec\":\"0\""));
    g_autofree char *list = cli_output_of(CLI(test->berthd, "ls"));
    assert_contains(list, "n1 (ending: cancelled-by-user)");
    g_autofree char *shown = cli_output_of(CLI(test->berthd, "show", text));
    assert_contains(shown, "State            RUNNING\n");
    assert_contains(shown, "Reason           cancelled-by-user: cancelled by its user\n");
    assert_contains(shown, "Ending           since 20");
    assert_contains(shown, ", with SIGKILL at 20");
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_true(berthd_test_task(record)->kill_usec >=
                berthd_test_task(record)->stop_usec + GRACE_USEC);
    end_job(test, job);
}

static void ending_job_keeps_its_times_over_a_restart(void **state)
{
    BerthdTest *test = *state;
    guint64 job = stubborn_job(test);
    g_autofree char *text = cli_job(job);
    g_autofree char *none = cli_output_of(CLI(test->berthd, "cancel", text));
    g_autoptr(Berth__Job) before = berthd_fixture_get(test->berthd, job);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    run_until(fake_agent_n_stops(test->agent) == 2); /* it is asked again */
    g_autoptr(Berth__Job) after = berthd_fixture_get(test->berthd, job);
    assert_int_equal(after->reason, BERTH__REASON__REASON_CANCELLED_BY_USER);
    assert_true(berthd_test_task(before)->stop_usec > 0);
    assert_int_equal(berthd_test_task(after)->stop_usec, berthd_test_task(before)->stop_usec);
    assert_int_equal(berthd_test_task(after)->kill_usec, berthd_test_task(before)->kill_usec);
    end_job(test, job);
}

/* Nobody knows when SIGKILL comes before SIGTERM has left; and the node's row says what is wrong. */
static void cancel_while_the_node_is_down_says_so(void **state)
{
    BerthdTest *test = *state;
    guint64 job = stubborn_job(test);
    g_autofree char *text = cli_job(job);
    fake_agent_cut(test->agent);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__NODE_DOWN, 0);
    g_autofree char *list = cli_output_of(CLI(test->berthd, "node", "ls"));
    assert_contains(list, "n1    down ");
    assert_contains(list, " no session since 20");
    assert_null(strstr(list, "emulated"));
    g_autofree char *node = cli_output_of(CLI(test->berthd, "node", "show", "n1"));
    assert_contains(node, "Absent           no session since 20");
    g_autofree char *none = cli_output_of(CLI(test->berthd, "cancel", text));
    g_autofree char *shown = cli_output_of(CLI(test->berthd, "show", text));
    assert_contains(shown, ", as soon as its node can be reached\n");
    g_autofree char *jobs = cli_output_of(CLI(test->berthd, "ls"));
    assert_contains(jobs, "  n1 (no session, ending: cancelled-by-user)\n");
    fake_agent_heal(test->agent);
    run_until(fake_agent_n_stops(test->agent) == 1);
    g_autofree char *later = cli_output_of(CLI(test->berthd, "show", text));
    assert_contains(later, ", with SIGKILL at 20");
    g_autofree char *up = cli_output_of(CLI(test->berthd, "node", "ls"));
    assert_contains(up, "guests are emulated");
    end_job(test, job);
}

static void ls_marks_whose_node_is_away(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    g_autofree char *still = cli_job(berthd_fixture_submit_plain(test->berthd));
    berthd_fixture_submit_plain(test->berthd);
    g_free(cli_output_of(CLI(test->berthd, "submit", "--array", "7", "--", "true")));
    run_until(fake_agent_n_guests(test->agent) == 3);
    g_free(cli_output_of(CLI(test->berthd, "freeze", still)));
    g_autofree char *before = cli_output_of(CLI(test->berthd, "ls", "--tasks"));
    assert_null(strstr(before, "no session"));
    fake_agent_cut(test->agent);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__NODE_DOWN, 0);
    g_autofree char *list = cli_output_of(CLI(test->berthd, "ls", "--tasks"));
    assert_contains(list, "  frozen-by-user (n1, no session)\n");
    assert_true(g_regex_match_simple("\n +2  .* RUNNING .*  n1 \\(no session\\)\n", list, 0, 0));
    assert_true(g_regex_match_simple("3\\[7\\]  .* RUNNING .*  n1 \\(no session\\)\n", list, 0, 0));
}

static void show_full_disk_is_named_whatever_the_end(void **state)
{
    BerthdTest *test = *state;
    static const guint32 statuses[] = {0, 1};
    for (gsize i = 0; i < G_N_ELEMENTS(statuses); i++) {
        test->plan = (FakePlan){.disk_full = TRUE, .status = statuses[i]};
        guint64 job = berthd_fixture_submit_plain(test->berthd);
        berthd_fixture_wait_state(test->berthd, job,
                                  statuses[i] ? BERTH__JOB_STATE__FAILED
                                              : BERTH__JOB_STATE__COMPLETED);
        g_autofree char *text = cli_job(job);
        g_autofree char *shown = cli_output_of(CLI(test->berthd, "show", text));
        assert_contains(shown, "Disk full        at the end: no block was free");
    }
}

static void node_ls_lost_node_says_since_when(void **state)
{
    BerthdTest *test = *state;
    fake_agent_cut(test->agent);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__NODE_LOST, 0);
    g_autofree char *list = cli_output_of(CLI(test->berthd, "node", "ls"));
    assert_contains(list, "n1    lost ");
    assert_contains(list, " no session since 20");
    assert_contains(list, "; its guests were given up");
    assert_null(strstr(list, "emulated"));
}

static int setup_short(void **state)
{
    return berthd_test_setup_with(state, "node_timeout = 1s\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BERTHD_TEST(show_of_first_waiting_job_has_its_planned_start),
        BERTHD_TEST(cancel_of_running_job_shows_that_it_is_ending),
        BERTHD_TEST(ending_job_keeps_its_times_over_a_restart),
        BERTHD_TEST(cancel_while_the_node_is_down_says_so),
        BERTHD_TEST(ls_marks_whose_node_is_away),
        BERTHD_TEST(show_full_disk_is_named_whatever_the_end),
        cmocka_unit_test_setup_teardown(node_ls_lost_node_says_since_when, setup_short,
                                        berthd_test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
