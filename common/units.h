/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sizes, durations and numbers as people write them. All parsers refuse signs, spaces, junk after
 * the value and what does not fit, with BERTH_ERROR_INVALID_ARGUMENT and a message that quotes the
 * text and shows what is allowed; *out_ is then unchanged. None depends on the locale. */

#include <glib.h>

/* Largest size: its number of bytes fits into 64 bits. */
#define BERTH_SIZE_MAX_MIB ((G_GUINT64_CONSTANT(1) << 44) - 1)
/* Longest duration: its number of microseconds fits into a gint64. */
#define BERTH_DURATION_MAX_SEC (G_MAXINT64 / G_USEC_PER_SEC)

/* Decimal number from MIN to MAX (inclusive). */
gboolean berth_parse_uint64(const char *text, guint64 min, guint64 max, guint64 *out_value,
                            GError **error);

/* "512M", "8G", "1.5T", "2048K"; a trailing B or iB is allowed, case does not matter, units are
 * powers of 1024, a plain number is MiB. Rounded up to a whole MiB: never less than was asked. */
gboolean berth_parse_size_mib(const char *text, guint64 *out_mib, GError **error);
/* "512M", "8G", "1.5T": the shortest text that berth_parse_size_mib() reads back as MIB
 * (transfer full). */
char *berth_format_size_mib(guint64 mib);

/* "90" and "90s" (seconds), "30m", "2h", "1d12h" (units w d h m s, each once, largest first),
 * "HH:MM:SS", "D-HH:MM:SS". */
gboolean berth_parse_duration_sec(const char *text, guint64 *out_sec, GError **error);
/* "HH:MM:SS", from a day on "D-HH:MM:SS" (transfer full). */
char *berth_format_duration_sec(guint64 sec);
