/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the socket to one guest's channel: bytes become messages, messages bytes. A guest is not
 * trusted: it costs one read and one frame at a time, however much it sends, so that others get
 * their turn. While a callback runs (`busy`), freeing only marks the link. */
#include <config.h>

#include "nodeagent/guest_link.h"

#include <errno.h>
#include <glib-unix.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/channel.h"
#include "common/message.h"

struct BerthGuestLink {
    int fd;
    const BerthGuestLinkFuncs *funcs;
    gpointer user_data;
    BerthChannelReader *reader;
    guint64 skipped; /* of the reader, as it was last told */
    guint in_source;
    guint out_source;
    guint rest_source; /* messages that were read before a pause */
    GQueue out;        /* GBytes */
    gsize out_written; /* of the first */
    gsize queued;
    gboolean paused;
    gboolean busy;
    gboolean dead;
};

static gboolean on_readable(gint fd, GIOCondition condition, gpointer data);
static gboolean on_writable(gint fd, GIOCondition condition, gpointer data);

static void stop(BerthGuestLink *link)
{
    g_clear_handle_id(&link->in_source, g_source_remove);
    g_clear_handle_id(&link->out_source, g_source_remove);
    g_clear_handle_id(&link->rest_source, g_source_remove);
}

BerthGuestLink *berth_guest_link_new(int fd, const BerthGuestLinkFuncs *funcs, gpointer user_data)
{
    BerthGuestLink *link = g_new0(BerthGuestLink, 1);
    link->fd = fd;
    link->funcs = funcs;
    link->user_data = user_data;
    link->reader = berth_channel_reader_new();
    if (link->reader == NULL)
        g_error("not enough memory for a guest's channel");
    g_queue_init(&link->out);
    link->in_source = g_unix_fd_add(fd, G_IO_IN | G_IO_HUP | G_IO_ERR, on_readable, link);
    return link;
}

void berth_guest_link_free(BerthGuestLink *link)
{
    if (link == NULL)
        return;
    stop(link);
    link->dead = TRUE;
    if (link->busy)
        return; /* whoever is busy with it frees it */
    close(link->fd);
    berth_channel_reader_free(link->reader);
    g_queue_clear_full(&link->out, (GDestroyNotify)g_bytes_unref);
    g_free(link);
}

/* Ends a callback's turn. FALSE: the link was freed meanwhile. */
static gboolean end_turn(BerthGuestLink *link)
{
    link->busy = FALSE;
    if (!link->dead)
        return TRUE;
    berth_guest_link_free(link);
    return FALSE;
}

/* --- reading -------------------------------------------------------------------------------- */

static void tell_noise(BerthGuestLink *link)
{
    guint64 skipped = berth_channel_reader_skipped(link->reader);
    gsize bytes = (gsize)(skipped - link->skipped);
    link->skipped = skipped;
    if (bytes > 0)
        link->funcs->noise(bytes, link->user_data);
}

/* A guest's text may be any bytes (a program's name is), and its end must not be lost for that. */
static void tell_message(BerthGuestLink *link, const guint8 *payload, gsize length)
{
    g_autoptr(ProtobufCMessage) message =
        berth_message_unpack_any_text(&berth__from_guest__descriptor, payload, length, NULL);
    gsize bytes = length + BERTH_CHANNEL_HEADER_BYTES;
    if (message != NULL)
        link->funcs->message((const Berth__FromGuest *)(const void *)message, bytes,
                             link->user_data);
    else
        link->funcs->noise(bytes, link->user_data);
}

/* Hands out the messages that were read, until there are no more or somebody wants a pause. */
static void take_messages(BerthGuestLink *link)
{
    while (!link->dead && !link->paused) {
        size_t length;
        const guint8 *payload = berth_channel_reader_next(link->reader, &length);
        if (payload == NULL)
            break;
        tell_message(link, payload, length);
    }
    if (!link->dead)
        tell_noise(link);
}

