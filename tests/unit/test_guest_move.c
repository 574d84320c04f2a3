/* SPDX-License-Identifier: Apache-2.0 */
/* A guest that leaves its node for another one, stays after all, or comes from there. */
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

static const BerthMigrationTarget target = {.libvirt_uri = (char *)"qemu+tls://n2/system",
                                            .stream_uri = (char *)"tcp://n2",
                                            .channel_path = (char *)"/run/n2.sock",
                                            .console_path = (char *)"/run/console",
                                            .kernel = (char *)"/vmlinux",
                                            .initramfs = (char *)"/initramfs"};

static void begin_to_leave(AgentFixture *fixture, Answer *answer)
{
    berth_guest_leave(agent_fixture_guest(fixture), &target, FALSE, FALSE, on_answer, answer);
}

static void begin_to_hurry(AgentFixture *fixture, Answer *answer)
{
    berth_guest_leave(agent_fixture_guest(fixture), &target, FALSE, TRUE, on_answer, answer);
}

/* It is told of as one that has left, with what it had used, until it is released; its disk is not this node's to
 * remove. */
static void await_left(AgentFixture *fixture, gboolean was_sent)
{
    Answer answer = {0};
    run_until(agent_fixture_phase(fixture) == BERTH_PHASE_LEFT);
    BerthGuest *guest = agent_fixture_guest(fixture);
    Berth__GuestStatus *status = agent_fixture_status(fixture);
    assert_int_equal(status->phase, BERTH__GUEST_STATUS__PHASE__LEFT);
    assert_int_equal(status->usage->cpu_usec, guest->usage.cpu_usec);
    assert_int_equal(strstr(status->reason_text, "not by Berth") == NULL, was_sent);
    berth_message_free(&status->base);
    assert_true(berth_guest_is_to_tell(guest));
    assert_false(berth_guest_is_ours(guest));
    berth_guest_release(guest, "disk-1", on_answer, &answer);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    assert_int_equal(fixture->hypervisor->destroys, 0);
    run_until(agent_fixture_guest(fixture) == NULL);
}

/* Nobody asked the agent: virsh migrate, by hand. */
static void guest_that_is_moved_by_hand_is_told_of(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    fake_hypervisor_remove(fixture->hypervisor, &agent_fixture_id);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_LEFT);
    await_left(fixture, FALSE);
}

static int leave(AgentFixture *fixture)
{
    Answer answer = {0};
    begin_to_leave(fixture, &answer);
    run_until(answer.is_given);
    return answer.code;
}

/* It is emulated: it stands still while it is copied. Nothing of it stays, and nobody is told that it is gone. */
static void guest_that_leaves_is_forgotten(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    assert_int_equal(leave(fixture), 0);
    assert_int_equal(fixture->hypervisor->suspends, 1);
    assert_int_equal(fixture->hypervisor->moves, 1);
    assert_int_equal(fixture->hypervisor->resumes, 0);
    assert_int_equal(fixture->hypervisor->destroys, 0);
    await_left(fixture, TRUE);
}

static void guest_that_cannot_leave_runs_on(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    guint hellos = fixture->peer->hellos;
    fixture->hypervisor->stays = "the cable is out";
    assert_int_equal(leave(fixture), BERTH_ERROR_INTERNAL);
    assert_int_equal(fixture->hypervisor->resumes, 1);
    assert_int_equal(agent_fixture_phase(fixture), BERTH_PHASE_RUNNING);
    assert_true(berth_guest_is_ours(agent_fixture_guest(fixture)));
    run_until(fixture->peer->hellos > hellos); /* with the time that it has missed */
    fixture->hypervisor->stays = NULL;
    assert_int_equal(leave(fixture), 0); /* the next time */
}

/* QEMU would not move it as it is: it runs for a moment. */
static void frozen_guest_that_an_agent_before_may_have_saved_leaves(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_add_guest(fixture);
    fake_hypervisor_set_saved(fixture->hypervisor, &agent_fixture_id);
    agent_fixture_start(fixture);
    run_until(!agent_fixture_guest(fixture)->may_be_moving);
    Answer answer = {0};
    berth_guest_leave(agent_fixture_guest(fixture), &target, TRUE, FALSE, on_answer, &answer);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    await_left(fixture, TRUE);
}

static void guest_that_cannot_be_held_runs_on(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    fixture->hypervisor->failing_suspends = 1;
    assert_int_equal(leave(fixture), BERTH_ERROR_UNAVAILABLE);
    assert_int_equal(fixture->hypervisor->moves, 0);
    assert_int_equal(fixture->hypervisor->resumes, 1); /* it may have taken effect all the same */
}

static void move_that_is_called_off_leaves_it_running(void **state)
{
    AgentFixture *fixture = *state;
    Answer leaves = {0}, stays = {0};
    agent_fixture_start_running(fixture);
    fixture->hypervisor->holds_moves = TRUE;
    begin_to_leave(fixture, &leaves);
    run_until(fixture->hypervisor->moves == 1);
    berth_guest_leave_not(agent_fixture_guest(fixture), FALSE, on_answer, &stays);
    run_until(leaves.is_given && stays.is_given);
    assert_int_equal(leaves.code, BERTH_ERROR_CANCELLED);
    assert_int_equal(stays.code, BERTH_ERROR_CANCELLED);
    assert_int_equal(fixture->hypervisor->resumes, 1);
    assert_false(agent_fixture_guest(fixture)->is_frozen);
}

