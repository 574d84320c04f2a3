/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A text of which each task of an array gets one line: how it is stored, so that a line is read without the others. COUNT + 1
 * offsets, of 8 bytes each, the lowest first, from the beginning of all; and the lines, without what ends them. That of task I
 * begins at offset I, and ends at the next. */

#include <glib.h>

#define BERTH_TASK_LINES_OFFSET_BYTES 8u
/* Bytes of a line: it becomes an environment variable, of which the kernel takes 128 KiB. */
#define BERTH_TASK_LINE_MAX_BYTES 32768u

/* TEXT's lines, each ended by a newline, but for the last perhaps. NULL with INVALID_ARGUMENT, which names the line: one that is too
 * long, not UTF-8, has a NUL or ends in CR; none at all; or more than COUNT_MAX. */
GBytes *berth_task_lines_pack(const char *text, gsize length, guint32 count_max, guint32 *out_count,
                              GError **error);

/* Up to LENGTH bytes of what was packed, from OFFSET on (transfer full). */
typedef GBytes *(*BerthTaskLinesRead)(gpointer source, guint64 offset, gsize length,
                                      GError **error);
/* The line of INDEX (transfer full), with two reads from SOURCE. DATA_LOSS: it was not packed by berth_task_lines_pack(), or has no such
 * line. */
char *berth_task_lines_get(BerthTaskLinesRead read, gpointer source, guint32 index, GError **error);
