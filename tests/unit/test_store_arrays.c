/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays in the store: rows of those tasks alone that have started or ended, and jobs that are open as long as some have not. */
#include "tests/lib/assert.h"
#include "tests/unit/store_env.h"

#include "common/ranges.h"

#define JOB 7u

typedef struct {
    guint32 index;
    guint32 rest_last, rest_step;
    gboolean done;
} Row;

static const Row rows[] = {{0, 0, 0, TRUE}, {3, 9, 2, TRUE}, {12, 0, 0, FALSE}, {13, 0, 0, TRUE}};

static void put_row(BerthStoreBatch *batch, const Row *row)
{
    Berth__Task task = BERTH__TASK__INIT;
    Berth__StoredTask stored = BERTH__STORED_TASK__INIT;
    task.job = JOB;
    task.index = row->index;
    task.rest_last = row->rest_last;
    task.rest_step = row->rest_step;
    stored.task = &task;
    berth_store_batch_put_task(batch, &stored, row->done);
}

/* UNSTARTED: "20-29", or "" */
static void fill_job(Berth__Job *job, Berth__JobArray *array, const char *unstarted)
{
    berth__job__init(job);
    berth__job_array__init(array);
    job->id = JOB;
    job->array = array;
    if (*unstarted == '\0')
        return;
    g_autoptr(BerthIndexSet) set = berth_index_set_parse(unstarted, 1000, NULL);
    assert_non_null(set);
    berth_ranges_set(&job->unstarted, &job->n_unstarted, set);
}

static void write_job(StoreEnv *env, const char *unstarted, gboolean is_new)
{
    Berth__Job job;
    Berth__JobArray array;
    Berth__JobSpec spec = BERTH__JOB_SPEC__INIT;
    fill_job(&job, &array, unstarted);
    BerthStoreBatch *batch = berth_store_batch_new();
    if (is_new)
        berth_store_batch_add_job(batch, &job, &spec, NULL);
    else
        berth_store_batch_update_job(batch, &job);
    store_commit_ok(env->store, batch);
    berth_ranges_set(&job.unstarted, &job.n_unstarted, NULL);
}

static void write_rows(StoreEnv *env)
{
    BerthStoreBatch *batch = berth_store_batch_new();
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        put_row(batch, &rows[i]);
    store_commit_ok(env->store, batch);
}

static void assert_tasks(StoreEnv *env, const BerthStoreTasks *wanted, const char *due)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    Berth__Job *job = berth_store_get_job_with(env->store, JOB, wanted, &error);
    assert_no_error(error);
    for (gsize i = 0; i < job->n_tasks; i++) {
        const Berth__Task *task = job->tasks[i];
        const BerthIndexRange range =
            berth_index_range_of(task->index, task->rest_last, task->rest_step);
        g_autofree char *one = berth_index_range_format(&range);
        g_string_append_printf(text, "%s%s", i > 0 ? " " : "", one);
    }
    assert_string_equal(text->str, due);
    berth__job__free_unpacked(job, NULL);
}

static void assert_only(StoreEnv *env, const char *only, guint32 limit, const char *due)
{
    g_autoptr(BerthIndexSet) set = berth_index_set_parse(only, G_MAXINT32, NULL);
    assert_non_null(set);
    assert_tasks(env, &(BerthStoreTasks){.only = set, .limit = limit}, due);
}

static void tasks_are_read_as_they_are_wanted(void **state)
{
    StoreEnv *env = *state;
    write_job(env, "20-29", TRUE);
    write_rows(env);
    assert_tasks(env, &(BerthStoreTasks){.limit = 10}, "12");
    assert_tasks(env, &(BerthStoreTasks){.done = TRUE, .limit = 10}, "0 3-9:2 12 13");
    assert_tasks(env, &(BerthStoreTasks){.done = TRUE, .limit = 2}, "0 3-9:2");
    assert_tasks(env, &(BerthStoreTasks){.done = TRUE, .follows = TRUE, .after = 3, .limit = 10},
                 "12 13");
    assert_tasks(env, &(BerthStoreTasks){.done = TRUE, .follows = TRUE, .limit = 10},
                 "3-9:2 12 13");
}

/* Who stands for others is found for each of them. */
static void tasks_that_ended_together_are_each_found(void **state)
{
    StoreEnv *env = *state;
    write_job(env, "20-29", TRUE);
    write_rows(env);
    assert_only(env, "0-999999999", 10, "0 3 5 7 9 12 13");
    assert_only(env, "4-13", 10, "5 7 9 12 13");
    assert_only(env, "5", 10, "5");
    assert_only(env, "4,6,8", 10, "");
    assert_only(env, "9,13,25", 10, "9 13");
    assert_only(env, "0-999999999", 3, "0 3 5");
    g_autoptr(BerthIndexSet) set = berth_index_set_parse("0-99", 1000, NULL);
    assert_tasks(env, &(BerthStoreTasks){.only = set, .follows = TRUE, .after = 5, .limit = 2},
                 "7 9");
}

