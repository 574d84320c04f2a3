/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what a drain would do with the guests of a node, and how long that would take. Changes nothing. */
#include "scheduler/core/charge.h"
#include "scheduler/core/checkpoint.h"
#include "scheduler/core/class.h"
#include "scheduler/core/drain.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/limit.h"
#include "scheduler/core/look.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/profile.h"
#include "scheduler/core/slack.h"
#include "scheduler/core/task.h"
#include "scheduler/core/timers.h"

/* A command that is being ended gets its grace and no more; one that boots has all of its time. */
static gint64 limit_usec(const BerthCore *core, const CoreTask *task)
{
    const BerthCoreTask *record = &task->record;
    gint64 grace_usec =
        task->job->stop_grace_usec > 0 ? task->job->stop_grace_usec : core->config.stop_grace_usec;
    if (record->phase == BERTH_GUEST_RELEASING || record->phase == BERTH_GUEST_FENCING)
        return core->now_usec;
    if (record->stop_reason != BERTH_REASON_NONE)
        return core_time_add(core->now_usec, grace_usec);
    if (task->job->class->shape.time_limit_usec == 0)
        return G_MAXINT64;
    if (record->phase == BERTH_GUEST_STARTING)
        return core_time_add(core->now_usec,
                             core_time_add(core_task_time_left_usec(core, task), grace_usec));
    gint64 end_usec = core_charge_known_end_usec(core, task);
    return end_usec == G_MAXINT64 ? end_usec
                                  : core_time_add(MAX(end_usec, core->now_usec), grace_usec);
}

static gboolean is_among(const guint32 *handles, gsize n_handles, guint32 handle)
{
    gboolean found = FALSE;
    for (gsize i = 0; i < n_handles && !found; i++)
        found = handles[i] == handle;
    return found;
}

/* Its user lets it be on other nodes, of which one is open, or away, and will not be drained WITH the one that it is on. */
static gboolean may_be_elsewhere(const BerthCore *core, const CoreGuest *guest, const guint32 *with,
                                 gsize n_with)
{
    const CoreClass *class = guest->task->job->class;
    for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++) {
        const CoreNode *node = core_nodes_get(&core->nodes, handle);
        if (handle != guest->node && node->admission == BERTH_ADMISSION_OPEN &&
            node->state != BERTH_NODE_LOST && !is_among(with, n_with, handle) &&
            (class->shape.n_nodes == 0 ||
             is_among(class->shape.nodes, class->shape.n_nodes, handle)))
            return TRUE;
    }
    return FALSE;
}

/* --- where to -------------------------------------------------------------------------------- */

/* What those of the plan that come before have taken. */
typedef struct {
    BerthCore *core;
    const guint32 *with;
    gsize n_with;
    GArray *places;   /* Place */
    GArray *lodgings; /* Lodging */
    guint64 space_mib;
} Taken;

typedef struct {
    guint32 node;
    CoreSize size;
} Place;

/* Who moves into a node's slack, all together. */
typedef struct {
    guint32 node;
    CoreLodger lodger;
} Lodging;

static Place *place_on(const Taken *taken, guint32 node)
{
    for (guint i = 0; i < taken->places->len; i++)
        if (g_array_index(taken->places, Place, i).node == node)
            return &g_array_index(taken->places, Place, i);
    return NULL;
}

static gboolean has_room_on(const Taken *taken, const CoreNode *node, CoreSize size)
{
    const Place *place = place_on(taken, node->handle);
    return place == NULL || core_size_fits(core_size_add(size, place->size), core_node_free(node));
}

static void take(Taken *taken, guint32 node, CoreSize size)
{
    Place *place = place_on(taken, node);
    Place first = {node, size};
    if (place != NULL)
        place->size = core_size_add(place->size, size);
    else
        g_array_append_val(taken->places, first);
}

static Lodging *lodging_on(const Taken *taken, guint32 node)
{
    for (guint i = 0; i < taken->lodgings->len; i++)
        if (g_array_index(taken->lodgings, Lodging, i).node == node)
            return &g_array_index(taken->lodgings, Lodging, i);
    return NULL;
}

/* What is asked of a node's slack for both. vCPUs are shared there. */
static CoreLodger with_lodger(CoreLodger lodger, const CoreLodger *other)
{
    lodger.size.memory_mib += other->size.memory_mib;
    lodger.size.vcpus = MAX(lodger.size.vcpus, other->size.vcpus);
    lodger.needs.cpu_milli += other->needs.cpu_milli;
    lodger.needs.memory_mib += other->needs.memory_mib;
    lodger.used_mib += other->used_mib;
    lodger.signal_usec = MAX(lodger.signal_usec, other->signal_usec);
    return lodger;
}

