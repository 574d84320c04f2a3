/* SPDX-License-Identifier: Apache-2.0 */
/* Owns golden images of an "rbd" storage, and what images and disks have in common. Invariant: an
 * image is committed if and only if its snapshot "berth" is protected; nothing changes it then. */
#include <errno.h>
#include <string.h>

#include "common/error.h"
#include "storage/rbd_internal.h"

/* object-map lets a clone skip objects that it does not have, and removal those that no one
 * wrote; it needs exclusive-lock. QEMU 7.2 with librbd 16 takes all of these. */
#define FEATURES                                                                                   \
    (RBD_FEATURE_LAYERING | RBD_FEATURE_EXCLUSIVE_LOCK | RBD_FEATURE_OBJECT_MAP |                  \
     RBD_FEATURE_FAST_DIFF)

typedef struct {
    BerthImageWriter base;
    char *name;
    rbd_image_t image;
} RbdImageWriter;

static BerthRbdStorage *storage_of(BerthImageWriter *writer)
{
    return (BerthRbdStorage *)writer->storage;
}

static char *image_name(const char *image_id)
{
    return g_strconcat("img-", image_id, NULL);
}

/* --- common to images and disks --------------------------------------------------------------- */

static int check_pool(BerthRbdStorage *self, const char *pool)
{
    if (*pool == '\0')
        return 0;
    gint64 result = rados_pool_lookup(self->cluster, pool);
    return result == -ENOENT ? -ENXIO : (int)MIN(result, 0);
}

/* Of a pool for data that is not there librbd learns in the thread that Ceph calls back, and waits there for a newer map
 * from the same thread (librbd/image/CreateRequest.cc in Ceph 16: validate_data_pool). */
static int check_data_pool(BerthRbdStorage *self)
{
    g_autofree rbd_config_option_t *found = NULL;
    int capacity = 128, count = 0, result = 0;
    do {
        count = capacity;
        found = g_renew(rbd_config_option_t, found, count);
        result = rbd_config_pool_list(self->images, found, &count);
        capacity = MAX(capacity * 2, count);
    } while (result == -ERANGE);
    if (result < 0)
        return result;
    for (int i = 0; i < count && result >= 0; i++)
        if (g_str_equal(found[i].name, "rbd_default_data_pool"))
            result = check_pool(self, found[i].value);
    rbd_config_pool_list_cleanup(found, count);
    return result;
}

int berth_rbd_set_options(BerthRbdStorage *self, rbd_image_options_t options)
{
    rbd_image_options_set_uint64(options, RBD_IMAGE_OPTION_FORMAT, 2);
    rbd_image_options_set_uint64(options, RBD_IMAGE_OPTION_FEATURES, FEATURES);
    rbd_image_options_set_uint64(options, RBD_IMAGE_OPTION_ORDER, 22);
    return check_data_pool(self);
}

gboolean berth_rbd_list_images(BerthRbdStorage *self, const char *prefix, GPtrArray *ids,
                               GError **error)
{
    size_t capacity = 256, count = 0;
    g_autofree rbd_image_spec_t *images = NULL;
    int result = 0;
    do {
        count = capacity;
        images = g_renew(rbd_image_spec_t, images, count);
        result = rbd_list2(self->images, images, &count);
        capacity = MAX(capacity * 2, count); /* on -ERANGE count is how many there are */
    } while (result == -ERANGE);
    if (result < 0) {
        berth_rbd_set_error(self, result, error, "cannot list the RBD images in pool %s",
                            self->pool);
        return FALSE;
    }
    for (size_t i = 0; i < count; i++) {
        if (g_str_has_prefix(images[i].name, prefix))
            g_ptr_array_add(ids, g_strdup(images[i].name + strlen(prefix)));
    }
    rbd_image_spec_list_cleanup(images, count);
    return TRUE;
}

/* --- import ----------------------------------------------------------------------------------- */

BerthImageWriter *berth_rbd_image_create(BerthStorage *storage, const char *image_id,
                                         guint64 size_bytes, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    g_autofree char *name = image_name(image_id);
    BERTH_RBD_AUTO_OPTIONS options = NULL;
    rbd_image_options_create(&options);
    int result = berth_rbd_set_options(self, options);
    if (result >= 0)
        result = rbd_create4(self->images, name, size_bytes, options);
    if (result == -EEXIST) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS,
                    "storage has an image %s already, or what a crashed import left of it: remove "
                    "that first",
                    image_id);
        return NULL;
    }
    rbd_image_t image = NULL;
    if (result >= 0)
        result = rbd_open(self->images, name, &image, NULL);
    if (berth_rbd_watched(self, result) < 0) {
        berth_rbd_set_error(self, result, error, "cannot make image %s in pool %s", image_id,
                            self->pool);
        return NULL;
    }
    RbdImageWriter *writer = g_new0(RbdImageWriter, 1);
    writer->name = g_steal_pointer(&name);
    writer->image = image;
    return &writer->base;
}

