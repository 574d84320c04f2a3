/* SPDX-License-Identifier: Apache-2.0 */
/* Hosts that say that they are the same node, at a real berthd: a clone, and what only looks like it. */
#include "tests/lib/berthd_test.h"

#include "scheduler/daemon/pb.h"

#include <sqlite3.h>

#define RUNS_ON ((FakePlan){.runs_on = TRUE})

/* The node "n1" of the fixture, on a host that says what it is, with a job that runs. */
static guint64 set_up_node(BerthdTest *test)
{
    fake_agent_cut(test->agent);
    fake_agent_set_host(test->agent, "original", "boot-1");
    fake_agent_heal(test->agent);
    run_until(fake_agent_is_joined(test->agent));
    test->plan = RUNS_ON;
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    return job;
}

/* To be freed with berth_message_free(). */
static Berth__Node *get_node(BerthdTest *test)
{
    Berth__GetNodeRequest request = BERTH__GET_NODE_REQUEST__INIT;
    request.name = (char *)"n1";
    return berthd_fixture_call(test->berthd, &berth__nodes__descriptor, "Get", &request.base);
}

static gboolean is_down(BerthdTest *test)
{
    Berth__Node *node = get_node(test);
    gboolean is_down = node->state == BERTH__NODE_STATE__NODE_DOWN;
    berth_message_free(&node->base);
    return is_down;
}

static guint64 last_heard_of(BerthdTest *test)
{
    Berth__Node *node = get_node(test);
    guint64 last_usec = node->last_report_usec;
    berth_message_free(&node->base);
    return last_usec;
}

static int setup_impatient(void **state)
{
    return berthd_test_setup_with(state, "node_timeout = 1s\n");
}

static int setup_reporting(void **state)
{
    return berthd_test_setup_with(state, "report_interval = 1s\n");
}

static void dial_again(FakeAgent *agent)
{
    fake_agent_cut(agent);
    fake_agent_heal(agent);
    run_until(fake_agent_is_joined(agent) || fake_agent_error(agent));
}

static void assert_runs_on(BerthdTest *test, guint64 job)
{
    assert_true(fake_agent_end(test->agent, job, 0));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    assert_int_equal(berthd_test_task(record)->epoch, 1);
    assert_int_equal(berthd_test_task(record)->requeues, 0);
}

static void other_host_is_refused_while_the_first_is_there(void **state)
{
    BerthdTest *test = *state;
    guint64 job = set_up_node(test);
    FakePlan plan = {0};
    FakeAgent *clone =
        berthd_fixture_add_host(test->berthd, "n1", "clone", "boot-c", berthd_test_plan, &plan);
    assert_berth_error(fake_agent_error(clone), BERTH_ERROR_ALREADY_EXISTS, "another host (");
    assert_non_null(strstr(fake_agent_error(clone)->message, "berth-setup(7)"));
    assert_true(fake_agent_is_joined(test->agent));
    assert_runs_on(test, job);
    run_until(fake_agent_n_guests(test->agent) == 0);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, job);
    /* Nothing runs on the first any more: the other may replace it. */
    fake_agent_cut(test->agent);
    run_until(is_down(test));
    dial_again(clone);
    assert_no_error(fake_agent_error(clone));
    dial_again(test->agent);
    assert_berth_error(fake_agent_error(test->agent), BERTH_ERROR_ALREADY_EXISTS, "another host");
}

/* berthd begins anew, and the clone is there first. */
static void assert_clone_waits(BerthdTest *test, FakeAgent *clone, guint64 job, const char *why)
{
    berthd_fixture_start(test->berthd);
    dial_again(clone);
    assert_berth_error(fake_agent_error(clone), BERTH_ERROR_FAILED_PRECONDITION, why);
    dial_again(test->agent);
    assert_no_error(fake_agent_error(test->agent));
    assert_runs_on(test, job);
    assert_int_equal(fake_agent_runs(clone, job), 0);
}

