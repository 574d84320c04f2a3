/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the memory of checkpoints of an "rbd" storage, an image that is written and read once, from its start to its
 * end, in whole objects of which several are on their way at a time; and the steps that make a checkpoint.
 *
 * Invariant: the record is written when the image and the snapshot are durable. */
#include <errno.h>
#include <malloc.h>
#include <string.h>

#include "common/error.h"
#include "storage/rbd_checkpoint.h"

#define PIECE_BYTES ((gsize)BERTH_RBD_CHUNK_BYTES)
/* 32 MiB on their way: what a link of 10 Gbit/s carries in 27 ms, more than an OSD takes for an object. */
#define IN_FLIGHT_MAX 8u

typedef struct {
    rbd_completion_t completion; /* NULL: none is on its way */
    guint8 *data;
    gsize length;
} Slot;

typedef struct {
    BerthCheckpointWriter base;
    char *name;
    char **guest; /* its clients; NULL: not known */
    rbd_image_t memory;
    rbd_image_t disk;
    Slot slots[IN_FLIGHT_MAX];
    guint64 begun;     /* pieces */
    gsize filled;      /* of the piece that is not begun yet */
    int result;        /* first error */
    gboolean may_come; /* the snapshot, by the hand of its guest, whom it was asked of */
} RbdCheckpointWriter;

typedef struct {
    BerthCheckpointReader base;
    char *checkpoint_id;
    rbd_image_t memory;
    guint64 size_bytes;
    Slot slots[IN_FLIGHT_MAX];
    guint64 begun;
    guint64 ended;
} RbdCheckpointReader;

static BerthRbdStorage *storage_of(const BerthCheckpointWriter *writer)
{
    return (BerthRbdStorage *)writer->storage;
}

/* --- pieces on their way -------------------------------------------------------------------- */

/* Its result; nothing is on its way after that. */
static int end_slot(Slot *slot)
{
    if (slot->completion == NULL)
        return 0;
    rbd_aio_wait_for_complete(slot->completion);
    int result = (int)rbd_aio_get_return_value(slot->completion);
    rbd_aio_release(slot->completion);
    slot->completion = NULL;
    return result;
}

/* Who has many on their way may have told the allocator to keep what is freed for the next; there is none. */
static void free_slots(Slot slots[IN_FLIGHT_MAX])
{
    gboolean was_used = FALSE;
    for (guint i = 0; i < IN_FLIGHT_MAX; i++) {
        was_used = was_used || slots[i].data != NULL;
        end_slot(&slots[i]);
        g_free(slots[i].data);
    }
    if (was_used)
        malloc_trim(0);
}

static guint8 *slot_data(Slot *slot)
{
    if (slot->data == NULL)
        slot->data = g_malloc(PIECE_BYTES);
    return slot->data;
}

/* --- making --------------------------------------------------------------------------------- */

static void set_create_error(BerthRbdStorage *self, int result, const char *checkpoint_id,
                             const char *disk_id, GError **error)
{
    if (result == -EEXIST)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS,
                    "checkpoint %s is committed already", checkpoint_id);
    else if (result == -EBUSY)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "checkpoint %s is being written (30 s after a crash Ceph forgets a client)",
                    checkpoint_id);
    else if (result == -ENOENT)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                    "cannot take a checkpoint: storage has no disk %s", disk_id);
    else if (result == -EAGAIN)
        berth_rbd_set_unseen(error, BERTH_ERROR_UNAVAILABLE, "make", checkpoint_id);
    else
        berth_rbd_set_error(self, result, error, "cannot make checkpoint %s", checkpoint_id);
}

/* What is there of NAME goes, unless it is committed: -EEXIST. */
static int clear(BerthRbdStorage *self, const char *name, const BerthRbdGuest *guest)
{
    gboolean committed = FALSE;
    int result = berth_rbd_checkpoint_is_committed(self, name, &committed);
    if (result < 0 || committed)
        return result < 0 ? result : -EEXIST;
    result = berth_rbd_checkpoint_discard(self, name, guest);
    return result == -ENOENT ? 0 : result;
}