/* --- hurrying ------------------------------------------------------------------------------- */

static void assert_has_share(AgentFixture *fixture, gboolean is_held_back)
{
    assert_int_equal(fixture->hypervisor->share.is_held_back, is_held_back);
    assert_true(fixture->hypervisor->share.is_opportunistic);
    assert_int_equal(fixture->hypervisor->share.vcpus, agent_fixture_guest(fixture)->limits.vcpus);
}

/* However many vCPUs it has. */
static void assert_hurries(const AgentFixture *fixture)
{
    assert_true(fixture->hypervisor->share.is_held_back);
    assert_false(fixture->hypervisor->share.is_opportunistic);
    assert_int_equal(fixture->hypervisor->share.vcpus, 1);
}

static void call_off(AgentFixture *fixture, Answer *answer)
{
    berth_guest_stay(agent_fixture_guest(fixture));
    run_until(answer->is_given);
    assert_int_equal(answer->code, BERTH_ERROR_CANCELLED);
}

/* The threads that copy it have its CPU weight, which is next to nothing on a busy node. */
static void guest_in_slack_is_copied_at_the_weight_of_others(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_in_slack(fixture);
    fixture->hypervisor->holds_moves = TRUE;
    begin_to_leave(fixture, &answer);
    run_until(fixture->hypervisor->moves == 1);
    assert_int_equal(fixture->hypervisor->holds, 1);
    assert_hurries(fixture);
    call_off(fixture, &answer);
    run_until(fixture->hypervisor->lets_go == 1);
    assert_has_share(fixture, FALSE);
}

static void guest_with_a_reservation_has_its_weight_anyway(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    begin_to_hurry(fixture, &answer);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    assert_int_equal(fixture->hypervisor->holds, 0);
}

/* It runs while it is copied: that it hardly does so is only for a node that needs what it has. */
static void guest_that_runs_meanwhile_hurries_if_its_node_needs_it(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0}, again = {0};
    agent_fixture_start_in_slack(fixture);
    fixture->agent->context.use_kvm = TRUE;
    fixture->hypervisor->holds_moves = TRUE;
    begin_to_leave(fixture, &answer);
    run_until(fixture->hypervisor->moves == 1);
    assert_int_equal(fixture->hypervisor->holds, 0);
    call_off(fixture, &answer);
    begin_to_hurry(fixture, &again);
    run_until(fixture->hypervisor->moves == 2);
    assert_int_equal(fixture->hypervisor->holds, 1);
    assert_hurries(fixture);
    fixture->hypervisor->holds_moves = FALSE;
    fake_hypervisor_let_move(fixture->hypervisor);
    run_until(again.is_given);
    assert_int_equal(again.code, 0);
    assert_int_equal(fixture->hypervisor->lets_go, 0); /* there is nobody any more to be let go */
}

/* Its node was short of memory before, and still is. */
static void guest_that_was_held_back_is_so_after_it_has_stayed(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_in_slack(fixture);
    BerthGuest *guest = agent_fixture_guest(fixture);
    guest->hold_wanted = TRUE;
    guest->held_usec = 1;
    fixture->hypervisor->holds_moves = TRUE;
    begin_to_hurry(fixture, &answer);
    run_until(fixture->hypervisor->moves == 1);
    assert_hurries(fixture);
    call_off(fixture, &answer);
    run_until(fixture->hypervisor->holds == 2);
    assert_has_share(fixture, TRUE);
    assert_int_equal(fixture->hypervisor->lets_go, 0);
    assert_int_equal(guest->held_usec, 1);
}

static void guest_that_cannot_hurry_leaves_all_the_same(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_in_slack(fixture);
    fixture->hypervisor->failing_holds = 1;
    begin_to_hurry(fixture, &answer);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    assert_int_equal(fixture->hypervisor->moves, 1);
    assert_int_equal(fixture->hypervisor->failing_holds, 0);
}

/* libvirt is still at what the node has asked for. */
static void guest_hurries_after_what_is_being_asked(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_in_slack(fixture);
    BerthGuest *guest = agent_fixture_guest(fixture);
    fixture->hypervisor->holds_moves = TRUE;
    fixture->hypervisor->failing_holds = 1;
    berth_guest_hold_back(guest, TRUE);
    begin_to_hurry(fixture, &answer);
    run_until(fixture->hypervisor->moves == 1);
    assert_int_equal(fixture->hypervisor->failing_holds, 0);
    assert_int_equal(fixture->hypervisor->holds, 1);
    assert_hurries(fixture);
    call_off(fixture, &answer);
}

/* libvirt would set the weight that it has as it is, and would wait for the end of the move. */
static void guest_that_is_on_its_way_is_resized_when_it_has_stayed(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_in_slack(fixture);
    BerthGuest *guest = agent_fixture_guest(fixture);
    fixture->hypervisor->holds_moves = TRUE;
    fixture->hypervisor->most_mib = guest->limits.memory_mib / 2;
    berth_guest_domain_resized(guest); /* its guest takes the rest later */
    run_until(fixture->hypervisor->resizes == 1 && !guest->is_size_asked);
    begin_to_hurry(fixture, &answer);
    run_until(fixture->hypervisor->moves == 1);
    berth_guest_note_memory(guest, guest->limits.memory_mib, guest->limits.memory_mib);
    agent_fixture_pass(50);
    assert_int_equal(fixture->hypervisor->resizes, 1);
    call_off(fixture, &answer);
    run_until(fixture->hypervisor->resizes > 1);
}

