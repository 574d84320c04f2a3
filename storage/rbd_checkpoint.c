/* SPDX-License-Identifier: Apache-2.0 */
/* Owns checkpoints of an "rbd" storage: which there are, what they take, how they are removed, and how a disk is
 * put back. Their memory is rbd_memory.c's.
 *
 * Invariants: the image of the memory is made first and removed last, so that a list has whatever there is of a
 * checkpoint; what has no record is not read. The disk is found by the internal id of its image, which stays
 * when its name changes. */
#include <errno.h>
#include <string.h>

#include "common/error.h"
#include "storage/rbd_checkpoint.h"

static char *disk_name(const char *disk_id)
{
    return g_strconcat("disk-", disk_id, NULL);
}

char *berth_rbd_checkpoint_name(const char *checkpoint_id)
{
    return g_strconcat(BERTH_RBD_CHECKPOINT_PREFIX, checkpoint_id, NULL);
}

/* --- records -------------------------------------------------------------------------------- */

/* The value of KEY (transfer full) of an image's metadata. */
static int get_metadata(rbd_image_t image, const char *key, char **out_value)
{
    size_t length = 4 * BERTH_STORAGE_CHECKPOINT_RECORD_BYTES_MAX;
    g_autofree char *value = g_malloc0(length + 1);
    int result = rbd_metadata_get(image, key, value, &length);
    if (result >= 0)
        *out_value = g_steal_pointer(&value);
    return result;
}

void berth_rbd_set_unseen(GError **error, BerthErrorCode code, const char *verb,
                          const char *checkpoint_id)
{
    g_set_error(error, BERTH_ERROR, code,
                "cannot %s checkpoint %s now: Ceph has lost sight of who has the lock of the disk, "
                "the guest as a rule, as one of them stood still for 30 s, or it has died; it is "
                "tried again",
                verb, checkpoint_id);
}

static void set_torn(GError **error, const char *checkpoint_id)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                "checkpoint %s is torn: what made it did not come to its end", checkpoint_id);
}

rbd_image_t berth_rbd_checkpoint_open_committed(BerthRbdStorage *self, const char *checkpoint_id,
                                                char **out_record, GError **error)
{
    g_autofree char *name = berth_rbd_checkpoint_name(checkpoint_id);
    BERTH_RBD_AUTO_IMAGE image = NULL;
    int result = rbd_open_read_only(self->images, name, &image, NULL);
    if (result == -ENOENT) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "storage has no checkpoint %s",
                    checkpoint_id);
        return NULL;
    }
    if (result >= 0)
        result = get_metadata(image, BERTH_RBD_COMMITTED_KEY, out_record);
    if (result >= 0)
        return g_steal_pointer(&image);
    if (result == -ENOENT)
        set_torn(error, checkpoint_id);
    else
        berth_rbd_set_error(self, result, error, "cannot read checkpoint %s", checkpoint_id);
    return NULL;
}

GBytes *berth_rbd_checkpoint_read(BerthStorage *storage, const char *checkpoint_id, GError **error)
{
    g_autofree char *text = NULL;
    BERTH_RBD_AUTO_IMAGE image = berth_rbd_checkpoint_open_committed((BerthRbdStorage *)storage,
                                                                     checkpoint_id, &text, error);
    if (image == NULL)
        return NULL;
    gsize length = 0;
    guchar *record = g_base64_decode(text, &length);
    if (length > 0)
        return g_bytes_new_take(record, length);
    g_free(record);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS, "the record of checkpoint %s is damaged",
                checkpoint_id);
    return NULL;
}

gboolean berth_rbd_checkpoint_list(BerthStorage *storage, GPtrArray *names, GError **error)
{
    return berth_rbd_list_images((BerthRbdStorage *)storage, BERTH_RBD_CHECKPOINT_PREFIX, names,
                                 error);
}

/* --- what it takes -------------------------------------------------------------------------- */

static int count_extent(uint64_t offset, size_t length, int exists, void *bytes)
{
    if (exists)
        *(guint64 *)bytes += length;
    return 0;
}

int berth_rbd_stored_bytes(rbd_image_t image, const char *since, guint64 *out_bytes)
{
    guint64 size = 0, bytes = 0;
    int result = rbd_get_size(image, &size);
    if (result >= 0)
        result = rbd_diff_iterate2(image, since, 0, size, 0, 1, count_extent, &bytes);
    if (result >= 0)
        *out_bytes = bytes;
    return result;
}

