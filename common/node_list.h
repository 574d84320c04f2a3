/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* Names of nodes as people write them: "n1,n2", "n[1-3,7]", "r[1-2]n[01-12]". A range in brackets stands for
 * its numbers, which are as long as its first one is where that begins with a 0; several brackets stand for
 * all combinations, the last one counting fastest. */

#define BERTH_NODE_LIST_MAX 100000u

/* The names of TEXT in its order, each once, BERTH_NODE_LIST_MAX at most. INVALID_ARGUMENT: what is wrong
 * with it. (transfer full, NULL-terminated; not empty) */
char **berth_node_list_parse(const char *text, GError **error);
/* The same for the COUNT texts of a command line together. */
char **berth_node_list_parse_all(const char *const *texts, guint count, GError **error);
