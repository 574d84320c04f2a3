/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the core keeps, for its own files only. Each struct is written by the file named at it. */

#include "scheduler/core/core.h"
#include "scheduler/core/growth.h"
#include "scheduler/core/heap.h"

typedef struct CoreClass CoreClass;
typedef struct CoreJob CoreJob;
typedef struct CoreTask CoreTask;
typedef struct CoreGuest CoreGuest;
typedef struct CoreNode CoreNode;
typedef struct CoreOwner CoreOwner;
typedef struct CoreFamily CoreFamily;
typedef struct CorePairs CorePairs;
typedef struct CoreHolds CoreHolds;
typedef struct CoreCells CoreCells;
typedef struct CoreLoss CoreLoss;

/* What a guest takes from a node: overhead included. */
typedef struct {
    guint32 vcpus;
    guint64 memory_mib;
} CoreSize;

static inline gboolean core_size_fits(CoreSize need, CoreSize room)
{
    return need.vcpus <= room.vcpus && need.memory_mib <= room.memory_mib;
}

static inline CoreSize core_size_add(CoreSize a, CoreSize b)
{
    return (CoreSize){a.vcpus + b.vcpus, a.memory_mib + b.memory_mib};
}

/* Enough for either. */
static inline CoreSize core_size_max(CoreSize a, CoreSize b)
{
    return (CoreSize){MAX(a.vcpus, b.vcpus), MAX(a.memory_mib, b.memory_mib)};
}

static inline gboolean core_size_equal(CoreSize a, CoreSize b)
{
    return a.vcpus == b.vcpus && a.memory_mib == b.memory_mib;
}

/* What is left of A without B; nothing where B is larger. */
static inline CoreSize core_size_sub(CoreSize a, CoreSize b)
{
    return (CoreSize){a.vcpus - MIN(a.vcpus, b.vcpus),
                      a.memory_mib - MIN(a.memory_mib, b.memory_mib)};
}

/* What guests are thought to use at most; overhead included. */
typedef struct {
    guint32 cpu_milli;
    guint64 memory_mib;
} CoreNeeds;

typedef enum {
    CORE_TIMER_NODE, /* fires first among equals: what it frees can be used at once */
    CORE_TIMER_TASK,
    CORE_TIMER_ROUND,       /* of promotion and balancing: one for all */
    CORE_TIMER_MAINTENANCE, /* one begins or ends: likewise */
    CORE_TIMER_DRAIN,       /* somebody has waited for long enough for room elsewhere: likewise */
    CORE_TIMER_CHECKPOINT,  /* of a task: the next is due */
    CORE_TIMER_ROOM,        /* of a guest: it has waited for room for long enough */
    CORE_TIMER_LEAVING,     /* likewise: it should have been taken away by now */
    CORE_TIMER_HOPELESS,    /* more jobs that can never start are to be ended: one for all */
    CORE_TIMER_OVERSTAY,    /* of a task: its guests should be gone by now */
} CoreTimerKind;

/* timers.c */
typedef struct {
    gint64 due_usec;
    CoreHeapLink link;
    CoreTimerKind kind;
} CoreTimer;

/* Jobs of one shape: all that decides whether and where they can start is the same. What one of
 * them cannot do now, none can, so that a pass looks at each class once. class.c; from WAITING on by
 * order.c, and what passes note by those. */
typedef struct {
    CoreSize size; /* of each guest, as asked for */
    CoreSize
        start; /* that it takes to start the next task: SIZE, or what the checkpoint has that it goes on
                         * from. order.c */
    guint64 memory_mib; /* as asked for, without overhead */
    gint64 time_limit_usec;
    CoreOwner *owner;
    gint32 priority;
    guint32 qos;
    gboolean may_move, may_checkpoint, opportunistic;
    BerthOnTimeout on_timeout;
    BerthOnLimit on_limit;
    guint32 ceiling_vcpus;
    guint64 ceiling_memory_mib; /* as asked for */
    guint32 guests;             /* per task */
    guint32 n_nodes;            /* 0 = any node */
    guint32 *nodes;             /* handles, rising */
} CoreShape;

/* What a class asks for to start, or no more than any of some classes does. */
typedef struct {
    CoreSize size;
    gint64 length_usec;
} CoreLeast;

