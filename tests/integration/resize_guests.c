/* SPDX-License-Identifier: Apache-2.0 */
/* A guest under libvirt and QEMU that is given vCPUs and memory while its job runs, and has them taken again:
 * the job can use them, and keeps its data. Runs on a host of its own (test_resize.sh). */
#include "nodeagent/hypervisor/hypervisor.h"
#include "tests/lib/guest_fixture.h"

#include "common/error.h"

#include <unistd.h>

#define BASE_MIB 128u
/* A guest that has taken or given back nothing for so long is pressed. */
#define SILENCE_MSEC 3000u

typedef struct {
    char *directory;
    BerthHypervisor *hypervisor;
    gboolean is_connected;
    guint n_resized;
    char *machine;
    GuestFixture guest;
} Host;

static void on_connected(gpointer user_data)
{
    ((Host *)user_data)->is_connected = TRUE;
}

static void on_lost(const GError *reason, gpointer user_data)
{
    fail_msg("%s", reason->message);
}

static void on_domain(const char *name, const char *uuid, BerthDomainEvent event,
                      gpointer user_data)
{
    ((Host *)user_data)->n_resized += event == BERTH_DOMAIN_RESIZED;
}

static const BerthHypervisorFuncs funcs = {on_connected, on_lost, on_domain};

static void on_result(GObject *source, GAsyncResult *result, gpointer user_data)
{
    *(GAsyncResult **)user_data = g_object_ref(result);
}

static int setup(void **state)
{
    Host *host = g_new0(Host, 1);
    g_autoptr(GAsyncResult) result = NULL;
    g_autoptr(GError) error = NULL;
    host->directory = g_dir_make_tmp("berth-resize-XXXXXX", NULL);
    host->hypervisor = berth_hypervisor_new("qemu:///system", &funcs, host);
    run_until(host->is_connected);
    berth_hypervisor_host_async(host->hypervisor, on_result, &result);
    run_until(result != NULL);
    g_autoptr(BerthHost) info = berth_hypervisor_host_finish(result, &error);
    assert_no_error(error);
    host->machine = g_strdup(info->machine);
    *state = host;
    return 0;
}

static int teardown(void **state)
{
    Host *host = *state;
    const char *const remove[] = {"rm", "-rf", host->directory, NULL};
    g_clear_pointer(&host->guest.peer, guest_peer_free);
    berth_hypervisor_free(host->hypervisor);
    g_spawn_sync(NULL, (char **)remove, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL, NULL, NULL,
                 NULL);
    g_free(host->machine);
    g_free(host->directory);
    g_free(host);
    return 0;
}

/* --- the guest's channel, whose peer blocks: not in the loop, or libvirt takes us for dead --- */

typedef struct {
    GuestPeer *peer;
    gboolean (*func)(GuestPeer *peer, gpointer data, GError **error);
    gpointer data;
    GError *error;
    gint is_done;
} Talk;

static gpointer run_talk(gpointer user_data)
{
    Talk *talk = user_data;
    talk->func(talk->peer, talk->data, &talk->error);
    g_atomic_int_set(&talk->is_done, TRUE);
    return NULL;
}

static void talk(Host *host, gboolean (*func)(GuestPeer *peer, gpointer data, GError **error),
                 gpointer data)
{
    Talk talk = {host->guest.peer, func, data, NULL, FALSE};
    GThread *thread = g_thread_new("talk", run_talk, &talk);
    run_until(g_atomic_int_get(&talk.is_done));
    g_thread_join(thread);
    assert_no_error(talk.error);
}

static gboolean talk_connect(GuestPeer *peer, gpointer data, GError **error)
{
    return guest_peer_connect(peer, BOOT_MSEC, error);
}

static gboolean talk_submit(GuestPeer *peer, gpointer data, GError **error)
{
    const char *const command[] = {"sh", "-c", data, NULL};
    GuestTask test;
    guest_task_init(&test, command);
    return guest_peer_submit(peer, &test.task, test.contents, test.n_contents, error);
}

static gboolean talk_output(GuestPeer *peer, gpointer text, GError **error)
{
    return guest_peer_wait(peer, guest_fixture_has_output, GSIZE_TO_POINTER(strlen(text)), RUN_MSEC,
                           error);
}

static gboolean talk_ended(GuestPeer *peer, gpointer data, GError **error)
{
    return guest_peer_wait_ended(peer, RUN_MSEC, error);
}

/* --- the guest ------------------------------------------------------------------------------ */

/* 1 vCPU and BASE_MIB, with a ceiling of 3 and four times as much. */
static void start(Host *host)
{
    g_autofree char *kernel = guest_vm_kernel();
    g_autofree char *initramfs = guest_vm_initramfs();
    g_autofree char *root = g_build_filename(host->directory, "disk", NULL);
    g_autofree char *console = g_build_filename(host->directory, "console", NULL);
    g_autofree char *channel = g_build_filename(host->directory, "channel", NULL);
    BerthDiskSource disk = {.file_path = root, .file_format = (char *)"raw"};
    BerthDomainMetadata metadata = {.id = {.job = 7, .epoch = 1},
                                    .limits = {.vcpus = 1, .memory_mib = BASE_MIB, .disk_mib = 48},
                                    .disk_id = (char *)"disk",
                                    .log_id = (char *)"log"};
    BerthDomainConfig config = {.name = "berth-7-0-0-1",
                                .metadata = &metadata,
                                .vcpus = 1,
                                .memory_mib = BASE_MIB,
                                .vcpus_max = 3,
                                .memory_max_mib = BASE_MIB * 4,
                                .machine = host->machine,
                                .cpu_model = "maximum",
                                .kernel = kernel,
                                .initramfs = initramfs,
                                .cmdline = "console=ttyS0 panic=-1 quiet",
                                .disk = &disk,
                                .channel_path = channel,
                                .console_path = console,
                                .stats_period_sec = 5};
    g_autoptr(GAsyncResult) result = NULL;
    assert_ok(guest_vm_make_root(host->directory, root, &error));
    assert_int_equal(truncate(root, 48 * MIB), 0);
    berth_hypervisor_create_async(host->hypervisor, &config, 60000, on_result, &result);
    run_until(result != NULL);
    assert_ok(berth_hypervisor_create_finish(result, &error));
    host->guest.peer = guest_peer_new(channel, 200);
    talk(host, talk_connect, NULL);
}

