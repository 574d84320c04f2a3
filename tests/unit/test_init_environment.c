/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "images/init/environment.h"

#include <glib.h>

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Environment, environment_free)

#define BLOCK(text) text, sizeof(text) - 1

static void environment_put_block_cases(void **state)
{
    static const struct {
        const char *block;
        size_t length;
        const char *expected; /* joined by | */
    } cases[] = {
        {BLOCK(""), "A=1"},
        {BLOCK("B=2\0"), "A=1|B=2"},
        {BLOCK("B=2"), "A=1|B=2"}, /* the last NUL is missing */
        {BLOCK("A=x\0B=2\0A=y\0"), "A=y|B=2"},
        {BLOCK("B=\0C=a=b\0"), "A=1|B=|C=a=b"},
        {BLOCK("=x\0novalue\0\0C=3\0"), "A=1|C=3"}, /* these are no variables */
        {BLOCK("AB=2\0"), "A=1|AB=2"},
        {BLOCK("L=one\ntwo\0"), "A=1|L=one\ntwo"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Environment) environment = environment_new();
        g_autofree char *joined = NULL;

        assert_true(environment_set(environment, "A", "1"));
        assert_true(environment_put_block(environment, cases[i].block, cases[i].length));
        joined = g_strjoinv("|", environment_list(environment));
        assert_string_equal(joined, cases[i].expected);
    }
}

static void environment_get_finds_whole_names_only(void **state)
{
    g_autoptr(Environment) environment = environment_new();

    assert_true(environment_put(environment, "PATH=/bin"));
    assert_true(environment_put(environment, "EMPTY="));
    assert_string_equal(environment_get(environment, "PATH"), "/bin");
    assert_string_equal(environment_get(environment, "EMPTY"), "");
    assert_null(environment_get(environment, "PAT"));
    assert_null(environment_get(environment, "PATHS"));
}

static void environment_with_many_variables_keeps_all(void **state)
{
    g_autoptr(Environment) environment = environment_new();

    for (unsigned round = 0; round < 2; round++)
        for (unsigned i = 0; i < 1000; i++) {
            g_autofree char *entry = g_strdup_printf("V%u=%u", i, i + round);

            assert_true(environment_put(environment, entry));
        }
    assert_int_equal(g_strv_length(environment_list(environment)), 1000);
    assert_string_equal(environment_get(environment, "V999"), "1000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(environment_put_block_cases),
        cmocka_unit_test(environment_get_finds_whole_names_only),
        cmocka_unit_test(environment_with_many_variables_keeps_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
