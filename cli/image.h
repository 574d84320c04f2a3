/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

/* Prints IMAGE, which it frees: as JSON, if CLI says so. */
void berth_cli_print_image(BerthCli *cli, Berth__Image *image);

/* `berth image import` itself, in a program of its own (import_main.c). */
gboolean berth_cli_image_build(BerthCli *cli, int argc, char **argv, int *out_status,
                               GError **error);
