/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"
#include "tests/lib/tempdir.h"

#include "nodeagent/host_usage.h"

static void write_file(const char *directory, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(directory, name, NULL);
    assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void host_usage_is_what_the_files_say(void **state)
{
    g_autofree char *pressure = g_build_filename(*state, "pressure", NULL);
    Berth__NodeUsage usage = BERTH__NODE_USAGE__INIT;
    assert_int_equal(g_mkdir_with_parents(pressure, 0755), 0);
    write_file(*state, "meminfo",
               "MemTotal:       24689764 kB\nMemFree: 1 kB\nMemAvailable:      10241 kB\n"
               "SwapCached: 7 kB\nSwapTotal:      4096 kB\nSwapFree:       1024 kB\n");
    write_file(*state, "loadavg", "1.29 0.50 0.10 1/200 4711\n");
    write_file(*state, "pressure/cpu", "some avg10=12.34 avg60=1.00 avg300=1.00 total=9\n");
    write_file(*state, "pressure/memory",
               "some avg10=0.56 avg60=1.00 avg300=1.00 total=9\n"
               "full avg10=99.00 avg60=1.00 avg300=1.00 total=9\n");
    write_file(*state, "pressure/io",
               "some avg10=7.01 avg60=1.00 avg300=1.00 total=9\n"
               "full avg10=6.02 avg60=1.00 avg300=1.00 total=9\n");
    berth_host_usage_measure(*state, &usage);
    assert_int_equal(usage.memory_total_mib, 24111);
    assert_int_equal(usage.memory_free_mib, 10);
    assert_int_equal(usage.swap_used_mib, 3);
    assert_int_equal(berth_host_usage_swap_mib(*state), 4);
    assert_int_equal(usage.psi_memory_full, 9900);
    assert_int_equal(usage.psi_io_some, 701);
    assert_int_equal(usage.psi_io_full, 602);
    assert_int_equal(usage.load_centi, 129);
    assert_int_equal(usage.psi_cpu_some, 1234);
    assert_int_equal(usage.psi_memory_some, 56);
}

static void host_usage_of_a_kernel_without_these_files_is_nothing(void **state)
{
    Berth__NodeUsage usage = BERTH__NODE_USAGE__INIT;
    write_file(*state, "meminfo", "MemTotal:       24689764 kB\n");
    berth_host_usage_measure(*state, &usage);
    assert_int_equal(berth_host_usage_swap_mib(*state), 0);
    assert_int_equal(usage.memory_free_mib, 0);
    assert_int_equal(usage.load_centi, 0);
    assert_int_equal(usage.psi_cpu_some, 0);
    assert_int_equal(usage.psi_memory_some, 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, tempdir_make, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(host_usage_is_what_the_files_say),
        TEST(host_usage_of_a_kernel_without_these_files_is_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
