/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "common/node_list.h"

#include <string.h>

static void parse_lists_give_their_names_in_order(void **state)
{
    static const struct {
        const char *text;
        const char *names;
    } cases[] = {
        {"n1", "n1"},
        {"n1,n2", "n1 n2"},
        {"n2,n1,n2", "n2 n1"},
        {"n[1-3,7]", "n1 n2 n3 n7"},
        {"n[3,1-4]", "n3 n1 n2 n4"},
        {"n[08-11]", "n08 n09 n10 n11"},
        {"n[098-101]", "n098 n099 n100 n101"},
        {"n[0-2]", "n0 n1 n2"},
        {"n[1-3,07]", "n1 n2 n3 n07"},
        {"r[1-2]n[1-3]", "r1n1 r1n2 r1n3 r2n1 r2n2 r2n3"},
        {"[1-2].rack[7].x,y", "1.rack7.x 2.rack7.x y"},
        {"n[1-2],m[1-2]-ib", "n1 n2 m1-ib m2-ib"},
        {"a[1,2][3,4]", "a13 a14 a23 a24"},
        {"n[999999999]", "n999999999"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_auto(GStrv) names = berth_node_list_parse(cases[i].text, &error);
        assert_no_error(error);
        g_autofree char *joined = g_strjoinv(" ", names);
        assert_string_equal(joined, cases[i].names);
    }
}

static void parse_what_is_no_list_says_why(void **state)
{
    static const struct {
        const char *text;
        const char *why;
    } cases[] = {
        {"", "a name is empty"},
        {"n1,", "a name is empty"},
        {",n1", "a name is empty"},
        {"n1,,n2", "a name is empty"},
        {"n[", "not closed"},
        {"n[]", "9 digits"},
        {"n[1", "not closed"},
        {"n[1-", "not closed"},
        {"n[1-2", "not closed"},
        {"n[1-2,", "not closed"},
        {"n[1-2-3]", "not closed"},
        {"n[-1]", "9 digits"},
        {"n[a-c]", "9 digits"},
        {"n[1 - 2]", "not closed"},
        {"n[[1]]", "9 digits"},
        {"n1]", "not open"},
        {"n[1]]", "not open"},
        {"n[3-1]", "ends before it begins"},
        {"n[1000000000]", "9 digits"},
        {"n[1-999999999]", "more than 100000"},
        {"n[1-1000][1-1000]", "more than 100000"},
        {"n[0-999999999][0-999999999][0-999999999]", "more than 100000"},
        {"n[1-100000],n0", "more than 100000"},
        {"n 1", "space"},
        {"n\t1", "control"},
        {"n\377", "UTF-8"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(berth_node_list_parse(cases[i].text, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].why);
    }
}

static void parse_largest_list_is_taken(void **state)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = berth_node_list_parse("n[1-100000]", &error);
    assert_no_error(error);
    assert_int_equal(g_strv_length(names), BERTH_NODE_LIST_MAX);
    assert_string_equal(names[99999], "n100000");
}

static void parse_name_that_is_too_long_is_refused(void **state)
{
    char text[300];
    g_autoptr(GError) error = NULL;
    memset(text, 'n', 254);
    text[254] = '\0';
    assert_null(berth_node_list_parse(text, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "longer than 253");
}

static void parse_all_texts_make_one_list(void **state)
{
    const char *const texts[] = {"n[1-2]", "m", "n2,n3"};
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = berth_node_list_parse_all(texts, 3, &error);
    assert_no_error(error);
    g_autofree char *joined = g_strjoinv(" ", names);
    assert_string_equal(joined, "n1 n2 m n3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_lists_give_their_names_in_order),
        cmocka_unit_test(parse_what_is_no_list_says_why),
        cmocka_unit_test(parse_largest_list_is_taken),
        cmocka_unit_test(parse_name_that_is_too_long_is_refused),
        cmocka_unit_test(parse_all_texts_make_one_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
