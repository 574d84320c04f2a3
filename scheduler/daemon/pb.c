/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how texts get into messages. Knows nothing of what they mean.
 *
 * Invariant: what a field points to was made by malloc, or is protobuf-c's empty string, so that
 * every message that was changed here can be freed with its _free_unpacked(). */
#include "config.h"

#include "scheduler/daemon/pb.h"

#include <string.h>

gpointer berth_pb_dup(const ProtobufCMessage *message)
{
    return berth_message_copy(message);
}

static void take_string(char **field, char *value)
{
    if (*field != (char *)protobuf_c_empty_string)
        g_free(*field);
    *field = value;
}

void berth_pb_set_string(char **field, const char *value)
{
    gboolean is_empty = !value || !*value;
    take_string(field, is_empty ? (char *)protobuf_c_empty_string : g_utf8_make_valid(value, -1));
}

void berth_pb_set_text(char **field, const char *value, gsize max_bytes, gboolean keep_end)
{
    gsize length = value ? strlen(value) : 0;
    const char *start = value;
    if (length > max_bytes && keep_end)
        start = value + (length - max_bytes);
    g_autofree char *cut = g_strndup(start, MIN(length, max_bytes));
    berth_pb_set_string(field, cut);
}

void berth_pb_set_strings(char ***field, gsize *n_field, char *const *values, gsize n)
{
    for (gsize i = 0; i < *n_field; i++)
        take_string(&(*field)[i], NULL);
    g_free(*field);
    *field = n > 0 ? g_new0(char *, n) : NULL;
    *n_field = n;
    for (gsize i = 0; i < n; i++)
        (*field)[i] = g_utf8_make_valid(values[i], -1);
}
