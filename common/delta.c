/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how messages of numbers are told by their differences. Generic over the type, so that a field that
 * is added is told, too. */
#include <config.h>

#include "common/delta.h"

static guint64 get(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    const guint8 *member = (const guint8 *)message + field->offset;
    g_assert(field->type == PROTOBUF_C_TYPE_UINT32 || field->type == PROTOBUF_C_TYPE_UINT64);
    return field->type == PROTOBUF_C_TYPE_UINT32 ? *(const uint32_t *)(const void *)member
                                                 : *(const uint64_t *)(const void *)member;
}

static void set(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field, guint64 value)
{
    guint8 *member = (guint8 *)message + field->offset;
    if (field->type == PROTOBUF_C_TYPE_UINT32)
        *(uint32_t *)(void *)member = (uint32_t)value;
    else
        *(uint64_t *)(void *)member = value;
}

void berth_delta_make(const ProtobufCMessage *before, const ProtobufCMessage *now,
                      ProtobufCMessage *out_changed, GArray *zeros)
{
    const ProtobufCMessageDescriptor *type = now->descriptor;
    g_assert(before->descriptor == type && out_changed->descriptor == type);
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        guint64 value = get(now, field);
        if (value == get(before, field))
            continue;
        set(out_changed, field, value);
        if (value == 0)
            g_array_append_val(zeros, field->id);
    }
}

void berth_delta_apply(ProtobufCMessage *known, const ProtobufCMessage *changed,
                       const uint32_t *zeros, gsize n_zeros)
{
    const ProtobufCMessageDescriptor *type = known->descriptor;
    for (unsigned i = 0; changed != NULL && i < type->n_fields; i++) {
        guint64 value = get(changed, &type->fields[i]);
        if (value != 0)
            set(known, &type->fields[i], value);
    }
    for (gsize i = 0; i < n_zeros; i++) {
        const ProtobufCFieldDescriptor *field =
            protobuf_c_message_descriptor_get_field(type, zeros[i]);
        if (field != NULL)
            set(known, field, 0);
    }
}
