/* SPDX-License-Identifier: Apache-2.0 */
/* DECIDE, in rounds: which guests in slack leave busy nodes for idle ones, so that the busier of two nodes is
 * less busy. Where none can, as there is no room or it would only be the other way round, two change
 * places (exchange.c).
 *
 * A move is wanted by two rounds in a row (want.c), and in a large cluster the idlest node of one round is not
 * that of the next. So a round first looks again between which nodes the one before wanted moves, and then
 * at the busiest nodes, each with the idlest that are left. Each node is in one such pair a round. There are as
 * many pairs as let each node have its turn within an hour, and so many are tried for each, which bounds a round:
 * O(nodes log nodes + pairs * guests of one * guests of the other). */
#include "scheduler/core/balance.h"

#include "scheduler/core/class.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/exchange.h"
#include "scheduler/core/job.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/node_load.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/slack.h"
#include "scheduler/core/want.h"

/* With rounds of a minute, two of which want the same, in an hour. */
#define NODES_PER_PAIR 30
/* With so many idle nodes is a busy one tried: the idlest may be too small for who could leave. */
#define PLACES_MAX 2
/* In all, for each pair. More of them find moves that are of less use: on mason at load 2.5 8 with 4 places made a quarter more,
 * and 1 % less work was done (bench/policies; doc/policy.md). */
#define TRIES_PER_PAIR 2
/* That a migration costs while it lasts: a thread at either end, which copies. */
#define MIGRATION_CPU_MILLI 2000

typedef struct {
    guint64 load; /* permille */
    CoreNode *node;
} Loaded;

typedef struct {
    BerthCore *core;
    guint64 apart_min; /* permille: so far are two nodes apart that are balanced */
    guint n_left;      /* pairs that may still be wanted */
    guint n_tries;
    GArray *by_load;  /* Loaded, falling; of the open nodes */
    guint8 *is_taken; /* by handle: it is in a pair */
    GArray *wanted;   /* CoreNodePair, in which somebody is to move, or does; for the next round */
} Round;

/* --- guests --------------------------------------------------------------------------------- */

gboolean core_balance_has_room(const BerthCore *core, const CoreNode *to, const CoreGuest *guest,
                               const CoreGuest *gone)
{
    CoreLodger lodger = core_slack_lodger(guest);
    return core_slack_has_room_without(core, to, &lodger, gone);
}

/* Nobody knows for how long nodes stay as busy as they are; that the guest is not moved again is sure until its
 * cooldown ends. */
gboolean core_balance_is_worth(const BerthCore *core, const CoreGuest *guest, gint64 takes_usec,
                               const CoreNode *from, guint64 gain)
{
    gint64 stays_usec = MIN(guest->task->planned_end_usec - core->now_usec,
                            MAX(core_move_back_off_usec(core, guest),
                                core->tunings[BERTH_TUNING_BALANCE_INTERVAL_USEC]));
    gint64 gain_milli = (gint64)(gain * from->capacity.vcpus);
    return core_want_is_worth(core, takes_usec,
                              MIN(stays_usec, G_MAXINT64 / MAX(gain_milli, 1)) * gain_milli /
                                  MIGRATION_CPU_MILLI);
}

void core_balance_move(BerthCore *core, CoreGuest *guest, CoreNode *to)
{
    guest->wanted_to = 0;
    core_move_migrate(core, guest, to, TRUE, BERTH_REASON_BALANCE);
    core_move_back_off(core, guest);
}

/* Something else is wanted of it in this round, which stands. */
static gboolean is_wanted_already(const BerthCore *core, const CoreGuest *guest)
{
    return guest->wanted_round == core->rounds;
}

/* Those in the slack of FROM that may be moved to TO, ids rising. (transfer container) */
static GPtrArray *movers(const BerthCore *core, const CoreNode *from, const CoreNode *to)
{
    GPtrArray *guests = core_node_guests_sorted(from);
    for (guint i = guests->len; i > 0; i--) {
        const CoreGuest *guest = g_ptr_array_index(guests, i - 1);
        if (!guest->is_opportunistic || is_wanted_already(core, guest) ||
            !core_want_may_move(core, guest) ||
            !core_class_allows(guest->task->job->class, to->handle))
            g_ptr_array_remove_index(guests, i - 1);
    }
    return guests;
}

/* The one that gains most, and LEAST at least; NULL = none can. */
static CoreGuest *find_mover(const BerthCore *core, const GPtrArray *guests, const CoreNode *from,
                             const CoreNode *to, guint64 least)
{
    CoreGuest *best = NULL;
    for (guint i = 0; i < guests->len; i++) {
        CoreGuest *guest = g_ptr_array_index(guests, i);
        guint64 gain = core_node_load_gain(guest, from, to);
        if (gain < least ||
            !core_balance_is_worth(core, guest, core_move_migrate_usec(core, guest), from, gain) ||
            !core_balance_has_room(core, to, guest, NULL))
            continue;
        least = gain + 1;
        best = guest;
    }
    return best;
}

