/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how something is done with another user's rights. The identity of this thread alone is
 * changed, for the time of one system call or two: the file system identity, the supplementary
 * groups and the capabilities are Linux's per-thread attributes (setfsuid(2), capabilities(7); the
 * raw setgroups system call, as glibc's function changes all threads).
 *
 * Invariant: when a function returns, its thread has the identity that it had before; if that
 * cannot be had back, the process ends. */
#include "config.h"

#include "scheduler/daemon/user_rights.h"

#include "common/error.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#define GROUPS_MAX 65536

typedef struct {
    struct __user_cap_data_struct capabilities[_LINUX_CAPABILITY_U32S_3];
    gid_t *groups;
    int n_groups;
    uid_t uid;
    gid_t gid;
} Identity;

void berth_user_rights_init(BerthUserRights *rights, gboolean is_own, uid_t uid, gid_t gid,
                            const gid_t *groups, gsize n_groups)
{
    *rights = (BerthUserRights){.is_own = is_own, .uid = uid, .gid = gid, .n_groups = n_groups};
    rights->groups = g_memdup2(groups, n_groups * sizeof *groups);
}

void berth_user_rights_clear(BerthUserRights *rights)
{
    g_clear_pointer(&rights->groups, g_free);
}

gboolean berth_user_rights_check(const BerthUserRights *rights, const char *path, GError **error)
{
    if (geteuid() == 0 || rights->is_own)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_PERMISSION_DENIED,
                "cannot write %s for user %u: berthd does not run as root", path,
                (guint)rights->uid);
    return FALSE;
}

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
static gboolean take_identity(const BerthUserRights *rights, const Identity *own)
{
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];
    if (syscall(SYS_setgroups, rights->n_groups, rights->groups) != 0)
        return FALSE;
    setfsgid(rights->gid);
    setfsuid(rights->uid);
    for (gsize i = 0; i < G_N_ELEMENTS(none); i++) {
        none[i] = own->capabilities[i];
        none[i].effective = 0; /* what is permitted can be had back */
    }
    return (gid_t)setfsgid((gid_t)-1) == rights->gid && (uid_t)setfsuid((uid_t)-1) == rights->uid &&
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

gboolean berth_user_rights_run(const BerthUserRights *rights, gboolean (*func)(gpointer data),
                               gpointer data, const char *what, const char *path, GError **error)
{
    Identity own = {0};
    gboolean is_user = rights->is_own;
    if (!rights->is_own) {
        if (!save_identity(&own)) {
            berth_set_error_errno(error, errno, "cannot read this process's identity");
            g_free(own.groups);
            return FALSE;
        }
        is_user = take_identity(rights, &own);
    }
    gboolean is_done = is_user && func(data);
    int failed = errno;
    if (!rights->is_own) {
        restore_identity(&own);
        g_free(own.groups);
    }
    if (!is_user) {
        berth_set_error_errno(error, failed, "cannot act as user %u to write %s",
                              (guint)rights->uid, path);
    } else if (!is_done) {
        berth_set_error_errno(error, failed, "cannot %s %s", what, path);
    }
    return is_done;
}
