/* SPDX-License-Identifier: Apache-2.0 */
/* Storage of kind "rbd" against a real Ceph cluster. */
#include "storage/rbd_internal.h"
#include "tests/lib/storage_cluster.h"
#include "tests/lib/storage_conformance.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <time.h>

#define MIB ((gsize)1024 * 1024)

static time_t clock_ahead_sec;

/* Linked with --wrap=time: uploads of yesterday cannot be had otherwise. */
time_t __real_time(time_t *out);
time_t __wrap_time(time_t *out);
time_t __wrap_time(time_t *out)
{
    time_t now = __real_time(NULL) + clock_ahead_sec;
    if (out != NULL)
        *out = now;
    return now;
}

/* --- storage ------------------------------------------------------------------------------------ */

static gboolean was_probed(void)
{
    g_autofree char *objects = cluster_admin("rados -p berth -N check ls");
    return strstr(objects, "berth") != NULL;
}

static void connect_changes_nothing(void **state)
{
    BerthStorageConfig config = cluster_config();
    g_autoptr(GError) error = NULL;
    g_free(cluster_admin("rados -p berth -N check rm berth"));
    g_autoptr(BerthStorage) storage = berth_storage_connect(&config, &error);
    assert_no_error(error);
    g_autoptr(GBytes) mark = berth_storage_mark_read(storage, NULL);
    assert_non_null(mark); /* of a test before this one */
    assert_false(was_probed());
    assert_true(berth_storage_prepare(storage, &error));
    assert_true(was_probed());
}

static void open_of_unusable_configuration_says_what_to_check(void **state)
{
    const BerthStorageConfig right = cluster_config();
    const char *ceph_conf = right.ceph_conf, *keyring = right.keyring;
    g_autofree char *other_key = g_build_filename(cluster_directory(), "wrong.keyring", NULL);
    g_autofree char *nowhere = g_build_filename(cluster_directory(), "nowhere.conf", NULL);
    g_autofree char *garbage = g_build_filename(cluster_directory(), "garbage.conf", NULL);
    assert_true(g_file_set_contents(
        other_key, "[client.berth]\n\tkey = AQCa2ABrIHn2KRAAEgeaz0rcLYGEEjjCiZ+62Q==\n", -1, NULL));
    assert_true(
        g_file_set_contents(nowhere, "[global]\nmon host = [v2:127.0.0.1:9/0]\n", -1, NULL));
    assert_true(g_file_set_contents(garbage, "[global\n=\n\x01", -1, NULL));
    const struct {
        const char *conf, *user, *keyring, *pool;
        BerthErrorCode code;
        const char *text;
    } cases[] = {
        {"/no.conf", "berth", keyring, "berth", BERTH_ERROR_NOT_FOUND, "/no.conf"},
        {ceph_conf, "berth", "/no.keyring", "berth", BERTH_ERROR_NOT_FOUND, "/no.keyring"},
        {ceph_conf, "berth", other_key, "berth", BERTH_ERROR_PERMISSION_DENIED, other_key},
        {ceph_conf, "nobody", keyring, "berth", BERTH_ERROR_PERMISSION_DENIED, "client.nobody"},
        {ceph_conf, "berth", keyring, "other", BERTH_ERROR_NOT_FOUND, "no pool other"},
        {nowhere, "berth", keyring, "berth", BERTH_ERROR_UNAVAILABLE, "ceph -s"},
        {garbage, "berth", keyring, "berth", BERTH_ERROR_INVALID_ARGUMENT, garbage},
        {NULL, "berth", keyring, "berth", BERTH_ERROR_INVALID_ARGUMENT, "needs ceph_conf"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        BerthStorageConfig config = right;
        config.ceph_conf = (char *)cases[i].conf;
        config.ceph_user = (char *)cases[i].user;
        config.keyring = (char *)cases[i].keyring;
        config.pool = (char *)cases[i].pool;
        config.op_timeout_sec = 3;
        g_autoptr(GError) error = NULL;
        assert_null(berth_storage_open(&config, &error));
        assert_berth_error(error, cases[i].code, cases[i].text);
    }
    g_unlink(other_key);
    g_unlink(nowhere);
    g_unlink(garbage);
}

/* TEXT with each PART replaced by BY (transfer full). */
static char *replace(const char *text, const char *part, const char *by)
{
    g_auto(GStrv) parts = g_strsplit(text, part, -1);
    return g_strjoinv(by, parts);
}

/* --- images and disks ------------------------------------------------------------------------- */

static void image_of_crashed_import_is_listed_and_removable(void **state)
{
    g_free(cluster_admin("rbd create berth/img-crashed --size 8"));
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) images = berth_storage_image_list(conformance_storage, &error);
    assert_no_error(error);
    assert_true(g_strv_contains((const char *const *)images, "crashed"));
    assert_null(berth_storage_image_create(conformance_storage, "crashed", MIB, &error));
    assert_berth_error(error, BERTH_ERROR_ALREADY_EXISTS, "crashed import");
    g_clear_error(&error);
    assert_null(berth_storage_disk_create(conformance_storage, "c", "crashed", 8 * MIB, &error));
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "no image crashed");
    assert_true(berth_storage_image_remove(conformance_storage, "crashed", NULL));
}

