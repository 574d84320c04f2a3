/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The file of --jobs: CSV with a header, a line for each job that ended or was refused, under each policy, in
 * order of their ends. Constant memory. */

#include "scheduler/sim/sim.h"

typedef struct SimJobList SimJobList;

/* That PATH can be written; nothing is yet. Errors: errno codes. */
SimJobList *sim_joblist_new(const char *path, GError **error);
void sim_joblist_free(SimJobList *list);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimJobList, sim_joblist_free)

/* What was there is gone, and the header is written. Errors: errno codes. */
gboolean sim_joblist_begin(SimJobList *list, GError **error);
/* Errors are told by sim_joblist_end(). */
void sim_joblist_add(SimJobList *list, SimPolicy policy, const SimJob *job,
                     const SimOutcome *outcome);
/* All lines are in the file, and no more come. Errors: errno codes. */
gboolean sim_joblist_end(SimJobList *list, GError **error);
