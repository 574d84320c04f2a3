/* SPDX-License-Identifier: Apache-2.0 */
/* Owns JSON as messages. json-glib reads the text; what it would let through, or would recurse on
 * without a bound, is refused before.
 *
 * Invariant: a message under construction can be freed at any moment: its counts and its oneof
 * cases never run ahead of what is filled in. */
#include "common/json.h"

#include "common/error.h"
#include "common/message.h"
#include "common/units.h"

#include <json-glib/json-glib.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX  32u
#define DIGITS_MAX 17u

/* --- text --------------------------------------------------------------------------------- */

static gboolean refuse_text(GError **error, gsize offset, const char *why)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "cannot read JSON: at byte %" G_GSIZE_FORMAT ": %s", offset, why);
    return FALSE;
}

/* The end of the string that begins at AT. */
static gsize skip_string(const char *text, gsize length, gsize at)
{
    for (at++; at < length && text[at] != '"'; at++)
        at += text[at] == '\\';
    return MIN(at, length);
}

/* Only what JSON has outside of strings, in the bounds of the header. */
static gboolean check_text(const char *text, gsize length, GError **error)
{
    guint depth = 0, digits = 0;
    for (gsize i = 0; i < length; i++) {
        char c = text[i];
        digits = g_ascii_isdigit(c) ? digits + 1 : 0;
        if (digits > DIGITS_MAX)
            return refuse_text(error, i, "a number with too many digits; write it as a string");
        if (c == '"') {
            i = skip_string(text, length, i);
        } else if (c == '[' || c == '{') {
            if (++depth > DEPTH_MAX)
                return refuse_text(error, i, "nested too deeply");
        } else if (c == ']' || c == '}') {
            depth -= depth > 0;
        } else if (!g_ascii_isalnum(c) && strchr(" \t\r\n,:+-.", c) == NULL) {
            return refuse_text(error, i, "not JSON");
        }
    }
    return TRUE;
}

JsonNode *berth_json_parse(const char *text, gsize length, GError **error)
{
    g_autoptr(GError) reason = NULL;
    if (!g_utf8_validate_len(text, length, NULL)) {
        refuse_text(error, 0, "not UTF-8 text");
        return NULL;
    }
    if (!check_text(text, length, error))
        return NULL;
    g_autoptr(JsonParser) parser = json_parser_new_immutable();
    if (!json_parser_load_from_data(parser, text, (gssize)length, &reason)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "cannot read JSON: %s",
                    reason->message);
        return NULL;
    }
    JsonNode *root = json_parser_steal_root(parser);
    if (root == NULL)
        refuse_text(error, 0, "it is empty");
    return root;
}

/* --- values ------------------------------------------------------------------------------- */

/* "spec.inputs[2].mode: WHY" */
static gboolean refuse(GError **error, const char *path, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

static gboolean refuse(GError **error, const char *path, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *why = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "%s: %s",
                *path != '\0' ? path : "the message", why);
    return FALSE;
}

static const char *type_name(JsonNode *node)
{
    if (JSON_NODE_HOLDS_OBJECT(node))
        return "an object";
    if (JSON_NODE_HOLDS_ARRAY(node))
        return "an array";
    if (JSON_NODE_HOLDS_NULL(node))
        return "null";
    if (json_node_get_value_type(node) == G_TYPE_STRING)
        return "a string";
    return json_node_get_value_type(node) == G_TYPE_BOOLEAN ? "a boolean" : "a number";
}

static gboolean holds(JsonNode *node, GType type)
{
    return JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == type;
}

