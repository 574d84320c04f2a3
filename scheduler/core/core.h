/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/policy.h"
#include "scheduler/core/records.h"

/* The scheduling core: state × now × event → actions. Deterministic: no I/O, no clock, no
 * logging, no globals, no dependence on hash order. Whoever drives it (berthd, the simulator, a
 * test) feeds it events in one order and gets the same actions every time.
 *
 * The driver's duties:
 *  - make an event's changes durable before any of its actions leaves;
 *  - answer each action with a result event, however often it had to send it;
 *  - send TIMER at or after berth_core_next_timer_usec().
 * An action that was not answered is emitted again when its node joins again (after a restart of
 * either side too), so that the driver keeps no list of its own. Actions and events name the
 * guest with its epoch; what comes from an older epoch changes nothing.
 *
 * All times are microseconds of the driver's clock and never go back: NOW_USEC below that of an
 * earlier event is taken as equal to it. */

typedef struct BerthCore BerthCore;

/* --- events -------------------------------------------------------------------------------- */

typedef enum {
    BERTH_EVENT_JOB_SUBMITTED = 1,
    BERTH_EVENT_JOB_CANCELLED,
    BERTH_EVENT_JOB_HELD,
    BERTH_EVENT_JOB_RELEASED,
    BERTH_EVENT_JOB_FREEZE_WANTED, /* its running guests are to stand still, in memory, until ... */
    BERTH_EVENT_JOB_THAW_WANTED,   /* ... they are to go on, whatever they were frozen for */
    BERTH_EVENT_JOB_MIGRATE_WANTED, /* its running guest is to go on on NODE; 0 = wherever there is room */
    BERTH_EVENT_JOB_MIGRATE_UNWANTED, /* it is to stay after all, if that is still possible */
    BERTH_EVENT_JOB_RESIZE_WANTED, /* its running guest is to have other RESOURCES, within its ceiling */
    BERTH_EVENT_JOB_TIME_LIMIT_SET, /* it may run for TIME_LIMIT_USEC in all; those that stand still at their limit
                                       * go on */
    BERTH_EVENT_JOB_CHECKPOINT_EVERY_SET, /* it is saved by itself after so much running, CHECKPOINT_EVERY_USEC */
    BERTH_EVENT_JOB_CHECKPOINT_WANTED, /* its running guest is to be saved, and runs on */
    BERTH_EVENT_JOB_RESTORE_WANTED, /* it is to go on from the CHECKPOINT that the request names, wherever
                                        * there is room; what runs of it is given up */
    BERTH_EVENT_CHECKPOINTS_CHANGED, /* some of a task's are no more, or one that was doubted was found:
                                        * CHECKPOINTS says what there is */
    BERTH_EVENT_NODE_JOINED,         /* a session began; GUESTS is all that it has */
    BERTH_EVENT_NODE_LEFT,           /* its session ended */
    BERTH_EVENT_NODE_CHANGED, /* what it offers, and whether it can start guests, within its session */
    BERTH_EVENT_START_TAKEN,    /* START was answered: the node has taken the guest on */
    BERTH_EVENT_GUEST_RUNNING,  /* the command's first instruction */
    BERTH_EVENT_GUEST_EXITED,   /* the command ended; the guest waits for its release */
    BERTH_EVENT_GUEST_GONE,     /* the guest is no more, and its command's end was not seen */
    BERTH_EVENT_START_FAILED,   /* START was refused or failed */
    BERTH_EVENT_GUEST_RELEASED, /* RELEASE is done: nothing of it runs on the node */
    BERTH_EVENT_GUEST_FENCED,   /* FENCE is done: it cannot write any more */
    BERTH_EVENT_FENCE_FAILED,   /* to be tried again after a pause */
    BERTH_EVENT_STORAGE_DOWN,   /* storage does not answer: nothing is started until it does;
                                   what waits has the reason STORAGE_UNAVAILABLE */
    BERTH_EVENT_STORAGE_UP,     /* the default; either may come again without effect */
    BERTH_EVENT_STORAGE_ROOM, /* how much more it can take; until the first it is taken to have no end */
    BERTH_EVENT_TIMER,
    BERTH_EVENT_GUEST_REPORTED,     /* what it uses */
    BERTH_EVENT_NODE_REPORTED,      /* what all its guests together use, and what the host lacks */
    BERTH_EVENT_GUEST_MIGRATED,     /* MIGRATE is done, and it runs on TO; or not, and it runs where
                                       it was */
    BERTH_EVENT_GUEST_CHECKPOINTED, /* CHECKPOINT is done, and the guest runs on, or stands still to be
                                       released; or it is not, and it runs on */
    BERTH_EVENT_GUEST_FROZEN,
    BERTH_EVENT_GUEST_THAWED,
    BERTH_EVENT_GUEST_RESIZED,  /* it has the size that RESIZE named; or not, and has the old one */
    BERTH_EVENT_NODE_CORDONED,  /* an operator lets it have no new guests: a drain ends there */
    BERTH_EVENT_NODE_DRAINED,   /* an operator wants it empty */
    BERTH_EVENT_NODE_UNDRAINED, /* it is as open as any other again */
    BERTH_EVENT_NODE_GIVEN_UP, /* an operator knows that the host of a node that is DOWN is dead: it
                                 * is LOST now */
    BERTH_EVENT_ACCOUNT_SET,   /* an account is new or has changed */
    BERTH_EVENT_USER_SET,      /* so is a user within an account */
    BERTH_EVENT_QOS_SET,
    BERTH_EVENT_MAINTENANCE_SET, /* nodes are needed for something else for a time */
    BERTH_EVENT_MAINTENANCE_CLEARED,
} BerthEventKind;

