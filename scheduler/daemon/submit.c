/* SPDX-License-Identifier: Apache-2.0 */
/* Owns submissions from the request to its answer. The rules for a specification are
 * spec_check.c's, where blobs are kept is submit_blobs.c's, and whether the cluster can run it is
 * the core's to say. Jobs that come in one call go the same way together, and each has an answer of its own.
 *
 * Invariant: a user's idempotency key leads to one job, whether the first request with it was
 * committed, is under way, or comes again on another connection or in the same call. */
#include "config.h"

#include "scheduler/daemon/submit.h"

#include "common/error.h"
#include "scheduler/daemon/blob_guard.h"
#include "scheduler/daemon/dependencies.h"
#include "scheduler/daemon/image_table.h"
#include "scheduler/daemon/job_numbers.h"
#include "scheduler/daemon/job_records.h"
#include "scheduler/daemon/memory_bound.h"
#include "scheduler/daemon/spec_check.h"
#include "scheduler/daemon/submit_blobs.h"

#include <string.h>

#define KEY_MAX_BYTES 128u
#define JOBS_MAX      10000u /* in one call */

struct BerthSubmissions {
    GHashTable *by_key; /* "UID:KEY" -> Submission, while under way */
    BerthMemoryBound *memory;
};

/* What came in one call, whose request is ours until it ends. */
typedef struct {
    BerthDaemon *daemon;
    BerthRpcCall *call;
    guint32 uid;
    guint32 gid;
    char *user;
    const ProtobufCBinaryData *shared; /* contents of blobs that its jobs name, beside their own */
    gsize n_shared;
    GPtrArray *members; /* Submission, in their order, owned */
    guint n_open;       /* of these, that have no answer yet */
    gboolean is_many;   /* it is answered with a list */
} Group;

typedef struct {
    Group *group;
    const Berth__SubmitRequest *request;
    char *user_key;    /* in by_key, or NULL */
    GPtrArray *joined; /* Submission: of the same key, which get the same answer; or NULL */
    Berth__JobSpec *spec;
    BerthIndexSet *array; /* its indices; NULL = it is none */
    GPtrArray *places;    /* BerthBlobPlace */
    guint64 job;          /* the answer, or ... */
    GError *error;
} Submission;

BerthSubmissions *berth_submissions_new(BerthDaemon *daemon)
{
    BerthSubmissions *submissions = g_new0(BerthSubmissions, 1);
    submissions->by_key = g_hash_table_new(g_str_hash, g_str_equal);
    submissions->memory = berth_memory_bound_new(daemon->config->memory_max_mib);
    return submissions;
}

void berth_submissions_free(BerthSubmissions *submissions)
{
    g_hash_table_unref(submissions->by_key);
    berth_memory_bound_free(submissions->memory);
    g_free(submissions);
}

static void submission_free(gpointer data)
{
    Submission *submission = data;
    if (submission->spec)
        berth__job_spec__free_unpacked(submission->spec, NULL);
    g_clear_pointer(&submission->array, berth_index_set_free);
    g_clear_pointer(&submission->places, g_ptr_array_unref);
    g_clear_pointer(&submission->joined, g_ptr_array_unref);
    g_clear_error(&submission->error);
    g_free(submission->user_key);
    g_free(submission);
}

/* --- answers ----------------------------------------------------------------------------------- */

static void reply_one(const Group *group)
{
    const Submission *submission = g_ptr_array_index(group->members, 0);
    Berth__SubmitReply reply = BERTH__SUBMIT_REPLY__INIT;
    reply.job = submission->job;
    if (submission->error)
        berth_rpc_call_fail(group->call, submission->error);
    else
        berth_rpc_call_reply(group->call, &reply.base);
}

static void reply_many(const Group *group)
{
    guint n = group->members->len;
    g_autofree Berth__SubmitManyReply__Result *results = g_new(Berth__SubmitManyReply__Result, n);
    g_autofree Berth__SubmitManyReply__Result **pointers =
        g_new(Berth__SubmitManyReply__Result *, n);
    g_autofree Berth__Error *errors = g_new(Berth__Error, n);
    Berth__SubmitManyReply reply = BERTH__SUBMIT_MANY_REPLY__INIT;
    for (guint i = 0; i < n; i++) {
        const Submission *submission = g_ptr_array_index(group->members, i);
        berth__submit_many_reply__result__init(&results[i]);
        pointers[i] = &results[i];
        results[i].job = submission->job;
        if (!submission->error)
            continue;
        berth__error__init(&errors[i]);
        errors[i].code = (Berth__ErrorCode)submission->error->code;
        errors[i].message = submission->error->message;
        results[i].error = &errors[i];
    }
    reply.results = pointers;
    reply.n_results = n;
    berth_rpc_call_reply(group->call, &reply.base);
}