/* The snapshot of IMAGE before NAME (transfer full); NULL: NAME is the first. */
static int find_before(rbd_image_t image, const char *name, char **out_before)
{
    int count = 64;
    g_autofree rbd_snap_info_t *snapshots = NULL;
    int result = -ERANGE;
    while (result == -ERANGE) { /* which makes COUNT as large as it has to be */
        snapshots = g_renew(rbd_snap_info_t, snapshots, (gsize)count);
        result = rbd_snap_list(image, snapshots, &count);
    }
    if (result < 0)
        return result;
    const rbd_snap_info_t *own = NULL, *before = NULL;
    for (int i = 0; i < result; i++)
        own = g_str_equal(snapshots[i].name, name) ? &snapshots[i] : own;
    for (int i = 0; own != NULL && i < result; i++) {
        if (snapshots[i].id < own->id && (before == NULL || snapshots[i].id > before->id))
            before = &snapshots[i];
    }
    *out_before = before == NULL ? NULL : g_strdup(before->name);
    rbd_snap_list_end(snapshots);
    return own == NULL ? -ENOENT : 0;
}

static int disk_bytes(BerthRbdStorage *self, const char *id, const char *snapshot,
                      guint64 *out_bytes)
{
    BERTH_RBD_AUTO_IMAGE disk = NULL;
    g_autofree char *before = NULL;
    int result = rbd_open_by_id_read_only(self->images, id, &disk, NULL);
    if (result >= 0)
        result = find_before(disk, snapshot, &before);
    if (result >= 0)
        result = rbd_snap_set(disk, snapshot);
    return result < 0 ? result : berth_rbd_stored_bytes(disk, before, out_bytes);
}

gboolean berth_rbd_checkpoint_used(BerthStorage *storage, const char *checkpoint_id,
                                   guint64 *out_memory_bytes, guint64 *out_disk_bytes,
                                   GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    g_autofree char *name = berth_rbd_checkpoint_name(checkpoint_id);
    g_autofree char *disk_id = NULL;
    BERTH_RBD_AUTO_IMAGE image = NULL;
    guint64 memory = 0, disk = 0;
    int result = rbd_open_read_only(self->images, name, &image, NULL);
    if (result >= 0)
        result = berth_rbd_stored_bytes(image, NULL, &memory);
    if (result >= 0) {
        result = get_metadata(image, BERTH_RBD_DISK_KEY, &disk_id);
        if (result >= 0)
            result = disk_bytes(self, disk_id, name, &disk);
        if (result == -ENOENT)
            result = 0; /* torn: it has no snapshot */
    }
    if (result < 0) {
        berth_rbd_set_error(self, result, error, "cannot measure checkpoint %s", checkpoint_id);
        return FALSE;
    }
    *out_memory_bytes = memory;
    *out_disk_bytes = disk;
    return TRUE;
}

/* --- removing ------------------------------------------------------------------------------- */

/* -EBUSY: a client has it open. */
static int check_unused(BerthRbdStorage *self, rbd_image_t image)
{
    g_autoptr(GPtrArray) clients = g_ptr_array_new_with_free_func(g_free);
    int result = berth_rbd_watchers(self, image, clients);
    return result >= 0 && clients->len > 0 ? -EBUSY : result;
}

/* -EAGAIN: GUEST may live, and would not see that. */
int berth_rbd_checkpoint_remove_snapshot(BerthRbdStorage *self, const char *disk_id,
                                         const char *snapshot, const BerthRbdGuest *guest)
{
    rbd_image_t disk = NULL;
    uint64_t id = 0;
    int result = rbd_open_by_id(guest != NULL ? self->live : self->images, disk_id, &disk, NULL);
    if (result >= 0)
        result = rbd_snap_get_id(disk, snapshot, &id);
    if (result >= 0 && guest != NULL)
        result = berth_rbd_await_owner(self, disk, guest, BERTH_RBD_RACE_USEC);
    if (result >= 0)
        result = rbd_snap_remove(disk, snapshot);
    berth_rbd_close_watched(self, &disk);
    result = guest != NULL ? berth_rbd_live_result(result) : result;
    return berth_rbd_watched(self, result == -ENOENT ? 0 : result);
}

