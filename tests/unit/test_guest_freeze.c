/* SPDX-License-Identifier: Apache-2.0 */
/* A guest whose vCPUs are stopped, and let go: by the scheduler, for its end, and across agents. */
#include <config.h>

#include <signal.h>

#include "common/message.h"
#include "nodeagent/guest_private.h"
#include "tests/lib/agent_fixture.h"
#include "tests/lib/assert.h"

typedef struct {
    gboolean is_given;
    int code; /* 0 = yes */
} Answer;

static void on_answer(BerthFault fault, const GError *error, gpointer user_data)
{
    Answer *answer = user_data;
    assert_false(answer->is_given);
    answer->is_given = TRUE;
    answer->code = error == NULL ? 0 : error->code;
}

static int freeze(AgentFixture *fixture, gboolean freezes)
{
    Answer answer = {0};
    berth_guest_freeze(agent_fixture_guest(fixture), freezes, on_answer, &answer);
    run_until(answer.is_given);
    return answer.code;
}

static void freeze_and_thaw_are_libvirts_to_do(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    assert_int_equal(freeze(fixture, TRUE), 0);
    assert_int_equal(fixture->hypervisor->suspends, 1);
    assert_int_equal(freeze(fixture, TRUE), 0); /* the same again */
    guint hellos = fixture->peer->hellos;
    assert_int_equal(freeze(fixture, FALSE), 0);
    assert_int_equal(fixture->hypervisor->resumes, 1);
    run_until(fixture->peer->hellos > hellos); /* with the time that it has missed */
}

static void freeze_that_fails_leaves_it_running(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    fixture->hypervisor->failing_suspends = 1;
    assert_int_equal(freeze(fixture, TRUE), BERTH_ERROR_UNAVAILABLE);
    assert_false(agent_fixture_guest(fixture)->freeze_wanted);
    assert_int_equal(freeze(fixture, TRUE), 0);
    assert_true(agent_fixture_guest(fixture)->is_frozen);
}

static BerthExec *begin_exec(AgentFixture *fixture, GError **error)
{
    char *command[] = {(char *)"true"};
    Berth__ExecRequest request = BERTH__EXEC_REQUEST__INIT;
    request.command = command;
    request.n_command = 1;
    return berth_guest_exec(agent_fixture_guest(fixture), &request, NULL, NULL, error);
}

static void no_command_begins_in_one_that_is_frozen(void **state)
{
    AgentFixture *fixture = *state;
    g_autoptr(GError) frozen = NULL, older = NULL;
    agent_fixture_start_running(fixture);
    assert_int_equal(freeze(fixture, TRUE), 0);
    assert_null(begin_exec(fixture, &frozen));
    assert_berth_error(frozen, BERTH_ERROR_FAILED_PRECONDITION, "is frozen");
    guint hellos = fixture->peer->hellos;
    assert_int_equal(freeze(fixture, FALSE), 0);
    run_until(fixture->peer->hellos > hellos);
    run_until(berth_guest_channel_is_open(agent_fixture_guest(fixture)->channel));
    assert_null(begin_exec(fixture, &older)); /* it is asked, and the fixture's guest has none */
    assert_berth_error(older, BERTH_ERROR_UNSUPPORTED, "release");
}

static void last_wish_counts(void **state)
{
    AgentFixture *fixture = *state;
    Answer first = {0}, second = {0};
    agent_fixture_start_running(fixture);
    berth_guest_freeze(agent_fixture_guest(fixture), TRUE, on_answer, &first);
    berth_guest_freeze(agent_fixture_guest(fixture), FALSE, on_answer, &second);
    assert_true(first.is_given);
    assert_int_equal(first.code, BERTH_ERROR_CANCELLED);
    run_until(second.is_given);
    assert_int_equal(second.code, 0);
    assert_false(agent_fixture_guest(fixture)->is_frozen);
    assert_int_equal(fixture->hypervisor->suspends, 1);
    assert_int_equal(fixture->hypervisor->resumes, 1);
}

