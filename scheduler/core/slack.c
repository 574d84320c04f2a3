/* SPDX-License-Identifier: Apache-2.0 */
/* DECIDE, opportunistic placement: a task that cannot be backed now may start where the node's
 * predicted needs, its own and the headroom leave room, if it can be moved or checkpointed when
 * that is needed.
 *
 * Of one guest only. Who is in slack must be able to leave within the evacuation bound, whatever else
 * happens, and only a checkpoint needs no room elsewhere. The guests of a gang work with each other:
 * checkpoints of them one by one, as the caps of moves ask for, are not of one moment, and together
 * are no state that the gang was ever in; all at once they would break the caps, on nodes too that
 * nobody presses. Nor may one of them be moved in the meantime and the others be written out. So a
 * gang waits until all of it can be backed. */
#include "scheduler/core/slack.h"

#include "scheduler/core/checkpoint.h"
#include "scheduler/core/class.h"
#include "scheduler/core/gather.h"
#include "scheduler/core/job.h"
#include "scheduler/core/lead.h"
#include "scheduler/core/maintenance.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/order.h"
#include "scheduler/core/order_tree.h"
#include "scheduler/core/placement.h"
#include "scheduler/core/plan.h"
#include "scheduler/core/predict.h"
#include "scheduler/core/profile.h"
#include "scheduler/core/relief.h"
#include "scheduler/core/task.h"
#include "scheduler/core/timers.h"

CoreLodger core_slack_lodger(const CoreGuest *guest)
{
    CoreNeeds needs = {guest->needs.cpu_milli, core_predict_taken_mib(guest)};
    const CoreJob *job = guest->task->job;
    return (CoreLodger){.class = job->class,
                        .size = guest->size,
                        .needs = needs,
                        .used_mib = guest->used.memory_mib,
                        .signal_usec = job->checkpoint_signal_usec};
}

CoreLodger core_slack_newcomer(const BerthCore *core, const CoreJob *job, const CoreTask *task)
{
    return (CoreLodger){.class = job->class,
                        .size = job->class->shape.start,
                        .needs = core_predict_new(core, job, task),
                        .used_mib = core_predict_held_mib(task),
                        .signal_usec = job->checkpoint_signal_usec,
                        .starts = TRUE};
}

/* All there but GONE, which may be NULL, and LODGER could be written out within the evacuation bound, if they grow a little
 * meanwhile. */
static gboolean could_leave(const BerthCore *core, const CoreNode *node, const CoreLodger *lodger,
                            const CoreGuest *gone)
{
    guint n_more = gone != NULL ? 0 : 1;
    guint64 gone_mib = gone != NULL ? gone->used.memory_mib : 0;
    return core_node_slack_load_mib(&core->nodes, node, n_more, lodger->used_mib - gone_mib) <=
           core_relief_most_mib(core);
}

/* What backed guests are about to take before LODGER could have left again is no room. Its copy is what it needs. */
static gboolean has_room_ahead(const BerthCore *core, const CoreNode *node,
                               const CoreLodger *lodger, guint64 room_mib)
{
    return lodger->needs.memory_mib + core_lead_with_mib(core, node, lodger->class,
                                                         lodger->needs.memory_mib,
                                                         lodger->signal_usec) <=
           room_mib;
}

/* There is too little memory: that is by what the guests are predicted to need, or only with what they occupy beyond that. */
static BerthHindrance memory_hindrance(const BerthCore *core, const CoreNode *node,
                                       const CoreLodger *lodger, const CoreGuest *gone)
{
    guint64 needed_mib = node->needs.memory_mib - (gone != NULL ? gone->needs.memory_mib : 0);
    guint64 most_mib = node->capacity.memory_mib * (1000 - core->nodes.keep_memory_permille) / 1000;
    gboolean is_open = core_node_is_open(node) && node->n_strays == 0;
    return is_open && needed_mib + lodger->needs.memory_mib <= most_mib ? BERTH_HINDRANCE_OCCUPIED
                                                                        : BERTH_HINDRANCE_MEMORY;
}

