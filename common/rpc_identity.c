/* SPDX-License-Identifier: Apache-2.0 */
/* Owns who is at the other end: what the kernel says of a unix socket, what the certificate says
 * of a TLS connection (its handshake has verified it). */
#include <config.h>

#include "common/rpc_internal.h"
#include "common/rpc_tls.h"

#include <errno.h>
#include <sys/socket.h>

GSocket *berth_rpc_stream_socket(GIOStream *stream)
{
    GSocket *socket = NULL;
    if (G_IS_TLS_CONNECTION(stream)) {
        g_autoptr(GIOStream) base = NULL;
        g_object_get(stream, "base-io-stream", &base, NULL);
        socket = g_socket_connection_get_socket(G_SOCKET_CONNECTION(base));
    } else {
        socket = g_socket_connection_get_socket(G_SOCKET_CONNECTION(stream));
    }
    return socket;
}

/* Supplementary groups. The kernel says how many there are when the room is too small. */
static void read_groups(int fd, BerthRpcIdentity *identity)
{
    socklen_t length = 0;
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, NULL, &length) == 0 || errno != ERANGE)
        return;
    identity->groups = g_malloc(length);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, identity->groups, &length) == 0)
        identity->n_groups = length / sizeof(gid_t);
}

static void read_unix(int fd, BerthRpcIdentity *identity)
{
    /* Nobody, should the kernel not say: never the uid 0 of zeroed memory. */
    struct ucred credentials = {.pid = 0, .uid = (uid_t)-1, .gid = (gid_t)-1};
    socklen_t length = sizeof(credentials);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0)
        credentials = (struct ucred){.pid = 0, .uid = (uid_t)-1, .gid = (gid_t)-1};
    identity->is_unix = TRUE;
    identity->uid = credentials.uid;
    identity->gid = credentials.gid;
    identity->pid = credentials.pid;
    read_groups(fd, identity);
    identity->description =
        g_strdup_printf("uid %u (pid %d)", (guint)credentials.uid, (int)credentials.pid);
}

char *berth_rpc_address_text(GSocketAddress *address)
{
    if (address == NULL || !G_IS_INET_SOCKET_ADDRESS(address))
        return g_strdup("an unknown address");
    GInetSocketAddress *inet = G_INET_SOCKET_ADDRESS(address);
    g_autofree char *host = g_inet_address_to_string(g_inet_socket_address_get_address(inet));
    return g_strdup_printf(strchr(host, ':') != NULL ? "[%s]:%u" : "%s:%u", host,
                           g_inet_socket_address_get_port(inet));
}

void berth_rpc_identity_read(GIOStream *stream, GSocket *socket, BerthRpcIdentity *identity)
{
    if (g_socket_get_family(socket) == G_SOCKET_FAMILY_UNIX && !G_IS_TLS_CONNECTION(stream)) {
        read_unix(g_socket_get_fd(socket), identity);
        return;
    }
    g_autoptr(GSocketAddress) remote = g_socket_get_remote_address(socket, NULL);
    g_autofree char *address = berth_rpc_address_text(remote);
    if (G_IS_TLS_CONNECTION(stream))
        identity->node_name = berth_tls_common_name(
            g_tls_connection_get_peer_certificate(G_TLS_CONNECTION(stream)), NULL);
    identity->description = g_strdup_printf(
        "%s at %s", identity->node_name != NULL ? identity->node_name : "a peer", address);
}

void berth_rpc_identity_clear(BerthRpcIdentity *identity)
{
    g_free(identity->groups);
    g_free(identity->node_name);
    g_free(identity->description);
    *identity = (BerthRpcIdentity){0};
}
