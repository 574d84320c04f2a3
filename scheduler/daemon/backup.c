/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the backups of the state: who may have one, and its rounds. A round copies some MiB on a worker and makes them durable, so that
 * the disk never has much to write at once; between two the caller is told how far it has come, and it is seen whether anybody
 * still waits for it. How the state is copied while it is written to is the store's, how the file is made backup_file.c's.
 *
 * Invariant: a backup is its worker's while a round is under way, and the loop's between rounds. */
#include "config.h"

#include "scheduler/daemon/backup.h"

#include "common/error.h"
#include "scheduler/daemon/backup_file.h"

#include <unistd.h>

#define ROUND_BYTES (32u << 20)
/* Rounds one after the other, after each of which there was no less left to copy than before. */
#define BEHIND_MAX 10u

struct BerthBackups {
    BerthDaemon *daemon;
    gboolean is_running;
};

typedef struct {
    BerthBackups *backups;
    BerthRpcCall *call;
    char *path;
    BerthUserRights rights;
    BerthBackupFile *file;  /* NULL before the first round, and when it is over */
    BerthStoreBackup *copy; /* likewise */
    guint64 round_bytes;    /* in the round under way */
    BerthStoreBackupState state;
    guint64 left_pages; /* after the round before; 0 = there was none */
    guint n_behind;     /* rounds that it was not less after */
} Backup;

/* What a worker is given: it may change what this points to. */
typedef struct {
    Backup *backup;
} Round;

BerthBackups *berth_backups_new(BerthDaemon *daemon)
{
    BerthBackups *backups = g_new0(BerthBackups, 1);
    backups->daemon = daemon;
    return backups;
}

void berth_backups_free(BerthBackups *backups)
{
    g_free(backups);
}

static void backup_free(Backup *backup)
{
    backup->backups->is_running = FALSE;
    berth_user_rights_clear(&backup->rights);
    g_free(backup->path);
    g_free(backup);
}

/* --- on a worker -------------------------------------------------------------------------------- */

/* A file that was not published goes. */
static void let_go(Backup *backup)
{
    g_clear_pointer(&backup->copy, berth_store_backup_free);
    g_clear_pointer(&backup->file, berth_backup_file_free);
}

static gboolean write_piece(GBytes *content, guint64 offset, gpointer user_data, GError **error)
{
    Backup *backup = user_data;
    backup->round_bytes += g_bytes_get_size(content);
    return berth_backup_file_write(backup->file, content, offset, error);
}

static gboolean begin(Backup *backup, GError **error)
{
    backup->file = berth_backup_file_new(backup->path, &backup->rights, error);
    if (!backup->file)
        return FALSE;
    backup->copy = berth_store_backup_begin(backup->backups->daemon->store, error);
    /* The first piece says how large the state is. */
    return backup->copy &&
           berth_store_backup_step(backup->copy, write_piece, backup, &backup->state, error) &&
           berth_backup_file_check_room(backup->file,
                                        (backup->state.total_pages - backup->state.copied_pages) *
                                            backup->state.page_bytes,
                                        error);
}

/* More may come for ever than is copied. */
static gboolean check_progress(Backup *backup, GError **error)
{
    guint64 left_pages = backup->state.total_pages - backup->state.copied_pages;
    gboolean is_behind = backup->left_pages > 0 && left_pages >= backup->left_pages;
    backup->n_behind = is_behind ? backup->n_behind + 1 : 0;
    backup->left_pages = left_pages;
    if (backup->n_behind < BEHIND_MAX)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                "the state grows faster than it is written to %s: name a place that is faster, or "
                "try again when "
                "less is submitted",
                backup->path);
    return FALSE;
}

