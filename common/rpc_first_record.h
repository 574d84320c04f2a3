/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What lies unread in a socket on which a client may begin a TLS handshake. Nothing is taken from it. Internal to common's RPC. */

#include <gio/gio.h>

/* Of a record: type, version, length (RFC 8446, 5.1). */
#define BERTH_RPC_RECORD_HEADER 5u

/* How many bytes are to be there for the first record to be whole, as far as is known; 0 = it is, or it is none of a handshake, which
 * the handshake finds out. */
guint berth_rpc_first_record_bytes(GSocket *socket);
/* From now on SOCKET can be read when BYTES are there, or its end. */
void berth_rpc_want_bytes(GSocket *socket, guint bytes);
guint berth_rpc_bytes_there(GSocket *socket);
/* The other end sends nothing any more. */
gboolean berth_rpc_has_hung_up(GSocket *socket);
