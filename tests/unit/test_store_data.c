/* SPDX-License-Identifier: Apache-2.0 */
/* What goes in comes out: records, lists, events, blobs, and what a restart loads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/store_env.h"

#include <string.h>

static void reopen(StoreEnv *env)
{
    berth_store_close(env->store);
    env->store = store_open_ok(env->path);
}

static void set_state(StoreEnv *env, guint64 job, guint32 uid, Berth__JobState state, gboolean done)
{
    BerthStoreBatch *batch = berth_store_batch_new();
    store_batch_set_state(batch, job, uid, state, done);
    store_commit_ok(env->store, batch);
}

/* --- single records ------------------------------------------------------------------------- */

static void get_job_gives_what_was_added(void **state)
{
    StoreEnv *env = *state;
    store_env_add_samples(env, 12, 12, 1000);
    reopen(env);
    g_autoptr(GError) error = NULL;
    Berth__Job *job = berth_store_get_job(env->store, 12, &error);
    assert_non_null(job);
    assert_int_equal(job->id, 12);
    assert_int_equal(job->uid, 1000);
    assert_string_equal(job->user, "ada");
    assert_string_equal(job->spec->image, "busybox");
    assert_int_equal(job->n_tasks, 1);
    assert_int_equal(job->tasks[0]->job, 12);
    assert_int_equal(job->tasks[0]->epoch, 3);
    berth__job__free_unpacked(job, NULL);

    Berth__StoredTask *task = berth_store_get_task(env->store, 12, 0, &error);
    assert_non_null(task);
    assert_string_equal(task->log_id, "log-x");
    assert_int_equal(task->phase, 2);
    assert_int_equal(task->peak_milli, 1500);
    assert_int_equal(task->peak_mib, 444);
    berth__stored_task__free_unpacked(task, NULL);

    Berth__JobSpec *spec = berth_store_get_spec(env->store, 12, &error);
    assert_non_null(spec);
    assert_string_equal(spec->name, "sample");
    berth__job_spec__free_unpacked(spec, NULL);
}

static void get_unknown_is_not_found(void **state)
{
    StoreEnv *env = *state;
    store_env_add_samples(env, 1, 1, 1000);
    GError *error = NULL;
    assert_null(berth_store_get_job(env->store, 99, &error));
    assert_true(g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND));
    g_clear_error(&error);
    assert_null(berth_store_get_spec(env->store, G_MAXUINT64, &error));
    assert_true(g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND));
    g_clear_error(&error);
    assert_null(berth_store_get_task(env->store, 1, 5, &error));
    assert_true(g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND));
    g_clear_error(&error);
}

static void update_job_keeps_spec_and_tasks(void **state)
{
    StoreEnv *env = *state;
    store_env_add_samples(env, 1, 1, 1000);
    set_state(env, 1, 1000, BERTH__JOB_STATE__RUNNING, FALSE);
    Berth__Job *job = berth_store_get_job(env->store, 1, NULL);
    assert_non_null(job);
    assert_int_equal(job->state, BERTH__JOB_STATE__RUNNING);
    assert_int_equal(job->tasks[0]->state, BERTH__JOB_STATE__RUNNING);
    assert_string_equal(job->spec->image, "busybox");
    berth__job__free_unpacked(job, NULL);
}

