/* SPDX-License-Identifier: Apache-2.0 */
/* DECIDE, with backfill: the first tasks of the order that have to wait get a planned start and
 * nodes for it; whoever comes after them may start now if it delays none of those. EASY plans one,
 * conservative as many as plan_depth says.
 *
 * Where guests run in slack, more are planned, which delay nobody who has no slack to go to: gather.c.
 * So the room that many small jobs do not need is gathered for the gangs and the large ones, which
 * slack is no use to; without slack it is EASY.
 *
 * Firm starts that nothing can have improved or broken stand (replan.c); the others are searched for
 * again, one after the other in the order, each beside those before it. That is also when who comes
 * before or between them is tried, so that no start of theirs is delayed by who comes after.
 *
 * A pass costs O(firm starts that do not stand + tried classes), each log nodes, and for those that
 * stand a look at each node that has changed: behind the firm ones only those classes
 * are tried whose first job is new, or which fit on a node that has more room than the last pass saw.
 * What failed elsewhere then still does: guests only leave, and each that does makes its node fresh;
 * so does a plan that is dropped. All of the order is held against those nodes, by the least that its parts ask
 * for, so that nobody who has room there is passed over for one who comes later; but past
 * backfill_depth gangs in vain other gangs are not tried in that pass; and past as many single guests
 * in vain, for whom room is there but gathered for others, no more of these. */
#include "scheduler/core/ahead.h"
#include "scheduler/core/class.h"
#include "scheduler/core/fresh.h"
#include "scheduler/core/gather.h"
#include "scheduler/core/least.h"
#include "scheduler/core/limit.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/order_tree.h"
#include "scheduler/core/owner.h"
#include "scheduler/core/placement.h"
#include "scheduler/core/plan.h"
#include "scheduler/core/replan.h"
#include "scheduler/core/search.h"
#include "scheduler/core/slack.h"

typedef struct {
    BerthCore *core;
    guint at;              /* in the order: classes before it were tried */
    guint n_planned;       /* firm starts of tasks before it */
    guint behind;          /* so many were when the firm starts were planned */
    gboolean has_gathered; /* they have to be tried again, where room was gathered before */
    CoreAhead *ahead;      /* of the classes before AT, what has no firm start */
    guint32 *nodes;
    guint32 n_nodes;
} Pass;

/* Room to write the nodes of CLASS's guests to. */
static guint32 *nodes_for(Pass *pass, const CoreClass *class)
{
    if (pass->n_nodes < class->shape.guests) {
        pass->n_nodes = class->shape.guests;
        pass->nodes = g_renew(guint32, pass->nodes, pass->n_nodes);
    }
    return pass->nodes;
}

/* --- trying ---------------------------------------------------------------------------------- */

/* On CANDIDATES; NULL = anywhere. */
static gboolean search(Pass *pass, const CoreClass *class, guint heeds, const GArray *candidates)
{
    BerthCore *core = pass->core;
    guint32 avoid = core_placement_avoid(class);
    guint32 *nodes = nodes_for(pass, class);
    gint64 length_usec = core_class_length_usec(core, class);
    return candidates == NULL
               ? core_search_now(core, class, length_usec, heeds, avoid, nodes)
               : core_search_among(core, class, length_usec, heeds, avoid, candidates, nodes);
}

/* On the first of the nodes found where there is anybody: the others may not be wanted any more. Guests of a gang
 * that share a node come one after the other. */
static gboolean promote_above(const Pass *pass, const CoreClass *class)
{
    guint32 n;
    for (guint32 i = 0; i < class->shape.guests; i += n) {
        n = 1;
        while (i + n < class->shape.guests && pass->nodes[i + n] == pass->nodes[i])
            n++;
        if (core_slack_promote_above(pass->core, class, pass->nodes[i], n))
            return TRUE;
    }
    return FALSE;
}

/* Who is next in the order, after those with a firm start so far. */
static gboolean try_first(Pass *pass, CoreClass *class)
{
    guint heeds = core_plan_heeds_at(pass->core->plan, CORE_PLAN_FIRM, pass->n_planned);
    if (!search(pass, class, heeds, NULL))
        return FALSE;
    /* Who runs in slack there and ranks higher is not to go for it: he is backed, if he can be. */
    while (promote_above(pass, class))
        if (!search(pass, class, heeds, NULL))
            return FALSE;
    core_placement_start(pass->core, class, pass->nodes);
    return TRUE;
}

/* Who could start in slack leaves room to all that are planned and come before him; the others only
 * to the firm ones, but take other room if there is some. TRUE: it has, and another class may be in
 * its place. */
