/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One guest's output on its way to its two logs: taken in order, written in batches at explicit
 * offsets, reported when durable. Where little comes all the time, it waits a tenth of a second for its batch. While
 * storage is down it is tried again for ever; what waits is bounded, so that the guest waits too and nothing is lost. */

#include <gio/gio.h>

#include "common/id.h"

/* Accepted but not durable, both streams together: at most this and one message more. */
#define BERTH_LOG_WRITER_PENDING_MAX (2u << 20)
/* Bytes in one write at most. */
#define BERTH_LOG_WRITER_BATCH_MAX (1u << 20)

typedef struct BerthLogWriter BerthLogWriter;

/* Where the bytes go. write() ends with CALLBACK exactly once, later; write_finish() says whether
 * the bytes are durable. */
typedef struct {
    void (*write)(gpointer store, const char *log_id, guint64 offset, GBytes *data,
                  GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data);
    gboolean (*write_finish)(GAsyncResult *result, GError **error);
} BerthLogStore;

/* The store that writes through a BerthStorageLane (passed as STORE). */
extern const BerthLogStore berth_log_store_lane;

/* FUNC when more became durable. */
typedef void (*BerthLogProgressFunc)(gpointer user_data);

/* Writes to the logs LOG_ID.out and LOG_ID.err. STORE outlives the writer. */
BerthLogWriter *berth_log_writer_new(const BerthLogStore *ops, gpointer store, const char *log_id,
                                     BerthLogProgressFunc func, gpointer user_data);
/* Writes under way may still take effect; FUNC is not called any more. */
void berth_log_writer_free(BerthLogWriter *writer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthLogWriter, berth_log_writer_free)

/* Where STREAM continues, for a guest that was adopted. Before its first bytes only. */
void berth_log_writer_set_start(BerthLogWriter *writer, guint stream, guint64 offset);

/* Everything before is taken / is durable. */
guint64 berth_log_writer_accepted(const BerthLogWriter *writer, guint stream);
guint64 berth_log_writer_durable(const BerthLogWriter *writer, guint stream);
/* FALSE: take no more until FUNC was called. */
gboolean berth_log_writer_has_room(const BerthLogWriter *writer);
/* Nothing is written any more: what has been taken, and what is taken from now on, counts as durable and is dropped. For
 * a log that is not the guest's any more. A write under way may still take effect; FUNC is called. */
void berth_log_writer_drop(BerthLogWriter *writer);
/* Nothing is begun, or tried again, any more; what has been taken and is not written counts as not taken: somebody else gets it
 * from the guest again. Nothing is to be taken after that. Idle when a write that is under way has ended, of which FUNC tells. */
void berth_log_writer_give_up(BerthLogWriter *writer);
/* All that was taken is durable. */
gboolean berth_log_writer_is_idle(const BerthLogWriter *writer);

/* Takes LENGTH bytes (copied) at the accepted end of STREAM. */
void berth_log_writer_append(BerthLogWriter *writer, guint stream, const void *data, gsize length);