static void image_remove_during_import_is_failed_precondition(void **state)
{
    g_autoptr(BerthImageWriter) writer =
        berth_storage_image_create(conformance_storage, "importing", MIB, NULL);
    assert_non_null(writer);
    g_autoptr(GError) error = NULL;
    assert_false(berth_storage_image_remove(conformance_storage, "importing", &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "being written");
    assert_true(berth_image_writer_commit(writer, NULL));
    g_clear_pointer(&writer, berth_image_writer_free);
    assert_true(berth_storage_image_remove(conformance_storage, "importing", NULL));
}

/* What there is with this TEXT in its name, in the pool and in its list of images. (transfer full) */
static char *find_objects(const char *text)
{
    g_autofree char *objects = cluster_admin("rados -p berth ls");
    g_autofree char *images = cluster_admin("rados -p berth listomapkeys rbd_directory");
    g_autofree char *all = g_strconcat(objects, images, NULL);
    g_auto(GStrv) lines = g_strsplit(all, "\n", -1);
    GString *found = g_string_new(NULL);
    for (guint i = 0; lines[i] != NULL; i++) {
        if (strstr(lines[i], text) != NULL)
            g_string_append_printf(found, "%s ", lines[i]);
    }
    return g_string_free(found, FALSE);
}

/* The steps of librbd, of which a crash leaves the first or the last few. */
static void image_remove_of_a_part_takes_all_that_is_left(void **state)
{
    static const char *const missing[][5] = {
        {"rm rbd_object_map.%s"},
        {"rm rbd_object_map.%s", "rm rbd_header.%s"},
        {"rm rbd_object_map.%s", "rm rbd_header.%s", "rm rbd_id.img-part"},
        {"rm rbd_object_map.%s", "rm rbd_header.%s", "rmomapkey rbd_directory name_img-part",
         "rmomapkey rbd_directory id_%s"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(missing); i++) {
        g_free(cluster_admin("rbd create berth/img-part --size 8 --image-feature layering "
                             "--image-feature exclusive-lock --image-feature object-map"));
        g_autofree char *id = cluster_admin("rados -p berth get rbd_id.img-part -");
        for (guint at = 0; missing[i][at] != NULL; at++) {
            g_autofree char *command = replace(missing[i][at], "%s", id + 4); /* its length */
            g_free(cluster_admin("rados -p berth %s", command));
        }
        g_autofree char *before = find_objects("img-part");
        assert_string_not_equal(before, "");
        g_autoptr(GError) error = NULL;
        /* Where little is left librbd says that there is nothing, and has removed it. */
        if (!berth_storage_image_remove(conformance_storage, "part", &error))
            assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "part");
        g_clear_error(&error);
        g_autofree char *named = find_objects("img-part");
        g_autofree char *numbered = find_objects(id + 4);
        assert_string_equal(named, "");
        assert_string_equal(numbered, "");
        assert_false(berth_storage_image_remove(conformance_storage, "part", &error));
        assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "part");
    }
}

static void image_remove_takes_one_whose_commit_was_cut_short(void **state)
{
    static const char *const left[] = {"snap create", "snap protect"};
    g_autoptr(GError) error = NULL;
    for (guint n = 1; n <= G_N_ELEMENTS(left); n++) {
        g_free(cluster_admin("rbd create berth/img-cut --size 8"));
        for (guint i = 0; i < n; i++)
            g_free(cluster_admin("rbd %s berth/img-cut@berth", left[i]));
        gboolean is_committed = FALSE;
        assert_true(
            berth_storage_image_is_committed(conformance_storage, "cut", &is_committed, NULL));
        assert_int_equal(is_committed, n == 2);
        berth_storage_image_remove(conformance_storage, "cut", &error);
        assert_no_error(error);
        g_autofree char *named = find_objects("img-cut");
        assert_string_equal(named, "");
    }
}

