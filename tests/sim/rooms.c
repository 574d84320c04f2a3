/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the check that nobody who is backed waits for guests in slack for longer than the evacuation bound, by the world's
 * own clock: whatever fails meanwhile. */
#include "tests/sim/world_internal.h"

static gboolean has_begun(const Task *task)
{
    gboolean has = task->record.start_taken;
    for (guint32 i = 0; i < GUESTS_MAX; i++)
        has |= task->guests[i].phase == BERTH_GUEST_RUNNING;
    return has;
}

static void note(World *world, const BerthCoreGuest *guest)
{
    world_note(world, guest->op == BERTH_OP_NONE        ? "start waits for room"
                      : guest->op == BERTH_OP_MIGRATING ? "move waits for room"
                                                        : "growth waits for room");
}

/* Another start, or another thing that is to be done to it, waits anew. */
static gboolean is_same(const Wait *wait, const BerthCoreGuest *guest)
{
    return wait->since_usec != 0 && wait->epoch == guest->id.epoch &&
           wait->serial == guest->op_serial;
}

/* Of a gang that may not begin again the others may have begun: that waits on. */
static void check_wait(World *world, const Job *job, const Task *task, Wait *wait,
                       const BerthCoreGuest *guest)
{
    gboolean goes_on = job->job.guests > 1 && job->job.no_requeue && has_begun(task);
    if (!is_same(wait, guest)) {
        *wait = (Wait){world->now_usec, guest->id.epoch, guest->op_serial};
        note(world, guest);
    }
    CHECK(world,
          goes_on ||
              world->now_usec - wait->since_usec < world->tunings[BERTH_TUNING_EVACUATION_MAX_USEC],
          job->job.id);
}

/* Those that are handled are the timers that are due: who has waited for that long is not waiting any more. */
void rooms_check(World *world, const BerthCoreEffects *effects)
{
    for (guint64 number = 1; number <= world->jobs->len; number++) {
        Job *job = world_job(world, number);
        for (guint32 i = 0; !job->is_over && i < job->n_tasks; i++)
            for (guint32 k = 0; k < MAX(job->job.guests, 1); k++) {
                BerthCoreGuest guest;
                if (berth_core_get_guest(world->core, number, i, k, &guest) && guest.waits_for_room)
                    check_wait(world, job, &job->tasks[i], &job->waits[i][k], &guest);
                else
                    job->waits[i][k].since_usec = 0;
            }
    }
    for (guint i = 0; i < effects->given_up->len; i++)
        world_note(world,
                   g_array_index(effects->given_up, BerthCoreAction, i).kind == BERTH_ACTION_MIGRATE
                       ? "move given up"
                       : "growth given up");
}

void rooms_restarted(World *world)
{
    for (guint64 number = 1; number <= world->jobs->len; number++)
        memset(world_job(world, number)->waits, 0, sizeof world_job(world, number)->waits);
}
