/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a stored job is shown. Changes nothing but the copy that it is given. */
#include "config.h"

#include "scheduler/daemon/job_view.h"

#include "common/ranges.h"
#include "common/units.h"
#include "scheduler/daemon/job_records.h"
#include "scheduler/daemon/job_requests.h"
#include "scheduler/daemon/reason_text.h"

#include <stdlib.h>

/* ENTRY is NULL where details are not to be told, or of a task that does not wait. BACKING: NULL or as of the facts. */
static void set_reason(const Berth__Job *job, Berth__Task *task, const BerthTaskEntry *entry,
                       const BerthReasonBacking *backing)
{
    BerthReasonFacts facts = {
        .reason = task->reason,
        .exit = task->exit,
        .vcpus = job->vcpus,
        .memory_mib = task->memory_mib != 0 ? task->memory_mib : job->memory_mib,
        .memory_max_mib = MAX(job->memory_max_mib, job->memory_mib),
        .time_limit_sec = job->time_limit_sec,
        .is_suspended = task->state == BERTH__JOB_STATE__SUSPENDED,
        .is_opportunistic = task->opportunistic,
        .backing = backing,
        .unsaved = task->unsaved_text,
        .never = {task->never_after, task->never_by_task, berth_record_range(task)},
        .requeues = task->requeues,
        .start_failures = entry ? entry->stored->start_failures : 0,
        .node = task->node,
        .detail = entry ? entry->detail : NULL,
    };
    g_autofree char *text = berth_reason_text(&facts);
    berth_pb_set_string(&task->reason_text, text);
}

static void set_reason_text(const Berth__Job *job, Berth__Task *task, const BerthTaskEntry *entry)
{
    set_reason(job, task, entry, NULL);
}

static guint64 left_of(guint64 all, guint64 taken)
{
    return all - MIN(all, taken);
}

/* FALSE: the node of TASK, in slack, backs nobody now. */
static gboolean get_backing(BerthDaemon *daemon, const Berth__Job *job, const Berth__Task *task,
                            BerthReasonBacking *out_backing)
{
    BerthCoreTask known;
    BerthCoreNode node;
    if (!berth_core_get_task(daemon->core, task->job, task->index, &known) ||
        !berth_core_get_node(daemon->core, known.node, &node) || node.state != BERTH_NODE_UP ||
        node.admission != BERTH_ADMISSION_OPEN)
        return FALSE;
    *out_backing = (BerthReasonBacking){
        .vcpus = task->vcpus != 0 ? task->vcpus : job->vcpus,
        .has_vcpus = (guint32)left_of(node.capacity.vcpus, node.reserved.vcpus),
        .memory_mib = (task->memory_mib != 0 ? task->memory_mib : job->memory_mib) +
                      daemon->config->guest_overhead_mib,
        .has_mib = left_of(node.capacity.memory_mib, node.reserved.memory_mib),
    };
    return TRUE;
}

/* Of one that stands still at the limit of its memory. */
static void refresh_still(BerthDaemon *daemon, const Berth__Job *job, Berth__Task *task)
{
    if (task->reason != BERTH__REASON__REASON_AT_LIMIT || !task->opportunistic)
        return;
    BerthReasonBacking backing;
    gboolean is_open = get_backing(daemon, job, task, &backing);
    set_reason(job, task, NULL, is_open ? &backing : NULL);
}

static void refresh_pending(BerthDaemon *daemon, const Berth__Job *job, Berth__Task *task,
                            const BerthTaskEntry *entry)
{
    task->reason = (Berth__Reason)berth_core_pending_reason(daemon->core, task->job, task->index);
    gint64 planned_usec = berth_core_planned_usec(daemon->core, task->job);
    /* Until it is planned anew, which is with the next event, a start that has passed says nothing. */
    if (planned_usec > berth_engine_now_usec(daemon->engine))
        task->planned_usec = (guint64)planned_usec;
    set_reason_text(job, task, entry);
}

/* Its record has no reason as long as it runs: one that is being ended says why. */
static void refresh_stop(Berth__Job *job, Berth__Task *task, const BerthTaskEntry *entry)
{
    task->stop_usec = entry->stored->task->stop_usec;
    task->kill_usec = entry->stored->task->kill_usec;
    if (entry->stored->stop_reason == BERTH__REASON__REASON_NONE)
        return;
    task->reason = entry->stored->stop_reason;
    if (!job->array)
        job->reason = task->reason;
    set_reason_text(job, task, NULL);
}

