/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the parts of bench/rig share: how its nodes are, and what has happened to them. */

#include "common/rpc_poll.h"

typedef struct {
    char *address; /* of berthd */
    guint16 port;
    char *certificates; /* directory: ca.pem, rig.key, and NODE.pem of each node */
    guint32 vcpus;      /* that each node offers */
    guint64 memory_mib; /* likewise */
    guint boot_msec;    /* from a guest's start until its command runs */
    guint
        run_msec; /* of a command that does not say: true and false run for none, sleep N for N s */
    guint report_msec;  /* between two measurements of a node that works; 0 = as berthd wants it */
    guint busy_percent; /* of its vCPUs, that a guest uses */
    int trace_fd;       /* what begins and ends is written there; -1 = nowhere */
} RigPlan;

/* Since the rig was started, but for what is now. */
typedef struct {
    guint64 nodes;    /* now, that have joined once */
    guint64 guests;   /* now */
    guint64 joins;    /* answered */
    guint64 starts;   /* asked for: each guest once */
    guint64 repeats;  /* asked for again */
    guint64 begins;   /* of commands */
    guint64 ends;     /* likewise */
    guint64 kept;     /* ends of which berthd has said that it has them */
    guint64 stops;    /* asked for */
    guint64 releases; /* likewise */
    guint64 reports;  /* measurements of a node and its guests that were handed to its session */
    guint64 refusals; /* of what is not simulated: moves and checkpoints */
} RigCounts;

/* What belongs to one thread: what its nodes' timers and connections wait in, and what they count. */
typedef struct {
    const RigPlan *plan;
    BerthRpcPoll *poll;
    RigCounts counts;
} RigThread;

/* Before the first thread: berthd is on this host, at 127.0.0.1. */
extern gboolean rig_sources_are_local;
