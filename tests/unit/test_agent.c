/* SPDX-License-Identifier: Apache-2.0 */
/* An agent, what it takes libvirt's words for, and what it does without being told to. */
#include <config.h>

#include "common/id.h"
#include "nodeagent/guest_private.h"
#include "tests/lib/agent_fixture.h"
#include "tests/lib/assert.h"

/* --- lists ---------------------------------------------------------------------------------- */

static void list_that_fails_ends_no_guest_and_is_made_again(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    BerthHypervisor *hypervisor = fixture->hypervisor;
    fake_hypervisor_lose(hypervisor);
    hypervisor->failing_lists = 2;
    guint lists = hypervisor->lists;
    fake_hypervisor_connect(hypervisor);
    run_until(hypervisor->lists == lists + 3); /* the connection lives: nothing else would ask */
    agent_fixture_pass(100);
    assert_int_equal(agent_fixture_phase(fixture), BERTH_PHASE_RUNNING);
    agent_fixture_pass(1200);
    assert_int_equal(hypervisor->lists, lists + 3);
}

static void list_that_is_whole_ends_who_is_missing(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    fake_hypervisor_lose(fixture->hypervisor);
    fake_hypervisor_remove(fixture->hypervisor, &agent_fixture_id);
    fixture->hypervisor->failing_lists = 1;
    fake_hypervisor_connect(fixture->hypervisor);
    run_until(agent_fixture_phase(fixture) == BERTH_PHASE_GONE);
}

/* --- what nobody knows ---------------------------------------------------------------------- */

static void on_released(BerthFault fault, const GError *error, gpointer data)
{
    assert_no_error(error);
    *(gboolean *)data = TRUE;
}

/* Its release was answered, but it is kept for the output that storage does not take. */
static void release_but_keep(AgentFixture *fixture)
{
    gboolean is_released = FALSE;
    agent_fixture_start_running(fixture);
    agent_fixture_set_storage_down(TRUE);
    fake_guest_say_output(fixture->peer, FALSE, "x", 1);
    run_until(!berth_log_writer_is_idle(agent_fixture_guest(fixture)->writer));
    berth_guest_release(agent_fixture_guest(fixture), NULL, on_released, &is_released);
    run_until(is_released);
    assert_int_equal(fixture->hypervisor->destroys, 1);
}

static void domain_that_starts_after_its_release_is_destroyed(void **state)
{
    AgentFixture *fixture = *state;
    release_but_keep(fixture);
    fake_hypervisor_add(fixture->hypervisor, &agent_fixture_id, NULL, NULL);
    fake_hypervisor_emit(fixture->hypervisor, &agent_fixture_id, BERTH_DOMAIN_STARTED);
    assert_int_equal(fixture->hypervisor->destroys, 2);
    assert_string_equal(fixture->hypervisor->destroyed, "berth-1-0-0-1");
}

static void domain_that_is_listed_after_its_release_is_destroyed(void **state)
{
    AgentFixture *fixture = *state;
    release_but_keep(fixture);
    fake_hypervisor_lose(fixture->hypervisor);
    fake_hypervisor_add(fixture->hypervisor, &agent_fixture_id, NULL, NULL);
    fake_hypervisor_connect(fixture->hypervisor);
    run_until(fixture->hypervisor->destroys == 2);
    assert_string_equal(fixture->hypervisor->destroyed, "berth-1-0-0-1");
}

/* --- duties --------------------------------------------------------------------------------- */

/* Its scheduler is never there. */
static void guest_paused_by_an_io_error_is_resumed_without_a_scheduler(void **state)
{
    AgentFixture *fixture = *state;
    agent_fixture_start_running(fixture);
    guint hellos = fixture->peer->hellos;
    fixture->hypervisor->paused_by_io_error = TRUE;
    run_until(fixture->hypervisor->resumes > 0);
    run_until(fixture->peer->hellos > hellos); /* with the time that it has missed */
    guint stats = fixture->hypervisor->stats;
    run_until(fixture->hypervisor->stats > stats + 1);
    assert_int_equal(fixture->hypervisor->resumes, 1);
}

/* A node whose guests QEMU could open no disk for takes none. */
static void node_without_the_secret_for_storage_starts_nothing(void **state)
{
    AgentFixture *fixture = *state;
    fixture->config.storage.secret_uuid = g_strdup("2f9e3c52-5b3f-4b7e-9d0d-0c9d1f8e7a11");
    agent_fixture_start_running(fixture);
    run_until(berth_storage_lane_error(fixture->agent->lane) == NULL);
    assert_null(berth_agent_cannot_start(fixture->agent));
    fixture->hypervisor->secret_fails = "no secret with matching uuid";
    fake_hypervisor_lose(fixture->hypervisor);
    fake_hypervisor_connect(fixture->hypervisor);
    run_until(fixture->agent->secret_error != NULL);
    g_autofree char *why = berth_agent_cannot_start(fixture->agent);
    assert_non_null(strstr(why, "no secret with matching uuid"));
    fixture->hypervisor->secret_fails = NULL;
    berth_agent_look_for_secret(fixture->agent);
    run_until(fixture->agent->secret_error == NULL);
    assert_null(berth_agent_cannot_start(fixture->agent));
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, agent_fixture_setup, agent_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(list_that_fails_ends_no_guest_and_is_made_again),
        TEST(list_that_is_whole_ends_who_is_missing),
        TEST(domain_that_starts_after_its_release_is_destroyed),
        TEST(domain_that_is_listed_after_its_release_is_destroyed),
        TEST(guest_paused_by_an_io_error_is_resumed_without_a_scheduler),
        TEST(node_without_the_secret_for_storage_starts_nothing),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
