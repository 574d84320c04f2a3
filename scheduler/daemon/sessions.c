/* SPDX-License-Identifier: Apache-2.0 */
/* Owns which connection speaks for which node, from its acceptance to its end. What nodes say of
 * their guests is guest_reports.c's.
 *
 * Invariants: a node has at most one session, which comes from the host that has its guests; a
 * connection speaks for the node that its certificate names, and for no other; the core hears
 * NODE_LEFT once for every NODE_JOINED. */
#include "config.h"

#include "scheduler/daemon/sessions.h"

#include "common/error.h"
#include "common/log.h"
#include "common/message.h"
#include "scheduler/daemon/guest_reports.h"
#include "scheduler/daemon/host_check.h"
#include "scheduler/daemon/services.h"
#include "scheduler/daemon/turn_records.h"

#include <string.h>

#define JOIN_WAIT_SEC       30u
#define UNJOINED_MAX        8u
#define NODE_NAME_MAX_BYTES 253u
#define GUESTS_MAX          100000u
#define INFO_MAX_BYTES      65536u
#define KEEP_HEARD_REPORTS  6u
#define KEEP_HEARD_SEC      30u

typedef BERTH_SERVICE(Berth__Sessions_Service) SessionsService;

struct BerthSessions {
    BerthDaemon *daemon;
    GHashTable *links;    /* set of Link, owned: all connections of agents */
    GHashTable *by_node;  /* handle -> Link */
    GHashTable *refused;  /* name in a certificate -> why it could not join last, which was said */
    GHashTable *unjoined; /* likewise -> GQueue of Link that have not joined, oldest first */
    BerthLogLimit unjoined_limit;
};

/* One connection of an agent. */
typedef struct {
    BerthSessions *sessions;
    BerthRpcPeer *peer; /* a reference */
    guint32 node;       /* 0 = has not joined */
    guint join_timer;
    GQueue *unjoined; /* NULL = it is in none */
    GList unjoined_link;
} Link;

static BerthDaemon *daemon_of(Berth__Sessions_Service *service)
{
    return ((SessionsService *)(void *)service)->daemon;
}

static const char *name_of(const Link *link)
{
    const char *name = berth_rpc_peer_identity(link->peer)->node_name;
    return name ? name : "";
}

static void leave_unjoined(Link *link)
{
    if (!link->unjoined)
        return;
    g_queue_unlink(link->unjoined, &link->unjoined_link);
    if (link->unjoined->length == 0)
        g_hash_table_remove(link->sessions->unjoined, name_of(link));
    link->unjoined = NULL;
}

static void link_free(gpointer data)
{
    Link *link = data;
    leave_unjoined(link);
    g_clear_handle_id(&link->join_timer, g_source_remove);
    berth_rpc_peer_set_closed_func(link->peer, NULL, NULL);
    berth_rpc_peer_set_data(link->peer, NULL, NULL);
    berth_rpc_peer_unref(link->peer);
    g_free(link);
}

BerthSessions *berth_sessions_new(BerthDaemon *daemon)
{
    BerthSessions *sessions = g_new0(BerthSessions, 1);
    sessions->daemon = daemon;
    sessions->links = g_hash_table_new_full(NULL, NULL, link_free, NULL);
    sessions->by_node = g_hash_table_new(NULL, NULL);
    sessions->refused = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    sessions->unjoined = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return sessions;
}

void berth_sessions_free(BerthSessions *sessions)
{
    g_hash_table_unref(sessions->by_node);
    g_hash_table_unref(sessions->links);
    g_hash_table_unref(sessions->unjoined);
    g_hash_table_unref(sessions->refused);
    g_free(sessions);
}

void berth_sessions_close(BerthSessions *sessions)
{
    GHashTableIter iter;
    gpointer key;
    g_hash_table_iter_init(&iter, sessions->links);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        Link *link = key;
        berth_rpc_peer_set_closed_func(link->peer, NULL, NULL);
        berth_rpc_peer_close(link->peer, TRUE);
    }
    g_hash_table_remove_all(sessions->by_node);
    g_hash_table_remove_all(sessions->links);
}

