/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "common/index_set.h"

#include <string.h>

#define MANY 100u

static BerthIndexSet *parse(const char *text)
{
    g_autoptr(GError) error = NULL;
    BerthIndexSet *set = berth_index_set_parse(text, 1000000, &error);
    assert_no_error(error);
    return set;
}

static void assert_set(const BerthIndexSet *set, const char *text)
{
    g_autofree char *is = berth_index_set_format(set);
    assert_string_equal(is, text);
}

static void parse_reads_what_format_writes(void **state)
{
    static const struct {
        const char *text;
        const char *set;
        guint count;
    } cases[] = {
        {"7", "7", 1},
        {"0-9", "0-9", 10},
        {"0-9:3", "0-9:3", 4},
        {"0-10:3", "0-9:3", 4},
        {"5-9:100", "5", 1},
        {"1,2,3", "1-3", 3},
        {"1,3,5", "1-5:2", 3},
        {"1,3,6", "1,3,6", 3},
        {"1-5:2,7", "1-7:2", 4},
        {"3,1-2", "1-3", 3},
        {"10-19,0-9", "0-19", 20},
        {"0-9,5-14", "0-14", 15},
        {"0-10:2,1-9:2", "0-10", 11},
        {"0-6:2,0-6:3", "0-4:2,3,6", 5},
        {"5,5,5", "5", 1},
        {"1-9:4,20", "1-9:4,20", 4},
        {"0-4:4", "0,4", 2},
        {"0-999999", "0-999999", 1000000},
        {"999999999", "999999999", 1},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(BerthIndexSet) set = parse(cases[i].text);
        g_autofree char *text = berth_index_set_format(set);
        g_autoptr(BerthIndexSet) again = parse(text);
        if (strcmp(cases[i].text, "0-6:2,0-6:3") != 0) /* it can be written in more than one way */
            assert_string_equal(text, cases[i].set);
        assert_int_equal(berth_index_set_count(set), cases[i].count);
        assert_set(again, text);
    }
}