/* An integer from LOW to HIGH (signed) in either spelling. */
static gboolean parse_signed(JsonNode *node, gint64 low, gint64 high, const char *path,
                             gint64 *out_value, GError **error)
{
    gint64 value = 0;
    gboolean ok = FALSE;
    if (holds(node, G_TYPE_INT64)) {
        value = json_node_get_int(node);
        ok = value >= low && value <= high;
    } else if (holds(node, G_TYPE_STRING)) {
        ok = g_ascii_string_to_signed(json_node_get_string(node), 10, low, high, &value, NULL);
    }
    if (!ok)
        return refuse(error, path,
                      "expected an integer from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT
                      ", got %s",
                      low, high, type_name(node));
    *out_value = value;
    return TRUE;
}

static gboolean parse_unsigned(JsonNode *node, guint64 high, const char *path, guint64 *out_value,
                               GError **error)
{
    guint64 value = 0;
    gboolean ok = FALSE;
    if (holds(node, G_TYPE_INT64)) {
        ok = json_node_get_int(node) >= 0 && (guint64)json_node_get_int(node) <= high;
        value = (guint64)json_node_get_int(node);
    } else if (holds(node, G_TYPE_STRING)) {
        ok = berth_parse_uint64(json_node_get_string(node), 0, high, &value, NULL);
    }
    if (!ok)
        return refuse(error, path, "expected an integer from 0 to %" G_GUINT64_FORMAT ", got %s",
                      high, type_name(node));
    *out_value = value;
    return TRUE;
}

static gboolean parse_double(JsonNode *node, const char *path, gdouble *out_value, GError **error)
{
    static const struct {
        const char *name;
        gdouble value;
    } names[] = {{"NaN", NAN}, {"Infinity", INFINITY}, {"-Infinity", -INFINITY}};
    if (holds(node, G_TYPE_INT64) || holds(node, G_TYPE_DOUBLE)) {
        *out_value = json_node_get_double(node);
        return TRUE;
    }
    for (gsize i = 0; holds(node, G_TYPE_STRING) && i < G_N_ELEMENTS(names); i++) {
        if (g_str_equal(json_node_get_string(node), names[i].name)) {
            *out_value = names[i].value;
            return TRUE;
        }
    }
    return refuse(error, path, "expected a number, got %s", type_name(node));
}

static gboolean parse_enum(const ProtobufCEnumDescriptor *descriptor, JsonNode *node,
                           const char *path, int *out_value, GError **error)
{
    const ProtobufCEnumValue *value = NULL;
    if (holds(node, G_TYPE_STRING)) {
        value =
            protobuf_c_enum_descriptor_get_value_by_name(descriptor, json_node_get_string(node));
    } else if (holds(node, G_TYPE_INT64)) {
        gint64 number = json_node_get_int(node);
        if (number >= G_MININT && number <= G_MAXINT)
            value = protobuf_c_enum_descriptor_get_value(descriptor, (int)number);
    }
    if (value == NULL) {
        g_autoptr(GString) names = g_string_new(NULL);
        for (guint i = 0; i < descriptor->n_values; i++)
            g_string_append_printf(names, "%s%s", i > 0 ? ", " : "", descriptor->values[i].name);
        return refuse(error, path, "expected one of %s", names->str);
    }
    *out_value = value->value;
    return TRUE;
}

/* Standard and URL-safe base64, with and without padding. */
static gboolean parse_bytes(JsonNode *node, const char *path, ProtobufCBinaryData *out_bytes,
                            GError **error)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                   "0123456789+/";
    if (!holds(node, G_TYPE_STRING))
        return refuse(error, path, "expected bytes in base64, got %s", type_name(node));
    g_autoptr(GString) text = g_string_new(json_node_get_string(node));
    g_strdelimit(text->str, "-", '+');
    g_strdelimit(text->str, "_", '/');
    gsize length = strspn(text->str, alphabet), padding = strspn(text->str + length, "=");
    if (length + padding != text->len || padding > 2 || length % 4 == 1 ||
        (padding > 0 && (length + padding) % 4 != 0))
        return refuse(error, path, "expected bytes in base64");
    while (text->len % 4 != 0)
        g_string_append_c(text, '=');
    gsize size = 0;
    g_autofree guchar *bytes = g_base64_decode(text->str, &size);
    berth_message_set_bytes(out_bytes, bytes, size);
    return TRUE;
}