/* Makes it torn. *OUT_DISK_ID (transfer full): NULL, no snapshot was ever made. */
static int remove_record(BerthRbdStorage *self, const char *name, char **out_disk_id)
{
    BERTH_RBD_AUTO_IMAGE looked_at = NULL;
    int result = rbd_open_read_only(self->images, name, &looked_at, NULL);
    if (result >= 0)
        result = check_unused(self, looked_at);
    if (result >= 0)
        result = get_metadata(looked_at, BERTH_RBD_DISK_KEY, out_disk_id);
    if (result == -ENOENT && looked_at != NULL)
        result = 0;
    if (result < 0)
        return result;
    rbd_image_t image = NULL;
    result = rbd_open(self->images, name, &image, NULL);
    if (result >= 0)
        result = rbd_metadata_remove(image, BERTH_RBD_COMMITTED_KEY);
    berth_rbd_close_watched(self, &image);
    return berth_rbd_watched(self, result == -ENOENT ? 0 : result);
}

int berth_rbd_checkpoint_discard(BerthRbdStorage *self, const char *name,
                                 const BerthRbdGuest *guest)
{
    g_autofree char *disk_id = NULL;
    int result = remove_record(self, name, &disk_id);
    if (result >= 0 && disk_id != NULL)
        result = berth_rbd_checkpoint_remove_snapshot(self, disk_id, name, guest);
    /* Also the rest of a removal that was interrupted, which has no header any more. */
    if (result >= 0 || result == -ENOENT)
        result = berth_rbd_remove(self, name);
    return result;
}

gboolean berth_rbd_checkpoint_remove(BerthStorage *storage, const char *checkpoint_id,
                                     const char *const *guest, gboolean have_ended, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    g_autofree char *name = berth_rbd_checkpoint_name(checkpoint_id);
    const BerthRbdGuest of = {guest, have_ended};
    int result = berth_rbd_checkpoint_discard(self, name, &of);
    if (result >= 0 || result == -ENOENT)
        return TRUE;
    if (result == -EBUSY)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "checkpoint %s is being written (30 s after a crash Ceph forgets a client)",
                    checkpoint_id);
    else if (result == -EAGAIN)
        berth_rbd_set_unseen(error, BERTH_ERROR_FAILED_PRECONDITION, "remove", checkpoint_id);
    else
        berth_rbd_set_error(self, result, error, "cannot remove checkpoint %s", checkpoint_id);
    return FALSE;
}

/* --- those of a disk ------------------------------------------------------------------------ */

/* Names of the snapshots of a disk that are checkpoints'. */
static int list_snapshots(rbd_image_t disk, GPtrArray *names)
{
    int count = 64;
    g_autofree rbd_snap_info_t *snapshots = NULL;
    int result = -ERANGE;
    while (result == -ERANGE) {
        snapshots = g_renew(rbd_snap_info_t, snapshots, (gsize)count);
        result = rbd_snap_list(disk, snapshots, &count);
    }
    for (int i = 0; i < result; i++) {
        if (g_str_has_prefix(snapshots[i].name, BERTH_RBD_CHECKPOINT_PREFIX))
            g_ptr_array_add(names, g_strdup(snapshots[i].name));
    }
    if (result >= 0)
        rbd_snap_list_end(snapshots);
    return MIN(result, 0);
}

int berth_rbd_checkpoint_is_committed(BerthRbdStorage *self, const char *name,
                                      gboolean *out_committed)
{
    BERTH_RBD_AUTO_IMAGE image = NULL;
    g_autofree char *record = NULL;
    int result = rbd_open_read_only(self->images, name, &image, NULL);
    if (result >= 0)
        result = get_metadata(image, BERTH_RBD_COMMITTED_KEY, &record);
    if (result < 0 && result != -ENOENT)
        return result;
    *out_committed = result >= 0;
    return 0;
}

/* A snapshot goes with its checkpoint, or alone if there is nothing else of that. */
static int discard_one(BerthRbdStorage *self, const char *disk_image_id, const char *name)
{
    int result = berth_rbd_checkpoint_discard(self, name, NULL);
    if (result < 0 && result != -ENOENT)
        return result;
    return berth_rbd_checkpoint_remove_snapshot(self, disk_image_id, name, NULL);
}

