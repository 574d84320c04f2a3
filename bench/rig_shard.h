/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A thread with some of the nodes, in a main context of its own. It shares nothing with others: it is asked by messages to its
 * context, and tells how it fares by messages to the main context. */

#include "bench/rig.h"

typedef struct RigShard RigShard;

/* In the main context, once a second: all that SHARD has counted. */
typedef void (*RigShardFunc)(RigShard *shard, const RigCounts *counts, gpointer user_data);

/* Starts with the nodes FIRST, FIRST + STEP, ... below N_NODES, of which each begins to dial when its turn has come at JOIN_RATE
 * nodes of all a second. PLAN outlives it. */
RigShard *rig_shard_new(const RigPlan *plan, guint first, guint step, guint n_nodes,
                        guint join_rate, RigShardFunc func, gpointer user_data);
/* All of its nodes join again at once. */
void rig_shard_join_again(RigShard *shard);
/* Ends and frees it. OUT_COUNTS: the last. */
void rig_shard_free(RigShard *shard, RigCounts *out_counts);

/* Name of the node with that number (transfer full). */
char *rig_node_name(guint number);
