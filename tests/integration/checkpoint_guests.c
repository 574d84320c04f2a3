/* SPDX-License-Identifier: Apache-2.0 */
/* Guests under libvirt and QEMU with disks in Ceph, of which checkpoints are taken, and which go on from them: their
 * job's memory, disk and output are of one instant. Run by test_checkpoint.sh, which gives it a host of its own. */
#include <config.h>

#include <glib/gstdio.h>

#include "common/message.h"
#include "nodeagent/guest_private.h"
#include "tests/lib/assert.h"
#include "tests/lib/guest_vm.h"
#include "tests/lib/storage_cluster.h"
#include "tests/lib/storage_conformance.h"
#include "tests/lib/tool.h"

#define MIB        ((guint64)1024 * 1024)
#define DISK_BYTES (64 * MIB)
#define LOG_ID     "log-7-0-0-1"
#define TRIES      90u /* a second each: Ceph forgets a client after 30 */
/* Counts on the console of its job, on its disk and in its memory: each line says all three. */
#define COUNT                                                                                      \
    "i=0; while :; do i=$((i+1)); echo $i >/root/state; sync; echo \"$i $(cat /root/state)\"; "    \
    "sleep 0.05; done"

/* A node: what its guests share. */
typedef struct {
    BerthNodeConfig config;
    BerthGuestContext context;
    gboolean is_forgotten;
} Node;

typedef struct {
    char *dir;
    BerthHypervisor *hypervisor;
    gboolean is_connected;
    BerthStorageLane *lane;
    BerthStorageConfig storage;
    char *machine;
    Node nodes[2];
    BerthGuest *guest; /* that libvirt's events are for */
} Place;

static Place *the_place; /* of all tests: from the first one to the last */

/* --- the place ------------------------------------------------------------------------------- */

static void on_connected(gpointer data)
{
    ((Place *)data)->is_connected = TRUE;
}

static void on_lost(const GError *reason, gpointer data)
{
    fail_msg("%s", reason->message);
}

static void on_domain(const char *name, const char *uuid, BerthDomainEvent event, gpointer data)
{
    BerthGuest *guest = ((Place *)data)->guest;
    if (guest == NULL || !g_str_equal(berth_guest_name(guest), name))
        return;
    if (event == BERTH_DOMAIN_STARTED)
        berth_guest_domain_started(guest);
    else if (event == BERTH_DOMAIN_SUSPENDED)
        berth_guest_domain_suspended(guest);
    else if (event == BERTH_DOMAIN_RESUMED)
        berth_guest_domain_resumed(guest);
    else
        berth_guest_domain_stopped(guest, event);
}

static void ignore_guest(BerthGuest *guest, gpointer data)
{
}

static void ignore_measure(BerthGuest *guest, guint64 cpu_usec, gpointer data)
{
}

static const char *know_nothing(gpointer data)
{
    return NULL;
}

static void on_forgotten(BerthGuest *guest, gpointer data)
{
    ((Node *)data)->is_forgotten = TRUE;
}

static void make_node(Place *place, Node *node, const char *name)
{
    BerthNodeConfig *config = &node->config;
    config->run_dir = g_build_filename(place->dir, name, NULL);
    config->console_dir = g_strdup(config->run_dir);
    config->kernel = guest_vm_kernel();
    config->initramfs = guest_vm_initramfs();
    config->reached_at = g_strdup("");
    config->stream_at = g_strdup("");
    config->pace = (BerthPaceLimits){15, 5, 20, 10};
    config->storage = place->storage;
    assert_int_equal(g_mkdir(config->run_dir, 0700), 0);
    node->context = (BerthGuestContext){
        .config = config,
        .hypervisor = place->hypervisor,
        .lane = place->lane,
        .machine = place->machine,
        .cpu_model = "maximum",
        .cmdline = "console=ttyS0 quiet loglevel=4 panic=-1 reboot=t no_timer_check "
                   "random.trust_cpu=on pci=nocrs cryptomgr.notests",
        .use_kvm = FALSE,
        .usage_intervals = {{1000, 1000, 1000}},
        .changed = ignore_guest,
        .answered = ignore_guest,
        .output = ignore_guest,
        .measured = ignore_measure,
        .pressed = ignore_guest,
        .look_soon = ignore_guest,
        .why_killed = know_nothing,
        .forgotten = on_forgotten,
        .user_data = node,
    };
}

