/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What becomes of a guest that needs more than it has. */
void core_limit_check(BerthCore *core, CoreGuest *guest, const BerthCoreUsage *usage);