static int make_memory(BerthRbdStorage *self, const char *name, guint64 space_bytes,
                       const char *disk_image_id, rbd_image_t *out_image)
{
    BERTH_RBD_AUTO_OPTIONS options = NULL;
    rbd_image_options_create(&options);
    int result = berth_rbd_set_options(self, options);
    if (result >= 0)
        result = rbd_create4(self->images, name, space_bytes, options);
    rbd_image_t image = NULL;
    if (result >= 0)
        result = rbd_open(self->images, name, &image, NULL);
    if (result >= 0)
        result = rbd_metadata_set(image, BERTH_RBD_DISK_KEY, disk_image_id);
    if (result >= 0)
        *out_image = image;
    else
        berth_rbd_close_watched(self, &image);
    return berth_rbd_watched(self, result);
}

static BerthRbdGuest guest_of(const RbdCheckpointWriter *writer)
{
    return (BerthRbdGuest){(const char *const *)writer->guest, FALSE};
}

/* The snapshot of an earlier attempt, whose guest made it when nothing named it any more. */
static int clear_late(RbdCheckpointWriter *writer, BerthRbdStorage *self, const char *disk_image_id,
                      const BerthRbdGuest *guest)
{
    uint64_t id = 0;
    int result = rbd_snap_get_id(writer->disk, writer->name, &id);
    if (result < 0)
        return result == -ENOENT ? 0 : result;
    return berth_rbd_checkpoint_remove_snapshot(self, disk_image_id, writer->name, guest);
}

/* The disk stays open until its snapshot is made: so that the guest need not stand still for the opening. Nor does it while it
 * is waited for Ceph to see it. */
static int open_all(RbdCheckpointWriter *writer, BerthRbdStorage *self, const char *disk,
                    guint64 space_bytes)
{
    char id[BERTH_RBD_ID_BYTES];
    const BerthRbdGuest guest = guest_of(writer);
    int result = clear(self, writer->name, &guest);
    if (result >= 0)
        result = berth_rbd_watched(self, rbd_open(self->live, disk, &writer->disk, NULL));
    if (result >= 0)
        result = berth_rbd_await_owner(self, writer->disk, &guest, BERTH_RBD_SIGHT_USEC);
    if (result >= 0)
        result = rbd_get_id(writer->disk, id, sizeof id);
    if (result >= 0)
        result = clear_late(writer, self, id, &guest);
    return result < 0 ? result : make_memory(self, writer->name, space_bytes, id, &writer->memory);
}

static void close_all(RbdCheckpointWriter *writer, BerthRbdStorage *self)
{
    free_slots(writer->slots);
    berth_rbd_close_watched(self, &writer->memory);
    berth_rbd_close_watched(self, &writer->disk);
}

static void free_writer(RbdCheckpointWriter *writer)
{
    g_free(writer->name);
    g_strfreev(writer->guest);
    g_free(writer);
}

BerthCheckpointWriter *berth_rbd_checkpoint_create(BerthStorage *storage, const char *checkpoint_id,
                                                   const char *disk_id, const char *const *guest,
                                                   guint64 space_bytes, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    g_autofree char *disk = g_strconcat("disk-", disk_id, NULL);
    RbdCheckpointWriter *writer = g_new0(RbdCheckpointWriter, 1);
    writer->name = berth_rbd_checkpoint_name(checkpoint_id);
    writer->guest = g_strdupv((char **)guest);
    int result = open_all(writer, self, disk, space_bytes);
    if (result >= 0)
        return &writer->base;
    set_create_error(self, result, checkpoint_id, disk_id, error);
    close_all(writer, self);
    free_writer(writer);
    return NULL;
}

/* --- writing -------------------------------------------------------------------------------- */

static void take_result(RbdCheckpointWriter *writer, int result)
{
    if (writer->result >= 0 && result < 0)
        writer->result = result;
}

/* The slot of the piece that is being filled. */
static Slot *current_slot(RbdCheckpointWriter *writer)
{
    Slot *slot = &writer->slots[writer->begun % IN_FLIGHT_MAX];
    if (writer->filled == 0)
        take_result(writer, end_slot(slot));
    return slot;
}

