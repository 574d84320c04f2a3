/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* The node of that NAME. NOT_FOUND: there is none. */
const BerthNodeEntry *berth_node_view_find(BerthDaemon *daemon, const char *name, GError **error);
/* Strings and messages of OUT_NODE are ENTRY's, but for what berth_node_view_clear() frees. */
void berth_node_view_fill(BerthDaemon *daemon, const BerthNodeEntry *entry, Berth__Node *out_node);
void berth_node_view_clear(Berth__Node *node);
