/* SPDX-License-Identifier: Apache-2.0 */
/* One guest's life in an agent: what it has said is not lost, and what ended it is told as it was. */
#include <config.h>

#include <signal.h>

#include "common/message.h"
#include "nodeagent/guest_private.h"
#include "tests/lib/agent_fixture.h"
#include "tests/lib/assert.h"

#define OUTPUT_BYTES (300u << 10)

static Berth__GuestStatus__Phase told_phase(AgentFixture *fixture)
{
    Berth__GuestStatus *status = agent_fixture_status(fixture);
    Berth__GuestStatus__Phase told = status->phase;
    berth_message_free(&status->base);
    return told;
}

static GBytes *output_new(void)
{
    guint8 *data = g_malloc(OUTPUT_BYTES);
    for (gsize i = 0; i < OUTPUT_BYTES; i++)
        data[i] = (guint8)(i * 7 + i / 251);
    return g_bytes_new_take(data, OUTPUT_BYTES);
}

static void say(AgentFixture *fixture, GBytes *output)
{
    fake_guest_say_output(fixture->peer, FALSE, g_bytes_get_data(output, NULL),
                          g_bytes_get_size(output));
}

/* The guest has put out OUTPUT, which storage does not take. */
static void say_to_storage_that_is_down(AgentFixture *fixture, GBytes *output)
{
    agent_fixture_set_storage_down(TRUE);
    say(fixture, output);
    run_until(berth_log_writer_accepted(agent_fixture_guest(fixture)->writer, BERTH_STDOUT) ==
              g_bytes_get_size(output));
    agent_fixture_pass(50);
    assert_int_equal(fixture->peer->acked[0], 0);
}

static void assert_log(AgentFixture *fixture, GBytes *expected)
{
    g_autoptr(GBytes) log = agent_fixture_log(fixture, FALSE);
    assert_int_equal(g_bytes_get_size(log), g_bytes_get_size(expected));
    assert_true(g_bytes_equal(log, expected));
}

/* --- fencing -------------------------------------------------------------------------------- */

static gboolean is_told_client(AgentFixture *fixture, const char *address)
{
    Berth__GuestStatus *status = agent_fixture_status(fixture);
    gboolean is_told =
        status->n_storage_clients == 1 && strcmp(status->storage_clients[0], address) == 0;
    berth_message_free(&status->base);
    return is_told;
}

static void client_of_its_disk_is_asked_for_until_it_is_known(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_set_disk_client("10.0.0.1:0/7");
    agent_fixture_start_running(fixture);
    run_until(is_told_client(fixture, "10.0.0.1:0/7"));
    agent_fixture_set_disk_client(NULL);
}

/* --- its end, and storage ------------------------------------------------------------------- */

static void stop_while_storage_is_down_waits_for_the_end(void **state)
{
    AgentFixture *fixture = *state;
    g_autoptr(GBytes) output = output_new();
    agent_fixture_start_running(fixture);
    say_to_storage_that_is_down(fixture, output);
    berth_guest_stop(agent_fixture_guest(fixture), 50);
    run_until(fixture->peer->signal == SIGKILL);
    agent_fixture_pass(6000); /* a guest that does not end has had its time */
    assert_int_equal(agent_fixture_phase(fixture), BERTH_PHASE_RUNNING);
    agent_fixture_set_storage_down(FALSE);
    run_until(fixture->peer->acked[0] == OUTPUT_BYTES);
    fake_guest_say_ended(fixture->peer, 9);
    run_until(told_phase(fixture) == BERTH__GUEST_STATUS__PHASE__ENDED);
    Berth__GuestStatus *status = agent_fixture_status(fixture);
    assert_int_equal(status->exit->status, 9);
    assert_int_equal(status->stdout_bytes, OUTPUT_BYTES);
    berth_message_free(&status->base);
    assert_log(fixture, output);
}

static void stop_of_a_guest_that_says_nothing_destroys_it(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    berth_guest_stop(agent_fixture_guest(fixture), 50);
    run_until(agent_fixture_phase(fixture) == BERTH_PHASE_GONE);
    assert_int_equal(fixture->hypervisor->destroys, 1);
}