static void begin_write(RbdCheckpointWriter *writer, Slot *slot)
{
    rbd_aio_create_completion(NULL, NULL, &slot->completion);
    int result = rbd_aio_write(writer->memory, writer->begun * PIECE_BYTES, writer->filled,
                               (const char *)slot->data, slot->completion);
    if (result < 0) {
        rbd_aio_release(slot->completion);
        slot->completion = NULL;
        take_result(writer, result);
    }
    writer->begun++;
    writer->filled = 0;
}

static gboolean check_result(RbdCheckpointWriter *writer, GError **error)
{
    if (writer->result >= 0)
        return TRUE;
    berth_rbd_set_error(storage_of(&writer->base),
                        berth_rbd_watched(storage_of(&writer->base), writer->result), error,
                        "cannot write the memory of checkpoint %s", writer->base.checkpoint_id);
    return FALSE;
}

gboolean berth_rbd_checkpoint_append(BerthCheckpointWriter *base, const guint8 *data, gsize length,
                                     GError **error)
{
    RbdCheckpointWriter *writer = (RbdCheckpointWriter *)base;
    while (length > 0 && writer->result >= 0) {
        Slot *slot = current_slot(writer);
        gsize part = MIN(length, PIECE_BYTES - writer->filled);
        memcpy(slot_data(slot) + writer->filled, data, part);
        writer->filled += part;
        data += part;
        length -= part;
        if (writer->filled == PIECE_BYTES)
            begin_write(writer, slot);
    }
    return check_result(writer, error);
}

gboolean berth_rbd_checkpoint_finish(BerthCheckpointWriter *base, const guint8 *data, gsize length,
                                     GError **error)
{
    RbdCheckpointWriter *writer = (RbdCheckpointWriter *)base;
    if (writer->filled > 0)
        begin_write(writer, current_slot(writer));
    for (guint i = 0; i < IN_FLIGHT_MAX; i++)
        take_result(writer, end_slot(&writer->slots[i]));
    if (length > 0 && writer->result >= 0)
        take_result(writer, (int)MIN(rbd_write(writer->memory, 0, length, (const char *)data), 0));
    if (writer->result >= 0)
        take_result(writer, rbd_flush(writer->memory));
    return check_result(writer, error);
}

/* --- its end -------------------------------------------------------------------------------- */

/* -EAGAIN: it was not taken, or an earlier attempt's came late, which librbd might take for this one's. */
static int take_snapshot(RbdCheckpointWriter *writer)
{
    uint64_t id = 0;
    int result = rbd_snap_get_id(writer->disk, writer->name, &id);
    if (result >= 0)
        return -EAGAIN;
    if (result == -ENOENT)
        result = berth_rbd_live_result(rbd_snap_create(writer->disk, writer->name));
    writer->may_come = result == -EAGAIN || result == -ETIMEDOUT;
    return result == -EEXIST ? -EAGAIN : result;
}

gboolean berth_rbd_checkpoint_snapshot(BerthCheckpointWriter *base, GError **error)
{
    RbdCheckpointWriter *writer = (RbdCheckpointWriter *)base;
    BerthRbdStorage *self = storage_of(base);
    const BerthRbdGuest guest = guest_of(writer);
    int result = berth_rbd_await_owner(self, writer->disk, &guest, BERTH_RBD_RACE_USEC);
    if (result >= 0)
        result = take_snapshot(writer);
    if (result == -EAGAIN) {
        berth_rbd_set_unseen(error, BERTH_ERROR_UNAVAILABLE, "take", base->checkpoint_id);
        return FALSE;
    }
    if (berth_rbd_watched(self, result) >= 0)
        return TRUE;
    berth_rbd_set_error(self, result, error, "cannot take the disk's snapshot for checkpoint %s",
                        base->checkpoint_id);
    return FALSE;
}

gboolean berth_rbd_checkpoint_commit(BerthCheckpointWriter *base, GBytes *record, GError **error)
{
    RbdCheckpointWriter *writer = (RbdCheckpointWriter *)base;
    BerthRbdStorage *self = storage_of(base);
    gsize length = 0;
    const guchar *data = g_bytes_get_data(record, &length);
    g_autofree char *text = g_base64_encode(data, length);
    int result = rbd_metadata_set(writer->memory, BERTH_RBD_COMMITTED_KEY, text);
    if (berth_rbd_watched(self, result) >= 0)
        return TRUE;
    berth_rbd_set_error(self, result, error, "cannot commit checkpoint %s", base->checkpoint_id);
    return FALSE;
}

