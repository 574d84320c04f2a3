/* SPDX-License-Identifier: Apache-2.0 */
/* How a job's end is told. */
#include "scheduler/sim/state.h"
#include "tests/lib/assert.h"

static void sim_explain_ending_of_each_kind_has_its_reason(void **state)
{
    static const struct {
        BerthJobState state;
        BerthReason reason;
        const char *expected;
    } cases[] = {
        {BERTH_JOB_COMPLETED, BERTH_REASON_NONE, "completed"},
        {BERTH_JOB_TIMEOUT, BERTH_REASON_TIME_LIMIT, "killed: its time limit"},
        {BERTH_JOB_TIMEOUT, BERTH_REASON_NONE, "killed: its time limit"},
        {BERTH_JOB_OUT_OF_MEMORY, BERTH_REASON_NONE, "killed: its memory was used up"},
        {BERTH_JOB_FAILED, BERTH_REASON_SIGNAL, "killed: its command was ended by a signal"},
        {BERTH_JOB_NODE_FAIL, BERTH_REASON_NODE_LOST, "ended: its node was lost"},
        {BERTH_JOB_NODE_FAIL, BERTH_REASON_NONE, "ended: its node was lost"},
        {BERTH_JOB_FAILED, BERTH_REASON_START_FAILED, "ended: the start failed"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        BerthCoreTask task = {.state = cases[i].state, .reason = cases[i].reason};
        g_autofree char *text = sim_explain_ending(&task);
        assert_string_equal(text, cases[i].expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sim_explain_ending_of_each_kind_has_its_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
