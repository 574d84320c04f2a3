/* SPDX-License-Identifier: Apache-2.0 */
/* Owns logs of an "rbd" storage. An append within a chunk is one operation on one object; only a
 * new chunk costs a second one.
 *
 * Invariants: the attribute "last" of a log's first object is at least the number of its last
 * chunk, and is set before that chunk is made; it never shrinks, not even with the log. So the size is found by asking
 * the object of that number, and those before it only if it was never written. */
#include <errno.h>
#include <string.h>

#include "common/error.h"
#include "storage/rbd_internal.h"

#define LAST_ATTRIBUTE "last"
#define LAST_DIGITS    16 /* of hex: as text, so that larger numbers compare as larger */

static char *chunk_name(const BerthRbdStream *stream, guint64 chunk)
{
    if (chunk == 0)
        return g_strdup(stream->id);
    return g_strdup_printf("%s:%08" G_GINT64_MODIFIER "x", stream->id, chunk);
}

static BerthRbdStream stream_of(BerthRbdStorage *self, const char *log_id)
{
    return (BerthRbdStream){.io = self->logs, .id = log_id, .name = chunk_name};
}

/* --- which chunks there are ----------------------------------------------------------------- */

static int raise_last_once(BerthRbdStorage *self, const char *log_id, const char *last)
{
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_cmpxattr(op, LAST_ATTRIBUTE, LIBRADOS_CMPXATTR_OP_GT, last, LAST_DIGITS);
    rados_write_op_setxattr(op, LAST_ATTRIBUTE, last, LAST_DIGITS);
    int result = rados_write_op_operate(op, self->logs, log_id, NULL, 0);
    rados_release_write_op(op);
    return result;
}

/* Makes "last" at least CHUNK, and the first object if it is not there. */
static int raise_last(BerthRbdStorage *self, const char *log_id, guint64 chunk)
{
    char last[LAST_DIGITS + 1];
    g_snprintf(last, sizeof last, "%016" G_GINT64_MODIFIER "x", chunk);
    int result = raise_last_once(self, log_id, last);
    if (result == -ENOENT) {
        rados_write_op_t op = rados_create_write_op();
        rados_write_op_create(op, LIBRADOS_CREATE_IDEMPOTENT, NULL);
        result = rados_write_op_operate(op, self->logs, log_id, NULL, 0);
        rados_release_write_op(op);
        if (result >= 0)
            result = raise_last_once(self, log_id, last);
    }
    return result == -ECANCELED ? 0 : result; /* it is that large already */
}

static guint64 parse_last(rados_xattrs_iter_t attributes)
{
    const char *name = NULL, *value = NULL;
    size_t length = 0;
    while (rados_getxattrs_next(attributes, &name, &value, &length) == 0 && name != NULL) {
        if (strcmp(name, LAST_ATTRIBUTE) == 0) {
            g_autofree char *text = g_strndup(value, length);
            return g_ascii_strtoull(text, NULL, 16);
        }
    }
    return 0;
}

/* Size of the first object, and "last". */
static int read_first(BerthRbdStorage *self, const char *log_id, guint64 *out_bytes,
                      guint64 *out_last)
{
    guint64 bytes = 0;
    time_t modified = 0;
    int stat_result = 0, attributes_result = 0;
    rados_xattrs_iter_t attributes = NULL;
    rados_read_op_t op = rados_create_read_op();
    rados_read_op_stat(op, &bytes, &modified, &stat_result);
    rados_read_op_getxattrs(op, &attributes, &attributes_result);
    int result = rados_read_op_operate(op, self->logs, log_id, 0);
    rados_release_read_op(op);
    if (result >= 0 && attributes_result >= 0) {
        *out_bytes = bytes;
        *out_last = parse_last(attributes);
    }
    if (attributes != NULL)
        rados_getxattrs_end(attributes);
    return result < 0 ? result : attributes_result;
}

