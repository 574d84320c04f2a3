/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of a guest that runs: of a libvirt that takes its time, and of guests that end meanwhile. */
#include <config.h>

#include "common/message.h"
#include "nodeagent/checkpoint_record.h"
#include "nodeagent/guest_private.h"
#include "tests/lib/agent_fixture.h"
#include "tests/lib/assert.h"
#include "tests/lib/fake_checkpoints.h"

#include <signal.h>

/* For what must not come. */
#define NOTHING_MSEC 200

typedef struct {
    gboolean is_given;
    int code; /* 0 = yes */
    guint64 pause_usec, still_usec;
} Answer;

static int setup(void **state)
{
    fake_checkpoints_reset();
    return agent_fixture_setup(state);
}

static void on_answer(const Berth__CheckpointGuestReply *reply, const GError *error,
                      gpointer user_data)
{
    Answer *answer = user_data;
    assert_false(answer->is_given);
    answer->is_given = TRUE;
    answer->code = error == NULL ? 0 : error->code;
    answer->pause_usec = error == NULL ? reply->pause_usec : 0;
    answer->still_usec = error == NULL ? reply->still_usec : 0;
}

static void ask_with(AgentFixture *fixture, gboolean stops, gboolean frozen, guint signal,
                     guint signal_sec, Answer *answer)
{
    Berth__CheckpointGuestRequest request = BERTH__CHECKPOINT_GUEST_REQUEST__INIT;
    request.signal = signal;
    request.signal_sec = signal_sec;
    request.disk_id = (char *)"disk-1-0-0-1";
    request.checkpoint_id = (char *)"1-0-1";
    request.space_bytes = 1 << 20;
    request.stop = stops;
    request.frozen = frozen;
    berth_guest_checkpoint(agent_fixture_guest(fixture), &request, on_answer, answer);
}

static void ask(AgentFixture *fixture, gboolean stops, Answer *answer)
{
    ask_with(fixture, stops, FALSE, 0, 0, answer);
}

static void ask_signalling(AgentFixture *fixture, guint signal, guint signal_sec, Answer *answer)
{
    ask_with(fixture, FALSE, FALSE, signal, signal_sec, answer);
}

/* It is being ended, and its domain is gone before libvirt says anything of it. */
static void end_guest(AgentFixture *fixture)
{
    berth_guest_stop(agent_fixture_guest(fixture), 60000);
    fake_hypervisor_remove(fixture->hypervisor, &agent_fixture_id);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_ENDED);
}

/* The worker has come to its end, and libvirt has still to answer: nobody is told, and nothing is given back. */
static void assert_libvirt_is_waited_for(AgentFixture *fixture, Answer *answer)
{
    run_until(g_atomic_int_get(&fake_checkpoints.freed) == 1);
    agent_fixture_pass(NOTHING_MSEC);
    assert_false(answer->is_given);
    assert_non_null(agent_fixture_guest(fixture)->checkpoint);
    fake_hypervisor_be_quick(fixture->hypervisor);
    run_until(answer->is_given);
    assert_int_equal(answer->code, BERTH_ERROR_CANCELLED);
    assert_null(agent_fixture_guest(fixture)->checkpoint);
    assert_int_equal(fixture->hypervisor->saves, 0);
}

static void checkpoint_lets_the_guest_run_on(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    ask(fixture, FALSE, &answer);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    assert_int_equal(fake_checkpoints.committed, 1);
    assert_int_equal(fixture->hypervisor->suspends, 1);
    assert_int_equal(fixture->hypervisor->resumes, 1);
    assert_false(agent_fixture_guest(fixture)->is_frozen);
}

/* It stands still the shorter for it. */
static void guest_in_slack_is_saved_at_the_weight_of_others(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_in_slack(fixture);
    ask(fixture, FALSE, &answer);
    run_until(fixture->hypervisor->saves == 1);
    assert_int_equal(fixture->hypervisor->holds, 1);
    assert_true(fixture->hypervisor->share.is_held_back);
    assert_false(fixture->hypervisor->share.is_opportunistic);
    run_until(answer.is_given && fixture->hypervisor->lets_go == 1);
    assert_int_equal(answer.code, 0);
    assert_true(fixture->hypervisor->share.is_opportunistic);
}

