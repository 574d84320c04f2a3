/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/core.h"
#include "scheduler/daemon/elements.h"
#include "scheduler/daemon/job_table.h"
#include "scheduler/daemon/pb.h"
#include "scheduler/store/store.h"

/* What a job comes after, from its specification to the core. The state of a job that it names is in the specification
 * (Dependency.state), where the daemon alone puts it: the core knows those that have not ended; of the others it may know no more by the time that it decides. */

/* For berth_store_get_job_states(): jobs, whose states are looked at together, whoever names them. (transfer full) */
GHashTable *berth_dependencies_new(void);
/* Adds those that SPEC names. */
void berth_dependencies_gather(const Berth__JobSpec *spec, GHashTable *states);
/* The states of all jobs that SPEC names, in their order, of KNOWN (Berth__JobState, transfer full). INVALID_ARGUMENT: there is
 * no such job. */
GArray *berth_dependencies_look(const Berth__JobSpec *spec, GHashTable *known, GError **error);
void berth_dependencies_note(Berth__JobSpec *spec, const GArray *states);
/* Those that have ended since they were looked at, and are in JOBS still. FALSE: one is not any more; looked at again, once what is
 * being committed is, it has ended. */
gboolean berth_dependencies_renew(Berth__JobSpec *spec, BerthJobTable *jobs);
/* Of the jobs that SPEC's tasks, INDICES, come after one by one: who completes is told from now on, or no more. TRUE: there are
 * such. */
gboolean berth_dependencies_watch(const Berth__JobSpec *spec, BerthElements *elements);
void berth_dependencies_unwatch(const Berth__JobSpec *spec, BerthElements *elements);
/* Adds what was told to COMPLETED (BerthTaskRange). */
void berth_dependencies_add_completed(const Berth__JobSpec *spec, const BerthElements *elements,
                                      GArray *completed);
/* On a worker: those of them that have COMPLETED (BerthTaskRange, transfer full). INVALID_ARGUMENT: one of INDICES (NULL: it is no
 * array) is no task of such a job. */
GArray *berth_dependencies_completed(const Berth__JobSpec *spec, const BerthIndexSet *indices,
                                     BerthStore *store, GError **error);
/* SPEC->n_dependencies of them (transfer full). */
BerthCoreDependency *berth_dependencies_to_core(const Berth__JobSpec *spec);
