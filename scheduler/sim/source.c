/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the files that the simulator is given, and copies of those that cannot be read twice. */
#include "config.h"

#include "scheduler/sim/source.h"

#include "common/error.h"
#include "common/write.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK_BYTES (256u * 1024u)

struct SimSource {
    char *name;
    int fd;
    dev_t device;
    ino_t inode;
};

static gboolean fail(const SimSource *source, GError **error, int number)
{
    berth_set_error_errno(error, number, "cannot read %s", source->name);
    return FALSE;
}

static gboolean copy(const SimSource *source, int to, GError **error)
{
    g_autofree guint8 *block = g_malloc(BLOCK_BYTES);
    for (;;) {
        ssize_t n = read(source->fd, block, BLOCK_BYTES);
        if (n == 0)
            return TRUE;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return fail(source, error, errno);
        if (!berth_write_all(to, block, (gsize)n)) {
            berth_set_error_errno(error, errno, "cannot put %s by below %s", source->name,
                                  g_get_tmp_dir());
            return FALSE;
        }
    }
}

static gboolean put_by(SimSource *source, GError **error)
{
    g_autofree char *path = NULL;
    int fd = g_file_open_tmp("berth-sim-XXXXXX", &path, error);
    if (fd < 0) {
        g_prefix_error(error, "cannot put %s by: ", source->name);
        return FALSE;
    }
    (void)g_unlink(path);
    gboolean ok = copy(source, fd, error);
    (void)close(source->fd);
    source->fd = fd;
    return ok;
}

static gboolean take(SimSource *source, const char *path, GError **error)
{
    struct stat status;
    source->fd = g_str_equal(path, "-") ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                        : g_open(path, O_RDONLY | O_CLOEXEC);
    if (source->fd < 0 || fstat(source->fd, &status) < 0)
        return fail(source, error, errno);
    if (S_ISDIR(status.st_mode))
        return fail(source, error, EISDIR);
    source->device = status.st_dev;
    source->inode = status.st_ino;
    return S_ISREG(status.st_mode) || put_by(source, error);
}

SimSource *sim_source_new(const char *path, GError **error)
{
    g_autoptr(SimSource) source = g_new0(SimSource, 1);
    source->name = g_strdup(g_str_equal(path, "-") ? "standard input" : path);
    return take(source, path, error) ? g_steal_pointer(&source) : NULL;
}

void sim_source_free(SimSource *source)
{
    if (source == NULL)
        return;
    if (source->fd >= 0)
        (void)close(source->fd);
    g_free(source->name);
    g_free(source);
}

const char *sim_source_name(const SimSource *source)
{
    return source->name;
}

gboolean sim_source_is_same(const SimSource *a, const SimSource *b)
{
    return a->device == b->device && a->inode == b->inode;
}

int sim_source_open(const SimSource *source, GError **error)
{
    int fd = fcntl(source->fd, F_DUPFD_CLOEXEC, 0);
    if (fd >= 0 && lseek(fd, 0, SEEK_SET) == 0)
        return fd;
    fail(source, error, errno);
    if (fd >= 0)
        (void)close(fd);
    return -1;
}
