/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/index_set.h"
#include "common/types.h"

/* What the core knows of jobs, tasks, nodes and guests, as it tells it, and as it is told it again after a restart. */

/* Where a task's guest stands. Stored with the task; a task without a guest has NONE. */
typedef enum {
    BERTH_GUEST_NONE = 0,
    BERTH_GUEST_STARTING = 1,  /* START is in flight, or the guest boots */
    BERTH_GUEST_RUNNING = 2,   /* the command runs */
    BERTH_GUEST_STOPPING = 3,  /* STOP is in flight, or its effect */
    BERTH_GUEST_RELEASING = 4, /* RELEASE is in flight; the outcome is decided */
    BERTH_GUEST_FENCING =
        5, /* FENCE is in flight; its node is lost, or it has left that, or may have */
} BerthGuestPhase;

/* What is being done to a running guest. One thing at a time; cleared by its result. */
typedef enum {
    BERTH_OP_NONE = 0,
    BERTH_OP_MIGRATING = 1, /* room is held at both ends */
    BERTH_OP_CHECKPOINTING = 2,
    BERTH_OP_RESIZING = 3, /* the larger of both sizes is held; also a balloon */
    BERTH_OP_FREEZING = 4,
    BERTH_OP_THAWING = 5,
} BerthGuestOp;

typedef enum {
    BERTH_ON_LIMIT_FREEZE = 0,
    BERTH_ON_LIMIT_NOTIFY = 1, /* only its user is told */
    BERTH_ON_LIMIT_KILL = 2,
} BerthOnLimit;

typedef enum {
    BERTH_ON_TIMEOUT_KILL = 0,
    BERTH_ON_TIMEOUT_CHECKPOINT =
        1, /* it stands still without a guest, as a checkpoint, until its limit is
                                      * extended. Needs BERTH_FEATURE_CHECKPOINT and space; else as KILL */
} BerthOnTimeout;

/* A task as the core knows it, and as the store gives it back. The driver stores it whenever it
 * is reported as changed. */
