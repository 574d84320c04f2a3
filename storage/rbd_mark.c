/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the mark of an "rbd" storage: one object, written whole by one operation. */
#include <errno.h>

#include "common/error.h"
#include "storage/rbd_internal.h"

#define MARK "mark"

GBytes *berth_rbd_mark_read(BerthStorage *storage, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    g_autofree char *data = g_malloc(BERTH_STORAGE_MARK_BYTES_MAX);
    int result = rados_read(self->marks, MARK, data, BERTH_STORAGE_MARK_BYTES_MAX, 0);
    if (result >= 0)
        return g_bytes_new_take(g_steal_pointer(&data), (gsize)result);
    berth_rbd_set_error(self, result, error, "cannot read the mark of Ceph pool %s", self->pool);
    return NULL;
}

gboolean berth_rbd_mark_write(BerthStorage *storage, GBytes *content, gboolean is_new,
                              GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    gsize length = 0;
    const char *data = g_bytes_get_data(content, &length);
    rados_write_op_t op = rados_create_write_op();
    if (is_new)
        rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
    rados_write_op_write_full(op, data, length);
    int result = rados_write_op_operate(op, self->marks, MARK, NULL, 0);
    rados_release_write_op(op);
    if (result >= 0)
        return TRUE;
    berth_rbd_set_error(self, result, error, "cannot write the mark of Ceph pool %s", self->pool);
    return FALSE;
}
