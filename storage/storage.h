/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <gio/gio.h>

/* Where images, job disks, blobs and logs live: one interface, two implementations.
 *
 *   rbd  Ceph: images and disks are RBD images (a disk is a clone of depth 1 of the image's
 *        protected snapshot), blobs and logs are RADOS objects
 *   dir  a directory of one machine or of a shared file system: sparse files, qcow2 overlays
 *
 * All functions block (up to op_timeout_sec each) and are called on worker threads; one
 * BerthStorage may be used by many threads at once; a writer by one at a time. Nothing is cached
 * here. What a crashed writer left behind is swept when it is older than a day, by preparing (dir)
 * and by the lists; images of rbd are listed instead.
 *
 * Names (image ids, disk ids, log ids) are made by Berth: [A-Za-z0-9._-], 1 to 128 bytes, not
 * starting with a dot. INVALID_ARGUMENT for others.
 *
 * Errors of every function: UNAVAILABLE or DEADLINE_EXCEEDED while storage cannot be reached
 * (try again), RESOURCE_EXHAUSTED when it is full, NOT_FOUND, ALREADY_EXISTS,
 * FAILED_PRECONDITION (in use), UNSUPPORTED (dir cannot do it), DATA_LOSS (corrupt). */

typedef struct {
    char *kind; /* "rbd" or "dir" */
    /* rbd */
    char *ceph_conf; /* path of ceph.conf */
    char *ceph_user; /* "client." is added: "berth" */
    /* What is done to the disk of a guest that lives is done as this one, which must not have the right to cut off clients
     * (rbd_live.c says why): "berth-live" */
    char *ceph_live_user;
    char *keyring;     /* path of a file with both keys, or NULL: as ceph.conf says */
    char *pool;        /* images, disks, blobs, logs */
    char *secret_uuid; /* of the libvirt secret with the key of ceph_user, for berth-node */
    /* dir */
    char *path;
    /* both */
    guint op_timeout_sec; /* 1..600 */
} BerthStorageConfig;

typedef struct BerthStorage BerthStorage;

/* Connects, and checks that the pool or directory exists. Neither this nor a look at the mark changes
 * anything in storage: who is to use only what is its own looks there, or makes the mark, and then
 * prepares. */
BerthStorage *berth_storage_connect(const BerthStorageConfig *config, GError **error);
/* Before anything but the mark is used: checks that storage can be written, makes folders (dir), and
 * sweeps. */
gboolean berth_storage_prepare(BerthStorage *storage, GError **error);
/* Both. */
BerthStorage *berth_storage_open(const BerthStorageConfig *config, GError **error);
/* One more reference, for another thread or a later moment. (transfer full) */
BerthStorage *berth_storage_ref(BerthStorage *storage);
/* Drops a reference; the last one closes it, which blocks. A writer has one of its own. */
void berth_storage_free(BerthStorage *storage);
/* Has anybody another reference than the caller? Never TRUE again once it was FALSE, unless the caller
 * gives one away. Does not block. */
gboolean berth_storage_is_shared(BerthStorage *storage);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthStorage, berth_storage_free)

const char *berth_storage_kind(BerthStorage *storage);
/* One small read and write: TRUE if storage answers now. */
gboolean berth_storage_check(BerthStorage *storage, GError **error);
/* How much more it can take, as it stands now: of one pool of Ceph, copies accounted for; of the file system that dir is
 * in. What is written meanwhile by others is not foreseen. */
gboolean berth_storage_room(BerthStorage *storage, guint64 *out_bytes, GError **error);
/* The addresses of this process's own clients, separated by spaces, for fencing a whole agent; "" where there are none. Does
 * not block. (transfer full) */
char *berth_storage_client_address(BerthStorage *storage);
/* Has an operation failed because this process was cut off (berth_storage_fence())? Then all others
 * will: only storage that is opened anew can be used. */
gboolean berth_storage_is_fenced(BerthStorage *storage);
/* May this handle keep a disk from ever being removed? An operation on an RBD image that ran out of
 * time, or that came to nothing for another reason, can leave a watch of its header in Ceph's client,
 * which keeps it alive for as long as the client lives: removing then says FAILED_PRECONDITION to
 * everybody. TRUE, and for good, once such an operation timed out, or nobody but this client itself
 * had a disk open that could not be removed, or this client has the lock of one that it does not watch. All else works on; open storage anew, free this handle,
 * and what could not be removed can be 30 s later. */
