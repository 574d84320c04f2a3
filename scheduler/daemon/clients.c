/* SPDX-License-Identifier: Apache-2.0 */
/* Owns users' connections from their acceptance to their end. Does not know what they ask. */
#include "config.h"

#include "scheduler/daemon/clients.h"

#include "common/error.h"
#include "common/log.h"
#include "scheduler/daemon/memory_bound.h"

#define REFUSED_MAX 16u
/* What the connections of all users take together, beside the least of each: who asks for more waits, however many users there
 * are. Less than that where it is more than a quarter of what berthd may have. */
#define ALL_BYTES ((guint64)512 << 20)
/* Of which one user has no more than this part: sixteen answers of the largest size at once, and thousands of usual ones. */
#define USER_PART 8u
/* But never less than this. The largest request is there twice, as it came and as it is read, and wants as much again for its
 * answer (listeners.c: max_frame_bytes); beside streams, which go on, and what other commands have open. */
#define USER_LEAST_BYTES ((guint64)16 << 20)
/* Two of the largest answers. */
#define LEAST_BYTES ((guint64)8 << 20)
/* Calls that are dealt with at a time, and one of each user. They wait for each other in the queues of workers and of the
 * store, and whoever asks for little waits with them: bench/hostile says how long. */
#define CALLS_MAX 16u

struct BerthClients {
    BerthDaemon *daemon;
    GHashTable *peers; /* set of BerthRpcPeer, a reference each */
    GHashTable *users; /* uid -> User, of all who ever had a connection */
    BerthClientRoom room;
    BerthRpcTurns *turns;
    BerthRpcPool *pool;
    BerthLogLimit limit;
    BerthLogLimit dry_limit;
};

typedef struct {
    guint n_connections;
    BerthRpcBudget *budget;
} User;

typedef struct {
    uid_t uid;
    BerthClientHoldings holdings;
} Client;

static void user_free(gpointer data)
{
    User *user = data;
    berth_rpc_budget_unref(user->budget);
    g_free(user);
}

static void client_free(gpointer data)
{
    Client *client = data;
    g_clear_pointer(&client->holdings.uploads, g_hash_table_unref);
    g_clear_pointer(&client->holdings.imports, g_hash_table_unref);
    g_free(client);
}

static void on_dry(BerthRpcPeer *peer, guint per_sec, gpointer user_data)
{
    BerthClients *clients = user_data;
    berth_log_warning_limited(&clients->dry_limit,
                              "%s asks more than %u times a second, and is made to wait "
                              "(user_requests_per_sec)",
                              berth_rpc_peer_identity(peer)->description, per_sec);
}

BerthClientRoom berth_client_room(guint64 memory_bytes)
{
    guint64 all_bytes = CLAMP(memory_bytes / 4, USER_LEAST_BYTES, ALL_BYTES);
    return (BerthClientRoom){
        .user_bytes = MAX(all_bytes / USER_PART, USER_LEAST_BYTES),
        .all_bytes = all_bytes,
        .least_bytes = LEAST_BYTES,
    };
}

BerthClients *berth_clients_new(BerthDaemon *daemon)
{
    BerthClients *clients = g_new0(BerthClients, 1);
    clients->daemon = daemon;
    clients->peers = g_hash_table_new_full(NULL, NULL, (GDestroyNotify)berth_rpc_peer_unref, NULL);
    clients->users = g_hash_table_new_full(NULL, NULL, NULL, user_free);
    clients->room = berth_client_room(berth_memory_bound_bytes(daemon->config->memory_max_mib));
    clients->pool = berth_rpc_pool_new(clients->room.all_bytes, clients->room.least_bytes);
    clients->turns = berth_rpc_turns_new(CALLS_MAX);
    berth_rpc_turns_set_dry_func(clients->turns, on_dry, clients);
    return clients;
}

void berth_clients_free(BerthClients *clients)
{
    g_hash_table_unref(clients->peers);
    g_hash_table_unref(clients->users);
    berth_rpc_turns_set_dry_func(clients->turns, NULL, NULL);
    berth_rpc_turns_unref(clients->turns);
    berth_rpc_pool_unref(clients->pool);
    g_free(clients);
}

