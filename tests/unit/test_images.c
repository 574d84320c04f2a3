/* SPDX-License-Identifier: Apache-2.0 */
/* The images service and the collector in one process with the test, so that it can look between two turns
 * of the loop: what is unwanted when, and what is begun while the daemon ends. */
#include "tests/lib/assert.h"
#include "tests/lib/rpc_fixture.h"
#include "tests/lib/tempdir.h"

#include "common/message.h"
#include "scheduler/daemon/blob_guard.h"
#include "scheduler/daemon/clients.h"
#include "scheduler/daemon/collector.h"
#include "scheduler/daemon/image_table.h"
#include "scheduler/daemon/pb.h"
#include "scheduler/daemon/services.h"
#include "tests/unit/store_fixture.h"

#include <glib/gstdio.h>

#define DRAIN_MSEC  60000u
#define IMAGE_BYTES 4096u
#define NOTES_MAX   256u /* of images_service.c */

typedef struct {
    BerthDaemon daemon;
    BerthDaemonConfig config;
    StoreFixture *files;
    void *directory; /* of storage */
    gboolean has_storage;
    ProtobufCService *services[2];
    BerthRpcPeer *client;
} Test;

static const ProtobufCServiceDescriptor *const images = &berth__images__descriptor;

/* --- a daemon without its own main ---------------------------------------------------------------- */

static void on_storage(const GError *error, gpointer user_data)
{
    Test *test = user_data;
    assert_no_error(error);
    test->has_storage = TRUE;
}

static void make_daemon(Test *test)
{
    BerthDaemon *daemon = &test->daemon;
    BerthCoreConfig core_config = {.node_timeout_usec = G_USEC_PER_SEC};
    test->config = (BerthDaemonConfig){.image_max_mib = 1,
                                       .page_size = 10,
                                       .gc_interval_sec = 3600,
                                       .stale_client_after_sec = 3600,
                                       .user_connections_max = 10};
    test->config.storage =
        (BerthStorageConfig){.kind = (char *)"dir", .path = test->directory, .op_timeout_sec = 30};
    daemon->config = &test->config;
    daemon->operators = (BerthOperators){.has_group = TRUE, .group = getegid()};
    daemon->workers = berth_workers_new();
    daemon->users = berth_users_new(daemon->workers);
    daemon->storage = berth_storage_link_new(&test->config.storage, daemon->workers, 3600);
    daemon->store = store_open_ok(test->files->path);
    daemon->core = berth_core_new(&core_config);
    daemon->jobs = berth_job_table_new();
    daemon->nodes = berth_node_table_new();
    daemon->images = berth_image_table_new();
    daemon->blob_guard = berth_blob_guard_new();
    daemon->engine =
        berth_engine_new(daemon->core, daemon->store, daemon->jobs, daemon->nodes, 0, 0);
    daemon->clients = berth_clients_new(daemon);
    daemon->collector = berth_collector_new(daemon);
    berth_storage_link_start(daemon->storage, on_storage, test);
    run_until(test->has_storage);
}

static int setup(void **state)
{
    Test *test = g_new0(Test, 1);
    test->files = store_fixture_new();
    assert_int_equal(tempdir_make(&test->directory), 0);
    make_daemon(test);
    g_autoptr(GIOStream) a = NULL;
    g_autoptr(GIOStream) b = NULL;
    rpc_fixture_streams(&a, &b);
    test->services[0] = berth_images_service_new(&test->daemon);
    berth_clients_accept(test->daemon.clients, berth_rpc_peer_new(a, test->services, NULL));
    test->client = berth_rpc_peer_new(b, NULL, NULL);
    *state = test;
    return 0;
}

/* As the daemon's end: nothing may be in flight, or workers complain. */
static void drain(Test *test)
{
    BerthDaemon *daemon = &test->daemon;
    berth_engine_stop(daemon->engine);
    berth_storage_link_stop(daemon->storage);
    assert_true(berth_clients_close(daemon->clients, DRAIN_MSEC));
    assert_true(berth_workers_drain(daemon->workers, DRAIN_MSEC));
    berth_engine_stop(daemon->engine);
}