static gboolean fill(ProtobufCMessage *message, JsonNode *node, const char *path, GError **error);

static gboolean parse_submessage(const ProtobufCMessageDescriptor *descriptor, JsonNode *node,
                                 const char *path, ProtobufCMessage **out_message, GError **error)
{
    ProtobufCMessage *message = calloc(1, descriptor->sizeof_message);
    g_assert(message != NULL);
    protobuf_c_message_init(descriptor, message);
    *out_message = message; /* its owner frees it, complete or not */
    return fill(message, node, path, error);
}

static gboolean parse_text(JsonNode *node, const char *path, char **out_text, GError **error)
{
    if (!holds(node, G_TYPE_STRING))
        return refuse(error, path, "expected a string, got %s", type_name(node));
    berth_message_set_string(out_text, json_node_get_string(node));
    return TRUE;
}

static gboolean parse_bool(JsonNode *node, const char *path, protobuf_c_boolean *out_value,
                           GError **error)
{
    if (!holds(node, G_TYPE_BOOLEAN))
        return refuse(error, path, "expected true or false, got %s", type_name(node));
    *out_value = json_node_get_boolean(node);
    return TRUE;
}

static gboolean parse_number(const ProtobufCFieldDescriptor *field, JsonNode *node,
                             const char *path, gpointer element, GError **error)
{
    gint64 whole = 0;
    guint64 natural = 0;
    gdouble real = 0;
    switch (field->type) {
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_SINT32:
    case PROTOBUF_C_TYPE_SFIXED32:
        if (!parse_signed(node, G_MININT32, G_MAXINT32, path, &whole, error))
            return FALSE;
        *(gint32 *)element = (gint32)whole;
        return TRUE;
    case PROTOBUF_C_TYPE_UINT32:
    case PROTOBUF_C_TYPE_FIXED32:
        if (!parse_unsigned(node, G_MAXUINT32, path, &natural, error))
            return FALSE;
        *(guint32 *)element = (guint32)natural;
        return TRUE;
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
        return parse_unsigned(node, G_MAXUINT64, path, element, error);
    case PROTOBUF_C_TYPE_FLOAT:
        if (!parse_double(node, path, &real, error))
            return FALSE;
        *(gfloat *)element = (gfloat)real;
        return TRUE;
    case PROTOBUF_C_TYPE_DOUBLE:
        return parse_double(node, path, element, error);
    default: /* INT64, SINT64, SFIXED64 */
        return parse_signed(node, G_MININT64, G_MAXINT64, path, element, error);
    }
}

static gboolean parse_value(const ProtobufCFieldDescriptor *field, JsonNode *node, const char *path,
                            gpointer element, GError **error)
{
    switch (field->type) {
    case PROTOBUF_C_TYPE_BOOL:
        return parse_bool(node, path, element, error);
    case PROTOBUF_C_TYPE_ENUM:
        return parse_enum(field->descriptor, node, path, element, error);
    case PROTOBUF_C_TYPE_STRING:
        return parse_text(node, path, element, error);
    case PROTOBUF_C_TYPE_BYTES:
        return parse_bytes(node, path, element, error);
    case PROTOBUF_C_TYPE_MESSAGE:
        return parse_submessage(field->descriptor, node, path, element, error);
    default:
        return parse_number(field, node, path, element, error);
    }
}

/* --- fields ------------------------------------------------------------------------------- */

static const ProtobufCFieldDescriptor *find_field(const ProtobufCMessageDescriptor *descriptor,
                                                  const char *name)
{
    for (guint i = 0; i < descriptor->n_fields; i++) {
        g_autofree char *camel = berth_json_field_name(descriptor->fields[i].name);
        if (g_str_equal(camel, name) || g_str_equal(descriptor->fields[i].name, name))
            return &descriptor->fields[i];
    }
    return NULL;
}

