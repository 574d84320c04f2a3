/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel says of the threads of a QEMU, in files that the test writes. */
#include <config.h>

#include "nodeagent/hypervisor/private.h"
#include "tests/lib/assert.h"
#include "tests/lib/tempdir.h"

static void put(const char *dir, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    g_autofree char *parent = g_path_get_dirname(path);
    assert_int_equal(g_mkdir_with_parents(parent, 0700), 0);
    assert_true(g_file_set_contents(path, text, -1, NULL));
}

static guint64 wait_usec(const char *dir)
{
    return berth_vcpu_wait_usec(dir, dir, "berth-1-0-0-1");
}

static void vcpu_that_waited_most_counts(void **state)
{
    const char *dir = *state;
    put(dir, "berth-1-0-0-1.pid", "42\n");
    put(dir, "42/task/42/comm", "qemu-system-x86\n");
    put(dir, "42/task/42/schedstat", "1 999999999 1\n");
    put(dir, "42/task/43/comm", "CPU 0/KVM\n");
    put(dir, "42/task/43/schedstat", "178712288 5000000 1587\n");
    put(dir, "42/task/44/comm", "CPU 1/KVM\n");
    put(dir, "42/task/44/schedstat", "178712288 7000999 1587\n");
    assert_int_equal(wait_usec(dir), 7000);
}

static void what_cannot_be_read_is_not_known(void **state)
{
    const char *dir = *state;
    assert_int_equal(wait_usec(dir), 0);
    put(dir, "berth-1-0-0-1.pid", "../42\n");
    assert_int_equal(wait_usec(dir), 0);
    put(dir, "berth-1-0-0-1.pid", "42");
    assert_int_equal(wait_usec(dir), 0); /* it has ended */
    put(dir, "42/task/43/comm", "CPU 0/KVM\n");
    assert_int_equal(wait_usec(dir), 0);
    put(dir, "42/task/43/schedstat", "");
    assert_int_equal(wait_usec(dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(vcpu_that_waited_most_counts, tempdir_make, tempdir_remove),
        cmocka_unit_test_setup_teardown(what_cannot_be_read_is_not_known, tempdir_make,
                                        tempdir_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