/* So many of its jobs have their answers. */
static void group_close(Group *group, guint n)
{
    group->n_open -= n;
    if (group->n_open > 0)
        return;
    (group->is_many ? reply_many : reply_one)(group);
    g_ptr_array_unref(group->members);
    g_free(group->user);
    g_free(group);
}

static void answer(Submission *submission, guint64 job, const GError *error)
{
    Group *group = submission->group;
    g_autoptr(GPtrArray) joined = g_steal_pointer(&submission->joined);
    submission->job = error ? 0 : job;
    submission->error = error ? g_error_copy(error) : NULL;
    if (submission->user_key)
        g_hash_table_remove(group->daemon->submissions->by_key, submission->user_key);
    for (guint i = 0; joined && i < joined->len; i++)
        answer(g_ptr_array_index(joined, i), job, error);
    group_close(group, 1);
}

static void answer_all(GPtrArray *submissions, const GError *error)
{
    for (guint i = 0; i < submissions->len; i++)
        answer(g_ptr_array_index(submissions, i), 0, error);
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
static gboolean check_present(const Submission *submission, GError **error)
{
    BerthDaemon *daemon = submission->group->daemon;
    if (!berth_engine_check(daemon->engine, error) ||
        !berth_memory_bound_check(daemon->submissions->memory, error) ||
        !check_user_limit(daemon, submission->group->uid, error))
        return FALSE;
    const Berth__Image *image =
        berth_image_table_get(daemon->images, submission->spec->image, error);
    return image && berth_spec_check_disk(submission->spec, image->size_bytes, error);
}

/* --- the decision ------------------------------------------------------------------------------ */

static GArray *find_nodes(const Submission *submission, GError **error)
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
        Submission *submission = g_ptr_array_index(decided, i);
        guint64 job = submission->job;
        if (!error)
            berth_job_numbers_given(submission->group->daemon->numbers, job);
        answer(submission, job, error);
    }
}

/* Also what was there when it was looked for: it may have been forgotten since (history.h). PUT: digests of those that are in the
 * batch. */
static void put_blobs(const Submission *submission, GHashTable *put, BerthStoreBatch *batch)
{
    for (guint i = 0; i < submission->places->len; i++) {
        const BerthBlobPlace *place = g_ptr_array_index(submission->places, i);
        if (!place->to_storage && g_hash_table_add(put, (gpointer)place->digest))
            berth_store_batch_put_blob(batch, place->digest, place->content);
    }
}

