/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the bytes between a guest's channel and its logs. Per stream one write is under way at a
 * time, so that durable bytes never have a gap; what arrives meanwhile makes the next batch. A write costs storage and this
 * node much the same however little it has: one who goes on writing little waits between writes.
 * durable <= durable + in flight + waiting == accepted, always. */
#include <config.h>

#include "nodeagent/log_writer.h"

#include "common/backoff.h"
#include "common/error.h"
#include "common/id.h"
#include "nodeagent/allowance.h"
#include "nodeagent/storage_lane.h"

/* Small writes to a log, in a second and at once: what a short job puts out, and somebody who follows it, wait for nothing. */
#define WRITES_PER_SEC 10u
#define WRITES_AT_ONCE 20u
#define PARTS          1000u /* of a write, in which they are reckoned */
/* Of so many bytes the number of writes does not matter. */
#define LARGE_BYTES (BERTH_LOG_WRITER_BATCH_MAX / 4)

typedef struct {
    BerthLogWriter *writer;
    char *log_id;
    guint64 accepted;
    guint64 durable;
    GByteArray *waiting;
    GBytes *in_flight; /* NULL: no write is under way or to be tried again */
    guint retry_source;
    BerthBackoff backoff;
    guint pause_source; /* until it may write little again */
    BerthAllowance writes;
} Stream;

struct BerthLogWriter {
    grefcount refs; /* the owner's, and one for each write under way */
    const BerthLogStore *ops;
    gpointer store;
    Stream streams[BERTH_N_STREAMS];
    GCancellable *closed;
    gboolean drops;       /* and writes nothing */
    gboolean gives_up;    /* what is under way is not tried again */
    guint dropped_source; /* says that more was dropped */
    BerthLogProgressFunc func;
    gpointer user_data;
};

static void stop_timers(Stream *stream)
{
    g_clear_handle_id(&stream->retry_source, g_source_remove);
    g_clear_handle_id(&stream->pause_source, g_source_remove);
}

static void stream_clear(Stream *stream)
{
    stop_timers(stream);
    g_clear_pointer(&stream->waiting, g_byte_array_unref);
    g_clear_pointer(&stream->in_flight, g_bytes_unref);
    g_clear_pointer(&stream->log_id, g_free);
}

static void writer_unref(BerthLogWriter *writer)
{
    if (!g_ref_count_dec(&writer->refs))
        return;
    for (guint i = 0; i < BERTH_N_STREAMS; i++)
        stream_clear(&writer->streams[i]);
    g_object_unref(writer->closed);
    g_free(writer);
}

BerthLogWriter *berth_log_writer_new(const BerthLogStore *ops, gpointer store, const char *log_id,
                                     BerthLogProgressFunc func, gpointer user_data)
{
    BerthLogWriter *writer = g_new0(BerthLogWriter, 1);
    g_ref_count_init(&writer->refs);
    writer->ops = ops;
    writer->store = store;
    writer->closed = g_cancellable_new();
    writer->func = func;
    writer->user_data = user_data;
    for (guint i = 0; i < BERTH_N_STREAMS; i++) {
        Stream *stream = &writer->streams[i];
        stream->writer = writer;
        stream->log_id = berth_log_name_format(log_id, i);
        stream->waiting = g_byte_array_new();
        stream->backoff = (BerthBackoff){.min_msec = 200, .max_msec = 5000};
        stream->writes = (BerthAllowance){.burst_bytes = WRITES_AT_ONCE * PARTS,
                                          .bytes_per_sec = WRITES_PER_SEC * PARTS};
    }
    return writer;
}

void berth_log_writer_free(BerthLogWriter *writer)
{
    if (writer == NULL)
        return;
    g_cancellable_cancel(writer->closed);
    g_clear_handle_id(&writer->dropped_source, g_source_remove);
    for (guint i = 0; i < BERTH_N_STREAMS; i++)
        stop_timers(&writer->streams[i]);
    writer_unref(writer);
}

void berth_log_writer_set_start(BerthLogWriter *writer, guint stream, guint64 offset)
{
    Stream *self = &writer->streams[stream];
    g_return_if_fail(self->accepted == self->durable);
    self->accepted = self->durable = offset;
}

guint64 berth_log_writer_accepted(const BerthLogWriter *writer, guint stream)
{
    return writer->streams[stream].accepted;
}

guint64 berth_log_writer_durable(const BerthLogWriter *writer, guint stream)
{
    return writer->streams[stream].durable;
}

gboolean berth_log_writer_has_room(const BerthLogWriter *writer)
{
    guint64 pending = 0;
    for (guint i = 0; i < BERTH_N_STREAMS; i++)
        pending += writer->streams[i].accepted - writer->streams[i].durable;
    return pending < BERTH_LOG_WRITER_PENDING_MAX;
}

gboolean berth_log_writer_is_idle(const BerthLogWriter *writer)
{
    for (guint i = 0; i < BERTH_N_STREAMS; i++) {
        if (writer->streams[i].durable < writer->streams[i].accepted)
            return FALSE;
    }
    return TRUE;
}

static void write_in_flight(Stream *stream);

static void on_retry_due(gpointer data)
{
    Stream *stream = data;
    stream->retry_source = 0;
    write_in_flight(stream);
}

static void write_next(Stream *stream);

static void on_pause_over(gpointer data)
{
    Stream *stream = data;
    stream->pause_source = 0;
    write_next(stream);
}

static void pause_if_often(Stream *stream)
{
    g_clear_handle_id(&stream->pause_source, g_source_remove);
    gint64 wait_usec = berth_allowance_use(&stream->writes, PARTS, g_get_monotonic_time());
    if (wait_usec > 0)
        stream->pause_source =
            g_timeout_add_once((guint)(wait_usec / 1000 + 1), on_pause_over, stream);
}

