/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a file is written with another user's rights. Each write needs them, not only the open:
 * quotas and the blocks reserved for root go by who writes, and by CAP_SYS_RESOURCE. */
#include "config.h"

#include "scheduler/daemon/output_file.h"

#include "common/error.h"
#include "scheduler/daemon/user_rights.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct BerthOutputFile {
    int fd;
    char *path;
    BerthUserRights rights;
};

/* --- opening ------------------------------------------------------------------------------------ */

static gboolean open_plain(gpointer data)
{
    BerthOutputFile *file = data;
    file->fd = open(file->path, O_WRONLY | O_CREAT | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0644);
    return file->fd >= 0;
}

static gboolean empty(gpointer data)
{
    const BerthOutputFile *file = data;
    return ftruncate(file->fd, 0) == 0;
}

static gboolean check_kind(const BerthOutputFile *file, GError **error)
{
    struct stat info;
    if (fstat(file->fd, &info) == 0 && S_ISREG(info.st_mode))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "cannot write %s: it is not a regular file", file->path);
    return FALSE;
}

BerthOutputFile *berth_output_file_open(const char *path, uid_t uid, gid_t gid, const gid_t *groups,
                                        gsize n_groups, GError **error)
{
    g_autoptr(BerthOutputFile) file = g_new0(BerthOutputFile, 1);
    BerthUserRights *rights = &file->rights;
    file->fd = -1;
    file->path = g_strdup(path);
    berth_user_rights_init(rights, geteuid() != 0 && geteuid() == uid, uid, gid, groups, n_groups);
    if (!berth_user_rights_check(rights, path, error) ||
        !berth_user_rights_run(rights, open_plain, file, "write", path, error) ||
        !check_kind(file, error) ||
        !berth_user_rights_run(rights, empty, file, "empty", path, error))
        return NULL;
    return g_steal_pointer(&file);
}

/* --- writing ------------------------------------------------------------------------------------ */

typedef struct {
    int fd;
    GBytes *content;
} Write;

static gboolean write_all(gpointer user_data)
{
    const Write *job = user_data;
    gsize length = 0;
    const guint8 *data = g_bytes_get_data(job->content, &length);
    while (length > 0) {
        gssize written = write(job->fd, data, length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return FALSE;
        data += written;
        length -= (gsize)written;
    }
    return TRUE;
}

gboolean berth_output_file_write(BerthOutputFile *file, GBytes *content, GError **error)
{
    Write job = {file->fd, content};
    return berth_user_rights_run(&file->rights, write_all, &job, "write", file->path, error);
}

gboolean berth_output_file_close(BerthOutputFile *file, GError **error)
{
    gboolean is_closed = close(file->fd) == 0;
    if (!is_closed)
        berth_set_error_errno(error, errno, "cannot write %s", file->path);
    file->fd = -1;
    berth_output_file_free(file);
    return is_closed;
}

void berth_output_file_free(BerthOutputFile *file)
{
    if (file->fd >= 0)
        close(file->fd);
    g_free(file->path);
    berth_user_rights_clear(&file->rights);
    g_free(file);
}