/* Somebody's own snapshot. */
static void image_remove_that_cannot_is_no_success_and_not_not_found(void **state)
{
    g_autoptr(GError) error = NULL;
    g_free(cluster_admin("rbd create berth/img-kept --size 8"));
    g_free(cluster_admin("rbd snap create berth/img-kept@mine"));
    assert_false(berth_storage_image_remove(conformance_storage, "kept", &error));
    assert_false(g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND));
    g_free(cluster_admin("rbd snap rm berth/img-kept@mine"));
    assert_true(berth_storage_image_remove(conformance_storage, "kept", NULL));
}

static void disk_of_crashed_creation_is_made_anew(void **state)
{
    conformance_image(conformance_storage, "parent", MIB, (const guint8 *)"p", 1);
    g_free(cluster_admin("rbd clone berth/img-parent@berth berth/disk-half"));
    g_autoptr(GError) error = NULL;
    assert_null(berth_storage_disk_source(conformance_storage, "half", &error));
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "half");
    g_clear_error(&error);
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(conformance_storage, "half", "parent", 3 * MIB, &error);
    assert_no_error(error);
    g_autofree char *info = cluster_admin("rbd info berth/disk-half");
    assert_non_null(strstr(info, "size 3 MiB"));
    assert_true(berth_storage_disk_remove(conformance_storage, "half", NULL));
    assert_true(berth_storage_image_remove(conformance_storage, "parent", NULL));
}

