/* SPDX-License-Identifier: Apache-2.0 */
/* Commits: what fails fails for good, answers come in order, and who reads meanwhile sees whole batches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/store_env.h"

#include "scheduler/store/db.h"
#include "scheduler/store/readers.h"

#include <sys/stat.h>

/* --- failing -------------------------------------------------------------------------------- */

/* After a failed commit even a good one fails, with the same words, and reading goes on. */
static void assert_failed_for_good(StoreEnv *env, BerthStoreBatch *bad, int code)
{
    g_autoptr(GError) first = NULL;
    g_autoptr(GError) second = NULL;
    assert_false(store_commit(env->store, bad, &first));
    assert_true(g_error_matches(first, BERTH_ERROR, code));
    BerthStoreBatch *good = berth_store_batch_new();
    store_batch_add_sample(good, 500, 1000, 0);
    assert_false(store_commit(env->store, good, &second));
    assert_int_equal(second->code, code);
    assert_string_equal(first->message, second->message);
    Berth__Job *job = berth_store_get_job(env->store, 1, NULL);
    assert_non_null(job);
    berth__job__free_unpacked(job, NULL);
    assert_null(berth_store_get_job(env->store, 500, NULL));
}

static void commit_same_job_twice_fails_for_good(void **state)
{
    StoreEnv *env = *state;
    store_env_add_samples(env, 1, 1, 1000);
    BerthStoreBatch *batch = berth_store_batch_new();
    store_batch_add_sample(batch, 1, 1000, 0);
    assert_failed_for_good(env, batch, BERTH_ERROR_ALREADY_EXISTS);
}

static void commit_same_key_twice_fails_for_good(void **state)
{
    StoreEnv *env = *state;
    store_env_add_samples(env, 1, 1, 1000);
    BerthStoreBatch *batch = berth_store_batch_new();
    store_batch_add_keyed_job(batch, 2, 1000, "k");
    store_batch_add_keyed_job(batch, 3, 1000, "k");
    assert_failed_for_good(env, batch, BERTH_ERROR_ALREADY_EXISTS);
    assert_null(berth_store_get_job(env->store, 2, NULL));
}

static void commit_unknown_job_fails_for_good(void **state)
{
    StoreEnv *env = *state;
    store_env_add_samples(env, 1, 1, 1000);
    BerthStoreBatch *batch = berth_store_batch_new();
    store_batch_set_state(batch, 77, 1000, BERTH__JOB_STATE__RUNNING, FALSE);
    assert_failed_for_good(env, batch, BERTH_ERROR_INTERNAL);
}

/* --- order ---------------------------------------------------------------------------------- */

typedef struct {
    GMainLoop *loop;
    GArray *order;
} Answers;

typedef struct {
    Answers *answers;
    guint number;
} Asked;

static void on_answer(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autofree Asked *asked = data;
    assert_true(berth_store_commit_finish(NULL, result, NULL));
    g_array_append_val(asked->answers->order, asked->number);
    if (asked->answers->order->len == 200)
        g_main_loop_quit(asked->answers->loop);
}

static gboolean on_deadline(gpointer data)
{
    g_main_loop_quit(data);
    return G_SOURCE_CONTINUE;
}

static void commits_are_answered_in_order(void **state)
{
    StoreEnv *env = *state;
    Answers answers = {g_main_loop_new(NULL, FALSE), g_array_new(FALSE, FALSE, sizeof(guint))};
    for (guint i = 0; i < 200; i++) {
        BerthStoreBatch *batch = berth_store_batch_new();
        assert_true(berth_store_batch_is_empty(batch));
        if (i % 3 != 0) {
            store_batch_add_sample(batch, i + 1, 1000, 0);
            assert_false(berth_store_batch_is_empty(batch));
        }
        Asked *asked = g_new(Asked, 1);
        *asked = (Asked){&answers, i};
        berth_store_commit_async(env->store, batch, on_answer, asked);
    }
    guint deadline = g_timeout_add_seconds(60, on_deadline, answers.loop);
    g_main_loop_run(answers.loop);
    g_source_remove(deadline);
    assert_int_equal(answers.order->len, 200);
    for (guint i = 0; i < 200; i++)
        assert_int_equal(g_array_index(answers.order, guint, i), i);
    g_array_unref(answers.order);
    g_main_loop_unref(answers.loop);
}

