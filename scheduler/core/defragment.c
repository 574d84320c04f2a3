/* SPDX-License-Identifier: Apache-2.0 */
/* DECIDE, in rounds: which backed guest leaves its node, so that a job with a firm planned start can start
 * there as soon as it is gone: enough is free for the job, but not on one node.
 *
 * Who moves is backed where it goes, and the job has room where that comes from, each beside the starts planned there
 * that come before the job's own. So none of these comes later. The job's own is not where it was any more, and
 * those behind it may come later, as whenever one before them moves up. A guest that is being moved is thought to leave when its move is done
 * (profile.c), so that the job's start is planned there, and the room is kept for it, as soon as the move begins.
 *
 * For a gang the same, if one guest that leaves makes room for all that it lacks now.
 *
 * O(nodes + guests of those nodes that lack no more than some node has free), and STARTS_MAX * PLACES_MAX
 * searches for a place, whatever waits. */
#include "scheduler/core/defragment.h"

#include "scheduler/core/class.h"
#include "scheduler/core/job.h"
#include "scheduler/core/limit.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/plan.h"
#include "scheduler/core/predict.h"
#include "scheduler/core/profile.h"
#include "scheduler/core/relief.h"
#include "scheduler/core/search.h"
#include "scheduler/core/timers.h"
#include "scheduler/core/want.h"

/* So many planned starts are looked at in a round. */
#define STARTS_MAX 4u
/* For so many guests a place is looked for, for each of them. */
#define PLACES_MAX 8u

/* A guest that could leave, and how long that takes. */
typedef struct {
    CoreGuest *guest;
    gint64 takes_usec;
} Candidate;

typedef struct {
    BerthCore *core;
    const CorePlanned *planned;
    const CoreClass *class;
    CoreNeed need;
    guint32 missing;    /* guests for which there is no room now */
    GArray *candidates; /* Candidate */
} Quest;

/* --- who could leave ------------------------------------------------------------------------ */

static guint32 count_now(const Quest *quest, CoreNode *node)
{
    if (!core_class_allows(quest->class, node->handle) ||
        !core_size_fits(quest->need.size, core_node_free(node)))
        return 0;
    return core_profile_count(quest->core, node, &quest->need, quest->core->now_usec,
                              quest->class->shape.guests);
}

/* FALSE: there is room for all, and something else is in the way. */
static gboolean count_missing(Quest *quest)
{
    const CoreNodes *nodes = &quest->core->nodes;
    quest->missing = quest->class->shape.guests;
    for (guint32 handle = 1; handle <= nodes->nodes->len && quest->missing > 0; handle++)
        quest->missing -= MIN(quest->missing, count_now(quest, core_nodes_get(nodes, handle)));
    return quest->missing > 0;
}

/* The job starts so much earlier that its move is worth while, as that of who is moved for himself. */
static gboolean is_worth_it(const Quest *quest, gint64 takes_usec)
{
    const BerthCore *core = quest->core;
    gint64 earlier_usec = quest->planned->start_usec - core_time_add(core->now_usec, takes_usec);
    return earlier_usec > 0 && core_want_is_worth(core, takes_usec, earlier_usec);
}

static CoreSize times(CoreSize size, guint64 n)
{
    return (CoreSize){(guint32)MIN(size.vcpus * n, G_MAXUINT32), size.memory_mib * n};
}

static void add_candidates(Quest *quest, CoreNode *node)
{
    const BerthCore *core = quest->core;
    guint32 wanted = count_now(quest, node) + quest->missing;
    CoreSize size = times(quest->need.size, wanted);
    CoreSize lack = core_size_sub(size, core_node_free(node));
    CoreSize most = core_nodes_most_free(&core->nodes);
    if (!core_node_is_open(node) || node->oversubscribed || node->n_strays > 0 ||
        !core_class_allows(quest->class, node->handle) ||
        !core_size_fits(size, core_node_capacity(node)) || !core_size_fits(lack, most))
        return;
    for (guint i = 0; i < node->guests->len; i++) {
        CoreGuest *guest = g_ptr_array_index(node->guests, i);
        if (guest->is_opportunistic || !core_size_fits(lack, guest->size) ||
            !core_size_fits(guest->size, most) || !core_want_may_move(core, guest))
            continue;
        Candidate candidate = {guest, core_move_migrate_usec(core, guest)};
        if (is_worth_it(quest, candidate.takes_usec) &&
            core_profile_count_without(core, node, &quest->need, guest, wanted) == wanted)
            g_array_append_val(quest->candidates, candidate);
    }
}

