/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the record of a job as a whole: how it comes to be, what the core needs of it, and what it says of its tasks'
 * states. Pure but for the record that it is told to change. */
#include "config.h"

#include "scheduler/daemon/job_records.h"

#include "common/ranges.h"
#include "common/task_counts.h"

#define SIGNAL_SEC 10u /* before a checkpoint, where the job does not say */

/* --- the tasks of an array ----------------------------------------------------------------------- */

/* The first that any task is in says the most about the job as a whole. */
static const Berth__JobState counted_states[] = {
    BERTH__JOB_STATE__RUNNING,   BERTH__JOB_STATE__SUSPENDED, BERTH__JOB_STATE__PENDING,
    BERTH__JOB_STATE__CANCELLED, BERTH__JOB_STATE__NODE_FAIL, BERTH__JOB_STATE__OUT_OF_MEMORY,
    BERTH__JOB_STATE__TIMEOUT,   BERTH__JOB_STATE__FAILED,    BERTH__JOB_STATE__COMPLETED,
};

guint32 berth_record_counted(const Berth__Job *job, Berth__JobState state)
{
    const uint32_t *count = job->counts ? berth_task_counter(job->counts, state) : NULL;
    return count ? *count : 0;
}

void berth_record_count(Berth__Job *job, Berth__JobState from, Berth__JobState to, guint32 n)
{
    if (!job->counts) {
        job->counts = g_new(Berth__TaskCounts, 1);
        berth__task_counts__init(job->counts);
    }
    uint32_t *before = berth_task_counter(job->counts, from);
    uint32_t *now = berth_task_counter(job->counts, to);
    if (before)
        *before -= MIN(n, *before);
    if (now)
        *now += n;
}

BerthIndexRange berth_record_range(const Berth__Task *task)
{
    return berth_index_range_of(task->index, task->rest_last, task->rest_step);
}

/* --- as a whole ---------------------------------------------------------------------------------- */

/* Of tasks that run, or differ, no reason is that of all. */
static void roll_up_array(Berth__Job *job, const Berth__Task *latest)
{
    job->state = BERTH__JOB_STATE__PENDING;
    for (gsize i = G_N_ELEMENTS(counted_states); i > 0; i--)
        if (berth_record_counted(job, counted_states[i - 1]) > 0)
            job->state = counted_states[i - 1];
    job->reason =
        latest && latest->state == job->state ? latest->reason : BERTH__REASON__REASON_NONE;
}

void berth_record_roll_up(BerthJobEntry *entry, const Berth__Task *latest)
{
    if (entry->unstarted) {
        roll_up_array(entry->job, latest);
    } else if (entry->n_tasks > 0) {
        const Berth__Task *task = entry->tasks[0]->stored->task;
        entry->job->state = task->state;
        entry->job->reason = task->reason;
    }
}

Berth__Job *berth_record_new_job(guint64 number, const Berth__JobSpec *spec,
                                 const BerthIndexSet *array, const char *user, guint32 uid,
                                 guint32 gid, gint64 submit_usec)
{
    Berth__Job job = BERTH__JOB__INIT;
    job.id = number;
    job.user = (char *)user;
    job.uid = uid;
    job.gid = gid;
    job.submit_usec = (guint64)submit_usec;
    job.state = BERTH__JOB_STATE__PENDING;
    job.name = spec->name;
    job.image = spec->image;
    job.vcpus = spec->vcpus;
    job.memory_mib = spec->memory_mib;
    job.memory_max_mib = spec->memory_max_mib;
    job.time_limit_sec = spec->time_limit_sec;
    job.priority = spec->priority;
    job.held = spec->hold;
    job.checkpoint_keep = spec->checkpoint_keep;
    job.checkpoint_signal = spec->checkpoint_signal;
    job.checkpoint_signal_sec = spec->checkpoint_signal_sec;
    job.array = spec->array;
    Berth__Job *record = berth_pb_dup(&job.base);
    if (array) {
        berth_record_count(record, BERTH__JOB_STATE__JOB_STATE_UNSPECIFIED,
                           BERTH__JOB_STATE__PENDING, berth_index_set_count(array));
        berth_ranges_set(&record->unstarted, &record->n_unstarted, array);
    }
    return record;
}

void berth_record_set_checkpoint_every(Berth__Job *job, gint64 every_usec)
{
    Berth__CheckpointPolicy policy = BERTH__CHECKPOINT_POLICY__INIT;
    policy.every_sec = (guint32)(every_usec / G_USEC_PER_SEC);
    if (job->checkpoint_policy)
        berth__checkpoint_policy__free_unpacked(job->checkpoint_policy, NULL);
    job->checkpoint_policy = berth_pb_dup(&policy.base);
}

static gint64 checkpoint_every_usec(const Berth__Job *job, const Berth__JobSpec *spec)
{
    guint32 every_sec =
        job->checkpoint_policy ? job->checkpoint_policy->every_sec : spec->checkpoint_every_sec;
    return (gint64)every_sec * G_USEC_PER_SEC;
}