typedef struct {
    guint64 job;
    guint32 task;
    BerthJobState state;
    BerthReason reason;
    BerthGuestPhase phase;
    BerthReason stop_reason; /* why it is being stopped; NONE when it is not */
    guint32 node;            /* handle of the node, 0 = none; see berth_core_add_node() */
    guint32 epoch;           /* of the newest guest; 0 = never started */
    gboolean start_taken;    /* a node of it has answered START: its command may have run */
    guint32 requeues;
    guint32 start_failures; /* since the last start that worked */
    gint64 not_before_usec; /* backing off until then */
    gint64 start_usec;      /* of the command, newest epoch; 0 = not yet */
    gint64 end_usec;
    guint32 checkpoint; /* serial of the one that its next guest goes on from, by RESTORE; ... */
    guint32
        checkpoint_epoch; /* ... and of the guest that it was taken of; 0 = has none, it begins anew */
    gint64 checkpoint_ran_usec; /* ... what had been used of its time limit then */
    BerthResources
        checkpoint_resources; /* ... and what it had, and needs again; as BerthCoreCheckpoint's */
    guint32 checkpoint_requeues; /* ... and REQUEUES when it came to be that one */
    guint32 checkpoint_last;     /* serial of the latest that was begun; none comes twice */
    guint64
        checkpoints_mib; /* of checkpoint storage: what all of its checkpoints take, as was told */
    guint64
        checkpoint_space_mib; /* likewise, kept for the one that is wanted or under way; 0 = for none */
    BerthReason checkpoint_wanted; /* its guest is to be checkpointed, and runs on, and this is why:
                                    * CHECKPOINTED_BY_USER, _BY_OPERATOR, CHECKPOINT_DUE. Until that is done, or
                                    * cannot be */
    guint32
        checkpoint_open; /* serial of the one that is under way; 0 = none is: a core that is put back
                              * asks again */
    BerthReason checkpoint_reason; /* of that */
    gboolean checkpoint_stops;     /* its guest stands still after that, to be released */
    gint64 checkpoint_usec; /* when the latest of the present run was begun; 0 = there was none */
    guint32
        checkpoint_doubted; /* serial of one that was under way when its guest was lost: it may have been
                             * made all the same. 0 = none, or nothing of that guest is left any more */
    gint64
        checkpoint_doubted_ran_usec; /* what had been used of its time limit when that was begun */
    gint64
        checkpoint_missed_usec; /* when one was last due, or its time limit came, and there was no
                                    * space for it; 0 = never */
    gint64
        drain_missed_usec; /* when its node was last drained, it was to be checkpointed, and there was
                            * no space for it; 0 = never */
    gint64 ran_usec;       /* of its time limit, before the present run */
    gint64 starved_usec;   /* of the present run: lost because its node gave it less than it
                               * wanted, and not charged to its time limit */
    /* What that guest of the present run which needs most was measured to need, when that was last
     * told: when its memory has grown by BERTH_TUNING_PEAK_STEP_PERMILLE since, or anything has
     * changed by as much and BERTH_TUNING_PEAK_INTERVAL_USEC has passed. Overhead included.
     * PEAK_MIB 0 = not known: it has not settled yet. */
    guint32 peak_milli;
    guint64 peak_mib;
    BerthReason freeze_reason; /* its guest is to stand still, and this is why: FROZEN_BY_USER,
                                * FROZEN_BY_OPERATOR, AT_LIMIT, or TIME_LIMIT, which is to disk; NONE = it is to
                                * run. That it does stand still is the state SUSPENDED. */
    gint64 frozen_usec;        /* since when it does; 0 = it does not */
    gboolean
        wants_backing; /* it has starved in slack, or was crowded out of it, and waits for a backed start until one runs */
    gboolean
        freeze_to_disk; /* it is to stand still without a guest, as a checkpoint; with FREEZE_REASON */
    guint32 migrate_to; /* handle of the node to which its guest is being moved; 0 = it is not: a
                                * core that is put back asks again */
    BerthReason migrate_reason;
    gboolean migrate_is_unwanted; /* somebody has called that off */
    gboolean
        waits_for_room; /* what is to be done by MIGRATE_TO or RESIZE_TO has not been asked of anybody yet: guests in
                              * slack are to make room for it first. A core that is put back lets it wait on */
    gboolean
        freeze_is_open; /* FREEZE or THAW was not answered yet: a core that is put back asks one that is SUSPENDED, and is
                               * not to stand still, for THAW again, and any other one for FREEZE */
    BerthResources resources; /* of its one guest; 0 = what its job reserves */
    /* What that is to have, here or where it is being moved for it, which may be what it has: to be backed, or
     * with another balloon. A core that is put back asks again; 0 = nothing is asked. */
    BerthResources resize_to;
    BerthReason resize_reason; /* of RESIZE_TO */
    /* Of its one guest; of a gang's, and of one that does not exist, 0. */
    gboolean is_opportunistic;
    gboolean is_opportunistic_there; /* where it is being moved */
    guint64 balloon_mib;             /* of its memory, that its balloon keeps from it; ... */
    guint64 to_balloon_mib;          /* ... and that it is to keep when RESIZE_TO is done */
    gint64
        short_usec; /* since when it stalls for want of memory, can get no more, and goes on all the same;
                        * 0 = it does not, or nobody knows yet */
    /* Tasks of an array that never started and ended together have one record, which is that of the first: it is
     * also that of those up to REST_LAST, by steps of REST_STEP. 0 = of itself alone. */
    guint32 rest_last;
    guint32 rest_step;
    /* CANCELLED for DEPENDENCY_NEVER: the job that it comes after, and that did not end as it must have; 0 = not so. A core that is
     * put back needs it no more. */
    guint64 never_after;
    gboolean never_by_task; /* of that job the task of its own index */
} BerthCoreTask;
/* Which states and phases go together:
 *   PENDING  NONE: waits; RELEASING, FENCING: what is left of its last guest is being removed, and
 *            it waits again after that
 *   RUNNING  STARTING (the flag "booting"), RUNNING, STOPPING
 *   SUSPENDED  RUNNING: its guest stands still; RELEASING, FENCING, NONE: frozen to disk, it goes on from its
 *            checkpoint when it is thawed, or, at its time limit, when that is extended
 *   final    RELEASING, FENCING: its guest is being removed; NONE: done, the core forgets it
 * NODE stays that of the last guest when there is none any more. A RUNNING or STARTING task with a
 * STOP_REASON is to be stopped, and its node is away: STOP leaves when the node joins again. */

/* When a job may start, seen from another job of the store. One that is not known any more has
 * ended, as OUTCOME says. */
