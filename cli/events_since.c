/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how people say from when on they want events. */
#include "cli/events_since.h"

#include "common/error.h"
#include "common/units.h"

#include <string.h>

/* TEXT as ISO 8601 has it: with all that may be left out. NULL: it is no date with a time. */
static char *complete(const char *text)
{
    gsize length = strlen(text);
    if (length == strlen("2026-03-01"))
        return g_strconcat(text, "T00:00:00", NULL);
    if (length < strlen("2026-03-01T12:00") || !strchr("T ", text[10]))
        return NULL;
    return g_strdup_printf("%.10sT%s%s", text, text + 11,
                           length == strlen("2026-03-01T12:00") ? ":00" : "");
}

static guint64 time_of(const char *text)
{
    g_autofree char *iso = g_str_is_ascii(text) ? complete(text) : NULL;
    g_autoptr(GTimeZone) local = g_time_zone_new_local();
    g_autoptr(GDateTime) time = iso != NULL ? g_date_time_new_from_iso8601(iso, local) : NULL;
    gint64 sec = time != NULL ? g_date_time_to_unix(time) : 0;
    return sec > 0 ? (guint64)sec * G_USEC_PER_SEC : 0;
}

gboolean berth_since_parse(const char *text, gint64 now_usec, BerthSince *out_since, GError **error)
{
    BerthSince since = {0};
    guint64 sec = 0;
    if (*text != '\0' && text[strspn(text, "0123456789")] == '\0') {
        if (!berth_parse_uint64(text, 0, G_MAXINT64, &since.after_seq, error))
            return FALSE;
    } else if (berth_parse_duration_sec(text, &sec, NULL)) {
        guint64 ago_usec = sec * G_USEC_PER_SEC;
        since.since_usec = (guint64)now_usec > ago_usec ? (guint64)now_usec - ago_usec : 1;
    } else {
        since.since_usec = time_of(text);
    }
    if (since.since_usec == 0 && (*text == '\0' || text[strspn(text, "0123456789")] != '\0')) {
        g_autofree char *valid = g_utf8_make_valid(text, -1);
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "\"%s\" is neither the number of an event nor a time: write 1234, 2h, "
                    "2026-03-01 or \"2026-03-01 12:00\"",
                    valid);
        return FALSE;
    }
    *out_since = since;
    return TRUE;
}
