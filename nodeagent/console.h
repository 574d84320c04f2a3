/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The files that QEMU writes guests' consoles to. */

#include <glib.h>

#define BERTH_CONSOLE_TAIL_BYTES 4096u
/* A guest that fills its console loses the beginning of it. Where virtlogd writes it, its limits
 * (virtlogd.conf: 2 MiB, and three older files of that size) are reached first. */
#define BERTH_CONSOLE_MAX_BYTES (4u << 20)

/* The end of the file as UTF-8 text, without control characters; "" if there is none
 * (transfer full). */
char *berth_console_tail(const char *path);
/* Does the file contain TEXT? */
gboolean berth_console_contains(const char *path, const char *text);
/* Empties the file if it is larger than BERTH_CONSOLE_MAX_BYTES: QEMU appends to it. */
void berth_console_bound(const char *path);
/* Removes the file, and what virtlogd made of it when it grew. */
void berth_console_remove(const char *path);
/* Whose console FILE is, a name without a directory: virtlogd adds a dot and a number (transfer
 * full). */
char *berth_console_owner(const char *file);