static int teardown(void **state)
{
    Test *test = *state;
    BerthDaemon *daemon = &test->daemon;
    drain(test);
    berth_rpc_peer_unref(test->client);
    berth_collector_free(daemon->collector);
    berth_clients_free(daemon->clients);
    berth_engine_free(daemon->engine);
    berth_blob_guard_free(daemon->blob_guard);
    berth_image_table_free(daemon->images);
    berth_node_table_free(daemon->nodes);
    berth_job_table_free(daemon->jobs);
    berth_core_free(daemon->core);
    berth_store_close(daemon->store);
    berth_users_free(daemon->users);
    berth_workers_free(daemon->workers);
    berth_storage_link_free(daemon->storage);
    g_free(test->services[0]);
    store_fixture_free(test->files);
    assert_int_equal(tempdir_remove(&test->directory), 0);
    g_free(test);
    return 0;
}

/* --- requests ------------------------------------------------------------------------------------- */

static void ask(Test *test, const char *method, const ProtobufCMessage *request,
                GAsyncResult **out_result)
{
    berth_rpc_peer_call_async(test->client, images, method, request, 0, NULL,
                              rpc_fixture_store_result, out_result);
}

static ProtobufCMessage *call(Test *test, const char *method, const ProtobufCMessage *request,
                              GError **error)
{
    g_autoptr(GAsyncResult) result = NULL;
    ask(test, method, request, &result);
    run_until(result != NULL);
    return berth_rpc_peer_call_finish(result, error);
}

static char *begin(Test *test, const char *name, GError **error)
{
    Berth__ImportBeginRequest request = BERTH__IMPORT_BEGIN_REQUEST__INIT;
    request.name = (char *)name;
    request.size_bytes = IMAGE_BYTES;
    g_autoptr(ProtobufCMessage) reply = call(test, "ImportBegin", &request.base, error);
    return reply ? g_strdup(((Berth__ImportBeginReply *)(void *)reply)->import_id) : NULL;
}

static gboolean commit(Test *test, char *import_id, GError **error)
{
    Berth__ImportCommitRequest request = BERTH__IMPORT_COMMIT_REQUEST__INIT;
    request.import_id = import_id;
    g_autoptr(ProtobufCMessage) reply = call(test, "ImportCommit", &request.base, error);
    return reply != NULL;
}

/* The id of its object (transfer full). */
static char *import(Test *test, const char *name)
{
    g_autoptr(GError) error = NULL;
    char *id = begin(test, name, &error);
    assert_no_error(error);
    assert_true(commit(test, id, &error));
    assert_true(berth_workers_drain(test->daemon.workers, DRAIN_MSEC)); /* its writer is closed */
    return id;
}

static gboolean is_unwanted(Test *test, const char *id, BerthUnwanted why)
{
    g_auto(GStrv) ids = berth_image_table_list_unwanted(test->daemon.images, why);
    return g_strv_contains((const char *const *)ids, id);
}

static gboolean is_stored(Test *test, const char *id)
{
    g_autofree char *path = g_build_filename(test->directory, "images", id, NULL);
    return g_file_test(path, G_FILE_TEST_EXISTS);
}

/* --- removal -------------------------------------------------------------------------------------- */

static void remove_makes_an_object_unwanted_once_that_is_durable(void **state)
{
    Test *test = *state;
    BerthImageTable *table = test->daemon.images;
    g_autofree char *id = import(test, "mine");
    g_autoptr(GAsyncResult) result = NULL;
    Berth__RemoveImageRequest request = BERTH__REMOVE_IMAGE_REQUEST__INIT;
    request.name = (char *)"mine";
    ask(test, "Remove", &request.base, &result);
    while (berth_image_table_find(table, "mine"))
        g_main_context_iteration(NULL, TRUE);
    /* Decided on, but its commit returns to a later turn of the loop. */
    assert_null(result);
    assert_false(is_unwanted(test, id, BERTH_UNWANTED_REMOVAL));
    assert_true(berth_image_table_has_id(table, id)); /* no stranger meanwhile */
    run_until(result != NULL);
    assert_true(is_unwanted(test, id, BERTH_UNWANTED_REMOVAL));
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, NULL);
    assert_non_null(reply);
    run_until(!is_stored(test, id));
}

