/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what a worker does of a checkpoint. One worker has it in its hands from its making until all of it is durable:
 * the loop tells it through the FIFO that libvirt is done, and it tells the loop when the disk's snapshot is taken.
 *
 * Invariant: the disk's snapshot is taken after the last of the memory has come, and the sizes of the logs are looked at after
 * that, while the guest stands still. */
#include <config.h>

#include "nodeagent/checkpoint_worker.h"

#include "common/error.h"
#include "common/message.h"
#include "nodeagent/guest_private.h"

/* --- filling -------------------------------------------------------------------------------- */

typedef struct {
    BerthMemoryPipe *pipe;
    char *checkpoint_id;
    char *disk_id;
    char *log_id;
    char **guest;
    guint64 space_bytes;
    gboolean has_run;
    const BerthCheckpointNews *news;
    gpointer user_data; /* for the loop only */
} FillInput;

static void fill_input_free(gpointer data)
{
    FillInput *input = data;
    berth_memory_pipe_unref(input->pipe);
    g_free(input->checkpoint_id);
    g_free(input->disk_id);
    g_free(input->log_id);
    g_strfreev(input->guest);
    g_free(input);
}

void berth_checkpoint_filled_free(BerthCheckpointFilled *filled)
{
    if (filled == NULL)
        return;
    berth_checkpoint_writer_free(filled->writer);
    g_clear_pointer(&filled->record, g_bytes_unref);
    g_free(filled);
}

static void free_filled(gpointer filled)
{
    berth_checkpoint_filled_free(filled);
}

/* News, on its way to the loop. */
typedef struct {
    const BerthCheckpointNews *news;
    gpointer user_data;
    guint64 log_bytes[BERTH_N_STREAMS];
} Sent;

static Sent *sent_new(const FillInput *input)
{
    Sent *sent = g_new0(Sent, 1);
    sent->news = input->news;
    sent->user_data = input->user_data;
    return sent;
}

static gboolean on_made(gpointer data)
{
    const Sent *sent = data;
    sent->news->made(sent->user_data);
    return G_SOURCE_REMOVE;
}

static gboolean on_stalled(gpointer data)
{
    const Sent *sent = data;
    sent->news->stalled(sent->user_data);
    return G_SOURCE_REMOVE;
}

static void tell_stalled(gconstpointer input)
{
    g_idle_add_full(G_PRIORITY_DEFAULT, on_stalled, sent_new(input), g_free);
}

static gboolean on_snapped(gpointer data)
{
    const Sent *sent = data;
    sent->news->snapped(sent->log_bytes, sent->user_data);
    return G_SOURCE_REMOVE;
}

/* While the guest stands still: what it put out before is what it has, at most, been acknowledged. */
static gboolean take_instant(BerthStorage *storage, const FillInput *input,
                             BerthCheckpointWriter *writer, GError **error)
{
    g_autofree Sent *sent = sent_new(input);
    if (!berth_checkpoint_writer_snapshot(writer, error) ||
        !berth_guest_log_sizes(storage, input->log_id, sent->log_bytes, error))
        return FALSE;
    g_idle_add_full(G_PRIORITY_DEFAULT, on_snapped, g_steal_pointer(&sent), g_free);
    return TRUE;
}

/* What is there is answered with; WHY it cannot be made (transfer full). */
static gpointer read_committed(BerthStorage *storage, const FillInput *input, GError *why,
                               GError **error)
{
    g_autoptr(GError) reason = why;
    if (!g_error_matches(reason, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS)) {
        /* An agent before us may have it open still: Ceph forgets that one. */
        if (g_error_matches(reason, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION))
            reason->code = BERTH_ERROR_UNAVAILABLE;
        g_propagate_error(error, g_steal_pointer(&reason));
        return NULL;
    }
    g_autoptr(GBytes) record = berth_storage_checkpoint_read(storage, input->checkpoint_id, error);
    if (record == NULL)
        return NULL;
    BerthCheckpointFilled *filled = g_new0(BerthCheckpointFilled, 1);
    filled->record = g_steal_pointer(&record);
    return filled;
}

