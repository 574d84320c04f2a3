/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a result gets into the file that the user names. Nothing is changed before
 * sim_output_write(): a simulation that fails leaves what was there; or before sim_output_stream(). */
#include "config.h"

#include "scheduler/sim/output.h"

#include "common/error.h"
#include "common/write.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MAX 40 /* as the kernel follows */
#define MODE_MASK 07777u

struct SimOutput {
    char *option, *path;
    char *target; /* the file to replace */
    mode_t mode;  /* that it gets */
    int fd;       /* of what is written through; -1: TARGET is replaced */
};

static gboolean fail(const SimOutput *output, int number, GError **error)
{
    berth_set_error_errno(error, number, "%s %s", output->option, output->path);
    return FALSE;
}

/* The end of the symbolic links from PATH on, which need not exist; NULL: errno says why. (transfer
 * full) */
static char *follow(const char *path)
{
    g_autofree char *at = g_strdup(path);
    for (guint i = 0; i < LINKS_MAX; i++) {
        char to[PATH_MAX];
        ssize_t n = readlink(at, to, sizeof to - 1);
        if (n < 0)
            return errno == EINVAL || errno == ENOENT ? g_steal_pointer(&at) : NULL;
        to[n] = '\0';
        g_autofree char *dir = g_path_get_dirname(at);
        g_free(at);
        at = to[0] == '/' ? g_strdup(to) : g_build_filename(dir, to, NULL);
    }
    errno = ELOOP;
    return NULL;
}

static mode_t mode_of_new(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* /dev/stdout of a shell's redirection: to replace that file would lose what else goes there. */
static gboolean is_stdout(const struct stat *info)
{
    struct stat out;
    return fstat(STDOUT_FILENO, &out) == 0 && out.st_dev == info->st_dev &&
           out.st_ino == info->st_ino;
}

static gboolean prepare(SimOutput *output, GError **error)
{
    struct stat info;
    gboolean exists = stat(output->path, &info) == 0;
    if (!exists && errno != ENOENT)
        return fail(output, errno, error);
    if (exists && is_stdout(&info)) {
        output->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
        return output->fd >= 0 || fail(output, errno, error);
    }
    if (exists && !S_ISREG(info.st_mode)) {
        output->fd = open(output->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return output->fd >= 0 || fail(output, errno, error);
    }
    output->mode = exists ? info.st_mode & MODE_MASK : mode_of_new();
    output->target = follow(output->path);
    if (output->target == NULL || (exists && access(output->target, W_OK) != 0))
        return fail(output, errno, error);
    g_autofree char *dir = g_path_get_dirname(output->target);
    return access(dir, W_OK | X_OK) == 0 || fail(output, errno, error);
}

SimOutput *sim_output_open(const char *option, const char *path, GError **error)
{
    g_autoptr(SimOutput) output = g_new0(SimOutput, 1);
    output->option = g_strdup(option);
    output->path = g_strdup(path);
    output->fd = -1;
    return prepare(output, error) ? g_steal_pointer(&output) : NULL;
}

void sim_output_close(SimOutput *output)
{
    if (output == NULL)
        return;
    if (output->fd >= 0)
        close(output->fd);
    g_free(output->target);
    g_free(output->path);
    g_free(output->option);
    g_free(output);
}

/* FALSE: errno says why. A file that could not be written whole is gone again. */
static gboolean replace(const SimOutput *output, const char *text)
{
    g_autofree char *dir = g_path_get_dirname(output->target);
    g_autofree char *beside = g_build_filename(dir, ".berth-sim.XXXXXX", NULL);
    int fd = g_mkstemp_full(beside, O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0)
        return FALSE;
    gboolean ok =
        berth_write_all(fd, text, strlen(text)) && fchmod(fd, output->mode) == 0 && fsync(fd) == 0;
    int number = errno;
    if (close(fd) != 0 && ok) {
        number = errno;
        ok = FALSE;
    }
    if (ok && rename(beside, output->target) == 0)
        return TRUE;
    errno = ok ? errno : number;
    number = errno;
    g_unlink(beside);
    errno = number;
    return FALSE;
}

FILE *sim_output_stream(SimOutput *output, GError **error)
{
    int fd = output->fd >= 0
                 ? fcntl(output->fd, F_DUPFD_CLOEXEC, 0)
                 : open(output->target, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, output->mode);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (file == NULL)
        fail(output, errno, error);
    if (file == NULL && fd >= 0)
        (void)close(fd);
    return file;
}

gboolean sim_output_write(SimOutput *output, const char *text, GError **error)
{
    gboolean ok =
        output->fd >= 0 ? berth_write_all(output->fd, text, strlen(text)) : replace(output, text);
    return ok || fail(output, errno, error);
}

gboolean sim_output_make_dir(const char *option, const char *dir, GError **error)
{
    int number = g_mkdir(dir, 0777) == 0 ? 0 : errno;
    if (number == EEXIST && g_file_test(dir, G_FILE_TEST_IS_DIR))
        number = g_access(dir, W_OK | X_OK) == 0 ? 0 : errno;
    if (number == 0)
        return TRUE;
    number = number == EEXIST ? ENOTDIR : number;
    berth_set_error_errno(error, number, "%s: cannot write into the directory %s", option, dir);
    return FALSE;
}
