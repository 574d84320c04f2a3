/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the handling of any message through its descriptor: packing, bounded unpacking, copying,
 * looking at fields. Knows no message of the schema. */
#include "common/message.h"

#include "common/error.h"

#include <stdlib.h>
#include <string.h>

/* --- fields -------------------------------------------------------------------------------- */

static gconstpointer member_of(const ProtobufCMessage *message, guint offset)
{
    return (const guint8 *)message + offset;
}

static gboolean is_repeated(const ProtobufCFieldDescriptor *field)
{
    return field->label == PROTOBUF_C_LABEL_REPEATED;
}

gsize berth_message_element_size(const ProtobufCFieldDescriptor *field)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return sizeof(guint64);
    case PROTOBUF_C_TYPE_BOOL:
        return sizeof(protobuf_c_boolean);
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(gpointer);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_ENUM:
        return sizeof(guint32);
    }
    g_return_val_if_reached(sizeof(guint32));
}

gconstpointer berth_message_element(const ProtobufCMessage *message,
                                    const ProtobufCFieldDescriptor *field, gsize index)
{
    gconstpointer member = member_of(message, field->offset);
    if (!is_repeated(field))
        return member;
    return *(const guint8 *const *)member + index * berth_message_element_size(field);
}

/* A proto3 scalar travels when it is not the default, which is all zero. */
static gboolean is_set(const ProtobufCFieldDescriptor *field, gconstpointer member)
{
    static const guint8 zero[sizeof(guint64)];
    if (field->type == PROTOBUF_C_TYPE_STRING) {
        const char *text = *(const char *const *)member;
        return text != NULL && *text != '\0';
    }
    if (field->type == PROTOBUF_C_TYPE_BYTES)
        return ((const ProtobufCBinaryData *)member)->len > 0;
    return memcmp(member, zero, berth_message_element_size(field)) != 0;
}

gboolean berth_message_has_field(const ProtobufCMessage *message,
                                 const ProtobufCFieldDescriptor *field)
{
    if (is_repeated(field))
        return *(const size_t *)member_of(message, field->quantifier_offset) > 0;
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return *(const guint32 *)member_of(message, field->quantifier_offset) == field->id;
    return is_set(field, member_of(message, field->offset));
}

gsize berth_message_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    if (is_repeated(field))
        return *(const size_t *)member_of(message, field->quantifier_offset);
    return berth_message_has_field(message, field) ? 1 : 0;
}

/* --- unpacking what a peer sent --------------------------------------------------------------- */

/* Counts what protobuf-c allocates. It gets and frees by malloc() and free(), so that the message
 * can be freed without it. */
typedef struct {
    gsize used;
    gsize max;
    gboolean exhausted;
} Budget;

static void *budget_alloc(void *data, size_t size)
{
    Budget *budget = data;
    /* What malloc() adds counts too: many small pieces are the attack. */
    gsize cost = size + 2 * sizeof(gpointer);
    if (budget->exhausted || cost > budget->max - budget->used) {
        budget->exhausted = TRUE;
        return NULL;
    }
    budget->used += cost;
    return malloc(size);
}

static void budget_free(void *data, void *pointer)
{
    free(pointer);
}

/* What protobuf-c lets pass: any bytes for a string, and an unknown field of number 0, which is none
 * and which protobuf-c itself does not read back. */
static gboolean check_contents(const ProtobufCMessage *message, gboolean any_text, GError **error)
{
    for (guint i = 0; i < message->n_unknown_fields; i++) {
        if (message->unknown_fields[i].tag == 0) {
            g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                        "cannot read a %s: it has a field of number 0",
                        message->descriptor->short_name);
            return FALSE;
        }
    }
    for (guint i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        gsize count = 0;
        if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE)
            count = berth_message_count(message, field);
        for (gsize j = 0; j < count; j++) {
            gconstpointer element =
                *(gconstpointer const *)berth_message_element(message, field, j);
            if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
                if (!check_contents(element, any_text, error))
                    return FALSE;
            } else if (!any_text && !g_utf8_validate(element, -1, NULL)) {
                g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                            "cannot read a %s: its field %s is not UTF-8 text",
                            message->descriptor->short_name, field->name);
                return FALSE;
            }
        }
    }
    return TRUE;
}

