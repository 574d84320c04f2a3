/* SPDX-License-Identifier: Apache-2.0 */
/* Owns who of a job's tasks is held, and the answers to who wants some held or released.
 *
 * Invariants: no task is in both sets; those of an array that may start as far as that goes are kept beside them, so that
 * the next of a million is found without a look at those that are held. */
#include "scheduler/core/hold.h"

#include "common/error.h"
#include "scheduler/core/depend.h"
#include "scheduler/core/effects.h"
#include "scheduler/core/heap.h"
#include "scheduler/core/job.h"
#include "scheduler/core/order.h"
#include "scheduler/core/requests.h"
#include "scheduler/core/running.h"
#include "scheduler/core/task.h"

/* Tasks that a set may have which there are not any more, or never were: each may be gone through one by one. */
#define COVER_MAX (4u << 20)

struct CoreHolds {
    BerthIndexSet *by_user;
    BerthIndexSet *by_operator;
    BerthIndexSet *open; /* who of the job's FRESH waits in no pair, and is in neither */
};

/* --- who is --------------------------------------------------------------------------------- */

static gboolean is_by_operator(const CoreJob *job, guint32 index)
{
    return (job->held && job->held_by_operator) ||
           (job->holds != NULL && berth_index_set_contains(job->holds->by_operator, index));
}

BerthReason core_hold_reason(const CoreJob *job, guint32 index)
{
    if (is_by_operator(job, index))
        return BERTH_REASON_HELD_BY_OPERATOR;
    if (job->held || (job->holds != NULL && berth_index_set_contains(job->holds->by_user, index)))
        return BERTH_REASON_HELD_BY_USER;
    return BERTH_REASON_NONE;
}

const BerthIndexSet *core_hold_open(const CoreJob *job)
{
    return job->holds != NULL ? job->holds->open : NULL;
}

static BerthIndexSet *find_open(const CoreJob *job)
{
    const BerthIndexSet *open = core_depend_open(job);
    if (job->fresh == NULL)
        return berth_index_set_new();
    g_autoptr(BerthIndexSet) by_nobody =
        berth_index_set_without(open != NULL ? open : job->fresh, job->holds->by_user);
    return berth_index_set_without(by_nobody, job->holds->by_operator);
}

void core_hold_renew(CoreJob *job)
{
    if (job->holds == NULL)
        return;
    berth_index_set_free(job->holds->open);
    job->holds->open = find_open(job);
}

void core_hold_take(CoreJob *job, const BerthIndexSet *tasks)
{
    if (job->holds != NULL)
        berth_index_set_remove_all(job->holds->open, tasks);
}

void core_hold_clear_job(CoreJob *job)
{
    if (job->holds == NULL)
        return;
    berth_index_set_free(job->holds->by_user);
    berth_index_set_free(job->holds->by_operator);
    berth_index_set_free(job->holds->open);
    g_clear_pointer(&job->holds, g_free);
}

/* Both (transfer full): who is held by himself from now on. */
static void set_holds(CoreJob *job, BerthIndexSet *by_user, BerthIndexSet *by_operator)
{
    core_hold_clear_job(job);
    if (berth_index_set_count(by_user) + berth_index_set_count(by_operator) == 0) {
        berth_index_set_free(by_user);
        berth_index_set_free(by_operator);
    } else {
        job->holds = g_new0(CoreHolds, 1);
        *job->holds = (CoreHolds){by_user, by_operator, berth_index_set_new()};
    }
    if (job->fresh != NULL)
        core_job_opened(job);
}

/* Who is amid others stays: a set gets no more ranges by those that end. */
static void drop(BerthIndexSet **set, BerthIndexRange range)
{
    if (!berth_index_set_meets(*set, &range))
        return;
    BerthIndexSet *rest = berth_index_set_copy(*set);
    berth_index_set_remove(rest, range);
    gboolean is_larger = berth_index_set_n_ranges(rest) > berth_index_set_n_ranges(*set);
    berth_index_set_free(is_larger ? rest : *set);
    *set = is_larger ? *set : rest;
}

void core_hold_ended(CoreJob *job, BerthIndexRange range)
{
    if (job->holds == NULL)
        return;
    drop(&job->holds->by_user, range);
    drop(&job->holds->by_operator, range);
    if (berth_index_set_count(job->holds->by_user) +
            berth_index_set_count(job->holds->by_operator) ==
        0)
        core_hold_clear_job(job);
}

/* (transfer full) */
static BerthIndexSet *copy_by_user(const CoreJob *job)
{
    return job->holds != NULL ? berth_index_set_copy(job->holds->by_user) : berth_index_set_new();
}

