/* SPDX-License-Identifier: Apache-2.0 */
/* What records say of decisions for people. */
#include "scheduler/daemon/told.h"

#include "tests/lib/assert.h"

#include <string.h>

#define NOW_USEC G_GINT64_CONSTANT(1790000000000000)

typedef struct {
    BerthTaskEntry entry;
    BerthCoreTask task; /* as the core has it */
    BerthNews news;
} Told;

static int setup(void **state)
{
    Told *told = g_new0(Told, 1);
    Berth__StoredTask stored = BERTH__STORED_TASK__INIT;
    Berth__Task task = BERTH__TASK__INIT;
    task.node = (char *)"n1";
    task.epoch = 1;
    task.state = BERTH__JOB_STATE__RUNNING;
    stored.task = &task;
    told->entry.stored = berth_pb_dup(&stored.base);
    told->task = (BerthCoreTask){.epoch = 1, .state = BERTH_JOB_RUNNING, .node = 1};
    *state = told;
    return 0;
}

static int teardown(void **state)
{
    Told *told = *state;
    berth__stored_task__free_unpacked(told->entry.stored, NULL);
    g_free(told);
    return 0;
}

static Berth__Task *record_of(Told *told)
{
    return told->entry.stored->task;
}

static void take(Told *told, const char *node)
{
    Berth__Job job = BERTH__JOB__INIT;
    job.memory_mib = 512;
    berth_told_take(&job, &told->entry, &told->task, node, NOW_USEC, &told->news);
    record_of(told)->epoch = told->task.epoch;
    told->entry.stored->checkpoint_missed_usec = (guint64)told->task.checkpoint_missed_usec;
    told->entry.stored->drain_missed_usec = (guint64)told->task.drain_missed_usec;
    berth_pb_set_string(&record_of(told)->node, node);
}

static void begin_move(Told *told)
{
    Berth__MigrationProgress progress = BERTH__MIGRATION_PROGRESS__INIT;
    progress.to = (char *)"n2";
    progress.reason = BERTH__REASON__REASON_PRESSURE;
    record_of(told)->migration = berth_pb_dup(&progress.base);
}

static void assert_moved(Told *told, const char *from, const char *to, Berth__Reason reason,
                         gboolean from_checkpoint)
{
    const Berth__Move *moved = record_of(told)->moved;
    assert_non_null(moved);
    assert_string_equal(moved->from, from);
    assert_string_equal(moved->to, to);
    assert_int_equal(moved->reason, reason);
    assert_int_equal(moved->from_checkpoint, from_checkpoint);
    assert_int_equal(moved->time_usec, NOW_USEC);
}

static void move_is_noted_when_it_is_done(void **state)
{
    Told *told = *state;
    begin_move(told);
    take(told, "n1");
    assert_null(record_of(told)->moved);
    take(told, "n2");
    assert_moved(told, "n1", "n2", BERTH__REASON__REASON_PRESSURE, FALSE);
}

static void restore_is_a_move_and_a_new_start_is_none(void **state)
{
    Told *told = *state;
    record_of(told)->reason = BERTH__REASON__REASON_EVICTED;
    told->task.epoch = 2;
    told->task.checkpoint_epoch = 1;
    take(told, "n3");
    assert_moved(told, "n1", "n3", BERTH__REASON__REASON_EVICTED, TRUE);
    take(told, "n3"); /* nothing new */
    assert_moved(told, "n1", "n3", BERTH__REASON__REASON_EVICTED, TRUE);
    told->task.epoch = 3;
    told->task.checkpoint_epoch = 0;
    take(told, "n1");
    assert_null(record_of(told)->moved);
}

static void restore_that_is_tried_again_is_the_same_move(void **state)
{
    Told *told = *state;
    record_of(told)->reason = BERTH__REASON__REASON_EVICTED;
    told->task.epoch = 2;
    told->task.checkpoint_epoch = 1;
    take(told, "n3");
    record_of(told)->reason = BERTH__REASON__REASON_STARTING_LATER;
    told->entry.stored->start_failures = 1;
    told->task.epoch = 3;
    take(told, "n4");
    assert_moved(told, "n1", "n4", BERTH__REASON__REASON_EVICTED, TRUE);
    record_of(told)->reason = BERTH__REASON__REASON_EVICTED; /* it has run there */
    told->entry.stored->start_failures = 0;
    told->task.epoch = 4;
    take(told, "n5");
    assert_moved(told, "n4", "n5", BERTH__REASON__REASON_EVICTED, TRUE);
}

