/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a berth-node for one test (tests/lib/node_fixture.h). */
#include <config.h>

#include "tests/lib/node_fixture.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <unistd.h>

#include "common/message.h"
#include "tests/lib/assert.h"
#include "tests/lib/child.h"
#include "tests/lib/guest_vm.h"
#include "tests/lib/tool.h"

#define PIECE_BYTES (1u << 20)

const char *node_fixture_missing(void)
{
    if (g_getenv("BERTH_TEST_HOST") == NULL)
        return "tests/lib/with-libvirtd";
    return guest_vm_missing();
}

/* --- image ---------------------------------------------------------------------------------- */

static void import_begin(NodeFixture *node, gsize length, char **out_id)
{
    Berth__ImportBeginRequest begin = BERTH__IMPORT_BEGIN_REQUEST__INIT;
    begin.name = (char *)"tiny";
    begin.size_bytes = length;
    begin.source = (char *)"a test";
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(node->berthd, &berth__images__descriptor, "ImportBegin", &begin.base);
    *out_id = g_strdup(((Berth__ImportBeginReply *)(void *)reply)->import_id);
}

static void import_image(NodeFixture *node)
{
    g_autofree char *path = g_build_filename(node->dir, "root.ext4", NULL);
    g_autofree char *content = NULL;
    g_autofree char *id = NULL;
    g_autoptr(GError) error = NULL;
    gsize length;
    guest_vm_make_root(node->dir, path, &error);
    assert_no_error(error);
    g_file_get_contents(path, &content, &length, &error);
    assert_no_error(error);
    import_begin(node, length, &id);
    for (gsize offset = 0; offset < length; offset += PIECE_BYTES) {
        Berth__ImportWriteRequest write = BERTH__IMPORT_WRITE_REQUEST__INIT;
        write.import_id = id;
        write.offset = offset;
        write.data = (ProtobufCBinaryData){.len = MIN(PIECE_BYTES, length - offset),
                                           .data = (guint8 *)content + offset};
        berth_message_free(berthd_fixture_call(node->berthd, &berth__images__descriptor,
                                               "ImportWrite", &write.base));
    }
    Berth__ImportCommitRequest commit = BERTH__IMPORT_COMMIT_REQUEST__INIT;
    commit.import_id = id;
    berth_message_free(berthd_fixture_call(node->berthd, &berth__images__descriptor, "ImportCommit",
                                           &commit.base));
}

/* --- configuration -------------------------------------------------------------------------- */

char *node_fixture_lines(NodeFixture *node, const char *certificate, const char *key,
                         const char *guests)
{
    return g_strdup_printf("[node]\n"
                           "name = n1\n"
                           "run_dir = %s/run\n"
                           "log_level = debug\n"
                           "[scheduler]\n"
                           "address = 127.0.0.1\n"
                           "port = %u\n"
                           "certificate = %s\n"
                           "key = %s\n"
                           "ca = %s\n"
                           "[storage]\n"
                           "kind = dir\n"
                           "path = %s/storage\n"
                           "[guests]\n"
                           "%s",
                           node->dir, berthd_fixture_port(node->berthd), certificate, key,
                           berthd_fixture_ca(node->berthd), berthd_fixture_dir(node->berthd),
                           guests);
}

void node_fixture_configure(NodeFixture *node, const char *lines)
{
    assert_true(g_file_set_contents(node->config, lines, -1, NULL));
}

static void configure(NodeFixture *node, const char *extra)
{
    g_autofree char *certificate = NULL;
    g_autofree char *key = NULL;
    g_autofree char *kernel = guest_vm_kernel();
    g_autofree char *initramfs = guest_vm_initramfs();
    g_autofree char *guests = g_strdup_printf("vcpus = 4\n"
                                              "memory = 2G\n"
                                              "allow_emulation = true\n"
                                              "probe_deadline = 3s\n"
                                              "kernel = %s\n"
                                              "initramfs = %s\n"
                                              "%s",
                                              kernel, initramfs, extra == NULL ? "" : extra);
    berthd_fixture_certificate(node->berthd, "n1", FALSE, &certificate, &key);
    g_autofree char *lines = node_fixture_lines(node, certificate, key, guests);
    node_fixture_configure(node, lines);
}

NodeFixture *node_fixture_new(const char *extra)
{
    NodeFixture *node = g_new0(NodeFixture, 1);
    node->berthd = berthd_fixture_new("report_interval = 1s\n[guests]\nstart_backoff = 1s\n");
    node->dir = g_dir_make_tmp("berth-node-XXXXXX", NULL);
    assert_non_null(node->dir);
    node->config = g_build_filename(node->dir, "berth-node.conf", NULL);
    node->log = g_build_filename(node->dir, "berth-node.log", NULL);
    configure(node, extra);
    berthd_fixture_start(node->berthd);
    import_image(node);
    return node;
}

static void destroy_domains(void)
{
    g_autofree char *names = node_fixture_virsh("list", "--name");
    g_auto(GStrv) lines = g_strsplit(names, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        if (**line != '\0')
            g_free(node_fixture_virsh("destroy", *line));
    }
}

/* Of SIGTERM it ends only as long as it has not set out to take it: just after it was started. */
static gboolean ended_well(GSubprocess *process)
{
    return g_subprocess_get_if_exited(process) ? g_subprocess_get_exit_status(process) == 0
                                               : g_subprocess_get_term_sig(process) == SIGTERM;
}