/* Not even a restart of berthd lets it in before the first is back. */
static void other_host_waits_while_guests_may_run_on_the_first(void **state)
{
    BerthdTest *test = *state;
    guint64 job = set_up_node(test);
    FakePlan plan = {0};
    fake_agent_cut(test->agent);
    run_until(is_down(test));
    FakeAgent *clone =
        berthd_fixture_add_host(test->berthd, "n1", "clone", "boot-c", berthd_test_plan, &plan);
    assert_berth_error(fake_agent_error(clone), BERTH_ERROR_FAILED_PRECONDITION,
                       "1 guests may still run there");
    fake_agent_cut(clone);
    berthd_fixture_kill(test->berthd);
    assert_clone_waits(test, clone, job, "node_timeout");
}

static void other_host_joins_once_the_guests_were_given_up(void **state)
{
    BerthdTest *test = *state;
    guint64 job = set_up_node(test);
    FakePlan plan = {0};
    fake_agent_cut(test->agent);
    /* A directory cannot cut anybody off: the job ends, and is not run twice. */
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__NODE_FAIL);
    FakeAgent *clone =
        berthd_fixture_add_host(test->berthd, "n1", "clone", "boot-c", berthd_test_plan, &plan);
    assert_no_error(fake_agent_error(clone));
    assert_int_equal(fake_agent_runs(clone, job), 0);
    guint64 next = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, next, BERTH__JOB_STATE__COMPLETED);
    assert_int_equal(fake_agent_runs(clone, next), 1);
}

/* As after a reset: berthd does not know yet that the first connection is dead. It may as well be a clone
 * with all of the first one's ids, while that runs a job. */
static void same_host_in_a_new_boot_waits_for_the_end_of_the_session_before(void **state)
{
    BerthdTest *test = *state;
    guint64 job = set_up_node(test);
    FakePlan plan = {0};
    FakeAgent *again =
        berthd_fixture_add_host(test->berthd, "n1", "original", "boot-2", berthd_test_plan, &plan);
    assert_berth_error(fake_agent_error(again), BERTH_ERROR_ALREADY_EXISTS, "started anew");
    fake_agent_cut(test->agent);
    run_until(is_down(test));
    dial_again(again);
    assert_no_error(fake_agent_error(again));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    assert_int_equal(fake_agent_runs(again, job), 1);
    /* The first boot is over: what comes from it is another host, with the same ids. */
    dial_again(test->agent);
    assert_berth_error(fake_agent_error(test->agent), BERTH_ERROR_ALREADY_EXISTS, "another host");
    assert_true(fake_agent_is_joined(again));
}

/* As after a power failure of all. A directory cannot cut anybody off, so that a job whose node is given
 * up would be lost. */
static void same_host_in_a_new_boot_is_taken_by_a_berthd_started_anew(void **state)
{
    BerthdTest *test = *state;
    guint64 job = set_up_node(test);
    fake_agent_cut(test->agent);
    berthd_fixture_kill(test->berthd);
    fake_agent_crash(test->agent);
    fake_agent_set_host(test->agent, "original", "boot-2");
    test->plan = (FakePlan){0};
    berthd_fixture_start(test->berthd);
    dial_again(test->agent);
    assert_no_error(fake_agent_error(test->agent));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    assert_int_equal(fake_agent_runs(test->agent, job), 2);
}

/* berthd is up before the hosts are, and is started once more: that is no word of theirs. */
static void same_host_in_a_new_boot_is_taken_after_two_restarts(void **state)
{
    BerthdTest *test = *state;
    guint64 job = set_up_node(test);
    fake_agent_cut(test->agent);
    berthd_fixture_kill(test->berthd);
    fake_agent_crash(test->agent);
    fake_agent_set_host(test->agent, "original", "boot-2");
    test->plan = (FakePlan){0};
    berthd_fixture_start(test->berthd);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_start(test->berthd);
    dial_again(test->agent);
    assert_no_error(fake_agent_error(test->agent));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    assert_int_equal(fake_agent_runs(test->agent, job), 2);
}