/* Each of some classes asks for no less of anything than one of these does. least.c */
typedef struct {
    guint8 n_singles, n_gangs; /* of those with one guest, and with more */
    CoreLeast one;             /* if it is just one */
    CoreLeast *more;           /* if they are more: those of singles, then those of gangs */
} CoreLeasts;

/* What is known of some classes together. order_tree.c */
typedef struct {
    guint n;
    gboolean may_be_in_slack; /* one of them */
    guint64 left_to_slack;    /* the latest of theirs */
    CoreLeasts leasts;
} CoreOrderSum;

typedef struct {
    CoreClass *left, *right; /* next before it and behind it below it; NULL = none */
    CoreOrderSum sum;        /* of it and all below it */
} CoreOrderLink;

struct CoreClass {
    CoreShape shape;
    guint n_jobs;          /* that refer to it */
    CoreHeap waiting;      /* CoreJob.waiting, by id */
    guint64 head;          /* id of its first job when it was put in the order */
    gint64 rank;           /* then */
    gboolean is_ordered;   /* in BerthCore.order */
    CoreOrderLink order;   /* while it is */
    CoreOwner *parked;     /* waits for the limits of this one; not in the order meanwhile */
    gboolean is_untried;   /* in BerthCore.untried */
    guint64 looked_at;     /* the pass that last tried to place it */
    gboolean is_blocked;   /* ... and found all its nodes kept for others */
    guint64 left_to_slack; /* the pass that kept it from room because it could start in slack */
};

/* A job: one record for all of its tasks. Tasks get a record of their own when they first start.
 * job.c, requests.c. */
struct CoreJob {
    guint64 id; /* first: the key of BerthCore.jobs */
    CoreClass *class;
    gint64 submit_usec;
    gint64 stop_grace_usec;
    guint64 disk_mib;
    guint64 changed_at; /* event that last reported it, while it has no task of its own */
    CoreTask **tasks;   /* that have started or ended, by index */
    guint32 n_tasks;    /* in TASKS */
    guint32 array_size;
    guint32
        next; /* first task that never started, if there is any, of those that may if there are such */
    guint32 changed_as; /* the task by which it was reported then */
    guint32 throttle;   /* 0 = none */
    BerthIndexSet
        *fresh; /* all that never started. A plain job has none: it is NEXT, if that is 0 */
    gint64 checkpoint_every_usec; /* 0 = not */
    gint64 checkpoint_signal_usec;
    guint32 n_active;     /* tasks that have a guest */
    guint32 n_over;       /* tasks in TASKS that are done with */
    guint32 n_forgotten;  /* of these, that are being forgotten */
    guint32 n_unmet;      /* dependencies, but AFTER_CORR */
    CorePairs *pairs;     /* depend.c: who of FRESH waits for one of another array; NULL = nobody */
    CoreHolds *holds;     /* hold.c: who of an array is held by himself; NULL = nobody */
    CoreHeap *returned;   /* CoreTask.returned, by index; NULL = no task waits to start again */
    guint64 name;         /* family, as submitted; 0 = none */
    CoreFamily *family;   /* depend.c; NULL = none, or it has ended */
    CoreHeapLink sibling; /* in family->jobs */
    CoreHeapLink waiting; /* in class->waiting: a task of it can start */
    guint8 held : 1;      /* all of it */
    guint8 held_by_operator : 1;
    guint8 no_requeue : 1;
    guint8 is_singleton : 1; /* waits for its elder siblings */
    guint8 has_failed : 1;   /* a task of it has ended otherwise than COMPLETED */
    guint8 has_ended : 1;    /* all of them have */
};