/* One that prints for ever has processes that SIGKILL did not end. */
static void stop_of_a_guest_that_does_not_stop_printing_destroys_it(void **state)
{
    AgentFixture *fixture = *state;
    g_autoptr(GBytes) output = output_new();
    agent_fixture_start_running(fixture);
    berth_guest_stop(agent_fixture_guest(fixture), 50);
    run_until(fixture->peer->signal == SIGKILL);
    while (agent_fixture_phase(fixture) == BERTH_PHASE_RUNNING &&
           fixture->peer->said[0] < 400u << 20) {
        say(fixture, output);
        agent_fixture_pass(20);
    }
    run_until(agent_fixture_phase(fixture) == BERTH_PHASE_GONE);
    assert_true(fixture->peer->said[0] >= 3u << 20);
}

static void domain_that_ends_while_storage_is_down_keeps_its_output(void **state)
{
    AgentFixture *fixture = *state;
    g_autoptr(GBytes) output = output_new();
    agent_fixture_start_running(fixture);
    say_to_storage_that_is_down(fixture, output);
    fake_hypervisor_remove(fixture->hypervisor, &agent_fixture_id);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_STOPPED);
    agent_fixture_pass(500);
    /* Told of as gone, it would be released. */
    assert_int_equal(told_phase(fixture), BERTH__GUEST_STATUS__PHASE__ACTIVE);
    agent_fixture_set_storage_down(FALSE);
    run_until(told_phase(fixture) == BERTH__GUEST_STATUS__PHASE__GONE);
    assert_log(fixture, output);
}

static void on_released(BerthFault fault, const GError *error, gpointer data)
{
    assert_no_error(error);
    *(gboolean *)data = TRUE;
}

static void release_while_storage_is_down_is_answered_and_keeps_the_output(void **state)
{
    AgentFixture *fixture = *state;
    g_autoptr(GBytes) output = output_new();
    gboolean is_released = FALSE;
    agent_fixture_start_running(fixture);
    say_to_storage_that_is_down(fixture, output);
    berth_guest_release(agent_fixture_guest(fixture), NULL, on_released, &is_released);
    run_until(is_released);
    agent_fixture_pass(500);
    assert_non_null(agent_fixture_guest(fixture));
    agent_fixture_set_storage_down(FALSE);
    run_until(agent_fixture_guest(fixture) == NULL);
    assert_log(fixture, output);
}

/* --- who ended it --------------------------------------------------------------------------- */

static void assert_gone(AgentFixture *fixture, Berth__Reason reason, const char *text)
{
    run_until(agent_fixture_phase(fixture) == BERTH_PHASE_GONE);
    Berth__GuestStatus *status = agent_fixture_status(fixture);
    assert_int_equal(status->reason, reason);
    assert_non_null(strstr(status->reason_text, text));
    berth_message_free(&status->base);
}

static void end_by_the_guest_is_a_crash(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_ENDED);
    assert_gone(fixture, BERTH__REASON__REASON_GUEST_CRASHED, "before its command");
}

/* Adopted while it boots: whether the agent before had told it to run, nobody knows. */
static void end_of_an_adopted_guest_may_be_after_its_beginning(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_add_guest(fixture);
    agent_fixture_start(fixture);
    assert_int_equal(agent_fixture_phase(fixture), BERTH_PHASE_BOOTING);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_ENDED);
    assert_gone(fixture, BERTH__REASON__REASON_GUEST_CRASHED, "before its command did");
    Berth__GuestStatus *status = agent_fixture_status(fixture);
    assert_false(status->not_begun);
    berth_message_free(&status->base);
}

static void end_by_the_host_is_none_of_the_guest(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_STOPPED);
    assert_gone(fixture, BERTH__REASON__REASON_GUEST_VANISHED, "operator");
}

static void end_of_its_qemu_is_none_of_the_guest(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_FAILED);
    assert_gone(fixture, BERTH__REASON__REASON_GUEST_VANISHED, "QEMU failed");
}

static void end_that_nobody_saw_is_none_of_the_guest(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    fake_hypervisor_lose(fixture->hypervisor);
    fake_hypervisor_remove(fixture->hypervisor, &agent_fixture_id);
    fake_hypervisor_connect(fixture->hypervisor);
    assert_gone(fixture, BERTH__REASON__REASON_GUEST_VANISHED, "nobody saw");
}