BerthRpcPeer *berth_sessions_peer(BerthSessions *sessions, guint32 node)
{
    const Link *link = g_hash_table_lookup(sessions->by_node, GUINT_TO_POINTER(node));
    return link ? link->peer : NULL;
}

/* --- what is kept of them ------------------------------------------------------------------------ */

/* When each was heard of last, in one transaction for all. */
static void keep_heard(BerthSessions *sessions, BerthTurn *turn)
{
    GHashTableIter iter;
    gpointer node;
    g_hash_table_iter_init(&iter, sessions->by_node);
    while (g_hash_table_iter_next(&iter, &node, NULL)) {
        guint32 handle = GPOINTER_TO_UINT(node);
        const BerthNodeEntry *entry = berth_node_table_find(sessions->daemon->nodes, handle);
        if (entry->heard_usec > entry->kept_heard_usec)
            berth_turn_put_node(turn, handle);
    }
}

/* So that it costs next to nothing, whatever the number of nodes and of their reports. */
static gboolean is_to_be_kept(BerthDaemon *daemon, guint32 node)
{
    const BerthNodeEntry *entry = berth_node_table_find(daemon->nodes, node);
    guint sec = MIN(KEEP_HEARD_REPORTS * daemon->config->report_interval_sec, KEEP_HEARD_SEC);
    return entry->heard_usec - entry->kept_heard_usec >= (gint64)sec * G_USEC_PER_SEC;
}

void berth_sessions_keep_heard(BerthSessions *sessions)
{
    if (berth_engine_is_stopped(sessions->daemon->engine))
        return;
    BerthTurn *turn = berth_engine_begin(sessions->daemon->engine);
    keep_heard(sessions, turn);
    berth_turn_commit(turn);
}

/* --- the end of a connection -------------------------------------------------------------------- */

/* The node has no session any more. */
static void leave(Link *link)
{
    BerthDaemon *daemon = link->sessions->daemon;
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_LEFT, .node = link->node};
    g_hash_table_remove(link->sessions->by_node, GUINT_TO_POINTER(link->node));
    link->node = 0;
    berth_engine_tell(daemon->engine, &event);
}

void berth_sessions_end(BerthSessions *sessions, guint32 node)
{
    Link *link = g_hash_table_lookup(sessions->by_node, GUINT_TO_POINTER(node));
    if (!link)
        return;
    leave(link);
    berth_rpc_peer_close(link->peer, TRUE);
}

static void on_closed(BerthRpcPeer *peer, const GError *reason, gpointer user_data)
{
    Link *link = user_data;
    const char *who = berth_rpc_peer_identity(peer)->description;
    if (link->node != 0) {
        g_message("node %s has no session any more: %s", who, reason->message);
        leave(link);
    } else {
        g_info("connection of %s ended: %s", who, reason->message);
    }
    g_hash_table_remove(link->sessions->links, link);
}

/* --- the beginning ------------------------------------------------------------------------------- */

static gboolean on_join_timeout(gpointer user_data)
{
    Link *link = user_data;
    link->join_timer = 0;
    g_warning("%s has connected but did not join within %u s: closing its connection",
              berth_rpc_peer_identity(link->peer)->description, JOIN_WAIT_SEC);
    berth_rpc_peer_close(link->peer, TRUE);
    return G_SOURCE_REMOVE;
}

static void enter_unjoined(Link *link)
{
    GHashTable *unjoined = link->sessions->unjoined;
    link->unjoined = g_hash_table_lookup(unjoined, name_of(link));
    if (!link->unjoined) {
        link->unjoined = g_new0(GQueue, 1);
        g_hash_table_insert(unjoined, g_strdup(name_of(link)), link->unjoined);
    }
    link->unjoined_link.data = link;
    g_queue_push_tail_link(link->unjoined, &link->unjoined_link);
}

/* Who has a certificate shall not take all connections with it. A host that means to join does so at once: the oldest goes. */
static void bound_unjoined(const Link *newest)
{
    if (newest->unjoined->length <= UNJOINED_MAX)
        return;
    Link *oldest = newest->unjoined->head->data;
    berth_log_warning_limited(
        &newest->sessions->unjoined_limit,
        "%s has connected once more and did not join on %u connections before: closing the oldest; "
        "if several hosts have its certificate, give each its own",
        berth_rpc_peer_identity(newest->peer)->description, UNJOINED_MAX);
    leave_unjoined(oldest);
    berth_rpc_peer_close(oldest->peer, TRUE);
}