typedef enum {
    BERTH_AFTER_ANY = 1,    /* it has ended */
    BERTH_AFTER_OK = 2,     /* it has ended, all of its tasks COMPLETED */
    BERTH_AFTER_NOT_OK = 3, /* it has ended otherwise */
    BERTH_AFTER_START = 4,  /* each of its tasks has started or ended */
    BERTH_SINGLETON = 5,    /* no earlier sibling is unfinished; JOB is not used */
    BERTH_AFTER_CORR =
        6, /* of an array, element by element: a task may start when the one of JOB that has its index has
                             * COMPLETED */
} BerthDependencyKind;

typedef struct {
    BerthDependencyKind kind;
    guint64 job;
    BerthJobState outcome; /* of JOB, if the driver knows that it has ended; 0 = unknown: one that
                            * the core does not know counts as ended badly */
} BerthCoreDependency;

/* A job as the core needs it: no strings but the node constraint. */
typedef struct {
    guint64 id;
    guint32 uid;
    BerthResources resources;
    gint64 time_limit_usec; /* of running, less what it was starved of; 0 = none */
    gint64 stop_grace_usec; /* 0 = the configuration's */
    gint32 priority; /* any; higher first, whatever fair share, age and QOS say; ties by lower id */
    gboolean held;
    gboolean held_by_operator;
    gboolean no_requeue;
    gint64 submit_usec;
    const guint32 *nodes; /* handles; NULL with n_nodes 0 = any. Copied. */
    gsize n_nodes;
    /* All below: 0, NULL and FALSE mean none of it. */
    guint32 guests;         /* per task, RESOURCES each, placed all or none; 0 = 1 */
    guint32 array_size;     /* tasks 0..n-1; 0 = a plain job, of one */
    guint32 array_throttle; /* of which so many run at a time */
    /* TRUE: its tasks, so many as ARRAY_SIZE says, are those of INDICES, rising, instead. One that is put back: those
     * that have never started, and what is neither of these nor among its tasks has ended. INDICES: copied. */
    gboolean has_indices;
    const BerthIndexRange *indices;
    gsize n_indices;
    /* Of an array: those that are held by themselves, beside HELD. Copied. */
    const BerthIndexRange *tasks_held_by_user;
    gsize n_held_by_user;
    const BerthIndexRange *tasks_held_by_operator;
    gsize n_held_by_operator;
    gboolean has_failed; /* put back: one of its tasks has ended otherwise than COMPLETED */
    guint32 account;     /* see ACCOUNT_SET */
    guint32 qos;         /* see QOS_SET */
    guint64 family; /* jobs of one user with the same are siblings: a digest of the job's name */
    BerthResources ceiling; /* may be grown up to it; below RESOURCES = not */
    BerthOnLimit on_limit;
    BerthOnTimeout on_timeout;
    gint64 checkpoint_every_usec; /* of running; 0 = not */
    /* From a signal that its command gets before a checkpoint of it, unless it is frozen; 0 = it gets none. */
    gint64 checkpoint_signal_usec;
    gboolean may_move;       /* live, while it runs */
    gboolean may_checkpoint; /* and be restored anywhere */
    gboolean opportunistic;  /* may start in slack, if it also may be moved or checkpointed */
    const BerthCoreDependency *dependencies; /* all must be met. Copied. */
    gsize n_dependencies;
    /* Of jobs named in an AFTER_CORR, those that have COMPLETED; in any order, some may be said twice. What is not among them, nor
     * unfinished, counts as ended badly; but of a job that is put back as having COMPLETED, as those that came after what had not
     * have been ended with it. Copied. */
    const BerthTaskRange *completed;
    gsize n_completed;
} BerthCoreJob;

typedef struct {
    guint32 vcpus;
    guint64 memory_mib;
} BerthCoreCell;

#define BERTH_CELLS_MAX 8u

