/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what workers look up for submissions, between the loop's steps with them: keys, jobs that they come after, and where
 * their blobs are, and are to be (submit_blobs.c). Of several that came together one worker looks at all, in one go.
 *
 * Invariant: all that it finds of jobs is of one moment, and of what is committed. */
#include "config.h"

#include "common/error.h"
#include "scheduler/daemon/blob_guard.h"
#include "scheduler/daemon/dependencies.h"
#include "scheduler/daemon/spec_check.h"
#include "scheduler/daemon/submit_internal.h"

#include <string.h>

/* A single job that brings no more is looked at on the loop: a worker would take longer to begin. */
#define AT_ONCE_BYTES 16384u

/* --- input ------------------------------------------------------------------------------------- */

/* Where it is in storage only, and that is NULL, nothing is known of it yet. */
static gboolean check_environment(const Berth__JobSpec *spec, const GPtrArray *places,
                                  BerthStorage *storage, GError **error)
{
    GError *failed = NULL;
    g_autoptr(GBytes) content = berth_submit_blobs_environment(spec, places, storage, &failed);
    if (failed) {
        g_propagate_error(error, failed);
        return FALSE;
    }
    if (!content)
        return TRUE;
    gsize length = 0;
    const guint8 *data = g_bytes_get_data(content, &length);
    return berth_environment_check(data, length, error);
}

static gpointer settle_blobs(BerthStorage *storage, gconstpointer input, GError **error)
{
    BerthSubmission *submission = (BerthSubmission *)input;
    if (berth_submit_blobs_settle(submission->places, storage, error))
        check_environment(submission->spec, submission->places, storage, error);
    return NULL;
}

static void finish_one(BerthSubmission *submission)
{
    GPtrArray *alone = g_ptr_array_new();
    g_ptr_array_add(alone, submission);
    berth_submissions_finish(alone);
}

static void on_settled(GObject *source, GAsyncResult *result, gpointer user_data)
{
    BerthSubmission *submission = user_data;
    g_autoptr(GError) error = NULL;
    berth_work_finish(result, &error);
    if (error)
        berth_submission_answer(submission, 0, error);
    else
        finish_one(submission);
}

/* From here on the collection of garbage leaves them alone. */
static gboolean guard_blobs(const BerthSubmission *submission, GError **error)
{
    const BerthSubmitGroup *group = submission->group;
    for (guint i = 0; i < submission->places->len; i++) {
        const BerthBlobPlace *place = g_ptr_array_index(submission->places, i);
        if (place->to_storage &&
            !berth_blob_guard_touch(group->daemon->blob_guard, group->uid, place->digest, error)) {
            g_autofree char *hex = berth_digest_to_hex(place->digest);
            g_prefix_error(error, "sha256:%s: ", hex);
            return FALSE;
        }
    }
    return TRUE;
}

/* What a worker has found of one. */
typedef struct {
    GArray *states;    /* of the jobs that it comes after */
    guint64 known_job; /* by its idempotency key; 0 = none */
    GPtrArray *places;
    GArray *completed; /* see BerthSubmission */
    GError *error;
} Placed;

static void placed_clear(gpointer data)
{
    Placed *placed = data;
    g_clear_pointer(&placed->states, g_array_unref);
    g_clear_pointer(&placed->places, g_ptr_array_unref);
    g_clear_pointer(&placed->completed, g_array_unref);
    g_clear_error(&placed->error);
}

/* The environment that was looked at last: of jobs that come together most have the same. */
typedef struct {
    guint8 digest[BERTH_SHA256_BYTES];
    gboolean is_any;
    GError *error; /* what is wrong with it */
} LookedAt;

static void check_environment_once(const Berth__JobSpec *spec, const GPtrArray *places,
                                   LookedAt *last, GError **error)
{
    g_autoptr(GBytes) content = berth_submit_blobs_environment(spec, places, NULL, NULL);
    if (!content)
        return;
    gsize length = 0;
    const guint8 *data = g_bytes_get_data(content, &length);
    const guint8 *digest = spec->environment->sha256.data;
    if (!last->is_any || memcmp(digest, last->digest, sizeof last->digest) != 0) {
        memcpy(last->digest, digest, sizeof last->digest);
        last->is_any = TRUE;
        g_clear_error(&last->error);
        berth_environment_check(data, length, &last->error);
    }
    if (last->error)
        g_propagate_error(error, g_error_copy(last->error));
}

/* The states of all jobs that they come after (transfer full). */
static GHashTable *look_at_states(const GPtrArray *submissions, GError **error)
{
    g_autoptr(GHashTable) known = berth_dependencies_new();
    for (guint i = 0; i < submissions->len; i++) {
        const BerthSubmission *submission = g_ptr_array_index(submissions, i);
        if (!submission->unfit)
            berth_dependencies_gather(submission->spec, known);
    }
    return berth_store_get_job_states(berth_submissions_group(submissions)->daemon->store, known,
                                      error)
               ? g_steal_pointer(&known)
               : NULL;
}