/* --- two nodes ------------------------------------------------------------------------------ */

/* TRUE: somebody is wanted at the other of both, or has begun to move there. */
static gboolean want_between(Round *round, CoreNode *from, CoreNode *to)
{
    BerthCore *core = round->core;
    /* What one that moves gains at best, where the two are just so far apart. */
    guint64 least = MAX(round->apart_min / 2, 1);
    g_autoptr(GPtrArray) guests = movers(core, from, to);
    CoreGuest *mover = find_mover(core, guests, from, to, least);
    if (mover != NULL) {
        if (core_want_on(core, mover, to, TRUE, BERTH_REASON_BALANCE))
            core_move_back_off(core, mover);
        return TRUE;
    }
    if (guests->len == 0)
        return FALSE;
    g_autoptr(GPtrArray) others = movers(core, to, from);
    return core_exchange_two(core, guests, others, from, to, least);
}

static gboolean are_apart(const Round *round, guint64 busy, guint64 idle)
{
    return busy >= idle + round->apart_min;
}

/* Those that refused a move lately come later. */
static gboolean may_take(const Round *round, const CoreNode *node)
{
    return core_node_is_open(node) && !round->is_taken[node->handle] &&
           !core_move_was_refused(round->core, node);
}

static gboolean try_pair(Round *round, CoreNode *from, CoreNode *to)
{
    if (!want_between(round, from, to))
        return FALSE;
    CoreNodePair pair = {from->handle, to->handle};
    g_array_append_val(round->wanted, pair);
    round->is_taken[from->handle] = round->is_taken[to->handle] = TRUE;
    round->n_left--;
    return TRUE;
}

/* --- the round ------------------------------------------------------------------------------ */

/* Of those that are as idle, the one of the lowest handle comes last. */
static gint compare_loads(gconstpointer a, gconstpointer b)
{
    const Loaded *x = a, *y = b;
    if (x->load != y->load)
        return x->load > y->load ? -1 : 1;
    return x->node->handle > y->node->handle ? -1 : 1;
}

static GArray *sort_by_load(const BerthCore *core)
{
    GArray *by_load = g_array_sized_new(FALSE, FALSE, sizeof(Loaded), core->nodes.nodes->len);
    for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++) {
        CoreNode *node = core_nodes_get(&core->nodes, handle);
        Loaded loaded = {core_node_load(node), node};
        if (core_node_is_open(node))
            g_array_append_val(by_load, loaded);
    }
    g_array_sort(by_load, compare_loads);
    return by_load;
}

static void try_again(Round *round, const GArray *before)
{
    for (guint i = 0; i < before->len && round->n_left > 0; i++) {
        const CoreNodePair *pair = &g_array_index(before, CoreNodePair, i);
        CoreNode *from = core_nodes_get(&round->core->nodes, pair->from);
        CoreNode *to = core_nodes_get(&round->core->nodes, pair->to);
        if (core_node_is_open(from) && !round->is_taken[from->handle] && may_take(round, to) &&
            are_apart(round, core_node_load(from), core_node_load(to)))
            try_pair(round, from, to);
    }
}

/* FALSE: no idle node is left that is idle enough for BUSY. */
static gboolean relieve(Round *round, const Loaded *busy)
{
    guint n_places = 0;
    for (guint i = round->by_load->len; i > 0 && n_places < PLACES_MAX && round->n_tries > 0; i--) {
        const Loaded *idle = &g_array_index(round->by_load, Loaded, i - 1);
        if (!are_apart(round, busy->load, idle->load))
            return n_places > 0;
        if (!may_take(round, idle->node))
            continue;
        n_places++;
        round->n_tries--;
        if (try_pair(round, busy->node, idle->node))
            return TRUE;
    }
    return n_places > 0;
}

void core_balance(BerthCore *core)
{
    if (!(core->config.features & BERTH_FEATURE_BALANCING))
        return;
    guint n_pairs = 1 + core->nodes.nodes->len / NODES_PER_PAIR;
    g_autoptr(GArray) before = core->balanced;
    g_autoptr(GArray) by_load = sort_by_load(core);
    g_autofree guint8 *is_taken = g_new0(guint8, core->nodes.nodes->len + 1);
    core->balanced = g_array_new(FALSE, FALSE, sizeof(CoreNodePair));
    Round round = {core,          (guint64)core->tunings[BERTH_TUNING_BALANCE_GAIN_MIN_PERMILLE],
                   n_pairs,       n_pairs * TRIES_PER_PAIR,
                   by_load,       is_taken,
                   core->balanced};
    try_again(&round, before);
    for (guint i = 0; i < by_load->len && round.n_left > 0 && round.n_tries > 0; i++) {
        const Loaded *busy = &g_array_index(by_load, Loaded, i);
        if (busy->node->n_in_slack > 0 && !is_taken[busy->node->handle] && !relieve(&round, busy))
            break;
    }
}
