/* SPDX-License-Identifier: Apache-2.0 */
/* Owns job disks of a "dir" storage: a qcow2 overlay beside a hard link to its image. */
#include <config.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "common/error.h"
#include "storage/dir_internal.h"

/* A new overlay takes no more. */
#define OVERLAY_BYTES ((guint64)1024 * 1024)

static char *disk_path(const char *disk_id)
{
    return g_build_filename("disks", disk_id, NULL);
}

static BerthDiskSource *disk_source_new(const BerthDirStorage *self, const char *disk_id)
{
    BerthDiskSource *source = g_new0(BerthDiskSource, 1);
    source->file_path = g_build_filename(self->path, "disks", disk_id, "disk.qcow2", NULL);
    source->file_format = g_strdup("qcow2");
    return source;
}

static gboolean link_image(const BerthDirStorage *self, const char *stage, const char *disk_id,
                           const char *image_id, guint64 size_bytes, GError **error)
{
    g_autofree char *image = g_build_filename("images", image_id, "image.raw", NULL);
    g_autofree char *base = g_build_filename(stage, "base.raw", NULL);
    struct stat status;
    if (linkat(self->fd, image, self->fd, base, 0) != 0 ||
        fstatat(self->fd, base, &status, 0) != 0) {
        if (errno == ENOENT)
            g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                        "cannot make disk %s: storage has no image %s", disk_id, image_id);
        else if (errno == EMLINK)
            g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                        "cannot make disk %s: image %s has as many disks as the file system of %s "
                        "allows hard links: wait for jobs to end, or use XFS",
                        disk_id, image_id, self->path);
        else
            berth_dir_set_error(self, errno, 0, error, "cannot make disk %s on image %s", disk_id,
                                image_id);
        return FALSE;
    }
    if (size_bytes >= (guint64)status.st_size)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "cannot make disk %s of %" G_GUINT64_FORMAT
                " bytes: image %s alone has %" G_GUINT64_FORMAT,
                disk_id, size_bytes, image_id, (guint64)status.st_size);
    return FALSE;
}

static gboolean make_overlay(const BerthDirStorage *self, const char *stage, guint64 size_bytes,
                             GError **error)
{
    g_autofree char *overlay = g_build_filename(self->path, stage, "disk.qcow2", NULL);
    g_autofree char *size = g_strdup_printf("%" G_GUINT64_FORMAT, size_bytes);
    const char *argv[] = {"qemu-img", "create",   "-q", "-f",    "qcow2", "-F", "raw",
                          "-b",       "base.raw", "--", overlay, size,    NULL};
    return berth_dir_run(self, argv, error);
}

/* Where a program failed, a full file system is the cause to name. */
static void explain_full(const BerthDirStorage *self, const char *disk_id, GError **error)
{
    struct statvfs file_system;
    if (error == NULL || !g_error_matches(*error, BERTH_ERROR, BERTH_ERROR_INTERNAL) ||
        fstatvfs(self->fd, &file_system) != 0 ||
        (guint64)file_system.f_bavail * file_system.f_frsize >= OVERLAY_BYTES)
        return;
    g_clear_error(error);
    berth_dir_set_error(self, ENOSPC, OVERLAY_BYTES, error, "cannot make disk %s", disk_id);
}

static gboolean make_disk(const BerthDirStorage *self, const char *stage, const char *disk_id,
                          const char *image_id, guint64 size_bytes, GError **error)
{
    if (!link_image(self, stage, disk_id, image_id, size_bytes, error))
        return FALSE;
    if (!make_overlay(self, stage, size_bytes, error)) {
        g_prefix_error(error, "cannot make disk %s in %s: ", disk_id, self->path);
        explain_full(self, disk_id, error);
        return FALSE;
    }
    g_autofree char *overlay = g_build_filename(stage, "disk.qcow2", NULL);
    g_autofree char *target = disk_path(disk_id);
    /* Its name can be guessed, and what is in it is its job's alone. Libvirt gives it to QEMU. */
    if (fchmodat(self->fd, overlay, 0600, 0) == 0 &&
        berth_dir_stage_commit(self, stage, "disks", target))
        return TRUE;
    if (errno == EEXIST)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS, "storage has a disk %s already",
                    disk_id);
    else
        berth_dir_set_error(self, errno, 0, error, "cannot make disk %s in %s", disk_id,
                            self->path);
    return FALSE;
}

BerthDiskSource *berth_dir_disk_create(BerthStorage *storage, const char *disk_id,
                                       const char *image_id, guint64 size_bytes, GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    g_autofree char *target = disk_path(disk_id);
    if (faccessat(self->fd, target, F_OK, 0) == 0) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS, "storage has a disk %s already",
                    disk_id);
        return NULL;
    }
    g_autofree char *stage = berth_dir_stage_new(self);
    if (stage == NULL) {
        berth_dir_set_error(self, errno, 0, error, "cannot make disk %s in %s", disk_id,
                            self->path);
        return NULL;
    }
    if (!make_disk(self, stage, disk_id, image_id, size_bytes, error)) {
        berth_dir_stage_discard(self, stage);
        return NULL;
    }
    return disk_source_new(self, disk_id);
}

BerthDiskSource *berth_dir_disk_source(BerthStorage *storage, const char *disk_id, GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    g_autofree char *name = g_build_filename("disks", disk_id, "disk.qcow2", NULL);
    if (faccessat(self->fd, name, F_OK, 0) == 0)
        return disk_source_new(self, disk_id);
    berth_dir_set_error(self, errno, 0, error, "cannot find disk %s in %s", disk_id, self->path);
    return NULL;
}

/* QEMU holds locks on a disk that it has open (its file.locking, "auto" by default), which other
 * hosts see too if the file system can lock. */
static gboolean is_open_elsewhere(const BerthDirStorage *self, const char *overlay)
{
    BERTH_DIR_AUTO_FD fd = openat(self->fd, overlay, O_RDWR | O_CLOEXEC);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

gboolean berth_dir_disk_remove(BerthStorage *storage, const char *disk_id,
                               gboolean with_checkpoints, GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    g_autofree char *target = disk_path(disk_id);
    g_autofree char *overlay = g_build_filename(target, "disk.qcow2", NULL);
    if (is_open_elsewhere(self, overlay)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "disk %s is in use: stop its guest first", disk_id);
        return FALSE;
    }
    if (berth_dir_unstage(self, "disks", target) || errno == ENOENT)
        return TRUE;
    berth_dir_set_error(self, errno, 0, error, "cannot remove disk %s from %s", disk_id,
                        self->path);
    return FALSE;
}

gboolean berth_dir_disk_list(BerthStorage *storage, GPtrArray *names, GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    berth_dir_stage_sweep(self);
    return berth_dir_list(self, "disks", names, error);
}

char **berth_dir_disk_clients(BerthStorage *storage, const char *disk_id, GError **error)
{
    g_autoptr(BerthDiskSource) source = berth_dir_disk_source(storage, disk_id, error);
    return source != NULL ? g_new0(char *, 1) : NULL;
}
