/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the wait for agents that are restarted: until each has joined again, and can start guests. */
#include "cli/node_rejoin.h"

#include "cli/node_change.h"
#include "common/error.h"

typedef struct {
    BerthCli *cli;
    guint64 seq;
    gint64 deadline_usec;  /* monotonic */
    GHashTable *left;      /* names of those that are waited for */
    GHashTable *joined;    /* of these those that have joined */
    GHashTable *instances; /* name -> what its agent was */
    const GPtrArray *lost; /* names of those on which a command was lost */
    GError *failure;       /* of one that is not waited for any more; the first */
    BerthRejoinedFunc func;
    gpointer user_data;
} Rejoin;

static gboolean get_seq(BerthCli *cli, gpointer user_data, GError **error)
{
    guint64 *seq = user_data;
    Berth__ServerInfo *info = berth_cli_server_info(cli, error);
    if (info == NULL)
        return FALSE;
    *seq = info->last_seq;
    berth__server_info__free_unpacked(info, NULL);
    return TRUE;
}

gboolean berth_cli_newest_event(BerthCli *cli, guint64 *out_seq, GError **error)
{
    return berth_cli_persist(cli, FALSE, get_seq, out_seq, error);
}

/* FALSE: there is something to be looked at. */
static gboolean take_event(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__Event *event = (const Berth__Event *)item;
    Rejoin *rejoin = user_data;
    gpointer name;
    rejoin->seq = event->seq;
    if (!g_hash_table_lookup_extended(rejoin->left, event->node, &name, NULL))
        return TRUE;
    if (event->kind == BERTH__EVENT__KIND__NODE_UP)
        g_hash_table_add(rejoin->joined, name);
    return event->kind != BERTH__EVENT__KIND__NODE_UP &&
           event->kind != BERTH__EVENT__KIND__NODE_CHANGED;
}

/* An agent that has only lost its connection for a while was not restarted. */
static gboolean is_as_before(const Rejoin *rejoin, const Berth__Node *node)
{
    const char *before = g_hash_table_lookup(rejoin->instances, node->info->name);
    return g_strcmp0(before, node->info->instance) == 0;
}

static void wait_no_more(Rejoin *rejoin, const char *name)
{
    g_hash_table_remove(rejoin->joined, name);
    g_hash_table_remove(rejoin->left, name);
}

/* ERROR (transfer full): why. The others are waited for on. */
static void fail(Rejoin *rejoin, const char *name, GError *error)
{
    if (rejoin->failure == NULL)
        rejoin->failure = error;
    else
        g_error_free(error);
    wait_no_more(rejoin, name);
}

/* NAME has joined as what it was. */
static void take_unchanged(Rejoin *rejoin, const char *name)
{
    g_hash_table_remove(rejoin->joined, name);
    if (g_ptr_array_find((GPtrArray *)rejoin->lost, name, NULL))
        fail(rejoin, name,
             g_error_new(BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                         "node %s: its agent was not restarted: it had lost its connection, and "
                         "has ended the command",
                         name));
}

/* FUNC could not do what it was to, for a reason that does not pass: of its node, and no other. */
static gboolean is_of_node(const GError *error)
{
    return error->code != BERTH_ERROR_UNAVAILABLE && error->code != BERTH_ERROR_DEADLINE_EXCEEDED;
}

/* NAME has joined. One that cannot start guests may still be coming up. */
static gboolean take_joined(Rejoin *rejoin, const char *name, const Berth__Node *node,
                            GError **error)
{
    if (node->state != BERTH__NODE_STATE__NODE_UP)
        return TRUE;
    if (is_as_before(rejoin, node)) {
        take_unchanged(rejoin, name);
        return TRUE;
    }
    if (*node->info->cannot_start != '\0')
        return TRUE;
    g_autoptr(GError) local = NULL;
    if (rejoin->func(rejoin->cli, node, rejoin->user_data, &local)) {
        wait_no_more(rejoin, name);
        return TRUE;
    }
    if (is_of_node(local)) {
        fail(rejoin, name, g_steal_pointer(&local));
        return TRUE;
    }
    g_propagate_error(error, g_steal_pointer(&local));
    return FALSE;
}

static gboolean look(Rejoin *rejoin, GError **error)
{
    g_autoptr(GList) names = g_hash_table_get_keys(rejoin->joined);
    for (GList *name = names; name != NULL; name = name->next) {
        Berth__Node *node = berth_cli_get_node(rejoin->cli, name->data, error);
        gboolean ok = node != NULL && take_joined(rejoin, name->data, node, error);
        if (node != NULL)
            berth__node__free_unpacked(node, NULL);
        if (!ok)
            return FALSE;
    }
    return TRUE;
}

/* TRUE with nodes left: it has taken too long. */
static gboolean follow(BerthCli *cli, gpointer user_data, GError **error)
{
    Rejoin *rejoin = user_data;
    while (look(rejoin, error)) {
        if (g_hash_table_size(rejoin->left) == 0 || g_get_monotonic_time() >= rejoin->deadline_usec)
            return TRUE;
        if (!berth_cli_watch_until(cli, rejoin->seq, rejoin->deadline_usec, take_event, rejoin,
                                   error))
            return FALSE;
    }
    return FALSE;
}

/* Why NAME is not back. (transfer full) */
static char *why_not(const Rejoin *rejoin, const char *name)
{
    g_autoptr(GError) error = NULL;
    if (!g_hash_table_contains(rejoin->joined, name))
        return g_strdup(
            "its agent has not joined again; where the command does not restart it, say so with "
            "--no-restart");
    Berth__Node *node = berth_cli_get_node(rejoin->cli, name, &error);
    if (node == NULL)
        return g_strdup(error->message);
    char *why = *node->info->cannot_start != '\0'
                    ? g_strdup_printf("its agent has joined again, and can start no guests: %s",
                                      node->info->cannot_start)
                    : g_strdup("its agent has joined again, and gone again");
    berth__node__free_unpacked(node, NULL);
    return why;
}

gboolean berth_cli_await_rejoin(BerthCli *cli, char **names, GHashTable *instances,
                                const GPtrArray *lost, guint64 after_seq, guint64 patience_sec,
                                BerthRejoinedFunc func, gpointer user_data, GError **error)
{
    g_autoptr(GHashTable) left = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GHashTable) joined = g_hash_table_new(g_str_hash, g_str_equal);
    Rejoin rejoin = {.cli = cli,
                     .seq = after_seq,
                     .deadline_usec =
                         g_get_monotonic_time() + (gint64)patience_sec * G_USEC_PER_SEC,
                     .left = left,
                     .joined = joined,
                     .instances = instances,
                     .lost = lost,
                     .func = func,
                     .user_data = user_data};
    for (char **name = names; *name != NULL; name++)
        g_hash_table_add(left, *name);
    g_autoptr(GError) ended = NULL;
    if (!berth_cli_persist_until(cli, TRUE, rejoin.deadline_usec, follow, &rejoin, &ended)) {
        gboolean has_first = rejoin.failure != NULL;
        g_propagate_error(error, has_first ? rejoin.failure : g_steal_pointer(&ended));
        return FALSE;
    }
    for (char **name = names; *name != NULL && rejoin.failure == NULL; name++) {
        if (!g_hash_table_contains(left, *name))
            continue;
        g_autofree char *why = why_not(&rejoin, *name);
        g_set_error(&rejoin.failure, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED, "node %s: %s",
                    *name, why);
    }
    if (rejoin.failure == NULL)
        return TRUE;
    g_propagate_error(error, rejoin.failure);
    return FALSE;
}
