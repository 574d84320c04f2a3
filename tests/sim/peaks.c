/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what must be stored of the peaks of running guests, reckoned anew from what they reported: no
 * more than was measured in the present run, all of it but a step once a guest has settled, nothing
 * oftener than it may be, and what a new core makes of it. */
#include "tests/sim/world_internal.h"

#include <math.h>

#define STEP (1.0 + (double)world->tunings[BERTH_TUNING_PEAK_STEP_PERMILLE] / 1000)

static gboolean predicts(const World *world)
{
    return world->config.features & BERTH_FEATURE_PREDICTION;
}

static guint64 whole_mib(const BerthResources *size)
{
    return size->memory_mib + OVERHEAD_MIB;
}

static void begin(World *world, Task *task, const BerthCoreTask *old)
{
    const BerthCoreTask *record = &task->record;
    Peaks *peaks = &task->peaks;
    gboolean goes_on = record->checkpoint_epoch != 0 && peaks->mib[0] > 0;
    guint64 expected_mib = goes_on ? old->peak_mib : 0;
    CHECK(world, record->peak_mib == expected_mib, record->job);
    peaks->began_usec = peaks->looked_usec = world->now_usec;
    for (guint32 i = 0; i < GUESTS_MAX; i++) {
        peaks->reported_usec[i] = world->now_usec;
        if (!goes_on)
            peaks->mib[i] = 0;
    }
    if (!goes_on)
        peaks->highest_mib = 0;
}

/* As the guest was when it reported. */
static void measure(World *world, const BerthCoreEvent *event, Task *task,
                    const BerthCoreGuest *guest)
{
    Peaks *peaks = &task->peaks;
    guint32 i = event->guest.guest;
    double used =
        (double)MIN(event->usage.memory_used_mib + OVERHEAD_MIB, whole_mib(&guest->resources));
    double half_lives = (double)(world->now_usec - peaks->reported_usec[i]) /
                        (double)world->tunings[BERTH_TUNING_DECAY_HALF_LIFE_USEC];
    double sunk = used + floor((peaks->mib[i] - used) * exp2(-half_lives));
    peaks->mib[i] = MAX(used, sunk);
    peaks->highest_mib = MAX(peaks->highest_mib, used);
    peaks->reported_usec[i] = world->now_usec;
}

static void check_told(World *world, const Task *task)
{
    const Peaks *peaks = &task->peaks;
    double most = 0;
    for (guint32 i = 0; i < GUESTS_MAX; i++)
        most = MAX(most, peaks->mib[i]);
    gboolean is_settled =
        world->now_usec - peaks->began_usec >= world->tunings[BERTH_TUNING_SETTLE_USEC];
    CHECK(world, (double)task->record.peak_mib <= peaks->highest_mib, task->record.job);
    CHECK(world, !is_settled || (double)task->record.peak_mib * STEP + 2 >= most, task->record.job);
}

/* It tells of memory that has grown; or of what else has changed, which it may not always. */
static void check_change(World *world, const BerthCoreEvent *event, Task *task,
                         const BerthCoreTask *old)
{
    const BerthCoreTask *record = &task->record;
    Peaks *peaks = &task->peaks;
    if (record->peak_mib == old->peak_mib && record->peak_milli == old->peak_milli)
        return;
    CHECK(world,
          event->kind == BERTH_EVENT_GUEST_REPORTED && event->guest.job == record->job &&
              event->guest.task == record->task,
          record->job);
    CHECK(world, world->now_usec - peaks->began_usec >= world->tunings[BERTH_TUNING_SETTLE_USEC],
          record->job);
    if ((double)record->peak_mib > (double)old->peak_mib * STEP) {
        world_note(world, "peak grown");
        return;
    }
    CHECK(world,
          world->now_usec - peaks->looked_usec >= world->tunings[BERTH_TUNING_PEAK_INTERVAL_USEC],
          record->job);
    peaks->looked_usec = world->now_usec;
    world_note(world, "peak changed");
}

