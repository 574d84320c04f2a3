/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a kind of storage provides. The front end (storage.c, image.c, blob.c) has checked names,
 * ranges and overflows before any of these is called, cuts zeroes out of images, and owns digests
 * and checksums of blobs; a backend moves bytes and makes them durable.
 *
 * Errors as storage.h says. Every function may be called by many threads at once, except those
 * that take a writer: a writer belongs to one thread at a time. */

#include "storage/blob_index.h"
#include "storage/storage.h"

typedef struct BerthStorageBackend BerthStorageBackend;

/* Backends embed these as their first member. */
struct BerthStorage {
    const BerthStorageBackend *backend;
    gatomicrefcount refs;
};

struct BerthImageWriter {
    BerthStorage *storage; /* a reference */
    char *image_id;
    guint64 size_bytes;
    gboolean is_committed;
};

struct BerthCheckpointWriter {
    BerthStorage *storage; /* a reference */
    char *checkpoint_id;
    guint64 space_bytes;
    guint64 appended_bytes;
    gboolean is_finished;
    gboolean has_snapshot;
    gboolean is_committed;
};

struct BerthCheckpointReader {
    BerthStorage *storage; /* a reference */
};

struct BerthBlobWriter {
    BerthStorage *storage;                /* a reference */
    char hex[2 * BERTH_SHA256_BYTES + 1]; /* the promised digest */
    guint64 size_bytes;                   /* the promised size */
    guint64 upload_id; /* set by the backend: tells uploads of one digest apart, or 0 */
    gboolean is_committed;
    guint64 received_bytes;
    GChecksum *checksum;
    BerthBlobSums *sums;
};

struct BerthStorageBackend {
    const char *kind;
    void (*free)(BerthStorage *storage);
    gboolean (*prepare)(BerthStorage *storage, GError **error);
    gboolean (*check)(BerthStorage *storage, GError **error);
    gboolean (*room)(BerthStorage *storage, guint64 *out_bytes, GError **error);
    char *(*client_address)(BerthStorage *storage);
    gboolean (*is_fenced)(BerthStorage *storage);
    gboolean (*is_worn)(BerthStorage *storage);
    gboolean (*fence)(BerthStorage *storage, const char *const *addresses, GError **error);
    gboolean (*may_fence)(BerthStorage *storage, GError **error);

    GBytes *(*mark_read)(BerthStorage *storage, GError **error);
    /* EXPECTED: what is there until then; NULL: nothing. */
    gboolean (*mark_write)(BerthStorage *storage, GBytes *expected, GBytes *content,
                           GError **error);

    /* The front end fills in the base members of the writer that this returns, and clears them
     * before image_writer_free, which also removes what is not committed. */
    BerthImageWriter *(*image_create)(BerthStorage *storage, const char *image_id,
                                      guint64 size_bytes, GError **error);
    gboolean (*image_write)(BerthImageWriter *writer, guint64 offset, const guint8 *data,
                            gsize length, GError **error);
    /* Makes the range read as zeroes, without using space. */
    gboolean (*image_zero)(BerthImageWriter *writer, guint64 offset, gsize length, GError **error);
    gboolean (*image_commit)(BerthImageWriter *writer, GError **error);
    void (*image_writer_free)(BerthImageWriter *writer);
    gboolean (*image_is_committed)(BerthStorage *storage, const char *image_id,
                                   gboolean *out_committed, GError **error);
    gboolean (*image_remove)(BerthStorage *storage, const char *image_id, GError **error);
    /* Lists are unsorted, with names added as g_strdup'ed strings. */
    gboolean (*image_list)(BerthStorage *storage, GPtrArray *names, GError **error);

    BerthDiskSource *(*disk_create)(BerthStorage *storage, const char *disk_id,
                                    const char *image_id, guint64 size_bytes, GError **error);
    BerthDiskSource *(*disk_source)(BerthStorage *storage, const char *disk_id, GError **error);
    gboolean (*disk_remove)(BerthStorage *storage, const char *disk_id, gboolean with_checkpoints,
                            GError **error);
    gboolean (*disk_list)(BerthStorage *storage, GPtrArray *names, GError **error);
    char **(*disk_clients)(BerthStorage *storage, const char *disk_id, GError **error);

