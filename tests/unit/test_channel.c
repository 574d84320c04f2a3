/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "common/channel.h"

/* RFC 3720 B.4. */
static void crc32c_rfc_vectors_match(void **state)
{
    uint8_t bytes[32];
    memset(bytes, 0, sizeof(bytes));
    assert_int_equal(berth_crc32c(0, bytes, sizeof(bytes)), 0x8a9136aa);
    memset(bytes, 0xff, sizeof(bytes));
    assert_int_equal(berth_crc32c(0, bytes, sizeof(bytes)), 0x62a8ab43);
    for (uint8_t i = 0; i < 32; i++)
        bytes[i] = i;
    assert_int_equal(berth_crc32c(0, bytes, sizeof(bytes)), 0x46dd794e);
    for (uint8_t i = 0; i < 32; i++)
        bytes[i] = (uint8_t)(31 - i);
    assert_int_equal(berth_crc32c(0, bytes, sizeof(bytes)), 0x113fdb5c);
    static const uint8_t read_10[48] = {0x01, 0xc0, 0, 0,    0,    0, 0, 0,    0,    0, 0,    0,
                                        0,    0,    0, 0,    0x14, 0, 0, 0,    0,    0, 0x04, 0,
                                        0,    0,    0, 0x14, 0,    0, 0, 0x18, 0x28, 0, 0,    0,
                                        0,    0,    0, 0,    0x02, 0, 0, 0,    0,    0, 0,    0};
    assert_int_equal(berth_crc32c(0, read_10, sizeof(read_10)), 0xd9963a56);
    assert_int_equal(berth_crc32c(0, "123456789", 9), 0xe3069283);
}

static void crc32c_in_parts_is_that_of_the_whole(void **state)
{
    uint8_t bytes[67];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 37);
    uint32_t whole = berth_crc32c(0, bytes, sizeof(bytes));
    for (size_t split = 0; split <= sizeof(bytes); split++) {
        uint32_t crc = berth_crc32c(0, bytes, split);
        assert_int_equal(berth_crc32c(crc, bytes + split, sizeof(bytes) - split), whole);
    }
}

static void append_frame(GByteArray *stream, const void *payload, size_t length)
{
    uint8_t header[BERTH_CHANNEL_HEADER_BYTES];
    berth_channel_header(header, payload, length);
    g_byte_array_append(stream, header, sizeof(header));
    g_byte_array_append(stream, payload, (guint)length);
}

/* Feeds LENGTH bytes in pieces of STEP and appends each payload with a '|' to OUT. */
static void feed(BerthChannelReader *reader, const uint8_t *bytes, size_t length, size_t step,
                 GString *out)
{
    while (length > 0) {
        size_t room = 0, piece_length = 0;
        uint8_t *space = berth_channel_reader_space(reader, &room);
        assert_true(room > 0);
        size_t bytes_now = MIN(MIN(step, room), length);
        memcpy(space, bytes, bytes_now);
        berth_channel_reader_added(reader, bytes_now);
        bytes += bytes_now;
        length -= bytes_now;
        const uint8_t *piece;
        while ((piece = berth_channel_reader_next(reader, &piece_length)) != NULL) {
            g_string_append_len(out, (const char *)piece, (gssize)piece_length);
            g_string_append_c(out, '|');
        }
    }
}

static void reader_any_split_gives_all_frames(void **state)
{
    g_autoptr(GByteArray) stream = g_byte_array_new();
    append_frame(stream, "one", 3);
    append_frame(stream, "", 0);
    append_frame(stream, "BRT1 inside", 11);
    for (size_t step = 1; step <= stream->len; step++) {
        BerthChannelReader *reader = berth_channel_reader_new();
        g_autoptr(GString) out = g_string_new(NULL);
        feed(reader, stream->data, stream->len, step, out);
        assert_string_equal(out->str, "one||BRT1 inside|");
        assert_int_equal(berth_channel_reader_skipped(reader), 0);
        berth_channel_reader_free(reader);
    }
}

static void reader_joined_anywhere_finds_the_next_frame(void **state)
{
    g_autoptr(GByteArray) stream = g_byte_array_new();
    append_frame(stream, "lost", 4);
    size_t first = stream->len;
    append_frame(stream, "found", 5);
    for (size_t from = 1; from <= first; from++) {
        BerthChannelReader *reader = berth_channel_reader_new();
        g_autoptr(GString) out = g_string_new(NULL);
        feed(reader, stream->data + from, stream->len - from, 7, out);
        assert_string_equal(out->str, "found|");
        assert_int_equal(berth_channel_reader_skipped(reader), first - from);
        berth_channel_reader_free(reader);
    }
}

static void reader_frame_cut_off_anywhere_does_not_hide_the_next(void **state)
{
    g_autoptr(GByteArray) frame = g_byte_array_new();
    append_frame(frame, "cut off in the middle", 21);
    for (size_t kept = 0; kept < frame->len; kept++) {
        g_autoptr(GByteArray) stream = g_byte_array_new();
        g_byte_array_append(stream, frame->data, (guint)kept);
        append_frame(stream, "first", 5);
        append_frame(stream, "second", 6);
        BerthChannelReader *reader = berth_channel_reader_new();
        g_autoptr(GString) out = g_string_new(NULL);
        feed(reader, stream->data, stream->len, 5, out);
        assert_string_equal(out->str, "first|second|");
        berth_channel_reader_free(reader);
    }
}

