/* SPDX-License-Identifier: Apache-2.0 */
/* DECIDE, in rounds: moves that nobody backed waits for, so that they can be few and sure. A guest moves
 * only if two rounds in a row want it on the same node (as Linux's NUMA balancing wants two faults
 * from one node), within the caps of moves under way, and not in its cooldown; each move for balance
 * doubles that. */
#include "scheduler/core/rounds.h"

#include "scheduler/core/class.h"
#include "scheduler/core/drain.h"
#include "scheduler/core/gather.h"
#include "scheduler/core/maintenance.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/plan.h"
#include "scheduler/core/predict.h"
#include "scheduler/core/relief.h"
#include "scheduler/core/search.h"
#include "scheduler/core/slack.h"
#include "scheduler/core/timers.h"

void core_arm_round(BerthCore *core)
{
    guint32 wanted =
        BERTH_FEATURE_OPPORTUNISTIC | BERTH_FEATURE_BALANCING | BERTH_FEATURE_MIGRATION;
    if ((core->config.features & wanted) && !core_heap_has(&core->round.link))
        core_timer_set(
            core, &core->round,
            core_time_add(core->now_usec, core->tunings[BERTH_TUNING_BALANCE_INTERVAL_USEC]));
}

static gboolean is_movable_now(const BerthCore *core, const CoreGuest *guest)
{
    gint64 left_usec = guest->task->planned_end_usec - core->now_usec;
    return core_move_may_migrate(core, guest) && guest->cooldown_usec <= core->now_usec &&
           left_usec >= core->tunings[BERTH_TUNING_NEAR_END_USEC] &&
           left_usec / 2 >= core_move_migrate_usec(core, guest);
}

/* The second round in a row that wants GUEST on TO moves it there. TRUE: it has. */
static gboolean want_on(BerthCore *core, CoreGuest *guest, CoreNode *to, gboolean is_opportunistic,
                        BerthReason reason)
{
    const CoreNode *from = core_nodes_get(&core->nodes, guest->node);
    gboolean again = guest->wanted_to == to->handle && guest->wanted_round + 1 == core->rounds;
    if (guest->wanted_round == core->rounds)
        return FALSE; /* something better was wanted in this one */
    guest->wanted_round = core->rounds;
    guest->wanted_to = to->handle;
    if (!again || !core_move_is_below_caps(core, from) || !core_move_is_below_caps(core, to))
        return FALSE;
    guest->wanted_to = 0;
    core_move_migrate(core, guest, to, is_opportunistic, reason);
    return TRUE;
}

/* --- promotion ------------------------------------------------------------------------------ */

static void promote_by_move(BerthCore *core, CoreGuest *guest)
{
    const CoreClass *class = guest->task->job->class;
    guint32 handle = 0;
    gint64 left_usec = MAX(guest->task->planned_end_usec - core->now_usec, 1);
    if (!guest->is_opportunistic || !is_movable_now(core, guest))
        return;
    if (!core_search_now(core, class, left_usec, CORE_HEEDS_FIRM, 0, &handle))
        return;
    core_gather(core);
    if (core_search_now(core, class, left_usec, CORE_HEEDS_ALL, 0, &handle) &&
        handle != guest->node)
        want_on(core, guest, core_nodes_get(&core->nodes, handle), FALSE, BERTH_REASON_PROMOTION);
}

/* --- starvation ----------------------------------------------------------------------------- */

/* One in slack that hardly gets any CPU goes to where all that it reserved is free: what it would
 * use there is not known. */
static void feed(BerthCore *core, CoreGuest *guest)
{
    if (!guest->is_opportunistic || guest->is_frozen ||
        guest->starved_permille < core->tunings[BERTH_TUNING_STARVED_PERMILLE] ||
        !is_movable_now(core, guest))
        return;
    CoreLodger lodger = core_slack_lodger(guest);
    lodger.needs.cpu_milli = guest->size.vcpus * 1000;
    CoreNode *to = core_slack_find(core, &lodger, guest->node);
    /* What one that is on its way will use there is not known either. */
    if (to != NULL && to->incoming->len == 0 &&
        want_on(core, guest, to, TRUE, BERTH_REASON_PRESSURE))
        core_move_back_off(core, guest);
}

/* --- balancing ------------------------------------------------------------------------------ */

/* Of its vCPUs, in permille. */
static guint64 load_of(const CoreNode *node)
{
    return (guint64)core_predict_node(node).cpu_milli / MAX(node->capacity.vcpus, 1);
}

static void find_extremes(const BerthCore *core, CoreNode **out_busiest, CoreNode **out_idlest)
{
    *out_busiest = *out_idlest = NULL;
    for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++) {
        CoreNode *node = core_nodes_get(&core->nodes, handle);
        if (!core_node_is_open(node))
            continue;
        if (*out_busiest == NULL || load_of(node) > load_of(*out_busiest))
            *out_busiest = node;
        if (*out_idlest == NULL || load_of(node) < load_of(*out_idlest))
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

static void balance(BerthCore *core)
{
    CoreNode *from;
    CoreNode *to;
    CoreGuest *best = NULL;
    find_extremes(core, &from, &to);
    if (!(core->config.features & BERTH_FEATURE_BALANCING) || from == NULL || from == to ||
        load_of(from) - load_of(to) <
            (guint64)core->tunings[BERTH_TUNING_BALANCE_GAIN_MIN_PERMILLE])
        return;
    g_autoptr(GPtrArray) guests = core_node_guests_sorted(from);
    for (guint i = 0; i < guests->len; i++) {
        CoreGuest *guest = g_ptr_array_index(guests, i);
        if (guest->is_opportunistic && is_movable_now(core, guest) &&
            core_class_allows(guest->task->job->class, to->handle) &&
            gain_of(guest, from, to) > (best != NULL ? gain_of(best, from, to) : 0))
            best = guest;
    }
    if (best == NULL)
        return;
    CoreLodger lodger = core_slack_lodger(best);
    if (core_slack_has_room(core, to, &lodger) &&
        want_on(core, best, to, TRUE, BERTH_REASON_BALANCE))
        core_move_back_off(core, best);
}

/* --- the round ------------------------------------------------------------------------------ */

static void look_at_slack(BerthCore *core, const CoreNode *node)
{
    g_autoptr(GPtrArray) guests = core_node_guests_sorted(node);
    if (core->config.features & BERTH_FEATURE_PROMOTION)
        for (guint i = 0; i < guests->len; i++)
            promote_by_move(core, g_ptr_array_index(guests, i));
    for (guint i = 0; i < guests->len; i++)
        feed(core, g_ptr_array_index(guests, i));
}

static gboolean look_at(BerthCore *core, CoreNode *node)
{
    if (node->admission == BERTH_ADMISSION_DRAINING || core_maintenance_is_now(core, node))
        core_drain_move_some(core, node);
    core_relief_check(core, node);
    core_relief_room_changed(core, node);
    if (node->slack.memory_mib > 0)
        look_at_slack(core, node);
    return node->guests->len > 0;
}

void core_round(BerthCore *core)
{
    gboolean any = FALSE;
    core->rounds++;
    for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++)
        any |= look_at(core, core_nodes_get(&core->nodes, handle));
    balance(core);
    core->pass_wanted = core->slack_wanted = TRUE;
    if (any)
        core_arm_round(core);
}