/* If GONE, who is there and may be NULL, had left. */
static BerthHindrance hindrance(const BerthCore *core, const CoreNode *node,
                                const CoreLodger *lodger, const CoreGuest *gone)
{
    gint64 length_usec = core_class_length_usec(core, lodger->class);
    CoreNeeds room = core_node_slack_without(&core->nodes, node, gone);
    guint64 gone_mib = gone != NULL ? gone->size.memory_mib : 0;
    guint64 reserved = node->reserved.memory_mib + node->slack.memory_mib - gone_mib;
    guint64 most = node->capacity.memory_mib *
                   (guint64)core->tunings[BERTH_TUNING_OVERCOMMIT_MAX_PERMILLE] / 1000;
    if (lodger->needs.cpu_milli > room.cpu_milli || lodger->size.vcpus > node->capacity.vcpus)
        return BERTH_HINDRANCE_CPU;
    if (lodger->needs.memory_mib > room.memory_mib)
        return memory_hindrance(core, node, lodger, gone);
    if (reserved + lodger->size.memory_mib > most)
        return BERTH_HINDRANCE_OVERCOMMIT;
    if (core->now_usec < node->pressed_until_usec)
        return BERTH_HINDRANCE_PRESSED;
    if (lodger->starts && core->now_usec < node->slack_rest_usec)
        return BERTH_HINDRANCE_RESTS;
    if (core_predict_awaits_any(core, node))
        return BERTH_HINDRANCE_AWAITED;
    if (!could_leave(core, node, lodger, gone))
        return BERTH_HINDRANCE_EVACUATION;
    if (core_maintenance_forbids(core, node, lodger->class, length_usec))
        return BERTH_HINDRANCE_MAINTENANCE;
    if (!has_room_ahead(core, node, lodger, room.memory_mib))
        return BERTH_HINDRANCE_PRESSED;
    return BERTH_HINDRANCE_NONE;
}

BerthHindrance core_slack_hindrance(const BerthCore *core, const CoreNode *node,
                                    const CoreLodger *lodger)
{
    return hindrance(core, node, lodger, NULL);
}

gboolean core_slack_has_room(const BerthCore *core, const CoreNode *node, const CoreLodger *lodger)
{
    return hindrance(core, node, lodger, NULL) == BERTH_HINDRANCE_NONE;
}

gboolean core_slack_has_room_without(const BerthCore *core, const CoreNode *node,
                                     const CoreLodger *lodger, const CoreGuest *guest)
{
    return hindrance(core, node, lodger, guest) == BERTH_HINDRANCE_NONE;
}

typedef struct {
    const CoreLodger *lodger;
    guint64 load_mib;      /* of a node with one more there that uses nothing, at most */
    const guint32 *except; /* handles */
    gsize n_except;
    gboolean was_close; /* a node's needs have room; what else is asked of it is not in the tree */
    CoreNode *second; /* for one that moves: it has room, but the latest that was to come did not */
} Quest;

static gboolean is_excepted(const Quest *quest, const CoreNode *node)
{
    gboolean found = FALSE;
    for (gsize i = 0; i < quest->n_except && !found; i++)
        found = quest->except[i] == node->handle;
    return found;
}

static CoreNode *find_below(const BerthCore *core, guint at, Quest *quest)
{
    const CoreNodes *nodes = &core->nodes;
    const CoreSlack *slack = &nodes->slacks[at];
    if (quest->lodger->needs.cpu_milli > slack->most.cpu_milli ||
        quest->lodger->needs.memory_mib > slack->most.memory_mib ||
        slack->least_load_mib > quest->load_mib)
        return NULL;
    if (at >= nodes->width) {
        CoreNode *node = g_ptr_array_index(nodes->nodes, at - nodes->width);
        quest->was_close = TRUE;
        if (is_excepted(quest, node) || !core_slack_has_room(core, node, quest->lodger))
            return NULL;
        if (quest->lodger->starts || !core_move_was_refused(core, node))
            return node;
        if (quest->second == NULL)
            quest->second = node;
        return NULL;
    }
    /* To where there is more memory first: that keeps the needs of the nodes apart. */
    guint first = 2 * at;
    if (nodes->slacks[first + 1].most.memory_mib > nodes->slacks[first].most.memory_mib)
        first++;
    CoreNode *node = find_below(core, first, quest);
    return node != NULL ? node : find_below(core, first ^ 1, quest);
}

