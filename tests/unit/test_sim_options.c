/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of berth-sim. */
#include "scheduler/sim/options.h"
#include "tests/lib/assert.h"

static gboolean parse(const char *line, SimOptions *options, GError **error)
{
    g_auto(GStrv) argv = NULL;
    gboolean stop;
    int argc;
    assert_true(g_shell_parse_argv(line, &argc, &argv, NULL));
    return sim_options_parse(argc, argv, options, &stop, error);
}

static void sim_options_parse_all_are_taken(void **state)
{
    SimOptions options;
    g_autoptr(GError) error = NULL;
    parse("berth-sim --format swf --policy easy,bound --nodes 4 --vcpus 8 --memory 16G --load 1.5 "
          "--usage reserved --seed 9 --json out.json --plot dir --explain 12 --max-jobs 5 "
          "--mtbf 30d --mttr 2h --fail-actions 3 --overhead 64M --report-interval 10s "
          "--without migration,prediction --tune settle_usec=1000000 --cost boot_usec=5 --check "
          "--quiet --pool a b",
          &options, &error);
    assert_no_error(error);
    assert_int_equal(options.format, SIM_FORMAT_SWF);
    assert_true(options.policies[SIM_POLICY_EASY] && options.policies[SIM_POLICY_BOUND]);
    assert_false(options.policies[SIM_POLICY_FCFS] || options.policies[SIM_POLICY_BERTH]);
    assert_int_equal(options.workload.machine.nodes, 4);
    assert_int_equal(options.workload.machine.vcpus, 8);
    assert_int_equal(options.workload.machine.memory_mib, 16384);
    assert_true(options.workload.load == 1.5);
    assert_true(options.workload.is_pool);
    assert_int_equal(options.workload.jobs_max, 5);
    assert_int_equal(options.usage, SIM_USAGE_RESERVED);
    assert_int_equal(options.sim.seed, 9);
    assert_string_equal(options.json, "out.json");
    assert_string_equal(options.plot, "dir");
    assert_int_equal(options.sim.explain, 12);
    assert_true(options.sim.failures.mtbf_usec == 30 * 86400 * (gint64)G_USEC_PER_SEC);
    assert_true(options.sim.failures.mttr_usec == 7200 * (gint64)G_USEC_PER_SEC);
    assert_int_equal(options.sim.failures.action_permille, 3);
    assert_int_equal(options.sim.overhead_mib, 64);
    assert_int_equal(options.workload.overhead_mib, 64);
    assert_int_equal(options.sim.features_off, BERTH_FEATURE_MIGRATION | BERTH_FEATURE_PREDICTION);
    assert_int_equal(options.tunings[BERTH_TUNING_SETTLE_USEC], 1000000);
    assert_int_equal(options.sim.costs.values[SIM_COST_BOOT_USEC], 5);
    assert_true(options.sim.check && options.quiet);
    assert_string_equal(options.traces[0], "a");
    assert_string_equal(options.traces[1], "b");
    sim_options_clear(&options);
}

static void sim_options_parse_defaults(void **state)
{
    SimOptions options;
    g_autoptr(GError) error = NULL;
    parse("berth-sim trace", &options, &error);
    assert_no_error(error);
    for (guint i = 0; i < SIM_POLICY_N; i++)
        assert_true(options.policies[i]);
    assert_int_equal(options.usage, SIM_USAGE_TRACE);
    assert_int_equal(options.sim.seed, 1);
    assert_int_equal(options.tunings[BERTH_TUNING_SETTLE_USEC],
                     berth_core_tuning(BERTH_TUNING_SETTLE_USEC)->value);
    sim_options_clear(&options);
    assert_true(parse("berth-sim --usage shapes.tar.xz trace", &options, &error));
    assert_int_equal(options.usage, SIM_USAGE_SHAPES);
    assert_string_equal(options.shapes, "shapes.tar.xz");
    sim_options_clear(&options);
}

static void sim_options_parse_replay_takes_constants_and_a_job(void **state)
{
    SimOptions options;
    g_autoptr(GError) error = NULL;
    assert_true(
        parse("berth-sim --replay log --tune plan_depth=3 --explain 7 --quiet", &options, &error));
    assert_string_equal(options.replay, "log");
    assert_int_equal(options.sim.explain, 7);
    assert_true(options.tunes && options.is_tuned[BERTH_TUNING_PLAN_DEPTH]);
    assert_int_equal(options.tunings[BERTH_TUNING_PLAN_DEPTH], 3);
    assert_false(options.is_tuned[BERTH_TUNING_SETTLE_USEC]);
    sim_options_clear(&options);
    assert_true(parse("berth-sim --replay log", &options, &error));
    assert_false(options.tunes);
    sim_options_clear(&options);
}

static void sim_options_parse_jobs_are_named_as_logs_do(void **state)
{
    static const struct {
        const char *name;
        guint64 number;
        guint32 task;
    } cases[] = {{"12", 12, 0},
                 {"526998[1]", 526998, 2},
                 {"526998[0]", 526998, 1},
                 {"521367.m1.mason", 521367, 0},
                 {"7[31].m1", 7, 32}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        SimOptions options;
        g_autoptr(GError) error = NULL;
        g_autofree char *line = g_strdup_printf("berth-sim --explain %s t", cases[i].name);
        parse(line, &options, &error);
        assert_no_error(error);
        assert_int_equal(options.sim.explain, cases[i].number);
        assert_int_equal(options.sim.explain_task, cases[i].task);
        assert_int_equal(options.workload.explain_task, cases[i].task);
        sim_options_clear(&options);
    }
}

