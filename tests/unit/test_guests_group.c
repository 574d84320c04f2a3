/* SPDX-License-Identifier: Apache-2.0 */
/* Where libvirt's groups are, and what their files say, in both versions of the kernel's control groups. */
#include <config.h>

#include <glib/gstdio.h>

#include "nodeagent/guests_group.h"
#include "tests/lib/assert.h"
#include "tests/lib/files.h"
#include "tests/lib/tempdir.h"

#define V1_PROCESS                                                                                 \
    "5:cpu,cpuacct:/machine/qemu-1-berth-1-0-0-1.libvirt-qemu/emulator\n"                          \
    "4:memory:/machine/qemu-1-berth-1-0-0-1.libvirt-qemu\n"                                        \
    "0::/\n"
#define V2_PROCESS "0::/machine.slice/machine-qemu\\x2d1\\x2dberth.scope/libvirt/emulator\n"

/* Mounted in the test's directory. */
static void put_mount(const char *dir, const char *format)
{
    g_auto(GStrv) parts = g_strsplit(format, "@", 2);
    g_autofree char *text =
        g_strconcat("22 1 8:1 / / rw - ext4 /dev/sda1 rw\n", parts[0], dir, parts[1], NULL);
    put_file(dir, "proc/self/mountinfo", text);
}

static void put_v1(const char *dir)
{
    put_mount(dir, "31 22 0:27 / @/memory rw,nosuid shared:9 - cgroup cgroup rw,memory\n");
    put_file(dir, "proc/7/cgroup", V1_PROCESS);
    put_file(dir, "memory/machine/memory.limit_in_bytes", "9223372036854771712\n");
    put_file(dir, "memory/machine/memory.usage_in_bytes", "314572800\n");
    put_file(dir, "memory/machine/memory.swappiness", "60\n");
    put_file(dir, "memory/machine/memory.stat",
             "cache 1\ntotal_cache 104857600\ntotal_rss 1\ntotal_shmem 10485760\n");
}

