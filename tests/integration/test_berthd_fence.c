/* SPDX-License-Identifier: Apache-2.0 */
/* A real berthd whose storage is a real Ceph cluster, which lab/lib/ceph-cluster brings up:
 * a node that is lost is cut off before its jobs start elsewhere. */
#include "tests/lib/berthd_test.h"

#include "common/id.h"
#include "scheduler/daemon/pb.h"

#include <sys/wait.h>
#include <unistd.h>

static char *directory; /* of the cluster */
static char *ceph_conf;
static char *keyring;

static int lab_ceph(const char *verb)
{
    const char *top = g_getenv("top_srcdir");
    g_autofree char *program =
        g_build_filename(top ? top : ".", "lab", "lib", "ceph-cluster", NULL);
    g_autofree char *pid = g_strdup_printf("%d", getpid());
    gboolean is_start = g_str_equal(verb, "start");
    const char *argv[] = {program, verb, directory, is_start ? "--with" : NULL, pid, NULL};
    int status = -1;
    g_autoptr(GError) error = NULL;
    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL, NULL,
                 &status, &error);
    assert_no_error(error);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static BerthStorage *open_storage(void)
{
    g_autoptr(GError) error = NULL;
    BerthStorageConfig config = {.kind = (char *)"rbd",
                                 .ceph_conf = ceph_conf,
                                 .ceph_user = (char *)"berth",
                                 .ceph_live_user = (char *)"berth-live",
                                 .keyring = keyring,
                                 .pool = (char *)"berth",
                                 .op_timeout_sec = 10};
    BerthStorage *storage = berth_storage_open(&config, &error);
    assert_no_error(error);
    return storage;
}

/* That of a guest (transfer full). */
static char *client_of(BerthStorage *storage)
{
    g_autofree char *addresses = berth_storage_client_address(storage);
    g_auto(GStrv) all = g_strsplit(addresses, " ", -1);
    return g_strdup(all[0]);
}

/* --- fixture ------------------------------------------------------------------------------------ */

typedef struct {
    BerthdFixture *berthd;
    FakeAgent *first;
    FakeAgent *second;
    FakePlan first_plan;
    FakePlan second_plan;
    BerthStorage *guest; /* what the guest on the first node writes through */
    char *guest_address;
    guint64 job; /* runs on the first node */
} Test;

static char *disk_of_first(const Test *test)
{
    BerthGuestId id = {.job = test->job, .epoch = 1};
    return berth_disk_id_format(&id);
}

/* The disk of the job's first guest, as its node would have made it. */
static void make_disk(Test *test)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *disk_id = disk_of_first(test);
    Berth__GetImageRequest request = BERTH__GET_IMAGE_REQUEST__INIT;
    request.name = (char *)"tiny";
    g_autoptr(ProtobufCMessage) image =
        berthd_fixture_call(test->berthd, &berth__images__descriptor, "Get", &request.base);
    BerthDiskSource *disk =
        berth_storage_disk_create(test->guest, disk_id, ((Berth__Image *)(void *)image)->id,
                                  ((Berth__Image *)(void *)image)->size_bytes, &error);
    assert_no_error(error);
    berth_disk_source_free(disk);
}

static int setup(void **state)
{
    Test *test = g_new0(Test, 1);
    g_autofree char *lines = g_strdup_printf(
        "kind = rbd\nceph_conf = %s\nkeyring = %s\nop_timeout_sec = 5\ncheck_interval = 1s\n",
        ceph_conf, keyring);
    test->guest = open_storage();
    test->guest_address = client_of(test->guest);
    test->berthd = berthd_fixture_new_on("node_timeout = 2s\n[guests]\nstart_backoff = 1s\n", lines,
                                         open_storage());
    berthd_fixture_start_with(test->berthd, "--take-over-storage"); /* the tests share a pool */
    test->first_plan =
        (FakePlan){.runs_on = TRUE, .out = "first\n", .storage_client = test->guest_address};
    test->second_plan = (FakePlan){.out = "second\n"};
    test->first = berthd_fixture_add_agent(test->berthd, "n1", berthd_test_plan, &test->first_plan);
    berthd_fixture_import(test->berthd, "tiny");
    test->job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, test->job);
    make_disk(test);
    test->second =
        berthd_fixture_add_agent(test->berthd, "n2", berthd_test_plan, &test->second_plan);
    *state = test;
    return 0;
}

