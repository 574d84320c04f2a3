/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The record in storage that makes a checkpoint, as it is read again: by the node on which its guest is to go on, and by
 * a scheduler that was not told that it was made. */

#include "proto/berth.pb-c.h"
#include "storage/storage.h"

/* Of the records that this release writes, and reads. */
#define BERTH_CHECKPOINT_VERSION 1u

/* What storage has kept of one (transfer full). DATA_LOSS: it is damaged, or of a newer release. */
Berth__CheckpointRecord *berth_checkpoint_record_unpack(GBytes *packed, const char *checkpoint_id,
                                                        GError **error);
/* The same of the checkpoint CHECKPOINT_ID; also DATA_LOSS: it is not there, or torn, so that no node can go on from
 * it. Other errors of berth_storage_checkpoint_read(). Blocks. */
Berth__CheckpointRecord *berth_checkpoint_record_read(BerthStorage *storage,
                                                      const char *checkpoint_id, GError **error);
/* REASON, of storage, becomes DATA_LOSS if the checkpoint is not there, or torn: no node can go on from it. */
void berth_checkpoint_call_lost(GError *reason);
void berth_checkpoint_record_free(Berth__CheckpointRecord *record);
