/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of many asks together: of few all that matters, of many no more than there is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "scheduler/core/least.h"

#define ASKS_MAX 400u

static gboolean asks_no_less(const CoreLeast *a, const CoreLeast *b)
{
    return core_size_fits(b->size, a->size) && a->length_usec >= b->length_usec;
}

static gboolean is_same(const CoreLeast *a, const CoreLeast *b)
{
    return core_size_equal(a->size, b->size) && a->length_usec == b->length_usec;
}

static gboolean any_is_no_more(const CoreLeast *leasts, guint n, const CoreLeast *ask)
{
    guint i = 0;
    while (i < n && !asks_no_less(ask, &leasts[i]))
        i++;
    return i < n;
}

static gboolean any_is_same(const CoreLeast *leasts, guint n, const CoreLeast *ask)
{
    guint i = 0;
    while (i < n && !is_same(ask, &leasts[i]))
        i++;
    return i < n;
}

/* Those of which no other asks for less, each once. */
static guint find_minima(const CoreLeast *asks, guint n, CoreLeast *out)
{
    guint n_out = 0;
    for (guint i = 0; i < n; i++) {
        gboolean is_least = !any_is_same(out, n_out, &asks[i]);
        for (guint j = 0; j < n && is_least; j++)
            is_least = !asks_no_less(&asks[i], &asks[j]) || is_same(&asks[i], &asks[j]);
        if (is_least)
            out[n_out++] = asks[i];
    }
    return n_out;
}

/* By halves, each the join of the one in its middle with what is before and behind it, as in a tree. */
static CoreLeasts join_all(const CoreLeast *asks, guint n, gboolean is_gang)
{
    CoreLeasts out = {.more = NULL};
    if (n == 0)
        return out;
    CoreLeasts alone = core_leasts_of_one(&asks[n / 2], is_gang);
    CoreLeasts before = join_all(asks, n / 2, is_gang);
    CoreLeasts behind = join_all(asks + n / 2 + 1, n - n / 2 - 1, is_gang);
    const CoreLeasts *parts[] = {&alone, &before, &behind};
    assert_true(core_leasts_join(&out, parts, G_N_ELEMENTS(parts)));
    assert_false(core_leasts_join(&out, parts, G_N_ELEMENTS(parts)));
    core_leasts_clear(&before);
    core_leasts_clear(&behind);
    return out;
}

static void check_kind(const CoreLeast *asks, guint n, gboolean is_gang, guint *n_exact,
                       guint *n_fewer)
{
    CoreLeast minima[ASKS_MAX];
    guint n_minima = find_minima(asks, n, minima);
    CoreLeasts all = join_all(asks, n, is_gang);
    guint n_kept, n_others;
    const CoreLeast *kept =
        is_gang ? core_leasts_gangs(&all, &n_kept) : core_leasts_singles(&all, &n_kept);
    (void)(is_gang ? core_leasts_singles(&all, &n_others) : core_leasts_gangs(&all, &n_others));
    assert_int_equal(n_others, 0);
    assert_in_range(n_kept, 1, CORE_LEASTS_MAX);
    for (guint i = 0; i < n; i++)
        assert_true(any_is_no_more(kept, n_kept, &asks[i]));
    for (guint i = 0; i < n_kept; i++)
        for (guint j = 0; j < n_kept; j++)
            assert_true(i == j || !asks_no_less(&kept[i], &kept[j]) || n_minima > CORE_LEASTS_MAX);
    if (n_minima <= CORE_LEASTS_MAX) {
        assert_int_equal(n_kept, n_minima);
        for (guint i = 0; i < n_kept; i++)
            assert_true(any_is_same(minima, n_minima, &kept[i]));
    }
    *(n_minima <= CORE_LEASTS_MAX ? n_exact : n_fewer) += 1;
    core_leasts_clear(&all);
}

/* Of at most SPREAD values each; mostly who asks for little of something asks for much of something else. */
static CoreLeast random_ask(GRand *random, gint32 spread)
{
    guint32 vcpus = (guint32)g_rand_int_range(random, 1, spread + 1);
    gint64 length_usec = g_rand_int_range(random, 1, spread + 1);
    gint64 memory_mib = spread * spread / (vcpus * length_usec) + g_rand_int_range(random, 0, 3);
    return (CoreLeast){{vcpus, (guint64)memory_mib}, length_usec};
}

static void
join_keeps_the_least_exactly_if_they_are_few_and_no_more_than_asked_if_many(void **state)
{
    guint n_exact = 0;
    guint n_fewer = 0;
    for (guint32 seed = 1; seed <= 200; seed++) {
        GRand *random = g_rand_new_with_seed(seed);
        CoreLeast asks[ASKS_MAX];
        guint n = (guint)g_rand_int_range(random, 1, ASKS_MAX);
        gint32 spread = 1 << g_rand_int_range(random, 0, 8);
        for (guint i = 0; i < n; i++)
            asks[i] = random_ask(random, spread);
        check_kind(asks, n, seed % 2 == 0, &n_exact, &n_fewer);
        g_rand_free(random);
    }
    assert_true(n_exact >= 40 && n_fewer >= 40);
}

static void join_of_singles_and_gangs_keeps_them_apart(void **state)
{
    const CoreLeast large = {{8, 4096}, 100};
    const CoreLeast small = {{1, 128}, 10};
    const CoreLeasts single = core_leasts_of_one(&large, FALSE);
    const CoreLeasts gang = core_leasts_of_one(&small, TRUE);
    const CoreLeasts *parts[] = {&single, NULL, &gang};
    CoreLeasts both = {.more = NULL};
    guint n;
    assert_true(core_leasts_join(&both, parts, G_N_ELEMENTS(parts)));
    assert_true(is_same(core_leasts_singles(&both, &n), &large));
    assert_int_equal(n, 1);
    assert_true(is_same(core_leasts_gangs(&both, &n), &small));
    assert_int_equal(n, 1);
    assert_true(core_leasts_bytes(&both) >= 2 * sizeof(CoreLeast));
    /* Back to one, which needs no more room. */
    assert_true(core_leasts_join(&both, parts, 1));
    assert_true(core_leasts_equal(&both, &single));
    assert_false(core_leasts_equal(&both, &gang));
    assert_int_equal(core_leasts_bytes(&both), 0);
    core_leasts_clear(&both);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            join_keeps_the_least_exactly_if_they_are_few_and_no_more_than_asked_if_many),
        cmocka_unit_test(join_of_singles_and_gangs_keeps_them_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
