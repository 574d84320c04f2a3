/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

/* Runs COMMAND (NULL-terminated) on the hosts of NAMES, side by side, and prints what it writes, line by line,
 * with the node's name before each. FALSE where it failed on any: ERROR names them, and FAILED (or NULL) gets them.
 * LOST (or NULL: they have failed) gets those on which it had begun when the connection to their agent was lost. Names are
 * (transfer none). REASON: why, or NULL. */
gboolean berth_cli_exec_on_nodes(BerthCli *cli, char **names, char **command, const char *reason,
                                 GPtrArray *failed, GPtrArray *lost, GError **error);
