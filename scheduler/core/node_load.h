/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* How much of the vCPUs of nodes is used, in permille of them. node_load.c */

guint64 core_node_load(const CoreNode *node);
/* What the load of the busier of both sinks by if GUEST moves; 0 = the move makes it worse. */
guint64 core_node_load_gain(const CoreGuest *guest, const CoreNode *from, const CoreNode *to);
/* Likewise if MOVER and BACK change places. */
guint64 core_node_load_gain_of_both(const CoreGuest *mover, const CoreGuest *back,
                                    const CoreNode *from, const CoreNode *to);