static void virsh(const char *command, const char *argument, const char *other)
{
    const char *const argv[] = {"virsh", "-q",     "-c",  "qemu:///system",
                                command, argument, other, NULL};
    tool_run(argv);
}

/* libvirt's QEMU is to be let in by Ceph. */
static void define_secret(Place *place)
{
    g_autofree char *path = g_build_filename(place->dir, "secret.xml", NULL);
    g_autofree char *xml = g_strdup_printf("<secret ephemeral='yes' private='yes'><uuid>%s</uuid>"
                                           "<usage type='ceph'><name>berth</name></usage></secret>",
                                           place->storage.secret_uuid);
    g_autofree char *key = cluster_admin("ceph auth print-key client.berth");
    assert_true(g_file_set_contents(path, xml, -1, NULL));
    virsh("secret-define", path, NULL);
    virsh("secret-set-value", place->storage.secret_uuid, g_strstrip(key));
}

static void import_image(Place *place)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(place->dir, "root", NULL);
    g_autofree char *content = NULL;
    gsize length = 0;
    assert_true(guest_vm_make_root(place->dir, path, &error));
    assert_true(g_file_get_contents(path, &content, &length, &error));
    conformance_image(conformance_storage, "tiny", length, (const guint8 *)content, length);
}

static void on_result(GObject *source, GAsyncResult *result, gpointer data)
{
    *(GAsyncResult **)data = g_object_ref(result);
}

static int setup(void **state)
{
    static const BerthHypervisorFuncs funcs = {on_connected, on_lost, on_domain};
    Place *place = g_new0(Place, 1);
    g_autoptr(GAsyncResult) result = NULL;
    place->dir = g_dir_make_tmp("berth-ckpt-XXXXXX", NULL);
    place->storage = cluster_config();
    place->lane = berth_storage_lane_new(&place->storage);
    place->hypervisor = berth_hypervisor_new("qemu:///system", &funcs, place);
    run_until(place->is_connected && berth_storage_lane_error(place->lane) == NULL);
    berth_hypervisor_host_async(place->hypervisor, on_result, &result);
    run_until(result != NULL);
    g_autoptr(BerthHost) host = berth_hypervisor_host_finish(result, NULL);
    place->machine = g_strdup(host->machine);
    define_secret(place);
    import_image(place);
    make_node(place, &place->nodes[0], "n1");
    make_node(place, &place->nodes[1], "n2");
    the_place = place;
    return 0;
}

static int teardown(void **state)
{
    Place *place = the_place;
    const char *const remove[] = {"rm", "-rf", place->dir, NULL};
    berth_guest_free(place->guest);
    berth_hypervisor_free(place->hypervisor);
    berth_storage_lane_free(place->lane);
    while (g_main_context_iteration(NULL, FALSE))
        ;
    for (guint i = 0; i < G_N_ELEMENTS(place->nodes); i++) {
        g_free(place->nodes[i].config.run_dir);
        g_free(place->nodes[i].config.console_dir);
        g_free(place->nodes[i].config.kernel);
        g_free(place->nodes[i].config.initramfs);
        g_free(place->nodes[i].config.reached_at);
        g_free(place->nodes[i].config.stream_at);
    }
    tool_run(remove);
    g_free(place->machine);
    g_free(place->dir);
    g_free(place);
    return 0;
}

/* --- guests ---------------------------------------------------------------------------------- */