static BerthIndexSet *set_of(const BerthIndexRange *ranges, gsize n_ranges)
{
    BerthIndexSet *set = berth_index_set_new();
    for (gsize i = 0; i < n_ranges; i++)
        berth_index_set_add(set, ranges[i]);
    return set;
}

void berth_record_set_holds(Berth__Job *job, const BerthCoreJob *held)
{
    g_autoptr(BerthIndexSet) by_user = set_of(held->tasks_held_by_user, held->n_held_by_user);
    g_autoptr(BerthIndexSet) by_operator =
        set_of(held->tasks_held_by_operator, held->n_held_by_operator);
    job->held = held->held;
    job->held_by_operator = held->held_by_operator;
    berth_ranges_set(&job->held_tasks, &job->n_held_tasks, by_user);
    berth_ranges_set(&job->held_tasks_by_operator, &job->n_held_tasks_by_operator, by_operator);
}

BerthIndexRange *berth_record_ranges(Berth__IndexRange *const *ranges, gsize n_ranges)
{
    BerthIndexRange *copies = g_new(BerthIndexRange, n_ranges + 1);
    for (gsize i = 0; i < n_ranges; i++)
        copies[i] = berth_range_of(ranges[i]);
    return copies;
}

/* --- for the core -------------------------------------------------------------------------------- */

/* The same on every host and in every release: what the core learnt of it is stored by this number.
 * FNV-1a, 64 bits. A job without a name has no siblings. */
static guint64 family_of(const char *name)
{
    guint64 hash = G_GUINT64_CONSTANT(0xcbf29ce484222325);
    if (!*name)
        return 0;
    for (const char *at = name; *at; at++)
        hash = (hash ^ (guint8)*at) * G_GUINT64_CONSTANT(0x100000001b3);
    return MAX(hash, 1);
}

/* One that was stored before there was a choice goes on. */
static BerthOnLimit on_limit_of(const Berth__JobSpec *spec)
{
    switch (spec->on_limit) {
    case BERTH__ON_LIMIT__ON_LIMIT_FREEZE:
        return BERTH_ON_LIMIT_FREEZE;
    case BERTH__ON_LIMIT__ON_LIMIT_KILL:
        return BERTH_ON_LIMIT_KILL;
    default:
        return BERTH_ON_LIMIT_NOTIFY;
    }
}

static void array_to_core(const Berth__Job *job, const BerthIndexSet *unstarted,
                          BerthCoreJob *out_job)
{
    out_job->has_indices = TRUE;
    out_job->array_throttle = job->array->running_max;
    for (gsize i = 0; i < G_N_ELEMENTS(counted_states); i++) {
        Berth__JobState state = counted_states[i];
        guint32 n = berth_record_counted(job, state);
        out_job->array_size += n;
        out_job->has_failed |= n > 0 && state > BERTH__JOB_STATE__COMPLETED;
    }
    out_job->n_indices = berth_index_set_n_ranges(unstarted);
    if (out_job->n_indices > 0)
        out_job->indices = berth_index_set_range(unstarted, 0);
}

guint32 berth_record_checkpoint_signal_sec(const Berth__Job *job)
{
    if (job->checkpoint_signal == 0)
        return 0;
    return job->checkpoint_signal_sec > 0 ? job->checkpoint_signal_sec : SIGNAL_SEC;
}

void berth_record_job_to_core(const Berth__Job *job, const Berth__JobSpec *spec,
                              const BerthIndexSet *unstarted, const guint32 *nodes, gsize n_nodes,
                              BerthCoreJob *out_job)
{
    *out_job = (BerthCoreJob){
        .id = job->id,
        .uid = job->uid,
        .resources = {.vcpus = job->vcpus,
                      .memory_mib = job->memory_mib,
                      .disk_mib = spec->disk_mib},
        .time_limit_usec = (gint64)job->time_limit_sec * G_USEC_PER_SEC,
        .stop_grace_usec = (gint64)spec->stop_grace_sec * G_USEC_PER_SEC,
        .priority = job->priority,
        .held = job->held,
        .held_by_operator = job->held_by_operator,
        .no_requeue = spec->no_requeue,
        .submit_usec = (gint64)job->submit_usec,
        .nodes = nodes,
        .n_nodes = n_nodes,
        .family = family_of(job->name),
        .ceiling = {.vcpus = spec->vcpus_max, .memory_mib = spec->memory_max_mib},
        .on_limit = on_limit_of(spec),
        .on_timeout = spec->on_timeout == BERTH__ON_TIMEOUT__ON_TIMEOUT_CHECKPOINT
                          ? BERTH_ON_TIMEOUT_CHECKPOINT
                          : BERTH_ON_TIMEOUT_KILL,
        .may_move = TRUE,
        .may_checkpoint = TRUE,
        .opportunistic = !spec->guaranteed,
        .checkpoint_every_usec = checkpoint_every_usec(job, spec),
        .checkpoint_signal_usec = (gint64)berth_record_checkpoint_signal_sec(job) * G_USEC_PER_SEC,
    };
    if (unstarted)
        array_to_core(job, unstarted, out_job);
}
