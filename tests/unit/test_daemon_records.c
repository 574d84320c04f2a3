/* SPDX-License-Identifier: Apache-2.0 */
/* Between the core, the store and what nodes say. */
#include "tests/lib/assert.h"

#include "common/ranges.h"
#include "scheduler/daemon/job_records.h"
#include "scheduler/daemon/records.h"
#include "scheduler/daemon/usage.h"

/* An entry as the job table makes it. */
static BerthJobTable *table_with_job(void)
{
    BerthJobTable *table = berth_job_table_new();
    Berth__Job job = BERTH__JOB__INIT;
    job.id = 7;
    job.uid = 1000;
    job.image = (char *)"busybox";
    job.vcpus = 2;
    job.memory_mib = 128;
    job.time_limit_sec = 60;
    berth_job_table_add_task(berth_job_table_add(table, berth_pb_dup(&job.base)), 0, NULL);
    return table;
}

static const BerthCoreTask core_tasks[] = {
    {.job = 7, .state = BERTH_JOB_PENDING, .reason = BERTH_REASON_NONE},
    {.job = 7,
     .state = BERTH_JOB_RUNNING,
     .phase = BERTH_GUEST_STARTING,
     .node = 3,
     .epoch = 1,
     .start_taken = TRUE},
    {.job = 7,
     .state = BERTH_JOB_RUNNING,
     .phase = BERTH_GUEST_STOPPING,
     .stop_reason = BERTH_REASON_TIME_LIMIT,
     .node = 3,
     .epoch = 2,
     .requeues = 1,
     .start_usec = 1234567,
     .checkpoint_epoch = 1,
     .ran_usec = 77,
     .starved_usec = 55,
     .peak_milli = 1500,
     .peak_mib = 444},
    {.job = 7,
     .state = BERTH_JOB_SUSPENDED,
     .reason = BERTH_REASON_FROZEN_BY_USER,
     .phase = BERTH_GUEST_RUNNING,
     .node = 3,
     .epoch = 2,
     .start_usec = 1234567,
     .freeze_reason = BERTH_REASON_FROZEN_BY_OPERATOR,
     .frozen_usec = 1234577,
     .freeze_is_open = TRUE,
     .resources = {.vcpus = 3, .memory_mib = 96},
     .resize_to = {.vcpus = 2, .memory_mib = 512},
     .resize_reason = BERTH_REASON_RESIZED_BY_OPERATOR},
    {.job = 7,
     .state = BERTH_JOB_RUNNING,
     .phase = BERTH_GUEST_RUNNING,
     .node = 3,
     .epoch = 2,
     .start_usec = 1234567,
     .resources = {.vcpus = 2, .memory_mib = 512}},
    {.job = 7,
     .state = BERTH_JOB_RUNNING,
     .phase = BERTH_GUEST_RUNNING,
     .node = 2,
     .epoch = 2,
     .checkpoint = 3,
     .checkpoint_epoch = 1,
     .checkpoint_ran_usec = 70,
     .checkpoint_resources = {.vcpus = 3, .memory_mib = 96},
     .checkpoint_last = 5,
     .checkpoint_requeues = 2,
     .checkpoints_mib = 300,
     .checkpoint_space_mib = 164,
     .checkpoint_wanted = BERTH_REASON_CHECKPOINTED_BY_USER,
     .checkpoint_open = 5,
     .checkpoint_reason = BERTH_REASON_FROZEN_BY_USER,
     .checkpoint_stops = TRUE,
     .checkpoint_usec = 8,
     .checkpoint_missed_usec = 9,
     .drain_missed_usec = 10,
     .checkpoint_doubted = 6,
     .checkpoint_doubted_ran_usec = 13,
     .freeze_reason = BERTH_REASON_FROZEN_BY_USER,
     .freeze_to_disk = TRUE,
     .wants_backing = TRUE,
     .is_opportunistic = TRUE,
     .is_opportunistic_there = TRUE,
     .balloon_mib = 128,
     .to_balloon_mib = 64,
     .short_usec = 11},
    {.job = 7,
     .state = BERTH_JOB_PENDING,
     .reason = BERTH_REASON_STARTING_LATER,
     .node = 3,
     .epoch = 2,
     .requeues = 1,
     .start_failures = 2,
     .not_before_usec = G_GINT64_CONSTANT(1795000000000000)},
    {.job = 7,
     .state = BERTH_JOB_NODE_FAIL,
     .reason = BERTH_REASON_NODE_LOST,
     .phase = BERTH_GUEST_FENCING,
     .node = 3,
     .epoch = 3,
     .requeues = 2,
     .end_usec = 99},
};

static void assert_task_equal(const BerthCoreTask *a, const BerthCoreTask *b)
{
    assert_int_equal(a->job, b->job);
    assert_int_equal(a->task, b->task);
    assert_int_equal(a->state, b->state);
    assert_int_equal(a->reason, b->reason);
    assert_int_equal(a->phase, b->phase);
    assert_int_equal(a->stop_reason, b->stop_reason);
    assert_int_equal(a->node, b->node);
    assert_int_equal(a->epoch, b->epoch);
    assert_int_equal(a->start_taken, b->start_taken);
    assert_int_equal(a->requeues, b->requeues);
    assert_int_equal(a->start_failures, b->start_failures);
    assert_int_equal(a->not_before_usec, b->not_before_usec);
    assert_int_equal(a->start_usec, b->start_usec);
    assert_int_equal(a->end_usec, b->end_usec);
    assert_int_equal(a->checkpoint_epoch, b->checkpoint_epoch);
    assert_int_equal(a->ran_usec, b->ran_usec);
    assert_int_equal(a->starved_usec, b->starved_usec);
    assert_int_equal(a->peak_milli, b->peak_milli);
    assert_int_equal(a->peak_mib, b->peak_mib);
    assert_int_equal(a->freeze_reason, b->freeze_reason);
    assert_int_equal(a->frozen_usec, b->frozen_usec);
    assert_int_equal(a->freeze_is_open, b->freeze_is_open);
    assert_int_equal(a->wants_backing, b->wants_backing);
    assert_int_equal(a->is_opportunistic, b->is_opportunistic);
    assert_int_equal(a->is_opportunistic_there, b->is_opportunistic_there);
    assert_int_equal(a->balloon_mib, b->balloon_mib);
    assert_int_equal(a->to_balloon_mib, b->to_balloon_mib);
    assert_int_equal(a->resources.vcpus, b->resources.vcpus);
    assert_int_equal(a->resources.memory_mib, b->resources.memory_mib);
    assert_int_equal(a->resize_to.vcpus, b->resize_to.vcpus);
    assert_int_equal(a->resize_to.memory_mib, b->resize_to.memory_mib);
    assert_int_equal(a->resize_reason, b->resize_reason);
    assert_int_equal(a->freeze_to_disk, b->freeze_to_disk);
    assert_int_equal(a->checkpoint, b->checkpoint);
    assert_int_equal(a->checkpoint_epoch, b->checkpoint_epoch);
    assert_int_equal(a->checkpoint_ran_usec, b->checkpoint_ran_usec);
    assert_int_equal(a->checkpoint_resources.vcpus, b->checkpoint_resources.vcpus);
    assert_int_equal(a->checkpoint_resources.memory_mib, b->checkpoint_resources.memory_mib);
    assert_int_equal(a->checkpoint_last, b->checkpoint_last);
    assert_int_equal(a->checkpoint_requeues, b->checkpoint_requeues);
    assert_int_equal(a->checkpoints_mib, b->checkpoints_mib);
    assert_int_equal(a->checkpoint_space_mib, b->checkpoint_space_mib);
    assert_int_equal(a->checkpoint_wanted, b->checkpoint_wanted);
    assert_int_equal(a->checkpoint_open, b->checkpoint_open);
    assert_int_equal(a->checkpoint_reason, b->checkpoint_reason);
    assert_int_equal(a->checkpoint_stops, b->checkpoint_stops);
    assert_int_equal(a->checkpoint_usec, b->checkpoint_usec);
    assert_int_equal(a->checkpoint_missed_usec, b->checkpoint_missed_usec);
    assert_int_equal(a->drain_missed_usec, b->drain_missed_usec);
    assert_int_equal(a->checkpoint_doubted, b->checkpoint_doubted);
    assert_int_equal(a->checkpoint_doubted_ran_usec, b->checkpoint_doubted_ran_usec);
    assert_int_equal(a->short_usec, b->short_usec);
}

