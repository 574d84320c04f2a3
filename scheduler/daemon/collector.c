/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the removal of what nobody needs. Lists are made on workers, judged on the loop, and removed
 * on workers again: a disk or image that is garbage once stays garbage, as epochs only rise and ids
 * are made once; uploads may be wanted again, so blob_guard.h keeps them while they are fresh, and
 * one must be found unused in two rounds. Of images only what this state knows to be unwanted goes: one
 * that it does not know was made after the backup that it came from, or by another state. A dead disk
 * that a client has open stays for the next round; stale_clients.h says whether the client is dead
 * too. What cannot be removed keeps nothing else from being so, unless storage does not answer. */
#include "config.h"

#include "scheduler/daemon/collector.h"

#include "common/error.h"
#include "common/id.h"
#include "scheduler/daemon/blob_guard.h"
#include "scheduler/daemon/image_table.h"
#include "scheduler/daemon/stale_clients.h"

typedef enum { DISKS, IMAGES, BLOBS, N_KINDS } Kind;

struct BerthCollector {
    BerthDaemon *daemon;
    Kind kind; /* of the round under way */
    gboolean is_running;
    guint timer;
    GHashTable *suspects;  /* hex digests of blobs that the last round found unused */
    GHashTable *strangers; /* ids of images that were warned of */
    char **unwanted;       /* ids of images, as they were when the present list was begun */
    BerthStaleClients *stale_clients;
};

typedef struct {
    BerthStore *store;
    Kind kind;
    char **names;    /* to be removed; NULL when listing */
    GPtrArray *dead; /* of BerthBusyDisk: whose clients are to be cut off; NULL but for that */
} Task;

static const char *const kind_names[N_KINDS] = {"disk", "image", "upload"};

BerthCollector *berth_collector_new(BerthDaemon *daemon)
{
    BerthCollector *collector = g_new0(BerthCollector, 1);
    collector->daemon = daemon;
    collector->suspects = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    collector->strangers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    collector->stale_clients = berth_stale_clients_new();
    return collector;
}

void berth_collector_free(BerthCollector *collector)
{
    g_clear_handle_id(&collector->timer, g_source_remove);
    g_hash_table_unref(collector->suspects);
    g_hash_table_unref(collector->strangers);
    g_strfreev(collector->unwanted);
    berth_stale_clients_free(collector->stale_clients);
    g_free(collector);
}

/* --- on workers --------------------------------------------------------------------------------- */

static void task_free(gpointer data)
{
    Task *task = data;
    g_strfreev(task->names);
    g_clear_pointer(&task->dead, g_ptr_array_unref);
    g_free(task);
}

/* Blobs that no job refers to. */
static char **list_unused_blobs(BerthStorage *storage, BerthStore *store, GError **error)
{
    g_auto(GStrv) all = berth_storage_blob_list(storage, error);
    g_autoptr(GStrvBuilder) unused = g_strv_builder_new();
    for (gsize i = 0; all && all[i]; i++) {
        guint8 digest[BERTH_SHA256_BYTES];
        gboolean is_used = TRUE;
        if (!berth_digest_from_hex(all[i], digest))
            continue;
        if (!berth_store_blob_is_used(store, digest, &is_used, error))
            return NULL;
        if (!is_used)
            g_strv_builder_add(unused, all[i]);
    }
    return all ? g_strv_builder_end(unused) : NULL;
}

static gpointer list_names(BerthStorage *storage, gconstpointer input, GError **error)
{
    const Task *task = input;
    switch (task->kind) {
    case DISKS:
        return berth_storage_disk_list(storage, error);
    case IMAGES:
        return berth_storage_image_list(storage, error);
    default:
        return list_unused_blobs(storage, task->store, error);
    }
}

static gboolean remove_blob(BerthStorage *storage, BerthStore *store, const char *hex,
                            GError **error)
{
    guint8 digest[BERTH_SHA256_BYTES];
    gboolean is_used = TRUE;
    if (!berth_digest_from_hex(hex, digest) ||
        !berth_store_blob_is_used(store, digest, &is_used, error))
        return FALSE;
    return is_used || berth_storage_blob_remove(storage, digest, error);
}

