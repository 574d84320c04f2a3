/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "common/log.h"

#include <gio/gio.h>

static void format_has_time_component_and_level(void **state)
{
    g_autofree char *line =
        berth_log_format(1795214467123456, "berthd", BERTH_LOG_WARNING, "it broke");
    assert_string_equal(line, "2026-11-20T22:41:07.123Z berthd warning: it broke");
}

static void format_keeps_a_line_a_line(void **state)
{
    g_autofree char *line = berth_log_format(0, "x", BERTH_LOG_ERROR, "a\nb\rc\033[1m \xc3\xa4");
    assert_string_equal(line, "1970-01-01T00:00:00.000Z x error: a b c [1m \xc3\xa4");
    g_autofree char *broken = berth_log_format(0, "x", BERTH_LOG_DEBUG, "a\xff\n");
    assert_string_equal(broken, "1970-01-01T00:00:00.000Z x debug: a\\377\\n");
}

static void limit_lets_a_burst_pass_and_counts_the_rest(void **state)
{
    static BerthLogLimit limit;
    guint64 suppressed = 77;
    gint64 now = 1000;
    for (guint i = 0; i < BERTH_LOG_LIMIT_BURST; i++) {
        assert_true(berth_log_limit_pass(&limit, now, &suppressed));
        assert_int_equal(suppressed, 0);
    }
    for (int i = 0; i < 7; i++)
        assert_false(berth_log_limit_pass(&limit, now + i, &suppressed));
    assert_false(berth_log_limit_pass(&limit, now + 60 * G_USEC_PER_SEC - 1, &suppressed));
    assert_true(berth_log_limit_pass(&limit, now + 60 * G_USEC_PER_SEC, &suppressed));
    assert_int_equal(suppressed, 8);
    assert_true(berth_log_limit_pass(&limit, now + 60 * G_USEC_PER_SEC, &suppressed));
    assert_int_equal(suppressed, 0);
}

/* --- a process that logs, and what comes out of its stderr ----------------------------------- */

static void log_some(void)
{
    static BerthLogLimit limit;
    berth_log_init("testd", BERTH_LOG_INFO);
    g_critical("one");
    g_warning("two");
    g_message("three");
    g_info("four");
    g_debug("five");
    berth_log_set_level(BERTH_LOG_DEBUG);
    g_debug("six");
    berth_log_set_level(BERTH_LOG_WARNING);
    g_message("seven");
    for (int i = 0; i < 9; i++)
        berth_log_warning_limited(&limit, "again %d", i);
    limit.in_window = 0; /* as after a minute */
    berth_log_warning_limited(&limit, "later");
}

/* Runs this program again as "test_log log"; (transfer full) its stderr. */
static char *run_logger(const char *journal_stream)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDERR_PIPE);
    g_subprocess_launcher_unsetenv(launcher, "G_DEBUG");
    g_subprocess_launcher_unsetenv(launcher, "JOURNAL_STREAM");
    if (journal_stream != NULL)
        g_subprocess_launcher_setenv(launcher, "JOURNAL_STREAM", journal_stream, TRUE);
    g_autoptr(GSubprocess) child = g_subprocess_launcher_spawn(launcher, NULL, self, "log", NULL);
    char *text = NULL;
    assert_non_null(child);
    assert_true(g_subprocess_communicate_utf8(child, NULL, NULL, NULL, &text, NULL));
    return text;
}

static void logging_goes_to_stderr_from_its_level_on(void **state)
{
    static const char *const expected[] = {"error: one",
                                           "warning: two",
                                           "notice: three",
                                           "info: four",
                                           "debug: six",
                                           "warning: again 0",
                                           "warning: again 1",
                                           "warning: again 2",
                                           "warning: again 3",
                                           "warning: again 4",
                                           "warning: later (4 more like it were not logged)",
                                           "",
                                           NULL};
    g_autofree char *text = run_logger(NULL);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    assert_int_equal(g_strv_length(lines), g_strv_length((char **)expected));
    for (guint i = 0; expected[i] != NULL; i++) {
        assert_true(g_str_has_suffix(lines[i], expected[i]));
        assert_true(i == 11 || strstr(lines[i], "Z testd ") != NULL);
    }
}

static void logging_with_another_stream_named_goes_to_stderr(void **state)
{
    g_autofree char *text = run_logger("1:1");
    assert_non_null(strstr(text, "error: one"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(format_has_time_component_and_level),
        cmocka_unit_test(format_keeps_a_line_a_line),
        cmocka_unit_test(limit_lets_a_burst_pass_and_counts_the_rest),
        cmocka_unit_test(logging_goes_to_stderr_from_its_level_on),
        cmocka_unit_test(logging_with_another_stream_named_goes_to_stderr),
    };
    if (argc > 1) {
        log_some();
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
