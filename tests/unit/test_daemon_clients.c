/* SPDX-License-Identifier: Apache-2.0 */
/* How much of its memory berthd gives to users' connections. */
#include <config.h>

#include "scheduler/daemon/clients.h"
#include "tests/lib/assert.h"

#define MIB ((guint64)1 << 20)
/* The largest request as it came, as it is read, and its answer (listeners.c). */
#define LARGEST_BYTES (3 * 4 * MIB)

static const struct {
    guint64 memory_mib, all_mib, user_mib;
} cases[] = {
    {1 << 20, 512, 64}, {2048, 512, 64}, {2044, 511, 63}, {1024, 256, 32},
    {512, 128, 16},     {256, 64, 16},   {64, 16, 16},    {1, 16, 16},
};

static void room_of_clients_is_a_part_of_the_memory(void **state)
{
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        BerthClientRoom room = berth_client_room(cases[i].memory_mib * MIB);
        assert_int_equal(room.all_bytes / MIB, cases[i].all_mib);
        assert_int_equal(room.user_bytes / MIB, cases[i].user_mib);
        assert_true(room.user_bytes > LARGEST_BYTES);
        assert_true(room.all_bytes + room.least_bytes > LARGEST_BYTES);
    }
}

/* Eight of them take nothing of their answers: the last quarter is not begun. */
static void few_users_do_not_keep_berthd_from_taking_jobs(void **state)
{
    for (guint64 memory = 256 * MIB; memory <= 4096 * MIB; memory += 32 * MIB) {
        BerthClientRoom room = berth_client_room(memory);
        assert_true(room.all_bytes + 8 * room.least_bytes <= memory / 2);
        assert_true(8 * room.user_bytes <= memory / 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(room_of_clients_is_a_part_of_the_memory),
        cmocka_unit_test(few_users_do_not_keep_berthd_from_taking_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
