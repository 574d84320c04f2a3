/* SPDX-License-Identifier: Apache-2.0 */
/* From a trace to a workload: machine, shapes of guests, memory, load. */
#include "tests/lib/sim_fixture.h"
#include "tests/lib/tempdir.h"

static SimWorkload *open_text(const char *dir, const char *text, const SimWorkloadConfig *config,
                              SimTrace **out_trace, GError **error)
{
    g_autofree char *path = sim_fixture_file(dir, "trace", text);
    const char *paths[] = {path, NULL};
    *out_trace = sim_trace_open(paths, SIM_FORMAT_AUTO, error);
    assert_non_null(*out_trace);
    return sim_workload_new(*out_trace, config, error);
}

static SimJob nth(SimWorkload *workload, guint n)
{
    SimJob job;
    gboolean end;
    assert_true(sim_workload_rewind(workload, NULL));
    for (guint i = 0; i < n; i++) {
        assert_true(sim_workload_next(workload, &job, &end, NULL));
        assert_false(end);
    }
    return job;
}

static void wide_jobs_become_equal_guests_that_fit(void **state)
{
    static const struct {
        guint32 procs, guests, vcpus;
    } cases[] = {{1, 1, 1}, {8, 1, 8}, {9, 3, 3}, {16, 2, 8}, {11, 11, 1}, {12, 2, 6}, {64, 8, 8}};
    SimFixtureJob jobs[G_N_ELEMENTS(cases)];
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        jobs[i] = (SimFixtureJob){i, 10, 20, cases[i].procs};
    g_autofree char *text = sim_fixture_swf(8, 8, jobs, G_N_ELEMENTS(cases));
    g_autoptr(GError) error = NULL;
    g_autoptr(SimTrace) trace = NULL;
    SimWorkloadConfig config = {.overhead_mib = 96};
    g_autoptr(SimWorkload) workload = open_text(*state, text, &config, &trace, &error);
    assert_no_error(error);
    assert_int_equal(sim_workload_machine(workload)->nodes, 8);
    assert_int_equal(sim_workload_machine(workload)->vcpus, 8);
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        SimJob job = nth(workload, i + 1);
        assert_int_equal(job.guests, cases[i].guests);
        assert_int_equal(job.vcpus, cases[i].vcpus);
        /* All vCPUs of a node can be used, overhead included. */
        guint64 per_node = sim_workload_machine(workload)->vcpus / job.vcpus;
        assert_true(per_node * (job.memory_mib + 96) <= sim_workload_machine(workload)->memory_mib);
    }
}

static void guests_are_smaller_where_the_machine_holds_no_larger(void **state)
{
    static const struct {
        guint32 nodes, vcpus, procs, guests, of_vcpus;
        gboolean is_too_large;
    } cases[] = {{4, 4, 15, 15, 1, FALSE}, {4, 4, 12, 3, 4, FALSE}, {4, 4, 9, 3, 3, FALSE},
                 {4, 4, 17, 17, 1, TRUE},  {4, 4, 18, 6, 3, TRUE},  {3, 8, 20, 5, 4, FALSE},
                 {3, 6, 16, 8, 2, FALSE},  {5, 6, 28, 14, 2, FALSE}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        SimFixtureJob one = {0, 10, 20, cases[i].procs};
        g_autofree char *text = sim_fixture_swf(cases[i].nodes, cases[i].vcpus, &one, 1);
        g_autoptr(GError) error = NULL;
        g_autoptr(SimTrace) trace = NULL;
        SimWorkloadConfig config = {.overhead_mib = 96};
        g_autoptr(SimWorkload) workload = open_text(*state, text, &config, &trace, &error);
        assert_no_error(error);
        SimJob job = nth(workload, 1);
        assert_int_equal(job.guests, cases[i].guests);
        assert_int_equal(job.vcpus, cases[i].of_vcpus);
        assert_int_equal(job.is_too_large, cases[i].is_too_large);
        assert_int_equal(sim_workload_survey(workload)->n_too_large, cases[i].is_too_large);
    }
}

/* Torque: what was asked for on one node stays apart from the rest. */
static void guests_of_a_node_are_smaller_where_the_machine_holds_no_larger(void **state)
{
    static const char text[] = "10/01/2017 00:01:38;E;7.m;etime=1000 end=1200 "
                               "Resource_List.nodes=5:ppn=3 exec_host=a/0-3+b/0-3+c/0-3+d/0-3 "
                               "resources_used.walltime=00:01:00\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(SimTrace) trace = NULL;
    SimWorkloadConfig config = {.overhead_mib = 96};
    g_autoptr(SimWorkload) workload = open_text(*state, text, &config, &trace, &error);
    assert_no_error(error);
    assert_int_equal(nth(workload, 1).guests, 15);
    assert_false(nth(workload, 1).is_too_large);
}

