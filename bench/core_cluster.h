/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/core.h"

/* A cluster in virtual time for bench/core: submits jobs, answers the core's actions, and keeps what each
 * event has cost. */

typedef enum {
    CLUSTER_SUBMIT,
    CLUSTER_EXIT,   /* and what is released for it */
    CLUSTER_RUN,    /* a command begins */
    CLUSTER_REPORT, /* of a guest */
    CLUSTER_ANSWER, /* a move, checkpoint or resize is done */
    CLUSTER_TIMER,  /* rounds of promotion and balancing, for the most part */
    CLUSTER_N_KINDS,
} ClusterKind;

typedef struct {
    guint32 nodes, cells;
    guint32 gangs_permille;
    gboolean is_distinct; /* each job has a shape of its own */
    gboolean
        is_lopsided; /* who waits needs more of one thing than an end leaves, and less of the other */
    gboolean is_berth; /* guests may run in slack, they are measured, fair share and age count */
    gint64 plan_depth;
} ClusterConfig;

typedef struct Cluster Cluster;

Cluster *cluster_new(const ClusterConfig *config);
void cluster_free(Cluster *cluster);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Cluster, cluster_free)

void cluster_add_nodes(Cluster *cluster);
void cluster_submit(Cluster *cluster);
/* While it is down nobody starts. */
void cluster_set_storage(Cluster *cluster, gboolean is_up);
/* All guests that run begin, and report for as long as that lets more of them start. */
void cluster_settle(Cluster *cluster);
/* A tenth of a second in which a job is submitted, another one ends, and a guest reports. */
void cluster_step(Cluster *cluster);

gsize cluster_bytes(const Cluster *cluster);
guint cluster_n_running(const Cluster *cluster);
/* gint64, ns: of all events since the last call of the next; (transfer none). */
GArray *cluster_costs(const Cluster *cluster, ClusterKind kind);
void cluster_forget_costs(Cluster *cluster);
