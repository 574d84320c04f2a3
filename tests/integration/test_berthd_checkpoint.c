/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that are checkpointed, frozen to disk and restored: what berthd asks of which node, what it keeps, who may ask
 * for it, and what outlives lost nodes and kills. Storage is a real Ceph cluster; its nodes only say that they have
 * saved something. */
#include "config.h"

#include "tests/lib/berthd_test.h"
#include "tests/lib/storage_cluster.h"

#include "common/id.h"
#include "scheduler/daemon/pb.h"
#include "storage/checkpoint_record.h"

#define BOB      12346u
#define NO_GROUP 65534u
#define MIB      ((guint64)1 << 20)

typedef struct {
    BerthdFixture *berthd;
    FakeAgent *first, *second;
    FakePlan plan;
    guint64 job; /* runs on the first node */
} Test;

/* MORE: further lines of the configuration. */
static int setup_with(void **state, const char *more)
{
    static const Berth__Usage usage = {.base = PROTOBUF_C_MESSAGE_INIT(&berth__usage__descriptor),
                                       .cpu_usec = 5000000,
                                       .memory_total_mib = 64};
    Test *test = g_new0(Test, 1);
    BerthStorageConfig config = cluster_config();
    g_autoptr(GError) error = NULL;
    g_autofree char *lines = g_strdup_printf(
        "kind = rbd\nceph_conf = %s\nkeyring = %s\nop_timeout_sec = 5\ncheck_interval = 1s\n%s",
        config.ceph_conf, config.keyring, more);
    BerthStorage *storage = cluster_open(10, &error);
    assert_no_error(error);
    test->berthd = berthd_fixture_new_on("node_timeout = 2s\n", lines, storage);
    berthd_fixture_start_with(test->berthd, "--take-over-storage"); /* the tests share a pool */
    test->plan = (FakePlan){
        .runs_on = TRUE, .out = "here\n", .usage = &usage, .storage_client = "127.0.0.1:1/1"};
    test->first = berthd_fixture_add_agent(test->berthd, "n1", berthd_test_plan, &test->plan);
    berthd_fixture_import(test->berthd, "tiny");
    test->job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, test->job);
    test->second = berthd_fixture_add_agent(test->berthd, "n2", berthd_test_plan, &test->plan);
    fake_agent_set_saves(test->first, &(FakeSaves){.memory_bytes = 30 * MIB, .disk_bytes = MIB});
    fake_agent_set_saves(test->second, &(FakeSaves){.memory_bytes = 30 * MIB, .disk_bytes = MIB});
    *state = test;
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, "");
}

/* A job's memory is 64 MiB, and 64 more are kept beside it. */
static int setup_without_space(void **state)
{
    return setup_with(state, "[policy]\ncheckpoint_space_mib = 100\n");
}

/* Of what there is the thousandth part is less than that. Ceph lists a pool some seconds after it was made. */
static int setup_without_room(void **state)
{
    g_autoptr(BerthStorage) storage = cluster_open(10, NULL);
    guint64 bytes;
    assert_non_null(storage);
    run_until(berth_storage_room(storage, &bytes, NULL));
    return setup_with(state, "[policy]\ncheckpoint_room_permille = 1\n");
}

static int setup_impatient(void **state)
{
    return setup_with(state, "[guests]\ncheckpoint_patience = 1s\n");
}

static Berth__Job *get(Test *test)
{
    return berthd_fixture_get(test->berthd, test->job);
}

static int teardown(void **state)
{
    Test *test = *state;
    Berth__RemoveImageRequest request = BERTH__REMOVE_IMAGE_REQUEST__INIT;
    Berth__CancelRequest cancel = BERTH__CANCEL_REQUEST__INIT;
    request.name = (char *)"tiny";
    cancel.job = test->job;
    g_autoptr(ProtobufCMessage) cancelled =
        berthd_fixture_call(test->berthd, &berth__jobs__descriptor, "Cancel", &cancel.base);
    berthd_fixture_wait_state(test->berthd, test->job, BERTH__JOB_STATE__CANCELLED);
    run_until(fake_agent_n_guests(test->first) + fake_agent_n_guests(test->second) == 0);
    g_autoptr(Berth__Job) ended = get(test);
    assert_int_equal(berthd_test_task(ended)->n_checkpoints, 0); /* they go with its disk */
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__images__descriptor, "Remove", &request.base);
    berthd_fixture_free(test->berthd);
    g_free(test);
    return 0;
}

static void ask(Test *test, const char *method, const ProtobufCMessage *request)
{
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__jobs__descriptor, method, request);
}

static void checkpoint(Test *test)
{
    Berth__CheckpointRequest request = BERTH__CHECKPOINT_REQUEST__INIT;
    request.job = test->job;
    ask(test, "Checkpoint", &request.base);
}

static void freeze_to_disk(Test *test)
{
    Berth__FreezeRequest request = BERTH__FREEZE_REQUEST__INIT;
    request.job = test->job;
    request.to_disk = TRUE;
    ask(test, "Freeze", &request.base);
}

static guint count(Test *test, Berth__Event__Kind kind)
{
    const GPtrArray *events = berthd_fixture_events(test->berthd);
    guint found = 0;
    for (guint i = 0; i < events->len; i++) {
        const Berth__Event *event = g_ptr_array_index(events, i);
        found += event->kind == kind && event->job == test->job;
    }
    return found;
}