static int teardown(void **state)
{
    Test *test = *state;
    g_autoptr(GError) error = NULL;
    Berth__RemoveImageRequest request = BERTH__REMOVE_IMAGE_REQUEST__INIT;
    request.name = (char *)"tiny";
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__images__descriptor, "Remove", &request.base);
    berthd_fixture_free(test->berthd);
    berth_storage_free(test->guest);
    g_free(test->guest_address);
    g_free(test);
    return 0;
}

static gboolean guest_can_write(Test *test, GError **error)
{
    return berth_storage_log_write(test->guest, "of-the-guest", 0, "x", 1, error);
}

/* A QEMU that the lost node begins now finds nothing. */
static void check_disk_is_gone(Test *test)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *disk_id = disk_of_first(test);
    g_auto(GStrv) disks = berth_storage_disk_list(berthd_fixture_storage(test->berthd), &error);
    assert_no_error(error);
    assert_false(g_strv_contains((const char *const *)disks, disk_id));
}

static void check_ran_again(Test *test)
{
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, test->job);
    const Berth__Task *task = berthd_test_task(record);
    assert_int_equal(task->epoch, 2);
    assert_int_equal(task->requeues, 1);
    assert_string_equal(task->node, "n2");
    assert_int_equal(fake_agent_runs(test->second, test->job), 1);
    g_autofree char *out = berthd_fixture_logs(test->berthd, test->job, FALSE, FALSE);
    assert_string_equal(out, "second\n");
}

/* --- tests -------------------------------------------------------------------------------------- */

static void node_lost_is_cut_off_and_its_job_runs_elsewhere(void **state)
{
    Test *test = *state;
    g_autoptr(GError) before = NULL;
    guest_can_write(test, &before);
    assert_no_error(before);
    fake_agent_cut(test->first);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_FENCED, test->job);
    check_disk_is_gone(test);
    berthd_fixture_wait_state(test->berthd, test->job, BERTH__JOB_STATE__COMPLETED);
    assert_false(guest_can_write(test, NULL));
    check_ran_again(test);
    /* Back again, it is told to remove what it still has. */
    fake_agent_heal(test->first);
    run_until(fake_agent_n_guests(test->first) == 0);
    check_ran_again(test);
}

/* A clone of the first node: that it has no guest does not say that the guest is gone. */
static void other_host_of_the_name_joins_after_the_fence(void **state)
{
    Test *test = *state;
    fake_agent_cut(test->first);
    fake_agent_set_host(test->first, "original", NULL);
    fake_agent_heal(test->first);
    run_until(fake_agent_is_joined(test->first));
    fake_agent_cut(test->first);
    FakePlan plan = {0};
    FakeAgent *clone =
        berthd_fixture_add_host(test->berthd, "n1", "clone", NULL, berthd_test_plan, &plan);
    assert_non_null(fake_agent_error(clone));
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_FENCED, test->job);
    assert_false(guest_can_write(test, NULL));
    berthd_fixture_wait_state(test->berthd, test->job, BERTH__JOB_STATE__COMPLETED);
    fake_agent_cut(clone);
    fake_agent_heal(clone);
    run_until(fake_agent_is_joined(clone));
    assert_int_equal(fake_agent_runs(clone, test->job), 0);
    check_ran_again(test);
}

static void killed_before_the_fence_it_fences_after_restart(void **state)
{
    Test *test = *state;
    assert_int_equal(lab_ceph("pause"), 0);
    fake_agent_cut(test->first);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__NODE_LOST, 0);
    berthd_fixture_kill(test->berthd);
    assert_int_equal(lab_ceph("resume"), 0);
    berthd_fixture_start(test->berthd);
    fake_agent_cut(test->second);
    fake_agent_heal(test->second);
    berthd_fixture_wait_state(test->berthd, test->job, BERTH__JOB_STATE__COMPLETED);
    assert_false(guest_can_write(test, NULL));
    check_ran_again(test);
}

