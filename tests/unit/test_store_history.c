/* SPDX-License-Identifier: Apache-2.0 */
/* What is over for long: which it is, and that nothing of it stays, and all else does. */
#include "tests/lib/assert.h"
#include "tests/unit/store_env.h"

#include <string.h>

#define UID 1000u

/* --- what there is ---------------------------------------------------------------------------- */

static void add_event(BerthStoreBatch *batch, guint64 seq, guint64 job)
{
    Berth__Event event = BERTH__EVENT__INIT;
    event.seq = seq;
    event.job = job;
    event.time_usec = seq * 1000;
    berth_store_batch_add_event(batch, &event);
}

static void end_jobs(StoreEnv *env, guint64 first, guint64 last)
{
    BerthStoreBatch *batch = berth_store_batch_new();
    for (guint64 job = first; job <= last; job++)
        store_batch_set_state(batch, job, UID, BERTH__JOB_STATE__COMPLETED, TRUE);
    store_commit_ok(env->store, batch);
}

static void add_later_event(StoreEnv *env, guint64 seq, guint64 job)
{
    BerthStoreBatch *batch = berth_store_batch_new();
    add_event(batch, seq, job);
    store_commit_ok(env->store, batch);
}

static gboolean is_there(StoreEnv *env, guint64 job)
{
    g_autoptr(GError) error = NULL;
    Berth__Job *found = berth_store_get_job(env->store, job, &error);
    if (found == NULL)
        assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "no job");
    else
        berth__job__free_unpacked(found, NULL);
    return found != NULL;
}

static gboolean is_used(StoreEnv *env, guint8 digest_byte)
{
    g_autoptr(GError) error = NULL;
    guint8 digest[32];
    gboolean used = FALSE;
    memset(digest, digest_byte, sizeof digest);
    assert_true(berth_store_blob_is_used(env->store, digest, &used, &error));
    return used;
}

static guint n_events(StoreEnv *env)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) events = berth_store_list_events(env->store, 0, 0, 10000, &error);
    assert_no_error(error);
    return events->len;
}

static BerthStoreOld *find(StoreEnv *env, guint64 before_seq, guint64 after_job)
{
    g_autoptr(GError) error = NULL;
    BerthStoreOld *old = berth_store_find_old(env->store, before_seq, after_job, &error);
    assert_no_error(error);
    return old;
}

static const BerthStoreOldJob *job_at(const BerthStoreOld *old, guint place)
{
    assert_true(place < old->jobs->len);
    return &g_array_index(old->jobs, BerthStoreOldJob, place);
}

static void remove_all(StoreEnv *env, const BerthStoreOld *old)
{
    BerthStoreBatch *batch = berth_store_batch_new();
    for (guint i = 0; i < old->jobs->len; i++)
        berth_store_batch_remove_old(batch, job_at(old, i));
    store_commit_ok(env->store, batch);
}

/* --- jobs --------------------------------------------------------------------------------------- */

