/* SPDX-License-Identifier: Apache-2.0 */
/* DECIDE, relief: what guests in slack do for a node whose memory is needed. Where the host itself lacks
 * it, they first give back what they occupy and do not need (balloon.c). What that does not relieve,
 * and what they are predicted to need, is relieved by those who leave: moved to where there is room, else
 * checkpointed. Nothing is killed; a guest that has not begun to run is simply started again elsewhere.
 * CPU needs no relief: weights let backed guests go first. A guest in slack that gets hardly any is moved in
 * rounds (rounds.c), where there is a better place; it is not written out for that, since waiting it would
 * get none at all at once. */
#include "scheduler/core/relief.h"

#include "scheduler/core/balloon.h"
#include "scheduler/core/class.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/freeze.h"
#include "scheduler/core/lead.h"
#include "scheduler/core/maintenance.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/predict.h"
#include "scheduler/core/room.h"
#include "scheduler/core/slack.h"
#include "scheduler/core/task.h"
#include "scheduler/core/timers.h"

static guint64 copy_mib(const CoreGuest *guest)
{
    return MAX(guest->touched_mib > 0 ? guest->touched_mib : core_guest_resources(guest).memory_mib,
               1);
}

static gboolean is_leaving(const CoreGuest *guest)
{
    return guest->leaves_usec != 0 || guest->phase > BERTH_GUEST_RUNNING;
}

/* That it is not known to run does not mean that its command has not begun. */
static gboolean may_start_again(const CoreGuest *guest)
{
    const CoreTask *task = guest->task;
    return guest->phase == BERTH_GUEST_STARTING && task->record.stop_reason == BERTH_REASON_NONE &&
           !(task->job->no_requeue && task->record.start_taken);
}

/* What has failed is not tried again at once: where it fails fast it would be tried for ever. The other one is. */
static gboolean may_move_away(const BerthCore *core, const CoreGuest *guest)
{
    return core_move_could_migrate(core, guest) && core_move_is_free(guest) &&
           guest->move_rest_usec <= core->now_usec;
}

static gboolean may_be_saved(const BerthCore *core, const CoreGuest *guest)
{
    return core_move_could_checkpoint(core, guest) && core_move_is_free(guest) &&
           guest->save_rest_usec <= core->now_usec;
}

static gboolean can_leave(const BerthCore *core, const CoreGuest *guest)
{
    return guest->stuck_event != core->event &&
           (may_start_again(guest) || may_move_away(core, guest) || may_be_saved(core, guest));
}

/* Most relief per MiB to copy; who has not begun to run costs nothing. Then the younger job. */
static gboolean is_better_victim(const CoreGuest *a, const CoreGuest *b)
{
    gboolean starts_a = a->phase == BERTH_GUEST_STARTING;
    gboolean starts_b = b->phase == BERTH_GUEST_STARTING;
    if (starts_a != starts_b)
        return starts_a;
    guint64 worth_a = core_predict_taken_mib(a) * copy_mib(b);
    guint64 worth_b = core_predict_taken_mib(b) * copy_mib(a);
    if (worth_a != worth_b)
        return worth_a > worth_b;
    return core_guest_is_younger(a, b);
}

static gboolean is_exempt(const BerthCore *core, const CoreGuest *guest)
{
    return guest->cooldown_usec > core->now_usec || guest->task->planned_end_usec - core->now_usec <
                                                        core->tunings[BERTH_TUNING_NEAR_END_USEC];
}

/* Those in cooldown or about to end only if there is nobody else. */
static CoreGuest *victim_on(const BerthCore *core, const CoreNode *node)
{
    CoreGuest *best = NULL;
    for (guint i = 0; i < node->guests->len; i++) {
        CoreGuest *guest = g_ptr_array_index(node->guests, i);
        if (!guest->is_opportunistic || is_leaving(guest) || !can_leave(core, guest))
            continue;
        gboolean exempt = is_exempt(core, guest);
        gboolean best_exempt = best != NULL && is_exempt(core, best);
        if (best == NULL || (best_exempt && !exempt) ||
            (best_exempt == exempt && is_better_victim(guest, best)))
            best = guest;
    }
    return best;
}

/* --- leaving -------------------------------------------------------------------------------- */

/* What a backed start waits for is not held up by what goes on elsewhere, and no more is memory that
 * backed guests are about to lack: the cap of the cluster is for moves that can wait. Page cache is no
 * demand, but counts here as need does: who grows meanwhile gets no memory that others fill with it. */
static gboolean is_urgent(const CoreNode *node, guint64 ahead_mib)
{
    return core_relief_taken_mib(node) + ahead_mib > node->capacity.memory_mib;
}