static const Berth__Event *event_of(Test *test, Berth__Event__Kind kind)
{
    berthd_fixture_wait_event(test->berthd, kind, test->job);
    const GPtrArray *events = berthd_fixture_events(test->berthd);
    for (guint i = events->len; i > 0; i--) {
        const Berth__Event *event = g_ptr_array_index(events, i - 1);
        if (event->kind == kind && event->job == test->job)
            return event;
    }
    return NULL;
}

static void wait_for(Test *test, Berth__Event__Kind kind, guint times)
{
    run_until(count(test, kind) >= times);
}

/* --- while it runs ----------------------------------------------------------------------------- */

static void checkpoint_is_taken_and_kept(void **state)
{
    Test *test = *state;
    g_autofree char *id = g_strdup_printf("%" G_GUINT64_FORMAT "-0-1", test->job);
    checkpoint(test);
    const Berth__Event *done = event_of(test, BERTH__EVENT__KIND__GUEST_CHECKPOINTED);
    assert_non_null(strstr(done->text, "1: 30 MiB of memory, 1 MiB of disk"));
    assert_string_equal(done->node, "n1");
    const Berth__CheckpointGuestRequest *asked = fake_agent_save(test->first);
    assert_string_equal(asked->checkpoint_id, id);
    assert_false(asked->stop);
    assert_true(asked->space_bytes > 64 * MIB);
    g_autoptr(Berth__Job) job = get(test);
    const Berth__Task *task = berthd_test_task(job);
    assert_int_equal(task->state, BERTH__JOB_STATE__RUNNING);
    assert_int_equal(task->n_checkpoints, 1);
    assert_int_equal(task->checkpoints[0]->serial, 1);
    assert_int_equal(task->checkpoints[0]->memory_bytes, 30 * MIB);
    assert_int_equal(task->checkpoints[0]->usage->cpu_usec, 5000000);
    assert_int_equal(task->restores_from, 1);
    assert_int_equal(task->checkpointing, 0);
    assert_string_equal(event_of(test, BERTH__EVENT__KIND__JOB_CHECKPOINT_REQUESTED)->user, "root");
}

/* The first `times` checkpoints of the job, one after the other. */
static void checkpoint_times(Test *test, guint times)
{
    for (guint i = 1; i <= times; i++) {
        checkpoint(test);
        wait_for(test, BERTH__EVENT__KIND__GUEST_CHECKPOINTED, i);
    }
}

static void newest_are_kept_and_one_is_removed_on_request(void **state)
{
    Test *test = *state;
    Berth__RemoveCheckpointRequest request = BERTH__REMOVE_CHECKPOINT_REQUEST__INIT;
    request.job = test->job;
    checkpoint_times(test, 3);
    assert_non_null(
        strstr(event_of(test, BERTH__EVENT__KIND__CHECKPOINT_REMOVED)->text, "1: newer"));
    g_autoptr(Berth__Job) kept = get(test);
    assert_int_equal(berthd_test_task(kept)->n_checkpoints, 2);
    request.checkpoint = 1;
    g_autoptr(GError) gone = berthd_fixture_call_error(test->berthd, &berth__jobs__descriptor,
                                                       "RemoveCheckpoint", &request.base);
    assert_berth_error(gone, BERTH_ERROR_NOT_FOUND, "no checkpoint 1");
    request.checkpoint = 3;
    ask(test, "RemoveCheckpoint", &request.base);
    wait_for(test, BERTH__EVENT__KIND__CHECKPOINT_REMOVED, 2);
    assert_string_equal(event_of(test, BERTH__EVENT__KIND__CHECKPOINT_REMOVED)->user, "root");
    g_autoptr(Berth__Job) left = get(test);
    assert_int_equal(berthd_test_task(left)->n_checkpoints, 1);
    assert_int_equal(berthd_test_task(left)->restores_from, 2);
}

static void checkpoint_that_fails_leaves_the_job_as_it_is(void **state)
{
    Test *test = *state;
    fake_agent_set_saves(test->first, &(FakeSaves){.error = "the pool is full"});
    checkpoint(test);
    assert_string_equal(event_of(test, BERTH__EVENT__KIND__GUEST_CHECKPOINT_FAILED)->text,
                        "the pool is full");
    g_autoptr(Berth__Job) job = get(test);
    assert_int_equal(berthd_test_task(job)->state, BERTH__JOB_STATE__RUNNING);
    assert_int_equal(berthd_test_task(job)->n_checkpoints, 0);
}

static void checkpoint_that_cannot_be_for_long_has_failed(void **state)
{
    Test *test = *state;
    fake_agent_set_saves(test->first, &(FakeSaves){.error = "Ceph is away", .passes = TRUE});
    checkpoint(test);
    const Berth__Event *failed = event_of(test, BERTH__EVENT__KIND__GUEST_CHECKPOINT_FAILED);
    assert_string_equal(failed->text, "Ceph is away");
    assert_true(fake_agent_n_saves(test->first) > 1);
    guint64 took_usec =
        failed->time_usec - event_of(test, BERTH__EVENT__KIND__JOB_CHECKPOINT_REQUESTED)->time_usec;
    g_autoptr(Berth__Job) after = get(test);
    /* It ran on between the tries: in two pauses at least, of a quarter of a second and twice that. */
    assert_true(took_usec >= G_USEC_PER_SEC);
    assert_in_range(berthd_test_task(after)->spared_usec, 1, took_usec - 3 * G_USEC_PER_SEC / 4);
    guint asked = fake_agent_n_saves(test->first);
    fake_agent_set_saves(test->first, &(FakeSaves){.error = "Ceph is away",
                                                   .passes = TRUE,
                                                   .n_errors = asked + 1,
                                                   .memory_bytes = 30 * MIB});
    checkpoint(test);
    event_of(test, BERTH__EVENT__KIND__GUEST_CHECKPOINTED);
    assert_int_equal(fake_agent_n_saves(test->first), asked + 2);
}

