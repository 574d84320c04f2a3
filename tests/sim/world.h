/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/core.h"

/* A tiny world for the core: hosts with guests, agents whose sessions break, a driver that loses,
 * doubles and reorders what it may, and a store from which the core is restored. It steps the core
 * one event at a time, and after each checks what must be true from outside.
 *
 * All chance comes from one seed; the log of all actions is kept to compare runs. */
typedef struct World World;

typedef struct {
    guint32 seed;
    guint n_nodes;
    guint n_jobs;
    BerthCorePolicy policy;
    guint32 features;
    gboolean can_fence;
    gboolean fair_share; /* counts in the order, and so does age */
    gboolean failures;   /* sessions break, hosts reboot, starts fail, the scheduler restarts */
    gboolean idles; /* jobs are long, single and may move, and use little of what they reserve */
} WorldConfig;

/* Of one guest, whoever wants it. */
#define WORLD_MOVES_PER_MINUTE_MAX 12u

World *world_new(const WorldConfig *config);
void world_free(World *world);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(World, world_free)

/* One random thing happens. */
void world_step(World *world);
/* Nothing fails any more, until every job has ended; aborts if that never comes. */
void world_settle(World *world);
/* Everything that the core was told and asked for, one line each. */
const char *world_log(const World *world);
/* How often something happened that the tests want to have covered. */
guint world_count(const World *world, const char *what);
