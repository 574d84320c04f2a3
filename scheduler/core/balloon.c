/* SPDX-License-Identifier: Apache-2.0 */
/* DECIDE, balloons: which guests in slack give memory back to a host that lacks it, how much, and when
 * they get it back. Page cache is not demand, and predictions leave it out; but it occupies the host
 * until its guest drops it, which costs less than any move.
 *
 * Invariants: only guests in slack are asked. One keeps what it is predicted to need, a spare share
 * of it, and twice what is available to a guest near its limit; and as much as its host leaves any guest. One that may need more than it was
 * left, or is backed from now on, gets all of it back, whatever its node lacks: that is for moves to
 * relieve. It is asked again only after a pause that doubles each time, so that a balloon follows no
 * guest up and down. */
#include "scheduler/core/balloon.h"

#include "scheduler/core/effects.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/predict.h"
#include "scheduler/core/relief.h"
#include "scheduler/core/task.h"
#include "scheduler/core/timers.h"

static guint64 part(guint64 whole, const BerthCore *core, BerthCoreTuning permille)
{
    return whole * (guint64)core->tunings[permille] / 1000;
}

static guint64 total_mib(const CoreGuest *guest)
{
    return core_guest_resources(guest).memory_mib;
}

/* Without the host's overhead. */
static guint64 predicted_mib(const BerthCore *core, const CoreGuest *guest)
{
    return guest->needs.memory_mib - MIN(guest->needs.memory_mib, core->config.guest_overhead_mib);
}

/* Host memory that it occupies; never more than its balloon leaves it. */
static guint64 occupied_mib(const CoreGuest *guest)
{
    return MIN(guest->touched_mib, total_mib(guest) - guest->balloon_mib);
}

static guint64 keeps_mib(const BerthCore *core, const CoreGuest *guest)
{
    guint64 needed = predicted_mib(core, guest);
    guint64 least = guest->task->job->class->shape.memory_mib / BERTH_MEMORY_LEFT_MIN_PART;
    guint64 used =
        guest->used.memory_mib - MIN(guest->used.memory_mib, core->config.guest_overhead_mib);
    guint64 keeps =
        MAX(needed + part(needed, core, BERTH_TUNING_BALLOON_SPARE_PERMILLE),
            used + 2 * part(total_mib(guest), core, BERTH_TUNING_LIMIT_AVAILABLE_PERMILLE));
    return MAX(keeps, least);
}

/* So much a balloon takes in the time that it has: a backed start may wait for it, and one that is done when
 * its guest ends has relieved nothing. */
static guint64 most_mib(const BerthCore *core, const CoreGuest *guest)
{
    gint64 left_usec =
        guest->task->planned_end_usec - core->now_usec - core->tunings[BERTH_TUNING_NEAR_END_USEC];
    gint64 most_usec = MIN(left_usec, core->tunings[BERTH_TUNING_EVACUATION_MAX_USEC]);
    return (guint64)(MAX(most_usec, 0) / 1000 * core->tunings[BERTH_TUNING_BALLOON_MIB_PER_SEC] /
                     1000);
}

/* What GUEST can give back; 0 = nothing, or it is not worth it. One that was not measured has not
 * told what it occupies. A balloon takes what is free in its guest, and was never touched, before any cache
 * is dropped for it: that takes as long, and relieves nothing. */
static guint64 gives_mib(const BerthCore *core, const CoreGuest *guest)
{
    guint64 has = occupied_mib(guest);
    guint64 keeps = keeps_mib(core, guest);
    if (!guest->is_opportunistic || !core_move_is_at_rest(guest) || guest->is_frozen ||
        core->now_usec < guest->balloon_rest_usec || has <= keeps)
        return 0;
    guint64 free_mib = total_mib(guest) - guest->balloon_mib - has;
    guint64 most = most_mib(core, guest);
    guint64 gives = MIN(has - keeps, most - MIN(most, free_mib));
    return gives >= (guint64)core->tunings[BERTH_TUNING_BALLOON_MIN_MIB] ? gives : 0;
}

/* The one that can give most; of equals the youngest. */
static CoreGuest *best_on(const BerthCore *core, const CoreNode *node)
{
    CoreGuest *best = NULL;
    guint64 most = 0;
    for (guint i = 0; i < node->guests->len; i++) {
        CoreGuest *guest = g_ptr_array_index(node->guests, i);
        guint64 gives = gives_mib(core, guest);
        if (gives > most || (gives == most && gives > 0 && core_guest_is_younger(guest, best))) {
            best = guest;
            most = gives;
        }
    }
    return best;
}

