/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the judgement which clients of a dead guest's disk are dead too. Touches no storage.
 *
 * Who may have such a disk open: the agent that removes it, or that crashed when it made it; berthd,
 * which removes it; and the guest's QEMU, which is gone or about to be, as its epoch is over. What
 * an agent or berthd opens anew it may use for a moment before its address is known here, so that a
 * client must be found for some time. */
#include "config.h"

#include "scheduler/daemon/stale_clients.h"

typedef struct {
    gint64 since_usec;
    gboolean was_cut;
} Suspect;

struct BerthStaleClients {
    GHashTable *before; /* "DISK ADDRESS" -> Suspect: what the last round found, of nobody */
    gboolean has_suspects;
};

BerthBusyDisk *berth_busy_disk_new(const char *disk_id, char **clients)
{
    BerthBusyDisk *busy = g_new0(BerthBusyDisk, 1);
    *busy = (BerthBusyDisk){.disk_id = g_strdup(disk_id), .clients = clients};
    return busy;
}

void berth_busy_disk_free(gpointer data)
{
    BerthBusyDisk *busy = data;
    g_free(busy->disk_id);
    g_strfreev(busy->clients);
    g_free(busy);
}

static GHashTable *suspects_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
}

BerthStaleClients *berth_stale_clients_new(void)
{
    BerthStaleClients *stale = g_new0(BerthStaleClients, 1);
    stale->before = suspects_new();
    return stale;
}

void berth_stale_clients_free(BerthStaleClients *stale)
{
    g_hash_table_unref(stale->before);
    g_free(stale);
}

gboolean berth_stale_clients_has_suspects(BerthStaleClients *stale)
{
    return stale->has_suspects;
}

/* One round. */
typedef struct {
    BerthStaleClients *stale;
    GHashTable *found; /* what is `before` for the next one */
    gint64 now_usec;
    gint64 after_usec;
    BerthIsInUseFunc is_in_use;
    gpointer user_data;
} Round;

/* ADDRESS, of nobody, with this DISK open: as it was before, or new. */
static Suspect *find_suspect(const Round *round, const char *disk_id, const char *address)
{
    g_autofree char *key = g_strdup_printf("%s %s", disk_id, address);
    const Suspect *known = g_hash_table_lookup(round->stale->before, key);
    Suspect *suspect = g_new0(Suspect, 1);
    *suspect = known ? *known : (Suspect){.since_usec = round->now_usec};
    g_hash_table_insert(round->found, g_steal_pointer(&key), suspect);
    return suspect;
}

/* BUSY with its clients that are to be cut off (transfer full); NULL: none. */
static BerthBusyDisk *judge_disk(const Round *round, const BerthBusyDisk *busy)
{
    g_autoptr(GStrvBuilder) dead = g_strv_builder_new();
    gboolean is_news = FALSE;
    for (gsize i = 0; busy->clients[i]; i++) {
        if (round->is_in_use(busy->clients[i], round->user_data))
            continue;
        Suspect *suspect = find_suspect(round, busy->disk_id, busy->clients[i]);
        if (round->now_usec - suspect->since_usec < round->after_usec) {
            round->stale->has_suspects = TRUE;
            continue;
        }
        g_strv_builder_add(dead, busy->clients[i]);
        is_news = is_news || !suspect->was_cut;
        suspect->was_cut = TRUE;
    }
    g_auto(GStrv) clients = g_strv_builder_end(dead);
    if (!clients[0])
        return NULL;
    BerthBusyDisk *disk = berth_busy_disk_new(busy->disk_id, g_steal_pointer(&clients));
    disk->is_news = is_news;
    return disk;
}

GPtrArray *berth_stale_clients_judge(BerthStaleClients *stale, const GPtrArray *busy,
                                     gint64 now_usec, gint64 after_usec, BerthIsInUseFunc is_in_use,
                                     gpointer user_data)
{
    GPtrArray *dead = g_ptr_array_new_with_free_func(berth_busy_disk_free);
    Round round = {stale, suspects_new(), now_usec, after_usec, is_in_use, user_data};
    stale->has_suspects = FALSE;
    for (guint i = 0; busy && i < busy->len; i++) {
        BerthBusyDisk *disk = judge_disk(&round, g_ptr_array_index(busy, i));
        if (disk)
            g_ptr_array_add(dead, disk);
    }
    g_hash_table_unref(stale->before);
    stale->before = round.found;
    return dead;
}

/* --- who uses what ------------------------------------------------------------------------------ */

static gboolean is_of_a_node(BerthDaemon *daemon, const char *address)
{
    g_autoptr(GPtrArray) nodes = berth_node_table_list(daemon->nodes);
    for (guint i = 0; i < nodes->len; i++) {
        const BerthNodeEntry *entry = g_ptr_array_index(nodes, i);
        BerthCoreNode node;
        if (!berth_core_get_node(daemon->core, entry->handle, &node) ||
            node.state == BERTH_NODE_LOST)
            continue;
        g_auto(GStrv) clients = g_strsplit(entry->info->storage_client, " ", -1);
        if (g_strv_contains((const char *const *)clients, address))
            return TRUE;
    }
    return FALSE;
}

static gboolean has_client(const BerthTaskEntry *task, const char *address)
{
    for (gsize i = 0; i < task->stored->n_storage_clients; i++)
        if (g_str_equal(task->stored->storage_clients[i], address))
            return TRUE;
    return FALSE;
}

static gboolean is_of_a_guest(BerthDaemon *daemon, const char *address)
{
    g_autoptr(GArray) numbers = berth_job_table_begun(daemon->jobs);
    for (guint i = 0; i < numbers->len; i++) {
        guint64 number = g_array_index(numbers, guint64, i);
        const BerthJobEntry *job = berth_job_table_find(daemon->jobs, number);
        for (guint32 n = 0; n < job->n_tasks; n++) {
            BerthCoreTask task;
            const BerthTaskEntry *entry = job->tasks[n];
            if (has_client(entry, address) &&
                berth_core_get_task(daemon->core, number, entry->stored->task->index, &task) &&
                task.phase != BERTH_GUEST_NONE)
                return TRUE;
        }
    }
    return FALSE;
}

gboolean berth_stale_clients_is_in_use(const char *address, gpointer user_data)
{
    BerthDaemon *daemon = user_data;
    return berth_storage_link_is_own(daemon->storage, address) || is_of_a_node(daemon, address) ||
           is_of_a_guest(daemon, address);
}