/* NOW: the record that TASK was read of, as it is by now. */
static void refresh_size(Berth__Task *task, const Berth__Task *now)
{
    task->vcpus = now->vcpus;
    task->memory_mib = now->memory_mib;
    if (task->resize)
        berth__resize__free_unpacked(task->resize, NULL);
    task->resize = now->resize ? berth_pb_dup(&now->resize->base) : NULL;
}

/* Without a guest: it goes on with what it was saved with. */
static void refresh_size_saved(const Berth__Job *job, Berth__Task *task,
                               const Berth__StoredTask *stored)
{
    gboolean is_resized = stored->checkpoint_epoch != 0 && stored->checkpoint_vcpus != 0 &&
                          (stored->checkpoint_vcpus != job->vcpus ||
                           stored->checkpoint_memory_mib != job->memory_mib);
    task->vcpus = is_resized ? stored->checkpoint_vcpus : 0;
    task->memory_mib = is_resized ? stored->checkpoint_memory_mib : 0;
}

void berth_job_view_measure(BerthDaemon *daemon, guint32 guest_index, Berth__Task *task)
{
    BerthCoreGuest guest;
    if (!berth_core_get_guest(daemon->core, task->job, task->index, guest_index, &guest))
        return;
    task->used_milli = guest.used_milli;
    task->predicted_milli = guest.predicted_milli;
    task->predicted_mib = guest.predicted_mib;
}

static guint64 node_away_usec(BerthDaemon *daemon, guint32 handle)
{
    BerthCoreNode node;
    if (!berth_core_get_node(daemon->core, handle, &node) || node.state == BERTH_NODE_UP)
        return 0;
    return (guint64)MAX(node.since_usec, 1);
}

guint64 berth_job_view_away_usec(BerthDaemon *daemon, const BerthCoreTask *task)
{
    return task->phase == BERTH_GUEST_NONE ? 0 : node_away_usec(daemon, task->node);
}

/* The node where its guest is, or else the one to which it is on its way. */
static void refresh_away(BerthDaemon *daemon, Berth__Task *task)
{
    BerthCoreTask known;
    BerthCoreGuest guest;
    if (!berth_core_get_task(daemon->core, task->job, task->index, &known))
        return;
    guint32 node = known.node;
    task->away_usec = berth_job_view_away_usec(daemon, &known);
    if (task->away_usec == 0 &&
        berth_core_get_guest(daemon->core, task->job, task->index, 0, &guest) &&
        guest.op == BERTH_OP_MIGRATING) {
        node = guest.to;
        task->away_usec = node_away_usec(daemon, node);
    }
    if (task->away_usec != 0)
        berth_pb_set_string(&task->away_node, berth_node_table_name(daemon->nodes, node));
}

static void refresh_usage(BerthDaemon *daemon, Berth__Task *task, const BerthTaskEntry *entry)
{
    const Berth__Usage *usage = entry->stored->task->usage;
    const Berth__MigrationProgress *migration = entry->stored->task->migration;
    refresh_size(task, entry->stored->task);
    berth_job_view_measure(daemon, 0, task);
    if (task->migration)
        berth__migration_progress__free_unpacked(task->migration, NULL);
    task->migration = migration ? berth_pb_dup(&migration->base) : NULL;
    if (!usage)
        return;
    if (task->usage)
        berth__usage__free_unpacked(task->usage, NULL);
    task->usage = berth_pb_dup(&usage->base);
}

/* --- tasks of an array that have never started ---------------------------------------------------- */

static gint compare_tasks(gconstpointer a, gconstpointer b)
{
    const Berth__Task *left = *(Berth__Task *const *)a;
    const Berth__Task *right = *(Berth__Task *const *)b;
    return left->index < right->index ? -1 : left->index > right->index;
}

static Berth__Task *new_waiting(guint64 job, guint32 index)
{
    Berth__Task task = BERTH__TASK__INIT;
    task.job = job;
    task.index = index;
    task.state = BERTH__JOB_STATE__PENDING;
    return berth_pb_dup(&task.base);
}

/* Those of RANGE that are wanted, as many at most. */
static void add_range(const Berth__Job *job, const Berth__IndexRange *range,
                      const BerthStoreTasks *wanted, GPtrArray *tasks)
{
    const BerthIndexRange unstarted = berth_range_of(range);
    g_autoptr(BerthIndexSet) found = berth_index_set_within(wanted->only, &unstarted);
    guint32 index = 0;
    if (wanted->follows && wanted->after >= range->last)
        return;
    if (wanted->follows)
        index = wanted->after + 1;
    for (guint32 n = 0; n < wanted->limit && berth_index_set_next(found, index, &index); n++)
        g_ptr_array_add(tasks, new_waiting(job->id, index++));
}