static int find_size(BerthRbdStorage *self, const char *log_id, guint64 *out_bytes)
{
    guint64 bytes = 0, last = 0;
    int result = read_first(self, log_id, &bytes, &last);
    BerthRbdStream stream = stream_of(self, log_id);
    for (; result >= 0 && last > 0; last--) {
        g_autofree char *name = chunk_name(&stream, last);
        guint64 in_chunk = 0;
        time_t modified = 0;
        result = rados_stat(self->logs, name, &in_chunk, &modified);
        if (result >= 0) {
            bytes = last * BERTH_RBD_CHUNK_BYTES + in_chunk;
            break;
        }
        result = result == -ENOENT ? 0 : result;
    }
    if (result == -ENOENT) {
        *out_bytes = 0;
        return 0;
    }
    if (result >= 0)
        *out_bytes = bytes;
    return result;
}

/* --- the backend's functions ------------------------------------------------------------------ */

static int write_log(BerthRbdStorage *self, const char *log_id, guint64 offset, const guint8 *data,
                     gsize length)
{
    BerthRbdStream stream = stream_of(self, log_id);
    guint64 first = offset / BERTH_RBD_CHUNK_BYTES;
    guint64 last = (offset + length - 1) / BERTH_RBD_CHUNK_BYTES;
    gboolean begins_chunk = last > first || (first > 0 && offset % BERTH_RBD_CHUNK_BYTES == 0);
    int result = begins_chunk ? raise_last(self, log_id, last) : 0;
    if (result < 0)
        return result;
    result = berth_rbd_stream_write(&stream, offset, data, length, !begins_chunk);
    if (result != -ENOENT || begins_chunk)
        return result;
    /* In the middle of a chunk that is not there: a hole is left before it. */
    result = raise_last(self, log_id, last);
    return result < 0 ? result : berth_rbd_stream_write(&stream, offset, data, length, FALSE);
}

gboolean berth_rbd_log_write(BerthStorage *storage, const char *log_id, guint64 offset,
                             const guint8 *data, gsize length, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    int result = write_log(self, log_id, offset, data, length);
    if (result >= 0)
        return TRUE;
    berth_rbd_set_error(self, result, error, "cannot write log %s", log_id);
    return FALSE;
}

GBytes *berth_rbd_log_read(BerthStorage *storage, const char *log_id, guint64 offset, gsize length,
                           GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    guint64 size = 0;
    int result = find_size(self, log_id, &size);
    if (result >= 0 && offset >= size)
        return g_bytes_new(NULL, 0);
    g_autofree guint8 *data = NULL;
    gsize complete = 0;
    if (result >= 0) {
        length = (gsize)MIN(length, size - offset);
        data = g_try_malloc(length);
        BerthRbdStream stream = stream_of(self, log_id);
        result = data != NULL ? berth_rbd_stream_read(&stream, offset, data, length, &complete)
                              : -ENOMEM;
    }
    if (result >= 0)
        return g_bytes_new_take(g_steal_pointer(&data), length);
    berth_rbd_set_error(self, result, error, "cannot read log %s", log_id);
    return NULL;
}

gboolean berth_rbd_log_size(BerthStorage *storage, const char *log_id, guint64 *out_bytes,
                            GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    int result = find_size(self, log_id, out_bytes);
    if (result >= 0)
        return TRUE;
    berth_rbd_set_error(self, result, error, "cannot read log %s", log_id);
    return FALSE;
}

/* From the end on: a cut that is interrupted has left a log that is longer than it is to be, and has no hole. */
static int cut_log(BerthRbdStorage *self, const char *log_id, guint64 size_bytes)
{
    guint64 bytes = 0, last = 0, chunk = size_bytes / BERTH_RBD_CHUNK_BYTES;
    BerthRbdStream stream = stream_of(self, log_id);
    int result = read_first(self, log_id, &bytes, &last);
    for (; result >= 0 && last > chunk; last--)
        result = berth_rbd_stream_remove(&stream, last, last + 1);
    if (result < 0)
        return result;
    g_autofree char *name = chunk_name(&stream, chunk);
    result = rados_trunc(self->logs, name, size_bytes % BERTH_RBD_CHUNK_BYTES);
    return result == -ENOENT ? 0 : result;
}

gboolean berth_rbd_log_cut(BerthStorage *storage, const char *log_id, guint64 size_bytes,
                           GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    int result = cut_log(self, log_id, size_bytes);
    if (result >= 0)
        return TRUE;
    berth_rbd_set_error(self, result, error, "cannot cut log %s", log_id);
    return FALSE;
}