static CoreNode *find_among_named(const BerthCore *core, const Quest *quest)
{
    const CoreLodger *lodger = quest->lodger;
    const CoreShape *shape = &lodger->class->shape;
    CoreNode *second = NULL;
    for (guint32 i = 0; i < shape->n_nodes; i++) {
        CoreNode *node = core_nodes_get(&core->nodes, shape->nodes[i]);
        if (is_excepted(quest, node) || !core_slack_has_room(core, node, lodger))
            continue;
        if (lodger->starts || !core_move_was_refused(core, node))
            return node;
        if (second == NULL)
            second = node;
    }
    return second;
}

/* OUT_WAS_CLOSE: FALSE: there is no room for the needs alone, on any node. */
static CoreNode *find(BerthCore *core, const CoreLodger *lodger, const guint32 *except,
                      gsize n_except, gboolean *out_was_close)
{
    const CoreShape *shape = &lodger->class->shape;
    guint64 most_mib = core_relief_most_mib(core);
    guint64 used_mib = core_nodes_grown_mib(&core->nodes, lodger->used_mib);
    *out_was_close = shape->n_nodes > 0;
    if (core->nodes.width == 0 || used_mib > most_mib)
        return NULL;
    Quest quest = {lodger, most_mib - used_mib, except, n_except, FALSE, NULL};
    if (shape->n_nodes > 0)
        return find_among_named(core, &quest);
    CoreNode *node = find_below(core, 1, &quest);
    *out_was_close = quest.was_close;
    return node != NULL ? node : quest.second;
}

CoreNode *core_slack_find(BerthCore *core, const CoreLodger *lodger, guint32 except)
{
    return core_slack_find_beside(core, lodger, &except, 1);
}

CoreNode *core_slack_find_beside(BerthCore *core, const CoreLodger *lodger, const guint32 *except,
                                 gsize n_except)
{
    gboolean was_close;
    return find(core, lodger, except, n_except, &was_close);
}

/* --- the pass ------------------------------------------------------------------------------- */

static gboolean wants_backing(const CoreTask *task)
{
    return task != NULL && task->record.wants_backing;
}

gboolean core_slack_could_start(BerthCore *core, const CoreClass *class)
{
    CoreJob *job = core_class_head(class);
    const CoreTask *task = core_placement_next(job);
    if (!(core->config.features & BERTH_FEATURE_OPPORTUNISTIC) ||
        !core_class_may_be_in_slack(core, class) ||
        !core_checkpoint_has_space_in_slack(core, class) || wants_backing(task))
        return FALSE;
    CoreLodger lodger = core_slack_newcomer(core, job, task);
    return core_slack_find(core, &lodger, core_placement_avoid(class)) != NULL;
}

#define VAIN_MAX 32

/* For whose needs no node has room: a look goes through much of the tree, as cpu is free here and memory there. Until
 * the pass is over nothing comes free, so that nobody else with such needs has to be looked for. */
typedef struct {
    CoreNeeds needs;
    guint64 used_mib;
} Vain;

typedef struct {
    gint64 failures_left;
    guint64 pass;
    Vain vain[VAIN_MAX];
    guint n_vain;
} SlackPass;

static gboolean needs_no_less(const Vain *a, const Vain *b)
{
    return a->needs.cpu_milli >= b->needs.cpu_milli && a->needs.memory_mib >= b->needs.memory_mib &&
           a->used_mib >= b->used_mib;
}