static gboolean remove_one(BerthStorage *storage, const Task *task, const char *name,
                           GError **error)
{
    switch (task->kind) {
    case DISKS:
        return berth_storage_disk_remove(storage, name, error);
    case IMAGES:
        return berth_storage_image_remove(storage, name, error);
    default:
        return remove_blob(storage, task->store, name, error);
    }
}

static gboolean is_in_use(const GError *error)
{
    return g_error_matches(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION);
}

static gboolean is_gone(const GError *error)
{
    return g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND);
}

/* Storage does not answer, or not any more. */
static gboolean is_outage(const GError *error)
{
    return g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE) ||
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED) ||
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_CANCELLED);
}

/* FALSE: an outage, which ends the round. What else failed is left for the next one. */
static gboolean go_on(const char *what, GError *failed, GError **error)
{
    if (is_outage(failed)) {
        g_propagate_error(error, failed);
        return FALSE;
    }
    g_info("%s stays until the next collection of garbage: %s", what, failed->message);
    g_error_free(failed);
    return TRUE;
}

/* Notes who has the disk NAME open, in BUSY. */
static gboolean note_busy(BerthStorage *storage, const char *name, GPtrArray *busy, GError **error)
{
    g_autoptr(GError) failed = NULL;
    char **clients = berth_storage_disk_clients(storage, name, &failed);
    if (clients)
        g_ptr_array_add(busy, berth_busy_disk_new(name, clients));
    else if (!is_gone(failed))
        return go_on(name, g_steal_pointer(&failed), error);
    return TRUE;
}

/* What cannot be removed is left for the next round. The disks in use, as BerthBusyDisk. */
static gpointer remove_names(BerthStorage *storage, gconstpointer input, GError **error)
{
    const Task *task = input;
    g_autoptr(GPtrArray) busy = g_ptr_array_new_with_free_func(berth_busy_disk_free);
    for (gsize i = 0; task->names[i]; i++) {
        g_autoptr(GError) failed = NULL;
        if (remove_one(storage, task, task->names[i], &failed) || is_gone(failed))
            continue;
        if (!is_in_use(failed)) {
            if (!go_on(task->names[i], g_steal_pointer(&failed), error))
                return NULL;
            continue;
        }
        if (task->kind == DISKS && !note_busy(storage, task->names[i], busy, error))
            return NULL;
    }
    return g_steal_pointer(&busy);
}

static gpointer cut_off(BerthStorage *storage, gconstpointer input, GError **error)
{
    const Task *task = input;
    for (guint i = 0; i < task->dead->len; i++) {
        const BerthBusyDisk *disk = g_ptr_array_index(task->dead, i);
        g_autoptr(GError) failed = NULL;
        gboolean ok = berth_storage_fence(storage, (const char *const *)disk->clients, &failed) &&
                      berth_storage_disk_remove(storage, disk->disk_id, &failed);
        if (!ok && !is_gone(failed) && !go_on(disk->disk_id, g_steal_pointer(&failed), error))
            return NULL;
    }
    return NULL;
}

/* --- judging ------------------------------------------------------------------------------------ */

gboolean berth_collector_is_dead_disk(BerthCore *core, guint64 next_job, const char *disk_id)
{
    BerthGuestId id;
    BerthCoreTask task;
    if (!berth_disk_id_parse(disk_id, &id, NULL) || id.job >= next_job)
        return FALSE;
    if (!berth_core_get_task(core, id.job, id.task, &task))
        return TRUE;
    return task.epoch != id.epoch || task.phase == BERTH_GUEST_NONE;
}

static gboolean is_dead_blob(BerthCollector *collector, GHashTable *before, const char *hex)
{
    guint8 digest[BERTH_SHA256_BYTES];
    if (!berth_digest_from_hex(hex, digest))
        return FALSE;
    g_hash_table_add(collector->suspects, g_strdup(hex));
    return g_hash_table_contains(before, hex) &&
           berth_blob_guard_begin_removal(collector->daemon->blob_guard, digest);
}

