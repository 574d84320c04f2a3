/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the sd_notify protocol. Reads the environment at each call: nothing is kept. */
#include "common/notify.h"

#include "common/error.h"
#include "common/units.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* PATH is a file system path, or "@name" in the abstract namespace. 0: neither, or too long. */
static socklen_t make_address(const char *path, struct sockaddr_un *address)
{
    gsize length = strlen(path);
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    if ((path[0] != '/' && path[0] != '@') || length < 2 || length >= sizeof(address->sun_path))
        return 0;
    memcpy(address->sun_path, path, length);
    if (path[0] == '@')
        address->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
}

gboolean berth_notify_send(const char *state, GError **error)
{
    const char *path = g_getenv("NOTIFY_SOCKET");
    if (path == NULL)
        return FALSE;
    struct sockaddr_un address;
    socklen_t length = make_address(path, &address);
    if (length == 0) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "cannot notify the service manager: NOTIFY_SOCKET=%s is not a socket address",
                    path);
        return FALSE;
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    gssize sent = fd < 0 ? -1
                         : sendto(fd, state, strlen(state), MSG_NOSIGNAL,
                                  (const struct sockaddr *)&address, length);
    int err = errno;
    if (fd >= 0)
        close(fd);
    if (sent < 0) {
        berth_set_error_errno(error, err, "cannot notify the service manager at %s", path);
        return FALSE;
    }
    return TRUE;
}

void berth_notify_ready(void)
{
    berth_notify_send("READY=1", NULL);
}

void berth_notify_stopping(void)
{
    berth_notify_send("STOPPING=1", NULL);
}

void berth_notify_extend_timeout(guint seconds)
{
    g_autofree char *state = g_strdup_printf("EXTEND_TIMEOUT_USEC=%" G_GUINT64_FORMAT,
                                             seconds * (guint64)G_USEC_PER_SEC);
    berth_notify_send(state, NULL);
}

void berth_notify_status(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_strdelimit(text, "\n", ' ');
    g_autofree char *state = g_strconcat("STATUS=", text, NULL);
    berth_notify_send(state, NULL);
}

guint64 berth_notify_watchdog_usec(void)
{
    const char *interval = g_getenv("WATCHDOG_USEC"), *owner = g_getenv("WATCHDOG_PID");
    guint64 usec = 0, pid = (guint64)getpid();
    if (owner != NULL && !berth_parse_uint64(owner, pid, pid, &pid, NULL))
        return 0;
    if (interval == NULL || !berth_parse_uint64(interval, 1, G_MAXINT64, &usec, NULL))
        return 0;
    return usec;
}

static gboolean send_watchdog(gpointer unused)
{
    berth_notify_send("WATCHDOG=1", NULL);
    return G_SOURCE_CONTINUE;
}

GSource *berth_notify_watchdog_start(GMainContext *context)
{
    guint64 usec = berth_notify_watchdog_usec();
    if (usec == 0)
        return NULL;
    guint64 msec = CLAMP(usec / 2000, 1, G_MAXINT);
    GSource *source = g_timeout_source_new((guint)msec);
    g_source_set_static_name(source, "berth watchdog");
    g_source_set_callback(source, send_watchdog, NULL, NULL);
    g_source_attach(source, context);
    return source;
}
