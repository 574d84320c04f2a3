/* SPDX-License-Identifier: Apache-2.0 */
/* Owns checkpoints in memory (tests/lib/fake_checkpoints.h). */
#include <config.h>

#include "tests/lib/fake_checkpoints.h"

#include <poll.h>

#include "common/error.h"

#define MINUTE_MSEC 60000
#define MOMENT_MSEC 50

FakeCheckpoints fake_checkpoints;

void fake_checkpoints_reset(void)
{
    g_clear_pointer(&fake_checkpoints.record, g_bytes_unref);
    fake_checkpoints = (FakeCheckpoints){0};
}

/* --- waiting -------------------------------------------------------------------------------- */

int __real_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout);
int __wrap_poll(struct pollfd *fds, nfds_t n, int timeout)
{
    gboolean is_short = timeout < MINUTE_MSEC || !g_atomic_int_get(&fake_checkpoints.is_impatient);
    return __real_poll(fds, n, is_short ? timeout : MOMENT_MSEC);
}

int __wrap___poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size);
int __wrap___poll_chk(struct pollfd *fds, nfds_t n, int timeout, size_t size)
{
    return __wrap_poll(fds, n, timeout);
}

/* TRUE if WHY is NULL. */
static gboolean check(const char *why, int code, GError **error)
{
    if (why != NULL)
        g_set_error_literal(error, BERTH_ERROR, code, why);
    return why == NULL;
}

/* --- making --------------------------------------------------------------------------------- */

BerthCheckpointWriter *__wrap_berth_storage_checkpoint_create(BerthStorage *storage,
                                                              const char *checkpoint_id,
                                                              const char *disk_id,
                                                              const char *const *guest,
                                                              guint64 space_bytes, GError **error);
BerthCheckpointWriter *__wrap_berth_storage_checkpoint_create(BerthStorage *storage,
                                                              const char *checkpoint_id,
                                                              const char *disk_id,
                                                              const char *const *guest,
                                                              guint64 space_bytes, GError **error)
{
    if (!check(fake_checkpoints.create_fails, fake_checkpoints.create_code, error))
        return NULL;
    g_atomic_int_inc(&fake_checkpoints.made);
    return g_malloc0(1);
}

gboolean __wrap_berth_checkpoint_writer_append(BerthCheckpointWriter *writer, const void *data,
                                               gsize length, GError **error);
gboolean __wrap_berth_checkpoint_writer_append(BerthCheckpointWriter *writer, const void *data,
                                               gsize length, GError **error)
{
    return check(fake_checkpoints.append_fails, fake_checkpoints.append_code, error);
}

gboolean __wrap_berth_checkpoint_writer_snapshot(BerthCheckpointWriter *writer, GError **error);
gboolean __wrap_berth_checkpoint_writer_snapshot(BerthCheckpointWriter *writer, GError **error)
{
    return TRUE;
}

gboolean __wrap_berth_checkpoint_writer_finish(BerthCheckpointWriter *writer, const void *data,
                                               gsize length, GError **error);
gboolean __wrap_berth_checkpoint_writer_finish(BerthCheckpointWriter *writer, const void *data,
                                               gsize length, GError **error)
{
    return TRUE;
}

gboolean __wrap_berth_checkpoint_writer_commit(BerthCheckpointWriter *writer, GBytes *record,
                                               GError **error);
gboolean __wrap_berth_checkpoint_writer_commit(BerthCheckpointWriter *writer, GBytes *record,
                                               GError **error)
{
    fake_checkpoints.record = g_bytes_ref(record);
    g_atomic_int_inc(&fake_checkpoints.committed);
    return TRUE;
}

void __wrap_berth_checkpoint_writer_free(BerthCheckpointWriter *writer);
void __wrap_berth_checkpoint_writer_free(BerthCheckpointWriter *writer)
{
    if (writer != NULL)
        g_atomic_int_inc(&fake_checkpoints.freed);
    g_free(writer);
}

