/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the mark of a "dir" storage: a file that is made in tmp/ and then gets its name, so that it
 * is there as a whole or not at all. The file is its own lock: who replaces it holds a lock of it from
 * before it looks at the content until another file has the name. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/error.h"
#include "storage/dir_internal.h"

#define MARK "mark"

GBytes *berth_dir_mark_read(BerthStorage *storage, GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    BERTH_DIR_AUTO_FD fd = openat(self->fd, MARK, O_RDONLY | O_CLOEXEC);
    GBytes *content = fd >= 0 ? berth_dir_pread(fd, 0, BERTH_STORAGE_MARK_BYTES_MAX) : NULL;
    if (content == NULL)
        berth_dir_set_error(self, errno, 0, error, "cannot read %s/%s", self->path, MARK);
    return content;
}

static gboolean write_file(const BerthDirStorage *self, const char *name, GBytes *content)
{
    gsize length = 0;
    const guint8 *data = g_bytes_get_data(content, &length);
    BERTH_DIR_AUTO_FD fd = openat(self->fd, name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
    return fd >= 0 && berth_dir_pwrite_all(fd, data, length, 0) && fsync(fd) == 0;
}

/* A link is refused where there is a file, which a rename would replace. */
static gboolean put_in_place(const BerthDirStorage *self, const char *name, gboolean is_new)
{
    int result = is_new ? linkat(self->fd, name, self->fd, MARK, 0)
                        : renameat(self->fd, name, self->fd, MARK);
    return result == 0 && berth_dir_sync(self, ".");
}

static gboolean write_mark(const BerthDirStorage *self, GBytes *content, gboolean is_new,
                           GError **error)
{
    g_autofree char *stage = berth_dir_stage_new(self);
    gboolean is_written = FALSE;
    int err = errno;
    if (stage != NULL) {
        g_autofree char *name = g_build_filename(stage, MARK, NULL);
        is_written = write_file(self, name, content) && put_in_place(self, name, is_new);
        err = errno;
        berth_dir_stage_discard(self, stage);
    }
    if (!is_written)
        berth_dir_set_error(self, err, g_bytes_get_size(content), error, "cannot write %s/%s",
                            self->path, MARK);
    return is_written;
}

/* --- replacing ------------------------------------------------------------------------------- */

static gboolean lock(int fd)
{
    int result = flock(fd, LOCK_EX);
    while (result != 0 && errno == EINTR)
        result = flock(fd, LOCK_EX);
    return result == 0;
}

/* Has FD's file the mark's name? -1: errno. */
static int is_mark(const BerthDirStorage *self, int fd)
{
    struct stat own, named;
    if (fstat(fd, &own) != 0 || fstatat(self->fd, MARK, &named, AT_SYMLINK_NOFOLLOW) != 0)
        return -1;
    return own.st_dev == named.st_dev && own.st_ino == named.st_ino;
}

/* A descriptor of the mark's file with the lock of it. The file that was waited for may have been
 * replaced: then it is the next one's turn. -1: errno. */
static int open_locked(const BerthDirStorage *self)
{
    for (;;) {
        /* For writing: without it a network file system gives no exclusive lock. */
        int fd = openat(self->fd, MARK, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
        int is_held = fd >= 0 && lock(fd) ? is_mark(self, fd) : -1;
        if (is_held > 0)
            return fd;
        int err = errno;
        if (fd >= 0)
            close(fd);
        errno = err;
        if (is_held < 0)
            return -1;
    }
}

static gboolean replace_mark(const BerthDirStorage *self, GBytes *expected, GBytes *content,
                             GError **error)
{
    BERTH_DIR_AUTO_FD fd = open_locked(self);
    g_autoptr(GBytes) present =
        fd >= 0 ? berth_dir_pread(fd, 0, BERTH_STORAGE_MARK_BYTES_MAX) : NULL;
    if (present == NULL) {
        berth_dir_set_error(self, errno, 0, error, "cannot read and lock %s/%s", self->path, MARK);
        return FALSE;
    }
    if (g_bytes_equal(present, expected))
        return write_mark(self, content, FALSE, error);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                "cannot write %s/%s: it was changed meanwhile", self->path, MARK);
    return FALSE;
}

/* The first thing in a new storage is its mark, which needs the folder where it is made. */
gboolean berth_dir_mark_write(BerthStorage *storage, GBytes *expected, GBytes *content,
                              GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
    if (expected != NULL)
        return replace_mark(self, expected, content, error);
    return berth_dir_make_folders(self, error) && write_mark(self, content, TRUE, error);
}