/* Of seven: 3 has an event since, 4 is open, 6 has ended since, and 7 was submitted then. */
static void old_jobs_go_with_all_that_is_theirs(void **state)
{
    StoreEnv *env = *state;
    BerthStoreBatch *batch = berth_store_batch_new();
    for (guint64 job = 1; job <= 6; job++)
        store_batch_add_sample(batch, job, UID, (guint8)job);
    store_batch_add_keyed_job(batch, 7, UID, "late");
    add_event(batch, 90, 7);
    store_commit_ok(env->store, batch);
    end_jobs(env, 1, 3);
    end_jobs(env, 5, 7);
    add_later_event(env, 91, 3);
    add_later_event(env, 92, 6);
    g_autoptr(BerthStoreOld) old = find(env, 50, 0);
    assert_int_equal(old->jobs->len, 3);
    assert_true(old->is_last);
    for (guint i = 0; i < 3; i++) {
        const BerthStoreOldJob *job = job_at(old, i);
        const BerthGuestId *guest = &g_array_index(old->guests, BerthGuestId, i);
        assert_int_equal(job->job, i < 2 ? i + 1 : 5);
        assert_true(job->is_whole);
        assert_int_equal(guest->job, job->job);
        assert_int_equal(guest->epoch, 3);
    }
    remove_all(env, old);
    for (guint64 job = 1; job <= 7; job++) {
        gboolean stays = job == 3 || job == 4 || job == 6 || job == 7;
        assert_int_equal(is_there(env, job), stays);
        if (job < 7)
            assert_int_equal(is_used(env, (guint8)job), stays);
    }
    assert_int_equal(n_events(env), 3 + 3);
    assert_int_equal(berth_store_find_idempotency_key(env->store, UID, "late", NULL), 7);
    g_autoptr(BerthStoreOld) none = find(env, 50, 0);
    assert_int_equal(none->jobs->len, 0);
    g_autoptr(BerthStoreOld) rest = find(env, 92, 0); /* the newest event stays, and whose it is */
    assert_int_equal(rest->jobs->len, 2);
    remove_all(env, rest);
    assert_false(is_there(env, 7));
    assert_int_equal(berth_store_find_idempotency_key(env->store, UID, "late", NULL), 0);
    assert_true(is_there(env, 4));
    assert_true(is_there(env, 6));
}

static void large_job_goes_in_parts(void **state)
{
    StoreEnv *env = *state;
    guint n_parts = 0, n_guests = 0;
    BerthStoreBatch *batch = berth_store_batch_new();
    store_batch_add_sample(batch, 1, UID, 1);
    for (guint32 index = 0; index < 4500; index++) {
        Berth__Task task = BERTH__TASK__INIT;
        Berth__StoredTask stored = BERTH__STORED_TASK__INIT;
        task.job = 1;
        task.index = index;
        task.state = BERTH__JOB_STATE__COMPLETED;
        task.epoch = index % 2; /* half of them have never run */
        stored.task = &task;
        berth_store_batch_put_task(batch, &stored, TRUE);
    }
    add_event(batch, 99, 0);
    store_commit_ok(env->store, batch);
    for (guint64 after_job = 0;; n_parts++) {
        g_autoptr(BerthStoreOld) part = find(env, 50, after_job);
        if (part->jobs->len == 0)
            break;
        assert_int_equal(part->jobs->len, 1);
        assert_int_equal(job_at(part, 0)->is_whole, n_parts == 8);
        assert_int_equal(job_at(part, 0)->n_tasks, 500);
        assert_true(is_there(env, 1));
        n_guests += part->guests->len;
        after_job = part->after_job;
        remove_all(env, part);
    }
    assert_int_equal(n_parts, 9);
    assert_int_equal(n_guests, 2250);
    assert_false(is_there(env, 1));
    assert_int_equal(n_events(env), 1);
}

static void many_jobs_go_in_parts(void **state)
{
    StoreEnv *env = *state;
    store_env_add_samples(env, 1, 1100, UID);
    end_jobs(env, 1, 1100);
    add_later_event(env, 2000, 0);
    guint n = 0;
    guint64 after_job = 0;
    gboolean is_last = FALSE;
    for (guint parts = 1; !is_last; parts++) {
        g_autoptr(BerthStoreOld) part = find(env, 1500, after_job);
        n += part->jobs->len;
        is_last = part->is_last;
        after_job = part->after_job;
        remove_all(env, part);
        assert_int_equal(is_last, parts == 3);
    }
    assert_int_equal(n, 1100);
    assert_int_equal(n_events(env), 1);
}

/* --- the rest ----------------------------------------------------------------------------------- */

static void events_of_no_job_go_but_for_the_newest(void **state)
{
    StoreEnv *env = *state;
    store_env_add_samples(env, 1, 1, UID);
    BerthStoreBatch *batch = berth_store_batch_new();
    for (guint64 seq = 2; seq <= 9; seq++)
        add_event(batch, seq, 0);
    store_commit_ok(env->store, batch);
    batch = berth_store_batch_new();
    berth_store_batch_remove_events(batch, 5);
    store_commit_ok(env->store, batch);
    assert_int_equal(n_events(env), 1 + 4);
    guint64 before = 0;
    assert_true(berth_store_find_event(env->store, 8000, &before, NULL));
    assert_int_equal(before, 7);
    batch = berth_store_batch_new();
    berth_store_batch_remove_events(batch, 100);
    store_commit_ok(env->store, batch);
    assert_int_equal(n_events(env), 1 + 1);
}

