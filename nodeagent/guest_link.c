/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the socket to one guest's channel: bytes become messages, messages bytes. A guest is not
 * trusted: it costs one read and one frame at a time, however much it sends, so that others get
 * their turn. While a callback runs (`busy`), freeing only marks the link. */
#include <config.h>

#include "nodeagent/guest_link.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/channel.h"
#include "common/message.h"
#include "common/rpc_poll.h"

/* Until what the host had no memory for is tried again. */
#define RETRY_MSEC 100u

struct BerthGuestLink {
    int fd;
    const BerthGuestLinkFuncs *funcs;
    gpointer user_data;
    BerthChannelReader *reader;
    guint64 skipped; /* of the reader, as it was last told */
    BerthRpcPoll *poll;
    BerthRpcWatch watch;
    gboolean waits_in, waits_out; /* for the socket */
    guint rest_source;            /* messages that were read before a pause */
    guint retry_source;           /* what the host had no memory for is written again */
    GQueue out;                   /* GBytes */
    gsize out_written;            /* of the first */
    gsize queued;
    gboolean is_open; /* the socket is watched */
    gboolean paused;
    gboolean busy;
    gboolean dead;
};

static void on_readable(gpointer data);
static void on_writable(gpointer data);
static void on_retry(gpointer data);

static void wait_in(BerthGuestLink *link)
{
    if (link->waits_in || !link->is_open)
        return;
    link->waits_in = TRUE;
    berth_rpc_watch_wait(&link->watch, &link->watch.in, FALSE, on_readable, link);
}

static void wait_out(BerthGuestLink *link)
{
    if (link->waits_out || !link->is_open)
        return;
    link->waits_out = TRUE;
    berth_rpc_watch_wait(&link->watch, &link->watch.out, FALSE, on_writable, link);
}

static void stop(BerthGuestLink *link)
{
    if (link->is_open)
        berth_rpc_watch_end(&link->watch);
    link->is_open = link->waits_in = link->waits_out = FALSE;
    g_clear_handle_id(&link->rest_source, g_source_remove);
    g_clear_handle_id(&link->retry_source, g_source_remove);
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
    link->poll = berth_rpc_poll_ref(g_main_context_default());
    link->is_open = TRUE;
    berth_rpc_watch_start(&link->watch, link->poll, fd);
    wait_in(link);
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
    berth_rpc_poll_unref(link->poll);
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

/* Nothing is read while it is paused: the guest is to wait. */
static void on_readable(gpointer data)
{
    BerthGuestLink *link = data;
    link->waits_in = FALSE;
    if (link->paused)
        return;
    size_t room;
    uint8_t *space = berth_channel_reader_space(link->reader, &room);
    ssize_t got = recv(link->fd, space, room, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        wait_in(link);
        return;
    }
    link->busy = TRUE;
    if (got > 0) {
        berth_channel_reader_added(link->reader, (size_t)got);
        take_messages(link);
    } else {
        stop(link);
        link->funcs->closed(link->user_data);
    }
    if (end_turn(link) && !link->paused)
        wait_in(link);
}

static void on_rest(gpointer data)
{
    BerthGuestLink *link = data;
    link->rest_source = 0;
    link->busy = TRUE;
    take_messages(link);
    if (end_turn(link) && !link->paused)
        wait_in(link);
}

void berth_guest_link_set_paused(BerthGuestLink *link, gboolean paused)
{
    if (link->paused == paused || link->dead)
        return;
    link->paused = paused;
    g_clear_handle_id(&link->rest_source, g_source_remove);
    if (!paused)
        link->rest_source = g_idle_add_once(on_rest, link);
}

/* --- writing -------------------------------------------------------------------------------- */

typedef enum {
    WRITTEN_ALL,
    WRITE_BLOCKED, /* the socket takes no more now */
    WRITE_FAILED,  /* which may pass: the host lacks memory */
    WRITE_BROKEN,  /* the other end is gone, which is noticed by reading */
} WriteResult;

static WriteResult result_of(int err)
{
    switch (err) {
    case EAGAIN:
    case EINTR:
        return WRITE_BLOCKED;
    case EPIPE:
    case ECONNRESET:
        return WRITE_BROKEN;
    default:
        return WRITE_FAILED;
    }
}

/* Writes what the socket takes. */
static WriteResult write_some(BerthGuestLink *link)
{
    GBytes *first;
    while ((first = g_queue_peek_head(&link->out)) != NULL) {
        gsize length;
        const guint8 *bytes = g_bytes_get_data(first, &length);
        ssize_t sent = send(link->fd, bytes + link->out_written, length - link->out_written,
                            MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0)
            return result_of(errno);
        link->queued -= (gsize)sent;
        link->out_written += (gsize)sent;
        if (link->out_written < length)
            continue;
        g_bytes_unref(g_queue_pop_head(&link->out));
        link->out_written = 0;
    }
    return WRITTEN_ALL;
}

static void wait_to_write(BerthGuestLink *link, WriteResult result)
{
    if (result == WRITE_BLOCKED)
        wait_out(link);
    else if (result == WRITE_FAILED && link->is_open && link->retry_source == 0)
        link->retry_source = g_timeout_add_once(RETRY_MSEC, on_retry, link);
}

/* What waited is written, as far as may be. */
static void write_on(BerthGuestLink *link)
{
    WriteResult result = write_some(link);
    wait_to_write(link, result);
    if (result != WRITTEN_ALL)
        return;
    link->busy = TRUE;
    link->funcs->drained(link->user_data);
    end_turn(link);
}

static void on_writable(gpointer data)
{
    BerthGuestLink *link = data;
    link->waits_out = FALSE;
    write_on(link);
}

static void on_retry(gpointer data)
{
    BerthGuestLink *link = data;
    link->retry_source = 0;
    write_on(link);
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
    wait_to_write(link, write_some(link));
}

void berth_guest_link_send_padding(BerthGuestLink *link, gsize bytes)
{
    queue(link, g_bytes_new_take(g_malloc0(bytes), bytes));
    wait_to_write(link, write_some(link));
}

gsize berth_guest_link_queued(const BerthGuestLink *link)
{
    return link->queued;
}
