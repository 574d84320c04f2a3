/* SPDX-License-Identifier: Apache-2.0 */
/* Owns logs of a "dir" storage: plain files, written in place at explicit offsets. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/error.h"
#include "storage/dir_internal.h"

static char *log_path(const char *log_id)
{
    return g_build_filename("logs", log_id, NULL);
}

/* Opens or makes the log; a new name is durable when this returns. */
static int open_for_writing(const BerthDirStorage *self, const char *name)
{
    int fd = openat(self->fd, name, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 || errno != ENOENT)
        return fd;
    fd = openat(self->fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || berth_dir_sync(self, "logs"))
        return fd;
    int err = errno;
    close(fd);
    errno = err;
    return -1;
}

gboolean berth_dir_log_write(BerthStorage *storage, const char *log_id, guint64 offset,
                             const guint8 *data, gsize length, GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    g_autofree char *name = log_path(log_id);
    BERTH_DIR_AUTO_FD fd = open_for_writing(self, name);
    if (fd >= 0 && berth_dir_pwrite_all(fd, data, length, offset) && fdatasync(fd) == 0)
        return TRUE;
    berth_dir_set_error(self, errno, length, error, "cannot write log %s in %s", log_id,
                        self->path);
    return FALSE;
}

GBytes *berth_dir_log_read(BerthStorage *storage, const char *log_id, guint64 offset, gsize length,
                           GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    g_autofree char *name = log_path(log_id);
    BERTH_DIR_AUTO_FD fd = openat(self->fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return g_bytes_new(NULL, 0);
    GBytes *bytes = fd >= 0 ? berth_dir_pread(fd, offset, length) : NULL;
    if (bytes == NULL)
        berth_dir_set_error(self, errno, 0, error, "cannot read log %s in %s", log_id, self->path);
    return bytes;
}

gboolean berth_dir_log_size(BerthStorage *storage, const char *log_id, guint64 *out_bytes,
                            GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    g_autofree char *name = log_path(log_id);
    struct stat status = {.st_size = 0};
    if (fstatat(self->fd, name, &status, 0) != 0 && errno != ENOENT) {
        berth_dir_set_error(self, errno, 0, error, "cannot read log %s in %s", log_id, self->path);
        return FALSE;
    }
    *out_bytes = (guint64)status.st_size;
    return TRUE;
}

gboolean berth_dir_log_cut(BerthStorage *storage, const char *log_id, guint64 size_bytes,
                           GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    g_autofree char *name = log_path(log_id);
    BERTH_DIR_AUTO_FD fd = openat(self->fd, name, O_WRONLY | O_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)size_bytes) == 0 && fsync(fd) == 0)
        return TRUE;
    berth_dir_set_error(self, errno, 0, error, "cannot cut log %s in %s", log_id, self->path);
    return FALSE;
}

static gboolean remove_log(BerthDirStorage *self, const char *log_id, GError **error)
{
    g_autofree char *name = log_path(log_id);
    if (unlinkat(self->fd, name, 0) == 0 || errno == ENOENT)
        return TRUE;
    berth_dir_set_error(self, errno, 0, error, "cannot remove log %s from %s", log_id, self->path);
    return FALSE;
}

gboolean berth_dir_logs_remove(BerthStorage *storage, const char *const *log_ids, gsize n_logs,
                               GError **error)
{
    for (gsize i = 0; i < n_logs; i++)
        if (!remove_log((BerthDirStorage *)storage, log_ids[i], error))
            return FALSE;
    return TRUE;
}

gboolean berth_dir_log_list(BerthStorage *storage, GPtrArray *names, GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    berth_dir_stage_sweep(self);
    return berth_dir_list(self, "logs", names, error);
}
