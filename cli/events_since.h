/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* From where on events are wanted: one of both is not 0, unless it is from the first on. */
typedef struct {
    guint64 after_seq;
    guint64 since_usec;
} BerthSince;

/* TEXT: the number of an event, after which it begins; a duration, so long before NOW_USEC ("2h", "30m"); or a
 * local time ("2026-03-01", "2026-03-01 12:00", "2026-03-01T12:00:05"). INVALID_ARGUMENT. */
gboolean berth_since_parse(const char *text, gint64 now_usec, BerthSince *out_since,
                           GError **error);
