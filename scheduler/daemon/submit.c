/* SPDX-License-Identifier: Apache-2.0 */
/* Owns submissions from the request to its answer. The rules for a specification are
 * spec_check.c's, where blobs are kept is submit_blobs.c's, and whether the cluster can run it is
 * the core's to say.
 *
 * Invariant: a user's idempotency key leads to one job, whether the first request with it was
 * committed, is under way, or comes again on another connection. */
#include "config.h"

#include "scheduler/daemon/submit.h"

#include "common/error.h"
#include "scheduler/daemon/blob_guard.h"
#include "scheduler/daemon/image_table.h"
#include "scheduler/daemon/job_numbers.h"
#include "scheduler/daemon/records.h"
#include "scheduler/daemon/spec_check.h"
#include "scheduler/daemon/submit_blobs.h"

#include <string.h>

#define KEY_MAX_BYTES 128u

struct BerthSubmissions {
    GHashTable *by_key; /* "UID:KEY" -> Submission, while under way */
};

typedef struct {
    BerthDaemon *daemon;
    GPtrArray *calls; /* BerthRpcCall: the first one's request is ours until it ends */
    const Berth__SubmitRequest *request;
    guint32 uid;
    guint32 gid;
    char *user;
    char *user_key; /* in by_key, or NULL */
    Berth__JobSpec *spec;
    BerthIndexSet *array; /* its indices; NULL = it is none */
    GPtrArray *places;    /* BerthBlobPlace */
    guint64 job;
} Submission;

BerthSubmissions *berth_submissions_new(BerthDaemon *daemon)
{
    BerthSubmissions *submissions = g_new0(BerthSubmissions, 1);
    submissions->by_key = g_hash_table_new(g_str_hash, g_str_equal);
    return submissions;
}

void berth_submissions_free(BerthSubmissions *submissions)
{
    g_hash_table_unref(submissions->by_key);
    g_free(submissions);
}

static void submission_free(Submission *submission)
{
    if (submission->user_key)
        g_hash_table_remove(submission->daemon->submissions->by_key, submission->user_key);
    g_ptr_array_unref(submission->calls);
    berth__job_spec__free_unpacked(submission->spec, NULL);
    g_clear_pointer(&submission->array, berth_index_set_free);
    g_clear_pointer(&submission->places, g_ptr_array_unref);
    g_free(submission->user);
    g_free(submission->user_key);
    g_free(submission);
}

static void fail_all(Submission *submission, const GError *error)
{
    for (guint i = 0; i < submission->calls->len; i++)
        berth_rpc_call_fail(g_ptr_array_index(submission->calls, i), error);
    submission_free(submission);
}

static void reply_all(Submission *submission, guint64 job)
{
    Berth__SubmitReply reply = BERTH__SUBMIT_REPLY__INIT;
    reply.job = job;
    for (guint i = 0; i < submission->calls->len; i++)
        berth_rpc_call_reply(g_ptr_array_index(submission->calls, i), &reply.base);
    submission_free(submission);
}

/* --- what can be said at once ----------------------------------------------------------------- */

static gboolean check_user_limit(BerthDaemon *daemon, guint32 uid, GError **error)
{
    guint limit = daemon->config->user_jobs_max;
    if (berth_job_table_count_user(daemon->jobs, uid) < limit)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                "you have %u jobs that have not ended, which is all that one user may have "
                "(user_jobs_max); wait for some to end, or cancel some",
                limit);
    return FALSE;
}

static gboolean check_key(const char *key, GError **error)
{
    if (strlen(key) <= KEY_MAX_BYTES && g_utf8_validate(key, -1, NULL))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "the idempotency key is not valid UTF-8 of at most %u bytes", KEY_MAX_BYTES);
    return FALSE;
}

/* What may have changed again by the time the job is decided on. */
static gboolean check_present(Submission *submission, GError **error)
{
    BerthDaemon *daemon = submission->daemon;
    if (!berth_engine_check(daemon->engine, error) ||
        !check_user_limit(daemon, submission->uid, error))
        return FALSE;
    const Berth__Image *image =
        berth_image_table_get(daemon->images, submission->spec->image, error);
    return image && berth_spec_check_disk(submission->spec, image->size_bytes, error);
}

/* --- the decision ------------------------------------------------------------------------------ */

