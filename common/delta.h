/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What has changed between two messages of one type whose fields are all uint32 or uint64, as another
 * message of that type: fields that are not 0 in it have this value now. Those that have become 0, which a
 * field of proto3 cannot say, are named by their numbers. Values are absolute: what is applied twice,
 * or late, does no harm. */

#include <glib.h>
#include <protobuf-c/protobuf-c.h>

/* Fills in OUT_CHANGED, which is as new, and adds to ZEROS (uint32_t). */
void berth_delta_make(const ProtobufCMessage *before, const ProtobufCMessage *now,
                      ProtobufCMessage *out_changed, GArray *zeros);
/* The other way round. CHANGED may be NULL; numbers that the type does not have are of a newer release, and change
 * nothing. */
void berth_delta_apply(ProtobufCMessage *known, const ProtobufCMessage *changed,
                       const uint32_t *zeros, gsize n_zeros);