static void from_core_and_back_is_the_same(void **state)
{
    BerthJobTable *table = table_with_job();
    BerthTaskEntry *entry = berth_job_table_find_task(table, 7, 0);
    for (gsize i = 0; i < G_N_ELEMENTS(core_tasks); i++) {
        BerthCoreTask back;
        berth_record_from_core(entry, &core_tasks[i], "n3", "");
        berth_record_to_core(entry->stored, core_tasks[i].node, core_tasks[i].migrate_to, &back);
        assert_task_equal(&back, &core_tasks[i]);
    }
    berth_job_table_free(table);
}

static Berth__GuestStatus status_of(void)
{
    static Berth__Usage usage = BERTH__USAGE__INIT;
    static Berth__Exit exit = BERTH__EXIT__INIT;
    static char *clients[] = {(char *)"10.0.0.1:0/1", (char *)"10.0.0.1:0/2"};
    Berth__GuestStatus status = BERTH__GUEST_STATUS__INIT;
    usage.cpu_usec = 5;
    exit.status = 4;
    exit.error = (char *)"";
    status.usage = &usage;
    status.exit = &exit;
    status.phase = BERTH__GUEST_STATUS__PHASE__ENDED;
    status.storage_clients = clients;
    status.n_storage_clients = 2;
    status.stdout_bytes = 100;
    return status;
}

static void from_core_new_epoch_drops_the_last_life(void **state)
{
    BerthJobTable *table = table_with_job();
    BerthTaskEntry *entry = berth_job_table_find_task(table, 7, 0);
    Berth__GuestStatus status = status_of();
    berth_record_from_core(entry, &core_tasks[1], "n3", "");
    assert_true(berth_record_take_status(entry, &status));
    assert_int_equal(entry->stored->task->exit->status, 4);
    assert_string_equal(entry->stored->disk_id, "disk-7-0-0-1");
    entry->stored->oom_told = 4;
    entry->kills_tellings = 2;
    berth_record_from_core(entry, &core_tasks[2], "n4", "");
    assert_int_equal(entry->stored->oom_told, 0);
    assert_int_equal(entry->kills_tellings, 0);
    assert_null(entry->stored->task->exit);
    assert_null(entry->stored->task->usage);
    assert_int_equal(entry->stored->n_storage_clients, 0);
    assert_int_equal(entry->stdout_bytes, 0);
    assert_string_equal(entry->stored->disk_id, "disk-7-0-0-2");
    assert_string_equal(entry->stored->log_id, "log-7-0-0-2");
    assert_string_equal(entry->stored->task->node, "n4");
    berth_job_table_free(table);
}

static void held_back_is_the_guest_on_its_node_alone(void **state)
{
    BerthJobTable *table = table_with_job();
    BerthTaskEntry *entry = berth_job_table_find_task(table, 7, 0);
    BerthCoreTask task = core_tasks[4];
    berth_record_from_core(entry, &task, "n3", "");
    entry->stored->task->held_back_usec = 9;
    berth_record_from_core(entry, &task, "n3", "");
    assert_int_equal(entry->stored->task->held_back_usec, 9);
    task.phase = BERTH_GUEST_STOPPING; /* it may still hold it */
    berth_record_from_core(entry, &task, "n3", "");
    assert_int_equal(entry->stored->task->held_back_usec, 9);
    berth_record_take_move(entry, NULL, "n4", NULL, 0);
    assert_int_equal(entry->stored->task->held_back_usec, 0);
    static const BerthGuestPhase gone[] = {BERTH_GUEST_NONE, BERTH_GUEST_RELEASING,
                                           BERTH_GUEST_FENCING};
    for (gsize i = 0; i < G_N_ELEMENTS(gone); i++) {
        task.phase = gone[i];
        entry->stored->task->held_back_usec = 9;
        berth_record_from_core(entry, &task, "n3", "");
        assert_int_equal(entry->stored->task->held_back_usec, 0);
    }
    task.phase = BERTH_GUEST_STARTING;
    task.epoch++;
    entry->stored->task->held_back_usec = 9;
    berth_record_from_core(entry, &task, "n4", "");
    assert_int_equal(entry->stored->task->held_back_usec, 0);
    berth_job_table_free(table);
}

