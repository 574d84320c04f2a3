/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "common/task_lines.h"

#include "common/error.h"

#include <string.h>

static gboolean refuse(gsize number, const char *why, GError **error)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "line %zu %s", number, why);
    return FALSE;
}

static gboolean check_line(const char *line, gsize length, gsize number, GError **error)
{
    if (length > BERTH_TASK_LINE_MAX_BYTES)
        return refuse(number, "is longer than 32768 bytes", error);
    if (length > 0 && line[length - 1] == '\r')
        return refuse(number,
                      "ends in CR LF (a Windows file); convert it with: sed -i 's/\\r$//' FILE",
                      error);
    if (memchr(line, '\0', length) != NULL)
        return refuse(number, "has a NUL byte", error);
    if (!g_utf8_validate(line, (gssize)length, NULL))
        return refuse(number, "is not valid UTF-8", error);
    return TRUE;
}

/* Its end: a newline, or that of the text. */
static const char *end_of(const char *line, const char *end)
{
    const char *newline = memchr(line, '\n', (gsize)(end - line));
    return newline != NULL ? newline : end;
}

static gboolean count_lines(const char *text, const char *end, guint32 count_max,
                            guint32 *out_count, GError **error)
{
    gsize count = 0;
    for (const char *line = text; line < end; line = end_of(line, end) + 1) {
        if (!check_line(line, (gsize)(end_of(line, end) - line), ++count, error))
            return FALSE;
        if (count > count_max)
            return refuse(count, "is one too many: that is more than an array may have", error);
    }
    if (count == 0) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "it has no lines");
        return FALSE;
    }
    *out_count = (guint32)count;
    return TRUE;
}

static void put_offset(guint8 *place, guint64 offset)
{
    guint64 stored = GUINT64_TO_LE(offset);
    memcpy(place, &stored, sizeof stored);
}

GBytes *berth_task_lines_pack(const char *text, gsize length, guint32 count_max, guint32 *out_count,
                              GError **error)
{
    const char *end = text + length;
    if (!count_lines(text, end, count_max, out_count, error))
        return NULL;
    gsize head = ((gsize)*out_count + 1) * BERTH_TASK_LINES_OFFSET_BYTES;
    guint8 *packed = g_malloc(head + length);
    guint8 *place = packed;
    gsize size = head;
    for (const char *line = text; line < end; line = end_of(line, end) + 1) {
        gsize bytes = (gsize)(end_of(line, end) - line);
        put_offset(place, size);
        place += BERTH_TASK_LINES_OFFSET_BYTES;
        memcpy(packed + size, line, bytes);
        size += bytes;
    }
    put_offset(place, size);
    return g_bytes_new_take(packed, size);
}

/* --- one of them ------------------------------------------------------------------------------ */

static char *fail(guint32 index, GError **error)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
                "there is no line for task %u in what the job was submitted with; submit it again",
                index);
    return NULL;
}

static guint64 offset_at(const guint8 *place)
{
    guint64 stored;
    memcpy(&stored, place, sizeof stored);
    return GUINT64_FROM_LE(stored);
}

char *berth_task_lines_get(BerthTaskLinesRead read, gpointer source, guint32 index, GError **error)
{
    guint64 at = (guint64)index * BERTH_TASK_LINES_OFFSET_BYTES;
    gsize length = 0;
    g_autoptr(GBytes) pair = read(source, at, 2 * BERTH_TASK_LINES_OFFSET_BYTES, error);
    if (pair == NULL)
        return NULL;
    const guint8 *offsets = g_bytes_get_data(pair, &length);
    if (length != 2 * BERTH_TASK_LINES_OFFSET_BYTES)
        return fail(index, error);
    guint64 begin = offset_at(offsets);
    guint64 end = offset_at(offsets + BERTH_TASK_LINES_OFFSET_BYTES);
    if (begin < at + 2 * BERTH_TASK_LINES_OFFSET_BYTES || end < begin ||
        end - begin > BERTH_TASK_LINE_MAX_BYTES)
        return fail(index, error);
    if (end == begin)
        return g_strdup("");
    g_autoptr(GBytes) line = read(source, begin, (gsize)(end - begin), error);
    if (line == NULL)
        return NULL;
    const char *text = g_bytes_get_data(line, &length);
    if (length != end - begin || memchr(text, '\0', length) != NULL ||
        !g_utf8_validate(text, (gssize)length, NULL))
        return fail(index, error);
    return g_strndup(text, length);
}
