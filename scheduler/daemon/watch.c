/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the streams of events. Does not own what is in them (event_log.c), nor which of them are of which jobs (watch_index.c).
 *
 * Invariants: a watcher has sent every event up to its cursor that it is to see, once, in order. It is live only if there is none
 * that it is to see between its cursor and the newest committed event; its cursor may be beyond that: a page of the store may
 * have what was committed but not told here yet. What an event costs here is due to those that see it: of the others it is
 * looked at one alone, which ends first. */
#include "config.h"

#include "scheduler/daemon/watch.h"

#include "common/error.h"
#include "common/message.h"
#include "common/types.h"
#include "scheduler/daemon/watch_index.h"

#define PAGE_EVENTS 512u
/* So many jobs all watches of a user may name together. */
#define USER_JOBS_MAX 1000000u

struct BerthWatchers {
    BerthDaemon *daemon;
    BerthWatchIndex *
        index; /* Watch: those of all events while they are live, and those of jobs, which cost more to put there */
    GSequence *ends;   /* Watch, live, that has an end, by that */
    GHashTable *named; /* uid -> how many jobs the user's watches name, if any */
};

typedef struct {
    BerthWatchers *watchers;
    BerthRpcCall *call;
    GArray *jobs;           /* guint64, rising; empty = all */
    BerthWatchPlace *place; /* NULL = it is not in the index */
    guint64 cursor;
    guint64
        since_usec; /* the cursor is still to be found: before the first event from then on; 0 = it is known */
    guint64 until_seq;  /* it ends there; 0 = it goes on */
    GSequenceIter *end; /* NULL = it has none, or is not live */
    guint64 known_seq;  /* committed when the read under way began */
    gboolean is_live;
    gboolean is_reading;
    gboolean is_blocked;
    gboolean is_cancelled;
} Watch;

BerthWatchers *berth_watchers_new(BerthDaemon *daemon)
{
    BerthWatchers *watchers = g_new0(BerthWatchers, 1);
    watchers->daemon = daemon;
    watchers->index = berth_watch_index_new();
    watchers->ends = g_sequence_new(NULL);
    watchers->named = g_hash_table_new(NULL, NULL);
    return watchers;
}

void berth_watchers_free(BerthWatchers *watchers)
{
    g_hash_table_unref(watchers->named);
    g_sequence_free(watchers->ends);
    berth_watch_index_free(watchers->index);
    g_free(watchers);
}

/* --- how many jobs a user's watches name -------------------------------------------------------- */

static gpointer user_of(BerthRpcCall *call)
{
    return GUINT_TO_POINTER(berth_rpc_call_identity(call)->uid);
}

static guint count_named(const BerthWatchers *watchers, gpointer user)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(watchers->named, user));
}

static void set_named(const BerthWatchers *watchers, gpointer user, guint n)
{
    if (n > 0)
        g_hash_table_insert(watchers->named, user, GUINT_TO_POINTER(n));
    else
        g_hash_table_remove(watchers->named, user);
}

/* --- its states --------------------------------------------------------------------------------- */

static gint compare_ends(gconstpointer a, gconstpointer b, gpointer user_data)
{
    guint64 first = ((const Watch *)a)->until_seq, second = ((const Watch *)b)->until_seq;
    return (first > second) - (first < second);
}

static void set_placed(Watch *watch, gboolean is_placed)
{
    BerthWatchIndex *index = watch->watchers->index;
    if (is_placed && watch->place == NULL)
        watch->place = berth_watch_index_add(index, watch->jobs, watch);
    else if (!is_placed && watch->place != NULL)
        berth_watch_index_remove(index, g_steal_pointer(&watch->place));
}

static void set_live(Watch *watch, gboolean is_live)
{
    watch->is_live = is_live;
    if (watch->jobs->len == 0)
        set_placed(watch, is_live);
    if (is_live && watch->until_seq != 0 && watch->end == NULL)
        watch->end = g_sequence_insert_sorted(watch->watchers->ends, watch, compare_ends, NULL);
    else if (!is_live)
        g_clear_pointer(&watch->end, g_sequence_remove);
}

