/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the turn of submissions to be decided on: some of each call at a time, which are durable together, and what else the loop
 * has to do between them. */
#include "config.h"

#include "scheduler/daemon/submit.h"

#include "common/error.h"
#include "scheduler/daemon/dependencies.h"
#include "scheduler/daemon/job_numbers.h"
#include "scheduler/daemon/job_records.h"
#include "scheduler/daemon/submit_internal.h"

#define JOBS_PER_TURN 100u /* are decided on before others come between */

static GArray *find_nodes(const BerthSubmission *submission, GError **error)
{
    const Berth__JobSpec *spec = submission->spec;
    g_autoptr(GArray) nodes = g_array_new(FALSE, FALSE, sizeof(guint32));
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    for (gsize i = 0; i < spec->n_nodes; i++) {
        guint32 handle = berth_core_find_node(submission->group->daemon->core, spec->nodes[i]);
        if (handle == 0) {
            g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                        "there is no node \"%s\"; berth node ls shows those that there are",
                        spec->nodes[i]);
            return NULL;
        }
        if (g_hash_table_add(seen, GUINT_TO_POINTER(handle)))
            g_array_append_val(nodes, handle);
    }
    return g_steal_pointer(&nodes);
}

/* Those of one turn. */
static void on_committed(const GError *error, gpointer user_data)
{
    g_autoptr(GPtrArray) decided = user_data;
    for (guint i = 0; i < decided->len; i++) {
        BerthSubmission *submission = g_ptr_array_index(decided, i);
        guint64 job = submission->job;
        if (!error)
            berth_job_numbers_given(submission->group->daemon->numbers, job);
        berth_submission_answer(submission, job, error);
    }
}

/* Also what was there when it was looked for: it may have been forgotten since (history.h). PUT: digests of those that are in the
 * batch. */
static void put_blobs(const BerthSubmission *submission, GHashTable *put, BerthStoreBatch *batch)
{
    for (guint i = 0; i < submission->places->len; i++) {
        const BerthBlobPlace *place = g_ptr_array_index(submission->places, i);
        if (!place->to_storage && g_hash_table_add(put, (gpointer)place->digest))
            berth_store_batch_put_blob(batch, place->digest, place->content);
    }
}

static gboolean decide(BerthSubmission *submission, BerthTurn *turn, GError **error)
{
    const BerthSubmitGroup *group = submission->group;
    BerthDaemon *daemon = group->daemon;
    g_autoptr(GArray) nodes = NULL;
    if (!berth_submission_check_present(submission, error) ||
        !(nodes = find_nodes(submission, error)) ||
        !berth_job_numbers_check(daemon->numbers, error))
        return FALSE;
    g_autoptr(Berth__Job) job =
        berth_record_new_job(daemon->next_job, submission->spec, submission->array, group->user,
                             group->uid, group->gid, berth_engine_now_usec(daemon->engine));
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    g_autofree BerthCoreDependency *dependencies = berth_dependencies_to_core(submission->spec);
    berth_record_job_to_core(job, submission->spec, submission->array,
                             (const guint32 *)(void *)nodes->data, nodes->len, &event.submitted);
    event.submitted.dependencies = dependencies;
    event.submitted.n_dependencies = submission->spec->n_dependencies;
    const GArray *completed = berth_submission_completed(submission);
    if (completed) {
        event.submitted.completed = (const BerthTaskRange *)(void *)completed->data;
        event.submitted.n_completed = completed->len;
    }
    if (!berth_turn_submit(turn, &event, job, submission->spec,
                           submission->request->idempotency_key, error))
        return FALSE;
    submission->job = daemon->next_job++;
    return TRUE;
}

/* What has become of those of a turn. */
typedef struct {
    GHashTable *put;    /* digests of blobs that are in its batch */
    GPtrArray *decided; /* all are of BerthSubmission */
    GPtrArray *unknown; /* see berth_submissions_look_again() */
    GPtrArray *refused;
    GPtrArray *errors; /* of these */
} Sorted;