/* Also when it has ended while nothing of it ran. */
static void from_core_keeps_when_a_job_began(void **state)
{
    BerthJobTable *table = table_with_job();
    BerthTaskEntry *entry = berth_job_table_find_task(table, 7, 0);
    static const struct {
        BerthJobState state;
        gint64 start_usec, ran_usec;
        guint64 begun_usec;
    } steps[] = {
        {BERTH_JOB_RUNNING, 0, 0, 0},      {BERTH_JOB_RUNNING, 100, 0, 100},
        {BERTH_JOB_PENDING, 0, 0, 0}, /* it begins anew */
        {BERTH_JOB_RUNNING, 200, 0, 200},  {BERTH_JOB_SUSPENDED, 0, 50, 200},
        {BERTH_JOB_RUNNING, 300, 50, 200}, {BERTH_JOB_PENDING, 0, 60, 200},
        {BERTH_JOB_CANCELLED, 0, 60, 200},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(steps); i++) {
        BerthCoreTask task = {.job = 7,
                              .state = steps[i].state,
                              .start_usec = steps[i].start_usec,
                              .ran_usec = steps[i].ran_usec};
        berth_record_from_core(entry, &task, "n3", "");
        assert_int_equal(entry->stored->task->start_usec, steps[i].start_usec);
        assert_int_equal(entry->stored->task->begun_usec, steps[i].begun_usec);
    }
    berth_job_table_free(table);
}

static void take_status_again_needs_no_storing(void **state)
{
    BerthJobTable *table = table_with_job();
    BerthTaskEntry *entry = berth_job_table_find_task(table, 7, 0);
    Berth__GuestStatus status = status_of();
    berth_record_from_core(entry, &core_tasks[1], "n3", "");
    assert_true(berth_record_take_status(entry, &status));
    assert_false(berth_record_take_status(entry, &status));
    status.n_storage_clients = 0; /* not known at the moment: what is known stays */
    assert_false(berth_record_take_status(entry, &status));
    assert_int_equal(entry->stored->n_storage_clients, 2);
    berth_job_table_free(table);
}

static void take_status_bounds_and_mends_texts(void **state)
{
    BerthJobTable *table = table_with_job();
    BerthTaskEntry *entry = berth_job_table_find_task(table, 7, 0);
    Berth__GuestStatus status = status_of();
    g_autofree char *large = g_strnfill(100000, 'c');
    memcpy(large + 100000 - 4, "end\xff", 4);
    status.console_tail = large;
    status.reason_text = large;
    berth_record_from_core(entry, &core_tasks[1], "n3", "");
    berth_record_take_status(entry, &status);
    const char *tail = entry->stored->task->console_tail;
    assert_true(strlen(tail) < 9000);
    assert_true(g_utf8_validate(tail, -1, NULL));
    assert_non_null(strstr(tail, "end"));
    assert_true(strlen(entry->detail) <= 1024);
    berth_job_table_free(table);
}

typedef struct {
    Berth__Exit exit;
    BerthCoreExit expected;
} ExitCase;

/* Where nobody says which they are when it goes on, they are those of its arrival, if that was there. */
static void clients_of_an_arrival_stay_if_it_goes_on_there(void **state)
{
    g_autoptr(BerthJobTable) table = table_with_job();
    BerthTaskEntry *entry = berth_job_table_find_task(table, 7, 0);
    char *clients[] = {(char *)"10.0.0.1:0/1"};
    berth_record_take_arrival(entry, "n4", clients, 1);
    berth_record_take_move(entry, NULL, "n4", NULL, 0);
    assert_int_equal(entry->stored->n_storage_clients, 1);
    berth_record_take_move(entry, NULL, "n3", NULL, 0);
    assert_int_equal(entry->stored->n_storage_clients, 0);
    berth_record_take_arrival(entry, "n4", clients, 1);
    berth_record_take_move(entry, NULL, "n3", NULL, 0);
    assert_int_equal(entry->stored->n_storage_clients, 0);
    berth_record_take_arrival(entry, "n4", clients, 1);
    berth_record_from_core(entry, &core_tasks[2], "n4", ""); /* another guest */
    assert_int_equal(entry->stored->n_storage_clients, 0);
    assert_string_equal(entry->stored->storage_clients_of, "");
}

/* Each QEMU counts from 0. What the one before counted may be said more than once. */
static void usage_and_clients_of_a_moved_guest_are_its_own(void **state)
{
    g_autoptr(BerthJobTable) table = table_with_job();
    BerthTaskEntry *entry = berth_job_table_find_task(table, 7, 0);
    char *clients[] = {(char *)"10.0.0.1:0/1", (char *)"10.0.0.2:0/2"};
    Berth__Usage usage = BERTH__USAGE__INIT;
    Berth__GuestStatus status = BERTH__GUEST_STATUS__INIT;
    usage.cpu_usec = 5;
    status.usage = &usage;
    status.storage_clients = clients;
    status.n_storage_clients = 1;
    assert_true(berth_record_take_status(entry, &status));
    usage.cpu_usec = 7;
    for (guint move = 1; move <= 2; move++) {
        for (guint again = 0; again < 3; again++) {
            Berth__Usage *used = berth_record_usage_of_left(entry, again == 1 ? NULL : &usage);
            assert_int_equal(used->cpu_usec, again == 1 ? 7 * move - 2 : 7 * move);
            if (again == 2)
                berth_record_take_move(entry, used, "n4", clients + 1, move - 1);
            berth__usage__free_unpacked(used, NULL);
        }
        assert_int_equal(entry->stored->task->usage->cpu_usec, 7 * move);
        assert_int_equal(entry->stored->n_storage_clients, move - 1);
        usage.cpu_usec = 5;
        status.n_storage_clients = 0;
        assert_false(berth_record_take_status(entry, &status));
        assert_int_equal(entry->stored->task->usage->cpu_usec, 7 * move + 5);
        usage.cpu_usec = 7;
    }
    assert_string_equal(entry->stored->storage_clients[0], "10.0.0.2:0/2");
}

static void exit_to_core_keeps_what_matters(void **state)
{
    const ExitCase cases[] = {
        {BERTH__EXIT__INIT, {0}},
        {BERTH__EXIT__INIT, {.status = 3}},
        {BERTH__EXIT__INIT, {.signal = 9, .oom_kills = 2}},
        {BERTH__EXIT__INIT, {.status = 1, .disk_full = TRUE}},
        {BERTH__EXIT__INIT, {.status = 127, .not_started = TRUE}},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Berth__Exit exit = cases[i].exit;
        BerthCoreExit got;
        exit.status = cases[i].expected.status;
        exit.signal = cases[i].expected.signal;
        exit.oom_kills = cases[i].expected.oom_kills;
        exit.disk_full = cases[i].expected.disk_full;
        exit.error = (char *)(cases[i].expected.not_started ? "no such file" : "");
        berth_record_exit_to_core(&exit, &got);
        assert_memory_equal(&got, &cases[i].expected, sizeof got);
    }
}