/* Since the guest's previous report. */
typedef struct {
    guint32 cpu_milli;                /* vCPUs used, in 1/1000 */
    guint64 memory_used_mib;          /* total minus available: page cache is not demand, nor is
                                       * what a balloon keeps */
    guint64 memory_available_mib;     /* 0 with USED 0 = not told; without what a balloon keeps */
    guint32 cpu_pressure_permille;    /* "some" of /proc/pressure/cpu in the guest */
    guint32 memory_pressure_permille; /* likewise memory */
    guint32 dirty_mib_per_sec;        /* 0 = not told */
    gint64 starved_usec;              /* of the time since then: lost because its node gave it less
                                       * than it wanted. Of a vCPU: waiting for a CPU (steal);
                                       * of several: of the one that waited most */
    guint64 touched_mib;              /* host memory it occupies: what a move has to copy; 0 = not
                                       * told: as much as it reserved */
} BerthCoreUsage;

typedef struct {
    guint32 cpu_milli;
    guint64 memory_used_mib; /* by guests; what is shared or free in them is not used */
    guint32 cpu_pressure_permille;
    guint32 memory_pressure_permille;
    guint64 memory_available_mib; /* of the host, to whoever asks first; 0 = not told */
} BerthCoreNodeUsage;

/* Of storage, for checkpoints. */
typedef struct {
    guint64 stored_mib; /* in those that are done, as was told of each */
    guint64
        kept_mib; /* for those that are wanted or under way, and for guests in slack that may have to leave by one */
    guint64
        left_mib; /* for others, of what they may take and of what storage has; large where nothing bounds them */
} BerthCoreSpace;

/* Limits of an account or user, over all its running tasks; 0 = none. */
typedef struct {
    guint32 running_tasks;
    guint32 vcpus;
    guint64 memory_mib;
    guint32 jobs; /* unfinished ones; one more is refused */
} BerthCoreLimits;

/* One that can be restored from. */
typedef struct {
    guint32 serial; /* 0 = none */
    guint32 epoch;  /* of the guest that it was taken of */
    gint64 ran_usec;
    BerthResources
        resources; /* that that guest had, and that it takes to restore it: no other size fits what was
                               * saved. vcpus 0 = as its job asks for; disk is not looked at */
} BerthCoreCheckpoint;

/* How a command ended. */
typedef struct {
    guint32 status;
    guint32 signal;
    guint32 oom_kills;
    gboolean disk_full;
    gboolean not_started; /* the command could not be executed */
} BerthCoreExit;

typedef enum {
    BERTH_FOUND_STARTING = 1,
    BERTH_FOUND_RUNNING,
    BERTH_FOUND_EXITED,
    BERTH_FOUND_GONE,
    BERTH_FOUND_NOT_BEGUN, /* GONE, and its command has certainly not begun */
    BERTH_FOUND_LEFT,      /* as GONE with HAS_LEFT */
} BerthFoundPhase;

