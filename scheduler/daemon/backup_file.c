/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the file that a copy of the state is written to. Who may have the state copied may not therefore write
 * wherever this process may, which can be everywhere: each system call has the rights of who asked.
 *
 * Invariant: a file under its own name is whole and durable, and was not there before. */
#include "config.h"

#include "scheduler/daemon/backup_file.h"

#include "common/error.h"
#include "common/write.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

struct BerthBackupFile {
    int fd;
    char *path;
    char *partial; /* where it is until it is published */
    gboolean is_published;
    const BerthUserRights *rights;
};

static gboolean sync_directory(gpointer data)
{
    const BerthBackupFile *file = data;
    return berth_sync_directory_of(file->path);
}

/* --- making ------------------------------------------------------------------------------------- */

static gboolean is_absent(gpointer data)
{
    const BerthBackupFile *file = data;
    struct stat info;
    gboolean is_there = lstat(file->path, &info) == 0;
    if (is_there)
        errno = EEXIST;
    return !is_there && errno == ENOENT;
}

/* Nobody else's file, and no link to one: O_EXCL. */
static gboolean create(gpointer data)
{
    BerthBackupFile *file = data;
    file->fd = open(file->partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    return file->fd >= 0;
}

static gboolean run(const BerthBackupFile *file, gboolean (*func)(gpointer data), gpointer data,
                    const char *what, GError **error)
{
    return berth_user_rights_run(file->rights, func, data, what, file->path, error);
}

/* Where others may write to the directory, the name may be somebody else's file by now. */
static gboolean is_partial(const BerthBackupFile *file)
{
    struct stat own, named;
    if (fstat(file->fd, &own) != 0 || lstat(file->partial, &named) != 0)
        return FALSE;
    errno = ESTALE;
    return own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

static gboolean remove_partial(gpointer data)
{
    const BerthBackupFile *file = data;
    return is_partial(file) && unlink(file->partial) == 0;
}

static gboolean make(BerthBackupFile *file, GError **error)
{
    g_autoptr(GError) local = NULL;
    if (!run(file, is_absent, file, "write a backup to", &local)) {
        if (g_error_matches(local, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS))
            g_prefix_error(&local, "name a file that there is not yet: ");
    } else if (!berth_user_rights_run(file->rights, create, file, "write a backup to",
                                      file->partial, &local)) {
        if (g_error_matches(local, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS))
            g_prefix_error(&local,
                           "a backup that was cut off is in the way, or one is being made: ");
        else if (g_error_matches(local, BERTH_ERROR, BERTH_ERROR_NOT_FOUND))
            g_prefix_error(&local, "the directory must exist: ");
    } else {
        /* Who cannot do that is told before all is copied. */
        run(file, sync_directory, file, "sync the directory of the backup", &local);
    }
    if (!local)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&local));
    return FALSE;
}

BerthBackupFile *berth_backup_file_new(const char *path, const BerthUserRights *rights,
                                       GError **error)
{
    if (!g_path_is_absolute(path)) {
        g_set_error(
            error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
            "cannot write a backup to \"%s\": name a file of berthd's host by its whole path",
            path);
        return NULL;
    }
    g_autoptr(BerthBackupFile) file = g_new0(BerthBackupFile, 1);
    file->fd = -1;
    file->path = g_strdup(path);
    file->partial = g_strconcat(path, ".partial", NULL);
    file->rights = rights;
    if (!berth_user_rights_check(rights, path, error) || !make(file, error))
        return NULL;
    return g_steal_pointer(&file);
}

/* --- writing ------------------------------------------------------------------------------------ */

gboolean berth_backup_file_check_room(BerthBackupFile *file, guint64 bytes, GError **error)
{
    struct statvfs room;
    if (fstatvfs(file->fd, &room) != 0) {
        berth_set_error_errno(error, errno, "cannot see how much room there is for %s", file->path);
        return FALSE;
    }
    guint64 free_bytes = (guint64)room.f_bavail * room.f_frsize;
    if (free_bytes >= bytes)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                "cannot write a backup to %s: the state has %" G_GUINT64_FORMAT
                " MiB, and %" G_GUINT64_FORMAT " MiB are free there; make room, or name another "
                "place",
                file->path, (bytes >> 20) + 1, free_bytes >> 20);
    return FALSE;
}

typedef struct {
    int fd;
    GBytes *content;
    guint64 offset;
} Write;

static gboolean write_all(gpointer user_data)
{
    const Write *job = user_data;
    gsize length = 0;
    const guint8 *data = g_bytes_get_data(job->content, &length);
    for (gsize done = 0; done < length;) {
        gssize written = pwrite(job->fd, data + done, length - done, (off_t)(job->offset + done));
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return FALSE;
        done += (gsize)written;
    }
    return TRUE;
}

gboolean berth_backup_file_write(BerthBackupFile *file, GBytes *content, guint64 offset,
                                 GError **error)
{
    Write job = {file->fd, content, offset};
    return run(file, write_all, &job, "write a backup to", error);
}

static gboolean sync_file(gpointer data)
{
    const BerthBackupFile *file = data;
    return fsync(file->fd) == 0;
}

gboolean berth_backup_file_sync(BerthBackupFile *file, GError **error)
{
    return run(file, sync_file, file, "write a backup to", error);
}

/* --- its name ----------------------------------------------------------------------------------- */

/* A file system that cannot rename without replacing can link, which never replaces, or neither. */
static gboolean take_name(gpointer data)
{
    const BerthBackupFile *file = data;
    if (!is_partial(file))
        return FALSE;
    if (renameat2(AT_FDCWD, file->partial, AT_FDCWD, file->path, RENAME_NOREPLACE) == 0)
        return TRUE;
    return errno == EINVAL && link(file->partial, file->path) == 0 && unlink(file->partial) == 0;
}

gboolean berth_backup_file_publish(BerthBackupFile *file, GError **error)
{
    if (!berth_backup_file_sync(file, error) ||
        !run(file, take_name, file, "give a backup the name", error))
        return FALSE;
    file->is_published = TRUE;
    return run(file, sync_directory, file, "sync the directory of the backup", error);
}

void berth_backup_file_free(BerthBackupFile *file)
{
    g_autoptr(GError) error = NULL;
    if (file->fd >= 0) {
        if (!file->is_published && !berth_user_rights_run(file->rights, remove_partial, file,
                                                          "remove", file->partial, &error))
            g_warning("a backup that was not completed stays: %s", error->message);
        close(file->fd);
    }
    g_free(file->path);
    g_free(file->partial);
    g_free(file);
}