static gboolean decide(Submission *submission, BerthTurn *turn, GError **error)
{
    const Group *group = submission->group;
    BerthDaemon *daemon = group->daemon;
    g_autoptr(GArray) nodes = NULL;
    if (!check_present(submission, error) || !(nodes = find_nodes(submission, error)) ||
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
    if (!berth_turn_submit(turn, &event, job, submission->spec,
                           submission->request->idempotency_key, error))
        return FALSE;
    submission->job = daemon->next_job++;
    return TRUE;
}

/* Of those of which a job that they come after has ended since it was looked at: when all of that is committed. */
static void look_again(BerthTurn *turn, GPtrArray *submissions);

/* What has become of those of a turn. */
typedef struct {
    GHashTable *put;       /* digests of blobs that are in its batch */
    GPtrArray *decided;    /* all are of Submission */
    GPtrArray *unknown;    /* see look_again() */
    GPtrArray *unnumbered; /* there are no numbers left: they wait for more */
    GPtrArray *refused;
    GPtrArray *errors; /* of these */
} Sorted;

static void decide_one(Submission *submission, BerthTurn *turn, const Sorted *sorted)
{
    BerthDaemon *daemon = submission->group->daemon;
    GError *error = NULL;
    if (!berth_dependencies_renew(submission->spec, daemon->jobs)) {
        g_ptr_array_add(sorted->unknown, submission);
    } else if (!berth_job_numbers_check(daemon->numbers, NULL)) {
        g_ptr_array_add(sorted->unnumbered, submission);
    } else if (decide(submission, turn, &error)) {
        put_blobs(submission, sorted->put, berth_turn_batch(turn));
        g_ptr_array_add(sorted->decided, submission);
    } else {
        g_ptr_array_add(sorted->refused, submission);
        g_ptr_array_add(sorted->errors, error);
    }
}

static void finish(GPtrArray *submissions);

/* All in one turn, so that they are durable together. */
static void decide_all(GPtrArray *submissions)
{
    const Submission *first = g_ptr_array_index(submissions, 0);
    Sorted sorted = {g_hash_table_new(berth_digest_hash, berth_digest_equal),
                     g_ptr_array_new(),
                     g_ptr_array_new(),
                     g_ptr_array_new(),
                     g_ptr_array_new(),
                     g_ptr_array_new_with_free_func((GDestroyNotify)g_error_free)};
    BerthTurn *turn = berth_engine_begin(first->group->daemon->engine);
    for (guint i = 0; i < submissions->len; i++)
        decide_one(g_ptr_array_index(submissions, i), turn, &sorted);
    berth_turn_then(turn, on_committed, sorted.decided);
    if (sorted.unknown->len > 0)
        look_again(turn, g_ptr_array_ref(sorted.unknown));
    berth_turn_commit(turn);
    if (sorted.unnumbered->len > 0)
        finish(g_ptr_array_ref(sorted.unnumbered));
    for (guint i = 0; i < sorted.refused->len; i++)
        answer(g_ptr_array_index(sorted.refused, i), 0, g_ptr_array_index(sorted.errors, i));
    g_hash_table_unref(sorted.put);
    g_ptr_array_unref(sorted.unknown);
    g_ptr_array_unref(sorted.unnumbered);
    g_ptr_array_unref(sorted.refused);
    g_ptr_array_unref(sorted.errors);
}

static void on_numbered(const GError *failed, gpointer user_data)
{
    g_autoptr(GPtrArray) submissions = user_data;
    if (failed)
        answer_all(submissions, failed);
    else
        decide_all(submissions);
}

/* SUBMISSIONS (transfer full), of one group. */
static void finish(GPtrArray *submissions)
{
    const Submission *first = g_ptr_array_index(submissions, 0);
    berth_job_numbers_wait(first->group->daemon->numbers, on_numbered, submissions);
}

static void finish_one(Submission *submission)
{
    GPtrArray *alone = g_ptr_array_new();
    g_ptr_array_add(alone, submission);
    finish(alone);
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
    if (error)
        answer(submission, 0, error);
    else
        finish_one(submission);
}

/* From here on the collection of garbage leaves them alone. */
static gboolean guard_blobs(const Submission *submission, GError **error)
{
    const Group *group = submission->group;
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
    GError *error;
} Placed;

static void placed_clear(gpointer data)
{
    Placed *placed = data;
    g_clear_pointer(&placed->states, g_array_unref);
    g_clear_pointer(&placed->places, g_ptr_array_unref);
    g_clear_error(&placed->error);
}

/* Those that go on together. */
typedef struct {
    Group *group;
    GPtrArray *submissions;
} Together;

/* The states of all jobs that they come after (transfer full). */
static GHashTable *look_at_states(const Together *together, GError **error)
{
    g_autoptr(GHashTable) known = berth_dependencies_new();
    for (guint i = 0; i < together->submissions->len; i++) {
        const Submission *submission = g_ptr_array_index(together->submissions, i);
        berth_dependencies_gather(submission->spec, known);
    }
    return berth_store_get_job_states(together->group->daemon->store, known, error)
               ? g_steal_pointer(&known)
               : NULL;
}

static void place_one(const Submission *submission, GHashTable *known, GHashTable *shared,
                      Placed *placed)
{
    const Group *group = submission->group;
    BerthStore *store = group->daemon->store;
    const char *key = submission->request->idempotency_key;
    if (*key)
        placed->known_job =
            berth_store_find_idempotency_key(store, group->uid, key, &placed->error);
    if (placed->error || placed->known_job != 0 ||
        !(placed->states = berth_dependencies_look(submission->spec, known, &placed->error)))
        return;
    placed->places = berth_submit_blobs_place(submission->spec, submission->request->inline_blobs,
                                              submission->request->n_inline_blobs, shared, store,
                                              &placed->error);
}

static gpointer place_blobs(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const Together *together = input;
    const Group *group = together->group;
    g_autoptr(GHashTable) known = look_at_states(together, error);
    if (!known)
        return NULL;
    GArray *all = g_array_sized_new(FALSE, TRUE, sizeof(Placed), together->submissions->len);
    g_autoptr(GHashTable) shared = berth_submit_blobs_share(group->shared, group->n_shared);
    g_array_set_clear_func(all, placed_clear);
    g_array_set_size(all, together->submissions->len);
    for (guint i = 0; i < together->submissions->len; i++)
        place_one(g_ptr_array_index(together->submissions, i), known, shared,
                  &g_array_index(all, Placed, i));
    return all;
}

/* TRUE: nothing is left to be done before it is decided on. */
static gboolean take_placed(Submission *submission, Placed *placed)
{
    g_autoptr(GError) error = NULL;
    BerthDaemon *daemon = submission->group->daemon;
    if (placed->error || placed->known_job != 0) {
        answer(submission, placed->known_job, placed->error);
        return FALSE;
    }
    submission->places = g_steal_pointer(&placed->places);
    berth_dependencies_note(submission->spec, placed->states);
    berth_submit_blobs_note(submission->spec, submission->places);
    if (!guard_blobs(submission, &error) || !check_environment(submission, NULL, &error)) {
        answer(submission, 0, error);
        return FALSE;
    }
    if (!berth_submit_blobs_need_storage(submission->places))
        return TRUE;
    berth_storage_link_run_for(daemon->storage, BERTH_LANE_STORAGE_DATA, submission->group->uid,
                               "look for a job's input", settle_blobs, submission, NULL, NULL,
                               on_settled, submission);
    return FALSE;
}

static void on_placed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autofree Together *together = user_data;
    g_autoptr(GPtrArray) submissions = together->submissions;
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) all = berth_work_finish(result, &error);
    g_autoptr(GPtrArray) ready = g_ptr_array_new();
    if (!all) {
        answer_all(submissions, error);
        return;
    }
    Group *group = together->group;
    group->n_open++; /* those that are answered do not end it meanwhile */
    for (guint i = 0; i < submissions->len; i++)
        if (take_placed(g_ptr_array_index(submissions, i), &g_array_index(all, Placed, i)))
            g_ptr_array_add(ready, g_ptr_array_index(submissions, i));
    if (ready->len > 0)
        finish(g_steal_pointer(&ready));
    group_close(group, 1);
}