/* An agent before this one may have begun to move it: libvirt would answer nothing else before the end of that. */
static void guest_that_may_be_moving_is_held_back_when_that_is_known(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_in_slack(fixture);
    BerthGuest *guest = agent_fixture_guest(fixture);
    guest->may_be_moving = TRUE;
    berth_guest_hold_back(guest, TRUE);
    agent_fixture_pass(50);
    assert_int_equal(fixture->hypervisor->holds, 0);
    berth_guest_follow_move(guest);
    run_until(berth_guest_held_usec(guest) != 0);
    assert_int_equal(fixture->hypervisor->holds, 1);
}

static guint n_told;

static void count_told(BerthGuest *guest, gpointer user_data)
{
    n_told++;
}

/* How far it is is told with its status, soon, and no longer when it is over. */
static void progress_is_told(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    fixture->agent->context.output = count_told;
    n_told = 0;
    fixture->hypervisor->holds_moves = TRUE;
    fixture->hypervisor->migration =
        (BerthMigrationState){.left_bytes = 7 << 20, .bytes_per_sec = 1 << 20, .downtime_msec = 30};
    begin_to_leave(fixture, &answer);
    run_until(agent_fixture_guest(fixture)->migration.left_bytes == 7 << 20);
    assert_true(n_told > 0);
    Berth__GuestStatus *status = agent_fixture_status(fixture);
    assert_non_null(status->migration);
    assert_int_equal(status->migration->memory_left_bytes, 7 << 20);
    assert_int_equal(status->migration->downtime_msec, 30);
    berth_message_free(&status->base);
    berth_guest_stay(agent_fixture_guest(fixture));
    run_until(answer.is_given);
    status = agent_fixture_status(fixture);
    assert_null(status->migration);
    berth_message_free(&status->base);
}

static void stop_calls_a_move_off(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    fixture->hypervisor->holds_moves = TRUE;
    begin_to_leave(fixture, &answer);
    run_until(fixture->hypervisor->moves == 1);
    berth_guest_stop(agent_fixture_guest(fixture), 60000);
    run_until(answer.is_given);
    assert_int_equal(answer.code, BERTH_ERROR_CANCELLED);
    run_until(fixture->peer->signal == SIGTERM);
    assert_int_equal(fixture->hypervisor->resumes, 1);
    assert_int_equal(leave(fixture), BERTH_ERROR_NOT_FOUND);
}

/* Who moves it knows whether it came: libvirt was away when it left. */
static void guest_that_is_missing_while_it_moves_is_not_gone(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    fixture->hypervisor->holds_moves = TRUE;
    begin_to_leave(fixture, &answer);
    run_until(fixture->hypervisor->moves == 1);
    fake_hypervisor_lose(fixture->hypervisor);
    fake_hypervisor_remove(fixture->hypervisor, &agent_fixture_id);
    fake_hypervisor_connect(fixture->hypervisor);
    run_until(berth_guest_has_left(agent_fixture_guest(fixture)));
    fixture->hypervisor->stays = "lost libvirt";
    fake_hypervisor_let_move(fixture->hypervisor);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    await_left(fixture, TRUE);
}

/* What an agent before us has begun comes to its end before libvirt does what it is asked now. */
static void guest_that_leaves_for_an_agent_before_us_has_left(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    begin_to_leave(fixture, &answer);
    fake_hypervisor_remove(fixture->hypervisor, &agent_fixture_id);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_LEFT);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    assert_int_equal(fixture->hypervisor->moves, 0);
    assert_int_equal(fixture->hypervisor->resumes, 0);
}

static void guest_that_libvirt_does_not_know_any_more_is_asked_for_again(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_start_running(fixture);
    fixture->hypervisor->failing_suspends = 1;
    fixture->hypervisor->knows_no_suspended = TRUE;
    begin_to_leave(fixture, &answer);
    fake_hypervisor_remove(fixture->hypervisor, &agent_fixture_id);
    run_until(answer.is_given);
    assert_int_equal(answer.code, BERTH_ERROR_UNAVAILABLE);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_LEFT);
    await_left(fixture, FALSE);
}

/* An agent before us was moving it, and it stands still for that: nobody has frozen it. */
static void guest_that_an_agent_before_us_held_goes_on(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_add_guest(fixture);
    fake_hypervisor_set_frozen(fixture->hypervisor, &agent_fixture_id);
    agent_fixture_start(fixture);
    berth_guest_leave_not(agent_fixture_guest(fixture), FALSE, on_answer, &answer);
    run_until(answer.is_given);
    assert_int_equal(answer.code, BERTH_ERROR_CANCELLED);
    assert_int_equal(fixture->hypervisor->resumes, 1);
}

/* --- whether it stays ------------------------------------------------------------------------ */

static int stay(AgentFixture *fixture, gboolean frozen)
{
    Answer answer = {0};
    berth_guest_leave_not(agent_fixture_guest(fixture), frozen, on_answer, &answer);
    run_until(answer.is_given);
    return answer.code;
}