/* --- removal ---------------------------------------------------------------------------------- */

#define REMOVALS_MAX 32u /* under way at a time */

/* The first object goes last, so that an interrupted removal can be repeated. */
static int remove_chunks(BerthRbdStorage *self, const char *log_id)
{
    guint64 bytes = 0, last = 0;
    BerthRbdStream stream = stream_of(self, log_id);
    int result = read_first(self, log_id, &bytes, &last);
    if (result >= 0)
        result = berth_rbd_stream_remove(&stream, 1, last + 1);
    if (result >= 0)
        result = berth_rbd_stream_remove(&stream, 0, 1);
    return result;
}

/* Begins to remove a log of one chunk, as most are. ECANCELED: it has more of them, and is all there. */
static int begin_removal(BerthRbdStorage *self, const char *log_id, rados_completion_t *out_begun)
{
    char none[LAST_DIGITS + 1];
    g_snprintf(none, sizeof none, "%016x", 0);
    int result = rados_aio_create_completion2(NULL, NULL, out_begun);
    if (result < 0)
        return result;
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_cmpxattr(op, LAST_ATTRIBUTE, LIBRADOS_CMPXATTR_OP_GTE, none, LAST_DIGITS);
    rados_write_op_remove(op);
    result = rados_aio_write_op_operate(op, self->logs, *out_begun, log_id, NULL, 0);
    rados_release_write_op(op);
    if (result < 0)
        rados_aio_release(*out_begun);
    return result;
}

static int end_removal(BerthRbdStorage *self, const char *log_id, rados_completion_t begun)
{
    rados_aio_wait_for_complete(begun);
    int result = rados_aio_get_return_value(begun);
    rados_aio_release(begun);
    if (result == -ECANCELED)
        result = remove_chunks(self, log_id);
    return result == -ENOENT ? 0 : result;
}

typedef struct {
    BerthRbdStorage *self;
    const char *const *log_ids;
    rados_completion_t ring[REMOVALS_MAX];
    gsize begun, ended;
    int result;         /* of the first that failed: */
    const char *failed; /* or NULL */
} Removals;

static void note_removal(Removals *removals, const char *log_id, int result)
{
    if (result >= 0 || removals->failed != NULL)
        return;
    removals->failed = log_id;
    removals->result = result;
}

static void end_oldest(Removals *removals)
{
    gsize i = removals->ended++;
    note_removal(
        removals, removals->log_ids[i],
        end_removal(removals->self, removals->log_ids[i], removals->ring[i % REMOVALS_MAX]));
}

static void begin_next(Removals *removals)
{
    gsize i = removals->begun;
    if (i - removals->ended == REMOVALS_MAX)
        end_oldest(removals);
    int result =
        begin_removal(removals->self, removals->log_ids[i], &removals->ring[i % REMOVALS_MAX]);
    removals->begun += result >= 0;
    note_removal(removals, removals->log_ids[i], result);
}

gboolean berth_rbd_logs_remove(BerthStorage *storage, const char *const *log_ids, gsize n_logs,
                               GError **error)
{
    Removals removals = {.self = (BerthRbdStorage *)storage, .log_ids = log_ids};
    while (removals.begun < n_logs && removals.failed == NULL)
        begin_next(&removals);
    while (removals.ended < removals.begun)
        end_oldest(&removals);
    if (removals.failed == NULL)
        return TRUE;
    berth_rbd_set_error(removals.self, removals.result, error, "cannot remove log %s",
                        removals.failed);
    return FALSE;
}

static void add_log(const char *name, gpointer names)
{
    if (berth_storage_name_is_valid(name)) /* other chunks have a colon */
        g_ptr_array_add(names, g_strdup(name));
}

gboolean berth_rbd_log_list(BerthStorage *storage, GPtrArray *names, GError **error)
{
    BerthRbdStorage *self = (BerthRbdStorage *)storage;
    int result = berth_rbd_visit_objects(self->logs, add_log, names);
    if (result >= 0)
        return TRUE;
    berth_rbd_set_error(self, result, error, "cannot list the logs in pool %s", self->pool);
    return FALSE;
}
