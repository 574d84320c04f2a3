/* SPDX-License-Identifier: Apache-2.0 */
/* Owns submissions from the request to its answer. The rules for a specification are
 * spec_check.c's, what is looked up on workers submit_look.c's, and whether the cluster can run it is
 * the core's to say. Jobs that come in one call go the same way together, and each has an answer of its own.
 *
 * Invariant: a user's idempotency key leads to one job, whether the first request with it was
 * committed, is under way, or comes again on another connection or in the same call. */
#include "config.h"

#include "scheduler/daemon/submit.h"

#include "common/error.h"
#include "scheduler/daemon/dependencies.h"
#include "scheduler/daemon/disk_bound.h"
#include "scheduler/daemon/image_table.h"
#include "scheduler/daemon/job_numbers.h"
#include "scheduler/daemon/job_records.h"
#include "scheduler/daemon/memory_bound.h"
#include "scheduler/daemon/spec_check.h"
#include "scheduler/daemon/submit_internal.h"

#include <string.h>

#define KEY_MAX_BYTES 128u
#define JOBS_MAX      10000u /* in one call */
#define JOBS_PER_TURN 100u   /* are decided on before others come between */

struct BerthSubmissions {
    GHashTable *by_key; /* "UID:KEY" -> BerthSubmission, while under way */
    BerthMemoryBound *memory;
    BerthDiskBound *disk;
    GQueue
        undecided; /* GPtrArray of BerthSubmission: of a call, when a turn's worth of them was decided on */
    guint next_turn; /* source for the first of these; 0 = there are none */
};

BerthSubmissions *berth_submissions_new(BerthDaemon *daemon)
{
    BerthSubmissions *submissions = g_new0(BerthSubmissions, 1);
    submissions->by_key = g_hash_table_new(g_str_hash, g_str_equal);
    submissions->memory = berth_memory_bound_new(daemon->config->memory_max_mib);
    submissions->disk = berth_disk_bound_new(daemon->config->state, daemon->config->state_kept_mib);
    g_queue_init(&submissions->undecided);
    return submissions;
}

void berth_submissions_free(BerthSubmissions *submissions)
{
    g_hash_table_unref(submissions->by_key);
    berth_memory_bound_free(submissions->memory);
    berth_disk_bound_free(submissions->disk);
    g_free(submissions);
}

static void submission_free(gpointer data)
{
    BerthSubmission *submission = data;
    if (submission->spec)
        berth__job_spec__free_unpacked(submission->spec, NULL);
    g_clear_pointer(&submission->array, berth_index_set_free);
    g_clear_pointer(&submission->places, g_ptr_array_unref);
    g_clear_pointer(&submission->completed, g_array_unref);
    g_clear_pointer(&submission->joined, g_ptr_array_unref);
    g_clear_error(&submission->unfit);
    g_clear_error(&submission->error);
    g_free(submission->user_key);
    g_free(submission);
}

/* --- answers ----------------------------------------------------------------------------------- */

static void reply_one(const BerthSubmitGroup *group)
{
    const BerthSubmission *submission = g_ptr_array_index(group->members, 0);
    Berth__SubmitReply reply = BERTH__SUBMIT_REPLY__INIT;
    reply.job = submission->job;
    if (submission->error)
        berth_rpc_call_fail(group->call, submission->error);
    else
        berth_rpc_call_reply(group->call, &reply.base);
}