/* Its record has numbers of events; one that is not there is left out. */
static void get_job_has_the_events_of_its_requests(void **state)
{
    StoreEnv *env = *state;
    store_env_add_samples(env, 1, 3, 1000);
    g_autoptr(GError) error = NULL;
    Berth__JobRequest done = BERTH__JOB_REQUEST__INIT, at_once = BERTH__JOB_REQUEST__INIT;
    Berth__JobRequest lost = BERTH__JOB_REQUEST__INIT;
    Berth__JobRequest *requests[] = {&done, &at_once, &lost};
    done.asked_seq = at_once.asked_seq = at_once.settled_seq = 2;
    done.settled_seq = 3;
    lost.asked_seq = 99;
    Berth__Job *bare = berth_store_get_job(env->store, 1, &error);
    assert_non_null(bare);
    Berth__Job changed = *bare;
    changed.requests = requests;
    changed.n_requests = G_N_ELEMENTS(requests);
    BerthStoreBatch *batch = berth_store_batch_new();
    berth_store_batch_update_job(batch, &changed);
    store_commit_ok(env->store, batch);
    berth__job__free_unpacked(bare, NULL);
    reopen(env);
    Berth__Job *job = berth_store_get_job(env->store, 1, &error);
    assert_non_null(job);
    assert_int_equal(job->n_requests, 3);
    assert_int_equal(job->requests[0]->asked->seq, 2);
    assert_int_equal(job->requests[0]->settled->seq, 3);
    assert_int_equal(job->requests[1]->asked->seq, 2);
    assert_null(job->requests[1]->settled);
    assert_null(job->requests[2]->asked);
    berth__job__free_unpacked(job, NULL);
}

/* --- lists ---------------------------------------------------------------------------------- */

/* Checks that QUERY gives the jobs EXPECTED (ended by 0). */
static void assert_lists(StoreEnv *env, const BerthStoreQuery *query, const guint64 *expected,
                         gboolean expected_more)
{
    gboolean more = !expected_more;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) jobs = berth_store_list_jobs(env->store, query, &more, &error);
    assert_non_null(jobs);
    guint n = 0;
    for (; expected[n] != 0; n++) {
        assert_true(n < jobs->len);
        const Berth__Job *job = g_ptr_array_index(jobs, n);
        assert_int_equal(job->id, expected[n]);
        assert_int_equal(job->n_tasks, 1);
        assert_null(job->spec);
    }
    assert_int_equal(jobs->len, n);
    assert_int_equal(more, expected_more);
}