/* What cannot be removed now is torn, and removed by whoever collects garbage, or makes this checkpoint anew; so is what may get
 * its snapshot only when Ceph goes on, which nothing else would name. */
void berth_rbd_checkpoint_writer_free(BerthCheckpointWriter *base)
{
    RbdCheckpointWriter *writer = (RbdCheckpointWriter *)base;
    const BerthRbdGuest guest = guest_of(writer);
    close_all(writer, storage_of(base));
    if (!base->is_committed && !writer->may_come)
        berth_rbd_checkpoint_discard(storage_of(base), writer->name, &guest);
    free_writer(writer);
}

/* --- reading -------------------------------------------------------------------------------- */

static int begin_read(RbdCheckpointReader *reader)
{
    Slot *slot = &reader->slots[reader->begun % IN_FLIGHT_MAX];
    guint64 offset = reader->begun * PIECE_BYTES;
    slot->length = (gsize)MIN(PIECE_BYTES, reader->size_bytes - offset);
    rbd_aio_create_completion(NULL, NULL, &slot->completion);
    int result = rbd_aio_read(reader->memory, offset, slot->length, (char *)slot_data(slot),
                              slot->completion);
    if (result < 0) {
        rbd_aio_release(slot->completion);
        slot->completion = NULL;
    }
    reader->begun++;
    return result;
}

static int begin_reads(RbdCheckpointReader *reader)
{
    int result = 0;
    while (result >= 0 && reader->begun - reader->ended < IN_FLIGHT_MAX &&
           reader->begun * PIECE_BYTES < reader->size_bytes)
        result = begin_read(reader);
    return result;
}

/* Beyond the last object that was written there is nothing to be read. */
static int find_end(uint64_t offset, size_t length, int exists, void *end)
{
    if (exists)
        *(guint64 *)end = MAX(*(guint64 *)end, offset + length);
    return 0;
}

BerthCheckpointReader *berth_rbd_checkpoint_open(BerthStorage *storage, const char *checkpoint_id,
                                                 GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    g_autofree char *record = NULL;
    BERTH_RBD_AUTO_IMAGE image =
        berth_rbd_checkpoint_open_committed(self, checkpoint_id, &record, error);
    if (image == NULL)
        return NULL;
    guint64 size = 0, end = 0;
    int result = rbd_get_size(image, &size);
    if (result >= 0)
        result = rbd_diff_iterate2(image, NULL, 0, size, 0, 1, find_end, &end);
    if (result < 0) {
        berth_rbd_set_error(self, result, error, "cannot read the memory of checkpoint %s",
                            checkpoint_id);
        return NULL;
    }
    RbdCheckpointReader *reader = g_new0(RbdCheckpointReader, 1);
    reader->checkpoint_id = g_strdup(checkpoint_id);
    reader->memory = g_steal_pointer(&image);
    reader->size_bytes = end;
    return &reader->base;
}

GBytes *berth_rbd_checkpoint_next(BerthCheckpointReader *base, GError **error)
{
    RbdCheckpointReader *reader = (RbdCheckpointReader *)base;
    int result = begin_reads(reader);
    if (result >= 0 && reader->ended == reader->begun)
        return g_bytes_new(NULL, 0);
    Slot *slot = &reader->slots[reader->ended % IN_FLIGHT_MAX];
    if (result >= 0) {
        result = end_slot(slot);
        reader->ended++;
    }
    if (result >= 0)
        return g_bytes_new_take(g_steal_pointer(&slot->data), slot->length);
    berth_rbd_set_error((BerthRbdStorage *)base->storage, result, error,
                        "cannot read the memory of checkpoint %s", reader->checkpoint_id);
    return NULL;
}

void berth_rbd_checkpoint_reader_free(BerthCheckpointReader *base)
{
    RbdCheckpointReader *reader = (RbdCheckpointReader *)base;
    free_slots(reader->slots);
    rbd_close(reader->memory);
    g_free(reader->checkpoint_id);
    g_free(reader);
}