static void checkpoint_that_is_under_way_outlives_berthd(void **state)
{
    Test *test = *state;
    fake_agent_set_saves(test->first, &(FakeSaves){.holds = TRUE});
    checkpoint(test);
    run_until(fake_agent_n_saves(test->first) == 1);
    g_autofree char *id = g_strdup(fake_agent_save(test->first)->checkpoint_id);
    berthd_fixture_kill(test->berthd);
    fake_agent_set_saves(test->first, &(FakeSaves){.memory_bytes = MIB});
    berthd_fixture_restart(test->berthd);
    event_of(test, BERTH__EVENT__KIND__GUEST_CHECKPOINTED);
    assert_string_equal(fake_agent_save(test->first)->checkpoint_id, id); /* the same again */
}

static GError *checkpoint_as(BerthRpcPeer *peer, guint64 job)
{
    Berth__CheckpointRequest request = BERTH__CHECKPOINT_REQUEST__INIT;
    GError *error = NULL;
    request.job = job;
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call(
        peer, &berth__jobs__descriptor, "Checkpoint", &request.base, 30000, &error);
    return error;
}

static void checkpoint_is_for_its_user_and_for_operators(void **state)
{
    Test *test = *state;
    g_autoptr(BerthRpcPeer) bob = berthd_fixture_connect_as(test->berthd, BOB, NO_GROUP);
    g_autoptr(GError) denied = checkpoint_as(bob, test->job);
    assert_berth_error(denied, BERTH_ERROR_PERMISSION_DENIED, "belongs to another user");
    assert_int_equal(fake_agent_n_saves(test->first), 0);
}

/* The pool says what it has left, and that is asked for as soon as it answers. */
static void checkpoint_for_which_storage_has_no_room_is_refused(void **state)
{
    Test *test = *state;
    Berth__CheckpointRequest request = BERTH__CHECKPOINT_REQUEST__INIT;
    request.job = test->job;
    g_autoptr(GError) refused = berthd_fixture_call_error(test->berthd, &berth__jobs__descriptor,
                                                          "Checkpoint", &request.base);
    assert_berth_error(refused, BERTH_ERROR_RESOURCE_EXHAUSTED, "it may take 128 MiB, and ");
    assert_int_equal(fake_agent_n_saves(test->first), 0);
}

/* --- going on from it -------------------------------------------------------------------------- */

static void assert_restored_on(Test *test, FakeAgent *agent, const char *node, guint32 serial)
{
    const Berth__StartGuestRequest *start = fake_agent_start(agent, test->job);
    g_autofree char *id = g_strdup_printf("%" G_GUINT64_FORMAT "-0-%u", test->job, serial);
    g_autofree char *log = g_strdup_printf("log-%" G_GUINT64_FORMAT "-0-0-1", test->job);
    g_autofree char *disk = g_strdup_printf("disk-%" G_GUINT64_FORMAT "-0-0-1", test->job);
    assert_non_null(start->restore);
    assert_string_equal(start->restore->checkpoint_id, id);
    assert_string_equal(start->restore->disk_id, disk);
    assert_string_equal(start->log_id, log); /* its output goes on */
    g_autoptr(Berth__Job) job = get(test);
    const Berth__Task *task = berthd_test_task(job);
    assert_int_equal(task->state, BERTH__JOB_STATE__RUNNING);
    assert_string_equal(task->node, node);
    assert_int_equal(task->epoch, 2);
    assert_string_equal(event_of(test, BERTH__EVENT__KIND__GUEST_RESTORE)->node, node);
}

/* Its guest had a client of its own, and its agent wrote what that printed. */
static void lost_node_s_job_goes_on_elsewhere(void **state)
{
    Test *test = *state;
    g_autoptr(GError) error = NULL;
    BerthStorage *agent = cluster_open(10, &error);
    assert_no_error(error);
    g_autofree char *address = berth_storage_client_address(agent);
    assert_true(berth_storage_log_write(agent, "of-the-agent", 0, "x", 1, &error));
    fake_agent_set_storage_client(test->first, address);
    checkpoint(test);
    event_of(test, BERTH__EVENT__KIND__GUEST_CHECKPOINTED);
    fake_agent_cut(test->first);
    wait_for(test, BERTH__EVENT__KIND__GUEST_RUNNING, 2);
    assert_restored_on(test, test->second, "n2", 1);
    g_autoptr(Berth__Job) record = get(test);
    assert_string_equal(berthd_test_task(record)->moved->from, "n1");
    assert_int_equal(berthd_test_task(record)->moved->reason, BERTH__REASON__REASON_REQUEUED);
    assert_true(berthd_test_task(record)->moved->from_checkpoint);
    assert_false(berth_storage_log_write(agent, "of-the-agent", 0, "x", 1, NULL));
    berth_storage_free(agent);
    /* What comes back is released, and its disk is not removed: it is the job's. */
    fake_agent_heal(test->first);
    run_until(fake_agent_n_guests(test->first) == 0);
    run_until(fake_agent_is_joined(test->first));
    assert_int_equal(fake_agent_n_strays(test->first), 1);
    assert_true(fake_agent_release(test->first)->keep_disk);
}