void berth_sessions_accept(BerthSessions *sessions, BerthRpcPeer *peer)
{
    Link *link = g_new0(Link, 1);
    link->sessions = sessions;
    link->peer = peer;
    link->join_timer = g_timeout_add_seconds(JOIN_WAIT_SEC, on_join_timeout, link);
    g_hash_table_add(sessions->links, link);
    berth_rpc_peer_set_data(peer, link, NULL);
    berth_rpc_peer_set_closed_func(peer, on_closed, link);
    enter_unjoined(link);
    bound_unjoined(link);
}

static gboolean check_info(const BerthRpcIdentity *who, const Berth__NodeInfo *info, GError **error)
{
    if (!info || !*info->name || strlen(info->name) > NODE_NAME_MAX_BYTES ||
        berth__node_info__get_packed_size(info) > INFO_MAX_BYTES) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                            "the request names no node, or says far too much of it");
        return FALSE;
    }
    if (g_strcmp0(who->node_name, info->name) != 0) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_PERMISSION_DENIED,
                    "the certificate was issued for \"%s\", but the node calls itself \"%s\"; give "
                    "it a certificate with its own name, or set its name in berth-node.conf",
                    who->node_name ? who->node_name : "(nobody)", info->name);
        return FALSE;
    }
    return TRUE;
}

/* What an operator has given up stays away, whatever its host thinks of that. */
static gboolean check_admission(BerthDaemon *daemon, const Berth__NodeInfo *info, GError **error)
{
    const BerthNodeEntry *entry =
        berth_node_table_find(daemon->nodes, berth_core_find_node(daemon->core, info->name));
    if (!entry || !berth_node_entry_is_given_up(entry))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                "node %s was given up by %s: %s; berth node up %s lets it join again", entry->name,
                entry->admission->user, entry->admission->reason, entry->name);
    return FALSE;
}

static gboolean check_join(const BerthRpcIdentity *who, const Berth__JoinRequest *request,
                           GError **error)
{
    if (request->n_guests > GUESTS_MAX) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "the request to join names more than %u guests", GUESTS_MAX);
        return FALSE;
    }
    return check_info(who, request->info, error);
}

/* Whatever session the node had is over. */
static void replace(BerthSessions *sessions, guint32 node, Link *by)
{
    Link *old = g_hash_table_lookup(sessions->by_node, GUINT_TO_POINTER(node));
    if (!old)
        return;
    leave(old);
    if (old != by) {
        g_message("node %s has opened a new session: closing the one before",
                  berth_node_table_name(sessions->daemon->nodes, node));
        berth_rpc_peer_close(old->peer, TRUE);
    }
}

static guint32 register_node(BerthSessions *sessions, Link *link, const Berth__NodeInfo *info)
{
    BerthDaemon *daemon = sessions->daemon;
    guint32 node = berth_engine_add_node(daemon->engine, info->name);
    replace(sessions, node, link);
    BerthNodeEntry *entry = berth_node_table_add(daemon->nodes, node, info->name);
    berth_node_entry_set_info(entry, info);
    berth_node_entry_clear_fence_error(entry);
    g_free(entry->address);
    entry->address = g_strdup(berth_rpc_peer_identity(link->peer)->description);
    entry->heard_usec = berth_engine_now_usec(daemon->engine);
    link->node = node;
    leave_unjoined(link);
    g_clear_handle_id(&link->join_timer, g_source_remove);
    g_hash_table_insert(sessions->by_node, GUINT_TO_POINTER(node), link);
    return node;
}

typedef struct {
    BerthDaemon *daemon;
    BerthRpcCall *call;
    GPtrArray *strays; /* Berth__GuestId */
} Joining;