/* One guest of a joining node. The core acts on each as if its event had just come, counts a guest
 * that it expected and that is missing as gone (GUEST_VANISHED), and releases one that it does not
 * expect; the node takes no new guest until such strays are released. A guest whose START was not
 * answered and that is missing is no loss, and not counted as a requeue: what may be left of it is
 * released, and it starts again with a new epoch. */
typedef struct {
    BerthGuestId id;
    BerthFoundPhase phase;
    gint64 start_usec; /* RUNNING, EXITED */
    gint64 end_usec;   /* EXITED */
    BerthCoreExit exit;
    BerthReason reason; /* GONE, NOT_BEGUN */
} BerthFoundGuest;

typedef struct {
    BerthEventKind kind;
    BerthGuestId guest; /* GUEST_*, START_FAILED; JOB_*: .job */
    guint32
        node; /* NODE_*, JOB_MIGRATE_WANTED, JOB_THAW_WANTED (of one that is frozen to disk: where it goes on; 0 =
                         * wherever there is room); of guests: which node says so. 0 = not told, which is only right of
                         * guests that were never migrated */
    gboolean more; /* another event of this instant follows at once: nothing is placed before
                         * the last of them, so that their order does not decide who gets the room */
    union {
        BerthCoreJob submitted;
        struct {
            gboolean by_operator;
            BerthIndexRange
                tasks; /* of an array; step 0 = all. Not JOB_TIME_LIMIT_SET, _EVERY_SET */
            /* JOB_CANCELLED, JOB_HELD, JOB_RELEASED, JOB_FREEZE_WANTED: beside TASKS, if that is some; rising, behind it */
            const BerthIndexRange *others;
            gsize n_others;
            gboolean to_disk;               /* JOB_FREEZE_WANTED */
            BerthCoreCheckpoint checkpoint; /* JOB_RESTORE_WANTED, of the task GUEST.task */
            BerthResources resources; /* JOB_RESIZE_WANTED: 0 = as it has; disk is not looked at */
            gint64 time_limit_usec;   /* JOB_TIME_LIMIT_SET; 0 = none */
            gint64 checkpoint_every_usec; /* JOB_CHECKPOINT_EVERY_SET; 0 = not */
        } request; /* JOB_CANCELLED, JOB_HELD, JOB_RELEASED, JOB_*_WANTED, _TIME_LIMIT_SET, _EVERY_SET */
        struct {
            BerthCoreCheckpoint newest; /* to go on from; serial 0: it would begin anew */
            guint64 stored_mib;         /* of all that are left */
        } checkpoints;                  /* CHECKPOINTS_CHANGED, of the task GUEST.task */
        struct {
            BerthCoreNodeInfo info;
            const BerthFoundGuest *guests;
            gsize n_guests;
        } joined;
        BerthCoreNodeInfo changed; /* NODE_CHANGED */
        struct {
            gint64 start_usec;
        } running;
        struct {
            gint64 start_usec;
            gint64 end_usec;
            BerthCoreExit exit;
        } exited;
        struct {
            /* BOOT_DEADLINE, GUEST_CRASHED, DISK_FULL: FAILED. GUEST_VANISHED: requeued where allowed.
             * START_FAILED, STORAGE_UNAVAILABLE while it starts: as START_FAILED, passing. */
            BerthReason reason;
            gboolean not_begun; /* its command has certainly not begun: BOOT_DEADLINE, GUEST_CRASHED
                                 * and GUEST_VANISHED are a passing start failure,
                                 * BERTH_TUNING_BOOT_RETRIES_MAX times in a row at most, and not of a gang */
            gboolean has_left;  /* nobody knows for where: it is fenced before it is released */
        } gone;
        struct {
            /* STORAGE_UNAVAILABLE: the node does not reach storage, which counts for the node and
             * not for the job. What the job waits for is storage only if STORAGE_DOWN said so. */
            BerthReason reason;
            gboolean permanent; /* the job's fault: trying again, here or elsewhere, would not help.
                                 * All else counts for the node, but ... */
            gboolean
                passes; /* ... what is nobody's fault: what it goes on from is in use for a while */
        } start_failed;
        BerthCoreUsage usage;          /* GUEST_REPORTED */
        BerthCoreNodeUsage node_usage; /* NODE_REPORTED */
        struct {
            gboolean ok;
            BerthReason reason; /* not ok; for the log only */
            guint32 serial;     /* of the action that this answers; 0 = the latest */
            /* _CHECKPOINTED: for so long it stood still; if it does so from then on, or not ok: 0 =
             * since it was asked for, for all that is known */
            gint64 paused_usec;
            guint64 stored_mib; /* _CHECKPOINTED: what all checkpoints of the task take now */
            BerthResources
                has; /* _RESIZED, not ok: what it has instead; vcpus 0 = what it had. DISK_MIB is
                                 * not told */
        } result;    /* GUEST_MIGRATED, _CHECKPOINTED, _FROZEN, _THAWED, _RESIZED */
        struct {
            guint64 mib;
        } storage_room;
        struct {
            guint32 account; /* from 1; 0 = the root, above all */
            guint32 parent;
            guint32 shares; /* of what its parent has, beside its siblings; 0 = 1 */
            BerthCoreLimits limits;
        } account_set;
        struct {
            guint32 account, uid;
            guint32 shares;
            BerthCoreLimits limits;
        } user_set;
        struct {
            guint32 qos;
            gint32 priority_permille; /* -1000 .. 1000, times BERTH_TUNING_WEIGHT_QOS */
        } qos_set;
        struct {
            guint32 id;           /* the same sets it anew */
            const guint32 *nodes; /* handles */
            gsize n_nodes;
            gint64 start_usec, end_usec;
        } maintenance; /* MAINTENANCE_SET; CLEARED: .id */
    };
} BerthCoreEvent;

