/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a node is shown: what it said of itself, and what the core counts on it. */
#include "config.h"

#include "scheduler/daemon/node_view.h"

#include "common/error.h"

const BerthNodeEntry *berth_node_view_find(BerthDaemon *daemon, const char *name, GError **error)
{
    const BerthNodeEntry *entry =
        berth_node_table_find(daemon->nodes, berth_core_find_node(daemon->core, name));
    if (!entry)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                    "there is no node \"%s\"; berth node ls shows those that there are", name);
    return entry;
}

/* Why it gets no new guests although it is UP. (transfer full) */
static char *closed_reason(BerthDaemon *daemon, const BerthNodeEntry *entry,
                           const BerthCoreNode *node)
{
    if (node->state != BERTH_NODE_UP)
        return g_strdup("");
    if (entry->admission)
        return g_strdup_printf("%s by %s: %s",
                               berth_node_entry_is_draining(entry) ? "drained" : "cordoned",
                               entry->admission->user, entry->admission->reason);
    if (node->cannot_start)
        return g_strdup(entry->info->cannot_start);
    if (node->closed_until_usec > 0) {
        gint64 left_usec = node->closed_until_usec - berth_engine_now_usec(daemon->engine);
        return g_strdup_printf("starts fail on it, one is tried again in %" G_GINT64_FORMAT
                               " s; the latest: %s",
                               (MAX(left_usec, 0) + G_USEC_PER_SEC - 1) / G_USEC_PER_SEC,
                               entry->start_error ? entry->start_error : "unknown");
    }
    if (node->strays > 0) {
        return g_strdup_printf("%u guest%s that nobody wants any more %s being removed from it",
                               node->strays, node->strays == 1 ? "" : "s",
                               node->strays == 1 ? "is" : "are");
    }
    if (node->is_oversubscribed)
        return g_strdup("the guests that run on it have reserved more than it offers now");
    return g_strdup("");
}

static void fill_amounts(const BerthCoreNode *node, Berth__Node *out_node)
{
    out_node->vcpus_reserved = node->reserved.vcpus;
    out_node->memory_reserved_mib = node->reserved.memory_mib;
    out_node->vcpus_slack = node->opportunistic.vcpus;
    out_node->memory_slack_mib = node->opportunistic.memory_mib;
    out_node->used_milli = node->used_milli;
    out_node->used_mib = node->used_mib;
    out_node->predicted_milli = node->predicted_milli;
    out_node->predicted_mib = node->predicted_mib;
    out_node->pressed_until_usec = (guint64)node->pressed_until_usec;
    out_node->guests = node->guests;
}

void berth_node_view_fill(BerthDaemon *daemon, const BerthNodeEntry *entry, Berth__Node *out_node)
{
    BerthCoreNode node = {0};
    berth__node__init(out_node);
    out_node->info = entry->info;
    out_node->usage = entry->usage;
    out_node->admission = entry->admission;
    out_node->last_report_usec = (guint64)entry->heard_usec;
    if (entry->address)
        out_node->address = entry->address;
    if (berth_core_get_node(daemon->core, entry->handle, &node)) {
        out_node->state = (Berth__NodeState)node.state;
        out_node->since_usec = (guint64)node.since_usec;
        fill_amounts(&node, out_node);
        out_node->closed_reason = closed_reason(daemon, entry, &node);
        if (entry->fence_error)
            out_node->fence_error = entry->fence_error;
    }
}

void berth_node_view_clear(Berth__Node *node)
{
    if (node->closed_reason != protobuf_c_empty_string)
        g_free(node->closed_reason);
}