/* --- its node could not say that it was made --------------------------------------------------- */

/* The name of the job's first guest's disk. */
static char *disk_of(Test *test)
{
    BerthGuestId id = {.job = test->job, .epoch = 1};
    return berth_disk_id_format(&id);
}

/* What the node of the job makes of its first checkpoint; no record: torn. */
static void make_checkpoint(Test *test, BerthStorage *storage, gboolean with_record)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *disk_id = disk_of(test);
    g_autofree char *id = berth_checkpoint_id_format(test->job, 0, 1);
    Berth__GetImageRequest request = BERTH__GET_IMAGE_REQUEST__INIT;
    Berth__Usage usage = BERTH__USAGE__INIT;
    Berth__CheckpointGuestReply taken = BERTH__CHECKPOINT_GUEST_REPLY__INIT;
    Berth__CheckpointRecord record = BERTH__CHECKPOINT_RECORD__INIT;
    usage.cpu_usec = 7000000;
    taken.usage = &usage;
    taken.memory_bytes = MIB;
    record.version = BERTH_CHECKPOINT_VERSION;
    record.taken = &taken;
    record.vcpus = 1;
    record.memory_mib = 64;
    record.domain = (char *)"berth-1-0-0-1";
    record.domain_xml = (char *)"<domain/>";
    request.name = (char *)"tiny";
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__images__descriptor, "Get", &request.base);
    const Berth__Image *image = (const Berth__Image *)(const void *)reply;
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(storage, disk_id, image->id, image->size_bytes, &error);
    assert_no_error(error);
    g_autoptr(BerthCheckpointWriter) writer =
        berth_storage_checkpoint_create(storage, id, disk_id, NULL, 64 * MIB, &error);
    assert_no_error(error);
    assert_true(berth_checkpoint_writer_append(writer, "memory", 6, &error));
    assert_true(berth_checkpoint_writer_snapshot(writer, &error));
    assert_true(berth_checkpoint_writer_finish(writer, "m", 1, &error));
    g_autoptr(GBytes) packed = berth_message_pack(&record.base);
    if (with_record)
        assert_true(berth_checkpoint_writer_commit(writer, packed, &error));
    assert_no_error(error);
}

/* The job is being checkpointed by its node, which says nothing more of it than that it does. */
static BerthStorage *begin_unheard(Test *test, gboolean is_made)
{
    g_autoptr(GError) error = NULL;
    BerthStorage *storage = cluster_open(10, &error);
    assert_no_error(error);
    fake_agent_set_saves(test->first, &(FakeSaves){.holds = TRUE});
    checkpoint(test);
    run_until(fake_agent_n_saves(test->first) == 1);
    make_checkpoint(test, storage, is_made);
    return storage;
}

static void end_unheard(Test *test, BerthStorage *storage)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *disk_id = disk_of(test);
    assert_true(berth_storage_disk_remove_with_checkpoints(storage, disk_id, &error));
    berth_storage_free(storage);
}

static void assert_goes_on_from_it(Test *test, FakeAgent *agent, const char *node)
{
    wait_for(test, BERTH__EVENT__KIND__GUEST_RUNNING, 2);
    assert_restored_on(test, agent, node, 1);
    const Berth__Event *event = event_of(test, BERTH__EVENT__KIND__GUEST_CHECKPOINTED);
    assert_non_null(strstr(event->text, "was lost before its node could say so"));
    assert_string_equal(event->node, "n1");
    g_autoptr(Berth__Job) job = get(test);
    const Berth__Task *task = berthd_test_task(job);
    assert_int_equal(task->n_checkpoints, 1);
    assert_int_equal(task->checkpoints[0]->memory_bytes, MIB);
    assert_int_equal(task->checkpoints[0]->usage->cpu_usec, 7000000);
}

static void checkpoint_that_a_lost_node_has_made_is_found(void **state)
{
    Test *test = *state;
    BerthStorage *storage = begin_unheard(test, TRUE);
    fake_agent_cut(test->first);
    assert_goes_on_from_it(test, test->second, "n2");
    fake_agent_heal(test->first);
    end_unheard(test, storage);
}

static void checkpoint_of_a_lost_guest_is_found(void **state)
{
    Test *test = *state;
    BerthStorage *storage = begin_unheard(test, TRUE);
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    Berth__GuestStatus status = BERTH__GUEST_STATUS__INIT;
    id.job = test->job;
    id.epoch = 1;
    status.id = &id;
    status.phase = BERTH__GUEST_STATUS__PHASE__GONE;
    fake_agent_say(test->first, &status);
    assert_goes_on_from_it(test, test->first, "n1");
    assert_true(fake_agent_release(test->first)->keep_disk);
    end_unheard(test, storage);
}

static void checkpoint_that_a_lost_node_has_not_made_is_none(void **state)
{
    Test *test = *state;
    g_autofree char *disk_id = disk_of(test);
    BerthStorage *storage = begin_unheard(test, FALSE);
    fake_agent_cut(test->first);
    wait_for(test, BERTH__EVENT__KIND__GUEST_RUNNING, 2);
    assert_null(fake_agent_start(test->second, test->job)->restore);
    g_autoptr(Berth__Job) job = get(test);
    assert_int_equal(berthd_test_task(job)->n_checkpoints, 0);
    g_auto(GStrv) disks = berth_storage_disk_list(storage, NULL);
    assert_false(g_strv_contains((const char *const *)disks, disk_id));
    fake_agent_heal(test->first);
    berth_storage_free(storage);
}

