/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "cli/events_since.h"

#include <string.h>

#define NOW_USEC (1772366405 * (gint64)G_USEC_PER_SEC) /* 2026-03-01 12:00:05 UTC */

static void since_is_a_number_a_duration_or_a_time(void **state)
{
    static const struct {
        const char *text;
        guint64 after_seq;
        gint64 before_now_sec; /* 0: it is no time */
    } cases[] = {
        {"0", 0, 0},
        {"1234", 1234, 0},
        {"90s", 0, 90},
        {"2h", 0, 7200},
        {"00:01:00", 0, 60},
        {"2026-03-01 12:00:05", 0, 0},
        {"2026-03-01T12:00:00", 0, 5},
        {"2026-03-01 12:00", 0, 5},
        {"2026-03-01", 0, 12 * 3600 + 5},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        BerthSince since = {0};
        g_autoptr(GError) error = NULL;
        assert_true(berth_since_parse(cases[i].text, NOW_USEC, &since, &error));
        assert_no_error(error);
        assert_int_equal(since.after_seq, cases[i].after_seq);
        gboolean is_time = strpbrk(cases[i].text, "-:hs") != NULL;
        assert_int_equal(since.since_usec,
                         is_time ? NOW_USEC - cases[i].before_now_sec * G_USEC_PER_SEC : 0);
    }
}

static void since_longer_ago_than_there_is_time_is_from_the_first_on(void **state)
{
    BerthSince since = {0};
    assert_true(berth_since_parse("9000w", NOW_USEC, &since, NULL));
    assert_int_equal(since.since_usec, 1);
}

static void since_what_is_no_time_is_refused(void **state)
{
    static const char *const texts[] = {
        "",      "yesterday", "2026-13-01", "2026-03-01 25:00", "2026-03-01x12:00",
        "12:00", "-5",        "1.5",        "\303\244026-03-0", "2026-03-01 12:00:05 "};
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++) {
        BerthSince since = {0};
        g_autoptr(GError) error = NULL;
        if (berth_since_parse(texts[i], NOW_USEC, &since, &error))
            fail_msg("\"%s\" was taken", texts[i]);
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "neither the number of an event");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(since_is_a_number_a_duration_or_a_time),
        cmocka_unit_test(since_longer_ago_than_there_is_time_is_from_the_first_on),
        cmocka_unit_test(since_what_is_no_time_is_refused),
    };
    g_setenv("TZ", "UTC", TRUE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