/* One guest of a task: task.c; place by nodes.c. */
struct CoreGuest {
    CoreTask *task;
    guint32 index;
    guint32 node;  /* handle; of the last one when it has none */
    guint32 place; /* in CoreNode.guests while its phase is not NONE */
    BerthGuestPhase phase;
    gboolean heard; /* it has been running */
    gboolean has_exited;
    gboolean
        has_left; /* or may have, for where nobody knows: FENCING, though its node may not be LOST */
    guint64 found_at;   /* event (NODE_JOINED) that last named it */
    guint64 removed_at; /* event in which RELEASE was last wanted for it */
    CoreSize size;      /* held on NODE */
    guint32 cells;      /* of NODE, that it spans; 0 = in slack, or NODE has none. cells.c */
    CoreSize old_size;  /* RESIZING: to which it falls back */
    CoreSize goal;      /* RESIZING, MIGRATING: which it is to have here, or once it is there */
    gboolean is_frozen;
    gboolean is_opportunistic; /* in NODE's slack */
    gboolean is_unsaved;       /* in BerthCore.unsaved */
    gboolean is_drain_missed; /* the drain of its node has told that there is no space to save it */
    gboolean
        waits_for_room; /* START, MIGRATE or RESIZE leaves when guests in slack have made room. room.c */
    CoreTimer
        timer; /* for so long at most; or, if it does not, it should have left by then. room.c, leaving.c */
    /* moves.c */
    BerthGuestOp op;
    BerthReason op_reason;
    guint32 op_serial; /* of the latest */
    gint64 op_usec;    /* when it began */
    gint64
        leaves_usec; /* when it is thought to have left NODE; 0 = nothing takes it away. leaving.c */
    guint32 to;      /* MIGRATING: handle */
    gboolean is_unwanted; /* MIGRATING: it was called off */
    guint32 to_place;     /* in its incoming */
    guint32 to_cells;     /* there, as CELLS */
    gboolean is_opportunistic_there;
    CoreSize to_size;      /* held there */
    CoreNeeds held;        /* there */
    guint64 held_used_mib; /* likewise, of what it uses */
    guint64 held_extra_mib;
    gint64 cooldown_usec;  /* not moved again until then, if others can be */
    guint32 wanted_to;     /* a round would have moved it there: */
    guint32 wanted_round;  /* this one, the latest that had a place for it */
    gint64 pause_usec;     /* its next cooldown, if longer than others */
    guint32 balanced;      /* so often for balance */
    guint32 moves_failed;  /* in a row */
    gint64 move_rest_usec; /* after those no drain and no relief moves it until then */
    guint32 saves_failed;  /* in a row, that were to make room */
    gint64 save_rest_usec; /* after those it is not checkpointed for that until then */
    guint64 stuck_event;   /* in which it was to make room, and could not. relief.c */
    gint64 stuck_usec;     /* since then a drain has found no place for it; 0 = it has not looked */
    guint64 balloon_mib;   /* of its memory, that a balloon keeps from it */
    guint64 to_balloon_mib;   /* RESIZING: likewise, if that works */
    gint64 balloon_rest_usec; /* it is not asked for memory again until then */
    gint64 relax_rest_usec;   /* nor given it back, after that has failed */
    gint64 limit_rest_usec;   /* nor stopped at its limit: it was let go on as it is, or resized */
    gint64 grow_rest_usec;    /* nor given more memory: it has not taken what it was to have */
    gint64 promotion_rest_usec; /* likewise, after it could not be promoted where it is */
    guint32 ballooned;          /* so often it was */
    guint32 ungrown;            /* on end it did not take more memory */
    gboolean may_run;           /* it is frozen, and RESIZE may have let it go on since. freeze.c */
    gint64 near_limit_usec;     /* when it was last near the limit of its memory. limit.c */
    gboolean stalls;            /* for want of memory, as its latest report says. limit.c */
    guint64 space_mib;          /* of it in the core's. checkpoint.c */
    gint64 vcpus_short_usec;    /* since then it lacks vCPUs; 0 = it does not. limit.c */
    gint64 resized_until_usec;  /* until then it may tell what was before its memory was resized: */
    guint64 stale_mib;          /* where it tells of so much in all, or less */
    guint64 told_mib;           /* in all; what is being done to it may have changed that since */
    /* How fast it fills its memory. limit.c */
    gint64 fill_usec;                  /* of the latest report that was taken; 0 = none was */
    guint64 fill_mib;                  /* that it used then */
    guint64 fill_rate, last_fill_rate; /* KiB/s, up to that one and up to the one before */
    /* charge.c */
    gint64 charged_usec;      /* up to this instant that is known: its latest report */
    gint64 told_usec;         /* up to this one its losses are in its gang's */
    gboolean is_charged_late; /* the report was later: it was restored */
    gint64 still_usec;        /* since then it stood still for so long */
    gint64 owed_usec;         /* thought to be lost since then, until it was moved or frozen */
    gint64 owed_ran_usec;     /* since then it ran for so long until that */
    guint32 starved_permille; /* lost of the time between the latest two reports */
    gint64 starved_usec;      /* since then that was too much; 0 = it was not */
    /* predict.c */
    CoreNeeds needs, floor, used, peak;
    guint64 touched_mib;
    guint64 extra_mib; /* host memory that it occupies beyond its needs; in NODE's */
    guint64
        ungrown_mib; /* its need of memory but for its growth, while that is under way; else 0 */
    guint32 dirty_mib_per_sec;
    guint32 reports;
    gboolean is_put_back;   /* from the store, with what was stored of its peak */
    gboolean is_half_known; /* ... which is nothing */
    gint64 reported_usec, began_usec;
    CoreGrowth growth; /* growth.c */
};