/* Does the first node say that its guests cannot be cut off? */
static gboolean fence_error(Test *test)
{
    Berth__GetNodeRequest request = BERTH__GET_NODE_REQUEST__INIT;
    request.name = (char *)"n1";
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__nodes__descriptor, "Get", &request.base);
    return *((Berth__Node *)(void *)reply)->fence_error != '\0';
}

static void fence_without_storage_is_tried_until_it_works(void **state)
{
    Test *test = *state;
    assert_int_equal(lab_ceph("pause"), 0);
    fake_agent_cut(test->first);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__NODE_LOST, 0);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__STORAGE_DOWN, 0);
    assert_int_equal(fake_agent_runs(test->second, test->job), 0);
    run_until(fence_error(test)); /* an operator sees what is waited for */
    assert_int_equal(lab_ceph("resume"), 0);
    berthd_fixture_wait_state(test->berthd, test->job, BERTH__JOB_STATE__COMPLETED);
    assert_false(fence_error(test));
    assert_false(guest_can_write(test, NULL));
    check_ran_again(test);
}

/* It moves from the first node to the second, which is cut off AS_IT_GOES_ON, or when that is known. */
static void move_and_cut_off(Test *test, gboolean as_it_goes_on)
{
    Berth__MigrateRequest request = BERTH__MIGRATE_REQUEST__INIT;
    BerthStorage *there = open_storage();
    g_autofree char *address = client_of(there);
    request.job = test->job;
    g_autoptr(GError) before = NULL;
    berth_storage_log_write(there, "of-the-moved", 0, "x", 1, &before);
    assert_no_error(before);
    fake_agent_set_moves(test->second,
                         &(FakeMoves){.client = address, .is_cut_off = as_it_goes_on});
    fake_agent_set_moves(test->first, &(FakeMoves){.to = test->second});
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__jobs__descriptor, "Migrate", &request.base);
    if (!as_it_goes_on) {
        berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_MIGRATED, test->job);
        fake_agent_cut(test->second);
    }
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_FENCED, test->job);
    assert_false(berth_storage_log_write(there, "of-the-moved", 1, "x", 1, NULL));
    run_until(fake_agent_runs(test->first, test->job) == 2);
    fake_agent_heal(test->second);
    fake_agent_end(test->first, test->job, 0);
    berthd_fixture_wait_state(test->berthd, test->job, BERTH__JOB_STATE__COMPLETED);
    berth_storage_free(there);
}

/* What it had on the node that it left is not its own any more; what it has where it is, is, before that node
 * has reported it. */
static void guest_that_has_moved_is_cut_off_by_its_new_address(void **state)
{
    Test *test = *state;
    g_autoptr(GError) error = NULL;
    move_and_cut_off(test, FALSE);
    guest_can_write(test, &error);
    assert_no_error(error);
}

/* Nobody has heard of it but that it had arrived. */
static void guest_whose_node_is_lost_as_it_goes_on_there_is_cut_off(void **state)
{
    move_and_cut_off(*state, TRUE);
}

#define FENCE_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FENCE_TEST(node_lost_is_cut_off_and_its_job_runs_elsewhere),
        FENCE_TEST(other_host_of_the_name_joins_after_the_fence),
        FENCE_TEST(guest_that_has_moved_is_cut_off_by_its_new_address),
        FENCE_TEST(guest_whose_node_is_lost_as_it_goes_on_there_is_cut_off),
        FENCE_TEST(killed_before_the_fence_it_fences_after_restart),
        FENCE_TEST(fence_without_storage_is_tried_until_it_works),
    };
    g_autofree char *mon = g_find_program_in_path("ceph-mon");
    g_autofree char *osd = g_find_program_in_path("ceph-osd");
    if (geteuid() != 0 || !mon || !osd) {
        return 77;
    }
    directory = g_dir_make_tmp("berth-fence-XXXXXX", NULL);
    ceph_conf = g_build_filename(directory, "ceph.conf", NULL);
    keyring = g_build_filename(directory, "ceph.client.berth.keyring", NULL);
    int failed = lab_ceph("start");
    if (failed == 0) {
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    }
    lab_ceph("stop");
    g_free(directory);
    g_free(ceph_conf);
    g_free(keyring);
    return failed;
}
