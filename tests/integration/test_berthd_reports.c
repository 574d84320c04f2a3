/* SPDX-License-Identifier: Apache-2.0 */
/* Reports that have only what has changed, at a real berthd: what it makes of them, and of those that are lost. */
#include "tests/lib/berthd_test.h"

#include "scheduler/daemon/pb.h"

#define RUNS_ON ((FakePlan){.runs_on = TRUE})

typedef struct {
    Berth__GuestId id;
    Berth__Usage usage;
    Berth__GuestReport change;
    Berth__GuestReport *changes[1];
    Berth__NodeUsage node;
    Berth__ReportRequest request;
} Words;

/* Of the first guest of JOB, of which nothing is said yet. */
static void begin(Words *words, guint64 job)
{
    berth__guest_id__init(&words->id);
    berth__usage__init(&words->usage);
    berth__guest_report__init(&words->change);
    berth__node_usage__init(&words->node);
    berth__report_request__init(&words->request);
    words->id.job = job;
    words->id.epoch = 1;
    words->change.id = &words->id;
    words->changes[0] = &words->change;
    words->request.changes = words->changes;
    words->request.n_changes = 1;
}

static const Berth__ReportReply *report(BerthdTest *test, const Words *words)
{
    guint n = fake_agent_n_reports(test->agent);
    fake_agent_report_as(test->agent, &words->request);
    run_until(fake_agent_n_reports(test->agent) == n + 1);
    return fake_agent_report_reply(test->agent);
}

static guint64 start(BerthdTest *test)
{
    test->plan = RUNS_ON;
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    return job;
}

static void say_whole(BerthdTest *test, guint64 job)
{
    Words words;
    begin(&words, job);
    words.change.whole = TRUE;
    words.change.usage = &words.usage;
    words.usage.cpu_usec = 5000000;
    words.usage.memory_total_mib = 64;
    words.usage.memory_available_mib = 40;
    words.usage.psi_memory_some = 300;
    assert_int_equal(report(test, &words)->n_unknown, 0);
}

static void assert_usage(BerthdTest *test, guint64 job, guint64 available_mib, guint32 psi,
                         guint32 oom_kills)
{
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    const Berth__Usage *usage = berthd_test_task(record)->usage;
    assert_non_null(usage);
    assert_int_equal(usage->memory_total_mib, 64);
    assert_int_equal(usage->memory_available_mib, available_mib);
    assert_int_equal(usage->psi_memory_some, psi);
    assert_int_equal(usage->oom_kills, oom_kills);
    assert_int_equal(usage->cpu_usec, 5000000);
}

static void change_is_added_to_what_was_said(void **state)
{
    BerthdTest *test = *state;
    guint64 job = start(test);
    Words words;
    say_whole(test, job);
    assert_usage(test, job, 40, 300, 0);
    begin(&words, job);
    words.change.usage = &words.usage;
    words.usage.memory_available_mib = 20;
    words.usage.oom_kills = 2;
    words.change.zeros = (uint32_t[]){10, 9}; /* psi_memory_full, psi_memory_some */
    words.change.n_zeros = 2;
    for (guint twice = 0; twice < 2; twice++) { /* it was sent again */
        assert_int_equal(report(test, &words)->n_unknown, 0);
        assert_usage(test, job, 20, 0, 2);
    }
}

static void say_pressure(BerthdTest *test, guint64 job, guint32 psi_cpu, guint32 psi_io,
                         guint32 throttled_permille)
{
    Words words;
    begin(&words, job);
    words.change.whole = TRUE;
    words.change.usage = &words.usage;
    words.usage.cpu_usec = 5000000;
    words.usage.memory_total_mib = 64;
    words.usage.memory_available_mib = 40;
    words.usage.psi_cpu_some = psi_cpu;
    words.usage.psi_io_some = psi_io;
    words.usage.throttled_permille = throttled_permille;
    words.usage.rate_msec = 10000;
    assert_int_equal(report(test, &words)->n_unknown, 0);
}

