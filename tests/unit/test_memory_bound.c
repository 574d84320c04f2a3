/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory there is for berthd, as files say that the test writes. */
#include <config.h>

#include "scheduler/daemon/memory_bound.h"
#include "tests/lib/assert.h"
#include "tests/lib/files.h"
#include "tests/lib/tempdir.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HOST 4096

static guint64 bytes_in(const char *dir)
{
    g_autofree char *groups = g_build_filename(dir, "cgroup", NULL);
    return berth_memory_bound_of_host(HOST, dir, groups);
}

static void host_without_cgroups_offers_what_it_has(void **state)
{
    const char *dir = *state;
    assert_int_equal(bytes_in(dir), HOST);
    put_file(dir, "self/cgroup", "4:memory:/berth\n1:cpu:/\n"); /* version 1 alone */
    put_file(dir, "cgroup/berth/memory.max", "1000\n");
    assert_int_equal(bytes_in(dir), HOST);
}

static void lowest_limit_of_the_cgroup_and_of_those_above_counts(void **state)
{
    const char *dir = *state;
    put_file(dir, "self/cgroup", "1:name=systemd:/\n0::/system.slice/berthd.service\n");
    assert_int_equal(bytes_in(dir), HOST);
    put_file(dir, "cgroup/system.slice/berthd.service/memory.max", "max\n");
    assert_int_equal(bytes_in(dir), HOST);
    put_file(dir, "cgroup/system.slice/berthd.service/memory.max", "3000\n");
    assert_int_equal(bytes_in(dir), 3000);
    put_file(dir, "cgroup/system.slice/memory.max", "2000\n");
    assert_int_equal(bytes_in(dir), 2000);
    put_file(dir, "cgroup/memory.max", "1000\n"); /* of a container's own root */
    assert_int_equal(bytes_in(dir), 1000);
    put_file(dir, "cgroup/memory.max", "9000\n");
    assert_int_equal(bytes_in(dir), 2000);
}

static void file_that_says_nothing_limits_nothing(void **state)
{
    const char *dir = *state;
    put_file(dir, "self/cgroup", "0::/berth\n");
    put_file(dir, "cgroup/berth/memory.max", "");
    assert_int_equal(bytes_in(dir), HOST);
    put_file(dir, "cgroup/berth/memory.max", "-1\n");
    assert_int_equal(bytes_in(dir), HOST);
}

static void bound_is_what_is_set_or_half_of_what_there_is(void **state)
{
    assert_int_equal(berth_memory_bound_bytes(512), (guint64)512 << 20);
    guint64 half = berth_memory_bound_bytes(0);
    guint64 host = (guint64)sysconf(_SC_PHYS_PAGES) * (guint64)sysconf(_SC_PAGESIZE);
    assert_true(half > 0 && half <= host / 2);
}

static char *warned; /* the last warning */

static GLogWriterOutput keep_warning(GLogLevelFlags level, const GLogField *fields, gsize n,
                                     gpointer data)
{
    for (gsize i = 0; i < n; i++) {
        if (level == G_LOG_LEVEL_WARNING && g_str_equal(fields[i].key, "MESSAGE")) {
            g_free(warned);
            warned = g_strdup(fields[i].value);
        }
    }
    return G_LOG_WRITER_HANDLED;
}

static void bound_beyond_what_there_is_is_warned_of(void **state)
{
    g_log_set_writer_func(keep_warning, NULL, NULL);
    g_autoptr(BerthMemoryBound) by_itself = berth_memory_bound_new(0);
    g_autoptr(BerthMemoryBound) low = berth_memory_bound_new(1);
    assert_null(warned);
    g_autoptr(BerthMemoryBound) high = berth_memory_bound_new((guint64)1 << 40);
    assert_non_null(warned);
    assert_non_null(strstr(warned, "memory_max is 1099511627776 MiB"));
    g_clear_pointer(&warned, g_free);
}

static guint64 own_mib(void)
{
    g_autofree char *text = NULL;
    unsigned long long resident = 0, shared = 0;
    assert_true(g_file_get_contents("/proc/self/statm", &text, NULL, NULL));
    assert_int_equal(sscanf(text, "%*u %llu %llu", &resident, &shared), 2);
    return (resident - shared) * (guint64)sysconf(_SC_PAGESIZE) >> 20;
}

static void assert_refused(BerthMemoryBound *bound, BerthMemoryJobs jobs, const char *why)
{
    g_autoptr(GError) error = NULL;
    gboolean is_taken = berth_memory_bound_check(bound, &jobs, &error);
    assert_int_equal(is_taken, why == NULL);
    if (why != NULL)
        assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, why);
}

/* Who has most is refused first, and what is left is for others. */
static void last_quarter_is_for_who_has_few_jobs(void **state)
{
    gsize bytes = (gsize)200 << 20;
    g_autofree guint8 *taken = g_malloc(bytes);
    memset(taken, 1, bytes);
    guint64 own = own_mib();
    assert_true(own >= 200);
    g_autoptr(BerthMemoryBound) nearly = berth_memory_bound_new(own * 7 / 6);
    assert_refused(nearly, (BerthMemoryJobs){.of_user = 9, .of_all = 10, .n_users = 2},
                   "you have 9 of the 10 jobs that have not ended, of 2 users");
    assert_refused(nearly, (BerthMemoryJobs){.of_user = 1, .of_all = 10, .n_users = 2}, NULL);
    assert_refused(nearly, (BerthMemoryJobs){.of_user = 3, .of_all = 10, .n_users = 2}, NULL);
    assert_refused(nearly, (BerthMemoryJobs){.of_user = 5, .of_all = 10, .n_users = 2},
                   "you have 5 of the 10");
    assert_refused(nearly, (BerthMemoryJobs){.of_user = 0, .of_all = 10, .n_users = 1}, NULL);
    assert_refused(nearly, (BerthMemoryJobs){.of_user = 10, .of_all = 10, .n_users = 1},
                   "what is left is for others");
    g_autoptr(BerthMemoryBound) half = berth_memory_bound_new(own * 2);
    assert_refused(half, (BerthMemoryJobs){.of_user = 9, .of_all = 10, .n_users = 2}, NULL);
    g_autoptr(BerthMemoryBound) all = berth_memory_bound_new(own / 2);
    assert_refused(all, (BerthMemoryJobs){.of_user = 0, .of_all = 10, .n_users = 1},
                   "that it may (memory_max)");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, tempdir_make, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(host_without_cgroups_offers_what_it_has),
        TEST(lowest_limit_of_the_cgroup_and_of_those_above_counts),
        TEST(file_that_says_nothing_limits_nothing),
        cmocka_unit_test(bound_is_what_is_set_or_half_of_what_there_is),
        cmocka_unit_test(bound_beyond_what_there_is_is_warned_of),
        cmocka_unit_test(last_quarter_is_for_who_has_few_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
