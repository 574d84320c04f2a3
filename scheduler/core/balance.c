/* SPDX-License-Identifier: Apache-2.0 */
/* DECIDE, in rounds: which guest in slack leaves the busiest node for the idlest, so that the busier of
 * both is less busy. Where none can, as there is no room or it would only be the other way round, two
 * change places: one there goes where the first comes from.
 *
 * What is held for a guest that moves is held beside all that is there. So two that change places begin
 * together only if each has room beside the other; else the one that has goes first, and the other
 * follows in the event in which that has arrived, before anybody else could take its place. That nothing
 * is in the way then is looked at, and not sure: what its node needs may be more by then, and after a
 * restart nobody knows of it any more. Then one of them has moved, and the next round may move it back.
 *
 * Nobody looks farther than at two nodes a round: O(nodes + guests of one * guests of the other). */
#include "scheduler/core/balance.h"

#include "scheduler/core/class.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/job.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/predict.h"
#include "scheduler/core/slack.h"
#include "scheduler/core/want.h"

/* --- loads ---------------------------------------------------------------------------------- */

/* Of its vCPUs, in permille. */
static guint64 load_of(const CoreNode *node)
{
    return (guint64)core_predict_node(node).cpu_milli / MAX(node->capacity.vcpus, 1);
}

/* With COMES, all that it needs counted, instead of LEAVES. */
static guint64 load_after(const CoreNode *node, const CoreGuest *leaves, const CoreGuest *comes)
{
    guint64 left_milli =
        (guint64)(node->needs.cpu_milli - leaves->needs.cpu_milli) * node->coincidence >> 16;
    return (left_milli + comes->needs.cpu_milli) / MAX(node->capacity.vcpus, 1);
}

/* The idlest of those that did not refuse a move lately. */
static void find_extremes(const BerthCore *core, CoreNode **out_busiest, CoreNode **out_idlest)
{
    *out_busiest = *out_idlest = NULL;
    for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++) {
        CoreNode *node = core_nodes_get(&core->nodes, handle);
        if (!core_node_is_open(node))
            continue;
        if (node->n_in_slack > 0 && (*out_busiest == NULL || load_of(node) > load_of(*out_busiest)))
            *out_busiest = node;
        if (!core_move_was_refused(core, node) &&
            (*out_idlest == NULL || load_of(node) < load_of(*out_idlest)))
            *out_idlest = node;
    }
}

/* What the load of the busier of both nodes sinks by if GUEST moves; 0 = the move makes it worse. */
static guint64 gain_of(const CoreGuest *guest, const CoreNode *from, const CoreNode *to)
{
    guint64 busier = load_of(from);
    guint64 there = load_of(to) + guest->needs.cpu_milli / MAX(to->capacity.vcpus, 1);
    return there < busier
               ? MIN(busier - there, guest->needs.cpu_milli / MAX(from->capacity.vcpus, 1))
               : 0;
}

/* Likewise if MOVER and BACK change places. */
static guint64 gain_of_both(const CoreGuest *mover, const CoreGuest *back, const CoreNode *from,
                            const CoreNode *to)
{
    guint64 busier = load_of(from);
    guint64 after = MAX(load_after(from, mover, back), load_after(to, back, mover));
    return after < busier ? busier - after : 0;
}

/* --- guests --------------------------------------------------------------------------------- */

/* Those in the slack of FROM that may be moved to TO, ids rising. (transfer container) */
static GPtrArray *movers(const BerthCore *core, const CoreNode *from, const CoreNode *to)
{
    GPtrArray *guests = core_node_guests_sorted(from);
    for (guint i = guests->len; i > 0; i--) {
        const CoreGuest *guest = g_ptr_array_index(guests, i - 1);
        if (!guest->is_opportunistic || !core_want_may_move(core, guest) ||
            !core_class_allows(guest->task->job->class, to->handle))
            g_ptr_array_remove_index(guests, i - 1);
    }
    return guests;
}

/* Once GONE, which is there, has left; NULL = beside all. */
static gboolean has_room(const BerthCore *core, const CoreNode *to, const CoreGuest *guest,
                         const CoreGuest *gone)
{
    CoreLodger lodger = core_slack_lodger(guest);
    return core_slack_has_room_without(core, to, &lodger, gone);
}

static void move(BerthCore *core, CoreGuest *guest, CoreNode *to)
{
    guest->wanted_to = 0;
    core_move_migrate(core, guest, to, TRUE, BERTH_REASON_BALANCE);
    core_move_back_off(core, guest);
}