static void job_to_core_has_units_right(void **state)
{
    Berth__Job job = BERTH__JOB__INIT;
    Berth__JobSpec spec = BERTH__JOB_SPEC__INIT;
    guint32 nodes[] = {3, 5};
    BerthCoreJob core;
    job.id = 9;
    job.vcpus = 4;
    job.memory_mib = 512;
    job.time_limit_sec = 60;
    job.priority = -3;
    job.held_by_operator = TRUE;
    job.submit_usec = 42;
    spec.disk_mib = 10;
    spec.stop_grace_sec = 5;
    spec.no_requeue = TRUE;
    berth_record_job_to_core(&job, &spec, NULL, nodes, 2, &core);
    assert_int_equal(core.id, 9);
    assert_int_equal(core.resources.vcpus, 4);
    assert_int_equal(core.resources.memory_mib, 512);
    assert_int_equal(core.resources.disk_mib, 10);
    assert_int_equal(core.time_limit_usec, 60 * G_USEC_PER_SEC);
    assert_int_equal(core.stop_grace_usec, 5 * G_USEC_PER_SEC);
    assert_int_equal(core.checkpoint_signal_usec, 0);
    assert_int_equal(core.priority, -3);
    assert_true(core.held_by_operator && core.no_requeue && !core.held);
    assert_int_equal(core.submit_usec, 42);
    assert_int_equal(core.n_nodes, 2);
    job.checkpoint_signal = 10;
    berth_record_job_to_core(&job, &spec, NULL, nodes, 2, &core);
    assert_int_equal(core.checkpoint_signal_usec, 10 * G_USEC_PER_SEC);
    job.checkpoint_signal_sec = 3;
    berth_record_job_to_core(&job, &spec, NULL, nodes, 2, &core);
    assert_int_equal(core.checkpoint_signal_usec, 3 * G_USEC_PER_SEC);
    /* One that was stored before there was a choice. */
    assert_int_equal(core.on_limit, BERTH_ON_LIMIT_NOTIFY);
    assert_int_equal(core.on_timeout, BERTH_ON_TIMEOUT_KILL);
    spec.on_limit = BERTH__ON_LIMIT__ON_LIMIT_FREEZE;
    spec.on_timeout = BERTH__ON_TIMEOUT__ON_TIMEOUT_CHECKPOINT;
    berth_record_job_to_core(&job, &spec, NULL, nodes, 2, &core);
    assert_int_equal(core.on_limit, BERTH_ON_LIMIT_FREEZE);
    assert_int_equal(core.on_timeout, BERTH_ON_TIMEOUT_CHECKPOINT);
}

static void roll_up_takes_the_leading_task(void **state)
{
    static const struct {
        Berth__JobState states[3];
        Berth__JobState expected;
    } cases[] = {
        {{BERTH__JOB_STATE__COMPLETED, BERTH__JOB_STATE__COMPLETED, BERTH__JOB_STATE__COMPLETED},
         BERTH__JOB_STATE__COMPLETED},
        {{BERTH__JOB_STATE__COMPLETED, BERTH__JOB_STATE__FAILED, BERTH__JOB_STATE__COMPLETED},
         BERTH__JOB_STATE__FAILED},
        {{BERTH__JOB_STATE__PENDING, BERTH__JOB_STATE__FAILED, BERTH__JOB_STATE__COMPLETED},
         BERTH__JOB_STATE__PENDING},
        {{BERTH__JOB_STATE__PENDING, BERTH__JOB_STATE__RUNNING, BERTH__JOB_STATE__FAILED},
         BERTH__JOB_STATE__RUNNING},
        {{BERTH__JOB_STATE__TIMEOUT, BERTH__JOB_STATE__CANCELLED, BERTH__JOB_STATE__FAILED},
         BERTH__JOB_STATE__CANCELLED},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        BerthJobTable *table = berth_job_table_new();
        Berth__Job job = BERTH__JOB__INIT;
        job.id = 1;
        Berth__JobArray array = BERTH__JOB_ARRAY__INIT;
        job.array = &array;
        BerthJobEntry *entry = berth_job_table_add(table, berth_pb_dup(&job.base));
        for (guint t = 0; t < 3; t++) {
            berth_record_count(entry->job, BERTH__JOB_STATE__JOB_STATE_UNSPECIFIED,
                               cases[i].states[t], 1);
        }
        berth_record_roll_up(entry, NULL);
        assert_int_equal(entry->job->state, cases[i].expected);
        berth_job_table_free(table);
    }
}

static void job_table_counts_until_finished(void **state)
{
    BerthJobTable *table = table_with_job();
    assert_int_equal(berth_job_table_count_image(table, "busybox"), 1);
    assert_int_equal(berth_job_table_count_user(table, 1000), 1);
    berth_job_table_finished(table, 7);
    berth_job_table_finished(table, 7);
    assert_int_equal(berth_job_table_count_image(table, "busybox"), 0);
    assert_int_equal(berth_job_table_count_user(table, 1000), 0);
    assert_non_null(berth_job_table_find(table, 7));
    assert_null(berth_job_table_find_task(table, 7, 1));
    berth_job_table_remove_task(table, 7, 0);
    assert_null(berth_job_table_find(table, 7));
    assert_int_equal(berth_job_table_size(table), 0);
    berth_job_table_free(table);
}

/* What has never started is kept as its records alone, and is found as it was left. */
static void job_that_waits_rests_and_is_as_it_was(void **state)
{
    g_autoptr(BerthJobTable) table = table_with_job();
    BerthJobEntry *entry = berth_job_table_find(table, 7);
    assert_false(berth_job_table_is_resting(table, 7));
    assert_false(berth_job_table_is_resting(table, 8));
    entry->job->held = TRUE;
    entry->wants_output = TRUE;
    entry->tasks[0]->wants_output = TRUE;
    berth_pb_set_string(&entry->tasks[0]->stored->task->reason_text, "held by its user");
    berth_job_table_rest(table);
    g_autoptr(GArray) begun = berth_job_table_begun(table);
    assert_int_equal(begun->len, 0);
    assert_int_equal(berth_job_table_size(table), 1);
    assert_int_equal(berth_job_table_count_image(table, "busybox"), 1);
    assert_true(berth_job_table_is_resting(table, 7));
    entry = berth_job_table_find(table, 7);
    assert_false(berth_job_table_is_resting(table, 7));
    assert_true(entry->job->held && entry->wants_output && entry->tasks[0]->wants_output);
    assert_string_equal(entry->job->image, "busybox");
    assert_int_equal(entry->n_tasks, 1);
    assert_string_equal(entry->tasks[0]->stored->task->reason_text, "held by its user");
    berth_job_table_rest(table);
    berth_job_table_finished(table, 7);
    assert_int_equal(berth_job_table_count_image(table, "busybox"), 0);
    berth_job_table_remove_task(table, 7, 0);
    assert_int_equal(berth_job_table_size(table), 0);
}