/* At either end. What only waits for room takes no turn from those who make it. */
static gboolean may_begin(const BerthCore *core, const CoreNode *node, gboolean urgent)
{
    return urgent ? node->n_moves < core->tunings[BERTH_TUNING_MOVES_PER_NODE]
                  : core_move_has_turn_at(core, node);
}

typedef enum {
    LEAVES,
    CANNOT, /* for now */
    WAITS,  /* as many as may leave at a time */
} Eviction;

static Eviction evict(BerthCore *core, CoreGuest *guest, BerthReason reason, gboolean urgent)
{
    CoreNode *node = core_nodes_get(&core->nodes, guest->node);
    if (guest->phase == BERTH_GUEST_STARTING) {
        core_task_handle(core, guest->task, CORE_TASK_EVICT, NULL);
        return LEAVES;
    }
    CoreLodger lodger = core_slack_lodger(guest);
    if (!may_begin(core, node, urgent))
        return WAITS;
    core_move_let_go(core, guest);
    CoreNode *to = may_move_away(core, guest) ? core_slack_find(core, &lodger, guest->node) : NULL;
    if (to != NULL && may_begin(core, to, urgent) && !core_move_was_refused(core, to)) {
        core_move_migrate(core, guest, to, TRUE, reason);
        return LEAVES;
    }
    if (may_be_saved(core, guest)) {
        core_move_checkpoint(core, guest, TRUE, reason);
        return LEAVES;
    }
    guest->stuck_event = core->event;
    core_freeze_settle(core, guest); /* what was wanted of one that was let go in vain */
    return CANNOT;
}

static guint64 leaving_mib(const CoreNode *node)
{
    guint64 sum = 0;
    for (guint i = 0; i < node->guests->len; i++) {
        const CoreGuest *guest = g_ptr_array_index(node->guests, i);
        if (guest->is_opportunistic && is_leaving(guest))
            sum += core_predict_taken_mib(guest);
    }
    return sum;
}

static guint64 written_in_mib(const BerthCore *core, BerthCoreTuning usec)
{
    return (guint64)(core->tunings[usec] * core->tunings[BERTH_TUNING_CHECKPOINT_MIB_PER_SEC] /
                     (gint64)G_USEC_PER_SEC);
}

guint64 core_relief_most_mib(const BerthCore *core)
{
    return written_in_mib(core, BERTH_TUNING_EVACUATION_MAX_USEC);
}

guint64 core_relief_guest_mib(const BerthCore *core)
{
    return written_in_mib(core, BERTH_TUNING_CHECKPOINT_FIXED_USEC);
}

guint64 core_relief_taken_mib(const CoreNode *node)
{
    return node->needs.memory_mib + node->extra_mib;
}

/* TRUE: what stays takes no more than ROOM_MIB when those who are asked have given it back. */
static gboolean ask_balloons(BerthCore *core, CoreNode *node, guint64 room_mib)
{
    guint64 staying = core_relief_taken_mib(node) - leaving_mib(node);
    return core_balloon_relieve(core, node, staying - MIN(staying, room_mib));
}

/* Until what stays takes no more than ROOM_MIB. */
static void evict_until(BerthCore *core, CoreNode *node, guint64 room_mib, BerthReason reason,
                        gboolean urgent)
{
    CoreGuest *victim;
    while (core_relief_taken_mib(node) >
               room_mib + leaving_mib(node) + core_balloon_under_way_mib(node) &&
           (victim = victim_on(core, node)) != NULL && evict(core, victim, reason, urgent) != WAITS)
        ;
}

/* Of guests that were put back it is not known yet what they occupy; it may be all that they reserved. */
static gboolean may_be_full(const BerthCore *core, const CoreNode *node)
{
    return node->reserved.memory_mib + node->slack.memory_mib > node->capacity.memory_mib &&
           core_predict_awaits_any(core, node);
}

gboolean core_relief_make_room(BerthCore *core, CoreNode *node)
{
    guint64 room_mib = node->capacity.memory_mib;
    if (node->slack.memory_mib == 0)
        return TRUE;
    if (core_relief_taken_mib(node) > room_mib && !ask_balloons(core, node, room_mib))
        evict_until(core, node, room_mib, BERTH_REASON_ROOM_NEEDED, TRUE);
    return core_relief_taken_mib(node) <= room_mib && !may_be_full(core, node);
}

/* It was open to GUEST when that began to wait. */
static gboolean may_start(const BerthCore *core, const CoreNode *node, const CoreGuest *guest)
{
    return !core->storage_down && node->n_strays == 0 &&
           !core_maintenance_forbids(core, node, guest->task->job->class,
                                     core_task_time_left_usec(core, guest->task));
}

