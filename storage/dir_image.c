/* SPDX-License-Identifier: Apache-2.0 */
/* Owns images of a "dir" storage: sparse, read-only raw files. */
#include <config.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "common/error.h"
#include "storage/dir_internal.h"

typedef struct {
    BerthImageWriter base;
    char *stage;
    int fd;
} DirImageWriter;

static BerthDirStorage *storage_of(BerthImageWriter *writer)
{
    return (BerthDirStorage *)writer->storage;
}

static char *image_path(const char *image_id)
{
    return g_build_filename("images", image_id, NULL);
}

static gboolean refuse_existing(const char *image_id, GError **error)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS, "storage has an image %s already",
                image_id);
    return FALSE;
}

BerthImageWriter *berth_dir_image_create(BerthStorage *storage, const char *image_id,
                                         guint64 size_bytes, GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    g_autofree char *target = image_path(image_id);
    if (faccessat(self->fd, target, F_OK, 0) == 0) {
        refuse_existing(image_id, error);
        return NULL;
    }
    g_autofree char *stage = berth_dir_stage_new(self);
    g_autofree char *name = stage != NULL ? g_build_filename(stage, "image.raw", NULL) : NULL;
    int fd = -1;
    if (name != NULL)
        fd = openat(self->fd, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, (off_t)size_bytes) != 0) {
        berth_dir_set_error(self, errno, size_bytes, error,
                            "cannot make a file of %" G_GUINT64_FORMAT " bytes for image %s in %s",
                            size_bytes, image_id, self->path);
        if (fd >= 0)
            close(fd);
        if (stage != NULL)
            berth_dir_stage_discard(self, stage);
        return NULL;
    }
    DirImageWriter *writer = g_new0(DirImageWriter, 1);
    writer->stage = g_steal_pointer(&stage);
    writer->fd = fd;
    return &writer->base;
}

gboolean berth_dir_image_write(BerthImageWriter *base, guint64 offset, const guint8 *data,
                               gsize length, GError **error)
{
    DirImageWriter *writer = (DirImageWriter *)base;
    if (berth_dir_pwrite_all(writer->fd, data, length, offset))
        return TRUE;
    berth_dir_set_error(storage_of(base), errno, length, error, "cannot write image %s",
                        base->image_id);
    return FALSE;
}

/* Where holes cannot be punched, zeroes are written. */
static gboolean write_zeroes(int fd, guint64 offset, gsize length)
{
    static const guint8 zeroes[64 * 1024];
    for (gsize done = 0; done < length;) {
        gsize part = MIN(length - done, sizeof zeroes);
        if (!berth_dir_pwrite_all(fd, zeroes, part, offset + done))
            return FALSE;
        done += part;
    }
    return TRUE;
}

gboolean berth_dir_image_zero(BerthImageWriter *base, guint64 offset, gsize length, GError **error)
{
    DirImageWriter *writer = (DirImageWriter *)base;
    if (fallocate(writer->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
                  (off_t)length) == 0)
        return TRUE;
    if (errno == EOPNOTSUPP && write_zeroes(writer->fd, offset, length))
        return TRUE;
    berth_dir_set_error(storage_of(base), errno, length, error, "cannot write image %s",
                        base->image_id);
    return FALSE;
}

gboolean berth_dir_image_commit(BerthImageWriter *base, GError **error)
{
    DirImageWriter *writer = (DirImageWriter *)base;
    BerthDirStorage *self = storage_of(base);
    g_autofree char *target = image_path(base->image_id);
    if (fchmod(writer->fd, 0444) == 0 && fsync(writer->fd) == 0 &&
        berth_dir_stage_commit(self, writer->stage, "images", target))
        return TRUE;
    if (errno == EEXIST)
        return refuse_existing(base->image_id, error);
    berth_dir_set_error(self, errno, 0, error, "cannot store image %s in %s", base->image_id,
                        self->path);
    return FALSE;
}

void berth_dir_image_writer_free(BerthImageWriter *base)
{
    DirImageWriter *writer = (DirImageWriter *)base;
    close(writer->fd);
    if (!base->is_committed)
        berth_dir_stage_discard(storage_of(base), writer->stage);
    g_free(writer->stage);
    g_free(writer);
}

/* The name of a disk that depends on the image with this inode, or NULL (transfer full). */
static char *find_dependent(const BerthDirStorage *self, ino_t inode)
{
    g_autoptr(GPtrArray) disks = g_ptr_array_new_with_free_func(g_free);
    if (!berth_dir_list(self, "disks", disks, NULL))
        return NULL;
    for (guint i = 0; i < disks->len; i++) {
        const char *disk = g_ptr_array_index(disks, i);
        g_autofree char *name = g_build_filename("disks", disk, "base.raw", NULL);
        struct stat status;
        if (fstatat(self->fd, name, &status, 0) == 0 && status.st_ino == inode)
            return g_strdup(disk);
    }
    return NULL;
}

gboolean berth_dir_image_is_committed(BerthStorage *storage, const char *image_id,
                                      gboolean *out_committed, GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    g_autofree char *target = image_path(image_id);
    gboolean is_there = faccessat(self->fd, target, F_OK, 0) == 0;
    if (!is_there && errno != ENOENT) {
        berth_dir_set_error(self, errno, 0, error, "cannot look at image %s", image_id);
        return FALSE;
    }
    *out_committed = is_there;
    return TRUE;
}

/* A disk that is made between the look at the link count and the removal does no harm: its hard
 * link keeps the content. */
gboolean berth_dir_image_remove(BerthStorage *storage, const char *image_id, GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    g_autofree char *target = image_path(image_id);
    g_autofree char *name = g_build_filename(target, "image.raw", NULL);
    struct stat status = {.st_nlink = 0};
    /* Without its file it is a damaged one, that is to go all the same. */
    if (fstatat(self->fd, name, &status, 0) != 0 && errno != ENOENT) {
        berth_dir_set_error(self, errno, 0, error, "cannot remove image %s", image_id);
        return FALSE;
    }
    if (status.st_nlink > 1) {
        g_autofree char *disk = find_dependent(self, status.st_ino);
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "image %s is in use by %" G_GUINT64_FORMAT " disks, %s among them: wait for "
                    "its jobs to end, or cancel them",
                    image_id, (guint64)status.st_nlink - 1,
                    disk != NULL ? disk : "one that is being made or removed");
        return FALSE;
    }
    if (berth_dir_unstage(self, "images", target))
        return TRUE;
    berth_dir_set_error(self, errno, 0, error, "cannot remove image %s", image_id);
    return FALSE;
}

gboolean berth_dir_image_list(BerthStorage *storage, GPtrArray *names, GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    berth_dir_stage_sweep(self);
    return berth_dir_list(self, "images", names, error);
}