void berth_job_view_add_unstarted(Berth__Job *job, const BerthStoreTasks *wanted)
{
    g_autoptr(GPtrArray) tasks = g_ptr_array_new();
    for (gsize i = 0; i < job->n_tasks; i++)
        g_ptr_array_add(tasks, job->tasks[i]);
    guint n_started = tasks->len;
    for (gsize i = 0; i < job->n_unstarted && tasks->len - n_started < wanted->limit; i++)
        add_range(job, job->unstarted[i], wanted, tasks);
    g_ptr_array_sort(tasks, compare_tasks);
    guint n = MIN(tasks->len, wanted->limit);
    for (guint i = n; i < tasks->len; i++)
        berth__task__free_unpacked(g_ptr_array_index(tasks, i), NULL);
    free(job->tasks);
    /* The message is freed by protobuf-c, with free(): what g_memdup2() gives is of malloc(). */
    job->tasks = g_memdup2(tasks->pdata, MAX(n, 1) * sizeof(Berth__Task *));
    job->n_tasks = n;
}

/* --- what is too long ------------------------------------------------------------------------------ */

#define RANGES_MAX 1000u

static guint32 count_ranges(Berth__IndexRange *const *ranges, size_t n_ranges)
{
    guint32 count = 0;
    for (size_t i = 0; i < n_ranges; i++) {
        const BerthIndexRange range = berth_range_of(ranges[i]);
        count += berth_index_range_count(&range);
    }
    return count;
}

static void cut_ranges(Berth__IndexRange **ranges, size_t *n_ranges)
{
    while (*n_ranges > RANGES_MAX)
        berth__index_range__free_unpacked(ranges[--*n_ranges], NULL);
}

/* Of those that are held which wait is still to be told: their ranges are cut after that. */
static gsize size_when_cut(const Berth__Job *job)
{
    Berth__Job cut = *job;
    cut.n_held_tasks = MIN(cut.n_held_tasks, RANGES_MAX);
    cut.n_held_tasks_by_operator = MIN(cut.n_held_tasks_by_operator, RANGES_MAX);
    return berth__job__get_packed_size(&cut);
}

static void cut_tasks(Berth__Job *job, gsize bytes_max)
{
    gsize size = size_when_cut(job);
    while (size > bytes_max && job->n_tasks > 1) {
        Berth__Task *last = job->tasks[--job->n_tasks];
        size -= berth__task__get_packed_size(last);
        berth__task__free_unpacked(last, NULL);
    }
}

void berth_job_view_shorten(Berth__Job *job, gsize bytes_max)
{
    if (!job->array)
        return;
    job->unstarted_count = count_ranges(job->unstarted, job->n_unstarted);
    cut_ranges(job->unstarted, &job->n_unstarted);
    cut_tasks(job, bytes_max);
}

/* The record has it in full minutes; who reads it is told what is known. */
static void refresh_spared(BerthDaemon *daemon, Berth__Task *task)
{
    BerthCoreTask known;
    if (berth_core_get_task(daemon->core, task->job, task->index, &known) &&
        known.epoch == task->epoch)
        task->spared_usec = (guint64)known.starved_usec;
}

/* --- as it is now --------------------------------------------------------------------------------- */

/* Of the RANGES of an array's tasks those that wait; ENTRY: NULL of one that has ended. TRUE: some of them have not ended. */
static gboolean keep_waiting(const BerthJobEntry *entry, Berth__IndexRange ***ranges,
                             size_t *n_ranges)
{
    gboolean has_any = FALSE;
    g_autoptr(BerthIndexSet) all = berth_index_set_new();
    g_autoptr(BerthIndexSet) waiting = berth_index_set_new();
    for (size_t i = 0; entry && i < *n_ranges; i++) {
        const BerthIndexRange range = berth_range_of((*ranges)[i]);
        g_autoptr(BerthIndexSet) unstarted = berth_index_set_within(entry->unstarted, &range);
        berth_index_set_add_all(waiting, unstarted);
        berth_index_set_add(all, range);
    }
    for (guint32 i = 0; entry && i < entry->n_tasks; i++) {
        const Berth__Task *task = entry->tasks[i]->stored->task;
        if (berth_job_state_is_final((BerthJobState)task->state) ||
            !berth_index_set_contains(all, task->index))
            continue;
        has_any = TRUE;
        if (task->state == BERTH__JOB_STATE__PENDING)
            berth_index_set_add_one(waiting, task->index);
    }
    berth_ranges_set(ranges, n_ranges, waiting);
    return has_any || *n_ranges > 0;
}

