/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the answers to what people ask for: submit, cancel, hold, release, freeze, thaw. */
#include "scheduler/core/requests.h"

#include "common/error.h"
#include "scheduler/core/checkpoint.h"
#include "scheduler/core/class.h"
#include "scheduler/core/depend.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/freeze.h"
#include "scheduler/core/job.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/order.h"
#include "scheduler/core/owner.h"
#include "scheduler/core/profile.h"
#include "scheduler/core/running.h"
#include "scheduler/core/task.h"
#include "scheduler/core/timers.h"

/* --- submit --------------------------------------------------------------------------------- */

/* Among the nodes that JOB may use: whether one is large enough or has not said how large it is,
 * and the largest. */
typedef struct {
    guint32 places; /* as many guests fit between them, up to those of a task */
    gboolean has_room;
    gboolean has_unknown;
    const CoreNode *largest;
} Candidates;

static void consider(Candidates *candidates, const CoreNode *node, CoreSize need, guint32 guests)
{
    if (!node->has_joined) {
        candidates->has_unknown = TRUE;
        return;
    }
    candidates->places +=
        core_size_count(need, core_node_capacity(node), guests - candidates->places);
    candidates->has_room = candidates->places == guests;
    if (candidates->largest == NULL || core_node_is_larger(node, candidates->largest))
        candidates->largest = node;
}

static const char *plural(guint32 number)
{
    return number == 1 ? "" : "s";
}

static void set_error_too_large(const BerthCore *core, const BerthCoreJob *job,
                                const CoreNode *largest, GError **error)
{
    guint64 overhead = core->config.guest_overhead_mib;
    guint64 memory = largest->capacity.memory_mib;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "no node is large enough for %" G_GUINT32_FORMAT " vCPU%s and %" G_GUINT64_FORMAT
                " MiB: the largest%s, %s, has %" G_GUINT32_FORMAT " vCPU%s and %" G_GUINT64_FORMAT
                " MiB for one guest; ask for less",
                job->resources.vcpus, plural(job->resources.vcpus), job->resources.memory_mib,
                job->n_nodes > 0 ? " of those that you named" : "", largest->name,
                largest->capacity.vcpus, plural(largest->capacity.vcpus),
                memory - MIN(memory, overhead));
}

/* That is told without a look at each of them. */
static gboolean check_largest(BerthCore *core, const BerthCoreJob *job, CoreSize need,
                              GError **error)
{
    CoreSize most;
    const CoreNode *largest = core_nodes_largest(&core->nodes, &most);
    if (job->n_nodes > 0 || largest == NULL || core_size_fits(need, most))
        return TRUE;
    set_error_too_large(core, job, largest, error);
    return FALSE;
}

static gboolean check_fits_some_node(BerthCore *core, const BerthCoreJob *job, GError **error)
{
    Candidates candidates = {0};
    CoreSize need = core_size_of(core, &job->resources);
    guint32 guests = MAX(job->guests, 1);
    if (!check_largest(core, job, need, error))
        return FALSE;
    if (job->n_nodes == 0) {
        for (guint32 handle = 1; handle <= core->nodes.nodes->len && !candidates.has_room; handle++)
            consider(&candidates, core_nodes_get(&core->nodes, handle), need, guests);
        /* One that never joined says nothing about what the others can hold. */
        candidates.has_unknown = candidates.largest == NULL;
    }
    guint32 n_named = 0;
    g_autofree guint32 *named = core_class_node_set(job->nodes, job->n_nodes, &n_named);
    for (guint32 i = 0; i < n_named && !candidates.has_room; i++)
        consider(&candidates, core_nodes_get(&core->nodes, named[i]), need, guests);
    if (candidates.has_room || candidates.has_unknown)
        return TRUE;
    if (candidates.places > 0)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "there is no room for so many guests: all nodes%s together hold %u of that "
                    "size, not %u; ask for fewer or smaller ones",
                    job->n_nodes > 0 ? " that you named" : "", candidates.places, guests);
    else
        set_error_too_large(core, job, candidates.largest, error);
    return FALSE;
}

/* To SIZE, of one that fits as it begins. */
static gboolean check_may_grow_to(BerthCore *core, const BerthCoreJob *job,
                                  const BerthResources *size, GError **error)
{
    BerthCoreJob grown = *job;
    grown.resources = *size;
    grown.guests = 1;
    if (check_fits_some_node(core, &grown, error))
        return TRUE;
    g_prefix_error(error, "its ceiling (--vcpus-max, --memory-max) could never be reached: ");
    return FALSE;
}