static void check_report(World *world, const BerthCoreEvent *event)
{
    Job *job = world_job(world, event->guest.job);
    Task *task = &job->tasks[event->guest.task];
    const Task *old = check_old_task(world, event->guest.job, event->guest.task);
    const BerthCoreGuest *guest = &(old != NULL ? old : task)->guests[event->guest.guest];
    if (guest->node == 0 || guest->phase != BERTH_GUEST_RUNNING ||
        event->guest.epoch != (old != NULL ? old : task)->record.epoch)
        return;
    measure(world, event, task, guest);
    check_told(world, task);
}

void peaks_check(World *world, const BerthCoreEvent *event)
{
    for (guint i = 0; i < world->changes->len; i++) {
        const Change *change = &g_array_index(world->changes, Change, i);
        Task *task = &world_job(world, change->job)->tasks[change->index];
        CHECK(world, predicts(world) || task->record.peak_mib == 0, change->job);
        if (task->record.epoch != change->old.record.epoch)
            begin(world, task, &change->old.record);
        else
            check_change(world, event, task, &change->old.record);
    }
    if (predicts(world) && event->kind == BERTH_EVENT_GUEST_REPORTED)
        check_report(world, event);
}

/* A guest needs what was told, a step and the margin, and never more than it has. */
static void check_put_back(World *world, const Job *job, guint32 index, guint32 i)
{
    const Task *task = &job->tasks[index];
    guint64 step = 1000 + (guint64)world->tunings[BERTH_TUNING_PEAK_STEP_PERMILLE];
    guint64 margin = 1000 + (guint64)world->tunings[BERTH_TUNING_PEAK_MARGIN_PERMILLE];
    BerthCoreGuest guest;
    if (!berth_core_get_guest(world->core, job->job.id, index, i, &guest))
        return;
    guint64 told_mib = MIN(task->record.peak_mib, whole_mib(&guest.resources));
    guint64 most_mib = MIN(told_mib * step / 1000 * margin / 1000, whole_mib(&guest.resources));
    const BerthResources *begins_with = task->record.checkpoint_epoch != 0
                                            ? &task->record.checkpoint_resources
                                            : &job->job.resources;
    gboolean is_growing = guest.op == BERTH_OP_RESIZING &&
                          guest.resources.memory_mib > guest.old_resources.memory_mib;
    if (is_growing) /* it may take all of it as soon as it has it */
        most_mib = whole_mib(&guest.resources);
    CHECK(world,
          guest.predicted_mib == (told_mib > 0 || is_growing ? most_mib : whole_mib(begins_with)),
          job->job.id);
    if (told_mib > 0)
        world_note(world, "peak put back");
}

static void restart_task(World *world, Job *job, guint32 index)
{
    Task *task = &job->tasks[index];
    Peaks *peaks = &task->peaks;
    guint64 told_mib = task->record.peak_mib;
    peaks->looked_usec = peaks->began_usec = world->now_usec;
    if (told_mib > 0)
        peaks->began_usec -= world->tunings[BERTH_TUNING_SETTLE_USEC];
    peaks->highest_mib = MAX(peaks->highest_mib, (double)told_mib);
    for (guint32 i = 0; i < MAX(job->job.guests, 1); i++) {
        const BerthCoreGuest *guest = &task->guests[i];
        /* It may have been larger before it went on from a checkpoint. */
        guint64 whole = guest->node != 0 ? whole_mib(&guest->resources) : told_mib;
        peaks->reported_usec[i] = world->now_usec;
        peaks->mib[i] = (double)MIN(told_mib, whole);
        if (predicts(world))
            check_put_back(world, job, index, i);
    }
}

void peaks_restarted(World *world)
{
    for (guint64 number = 1; number <= world->jobs->len; number++) {
        Job *job = world_job(world, number);
        for (guint32 i = 0; !job->is_over && i < job->n_tasks; i++)
            restart_task(world, job, i);
    }
}