/* Reads in four threads while commits come in: each sees a job with its task, or neither. */
static gpointer read_meanwhile(gpointer data)
{
    StoreEnv *env = data;
    guint64 after = 0;
    while (after < 300) {
        gboolean more = FALSE;
        BerthStoreQuery query = {.after_job = after, .limit = 50, .any_uid = TRUE};
        g_autoptr(GPtrArray) jobs = berth_store_list_jobs(env->store, &query, &more, NULL);
        if (jobs == NULL)
            return (gpointer) "a list failed";
        for (guint i = 0; i < jobs->len; i++) {
            const Berth__Job *job = g_ptr_array_index(jobs, i);
            if (job->n_tasks != 1 || job->id != after + 1)
                return (gpointer) "a torn read";
            after = job->id;
        }
    }
    return NULL;
}

static void reads_in_threads_see_whole_batches(void **state)
{
    StoreEnv *env = *state;
    GThread *threads[6];
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = g_thread_new("reader", read_meanwhile, env);
    for (guint64 job = 1; job <= 300; job += 3)
        store_env_add_samples(env, job, job + 2, 1000);
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        assert_null(g_thread_join(threads[i]));
}

/* --- beside them ---------------------------------------------------------------------------- */

static gint64 journal_bytes(const char *path)
{
    struct stat status;
    g_autofree char *journal = g_strconcat(path, "-wal", NULL);
    return stat(journal, &status) == 0 ? (gint64)status.st_size : 0;
}

static void write_mib(StoreDb *db, guint mib)
{
    for (guint i = 0; i < mib; i++)
        assert_true(
            store_db_exec(db, "INSERT INTO filler VALUES (zeroblob(1048576))", "fill", NULL));
}

/* TOLD: how often it was not emptied, and how often it was. */
static void count_told(gboolean is_emptied, gpointer told)
{
    ((guint *)told)[is_emptied]++;
}

static void journal_that_a_reader_made_long_is_cut_back(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    g_autoptr(StoreDb) writer = store_db_open(fixture->path, STORE_DB_CREATE, NULL);
    assert_true(store_db_exec(writer, "PRAGMA journal_mode = WAL; CREATE TABLE filler (content)",
                              "make", NULL));
    guint told[2] = {0};
    store_db_bound_journal(writer, 8 << 20, count_told, told);
    g_autoptr(StoreDb) reader = store_db_open(fixture->path, STORE_DB_READ_ONLY, NULL);
    assert_true(store_db_exec(reader, "BEGIN; SELECT count(*) FROM filler", "read", NULL));
    write_mib(writer, 20);
    assert_true(journal_bytes(fixture->path) > 16 << 20);
    assert_true(told[FALSE] > 0);
    assert_int_equal(told[TRUE], 0);
    assert_true(store_db_exec(reader, "ROLLBACK", "end reading", NULL));
    write_mib(writer, 1);
    assert_true(journal_bytes(fixture->path) <= 8 << 20);
    assert_int_equal(told[TRUE], 1);
}

/* A store's wires, with a limit that is reached soon. */
typedef struct {
    StoreFixture *fixture;
    StoreDb *writer;
    StoreReaders *readers;
} Crowd;

static void on_long_journal(gboolean is_emptied, gpointer readers)
{
    if (is_emptied)
        store_readers_release(readers, TRUE);
    else
        store_readers_hold(readers);
}

static Crowd crowd_new(gint64 hold_max_usec)
{
    Crowd crowd = {.fixture = store_fixture_new()};
    crowd.writer = store_db_open(crowd.fixture->path, STORE_DB_CREATE, NULL);
    assert_true(store_db_exec(
        crowd.writer, "PRAGMA journal_mode = WAL; CREATE TABLE filler (content)", "make", NULL));
    crowd.readers = store_readers_new(crowd.fixture->path, 8, hold_max_usec, NULL);
    assert_non_null(crowd.readers);
    store_db_bound_journal(crowd.writer, 8 << 20, on_long_journal, crowd.readers);
    return crowd;
}

static void crowd_clear(Crowd *crowd)
{
    store_readers_free(crowd->readers);
    store_db_close(crowd->writer);
    store_fixture_free(crowd->fixture);
}