/* --- dependencies ------------------------------------------------------------------------------ */

static gpointer look_at_all(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const Together *together = input;
    g_autoptr(GPtrArray) all = g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    g_autoptr(GHashTable) known = look_at_states(together, error);
    for (guint i = 0; known && i < together->submissions->len; i++) {
        const Submission *submission = g_ptr_array_index(together->submissions, i);
        GArray *states = berth_dependencies_look(submission->spec, known, error);
        if (!states)
            return NULL;
        g_ptr_array_add(all, states);
    }
    return known ? g_steal_pointer(&all) : NULL;
}

static void on_looked(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autofree Together *together = user_data;
    g_autoptr(GPtrArray) submissions = together->submissions;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) all = berth_work_finish(result, &error);
    if (!all) {
        answer_all(submissions, error);
        return;
    }
    for (guint i = 0; i < submissions->len; i++) {
        const Submission *submission = g_ptr_array_index(submissions, i);
        berth_dependencies_note(submission->spec, g_ptr_array_index(all, i));
    }
    finish(g_steal_pointer(&submissions));
}

static void on_all_committed(const GError *error, gpointer user_data)
{
    Together *together = user_data;
    Group *group = together->group;
    if (error) {
        answer_all(together->submissions, error);
        g_ptr_array_unref(together->submissions);
        g_free(together);
        return;
    }
    berth_workers_run_for(group->daemon->workers, BERTH_LANE_READ, group->uid,
                          "look what jobs come after", look_at_all, together, NULL,
                          (GDestroyNotify)g_ptr_array_unref, 0, on_looked, together);
}

static void look_again(BerthTurn *turn, GPtrArray *submissions)
{
    const Submission *first = g_ptr_array_index(submissions, 0);
    Together *together = g_new0(Together, 1);
    together->group = first->group;
    together->submissions = submissions;
    berth_turn_then(turn, on_all_committed, together);
}

/* --- the request ------------------------------------------------------------------------------- */

static void on_user(const char *name, const GError *error, gpointer user_data)
{
    Together *together = user_data;
    Group *group = together->group;
    if (error) { /* a job keeps its user's name for good */
        answer_all(together->submissions, error);
        g_ptr_array_unref(together->submissions);
        g_free(together);
        return;
    }
    group->user = g_strdup(name);
    berth_workers_run_for(group->daemon->workers, BERTH_LANE_READ, group->uid,
                          "look for jobs' input", place_blobs, together, NULL,
                          (GDestroyNotify)g_array_unref, 0, on_placed, together);
}

