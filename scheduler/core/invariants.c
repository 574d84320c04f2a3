/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the check of everything that the other files promise. For tests. */
#include "scheduler/core/cells.h"
#include "scheduler/core/checkpoint.h"
#include "scheduler/core/class.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/fit.h"
#include "scheduler/core/freeze.h"
#include "scheduler/core/hold.h"
#include "scheduler/core/job.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/order_tree.h"
#include "scheduler/core/owner.h"
#include "scheduler/core/plan.h"
#include "scheduler/core/profile.h"
#include "scheduler/core/replan.h"
#include "scheduler/core/timers.h"

#include <stdlib.h>

#define CHECK(condition, ...)                                                                      \
    G_STMT_START                                                                                   \
    {                                                                                              \
        if (!(condition))                                                                          \
            complain(__LINE__, #condition, g_strdup_printf(__VA_ARGS__));                          \
    }                                                                                              \
    G_STMT_END

G_NORETURN static void complain(int line, const char *condition, char *where)
{
    g_autofree char *message = g_strdup_printf("%s: not (%s)", where, condition);
    g_free(where);
    g_assertion_message("berth", __FILE__, line, "berth_core_assert_invariants", message);
    abort();
}

/* --- tasks ---------------------------------------------------------------------------------- */

static gboolean state_allows_phase(BerthJobState state, BerthGuestPhase phase)
{
    switch (phase) {
    case BERTH_GUEST_STARTING:
    case BERTH_GUEST_RUNNING:
    case BERTH_GUEST_STOPPING:
        return state == BERTH_JOB_RUNNING ||
               (state == BERTH_JOB_SUSPENDED && phase == BERTH_GUEST_RUNNING);
    case BERTH_GUEST_NONE:
    case BERTH_GUEST_RELEASING:
    case BERTH_GUEST_FENCING:
        return state != BERTH_JOB_RUNNING;
    }
    return FALSE;
}

static gboolean is_over(const BerthCore *core, const CoreTask *task)
{
    return g_ptr_array_find(core->over, task, NULL);
}

/* A PENDING task without a guest is among the waiting, backs off, or is held: never nowhere. */
static void check_waits_somewhere(const CoreTask *task)
{
    const BerthCoreTask *record = &task->record;
    gboolean waits = record->state == BERTH_JOB_PENDING && record->phase == BERTH_GUEST_NONE;
    gboolean backs_off = core_heap_has(&task->timer.link);
    gboolean is_returned = core_heap_has(&task->returned);
    gboolean is_held = core_hold_reason(task->job, record->task) != BERTH_REASON_NONE;
    CHECK(!is_returned || (waits && !is_held), "job %" G_GUINT64_FORMAT, record->job);
    if (waits)
        CHECK(is_returned + backs_off + is_held == 1, "job %" G_GUINT64_FORMAT, record->job);
    if (record->state == BERTH_JOB_PENDING)
        CHECK(record->start_usec == 0 && record->end_usec == 0, "job %" G_GUINT64_FORMAT,
              record->job);
}

/* Who is frozen to disk has something to go on from, and waits nowhere. */
static void check_checkpoints(const BerthCore *core, const CoreTask *task)
{
    const BerthCoreTask *record = &task->record;
    gboolean is_due = core_heap_has(&task->checkpoint_timer.link);
    if (record->state == BERTH_JOB_SUSPENDED && record->phase != BERTH_GUEST_RUNNING)
        CHECK(record->checkpoint_epoch > 0 && record->freeze_to_disk &&
                  record->reason == record->freeze_reason && !core_heap_has(&task->returned) &&
                  (record->phase != BERTH_GUEST_NONE || !core_heap_has(&task->timer.link)),
              "job %" G_GUINT64_FORMAT, record->job);
    CHECK(!record->freeze_to_disk || record->freeze_reason != BERTH_REASON_NONE,
          "job %" G_GUINT64_FORMAT, record->job);
    CHECK((record->checkpoint_open != 0) ==
              (record->phase != BERTH_GUEST_NONE && task->guests[0].op == BERTH_OP_CHECKPOINTING),
          "job %" G_GUINT64_FORMAT, record->job);
    CHECK(record->checkpoint_wanted == BERTH_REASON_NONE || record->checkpoint_space_mib > 0,
          "job %" G_GUINT64_FORMAT, record->job);
    CHECK(record->checkpoint_open <= record->checkpoint_last &&
              record->checkpoint <= record->checkpoint_last &&
              record->checkpoint_requeues <= record->requeues,
          "job %" G_GUINT64_FORMAT, record->job);
    CHECK(!is_due || (record->phase == BERTH_GUEST_RUNNING &&
                      record->checkpoint_wanted == BERTH_REASON_NONE),
          "job %" G_GUINT64_FORMAT, record->job);
}

static guint64 slack_space_mib(const BerthCore *core, const CoreTask *task)
{
    guint64 sum_mib = 0;
    for (guint32 i = 0; i < task->n_guests; i++)
        sum_mib += core_checkpoint_slack_mib(core, &task->guests[i]);
    return sum_mib;
}

/* What they take is what the records say, and what those in slack may need is kept for them. */
static void check_stored(const BerthCore *core)
{
    GHashTableIter iter;
    gpointer key;
    guint64 sum_mib = 0;
    guint64 kept_mib = 0;
    guint64 slack_mib = 0;
    g_hash_table_iter_init(&iter, core->jobs);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        const CoreJob *job = key;
        for (guint32 i = 0; i < job->n_tasks; i++) {
            sum_mib += job->tasks[i]->record.checkpoints_mib;
            kept_mib += job->tasks[i]->record.checkpoint_space_mib;
            slack_mib += slack_space_mib(core, job->tasks[i]);
        }
    }
    CHECK(sum_mib + kept_mib == core->stored_mib, "%" G_GUINT64_FORMAT " MiB", sum_mib);
    CHECK(kept_mib == core->kept_mib, "%" G_GUINT64_FORMAT " MiB", kept_mib);
    CHECK(slack_mib == core->space_mib, "%" G_GUINT64_FORMAT " MiB", slack_mib);
}

