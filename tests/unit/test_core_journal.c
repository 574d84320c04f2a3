/* SPDX-License-Identifier: Apache-2.0 */
/* The core's log as text: what is written is read back as the same. */
#include "scheduler/core/journal.h"
#include "tests/lib/assert.h"

static void journal_action_has_its_balloon(void **state)
{
    g_autoptr(GString) text = g_string_new(NULL);
    BerthCoreAction action = {.kind = BERTH_ACTION_RESIZE,
                              .guest = {7, 0, 0, 3},
                              .node = 2,
                              .serial = 4,
                              .resources = {2, 512, 0},
                              .balloon_mib = 77,
                              .is_opportunistic = TRUE};
    berth_journal_action(text, &action);
    assert_string_equal(text->str, "action kind=10 guest.job=7 guest.epoch=3 node=2 serial=4 "
                                   "resources.vcpus=2 resources.memory_mib=512 balloon_mib=77 "
                                   "is_opportunistic=1\n");
}

static void journal_lines_are_read_back_as_they_were_written(void **state)
{
    static const char *const lines[] = {
        "event 5 submitted guest.job=7 submitted.id=7 submitted.uid=1000 "
        "submitted.resources.vcpus=2 submitted.resources.memory_mib=512 "
        "submitted.time_limit_usec=9000000 submitted.priority=-3 submitted.held=1 "
        "submitted.guests=4 submitted.family=18446744073709551615 submitted.may_move=1 "
        "nodes=3,1,2 dependencies=2:5:0,1:6:4",
        "event 5 submitted submitted.id=8 submitted.array_size=9 dependencies=6:3:0 "
        "indices=0:8:1 held-tasks=1:3:2 held-tasks-by-operator=5:5:1,7:8:1 completed=3:0:1:1",
        "event 5 cancelled guest.job=7 request.by_operator=1",
        "event 5 cancelled guest.job=8 request.tasks.first=1 request.tasks.last=3 "
        "request.tasks.step=2 others=5:9:4,12:12:1",
        "event 5 held guest.job=8 request.tasks.first=1 request.tasks.last=3 request.tasks.step=2 "
        "others=5:9:4,12:12:1",
        "event 5 held guest.job=7",
        "event 5 unheld guest.job=7",
        "event 5 freeze-wanted guest.job=7 request.by_operator=1",
        "event 5 freeze-wanted guest.job=8 request.tasks.step=1 others=4:4:1",
        "event 5 thaw-wanted guest.job=7",
        "event 6 joined node=2 joined.info.capacity.vcpus=8 joined.info.capacity.memory_mib=4096 "
        "joined.info.cannot_start=1 joined.info.rack=1 found=7:0:1:3:2:55:0:0:0:0:0:0:0 "
        "cells=4:2048,4:2048",
        "event 6 left node=2",
        "event 6 changed node=2 changed.capacity.vcpus=8 changed.capacity.memory_mib=4096 "
        "changed.cannot_start=1 changed.fabric=2 cells=4:2048,4:2048",
        "event 6 start-taken guest.job=7 guest.guest=2 guest.epoch=3",
        "event 7 running guest.job=7 guest.task=1 guest.guest=2 guest.epoch=3 node=2 "
        "running.start_usec=6",
        "event 8 exited guest.job=7 guest.epoch=3 node=2 more=1 exited.start_usec=6 "
        "exited.end_usec=8 exited.exit.status=1 exited.exit.disk_full=1",
        "event 8 gone guest.job=7 gone.reason=28",
        "event 8 start-failed guest.job=7 start_failed.reason=30 start_failed.permanent=1",
        "event 8 released guest.job=7",
        "event 8 fenced guest.job=7",
        "event 8 fence-failed guest.job=7",
        "event 8 storage-down",
        "event 8 storage-up",
        "event 9 timer",
        "event 9 reported guest.job=7 usage.cpu_milli=1500 usage.memory_used_mib=300 "
        "usage.touched_mib=310",
        "event 9 node-reported node=2 node_usage.cpu_milli=1500 "
        "node_usage.memory_pressure_permille=100 node_usage.memory_available_mib=77",
        "event 9 migrate-wanted guest.job=7 node=2 request.by_operator=1",
        "event 9 migrate-unwanted guest.job=7",
        "event 9 resize-wanted guest.job=7 request.by_operator=1 request.resources.vcpus=3 "
        "request.resources.memory_mib=512",
        "event 9 time-limit-set guest.job=7 request.by_operator=1 request.time_limit_usec=70",
        "event 9 migrated guest.job=7 result.ok=1 result.serial=3",
        "event 9 checkpointed guest.job=7 result.reason=29 result.paused_usec=5 "
        "result.stored_mib=30",
        "event 9 checkpoint-wanted guest.job=7 request.by_operator=1",
        "event 9 restore-wanted guest.job=7 request.checkpoint.serial=2 request.checkpoint.epoch=1 "
        "request.checkpoint.ran_usec=70 request.checkpoint.resources.vcpus=3 "
        "request.checkpoint.resources.memory_mib=96",
        "event 9 checkpoints-changed guest.job=7 checkpoints.newest.serial=2 "
        "checkpoints.newest.epoch=1 checkpoints.newest.ran_usec=70 "
        "checkpoints.newest.resources.vcpus=3 checkpoints.newest.resources.memory_mib=96 "
        "checkpoints.stored_mib=30",
        "event 9 frozen guest.job=7 result.ok=1",
        "event 9 thawed guest.job=7 result.ok=1",
        "event 9 resized guest.job=7 result.ok=1",
        "event 9 cordoned node=2",
        "event 9 drained node=2",
        "event 9 undrained node=2",
        "event 9 given-up node=2",
        "event 9 account-set account_set.account=1 account_set.shares=5 "
        "account_set.limits.memory_mib=77",
        "event 9 user-set user_set.account=1 user_set.uid=1000 user_set.limits.jobs=9",
        "event 9 qos-set qos_set.qos=1 qos_set.priority_permille=-500",
        "event 9 maintenance-set maintenance.id=1 maintenance.start_usec=10 "
        "maintenance.end_usec=20 nodes=1,2",
        "event 9 maintenance-cleared maintenance.id=1",
    };
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
        BerthJournalEntry entry;
        g_autoptr(GError) error = NULL;
        g_autoptr(GString) again = g_string_new(NULL);
        g_autofree char *line = g_strdup(lines[i]);
        g_autofree char *expected = g_strconcat(lines[i], "\n", NULL);
        if (!berth_journal_parse(line, &entry, &error))
            fail_msg("%s: %s", lines[i], error->message);
        assert_int_equal(entry.kind, BERTH_JOURNAL_EVENT);
        berth_journal_event(again, entry.now_usec, &entry.event);
        assert_string_equal(again->str, expected);
        berth_journal_entry_clear(&entry);
    }
}

