/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/learned.h"
#include "scheduler/store/store.h"

/* Between what the core has learnt (scheduler/core/learned.h) and its stored records. Pure. */

/* What an event changed of it, into the batch that has the tasks of the same event. */
void berth_learned_write(BerthStoreBatch *batch, const BerthCoreEffects *effects);

/* Puts a record back into CORE, before the jobs. One of nothing is left out. */
void berth_learned_restore_use(BerthCore *core, const Berth__StoredUse *stored);
void berth_learned_restore_prior(BerthCore *core, const Berth__StoredPrior *stored);
