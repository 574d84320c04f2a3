/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/message.h"
#include "proto/berth.pb-c.h"
#include <glib.h>

/* What common/message.h does not know: the types of our messages, and texts that come from guests
 * and nodes and need not be what they should. */

#define BERTH_PB_AUTOPTR(Type, function)                                                           \
    static inline void function##_drop(Type *message)                                              \
    {                                                                                              \
        function##__free_unpacked(message, NULL);                                                  \
    }                                                                                              \
    G_DEFINE_AUTOPTR_CLEANUP_FUNC(Type, function##_drop)

BERTH_PB_AUTOPTR(Berth__Job, berth__job)
BERTH_PB_AUTOPTR(Berth__JobSpec, berth__job_spec)
BERTH_PB_AUTOPTR(Berth__StoredTask, berth__stored_task)
BERTH_PB_AUTOPTR(Berth__StoredNode, berth__stored_node)
BERTH_PB_AUTOPTR(Berth__NodeInfo, berth__node_info)
BERTH_PB_AUTOPTR(Berth__NodeUsage, berth__node_usage)
BERTH_PB_AUTOPTR(Berth__Image, berth__image)
BERTH_PB_AUTOPTR(Berth__Event, berth__event)
BERTH_PB_AUTOPTR(Berth__Usage, berth__usage)
BERTH_PB_AUTOPTR(Berth__Exit, berth__exit)
BERTH_PB_AUTOPTR(Berth__StartGuestRequest, berth__start_guest_request)

/* berth_message_copy() for an assignment without a cast. */
gpointer berth_pb_dup(const ProtobufCMessage *message);

/* Sets a string field of a heap message to a copy of VALUE, as valid UTF-8 (NULL: empty). */
void berth_pb_set_string(char **field, const char *value);
/* As set_string, but at most MAX_BYTES: the beginning, or the end if KEEP_END. */
void berth_pb_set_text(char **field, const char *value, gsize max_bytes, gboolean keep_end);
/* Replaces a repeated string field of a heap message by copies of N VALUES. */
void berth_pb_set_strings(char ***field, gsize *n_field, char *const *values, gsize n);