/* Ends the watch's call, with ERROR if it is not NULL, and frees it. */
static void finish(Watch *watch, const GError *error)
{
    BerthWatchers *watchers = watch->watchers;
    gpointer user = user_of(watch->call);
    set_live(watch, FALSE);
    set_placed(watch, FALSE);
    set_named(watchers, user, count_named(watchers, user) - watch->jobs->len);
    g_array_unref(watch->jobs);
    if (error)
        berth_rpc_call_fail(watch->call, error);
    else
        berth_rpc_call_end(watch->call);
    g_free(watch);
}

/* What a job's words say (paths, commands) is its owner's, and what runs on nodes is for operators. */
static gboolean is_private(const Watch *watch, const Berth__Event *event)
{
    const BerthOperators *operators = &watch->watchers->daemon->operators;
    const BerthRpcIdentity *who = berth_rpc_call_identity(watch->call);
    gboolean is_exec = event->kind == BERTH__EVENT__KIND__EXEC_BEGUN ||
                       event->kind == BERTH__EVENT__KIND__EXEC_ENDED ||
                       event->wanted == BERTH__EVENT__KIND__EXEC_BEGUN;
    if (!*event->text && !*event->why && !*event->refusal)
        return FALSE;
    if (event->job == 0)
        return is_exec && !berth_permission_is_operator(operators, who);
    return !berth_permission_check_job(operators, who, event->job, event->owner_uid, NULL);
}

/* An event that goes to watches, which pack it once for all of them, if any sees it. */
typedef struct {
    const Berth__Event *event;
    GBytes *whole;
    GBytes *public; /* without what is private */
} Told;

static GBytes *packed_for(Told *told, gboolean is_public)
{
    GBytes **packed = is_public ? &told->public : &told->whole;
    Berth__Event shown = *told->event;
    if (is_public)
        shown.text = shown.why = shown.refusal = (char *)protobuf_c_empty_string;
    if (*packed == NULL)
        *packed = berth_message_pack(&shown.base);
    return *packed;
}

static void told_clear(Told *told)
{
    g_clear_pointer(&told->whole, g_bytes_unref);
    g_clear_pointer(&told->public, g_bytes_unref);
}

/* It is one that the watch is to see. Nothing is called back meanwhile: a call is cancelled by the loop alone. */
static void send_event(Watch *watch, Told *told)
{
    const Berth__Event *event = told->event;
    if (event->seq <= watch->cursor)
        return; /* a page of the store had it before its commit was told here */
    watch->cursor = event->seq;
    GBytes *packed = packed_for(told, is_private(watch, event));
    if (!berth_rpc_call_send_packed(watch->call, packed)) {
        watch->is_blocked = TRUE;
        set_live(watch, FALSE);
    }
}

/* --- what was committed before ------------------------------------------------------------------ */

static void go_on(Watch *watch);

typedef struct {
    guint64 after_seq;
    GArray *jobs; /* as the watch's */
    guint64 since_usec;
    BerthStore *store;
} Page;

static void page_free(gpointer data)
{
    Page *page = data;
    g_array_unref(page->jobs);
    g_free(page);
}

typedef struct {
    GPtrArray *events; /* Berth__Event */
    guint64 last_seq;  /* they are all that there are up to this one; 0 = nothing was read */
    gboolean is_last;  /* there were no further ones */
} Found;

static void found_free(gpointer data)
{
    Found *found = data;
    g_ptr_array_unref(found->events);
    g_free(found);
}

static gint compare_jobs(gconstpointer a, gconstpointer b)
{
    guint64 first = *(const guint64 *)a, second = *(const guint64 *)b;
    return (first > second) - (first < second);
}

static void keep_those_of(GPtrArray *events, GArray *jobs)
{
    guint n = 0;
    for (guint i = 0; i < events->len; i++) {
        Berth__Event *event = g_ptr_array_index(events, i);
        if (!g_array_binary_search(jobs, &event->job, compare_jobs, NULL))
            continue;
        events->pdata[i] = events->pdata[n];
        events->pdata[n++] = event;
    }
    g_ptr_array_set_size(events, (gint)n);
}

/* Of several jobs all events are read, as a watch mostly begins with the newest ones, and each time with one page: what
 * it finds may be little, and others want to read, too. */
static gpointer read_page(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const Page *page = input;
    guint64 only = page->jobs->len == 1 ? g_array_index(page->jobs, guint64, 0) : 0;
    GPtrArray *events =
        berth_store_list_events(page->store, page->after_seq, only, PAGE_EVENTS, error);
    if (!events)
        return NULL;
    Found *found = g_new0(Found, 1);
    found->events = events;
    found->is_last = events->len < PAGE_EVENTS;
    if (events->len > 0)
        found->last_seq = ((const Berth__Event *)g_ptr_array_index(events, events->len - 1))->seq;
    if (page->jobs->len > 1)
        keep_those_of(events, page->jobs);
    return found;
}

