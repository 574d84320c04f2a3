/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* How a core decides: who goes before whom, which parts of the policy are on, and its constants. What it
 * is made with. */

/* Who may start before whom (policy 2 of DESIGN.md). All go through the waiting jobs in order. */
typedef enum {
    BERTH_POLICY_FCFS = 0,     /* who waits keeps every node that it could use */
    BERTH_POLICY_EASY = 1,     /* the first that waits has a planned start that nobody may delay */
    BERTH_POLICY_CONSERVATIVE, /* so have the first BERTH_TUNING_PLAN_DEPTH; with 1 it is EASY */
} BerthCorePolicy;

/* Parts of the policy that can be switched off, for a driver that cannot do what they ask for and
 * to see what each is worth. None are needed to keep a promise. */
typedef enum {
    BERTH_FEATURE_OPPORTUNISTIC = 1 << 0, /* starts in slack; needs one of the next two */
    BERTH_FEATURE_MIGRATION = 1 << 1,
    BERTH_FEATURE_CHECKPOINT = 1 << 2,
    BERTH_FEATURE_PREDICTION = 1 << 3,    /* off: a guest needs what it reserved */
    BERTH_FEATURE_SIBLING_PRIOR = 1 << 4, /* off: a new guest needs what it reserved */
    BERTH_FEATURE_PROMOTION = 1 << 5,     /* moves to where the whole reservation is backed */
    BERTH_FEATURE_BALANCING = 1 << 6,
    BERTH_FEATURE_GROWTH = 1 << 7,   /* towards a ceiling */
    BERTH_FEATURE_FREEZING = 1 << 8, /* a guest at its limit is frozen where its job says so */
    BERTH_FEATURE_BALLOON = 1 << 9,  /* guests in slack give back what they do not need */
    BERTH_FEATURE_ALL = (1 << 10) - 1,
} BerthCoreFeature;

/* Every constant of the policy; berth_core_tuning() says what each means, its unit, its bounds and
 * where its default comes from. */
