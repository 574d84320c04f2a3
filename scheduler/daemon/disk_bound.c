/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is known of the room for berthd's state. */
#include "config.h"

#include "scheduler/daemon/disk_bound.h"

#include "common/error.h"
#include "common/log.h"

#include <sys/statvfs.h>

#define LOOK_USEC G_USEC_PER_SEC
#define MIB       ((guint64)1 << 20)

struct BerthDiskBound {
    char *dir; /* NULL: it is not bounded */
    guint64 kept_mib;
    guint64 free_mib; /* at the last look */
    gint64 looked_usec;
    BerthLogLimit limit;
};

BerthDiskBound *berth_disk_bound_new(const char *state, guint64 kept_mib)
{
    BerthDiskBound *bound = g_new0(BerthDiskBound, 1);
    if (kept_mib > 0 && !g_str_has_prefix(state, "file:"))
        bound->dir = g_path_get_dirname(state);
    bound->kept_mib = kept_mib;
    bound->looked_usec = G_MININT64 / 2;
    return bound;
}

void berth_disk_bound_free(BerthDiskBound *bound)
{
    g_free(bound->dir);
    g_free(bound);
}

/* Where it cannot be asked nothing is known to be too little. */
static void look(BerthDiskBound *bound)
{
    struct statvfs room;
    gint64 now_usec = g_get_monotonic_time();
    if (now_usec - bound->looked_usec < LOOK_USEC)
        return;
    bound->looked_usec = now_usec;
    bound->free_mib = statvfs(bound->dir, &room) == 0
                          ? (guint64)room.f_bavail * (guint64)room.f_frsize / MIB
                          : G_MAXUINT64;
}

gboolean berth_disk_bound_check(BerthDiskBound *bound, GError **error)
{
    if (bound->dir == NULL)
        return TRUE;
    look(bound);
    if (bound->free_mib > bound->kept_mib)
        return TRUE;
    berth_log_warning_limited(&bound->limit,
                              "no new jobs are taken: %" G_GUINT64_FORMAT
                              " MiB are free in %s, of which %" G_GUINT64_FORMAT
                              " are kept for those that there are (state_kept)",
                              bound->free_mib, bound->dir, bound->kept_mib);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                "there is too little room for berthd's state: %" G_GUINT64_FORMAT
                " MiB, and %" G_GUINT64_FORMAT
                " are kept for the jobs that there are (state_kept); submit it later, and tell "
                "your operators",
                bound->free_mib, bound->kept_mib);
    return FALSE;
}
