/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of a QEMU and of its threads, in files that the test writes. */
#include <config.h>

#include "nodeagent/hypervisor/private.h"
#include "tests/lib/assert.h"
#include "tests/lib/tempdir.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

/* As the kernel's change: the file stays the one that it is. */
static void put(const char *dir, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autofree char *parent = g_path_get_dirname(path);
    assert_int_equal(g_mkdir_with_parents(parent, 0700), 0);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

/* As one of a thread that is no more: nothing can be read of it. */
static void drop(const char *dir, const char *name)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    put(dir, name, "");
    assert_int_equal(g_unlink(path), 0);
}

static BerthQemuCounters *counters_that(const char *dir, gboolean may_keep)
{
    g_autofree char *groups = g_build_filename(dir, "cgroup", NULL);
    return berth_qemu_counters_new_at(dir, dir, groups, "berth-1-0-0-1", may_keep);
}

static BerthQemuCounters *counters_in(const char *dir)
{
    return counters_that(dir, TRUE);
}

static gboolean is_known(const char *dir)
{
    g_autoptr(BerthQemuCounters) counters = counters_in(dir);
    BerthQemuUsage usage;
    return berth_qemu_counters_read(counters, &usage);
}

static void put_qemu(const char *dir)
{
    put(dir, "berth-1-0-0-1.pid", "42\n");
    put(dir, "42/task/42/comm", "qemu-system-x86\n");
    put(dir, "42/task/42/schedstat", "1 999999999 1\n");
    put(dir, "42/task/43/comm", "CPU 0/KVM\n");
    put(dir, "42/task/43/schedstat", "3000000 5000000 1587\n");
    put(dir, "42/task/44/comm", "CPU 1/KVM\n");
    put(dir, "42/task/44/schedstat", "1000999 7000999 1587\n");
}

static void vcpus_use_in_all_and_the_one_that_waited_most_counts(void **state)
{
    const char *dir = *state;
    g_autofree char *statm =
        g_strdup_printf("999999 %ld 3 4 5\n", (100L << 20) / sysconf(_SC_PAGESIZE));
    BerthQemuUsage usage;
    put_qemu(dir);
    put(dir, "42/statm", statm);
    g_autoptr(BerthQemuCounters) counters = counters_in(dir);
    assert_true(berth_qemu_counters_read(counters, &usage));
    assert_int_equal(usage.cpu_usec, 4000);
    assert_int_equal(usage.starved_usec, 7000);
    assert_int_equal(usage.throttled_usec, 0);
    assert_int_equal(usage.host_memory_mib, 100);
}

static void quotas_of_vcpus_and_of_their_domain_count_in_version_1(void **state)
{
    static const char of_43[] = "3:cpuset:/other\n5:cpu,cpuacct:/machine/guest/vcpu0\n0::/x\n";
    static const char of_44[] = "5:cpu,cpuacct:/machine/guest/vcpu1\n";
    const char *dir = *state;
    BerthQemuUsage usage;
    put_qemu(dir);
    put(dir, "42/task/43/cgroup", of_43);
    put(dir, "42/task/44/cgroup", of_44);
    put(dir, "cgroup/cpu/machine/guest/cpu.stat",
        "nr_periods 1\nnr_throttled 1\nthrottled_time 100999\n");
    put(dir, "cgroup/cpu/machine/guest/vcpu0/cpu.stat",
        "nr_periods 1\nnr_throttled 1\nthrottled_time 2000\n");
    put(dir, "cgroup/cpu/machine/guest/vcpu1/cpu.stat",
        "nr_periods 1\nnr_throttled 1\nthrottled_time 3000\n");
    g_autoptr(BerthQemuCounters) counters = counters_in(dir);
    assert_true(berth_qemu_counters_read(counters, &usage));
    assert_int_equal(usage.throttled_usec, 105);
}

static void quotas_of_vcpus_and_of_their_domain_count_in_version_2(void **state)
{
    const char *dir = *state;
    BerthQemuUsage usage;
    put_qemu(dir);
    put(dir, "42/task/43/cgroup", "0::/m.slice/g.scope/libvirt/vcpu0\n");
    put(dir, "42/task/44/cgroup", "0::/m.slice/g.scope/libvirt/vcpu1\n");
    put(dir, "cgroup/m.slice/g.scope/cpu.stat", "usage_usec 1\nnr_throttled 0\nthrottled_usec 0\n");
    put(dir, "cgroup/m.slice/g.scope/libvirt/cpu.stat",
        "usage_usec 1\nnr_throttled 1\nthrottled_usec 100\n");
    put(dir, "cgroup/m.slice/g.scope/libvirt/vcpu0/cpu.stat", "usage_usec 9\nthrottled_usec 20\n");
    put(dir, "cgroup/m.slice/g.scope/libvirt/vcpu1/cpu.stat", "usage_usec 9\nthrottled_usec 3\n");
    g_autoptr(BerthQemuCounters) counters = counters_in(dir);
    assert_true(berth_qemu_counters_read(counters, &usage));
    assert_int_equal(usage.throttled_usec, 123);
}

static void put_throttled(const char *dir, const char *group, guint64 usec)
{
    g_autofree char *name = g_strdup_printf("cgroup/cpu/machine/guest%s/cpu.stat", group);
    g_autofree char *text = g_strdup_printf(
        "nr_periods 1\nnr_throttled 1\nthrottled_time %" G_GUINT64_FORMAT "\n", usec * 1000);
    put(dir, name, text);
}

static guint64 starved(BerthQemuCounters *counters)
{
    BerthQemuUsage usage;
    assert_true(berth_qemu_counters_read(counters, &usage));
    return usage.starved_usec;
}