static StoreDb *begin_reading(Crowd *crowd)
{
    StoreDb *db = store_readers_take(crowd->readers);
    assert_true(store_db_exec(db, "BEGIN; SELECT count(*) FROM filler", "read", NULL));
    return db;
}

static gboolean end_reading(Crowd *crowd, StoreDb *db)
{
    assert_true(store_db_exec(db, "ROLLBACK", "end reading", NULL));
    return store_readers_give(crowd->readers, db);
}

static gpointer read_once(gpointer data)
{
    end_reading(data, begin_reading(data));
    return NULL;
}

/* There is always one that reads, until the log is long: then new ones wait until the old ones have ended. */
static void journal_that_readers_who_overlap_made_long_is_cut_back(void **state)
{
    Crowd crowd = crowd_new(600 * G_USEC_PER_SEC);
    StoreDb *old = begin_reading(&crowd);
    for (guint mib = 0; mib < 7; mib++) {
        StoreDb *next = begin_reading(&crowd);
        assert_false(end_reading(&crowd, old));
        old = next;
        write_mib(crowd.writer, 1);
    }
    StoreDb *other = begin_reading(&crowd);
    write_mib(crowd.writer, 3);
    assert_true(journal_bytes(crowd.fixture->path) > 8 << 20);
    GThread *late = g_thread_new("late", read_once, &crowd);
    assert_false(end_reading(&crowd, old)); /* another one still reads */
    write_mib(crowd.writer, 1);
    assert_true(journal_bytes(crowd.fixture->path) > 8 << 20);
    assert_true(end_reading(&crowd, other)); /* whoever began since has waited */
    gboolean is_emptied = store_db_empty_journal(crowd.writer);
    store_readers_release(crowd.readers, is_emptied);
    g_thread_join(late);
    assert_true(is_emptied);
    assert_int_equal(journal_bytes(crowd.fixture->path), 0);
    crowd_clear(&crowd);
}

/* The next commit does it as well, and lets them go on. */
static void journal_is_cut_back_by_a_commit_when_nobody_reads(void **state)
{
    Crowd crowd = crowd_new(600 * G_USEC_PER_SEC);
    StoreDb *old = begin_reading(&crowd);
    write_mib(crowd.writer, 10);
    GThread *late = g_thread_new("late", read_once, &crowd);
    assert_true(end_reading(&crowd, old));
    write_mib(crowd.writer, 1);
    g_thread_join(late);
    assert_true(journal_bytes(crowd.fixture->path) <= 8 << 20);
    crowd_clear(&crowd);
}

static void readers_are_not_held_back_for_one_that_does_not_end(void **state)
{
    Crowd crowd = crowd_new(G_USEC_PER_SEC / 100);
    StoreDb *old = begin_reading(&crowd);
    write_mib(crowd.writer, 10);
    read_once(&crowd);                      /* comes back */
    assert_false(end_reading(&crowd, old)); /* nobody waits any more */
    write_mib(crowd.writer, 1);
    assert_true(journal_bytes(crowd.fixture->path) <= 8 << 20);
    crowd_clear(&crowd);
}

static void batch_not_committed_is_freed(void **state)
{
    g_autoptr(BerthStoreBatch) batch = berth_store_batch_new();
    store_batch_add_sample(batch, 1, 1000, 7);
    berth_store_batch_remove_image(batch, "x");
    assert_false(berth_store_batch_is_empty(batch));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_ENV_BOTH(commit_same_job_twice_fails_for_good),
        STORE_ENV_BOTH(commit_same_key_twice_fails_for_good),
        STORE_ENV_BOTH(commit_unknown_job_fails_for_good),
        STORE_ENV_BOTH(commits_are_answered_in_order),
        STORE_ENV_BOTH(reads_in_threads_see_whole_batches),
        cmocka_unit_test(journal_that_a_reader_made_long_is_cut_back),
        cmocka_unit_test(journal_that_readers_who_overlap_made_long_is_cut_back),
        cmocka_unit_test(journal_is_cut_back_by_a_commit_when_nobody_reads),
        cmocka_unit_test(readers_are_not_held_back_for_one_that_does_not_end),
        cmocka_unit_test(batch_not_committed_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