static gboolean go_on(Backup *backup, GError **error)
{
    backup->round_bytes = 0;
    if (!backup->file && !begin(backup, error))
        return FALSE;
    while (!backup->state.is_done && backup->round_bytes < ROUND_BYTES)
        if (!berth_store_backup_step(backup->copy, write_piece, backup, &backup->state, error))
            return FALSE;
    if (backup->state.is_done)
        return berth_backup_file_publish(backup->file, error);
    return check_progress(backup, error) && berth_backup_file_sync(backup->file, error);
}

static gpointer run_round(gconstpointer input, GCancellable *cancellable, GError **error)
{
    Backup *backup = ((const Round *)input)->backup;
    if (!go_on(backup, error) || backup->state.is_done)
        let_go(backup);
    return NULL;
}

static gpointer give_up(gconstpointer input, GCancellable *cancellable, GError **error)
{
    let_go(((const Round *)input)->backup);
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_CANCELLED,
                        "the backup was given up: nobody waits for it any more, or berthd ends");
    return NULL;
}

/* --- on the loop -------------------------------------------------------------------------------- */

static void on_round(GObject *source, GAsyncResult *result, gpointer user_data);

/* In the lane of what may be on any disk; the daemon's own turn, as nobody's output is to be waited for. */
static void work(Backup *backup, BerthWorkFunc func)
{
    Round *round = g_new(Round, 1);
    *round = (Round){backup};
    berth_workers_run(backup->backups->daemon->workers, BERTH_LANE_OUTPUT, "back up the state",
                      func, round, g_free, NULL, 0, on_round, backup);
}

static void tell(const Backup *backup)
{
    Berth__BackupProgress progress = BERTH__BACKUP_PROGRESS__INIT;
    progress.copied_pages = backup->state.copied_pages;
    progress.total_pages = backup->state.total_pages;
    progress.page_bytes = backup->state.page_bytes;
    progress.done = backup->state.is_done;
    if (progress.done || berth_rpc_call_has_room(backup->call))
        berth_rpc_call_send_item(backup->call, &progress.base);
}

static void finish(Backup *backup, const GError *error)
{
    if (error) {
        g_message("no backup of the state was made at %s: %s", backup->path, error->message);
        berth_rpc_call_fail(backup->call, error);
    } else {
        g_message("a backup of the state was made at %s (%" G_GUINT64_FORMAT " bytes), for %s",
                  backup->path, backup->state.total_pages * backup->state.page_bytes,
                  berth_rpc_call_identity(backup->call)->description);
        tell(backup);
        berth_rpc_call_end(backup->call);
    }
    backup_free(backup);
}

static void on_round(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Backup *backup = user_data;
    g_autoptr(GError) error = NULL;
    if (!berth_work_finish_empty(result, &error) || backup->state.is_done) {
        finish(backup, error);
    } else if (berth_rpc_call_is_cancelled(backup->call) ||
               berth_engine_is_stopped(backup->backups->daemon->engine)) {
        work(backup, give_up);
    } else {
        tell(backup);
        work(backup, run_round);
    }
}

static gboolean check(const BerthBackups *backups, const BerthRpcIdentity *who, GError **error)
{
    if (!berth_permission_check_operator(&backups->daemon->operators, who, "back up the state",
                                         error))
        return FALSE;
    if (!backups->is_running)
        return TRUE;
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                        "another backup of the state is being made: wait until it is done");
    return FALSE;
}

void berth_backups_make(BerthBackups *backups, const Berth__BackupRequest *request,
                        BerthRpcCall *call)
{
    const BerthRpcIdentity *who = berth_rpc_call_identity(call);
    g_autoptr(GError) error = NULL;
    if (!check(backups, who, &error)) {
        berth_rpc_call_fail(call, error);
        return;
    }
    Backup *backup = g_new0(Backup, 1);
    backup->backups = backups;
    backup->call = call;
    backup->path = g_strdup(request->path);
    berth_user_rights_init(&backup->rights, who->uid == geteuid(), who->uid, who->gid, who->groups,
                           who->n_groups);
    backups->is_running = TRUE;
    work(backup, run_round);
}
