/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the lines that go to the console: each is one write, so that the kernel's lines do not cut
 * into it. Without a console it does nothing. */
#include "images/init/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void say(const char *format, ...)
{
    char line[640] = "berth-init: ";
    size_t length = strlen(line);
    va_list args;

    va_start(args, format);
    (void)vsnprintf(line + length, sizeof line - length - 1, format, args);
    va_end(args);
    length = strlen(line);
    line[length++] = '\n';
    if (write(STDERR_FILENO, line, length) < 0)
        return; /* there is nobody else to tell */
}