gboolean berth_storage_is_worn(BerthStorage *storage);

/* --- the mark: whose storage it is ------------------------------------------------------- */

/* One small record that whoever uses the storage as its own keeps in it; its content means nothing
 * here. All three are atomic and durable: a reader finds the whole record, the old or the new one.
 * CONTENT: 1 to BERTH_STORAGE_MARK_BYTES_MAX bytes of which the last is not 0, INVALID_ARGUMENT for
 * others. */
#define BERTH_STORAGE_MARK_BYTES_MAX 4096

/* NOT_FOUND: there is none. (transfer full) */
GBytes *berth_storage_mark_read(BerthStorage *storage, GError **error);
/* ALREADY_EXISTS: there is one, maybe made at the same moment by another process. */
gboolean berth_storage_mark_create(BerthStorage *storage, GBytes *content, GError **error);
/* In the place of EXPECTED, which the mark is found to be in the same step: of several who replace the
 * same one, one does. FAILED_PRECONDITION: it is another; NOT_FOUND: there is none. */
gboolean berth_storage_mark_replace(BerthStorage *storage, GBytes *expected, GBytes *content,
                                    GError **error);

/* --- images: written once, then immutable ------------------------------------------------- */

/* An image that is being written; not visible in lists until committed. */
typedef struct BerthImageWriter BerthImageWriter;
BerthImageWriter *berth_storage_image_create(BerthStorage *storage, const char *image_id,
                                             guint64 size_bytes, GError **error);
/* Any range, any order, repeatedly. Zeroes take no space. */
gboolean berth_image_writer_write(BerthImageWriter *writer, guint64 offset, const void *data,
                                  gsize length, GError **error);
/* Flushes and makes it immutable (rbd: protected snapshot). The writer is to be freed after. */
gboolean berth_image_writer_commit(BerthImageWriter *writer, GError **error);
/* Not committed: removes what was written. */
void berth_image_writer_free(BerthImageWriter *writer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthImageWriter, berth_image_writer_free)

/* With FALSE in *OUT_COMMITTED: there is no such image, or what a crashed import left of it, or one that
 * is still being written. */
gboolean berth_storage_image_is_committed(BerthStorage *storage, const char *image_id,
                                          gboolean *out_committed, GError **error);
/* Also what a crashed import or removal left that has its name. FAILED_PRECONDITION while a disk depends
 * on it, or a client writes it; NOT_FOUND: nothing has its name any more. */
gboolean berth_storage_image_remove(BerthStorage *storage, const char *image_id, GError **error);
/* NULL-terminated, sorted (transfer full). Includes what a crashed import left behind. */
char **berth_storage_image_list(BerthStorage *storage, GError **error);

/* --- disks: writable, copy-on-write from an image ------------------------------------------ */

/* What a hypervisor attaches. */
typedef struct {
    gboolean is_rbd;
    char *rbd_pool;
    char *rbd_image;
    char **rbd_monitors; /* "host:port" */
    char *rbd_user;
    char *rbd_secret_uuid;
    char *file_path;   /* dir */
    char *file_format; /* "qcow2" */
} BerthDiskSource;
void berth_disk_source_free(BerthDiskSource *source);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthDiskSource, berth_disk_source_free)

/* SIZE_BYTES at least the image's. Already there: ALREADY_EXISTS. */
BerthDiskSource *berth_storage_disk_create(BerthStorage *storage, const char *disk_id,
                                           const char *image_id, guint64 size_bytes,
                                           GError **error);
BerthDiskSource *berth_storage_disk_source(BerthStorage *storage, const char *disk_id,
                                           GError **error);
/* Removing what does not exist is not an error. FAILED_PRECONDITION while a client has it open, or a committed
 * checkpoint needs it; what torn ones left of them goes with it. */
gboolean berth_storage_disk_remove(BerthStorage *storage, const char *disk_id, GError **error);
/* The same, with all checkpoints that were taken of it. */
gboolean berth_storage_disk_remove_with_checkpoints(BerthStorage *storage, const char *disk_id,
                                                    GError **error);
char **berth_storage_disk_list(BerthStorage *storage, GError **error);
/* Addresses of the clients that have it open now, NULL-terminated; empty for dir. Those of a disk whose removal was interrupted
 * are told as well. */
char **berth_storage_disk_clients(BerthStorage *storage, const char *disk_id, GError **error);