/* vCPUs and memory each alone: a guest that can have one of them is grown by that. */
static gboolean check_ceiling(BerthCore *core, const BerthCoreJob *job, GError **error)
{
    BerthResources vcpus = job->resources, memory = job->resources;
    vcpus.vcpus = MAX(job->ceiling.vcpus, job->resources.vcpus);
    memory.memory_mib = MAX(job->ceiling.memory_mib, job->resources.memory_mib);
    return (vcpus.vcpus == job->resources.vcpus || check_may_grow_to(core, job, &vcpus, error)) &&
           (memory.memory_mib == job->resources.memory_mib ||
            check_may_grow_to(core, job, &memory, error));
}

static gboolean check_job(BerthCore *core, const BerthCoreJob *job, GError **error)
{
    if (job->resources.vcpus == 0 || job->resources.memory_mib == 0) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "a job needs at least 1 vCPU and 1 MiB of memory");
        return FALSE;
    }
    if (!core_job_check_indices(job) || (job->has_indices && job->n_indices == 0)) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                            "an array has at least one task, and ranges that rise");
        return FALSE;
    }
    for (gsize i = 0; i < job->n_nodes; i++) {
        if (core_nodes_get(&core->nodes, job->nodes[i]) == NULL) {
            g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                        "no node has the handle %" G_GUINT32_FORMAT, job->nodes[i]);
            return FALSE;
        }
    }
    if (job->id == 0 || core_job_get(core, job->id) != NULL) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS,
                    "the job number %" G_GUINT64_FORMAT " is in use", job->id);
        return FALSE;
    }
    return check_fits_some_node(core, job, error) && check_ceiling(core, job, error);
}

gboolean core_submit(BerthCore *core, const BerthCoreJob *source, GError **error)
{
    if (!check_job(core, source, error))
        return FALSE;
    CoreOwner *owner = core_owner_of_user(core, source->account, source->uid);
    if (!core_owner_may_add_job(owner)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                    "the user or the account has as many unfinished jobs as it may; wait for some "
                    "to end");
        return FALSE;
    }
    core_owner_add_job(owner);
    CoreJob *job = core_job_add(core, source, FALSE);
    core_emit_job_changed(core, job);
    core_order_update(core, job);
    return TRUE;
}

/* --- cancel, hold, release ------------------------------------------------------------------ */

static const char *state_name(BerthJobState state)
{
    static const char *const names[] = {
        [BERTH_JOB_COMPLETED] = "COMPLETED", [BERTH_JOB_FAILED] = "FAILED",
        [BERTH_JOB_CANCELLED] = "CANCELLED", [BERTH_JOB_TIMEOUT] = "TIMEOUT",
        [BERTH_JOB_NODE_FAIL] = "NODE_FAIL", [BERTH_JOB_OUT_OF_MEMORY] = "OUT_OF_MEMORY",
    };
    return names[state];
}

static gboolean names_some(const CoreAsk *ask)
{
    return ask->tasks.step != 0;
}

/* They rise: the one that may have it is found by halving, whatever their number, as each task is asked about. */
static gboolean is_in_others(const CoreAsk *ask, guint32 index)
{
    gsize low = 0;
    gsize high = ask->n_others;
    while (low < high) {
        gsize middle = low + (high - low) / 2;
        if (ask->others[middle].last < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ask->n_others && berth_index_range_contains(&ask->others[low], index);
}

static gboolean has_index(const CoreAsk *ask, guint32 index)
{
    return !names_some(ask) || berth_index_range_contains(&ask->tasks, index) ||
           is_in_others(ask, index);
}

gboolean core_ask_has(const CoreAsk *ask, const CoreTask *task)
{
    return has_index(ask, task->record.task);
}

BerthIndexSet *core_ask_fresh(const CoreJob *job, const CoreAsk *ask)
{
    if (job->fresh == NULL) {
        BerthIndexSet *only = berth_index_set_new();
        if (core_job_n_fresh(job) > 0 && has_index(ask, 0))
            berth_index_set_add_one(only, 0);
        return only;
    }
    if (!names_some(ask))
        return berth_index_set_copy(job->fresh);
    BerthIndexSet *found = berth_index_set_within(job->fresh, &ask->tasks);
    for (gsize i = 0; i < ask->n_others; i++) {
        g_autoptr(BerthIndexSet) more = berth_index_set_within(job->fresh, &ask->others[i]);
        berth_index_set_add_all(found, more);
    }
    return found;
}

/* One that is asked for has never started. */
static gboolean has_fresh(const CoreJob *job, const CoreAsk *ask)
{
    if (core_job_n_fresh(job) == 0 || !names_some(ask))
        return core_job_n_fresh(job) > 0;
    if (job->fresh == NULL)
        return has_index(ask, 0);
    gboolean meets = berth_index_set_meets(job->fresh, &ask->tasks);
    for (gsize i = 0; i < ask->n_others && !meets; i++)
        meets = berth_index_set_meets(job->fresh, &ask->others[i]);
    return meets;
}

/* That of the first of the tasks that are asked for, if all of these have ended, or PENDING. FALSE: there is none of
 * them. */
static gboolean get_final_state(const CoreJob *job, const CoreAsk *ask, BerthJobState *out_state)
{
    const CoreTask *first = NULL;
    *out_state = BERTH_JOB_PENDING;
    if (has_fresh(job, ask))
        return TRUE;
    for (guint32 i = 0; i < job->n_tasks; i++) {
        const CoreTask *task = job->tasks[i];
        if (!core_ask_has(ask, task))
            continue;
        if (!berth_job_state_is_final(task->record.state))
            return TRUE;
        first = first != NULL ? first : task;
    }
    if (first != NULL)
        *out_state = first->record.state;
    return first != NULL || !names_some(ask);
}

CoreJob *core_get_unfinished(BerthCore *core, const CoreAsk *ask, GError **error)
{
    guint64 number = ask->job;
    CoreJob *job = core_job_get(core, number);
    if (job == NULL) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                    "no unfinished job %" G_GUINT64_FORMAT "; berth ls --all shows those that have "
                    "ended",
                    number);
        return NULL;
    }
    BerthJobState state;
    if (ask->tasks.last < ask->tasks.first || !get_final_state(job, ask, &state)) {
        g_autofree char *tasks = berth_index_range_format(&ask->tasks);
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                    "job %" G_GUINT64_FORMAT " has no unfinished task %s%s", number, tasks,
                    ask->n_others > 0 ? ", nor any of the others" : "");
        return NULL;
    }
    if (berth_job_state_is_final(state)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "job %" G_GUINT64_FORMAT " has already ended (%s): there is nothing to change; "
                    "submit it again to run it again",
                    number, state_name(state));
        return NULL;
    }
    return job;
}

