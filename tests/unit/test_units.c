/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "common/units.h"

static void parse_uint64_in_range_is_read(void **state)
{
    guint64 value = 0;
    assert_true(berth_parse_uint64("0", 0, 10, &value, NULL));
    assert_int_equal(value, 0);
    assert_true(berth_parse_uint64("18446744073709551615", 0, G_MAXUINT64, &value, NULL));
    assert_true(value == G_MAXUINT64);
}

static void parse_uint64_bad_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      " ",
                                      "-1",
                                      "+1",
                                      "1 ",
                                      " 1",
                                      "0x10",
                                      "1.0",
                                      "4",
                                      "11",
                                      "18446744073709551616",
                                      "99999999999999999999999",
                                      "ten"};
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        guint64 value = 77;
        assert_false(berth_parse_uint64(bad[i], 5, 10, &value, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "is not a number from 5 to 10");
        assert_int_equal(value, 77);
    }
}

static void parse_size_valid_gives_mib(void **state)
{
    static const struct {
        const char *text;
        guint64 mib;
    } cases[] = {
        {"0", 0},
        {"1", 1},
        {"512", 512},
        {"512M", 512},
        {"512MB", 512},
        {"512MiB", 512},
        {"512m", 512},
        {"8G", 8192},
        {"8gib", 8192},
        {"1.5G", 1536},
        {"0.5M", 1},
        {"0.000000001G", 1},
        {"1K", 1},
        {"1024K", 1},
        {"1025K", 2},
        {"2T", 2097152},
        {"1P", 1073741824},
        {"1.25G", 1280},
        {"0.3G", 308},
        {"1.0G", 1024},
        {"0G", 0},
        {"16383P", 16383 * G_GUINT64_CONSTANT(1073741824)},
        {"17592186044415", BERTH_SIZE_MAX_MIB},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        guint64 mib = 77;
        berth_parse_size_mib(cases[i].text, &mib, &error);
        assert_no_error(error);
        if (mib != cases[i].mib)
            fail_msg("%s: %" G_GUINT64_FORMAT, cases[i].text, mib);
    }
}

static void parse_size_bad_is_refused(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "\"\" is not a size"},
        {"G", "is not a size"},
        {"-1G", "is not a size"},
        {"1 G", "is not a size"},
        {"1X", "is not a size"},
        {"1GG", "is not a size"},
        {"1GBB", "is not a size"},
        {"1.G", "is not a size"},
        {".5G", "is not a size"},
        {"1.5.5G", "is not a size"},
        {"1.0000000001G", "is not a size"},
        {"1e3", "is not a size"},
        {"1\nG", "\"1\\x0aG\" is not a size"},
        {"\xff", "is not a size"},
        {"18446744073709551616M", "is not a size"},
        {"17592186044416", "too large"},
        {"16384P", "too large"},
        {"18446744073709551615P", "too large"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        guint64 mib = 77;
        assert_false(berth_parse_size_mib(cases[i].text, &mib, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].message);
        assert_true(g_utf8_validate(error->message, -1, NULL));
        assert_int_equal(mib, 77);
    }
}

static void parse_size_long_text_is_quoted_in_part(void **state)
{
    g_autofree char *text = g_strnfill(1000, 'x');
    g_autoptr(GError) error = NULL;
    guint64 mib;
    assert_false(berth_parse_size_mib(text, &mib, &error));
    assert_true(strlen(error->message) < 250);
}

static void format_size_is_short_and_reads_back(void **state)
{
    static const struct {
        guint64 mib;
        const char *text;
    } cases[] = {{0, "0M"},          {1, "1M"},       {512, "512M"}, {1024, "1G"},
                 {1536, "1.5G"},     {1537, "1537M"}, {8192, "8G"},  {1572864, "1.5T"},
                 {1073741824, "1P"}, {1280, "1280M"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = berth_format_size_mib(cases[i].mib);
        guint64 mib = 0;
        assert_string_equal(text, cases[i].text);
        assert_true(berth_parse_size_mib(text, &mib, NULL));
        assert_true(mib == cases[i].mib);
    }
}

static void parse_duration_valid_gives_seconds(void **state)
{
    static const struct {
        const char *text;
        guint64 sec;
    } cases[] = {
        {"0", 0},
        {"90", 90},
        {"90s", 90},
        {"30m", 1800},
        {"2h", 7200},
        {"1d12h", 129600},
        {"1w", 604800},
        {"1w1d1h1m1s", 694861},
        {"1H30M", 5400},
        {"00:00:01", 1},
        {"01:02:03", 3723},
        {"100:00:00", 360000},
        {"1-00:00:00", 86400},
        {"2-03:04:05", 183845},
        {"9223372036854", BERTH_DURATION_MAX_SEC},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        guint64 sec = 77;
        berth_parse_duration_sec(cases[i].text, &sec, &error);
        assert_no_error(error);
        assert_int_equal(sec, cases[i].sec);
    }
}

static void parse_duration_bad_is_refused(void **state)
{
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"", "is not a duration"},
        {"h", "is not a duration"},
        {"-5", "is not a duration"},
        {"5x", "is not a duration"},
        {"5m5", "is not a duration"},
        {"1h1d", "is not a duration"},
        {"1h1h", "is not a duration"},
        {"1.5h", "is not a duration"},
        {"10:00", "is not a duration"},
        {"00:60:00", "is not a duration"},
        {"00:00:60", "is not a duration"},
        {"1-24:00:00", "is not a duration"},
        {"1-1", "is not a duration"},
        {"-00:00:00", "is not a duration"},
        {"1:2:3:4", "is not a duration"},
        {"99999999999999999999", "is not a duration"},
        {"99999999999999999999d", "is not a duration"},
        {"18446744073709551615w", "is not a duration"},
        {"9223372036855", "too long"},
        {"15250285w", "too long"},
        {"213503982334601-00:00:00", "too long"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        guint64 sec = 77;
        assert_false(berth_parse_duration_sec(cases[i].text, &sec, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].message);
        assert_int_equal(sec, 77);
    }
}

static void format_duration_reads_back(void **state)
{
    static const struct {
        guint64 sec;
        const char *text;
    } cases[] = {{0, "00:00:00"},
                 {59, "00:00:59"},
                 {3723, "01:02:03"},
                 {86399, "23:59:59"},
                 {86400, "1-00:00:00"},
                 {183845, "2-03:04:05"},
                 {BERTH_DURATION_MAX_SEC, "106751991-04:00:54"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = berth_format_duration_sec(cases[i].sec);
        guint64 sec = 0;
        assert_string_equal(text, cases[i].text);
        assert_true(berth_parse_duration_sec(text, &sec, NULL));
        assert_int_equal(sec, cases[i].sec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_uint64_in_range_is_read),
        cmocka_unit_test(parse_uint64_bad_is_refused),
        cmocka_unit_test(parse_size_valid_gives_mib),
        cmocka_unit_test(parse_size_bad_is_refused),
        cmocka_unit_test(parse_size_long_text_is_quoted_in_part),
        cmocka_unit_test(format_size_is_short_and_reads_back),
        cmocka_unit_test(parse_duration_valid_gives_seconds),
        cmocka_unit_test(parse_duration_bad_is_refused),
        cmocka_unit_test(format_duration_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