static BerthIndexSet *copy_by_operator(const CoreJob *job)
{
    return job->holds != NULL ? berth_index_set_copy(job->holds->by_operator)
                              : berth_index_set_new();
}

/* --- records -------------------------------------------------------------------------------- */

void core_hold_add(CoreJob *job, const BerthCoreJob *source)
{
    job->held = source->held != FALSE;
    job->held_by_operator = source->held && source->held_by_operator;
    if (job->fresh == NULL || source->n_held_by_user + source->n_held_by_operator == 0)
        return;
    BerthIndexSet *by_user = berth_index_set_new();
    BerthIndexSet *by_operator = berth_index_set_new();
    for (gsize i = 0; i < source->n_held_by_operator; i++)
        berth_index_set_add(by_operator, source->tasks_held_by_operator[i]);
    for (gsize i = 0; i < source->n_held_by_user; i++)
        berth_index_set_add(by_user, source->tasks_held_by_user[i]);
    by_user = berth_index_set_subtract(by_user, by_operator);
    set_holds(job, by_user, by_operator);
}

void core_hold_record(const CoreJob *job, BerthCoreJob *out)
{
    out->held = job->held;
    out->held_by_operator = job->held_by_operator;
    if (job->holds == NULL)
        return;
    out->n_held_by_user = berth_index_set_n_ranges(job->holds->by_user);
    out->n_held_by_operator = berth_index_set_n_ranges(job->holds->by_operator);
    if (out->n_held_by_user > 0)
        out->tasks_held_by_user = berth_index_set_range(job->holds->by_user, 0);
    if (out->n_held_by_operator > 0)
        out->tasks_held_by_operator = berth_index_set_range(job->holds->by_operator, 0);
}

gsize core_hold_job_bytes(const CoreJob *job)
{
    if (job->holds == NULL)
        return 0;
    gsize n_ranges = berth_index_set_n_ranges(job->holds->by_user) +
                     berth_index_set_n_ranges(job->holds->by_operator) +
                     berth_index_set_n_ranges(job->holds->open);
    return sizeof *job->holds + n_ranges * sizeof(BerthIndexRange);
}

static gboolean meet(const BerthIndexSet *a, const BerthIndexSet *b)
{
    for (guint i = 0; i < berth_index_set_n_ranges(b); i++)
        if (berth_index_set_meets(a, berth_index_set_range(b, i)))
            return TRUE;
    return FALSE;
}

gboolean core_hold_is_consistent(const CoreJob *job)
{
    if (job->holds == NULL)
        return TRUE;
    g_autoptr(BerthIndexSet) open = find_open(job);
    g_autoptr(BerthIndexSet) more = berth_index_set_without(open, job->holds->open);
    g_autoptr(BerthIndexSet) less = berth_index_set_without(job->holds->open, open);
    return berth_index_set_count(more) + berth_index_set_count(less) == 0 &&
           !meet(job->holds->by_user, job->holds->by_operator) &&
           berth_index_set_count(job->holds->by_user) +
                   berth_index_set_count(job->holds->by_operator) >
               0;
}

/* --- what is asked -------------------------------------------------------------------------- */

static gboolean is_waiting(BerthJobState state)
{
    return state == BERTH_JOB_PENDING;
}

static gboolean is_unfinished(BerthJobState state)
{
    return !berth_job_state_is_final(state);
}

/* Those of JOB that ASK names, and that never started or are in one of the states that are WANTED. (transfer full) */
static BerthIndexSet *find(const CoreJob *job, const CoreAsk *ask,
                           gboolean (*is_wanted)(BerthJobState state))
{
    BerthIndexSet *found = job->fresh != NULL ? core_ask_fresh(job, ask) : berth_index_set_new();
    for (guint32 i = 0; i < job->n_tasks; i++) {
        const CoreTask *task = job->tasks[i];
        if (is_wanted(task->record.state) && core_ask_has(ask, task))
            berth_index_set_add_one(found, task->record.task);
    }
    return found;
}

static gboolean is_told_held(const CoreTask *task)
{
    return task->record.reason == BERTH_REASON_HELD_BY_USER ||
           task->record.reason == BERTH_REASON_HELD_BY_OPERATOR;
}

/* It was held until now, and nothing else keeps it from the order. Whose guest is being removed is told of as held, or of that. */
static gboolean was_held(const CoreTask *task)
{
    if (task->record.phase != BERTH_GUEST_NONE)
        return is_told_held(task);
    return !core_heap_has(&task->returned) && !core_heap_has(&task->timer.link);
}