int berth_rbd_checkpoint_discard_all(BerthRbdStorage *self, const char *disk,
                                     gboolean with_committed, char **out_kept)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    BERTH_RBD_AUTO_IMAGE image = NULL;
    char id[BERTH_RBD_ID_BYTES];
    int result = rbd_open_read_only(self->images, disk, &image, NULL);
    if (result >= 0)
        result = rbd_get_id(image, id, sizeof id);
    if (result >= 0)
        result = check_unused(self, image);
    if (result >= 0)
        result = list_snapshots(image, names);
    for (guint i = 0; result >= 0 && !with_committed && i < names->len; i++) {
        gboolean committed = FALSE;
        result = berth_rbd_checkpoint_is_committed(self, g_ptr_array_index(names, i), &committed);
        if (!committed)
            continue;
        const char *name = g_ptr_array_index(names, i);
        *out_kept = g_strdup(name + strlen(BERTH_RBD_CHECKPOINT_PREFIX));
        return result;
    }
    for (guint i = 0; result >= 0 && i < names->len; i++)
        result = discard_one(self, id, g_ptr_array_index(names, i));
    return result;
}

/* --- putting a disk back -------------------------------------------------------------------- */

static int get_disk_name(BerthRbdStorage *self, const char *id, char **out_name)
{
    BERTH_RBD_AUTO_IMAGE disk = NULL;
    char name[256];
    size_t length = sizeof name;
    int result = rbd_open_by_id_read_only(self->images, id, &disk, NULL);
    if (result >= 0)
        result = check_unused(self, disk);
    if (result >= 0)
        result = rbd_get_name(disk, name, &length);
    if (result >= 0)
        *out_name = g_strdup(name);
    return result;
}

static int roll_back(BerthRbdStorage *self, const char *id, const char *snapshot)
{
    rbd_image_t disk = NULL;
    int result = rbd_open_by_id(self->images, id, &disk, NULL);
    if (result >= 0)
        result = rbd_snap_rollback(disk, snapshot);
    berth_rbd_close_watched(self, &disk);
    return berth_rbd_watched(self, result);
}

/* A QEMU that is late opens it by the name that it had: once it has another, who has it open is known for good. */
static int put_back(BerthRbdStorage *self, const char *id, const char *snapshot, const char *name)
{
    g_autofree char *had = NULL;
    g_autofree char *has = NULL;
    int result = get_disk_name(self, id, &had);
    if (result >= 0 && !g_str_equal(had, name))
        result = berth_rbd_watched(self, rbd_rename(self->images, had, name));
    if (result >= 0)
        result = get_disk_name(self, id, &has);
    return result < 0 ? result : roll_back(self, id, snapshot);
}

static void set_put_back_error(BerthRbdStorage *self, int result, const char *checkpoint_id,
                               const char *disk_id, GError **error)
{
    if (result == -ENOENT)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
                    "the disk of checkpoint %s, or its snapshot, is not there any more",
                    checkpoint_id);
    else if (result == -EBUSY)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "the disk of checkpoint %s is in use: stop its guest first (30 s after a crash "
                    "Ceph forgets a client)",
                    checkpoint_id);
    else if (result == -EEXIST)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS, "storage has a disk %s already",
                    disk_id);
    else
        berth_rbd_set_error(self, result, error, "cannot put the disk of checkpoint %s back",
                            checkpoint_id);
}

BerthDiskSource *berth_rbd_checkpoint_restore_disk(BerthStorage *storage, const char *checkpoint_id,
                                                   const char *disk_id, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    g_autofree char *record = NULL;
    g_autofree char *id = NULL;
    g_autofree char *snapshot = berth_rbd_checkpoint_name(checkpoint_id);
    g_autofree char *name = disk_name(disk_id);
    BERTH_RBD_AUTO_IMAGE image =
        berth_rbd_checkpoint_open_committed(self, checkpoint_id, &record, error);
    if (image == NULL)
        return NULL;
    int result = get_metadata(image, BERTH_RBD_DISK_KEY, &id);
    if (result >= 0)
        result = put_back(self, id, snapshot, name);
    if (result >= 0)
        return berth_rbd_disk_source(storage, disk_id, error);
    set_put_back_error(self, result, checkpoint_id, disk_id, error);
    return NULL;
}