/* An agent before us has begun to move it, with KVM: it runs meanwhile. */
static void guest_stays_only_when_libvirt_has_let_go_of_it(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    fixture->hypervisor->busy_looks = 3;
    assert_int_equal(stay(fixture, FALSE), BERTH_ERROR_CANCELLED);
    assert_int_equal(fixture->hypervisor->stay_looks, 4);
    assert_int_equal(fixture->hypervisor->resumes, 1);
    assert_int_equal(stay(fixture, TRUE), BERTH_ERROR_CANCELLED);
    assert_int_equal(fixture->hypervisor->suspends, 1);
    assert_true(agent_fixture_guest(fixture)->is_frozen);
}

static void guest_that_is_to_stay_and_is_not_there_has_left(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    fake_hypervisor_remove(fixture->hypervisor, &agent_fixture_id);
    assert_int_equal(stay(fixture, FALSE), 0);
    await_left(fixture, TRUE);
}

static void nobody_knows_whether_it_stays_while_libvirt_is_away(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    fake_hypervisor_lose(fixture->hypervisor);
    assert_int_equal(stay(fixture, FALSE), BERTH_ERROR_UNAVAILABLE);
    assert_int_equal(fixture->hypervisor->resumes, 0);
    fake_hypervisor_connect(fixture->hypervisor);
    assert_int_equal(stay(fixture, FALSE), BERTH_ERROR_CANCELLED);
    assert_int_equal(fixture->hypervisor->resumes, 1);
}

/* It runs, with KVM, and is on its way. */
static void begin_to_move(AgentFixture *fixture, Answer *answer)
{
    agent_fixture_start_running(fixture);
    fixture->agent->context.use_kvm = TRUE;
    fixture->hypervisor->holds_moves = TRUE;
    begin_to_leave(fixture, answer);
    run_until(fixture->hypervisor->moves == 1);
}

/* Who waits for its move is told that nobody knows. */
static void lose_in_the_midst(AgentFixture *fixture, const Answer *answer)
{
    fake_hypervisor_lose(fixture->hypervisor);
    fixture->hypervisor->stays = "lost libvirt";
    fake_hypervisor_let_move(fixture->hypervisor);
    run_until(answer->is_given);
    assert_int_equal(answer->code, BERTH_ERROR_UNAVAILABLE);
    assert_int_equal(agent_fixture_guest(fixture)->migration_usec, 0);
}

/* libvirtd on its return ends the domain, as it was on its last step. */
static void guest_that_is_missing_after_its_last_step_has_left(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    begin_to_move(fixture, &answer);
    lose_in_the_midst(fixture, &answer);
    fake_hypervisor_remove(fixture->hypervisor, &agent_fixture_id);
    fake_hypervisor_connect(fixture->hypervisor);
    await_left(fixture, TRUE);
    assert_int_equal(fixture->hypervisor->destroys, 0);
}

/* libvirtd on its return leaves the domain as it was between the last steps: standing still. */
static void guest_that_its_libvirt_has_left_standing_goes_on(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    begin_to_move(fixture, &answer);
    lose_in_the_midst(fixture, &answer);
    assert_int_equal(fixture->hypervisor->resumes, 0);
    fake_hypervisor_connect(fixture->hypervisor);
    run_until(fixture->hypervisor->resumes == 1);
    run_until(!berth_guest_is_leaving(agent_fixture_guest(fixture)));
    assert_int_equal(agent_fixture_phase(fixture), BERTH_PHASE_RUNNING);
}

/* Its QEMU fails here when it has all been copied, perhaps: who takes it there sees it. */
static void guest_whose_qemu_fails_on_its_way_may_have_left(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    begin_to_move(fixture, &answer);
    fake_hypervisor_remove(fixture->hypervisor, &agent_fixture_id);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_FAILED);
    fixture->hypervisor->stays = "QEMU has ended";
    fake_hypervisor_let_move(fixture->hypervisor);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    await_left(fixture, TRUE);
}

static void move_is_called_off_until_libvirt_listens(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    begin_to_move(fixture, &answer);
    fixture->hypervisor->deaf_steers = 2;
    berth_guest_stay(agent_fixture_guest(fixture));
    run_until(answer.is_given);
    assert_int_equal(answer.code, BERTH_ERROR_CANCELLED);
    assert_int_equal(fixture->hypervisor->steers, 3);
}

/* What is asked of its vCPUs meanwhile is done, and answered, when it stays. */
static void freeze_of_a_guest_on_its_way_waits_for_it(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0}, freeze = {0};
    begin_to_move(fixture, &answer);
    berth_guest_freeze(agent_fixture_guest(fixture), TRUE, on_answer, &freeze);
    fixture->hypervisor->stays = "the cable is out";
    fake_hypervisor_let_move(fixture->hypervisor);
    run_until(answer.is_given && freeze.is_given);
    assert_int_equal(answer.code, BERTH_ERROR_INTERNAL);
    assert_int_equal(freeze.code, 0);
    assert_true(agent_fixture_guest(fixture)->is_frozen);
}

/* It has ended just before it stood still: it says so again where it has gone. */
static void guest_that_ends_on_its_way_leaves(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    begin_to_move(fixture, &answer);
    fake_guest_say_ended(fixture->peer, 0);
    run_until(agent_fixture_phase(fixture) == BERTH_PHASE_ENDED);
    fake_hypervisor_let_move(fixture->hypervisor);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    await_left(fixture, TRUE);
}

/* --- for an agent before us ------------------------------------------------------------------ */

