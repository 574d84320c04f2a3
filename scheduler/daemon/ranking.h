/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/types.h"
#include <glib.h>

/* Nodes, or guests, in an order of which no more is worked out than is asked for. */

typedef struct {
    guint64 key;        /* larger comes first; then by the rest of it */
    guint32 node;       /* handle */
    const char *name;   /* the node's (transfer none) */
    BerthGuestId guest; /* job 0: it is a node */
} BerthRanked;

typedef struct BerthRanking BerthRanking;
BerthRanking *berth_ranking_new(void);
void berth_ranking_free(BerthRanking *ranking);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthRanking, berth_ranking_free)

/* Before the first of it is asked for. None may be there twice. */
void berth_ranking_add(BerthRanking *ranking, const BerthRanked *ranked);
guint berth_ranking_size(const BerthRanking *ranking);
/* The one that comes after AT others (transfer none); NULL: there are no more. For the first O(size), and O(log size) for
 * each other that was not asked for before. */
const BerthRanked *berth_ranking_at(BerthRanking *ranking, guint at);
