/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/store_fixture.h"

#include <glib/gstdio.h>
#include <string.h>

#define DEADLINE_SEC 60

StoreFixture *store_fixture_new(void)
{
    StoreFixture *fixture = g_new0(StoreFixture, 1);
    fixture->directory = g_dir_make_tmp("berth-store-XXXXXX", NULL);
    assert_non_null(fixture->directory);
    fixture->path = g_build_filename(fixture->directory, "berth.db", NULL);
    return fixture;
}

void store_fixture_free(StoreFixture *fixture)
{
    g_autoptr(GDir) dir = g_dir_open(fixture->directory, 0, NULL);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *file = g_build_filename(fixture->directory, name, NULL);
        g_remove(file);
    }
    g_rmdir(fixture->directory);
    g_free(fixture->directory);
    g_free(fixture->path);
    g_free(fixture);
}

BerthStore *store_open_ok(const char *path)
{
    g_autoptr(GError) error = NULL;
    BerthStore *store = berth_store_open(path, &error);
    if (store == NULL)
        fail_msg("open %s: %s", path, error->message);
    return store;
}

void store_open_fails(const char *path, int code, const char *word, const char *other)
{
    g_autoptr(GError) error = NULL;
    BerthStore *store = berth_store_open(path, &error);
    assert_null(store);
    assert_non_null(error);
    if (error->domain != BERTH_ERROR || error->code != code ||
        strstr(error->message, word) == NULL || strstr(error->message, other) == NULL)
        fail_msg("expected %s with \"%s\" and \"%s\", got %s: %s", berth_error_code_name(code),
                 word, other, berth_error_code_name(error->code), error->message);
}

typedef struct {
    GMainLoop *loop;
    gboolean answered;
    gboolean ok;
    GError *error;
} Wait;

static void on_committed(GObject *source, GAsyncResult *result, gpointer data)
{
    Wait *wait = data;
    wait->ok = berth_store_commit_finish(NULL, result, &wait->error);
    wait->answered = TRUE;
    g_main_loop_quit(wait->loop);
}

static gboolean on_deadline(gpointer data)
{
    g_main_loop_quit(data);
    return G_SOURCE_CONTINUE;
}

gboolean store_commit(BerthStore *store, BerthStoreBatch *batch, GError **error)
{
    Wait wait = {.loop = g_main_loop_new(NULL, FALSE)};
    guint deadline = g_timeout_add_seconds(DEADLINE_SEC, on_deadline, wait.loop);
    berth_store_commit_async(store, batch, on_committed, &wait);
    g_main_loop_run(wait.loop);
    g_source_remove(deadline);
    g_main_loop_unref(wait.loop);
    assert_true(wait.answered);
    if (wait.error != NULL)
        g_propagate_error(error, wait.error);
    return wait.ok;
}

void store_commit_ok(BerthStore *store, BerthStoreBatch *batch)
{
    g_autoptr(GError) error = NULL;
    if (!store_commit(store, batch, &error))
        fail_msg("commit: %s", error->message);
}

static void put_sample_task(BerthStoreBatch *batch, guint64 job, Berth__JobState state,
                            gboolean done)
{
    Berth__Task task = BERTH__TASK__INIT;
    task.job = job;
    task.state = state;
    task.epoch = 3;
    task.node = (char *)"n1";
    Berth__StoredTask stored = BERTH__STORED_TASK__INIT;
    stored.task = &task;
    stored.phase = 2;
    stored.log_id = (char *)"log-x";
    stored.peak_milli = 1500;
    stored.peak_mib = 444;
    berth_store_batch_put_task(batch, &stored, done);
}

static void fill_sample_job(Berth__Job *job, guint64 id, guint32 uid, Berth__JobState state)
{
    berth__job__init(job);
    job->id = id;
    job->uid = uid;
    job->user = (char *)"ada";
    job->name = (char *)"sample";
    job->state = state;
    job->vcpus = 2;
    job->memory_mib = 512;
}

void store_batch_add_sample(BerthStoreBatch *batch, guint64 id, guint32 uid, guint8 digest_byte)
{
    Berth__Job job;
    fill_sample_job(&job, id, uid, BERTH__JOB_STATE__PENDING);
    guint8 digest[32];
    memset(digest, digest_byte, sizeof digest);
    Berth__BlobRef script = BERTH__BLOB_REF__INIT;
    script.sha256.data = digest;
    script.sha256.len = sizeof digest;
    Berth__JobSpec spec = BERTH__JOB_SPEC__INIT;
    spec.name = (char *)"sample";
    spec.image = (char *)"busybox";
    spec.script = digest_byte != 0 ? &script : NULL;
    berth_store_batch_add_job(batch, &job, &spec, NULL);
    put_sample_task(batch, id, BERTH__JOB_STATE__PENDING, FALSE);
    Berth__Event event = BERTH__EVENT__INIT;
    event.seq = id;
    event.job = id;
    event.kind = BERTH__EVENT__KIND__JOB_SUBMITTED;
    berth_store_batch_add_event(batch, &event);
}

void store_batch_set_state(BerthStoreBatch *batch, guint64 id, guint32 uid, Berth__JobState state,
                           gboolean done)
{
    Berth__Job job;
    fill_sample_job(&job, id, uid, state);
    berth_store_batch_update_job(batch, &job);
    put_sample_task(batch, id, state, done);
}

void store_batch_add_keyed_job(BerthStoreBatch *batch, guint64 id, guint32 uid, const char *key)
{
    Berth__Job job = BERTH__JOB__INIT;
    job.id = id;
    job.uid = uid;
    Berth__JobSpec spec = BERTH__JOB_SPEC__INIT;
    berth_store_batch_add_job(batch, &job, &spec, key);
}
