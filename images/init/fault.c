/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the making of error texts. Never allocates, never fails: a text that is too long is cut, and
 * bytes that are no UTF-8 (of a program's name, say) become '?'. */
#include "images/init/fault.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* The length of the UTF-8 character at TEXT; 0: there is none (RFC 3629, section 4). */
static size_t character_length(const unsigned char *text)
{
    static const struct {
        unsigned char first, last;               /* of the first byte */
        unsigned char second_first, second_last; /* of the second */
        unsigned char length;
    } forms[] = {
        {0x01, 0x7f, 0, 0, 1},       {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3},
        {0xe1, 0xec, 0x80, 0xbf, 3}, {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3},
        {0xf0, 0xf0, 0x90, 0xbf, 4}, {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    size_t form = 0;

    while (form < sizeof forms / sizeof *forms &&
           (text[0] < forms[form].first || text[0] > forms[form].last))
        form++;
    if (form == sizeof forms / sizeof *forms)
        return 0;
    if (forms[form].length > 1 &&
        (text[1] < forms[form].second_first || text[1] > forms[form].second_last))
        return 0;
    for (size_t i = 2; i < forms[form].length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    return forms[form].length;
}

/* A character that was cut off at the end is taken away, other bytes that are none replaced. */
static void make_utf8(char *text, bool is_cut)
{
    size_t length = strlen(text);
    size_t at = length;

    if (is_cut) {
        while (at > 0 && length - at < 3 && ((unsigned char)text[at - 1] & 0xc0) == 0x80)
            at--;
        if (at > 0 && ((unsigned char)text[at - 1] & 0xc0) == 0xc0 &&
            character_length((const unsigned char *)text + at - 1) == 0)
            text[at - 1] = '\0';
    }
    for (at = 0; text[at] != '\0';) {
        size_t step = character_length((const unsigned char *)text + at);

        if (step == 0)
            text[at] = '?';
        at += step > 0 ? step : 1;
    }
}

/* Adds to the text, of which LENGTH bytes are there. */
static void add(Fault *fault, size_t length, const char *format, va_list args)
{
    int wanted = vsnprintf(fault->text + length, sizeof fault->text - length, format, args);

    make_utf8(fault->text, wanted >= (int)(sizeof fault->text - length));
}

void fault_set(Fault *fault, const char *format, ...)
{
    va_list args;

    if (fault == NULL)
        return;
    fault->disk_full = false;
    va_start(args, format);
    add(fault, 0, format, args);
    va_end(args);
}

void fault_set_errno(Fault *fault, int err, const char *format, ...)
{
    const char *why = strerrordesc_np(err);
    size_t length;
    va_list args;

    if (fault == NULL)
        return;
    fault->disk_full = false;
    va_start(args, format);
    add(fault, 0, format, args);
    va_end(args);
    length = strlen(fault->text);
    (void)snprintf(fault->text + length, sizeof fault->text - length, ": %s",
                   why != NULL ? why : "unknown error");
}