static void journal_restored_lines_are_read_back_as_they_were_written(void **state)
{
    static const char *const lines[] = {
        "restored-use use.account=3 use.uid=1000 use.is_user=1 use.used_mib_sec=5000000000 "
        "use.at_usec=7",
        "restored-prior prior.uid=1000 prior.family=18446744073709551615 prior.vcpus=2 "
        "prior.memory_mib=512 prior.n=3 prior.peak_milli=1500 prior.peak_mib=400",
        "restored-node node=2 joined.info.capacity.vcpus=8 joined.info.capacity.memory_mib=4096 "
        "joined.info.rack=1 cells=4:2048,4:2048 restored_node.state=2 restored_node.since_usec=5 "
        "restored_node.admission=2 restored_node.has_joined=1",
        "restored-job submitted.id=7 submitted.uid=1000 submitted.resources.vcpus=2 "
        "submitted.array_size=9 submitted.has_indices=1 submitted.has_failed=1 nodes=1,2 "
        "indices=0:8:2,11:11:1 held-tasks=2:2:1 held-tasks-by-operator=4:6:2 completed=3:0:1:1 "
        "tasks=0:2:0:2:0:2:1:1:0:0:0:55:0:2:1:9:3:96:4:300:164:56:5:50:1:8:7:0:33:1500:400:50:44:1:"
        "1:0:"
        "0:0:3:96:2:128:54:1:1:0:32:16:4:5:40:41:1:1:8:2,"
        "8:1:5:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:"
        "0:"
        "0:0:0:0:0:0:0:0:0:0"};
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
        BerthJournalEntry entry;
        g_autoptr(GError) error = NULL;
        g_autoptr(GString) again = g_string_new(NULL);
        g_autofree char *line = g_strdup(lines[i]);
        g_autofree char *expected = g_strconcat(lines[i], "\n", NULL);
        if (!berth_journal_parse(line, &entry, &error))
            fail_msg("%s: %s", lines[i], error->message);
        berth_journal_restored(again, &entry);
        assert_string_equal(again->str, expected);
        berth_journal_entry_clear(&entry);
    }
}

