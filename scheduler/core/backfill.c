/* SPDX-License-Identifier: Apache-2.0 */
/* DECIDE, with backfill: the first tasks of the order that have to wait get a planned start and
 * nodes for it; whoever comes after them may start now if it delays none of those. EASY plans one,
 * conservative as many as plan_depth says.
 *
 * Where guests run in slack, slack_plan_depth more are planned. They delay nobody who has no slack to go
 * to: they are kept from those alone that could start in slack instead, and from guests there
 * that would like to be backed. So the room that many small jobs do not need is gathered for the gangs
 * and the large ones, which slack is no use to; without slack it is EASY.
 *
 * A pass costs O(planned + tried classes), each log nodes: behind the planned tasks only those classes
 * are tried whose first job is new, or which fit on a node that has more room than the last pass saw.
 * What failed elsewhere then still does: guests only leave, and each that does makes its node fresh;
 * so does a plan that is dropped. All of the order is held against those nodes, at a few comparisons
 * a class, so that nobody who has room there is passed over for one who comes later; but past
 * backfill_depth gangs in vain the others are not tried in that pass. */
#include "scheduler/core/class.h"
#include "scheduler/core/fresh.h"
#include "scheduler/core/job.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/order.h"
#include "scheduler/core/placement.h"
#include "scheduler/core/plan.h"
#include "scheduler/core/search.h"
#include "scheduler/core/slack.h"

/* The tasks of one class that could not start, one after the other. */
typedef struct {
    CoreClass *class;
    gint64 rank;
    CoreHeapWalk jobs;
    CoreJob *job; /* whose tasks are next */
    guint32 left; /* so many of them */
} Cursor;