/* Cuts the clients at ADDRESSES off, for 24 hours: by then they must have been ended. Whoever
 * connects after this returned sees none of their writes any more. Never cuts STORAGE itself off,
 * which may be among the clients of a disk (berth_storage_is_worn()). UNSUPPORTED for dir. An empty
 * list is not an error. */
gboolean berth_storage_fence(BerthStorage *storage, const char *const *addresses, GError **error);
/* May it? For who is to do so once a node is lost, and is to know before. TRUE where nobody can be fenced. PERMISSION_DENIED: it
 * lacks the right. It changes the map of Ceph's OSDs: not for a thousand processes. */
gboolean berth_storage_may_fence(BerthStorage *storage, GError **error);

/* --- checkpoints: a guest's memory, and its disk as it was at the same instant -------------------------- */

/* A checkpoint is made in these steps, by one at a time:
 *
 *   create    from here on the list has it
 *   append    its memory, as the hypervisor writes it, until that has stopped the guest
 *   snapshot  of the disk, while the guest stands still
 *   commit    of a record, which is written last. What has none is torn: it is never read, and it is removed
 *
 * The snapshot is one of the disk itself, under whatever name: a disk that is restored keeps the snapshots that it
 * has, so that all its checkpoints can be restored from, earlier and later ones, and nothing becomes deeper.
 * UNSUPPORTED for dir. */

/* RECORD: 1 to this many bytes. */
#define BERTH_STORAGE_CHECKPOINT_RECORD_BYTES_MAX 65536

typedef struct BerthCheckpointWriter BerthCheckpointWriter;
/* For a memory of up to SPACE_BYTES, which takes as much in storage as is written. One that is torn is made anew. GUEST (transfer
 * none): addresses of the clients by which the guest has the disk open, as of berth_storage_disk_clients(); NULL: not known.
 * ALREADY_EXISTS: it is committed. NOT_FOUND: there is no such disk. FAILED_PRECONDITION: it is being written. UNAVAILABLE, as
 * from snapshot: storage has lost sight of the guest, which would be cut off from its disk. */
BerthCheckpointWriter *berth_storage_checkpoint_create(BerthStorage *storage,
                                                       const char *checkpoint_id,
                                                       const char *disk_id,
                                                       const char *const *guest,
                                                       guint64 space_bytes, GError **error);
/* RESOURCE_EXHAUSTED: that is more than SPACE_BYTES in all, or storage is full. */
gboolean berth_checkpoint_writer_append(BerthCheckpointWriter *writer, const void *data,
                                        gsize length, GError **error);
/* All that was appended is durable, and its first bytes, which are there, are DATA. */
gboolean berth_checkpoint_writer_finish(BerthCheckpointWriter *writer, const void *data,
                                        gsize length, GError **error);
/* Of the disk. */
gboolean berth_checkpoint_writer_snapshot(BerthCheckpointWriter *writer, GError **error);
/* Of what was finished and has its snapshot. The writer is to be freed after. */
gboolean berth_checkpoint_writer_commit(BerthCheckpointWriter *writer, GBytes *record,
                                        GError **error);
/* Not committed: removes what there is of it. */
void berth_checkpoint_writer_free(BerthCheckpointWriter *writer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthCheckpointWriter, berth_checkpoint_writer_free)

/* The record (transfer full). NOT_FOUND: there is no such checkpoint; FAILED_PRECONDITION: it is torn. */
GBytes *berth_storage_checkpoint_read(BerthStorage *storage, const char *checkpoint_id,
                                      GError **error);
/* Its memory, from the start on. Errors as of berth_storage_checkpoint_read(). */
typedef struct BerthCheckpointReader BerthCheckpointReader;
BerthCheckpointReader *berth_storage_checkpoint_open(BerthStorage *storage,
                                                     const char *checkpoint_id, GError **error);
/* The next piece (transfer full); one of 0 bytes: that was all, which may be more than was appended, zeroes. */
GBytes *berth_checkpoint_reader_next(BerthCheckpointReader *reader, GError **error);
void berth_checkpoint_reader_free(BerthCheckpointReader *reader);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthCheckpointReader, berth_checkpoint_reader_free)

/* What its memory takes, and what the disk has written since the checkpoint before it, or since it was made: what the
 * snapshot can keep at most besides that. Both in whole objects of storage. Torn ones too. NOT_FOUND. */
gboolean berth_storage_checkpoint_used(BerthStorage *storage, const char *checkpoint_id,
                                       guint64 *out_memory_bytes, guint64 *out_disk_bytes,
                                       GError **error);
