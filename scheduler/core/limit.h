/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What becomes of a guest that needs more than it has. */
void core_limit_check(BerthCore *core, CoreGuest *guest, const BerthCoreUsage *usage);
/* A node, other than its own, that can back GUEST with SIZE for as long as it is thought to run: the
 * first below its caps of moves; else one that is not. NULL = none. */
CoreNode *core_limit_find_place(const BerthCore *core, const CoreGuest *guest, CoreSize size);