static void list_jobs_selects_and_pages(void **state)
{
    StoreEnv *env = *state;
    store_env_add_samples(env, 1, 4, 1000);
    store_env_add_samples(env, 5, 6, 2000);
    set_state(env, 2, 1000, BERTH__JOB_STATE__RUNNING, FALSE);
    set_state(env, 3, 1000, BERTH__JOB_STATE__COMPLETED, TRUE);
    set_state(env, 5, 2000, BERTH__JOB_STATE__FAILED, TRUE);
    const int open[] = {BERTH__JOB_STATE__PENDING, BERTH__JOB_STATE__RUNNING};
    const int over[] = {BERTH__JOB_STATE__COMPLETED, BERTH__JOB_STATE__FAILED};
    const int mixed[] = {BERTH__JOB_STATE__RUNNING, BERTH__JOB_STATE__FAILED};
    const guint64 some[] = {6, 3, 77, 1};
    const struct {
        BerthStoreQuery query;
        guint64 expected[8];
        gboolean more;
    } cases[] = {
        {{.limit = 100, .any_uid = TRUE}, {1, 2, 3, 4, 5, 6}, FALSE},
        {{.limit = 6, .any_uid = TRUE}, {1, 2, 3, 4, 5, 6}, FALSE},
        {{.limit = 2, .any_uid = TRUE}, {1, 2}, TRUE},
        {{.limit = 2, .any_uid = TRUE, .after_job = 2}, {3, 4}, TRUE},
        {{.limit = 2, .any_uid = TRUE, .after_job = 4}, {5, 6}, FALSE},
        {{.limit = 2, .any_uid = TRUE, .after_job = 6}, {0}, FALSE},
        {{.limit = 9, .any_uid = TRUE, .after_job = G_MAXUINT64}, {0}, FALSE},
        {{.limit = 0, .any_uid = TRUE}, {1}, TRUE},
        {{.limit = 9, .any_uid = TRUE, .bytes_max = 1}, {1}, TRUE},
        {{.limit = 9, .any_uid = TRUE, .bytes_max = 1, .after_job = 5}, {6}, FALSE},
        {{.limit = 9, .any_uid = TRUE, .bytes_max = 1 << 20}, {1, 2, 3, 4, 5, 6}, FALSE},
        {{.limit = 9, .uid = 2000}, {5, 6}, FALSE},
        {{.limit = 9, .uid = 3000}, {0}, FALSE},
        {{.limit = 9, .any_uid = TRUE, .states = open, .n_states = 2}, {1, 2, 4, 6}, FALSE},
        {{.limit = 3, .any_uid = TRUE, .states = open, .n_states = 2}, {1, 2, 4}, TRUE},
        {{.limit = 9, .any_uid = TRUE, .states = over, .n_states = 2}, {3, 5}, FALSE},
        {{.limit = 9, .any_uid = TRUE, .states = mixed, .n_states = 2}, {2, 5}, FALSE},
        {{.limit = 9, .uid = 1000, .states = open, .n_states = 2}, {1, 2, 4}, FALSE},
        {{.limit = 9, .any_uid = TRUE, .states = open, .n_states = 0}, {0}, FALSE},
        {{.limit = 9, .any_uid = TRUE, .jobs = some, .n_jobs = 4}, {1, 3, 6}, FALSE},
        {{.limit = 9, .uid = 1000, .jobs = some, .n_jobs = 4}, {1, 3}, FALSE},
        {{.limit = 9, .any_uid = TRUE, .jobs = some, .n_jobs = 0}, {0}, FALSE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++)
        assert_lists(env, &cases[i].query, cases[i].expected, cases[i].more);
}

static void list_events_resumes_after_seq(void **state)
{
    StoreEnv *env = *state;
    store_env_add_samples(env, 1, 5, 1000);
    BerthStoreBatch *batch = berth_store_batch_new();
    for (guint64 seq = 6; seq <= 9; seq++) {
        Berth__Event event = BERTH__EVENT__INIT;
        event.seq = seq;
        event.job = seq == 8 ? 0 : 2;
        event.text = (char *)"why";
        berth_store_batch_add_event(batch, &event);
    }
    store_commit_ok(env->store, batch);
    const struct {
        guint64 after, job;
        guint32 limit;
        guint64 expected[10];
    } cases[] = {
        {0, 0, 100, {1, 2, 3, 4, 5, 6, 7, 8, 9}},
        {7, 0, 100, {8, 9}},
        {9, 0, 100, {0}},
        {2, 0, 3, {3, 4, 5}},
        {0, 2, 100, {2, 6, 7, 9}},
        {6, 2, 1, {7}},
        {0, 77, 100, {0}},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GPtrArray) events =
            berth_store_list_events(env->store, cases[i].after, cases[i].job, cases[i].limit, NULL);
        assert_non_null(events);
        guint n = 0;
        for (; cases[i].expected[n] != 0; n++) {
            assert_true(n < events->len);
            const Berth__Event *event = g_ptr_array_index(events, n);
            assert_int_equal(event->seq, cases[i].expected[n]);
        }
        assert_int_equal(events->len, n);
    }
}

static void find_event_is_the_last_one_before_a_time(void **state)
{
    StoreEnv *env = *state;
    guint64 before_seq = 77;
    assert_true(berth_store_find_event(env->store, 1000, &before_seq, NULL));
    assert_int_equal(before_seq, 0);
    BerthStoreBatch *batch = berth_store_batch_new();
    for (guint64 seq = 1; seq <= 9; seq++) {
        Berth__Event event = BERTH__EVENT__INIT;
        event.seq = seq;
        event.time_usec = 1000 * (1 + seq / 2); /* 1000, 2000, 2000, 3000, 3000 ... 5000, 5000 */
        berth_store_batch_add_event(batch, &event);
    }
    store_commit_ok(env->store, batch);
    static const struct {
        guint64 time_usec, before_seq;
    } cases[] = {{1, 0},    {1000, 0}, {1001, 1}, {2000, 1}, {2001, 3},
                 {3000, 3}, {4999, 7}, {5000, 7}, {5001, 9}, {G_MAXUINT64, 9}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        assert_true(berth_store_find_event(env->store, cases[i].time_usec, &before_seq, NULL));
        assert_int_equal(before_seq, cases[i].before_seq);
    }
}

