/* SPDX-License-Identifier: Apache-2.0 */
/* DECIDE: which two guests in slack change places so that two nodes are as busy as each other, and when each goes.
 *
 * What is held for a guest that moves is held beside all that is there. So two that change places begin
 * together only if each has room beside the other; else the one that has goes first, and the other
 * follows in the event in which that has arrived, before anybody else could take its place. That nothing
 * is in the way then is looked at, and not sure: what its node needs may be more by then, and after a
 * restart nobody knows of it any more. Then one of them has moved, and a later round may move it back. */
#include "scheduler/core/exchange.h"

#include "scheduler/core/balance.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/job.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/node_load.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/timers.h"
#include "scheduler/core/want.h"

typedef struct {
    CoreGuest *mover, *back; /* NULL = none found */
    guint64 gain;
} Pair;

static gboolean fit_both_ways(const BerthCore *core, const Pair *pair, const CoreNode *from,
                              const CoreNode *to)
{
    return core_balance_has_room(core, to, pair->mover, pair->back) &&
           core_balance_has_room(core, from, pair->back, pair->mover) &&
           (core_balance_has_room(core, to, pair->mover, NULL) ||
            core_balance_has_room(core, from, pair->back, NULL));
}

static gboolean is_worth(const BerthCore *core, const Pair *pair, const CoreNode *from)
{
    gint64 takes_usec = core_time_add(core_move_migrate_usec(core, pair->mover),
                                      core_move_migrate_usec(core, pair->back));
    return core_balance_is_worth(core, pair->mover, takes_usec, from, pair->gain);
}

static Pair find_pair(const BerthCore *core, const GPtrArray *guests, const GPtrArray *others,
                      const CoreNode *from, const CoreNode *to, guint64 least)
{
    Pair best = {NULL, NULL, least - 1};
    for (guint i = 0; i < guests->len; i++) {
        for (guint k = 0; k < others->len; k++) {
            Pair pair = {g_ptr_array_index(guests, i), g_ptr_array_index(others, k), 0};
            pair.gain = core_node_load_gain_of_both(pair.mover, pair.back, from, to);
            if (pair.gain > best.gain && is_worth(core, &pair, from) &&
                fit_both_ways(core, &pair, from, to))
                best = pair;
        }
    }
    return best;
}

/* The one before has not come to its end. */
static gboolean is_exchanging(const BerthCore *core)
{
    const CoreExchange *exchange = &core->exchange;
    const CoreGuest *first =
        exchange->first_serial != 0 ? core_guest_get(core, &exchange->first) : NULL;
    return first != NULL && first->op == BERTH_OP_MIGRATING &&
           first->op_serial == exchange->first_serial;
}

static gboolean are_below_caps(const BerthCore *core, const CoreNode *from, const CoreNode *to,
                               guint n)
{
    return core_move_are_below_caps(core, from, n) && core_move_are_below_caps(core, to, n);
}

/* FIRST goes to TO, and SECOND to where that comes from. */
static void move_in_turn(BerthCore *core, CoreGuest *first, CoreGuest *second, CoreNode *to)
{
    guint32 back_to = first->node;
    core_balance_move(core, first, to);
    core->exchange =
        (CoreExchange){core_guest_id(first), core_guest_id(second), first->op_serial, back_to};
}

static void begin(BerthCore *core, const Pair *pair, CoreNode *from, CoreNode *to)
{
    gboolean has_mover_room = core_balance_has_room(core, to, pair->mover, NULL);
    gboolean has_back_room = core_balance_has_room(core, from, pair->back, NULL);
    if (has_mover_room && has_back_room && are_below_caps(core, from, to, 2)) {
        core_balance_move(core, pair->mover, to);
        core_balance_move(core, pair->back, from);
    } else if (is_exchanging(core) || !are_below_caps(core, from, to, 1)) {
        return;
    } else if (has_mover_room) {
        move_in_turn(core, pair->mover, pair->back, to);
    } else {
        move_in_turn(core, pair->back, pair->mover, from);
    }
}

gboolean core_exchange_two(BerthCore *core, const GPtrArray *guests, const GPtrArray *others,
                           CoreNode *from, CoreNode *to, guint64 least)
{
    Pair pair = find_pair(core, guests, others, from, to, least);
    if (pair.mover == NULL)
        return FALSE;
    gboolean is_mover_wanted = core_want_again(core, pair.mover, to);
    gboolean is_back_wanted = core_want_again(core, pair.back, from);
    if (is_mover_wanted && is_back_wanted)
        begin(core, &pair, from, to);
    return TRUE;
}

void core_exchange_moved(BerthCore *core, const CoreGuest *guest, guint32 serial)
{
    CoreExchange exchange = core->exchange;
    if (exchange.first_serial != serial || core_guest_get(core, &exchange.first) != guest)
        return;
    core->exchange.first_serial = 0;
    CoreGuest *second = core_guest_get(core, &exchange.second);
    CoreNode *to = core_nodes_get(&core->nodes, exchange.to);
    if (second == NULL || second->node != guest->node || second->node == to->handle ||
        !second->is_opportunistic || !core_want_may_move(core, second) || !core_node_is_open(to))
        return;
    const CoreNode *from = core_nodes_get(&core->nodes, second->node);
    if (core_node_load_gain(second, from, to) > 0 &&
        core_balance_has_room(core, to, second, NULL) && are_below_caps(core, from, to, 1))
        core_balance_move(core, second, to);
}