/* As a cancel of every second one leaves them, of which the others then ran. */
static void tasks_between_those_that_ended_together_are_in_order(void **state)
{
    static const Row between[] = {{0, 18, 2, TRUE}, {1, 0, 0, TRUE}, {3, 15, 6, TRUE},
                                  {5, 17, 6, TRUE}, {7, 0, 0, TRUE}, {13, 0, 0, FALSE},
                                  {19, 0, 0, TRUE}};
    StoreEnv *env = *state;
    write_job(env, "", TRUE);
    BerthStoreBatch *batch = berth_store_batch_new();
    for (guint i = 0; i < G_N_ELEMENTS(between); i++)
        put_row(batch, &between[i]);
    store_commit_ok(env->store, batch);
    assert_only(env, "0-999999999", 100, "0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19");
    assert_only(env, "0-999999999", 7, "0 1 2 3 4 5 6");
    assert_only(env, "10,15,18", 10, "10 15 18");
    assert_only(env, "1-19:6", 10, "1 7 13 19");
    assert_only(env, "4-999999999:2", 3, "4 6 8");
    g_autoptr(BerthIndexSet) set = berth_index_set_parse("0-999999999", G_MAXINT32, NULL);
    for (guint32 after = 0; after < 19; after++) {
        g_autofree char *due = g_strdup_printf("%u", after + 1);
        assert_tasks(
            env, &(BerthStoreTasks){.only = set, .follows = TRUE, .after = after, .limit = 1}, due);
    }
    assert_tasks(env, &(BerthStoreTasks){.only = set, .follows = TRUE, .after = 19, .limit = 1},
                 "");
}

typedef struct {
    guint n_jobs;
    gsize n_tasks;
    gsize n_unstarted;
} Seen;

static gboolean see_job(BerthStoreLoadedJob *loaded, gpointer user_data, GError **error)
{
    Seen *seen = user_data;
    seen->n_jobs++;
    seen->n_tasks = loaded->n_tasks;
    seen->n_unstarted = loaded->job->n_unstarted;
    return TRUE;
}

static Seen load(StoreEnv *env)
{
    const BerthStoreLoader loader = {.job = see_job};
    BerthStoreCounters counters;
    Seen seen = {0};
    g_autoptr(GError) error = NULL;
    berth_store_close(env->store);
    env->store = store_open_ok(env->path);
    assert_true(berth_store_load(env->store, &loader, &seen, &counters, &error));
    return seen;
}

static void array_is_open_until_its_last_task_is_done(void **state)
{
    StoreEnv *env = *state;
    write_job(env, "0-29", TRUE);
    Seen seen = load(env);
    assert_int_equal(seen.n_jobs, 1); /* none of its tasks has a row */
    assert_int_equal(seen.n_tasks, 0);
    assert_int_equal(seen.n_unstarted, 1);
    write_rows(env);
    write_job(env, "20-29", FALSE);
    seen = load(env);
    assert_int_equal(seen.n_jobs, 1);
    assert_int_equal(seen.n_tasks, 1);
    write_job(env, "", FALSE);
    assert_int_equal(load(env).n_jobs, 1);
    BerthStoreBatch *batch = berth_store_batch_new();
    put_row(batch, &(Row){12, 0, 0, TRUE});
    store_commit_ok(env->store, batch);
    assert_int_equal(load(env).n_jobs, 0);
}

/* Whatever comes last. */
static void array_is_closed_by_its_record_too(void **state)
{
    StoreEnv *env = *state;
    write_job(env, "20-29", TRUE);
    BerthStoreBatch *batch = berth_store_batch_new();
    put_row(batch, &(Row){20, 29, 1, TRUE});
    store_commit_ok(env->store, batch);
    assert_int_equal(load(env).n_jobs, 1);
    write_job(env, "", FALSE);
    assert_int_equal(load(env).n_jobs, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_ENV_BOTH(tasks_are_read_as_they_are_wanted),
        STORE_ENV_BOTH(tasks_that_ended_together_are_each_found),
        STORE_ENV_BOTH(tasks_between_those_that_ended_together_are_in_order),
        STORE_ENV_BOTH(array_is_open_until_its_last_task_is_done),
        STORE_ENV_BOTH(array_is_closed_by_its_record_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
