/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the "rbd" storage share. Its layout in the pool:
 *
 *   RBD image img-ID           with the protected snapshot "berth" once it is committed
 *   RBD image disk-ID          clone of that snapshot; metadata "berth.ready" once it is made
 *   RBD image ckpt-ID          the memory of a checkpoint, and what disk it was taken of; metadata
 *                              "berth.committed" once it is made. The disk has a snapshot of its name
 *   namespace "blobs"  HEX                      index (blob_index.h): the blob is there
 *                      HEX:UPLOAD:CHUNK         content, BERTH_RBD_CHUNK_BYTES each
 *   namespace "logs"   ID                       the first chunk; attribute "last": see rbd_log.c
 *                      ID:CHUNK                 the others
 *   namespace "berth"  mark                     see berth_storage_mark_read()
 *   namespace "check"  USER                     what berth_storage_check() writes
 *
 * UPLOAD is 16 and CHUNK 8 or more hex digits. Names have no colon, so that these cannot clash.
 *
 * One connection and one I/O context per namespace are shared by all threads: librados allows
 * that as long as the namespace of a context is left alone, and it is. */

#include <rados/librados.h>
#include <rbd/librbd.h>

#include "storage/storage_backend.h"

#define BERTH_RBD_CHUNK_BYTES ((guint64)4 * 1024 * 1024)

typedef struct BerthRbdRemovals BerthRbdRemovals;

typedef struct {
    BerthStorage base;
    char *ceph_conf;
    char *user;
    char *live_user;
    char *pool;
    char *keyring; /* NULL: what ceph_conf names */
    char *secret_uuid;
    guint op_timeout_sec;
    gint *is_fenced; /* atomic: an operation was refused because this client is blocklisted */
    gint *is_worn;   /* atomic: berth_storage_is_worn() */
    BerthRbdRemovals *removals;
    char **addresses; /* of its own clients: CLUSTER's, and LIVE_CLUSTER's */
    rados_t cluster;
    rados_t live_cluster;
    rados_ioctx_t live;   /* RBD images: disks of guests that live (rbd_live.c) */
    rados_ioctx_t images; /* RBD images, in the default namespace */
    rados_ioctx_t blobs;
    rados_ioctx_t logs;
    rados_ioctx_t marks;
    rados_ioctx_t probe;
} BerthRbdStorage;

/* --- errors: RESULT is what librados or librbd returned, a negative errno value ------------- */

void berth_rbd_set_error(const BerthRbdStorage *self, int result, GError **error,
                         const char *format, ...) G_GNUC_PRINTF(4, 5);

/* --- connections (rbd_connection.c) ----------------------------------------------------------- */

/* That call back what Ceph has done: rbd_connection.c says why. Another connection has two, for the one thing that librbd
 * cannot do with one. */
#define BERTH_RBD_THREADS 1u

/* Another client of the cluster of SELF, as USER. *OUT_CLUSTER is NULL if that failed. Result below 0: failed, and ERROR says
 * how. */
int berth_rbd_connect(const BerthRbdStorage *self, const char *user, guint threads,
                      rados_t *out_cluster, GError **error);
/* Of the client of CLUSTER, as Ceph tells it of one that watches (transfer full); "": not known. */
char *berth_rbd_address(rados_t cluster);
/* Cuts the client at ADDRESS off from the cluster, as CLUSTER's user. */
int berth_rbd_cut_off(rados_t cluster, const char *address);

/* For what librbd waits for in the thread that Ceph calls back, which needs another one. */
typedef struct {
    rados_t cluster;
    rados_ioctx_t images;
} BerthRbdSecond;

int berth_rbd_second_open(const BerthRbdStorage *self, BerthRbdSecond *second);
void berth_rbd_second_clear(BerthRbdSecond *second);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BerthRbdSecond, berth_rbd_second_clear)

/* --- the disks of guests that live (rbd_live.c) ------------------------------------------------- */