/* What owners are said to run is what their tasks have. */
static void check_owners(BerthCore *core)
{
    GHashTableIter iter;
    gpointer key;
    BerthCoreLimits sum = {0};
    BerthCoreLimits all = core_owner_all_running(core);
    g_hash_table_iter_init(&iter, core->jobs);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        const CoreJob *job = key;
        for (guint32 i = 0; i < job->n_tasks; i++) {
            const CoreTask *task = job->tasks[i];
            sum.running_tasks += task->record.phase != BERTH_GUEST_NONE;
            sum.vcpus += task->n_guests * task->counted.vcpus;
            sum.memory_mib += task->n_guests * task->counted.memory_mib;
        }
    }
    CHECK(sum.running_tasks == all.running_tasks && sum.vcpus == all.vcpus &&
              sum.memory_mib == all.memory_mib,
          "%u vCPUs of %u tasks", all.vcpus, all.running_tasks);
}

static void check_guest(const BerthCore *core, const CoreGuest *guest)
{
    const BerthCoreTask *record = &guest->task->record;
    const CoreNode *node = core_nodes_get(&core->nodes, guest->node);
    CHECK(node != NULL && record->epoch > 0, "job %" G_GUINT64_FORMAT, record->job);
    CHECK(g_ptr_array_index(node->guests, guest->place) == guest, "job %" G_GUINT64_FORMAT,
          record->job);
    CHECK(core_class_allows(guest->task->job->class, node->handle), "job %" G_GUINT64_FORMAT,
          record->job);
    CHECK((guest->phase == BERTH_GUEST_FENCING) ==
              (guest->has_left || node->state == BERTH_NODE_LOST),
          "job %" G_GUINT64_FORMAT " on %s", record->job, node->name);
    CHECK(guest->phase == record->phase || record->phase == BERTH_GUEST_RELEASING,
          "job %" G_GUINT64_FORMAT, record->job);
    CHECK(MAX(guest->balloon_mib, guest->to_balloon_mib) < guest->size.memory_mib,
          "job %" G_GUINT64_FORMAT, record->job);
    CHECK(guest->space_mib == core_checkpoint_slack_mib(core, guest), "job %" G_GUINT64_FORMAT,
          record->job);
}