static gboolean fill_repeated(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                              JsonNode *node, const char *path, GError **error)
{
    if (!JSON_NODE_HOLDS_ARRAY(node))
        return refuse(error, path, "expected an array, got %s", type_name(node));
    JsonArray *array = json_node_get_array(node);
    guint length = json_array_get_length(array);
    gsize size = berth_message_element_size(field);
    if (length == 0)
        return TRUE;
    guint8 *elements = calloc(length, size);
    g_assert(elements != NULL);
    size_t *count = (size_t *)(gpointer)((guint8 *)message + field->quantifier_offset);
    *(gpointer *)(gpointer)((guint8 *)message + field->offset) = elements;
    for (guint i = 0; i < length; i++) {
        g_autofree char *element_path = g_strdup_printf("%s[%u]", path, i);
        *count = i + 1; /* the element is zero, which can be freed */
        if (!parse_value(field, json_array_get_element(array, i), element_path, elements + i * size,
                         error))
            return FALSE;
    }
    return TRUE;
}

static gboolean fill_oneof(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                           JsonNode *node, const char *path, GError **error)
{
    guint32 *which = (guint32 *)(gpointer)((guint8 *)message + field->quantifier_offset);
    if (*which != 0)
        return refuse(error, path, "only one of this group of fields may be set");
    gpointer member = (guint8 *)message + field->offset;
    memset(member, 0, berth_message_element_size(field));
    *which = field->id;
    return parse_value(field, node, path, member, error);
}

static gboolean fill_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                           JsonNode *node, const char *path, GError **error)
{
    if (JSON_NODE_HOLDS_NULL(node))
        return TRUE;
    if (field->label == PROTOBUF_C_LABEL_REPEATED)
        return fill_repeated(message, field, node, path, error);
    if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
        return fill_oneof(message, field, node, path, error);
    return parse_value(field, node, path, (guint8 *)message + field->offset, error);
}

static gboolean fill(ProtobufCMessage *message, JsonNode *node, const char *path, GError **error)
{
    if (!JSON_NODE_HOLDS_OBJECT(node))
        return refuse(error, path, "expected an object, got %s", type_name(node));
    const ProtobufCMessageDescriptor *descriptor = message->descriptor;
    g_autofree gboolean *seen = g_new0(gboolean, MAX(descriptor->n_fields, 1));
    JsonObjectIter iter;
    const char *name = NULL;
    JsonNode *value = NULL;
    json_object_iter_init_ordered(&iter, json_node_get_object(node));
    while (json_object_iter_next_ordered(&iter, &name, &value)) {
        g_autofree char *field_path =
            g_strdup_printf("%s%s%.64s", path, *path != '\0' ? "." : "", name);
        const ProtobufCFieldDescriptor *field = find_field(descriptor, name);
        if (field == NULL)
            return refuse(error, field_path, "no such field in a %s", descriptor->short_name);
        if (seen[field - descriptor->fields])
            return refuse(error, field_path, "set twice");
        seen[field - descriptor->fields] = TRUE;
        if (!fill_field(message, field, value, field_path, error))
            return FALSE;
    }
    return TRUE;
}

/* --- public ------------------------------------------------------------------------------- */

ProtobufCMessage *berth_json_to_message(const ProtobufCMessageDescriptor *descriptor,
                                        JsonNode *node, GError **error)
{
    g_autoptr(ProtobufCMessage) message = NULL;
    if (!parse_submessage(descriptor, node, "", &message, error))
        return NULL;
    return g_steal_pointer(&message);
}

ProtobufCMessage *berth_json_parse_message(const ProtobufCMessageDescriptor *descriptor,
                                           const char *text, gsize length, GError **error)
{
    g_autoptr(JsonNode) node = berth_json_parse(text, length, error);
    if (node == NULL)
        return NULL;
    return berth_json_to_message(descriptor, node, error);
}