/* An agent ends well when it is asked to, whatever it is doing. */
static void terminate(NodeFixture *node)
{
    g_subprocess_send_signal(node->process, SIGTERM);
    g_subprocess_wait(node->process, NULL, NULL);
    gboolean is_good = ended_well(node->process);
    g_clear_object(&node->process);
    g_autofree char *log = node_fixture_log(node);
    const char *defect = strstr(log, "Sanitizer");
    if (defect == NULL)
        defect = strstr(log, "assertion '");
    if (!is_good || defect != NULL) {
        fprintf(stderr, "%s\n", defect != NULL ? defect : log); /* cmocka would cut it off */
        fail_msg("berth-node did not end well");
    }
}

void node_fixture_free(NodeFixture *node)
{
    const char *const remove[] = {"rm", "-rf", node->dir, NULL};
    if (node->process != NULL)
        terminate(node);
    destroy_domains();
    berthd_fixture_free(node->berthd);
    tool_run(remove);
    g_free(node->dir);
    g_free(node->config);
    g_free(node->log);
    g_free(node);
}

/* --- the process ---------------------------------------------------------------------------- */

static GSubprocess *spawn(NodeFixture *node)
{
    const char *top = g_getenv("top_builddir");
    g_autofree char *path = g_build_filename(top == NULL ? "." : top, "berth-node", NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDIN_INHERIT);
    child_bind(launcher);
    g_subprocess_launcher_unsetenv(launcher, "G_DEBUG"); /* some errors are wanted */
    g_subprocess_launcher_take_stderr_fd(
        launcher, open(node->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    GSubprocess *process =
        g_subprocess_launcher_spawn(launcher, &error, path, "--config", node->config, NULL);
    assert_no_error(error);
    return process;
}

void node_fixture_start(NodeFixture *node)
{
    assert_null(node->process);
    node->process = spawn(node);
}

void node_fixture_kill(NodeFixture *node)
{
    g_subprocess_force_exit(node->process);
    g_subprocess_wait(node->process, NULL, NULL);
    g_clear_object(&node->process);
}

int node_fixture_run(NodeFixture *node)
{
    g_autoptr(GSubprocess) process = spawn(node);
    g_subprocess_wait(process, NULL, NULL);
    assert_true(g_subprocess_get_if_exited(process));
    return g_subprocess_get_exit_status(process);
}

char *node_fixture_log(NodeFixture *node)
{
    char *text = NULL;
    return g_file_get_contents(node->log, &text, NULL, NULL) ? text : g_strdup("");
}

guint64 node_fixture_rss(NodeFixture *node)
{
    g_autofree char *path =
        g_strdup_printf("/proc/%s/status", g_subprocess_get_identifier(node->process));
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    const char *line = strstr(text, "VmRSS:");
    assert_non_null(line);
    return g_ascii_strtoull(line + strlen("VmRSS:"), NULL, 10) * 1024;
}

/* --- jobs ----------------------------------------------------------------------------------- */

guint64 node_fixture_submit(NodeFixture *node, const char *script, guint64 memory_mib)
{
    char *command[] = {(char *)"/bin/sh", (char *)"-c", (char *)script};
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.command = command;
    spec.n_command = G_N_ELEMENTS(command);
    spec.memory_mib = memory_mib;
    spec.disk_mib = 16;
    return berthd_fixture_submit(node->berthd, &spec);
}

Berth__Job *node_fixture_wait(NodeFixture *node, guint64 job)
{
    run_until(berthd_fixture_state_of(node->berthd, job) >= BERTH__JOB_STATE__COMPLETED);
    return berthd_fixture_get(node->berthd, job);
}

static gboolean has_output(NodeFixture *node, guint64 job, const char *text)
{
    g_autofree char *output = berthd_fixture_logs(node->berthd, job, FALSE, FALSE);
    return strstr(output, text) != NULL;
}

void node_fixture_wait_output(NodeFixture *node, guint64 job, const char *text)
{
    run_until(has_output(node, job, text));
}

/* --- libvirt -------------------------------------------------------------------------------- */

char *node_fixture_virsh(const char *command, const char *argument)
{
    g_autoptr(GSubprocess) process =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_SILENCE, NULL,
                         "virsh", "-q", "-c", "qemu:///system", command, argument, NULL);
    char *output = NULL;
    assert_non_null(process);
    assert_true(g_subprocess_communicate_utf8(process, NULL, NULL, &output, NULL, NULL));
    return output;
}

static gboolean has_no_domains(void)
{
    g_autofree char *names = node_fixture_virsh("list", "--name");
    return *g_strstrip(names) == '\0';
}

void node_fixture_wait_no_domains(void)
{
    run_until(has_no_domains());
}

static gboolean libvirtd_answers(void)
{
    g_autofree char *uri = node_fixture_virsh("uri", NULL);
    return g_str_has_prefix(uri, "qemu:");
}

void node_fixture_signal_libvirtd(int signal)
{
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents("/run/libvirtd.pid", &text, NULL, NULL));
    assert_int_equal(kill((pid_t)g_ascii_strtoll(text, NULL, 10), signal), 0);
}

void node_fixture_kill_libvirtd(void)
{
    node_fixture_signal_libvirtd(SIGKILL);
    run_until(!libvirtd_answers());
}

void node_fixture_start_libvirtd(void)
{
    g_autoptr(GSubprocess) libvirtd =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDERR_SILENCE, NULL, "libvirtd", "--daemon", NULL);
    assert_true(libvirtd != NULL && g_subprocess_wait_check(libvirtd, NULL, NULL));
    run_until(libvirtd_answers());
}
