/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

/* Drains NAMES for REASON, and follows that on stdout until nothing is left on them, over restarts of the daemon. Fails,
 * and the drain goes on, when that takes longer than PATIENCE_SEC (0: however long it takes); of what is left then each
 * guest was told of. Fails also when somebody has ended the drain of one. */
gboolean berth_cli_drain_nodes(BerthCli *cli, char **names, const char *reason,
                               guint64 patience_sec, GError **error);
