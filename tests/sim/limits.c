/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what users and operators of the fake world want of time limits: jobs that wait, run or stand still at theirs
 * get another one, or are refused it. */
#include "tests/sim/world_internal.h"

#define SECOND_USEC ((gint64)G_USEC_PER_SEC)

static gboolean is_unfinished(const BerthCoreTask *record)
{
    return !berth_job_state_is_final(record->state) && record->phase != BERTH_GUEST_STOPPING;
}

static gboolean is_at_limit(const BerthCoreTask *record)
{
    return is_unfinished(record) && record->freeze_reason == BERTH_REASON_TIME_LIMIT;
}

static gboolean has_guest(const BerthCoreTask *record)
{
    return record->phase == BERTH_GUEST_STARTING || record->phase == BERTH_GUEST_RUNNING;
}

/* One that knows what it has used, and that is as much; what the others have used the core reckons. */
static gboolean has_used(const Job *job, gint64 limit_usec)
{
    for (guint32 i = 0; i < job->n_tasks; i++) {
        const BerthCoreTask *record = &job->tasks[i].record;
        if (is_unfinished(record) && record->ran_usec >= limit_usec)
            return TRUE;
    }
    return FALSE;
}

static gboolean runs(const Job *job)
{
    for (guint32 i = 0; i < job->n_tasks; i++) {
        const BerthCoreTask *record = &job->tasks[i].record;
        if (is_unfinished(record) && has_guest(record) && !is_at_limit(record))
            return TRUE;
    }
    return FALSE;
}

static gboolean is_any_at_limit(const Job *job)
{
    for (guint32 i = 0; i < job->n_tasks; i++)
        if (is_at_limit(&job->tasks[i].record))
            return TRUE;
    return FALSE;
}

/* The first after a random one that stands still at its limit; else the random one. */
static Job *choose_job(World *world)
{
    guint first = world_pick(world, world->jobs->len);
    for (guint i = 0; i < world->jobs->len; i++) {
        Job *job = world_job(world, 1 + (first + i) % world->jobs->len);
        if (is_any_at_limit(job))
            return job;
    }
    return world_job(world, 1 + first);
}

static gboolean set_limit(World *world, guint64 number, gint64 limit_usec, gboolean by_operator)
{
    const Job *job = world_job(world, number);
    gboolean dies = world->dies_at != DIES_NEVER;
    gboolean was_at_limit = is_any_at_limit(job);
    gboolean puts_off = limit_usec > job->job.time_limit_usec && runs(job) && !by_operator;
    gboolean is_too_little = has_used(job, limit_usec);
    BerthCoreEvent event = {.kind = BERTH_EVENT_JOB_TIME_LIMIT_SET, .guest = {.job = number}};
    event.request.time_limit_usec = limit_usec;
    event.request.by_operator = by_operator;
    gboolean ok = driver_handle(world, &event);
    CHECK(world, !ok || (!puts_off && !is_too_little), number);
    if (ok && !dies) {
        CHECK(world, job->job.time_limit_usec == limit_usec && !is_any_at_limit(job), number);
        world_note(world, was_at_limit ? "extended at its limit" : "limit set");
    }
    return ok;
}

void limits_ask(World *world)
{
    if (world->jobs->len == 0)
        return;
    const Job *job = choose_job(world);
    gint64 limit_usec = (1 + world_pick(world, 120)) * SECOND_USEC;
    if (world_chance(world, 50))
        limit_usec = job->job.time_limit_usec + (1 + world_pick(world, 20)) * SECOND_USEC;
    set_limit(world, job->job.id, limit_usec, world_chance(world, 50));
}

/* All that stand still at their limit get what they need to end, which nobody has used yet. */
void limits_let_go(World *world)
{
    for (guint64 number = 1; number <= world->jobs->len; number++) {
        const Job *job = world_job(world, number);
        if (!job->is_refused && is_any_at_limit(job))
            CHECK(world, set_limit(world, number, job->job.time_limit_usec + world->now_usec, TRUE),
                  number);
    }
}