struct CoreTask {
    BerthCoreTask record; /* its phase is the least advanced of its guests' */
    CoreJob *job;
    gboolean is_forgotten;      /* the event ends in which it was over */
    CoreTimer timer;            /* backoff, time limit, or next try to fence: never two at once */
    CoreTimer checkpoint_timer; /* checkpoint.c */
    CoreTimer overstay_timer;   /* while its guests are stopped or removed */
    gint64 leaving_usec;        /* since then they are; 0 = they are not */
    guint64 changed_at;         /* event that last reported it as changed */
    gint64 planned_end_usec;    /* when its guests are thought to leave */
    gint64 assumed_usec;   /* without a limit: that it is thought to have, as it ran so long; 0 */
    gint64 end_usec;       /* latest end that a guest of it reported */
    CoreLoss *loss;        /* charge.c; NULL = is one guest, or none was heard to lose */
    CoreLoss *saving_loss; /* during the checkpoint under way; NULL = nothing that was told */
    gint64 peak_told_usec; /* its peak was last looked at whether it has changed. predict.c */
    CoreSize counted;      /* of each of its guests, by its owners; 0 = it has none. owner.c */
    guint64 rate_mib;      /* its part of theirs. owner.c */
    CoreHeapLink returned; /* in job->returned: it waits to start again */
    guint32 n_guests;
    CoreGuest guests[];
};

/* From START_USEC on a node has so much left, as far as its guests' time limits say. */
typedef struct {
    gint64 start_usec;
    CoreSize room;
} CoreStep;

