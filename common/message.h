/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What protobuf-c leaves out: messages as GLib values, and a reader for bytes from a peer that
 * nobody trusts. All messages here live in malloc()'s memory. */

#include <glib.h>
#include <protobuf-c/protobuf-c.h>

/* Frees MESSAGE with all that it owns; NULL is allowed. */
void berth_message_free(ProtobufCMessage *message);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(ProtobufCMessage, berth_message_free)

/* (transfer full) */
GBytes *berth_message_pack(const ProtobufCMessage *message);

/* Reads a message (transfer full). INVALID_ARGUMENT: malformed, a string that is not UTF-8, or
 * more memory than 1 MiB + 64 bytes for each byte of DATA (many empty submessages). */
ProtobufCMessage *berth_message_unpack(const ProtobufCMessageDescriptor *descriptor,
                                       const void *data, gsize length, GError **error);
/* The same, but a string may hold any bytes up to its NUL: for a peer whose words are cleaned by
 * who uses them, so that one bad byte does not lose the whole message. */
ProtobufCMessage *berth_message_unpack_any_text(const ProtobufCMessageDescriptor *descriptor,
                                                const void *data, gsize length, GError **error);
/* The first with another bound: RESOURCE_EXHAUSTED past MEMORY_MAX bytes. OUT_MEMORY (may be NULL):
 * what the message takes. */
ProtobufCMessage *berth_message_unpack_limited(const ProtobufCMessageDescriptor *descriptor,
                                               const void *data, gsize length, gsize memory_max,
                                               gsize *out_memory, GError **error);

/* A deep copy (transfer full). */
ProtobufCMessage *berth_message_copy(const ProtobufCMessage *message);
/* Same type and same content? */
gboolean berth_message_equal(const ProtobufCMessage *a, const ProtobufCMessage *b);

/* Members of a message that owns its memory, so that berth_message_free() frees them: replaces
 * what is there by a copy. VALUE NULL is "". */
void berth_message_set_string(char **member, const char *value);
void berth_message_set_bytes(ProtobufCBinaryData *member, const void *data, gsize length);

/* Does the member of FIELD in MESSAGE hold a value? Scalars and strings of proto3: other than the
 * default; messages: set; oneof: FIELD is the one; repeated: not empty. */
gboolean berth_message_has_field(const ProtobufCMessage *message,
                                 const ProtobufCFieldDescriptor *field);
/* Number of elements: of a repeated field, else 0 or 1. */
gsize berth_message_count(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);
/* Address of element INDEX (0 for what is not repeated). */
gconstpointer berth_message_element(const ProtobufCMessage *message,
                                    const ProtobufCFieldDescriptor *field, gsize index);
/* Size of one element of FIELD in memory. */
gsize berth_message_element_size(const ProtobufCFieldDescriptor *field);
