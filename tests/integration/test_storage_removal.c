/* SPDX-License-Identifier: Apache-2.0 */
/* Removal of one disk by several clients of a real Ceph cluster: an agent and berthd's collector may be at it at once. */
#include <errno.h>

#include <rbd/librbd.h>

#include "tests/lib/child.h"
#include "tests/lib/storage_cluster.h"
#include "tests/lib/storage_conformance.h"

#define MIB          ((gsize)1024 * 1024)
#define DISKS        6
#define CLIENTS      3
#define UNSEEN_TRIES 20
#define HALF_TRIES   20

static void make_disk(const char *disk_id, gsize bytes)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(conformance_storage, disk_id, "base", bytes, &error);
    assert_no_error(error);
    assert_non_null(disk);
}

static int make_image(void **state)
{
    conformance_image(conformance_storage, "base", MIB, (const guint8 *)"b", 1);
    return 0;
}

static int remove_image(void **state)
{
    return berth_storage_image_remove(conformance_storage, "base", NULL) ? 0 : -1;
}

typedef struct {
    BerthStorage *storage;
    const char *disk_id;
    gint *is_wrong; /* atomic */
} Remover;

/* Until it is gone. Somebody else's being at it is what it may be told meanwhile. */
static gpointer remove_at_once(gpointer data)
{
    const Remover *remover = data;
    gint64 deadline = g_get_monotonic_time() + 120 * G_USEC_PER_SEC;
    for (;;) {
        g_autoptr(GError) error = NULL;
        if (berth_storage_disk_remove(remover->storage, remover->disk_id, &error))
            return NULL;
        if (g_error_matches(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION) &&
            g_get_monotonic_time() < deadline)
            continue;
        g_printerr("%s: %s\n", remover->disk_id, error->message);
        g_atomic_int_set(remover->is_wrong, TRUE);
        return NULL;
    }
}

/* With many objects, as it takes librbd a while to remove them one after the other. */
static void disk_that_several_clients_remove_goes_once(void **state)
{
    g_autoptr(GError) error = NULL;
    BerthStorage *storages[CLIENTS];
    gint is_wrong = FALSE;
    for (guint i = 0; i < CLIENTS; i++) {
        storages[i] = cluster_open(30, &error);
        assert_no_error(error);
    }
    for (guint n = 0; n < DISKS; n++) {
        g_autofree char *disk_id = g_strdup_printf("many-%u", n);
        make_disk(disk_id, 1024 * MIB);
        g_free(cluster_admin(
            "rbd bench --io-type write --io-size 4096 --io-total 1M --io-pattern rand "
            "berth/disk-%s",
            disk_id));
        Remover removers[2 * CLIENTS]; /* each client by two threads */
        GThread *threads[2 * CLIENTS];
        for (guint i = 0; i < G_N_ELEMENTS(threads); i++) {
            removers[i] = (Remover){storages[i % CLIENTS], disk_id, &is_wrong};
            threads[i] = g_thread_new("remover", remove_at_once, &removers[i]);
        }
        for (guint i = 0; i < G_N_ELEMENTS(threads); i++)
            g_thread_join(threads[i]);
    }
    for (guint i = 0; i < CLIENTS; i++)
        berth_storage_free(storages[i]);
    assert_false(is_wrong);
    g_auto(GStrv) left = berth_storage_disk_list(conformance_storage, &error);
    assert_no_error(error);
    assert_int_equal(g_strv_length(left), 0);
}

/* The object that has it (transfer full). */
static char *header_of(const char *disk_id)
{
    g_autofree char *info = cluster_admin("rbd info --format json berth/disk-%s", disk_id);
    const char *id = strstr(info, "\"id\":\"");
    assert_non_null(id);
    id += strlen("\"id\":\"");
    g_autofree char *copy = g_strndup(id, strcspn(id, "\""));
    return g_strconcat("rbd_header.", copy, NULL);
}

/* As CLIENT has claimed it until SECONDS from now. */
static void claim_header(const char *header, const char *client, gint64 seconds)
{
    g_free(cluster_admin("rados -p berth setxattr %s berth.removed-by %" G_GINT64_FORMAT ",%s",
                         header, g_get_real_time() / G_USEC_PER_SEC + seconds, client));
}