/* Who came first is not held up by those who came later. A move waits for its turn, too, and its room is kept meanwhile. */
static void let_in(BerthCore *core, CoreNode *node)
{
    g_autoptr(GPtrArray) waiting = core_room_waiting_on(node);
    guint64 later_mib = 0;
    if (node->is_forsaken)
        return;
    for (guint i = 0; i < waiting->len; i++)
        later_mib += core_room_need_mib(core, g_ptr_array_index(waiting, i));
    for (guint i = 0; i < waiting->len; i++) {
        CoreGuest *guest = g_ptr_array_index(waiting, i);
        if (guest->op == BERTH_OP_NONE && !may_start(core, node, guest))
            return;
        later_mib -= core_room_need_mib(core, guest);
        if (node->slack.memory_mib > 0 &&
            core_relief_taken_mib(node) > node->capacity.memory_mib + later_mib)
            return;
        if (guest->op != BERTH_OP_MIGRATING || core_move_has_turn(core, guest))
            core_room_let_in(core, guest);
    }
}

void core_relief_room_changed(BerthCore *core, CoreNode *node)
{
    if (node->state != BERTH_NODE_UP || node->n_waiting_for_room == 0)
        return;
    core_relief_make_room(core, node);
    if (node->slack.memory_mib == 0 || !may_be_full(core, node))
        let_in(core, node);
}

/* The one that takes longest to write out; not in its cooldown, nor about to end. */
static CoreGuest *largest_on(const BerthCore *core, const CoreNode *node)
{
    CoreGuest *best = NULL;
    for (guint i = 0; i < node->guests->len; i++) {
        CoreGuest *guest = g_ptr_array_index(node->guests, i);
        if (!guest->is_opportunistic || guest->phase != BERTH_GUEST_RUNNING ||
            !can_leave(core, guest) || is_exempt(core, guest))
            continue;
        if (best == NULL || guest->used.memory_mib > best->used.memory_mib ||
            (guest->used.memory_mib == best->used.memory_mib && is_better_victim(guest, best)))
            best = guest;
    }
    return best;
}

/* Guests in slack have grown: nothing may hold up a backed guest for longer than the bound. One
 * leaves at a time. As where they are let in, what they use counts, without page cache: they may drop
 * that, and are asked to, when the room is needed. */
static void keep_bound(BerthCore *core, CoreNode *node, gboolean urgent)
{
    CoreGuest *largest;
    Eviction eviction = CANNOT;
    if (core_node_evacuation_mib(&core->nodes, node) <= core_relief_most_mib(core) ||
        leaving_mib(node) > 0)
        return;
    while (eviction == CANNOT && (largest = largest_on(core, node)) != NULL) {
        eviction = evict(core, largest, BERTH_REASON_SLACK_FULL, urgent);
        if (eviction == LEAVES)
            core_move_back_off(core, largest);
    }
}

guint64 core_relief_headroom_mib(const BerthCore *core, const CoreNode *node)
{
    return node->capacity.memory_mib *
           (guint64)core->tunings[BERTH_TUNING_MEMORY_HEADROOM_PERMILLE] / 1000;
}

guint64 core_relief_well_mib(const BerthCore *core, const CoreNode *node)
{
    guint64 well = (guint64)core->tunings[BERTH_TUNING_WELL_PERMILLE];
    return MIN(core_relief_headroom_mib(core, node) * well / 1000, node->capacity.memory_mib);
}

/* So much of its headroom is left when it is pressed. */
static guint64 pressed_mib(const BerthCore *core, const CoreNode *node)
{
    return core_relief_headroom_mib(core, node) *
           (guint64)core->tunings[BERTH_TUNING_PRESSED_PERMILLE] / 1000;
}

static gboolean is_pressed(const BerthCore *core, const CoreNode *node,
                           const BerthCoreNodeUsage *usage)
{
    gboolean is_short =
        usage->memory_available_mib > 0 && usage->memory_available_mib < pressed_mib(core, node);
    return is_short ||
           usage->memory_pressure_permille >= core->tunings[BERTH_TUNING_PRESSURE_PSI_PERMILLE];
}

/* A guest that was put back from the store is taken at more than what was known of it: at its
 * reservation until it has settled anew, if nothing was stored. It was let in by what was known, and has been
 * there since: that less is known now is no reason to send anybody away. */
static gboolean is_settling_anew(const BerthCore *core, const CoreNode *node)
{
    for (guint i = 0; i < node->guests->len; i++)
        if (core_predict_settles_anew(core, g_ptr_array_index(node->guests, i)))
            return TRUE;
    return FALSE;
}

/* Until all of the headroom is available again; where the host has not told what is, as much as makes it
 * pressed. Less what those who leave occupy. */
static guint64 lacking_mib(const BerthCore *core, const CoreNode *node)
{
    guint64 headroom = core_relief_headroom_mib(core, node);
    guint64 lacking = node->available_mib > 0 && node->available_mib < headroom
                          ? headroom - node->available_mib
                          : pressed_mib(core, node);
    return lacking - MIN(lacking, leaving_mib(node));
}

