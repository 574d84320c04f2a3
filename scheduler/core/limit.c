/* SPDX-License-Identifier: Apache-2.0 */
/* DECIDE, at the limit: a guest that is near the limit of its memory, or fills it so fast that it will be at it before it is
 * grown, or lacks vCPUs, is grown towards its ceiling by a step, as its user's and accounts' limits let it: on the spot where its node can back that, else on a node that
 * can, to which it is moved first. One in slack has to be backed for that. Where both are not to be had, memory alone is, or vCPUs alone. One
 * that cannot grow and stalls for want of memory is dealt with as its job says, unless it only has to
 * wait for its turn; one that has not taken what it was to have cannot grow for a while. Short of vCPUs it is just slow, and one
 * that uses nearly all that it asked for, and does not stall, is as its user wanted it. So is, for a while, one that was frozen and
 * that somebody has let go on with what it has.
 *
 * One that stands still at its limit is grown, and goes on, when there is room for more, before those who wait for a start: it holds
 * memory that is of no use to anybody. It reports nothing that would have it looked at, so that it is when room
 * comes free on its node, and, as others may have it, in rounds (rounds.h). */
#include "scheduler/core/limit.h"

#include "scheduler/core/balloon.h"
#include "scheduler/core/class.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/freeze.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/owner.h"
#include "scheduler/core/plan.h"
#include "scheduler/core/profile.h"
#include "scheduler/core/search.h"
#include "scheduler/core/task.h"

/* One that lacks memory is said to do so until it has not for so long: what it uses goes up and down from one report to
 * the next, and each change is written and told. */
#define SHORT_FORGOTTEN_USEC (60 * (gint64)G_USEC_PER_SEC)

static gboolean stalls_for_memory(const BerthCore *core, const BerthCoreUsage *usage)
{
    return usage->memory_pressure_permille >= core->tunings[BERTH_TUNING_LIMIT_PSI_PERMILLE];
}

static guint64 told_mib(const BerthCoreUsage *usage)
{
    return usage->memory_used_mib + usage->memory_available_mib;
}

static gboolean has_little_memory(const BerthCore *core, const BerthCoreUsage *usage)
{
    guint64 least = (guint64)core->tunings[BERTH_TUNING_LIMIT_AVAILABLE_PERMILLE];
    return usage->memory_available_mib * 1000 < told_mib(usage) * least;
}

static gboolean is_near_memory_limit(const BerthCore *core, const BerthCoreUsage *usage)
{
    return stalls_for_memory(core, usage) || has_little_memory(core, usage);
}

/* --- what it fills --------------------------------------------------------------------------- */

/* Reports that come sooner after another tell no rate, nor do those, for a while, that tell of the same: guests measure
 * themselves more rarely than others measure them. */
#define FILL_MIN_USEC  (G_USEC_PER_SEC / 2)
#define FILL_SAME_USEC (10 * (gint64)G_USEC_PER_SEC)
/* Linux takes memory in blocks, and needs so much of what it has for the page structures of each. */
#define BLOCK_MIB            128u
#define BLOCK_STRUCTURES_MIB 2u

static void note_fill(const BerthCore *core, CoreGuest *guest, const BerthCoreUsage *usage)
{
    gint64 passed_usec = core->now_usec - guest->fill_usec;
    guint64 more_mib = usage->memory_used_mib - MIN(usage->memory_used_mib, guest->fill_mib);
    gboolean is_first = guest->fill_usec == 0;
    gboolean is_same = usage->memory_used_mib == guest->fill_mib;
    if (!is_first && passed_usec < (is_same ? FILL_SAME_USEC : FILL_MIN_USEC))
        return;
    guest->last_fill_rate = is_first ? 0 : guest->fill_rate;
    guest->fill_rate =
        is_first ? 0 : more_mib * 1024 * (guint64)G_USEC_PER_SEC / (guint64)passed_usec;
    guest->fill_usec = core->now_usec;
    guest->fill_mib = usage->memory_used_mib;
}

/* While it is grown. Twice in a row it has to have filled as much: who takes much at once may have all that he wants. */
static guint64 fills_mib(const BerthCore *core, const CoreGuest *guest)
{
    guint64 rate = MIN(guest->fill_rate, guest->last_fill_rate);
    guint64 usec = (guint64)core->tunings[BERTH_TUNING_GROW_USEC];
    return rate * (usec / 1000) / 1000 / 1024;
}

/* By which a guest that has so much is grown. */
static guint64 step(const BerthCore *core, guint64 now)
{
    return MAX(now * (guint64)core->tunings[BERTH_TUNING_GROW_STEP_PERMILLE] / 1000, 1);
}