/* A guest that was given less CPU is not starved by its host; one that its host holds back is. */
static void what_the_quota_of_the_domain_takes_is_not_starved(void **state)
{
    const char *dir = *state;
    put_qemu(dir);
    put(dir, "42/task/43/cgroup", "5:cpu,cpuacct:/machine/guest/vcpu0\n");
    put(dir, "42/task/44/cgroup", "5:cpu,cpuacct:/machine/guest/vcpu1\n");
    put_throttled(dir, "", 8000);
    put_throttled(dir, "/vcpu0", 0);
    put_throttled(dir, "/vcpu1", 6000);
    g_autoptr(BerthQemuCounters) counters = counters_in(dir);
    assert_int_equal(starved(counters), 7000 - 8000 / 2);
    put_throttled(dir, "", 12000); /* the other one's */
    assert_int_equal(starved(counters), 3000);
    put(dir, "42/task/43/schedstat", "1000999 12000999 1587\n");
    assert_int_equal(starved(counters), 12000 - 12000 / 2);
    /* It grows, and has more of them. */
    put(dir, "42/task/45/comm", "CPU 2/KVM\n");
    put(dir, "42/task/45/schedstat", "0 0 0\n");
    berth_qemu_counters_find(counters);
    assert_int_equal(starved(counters), 6000);
}

/* It has ended, and another has its name; and that has got a vCPU. */
static void other_qemu_and_new_vcpus_are_found(void **state)
{
    const char *dir = *state;
    BerthQemuUsage usage;
    put_qemu(dir);
    g_autoptr(BerthQemuCounters) counters = counters_in(dir);
    assert_true(berth_qemu_counters_read(counters, &usage));
    drop(dir, "42/task/44/schedstat");
    put(dir, "berth-1-0-0-1.pid", "50");
    put(dir, "50/task/51/comm", "CPU 0/TCG\n");
    put(dir, "50/task/51/schedstat", "9000 8000 1\n");
    assert_true(berth_qemu_counters_read(counters, &usage));
    assert_int_equal(usage.cpu_usec, 9);
    put(dir, "50/task/52/comm", "CPU 1/TCG\n");
    put(dir, "50/task/52/schedstat", "1000 0 1\n");
    berth_qemu_counters_find(counters);
    assert_true(berth_qemu_counters_read(counters, &usage));
    assert_int_equal(usage.cpu_usec, 10);
}

static void what_cannot_be_read_is_not_known(void **state)
{
    const char *dir = *state;
    assert_false(is_known(dir));
    put(dir, "berth-1-0-0-1.pid", "../42\n");
    assert_false(is_known(dir));
    put(dir, "berth-1-0-0-1.pid", "42");
    assert_false(is_known(dir)); /* it has ended */
    put(dir, "42/task/43/comm", "CPU 0/KVM\n");
    assert_false(is_known(dir));
    put(dir, "42/task/43/schedstat", "");
    assert_false(is_known(dir));
    put(dir, "42/task/43/schedstat", "1 2 3\n");
    assert_true(is_known(dir));
}

static guint n_looks; /* for how many descriptors are left */
static gboolean are_few;

gboolean __wrap_berth_descriptors_are_few(void);
gboolean __wrap_berth_descriptors_are_few(void)
{
    n_looks++;
    return are_few;
}

/* This process's descriptors of files below DIR. GLib's thread, which ran the program that removed the directory of the test
 * before, may be closing its own at this moment. */
static guint count_open(const char *dir)
{
    g_autoptr(GDir) fds = g_dir_open("/proc/self/fd", 0, NULL);
    const char *fd;
    guint n = 0;
    while ((fd = g_dir_read_name(fds)) != NULL) {
        g_autofree char *link = g_build_filename("/proc/self/fd", fd, NULL);
        g_autofree char *target = g_file_read_link(link, NULL);
        if (target != NULL && g_str_has_prefix(target, dir))
            n++;
    }
    return n;
}

/* Of each vCPU one, and one for the memory; it is looked once whether there are descriptors for them. */
static void files_stay_open_where_they_may(void **state)
{
    static const struct {
        gboolean may_keep, are_few;
        guint kept;
    } cases[] = {{TRUE, FALSE, 3}, {TRUE, TRUE, 0}, {FALSE, FALSE, 0}};
    const char *dir = *state;
    put_qemu(dir);
    put(dir, "42/statm", "1 2 3\n");
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(BerthQemuCounters) counters = counters_that(dir, cases[i].may_keep);
        BerthQemuUsage usage;
        are_few = cases[i].are_few;
        n_looks = 0;
        assert_true(berth_qemu_counters_read(counters, &usage));
        assert_int_equal(usage.cpu_usec, 4000);
        assert_int_equal(count_open(dir), cases[i].kept);
        assert_int_equal(n_looks, cases[i].may_keep ? 1 : 0);
        assert_true(berth_qemu_counters_read(counters, &usage));
        assert_int_equal(n_looks, cases[i].may_keep ? 1 : 0);
    }
    are_few = FALSE;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, tempdir_make, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(vcpus_use_in_all_and_the_one_that_waited_most_counts),
        TEST(quotas_of_vcpus_and_of_their_domain_count_in_version_1),
        TEST(quotas_of_vcpus_and_of_their_domain_count_in_version_2),
        TEST(what_the_quota_of_the_domain_takes_is_not_starved),
        TEST(other_qemu_and_new_vcpus_are_found),
        TEST(what_cannot_be_read_is_not_known),
        TEST(files_stay_open_where_they_may),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
