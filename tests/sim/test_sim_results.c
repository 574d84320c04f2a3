/* SPDX-License-Identifier: Apache-2.0 */
/* What berth-sim's results are made of: the JSON that others read, time estimates, and memory that does not grow with
 * the jobs that have ended. */
#include "tests/lib/sim_fixture.h"
#include "tests/lib/sim_program.h"
#include "tests/lib/tempdir.h"

#include <glib/gstdio.h>
#include <json-glib/json-glib.h>
#include <stdio.h>
#include <string.h>

static void write_trace(const char *dir, guint32 nodes, const SimFixtureJob *jobs, guint n)
{
    g_autofree char *text = sim_fixture_swf(nodes, 2, jobs, n);
    g_autofree char *path = sim_fixture_file(dir, "a.swf", text);
}

/* The object of policy number N, of what was printed behind the table. */
static JsonObject *result(JsonParser *parser, const Said *said, guint n)
{
    g_autoptr(GError) error = NULL;
    json_parser_load_from_data(parser, strchr(said->out, '['), -1, &error);
    assert_no_error(error);
    return json_array_get_object_element(json_node_get_array(json_parser_get_root(parser)), n);
}

/* --- what is promised to who reads it ----------------------------------------------------------- */

static void json_has_what_it_promises_for_each_policy(void **state)
{
    static const SimFixtureJob jobs[] = {{0, 100, 200, 3}, {10, 100, 100, 2}, {20, 50, 60, 1}};
    static const char *const policies[] = {"fcfs",     "easy",  "conservative",
                                           "reserved", "berth", "bound"};
    static const char *const members[] = {"jobs",
                                          "mean_wait_s",
                                          "p95_wait_s",
                                          "mean_bounded_slowdown",
                                          "makespan_s",
                                          "useful_cpu_utilisation",
                                          "useful_memory_utilisation",
                                          "work_done_cpu_s",
                                          "migrations",
                                          "checkpoints",
                                          "guaranteed_cpu_shortfall",
                                          "guaranteed_memory_shortfall",
                                          "kills"};
    write_trace(*state, 2, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(Said) said = sim_program(*state, "--json - a.swf");
    assert_status(said, 0);
    g_autoptr(JsonParser) parser = json_parser_new();
    for (guint i = 0; i < G_N_ELEMENTS(policies); i++) {
        JsonObject *policy = result(parser, said, i);
        assert_string_equal(json_object_get_string_member(policy, "policy"), policies[i]);
        for (guint j = 0; j < G_N_ELEMENTS(members); j++) {
            if (!json_object_has_member(policy, members[j]))
                fail_msg("%s has no %s", policies[i], members[j]);
            JsonNode *node = json_object_get_member(policy, members[j]);
            GType type = json_node_get_value_type(node);
            assert_true(type == G_TYPE_INT64 || type == G_TYPE_DOUBLE);
        }
        assert_int_equal(json_object_get_int_member(policy, "jobs"), 3);
    }
}

/* --- time estimates ------------------------------------------------------------------------------ */

static double mean_wait_s(const char *dir, const char *arguments)
{
    g_autofree char *line = g_strconcat("--policy easy --json - ", arguments, " a.swf", NULL);
    g_autoptr(Said) said = sim_program(dir, line);
    assert_status(said, 0);
    g_autoptr(JsonParser) parser = json_parser_new();
    return json_object_get_double_member(result(parser, said, 0), "mean_wait_s");
}

/* The first is thought to take twice as long as it does: the last is let before the second, which it delays. */
static void jobs_go_by_estimates_and_not_by_how_long_they_run(void **state)
{
    static const SimFixtureJob jobs[] = {{0, 100, 200, 3}, {10, 100, 100, 4}, {20, 85, 90, 1}};
    write_trace(*state, 2, jobs, G_N_ELEMENTS(jobs));
    assert_float_equal(mean_wait_s(*state, ""), 95. / 3, 1e-6);
    assert_float_equal(mean_wait_s(*state, "--estimates 1"), (90. + 180) / 3, 1e-6);
    g_autoptr(Said) said = sim_program(*state, "--policy easy --estimates 1.5 a.swf");
    assert_has(said->out, "; limits of 1 to 1.5 times the run time\n");
}

static void estimates_are_drawn_by_the_seed(void **state)
{
    SimFixtureJob jobs[60];
    for (guint i = 0; i < G_N_ELEMENTS(jobs); i++)
        jobs[i] = (SimFixtureJob){i, 100 + 37 * i % 400, 0, 1 + i * 7 % 4};
    write_trace(*state, 2, jobs, G_N_ELEMENTS(jobs));
    double first = mean_wait_s(*state, "--estimates 5 --seed 1");
    assert_float_equal(mean_wait_s(*state, "--estimates 5 --seed 1"), first, 0);
    assert_true(mean_wait_s(*state, "--estimates 5 --seed 2") != first);
    g_autoptr(Said) said = sim_program(*state, "--estimates 0.5 a.swf");
    assert_status(said, 2);
    assert_has(said->err, "--estimates '0.5': a number from 1 to 1000 is allowed");
}

/* All come to a first limit; what is known of each policy is said. */
static void limits_that_are_too_short_are_counted(void **state)
{
    static const SimFixtureJob jobs[] = {{0, 100, 200, 1}, {10, 100, 200, 1}, {20, 100, 200, 1}};
    write_trace(*state, 2, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(Said) table =
        sim_program(*state, "--policy easy,berth --too-short 1000 --extend-after 1h a.swf");
    assert_status(table, 0);
    assert_has(table->out, "; first limit of 3 too short\n");
    assert_has(table->out, " refused extended lost cpu-h\n");
    g_autoptr(Said) said = sim_program(
        *state, "--policy easy,berth --too-short 1000 --extend-after 1h --json - a.swf");
    g_autoptr(JsonParser) first = json_parser_new(), second = json_parser_new();
    JsonObject *easy = result(first, said, 0), *berth = result(second, said, 1);
    assert_int_equal(json_object_get_int_member(easy, "too_short"), 3);
    assert_int_equal(json_object_get_int_member(easy, "kills"), 3);
    assert_int_equal(json_object_get_int_member(easy, "limit_kills"), 3);
    assert_true(json_object_get_double_member(easy, "lost_cpu_s") >= 150);
    assert_int_equal(json_object_get_int_member(berth, "limit_extensions"), 3);
    assert_int_equal(json_object_get_int_member(berth, "kills"), 0);
    assert_true(json_object_get_double_member(easy, "mean_wait_s") > 3600);
    g_autoptr(Said) plain = sim_program(*state, "--policy easy --json - a.swf");
    assert_true(strstr(plain->out, "limit_kills") == NULL &&
                strstr(plain->out, "too_short") == NULL);
    g_autoptr(Said) story =
        sim_program(*state, "--policy easy,berth --too-short 1000 --explain 2 a.swf");
    assert_has(story->out, "killed: its time limit has come");
    assert_has(story->out, "submitted again with a limit of 200 s");
    assert_has(story->out, "stands still as a checkpoint: its time limit has come");
    assert_has(story->out, "extended with a limit of 200 s");
    g_autoptr(Said) wrong = sim_program(*state, "--too-short 1001 a.swf");
    assert_status(wrong, 2);
    assert_has(wrong->err, "--too-short");
}

/* --- memory -------------------------------------------------------------------------------------- */

#define FEW  10000u
#define MANY 90000u

/* So many one after the other. Line by line: what a process has had before it was spawned counts as its own. */
static void write_many(const char *dir, guint n)
{
    g_autofree char *path = g_build_filename(dir, "many.swf", NULL);
    FILE *file = g_fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "; MaxNodes: 2\n; MaxProcs: 4\n");
    for (guint i = 0; i < n; i++)
        fprintf(file, "%u %u -1 %u %u -1 -1 %u 100 -1 1 1 1 -1 1 -1 -1 -1\n", i + 1, 60 * i,
                50 + i % 20, 1 + i % 4, 1 + i % 4);
    assert_int_equal(fclose(file), 0);
}

static long peak_kib(const char *dir, guint n, const char *policy)
{
    g_autofree char *line = g_strconcat("--policy ", policy, " many.swf", NULL);
    write_many(dir, n);
    g_autoptr(Said) said = sim_program(dir, line);
    assert_status(said, 0);
    return said->peak_kib;
}

/* Traces of a million jobs fit: nothing is kept of those that have ended. Less than a pointer for each. */
static void jobs_that_have_ended_cost_no_memory(void **state)
{
    static const char *const policies[] = {"fcfs", "berth"};
#ifdef __SANITIZE_ADDRESS__
    print_message("skipped: AddressSanitizer keeps what was freed\n");
    skip();
#endif
    for (guint i = 0; i < G_N_ELEMENTS(policies); i++) {
        long few_kib = peak_kib(*state, FEW, policies[i]);
        long more_kib = peak_kib(*state, MANY, policies[i]) - few_kib;
        if (more_kib > (long)((MANY - FEW) * sizeof(gpointer) / 1024))
            fail_msg("%s: %u jobs more take %ld KiB more", policies[i], MANY - FEW, more_kib);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(json_has_what_it_promises_for_each_policy),
        TEST(jobs_go_by_estimates_and_not_by_how_long_they_run),
        TEST(estimates_are_drawn_by_the_seed),
        TEST(limits_that_are_too_short_are_counted),
        TEST(jobs_that_have_ended_cost_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
