/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A whole agent in the test's own process and loop, over a fake hypervisor and a storage of files. Its
 * scheduler is never there. */

#include "nodeagent/agent_private.h"
#include "tests/lib/fake_guest.h"
#include "tests/lib/fake_hypervisor.h"

typedef struct {
    char *dir; /* removed at the end */
    BerthNodeConfig config;
    BerthAgent *agent;
    BerthHypervisor *hypervisor; /* the agent's */
    gboolean is_ready;
    FakeGuest *peer; /* the guest with AGENT_FIXTURE_ID, from agent_fixture_add_guest() on */
} AgentFixture;

extern const BerthGuestId agent_fixture_id;

/* *STATE becomes the fixture. */
int agent_fixture_setup(void **state);
int agent_fixture_teardown(void **state);

/* A guest runs on this host, and listens. */
void agent_fixture_add_guest(AgentFixture *fixture);
/* The agent comes up, and adopts what runs. */
void agent_fixture_start(AgentFixture *fixture);
/* ... of which the guest's command has begun. */
void agent_fixture_start_running(AgentFixture *fixture);
/* ... and which is in slack, and known not to be held back. */
void agent_fixture_start_in_slack(AgentFixture *fixture);
/* What it knows of the guest; NULL: nothing. */
BerthGuest *agent_fixture_guest(AgentFixture *fixture);
/* It knows it. */
BerthGuestPhaseOnNode agent_fixture_phase(AgentFixture *fixture);
/* What it would tell the scheduler of it (transfer full). */
Berth__GuestStatus *agent_fixture_status(AgentFixture *fixture);
/* Content of one of the guest's logs in storage (transfer full); "" if there is none. */
GBytes *agent_fixture_log(AgentFixture *fixture, gboolean is_stderr);
/* Storage answers nothing but UNAVAILABLE, or answers again. For programs linked with
 * AGENT_FIXTURE_WRAP. */
void agent_fixture_set_storage_down(gboolean is_down);
/* Storage knows clients by their addresses, and that of the guest's disk is ADDRESS: but it does not
 * answer when it is asked for it first, and the disk is not open the second time. NULL: it knows none,
 * as a directory. The same programs only. Before the agent comes up. */
void agent_fixture_set_disk_client(const char *address);
/* Likewise, but the third time it is open at PASSER_ADDRESS, too. */
void agent_fixture_set_disk_client_and_passer(const char *address, const char *passer_address);
/* Runs the loop for so long. */
void agent_fixture_pass(guint msec);
