/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>
#include <stdio.h>

/* A file that is written once a run is over, checked before it begins. What is there already and is
 * no regular file (a device, a FIFO) is opened and written through; a regular file is replaced whole
 * or not at all, with its mode kept, and so is the one that a symbolic link leads to. */
typedef struct SimOutput SimOutput;

/* OPTION is what names PATH on the command line, for messages. Waits for the reader of a FIFO.
 * Errors: errno codes. */
SimOutput *sim_output_open(const char *option, const char *path, GError **error);
/* From now on what is written into it is there at once, and what was there is gone: for what is too much to be
 * kept. NULL: errno codes. (transfer full) */
FILE *sim_output_stream(SimOutput *output, GError **error);
gboolean sim_output_write(SimOutput *output, const char *text, GError **error);
void sim_output_close(SimOutput *output);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimOutput, sim_output_close)

/* The directory DIR, which OPTION names, is there and can be written into; it is made if need be, but not what it is to be in:
 * a name that is mistyped would fill another disk. Errors: errno codes. */
gboolean sim_output_make_dir(const char *option, const char *dir, GError **error);
