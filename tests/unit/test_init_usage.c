/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"
#include "tests/lib/tempdir.h"

#include "common/pressure.h"
#include "images/init/cgroups.h"
#include "images/init/cpus.h"
#include "images/init/give_back.h"
#include "images/init/stall.h"
#include "images/init/stall_share.h"
#include "images/init/usage.h"

#include <glib.h>
#include <string.h>
#include <unistd.h>

static void usage_parse_memory_cases(void **state)
{
    static const struct {
        const char *text;
        uint64_t total;
        uint64_t available;
        uint64_t swap_used;
        uint64_t free;
        uint64_t shmem_huge;
    } cases[] = {
        {"MemTotal:         100 kB\nMemFree: 5 kB\nMemAvailable:      70 kB\n", 100, 70, 0, 5, 0},
        {"MemTotal: 100 kB\nSwapCached: 1 kB\nSwapTotal: 60 kB\nSwapFree: 25 kB\n", 100, 0, 35, 0,
         0},
        {"XMemTotal: 100 kB\nMemAvailable: 1 kB\nSwapFree: 5 kB", 0, 1, 0, 0, 0},
        {"MemTotal: 9 kB\nShmem: 4 kB\nShmemHugePages: 2 kB\nShmemPmdMapped: 1 kB\n", 9, 0, 0, 0,
         2},
        {"", 0, 0, 0, 0, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        UsageMemory memory = usage_parse_memory(cases[i].text);

        assert_int_equal(memory.total_kib, cases[i].total);
        assert_int_equal(memory.available_kib, cases[i].available);
        assert_int_equal(memory.swap_used_kib, cases[i].swap_used);
        assert_int_equal(memory.free_kib, cases[i].free);
        assert_int_equal(memory.shmem_huge_kib, cases[i].shmem_huge);
    }
}

#define MIB UINT64_C(1024)

static void free_memory_is_given_back_where_the_host_holds_it(void **state)
{
    static const struct {
        uint64_t total_mib, free_mib, resident_mib;
        bool is_due;
    } cases[] = {
        {800, 600, 850, true},     {800, 600, 392, true},
        {800, 600, 391, false}, /* its QEMU has some of that for itself */
        {8192, 6144, 3071, false}, {8192, 6144, 3072, true}, /* for more than it uses: an eighth */
        {800, 52, 950, true},      {800, 51, 950, false},    /* there is hardly any to be given */
        {8192, 513, 16000, false}, {8192, 514, 16000, true}, /* others may need what is free */
        {800, 900, 850, true},                               /* nonsense does no harm */
        {0, 0, 850, false},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const UsageMemory memory = {.total_kib = cases[i].total_mib * MIB,
                                    .free_kib = cases[i].free_mib * MIB};

        if (give_back_is_due(&memory, cases[i].resident_mib * MIB) != cases[i].is_due)
            fail_msg("case %zu", i);
    }
}

static void cpus_next_range_cases(void **state)
{
    static const struct {
        const char *text;
        const char *ranges;
    } cases[] = {
        {"0\n", "0-0;"}, {"0-3\n", "0-3;"}, {"0,2-3,8\n", "0-0;2-3;8-8;"}, {"\n", ""}, {"", ""},
        {"1-", ""},      {"0,x", "0-0;"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) found = g_string_new(NULL);
        const char *at = cases[i].text;
        uint32_t first;
        uint32_t last;

        while (cpus_next_range(&at, &first, &last))
            g_string_append_printf(found, "%u-%u;", first, last);
        assert_string_equal(found->str, cases[i].ranges);
    }
}

static void pressure_parse_cases(void **state)
{
    static const char both[] = "some avg10=1.23 avg60=4.00 avg300=5.00 total=6\n"
                               "full avg10=99.07 avg60=0.00 avg300=0.00 total=0\n";
    static const struct {
        const char *text;
        const char *kind;
        uint32_t expected;
    } cases[] = {
        {both, "some", 123},
        {both, "full", 9907},
        {"some avg10=0.00 avg60=9.00", "some", 0},
        {"some avg10=100.00\n", "some", 10000},
        {"some avg60=3.00\nfull avg10=4.00", "some", 0},
        {"something avg10=3.00\n", "some", 0},
        {"", "some", 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_int_equal(berth_pressure_parse(cases[i].text, cases[i].kind), cases[i].expected);
}

static void pressure_parse_total_cases(void **state)
{
    static const char both[] = "some avg10=1.23 avg60=4.00 avg300=5.00 total=18446744073709551615\n"
                               "full avg10=99.07 avg60=0.00 avg300=0.00 total=7\n";
    static const struct {
        const char *text;
        const char *kind;
        uint64_t expected;
    } cases[] = {
        {both, "some", G_MAXUINT64},
        {both, "full", 7},
        {"some avg10=1.00\nfull total=5\n", "some", 0},
        {"some subtotal=1 total=2", "some", 2},
        {"", "some", 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_true(berth_pressure_parse_total(cases[i].text, cases[i].kind) == cases[i].expected);
}

/* Looks, each by its second and how many were stalled by then, and the share in hundredths of a percent. */
static void stall_share_is_of_the_last_ten_seconds(void **state)
{
    static const struct {
        double at_s, total_s;
        uint32_t expected;
    } looks[] = {
        {100, 50, 0},        /* nothing is known of what was before */
        {101, 51, 1000},     /* one second of ten */
        {101.5, 51.5, 1500}, /* too soon to be kept */
        {105, 55, 5000},
        {110, 60, 10000},
        {111, 60, 9000},
        {114, 60, 6923}, /* since 101, the last that is old enough: nine of thirteen, ... */
        {150, 60, 0},    /* ... and since 114 */
        {190, 80, 5000}, /* looks that are rarer than that: since the one before */
        {190, 80, 5000},
        {200, 90, 10000},
        {201, 3, 0}, /* another kernel counts, so that a share can be told from here on */
        {202, 4, 1000},
    };
    StallShare share = {0};

    for (size_t i = 0; i < G_N_ELEMENTS(looks); i++)
        assert_int_equal(stall_share_note(&share, (uint64_t)(looks[i].at_s * 1e6),
                                          (uint64_t)(looks[i].total_s * 1e6)),
                         looks[i].expected);
}

/* However often it looks. */
static void stall_share_of_many_looks(void **state)
{
    StallShare share = {0};
    uint32_t told = 0;

    for (uint64_t usec = 0; usec <= 3000000000; usec += 37000)
        told = stall_share_note(&share, usec, usec / 4);
    assert_in_range(told, 2490, 2500);
    for (uint64_t usec = 3001000000; usec <= 3060000000; usec += 1000000)
        told = stall_share_note(&share, usec, 3000000000 / 4);
    assert_int_equal(told, 0);
}

/* To a file that is none of the kernel's: what is written is the trigger. */
static void stall_open_writes_the_trigger(void **state)
{
    const char *dir = *state;
    g_autofree char *path = g_build_filename(dir, "memory", NULL);
    g_autofree char *text = NULL;
    gsize length = 0;

    assert_true(g_file_set_contents(path, "", 0, NULL));
    int fd = stall_open(path, 150);

    assert_true(fd >= 0);
    close(fd);
    assert_true(g_file_get_contents(path, &text, &length, NULL));
    assert_string_equal(text, "some 150000 1000000");
    assert_int_equal(length, strlen(text) + 1);
}

static void stall_open_of_a_kernel_without_it_fails(void **state)
{
    const char *dir = *state;
    g_autofree char *path = g_build_filename(dir, "missing", NULL);

    assert_int_equal(stall_open(path, 150), -1);
    assert_int_equal(stall_open(dir, 150), -1);
}

static void usage_note_resident_only_raises(void **state)
{
    Berth__Usage usage = BERTH__USAGE__INIT;

    usage_note_resident(&usage, 5 * 1024 + 1023);
    assert_int_equal(usage.memory_peak_mib, 5);
    usage_note_resident(&usage, 1024);
    assert_int_equal(usage.memory_peak_mib, 5);
    usage_note_resident(&usage, 6 * 1024);
    assert_int_equal(usage.memory_peak_mib, 6);
}

static void cgroups_parse_flat_cases(void **state)
{
    static const char events[] = "low 1\noom 2\noom_kill 3\noom_group_kill 4\n";
    static const struct {
        const char *key;
        uint64_t expected;
    } cases[] = {{"low", 1}, {"oom", 2}, {"oom_kill", 3}, {"oom_k", 0}, {"kill", 0}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_int_equal(cgroups_parse_flat(events, cases[i].key), cases[i].expected);
}

static void cgroups_limits_leave_room_for_pid_1(void **state)
{
    static const struct {
        uint64_t total_mib;
        uint64_t overhead_mib;
        uint64_t memory_kib; /* the job's */
        uint64_t pids;
    } cases[] = {
        {16, 12, 8 * 1024, 256}, /* half of what there is */
        {52, 12, 38 * 1024, 832},
        {512, 20, 484 * 1024, 8192},
        {1024, 30, 978 * 1024, 16384},
        {65536, 500, 65004 * 1024, 1048576},
        {1048576, 9000, 1039544 * 1024, 4194304},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint64_t total_kib = cases[i].total_mib * 1024;

        assert_int_equal(cgroups_job_memory_bytes(total_kib, cases[i].overhead_mib * 1024) / 1024,
                         cases[i].memory_kib);
        assert_int_equal(cgroups_job_pids(total_kib), cases[i].pids);
    }
}

static void cgroups_slow_who_may_be_given_more_before_he_is_full(void **state)
{
    static const struct {
        uint64_t limit_mib, total_mib, max_mib;
        uint64_t slow_mib; /* the last of it; 0: none */
    } cases[] = {
        {100, 114, 0, 0},
        {100, 114, 192, 12},
        {160, 178, 192, 0}, /* it has all */
        {100, 114, 384, 12},
        {48, 64, 128, 6},
        {350, 370, 384, 0},
        {4096, 4200, 8192, 170},
        {65536, 66000, 131072, 1024},
        {65536, 131000, 131072, 0},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        uint64_t limit = cases[i].limit_mib << 20;
        uint64_t high =
            cgroups_job_high_bytes(limit, cases[i].total_mib * 1024, cases[i].max_mib * 1024);

        assert_int_equal(high == 0 ? 0 : (limit - high) >> 20, cases[i].slow_mib);
    }
}

/* With what is kept for the kernel, it can take one block more however many it has taken. */
static void cgroups_overhead_grows_with_the_guest(void **state)
{
    static const struct {
        uint64_t total_mib;
        uint64_t overhead_mib;
    } cases[] = {{64, 14},  {114, 14}, {118, 16},        {242, 16},
                 {243, 18}, {370, 18}, {114 + 8192, 142}};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_int_equal(cgroups_overhead_kib(14 * 1024, 114 * 1024, cases[i].total_mib * 1024),
                         cases[i].overhead_mib * 1024);
}

static void memory_limit_is_due_cases(void **state)
{
    static const struct {
        uint64_t second;
        uint64_t total_kib;
        bool is_due;
    } steps[] = {
        {1, 200, false}, /* as it began */
        {2, 300, true},   {3, 300, false},   {4, 250, false},  {63, 250, false},
        {63, 240, false}, /* it still shrinks */
        {64, 300, false}, /* it has got it back */
        {65, 240, false}, {124, 240, false}, {125, 240, true}, {126, 260, true},
    };
    MemoryLimit limit = {200, 200, 0};

    for (size_t i = 0; i < G_N_ELEMENTS(steps); i++) {
        bool is_due = memory_limit_is_due(&limit, steps[i].total_kib, steps[i].second * 1000000u);

        if (is_due != steps[i].is_due)
            fail_msg("step %zu: %d", i, is_due);
        if (is_due)
            limit.total_kib = steps[i].total_kib;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(usage_parse_memory_cases),
        cmocka_unit_test(free_memory_is_given_back_where_the_host_holds_it),
        cmocka_unit_test(cpus_next_range_cases),
        cmocka_unit_test(pressure_parse_cases),
        cmocka_unit_test(pressure_parse_total_cases),
        cmocka_unit_test(stall_share_is_of_the_last_ten_seconds),
        cmocka_unit_test(stall_share_of_many_looks),
        cmocka_unit_test(usage_note_resident_only_raises),
        cmocka_unit_test_setup_teardown(stall_open_writes_the_trigger, tempdir_make,
                                        tempdir_remove),
        cmocka_unit_test_setup_teardown(stall_open_of_a_kernel_without_it_fails, tempdir_make,
                                        tempdir_remove),
        cmocka_unit_test(cgroups_parse_flat_cases),
        cmocka_unit_test(cgroups_limits_leave_room_for_pid_1),
        cmocka_unit_test(cgroups_slow_who_may_be_given_more_before_he_is_full),
        cmocka_unit_test(cgroups_overhead_grows_with_the_guest),
        cmocka_unit_test(memory_limit_is_due_cases),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
