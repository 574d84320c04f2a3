/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a file is written with another user's rights. The identity of this thread alone is
 * changed, for the time of one system call or two: the file system identity, the supplementary
 * groups and the capabilities are Linux's per-thread attributes (setfsuid(2), capabilities(7); the
 * raw setgroups system call, as glibc's function changes all threads). Each write needs it, not only
 * the open: quotas and the blocks reserved for root go by who writes, and by CAP_SYS_RESOURCE.
 *
 * Invariant: when a function returns, its thread has the identity that it had before; if that
 * cannot be had back, the process ends. */
#include "config.h"

#include "scheduler/daemon/output_file.h"

#include "common/error.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GROUPS_MAX 65536

struct BerthOutputFile {
    int fd;
    char *path;
    gboolean is_own; /* of the user that this process runs as: nothing is to be changed */
    uid_t uid;
    gid_t gid;
    gid_t *groups;
    gsize n_groups;
};

typedef struct {
    struct __user_cap_data_struct capabilities[_LINUX_CAPABILITY_U32S_3];
    gid_t *groups;
    int n_groups;
    uid_t uid;
    gid_t gid;
} Identity;

/* --- the identity of this thread ---------------------------------------------------------------- */

static gboolean save_identity(Identity *own)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    own->groups = g_new(gid_t, GROUPS_MAX);
    own->n_groups = (int)syscall(SYS_getgroups, GROUPS_MAX, own->groups);
    own->uid = geteuid();
    own->gid = getegid();
    return own->n_groups >= 0 && syscall(SYS_capget, &header, own->capabilities) == 0;
}

static gboolean set_capabilities(const struct __user_cap_data_struct *capabilities)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    return syscall(SYS_capset, &header, capabilities) == 0;
}

/* The setters of the file system identity do not say whether they worked: asking again does. */
static gboolean take_identity(const BerthOutputFile *file, const Identity *own)
{
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_setgroups, file->n_groups, file->groups) != 0)
        return FALSE;
    setfsgid(file->gid);
    setfsuid(file->uid);
    for (gsize i = 0; i < G_N_ELEMENTS(none); i++) {
        none[i] = own->capabilities[i];
        none[i].effective = 0; /* what is permitted can be had back */
    }
    return (gid_t)setfsgid((gid_t)-1) == file->gid && (uid_t)setfsuid((uid_t)-1) == file->uid &&
           set_capabilities(none);
}

static void restore_identity(const Identity *own)
{
    gboolean has_capabilities = set_capabilities(own->capabilities);
    setfsuid(own->uid);
    setfsgid(own->gid);
    if (!has_capabilities || (uid_t)setfsuid((uid_t)-1) != own->uid ||
        (gid_t)setfsgid((gid_t)-1) != own->gid ||
        syscall(SYS_setgroups, (gsize)own->n_groups, own->groups) != 0)
        g_error("cannot take back this process's own identity after writing a user's file");
}

/* Runs FUNC, which says whether it worked by its return value and errno, as the user of FILE. */
static gboolean run_as_user(BerthOutputFile *file,
                            gboolean (*func)(BerthOutputFile *file, gpointer data), gpointer data,
                            const char *what, GError **error)
{
    Identity own = {0};
    gboolean is_user = file->is_own;
    if (!file->is_own) {
        if (!save_identity(&own)) {
            berth_set_error_errno(error, errno, "cannot read this process's identity");
            g_free(own.groups);
            return FALSE;
        }
        is_user = take_identity(file, &own);
    }
    gboolean is_done = is_user && func(file, data);
    int failed = errno;
    if (!file->is_own) {
        restore_identity(&own);
        g_free(own.groups);
    }
    if (!is_user) {
        berth_set_error_errno(error, failed, "cannot act as user %u to write %s", (guint)file->uid,
                              file->path);
    } else if (!is_done) {
        berth_set_error_errno(error, failed, "cannot %s %s", what, file->path);
    }
    return is_done;
}

/* --- opening ------------------------------------------------------------------------------------ */

static gboolean open_plain(BerthOutputFile *file, gpointer unused)
{
    file->fd = open(file->path, O_WRONLY | O_CREAT | O_NOCTTY | O_NONBLOCK | O_CLOEXEC, 0644);
    return file->fd >= 0;
}

static gboolean empty(BerthOutputFile *file, gpointer unused)
{
    return ftruncate(file->fd, 0) == 0;
}

static gboolean check_rights(const BerthOutputFile *file, GError **error)
{
    if (geteuid() == 0 || file->is_own)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_PERMISSION_DENIED,
                "cannot write %s for user %u: berthd does not run as root", file->path,
                (guint)file->uid);
    return FALSE;
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
    file->fd = -1;
    file->path = g_strdup(path);
    file->is_own = geteuid() != 0 && geteuid() == uid;
    file->uid = uid;
    file->gid = gid;
    file->groups = g_memdup2(groups, n_groups * sizeof *groups);
    file->n_groups = n_groups;
    if (!check_rights(file, error) || !run_as_user(file, open_plain, NULL, "write", error) ||
        !check_kind(file, error) || !run_as_user(file, empty, NULL, "empty", error))
        return NULL;
    return g_steal_pointer(&file);
}

/* --- writing ------------------------------------------------------------------------------------ */

static gboolean write_all(BerthOutputFile *file, gpointer content)
{
    gsize length = 0;
    const guint8 *data = g_bytes_get_data(content, &length);
    while (length > 0) {
        gssize written = write(file->fd, data, length);
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
    return run_as_user(file, write_all, content, "write", error);
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
    g_free(file->groups);
    g_free(file);
}
