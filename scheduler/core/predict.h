/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What guests are thought to need. */
void core_predict_init(BerthCore *core);
void core_predict_clear(BerthCore *core);
/* GUEST is new: what its siblings needed, or its whole reservation. */
void core_predict_begin(BerthCore *core, CoreGuest *guest);
/* What a new guest of JOB would be taken at. */
CoreNeeds core_predict_new(const BerthCore *core, const CoreJob *job);
void core_predict_report(BerthCore *core, CoreGuest *guest, const BerthCoreUsage *usage);
/* GUEST's task has ended well: its siblings will need as much. */
void core_predict_learn(BerthCore *core, const CoreGuest *guest);
/* What all guests of NODE together are thought to need at most: memory as the sum of theirs; vCPUs
 * by how much of the sum was ever used at once. */
CoreNeeds core_predict_node(const CoreNode *node);
