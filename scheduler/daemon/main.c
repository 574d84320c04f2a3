/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the process: options, signals, readiness, and the exit status. */
#include "config.h"

#include "common/config_warnings.h"
#include "common/error.h"
#include "common/log.h"
#include "common/notify.h"
#include "scheduler/daemon/daemon.h"

#include <glib-unix.h>
#include <locale.h>
#include <signal.h>
#include <sysexits.h>
#include <unistd.h>

typedef struct {
    char *config_path;
    gboolean check_config;
    gboolean version;
} Options;

typedef struct {
    GMainLoop *loop;
    const char *config_path;
    int status;
} Process;

static gboolean parse_options(int *argc, char ***argv, Options *options, GError **error)
{
    const GOptionEntry entries[] = {
        {"config", 'c', 0, G_OPTION_ARG_FILENAME, &options->config_path,
         "Configuration file (default: " BERTH_SYSCONFDIR "/berthd.conf)", "FILE"},
        {"check-config", 0, 0, G_OPTION_ARG_NONE, &options->check_config,
         "Check the configuration file and exit", NULL},
        {"version", 0, 0, G_OPTION_ARG_NONE, &options->version, "Print the version and exit", NULL},
        {NULL},
    };
    g_autoptr(GOptionContext) context = g_option_context_new("- scheduler of Berth");
    g_option_context_add_main_entries(context, entries, NULL);
    g_option_context_set_description(context, "See berthd(8) and berthd.conf(5).");
    if (!g_option_context_parse(context, argc, argv, error)) {
        return FALSE;
    }
    if (*argc > 1) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "\"%s\" is not expected; see berthd --help", (*argv)[1]);
        return FALSE;
    }
    return TRUE;
}

static gboolean on_terminate(gpointer user_data)
{
    Process *process = user_data;
    g_message("ending as asked; guests run on");
    g_main_loop_quit(process->loop);
    return G_SOURCE_CONTINUE;
}

static gboolean on_hangup(gpointer user_data)
{
    const Process *process = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthDaemonConfig) config = berth_daemon_config_load(process->config_path, &error);
    if (!config) {
        g_warning("the configuration is left as it was: %s", error->message);
        return G_SOURCE_CONTINUE;
    }
    berth_log_set_level(config->log_level);
    g_message("took the log level from %s; everything else needs a restart", process->config_path);
    return G_SOURCE_CONTINUE;
}

static void on_failed(const GError *error, gpointer user_data)
{
    Process *process = user_data;
    g_critical(
        "cannot write the state and must end: %s. Nothing that was acknowledged is lost: "
        "see to it that the state can be written (free some space, mend the disk), and start "
        "berthd again; guests run on meanwhile",
        error->message);
    process->status = EXIT_FAILURE;
    g_main_loop_quit(process->loop);
}

static int run(BerthDaemonConfig *config, const char *config_path)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    Process process = {loop, config_path, EXIT_SUCCESS};
    g_autofree char *socket = g_strdup(config->socket);
    BerthDaemon *daemon = berth_daemon_start(config, &error);
    if (!daemon) {
        g_critical("cannot start: %s", error->message);
        return EXIT_FAILURE;
    }
    berth_daemon_set_failed_func(daemon, on_failed, &process);
    g_unix_signal_add(SIGTERM, on_terminate, &process);
    g_unix_signal_add(SIGINT, on_terminate, &process);
    g_unix_signal_add(SIGHUP, on_hangup, &process);
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
    Options options = {0};
    g_autoptr(GError) error = NULL;
    setlocale(LC_ALL, "C.UTF-8");
    signal(SIGPIPE, SIG_IGN);
    if (!parse_options(&argc, &argv, &options, &error)) {
        g_printerr("berthd: %s\n", error->message);
        return EX_USAGE;
    }
    g_autofree char *path =
        options.config_path ? options.config_path : g_strdup(BERTH_SYSCONFDIR "/berthd.conf");
    if (options.version) {
        g_print("berthd %s\n", PACKAGE_VERSION);
        return EXIT_SUCCESS;
    }
    BerthDaemonConfig *config = berth_daemon_config_load(path, &error);
    if (!config) {
        g_printerr("berthd: %s\n", error->message);
        return EX_CONFIG;
    }
    if (options.check_config) {
        g_autoptr(GPtrArray) warnings = berth_daemon_config_warnings(config);
        berth_config_warnings_print(warnings, "berthd", path);
        berth_daemon_config_free(config);
        return EXIT_SUCCESS;
    }
    berth_log_init("berthd", config->log_level);
    return run(config, path);
}
