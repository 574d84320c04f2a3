/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the fake world share. */

#include "scheduler/core/learned.h"
#include "tests/sim/world.h"

#define TASKS_MAX    5u
#define GUESTS_MAX   4u
#define N_ACCOUNTS   4u /* 0 is the root; the last one is below 1 */
#define N_UIDS       3u
#define N_OWNERS     (N_ACCOUNTS + N_ACCOUNTS * N_UIDS)
#define N_QOS        3u
#define N_WINDOWS    2u
#define MIB_PER_VCPU 1024u
#define OVERHEAD_MIB 64u

typedef struct {
    BerthCoreNodeInfo info;    /* as its agent says */
    gboolean has_session;      /* its agent has; the core may not have noticed yet */
    BerthNodeAdmission wanted; /* as an operator said */
    /* as stored by the driver */
    BerthNodeState state;
    gint64 since_usec;
    BerthNodeAdmission admission;
    gboolean was_up;
} Host;

typedef struct {
    guint32 node;
    gboolean is_fenced;
    gboolean is_saved;  /* checkpointed: it stands still */
    gboolean is_frozen; /* likewise */
    gboolean
        is_hung; /* its host cannot end it: of STOP and RELEASE nothing is heard before its agent
                         * begins anew */
    gboolean is_stopping; /* its command was told to end, and takes its time */
    gboolean is_opportunistic;
    BerthResources size;
    guint64 balloon_mib;   /* of SIZE */
    BerthFoundGuest found; /* as its agent knows it */
} Guest;

typedef struct {
    BerthCoreEvent event;
    guint32 node; /* whose session carries it; 0 = none */
} Result;

/* savers.c: a checkpoint that was really made. */
typedef struct {
    guint64 job;
    guint32 task, serial, epoch;
    BerthResources size; /* of its guest */
} Saved;

/* peaks.c: what the guests of a task were measured to need. */
typedef struct {
    gint64 began_usec;
    gint64 looked_usec; /* something was last told that was not memory which had grown */
    gint64 reported_usec[GUESTS_MAX];
    double mib[GUESTS_MAX];
    double highest_mib; /* ever in this run */
} Peaks;

/* As stored. */
typedef struct {
    BerthCoreTask record;
    BerthCoreGuest guests[GUESTS_MAX]; /* node 0 = none any more */
    gboolean is_over;                  /* ended and released */
    Peaks peaks;                       /* checks only */
} Task;

/* rooms.c: of a guest, for guests in slack. */
typedef struct {
    gint64 since_usec; /* 0 = it does not */
    guint32 epoch, serial;
} Wait;

typedef struct {
    BerthCoreJob job;
    guint32 nodes[2];
    BerthCoreDependency dependencies[2];
    Task tasks[TASKS_MAX];
    guint32 n_tasks;
    guint32 held_by_user, held_by_operator; /* tasks that are held by themselves, a bit for each */
    gboolean is_over;                       /* all tasks are, or it was refused: not restored */
    gboolean is_refused;                    /* it never was */
    /* checks only: of its tasks, since the core last began */
    gint64 op_ended_usec[TASKS_MAX];
    gboolean stalled[TASKS_MAX];    /* since then it has told that it lacks memory */
    gint64 minute_usec[TASKS_MAX];  /* in the minute from then on its guest was moved */
    guint moves[TASKS_MAX];         /* so often */
    gint64 balloon_usec[TASKS_MAX]; /* it was last asked for memory */
    Wait waits[TASKS_MAX][GUESTS_MAX];
    gint64 fence_failed_usec[TASKS_MAX]
                            [GUESTS_MAX]; /* and was not tried again since; 0 = is not so */
} Job;

/* A task that an event changed, as it was before. */
typedef struct {
    guint64 job;
    guint32 index;
    Task old;
} Change;

/* An account, or a user in one. */
typedef struct {
    gint above; /* in World.owners; -1 = the root is */
    guint32 shares;
    BerthCoreLimits limits;
    double used; /* the test's own reckoning, MiB * seconds */
    double rate;
} Owner;

typedef struct {
    gboolean is_set;
    guint32 nodes[2];
    gint64 start_usec, end_usec;
} Window;

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
    GArray *saved;   /* Saved, oldest first */
    /* the store */
    GArray *jobs;           /* Job, number - 1 */
    Owner owners[N_OWNERS]; /* see world_user() */
    gint32 qos_permille[N_QOS];
    Window windows[N_WINDOWS]; /* number - 1 */
    GArray *uses, *priors;     /* BerthCoreUse, BerthCorePrior */
    GArray *changes;           /* Change: by the event under way */
    Death dies_at;             /* at the next event */
    gboolean storage_is_down;
    GString *log;
    gint64 tunings[BERTH_TUNING_N];
    GHashTable *counts;
    /* checks only */
    gint64 reckoned_usec;
    guint64 first_waiting;
    gint64 first_since_usec;
};

