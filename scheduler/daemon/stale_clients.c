/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the judgement which clients of a dead guest's disk are dead too. Touches no storage.
 *
 * Who may have such a disk open: the agent that removes it, or that crashed when it made it; berthd,
 * which removes it; and the guest's QEMU, which is gone or about to be, as its epoch is over. What
 * an agent or berthd opens anew it may use for a moment before its address is known here, so that a
 * client must be found twice. */
#include "config.h"

#include "scheduler/daemon/stale_clients.h"

struct BerthStaleClients {
    GHashTable *before; /* set of "DISK ADDRESS": what the last round found, of nobody */
    gboolean has_suspects;
};

BerthBusyDisk *berth_busy_disk_new(const char *disk_id, char **clients)
{
    BerthBusyDisk *busy = g_new0(BerthBusyDisk, 1);
    *busy = (BerthBusyDisk){g_strdup(disk_id), clients};
    return busy;
}

void berth_busy_disk_free(gpointer data)
{
    BerthBusyDisk *busy = data;
    g_free(busy->disk_id);
    g_strfreev(busy->clients);
    g_free(busy);
}

static GHashTable *set_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

BerthStaleClients *berth_stale_clients_new(void)
{
    BerthStaleClients *stale = g_new0(BerthStaleClients, 1);
    stale->before = set_new();
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

/* The addresses of BUSY that are to be cut off (transfer full); notes in NOW what nobody uses. */
static char **judge_disk(BerthStaleClients *stale, const BerthBusyDisk *busy, GHashTable *now,
                         BerthIsInUseFunc is_in_use, gpointer user_data)
{
    g_autoptr(GStrvBuilder) dead = g_strv_builder_new();
    for (gsize i = 0; busy->clients[i]; i++) {
        if (is_in_use(busy->clients[i], user_data)) {
            continue;
        }
        char *key = g_strdup_printf("%s %s", busy->disk_id, busy->clients[i]);
        if (g_hash_table_contains(stale->before, key)) {
            g_strv_builder_add(dead, busy->clients[i]);
        } else {
            stale->has_suspects = TRUE;
        }
        g_hash_table_add(now, key);
    }
    return g_strv_builder_end(dead);
}

GPtrArray *berth_stale_clients_judge(BerthStaleClients *stale, const GPtrArray *busy,
                                     BerthIsInUseFunc is_in_use, gpointer user_data)
{
    GPtrArray *dead = g_ptr_array_new_with_free_func(berth_busy_disk_free);
    GHashTable *now = set_new();
    stale->has_suspects = FALSE;
    for (guint i = 0; busy && i < busy->len; i++) {
        const BerthBusyDisk *disk = g_ptr_array_index(busy, i);
        g_auto(GStrv) clients = judge_disk(stale, disk, now, is_in_use, user_data);
        if (clients[0]) {
            g_ptr_array_add(dead, berth_busy_disk_new(disk->disk_id, g_steal_pointer(&clients)));
        }
    }
    g_hash_table_unref(stale->before);
    stale->before = now;
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
            node.state == BERTH_NODE_LOST) {
            continue;
        }
        g_auto(GStrv) clients = g_strsplit(entry->info->storage_client, " ", -1);
        if (g_strv_contains((const char *const *)clients, address)) {
            return TRUE;
        }
    }
    return FALSE;
}

static gboolean has_client(const BerthTaskEntry *task, const char *address)
{
    for (gsize i = 0; i < task->stored->n_storage_clients; i++) {
        if (g_str_equal(task->stored->storage_clients[i], address)) {
            return TRUE;
        }
    }
    return FALSE;
}

static gboolean is_of_a_guest(BerthDaemon *daemon, const char *address)
{
    g_autoptr(GArray) numbers = berth_job_table_numbers(daemon->jobs);
    for (guint i = 0; i < numbers->len; i++) {
        guint64 number = g_array_index(numbers, guint64, i);
        const BerthJobEntry *job = berth_job_table_find(daemon->jobs, number);
        for (guint32 index = 0; index < job->n_tasks; index++) {
            BerthCoreTask task;
            if (has_client(&job->tasks[index], address) &&
                berth_core_get_task(daemon->core, number, index, &task) &&
                task.phase != BERTH_GUEST_NONE) {
                return TRUE;
            }
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
