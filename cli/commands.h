/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

#include <stdio.h>

typedef struct {
    const char *name; /* "submit", "node ls" */
    const char *summary;
    BerthVerbFunc func;
} BerthCommand;

/* The command table, in the order of the help text; *out_n entries. */
const BerthCommand *berth_commands(gsize *out_n);

/* The command that ARGV starts with; *out_words: how many words name it. NULL: none; *out_group is
 * then TRUE if ARGV[0] is the first word of some ("node"). */
const BerthCommand *berth_command_find(int argc, char **argv, int *out_words, gboolean *out_group);

/* Prints the table, or the part of it that starts with GROUP. */
void berth_commands_print(FILE *stream, const char *group);