typedef struct {
    gboolean is_given;
    BerthFault fault;
    GError *error;
    ProtobufCMessage *reply; /* of a checkpoint */
} Answer;

static void answer_clear(Answer *answer)
{
    g_clear_error(&answer->error);
    g_clear_pointer(&answer->reply, berth_message_free);
    *answer = (Answer){0};
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Answer, answer_clear)

static void on_answer(BerthFault fault, const GError *error, gpointer data)
{
    Answer *answer = data;
    answer->is_given = TRUE;
    answer->fault = fault;
    answer->error = error == NULL ? NULL : g_error_copy(error);
}

static void on_checkpoint(const Berth__CheckpointGuestReply *reply, const GError *error,
                          gpointer data)
{
    on_answer(BERTH_FAULT_NONE, error, data);
    if (reply != NULL)
        ((Answer *)data)->reply = berth_message_copy(&reply->base);
}

static char *disk_of(guint32 epoch)
{
    return g_strdup_printf("disk-7-0-0-%u", epoch);
}

/* The guest of EPOCH on NODE: SCRIPT runs, or it goes on from CHECKPOINT. */
static void start(Place *place, guint node, guint32 epoch, guint64 memory_mib, const char *script,
                  const char *checkpoint, Answer *answer)
{
    const BerthGuestId id = {.job = 7, .epoch = epoch};
    char *command[] = {(char *)"/bin/sh", (char *)"-c", (char *)script};
    g_autofree char *disk = disk_of(epoch);
    Berth__GuestId its_id = BERTH__GUEST_ID__INIT;
    Berth__GuestTask task = BERTH__GUEST_TASK__INIT;
    Berth__RestoreFrom from = BERTH__RESTORE_FROM__INIT;
    Berth__StartGuestRequest request = BERTH__START_GUEST_REQUEST__INIT;
    its_id.job = 7;
    its_id.epoch = epoch;
    task.command = command;
    task.n_command = G_N_ELEMENTS(command);
    task.working_directory = (char *)"/root";
    task.user = (char *)"root";
    task.hostname = (char *)"guest";
    from.checkpoint_id = (char *)checkpoint;
    request.id = &its_id;
    request.image_id = (char *)"tiny";
    request.disk_bytes = DISK_BYTES;
    request.vcpus = 1;
    request.memory_mib = memory_mib;
    request.task = &task;
    request.disk_id = disk;
    request.log_id = (char *)LOG_ID;
    request.restore = checkpoint == NULL ? NULL : &from;
    place->nodes[node].is_forgotten = FALSE;
    place->guest = berth_guest_new(&place->nodes[node].context, &id);
    berth_guest_start(place->guest, &request, on_answer, answer);
    run_until(answer->is_given);
}

/* One that was restored goes on when the scheduler has stored who has its disk open. */
static void assert_running(Place *place, const Answer *answer)
{
    BerthGuest *guest = place->guest;
    if (answer->error != NULL)
        fail_msg("%s", answer->error->message);
    if (guest->stands_restored) {
        run_until(guest->clients.known != NULL);
        assert_true(guest->is_frozen);
        berth_guest_set_kept(guest, guest->clients_serial);
    }
    run_until(berth_guest_phase(place->guest) == BERTH_PHASE_RUNNING);
}

static void ask_checkpoint(Place *place, const char *checkpoint, guint32 epoch, guint64 space_bytes,
                           gboolean stops, Answer *answer)
{
    g_autofree char *disk = disk_of(epoch);
    Berth__CheckpointGuestRequest request = BERTH__CHECKPOINT_GUEST_REQUEST__INIT;
    request.disk_id = disk;
    request.checkpoint_id = (char *)checkpoint;
    request.space_bytes = space_bytes;
    request.stop = stops;
    berth_guest_checkpoint(place->guest, &request, on_checkpoint, answer);
}

