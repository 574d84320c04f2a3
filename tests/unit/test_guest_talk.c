/* SPDX-License-Identifier: Apache-2.0 */
/* How long a guest may take until its command begins. */
#include <config.h>

#include "common/message.h"
#include "tests/lib/agent_fixture.h"
#include "tests/lib/assert.h"

#define BOOT_DEADLINE_SEC 1u

static void on_answer(Berth__StartGuestReply__Fault fault, const GError *error, gpointer data)
{
    assert_no_error(error);
    *(gboolean *)data = TRUE;
}

/* The guest of FIXTURE was adopted, and is told now what to run. */
static void give_task(AgentFixture *fixture)
{
    char *command[] = {(char *)"/bin/true"};
    Berth__GuestTask task = BERTH__GUEST_TASK__INIT;
    Berth__StartGuestRequest request = BERTH__START_GUEST_REQUEST__INIT;
    gboolean is_answered = FALSE;
    task.command = command;
    task.n_command = G_N_ELEMENTS(command);
    request.task = &task;
    request.boot_deadline_sec = BOOT_DEADLINE_SEC;
    request.image_id = (char *)"image";
    request.disk_bytes = 1u << 20;
    request.vcpus = 1;
    request.memory_mib = 128;
    request.disk_id = (char *)"disk-1-0-0-1";
    request.log_id = (char *)"log-1-0-0-1";
    berth_guest_start(agent_fixture_guest(fixture), &request, on_answer, &is_answered);
    run_until(is_answered);
}

static gboolean is_given_up(AgentFixture *fixture)
{
    return berth_guest_phase(agent_fixture_guest(fixture)) == BERTH_PHASE_GONE;
}

static gboolean say_file_done(gpointer peer)
{
    fake_guest_say_file_done(peer);
    return G_SOURCE_CONTINUE;
}

static void guest_that_speaks_but_takes_no_task_is_given_up(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_add_guest(fixture);
    agent_fixture_start(fixture);
    run_until(berth_guest_is_known(agent_fixture_guest(fixture)));
    give_task(fixture);
    guint source = g_timeout_add(100, say_file_done, fixture->peer);
    run_until(is_given_up(fixture));
    g_source_remove(source);
    g_autoptr(ProtobufCMessage) message = &agent_fixture_status(fixture)->base;
    const Berth__GuestStatus *status = (const Berth__GuestStatus *)(void *)message;
    assert_int_equal(status->reason, BERTH__REASON__REASON_BOOT_DEADLINE);
    assert_non_null(strstr(status->reason_text, "did not take its task within"));
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, agent_fixture_setup, agent_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(guest_that_speaks_but_takes_no_task_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