/* "; MaxNodes: NODES", "; MaxProcs: PROCS" and a job of as many processors. */
static char *header_and_job(guint32 nodes, guint32 procs)
{
    return g_strdup_printf("; MaxNodes: %u\n; MaxProcs: %u\n"
                           "1 0 -1 10 %u -1 -1 -1 20 -1 1 1 1 -1 1 -1 -1 -1\n",
                           nodes, procs, procs);
}

static void processors_that_are_no_multiple_of_nodes_are_spread(void **state)
{
    static const struct {
        guint32 max_nodes, max_procs;
        SimMachine said, expected;
    } cases[] = {
        {100, 199, {0}, {100, 2, 8192, 1, 4096}},
        {60, 100, {0}, {60, 2, 8192, 20, 4096}},
        {60, 100, {.memory_mib = 6144}, {60, 2, 6144, 20, 6144}},
        {60, 100, {.nodes = 30}, {30, 2, 8192, 10, 4096}},
        {60, 100, {.vcpus = 4}, {60, 4, 16384, 0, 0}},
        {200, 100, {0}, {100, 1, 4096, 0, 0}},
        {100, 200, {0}, {100, 2, 8192, 0, 0}},
        {100, 200, {.nodes = 7}, {7, 2, 8192, 0, 0}},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *text = header_and_job(cases[i].max_nodes, cases[i].max_procs);
        g_autoptr(GError) error = NULL;
        g_autoptr(SimTrace) trace = NULL;
        SimWorkloadConfig config = {.machine = cases[i].said};
        g_autoptr(SimWorkload) workload = open_text(*state, text, &config, &trace, &error);
        assert_no_error(error);
        const SimMachine *machine = sim_workload_machine(workload);
        assert_int_equal(machine->nodes, cases[i].expected.nodes);
        assert_int_equal(machine->vcpus, cases[i].expected.vcpus);
        assert_int_equal(machine->memory_mib, cases[i].expected.memory_mib);
        assert_int_equal(machine->n_smaller, cases[i].expected.n_smaller);
        assert_int_equal(machine->smaller_mib, cases[i].expected.smaller_mib);
        if (cases[i].said.nodes == 0 && cases[i].said.vcpus == 0)
            assert_int_equal(sim_machine_all_vcpus(machine), cases[i].max_procs);
        /* As the world has them, one after the other. */
        guint64 vcpus = 0, mib = 0;
        for (guint32 node = 1; node <= machine->nodes; node++) {
            vcpus += sim_machine_vcpus(machine, node);
            mib += sim_machine_mib(machine, node);
        }
        assert_int_equal(vcpus, sim_machine_all_vcpus(machine));
        assert_int_equal(mib, sim_machine_all_mib(machine));
    }
}

static void a_pool_has_all_processors(void **state)
{
    g_autofree char *text = header_and_job(60, 100);
    g_autoptr(GError) error = NULL;
    g_autoptr(SimTrace) trace = NULL;
    SimWorkloadConfig config = {.is_pool = TRUE};
    g_autoptr(SimWorkload) workload = open_text(*state, text, &config, &trace, &error);
    assert_no_error(error);
    assert_int_equal(sim_workload_machine(workload)->nodes, 1);
    assert_int_equal(sim_workload_machine(workload)->vcpus, 100);
    assert_int_equal(sim_workload_machine(workload)->memory_mib, 100 * 4096);
    assert_false(nth(workload, 1).is_too_large);
}

static void load_scales_the_times_between_arrivals(void **state)
{
    /* 4 x 100 s on 4 vCPUs over 200 s: load 0.5. */
    static const SimFixtureJob jobs[] = {{1000, 50, 60, 4}, {1100, 25, 60, 4}, {1200, 25, 60, 4}};
    g_autofree char *text = sim_fixture_swf(2, 2, jobs, 3);
    g_autoptr(GError) error = NULL;
    g_autoptr(SimTrace) trace = NULL;
    SimWorkloadConfig config = {.load = 2};
    g_autoptr(SimWorkload) workload = open_text(*state, text, &config, &trace, &error);
    assert_no_error(error);
    assert_true(sim_workload_survey(workload)->trace_load == 0.5);
    assert_int_equal(sim_workload_survey(workload)->end_usec, 50 * G_USEC_PER_SEC);
    assert_int_equal(nth(workload, 1).submit_usec, 0);
    assert_int_equal(nth(workload, 2).submit_usec, 25 * G_USEC_PER_SEC);
    assert_int_equal(nth(workload, 3).submit_usec, 50 * G_USEC_PER_SEC);
    assert_int_equal(nth(workload, 3).run_usec, 25 * G_USEC_PER_SEC);
}

