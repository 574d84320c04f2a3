/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the scheduler is told, and that it has heard it. Invariants: a change is told until it is
 * answered, by GuestChanged, NodeChanged or the next Join; one GuestChanged per guest and one
 * NodeChanged are under way at a time, so that changes arrive in order. */
#include <config.h>

#include "nodeagent/session.h"

#include "common/error.h"
#include "common/id.h"
#include "common/log.h"
#include "common/message.h"
#include "nodeagent/reports.h"

#include <time.h>

#define JOIN_MSEC    60000u
#define CHANGED_MSEC 60000u
#define REPORT_MSEC  30000u
#define RETRY_MSEC   1000u
/* Output is told of this much later at most, when there was none for a while. */
#define OUTPUT_MSEC                  200u
#define REPORT_INTERVAL_DEFAULT_MSEC 5000u

/* An agent that may be given up tries so often before, and at least as often as this. */
#define PAUSES_PER_TIMEOUT 3u
#define PAUSE_MAX_MSEC     30000u

struct BerthSession {
    BerthSessionConfig config;
    BerthRpcDialer *dialer;
    BerthRpcPeer *peer; /* joined or joining; NULL: none (owned by the dialler) */
    gboolean is_joined;
    gboolean was_refused; /* the last Join: logged already */
    GHashTable *sending;  /* set of BerthGuestId with a GuestChanged under way */
    GHashTable *output;   /* set of BerthGuestId with output to tell of */
    guint output_source;
    guint retry_source;
    BerthReports *reports;
    gboolean takes_changes; /* berthd knows GuestReport */
    gint64 report_usec;     /* between two reports of what is neither calm nor near a limit */
    Berth__NodeUsage *node; /* for the next report; NULL: nothing */
    gboolean is_reporting;
    gboolean reports_again;    /* when that is answered */
    gboolean is_stale;         /* the node has changed since the scheduler was told of it */
    gboolean tells_node;       /* a NodeChanged is under way */
    GCancellable *cancellable; /* of the present connection's calls */
};

/* A call under way, and which changes it tells. */
typedef struct {
    BerthSession *session;
    GCancellable *cancellable; /* of its connection */
    GArray *told;              /* Told */
} Telling;

typedef struct {
    BerthGuestId id;
    guint64 serial;
} Told;

static void tell_changes(BerthSession *session);
static void tell_node(BerthSession *session);

static Telling *telling_new(BerthSession *session)
{
    Telling *telling = g_new0(Telling, 1);
    telling->session = session;
    telling->cancellable = g_object_ref(session->cancellable);
    telling->told = g_array_new(FALSE, FALSE, sizeof(Told));
    return telling;
}

static void telling_free(Telling *telling)
{
    g_array_unref(telling->told);
    g_object_unref(telling->cancellable);
    g_free(telling);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Telling, telling_free)

static void telling_add(Telling *telling, const BerthGuest *guest)
{
    Told told = {*berth_guest_id(guest), berth_guest_serial(guest)};
    g_array_append_val(telling->told, told);
}

/* The scheduler has heard all of it. */
static void telling_done(const Telling *telling)
{
    for (guint i = 0; i < telling->told->len; i++) {
        const Told *told = &g_array_index(telling->told, Told, i);
        BerthGuest *guest = berth_guest_table_find(telling->session->config.table, &told->id);
        if (guest != NULL)
            berth_guest_set_reported(guest, told->serial);
    }
}

/* ... and keeps it. */
static void change_kept(const Telling *telling)
{
    const Told *told = &g_array_index(telling->told, Told, 0);
    BerthGuest *guest = berth_guest_table_find(telling->session->config.table, &told->id);
    if (guest != NULL)
        berth_guest_set_kept(guest, told->serial);
}

/* It was made over a connection that is gone; the session may be gone too. */
static gboolean is_over(const Telling *telling)
{
    return g_cancellable_is_cancelled(telling->cancellable);
}

/* --- GuestChanged --------------------------------------------------------------------------- */

static void on_retry_due(gpointer data)
{
    BerthSession *session = data;
    session->retry_source = 0;
    tell_changes(session);
    tell_node(session);
}

static void retry(BerthSession *session, const GError *error)
{
    if (!session->is_joined || session->retry_source != 0)
        return;
    g_debug("a change was not taken, trying again: %s", error->message);
    session->retry_source = g_timeout_add_once(RETRY_MSEC, on_retry_due, session);
}

static void on_change_told(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(Telling) telling = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, &error);
    if (is_over(telling))
        return;
    BerthSession *session = telling->session;
    g_hash_table_remove(session->sending, &g_array_index(telling->told, Told, 0).id);
    if (reply != NULL) {
        telling_done(telling);
        if (!((const Berth__GuestChangedReply *)(const void *)reply)->not_kept)
            change_kept(telling);
        tell_changes(session);
    } else {
        retry(session, error);
    }
}

