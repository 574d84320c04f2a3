/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "images/init/ring.h"

#include <glib.h>

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Ring, ring_free)

/* Byte I of the stream. */
static uint8_t stream_byte(uint64_t i)
{
    return (uint8_t)(i * 31 + i / 251);
}

/* Writes up to BYTES into the free space, as a read from a pipe would. */
static size_t fill(Ring *ring, size_t bytes)
{
    struct iovec space[2];
    int pieces = ring_space(ring, space);
    uint64_t at = ring_end(ring);
    size_t done = 0;

    for (int piece = 0; piece < pieces; piece++)
        for (size_t i = 0; i < space[piece].iov_len && done < bytes; i++)
            ((uint8_t *)space[piece].iov_base)[i] = stream_byte(at + done++);
    ring_added(ring, done);
    return done;
}

/* Sends up to MAX bytes, which must be those of the stream; returns how many. */
static size_t take(Ring *ring, size_t max)
{
    uint64_t offset;
    size_t length;
    const uint8_t *bytes = ring_peek(ring, max, &offset, &length);

    if (bytes == NULL)
        return 0;
    assert_in_range(length, 1, max);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(bytes[i], stream_byte(offset + i));
    ring_sent(ring, length);
    return length;
}

static void ring_when_full_has_no_space(void **state)
{
    g_autoptr(Ring) ring = ring_new(10);
    struct iovec space[2];

    assert_int_equal(ring_room(ring), 10);
    assert_int_equal(fill(ring, 100), 10);
    assert_int_equal(ring_room(ring), 0);
    assert_int_equal(ring_space(ring, space), 0);
    assert_int_equal(take(ring, 100), 10);
    assert_int_equal(ring_room(ring), 0); /* sent is not acknowledged */
    assert_true(ring_ack(ring, 4));
    assert_int_equal(ring_room(ring), 4);
    assert_int_equal(fill(ring, 100), 4);
    assert_int_equal(ring_end(ring), 14);
}

static void ring_rewind_sends_what_is_not_acknowledged_again(void **state)
{
    g_autoptr(Ring) ring = ring_new(16);
    uint64_t offset;
    size_t length;

    fill(ring, 12);
    take(ring, 8);
    assert_true(ring_ack(ring, 3));
    ring_rewind(ring);
    assert_non_null(ring_peek(ring, 100, &offset, &length));
    assert_int_equal(offset, 3);
    assert_int_equal(length, 9);
}

static void ring_ack_cases(void **state)
{
    /* In a ring with 12 bytes of which 8 were sent and 4 acknowledged. */
    static const struct {
        uint64_t offset;
        bool accepted;
        uint64_t acked;
        uint64_t next;
    } cases[] = {
        {4, true, 4, 8},    /* again */
        {0, true, 4, 8},    /* older */
        {6, true, 6, 8},    /* in between */
        {8, true, 8, 8},    /* all that was sent */
        {10, true, 10, 10}, /* known from an earlier session: not to be sent again */
        {13, false, 4, 8},  /* beyond the end */
        {UINT64_MAX, false, 4, 8},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Ring) ring = ring_new(16);
        uint64_t offset;
        size_t length;

        fill(ring, 12);
        take(ring, 8);
        ring_ack(ring, 4);
        assert_int_equal(ring_ack(ring, cases[i].offset), cases[i].accepted);
        assert_int_equal(ring_acked(ring), cases[i].acked);
        assert_non_null(ring_peek(ring, 100, &offset, &length));
        assert_int_equal(offset, cases[i].next);
    }
}

static void ring_is_empty_only_when_all_is_acknowledged(void **state)
{
    g_autoptr(Ring) ring = ring_new(8);

    assert_true(ring_is_empty(ring));
    fill(ring, 5);
    take(ring, 5);
    assert_false(ring_is_empty(ring));
    ring_ack(ring, 5);
    assert_true(ring_is_empty(ring));
}

/* Random fills, sends, acknowledgements and new sessions: every byte that is sent is the stream's, and
 * the host never sees a gap. */
static void ring_under_random_use_keeps_the_stream(void **state)
{
    guint32 seed = g_random_int();
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    g_autoptr(Ring) ring = ring_new(97);
    uint64_t host = 0; /* has everything before */

    print_message("seed %u\n", seed);
    for (guint step = 0; step < 100000; step++) {
        uint64_t offset;
        size_t length;

        switch (g_rand_int_range(random, 0, 8)) {
        case 0:
        case 1:
        case 2:
            fill(ring, (size_t)g_rand_int_range(random, 0, 60));
            break;
        case 3:
        case 4:
        case 5:
            if (ring_peek(ring, 40, &offset, &length) != NULL) {
                assert_true(offset <= host);
                host = MAX(host, offset + length);
                take(ring, 40);
            }
            break;
        case 6:
            assert_true(ring_ack(ring, host));
            break;
        case 7:
            ring_rewind(ring);
            break;
        }
        assert_true(ring_acked(ring) <= host && host <= ring_end(ring));
        assert_int_equal(ring_room(ring), 97 - (ring_end(ring) - ring_acked(ring)));
    }
    assert_true(host > 97 * 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ring_when_full_has_no_space),
        cmocka_unit_test(ring_rewind_sends_what_is_not_acknowledged_again),
        cmocka_unit_test(ring_ack_cases),
        cmocka_unit_test(ring_is_empty_only_when_all_is_acknowledged),
        cmocka_unit_test(ring_under_random_use_keeps_the_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