/* FALSE: NODE has room in its slack for it, but not beside those of the plan that come before. */
static gboolean take_slack_on(Taken *taken, const CoreNode *node, const CoreLodger *lodger)
{
    Lodging *there = lodging_on(taken, node->handle);
    Lodging all = {node->handle, there != NULL ? with_lodger(*lodger, &there->lodger) : *lodger};
    if (there == NULL)
        g_array_append_val(taken->lodgings, all);
    else if (core_slack_has_room(taken->core, node, &all.lodger))
        *there = all;
    else
        return FALSE;
    return TRUE;
}

/* Into whose slack it could move now, which is taken. */
static gboolean take_slack(Taken *taken, const CoreGuest *guest)
{
    CoreLodger lodger = core_slack_lodger(guest);
    g_autoptr(GArray) except = g_array_new(FALSE, FALSE, sizeof(guint32));
    g_array_append_val(except, guest->node);
    g_array_append_vals(except, taken->with, (guint)taken->n_with);
    const CoreNode *node;
    while ((node = core_slack_find_beside(taken->core, &lodger, (const guint32 *)except->data,
                                          except->len)) != NULL) {
        if (take_slack_on(taken, node, &lodger))
            return TRUE;
        g_array_append_val(except, node->handle);
    }
    return FALSE;
}

/* Where it could be backed now, which is taken. One in slack may find more. */
static gboolean take_room(Taken *taken, const CoreGuest *guest)
{
    BerthCore *core = taken->core;
    CoreNode *node = NULL;
    while ((node = core_nodes_next(&core->nodes, guest->size, node != NULL ? node->handle : 0)) !=
           NULL)
        if (node->handle != guest->node && !is_among(taken->with, taken->n_with, node->handle) &&
            core_class_allows(guest->task->job->class, node->handle) &&
            has_room_on(taken, node, guest->size) &&
            core_limit_could_back(core, node, guest, guest->size, CORE_HEEDS_FIRM)) {
            take(taken, node->handle, guest->size);
            return TRUE;
        }
    return guest->is_opportunistic && take_slack(taken, guest);
}

/* For those in slack there is always some. */
static gboolean take_space(Taken *taken, const CoreGuest *guest)
{
    guint64 need_mib = core_checkpoint_space_mib(taken->core, guest);
    if (guest->is_opportunistic || guest->task->record.checkpoint_space_mib > 0)
        return TRUE;
    if (taken->space_mib + need_mib > core_checkpoint_space_left_mib(taken->core))
        return FALSE;
    taken->space_mib += need_mib;
    return TRUE;
}

/* For one that has no room. In slack it needs as much space for its checkpoint as to be saved away. */
static gboolean take_lodging(Taken *taken, const CoreGuest *guest)
{
    return core_drain_may_lodge(taken->core, guest, taken->space_mib) && take_slack(taken, guest) &&
           (!core_move_could_checkpoint(taken->core, guest) || take_space(taken, guest));
}

/* --- the steps ------------------------------------------------------------------------------- */

/* It waits for room until drain_patience is over, if it could be elsewhere, and is saved then. */
static gboolean is_saved(const BerthCoreDrainStep *step)
{
    return step->checkpoints && !step->lacks_space && !step->into_slack &&
           (!step->moves || step->lacks_room);
}

/* Likewise; or it moves into slack then. */
static gboolean is_patient(const BerthCoreDrainStep *step)
{
    return is_saved(step) || step->into_slack;
}

static gint64 takes_usec(const BerthCore *core, const CoreGuest *guest,
                         const BerthCoreDrainStep *step)
{
    if (is_saved(step))
        return core_move_checkpoint_usec(core, guest);
    return step->moves ? core_move_migrate_usec(core, guest) : 0;
}

/* It has its room there, which is counted. */
static gboolean is_on_its_way(const CoreGuest *guest)
{
    return guest->op == BERTH_OP_MIGRATING && !guest->is_unwanted;
}

/* When that is done it leaves. */
static gboolean is_being_saved_away(const CoreGuest *guest)
{
    return guest->op == BERTH_OP_CHECKPOINTING && guest->task->record.checkpoint_stops;
}