guint64 core_balloon_under_way_mib(const CoreNode *node)
{
    guint64 sum = 0;
    for (guint i = 0; i < node->guests->len; i++) {
        const CoreGuest *guest = g_ptr_array_index(node->guests, i);
        if (guest->op != BERTH_OP_RESIZING || guest->to_balloon_mib <= guest->balloon_mib)
            continue;
        guint64 left = total_mib(guest) - guest->to_balloon_mib;
        sum += occupied_mib(guest) - MIN(occupied_mib(guest), left);
    }
    return sum;
}

gboolean core_balloon_relieve(BerthCore *core, CoreNode *node, guint64 wanted_mib)
{
    guint64 least = (guint64)core->tunings[BERTH_TUNING_BALLOON_MIN_MIB];
    CoreGuest *guest;
    if (wanted_mib == 0 || !(core->config.features & BERTH_FEATURE_BALLOON) ||
        node->slack.memory_mib == 0)
        return wanted_mib == 0;
    guint64 got = core_balloon_under_way_mib(node);
    while (got < wanted_mib && (guest = best_on(core, node)) != NULL) {
        guint64 gives = MIN(gives_mib(core, guest), MAX(wanted_mib - got, least));
        guint64 left = occupied_mib(guest) - gives;
        core_move_balloon(core, guest, total_mib(guest) - left, BERTH_REASON_PRESSURE);
        got += gives;
    }
    return got >= wanted_mib;
}

/* --- giving back ---------------------------------------------------------------------------- */

static gboolean may_give_back(const CoreGuest *guest)
{
    return guest->balloon_mib > 0 && core_move_is_at_rest(guest) && !guest->is_frozen;
}

void core_balloon_relax(BerthCore *core, CoreNode *node)
{
    guint64 well = core_relief_well_mib(core, node);
    guint64 left = node->available_mib > 0 ? node->available_mib : G_MAXUINT64;
    gboolean any = FALSE;
    if (core->now_usec < node->pressed_until_usec)
        return;
    left = MIN(left, node->capacity.memory_mib -
                         MIN(node->capacity.memory_mib, core_relief_taken_mib(node)));
    for (guint i = 0; i < node->guests->len; i++) {
        const CoreGuest *guest = g_ptr_array_index(node->guests, i);
        any |= guest->balloon_mib > 0;
        if (guest->op == BERTH_OP_RESIZING && guest->to_balloon_mib < guest->balloon_mib)
            left -= MIN(left, guest->balloon_mib - guest->to_balloon_mib);
    }
    if (!any)
        return;
    g_autoptr(GPtrArray) guests = core_node_guests_sorted(node);
    for (guint i = 0; i < guests->len; i++) {
        CoreGuest *guest = g_ptr_array_index(guests, i);
        if (!may_give_back(guest) || core->now_usec < guest->relax_rest_usec ||
            left < well + guest->balloon_mib)
            continue;
        left -= guest->balloon_mib;
        core_move_balloon(core, guest, 0, BERTH_REASON_BELOW_LIMIT);
    }
}

/* It may need what is kept from it, or it was promised. Of one that settles anew after a restart nothing
 * is known, but that it did not need that before. */
static gboolean wants_back(const BerthCore *core, const CoreGuest *guest)
{
    return !guest->is_opportunistic || !(core->config.features & BERTH_FEATURE_BALLOON) ||
           (!core_predict_settles_anew(core, guest) &&
            predicted_mib(core, guest) > total_mib(guest) - guest->balloon_mib);
}

gboolean core_balloon_check(BerthCore *core, CoreGuest *guest, gboolean is_near_limit)
{
    gboolean may = guest->balloon_mib > 0 && core_move_is_free(guest) && !guest->is_frozen;
    if (may && (wants_back(core, guest) || is_near_limit)) {
        core_move_let_go(core, guest);
        core_move_balloon(core, guest, 0, BERTH_REASON_AT_LIMIT);
    }
    return guest->balloon_mib > 0;
}

void core_balloon_settled(BerthCore *core, CoreGuest *guest)
{
    if (may_give_back(guest) && wants_back(core, guest))
        core_move_balloon(core, guest, 0, BERTH_REASON_AT_LIMIT);
}
