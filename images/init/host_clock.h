/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The guest's clock, kept at the host's for as long as it lives, as NTP (RFC 5905) keeps a client's at its
 * server's: the guest asks with a stamp of its monotonic clock, and the host answers with its own time and that
 * stamp. */

#include <stdbool.h>
#include <stdint.h>

/* From one question to the next. A clock that drifts by 100 millionths is 1.6 ms off then; the kernel can
 * make up for 8 ms in that time without a step. */
#define HOST_CLOCK_INTERVAL_MSEC 16000u
/* An answer that leaves more open than this is followed by another question soon, a few times. */
#define HOST_CLOCK_GOOD_USEC  5000u
#define HOST_CLOCK_RETRY_MSEC 1000u
#define HOST_CLOCK_RETRIES    3u
/* What a command would see as a jump is spread over time; more than this would take minutes. */
#define HOST_CLOCK_STEP_USEC 100000

/* All zero: nothing was asked yet. */
typedef struct {
    uint64_t stamp_usec; /* of the question whose answer is waited for; 0: of none */
    unsigned retries;
    uint32_t wait_msec; /* until the next question */
} HostClock;

typedef struct {
    uint64_t stamp_usec;     /* what the host says: the question's stamp, ... */
    uint64_t host_usec;      /* ... and its clock, at any time between question and answer */
    uint64_t clock_usec;     /* the guest's clock, which is to be read before ... */
    uint64_t monotonic_usec; /* ... the clock that the stamp is of */
} HostClockAnswer;

/* A question is about to be sent, at MONOTONIC_USEC: the stamp for it. The answer to an earlier one does not
 * count any more. */
uint64_t host_clock_ask(HostClock *clock, uint64_t monotonic_usec);

/* How far the clock is to be moved (microseconds, negative: back) so that it is where the host's can be: to
 * the near end of what the answer leaves open, 0 if it is within. So whatever the delay of question and answer,
 * and however it is divided between them, the clock is never further off than before. 0 also for what is no
 * answer to the last question, or cannot be one. */
int64_t host_clock_offset(HostClock *clock, const HostClockAnswer *answer);

/* Moves the clock by OFFSET_USEC, at once if that is much or NOBODY_LOOKS, else slowly. false with errno. */
bool host_clock_move(int64_t offset_usec, bool nobody_looks);
