/* SPDX-License-Identifier: Apache-2.0 */
/* What a guest wrote through the channel's reader, in pieces as the first byte says. Every payload
 * that it gives out has a correct checksum and bounds, and no byte is counted twice. */
#include "common/channel.h"

#include <glib.h>

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Takes all whole frames; returns the bytes that they took of the stream. */
static uint64_t take_frames(BerthChannelReader *reader)
{
    uint64_t taken = 0;
    size_t length = 0;
    const uint8_t *payload;
    while ((payload = berth_channel_reader_next(reader, &length)) != NULL) {
        uint8_t header[BERTH_CHANNEL_HEADER_BYTES];
        g_assert(length <= BERTH_CHANNEL_PAYLOAD_MAX);
        berth_channel_header(header, payload, length);
        g_assert(memcmp(header, payload - sizeof(header), sizeof(header)) == 0);
        taken += sizeof(header) + length;
    }
    return taken;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    BerthChannelReader *reader = berth_channel_reader_new();
    size_t step = size > 0 ? (size_t)data[0] + 1 : 1, at = 1;
    uint64_t taken = 0;
    while (at < size) {
        size_t room = 0;
        uint8_t *space = berth_channel_reader_space(reader, &room);
        g_assert(room > 0);
        size_t bytes = MIN(MIN(step, room), size - at);
        memcpy(space, data + at, bytes);
        berth_channel_reader_added(reader, bytes);
        at += bytes;
        taken += take_frames(reader);
        g_assert(taken + berth_channel_reader_skipped(reader) <= at - 1);
    }
    berth_channel_reader_free(reader);
    return 0;
}