static void journal_restored_job_has_its_tasks(void **state)
{
    char line[] =
        "restored-job submitted.id=7 submitted.array_size=9 "
        "tasks=8:2:0:3:17:2:4:1:5:6:7:55:56:2:3:70:5:97:4:300:164:56:5:58:1:8:9:77:33:1500:"
        "400:50:66:1:0:2:52:1:3:96:2:128:55:1:1:1:32:16:17:5:40:41:1:1:0:0";
    BerthJournalEntry entry;
    assert_true(berth_journal_parse(line, &entry, NULL));
    assert_int_equal(entry.kind, BERTH_JOURNAL_RESTORED_JOB);
    assert_int_equal(entry.event.submitted.id, 7);
    assert_int_equal(entry.restored_job.n_tasks, 1);
    const BerthCoreTask *task = entry.restored_job.tasks;
    assert_int_equal(task->task, 8);
    assert_int_equal(task->state, BERTH_JOB_RUNNING);
    assert_int_equal(task->phase, BERTH_GUEST_STOPPING);
    assert_int_equal(task->node, 2);
    assert_int_equal(task->epoch, 4);
    assert_true(task->start_taken);
    assert_int_equal(task->not_before_usec, 7);
    assert_int_equal(task->checkpoint, 2);
    assert_int_equal(task->checkpoint_epoch, 3);
    assert_int_equal(task->checkpoint_ran_usec, 70);
    assert_int_equal(task->checkpoint_resources.vcpus, 5);
    assert_int_equal(task->checkpoint_resources.memory_mib, 97);
    assert_int_equal(task->checkpoint_last, 4);
    assert_int_equal(task->checkpoint_requeues, 1);
    assert_int_equal(task->checkpoints_mib, 300);
    assert_int_equal(task->checkpoint_space_mib, 164);
    assert_int_equal(task->checkpoint_wanted, BERTH_REASON_CHECKPOINTED_BY_USER);
    assert_int_equal(task->checkpoint_open, 5);
    assert_int_equal(task->checkpoint_reason, BERTH_REASON_CHECKPOINT_DUE);
    assert_true(task->checkpoint_stops);
    assert_int_equal(task->checkpoint_usec, 8);
    assert_int_equal(task->checkpoint_missed_usec, 9);
    assert_int_equal(task->checkpoint_doubted, 5);
    assert_int_equal(task->checkpoint_doubted_ran_usec, 40);
    assert_int_equal(task->drain_missed_usec, 41);
    assert_true(task->freeze_to_disk);
    assert_int_equal(task->ran_usec, 77);
    assert_int_equal(task->starved_usec, 33);
    assert_int_equal(task->peak_milli, 1500);
    assert_int_equal(task->peak_mib, 400);
    assert_int_equal(task->freeze_reason, BERTH_REASON_FROZEN_BY_USER);
    assert_int_equal(task->frozen_usec, 66);
    assert_false(task->freeze_is_open);
    assert_true(task->wants_backing);
    assert_int_equal(task->migrate_to, 2);
    assert_int_equal(task->migrate_reason, BERTH_REASON_MOVED_BY_USER);
    assert_true(task->migrate_is_unwanted);
    assert_true(task->waits_for_room);
    assert_int_equal(task->resources.vcpus, 3);
    assert_int_equal(task->resources.memory_mib, 96);
    assert_int_equal(task->resize_to.vcpus, 2);
    assert_int_equal(task->resize_to.memory_mib, 128);
    assert_int_equal(task->resize_reason, BERTH_REASON_RESIZED_BY_OPERATOR);
    assert_true(task->is_opportunistic && task->is_opportunistic_there);
    assert_int_equal(task->balloon_mib, 32);
    assert_int_equal(task->to_balloon_mib, 16);
    assert_int_equal(task->short_usec, 17);
    berth_journal_entry_clear(&entry);
}

