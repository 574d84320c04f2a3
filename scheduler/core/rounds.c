/* SPDX-License-Identifier: Apache-2.0 */
/* DECIDE, in rounds: moves that nobody backed waits for, so that they can be few and sure (want.c). When
 * that is looked at, for all of them; and what is promoted by a move, and fed. balance.c says who moves for
 * balance, and defragment.c who does for a job that waits for a large place.
 *
 * In a full cluster everybody in slack looks for room in vain, each on all nodes. Who needs no less than
 * one who found none is not searched for in that round, unless a node has changed since. */
#include "scheduler/core/rounds.h"

#include "scheduler/core/balance.h"
#include "scheduler/core/class.h"
#include "scheduler/core/defragment.h"
#include "scheduler/core/drain.h"
#include "scheduler/core/gather.h"
#include "scheduler/core/limit.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/plan.h"
#include "scheduler/core/predict.h"
#include "scheduler/core/relief.h"
#include "scheduler/core/search.h"
#include "scheduler/core/slack.h"
#include "scheduler/core/timers.h"
#include "scheduler/core/want.h"

typedef struct {
    BerthCore *core;
    GArray *vain;   /* CoreNeed: no node has room for it beside all that is planned */
    guint64 change; /* the nodes' next one when they were found to be */
} Round;

static void arm(BerthCore *core, guint32 wanted)
{
    if ((core->config.features & wanted) && !core_heap_has(&core->round.link))
        core_timer_set(
            core, &core->round,
            core_time_add(core->now_usec, core->tunings[BERTH_TUNING_BALANCE_INTERVAL_USEC]));
}

void core_arm_round(BerthCore *core)
{
    arm(core, BERTH_FEATURE_OPPORTUNISTIC | BERTH_FEATURE_BALANCING | BERTH_FEATURE_MIGRATION |
                  BERTH_FEATURE_GROWTH);
}

void core_arm_round_for_drain(BerthCore *core)
{
    arm(core, BERTH_FEATURE_OPPORTUNISTIC | BERTH_FEATURE_BALANCING | BERTH_FEATURE_MIGRATION |
                  BERTH_FEATURE_CHECKPOINT);
}

/* --- promotion ------------------------------------------------------------------------------ */

static gboolean needs_no_less(const CoreNeed *need, const CoreNeed *other)
{
    return core_size_fits(other->size, need->size) && need->length_usec >= other->length_usec &&
           need->may_move <= other->may_move;
}

static gboolean is_in_vain(Round *round, const CoreNeed *need)
{
    guint64 change = core_nodes_next_change(&round->core->nodes);
    if (change != round->change)
        g_array_set_size(round->vain, 0);
    round->change = change;
    for (guint i = 0; i < round->vain->len; i++)
        if (needs_no_less(need, &g_array_index(round->vain, CoreNeed, i)))
            return TRUE;
    return FALSE;
}

/* NEED is, wherever it may be. */
static void note_vain(Round *round, const CoreNeed *need)
{
    for (guint i = round->vain->len; i > 0; i--)
        if (needs_no_less(&g_array_index(round->vain, CoreNeed, i - 1), need))
            g_array_remove_index_fast(round->vain, i - 1);
    g_array_append_val(round->vain, *need);
}

/* What is looked for to back GUEST: see core_limit_find_backing(). */
static CoreNeed need_of(const BerthCore *core, const CoreGuest *guest)
{
    gint64 left_usec = MAX(guest->task->planned_end_usec - core->now_usec, 1);
    CoreNeed need = core_search_need(core, guest->task->job->class, left_usec, CORE_HEEDS_ALL);
    if (core_limit_is_of_another_size(guest))
        need.size = guest->size;
    return need;
}

static void promote_by_move(Round *round, CoreGuest *guest)
{
    BerthCore *core = round->core;
    CoreNeed need = need_of(core, guest);
    if (!guest->is_opportunistic || !core_want_may_move(core, guest) || is_in_vain(round, &need) ||
        core_limit_find_backing(core, guest, CORE_HEEDS_FIRM) == NULL)
        return;
    core_gather(core);
    CoreNode *to = core_limit_find_backing(core, guest, CORE_HEEDS_ALL);
    if (to != NULL && to->handle != guest->node)
        core_want_on(core, guest, to, FALSE, BERTH_REASON_PROMOTION);
    /* For one of another size only other nodes were looked at. */
    if (to == NULL && guest->task->job->class->shape.n_nodes == 0 &&
        !core_limit_is_of_another_size(guest))
        note_vain(round, &need);
}

/* --- starvation ----------------------------------------------------------------------------- */