/* --- putting back ------------------------------------------------------------------------------ */

static void restore_puts_a_job_back(void **state)
{
    Test *test = *state;
    Berth__RestoreRequest request = BERTH__RESTORE_REQUEST__INIT;
    request.job = test->job;
    g_autoptr(GError) none =
        berthd_fixture_call_error(test->berthd, &berth__jobs__descriptor, "Restore", &request.base);
    assert_berth_error(none, BERTH_ERROR_FAILED_PRECONDITION, "has no checkpoint");
    checkpoint_times(test, 2);
    request.checkpoint = 7;
    g_autoptr(GError) unknown =
        berthd_fixture_call_error(test->berthd, &berth__jobs__descriptor, "Restore", &request.base);
    assert_berth_error(unknown, BERTH_ERROR_NOT_FOUND, "no checkpoint 7");
    request.checkpoint = 1;
    ask(test, "Restore", &request.base);
    wait_for(test, BERTH__EVENT__KIND__GUEST_RUNNING, 2);
    assert_restored_on(test, test->first, "n1", 1);
    assert_true(fake_agent_release(test->first)->keep_disk);
    assert_string_equal(event_of(test, BERTH__EVENT__KIND__JOB_RESTORE_REQUESTED)->text, "1");
    /* The other one's output is gone. */
    wait_for(test, BERTH__EVENT__KIND__CHECKPOINT_REMOVED, 1);
    assert_string_equal(event_of(test, BERTH__EVENT__KIND__CHECKPOINT_REMOVED)->text,
                        "2: the job was put back to 1");
    g_autoptr(Berth__Job) job = get(test);
    assert_int_equal(berthd_test_task(job)->n_checkpoints, 1);
    assert_int_equal(berthd_test_task(job)->restores_from, 1);
    g_autofree char *output = berthd_fixture_logs(test->berthd, test->job, FALSE, FALSE);
    assert_non_null(strstr(output, "here"));
}

/* The other one, from which it goes on, is not what was asked for. */
/* Its logs may have been cut by then. */
static void restore_to_a_later_one_than_that_which_is_being_restored_is_refused(void **state)
{
    Test *test = *state;
    Berth__RestoreRequest request = BERTH__RESTORE_REQUEST__INIT;
    request.job = test->job;
    checkpoint_times(test, 3);
    test->plan.boot_msec = 3600000;
    request.checkpoint = 2;
    ask(test, "Restore", &request.base);
    wait_for(test, BERTH__EVENT__KIND__GUEST_RESTORE, 1);
    request.checkpoint = 3;
    g_autoptr(GError) later =
        berthd_fixture_call_error(test->berthd, &berth__jobs__descriptor, "Restore", &request.base);
    assert_berth_error(later, BERTH_ERROR_FAILED_PRECONDITION,
                       "is being put back to checkpoint 2, and what it put out after that is gone");
    test->plan.boot_msec = 0;
    request.checkpoint = 2;
    ask(test, "Restore", &request.base);
    wait_for(test, BERTH__EVENT__KIND__GUEST_RUNNING, 2);
    g_autoptr(Berth__Job) job = get(test);
    assert_int_equal(berthd_test_task(job)->restores_from, 2);
    assert_int_equal(berthd_test_task(job)->n_checkpoints, 1);
    /* What it has from now on is not cut. */
    checkpoint(test);
    wait_for(test, BERTH__EVENT__KIND__GUEST_CHECKPOINTED, 4);
    request.checkpoint = 0;
    ask(test, "Restore", &request.base);
    wait_for(test, BERTH__EVENT__KIND__GUEST_RUNNING, 3);
}

static void restore_from_a_torn_checkpoint_is_told_as_failed(void **state)
{
    Test *test = *state;
    Berth__RestoreRequest request = BERTH__RESTORE_REQUEST__INIT;
    request.job = test->job;
    request.checkpoint = 1;
    checkpoint_times(test, 2);
    test->plan.refuse = BERTH__START_GUEST_REPLY__FAULT__JOB;
    ask(test, "Restore", &request.base);
    wait_for(test, BERTH__EVENT__KIND__CHECKPOINT_REMOVED, 1);
    test->plan.refuse = BERTH__START_GUEST_REPLY__FAULT__FAULT_NONE;
    wait_for(test, BERTH__EVENT__KIND__GUEST_RUNNING, 2);
    g_autoptr(Berth__Job) job = get(test);
    assert_int_equal(berthd_test_task(job)->restores_from, 2);
    const Berth__JobRequest *restore = job->requests[job->n_requests - 1];
    assert_int_equal(restore->kind, BERTH__EVENT__KIND__JOB_RESTORE_REQUESTED);
    assert_int_equal(restore->outcome, BERTH__JOB_REQUEST__OUTCOME__FAILED);
    assert_string_equal(restore->settled->text, "1: the fake node refuses");
}

/* What a reader holds to be the output: what is void is taken back. */
typedef struct {
    GString *text;
    guint64 from; /* where it began */
    guint32 run;
    guint n_cuts;
} Reader;

static gboolean on_chunk(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__LogChunk *chunk = (const Berth__LogChunk *)item;
    Reader *reader = user_data;
    if (chunk->cut && reader->from + reader->text->len > chunk->cut->stdout_bytes) {
        reader->from = MIN(reader->from, chunk->cut->stdout_bytes);
        g_string_truncate(reader->text, chunk->cut->stdout_bytes - reader->from);
    }
    reader->n_cuts += chunk->cut != NULL;
    reader->run = chunk->run;
    assert_int_equal(chunk->offset, reader->from + reader->text->len);
    g_string_append_len(reader->text, (const char *)chunk->data.data, (gssize)chunk->data.len);
    return TRUE;
}