/* --- what it has used ----------------------------------------------------------------------- */

static void end_is_told_with_all_that_the_guest_used(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    fixture->hypervisor->counts.cpu_usec = 1234567; /* since the last measurement */
    fixture->hypervisor->counts.starved_usec = 4567;
    fake_guest_say_ended(fixture->peer, 0);
    run_until(told_phase(fixture) == BERTH__GUEST_STATUS__PHASE__ENDED);
    Berth__GuestStatus *status = agent_fixture_status(fixture);
    assert_int_equal(status->usage->cpu_usec, 1234567);
    assert_int_equal(status->usage->starved_usec, 4567);
    berth_message_free(&status->base);
}

/* libvirt says nothing of a domain that is busy, as at its end. */
static void what_was_not_measured_at_the_end_is_what_it_was(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    const BerthDomainStats stats = {
        .qemu = {.host_memory_mib = 40},
        .has_traffic = TRUE,
        .disk_read_bytes = 5000,
        .disk_write_bytes = 6000,
    };
    berth_guest_measured(agent_fixture_guest(fixture), &stats);
    fake_guest_say_ended(fixture->peer, 0);
    run_until(told_phase(fixture) == BERTH__GUEST_STATUS__PHASE__ENDED);
    Berth__GuestStatus *status = agent_fixture_status(fixture);
    assert_int_equal(status->usage->host_memory_mib, 40);
    assert_int_equal(status->usage->disk_read_bytes, 5000);
    assert_int_equal(status->usage->disk_write_bytes, 6000);
    berth_message_free(&status->base);
}

static void end_is_told_without_libvirt(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    fake_hypervisor_lose(fixture->hypervisor);
    fake_guest_say_ended(fixture->peer, 0);
    run_until(told_phase(fixture) == BERTH__GUEST_STATUS__PHASE__ENDED);
    assert_false(berth_guest_is_reported(agent_fixture_guest(fixture)));
}

/* --- its clock ------------------------------------------------------------------------------ */

static void resumed_guest_is_told_the_time(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    guint hellos = fixture->peer->hellos;
    fake_guest_say_output(fixture->peer, FALSE, "before", 6);
    run_until(fixture->peer->acked[0] == 6);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_RESUMED);
    run_until(fixture->peer->hellos > hellos &&
              berth_guest_channel_is_open(agent_fixture_guest(fixture)->channel));
    fake_guest_say_output(fixture->peer, FALSE, " and after", 10);
    run_until(fixture->peer->acked[0] == 16);
    g_autoptr(GBytes) expected = g_bytes_new_static("before and after", 16);
    assert_log(fixture, expected);
}

/* --- its boot, and storage ------------------------------------------------------------------ */

static void on_started(BerthFault fault, const GError *error, gpointer data)
{
    assert_no_error(error);
    *(gboolean *)data = TRUE;
}

static void adopt(AgentFixture *fixture)
{
    agent_fixture_add_guest(fixture);
    agent_fixture_start(fixture);
    run_until(berth_guest_is_known(agent_fixture_guest(fixture)));
}

/* A guest that was adopted before it had its task gets it, with so long to run it. */
static void give_task(AgentFixture *fixture, guint boot_deadline_sec)
{
    gboolean is_answered = FALSE;
    Berth__GuestTask task = BERTH__GUEST_TASK__INIT;
    Berth__StartGuestRequest request = BERTH__START_GUEST_REQUEST__INIT;
    request.image_id = (char *)"image";
    request.disk_id = (char *)"disk-1-0-0-1";
    request.log_id = (char *)"log-1-0-0-1";
    request.disk_bytes = 1 << 20;
    request.vcpus = 1;
    request.memory_mib = 64;
    request.memory_max_mib = 256;
    request.boot_deadline_sec = boot_deadline_sec;
    request.task = &task;
    berth_guest_start(agent_fixture_guest(fixture), &request, on_started, &is_answered);
    assert_true(is_answered);
}

static guint samples_when_it_has_started(AgentFixture *fixture)
{
    BerthGuest *guest = agent_fixture_guest(fixture);
    berth_guest_look(guest, g_get_monotonic_time(), G_USEC_PER_SEC);
    assert_true(guest->rates.n > 0);
    fake_guest_say_started(fixture->peer);
    run_until(agent_fixture_phase(fixture) == BERTH_PHASE_RUNNING);
    return guest->rates.n;
}