static gboolean take_array(Submission *submission, GError **error)
{
    const Berth__JobSpec *spec = submission->spec;
    if (!spec->array)
        return TRUE;
    submission->array = berth_spec_array(spec, submission->group->daemon->config, error);
    return submission->array != NULL;
}

static gboolean check_request(const Berth__SubmitRequest *request, GError **error)
{
    if (!request->spec) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                            "the request has no job");
        return FALSE;
    }
    return check_key(request->idempotency_key, error);
}

static gboolean check_spec(Submission *submission, GError **error)
{
    const Group *group = submission->group;
    BerthDaemon *daemon = group->daemon;
    gboolean is_operator =
        berth_permission_is_operator(&daemon->operators, berth_rpc_call_identity(group->call));
    submission->spec = berth_pb_dup(&submission->request->spec->base);
    berth_spec_apply_defaults(submission->spec, daemon->config);
    return berth_spec_check(submission->spec, daemon->config, is_operator, error) &&
           take_array(submission, error) && check_present(submission, error);
}

/* TRUE: one of the same key is under way, and answers for SUBMISSION too. */
static gboolean join(Submission *submission)
{
    const Group *group = submission->group;
    GHashTable *by_key = group->daemon->submissions->by_key;
    if (!*submission->request->idempotency_key)
        return FALSE;
    g_autofree char *user_key =
        g_strdup_printf("%u:%s", (guint)group->uid, submission->request->idempotency_key);
    Submission *before = g_hash_table_lookup(by_key, user_key);
    if (!before) {
        submission->user_key = g_steal_pointer(&user_key);
        g_hash_table_insert(by_key, submission->user_key, submission);
        return FALSE;
    }
    if (!before->joined)
        before->joined = g_ptr_array_new();
    g_ptr_array_add(before->joined, submission);
    return TRUE;
}

/* TRUE: it goes on; else it has its answer, or will have that of another. */
static gboolean begin_one(Submission *submission)
{
    g_autoptr(GError) error = NULL;
    if (check_request(submission->request, &error) && join(submission))
        return FALSE;
    if (!error && check_spec(submission, &error))
        return TRUE;
    answer(submission, 0, error);
    return FALSE;
}

static void begin(Group *group)
{
    Together *together = g_new0(Together, 1);
    together->group = group;
    together->submissions = g_ptr_array_new();
    group->n_open = group->members->len + 1; /* it does not end before all have begun */
    for (guint i = 0; i < group->members->len; i++)
        if (begin_one(g_ptr_array_index(group->members, i)))
            g_ptr_array_add(together->submissions, g_ptr_array_index(group->members, i));
    if (together->submissions->len > 0) {
        berth_users_name(group->daemon->users, group->uid, on_user, together);
    } else {
        g_ptr_array_unref(together->submissions);
        g_free(together);
    }
    group_close(group, 1);
}

static Group *group_new(BerthDaemon *daemon, BerthRpcCall *call)
{
    const BerthRpcIdentity *who = berth_rpc_call_identity(call);
    Group *group = g_new0(Group, 1);
    group->daemon = daemon;
    group->call = call;
    group->uid = who->uid;
    group->gid = who->gid;
    group->members = g_ptr_array_new_with_free_func(submission_free);
    return group;
}

static void add_member(Group *group, const Berth__SubmitRequest *request)
{
    Submission *submission = g_new0(Submission, 1);
    submission->group = group;
    submission->request = request;
    g_ptr_array_add(group->members, submission);
}

void berth_submit(BerthDaemon *daemon, const Berth__SubmitRequest *request, BerthRpcCall *call)
{
    Group *group = group_new(daemon, call);
    add_member(group, request);
    begin(group);
}

void berth_submit_many(BerthDaemon *daemon, const Berth__SubmitManyRequest *request,
                       BerthRpcCall *call)
{
    if (request->n_jobs > JOBS_MAX) {
        g_autoptr(GError) error = g_error_new(BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                                              "%zu jobs are too many for one call: send %u at most",
                                              request->n_jobs, JOBS_MAX);
        berth_rpc_call_fail(call, error);
        return;
    }
    Group *group = group_new(daemon, call);
    group->is_many = TRUE;
    group->shared = request->inline_blobs;
    group->n_shared = request->n_inline_blobs;
    for (gsize i = 0; i < request->n_jobs; i++)
        add_member(group, request->jobs[i]);
    begin(group);
}
