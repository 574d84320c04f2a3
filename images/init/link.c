/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the bytes on their way through the channel: received until they are a frame, packed until they
 * are written. It does not know what messages mean. Invariants: no allocation per sent frame; a
 * frame that was begun is written to its end before the next one. */
#include "images/init/link.h"

#include "common/channel.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The kernel copies each write into one piece of memory; when it has no large piece, a page will do. */
#define SMALL_WRITE 4096u

struct Link {
    int fd;
    BerthChannelReader *reader;
    size_t length; /* of the frame to write */
    size_t written;
    uint8_t frame[BERTH_CHANNEL_HEADER_BYTES + BERTH_CHANNEL_PAYLOAD_MAX];
};

/* A ProtobufCBuffer over the payload part of a link's frame. */
typedef struct {
    ProtobufCBuffer base;
    uint8_t *bytes;
    size_t length;
} Payload;

static void append(ProtobufCBuffer *buffer, size_t length, const uint8_t *data)
{
    Payload *payload = (Payload *)buffer;

    memcpy(payload->bytes + payload->length, data, length);
    payload->length += length;
}

Link *link_new(int fd)
{
    Link *link = malloc(sizeof *link);

    if (link == NULL)
        return NULL;
    memset(link, 0, sizeof *link);
    link->fd = fd;
    link->reader = berth_channel_reader_new();
    if (link->reader == NULL) {
        free(link);
        return NULL;
    }
    return link;
}

void link_free(Link *link)
{
    if (link == NULL)
        return;
    berth_channel_reader_free(link->reader);
    free(link);
}

LinkRead link_read(Link *link)
{
    size_t room;
    uint8_t *space = berth_channel_reader_space(link->reader, &room);
    ssize_t got;

    do
        got = read(link->fd, space, room);
    while (got < 0 && errno == EINTR);
    if (got > 0) {
        berth_channel_reader_added(link->reader, (size_t)got);
        return LINK_MORE;
    }
    if (got < 0 && errno == EAGAIN)
        return LINK_EMPTY;
    berth_channel_reader_reset(link->reader);
    return LINK_CLOSED;
}

Berth__ToGuest *link_next(Link *link)
{
    Berth__ToGuest *message = NULL;
    const uint8_t *payload;
    size_t length;

    while (message == NULL && (payload = berth_channel_reader_next(link->reader, &length)) != NULL)
        message = berth__to_guest__unpack(NULL, length, payload);
    return message;
}

bool link_is_idle(const Link *link)
{
    return link->written == link->length;
}

bool link_send(Link *link, const Berth__FromGuest *message)
{
    Payload payload = {.base = {append}, .bytes = link->frame + BERTH_CHANNEL_HEADER_BYTES};

    if (berth__from_guest__get_packed_size(message) > BERTH_CHANNEL_PAYLOAD_MAX)
        return false;
    berth__from_guest__pack_to_buffer(message, &payload.base);
    berth_channel_header(link->frame, payload.bytes, payload.length);
    link->length = BERTH_CHANNEL_HEADER_BYTES + payload.length;
    link->written = 0;
    return true;
}

LinkWrite link_flush(Link *link)
{
    size_t most = SIZE_MAX;

    while (link->written < link->length) {
        size_t left = link->length - link->written;
        ssize_t wrote = write(link->fd, link->frame + link->written, left < most ? left : most);

        if (wrote > 0) {
            link->written += (size_t)wrote;
            continue;
        }
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0 && errno == ENOMEM && most > SMALL_WRITE) {
            most = SMALL_WRITE;
            continue;
        }
        return wrote < 0 && errno == ENOMEM ? LINK_SHORT : LINK_BLOCKED;
    }
    return LINK_WRITTEN;
}