/* With less it would be full again before the next. */
static guint64 memory_step_mib(const BerthCore *core, const CoreGuest *guest)
{
    return MAX(step(core, guest->size.memory_mib), fills_mib(core, guest));
}

/* It will be full when it is grown, or have nothing left for its kernel to take more with. */
static gboolean will_be_full(const BerthCore *core, const CoreGuest *guest,
                             const BerthCoreUsage *usage)
{
    guint64 fills = fills_mib(core, guest);
    guint64 blocks = (memory_step_mib(core, guest) + BLOCK_MIB - 1) / BLOCK_MIB;
    return fills > 0 && usage->memory_available_mib < fills + blocks * BLOCK_STRUCTURES_MIB;
}

/* One whose memory was resized may be heard of with what it was before, and goes on to tell of pressure that it had then. */
static gboolean wants_memory(const BerthCore *core, const CoreGuest *guest,
                             const BerthCoreUsage *usage)
{
    gboolean was_just_resized = core->now_usec < guest->resized_until_usec;
    if (core->now_usec < guest->grow_rest_usec ||
        (was_just_resized && told_mib(usage) <= guest->stale_mib))
        return FALSE;
    return has_little_memory(core, usage) || will_be_full(core, guest, usage) ||
           (stalls_for_memory(core, usage) && !was_just_resized);
}

/* --- growing --------------------------------------------------------------------------------- */

/* It has more to run than vCPUs, as its own kernel says, and uses nearly all of these: one that its node starves, or
 * holds back, does not, and would get nothing of more. Its quota says nothing, which is what its vCPUs can use. */
static gboolean uses_up_vcpus(const BerthCore *core, const CoreGuest *guest,
                              const BerthCoreUsage *usage)
{
    guint64 least = (guint64)core->tunings[BERTH_TUNING_LIMIT_CPU_USED_PERMILLE];
    return usage->cpu_pressure_permille >= core->tunings[BERTH_TUNING_LIMIT_CPU_PSI_PERMILLE] &&
           usage->cpu_milli >= guest->size.vcpus * least;
}

/* For so long on end: a vCPU is not taken back, and what has more to run for a moment waits for no longer than that.
 * What it was told while it was given more is of what it had. */
static gboolean lacks_vcpus(const BerthCore *core, CoreGuest *guest, const BerthCoreUsage *usage)
{
    if (!uses_up_vcpus(core, guest, usage) || !core_move_is_at_rest(guest))
        guest->vcpus_short_usec = 0;
    else if (guest->vcpus_short_usec == 0)
        guest->vcpus_short_usec = core->now_usec;
    return guest->vcpus_short_usec != 0 &&
           core->now_usec - guest->vcpus_short_usec >= core->tunings[BERTH_TUNING_LIMIT_CPU_USEC];
}

/* By MORE from NOW, to MOST at most. */
static guint64 grown(guint64 now, guint64 more, guint64 most)
{
    return MAX(now, MIN(now + more, most));
}

/* ... towards its ceiling, as far as its user's and accounts' limits let it. */
static guint64 grown_mib(const BerthCore *core, const CoreGuest *guest, guint64 more_mib)
{
    const CoreShape *shape = &guest->task->job->class->shape;
    guint64 now_mib = guest->size.memory_mib;
    return grown(now_mib, more_mib,
                 MIN(shape->ceiling_memory_mib + core->config.guest_overhead_mib,
                     now_mib + core_owner_left(shape->owner).memory_mib));
}

typedef enum {
    GROWS,
    WAITS, /* there is room, but its turn to take it has not come, or its owner has as much as he may for now */
    CANNOT,
} Growth;

gboolean core_limit_could_back(const BerthCore *core, CoreNode *node, const CoreGuest *guest,
                               CoreSize size, guint heeds)
{
    CoreNeed need = {size, MAX(guest->task->planned_end_usec - core->now_usec, 1), TRUE, heeds};
    return core_size_fits(size, core_node_free(node)) &&
           core_profile_count(core, node, &need, core->now_usec, 1) == 1;
}

CoreNode *core_limit_find_place(const BerthCore *core, const CoreGuest *guest, CoreSize size,
                                guint heeds)
{
    const CoreShape *shape = &guest->task->job->class->shape;
    CoreNode *second = NULL; /* it is busy, or the latest that was to come did not */
    CoreNode *node = NULL;
    while ((node = core_nodes_next(&core->nodes, size, node != NULL ? node->handle : 0)) != NULL) {
        if ((shape->n_nodes > 0 && !core_class_allows(guest->task->job->class, node->handle)) ||
            node->handle == guest->node || !core_limit_could_back(core, node, guest, size, heeds))
            continue;
        if (core_move_is_below_caps(core, node) && !core_move_was_refused(core, node))
            return node;
        if (second == NULL)
            second = node;
    }
    return second;
}

