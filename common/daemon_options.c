/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the daemons' command lines have in common. Does not own what a daemon does about it. */
#include "common/daemon_options.h"

#include "common/error.h"

BerthDaemonOptions *berth_daemon_options_parse(const BerthDaemonProgram *program, int *argc,
                                               char ***argv, GError **error)
{
    g_autoptr(BerthDaemonOptions) options = g_new0(BerthDaemonOptions, 1);
    g_autofree char *config =
        g_strdup_printf("Configuration file (default: %s)", program->config_path);
    g_autofree char *summary = g_strdup_printf("- %s", program->summary);
    g_autofree char *description = g_strdup_printf("See %s.", program->manuals);
    const GOptionEntry entries[] = {
        {"config", 'c', 0, G_OPTION_ARG_FILENAME, &options->config_path, config, "FILE"},
        {"check-config", 0, 0, G_OPTION_ARG_NONE, &options->check_config,
         "Check the configuration file and exit", NULL},
        {"version", 0, 0, G_OPTION_ARG_NONE, &options->version, "Print the version and exit", NULL},
        {NULL},
    };
    g_autoptr(GOptionContext) context = g_option_context_new(summary);
    g_option_context_add_main_entries(context, entries, NULL);
    if (program->own != NULL)
        g_option_context_add_main_entries(context, program->own, NULL);
    g_option_context_set_description(context, description);
    if (!g_option_context_parse(context, argc, argv, error))
        return NULL;
    if (*argc > 1) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "\"%s\" is not expected; see %s --help", (*argv)[1], program->name);
        return NULL;
    }
    if (options->config_path == NULL)
        options->config_path = g_strdup(program->config_path);
    return g_steal_pointer(&options);
}

void berth_daemon_options_free(BerthDaemonOptions *options)
{
    if (options == NULL)
        return;
    g_free(options->config_path);
    g_free(options);
}
