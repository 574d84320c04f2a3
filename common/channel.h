/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Frames on the channel between an agent and berth-init. Plain C, without GLib: it is linked into
 * the guest's static PID 1 too, and it reads what an untrusted guest wrote.
 *
 * The two ends of a virtio-serial channel do not start together and either end may be cut off
 * in mid-frame (an agent is killed, a guest is restored), so a frame can be found again in a
 * stream that is joined anywhere:
 *
 *     magic "BRT1" | length of the payload, 4 bytes LE | CRC-32C of the payload, 4 bytes LE |
 *     CRC-32C of the 12 bytes before, 4 bytes LE | payload
 *
 * CRC-32C: Castagnoli, as in RFC 3720 B.4. A reader skips bytes until a header checks, and drops
 * a frame whose payload does not. What was lost is sent again by the layer above, which opens a
 * new session (ToGuest.Hello) and continues at acknowledged offsets.
 *
 * After a cut the guest may not notice that another host has connected, and waits for the rest of the
 * old host's frame. A host that gets no State within a second or so after its Hello therefore
 * sends a header's and a largest payload's worth of zero bytes, which end any frame, and Hello again. */

#include <stddef.h>
#include <stdint.h>

#define BERTH_CHANNEL_HEADER_BYTES 16u
#define BERTH_CHANNEL_PAYLOAD_MAX  (512u * 1024u)
/* Of a GuestTask, with what is around it in a ToGuest. */
#define BERTH_CHANNEL_TASK_MAX_BYTES (BERTH_CHANNEL_PAYLOAD_MAX - 64u)
/* Name of the virtio-serial port: /dev/virtio-ports/<name> in the guest. */
#define BERTH_CHANNEL_PORT "org.berth.channel.0"

/* Writes the header for PAYLOAD into HEADER. LENGTH is at most BERTH_CHANNEL_PAYLOAD_MAX. */
void berth_channel_header(uint8_t header[BERTH_CHANNEL_HEADER_BYTES], const uint8_t *payload,
                          size_t length);

/* Finds frames in a byte stream. Memory is bounded by one frame. */
typedef struct BerthChannelReader BerthChannelReader;
BerthChannelReader *berth_channel_reader_new(void); /* NULL when out of memory */
void berth_channel_reader_free(BerthChannelReader *reader);

/* Where to put the next bytes, and how many at most (never 0 while frames are taken out). */
uint8_t *berth_channel_reader_space(BerthChannelReader *reader, size_t *out_room);
void berth_channel_reader_added(BerthChannelReader *reader, size_t bytes);
/* The next whole frame's payload, valid until the next call on READER; NULL: more bytes needed. */
const uint8_t *berth_channel_reader_next(BerthChannelReader *reader, size_t *out_length);
/* Bytes that were skipped because they belonged to no frame, since the reader was made. */
uint64_t berth_channel_reader_skipped(const BerthChannelReader *reader);
/* Forgets a partial frame (the other end has closed). */
void berth_channel_reader_reset(BerthChannelReader *reader);

uint32_t berth_crc32c(uint32_t crc, const void *data, size_t length);