/* Nor is anything lost of which the record does not tell. */
static void job_that_has_begun_does_not_rest(void **state)
{
    g_autoptr(BerthJobTable) table = table_with_job();
    BerthTaskEntry *task = berth_job_table_find_task(table, 7, 0);
    task->stored->task->state = BERTH__JOB_STATE__PENDING;
    task->detail = g_strdup("its node is on fire");
    berth_job_table_rest(table);
    assert_false(berth_job_table_is_resting(table, 7));
    g_autoptr(GArray) told = berth_job_table_begun(table);
    assert_int_equal(told->len, 1);
    task = berth_job_table_find_task(table, 7, 0);
    assert_string_equal(task->detail, "its node is on fire");
    g_clear_pointer(&task->detail, g_free);
    task->stored->task->epoch = 1;
    berth_job_table_rest(table);
    g_autoptr(GArray) started = berth_job_table_begun(table);
    assert_int_equal(started->len, 1);
}

/* It takes no more than the loop's next turn. */
static void jobs_rest_when_the_loop_goes_on(void **state)
{
    g_autoptr(BerthJobTable) table = table_with_job();
    BerthTaskEntry *task = berth_job_table_find_task(table, 7, 0);
    task->stored->task->state = BERTH__JOB_STATE__PENDING;
    while (g_main_context_iteration(NULL, FALSE))
        ;
    g_autoptr(GArray) begun = berth_job_table_begun(table);
    assert_int_equal(begun->len, 0);
}

/* Tasks have entries from when they start until they are done with, whatever the order; the record tells of the others. */
static void job_table_keeps_an_array_s_tasks_by_index(void **state)
{
    BerthJobTable *table = berth_job_table_new();
    Berth__Job job = BERTH__JOB__INIT;
    Berth__JobArray array = BERTH__JOB_ARRAY__INIT;
    Berth__IndexRange range = BERTH__INDEX_RANGE__INIT;
    Berth__IndexRange *ranges[] = {&range};
    job.id = 7;
    job.array = &array;
    range.first = 3;
    range.last = 9;
    job.unstarted = ranges;
    job.n_unstarted = 1;
    BerthJobEntry *entry = berth_job_table_add(table, berth_pb_dup(&job.base));
    static const guint32 order[] = {6, 3, 9, 4};
    for (guint i = 0; i < G_N_ELEMENTS(order); i++) {
        berth_index_set_remove(entry->unstarted, (BerthIndexRange){order[i], order[i], 1});
        berth_job_table_add_task(entry, order[i], NULL);
    }
    for (guint i = 0; i < G_N_ELEMENTS(order); i++)
        assert_int_equal(berth_job_table_find_task(table, 7, order[i])->stored->task->index,
                         order[i]);
    assert_null(berth_job_table_find_task(table, 7, 5));
    Berth__Job *record = berth_job_entry_record(entry);
    assert_int_equal(record->n_unstarted, 2);
    assert_int_equal(record->unstarted[0]->first, 5);
    assert_int_equal(record->unstarted[1]->first, 7);
    assert_int_equal(record->unstarted[1]->last, 8);
    berth__job__free_unpacked(record, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(order); i++)
        berth_job_table_remove_task(table, 7, order[i]);
    assert_non_null(berth_job_table_find(table, 7)); /* some have not started */
    berth_index_set_remove(entry->unstarted, (BerthIndexRange){0, 100, 1});
    berth_job_table_add_task(entry, 5, NULL);
    berth_job_table_remove_task(table, 7, 5);
    assert_null(berth_job_table_find(table, 7));
    berth_job_table_free(table);
}

static void node_to_core_has_cells_and_place(void **state)
{
    static const char *const labels[] = {"gpu", "rack.r12", "fabric.a", "rack.other"};
    static const char *const other_labels[] = {"rack.r13", "fabric."};
    Berth__NumaCell cells[BERTH_CELLS_MAX + 1];
    Berth__NumaCell *pointers[BERTH_CELLS_MAX + 1];
    Berth__NodeInfo info = BERTH__NODE_INFO__INIT;
    for (guint i = 0; i < G_N_ELEMENTS(cells); i++) {
        cells[i] = (Berth__NumaCell)BERTH__NUMA_CELL__INIT;
        cells[i].cpus = 16 + i;
        cells[i].memory_mib = 1000 + i;
        pointers[i] = &cells[i];
    }
    info.vcpus = 30;
    info.guest_memory_mib = 2000;
    info.cells = pointers;
    info.n_cells = 2;
    info.labels = (char **)labels;
    info.n_labels = G_N_ELEMENTS(labels);
    BerthCoreNodeInfo node = berth_record_node_to_core(&info);
    assert_int_equal(node.capacity.vcpus, 30);
    assert_int_equal(node.capacity.memory_mib, 2000);
    assert_false(node.cannot_start);
    assert_int_equal(node.n_cells, 2);
    assert_int_equal(node.cells[1].vcpus, 17);
    assert_int_equal(node.cells[1].memory_mib, 1001);
    /* FNV-1a of "r12" and "a" */
    assert_int_equal(node.rack, 0x6383fbau);
    assert_int_equal(node.fabric, 0xe40c292cu);

    info.cannot_start = (char *)"no storage";
    info.labels = (char **)other_labels;
    info.n_labels = G_N_ELEMENTS(other_labels);
    info.n_cells = G_N_ELEMENTS(cells);
    BerthCoreNodeInfo other = berth_record_node_to_core(&info);
    assert_true(other.cannot_start);
    assert_int_equal(other.n_cells, 0);
    assert_true(other.rack != 0 && other.rack != node.rack);
    assert_int_equal(other.fabric, 2166136261u);
    info.n_labels = 0;
    other = berth_record_node_to_core(&info);
    assert_true(other.rack == 0 && other.fabric == 0);
}

/* --- usage -------------------------------------------------------------------------------------- */

#define SECOND_USEC ((gint64)G_USEC_PER_SEC)

static Berth__Usage counted(guint64 cpu_usec, guint64 starved_usec)
{
    Berth__Usage usage = BERTH__USAGE__INIT;
    usage.cpu_usec = cpu_usec;
    usage.starved_usec = starved_usec;
    usage.memory_total_mib = 128;
    usage.memory_available_mib = 28;
    usage.host_memory_mib = 90;
    usage.psi_memory_some = 1234; /* 12.34 % */
    usage.psi_cpu_some = 70000;   /* more than there is */
    return usage;
}

