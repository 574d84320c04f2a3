/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the streams of events. Does not own what is in them: event_log.c.
 *
 * Invariant: a watcher has sent every event up to its cursor that it is to see, once, in order. It
 * is live only if its cursor is at the newest committed event, or beyond it: a page of the store may
 * have what was committed but not told here yet. */
#include "config.h"

#include "scheduler/daemon/watch.h"

#include "common/error.h"

#define PAGE_EVENTS 512u

struct BerthWatchers {
    BerthDaemon *daemon;
    GPtrArray *watches; /* Watch */
    gboolean is_publishing;
};

typedef struct {
    BerthWatchers *watchers;
    BerthRpcCall *call;
    guint64 job; /* 0 = all */
    guint64 cursor;
    guint64
        since_usec; /* the cursor is still to be found: before the first event from then on; 0 = it is known */
    guint64 until_seq; /* it ends there; 0 = it goes on */
    guint64 known_seq; /* committed when the read under way began */
    gboolean is_live;
    gboolean is_reading;
    gboolean is_blocked;
    gboolean is_cancelled;
} Watch;

typedef struct {
    guint64 after_seq;
    guint64 job;
    guint64 since_usec;
    BerthStore *store;
} Page;

BerthWatchers *berth_watchers_new(BerthDaemon *daemon)
{
    BerthWatchers *watchers = g_new0(BerthWatchers, 1);
    watchers->daemon = daemon;
    watchers->watches = g_ptr_array_new();
    return watchers;
}

void berth_watchers_free(BerthWatchers *watchers)
{
    g_ptr_array_unref(watchers->watches);
    g_free(watchers);
}

/* Ends the watch's call, with ERROR if it is not NULL, and frees it. */
static void finish(Watch *watch, const GError *error)
{
    g_ptr_array_remove_fast(watch->watchers->watches, watch);
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

static void send_event(Watch *watch, const Berth__Event *event)
{
    if (event->seq <= watch->cursor)
        return; /* a page of the store had it before its commit was told here */
    watch->cursor = event->seq;
    if (watch->job != 0 && watch->job != event->job)
        return;
    Berth__Event shown = *event;
    if (is_private(watch, event))
        shown.text = shown.why = shown.refusal = (char *)protobuf_c_empty_string;
    if (!berth_rpc_call_send_item(watch->call, &shown.base)) {
        watch->is_blocked = TRUE;
        watch->is_live = FALSE;
    }
}

/* --- what was committed before ------------------------------------------------------------------ */

static void go_on(Watch *watch);

static gpointer read_page(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const Page *page = input;
    return berth_store_list_events(page->store, page->after_seq, page->job, PAGE_EVENTS, error);
}

static void on_page(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Watch *watch = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) events = berth_work_finish(result, &error);
    if (!events) {
        finish(watch, error);
        return;
    }
    for (guint i = 0; i < events->len && !watch->is_blocked && !watch->is_cancelled; i++)
        send_event(watch, g_ptr_array_index(events, i));
    if (events->len < PAGE_EVENTS && !watch->is_blocked)
        watch->cursor = MAX(watch->cursor, watch->known_seq);
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
    *page = (Page){watch->cursor, watch->job, watch->since_usec, daemon->store};
    watch->is_reading = TRUE;
    berth_workers_run_for(daemon->workers, BERTH_LANE_READ,
                          berth_rpc_call_identity(watch->call)->uid, "read events",
                          is_sought ? find_cursor : read_page, page, g_free,
                          is_sought ? g_free : (GDestroyNotify)g_ptr_array_unref, 0,
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
    if (watch->since_usec == 0 && watch->cursor >= watch->known_seq) {
        watch->is_live = TRUE;
        return;
    }
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
    if (!watch->watchers->is_publishing)
        go_on(watch);
}

/* --- as it is committed -------------------------------------------------------------------------- */

void berth_watchers_publish(BerthWatchers *watchers, const Berth__Event *event)
{
    watchers->is_publishing = TRUE;
    for (guint i = 0; i < watchers->watches->len; i++) {
        Watch *watch = g_ptr_array_index(watchers->watches, i);
        if (watch->is_live && !watch->is_cancelled)
            send_event(watch, event);
    }
    watchers->is_publishing = FALSE;
    for (guint i = watchers->watches->len; i > 0; i--) {
        Watch *watch = g_ptr_array_index(watchers->watches, i - 1);
        if (is_over(watch))
            go_on(watch);
    }
}

static void fail_future(BerthRpcCall *call, guint64 after_seq, guint64 newest)
{
    g_autoptr(GError) error =
        g_error_new(BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "cannot resume after event %" G_GUINT64_FORMAT ": the newest one is "
                    "%" G_GUINT64_FORMAT ", so the daemon's state was replaced; watch from now on",
                    after_seq, newest);
    berth_rpc_call_fail(call, error);
}

void berth_watch_stream(BerthDaemon *daemon, const Berth__WatchRequest *request, BerthRpcCall *call)
{
    guint64 newest = berth_engine_committed_seq(daemon->engine);
    guint64 last_seq = berth_engine_last_seq(daemon->engine);
    gboolean has_cursor = !request->from_now && request->since_usec == 0;
    if (has_cursor && request->after_seq > last_seq) {
        fail_future(call, request->after_seq, last_seq);
        return;
    }
    Watch *watch = g_new0(Watch, 1);
    watch->watchers = daemon->watchers;
    watch->call = call;
    watch->job = request->job;
    watch->cursor = request->from_now ? newest : has_cursor ? request->after_seq : 0;
    watch->since_usec = request->from_now ? 0 : request->since_usec;
    watch->until_seq = request->until_seq;
    g_ptr_array_add(daemon->watchers->watches, watch);
    berth_rpc_call_set_ready_func(call, on_ready, watch);
    berth_rpc_call_set_cancelled_func(call, on_cancelled, watch);
    go_on(watch);
}
