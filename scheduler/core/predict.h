/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What guests are thought to need. */
void core_predict_init(BerthCore *core);
void core_predict_clear(BerthCore *core);
gsize core_predict_bytes(const BerthCore *core);
/* GUEST is new: the vCPUs that its siblings needed, or all that it reserved, and all of its memory
 * until it is measured. One that goes on from a checkpoint needs what it needed then. */
void core_predict_begin(BerthCore *core, CoreGuest *guest);
/* GUEST is put back from the store, and counted in no node meanwhile: it needs what its record says,
 * and what it may need beyond that without its having been told, until it is measured again. Where
 * the record says nothing, it settles anew and its siblings learn nothing from it. */
void core_predict_restore(BerthCore *core, CoreGuest *guest);
/* ... and now goes on. */
void core_predict_resume(BerthCore *core, CoreGuest *guest);
/* GUEST was put back, and has not been measured since, as it will be. */
gboolean core_predict_is_awaited(const BerthCore *core, const CoreGuest *guest);
/* So was one of NODE's guests: what it occupies of the host beyond its needs is not known either. */
gboolean core_predict_awaits_any(const BerthCore *core, const CoreNode *node);
/* GUEST was put back, and what it needs is not known again yet. */
gboolean core_predict_settles_anew(const BerthCore *core, const CoreGuest *guest);
/* What a guest of JOB would be taken at; TASK: of the task that is started again; NULL = a new one. */
CoreNeeds core_predict_new(const BerthCore *core, const CoreJob *job, const CoreTask *task);
/* Memory that a guest of TASK has as soon as it is started; NULL = a new one. */
guint64 core_predict_held_mib(const CoreTask *task);
void core_predict_report(BerthCore *core, CoreGuest *guest, const BerthCoreUsage *usage);
/* GUEST, which is to have more memory, needs all of it until that is done and it is measured again: it may take it at once. */
void core_predict_grows(BerthCore *core, CoreGuest *guest);
/* How much more that is than it would need else (MiB). */
guint64 core_predict_growth_mib(const BerthCore *core, const CoreGuest *guest);
/* It has that memory now, or some of it. */
void core_predict_grew(CoreGuest *guest);
/* GUEST, which has less memory than it was to have, or had, needs no more than it has; where it did not grow, no more than before. */
void core_predict_fits(BerthCore *core, CoreGuest *guest);
/* GUEST occupies TOUCHED_MIB of its host, 0 = not told. What that is beyond its needs is no demand, but
 * nobody else can have it. */
void core_predict_touched(BerthCore *core, CoreGuest *guest, guint64 touched_mib);
/* That memory, with its overhead, of which hosts count some, too; 0: not known. */
guint64 core_predict_occupied_mib(const BerthCore *core, const CoreGuest *guest);
/* Of its node's memory: what it is thought to need, and what it occupies beyond that. */
guint64 core_predict_taken_mib(const CoreGuest *guest);
/* What it was measured to need, with the margin, or occupies: without what is assumed until it has settled. */
guint64 core_predict_measured_mib(const BerthCore *core, const CoreGuest *guest);
/* GUEST's task has ended well: its siblings will need as much. */
void core_predict_learn(BerthCore *core, const CoreGuest *guest);
/* What all guests of NODE together are thought to need at most: memory as the sum of theirs; vCPUs
 * by how much of the sum was ever used at once. */
CoreNeeds core_predict_node(const CoreNode *node);
