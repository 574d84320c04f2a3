/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* O_PATH, close_range() */
#include "tests/lib/assert.h"

#include "common/descriptors.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static void set_soft(rlim_t soft)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = soft;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void left_is_from_the_lowest_free_to_the_limit(void **state)
{
    set_soft(100);
    int fd = open("/", O_PATH | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(berth_descriptors_max(), 100);
    assert_int_equal(berth_descriptors_left(), 100 - (guint)fd - 1);
    set_soft((rlim_t)fd + 1);
    assert_int_equal(berth_descriptors_left(), 0);
    close(fd);
    assert_int_equal(berth_descriptors_left(), 1);
}

static void few_are_a_quarter_of_few_and_less_of_many(void **state)
{
    static const struct {
        rlim_t soft;
        int highest; /* that is in use */
        gboolean are_few;
    } cases[] = {{100, 50, FALSE}, {100, 80, TRUE}, {2000, 1500, FALSE}, {2000, 1800, TRUE}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        set_soft(cases[i].soft);
        int fd = -1;
        while (fd < cases[i].highest)
            assert_true((fd = open("/", O_PATH | O_CLOEXEC)) >= 0);
        assert_int_equal(berth_descriptors_are_few(), cases[i].are_few);
        assert_int_equal(close_range(4, G_MAXUINT, 0), 0);
    }
}

/* To the hard limit; a program that is started has what there was before. */
static void raised_limit_is_not_that_of_programs(void **state)
{
    const char *argv[] = {"sh", "-c", "ulimit -Sn", NULL};
    g_autofree char *output = NULL;
    g_autoptr(GError) error = NULL;
    struct rlimit limit;
    set_soft(128);
    berth_descriptors_raise_limit();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(limit.rlim_cur == limit.rlim_max);
    g_spawn_sync(NULL, (char **)argv, NULL, G_SPAWN_SEARCH_PATH, berth_descriptors_restore_limit,
                 NULL, &output, NULL, NULL, &error);
    assert_no_error(error);
    assert_string_equal(output, "128\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(left_is_from_the_lowest_free_to_the_limit),
        cmocka_unit_test(few_are_a_quarter_of_few_and_less_of_many),
        cmocka_unit_test(raised_limit_is_not_that_of_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