/* Nobody was told of one that is there already, or it would not be asked for again. */
static BerthCheckpointWriter *create(BerthStorage *storage, const FillInput *input, GError **error)
{
    g_autoptr(GError) reason = NULL;
    const char *const *guest = (const char *const *)input->guest;
    BerthCheckpointWriter *writer = berth_storage_checkpoint_create(
        storage, input->checkpoint_id, input->disk_id, guest, input->space_bytes, &reason);
    if (input->has_run && g_error_matches(reason, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS))
        return berth_storage_checkpoint_remove(storage, input->checkpoint_id, guest, FALSE, error)
                   ? berth_storage_checkpoint_create(storage, input->checkpoint_id, input->disk_id,
                                                     guest, input->space_bytes, error)
                   : NULL;
    if (writer == NULL)
        g_propagate_error(error, g_steal_pointer(&reason));
    return writer;
}

static gpointer fill(BerthStorage *storage, gconstpointer data, GError **error)
{
    const FillInput *input = data;
    GError *reason = NULL;
    g_autoptr(GBytes) header = NULL;
    g_autoptr(BerthCheckpointWriter) writer = create(storage, input, &reason);
    if (writer == NULL)
        return read_committed(storage, input, reason, error);
    g_idle_add_full(G_PRIORITY_DEFAULT, on_made, sent_new(input), g_free);
    if (!berth_memory_pipe_receive(input->pipe, writer, tell_stalled, input, &header, error) ||
        !take_instant(storage, input, writer, error) ||
        !berth_checkpoint_writer_finish(writer, g_bytes_get_data(header, NULL),
                                        g_bytes_get_size(header), error))
        return NULL;
    BerthCheckpointFilled *filled = g_new0(BerthCheckpointFilled, 1);
    filled->writer = g_steal_pointer(&writer);
    return filled;
}

void berth_checkpoint_fill_async(BerthStorageLane *lane, BerthMemoryPipe *pipe,
                                 const BerthCheckpointFill *what, const BerthCheckpointNews *news,
                                 GAsyncReadyCallback callback, gpointer user_data)
{
    FillInput *input = g_new0(FillInput, 1);
    *input = (FillInput){
        .pipe = berth_memory_pipe_ref(pipe),
        .checkpoint_id = g_strdup(what->checkpoint_id),
        .disk_id = g_strdup(what->disk_id),
        .log_id = g_strdup(what->log_id),
        .guest = g_strdupv((char **)what->guest),
        .space_bytes = what->space_bytes,
        .has_run = what->has_run,
        .news = news,
        .user_data = user_data,
    };
    berth_storage_lane_run(lane, BERTH_LANE_MEMORY, "take a checkpoint", fill, input,
                           fill_input_free, free_filled, NULL, callback, user_data);
}

BerthCheckpointFilled *berth_checkpoint_fill_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish(result, error);
}

/* --- committing ----------------------------------------------------------------------------- */

typedef struct {
    BerthCheckpointWriter *writer;
    char *checkpoint_id;
    Berth__CheckpointRecord *record;
} CommitInput;

static void commit_input_free(gpointer data)
{
    CommitInput *input = data;
    berth_checkpoint_writer_free(input->writer);
    g_free(input->checkpoint_id);
    berth_message_free(&input->record->base);
    g_free(input);
}

static gpointer commit(BerthStorage *storage, gconstpointer data, GError **error)
{
    const CommitInput *input = data;
    Berth__CheckpointGuestReply *taken = input->record->taken;
    if (!berth_storage_checkpoint_used(storage, input->checkpoint_id, &taken->memory_bytes,
                                       &taken->disk_bytes, error))
        return NULL;
    g_autoptr(GBytes) packed = berth_message_pack(&input->record->base);
    if (!berth_checkpoint_writer_commit(input->writer, packed, error))
        return NULL;
    return berth_message_copy(&taken->base);
}

static void free_message(gpointer message)
{
    berth_message_free(message);
}

void berth_checkpoint_commit_async(BerthStorageLane *lane, BerthCheckpointWriter *writer,
                                   const char *checkpoint_id, Berth__CheckpointRecord *record,
                                   GAsyncReadyCallback callback, gpointer user_data)
{
    CommitInput *input = g_new0(CommitInput, 1);
    *input = (CommitInput){writer, g_strdup(checkpoint_id), record};
    berth_storage_lane_run(lane, BERTH_LANE_CONTROL, "commit a checkpoint", commit, input,
                           commit_input_free, free_message, NULL, callback, user_data);
}

ProtobufCMessage *berth_checkpoint_commit_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish(result, error);
}