static void limits_are_at_least_the_run_time(void **state)
{
    static const SimFixtureJob jobs[] = {
        {0, 50, 20, 1}, {1, 50, 90, 1}, {2, 50, -1, 1}, {3, 50, 0, 1}, {4, 50, 50, 1}};
    g_autofree char *text = sim_fixture_swf(2, 2, jobs, G_N_ELEMENTS(jobs));
    g_autoptr(GError) error = NULL;
    g_autoptr(SimTrace) trace = NULL;
    SimWorkloadConfig config = {0};
    g_autoptr(SimWorkload) workload = open_text(*state, text, &config, &trace, &error);
    assert_no_error(error);
    assert_int_equal(nth(workload, 1).limit_usec, 50 * G_USEC_PER_SEC);
    assert_int_equal(nth(workload, 2).limit_usec, 90 * G_USEC_PER_SEC);
    assert_int_equal(nth(workload, 3).limit_usec, 50 * G_USEC_PER_SEC);
    assert_int_equal(nth(workload, 4).limit_usec, 50 * G_USEC_PER_SEC);
    assert_int_equal(sim_workload_survey(workload)->n_limit_raised, 1);
    assert_int_equal(sim_workload_survey(workload)->n_limit_unknown, 2);
}

static void usage_and_memory_are_those_of_one_guest(void **state)
{
    /* 4 processors, 30 s of CPU each in 60 s; 2 GiB asked for and 1 GiB used, each. */
    static const char text[] = "; MaxNodes: 4\n; MaxProcs: 8\n"
                               "1 0 -1 60 4 30 1048576 4 90 2097152 1 1 1 1 1 1 -1 -1\n"
                               "2 0 -1 60 4 90 1048576 4 90 99999999 1 1 1 1 1 1 -1 -1\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(SimTrace) trace = NULL;
    SimWorkloadConfig config = {.machine = {0, 0, 8192}, .overhead_mib = 100};
    g_autoptr(SimWorkload) workload = open_text(*state, text, &config, &trace, &error);
    assert_no_error(error);
    SimJob job = nth(workload, 1);
    assert_int_equal(job.guests, 2);
    assert_int_equal(job.cpu_used_milli, 1000);
    assert_int_equal(job.memory_mib, 4096);
    assert_int_equal(job.memory_used_mib, 2048);
    job = nth(workload, 2);
    assert_int_equal(job.cpu_used_milli, 2000); /* not more than it has */
    assert_int_equal(job.memory_mib, 8092);
    assert_int_equal(job.memory_asked_mib, 195313);
    assert_true(job.is_cpu_cut && !job.is_memory_used_cut);
    assert_int_equal(sim_workload_survey(workload)->n_memory_cut, 1);
    assert_int_equal(sim_workload_survey(workload)->n_usage_cut, 1);
    assert_int_equal(sim_workload_survey(workload)->n_cpu_used_cut, 1);
    assert_int_equal(sim_workload_survey(workload)->n_memory_used_cut, 0);
}

#define NUMBERED(number) number " 0 -1 60 1 30 -1 1 90 -1 1 1 1 1 1 1 -1 -1\n"
#define ENDED(number)                                                                              \
    "10/01/2017 00:01:38;E;" number ";etime=1000 end=1200 Resource_List.nodes=1 exec_host=a/0 "    \
    "resources_used.walltime=00:01:00\n"

