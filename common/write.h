/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* Writes all LENGTH bytes of DATA to FD, which blocks, however often that is interrupted. FALSE: errno
 * says why; some of it may have been written. */
gboolean berth_write_all(int fd, const void *data, gsize length);
/* Makes durable that PATH has its name, or has it no more: its directory is synced. FALSE: errno says why. */
gboolean berth_sync_directory_of(const char *path);
