/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's way to storage on a real Ceph cluster: what an operation left open in Ceph's client
 * does not stay, and what is being written meanwhile is finished. */
#include "scheduler/daemon/storage_link.h"
#include "tests/lib/storage_cluster.h"
#include "tests/lib/storage_conformance.h"

#define MIB ((gsize)1024 * 1024)

typedef struct {
    gboolean is_done;
    gpointer value;
    GError *error;
} Answer;

static void on_done(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Answer *answer = user_data;
    answer->value = berth_work_finish(result, &answer->error);
    answer->is_done = TRUE;
}

static gpointer run(BerthStorageLink *link, BerthStorageFunc func, gpointer input, GError **error)
{
    Answer answer = {FALSE, NULL, NULL};
    berth_storage_link_run(link, BERTH_LANE_STORAGE_DATA, "test", func, input, NULL, NULL, on_done,
                           &answer);
    run_until(answer.is_done);
    if (answer.error)
        g_propagate_error(error, answer.error);
    return answer.value;
}

static gpointer note_address(BerthStorage *storage, gconstpointer unused, GError **error)
{
    g_auto(GStrv) clients = cluster_clients_of(storage);
    return g_strdup(clients[0]);
}

static gpointer leave_watch(BerthStorage *storage, gconstpointer disk_id, GError **error)
{
    cluster_leave_watch(storage, disk_id);
    return NULL;
}

static gpointer remove_disk(BerthStorage *storage, gconstpointer disk_id, GError **error)
{
    berth_storage_disk_remove(storage, disk_id, error);
    return NULL;
}

static gpointer begin_image(BerthStorage *storage, gconstpointer image_id, GError **error)
{
    return berth_storage_image_create(storage, image_id, MIB, error);
}

static void on_changed(const GError *error, gpointer user_data)
{
}

static gboolean uses_another(BerthStorageLink *link, const char *before)
{
    g_autofree char *now = run(link, note_address, NULL, NULL);
    return now && strcmp(now, before) != 0;
}

typedef struct {
    BerthStorageConfig config;
    BerthWorkers *workers;
    BerthStorageLink *link;
    char *address; /* of its first client */
} Opened;

static int setup(void **state)
{
    Opened *opened = g_new0(Opened, 1);
    g_autoptr(GError) error = NULL;
    opened->config = cluster_config();
    opened->workers = berth_workers_new();
    opened->link = berth_storage_link_new(&opened->config, opened->workers, 1);
    berth_storage_link_start(opened->link, on_changed, NULL);
    opened->address = run(opened->link, note_address, NULL, &error);
    assert_no_error(error);
    *state = opened;
    return 0;
}

static int teardown(void **state)
{
    Opened *opened = *state;
    berth_storage_link_stop(opened->link);
    assert_true(berth_workers_drain(opened->workers, 60000));
    berth_storage_link_free(opened->link);
    berth_workers_free(opened->workers);
    g_free(opened->address);
    g_free(opened);
    return 0;
}

static void link_whose_own_watch_keeps_a_disk_is_opened_anew(void **state)
{
    Opened *opened = *state;
    BerthStorageLink *link = opened->link;
    const char *before = opened->address;
    g_autoptr(GError) error = NULL;
    conformance_image(conformance_storage, "worn", MIB, (const guint8 *)"w", 1);
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(conformance_storage, "worn", "worn", MIB, NULL);
    assert_non_null(disk);
    BerthImageWriter *writer = run(link, begin_image, (gpointer) "import", &error);
    assert_no_error(error);

    run(link, leave_watch, (gpointer) "worn", NULL);
    run(link, remove_disk, (gpointer) "worn", &error);
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "in use");
    g_clear_error(&error);
    run_until(uses_another(link, before));
    assert_null(berth_storage_link_error(link));
    g_autofree char *after = run(link, note_address, NULL, NULL);
    assert_true(berth_storage_link_is_own(link, after));
    assert_true(berth_storage_link_is_own(link, before)); /* the writer has it */
    /* A write that began with the old client goes on. */
    assert_true(berth_image_writer_write(writer, 0, "w", 1, &error));
    assert_true(berth_image_writer_commit(writer, &error));
    berth_image_writer_free(writer);
    run_until(!berth_storage_link_is_own(link, before));
    assert_true(berth_storage_link_is_own(link, after));
    assert_false(berth_storage_link_is_own(link, ""));
    cluster_remove_disk("worn");
    assert_true(berth_storage_image_remove(conformance_storage, "worn", NULL));
    assert_true(berth_storage_image_remove(conformance_storage, "import", NULL));
}

static gpointer write_log(BerthStorage *storage, gconstpointer log_id, GError **error)
{
    berth_storage_log_write(storage, log_id, 0, "l", 1, error);
    return NULL;
}

/* By who took it for dead: its host had stood still. */
static void link_that_was_cut_off_is_opened_anew(void **state)
{
    Opened *opened = *state;
    BerthStorageLink *link = opened->link;
    const char *before = opened->address;
    g_autoptr(GError) error = NULL;
    const char *const addresses[] = {before, NULL};
    assert_true(berth_storage_fence(conformance_storage, addresses, &error));
    run(link, write_log, (gpointer) "cut", &error);
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "cut off");
    g_clear_error(&error);
    run_until(uses_another(link, before));
    run_until(!berth_storage_link_error(link));
    run(link, write_log, (gpointer) "cut", &error);
    assert_no_error(error);
    assert_true(berth_storage_log_remove(conformance_storage, "cut", NULL));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(link_whose_own_watch_keeps_a_disk_is_opened_anew, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(link_that_was_cut_off_is_opened_anew, setup, teardown),
    };
    return cluster_run("link", tests, G_N_ELEMENTS(tests));
}