static void adopt_on_its_way(AgentFixture *fixture)
{
    agent_fixture_add_guest(fixture);
    fixture->hypervisor->migration.is_under_way = TRUE;
    agent_fixture_start(fixture);
    run_until(berth_guest_is_leaving(agent_fixture_guest(fixture)));
}

static void move_of_an_agent_before_us_is_followed(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    adopt_on_its_way(fixture);
    begin_to_leave(fixture, &answer);
    agent_fixture_pass(20);
    assert_false(answer.is_given);
    assert_int_equal(fixture->hypervisor->suspends, 0);
    fake_hypervisor_remove(fixture->hypervisor, &agent_fixture_id);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_LEFT);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    assert_int_equal(fixture->hypervisor->moves, 0);
    await_left(fixture, TRUE);
}

static void move_of_an_agent_before_us_that_fails_is_asked_for_again(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    adopt_on_its_way(fixture);
    begin_to_leave(fixture, &answer);
    fixture->hypervisor->migration.is_under_way = FALSE;
    run_until(answer.is_given);
    assert_int_equal(answer.code, BERTH_ERROR_UNAVAILABLE);
    assert_int_equal(fixture->hypervisor->resumes, 1);
    assert_int_equal(leave(fixture), 0);
    assert_int_equal(fixture->hypervisor->moves, 1);
}

static void move_of_an_agent_before_us_is_called_off(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    adopt_on_its_way(fixture);
    berth_guest_leave_not(agent_fixture_guest(fixture), FALSE, on_answer, &answer);
    run_until(fixture->hypervisor->steers >= 2);
    assert_false(answer.is_given);
    fixture->hypervisor->migration.is_under_way = FALSE;
    run_until(answer.is_given);
    assert_int_equal(answer.code, BERTH_ERROR_CANCELLED);
    assert_int_equal(fixture->hypervisor->resumes, 1);
}

/* The agent does not know yet whether libvirt moves its guest when it is to be moved. */
static void adopt_without_knowing(AgentFixture *fixture, gboolean is_under_way, Answer *answer)
{
    agent_fixture_add_guest(fixture);
    fixture->hypervisor->holds_looks = TRUE;
    fixture->hypervisor->migration.is_under_way = is_under_way;
    agent_fixture_start(fixture);
    run_until(fixture->hypervisor->held_look != NULL);
    begin_to_leave(fixture, answer);
    agent_fixture_pass(20);
    assert_int_equal(fixture->hypervisor->suspends, 0);
    fake_hypervisor_let_look(fixture->hypervisor);
    run_until(!agent_fixture_guest(fixture)->may_be_moving);
}

static void
move_of_an_agent_before_us_is_followed_by_who_was_asked_before_that_was_known(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    adopt_without_knowing(fixture, TRUE, &answer);
    fake_hypervisor_remove(fixture->hypervisor, &agent_fixture_id);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_LEFT);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    assert_int_equal(fixture->hypervisor->suspends, 0);
    assert_int_equal(fixture->hypervisor->moves, 0);
    await_left(fixture, TRUE);
}

static void move_begins_when_none_of_an_agent_before_us_is_known(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    adopt_without_knowing(fixture, FALSE, &answer);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    assert_int_equal(fixture->hypervisor->moves, 1);
    await_left(fixture, TRUE);
}

/* One that stands still for that move is not let go, whatever it is to be, before libvirt says that nothing moves it. */
static void guest_that_may_be_moving_is_not_let_go(void **state)
{
    AgentFixture *fixture = *state;
    Answer leaves = {0}, thaws = {0};
    agent_fixture_add_guest(fixture);
    fake_hypervisor_set_frozen(fixture->hypervisor, &agent_fixture_id);
    fixture->hypervisor->migration.is_under_way = TRUE;
    fixture->hypervisor->failing_looks = 1;
    agent_fixture_start(fixture);
    BerthGuest *guest = agent_fixture_guest(fixture);
    begin_to_leave(fixture, &leaves);
    berth_guest_freeze(guest, FALSE, on_answer, &thaws);
    run_until(leaves.is_given);
    assert_int_equal(leaves.code, BERTH_ERROR_UNAVAILABLE);
    agent_fixture_pass(20);
    assert_int_equal(fixture->hypervisor->resumes, 0);
    run_until(!guest->may_be_moving);
    assert_true(berth_guest_is_leaving(guest));
    assert_int_equal(fixture->hypervisor->resumes, 0);
    fixture->hypervisor->migration.is_under_way = FALSE;
    run_until(thaws.is_given);
    assert_int_equal(thaws.code, 0);
}

/* It was called off while nobody knew whether there is another one. */
static void move_that_was_called_off_before_it_began_does_not_begin(void **state)
{
    AgentFixture *fixture = *state;
    Answer leaves = {0}, stays = {0};
    agent_fixture_add_guest(fixture);
    fixture->hypervisor->holds_looks = TRUE;
    agent_fixture_start(fixture);
    run_until(fixture->hypervisor->held_look != NULL);
    begin_to_leave(fixture, &leaves);
    berth_guest_leave_not(agent_fixture_guest(fixture), FALSE, on_answer, &stays);
    fake_hypervisor_let_look(fixture->hypervisor);
    run_until(leaves.is_given && stays.is_given);
    assert_int_equal(leaves.code, BERTH_ERROR_CANCELLED);
    assert_int_equal(fixture->hypervisor->suspends + fixture->hypervisor->moves, 0);
}