static guint count(BerthClients *clients, uid_t uid)
{
    const User *user = g_hash_table_lookup(clients->users, GUINT_TO_POINTER(uid));
    return user ? user->n_connections : 0;
}

static void add_connection(BerthClients *clients, uid_t uid, BerthRpcPeer *peer)
{
    User *user = g_hash_table_lookup(clients->users, GUINT_TO_POINTER(uid));
    if (!user) {
        user = g_new0(User, 1);
        user->budget = berth_rpc_budget_new(clients->room.user_bytes);
        berth_rpc_budget_share(user->budget, clients->pool);
        berth_rpc_budget_take_turns(user->budget, clients->turns,
                                    uid == 0 ? 0 : clients->daemon->config->user_requests_per_sec);
        g_hash_table_insert(clients->users, GUINT_TO_POINTER(uid), user);
    }
    user->n_connections++;
    berth_rpc_peer_set_budget(peer, user->budget);
}

static void remove_connection(BerthClients *clients, uid_t uid)
{
    User *user = g_hash_table_lookup(clients->users, GUINT_TO_POINTER(uid));
    user->n_connections--; /* what he has asked for may go on, and counts on */
}

static void on_closed(BerthRpcPeer *peer, const GError *reason, gpointer user_data)
{
    BerthClients *clients = user_data;
    const Client *client = berth_rpc_peer_get_data(peer);
    remove_connection(clients, client->uid);
    g_debug("%s: %s", berth_rpc_peer_identity(peer)->description, reason->message);
    /* Holdings end with the connection, not with its last reference. */
    berth_rpc_peer_set_data(peer, NULL, NULL);
    g_hash_table_remove(clients->peers, peer);
}

/* A few more are told why they are not served; those beyond are just closed. */
static gboolean is_too_many(BerthClients *clients, BerthRpcPeer *peer)
{
    const BerthRpcIdentity *who = berth_rpc_peer_identity(peer);
    guint limit = clients->daemon->config->user_connections_max;
    guint n = count(clients, who->uid);
    if (who->uid == 0 || n < limit)
        return FALSE;
    berth_log_warning_limited(
        &clients->limit, "%s has %u connections already, and gets no more (user_connections_max)",
        who->description, n);
    if (n >= limit + REFUSED_MAX)
        return TRUE;
    g_autoptr(GError) reason =
        g_error_new(BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                    "you have %u connections to the daemon, which is all that one user may have "
                    "(user_connections_max); end some of your commands that wait or follow",
                    limit);
    berth_rpc_peer_refuse(peer, reason);
    return FALSE;
}

void berth_clients_accept(BerthClients *clients, BerthRpcPeer *peer)
{
    if (is_too_many(clients, peer)) {
        berth_rpc_peer_close(peer, TRUE);
        berth_rpc_peer_unref(peer);
        return;
    }
    Client *client = g_new0(Client, 1);
    client->uid = berth_rpc_peer_identity(peer)->uid;
    add_connection(clients, client->uid, peer);
    berth_rpc_peer_set_data(peer, client, client_free);
    g_hash_table_add(clients->peers, peer);
    berth_rpc_peer_set_closed_func(peer, on_closed, clients);
}

static gboolean on_deadline(gpointer user_data)
{
    *(gboolean *)user_data = TRUE;
    return G_SOURCE_CONTINUE;
}

gboolean berth_clients_close(BerthClients *clients, guint timeout_msec)
{
    GHashTableIter iter;
    gpointer peer;
    g_hash_table_iter_init(&iter, clients->peers);
    while (g_hash_table_iter_next(&iter, &peer, NULL))
        berth_rpc_peer_close(peer, TRUE);
    gboolean is_late = FALSE;
    guint timer = g_timeout_add(timeout_msec, on_deadline, &is_late);
    while (g_hash_table_size(clients->peers) > 0 && !is_late)
        g_main_context_iteration(NULL, TRUE);
    g_source_remove(timer);
    return g_hash_table_size(clients->peers) == 0;
}

BerthClientHoldings *berth_client_holdings(BerthRpcCall *call)
{
    Client *client = berth_rpc_peer_get_data(berth_rpc_call_peer(call));
    return client ? &client->holdings : NULL;
}
