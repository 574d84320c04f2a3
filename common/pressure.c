/* SPDX-License-Identifier: Apache-2.0 */
/* Owns reading the kernel's words about pressure. */
#include "common/pressure.h"

#include <stdlib.h>
#include <string.h>

/* What follows " KEY=" in line KIND; NULL: there is none. */
static const char *find_value(const char *text, const char *kind, const char *key)
{
    size_t kind_length = strlen(kind), key_length = strlen(key);

    while (*text != '\0') {
        const char *end = text + strcspn(text, "\n");

        if (strncmp(text, kind, kind_length) == 0 && text[kind_length] == ' ')
            for (const char *at = text + kind_length; at < end; at++)
                if (*at == ' ' && strncmp(at + 1, key, key_length) == 0 &&
                    at[1 + key_length] == '=')
                    return at + 1 + key_length + 1;
        text = end + (*end == '\n');
    }
    return NULL;
}

uint32_t berth_pressure_parse(const char *text, const char *kind)
{
    const char *value = find_value(text, kind, "avg10");
    char *end;

    if (value == NULL)
        return 0;

    unsigned long whole = strtoul(value, &end, 10);
    unsigned long hundredths = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;

    return (uint32_t)(whole * 100 + hundredths % 100);
}

uint64_t berth_pressure_parse_total(const char *text, const char *kind)
{
    const char *value = find_value(text, kind, "total");

    return value != NULL ? strtoull(value, NULL, 10) : 0;
}