/* Takes the next batch, if no write is under way. */
static void write_next(Stream *stream)
{
    if (stream->in_flight != NULL || stream->waiting->len == 0 ||
        (stream->pause_source != 0 && stream->waiting->len < LARGE_BYTES))
        return;
    pause_if_often(stream);
    gsize length = MIN(stream->waiting->len, BERTH_LOG_WRITER_BATCH_MAX);
    if (length == stream->waiting->len) {
        stream->in_flight = g_byte_array_free_to_bytes(stream->waiting);
        stream->waiting = g_byte_array_new();
    } else {
        stream->in_flight = g_bytes_new(stream->waiting->data, length);
        g_byte_array_remove_range(stream->waiting, 0, (guint)length);
    }
    write_in_flight(stream);
}

static void drop_all(Stream *stream)
{
    stop_timers(stream);
    g_clear_pointer(&stream->in_flight, g_bytes_unref);
    g_byte_array_set_size(stream->waiting, 0);
}

/* But for a write that is under way. */
static void give_up(Stream *stream)
{
    gboolean is_under_way = stream->in_flight != NULL && stream->retry_source == 0;
    stop_timers(stream);
    g_byte_array_set_size(stream->waiting, 0);
    stream->accepted = stream->durable;
    if (is_under_way)
        stream->accepted += g_bytes_get_size(stream->in_flight);
    else
        g_clear_pointer(&stream->in_flight, g_bytes_unref);
}

static void on_written(GObject *source, GAsyncResult *result, gpointer data)
{
    Stream *stream = data;
    BerthLogWriter *writer = stream->writer;
    g_autoptr(GError) error = NULL;
    gboolean ok = writer->ops->write_finish(result, &error);
    if (g_cancellable_is_cancelled(writer->closed)) {
        writer_unref(writer);
        return;
    }
    if (writer->drops) {
        /* it has been dropped */
    } else if (ok) {
        if (stream->backoff.current_msec > 0)
            g_message("log %s can be written again", stream->log_id);
        berth_backoff_reset(&stream->backoff);
        stream->durable += g_bytes_get_size(stream->in_flight);
        g_clear_pointer(&stream->in_flight, g_bytes_unref);
        write_next(stream);
        writer->func(writer->user_data);
    } else if (writer->gives_up) {
        g_clear_pointer(&stream->in_flight, g_bytes_unref);
        give_up(stream);
        writer->func(writer->user_data);
    } else {
        if (stream->backoff.current_msec == 0)
            g_warning("log %s cannot be written, its job waits and will go on by itself: %s",
                      stream->log_id, error->message);
        guint wait = berth_backoff_next_msec(&stream->backoff, g_random_double());
        stream->retry_source = g_timeout_add_once(wait, on_retry_due, stream);
    }
    writer_unref(writer);
}

static void write_in_flight(Stream *stream)
{
    BerthLogWriter *writer = stream->writer;
    g_ref_count_inc(&writer->refs);
    writer->ops->write(writer->store, stream->log_id, stream->durable, stream->in_flight,
                       writer->closed, on_written, stream);
}

static void on_dropped(gpointer data)
{
    BerthLogWriter *writer = data;
    writer->dropped_source = 0;
    writer->func(writer->user_data);
}

void berth_log_writer_append(BerthLogWriter *writer, guint stream, const void *data, gsize length)
{
    Stream *self = &writer->streams[stream];
    if (writer->drops) {
        self->accepted += length;
        self->durable = self->accepted;
        if (writer->dropped_source ==
            0) /* not from within: the caller is in the midst of its output */
            writer->dropped_source = g_idle_add_once(on_dropped, writer);
        return;
    }
    g_byte_array_append(self->waiting, data, (guint)length);
    self->accepted += length;
    write_next(self);
}

void berth_log_writer_drop(BerthLogWriter *writer)
{
    writer->drops = TRUE;
    for (guint i = 0; i < BERTH_N_STREAMS; i++) {
        drop_all(&writer->streams[i]);
        writer->streams[i].durable = writer->streams[i].accepted;
    }
    writer->func(writer->user_data);
}

void berth_log_writer_give_up(BerthLogWriter *writer)
{
    writer->gives_up = TRUE;
    for (guint i = 0; i < BERTH_N_STREAMS; i++)
        give_up(&writer->streams[i]);
}

/* --- the store behind it -------------------------------------------------------------------- */

typedef struct {
    char *log_id;
    guint64 offset;
    GBytes *data;
} WriteInput;

static void write_input_free(gpointer data)
{
    WriteInput *input = data;
    g_free(input->log_id);
    g_bytes_unref(input->data);
    g_free(input);
}

static gpointer write_log(BerthStorage *storage, gconstpointer data, GError **error)
{
    const WriteInput *input = data;
    gsize length;
    const void *bytes = g_bytes_get_data(input->data, &length);
    berth_storage_log_write(storage, input->log_id, input->offset, bytes, length, error);
    return NULL;
}

static void lane_write(gpointer store, const char *log_id, guint64 offset, GBytes *data,
                       GCancellable *cancellable, GAsyncReadyCallback callback, gpointer user_data)
{
    WriteInput *input = g_new0(WriteInput, 1);
    *input = (WriteInput){g_strdup(log_id), offset, g_bytes_ref(data)};
    berth_storage_lane_run(store, BERTH_LANE_DATA, "write a log", write_log, input,
                           write_input_free, NULL, cancellable, callback, user_data);
}

const BerthLogStore berth_log_store_lane = {lane_write, berth_work_finish_empty};
