/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Listening sockets (transfer full). Internal to common's RPC. */

#include <gio/gio.h>

/* At PATH with permission bits MODE. Replaces a socket that nobody listens on. *OUT_LOCK_FD: a
 * descriptor whose lock says that this process listens there; close it after the socket. Errors:
 * ALREADY_EXISTS (somebody listens, or the file is no socket), INVALID_ARGUMENT (path too long),
 * and those of errno. */
GSocket *berth_rpc_bind_unix(const char *path, guint mode, int *out_lock_fd, GError **error);

/* ADDRESS: an IP address, or "*" for all. PORT 0: any. */
GSocket *berth_rpc_bind_tcp(const char *address, guint16 port, GError **error);
