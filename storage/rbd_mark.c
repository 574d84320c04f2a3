/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the mark of an "rbd" storage: one object, written whole by one operation, which looks
 * at what was there, too. */
#include <errno.h>
#include <string.h>

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

/* Ceph's answer where the contents differ is below -MAX_ERRNO by the place of the first difference. */
static gboolean is_difference(int result)
{
    return result <= -4095;
}

/* What an object does not have counts as zeroes, and no mark ends in one: so the lengths are compared,
 * too. */
static void expect(rados_write_op_t op, GBytes *expected)
{
    char whole[BERTH_STORAGE_MARK_BYTES_MAX] = {0};
    gsize length = 0;
    const char *data = g_bytes_get_data(expected, &length);
    memcpy(whole, data, length);
    rados_write_op_assert_exists(op);
    rados_write_op_cmpext(op, whole, sizeof whole, 0, NULL);
}

gboolean berth_rbd_mark_write(BerthStorage *storage, GBytes *expected, GBytes *content,
                              GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    gsize length = 0;
    const char *data = g_bytes_get_data(content, &length);
    rados_write_op_t op = rados_create_write_op();
    if (expected != NULL)
        expect(op, expected);
    else
        rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
    rados_write_op_write_full(op, data, length);
    int result = rados_write_op_operate(op, self->marks, MARK, NULL, 0);
    rados_release_write_op(op);
    if (result >= 0)
        return TRUE;
    if (is_difference(result))
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "cannot write the mark of Ceph pool %s: it was changed meanwhile", self->pool);
    else
        berth_rbd_set_error(self, result, error, "cannot write the mark of Ceph pool %s",
                            self->pool);
    return FALSE;
}
