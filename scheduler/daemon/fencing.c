/* SPDX-License-Identifier: Apache-2.0 */
/* Owns FENCE: a guest that may still run on a lost node is cut off from storage. Decides nothing: a
 * fence that fails becomes an event, and the core tries it again. */
#include "config.h"

#include "scheduler/daemon/fencing.h"

#include "common/error.h"
#include "common/id.h"
#include "scheduler/daemon/checkpoint_doubt.h"

typedef struct {
    char **addresses;
    char *disk_id;
    char *doubted_id; /* a checkpoint that the node may have made; NULL = none */
    gboolean keep_disk;
} Fence;

typedef struct {
    BerthDaemon *daemon;
    BerthCoreAction action;
} Fencing;

static void fence_free(gpointer data)
{
    Fence *fence = data;
    g_strfreev(fence->addresses);
    g_free(fence->disk_id);
    g_free(fence->doubted_id);
    g_free(fence);
}

/* Cuts off whom the node named while it was well, and whoever has the disk open now. Then removes the
 * disk, so that a QEMU that the node begins only now, as a client that nobody knows, finds nothing to
 * open; one that came in between keeps it from being removed, and the next try cuts it off. A disk with the
 * checkpoint that its task goes on from is kept: as it is restored it gets another name, which fails as long as
 * anybody has it open. So is one of which the node may have made one, and has: its record is the result. */
static gpointer fence_guest(BerthStorage *storage, gconstpointer input, GError **error)
{
    const Fence *fence = input;
    g_autoptr(GError) failed = NULL;
    g_auto(GStrv) clients = berth_storage_disk_clients(storage, fence->disk_id, &failed);
    if (!clients && !g_error_matches(failed, BERTH_ERROR, BERTH_ERROR_NOT_FOUND)) {
        g_propagate_error(error, g_steal_pointer(&failed));
        return NULL;
    }
    g_autoptr(GPtrArray) all = g_ptr_array_new();
    for (gsize i = 0; fence->addresses[i]; i++)
        g_ptr_array_add(all, fence->addresses[i]);
    for (gsize i = 0; clients && clients[i]; i++)
        g_ptr_array_add(all, clients[i]);
    g_ptr_array_add(all, NULL);
    if (!berth_storage_fence(storage, (const char *const *)all->pdata, error))
        return NULL;
    g_autoptr(GError) unknown = NULL;
    Berth__CheckpointRecord *found =
        fence->doubted_id ? berth_checkpoint_look(storage, fence->doubted_id, &unknown) : NULL;
    if (unknown)
        g_propagate_error(error, g_steal_pointer(&unknown));
    else if (!found && !fence->keep_disk)
        berth_storage_disk_remove_with_checkpoints(storage, fence->disk_id, error);
    return found;
}

static void free_record(gpointer record)
{
    berth_checkpoint_record_free(record);
}

/* Others of the node may wait on. */
static void note_fenced(BerthNodeEntry *node, const char *guest)
{
    if (g_strcmp0(node->unfenced, guest) != 0)
        return;
    g_message("%s of node %s is fenced now", guest, node->name);
    berth_node_entry_clear_fence_error(node);
}

/* One that has joined again meanwhile says itself what runs there. */
static void note_unfenced(BerthDaemon *daemon, BerthNodeEntry *node, const char *guest,
                          const char *why)
{
    BerthCoreNode known;
    g_warning("could not fence %s of node %s: %s", guest, node->name, why);
    if (!berth_core_get_node(daemon->core, node->handle, &known) || known.state != BERTH_NODE_LOST)
        return;
    berth_node_entry_clear_fence_error(node);
    node->fence_error = g_strdup(why);
    node->unfenced = g_strdup(guest);
}

/* WHY it failed; NULL: it has not. */
static void note(const Fencing *fencing, const char *why)
{
    g_autofree char *guest = berth_guest_name_format(&fencing->action.guest);
    BerthNodeEntry *node = berth_node_table_find(fencing->daemon->nodes, fencing->action.node);
    if (node && why)
        note_unfenced(fencing->daemon, node, guest, why);
    else if (node)
        note_fenced(node, guest);
}

static void on_fenced(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autofree Fencing *fencing = user_data;
    g_autoptr(GError) error = NULL;
    Berth__CheckpointRecord *found = berth_work_finish(result, &error);
    BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_FENCED,
                            .guest = fencing->action.guest,
                            .node = fencing->action.node};
    note(fencing, error ? error->message : NULL);
    if (error)
        event.kind = BERTH_EVENT_FENCE_FAILED;
    berth_checkpoint_tell(fencing->daemon, &event, found);
    berth_checkpoint_record_free(found);
}

/* A guest that never reported its own clients may not be made yet: then its agent, which would
 * make it, is cut off too; and also where GOES_ON, for its agent writes its output to the logs that are to be
 * gone on with. Not the agent of a node that is there, which says itself that the guest has left. */
static char **fence_addresses(BerthDaemon *daemon, const BerthCoreAction *action, gboolean goes_on)
{
    const BerthTaskEntry *entry =
        berth_job_table_find_task(daemon->jobs, action->guest.job, action->guest.task);
    const BerthNodeEntry *node = berth_node_table_find(daemon->nodes, action->node);
    BerthCoreNode known = {0};
    gboolean is_lost =
        berth_core_get_node(daemon->core, action->node, &known) && known.state == BERTH_NODE_LOST;
    g_autoptr(GStrvBuilder) addresses = g_strv_builder_new();
    for (gsize i = 0; entry && i < entry->stored->n_storage_clients; i++)
        g_strv_builder_add(addresses, entry->stored->storage_clients[i]);
    if (is_lost && (goes_on || !entry || entry->stored->n_storage_clients == 0) && node &&
        *node->info->storage_client) {
        g_auto(GStrv) clients = g_strsplit(node->info->storage_client, " ", -1);
        g_strv_builder_addv(addresses, (const char **)clients);
    }
    return g_strv_builder_end(addresses);
}

void berth_fence(BerthDaemon *daemon, const BerthCoreAction *action)
{
    Fence *input = g_new0(Fence, 1);
    input->disk_id = berth_disk_id_format(&action->guest);
    input->doubted_id = berth_checkpoint_doubted(daemon, &action->guest);
    input->keep_disk = berth_checkpoint_is_known(daemon, &action->guest);
    input->addresses =
        fence_addresses(daemon, action, input->keep_disk || input->doubted_id != NULL);
    Fencing *fencing = g_new0(Fencing, 1);
    *fencing = (Fencing){daemon, *action};
    berth_storage_link_run(daemon->storage, BERTH_LANE_STORAGE_CONTROL, "fence a guest",
                           fence_guest, input, fence_free, free_record, on_fenced, fencing);
}