static void on_joined(const GError *error, gpointer user_data)
{
    g_autofree Joining *joining = user_data;
    Berth__JoinReply reply = BERTH__JOIN_REPLY__INIT;
    reply.cluster = joining->daemon->config->cluster;
    reply.report_interval_msec = joining->daemon->config->report_interval_sec * 1000;
    reply.node_timeout_msec = joining->daemon->config->node_timeout_sec * 1000;
    reply.near_interval_msec = joining->daemon->config->report_near_sec * 1000;
    reply.calm_interval_msec = joining->daemon->config->report_calm_sec * 1000;
    reply.strays = (Berth__GuestId **)(void *)joining->strays->pdata;
    reply.n_strays = joining->strays->len;
    if (error)
        berth_rpc_call_fail(joining->call, error);
    else
        berth_rpc_call_reply(joining->call, &reply.base);
    g_ptr_array_unref(joining->strays);
}

static void free_message(gpointer message)
{
    berth_message_free(message);
}

static GPtrArray *find_strays(BerthDaemon *daemon, guint32 node, const Berth__JoinRequest *request)
{
    GPtrArray *strays = g_ptr_array_new_with_free_func(free_message);
    for (gsize i = 0; i < request->n_guests; i++) {
        const Berth__GuestId *id = request->guests[i]->id;
        if (id && berth_guest_reports_is_stray(daemon, node, id))
            g_ptr_array_add(strays, berth_message_copy(&id->base));
    }
    return strays;
}

/* A host that may not join tries again and again: it is said once for each reason. Names are as many as
 * there are certificates. */
static void log_refusal(BerthSessions *sessions, const BerthRpcIdentity *who, const char *why)
{
    const char *name = who->node_name ? who->node_name : "";
    if (g_strcmp0(g_hash_table_lookup(sessions->refused, name), why) == 0) {
        g_debug("%s cannot join: %s", who->description, why);
        return;
    }
    g_warning("%s cannot join: %s", who->description, why);
    g_hash_table_insert(sessions->refused, g_strdup(name), g_strdup(why));
}

static void log_join(const Berth__JoinRequest *request)
{
    const Berth__NodeInfo *info = request->info;
    g_message(
        "node %s has joined: %u vCPU%s, %" G_GUINT64_FORMAT " MiB, %s, berth-node %s, %zu guest%s",
        info->name, info->vcpus, info->vcpus == 1 ? "" : "s", info->guest_memory_mib,
        info->acceleration, info->version, request->n_guests, request->n_guests == 1 ? "" : "s");
    if (*info->boot_id && request->uptime_msec == 0)
        g_warning(
            "node %s does not say how long its host is up: it is taken in any boot, and so is a "
            "clone of it that has the same ids; berth-node there (%s) is to be brought up to date",
            info->name, info->version);
}

static void sessions_join(Berth__Sessions_Service *service, const Berth__JoinRequest *request,
                          Berth__JoinReply_Closure closure, void *closure_data)
{
    BerthDaemon *daemon = daemon_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    Link *link = berth_rpc_peer_get_data(berth_rpc_call_peer(call));
    g_autoptr(GError) error = NULL;
    if (!link || berth_engine_is_stopped(daemon->engine))
        g_set_error_literal(&error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "the daemon is ending");
    if (error || !check_join(berth_rpc_call_identity(call), request, &error) ||
        !check_admission(daemon, request->info, &error) ||
        !berth_host_check(daemon, request, &error)) {
        log_refusal(daemon->sessions, berth_rpc_call_identity(call), error->message);
        berth_rpc_call_fail(call, error);
        return;
    }
    log_join(request);
    g_hash_table_remove(daemon->sessions->refused, request->info->name);
    guint32 node = register_node(daemon->sessions, link, request->info);
    Joining *joining = g_new(Joining, 1);
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    berth_guest_reports_join(daemon, turn, node, request);
    *joining = (Joining){daemon, call, find_strays(daemon, node, request)};
    berth_turn_then(turn, on_joined, joining);
    berth_turn_commit(turn);
}

/* --- what a session says -------------------------------------------------------------------------- */

/* The node that CALL speaks for, and is heard of by that; 0 with ERROR: its connection has not joined. */
static guint32 node_of(BerthDaemon *daemon, BerthRpcCall *call, GError **error)
{
    const Link *link = berth_rpc_peer_get_data(berth_rpc_call_peer(call));
    if (link && link->node != 0 && !berth_engine_is_stopped(daemon->engine)) {
        berth_node_table_find(daemon->nodes, link->node)->heard_usec =
            berth_engine_now_usec(daemon->engine);
        return link->node;
    }
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                        "this connection has no session: call Sessions.Join first");
    return 0;
}

