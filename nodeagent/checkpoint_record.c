/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the record that makes a checkpoint: how it is written of a guest, and what is believed of one that is read. */
#include <config.h>

#include "nodeagent/checkpoint_record.h"

#include "common/error.h"
#include "common/id.h"
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

static gboolean is_whole(const Berth__CheckpointRecord *record)
{
    BerthGuestId id;
    return record->version == BERTH_CHECKPOINT_VERSION && record->taken != NULL &&
           *record->domain_xml != '\0' && berth_guest_name_parse(record->domain, &id, NULL);
}

Berth__CheckpointRecord *berth_checkpoint_record_unpack(GBytes *packed, const char *checkpoint_id,
                                                        GError **error)
{
    gsize length = 0;
    const guint8 *data = g_bytes_get_data(packed, &length);
    g_autoptr(ProtobufCMessage) message =
        berth_message_unpack(&berth__checkpoint_record__descriptor, data, length, NULL);
    if (message != NULL && is_whole((const Berth__CheckpointRecord *)(const void *)message))
        return (Berth__CheckpointRecord *)(void *)g_steal_pointer(&message);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
                "the record of checkpoint %s is damaged, or of a newer release", checkpoint_id);
    return NULL;
}

void berth_checkpoint_call_lost(GError *reason)
{
    if (g_error_matches(reason, BERTH_ERROR, BERTH_ERROR_NOT_FOUND) ||
        g_error_matches(reason, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION))
        reason->code = BERTH_ERROR_DATA_LOSS;
}

Berth__CheckpointRecord *berth_checkpoint_record_read(BerthStorage *storage,
                                                      const char *checkpoint_id, GError **error)
{
    g_autoptr(GError) reason = NULL;
    g_autoptr(GBytes) packed = berth_storage_checkpoint_read(storage, checkpoint_id, &reason);
    if (packed != NULL)
        return berth_checkpoint_record_unpack(packed, checkpoint_id, error);
    berth_checkpoint_call_lost(reason);
    g_propagate_error(error, g_steal_pointer(&reason));
    return NULL;
}

void berth_checkpoint_record_free(Berth__CheckpointRecord *record)
{
    berth_message_free(record == NULL ? NULL : &record->base);
}
