/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the removal of what nobody needs. Lists are made on workers, judged on the loop, and removed
 * on workers again: a disk or image that is garbage once stays garbage, as epochs only rise and ids
 * are made once; uploads may be wanted again, so blob_guard.h keeps them while they are fresh, and
 * one must be found unused in two rounds. A dead disk that a client has open stays for the next round;
 * stale_clients.h says whether the client is dead too. What cannot be removed keeps nothing else from
 * being so, unless storage does not answer.
 *
 * Of images only what this state has a note of goes, listed by storage or not, and the note goes when
 * nothing is left of it. One without a note was made after the backup that the state came from, or by
 * another state; and so was one that is whole, though it is noted as an import: the note goes, it stays. */
#include "config.h"

#include "scheduler/daemon/collector.h"

#include "common/error.h"
#include "common/id.h"
#include "scheduler/daemon/blob_guard.h"
#include "scheduler/daemon/checkpoint_removals.h"
#include "scheduler/daemon/checkpoints.h"
#include "scheduler/daemon/image_table.h"
#include "scheduler/daemon/stale_clients.h"

typedef enum { CHECKPOINTS, DISKS, IMAGES, BLOBS, N_KINDS } Kind;

struct BerthCollector {
    BerthDaemon *daemon;
    Kind kind; /* of the round under way */
    gboolean is_running;
    guint timer;
    GHashTable *suspects;  /* hex digests of blobs that the last round found unused */
    GHashTable *strangers; /* ids of images that were warned of */
    BerthStaleClients *stale_clients;
};

typedef struct {
    BerthStore *store;
    Kind kind;
    char **names;      /* to be removed; NULL when listing */
    char **imports;    /* ids of images: these too, but for those that are whole; NULL = none */
    GPtrArray *dead;   /* of BerthBusyDisk: whose clients are to be cut off; NULL but for that */
    GHashTable *users; /* BerthDiskUsers of checkpoints, by their names; NULL but for these */
} Task;

/* What became of what was to be removed; what could not be is in none. */
typedef struct {
    GPtrArray *busy;  /* of BerthBusyDisk: disks that a client has open */
    GPtrArray *gone;  /* names of what is not in storage any more */
    GPtrArray *whole; /* ids of those of imports that stay */
} Outcome;

static const char *const kind_names[N_KINDS] = {"checkpoint", "disk", "image", "upload"};

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
    berth_stale_clients_free(collector->stale_clients);
    g_free(collector);
}

/* --- on workers --------------------------------------------------------------------------------- */

