/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the making of listening sockets, and that only one process listens at a path: a lock beside
 * the socket decides, because a socket file stays behind when its process is killed. */
#include "common/rpc_listener_bind.h"

#include "common/error.h"

#include <errno.h>
#include <fcntl.h>
#include <gio/gunixsocketaddress.h>
#include <glib/gstdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>

static GSocket *refuse(GError **error, int code, const char *path, const char *why)
{
    g_set_error(error, BERTH_ERROR, code, "cannot listen on %s: %s", path, why);
    return NULL;
}

/* A descriptor with an exclusive lock on PATH.lock, or -1. */
static int take_lock(const char *path, GError **error)
{
    g_autofree char *lock_path = g_strconcat(path, ".lock", NULL);
    int fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        berth_set_error_errno(error, errno, "cannot listen on %s: cannot open %s", path, lock_path);
        return -1;
    }
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return fd;
    int err = errno;
    close(fd);
    if (err == EWOULDBLOCK)
        refuse(error, BERTH_ERROR_ALREADY_EXISTS, path, "another process listens there");
    else
        berth_set_error_errno(error, err, "cannot listen on %s: cannot lock %s", path, lock_path);
    return -1;
}

/* Does somebody without a lock of ours listen at ADDRESS? */
static gboolean is_served(GSocketAddress *address)
{
    g_autoptr(GSocket) probe =
        g_socket_new(G_SOCKET_FAMILY_UNIX, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_DEFAULT, NULL);
    if (probe == NULL)
        return TRUE;
    g_socket_set_blocking(probe, FALSE);
    g_autoptr(GError) reason = NULL;
    if (g_socket_connect(probe, address, NULL, &reason))
        return TRUE;
    return !g_error_matches(reason, G_IO_ERROR, G_IO_ERROR_CONNECTION_REFUSED) &&
           !g_error_matches(reason, G_IO_ERROR, G_IO_ERROR_NOT_FOUND);
}

static gboolean remove_stale(const char *path, GSocketAddress *address, GError **error)
{
    struct stat status;
    if (lstat(path, &status) != 0) {
        if (errno == ENOENT)
            return TRUE;
        berth_set_error_errno(error, errno, "cannot listen on %s: cannot look at it", path);
        return FALSE;
    }
    if (!S_ISSOCK(status.st_mode)) {
        refuse(error, BERTH_ERROR_ALREADY_EXISTS, path, "it exists and is not a socket");
        return FALSE;
    }
    if (is_served(address)) {
        refuse(error, BERTH_ERROR_ALREADY_EXISTS, path, "another process listens there");
        return FALSE;
    }
    if (g_unlink(path) != 0) {
        berth_set_error_errno(error, errno, "cannot listen on %s: cannot replace it", path);
        return FALSE;
    }
    return TRUE;
}

static GSocket *listen_at(GSocket *socket, const char *name, GSocketAddress *address,
                          const char *path, guint mode, GError **error)
{
    g_autoptr(GError) reason = NULL;
    if (!g_socket_bind(socket, address, TRUE, &reason))
        return refuse(error,
                      g_error_matches(reason, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE)
                          ? BERTH_ERROR_ALREADY_EXISTS
                          : BERTH_ERROR_UNAVAILABLE,
                      name, reason->message);
    /* Nobody can connect before listen(): no moment with other permissions. */
    if (path != NULL && g_chmod(path, (int)mode) != 0) {
        berth_set_error_errno(error, errno, "cannot listen on %s: cannot set its mode", path);
        return NULL;
    }
    g_socket_set_listen_backlog(socket, 512);
    if (!g_socket_listen(socket, &reason))
        return refuse(error, BERTH_ERROR_UNAVAILABLE, name, reason->message);
    return g_object_ref(socket);
}

GSocket *berth_rpc_bind_unix(const char *path, guint mode, int *out_lock_fd, GError **error)
{
    if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
        return refuse(error, BERTH_ERROR_INVALID_ARGUMENT, path,
                      "the path of a socket has at most 107 bytes");
    int lock_fd = take_lock(path, error);
    if (lock_fd < 0)
        return NULL;
    g_autoptr(GSocketAddress) address = g_unix_socket_address_new(path);
    g_autoptr(GSocket) socket =
        g_socket_new(G_SOCKET_FAMILY_UNIX, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_DEFAULT, error);
    GSocket *listening = NULL;
    if (socket != NULL && remove_stale(path, address, error))
        listening = listen_at(socket, path, address, path, mode, error);
    if (listening == NULL)
        close(lock_fd);
    else
        *out_lock_fd = lock_fd;
    return listening;
}

GSocket *berth_rpc_bind_tcp(const char *address, guint16 port, GError **error)
{
    gboolean any = g_str_equal(address, "*");
    g_autofree char *name = g_strdup_printf("%s port %u", address, port);
    g_autoptr(GError) reason = NULL;
    g_autoptr(GSocket) socket = NULL;
    g_autoptr(GInetAddress) inet = any ? g_inet_address_new_any(G_SOCKET_FAMILY_IPV6)
                                       : g_inet_address_new_from_string(address);
    if (inet == NULL)
        return refuse(error, BERTH_ERROR_INVALID_ARGUMENT, name,
                      "that is neither an IP address nor \"*\"");
    socket = g_socket_new(g_inet_address_get_family(inet), G_SOCKET_TYPE_STREAM,
                          G_SOCKET_PROTOCOL_TCP, &reason);
    if (socket == NULL && any) { /* a host without IPv6 */
        g_clear_error(&reason);
        g_object_unref(inet);
        inet = g_inet_address_new_any(G_SOCKET_FAMILY_IPV4);
        socket = g_socket_new(G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP,
                              &reason);
    }
    if (socket == NULL)
        return refuse(error, BERTH_ERROR_UNAVAILABLE, name, reason->message);
    g_autoptr(GSocketAddress) where = g_inet_socket_address_new(inet, port);
    return listen_at(socket, name, where, NULL, 0, error);
}