gboolean core_limit_is_of_another_size(const CoreGuest *guest)
{
    return !core_size_equal(guest->size, guest->task->job->class->shape.start);
}

CoreNode *core_limit_find_backing(BerthCore *core, const CoreGuest *guest, guint heeds)
{
    const CoreClass *class = guest->task->job->class;
    gint64 left_usec = MAX(guest->task->planned_end_usec - core->now_usec, 1);
    guint32 handle = 0;
    if (core_limit_is_of_another_size(guest))
        return core_limit_find_place(core, guest, guest->size, heeds);
    return core_search_now(core, class, left_usec, heeds, 0, &handle)
               ? core_nodes_get(&core->nodes, handle)
               : NULL;
}

/* For want of memory it stands still, or hardly gets on: to wait would cost it more than to move once more. */
static gboolean stands_for_memory(const CoreGuest *guest, CoreSize size)
{
    return size.memory_mib > guest->size.memory_mib && (guest->is_frozen || guest->stalls);
}

/* The room is held for what it grows to when it is there. */
static Growth move_to_grow(BerthCore *core, CoreGuest *guest, CoreSize size)
{
    const CoreNode *from = core_nodes_get(&core->nodes, guest->node);
    gboolean is_cool = guest->cooldown_usec <= core->now_usec || stands_for_memory(guest, size);
    if (!core_move_may_migrate(core, guest))
        return CANNOT;
    CoreNode *to = core_limit_find_place(core, guest, size, CORE_HEEDS_FIRM);
    if (to == NULL)
        return CANNOT;
    if (guest->move_rest_usec > core->now_usec) /* ... in vain so far */
        return guest->is_frozen ? WAITS : CANNOT;
    if (!is_cool || !core_move_is_below_caps(core, from) || !core_move_is_below_caps(core, to))
        return WAITS;
    core_freeze_goes_on(guest);
    core_move_migrate_to_resize(core, guest, to, size, BERTH_REASON_AT_LIMIT);
    return GROWS;
}

/* Where it is it has to be backed first; it is grown when that is done. One that stands still does so until then. */
static Growth grow_from_slack(BerthCore *core, CoreGuest *guest, CoreSize size)
{
    CoreNode *node = core_nodes_get(&core->nodes, guest->node);
    gboolean may_be_promoted = (core->config.features & BERTH_FEATURE_PROMOTION) != 0 &&
                               core->now_usec >= guest->promotion_rest_usec;
    if (!may_be_promoted || !core_limit_could_back(core, node, guest, size, CORE_HEEDS_FIRM))
        return move_to_grow(core, guest, size);
    core_move_promote(core, guest);
    return GROWS;
}

static Growth grow_to(BerthCore *core, CoreGuest *guest, CoreSize size)
{
    CoreSize more = core_size_sub(size, guest->size);
    const CoreNode *node = core_nodes_get(&core->nodes, guest->node);
    if (more.vcpus == 0 && more.memory_mib == 0)
        return CANNOT;
    if (guest->is_opportunistic)
        return grow_from_slack(core, guest, size);
    if (!core_size_fits(more, core_node_unreserved(node)))
        return move_to_grow(core, guest, size);
    core_freeze_goes_on(guest);
    core_move_resize(core, guest, size, BERTH_REASON_AT_LIMIT);
    return GROWS;
}

static Growth grow(BerthCore *core, CoreGuest *guest, gboolean memory, gboolean vcpus)
{
    const CoreShape *shape = &guest->task->job->class->shape;
    CoreSize both = guest->size;
    CoreSize left = core_owner_left(shape->owner);
    if (!(core->config.features & BERTH_FEATURE_GROWTH))
        return CANNOT;
    if (memory)
        both.memory_mib = grown_mib(core, guest, memory_step_mib(core, guest));
    if (vcpus)
        both.vcpus = (guint32)grown(both.vcpus, step(core, both.vcpus),
                                    MIN(shape->ceiling_vcpus, (guint64)both.vcpus + left.vcpus));
    gboolean is_held_back =
        (memory &&
         shape->ceiling_memory_mib + core->config.guest_overhead_mib > guest->size.memory_mib &&
         left.memory_mib == 0) ||
        (vcpus && shape->ceiling_vcpus > guest->size.vcpus && left.vcpus == 0);
    const CoreSize tries[] = {
        both, {guest->size.vcpus, both.memory_mib}, {both.vcpus, guest->size.memory_mib}};
    Growth best = CANNOT;
    for (guint i = 0; i < (memory && vcpus ? G_N_ELEMENTS(tries) : 1); i++) {
        Growth growth = grow_to(core, guest, tries[i]);
        if (growth == GROWS)
            return GROWS;
        best = MIN(best, growth);
    }
    return is_held_back ? MIN(best, WAITS) : best;
}