/* nodes.c; state and strays by sessions.c; steps by profile.c. */
struct CoreNode {
    guint32 handle;
    BerthNodeState state;
    char *name;
    gint64 since_usec;
    BerthResources capacity;
    CoreSize reserved;    /* by guests that it backs, and by such that come */
    CoreSize slack;       /* reserved by guests in its slack, and by such that come */
    CoreCells *cells;     /* NULL = fewer than two. cells.c */
    guint32 rack, fabric; /* 0 = not told */
    CoreNeeds needs;      /* predicted, sums over guests; used: reported */
    CoreNeeds used;
    gint64 pressed_until_usec; /* nobody comes into its slack: it lacks memory, or was about to */
    gint64
        grows_until_usec; /* one that it backs, or that comes to be, grew: until then at most it counts. lead.c */
    gboolean host_is_pressed; /* it lacks memory, as it said last */
    guint64 ahead_mib;        /* lead.c; as of the latest look for relief */
    gboolean is_short;        /* since short_since_usec guests in its slack leave for memory */
    gint64 short_since_usec;
    gint64 slack_rest_usec; /* nobody starts there until then: who did so had to go before he ran */
    guint64 available_mib;  /* of the host, as it said last; 0 = not told */
    guint64 slack_used_mib; /* by the guests in slack, and by such that come; without page cache */
    guint n_in_slack;       /* so many these are */
    guint64 extra_mib;      /* of all guests, and of such that come */
    guint32 coincidence;    /* so much of the sum of needs is used at once, in 1/65536 */
    guint n_moves;          /* under way to and from it */
    gboolean is_drain_wanted, is_drain_capped; /* it is in core's lists of these. drain.c */
    guint n_held;              /* likewise, that wait for room at the other end, or here. room.c */
    gint64 refused_until_usec; /* the latest move here failed: until then others are taken first */
    guint n_waiting_for_room;  /* its own. room.c */
    gboolean is_vacated;       /* in BerthCore.vacated */
    gboolean is_forsaken;      /* for as long as all who wait for room there are sent away */
    guint64 served_at;         /* BerthCore.n_served when it last was */
    BerthNodeAdmission admission;
    GPtrArray *incoming; /* CoreGuest that is migrating here */
    GPtrArray *guests;   /* CoreGuest that is, or may be, here */
    CoreTimer timer;     /* until it is LOST; of an UP one: until it is open again */
    guint n_strays;      /* guests found here that are to go: no new ones until then */
    gboolean has_joined;
    gboolean is_hidden;      /* kept for a waiting job during a pass */
    gboolean oversubscribed; /* came back smaller than what runs on it */
    gboolean cannot_start;   /* it says so */
    gboolean is_closed;      /* starts failed on it: until its timer */
    guint start_failures;    /* in a row, each of another job than the one before */
    guint closings;          /* since a start worked */
    guint64 failed_job;      /* the latest of them */
    gboolean steps_are_old;
    GArray *steps;   /* CoreStep, rising in time */
    GArray *blocks;  /* CoreBlock; NULL = never any. maintenance.c */
    guint32 planned; /* 1 + its place in BerthCore.plan's nodes; 0 = nothing planned here */
    gboolean left_is_old, part_is_old; /* ... and what is kept there beside it. profile.c */
    guint32 fresh;                     /* 1 + its place in CoreNodes.fresh; 0 = not there */
    guint replanned; /* bits of the parts of the plan in whose CHANGED it is. plan.c */
};

/* What a part of the node table has: nodes in order of their handles, a tree over them. */
typedef struct {
    CoreSize max_free;
    CoreSize max_capacity;
    CoreSize min_capacity;
} CoreSpan;

/* Likewise, of what there is for guests in slack. */
typedef struct {
    CoreNeeds most; /* slack of each */
    guint64
        least_load_mib; /* of each, with one more that uses nothing: core_node_slack_load_mib() */
} CoreSlack;

typedef struct {
    GPtrArray *nodes;                                /* CoreNode, handle - 1 */
    GHashTable *by_name;                             /* name -> CoreNode */
    CoreSpan *spans;                                 /* root at 1, leaves from WIDTH */
    guint width;                                     /* power of two, >= number of nodes */
    CoreSlack *slacks;                               /* likewise */
    guint32 keep_cpu_permille, keep_memory_permille; /* of each node, out of its slack */
    /* Of evacuations: so many guests at a time, each of which takes as long as it takes to write so much, whatever it
     * uses. relief.c */
    guint32 evacuated_at_a_time;
    guint64 evacuation_mib;
    GArray *changes;                /* guint32: handles of nodes that changed, oldest first */
    guint64 total_vcpus, total_mib; /* of all that ever joined */
    const CoreNode *largest;        /* of these, unless that is old: core_nodes_largest() */
    CoreSize most;
    gboolean largest_is_old;
    guint vcpu_shift;     /* a vCPU counts as 1 << this MiB */
    guint64 first_change; /* number of the oldest that is still in CHANGES */
    GArray *fresh;        /* guint32: nodes with more room than the last pass saw */
    GArray *emptied;      /* guint32: nodes that a drain has emptied in the event under way */
} CoreNodes;

typedef struct {
    BerthGuestId guest;
    guint32 node;
} CoreStray;

/* An entry of a set of GLib's is a key and a hash, in a table that is between half and all full. */
#define CORE_SET_ENTRY_BYTES (2 * (sizeof(gpointer) + sizeof(guint)))

/* Of an exchange of two guests what is still to be done: FIRST is moving, and SECOND follows when it has
 * arrived. exchange.c */
typedef struct {
    BerthGuestId first, second;
    guint32 first_serial; /* of its move; 0 = nothing is to be done */
    guint32 to;           /* handle of the node that SECOND goes to */
} CoreExchange;

/* Handles. */
typedef struct {
    guint32 from, to;
} CoreNodePair;

