/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the one table of the policy's constants: what each means, and why it has its value. */
#include "scheduler/core/tuning.h"

#define SECOND_USEC ((gint64)G_USEC_PER_SEC)
#define HOUR_USEC   (3600 * SECOND_USEC)
#define DAY_USEC    (24 * HOUR_USEC)
#define YEAR_USEC   (365 * DAY_USEC)

static const BerthCoreTuningInfo tunings[BERTH_TUNING_N] = {
    [BERTH_TUNING_PLAN_DEPTH] =
        {"plan_depth", "", 1, 1, 4096,
         "waiting tasks with a planned start: 1 is EASY backfill, more are conservative backfill "
         "of "
         "so many",
         "users overestimate run times severalfold (Mu'alem and Feitelson 2001): each further plan "
         "keeps short jobs out of room for starts that hardly come to pass. HPC2N at load 0.9, "
         "mean "
         "bounded slowdown over EASY's (seven seeds): 1.01 with 1, 1.20 with 4"},
    [BERTH_TUNING_SLACK_PLAN_DEPTH] =
        {"slack_plan_depth", "", 32, 0, 4096,
         "further planned starts that are kept from whoever runs or could start in slack",
         "what small jobs do not need is gathered for gangs and large jobs, which slack is no use "
         "to. "
         "Mason at load 2.5, seeds 1 and 2: a tenth less work is done with 0"},
    [BERTH_TUNING_SLACK_PLAN_INTERVAL_USEC] =
        {"slack_plan_interval_usec", "us", 30 * SECOND_USEC, 0, DAY_USEC,
         "for how long those stand before they are planned anew",
         "bounds what planning costs however often something happens; Slurm's bf_interval is 30 s "
         "by "
         "default. Mason at load 2.5, means of seeds 4 to 11: 0.1 % more work done than with 1 s, "
         "which is chance"},
    [BERTH_TUNING_BACKFILL_DEPTH] =
        {"backfill_depth", "", 256, 1, 1000000,
         "classes of gangs, and as many of jobs that may run in slack, tried in vain per pass",
         "bounds a pass; about as many as Slurm's bf_max_job_test has jobs (500), but of classes"},
    [BERTH_TUNING_ASSUMED_LIMIT_USEC] =
        {"assumed_limit_usec", "us", DAY_USEC, SECOND_USEC, YEAR_USEC,
         "how long a task without a time limit is planned for",
         "a day: common default limit of batch sites; without one nothing could be planned"},
    [BERTH_TUNING_OVERSTAY_USEC] =
        {"overstay_usec", "us", 120 * SECOND_USEC, SECOND_USEC, YEAR_USEC,
         "after which a guest that was to be stopped, removed or taken away, and is still there, "
         "is thought to "
         "stay for as long again",
         "for so long berthd waits for a node's answer to a removal; most take seconds"},
    [BERTH_TUNING_WEIGHT_FAIR_SHARE] = {"weight_fair_share", "", 0, 0, 1000000,
                                        "points of a full fair-share factor",
                                        "0: order by number, until accounts are set up"},
    [BERTH_TUNING_WEIGHT_AGE] = {"weight_age", "", 0, 0, 1000000, "points after age_max of waiting",
                                 "as fair share"},
    [BERTH_TUNING_WEIGHT_QOS] = {"weight_qos", "", 1000, 0, 1000000,
                                 "points of a QOS of 1000 permille",
                                 "a QOS that nobody set has 0 permille and no points"},
    [BERTH_TUNING_AGE_MAX_USEC] = {"age_max_usec", "us", 7 * DAY_USEC, SECOND_USEC, YEAR_USEC,
                                   "age counts up to this", "Slurm's PriorityMaxAge: 7 days"},
    [BERTH_TUNING_HALF_LIFE_USEC] = {"half_life_usec", "us", 7 * DAY_USEC, 60 * SECOND_USEC,
                                     YEAR_USEC, "in which past usage counts half",
                                     "Slurm's PriorityDecayHalfLife: 7 days"},
    [BERTH_TUNING_RANK_INTERVAL_USEC] =
        {"rank_interval_usec", "us", 60 * SECOND_USEC, SECOND_USEC, HOUR_USEC,
         "after which fair share and age are counted anew",
         "a minute changes a factor with half-life of days by less than 0.01 %"},
    [BERTH_TUNING_START_DOUBLINGS_MAX] = {"start_doublings_max", "", 6, 0, 16,
                                          "of start_backoff, one per start that fails in a row",
                                          "our choice: 64 times the default of 5 s is five "
                                          "minutes: what made starts fail has passed "
                                          "by then, or takes somebody to look at it"},
    [BERTH_TUNING_BOOT_RETRIES_MAX] =
        {"boot_retries_max", "", 2, 0, 1000,
         "times in a row a guest is tried again that is gone before its command began, or did not "
         "boot in "
         "time; no oftener than start_retries_max",
         "our choice: a kernel that crashes now and then does not do so thrice, nor are three "
         "nodes "
         "too slow; and one that always does should not keep its job waiting"},
    [BERTH_TUNING_NODE_FAILURES_MAX] =
        {"node_failures_max", "", 3, 1, 1000,
         "starts of different jobs that fail in a row before a node gets no new guests for a pause",
         "our choice: two could be the same bad luck, and each costs a job a backoff"},
    [BERTH_TUNING_SETTLE_USEC] =
        {"settle_usec", "us", 300 * SECOND_USEC, 0, DAY_USEC,
         "a guest without a prior is taken at its reservation for this long",
         "Autopilot (Rzadca et al. 2020) samples in windows of 5 minutes"},
    [BERTH_TUNING_DECAY_HALF_LIFE_USEC] =
        {"decay_half_life_usec", "us", 12 * HOUR_USEC, SECOND_USEC, YEAR_USEC,
         "in which a predicted peak of memory sinks halfway to what is measured",
         "Autopilot: half-life of 12 h for CPU; longer for memory makes moves rarer, not safer"},
    [BERTH_TUNING_CPU_DECAY_HALF_LIFE_USEC] =
        {"cpu_decay_half_life_usec", "us", 600 * SECOND_USEC, SECOND_USEC, YEAR_USEC,
         "the same, of vCPUs",
         "our choice: a wrong guess costs only the guests in slack, which yield at once"},
    [BERTH_TUNING_COINCIDENCE_MIN_PERMILLE] =
        {"coincidence_min_permille", "permille", 500, 1, 1000,
         "of the sum of its guests' peaks of vCPUs, what a node is taken to need at least",
         "our choice: however seldom they have been seen busy together, half of them may be; on "
         "mason a quarter did no better"},
    [BERTH_TUNING_PEAK_MARGIN_PERMILLE] = {"peak_margin_permille", "permille", 100, 0, 2000,
                                           "added to a measured peak",
                                           "Autopilot: 10-15 % over the peak"},
    [BERTH_TUNING_PEAK_STEP_PERMILLE] =
        {"peak_step_permille", "permille", 125, 10, 2000,
         "by so much a guest's measured peak differs from what is stored of it before that is "
         "written anew",
         "our choice: about the margin, so that a restart loses no more than that covers; from a "
         "quarter of its reservation to all of it a guest writes 12 times at most"},
    [BERTH_TUNING_PEAK_INTERVAL_USEC] =
        {"peak_interval_usec", "us", HOUR_USEC, SECOND_USEC, YEAR_USEC,
         "between two writes of a guest's peak that are not for memory which has grown",
         "10,000 guests write three times a second together; a peak of memory sinks by a twentieth "
         "in it, and one of vCPUs that is too high only halves in ten minutes"},
    [BERTH_TUNING_PRIOR_SIBLINGS_MIN] = {"prior_siblings_min", "", 3, 1, 1000,
                                         "finished siblings that make a prior",
                                         "below three, one outlier would be the rule"},
    [BERTH_TUNING_PRIOR_JOBS] =
        {"prior_jobs", "", 16, 1, 1000000,
         "jobs of a user, or of anybody, that reserve as many vCPUs, whose "
         "mean of peaks of vCPUs the next is taken to need; each further one "
         "is one part in so many of it",
         "our choice: long enough for a mean, short enough to follow a "
         "user who begins something else"},
    [BERTH_TUNING_CPU_HEADROOM_PERMILLE] =
        {"cpu_headroom_permille", "permille", 50, 0, 900, "of a node's vCPUs kept free of slack",
         "weights give guaranteed guests their CPU within a scheduling period; the rest is for the "
         "host's own bursts"},
    [BERTH_TUNING_MEMORY_HEADROOM_PERMILLE] =
        {"memory_headroom_permille", "permille", 100, 0, 900,
         "of a node's memory kept free of slack",
         "must last while one guest is moved away: a tenth of a 64 GiB node at 1000 MiB/s of copy "
         "covers growth of 6 GiB in the time that it takes to copy 6 GiB"},
    [BERTH_TUNING_OVERCOMMIT_MAX_PERMILLE] =
        {"overcommit_max_permille", "permille", 3000, 1000, 10000,
         "memory reserved on a node, guaranteed and in slack, over its capacity",
         "a bound on what must be moved when all of them grow at once; three times covers "
         "use of a third, the least of the traces measured (mason: 29-38 %)"},
    [BERTH_TUNING_CHECKPOINT_SPACE_MIB] = {"checkpoint_space_mib", "MiB", G_MAXINT64 / 2, 0,
                                           G_MAXINT64 / 2, "of storage for checkpoints",
                                           "no bound unless the storage has one"},
    [BERTH_TUNING_CHECKPOINT_ROOM_PERMILLE] =
        {"checkpoint_room_permille", "permille", 500, 1, 1000,
         "of what storage has left at most that is kept for checkpoints still to be made",
         "our choice: disks take up what they are written, and output too; Ceph refuses all writes "
         "when one of its OSDs is full"},
    [BERTH_TUNING_CHECKPOINT_MARGIN_MIB] = {"checkpoint_margin_mib", "MiB", 64, 1, 65536,
                                            "kept for each checkpoint beside the guest's memory",
                                            "its devices' state and the description of its domain: "
                                            "below 2 MiB in a lab; the rest is for video memory "
                                            "and vCPUs by the hundred"},
    [BERTH_TUNING_EVACUATION_MAX_USEC] =
        {"evacuation_max_usec", "us", 300 * SECOND_USEC, SECOND_USEC, DAY_USEC,
         "in which all guests in a node's slack can be checkpointed, as far as is known what they "
         "use: no more of them are let in; who is backed and waits for them is given up then",
         "our choice: the longest that a backed start may wait for them; as long as a prediction "
         "takes to settle, so that a node is rid of them before it may look safe again"},
    [BERTH_TUNING_PRESSURE_PSI_PERMILLE] =
        {"pressure_psi_permille", "permille", 100, 1, 1000,
         "memory pressure of a node from which guests have to leave",
         "systemd-oomd acts at 60 % for services; guests that stall a tenth of their time are "
         "visibly slow, and relief must come before harm"},
    [BERTH_TUNING_PRESSED_PERMILLE] =
        {"pressed_permille", "permille", 500, 0, 1000,
         "of its headroom that a node has left when guests begin to leave it for memory",
         "our choice: half of it is for what predictions miss from day to day, the other half for "
         "what "
         "comes while they leave"},
    [BERTH_TUNING_GROWTH_LEAD_PERMILLE] =
        {"growth_lead_permille", "permille", 1000, 0, 10000,
         "of the time that a guest in slack takes to leave, for which the growth of backed guests "
         "is "
         "added to what they take",
         "who leaves has to have left before they have come to need it. 0: not at all"},
    [BERTH_TUNING_WELL_PERMILLE] =
        {"well_permille", "permille", 1500, 1000, 10000,
         "of its headroom that a node has left when its guests have got back what balloons took",
         "our choice: half as much again as when they are asked for it, so that giving it back "
         "does "
         "not make it pressed"},
    [BERTH_TUNING_STARVED_PERMILLE] =
        {"starved_permille", "permille", 800, 1, 1001,
         "of its time lost for want of CPU, from which a guest in slack moves to where CPU is "
         "free. "
         "1001: none does",
         "our choice: it runs at a fifth of its speed. Mason at load 2.5, seeds 1 to 3: jobs wait "
         "2 "
         "to 9 % longer with 1000, by which next to nobody moves"},
    [BERTH_TUNING_STARVED_MAX_USEC] =
        {"starved_max_usec", "us", 14400 * SECOND_USEC, 0, YEAR_USEC,
         "on end a guest in slack loses starved_permille of its time before it is checkpointed, to "
         "wait for a backed start, if it is first in the order",
         "our choice: nobody plans for a guest that runs, and later jobs could get all room that "
         "comes free. Mason at load 2.5, seeds 1 to 3: with one hour jobs wait 6 % longer, with "
         "four no longer than without it"},
    [BERTH_TUNING_BALLOON_SPARE_PERMILLE] =
        {"balloon_spare_permille", "permille", 100, 0, 1000,
         "of what a guest in slack is predicted to need, left to it besides by a balloon",
         "a guest that needs more than it was left gets all of it back: with the margin of the "
         "prediction a twelfth of its memory is available then, and limit_available is a "
         "twentieth"},
    [BERTH_TUNING_BALLOON_MIN_MIB] =
        {"balloon_min_mib", "MiB", 64, 1, G_MAXINT32,
         "less than this is not taken from a guest by a balloon",
         "what a guest of a gigabyte drops and fills again within seconds"},
    [BERTH_TUNING_BALLOON_MIB_PER_SEC] =
        {"balloon_mib_per_sec", "MiB/s", 500, 1, 1000000, "at which a balloon takes memory",
         "page by page, cache that has to be dropped first: assumed. A guest is asked for no more "
         "than is taken before it ends and within evacuation_max_usec"},
    [BERTH_TUNING_COOLDOWN_USEC] = {"cooldown_usec", "us", 300 * SECOND_USEC, 0, DAY_USEC,
                                    "so long after a move, checkpoint, resize, freeze or thaw a "
                                    "guest is not moved by the scheduler itself",
                                    "as long as predictions take to settle"},
    [BERTH_TUNING_NEAR_END_USEC] =
        {"near_end_usec", "us", 60 * SECOND_USEC, 0, DAY_USEC,
         "a guest whose time limit is nearer than this is not worth a move",
         "a move costs seconds to a minute itself"},
    [BERTH_TUNING_MIGRATE_MIB_PER_SEC] =
        {"migrate_mib_per_sec", "MiB/s", 1000, 1, 1000000, "bandwidth of a live migration",
         "a 10 GbE link, less protocol: assumed; set that of your nodes"},
    [BERTH_TUNING_CHECKPOINT_MIB_PER_SEC] =
        {"checkpoint_mib_per_sec", "MiB/s", 400, 1, 1000000, "bandwidth to checkpoint storage",
         "three replicas written over the same link: assumed; set that of your pool"},
    [BERTH_TUNING_MIGRATE_FIXED_USEC] =
        {"migrate_fixed_usec", "us", 2 * SECOND_USEC, 0, HOUR_USEC,
         "of a migration apart from copying",
         "start of the other QEMU and switch-over: 0.4 s measured by bench/costs, and room for a "
         "slow exit of the source's QEMU, which libvirt waits for"},
    [BERTH_TUNING_CHECKPOINT_FIXED_USEC] =
        {"checkpoint_fixed_usec", "us", 5 * SECOND_USEC, 0, HOUR_USEC,
         "of a checkpoint or restore apart from copying",
         "disk snapshot, start of QEMU: 0.6 s of a checkpoint and 0.5 s of a restore measured by "
         "bench/costs; the rest, for a busy pool, is assumed"},
    [BERTH_TUNING_BALANCE_INTERVAL_USEC] =
        {"balance_interval_usec", "us", 60 * SECOND_USEC, SECOND_USEC, DAY_USEC,
         "between rounds of balancing and promotion; two must agree before anything moves",
         "the longest scan period of Linux NUMA balancing (numa_balancing_scan_period_max_ms)"},
    [BERTH_TUNING_BALANCE_GAIN_MIN_PERMILLE] =
        {"balance_gain_min_permille", "permille", 250, 1, 1000,
         "difference of load between two nodes that is worth a move",
         "Linux's imbalance_pct for NUMA domains: 125, halves of the difference move"},
    [BERTH_TUNING_MOVE_WORTH_PERMILLE] =
        {"move_worth_permille", "permille", 2000, 0, 100000,
         "of the time of its migration, that a guest has left when it is moved for promotion or "
         "balance, and a large job starts sooner if it moves for that",
         "our choice: at least as long again as the move takes, to make use of it"},
    [BERTH_TUNING_BACKOFF_DOUBLINGS_MAX] =
        {"backoff_doublings_max", "", 6, 0, 16,
         "of a guest's cooldown, one per move for balance or the evacuation bound, or growth "
         "that it does not take",
         "64 cooldowns of 5 minutes: 5 hours, longer than most jobs run"},
    [BERTH_TUNING_MOVES_PER_NODE] =
        {"moves_per_node", "", 2, 1, 64, "moves and checkpoints under way at a node",
         "they share one link; more make each slower and the node's guests with them"},
    [BERTH_TUNING_MOVES_PER_CLUSTER_PERMILLE] =
        {"moves_per_cluster_permille", "permille", 100, 1, 1000,
         "of nodes (at least moves_per_node) with a move under way that no backed guest waits for",
         "a tenth of the links, so that a storm leaves the fabric to the jobs"},
    [BERTH_TUNING_DRAIN_PATIENCE_USEC] =
        {"drain_patience_usec", "us", 60 * SECOND_USEC, 0, YEAR_USEC,
         "for which a guest of a drained node waits for room elsewhere before it goes into slack, "
         "or is "
         "checkpointed",
         "about as long as other guests take to move out of the way; who must not be put back into "
         "the queue by a drain sets it to a year"},
    [BERTH_TUNING_DRAIN_FAILURES_MAX] =
        {"drain_failures_max", "", 3, 1, 1000,
         "moves of a guest that fail in a row before a drain checkpoints it",
         "our choice: other nodes were tried by then, so that it is more likely the guest"},
    [BERTH_TUNING_LIMIT_PSI_PERMILLE] = {"limit_psi_permille", "permille", 100, 1, 1000,
                                         "memory pressure of a guest that is at its limit",
                                         "as for nodes"},
    [BERTH_TUNING_LIMIT_AVAILABLE_PERMILLE] =
        {"limit_available_permille", "permille", 50, 0, 1000,
         "available memory below which a guest is at its limit",
         "the kernel's own reserves and reclaim begin at a few percent"},
    [BERTH_TUNING_LIMIT_CPU_PSI_PERMILLE] =
        {"limit_cpu_psi_permille", "permille", 250, 1, 1000,
         "CPU pressure of a guest that lacks vCPUs, if it also uses those that it has",
         "as grow_step: a guest says for which part of its vCPUs something else is ready, and with "
         "less than a step of it part of what it would be given stood idle"},
    [BERTH_TUNING_LIMIT_CPU_USED_PERMILLE] =
        {"limit_cpu_used_permille", "permille", 800, 1, 1000,
         "of its vCPUs that such a guest is measured to use at least",
         "our choice: one that gets less is kept from CPUs by its node, or waits for something "
         "else; the rest is for what a busy host takes"},
    [BERTH_TUNING_LIMIT_CPU_USEC] =
        {"limit_cpu_usec", "us", 30 * SECOND_USEC, 0, DAY_USEC,
         "on end a guest lacks vCPUs before it is grown for that",
         "our choice: a vCPU is not taken back, and slow work does no harm for so long; pressure "
         "is "
         "an average of 10 s, and after three times that nothing is left of one burst"},
    [BERTH_TUNING_GROW_STEP_PERMILLE] = {"grow_step_permille", "permille", 250, 1, 10000,
                                         "of its present size by which a guest is grown",
                                         "a quarter: 4 steps more than double it"},
    [BERTH_TUNING_GROW_USEC] =
        {"grow_usec", "us", 10 * SECOND_USEC, 0, DAY_USEC,
         "that a growth takes: a guest that fills its memory steadily begins to be grown so long "
         "before it is "
         "full, and by as much at least as it fills meanwhile; 0: only at its limit",
         "an emulated guest on a busy host has been seen to take so long for a block of memory"},
};

const BerthCoreTuningInfo *berth_core_tuning(BerthCoreTuning tuning)
{
    g_return_val_if_fail((guint)tuning < BERTH_TUNING_N, NULL);
    return &tunings[tuning];
}

void core_tuning_load(gint64 out_values[BERTH_TUNING_N], const gint64 *values)
{
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        out_values[i] =
            values != NULL ? CLAMP(values[i], tunings[i].min, tunings[i].max) : tunings[i].value;
}