static void claim(const char *disk_id, const char *client, gint64 seconds)
{
    g_autofree char *header = header_of(disk_id);
    claim_header(header, client, seconds);
}

static void removal_that_another_client_has_begun_waits_for_it(void **state)
{
    g_autoptr(GError) error = NULL;
    make_disk("begun", MIB);
    claim("begun", "127.0.0.1:0/4242", 3600);
    assert_false(berth_storage_disk_remove(conformance_storage, "begun", &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "another client removes it");
    g_clear_error(&error);
    claim("begun", "127.0.0.1:0/4242", -1); /* it does not have it open, and would by now */
    assert_true(berth_storage_disk_remove(conformance_storage, "begun", &error));
    assert_no_error(error);
}

/* However long it takes. */
static void removal_that_another_client_is_at_is_left_to_it(void **state)
{
    g_autoptr(GError) error = NULL;
    make_disk("at", MIB);
    cluster_leave_dead_watch("at");
    g_auto(GStrv) clients = berth_storage_disk_clients(conformance_storage, "at", &error);
    assert_no_error(error);
    assert_int_equal(g_strv_length(clients), 1);
    claim("at", clients[0], -1);
    assert_false(berth_storage_disk_remove(conformance_storage, "at", &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "another client removes it");
    g_clear_error(&error);
    assert_true(berth_storage_fence(conformance_storage, (const char *const *)clients, &error));
    assert_true(berth_storage_disk_remove(conformance_storage, "at", &error));
    assert_no_error(error);
}

/* A connection that broke in the midst of it. */
static void removal_that_this_client_has_begun_goes_on(void **state)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) own = cluster_clients_of(conformance_storage);
    make_disk("own", MIB);
    claim("own", own[0], 3600);
    assert_true(berth_storage_disk_remove(conformance_storage, "own", &error));
    assert_no_error(error);
}

static void removal_that_is_refused_leaves_the_disk_to_others(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthStorage) other = cluster_open(30, &error);
    assert_no_error(error);
    make_disk("open", MIB);
    cluster_leave_dead_watch("open");
    assert_false(berth_storage_disk_remove(conformance_storage, "open", &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "in use");
    g_clear_error(&error);
    g_auto(GStrv) clients = berth_storage_disk_clients(conformance_storage, "open", &error);
    assert_no_error(error);
    assert_int_equal(g_strv_length(clients), 1);
    assert_true(berth_storage_fence(conformance_storage, (const char *const *)clients, &error));
    assert_true(berth_storage_disk_remove(other, "open", &error));
    assert_no_error(error);
}

/* Its removal by a client that is killed when it has begun, with so many objects that this takes seconds. */
static void leave_removal_half_done(const char *disk_id)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *conf = g_build_filename(cluster_directory(), "ceph.conf", NULL);
    g_autofree char *image = g_strconcat("berth/disk-", disk_id, NULL);
    g_autofree char *id_object = g_strconcat("rbd_id.disk-", disk_id, "\n", NULL);
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDERR_PIPE);
    char said[64];
    child_bind(launcher);
    g_autoptr(GSubprocess) remover = g_subprocess_launcher_spawn(
        launcher, &error, "rbd", "-c", conf, "-n", "client.admin", "rm", image, NULL);
    assert_no_error(error);
    /* Of how far it is it tells when the image is in the trash. */
    assert_true(g_input_stream_read(g_subprocess_get_stderr_pipe(remover), said, sizeof said, NULL,
                                    NULL) > 0);
    g_subprocess_force_exit(remover);
    assert_true(g_subprocess_wait(remover, NULL, NULL));
    g_autofree char *objects = cluster_admin("rados -p berth ls");
    assert_null(strstr(objects, id_object));
}

static gboolean is_listed(const char *disk_id)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) listed = berth_storage_disk_list(conformance_storage, &error);
    assert_no_error(error);
    return g_strv_contains((const char *const *)listed, disk_id);
}

/* The header of a disk HALF, of which the removal was interrupted (transfer full): it may have been done before that. */
static char *leave_half_a_disk(void)
{
    for (guint i = 0; i < HALF_TRIES; i++) {
        g_free(cluster_admin("rbd create --size 20G --object-size 64K berth/disk-half"));
        g_autofree char *header = header_of("half");
        leave_removal_half_done("half");
        if (is_listed("half"))
            return g_steal_pointer(&header);
    }
    fail_msg("it was removed each time before its client was killed");
    return NULL;
}

