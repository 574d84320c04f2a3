/* SPDX-License-Identifier: Apache-2.0 */
/* Owns which step leads from where to where in a guest's life. Invariants: FORGOTTEN is the only
 * phase without a way out; a domain may exist only from DEFINING to RELEASING; ENDED is never left
 * but for a release, or with its domain for another node, where the guest says so again: an outcome
 * that was seen is never replaced. */
#include <config.h>

#include "nodeagent/guest_phase.h"

#include <glib.h>

/* Zero means "stays". */
#define TO(phase) ((signed char)(BERTH_PHASE_##phase + 1))

static const signed char table[BERTH_N_PHASES][BERTH_N_STEPS] = {
    [BERTH_PHASE_PREPARING] =
        {
            [BERTH_STEP_DISK_MADE] = TO(DEFINING),
            [BERTH_STEP_START_FAILED] = TO(UNDOING),
            [BERTH_STEP_BROKEN] = TO(FAILING),
            [BERTH_STEP_RELEASED] = TO(RELEASING),
        },
    [BERTH_PHASE_DEFINING] =
        {
            [BERTH_STEP_DOMAIN_MADE] = TO(BOOTING),
            [BERTH_STEP_START_FAILED] = TO(UNDOING),
            [BERTH_STEP_BROKEN] = TO(FAILING),
            [BERTH_STEP_RELEASED] = TO(RELEASING),
        },
    [BERTH_PHASE_ARRIVING] =
        {
            [BERTH_STEP_RELEASED] = TO(RELEASING),
        },
    [BERTH_PHASE_BOOTING] =
        {
            [BERTH_STEP_LEFT] = TO(LEFT),
            [BERTH_STEP_STARTED] = TO(RUNNING),
            [BERTH_STEP_ENDED] = TO(ENDED),
            [BERTH_STEP_BROKEN] = TO(FAILING),
            [BERTH_STEP_VANISHED] = TO(DRAINING),
            [BERTH_STEP_RELEASED] = TO(RELEASING),
        },
    [BERTH_PHASE_RUNNING] =
        {
            [BERTH_STEP_LEFT] = TO(LEFT),
            [BERTH_STEP_ENDED] = TO(ENDED),
            [BERTH_STEP_BROKEN] = TO(FAILING),
            [BERTH_STEP_VANISHED] = TO(DRAINING),
            [BERTH_STEP_RELEASED] = TO(RELEASING),
        },
    [BERTH_PHASE_ENDED] =
        {
            [BERTH_STEP_LEFT] = TO(LEFT),
            [BERTH_STEP_RELEASED] = TO(RELEASING),
        },
    [BERTH_PHASE_FAILING] =
        {
            [BERTH_STEP_DESTROYED] = TO(DRAINING),
            [BERTH_STEP_RELEASED] = TO(RELEASING),
        },
    [BERTH_PHASE_DRAINING] =
        {
            [BERTH_STEP_DRAINED] = TO(GONE),
            [BERTH_STEP_RELEASED] = TO(RELEASING),
        },
    [BERTH_PHASE_GONE] =
        {
            [BERTH_STEP_RELEASED] = TO(RELEASING),
        },
    [BERTH_PHASE_LEFT] =
        {
            [BERTH_STEP_RELEASED] = TO(CLEANING),
        },
    [BERTH_PHASE_UNDOING] =
        {
            [BERTH_STEP_DESTROYED] = TO(CLEANING),
        },
    [BERTH_PHASE_RELEASING] =
        {
            [BERTH_STEP_DESTROYED] = TO(CLEANING),
        },
    [BERTH_PHASE_CLEANING] =
        {
            [BERTH_STEP_CLEANED] = TO(FORGOTTEN),
        },
};

BerthGuestPhaseOnNode berth_guest_phase_next(BerthGuestPhaseOnNode phase, BerthGuestStep step)
{
    g_return_val_if_fail(phase < BERTH_N_PHASES && step < BERTH_N_STEPS, phase);
    signed char to = table[phase][step];
    return to == 0 ? phase : (BerthGuestPhaseOnNode)(to - 1);
}

const char *berth_guest_phase_name(BerthGuestPhaseOnNode phase)
{
    static const char *const names[BERTH_N_PHASES] = {
        "preparing", "defining", "arriving", "booting", "running",   "ended",    "failing",
        "draining",  "gone",     "left",     "undoing", "releasing", "cleaning", "forgotten",
    };
    return phase < BERTH_N_PHASES ? names[phase] : "?";
}
