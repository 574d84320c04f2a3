/* SPDX-License-Identifier: Apache-2.0 */
/* A real berthd whose storage is away: from the start, or for a while. */
#include "tests/lib/berthd_test.h"

#include "scheduler/daemon/pb.h"

#include <glib/gstdio.h>

/* PART of the storage is there, or it is not. What is open stays in reach, so that a storage in use
 * breaks only where something new is made: in its "tmp". */
static void set_storage(BerthdFixture *berthd, const char *part, gboolean is_there)
{
    g_autofree char *path = g_build_filename(berthd_fixture_dir(berthd), part, NULL);
    g_autofree char *away = g_build_filename(berthd_fixture_dir(berthd), "away", NULL);
    assert_int_equal(g_rename(is_there ? away : path, is_there ? path : away), 0);
}

static int setup_attentive(void **state)
{
    BerthdTest *test = g_new0(BerthdTest, 1);
    test->berthd = berthd_fixture_new_storage(NULL, "check_interval = 1s\n");
    *state = test;
    return 0;
}

static void start_it(BerthdTest *test)
{
    berthd_fixture_start(test->berthd);
    test->agent = berthd_fixture_add_agent(test->berthd, "n1", berthd_test_plan, &test->plan);
}

static Berth__ServerInfo *info(BerthdTest *test)
{
    Berth__InfoRequest request = BERTH__INFO_REQUEST__INIT;
    return berthd_fixture_call(test->berthd, &berth__server__descriptor, "Info", &request.base);
}

static void storage_lost_nothing_starts_until_it_is_back(void **state)
{
    BerthdTest *test = *state;
    start_it(test);
    berthd_fixture_import(test->berthd, "tiny");
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 running = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, running);
    test->plan = (FakePlan){0};
    set_storage(test->berthd, "storage/tmp", FALSE);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__STORAGE_DOWN, 0);
    Berth__ServerInfo *bad = info(test);
    assert_false(bad->storage_ok);
    assert_non_null(strstr(bad->storage_error, "storage"));
    berth_message_free(&bad->base);
    guint64 job = berthd_fixture_submit_plain(test->berthd); /* accepted all the same */
    g_autoptr(Berth__Job) waiting = berthd_fixture_get(test->berthd, job);
    assert_int_equal(waiting->state, BERTH__JOB_STATE__PENDING);
    assert_int_equal(waiting->tasks[0]->reason, BERTH__REASON__REASON_STORAGE_UNAVAILABLE);
    assert_true(fake_agent_end(test->agent, running, 0)); /* what runs is not disturbed */
    berthd_fixture_wait_state(test->berthd, running, BERTH__JOB_STATE__COMPLETED);
    assert_int_equal(fake_agent_runs(test->agent, job), 0);
    set_storage(test->berthd, "storage/tmp", TRUE);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__STORAGE_UP, 0);
}

static void storage_away_at_start_it_serves_what_it_can(void **state)
{
    BerthdTest *test = *state;
    start_it(test);
    berthd_fixture_import(test->berthd, "tiny");
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.hold = TRUE;
    guint64 held = berthd_fixture_submit(test->berthd, &spec);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    set_storage(test->berthd, "storage", FALSE);
    berthd_fixture_restart(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__STORAGE_DOWN, 0);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, held);
    assert_int_equal(record->state, BERTH__JOB_STATE__PENDING);
    Berth__JobSpec plain = berthd_fixture_spec();
    g_autoptr(GError) no_number = berthd_fixture_submit_error(test->berthd, &plain);
    assert_berth_error(no_number, BERTH_ERROR_UNAVAILABLE, "storage does not answer");
    Berth__ImportBeginRequest begin = BERTH__IMPORT_BEGIN_REQUEST__INIT;
    begin.name = (char *)"other";
    begin.size_bytes = 4096;
    g_autoptr(GError) error = berthd_fixture_call_error(test->berthd, &berth__images__descriptor,
                                                        "ImportBegin", &begin.base);
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "storage cannot be reached");
    set_storage(test->berthd, "storage", TRUE);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__STORAGE_UP, 0);
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    assert_int_equal(job, held + 1);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(storage_lost_nothing_starts_until_it_is_back,
                                        setup_attentive, berthd_test_teardown),
        cmocka_unit_test_setup_teardown(storage_away_at_start_it_serves_what_it_can,
                                        setup_attentive, berthd_test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