/* --- actions ------------------------------------------------------------------------------- */

typedef enum {
    BERTH_ACTION_START = 1,  /* answered by START_TAKEN or START_FAILED, GUEST_RUNNING,
                              * GUEST_EXITED, GUEST_GONE */
    BERTH_ACTION_STOP,       /* answered by GUEST_EXITED or GUEST_GONE */
    BERTH_ACTION_RELEASE,    /* answered by GUEST_RELEASED; also for guests the core never knew */
    BERTH_ACTION_FENCE,      /* answered by GUEST_FENCED or FENCE_FAILED */
    BERTH_ACTION_MIGRATE,    /* from NODE to TO; answered by GUEST_MIGRATED, or as RUNNING is */
    BERTH_ACTION_CHECKPOINT, /* answered by GUEST_CHECKPOINTED, or as RUNNING is */
    BERTH_ACTION_RESTORE,    /* the checkpoint of FROM_EPOCH; answered as START is */
    BERTH_ACTION_FREEZE,     /* answered by GUEST_FROZEN */
    BERTH_ACTION_THAW,       /* answered by GUEST_THAWED */
    BERTH_ACTION_RESIZE,     /* to RESOURCES and BALLOON_MIB; answered by GUEST_RESIZED */
    BERTH_ACTION_STAY,       /* the MIGRATE under way is not wanted any more; that is answered */
} BerthActionKind;
/* A guest that exits, vanishes or is stopped while something is done to it: its end is the answer,
 * and what was to be done is not done any more. Where it ended in the midst of a migration, RELEASE
 * leaves for both nodes. */

typedef struct {
    BerthActionKind kind;
    BerthGuestId guest;
    guint32 node;
    BerthReason reason;
    gint64 grace_usec;  /* STOP */
    guint32 to;         /* MIGRATE */
    gboolean is_again;  /* MIGRATE, RESIZE: as it was before, for a node that has joined since */
    guint32 from_epoch; /* RESTORE */
    guint32
        checkpoint; /* CHECKPOINT: serial of the one to be made; RESTORE: of the one to go on from */
    gboolean
        stops; /* CHECKPOINT: the guest stands still after it, and is released; else it runs on, or
                         * stands still as it did */
    guint64 space_mib; /* CHECKPOINT: that its memory may take */
    guint32
        serial; /* MIGRATE, CHECKPOINT, FREEZE, THAW, RESIZE: which of the guest's; the result names it, so
                     * that a late one is not taken for the answer to another */
    BerthResources resources; /* RESIZE; START and RESTORE: what the guest gets */
    guint64 balloon_mib; /* RESIZE: of RESOURCES, that its balloon keeps from it; 0 = none. What the
                          * guest has in use stays with it: the balloon takes what it can, and that
                          * counts as done. It moves with the guest. START and RESTORE: none, one that a
                          * checkpoint has is given back as the guest goes on */
    gboolean
        thaws; /* RESIZE: the guest stands still, and goes on as soon as what it is to have is asked for;
                     * THAW follows when that is answered */
    gboolean is_opportunistic; /* START, RESTORE, MIGRATE: it has the low CPU weight there */
    guint32
        cells; /* START, RESTORE, MIGRATE, RESIZE: the cells of its node, or of TO, in which it is
                    * counted, bit I for cell I; 0 = any. Where the driver does not bind guests to
                    * cells this is the core's accounting alone. */
} BerthCoreAction;
/* MIGRATE, CHECKPOINT: somebody waits for what the guest has on its node, or does not want it to run on: that it gets less CPU
 * meanwhile is right. */
