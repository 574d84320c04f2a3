/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how jobs are read and what of them is shown to whom. */
#include "config.h"

#include "scheduler/daemon/job_list.h"

#include "common/error.h"
#include "common/ranges.h"
#include "scheduler/daemon/job_requests.h"
#include "scheduler/daemon/job_view.h"

#include <string.h>

/* One answer stays well below the limit of a frame. */
#define REPLY_MAX_BYTES (2u << 20)
#define NUMBERS_MAX     10000u
#define USER_MAX_BYTES  256u
#define TASKS_MAX       1000u /* of an array, in one answer */

/* --- one job ---------------------------------------------------------------------------------- */

typedef struct {
    BerthDaemon *daemon;
    BerthRpcCall *call;
    guint64 job;
    gboolean in_reply;      /* as a JobReply */
    BerthIndexSet *only;    /* of an array: these; NULL = any. Owned */
    BerthStoreTasks wanted; /* likewise */
} Get;

static gpointer read_job(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const Get *get = input;
    Berth__Job *job = berth_store_get_job_with(get->daemon->store, get->job, &get->wanted, error);
    if (!job)
        return NULL;
    if (get->only && job->array)
        berth_job_view_add_unstarted(job, &get->wanted);
    berth_job_view_shorten(job, REPLY_MAX_BYTES);
    return job;
}

static void job_free(gpointer job)
{
    berth__job__free_unpacked(job, NULL);
}

static void get_free(Get *get)
{
    g_clear_pointer(&get->only, berth_index_set_free);
    g_free(get);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Get, get_free)

static void on_job(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(Get) get = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(Berth__Job) job = berth_work_finish(result, &error);
    if (!job) {
        berth_rpc_call_fail(get->call, error);
        return;
    }
    berth_job_view_refresh(get->daemon, job);
    berth_job_view_hide(get->daemon, berth_rpc_call_identity(get->call), job);
    if (!get->in_reply) {
        berth_rpc_call_reply(get->call, &job->base);
        return;
    }
    Berth__JobReply reply = BERTH__JOB_REPLY__INIT;
    reply.job = job;
    berth_rpc_call_reply(get->call, &reply.base);
}

static Get *get_new(BerthDaemon *daemon, guint64 job, BerthRpcCall *call)
{
    Get *get = g_new0(Get, 1);
    get->daemon = daemon;
    get->call = call;
    get->job = job;
    get->wanted.limit = TASKS_MAX;
    return get;
}

static void run_get(Get *get)
{
    BerthDaemon *daemon = get->daemon;
    BerthRpcCall *call = get->call;
    berth_workers_run_for(daemon->workers, BERTH_LANE_READ, berth_rpc_call_identity(call)->uid,
                          "read a job", read_job, get, NULL, job_free, 0, on_job, get);
}

void berth_job_get(BerthDaemon *daemon, const Berth__GetJobRequest *request, BerthRpcCall *call)
{
    g_autoptr(GError) error = NULL;
    Get *get = get_new(daemon, request->job, call);
    if (!berth_ranges_take_tasks(request->tasks, request->n_tasks, &get->only, &error)) {
        berth_rpc_call_fail(call, error);
        get_free(get);
        return;
    }
    get->wanted.only = get->only;
    get->wanted.done = request->all_tasks;
    get->wanted.follows = request->follows;
    get->wanted.after = request->after_task;
    run_get(get);
}

void berth_job_reply(BerthDaemon *daemon, guint64 job, BerthRpcCall *call)
{
    Get *get = get_new(daemon, job, call);
    get->in_reply = TRUE;
    run_get(get);
}

/* --- many jobs -------------------------------------------------------------------------------- */

typedef struct {
    BerthDaemon *daemon;
    BerthRpcCall *call;
    const Berth__ListJobsRequest *request; /* valid until the call ends */
    guint32 uid;                           /* who asks */
    guint32 shown_uid;                     /* whose jobs are listed, unless all are */
    GCancellable *stop;                    /* nobody waits for it any more */
} List;

typedef struct {
    GPtrArray *jobs; /* Berth__Job */
    gboolean has_more;
} Page;

static void page_free(gpointer data)
{
    Page *page = data;
    g_ptr_array_unref(page->jobs);
    g_free(page);
}

static const int unfinished_states[] = {BERTH__JOB_STATE__PENDING, BERTH__JOB_STATE__RUNNING,
                                        BERTH__JOB_STATE__SUSPENDED};

static void fill_query(const List *list, BerthStoreQuery *query, GArray *states)
{
    const Berth__ListJobsRequest *request = list->request;
    guint page_size = list->daemon->config->page_size;
    query->after_job = request->after_job;
    query->limit = request->limit == 0 ? page_size : MIN(request->limit, page_size);
    query->any_uid = request->n_jobs > 0 || (request->all_users && !*request->user);
    if (request->n_jobs > 0) {
        query->jobs = request->jobs;
        query->n_jobs = request->n_jobs;
    }
    if (request->n_states > 0) {
        for (gsize i = 0; i < request->n_states; i++) {
            int state = (int)request->states[i];
            g_array_append_val(states, state);
        }
        query->states = (const int *)(void *)states->data;
        query->n_states = states->len;
    } else if (request->n_jobs == 0 && !request->all_states) {
        query->states = unfinished_states;
        query->n_states = G_N_ELEMENTS(unfinished_states);
    }
    query->uid = list->shown_uid;
}