static void boot_of_an_adopted_guest_is_not_its_command_s(void **state)
{
    AgentFixture *fixture = *state;
    adopt(fixture);
    give_task(fixture, 600);
    run_until(fixture->peer->memory_max_mib == 256 &&
              berth_guest_is_known(agent_fixture_guest(fixture))); /* in another session */
    assert_int_equal(samples_when_it_has_started(fixture), 0);
}

static void command_that_ran_before_it_was_adopted_is_measured_on(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_add_guest(fixture);
    fixture->peer->has_task = fixture->peer->is_running = TRUE;
    agent_fixture_start(fixture);
    run_until(berth_guest_is_known(agent_fixture_guest(fixture)));
    assert_true(samples_when_it_has_started(fixture) > 0);
}

static void boot_that_takes_too_long_breaks_the_guest(void **state)
{
    AgentFixture *fixture = *state;
    adopt(fixture);
    give_task(fixture, 1);
    gint64 begin = g_get_monotonic_time();
    run_until(agent_fixture_phase(fixture) == BERTH_PHASE_GONE);
    assert_true(g_get_monotonic_time() - begin >= G_USEC_PER_SEC);
    Berth__GuestStatus *status = agent_fixture_status(fixture);
    assert_int_equal(status->reason, BERTH__REASON__REASON_BOOT_DEADLINE);
    berth_message_free(&status->base);
}

static void boot_while_storage_is_down_has_its_whole_time_after_it(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_set_storage_down(TRUE);
    adopt(fixture);
    give_task(fixture, 1);
    BerthGuest *guest = agent_fixture_guest(fixture);
    gint64 first_usec = guest->boot_deadline_usec;
    run_until(guest->boot_deadline_usec > first_usec + G_USEC_PER_SEC);
    assert_int_equal(agent_fixture_phase(fixture), BERTH_PHASE_BOOTING);
    gint64 renewed_usec = guest->boot_deadline_usec;
    agent_fixture_set_storage_down(FALSE);
    run_until(agent_fixture_phase(fixture) == BERTH_PHASE_GONE);
    assert_true(g_get_monotonic_time() >= renewed_usec);
}

/* What was said to it before anybody knew does not stay so. */
static void adopted_guest_is_told_how_much_memory_it_may_have(void **state)
{
    AgentFixture *fixture = *state;
    adopt(fixture);
    run_until(fixture->peer->hellos > 0);
    assert_int_equal(fixture->peer->memory_max_mib, 0);
    give_task(fixture, 600);
    run_until(fixture->peer->memory_max_mib == 256);
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, agent_fixture_setup, agent_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(client_of_its_disk_is_asked_for_until_it_is_known),
        TEST(stop_while_storage_is_down_waits_for_the_end),
        TEST(stop_of_a_guest_that_says_nothing_destroys_it),
        TEST(stop_of_a_guest_that_does_not_stop_printing_destroys_it),
        TEST(domain_that_ends_while_storage_is_down_keeps_its_output),
        TEST(release_while_storage_is_down_is_answered_and_keeps_the_output),
        TEST(end_by_the_guest_is_a_crash),
        TEST(end_of_an_adopted_guest_may_be_after_its_beginning),
        TEST(adopted_guest_is_told_how_much_memory_it_may_have),
        TEST(end_by_the_host_is_none_of_the_guest),
        TEST(end_of_its_qemu_is_none_of_the_guest),
        TEST(end_that_nobody_saw_is_none_of_the_guest),
        TEST(end_is_told_with_all_that_the_guest_used),
        TEST(what_was_not_measured_at_the_end_is_what_it_was),
        TEST(end_is_told_without_libvirt),
        TEST(resumed_guest_is_told_the_time),
        TEST(boot_of_an_adopted_guest_is_not_its_command_s),
        TEST(command_that_ran_before_it_was_adopted_is_measured_on),
        TEST(boot_that_takes_too_long_breaks_the_guest),
        TEST(boot_while_storage_is_down_has_its_whole_time_after_it),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