static void tell_change(BerthSession *session, BerthGuest *guest)
{
    const BerthGuestId *id = berth_guest_id(guest);
    if (berth_guest_is_reported(guest) || !berth_guest_is_to_tell(guest) ||
        g_hash_table_contains(session->sending, id))
        return;
    g_hash_table_add(session->sending, g_memdup2(id, sizeof *id));
    Telling *telling = telling_new(session);
    telling_add(telling, guest);
    Berth__GuestChangedRequest request = BERTH__GUEST_CHANGED_REQUEST__INIT;
    request.status = berth_guest_status(guest);
    berth_rpc_peer_call_async(session->peer, &berth__sessions__descriptor, "GuestChanged",
                              &request.base, CHANGED_MSEC, session->cancellable, on_change_told,
                              telling);
    berth_message_free(&request.status->base);
}

static void tell_changes(BerthSession *session)
{
    if (!session->is_joined)
        return;
    g_autoptr(GPtrArray) guests = berth_guest_table_list(session->config.table);
    for (guint i = 0; i < guests->len; i++)
        tell_change(session, g_ptr_array_index(guests, i));
}

void berth_session_guest_changed(BerthSession *session, BerthGuest *guest)
{
    if (session->is_joined)
        tell_change(session, guest);
}

/* --- NodeChanged ---------------------------------------------------------------------------- */

/* The scheduler has what was told last; it may be old news. */
static void node_is_told(BerthSession *session)
{
    if (session->is_stale)
        tell_node(session);
    else
        session->config.known(session->config.user_data);
}

static void on_node_told(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(Telling) telling = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, &error);
    if (is_over(telling))
        return;
    BerthSession *session = telling->session;
    session->tells_node = FALSE;
    if (reply != NULL) {
        node_is_told(session);
    } else {
        session->is_stale = TRUE;
        retry(session, error);
    }
}

static void tell_node(BerthSession *session)
{
    if (!session->is_joined || !session->is_stale || session->tells_node)
        return;
    session->is_stale = FALSE;
    session->tells_node = TRUE;
    Berth__NodeChangedRequest request = BERTH__NODE_CHANGED_REQUEST__INIT;
    request.info = session->config.node_info(session->config.user_data);
    berth_rpc_peer_call_async(session->peer, &berth__sessions__descriptor, "NodeChanged",
                              &request.base, CHANGED_MSEC, session->cancellable, on_node_told,
                              telling_new(session));
    berth_message_free(&request.info->base);
}

void berth_session_node_changed(BerthSession *session)
{
    session->is_stale = TRUE;
    tell_node(session);
}

/* --- Report --------------------------------------------------------------------------------- */

static void report(BerthSession *session);

static void on_reported(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(Telling) telling = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, &error);
    if (is_over(telling))
        return;
    BerthSession *session = telling->session;
    session->is_reporting = FALSE;
    if (reply != NULL) {
        berth_reports_answered(session->reports, (const Berth__ReportReply *)(const void *)reply);
    } else {
        g_debug("a report was not taken: %s", error->message);
        berth_reports_lost(session->reports);
    }
    if (session->reports_again && reply != NULL)
        report(session); /* what has come up meanwhile */
}

static void send_report(BerthSession *session, Berth__ReportRequest *request)
{
    request->node = session->node;
    session->is_reporting = TRUE;
    berth_rpc_peer_call_async(session->peer, &berth__sessions__descriptor, "Report", &request->base,
                              REPORT_MSEC, session->cancellable, on_reported, telling_new(session));
    berth_message_free(session->node == NULL ? NULL : &session->node->base);
    session->node = NULL;
}

/* To a berthd that knows no other: guests as they are, all of them, or those that have put something out. */
static void report_whole(BerthSession *session, const GPtrArray *guests)
{
    g_autoptr(GPtrArray) statuses =
        g_ptr_array_new_with_free_func((GDestroyNotify)berth_message_free);
    for (guint i = 0; i < guests->len; i++) {
        const BerthGuest *guest = g_ptr_array_index(guests, i);
        gboolean is_asked =
            session->node != NULL || g_hash_table_contains(session->output, berth_guest_id(guest));
        if (berth_guest_is_ours(guest) && is_asked)
            g_ptr_array_add(statuses, berth_guest_status(guest));
    }
    Berth__ReportRequest request = BERTH__REPORT_REQUEST__INIT;
    request.guests = (Berth__GuestStatus **)(void *)statuses->pdata;
    request.n_guests = statuses->len;
    if (request.n_guests > 0 || session->node != NULL)
        send_report(session, &request);
}

