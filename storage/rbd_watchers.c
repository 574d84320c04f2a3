/* SPDX-License-Identifier: Apache-2.0 */
/* Owns who has an RBD image open. An OSD forgets a client that is gone after 30 s, but for one that was gone before the OSD was
 * done with noting that it watches: there is no connection any more whose end would begin these 30 s
 * (PrimaryLogPG::do_osd_op_effects() in Ceph 16; tracker.ceph.com issue 58120), and cutting the client off does not end such a
 * watch either. librbd does not remove what is watched. The OSD looks at it again when it reads the header anew: after it had
 * dropped the header from its cache of each placement group's latest objects. In a pool in which much is going on that takes
 * moments, in another one it takes for ever.
 *
 * So where an image is watched, the OSD is asked for as many other objects of the header's placement group as it keeps there,
 * none of which exists, and then for the watchers again. A header that is watched by a client with a connection stays in the
 * cache, and the client watches on. */
#include <errno.h>

#include "storage/rbd_internal.h"

#define WATCHERS_MAX 64u
/* Of osd_pg_object_context_cache_count, 64 by default, some times as many: others ask for objects, too. */
#define OTHERS 256u

static int list(rbd_image_t image, GPtrArray *addresses)
{
    rbd_image_watcher_t watchers[WATCHERS_MAX];
    size_t count = WATCHERS_MAX;
    int result = rbd_watchers_list(image, watchers, &count);
    if (result < 0)
        return result;
    for (size_t i = 0; i < count; i++) {
        if (!g_ptr_array_find_with_equal_func(addresses, watchers[i].addr, g_str_equal, NULL))
            g_ptr_array_add(addresses, g_strdup(watchers[i].addr));
    }
    rbd_watchers_list_cleanup(watchers, count);
    return 0;
}

/* For an object that does not exist. Only what may be written is looked up so that it is kept in the cache, and nothing is. */
static int ask_for(rados_ioctx_t others, guint number, rados_completion_t *out_asked)
{
    char name[32];
    g_snprintf(name, sizeof name, "berth.none.%u", number);
    int result = rados_aio_create_completion2(NULL, NULL, out_asked);
    if (result < 0)
        return result;
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_assert_exists(op);
    rados_write_op_remove(op);
    result = rados_aio_write_op_operate(op, others, *out_asked, name, NULL, 0);
    rados_release_write_op(op);
    if (result < 0)
        rados_aio_release(*out_asked);
    return result;
}

/* In the placement group of HEADER: its name is what places all of them. */
static int ask_for_others(BerthRbdStorage *self, const char *header)
{
    rados_completion_t asked[OTHERS];
    rados_ioctx_t others = NULL;
    guint n = 0;
    int result = rados_ioctx_create2(self->cluster, rados_ioctx_get_id(self->images), &others);
    if (result < 0)
        return result;
    rados_ioctx_locator_set_key(others, header);
    rados_set_pool_full_try(others);
    for (; n < OTHERS && result >= 0; n += result >= 0)
        result = ask_for(others, n, &asked[n]);
    for (guint i = 0; i < n; i++) {
        rados_aio_wait_for_complete(asked[i]);
        int answer = rados_aio_get_return_value(asked[i]);
        if (answer < 0 && answer != -ENOENT && result >= 0)
            result = answer;
        rados_aio_release(asked[i]);
    }
    rados_ioctx_destroy(others);
    return result;
}

int berth_rbd_watchers(BerthRbdStorage *self, rbd_image_t image, GPtrArray *addresses)
{
    char id[BERTH_RBD_ID_BYTES];
    guint had = addresses->len;
    int result = rbd_get_id(image, id, sizeof id);
    if (result >= 0)
        result = list(image, addresses);
    if (result < 0 || addresses->len == had)
        return result;
    g_autofree char *header = g_strconcat(BERTH_RBD_HEADER_PREFIX, id, NULL);
    result = ask_for_others(self, header);
    if (result < 0)
        return result;
    g_ptr_array_set_size(addresses, (gint)had);
    return list(image, addresses);
}
