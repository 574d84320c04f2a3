/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

/* "30m", or "never": 0. INVALID_ARGUMENT: neither. */
gboolean berth_checkpoint_every_parse(const char *text, guint32 *out_sec, GError **error);

/* Has each job that ARGV names checkpointed by itself after so many seconds of running, 0 = not, and says so. What is refused
 * is said of each, and is in *OUT_STATUS. REASON: why; NULL = not said. FALSE: none can be named so, or berthd not be
 * reached. */
gboolean berth_cli_checkpoint_every(BerthCli *cli, int argc, char **argv, guint32 every_sec,
                                    const char *reason, int *out_status, GError **error);
