/* SPDX-License-Identifier: Apache-2.0 */
/* Owns messages as JSON. Reading it is json_parse.c's. */
#include "common/json.h"

#include "common/message.h"

#include <json-glib/json-glib.h>
#include <math.h>
#include <string.h>

char *berth_json_field_name(const char *name)
{
    g_autoptr(GString) camel = g_string_new(NULL);
    for (; *name != '\0'; name++) {
        if (name[0] == '_' && name[1] != '\0')
            g_string_append_c(camel, g_ascii_toupper(*++name));
        else
            g_string_append_c(camel, *name);
    }
    return g_string_free(g_steal_pointer(&camel), FALSE);
}

static void add_double(JsonBuilder *builder, gdouble value)
{
    if (isnan(value))
        json_builder_add_string_value(builder, "NaN");
    else if (isinf(value))
        json_builder_add_string_value(builder, value > 0 ? "Infinity" : "-Infinity");
    else
        json_builder_add_double_value(builder, value);
}

static void add_text(JsonBuilder *builder, char *text)
{
    json_builder_add_string_value(builder, text);
    g_free(text);
}

static void add_enum(JsonBuilder *builder, const ProtobufCFieldDescriptor *field, int value)
{
    const ProtobufCEnumValue *known =
        protobuf_c_enum_descriptor_get_value(field->descriptor, value);
    if (known != NULL)
        json_builder_add_string_value(builder, known->name);
    else /* from a newer peer */
        json_builder_add_int_value(builder, value);
}

static void add_message(JsonBuilder *builder, const ProtobufCMessage *message,
                        BerthJsonFlags flags);

static void add_value(JsonBuilder *builder, const ProtobufCFieldDescriptor *field,
                      gconstpointer element, BerthJsonFlags flags)
{
    const ProtobufCBinaryData *bytes = element;
    const char *text;
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        json_builder_add_int_value(builder, *(const gint32 *)element);
        break;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        json_builder_add_int_value(builder, *(const guint32 *)element);
        break;
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
        add_text(builder, g_strdup_printf("%" G_GINT64_FORMAT, *(const gint64 *)element));
        break;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        add_text(builder, g_strdup_printf("%" G_GUINT64_FORMAT, *(const guint64 *)element));
        break;
    case PROTOBUF_C_TYPE_FLOAT:
        add_double(builder, (gdouble) * (const gfloat *)element);
        break;
    case PROTOBUF_C_TYPE_DOUBLE:
        add_double(builder, *(const gdouble *)element);
        break;
    case PROTOBUF_C_TYPE_BOOL:
        json_builder_add_boolean_value(builder, *(const protobuf_c_boolean *)element);
        break;
    case PROTOBUF_C_TYPE_ENUM:
        add_enum(builder, field, *(const int *)element);
        break;
    case PROTOBUF_C_TYPE_STRING:
        text = *(const char *const *)element;
        json_builder_add_string_value(builder, text != NULL ? text : "");
        break;
    case PROTOBUF_C_TYPE_BYTES:
        add_text(builder, g_base64_encode(bytes->data, bytes->len));
        break;
    case PROTOBUF_C_TYPE_MESSAGE:
        add_message(builder, *(const ProtobufCMessage *const *)element, flags);
        break;
    }
}

/* Is FIELD printed though it holds its default? */
static gboolean wants_default(const ProtobufCFieldDescriptor *field, BerthJsonFlags flags)
{
    if (!(flags & BERTH_JSON_WITH_DEFAULTS) || (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
        return FALSE;
    return field->label == PROTOBUF_C_LABEL_REPEATED || field->type != PROTOBUF_C_TYPE_MESSAGE;
}

static void add_message(JsonBuilder *builder, const ProtobufCMessage *message, BerthJsonFlags flags)
{
    json_builder_begin_object(builder);
    for (guint i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
        gsize count = berth_message_count(message, field);
        if (count == 0 && !wants_default(field, flags))
            continue;
        g_autofree char *name = berth_json_field_name(field->name);
        json_builder_set_member_name(builder, name);
        if (field->label != PROTOBUF_C_LABEL_REPEATED) {
            add_value(builder, field, berth_message_element(message, field, 0), flags);
            continue;
        }
        json_builder_begin_array(builder);
        for (gsize j = 0; j < count; j++)
            add_value(builder, field, berth_message_element(message, field, j), flags);
        json_builder_end_array(builder);
    }
    json_builder_end_object(builder);
}

JsonNode *berth_json_from_message(const ProtobufCMessage *message, BerthJsonFlags flags)
{
    g_autoptr(JsonBuilder) builder = json_builder_new();
    add_message(builder, message, flags);
    return json_builder_get_root(builder);
}

char *berth_json_print_message(const ProtobufCMessage *message, BerthJsonFlags flags)
{
    g_autoptr(JsonNode) node = berth_json_from_message(message, flags);
    return json_to_string(node, (flags & BERTH_JSON_PRETTY) != 0);
}
