/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Commands on the host as units of systemd's, where that runs: neither in the agent's sandbox nor in its control
 * group, and with nothing of what protects the agent. */

#include <glib.h>

/* Does systemd run this host? */
gboolean berth_node_unit_is_possible(void);
/* A name for a new one (transfer full). */
char *berth_node_unit_name(void);
/* What runs COMMAND, of N words, as UNIT, with the standard streams that it is given, until the command has
 * ended (transfer full). That runs on when this is killed. */
char **berth_node_unit_argv(const char *unit, char *const *command, gsize n);
/* Sends SIGNAL to all of UNIT; ends it, by SIGHUP and soon after by SIGKILL. Nobody waits for either, nor for UNIT to be
 * there: systemd-run may not have asked for it yet. */
void berth_node_unit_signal(const char *unit, int signal);
void berth_node_unit_stop(const char *unit);