/* Connects as LIVE_USER. INVALID_ARGUMENT: that one may cut off clients. */
gboolean berth_rbd_live_open(BerthRbdStorage *self, GError **error);
void berth_rbd_live_close(BerthRbdStorage *self);
/* May CLUSTER's user cut off clients? 0, or a negative errno: -EACCES, it may not. It cuts off nobody. */
int berth_rbd_try_cut_off(rados_t cluster);
/* Takes the RESULT of an operation on such a disk: -EAGAIN where librbd did not get the lock of its owner. */
static inline int berth_rbd_live_result(int result)
{
    return result == -EROFS ? -EAGAIN : result;
}

/* --- RBD images ------------------------------------------------------------------------------ */

static inline void berth_rbd_close_image(rbd_image_t *image)
{
    if (*image != NULL)
        rbd_close(*image);
    *image = NULL;
}
#define BERTH_RBD_AUTO_IMAGE __attribute__((cleanup(berth_rbd_close_image))) rbd_image_t

static inline void berth_rbd_destroy_options(rbd_image_options_t *options)
{
    rbd_image_options_destroy(*options);
}
#define BERTH_RBD_AUTO_OPTIONS                                                                     \
    __attribute__((cleanup(berth_rbd_destroy_options))) rbd_image_options_t

#define BERTH_RBD_SNAPSHOT      "berth"
#define BERTH_RBD_HEADER_PREFIX "rbd_header." /* librbd: RBD_HEADER_PREFIX */
#define BERTH_RBD_ID_BYTES      64            /* of an internal id, the NUL included */

/* Options that images and disks have in common. -ENXIO: Ceph is told to put their data into a pool that does not exist. */
int berth_rbd_set_options(BerthRbdStorage *self, rbd_image_options_t options);
/* Takes the RESULT of an operation that watches an image's header, and returns it: librbd has to give
 * up its watch, too, when it runs out of time, and that can fail. */
int berth_rbd_watched(const BerthRbdStorage *self, int result);
/* The same for closing an image that is open for writing; *IMAGE is NULL then. */
static inline int berth_rbd_close_watched(const BerthRbdStorage *self, rbd_image_t *image)
{
    int result = *image != NULL ? rbd_close(*image) : 0;
    *image = NULL;
    return berth_rbd_watched(self, result);
}
/* IDs of the RBD images whose names start with PREFIX, added to IDS. */
gboolean berth_rbd_list_images(BerthRbdStorage *self, const char *prefix, GPtrArray *ids,
                               GError **error);
/* --- what is left (rbd_room.c) ---------------------------------------------------------------- */

gboolean berth_rbd_room(BerthStorage *storage, guint64 *out_bytes, GError **error);

/* --- who has an RBD image open (rbd_watchers.c) ----------------------------------------------- */

/* Adds the addresses of the clients that have IMAGE open for writing (transfer full): also of those that have ended within the
 * last 30 s, or were cut off in the midst of it, but not for longer. Result below 0: failed. */
int berth_rbd_watchers(BerthRbdStorage *self, rbd_image_t image, GPtrArray *addresses);

/* Who has a disk open, or had. */
typedef struct {
    const char *const *clients; /* addresses; NULL: not known */
    gboolean have_ended;
} BerthRbdGuest;

/* Of an image's exclusive lock. */
typedef struct {
    const char *address; /* as of a watcher */
    guint64 watch;       /* the cookie of the watch that it had when it took the lock */
} BerthRbdOwner;

typedef enum {
    BERTH_RBD_UNSEEN, /* it may live: its lock cannot be asked of it, and must not be taken from it */
    BERTH_RBD_SEES,   /* it is asked for it */
    BERTH_RBD_GONE,   /* nobody loses anything if it is cut off, and its lock taken */
} BerthRbdSight;

/* Pure. What is the OWNER of the lock of a disk that WATCHERS have open? GONE is one that has ended, and, beside a guest that
 * watches, a stranger: an agent, or berthd, that took the lock for a snapshot and has died (one that only stood still is cut off,
 * and connects anew). OWN, up to NULL, are the addresses of who asks: nobody's guest, even if one was there when these were
 * looked for. */
BerthRbdSight berth_rbd_sight(const rbd_image_watcher_t *watchers, gsize n,
                              const BerthRbdOwner *owner, const char *const *own,
                              const BerthRbdGuest *guest);
/* Waits until who has the lock of the disk IMAGE can be asked for it; takes it from one that is gone. For PATIENCE_USEC at most,
 * and for as long as taking takes: -EAGAIN. Result below 0: failed. */