static void on_read(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Reader *reader = user_data;
    berth_rpc_peer_stream_finish(result, NULL);
    g_string_free(g_steal_pointer(&reader->text), TRUE);
}

/* From byte FROM of what it has read when the job had been put back RUN times. */
static void follow(Test *test, Reader *reader, guint64 from, guint32 run)
{
    Berth__LogsRequest request = BERTH__LOGS_REQUEST__INIT;
    *reader = (Reader){.text = g_string_new(NULL), .from = from};
    request.job = test->job;
    request.want_stdout = request.follow = TRUE;
    request.stdout_offset = from;
    request.epoch = from > 0 ? 1 : 0;
    request.run = run;
    berth_rpc_peer_stream_async(berthd_fixture_client(test->berthd), &berth__jobs__descriptor,
                                "Logs", &request.base, 0, NULL, on_chunk, on_read, reader);
}

static void put_back(Test *test, guint times)
{
    Berth__RestoreRequest request = BERTH__RESTORE_REQUEST__INIT;
    request.job = test->job;
    ask(test, "Restore", &request.base);
    wait_for(test, BERTH__EVENT__KIND__GUEST_RUNNING, times);
}

static void output_that_is_void_is_taken_back_from_its_readers(void **state)
{
    Test *test = *state;
    static Reader reader, late, later, last; /* read on until the job is cancelled at the end */
    follow(test, &reader, 0, 0);
    run_until(g_str_equal(reader.text->str, "here\n"));
    checkpoint(test);
    wait_for(test, BERTH__EVENT__KIND__GUEST_CHECKPOINTED, 1);
    fake_agent_write(test->first, test->job, FALSE, "void and longer\n");
    run_until(g_str_equal(reader.text->str, "here\nvoid and longer\n"));
    test->plan.out = "anew\n";
    put_back(test, 2);
    run_until(g_str_equal(reader.text->str, "here\nanew\n"));
    assert_int_equal(reader.n_cuts, 1);
    assert_int_equal(reader.run, 1);
    /* Who comes back with all of what is void, and who had not read so far. */
    follow(test, &late, 21, 0);
    run_until(g_str_equal(late.text->str, "anew\n"));
    assert_int_equal(late.from, 5);
    follow(test, &later, 3, 0);
    run_until(g_str_equal(later.text->str, "e\nanew\n"));
    /* It is put back again: who has missed both begins at 0. */
    put_back(test, 3);
    run_until(reader.n_cuts == 2 && g_str_equal(reader.text->str, "here\nanew\n"));
    follow(test, &last, 21, 0);
    run_until(g_str_equal(last.text->str, "here\nanew\n"));
}

/* --- to disk ----------------------------------------------------------------------------------- */

static gboolean storage_answers(Test *test)
{
    Berth__InfoRequest request = BERTH__INFO_REQUEST__INIT;
    Berth__ServerInfo *info =
        berthd_fixture_call(test->berthd, &berth__server__descriptor, "Info", &request.base);
    gboolean is_ok = info->storage_ok;
    berth__server_info__free_unpacked(info, NULL);
    return is_ok;
}

static void freeze_to_disk_releases_the_node(void **state)
{
    Test *test = *state;
    Berth__ThawRequest thaw = BERTH__THAW_REQUEST__INIT;
    thaw.job = test->job;
    freeze_to_disk(test);
    berthd_fixture_wait_state(test->berthd, test->job, BERTH__JOB_STATE__SUSPENDED);
    run_until(fake_agent_n_guests(test->first) == 0);
    assert_true(fake_agent_save(test->first)->stop);
    assert_true(fake_agent_release(test->first)->keep_disk);
    const char *taken = event_of(test, BERTH__EVENT__KIND__GUEST_CHECKPOINTED)->text;
    assert_non_null(strstr(taken, "stands still from then on"));
    assert_string_equal(event_of(test, BERTH__EVENT__KIND__JOB_FREEZE_REQUESTED)->text, "to disk");
    wait_for(test, BERTH__EVENT__KIND__GUEST_RELEASED, 1);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    run_until(fake_agent_is_joined(test->first) && fake_agent_is_joined(test->second) &&
              storage_answers(test));
    g_autoptr(Berth__Job) frozen = get(test);
    assert_int_equal(berthd_test_task(frozen)->state, BERTH__JOB_STATE__SUSPENDED);
    assert_true(berthd_test_task(frozen)->to_disk);
    thaw.node = (char *)"n2";
    ask(test, "Thaw", &thaw.base);
    wait_for(test, BERTH__EVENT__KIND__GUEST_RESTORE, 1);
    run_until(fake_agent_runs(test->second, test->job) == 1);
    berthd_fixture_wait_state(test->berthd, test->job, BERTH__JOB_STATE__RUNNING);
    assert_restored_on(test, test->second, "n2", 1);
}