/* Who is held of those that wait, and why its next task waits, of an array none of whose tasks runs. */
static void refresh_array(BerthDaemon *daemon, Berth__Job *job)
{
    if (job->n_held_tasks + job->n_held_tasks_by_operator > 0) {
        const BerthJobEntry *entry = berth_job_table_find(daemon->jobs, job->id);
        job->holds_some = keep_waiting(entry, &job->held_tasks, &job->n_held_tasks);
        job->holds_some |=
            keep_waiting(entry, &job->held_tasks_by_operator, &job->n_held_tasks_by_operator);
        job->held_count = count_ranges(job->held_tasks, job->n_held_tasks) +
                          count_ranges(job->held_tasks_by_operator, job->n_held_tasks_by_operator);
        cut_ranges(job->held_tasks, &job->n_held_tasks);
        cut_ranges(job->held_tasks_by_operator, &job->n_held_tasks_by_operator);
    }
    if (job->state == BERTH__JOB_STATE__PENDING && job->n_unstarted > 0)
        job->reason = (Berth__Reason)berth_core_array_reason(daemon->core, job->id);
}

static gboolean is_unstarted(const Berth__Job *job, const Berth__Task *task)
{
    return job->array && task->state == BERTH__JOB_STATE__PENDING && task->epoch == 0;
}

/* It waits, and never had a guest: its record is all that there is, which is not looked for where there are many. */
static gboolean is_only_record(BerthDaemon *daemon, const Berth__Task *task)
{
    return task->state == BERTH__JOB_STATE__PENDING && task->epoch == 0 &&
           berth_job_table_is_resting(daemon->jobs, task->job);
}

static void refresh_task(BerthDaemon *daemon, Berth__Job *job, Berth__Task *task,
                         const BerthTaskEntry *entry)
{
    if (task->state == BERTH__JOB_STATE__PENDING) {
        refresh_pending(daemon, job, task, entry);
        refresh_size_saved(job, task, entry->stored);
        if (!job->array)
            job->reason = task->reason;
    } else if (task->state == BERTH__JOB_STATE__RUNNING) {
        refresh_stop(job, task, entry);
        refresh_usage(daemon, task, entry);
        refresh_spared(daemon, task);
        refresh_away(daemon, task);
    } else if (task->state == BERTH__JOB_STATE__SUSPENDED) {
        refresh_usage(daemon, task, entry);
        if (task->to_disk)
            refresh_size_saved(job, task, entry->stored);
        refresh_still(daemon, job, task);
        refresh_spared(daemon, task);
        refresh_away(daemon, task);
    } else if (berth_job_state_is_final((BerthJobState)task->state)) {
        /* Once more for what an older release has stored. */
        task->output_pending |= entry->wants_output;
    }
}

void berth_job_view_refresh(BerthDaemon *daemon, Berth__Job *job)
{
    if (job->array)
        refresh_array(daemon, job);
    for (gsize i = 0; i < job->n_tasks; i++) {
        Berth__Task *task = job->tasks[i];
        if (is_only_record(daemon, task)) {
            refresh_pending(daemon, job, task, NULL);
            job->reason = task->reason;
            continue;
        }
        const BerthTaskEntry *entry =
            berth_job_table_find_task(daemon->jobs, task->job, task->index);
        if (!entry && is_unstarted(job, task))
            refresh_pending(daemon, job, task, NULL);
        if (entry && entry->stored->task->state == task->state &&
            entry->stored->task->epoch == task->epoch)
            refresh_task(daemon, job, task, entry);
    }
}

static void hide_details(const Berth__Job *job, Berth__Task *task)
{
    berth_pb_set_string(&task->console_tail, NULL);
    berth_pb_set_string(&task->unsaved_text, NULL);
    if (task->exit)
        berth_pb_set_string(&task->exit->error, NULL);
    /* That text hides nothing, and what it is of is not in the record any more. */
    if (task->reason != BERTH__REASON__REASON_MEMORY_LIMIT)
        set_reason_text(job, task, NULL);
}

void berth_job_view_hide(BerthDaemon *daemon, const BerthRpcIdentity *who, Berth__Job *job)
{
    if (berth_permission_check_job(&daemon->operators, who, job->id, job->uid, NULL))
        return;
    if (job->spec) {
        berth__job_spec__free_unpacked(job->spec, NULL);
        job->spec = NULL;
    }
    if (job->checkpoint_policy) {
        berth__checkpoint_policy__free_unpacked(job->checkpoint_policy, NULL);
        job->checkpoint_policy = NULL;
    }
    berth_job_requests_drop(job);
    for (gsize i = 0; i < job->n_tasks; i++)
        hide_details(job, job->tasks[i]);
}