/* Tasks that never started end together: one record stands for a range of them. All have theirs before the first has
 * ended, as the job ends with the last that there is. */
static void cancel_fresh(BerthCore *core, CoreJob *job, const BerthIndexSet *fresh,
                         const CoreTaskInput *input)
{
    if (berth_index_set_count(fresh) == 0)
        return;
    g_autofree CoreTask **tasks = core_job_add_ranges(job, fresh);
    for (guint i = 0; i < berth_index_set_n_ranges(fresh); i++) {
        tasks[i]->record.never_after = input->never_after;
        tasks[i]->record.never_by_task = input->never_by_task;
        core_task_handle(core, tasks[i], CORE_TASK_CANCEL, input);
    }
    core_depend_started(core, job);
}

gboolean core_cancel(BerthCore *core, const CoreAsk *ask, GError **error)
{
    CoreJob *job = core_get_unfinished(core, ask, error);
    if (job == NULL)
        return FALSE;
    CoreTaskInput input = {.reason = ask->by_operator ? BERTH_REASON_CANCELLED_BY_OPERATOR
                                                      : BERTH_REASON_CANCELLED_BY_USER};
    for (guint32 i = 0; i < job->n_tasks; i++)
        if (core_ask_has(ask, job->tasks[i]))
            core_task_handle(core, job->tasks[i], CORE_TASK_CANCEL, &input);
    g_autoptr(BerthIndexSet) fresh = core_ask_fresh(job, ask);
    cancel_fresh(core, job, fresh, &input);
    return TRUE;
}

void core_end_hopeless(BerthCore *core, CoreJob *job, const BerthIndexSet *tasks, guint64 after)
{
    const CoreTaskInput never = {.reason = BERTH_REASON_DEPENDENCY_NEVER,
                                 .never_after = after,
                                 .never_by_task = tasks != NULL};
    g_autoptr(BerthIndexSet) fresh = tasks != NULL
                                         ? berth_index_set_both(job->fresh, tasks)
                                         : core_ask_fresh(job, &(CoreAsk){.job = job->id});
    cancel_fresh(core, job, fresh, &never);
}

/* --- freeze, thaw --------------------------------------------------------------------------- */

/* It has a guest, and that is not being ended or removed; or it stands still already, but not because it has no time
 * left. */
static gboolean may_freeze(const CoreTask *task)
{
    return (task->record.state == BERTH_JOB_RUNNING || task->record.state == BERTH_JOB_SUSPENDED) &&
           task->record.stop_reason == BERTH_REASON_NONE && !core_freeze_is_at_time_limit(task);
}

static gboolean is_any_at_time_limit(const CoreJob *job)
{
    for (guint32 i = 0; i < job->n_tasks; i++)
        if (core_freeze_is_at_time_limit(job->tasks[i]))
            return TRUE;
    return FALSE;
}