/* With less of a step it would only be there again at once. */
#define LEAST_PART 4u

/* By less than a step, if there is so much of one where it is. */
static gboolean grow_by_less(BerthCore *core, CoreGuest *guest)
{
    CoreSize size = guest->size;
    guint64 step_mib = memory_step_mib(core, guest);
    guint64 free_mib = core_node_unreserved(core_nodes_get(&core->nodes, guest->node)).memory_mib;
    size.memory_mib = grown_mib(core, guest, MIN(free_mib, step_mib));
    return (core->config.features & BERTH_FEATURE_GROWTH) != 0 && !guest->is_opportunistic &&
           size.memory_mib >= guest->size.memory_mib + MAX(step_mib / LEAST_PART, 1) &&
           grow_to(core, guest, size) == GROWS;
}

void core_limit_set_short(BerthCore *core, CoreTask *task, gboolean is_short)
{
    if ((task->record.short_usec != 0) == is_short || task->n_guests > 1)
        return; /* of a gang the guests differ */
    task->record.short_usec = is_short ? core->now_usec : 0;
    core_emit_changed(core, task);
}

static void forget_short(BerthCore *core, const CoreGuest *guest)
{
    gint64 since_usec = MAX(guest->near_limit_usec, guest->task->record.short_usec);
    if (core->now_usec - since_usec >= SHORT_FORGOTTEN_USEC)
        core_limit_set_short(core, guest->task, FALSE);
}

/* It stalls, and there is no more for it. */
static void at_limit(BerthCore *core, CoreGuest *guest)
{
    BerthOnLimit on_limit = guest->task->job->class->shape.on_limit;
    gboolean can_freeze = (core->config.features & BERTH_FEATURE_FREEZING) != 0;
    if (on_limit == BERTH_ON_LIMIT_KILL)
        core_task_stop(core, guest->task, BERTH_REASON_MEMORY_LIMIT);
    else if (on_limit == BERTH_ON_LIMIT_FREEZE && can_freeze)
        core_freeze_want(core, guest, BERTH_REASON_AT_LIMIT);
    else
        core_limit_set_short(core, guest->task, TRUE);
}

void core_limit_check(BerthCore *core, CoreGuest *guest, const BerthCoreUsage *usage)
{
    gboolean memory = is_near_memory_limit(core, usage);
    gboolean vcpus = lacks_vcpus(core, guest, usage);
    guest->stalls = stalls_for_memory(core, usage);
    note_fill(core, guest, usage);
    gboolean wants = wants_memory(core, guest, usage);
    if (core_move_is_at_rest(guest))
        guest->told_mib = told_mib(usage);
    if (core_balloon_check(core, guest, memory))
        return;
    if (memory)
        guest->near_limit_usec = core->now_usec;
    else
        forget_short(core, guest);
    if (!core_move_is_at_rest(guest) || guest->is_frozen ||
        grow(core, guest, wants, vcpus) != CANNOT || !guest->stalls ||
        core->now_usec < guest->limit_rest_usec || (wants && grow_by_less(core, guest)))
        return;
    at_limit(core, guest);
}

/* --- standing still at it --------------------------------------------------------------------- */

static gboolean waits_for_more(const BerthCore *core, const CoreGuest *guest)
{
    return (core->config.features & BERTH_FEATURE_GROWTH) != 0 && guest->is_frozen &&
           guest->task->record.freeze_reason == BERTH_REASON_AT_LIMIT &&
           core_move_is_at_rest(guest) && core->now_usec >= guest->grow_rest_usec;
}

static gboolean does_any_wait(const BerthCore *core, const CoreNode *node)
{
    for (guint i = 0; i < node->guests->len; i++)
        if (waits_for_more(core, g_ptr_array_index(node->guests, i)))
            return TRUE;
    return FALSE;
}

void core_limit_grow_again(BerthCore *core, CoreGuest *guest)
{
    if (waits_for_more(core, guest) && grow(core, guest, TRUE, FALSE) == CANNOT)
        grow_by_less(core, guest);
}

void core_limit_grow_on(BerthCore *core, const CoreNode *node)
{
    if (node->state != BERTH_NODE_UP || !does_any_wait(core, node))
        return;
    g_autoptr(GPtrArray) guests = core_node_guests_sorted(node);
    for (guint i = 0; i < guests->len; i++)
        core_limit_grow_again(core, g_ptr_array_index(guests, i));
}

void core_limit_grow_fresh(BerthCore *core)
{
    for (guint i = 0; i < core->nodes.fresh->len; i++)
        core_limit_grow_on(
            core, core_nodes_get(&core->nodes, g_array_index(core->nodes.fresh, guint32, i)));
}