gboolean __wrap_berth_storage_checkpoint_used(BerthStorage *storage, const char *checkpoint_id,
                                              guint64 *out_memory_bytes, guint64 *out_disk_bytes,
                                              GError **error);
gboolean __wrap_berth_storage_checkpoint_used(BerthStorage *storage, const char *checkpoint_id,
                                              guint64 *out_memory_bytes, guint64 *out_disk_bytes,
                                              GError **error)
{
    *out_memory_bytes = *out_disk_bytes = 1 << 20;
    return TRUE;
}

/* It can be made again. */
gboolean __wrap_berth_storage_checkpoint_remove(BerthStorage *storage, const char *checkpoint_id,
                                                const char *const *guest, gboolean have_ended,
                                                GError **error);
gboolean __wrap_berth_storage_checkpoint_remove(BerthStorage *storage, const char *checkpoint_id,
                                                const char *const *guest, gboolean have_ended,
                                                GError **error)
{
    g_atomic_int_inc(&fake_checkpoints.removed);
    g_clear_pointer(&fake_checkpoints.record, g_bytes_unref);
    fake_checkpoints.create_fails = NULL;
    return TRUE;
}

/* --- reading -------------------------------------------------------------------------------- */

GBytes *__wrap_berth_storage_checkpoint_read(BerthStorage *storage, const char *checkpoint_id,
                                             GError **error);
GBytes *__wrap_berth_storage_checkpoint_read(BerthStorage *storage, const char *checkpoint_id,
                                             GError **error)
{
    if (fake_checkpoints.record != NULL)
        return g_bytes_ref(fake_checkpoints.record);
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "no such checkpoint");
    return NULL;
}

BerthDiskSource *__wrap_berth_storage_checkpoint_restore_disk(BerthStorage *storage,
                                                              const char *checkpoint_id,
                                                              const char *disk_id, GError **error);
BerthDiskSource *__wrap_berth_storage_checkpoint_restore_disk(BerthStorage *storage,
                                                              const char *checkpoint_id,
                                                              const char *disk_id, GError **error)
{
    if (!check(fake_checkpoints.disk_fails, fake_checkpoints.disk_code, error)) {
        if (fake_checkpoints.disk_fails_times > 0 &&
            g_atomic_int_dec_and_test(&fake_checkpoints.disk_fails_times))
            fake_checkpoints.disk_fails = NULL;
        return NULL;
    }
    BerthDiskSource *disk = g_new0(BerthDiskSource, 1);
    disk->is_rbd = TRUE;
    disk->rbd_pool = g_strdup("pool");
    disk->rbd_image = g_strdup(disk_id);
    return disk;
}

BerthCheckpointReader *__wrap_berth_storage_checkpoint_open(BerthStorage *storage,
                                                            const char *checkpoint_id,
                                                            GError **error);
BerthCheckpointReader *__wrap_berth_storage_checkpoint_open(BerthStorage *storage,
                                                            const char *checkpoint_id,
                                                            GError **error)
{
    return check(fake_checkpoints.read_fails, fake_checkpoints.read_code, error) ? g_malloc0(1)
                                                                                 : NULL;
}

static GBytes *next_mib(void)
{
    gsize mib = (gsize)1 << 20;
    if (g_atomic_int_get(&fake_checkpoints.mib) == 0)
        return g_bytes_new(NULL, 0);
    g_atomic_int_add(&fake_checkpoints.mib, -1);
    return g_bytes_new_take(g_malloc0(mib), mib);
}

GBytes *__wrap_berth_checkpoint_reader_next(BerthCheckpointReader *reader, GError **error);
GBytes *__wrap_berth_checkpoint_reader_next(BerthCheckpointReader *reader, GError **error)
{
    return check(fake_checkpoints.next_fails, fake_checkpoints.next_code, error) ? next_mib()
                                                                                 : NULL;
}

void __wrap_berth_checkpoint_reader_free(BerthCheckpointReader *reader);
void __wrap_berth_checkpoint_reader_free(BerthCheckpointReader *reader)
{
    g_free(reader);
}