/* Its limit is not told: who asks for the job is shown it. */
static gboolean refuse_at_time_limit(const CoreJob *job, const char *what, GError **error)
{
    return core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job->id,
                       "%s: it has used all of its time limit, and goes on when that is more "
                       "(berth extend)",
                       what);
}

/* Who is to stand still without a guest keeps what he has until that is done. */
static void freeze_task(BerthCore *core, CoreTask *task, gboolean to_disk, BerthReason reason)
{
    if (to_disk && !core_saves_is_on_disk(task)) {
        core_checkpoint_keep_space_to_disk(core, task);
        core_freeze_want_to_disk(core, &task->guests[0]);
    }
    if (task->record.freeze_reason != BERTH_REASON_FROZEN_BY_OPERATOR)
        core_freeze_want(core, &task->guests[0], reason);
}

gboolean core_freeze(BerthCore *core, const CoreAsk *ask, gboolean to_disk, GError **error)
{
    BerthReason reason =
        ask->by_operator ? BERTH_REASON_FROZEN_BY_OPERATOR : BERTH_REASON_FROZEN_BY_USER;
    CoreJob *job = core_get_unfinished(core, ask, error);
    guint32 n_frozen = 0;
    if (job == NULL)
        return FALSE;
    if (job->class->shape.guests > 1) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED,
                    "job %" G_GUINT64_FORMAT " has several guests, which cannot be frozen as one",
                    ask->job);
        return FALSE;
    }
    if (to_disk && !core_saves_check(core, job, ask, TRUE, error))
        return FALSE;
    for (guint32 i = 0; i < job->n_tasks; i++) {
        if (!may_freeze(job->tasks[i]) || !core_ask_has(ask, job->tasks[i]))
            continue;
        n_frozen++;
        freeze_task(core, job->tasks[i], to_disk, reason);
    }
    if (n_frozen > 0)
        return TRUE;
    if (is_any_at_time_limit(job))
        return refuse_at_time_limit(job, "stands still", error);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION, "job %" G_GUINT64_FORMAT " %s",
                ask->job,
                names_some(ask) ? "has no running task among those that are named"
                : core_job_has_pending(job)
                    ? "does not run: berth hold keeps a waiting job from starting"
                    : "is ending: there is nothing left to freeze");
    return FALSE;
}

static void thaw_task(BerthCore *core, CoreTask *task)
{
    if (core_freeze_is_at_time_limit(task))
        return;
    if (core_saves_is_on_disk(task)) {
        core_saves_thaw(core, task);
        return;
    }
    CoreGuest *guest = &task->guests[0];
    gboolean is_given_more = guest->is_frozen && task->record.reason == BERTH_REASON_AT_LIMIT &&
                             task->record.freeze_reason == BERTH_REASON_NONE;
    if (task->record.freeze_reason == BERTH_REASON_AT_LIMIT || is_given_more) {
        guest->limit_rest_usec =
            core_time_add(core->now_usec, core->tunings[BERTH_TUNING_COOLDOWN_USEC]);
        guest->grow_rest_usec = 0;
        guest->ungrown = 0;
    }
    if (is_given_more) /* not when there is room: now */
        core_move_let_go(core, guest);
    core_freeze_want(core, guest, BERTH_REASON_NONE);
    core_freeze_settle(core, guest); /* one that could not be thawed */
}

gboolean core_thaw(BerthCore *core, const CoreAsk *ask, guint32 to, GError **error)
{
    CoreJob *job = core_get_unfinished(core, ask, error);
    guint32 n_wanted = 0;
    if (job == NULL)
        return FALSE;
    for (guint32 i = 0; i < job->n_tasks; i++) {
        BerthReason reason = job->tasks[i]->record.freeze_reason;
        if (!core_ask_has(ask, job->tasks[i]))
            continue;
        n_wanted += (reason != BERTH_REASON_NONE || job->tasks[i]->guests[0].is_frozen) &&
                    reason != BERTH_REASON_TIME_LIMIT;
        if (reason != BERTH_REASON_FROZEN_BY_OPERATOR || ask->by_operator)
            continue;
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "job %" G_GUINT64_FORMAT " is frozen by an operator, who alone can thaw it",
                    ask->job);
        return FALSE;
    }
    if (to != 0 && n_wanted > 0)
        return core_saves_thaw_to(core, job, ask, to, error);
    for (guint32 i = 0; i < job->n_tasks; i++)
        if (core_ask_has(ask, job->tasks[i]))
            thaw_task(core, job->tasks[i]);
    if (n_wanted > 0)
        return TRUE;
    if (is_any_at_time_limit(job))
        return refuse_at_time_limit(job, "cannot be thawed", error);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                "job %" G_GUINT64_FORMAT " is not frozen: there is nothing to thaw", ask->job);
    return FALSE;
}