static void usage_is_what_came_since_the_last_report(void **state)
{
    BerthTaskEntry entry = {0};
    BerthCoreUsage out;
    Berth__Usage usage = counted(500000, 300000);
    assert_false(berth_usage_to_core(&entry, FALSE, &usage, 5 * SECOND_USEC, &out)); /* boots */
    usage = counted(1000000, 350000);
    assert_false(berth_usage_to_core(&entry, TRUE, &usage, 10 * SECOND_USEC, &out));
    usage = counted(8500000, 500000);
    assert_true(berth_usage_to_core(&entry, TRUE, &usage, 15 * SECOND_USEC, &out));
    assert_int_equal(out.cpu_milli, 1500);
    assert_int_equal(out.memory_used_mib, 100);
    assert_int_equal(out.memory_available_mib, 28);
    assert_int_equal(out.touched_mib, 90);
    assert_int_equal(out.memory_pressure_permille, 123);
    assert_int_equal(out.cpu_pressure_permille, 1000);
    assert_int_equal(out.starved_usec, 200000);
    assert_false(berth_usage_to_core(&entry, TRUE, &usage, 15 * SECOND_USEC, &out)); /* again */
    assert_true(berth_usage_to_core(&entry, TRUE, &usage, 20 * SECOND_USEC, &out));
    assert_int_equal(out.cpu_milli, 0);
    assert_int_equal(out.starved_usec, 0);
}

/* The core asks for both: how much its own kernel has ready, and how much of its vCPUs it got. */
static void usage_of_a_guest_that_lacks_vcpus_says_so(void **state)
{
    BerthTaskEntry entry = {0};
    BerthCoreUsage out;
    Berth__Usage usage = counted(1000000, 0);
    usage.psi_cpu_some = 2599;
    assert_false(berth_usage_to_core(&entry, TRUE, &usage, 10 * SECOND_USEC, &out));
    usage.cpu_usec = 5800000;
    assert_true(berth_usage_to_core(&entry, TRUE, &usage, 15 * SECOND_USEC, &out));
    assert_int_equal(out.cpu_pressure_permille, 259);
    assert_int_equal(out.cpu_milli, 960);
    usage.rate_msec = 5000; /* held back by its node */
    usage.cpu_milli = 10;
    usage.throttled_permille = 990;
    assert_true(berth_usage_to_core(&entry, TRUE, &usage, 20 * SECOND_USEC, &out));
    assert_int_equal(out.cpu_pressure_permille, 259);
    assert_int_equal(out.cpu_milli, 10);
}

/* Nothing else measures it, and while it is slowed down it is less than it was. */
static void dirty_rate_is_the_most_that_the_latest_move_showed(void **state)
{
    g_autoptr(BerthJobTable) table = table_with_job();
    BerthTaskEntry *entry = berth_job_table_find_task(table, 7, 0);
    const guint64 shown[][3] = {/* since, of which MIB a second; known then */
                                {5, 0, 0},
                                {5, 300, 300},
                                {5, 200, 300},
                                {9, 0, 0},
                                {9, 70, 70}};
    Berth__MigrationProgress progress = BERTH__MIGRATION_PROGRESS__INIT;
    Berth__GuestStatus status = BERTH__GUEST_STATUS__INIT;
    Berth__Usage usage = counted(1000000, 0);
    BerthCoreUsage out;
    berth_usage_to_core(entry, TRUE, &usage, SECOND_USEC, &out);
    entry->stored->task->migration = berth_pb_dup(&progress.base);
    status.migration = &progress;
    for (guint i = 0; i < G_N_ELEMENTS(shown); i++) {
        progress.since_usec = shown[i][0];
        progress.dirty_bytes_per_sec = shown[i][1] << 20;
        berth_record_take_status(entry, &status);
        assert_true(berth_usage_to_core(entry, TRUE, &usage, (2 + i) * SECOND_USEC, &out));
        assert_int_equal(out.dirty_mib_per_sec, shown[i][2]);
    }
    berth__migration_progress__free_unpacked(entry->stored->task->migration, NULL);
    entry->stored->task->migration = NULL; /* it has come */
    assert_true(berth_usage_to_core(entry, TRUE, &usage, 10 * SECOND_USEC, &out));
    assert_int_equal(out.dirty_mib_per_sec, 70);
    BerthCoreTask task = core_tasks[2];
    task.epoch++;
    berth_record_from_core(entry, &task, "n3", "");
    assert_int_equal(entry->dirty_bytes_per_sec, 0);
}

/* The mean since the last report says little of now where that was long ago. */
static void usage_of_a_node_that_knows_its_rates_is_as_it_says(void **state)
{
    BerthTaskEntry entry = {0};
    BerthCoreUsage out;
    Berth__Usage usage = counted(1000000, 0);
    assert_false(berth_usage_to_core(&entry, FALSE, &usage, 5 * SECOND_USEC, &out)); /* boots */
    assert_false(berth_usage_to_core(&entry, TRUE, &usage, 10 * SECOND_USEC, &out));
    usage = counted(2000000, 300000);
    usage.rate_msec = 5000;
    usage.cpu_milli = 200;
    assert_true(berth_usage_to_core(&entry, TRUE, &usage, 70 * SECOND_USEC, &out));
    assert_int_equal(out.cpu_milli, 200);
    assert_int_equal(out.starved_usec, 300000);
    usage.cpu_milli = 0;
    assert_true(berth_usage_to_core(&entry, TRUE, &usage, 71 * SECOND_USEC, &out));
    assert_int_equal(out.cpu_milli, 0);
    assert_int_equal(out.starved_usec, 0);
}

/* It has gone on from a checkpoint, or berthd was restarted: the core decides on it now. */
static void first_usage_of_a_node_that_knows_its_rates_is_enough(void **state)
{
    BerthTaskEntry entry = {.starved_seen_usec = 500000};
    BerthCoreUsage out;
    Berth__Usage usage = counted(9000000, 700000);
    usage.rate_msec = 1000;
    usage.cpu_milli = 200;
    assert_true(berth_usage_to_core(&entry, TRUE, &usage, 11 * SECOND_USEC, &out));
    assert_int_equal(out.cpu_milli, 200);
    assert_int_equal(out.memory_used_mib, 100);
    assert_int_equal(out.starved_usec, 200000);
}

static void node_usage_of_one_that_tells_of_changes_is_as_it_says(void **state)
{
    g_autoptr(BerthNodeTable) nodes = berth_node_table_new();
    BerthNodeEntry *entry = berth_node_table_add(nodes, 1, "n1");
    BerthCoreNodeUsage out;
    Berth__NodeUsage node = BERTH__NODE_USAGE__INIT;
    Berth__ReportRequest report = BERTH__REPORT_REQUEST__INIT;
    report.node = &node;
    node.memory_total_mib = 1000;
    node.guests_used_mib = 400;
    node.cpu_milli = 1234;
    berth_usage_node_to_core(entry, &report, 10 * SECOND_USEC, &out);
    assert_int_equal(out.cpu_milli, 1234);
    assert_int_equal(out.memory_used_mib, 400);
}

