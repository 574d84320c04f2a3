/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the removal of checkpoints from storage between the turn in which no record names them any more and its end. What is not
 * removed, for whatever reason, is garbage, which the collector removes. */
#include "config.h"

#include "scheduler/daemon/checkpoint_removals.h"

#include "common/id.h"

struct BerthCheckpointRemovals {
    BerthDaemon *daemon;
    GHashTable *late; /* Removal, owned: those that wait for their time */
};

typedef struct {
    BerthCheckpointRemovals *removals;
    guint64 job;
    guint32 task;
    guint32 serial;
    guint later_sec;
    guint timer;
    BerthDiskUsers *users; /* when it is begun */
} Removal;

/* --- who has the disk --------------------------------------------------------------------------- */

BerthDiskUsers *berth_disk_users_new(BerthDaemon *daemon, guint64 job, guint32 task)
{
    BerthCoreTask now;
    const BerthTaskEntry *entry = berth_job_table_find_task(daemon->jobs, job, task);
    g_autoptr(GStrvBuilder) clients = g_strv_builder_new();
    BerthDiskUsers *users = g_new0(BerthDiskUsers, 1);
    gboolean has_task = berth_core_get_task(daemon->core, job, task, &now);
    if (!entry || (has_task && now.migrate_to != 0)) /* two may have it, and not both are known */
        return users;
    for (gsize i = 0; i < entry->stored->n_storage_clients; i++)
        g_strv_builder_add(clients, entry->stored->storage_clients[i]);
    users->clients = g_strv_builder_end(clients);
    users->have_ended = !has_task || now.phase == BERTH_GUEST_NONE;
    return users;
}

void berth_disk_users_free(BerthDiskUsers *users)
{
    if (!users)
        return;
    g_strfreev(users->clients);
    g_free(users);
}

/* --- removals ----------------------------------------------------------------------------------- */

static void removal_free(gpointer data)
{
    Removal *removal = data;
    g_clear_handle_id(&removal->timer, g_source_remove);
    berth_disk_users_free(removal->users);
    g_free(removal);
}

BerthCheckpointRemovals *berth_checkpoint_removals_new(BerthDaemon *daemon)
{
    BerthCheckpointRemovals *removals = g_new(BerthCheckpointRemovals, 1);
    removals->daemon = daemon;
    removals->late = g_hash_table_new_full(NULL, NULL, removal_free, NULL);
    return removals;
}

void berth_checkpoint_removals_free(BerthCheckpointRemovals *removals)
{
    g_hash_table_unref(removals->late);
    g_free(removals);
}

static gpointer remove_from_storage(BerthStorage *storage, gconstpointer input, GError **error)
{
    const Removal *removal = input;
    g_autofree char *id = berth_checkpoint_id_format(removal->job, removal->task, removal->serial);
    berth_storage_checkpoint_remove(storage, id, (const char *const *)removal->users->clients,
                                    removal->users->have_ended, error);
    return NULL;
}

static void on_removed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    berth_work_finish(result, &error);
    if (error)
        g_info("a checkpoint stays until the next collection of garbage: %s", error->message);
}

static void remove_now(Removal *removal)
{
    BerthDaemon *daemon = removal->removals->daemon;
    removal->users = berth_disk_users_new(daemon, removal->job, removal->task);
    berth_storage_link_run(daemon->storage, BERTH_LANE_STORAGE_CLEAN, "remove checkpoints",
                           remove_from_storage, removal, removal_free, NULL, on_removed, NULL);
}

static void on_later(gpointer user_data)
{
    Removal *removal = user_data;
    removal->timer = 0;
    g_hash_table_steal(removal->removals->late, removal);
    remove_now(removal);
}

/* Whoever removes a snapshot has the disk open, for a second where Ceph's monitors gather changes, and a restore waits for it: one
 * that comes at once is let pass. */
static void on_dropped(const GError *error, gpointer user_data)
{
    Removal *removal = user_data;
    if (error) {
        removal_free(removal);
    } else if (removal->later_sec == 0) {
        remove_now(removal);
    } else {
        removal->timer = g_timeout_add_once(removal->later_sec * 1000, on_later, removal);
        g_hash_table_add(removal->removals->late, removal);
    }
}

void berth_checkpoint_removals_add(BerthCheckpointRemovals *removals, BerthTurn *turn,
                                   const Berth__Task *task, guint32 serial, guint later_sec)
{
    Removal *removal = g_new(Removal, 1);
    *removal = (Removal){.removals = removals,
                         .job = task->job,
                         .task = task->index,
                         .serial = serial,
                         .later_sec = later_sec};
    berth_turn_then(turn, on_dropped, removal);
}
