/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the cluster of a test program: its start, its end, and commands to it. */
#include "tests/lib/storage_cluster.h"

#include <stdlib.h>
#include <unistd.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include "storage/rbd_internal.h"
#include "tests/lib/storage_conformance.h"

static char *directory;
static char *ceph_conf;
static char *keyring;
static char *rbd_options;

const char *cluster_directory(void)
{
    return directory;
}

static int lab_ceph(const char *verb, const char *option, const char *value)
{
    g_autofree char *program =
        g_build_filename(g_getenv("top_srcdir"), "lab", "lib", "ceph-cluster", NULL);
    g_autofree char *pid = g_strdup_printf("%d", getpid());
    const char *argv[] = {program, verb, directory, option, value, NULL, NULL, NULL};
    if (strcmp(verb, "start") == 0) {
        argv[5] = "--with";
        argv[6] = pid;
    }
    int status = -1;
    g_autoptr(GError) error = NULL;
    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_STDOUT_TO_DEV_NULL, NULL, NULL, NULL, NULL,
                 &status, &error);
    assert_no_error(error);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void cluster_do(const char *verb)
{
    assert_int_equal(lab_ceph(verb, NULL, NULL), 0);
}

char *cluster_admin(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_autofree char *line = g_strdup_printf("timeout 60 %s -c %s -n client.admin", text, ceph_conf);
    g_auto(GStrv) argv = g_strsplit(line, " ", -1);
    g_autoptr(GError) error = NULL;
    char *output = NULL;
    int status = -1;
    g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL,
                 &output, NULL, &status, &error);
    assert_no_error(error);
    if (!g_spawn_check_wait_status(status, NULL))
        fail_msg("failed: %s", line);
    return output;
}

BerthStorageConfig cluster_config(void)
{
    return (BerthStorageConfig){.kind = (char *)"rbd",
                                .ceph_conf = ceph_conf,
                                .ceph_user = (char *)"berth",
                                .ceph_live_user = (char *)"berth-live",
                                .keyring = keyring,
                                .pool = (char *)"berth",
                                .secret_uuid = (char *)"9bdfd2fa-6f4a-4a52-bb29-1de27c25a4d9",
                                .op_timeout_sec = 30};
}

BerthStorage *cluster_open(guint op_timeout_sec, GError **error)
{
    BerthStorageConfig config = cluster_config();
    config.op_timeout_sec = op_timeout_sec;
    return berth_storage_open(&config, error);
}

char **cluster_clients_of(BerthStorage *storage)
{
    g_autofree char *addresses = berth_storage_client_address(storage);
    return g_strsplit(addresses, " ", -1);
}

static void ignore_notify(void *data, uint64_t notify_id, uint64_t handle, uint64_t notifier_id,
                          void *content, size_t length)
{
}

/* The watch that is left on purpose is no leak of ours. */
static int leave_watch_on(rados_ioctx_t io, const char *header)
{
    uint64_t cookie = 0;
#ifdef __SANITIZE_ADDRESS__
    __lsan_disable();
#endif
    int result = rados_watch3(io, header, &cookie, ignore_notify, NULL, 0, NULL);
#ifdef __SANITIZE_ADDRESS__
    __lsan_enable();
#endif
    return result;
}

void cluster_leave_watch(BerthStorage *storage, const char *disk_id)
{
    rados_ioctx_t io = ((BerthRbdStorage *)storage)->images;
    g_autofree char *name = g_strconcat("disk-", disk_id, NULL);
    rbd_image_t image = NULL;
    char id[64];
    assert_int_equal(rbd_open_read_only(io, name, &image, NULL), 0);
    assert_int_equal(rbd_get_id(image, id, sizeof id), 0);
    rbd_close(image);
    g_autofree char *header = g_strconcat("rbd_header.", id, NULL);
    assert_int_equal(leave_watch_on(io, header), 0);
}

/* KIND: its last argument; NULL: none. */
static GSubprocess *start_watcher(const char *disk_id, const char *kind)
{
    g_autofree char *program =
        g_build_filename(g_getenv("top_builddir"), "tests", "lib", "dying_watcher", NULL);
    g_autofree char *image = g_strconcat("disk-", disk_id, NULL);
    g_autoptr(GError) error = NULL;
    GSubprocess *watcher =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE, &error,
                         program, ceph_conf, keyring, "berth", image, kind, NULL);
    assert_no_error(error);
    return watcher;
}

static void await_ready(GSubprocess *watcher)
{
    char said[8] = "";
    g_input_stream_read_all(g_subprocess_get_stdout_pipe(watcher), said, strlen("ready\n"), NULL,
                            NULL, NULL);
    assert_string_equal(said, "ready\n");
}

static void kill_watcher(GSubprocess *watcher)
{
    g_subprocess_force_exit(watcher);
    assert_true(g_subprocess_wait(watcher, NULL, NULL));
}

void cluster_leave_dead_watch(const char *disk_id)
{
    g_autoptr(GSubprocess) watcher = start_watcher(disk_id, NULL);
    await_ready(watcher);
    kill_watcher(watcher);
}

/* The OSD has the question and the end of the client before it at once. */
void cluster_leave_unseen_watch(const char *disk_id)
{
    g_autoptr(GSubprocess) watcher = start_watcher(disk_id, "unanswered");
    await_ready(watcher);
    cluster_do("pause");
    assert_true(
        g_output_stream_write_all(g_subprocess_get_stdin_pipe(watcher), "\n", 1, NULL, NULL, NULL));
    g_output_stream_flush(g_subprocess_get_stdin_pipe(watcher), NULL, NULL);
    await_ready(watcher);
    kill_watcher(watcher);
    cluster_do("resume");
}

void cluster_remove_disk(const char *disk_id)
{
    gint64 deadline = g_get_monotonic_time() + 90 * G_USEC_PER_SEC;
    while (!berth_storage_disk_remove(conformance_storage, disk_id, NULL)) {
        assert_true(g_get_monotonic_time() < deadline);
        g_usleep(G_USEC_PER_SEC / 2);
    }
}

static int set_up(void **state)
{
    g_autoptr(GError) error = NULL;
    rbd_options = g_strdup_printf(":conf=%s:id=berth:keyring=%s", ceph_conf, keyring);
    conformance_rbd_options = rbd_options;
    conformance_storage = cluster_open(30, &error);
    assert_no_error(error);
    return 0;
}

static int tear_down(void **state)
{
    berth_storage_free(conformance_storage);
    g_free(rbd_options);
    return 0;
}

int cluster_run(const char *name, const struct CMUnitTest *tests, size_t n_tests)
{
    directory = g_dir_make_tmp("berth-ceph-XXXXXX", NULL);
    ceph_conf = g_build_filename(directory, "ceph.conf", NULL);
    keyring = g_build_filename(directory, "ceph.client.berth.keyring", NULL);
    g_autofree char *qemu_io = g_find_program_in_path("qemu-io");
    int status = geteuid() != 0 || qemu_io == NULL ? 77 : lab_ceph("start", "--size", "6");
    if (status == 0)
        status = _cmocka_run_group_tests(name, tests, n_tests, set_up, tear_down);
    else
        g_printerr(status == 77 ? "skipped: needs root, Ceph and qemu-utils\n" : "no cluster\n");
    lab_ceph("stop", NULL, NULL);
    g_free(keyring);
    g_free(ceph_conf);
    g_free(directory);
    return status;
}
