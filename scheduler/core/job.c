/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the jobs in memory, from their submission until the last event of their last task was taken,
 * and the records of their tasks. A task that never started has none: an array of a million costs as
 * much as one job. */
#include "scheduler/core/job.h"

#include "scheduler/core/charge.h"
#include "scheduler/core/checkpoint.h"
#include "scheduler/core/class.h"
#include "scheduler/core/depend.h"
#include "scheduler/core/freeze.h"
#include "scheduler/core/hold.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/owner.h"

#include <string.h>

static void task_free(CoreTask *task)
{
    core_charge_clear(task);
    g_free(task);
}

static void free_returned(CoreJob *job)
{
    if (job->returned != NULL)
        core_heap_clear(job->returned);
    g_clear_pointer(&job->returned, g_free);
}

static void job_free(gpointer data)
{
    CoreJob *job = data;
    g_clear_pointer(&job->fresh, berth_index_set_free);
    core_depend_clear_job(job);
    core_hold_clear_job(job);
    for (guint32 i = 0; i < job->n_tasks; i++)
        task_free(job->tasks[i]);
    g_free(job->tasks);
    free_returned(job);
    g_free(job);
}

void core_jobs_init(BerthCore *core)
{
    /* The key is the job itself: its number comes first in it. */
    G_STATIC_ASSERT(offsetof(CoreJob, id) == 0);
    core->jobs = g_hash_table_new_full(g_int64_hash, g_int64_equal, job_free, NULL);
    core->over = g_ptr_array_new();
}

void core_jobs_clear(BerthCore *core)
{
    g_ptr_array_unref(core->over);
    g_hash_table_unref(core->jobs);
}

CoreSize core_size_of(const BerthCore *core, const BerthResources *resources)
{
    guint64 overhead = core->config.guest_overhead_mib;
    guint64 memory = resources->memory_mib > G_MAXUINT64 - overhead
                         ? G_MAXUINT64
                         : resources->memory_mib + overhead;
    return (CoreSize){resources->vcpus, memory};
}

gboolean core_job_check_indices(const BerthCoreJob *source)
{
    for (gsize i = 0; source->has_indices && i < source->n_indices; i++)
        if (!berth_index_range_is_valid(&source->indices[i]))
            return FALSE;
    return TRUE;
}

/* All tasks of an array that SOURCE says have never started. */
static BerthIndexSet *fresh_of(const BerthCoreJob *source)
{
    BerthIndexSet *fresh = berth_index_set_new();
    for (gsize i = 0; source->has_indices && i < source->n_indices; i++)
        berth_index_set_add(fresh, source->indices[i]);
    if (!source->has_indices)
        berth_index_set_add(fresh, (BerthIndexRange){0, source->array_size - 1, 1});
    return fresh;
}

static void add_fresh(CoreJob *job, const BerthCoreJob *source)
{
    job->array_size = MAX(source->array_size, 1);
    if (!source->has_indices && source->array_size <= 1)
        return;
    job->fresh = fresh_of(source);
    job->array_size = MAX(job->array_size, berth_index_set_count(job->fresh));
    berth_index_set_next(job->fresh, 0, &job->next);
}

CoreJob *core_job_add(BerthCore *core, const BerthCoreJob *source, gboolean is_restored)
{
    CoreJob *job = g_new0(CoreJob, 1);
    CoreShape shape = {.size = core_size_of(core, &source->resources),
                       .start = core_size_of(core, &source->resources),
                       .memory_mib = source->resources.memory_mib,
                       .time_limit_usec = source->time_limit_usec,
                       .owner = core_owner_of_user(core, source->account, source->uid),
                       .priority = source->priority,
                       .qos = source->qos,
                       .may_move = source->may_move != FALSE,
                       .may_checkpoint = source->may_checkpoint != FALSE,
                       .opportunistic = source->opportunistic != FALSE,
                       .on_timeout = source->on_timeout,
                       .on_limit = source->on_limit,
                       .ceiling_vcpus = source->ceiling.vcpus,
                       .ceiling_memory_mib = source->ceiling.memory_mib,
                       .guests = MAX(source->guests, 1),
                       .nodes = (guint32 *)source->nodes,
                       .n_nodes = (guint32)source->n_nodes};
    job->id = source->id;
    job->class = core_class_take(core, &shape);
    job->submit_usec = source->submit_usec;
    job->stop_grace_usec = source->stop_grace_usec;
    job->disk_mib = source->resources.disk_mib;
    job->name = source->family;
    add_fresh(job, source);
    job->throttle = source->array_throttle;
    job->checkpoint_every_usec = source->checkpoint_every_usec;
    job->checkpoint_signal_usec = source->checkpoint_signal_usec;

    job->no_requeue = source->no_requeue != FALSE;
    job->has_failed = source->has_failed != FALSE;
    g_hash_table_add(core->jobs, job);
    core_depend_add(core, job, source, is_restored);
    core_hold_add(job, source);
    return job;
}

