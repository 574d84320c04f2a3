/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The command line of a daemon: --config, --check-config and --version, and what it has of its own. */

#include <glib.h>

/* What one daemon's command line says of itself. All of it must stay valid while it is parsed. */
typedef struct {
    const char *name;        /* "berthd" */
    const char *summary;     /* for --help: "scheduler of Berth" */
    const char *manuals;     /* for --help: "berthd(8) and berthd.conf(5)" */
    const char *config_path; /* where its configuration is if --config does not say */
    const GOptionEntry *own; /* its own options, ended by an empty one; NULL: none */
} BerthDaemonProgram;

typedef struct {
    char *config_path; /* never NULL */
    gboolean check_config;
    gboolean version;
} BerthDaemonOptions;

/* Takes the options out of ARGC and ARGV, as g_option_context_parse() does, whose errors (of
 * G_OPTION_ERROR) it has for options that it does not know. INVALID_ARGUMENT for whatever else
 * stands there. --help prints and exits. (transfer full) */
BerthDaemonOptions *berth_daemon_options_parse(const BerthDaemonProgram *program, int *argc,
                                               char ***argv, GError **error);
void berth_daemon_options_free(BerthDaemonOptions *options);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthDaemonOptions, berth_daemon_options_free)