typedef struct {
    BerthResources capacity; /* offered to guests; disk is not counted (thin) */
    gboolean cannot_start;   /* it says so itself: it gets no new guests until it says otherwise */
    /* NUMA: what the host has in each cell, of which the node offers its capacity in proportion. A
     * guest that fits in a cell is counted in one, larger ones in as few as will do; among nodes on
     * which a guest spans as few, and that are as full, the one is taken that keeps its cells whole.
     * Cells decide between nodes, and never whether a guest may start. 0 or 1: the node is one
     * cell; so is one with more than BERTH_CELLS_MAX, whose driver tells none. */
    guint32 n_cells;
    BerthCoreCell cells[BERTH_CELLS_MAX];
    /* Where it is: nodes of the same rack are nearer to each other than the others, and those of
     * the same fabric nearer than the rest. 0 = not told. */
    guint32 rack, fabric;
} BerthCoreNodeInfo;

typedef enum {
    BERTH_NODE_UP = 1,
    BERTH_NODE_DOWN = 2, /* no session */
    BERTH_NODE_LOST = 3, /* no session for node_timeout */
} BerthNodeState;

/* What an operator lets a node be used for. Stored with the node. */
typedef enum {
    BERTH_ADMISSION_OPEN = 0,
    BERTH_ADMISSION_CORDONED = 1, /* no new guests; those that run stay */
    BERTH_ADMISSION_DRAINING =
        2, /* no new guests; those that may be moved leave, others are waited for */
} BerthNodeAdmission;

typedef struct {
    guint32 handle;
    const char *name; /* (transfer none) */
    BerthNodeState state;
    gint64 since_usec; /* of the state */
    BerthResources capacity;
    BerthResources reserved; /* by guaranteed guests and by moves, overhead included */
    guint32 guests;
    BerthResources opportunistic; /* reserved by the guests that run in slack */
    guint32 predicted_milli;      /* vCPUs that its guests are predicted to use, in 1/1000 */
    guint64 predicted_mib;
    guint64 extra_mib;     /* that they occupy beyond that */
    guint64 headroom_mib;  /* of its capacity: to stay free of slack */
    guint64 available_mib; /* of its host, as it said last; 0 = not told */
    guint64
        ahead_mib; /* that those which it backs will have come to take when who is in its slack has left */
    gboolean
        host_is_pressed; /* its host said last that it lacks memory: little is available, or tasks stall */
    guint32 used_milli; /* that they were reported to use last */
    guint64 used_mib;
    gint64
        pressed_until_usec; /* it was short of memory, or about to be: nobody comes into its slack; 0 = it was not */
    gboolean is_short;       /* guests in its slack have to leave for memory, since ... */
    gint64 short_since_usec; /* ... then; kept when that has ended */
    BerthNodeAdmission admission;
    gboolean is_empty; /* no guest is there, on its way there, or to be removed there */
    /* Why it gets no new guests although it is UP. */
    gboolean cannot_start;
    gint64 closed_until_usec;   /* starts failed on it, BERTH_TUNING_NODE_FAILURES_MAX; 0 = open */
    guint32 strays;             /* guests that are to be removed first */
    gboolean is_oversubscribed; /* it came back smaller than what runs on it */
} BerthCoreNode;

/* One guest of a task that has any; a plain task's is guest 0 and says what its task says. */
typedef struct {
    BerthGuestId id;
    guint32 node;
    BerthGuestPhase phase;
    BerthGuestOp op;
    guint32 op_serial; /* of the latest */
    gint64 op_usec;    /* when OP began; restored with 0: at the resume */
    BerthReason op_reason;
    guint32 to; /* MIGRATING: the other node */
    gboolean is_opportunistic_there;
    BerthResources resources;     /* that are held for it: RESIZING: the larger of both */
    BerthResources old_resources; /* RESIZING: what it has if that fails */
    BerthResources to_resources;  /* RESIZING, and MIGRATING for that: what it is to have */
    guint64 balloon_mib;          /* of its memory, that a balloon keeps from it now */
    guint64 to_balloon_mib;       /* RESIZING: likewise, when that is done */
    gboolean
        waits_for_room; /* STARTING, or OP: that leaves when guests in slack have made room, or is given up
                                    * after BERTH_TUNING_EVACUATION_MAX_USEC */
    gboolean is_opportunistic;
    gboolean is_frozen;
    guint32 predicted_milli;
    guint64 predicted_mib;
    guint32 used_milli; /* as reported last */
    guint32
        starved_permille; /* of the time before that: lost, as its node gave it less than it wanted */
    guint32
        cells; /* of NODE in which it is counted, bit I for cell I; 0 = in slack, or it has none.
                    * Restored with 0: those that suit it best then */
} BerthCoreGuest;