CoreJob *core_job_get(const BerthCore *core, guint64 job)
{
    return g_hash_table_lookup(core->jobs, &job);
}

CoreSize core_job_start_size(const BerthCore *core, const CoreJob *job, const CoreTask *task)
{
    if (task == NULL || task->record.checkpoint_epoch == 0 ||
        task->record.checkpoint_resources.vcpus == 0)
        return job->class->shape.size;
    return core_size_of(core, &task->record.checkpoint_resources);
}

/* --- tasks that never started ---------------------------------------------------------------- */

guint32 core_job_n_fresh(const CoreJob *job)
{
    return job->fresh != NULL ? berth_index_set_count(job->fresh) : job->next == 0;
}

gboolean core_job_is_fresh(const CoreJob *job, guint32 index)
{
    return job->fresh != NULL ? berth_index_set_contains(job->fresh, index)
                              : index == 0 && job->next == 0;
}

gboolean core_job_next_fresh(const CoreJob *job, guint32 from, guint32 *out_index)
{
    if (job->fresh != NULL)
        return berth_index_set_next(job->fresh, from, out_index);
    *out_index = 0;
    return from == 0 && job->next == 0;
}

/* NULL: it is no array. */
static const BerthIndexSet *open_of(const CoreJob *job)
{
    const BerthIndexSet *open = core_hold_open(job);
    open = open != NULL ? open : core_depend_open(job);
    return open != NULL ? open : job->fresh;
}

static void find_next(CoreJob *job)
{
    if (!berth_index_set_next(open_of(job), 0, &job->next))
        berth_index_set_next(job->fresh, 0, &job->next);
}

static void take(CoreJob *job, const BerthIndexSet *tasks)
{
    if (job->fresh == NULL) {
        job->next = berth_index_set_contains(tasks, 0) ? 1 : job->next;
        return;
    }
    berth_index_set_remove_all(job->fresh, tasks);
    core_depend_take(job, tasks);
    core_hold_take(job, tasks);
    find_next(job);
}

void core_job_take_fresh(CoreJob *job, BerthIndexRange range)
{
    g_autoptr(BerthIndexSet) tasks = berth_index_set_new();
    berth_index_set_add(tasks, range);
    take(job, tasks);
}

guint32 core_job_n_open(const CoreJob *job)
{
    const BerthIndexSet *open = open_of(job);
    return open != NULL ? berth_index_set_count(open) : core_job_n_fresh(job);
}

gboolean core_job_is_open(const CoreJob *job, guint32 index)
{
    const BerthIndexSet *open = open_of(job);
    return open != NULL ? berth_index_set_contains(open, index) : core_job_is_fresh(job, index);
}

void core_job_opened(CoreJob *job)
{
    core_hold_renew(job);
    find_next(job);
}

/* --- tasks ---------------------------------------------------------------------------------- */