/* An hour in which nothing is asked of libvirt, but for the end of the guest. */
static void command_is_signalled_and_waited_for(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    ask_signalling(fixture, SIGUSR1, 3600, &answer);
    run_until(fixture->peer->signal == SIGUSR1);
    assert_true(fixture->peer->signal_is_for_command);
    agent_fixture_pass(NOTHING_MSEC);
    assert_int_equal(fixture->hypervisor->suspends, 0);
    assert_false(answer.is_given);
    end_guest(fixture);
    run_until(answer.is_given);
    assert_int_equal(answer.code, BERTH_ERROR_CANCELLED);
    assert_int_equal(fixture->hypervisor->saves, 0);
}

static void command_that_was_signalled_is_checkpointed(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    ask_signalling(fixture, SIGUSR1, 0, &answer);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    run_until(fixture->peer->signal == SIGUSR1);
}

static void guest_that_ends_while_it_is_measured_has_no_checkpoint(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    fixture->hypervisor->is_slow = TRUE;
    ask(fixture, FALSE, &answer);
    run_until(fixture->hypervisor->domain_stats == 1);
    end_guest(fixture);
    assert_libvirt_is_waited_for(fixture, &answer);
}

static void guest_that_ends_while_it_is_stopped_has_no_checkpoint(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    fixture->hypervisor->is_slow = TRUE;
    ask(fixture, FALSE, &answer);
    run_until(fixture->hypervisor->suspends == 1 ||
              (fake_hypervisor_answer(fixture->hypervisor), FALSE));
    end_guest(fixture);
    assert_libvirt_is_waited_for(fixture, &answer);
}

/* It writes too much, and is being stopped for the rest, when its save fails: libvirt might let it go first, and stop it
 * after that. */
static void guest_that_is_being_stopped_for_the_rest_is_let_go_after_that(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    fixture->agent->context.use_kvm = TRUE;
    fixture->hypervisor->holds_saves = TRUE;
    fixture->hypervisor->migration =
        (BerthMigrationState){.copied_bytes = 1 << 20, .left_bytes = 1 << 20};
    ask(fixture, FALSE, &answer);
    run_until(fixture->hypervisor->suspends == 1);
    fixture->hypervisor->is_slow = TRUE;
    fake_hypervisor_fail_save(fixture->hypervisor);
    run_until(g_atomic_int_get(&fake_checkpoints.freed) == 1);
    agent_fixture_pass(NOTHING_MSEC);
    assert_int_equal(fixture->hypervisor->resumes, 0);
    assert_false(answer.is_given);
    fake_hypervisor_be_quick(fixture->hypervisor);
    run_until(answer.is_given);
    assert_int_equal(answer.code, BERTH_ERROR_INTERNAL);
    assert_int_equal(fixture->hypervisor->resumes, 1);
}

/* Until then it cannot be saved: an agent before may have begun to move it. */
static void await_adopted(AgentFixture *fixture)
{
    run_until(berth_storage_lane_error(fixture->agent->lane) == NULL &&
              !agent_fixture_guest(fixture)->may_be_moving);
}

/* An agent before this one was killed while it stood still for that, and Ceph has not forgotten that one. */
static void
guest_that_stands_still_for_a_checkpoint_goes_on_when_it_is_asked_for_again(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    fake_checkpoints.create_fails = "it is being written";
    fake_checkpoints.create_code = BERTH_ERROR_FAILED_PRECONDITION;
    agent_fixture_add_guest(fixture);
    fake_hypervisor_set_frozen(fixture->hypervisor, &agent_fixture_id);
    agent_fixture_start(fixture);
    await_adopted(fixture);
    assert_true(agent_fixture_guest(fixture)->is_frozen);
    ask(fixture, FALSE, &answer);
    run_until(answer.is_given);
    assert_int_equal(answer.code, BERTH_ERROR_UNAVAILABLE);
    run_until(!agent_fixture_guest(fixture)->is_frozen);
    assert_int_equal(fixture->hypervisor->resumes, 1);
}

/* It has stood still since an agent before saved it. */
static void adopt_saved(AgentFixture *fixture)
{
    agent_fixture_add_guest(fixture);
    fake_hypervisor_set_saved(fixture->hypervisor, &agent_fixture_id);
    agent_fixture_start(fixture);
    await_adopted(fixture);
}

/* It runs for a moment first, and stands still on after that. */
static void frozen_guest_that_an_agent_before_may_have_saved_is_saved(void **state)
{
    AgentFixture *fixture = *state;
    Answer first = {0}, second = {0};
    adopt_saved(fixture);
    ask_with(fixture, FALSE, TRUE, 0, 0, &first);
    run_until(first.is_given);
    assert_int_equal(first.code, 0);
    assert_true(agent_fixture_guest(fixture)->is_frozen);
    assert_true(fake_hypervisor_is_frozen(fixture->hypervisor, &agent_fixture_id));
    ask_with(fixture, FALSE, TRUE, 0, 0, &second);
    run_until(second.is_given);
    assert_int_equal(second.code, 0);
    assert_true(fake_hypervisor_is_frozen(fixture->hypervisor, &agent_fixture_id));
}