static void decide_one(BerthSubmission *submission, BerthTurn *turn, const Sorted *sorted)
{
    GError *error = NULL;
    if (!berth_dependencies_renew(submission->spec, submission->group->daemon->jobs)) {
        g_ptr_array_add(sorted->unknown, submission);
    } else if (decide(submission, turn, &error)) {
        put_blobs(submission, sorted->put, berth_turn_batch(turn));
        g_ptr_array_add(sorted->decided, submission);
    } else {
        g_ptr_array_add(sorted->refused, submission);
        g_ptr_array_add(sorted->errors, error);
    }
}

static void decide_later(GPtrArray *submissions);

/* As many of the first as are a turn's worth, and as there are numbers for; the others later. They are durable together. */
static void decide_some(GPtrArray *submissions)
{
    Sorted sorted = {g_hash_table_new(berth_digest_hash, berth_digest_equal), g_ptr_array_new(),
                     g_ptr_array_new(), g_ptr_array_new(),
                     g_ptr_array_new_with_free_func((GDestroyNotify)g_error_free)};
    guint n = 0;
    BerthDaemon *daemon = berth_submissions_group(submissions)->daemon;
    gboolean is_last = berth_engine_is_stopped(daemon->engine);
    guint n_max = is_last ? submissions->len : MIN(submissions->len, JOBS_PER_TURN);
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    while (n < n_max && berth_job_numbers_check(daemon->numbers, NULL))
        decide_one(g_ptr_array_index(submissions, n++), turn, &sorted);
    g_ptr_array_remove_range(submissions, 0, n);
    berth_turn_then(turn, on_committed, sorted.decided);
    if (sorted.unknown->len > 0)
        berth_submissions_look_again(turn, g_ptr_array_ref(sorted.unknown));
    berth_turn_commit(turn);
    if (submissions->len > 0)
        decide_later(g_ptr_array_ref(submissions));
    for (guint i = 0; i < sorted.refused->len; i++)
        berth_submission_answer(g_ptr_array_index(sorted.refused, i), 0,
                                g_ptr_array_index(sorted.errors, i));
    g_hash_table_unref(sorted.put);
    g_ptr_array_unref(sorted.unknown);
    g_ptr_array_unref(sorted.refused);
    g_ptr_array_unref(sorted.errors);
}

static void on_numbered(const GError *failed, gpointer user_data)
{
    g_autoptr(GPtrArray) submissions = user_data;
    if (failed)
        berth_submissions_fail(g_steal_pointer(&submissions), failed);
    else
        decide_some(submissions);
}

void berth_submissions_finish(GPtrArray *submissions)
{
    berth_job_numbers_wait(berth_submissions_group(submissions)->daemon->numbers, on_numbered,
                           submissions);
}

static void await_turn(BerthSubmissions *submissions);

/* Each call in turn. */
static gboolean on_turn(gpointer user_data)
{
    BerthSubmissions *submissions = user_data;
    submissions->next_turn = 0;
    berth_submissions_finish(g_queue_pop_head(&submissions->undecided));
    await_turn(submissions);
    return G_SOURCE_REMOVE;
}

/* What else the loop has to do comes before it. */
static void await_turn(BerthSubmissions *submissions)
{
    if (submissions->next_turn == 0 && !g_queue_is_empty(&submissions->undecided))
        submissions->next_turn = g_idle_add_full(G_PRIORITY_DEFAULT, on_turn, submissions, NULL);
}

/* When the daemon ends they have their answers at once. */
static void decide_later(GPtrArray *submissions)
{
    BerthDaemon *daemon = berth_submissions_group(submissions)->daemon;
    if (berth_engine_is_stopped(daemon->engine)) {
        berth_submissions_finish(submissions);
        return;
    }
    g_queue_push_tail(&daemon->submissions->undecided, submissions);
    await_turn(daemon->submissions);
}

void berth_submissions_finish_all(BerthSubmissions *submissions)
{
    GPtrArray *undecided;
    g_clear_handle_id(&submissions->next_turn, g_source_remove);
    while ((undecided = g_queue_pop_head(&submissions->undecided)))
        berth_submissions_finish(undecided);
}
