/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the framing of the channel: headers, checksums, and finding frames in a stream that may
 * start or break anywhere. Does not own what payloads mean, nor any file descriptor.
 *
 * Plain C, also linked into the guest's static PID 1. Invariant of a reader: the bytes from start
 * to end were received and not yet judged; a pointer that next() returned stays valid because
 * bytes only move in space(). */
#include "common/channel.h"

#include <stdlib.h>
#include <string.h>

#define MAGIC       "BRT1"
#define MAGIC_BYTES 4u
#define BUFFER_SIZE (BERTH_CHANNEL_HEADER_BYTES + BERTH_CHANNEL_PAYLOAD_MAX)
/* With less room than this at the end of the buffer, what is in it moves to the front. */
#define ROOM_MIN 4096u

struct BerthChannelReader {
    size_t start;
    size_t end;
    uint64_t skipped;
    uint8_t buffer[BUFFER_SIZE];
};

/* --- CRC-32C: eight bytes at a time by tables (M. Kounavis, F. Berry, "A systematic approach to
 * building high performance software-based CRC generators", ISCC 2005) ------------------------ */

#define CRC32C_POLYNOMIAL 0x82f63b78u /* RFC 3720 B.4, bits reversed */

static uint32_t crc_tables[8][256];

/* Before main(), so that the tables never change under a thread. */
__attribute__((constructor)) static void make_crc_tables(void)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc = byte;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ ((crc & 1) != 0 ? CRC32C_POLYNOMIAL : 0);
        crc_tables[0][byte] = crc;
    }
    for (size_t slice = 1; slice < 8; slice++) {
        for (size_t byte = 0; byte < 256; byte++) {
            uint32_t before = crc_tables[slice - 1][byte];
            crc_tables[slice][byte] = before >> 8 ^ crc_tables[0][before & 0xff];
        }
    }
}

static uint32_t read_le32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
           (uint32_t)bytes[3] << 24;
}

static void write_le32(uint8_t *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

uint32_t berth_crc32c(uint32_t crc, const void *data, size_t length)
{
    const uint8_t *at = data;
    crc = ~crc;
    for (; length >= 8; at += 8, length -= 8) {
        uint32_t low = crc ^ read_le32(at), high = read_le32(at + 4);
        crc = crc_tables[7][low & 0xff] ^ crc_tables[6][low >> 8 & 0xff] ^
              crc_tables[5][low >> 16 & 0xff] ^ crc_tables[4][low >> 24] ^
              crc_tables[3][high & 0xff] ^ crc_tables[2][high >> 8 & 0xff] ^
              crc_tables[1][high >> 16 & 0xff] ^ crc_tables[0][high >> 24];
    }
    for (; length > 0; at++, length--)
        crc = crc >> 8 ^ crc_tables[0][(crc ^ *at) & 0xff];
    return ~crc;
}

/* --- headers ------------------------------------------------------------------------------- */

void berth_channel_header(uint8_t header[BERTH_CHANNEL_HEADER_BYTES], const uint8_t *payload,
                          size_t length)
{
    memcpy(header, MAGIC, MAGIC_BYTES);
    write_le32(header + 4, (uint32_t)length);
    write_le32(header + 8, berth_crc32c(0, payload, length));
    write_le32(header + 12, berth_crc32c(0, header, 12));
}

static int header_is_valid(const uint8_t *header)
{
    return memcmp(header, MAGIC, MAGIC_BYTES) == 0 &&
           read_le32(header + 4) <= BERTH_CHANNEL_PAYLOAD_MAX &&
           read_le32(header + 12) == berth_crc32c(0, header, 12);
}

/* --- reader -------------------------------------------------------------------------------- */

BerthChannelReader *berth_channel_reader_new(void)
{
    BerthChannelReader *reader = malloc(sizeof(*reader));
    if (reader != NULL) {
        reader->skipped = 0;
        berth_channel_reader_reset(reader);
    }
    return reader;
}

void berth_channel_reader_free(BerthChannelReader *reader)
{
    free(reader);
}

void berth_channel_reader_reset(BerthChannelReader *reader)
{
    reader->start = reader->end = 0;
}

uint64_t berth_channel_reader_skipped(const BerthChannelReader *reader)
{
    return reader->skipped;
}

uint8_t *berth_channel_reader_space(BerthChannelReader *reader, size_t *out_room)
{
    if (reader->start == reader->end) {
        reader->start = reader->end = 0;
    } else if (BUFFER_SIZE - reader->end < ROOM_MIN && reader->start > 0) {
        memmove(reader->buffer, reader->buffer + reader->start, reader->end - reader->start);
        reader->end -= reader->start;
        reader->start = 0;
    }
    *out_room = BUFFER_SIZE - reader->end;
    return reader->buffer + reader->end;
}

void berth_channel_reader_added(BerthChannelReader *reader, size_t bytes)
{
    reader->end += bytes;
}

static void skip(BerthChannelReader *reader, size_t bytes)
{
    reader->start += bytes;
    reader->skipped += bytes;
}

/* Moves to the next place that may be a header. Returns the bytes there. */
static size_t skip_to_magic(BerthChannelReader *reader)
{
    size_t length = reader->end - reader->start;
    const uint8_t *start = reader->buffer + reader->start;
    const uint8_t *found = length > 0 ? memchr(start, MAGIC[0], length) : NULL;
    skip(reader, found != NULL ? (size_t)(found - start) : length);
    return reader->end - reader->start;
}

const uint8_t *berth_channel_reader_next(BerthChannelReader *reader, size_t *out_length)
{
    for (;;) {
        size_t length = skip_to_magic(reader);
        const uint8_t *header = reader->buffer + reader->start;
        /* What cannot become a magic is skipped before a whole header is there. */
        if (length > 0 && memcmp(header, MAGIC, length < MAGIC_BYTES ? length : MAGIC_BYTES) != 0) {
            skip(reader, 1);
            continue;
        }
        if (length < BERTH_CHANNEL_HEADER_BYTES)
            return NULL;
        if (!header_is_valid(header)) {
            skip(reader, 1);
            continue;
        }
        size_t payload_length = read_le32(header + 4);
        const uint8_t *payload = header + BERTH_CHANNEL_HEADER_BYTES;
        if (length - BERTH_CHANNEL_HEADER_BYTES < payload_length)
            return NULL;
        if (read_le32(header + 8) != berth_crc32c(0, payload, payload_length)) {
            /* Cut off in the middle: the next frame may begin inside. */
            skip(reader, BERTH_CHANNEL_HEADER_BYTES);
            continue;
        }
        reader->start += BERTH_CHANNEL_HEADER_BYTES + payload_length;
        *out_length = payload_length;
        return payload;
    }
}