/* librbd would wait for ever for a newer map in the one thread in which it would come. */
static void data_pool_that_is_not_there_is_said(void **state)
{
    g_autoptr(GError) error = NULL;
    conformance_image(conformance_storage, "apart", MIB, (const guint8 *)"a", 1);
    g_free(cluster_admin("rbd config pool set berth rbd_default_data_pool nowhere"));
    assert_null(berth_storage_disk_create(conformance_storage, "a1", "apart", MIB, &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "rbd_default_data_pool");
    g_clear_error(&error);
    assert_null(berth_storage_image_create(conformance_storage, "apart2", MIB, &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "rbd_default_data_pool");
    g_clear_error(&error);
    g_free(cluster_admin("rbd config pool set berth rbd_default_data_pool berth"));
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(conformance_storage, "a1", "apart", MIB, &error);
    assert_no_error(error);
    assert_non_null(disk);
    g_free(cluster_admin("rbd config pool remove berth rbd_default_data_pool"));
    assert_true(berth_storage_disk_remove(conformance_storage, "a1", NULL));
    assert_true(berth_storage_image_remove(conformance_storage, "apart", NULL));
}

static void disk_source_has_all_that_libvirt_needs(void **state)
{
    conformance_image(conformance_storage, "source", MIB, (const guint8 *)"s", 1);
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(conformance_storage, "s1", "source", MIB, NULL);
    assert_non_null(disk);
    assert_true(disk->is_rbd);
    assert_string_equal(disk->rbd_pool, "berth");
    assert_string_equal(disk->rbd_image, "disk-s1");
    assert_string_equal(disk->rbd_user, "berth");
    assert_string_equal(disk->rbd_secret_uuid, "9bdfd2fa-6f4a-4a52-bb29-1de27c25a4d9");
    assert_int_equal(g_strv_length(disk->rbd_monitors), 1);
    assert_true(g_regex_match_simple("^127\\.0\\.0\\.1:[0-9]+$", disk->rbd_monitors[0], 0, 0));
    assert_true(berth_storage_disk_remove(conformance_storage, "s1", NULL));
    assert_true(berth_storage_image_remove(conformance_storage, "source", NULL));
}

static guint count_lines(const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    return g_strv_length(lines);
}

/* --- a client like QEMU --------------------------------------------------------------------------- */

typedef struct {
    GSubprocess *process;
    GOutputStream *commands;
    GDataInputStream *answers;
} Client;

static void client_start(Client *client, const BerthDiskSource *disk)
{
    g_autofree char *monitor = replace(disk->rbd_monitors[0], ":", "\\:");
    /* Where Ceph forgets one that it has not heard of for 2 s (WATCH_TIMEOUT_SEC), 5 s between two signs of life are too long. */
    g_autofree char *target =
        g_strdup_printf("rbd:berth/%s:mon_host=%s:id=berth:keyring=%s:objecter_tick_interval=0.5",
                        disk->rbd_image, monitor, cluster_config().keyring);
    g_autoptr(GError) error = NULL;
    client->process =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE |
                             G_SUBPROCESS_FLAGS_STDERR_MERGE,
                         &error, "qemu-io", "-f", "raw", "-n", target, NULL);
    assert_no_error(error);
    client->commands = g_subprocess_get_stdin_pipe(client->process);
    client->answers = g_data_input_stream_new(g_subprocess_get_stdout_pipe(client->process));
}

/* What qemu-io says to a durable write: its first line with "wrote" or "fail". */
static char *client_write(Client *client)
{
    static const char command[] = "write -f -P 5 0 4096\n";
    g_autoptr(GError) error = NULL;
    g_output_stream_write_all(client->commands, command, strlen(command), NULL, NULL, &error);
    assert_no_error(error);
    g_output_stream_flush(client->commands, NULL, &error);
    for (;;) {
        char *line = g_data_input_stream_read_line(client->answers, NULL, NULL, &error);
        assert_no_error(error);
        assert_non_null(line);
        if (strstr(line, "wrote ") != NULL || strstr(line, "fail") != NULL)
            return line;
        g_free(line);
    }
}

static void client_end(Client *client)
{
    g_subprocess_force_exit(client->process);
    g_subprocess_wait(client->process, NULL, NULL);
    g_object_unref(client->answers);
    g_object_unref(client->process);
}

static void fence_of_a_disks_client_makes_its_writes_fail(void **state)
{
    conformance_image(conformance_storage, "fenced", 8 * MIB, (const guint8 *)"f", 1);
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(conformance_storage, "f1", "fenced", 8 * MIB, NULL);
    g_autoptr(BerthDiskSource) other =
        berth_storage_disk_create(conformance_storage, "f2", "fenced", 8 * MIB, NULL);
    assert_non_null(disk);
    assert_non_null(other);
    Client victim, bystander;
    client_start(&victim, disk);
    client_start(&bystander, other);
    g_autofree char *before = client_write(&victim);
    g_autofree char *bystander_before = client_write(&bystander);
    assert_non_null(strstr(before, "wrote 4096/4096"));
    assert_non_null(strstr(bystander_before, "wrote 4096/4096"));
    g_autoptr(GError) error = NULL;
    assert_false(berth_storage_disk_remove(conformance_storage, "f1", &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "in use");
    g_clear_error(&error);
    g_auto(GStrv) clients = berth_storage_disk_clients(conformance_storage, "f1", &error);
    assert_no_error(error);
    assert_int_equal(g_strv_length(clients), 1);

    assert_true(berth_storage_fence(conformance_storage, (const char *const *)clients, &error));
    g_autofree char *after = client_write(&victim);
    assert_non_null(strstr(after, "fail"));
    g_autofree char *bystander_after = client_write(&bystander);
    assert_non_null(strstr(bystander_after, "wrote 4096/4096"));
    client_end(&victim);
    client_end(&bystander);
    /* A fenced client has the disk open no more; the other was killed, so Ceph waits for it. */
    assert_true(berth_storage_disk_remove(conformance_storage, "f1", NULL));
    g_auto(GStrv) left = berth_storage_disk_clients(conformance_storage, "f2", &error);
    assert_no_error(error);
    assert_true(berth_storage_fence(conformance_storage, (const char *const *)left, NULL));
    assert_true(berth_storage_disk_remove(conformance_storage, "f2", NULL));
    assert_true(berth_storage_image_remove(conformance_storage, "fenced", NULL));
}

static void fence_of_an_agent_makes_its_writes_fail(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthStorage) agent = cluster_open(30, &error);
    assert_no_error(error);
    assert_true(berth_storage_log_write(agent, "agent", 0, "a", 1, NULL));
    g_auto(GStrv) clients = cluster_clients_of(agent);
    assert_true(berth_storage_fence(conformance_storage, (const char *const *)clients, &error));
    assert_no_error(error);
    assert_false(berth_storage_log_write(agent, "agent", 1, "b", 1, &error));
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "cut off");
    guint64 bytes = 0;
    assert_true(berth_storage_log_size(conformance_storage, "agent", &bytes, NULL));
    assert_int_equal(bytes, 1);
    assert_true(berth_storage_log_remove(conformance_storage, "agent", NULL));
}

