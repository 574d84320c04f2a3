/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which berth top shows nodes and guests. */
#include "scheduler/daemon/ranking.h"

#include "tests/lib/assert.h"

static void add_guest(BerthRanking *ranking, guint64 key, guint64 job, guint32 task, guint32 guest)
{
    BerthRanked ranked = {.key = key, .node = 1, .name = "n1"};
    ranked.guest = (BerthGuestId){.job = job, .task = task, .guest = guest, .epoch = 1};
    berth_ranking_add(ranking, &ranked);
}

static void guests_come_by_key_then_by_number(void **state)
{
    static const struct {
        guint64 key, job;
        guint32 task, guest;
    } order[] = {{9, 7, 0, 0}, {5, 1, 0, 0}, {5, 1, 0, 1}, {5, 1, 2, 0},
                 {5, 3, 0, 0}, {5, 8, 0, 0}, {0, 2, 0, 0}};
    guint n = G_N_ELEMENTS(order);
    g_autoptr(BerthRanking) ranking = berth_ranking_new();
    for (guint i = 0; i < n; i++) {
        guint at = i * 3 % n;
        add_guest(ranking, order[at].key, order[at].job, order[at].task, order[at].guest);
    }
    for (guint i = 0; i < n; i++) {
        const BerthRanked *ranked = berth_ranking_at(ranking, i);
        assert_int_equal(ranked->guest.job, order[i].job);
        assert_int_equal(ranked->guest.task, order[i].task);
        assert_int_equal(ranked->guest.guest, order[i].guest);
    }
    assert_null(berth_ranking_at(ranking, n));
}

static void nodes_of_one_key_come_by_name(void **state)
{
    static const char *const names[] = {"b", "c", "a"};
    g_autoptr(BerthRanking) ranking = berth_ranking_new();
    assert_null(berth_ranking_at(ranking, 0));
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        BerthRanked ranked = {.node = i + 1, .name = names[i]};
        berth_ranking_add(ranking, &ranked);
    }
    assert_int_equal(berth_ranking_size(ranking), 3);
    assert_string_equal(berth_ranking_at(ranking, 2)->name, "c");
    assert_string_equal(berth_ranking_at(ranking, 0)->name, "a");
    assert_string_equal(berth_ranking_at(ranking, 1)->name, "b");
}

/* Whatever was asked for before. */
static void pages_of_many_are_the_same_in_any_order(void **state)
{
    enum { N = 1000, PAGE = 37 };
    g_autoptr(BerthRanking) ranking = berth_ranking_new();
    for (guint i = 0; i < N; i++)
        add_guest(ranking, i * 7919 % N, i + 1, 0, 0);
    for (guint page = 0; page < N / PAGE; page++) {
        guint skip = page * 11 % (N / PAGE) * PAGE;
        for (guint i = skip; i < skip + PAGE; i++)
            assert_int_equal(berth_ranking_at(ranking, i)->key, N - 1 - i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guests_come_by_key_then_by_number),
        cmocka_unit_test(nodes_of_one_key_come_by_name),
        cmocka_unit_test(pages_of_many_are_the_same_in_any_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