/* --- notes -------------------------------------------------------------------------------------------- */

static void imports_that_fail_leave_no_more_notes_than_are_bounded(void **state)
{
    Test *test = *state;
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(test->directory, "tmp", NULL);
    g_autofree char *away = g_build_filename(test->directory, "away", NULL);
    assert_int_equal(g_rename(path, away), 0);
    for (guint i = 0; !g_error_matches(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED); i++) {
        assert_true(i <= NOTES_MAX);
        g_clear_error(&error);
        assert_null(begin(test, "mine", &error));
    }
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED,
                       "are to be removed from storage first");
    assert_true(berth_image_table_n_unwanted(test->daemon.images) <= NOTES_MAX);
    assert_int_equal(g_rename(away, path), 0);
    g_autofree char *id = NULL;
    run_until((id = begin(test, "mine", NULL)) != NULL);
}

/* --- the end of the daemon ------------------------------------------------------------------------- */

static void remove_while_the_daemon_ends_is_refused(void **state)
{
    Test *test = *state;
    g_autoptr(GError) error = NULL;
    g_autofree char *id = import(test, "mine");
    Berth__RemoveImageRequest request = BERTH__REMOVE_IMAGE_REQUEST__INIT;
    request.name = (char *)"mine";
    berth_engine_stop(test->daemon.engine);
    assert_null(call(test, "Remove", &request.base, &error));
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "the daemon is ending");
    assert_non_null(berth_image_table_find(test->daemon.images, "mine"));
    drain(test);
    assert_true(is_stored(test, id));
}

static void import_begun_while_the_daemon_ends_is_refused(void **state)
{
    Test *test = *state;
    g_autoptr(GError) error = NULL;
    berth_engine_stop(test->daemon.engine);
    assert_null(begin(test, "mine", &error));
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "the daemon is ending");
}

static void import_finished_while_the_daemon_ends_leaves_nothing(void **state)
{
    Test *test = *state;
    g_autoptr(GError) error = NULL;
    g_autofree char *id = begin(test, "mine", &error);
    assert_no_error(error);
    berth_engine_stop(test->daemon.engine);
    assert_false(commit(test, id, &error));
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "the daemon is ending");
    drain(test);
    assert_null(berth_image_table_find(test->daemon.images, "mine"));
    assert_false(is_stored(test, id));
}

static void collector_changes_nothing_while_the_daemon_ends(void **state)
{
    Test *test = *state;
    berth_image_table_set_unwanted(test->daemon.images, "gone-1", BERTH_UNWANTED_REMOVAL);
    berth_collector_run(test->daemon.collector);
    drain(test);
    assert_true(is_unwanted(test, "gone-1", BERTH_UNWANTED_REMOVAL));
    berth_collector_run(test->daemon.collector);
    assert_true(berth_workers_drain(test->daemon.workers, 0)); /* nothing was begun */
}

#define IMAGES_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        IMAGES_TEST(remove_makes_an_object_unwanted_once_that_is_durable),
        IMAGES_TEST(imports_that_fail_leave_no_more_notes_than_are_bounded),
        IMAGES_TEST(remove_while_the_daemon_ends_is_refused),
        IMAGES_TEST(import_begun_while_the_daemon_ends_is_refused),
        IMAGES_TEST(import_finished_while_the_daemon_ends_leaves_nothing),
        IMAGES_TEST(collector_changes_nothing_while_the_daemon_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