/* Its space counts as free at once, whenever the job runs again. */
static void old_ones_of_a_job_on_disk_go_at_once(void **state)
{
    Test *test = *state;
    Berth__ThawRequest thaw = BERTH__THAW_REQUEST__INIT;
    thaw.job = test->job;
    checkpoint_times(test, 2);
    freeze_to_disk(test);
    wait_for(test, BERTH__EVENT__KIND__GUEST_RELEASED, 1);
    assert_non_null(
        strstr(event_of(test, BERTH__EVENT__KIND__CHECKPOINT_REMOVED)->text, "1: newer"));
    g_autoptr(Berth__Job) frozen = get(test);
    assert_int_equal(berthd_test_task(frozen)->n_checkpoints, 2);
    assert_int_equal(berthd_test_task(frozen)->checkpoints[0]->serial, 2);
    ask(test, "Thaw", &thaw.base);
    wait_for(test, BERTH__EVENT__KIND__GUEST_RUNNING, 2);
    assert_int_equal(count(test, BERTH__EVENT__KIND__CHECKPOINT_REMOVED), 1);
}

static void set_every(Test *test, guint32 every_sec)
{
    Berth__CheckpointEveryRequest request = BERTH__CHECKPOINT_EVERY_REQUEST__INIT;
    request.job = test->job;
    request.every_sec = every_sec;
    ask(test, "SetCheckpointEvery", &request.base);
}

/* Whatever it said when it was submitted, and also after berthd was ended. */
static void how_often_a_job_is_checkpointed_is_set_while_it_runs(void **state)
{
    Test *test = *state;
    Berth__CheckpointEveryRequest often = BERTH__CHECKPOINT_EVERY_REQUEST__INIT;
    set_every(test, 1800);
    const Berth__Event *asked = event_of(test, BERTH__EVENT__KIND__JOB_CHECKPOINT_EVERY_REQUESTED);
    assert_string_equal(asked->text, "every 00:30:00");
    assert_string_equal(asked->user, "root");
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    g_autoptr(Berth__Job) every = get(test);
    assert_int_equal(every->checkpoint_policy->every_sec, 1800);
    assert_int_equal(every->spec->checkpoint_every_sec, 0);
    set_every(test, 0);
    g_autoptr(Berth__Job) never = get(test);
    assert_int_equal(never->checkpoint_policy->every_sec, 0);
    often.job = test->job;
    often.every_sec = 1;
    g_autoptr(GError) refused = berthd_fixture_call_error(test->berthd, &berth__jobs__descriptor,
                                                          "SetCheckpointEvery", &often.base);
    assert_berth_error(refused, BERTH_ERROR_INVALID_ARGUMENT, "60 s to");
}

static void job_on_disk_can_be_cancelled(void **state)
{
    Test *test = *state;
    freeze_to_disk(test);
    berthd_fixture_wait_state(test->berthd, test->job, BERTH__JOB_STATE__SUSPENDED);
    run_until(fake_agent_n_guests(test->first) == 0);
}

/* --- at the time limit ------------------------------------------------------------------------- */

static Berth__ExtendRequest extension(const Test *test, guint64 limit_sec, guint64 by_sec)
{
    Berth__ExtendRequest request = BERTH__EXTEND_REQUEST__INIT;
    request.job = test->job;
    request.time_limit_sec = limit_sec;
    request.by_sec = by_sec;
    return request;
}

/* Another job, which is the test's from now on, of so much time. */
static void begin_another(Test *test, guint64 limit_sec)
{
    Berth__CancelRequest cancel = BERTH__CANCEL_REQUEST__INIT;
    Berth__JobSpec spec = berthd_fixture_spec();
    cancel.job = test->job;
    ask(test, "Cancel", &cancel.base);
    spec.time_limit_sec = limit_sec;
    test->job = berthd_fixture_submit(test->berthd, &spec);
}

static void job_at_its_time_limit_goes_on_when_it_is_extended(void **state)
{
    Test *test = *state;
    Berth__ThawRequest thaw = BERTH__THAW_REQUEST__INIT;
    begin_another(test, 2);
    berthd_fixture_wait_state(test->berthd, test->job, BERTH__JOB_STATE__SUSPENDED);
    wait_for(test, BERTH__EVENT__KIND__GUEST_RELEASED, 1);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    run_until(fake_agent_is_joined(test->first) && fake_agent_is_joined(test->second) &&
              storage_answers(test));
    g_autoptr(Berth__Job) stands = get(test);
    assert_int_equal(berthd_test_task(stands)->state, BERTH__JOB_STATE__SUSPENDED);
    assert_int_equal(berthd_test_task(stands)->reason, BERTH__REASON__REASON_TIME_LIMIT);
    assert_true(berthd_test_task(stands)->to_disk);
    assert_non_null(strstr(berthd_test_task(stands)->reason_text, "berth extend"));
    assert_int_equal(stands->spec->on_timeout, BERTH__ON_TIMEOUT__ON_TIMEOUT_CHECKPOINT);
    thaw.job = test->job;
    g_autoptr(GError) refused =
        berthd_fixture_call_error(test->berthd, &berth__jobs__descriptor, "Thaw", &thaw.base);
    assert_berth_error(refused, BERTH_ERROR_FAILED_PRECONDITION, "berth extend");
    Berth__ExtendRequest too_little = extension(test, 1, 0);
    g_autoptr(GError) used = berthd_fixture_call_error(test->berthd, &berth__jobs__descriptor,
                                                       "Extend", &too_little.base);
    assert_berth_error(used, BERTH_ERROR_INVALID_ARGUMENT, "it has used");
    Berth__ExtendRequest more = extension(test, 0, 598);
    ask(test, "Extend", &more.base);
    wait_for(test, BERTH__EVENT__KIND__GUEST_RESTORE, 1);
    berthd_fixture_wait_state(test->berthd, test->job, BERTH__JOB_STATE__RUNNING);
    const Berth__Event *asked = event_of(test, BERTH__EVENT__KIND__JOB_EXTEND_REQUESTED);
    assert_string_equal(asked->text, "00:10:00, before 00:00:02");
    assert_string_equal(asked->user, "root");
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    g_autoptr(Berth__Job) runs = get(test);
    assert_int_equal(runs->time_limit_sec, 600);
}

