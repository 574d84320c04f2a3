/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/store/store.h"
#include "scheduler/store/writer.h"

/* Runs FUNC, from any thread, on a connection that nobody else uses meanwhile, within one read
 * transaction: all that it sees is of one instant. */
gboolean store_read(BerthStore *store, StoreReadFunc func, gpointer data, GError **error);

/* Runs FUNC, from any thread, on the writing thread and its connection, between two transactions. */
gboolean store_run_on_writer(BerthStore *store, StoreReadFunc func, gpointer data, GError **error);

/* The state of JOB; JOB_STATE_UNSPECIFIED: there is none. */
gboolean store_read_job_state(StoreDb *db, guint64 job, Berth__JobState *out_state, GError **error);
/* Puts the present states of the jobs that SPEC comes after into it. */
gboolean store_read_dependencies(StoreDb *db, Berth__JobSpec *spec, GError **error);