static void reply_many(const BerthSubmitGroup *group)
{
    guint n = group->members->len;
    g_autofree Berth__SubmitManyReply__Result *results = g_new(Berth__SubmitManyReply__Result, n);
    g_autofree Berth__SubmitManyReply__Result **pointers =
        g_new(Berth__SubmitManyReply__Result *, n);
    g_autofree Berth__Error *errors = g_new(Berth__Error, n);
    Berth__SubmitManyReply reply = BERTH__SUBMIT_MANY_REPLY__INIT;
    for (guint i = 0; i < n; i++) {
        const BerthSubmission *submission = g_ptr_array_index(group->members, i);
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

void berth_submit_group_close(BerthSubmitGroup *group, guint n)
{
    group->n_open -= n;
    if (group->n_open > 0)
        return;
    (group->is_many ? reply_many : reply_one)(group);
    g_ptr_array_unref(group->members);
    g_free(group->user);
    g_free(group);
}

static BerthSubmission *pass_key_on(BerthSubmission *submission, GPtrArray *joined);
static void begin_alone(BerthSubmission *submission);

/* Others of its key have the same answer, but for that it is unfit: that says nothing of theirs. */
void berth_submission_answer(BerthSubmission *submission, guint64 job, const GError *error)
{
    BerthSubmitGroup *group = submission->group;
    BerthSubmission *next = NULL;
    g_autoptr(GPtrArray) joined = g_steal_pointer(&submission->joined);
    submission->job = error ? 0 : job;
    submission->error = error ? g_error_copy(error) : NULL;
    berth_submission_look_no_more(submission);
    if (submission->user_key)
        g_hash_table_remove(group->daemon->submissions->by_key, submission->user_key);
    if (joined && error && error == submission->unfit)
        next = pass_key_on(submission, joined);
    for (guint i = 0; joined && i < joined->len; i++) {
        BerthSubmission *other = g_ptr_array_index(joined, i);
        berth_submission_answer(other, job, other->unfit ? other->unfit : error);
    }
    if (next)
        begin_alone(next);
    berth_submit_group_close(group, 1);
}

void berth_submissions_fail(GPtrArray *submissions, const GError *error)
{
    for (guint i = 0; i < submissions->len; i++)
        berth_submission_answer(g_ptr_array_index(submissions, i), 0, error);
    g_ptr_array_unref(submissions);
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

gboolean berth_submission_check_present(const BerthSubmission *submission, GError **error)
{
    BerthDaemon *daemon = submission->group->daemon;
    BerthMemoryJobs jobs = {.of_user =
                                berth_job_table_count_user(daemon->jobs, submission->group->uid)};
    jobs.of_all = berth_job_table_count_all(daemon->jobs, &jobs.n_users);
    if (!berth_engine_check(daemon->engine, error) ||
        !berth_memory_bound_check(daemon->submissions->memory, &jobs, error) ||
        !berth_disk_bound_check(daemon->submissions->disk, error) ||
        !check_user_limit(daemon, submission->group->uid, error))
        return FALSE;
    const Berth__Image *image =
        berth_image_table_get(daemon->images, submission->spec->image, error);
    return image && berth_spec_check_disk(submission->spec, image->size_bytes, error);
}

/* --- the decision ------------------------------------------------------------------------------ */

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

void berth_submissions_stop(BerthSubmissions *submissions)
{
    GPtrArray *undecided;
    g_clear_handle_id(&submissions->next_turn, g_source_remove);
    while ((undecided = g_queue_pop_head(&submissions->undecided)))
        berth_submissions_finish(undecided);
}

/* --- the request ------------------------------------------------------------------------------- */

static void on_user(const char *name, const GError *error, gpointer user_data)
{
    GPtrArray *submissions = user_data;
    if (error) { /* a job keeps its user's name for good */
        berth_submissions_fail(submissions, error);
        return;
    }
    BerthSubmitGroup *group = berth_submissions_group(submissions);
    if (!group->user)
        group->user = g_strdup(name);
    berth_submissions_look(submissions);
}

static gboolean take_array(BerthSubmission *submission, GError **error)
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

/* Whether there is room for one with a key is looked at when it is known whether it was taken before. */
static gboolean check_spec(BerthSubmission *submission, GError **error)
{
    const BerthSubmitGroup *group = submission->group;
    BerthDaemon *daemon = group->daemon;
    gboolean is_operator =
        berth_permission_is_operator(&daemon->operators, berth_rpc_call_identity(group->call));
    submission->spec = berth_pb_dup(&submission->request->spec->base);
    berth_spec_apply_defaults(submission->spec, daemon->config);
    return berth_spec_check(submission->spec, daemon->config, is_operator, error) &&
           take_array(submission, error) &&
           (*submission->request->idempotency_key ||
            berth_submission_check_present(submission, error));
}

/* It answers for all of its key from now on. USER_KEY is taken. */
static void lead(BerthSubmission *submission, char *user_key)
{
    submission->user_key = user_key;
    g_hash_table_insert(submission->group->daemon->submissions->by_key, user_key, submission);
}

/* TRUE: one of the same key is under way, and answers for SUBMISSION too. */
static gboolean join(BerthSubmission *submission)
{
    const BerthSubmitGroup *group = submission->group;
    GHashTable *by_key = group->daemon->submissions->by_key;
    if (!*submission->request->idempotency_key)
        return FALSE;
    g_autofree char *user_key =
        g_strdup_printf("%u:%s", (guint)group->uid, submission->request->idempotency_key);
    BerthSubmission *before = g_hash_table_lookup(by_key, user_key);
    if (!before) {
        lead(submission, g_steal_pointer(&user_key));
        return FALSE;
    }
    if (!before->joined)
        before->joined = g_ptr_array_new();
    g_ptr_array_add(before->joined, submission);
    return TRUE;
}

/* TRUE: it goes on; else it has its answer, or will have that of another. One with a key that was taken before has the number of
 * that, whatever the configuration, and what its user may, have become since: why it cannot be taken is not said before the key was
 * looked for. */
static gboolean begin_one(BerthSubmission *submission)
{
    g_autoptr(GError) error = NULL;
    if (!check_request(submission->request, &error)) {
        berth_submission_answer(submission, 0, error);
        return FALSE;
    }
    if (join(submission))
        return FALSE;
    if (check_spec(submission, &submission->unfit) || *submission->request->idempotency_key)
        return TRUE;
    berth_submission_answer(submission, 0, submission->unfit);
    return FALSE;
}

/* From SUBMISSION, which is unfit, to the first of JOINED that is not, and answers for those behind it; those before it are left in
 * JOINED. No job has the key, as was found for SUBMISSION, nor can one get it before that one: of those that are unfit nothing is
 * looked up. NULL: all are. */
static BerthSubmission *pass_key_on(BerthSubmission *submission, GPtrArray *joined)
{
    guint n_unfit = 0;
    BerthSubmission *next = g_ptr_array_index(joined, 0);
    while (!check_spec(next, &next->unfit)) {
        if (++n_unfit == joined->len)
            return NULL;
        next = g_ptr_array_index(joined, n_unfit);
    }
    next->joined = g_ptr_array_new();
    for (guint i = n_unfit + 1; i < joined->len; i++)
        g_ptr_array_add(next->joined, g_ptr_array_index(joined, i));
    g_ptr_array_set_size(joined, (gint)n_unfit);
    lead(next, g_steal_pointer(&submission->user_key));
    return next;
}

static void begin_alone(BerthSubmission *submission)
{
    const BerthSubmitGroup *group = submission->group;
    GPtrArray *alone = g_ptr_array_new();
    g_ptr_array_add(alone, submission);
    berth_users_name(group->daemon->users, group->uid, on_user, alone);
}

static void begin(BerthSubmitGroup *group)
{
    g_autoptr(GPtrArray) begun = g_ptr_array_new();
    group->n_open = group->members->len + 1; /* it does not end before all have begun */
    for (guint i = 0; i < group->members->len; i++)
        if (begin_one(g_ptr_array_index(group->members, i)))
            g_ptr_array_add(begun, g_ptr_array_index(group->members, i));
    if (begun->len > 0)
        berth_users_name(group->daemon->users, group->uid, on_user, g_steal_pointer(&begun));
    berth_submit_group_close(group, 1);
}

static BerthSubmitGroup *group_new(BerthDaemon *daemon, BerthRpcCall *call)
{
    const BerthRpcIdentity *who = berth_rpc_call_identity(call);
    BerthSubmitGroup *group = g_new0(BerthSubmitGroup, 1);
    group->daemon = daemon;
    group->call = call;
    group->uid = who->uid;
    group->gid = who->gid;
    group->members = g_ptr_array_new_with_free_func(submission_free);
    return group;
}

static void add_member(BerthSubmitGroup *group, const Berth__SubmitRequest *request)
{
    BerthSubmission *submission = g_new0(BerthSubmission, 1);
    submission->group = group;
    submission->request = request;
    g_ptr_array_add(group->members, submission);
}

void berth_submit(BerthDaemon *daemon, const Berth__SubmitRequest *request, BerthRpcCall *call)
{
    BerthSubmitGroup *group = group_new(daemon, call);
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
    BerthSubmitGroup *group = group_new(daemon, call);
    group->is_many = TRUE;
    group->shared = request->inline_blobs;
    group->n_shared = request->n_inline_blobs;
    for (gsize i = 0; i < request->n_jobs; i++)
        add_member(group, request->jobs[i]);
    begin(group);
}