typedef enum {
    /* planning */
    BERTH_TUNING_PLAN_DEPTH,
    BERTH_TUNING_SLACK_PLAN_DEPTH,
    BERTH_TUNING_SLACK_PLAN_INTERVAL_USEC,
    BERTH_TUNING_BACKFILL_DEPTH,
    BERTH_TUNING_ASSUMED_LIMIT_USEC,
    BERTH_TUNING_OVERSTAY_USEC,
    /* order */
    BERTH_TUNING_WEIGHT_FAIR_SHARE,
    BERTH_TUNING_WEIGHT_AGE,
    BERTH_TUNING_WEIGHT_QOS,
    BERTH_TUNING_AGE_MAX_USEC,
    BERTH_TUNING_HALF_LIFE_USEC,
    BERTH_TUNING_RANK_INTERVAL_USEC,
    /* starts that fail */
    BERTH_TUNING_START_DOUBLINGS_MAX,
    BERTH_TUNING_BOOT_RETRIES_MAX,
    BERTH_TUNING_NODE_FAILURES_MAX,
    /* prediction */
    BERTH_TUNING_SETTLE_USEC,
    BERTH_TUNING_DECAY_HALF_LIFE_USEC,
    BERTH_TUNING_CPU_DECAY_HALF_LIFE_USEC,
    BERTH_TUNING_COINCIDENCE_MIN_PERMILLE,
    BERTH_TUNING_PEAK_MARGIN_PERMILLE,
    BERTH_TUNING_PEAK_STEP_PERMILLE,
    BERTH_TUNING_PEAK_INTERVAL_USEC,
    BERTH_TUNING_PRIOR_SIBLINGS_MIN,
    BERTH_TUNING_PRIOR_JOBS,
    /* opportunistic placement */
    BERTH_TUNING_CPU_HEADROOM_PERMILLE,
    BERTH_TUNING_MEMORY_HEADROOM_PERMILLE,
    BERTH_TUNING_OVERCOMMIT_MAX_PERMILLE,
    BERTH_TUNING_CHECKPOINT_SPACE_MIB,
    BERTH_TUNING_CHECKPOINT_ROOM_PERMILLE,
    BERTH_TUNING_CHECKPOINT_MARGIN_MIB,
    BERTH_TUNING_EVACUATION_MAX_USEC,
    /* pressure */
    BERTH_TUNING_PRESSURE_PSI_PERMILLE,
    BERTH_TUNING_PRESSED_PERMILLE,
    BERTH_TUNING_GROWTH_LEAD_PERMILLE,
    BERTH_TUNING_WELL_PERMILLE,
    BERTH_TUNING_STARVED_PERMILLE,
    BERTH_TUNING_STARVED_MAX_USEC,
    BERTH_TUNING_BALLOON_SPARE_PERMILLE,
    BERTH_TUNING_BALLOON_MIN_MIB,
    BERTH_TUNING_BALLOON_MIB_PER_SEC,
    BERTH_TUNING_COOLDOWN_USEC,
    BERTH_TUNING_NEAR_END_USEC,
    /* costs */
    BERTH_TUNING_MIGRATE_MIB_PER_SEC,
    BERTH_TUNING_CHECKPOINT_MIB_PER_SEC,
    BERTH_TUNING_MIGRATE_FIXED_USEC,
    BERTH_TUNING_CHECKPOINT_FIXED_USEC,
    /* balancing */
    BERTH_TUNING_BALANCE_INTERVAL_USEC,
    BERTH_TUNING_BALANCE_GAIN_MIN_PERMILLE,
    BERTH_TUNING_MOVE_WORTH_PERMILLE,
    BERTH_TUNING_BACKOFF_DOUBLINGS_MAX,
    BERTH_TUNING_MOVES_PER_NODE,
    BERTH_TUNING_MOVES_PER_CLUSTER_PERMILLE,
    BERTH_TUNING_DRAIN_PATIENCE_USEC,
    BERTH_TUNING_DRAIN_FAILURES_MAX,
    /* limits */
    BERTH_TUNING_LIMIT_PSI_PERMILLE,
    BERTH_TUNING_LIMIT_AVAILABLE_PERMILLE,
    BERTH_TUNING_LIMIT_CPU_PSI_PERMILLE,
    BERTH_TUNING_LIMIT_CPU_USED_PERMILLE,
    BERTH_TUNING_LIMIT_CPU_USEC,
    BERTH_TUNING_GROW_STEP_PERMILLE,
    BERTH_TUNING_GROW_USEC,
    BERTH_TUNING_N,
} BerthCoreTuning;

typedef struct {
    const char *name; /* as in a configuration file */
    const char *unit; /* "us", "MiB", "permille", "" */
    gint64 value;     /* the default */
    gint64 min, max;
    const char *meaning;
    const char *source; /* why this value */
} BerthCoreTuningInfo;
const BerthCoreTuningInfo *berth_core_tuning(BerthCoreTuning tuning);

typedef struct {
    gint64 node_timeout_usec;   /* without a session for this long, a node's guests are given up */
    gint64 stop_grace_usec;     /* from SIGTERM to SIGKILL where a job names none */
    guint64 guest_overhead_mib; /* of the host per guest: QEMU, page tables, buffers */
    guint32 requeues_max;      /* a task that lost its guest is requeued this often since its newest
                                 * checkpoint; the next loss ends it NODE_FAIL */
    guint32 start_retries_max; /* passing start failures in a row that are tried again; one more
                                 * ends the task FAILED/START_FAILED. STORAGE_UNAVAILABLE does
                                 * not count: an outage ends no job. */
    gint64 start_backoff_usec; /* pause after the first passing start failure, or after a failed
                                 * FENCE; doubles with each counted failure */
    gboolean can_fence;        /* storage can cut a lost node's guests off (rbd) */
    BerthCorePolicy policy;    /* FCFS unless said otherwise */
    guint32 features;          /* BerthCoreFeature that are on */
    const gint64 *tunings;     /* BERTH_TUNING_N values, copied; NULL = the table's defaults */
} BerthCoreConfig;