#define CHECK(world, condition, number)                                                            \
    G_STMT_START                                                                                   \
    {                                                                                              \
        if (!(condition))                                                                          \
            g_error("seed %u: job or node %u: not (%s); log:\n%s", (world)->config.seed,           \
                    (guint)(number), #condition, (world)->log->str);                               \
    }                                                                                              \
    G_STMT_END

void world_note(World *world, const char *what);
gboolean world_chance(World *world, guint percent);
guint world_pick(World *world, guint n);
gboolean world_id_equal(const BerthGuestId *a, const BerthGuestId *b);
Job *world_job(const World *world, guint64 number);
Host *world_host(const World *world, guint32 node);
/* Where UID in ACCOUNT is in World.owners; ACCOUNT itself is at its own number. */
guint world_user(guint32 account, guint32 uid);

/* tests/sim/agents.c: hosts and storage do what they were asked for, say what happens, and fail. */
void agents_deliver_order(World *world);
void agents_deliver_result(World *world);
void agents_advance_guest(World *world);
void agents_report_usage(World *world);
void agents_break_session(World *world, guint32 node);
void agents_reboot(World *world, guint32 node);
void agents_join(World *world, guint32 node);
/* Agents with a guest that hangs begin anew. */
void agents_break_hung(World *world);

/* tests/sim/people.c: what users and operators want. */
void people_submit(World *world);
/* Somebody wants a guest on another node, or does not any more. */
void people_ask_for_move(World *world);
/* Somebody wants a guest to have more or less. */
void people_ask_for_size(World *world);

/* limits.c */
void limits_ask(World *world);
void limits_let_go(World *world);
void people_ask(World *world, BerthEventKind kind, guint64 job, gboolean by_operator);
void people_change_something(World *world);
void people_set_up(World *world);
/* Nodes may be used again, and nothing is held. */
void people_let_go(World *world);
/* Tells the core what was set and is not in its records: accounts, users and QOS at NOW_USEC, and when
 * nodes are needed for something else. */
void people_set_owners(World *world, gint64 now_usec);
void people_set_windows(World *world);

/* tests/sim/savers.c: what somebody wants saved, and what of it was. */
void savers_ask(World *world);
void savers_saved(World *world, const BerthCoreAction *order, const BerthResources *size);
const Saved *savers_find(const World *world, guint64 job, guint32 task, guint32 serial);
gboolean savers_has(const World *world, guint64 job, guint32 task, guint32 serial, guint32 epoch);

/* tests/sim/driver.c: does what berthd does, with arrays for a store. */
void driver_start(World *world);
void driver_stop(World *world);
void driver_restart(World *world);
/* Gives EVENT to the core, stores what changed, sends the actions, and checks everything. FALSE: it
 * was refused. */
gboolean driver_handle(World *world, const BerthCoreEvent *event);
/* The same, but a death does not undo it: whoever asked was not told that it is done, asks again. */
gboolean driver_handle_surely(World *world, const BerthCoreEvent *event);
/* The same without a check, and no pass of time. */
void driver_tell(World *world, gint64 now_usec, const BerthCoreEvent *event);
guint64 driver_first_unfinished(const World *world); /* 0 = all have ended */

/* tests/sim/logged.c: what the core is told, as it is read back from its log. */
gboolean logged_handle(World *world, gint64 now_usec, const BerthCoreEvent *event,
                       BerthCoreEffects *effects, GError **error);
void logged_restore_job(World *world, const BerthCoreJob *job, const BerthCoreTask *tasks,
                        gsize n_tasks);

/* tests/sim/restore.c: a new core gets what is in the store. */
BerthCoreConfig restore_config(const World *world);
void restore_name_node(guint32 node, char name[16]);
void restore_core(World *world);

/* tests/sim/checks.c: places, room, and that store and core agree. IS_RESTART: the store is all
 * that there was. */
void check_world(World *world, const BerthCoreEffects *effects, gboolean is_restart);
/* tests/sim/check_actions.c: no action without a cause. */
void check_actions(World *world, const BerthCoreEffects *effects, gboolean is_restart);
/* EVENT, and what came of it, were stored: fences that failed are tried again in time. */
void check_fences(World *world, const BerthCoreEvent *event, const BerthCoreEffects *effects);
/* tests/sim/rooms.c: nobody waits for room for longer than the evacuation bound. */
void rooms_check(World *world, const BerthCoreEffects *effects);
/* What waits may do so for the bound again. */
void rooms_restarted(World *world);
/* The task as it was before the event; NULL = it has not changed. */
const Task *check_old_task(const World *world, guint64 job, guint32 index);

/* tests/sim/peaks.c: after EVENT was stored, and after a restart. */
void peaks_check(World *world, const BerthCoreEvent *event);
void peaks_restarted(World *world);

/* tests/sim/model.c: what the core should know, reckoned anew from what was asked for and from what
 * happened. */
gboolean model_job_completed(const Job *job); /* all of its tasks */
gboolean model_is_allowed(const Job *job, guint32 node);
gint64 model_time_left_usec(const World *world, const Job *job, const Task *task);
gboolean model_can_move(const World *world, const Job *job);
/* At some time of these NODE is needed for something else. */
gboolean model_is_blocked(const World *world, guint32 node, gint64 from_usec, gint64 to_usec);
/* HELD_BY_OPERATOR, HELD_BY_USER or NONE. */
BerthReason model_hold(const Job *job, guint32 index);
/* All that TASK waits for has come. */
gboolean model_dependencies_met(const World *world, const Job *job, guint32 task);
gboolean model_has_hope(const World *world, const Job *job, guint32 task);
/* Of the jobs that JOB comes after element by element, into TOLD; what they are is in COMPLETED, of COMPLETED_MAX. */
#define COMPLETED_MAX (2 * TASKS_MAX)
void model_name_completed(World *world, const Job *job, BerthCoreJob *told,
                          BerthTaskRange *completed);
guint model_n_active(const Job *job);
/* Above or at its owner something has no room for what JOB has, and MORE, a task of it that is to start; NULL = none. */
gboolean model_exceeds_limits(const World *world, const Job *job, const BerthCoreTask *more);
gboolean model_may_add_job(const World *world, const Job *job);
/* Order of waiting jobs, where nothing but priority and QOS counts. */
gboolean model_comes_before(const World *world, const Job *a, const Job *b);
/* Time has passed: what owners have used, and who has waited. */
void model_pass_time(World *world);
void model_check_use(World *world);
void model_forget(World *world);
void model_check_moves(World *world, const BerthCoreEffects *effects);