gboolean berth_rbd_image_write(BerthImageWriter *base, guint64 offset, const guint8 *data,
                               gsize length, GError **error)
{
    RbdImageWriter *writer = (RbdImageWriter *)base;
    ssize_t result = rbd_write(writer->image, offset, length, (const char *)data);
    if (result >= 0)
        return TRUE;
    berth_rbd_set_error(storage_of(base), (int)result, error, "cannot write image %s",
                        base->image_id);
    return FALSE;
}

/* Not rbd_discard(), which leaves parts of objects as they are. */
gboolean berth_rbd_image_zero(BerthImageWriter *base, guint64 offset, gsize length, GError **error)
{
    RbdImageWriter *writer = (RbdImageWriter *)base;
    ssize_t result = rbd_write_zeroes(writer->image, offset, length, 0, 0);
    if (result >= 0)
        return TRUE;
    berth_rbd_set_error(storage_of(base), (int)result, error, "cannot write image %s",
                        base->image_id);
    return FALSE;
}

gboolean berth_rbd_image_commit(BerthImageWriter *base, GError **error)
{
    RbdImageWriter *writer = (RbdImageWriter *)base;
    int result = rbd_flush(writer->image);
    if (result >= 0)
        result = rbd_snap_create(writer->image, BERTH_RBD_SNAPSHOT);
    if (result >= 0)
        result = rbd_snap_protect(writer->image, BERTH_RBD_SNAPSHOT);
    if (berth_rbd_watched(storage_of(base), result) >= 0) {
        berth_rbd_close_watched(storage_of(base), &writer->image);
        return TRUE;
    }
    berth_rbd_set_error(storage_of(base), result, error, "cannot store image %s", base->image_id);
    return FALSE;
}

/* Result below 0: failed. */
static int is_protected(rbd_image_t image, gboolean *out_is_protected)
{
    int flag = 0;
    int result = rbd_snap_is_protected(image, BERTH_RBD_SNAPSHOT, &flag);
    if (result < 0 && result != -ENOENT)
        return result;
    *out_is_protected = result >= 0 && flag;
    return 0;
}

gboolean berth_rbd_image_is_committed(BerthStorage *storage, const char *image_id,
                                      gboolean *out_committed, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    g_autofree char *name = image_name(image_id);
    gboolean is_committed = FALSE;
    BERTH_RBD_AUTO_IMAGE image = NULL;
    int result = rbd_open_read_only(self->images, name, &image, NULL);
    if (result >= 0)
        result = is_protected(image, &is_committed);
    if (result < 0 && result != -ENOENT) {
        berth_rbd_set_error(self, result, error, "cannot look at image %s", image_id);
        return FALSE;
    }
    *out_committed = is_committed;
    return TRUE;
}

/* --- removal ---------------------------------------------------------------------------------- */

static int remove_snapshot(rbd_image_t image)
{
    int flag = 0;
    int result = rbd_snap_is_protected(image, BERTH_RBD_SNAPSHOT, &flag);
    if (result == -ENOENT)
        return 0;
    if (result >= 0 && flag)
        result = rbd_snap_unprotect(image, BERTH_RBD_SNAPSHOT);
    return result < 0 ? result : rbd_snap_remove(image, BERTH_RBD_SNAPSHOT);
}

/* 0 or 1; below 0: failed. */
static int has_snapshot(const BerthRbdStorage *self, const char *name)
{
    BERTH_RBD_AUTO_IMAGE image = NULL;
    int flag = 0;
    int result = rbd_open_read_only(self->images, name, &image, NULL);
    if (result < 0)
        return result;
    result = rbd_snap_is_protected(image, BERTH_RBD_SNAPSHOT, &flag);
    return result == -ENOENT ? 0 : result < 0 ? result : 1;
}

/* Removes the snapshot, if there is one. librbd waits for Ceph as it unprotects it, in the thread that Ceph calls back
 * (librbd/operation/SnapshotUnprotectRequest.cc in Ceph 16). */
static int drop_snapshot(const BerthRbdStorage *self, const char *name)
{
    g_auto(BerthRbdSecond) second = {NULL};
    rbd_image_t image = NULL;
    int result = has_snapshot(self, name);
    if (result <= 0)
        return result;
    result = berth_rbd_second_open(self, &second);
    if (result >= 0)
        result = rbd_open(second.images, name, &image, NULL);
    if (result >= 0)
        result = remove_snapshot(image);
    if (image != NULL)
        rbd_close(image);
    return result;
}