typedef struct {
    BerthCore *core;
    guint at;        /* in the order: classes before it were tried */
    GArray *cursors; /* Cursor: of classes that may have more to plan, in any order */
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

/* --- the planned ones ----------------------------------------------------------------------- */

/* FALSE: there are no more. */
static gboolean cursor_advance(Cursor *cursor)
{
    CoreHeapLink *link = core_heap_walk_next(&cursor->jobs);
    if (link == NULL)
        return FALSE;
    cursor->job = CORE_CONTAINER_OF(link, CoreJob, waiting);
    cursor->left = core_job_n_startable(cursor->job);
    return TRUE;
}

static void add_cursor(Pass *pass, const CoreOrdered *ordered)
{
    Cursor cursor = {.class = ordered->class, .rank = ordered->rank};
    core_heap_walk_begin(&cursor.jobs, &ordered->class->waiting);
    if (cursor_advance(&cursor))
        g_array_append_val(pass->cursors, cursor);
    else
        core_heap_walk_end(&cursor.jobs);
}

/* So that looking for the first does not cost all whose class can never be planned. */
static void drop_cursor(Pass *pass, Cursor *cursor)
{
    core_heap_walk_end(&cursor->jobs);
    g_array_remove_index_fast(pass->cursors,
                              (guint)(cursor - (Cursor *)(void *)pass->cursors->data));
}

static Cursor *first_cursor(const Pass *pass)
{
    Cursor *first = NULL;
    for (guint i = 0; i < pass->cursors->len; i++) {
        Cursor *cursor = &g_array_index(pass->cursors, Cursor, i);
        if (first == NULL || cursor->rank > first->rank ||
            (cursor->rank == first->rank && cursor->job->id < first->job->id))
            first = cursor;
    }
    return first;
}

static void plan_next_of(Pass *pass, Cursor *cursor)
{
    BerthCore *core = pass->core;
    guint32 *nodes = nodes_for(pass, cursor->class);
    gint64 start_usec =
        core_search_first(core, cursor->class, core_class_length_usec(core, cursor->class), nodes);
    if (start_usec == G_MAXINT64) {
        drop_cursor(pass, cursor); /* nor can the others of its class ever, as things are */
        return;
    }
    core_plan_add(core, cursor->job, cursor->rank, start_usec, nodes);
    cursor->left--;
    if (cursor->left == 0 && !cursor_advance(cursor))
        drop_cursor(pass, cursor);
}

/* As many planned starts nobody may delay. */
static guint firm_depth(const BerthCore *core)
{
    return core->config.policy == BERTH_POLICY_EASY ? 1
                                                    : (guint)core->tunings[BERTH_TUNING_PLAN_DEPTH];
}

/* So many there are: without slack the others would be in nobody's way. */
static guint plan_depth(const BerthCore *core)
{
    gboolean has_slack = (core->config.features & BERTH_FEATURE_OPPORTUNISTIC) != 0;
    return firm_depth(core) + (has_slack ? (guint)core->tunings[BERTH_TUNING_SLACK_PLAN_DEPTH] : 0);
}

static gboolean search(Pass *pass, const CoreClass *class, guint heeds, const GArray *candidates,
                       guint32 *nodes)
{
    BerthCore *core = pass->core;
    guint32 avoid = core_placement_avoid(class);
    gint64 length_usec = core_class_length_usec(core, class);
    return candidates == NULL
               ? core_search_now(core, class, length_usec, heeds, avoid, nodes)
               : core_search_among(core, class, length_usec, heeds, avoid, candidates, nodes);
}

/* On CANDIDATES; NULL = anywhere. Who could start in slack leaves room to all that are planned; the
 * others only to the first of them. TRUE: it has, and another class may be in its place. */
static gboolean try_to_start(Pass *pass, CoreClass *class, const GArray *candidates)
{
    BerthCore *core = pass->core;
    guint32 *nodes = nodes_for(pass, class);
    if (!search(pass, class, CORE_HEEDS_ALL, candidates, nodes) &&
        (core_plan_len(core->plan) <= firm_depth(core) || core_slack_could_start(core, class) ||
         !search(pass, class, firm_depth(core), candidates, nodes)))
        return FALSE;
    core_placement_start(core, class, nodes);
    return TRUE;
}

static void make_plan(Pass *pass)
{
    BerthCore *core = pass->core;
    guint depth = plan_depth(core);
    while (core_plan_len(core->plan) < depth) {
        Cursor *cursor = first_cursor(pass);
        if (pass->at < core->order->len) {
            CoreOrdered ordered = g_array_index(core->order, CoreOrdered, pass->at);
            gboolean is_first = cursor == NULL || ordered.rank > cursor->rank ||
                                (ordered.rank == cursor->rank && ordered.head < cursor->job->id);
            if (is_first && (core_placement_park(core, ordered.class) ||
                             try_to_start(pass, ordered.class, NULL)))
                continue;
            if (is_first) {
                ordered.class->looked_at = core->pass;
                add_cursor(pass, &ordered);
                pass->at++;
                continue;
            }
        }
        if (cursor == NULL)
            return;
        plan_next_of(pass, cursor);
    }
}

static void drop_cursors(Pass *pass)
{
    for (guint i = 0; i < pass->cursors->len; i++)
        core_heap_walk_end(&g_array_index(pass->cursors, Cursor, i).jobs);
    g_array_set_size(pass->cursors, 0);
}

/* --- the others ----------------------------------------------------------------------------- */

/* A guest that has room on a fresh node starts there; but a gang needs room for the others too, and
 * who could start in slack keeps out of the way of more. */
static gboolean may_fail(const BerthCore *core, const CoreClass *class)
{
    return class->shape.guests > 1 || core_plan_len(core->plan) > firm_depth(core);
}

/* Goes through all of the order behind the planned ones, in a bounded number of searches that fail. */
static void fill_fresh(Pass *pass)
{
    BerthCore *core = pass->core;
    gint64 failures_left = core->tunings[BERTH_TUNING_BACKFILL_DEPTH];
    g_autoptr(CoreFresh) fresh = core_fresh_new(core, firm_depth(core));
    while (pass->at < core->order->len) {
        const CoreOrdered *ordered = &g_array_index(core->order, CoreOrdered, pass->at);
        CoreClass *class = ordered->class;
        gboolean is_worth_it =
            core_fresh_may_have_room(fresh, ordered->size) &&
            core_fresh_has_room(fresh, class, core_class_length_usec(core, class));
        if (is_worth_it ? failures_left <= 0 && may_fail(core, class)
                        : failures_left <= 0 || !core->full_pass_wanted) {
            pass->at++;
        } else if (core_placement_park(core, class)) {
            continue;
        } else if (try_to_start(pass, class, core->full_pass_wanted ? NULL : core->nodes.fresh)) {
            core_fresh_update(fresh, pass->nodes, class->shape.guests);
        } else {
            class->looked_at = core->pass;
            failures_left -= is_worth_it;
            pass->at++;
        }
    }
}

static int compare_untried(gconstpointer a, gconstpointer b, gpointer user_data)
{
    BerthCore *core = user_data;
    guint place_a = core_order_place(core, *(CoreClass *const *)a);
    guint place_b = core_order_place(core, *(CoreClass *const *)b);
    return place_a < place_b ? -1 : place_a > place_b;
}

static void try_untried(Pass *pass)
{
    BerthCore *core = pass->core;
    g_ptr_array_sort_with_data(core->untried, compare_untried, core);
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
        core_plan_len(core->plan) < plan_depth(core) ||
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
    Pass pass = {.core = core, .cursors = g_array_new(FALSE, FALSE, sizeof(Cursor))};
    if (needs_plan(core)) {
        core_plan_clear(core);
        make_plan(&pass);
        drop_cursors(&pass);
        core_slack_promote_fresh(core);
        fill_fresh(&pass);
    }
    try_untried(&pass);
    g_array_unref(pass.cursors);
    g_free(pass.nodes);
}