/* The one client that watches HEADER (transfer full). */
static char *watcher_of(const char *header)
{
    g_autofree char *watchers = cluster_admin("rados -p berth listwatchers %s", header);
    assert_true(g_str_has_prefix(watchers, "watcher="));
    const char *address = watchers + strlen("watcher=");
    return g_strndup(address, strcspn(address, " "));
}

/* It is in RBD's trash, where its claim holds all the same. */
static void removal_that_was_left_half_done_is_claimed(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *header = leave_half_a_disk();
    g_autofree char *dead = watcher_of(header);
    const char *const clients[] = {dead, NULL};
    g_auto(GStrv) seen = berth_storage_disk_clients(conformance_storage, "half", &error);
    assert_no_error(error);
    assert_true(g_strv_equal((const char *const *)seen, clients));
    assert_true(berth_storage_fence(conformance_storage, clients, &error));
    assert_no_error(error);
    claim_header(header, "127.0.0.1:0/4242", 3600);
    assert_false(berth_storage_disk_remove(conformance_storage, "half", &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "another client removes it");
    g_clear_error(&error);
    claim_header(header, "127.0.0.1:0/4242", -1);
    assert_true(berth_storage_disk_remove(conformance_storage, "half", &error));
    assert_no_error(error);
    g_autofree char *objects = cluster_admin("rados -p berth ls");
    assert_null(strstr(objects, header));
}

/* TRUE: a client of DISK_ID is gone and cut off, and Ceph keeps it nevertheless. */
static gboolean leave_endless_watch(const char *disk_id)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *header = header_of(disk_id);
    cluster_leave_unseen_watch(disk_id);
    g_autofree char *watchers = cluster_admin("rados -p berth listwatchers %s", header);
    if (*watchers == '\0')
        return FALSE;
    g_autofree char *dead = watcher_of(header);
    const char *const clients[] = {dead, NULL};
    assert_true(berth_storage_fence(conformance_storage, clients, &error));
    g_autofree char *left = cluster_admin("rados -p berth listwatchers %s", header);
    return *left != '\0';
}

/* Of a client that was killed as it began to have the disk open. */
static void removal_does_not_wait_for_a_watch_without_end(void **state)
{
    g_autoptr(GError) error = NULL;
    guint endless = 0;
    for (guint i = 0; i < UNSEEN_TRIES && endless == 0; i++) {
        g_autofree char *disk_id = g_strdup_printf("unseen-%u", i);
        make_disk(disk_id, MIB);
        endless += leave_endless_watch(disk_id);
        assert_true(berth_storage_disk_remove(conformance_storage, disk_id, &error));
        assert_no_error(error);
    }
    if (endless == 0)
        skip();
}

/* --- removals that find others at it, or do not come back ---------------------------------------- */

static struct {
    GMutex lock;
    GCond changed;
    gboolean holds; /* whoever removes an image from now on */
    guint held;
    const char *taken; /* the header of an image that another client claims when it is removed */
    gboolean was_stopped;
} gate;

int __real_rbd_remove_with_progress(rados_ioctx_t io, const char *name, librbd_progress_fn_t func,
                                    void *data);
int __wrap_rbd_remove_with_progress(rados_ioctx_t io, const char *name, librbd_progress_fn_t func,
                                    void *data);

/* Whoever tells of progress is to stop when it has learnt that another client has claimed the image. */
static gboolean is_stopped(librbd_progress_fn_t func, void *data)
{
    gint64 deadline = g_get_monotonic_time() + 20 * G_USEC_PER_SEC;
    while (func(1, 2, data) == 0) {
        if (g_get_monotonic_time() > deadline)
            return FALSE;
        g_usleep(50000);
    }
    return TRUE;
}

/* One that was held has done nothing. */
static gboolean was_held(librbd_progress_fn_t func, void *data)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&gate.lock);
    if (!gate.holds)
        return FALSE;
    gate.held++;
    while (gate.holds)
        g_cond_wait(&gate.changed, &gate.lock);
    if (gate.taken != NULL)
        gate.was_stopped = is_stopped(func, data);
    gate.held--;
    g_cond_signal(&gate.changed);
    return TRUE;
}

