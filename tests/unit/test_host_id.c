/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"
#include "tests/lib/tempdir.h"

#include "nodeagent/host_id.h"

/* The id of a host whose files say so; NULL: it has no such file. */
static char *id_of(const char *directory, const char *machine, const char *product)
{
    g_autofree char *machine_id = g_build_filename(directory, "machine-id", NULL);
    g_autofree char *product_uuid = g_build_filename(directory, "product_uuid", NULL);
    g_autofree char *none = g_build_filename(directory, "none", NULL);
    assert_true(g_file_set_contents(machine_id, machine ? machine : "", -1, NULL));
    assert_true(g_file_set_contents(product_uuid, product ? product : "", -1, NULL));
    return berth_host_id_new(machine ? machine_id : none, product ? product_uuid : none);
}

static void host_id_differs_with_either_part(void **state)
{
    g_autofree char *first = id_of(*state, "3d1219c7\n", "9bdfd2fa\n");
    const char *const others[][2] = {
        {"3d1219c8\n", "9bdfd2fa\n"}, {"3d1219c7\n", "9bdfd2fb\n"}, {NULL, "9bdfd2fa\n"},
        {"3d1219c7\n", NULL},         {"", "3d1219c7 9bdfd2fa"},
    };
    assert_int_equal(strlen(first), 32);
    assert_int_equal(strspn(first, "0123456789abcdef"), 32);
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++) {
        g_autofree char *other = id_of(*state, others[i][0], others[i][1]);
        assert_int_equal(strlen(other), 32);
        assert_string_not_equal(other, first);
    }
    g_autofree char *again = id_of(*state, "3d1219c7", "9bdfd2fa");
    assert_string_equal(again, first);
    assert_null(strstr(first, "3d1219c7"));
}

static void host_id_without_either_is_empty(void **state)
{
    g_autofree char *missing = id_of(*state, NULL, NULL);
    g_autofree char *empty = id_of(*state, "\n", "");
    assert_string_equal(missing, "");
    assert_string_equal(empty, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(host_id_differs_with_either_part, tempdir_make,
                                        tempdir_remove),
        cmocka_unit_test_setup_teardown(host_id_without_either_is_empty, tempdir_make,
                                        tempdir_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
