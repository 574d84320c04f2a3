/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

void core_nodes_init(CoreNodes *nodes);
void core_nodes_clear(CoreNodes *nodes);
CoreNode *core_nodes_add(CoreNodes *nodes, const char *name);
CoreNode *core_nodes_get(const CoreNodes *nodes, guint32 handle); /* NULL = unknown */
CoreNode *core_nodes_find_name(const CoreNodes *nodes, const char *name);

CoreSize core_node_capacity(const CoreNode *node);
/* What a new guest could get now: nothing unless it is UP, clean and not hidden. */
CoreSize core_node_free(const CoreNode *node);
/* What guests that are there could get besides: the same, whether new ones may come or not. */
CoreSize core_node_unreserved(const CoreNode *node);
/* How much ROOM is, in MiB: a vCPU counts as the memory that the cluster has for each, to a power of
 * two. The less a fit leaves, the better it is. */
guint64 core_nodes_left(const CoreNodes *nodes, CoreSize room);
/* A has more memory, or as much and more vCPUs. */
gboolean core_node_is_larger(const CoreNode *a, const CoreNode *b);
/* The largest of all that ever joined, the first of such; NULL = none has. OUT_MOST: no node has more vCPUs, and none more memory. Looks
 * at all of them only when one has joined or changed. */
const CoreNode *core_nodes_largest(CoreNodes *nodes, CoreSize *out_most);
/* NODE is as INFO says, and has joined, or is about to be noted so. */
void core_nodes_set_info(CoreNodes *nodes, CoreNode *node, const BerthCoreNodeInfo *info);
/* No guest is there, comes there, or is to be removed there. */
gboolean core_node_is_empty(const CoreNode *node);
/* May be waited for: UP, not hidden, and open to new guests. */
gboolean core_node_is_open(const CoreNode *node);

/* To be called after anything that the three functions above depend on was changed, or when a guest
 * there is thought to leave. */
void core_nodes_changed(CoreNodes *nodes, CoreNode *node);
/* The number that the next change of a node will have. */
guint64 core_nodes_next_change(const CoreNodes *nodes);
/* A guest of NODE, or one that came, is not there any more: the last that a drain waited for is told
 * of when the event ends. */
void core_nodes_one_left(CoreNodes *nodes, const CoreNode *node);
/* NODE may have more room than it had: the next pass looks at it. */
void core_nodes_fresh(CoreNodes *nodes, CoreNode *node);

/* GUEST is backed by NODE, or comes to be, and may be growing. */
void core_nodes_note_growth(CoreNode *node, const CoreGuest *guest);

/* GUEST takes, or no longer takes, its part of NODE. The cells that GUEST says it spans, else those
 * that suit it best; it spans none afterwards. */
void core_nodes_reserve(CoreNodes *nodes, CoreNode *node, CoreGuest *guest);
void core_nodes_unreserve(CoreNodes *nodes, CoreNode *node, CoreGuest *guest);
/* GUEST, on its way, will take its part of TO. */
void core_nodes_hold(CoreNodes *nodes, CoreNode *to, CoreGuest *guest);
void core_nodes_unhold(CoreNodes *nodes, CoreNode *to, CoreGuest *guest);
/* What of NODE is neither predicted to be needed nor kept. */
CoreNeeds core_node_slack(const CoreNodes *nodes, const CoreNode *node);
/* How long it takes to write out all in NODE's slack, and all on their way there, in MiB that could be written meanwhile:
 * core_relief_most_mib(). */
guint64 core_node_evacuation_mib(const CoreNodes *nodes, const CoreNode *node);
/* Of guests in slack that use USED_MIB, when they have grown as much as headroom is kept for. */
guint64 core_nodes_grown_mib(const CoreNodes *nodes, guint64 used_mib);
/* Likewise with N_MORE, that use MORE_MIB (which may be less than nothing, modulo 2^64), and all of them grown. */
guint64 core_node_slack_load_mib(const CoreNodes *nodes, const CoreNode *node, guint n_more,
                                 guint64 more_mib);
/* core_node_slack() if GUEST, which is there, had left; NULL = nobody. */
CoreNeeds core_node_slack_without(const CoreNodes *nodes, const CoreNode *node,
                                  const CoreGuest *guest);
/* NODE's needs have changed. */
void core_nodes_slack_changed(CoreNodes *nodes, const CoreNode *node);
/* Guests' ids rising, so that nothing depends on history. (transfer container) */
GPtrArray *core_node_guests_sorted(const CoreNode *node);

/* Nodes with at least the capacity of any barrier are closed. */
typedef struct {
    const CoreSize *sizes;
    guint n;
} CoreBarriers;
gboolean core_barriers_close(CoreBarriers barriers, CoreSize capacity);

typedef enum {
    CORE_LOOK_AT_FREE,
    CORE_LOOK_AT_CAPACITY,
} CoreLookAt;
/* No node has more vCPUs free, and none more memory. */
CoreSize core_nodes_most_free(const CoreNodes *nodes);
/* The first open node, by handle, with room for NEED that is not behind a barrier; NULL = none.
 * About O(log n): whole parts of the table are passed over by their largest and smallest nodes. */
CoreNode *core_nodes_first(const CoreNodes *nodes, CoreSize need, CoreLookAt look_at,
                           CoreBarriers barriers);
/* The next one after AFTER, by handle, with room for NEED now; AFTER 0 = the first. */
CoreNode *core_nodes_next(const CoreNodes *nodes, CoreSize need, guint32 after);