static void task_free(gpointer data)
{
    Task *task = data;
    g_strfreev(task->names);
    g_strfreev(task->imports);
    g_clear_pointer(&task->dead, g_ptr_array_unref);
    g_clear_pointer(&task->users, g_hash_table_unref);
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

/* Where there can be none, there are none. */
static char **list_checkpoints(BerthStorage *storage, GError **error)
{
    g_autoptr(GError) failed = NULL;
    char **names = berth_storage_checkpoint_list(storage, &failed);
    if (!names && g_error_matches(failed, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED))
        return g_new0(char *, 1);
    if (!names)
        g_propagate_error(error, g_steal_pointer(&failed));
    return names;
}

static gpointer list_names(BerthStorage *storage, gconstpointer input, GError **error)
{
    const Task *task = input;
    switch (task->kind) {
    case CHECKPOINTS:
        return list_checkpoints(storage, error);
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

static gboolean remove_checkpoint(BerthStorage *storage, const Task *task, const char *name,
                                  GError **error)
{
    const BerthDiskUsers *users = g_hash_table_lookup(task->users, name);
    return berth_storage_checkpoint_remove(storage, name, (const char *const *)users->clients,
                                           users->have_ended, error);
}

static gboolean remove_one(BerthStorage *storage, const Task *task, const char *name,
                           GError **error)
{
    switch (task->kind) {
    case CHECKPOINTS:
        return remove_checkpoint(storage, task, name, error);
    case DISKS:
        return berth_storage_disk_remove_with_checkpoints(storage, name, error);
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
    if (!clients)
        return is_gone(failed) || go_on(name, g_steal_pointer(&failed), error);
    g_autofree char *list = g_strjoinv(", ", clients);
    g_info("disk %s stays until the next collection of garbage: somebody removes it, or has it "
           "open (clients now: %s)",
           name, clients[0] ? list : "none");
    g_ptr_array_add(busy, berth_busy_disk_new(name, clients));
    return TRUE;
}

static Outcome *outcome_new(void)
{
    Outcome *outcome = g_new(Outcome, 1);
    *outcome =
        (Outcome){g_ptr_array_new_with_free_func(berth_busy_disk_free),
                  g_ptr_array_new_with_free_func(g_free), g_ptr_array_new_with_free_func(g_free)};
    return outcome;
}

static void outcome_free(gpointer data)
{
    Outcome *outcome = data;
    g_ptr_array_unref(outcome->busy);
    g_ptr_array_unref(outcome->gone);
    g_ptr_array_unref(outcome->whole);
    g_free(outcome);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Outcome, outcome_free)

/* FALSE: an outage. What cannot be removed is left for the next round. */
static gboolean try_to_remove(BerthStorage *storage, const Task *task, const char *name,
                              Outcome *outcome, GError **error)
{
    g_autoptr(GError) failed = NULL;
    if (remove_one(storage, task, name, &failed) || is_gone(failed)) {
        g_ptr_array_add(outcome->gone, g_strdup(name));
        return TRUE;
    }
    if (!is_in_use(failed))
        return go_on(name, g_steal_pointer(&failed), error);
    return task->kind != DISKS || note_busy(storage, name, outcome->busy, error);
}

static gboolean try_to_remove_import(BerthStorage *storage, const Task *task, const char *id,
                                     Outcome *outcome, GError **error)
{
    g_autoptr(GError) failed = NULL;
    gboolean is_whole = FALSE;
    if (!berth_storage_image_is_committed(storage, id, &is_whole, &failed))
        return go_on(id, g_steal_pointer(&failed), error);
    if (!is_whole)
        return try_to_remove(storage, task, id, outcome, error);
    g_ptr_array_add(outcome->whole, g_strdup(id));
    return TRUE;
}

static gpointer remove_names(BerthStorage *storage, gconstpointer input, GError **error)
{
    const Task *task = input;
    g_autoptr(Outcome) outcome = outcome_new();
    for (gsize i = 0; task->names[i]; i++)
        if (!try_to_remove(storage, task, task->names[i], outcome, error))
            return NULL;
    for (gsize i = 0; task->imports && task->imports[i]; i++)
        if (!try_to_remove_import(storage, task, task->imports[i], outcome, error))
            return NULL;
    return g_steal_pointer(&outcome);
}

static gpointer cut_off(BerthStorage *storage, gconstpointer input, GError **error)
{
    const Task *task = input;
    for (guint i = 0; i < task->dead->len; i++) {
        const BerthBusyDisk *disk = g_ptr_array_index(task->dead, i);
        g_autoptr(GError) failed = NULL;
        gboolean ok = berth_storage_fence(storage, (const char *const *)disk->clients, &failed) &&
                      berth_storage_disk_remove_with_checkpoints(storage, disk->disk_id, &failed);
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
    if (task.checkpoint_epoch != 0) /* it has a later epoch's name once it was restored */
        return id.epoch < task.checkpoint_epoch;
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
    if (collector->kind == CHECKPOINTS)
        return berth_checkpoints_is_dead(daemon->jobs, daemon->next_job, name);
    if (collector->kind == DISKS)
        return berth_collector_is_dead_disk(daemon->core, daemon->next_job, name);
    return is_dead_blob(collector, before, name);
}

static void warn_of_stranger(BerthCollector *collector, const char *id)
{
    if (!berth_image_table_has_id(collector->daemon->images, id) &&
        g_hash_table_add(collector->strangers, g_strdup(id))) {
        g_warning(
            "storage has an image %s that this state does not know: it was imported after the "
            "backup that the state came from, or by another berthd, or berthd was killed at the "
            "end of its import; it is kept, remove it yourself if nobody needs it",
            id);
    }
}

/* Nothing is left of GONE, and WHOLE are images of others. */
static void forget_images(BerthCollector *collector, const GPtrArray *gone, const GPtrArray *whole)
{
    const GPtrArray *lists[] = {gone, whole};
    BerthDaemon *daemon = collector->daemon;
    if (gone->len == 0 && whole->len == 0)
        return;
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    for (guint n = 0; n < G_N_ELEMENTS(lists); n++) {
        for (guint i = 0; i < lists[n]->len; i++) {
            const char *id = g_ptr_array_index(lists[n], i);
            berth_store_batch_remove_unwanted(berth_turn_batch(turn), id);
            berth_image_table_clear_unwanted(daemon->images, id);
        }
    }
    berth_turn_commit(turn);
    for (guint i = 0; i < whole->len; i++)
        warn_of_stranger(collector, g_ptr_array_index(whole, i));
}

/* Which checkpoints, disks or uploads are to go (transfer full). */
static char **judge(BerthCollector *collector, char **names)
{
    g_autoptr(GStrvBuilder) dead = g_strv_builder_new();
    g_autoptr(GHashTable) before = NULL;
    if (collector->kind == BLOBS) {
        before = g_steal_pointer(&collector->suspects);
        collector->suspects = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        berth_blob_guard_sweep(collector->daemon->blob_guard);
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
    if (berth_engine_is_stopped(collector->daemon->engine))
        return;
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
    g_autoptr(Outcome) outcome = berth_work_finish(result, &error);
    if (collector->kind == BLOBS)
        release_blobs(removing);
    if (error || berth_engine_is_stopped(collector->daemon->engine)) {
        end_round(collector, error);
    } else {
        g_info("removed up to %u %s(s) from storage that nobody needs", outcome->gone->len,
               kind_names[collector->kind]);
        if (collector->kind == IMAGES)
            forget_images(collector, outcome->gone, outcome->whole);
        end_removal(collector, outcome->busy);
    }
    g_strfreev(removing->names);
}

static void free_users(gpointer users)
{
    berth_disk_users_free(users);
}

/* By the names of checkpoints (transfer full, as are the names' copies). */
static GHashTable *find_users(BerthDaemon *daemon, char **names)
{
    GHashTable *all = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_users);
    for (gsize i = 0; names[i]; i++) {
        guint64 job = 0;
        guint32 task = 0, serial = 0;
        berth_checkpoint_id_parse(names[i], &job, &task, &serial, NULL);
        g_hash_table_insert(all, g_strdup(names[i]), berth_disk_users_new(daemon, job, task));
    }
    return all;
}

/* What of NAMES, as storage lists them, is to go; of images, what is noted, be it listed or not. */
static Task *plan_removal(BerthCollector *collector, char **names)
{
    BerthImageTable *images = collector->daemon->images;
    Task *task = task_new(collector);
    if (collector->kind == IMAGES) {
        for (gsize i = 0; names[i]; i++)
            warn_of_stranger(collector, names[i]);
        task->names = berth_image_table_list_unwanted(images, BERTH_UNWANTED_REMOVAL);
        task->imports = berth_image_table_list_unwanted(images, BERTH_UNWANTED_IMPORT);
    } else {
        task->names = judge(collector, names);
    }
    if (collector->kind == CHECKPOINTS)
        task->users = find_users(collector->daemon, task->names);
    return task;
}

static void on_listed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    BerthCollector *collector = user_data;
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) names = berth_work_finish(result, &error);
    if (!names || berth_engine_is_stopped(collector->daemon->engine)) {
        end_round(collector, error);
        return;
    }
    Task *task = plan_removal(collector, names);
    if (!task->names[0] && !(task->imports && task->imports[0])) {
        task_free(task);
        end_removal(collector, NULL);
        return;
    }
    Removing *removing = g_new(Removing, 1);
    *removing = (Removing){collector, g_strdupv(task->names)};
    berth_storage_link_run(collector->daemon->storage, BERTH_LANE_STORAGE_CLEAN, "collect garbage",
                           remove_names, task, task_free, outcome_free, on_removed, removing);
}

static void list(BerthCollector *collector)
{
    berth_storage_link_run(collector->daemon->storage, BERTH_LANE_STORAGE_CLEAN, "look for garbage",
                           list_names, task_new(collector), task_free, (GDestroyNotify)g_strfreev,
                           on_listed, collector);
}

void berth_collector_run(BerthCollector *collector)
{
    if (collector->is_running || berth_engine_is_stopped(collector->daemon->engine))
        return;
    collector->is_running = TRUE;
    collector->kind = CHECKPOINTS;
    list(collector);
}