static gpointer read_jobs(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const List *list = input;
    g_autoptr(GArray) states = g_array_new(FALSE, FALSE, sizeof(int));
    BerthStoreQuery query = {.stop = list->stop, .bytes_max = REPLY_MAX_BYTES};
    fill_query(list, &query, states);
    gboolean has_more = FALSE;
    GPtrArray *jobs = berth_store_list_jobs(list->daemon->store, &query, &has_more, error);
    if (!jobs)
        return NULL;
    for (guint i = 0; i < jobs->len; i++)
        berth_job_view_shorten(g_ptr_array_index(jobs, i), REPLY_MAX_BYTES);
    Page *page = g_new0(Page, 1);
    page->jobs = jobs;
    page->has_more = has_more;
    return page;
}

/* As many of the page's jobs as one answer can hold, without what only berth show needs. */
static void fill_reply(const List *list, const Page *page, Berth__ListJobsReply *reply)
{
    gsize size = 0;
    reply->jobs = (Berth__Job **)page->jobs->pdata;
    for (guint i = 0; i < page->jobs->len; i++) {
        Berth__Job *job = g_ptr_array_index(page->jobs, i);
        berth_job_view_refresh(list->daemon, job);
        berth_job_view_hide(list->daemon, berth_rpc_call_identity(list->call), job);
        berth_job_requests_drop(job);
        for (gsize t = 0; t < job->n_tasks; t++)
            berth_pb_set_string(&job->tasks[t]->console_tail, NULL);
        size += berth__job__get_packed_size(job);
        if (size > REPLY_MAX_BYTES && reply->n_jobs > 0)
            break;
        reply->n_jobs++;
    }
    if (reply->n_jobs > 0 && (page->has_more || reply->n_jobs < page->jobs->len))
        reply->next_after_job = reply->jobs[reply->n_jobs - 1]->id;
}

static void list_fail(List *list, const GError *error)
{
    berth_rpc_call_fail(list->call, error);
    g_object_unref(list->stop);
    g_free(list);
}

static void on_jobs(GObject *source, GAsyncResult *result, gpointer user_data)
{
    List *list = user_data;
    g_autoptr(GError) error = NULL;
    Page *page = berth_work_finish(result, &error);
    if (!page) {
        list_fail(list, error);
        return;
    }
    Berth__ListJobsReply reply = BERTH__LIST_JOBS_REPLY__INIT;
    fill_reply(list, page, &reply);
    berth_rpc_call_reply(list->call, &reply.base);
    page_free(page);
    g_object_unref(list->stop);
    g_free(list);
}

static void run_list(List *list)
{
    berth_workers_run_for(list->daemon->workers, BERTH_LANE_READ, list->uid, "list jobs", read_jobs,
                          list, NULL, page_free, 0, on_jobs, list);
}

static gpointer look_up_user(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const List *list = input;
    uid_t uid = 0;
    if (!berth_user_uid(list->request->user, &uid, error))
        return NULL;
    return g_memdup2(&uid, sizeof uid);
}

static void on_user(GObject *source, GAsyncResult *result, gpointer user_data)
{
    List *list = user_data;
    g_autoptr(GError) error = NULL;
    g_autofree uid_t *uid = berth_work_finish(result, &error);
    if (!uid) {
        list_fail(list, error);
        return;
    }
    list->shown_uid = *uid;
    run_list(list);
}

static void on_cancelled(BerthRpcCall *call, gpointer user_data)
{
    const List *list = user_data;
    g_cancellable_cancel(list->stop);
}

static gboolean check_list(const Berth__ListJobsRequest *request, GError **error)
{
    if (request->n_jobs > NUMBERS_MAX || request->n_states > NUMBERS_MAX) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "the request names %zu jobs and %zu states; at most %u are allowed",
                    request->n_jobs, request->n_states, NUMBERS_MAX);
        return FALSE;
    }
    if (strlen(request->user) > USER_MAX_BYTES) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "the name of a user has at most %u bytes", USER_MAX_BYTES);
        return FALSE;
    }
    return TRUE;
}

void berth_job_list(BerthDaemon *daemon, const Berth__ListJobsRequest *request, BerthRpcCall *call)
{
    g_autoptr(GError) error = NULL;
    if (!check_list(request, &error)) {
        berth_rpc_call_fail(call, error);
        return;
    }
    List *list = g_new0(List, 1);
    *list = (List){.daemon = daemon, .call = call, .request = request};
    list->uid = berth_rpc_call_identity(call)->uid;
    list->shown_uid = list->uid;
    list->stop = g_cancellable_new();
    berth_rpc_call_set_cancelled_func(call, on_cancelled, list);
    if (*request->user && request->n_jobs == 0) {
        berth_workers_run_for(daemon->workers, BERTH_LANE_NAMES, list->uid, "look up a user",
                              look_up_user, list, NULL, g_free, 0, on_user, list);
    } else {
        run_list(list);
    }
}
