/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Collects garbage in storage: disks of guests that are no more, images that no record names, and
 * uploads that no job uses. Runs when storage first answers, and then at intervals. */

BerthCollector *berth_collector_new(BerthDaemon *daemon);
void berth_collector_free(BerthCollector *collector);
/* Begins a round now, unless one is under way. */
void berth_collector_run(BerthCollector *collector);

/* Is the disk called DISK_ID garbage? FALSE also for names that are not of Berth's making, and for
 * jobs with numbers that were never given out (they are another cluster's). Pure but for looking
 * at CORE. */
gboolean berth_collector_is_dead_disk(BerthCore *core, guint64 next_job, const char *disk_id);
