/* SPDX-License-Identifier: Apache-2.0 */
/* A real berthd on a real Ceph cluster: what a client that is no more keeps open does not stay. */
#include "tests/lib/berthd_test.h"
#include "tests/lib/storage_cluster.h"
#include "tests/lib/storage_conformance.h"

#include "common/id.h"

#define OP_TIMEOUT_SEC 30

typedef struct {
    BerthdFixture *berthd;
    FakeAgent *node;
    FakePlan plan;
    BerthStorage *agent; /* the node's own client of storage */
    char *agent_address;
    guint64 job;
    char *disk_id; /* of the job's guest */
} Test;

static BerthStorage *open_storage(void)
{
    g_autoptr(GError) error = NULL;
    BerthStorage *storage = cluster_open(OP_TIMEOUT_SEC, &error);
    assert_no_error(error);
    return storage;
}

/* As its node would. */
static void make_disk(Test *test)
{
    g_autoptr(GError) error = NULL;
    BerthGuestId id = {.job = test->job, .epoch = 1};
    test->disk_id = berth_disk_id_format(&id);
    Berth__GetImageRequest request = BERTH__GET_IMAGE_REQUEST__INIT;
    request.name = (char *)"tiny";
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__images__descriptor, "Get", &request.base);
    const Berth__Image *image = (Berth__Image *)(void *)reply;
    g_autoptr(BerthDiskSource) disk = berth_storage_disk_create(
        conformance_storage, test->disk_id, image->id, image->size_bytes, &error);
    assert_no_error(error);
}

static int setup(void **state)
{
    Test *test = g_new0(Test, 1);
    BerthStorageConfig config = cluster_config();
    g_autofree char *lines = g_strdup_printf("kind = rbd\nceph_conf = %s\nkeyring = %s\n"
                                             "gc_interval = 1s\nstale_client_after = 2s\n",
                                             config.ceph_conf, config.keyring);
    test->agent = open_storage();
    test->agent_address = berth_storage_client_address(test->agent);
    test->berthd = berthd_fixture_new_on(NULL, lines, open_storage());
    berthd_fixture_start_with(test->berthd, "--take-over-storage"); /* the tests share a pool */
    test->plan = (FakePlan){.runs_on = TRUE};
    test->node = berthd_fixture_add_agent(test->berthd, "n1", berthd_test_plan, &test->plan);
    fake_agent_set_storage_client(test->node, test->agent_address);
    berthd_fixture_import(test->berthd, "tiny");
    test->job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, test->job);
    make_disk(test);
    *state = test;
    return 0;
}

static int teardown(void **state)
{
    Test *test = *state;
    berthd_fixture_free(test->berthd);
    berth_storage_free(test->agent);
    g_free(test->agent_address);
    g_free(test->disk_id);
    g_free(test);
    return 0;
}

static gboolean is_gone(const Test *test)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) disks = berth_storage_disk_list(conformance_storage, &error);
    assert_no_error(error);
    return !g_strv_contains((const char *const *)disks, test->disk_id);
}

/* Has the disk no other clients than ADDRESS any more? */
static gboolean is_left_to(const Test *test, const char *address)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) clients = berth_storage_disk_clients(conformance_storage, test->disk_id, &error);
    assert_no_error(error);
    return g_strv_length(clients) == 1 && g_str_equal(clients[0], address);
}

static void end_job(Test *test)
{
    assert_true(fake_agent_end(test->node, test->job, 0));
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, test->job);
}

static void dead_clients_disk_is_removed(void **state)
{
    Test *test = *state;
    cluster_leave_dead_watch(test->disk_id);
    end_job(test);
    run_until(is_gone(test));
    assert_true(berth_storage_check(test->agent, NULL));
    assert_true(berth_storage_check(conformance_storage, NULL));
}

static void clients_of_a_node_are_spared_while_it_names_them(void **state)
{
    Test *test = *state;
    g_autoptr(GError) error = NULL;
    cluster_leave_watch(test->agent, test->disk_id);
    cluster_leave_dead_watch(test->disk_id);
    end_job(test);
    g_auto(GStrv) clients = cluster_clients_of(test->agent);
    run_until(is_left_to(test, clients[0]));
    berth_storage_check(test->agent, &error);
    assert_no_error(error);
    assert_false(is_gone(test));
    fake_agent_set_storage_client(test->node, "");
    run_until(is_gone(test));
    assert_false(berth_storage_check(test->agent, &error));
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "cut off");
}

/* An import that is begun and never ended; its id (transfer full). */
static char *begin_import(Test *test, const char *name)
{
    Berth__ImportBeginRequest request = BERTH__IMPORT_BEGIN_REQUEST__INIT;
    request.name = (char *)name;
    request.size_bytes = 4096;
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__images__descriptor, "ImportBegin", &request.base);
    return g_strdup(((Berth__ImportBeginReply *)(void *)reply)->import_id);
}

/* Of the image ID, in the pool or its list of images. */
static gboolean is_anything_left(const char *id)
{
    g_autofree char *objects = cluster_admin("rados -p berth ls");
    g_autofree char *images = cluster_admin("rados -p berth listomapkeys rbd_directory");
    return strstr(objects, id) || strstr(images, id);
}

/* Storage lists none of the first two: one has a client, until Ceph forgets it; one has no header. */
static void imports_that_were_killed_leave_only_what_is_whole(void **state)
{
    Test *test = *state;
    g_autofree char *watched = begin_import(test, "watched");
    g_autofree char *headless = begin_import(test, "headless");
    g_autofree char *whole = begin_import(test, "whole");
    g_autofree char *number = cluster_admin("rados -p berth get rbd_id.img-%s -", headless);
    berthd_fixture_kill(test->berthd);
    g_free(cluster_admin("rados -p berth rm rbd_header.%s", number + 4)); /* its length */
    g_free(cluster_admin("rbd snap create berth/img-%s@berth", whole));
    g_free(cluster_admin("rbd snap protect berth/img-%s@berth", whole));
    berthd_fixture_restart(test->berthd);
    run_until(!is_anything_left(headless));
    run_until(!is_anything_left(watched));
    gboolean is_committed = FALSE;
    assert_true(berth_storage_image_is_committed(conformance_storage, whole, &is_committed, NULL));
    assert_true(is_committed);
    assert_true(berth_storage_image_remove(conformance_storage, whole, NULL));
}

#define COLLECTOR_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        COLLECTOR_TEST(dead_clients_disk_is_removed),
        COLLECTOR_TEST(clients_of_a_node_are_spared_while_it_names_them),
        COLLECTOR_TEST(imports_that_were_killed_leave_only_what_is_whole),
    };
    return cluster_run("berthd_collector", tests, G_N_ELEMENTS(tests));
}