int berth_rbd_await_owner(BerthRbdStorage *self, rbd_image_t image, const BerthRbdGuest *guest,
                          gint64 patience_usec);

/* --- removing RBD images (rbd_removal.c) ------------------------------------------------------ */

typedef struct {
    char *id;
    time_t trashed; /* when it came to RBD's trash, as it is being removed; 0: it is not there */
} BerthRbdFound;

void berth_rbd_found_clear(BerthRbdFound *found);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(BerthRbdFound, berth_rbd_found_clear)
/* The image NAME, also one of which the removal was interrupted. -ENOENT: there is none. */
int berth_rbd_find(BerthRbdStorage *self, const char *name, BerthRbdFound *out_found);

BerthRbdRemovals *berth_rbd_removals_new(void);
void berth_rbd_removals_free(BerthRbdRemovals *removals);
/* Nobody but this thread removes the image NAME from now on, until it is gone or the claim is given up. -EBUSY: another
 * one, here or another client's, is removing it. 0 also where there is no such image. */
int berth_rbd_claim(BerthRbdStorage *self, const char *name);
/* To be called for each claim. RESULT: of the removal; if it has failed, others may claim the image at once, unless what
 * was asked of Ceph may still be under way (-ETIMEDOUT). */
void berth_rbd_end_claim(BerthRbdStorage *self, const char *name, int result);
/* rbd_remove() of an image that was claimed. */
int berth_rbd_remove_claimed(BerthRbdStorage *self, const char *name);
/* All three. */
int berth_rbd_remove(BerthRbdStorage *self, const char *name);

/* --- byte streams in chunks ------------------------------------------------------------------ */

/* One stream: chunk N is object NAME(STREAM, N). */
typedef struct BerthRbdStream BerthRbdStream;
struct BerthRbdStream {
    rados_ioctx_t io;
    const char *id;
    guint64 upload_id; /* blobs */
    char *(*name)(const BerthRbdStream *stream, guint64 chunk);
};

/* All return 0 or the first error; several chunks are under way at a time. */
/* NEEDS_CHUNKS: -ENOENT if a chunk but the first is not there and is not written from its start. */
int berth_rbd_stream_write(const BerthRbdStream *stream, guint64 offset, const guint8 *data,
                           gsize length, gboolean needs_chunks);
/* What no object has reads as zeroes; *out_complete is the length up to the first such byte. */
int berth_rbd_stream_read(const BerthRbdStream *stream, guint64 offset, guint8 *data, gsize length,
                          gsize *out_complete);
/* Chunks FIRST to END - 1; those that are not there are no error. */
int berth_rbd_stream_remove(const BerthRbdStream *stream, guint64 first, guint64 end);

/* Calls VISIT for the name of each object. Result below 0: failed. */
int berth_rbd_visit_objects(rados_ioctx_t io, void (*visit)(const char *name, gpointer data),
                            gpointer data);

/* --- the backend's functions, by file --------------------------------------------------------- */

BerthImageWriter *berth_rbd_image_create(BerthStorage *storage, const char *image_id,
                                         guint64 size_bytes, GError **error);
gboolean berth_rbd_image_write(BerthImageWriter *writer, guint64 offset, const guint8 *data,
                               gsize length, GError **error);
gboolean berth_rbd_image_zero(BerthImageWriter *writer, guint64 offset, gsize length,
                              GError **error);
gboolean berth_rbd_image_commit(BerthImageWriter *writer, GError **error);
void berth_rbd_image_writer_free(BerthImageWriter *writer);
gboolean berth_rbd_image_is_committed(BerthStorage *storage, const char *image_id,
                                      gboolean *out_committed, GError **error);
gboolean berth_rbd_image_remove(BerthStorage *storage, const char *image_id, GError **error);
gboolean berth_rbd_image_list(BerthStorage *storage, GPtrArray *names, GError **error);

BerthDiskSource *berth_rbd_disk_create(BerthStorage *storage, const char *disk_id,
                                       const char *image_id, guint64 size_bytes, GError **error);
BerthDiskSource *berth_rbd_disk_source(BerthStorage *storage, const char *disk_id, GError **error);
gboolean berth_rbd_disk_remove(BerthStorage *storage, const char *disk_id,
                               gboolean with_checkpoints, GError **error);