/* Who is held has changed: of WHICH, or of all (NULL). All that wait are told, or the first if none does. */
static void apply(BerthCore *core, CoreJob *job, const BerthIndexSet *which)
{
    for (guint32 i = 0; i < job->n_tasks; i++) {
        CoreTask *task = job->tasks[i];
        if (task->record.state != BERTH_JOB_PENDING ||
            (which != NULL && !berth_index_set_contains(which, task->record.task)))
            continue;
        BerthReason reason = core_hold_reason(job, task->record.task);
        if (which != NULL && reason == BERTH_REASON_NONE && !was_held(task))
            continue;
        if (which == NULL || reason != BERTH_REASON_NONE || is_told_held(task))
            task->record.reason = reason;
        if (task->record.phase == BERTH_GUEST_NONE) {
            core_task_wait_no_more(core, task);
            core_task_wait(core, task);
        }
        core_emit_changed(core, task);
    }
    if (!core_job_has_pending(job))
        core_emit_changed(core, job->tasks[0]);
    core_emit_job_changed(core, job);
    core_order_update(core, job);
}

static gboolean refuse_operators(guint64 job, GError **error)
{
    return core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job,
                       "is held by an operator, who alone can release it");
}

/* What is to be. */
typedef struct {
    gboolean all, all_by_operator;
    BerthIndexSet *by_user, *by_operator; /* beside that */
} Wanted;

static Wanted wanted_now(const CoreJob *job)
{
    return (Wanted){job->held, job->held_by_operator, copy_by_user(job), copy_by_operator(job)};
}

static void wanted_clear(Wanted *wanted)
{
    berth_index_set_free(wanted->by_user);
    berth_index_set_free(wanted->by_operator);
}

static guint n_ranges_of(const Wanted *wanted)
{
    return berth_index_set_n_ranges(wanted->by_user) +
           berth_index_set_n_ranges(wanted->by_operator);
}

/* WANTED is taken. WHICH: as apply() has it. */
static gboolean change(BerthCore *core, CoreJob *job, const BerthIndexSet *which, Wanted *wanted,
                       GError **error)
{
    if (n_ranges_of(wanted) > BERTH_RANGES_MAX) {
        wanted_clear(wanted);
        return core_refuse(error, BERTH_ERROR_RESOURCE_EXHAUSTED, job->id,
                           "would have tasks held in more than %u ranges: name fewer and longer "
                           "ones, or the whole job",
                           BERTH_RANGES_MAX);
    }
    job->held = wanted->all != FALSE;
    job->held_by_operator = wanted->all && wanted->all_by_operator;
    set_holds(job, wanted->by_user, wanted->by_operator);
    apply(core, job, which);
    return TRUE;
}

static gboolean hold_some(BerthCore *core, CoreJob *job, const CoreAsk *ask, GError **error)
{
    g_autoptr(BerthIndexSet) waiting = find(job, ask, is_waiting);
    if (berth_index_set_count(waiting) == 0)
        return core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job->id,
                           "has no waiting task among those that are named: only such can be held");
    if (job->held && (job->held_by_operator || !ask->by_operator))
        return TRUE;
    Wanted wanted = wanted_now(job);
    if (ask->by_operator) {
        wanted.by_operator = berth_index_set_subtract(wanted.by_operator, waiting);
        berth_index_set_add_all(wanted.by_operator, waiting);
        wanted.by_user = berth_index_set_subtract(wanted.by_user, waiting);
    } else {
        g_autoptr(BerthIndexSet) free = berth_index_set_without(waiting, wanted.by_operator);
        wanted.by_user = berth_index_set_subtract(wanted.by_user, free);
        berth_index_set_add_all(wanted.by_user, free);
    }
    return change(core, job, waiting, &wanted, error);
}

static gboolean hold_all(BerthCore *core, CoreJob *job, gboolean by_operator, GError **error)
{
    if (!core_job_has_pending(job))
        return core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job->id,
                           "does not wait: only waiting jobs can be held");
    if (job->held && (job->held_by_operator || !by_operator))
        return TRUE;
    Wanted wanted = {TRUE, by_operator, berth_index_set_new(),
                     by_operator ? berth_index_set_new() : copy_by_operator(job)};
    return change(core, job, NULL, &wanted, error);
}

gboolean core_hold(BerthCore *core, const CoreAsk *ask, GError **error)
{
    CoreJob *job = core_get_unfinished(core, ask, error);
    if (job == NULL)
        return FALSE;
    return ask->tasks.step != 0 ? hold_some(core, job, ask, error)
                                : hold_all(core, job, ask->by_operator, error);
}

/* Those that are UNFINISHED, and those between them that have ended: these do in any order, and it makes no difference for
 * them. An array of which that would be too much has no more than it has. (transfer full) */