static void node_usage_is_what_came_since_the_last_report(void **state)
{
    g_autoptr(BerthNodeTable) nodes = berth_node_table_new();
    BerthNodeEntry *entry = berth_node_table_add(nodes, 1, "n1");
    BerthCoreNodeUsage out;
    Berth__Usage usage = counted(0, 0);
    Berth__GuestStatus guest = BERTH__GUEST_STATUS__INIT;
    Berth__GuestStatus booting = BERTH__GUEST_STATUS__INIT;
    Berth__GuestStatus *guests[] = {&guest, &booting};
    Berth__NodeUsage node = BERTH__NODE_USAGE__INIT;
    Berth__ReportRequest report = BERTH__REPORT_REQUEST__INIT;
    guest.usage = &usage;
    report.guests = guests;
    report.n_guests = G_N_ELEMENTS(guests);
    report.node = &node;
    node.cpu_usec = 1000000;
    node.memory_free_mib = 512;
    node.psi_cpu_some = 256;
    node.psi_memory_some = 1999;
    berth_usage_node_to_core(entry, &report, 10 * SECOND_USEC, &out);
    assert_int_equal(out.cpu_milli, 0);
    assert_int_equal(out.memory_used_mib, 100);
    assert_int_equal(out.memory_available_mib, 512);
    assert_int_equal(out.cpu_pressure_permille, 25);
    assert_int_equal(out.memory_pressure_permille, 199);
    node.cpu_usec = 16000000;
    berth_usage_node_to_core(entry, &report, 15 * SECOND_USEC, &out);
    assert_int_equal(out.cpu_milli, 3000);
    assert_int_equal(entry->usage->cpu_usec, 16000000);
    node.cpu_usec = 5; /* the agent was restarted */
    berth_usage_node_to_core(entry, &report, 20 * SECOND_USEC, &out);
    assert_int_equal(out.cpu_milli, 0);
}

static void usage_after_a_restart_has_all_starvation_once(void **state)
{
    BerthTaskEntry entry = {.starved_seen_usec = 500000}; /* as the record had it */
    BerthCoreUsage out;
    Berth__Usage usage = counted(9000000, 700000);
    assert_false(berth_usage_to_core(&entry, TRUE, &usage, 100 * SECOND_USEC, &out));
    usage = counted(9100000, 800000);
    assert_true(berth_usage_to_core(&entry, TRUE, &usage, 101 * SECOND_USEC, &out));
    assert_int_equal(out.starved_usec, 300000);
    assert_int_equal(out.cpu_milli, 100);
}

static void usage_that_goes_back_is_begun_anew(void **state)
{
    BerthTaskEntry entry = {.measured_usec = SECOND_USEC, .cpu_seen_usec = 500};
    BerthCoreUsage out;
    Berth__Usage usage = counted(400, 0);
    assert_false(berth_usage_to_core(&entry, TRUE, &usage, 2 * SECOND_USEC, &out));
    usage.memory_total_mib = 0; /* the guest has not said */
    assert_false(berth_usage_to_core(&entry, TRUE, &usage, 3 * SECOND_USEC, &out));
    usage = counted(1000400, 0);
    usage.memory_available_mib = 500; /* more than there is */
    assert_true(berth_usage_to_core(&entry, TRUE, &usage, 4 * SECOND_USEC, &out));
    assert_int_equal(out.cpu_milli, 1000);
    assert_int_equal(out.memory_used_mib, 0);
}

static void starvation_goes_into_the_record_with_the_core_s_sum(void **state)
{
    BerthJobTable *table = table_with_job();
    BerthTaskEntry *entry = berth_job_table_find_task(table, 7, 0);
    BerthCoreTask task = core_tasks[2];
    berth_record_from_core(entry, &task, "n3", "");
    entry->starved_seen_usec = 99; /* the core has not said that it took it */
    assert_int_equal(entry->stored->starved_seen_usec, 0);
    berth_record_from_core(entry, &task, "n3", "");
    assert_int_equal(entry->stored->starved_seen_usec, 99);
    task.epoch++;
    berth_record_from_core(entry, &task, "n3", "");
    assert_int_equal(entry->stored->starved_seen_usec, 0);
    berth_job_table_free(table);
}

/* What it has used is its own; how it did then is not how it does now. */
static void restored_guest_has_the_sums_of_its_checkpoint_and_no_rates(void **state)
{
    BerthJobTable *table = table_with_job();
    BerthTaskEntry *entry = berth_job_table_find_task(table, 7, 0);
    Berth__Usage usage = counted(9000000, 700000);
    Berth__Checkpoint checkpoint = BERTH__CHECKPOINT__INIT;
    usage.psi_memory_some = 5000;
    usage.cpu_milli = 900;
    usage.starved_permille = 100;
    usage.rate_msec = 10000;
    usage.oom_kills = 4;
    checkpoint.serial = 3;
    checkpoint.usage = &usage;
    Berth__Task *record = entry->stored->task;
    record->checkpoints = g_new(Berth__Checkpoint *, 1);
    record->checkpoints[record->n_checkpoints++] = berth_pb_dup(&checkpoint.base);
    berth_record_from_core(entry, &core_tasks[5], "n2", "");
    assert_int_equal(record->usage->cpu_usec, 9000000);
    assert_int_equal(record->usage->psi_memory_some, 0);
    assert_int_equal(record->usage->cpu_milli, 0);
    assert_int_equal(record->usage->starved_permille, 0);
    assert_int_equal(record->usage->rate_msec, 0);
    assert_int_equal(entry->stored->oom_told, 4); /* its kernel counts on from there */
    berth_job_table_free(table);
}

/* Its log was cut before its guest was lost: to what the checkpoint had. */
static void restore_that_ends_the_job_has_cut_its_log(void **state)
{
    BerthJobTable *table = table_with_job();
    BerthTaskEntry *entry = berth_job_table_find_task(table, 7, 0);
    Berth__Checkpoint checkpoint = BERTH__CHECKPOINT__INIT;
    Berth__Task *record = entry->stored->task;
    BerthCoreTask ended = core_tasks[5];
    checkpoint.serial = record->restores_from = ended.checkpoint = 3;
    checkpoint.stdout_bytes = 1000;
    record->checkpoints = g_new(Berth__Checkpoint *, 1);
    record->checkpoints[record->n_checkpoints++] = berth_pb_dup(&checkpoint.base);
    record->epoch = ended.epoch;
    record->restoring = TRUE;
    ended.state = BERTH_JOB_NODE_FAIL;
    ended.phase = BERTH_GUEST_NONE;
    berth_record_from_core(entry, &ended, "n2", "");
    assert_int_equal(entry->stored->log_cut->stdout_bytes, 1000);
    assert_int_equal(record->n_checkpoints, 0);
    berth_job_table_free(table);
}

