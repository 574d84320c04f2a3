/* SPDX-License-Identifier: Apache-2.0 */
/* Owns tmp/ of a "dir" storage, where things are made before they are renamed to their place and
 * where they go to be removed, and the file primitives of the other dir_*.c. Invariant: what has
 * a name outside tmp/ is complete and durable. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "common/error.h"
#include "storage/dir_internal.h"

#define STAGE_AGE_MAX_SEC (24 * 60 * 60)

static void close_dir(DIR *dir)
{
    closedir(dir);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(DIR, close_dir)

void berth_dir_set_error(const BerthDirStorage *self, int err, guint64 needed_bytes, GError **error,
                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    struct statvfs file_system;
    if ((err != ENOSPC && err != EDQUOT) || fstatvfs(self->fd, &file_system) != 0) {
        berth_set_error_errno(error, err, "%s", what);
        return;
    }
    const double block_mib = (double)file_system.f_frsize / (1024 * 1024);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                "%s: %s on the file system of %s: %.1f MiB needed, %.1f of %.1f MiB and "
                "%" G_GUINT64_FORMAT " inodes free: remove images that no job needs, or make it "
                "larger",
                what, g_strerror(err), self->path, (double)needed_bytes / (1024 * 1024),
                (double)file_system.f_bavail * block_mib, (double)file_system.f_blocks * block_mib,
                (guint64)file_system.f_favail);
}

gboolean berth_dir_pwrite_all(int fd, const guint8 *data, gsize length, guint64 offset)
{
    while (length > 0) {
        ssize_t written = pwrite(fd, data, length, (off_t)offset);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return FALSE;
        data += written;
        length -= (gsize)written;
        offset += (guint64)written;
    }
    return TRUE;
}

GBytes *berth_dir_pread(int fd, guint64 offset, gsize length)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return NULL;
    guint64 end = (guint64)status.st_size;
    length = (gsize)MIN(length, offset < end ? end - offset : 0);
    g_autofree guint8 *data = g_try_malloc(MAX(length, 1));
    if (data == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    gsize done = 0;
    while (done < length) {
        ssize_t got = pread(fd, data + done, length - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return NULL;
        if (got == 0)
            break;
        done += (gsize)got;
    }
    return g_bytes_new_take(g_steal_pointer(&data), done);
}

gboolean berth_dir_sync(const BerthDirStorage *self, const char *name)
{
    BERTH_DIR_AUTO_FD fd = openat(self->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 && fsync(fd) == 0;
}

static DIR *open_dir(int at_fd, const char *name)
{
    int fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (fd >= 0 && dir == NULL)
        close(fd);
    return dir;
}

static char *stage_name_new(void)
{
    g_autofree char *uuid = g_uuid_string_random();
    return g_build_filename("tmp", uuid, NULL);
}

char *berth_dir_stage_new(const BerthDirStorage *self)
{
    g_autofree char *stage = stage_name_new();
    /* QEMU, as another user, must get through whatever the umask is. */
    if (mkdirat(self->fd, stage, 0711) != 0 || fchmodat(self->fd, stage, 0711, 0) != 0)
        return NULL;
    return g_steal_pointer(&stage);
}

gboolean berth_dir_stage_commit(const BerthDirStorage *self, const char *stage, const char *parent,
                                const char *target)
{
    if (!berth_dir_sync(self, stage))
        return FALSE;
    /* A directory replaces an empty one only, and there are none: removal renames first. */
    if (renameat(self->fd, stage, self->fd, target) != 0) {
        if (errno == ENOTEMPTY)
            errno = EEXIST;
        return FALSE;
    }
    return berth_dir_sync(self, parent);
}

void berth_dir_stage_discard(const BerthDirStorage *self, const char *stage)
{
    g_autoptr(DIR) dir = open_dir(self->fd, stage);
    if (dir == NULL)
        return;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(dir), entry->d_name, 0);
    }
    unlinkat(self->fd, stage, AT_REMOVEDIR);
}

gboolean berth_dir_unstage(const BerthDirStorage *self, const char *parent, const char *target)
{
    g_autofree char *stage = stage_name_new();
    if (renameat(self->fd, target, self->fd, stage) != 0)
        return FALSE;
    gboolean is_synced = berth_dir_sync(self, parent);
    int err = errno;
    berth_dir_stage_discard(self, stage);
    errno = err;
    return is_synced;
}

/* When something was last written in STAGE, an entry of tmp/; G_MAXINT64 if that is unknown. */
static gint64 stage_written_sec(int tmp_fd, const char *stage)
{
    g_autoptr(DIR) dir = open_dir(tmp_fd, stage);
    if (dir == NULL)
        return G_MAXINT64;
    gint64 written_sec = 0; /* the entry "." is the stage itself */
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        struct stat status;
        if (strcmp(entry->d_name, "..") != 0 &&
            fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0)
            written_sec = MAX(written_sec, status.st_mtim.tv_sec);
    }
    return written_sec;
}

void berth_dir_stage_sweep(const BerthDirStorage *self)
{
    g_autoptr(DIR) dir = open_dir(self->fd, "tmp");
    if (dir == NULL)
        return;
    gint64 oldest_sec = g_get_real_time() / G_USEC_PER_SEC - STAGE_AGE_MAX_SEC;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (!berth_storage_name_is_valid(entry->d_name) ||
            stage_written_sec(dirfd(dir), entry->d_name) >= oldest_sec)
            continue;
        g_autofree char *stage = g_build_filename("tmp", entry->d_name, NULL);
        berth_dir_stage_discard(self, stage);
    }
}

gboolean berth_dir_list(const BerthDirStorage *self, const char *name, GPtrArray *names,
                        GError **error)
{
    g_autoptr(DIR) dir = open_dir(self->fd, name);
    if (dir == NULL) {
        berth_dir_set_error(self, errno, 0, error, "cannot list %s/%s", self->path, name);
        return FALSE;
    }
    errno = 0;
    for (struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        if (berth_storage_name_is_valid(entry->d_name))
            g_ptr_array_add(names, g_strdup(entry->d_name));
        errno = 0;
    }
    if (errno == 0)
        return TRUE;
    berth_dir_set_error(self, errno, 0, error, "cannot list %s/%s", self->path, name);
    return FALSE;
}
