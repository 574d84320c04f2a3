/* SPDX-License-Identifier: Apache-2.0 */
/* Owns job disks of an "rbd" storage: clones of an image's protected snapshot (clone format 1,
 * which every Ceph cluster takes). Invariant: a disk counts as made once its metadata say so;
 * what a crashed creation left is made anew. */
#include <errno.h>
#include <string.h>

#include "common/error.h"
#include "storage/rbd_checkpoint.h"
#include "storage/rbd_monitors.h"

/* Images have no such key, as a clone takes over its parent's metadata. */
#define READY_KEY "berth.ready"

static char *disk_name(const char *disk_id)
{
    return g_strconcat("disk-", disk_id, NULL);
}

static BerthDiskSource *disk_source_new(BerthRbdStorage *self, const char *disk_id)
{
    char mon_host[4096] = "";
    if (rados_conf_get(self->cluster, "mon_host", mon_host, sizeof mon_host) < 0)
        mon_host[0] = '\0'; /* found by DNS: QEMU finds them so, too */
    BerthDiskSource *source = g_new0(BerthDiskSource, 1);
    source->is_rbd = TRUE;
    source->rbd_pool = g_strdup(self->pool);
    source->rbd_image = disk_name(disk_id);
    source->rbd_monitors = berth_rbd_monitors_parse(mon_host);
    source->rbd_user = g_strdup(self->user);
    source->rbd_secret_uuid = g_strdup(self->secret_uuid);
    return source;
}

/* --- create ---------------------------------------------------------------------------------- */

/* Whether NAME is there and made. Result below 0: failed. */
static int is_made(BerthRbdStorage *self, const char *name, gboolean *out_is_made)
{
    BERTH_RBD_AUTO_IMAGE image = NULL;
    int result = rbd_open_read_only(self->images, name, &image, NULL);
    char value[8];
    size_t length = sizeof value;
    if (result >= 0)
        result = rbd_metadata_get(image, READY_KEY, value, &length);
    if (result < 0 && result != -ENOENT)
        return result;
    *out_is_made = result >= 0;
    return 0;
}

static gboolean check_image(BerthRbdStorage *self, const char *disk_id, const char *image_id,
                            guint64 size_bytes, GError **error)
{
    g_autofree char *name = g_strconcat("img-", image_id, NULL);
    BERTH_RBD_AUTO_IMAGE image = NULL;
    int is_protected = 0;
    guint64 image_bytes = 0;
    int result = rbd_open_read_only(self->images, name, &image, NULL);
    if (result >= 0)
        result = rbd_snap_is_protected(image, BERTH_RBD_SNAPSHOT, &is_protected);
    if (result >= 0)
        result = rbd_get_size(image, &image_bytes);
    if (result == -ENOENT || (result >= 0 && !is_protected)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                    "cannot make disk %s: storage has no image %s", disk_id, image_id);
        return FALSE;
    }
    if (result < 0) {
        berth_rbd_set_error(self, result, error, "cannot make disk %s on image %s", disk_id,
                            image_id);
        return FALSE;
    }
    if (size_bytes >= image_bytes)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "cannot make disk %s of %" G_GUINT64_FORMAT
                " bytes: image %s alone has %" G_GUINT64_FORMAT,
                disk_id, size_bytes, image_id, image_bytes);
    return FALSE;
}

static int clone_image(BerthRbdStorage *self, const char *image_id, const char *name)
{
    g_autofree char *parent = g_strconcat("img-", image_id, NULL);
    BERTH_RBD_AUTO_OPTIONS options = NULL;
    rbd_image_options_create(&options);
    int result = berth_rbd_set_options(self, options);
    rbd_image_options_set_uint64(options, RBD_IMAGE_OPTION_CLONE_FORMAT, 1);
    if (result >= 0)
        result = rbd_clone3(self->images, parent, BERTH_RBD_SNAPSHOT, self->images, name, options);
    return berth_rbd_watched(self, result);
}

static int finish_disk(BerthRbdStorage *self, const char *name, guint64 size_bytes)
{
    rbd_image_t image = NULL;
    guint64 clone_bytes = 0;
    int result = rbd_open(self->images, name, &image, NULL);
    if (result >= 0)
        result = rbd_get_size(image, &clone_bytes);
    if (result >= 0 && clone_bytes != size_bytes)
        result = rbd_resize(image, size_bytes);
    if (result >= 0)
        result = rbd_metadata_set(image, READY_KEY, "1");
    berth_rbd_close_watched(self, &image);
    return berth_rbd_watched(self, result);
}

/* -EEXIST: a disk of that name is made. */
static int make_disk(BerthRbdStorage *self, const char *image_id, const char *name,
                     guint64 size_bytes)
{
    int result = clone_image(self, image_id, name);
    if (result == -EEXIST) {
        gboolean made = FALSE;
        result = is_made(self, name, &made);
        if (result >= 0 && made)
            return -EEXIST;
        if (result >= 0)
            result = berth_rbd_remove(self, name);
        if (result >= 0)
            result = clone_image(self, image_id, name);
    }
    if (result < 0)
        return result;
    result = finish_disk(self, name, size_bytes);
    if (result < 0)
        berth_rbd_remove(self, name);
    return result;
}

