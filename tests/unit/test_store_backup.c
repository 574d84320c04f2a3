/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a database that is written to: what is in them, and that they ask nothing of what they are written to. */
#include "tests/lib/assert.h"
#include "tests/lib/integrity.h"
#include "tests/unit/store_env.h"

#include "scheduler/store/sink.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <string.h>
#include <unistd.h>

#define UID       1000u
#define N_SAMPLES 100u
#define N_BLOBS   24u

/* The jobs come first in the file, so that a copy has come by them early. */
static void fill(StoreEnv *env)
{
    g_autofree char *text = g_strnfill(1 << 20, 'x');
    g_autoptr(GBytes) content = g_bytes_new(text, 1 << 20);
    guint8 digest[32] = {0};
    BerthStoreBatch *batch = berth_store_batch_new();
    store_env_add_samples(env, 1, N_SAMPLES, UID);
    for (guint8 i = 1; i <= N_BLOBS; i++) {
        memset(digest, i, sizeof digest);
        berth_store_batch_put_blob(batch, digest, content);
    }
    store_commit_ok(env->store, batch);
}

typedef struct {
    char *path;
    int fd;
} Copy;

static Copy make_copy(StoreEnv *env)
{
    Copy copy = {g_build_filename(env->fixture->directory, "copy.db", NULL), -1};
    copy.fd = open(copy.path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(copy.fd >= 0);
    return copy;
}

static gboolean write_copy(GBytes *content, guint64 offset, gpointer user_data, GError **error)
{
    const Copy *copy = user_data;
    gsize length = 0;
    const void *data = g_bytes_get_data(content, &length);
    assert_int_equal(pwrite(copy->fd, data, length, (off_t)offset), length);
    return TRUE;
}

static gboolean refuse(GBytes *content, guint64 offset, gpointer user_data, GError **error)
{
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED, "no room");
    return FALSE;
}

static BerthStoreBackup *begin(StoreEnv *env)
{
    g_autoptr(GError) error = NULL;
    BerthStoreBackup *backup = berth_store_backup_begin(env->store, &error);
    assert_no_error(error);
    return backup;
}

static BerthStoreBackupState step(BerthStoreBackup *backup, Copy *copy)
{
    g_autoptr(GError) error = NULL;
    BerthStoreBackupState state = {0};
    berth_store_backup_step(backup, write_copy, copy, &state, &error);
    assert_no_error(error);
    assert_true(state.copied_pages <= state.total_pages);
    return state;
}

/* Jobs up to LAST, of which those up to N_ENDED have ended. */
static void assert_jobs(const char *path, guint64 last, guint64 n_ended)
{
    g_autoptr(BerthStore) store = store_open_ok(path);
    for (guint64 number = 1; number <= last; number++) {
        g_autoptr(GError) error = NULL;
        Berth__Job *job = berth_store_get_job(store, number, &error);
        assert_no_error(error);
        assert_int_equal(job->state, number <= n_ended ? BERTH__JOB_STATE__COMPLETED
                                                       : BERTH__JOB_STATE__PENDING);
        berth__job__free_unpacked(job, NULL);
    }
    assert_null(berth_store_get_job(store, last + 1, NULL));
}

/* What changes where it has been already, and where it has not, and what is added. */
static void backup_has_what_was_committed_while_it_was_made(void **state)
{
    StoreEnv *env = *state;
    fill(env);
    guint64 last = N_SAMPLES, n_ended = 0;
    Copy copy = make_copy(env);
    BerthStoreBackup *backup = begin(env);
    BerthStoreBackupState done = step(backup, &copy);
    assert_false(done.is_done);
    while (!done.is_done) {
        BerthStoreBatch *batch = berth_store_batch_new();
        if (n_ended < N_SAMPLES)
            store_batch_set_state(batch, ++n_ended, UID, BERTH__JOB_STATE__COMPLETED, TRUE);
        store_batch_add_sample(batch, ++last, UID, 0);
        store_commit_ok(env->store, batch);
        done = step(backup, &copy);
    }
    berth_store_backup_free(backup);
    store_env_add_samples(env, last + 1, last + 1, UID); /* too late */
    assert_true(n_ended > 1);
    assert_int_equal(done.copied_pages, done.total_pages);
    assert_int_equal(lseek(copy.fd, 0, SEEK_END), done.total_pages * done.page_bytes);
    close(copy.fd);
    assert_integrity(copy.path);
    assert_jobs(copy.path, last, n_ended);
    g_free(copy.path);
}