static void job_without_space_at_its_time_limit_says_so(void **state)
{
    Test *test = *state;
    begin_another(test, 2);
    berthd_fixture_wait_state(test->berthd, test->job, BERTH__JOB_STATE__TIMEOUT);
    const Berth__Event *failed = event_of(test, BERTH__EVENT__KIND__GUEST_CHECKPOINT_FAILED);
    assert_int_equal(failed->reason, BERTH__REASON__REASON_TIME_LIMIT);
    assert_non_null(strstr(failed->text, "not so much space left for checkpoints"));
    g_autoptr(Berth__Job) ended = get(test);
    assert_non_null(
        strstr(berthd_test_task(ended)->reason_text,
               "and could not be checkpointed: there was not so much space left for "
               "checkpoints (checkpoint_space_mib, checkpoint_room_permille of berthd.conf"));
    /* For teardown. */
    test->job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, test->job);
}

static void job_whose_checkpoint_fails_at_its_time_limit_says_why(void **state)
{
    Test *test = *state;
    const FakeSaves saves = {.error = "the pool is full"};
    fake_agent_set_saves(test->first, &saves);
    fake_agent_set_saves(test->second, &saves);
    begin_another(test, 2);
    berthd_fixture_wait_state(test->berthd, test->job, BERTH__JOB_STATE__TIMEOUT);
    g_autoptr(Berth__Job) ended = get(test);
    assert_non_null(strstr(berthd_test_task(ended)->reason_text,
                           "it reached its time limit of 2 s, and could not be checkpointed: "));
    assert_non_null(strstr(berthd_test_task(ended)->reason_text, "the pool is full"));
    assert_int_equal(fake_agent_n_saves(test->first) + fake_agent_n_saves(test->second), 4);
    test->job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, test->job);
}

static void job_at_its_limit_is_saved_after(Test *test, const FakeSaves *saves)
{
    fake_agent_set_saves(test->first, saves);
    fake_agent_set_saves(test->second, saves);
    begin_another(test, 2);
    berthd_fixture_wait_state(test->berthd, test->job, BERTH__JOB_STATE__SUSPENDED);
    assert_int_equal(fake_agent_n_saves(test->first) + fake_agent_n_saves(test->second),
                     saves->n_errors + 1);
    wait_for(test, BERTH__EVENT__KIND__GUEST_RELEASED, 1);
    Berth__CancelRequest cancel = BERTH__CANCEL_REQUEST__INIT;
    cancel.job = test->job;
    ask(test, "Cancel", &cancel.base);
    test->job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, test->job);
}

static void job_whose_checkpoint_fails_once_at_its_time_limit_loses_nothing(void **state)
{
    const FakeSaves saves = {.error = "libvirt has lost its thread", .n_errors = 2};
    job_at_its_limit_is_saved_after(*state, &saves);
}

/* The fifth try is 3.75 s after the first. */
static void job_at_its_time_limit_is_tried_for_longer_than_others(void **state)
{
    const FakeSaves saves = {.error = "Ceph is away", .n_errors = 4, .passes = TRUE};
    job_at_its_limit_is_saved_after(*state, &saves);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(checkpoint_is_taken_and_kept),
        TEST(newest_are_kept_and_one_is_removed_on_request),
        TEST(checkpoint_that_fails_leaves_the_job_as_it_is),
        cmocka_unit_test_setup_teardown(checkpoint_that_cannot_be_for_long_has_failed,
                                        setup_impatient, teardown),
        TEST(checkpoint_that_is_under_way_outlives_berthd),
        TEST(checkpoint_is_for_its_user_and_for_operators),
        cmocka_unit_test_setup_teardown(checkpoint_for_which_storage_has_no_room_is_refused,
                                        setup_without_room, teardown),
        TEST(lost_node_s_job_goes_on_elsewhere),
        TEST(checkpoint_that_a_lost_node_has_made_is_found),
        TEST(checkpoint_of_a_lost_guest_is_found),
        TEST(checkpoint_that_a_lost_node_has_not_made_is_none),
        TEST(restore_puts_a_job_back),
        TEST(restore_to_a_later_one_than_that_which_is_being_restored_is_refused),
        TEST(restore_from_a_torn_checkpoint_is_told_as_failed),
        TEST(output_that_is_void_is_taken_back_from_its_readers),
        TEST(freeze_to_disk_releases_the_node),
        TEST(old_ones_of_a_job_on_disk_go_at_once),
        TEST(how_often_a_job_is_checkpointed_is_set_while_it_runs),
        TEST(job_on_disk_can_be_cancelled),
        TEST(job_at_its_time_limit_goes_on_when_it_is_extended),
        TEST(job_whose_checkpoint_fails_at_its_time_limit_says_why),
        TEST(job_whose_checkpoint_fails_once_at_its_time_limit_loses_nothing),
        cmocka_unit_test_setup_teardown(job_at_its_time_limit_is_tried_for_longer_than_others,
                                        setup_impatient, teardown),
        cmocka_unit_test_setup_teardown(job_without_space_at_its_time_limit_says_so,
                                        setup_without_space, teardown),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cluster_run("checkpoint", tests, G_N_ELEMENTS(tests));
}
