/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

/* Drains NAMES, which are open or closed for it already, for REASON, and follows that on stdout until nothing is left on them, over restarts of the daemon. Fails,
 * and the drain goes on, when that takes longer than PATIENCE_SEC (0: however long it takes); of what is left then each
 * guest was told of. Fails also when somebody has ended the drain of one, or given another reason for it. *OUT_ASKED, which is set
 * also where it fails: they are drained, or were. */
gboolean berth_cli_drain_nodes(BerthCli *cli, char **names, const char *reason,
                               guint64 patience_sec, gboolean *out_asked, GError **error);