static gboolean try_to_start(Pass *pass, CoreClass *class, const GArray *candidates)
{
    BerthCore *core = pass->core;
    if (!search(pass, class, CORE_HEEDS_FIRM, candidates))
        return FALSE;
    gboolean has_slack =
        core_plan_depth(core, CORE_PLAN_GATHERED) > 0 && core_slack_could_start(core, class);
    if (has_slack)
        pass->has_gathered |= core_gather(core);
    if (core_plan_n(core->plan, CORE_PLAN_GATHERED) > 0 &&
        !search(pass, class, core_plan_heeded_by(core, class), candidates)) {
        class->left_to_slack = has_slack ? core->pass : 0;
        core_order_tree_refresh(core, class);
        if (has_slack || !search(pass, class, CORE_HEEDS_FIRM, candidates))
            return FALSE;
        /* Who is in slack there has kept out of that room, too. */
        if (class->shape.guests == 1 && core_slack_promote_before(core, class, pass->nodes[0]) &&
            !search(pass, class, CORE_HEEDS_FIRM, candidates))
            return FALSE;
    }
    core_placement_start(core, class, pass->nodes);
    return TRUE;
}

/* --- the firm ones --------------------------------------------------------------------------- */

/* It stands, or was made just now. */
static void count_planned(Pass *pass, const CoreClass *class)
{
    pass->n_planned++;
    core_owner_plan(pass->core, class, CORE_PLAN_FIRM);
}

static void plan_first(Pass *pass, const CoreJob *job, gint64 rank)
{
    BerthCore *core = pass->core;
    const CoreClass *class = job->class;
    guint32 *nodes = nodes_for(pass, class);
    CoreSupply *supply = NULL;
    gint64 start_usec =
        core_search_first(core, class, core_class_length_usec(core, class),
                          core_plan_heeds_at(core->plan, CORE_PLAN_FIRM, pass->n_planned), nodes,
                          core_plan_depth(core, CORE_PLAN_FIRM) > 1 ? &supply : NULL);
    if (start_usec != G_MAXINT64) {
        core_plan_insert(core, CORE_PLAN_FIRM, pass->n_planned,
                         &(CorePlannedStart){job, rank, start_usec, nodes, supply});
        count_planned(pass, class);
    }
    /* What one cannot, none of its class ever can, as things are. */
    core_ahead_skip(pass->ahead, start_usec == G_MAXINT64);
}

/* The first task ahead; FALSE: there is none. */
static gboolean plan_ahead(Pass *pass)
{
    gint64 rank = 0;
    const CoreJob *job = core_ahead_first(pass->ahead, &rank);
    if (job == NULL)
        return FALSE;
    if (core_owner_hinders_plan(pass->core, job->class, CORE_PLAN_FIRM)) {
        core_ahead_skip(pass->ahead, TRUE);
    } else if (core_replan_stands(pass->core, CORE_PLAN_FIRM, pass->n_planned, job, rank)) {
        count_planned(pass, job->class);
        core_ahead_skip(pass->ahead, FALSE);
    } else {
        plan_first(pass, job, rank);
    }
    return TRUE;
}

/* The first task of CLASS is next. It cannot start now if its planned start stands. FALSE: another
 * class may be in its place. */
static gboolean plan_class(Pass *pass, CoreClass *class)
{
    BerthCore *core = pass->core;
    if (core_placement_park(core, class))
        return FALSE;
    gboolean is_planned = !core_owner_hinders_plan(core, class, CORE_PLAN_FIRM) &&
                          core_replan_stands(core, CORE_PLAN_FIRM, pass->n_planned,
                                             core_class_head(class), class->rank);
    if (!is_planned && try_first(pass, class))
        return FALSE;
    class->looked_at = core->pass;
    core_ahead_add(pass->ahead, class);
    if (is_planned) {
        count_planned(pass, class);
        core_ahead_skip(pass->ahead, FALSE);
    }
    return TRUE;
}

static void make_plan(Pass *pass)
{
    BerthCore *core = pass->core;
    guint depth = core_plan_depth(core, CORE_PLAN_FIRM);
    gboolean more = TRUE;
    core_replan_begin(core, CORE_PLAN_FIRM);
    while (more && pass->n_planned < depth) {
        CoreClass *class = core_order_at(core, pass->at);
        if (class == NULL || !core_ahead_is_behind(pass->ahead, class))
            more = plan_ahead(pass);
        else
            pass->at += plan_class(pass, class);
    }
    core_replan_end(core, CORE_PLAN_FIRM, pass->n_planned);
}

/* --- the others ----------------------------------------------------------------------------- */

/* A guest that has room on a fresh node starts there; but a gang needs room for the others too, and
 * who could start in slack keeps out of the way of more. */
static gboolean may_fail(const BerthCore *core, const CoreClass *class)
{
    return class->shape.guests > 1 || core_plan_depth(core, CORE_PLAN_GATHERED) > 0;
}

/* Who is looked for to be tried on fresh nodes. */
typedef struct {
    const BerthCore *core;
    CoreFresh *fresh;
    gint64 gangs_left, singles_left; /* searches that may fail */
} Filling;

static gboolean may_be_worth_it(const Filling *filling, const CoreLeast *leasts, guint n,
                                gint64 failures_left, gboolean fails)
{
    if (failures_left > 0 && filling->core->full_pass_wanted)
        return n > 0;
    if (failures_left <= 0 && fails)
        return FALSE;
    guint i = 0;
    while (i < n && !core_fresh_may_have_room(filling->fresh, &leasts[i]))
        i++;
    return i < n;
}

