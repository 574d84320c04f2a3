/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* One of GUESTS, which are on FROM, and one of OTHERS, on TO, are wanted in each other's place: the two by which the load
 * of the busier of both nodes sinks most, and by LEAST permille (from 1), at least. They begin to move if the round before wanted the same.
 * FALSE: there are no such two. */
gboolean core_exchange_two(BerthCore *core, const GPtrArray *guests, const GPtrArray *others,
                           CoreNode *from, CoreNode *to, guint64 least);
/* The move of GUEST, number SERIAL of what was done to it, has ended: who is to go the other way in exchange follows if it is
 * where it was to be, and that is still as good. */
void core_exchange_moved(BerthCore *core, const CoreGuest *guest, guint32 serial);