static void put_v2(const char *dir)
{
    put_mount(dir, "31 22 0:27 / @/unified rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
    put_file(dir, "proc/7/cgroup", V2_PROCESS);
    put_file(dir, "unified/machine.slice/memory.max", "max\n");
    put_file(dir, "unified/machine.slice/memory.current", "314572800\n");
    put_file(dir, "unified/machine.slice/memory.swap.max", "max\n");
    put_file(dir, "unified/machine.slice/memory.stat",
             "anon 200000000\nfile 104857600\nfile_mapped 5\nshmem 10485760\n");
}

static BerthGuestsGroup *find(const char *dir, GError **error)
{
    g_autofree char *proc = g_build_filename(dir, "proc", NULL);
    return berth_guests_group_find(proc, 7, error);
}

static void check_use_and_limit(const char *dir, const char *limit_file)
{
    guint64 used_mib;
    g_autoptr(BerthGuestsGroup) group = find(dir, NULL);
    assert_non_null(group);
    assert_true(berth_guests_group_used(group, &used_mib, NULL));
    assert_int_equal(used_mib, 300 - 90);
    assert_true(berth_guests_group_limit(group, 1024, NULL));
    assert_file(dir, limit_file, "1073741824");
}

static void in_version_1(void **state)
{
    put_v1(*state);
    check_use_and_limit(*state, "memory/machine/memory.limit_in_bytes");
}

static void in_version_2(void **state)
{
    put_v2(*state);
    check_use_and_limit(*state, "unified/machine.slice/memory.max");
}

static void limit_that_is_so_already_is_seen(void **state)
{
    gboolean has_limit;
    put_v1(*state);
    put_file(*state, "memory/machine/memory.limit_in_bytes", "1073741824\n");
    g_autoptr(BerthGuestsGroup) group = find(*state, NULL);
    assert_true(berth_guests_group_has_limit(group, 1024, &has_limit, NULL));
    assert_true(has_limit);
    assert_true(berth_guests_group_has_limit(group, 1025, &has_limit, NULL));
    assert_false(has_limit);
}

static void nothing_is_swapped_out_in_version_2(void **state)
{
    const char *dir = *state;
    put_v2(dir);
    put_file(dir, "unified/machine.slice/guest.scope/memory.swap.max", "max\n");
    g_autoptr(BerthGuestsGroup) group = find(dir, NULL);
    assert_true(berth_guests_group_keep_from_swap(group, NULL));
    assert_file(dir, "unified/machine.slice/memory.swap.max", "0");
    assert_file(dir, "unified/machine.slice/guest.scope/memory.swap.max", "max\n");
}

/* Who is there already has his own, and who comes begins with that of the group above. */
static void nothing_is_swapped_out_in_version_1(void **state)
{
    const char *dir = *state;
    put_v1(dir);
    put_file(dir, "memory/machine/qemu-1.libvirt-qemu/memory.swappiness", "60\n");
    put_file(dir, "memory/machine/qemu-1.libvirt-qemu/libvirt/memory.swappiness", "60\n");
    put_file(dir, "memory/machine/gone.libvirt-qemu/other", "\n");
    g_autoptr(BerthGuestsGroup) group = find(dir, NULL);
    assert_true(berth_guests_group_keep_from_swap(group, NULL));
    assert_file(dir, "memory/machine/memory.swappiness", "0");
    assert_file(dir, "memory/machine/qemu-1.libvirt-qemu/memory.swappiness", "0");
    assert_file(dir, "memory/machine/qemu-1.libvirt-qemu/libvirt/memory.swappiness", "0");
    assert_file(dir, "memory/machine/gone.libvirt-qemu/other", "\n");
}

static void what_keeps_from_swap_is_not_written_again(void **state)
{
    const char *dir = *state;
    put_v2(dir);
    put_file(dir, "unified/machine.slice/memory.swap.max", "0\n");
    g_autoptr(BerthGuestsGroup) group = find(dir, NULL);
    assert_true(berth_guests_group_keep_from_swap(group, NULL));
    assert_file(dir, "unified/machine.slice/memory.swap.max", "0\n");
}

static void kernel_that_keeps_nothing_from_swap_is_told(void **state)
{
    const char *dir = *state;
    g_autoptr(GError) unsupported = NULL, gone = NULL;
    g_autofree char *directory = g_build_filename(dir, "unified/machine.slice", NULL);
    g_autofree char *hidden = g_build_filename(dir, "unified/other", NULL);
    put_v2(dir);
    g_autofree char *file = g_build_filename(directory, "memory.swap.max", NULL);
    assert_int_equal(g_unlink(file), 0);
    g_autoptr(BerthGuestsGroup) group = find(dir, NULL);
    assert_false(berth_guests_group_keep_from_swap(group, &unsupported));
    assert_berth_error(unsupported, BERTH_ERROR_UNSUPPORTED, "memory.swap.max");
    assert_int_equal(g_rename(directory, hidden), 0);
    assert_false(berth_guests_group_keep_from_swap(group, &gone));
    assert_berth_error(gone, BERTH_ERROR_NOT_FOUND, "memory.swap.max");
}

/* As of guests that were there before. */
static void what_is_in_swap_counts_as_used(void **state)
{
    const char *dir = *state;
    guint64 used_mib;
    put_v1(dir);
    put_file(dir, "memory/machine/memory.stat",
             "swap 1\ntotal_cache 104857600\ntotal_shmem 10485760\ntotal_swap 52428800\n");
    g_autoptr(BerthGuestsGroup) v1 = find(dir, NULL);
    assert_true(berth_guests_group_used(v1, &used_mib, NULL));
    assert_int_equal(used_mib, 300 - 90 + 50);
    put_v2(dir);
    put_file(dir, "unified/machine.slice/memory.swap.current", "73400320\n");
    g_autoptr(BerthGuestsGroup) v2 = find(dir, NULL);
    assert_true(berth_guests_group_used(v2, &used_mib, NULL));
    assert_int_equal(used_mib, 300 - 90 + 70);
}

static void kernels_kills_are_counted_in_version_2(void **state)
{
    const char *dir = *state;
    BerthGuestsKills kills;
    g_autoptr(GError) unsupported = NULL, missing = NULL;
    put_v2(dir);
    g_autoptr(BerthGuestsGroup) v2 = find(dir, NULL);
    assert_false(berth_guests_group_kills(v2, &kills, &missing));
    assert_berth_error(missing, BERTH_ERROR_NOT_FOUND, "memory.events");
    put_file(dir, "unified/machine.slice/memory.events",
             "low 7\nhigh 8\nmax 9\noom 2\noom_kill 3\noom_group_kill 4\n");
    assert_true(berth_guests_group_kills(v2, &kills, NULL));
    assert_int_equal(kills.at_limit, 2);
    assert_int_equal(kills.killed, 3);
    put_v1(dir);
    g_autoptr(BerthGuestsGroup) v1 = find(dir, NULL);
    assert_false(berth_guests_group_kills(v1, &kills, &unsupported));
    assert_berth_error(unsupported, BERTH_ERROR_UNSUPPORTED, "version 1");
}

/* As in a container: the mount shows a part of the hierarchy. */
static void mount_of_a_part(void **state)
{
    const char *dir = *state;
    put_v1(dir);
    put_mount(dir, "31 22 0:27 /part @/memory rw - cgroup cgroup rw,memory\n");
    put_file(dir, "proc/7/cgroup", "4:memory:/part/machine/qemu-1-b.libvirt-qemu/emulator\n");
    g_autoptr(BerthGuestsGroup) group = find(dir, NULL);
    assert_non_null(group);
    assert_true(g_str_has_suffix(berth_guests_group_path(group), "/memory/machine"));
}

static void what_is_not_there_is_told(void **state)
{
    const char *dir = *state;
    gboolean has_limit;
    g_autoptr(GError) no_process = NULL, no_guest = NULL, no_controller = NULL, gone = NULL;
    g_autoptr(GError) unread = NULL;
    assert_null(find(dir, &no_process));
    assert_berth_error(no_process, BERTH_ERROR_NOT_FOUND, "proc/7/cgroup");
    put_v1(dir);
    put_file(dir, "proc/7/cgroup", "4:memory:/user.slice\n");
    assert_null(find(dir, &no_guest));
    assert_berth_error(no_guest, BERTH_ERROR_NOT_FOUND, "no control group");
    put_file(dir, "proc/7/cgroup", V2_PROCESS); /* and only version 1 is mounted */
    assert_null(find(dir, &no_controller));
    assert_berth_error(no_controller, BERTH_ERROR_UNSUPPORTED, "memory controller");
    put_v1(dir);
    g_autoptr(BerthGuestsGroup) group = find(dir, NULL);
    g_autofree char *limit = g_build_filename(dir, "memory/machine/memory.limit_in_bytes", NULL);
    assert_int_equal(g_unlink(limit), 0);
    assert_false(berth_guests_group_limit(group, 1, &gone));
    assert_berth_error(gone, BERTH_ERROR_NOT_FOUND, "memory.limit_in_bytes");
    assert_false(berth_guests_group_has_limit(group, 1, &has_limit, &unread));
    assert_berth_error(unread, BERTH_ERROR_NOT_FOUND, "memory.limit_in_bytes");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(in_version_1),
        TEST(in_version_2),
        TEST(limit_that_is_so_already_is_seen),
        TEST(nothing_is_swapped_out_in_version_2),
        TEST(nothing_is_swapped_out_in_version_1),
        TEST(what_keeps_from_swap_is_not_written_again),
        TEST(kernel_that_keeps_nothing_from_swap_is_told),
        TEST(what_is_in_swap_counts_as_used),
        TEST(kernels_kills_are_counted_in_version_2),
        TEST(mount_of_a_part),
        TEST(what_is_not_there_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