void berth_rbd_image_writer_free(BerthImageWriter *base)
{
    RbdImageWriter *writer = (RbdImageWriter *)base;
    BerthRbdStorage *self = storage_of(base);
    if (!base->is_committed) {
        berth_rbd_close_watched(self, &writer->image);
        drop_snapshot(self, writer->name);
        berth_rbd_remove(self, writer->name);
    }
    g_free(writer->name);
    g_free(writer);
}

static gboolean refuse_used(rbd_image_t image, const char *image_id, GError **error)
{
    rbd_linked_image_spec_t child[1];
    size_t count = 1;
    int result = rbd_snap_set(image, BERTH_RBD_SNAPSHOT);
    if (result >= 0)
        result = rbd_list_children3(image, child, &count);
    if (result < 0 && result != -ERANGE) /* no snapshot, no children */
        return TRUE;
    if (count == 0)
        return TRUE;
    const char *disk = result == 0 ? child[0].image_name : NULL;
    if (disk != NULL && g_str_has_prefix(disk, "disk-"))
        disk += strlen("disk-");
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                "image %s is in use by %" G_GSIZE_FORMAT " disks%s%s: wait for its jobs to end, or "
                "cancel them",
                image_id, count, disk != NULL ? ": " : "", disk != NULL ? disk : "");
    if (result == 0)
        rbd_linked_image_spec_list_cleanup(child, count);
    return FALSE;
}

static gboolean refuse_watched(BerthRbdStorage *self, rbd_image_t image, const char *image_id,
                               GError **error)
{
    g_autoptr(GPtrArray) clients = g_ptr_array_new_with_free_func(g_free);
    int result = berth_rbd_watchers(self, image, clients);
    if (result < 0) {
        berth_rbd_set_error(self, result, error, "cannot remove image %s", image_id);
        return FALSE;
    }
    if (clients->len == 0)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                "image %s is being written by client %s: wait for the import to end (30 s if it "
                "crashed)",
                image_id, (const char *)g_ptr_array_index(clients, 0));
    return FALSE;
}

/* A disk that is made meanwhile makes unprotect fail with -EBUSY. */
static int remove_unused(BerthRbdStorage *self, const char *name)
{
    int result = drop_snapshot(self, name);
    /* Without a header it is the rest of a removal that was interrupted. */
    if (result >= 0 || result == -ENOENT)
        result = berth_rbd_remove(self, name);
    return berth_rbd_watched(self, result);
}

gboolean berth_rbd_image_remove(BerthStorage *storage, const char *image_id, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    g_autofree char *name = image_name(image_id);
    {
        BERTH_RBD_AUTO_IMAGE image = NULL;
        int result = rbd_open_read_only(self->images, name, &image, NULL);
        if (result >= 0 &&
            (!refuse_used(image, image_id, error) || !refuse_watched(self, image, image_id, error)))
            return FALSE;
    }
    int result = remove_unused(self, name);
    if (result >= 0)
        return TRUE;
    if (result == -EBUSY)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "image %s is in use, or another client removes it", image_id);
    else
        berth_rbd_set_error(self, result, error, "cannot remove image %s", image_id);
    return FALSE;
}

/* --- list --------------------------------------------------------------------------------------- */

/* Listed is what is committed, and what nobody writes any more. Result below 0: failed. */
static int is_listed(BerthRbdStorage *self, const char *image_id, gboolean *out_is_listed)
{
    g_autofree char *name = image_name(image_id);
    BERTH_RBD_AUTO_IMAGE image = NULL;
    int result = rbd_open_read_only(self->images, name, &image, NULL);
    if (result == -ENOENT) { /* being made or removed at this moment */
        *out_is_listed = FALSE;
        return 0;
    }
    gboolean is_committed = FALSE;
    if (result >= 0)
        result = is_protected(image, &is_committed);
    g_autoptr(GPtrArray) clients = g_ptr_array_new_with_free_func(g_free);
    if (result >= 0 && !is_committed)
        result = berth_rbd_watchers(self, image, clients);
    if (result < 0)
        return result;
    *out_is_listed = is_committed || clients->len == 0;
    return 0;
}

gboolean berth_rbd_image_list(BerthStorage *storage, GPtrArray *names, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    g_autoptr(GPtrArray) ids = g_ptr_array_new_with_free_func(g_free);
    if (!berth_rbd_list_images(self, "img-", ids, error))
        return FALSE;
    for (guint i = 0; i < ids->len; i++) {
        const char *id = g_ptr_array_index(ids, i);
        gboolean listed = FALSE;
        int result = is_listed(self, id, &listed);
        if (result < 0) {
            berth_rbd_set_error(self, result, error, "cannot look at image %s", id);
            return FALSE;
        }
        if (listed)
            g_ptr_array_add(names, g_strdup(id));
    }
    return TRUE;
}