/* What libvirt still moves for an agent before is not aborted, and none of its memory is written twice. */
static void guest_that_may_be_moving_is_not_saved(void **state)
{
    AgentFixture *fixture = *state;
    Answer refused = {0}, answer = {0};
    agent_fixture_add_guest(fixture);
    fixture->hypervisor->failing_looks = 1;
    agent_fixture_start(fixture);
    run_until(berth_storage_lane_error(fixture->agent->lane) == NULL);
    ask(fixture, FALSE, &refused);
    run_until(refused.is_given);
    assert_int_equal(refused.code, BERTH_ERROR_UNAVAILABLE);
    assert_int_equal(fixture->hypervisor->suspends, 0);
    run_until(!agent_fixture_guest(fixture)->may_be_moving);
    ask(fixture, FALSE, &answer);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
}

/* Whatever is looked at while it stands still for that. */
static void guest_that_is_being_saved_is_not_let_go(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    ask(fixture, FALSE, &answer);
    run_until(agent_fixture_guest(fixture)->is_frozen);
    berth_guest_freeze_go_on(agent_fixture_guest(fixture));
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    assert_int_equal(fixture->hypervisor->resumes, 1);
}

static void guest_that_was_saved_to_be_stopped_is_saved_by_the_next_agent(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    adopt_saved(fixture);
    ask(fixture, TRUE, &answer);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    assert_int_equal(fake_checkpoints.committed, 1);
    assert_true(fake_hypervisor_is_frozen(fixture->hypervisor, &agent_fixture_id));
}

/* QEMU, which does not write, does not see that nobody reads any more; libvirt is told until it hears. */
static void save_at_which_nothing_happens_is_called_off(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    fixture->hypervisor->holds_saves = TRUE;
    fixture->hypervisor->deaf_steers = 1;
    g_atomic_int_set(&fake_checkpoints.is_impatient, TRUE);
    ask(fixture, FALSE, &answer);
    run_until(answer.is_given);
    assert_int_equal(answer.code, BERTH_ERROR_UNAVAILABLE);
    assert_int_equal(fixture->hypervisor->steers, 2);
    assert_false(agent_fixture_guest(fixture)->is_frozen);
    assert_null(agent_fixture_guest(fixture)->checkpoint);
}

static void guest_that_is_to_end_while_it_is_saved_is_let_go_by_libvirt(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    fixture->hypervisor->holds_saves = TRUE;
    ask(fixture, FALSE, &answer);
    run_until(fixture->hypervisor->saves == 1);
    berth_guest_stop(agent_fixture_guest(fixture), 60000);
    run_until(answer.is_given);
    assert_int_equal(fixture->hypervisor->steers, 1);
    run_until(fixture->peer->signal == SIGTERM);
}

/* What libvirt has said of the one before when the next is under way is not said of that. */
static void look_that_comes_late_is_of_no_other_checkpoint(void **state)
{
    AgentFixture *fixture = *state;
    Answer first = {0}, second = {0};
    agent_fixture_start_running(fixture);
    fixture->agent->context.use_kvm = TRUE;
    fixture->hypervisor->holds_saves = TRUE;
    fixture->hypervisor->holds_looks = TRUE;
    fixture->hypervisor->migration =
        (BerthMigrationState){.copied_bytes = 1 << 20, .left_bytes = 1 << 20};
    ask(fixture, FALSE, &first);
    run_until(fixture->hypervisor->held_look != NULL);
    fake_hypervisor_fail_save(fixture->hypervisor);
    run_until(first.is_given);
    fixture->hypervisor->holds_looks = FALSE;
    fixture->hypervisor->migration = (BerthMigrationState){.copied_bytes = 0};
    ask(fixture, FALSE, &second);
    run_until(fixture->hypervisor->saves == 2);
    fake_hypervisor_let_look(fixture->hypervisor); /* it writes too much, says the one before */
    agent_fixture_pass(NOTHING_MSEC);
    assert_int_equal(fixture->hypervisor->suspends, 0);
    fake_hypervisor_fail_save(fixture->hypervisor);
    run_until(second.is_given);
}

