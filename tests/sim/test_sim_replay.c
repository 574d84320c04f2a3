/* SPDX-License-Identifier: Apache-2.0 */
/* A run's log, run again: the same decisions; and one that was changed is found out. */
#include "scheduler/sim/app.h"
#include "scheduler/sim/replay.h"
#include "tests/lib/sim_fixture.h"
#include "tests/lib/tempdir.h"

/* What `berth-sim ARGUMENTS` does, its table aside. */
static void simulate(const char *dir, const char *arguments)
{
    static const SimFixtureJob jobs[] = {{0, 100, 200, 3},  {10, 100, 100, 2}, {20, 50, 60, 1},
                                         {30, 10, 90, 4},   {35, 400, 500, 2}, {36, 30, 40, 1},
                                         {400, 100, 90, 4}, {410, 20, 30, 1}};
    SimOptions options;
    gboolean stop;
    int argc;
    g_auto(GStrv) argv = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *text = sim_fixture_swf(2, 2, jobs, G_N_ELEMENTS(jobs));
    g_autofree char *trace = sim_fixture_file(dir, "a.swf", text);
    g_autofree char *line =
        g_strdup_printf("berth-sim --quiet %s --journal %s %s", arguments, dir, trace);
    assert_true(g_shell_parse_argv(line, &argc, &argv, NULL));
    assert_true(sim_options_parse(argc, argv, &options, &stop, &error));
    sim_app_run(&options, &error);
    assert_no_error(error);
    sim_options_clear(&options);
}

static void on_difference(const char *text, gpointer user_data)
{
    g_string_append(user_data, text);
}

static void replay_of_a_run_decides_the_same(void **state)
{
    static const char *const policies[] = {"fcfs", "easy", "conservative", "reserved", "berth"};
    simulate(*state, "--fail-actions 100 --mtbf 5m --mttr 10s --seed 3");
    for (guint i = 0; i < G_N_ELEMENTS(policies); i++) {
        SimReplay counts;
        g_autoptr(GError) error = NULL;
        g_autoptr(GString) text = g_string_new(NULL);
        g_autofree char *name = g_strconcat(policies[i], ".log", NULL);
        g_autofree char *path = g_build_filename(*state, name, NULL);
        assert_true(sim_replay_run(path, on_difference, text, &counts, &error));
        assert_string_equal(text->str, "");
        assert_int_equal(counts.n_different, 0);
        assert_true(counts.n_events > 20 && counts.n_actions > 16);
    }
}

static void replay_of_a_changed_log_says_where(void **state)
{
    SimReplay counts;
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *path = g_build_filename(*state, "easy.log", NULL);
    g_autofree char *data = NULL;
    simulate(*state, "--policy easy");
    assert_true(g_file_get_contents(path, &data, NULL, NULL));
    char *action = strstr(data, "action kind=1 ");
    assert_non_null(action);
    action[strlen("action kind=")] = '2';
    guint line = 1;
    for (const char *at = data; at < action; at++)
        line += *at == '\n';
    assert_true(g_file_set_contents(path, data, -1, NULL));
    assert_true(sim_replay_run(path, on_difference, text, &counts, &error));
    assert_int_equal(counts.n_different, 1);
    g_autofree char *where = g_strdup_printf("line %u: ", line - 1); /* the event above it */
    assert_true(g_str_has_prefix(text->str, where));
}

static void replay_refuses_what_is_no_log(void **state)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {{"event 1 timer\n", "log:1: before config"},
                 {"hello\n", "log:1: none of config, node"},
                 {"", "no event in this log"},
                 {"config tunings=1\n", "log:1: not as many tunings"}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        SimReplay counts;
        g_autoptr(GError) error = NULL;
        g_autofree char *path = sim_fixture_file(*state, "log", cases[i].text);
        assert_false(sim_replay_run(path, on_difference, NULL, &counts, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].expected);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(replay_of_a_run_decides_the_same),
        TEST(replay_of_a_changed_log_says_where),
        TEST(replay_refuses_what_is_no_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
