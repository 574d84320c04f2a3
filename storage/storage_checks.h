/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the front end share. */

#include <glib.h>

/* Largest image, disk or blob. */
#define BERTH_STORAGE_SIZE_MAX (G_GUINT64_CONSTANT(64) << 40)
#define BERTH_BLOB_SIZE_MAX    (G_GUINT64_CONSTANT(1) << 40)

/* INVALID_ARGUMENT; WHAT with its article: "an image". */
gboolean berth_storage_name_check(const char *what, const char *name, GError **error);
/* INVALID_ARGUMENT unless SIZE_BYTES is a multiple of 512 from 512 to BERTH_STORAGE_SIZE_MAX. */
gboolean berth_storage_size_check(const char *what, const char *id, guint64 size_bytes,
                                  GError **error);
/* Sorts and NULL-terminates NAMES, and returns its content (transfer full). */
char **berth_storage_list_finish(GPtrArray *names);
