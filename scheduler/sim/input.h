/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/sim/source.h"

/* Lines of trace files: plain, or compressed with gzip, xz, bzip2 or zstd (told by content, not by
 * name), alone or in a tar. A byte-order mark is skipped.
 * Streaming: memory does not depend on the size of the file. */
typedef struct SimInput SimInput;

/* SOURCE must outlive it, and have no other reader meanwhile. Errors: errno codes, DATA_LOSS (damaged). */
SimInput *sim_input_open(const SimSource *source, GError **error);
void sim_input_close(SimInput *input);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimInput, sim_input_close)

/* Goes to the next regular file; a file that is no tar is one, named after itself. At the end
 * *OUT_NAME is NULL. */
gboolean sim_input_next_file(SimInput *input, const char **out_name, GError **error);
gboolean sim_input_is_tar(const SimInput *input);

/* The next line of the file without its end, valid until the next call; NULL at the end of the
 * file. Lines are text: a NUL byte or more than 1 MiB is INVALID_ARGUMENT. */
gboolean sim_input_next_line(SimInput *input, char **out_line, GError **error);

/* Whether the line that was given last has no end: the file may have been cut off in it. */
gboolean sim_input_is_cut(const SimInput *input);

/* Sets INVALID_ARGUMENT "PATH:LINE: message", for the line read last; always returns FALSE. In a
 * tar it is PATH(FILE):LINE; before any line, there is no LINE. */
gboolean sim_input_refuse(const SimInput *input, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);