static gboolean on_readable(gint fd, GIOCondition condition, gpointer data)
{
    BerthGuestLink *link = data;
    size_t room;
    uint8_t *space = berth_channel_reader_space(link->reader, &room);
    ssize_t got = recv(fd, space, room, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return G_SOURCE_CONTINUE;
    link->busy = TRUE;
    if (got > 0) {
        berth_channel_reader_added(link->reader, (size_t)got);
        take_messages(link);
    } else {
        stop(link);
        link->funcs->closed(link->user_data);
    }
    return end_turn(link) && link->in_source != 0 ? G_SOURCE_CONTINUE : G_SOURCE_REMOVE;
}

static void on_rest(gpointer data)
{
    BerthGuestLink *link = data;
    link->rest_source = 0;
    link->busy = TRUE;
    take_messages(link);
    if (end_turn(link) && !link->paused && link->in_source == 0)
        link->in_source = g_unix_fd_add(link->fd, G_IO_IN | G_IO_HUP | G_IO_ERR, on_readable, link);
}

void berth_guest_link_set_paused(BerthGuestLink *link, gboolean paused)
{
    if (link->paused == paused || link->dead)
        return;
    link->paused = paused;
    g_clear_handle_id(&link->rest_source, g_source_remove);
    if (!paused)
        link->rest_source = g_idle_add_once(on_rest, link);
    else if (link->in_source != 0) {
        guint source = link->in_source;
        link->in_source = 0;
        g_source_remove(source);
    }
}

/* --- writing -------------------------------------------------------------------------------- */

/* Writes what the socket takes. A connection that broke is noticed by reading. */
static void write_some(BerthGuestLink *link)
{
    GBytes *first;
    while ((first = g_queue_peek_head(&link->out)) != NULL) {
        gsize length;
        const guint8 *bytes = g_bytes_get_data(first, &length);
        ssize_t sent = send(link->fd, bytes + link->out_written, length - link->out_written,
                            MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0)
            break;
        link->queued -= (gsize)sent;
        link->out_written += (gsize)sent;
        if (link->out_written < length)
            continue;
        g_bytes_unref(g_queue_pop_head(&link->out));
        link->out_written = 0;
    }
}

static void want_to_write(BerthGuestLink *link)
{
    write_some(link);
    if (link->queued > 0 && link->out_source == 0 && !link->dead)
        link->out_source = g_unix_fd_add(link->fd, G_IO_OUT, on_writable, link);
}

static gboolean on_writable(gint fd, GIOCondition condition, gpointer data)
{
    BerthGuestLink *link = data;
    if ((condition & (G_IO_HUP | G_IO_ERR)) != 0) {
        link->out_source = 0;
        return G_SOURCE_REMOVE;
    }
    write_some(link);
    if (link->queued > 0)
        return G_SOURCE_CONTINUE;
    link->out_source = 0;
    link->busy = TRUE;
    link->funcs->drained(link->user_data);
    end_turn(link);
    return G_SOURCE_REMOVE;
}

static void queue(BerthGuestLink *link, GBytes *bytes)
{
    link->queued += g_bytes_get_size(bytes);
    g_queue_push_tail(&link->out, bytes);
}

void berth_guest_link_send(BerthGuestLink *link, const Berth__ToGuest *message)
{
    gsize length = berth__to_guest__get_packed_size(message);
    g_return_if_fail(length <= BERTH_CHANNEL_PAYLOAD_MAX);
    guint8 *frame = g_malloc(BERTH_CHANNEL_HEADER_BYTES + length);
    berth__to_guest__pack(message, frame + BERTH_CHANNEL_HEADER_BYTES);
    berth_channel_header(frame, frame + BERTH_CHANNEL_HEADER_BYTES, length);
    queue(link, g_bytes_new_take(frame, BERTH_CHANNEL_HEADER_BYTES + length));
    want_to_write(link);
}

void berth_guest_link_send_padding(BerthGuestLink *link, gsize bytes)
{
    queue(link, g_bytes_new_take(g_malloc0(bytes), bytes));
    want_to_write(link);
}

gsize berth_guest_link_queued(const BerthGuestLink *link)
{
    return link->queued;
}