static gboolean may_be_tried(const CoreOrderSum *sum, gpointer user_data)
{
    const Filling *filling = user_data;
    gboolean single_fails = core_plan_depth(filling->core, CORE_PLAN_GATHERED) > 0;
    guint n_singles, n_gangs;
    const CoreLeast *singles = core_leasts_singles(&sum->leasts, &n_singles);
    const CoreLeast *gangs = core_leasts_gangs(&sum->leasts, &n_gangs);
    return may_be_worth_it(filling, singles, n_singles, filling->singles_left, single_fails) ||
           may_be_worth_it(filling, gangs, n_gangs, filling->gangs_left, TRUE);
}

/* Goes through all of the order behind the firm starts, in a bounded number of searches that fail; of
 * gangs and of single guests apart, so that no gang keeps a guest from being tried that has room. */
static void fill_fresh(Pass *pass)
{
    BerthCore *core = pass->core;
    gint64 depth = core->tunings[BERTH_TUNING_BACKFILL_DEPTH];
    g_autoptr(CoreFresh) fresh = core_fresh_new(core, CORE_HEEDS_FIRM);
    Filling filling = {core, fresh, depth, depth};
    CoreClass *class;
    pass->at = pass->behind;
    pass->has_gathered = FALSE;
    while ((class = core_order_find(core, &pass->at, may_be_tried, &filling)) != NULL) {
        gint64 *failures_left =
            class->shape.guests > 1 ? &filling.gangs_left : &filling.singles_left;
        gboolean is_worth_it =
            core_fresh_has_room(fresh, class, core_class_length_usec(core, class));
        if (is_worth_it ? *failures_left <= 0 && may_fail(core, class)
                        : *failures_left <= 0 || !core->full_pass_wanted) {
            pass->at++;
        } else if (core_placement_park(core, class)) {
            continue;
        } else if (try_to_start(pass, class, core->full_pass_wanted ? NULL : core->nodes.fresh)) {
            core_fresh_update(fresh, pass->nodes, class->shape.guests);
        } else {
            class->looked_at = core->pass;
            *failures_left -= is_worth_it;
            pass->at++;
        }
        if (pass->has_gathered)
            return;
    }
}

/* Once more if there is room where it was gathered before: that is not twice in a pass. */
static void fill(Pass *pass)
{
    core_slack_promote_fresh(pass->core);
    fill_fresh(pass);
    if (pass->has_gathered) {
        core_slack_promote_fresh(pass->core);
        fill_fresh(pass);
    }
}

static int compare_untried(gconstpointer a, gconstpointer b)
{
    return core_order_compare(*(CoreClass *const *)a, *(CoreClass *const *)b);
}

static void try_untried(Pass *pass)
{
    BerthCore *core = pass->core;
    g_ptr_array_sort(core->untried, compare_untried);
    for (guint i = 0; i < core->untried->len; i++) {
        CoreClass *class = g_ptr_array_index(core->untried, i);
        while (class->is_ordered && class->looked_at != core->pass)
            if (!core_placement_park(core, class) && !try_to_start(pass, class, NULL))
                class->looked_at = core->pass;
    }
}

/* --- the pass ------------------------------------------------------------------------------- */

/* The plan stands unless there is more room, somebody comes before its last, or who was to start is
 * late, as when a guest is not gone when it should be. */
static gboolean needs_plan(const BerthCore *core)
{
    if (core->full_pass_wanted || core->plan_wanted || core->nodes.fresh->len > 0 ||
        core_plan_n(core->plan, CORE_PLAN_FIRM) < core_plan_depth(core, CORE_PLAN_FIRM) ||
        core_plan_has_expired(core->plan, core->now_usec))
        return TRUE;
    for (guint i = 0; i < core->untried->len; i++) {
        const CoreClass *class = g_ptr_array_index(core->untried, i);
        if (class->is_ordered && !core_plan_is_before(core->plan, class->rank, class->head))
            return TRUE;
    }
    return FALSE;
}

void core_backfill_pass(BerthCore *core)
{
    Pass pass = {.core = core, .ahead = core_ahead_new()};
    core_plan_drop_idle(core);
    core_limit_grow_fresh(core);
    if (core->full_pass_wanted)
        core_plan_doubt(core->plan, CORE_PLAN_GATHERED);
    gboolean is_planned_anew = needs_plan(core);
    if (is_planned_anew) {
        make_plan(&pass);
        pass.behind = pass.at;
        g_clear_pointer(&pass.ahead, core_ahead_free);
        fill(&pass);
    }
    pass.has_gathered = FALSE;
    guint n_fresh = core->nodes.fresh->len;
    try_untried(&pass);
    if (pass.has_gathered || core->nodes.fresh->len > n_fresh)
        fill(&pass);
    if (is_planned_anew)
        core->planned_change = core_nodes_next_change(&core->nodes);
    g_clear_pointer(&pass.ahead, core_ahead_free);
    g_free(pass.nodes);
}