static void fence_of_dead_clients_frees_their_disk(void **state)
{
    g_autoptr(GError) error = NULL;
    conformance_image(conformance_storage, "dying", MIB, (const guint8 *)"d", 1);
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(conformance_storage, "dying", "dying", MIB, NULL);
    assert_non_null(disk);
    cluster_leave_dead_watch("dying");
    cluster_leave_dead_watch("dying");
    assert_false(berth_storage_disk_remove(conformance_storage, "dying", &error));
    assert_berth_error(error, BERTH_ERROR_FAILED_PRECONDITION, "in use");
    g_clear_error(&error);
    g_auto(GStrv) clients = berth_storage_disk_clients(conformance_storage, "dying", &error);
    assert_no_error(error);
    assert_int_equal(g_strv_length(clients), 2);
    assert_true(berth_storage_fence(conformance_storage, (const char *const *)clients, &error));
    berth_storage_disk_remove(conformance_storage, "dying", &error);
    assert_no_error(error);
    assert_true(berth_storage_image_remove(conformance_storage, "dying", NULL));
}

/* --- a client that Ceph has lost sight of ---------------------------------------------------------- */

#define WATCH_TIMEOUT_SEC "2"

static int shorten_watches(void **state)
{
    g_free(cluster_admin("ceph config set osd osd_client_watch_timeout " WATCH_TIMEOUT_SEC));
    return 0;
}

static int restore_watches(void **state)
{
    g_free(cluster_admin("ceph config rm osd osd_client_watch_timeout"));
    return 0;
}

static void await_clients(const char *disk_id, guint n)
{
    gint64 deadline = g_get_monotonic_time() + 60 * G_USEC_PER_SEC;
    for (;;) {
        g_autoptr(GError) error = NULL;
        g_auto(GStrv) clients = berth_storage_disk_clients(conformance_storage, disk_id, &error);
        assert_no_error(error);
        if (g_strv_length(clients) == n)
            return;
        assert_true(g_get_monotonic_time() < deadline);
        g_usleep(50000);
    }
}

static BerthCheckpointWriter *begin_checkpoint(BerthStorage *storage, const char *checkpoint_id,
                                               const char *disk_id, char *const *guest)
{
    g_autoptr(GError) error = NULL;
    BerthCheckpointWriter *writer = berth_storage_checkpoint_create(
        storage, checkpoint_id, disk_id, (const char *const *)guest, MIB, &error);
    assert_no_error(error);
    return writer;
}

/* The only one (transfer full). */
static char **client_of(const char *disk_id)
{
    await_clients(disk_id, 1);
    char **clients = berth_storage_disk_clients(conformance_storage, disk_id, NULL);
    assert_int_equal(g_strv_length(clients), 1);
    return clients;
}

static void assert_writes(Client *client)
{
    g_autofree char *said = client_write(client);
    assert_non_null(strstr(said, "wrote 4096/4096"));
}

static void commit_checkpoint(const char *checkpoint_id, const char *disk_id, char *const *guest)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) record = g_bytes_new_static("r", 1);
    g_autoptr(BerthCheckpointWriter) writer =
        begin_checkpoint(conformance_storage, checkpoint_id, disk_id, guest);
    assert_true(berth_checkpoint_writer_append(writer, "m", 1, &error));
    assert_true(berth_checkpoint_writer_finish(writer, NULL, 0, &error));
    assert_true(berth_checkpoint_writer_snapshot(writer, &error));
    assert_true(berth_checkpoint_writer_commit(writer, record, &error));
    assert_no_error(error);
}

static void assert_lost_sight(gboolean is_done, GError *error, BerthErrorCode code)
{
    assert_false(is_done);
    assert_berth_error(error, code, "lost sight");
    g_error_free(error);
}

static void assert_not_removed(const char *checkpoint_id, char *const *guest, gboolean have_ended)
{
    GError *error = NULL;
    gboolean is_done = berth_storage_checkpoint_remove(
        conformance_storage, checkpoint_id, (const char *const *)guest, have_ended, &error);
    assert_lost_sight(is_done, error, BERTH_ERROR_FAILED_PRECONDITION);
}

static void assert_removed(const char *checkpoint_id, char *const *guest, gboolean have_ended)
{
    g_autoptr(GError) error = NULL;
    berth_storage_checkpoint_remove(conformance_storage, checkpoint_id, (const char *const *)guest,
                                    have_ended, &error);
    assert_no_error(error);
}

/* librbd would take it for dead, break its lock, and have it blocklisted. OTHER has the disk open, too, as an agent that saves it
 * has beside berthd. */