static void family_is_the_name_s_in_every_release(void **state)
{
    Berth__Job job = BERTH__JOB__INIT;
    Berth__JobSpec spec = BERTH__JOB_SPEC__INIT;
    BerthCoreJob core_job;
    berth_record_job_to_core(&job, &spec, NULL, NULL, 0, &core_job);
    assert_int_equal(core_job.family, 0);
    job.name = (char *)"foobar"; /* of FNV's own test vectors */
    berth_record_job_to_core(&job, &spec, NULL, NULL, 0, &core_job);
    assert_true(core_job.family == G_GUINT64_CONSTANT(0x85944171f73967e8));
}

/* Each of the ranges that they come to would be an event of the core. */
static void take_ranges_interleaved_refuses(void **state)
{
    (void)state;
    Berth__IndexRange twos = BERTH__INDEX_RANGE__INIT;
    Berth__IndexRange threes = BERTH__INDEX_RANGE__INIT;
    Berth__IndexRange *ranges[] = {&twos, &threes};
    const guint32 lasts[] = {99999, BERTH_INDEX_MAX};
    twos.step = 2;
    threes.step = 3;
    for (gsize i = 0; i < G_N_ELEMENTS(lasts); i++) {
        g_autoptr(GError) error = NULL;
        twos.last = threes.last = lasts[i];
        assert_null(berth_ranges_take(ranges, 2, G_MAXUINT32, "the tasks", &error));
        assert_true(g_error_matches(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT));
    }
}

static void ranges_beside_a_message_are_those_of_the_set(void **state)
{
    g_autoptr(BerthIndexSet) set = berth_index_set_parse("0-9:3,40", 100, NULL);
    g_auto(BerthRanges) ranges = berth_ranges_of(set);
    g_auto(BerthRanges) none = berth_ranges_of(NULL);
    g_autoptr(GError) error = NULL;
    assert_int_equal(none.n, 0);
    assert_int_equal(ranges.n, 2);
    ranges.ranges[1]->step = 0; /* as other programs may write it */
    assert_int_equal(berth_range_of(ranges.ranges[0]).step, 3);
    assert_int_equal(berth_range_of(ranges.ranges[1]).step, 1);
    BerthIndexSet *taken = set;
    assert_true(berth_ranges_take_tasks(none.ranges, none.n, &taken, NULL));
    assert_null(taken);
    assert_true(berth_ranges_take_tasks(ranges.ranges, ranges.n, &taken, NULL));
    g_autofree char *text = berth_index_set_format(taken);
    assert_string_equal(text, "0-9:3,40");
    berth_index_set_free(taken);
    ranges.ranges[0]->first = 100; /* behind its end */
    assert_false(berth_ranges_take_tasks(ranges.ranges, ranges.n, &taken, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "the tasks");
}

/* What was asked for since it was submitted stands for what was asked for then, also if that is "never". */
static void job_to_core_has_the_policy_of_its_record(void **state)
{
    Berth__Job job = BERTH__JOB__INIT;
    Berth__JobSpec spec = BERTH__JOB_SPEC__INIT;
    Berth__CheckpointPolicy policy = BERTH__CHECKPOINT_POLICY__INIT;
    BerthCoreJob core;
    spec.checkpoint_every_sec = 3600;
    berth_record_job_to_core(&job, &spec, NULL, NULL, 0, &core);
    assert_int_equal(core.checkpoint_every_usec, 3600 * (gint64)G_USEC_PER_SEC);
    job.checkpoint_policy = &policy;
    policy.every_sec = 1800;
    berth_record_job_to_core(&job, &spec, NULL, NULL, 0, &core);
    assert_int_equal(core.checkpoint_every_usec, 1800 * (gint64)G_USEC_PER_SEC);
    policy.every_sec = 0;
    berth_record_job_to_core(&job, &spec, NULL, NULL, 0, &core);
    assert_int_equal(core.checkpoint_every_usec, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_beside_a_message_are_those_of_the_set),
        cmocka_unit_test(take_ranges_interleaved_refuses),
        cmocka_unit_test(from_core_and_back_is_the_same),
        cmocka_unit_test(from_core_new_epoch_drops_the_last_life),
        cmocka_unit_test(held_back_is_the_guest_on_its_node_alone),
        cmocka_unit_test(from_core_keeps_when_a_job_began),
        cmocka_unit_test(take_status_again_needs_no_storing),
        cmocka_unit_test(take_status_bounds_and_mends_texts),
        cmocka_unit_test(usage_and_clients_of_a_moved_guest_are_its_own),
        cmocka_unit_test(clients_of_an_arrival_stay_if_it_goes_on_there),
        cmocka_unit_test(exit_to_core_keeps_what_matters),
        cmocka_unit_test(node_to_core_has_cells_and_place),
        cmocka_unit_test(job_to_core_has_units_right),
        cmocka_unit_test(job_to_core_has_the_policy_of_its_record),
        cmocka_unit_test(roll_up_takes_the_leading_task),
        cmocka_unit_test(job_table_counts_until_finished),
        cmocka_unit_test(job_that_waits_rests_and_is_as_it_was),
        cmocka_unit_test(job_that_has_begun_does_not_rest),
        cmocka_unit_test(jobs_rest_when_the_loop_goes_on),
        cmocka_unit_test(job_table_keeps_an_array_s_tasks_by_index),
        cmocka_unit_test(usage_is_what_came_since_the_last_report),
        cmocka_unit_test(usage_of_a_guest_that_lacks_vcpus_says_so),
        cmocka_unit_test(dirty_rate_is_the_most_that_the_latest_move_showed),
        cmocka_unit_test(node_usage_is_what_came_since_the_last_report),
        cmocka_unit_test(usage_of_a_node_that_knows_its_rates_is_as_it_says),
        cmocka_unit_test(first_usage_of_a_node_that_knows_its_rates_is_enough),
        cmocka_unit_test(node_usage_of_one_that_tells_of_changes_is_as_it_says),
        cmocka_unit_test(usage_after_a_restart_has_all_starvation_once),
        cmocka_unit_test(usage_that_goes_back_is_begun_anew),
        cmocka_unit_test(starvation_goes_into_the_record_with_the_core_s_sum),
        cmocka_unit_test(restored_guest_has_the_sums_of_its_checkpoint_and_no_rates),
        cmocka_unit_test(restore_that_ends_the_job_has_cut_its_log),
        cmocka_unit_test(family_is_the_name_s_in_every_release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