/* A gang of which a part has begun what may not begin again waits on (room.h). */
static gboolean may_wait_on(const CoreTask *task)
{
    gboolean has_begun = task->record.start_taken;
    for (guint32 i = 0; i < task->n_guests; i++)
        has_begun |= task->guests[i].heard;
    return task->n_guests > 1 && task->job->no_requeue && has_begun;
}

static gboolean is_taken_away(const CoreGuest *guest)
{
    gboolean moves = guest->op == BERTH_OP_MIGRATING && !guest->waits_for_room;
    return moves || (guest->op == BERTH_OP_CHECKPOINTING && guest->task->record.checkpoint_stops);
}

/* Who waits for room is backed there, and is given up when the evacuation bound has passed. */
static void check_room(const BerthCore *core, const CoreGuest *guest)
{
    const BerthCoreTask *record = &guest->task->record;
    gint64 bound_usec = core->tunings[BERTH_TUNING_EVACUATION_MAX_USEC];
    gboolean is_timed = core_heap_has(&guest->timer.link);
    gboolean moves = guest->op == BERTH_OP_MIGRATING;
    CHECK(!is_timed || guest->waits_for_room || guest->leaves_usec != 0, "job %" G_GUINT64_FORMAT,
          record->job);
    CHECK((guest->leaves_usec != 0) == is_taken_away(guest), "job %" G_GUINT64_FORMAT, record->job);
    CHECK(guest->leaves_usec == 0 || is_timed, "job %" G_GUINT64_FORMAT, record->job);
    CHECK(guest->ungrown_mib == 0 || guest->op == BERTH_OP_RESIZING, "job %" G_GUINT64_FORMAT,
          record->job);
    if (!guest->waits_for_room)
        return;
    CHECK(is_timed || may_wait_on(guest->task), "job %" G_GUINT64_FORMAT, record->job);
    CHECK(!is_timed || guest->timer.due_usec <= core_time_add(core->now_usec, bound_usec),
          "job %" G_GUINT64_FORMAT, record->job);
    CHECK(record->stop_reason == BERTH_REASON_NONE, "job %" G_GUINT64_FORMAT, record->job);
    CHECK(!(moves ? guest->is_opportunistic_there : guest->is_opportunistic),
          "job %" G_GUINT64_FORMAT, record->job);
    CHECK(guest->phase == BERTH_GUEST_STARTING
              ? guest->op == BERTH_OP_NONE
              : guest->phase == BERTH_GUEST_RUNNING && (moves || guest->op == BERTH_OP_RESIZING),
          "job %" G_GUINT64_FORMAT, record->job);
    CHECK(moves == g_ptr_array_find(core->held, guest, NULL), "job %" G_GUINT64_FORMAT,
          record->job);
}

/* Its timer runs, be it to what is assumed, or waits for what is being done to it, or for an operator to thaw it. */
static void check_time_limit(const CoreTask *task)
{
    const BerthCoreTask *record = &task->record;
    gboolean is_timed = core_heap_has(&task->timer.link);
    gboolean may_reach_it = record->stop_reason == BERTH_REASON_NONE;
    gboolean stands_free = record->frozen_usec > 0 && !core_freeze_is_charged(record->reason);
    CHECK(is_timed ? may_reach_it
                   : !may_reach_it || stands_free || task->guests[0].op != BERTH_OP_NONE,
          "job %" G_GUINT64_FORMAT, record->job);
}