static gboolean is_in_vain(const SlackPass *pass, Vain looked_for)
{
    for (guint i = 0; i < pass->n_vain; i++)
        if (needs_no_less(&looked_for, &pass->vain[i]))
            return TRUE;
    return FALSE;
}

static void note_vain(SlackPass *pass, Vain looked_for)
{
    for (guint i = pass->n_vain; i > 0; i--)
        if (needs_no_less(&pass->vain[i - 1], &looked_for))
            pass->vain[i - 1] = pass->vain[--pass->n_vain];
    if (pass->n_vain < VAIN_MAX)
        pass->vain[pass->n_vain++] = looked_for;
}

static gboolean try_in_slack(BerthCore *core, SlackPass *pass, CoreClass *class)
{
    CoreJob *job = core_class_head(class);
    const CoreTask *task = core_placement_next(job);
    gboolean was_close;
    if (!core_checkpoint_has_space_in_slack(core, class) || wants_backing(task))
        return FALSE;
    CoreLodger lodger = core_slack_newcomer(core, job, task);
    Vain looked_for = {lodger.needs, lodger.used_mib};
    if (is_in_vain(pass, looked_for))
        return FALSE;
    guint32 avoid = core_placement_avoid(class);
    CoreNode *node = find(core, &lodger, &avoid, 1, &was_close);
    if (node == NULL) {
        if (!was_close)
            note_vain(pass, looked_for);
        return FALSE;
    }
    core_placement_start_in_slack(core, class, node->handle);
    return TRUE;
}

/* When as many have failed as may, only those are tried that were kept from room because of slack. */
static gboolean is_to_be_tried(const CoreOrderSum *sum, gpointer user_data)
{
    const SlackPass *pass = user_data;
    return sum->may_be_in_slack && (pass->failures_left > 0 || sum->left_to_slack == pass->pass);
}

gboolean core_slack_pass(BerthCore *core)
{
    gboolean any = FALSE;
    SlackPass pass = {.failures_left = core->tunings[BERTH_TUNING_BACKFILL_DEPTH],
                      .pass = core->pass,
                      .n_vain = 0};
    CoreClass *class;
    guint at = 0;
    if (!(core->config.features & BERTH_FEATURE_OPPORTUNISTIC) || core->nodes.width == 0)
        return FALSE;
    while ((class = core_order_find(core, &at, is_to_be_tried, &pass)) != NULL) {
        if (core_placement_park(core, class)) {
            continue;
        } else if (try_in_slack(core, &pass, class)) {
            any = TRUE;
        } else {
            pass.failures_left--;
            at++;
        }
    }
    return any;
}

/* --- promotion in place --------------------------------------------------------------------- */

static gboolean may_promote(const BerthCore *core, const CoreGuest *guest)
{
    return guest->is_opportunistic && guest->op == BERTH_OP_NONE &&
           guest->phase == BERTH_GUEST_RUNNING && core->now_usec >= guest->promotion_rest_usec;
}

/* All of GUEST could be backed where it is, beside the planned starts before HEEDS. */
static gboolean has_room_beside(BerthCore *core, CoreNode *node, const CoreGuest *guest,
                                guint heeds)
{
    CoreNeed need = {guest->size, MAX(guest->task->planned_end_usec - core->now_usec, 1), TRUE,
                     heeds};
    return core_profile_count(core, node, &need, core->now_usec, 1) == 1;
}

static gboolean comes_before(BerthCore *core, const CoreJob *job, const CoreClass *class)
{
    gint64 rank = core_order_rank_of_job(core, job);
    return rank != class->rank ? rank > class->rank : job->id <= class->head;
}

static gboolean ranks_higher(BerthCore *core, const CoreJob *job, const CoreClass *class)
{
    return core_order_rank_of_job(core, job) > class->rank;
}

typedef struct {
    CoreGuest *guest;
    gint64 rank;
} Candidate;

static int compare_ranks(gconstpointer a, gconstpointer b)
{
    gint64 rank_a = ((const Candidate *)a)->rank;
    gint64 rank_b = ((const Candidate *)b)->rank;
    return rank_a > rank_b ? -1 : rank_a < rank_b;
}

