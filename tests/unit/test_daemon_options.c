/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "common/daemon_options.h"

#define MAX_ARGUMENTS 4

static gboolean is_own_given;
static const GOptionEntry own[] = {
    {"own", 0, 0, G_OPTION_ARG_NONE, &is_own_given, "One of its own", NULL},
    {NULL},
};
static const BerthDaemonProgram program = {"testd", "daemon of tests", "testd(8)",
                                           "/etc/testd.conf", own};

static BerthDaemonOptions *parse(const char *const arguments[MAX_ARGUMENTS], GError **error)
{
    /* What is parsed moves within the array; the strings are not its own. */
    char *argv[MAX_ARGUMENTS + 2] = {(char *)"testd"};
    char **left = argv;
    int argc = 1;
    for (guint i = 0; i < MAX_ARGUMENTS && arguments[i] != NULL; i++)
        argv[argc++] = (char *)arguments[i];
    return berth_daemon_options_parse(&program, &argc, &left, error);
}

static void parse_takes_what_is_given(void **state)
{
    static const struct {
        const char *arguments[MAX_ARGUMENTS];
        const char *config_path;
        gboolean check_config, version;
    } cases[] = {
        {{NULL}, "/etc/testd.conf", FALSE, FALSE},
        {{"--config", "/a"}, "/a", FALSE, FALSE},
        {{"--config=/a", "--check-config"}, "/a", TRUE, FALSE},
        {{"-c", "/a"}, "/a", FALSE, FALSE},
        {{"--check-config"}, "/etc/testd.conf", TRUE, FALSE},
        {{"--version"}, "/etc/testd.conf", FALSE, TRUE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(BerthDaemonOptions) options = parse(cases[i].arguments, &error);
        assert_no_error(error);
        assert_non_null(options);
        assert_string_equal(options->config_path, cases[i].config_path);
        assert_int_equal(options->check_config, cases[i].check_config);
        assert_int_equal(options->version, cases[i].version);
    }
}

static void parse_takes_the_options_of_its_own(void **state)
{
    static const char *const arguments[MAX_ARGUMENTS] = {"--config", "/a", "--own"};
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthDaemonOptions) options = parse(arguments, &error);
    assert_no_error(error);
    assert_string_equal(options->config_path, "/a");
    assert_true(is_own_given);
}

static void parse_of_what_is_no_option_fails(void **state)
{
    static const char *const arguments[MAX_ARGUMENTS] = {"--config", "/a", "now"};
    g_autoptr(GError) error = NULL;
    assert_null(parse(arguments, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT,
                       "\"now\" is not expected; see testd --help");
}

static void parse_of_unknown_option_fails(void **state)
{
    static const char *const arguments[MAX_ARGUMENTS] = {"--config", "/a", "--verbose"};
    g_autoptr(GError) error = NULL;
    assert_null(parse(arguments, &error));
    assert_true(g_error_matches(error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION));
    assert_non_null(strstr(error->message, "--verbose"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_takes_what_is_given),
        cmocka_unit_test(parse_takes_the_options_of_its_own),
        cmocka_unit_test(parse_of_what_is_no_option_fails),
        cmocka_unit_test(parse_of_unknown_option_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
