/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the connection over which the disk of a guest that lives is touched.
 *
 * A snapshot is made, and removed, by who has the exclusive lock of the image, which librbd asks of its owner, QEMU. When the
 * owner does not answer, librbd looks whether it watches the image; if it does not, librbd has it blocklisted, and takes the
 * lock. An owner that Ceph has lost sight of for 30 s watches no more, and lives (rbd_watchers.c): its guest would have lost its
 * disk. To look before the operation is not enough. Where Ceph stands still in the midst of it, and goes on, librbd and QEMU hear
 * of that in the same moment, and librbd may be the faster one.
 *
 * So librbd must not be able to do that: it is connected as a user without the right to add to the blocklist. Then it fails with
 * -EROFS, and the operation can be tried again. Who is gone for good is cut off by us, with the other connection
 * (berth_rbd_await_owner()). */
#include <errno.h>

#include "common/error.h"
#include "storage/rbd_internal.h"

/* For a second, an address that no client has: that is harmless for who may, and "profile rbd" says "add" alone. */
static const char *const CUT_OFF_NOBODY = "{\"prefix\": \"osd blocklist\", \"blocklistop\": "
                                          "\"add\", \"addr\": \"0.0.0.0:0/1\", \"expire\": 1.0}";

int berth_rbd_try_cut_off(rados_t cluster)
{
    char *output = NULL, *status = NULL;
    size_t output_bytes = 0, status_bytes = 0;
    const char *command[] = {CUT_OFF_NOBODY};
    int result = rados_mon_command(cluster, command, G_N_ELEMENTS(command), "", 0, &output,
                                   &output_bytes, &status, &status_bytes);
    rados_buffer_free(output);
    rados_buffer_free(status);
    return result;
}

static gboolean check_right(const BerthRbdStorage *self, GError **error)
{
    int result = berth_rbd_try_cut_off(self->live_cluster);
    if (result == -EACCES || result == -EPERM)
        return TRUE;
    if (result < 0) {
        berth_rbd_set_error(self, result, error, "cannot ask Ceph what client.%s may",
                            self->live_user);
        return FALSE;
    }
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "ceph_live_user: client.%s may cut off clients of Ceph, as librbd then would with "
                "guests: it must be a user of its own with mon 'allow r' and osd 'profile rbd "
                "pool=%s' alone, see berth-setup(7)",
                self->live_user, self->pool);
    return FALSE;
}

/* What librbd is refused later would look like a lock that cannot be had. */
static gboolean check_access(const BerthRbdStorage *self, GError **error)
{
    uint64_t bytes = 0;
    time_t modified = 0;
    int result = rados_stat(self->live, "rbd_directory", &bytes, &modified);
    if (result >= 0 || result == -ENOENT)
        return TRUE;
    if (result == -EPERM || result == -EACCES)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_PERMISSION_DENIED,
                    "ceph_live_user: client.%s lacks the right: it needs mon 'allow r' and osd "
                    "'profile rbd pool=%s' (see `ceph auth get client.%s`)",
                    self->live_user, self->pool, self->live_user);
    else
        berth_rbd_set_error(self, result, error, "cannot use Ceph pool %s as client.%s", self->pool,
                            self->live_user);
    return FALSE;
}

gboolean berth_rbd_live_open(BerthRbdStorage *self, GError **error)
{
    GError *why = NULL;
    if (berth_rbd_connect(self, self->live_user, BERTH_RBD_THREADS, &self->live_cluster, &why) <
        0) {
        if (why->code == BERTH_ERROR_PERMISSION_DENIED)
            g_prefix_error(&why,
                           "ceph_live_user (`ceph auth get-or-create client.%s mon 'allow r' osd "
                           "'profile rbd pool=%s'` makes it, and its key is to be on this host): ",
                           self->live_user, self->pool);
        g_propagate_error(error, why);
        return FALSE;
    }
    /* Else librbd would take locks without cutting off who has them. */
    int result = rados_conf_set(self->live_cluster, "rbd_blocklist_on_break_lock", "true");
    if (result >= 0)
        result = rados_ioctx_create(self->live_cluster, self->pool, &self->live);
    if (result < 0) {
        berth_rbd_set_error(self, result, error, "cannot open Ceph pool %s as client.%s",
                            self->pool, self->live_user);
        return FALSE;
    }
    rados_set_pool_full_try(self->live);
    return check_access(self, error) && check_right(self, error);
}

void berth_rbd_live_close(BerthRbdStorage *self)
{
    if (self->live != NULL)
        rados_ioctx_destroy(self->live);
    if (self->live_cluster != NULL)
        rados_shutdown(self->live_cluster);
}