/* A clone with the ids of the node, that booted while that ran: after the newest event in the state. */
static FakeAgent *add_clone(BerthdTest *test, FakePlan *plan)
{
    FakeAgent *clone =
        berthd_fixture_add_host(test->berthd, "n1", "original", "boot-c", berthd_test_plan, plan);
    assert_berth_error(fake_agent_error(clone), BERTH_ERROR_ALREADY_EXISTS, "another host");
    fake_agent_cut(clone);
    return clone;
}

static void clone_that_is_first_waits_when_berthd_was_ended(void **state)
{
    BerthdTest *test = *state;
    guint64 job = set_up_node(test);
    FakePlan plan = {0};
    FakeAgent *clone = add_clone(test, &plan);
    guint64 before = last_heard_of(test);
    fake_agent_report(test->agent);
    run_until(last_heard_of(test) > before);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    fake_agent_cut(test->agent);
    assert_clone_waits(test, clone, job, "may still run");
}

/* The record of n1 as a berthd that is killed leaves it; to be freed with berth__stored_node__free_unpacked(). */
static Berth__StoredNode *read_node(sqlite3 *db)
{
    sqlite3_stmt *select = NULL;
    sqlite3_prepare_v2(db, "SELECT record FROM node WHERE name = 'n1'", -1, &select, NULL);
    assert_int_equal(sqlite3_step(select), SQLITE_ROW);
    Berth__StoredNode *node = berth__stored_node__unpack(
        NULL, (size_t)sqlite3_column_bytes(select, 0), sqlite3_column_blob(select, 0));
    assert_non_null(node);
    sqlite3_finalize(select);
    return node;
}

static sqlite3 *open_state(BerthdTest *test)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(berthd_fixture_state(test->berthd), &db), SQLITE_OK);
    sqlite3_busy_timeout(db, 60000);
    return db;
}

static guint64 kept_heard_usec(BerthdTest *test)
{
    sqlite3 *db = open_state(test);
    Berth__StoredNode *node = read_node(db);
    guint64 heard_usec = node->heard_usec;
    berth__stored_node__free_unpacked(node, NULL);
    sqlite3_close(db);
    return heard_usec;
}

static void clone_that_is_first_waits_when_berthd_was_killed(void **state)
{
    BerthdTest *test = *state;
    guint64 job = set_up_node(test);
    FakePlan plan = {0};
    FakeAgent *clone = add_clone(test, &plan);
    guint64 booted_usec = last_heard_of(test);
    run_until((fake_agent_report(test->agent), kept_heard_usec(test) > booted_usec));
    berthd_fixture_kill(test->berthd);
    fake_agent_cut(test->agent);
    assert_clone_waits(test, clone, job, "may still run");
}

/* Makes the record of n1 one of a release that did not keep when it was heard of. */
static void make_older(BerthdTest *test)
{
    sqlite3 *db = open_state(test);
    sqlite3_stmt *update = NULL;
    Berth__StoredNode *node = read_node(db);
    node->heard_usec = 0;
    node->state = BERTH__NODE_STATE__NODE_DOWN;
    gsize size = berth__stored_node__get_packed_size(node);
    g_autofree guint8 *record = g_malloc(size);
    berth__stored_node__pack(node, record);
    berth__stored_node__free_unpacked(node, NULL);
    sqlite3_prepare_v2(db, "UPDATE node SET record = ?1 WHERE name = 'n1'", -1, &update, NULL);
    sqlite3_bind_blob(update, 1, record, (int)size, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(update), SQLITE_DONE);
    sqlite3_finalize(update);
    sqlite3_close(db);
}

/* The newest event stands for what it does not say. */
static void clone_waits_at_the_state_of_an_older_release(void **state)
{
    BerthdTest *test = *state;
    guint64 job = set_up_node(test);
    FakePlan plan = {0};
    FakeAgent *clone = add_clone(test, &plan);
    guint64 next = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, next);
    berthd_fixture_kill(test->berthd);
    fake_agent_cut(test->agent);
    make_older(test);
    assert_clone_waits(test, clone, job, "may still run");
}