static const Berth__CheckpointGuestReply *take(Place *place, const char *checkpoint, guint32 epoch,
                                               guint64 space_bytes, gboolean stops, Answer *answer)
{
    ask_checkpoint(place, checkpoint, epoch, space_bytes, stops, answer);
    run_until(answer->is_given);
    if (answer->error != NULL)
        fail_msg("%s", answer->error->message);
    return (const Berth__CheckpointGuestReply *)(const void *)answer->reply;
}

/* Its domain, and what this node has of it, go. */
static void release(Place *place, guint node, gboolean keeps_disk)
{
    g_auto(Answer) answer = {0};
    if (keeps_disk)
        berth_guest_release_here(place->guest, on_answer, &answer);
    else
        berth_guest_release(place->guest, NULL, on_answer, &answer);
    run_until(answer.is_given && place->nodes[node].is_forgotten);
    assert_null(answer.error);
    g_clear_pointer(&place->guest, berth_guest_free);
}

/* --- output ---------------------------------------------------------------------------------- */

static guint64 log_size(void)
{
    guint64 bytes = 0;
    assert_true(berth_storage_log_size(conformance_storage, LOG_ID ".out", &bytes, NULL));
    return bytes;
}

/* Each line is one more than the one before it, and says that the disk has the same: the last of them. */
static guint64 check_count(void)
{
    guint64 next = 1;
    g_autoptr(GBytes) bytes =
        berth_storage_log_read(conformance_storage, LOG_ID ".out", 0, 1 << 24, NULL);
    g_autofree char *text = g_strndup(g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i + 1] != NULL; i++, next++) {
        g_autofree char *expected =
            g_strdup_printf("%" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT, next, next);
        assert_string_equal(lines[i], expected);
    }
    return next - 1;
}

static void wait_for_count(guint64 count)
{
    guint64 bytes = 0, seen = 0;
    run_until((bytes == log_size() ? seen : (bytes = log_size(), seen = check_count())) >= count);
}

/* --- tests ----------------------------------------------------------------------------------- */

static gboolean is_gone(const char *disk)
{
    g_auto(GStrv) disks = berth_storage_disk_list(conformance_storage, NULL);
    return !g_strv_contains((const char *const *)disks, disk);
}

static void assert_no_checkpoints(void)
{
    g_auto(GStrv) left = berth_storage_checkpoint_list(conformance_storage, NULL);
    assert_null(left[0]);
}

static void end_logs(void)
{
    assert_true(berth_storage_log_remove(conformance_storage, LOG_ID ".out", NULL));
    assert_true(berth_storage_log_remove(conformance_storage, LOG_ID ".err", NULL));
}

/* Live, then at its end, then to and fro between two nodes; from an earlier one at last. */
static void job_goes_on_from_checkpoints(void **state)
{
    Place *place = the_place;
    g_auto(Answer) started = {0}, live = {0}, stopped = {0}, again = {0}, there = {0}, back = {0};
    start(place, 0, 1, 128, COUNT, NULL, &started);
    assert_running(place, &started);
    guint64 began = place->guest->start_usec;
    wait_for_count(20);
    const Berth__CheckpointGuestReply *reply = take(place, "7-0-1", 1, 256 * MIB, FALSE, &live);
    assert_true(reply->memory_bytes >= 8 * MIB && reply->memory_bytes <= 128 * MIB);
    assert_true(reply->pause_usec > 0);
    assert_true(reply->taken_usec >= began);
    assert_true(reply->usage->cpu_usec > 0);
    guint64 at = reply->stdout_bytes;
    assert_true(at > 0 && at <= log_size());
    wait_for_count(check_count() + 20);                        /* it runs on */
    reply = take(place, "7-0-1", 1, 256 * MIB, FALSE, &again); /* asked for again: the same */
    assert_int_equal(reply->stdout_bytes, at);
    wait_for_count(check_count() + 5);

    reply = take(place, "7-0-2", 1, 256 * MIB, TRUE, &stopped);
    assert_true(place->guest->is_frozen);
    assert_true(reply->stdout_bytes > at);
    release(place, 0, TRUE);
    start(place, 1, 2, 128, NULL, "7-0-2", &there);
    assert_running(place, &there);
    assert_int_equal(place->guest->start_usec, began);
    assert_true(is_gone("disk-7-0-0-1"));
    wait_for_count(check_count() + 20);
    release(place, 1, TRUE);

    start(place, 0, 3, 128, NULL, "7-0-1", &back);
    assert_running(place, &back);
    wait_for_count(check_count() + 20);
    release(place, 0, FALSE);
    run_until(is_gone("disk-7-0-0-3"));
    assert_no_checkpoints();
    end_logs();
}