BerthDiskSource *berth_rbd_disk_create(BerthStorage *storage, const char *disk_id,
                                       const char *image_id, guint64 size_bytes, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    if (!check_image(self, disk_id, image_id, size_bytes, error))
        return NULL;
    g_autofree char *name = disk_name(disk_id);
    int result = make_disk(self, image_id, name, size_bytes);
    if (result >= 0)
        return disk_source_new(self, disk_id);
    if (result == -EEXIST)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS, "storage has a disk %s already",
                    disk_id);
    else
        berth_rbd_set_error(self, result, error, "cannot make disk %s on image %s", disk_id,
                            image_id);
    return NULL;
}

/* --- the others ------------------------------------------------------------------------------ */

BerthDiskSource *berth_rbd_disk_source(BerthStorage *storage, const char *disk_id, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    g_autofree char *name = disk_name(disk_id);
    gboolean made = FALSE;
    int result = is_made(self, name, &made);
    if (result >= 0 && made)
        return disk_source_new(self, disk_id);
    berth_rbd_set_error(self, result < 0 ? result : -ENOENT, error,
                        "cannot find disk %s in pool %s", disk_id, self->pool);
    return NULL;
}

/* Who has the disk open, also one of which the removal was interrupted: it has no name any more. */
static int list_clients(BerthRbdStorage *self, const char *name, GPtrArray *clients)
{
    g_auto(BerthRbdFound) found = {NULL};
    BERTH_RBD_AUTO_IMAGE image = NULL;
    int result = berth_rbd_find(self, name, &found);
    if (result >= 0)
        result = rbd_open_by_id_read_only(self->images, found.id, &image, NULL);
    return result < 0 ? result : berth_rbd_watchers(self, image, clients);
}

/* The disk is in use. This client, of which no thread is at it, is what an operation left of itself. TRUE: nobody has it open any
 * more. */
static gboolean is_free_now(BerthRbdStorage *self, const char *name)
{
    g_autoptr(GPtrArray) clients = g_ptr_array_new_with_free_func(g_free);
    if (list_clients(self, name, clients) < 0)
        return FALSE;
    for (char **own = self->addresses; *own != NULL; own++) {
        if (g_ptr_array_find_with_equal_func(clients, *own, g_str_equal, NULL))
            g_atomic_int_set(self->is_worn, TRUE);
    }
    return clients->len == 0;
}

/* Its checkpoints first, as it cannot go before its snapshots. *OUT_KEPT: one that keeps it (transfer full). */
static int remove_all(BerthRbdStorage *self, const char *name, gboolean with_checkpoints,
                      char **out_kept)
{
    int result = berth_rbd_remove_claimed(self, name);
    if (result == -EBUSY && is_free_now(self, name))
        result = berth_rbd_remove_claimed(self, name);
    if (result != -ENOTEMPTY)
        return result;
    result = berth_rbd_checkpoint_discard_all(self, name, with_checkpoints, out_kept);
    return result < 0 || *out_kept != NULL ? result : berth_rbd_remove_claimed(self, name);
}

gboolean berth_rbd_disk_remove(BerthStorage *storage, const char *disk_id,
                               gboolean with_checkpoints, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    g_autofree char *name = disk_name(disk_id);
    g_autofree char *kept = NULL;
    int result = berth_rbd_claim(self, name);
    if (result >= 0) {
        result = remove_all(self, name, with_checkpoints, &kept);
        berth_rbd_end_claim(self, name, kept != NULL ? -ENOTEMPTY : result);
    }
    if ((result >= 0 && kept == NULL) || result == -ENOENT)
        return TRUE;
    if (kept != NULL)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "disk %s is needed by checkpoint %s: remove that first", disk_id, kept);
    else if (result == -EBUSY)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "disk %s is in use, or another client removes it: stop its guest first (30 s "
                    "after a crash Ceph forgets a client)",
                    disk_id);
    else
        berth_rbd_set_error(self, result, error, "cannot remove disk %s", disk_id);
    return FALSE;
}

gboolean berth_rbd_disk_list(BerthStorage *storage, GPtrArray *names, GError **error)
{
    return berth_rbd_list_images((BerthRbdStorage *)storage, "disk-", names, error);
}

char **berth_rbd_disk_clients(BerthStorage *storage, const char *disk_id, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    g_autofree char *name = disk_name(disk_id);
    g_autoptr(GPtrArray) clients = g_ptr_array_new_with_free_func(g_free);
    int result = list_clients(self, name, clients);
    if (result < 0) {
        berth_rbd_set_error(self, result, error, "cannot see the clients of disk %s", disk_id);
        return NULL;
    }
    g_ptr_array_add(clients, NULL);
    return (char **)g_ptr_array_steal(clients, NULL);
}