typedef struct {
    BerthRpcCall *call;
    gboolean is_kept;
} Change;

static void on_change_committed(const GError *error, gpointer user_data)
{
    g_autofree Change *change = user_data;
    Berth__GuestChangedReply reply = BERTH__GUEST_CHANGED_REPLY__INIT;
    reply.not_kept = !change->is_kept;
    if (error)
        berth_rpc_call_fail(change->call, error);
    else
        berth_rpc_call_reply(change->call, &reply.base);
}

static void sessions_guest_changed(Berth__Sessions_Service *service,
                                   const Berth__GuestChangedRequest *request,
                                   Berth__GuestChangedReply_Closure closure, void *closure_data)
{
    BerthDaemon *daemon = daemon_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    g_autoptr(GError) error = NULL;
    guint32 node = node_of(daemon, call, &error);
    if (node != 0 && !(request->status && request->status->id)) {
        g_set_error_literal(&error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                            "the request names no guest");
    }
    if (error) {
        berth_rpc_call_fail(call, error);
        return;
    }
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    Change *change = g_new(Change, 1);
    *change = (Change){call, berth_guest_reports_change(daemon, turn, node, request->status)};
    berth_turn_then(turn, on_change_committed, change);
    berth_turn_commit(turn);
}

static void on_node_committed(const GError *error, gpointer user_data)
{
    BerthRpcCall *call = user_data;
    Berth__NodeChangedReply reply = BERTH__NODE_CHANGED_REPLY__INIT;
    if (error)
        berth_rpc_call_fail(call, error);
    else
        berth_rpc_call_reply(call, &reply.base);
}

static void log_change(BerthDaemon *daemon, guint32 node, const Berth__NodeInfo *info)
{
    const char *before = berth_node_table_find(daemon->nodes, node)->info->cannot_start;
    if (*info->cannot_start && strcmp(before, info->cannot_start) != 0)
        g_warning("node %s gets no new guests: %s", info->name, info->cannot_start);
    else if (*before && !*info->cannot_start)
        g_message("node %s can start guests again", info->name);
}

static void sessions_node_changed(Berth__Sessions_Service *service,
                                  const Berth__NodeChangedRequest *request,
                                  Berth__NodeChangedReply_Closure closure, void *closure_data)
{
    BerthDaemon *daemon = daemon_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    g_autoptr(GError) error = NULL;
    guint32 node = node_of(daemon, call, &error);
    if (node == 0 || !check_info(berth_rpc_call_identity(call), request->info, &error)) {
        berth_rpc_call_fail(call, error);
        return;
    }
    log_change(daemon, node, request->info);
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    berth_guest_reports_node(daemon, turn, node, request->info);
    berth_turn_then(turn, on_node_committed, call);
    berth_turn_commit(turn);
}

static void sessions_report(Berth__Sessions_Service *service, const Berth__ReportRequest *request,
                            Berth__ReportReply_Closure closure, void *closure_data)
{
    BerthDaemon *daemon = daemon_of(service);
    BerthRpcCall *call = BERTH_RPC_CALL(closure_data);
    g_autoptr(GError) error = NULL;
    guint32 node = node_of(daemon, call, &error);
    if (node == 0) {
        berth_rpc_call_fail(call, error);
        return;
    }
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    g_autoptr(GPtrArray) unknown = g_ptr_array_new();
    berth_guest_reports_measure(daemon, turn, node, request, unknown);
    if (is_to_be_kept(daemon, node))
        keep_heard(daemon->sessions, turn);
    berth_turn_commit(turn);
    Berth__ReportReply reply = BERTH__REPORT_REPLY__INIT;
    reply.unknown = (Berth__GuestId **)(void *)unknown->pdata;
    reply.n_unknown = unknown->len;
    berth_rpc_call_reply(call, &reply.base);
}

ProtobufCService *berth_sessions_service_new(BerthDaemon *daemon)
{
    static const Berth__Sessions_Service template = BERTH__SESSIONS__INIT(sessions_);
    SessionsService *service = g_new0(SessionsService, 1);
    service->base = template;
    service->daemon = daemon;
    return &service->base.base;
}
