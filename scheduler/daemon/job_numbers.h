/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Which job numbers may be given out. What is in storage has the number of its job in its name, so
 * that no number may be given out twice, even if the state database is put back as it was some time
 * ago. The loop's, but for berth_job_numbers_guard(). */

/* COUNTERS: as the database has them; daemon->next_job is raised if storage knows of later ones. */
BerthJobNumbers *berth_job_numbers_new(BerthDaemon *daemon, const BerthStoreCounters *counters);
void berth_job_numbers_free(BerthJobNumbers *numbers);
/* The daemon ends: whoever waits gets UNAVAILABLE. */
void berth_job_numbers_stop(BerthJobNumbers *numbers);

/* For berth_storage_link_set_guard(), with the BerthJobNumbers. */
gboolean berth_job_numbers_guard(BerthStorage *storage, gboolean is_new, gpointer user_data,
                                 GError **error);
/* ERROR is NULL: storage answers. Called before anything is done with it. */
void berth_job_numbers_storage_changed(BerthJobNumbers *numbers, const GError *error);

/* FUNC, maybe at once, and within the time that some operations in storage may take. UNAVAILABLE: storage
 * does not answer; RESOURCE_EXHAUSTED: many wait already. ERROR is NULL if daemon->next_job may have been given out, in which case FUNC
 * looks with berth_job_numbers_check(), as others may have been faster. */
typedef void (*BerthJobNumbersFunc)(const GError *error, gpointer user_data);
void berth_job_numbers_wait(BerthJobNumbers *numbers, BerthJobNumbersFunc func, gpointer user_data);
/* May daemon->next_job be given out? UNAVAILABLE. */
gboolean berth_job_numbers_check(BerthJobNumbers *numbers, GError **error);
/* JOB was committed. */
void berth_job_numbers_given(BerthJobNumbers *numbers, guint64 job);
