/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The control group in which libvirt has all guests of this node (its "partition"), as far as it counts and limits
 * memory. libvirt has no calls for it; where it is follows from where the QEMU of one of them is. */

#include <glib.h>

typedef struct BerthGuestsGroup BerthGuestsGroup;

/* That above the group of the process PID, which is a QEMU. PROC: "/proc". NOT_FOUND: PID is not there, or in no group
 * that libvirt has made; UNSUPPORTED: the host has no memory controller. */
BerthGuestsGroup *berth_guests_group_find(const char *proc, guint64 pid, GError **error);
void berth_guests_group_free(BerthGuestsGroup *group);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthGuestsGroup, berth_guests_group_free)

/* (transfer none) */
const char *berth_guests_group_path(const BerthGuestsGroup *group);
/* (transfer full) For another thread. */
BerthGuestsGroup *berth_guests_group_copy(const BerthGuestsGroup *group);
/* Has all that is in it this limit? NOT_FOUND: the group is gone, as its last guest is; errno codes. */
gboolean berth_guests_group_has_limit(const BerthGuestsGroup *group, guint64 limit_mib,
                                      gboolean *out_has, GError **error);
/* All that is in it never has more. Errors as above. Blocks where it has more already: the kernel takes that back first, for
 * seconds, and may end a process for it. */
gboolean berth_guests_group_limit(const BerthGuestsGroup *group, guint64 limit_mib, GError **error);
typedef struct {
    guint64 at_limit; /* that it came to its limit, and could not go below */
    guint64
        killed; /* processes that the kernel has ended, for that or as the host had no memory left */
} BerthGuestsKills;
/* How often that was so up to now, of it and all that was below it. Errors as above; UNSUPPORTED: version 1, which counts for the group of
 * one guest alone, and that is gone with it. */
gboolean berth_guests_group_kills(const BerthGuestsGroup *group, BerthGuestsKills *out_kills,
                                  GError **error);
/* What is in it now, and what comes, is not swapped out from now on (nodeagent/guests_group.c says how far); does nothing if that is so
 * already. NOT_FOUND: the group is gone; UNSUPPORTED: the kernel does not do that; errno codes. */
gboolean berth_guests_group_keep_from_swap(const BerthGuestsGroup *group, GError **error);
/* What is in it uses, with what of it is in swap, without what its kernel would drop for others (page cache of files). Errors of
 * the limit's. */
gboolean berth_guests_group_used(const BerthGuestsGroup *group, guint64 *out_mib, GError **error);
