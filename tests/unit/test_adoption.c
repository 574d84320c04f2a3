/* SPDX-License-Identifier: Apache-2.0 */
/* What an agent that comes up finds of guests that ended without it. */
#include <config.h>

#include "tests/lib/agent_fixture.h"
#include "tests/lib/assert.h"

static void start_removes_what_dead_guests_have_left(void **state)
{
    AgentFixture *fixture = *state;
    const struct {
        const char *dir, *file;
        gboolean stays;
    } cases[] = {
        {fixture->config.run_dir, "berth-9-0-0-1.sock", FALSE},
        {fixture->config.run_dir, "berth-9-0-0-1.other", TRUE},
        {fixture->config.run_dir, "other.sock", TRUE},
        {fixture->config.console_dir, "berth-9-0-0-1", FALSE},
        {fixture->config.console_dir, "berth-9-0-0-1.0", FALSE},
        {fixture->config.console_dir, "berth-9-0-0-1.2", FALSE},
        {fixture->config.console_dir, "berth-9-0-0-1.10", FALSE},
        {fixture->config.console_dir, "berth-9-0-0-1.x", TRUE},
        {fixture->config.console_dir, "other.0", TRUE},
        {fixture->config.console_dir, "berth-1-0-0-1", TRUE}, /* it lives */
        {fixture->config.console_dir, "berth-1-0-0-1.0", TRUE},
    };
    agent_fixture_add_guest(fixture);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_build_filename(cases[i].dir, cases[i].file, NULL);
        assert_true(g_file_set_contents(path, "", 0, NULL));
    }
    agent_fixture_start(fixture);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_build_filename(cases[i].dir, cases[i].file, NULL);
        if (g_file_test(path, G_FILE_TEST_EXISTS) != cases[i].stays)
            fail_msg("%s is %s there", path, cases[i].stays ? "not" : "still");
    }
}

#define TEST(name)                                                                                 \
    cmocka_unit_test_setup_teardown(name, agent_fixture_setup, agent_fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(start_removes_what_dead_guests_have_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