/* For a CPU, for its disk, or as its quota was used up. */
static void who_waits_most_is_first_in_the_order_of_pressure(void **state)
{
    BerthdTest *test = *state;
    guint64 of_cpu = start(test), of_disk = start(test), of_quota = start(test);
    Berth__TopRequest request = BERTH__TOP_REQUEST__INIT;
    say_pressure(test, of_cpu, 1000, 0, 0);
    say_pressure(test, of_disk, 100, 2000, 0);
    say_pressure(test, of_quota, 100, 0, 300);
    request.order = BERTH__TOP_REQUEST__ORDER__BY_PRESSURE;
    request.guest_limit = 3;
    Berth__TopReply *top =
        berthd_fixture_call(test->berthd, &berth__nodes__descriptor, "Top", &request.base);
    assert_int_equal(top->n_guests, 3);
    assert_int_equal(top->guests[0]->task->job, of_quota);
    assert_int_equal(top->guests[1]->task->job, of_disk);
    assert_int_equal(top->guests[2]->task->job, of_cpu);
    berth_message_free(&top->base);
}

static void output_is_told_of_without_usage(void **state)
{
    BerthdTest *test = *state;
    guint64 job = start(test);
    Words words;
    begin(&words, job);
    words.change.stdout_bytes = 7;
    assert_int_equal(report(test, &words)->n_unknown, 0);
    say_whole(test, job);
    assert_int_equal(report(test, &words)->n_unknown, 0);
    assert_usage(test, job, 40, 300, 0);
}

/* Berthd was restarted, or this is its first word: it does not guess at what is left out. */
static void change_of_what_was_never_said_is_asked_for_wholly(void **state)
{
    BerthdTest *test = *state;
    guint64 job = start(test);
    Words words;
    begin(&words, job);
    words.change.usage = &words.usage;
    words.usage.memory_available_mib = 20;
    const Berth__ReportReply *reply = report(test, &words);
    assert_int_equal(reply->n_unknown, 1);
    assert_int_equal(reply->unknown[0]->job, job);
    assert_int_equal(reply->unknown[0]->epoch, 1);
    say_whole(test, job);
    assert_int_equal(report(test, &words)->n_unknown, 0);
    assert_usage(test, job, 20, 300, 0);
}

static void restarted_daemon_asks_for_all_of_it(void **state)
{
    BerthdTest *test = *state;
    guint64 job = start(test);
    Words words;
    say_whole(test, job);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_start(test->berthd);
    run_until(fake_agent_is_joined(test->agent));
    begin(&words, job);
    words.change.usage = &words.usage;
    words.usage.psi_memory_some = 700;
    assert_int_equal(report(test, &words)->n_unknown, 1);
    say_whole(test, job);
    assert_int_equal(report(test, &words)->n_unknown, 0);
    assert_usage(test, job, 40, 700, 0);
}

/* A node may say what it likes of guests that it does not have. */
static void guest_of_nobody_is_neither_taken_nor_asked_for(void **state)
{
    BerthdTest *test = *state;
    guint64 job = start(test);
    Words words;
    begin(&words, job);
    words.change.whole = TRUE;
    words.change.usage = &words.usage;
    words.usage.memory_total_mib = 32;
    words.id.epoch = 2;
    assert_int_equal(report(test, &words)->n_unknown, 0);
    words.id.job = 4711;
    assert_int_equal(report(test, &words)->n_unknown, 0);
    words.change.id = NULL;
    assert_int_equal(report(test, &words)->n_unknown, 0);
    say_whole(test, job);
    assert_usage(test, job, 40, 300, 0);
}

/* It was never measured before, and nothing is taken of it any more. */
static void guest_that_is_to_go_while_it_boots_is_no_matter(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.boot_msec = 3600000};
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    run_until(fake_agent_n_guests(test->agent) == 1);
    fake_agent_set_delay(test->agent, 3600000); /* it is being released, and that is not answered */
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    Berth__GuestStatus status = BERTH__GUEST_STATUS__INIT;
    id.job = job;
    id.epoch = 1;
    status.id = &id;
    status.phase = BERTH__GUEST_STATUS__PHASE__GONE;
    status.reason = BERTH__REASON__REASON_BOOT_DEADLINE;
    guint n = fake_agent_n_answers(test->agent);
    fake_agent_say(test->agent, &status);
    run_until(fake_agent_n_answers(test->agent) == n + 1);
    Words words;
    begin(&words, job);
    words.change.whole = TRUE;
    words.change.usage = &words.usage;
    words.usage.memory_total_mib = 64;
    assert_int_equal(report(test, &words)->n_unknown, 0);
    assert_int_equal(report(test, &words)->n_unknown, 0);
}

