/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is believed of the record that makes a checkpoint, when it is read. */
#include <config.h>

#include "storage/checkpoint_record.h"

#include "common/error.h"
#include "common/id.h"
#include "common/message.h"

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