static void report_changes(BerthSession *session, const GPtrArray *guests)
{
    gint64 now_usec = g_get_monotonic_time();
    Berth__ReportRequest request = BERTH__REPORT_REQUEST__INIT;
    berth_reports_prune(session->reports, session->config.table);
    for (guint i = 0; i < guests->len; i++) {
        const BerthGuest *guest = g_ptr_array_index(guests, i);
        Berth__MigrationProgress migration;
        BerthReportSource source;
        if (!berth_guest_is_ours(guest))
            continue;
        berth_report_source_of(guest, &migration, &source);
        berth_reports_add(session->reports, &source, now_usec, session->report_usec);
    }
    GPtrArray *changes = berth_reports_next(session->reports);
    request.changes = (Berth__GuestReport **)(void *)changes->pdata;
    request.n_changes = changes->len;
    if (request.n_changes > 0 || session->node != NULL)
        send_report(session, &request);
}

/* All that there is to tell, of all guests and the node, in one. One at a time: a scheduler that is slow gets
 * fewer. */
static void report(BerthSession *session)
{
    if (!session->is_joined)
        return;
    session->reports_again = session->is_reporting;
    if (session->is_reporting)
        return;
    g_autoptr(GPtrArray) guests = berth_guest_table_list(session->config.table);
    if (session->takes_changes)
        report_changes(session, guests);
    else
        report_whole(session, guests);
    g_hash_table_remove_all(session->output);
    g_clear_handle_id(&session->output_source, g_source_remove);
}

void berth_session_report(BerthSession *session, const Berth__NodeUsage *node)
{
    if (node != NULL) {
        berth_message_free(session->node == NULL ? NULL : &session->node->base);
        session->node = (Berth__NodeUsage *)(void *)berth_message_copy(&node->base);
    }
    if (node != NULL || session->takes_changes)
        report(session);
}

static void on_output_due(gpointer data)
{
    BerthSession *session = data;
    session->output_source = 0;
    report(session);
}

void berth_session_guest_output(BerthSession *session, const BerthGuest *guest)
{
    const BerthGuestId *id = berth_guest_id(guest);
    if (!session->is_joined)
        return;
    if (!g_hash_table_contains(session->output, id))
        g_hash_table_add(session->output, g_memdup2(id, sizeof *id));
    if (session->output_source == 0)
        session->output_source = g_timeout_add_once(OUTPUT_MSEC, on_output_due, session);
}

/* --- Join ----------------------------------------------------------------------------------- */

static void refuse(BerthSession *session, const GError *error)
{
    gboolean is_lost = g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE);
    if (!session->was_refused && !is_lost)
        g_warning("the scheduler does not let this node join: %s", error->message);
    session->was_refused = session->was_refused || !is_lost;
    if (session->peer != NULL)
        berth_rpc_peer_close(session->peer, FALSE);
}

static void disown_strays(BerthSession *session, const Berth__JoinReply *reply)
{
    for (gsize i = 0; i < reply->n_strays; i++) {
        const Berth__GuestId *named = reply->strays[i];
        const BerthGuestId id = {named->job, named->task, named->guest, named->epoch};
        BerthGuest *guest = berth_guest_table_find(session->config.table, &id);
        if (guest != NULL)
            berth_guest_disown(guest);
    }
}

static void tell_standing(BerthSession *session)
{
    g_autoptr(GPtrArray) guests = berth_guest_table_list(session->config.table);
    for (guint i = 0; i < guests->len; i++)
        berth_guest_tell_if_it_stands(g_ptr_array_index(guests, i));
}

/* Between two attempts to come back: several are made before it is given up, if berthd is there. */
static guint pause_max_msec(const Berth__JoinReply *reply)
{
    return MIN(reply->node_timeout_msec / PAUSES_PER_TIMEOUT, PAUSE_MAX_MSEC);
}

static void on_join_done(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(Telling) telling = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) message = berth_rpc_peer_call_finish(result, &error);
    if (is_over(telling))
        return;
    BerthSession *session = telling->session;
    if (message == NULL) {
        refuse(session, error);
        return;
    }
    const Berth__JoinReply *reply = (const Berth__JoinReply *)(const void *)message;
    guint interval = reply->report_interval_msec == 0 ? REPORT_INTERVAL_DEFAULT_MSEC
                                                      : reply->report_interval_msec;
    BerthPaceIntervals intervals = {{interval, interval, interval}};
    g_message("joined cluster %s with %u guests", reply->cluster, telling->told->len);
    session->was_refused = FALSE;
    session->is_joined = TRUE;
    berth_rpc_dialer_succeeded(session->dialer, pause_max_msec(reply));
    telling_done(telling);
    disown_strays(session, reply); /* before storage can be used again */
    tell_standing(session);
    session->takes_changes = reply->near_interval_msec != 0;
    session->report_usec = (gint64)interval * 1000;
    if (session->takes_changes) {
        intervals.msec[BERTH_PACE_NEAR] = MIN(reply->near_interval_msec, interval);
        intervals.msec[BERTH_PACE_CALM] = MAX(reply->calm_interval_msec, interval);
    }
    session->config.joined(&intervals, session->config.user_data);
    tell_changes(session);
    node_is_told(session);
}

