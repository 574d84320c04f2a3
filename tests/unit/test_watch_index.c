/* SPDX-License-Identifier: Apache-2.0 */
/* Which watches are found of which jobs, however they come and go. */
#include "tests/lib/assert.h"

#include "scheduler/daemon/watch_index.h"

#include <string.h>

#define N_WATCHES 5u

/* The jobs of each watch. */
static const char *const watches[N_WATCHES] = {"", "17", "17 42", "3 17 42", ""};

static GArray *jobs_of(const char *text)
{
    GArray *jobs = g_array_new(FALSE, FALSE, sizeof(guint64));
    g_auto(GStrv) numbers = g_strsplit(text, " ", -1);
    for (char **number = numbers; *number != NULL && **number != '\0'; number++) {
        guint64 job = g_ascii_strtoull(*number, NULL, 10);
        g_array_append_val(jobs, job);
    }
    return jobs;
}

/* Bit N: the watch of that number was found. */
static void note(gpointer watch, gpointer user_data)
{
    guint *found = user_data;
    guint bit = 1u << GPOINTER_TO_UINT(watch);
    assert_int_equal(*found & bit, 0);
    *found |= bit;
}

static guint found_of(const BerthWatchIndex *index, guint64 job)
{
    guint found = 0;
    berth_watch_index_each(index, job, note, &found);
    return found;
}

/* Bit N of PRESENT: the watch of that number is there. */
static void assert_found(const BerthWatchIndex *index, guint present)
{
    assert_int_equal(found_of(index, 0), present & 0x11);
    assert_int_equal(found_of(index, 3), present & 0x19);
    assert_int_equal(found_of(index, 17), present & 0x1f);
    assert_int_equal(found_of(index, 42), present & 0x1d);
    assert_int_equal(found_of(index, 43), present & 0x11);
}

static BerthWatchPlace *add(BerthWatchIndex *index, guint watch)
{
    g_autoptr(GArray) jobs = jobs_of(watches[watch]);
    return berth_watch_index_add(index, jobs, GUINT_TO_POINTER(watch));
}

/* The first, the last or one between: in each order. */
static void watches_are_found_until_they_are_removed(void **state)
{
    static const guint orders[][N_WATCHES] = {
        {0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {2, 0, 4, 1, 3}, {3, 1, 0, 4, 2}, {1, 4, 3, 0, 2}};
    for (gsize i = 0; i < G_N_ELEMENTS(orders); i++) {
        BerthWatchIndex *index = berth_watch_index_new();
        BerthWatchPlace *places[N_WATCHES];
        guint present = 0;
        assert_found(index, 0);
        for (guint watch = 0; watch < N_WATCHES; watch++) {
            places[watch] = add(index, watch);
            present |= 1u << watch;
            assert_found(index, present);
        }
        for (guint n = 0; n < N_WATCHES; n++) {
            berth_watch_index_remove(index, places[orders[i][n]]);
            present &= ~(1u << orders[i][n]);
            assert_found(index, present);
        }
        berth_watch_index_free(index);
    }
}

typedef struct {
    BerthWatchIndex *index;
    BerthWatchPlace *places[N_WATCHES];
    guint found;
} Removal;

static void note_and_remove(gpointer watch, gpointer user_data)
{
    Removal *removal = user_data;
    note(watch, &removal->found);
    berth_watch_index_remove(removal->index, removal->places[GPOINTER_TO_UINT(watch)]);
}

static void watch_may_be_removed_when_it_is_found(void **state)
{
    Removal removal = {.index = berth_watch_index_new()};
    for (guint watch = 0; watch < N_WATCHES; watch++)
        removal.places[watch] = add(removal.index, watch);
    berth_watch_index_each(removal.index, 42, note_and_remove, &removal);
    assert_int_equal(removal.found, 0x1d);
    assert_found(removal.index, 0x02);
    berth_watch_index_remove(removal.index, removal.places[1]);
    berth_watch_index_free(removal.index);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(watches_are_found_until_they_are_removed),
        cmocka_unit_test(watch_may_be_removed_when_it_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
