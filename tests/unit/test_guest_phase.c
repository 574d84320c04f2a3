/* SPDX-License-Identifier: Apache-2.0 */
#include "nodeagent/guest_phase.h"
#include "tests/lib/assert.h"

#include <glib.h>

static void guest_phase_lives_end_where_they_should(void **state)
{
    static const struct {
        const char *name;
        BerthGuestStep steps[8]; /* ended by BERTH_N_STEPS */
        BerthGuestPhaseOnNode end;
    } cases[] = {
        {"good life",
         {BERTH_STEP_DISK_MADE, BERTH_STEP_DOMAIN_MADE, BERTH_STEP_STARTED, BERTH_STEP_ENDED,
          BERTH_STEP_RELEASED, BERTH_STEP_DESTROYED, BERTH_STEP_CLEANED, BERTH_N_STEPS},
         BERTH_PHASE_FORGOTTEN},
        {"no disk",
         {BERTH_STEP_START_FAILED, BERTH_STEP_DESTROYED, BERTH_STEP_CLEANED, BERTH_N_STEPS},
         BERTH_PHASE_FORGOTTEN},
        {"no domain",
         {BERTH_STEP_DISK_MADE, BERTH_STEP_START_FAILED, BERTH_STEP_DESTROYED, BERTH_STEP_CLEANED,
          BERTH_N_STEPS},
         BERTH_PHASE_FORGOTTEN},
        {"no boot",
         {BERTH_STEP_DISK_MADE, BERTH_STEP_DOMAIN_MADE, BERTH_STEP_BROKEN, BERTH_STEP_DESTROYED,
          BERTH_STEP_DRAINED, BERTH_N_STEPS},
         BERTH_PHASE_GONE},
        {"crash",
         {BERTH_STEP_DISK_MADE, BERTH_STEP_DOMAIN_MADE, BERTH_STEP_STARTED, BERTH_STEP_VANISHED,
          BERTH_STEP_DRAINED, BERTH_N_STEPS},
         BERTH_PHASE_GONE},
        {"released while its output waits for storage",
         {BERTH_STEP_DISK_MADE, BERTH_STEP_DOMAIN_MADE, BERTH_STEP_STARTED, BERTH_STEP_VANISHED,
          BERTH_STEP_RELEASED, BERTH_STEP_DRAINED, BERTH_N_STEPS},
         BERTH_PHASE_RELEASING},
        {"the end was seen, then the domain went",
         {BERTH_STEP_DISK_MADE, BERTH_STEP_DOMAIN_MADE, BERTH_STEP_STARTED, BERTH_STEP_ENDED,
          BERTH_STEP_VANISHED, BERTH_STEP_BROKEN, BERTH_N_STEPS},
         BERTH_PHASE_ENDED},
        {"a command that could not be started",
         {BERTH_STEP_DISK_MADE, BERTH_STEP_DOMAIN_MADE, BERTH_STEP_ENDED, BERTH_N_STEPS},
         BERTH_PHASE_ENDED},
        {"released while it boots",
         {BERTH_STEP_DISK_MADE, BERTH_STEP_DOMAIN_MADE, BERTH_STEP_RELEASED, BERTH_STEP_STARTED,
          BERTH_STEP_ENDED, BERTH_N_STEPS},
         BERTH_PHASE_RELEASING},
        {"gone, then released",
         {BERTH_STEP_DISK_MADE, BERTH_STEP_DOMAIN_MADE, BERTH_STEP_VANISHED, BERTH_STEP_DRAINED,
          BERTH_STEP_RELEASED, BERTH_STEP_DESTROYED, BERTH_N_STEPS},
         BERTH_PHASE_CLEANING},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        BerthGuestPhaseOnNode phase = BERTH_PHASE_PREPARING;
        for (gsize j = 0; cases[i].steps[j] != BERTH_N_STEPS; j++)
            phase = berth_guest_phase_next(phase, cases[i].steps[j]);
        if (phase != cases[i].end)
            fail_msg("%s: ends in %s", cases[i].name, berth_guest_phase_name(phase));
    }
}

/* Whatever happens, a release leads to the end, and nothing leads out of it. */
static void guest_phase_every_phase_can_be_released(void **state)
{
    for (int i = 0; i < BERTH_N_PHASES; i++) {
        BerthGuestPhaseOnNode phase = (BerthGuestPhaseOnNode)i;
        static const BerthGuestStep steps[] = {BERTH_STEP_RELEASED, BERTH_STEP_DESTROYED,
                                               BERTH_STEP_CLEANED};
        for (gsize j = 0; j < G_N_ELEMENTS(steps); j++)
            phase = berth_guest_phase_next(phase, steps[j]);
        assert_int_equal(phase, BERTH_PHASE_FORGOTTEN);
    }
    for (int step = 0; step < BERTH_N_STEPS; step++)
        assert_int_equal(berth_guest_phase_next(BERTH_PHASE_FORGOTTEN, (BerthGuestStep)step),
                         BERTH_PHASE_FORGOTTEN);
}

/* One that was seen to end, and leaves all the same, says so again on the node that it goes to. */
static void guest_phase_an_outcome_is_left_by_release_or_departure_only(void **state)
{
    for (int step = 0; step < BERTH_N_STEPS; step++) {
        if (step == BERTH_STEP_RELEASED)
            continue;
        assert_int_equal(berth_guest_phase_next(BERTH_PHASE_ENDED, (BerthGuestStep)step),
                         step == BERTH_STEP_LEFT ? BERTH_PHASE_LEFT : BERTH_PHASE_ENDED);
        assert_int_equal(berth_guest_phase_next(BERTH_PHASE_GONE, (BerthGuestStep)step),
                         BERTH_PHASE_GONE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guest_phase_lives_end_where_they_should),
        cmocka_unit_test(guest_phase_every_phase_can_be_released),
        cmocka_unit_test(guest_phase_an_outcome_is_left_by_release_or_departure_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
