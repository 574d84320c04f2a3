/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a simulation keeps, for its own files only. Each struct is written by the file named. */

#include "scheduler/core/heap.h"
#include "scheduler/sim/sim.h"

/* At one instant things happen in this order: what frees room first, what wants it after that. */
typedef enum {
    SIM_TIMER_RUN,   /* a job's demand changes, or it is done: run.c */
    SIM_TIMER_ORDER, /* an action is done: orders.c */
    SIM_TIMER_NODE,  /* it fails, or is repaired: failures.c */
    SIM_TIMER_REPORT,
    SIM_TIMER_NODE_REPORT, /* both: reports.c */
    SIM_TIMER_ARRIVAL,
    SIM_TIMER_CORE, /* both: engine.c */
} SimTimerKind;

/* timers.c; among equals of one kind the one that was set first comes first */
typedef struct {
    CoreHeapLink link;
    gint64 due_usec;
    guint64 order;
    SimTimerKind kind;
} SimTimer;

typedef struct SimRun SimRun;

typedef enum {
    SIM_GUEST_ABSENT,
    SIM_GUEST_BOOTING, /* or being restored */
    SIM_GUEST_RUNNING,
    SIM_GUEST_PAUSED,  /* being checkpointed, or in the last moment of a migration */
    SIM_GUEST_STOPPED, /* it stands still for good, until it is released */
} SimGuestPhase;

/* How STOP and RELEASE fail. Neither has an answer that says so: whoever has asked hears nothing, or not what became of
 * it, and asks again. */
typedef enum {
    SIM_END_REFUSED, /* nothing was done */
    SIM_END_UNHEARD, /* it was done, and the answer was lost */
    SIM_END_HANGS,   /* nothing is heard of it before the node's agent begins anew */
    SIM_END_FAULT_N,
} SimEndFault;

/* An action under way: orders.c */
typedef struct SimOrder {
    SimTimer timer;
    BerthCoreAction action;
    gboolean fails;
    SimEndFault fault; /* STOP, RELEASE: how, if it does */
    guint tries;       /* likewise: those that were refused */
    gboolean is_hung;  /* likewise: its time is over, and nothing was heard */
    gboolean is_pause; /* MIGRATE: all is copied, the guest stands still */
} SimOrder;

/* world.c; phase by orders.c */
typedef struct {
    SimRun *run;
    guint32 index;
    guint32 epoch;
    guint32 node;       /* 0 = on none */
    guint32 to;         /* of a migration under way: held there too */
    guint64 copied_mib; /* that it takes there */
    guint place;        /* in SimNode.guests */
    SimGuestPhase phase;
    gboolean is_opportunistic;
    gboolean is_frozen;
    gboolean is_told; /* the core knows that it ended */
    gboolean is_checkpointed;
    SimStayOrigin origin; /* how it came to this node */
    BerthResources size;
    SimDemand want; /* now; nothing unless it runs */
    guint32 served_milli;
    guint64 held_mib;
    guint64 cache_mib;   /* host memory that it has filled with page cache, besides HELD */
    guint64 balloon_mib; /* that a balloon keeps from it */
    guint32 rate_ppm;    /* of full speed */
    SimOrder *order;     /* START, RESTORE, MIGRATE, CHECKPOINT, FREEZE, THAW, RESIZE */
    SimOrder *stop;
    gint64 placed_usec;
    /* reports.c */
    SimTimer report;
    gint64 report_interval_usec;
    gint64 reported_usec, counted_usec;
    SimSum served_since, wanted_since; /* milli times usec, up to COUNTED_USEC */
    SimSum lost_since;                 /* likewise of full speed, ppm times usec */
    SimDemand reported;
} SimGuest;

