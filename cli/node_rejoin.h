/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

/* How NODE is when its agent has joined again. What it cannot do now is tried again with the node as it is then. */
typedef gboolean (*BerthRejoinedFunc)(BerthCli *cli, const Berth__Node *node, gpointer user_data,
                                      GError **error);

/* Waits until the agent of each of NAMES has joined after event AFTER_SEQ, as another instance than the one of INSTANCES (name
 * -> instance), and can start guests, over restarts of the daemon; calls FUNC for each as it does. Fails in the end when that
 * has taken one of them longer than PATIENCE_SEC, with what is known of it, or when one of LOST, names of those on which a
 * command was lost, has joined as the instance that it was: that has ended the command. */
gboolean berth_cli_await_rejoin(BerthCli *cli, char **names, GHashTable *instances,
                                const GPtrArray *lost, guint64 after_seq, guint64 patience_sec,
                                BerthRejoinedFunc func, gpointer user_data, GError **error);
/* The newest event that there is. */
gboolean berth_cli_newest_event(BerthCli *cli, guint64 *out_seq, GError **error);