static void guest_that_is_not_to_be_found_when_it_is_to_leave_has_left(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_add_guest(fixture);
    fixture->hypervisor->failing_looks = 1;
    agent_fixture_start(fixture);
    begin_to_leave(fixture, &answer);
    run_until(answer.is_given);
    Answer again = {0};
    fake_hypervisor_remove(fixture->hypervisor, &agent_fixture_id);
    begin_to_leave(fixture, &again);
    run_until(again.is_given);
    assert_int_equal(again.code, 0);
    await_left(fixture, TRUE);
}

static void guest_of_which_libvirt_does_not_say_whether_it_moves_stays_until_it_does(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    agent_fixture_add_guest(fixture);
    fixture->hypervisor->failing_looks = 2;
    agent_fixture_start(fixture);
    begin_to_leave(fixture, &answer);
    run_until(answer.is_given);
    assert_int_equal(answer.code, BERTH_ERROR_UNAVAILABLE);
    assert_false(berth_guest_is_leaving(agent_fixture_guest(fixture)));
    run_until(!agent_fixture_guest(fixture)->may_be_moving);
    assert_int_equal(fixture->hypervisor->failing_looks, 0);
    assert_int_equal(leave(fixture), 0);
    assert_int_equal(fixture->hypervisor->moves, 1);
}

/* --- coming --------------------------------------------------------------------------------- */

static BerthGuest *expect(AgentFixture *fixture)
{
    agent_fixture_start(fixture);
    BerthGuest *guest = berth_guest_new(&fixture->agent->context, &agent_fixture_id);
    berth_guest_table_add(fixture->agent->table, guest);
    berth_guest_expect(guest);
    return guest;
}

static int take(AgentFixture *fixture, gboolean frozen)
{
    Answer answer = {0};
    berth_guest_take(agent_fixture_guest(fixture), frozen, FALSE, on_answer, &answer);
    run_until(answer.is_given);
    return answer.code;
}

static void bring(AgentFixture *fixture, const BerthGuest *guest, gboolean is_coming)
{
    g_clear_pointer(&fixture->peer, fake_guest_free);
    fixture->peer = fake_guest_new(guest->channel_path);
    fixture->peer->has_task = fixture->peer->is_running = TRUE;
    fake_hypervisor_add(fixture->hypervisor, &agent_fixture_id, guest->channel_path,
                        guest->console_path);
    fake_hypervisor_set_coming(fixture->hypervisor, &agent_fixture_id, is_coming);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_STARTED);
    run_until(berth_storage_lane_error(fixture->agent->lane) == NULL);
}

static void await_running(AgentFixture *fixture)
{
    run_until(berth_guest_is_known(agent_fixture_guest(fixture)));
    fake_guest_say_started(fixture->peer);
    run_until(agent_fixture_phase(fixture) == BERTH_PHASE_RUNNING);
}

static void guest_that_has_come_goes_on_when_it_is_taken(void **state)
{
    AgentFixture *fixture = *state;
    BerthGuest *guest = expect(fixture);
    assert_false(berth_guest_is_ours(guest));
    assert_int_equal(leave(fixture), BERTH_ERROR_UNAVAILABLE); /* it is not this node's */
    assert_int_equal(stay(fixture, FALSE), BERTH_ERROR_UNAVAILABLE);
    assert_int_equal(take(fixture, FALSE), BERTH_ERROR_NOT_FOUND);
    bring(fixture, guest, TRUE);
    assert_int_equal(take(fixture, FALSE), BERTH_ERROR_UNAVAILABLE);
    fake_hypervisor_set_coming(fixture->hypervisor, &agent_fixture_id, FALSE);
    assert_int_equal(take(fixture, FALSE), 0);
    assert_int_equal(fixture->hypervisor->resumes, 1);
    assert_true(berth_guest_is_ours(guest));
    await_running(fixture);
    assert_int_equal(take(fixture, FALSE), 0); /* the same again */
    assert_int_equal(fixture->hypervisor->resumes, 1);
}

/* A fence is to find it from the moment on at which it goes on. */
static void guest_that_is_taken_has_its_disks_clients(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_set_disk_client("10.0.0.1:0/7");
    for (guint i = 0; i < 2; i++) /* those that are answered with nothing */
        g_strfreev(berth_storage_disk_clients(NULL, "disk", NULL));
    bring(fixture, expect(fixture), FALSE);
    assert_int_equal(take(fixture, FALSE), 0);
    char **clients = berth_guest_storage_clients(agent_fixture_guest(fixture));
    agent_fixture_set_disk_client(NULL);
    assert_non_null(clients);
    assert_string_equal(clients[0], "10.0.0.1:0/7");
}

static int take_and_wait(AgentFixture *fixture)
{
    Answer answer = {0};
    berth_guest_take(agent_fixture_guest(fixture), FALSE, TRUE, on_answer, &answer);
    run_until(answer.is_given);
    return answer.code;
}