static void node_is_shown_as_it_was_told(void **state)
{
    BerthdTest *test = *state;
    Berth__GetNodeRequest request = BERTH__GET_NODE_REQUEST__INIT;
    Words words;
    begin(&words, 1);
    words.request.n_changes = 0;
    words.request.node = &words.node;
    words.node.memory_total_mib = 1000;
    words.node.guests_used_mib = 300;
    words.node.psi_io_full = 17;
    report(test, &words);
    request.name = (char *)"n1";
    Berth__Node *node =
        berthd_fixture_call(test->berthd, &berth__nodes__descriptor, "Get", &request.base);
    assert_int_equal(node->usage->memory_total_mib, 1000);
    assert_int_equal(node->usage->guests_used_mib, 300);
    assert_int_equal(node->usage->psi_io_full, 17);
    berth_message_free(&node->base);
}

/* --- processes that a guest's kernel ended -------------------------------------------------------- */

static void say_kills(BerthdTest *test, guint64 job, guint32 kills)
{
    Words words;
    begin(&words, job);
    words.change.whole = TRUE;
    words.change.usage = &words.usage;
    words.usage.memory_total_mib = 64;
    words.usage.oom_kills = kills;
    assert_int_equal(report(test, &words)->n_unknown, 0);
}

static const Berth__Event *kills_event(BerthdTest *test, guint at)
{
    const GPtrArray *events = berthd_fixture_events(test->berthd);
    for (guint i = 0; i < events->len; i++) {
        const Berth__Event *event = g_ptr_array_index(events, i);
        if (event->kind == BERTH__EVENT__KIND__GUEST_OOM_KILL && at-- == 0)
            return event;
    }
    return NULL;
}

/* A guest that reports another one with each report, as a hostile one may, fills no log with that. What was not told of is
 * in the next one: at once after a restart of berthd, which knows what it told, and not when. */
static void processes_that_a_kernel_ended_are_told_of_once(void **state)
{
    BerthdTest *test = *state;
    guint64 job = start(test);
    say_kills(test, job, 2);
    run_until(kills_event(test, 0) != NULL);
    const Berth__Event *first = kills_event(test, 0);
    assert_int_equal(first->job, job);
    assert_string_equal(first->node, "n1");
    assert_int_equal(first->reason, BERTH__REASON__REASON_MEMORY_LIMIT);
    assert_true(g_str_has_prefix(first->text, "its guest's kernel ended 2 processes, as its 64M of "
                                              "memory are too little"));
    for (guint32 kills = 2; kills <= 40; kills++)
        say_kills(test, job, kills);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_start(test->berthd);
    run_until(fake_agent_is_joined(test->agent));
    say_kills(test, job, 2);
    say_kills(test, job, 40);
    run_until(kills_event(test, 1) != NULL);
    assert_true(g_str_has_prefix(kills_event(test, 1)->text,
                                 "its guest's kernel ended 38 processes (40 in all)"));
    say_kills(test, job, 41);
    fake_agent_end(test->agent, job, 0);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    assert_null(kills_event(test, 2));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, berthd_test_setup, berthd_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(change_is_added_to_what_was_said),
        TEST(who_waits_most_is_first_in_the_order_of_pressure),
        TEST(output_is_told_of_without_usage),
        TEST(change_of_what_was_never_said_is_asked_for_wholly),
        TEST(restarted_daemon_asks_for_all_of_it),
        TEST(guest_of_nobody_is_neither_taken_nor_asked_for),
        TEST(guest_that_is_to_go_while_it_boots_is_no_matter),
        TEST(node_is_shown_as_it_was_told),
        TEST(processes_that_a_kernel_ended_are_told_of_once),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