int __wrap_rbd_remove_with_progress(rados_ioctx_t io, const char *name, librbd_progress_fn_t func,
                                    void *data)
{
    if (was_held(func, data))
        return -ETIMEDOUT;
    if (gate.taken == NULL)
        return __real_rbd_remove_with_progress(io, name, func, data);
    assert_string_equal(name, "disk-lapsed");
    claim_header(gate.taken, "127.0.0.1:0/4242", 3600);
    return -ENOTEMPTY;
}

static void hold_removals(gboolean holds)
{
    g_mutex_lock(&gate.lock);
    gate.holds = holds;
    g_cond_broadcast(&gate.changed);
    while (!holds && gate.held > 0)
        g_cond_wait(&gate.changed, &gate.lock);
    g_mutex_unlock(&gate.lock);
}

static void removal_that_does_not_come_back_is_not_waited_for(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthStorage) stuck = cluster_open(1, &error);
    assert_no_error(error);
    make_disk("stuck", MIB);
    hold_removals(TRUE);
    assert_false(berth_storage_disk_remove(stuck, "stuck", &error));
    assert_berth_error(error, BERTH_ERROR_DEADLINE_EXCEEDED, "stuck");
    assert_true(berth_storage_is_worn(stuck));
    g_clear_error(&error);
    assert_false(berth_storage_disk_remove(stuck, "stuck", &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "another client removes it");
    g_clear_error(&error);
    hold_removals(FALSE);
    cluster_remove_disk("stuck");
}

/* Checkpoints of a disk go before it, which may take longer than its claim holds. */
static void removal_whose_claim_has_lapsed_meanwhile_is_left_to_who_has_it(void **state)
{
    g_autoptr(GError) error = NULL;
    make_disk("lapsed", MIB);
    g_autofree char *header = header_of("lapsed");
    gate.taken = header;
    assert_false(berth_storage_disk_remove(conformance_storage, "lapsed", &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "another client removes it");
    g_clear_error(&error);
    gate.taken = NULL;
    claim_header(header, "127.0.0.1:0/4242", -1);
    assert_true(berth_storage_disk_remove(conformance_storage, "lapsed", &error));
    assert_no_error(error);
}

static void removal_that_comes_back_late_stops_where_another_client_is_at_it(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthStorage) late = cluster_open(1, &error);
    assert_no_error(error);
    make_disk("late", MIB);
    g_autofree char *header = header_of("late");
    hold_removals(TRUE);
    assert_false(berth_storage_disk_remove(late, "late", &error));
    assert_berth_error(error, BERTH_ERROR_DEADLINE_EXCEEDED, "late");
    g_clear_error(&error);
    claim_header(header, "127.0.0.1:0/4242", 3600);
    gate.taken = header;
    hold_removals(FALSE);
    gate.taken = NULL;
    assert_true(gate.was_stopped);
    claim_header(header, "127.0.0.1:0/4242", -1);
    assert_true(berth_storage_disk_remove(conformance_storage, "late", &error));
    assert_no_error(error);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(disk_that_several_clients_remove_goes_once, make_image,
                                        remove_image),
        cmocka_unit_test_setup_teardown(removal_that_another_client_has_begun_waits_for_it,
                                        make_image, remove_image),
        cmocka_unit_test_setup_teardown(removal_that_another_client_is_at_is_left_to_it, make_image,
                                        remove_image),
        cmocka_unit_test_setup_teardown(removal_that_this_client_has_begun_goes_on, make_image,
                                        remove_image),
        cmocka_unit_test_setup_teardown(removal_that_was_left_half_done_is_claimed, make_image,
                                        remove_image),
        cmocka_unit_test_setup_teardown(removal_does_not_wait_for_a_watch_without_end, make_image,
                                        remove_image),
        cmocka_unit_test_setup_teardown(removal_that_does_not_come_back_is_not_waited_for,
                                        make_image, remove_image),
        cmocka_unit_test_setup_teardown(
            removal_whose_claim_has_lapsed_meanwhile_is_left_to_who_has_it, make_image,
            remove_image),
        cmocka_unit_test_setup_teardown(
            removal_that_comes_back_late_stops_where_another_client_is_at_it, make_image,
            remove_image),
        cmocka_unit_test_setup_teardown(removal_that_is_refused_leaves_the_disk_to_others,
                                        make_image, remove_image),
    };
    return cluster_run("storage_removal", tests, G_N_ELEMENTS(tests));
}
