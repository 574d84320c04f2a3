/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The canonical proto3 JSON mapping (protobuf.dev/programming-guides/json) of any message, through
 * its descriptor: names in lowerCamelCase, 64-bit integers as strings, enums by name, bytes in
 * base64. */

#include <glib.h>
#include <protobuf-c/protobuf-c.h>

typedef struct _JsonNode JsonNode; /* json-glib's */

typedef enum {
    BERTH_JSON_OMIT_DEFAULTS = 0,      /* leave out fields that hold their default */
    BERTH_JSON_WITH_DEFAULTS = 1 << 0, /* all fields but messages that are not set */
    BERTH_JSON_PRETTY = 1 << 1,        /* text only: indented, over several lines */
} BerthJsonFlags;

/* (transfer full) */
JsonNode *berth_json_from_message(const ProtobufCMessage *message, BerthJsonFlags flags);
/* (transfer full), without a newline at the end */
char *berth_json_print_message(const ProtobufCMessage *message, BerthJsonFlags flags);

/* Reads a message (transfer full; berth_message_free()). Names as above or as in the schema;
 * integers also as strings, enums also as numbers, null is the default. INVALID_ARGUMENT for
 * anything else, with the path of the field: "spec.inputs[2].mode: ...". */
ProtobufCMessage *berth_json_to_message(const ProtobufCMessageDescriptor *descriptor,
                                        JsonNode *node, GError **error);
ProtobufCMessage *berth_json_parse_message(const ProtobufCMessageDescriptor *descriptor,
                                           const char *text, gsize length, GError **error);

/* Text to a JsonNode (transfer full). Stricter than json-glib: JSON only (no comments), UTF-8, not
 * nested deeper than 32, no integers of more than 17 digits (write them as strings). */
JsonNode *berth_json_parse(const char *text, gsize length, GError **error);

/* "memory_mib" as "memoryMib" (transfer full). */
char *berth_json_field_name(const char *name);