static void client_that_stood_still_is_not_cut_off(void **state)
{
    conformance_image(conformance_storage, "still", 8 * MIB, (const guint8 *)"s", 1);
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(conformance_storage, "s-1", "still", 8 * MIB, NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthStorage) other = cluster_open(10, &error);
    char *none[] = {NULL};
    assert_non_null(disk);
    assert_no_error(error);
    Client client;
    client_start(&client, disk);
    assert_writes(&client);
    g_auto(GStrv) guest = client_of("s-1");
    commit_checkpoint("s-1-a", "s-1", guest);
    g_autoptr(BerthCheckpointWriter) writer = begin_checkpoint(other, "s-1-b", "s-1", guest);
    g_subprocess_send_signal(client.process, SIGSTOP);
    await_clients("s-1", 1); /* of the writer */
    BerthCheckpointWriter *made = berth_storage_checkpoint_create(
        conformance_storage, "s-1-c", "s-1", (const char *const *)guest, MIB, &error);
    assert_lost_sight(made != NULL, g_steal_pointer(&error), BERTH_ERROR_UNAVAILABLE);
    gboolean is_taken = berth_checkpoint_writer_snapshot(writer, &error);
    assert_lost_sight(is_taken, g_steal_pointer(&error), BERTH_ERROR_UNAVAILABLE);
    assert_not_removed("s-1-a", guest, FALSE);
    assert_not_removed("s-1-a", NULL, FALSE);
    assert_not_removed("s-1-a", none, TRUE); /* others have */
    g_clear_pointer(&writer, berth_checkpoint_writer_free);
    assert_not_removed("s-1-a", guest, FALSE);

    g_subprocess_send_signal(client.process, SIGCONT);
    assert_writes(&client);
    commit_checkpoint("s-1-c", "s-1", guest);
    assert_writes(&client);
    assert_removed("s-1-a", guest, FALSE);
    assert_removed("s-1-c", NULL, FALSE);
    commit_checkpoint("s-1-d", "s-1", guest);
    assert_writes(&client);
    client_end(&client);
    await_clients("s-1", 0); /* but the dead one's lock is there */
    assert_not_removed("s-1-d", guest, FALSE);
    assert_removed("s-1-d", guest, TRUE);
    assert_true(berth_storage_disk_remove(conformance_storage, "s-1", &error));
    assert_true(berth_storage_image_remove(conformance_storage, "still", &error));
}

static gboolean is_cut_off(const char *address)
{
    g_autofree char *all = cluster_admin("ceph osd blocklist ls");
    g_autofree char *item = g_strconcat(address, " ", NULL);
    return strstr(all, item) != NULL;
}

/* An agent that has taken the lock for a snapshot, as its guest did not have it, and was killed. */
static void owner_that_has_died_beside_a_guest_is_not_waited_for(void **state)
{
    conformance_image(conformance_storage, "beside", 8 * MIB, (const guint8 *)"b", 1);
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(conformance_storage, "b-1", "beside", 8 * MIB, NULL);
    assert_non_null(disk);
    Client owner, living;
    client_start(&owner, disk);
    assert_writes(&owner);
    g_auto(GStrv) dead = client_of("b-1");
    client_end(&owner);
    await_clients("b-1", 0);
    client_start(&living, disk);
    g_auto(GStrv) guest = client_of("b-1");
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) own = cluster_clients_of(conformance_storage);
    assert_false(is_cut_off(dead[0]));
    commit_checkpoint("b-1-a", "b-1", guest);
    assert_writes(&living);
    assert_true(is_cut_off(dead[0]));
    assert_false(is_cut_off(guest[0]) || is_cut_off(own[0]) || is_cut_off(own[1]));
    assert_removed("b-1-a", guest, FALSE);
    client_end(&living);
    await_clients("b-1", 0);
    assert_true(berth_storage_disk_remove(conformance_storage, "b-1", &error));
    assert_true(berth_storage_image_remove(conformance_storage, "beside", &error));
}

/* Without the protection of a look before: Ceph goes on in the midst of the snapshot, and the guest has not heard of it. */
static void guest_that_is_out_of_sight_keeps_its_lock(void **state)
{
    conformance_image(conformance_storage, "keeps", 8 * MIB, (const guint8 *)"k", 1);
    g_autoptr(BerthDiskSource) disk =
        berth_storage_disk_create(conformance_storage, "k-1", "keeps", 8 * MIB, NULL);
    assert_non_null(disk);
    Client client;
    client_start(&client, disk);
    assert_writes(&client);
    BerthRbdStorage *rbd = (BerthRbdStorage *)conformance_storage;
    rbd_image_t image = NULL;
    assert_int_equal(rbd_open(rbd->live, "disk-k-1", &image, NULL), 0);
    g_subprocess_send_signal(client.process, SIGSTOP);
    await_clients("k-1", 1); /* IMAGE's */
    assert_int_equal(rbd_snap_create(image, "stolen"), -EROFS);
    g_subprocess_send_signal(client.process, SIGCONT);
    assert_writes(&client);
    assert_int_equal(rbd_close(image), 0);
    g_auto(GStrv) guest = client_of("k-1");
    commit_checkpoint("k-1-a", "k-1", guest);
    assert_writes(&client);
    assert_removed("k-1-a", guest, FALSE);
    client_end(&client);
    await_clients("k-1", 0);
    g_autoptr(GError) error = NULL;
    assert_true(berth_storage_disk_remove(conformance_storage, "k-1", &error));
    assert_true(berth_storage_image_remove(conformance_storage, "keeps", &error));
}

