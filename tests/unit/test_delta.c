/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of numbers that are told by their differences. */
#include <config.h>

#include "common/delta.h"
#include "common/message.h"
#include "proto/berth.pb-c.h"
#include "tests/lib/assert.h"

static void assert_told(const Berth__Usage *before, const Berth__Usage *now, guint n_zeros)
{
    g_autoptr(GArray) zeros = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    Berth__Usage changed = BERTH__USAGE__INIT;
    Berth__Usage known = *before;
    berth_delta_make(&before->base, &now->base, &changed.base, zeros);
    assert_int_equal(zeros->len, n_zeros);
    for (guint twice = 0; twice < 2; twice++) {
        berth_delta_apply(&known.base, &changed.base, (uint32_t *)(void *)zeros->data, zeros->len);
        assert_true(berth_message_equal(&known.base, &now->base));
    }
}

static void delta_applied_once_or_twice_is_what_it_was_made_of(void **state)
{
    Berth__Usage none = BERTH__USAGE__INIT;
    Berth__Usage one = BERTH__USAGE__INIT;
    Berth__Usage other = BERTH__USAGE__INIT;
    one.cpu_usec = G_MAXUINT64;
    one.psi_memory_some = 1234;
    one.memory_total_mib = 64;
    other.cpu_usec = 5;
    other.oom_kills = G_MAXUINT32;
    other.memory_total_mib = 64;
    assert_told(&none, &none, 0);
    assert_told(&none, &one, 0);
    assert_told(&one, &other, 1);
    assert_told(&one, &none, 3);
}

static void delta_of_what_is_the_same_is_empty(void **state)
{
    g_autoptr(GArray) zeros = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    Berth__Usage one = BERTH__USAGE__INIT;
    Berth__Usage none = BERTH__USAGE__INIT;
    Berth__Usage changed = BERTH__USAGE__INIT;
    one.cpu_usec = 5;
    one.psi_cpu_some = 7;
    berth_delta_make(&one.base, &one.base, &changed.base, zeros);
    assert_true(berth_message_equal(&changed.base, &none.base));
}

static void numbers_of_a_newer_release_change_nothing(void **state)
{
    const uint32_t zeros[] = {1000, 0, 1};
    Berth__Usage known = BERTH__USAGE__INIT;
    known.cpu_usec = 5;
    known.psi_cpu_some = 7;
    berth_delta_apply(&known.base, NULL, zeros, G_N_ELEMENTS(zeros));
    assert_int_equal(known.cpu_usec, 0);
    assert_int_equal(known.psi_cpu_some, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(delta_applied_once_or_twice_is_what_it_was_made_of),
        cmocka_unit_test(delta_of_what_is_the_same_is_empty),
        cmocka_unit_test(numbers_of_a_newer_release_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