/* Nobody plans for who runs. Later jobs would get all room that comes free, and it none. */
static void let_wait(BerthCore *core, CoreGuest *guest)
{
    gint64 due_usec =
        core_time_add(guest->starved_usec, core->tunings[BERTH_TUNING_STARVED_MAX_USEC]);
    if (guest->starved_usec == 0 || due_usec > core->now_usec ||
        !core_move_may_checkpoint(core, guest) || guest->save_rest_usec > core->now_usec ||
        guest->cooldown_usec > core->now_usec ||
        guest->task->planned_end_usec - core->now_usec <
            core->tunings[BERTH_TUNING_NEAR_END_USEC] ||
        !core_move_is_below_caps(core, core_nodes_get(&core->nodes, guest->node)) ||
        !core_slack_comes_first(core, guest))
        return;
    core_move_checkpoint(core, guest, TRUE, BERTH_REASON_STARVED);
}

static gboolean is_starved(const BerthCore *core, const CoreGuest *guest)
{
    return guest->is_opportunistic && !guest->is_frozen &&
           guest->starved_permille >= core->tunings[BERTH_TUNING_STARVED_PERMILLE];
}

/* One in slack that hardly gets any CPU goes to where all that it reserved is free: what it would
 * use there is not known. */
static void feed(BerthCore *core, CoreGuest *guest)
{
    if (!is_starved(core, guest) || !core_want_may_move(core, guest))
        return;
    CoreLodger lodger = core_slack_lodger(guest);
    lodger.needs.cpu_milli = guest->size.vcpus * 1000;
    CoreNode *to = core_slack_find(core, &lodger, guest->node);
    /* What one that is on its way will use there is not known either. */
    if (to != NULL && to->incoming->len == 0 &&
        core_want_on(core, guest, to, TRUE, BERTH_REASON_STARVED))
        core_move_back_off(core, guest);
}

/* --- the round ------------------------------------------------------------------------------ */

/* Nothing but moves could make this FALSE of one guest and TRUE of the next: where it is FALSE of all, none is. */
static gboolean may_promote_by_move(Round *round, const CoreGuest *guest)
{
    BerthCore *core = round->core;
    if (!guest->is_opportunistic || !core_want_may_move(core, guest) ||
        (!core_limit_is_of_another_size(guest) &&
         !core_search_may_fit_now(core, guest->task->job->class)))
        return FALSE;
    CoreNeed need = need_of(core, guest);
    return !is_in_vain(round, &need);
}

static gboolean is_anything_to_do(Round *round, const CoreNode *node)
{
    const BerthCore *core = round->core;
    gboolean promotes = (core->config.features & BERTH_FEATURE_PROMOTION) != 0;
    for (guint i = 0; i < node->guests->len; i++) {
        const CoreGuest *guest = g_ptr_array_index(node->guests, i);
        if (is_starved(core, guest) || (promotes && may_promote_by_move(round, guest)))
            return TRUE;
    }
    return FALSE;
}

/* When room became free here a guest may still have booted, or something else was being done to it. */
static void look_at_slack(Round *round, CoreNode *node)
{
    BerthCore *core = round->core;
    core_slack_promote_on(core, node);
    if (!is_anything_to_do(round, node))
        return;
    g_autoptr(GPtrArray) guests = core_node_guests_sorted(node);
    if (core->config.features & BERTH_FEATURE_PROMOTION)
        for (guint i = 0; i < guests->len; i++)
            promote_by_move(round, g_ptr_array_index(guests, i));
    for (guint i = 0; i < guests->len; i++) {
        CoreGuest *guest = g_ptr_array_index(guests, i);
        feed(core, guest);
        if (is_starved(core, guest))
            let_wait(core, guest);
    }
}

/* Nobody can be asked to leave a node that is away: what was begun there would hold room elsewhere until
 * it comes back. TRUE: there are guests. */
static gboolean look_at(Round *round, CoreNode *node)
{
    BerthCore *core = round->core;
    if (node->state != BERTH_NODE_UP)
        return node->guests->len > 0;
    core_drain_move_some(core, node);
    core_relief_check(core, node);
    core_relief_room_changed(core, node);
    core_limit_grow_on(core, node);
    if (node->slack.memory_mib > 0)
        look_at_slack(round, node);
    return node->guests->len > 0;
}

void core_round(BerthCore *core)
{
    gboolean any = FALSE, any_drains = FALSE;
    g_autoptr(GArray) vain = g_array_new(FALSE, FALSE, sizeof(CoreNeed));
    Round round = {.core = core, .vain = vain};
    core->rounds++;
    for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++) {
        CoreNode *node = core_nodes_get(&core->nodes, handle);
        gboolean has_guests = look_at(&round, node);
        any |= has_guests;
        any_drains |= has_guests && core_drain_is_under_way(core, node);
    }
    core_balance(core);
    core_defragment(core);
    core->pass_wanted = core->slack_wanted = TRUE;
    if (any)
        core_arm_round(core);
    if (any_drains)
        core_arm_round_for_drain(core);
}
