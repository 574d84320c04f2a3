/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the mark of a "dir" storage: a file that is made in tmp/ and then gets its name, so that it
 * is there as a whole or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

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

gboolean berth_dir_mark_write(BerthStorage *storage, GBytes *content, gboolean is_new,
                              GError **error)
{
    BerthDirStorage *self = (BerthDirStorage *)storage;
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
