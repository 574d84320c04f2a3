/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* What a Ceph cluster says of the room in its pools. Asks no cluster. */

/* TEXT: the answer to `ceph df --format json`. *OUT_BYTES: what can still be written to POOL before the first of its
 * OSDs is full, copies accounted for (max_avail). INVALID_ARGUMENT: it does not say so; NOT_FOUND: it lists no such pool, or not yet. */
gboolean berth_rbd_room_parse(const char *text, gsize length, const char *pool, guint64 *out_bytes,
                              GError **error);
