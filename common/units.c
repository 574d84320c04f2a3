/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how sizes, durations and numbers are read and written. Does not own which values make
 * sense where: ranges are the caller's. Integer arithmetic only, so that nothing is rounded but
 * where the header says so, and every step is checked for overflow. */
#include "common/units.h"

#include "common/error.h"

#include <string.h>

/* A decimal fraction finer than this is junk, not precision. */
#define FRACTION_DIGITS_MAX 9

/* Reads the digits at *TEXT and moves it past them. FALSE: no digit, or more than 64 bits. */
static gboolean read_digits(const char **text, guint64 *out_value)
{
    const char *at = *text;
    guint64 value = 0;
    if (!g_ascii_isdigit(*at))
        return FALSE;
    for (; g_ascii_isdigit(*at); at++) {
        if (__builtin_mul_overflow(value, (guint64)10, &value) ||
            __builtin_add_overflow(value, (guint64)(*at - '0'), &value))
            return FALSE;
    }
    *text = at;
    *out_value = value;
    return TRUE;
}

/* User text in a message: quoted, control characters escaped, of bounded length. */
static char *quote(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, (gssize)strnlen(text, 64));
    g_autoptr(GString) quoted = g_string_new("\"");
    for (const char *at = valid; *at != '\0'; at++) {
        if (g_ascii_iscntrl(*at))
            g_string_append_printf(quoted, "\\x%02x", (unsigned)(guchar)*at);
        else
            g_string_append_c(quoted, *at);
    }
    g_string_append(quoted, strlen(text) > 64 ? "...\"" : "\"");
    return g_string_free(g_steal_pointer(&quoted), FALSE);
}

gboolean berth_parse_uint64(const char *text, guint64 min, guint64 max, guint64 *out_value,
                            GError **error)
{
    const char *at = text;
    guint64 value = 0;
    if (!read_digits(&at, &value) || *at != '\0' || value < min || value > max) {
        g_autofree char *quoted = quote(text);
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "%s is not a number from %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT, quoted,
                    min, max);
        return FALSE;
    }
    *out_value = value;
    return TRUE;
}

/* --- sizes ------------------------------------------------------------------------------- */

/* How many KiB the unit at *TEXT has; moves it past the unit. 0: not a unit. */
static guint64 read_size_unit(const char **text)
{
    static const char letters[] = "KMGTP";
    const char *at = *text;
    if (*at == '\0')
        return 1024;
    const char *letter = strchr(letters, g_ascii_toupper(*at));
    if (letter == NULL)
        return 0;
    at++;
    if (g_ascii_strcasecmp(at, "b") != 0 && g_ascii_strcasecmp(at, "ib") != 0 && *at != '\0')
        return 0;
    *text = at + strlen(at);
    return G_GUINT64_CONSTANT(1) << (10 * (letter - letters));
}

/* Reads ".DIGITS", if it is there, as NUMERATOR / DENOMINATOR. */
static gboolean read_fraction(const char **text, guint64 *out_numerator, guint64 *out_denominator)
{
    *out_numerator = 0;
    *out_denominator = 1;
    if (**text != '.')
        return TRUE;
    const char *digits = ++*text;
    if (!read_digits(text, out_numerator) || *text - digits > FRACTION_DIGITS_MAX)
        return FALSE;
    for (const char *at = digits; at < *text; at++)
        *out_denominator *= 10;
    return TRUE;
}

/* WHOLE + NUMERATOR/DENOMINATOR units of UNIT_KIB, in MiB, rounded up. */
static gboolean size_to_mib(guint64 whole, guint64 numerator, guint64 denominator, guint64 unit_kib,
                            guint64 *out_mib)
{
    guint64 kib;
    if (__builtin_mul_overflow(whole, unit_kib, &kib))
        return FALSE;
    /* The numerator is below 10^9 and the unit at most 2^40 KiB: the product can pass 64 bits. */
    unsigned __int128 part = (unsigned __int128)numerator * unit_kib;
    guint64 part_kib = (guint64)((part + denominator - 1) / denominator);
    if (__builtin_add_overflow(kib, part_kib, &kib))
        return FALSE;
    guint64 mib = kib / 1024 + (kib % 1024 != 0);
    if (mib > BERTH_SIZE_MAX_MIB)
        return FALSE;
    *out_mib = mib;
    return TRUE;
}