/* Those on NODE, in their order: room goes to who ranks highest, and among equals by number. (transfer full) */
static GArray *candidates_on(BerthCore *core, const CoreNode *node)
{
    GArray *candidates = g_array_new(FALSE, FALSE, sizeof(Candidate));
    g_autoptr(GPtrArray) guests = core_node_guests_sorted(node);
    for (guint i = 0; i < guests->len; i++) {
        CoreGuest *guest = g_ptr_array_index(guests, i);
        Candidate candidate = {guest, core_order_rank_of_job(core, guest->task->job)};
        if (may_promote(core, guest))
            g_array_append_val(candidates, candidate);
    }
    g_array_sort(candidates, compare_ranks); /* which is stable */
    return candidates;
}

/* Of those that are WORTHY of that. */
static gboolean promote_those(BerthCore *core, const CoreClass *class, guint32 handle, guint32 n,
                              gboolean (*is_worthy)(BerthCore *core, const CoreJob *job,
                                                    const CoreClass *class))
{
    CoreNode *node = core_nodes_get(&core->nodes, handle);
    gboolean any = FALSE;
    guint64 taken_mib = core_relief_taken_mib(node) + n * class->shape.start.memory_mib;
    if (node->slack.memory_mib == 0 || taken_mib <= node->capacity.memory_mib ||
        !(core->config.features & BERTH_FEATURE_PROMOTION))
        return FALSE;
    g_autoptr(GArray) candidates = candidates_on(core, node);
    for (guint i = 0; i < candidates->len; i++) {
        CoreGuest *guest = g_array_index(candidates, Candidate, i).guest;
        if (!is_worthy(core, guest->task->job, class) ||
            !has_room_beside(core, node, guest, CORE_HEEDS_FIRM))
            continue;
        core_move_promote(core, guest);
        any = TRUE;
    }
    return any;
}

gboolean core_slack_promote_before(BerthCore *core, const CoreClass *class, guint32 handle)
{
    return promote_those(core, class, handle, 1, comes_before);
}

gboolean core_slack_promote_above(BerthCore *core, const CoreClass *class, guint32 handle,
                                  guint32 n)
{
    return promote_those(core, class, handle, n, ranks_higher);
}

gboolean core_slack_comes_first(BerthCore *core, const CoreGuest *guest)
{
    const CoreJob *job = guest->task->job;
    const CoreClass *first = core_order_at(core, 0);
    return first != NULL && job->id != first->head && comes_before(core, job, first);
}

/* Beside who is there, and nothing that is planned. */
static gboolean has_room_for_any(const BerthCore *core, const CoreNode *node)
{
    CoreSize room = core_node_free(node);
    for (guint i = 0; i < node->guests->len && room.vcpus > 0 && room.memory_mib > 0; i++) {
        const CoreGuest *guest = g_ptr_array_index(node->guests, i);
        if (core_size_fits(guest->size, room) && may_promote(core, guest))
            return TRUE;
    }
    return FALSE;
}

void core_slack_promote_on(BerthCore *core, CoreNode *node)
{
    if (node->slack.memory_mib == 0 || !(core->config.features & BERTH_FEATURE_PROMOTION) ||
        !has_room_for_any(core, node))
        return;
    g_autoptr(GArray) candidates = candidates_on(core, node);
    for (guint i = 0; i < candidates->len; i++) {
        CoreGuest *guest = g_array_index(candidates, Candidate, i).guest;
        if (!has_room_beside(core, node, guest, CORE_HEEDS_FIRM))
            continue;
        core_gather(core);
        if (has_room_beside(core, node, guest, CORE_HEEDS_ALL))
            core_move_promote(core, guest);
    }
}

void core_slack_promote_fresh(BerthCore *core)
{
    for (guint i = 0; i < core->nodes.fresh->len; i++)
        core_slack_promote_on(
            core, core_nodes_get(&core->nodes, g_array_index(core->nodes.fresh, guint32, i)));
}