static void journal_submission_is_that_of_the_event(void **state)
{
    char line[] = "event 5 submitted submitted.id=7 submitted.priority=-3 nodes=3,1 "
                  "dependencies=2:5:0";
    BerthJournalEntry entry;
    assert_true(berth_journal_parse(line, &entry, NULL));
    const BerthCoreJob *job = &entry.event.submitted;
    assert_int_equal(entry.now_usec, 5);
    assert_int_equal(entry.event.kind, BERTH_EVENT_JOB_SUBMITTED);
    assert_int_equal(job->id, 7);
    assert_int_equal(job->priority, -3);
    assert_int_equal(job->n_nodes, 2);
    assert_int_equal(job->nodes[1], 1);
    assert_int_equal(job->n_dependencies, 1);
    assert_int_equal(job->dependencies[0].kind, BERTH_AFTER_OK);
    assert_int_equal(job->dependencies[0].job, 5);
    berth_journal_entry_clear(&entry);
}

static void journal_config_carries_every_constant(void **state)
{
    gint64 tunings[BERTH_TUNING_N];
    BerthCoreConfig config = {.node_timeout_usec = 9,
                              .policy = BERTH_POLICY_EASY,
                              .features = 5,
                              .can_fence = TRUE,
                              .tunings = tunings};
    BerthJournalEntry entry;
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < BERTH_TUNING_N; i++) {
        const BerthCoreTuningInfo *info = berth_core_tuning((BerthCoreTuning)i);
        tunings[i] = i % 2 == 0 ? info->min : info->max;
    }
    berth_journal_config(text, &config);
    g_string_truncate(text, text->len - 1);
    assert_true(berth_journal_parse(text->str, &entry, NULL));
    assert_int_equal(entry.kind, BERTH_JOURNAL_CONFIG);
    assert_int_equal(entry.config.node_timeout_usec, 9);
    assert_int_equal(entry.config.policy, BERTH_POLICY_EASY);
    assert_int_equal(entry.config.features, 5);
    assert_true(entry.config.can_fence);
    assert_memory_equal(entry.tunings, tunings, sizeof tunings);
    berth_journal_entry_clear(&entry);
}

