/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the process: options, signals, readiness, and the exit status. */
#include <config.h>

#include <glib-unix.h>
#include <locale.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sysexits.h>

#include "common/config_warnings.h"
#include "common/error.h"
#include "common/log.h"
#include "common/notify.h"
#include "nodeagent/agent.h"

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
         "Configuration file (default: " BERTH_SYSCONFDIR "/berth-node.conf)", "FILE"},
        {"check-config", 0, 0, G_OPTION_ARG_NONE, &options->check_config,
         "Check the configuration file and exit", NULL},
        {"version", 0, 0, G_OPTION_ARG_NONE, &options->version, "Print the version and exit", NULL},
        {NULL},
    };
    g_autoptr(GOptionContext) context = g_option_context_new("- agent of Berth on one host");
    g_option_context_add_main_entries(context, entries, NULL);
    g_option_context_set_description(context, "See berth-node(8) and berth-node.conf(5).");
    if (!g_option_context_parse(context, argc, argv, error))
        return FALSE;
    if (*argc > 1) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "\"%s\" is not expected; see berth-node --help", (*argv)[1]);
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
    g_autoptr(BerthNodeConfig) config = berth_node_config_load(process->config_path, &error);
    if (config == NULL) {
        g_warning("the configuration is left as it was: %s", error->message);
        return G_SOURCE_CONTINUE;
    }
    berth_log_set_level(config->log_level);
    g_message("took the log level from %s; everything else needs a restart", process->config_path);
    return G_SOURCE_CONTINUE;
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

static int run(const BerthNodeConfig *config, const char *config_path)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    Process process = {loop, config_path, EXIT_SUCCESS};
    BerthAgentFuncs funcs = {on_ready, on_failed, &process};
    g_autoptr(BerthAgent) agent = berth_agent_new(config, &funcs, &error);
    if (agent == NULL) {
        g_critical("cannot start: %s", error->message);
        return EXIT_FAILURE;
    }
    guint signals[] = {
        g_unix_signal_add(SIGTERM, on_terminate, &process),
        g_unix_signal_add(SIGINT, on_terminate, &process),
        g_unix_signal_add(SIGHUP, on_hangup, &process),
    };
    GSource *watchdog = berth_notify_watchdog_start(NULL);
    g_main_loop_run(loop);
    berth_notify_stopping();
    for (gsize i = 0; i < G_N_ELEMENTS(signals); i++)
        g_source_remove(signals[i]);
    if (watchdog != NULL) {
        g_source_destroy(watchdog);
        g_source_unref(watchdog);
    }
    return process.status;
}

/* Output passes through in pieces of up to a megabyte, allocated here and freed on other threads:
 * without this, malloc would keep many of them. */
static void bound_malloc(void)
{
    mallopt(M_ARENA_MAX, 2);
    mallopt(M_MMAP_THRESHOLD, 128 * 1024);
    mallopt(M_TRIM_THRESHOLD, 1024 * 1024);
}

int main(int argc, char **argv)
{
    Options options = {0};
    g_autoptr(GError) error = NULL;
    setlocale(LC_ALL, "C.UTF-8");
    signal(SIGPIPE, SIG_IGN);
    bound_malloc();
    if (!parse_options(&argc, &argv, &options, &error)) {
        g_printerr("berth-node: %s\n", error->message);
        return EX_USAGE;
    }
    g_autofree char *path = options.config_path != NULL
                                ? options.config_path
                                : g_strdup(BERTH_SYSCONFDIR "/berth-node.conf");
    if (options.version) {
        g_print("berth-node %s\n", PACKAGE_VERSION);
        return EXIT_SUCCESS;
    }
    g_autoptr(BerthNodeConfig) config = berth_node_config_load(path, &error);
    if (config == NULL) {
        g_printerr("berth-node: %s\n", error->message);
        return EX_CONFIG;
    }
    if (options.check_config) {
        g_autoptr(GPtrArray) warnings = berth_node_config_warnings(config);
        berth_config_warnings_print(warnings, "berth-node", path);
        return EXIT_SUCCESS;
    }
    berth_log_init("berth-node", config->log_level);
    return run(config, path);
}
