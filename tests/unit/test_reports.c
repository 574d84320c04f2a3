/* SPDX-License-Identifier: Apache-2.0 */
/* What reports say of guests, in virtual time; the scheduler is a copy of what it was told. */
#include <config.h>

#include "common/delta.h"
#include "common/message.h"
#include "nodeagent/reports.h"
#include "tests/lib/assert.h"

#define SECOND   (gint64) G_USEC_PER_SEC
#define INTERVAL (5 * SECOND)

typedef struct {
    BerthReports *reports;
    BerthReportSource source; /* of the one guest */
    Berth__Usage usage;       /* as it is */
    Berth__Usage known;       /* as the scheduler has it */
    guint64 stdout_bytes;     /* likewise */
} Fixture;

static int setup(void **state)
{
    Fixture *fixture = g_new0(Fixture, 1);
    fixture->reports = berth_reports_new();
    berth__usage__init(&fixture->usage);
    berth__usage__init(&fixture->known);
    fixture->usage.memory_total_mib = 1024;
    fixture->usage.memory_available_mib = 900;
    fixture->usage.rate_msec = 5000;
    fixture->source = (BerthReportSource){.id = {1, 0, 0, 1}, .usage = &fixture->usage};
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    Fixture *fixture = *state;
    berth_reports_free(fixture->reports);
    g_free(fixture);
    return 0;
}

/* What would be sent at NOW_USEC; NULL: nothing. */
static const Berth__GuestReport *next(Fixture *fixture, gint64 now_usec)
{
    berth_reports_add(fixture->reports, &fixture->source, now_usec, INTERVAL);
    GPtrArray *all = berth_reports_next(fixture->reports);
    return all->len == 0 ? NULL : g_ptr_array_index(all, 0);
}

/* The scheduler takes it. */
static void take(Fixture *fixture, const Berth__GuestReport *report)
{
    if (report->whole)
        berth__usage__init(&fixture->known);
    berth_delta_apply(&fixture->known.base, report->usage ? &report->usage->base : NULL,
                      report->zeros, report->n_zeros);
    fixture->stdout_bytes = MAX(fixture->stdout_bytes, report->stdout_bytes);
}

static void answer(Fixture *fixture)
{
    const Berth__ReportReply reply = BERTH__REPORT_REPLY__INIT;
    berth_reports_answered(fixture->reports, &reply);
}

static void assert_told(Fixture *fixture, gint64 now_usec, gboolean whole)
{
    const Berth__GuestReport *report = next(fixture, now_usec);
    assert_non_null(report);
    assert_int_equal(report->whole, whole);
    take(fixture, report);
    answer(fixture);
    assert_true(berth_message_equal(&fixture->known.base, &fixture->usage.base));
}

static void first_report_is_whole_and_the_next_has_what_changed(void **state)
{
    Fixture *fixture = *state;
    fixture->usage.oom_kills = 1;
    fixture->usage.psi_memory_some = 300;
    assert_told(fixture, 10 * SECOND, TRUE);
    fixture->usage.psi_memory_some = 0;
    fixture->usage.memory_available_mib = 500;
    const Berth__GuestReport *report = next(fixture, 15 * SECOND);
    assert_non_null(report);
    assert_false(report->whole);
    assert_int_equal(report->usage->memory_available_mib, 500);
    assert_int_equal(report->usage->memory_total_mib, 0); /* as it was */
    assert_int_equal(report->n_zeros, 1);
    take(fixture, report);
    answer(fixture);
    assert_true(berth_message_equal(&fixture->known.base, &fixture->usage.base));
}

static void guest_that_does_not_change_is_told_of_after_pauses_that_double(void **state)
{
    Fixture *fixture = *state;
    static const gint64 at[] = {5, 15, 35, 75, 135, 195, 255};
    guint n = 0;
    assert_told(fixture, 1000 * SECOND, TRUE);
    for (gint64 second = 1; second <= 255; second++) {
        fixture->usage.cpu_usec += 1000; /* a counter is no news by itself */
        const Berth__GuestReport *report = next(fixture, (1000 + second) * SECOND);
        if (report == NULL)
            continue;
        assert_int_equal(second, at[n++]);
        take(fixture, report);
        answer(fixture);
        assert_int_equal(fixture->known.cpu_usec, fixture->usage.cpu_usec);
    }
    assert_int_equal(n, G_N_ELEMENTS(at));
}

static void pauses_begin_anew_with_news(void **state)
{
    Fixture *fixture = *state;
    assert_told(fixture, 1000 * SECOND, TRUE);
    assert_told(fixture, 1005 * SECOND, FALSE);
    assert_null(next(fixture, 1011 * SECOND));
    fixture->usage.cpu_milli = 700;
    assert_told(fixture, 1012 * SECOND, FALSE);
    assert_null(next(fixture, 1016 * SECOND));
    assert_told(fixture, 1017 * SECOND, FALSE);
}

static void guest_near_a_limit_is_told_of_every_interval_and_of_all_that_changes(void **state)
{
    Fixture *fixture = *state;
    fixture->source.is_near = TRUE;
    assert_told(fixture, 1000 * SECOND, TRUE);
    for (guint i = 1; i <= 10; i++) {
        assert_null(next(fixture, 1000 * SECOND + i * INTERVAL - SECOND));
        assert_told(fixture, 1000 * SECOND + i * INTERVAL, FALSE);
    }
    fixture->usage.memory_available_mib--;
    assert_told(fixture, 1051 * SECOND, FALSE);
    fixture->usage.psi_memory_some++;
    assert_told(fixture, 1052 * SECOND, FALSE);
}