/* What is only being removed goes by itself. */
static BerthCoreDrainStep step_of(Taken *taken, const CoreGuest *guest)
{
    const BerthCore *core = taken->core;
    gboolean is_over = guest->phase > BERTH_GUEST_RUNNING;
    BerthCoreDrainStep step = {
        .guest = core_guest_id(guest),
        .state = guest->task->record.state,
        .moves =
            !is_over && !is_being_saved_away(guest) && core_move_could_migrate(core, guest) &&
            (is_on_its_way(guest) || may_be_elsewhere(core, guest, taken->with, taken->n_with)),
        .checkpoints = !is_over && core_move_could_checkpoint(core, guest),
        .limit_usec = limit_usec(core, guest->task),
    };
    step.is_leaving =
        (step.moves && is_on_its_way(guest)) || (step.checkpoints && is_being_saved_away(guest));
    step.lacks_room = step.moves && !is_on_its_way(guest) && !take_room(taken, guest);
    step.into_slack = step.lacks_room && take_lodging(taken, guest);
    if (step.checkpoints && !step.into_slack && (!step.moves || step.lacks_room))
        step.lacks_space = !take_space(taken, guest);
    step.takes_usec = takes_usec(core, guest, &step);
    return step;
}

GArray *berth_core_plan_drain(BerthCore *core, guint32 handle, const guint32 *with, gsize n_with)
{
    const CoreNode *node = core_nodes_get(&core->nodes, handle);
    if (node == NULL)
        return NULL;
    g_autoptr(GPtrArray) guests = core_node_guests_sorted(node);
    g_autoptr(GArray) places = g_array_new(FALSE, FALSE, sizeof(Place));
    g_autoptr(GArray) lodgings = g_array_new(FALSE, FALSE, sizeof(Lodging));
    Taken taken = {core, with, n_with, places, lodgings, 0};
    GArray *steps = g_array_sized_new(FALSE, TRUE, sizeof(BerthCoreDrainStep), guests->len);
    for (guint i = 0; i < guests->len; i++) {
        BerthCoreDrainStep step = step_of(&taken, g_ptr_array_index(guests, i));
        g_array_append_val(steps, step);
    }
    return steps;
}

/* --- how long it takes -------------------------------------------------------------------------- */

/* As many are under way at a time as there are LANES, each the moment at which what is under way there ends. */
static void take_turn(GArray *lanes, gint64 since_usec, gint64 takes_usec)
{
    gint64 *first = &g_array_index(lanes, gint64, 0);
    for (guint i = 1; i < lanes->len; i++)
        if (g_array_index(lanes, gint64, i) < *first)
            first = &g_array_index(lanes, gint64, i);
    *first = core_time_add(MAX(*first, since_usec), takes_usec);
}

static gint64 last_usec(const GArray *lanes)
{
    gint64 last = 0;
    for (guint i = 0; i < lanes->len; i++)
        last = MAX(last, g_array_index(lanes, gint64, i));
    return last;
}

static gint64 longer(gint64 usec, gint64 permille)
{
    return usec > G_MAXINT64 / permille ? G_MAXINT64 : usec * permille / 1000;
}

/* Those of STEPS that wait for room first, or those that do not; that are at it, or those that are not. */
static void take_turns(GArray *lanes, const GArray *steps, gboolean patient, gboolean is_leaving,
                       gint64 since_usec, gint64 times_permille)
{
    for (guint i = 0; i < steps->len; i++) {
        const BerthCoreDrainStep *step = &g_array_index(steps, BerthCoreDrainStep, i);
        if (is_patient(step) == patient && step->is_leaving == is_leaving && step->takes_usec > 0)
            take_turn(lanes, since_usec, longer(step->takes_usec, times_permille));
    }
}

gint64 berth_core_drain_usec(BerthCore *core, const GArray *steps, guint32 n_nodes)
{
    guint32 per_node = (guint32)core->tunings[BERTH_TUNING_MOVES_PER_NODE];
    gint64 wanted = (gint64)per_node * MAX(n_nodes, 1);
    gint64 times_permille = wanted * 1000 / MIN(wanted, core_move_cluster_cap(core));
    g_autoptr(GArray) lanes = g_array_new(FALSE, TRUE, sizeof(gint64));
    g_array_set_size(lanes, per_node);
    take_turns(lanes, steps, TRUE, TRUE, 0, times_permille);
    take_turns(lanes, steps, FALSE, TRUE, 0, times_permille);
    take_turns(lanes, steps, FALSE, FALSE, 0, times_permille);
    take_turns(lanes, steps, TRUE, FALSE, core->tunings[BERTH_TUNING_DRAIN_PATIENCE_USEC],
               times_permille);
    return last_usec(lanes);
}
