/* SPDX-License-Identifier: Apache-2.0 */
/* What guests ask of storage, while some of it takes long. */
#include <config.h>

#include "nodeagent/guest_private.h"
#include "tests/lib/assert.h"
#include "tests/lib/tempdir.h"

#define N_REMOVALS 20u /* more than there are workers of any kind */

/* --- storage that takes long to remove a disk --------------------------------------------------- */

static struct {
    GMutex mutex;
    GCond changed;
    gboolean is_stuck;
    guint n_stuck;
} removal;

gboolean __wrap_berth_storage_disk_remove_with_checkpoints(BerthStorage *storage,
                                                           const char *disk_id, GError **error);
gboolean __wrap_berth_storage_disk_remove_with_checkpoints(BerthStorage *storage,
                                                           const char *disk_id, GError **error)
{
    g_mutex_lock(&removal.mutex);
    removal.n_stuck++;
    while (removal.is_stuck)
        g_cond_wait(&removal.changed, &removal.mutex);
    removal.n_stuck--;
    g_mutex_unlock(&removal.mutex);
    return TRUE;
}

static guint removals_under_way(void)
{
    g_mutex_lock(&removal.mutex);
    guint n = removal.n_stuck;
    g_mutex_unlock(&removal.mutex);
    return n;
}

static void set_removals_stuck(gboolean is_stuck)
{
    g_mutex_lock(&removal.mutex);
    removal.is_stuck = is_stuck;
    g_cond_broadcast(&removal.changed);
    g_mutex_unlock(&removal.mutex);
}

/* --- tests -------------------------------------------------------------------------------------- */

static guint n_removed;
static gboolean is_sized;

static void on_removed(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    assert_true(berth_guest_remove_disk_finish(result, NULL));
    n_removed++;
}

static void on_sized(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autofree guint64 *sizes = berth_guest_size_logs_finish(result, NULL);
    assert_non_null(sizes);
    is_sized = TRUE;
}

static void removals_that_take_long_keep_no_other_guest_waiting(void **state)
{
    BerthNodeConfig config = {.run_dir = *state, .console_dir = *state};
    BerthStorageConfig storage = {.kind = (char *)"dir", .path = *state, .op_timeout_sec = 30};
    g_autoptr(BerthStorageLane) lane = berth_storage_lane_new(&storage);
    const BerthGuestContext context = {.config = &config, .lane = lane};
    const BerthGuestId id = {.job = 1, .epoch = 1};
    run_until(berth_storage_lane_error(lane) == NULL);
    BerthGuest *guest = berth_guest_new(&context, &id);
    guest->disk_id = g_strdup("disk-1-0-0-1");
    guest->log_id = g_strdup("log-1-0-0-1");
    set_removals_stuck(TRUE);
    for (guint i = 0; i < N_REMOVALS; i++)
        berth_guest_remove_disk(guest, on_removed);
    run_until(removals_under_way() > 0);
    berth_guest_size_logs(guest, on_sized);
    run_until(is_sized);
    assert_int_equal(n_removed, 0);
    set_removals_stuck(FALSE);
    run_until(n_removed == N_REMOVALS);
    berth_guest_free(guest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(removals_that_take_long_keep_no_other_guest_waiting,
                                        tempdir_make, tempdir_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
