/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how the record that makes a checkpoint is written of a guest. */
#include <config.h>

#include "nodeagent/checkpoint_record.h"

#include "common/message.h"
#include "nodeagent/guest_private.h"

Berth__CheckpointRecord *berth_checkpoint_record_make(const BerthGuest *guest, const char *disk_id,
                                                      const char *domain_xml,
                                                      const Berth__CheckpointGuestReply *taken)
{
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    Berth__CheckpointGuestReply reply = *taken;
    Berth__CheckpointRecord record = BERTH__CHECKPOINT_RECORD__INIT;
    id.job = guest->id.job;
    id.task = guest->id.task;
    id.guest = guest->id.guest;
    id.epoch = guest->id.epoch;
    record.version = BERTH_CHECKPOINT_VERSION;
    record.id = &id;
    record.disk_id = (char *)disk_id;
    record.log_id = guest->log_id;
    record.taken = &reply;
    record.start_usec = guest->start_usec;
    record.vcpus = guest->limits.vcpus;
    record.memory_mib = guest->limits.memory_mib;
    record.domain = guest->name;
    record.domain_xml = (char *)domain_xml;
    record.is_emulated = !guest->context->use_kvm;
    return (Berth__CheckpointRecord *)(void *)berth_message_copy(&record.base);
}
