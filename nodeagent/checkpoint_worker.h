/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What is done for a checkpoint on workers: its memory goes from a FIFO into storage, its disk gets a snapshot, and
 * its record is committed. When that happens is guest_checkpoint.c's. */

#include "nodeagent/log_writer.h"
#include "nodeagent/memory_pipe.h"
#include "nodeagent/storage_lane.h"
#include "proto/berth.pb-c.h"

/* What is to be filled. */
typedef struct {
    const char *checkpoint_id;
    const char *disk_id;
    const char *log_id;
    const char *const *guest; /* clients by which it has its disk open; NULL: not known */
    guint64 space_bytes;
    gboolean has_run; /* since whatever there may be of that name: it is made again */
} BerthCheckpointFill;

/* News for the loop while the worker is at it, each at most once, and before the result. */
typedef struct {
    /* It is there, and takes what comes through the FIFO. */
    void (*made)(gpointer user_data);
    /* The FIFO has come to its end, the disk has its snapshot, and the guest's logs had so much at that instant. */
    void (*snapped)(const guint64 log_bytes[BERTH_N_STREAMS], gpointer user_data);
    /* libvirt does nothing any more: it has to be told to let go of it before the result can come. */
    void (*stalled)(gpointer user_data);
} BerthCheckpointNews;

typedef struct {
    BerthCheckpointWriter *writer; /* all is durable, and it is to be committed */
    GBytes *record;                /* instead: it was committed before */
} BerthCheckpointFilled;
void berth_checkpoint_filled_free(BerthCheckpointFilled *filled);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthCheckpointFilled, berth_checkpoint_filled_free)

/* NEWS must stay valid, and USER_DATA until CALLBACK has come. Errors of berth_storage_checkpoint_create(), but that it is
 * being written is UNAVAILABLE, and of berth_memory_pipe_receive(). */
void berth_checkpoint_fill_async(BerthStorageLane *lane, BerthMemoryPipe *pipe,
                                 const BerthCheckpointFill *what, const BerthCheckpointNews *news,
                                 GAsyncReadyCallback callback, gpointer user_data);
/* (transfer full) */
BerthCheckpointFilled *berth_checkpoint_fill_finish(GAsyncResult *result, GError **error);

/* Commits what WRITER (transfer full) has filled, with RECORD (transfer full), of which `taken` is completed. */
void berth_checkpoint_commit_async(BerthStorageLane *lane, BerthCheckpointWriter *writer,
                                   const char *checkpoint_id, Berth__CheckpointRecord *record,
                                   GAsyncReadyCallback callback, gpointer user_data);
/* `taken` of the record that was committed: a Berth__CheckpointGuestReply (transfer full). */
ProtobufCMessage *berth_checkpoint_commit_finish(GAsyncResult *result, GError **error);