static GArray *find_nodes(Submission *submission, GError **error)
{
    const Berth__JobSpec *spec = submission->spec;
    g_autoptr(GArray) nodes = g_array_new(FALSE, FALSE, sizeof(guint32));
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    for (gsize i = 0; i < spec->n_nodes; i++) {
        guint32 handle = berth_core_find_node(submission->daemon->core, spec->nodes[i]);
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

static void on_committed(const GError *error, gpointer user_data)
{
    Submission *submission = user_data;
    if (error) {
        fail_all(submission, error);
        return;
    }
    berth_job_numbers_given(submission->daemon->numbers, submission->job);
    reply_all(submission, submission->job);
}

static void put_blobs(Submission *submission, BerthStoreBatch *batch)
{
    for (guint i = 0; i < submission->places->len; i++) {
        const BerthBlobPlace *place = g_ptr_array_index(submission->places, i);
        if (place->is_new && !place->to_storage)
            berth_store_batch_put_blob(batch, place->digest, place->content);
    }
}

static gboolean decide(Submission *submission, GError **error)
{
    BerthDaemon *daemon = submission->daemon;
    g_autoptr(GArray) nodes = NULL;
    if (!check_present(submission, error) || !(nodes = find_nodes(submission, error)) ||
        !berth_job_numbers_check(daemon->numbers, error))
        return FALSE;
    g_autoptr(Berth__Job) job = berth_record_new_job(
        daemon->next_job, submission->spec, submission->array, submission->user, submission->uid,
        submission->gid, berth_engine_now_usec(daemon->engine));
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_SUBMITTED};
    berth_record_job_to_core(job, submission->spec, submission->array,
                             (const guint32 *)(void *)nodes->data, nodes->len, &event.submitted);
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    if (!berth_turn_submit(turn, &event, job, submission->spec,
                           submission->request->idempotency_key, error)) {
        berth_turn_commit(turn);
        return FALSE;
    }
    submission->job = daemon->next_job++;
    put_blobs(submission, berth_turn_batch(turn));
    berth_turn_then(turn, on_committed, submission);
    berth_turn_commit(turn);
    return TRUE;
}

static void on_numbered(const GError *failed, gpointer user_data)
{
    Submission *submission = user_data;
    g_autoptr(GError) error = NULL;
    if (failed)
        fail_all(submission, failed);
    else if (!decide(submission, &error))
        fail_all(submission, error);
}

static void finish(Submission *submission)
{
    berth_job_numbers_wait(submission->daemon->numbers, on_numbered, submission);
}

/* --- blobs ------------------------------------------------------------------------------------- */

static gboolean check_environment(Submission *submission, BerthStorage *storage, GError **error)
{
    GError *failed = NULL;
    g_autoptr(GBytes) content =
        berth_submit_blobs_environment(submission->spec, submission->places, storage, &failed);
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
    Submission *submission = (Submission *)input;
    if (berth_submit_blobs_settle(submission->places, storage, error))
        check_environment(submission, storage, error);
    return NULL;
}

static void on_settled(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Submission *submission = user_data;
    g_autoptr(GError) error = NULL;
    berth_work_finish(result, &error);
    if (error) {
        fail_all(submission, error);
        return;
    }
    finish(submission);
}

/* From here on the collection of garbage leaves them alone. */
static gboolean guard_blobs(Submission *submission, GError **error)
{
    for (guint i = 0; i < submission->places->len; i++) {
        const BerthBlobPlace *place = g_ptr_array_index(submission->places, i);
        if (place->to_storage && !berth_blob_guard_touch(submission->daemon->blob_guard,
                                                         submission->uid, place->digest, error)) {
            g_autofree char *hex = berth_digest_to_hex(place->digest);
            g_prefix_error(error, "sha256:%s: ", hex);
            return FALSE;
        }
    }
    return TRUE;
}

typedef struct {
    guint64 known_job; /* by its idempotency key; 0 = none */
    GPtrArray *places;
} Placed;

static void placed_free(gpointer data)
{
    Placed *placed = data;
    g_clear_pointer(&placed->places, g_ptr_array_unref);
    g_free(placed);
}

static gpointer place_blobs(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const Submission *submission = input;
    const Berth__SubmitRequest *request = submission->request;
    BerthStore *store = submission->daemon->store;
    Placed *placed = g_new0(Placed, 1);
    GError *failed = NULL;
    if (*request->idempotency_key) {
        placed->known_job = berth_store_find_idempotency_key(store, submission->uid,
                                                             request->idempotency_key, &failed);
    }
    if (!failed && placed->known_job == 0) {
        placed->places = berth_submit_blobs_place(submission->spec, request->inline_blobs,
                                                  request->n_inline_blobs, store, &failed);
    }
    if (failed) {
        g_propagate_error(error, failed);
        placed_free(placed);
        return NULL;
    }
    return placed;
}

static void on_placed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Submission *submission = user_data;
    g_autoptr(GError) error = NULL;
    Placed *placed = berth_work_finish(result, &error);
    if (!placed) {
        fail_all(submission, error);
        return;
    }
    guint64 known_job = placed->known_job;
    submission->places = g_steal_pointer(&placed->places);
    if (submission->places)
        berth_submit_blobs_note(submission->spec, submission->places);
    placed_free(placed);
    if (known_job != 0) {
        reply_all(submission, known_job);
        return;
    }
    if (!guard_blobs(submission, &error) || !check_environment(submission, NULL, &error)) {
        fail_all(submission, error);
        return;
    }
    if (!berth_submit_blobs_need_storage(submission->places)) {
        finish(submission);
        return;
    }
    berth_storage_link_run_for(submission->daemon->storage, BERTH_LANE_STORAGE_DATA,
                               submission->uid, "look for a job's input", settle_blobs, submission,
                               NULL, NULL, on_settled, submission);
}