static ProtobufCMessage *unpack(const ProtobufCMessageDescriptor *descriptor, const void *data,
                                gsize length, gsize memory_max, gboolean any_text,
                                gsize *out_memory, GError **error)
{
    Budget budget = {.max = memory_max};
    ProtobufCAllocator allocator = {budget_alloc, budget_free, &budget};
    /* An empty message may come with no address at all. */
    const guint8 *bytes = length > 0 ? data : (const guint8 *)"";
    g_autoptr(ProtobufCMessage) message =
        protobuf_c_message_unpack(descriptor, &allocator, length, bytes);
    if (message == NULL && budget.exhausted) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                    "cannot read a %s of %" G_GSIZE_FORMAT
                    " bytes: it takes more than %" G_GSIZE_FORMAT " bytes of memory",
                    descriptor->short_name, length, memory_max);
        return NULL;
    }
    if (message == NULL) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "cannot read a %s: its %" G_GSIZE_FORMAT " bytes are malformed",
                    descriptor->short_name, length);
        return NULL;
    }
    if (!check_contents(message, any_text, error))
        return NULL;
    if (out_memory != NULL)
        *out_memory = budget.used;
    return g_steal_pointer(&message);
}

ProtobufCMessage *berth_message_unpack_limited(const ProtobufCMessageDescriptor *descriptor,
                                               const void *data, gsize length, gsize memory_max,
                                               gsize *out_memory, GError **error)
{
    return unpack(descriptor, data, length, memory_max, FALSE, out_memory, error);
}

static ProtobufCMessage *unpack_bounded(const ProtobufCMessageDescriptor *descriptor,
                                        const void *data, gsize length, gboolean any_text,
                                        GError **error)
{
    g_autoptr(GError) reason = NULL;
    gsize memory_max = (1u << 20) + MIN(length, G_MAXSIZE / 128) * 64;
    ProtobufCMessage *message =
        unpack(descriptor, data, length, memory_max, any_text, NULL, &reason);
    if (message == NULL)
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, reason->message);
    return message;
}

ProtobufCMessage *berth_message_unpack(const ProtobufCMessageDescriptor *descriptor,
                                       const void *data, gsize length, GError **error)
{
    return unpack_bounded(descriptor, data, length, FALSE, error);
}

ProtobufCMessage *berth_message_unpack_any_text(const ProtobufCMessageDescriptor *descriptor,
                                                const void *data, gsize length, GError **error)
{
    return unpack_bounded(descriptor, data, length, TRUE, error);
}

/* --- the rest --------------------------------------------------------------------------------- */

void berth_message_free(ProtobufCMessage *message)
{
    if (message != NULL)
        protobuf_c_message_free_unpacked(message, NULL);
}

GBytes *berth_message_pack(const ProtobufCMessage *message)
{
    gsize length = protobuf_c_message_get_packed_size(message);
    guint8 *data = g_malloc(MAX(length, 1));
    protobuf_c_message_pack(message, data);
    return g_bytes_new_take(data, length);
}

ProtobufCMessage *berth_message_copy(const ProtobufCMessage *message)
{
    g_autoptr(GBytes) packed = berth_message_pack(message);
    gsize length = 0;
    const guint8 *data = g_bytes_get_data(packed, &length);
    ProtobufCMessage *copy = protobuf_c_message_unpack(message->descriptor, NULL, length,
                                                       data != NULL ? data : (const guint8 *)"");
    g_assert(copy != NULL); /* out of memory, which GLib aborts on as well */
    return copy;
}

gboolean berth_message_equal(const ProtobufCMessage *a, const ProtobufCMessage *b)
{
    if (a->descriptor != b->descriptor)
        return FALSE;
    g_autoptr(GBytes) packed_a = berth_message_pack(a);
    g_autoptr(GBytes) packed_b = berth_message_pack(b);
    return g_bytes_equal(packed_a, packed_b);
}

void berth_message_set_string(char **member, const char *value)
{
    char *copy = strdup(value != NULL ? value : "");
    g_assert(copy != NULL);
    if (*member != protobuf_c_empty_string)
        free(*member);
    *member = copy;
}

void berth_message_set_bytes(ProtobufCBinaryData *member, const void *data, gsize length)
{
    guint8 *copy = NULL;
    if (length > 0) {
        copy = malloc(length);
        g_assert(copy != NULL);
        memcpy(copy, data, length);
    }
    free(member->data);
    *member = (ProtobufCBinaryData){.len = length, .data = copy};
}