/* run.c: a job that has arrived and is not over */
struct SimRun {
    SimJob job; /* .id first: the key of Sim.runs */
    SimUsage usage;
    SimDemand demand; /* of each guest, at this progress */
    gint64 until_usec;
    gint64 progress_usec, since_usec;
    guint32 rate_ppm;
    guint n_stalled; /* guests whose rate is 0 */
    guint n_placed;
    SimTimer timer;
    SimSum work_cpu, work_mem; /* done since the start that counts */
    gint64 saved_progress_usec;
    SimSum saved_cpu, saved_mem;
    guint64 saved_cache_mib;
    gint64 start_usec, end_usec; /* first start; 0 = none */
    guint n_moves, n_checkpoints;
    gboolean has_started, is_done;
    gboolean
        awaits_user; /* it has come to a limit that is too short, and is nowhere; TIMER is its user's */
    gboolean is_kept; /* likewise: its checkpoint is, and it goes on */
    BerthReason explained;
    SimGuest *guests; /* job.guests of them */
};

/* world.c */
typedef struct {
    guint32 handle;
    gboolean is_up;
    gboolean is_contended;
    guint n_transfers;    /* moves, checkpoints and restores under way */
    guint64 wanted_milli; /* by GUESTS */
    guint64 wanted_mib;   /* by GUESTS and INCOMING, overhead included */
    guint64 cache_mib;    /* of GUESTS */
    GPtrArray *guests;    /* SimGuest on it */
    GPtrArray *incoming;  /* SimGuest that is copied to it */
    SimTimer timer, report;
    guint64 n_events; /* of failures.c */
} SimNode;

typedef struct {
    const SimConfig *config;
    SimWorkload *workload;
    const SimUsageModel *usage;
    SimMetrics *metrics;
    SimMachine machine;
    SimCosts costs;
    guint64 overhead_mib;
    gboolean wants_reports;
    gboolean owes_pass; /* the core was told that more follows at this instant */
    BerthCore *core;
    BerthCoreEffects *effects;
    GString *journal; /* entries not told yet */
    gint64 now_usec;
    CoreHeap timers;
    guint64 n_timers_set;
    SimTimer arrival, core_timer;
    SimJob next_job;
    guint64 n_arrived;
    gint64 run_max_usec;    /* the longest run that arrived */
    guint64 n_moved;        /* jobs that have arrived, and that have ended; ... */
    gint64 moved_usec;      /* ... the last of them then, ... */
    guint64 moved_failures; /* ... and so often nodes had failed before */
    guint64 n_orders;
    guint64 n_again;  /* jobs that were submitted again */
    GHashTable *runs; /* SimRun by job.id */
    SimNode *nodes;   /* handle - 1 */
    SimTotals totals;
    SimSum useful_cpu, useful_mem, lost_cpu;
} Sim;

/* timers.c */
void sim_timer_set(Sim *sim, SimTimer *timer, SimTimerKind kind, gint64 due_usec);
void sim_timer_clear(Sim *sim, SimTimer *timer);
SimTimer *sim_timer_first(Sim *sim);
int sim_timer_compare(const CoreHeapLink *a, const CoreHeapLink *b);

/* world.c */
void sim_world_init(Sim *sim);
void sim_world_clear(Sim *sim);
SimNode *sim_world_node(Sim *sim, guint32 handle);
void sim_world_place(Sim *sim, SimGuest *guest, guint32 node, gboolean is_opportunistic);
void sim_world_remove(Sim *sim, SimGuest *guest);
void sim_world_begin_move(Sim *sim, SimGuest *guest, guint32 to);
/* It arrives (MOVED), or stays where it is. */
void sim_world_end_move(Sim *sim, SimGuest *guest, gboolean moved, gboolean is_opportunistic);
void sim_world_resize(Sim *sim, SimGuest *guest, const BerthCoreAction *action);
/* What GUEST can have at most of the memory that it wants: less where a balloon keeps it. */
guint64 sim_world_may_hold_mib(const SimGuest *guest);
/* Of NODE, to whoever asks first. */
guint64 sim_world_available_mib(const Sim *sim, const SimNode *node);
/* Its phase or freezing may have changed, or what its job wants. */
void sim_world_update(Sim *sim, SimGuest *guest);
/* Aborts with what is wrong. */
void sim_world_check(Sim *sim);

