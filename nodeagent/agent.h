/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* berth-node: everything but main(). It holds no state of its own: what runs is what libvirt says
 * runs. */

#include "nodeagent/node_config.h"

typedef struct BerthAgent BerthAgent;

typedef struct {
    /* It serves: guests were adopted, it dials the scheduler. Once. */
    void (*ready)(gpointer user_data);
    /* It cannot start, or not go on. Once; free it then. */
    void (*failed)(const GError *error, gpointer user_data);
    gpointer user_data;
} BerthAgentFuncs;

/* Starts. What can be checked at once is: directories (RESOURCE_EXHAUSTED: full), another agent on the
 * same (ALREADY_EXISTS), certificates, kernel and initramfs. CONFIG outlives the agent. */
BerthAgent *berth_agent_new(const BerthNodeConfig *config, const BerthAgentFuncs *funcs,
                            GError **error);
/* Guests run on. Waits for what is under way. */
void berth_agent_free(BerthAgent *agent);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthAgent, berth_agent_free)
