/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

#define STALL_WINDOW_USEC 10000000u

/* The share of the last 10 s in which tasks stalled, made of the time that the kernel has counted in all.
 *
 * The kernel's own averages (avg10) will not do here: a worker of it makes them every 2 s, and takes for time without a
 * stall what passed while that worker had no CPU (kernel/sched/psi.c, missed periods). In a guest whose vCPUs wait for
 * their host, that is most of the time in which its tasks stall. */
typedef struct {
    struct {
        uint64_t at_usec, total_usec;
    } samples[12]; /* oldest first, 1 s apart: the window, and the one before it */
    unsigned n_samples;
} StallShare;

/* The share up to NOW (monotonic), at which TOTAL was counted: 0 to 10000, hundredths of a percent. Of the time before the
 * first look nothing is known: it counts as one without a stall. So does all before a look at which less was counted than
 * before. */
uint32_t stall_share_note(StallShare *share, uint64_t now_usec, uint64_t total_usec);
