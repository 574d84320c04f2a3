/* SPDX-License-Identifier: Apache-2.0 */
/* PREDICT, growth: how much memory backed guests will have come to take before those in their node's slack have left.
 *
 * That is for as long as the one takes that takes longest, which is enough where they leave, a few at a time, as fast as others
 * grow. Where growth is faster it also ends: at what is reserved, or with what is known of it. If who is in the way then could not have left until
 * then, it has to begin now.
 *
 * A guest that has been larger comes back to what it was and takes nobody by surprise: its need has that. Only what it grows
 * from there on is looked ahead at. */
#include "scheduler/core/lead.h"

#include "scheduler/core/class.h"
#include "scheduler/core/growth.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/predict.h"
#include "scheduler/core/relief.h"
#include "scheduler/core/timers.h"

/* --- how long they take to leave ------------------------------------------------------------- */

static gint64 with_lead(const BerthCore *core, gint64 usec)
{
    return MIN(usec, core->tunings[BERTH_TUNING_EVACUATION_MAX_USEC]) / 1000 *
           core->tunings[BERTH_TUNING_GROWTH_LEAD_PERMILLE];
}

/* Which way it goes is not known before it does. */
static gint64 leave_usec(const BerthCore *core, const CoreGuest *guest)
{
    const CoreJob *job = guest->task->job;
    if (guest->phase < BERTH_GUEST_RUNNING || guest->touched_mib == 0)
        return core_move_away_usec(core, job->class, guest->needs.memory_mib,
                                   job->checkpoint_signal_usec);
    gint64 moved_usec =
        core_move_could_migrate(core, guest) ? core_move_migrate_usec(core, guest) : 0;
    gint64 saved_usec =
        core_move_could_checkpoint(core, guest) ? core_move_checkpoint_usec(core, guest) : 0;
    return MAX(moved_usec, saved_usec);
}

/* Until GUEST has left its node's slack. One that is saved and goes on has to be done with that before. */
static gint64 gone_in_usec(const BerthCore *core, const CoreGuest *guest)
{
    if (guest->phase > BERTH_GUEST_RUNNING)
        return 0;
    if (guest->leaves_usec != 0)
        return MAX(guest->leaves_usec - core->now_usec, 0);
    gint64 saving_usec =
        guest->op == BERTH_OP_CHECKPOINTING ? core_move_checkpoint_usec(core, guest) : 0;
    return core_time_add(saving_usec, leave_usec(core, guest));
}

static gint64 all_gone_in_usec(const BerthCore *core, const CoreNode *node)
{
    gint64 most_usec = 0;
    for (guint i = 0; i < node->guests->len; i++) {
        const CoreGuest *guest = g_ptr_array_index(node->guests, i);
        if (guest->is_opportunistic)
            most_usec = MAX(most_usec, gone_in_usec(core, guest));
    }
    return most_usec;
}

/* Until MIB of what is in NODE's slack are written out: as much of the time that all of it takes (relief.h). */
static gint64 evacuation_usec(const BerthCore *core, const CoreNode *node, guint64 mib)
{
    guint64 all_mib = core_node_evacuation_mib(&core->nodes, node);
    if (mib < node->slack_used_mib)
        all_mib = all_mib * mib / node->slack_used_mib;
    return (gint64)all_mib * (gint64)G_USEC_PER_SEC /
           core->tunings[BERTH_TUNING_CHECKPOINT_MIB_PER_SEC];
}

/* --- how much is taken until then ------------------------------------------------------------- */

typedef struct {
    const BerthCore *core;
    const CoreNode *node;
    guint64 (*speed)(const CoreGrowth *growth, gint64 now_usec); /* MiB a second */
} Lead;

/* To what it was before, and is predicted to need again. */
static gboolean comes_back(const Lead *lead, const CoreGuest *guest)
{
    return guest->growth.noted_mib < guest->growth.most_mib &&
           core_predict_occupied_mib(lead->core, guest) < guest->needs.memory_mib;
}

/* Of one that is backed where it is, or comes to be; 0: it does not grow. */
static guint64 speed_of(const Lead *lead, const CoreGuest *guest)
{
    if (guest->phase != BERTH_GUEST_RUNNING || comes_back(lead, guest))
        return 0;
    return lead->speed(&guest->growth, lead->core->now_usec);
}