static BerthIndexSet *widen(const BerthIndexSet *unfinished)
{
    BerthIndexRange all = berth_index_set_cover(unfinished);
    if (berth_index_range_count(&all) > COVER_MAX)
        return berth_index_set_copy(unfinished);
    BerthIndexSet *wide = berth_index_set_new();
    berth_index_set_add(wide, all);
    return wide;
}

/* ALL were held until now (transfer full): each is so by itself from now on, also who runs, as he may have to wait again. */
static void split(Wanted *wanted, BerthIndexSet *all)
{
    if (wanted->all_by_operator) {
        berth_index_set_free(wanted->by_operator);
        wanted->by_operator = all;
    } else {
        berth_index_set_free(wanted->by_user);
        wanted->by_user = berth_index_set_subtract(all, wanted->by_operator);
    }
    wanted->all = FALSE;
}

/* Some of WHICH, none of which has ended, are held, or would be if they had to wait. */
static gboolean is_any_held(const CoreJob *job, const BerthIndexSet *which)
{
    if (job->held)
        return berth_index_set_count(which) > 0;
    return job->holds != NULL &&
           (meet(job->holds->by_user, which) || meet(job->holds->by_operator, which));
}

/* Some of WHICH, which are held, are so by their user. */
static gboolean is_any_users(const CoreJob *job, const BerthIndexSet *which)
{
    if (!job->held)
        return meet(job->holds->by_user, which);
    if (job->held_by_operator || job->holds == NULL)
        return !job->held_by_operator;
    g_autoptr(BerthIndexSet) free = berth_index_set_without(which, job->holds->by_operator);
    return berth_index_set_count(free) > 0;
}

/* What is named may be more than the array has, and is taken out range by range: that costs what SET has of it. When
 * so many pieces are left that they will be refused, the rest stays in. */
static void take_out(BerthIndexSet *set, const CoreAsk *ask)
{
    berth_index_set_remove(set, ask->tasks);
    for (gsize i = 0; i < ask->n_others; i++)
        if (berth_index_set_n_ranges(set) <= 2 * BERTH_RANGES_MAX)
            berth_index_set_remove(set, ask->others[i]);
}

/* As few ranges as it takes: as people named them; or of those that there are, where these are fewer. */
static Wanted wanted_without(const CoreJob *job, const CoreAsk *ask, const BerthIndexSet *named)
{
    const CoreAsk all = {.job = job->id};
    g_autoptr(BerthIndexSet) unfinished = job->held ? find(job, &all, is_unfinished) : NULL;
    Wanted wanted = wanted_now(job);
    if (job->held)
        split(&wanted, widen(unfinished));
    take_out(wanted.by_user, ask);
    if (ask->by_operator)
        take_out(wanted.by_operator, ask);
    if (n_ranges_of(&wanted) <= BERTH_RANGES_MAX)
        return wanted;
    wanted_clear(&wanted);
    wanted = wanted_now(job);
    if (job->held)
        split(&wanted, berth_index_set_copy(unfinished));
    wanted.by_user = berth_index_set_subtract(wanted.by_user, named);
    if (ask->by_operator)
        wanted.by_operator = berth_index_set_subtract(wanted.by_operator, named);
    return wanted;
}

static gboolean release_some(BerthCore *core, CoreJob *job, const CoreAsk *ask, GError **error)
{
    g_autoptr(BerthIndexSet) named = find(job, ask, is_unfinished);
    if (!is_any_held(job, named))
        return core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job->id,
                           "has no held task among those that are named");
    if (!ask->by_operator && !is_any_users(job, named))
        return refuse_operators(job->id, error);
    Wanted wanted = wanted_without(job, ask, named);
    return change(core, job, named, &wanted, error);
}

static gboolean release_all(BerthCore *core, CoreJob *job, gboolean by_operator, GError **error)
{
    const CoreAsk all = {.job = job->id};
    g_autoptr(BerthIndexSet) unfinished = find(job, &all, is_unfinished);
    if (!job->held && !is_any_held(job, unfinished))
        return core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job->id,
                           "is not held: there is nothing to release");
    if (!by_operator && !is_any_users(job, unfinished))
        return refuse_operators(job->id, error);
    Wanted wanted = {FALSE, FALSE, berth_index_set_new(),
                     by_operator ? berth_index_set_new() : copy_by_operator(job)};
    return change(core, job, NULL, &wanted, error);
}

gboolean core_release(BerthCore *core, const CoreAsk *ask, GError **error)
{
    CoreJob *job = core_get_unfinished(core, ask, error);
    if (job == NULL)
        return FALSE;
    return ask->tasks.step != 0 ? release_some(core, job, ask, error)
                                : release_all(core, job, ask->by_operator, error);
}
