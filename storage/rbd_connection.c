/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a client of a Ceph cluster is configured and connected. Operations on objects wait for op_timeout_sec at most;
 * what librbd makes of several may wait for longer (rbd_removal.c). */
#include <errno.h>
#include <limits.h>

#include "common/error.h"
#include "storage/rbd_internal.h"

/* An operation without an answer makes Ceph's client ask for a newer cluster map only after
 * objecter_timeout. Were that later than the deadline of the operation, it would never learn that
 * an OSD came back at another address. */
static int set_timeouts(rados_t cluster, guint op_timeout_sec)
{
    const struct {
        const char *option;
        double seconds;
    } options[] = {
        {"rados_mon_op_timeout", op_timeout_sec},
        {"rados_osd_op_timeout", op_timeout_sec},
        {"client_mount_timeout", op_timeout_sec},
        {"objecter_timeout", MIN(op_timeout_sec / 4.0, 5)},
        {"objecter_tick_interval", MIN(op_timeout_sec / 8.0, 1)},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(options); i++) {
        char seconds[G_ASCII_DTOSTR_BUF_SIZE];
        g_ascii_formatd(seconds, sizeof seconds, "%.3g", options[i].seconds);
        int result = rados_conf_set(cluster, options[i].option, seconds);
        if (result < 0)
            return result;
    }
    return 0;
}

/* Of two, one that has opened an image wakes who waits for that, and then takes a lock of the image once more
 * (librbd/ImageState.cc in Ceph 16: complete_action_unlock). Meanwhile the image may be closed with the help of the other
 * one, and freed; what the first one finds then ends the process ("std::system_error: Invalid argument"). With a single one
 * an image is not closed before that has returned. */
static int set_threads(rados_t cluster, guint threads)
{
    char number[16];
    g_snprintf(number, sizeof number, "%u", threads);
    int result = rados_conf_set(cluster, "librados_thread_count", number);
    /* librbd raises the former to this. */
    return result < 0 ? result : rados_conf_set(cluster, "rbd_op_threads", number);
}

/* What is removed is to be gone, and not in RBD's trash, where it keeps its space, and its parent. Of two connections of one
 * process none is to fence the other. */
static int set_habits(rados_t cluster, gboolean is_second)
{
    int result = rados_conf_set(cluster, "rbd_move_to_trash_on_remove", "false");
    if (result < 0 || !is_second)
        return result;
    return rados_conf_set(cluster, "rbd_blocklist_on_break_lock", "false");
}

static int configure(const BerthRbdStorage *self, guint threads, rados_t cluster, GError **error)
{
    int result = rados_conf_read_file(cluster, self->ceph_conf);
    if (result < 0) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "cannot use %s: %s: it must be a ceph.conf", self->ceph_conf,
                    g_strerror(-result));
        return result;
    }
    result = set_timeouts(cluster, self->op_timeout_sec);
    if (result >= 0)
        result = set_threads(cluster, threads);
    if (result >= 0)
        result = set_habits(cluster, threads != BERTH_RBD_THREADS);
    if (self->keyring != NULL && result >= 0)
        result = rados_conf_set(cluster, "keyring", self->keyring);
    if (result < 0)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INTERNAL, "cannot configure Ceph's client: %s",
                    g_strerror(-result));
    return result;
}

/* What Ceph's client looks for is a list, of which the first that there is counts. NULL: there is one, or it is not known. */
static char *missing_keyrings(rados_t cluster)
{
    char list[PATH_MAX];
    if (rados_conf_get(cluster, "keyring", list, sizeof list) < 0 || *list == '\0')
        return NULL;
    g_auto(GStrv) paths = g_strsplit_set(list, ",; ", -1);
    for (char **path = paths; *path != NULL; path++)
        if (**path != '\0' && g_file_test(*path, G_FILE_TEST_EXISTS))
            return NULL;
    return g_strdup(list);
}

static void set_refused(const BerthRbdStorage *self, const char *user, rados_t cluster, int result,
                        const char *from, GError **error)
{
    g_autofree char *missing = missing_keyrings(cluster);
    if (missing != NULL)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_PERMISSION_DENIED,
                    "this host has no keyring for Ceph's client.%s: none of %s; `ceph auth get "
                    "client.%s` shows what is to be in it (berth-setup(7), STORAGE)",
                    user, missing, user);
    else
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_PERMISSION_DENIED,
                    "Ceph (%s) does not let client.%s in: %s: compare its key in %s with `ceph "
                    "auth get client.%s`",
                    self->ceph_conf, user, g_strerror(-result), from, user);
}

static int connect_client(const BerthRbdStorage *self, const char *user, rados_t cluster,
                          GError **error)
{
    int result = rados_connect(cluster);
    if (result >= 0)
        return result;
    g_autofree char *from = self->keyring != NULL
                                ? g_strdup_printf("keyring %s", self->keyring)
                                : g_strdup_printf("the keyring that %s names", self->ceph_conf);
    switch (-result) {
    case ENOENT:
    case EACCES:
    case EPERM:
    case EINVAL:
        set_refused(self, user, cluster, result, from, error);
        break;
    default:
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                    "cannot reach Ceph (%s, client.%s, %s) within %u s: %s: see `ceph -s -c %s -n "
                    "client.%s`",
                    self->ceph_conf, user, from, self->op_timeout_sec, g_strerror(-result),
                    self->ceph_conf, user);
    }
    return result;
}

int berth_rbd_connect(const BerthRbdStorage *self, const char *user, guint threads,
                      rados_t *out_cluster, GError **error)
{
    g_autofree char *name = g_strconcat("client.", user, NULL);
    int result = rados_create2(out_cluster, "ceph", name, 0);
    if (result < 0) {
        *out_cluster = NULL;
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INTERNAL, "cannot start Ceph's client: %s",
                    g_strerror(-result));
        return result;
    }
    result = configure(self, threads, *out_cluster, error);
    if (result >= 0)
        result = connect_client(self, user, *out_cluster, error);
    if (result < 0)
        rados_shutdown(g_steal_pointer(out_cluster));
    return result;
}

char *berth_rbd_address(rados_t cluster)
{
    char *addresses = NULL;
    if (rados_getaddrs(cluster, &addresses) < 0)
        return g_strdup("");
    char *copy = g_strdup(addresses);
    rados_buffer_free(addresses);
    return copy;
}

int berth_rbd_second_open(const BerthRbdStorage *self, BerthRbdSecond *second)
{
    int result = berth_rbd_connect(self, self->user, 2, &second->cluster, NULL);
    if (result < 0)
        return result;
    result = rados_ioctx_create(second->cluster, self->pool, &second->images);
    if (result >= 0)
        rados_set_pool_full_try(second->images);
    return result;
}

void berth_rbd_second_clear(BerthRbdSecond *second)
{
    if (second->images != NULL)
        rados_ioctx_destroy(g_steal_pointer(&second->images));
    if (second->cluster != NULL)
        rados_shutdown(g_steal_pointer(&second->cluster));
}