static void place_one(const BerthSubmission *submission, GHashTable *known, GHashTable *shared,
                      LookedAt *environment, Placed *placed)
{
    const BerthSubmitGroup *group = submission->group;
    BerthStore *store = group->daemon->store;
    const char *key = submission->request->idempotency_key;
    if (*key)
        placed->known_job =
            berth_store_find_idempotency_key(store, group->uid, key, &placed->error);
    if (placed->error || placed->known_job != 0 || submission->unfit ||
        !(placed->states = berth_dependencies_look(submission->spec, known, &placed->error)))
        return;
    if (submission->is_watching &&
        !(placed->completed = berth_dependencies_completed(submission->spec, submission->array,
                                                           store, &placed->error)))
        return;
    placed->places = berth_submit_blobs_place(submission->spec, submission->request->inline_blobs,
                                              submission->request->n_inline_blobs, shared, store,
                                              &placed->error);
    if (placed->places)
        check_environment_once(submission->spec, placed->places, environment, &placed->error);
}

static gpointer place_blobs(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const GPtrArray *submissions = input;
    const BerthSubmitGroup *group = berth_submissions_group(submissions);
    g_autoptr(GHashTable) known = look_at_states(submissions, error);
    if (!known)
        return NULL;
    LookedAt environment = {0};
    GArray *all = g_array_sized_new(FALSE, TRUE, sizeof(Placed), submissions->len);
    g_autoptr(GHashTable) shared = berth_submit_blobs_share(group->shared, group->n_shared);
    g_array_set_clear_func(all, placed_clear);
    g_array_set_size(all, submissions->len);
    for (guint i = 0; i < submissions->len; i++)
        place_one(g_ptr_array_index(submissions, i), known, shared, &environment,
                  &g_array_index(all, Placed, i));
    g_clear_error(&environment.error);
    return all;
}

/* TRUE: nothing is left to be done before it is decided on. */
static gboolean take_placed(BerthSubmission *submission, Placed *placed)
{
    g_autoptr(GError) error = NULL;
    BerthDaemon *daemon = submission->group->daemon;
    if (placed->error || placed->known_job != 0) {
        berth_submission_answer(submission, placed->known_job, placed->error);
        return FALSE;
    }
    if (submission->unfit) {
        berth_submission_answer(submission, 0, submission->unfit);
        return FALSE;
    }
    submission->places = g_steal_pointer(&placed->places);
    submission->completed = g_steal_pointer(&placed->completed);
    berth_dependencies_note(submission->spec, placed->states);
    berth_submit_blobs_note(submission->spec, submission->places);
    if (!berth_submission_check_present(submission, &error) || !guard_blobs(submission, &error)) {
        berth_submission_answer(submission, 0, error);
        return FALSE;
    }
    if (!berth_submit_blobs_need_storage(submission->places))
        return TRUE;
    berth_storage_link_run_for(daemon->storage, BERTH_LANE_STORAGE_DATA, submission->group->uid,
                               "look for a job's input", settle_blobs, submission, NULL, NULL,
                               on_settled, submission);
    return FALSE;
}

/* ALL: of Placed; NULL: ERROR. */
static void take_all_placed(GPtrArray *submissions, GArray *all, const GError *error)
{
    g_autoptr(GPtrArray) ready = g_ptr_array_new();
    if (!all) {
        berth_submissions_fail(submissions, error);
        return;
    }
    BerthSubmitGroup *group = berth_submissions_group(submissions);
    group->n_open++; /* those that are answered do not end it meanwhile */
    for (guint i = 0; i < submissions->len; i++)
        if (take_placed(g_ptr_array_index(submissions, i), &g_array_index(all, Placed, i)))
            g_ptr_array_add(ready, g_ptr_array_index(submissions, i));
    if (ready->len > 0)
        berth_submissions_finish(g_steal_pointer(&ready));
    berth_submit_group_close(group, 1);
    g_ptr_array_unref(submissions);
}

static void on_placed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) all = berth_work_finish(result, &error);
    take_all_placed(user_data, all, error);
}

/* Nothing of it is to be looked up, as far as that can be told without its blobs' sums, and little is to be summed. */
static gboolean is_light(const BerthSubmission *submission)
{
    const Berth__SubmitRequest *request = submission->request;
    gsize bytes = 0;
    for (gsize i = 0; i < request->n_inline_blobs; i++)
        bytes += request->inline_blobs[i].len;
    return !*request->idempotency_key && submission->spec->n_dependencies == 0 &&
           submission->group->n_shared == 0 && bytes <= AT_ONCE_BYTES;
}

