/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the connection to storage: when it is opened, whether it answers, and how it is
 * used from the loop. Does not know what storage is used for.
 *
 * Invariants: storage is touched on workers only; nothing is written there by opening and checking before
 * the guard has said that it may be used; one attempt or check runs at a time; work has the
 * handle of the moment at which it was dispatched. One that is worn, or was cut off, is replaced when the next check is
 * due, and closed when a check finds that nobody uses it any more; until then its client is ours. */
#include "config.h"

#include "scheduler/daemon/storage_link.h"

#include "common/error.h"

#define RETRY_MIN_SEC 1u
/* A check is given up after this many times the time that one operation may take. */
#define CHECK_TIMEOUT_OPS 2u
/* The first attempt to open it that takes longer counts as failed until it ends. */
#define OPEN_TIMEOUT_OPS 2u
/* While storage is slow, each handle is worn soon. */
#define REPLACE_EVERY_USEC ((gint64)60 * G_USEC_PER_SEC)

struct BerthStorageLink {
    const BerthStorageConfig *config;
    guint check_interval_sec;
    BerthWorkers *workers;
    BerthStorage *storage; /* NULL until it was opened */
    GPtrArray *replaced;   /* of BerthStorage, owned: worn ones that somebody still uses */
    GQueue early;          /* Work that came before the first attempt to open it has ended */
    char *error;           /* NULL: it answers */
    gboolean is_known;     /* the first attempt has ended, or takes long */
    gboolean is_foreign;   /* the error is that it is not ours */
    gboolean is_stopped;
    guint retry_sec;
    gint64 replaced_usec; /* when a worn handle was replaced; 0: never */
    guint timer;
    guint late_timer;                 /* for the first attempt */
    BerthStorageGuardFunc guard_func; /* or NULL */
    gpointer guard_data;
    BerthStorageChangedFunc changed_func;
    gpointer changed_data;
};

static void free_storage(gpointer storage)
{
    berth_storage_free(storage);
}

BerthStorageLink *berth_storage_link_new(const BerthStorageConfig *config, BerthWorkers *workers,
                                         guint check_interval_sec)
{
    BerthStorageLink *link = g_new0(BerthStorageLink, 1);
    link->config = config;
    link->check_interval_sec = check_interval_sec;
    link->workers = workers;
    link->replaced = g_ptr_array_new_with_free_func(free_storage);
    g_queue_init(&link->early);
    link->error = g_strdup("it is being opened");
    link->retry_sec = RETRY_MIN_SEC;
    return link;
}

void berth_storage_link_free(BerthStorageLink *link)
{
    berth_storage_link_stop(link);
    g_ptr_array_unref(link->replaced);
    berth_storage_free(link->storage);
    g_free(link->error);
    g_free(link);
}

const char *berth_storage_link_kind(BerthStorageLink *link)
{
    return link->config->kind;
}

BerthWorkers *berth_storage_link_workers(BerthStorageLink *link)
{
    return link->workers;
}

const char *berth_storage_link_error(BerthStorageLink *link)
{
    return link->error;
}

void berth_storage_link_set_guard(BerthStorageLink *link, BerthStorageGuardFunc func,
                                  gpointer user_data)
{
    link->guard_func = func;
    link->guard_data = user_data;
}

gboolean berth_storage_link_is_foreign(const GError *error)
{
    return g_error_matches(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION);
}

static gboolean has_address(BerthStorage *storage, const char *address)
{
    g_autofree char *text = berth_storage_client_address(storage);
    g_auto(GStrv) own = g_strsplit(text, " ", -1);
    return g_strv_contains((const char *const *)own, address);
}

gboolean berth_storage_link_is_own(BerthStorageLink *link, const char *address)
{
    gboolean is_own = link->storage && has_address(link->storage, address);
    for (guint i = 0; i < link->replaced->len && !is_own; i++)
        is_own = has_address(g_ptr_array_index(link->replaced, i), address);
    return is_own;
}

/* The time that N_OPS operations may take. */
static guint op_timeout_msec(const BerthStorageLink *link, guint n_ops)
{
    return n_ops * 1000 * link->config->op_timeout_sec;
}

/* --- use ------------------------------------------------------------------------------------- */

typedef struct {
    BerthStorage *storage; /* a reference; NULL: not open */
    char *why_not;
    BerthStorageFunc func;
    gpointer input;
    GDestroyNotify input_free;
    /* the loop's */
    BerthLane lane;
    guint32 uid;
    char *what;
    guint timeout_msec;
    GDestroyNotify result_free;
    GAsyncReadyCallback callback;
    gpointer user_data;
} Work;

