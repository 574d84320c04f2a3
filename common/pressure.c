/* SPDX-License-Identifier: Apache-2.0 */
/* Owns reading the kernel's words about pressure. */
#include "common/pressure.h"

#include <stdlib.h>
#include <string.h>

uint32_t berth_pressure_parse(const char *text, const char *kind)
{
    size_t length = strlen(kind);
    static const char average[] = " avg10=";

    while (*text != '\0') {
        if (strncmp(text, kind, length) == 0 &&
            strncmp(text + length, average, sizeof average - 1) == 0) {
            char *end;
            unsigned long whole = strtoul(text + length + sizeof average - 1, &end, 10);
            unsigned long hundredths = *end == '.' ? strtoul(end + 1, NULL, 10) : 0;

            return (uint32_t)(whole * 100 + hundredths % 100);
        }
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return 0;
}
