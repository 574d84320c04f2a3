/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/core.h"

/* What people ask of the core, and what decides nothing: nothing here changes anything. */

/* May a task that waits start in slack now? */
typedef enum {
    BERTH_SLACK_OFF = 1,       /* nobody may */
    BERTH_SLACK_NOT_WANTED,    /* its job does not want to */
    BERTH_SLACK_CANNOT_LEAVE,  /* it could neither be moved nor checkpointed */
    BERTH_SLACK_NO_SPACE,      /* of checkpoint storage, for all of its memory */
    BERTH_SLACK_WANTS_BACKING, /* it has starved in slack */
    BERTH_SLACK_NO_ROOM,       /* on any node */
    BERTH_SLACK_ROOM,          /* it fits somewhere, and has not been looked at since */
} BerthCoreSlackAnswer;

/* What keeps a node from taking a guest into its slack: the first of these that holds. */
typedef enum {
    BERTH_HINDRANCE_NONE,
    BERTH_HINDRANCE_LOST,   /* a guest of the task was lost there last */
    BERTH_HINDRANCE_CPU,    /* it is not predicted to leave so much of that idle */
    BERTH_HINDRANCE_MEMORY, /* likewise */
    BERTH_HINDRANCE_OVERCOMMIT, /* its guests would reserve more than overcommit_max_permille of its memory */
    BERTH_HINDRANCE_PRESSED, /* it was short of memory lately, or about to be */
    BERTH_HINDRANCE_RESTS,   /* somebody who was started there had to go before he ran, lately */
    BERTH_HINDRANCE_AWAITED, /* what a guest that was put back there needs is not known again yet */
    BERTH_HINDRANCE_EVACUATION, /* all there in slack could not be written out within the evacuation bound */
    BERTH_HINDRANCE_MAINTENANCE, /* it would meet one */
    BERTH_HINDRANCE_OCCUPIED,    /* its guests occupy more memory than they are predicted to need */
    BERTH_N_HINDRANCES,
} BerthHindrance;

#define BERTH_WAIT_BEFORE_MAX   8u
#define BERTH_WAIT_LEAVINGS_MAX 16u
#define BERTH_WAIT_NODES_MAX    16u

typedef struct {
    guint64 job;
    guint32 task;
    guint32 node;     /* handle */
    gint64 time_usec; /* when its time limit has passed */
} BerthCoreLeaving;

/* Why a task waits. Memory is with the host's overhead. */
typedef struct {
    BerthReason reason;                          /* as berth_core_pending_reason() */
    gint64 not_before_usec;                      /* it backs off until then; 0 = it does not */
    gint64 planned_usec;                         /* 0 = it is not planned */
    guint32 planned_nodes[BERTH_WAIT_NODES_MAX]; /* handles, each once */
    guint n_planned_nodes;
    gboolean is_gathered; /* that start may be put off, by who cannot run in slack */
    BerthCoreLeaving leavings[BERTH_WAIT_LEAVINGS_MAX]; /* from these until then, by time */
    guint n_leavings;
    guint32 guests; /* that it has, of the size: */
    guint32 need_vcpus;
    guint64 need_mib;
    /* Handles of nodes that it names and that take no guests. */
    guint32 closed[BERTH_WAIT_NODES_MAX];
    guint n_closed;
    guint32 nodes_closed; /* of which those are the first */
    guint32 nodes_open;   /* that it may use, are large enough, and take guests */
    guint32 nearest;      /* handle of the one of these that lacks least; 0 = there is none */
    guint32 nearest_vcpus;
    guint64 nearest_mib; /* that it has free */
    guint64 before[BERTH_WAIT_BEFORE_MAX];
    guint n_before;
    guint32 jobs_before;      /* of which those are the first */
    gboolean has_more_before; /* not all were counted */
    BerthCoreSlackAnswer slack;
    guint32 hindrances[BERTH_N_HINDRANCES]; /* of NODES_OPEN; BERTH_SLACK_NO_ROOM only, else 0 */
    guint32 slack_need_milli;               /* what it would be taken at there */
    guint64 slack_need_mib;
} BerthCoreWait;

/* FALSE: it does not wait. Looks at each node once, and at a bounded number of jobs. */
gboolean berth_core_get_wait(BerthCore *core, guint64 job, guint32 task, BerthCoreWait *out_wait);
/* When the core next looks for room although nobody has come or gone; 0 = it will not. */
gint64 berth_core_next_look_usec(BerthCore *core);
/* Appends the guests (BerthGuestId) that are on NODE, or may be there. */
void berth_core_add_guests_of(BerthCore *core, guint32 node, GArray *guests);
/* Jobs that could start, if there were room and it were their turn. */
guint64 berth_core_n_waiting(BerthCore *core);
/* When the time limit of a task that runs, or stands still while its limit goes on, has passed, if it loses no more time to others on its node than
 * is known by its latest reports, so that it does not swing with what these say;
 * G_MAXINT64 = it has none, or does neither. */
gint64 berth_core_limit_usec(BerthCore *core, guint64 job, guint32 task);

/* What a drain of NODE would do with each guest there, by their ids; NODE need not be drained. */
typedef struct {
    BerthGuestId guest;
    BerthJobState state;
    gboolean moves;       /* as soon as there is room elsewhere; else its end is waited for */
    gboolean checkpoints; /* it could be, where it cannot be moved in time */
    gboolean lacks_room;  /* MOVES, and there is none now beside those before it */
    /* ... where it is backed: it moves into slack after drain_patience, unless there is some then. */
    gboolean into_slack;
    gboolean lacks_space; /* CHECKPOINTS, and for that there is none, likewise */
    gboolean is_leaving;  /* that it is moved, or checkpointed, is under way */
    /* Its move, or else its checkpoint, as the policy reckons it (doc/policy.md). */
    gint64 takes_usec;
    /* When its time limit and its grace have passed, if it loses no more time to others on its node; G_MAXINT64 = it has no
     * limit, or stands still without it. */
    gint64 limit_usec;
} BerthCoreDrainStep;
/* The nodes WITH are to be drained with it: nothing moves there. (transfer full, BerthCoreDrainStep); NULL: no such
 * node. */
GArray *berth_core_plan_drain(BerthCore *core, guint32 node, const guint32 *with, gsize n_with);
/* How long it takes until all of STEPS that move or are checkpointed have left, if there is room for them and N_NODES are
 * drained at a time; the ends of the others are not reckoned in. */
gint64 berth_core_drain_usec(BerthCore *core, const GArray *steps, guint32 n_nodes);
/* When a pending job is planned to start, if it is among those that are; 0 = it is not. Behind the
 * firm starts that changes with whether anybody else's start depended on it (gather.h). */
gint64 berth_core_planned_usec(BerthCore *core, guint64 job);