static void work_free(gpointer data)
{
    Work *work = data;
    if (work->input_free)
        work->input_free(work->input);
    berth_storage_free(work->storage);
    g_free(work->why_not);
    g_free(work->what);
    g_free(work);
}

static gpointer run_work(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const Work *work = input;
    if (!work->storage) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                    "storage cannot be reached: %s; try again when it answers", work->why_not);
        return NULL;
    }
    return work->func(work->storage, work->input, error);
}

static void dispatch(BerthStorageLink *link, Work *work)
{
    work->storage = link->storage ? berth_storage_ref(link->storage) : NULL;
    work->why_not = link->storage ? NULL : g_strdup(link->error);
    berth_workers_run_for(link->workers, work->lane, work->uid, work->what, run_work, work,
                          work_free, work->result_free, work->timeout_msec, work->callback,
                          work->user_data);
}

static void dispatch_early(BerthStorageLink *link)
{
    Work *work;
    while ((work = g_queue_pop_head(&link->early)))
        dispatch(link, work);
}

static void run(BerthStorageLink *link, Work *work)
{
    if (link->is_known || link->is_stopped)
        dispatch(link, work);
    else
        g_queue_push_tail(&link->early, work);
}

static Work *work_new(BerthLane lane, guint32 uid, const char *what, guint timeout_msec,
                      BerthStorageFunc func, gpointer input, GDestroyNotify input_free)
{
    Work *work = g_new0(Work, 1);
    work->func = func;
    work->input = input;
    work->input_free = input_free;
    work->lane = lane;
    work->uid = uid;
    work->what = g_strdup(what);
    work->timeout_msec = timeout_msec;
    return work;
}

void berth_storage_link_run_within(BerthStorageLink *link, BerthLane lane, const char *what,
                                   guint n_ops, BerthStorageFunc func, gpointer input,
                                   GDestroyNotify input_free, GAsyncReadyCallback callback,
                                   gpointer user_data)
{
    Work *work = work_new(lane, BERTH_WORKERS_SELF, what, op_timeout_msec(link, n_ops), func, input,
                          input_free);
    work->callback = callback;
    work->user_data = user_data;
    run(link, work);
}

void berth_storage_link_run_for(BerthStorageLink *link, BerthLane lane, guint32 uid,
                                const char *what, BerthStorageFunc func, gpointer input,
                                GDestroyNotify input_free, GDestroyNotify result_free,
                                GAsyncReadyCallback callback, gpointer user_data)
{
    Work *work = work_new(lane, uid, what, 0, func, input, input_free);
    work->result_free = result_free;
    work->callback = callback;
    work->user_data = user_data;
    run(link, work);
}

void berth_storage_link_run(BerthStorageLink *link, BerthLane lane, const char *what,
                            BerthStorageFunc func, gpointer input, GDestroyNotify input_free,
                            GDestroyNotify result_free, GAsyncReadyCallback callback,
                            gpointer user_data)
{
    berth_storage_link_run_for(link, lane, BERTH_WORKERS_SELF, what, func, input, input_free,
                               result_free, callback, user_data);
}

/* --- opening and checking -------------------------------------------------------------------- */

void berth_storage_link_stop(BerthStorageLink *link)
{
    link->is_stopped = TRUE;
    g_clear_handle_id(&link->timer, g_source_remove);
    g_clear_handle_id(&link->late_timer, g_source_remove);
    dispatch_early(link);
}

static void attempt(BerthStorageLink *link);

static gboolean on_due(gpointer user_data)
{
    BerthStorageLink *link = user_data;
    link->timer = 0;
    attempt(link);
    return G_SOURCE_REMOVE;
}

static gpointer close_storage(gconstpointer input, GCancellable *cancellable, GError **error)
{
    return NULL; /* the work is done when the input is freed */
}

static void on_closed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    berth_work_finish(result, NULL);
}

/* On a worker, as that may take its time. */
static void close_unused(BerthStorageLink *link)
{
    for (guint i = link->replaced->len; i > 0; i--) {
        if (!berth_storage_is_shared(g_ptr_array_index(link->replaced, i - 1))) {
            BerthStorage *unused = g_ptr_array_steal_index(link->replaced, i - 1);
            berth_workers_run(link->workers, BERTH_LANE_STORAGE_CONTROL, "close storage",
                              close_storage, unused, free_storage, NULL, 0, on_closed, NULL);
        }
    }
}

static void set_error(BerthStorageLink *link, const GError *error)
{
    gboolean was_ok = !link->error;
    gboolean is_foreign = berth_storage_link_is_foreign(error);
    gboolean is_news = !link->is_known || was_ok != !error || is_foreign != link->is_foreign;
    g_clear_handle_id(&link->late_timer, g_source_remove);
    link->is_known = TRUE;
    link->is_foreign = is_foreign;
    g_free(link->error);
    link->error = error ? g_strdup(error->message) : NULL;
    if (is_news)
        link->changed_func(error, link->changed_data);
    dispatch_early(link);
}