static void send_found(Watch *watch, const Found *found)
{
    for (guint i = 0; i < found->events->len && !watch->is_blocked && !watch->is_cancelled; i++) {
        Told told = {.event = g_ptr_array_index(found->events, i)};
        send_event(watch, &told);
        told_clear(&told);
    }
    if (!watch->is_blocked)
        watch->cursor = MAX(watch->cursor, found->last_seq);
    if (!watch->is_blocked && found->is_last)
        watch->cursor = MAX(watch->cursor, watch->known_seq);
}

static void on_page(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Watch *watch = user_data;
    g_autoptr(GError) error = NULL;
    Found *found = berth_work_finish(result, &error);
    if (!found) {
        finish(watch, error);
        return;
    }
    send_found(watch, found);
    found_free(found);
    watch->is_reading = FALSE;
    go_on(watch);
}

/* --- from a time on ------------------------------------------------------------------------------ */

static gpointer find_cursor(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const Page *page = input;
    g_autofree guint64 *cursor = g_new0(guint64, 1);
    return berth_store_find_event(page->store, page->since_usec, cursor, error)
               ? g_steal_pointer(&cursor)
               : NULL;
}

static void on_cursor(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Watch *watch = user_data;
    g_autoptr(GError) error = NULL;
    g_autofree guint64 *cursor = berth_work_finish(result, &error);
    if (!cursor) {
        finish(watch, error);
        return;
    }
    watch->cursor = *cursor;
    watch->since_usec = 0;
    watch->is_reading = FALSE;
    go_on(watch);
}

/* --- what is next -------------------------------------------------------------------------------- */

static gboolean is_over(const Watch *watch)
{
    gboolean has_all = watch->until_seq != 0 && watch->since_usec == 0 && !watch->is_blocked &&
                       watch->cursor >= watch->until_seq;
    return watch->is_cancelled || has_all;
}

static void read_more(Watch *watch)
{
    BerthDaemon *daemon = watch->watchers->daemon;
    gboolean is_sought = watch->since_usec != 0;
    Page *page = g_new0(Page, 1);
    *page = (Page){watch->cursor, g_array_ref(watch->jobs), watch->since_usec, daemon->store};
    watch->is_reading = TRUE;
    berth_workers_run_for(
        daemon->workers, BERTH_LANE_READ, berth_rpc_call_identity(watch->call)->uid, "read events",
        is_sought ? find_cursor : read_page, page, page_free, is_sought ? g_free : found_free, 0,
        is_sought ? on_cursor : on_page, watch);
}

static void go_on(Watch *watch)
{
    if (is_over(watch) && !watch->is_reading) {
        finish(watch, NULL);
        return;
    }
    if (watch->is_reading || watch->is_blocked || watch->is_live)
        return;
    BerthDaemon *daemon = watch->watchers->daemon;
    watch->known_seq = berth_engine_committed_seq(daemon->engine);
    if (watch->since_usec == 0 && watch->cursor >= watch->known_seq)
        set_live(watch, TRUE);
    else
        read_more(watch);
}

static void on_ready(BerthRpcCall *call, gpointer user_data)
{
    Watch *watch = user_data;
    watch->is_blocked = FALSE;
    go_on(watch);
}

static void on_cancelled(BerthRpcCall *call, gpointer user_data)
{
    Watch *watch = user_data;
    watch->is_cancelled = TRUE;
    go_on(watch);
}

/* --- as it is committed -------------------------------------------------------------------------- */

static void tell(gpointer data, gpointer user_data)
{
    Watch *watch = data;
    if (watch->is_live)
        send_event(watch, user_data);
}

/* Also those that see none of the last events before. */
static void end_up_to(BerthWatchers *watchers, guint64 seq)
{
    while (!g_sequence_is_empty(watchers->ends)) {
        Watch *watch = g_sequence_get(g_sequence_get_begin_iter(watchers->ends));
        if (watch->until_seq > seq)
            return;
        watch->cursor = MAX(watch->cursor, seq);
        go_on(watch);
    }
}

