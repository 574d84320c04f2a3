/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the opening and closing of a "dir" storage and its backend table. What it cannot do, it
 * says: clients of a directory have no addresses, so that nobody can be fenced. A directory on a
 * network file system that hangs makes calls hang: only what runs a program has a deadline. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "common/error.h"
#include "storage/dir_internal.h"

/* Disks and images are opened by QEMU, which may run as another user that knows their names;
 * nobody else has a business in blobs and logs. */
static const struct {
    const char *name;
    mode_t mode;
} folders[] = {
    {"images", 0711}, {"disks", 0711}, {"tmp", 0711}, {"blobs", 0700}, {"logs", 0700},
};

static void dir_free(BerthStorage *storage)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    if (self->fd >= 0)
        close(self->fd);
    g_free(self->path);
    g_free(self);
}

gboolean berth_dir_make_folders(const BerthDirStorage *self, GError **error)
{
    for (gsize i = 0; i < G_N_ELEMENTS(folders); i++) {
        if (mkdirat(self->fd, folders[i].name, folders[i].mode) == 0 &&
            fchmodat(self->fd, folders[i].name, folders[i].mode, 0) == 0)
            continue;
        struct stat status;
        if (errno == EEXIST && fstatat(self->fd, folders[i].name, &status, 0) == 0 &&
            !S_ISDIR(status.st_mode))
            errno = ENOTDIR;
        if (errno != EEXIST) {
            berth_dir_set_error(self, errno, 0, error, "cannot make the directory %s in %s",
                                folders[i].name, self->path);
            return FALSE;
        }
    }
    return TRUE;
}

static gboolean dir_check(BerthStorage *storage, GError **error)
{
    static const guint8 probe[] = "berth";
    BerthDirStorage *self = (BerthDirStorage *)storage;
    g_autofree char *stage = berth_dir_stage_new(self);
    if (stage == NULL) {
        berth_dir_set_error(self, errno, 0, error, "cannot write to storage in %s", self->path);
        return FALSE;
    }
    g_autofree char *name = g_build_filename(stage, "probe", NULL);
    BERTH_DIR_AUTO_FD fd = openat(self->fd, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    gboolean is_written =
        fd >= 0 && berth_dir_pwrite_all(fd, probe, sizeof probe, 0) && fsync(fd) == 0;
    g_autoptr(GBytes) read = is_written ? berth_dir_pread(fd, 0, sizeof probe) : NULL;
    int err = errno;
    berth_dir_stage_discard(self, stage);
    if (read == NULL) {
        berth_dir_set_error(self, err, sizeof probe, error, "cannot write to storage in %s",
                            self->path);
        return FALSE;
    }
    if (g_bytes_get_size(read) == sizeof probe &&
        memcmp(g_bytes_get_data(read, NULL), probe, sizeof probe) == 0)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
                "storage in %s does not return what was written: check its file system",
                self->path);
    return FALSE;
}

static gboolean dir_prepare(BerthStorage *storage, GError **error)
{
    const BerthDirStorage *self = (BerthDirStorage *)storage;
    if (!berth_dir_make_folders(self, error) || !dir_check(storage, error))
        return FALSE;
    berth_dir_stage_sweep(self);
    return TRUE;
}

static gboolean dir_room(BerthStorage *storage, guint64 *out_bytes, GError **error)
{
    const BerthDirStorage *self = (BerthDirStorage *)storage;
    struct statvfs file_system;
    if (fstatvfs(self->fd, &file_system) != 0) {
        berth_set_error_errno(error, errno, "cannot ask what the file system of %s has left",
                              self->path);
        return FALSE;
    }
    *out_bytes = (guint64)file_system.f_bavail * file_system.f_frsize;
    return TRUE;
}

static char *dir_client_address(BerthStorage *storage)
{
    return g_strdup("");
}

static gboolean dir_is_fenced(BerthStorage *storage)
{
    return FALSE;
}

static gboolean dir_is_worn(BerthStorage *storage)
{
    return FALSE;
}

static gboolean dir_fence(BerthStorage *storage, const char *const *addresses, GError **error)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED,
                "storage of kind 'dir' cannot cut a node off from %s: make sure that the node is "
                "down, or use storage of kind 'rbd'",
                ((BerthDirStorage *)storage)->path);
    return FALSE;
}

static gboolean dir_may_fence(BerthStorage *storage, GError **error)
{
    return TRUE;
}

static const BerthStorageBackend dir_backend = {
    .kind = "dir",
    .free = dir_free,
    .prepare = dir_prepare,
    .check = dir_check,
    .room = dir_room,
    .client_address = dir_client_address,
    .is_fenced = dir_is_fenced,
    .is_worn = dir_is_worn,
    .fence = dir_fence,
    .may_fence = dir_may_fence,
    .mark_read = berth_dir_mark_read,
    .mark_write = berth_dir_mark_write,
    .image_create = berth_dir_image_create,
    .image_write = berth_dir_image_write,
    .image_zero = berth_dir_image_zero,
    .image_commit = berth_dir_image_commit,
    .image_writer_free = berth_dir_image_writer_free,
    .image_is_committed = berth_dir_image_is_committed,
    .image_remove = berth_dir_image_remove,
    .image_list = berth_dir_image_list,
    .disk_create = berth_dir_disk_create,
    .disk_source = berth_dir_disk_source,
    .disk_remove = berth_dir_disk_remove,
    .disk_list = berth_dir_disk_list,
    .disk_clients = berth_dir_disk_clients,
    .blob_create = berth_dir_blob_create,
    .blob_append = berth_dir_blob_append,
    .blob_commit = berth_dir_blob_commit,
    .blob_writer_free = berth_dir_blob_writer_free,
    .blob_read_index = berth_dir_blob_read_index,
    .blob_read_data = berth_dir_blob_read_data,
    .blob_remove = berth_dir_blob_remove,
    .blob_list = berth_dir_blob_list,
    .log_write = berth_dir_log_write,
    .log_read = berth_dir_log_read,
    .log_size = berth_dir_log_size,
    .log_cut = berth_dir_log_cut,
    .logs_remove = berth_dir_logs_remove,
    .log_list = berth_dir_log_list,
};

BerthStorage *berth_dir_storage_connect(const BerthStorageConfig *config, GError **error)
{
    if (config->path == NULL || !g_path_is_absolute(config->path)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "storage of kind 'dir' needs 'path', an absolute path");
        return NULL;
    }
    g_autoptr(BerthStorage) storage = (BerthStorage *)g_new0(BerthDirStorage, 1);
    BerthDirStorage *self = (BerthDirStorage *)storage;
    storage->backend = &dir_backend;
    g_atomic_ref_count_init(&storage->refs);
    self->path = g_strdup(config->path);
    self->op_timeout_sec = config->op_timeout_sec;
    self->fd = open(self->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (self->fd < 0) {
        berth_set_error_errno(error, errno,
                              "cannot open the storage directory %s (make it, or mend 'path' in "
                              "group [storage])",
                              self->path);
        return NULL;
    }
    return g_steal_pointer(&storage);
}
