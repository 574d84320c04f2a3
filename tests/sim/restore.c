/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the way back: what a driver gives to a new core when all of the old one's memory is gone. */
#include "tests/sim/world_internal.h"

BerthCoreConfig restore_config(const World *world)
{
    return (BerthCoreConfig){.node_timeout_usec = 20 * G_USEC_PER_SEC,
                             .stop_grace_usec = 5 * G_USEC_PER_SEC,
                             .guest_overhead_mib = OVERHEAD_MIB,
                             .requeues_max = 3,
                             .start_retries_max = 3,
                             .start_backoff_usec = G_USEC_PER_SEC,
                             .can_fence = world->config.can_fence,
                             .policy = world->config.policy,
                             .features = world->config.features,
                             .tunings = world->tunings};
}

void restore_name_node(guint32 node, char name[16])
{
    g_snprintf(name, 16, "n%u", node);
}

static void restore_guests(World *world, const Job *job, guint32 index)
{
    const Task *task = &job->tasks[index];
    for (guint32 i = 0; i < MAX(job->job.guests, 1); i++) {
        BerthCoreGuest guest = task->guests[i];
        guest.id = (BerthGuestId){job->job.id, index, i, task->record.epoch};
        if (guest.node == 0)
            guest.node = task->record.node; /* already removed */
        berth_core_restore_guest(world->core, &guest);
    }
}

/* Those of an array that have ended are left out. Its indices are in FRESH. */
static gsize choose_tasks(const Job *job, BerthCoreJob *restored, BerthCoreTask *records,
                          BerthIndexRange *fresh)
{
    gsize n_records = 0;
    restored->has_indices = job->n_tasks > 1;
    restored->indices = fresh;
    for (guint32 i = 0; i < job->n_tasks; i++) {
        const Task *task = &job->tasks[i];
        if (task->record.epoch == 0 && !berth_job_state_is_final(task->record.state))
            fresh[restored->n_indices++] = (BerthIndexRange){i, i, 1};
        else if (!task->is_over || !restored->has_indices)
            records[n_records++] = task->record;
        else
            restored->has_failed |= task->record.state != BERTH_JOB_COMPLETED;
    }
    return n_records;
}

static gsize list_bits(guint32 bits, BerthIndexRange *out_ranges)
{
    gsize n = 0;
    for (guint32 i = 0; i < TASKS_MAX; i++)
        if ((bits >> i & 1) != 0)
            out_ranges[n++] = (BerthIndexRange){i, i, 1};
    return n;
}

/* What has become of those that are not restored is known to the store alone. */
static void restore_job(World *world, Job *job)
{
    BerthCoreTask records[TASKS_MAX];
    BerthIndexRange fresh[TASKS_MAX];
    for (gsize i = 0; i < job->job.n_dependencies; i++) {
        BerthCoreDependency *dependency = &job->dependencies[i];
        const Job *other =
            dependency->kind != BERTH_SINGLETON ? world_job(world, dependency->job) : NULL;
        if (other != NULL && other->is_over && !other->is_refused)
            dependency->outcome =
                model_job_completed(other) ? BERTH_JOB_COMPLETED : BERTH_JOB_FAILED;
    }
    BerthCoreJob restored = job->job;
    BerthTaskRange completed[COMPLETED_MAX];
    model_name_completed(world, job, &restored, completed);
    gsize n_records = choose_tasks(job, &restored, records, fresh);
    BerthIndexRange by_user[TASKS_MAX], by_operator[TASKS_MAX];
    restored.tasks_held_by_user = by_user;
    restored.n_held_by_user = list_bits(job->held_by_user, by_user);
    restored.tasks_held_by_operator = by_operator;
    restored.n_held_by_operator = list_bits(job->held_by_operator, by_operator);
    logged_restore_job(world, &restored, records, n_records);
    for (guint32 i = 0; i < job->n_tasks; i++)
        if (job->tasks[i].record.phase != BERTH_GUEST_NONE)
            restore_guests(world, job, i);
}

void restore_core(World *world)
{
    BerthCoreConfig config = restore_config(world);
    berth_core_free(world->core);
    world->core = berth_core_new(&config);
    people_set_owners(world, 0);
    for (guint i = 0; i < world->uses->len; i++)
        berth_core_restore_use(world->core, &g_array_index(world->uses, BerthCoreUse, i));
    for (guint i = 0; i < world->priors->len; i++)
        berth_core_restore_prior(world->core, &g_array_index(world->priors, BerthCorePrior, i));
    for (guint32 node = 1; node <= world->hosts->len; node++) {
        const Host *host = world_host(world, node);
        char name[16];
        restore_name_node(node, name);
        berth_core_add_node(world->core, name);
        berth_core_restore_node(world->core, node, host->state, host->since_usec, host->admission,
                                host->was_up ? &host->info : NULL);
    }
    for (guint64 number = 1; number <= world->jobs->len; number++)
        if (!world_job(world, number)->is_over)
            restore_job(world, world_job(world, number));
}
