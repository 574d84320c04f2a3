/* SPDX-License-Identifier: Apache-2.0 */
/* A real berthd that keeps jobs for a second: what becomes of one that has ended, and of those who waited for it. */
#include "tests/lib/berthd_test.h"

#include "scheduler/daemon/pb.h"

static gboolean is_known(BerthdTest *test, guint64 job)
{
    Berth__GetJobRequest request = BERTH__GET_JOB_REQUEST__INIT;
    g_autoptr(GError) error = NULL;
    request.job = job;
    g_autoptr(ProtobufCMessage) reply =
        berth_rpc_peer_call(berthd_fixture_client(test->berthd), &berth__jobs__descriptor, "Get",
                            &request.base, 30000, &error);
    if (reply == NULL)
        assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "no job");
    return reply != NULL;
}

/* The newest event of all stays, and whose it is with it. */
static void make_news(BerthdTest *test)
{
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.hold = TRUE;
    berthd_fixture_submit(test->berthd, &spec);
}

static guint n_logs(BerthdTest *test)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) logs = berth_storage_log_list(berthd_fixture_storage(test->berthd), &error);
    assert_no_error(error);
    return g_strv_length(logs);
}

static void job_that_has_ended_is_forgotten_with_its_output(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.out = "hello\n", .runs_on = TRUE};
    guint64 first = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, first);
    test->plan = (FakePlan){.out = "hello\n"};
    guint64 second = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, second);
    make_news(test);
    run_until(!is_known(test, second));
    assert_true(is_known(test, first));
    assert_true(fake_agent_end(test->agent, first, 0));
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, first);
    make_news(test);
    run_until(!is_known(test, first));
    assert_int_equal(n_logs(test), 0);
    /* Numbers go on, also after a restart. */
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    assert_true(berthd_fixture_submit_plain(test->berthd) > second);
}

static void who_waited_for_a_job_that_is_forgotten_waits_no_longer(void **state)
{
    BerthdTest *test = *state;
    Berth__Dependency dependency = BERTH__DEPENDENCY__INIT;
    Berth__Dependency *dependencies[] = {&dependency};
    Berth__JobSpec spec = berthd_fixture_spec();
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 first = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, first);
    dependency.kind = BERTH__DEPENDENCY__KIND__AFTER_OK;
    dependency.job = first;
    spec.dependencies = dependencies;
    spec.n_dependencies = 1;
    spec.hold = TRUE;
    guint64 held = berthd_fixture_submit(test->berthd, &spec);
    assert_true(fake_agent_end(test->agent, first, 0));
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, first);
    make_news(test);
    run_until(!is_known(test, first));
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    assert_true(is_known(test, held));
    Berth__ReleaseRequest release = BERTH__RELEASE_REQUEST__INIT;
    release.job = held;
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__jobs__descriptor, "Release", &release.base);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, held);
}

static int setup(void **state)
{
    return berthd_test_setup_with(state, "[berthd]\nhistory_keep = 1s\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(job_that_has_ended_is_forgotten_with_its_output, setup,
                                        berthd_test_teardown),
        cmocka_unit_test_setup_teardown(who_waited_for_a_job_that_is_forgotten_waits_no_longer,
                                        setup, berthd_test_teardown),
    };
    return cmocka_run_group_tests_name("berthd_history", tests, NULL, NULL);
}