static void journal_bad_lines_are_refused(void **state)
{
    static const char *const lines[] = {"",
                                        "evnt 5 timer",
                                        "event",
                                        "event 5",
                                        "event x timer",
                                        "event -1 timer",
                                        "event 5 tick",
                                        "event 5 timer guest.job",
                                        "event 5 timer luck=1",
                                        "event 5 left node=x",
                                        "event 5 left node=4294967296",
                                        "event 5 submitted nodes=",
                                        "event 5 submitted nodes=1,,2",
                                        "event 5 submitted nodes=1 nodes=2",
                                        "event 5 submitted held-tasks=3:3:0",
                                        "event 5 submitted held-tasks-by-operator=3:2:1",
                                        "event 5 submitted completed=3:5:4:1",
                                        "event 5 held request.tasks.first=3 request.tasks.step=1",
                                        "event 5 held request.tasks.step=1 others=3:2:1",
                                        "event 5 cancelled request.tasks.step=1 others=3:5:0",
                                        "event 5 cancelled request.tasks.step=1 others=0:5:1",
                                        "event 5 cancelled request.tasks.step=1 others=9:9:1,5:5:1",
                                        "event 5 cancelled others=3:5:1",
                                        "event 5 freeze-wanted request.tasks.step=1 others=3:5:0",
                                        "restored-job held-tasks=3:3:0",
                                        "event 5 submitted dependencies=1:2",
                                        "event 5 joined cells=1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1,1:1",
                                        "node 0 a",
                                        "node 1",
                                        "resume",
                                        "resume now",
                                        "event 9223372036854775807 timer",
                                        "restored-node node=1",
                                        "restored-node restored_node.state=9",
                                        "restored-use prior.uid=1",
                                        "restored-job tasks=0:2:0:2",
                                        "restored-job tasks=0:2:0:9:0:2:1:1:0:0:0:55:0:0:0:0",
                                        "restored-job tasks=0:0:0:2:0:2:1:1:0:0:0:55:0:0:0:0",
                                        "event 5 submitted tasks=0:2:0:2:0:2:1:1:0:0:0:5:0:0:0:0",
                                        "restored",
                                        "config",
                                        "config policy=1",
                                        "config tunings=1,2",
                                        "config luck=1"};
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
        BerthJournalEntry entry;
        g_autoptr(GError) error = NULL;
        g_autofree char *line = g_strdup(lines[i]);
        if (berth_journal_parse(line, &entry, &error))
            fail_msg("accepted: %s", lines[i]);
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "");
    }
}

static void journal_numbers_out_of_range_are_named(void **state)
{
    static const struct {
        const char *line, *expected;
    } cases[] = {
        {"event 5 submitted submitted.resources.vcpus=-2",
         "submitted.resources.vcpus=-2: not a number from 0 to 4294967295"},
        {"event 5 submitted submitted.priority=2147483648",
         "submitted.priority=2147483648: not a number from -2147483648 to 2147483647"},
        {"event 5 submitted submitted.family=x",
         "submitted.family=x: not a number from 0 to 18446744073709551615"},
        {"event 5 joined cells=1:x", "memory_mib=x: not a number from 0"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        BerthJournalEntry entry;
        g_autoptr(GError) error = NULL;
        g_autofree char *line = g_strdup(cases[i].line);
        assert_false(berth_journal_parse(line, &entry, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].expected);
    }
}

/* Each constant, one above and one below its range. */
static void journal_constant_out_of_range_is_named(void **state)
{
    for (guint i = 0; i < 2 * BERTH_TUNING_N; i++) {
        const BerthCoreTuningInfo *info = berth_core_tuning((BerthCoreTuning)(i / 2));
        BerthJournalEntry entry;
        gint64 tunings[BERTH_TUNING_N];
        BerthCoreConfig config = {.tunings = tunings};
        g_autoptr(GError) error = NULL;
        g_autoptr(GString) text = g_string_new(NULL);
        for (guint k = 0; k < BERTH_TUNING_N; k++)
            tunings[k] = berth_core_tuning((BerthCoreTuning)k)->value;
        tunings[i / 2] = i % 2 == 0 ? info->min - 1 : info->max + 1;
        g_autofree char *expected =
            g_strdup_printf("tunings: %s=%" G_GINT64_FORMAT ": not a number from %" G_GINT64_FORMAT
                            " to %" G_GINT64_FORMAT,
                            info->name, tunings[i / 2], info->min, info->max);
        berth_journal_config(text, &config);
        g_string_truncate(text, text->len - 1);
        assert_false(berth_journal_parse(text->str, &entry, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(journal_action_has_its_balloon),
        cmocka_unit_test(journal_lines_are_read_back_as_they_were_written),
        cmocka_unit_test(journal_restored_lines_are_read_back_as_they_were_written),
        cmocka_unit_test(journal_restored_job_has_its_tasks),
        cmocka_unit_test(journal_submission_is_that_of_the_event),
        cmocka_unit_test(journal_config_carries_every_constant),
        cmocka_unit_test(journal_bad_lines_are_refused),
        cmocka_unit_test(journal_numbers_out_of_range_are_named),
        cmocka_unit_test(journal_constant_out_of_range_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
