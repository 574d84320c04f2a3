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
#include "scheduler/daemon/image_table.h"
#include "scheduler/daemon/job_numbers.h"
#include "scheduler/daemon/spec_check.h"
#include "scheduler/daemon/submit_internal.h"

#include <string.h>

#define KEY_MAX_BYTES   128u
#define JOBS_MAX        10000u /* in one call */
#define CHECKS_PER_TURN 500u   /* likewise, are checked */

BerthSubmissions *berth_submissions_new(BerthDaemon *daemon)
{
    BerthSubmissions *submissions = g_new0(BerthSubmissions, 1);
    submissions->by_key = g_hash_table_new(g_str_hash, g_str_equal);
    submissions->memory = berth_memory_bound_new(daemon->config->memory_max_mib);
    submissions->disk = berth_disk_bound_new(daemon->config->state, daemon->config->state_kept_mib);
    g_queue_init(&submissions->undecided);
    g_queue_init(&submissions->unchecked);
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

/* All have. */
static void go_on(BerthSubmitGroup *group)
{
    g_autoptr(GPtrArray) begun = g_steal_pointer(&group->begun);
    if (begun->len > 0)
        berth_users_name(group->daemon->users, group->uid, on_user, g_steal_pointer(&begun));
    berth_submit_group_close(group, 1);
}

/* Up to N more of them. FALSE: all have. */
static gboolean begin_some(BerthSubmitGroup *group, guint n)
{
    guint end = group->n_begun + MIN(n, group->members->len - group->n_begun);
    while (group->n_begun < end) {
        BerthSubmission *next = g_ptr_array_index(group->members, group->n_begun++);
        if (begin_one(next))
            g_ptr_array_add(group->begun, next);
    }
    return end < group->members->len;
}

/* Up to N of it, or of what is behind it. The one that is to go on; NULL: all have begun. */
static BerthSubmitGroup *begin_in_order(BerthSubmitGroup *group, guint n)
{
    if (begin_some(group, n))
        return group;
    BerthSubmitGroup *behind = g_steal_pointer(&group->behind);
    go_on(group);
    return behind;
}

/* A call of each user in turn, and what else the loop has to do between them. */
static gboolean on_check(gpointer user_data)
{
    BerthSubmissions *submissions = user_data;
    BerthSubmitGroup *group =
        begin_in_order(g_queue_pop_head(&submissions->unchecked), CHECKS_PER_TURN);
    if (group)
        g_queue_push_tail(&submissions->unchecked, group);
    if (!g_queue_is_empty(&submissions->unchecked))
        return G_SOURCE_CONTINUE;
    submissions->next_check = 0;
    return G_SOURCE_REMOVE;
}

/* The last call of its user, of which some have not begun; NULL: there is none. */
static BerthSubmitGroup *find_before(BerthSubmissions *submissions, const BerthSubmitGroup *group)
{
    for (GList *link = submissions->unchecked.head; link; link = link->next) {
        BerthSubmitGroup *before = link->data;
        if (before->uid != group->uid)
            continue;
        while (before->behind)
            before = before->behind;
        return before;
    }
    return NULL;
}

/* What one user asks for begins in its order: a key is the first one's. */
static void begin(BerthSubmitGroup *group)
{
    BerthSubmissions *submissions = group->daemon->submissions;
    group->n_open = group->members->len + 1; /* it does not end before all have begun */
    group->begun = g_ptr_array_new();
    gboolean is_last = berth_engine_is_stopped(group->daemon->engine);
    BerthSubmitGroup *before = find_before(submissions, group);
    if (before) {
        before->behind = group;
        return;
    }
    if (!begin_in_order(group, is_last ? G_MAXUINT : CHECKS_PER_TURN))
        return;
    g_queue_push_tail(&submissions->unchecked, group);
    if (submissions->next_check == 0)
        submissions->next_check = g_idle_add_full(G_PRIORITY_DEFAULT, on_check, submissions, NULL);
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

void berth_submissions_stop(BerthSubmissions *submissions)
{
    BerthSubmitGroup *unchecked;
    g_clear_handle_id(&submissions->next_check, g_source_remove);
    while ((unchecked = g_queue_pop_head(&submissions->unchecked)))
        while (unchecked)
            unchecked = begin_in_order(unchecked, G_MAXUINT);
    berth_submissions_finish_all(submissions);
}