/* Looks at every job; somebody gives up waiting. */
static void list_jobs_that_is_stopped_ends(void **state)
{
    StoreEnv *env = *state;
    gboolean more = FALSE;
    g_autoptr(GError) error = NULL;
    g_autoptr(GCancellable) stop = g_cancellable_new();
    store_env_add_samples(env, 1, 3000, 1000);
    BerthStoreQuery query = {.limit = 10000, .any_uid = TRUE, .stop = stop};
    g_autoptr(GPtrArray) jobs = berth_store_list_jobs(env->store, &query, &more, &error);
    assert_non_null(jobs);
    assert_int_equal(jobs->len, 3000);
    g_cancellable_cancel(stop);
    assert_null(berth_store_list_jobs(env->store, &query, &more, &error));
    assert_true(g_error_matches(error, BERTH_ERROR, BERTH_ERROR_CANCELLED));
    /* The connection is as good as before. */
    query.stop = NULL;
    g_autoptr(GPtrArray) again = berth_store_list_jobs(env->store, &query, &more, NULL);
    assert_int_equal(again->len, 3000);
}

/* A query that is to stop at once, and comes to its end before it would look whether it is: what it
 * goes through does not depend on how many jobs there are. */
static void list_jobs_of_rare_states_looks_at_few(void **state)
{
    StoreEnv *env = *state;
    const int final[] = {BERTH__JOB_STATE__COMPLETED, BERTH__JOB_STATE__FAILED,
                         BERTH__JOB_STATE__TIMEOUT};
    g_autoptr(GCancellable) stop = g_cancellable_new();
    store_env_add_samples(env, 1, 5000, 1000);
    set_state(env, 4000, 1000, BERTH__JOB_STATE__FAILED, TRUE);
    set_state(env, 4999, 1000, BERTH__JOB_STATE__COMPLETED, TRUE);
    g_cancellable_cancel(stop);
    for (guint any = 0; any < 2; any++) {
        g_autoptr(GError) error = NULL;
        gboolean more = TRUE;
        BerthStoreQuery query = {.limit = 100,
                                 .any_uid = any == 1,
                                 .uid = 1000,
                                 .states = final,
                                 .n_states = G_N_ELEMENTS(final),
                                 .stop = stop};
        g_autoptr(GPtrArray) jobs = berth_store_list_jobs(env->store, &query, &more, &error);
        assert_null(error);
        assert_int_equal(jobs->len, 2);
        assert_false(more);
    }
}

/* --- blobs and keys ------------------------------------------------------------------------- */

static void blob_is_kept_while_a_job_names_it(void **state)
{
    StoreEnv *env = *state;
    guint8 used[32], unused[32];
    memset(used, 7, sizeof used);
    memset(unused, 8, sizeof unused);
    g_autoptr(GBytes) content = g_bytes_new_static("#!/bin/sh\n", 10);
    g_autoptr(GBytes) nothing = g_bytes_new_static("", 0);
    BerthStoreBatch *batch = berth_store_batch_new();
    berth_store_batch_put_blob(batch, used, content);
    berth_store_batch_put_blob(batch, used, content);
    berth_store_batch_put_blob(batch, unused, nothing);
    store_batch_add_sample(batch, 1, 1000, 7);
    store_batch_add_sample(batch, 2, 1000, 7);
    store_commit_ok(env->store, batch);
    g_autoptr(GBytes) empty = berth_store_get_blob(env->store, unused, NULL);
    assert_non_null(empty);
    assert_int_equal(g_bytes_get_size(empty), 0);
    reopen(env);

    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) found = berth_store_get_blob(env->store, used, &error);
    assert_non_null(found);
    assert_true(g_bytes_equal(found, content));
    assert_null(berth_store_get_blob(env->store, unused, &error));
    assert_null(error);
    gboolean is_used = FALSE;
    assert_true(berth_store_blob_is_used(env->store, used, &is_used, NULL));
    assert_true(is_used);
    assert_true(berth_store_blob_is_used(env->store, unused, &is_used, NULL));
    assert_false(is_used);
}

