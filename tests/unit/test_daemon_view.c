/* SPDX-License-Identifier: Apache-2.0 */
/* What is left out of an array that no answer could hold. */
#include "tests/lib/assert.h"

#include "common/ranges.h"
#include "scheduler/daemon/job_view.h"

#define N_TASKS    10u
#define TAIL_BYTES 8192u

/* Of ranges that are no ranges of each other: 0, 1, 3, 6, 10 ...; and of tasks each of whose guests said much when it broke.
 * (transfer full) */
static Berth__Job *make_array(guint n_ranges)
{
    g_autoptr(BerthIndexSet) unstarted = berth_index_set_new();
    g_autofree char *tail = g_strnfill(TAIL_BYTES, 'x');
    Berth__JobArray array = BERTH__JOB_ARRAY__INIT;
    Berth__Task tasks[N_TASKS];
    Berth__Task *pointers[N_TASKS];
    Berth__Job job = BERTH__JOB__INIT;
    for (guint i = 0; i < n_ranges; i++)
        berth_index_set_add_one(unstarted, i * (i + 1) / 2);
    assert_int_equal(berth_index_set_count(unstarted), n_ranges);
    g_auto(BerthRanges) ranges = berth_ranges_of(unstarted);
    for (guint32 i = 0; i < N_TASKS; i++) {
        tasks[i] = (Berth__Task)BERTH__TASK__INIT;
        tasks[i].index = i;
        tasks[i].console_tail = tail;
        pointers[i] = &tasks[i];
    }
    job.array = &array;
    job.unstarted = ranges.ranges;
    job.n_unstarted = ranges.n;
    job.tasks = pointers;
    job.n_tasks = N_TASKS;
    return berth_pb_dup(&job.base);
}

static void what_no_answer_holds_is_left_out(void **state)
{
    static const struct {
        guint n_ranges;
        gsize bytes_max;
        guint ranges_left;
        guint tasks_left;
    } cases[] = {
        {5, 1u << 20, 5, N_TASKS}, {1500, 1u << 20, 1000, N_TASKS},
        {5, 4 * TAIL_BYTES, 5, 3}, {5, N_TASKS * TAIL_BYTES, 5, N_TASKS - 1},
        {1500, 1, 1000, 1}, /* one that is too large is shown all the same */
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Berth__Job *job = make_array(cases[i].n_ranges);
        gsize n_ranges = job->n_unstarted;
        berth_job_view_shorten(job, cases[i].bytes_max);
        assert_int_equal(job->unstarted_count, cases[i].n_ranges);
        assert_int_equal(job->n_unstarted, MIN(n_ranges, cases[i].ranges_left));
        assert_int_equal(job->n_tasks, cases[i].tasks_left);
        assert_int_equal(job->tasks[job->n_tasks - 1]->index, cases[i].tasks_left - 1);
        assert_true(job->n_tasks == 1 || berth__job__get_packed_size(job) <= cases[i].bytes_max);
        berth__job__free_unpacked(job, NULL);
    }
}

/* Which of them wait is not known yet: they are cut when it is. */
static void ranges_that_are_cut_later_cost_no_task(void **state)
{
    Berth__Job *job = make_array(20000);
    Berth__IndexRange **held = job->held_tasks;
    job->held_tasks = job->unstarted; /* the same */
    job->n_held_tasks = job->n_unstarted;
    job->unstarted = held;
    job->n_unstarted = 0;
    size_t n_held = job->n_held_tasks;
    gsize size = berth__job__get_packed_size(job);
    assert_true(size > N_TASKS * TAIL_BYTES + 2 * TAIL_BYTES);
    berth_job_view_shorten(job, N_TASKS * TAIL_BYTES + 2 * TAIL_BYTES);
    assert_int_equal(job->n_tasks, N_TASKS);
    assert_int_equal(job->n_held_tasks, n_held);
    berth__job__free_unpacked(job, NULL);
}

static void a_plain_job_is_left_as_it_is(void **state)
{
    Berth__Task task = BERTH__TASK__INIT;
    Berth__Task *tasks[] = {&task};
    Berth__Job plain = BERTH__JOB__INIT;
    plain.tasks = tasks;
    plain.n_tasks = 1;
    Berth__Job *job = berth_pb_dup(&plain.base);
    berth_job_view_shorten(job, 1);
    assert_int_equal(job->n_tasks, 1);
    assert_int_equal(job->unstarted_count, 0);
    berth__job__free_unpacked(job, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_no_answer_holds_is_left_out),
        cmocka_unit_test(ranges_that_are_cut_later_cost_no_task),
        cmocka_unit_test(a_plain_job_is_left_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