/* Those that move fastest first; none of them is of a gang. */
static int compare_candidates(gconstpointer first, gconstpointer second)
{
    const Candidate *a = first;
    const Candidate *b = second;
    const BerthCoreTask *task_a = &a->guest->task->record;
    const BerthCoreTask *task_b = &b->guest->task->record;
    if (a->takes_usec != b->takes_usec)
        return a->takes_usec < b->takes_usec ? -1 : 1;
    if (task_a->job != task_b->job)
        return task_a->job < task_b->job ? -1 : 1;
    return task_a->task < task_b->task ? -1 : task_a->task > task_b->task;
}

/* --- where to ------------------------------------------------------------------------------- */

/* It would take none of the room that the others of a gang are to have. */
static gboolean leaves_room(const Quest *quest, CoreNode *to, const CoreGuest *guest)
{
    CoreSize size = quest->need.size;
    CoreSize room = core_node_free(to);
    guint32 guests = quest->class->shape.guests;
    return guests == 1 || !core_class_allows(quest->class, to->handle) ||
           core_size_count(size, core_size_sub(room, guest->size), guests) ==
               core_size_count(size, room, guests);
}

/* Those in slack there need not leave for it: it does not wait for them, and what it needs would be short until they have. */
static gboolean displaces_nobody(const CoreNode *to, const CoreGuest *guest)
{
    return core_relief_taken_mib(to) + core_predict_taken_mib(guest) <= to->capacity.memory_mib;
}

/* Beside the planned starts that come before the job's. The best fit, or of one that was resized the first;
 * where that is its own node, which has as much free, another one. */
static CoreNode *place_for(const Quest *quest, const CoreGuest *guest)
{
    BerthCore *core = quest->core;
    CoreNode *to = core_limit_find_backing(core, guest, quest->need.heeds);
    if (to != NULL && to->handle == guest->node)
        to = core_limit_find_place(core, guest, guest->size, quest->need.heeds);
    gboolean is_fit = to != NULL && !core_move_was_refused(core, to) &&
                      displaces_nobody(to, guest) && leaves_room(quest, to, guest);
    return is_fit ? to : NULL;
}

/* TRUE: somebody is wanted elsewhere. */
static gboolean want_one_elsewhere(const Quest *quest)
{
    BerthCore *core = quest->core;
    g_array_sort(quest->candidates, compare_candidates);
    for (guint i = 0; i < MIN(quest->candidates->len, PLACES_MAX); i++) {
        CoreGuest *guest = g_array_index(quest->candidates, Candidate, i).guest;
        CoreNode *to = place_for(quest, guest);
        if (to == NULL)
            continue;
        if (core_want_on(core, guest, to, FALSE, BERTH_REASON_DEFRAGMENT)) {
            core_move_back_off(core, guest);
            core->plan_wanted = TRUE;
        }
        return TRUE;
    }
    return FALSE;
}

/* --- the round ------------------------------------------------------------------------------ */

static gboolean help(BerthCore *core, const CorePlanned *planned)
{
    const CoreClass *class = core_job_get(core, planned->job)->class;
    CoreNeed need =
        core_search_need(core, class, core_class_length_usec(core, class), planned->place);
    g_autoptr(GArray) candidates = g_array_new(FALSE, FALSE, sizeof(Candidate));
    Quest quest = {core, planned, class, need, 0, candidates};
    if (!count_missing(&quest))
        return FALSE;
    for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++)
        add_candidates(&quest, core_nodes_get(&core->nodes, handle));
    return want_one_elsewhere(&quest);
}

void core_defragment(BerthCore *core)
{
    gint64 soon_usec =
        core_time_add(core->now_usec, core->tunings[BERTH_TUNING_BALANCE_INTERVAL_USEC]);
    const CorePlanned *planned;
    gboolean is_done = !(core->config.features & BERTH_FEATURE_BALANCING);
    for (guint at = 0; at < STARTS_MAX && !is_done; at++) {
        planned = core_plan_at(core->plan, CORE_PLAN_FIRM, at);
        is_done = planned == NULL || (planned->start_usec > soon_usec &&
                                      !core_planned_is_idle(core, planned) && help(core, planned));
    }
}