static gboolean is_dead(BerthCollector *collector, GHashTable *before, const char *name)
{
    BerthDaemon *daemon = collector->daemon;
    switch (collector->kind) {
    case DISKS:
        return berth_collector_is_dead_disk(daemon->core, daemon->next_job, name);
    case IMAGES:
        return berth_image_table_is_unwanted(daemon->images, name);
    default:
        return is_dead_blob(collector, before, name);
    }
}

/* Of what was unwanted when NAMES were listed, what is not among them is gone. */
static void forget_gone_images(BerthCollector *collector, char **names)
{
    BerthDaemon *daemon = collector->daemon;
    BerthTurn *turn = NULL;
    for (gsize i = 0; collector->unwanted[i]; i++) {
        const char *id = collector->unwanted[i];
        if (g_strv_contains((const char *const *)names, id))
            continue;
        turn = turn ? turn : berth_engine_begin(daemon->engine);
        berth_store_batch_remove_unwanted(berth_turn_batch(turn), id);
        berth_image_table_clear_unwanted(daemon->images, id);
    }
    if (turn)
        berth_turn_commit(turn);
}

static void warn_of_strangers(BerthCollector *collector, char **names)
{
    for (gsize i = 0; names[i]; i++) {
        if (!berth_image_table_has_id(collector->daemon->images, names[i]) &&
            g_hash_table_add(collector->strangers, g_strdup(names[i]))) {
            g_warning("storage has an image %s that this state does not know: it was imported "
                      "after the backup that the state came from, or by another berthd; it is "
                      "kept, remove it yourself if nobody needs it",
                      names[i]);
        }
    }
}

/* The names of what is to go (transfer full). */
static char **judge(BerthCollector *collector, char **names)
{
    g_autoptr(GStrvBuilder) dead = g_strv_builder_new();
    g_autoptr(GHashTable) before = NULL;
    if (collector->kind == BLOBS) {
        before = g_steal_pointer(&collector->suspects);
        collector->suspects = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        berth_blob_guard_sweep(collector->daemon->blob_guard);
    }
    if (collector->kind == IMAGES) {
        forget_gone_images(collector, names);
        warn_of_strangers(collector, names);
    }
    for (gsize i = 0; names[i]; i++)
        if (is_dead(collector, before, names[i]))
            g_strv_builder_add(dead, names[i]);
    return g_strv_builder_end(dead);
}

/* --- a round ------------------------------------------------------------------------------------ */

static void list(BerthCollector *collector);

static gboolean on_timer(gpointer user_data)
{
    BerthCollector *collector = user_data;
    collector->timer = 0;
    berth_collector_run(collector);
    return G_SOURCE_REMOVE;
}

static void end_round(BerthCollector *collector, const GError *error)
{
    if (error) {
        g_info("collecting %ss that nobody needs stopped: %s", kind_names[collector->kind],
               error->message);
    }
    collector->is_running = FALSE;
    g_clear_handle_id(&collector->timer, g_source_remove);
    guint wait_sec = collector->daemon->config->gc_interval_sec;
    if (berth_stale_clients_has_suspects(collector->stale_clients))
        wait_sec = MIN(wait_sec, collector->daemon->config->stale_client_after_sec);
    collector->timer = g_timeout_add_seconds(wait_sec, on_timer, collector);
}

static void next_kind(BerthCollector *collector)
{
    collector->kind++;
    if (collector->kind == N_KINDS || berth_engine_is_stopped(collector->daemon->engine)) {
        end_round(collector, NULL);
        return;
    }
    list(collector);
}

typedef struct {
    BerthCollector *collector;
    char **names;
} Removing;

static void release_blobs(const Removing *removing)
{
    for (gsize i = 0; removing->names[i]; i++) {
        guint8 digest[BERTH_SHA256_BYTES];
        if (berth_digest_from_hex(removing->names[i], digest))
            berth_blob_guard_end_removal(removing->collector->daemon->blob_guard, digest);
    }
}