static void torn_checkpoint_is_refused(void **state)
{
    Place *place = the_place;
    g_auto(Answer) started = {0}, taken = {0}, torn = {0}, absent = {0}, whole = {0}, other = {0};
    start(place, 0, 1, 128, COUNT, NULL, &started);
    assert_running(place, &started);
    wait_for_count(5);
    take(place, "7-0-1", 1, 256 * MIB, FALSE, &taken);
    take(place, "7-0-2", 1, 256 * MIB, TRUE, &other);
    release(place, 0, TRUE);
    g_free(cluster_admin("rbd image-meta remove berth/ckpt-7-0-2 berth.committed"));
    start(place, 1, 2, 128, NULL, "7-0-2", &torn);
    assert_int_equal(torn.fault, BERTH_FAULT_JOB);
    assert_berth_error(torn.error, BERTH_ERROR_DATA_LOSS, "torn");
    run_until(place->nodes[1].is_forgotten);
    g_clear_pointer(&place->guest, berth_guest_free);
    start(place, 1, 2, 128, NULL, "7-0-9", &absent);
    assert_int_equal(absent.fault, BERTH_FAULT_JOB);
    run_until(place->nodes[1].is_forgotten);
    g_clear_pointer(&place->guest, berth_guest_free);
    assert_false(is_gone("disk-7-0-0-1")); /* it is the checkpoints' */
    start(place, 1, 2, 128, NULL, "7-0-1", &whole);
    assert_running(place, &whole);
    wait_for_count(check_count() + 5);
    release(place, 1, FALSE);
    run_until(is_gone("disk-7-0-0-2"));
    assert_no_checkpoints();
    end_logs();
}

/* What the guest's agent before has left: it stands still, and there is half a checkpoint. */
static void agent_that_ends_in_the_midst_loses_nothing(void **state)
{
    Place *place = the_place;
    const BerthGuestId id = {.job = 7, .epoch = 1};
    g_auto(Answer) started = {0}, cut_off = {0}, taken = {0};
    g_autoptr(GAsyncResult) result = NULL;
    start(place, 0, 1, 128, COUNT, NULL, &started);
    assert_running(place, &started);
    wait_for_count(5);
    ask_checkpoint(place, "7-0-1", 1, 256 * MIB, FALSE, &cut_off);
    run_until(place->guest->is_frozen);
    g_clear_pointer(&place->guest, berth_guest_free);
    assert_berth_error(cut_off.error, BERTH_ERROR_UNAVAILABLE, "ends");
    berth_hypervisor_find_async(place->hypervisor, "berth-7-0-0-1", on_result, &result);
    run_until(result != NULL);
    g_autoptr(BerthDomain) domain = berth_hypervisor_find_finish(result, NULL);
    assert_non_null(domain);
    place->guest = berth_guest_new(&place->nodes[0].context, &id);
    berth_guest_adopt(place->guest, domain);
    gint64 next = 0;
    for (guint tries = 0; tries < TRIES && taken.reply == NULL; tries++) {
        answer_clear(&taken);
        run_until(g_get_monotonic_time() >= next);
        next = g_get_monotonic_time() + G_USEC_PER_SEC;
        ask_checkpoint(place, "7-0-1", 1, 256 * MIB, FALSE, &taken);
        run_until(taken.is_given);
        if (taken.error != NULL)
            assert_int_equal(taken.error->code, BERTH_ERROR_UNAVAILABLE);
    }
    assert_non_null(taken.reply);
    run_until(berth_guest_phase(place->guest) == BERTH_PHASE_RUNNING);
    wait_for_count(check_count() + 20);
    release(place, 0, FALSE);
    run_until(is_gone("disk-7-0-0-1"));
    assert_no_checkpoints();
    end_logs();
}

