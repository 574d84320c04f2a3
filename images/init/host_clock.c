/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what follows from the host's word of its time. Invariant: an answer bounds the host's clock on both
 * sides, because it was said after the question and before the answer was taken, and nothing else is assumed. */
#include "images/init/host_clock.h"

#include <sys/timex.h>

#define USEC_PER_SEC 1000000

uint64_t host_clock_ask(HostClock *clock, uint64_t monotonic_usec)
{
    clock->stamp_usec = monotonic_usec;
    clock->wait_msec = HOST_CLOCK_INTERVAL_MSEC;
    return monotonic_usec;
}

/* 70,000 years are on no clock, and differences of less do not overflow. */
static bool can_be(uint64_t usec)
{
    return usec > 0 && usec < (uint64_t)INT64_MAX / 4;
}

static bool is_answer(const HostClock *clock, const HostClockAnswer *answer)
{
    return clock->stamp_usec != 0 && answer->stamp_usec == clock->stamp_usec &&
           answer->monotonic_usec >= answer->stamp_usec && can_be(answer->monotonic_usec) &&
           can_be(answer->host_usec) && can_be(answer->clock_usec);
}

int64_t host_clock_offset(HostClock *clock, const HostClockAnswer *answer)
{
    int64_t earliest, latest;
    uint64_t open_usec;

    if (!is_answer(clock, answer))
        return 0;
    clock->stamp_usec = 0;
    open_usec = answer->monotonic_usec - answer->stamp_usec;
    if (open_usec / 2 <= HOST_CLOCK_GOOD_USEC || clock->retries == HOST_CLOCK_RETRIES) {
        clock->retries = 0;
        clock->wait_msec = HOST_CLOCK_INTERVAL_MSEC;
    } else {
        clock->retries++;
        clock->wait_msec = HOST_CLOCK_RETRY_MSEC;
    }
    earliest = (int64_t)answer->host_usec - (int64_t)answer->clock_usec;
    latest = earliest + (int64_t)open_usec;
    return earliest > 0 ? earliest : latest < 0 ? latest : 0;
}

/* By a difference, so that time which passes meanwhile is not lost. Ends a move that goes on slowly. */
static bool step(int64_t offset_usec)
{
    struct timex change = {.modes = ADJ_SETOFFSET};

    change.time.tv_sec = offset_usec / USEC_PER_SEC;
    change.time.tv_usec = offset_usec % USEC_PER_SEC;
    if (change.time.tv_usec < 0) {
        change.time.tv_sec--;
        change.time.tv_usec += USEC_PER_SEC;
    }
    return adjtimex(&change) >= 0;
}

/* As adjtime(3): 500 microseconds in a second. Replaces a move that goes on. */
static bool slew(int64_t offset_usec)
{
    struct timex change = {.modes = ADJ_OFFSET_SINGLESHOT, .offset = offset_usec};

    return adjtimex(&change) >= 0;
}

bool host_clock_move(int64_t offset_usec, bool nobody_looks)
{
    bool is_much = offset_usec > HOST_CLOCK_STEP_USEC || offset_usec < -HOST_CLOCK_STEP_USEC;

    if (offset_usec == 0)
        return true;
    return is_much || nobody_looks ? step(offset_usec) : slew(offset_usec);
}