static void settle(BerthStorageLink *link, const GError *error)
{
    guint wait_sec = link->check_interval_sec;
    if (error) {
        wait_sec = MIN(link->retry_sec, link->check_interval_sec);
        link->retry_sec = MIN(link->retry_sec * 2, link->check_interval_sec);
    } else {
        link->retry_sec = RETRY_MIN_SEC;
    }
    link->timer = g_timeout_add_seconds(wait_sec, on_due, link);
    close_unused(link);
    set_error(link, error);
}

/* Whoever waits is to hear of it. The attempt goes on. */
static gboolean on_late(gpointer user_data)
{
    BerthStorageLink *link = user_data;
    g_autoptr(GError) error =
        g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "it could not be opened within %u s yet",
                    OPEN_TIMEOUT_OPS * link->config->op_timeout_sec);
    set_error(link, error);
    return G_SOURCE_CONTINUE; /* it was removed */
}

static gpointer open_storage(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthStorageLink *link = input;
    g_autoptr(BerthStorage) storage = berth_storage_connect(link->config, error);
    if (!storage ||
        (link->guard_func && !link->guard_func(storage, TRUE, link->guard_data, error)) ||
        !berth_storage_prepare(storage, error) || !berth_storage_may_fence(storage, error))
        return NULL;
    return g_steal_pointer(&storage);
}

/* What a check needs of the link, which it may outlive in its worker. */
typedef struct {
    BerthStorage *storage; /* a reference */
    BerthStorageGuardFunc guard_func;
    gpointer guard_data;
} Check;

static void check_free(gpointer data)
{
    Check *check = data;
    berth_storage_free(check->storage);
    g_free(check);
}

static gpointer check_storage(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const Check *check = input;
    if (!check->guard_func || check->guard_func(check->storage, FALSE, check->guard_data, error))
        berth_storage_check(check->storage, error);
    return NULL;
}

static void use_storage(BerthStorageLink *link, BerthStorage *storage)
{
    if (link->storage) {
        g_message("storage was opened anew, as %s",
                  berth_storage_is_fenced(link->storage)
                      ? "berthd was cut off from it: one that stood still for 30 s is taken for "
                        "dead by who waits for it"
                      : "an operation that ran out of time may have left something open");
        link->replaced_usec = g_get_monotonic_time();
        g_ptr_array_add(link->replaced, link->storage);
    }
    link->storage = storage;
}

static gboolean is_to_be_replaced(BerthStorageLink *link)
{
    return berth_storage_is_fenced(link->storage) ||
           (berth_storage_is_worn(link->storage) &&
            (link->replaced_usec == 0 ||
             g_get_monotonic_time() - link->replaced_usec >= REPLACE_EVERY_USEC));
}

static void on_attempted(GObject *source, GAsyncResult *result, gpointer user_data)
{
    BerthStorageLink *link = user_data;
    g_autoptr(GError) error = NULL;
    BerthStorage *storage = berth_work_finish(result, &error);
    if (storage)
        use_storage(link, storage);
    if (berth_storage_link_is_foreign(error) && link->storage)
        g_ptr_array_add(link->replaced, g_steal_pointer(&link->storage));
    if (!link->is_stopped)
        settle(link, error);
}

static void attempt(BerthStorageLink *link)
{
    if (!link->storage || is_to_be_replaced(link)) {
        /* Without a deadline: a handle that comes late is not to be lost. */
        berth_workers_run(link->workers, BERTH_LANE_STORAGE_CONTROL, "open storage", open_storage,
                          link, NULL, free_storage, 0, on_attempted, link);
        return;
    }
    Check *check = g_new(Check, 1);
    *check = (Check){berth_storage_ref(link->storage), link->guard_func, link->guard_data};
    berth_workers_run(link->workers, BERTH_LANE_STORAGE_CONTROL, "check storage", check_storage,
                      check, check_free, NULL, op_timeout_msec(link, CHECK_TIMEOUT_OPS),
                      on_attempted, link);
}

void berth_storage_link_doubt(BerthStorageLink *link)
{
    if (link->timer == 0 || link->error)
        return; /* it is being looked at, or known not to answer */
    g_clear_handle_id(&link->timer, g_source_remove);
    attempt(link);
}

void berth_storage_link_start(BerthStorageLink *link, BerthStorageChangedFunc func,
                              gpointer user_data)
{
    link->changed_func = func;
    link->changed_data = user_data;
    link->late_timer = g_timeout_add(op_timeout_msec(link, OPEN_TIMEOUT_OPS), on_late, link);
    attempt(link);
}
