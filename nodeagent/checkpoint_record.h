/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The record in storage that makes a checkpoint, as it is written. */

#include "nodeagent/guest.h"
#include "storage/checkpoint_record.h"

/* Of GUEST with that disk, whose domain libvirt has saved as DOMAIN_XML (transfer full). TAKEN is copied; what its worker
 * measures is added later. */
Berth__CheckpointRecord *berth_checkpoint_record_make(const BerthGuest *guest, const char *disk_id,
                                                      const char *domain_xml,
                                                      const Berth__CheckpointGuestReply *taken);