static gboolean ask(Host *host, const BerthDomainSize *size, gboolean presses,
                    BerthResizeProgress *progress, GError **error)
{
    g_autoptr(GAsyncResult) result = NULL;
    berth_hypervisor_resize_async(host->hypervisor, "berth-7-0-0-1", size, 0, presses, on_result,
                                  &result);
    run_until(result != NULL);
    return berth_hypervisor_resize_finish(result, progress, error);
}

static gboolean on_silence(gpointer is_silent)
{
    *(gboolean *)is_silent = TRUE;
    return G_SOURCE_CONTINUE;
}

/* As the agent does: again whenever the guest has gone along, and pressing when it does not. */
static void resize(Host *host, BerthDomainSize size)
{
    BerthResizeProgress progress = {0};
    gboolean presses = FALSE;
    while (!progress.is_done) {
        guint n = host->n_resized;
        gboolean is_silent = FALSE;
        assert_ok(ask(host, &size, presses, &progress, &error));
        guint source = g_timeout_add(SILENCE_MSEC, on_silence, &is_silent);
        run_until(progress.is_done || host->n_resized > n || is_silent);
        g_source_remove(source);
        presses = presses || is_silent;
    }
    assert_int_equal(progress.memory_mib, size.memory_mib - size.balloon_mib);
}

static void assert_settled(Host *host, BerthDomainSize size)
{
    g_autoptr(GAsyncResult) result = NULL;
    g_autoptr(GError) error = NULL;
    berth_hypervisor_list_async(host->hypervisor, on_result, &result);
    run_until(result != NULL);
    g_autoptr(GPtrArray) domains = berth_hypervisor_list_finish(result, &error);
    assert_no_error(error);
    assert_int_equal(domains->len, 1);
    const BerthDomain *domain = g_ptr_array_index(domains, 0);
    assert_int_equal(domain->metadata.id.job, 7);
    assert_int_equal(domain->metadata.limits.vcpus, size.vcpus);
    assert_int_equal(domain->metadata.limits.memory_mib, size.memory_mib);
    assert_int_equal(domain->metadata.limits.disk_mib, 48);
    assert_int_equal(domain->metadata.balloon_mib, size.balloon_mib);
    assert_int_equal(domain->metadata.is_opportunistic, size.is_opportunistic);
}

/* It holds 16 MiB of data in memory, and looks at them all the time. Once it has three vCPUs it needs a
 * buffer that is larger than the guest was at its start. */
static const char job[] =
    "mem() { awk '/MemTotal/{print int($2/1024)}' /proc/meminfo; }\n"
    "look() { sha256sum -c /dev/shm/sum >/dev/null 2>&1 || { echo broken; exit 1; }; sleep 0.2; }\n"
    "dd if=/dev/urandom of=/dev/shm/data bs=1M count=16 2>/dev/null || exit 2\n"
    "sha256sum /dev/shm/data >/dev/shm/sum || exit 3\n"
    "echo ready\n"
    "until [ $(nproc) = 3 ] && [ $(mem) -gt 300 ]; do look; done\n"
    "dd if=/dev/zero of=/dev/null bs=180M count=1 2>/dev/null || exit 4\n"
    "echo grown\n"
    "until [ $(mem) -lt 110 ]; do look; done\n"
    "look; echo shrunk\n";

static void wait_output(Host *host, const char *text)
{
    talk(host, talk_output, (gpointer)text);
    guest_fixture_assert_output(&host->guest, 0, text);
}

static void job_uses_what_it_is_given_and_keeps_its_data(void **state)
{
    Host *host = *state;
    const BerthDomainSize grown = {3, 403, 18, TRUE}; /* blocks, and the rest of one */
    const BerthDomainSize shrunk = {1, 116, 0, FALSE};
    const BerthDomainSize beyond = {4, BASE_MIB, 0, FALSE};
    BerthResizeProgress progress;
    g_autoptr(GError) refusal = NULL;
    start(host);
    talk(host, talk_submit, (gpointer)job);
    wait_output(host, "ready\n");
    resize(host, grown);
    assert_settled(host, grown);
    wait_output(host, "ready\ngrown\n");
    resize(host, shrunk);
    assert_settled(host, shrunk);
    talk(host, talk_ended, NULL);
    guest_fixture_assert_output(&host->guest, 0, "ready\ngrown\nshrunk\n");
    assert_int_equal(host->guest.peer->ended->exit->status, 0);
    assert_false(ask(host, &beyond, FALSE, &progress, &refusal));
    assert_int_equal(refusal->code, BERTH_ERROR_INVALID_ARGUMENT);
    assert_settled(host, shrunk);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(job_uses_what_it_is_given_and_keeps_its_data, setup,
                                        teardown),
    };
    const char *missing = guest_vm_missing();
    if (missing != NULL) {
        print_message("skipped: no %s\n", missing);
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