static void reader_any_flipped_bit_drops_only_that_frame(void **state)
{
    g_autoptr(GByteArray) frame = g_byte_array_new();
    append_frame(frame, "payload", 7);
    for (size_t bit = 0; bit < frame->len * 8; bit++) {
        g_autoptr(GByteArray) stream = g_byte_array_new();
        g_byte_array_append(stream, frame->data, frame->len);
        stream->data[bit / 8] ^= (uint8_t)(1 << bit % 8);
        append_frame(stream, "next", 4);
        BerthChannelReader *reader = berth_channel_reader_new();
        g_autoptr(GString) out = g_string_new(NULL);
        feed(reader, stream->data, stream->len, 9, out);
        assert_string_equal(out->str, "next|");
        assert_int_equal(berth_channel_reader_skipped(reader), frame->len);
        berth_channel_reader_free(reader);
    }
}

static void reader_oversized_length_is_skipped(void **state)
{
    uint8_t header[BERTH_CHANNEL_HEADER_BYTES];
    g_autofree uint8_t *payload = g_malloc0(BERTH_CHANNEL_PAYLOAD_MAX + 1);
    berth_channel_header(header, payload, BERTH_CHANNEL_PAYLOAD_MAX + 1);
    g_autoptr(GByteArray) stream = g_byte_array_new();
    g_byte_array_append(stream, header, sizeof(header));
    append_frame(stream, "after", 5);
    BerthChannelReader *reader = berth_channel_reader_new();
    g_autoptr(GString) out = g_string_new(NULL);
    feed(reader, stream->data, stream->len, stream->len, out);
    assert_string_equal(out->str, "after|");
    assert_int_equal(berth_channel_reader_skipped(reader), sizeof(header));
    berth_channel_reader_free(reader);
}

static void reader_largest_frames_pass_in_bounded_memory(void **state)
{
    g_autofree uint8_t *payload = g_malloc(BERTH_CHANNEL_PAYLOAD_MAX);
    memset(payload, 'B', BERTH_CHANNEL_PAYLOAD_MAX);
    g_autoptr(GByteArray) stream = g_byte_array_new();
    append_frame(stream, "x", 1);
    append_frame(stream, payload, BERTH_CHANNEL_PAYLOAD_MAX);
    append_frame(stream, payload, BERTH_CHANNEL_PAYLOAD_MAX);
    append_frame(stream, "y", 1);
    BerthChannelReader *reader = berth_channel_reader_new();
    g_autoptr(GString) out = g_string_new(NULL);
    feed(reader, stream->data, stream->len, 65536, out);
    assert_int_equal(out->len, 2 * BERTH_CHANNEL_PAYLOAD_MAX + 6);
    assert_int_equal(berth_channel_reader_skipped(reader), 0);
    berth_channel_reader_free(reader);
}

static void reader_endless_junk_keeps_room(void **state)
{
    BerthChannelReader *reader = berth_channel_reader_new();
    g_autoptr(GString) out = g_string_new(NULL);
    g_autofree uint8_t *junk = g_malloc(100000);
    for (size_t i = 0; i < 100000; i++)
        junk[i] = (uint8_t) "BRT1xBRBR"[i % 9];
    for (int round = 0; round < 30; round++)
        feed(reader, junk, 100000, 30000, out);
    assert_int_equal(out->len, 0);
    assert_true(berth_channel_reader_skipped(reader) > 2990000);
    berth_channel_reader_free(reader);
}

static void reader_reset_forgets_the_partial_frame(void **state)
{
    g_autoptr(GByteArray) stream = g_byte_array_new();
    append_frame(stream, "partial", 7);
    BerthChannelReader *reader = berth_channel_reader_new();
    g_autoptr(GString) out = g_string_new(NULL);
    feed(reader, stream->data, stream->len - 3, 100, out);
    berth_channel_reader_reset(reader);
    feed(reader, stream->data, stream->len, 100, out);
    assert_string_equal(out->str, "partial|");
    berth_channel_reader_free(reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc32c_rfc_vectors_match),
        cmocka_unit_test(crc32c_in_parts_is_that_of_the_whole),
        cmocka_unit_test(reader_any_split_gives_all_frames),
        cmocka_unit_test(reader_joined_anywhere_finds_the_next_frame),
        cmocka_unit_test(reader_frame_cut_off_anywhere_does_not_hide_the_next),
        cmocka_unit_test(reader_any_flipped_bit_drops_only_that_frame),
        cmocka_unit_test(reader_oversized_length_is_skipped),
        cmocka_unit_test(reader_largest_frames_pass_in_bounded_memory),
        cmocka_unit_test(reader_endless_junk_keeps_room),
        cmocka_unit_test(reader_reset_forgets_the_partial_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
