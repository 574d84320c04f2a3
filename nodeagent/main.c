/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the process: options, signals, readiness, and the exit status. */
#include <config.h>

#include <locale.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sysexits.h>

#include "common/config_warnings.h"
#include "common/daemon_options.h"
#include "common/daemon_signals.h"
#include "common/descriptors.h"
#include "common/log.h"
#include "common/notify.h"
#include "nodeagent/agent.h"
#include "nodeagent/host_cpus.h"

static const BerthDaemonProgram program = {
    .name = "berth-node",
    .summary = "agent of Berth on one host",
    .manuals = "berth-node(8) and berth-node.conf(5)",
    .config_path = BERTH_SYSCONFDIR "/berth-node.conf",
};

typedef struct {
    GMainLoop *loop;
    int status;
} Process;

/* FALSE with ERROR: none is left for the host, or none for guests. */
static gboolean take_cpus(BerthNodeConfig *config, GError **error)
{
    g_autofree char *offline = NULL;
    if (!berth_node_config_take_cpus(config, &offline, error))
        return FALSE;
    if (offline != NULL)
        g_warning("[guests] host_cpus: not online: %s", offline);
    return TRUE;
}

/* What there is of its CPUs is looked at again, and told; guests get by what there was at the start. */
static gboolean read_log_level(const char *path, BerthLogLevel *out_level, GError **error)
{
    g_autoptr(BerthNodeConfig) config = berth_node_config_load(path, error);
    if (config == NULL)
        return FALSE;
    *out_level = config->log_level;
    g_autoptr(GError) cpus_error = NULL;
    if (!take_cpus(config, &cpus_error))
        g_warning("the next start will fail: %s", cpus_error->message);
    return TRUE;
}

static void on_ready(gpointer user_data)
{
    g_message("berth-node %s is ready", PACKAGE_VERSION);
    berth_notify_ready();
}

static void on_failed(const GError *error, gpointer user_data)
{
    Process *process = user_data;
    g_critical("cannot start: %s", error->message);
    process->status = EXIT_FAILURE;
    g_main_loop_quit(process->loop);
}

/* Where CPUs are kept for the host, the agent runs there. */
static gboolean settle(BerthNodeConfig *config, GError **error)
{
    g_autofree char *barred = NULL;
    if (!take_cpus(config, error) ||
        (config->host_cpus != NULL && !berth_host_cpus_bind(config->host_cpus, &barred, error)))
        return FALSE;
    if (barred != NULL)
        g_warning(
            "[guests] host_cpus: the cpuset of the agent lacks CPUs %s, on which it is to run; see "
            "AllowedCPUs= of its unit, or the container that it is in",
            barred);
    return TRUE;
}

/* What keeps it from starting here may pass, and is no EX_CONFIG, with which systemd would not try again. */
static int run(BerthNodeConfig *config, const char *config_path)
{
    g_autoptr(GError) error = NULL;
    if (!settle(config, &error)) {
        g_critical("cannot start: %s", error->message);
        return EXIT_FAILURE;
    }
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    Process process = {loop, EXIT_SUCCESS};
    BerthAgentFuncs funcs = {on_ready, on_failed, &process};
    g_autoptr(BerthAgent) agent = berth_agent_new(config, &funcs, &error);
    if (agent == NULL) {
        g_critical("cannot start: %s", error->message);
        return EXIT_FAILURE;
    }
    g_autoptr(BerthDaemonSignals) signals =
        berth_daemon_signals_new(loop, config_path, read_log_level);
    GSource *watchdog = berth_notify_watchdog_start(NULL);
    g_main_loop_run(loop);
    berth_notify_stopping();
    if (watchdog != NULL) {
        g_source_destroy(watchdog);
        g_source_unref(watchdog);
    }
    return process.status;
}

/* The memory of a guest that is saved or restored passes through in pieces of 4 MiB, of which Ceph's library copies each: they
 * are to be used again. malloc's own choice is to map and unmap every one, and their pages are then cleared by the kernel
 * for longer than it takes to send them. Whoever has had the last one gives back what was kept (storage/rbd_memory.c). */
static void keep_pieces(void)
{
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_MMAP_THRESHOLD, 32 * 1024 * 1024);
    mallopt(M_TRIM_THRESHOLD, 64 * 1024 * 1024);
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    setlocale(LC_ALL, "C.UTF-8");
    signal(SIGPIPE, SIG_IGN);
    keep_pieces();
    berth_descriptors_raise_limit();
    g_autoptr(BerthDaemonOptions) options =
        berth_daemon_options_parse(&program, &argc, &argv, &error);
    if (options == NULL) {
        g_printerr("%s: %s\n", program.name, error->message);
        return EX_USAGE;
    }
    if (options->version) {
        g_print("%s %s\n", program.name, PACKAGE_VERSION);
        return EXIT_SUCCESS;
    }
    g_autoptr(BerthNodeConfig) config = berth_node_config_load(options->config_path, &error);
    if (config == NULL) {
        g_printerr("%s: %s\n", program.name, error->message);
        return EX_CONFIG;
    }
    if (options->check_config) {
        g_autoptr(GPtrArray) warnings = berth_node_config_warnings(config);
        berth_config_warnings_print(warnings, program.name, options->config_path);
        return EXIT_SUCCESS;
    }
    berth_log_init(program.name, config->log_level);
    return run(config, options->config_path);
}
