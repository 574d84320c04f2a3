/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A command on this host, as the agent itself: root. */

#include "nodeagent/exec.h"

/* Begins COMMAND of N arguments in "/", in a session of its own. When it ends or is closed, so does what it has
 * started, unless that has made itself a session; when the agent ends, the command alone, or, as a unit of systemd's,
 * nothing. FUNCS stays valid. NOT_FOUND and others: it cannot be
 * executed. */
BerthExec *berth_node_exec_open(char *const *command, gsize n, const BerthExecFuncs *funcs,
                                gpointer user_data, GError **error);
/* As close(), as the agent ends: a unit runs on. */
void berth_node_exec_leave(BerthExec *exec);