void berth_watchers_publish(BerthWatchers *watchers, const Berth__Event *event)
{
    Told told = {.event = event};
    berth_watch_index_each(watchers->index, event->job, tell, &told);
    told_clear(&told);
    end_up_to(watchers, event->seq);
}

/* --- what is asked for ---------------------------------------------------------------------------- */

/* The jobs that REQUEST names, rising, each once. (transfer full) */
static GArray *jobs_of(const Berth__WatchRequest *request)
{
    GArray *jobs = g_array_new(FALSE, FALSE, sizeof(guint64));
    guint n = 0;
    if (request->job != 0)
        g_array_append_val(jobs, request->job);
    g_array_append_vals(jobs, request->jobs, (guint)request->n_jobs);
    g_array_sort(jobs, compare_jobs);
    for (guint i = 0; i < jobs->len; i++) {
        guint64 job = g_array_index(jobs, guint64, i);
        if (n == 0 || g_array_index(jobs, guint64, n - 1) != job)
            g_array_index(jobs, guint64, n++) = job;
    }
    return g_array_set_size(jobs, n);
}

static gboolean check_jobs(const Berth__WatchRequest *request, GError **error)
{
    if (request->n_jobs > BERTH_WATCH_JOBS_MAX) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "the request names %zu jobs; at most %u are watched at once: watch all, which "
                    "is to name none, or some of them",
                    request->n_jobs, BERTH_WATCH_JOBS_MAX);
        return FALSE;
    }
    gboolean has_zero = FALSE;
    for (size_t i = 0; i < request->n_jobs; i++)
        has_zero |= request->jobs[i] == 0;
    if (has_zero || (request->n_jobs > 0 && request->job != 0)) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                            has_zero ? "the request names job 0, and there is none: name others"
                                     : "the request names a job and a list of jobs: name all of "
                                       "them in the list");
        return FALSE;
    }
    return TRUE;
}

static gboolean check_named(const BerthWatchers *watchers, gpointer user, guint n, GError **error)
{
    guint n_named = count_named(watchers, user);
    if (n <= USER_JOBS_MAX - n_named)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                "cannot watch %u jobs: what you watch names %u by now, and may name %u; end some "
                "of it, or watch all jobs at once",
                n, n_named, USER_JOBS_MAX);
    return FALSE;
}

static gboolean check_cursor(const BerthDaemon *daemon, const Berth__WatchRequest *request,
                             GError **error)
{
    guint64 last_seq = berth_engine_last_seq(daemon->engine);
    if (request->from_now || request->since_usec != 0 || request->after_seq <= last_seq)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                "cannot resume after event %" G_GUINT64_FORMAT ": the newest one is "
                "%" G_GUINT64_FORMAT ", so the daemon's state was replaced; watch from now on",
                request->after_seq, last_seq);
    return FALSE;
}

/* JOBS (transfer full) */
static Watch *watch_new(BerthDaemon *daemon, const Berth__WatchRequest *request, GArray *jobs,
                        BerthRpcCall *call)
{
    BerthWatchers *watchers = daemon->watchers;
    gpointer user = user_of(call);
    gboolean has_cursor = !request->from_now && request->since_usec == 0;
    Watch *watch = g_new0(Watch, 1);
    watch->watchers = watchers;
    watch->call = call;
    watch->jobs = jobs;
    watch->cursor = request->from_now ? berth_engine_committed_seq(daemon->engine)
                    : has_cursor      ? request->after_seq
                                      : 0;
    watch->since_usec = request->from_now ? 0 : request->since_usec;
    watch->until_seq = request->until_seq;
    set_placed(watch, jobs->len > 0);
    set_named(watchers, user, count_named(watchers, user) + jobs->len);
    return watch;
}

void berth_watch_stream(BerthDaemon *daemon, const Berth__WatchRequest *request, BerthRpcCall *call)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) jobs = NULL;
    if (check_cursor(daemon, request, &error) && check_jobs(request, &error))
        jobs = jobs_of(request);
    if (!jobs || !check_named(daemon->watchers, user_of(call), jobs->len, &error)) {
        berth_rpc_call_fail(call, error);
        return;
    }
    Watch *watch = watch_new(daemon, request, g_steal_pointer(&jobs), call);
    berth_rpc_call_set_ready_func(call, on_ready, watch);
    berth_rpc_call_set_cancelled_func(call, on_cancelled, watch);
    go_on(watch);
}
