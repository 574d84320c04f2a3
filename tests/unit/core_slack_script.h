/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Scripts of tests/unit/core_script.h about nodes whose reservations stand idle. */

#include "tests/unit/core_script.h"

/* Predictions settle after 10 s. */
static inline void run_with(guint32 features, const char *script)
{
    core_script_run_tuned(features, BERTH_TUNING_SETTLE_USEC, 10 * (gint64)G_USEC_PER_SEC, script);
}

static inline void run(const char *script)
{
    run_with(BERTH_FEATURE_ALL, script);
}

/* A node of 4 vCPUs and 1000 MiB, all reserved by job 1, which uses 1 vCPU and 300 MiB. */
#define IDLE_NODE                                                                                  \
    "node 1 4 1000\n"                                                                              \
    "submit 1 v=4 m=1000 limit=10000 -> START 1.1@1\n"                                             \
    "running 1.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 1.1 cpu=1000 mem=300\n"

/* 1 is to be moved to where 5, in slack, uses what it will use. */
#define MAY_BE_MOVED(wanted, limit)                                                                \
    "node 1 4 1000\n"                                                                              \
    "node 2 4 1000\n"                                                                              \
    "submit 1 v=2 m=500 limit=" limit " nodes=1,2 may-move may-checkpoint " wanted                 \
    " -> START 1.1@1\n"                                                                            \
    "submit 2 v=2 m=500 limit=10000 nodes=2 -> START 2.1@2\n"                                      \
    "running 1.1\n"                                                                                \
    "running 2.1\n"                                                                                \
    "at 20\n"                                                                                      \
    "report 1.1 cpu=500 mem=480\n"                                                                 \
    "report 2.1 cpu=500 mem=300\n"                                                                 \
    "submit 5 v=3 m=500 limit=5000 nodes=2 slack may-checkpoint -> START 5.1@2~\n"                 \
    "running 5.1\n"                                                                                \
    "report 5.1 cpu=500 mem=480\n"                                                                 \
    "at 40\n"                                                                                      \
    "report 5.1 cpu=500 mem=480\n"                                                                 \
    "report 1.1 cpu=500 mem=480\n"                                                                 \
    "report 2.1 cpu=500 mem=300\n"
#define MOVE_WAITS                                                                                 \
    MAY_BE_MOVED("", "10000")                                                                      \
    "migrate 1 to=2 op -> CHECKPOINT 5.1@2~\n"
