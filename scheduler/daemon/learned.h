/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/learned.h"
#include "scheduler/store/store.h"

/* Between what the core has learnt (scheduler/core/learned.h) and its stored records. Pure. */

/* What an event changed of it, into the batch that has the tasks of the same event. */
void berth_learned_write(BerthStoreBatch *batch, const BerthCoreEffects *effects);

void berth_learned_use_to_core(const Berth__StoredUse *stored, BerthCoreUse *out_use);
void berth_learned_prior_to_core(const Berth__StoredPrior *stored, BerthCorePrior *out_prior);
