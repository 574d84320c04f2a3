/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the fake world's two files share. */

#include "tests/sim/world.h"

typedef struct {
    BerthCoreNodeInfo info;
    gboolean has_session; /* its agent has; the core may not have noticed yet */
    /* as stored by the driver */
    BerthNodeState state;
    gint64 since_usec;
    gboolean was_up;
} Host;

typedef struct {
    guint32 node;
    gboolean is_fenced;
    gboolean is_saved;     /* checkpointed: it stands still */
    BerthFoundGuest found; /* as its agent knows it */
} Guest;

typedef struct {
    BerthCoreEvent event;
    guint32 node; /* whose session carries it; 0 = none */
} Result;

#define GUESTS_MAX 4u

typedef struct {
    BerthCoreJob job;
    guint32 nodes[2];
    BerthCoreTask task;                /* as stored */
    BerthCoreGuest guests[GUESTS_MAX]; /* likewise; node 0 = none any more */
    gboolean is_over;                  /* ended and released: not restored */
} Job;

typedef enum {
    DIES_NEVER,
    DIES_BEFORE_COMMIT,
    DIES_AFTER_COMMIT,
} Death;

struct World {
    WorldConfig config;
    GRand *random;
    gint64 now_usec;
    BerthCore *core;
    GArray *hosts;   /* Host, handle - 1 */
    GArray *guests;  /* Guest: what there is, until it is released */
    GArray *orders;  /* BerthCoreAction on their way */
    GArray *results; /* Result on their way */
    GArray *jobs;    /* Job, number - 1: the store */
    Death dies_at;   /* at the next event */
    GString *log;
    gint64 tunings[BERTH_TUNING_N];
    GHashTable *counts;
};

void world_note(World *world, const char *what);
gboolean world_chance(World *world, guint percent);
guint world_pick(World *world, guint n);
gboolean world_id_equal(const BerthGuestId *a, const BerthGuestId *b);
void world_break_session(World *world, guint32 node);

void driver_start(World *world);
void driver_stop(World *world);
void driver_restart(World *world);
void driver_submit(World *world);
/* Gives EVENT to the core, stores what changed, sends the actions, and checks everything. */
void driver_handle(World *world, const BerthCoreEvent *event);
/* 0 = all have ended. */
guint driver_first_unfinished(const World *world);
gboolean driver_has_unfinished(const World *world);
/* tests/sim/checks.c: BEFORE is the store before the event; NULL after a restart. */
void check_world(World *world, const GArray *before, const BerthCoreEffects *effects);