/* An agent of an older release: nobody can say which boot came first. It is warned of. */
static void host_that_hides_its_uptime_is_taken_in_any_boot(void **state)
{
    BerthdTest *test = *state;
    guint64 job = set_up_node(test);
    fake_agent_hide_uptime(test->agent);
    fake_agent_crash(test->agent);
    fake_agent_set_host(test->agent, "original", "boot-2");
    test->plan = (FakePlan){0};
    fake_agent_cut(test->agent);
    run_until(is_down(test));
    dial_again(test->agent);
    assert_no_error(fake_agent_error(test->agent));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    g_autofree char *log = berthd_fixture_log(test->berthd);
    g_auto(GStrv) parts = g_strsplit(log, "does not say how long its host is up", -1);
    assert_int_equal(g_strv_length(parts), 2);
}

/* It has all of the first one's ids, and dials first whenever that is away for a moment. */
static void clone_with_the_same_ids_waits_as_another_host_does(void **state)
{
    BerthdTest *test = *state;
    guint64 job = set_up_node(test);
    FakePlan plan = {0};
    FakeAgent *clone =
        berthd_fixture_add_host(test->berthd, "n1", "original", "boot-c", berthd_test_plan, &plan);
    assert_berth_error(fake_agent_error(clone), BERTH_ERROR_ALREADY_EXISTS, "another host");
    guint64 before = last_heard_of(test);
    fake_agent_report(test->agent);
    run_until(last_heard_of(test) > before);
    fake_agent_cut(test->agent);
    run_until(is_down(test));
    dial_again(clone);
    assert_berth_error(fake_agent_error(clone), BERTH_ERROR_FAILED_PRECONDITION, "may still run");
    dial_again(test->agent);
    assert_no_error(fake_agent_error(test->agent));
    fake_agent_cut(test->agent);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_start(test->berthd);
    dial_again(clone);
    assert_berth_error(fake_agent_error(clone), BERTH_ERROR_FAILED_PRECONDITION, "may still run");
    dial_again(test->agent);
    assert_no_error(fake_agent_error(test->agent));
    assert_runs_on(test, job);
    assert_int_equal(fake_agent_runs(clone, job), 0);
}

/* Its operator has mended its machine id. */
static void host_with_the_guests_of_the_node_is_the_same(void **state)
{
    BerthdTest *test = *state;
    guint64 job = set_up_node(test);
    fake_agent_cut(test->agent);
    run_until(is_down(test));
    fake_agent_set_host(test->agent, "mended", "boot-1");
    dial_again(test->agent);
    assert_no_error(fake_agent_error(test->agent));
    assert_runs_on(test, job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BERTHD_TEST(other_host_is_refused_while_the_first_is_there),
        BERTHD_TEST(other_host_waits_while_guests_may_run_on_the_first),
        cmocka_unit_test_setup_teardown(other_host_joins_once_the_guests_were_given_up,
                                        setup_impatient, berthd_test_teardown),
        BERTHD_TEST(same_host_in_a_new_boot_waits_for_the_end_of_the_session_before),
        BERTHD_TEST(same_host_in_a_new_boot_is_taken_by_a_berthd_started_anew),
        BERTHD_TEST(same_host_in_a_new_boot_is_taken_after_two_restarts),
        BERTHD_TEST(clone_with_the_same_ids_waits_as_another_host_does),
        BERTHD_TEST(clone_that_is_first_waits_when_berthd_was_ended),
        cmocka_unit_test_setup_teardown(clone_that_is_first_waits_when_berthd_was_killed,
                                        setup_reporting, berthd_test_teardown),
        BERTHD_TEST(clone_waits_at_the_state_of_an_older_release),
        BERTHD_TEST(host_that_hides_its_uptime_is_taken_in_any_boot),
        BERTHD_TEST(host_with_the_guests_of_the_node_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
