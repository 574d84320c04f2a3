/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the rule by which a host may take over the name of a node. Changes nothing. */
#include "config.h"

#include "scheduler/daemon/host_check.h"

#include "common/error.h"
#include "scheduler/daemon/sessions.h"

#include <string.h>

#define ADVICE                                                                                     \
    "if both use this name and certificate, as after a machine was cloned, give one of them its "  \
    "own, see berth-setup(7)"

static gboolean is_other_host(const BerthNodeEntry *entry, const Berth__NodeInfo *info)
{
    const char *known = entry->info->host_id;
    return *known && *info->host_id && strcmp(known, info->host_id) != 0;
}

/* It cannot be in two boots at once: while the session of one lives, the other may be a clone's. A host
 * that was reset is taken when its old connection has timed out. */
static gboolean is_in_another_boot(const BerthNodeEntry *entry, const Berth__NodeInfo *info)
{
    const char *known = entry->info->boot_id;
    return *known && *info->boot_id && strcmp(known, info->boot_id) != 0;
}

/* The boot that follows another one begins when that is over: one that had begun when the other was last
 * heard of is a clone's, with all of its ids. */
static gboolean has_followed(BerthDaemon *daemon, const BerthNodeEntry *entry, guint64 uptime_msec)
{
    gint64 silent_usec = berth_engine_now_usec(daemon->engine) - entry->heard_usec;
    return uptime_msec == 0 || (silent_usec > 0 && uptime_msec < (guint64)silent_usec / 1000);
}

/* It may have been given another machine id while its guests ran. */
static gboolean has_guest_of(BerthCore *core, guint32 node, const Berth__JoinRequest *request)
{
    for (gsize i = 0; i < request->n_guests; i++) {
        const Berth__GuestId *id = request->guests[i]->id;
        BerthCoreTask task;
        if (id && berth_core_get_task(core, id->job, id->task, &task) && task.node == node &&
            task.epoch == id->epoch && task.phase != BERTH_GUEST_NONE)
            return TRUE;
    }
    return FALSE;
}

gboolean berth_host_check(BerthDaemon *daemon, const Berth__JoinRequest *request, GError **error)
{
    const Berth__NodeInfo *info = request->info;
    guint32 node = berth_core_find_node(daemon->core, info->name);
    const BerthNodeEntry *entry = berth_node_table_find(daemon->nodes, node);
    BerthCoreNode core_node;
    if (!entry || !berth_core_get_node(daemon->core, node, &core_node))
        return TRUE;
    gboolean is_other_boot = is_in_another_boot(entry, info);
    gboolean is_other = is_other_host(entry, info) ||
                        (is_other_boot && !has_followed(daemon, entry, request->uptime_msec));
    if (berth_sessions_peer(daemon->sessions, node) && (is_other || is_other_boot)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS,
                    "another host (%s), or this one before it was started anew, is node %s now: "
                    "in the second case its old connection ends within seconds; in the first, "
                    "if this one is to replace it, stop berth-node there, and " ADVICE,
                    entry->address, info->name);
        return FALSE;
    }
    if (!is_other)
        return TRUE;
    if (core_node.guests == 0 || has_guest_of(daemon->core, node, request))
        return TRUE;
    g_set_error(
        error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
        "another host, or this one before it was started anew, was node %s, and %u guests may "
        "still run there: this one can be it once they were given up (node_timeout, %u s) or have "
        "ended; " ADVICE,
        info->name, core_node.guests, daemon->config->node_timeout_sec);
    return FALSE;
}
