/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the look at a socket before GLib has it. */
#define _GNU_SOURCE /* POLLRDHUP */
#include "common/rpc_first_record.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define TYPE_HANDSHAKE 0x16
#define LENGTH_MAX     (16384u + 256u)

guint berth_rpc_first_record_bytes(GSocket *socket)
{
    guint8 header[BERTH_RPC_RECORD_HEADER];
    gssize n = recv(g_socket_get_fd(socket), header, sizeof header, MSG_PEEK | MSG_DONTWAIT);
    if (n > 0 && header[0] != TYPE_HANDSHAKE)
        return 0;
    if (n < (gssize)sizeof header)
        return sizeof header;
    guint length = (guint)header[3] << 8 | header[4];
    guint whole = (guint)sizeof header + length;
    return length > LENGTH_MAX || berth_rpc_bytes_there(socket) >= whole ? 0 : whole;
}

/* socket(7): poll() heeds it. */
void berth_rpc_want_bytes(GSocket *socket, guint bytes)
{
    g_socket_set_option(socket, SOL_SOCKET, SO_RCVLOWAT, (int)bytes, NULL);
}

guint berth_rpc_bytes_there(GSocket *socket)
{
    int bytes = 0;
    return ioctl(g_socket_get_fd(socket), FIONREAD, &bytes) == 0 ? (guint)bytes : 0;
}

gboolean berth_rpc_has_hung_up(GSocket *socket)
{
    struct pollfd look = {.fd = g_socket_get_fd(socket), .events = POLLRDHUP};
    return poll(&look, 1, 0) > 0;
}