static guint64 uptime_msec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (guint64)now.tv_sec * 1000 + (guint64)now.tv_nsec / 1000000;
}

static void join(BerthSession *session)
{
    g_autoptr(GPtrArray) guests = berth_guest_table_list(session->config.table);
    g_autoptr(GPtrArray) statuses =
        g_ptr_array_new_with_free_func((GDestroyNotify)berth_message_free);
    Telling *telling = telling_new(session);
    for (guint i = 0; i < guests->len; i++) {
        BerthGuest *guest = g_ptr_array_index(guests, i);
        if (!berth_guest_is_to_tell(guest) && berth_guest_phase(guest) != BERTH_PHASE_ARRIVING)
            continue;
        telling_add(telling, guest);
        g_ptr_array_add(statuses, berth_guest_status(guest));
    }
    Berth__JoinRequest request = BERTH__JOIN_REQUEST__INIT;
    request.info = session->config.node_info(session->config.user_data);
    session->is_stale = FALSE; /* what changes from now on is told when it has joined */
    request.guests = (Berth__GuestStatus **)(void *)statuses->pdata;
    request.n_guests = statuses->len;
    request.uptime_msec = uptime_msec();
    berth_rpc_peer_call_async(session->peer, &berth__sessions__descriptor, "Join", &request.base,
                              JOIN_MSEC, session->cancellable, on_join_done, telling);
    berth_message_free(&request.info->base);
}

void berth_session_join_again(BerthSession *session)
{
    if (session->peer == NULL)
        return; /* it will */
    session->is_joined = FALSE;
    berth_rpc_dialer_dial_again(session->dialer);
}

/* --- the connection ------------------------------------------------------------------------- */

/* What was under way over the last connection is void. */
static void reset(BerthSession *session)
{
    session->peer = NULL;
    session->is_joined = session->is_reporting = session->tells_node = FALSE;
    g_cancellable_cancel(session->cancellable);
    g_object_unref(session->cancellable);
    session->cancellable = g_cancellable_new();
    g_hash_table_remove_all(session->sending);
    berth_reports_reset(session->reports);
    g_clear_handle_id(&session->retry_source, g_source_remove);
}

static void on_connected(BerthRpcPeer *peer, gpointer data)
{
    BerthSession *session = data;
    reset(session);
    session->peer = peer;
    join(session);
}

static void on_dial_failed(const GError *reason, guint retry_msec, gpointer data)
{
    static BerthLogLimit limit;
    BerthSession *session = data;
    reset(session);
    berth_log_warning_limited(&limit,
                              "no session with the scheduler at %s:%u, trying again in %u ms "
                              "(guests run on): %s",
                              session->config.config->scheduler_address,
                              session->config.config->scheduler_port, retry_msec, reason->message);
}

BerthSession *berth_session_new(const BerthSessionConfig *config)
{
    BerthRpcLimits limits = BERTH_RPC_LIMITS_DEFAULT;
    limits.max_frame_bytes = 16u << 20;
    limits.keepalive_interval_msec = 5000;
    limits.keepalive_timeout_msec = 20000;
    BerthSession *session = g_new0(BerthSession, 1);
    session->config = *config;
    session->sending =
        g_hash_table_new_full(berth_guest_id_hash, berth_guest_id_equal_func, g_free, NULL);
    session->output =
        g_hash_table_new_full(berth_guest_id_hash, berth_guest_id_equal_func, g_free, NULL);
    session->cancellable = g_cancellable_new();
    session->reports = berth_reports_new();
    session->dialer = berth_rpc_dialer_new(
        config->config->scheduler_address, (guint16)config->config->scheduler_port, config->tls,
        config->services, &limits, on_connected, on_dial_failed, session);
    return session;
}

void berth_session_free(BerthSession *session)
{
    if (session == NULL)
        return;
    g_cancellable_cancel(session->cancellable);
    g_clear_handle_id(&session->output_source, g_source_remove);
    g_clear_handle_id(&session->retry_source, g_source_remove);
    berth_rpc_dialer_free(session->dialer);
    g_object_unref(session->cancellable);
    g_hash_table_unref(session->sending);
    g_hash_table_unref(session->output);
    berth_reports_free(session->reports);
    berth_message_free(session->node == NULL ? NULL : &session->node->base);
    g_free(session);
}