/* What GUEST, of which TAKEN_MIB are reckoned with, will have come to take beyond that in USEC, of SIZE_MIB at most. */
static guint64 more_mib(const Lead *lead, const CoreGuest *guest, gint64 usec, guint64 taken_mib,
                        guint64 size_mib)
{
    guint64 speed = speed_of(lead, guest);
    if (speed == 0)
        return 0;
    gint64 known_usec = MIN(usec, core_growth_known_usec(&guest->growth));
    guint64 grown = speed * (guint64)(known_usec / 1000) / 1000;
    guint64 will = MIN(core_predict_occupied_mib(lead->core, guest) + grown, size_mib);
    return will - MIN(will, taken_mib);
}

/* In USEC. Who is moved away grows here until it has gone, and then there. */
static guint64 all_more_mib(const Lead *lead, gint64 usec)
{
    const CoreNode *node = lead->node;
    guint64 sum = 0;
    for (guint i = 0; i < node->guests->len; i++) {
        const CoreGuest *guest = g_ptr_array_index(node->guests, i);
        gint64 here_usec =
            guest->leaves_usec != 0 ? guest->leaves_usec - lead->core->now_usec : usec;
        if (!guest->is_opportunistic && here_usec > 0)
            sum += more_mib(lead, guest, MIN(usec, here_usec), core_predict_taken_mib(guest),
                            guest->size.memory_mib);
    }
    for (guint i = 0; i < node->incoming->len; i++) {
        const CoreGuest *guest = g_ptr_array_index(node->incoming, i);
        if (!guest->is_opportunistic_there)
            sum += more_mib(lead, guest, usec, guest->held.memory_mib + guest->held_extra_mib,
                            guest->to_size.memory_mib);
    }
    return sum;
}

/* How long GUEST goes on; 0: it does not grow. */
static gint64 grows_usec(const Lead *lead, const CoreGuest *guest)
{
    guint64 speed = guest->is_opportunistic ? 0 : speed_of(lead, guest);
    if (speed == 0)
        return 0;
    guint64 occupied = core_predict_occupied_mib(lead->core, guest);
    gint64 full_usec =
        (gint64)((guest->size.memory_mib - occupied) * (guint64)G_USEC_PER_SEC / speed);
    return MIN(MIN(full_usec, core_growth_known_usec(&guest->growth)),
               lead->core->tunings[BERTH_TUNING_EVACUATION_MAX_USEC]);
}

/* AHEAD_MIB, for LEAVING_USEC, or what is taken when a guest has come to the end of its growth, if they are not rid of what is in the way by
 * then. */
static guint64 to_the_end_mib(const Lead *lead, gint64 leaving_usec, guint64 ahead_mib)
{
    const CoreNode *node = lead->node;
    guint64 taken = core_relief_taken_mib(node);
    guint64 most = all_more_mib(lead, lead->core->tunings[BERTH_TUNING_EVACUATION_MAX_USEC]);
    if (taken + most <= node->capacity.memory_mib)
        return ahead_mib; /* whenever they end, there is room */
    for (guint i = 0; i < node->guests->len; i++) {
        gint64 end_usec = grows_usec(lead, g_ptr_array_index(node->guests, i));
        if (end_usec <= leaving_usec)
            continue;
        guint64 by_then = all_more_mib(lead, end_usec);
        guint64 lacking = taken + by_then - MIN(taken + by_then, node->capacity.memory_mib);
        gint64 rid_usec = with_lead(lead->core, evacuation_usec(lead->core, node, lacking));
        if (lacking > 0 && rid_usec >= end_usec)
            ahead_mib = MAX(ahead_mib, by_then);
    }
    return ahead_mib;
}

static guint64 lead_mib(const Lead *lead, gint64 coming_usec)
{
    const BerthCore *core = lead->core;
    if (core->now_usec > lead->node->grows_until_usec)
        return 0;
    gint64 leaving_usec = with_lead(core, MAX(coming_usec, all_gone_in_usec(core, lead->node)));
    return leaving_usec == 0 ? 0
                             : to_the_end_mib(lead, leaving_usec, all_more_mib(lead, leaving_usec));
}

guint64 core_lead_mib(const BerthCore *core, const CoreNode *node)
{
    Lead lead = {core, node, core_growth_mib_per_sec};
    return lead_mib(&lead, 0);
}

guint64 core_lead_with_mib(const BerthCore *core, const CoreNode *node, const CoreClass *class,
                           guint64 mib, gint64 signal_usec)
{
    Lead lead = {core, node, core_growth_most_mib_per_sec};
    return lead_mib(&lead, core_move_away_usec(core, class, mib, signal_usec));
}