static void check_guests(const BerthCore *core, const CoreTask *task)
{
    const BerthCoreTask *record = &task->record;
    gboolean all_up = TRUE;
    for (guint32 i = 0; i < task->n_guests; i++) {
        const CoreGuest *guest = &task->guests[i];
        if (guest->phase == BERTH_GUEST_NONE)
            continue;
        check_guest(core, guest);
        check_room(core, guest);
        all_up &= core_nodes_get(&core->nodes, guest->node)->state == BERTH_NODE_UP;
    }
    if (record->phase == BERTH_GUEST_STOPPING)
        CHECK(record->stop_reason != BERTH_REASON_NONE, "job %" G_GUINT64_FORMAT, record->job);
    if (record->phase == BERTH_GUEST_STARTING || record->phase == BERTH_GUEST_RUNNING)
        CHECK(!all_up || record->stop_reason == BERTH_REASON_NONE, "job %" G_GUINT64_FORMAT,
              record->job);
    if (record->phase == BERTH_GUEST_RUNNING)
        check_time_limit(task);
}

static void check_task(const BerthCore *core, const CoreTask *task)
{
    const BerthCoreTask *record = &task->record;
    CHECK(state_allows_phase(record->state, record->phase), "job %" G_GUINT64_FORMAT, record->job);
    if (berth_job_state_is_final(record->state))
        CHECK(is_over(core, task) == (record->phase == BERTH_GUEST_NONE) && record->end_usec > 0,
              "job %" G_GUINT64_FORMAT, record->job);
    check_waits_somewhere(task);
    CHECK(core_owner_counts(task), "job %" G_GUINT64_FORMAT, record->job);
    check_checkpoints(core, task);
    check_guests(core, task);
}

static void check_heap(const CoreHeap *heap)
{
    for (guint place = 1; place <= heap->n; place++) {
        CHECK(heap->links[place]->place == place, "heap place %u", place);
        CHECK(place == 1 || heap->compare(heap->links[place / 2], heap->links[place]) < 0,
              "heap place %u", place);
    }
}

static void check_job(const BerthCore *core, const CoreJob *job)
{
    guint32 active = 0;
    guint32 returned = 0;
    for (guint32 i = 0; i < job->n_tasks; i++) {
        const CoreTask *task = job->tasks[i];
        check_task(core, task);
        CHECK(i == 0 || job->tasks[i - 1]->record.task < task->record.task,
              "job %" G_GUINT64_FORMAT, job->id);
        active += task->record.phase != BERTH_GUEST_NONE;
        returned += core_heap_has(&task->returned);
    }
    CHECK(active == job->n_active && returned == core_job_n_returned(job), "job %" G_GUINT64_FORMAT,
          job->id);
    if (job->returned != NULL)
        check_heap(job->returned);
    CHECK(job->throttle == 0 || active <= job->throttle, "job %" G_GUINT64_FORMAT, job->id);
    CHECK(core_hold_is_consistent(job), "job %" G_GUINT64_FORMAT, job->id);
    CHECK(core_heap_has(&job->waiting) == (core_job_n_startable(job) > 0), "job %" G_GUINT64_FORMAT,
          job->id);
}

/* --- nodes ---------------------------------------------------------------------------------- */

static void check_tree(const CoreNodes *nodes)
{
    for (guint i = 0; i < nodes->nodes->len; i++) {
        const CoreNode *node = g_ptr_array_index(nodes->nodes, i);
        CoreSize free_size = core_node_free(node);
        const CoreSpan *leaf = &nodes->spans[nodes->width + i];
        CHECK(leaf->max_free.vcpus == free_size.vcpus &&
                  leaf->max_free.memory_mib == free_size.memory_mib,
              "node %s", node->name);
        CoreNeeds slack = core_node_slack(nodes, node);
        for (guint at = nodes->width + i; at > 0 && core_node_is_open(node); at /= 2)
            CHECK(slack.cpu_milli <= nodes->slacks[at].most.cpu_milli &&
                      slack.memory_mib <= nodes->slacks[at].most.memory_mib &&
                      core_node_slack_load_mib(nodes, node, 1, 0) >=
                          nodes->slacks[at].least_load_mib,
                  "node %s", node->name);
        for (guint at = (nodes->width + i) / 2; at > 0; at /= 2)
            CHECK(core_size_fits(leaf->max_free, nodes->spans[at].max_free) &&
                      core_size_fits(leaf->max_capacity, nodes->spans[at].max_capacity) &&
                      core_size_fits(nodes->spans[at].min_capacity, leaf->min_capacity),
                  "node %s", node->name);
    }
}

