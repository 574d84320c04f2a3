/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The readiness and watchdog protocol of service managers (sd_notify(3)): datagrams to
 * $NOTIFY_SOCKET. Where no manager listens all of this does nothing. Never blocks. */

#include <glib.h>

/* Sends STATE ("READY=1"). TRUE if it was sent; FALSE with ERROR unset where $NOTIFY_SOCKET is not
 * set. */
gboolean berth_notify_send(const char *state, GError **error);

/* These four ignore failures: a daemon works without its manager. */
void berth_notify_ready(void);
void berth_notify_stopping(void);
/* While it starts or ends: allow this much more time from now on. */
void berth_notify_extend_timeout(guint seconds);
void berth_notify_status(const char *format, ...) G_GNUC_PRINTF(1, 2);

/* How often the manager wants a sign of life ($WATCHDOG_USEC, if $WATCHDOG_PID is this process or
 * not set); 0 = never. */
guint64 berth_notify_watchdog_usec(void);
/* Sends WATCHDOG=1 from CONTEXT (NULL: the default) at half that interval, as long as the context
 * runs. (transfer full) NULL if no watchdog is wanted; g_source_destroy() ends it. */
GSource *berth_notify_watchdog_start(GMainContext *context);