gboolean berth_core_action_is_pressing(const BerthCoreAction *action);

typedef struct {
    GArray *actions; /* BerthCoreAction, in the order in which they are to leave */
    GArray *changed; /* BerthGuestId: job and task of each task that changed, once per event */
    GArray
        *nodes; /* guint32: nodes whose state or admission changed, or that a drain has emptied */
    GArray *
        given_up; /* BerthCoreAction, MIGRATE or RESIZE, that was to leave, has waited for room, and will not
                       * leave any more: the guest is as it was */
    GArray *uses; /* BerthCoreUse and BerthCorePrior that changed: learned.h */
    GArray *priors;
} BerthCoreEffects;

/* (transfer full) */
BerthCoreEffects *berth_core_effects_new(void);
void berth_core_effects_clear(BerthCoreEffects *effects);
void berth_core_effects_free(BerthCoreEffects *effects);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthCoreEffects, berth_core_effects_free)

/* --- life ---------------------------------------------------------------------------------- */

BerthCore *berth_core_new(const BerthCoreConfig *config);
void berth_core_free(BerthCore *core);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthCore, berth_core_free)

/* Makes a node known, DOWN, without capacity until it joins; the same name gives the same handle.
 * Handles count from 1 in the order of the calls. */
guint32 berth_core_add_node(BerthCore *core, const char *name);
guint32 berth_core_find_node(BerthCore *core, const char *name); /* 0 = unknown */

/* Puts back what the store had, before the first event: nodes (LOST stays LOST; the others are
 * DOWN, and have node_timeout from the resume on to come back), then unfinished jobs with their
 * tasks (by index; those of an array that never started are left out, and those that have ended may be). Accounts, users and QOS
 * may be set before that, at NOW_USEC 0: what is put back then counts for them. INFO NULL: never
 * joined. Nothing is decided. */
void berth_core_restore_node(BerthCore *core, guint32 node, BerthNodeState state, gint64 since_usec,
                             BerthNodeAdmission admission, const BerthCoreNodeInfo *info);
void berth_core_restore_job(BerthCore *core, const BerthCoreJob *job, const BerthCoreTask *tasks,
                            gsize n_tasks);
/* Where the other guests of a restored gang are: without it they are where its task's NODE says. */
void berth_core_restore_guest(BerthCore *core, const BerthCoreGuest *guest);
/* After the last restore: the first decisions, and FENCE actions that were in flight. All other
 * outstanding actions leave when their nodes join. Also needed when there was nothing to restore. */
void berth_core_resume(BerthCore *core, gint64 now_usec, BerthCoreEffects *effects);