/* Nobody comes into its slack for a while. */
static void shut(const BerthCore *core, CoreNode *node)
{
    node->pressed_until_usec =
        core_time_add(core->now_usec, core->tunings[BERTH_TUNING_COOLDOWN_USEC]);
}

/* As core_relief_taken_mib(), with those who settle anew at what they were measured to take: that they have reserved more is no
 * growth. */
static guint64 measured_mib(const BerthCore *core, const CoreNode *node)
{
    guint64 sum = core_relief_taken_mib(node);
    for (guint i = 0; i < node->guests->len; i++) {
        const CoreGuest *guest = g_ptr_array_index(node->guests, i);
        if (core_predict_settles_anew(core, guest))
            sum -= core_predict_taken_mib(guest) -
                   MIN(core_predict_measured_mib(core, guest), core_predict_taken_mib(guest));
    }
    return sum;
}

/* The driver is told, so that somebody can see how long relief takes. */
static void set_short(BerthCore *core, CoreNode *node, gboolean is_short)
{
    if (node->is_short == is_short)
        return;
    node->is_short = is_short;
    if (is_short)
        node->short_since_usec = core->now_usec;
    core_emit_node(core, node);
}

/* Backed guests that grow will have taken AHEAD_MIB before anybody has left: beside it the half of the headroom that is not for
 * what comes meanwhile is to be free. */
static void make_way(BerthCore *core, CoreNode *node, guint64 ahead_mib)
{
    guint64 unknown = core_relief_taken_mib(node) - measured_mib(core, node);
    guint64 room = node->capacity.memory_mib - pressed_mib(core, node);
    room = room - MIN(room, ahead_mib) + unknown;
    shut(core, node);
    if (!ask_balloons(core, node, room))
        evict_until(core, node, room, BERTH_REASON_PRESSURE, TRUE);
}

/* Begins when so much of the headroom is used up that its node is pressed, or what will come before anybody has left has no room, and ends
 * when all of it is there again; balloons, which cost little and take their time, begin when any of it is used up. */
static void relieve(BerthCore *core, CoreNode *node, gboolean pressed, guint64 ahead_mib)
{
    guint64 capacity = node->capacity.memory_mib;
    guint64 safe_mib = capacity - core_relief_headroom_mib(core, node);
    guint64 taken = core_relief_taken_mib(node);
    gboolean is_known = taken > safe_mib && (pressed || !is_settling_anew(core, node));
    gboolean is_short = is_known && taken > capacity - pressed_mib(core, node);
    gboolean grows_full =
        ahead_mib > pressed_mib(core, node) && measured_mib(core, node) + ahead_mib > capacity;
    gboolean urgent = is_urgent(node, ahead_mib);
    if (pressed || is_short || grows_full)
        set_short(core, node, TRUE);
    else if (taken <= safe_mib && ahead_mib <= pressed_mib(core, node) && !node->host_is_pressed &&
             leaving_mib(node) == 0)
        set_short(core, node, FALSE);
    gboolean is_relieved = pressed && core_balloon_relieve(core, node, lacking_mib(core, node));
    if (is_known)
        ask_balloons(core, node, capacity - core_relief_well_mib(core, node));
    if (grows_full)
        make_way(core, node, ahead_mib);
    if (is_short)
        evict_until(core, node, safe_mib, BERTH_REASON_PRESSURE, urgent);
    else if (pressed && !is_relieved && leaving_mib(node) == 0)
        evict_until(core, node, taken - core_balloon_under_way_mib(node) - 1, BERTH_REASON_PRESSURE,
                    urgent);
}

static void check(BerthCore *core, CoreNode *node, gboolean pressed)
{
    node->ahead_mib = node->slack.memory_mib > 0 ? core_lead_mib(core, node) : 0;
    if (node->slack.memory_mib == 0) {
        set_short(core, node, FALSE);
        return;
    }
    /* What a guest that was put back uses is not known: it is taken at the most that it used. */
    if (!core_predict_awaits_any(core, node))
        keep_bound(core, node, is_urgent(node, node->ahead_mib));
    relieve(core, node, pressed, node->ahead_mib);
}

void core_relief_check(BerthCore *core, CoreNode *node)
{
    check(core, node, FALSE);
}

void core_relief_report(BerthCore *core, CoreNode *node, const BerthCoreNodeUsage *usage)
{
    gboolean pressed = is_pressed(core, node, usage);
    node->available_mib = usage->memory_available_mib;
    node->host_is_pressed = pressed;
    if (pressed)
        shut(core, node);
    check(core, node, pressed);
    core_balloon_relax(core, node);
}
