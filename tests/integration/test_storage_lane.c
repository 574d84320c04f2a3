/* SPDX-License-Identifier: Apache-2.0 */
/* The agent's way to storage on a real Ceph cluster: what was fenced stays cut off, and the agent
 * comes back; what an operation left open in Ceph's client does not stay. */
#include "tests/lib/storage_cluster.h"
#include "tests/lib/storage_conformance.h"

#include "nodeagent/storage_lane.h"

static guint n_changes;

static void on_changed(gpointer user_data)
{
    n_changes++;
}

/* --- one operation ------------------------------------------------------------------------------ */

typedef struct {
    gboolean is_done;
    GError *error;
} Answer;

static gpointer write_log(BerthStorage *storage, gconstpointer log_id, GError **error)
{
    berth_storage_log_write(storage, log_id, 0, "x", 1, error);
    return NULL;
}

static void on_written(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Answer *answer = user_data;
    berth_work_finish(result, &answer->error);
    answer->is_done = TRUE;
}

static void begin_write(BerthStorageLane *lane, BerthStorageFunc func, const char *log_id,
                        Answer *answer)
{
    *answer = (Answer){FALSE, NULL};
    berth_storage_lane_run(lane, BERTH_LANE_DATA, "write a log", func, g_strdup(log_id), g_free,
                           NULL, NULL, on_written, answer);
}

static void end_write(Answer *answer, BerthErrorCode code, const char *text)
{
    run_until(answer->is_done);
    if (text == NULL)
        assert_no_error(answer->error);
    else
        assert_berth_error(answer->error, code, text);
    g_clear_error(&answer->error);
}

/* --- tests -------------------------------------------------------------------------------------- */

/* ADDRESS: as a lane tells it. */
static void fence(const char *address)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) clients = g_strsplit(address, " ", -1);
    assert_true(berth_storage_fence(conformance_storage, (const char *const *)clients, &error));
}

static GMutex gate; /* held: an operation that has begun waits */

static gpointer write_log_later(BerthStorage *storage, gconstpointer log_id, GError **error)
{
    g_mutex_lock(&gate);
    g_mutex_unlock(&gate);
    return write_log(storage, log_id, error);
}

static void lane_that_was_fenced_works_again_when_reopened(void **state)
{
    BerthStorageConfig config = cluster_config();
    g_autoptr(BerthStorageLane) lane = berth_storage_lane_new(&config);
    Answer early, late, answer;
    berth_storage_lane_set_changed_func(lane, on_changed, NULL);
    run_until(berth_storage_lane_error(lane) == NULL);
    g_autofree char *before = g_strdup(berth_storage_lane_client_address(lane));
    assert_string_not_equal(before, "");

    /* One is under way when the node is cut off, and comes to storage when it is back. */
    g_mutex_lock(&gate);
    begin_write(lane, write_log_later, "late", &late);
    fence(before);
    n_changes = 0;
    begin_write(lane, write_log, "early", &early);
    end_write(&early, BERTH_ERROR_UNAVAILABLE, "cut off");
    assert_int_equal(n_changes, 1);
    assert_true(berth_storage_lane_is_fenced(lane));
    assert_non_null(strstr(berth_storage_lane_error(lane), "cut this node off"));
    assert_string_equal(berth_storage_lane_client_address(lane), "");
    begin_write(lane, write_log, "closed", &answer);
    end_write(&answer, BERTH_ERROR_UNAVAILABLE, "does not reach storage");

    berth_storage_lane_reopen(lane);
    run_until(berth_storage_lane_error(lane) == NULL);
    assert_false(berth_storage_lane_is_fenced(lane));
    assert_string_not_equal(berth_storage_lane_client_address(lane), "");
    assert_string_not_equal(berth_storage_lane_client_address(lane), before);
    g_mutex_unlock(&gate);
    end_write(&late, BERTH_ERROR_UNAVAILABLE, "cut off");
    assert_false(berth_storage_lane_is_fenced(lane)); /* that was the old handle */
    begin_write(lane, write_log, "again", &answer);
    end_write(&answer, 0, NULL);
}

/* --- being worn --------------------------------------------------------------------------------- */

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

static char *used_address; /* by the last operation */

static gpointer note_address(BerthStorage *storage, gconstpointer unused, GError **error)
{
    used_address = berth_storage_client_address(storage);
    return NULL;
}

static void assert_used_address(BerthStorageLane *lane, const char *address)
{
    Answer answer;
    begin_write(lane, note_address, "", &answer);
    end_write(&answer, 0, NULL);
    assert_string_equal(used_address, address);
    g_free(used_address);
}

static void lane_whose_own_watch_keeps_a_disk_is_opened_anew(void **state)
{
    BerthStorageConfig config = cluster_config();
    g_autoptr(BerthStorageLane) lane = berth_storage_lane_new(&config);
    Answer answer;
    run_until(berth_storage_lane_error(lane) == NULL);
    g_autofree char *before = g_strdup(berth_storage_lane_client_address(lane));
    conformance_image(conformance_storage, "worn", 1024 * 1024, (const guint8 *)"w", 1);
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(conformance_storage, "worn", "worn", 1024 * 1024, NULL);
    assert_non_null(disk);
    begin_write(lane, leave_watch, "worn", &answer);
    end_write(&answer, 0, NULL);

    berth_storage_lane_set_changed_func(lane, on_changed, NULL);
    n_changes = 0;
    begin_write(lane, remove_disk, "worn", &answer);
    end_write(&answer, BERTH_ERROR_FAILED_PRECONDITION, "in use");
    begin_write(lane, write_log, "meanwhile", &answer);
    end_write(&answer, 0, NULL);
    run_until(n_changes > 0);
    assert_null(berth_storage_lane_error(lane));
    /* Both are told, and the first is used until the scheduler knows of the second. */
    const char *both = berth_storage_lane_client_address(lane);
    assert_true(g_str_has_suffix(both, before));
    g_autofree char *after = g_strndup(both, strlen(both) - strlen(before) - strlen(" "));
    assert_string_not_equal(after, before);
    assert_used_address(lane, before);
    berth_storage_lane_set_known(lane);
    assert_used_address(lane, after);
    cluster_remove_disk("worn");
    assert_true(berth_storage_image_remove(conformance_storage, "worn", NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lane_that_was_fenced_works_again_when_reopened),
        cmocka_unit_test(lane_whose_own_watch_keeps_a_disk_is_opened_anew),
    };
    return cluster_run("lane", tests, G_N_ELEMENTS(tests));
}