static void shortage_is_news_once_for_each_size(void **state)
{
    static const struct {
        guint64 memory_mib; /* 0 = as its job reserves */
        guint32 epoch;
        gboolean is_short, is_news;
    } steps[] = {
        {0, 1, FALSE, FALSE}, {0, 1, TRUE, TRUE},     {0, 1, TRUE, FALSE},
        {0, 1, FALSE, FALSE}, {0, 1, TRUE, FALSE},    {768, 1, FALSE, FALSE},
        {768, 1, TRUE, TRUE}, {768, 2, FALSE, FALSE}, {768, 2, TRUE, TRUE},
    };
    Told *told = *state;
    for (guint i = 0; i < G_N_ELEMENTS(steps); i++) {
        told->task.resources.memory_mib = steps[i].memory_mib;
        told->task.epoch = steps[i].epoch;
        told->task.short_usec = steps[i].is_short ? 5 : 0;
        take(told, "n1");
        if (told->news.is_short != steps[i].is_news)
            fail_msg("step %u", i);
        assert_int_equal(record_of(told)->short_usec, steps[i].is_short ? 5 : 0);
    }
}

static void short_job_is_told_why_it_gets_no_more(void **state)
{
    Berth__Job job = BERTH__JOB__INIT;
    Berth__Task task = BERTH__TASK__INIT;
    job.memory_mib = 512;
    g_autofree char *all = berth_told_short(&job, &task);
    assert_string_equal(all, "its 512M of memory are too little, and all that it may have "
                             "(--memory-max): it goes on, slowly");
    job.memory_max_mib = 2048;
    task.memory_mib = 1024;
    g_autofree char *full = berth_told_short(&job, &task);
    assert_string_equal(
        full, "its 1G of memory are too little; of the 2G that it may have there is no room "
              "for more where it is, nor on another node that it could be moved to: it goes "
              "on, slowly, and is grown as soon as there is");
}

static void missed_checkpoint_is_told_by_what_it_was_for(void **state)
{
    Told *told = *state;
    told->task.checkpoint_missed_usec = 7;
    take(told, "n1");
    assert_true(told->news.is_missed);
    assert_false(told->news.is_unsaved);
    assert_string_equal(record_of(told)->unsaved_text, "");
    told->task.checkpoint_missed_usec = 8;
    told->task.stop_reason = BERTH_REASON_TIME_LIMIT;
    take(told, "n1");
    assert_false(told->news.is_missed);
    assert_true(told->news.is_unsaved);
    assert_non_null(strstr(record_of(told)->unsaved_text, "checkpoint_space_mib"));
    take(told, "n1");
    assert_false(told->news.is_unsaved);
    assert_false(told->news.is_drain_missed);
    told->task.drain_missed_usec = 9;
    take(told, "n1");
    assert_true(told->news.is_drain_missed);
    assert_false(told->news.is_missed || told->news.is_unsaved);
    take(told, "n1");
    assert_false(told->news.is_drain_missed);
    told->entry.stored->freeze_to_disk = TRUE;
    told->task.freeze_reason = BERTH_REASON_FROZEN_BY_USER;
    told->task.stop_reason = BERTH_REASON_NONE;
    told->task.checkpoint_missed_usec = 10;
    take(told, "n1");
    assert_int_equal(told->news.not_to_disk, BERTH_REASON_FROZEN_BY_USER);
    assert_false(told->news.is_missed || told->news.is_unsaved);
    take(told, "n1");
    assert_int_equal(told->news.not_to_disk, BERTH_REASON_NONE);
    told->task.stop_reason = BERTH_REASON_TIME_LIMIT;
    told->task.checkpoint_missed_usec = 11;
    take(told, "n1");
    told->task.state = BERTH_JOB_TIMEOUT; /* it stays with what has ended */
    told->task.stop_reason = BERTH_REASON_NONE;
    take(told, "n1");
    assert_non_null(strstr(record_of(told)->unsaved_text, "checkpoint_space_mib"));
    told->task.state = BERTH_JOB_RUNNING; /* it was extended, and goes on */
    take(told, "n1");
    assert_string_equal(record_of(told)->unsaved_text, "");
}

#define TOLD(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TOLD(move_is_noted_when_it_is_done),
        TOLD(restore_is_a_move_and_a_new_start_is_none),
        TOLD(restore_that_is_tried_again_is_the_same_move),
        TOLD(shortage_is_news_once_for_each_size),
        cmocka_unit_test(short_job_is_told_why_it_gets_no_more),
        TOLD(missed_checkpoint_is_told_by_what_it_was_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