/* That they are known here is not enough where the node itself is lost. */
static void guest_stands_still_until_its_clients_are_durable(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_set_disk_client("10.0.0.1:0/7");
    for (guint i = 0; i < 2; i++) /* those that are answered with nothing */
        g_strfreev(berth_storage_disk_clients(NULL, "disk", NULL));
    BerthGuest *guest = expect(fixture);
    bring(fixture, guest, FALSE);
    assert_int_equal(take_and_wait(fixture), 0);
    assert_string_equal(berth_guest_storage_clients(guest)[0], "10.0.0.1:0/7");
    assert_int_equal(take_and_wait(fixture), 0);
    assert_int_equal(fixture->hypervisor->resumes, 0);
    assert_int_equal(take(fixture, FALSE), 0);
    assert_int_equal(fixture->hypervisor->resumes, 1);
    assert_int_equal(take_and_wait(fixture), 0); /* by who does not know that yet */
    assert_int_equal(fixture->hypervisor->suspends, 0);
    agent_fixture_set_disk_client(NULL);
}

/* Where storage names clients none is no answer: a fence would find nobody. */
static void guest_without_a_client_of_its_disk_does_not_go_on(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_set_disk_client("10.0.0.1:0/7");
    BerthGuest *guest = expect(fixture);
    bring(fixture, guest, FALSE);
    /* The first question, to which there is no answer, is asked as it is adopted; the second is answered with nobody. */
    assert_int_equal(take(fixture, FALSE), BERTH_ERROR_UNAVAILABLE);
    assert_null(guest->clients.known);
    assert_int_equal(fixture->hypervisor->resumes, 0);
    assert_int_equal(take(fixture, FALSE), 0);
    assert_int_equal(g_strv_length(guest->clients.known), 1);
    assert_int_equal(fixture->hypervisor->resumes, 1);
    agent_fixture_set_disk_client(NULL);
}

/* A call of before a restart of berthd does not keep it from going on for that of after it. */
static void guest_that_is_to_go_on_does_not_wait(void **state)
{
    AgentFixture *fixture = *state;
    Answer waits = {0}, goes_on = {0};
    bring(fixture, expect(fixture), FALSE);
    berth_guest_take(agent_fixture_guest(fixture), FALSE, TRUE, on_answer, &waits);
    berth_guest_take(agent_fixture_guest(fixture), FALSE, FALSE, on_answer, &goes_on);
    run_until(waits.is_given && goes_on.is_given);
    assert_int_equal(goes_on.code, 0);
    assert_int_equal(fixture->hypervisor->resumes, 1);
}

/* It may be cut off from everybody, and have been given up. */
static void guest_does_not_go_on_where_storage_is_not_reached(void **state)
{
    AgentFixture *fixture = *state;
    bring(fixture, expect(fixture), FALSE);
    agent_fixture_set_storage_down(TRUE);
    assert_int_equal(take(fixture, FALSE), BERTH_ERROR_UNAVAILABLE);
    assert_int_equal(take(fixture, FALSE), BERTH_ERROR_UNAVAILABLE);
    assert_int_equal(fixture->hypervisor->resumes, 0);
    agent_fixture_set_storage_down(FALSE);
    run_until(berth_storage_lane_error(fixture->agent->lane) == NULL);
    assert_int_equal(take(fixture, FALSE), 0);
    assert_int_equal(fixture->hypervisor->resumes, 1);
}

/* In Join it is named, so that it is released if nobody waits for it. */
static void guest_on_its_way_is_said_to_be_so(void **state)
{
    AgentFixture *fixture = *state;
    bring(fixture, expect(fixture), FALSE);
    Berth__GuestStatus *status = agent_fixture_status(fixture);
    assert_int_equal(status->phase, BERTH__GUEST_STATUS__PHASE__ARRIVING);
    berth_message_free(&status->base);
    assert_false(berth_guest_is_to_tell(agent_fixture_guest(fixture)));
}

static void frozen_guest_is_taken_frozen(void **state)
{
    AgentFixture *fixture = *state;
    bring(fixture, expect(fixture), FALSE);
    assert_int_equal(take(fixture, TRUE), 0);
    assert_int_equal(fixture->hypervisor->resumes, 1); /* its disk is opened by that */
    assert_int_equal(fixture->hypervisor->suspends, 1);
    assert_true(agent_fixture_guest(fixture)->is_frozen);
    assert_true(fake_hypervisor_is_frozen(fixture->hypervisor, &agent_fixture_id));
}

/* The agent before this one was killed when it had opened the disk. */
static void guest_that_runs_is_taken_frozen(void **state)
{
    AgentFixture *fixture = *state;
    bring(fixture, expect(fixture), FALSE);
    assert_int_equal(take(fixture, FALSE), 0);
    assert_int_equal(take(fixture, TRUE), 0);
    assert_true(agent_fixture_guest(fixture)->is_frozen);
    assert_true(fake_hypervisor_is_frozen(fixture->hypervisor, &agent_fixture_id));
}

/* Who is cancelled meanwhile is let go, and not stopped again. */
static void guest_that_is_to_end_is_not_taken_frozen(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    bring(fixture, expect(fixture), FALSE);
    berth_guest_take(agent_fixture_guest(fixture), TRUE, FALSE, on_answer, &answer);
    run_until(fixture->hypervisor->resumes > 0);
    berth_guest_stop(agent_fixture_guest(fixture), 60000);
    run_until(answer.is_given);
    run_until(!agent_fixture_guest(fixture)->is_freezing);
    assert_false(fake_hypervisor_is_frozen(fixture->hypervisor, &agent_fixture_id));
}

