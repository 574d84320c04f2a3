/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* TEXT, NAME=VALUE or the NAME of a variable that is set here, as NAME=VALUE (transfer full). NULL: it is neither, or no shell could
 * name it so. */
char *berth_variable_parse(const char *text, GError **error);
