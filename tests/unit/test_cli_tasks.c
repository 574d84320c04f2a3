/* SPDX-License-Identifier: Apache-2.0 */
/* Which tasks of an array are meant, and how they are written. */
#include "tests/lib/assert.h"

#include "cli/ended.h"
#include "cli/job_get.h"
#include "cli/tasks.h"

#define RANGES_MAX 30u

/* A job that is an array of ranges. */
typedef struct {
    Berth__Job job;
    Berth__JobArray array;
    Berth__TaskCounts counts;
    Berth__IndexRange ranges[RANGES_MAX];
    Berth__IndexRange *pointers[RANGES_MAX];
    Berth__Task task;
    Berth__Task *tasks[1];
} Array;

static void make(Array *array, const BerthIndexRange *ranges, guint n)
{
    static const Array empty = {.job = BERTH__JOB__INIT,
                                .array = BERTH__JOB_ARRAY__INIT,
                                .counts = BERTH__TASK_COUNTS__INIT,
                                .task = BERTH__TASK__INIT};
    *array = empty;
    for (guint i = 0; i < n; i++) {
        berth__index_range__init(&array->ranges[i]);
        array->ranges[i].first = ranges[i].first;
        array->ranges[i].last = ranges[i].last;
        array->ranges[i].step = ranges[i].step;
        array->pointers[i] = &array->ranges[i];
    }
    array->array.tasks = array->pointers;
    array->array.n_tasks = n;
    array->job.id = 42;
    array->job.array = &array->array;
    array->job.counts = &array->counts;
    array->tasks[0] = &array->task;
    array->job.tasks = array->tasks;
}

static void array_format_is_cut_to_the_width(void **state)
{
    static const struct {
        BerthIndexRange ranges[6];
        guint n;
        guint32 running_max;
        gsize width;
        const char *expected;
    } cases[] = {
        {{{0, 999999, 1}}, 1, 500, 24, "0-999999%500"},
        {{{0, 9, 1}, {20, 30, 2}, {40, 40, 0}}, 3, 0, 24, "0-9,20-30:2,40"},
        {{{1, 99, 2}, {200, 200, 1}, {300, 400, 1}, {500, 600, 1}},
         4,
         7,
         24,
         "1-99:2,200,300-400,...%7"},
        {{{0, 999999999, 1}, {5, 6, 1}}, 2, 0, 3, "0-999999999,..."},
        {{{0, 0, 1}}, 0, 0, 24, ""},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Array array;
        make(&array, cases[i].ranges, cases[i].n);
        array.array.running_max = cases[i].running_max;
        g_autofree char *text = berth_array_format(&array.job, cases[i].width);
        assert_string_equal(text, cases[i].expected);
    }
}

static void counts_format_names_the_states_that_there_are(void **state)
{
    Array array;
    make(&array, NULL, 0);
    Berth__TaskCounts counts = berth_job_count(&array.job, FALSE);
    g_autofree char *none = berth_counts_format(&counts);
    assert_string_equal(none, "");
    array.counts.pending = 96;
    array.counts.running = 3;
    array.counts.failed = 1;
    counts = berth_job_count(&array.job, FALSE);
    g_autofree char *some = berth_counts_format(&counts);
    assert_string_equal(some, "3 running, 96 waiting, 1 failed");
    array.job.n_tasks = 1;
    array.task.state = BERTH__JOB_STATE__TIMEOUT;
    counts = berth_job_count(&array.job, TRUE);
    g_autofree char *present = berth_counts_format(&counts);
    assert_string_equal(present, "1 out of time");
    array.job.counts = NULL;
    counts = berth_job_count(&array.job, FALSE);
    g_autofree char *unknown = berth_counts_format(&counts);
    assert_string_equal(unknown, "");
}

static void job_n_open_is_of_those_that_have_started(void **state)
{
    static const BerthIndexRange unstarted[] = {{10, 18, 2}, {90, 99, 1}, {200, 200, 0}};
    Array array;
    make(&array, unstarted, G_N_ELEMENTS(unstarted));
    array.job.unstarted = array.pointers;
    array.job.n_unstarted = G_N_ELEMENTS(unstarted);
    array.counts.pending = 5 + 10 + 1;
    assert_int_equal(berth_job_n_open(&array.job), 0);
    array.counts.pending += 3; /* were requeued */
    array.counts.running = 4;
    array.counts.suspended = 2;
    array.counts.failed = 7;
    assert_int_equal(berth_job_n_open(&array.job), 3 + 4 + 2);
    array.job.counts = NULL;
    assert_int_equal(berth_job_n_open(&array.job), 0);
}

