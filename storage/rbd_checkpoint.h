/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Within rbd_checkpoint.c, rbd_memory.c and rbd_disk.c only. */

#include "storage/rbd_internal.h"

#define BERTH_RBD_CHECKPOINT_PREFIX "ckpt-"
/* Metadata of the memory's image: the record in base 64, and the internal id of the disk's image. */
#define BERTH_RBD_COMMITTED_KEY "berth.committed"
#define BERTH_RBD_DISK_KEY      "berth.disk"

/* Of the memory's image, and of the disk's snapshot (transfer full). */
char *berth_rbd_checkpoint_name(const char *checkpoint_id);
/* The memory's image, to be read, and the record in base 64 (transfer full). */
rbd_image_t berth_rbd_checkpoint_open_committed(BerthRbdStorage *self, const char *checkpoint_id,
                                                char **out_record, GError **error);
/* Whether there is a committed one of that NAME. */
int berth_rbd_checkpoint_is_committed(BerthRbdStorage *self, const char *name,
                                      gboolean *out_committed);
/* How long it is waited for a guest that Ceph does not see (berth_rbd_await_owner()): for QEMU's client to look for itself, which
 * it does every 5 s (objecter_tick_interval); and where it was seen before, or is looked for again. */
#define BERTH_RBD_SIGHT_USEC ((gint64)10 * G_USEC_PER_SEC)
#define BERTH_RBD_RACE_USEC  ((gint64)2 * G_USEC_PER_SEC)
/* It was not seen in that time, so that CHECKPOINT_ID cannot be VERBed: UNAVAILABLE for who waits for it; who removes what he
 * finds takes that for an outage, and has to leave this one alone. */
void berth_rbd_set_unseen(GError **error, BerthErrorCode code, const char *verb,
                          const char *checkpoint_id);
/* What IMAGE, as of the snapshot that it is open at, stores in whole objects, since the snapshot SINCE or in all. */
int berth_rbd_stored_bytes(rbd_image_t image, const char *since, guint64 *out_bytes);
/* Removes what there is of NAME: record, snapshot, memory. GUEST has its disk, or NULL: nobody has it open. -EBUSY: it is being
 * written; -EAGAIN: Ceph has lost sight of the disk's guest (berth_rbd_set_unseen()), and the record is gone; -ENOENT: there is
 * nothing. */
int berth_rbd_checkpoint_discard(BerthRbdStorage *self, const char *name,
                                 const BerthRbdGuest *guest);
/* The snapshot of that name alone, of the disk with the internal id DISK_ID; one that is not there is no error. -EAGAIN: as
 * above. */
int berth_rbd_checkpoint_remove_snapshot(BerthRbdStorage *self, const char *disk_id,
                                         const char *name, const BerthRbdGuest *guest);
/* Of all checkpoints of the disk's image DISK. Not WITH_COMMITTED: if there is a committed one none is removed, and
 * *OUT_KEPT is its id (transfer full). -EBUSY: a client has the disk open. */
int berth_rbd_checkpoint_discard_all(BerthRbdStorage *self, const char *disk,
                                     gboolean with_committed, char **out_kept);