/* --- one ------------------------------------------------------------------------------------ */

/* The one that gains most; *OUT_GAIN: so much. NULL = none can. */
static CoreGuest *find_mover(const BerthCore *core, const GPtrArray *guests, const CoreNode *from,
                             const CoreNode *to, guint64 *out_gain)
{
    CoreGuest *best = NULL;
    *out_gain = 0;
    for (guint i = 0; i < guests->len; i++) {
        CoreGuest *guest = g_ptr_array_index(guests, i);
        guint64 gain = gain_of(guest, from, to);
        if (gain <= *out_gain || !has_room(core, to, guest, NULL))
            continue;
        *out_gain = gain;
        best = guest;
    }
    return best;
}

/* --- two ------------------------------------------------------------------------------------ */

typedef struct {
    CoreGuest *mover, *back; /* NULL = none found */
    guint64 gain;
} Pair;

static gboolean fit_both_ways(const BerthCore *core, const Pair *pair, const CoreNode *from,
                              const CoreNode *to)
{
    return has_room(core, to, pair->mover, pair->back) &&
           has_room(core, from, pair->back, pair->mover) &&
           (has_room(core, to, pair->mover, NULL) || has_room(core, from, pair->back, NULL));
}

/* The two that gain most, and no less than LEAST. */
static Pair find_pair(const BerthCore *core, const GPtrArray *guests, const CoreNode *from,
                      const CoreNode *to, guint64 least)
{
    Pair best = {NULL, NULL, MAX(least, 1) - 1};
    g_autoptr(GPtrArray) others = movers(core, to, from);
    for (guint i = 0; i < guests->len; i++) {
        for (guint k = 0; k < others->len; k++) {
            Pair pair = {g_ptr_array_index(guests, i), g_ptr_array_index(others, k), 0};
            pair.gain = gain_of_both(pair.mover, pair.back, from, to);
            if (pair.gain > best.gain && fit_both_ways(core, &pair, from, to))
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
    move(core, first, to);
    core->exchange =
        (CoreExchange){core_guest_id(first), core_guest_id(second), first->op_serial, back_to};
}

static void exchange(BerthCore *core, const Pair *pair, CoreNode *from, CoreNode *to)
{
    gboolean is_mover_wanted = core_want_again(core, pair->mover, to);
    gboolean is_back_wanted = core_want_again(core, pair->back, from);
    if (!is_mover_wanted || !is_back_wanted || is_exchanging(core) ||
        !are_below_caps(core, from, to, 1))
        return;
    gboolean has_mover_room = has_room(core, to, pair->mover, NULL);
    gboolean has_back_room = has_room(core, from, pair->back, NULL);
    if (has_mover_room && has_back_room && are_below_caps(core, from, to, 2)) {
        move(core, pair->mover, to);
        move(core, pair->back, from);
    } else if (has_mover_room) {
        move_in_turn(core, pair->mover, pair->back, to);
    } else {
        move_in_turn(core, pair->back, pair->mover, from);
    }
}

void core_balance_moved(BerthCore *core, const CoreGuest *guest, guint32 serial)
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
    if (gain_of(second, from, to) > 0 && has_room(core, to, second, NULL) &&
        are_below_caps(core, from, to, 1))
        move(core, second, to);
}

/* --- the round ------------------------------------------------------------------------------ */

void core_balance(BerthCore *core)
{
    CoreNode *from;
    CoreNode *to;
    find_extremes(core, &from, &to);
    if (!(core->config.features & BERTH_FEATURE_BALANCING) || from == NULL || to == NULL ||
        from == to ||
        load_of(from) <
            load_of(to) + (guint64)core->tunings[BERTH_TUNING_BALANCE_GAIN_MIN_PERMILLE])
        return;
    /* One that moves gains as much at best, where that is just worth it: half of the difference. */
    guint64 least = (guint64)core->tunings[BERTH_TUNING_BALANCE_GAIN_MIN_PERMILLE] / 2;
    guint64 gain;
    Pair pair = {NULL, NULL, 0};
    g_autoptr(GPtrArray) guests = movers(core, from, to);
    CoreGuest *mover = find_mover(core, guests, from, to, &gain);
    if (gain < least)
        pair = find_pair(core, guests, from, to, least);
    if (pair.mover != NULL)
        exchange(core, &pair, from, to);
    else if (mover != NULL && gain >= least && core_want_on(core, mover, to, TRUE, BERTH_REASON_BALANCE))
        core_move_back_off(core, mover);
}