/* It opens where nothing can be made beside it, and without shared memory. */
static void backup_needs_no_write_ahead_log(void **state)
{
    StoreEnv *env = *state;
    store_env_add_samples(env, 1, 1, UID);
    Copy copy = make_copy(env);
    BerthStoreBackup *backup = begin(env);
    while (!step(backup, &copy).is_done)
        continue;
    berth_store_backup_free(backup);
    close(copy.fd);
    g_autofree char *header = NULL;
    assert_true(g_file_get_contents(copy.path, &header, NULL, NULL));
    assert_int_equal(header[18], 1);
    assert_int_equal(header[19], 1);
    assert_integrity(copy.path);
    assert_jobs(copy.path, 1, 0);
    g_free(copy.path);
}

static void backup_that_is_given_up_leaves_commits_alone(void **state)
{
    StoreEnv *env = *state;
    fill(env);
    g_autoptr(GError) error = NULL;
    BerthStoreBackupState done = {0};
    Copy copy = make_copy(env);
    BerthStoreBackup *given_up = begin(env);
    step(given_up, &copy);
    berth_store_backup_free(given_up);
    BerthStoreBackup *refused = begin(env);
    while (berth_store_backup_step(refused, refuse, NULL, &done, &error))
        assert_false(done.is_done); /* it had nothing to write yet */
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "no room");
    berth_store_backup_free(refused);
    store_env_add_samples(env, N_SAMPLES + 1, N_SAMPLES + 1, UID);
    BerthStoreBackup *backup = begin(env);
    while (!step(backup, &copy).is_done)
        continue;
    berth_store_backup_free(backup);
    close(copy.fd);
    assert_integrity(copy.path);
    assert_jobs(copy.path, N_SAMPLES + 1, 0);
    g_free(copy.path);
}

/* --- where nobody takes what is written ---------------------------------------------------------- */

static void sink_that_nobody_empties_takes_no_more(void **state)
{
    g_autoptr(StoreSink) sink = store_sink_new(256 << 10);
    sqlite3 *source = NULL, *copy = NULL;
    assert_int_equal(sqlite3_open(":memory:", &source), SQLITE_OK);
    assert_int_equal(sqlite3_exec(source,
                                  "PRAGMA page_size = 4096; CREATE TABLE filler (content);"
                                  "INSERT INTO filler VALUES (zeroblob(8388608))",
                                  NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(store_sink_open(sink, &copy), SQLITE_OK);
    sqlite3_backup *backup = sqlite3_backup_init(copy, "main", source, "main");
    assert_non_null(backup);
    assert_int_equal(sqlite3_backup_step(backup, -1), SQLITE_FULL);
    assert_true(store_sink_is_full(sink));
    assert_int_equal(store_sink_waiting_bytes(sink), 0);
    sqlite3_backup_finish(backup);
    g_autoptr(GPtrArray) pieces = store_sink_take(sink);
    assert_int_equal(pieces->len, 0);
    sqlite3_close(copy);
    sqlite3_close(source);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_ENV_BOTH(backup_has_what_was_committed_while_it_was_made),
        STORE_ENV_BOTH(backup_needs_no_write_ahead_log),
        STORE_ENV_BOTH(backup_that_is_given_up_leaves_commits_alone),
        cmocka_unit_test(sink_that_nobody_empties_takes_no_more),
    };
    return cmocka_run_group_tests_name("store_backup", tests, NULL, NULL);
}