/* The place of INDEX among the first N of those that have a record, or where it would be. */
static guint32 place_among(const CoreJob *job, guint32 n, guint32 index)
{
    guint32 low = 0;
    guint32 high = n;
    while (low < high) {
        guint32 middle = low + (high - low) / 2;
        if (job->tasks[middle]->record.task < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static guint32 place_of(const CoreJob *job, guint32 index)
{
    return place_among(job, job->n_tasks, index);
}

CoreTask *core_job_task(const CoreJob *job, guint32 index)
{
    guint32 place = place_of(job, index);
    if (place >= job->n_tasks || job->tasks[place]->record.task != index)
        return NULL;
    return job->tasks[place];
}

static CoreTask *task_new(CoreJob *job, guint32 index)
{
    guint32 n_guests = job->class->shape.guests;
    CoreTask *task = g_malloc0(sizeof *task + n_guests * sizeof task->guests[0]);
    task->record = (BerthCoreTask){.job = job->id,
                                   .task = index,
                                   .state = BERTH_JOB_PENDING,
                                   .reason = core_hold_reason(job, index)};
    task->job = job;
    task->timer.kind = CORE_TIMER_TASK;
    task->checkpoint_timer.kind = CORE_TIMER_CHECKPOINT;
    task->overstay_timer.kind = CORE_TIMER_OVERSTAY;
    /* The job was reported by its number. */
    if (index == job->changed_as) {
        task->changed_at = job->changed_at;
        job->changed_at = 0;
    }
    task->n_guests = n_guests;
    for (guint32 i = 0; i < n_guests; i++) {
        task->guests[i].task = task;
        task->guests[i].index = i;
    }
    return task;
}

/* The smallest power of two that is not below N: for so many there is room. */
static gsize room_for(guint32 n)
{
    gsize room = 1;
    while (room < n)
        room *= 2;
    return n > 0 ? room : 0;
}

/* N TASKS, rising: from the last on, so that those that are there move once. */
static void put_in(CoreJob *job, CoreTask *const *tasks, guint32 n)
{
    guint32 end = job->n_tasks;
    gsize room = room_for(end + n);
    if (room > room_for(end))
        job->tasks = g_renew(CoreTask *, job->tasks, room);
    job->n_tasks += n;
    for (guint32 i = n; i > 0; i--) {
        guint32 place = place_among(job, end, tasks[i - 1]->record.task);
        memmove(&job->tasks[place + i], &job->tasks[place], (end - place) * sizeof job->tasks[0]);
        job->tasks[place + i - 1] = tasks[i - 1];
        end = place;
    }
}

CoreTask *core_job_add_task(CoreJob *job, guint32 index)
{
    CoreTask *task = task_new(job, index);
    core_job_take_fresh(job, (BerthIndexRange){index, index, 1});
    put_in(job, &task, 1);
    return task;
}

CoreTask **core_job_add_ranges(CoreJob *job, const BerthIndexSet *fresh)
{
    guint n = berth_index_set_n_ranges(fresh);
    CoreTask **tasks = g_new(CoreTask *, n);
    for (guint i = 0; i < n; i++) {
        const BerthIndexRange *range = berth_index_set_range(fresh, i);
        tasks[i] = task_new(job, range->first);
        if (range->last > range->first) {
            tasks[i]->record.rest_last = range->last;
            tasks[i]->record.rest_step = range->step;
        }
    }
    take(job, fresh);
    put_in(job, tasks, n);
    return tasks;
}

gboolean core_job_get_record(const CoreJob *job, guint32 index, BerthCoreTask *out_record)
{
    const CoreTask *task = core_job_task(job, index);
    if (task != NULL) {
        *out_record = task->record;
        out_record->freeze_is_open = core_freeze_is_open(&task->guests[0]);
        core_move_record(&task->guests[0], out_record);
        return TRUE;
    }
    if (!core_job_is_fresh(job, index))
        return FALSE;
    *out_record = (BerthCoreTask){.job = job->id,
                                  .task = index,
                                  .state = BERTH_JOB_PENDING,
                                  .reason = core_hold_reason(job, index)};
    return TRUE;
}

CoreGuest *core_guest_get(const BerthCore *core, const BerthGuestId *id)
{
    const CoreJob *job = core_job_get(core, id->job);
    CoreTask *task = job != NULL ? core_job_task(job, id->task) : NULL;
    if (task == NULL || id->guest >= task->n_guests || id->epoch != task->record.epoch)
        return NULL;
    return &task->guests[id->guest];
}

gboolean core_job_has_pending(const CoreJob *job)
{
    if (core_job_n_fresh(job) > 0)
        return TRUE;
    for (guint32 i = 0; i < job->n_tasks; i++)
        if (job->tasks[i]->record.state == BERTH_JOB_PENDING)
            return TRUE;
    return FALSE;
}

guint32 core_job_n_returned(const CoreJob *job)
{
    return job->returned != NULL ? job->returned->n : 0;
}

guint32 core_job_n_startable(const CoreJob *job)
{
    if (job->held || job->n_unmet > 0)
        return 0;
    guint32 n_waiting = core_job_n_open(job) + core_job_n_returned(job);
    if (job->throttle == 0)
        return n_waiting;
    return MIN(n_waiting, job->throttle - MIN(job->throttle, job->n_active));
}

static int compare_returned(const CoreHeapLink *a, const CoreHeapLink *b)
{
    guint32 index_a = CORE_CONTAINER_OF(a, const CoreTask, returned)->record.task;
    guint32 index_b = CORE_CONTAINER_OF(b, const CoreTask, returned)->record.task;
    return index_a < index_b ? -1 : index_a > index_b;
}

void core_job_return(CoreTask *task)
{
    CoreJob *job = task->job;
    if (job->returned == NULL) {
        job->returned = g_new0(CoreHeap, 1);
        core_heap_init(job->returned, compare_returned);
    }
    core_heap_push(job->returned, &task->returned);
}

void core_job_return_no_more(CoreTask *task)
{
    CoreJob *job = task->job;
    if (!core_heap_has(&task->returned))
        return;
    core_heap_remove(job->returned, &task->returned);
    if (job->returned->n == 0)
        free_returned(job);
}

void core_task_over(BerthCore *core, CoreTask *task)
{
    CoreJob *job = task->job;
    core_checkpoint_forget(core, task);
    g_ptr_array_add(core->over, task);
    job->has_failed |= task->record.state != BERTH_JOB_COMPLETED;
    job->n_over++;
    core_depend_task_ended(core, task);
    if (core_job_n_fresh(job) > 0 || job->n_over < job->n_tasks)
        return;
    core_owner_remove_job(job->class->shape.owner);
    core_depend_ended(core, job);
}

static void forget_one(CoreJob *job, CoreTask *task)
{
    guint32 place = place_of(job, task->record.task);
    memmove(&job->tasks[place], &job->tasks[place + 1],
            (job->n_tasks - place - 1) * sizeof job->tasks[0]);
    job->n_tasks--;
    task_free(task);
}

static void forget_many(CoreJob *job)
{
    guint32 n_kept = 0;
    for (guint32 i = 0; i < job->n_tasks; i++)
        if (job->tasks[i]->is_forgotten)
            task_free(job->tasks[i]);
        else
            job->tasks[n_kept++] = job->tasks[i];
    job->n_tasks = n_kept;
}

/* TASK is one of them. All at once: each by itself would move those behind it, of an array of a million. */
static void forget_over_of(BerthCore *core, CoreJob *job, CoreTask *task)
{
    job->n_over -= job->n_forgotten;
    if (job->n_forgotten == 1)
        forget_one(job, task);
    else
        forget_many(job);
    job->n_forgotten = 0;
    if (job->n_tasks > 0 || core_job_n_fresh(job) > 0)
        return;
    core_depend_remove(core, job);
    core_class_drop(core, job->class);
    g_hash_table_remove(core->jobs, &job->id);
}

void core_jobs_forget_over(BerthCore *core)
{
    g_autoptr(GPtrArray) firsts = g_ptr_array_new(); /* one CoreTask of each job */
    if (core->over->len == 0)
        return;
    for (guint i = 0; i < core->over->len; i++) {
        CoreTask *task = g_ptr_array_index(core->over, i);
        task->is_forgotten = TRUE;
        if (task->job->n_forgotten++ == 0)
            g_ptr_array_add(firsts, task);
    }
    g_ptr_array_set_size(core->over, 0);
    for (guint i = 0; i < firsts->len; i++) {
        CoreTask *task = g_ptr_array_index(firsts, i);
        forget_over_of(core, task->job, task);
    }
}