gboolean berth_parse_size_mib(const char *text, guint64 *out_mib, GError **error)
{
    const char *at = text;
    guint64 whole = 0, numerator = 0, denominator = 1, unit_kib = 0, mib = 0;
    gboolean too_large = FALSE;
    gboolean ok = read_digits(&at, &whole) && read_fraction(&at, &numerator, &denominator) &&
                  (unit_kib = read_size_unit(&at)) != 0 && *at == '\0';
    if (ok && !size_to_mib(whole, numerator, denominator, unit_kib, &mib)) {
        too_large = TRUE;
        ok = FALSE;
    }
    if (!ok) {
        g_autofree char *quoted = quote(text);
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    too_large ? "%s is too large for a size"
                              : "%s is not a size: write a number with K, M, G, T or P, as in 512M "
                                "or 1.5G (a plain number is MiB)",
                    quoted);
        return FALSE;
    }
    *out_mib = mib;
    return TRUE;
}

char *berth_format_size_mib(guint64 mib)
{
    static const char letters[] = "MGTP";
    guint unit = 0;
    /* The largest unit in which it has at most one decimal, exactly. */
    for (guint i = 1; i < sizeof(letters) - 1; i++) {
        guint64 one = G_GUINT64_CONSTANT(1) << (10 * i);
        if (mib >= one && mib % one % (one / 2) == 0)
            unit = i;
    }
    guint64 one = G_GUINT64_CONSTANT(1) << (10 * unit);
    return g_strdup_printf("%" G_GUINT64_FORMAT "%s%c", mib / one, mib % one != 0 ? ".5" : "",
                           letters[unit]);
}

/* --- durations --------------------------------------------------------------------------- */

static gboolean add_product(guint64 *sum, guint64 count, guint64 unit)
{
    guint64 product;
    return !__builtin_mul_overflow(count, unit, &product) &&
           !__builtin_add_overflow(*sum, product, sum);
}

/* "1d12h", "90s", and a plain number of seconds. */
static gboolean parse_units(const char *text, guint64 *out_sec)
{
    static const struct {
        char letter;
        guint sec;
    } units[] = {{'w', 604800}, {'d', 86400}, {'h', 3600}, {'m', 60}, {'s', 1}};
    guint64 sum = 0, count = 0;
    gsize next = 0;
    const char *at = text;

    if (!read_digits(&at, &count))
        return FALSE;
    if (*at == '\0') {
        *out_sec = count;
        return TRUE;
    }
    for (;;) {
        while (next < G_N_ELEMENTS(units) && units[next].letter != g_ascii_tolower(*at))
            next++;
        if (next == G_N_ELEMENTS(units) || !add_product(&sum, count, units[next].sec))
            return FALSE;
        next++;
        if (*++at == '\0')
            break;
        if (!read_digits(&at, &count))
            return FALSE;
    }
    *out_sec = sum;
    return TRUE;
}

/* "HH:MM:SS", "D-HH:MM:SS". Minutes and seconds are below 60; with days, hours are below 24. */
static gboolean parse_clock(const char *text, guint64 *out_sec)
{
    guint64 days = 0, hours = 0, minutes = 0, seconds = 0, sum = 0;
    const char *at = text;
    gboolean with_days = strchr(text, '-') != NULL;

    if (with_days && (!read_digits(&at, &days) || *at++ != '-'))
        return FALSE;
    if (!read_digits(&at, &hours) || *at++ != ':' || !read_digits(&at, &minutes) || *at++ != ':' ||
        !read_digits(&at, &seconds) || *at != '\0')
        return FALSE;
    if (minutes >= 60 || seconds >= 60 || (with_days && hours >= 24))
        return FALSE;
    if (!add_product(&sum, days, 86400) || !add_product(&sum, hours, 3600) ||
        !add_product(&sum, minutes, 60) || !add_product(&sum, seconds, 1))
        return FALSE;
    *out_sec = sum;
    return TRUE;
}

gboolean berth_parse_duration_sec(const char *text, guint64 *out_sec, GError **error)
{
    guint64 sec = 0;
    gboolean ok = strchr(text, ':') != NULL ? parse_clock(text, &sec) : parse_units(text, &sec);
    if (!ok || sec > BERTH_DURATION_MAX_SEC) {
        g_autofree char *quoted = quote(text);
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    ok ? "%s is too long for a duration"
                       : "%s is not a duration: write seconds (90), units (90s, 30m, 2h, 1d12h), "
                         "HH:MM:SS or D-HH:MM:SS",
                    quoted);
        return FALSE;
    }
    *out_sec = sec;
    return TRUE;
}

char *berth_format_duration_sec(guint64 sec)
{
    guint64 days = sec / 86400;
    guint hours = (guint)(sec / 3600 % 24), minutes = (guint)(sec / 60 % 60);
    if (days > 0)
        return g_strdup_printf("%" G_GUINT64_FORMAT "-%02u:%02u:%02u", days, hours, minutes,
                               (guint)(sec % 60));
    return g_strdup_printf("%02u:%02u:%02u", hours, minutes, (guint)(sec % 60));
}