static void set_committed_before(AgentFixture *fixture)
{
    Berth__CheckpointGuestReply taken = BERTH__CHECKPOINT_GUEST_REPLY__INIT;
    Berth__CheckpointRecord record = BERTH__CHECKPOINT_RECORD__INIT;
    taken.pause_usec = 77;
    record.version = BERTH_CHECKPOINT_VERSION;
    record.taken = &taken;
    record.domain = (char *)"berth-1-0-0-1";
    record.domain_xml = (char *)"<domain/>";
    fake_checkpoints.record = berth_message_pack(&record.base);
    fake_checkpoints.create_fails = "it is there";
    fake_checkpoints.create_code = BERTH_ERROR_ALREADY_EXISTS;
}

/* That it was committed could not be told, and it has run on for as long as storage did not answer. */
static void guest_that_has_run_since_is_saved_anew_if_it_is_to_stand_still(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    set_committed_before(fixture);
    ask(fixture, TRUE, &answer);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    assert_int_equal(fake_checkpoints.removed, 1);
    assert_int_equal(fake_checkpoints.committed, 1);
    assert_true(agent_fixture_guest(fixture)->is_frozen);
}

static void on_frozen(BerthFault fault, const GError *error, gpointer user_data)
{
    *(gboolean *)user_data = TRUE;
}

static void checkpoint_that_was_committed_is_answered_with_if_nothing_is_lost_by_it(void **state)
{
    AgentFixture *fixture = *state;
    Answer live = {0}, stops = {0};
    gboolean is_frozen = FALSE;
    agent_fixture_start_running(fixture);
    set_committed_before(fixture);
    ask(fixture, FALSE, &live);
    run_until(live.is_given);
    assert_int_equal(live.code, 0);
    assert_int_equal(live.pause_usec, 77);
    assert_int_equal(live.still_usec, 0);
    berth_guest_freeze(agent_fixture_guest(fixture), TRUE, on_frozen, &is_frozen);
    run_until(is_frozen);
    ask(fixture, TRUE, &stops);
    run_until(stops.is_given);
    assert_int_equal(stops.code, 0);
    assert_int_equal(stops.pause_usec, 77);
    assert_true(stops.still_usec > 0);
    assert_int_equal(fake_checkpoints.removed, 0);
    assert_int_equal(fixture->hypervisor->saves, 0);
}

/* An agent that ends waits for no libvirt that it will not ask any more. */
static void agent_that_ends_before_the_worker_is_heard_asks_nobody(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    ask(fixture, FALSE, &answer);
    while (g_atomic_int_get(&fake_checkpoints.made) == 0)
        g_thread_yield();
    g_clear_pointer(&fixture->agent, berth_agent_free);
    assert_true(answer.is_given);
    assert_int_equal(answer.code, BERTH_ERROR_UNAVAILABLE);
    assert_int_equal(fake_checkpoints.freed, 1);
}

static void agent_that_ends_while_libvirt_saves_has_it_let_go(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    fixture->hypervisor->holds_saves = TRUE;
    ask(fixture, FALSE, &answer);
    run_until(fixture->hypervisor->saves == 1);
    g_clear_pointer(&fixture->agent, berth_agent_free);
    assert_true(answer.is_given);
    assert_int_equal(answer.code, BERTH_ERROR_UNAVAILABLE);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, agent_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(checkpoint_lets_the_guest_run_on),
        TEST(guest_in_slack_is_saved_at_the_weight_of_others),
        TEST(command_is_signalled_and_waited_for),
        TEST(command_that_was_signalled_is_checkpointed),
        TEST(guest_that_ends_while_it_is_measured_has_no_checkpoint),
        TEST(guest_that_ends_while_it_is_stopped_has_no_checkpoint),
        TEST(guest_that_is_being_stopped_for_the_rest_is_let_go_after_that),
        TEST(guest_that_stands_still_for_a_checkpoint_goes_on_when_it_is_asked_for_again),
        TEST(frozen_guest_that_an_agent_before_may_have_saved_is_saved),
        TEST(guest_that_may_be_moving_is_not_saved),
        TEST(guest_that_is_being_saved_is_not_let_go),
        TEST(guest_that_was_saved_to_be_stopped_is_saved_by_the_next_agent),
        TEST(save_at_which_nothing_happens_is_called_off),
        TEST(guest_that_is_to_end_while_it_is_saved_is_let_go_by_libvirt),
        TEST(look_that_comes_late_is_of_no_other_checkpoint),
        TEST(guest_that_has_run_since_is_saved_anew_if_it_is_to_stand_still),
        TEST(checkpoint_that_was_committed_is_answered_with_if_nothing_is_lost_by_it),
        TEST(agent_that_ends_before_the_worker_is_heard_asks_nobody),
        TEST(agent_that_ends_while_libvirt_saves_has_it_let_go),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