/* What the guests of a node, and those on their way to it, come to. */
typedef struct {
    CoreSize backed, in_slack;
    CoreNeeds needs;
    guint64 slack_used_mib, extra_mib;
    guint n_in_slack, n_moves, n_held, n_waiting;
} Sums;

static void add_size(Sums *sums, CoreSize size, CoreNeeds needs, gboolean is_opportunistic)
{
    CoreSize *part = is_opportunistic ? &sums->in_slack : &sums->backed;
    *part = core_size_add(*part, size);
    sums->needs.cpu_milli += needs.cpu_milli;
    sums->needs.memory_mib += needs.memory_mib;
    sums->n_in_slack += is_opportunistic;
}

static void add_move(Sums *sums, const CoreGuest *guest)
{
    gboolean is_move = guest->op == BERTH_OP_MIGRATING || guest->op == BERTH_OP_CHECKPOINTING;
    sums->n_moves += is_move && !guest->waits_for_room;
    sums->n_held += is_move && guest->waits_for_room;
}

static void add_here(Sums *sums, const CoreNode *node)
{
    for (guint i = 0; i < node->guests->len; i++) {
        const CoreGuest *guest = g_ptr_array_index(node->guests, i);
        CHECK(guest->node == node->handle && guest->phase != BERTH_GUEST_NONE,
              "job %" G_GUINT64_FORMAT " on %s", guest->task->record.job, node->name);
        add_size(sums, guest->size, guest->needs, guest->is_opportunistic);
        add_move(sums, guest);
        sums->slack_used_mib += guest->is_opportunistic ? guest->used.memory_mib : 0;
        sums->extra_mib += guest->extra_mib;
        sums->n_waiting += guest->waits_for_room && guest->op != BERTH_OP_MIGRATING;
    }
}

static void add_incoming(Sums *sums, const CoreNode *node)
{
    for (guint i = 0; i < node->incoming->len; i++) {
        const CoreGuest *guest = g_ptr_array_index(node->incoming, i);
        CHECK(guest->op == BERTH_OP_MIGRATING && guest->to == node->handle &&
                  guest->to_place == i && guest->node != node->handle,
              "job %" G_GUINT64_FORMAT " to %s", guest->task->record.job, node->name);
        add_size(sums, guest->to_size, guest->held, guest->is_opportunistic_there);
        add_move(sums, guest);
        sums->slack_used_mib += guest->held_used_mib;
        sums->extra_mib += guest->held_extra_mib;
        sums->n_waiting += guest->waits_for_room;
    }
}

static void check_sums(const CoreNode *node)
{
    Sums sums = {0};
    add_here(&sums, node);
    add_incoming(&sums, node);
    CHECK(core_size_equal(sums.backed, node->reserved) &&
              core_size_equal(sums.in_slack, node->slack) && sums.n_in_slack == node->n_in_slack,
          "node %s", node->name);
    CHECK(sums.n_moves == node->n_moves && sums.n_held == node->n_held &&
              sums.n_waiting == node->n_waiting_for_room,
          "node %s", node->name);
    CHECK(sums.slack_used_mib == node->slack_used_mib && sums.extra_mib == node->extra_mib,
          "node %s", node->name);
    CHECK(sums.needs.cpu_milli == node->needs.cpu_milli &&
              sums.needs.memory_mib == node->needs.memory_mib,
          "node %s", node->name);
    CHECK(node->oversubscribed || core_size_fits(sums.backed, core_node_capacity(node)), "node %s",
          node->name);
}