static void stop_lets_it_go_to_its_end(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    assert_int_equal(freeze(fixture, TRUE), 0);
    berth_guest_stop(agent_fixture_guest(fixture), 60000);
    run_until(fixture->hypervisor->resumes == 1);
    run_until(fixture->peer->signal == SIGTERM);
    assert_int_equal(freeze(fixture, TRUE), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(fixture->hypervisor->suspends, 1);
}

static void stop_while_it_is_being_frozen_lets_it_go(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    berth_guest_freeze(agent_fixture_guest(fixture), TRUE, on_answer, &answer);
    berth_guest_stop(agent_fixture_guest(fixture), 60000);
    assert_int_equal(answer.code, BERTH_ERROR_CANCELLED);
    run_until(fixture->hypervisor->resumes == 1 && !agent_fixture_guest(fixture)->is_frozen);
}

static void freeze_that_comes_after_a_stop_does_not_hold_it_up(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    assert_int_equal(freeze(fixture, TRUE), 0);
    berth_guest_stop(agent_fixture_guest(fixture), 60000);
    assert_true(agent_fixture_guest(fixture)->is_freezing); /* libvirt is letting it go */
    assert_int_equal(freeze(fixture, TRUE), BERTH_ERROR_NOT_FOUND);
    run_until(!agent_fixture_guest(fixture)->is_freezing);
    assert_false(agent_fixture_guest(fixture)->is_frozen);
    assert_int_equal(fixture->hypervisor->suspends, 1);
}

/* An I/O error that is found while it is frozen is no reason to let it go. */
static void frozen_guest_is_not_resumed_for_an_io_error(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    assert_int_equal(freeze(fixture, TRUE), 0);
    fixture->hypervisor->paused_by_io_error = TRUE;
    guint stats = fixture->hypervisor->stats;
    run_until(fixture->hypervisor->stats > stats + 1);
    assert_int_equal(fixture->hypervisor->resumes, 0);
}

/* It cannot answer: nobody waits for that, and it is told of as what it was when it was frozen. */
static void frozen_guest_is_adopted_as_one_that_runs(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_add_guest(fixture);
    fake_hypervisor_set_frozen(fixture->hypervisor, &agent_fixture_id);
    agent_fixture_start(fixture);
    const BerthGuest *guest = agent_fixture_guest(fixture);
    assert_true(guest->is_frozen);
    assert_false(berth_guest_is_awaited(guest));
    Berth__GuestStatus *status = agent_fixture_status(fixture);
    assert_int_equal(status->phase, BERTH__GUEST_STATUS__PHASE__ACTIVE);
    berth_message_free(&status->base);
    assert_int_equal(freeze(fixture, FALSE), 0);
    assert_int_equal(fixture->hypervisor->resumes, 1);
}

static void guest_without_a_domain_is_not_frozen(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    fake_hypervisor_remove(fixture->hypervisor, &agent_fixture_id);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_ENDED);
    assert_int_equal(freeze(fixture, TRUE), BERTH_ERROR_NOT_FOUND);
    assert_int_equal(fixture->hypervisor->suspends, 0);
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, agent_fixture_setup, agent_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(freeze_and_thaw_are_libvirts_to_do),
        TEST(freeze_that_fails_leaves_it_running),
        TEST(no_command_begins_in_one_that_is_frozen),
        TEST(last_wish_counts),
        TEST(stop_lets_it_go_to_its_end),
        TEST(stop_while_it_is_being_frozen_lets_it_go),
        TEST(freeze_that_comes_after_a_stop_does_not_hold_it_up),
        TEST(frozen_guest_is_not_resumed_for_an_io_error),
        TEST(frozen_guest_is_adopted_as_one_that_runs),
        TEST(guest_without_a_domain_is_not_frozen),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