static Task *task_new(BerthCollector *collector)
{
    Task *task = g_new0(Task, 1);
    task->store = collector->daemon->store;
    task->kind = collector->kind;
    return task;
}

static void on_cut_off(GObject *source, GAsyncResult *result, gpointer user_data)
{
    BerthCollector *collector = user_data;
    g_autoptr(GError) error = NULL;
    berth_work_finish(result, &error);
    if (error)
        end_round(collector, error);
    else
        next_kind(collector);
}

/* Said before it is done: it cannot be undone. */
static void cut_off_stale(BerthCollector *collector, GPtrArray *dead)
{
    for (guint i = 0; i < dead->len; i++) {
        const BerthBusyDisk *disk = g_ptr_array_index(dead, i);
        g_autofree char *clients = g_strjoinv(", ", disk->clients);
        if (disk->is_news) {
            g_warning("cutting off from storage %s: disk %s of a guest that is no more cannot be "
                      "removed, as it was open there for %u s or more, and neither a node nor a "
                      "guest uses such a client",
                      clients, disk->disk_id, collector->daemon->config->stale_client_after_sec);
        }
    }
    Task *task = task_new(collector);
    task->dead = dead;
    berth_storage_link_run(collector->daemon->storage, BERTH_LANE_STORAGE_CLEAN,
                           "cut off dead clients", cut_off, task, task_free, NULL, on_cut_off,
                           collector);
}

/* Of this kind, what could be removed is; BUSY, or NULL, is in use. */
static void end_removal(BerthCollector *collector, const GPtrArray *busy)
{
    g_autoptr(GPtrArray) dead = NULL;
    if (collector->kind == DISKS) {
        dead = berth_stale_clients_judge(collector->stale_clients, busy, g_get_monotonic_time(),
                                         collector->daemon->config->stale_client_after_sec *
                                             G_USEC_PER_SEC,
                                         berth_stale_clients_is_in_use, collector->daemon);
    }
    if (dead && dead->len > 0)
        cut_off_stale(collector, g_steal_pointer(&dead));
    else
        next_kind(collector);
}

static void on_removed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autofree Removing *removing = user_data;
    BerthCollector *collector = removing->collector;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) busy = berth_work_finish(result, &error);
    if (collector->kind == BLOBS)
        release_blobs(removing);
    if (error) {
        end_round(collector, error);
    } else {
        g_info("removed up to %u %s(s) from storage that nobody needs",
               g_strv_length(removing->names), kind_names[collector->kind]);
        end_removal(collector, busy);
    }
    g_strfreev(removing->names);
}

static void on_listed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    BerthCollector *collector = user_data;
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = berth_work_finish(result, &error);
    if (!names) {
        end_round(collector, error);
        return;
    }
    g_auto(GStrv) dead = judge(collector, names);
    if (!dead[0]) {
        end_removal(collector, NULL);
        return;
    }
    Removing *removing = g_new(Removing, 1);
    *removing = (Removing){collector, g_strdupv(dead)};
    Task *task = task_new(collector);
    task->names = g_steal_pointer(&dead);
    berth_storage_link_run(collector->daemon->storage, BERTH_LANE_STORAGE_CLEAN, "collect garbage",
                           remove_names, task, task_free, (GDestroyNotify)g_ptr_array_unref,
                           on_removed, removing);
}

static void list(BerthCollector *collector)
{
    g_strfreev(collector->unwanted);
    collector->unwanted = berth_image_table_list_unwanted(collector->daemon->images);
    berth_storage_link_run(collector->daemon->storage, BERTH_LANE_STORAGE_CLEAN, "look for garbage",
                           list_names, task_new(collector), task_free, (GDestroyNotify)g_strfreev,
                           on_listed, collector);
}

void berth_collector_run(BerthCollector *collector)
{
    if (collector->is_running)
        return;
    collector->is_running = TRUE;
    collector->kind = DISKS;
    list(collector);
}