static void blob_references_come_from_whole_spec(void **state)
{
    StoreEnv *env = *state;
    guint8 digests[5][32];
    Berth__BlobRef refs[5];
    for (int i = 0; i < 5; i++) {
        memset(digests[i], 40 + i, 32);
        berth__blob_ref__init(&refs[i]);
        refs[i].sha256.data = digests[i];
        refs[i].sha256.len = 32;
    }
    Berth__InputFile inputs[2] = {BERTH__INPUT_FILE__INIT, BERTH__INPUT_FILE__INIT};
    inputs[0].blob = &refs[2];
    inputs[1].blob = &refs[3];
    Berth__InputFile *input_list[] = {&inputs[0], &inputs[1]};
    Berth__JobSpec spec = BERTH__JOB_SPEC__INIT;
    spec.script = &refs[0];
    spec.environment = &refs[1];
    spec.inputs = input_list;
    spec.n_inputs = 2;
    Berth__TaskLines each = BERTH__TASK_LINES__INIT;
    each.blob = &refs[4];
    spec.each = &each;
    Berth__Job job = BERTH__JOB__INIT;
    job.id = 1;
    BerthStoreBatch *batch = berth_store_batch_new();
    berth_store_batch_add_job(batch, &job, &spec, "");
    store_commit_ok(env->store, batch);
    for (int i = 0; i < 5; i++) {
        gboolean used = FALSE;
        assert_true(berth_store_blob_is_used(env->store, digests[i], &used, NULL));
        assert_true(used);
    }
}

static void idempotency_key_is_found_per_user(void **state)
{
    StoreEnv *env = *state;
    BerthStoreBatch *batch = berth_store_batch_new();
    store_batch_add_keyed_job(batch, 4, 1000, "k");
    store_batch_add_keyed_job(batch, 5, 2000, "k");
    store_commit_ok(env->store, batch);
    g_autoptr(GError) error = NULL;
    assert_int_equal(berth_store_find_idempotency_key(env->store, 1000, "k", &error), 4);
    assert_int_equal(berth_store_find_idempotency_key(env->store, 2000, "k", &error), 5);
    assert_int_equal(berth_store_find_idempotency_key(env->store, 3000, "k", &error), 0);
    assert_int_equal(berth_store_find_idempotency_key(env->store, 1000, "other", &error), 0);
    assert_null(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_ENV_BOTH(get_job_gives_what_was_added),
        STORE_ENV_BOTH(get_unknown_is_not_found),
        STORE_ENV_BOTH(update_job_keeps_spec_and_tasks),
        STORE_ENV_BOTH(get_job_has_the_events_of_its_requests),
        STORE_ENV_BOTH(list_jobs_selects_and_pages),
        STORE_ENV_BOTH(list_events_resumes_after_seq),
        STORE_ENV_BOTH(find_event_is_the_last_one_before_a_time),
        STORE_ENV_BOTH(list_jobs_that_is_stopped_ends),
        STORE_ENV_BOTH(list_jobs_of_rare_states_looks_at_few),
        STORE_ENV_BOTH(blob_is_kept_while_a_job_names_it),
        STORE_ENV_BOTH(blob_references_come_from_whole_spec),
        STORE_ENV_BOTH(idempotency_key_is_found_per_user),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