/* The scheduler has taken it, and its answer was lost; meanwhile what had changed has changed back. */
static void report_that_was_taken_and_not_answered_does_no_harm(void **state)
{
    Fixture *fixture = *state;
    assert_told(fixture, 1000 * SECOND, TRUE);
    fixture->usage.memory_available_mib = 100;
    fixture->usage.oom_kills = 3;
    take(fixture, next(fixture, 1001 * SECOND));
    berth_reports_lost(fixture->reports);
    fixture->usage.memory_available_mib = 900;
    assert_told(fixture, 1002 * SECOND, TRUE);
}

static void report_that_was_not_taken_is_made_up_for(void **state)
{
    Fixture *fixture = *state;
    assert_told(fixture, 1000 * SECOND, TRUE);
    fixture->usage.memory_available_mib = 100;
    assert_non_null(next(fixture, 1001 * SECOND));
    berth_reports_lost(fixture->reports);
    assert_told(fixture, 1002 * SECOND, TRUE);
    fixture->usage.memory_available_mib = 200;
    assert_told(fixture, 1003 * SECOND, FALSE);
}

static void guest_that_the_scheduler_does_not_know_is_told_of_wholly(void **state)
{
    Fixture *fixture = *state;
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    Berth__GuestId *unknown[] = {&id};
    Berth__ReportReply reply = BERTH__REPORT_REPLY__INIT;
    assert_told(fixture, 1000 * SECOND, TRUE);
    fixture->usage.memory_available_mib = 100;
    assert_non_null(next(fixture, 1001 * SECOND));
    id.job = 1;
    id.epoch = 1;
    reply.unknown = unknown;
    reply.n_unknown = 1;
    berth_reports_answered(fixture->reports, &reply);
    assert_told(fixture, 1002 * SECOND, TRUE);
    berth_reports_reset(fixture->reports); /* it joins again */
    assert_told(fixture, 1003 * SECOND, TRUE);
}

static void whole_report_comes_now_and_then(void **state)
{
    Fixture *fixture = *state;
    assert_told(fixture, 1000 * SECOND, TRUE);
    for (guint i = 1; i < 60; i++) {
        fixture->usage.cpu_milli = i % 2 * 1000;
        assert_told(fixture, (1000 + 10 * i) * SECOND, FALSE);
    }
    fixture->usage.cpu_milli = 0;
    assert_told(fixture, 1600 * SECOND, TRUE);
}

static void output_and_a_move_are_told_of_without_usage(void **state)
{
    Fixture *fixture = *state;
    Berth__MigrationProgress migration = BERTH__MIGRATION_PROGRESS__INIT;
    assert_told(fixture, 1000 * SECOND, TRUE);
    fixture->source.durable[BERTH_STDOUT] = 7;
    const Berth__GuestReport *report = next(fixture, 1001 * SECOND);
    assert_null(report->usage);
    assert_int_equal(report->n_zeros, 0);
    assert_false(report->whole);
    take(fixture, report);
    answer(fixture);
    assert_int_equal(fixture->stdout_bytes, 7);
    assert_null(next(fixture, 1002 * SECOND));
    migration.memory_left_bytes = 5;
    fixture->source.migration = &migration;
    report = next(fixture, 1003 * SECOND);
    assert_int_equal(report->migration->memory_left_bytes, 5);
    answer(fixture);
    fixture->source.migration = NULL;
    assert_null(next(fixture, 1004 * SECOND));
    assert_told(fixture, 1005 * SECOND, FALSE); /* its usage was told of at 1000 */
}

static void news_cases(void **state)
{
    static const struct {
        gsize offset;
        guint64 small, enough;
    } cases[] = {
        {G_STRUCT_OFFSET(Berth__Usage, memory_available_mib), 915, 916},
        {G_STRUCT_OFFSET(Berth__Usage, memory_total_mib), 1024, 1025},
        {G_STRUCT_OFFSET(Berth__Usage, host_memory_mib), 31, 32},
        {G_STRUCT_OFFSET(Berth__Usage, swap_used_mib), 15, 16},
        {G_STRUCT_OFFSET(Berth__Usage, disk_write_bytes), (64u << 20) - 1, 64u << 20},
        {G_STRUCT_OFFSET(Berth__Usage, net_receive_bytes), (64u << 20) - 1, 64u << 20},
        {G_STRUCT_OFFSET(Berth__Usage, cpu_usec), G_MAXUINT64, 0},
    };
    const Fixture *fixture = *state;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Berth__Usage now = fixture->usage;
        guint64 *member = G_STRUCT_MEMBER_P(&now, cases[i].offset);
        *member = cases[i].small;
        assert_false(berth_report_is_news(&fixture->usage, &now, FALSE));
        *member = cases[i].enough;
        assert_int_equal(berth_report_is_news(&fixture->usage, &now, FALSE), cases[i].enough != 0);
    }
    Berth__Usage now = fixture->usage;
    now.psi_io_some = 99;
    now.cpu_milli = 49;
    now.starved_permille = 19;
    assert_false(berth_report_is_news(&fixture->usage, &now, FALSE));
    now.starved_permille = 20;
    assert_true(berth_report_is_news(&fixture->usage, &now, FALSE));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(first_report_is_whole_and_the_next_has_what_changed),
        TEST(guest_that_does_not_change_is_told_of_after_pauses_that_double),
        TEST(pauses_begin_anew_with_news),
        TEST(guest_near_a_limit_is_told_of_every_interval_and_of_all_that_changes),
        TEST(report_that_was_taken_and_not_answered_does_no_harm),
        TEST(report_that_was_not_taken_is_made_up_for),
        TEST(guest_that_the_scheduler_does_not_know_is_told_of_wholly),
        TEST(whole_report_comes_now_and_then),
        TEST(output_and_a_move_are_told_of_without_usage),
        TEST(news_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
