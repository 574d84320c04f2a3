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