/* Its disk is not this node's to remove: the guest runs with it elsewhere. */
static void guest_that_did_not_come_is_cleared_away(void **state)
{
    AgentFixture *fixture = *state;
    Answer answer = {0};
    BerthGuest *guest = expect(fixture);
    bring(fixture, guest, TRUE);
    fake_hypervisor_remove(fixture->hypervisor, &agent_fixture_id);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_STOPPED);
    assert_int_equal(agent_fixture_phase(fixture), BERTH_PHASE_ARRIVING);
    berth_guest_release_here(guest, on_answer, &answer);
    run_until(answer.is_given);
    assert_int_equal(answer.code, 0);
    run_until(agent_fixture_guest(fixture) == NULL);
}

/* One that is on its way when the agent starts is not told of, and is taken all the same. */
static void guest_on_its_way_is_adopted_as_such(void **state)
{
    AgentFixture *fixture = *state;
    g_autofree char *path = NULL;
    agent_fixture_add_guest(fixture);
    path = g_build_filename(fixture->config.run_dir, "berth-1-0-0-1.0abc.sock", NULL);
    g_clear_pointer(&fixture->peer, fake_guest_free);
    fixture->peer = fake_guest_new(path);
    fixture->peer->has_task = fixture->peer->is_running = TRUE;
    fake_hypervisor_add(fixture->hypervisor, &agent_fixture_id, path, path);
    fake_hypervisor_set_coming(fixture->hypervisor, &agent_fixture_id, TRUE);
    agent_fixture_start(fixture);
    assert_int_equal(agent_fixture_phase(fixture), BERTH_PHASE_ARRIVING);
    assert_string_equal(agent_fixture_guest(fixture)->channel_path, path);
    assert_false(berth_guest_is_ours(agent_fixture_guest(fixture)));
    fake_hypervisor_set_coming(fixture->hypervisor, &agent_fixture_id, FALSE);
    run_until(berth_storage_lane_error(fixture->agent->lane) == NULL);
    assert_int_equal(take(fixture, FALSE), 0);
    await_running(fixture);
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, agent_fixture_setup, agent_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(guest_that_leaves_is_forgotten),
        TEST(guest_that_is_moved_by_hand_is_told_of),
        TEST(guest_that_cannot_leave_runs_on),
        TEST(frozen_guest_that_an_agent_before_may_have_saved_leaves),
        TEST(guest_that_cannot_be_held_runs_on),
        TEST(move_that_is_called_off_leaves_it_running),
        TEST(guest_in_slack_is_copied_at_the_weight_of_others),
        TEST(guest_with_a_reservation_has_its_weight_anyway),
        TEST(guest_that_runs_meanwhile_hurries_if_its_node_needs_it),
        TEST(guest_that_was_held_back_is_so_after_it_has_stayed),
        TEST(guest_that_cannot_hurry_leaves_all_the_same),
        TEST(guest_hurries_after_what_is_being_asked),
        TEST(guest_that_is_on_its_way_is_resized_when_it_has_stayed),
        TEST(guest_that_may_be_moving_is_held_back_when_that_is_known),
        TEST(progress_is_told),
        TEST(stop_calls_a_move_off),
        TEST(guest_that_is_missing_while_it_moves_is_not_gone),
        TEST(guest_that_leaves_for_an_agent_before_us_has_left),
        TEST(guest_that_libvirt_does_not_know_any_more_is_asked_for_again),
        TEST(guest_that_an_agent_before_us_held_goes_on),
        TEST(guest_stays_only_when_libvirt_has_let_go_of_it),
        TEST(guest_that_is_to_stay_and_is_not_there_has_left),
        TEST(nobody_knows_whether_it_stays_while_libvirt_is_away),
        TEST(guest_that_is_missing_after_its_last_step_has_left),
        TEST(guest_that_its_libvirt_has_left_standing_goes_on),
        TEST(guest_whose_qemu_fails_on_its_way_may_have_left),
        TEST(move_is_called_off_until_libvirt_listens),
        TEST(freeze_of_a_guest_on_its_way_waits_for_it),
        TEST(guest_that_ends_on_its_way_leaves),
        TEST(move_of_an_agent_before_us_is_followed),
        TEST(move_of_an_agent_before_us_is_followed_by_who_was_asked_before_that_was_known),
        TEST(move_begins_when_none_of_an_agent_before_us_is_known),
        TEST(guest_that_may_be_moving_is_not_let_go),
        TEST(move_that_was_called_off_before_it_began_does_not_begin),
        TEST(guest_that_is_not_to_be_found_when_it_is_to_leave_has_left),
        TEST(guest_of_which_libvirt_does_not_say_whether_it_moves_stays_until_it_does),
        TEST(move_of_an_agent_before_us_that_fails_is_asked_for_again),
        TEST(move_of_an_agent_before_us_is_called_off),
        TEST(guest_that_has_come_goes_on_when_it_is_taken),
        TEST(guest_that_is_taken_has_its_disks_clients),
        TEST(guest_stands_still_until_its_clients_are_durable),
        TEST(guest_without_a_client_of_its_disk_does_not_go_on),
        TEST(guest_that_is_to_go_on_does_not_wait),
        TEST(guest_does_not_go_on_where_storage_is_not_reached),
        TEST(guest_on_its_way_is_said_to_be_so),
        TEST(frozen_guest_is_taken_frozen),
        TEST(guest_that_runs_is_taken_frozen),
        TEST(guest_that_is_to_end_is_not_taken_frozen),
        TEST(guest_that_did_not_come_is_cleared_away),
        TEST(guest_on_its_way_is_adopted_as_such),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