    /* NULL, and so the others of checkpoints: there are none. As image_create; checkpoint_writer_free removes what
     * is not committed. */
    BerthCheckpointWriter *(*checkpoint_create)(BerthStorage *storage, const char *checkpoint_id,
                                                const char *disk_id, const char *const *guest,
                                                guint64 space_bytes, GError **error);
    gboolean (*checkpoint_append)(BerthCheckpointWriter *writer, const guint8 *data, gsize length,
                                  GError **error);
    gboolean (*checkpoint_finish)(BerthCheckpointWriter *writer, const guint8 *data, gsize length,
                                  GError **error);
    gboolean (*checkpoint_snapshot)(BerthCheckpointWriter *writer, GError **error);
    gboolean (*checkpoint_commit)(BerthCheckpointWriter *writer, GBytes *record, GError **error);
    void (*checkpoint_writer_free)(BerthCheckpointWriter *writer);
    GBytes *(*checkpoint_read)(BerthStorage *storage, const char *checkpoint_id, GError **error);
    BerthCheckpointReader *(*checkpoint_open)(BerthStorage *storage, const char *checkpoint_id,
                                              GError **error);
    GBytes *(*checkpoint_next)(BerthCheckpointReader *reader, GError **error);
    void (*checkpoint_reader_free)(BerthCheckpointReader *reader);
    gboolean (*checkpoint_used)(BerthStorage *storage, const char *checkpoint_id,
                                guint64 *out_memory_bytes, guint64 *out_disk_bytes, GError **error);
    gboolean (*checkpoint_remove)(BerthStorage *storage, const char *checkpoint_id,
                                  const char *const *guest, gboolean have_ended, GError **error);
    gboolean (*checkpoint_list)(BerthStorage *storage, GPtrArray *names, GError **error);
    BerthDiskSource *(*checkpoint_restore_disk)(BerthStorage *storage, const char *checkpoint_id,
                                                const char *disk_id, GError **error);

    /* As image_create; sets upload_id. */
    BerthBlobWriter *(*blob_create)(BerthStorage *storage, const char *hex, guint64 size_bytes,
                                    GError **error);
    gboolean (*blob_append)(BerthBlobWriter *writer, const guint8 *data, gsize length,
                            GError **error);
    /* Stores INDEX last: a blob is there if its index is. TRUE too if another upload of the same
     * digest was committed before; the content is the same. */
    gboolean (*blob_commit)(BerthBlobWriter *writer, GBytes *index, GError **error);
    void (*blob_writer_free)(BerthBlobWriter *writer);
    /* A piece of the index, shorter at its end. NOT_FOUND if there is no such blob. */
    GBytes *(*blob_read_index)(BerthStorage *storage, const char *hex, guint64 offset, gsize length,
                               GError **error);
    /* A piece of the content, shorter only where content is missing. */
    GBytes *(*blob_read_data)(BerthStorage *storage, const char *hex, guint64 upload_id,
                              guint64 offset, gsize length, GError **error);
    gboolean (*blob_remove)(BerthStorage *storage, const char *hex, GError **error);
    gboolean (*blob_list)(BerthStorage *storage, GPtrArray *names, GError **error);

    gboolean (*log_write)(BerthStorage *storage, const char *log_id, guint64 offset,
                          const guint8 *data, gsize length, GError **error);
    GBytes *(*log_read)(BerthStorage *storage, const char *log_id, guint64 offset, gsize length,
                        GError **error);
    gboolean (*log_size)(BerthStorage *storage, const char *log_id, guint64 *out_bytes,
                         GError **error);
    gboolean (*log_cut)(BerthStorage *storage, const char *log_id, guint64 size_bytes,
                        GError **error);
    gboolean (*logs_remove)(BerthStorage *storage, const char *const *log_ids, gsize n_logs,
                            GError **error);
    gboolean (*log_list)(BerthStorage *storage, GPtrArray *names, GError **error);
};

BerthStorage *berth_dir_storage_connect(const BerthStorageConfig *config, GError **error);
BerthStorage *berth_rbd_storage_connect(const BerthStorageConfig *config, GError **error);

/* [A-Za-z0-9._-], 1 to 128 bytes, not starting with a dot. */
gboolean berth_storage_name_is_valid(const char *name);
/* 64 lower-case hex digits. */
gboolean berth_storage_digest_is_valid(const char *hex);