static void sim_options_parse_tune_help_is_answered(void **state)
{
    char *argv[] = {(char *)"berth-sim", (char *)"--tune", (char *)"help", NULL};
    SimOptions options;
    gboolean stop = FALSE;
    g_autoptr(GError) error = NULL;
    assert_true(sim_options_parse(3, argv, &options, &stop, &error));
    assert_true(stop);
    sim_options_clear(&options);
}

static void sim_options_parse_bad_is_refused(void **state)
{
    static const struct {
        const char *line, *expected;
    } cases[] = {
        {"berth-sim", "no trace is named"},
        {"berth-sim --polic easy t", "try berth-sim --help"},
        {"berth-sim --policy easy,quick t", "--policy 'quick'"},
        {"berth-sim --policy easy,easy t", "named twice"},
        {"berth-sim --policy '' t", "names no policy"},
        {"berth-sim --policy easy, t", "--policy 'easy,': a comma too many"},
        {"berth-sim --policy ,easy t", "--policy ',easy': a comma too many"},
        {"berth-sim --policy easy,,fcfs t", "a comma too many"},
        {"berth-sim --without migration, t", "--without 'migration,': a comma too many"},
        {"berth-sim --format csv t", "format 'csv'"},
        {"berth-sim --nodes 0 t", "--nodes"},
        {"berth-sim --nodes 4x t", "--nodes"},
        {"berth-sim --vcpus 70000 t", "--vcpus"},
        {"berth-sim --memory lots t", "--memory"},
        {"berth-sim --memory 1M t", "--memory 1M"},
        {"berth-sim --load 0 t", "--load '0'"},
        {"berth-sim --load 1.5x t", "--load '1.5x'"},
        {"berth-sim --load nan t", "--load 'nan'"},
        {"berth-sim --seed -1 t", "--seed"},
        {"berth-sim --mtbf 0s t", "--mtbf 0s"},
        {"berth-sim --fail-actions 901 t", "--fail-actions"},
        {"berth-sim --without luck t", "--without 'luck'"},
        {"berth-sim --tune luck=1 t", "--tune luck=1: there is no constant luck; --tune help"},
        {"berth-sim --tune settle_usec t", "--tune 'settle_usec': wants NAME=NUMBER"},
        {"berth-sim --tune =1 t", "wants NAME=NUMBER"},
        {"berth-sim --cost boot_usec t", "--cost boot_usec: wants NAME=NUMBER; names: boot_usec, "},
        {"berth-sim --cost boot=1 t", "--cost boot=1: there is no such cost; names: boot_usec, "},
        {"berth-sim --tune settle_usec=x t", "--tune settle_usec=x"},
        {"berth-sim --cost luck=1 t", "--cost luck=1"},
        {"berth-sim --replay log t", "not a trace"},
        {"berth-sim --replay log --nodes 4", "not --nodes"},
        {"berth-sim --replay log --load 2", "not --load"},
        {"berth-sim --replay log --json -", "not --json"},
        {"berth-sim --replay log --policy easy", "not --policy"},
        {"berth-sim --replay log --cost boot_usec=1", "not --cost"},
        {"berth-sim --replay log --check", "not --check"},
        {"berth-sim --explain 0 t", "--explain '0'"},
        {"berth-sim --explain x t", "as 4711, and one of an array's tasks, as 4711[3]"},
        {"berth-sim --explain 7[] t", "--explain '7[]'"},
        {"berth-sim --explain 7[1 t", "--explain '7[1'"},
        {"berth-sim --explain 7[x] t", "--explain '7[x]'"},
        {"berth-sim --explain 7x t", "--explain '7x'"},
        {"berth-sim --replay log --explain 7[1]", "say the number of the job alone"},
        {"berth-sim --replay log --jobs x", "not --jobs"},
        {"berth-sim --jobs a --jobs b t", "--jobs is given twice"},
        {"berth-sim --replay log --pool", "not --pool"},
        {"berth-sim --json", "try berth-sim --help"},
        {"berth-sim --json a --json b t", "--json is given twice, as 'a' and as 'b'"},
        {"berth-sim --json=a --json a t", "--json is given twice"},
        {"berth-sim --load 1 --load 2 t", "--load is given twice"},
        {"berth-sim --explain 1 --explain 2 t", "--explain is given twice"},
        {"berth-sim --usage trace --usage reserved t", "--usage is given twice"},
        {"berth-sim --plot a --plot b t", "--plot is given twice"},
        {"berth-sim --journal a --journal b t", "--journal is given twice"},
        {"berth-sim --policy easy --policy fcfs t", "--policy is given twice"},
        {"berth-sim --replay a --replay b", "--replay is given twice"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        SimOptions options;
        g_autoptr(GError) error = NULL;
        if (parse(cases[i].line, &options, &error))
            fail_msg("accepted: %s", cases[i].line);
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sim_options_parse_all_are_taken),
        cmocka_unit_test(sim_options_parse_defaults),
        cmocka_unit_test(sim_options_parse_replay_takes_constants_and_a_job),
        cmocka_unit_test(sim_options_parse_jobs_are_named_as_logs_do),
        cmocka_unit_test(sim_options_parse_tune_help_is_answered),
        cmocka_unit_test(sim_options_parse_bad_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