static void numbers_that_several_jobs_have_are_noticed(void **state)
{
    static const struct {
        const char *text;
        guint64 explain;
        guint n_again;
        const char *error;
        guint32 task;
    } cases[] = {
        {NUMBERED("1") NUMBERED("2") NUMBERED("9"), 2, 0, NULL},
        {NUMBERED("1") NUMBERED("1") NUMBERED("2"), 0, 1, NULL},
        {NUMBERED("1") NUMBERED("1") NUMBERED("2"), 2, 1, NULL},
        {NUMBERED("1") NUMBERED("1") NUMBERED("2"), 1, 0, "2 jobs of the trace have the number 1:"},
        {NUMBERED("3") NUMBERED("1") NUMBERED("2") NUMBERED("3"), 0, 3, NULL},
        {NUMBERED("3") NUMBERED("1") NUMBERED("2") NUMBERED("3"), 3, 0, "2 jobs of the trace"},
        {ENDED("7[1].m") ENDED("7[2].m") ENDED("3.m"), 3, 0, NULL},
        {ENDED("7[1].m") ENDED("7[2].m") ENDED("3.m"), 7, 0,
         "2 jobs of the trace have the number 7: say which task, as 7[2]"},
        {ENDED("7[1].m") ENDED("7[2].m") ENDED("3.m"), 7, 0, NULL, .task = 2},
        {ENDED("7[1].m") ENDED("7[2].m") ENDED("3.m"), 7, 0, "no job 7[3] in the", .task = 4},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(SimTrace) trace = NULL;
        SimWorkloadConfig config = {
            .machine = {1, 4, 4096}, .explain = cases[i].explain, .explain_task = cases[i].task};
        g_autoptr(SimWorkload) workload = open_text(*state, cases[i].text, &config, &trace, &error);
        if (cases[i].error != NULL) {
            assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].error);
            continue;
        }
        assert_no_error(error);
        assert_int_equal(sim_workload_survey(workload)->n_number_again, cases[i].n_again);
    }
}

static void a_machine_that_nobody_names_is_asked_for(void **state)
{
    static const char text[] = "1 0 -1 60 4 30 1048576 4 90 2097152 1 1 1 1 1 1 -1 -1\n";
    g_autoptr(GError) error = NULL;
    g_autoptr(SimTrace) trace = NULL;
    SimWorkloadConfig config = {0};
    assert_null(open_text(*state, text, &config, &trace, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "--nodes, --vcpus");
    g_clear_error(&error);
    g_clear_pointer(&trace, sim_trace_close);
    config.load = 1;
    config.machine = (SimMachine){1, 4, 4096};
    assert_null(open_text(*state, text, &config, &trace, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "no load to be scaled");
    g_clear_error(&error);
    g_clear_pointer(&trace, sim_trace_close);
    config.overhead_mib = 1009;
    assert_null(open_text(*state, text, &config, &trace, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT,
                       "a node has 1024 MiB for each vCPU; a guest takes 16 MiB at least and 1009 "
                       "MiB of overhead; say more with --memory, or less with --overhead");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)

/* Of 1000 jobs about as many as were asked for, by chance that the seed alone decides. */
static void some_first_limits_are_too_short(void **state)
{
    SimFixtureJob jobs[1000];
    for (guint i = 0; i < G_N_ELEMENTS(jobs); i++)
        jobs[i] = (SimFixtureJob){i, 1 + i % 200, 400, 1};
    g_autofree char *text = sim_fixture_swf(1, 1, jobs, G_N_ELEMENTS(jobs));
    guint64 sums[3] = {0};
    for (guint k = 0; k < G_N_ELEMENTS(sums); k++) {
        SimWorkloadConfig config = {.short_permille = 130, .seed = 1 + k / 2};
        SimJob job;
        gboolean end;
        guint n = 0;
        g_autoptr(SimTrace) trace = NULL;
        g_autoptr(SimWorkload) workload = open_text(*state, text, &config, &trace, NULL);
        assert_true(sim_workload_rewind(workload, NULL));
        for (guint i = 0; i < G_N_ELEMENTS(jobs); i++) {
            assert_true(sim_workload_next(workload, &job, &end, NULL));
            if (job.limit_again_usec == 0) {
                assert_int_equal(job.limit_usec, 400 * G_USEC_PER_SEC);
                continue;
            }
            n++;
            sums[k] += (guint64)job.limit_usec * (i + 1);
            assert_int_equal(job.limit_again_usec, 400 * G_USEC_PER_SEC);
            assert_true(job.limit_usec < job.run_usec && 2 * job.limit_usec >= job.run_usec);
            assert_int_equal(job.limit_usec % G_USEC_PER_SEC, 0);
        }
        assert_int_equal(sim_workload_survey(workload)->n_limit_short, n);
        assert_true(n > 90 && n < 170);
    }
    assert_true(sums[0] == sums[1] && sums[0] != sums[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(wide_jobs_become_equal_guests_that_fit),
        TEST(guests_are_smaller_where_the_machine_holds_no_larger),
        TEST(guests_of_a_node_are_smaller_where_the_machine_holds_no_larger),
        TEST(processors_that_are_no_multiple_of_nodes_are_spread),
        TEST(a_pool_has_all_processors),
        TEST(load_scales_the_times_between_arrivals),
        TEST(limits_are_at_least_the_run_time),
        TEST(some_first_limits_are_too_short),
        TEST(usage_and_memory_are_those_of_one_guest),
        TEST(numbers_that_several_jobs_have_are_noticed),
        TEST(a_machine_that_nobody_names_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