/* However many come between two rounds, the first removes them all, and looks at a job that stays once. */
static void many_events_of_no_job_go_in_parts(void **state)
{
    StoreEnv *env = *state;
    const guint64 last = 50000;
    store_env_add_samples(env, 1, 2, UID);
    end_jobs(env, 1, 1);
    BerthStoreBatch *batch = berth_store_batch_new();
    for (guint64 seq = 3; seq <= last; seq++)
        add_event(batch, seq, seq == 4 ? 2 : 0);
    store_commit_ok(env->store, batch);
    guint n_parts = 0;
    guint64 after_job = 0;
    for (gboolean is_last = FALSE; !is_last; n_parts++) {
        g_autoptr(BerthStoreOld) part = find(env, last, after_job);
        assert_int_equal(part->jobs->len, n_parts == 0);
        assert_int_equal(part->after_job, 2);
        assert_true(part->events_to > 0);
        is_last = part->is_last;
        after_job = part->after_job;
        batch = berth_store_batch_new();
        for (guint i = 0; i < part->jobs->len; i++)
            berth_store_batch_remove_old(batch, job_at(part, i));
        berth_store_batch_remove_events(batch, part->events_to);
        store_commit_ok(env->store, batch);
        guint64 left = n_parts < 2 ? last - 20000 * (n_parts + 1) : 3;
        assert_int_equal(n_events(env), MIN(left, 10000));
    }
    assert_int_equal(n_parts, 3);
    assert_true(is_there(env, 2));
    g_autoptr(BerthStoreOld) none = find(env, last, 0);
    assert_true(none->is_last);
    assert_int_equal(none->jobs->len, 0);
}

static void content_that_no_job_names_is_found_and_goes(void **state)
{
    StoreEnv *env = *state;
    g_autoptr(GBytes) content = g_bytes_new_static("content", 7);
    guint8 used[32], unused[32];
    memset(used, 7, sizeof used);
    memset(unused, 8, sizeof unused);
    BerthStoreBatch *batch = berth_store_batch_new();
    store_batch_add_sample(batch, 1, UID, 7);
    berth_store_batch_put_blob(batch, used, content);
    berth_store_batch_put_blob(batch, unused, content);
    store_commit_ok(env->store, batch);
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) found = berth_store_list_unused_blobs(env->store, &error);
    assert_no_error(error);
    assert_int_equal(found->len, 1);
    assert_memory_equal(g_bytes_get_data(found->pdata[0], NULL), unused, sizeof unused);
    g_autoptr(GBytes) named = g_bytes_new(used, sizeof used);
    batch = berth_store_batch_new();
    berth_store_batch_remove_blob(batch, named);
    berth_store_batch_remove_blob(batch, g_ptr_array_index(found, 0));
    store_commit_ok(env->store, batch);
    g_autoptr(GBytes) stays = berth_store_get_blob(env->store, used, &error);
    assert_non_null(stays);
    assert_null(berth_store_get_blob(env->store, unused, &error));
    assert_no_error(error);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_ENV_BOTH(old_jobs_go_with_all_that_is_theirs),
        STORE_ENV_BOTH(large_job_goes_in_parts),
        STORE_ENV_BOTH(many_jobs_go_in_parts),
        STORE_ENV_BOTH(events_of_no_job_go_but_for_the_newest),
        STORE_ENV_BOTH(many_events_of_no_job_go_in_parts),
        STORE_ENV_BOTH(content_that_no_job_names_is_found_and_goes),
    };
    return cmocka_run_group_tests_name("store_history", tests, NULL, NULL);
}