/* --- the request ------------------------------------------------------------------------------- */

static void on_user(const char *name, const GError *error, gpointer user_data)
{
    Submission *submission = user_data;
    if (error) { /* a job keeps its user's name for good */
        fail_all(submission, error);
        return;
    }
    submission->user = g_strdup(name);
    berth_workers_run_for(submission->daemon->workers, BERTH_LANE_READ, submission->uid,
                          "look for a job's input", place_blobs, submission, NULL, placed_free, 0,
                          on_placed, submission);
}

static gboolean take_array(Submission *submission, GError **error)
{
    const Berth__JobSpec *spec = submission->spec;
    if (!spec->array)
        return TRUE;
    submission->array = berth_spec_array(spec, submission->daemon->config, error);
    return submission->array != NULL;
}

static Submission *submission_new(BerthDaemon *daemon, const Berth__SubmitRequest *request,
                                  BerthRpcCall *call)
{
    const BerthRpcIdentity *who = berth_rpc_call_identity(call);
    Submission *submission = g_new0(Submission, 1);
    submission->daemon = daemon;
    submission->calls = g_ptr_array_new();
    g_ptr_array_add(submission->calls, call);
    submission->request = request;
    submission->uid = who->uid;
    submission->gid = who->gid;
    submission->spec = berth_pb_dup(&request->spec->base);
    berth_spec_apply_defaults(submission->spec, daemon->config);
    return submission;
}

/* Joins the submission with the same key that is under way. FALSE: there is none. */
static gboolean join_submission(BerthDaemon *daemon, const char *user_key, BerthRpcCall *call)
{
    Submission *submission = g_hash_table_lookup(daemon->submissions->by_key, user_key);
    if (submission)
        g_ptr_array_add(submission->calls, call);
    return submission != NULL;
}

static gboolean check_request(BerthDaemon *daemon, const Berth__SubmitRequest *request,
                              GError **error)
{
    if (!request->spec) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                            "the request has no job");
        return FALSE;
    }
    return check_key(request->idempotency_key, error);
}

void berth_submit(BerthDaemon *daemon, const Berth__SubmitRequest *request, BerthRpcCall *call)
{
    const BerthRpcIdentity *who = berth_rpc_call_identity(call);
    g_autoptr(GError) error = NULL;
    if (!check_request(daemon, request, &error)) {
        berth_rpc_call_fail(call, error);
        return;
    }
    g_autofree char *user_key = NULL;
    if (*request->idempotency_key) {
        user_key = g_strdup_printf("%u:%s", (guint)who->uid, request->idempotency_key);
        if (join_submission(daemon, user_key, call))
            return;
    }
    Submission *submission = submission_new(daemon, request, call);
    gboolean is_operator = berth_permission_is_operator(&daemon->operators, who);
    if (!berth_spec_check(submission->spec, daemon->config, is_operator, &error) ||
        !take_array(submission, &error) || !check_present(submission, &error)) {
        fail_all(submission, error);
        return;
    }
    if (user_key) {
        submission->user_key = g_steal_pointer(&user_key);
        g_hash_table_insert(daemon->submissions->by_key, submission->user_key, submission);
    }
    berth_users_name(daemon->users, submission->uid, on_user, submission);
}