gboolean berth_rbd_disk_list(BerthStorage *storage, GPtrArray *names, GError **error);
char **berth_rbd_disk_clients(BerthStorage *storage, const char *disk_id, GError **error);

BerthCheckpointWriter *berth_rbd_checkpoint_create(BerthStorage *storage, const char *checkpoint_id,
                                                   const char *disk_id, const char *const *guest,
                                                   guint64 space_bytes, GError **error);
gboolean berth_rbd_checkpoint_append(BerthCheckpointWriter *writer, const guint8 *data,
                                     gsize length, GError **error);
gboolean berth_rbd_checkpoint_finish(BerthCheckpointWriter *writer, const guint8 *data,
                                     gsize length, GError **error);
gboolean berth_rbd_checkpoint_snapshot(BerthCheckpointWriter *writer, GError **error);
gboolean berth_rbd_checkpoint_commit(BerthCheckpointWriter *writer, GBytes *record, GError **error);
void berth_rbd_checkpoint_writer_free(BerthCheckpointWriter *writer);
GBytes *berth_rbd_checkpoint_read(BerthStorage *storage, const char *checkpoint_id, GError **error);
BerthCheckpointReader *berth_rbd_checkpoint_open(BerthStorage *storage, const char *checkpoint_id,
                                                 GError **error);
GBytes *berth_rbd_checkpoint_next(BerthCheckpointReader *reader, GError **error);
void berth_rbd_checkpoint_reader_free(BerthCheckpointReader *reader);
gboolean berth_rbd_checkpoint_used(BerthStorage *storage, const char *checkpoint_id,
                                   guint64 *out_memory_bytes, guint64 *out_disk_bytes,
                                   GError **error);
gboolean berth_rbd_checkpoint_remove(BerthStorage *storage, const char *checkpoint_id,
                                     const char *const *guest, gboolean have_ended, GError **error);
gboolean berth_rbd_checkpoint_list(BerthStorage *storage, GPtrArray *names, GError **error);
BerthDiskSource *berth_rbd_checkpoint_restore_disk(BerthStorage *storage, const char *checkpoint_id,
                                                   const char *disk_id, GError **error);

BerthBlobWriter *berth_rbd_blob_create(BerthStorage *storage, const char *hex, guint64 size_bytes,
                                       GError **error);
gboolean berth_rbd_blob_append(BerthBlobWriter *writer, const guint8 *data, gsize length,
                               GError **error);
gboolean berth_rbd_blob_commit(BerthBlobWriter *writer, GBytes *index, GError **error);
void berth_rbd_blob_writer_free(BerthBlobWriter *writer);
GBytes *berth_rbd_blob_read_index(BerthStorage *storage, const char *hex, guint64 offset,
                                  gsize length, GError **error);
GBytes *berth_rbd_blob_read_data(BerthStorage *storage, const char *hex, guint64 upload_id,
                                 guint64 offset, gsize length, GError **error);
gboolean berth_rbd_blob_remove(BerthStorage *storage, const char *hex, GError **error);
gboolean berth_rbd_blob_list(BerthStorage *storage, GPtrArray *names, GError **error);

GBytes *berth_rbd_mark_read(BerthStorage *storage, GError **error);
gboolean berth_rbd_mark_write(BerthStorage *storage, GBytes *expected, GBytes *content,
                              GError **error);

gboolean berth_rbd_log_write(BerthStorage *storage, const char *log_id, guint64 offset,
                             const guint8 *data, gsize length, GError **error);
GBytes *berth_rbd_log_read(BerthStorage *storage, const char *log_id, guint64 offset, gsize length,
                           GError **error);
gboolean berth_rbd_log_size(BerthStorage *storage, const char *log_id, guint64 *out_bytes,
                            GError **error);
gboolean berth_rbd_log_cut(BerthStorage *storage, const char *log_id, guint64 size_bytes,
                           GError **error);
gboolean berth_rbd_logs_remove(BerthStorage *storage, const char *const *log_ids, gsize n_logs,
                               GError **error);
gboolean berth_rbd_log_list(BerthStorage *storage, GPtrArray *names, GError **error);
