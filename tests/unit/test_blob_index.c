/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "common/channel.h"
#include "storage/blob_index.h"
#include "storage/storage.h"

static void crc32c_of_known_data_is_the_published_value(void **state)
{
    guint8 zeroes[32] = {0}, ones[32], counting[32];
    memset(ones, 0xff, sizeof ones);
    for (guint i = 0; i < sizeof counting; i++)
        counting[i] = (guint8)i;
    /* RFC 3720, appendix B.4, and the check value of the catalogue of CRC algorithms */
    assert_int_equal(berth_crc32c(0, zeroes, 32), 0x8a9136aa);
    assert_int_equal(berth_crc32c(0, ones, 32), 0x62a8ab43);
    assert_int_equal(berth_crc32c(0, counting, 32), 0x46dd794e);
    assert_int_equal(berth_crc32c(0, (const guint8 *)"123456789", 9), 0xe3069283);
    assert_int_equal(berth_crc32c(0, NULL, 0), 0);
}

static void crc32c_in_pieces_equals_crc32c_of_the_whole(void **state)
{
    const guint8 *data = (const guint8 *)"123456789";
    for (gsize cut = 0; cut <= 9; cut++)
        assert_int_equal(berth_crc32c(berth_crc32c(0, data, cut), data + cut, 9 - cut), 0xe3069283);
}

static void sums_of_pieces_verify_block_by_block(void **state)
{
    const gsize length = 2 * BERTH_BLOB_BLOCK_BYTES + 10;
    g_autofree guint8 *data = g_malloc(length);
    for (gsize i = 0; i < length; i++)
        data[i] = (guint8)(i * 7 + i / 256);
    g_autoptr(BerthBlobSums) sums = berth_blob_sums_new();
    for (gsize done = 0; done < length; done += 1000)
        berth_blob_sums_append(sums, data + done, MIN(length - done, 1000));
    BerthBlobHeader header = {.size_bytes = length, .upload_id = 77}, parsed;
    g_autoptr(GBytes) index = berth_blob_sums_finish(sums, &header);
    gsize index_length = 0;
    const guint8 *bytes = g_bytes_get_data(index, &index_length);
    assert_int_equal(index_length, BERTH_BLOB_INDEX_HEADER_BYTES + 3 * BERTH_BLOB_SUM_BYTES);
    assert_true(berth_blob_header_parse(bytes, index_length, &parsed));
    assert_int_equal(parsed.size_bytes, length);
    assert_int_equal(parsed.upload_id, 77);

    gsize bad = 99;
    const guint8 *stored = bytes + BERTH_BLOB_INDEX_HEADER_BYTES;
    assert_true(berth_blob_sums_verify(data, length, stored, 12, &bad));
    assert_true(berth_blob_sums_verify(data + BERTH_BLOB_BLOCK_BYTES,
                                       length - BERTH_BLOB_BLOCK_BYTES, stored + 4, 8, &bad));
    assert_false(berth_blob_sums_verify(data, length, stored, 11, &bad)); /* a sum is missing */
    assert_int_equal(bad, 2);
    data[BERTH_BLOB_BLOCK_BYTES] ^= 1;
    assert_false(berth_blob_sums_verify(data, length, stored, 12, &bad));
    assert_int_equal(bad, 1);
}

static void header_parse_of_damaged_header_fails(void **state)
{
    g_autoptr(BerthBlobSums) sums = berth_blob_sums_new();
    BerthBlobHeader header = {.size_bytes = 0}, parsed;
    g_autoptr(GBytes) index = berth_blob_sums_finish(sums, &header);
    gsize length = 0;
    const guint8 *bytes = g_bytes_get_data(index, &length);
    assert_int_equal(length, BERTH_BLOB_INDEX_HEADER_BYTES);
    for (gsize byte = 0; byte < length; byte++) {
        guint8 damaged[BERTH_BLOB_INDEX_HEADER_BYTES];
        memcpy(damaged, bytes, length);
        damaged[byte] ^= 0x10;
        assert_false(berth_blob_header_parse(damaged, length, &parsed));
        assert_false(berth_blob_header_parse(bytes, byte, &parsed));
    }
}

static void digest_equal_compares_every_byte(void **state)
{
    guint8 digest[BERTH_SHA256_BYTES], other[BERTH_SHA256_BYTES];
    memset(digest, 0x5a, sizeof digest);
    memcpy(other, digest, sizeof other);
    assert_true(berth_digest_equal(digest, other));
    assert_int_equal(berth_digest_hash(digest), berth_digest_hash(other));
    for (guint i = 0; i < sizeof other; i++) {
        other[i] ^= 1;
        assert_false(berth_digest_equal(digest, other));
        other[i] ^= 1;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc32c_of_known_data_is_the_published_value),
        cmocka_unit_test(crc32c_in_pieces_equals_crc32c_of_the_whole),
        cmocka_unit_test(sums_of_pieces_verify_block_by_block),
        cmocka_unit_test(header_parse_of_damaged_header_fails),
        cmocka_unit_test(digest_equal_compares_every_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