static void memory_that_does_not_fit_lets_the_guest_run_on(void **state)
{
    Place *place = the_place;
    g_auto(Answer) started = {0}, taken = {0};
    start(place, 0, 1, 128, COUNT, NULL, &started);
    assert_running(place, &started);
    wait_for_count(5);
    ask_checkpoint(place, "7-0-1", 1, 4 * MIB, TRUE, &taken);
    run_until(taken.is_given);
    assert_berth_error(taken.error, BERTH_ERROR_RESOURCE_EXHAUSTED, "reserved");
    assert_no_checkpoints();
    wait_for_count(check_count() + 20);
    release(place, 0, FALSE);
    run_until(is_gone("disk-7-0-0-1"));
    end_logs();
}

/* Ceph removes what only snapshots had when it finds the time. */
static gboolean is_pool_empty(void)
{
    g_autofree char *objects = cluster_admin("rados -p berth ls");
    return strstr(objects, "rbd_data") == NULL && strstr(objects, "rbd_header") == NULL;
}

/* What was never touched, or is zeroes, takes nothing. */
static void large_guest_takes_what_it_has_touched(void **state)
{
    Place *place = the_place;
    g_auto(Answer) started = {0}, taken = {0}, there = {0};
    start(place, 0, 1, 2048,
          "mkdir /root/m; mount -t tmpfs -o size=400m none /root/m; cd /root/m; "
          "yes 0123456789abcde | head -c 1048576 >one; "
          "for i in $(seq 300); do cat one; done >all; " COUNT,
          NULL, &started);
    assert_running(place, &started);
    wait_for_count(3);
    const Berth__CheckpointGuestReply *reply =
        take(place, "7-0-1", 1, 3 * 1024 * MIB, TRUE, &taken);
    print_message("touched 300 MiB of 2 GiB: stored %" G_GUINT64_FORMAT
                  " bytes of memory, %" G_GUINT64_FORMAT " of the disk; stood still for "
                  "%" G_GUINT64_FORMAT " ms (emulated)\n",
                  reply->memory_bytes, reply->disk_bytes, reply->pause_usec / 1000);
    assert_true(reply->memory_bytes >= 300 * MIB && reply->memory_bytes <= 420 * MIB);
    release(place, 0, TRUE);
    start(place, 1, 2, 2048, NULL, "7-0-1", &there);
    assert_running(place, &there);
    wait_for_count(check_count() + 5);
    release(place, 1, FALSE);
    run_until(is_gone("disk-7-0-0-2"));
    assert_no_checkpoints();
    end_logs();
    assert_true(berth_storage_image_remove(conformance_storage, "tiny", NULL));
    run_until(is_pool_empty());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(job_goes_on_from_checkpoints, setup),
        cmocka_unit_test(torn_checkpoint_is_refused),
        cmocka_unit_test(agent_that_ends_in_the_midst_loses_nothing),
        cmocka_unit_test(memory_that_does_not_fit_lets_the_guest_run_on),
        cmocka_unit_test_teardown(large_guest_takes_what_it_has_touched, teardown),
    };
    const char *missing = guest_vm_missing();
    if (missing != NULL) {
        g_printerr("skipped: %s\n", missing);
        return 77;
    }
    return cluster_run("checkpoint", tests, G_N_ELEMENTS(tests));
}
