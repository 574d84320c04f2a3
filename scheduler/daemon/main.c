/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the process: options, signals, readiness, and the exit status. */
#include "config.h"

#include "common/config_warnings.h"
#include "common/daemon_options.h"
#include "common/daemon_signals.h"
#include "common/descriptors.h"
#include "common/log.h"
#include "common/notify.h"
#include "scheduler/daemon/daemon.h"

#include <locale.h>
#include <signal.h>
#include <sysexits.h>
#include <unistd.h>

static gboolean take_over_storage;

static const GOptionEntry own_options[] = {
    {"take-over-storage", 0, 0, G_OPTION_ARG_NONE, &take_over_storage,
     "Use storage that belongs to another state, which is lost for good", NULL},
    {NULL},
};

static const BerthDaemonProgram program = {
    .name = "berthd",
    .summary = "scheduler of Berth",
    .manuals = "berthd(8) and berthd.conf(5)",
    .config_path = BERTH_SYSCONFDIR "/berthd.conf",
    .own = own_options,
};

typedef struct {
    GMainLoop *loop;
    int status;
} Process;

static gboolean read_log_level(const char *path, BerthLogLevel *out_level, GError **error)
{
    g_autoptr(BerthDaemonConfig) config = berth_daemon_config_load(path, error);
    if (!config)
        return FALSE;
    *out_level = config->log_level;
    return TRUE;
}

static void on_failed(BerthDaemonFailure failure, const GError *error, gpointer user_data)
{
    Process *process = user_data;
    if (failure == BERTH_DAEMON_STORAGE_FOREIGN) {
        g_critical("cannot go on: %s", error->message);
        process->status = EX_CONFIG;
    } else {
        g_critical(
            "cannot write the state and must end: %s. Nothing that was acknowledged is lost: "
            "see to it that the state can be written (free some space, mend the disk), and start "
            "berthd again; guests run on meanwhile",
            error->message);
        process->status = EXIT_FAILURE;
    }
    g_main_loop_quit(process->loop);
}

static int run(BerthDaemonConfig *config, const char *config_path)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    Process process = {loop, EXIT_SUCCESS};
    g_autofree char *socket = g_strdup(config->socket);
    BerthDaemon *daemon = berth_daemon_start(config, &error);
    if (!daemon) {
        g_critical("cannot start: %s", error->message);
        return EXIT_FAILURE;
    }
    berth_daemon_set_failed_func(daemon, on_failed, &process);
    /* Until it has stopped: asking twice must not kill it. */
    g_autoptr(BerthDaemonSignals) signals =
        berth_daemon_signals_new(loop, config_path, read_log_level);
    GSource *watchdog = berth_notify_watchdog_start(NULL);
    g_message("berthd %s serves users at %s and agents on port %u", PACKAGE_VERSION, socket,
              berth_daemon_agents_port(daemon));
    berth_notify_ready();
    g_main_loop_run(loop);
    berth_notify_stopping();
    if (watchdog) {
        g_source_destroy(watchdog);
        g_source_unref(watchdog);
    }
    if (!berth_daemon_stop(daemon)) {
        g_warning("storage has not answered for long: ending without waiting for it");
        _exit(process.status);
    }
    return process.status;
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    setlocale(LC_ALL, "C.UTF-8");
    signal(SIGPIPE, SIG_IGN);
    g_autoptr(BerthDaemonOptions) options =
        berth_daemon_options_parse(&program, &argc, &argv, &error);
    if (!options) {
        g_printerr("%s: %s\n", program.name, error->message);
        return EX_USAGE;
    }
    if (options->version) {
        g_print("%s %s\n", program.name, PACKAGE_VERSION);
        return EXIT_SUCCESS;
    }
    BerthDaemonConfig *config = berth_daemon_config_load(options->config_path, &error);
    if (!config) {
        g_printerr("%s: %s\n", program.name, error->message);
        return EX_CONFIG;
    }
    if (options->check_config) {
        g_autoptr(GPtrArray) warnings = berth_daemon_config_warnings(config);
        berth_config_warnings_print(warnings, program.name, options->config_path);
        berth_daemon_config_free(config);
        return EXIT_SUCCESS;
    }
    config->take_over_storage = take_over_storage;
    berth_descriptors_raise_limit();
    berth_log_init(program.name, config->log_level);
    return run(config, options->config_path);
}