/* run.c */
SimRun *sim_run_new(Sim *sim, const SimJob *job);
void sim_run_free(SimRun *run);
SimRun *sim_run_find(Sim *sim, guint64 job);
/* The guest with exactly that epoch; NULL: there is none any more. */
SimGuest *sim_run_find_guest(Sim *sim, const BerthGuestId *id);
BerthGuestId sim_guest_id(const SimGuest *guest);
void sim_run_advance(Sim *sim, SimRun *run);
void sim_run_set_rate(Sim *sim, SimGuest *guest, guint32 rate_ppm);
void sim_run_due(Sim *sim, SimRun *run);
/* A guest of it is started: from the beginning, or from what was saved. */
void sim_run_rewind(Sim *sim, SimRun *run, gboolean to_saved);
/* It is larger than the machine. */
void sim_run_refused(Sim *sim, const SimJob *job);
void sim_run_save(Sim *sim, SimRun *run);
void sim_run_over(Sim *sim, SimRun *run, gboolean completed, gboolean killed);
/* Its limit has come, and was too short: it stands still as a checkpoint (KEPT), or was killed, and has nothing
 * left. Its user asks for more after a while. */
void sim_run_at_limit(Sim *sim, SimRun *run, gboolean kept);

/* orders.c */
void sim_orders_take(Sim *sim, const BerthCoreAction *action);
void sim_orders_due(Sim *sim, SimOrder *order);
/* What is being done to it is not done any more. */
void sim_orders_cancel(Sim *sim, SimGuest *guest);
/* Nobody knows any more that it was to be stopped. */
void sim_orders_forget_stop(Sim *sim, SimGuest *guest);

/* reports.c */
void sim_reports_begin(Sim *sim, SimGuest *guest);
void sim_reports_end(Sim *sim, SimGuest *guest);
/* Before SERVED, WANT or RATE changes. */
void sim_reports_count(Sim *sim, SimGuest *guest);
void sim_reports_changed(Sim *sim, SimGuest *guest);
void sim_reports_pressure(Sim *sim, SimNode *node);
void sim_reports_due(Sim *sim, SimGuest *guest);
void sim_reports_node_due(Sim *sim, SimNode *node);

/* failures.c */
void sim_failures_begin(Sim *sim);
void sim_failures_due(Sim *sim, SimNode *node);
/* *OUT_FAULT: how, if it is a STOP or a RELEASE. */
gboolean sim_failures_hits(Sim *sim, SimEndFault *out_fault);
/* The agent of NODE begins anew: its session ends, and the next says what it has. Its guests do not notice. */
void sim_failures_restart_agent(Sim *sim, SimNode *node);

/* adapter.c: the only file that knows how the core is called */
void sim_core_begin(Sim *sim);
void sim_core_submit(Sim *sim, SimRun *run);
/* A job that stands still at its limit gets the one that it has now. */
void sim_core_extend(Sim *sim, const SimRun *run);
/* Tells the core; what it wants done is under way after that. The run of a guest may be gone. */
void sim_send(Sim *sim, const BerthCoreEvent *event);
void sim_send_guest(Sim *sim, BerthEventKind kind, const SimGuest *guest);
/* With all guests that are on it. */
void sim_send_joined(Sim *sim, const SimNode *node);

/* explain.c */
void sim_explain(Sim *sim, const SimJob *job, const char *format, ...) G_GNUC_PRINTF(3, 4);
void sim_explain_action(Sim *sim, const BerthCoreAction *action);
void sim_explain_waiting(Sim *sim, SimRun *run);
/* How TASK, which is over, ended. (transfer full) */
char *sim_explain_ending(const BerthCoreTask *task);
/* Where its time went, of a job that is over. */
void sim_explain_sum(Sim *sim, const SimRun *run, const SimOutcome *outcome);