/* Record, snapshot and memory, in this order: one that is half removed is torn. Removing what does not exist is not an
 * error. FAILED_PRECONDITION while a client has the memory open, and while storage has lost sight of the client that has the disk's
 * lock, which would be cut off. GUEST (transfer none, NULL: not known): addresses as for create, which live, or HAVE_ENDED. */
gboolean berth_storage_checkpoint_remove(BerthStorage *storage, const char *checkpoint_id,
                                         const char *const *guest, gboolean have_ended,
                                         GError **error);
/* Torn ones too. */
char **berth_storage_checkpoint_list(BerthStorage *storage, GError **error);
/* Puts the disk that the committed checkpoint was taken of back to that instant, as DISK_ID, which from then on is its
 * name. Repeatable. FAILED_PRECONDITION: it is torn, or a client has the disk open, which must have been fenced or
 * ended before; ALREADY_EXISTS: another disk has that name; DATA_LOSS: it has no disk any more. */
BerthDiskSource *berth_storage_checkpoint_restore_disk(BerthStorage *storage,
                                                       const char *checkpoint_id,
                                                       const char *disk_id, GError **error);

/* --- blobs: content-addressed, immutable --------------------------------------------------- */

#define BERTH_SHA256_BYTES 32
/* For a GHashTable whose keys are digests. */
guint berth_digest_hash(gconstpointer digest);
gboolean berth_digest_equal(gconstpointer a, gconstpointer b);

typedef struct BerthBlobWriter BerthBlobWriter;
/* Appends; at commit the content must have DIGEST and SIZE_BYTES, else INVALID_ARGUMENT. */
BerthBlobWriter *berth_storage_blob_create(BerthStorage *storage,
                                           const guint8 digest[BERTH_SHA256_BYTES],
                                           guint64 size_bytes, GError **error);
gboolean berth_blob_writer_append(BerthBlobWriter *writer, const void *data, gsize length,
                                  GError **error);
gboolean berth_blob_writer_commit(BerthBlobWriter *writer, GError **error);
void berth_blob_writer_free(BerthBlobWriter *writer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthBlobWriter, berth_blob_writer_free)
gboolean berth_storage_blob_exists(BerthStorage *storage, const guint8 digest[BERTH_SHA256_BYTES],
                                   gboolean *out_exists, GError **error);
/* Up to LENGTH bytes from OFFSET, fewer only at the end (transfer full). Checked against sums made
 * at commit: DATA_LOSS if it is not what was written. */
GBytes *berth_storage_blob_read(BerthStorage *storage, const guint8 digest[BERTH_SHA256_BYTES],
                                guint64 offset, gsize length, GError **error);
/* Removing what does not exist is not an error. */
gboolean berth_storage_blob_remove(BerthStorage *storage, const guint8 digest[BERTH_SHA256_BYTES],
                                   GError **error);
/* Lower-case hex digests, NULL-terminated. */
char **berth_storage_blob_list(BerthStorage *storage, GError **error);

/* --- logs: byte streams written at explicit offsets ----------------------------------------- */

/* Durable when it returns. Writing the same range again with the same bytes changes nothing. */
gboolean berth_storage_log_write(BerthStorage *storage, const char *log_id, guint64 offset,
                                 const void *data, gsize length, GError **error);
/* Up to LENGTH bytes from OFFSET; an empty GBytes at or past the end or if there is no such log. */
GBytes *berth_storage_log_read(BerthStorage *storage, const char *log_id, guint64 offset,
                               gsize length, GError **error);
/* End of what was written; 0 if there is no such log. */
gboolean berth_storage_log_size(BerthStorage *storage, const char *log_id, guint64 *out_bytes,
                                GError **error);
/* What is past SIZE_BYTES is not there any more; durable when it returns, and repeatable. DATA_LOSS: it is shorter. */
gboolean berth_storage_log_cut(BerthStorage *storage, const char *log_id, guint64 size_bytes,
                               GError **error);
/* Removing what does not exist is not an error. */
gboolean berth_storage_log_remove(BerthStorage *storage, const char *log_id, GError **error);
/* The same of many, several at a time; after a failure some may be left. */
gboolean berth_storage_logs_remove(BerthStorage *storage, const char *const *log_ids, gsize n_logs,
                                   GError **error);
char **berth_storage_log_list(BerthStorage *storage, GError **error);
