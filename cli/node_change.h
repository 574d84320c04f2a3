/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

/* The ARGC-1 arguments after ARGV[0] as names of nodes; at least one. (transfer full) */
char **berth_cli_node_arguments(int argc, char **argv, int *out_status, GError **error);

/* Asks METHOD of the service Nodes, by REQUEST without its names, for all of NAMES. *OUT_BEFORE_SEQ (or NULL): what
 * comes of it are events with larger numbers. */
gboolean berth_cli_change_nodes(BerthCli *cli, const char *method, char **names,
                                const Berth__ChangeNodesRequest *request, guint64 *out_before_seq,
                                GError **error);

/* TEXT, of an option, as a time to wait. FALSE sets *OUT_STATUS. */
gboolean berth_cli_patience(const char *text, guint64 *out_sec, int *out_status, GError **error);

/* As the daemon has it; NOT_FOUND. (transfer full) */
Berth__Node *berth_cli_get_node(BerthCli *cli, const char *name, GError **error);
/* Prints each of NAMES as the daemon has it, as JSON. */
gboolean berth_cli_print_nodes_json(BerthCli *cli, char **names, GError **error);