static void user_for_guests_that_may_cut_them_off_is_refused(void **state)
{
    BerthStorageConfig config = cluster_config();
    g_autoptr(GError) error = NULL;
    config.ceph_live_user = config.ceph_user;
    assert_null(berth_storage_open(&config, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "client.berth may cut off");
    g_clear_error(&error);
    config.ceph_live_user = (char *)"nobody";
    assert_null(berth_storage_open(&config, &error));
    assert_berth_error(error, BERTH_ERROR_PERMISSION_DENIED, "get-or-create client.nobody ");
}

/* berthd is to know before a node is lost. */
static void user_that_may_not_fence_is_told(void **state)
{
    BerthStorageConfig config = cluster_config();
    g_autoptr(GError) error = NULL;
    assert_true(berth_storage_may_fence(conformance_storage, &error));
    config.ceph_user = config.ceph_live_user;
    g_autoptr(BerthStorage) storage = berth_storage_open(&config, &error);
    assert_no_error(error);
    assert_false(berth_storage_may_fence(storage, &error));
    assert_berth_error(error, BERTH_ERROR_PERMISSION_DENIED, "mon 'profile rbd'");
}

static void fence_of_garbage_is_invalid_argument(void **state)
{
    const char *const addresses[] = {"not an address", NULL};
    g_autoptr(GError) error = NULL;
    assert_false(berth_storage_fence(conformance_storage, addresses, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "not an address");
}

/* --- blobs ------------------------------------------------------------------------------------ */

static void blob_with_damaged_objects_is_data_loss(void **state)
{
    const gsize size = 5 * MIB;
    g_autofree guint8 *data = conformance_pattern(70, size);
    guint8 digest[BERTH_SHA256_BYTES];
    conformance_sha256(data, size, digest);
    g_autofree char *hex = g_compute_checksum_for_data(G_CHECKSUM_SHA256, data, size);
    static const struct {
        const char *suffix; /* of the object's name */
        const char *command;
    } cases[] = {
        {":00000000", "rm %s"},
        {":00000001", "truncate %s 1000"},
        {":00000001", "put %s /etc/hostname"},
        {"", "truncate %s 20"},
        {"", "truncate %s 40"},
        {"", "put %s /etc/hostname"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        conformance_blob(conformance_storage, digest, data, size);
        g_autofree char *listing = cluster_admin("rados -p berth -N blobs ls");
        g_auto(GStrv) objects = g_strsplit(listing, "\n", -1);
        const char *victim = hex;
        for (guint at = 0; cases[i].suffix[0] != '\0' && objects[at] != NULL; at++) {
            if (g_str_has_suffix(objects[at], cases[i].suffix))
                victim = objects[at];
        }
        g_autofree char *command = replace(cases[i].command, "%s", victim);
        g_free(cluster_admin("rados -p berth -N blobs %s", command));
        g_autoptr(GError) error = NULL;
        assert_null(berth_storage_blob_read(conformance_storage, digest, 0, size, &error));
        assert_berth_error(error, BERTH_ERROR_DATA_LOSS, "corrupt");
        assert_true(berth_storage_blob_remove(conformance_storage, digest, NULL));
    }
    /* Where the index was damaged, its chunks stay until they are swept. */
    clock_ahead_sec = 25 * 3600;
    g_strfreev(berth_storage_blob_list(conformance_storage, NULL));
    clock_ahead_sec = 0;
}

static void list_sweeps_uploads_of_crashed_writers(void **state)
{
    guint8 digest[BERTH_SHA256_BYTES];
    g_autofree guint8 *data = conformance_pattern(71, 9 * MIB);
    conformance_sha256(data, 9 * MIB, digest);
    conformance_blob(conformance_storage, digest, data, 9 * MIB);
    g_autofree char *hex = g_compute_checksum_for_data(G_CHECKSUM_SHA256, data, 9 * MIB);
    const char *others[] = {hex, "00000000000000000000000000000000"
                                 "00000000000000000000000000000000"};
    for (guint i = 0; i < G_N_ELEMENTS(others); i++) {
        g_free(cluster_admin("rados -p berth -N blobs put %s:0123456789abcdef:00000000 %s",
                             others[i], cluster_config().ceph_conf));
        g_free(cluster_admin("rados -p berth -N blobs put %s:0123456789abcdef:00000001 %s",
                             others[i], cluster_config().ceph_conf));
    }
    g_auto(GStrv) young = berth_storage_blob_list(conformance_storage, NULL);
    assert_int_equal(g_strv_length(young), 1);
    g_autofree char *with = cluster_admin("rados -p berth -N blobs ls");
    clock_ahead_sec = 25 * 3600;
    g_auto(GStrv) old = berth_storage_blob_list(conformance_storage, NULL);
    clock_ahead_sec = 0;
    assert_int_equal(g_strv_length(old), 1);
    g_autofree char *without = cluster_admin("rados -p berth -N blobs ls");
    assert_int_equal(count_lines(with) - 4, count_lines(without));
    assert_null(strstr(without, "0123456789abcdef"));
    g_autoptr(GBytes) read = berth_storage_blob_read(conformance_storage, digest, 0, 9 * MIB, NULL);
    assert_non_null(read);
    assert_memory_equal(g_bytes_get_data(read, NULL), data, 9 * MIB);
    assert_true(berth_storage_blob_remove(conformance_storage, digest, NULL));
}

/* --- the end ------------------------------------------------------------------------------------ */

static void storage_after_all_tests_is_clean(void **state)
{
    const char *const namespaces[] = {"blobs", "logs"};
    for (guint i = 0; i < G_N_ELEMENTS(namespaces); i++) {
        g_autofree char *objects = cluster_admin("rados -p berth -N %s ls", namespaces[i]);
        assert_string_equal(objects, "");
    }
    g_autofree char *images = cluster_admin("rbd ls berth");
    assert_string_equal(images, "");
}

int main(void)
{
    static const struct CMUnitTest own[] = {
        cmocka_unit_test(connect_changes_nothing),
        cmocka_unit_test(open_of_unusable_configuration_says_what_to_check),
        cmocka_unit_test(image_of_crashed_import_is_listed_and_removable),
        cmocka_unit_test(image_remove_during_import_is_failed_precondition),
        cmocka_unit_test(image_remove_of_a_part_takes_all_that_is_left),
        cmocka_unit_test(image_remove_takes_one_whose_commit_was_cut_short),
        cmocka_unit_test(image_remove_that_cannot_is_no_success_and_not_not_found),
        cmocka_unit_test(disk_of_crashed_creation_is_made_anew),
        cmocka_unit_test(data_pool_that_is_not_there_is_said),
        cmocka_unit_test(disk_source_has_all_that_libvirt_needs),
        cmocka_unit_test(fence_of_a_disks_client_makes_its_writes_fail),
        cmocka_unit_test(fence_of_an_agent_makes_its_writes_fail),
        cmocka_unit_test(fence_of_dead_clients_frees_their_disk),
        cmocka_unit_test(fence_of_garbage_is_invalid_argument),
        cmocka_unit_test_setup_teardown(client_that_stood_still_is_not_cut_off, shorten_watches,
                                        restore_watches),
        cmocka_unit_test_setup_teardown(owner_that_has_died_beside_a_guest_is_not_waited_for,
                                        shorten_watches, restore_watches),
        cmocka_unit_test_setup_teardown(guest_that_is_out_of_sight_keeps_its_lock, shorten_watches,
                                        restore_watches),
        cmocka_unit_test(user_for_guests_that_may_cut_them_off_is_refused),
        cmocka_unit_test(user_that_may_not_fence_is_told),
        cmocka_unit_test(blob_with_damaged_objects_is_data_loss),
        cmocka_unit_test(list_sweeps_uploads_of_crashed_writers),
        cmocka_unit_test(storage_after_all_tests_is_clean),
    };
    g_autoptr(GArray) tests = g_array_new(FALSE, FALSE, sizeof(struct CMUnitTest));
    conformance_append(tests);
    g_array_append_vals(tests, own, G_N_ELEMENTS(own));
    return cluster_run("storage_rbd", (const struct CMUnitTest *)(void *)tests->data, tests->len);
}