typedef struct CorePlan CorePlan;
typedef struct CoreShapes CoreShapes;

struct BerthCore {
    BerthCoreConfig config;
    gint64 tunings[BERTH_TUNING_N];
    gint64 now_usec;
    gint64 resumed_usec;    /* 0 = it was not put back from a store */
    guint64 event;          /* number of the one under way */
    guint64 pass;           /* number of the latest */
    guint64 planned_change; /* of nodes: next after the latest pass that planned. For invariants */
    BerthCoreEffects *effects; /* of the event under way; NULL between */
    CoreNodes nodes;
    GHashTable *jobs;       /* CoreJob by id */
    GHashTable *classes;    /* CoreClass by shape */
    guint64 n_waiting;      /* jobs in the heaps of these. order.c */
    GHashTable *owners;     /* owner.c */
    GHashTable *waited;     /* depend.c */
    GHashTable *families;   /* likewise */
    GArray *hopeless;       /* guint64: jobs that can never start. depend.c */
    GArray *hopeless_tasks; /* guint64: arrays of which some tasks cannot. depend.c */
    GArray *qos;            /* gint32: priority in permille, by number */
    guint64 ranking;        /* number of the latest */
    gint64 ranked_usec;
    CoreClass
        *order; /* those in which a job waits: the top of their tree; NULL = none. order_tree.c */
    guint64 n_looked_at; /* parts of that tree in which somebody was looked for. For tests */
    CoreHeap timers;     /* CoreTimer.link */
    GPtrArray *over;     /* CoreTask that are forgotten at the next event */
    GArray *strays;      /* CoreStray */
    GPtrArray *untried;  /* CoreClass whose head is new since the last pass */
    GArray *
        unsuited; /* guint64: jobs whose next task takes more or less to start than their class says. order.c */
    CorePlan *plan;
    guint64 gathered_in; /* the pass in which room was last planned to be gathered; 0 = none */
    gint64 gathered_usec;
    CoreShapes *shapes;
    GHashTable *priors; /* predict.c */
    GQueue prior_ages;  /* likewise: the same, the one that learnt last at the tail */
    guint64 room_mib;   /* that storage has left, as was last told; G_MAXUINT64 = it was not */
    guint64 space_mib;  /* of checkpoint storage that guests in slack may need */
    guint64 kept_mib;   /* of stored_mib: what is kept, and not stored yet */
    guint64
        stored_mib; /* likewise, that checkpoints take, and that is kept for some. checkpoint.c */
    GArray *
        unsaved; /* BerthGuestId: those that wait until one more may be checkpointed. checkpoint.c */
    gboolean may_save;       /* some of them may be */
    gint n_moves;            /* under way */
    GArray *drains_wanted;   /* guint32: nodes that are looked at when the event ends. drain.c */
    GArray *drains_capped;   /* likewise: when a move or checkpoint has ended, as a cap kept them */
    gboolean has_move_ended; /* or waits for room no more */
    gboolean is_space_missed; /* some could not be saved that a drain would have saved. drain.c */
    guint64 space_left_mib;   /* for checkpoints, as the event began */
    GPtrArray *held;          /* CoreGuest: those whose MIGRATE waits for room. room.c */
    GArray *vacated;          /* guint32: nodes at which somebody may have room now. room.c */
    guint64 n_served;         /* so often were they looked at */
    gboolean
        was_capped; /* the cluster's cap of moves was reached: it may have kept some of those that are held */
    CoreTimer round, maintenance, drain, ends_hopeless;
    guint32 rounds;   /* number of the latest */
    GArray *balanced; /* CoreNodePair: between which the latest round wanted moves. balance.c */
    CoreExchange exchange;
    gboolean slack_wanted; /* a pass in slack, because more may fit */
    gboolean more_follow;  /* the event under way is not the last of its instant */
    gboolean pass_wanted;
    gboolean plan_wanted;      /* ... with a new plan */
    gboolean full_pass_wanted; /* ... in which more than UNTRIED and fresh nodes matter */
    gboolean pass_again;       /* a start in the one under way has let others go */
    gboolean storage_down;
    gboolean
        is_checked; /* berth_core_assert_invariants() was called: what holds within an event, too, is
                            asserted there */
};