static void check_node(const BerthCore *core, CoreNode *node)
{
    guint strays = 0;
    check_sums(node);
    CHECK(core_heap_has(&node->timer.link) == (node->state == BERTH_NODE_DOWN || node->is_closed) ||
              !node->has_joined,
          "node %s", node->name);
    CHECK(!node->is_closed || node->state == BERTH_NODE_UP, "node %s", node->name);
    CHECK(!node->is_hidden, "node %s", node->name);
    CHECK(core_cells_are_sound(node), "node %s", node->name);
    CHECK(core_profile_is_sound(core, node), "node %s", node->name);
    for (guint i = 0; i < core->strays->len; i++)
        strays += g_array_index(core->strays, CoreStray, i).node == node->handle;
    CHECK(strays == node->n_strays && (strays == 0 || node->state == BERTH_NODE_UP), "node %s",
          node->name);
}

/* --- order ---------------------------------------------------------------------------------- */

/* Nothing that could start is left waiting: the first in the order never fits. */
static void check_first_waits_for_room(BerthCore *core)
{
    CoreBarriers none = {NULL, 0};
    const CoreClass *class = core_order_at(core, 0);
    if (class == NULL || core->pass_wanted)
        return;
    for (guint i = 0; i < core->nodes.nodes->len; i++)
        if (((const CoreNode *)g_ptr_array_index(core->nodes.nodes, i))->blocks != NULL)
            return;
    g_autofree guint32 *nodes = g_new(guint32, class->shape.guests);
    CHECK(!core_fit(core, class, 0, none, nodes), "job %" G_GUINT64_FORMAT,
          core_class_head(class)->id);
}

static void check_order(const BerthCore *core)
{
    guint n = core_order_n(core);
    for (guint i = 0; i < n; i++) {
        const CoreClass *class = core_order_at(core, i);
        CHECK(class->is_ordered && class->head == core_class_head(class)->id, "place %u", i);
        CHECK(core_order_place(core, class) == i, "place %u", i);
    }
    CHECK(core_order_tree_is_sound(core), "%u classes", n);
}

static void check_classes(const BerthCore *core)
{
    GHashTableIter iter;
    gpointer key;
    guint waiting = 0;
    guint64 jobs_waiting = 0;
    guint references = 0;
    g_hash_table_iter_init(&iter, core->classes);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        const CoreClass *class = key;
        check_heap(&class->waiting);
        CHECK(class->is_ordered == (class->waiting.n > 0 && class->parked == NULL),
              "class of %u vCPUs", class->shape.size.vcpus);
        waiting += class->is_ordered;
        jobs_waiting += class->waiting.n;
        references += class->n_jobs;
    }
    CHECK(core->unsuited->len == 0, "%u jobs in no class that suits them", core->unsuited->len);
    CHECK(waiting == core_order_n(core), "%u classes wait", waiting);
    CHECK(jobs_waiting == core->n_waiting, "%" G_GUINT64_FORMAT " jobs wait", core->n_waiting);
    CHECK(references == g_hash_table_size(core->jobs), "%u jobs in classes", references);
}

/* What has changed since firm starts were planned is for the next time that they are. */
static void check_plan(BerthCore *core)
{
    gboolean is_due = core->pass_wanted || core->plan_wanted || core->storage_down ||
                      core->planned_change != core_nodes_next_change(&core->nodes);
    CHECK(is_due || core_replan_is_sound(core, CORE_PLAN_FIRM), "%u planned",
          core_plan_n(core->plan, CORE_PLAN_FIRM));
}

void berth_core_assert_invariants(BerthCore *core)
{
    GHashTableIter iter;
    gpointer key;
    core->is_checked = TRUE;
    g_hash_table_iter_init(&iter, core->jobs);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        check_job(core, key);
    check_stored(core);
    check_owners(core);
    for (guint i = 0; i < core->nodes.nodes->len; i++)
        check_node(core, g_ptr_array_index(core->nodes.nodes, i));
    check_tree(&core->nodes);
    check_order(core);
    check_heap(&core->timers);
    check_classes(core);
    check_first_waits_for_room(core);
    check_plan(core);
    CHECK(core->vacated->len == 0, "%u nodes", core->vacated->len);
}