/* TRUE: it brought all that it names, which has its places. */
static gboolean place_at_once(const BerthSubmission *submission, Placed *placed)
{
    placed->places =
        berth_submit_blobs_place(submission->spec, submission->request->inline_blobs,
                                 submission->request->n_inline_blobs, NULL, NULL, &placed->error);
    if (placed->places)
        check_environment(submission->spec, placed->places, NULL, &placed->error);
    return placed->error || !berth_submit_blobs_need_storage(placed->places);
}

static void look_on_worker(GPtrArray *submissions)
{
    const BerthSubmitGroup *group = berth_submissions_group(submissions);
    berth_workers_run_for(group->daemon->workers, BERTH_LANE_READ, group->uid,
                          "look for jobs' input", place_blobs, submissions, NULL,
                          (GDestroyNotify)g_array_unref, 0, on_placed, submissions);
}

/* --- task by task ------------------------------------------------------------------------------ */

static void on_all_committed(const GError *error, gpointer user_data)
{
    GPtrArray *submissions = user_data;
    if (error)
        berth_submissions_fail(submissions, error);
    else
        look_on_worker(submissions);
}

/* TRUE: some of them come after others task by task, and are told of those that complete from now on. */
static gboolean watch_elements(const GPtrArray *submissions)
{
    BerthElements *elements =
        berth_engine_elements(berth_submissions_group(submissions)->daemon->engine);
    gboolean is_any = FALSE;
    for (guint i = 0; i < submissions->len; i++) {
        BerthSubmission *submission = g_ptr_array_index(submissions, i);
        submission->is_watching =
            !submission->unfit && berth_dependencies_watch(submission->spec, elements);
        is_any |= submission->is_watching;
    }
    return is_any;
}

void berth_submission_look_no_more(BerthSubmission *submission)
{
    if (submission->is_watching)
        berth_dependencies_unwatch(submission->spec,
                                   berth_engine_elements(submission->group->daemon->engine));
    submission->is_watching = FALSE;
}

const GArray *berth_submission_completed(BerthSubmission *submission)
{
    if (!submission->is_watching)
        return NULL;
    berth_dependencies_add_completed(submission->spec,
                                     berth_engine_elements(submission->group->daemon->engine),
                                     submission->completed);
    return submission->completed;
}

/* What was decided before they began to be told is in the store when they look there. */
static void look_after_commit(GPtrArray *submissions)
{
    BerthTurn *turn = berth_engine_begin(berth_submissions_group(submissions)->daemon->engine);
    berth_turn_then(turn, on_all_committed, submissions);
    berth_turn_commit(turn);
}

void berth_submissions_look(GPtrArray *submissions)
{
    if (watch_elements(submissions)) {
        look_after_commit(submissions);
        return;
    }
    const BerthSubmission *first = g_ptr_array_index(submissions, 0);
    g_autoptr(GArray) all = g_array_new(FALSE, TRUE, sizeof(Placed));
    g_array_set_clear_func(all, placed_clear);
    g_array_set_size(all, 1);
    if (submissions->len == 1 && is_light(first) &&
        place_at_once(first, &g_array_index(all, Placed, 0)))
        take_all_placed(submissions, all, NULL);
    else
        look_on_worker(submissions);
}

/* --- dependencies ------------------------------------------------------------------------------ */

static gpointer look_at_all(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const GPtrArray *submissions = input;
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    g_autoptr(GHashTable) known = look_at_states(submissions, error);
    for (guint i = 0; known && i < submissions->len; i++) {
        const BerthSubmission *submission = g_ptr_array_index(submissions, i);
        GArray *states = berth_dependencies_look(submission->spec, known, error);
        if (!states)
            return NULL;
        g_ptr_array_add(all, states);
    }
    return known ? g_steal_pointer(&all) : NULL;
}

static void on_looked(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GPtrArray) submissions = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) all = berth_work_finish(result, &error);
    if (!all) {
        berth_submissions_fail(g_steal_pointer(&submissions), error);
        return;
    }
    for (guint i = 0; i < submissions->len; i++) {
        const BerthSubmission *submission = g_ptr_array_index(submissions, i);
        berth_dependencies_note(submission->spec, g_ptr_array_index(all, i));
    }
    berth_submissions_finish(g_steal_pointer(&submissions));
}

static void on_turn_committed(const GError *error, gpointer user_data)
{
    GPtrArray *submissions = user_data;
    if (error) {
        berth_submissions_fail(submissions, error);
        return;
    }
    const BerthSubmitGroup *group = berth_submissions_group(submissions);
    berth_workers_run_for(group->daemon->workers, BERTH_LANE_READ, group->uid,
                          "look what jobs come after", look_at_all, submissions, NULL,
                          (GDestroyNotify)g_ptr_array_unref, 0, on_looked, submissions);
}

void berth_submissions_look_again(BerthTurn *turn, GPtrArray *submissions)
{
    berth_turn_then(turn, on_turn_committed, submissions);
}
