/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* A file that is read again and again, by one reader at a time. What can be read only once, a pipe or a
 * terminal, is put by in a temporary file without a name. */
typedef struct SimSource SimSource;

/* PATH "-" is standard input. Errors: errno codes. */
SimSource *sim_source_new(const char *path, GError **error);
void sim_source_free(SimSource *source);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimSource, sim_source_free)

/* As messages name it. */
const char *sim_source_name(const SimSource *source);
gboolean sim_source_is_same(const SimSource *a, const SimSource *b);
/* A descriptor at its beginning, to be closed; -1: ERROR is set. */
int sim_source_open(const SimSource *source, GError **error);