static void tasks_format_names_job_and_indices(void **state)
{
    static const struct {
        const char *indices; /* NULL: all */
        const char *expected;
    } cases[] = {
        {NULL, "42"},
        {"7", "42[7]"},
        {"20,0-9", "42[0-9,20]"},
        {"100-199,300-399,500-599,700-799,900-999,1100-1199,1300-1399,1500-1599",
         "42[100-199,300-399,500-599,700-799,900-999,1100-1199,1300-1399,...]"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(BerthIndexSet) tasks =
            cases[i].indices ? berth_index_set_parse(cases[i].indices, G_MAXINT32, NULL) : NULL;
        g_autofree char *text = berth_tasks_format(42, tasks);
        assert_string_equal(text, cases[i].expected);
    }
}

static void task_format_names_those_that_ended_together(void **state)
{
    Array array;
    make(&array, NULL, 0);
    array.task.index = 7;
    g_autofree char *one = berth_task_format(&array.job, &array.task);
    assert_string_equal(one, "42[7]");
    array.task.rest_last = 99;
    array.task.rest_step = 1;
    g_autofree char *range = berth_task_format(&array.job, &array.task);
    assert_string_equal(range, "42[7-99]");
    array.job.array = NULL;
    g_autofree char *plain = berth_task_format(&array.job, &array.task);
    assert_string_equal(plain, "42");
}

static void one_task_is_the_one_that_was_named(void **state)
{
    Array array;
    g_autoptr(BerthIndexSet) seven = berth_index_set_parse("7", 1, NULL);
    g_autoptr(BerthIndexSet) several = berth_index_set_parse("7-8", 2, NULL);
    make(&array, NULL, 0);
    array.job.state = BERTH__JOB_STATE__RUNNING;
    array.task.index = 7;
    array.task.state = BERTH__JOB_STATE__FAILED;
    assert_null(berth_job_one_task(&array.job, seven)); /* none has started */
    array.job.n_tasks = 1;
    assert_ptr_equal(berth_job_one_task(&array.job, seven), &array.task);
    assert_null(berth_job_one_task(&array.job, several));
    assert_null(berth_job_one_task(&array.job, NULL));
    assert_int_equal(berth_job_state_of(&array.job, &array.task), BERTH__JOB_STATE__FAILED);
    assert_int_equal(berth_job_state_of(&array.job, NULL), BERTH__JOB_STATE__RUNNING);
    array.job.array = NULL;
    assert_ptr_equal(berth_job_one_task(&array.job, NULL), &array.task);
    assert_int_equal(berth_job_state_of(&array.job, &array.task), BERTH__JOB_STATE__RUNNING);
}

static void event_is_of_the_tasks_that_it_ranges_over(void **state)
{
    static const struct {
        guint32 task, rest_last, rest_step;
        const char *indices;
        gboolean expected;
    } cases[] = {
        {7, 0, 0, "7", TRUE},          {7, 0, 0, "0-6,8-9", FALSE}, {0, 99, 1, "50", TRUE},
        {0, 98, 2, "51", FALSE},       {0, 98, 2, "51,52", TRUE},   {10, 20, 1, "0-9,21", FALSE},
        {10, 20, 1, "0-100:20", TRUE},
    };
    Berth__Event event = BERTH__EVENT__INIT;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(BerthIndexSet) tasks = berth_index_set_parse(cases[i].indices, G_MAXINT32, NULL);
        event.of_array = TRUE;
        event.task = cases[i].task;
        event.rest_last = cases[i].rest_last;
        event.rest_step = cases[i].rest_step;
        if (berth_event_is_of(&event, tasks) != cases[i].expected)
            fail_msg("case %zu", i);
        assert_true(berth_event_is_of(&event, NULL));
        event.of_array = FALSE; /* of the job, and so of all */
        assert_true(berth_event_is_of(&event, tasks));
    }
}