/* Takes one event. EFFECTS is appended to. FALSE: the event was refused, nothing changed, ERROR
 * says why in words for its user:
 *   JOB_SUBMITTED  INVALID_ARGUMENT: larger than any known node that it may use (names the
 *                  largest), no resources, unknown node handle; while no such node has said what
 *                  it offers, everything is accepted. ALREADY_EXISTS: the number is in use.
 *                  RESOURCE_EXHAUSTED: its owner has as many jobs as he may
 *   JOB_CANCELLED, JOB_HELD, JOB_RELEASED  NOT_FOUND; FAILED_PRECONDITION (already ended; running
 *                  jobs cannot be held; a user may not release what an operator holds)
 *   JOB_FREEZE_WANTED, JOB_THAW_WANTED  NOT_FOUND; FAILED_PRECONDITION (no task of it runs, or all that do
 *                  are being ended; a user may not thaw what an operator froze); UNSUPPORTED (a gang)
 *   JOB_MIGRATE_WANTED  NOT_FOUND; FAILED_PRECONDITION (no task of it runs; something else is being done to
 *                  it; it is there; the node may not have it now); RESOURCE_EXHAUSTED (there is no room);
 *                  UNSUPPORTED (a gang; guests cannot be moved)
 *   JOB_CHECKPOINT_WANTED, and JOB_FREEZE_WANTED to disk  as JOB_FREEZE_WANTED, and RESOURCE_EXHAUSTED (there
 *                  is no space for it left); UNSUPPORTED (guests cannot be checkpointed)
 *   JOB_THAW_WANTED to a node  as JOB_THAW_WANTED, and as JOB_MIGRATE_WANTED says of the node
 *   JOB_TIME_LIMIT_SET  NOT_FOUND; FAILED_PRECONDITION (it is ending); INVALID_ARGUMENT (it has used as much);
 *                  PERMISSION_DENIED (a user may not have more for what runs: others are planned behind it)
 *   JOB_CHECKPOINT_EVERY_SET  NOT_FOUND; FAILED_PRECONDITION (it has ended); INVALID_ARGUMENT (below 0);
 *                  UNSUPPORTED (it cannot be checkpointed)
 *   JOB_RESTORE_WANTED  NOT_FOUND; FAILED_PRECONDITION (it is ending); UNSUPPORTED
 *   JOB_MIGRATE_UNWANTED  NOT_FOUND; FAILED_PRECONDITION (nobody has asked for it to be moved; a user may not
 *                  call off what an operator wants)
 *   ACCOUNT_SET, QOS_SET  INVALID_ARGUMENT: an account below itself; a number or priority out of range
 * Events of guests and nodes are never refused: a stale one changes nothing. */
gboolean berth_core_handle(BerthCore *core, gint64 now_usec, const BerthCoreEvent *event,
                           BerthCoreEffects *effects, GError **error);

/* When TIMER is wanted next; G_MAXINT64 = not at all. */
gint64 berth_core_next_timer_usec(BerthCore *core);

/* --- looking ------------------------------------------------------------------------------- */

/* FALSE: unknown (never submitted, or ended and forgotten). */
gboolean berth_core_get_task(BerthCore *core, guint64 job, guint32 task, BerthCoreTask *out_task);
/* The job with its present holds; NODES is (transfer none). FALSE: as above. */
gboolean berth_core_get_job(BerthCore *core, guint64 job, BerthCoreJob *out_job);
/* The first task of JOB from FROM on that has never started, nor ended before it did. FALSE: there is none. */
gboolean berth_core_next_unstarted(BerthCore *core, guint64 job, guint32 from, guint32 *out_task);
gboolean berth_core_get_node(BerthCore *core, guint32 node, BerthCoreNode *out_node);
guint32 berth_core_n_nodes(BerthCore *core); /* handles are 1..n */
/* FALSE: the task has no such guest now. */
gboolean berth_core_get_guest(BerthCore *core, guint64 job, guint32 task, guint32 guest,
                              BerthCoreGuest *out_guest);
/* What checkpoints take, and may. */
void berth_core_get_space(BerthCore *core, BerthCoreSpace *out_space);
/* Memory that the core holds, in bytes, without the allocator's overhead. */
gsize berth_core_memory_bytes(BerthCore *core);
/* A job leaves the core's memory once it has ended, its guest was released, and the effects that
 * say so were taken; the driver reads its last record with get_task before the next event. */

/* The reason for which a pending task waits now; computed when asked, so that a pass need not
 * touch every waiting job. */
BerthReason berth_core_pending_reason(BerthCore *core, guint64 job, guint32 task);
/* The same of those of an array that never started: why the next of them that nobody holds waits, or the first of
 * them, if all are held or wait for tasks of another array. NONE: there is none. */
BerthReason berth_core_array_reason(BerthCore *core, guint64 job);

/* Checks every invariant of DESIGN.md that can be seen from inside; aborts with what is wrong.
 * For tests: costs O(everything). */
void berth_core_assert_invariants(BerthCore *core);