static void parse_what_are_no_indices_says_why(void **state)
{
    static const struct {
        const char *text;
        const char *why;
    } cases[] = {
        {"", "it is empty"},
        {"a", "a number from 0 to 999999999"},
        {"-1", "a number from 0 to 999999999"},
        {"1,", "a number from 0 to 999999999"},
        {"1000000000", "a number from 0 to 999999999"},
        {"1-", "a number from 0 to 999999999"},
        {"1-2-3", "a number from 0 to 999999999"},
        {"1 -2", "a number from 0 to 999999999"},
        {"9-1", "a range ends before it begins"},
        {"1-9:0", "a step is a number from 1 on"},
        {"1-9:", "a step is a number from 1 on"},
        {"1:2", "a step belongs to a range"},
        {"0-1000000", "they are more than 1000000"},
        {"0-999999,5", "they are more than 1000000"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        assert_null(berth_index_set_parse(cases[i].text, 1000000, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].why);
    }
}

static void next_goes_through_all_of_a_set(void **state)
{
    static const guint32 due[] = {2, 5, 8, 20, 21, 30};
    g_autoptr(BerthIndexSet) set = parse("2-8:3,20-21,30");
    guint32 index = 0;
    for (guint i = 0; i < G_N_ELEMENTS(due); i++, index++) {
        assert_true(berth_index_set_next(set, index, &index));
        assert_int_equal(index, due[i]);
    }
    assert_false(berth_index_set_next(set, index, &index));
    assert_int_equal(berth_index_set_last(set), 30);
}

static void remove_leaves_ranges_on_both_sides(void **state)
{
    static const struct {
        const char *from;
        const char *what;
        const char *left;
    } cases[] = {
        {"0-9", "3-5", "0-2,6-9"},
        {"0-9", "0", "1-9"},
        {"0-9", "9", "0-8"},
        {"0-9", "0-9", ""},
        {"0-9", "20-30", "0-9"},
        {"0-9:3", "1-2", "0-9:3"},
        {"0-9:3", "3", "0,6,9"},
        {"0-9:3", "2-4", "0,6,9"},
        {"0-9", "0-9:2", "1-9:2"},
        {"0-9:2", "4-8:2", "0,2"},
        {"0-4,8,12-14", "4-12", "0-3,13-14"},
        {"5-9,20-29", "0-22", "23-29"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(BerthIndexSet) set = parse(cases[i].from);
        g_autoptr(BerthIndexSet) what = parse(cases[i].what);
        for (guint k = 0; k < berth_index_set_n_ranges(what); k++)
            berth_index_set_remove(set, *berth_index_set_range(what, k));
        assert_set(set, cases[i].left);
    }
}

static void million_taken_from_the_front_stays_one_range(void **state)
{
    g_autoptr(BerthIndexSet) set = parse("0-999999");
    for (guint32 i = 0; i < 1000000; i++) {
        guint32 first;
        assert_true(berth_index_set_next(set, 0, &first));
        assert_int_equal(first, i);
        berth_index_set_remove(set, (BerthIndexRange){first, first, 1});
        assert_true(berth_index_set_n_ranges(set) <= 1);
    }
    assert_int_equal(berth_index_set_count(set), 0);
}

/* As tasks start of which every second one is held. */
static void every_second_one_taken_leaves_few_ranges(void **state)
{
    g_autoptr(BerthIndexSet) set = parse("0-99999");
    for (guint32 i = 1; i < 20000; i += 2) {
        berth_index_set_remove(set, (BerthIndexRange){i, i, 1});
        assert_true(berth_index_set_n_ranges(set) <= 4);
    }
    assert_set(set, "0-19998:2,20000-99999");
    for (guint32 i = 1; i < 20000; i += 2)
        berth_index_set_add_one(set, i);
    assert_set(set, "0-99999");
}

/* Of each range that is taken out only the two are looked at, not the hundred thousand between them. */
static void what_is_taken_out_costs_what_it_is(void **state)
{
    g_autoptr(BerthIndexSet) all = parse("0");
    g_autoptr(BerthIndexSet) pairs = berth_index_set_new();
    berth_index_set_add(all, (BerthIndexRange){0, BERTH_INDEX_MAX, 1});
    for (guint32 i = 0; i < BERTH_RANGES_MAX; i++)
        berth_index_set_add(pairs, (BerthIndexRange){i * 999000, i * 999000 + 499999, 499999});
    g_autoptr(BerthIndexSet) left = berth_index_set_without(all, pairs);
    assert_int_equal(berth_index_set_count(left), BERTH_INDEX_MAX + 1 - 2 * BERTH_RANGES_MAX);
    assert_int_equal(berth_index_set_n_ranges(left), 2 * BERTH_RANGES_MAX);
    assert_false(berth_index_set_contains(left, 999000));
    assert_true(berth_index_set_contains(left, 999001));
    assert_false(berth_index_set_contains(left, 999000 + 499999));
    /* Ranges that lie across each other, one after the other: nobody has made a set of them. */
    for (guint32 i = 0; i < 1000; i++)
        berth_index_set_remove(left,
                               (BerthIndexRange){i + 1, 999000000 - i, 999000000 - 2 * i - 1});
    assert_false(berth_index_set_contains(left, 1000));
    assert_true(berth_index_set_contains(left, 1001));
}

/* --- what two have ------------------------------------------------------------------------------ */

static void two_ranges_have_a_range_in_common(void **state)
{
    static const struct {
        BerthIndexRange a, b;
        const char *both;
    } cases[] = {
        {{0, 9, 1}, {5, 19, 1}, "5-9"},
        {{0, 9, 1}, {10, 19, 1}, ""},
        {{0, 99, 2}, {1, 99, 2}, ""},
        {{0, 99, 4}, {2, 98, 6}, "8-92:12"},
        {{3, 3, 1}, {0, 9, 3}, "3"},
        {{4, 4, 1}, {0, 9, 3}, ""},
        {{0, 999999998, 2}, {0, 999999999, 3}, "0-999999996:6"},
        /* Neither is walked through. */
        {{0, 999982506, 31622}, {1, 999982507, 31623}, "999950884"},
        {{0, 999999998, 499999999}, {0, 999999999, 1}, "0-999999998:499999999"},
        {{7, 999999999, 999999992}, {0, 999999999, 999999999}, "999999999"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (guint turn = 0; turn < 2; turn++) {
            const BerthIndexRange *a = turn == 0 ? &cases[i].a : &cases[i].b;
            const BerthIndexRange *b = turn == 0 ? &cases[i].b : &cases[i].a;
            g_autofree char *text = NULL;
            BerthIndexRange both;
            gboolean meets = berth_index_range_intersect(a, b, &both);
            text = meets ? berth_index_range_format(&both) : g_strdup("");
            assert_string_equal(text, cases[i].both);
        }
    }
}

static void assert_common(const BerthIndexRange *a, const BerthIndexRange *b)
{
    BerthIndexRange both;
    gboolean meets = berth_index_range_intersect(a, b, &both);
    guint32 count = 0;
    for (guint32 i = 0; i < MANY; i++) {
        gboolean due = berth_index_range_contains(a, i) && berth_index_range_contains(b, i);
        count += due != FALSE;
        assert_int_equal(meets && berth_index_range_contains(&both, i), due);
    }
    assert_int_equal(meets, count > 0);
    assert_int_equal(meets ? berth_index_range_count(&both) : 0, count);
}

static void common_range_is_what_both_contain(void **state)
{
    for (guint32 first = 0; first < 12; first++) {
        for (guint32 step = 1; step < 16; step++) {
            const BerthIndexRange a = {3, 3 + 5 * 12, 12};
            const BerthIndexRange b = {first, first + 5 * step, step};
            const BerthIndexRange c = {10, 10 + 7 * 9, 7};
            assert_common(&a, &b);
            assert_common(&c, &b);
        }
    }
}

static void set_tells_what_it_has_of_a_range(void **state)
{
    static const struct {
        const char *set;
        BerthIndexRange range;
        const char *within;
    } cases[] = {
        {"0-9999", {0, 2997, 3}, "0-2997:3"},
        {"0-4,8-20:4,30-40", {4, 32, 2}, "4-20:4,30,32"},
        {"0-8:2,20-28:2", {1, 29, 2}, ""},
        {"5", {0, 9, 5}, "5"},
        {"", {0, 9, 1}, ""},
        {"10-19", {0, 5, 1}, ""},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(BerthIndexSet) set = *cases[i].set ? parse(cases[i].set) : berth_index_set_new();
        g_autoptr(BerthIndexSet) within = berth_index_set_within(set, &cases[i].range);
        assert_set(within, cases[i].within);
        assert_int_equal(berth_index_set_meets(set, &cases[i].range), *cases[i].within != '\0');
    }
}

/* --- against a table of what is in it ----------------------------------------------------------- */

static void assert_as(const BerthIndexSet *set, const gboolean *has)
{
    guint32 count = 0;
    guint32 next;
    for (guint32 i = 0; i < MANY; i++) {
        assert_int_equal(berth_index_set_contains(set, i), has[i]);
        count += has[i] != FALSE;
    }
    assert_int_equal(berth_index_set_count(set), count);
    for (guint32 from = 0; from < MANY; from++) {
        guint32 due = from;
        while (due < MANY && !has[due])
            due++;
        assert_int_equal(berth_index_set_next(set, from, &next), due < MANY);
        if (due < MANY)
            assert_int_equal(next, due);
    }
    for (guint i = 0; i < berth_index_set_n_ranges(set); i++) {
        const BerthIndexRange *range = berth_index_set_range(set, i);
        assert_true(range->step >= 1 && range->first <= range->last);
        assert_int_equal((range->last - range->first) % range->step, 0);
        assert_true(i == 0 || berth_index_set_range(set, i - 1)->last < range->first);
    }
}

static void any_changes_leave_what_a_table_has(void **state)
{
    GRand *rand = g_rand_new_with_seed(6);
    for (guint round = 0; round < 300; round++) {
        g_autoptr(BerthIndexSet) set = berth_index_set_new();
        gboolean has[MANY] = {FALSE};
        for (guint step = 0; step < 40; step++) {
            BerthIndexRange range;
            range.first = (guint32)g_rand_int_range(rand, 0, MANY);
            range.last = (guint32)g_rand_int_range(rand, (gint32)range.first, MANY);
            range.step = (guint32)g_rand_int_range(rand, 1, g_rand_boolean(rand) ? 2 : 7);
            if (g_rand_int_range(rand, 0, 3) == 0)
                range.last = range.first;
            gboolean adds = g_rand_boolean(rand);
            for (guint32 i = range.first; i <= range.last; i += range.step)
                has[i] = adds;
            if (adds)
                berth_index_set_add(set, range);
            else
                berth_index_set_remove(set, range);
            assert_as(set, has);
        }
        g_autofree char *text = berth_index_set_format(set);
        if (*text) {
            g_autoptr(BerthIndexSet) again = parse(text);
            assert_as(again, has);
        }
        g_autoptr(BerthIndexSet) copy = berth_index_set_copy(set);
        berth_index_set_add(set, (BerthIndexRange){0, MANY - 1, 1});
        assert_as(copy, has);
    }
    g_rand_free(rand);
}

static BerthIndexSet *any_set(GRand *rand, guint n, gboolean *has)
{
    BerthIndexSet *set = berth_index_set_new();
    for (guint k = 0; k < n; k++) {
        BerthIndexRange range;
        range.first = (guint32)g_rand_int_range(rand, 0, MANY);
        range.last = range.first + (guint32)g_rand_int_range(rand, 0, k % 8 == 0 ? 20 : 1);
        range.last = MIN(range.last, MANY - 1);
        range.step = (guint32)g_rand_int_range(rand, 1, 5);
        for (guint32 i = range.first; i <= range.last; i += range.step)
            has[i] = TRUE;
        berth_index_set_add(set, range);
    }
    return set;
}

/* Be they few ranges or many. */
static void any_two_sets_leave_what_tables_have(void **state)
{
    GRand *rand = g_rand_new_with_seed(7);
    guint n_many = 0;
    for (guint round = 0; round < 1000; round++) {
        gboolean a[MANY] = {FALSE}, b[MANY] = {FALSE}, due[MANY];
        g_autoptr(BerthIndexSet) set = any_set(rand, round % 30, a);
        g_autoptr(BerthIndexSet) others = any_set(rand, round / 30, b);
        n_many += berth_index_set_n_ranges(others) > 16;
        g_autoptr(BerthIndexSet) both = berth_index_set_both(set, others);
        for (guint32 i = 0; i < MANY; i++)
            due[i] = a[i] && b[i];
        assert_as(both, due);
        g_autoptr(BerthIndexSet) without = berth_index_set_without(set, others);
        berth_index_set_remove_all(set, others);
        for (guint32 i = 0; i < MANY; i++)
            due[i] = a[i] && !b[i];
        assert_as(without, due);
        assert_as(set, due);
        assert_as(others, b);
    }
    assert_true(n_many > 100);
    g_rand_free(rand);
}

static void cover_has_the_steps_that_all_have(void **state)
{
    static const char *const cases[][2] = {
        {"7", "7"},           {"0,999999999", "0,999999999"}, {"0-9996:4", "0-9996:4"},
        {"3-9,12", "3-12"},   {"4-40:12,64,100", "4-100:12"}, {"0-9:3,10", "0-10"},
        {"2,8,20", "2-20:6"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(BerthIndexSet) set = berth_index_set_parse(cases[i][0], G_MAXUINT32, NULL);
        g_autoptr(BerthIndexSet) cover = berth_index_set_new();
        berth_index_set_add(cover, berth_index_set_cover(set));
        g_autofree char *text = berth_index_set_format(cover);
        assert_string_equal(text, cases[i][1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parse_reads_what_format_writes),
        cmocka_unit_test(parse_what_are_no_indices_says_why),
        cmocka_unit_test(next_goes_through_all_of_a_set),
        cmocka_unit_test(remove_leaves_ranges_on_both_sides),
        cmocka_unit_test(million_taken_from_the_front_stays_one_range),
        cmocka_unit_test(every_second_one_taken_leaves_few_ranges),
        cmocka_unit_test(two_ranges_have_a_range_in_common),
        cmocka_unit_test(common_range_is_what_both_contain),
        cmocka_unit_test(set_tells_what_it_has_of_a_range),
        cmocka_unit_test(what_is_taken_out_costs_what_it_is),
        cmocka_unit_test(cover_has_the_steps_that_all_have),
        cmocka_unit_test(any_changes_leave_what_a_table_has),
        cmocka_unit_test(any_two_sets_leave_what_tables_have),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