static void event_task_format_is_that_of_a_task(void **state)
{
    Berth__Event event = BERTH__EVENT__INIT;
    event.job = 42;
    g_autofree char *plain = berth_event_task_format(&event);
    assert_string_equal(plain, "42");
    event.of_array = TRUE;
    g_autofree char *first = berth_event_task_format(&event);
    assert_string_equal(first, "42[0]");
    event.rest_last = 98;
    event.rest_step = 2;
    g_autofree char *range = berth_event_task_format(&event);
    assert_string_equal(range, "42[0-98:2]");
}

static void job_find_tasks_finds_those_of_its_array(void **state)
{
    static const struct {
        const char *indices, *found, *absent; /* NULL: none */
    } cases[] = {
        {"0-9,20-30:2", "0-9,20-30:2", NULL},
        {"5", "5", NULL},
        {"21-27:3", "24", "21,27"},
        {"0-999999999", "0-9,20-30:2", "10-19,21-29:2,31-999999999"},
        {"11", NULL, "11"},
    };
    static const BerthIndexRange ranges[] = {{0, 9, 1}, {20, 30, 2}};
    Array array;
    make(&array, ranges, G_N_ELEMENTS(ranges));
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) absent = NULL, error = NULL;
        g_autoptr(BerthIndexSet) tasks = berth_index_set_parse(cases[i].indices, G_MAXINT32, NULL);
        g_autoptr(BerthIndexSet) found = berth_job_find_tasks(&array.job, tasks, &absent, &error);
        g_autofree char *text = found != NULL ? berth_index_set_format(found) : NULL;
        g_autofree char *why =
            g_strdup_printf("there is no job 42[%s]: its tasks are 0-9,20-30:2", cases[i].absent);
        const GError *said = found != NULL ? absent : error;
        assert_int_equal(g_strcmp0(text, cases[i].found), 0);
        assert_int_equal(said != NULL, cases[i].absent != NULL);
        if (said != NULL)
            assert_string_equal(said->message, why);
    }
    g_autoptr(GError) plain = NULL;
    g_autoptr(BerthIndexSet) first = berth_index_set_parse("0", 1, NULL);
    array.job.array = NULL;
    assert_null(berth_job_find_tasks(&array.job, first, NULL, &plain));
    assert_berth_error(plain, BERTH_ERROR_INVALID_ARGUMENT, "job 42 is no array");
}

/* Of a whole array it is no command's. */
static void job_exit_status_of_an_array_is_0_if_all_have_completed(void **state)
{
    Array array;
    Berth__Exit exit = BERTH__EXIT__INIT;
    g_autoptr(BerthIndexSet) seven = berth_index_set_parse("7", 1, NULL);
    make(&array, NULL, 0);
    array.counts.completed = 10;
    array.job.state = BERTH__JOB_STATE__COMPLETED;
    assert_int_equal(berth_job_exit_status(&array.job, NULL), 0);
    array.job.n_tasks = 1;
    array.task.index = 7;
    array.task.state = BERTH__JOB_STATE__FAILED;
    array.task.exit = &exit;
    exit.status = 3;
    array.counts.failed = 1;
    assert_int_equal(berth_job_exit_status(&array.job, NULL), 1);
    array.job.state = BERTH__JOB_STATE__FAILED;
    assert_int_equal(berth_job_exit_status(&array.job, NULL), 1);
    assert_int_equal(berth_job_exit_status(&array.job, seven), 3);
    array.task.state = BERTH__JOB_STATE__COMPLETED;
    assert_int_equal(berth_job_exit_status(&array.job, seven), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(array_format_is_cut_to_the_width),
        cmocka_unit_test(counts_format_names_the_states_that_there_are),
        cmocka_unit_test(job_n_open_is_of_those_that_have_started),
        cmocka_unit_test(tasks_format_names_job_and_indices),
        cmocka_unit_test(task_format_names_those_that_ended_together),
        cmocka_unit_test(one_task_is_the_one_that_was_named),
        cmocka_unit_test(event_is_of_the_tasks_that_it_ranges_over),
        cmocka_unit_test(event_task_format_is_that_of_a_task),
        cmocka_unit_test(job_find_tasks_finds_those_of_its_array),
        cmocka_unit_test(job_exit_status_of_an_array_is_0_if_all_have_completed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
