/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* How much memory berthd may take before it takes no new jobs: so that it refuses some of them rather than fails all that
 * there are. What runs, and what ends it, is served beyond that. */

typedef struct BerthMemoryBound BerthMemoryBound;

/* Bytes that [limits] memory_max of MAX_MIB stands for; 0: half of what there is for this process. */
guint64 berth_memory_bound_bytes(guint64 max_mib);

/* MAX_MIB: resident, and its own (neither files nor what is shared); 0: as above. A warning is logged if it is more than what there
 * is. */
BerthMemoryBound *berth_memory_bound_new(guint64 max_mib);
void berth_memory_bound_free(BerthMemoryBound *bound);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthMemoryBound, berth_memory_bound_free)

/* Jobs that have not ended: what takes the memory. */
typedef struct {
    guint of_user; /* of who submits */
    guint of_all;
    guint n_users; /* that have any */
} BerthMemoryJobs;

/* FALSE with RESOURCE_EXHAUSTED, for who submits: it takes that much, or more; or three quarters of it, and he has more jobs than
 * each would have if there were one user more: those who have many, or one who has all, leave something for who has none. It is looked at a few times a second at most, so
 * that it costs nothing to ask for each job. */
gboolean berth_memory_bound_check(BerthMemoryBound *bound, const BerthMemoryJobs *jobs,
                                  GError **error);

/* Bytes that there are for this process: HOST_BYTES, or less where its cgroup (version 2), or one above that, has a lower
 * memory.max. PROC_DIR, CGROUP_DIR: "/proc" and "/sys/fs/cgroup", but in tests. */
guint64 berth_memory_bound_of_host(guint64 host_bytes, const char *proc_dir,
                                   const char *cgroup_dir);
