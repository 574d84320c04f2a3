/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Within agent*.c, adoption.c and node_info.c only. */

#include "nodeagent/agent.h"
#include "nodeagent/backstop.h"
#include "nodeagent/exec_service.h"
#include "nodeagent/meter.h"
#include "nodeagent/probe.h"
#include "nodeagent/session.h"

struct BerthAgent {
    const BerthNodeConfig *config;
    BerthAgentFuncs funcs;
    int lock_fd;
    BerthTlsConfig *tls;
    BerthStorageLane *lane;
    BerthHypervisor *hypervisor;
    BerthHost *host;
    BerthProbe *probe;
    BerthProbeResult *acceleration;
    char *cmdline;
    BerthGuestContext context;
    BerthGuestTable *table; /* NULL: it ends, and its guests are given up */
    ProtobufCService *services[3];
    BerthExecService *execs;
    BerthMeter *meter;
    BerthBackstop *backstop;
    BerthSession *session; /* NULL until all guests are known */
    gboolean is_ready;     /* guests were adopted */
    gboolean has_failed;
    char *lost_reason;  /* libvirt is not reached; NULL: it is */
    char *secret_error; /* why it has no secret for storage; NULL: it has, or is to have none */
    guint secret_source;
    guint known_source;
    guint list_source; /* the domains are to be listed again */
};

/* --- adoption.c --- */

/* Lists the domains; adopts those that are not known before the agent is ready, and destroys them after. */
void berth_agent_list_domains(BerthAgent *agent);
/* A domain of ours that nobody knows: it is destroyed. ID NULL: its name is all that is known of it. */
void berth_agent_destroy_stray(BerthAgent *agent, const char *name, const BerthGuestId *id);
/* Removes what guests that are not there any more have left in the directories. */
void berth_agent_sweep(BerthAgent *agent);
/* All guests were adopted. In agent.c. */
void berth_agent_become_ready(BerthAgent *agent);
/* Why no guest can be started now; NULL: one can. (transfer full) In agent.c. */
char *berth_agent_cannot_start(const BerthAgent *agent);
void berth_agent_fail(BerthAgent *agent, const GError *error);
/* NULL: there is none, or the agent ends and has none any more. In agent.c. */
BerthGuest *berth_agent_find_guest(const BerthAgent *agent, const BerthGuestId *id);

/* --- agent_service.c --- */

ProtobufCService *berth_agent_service_new(BerthAgent *agent);

/* --- agent_moves.c: the methods for guests that come from other nodes, and leave for them --- */

void berth_agent_receive_guest(BerthAgent *agent, const BerthGuestId *id, const char *disk_id,
                               BerthRpcCall *call);
void berth_agent_migrate_guest(BerthAgent *agent, const BerthGuestId *id,
                               const Berth__MigrateGuestRequest *request, BerthRpcCall *call);
void berth_agent_take_guest(BerthAgent *agent, const BerthGuestId *id,
                            const Berth__TakeGuestRequest *request, BerthRpcCall *call);

/* --- agent_secret.c --- */

/* Now, and from then on now and then: see SECRET_ERROR. */
void berth_agent_look_for_secret(BerthAgent *agent);
/* What a node tells of itself is another. In agent.c. */
void berth_agent_tell_changed(BerthAgent *agent);

/* --- node_info.c --- */

/* To guests. */
guint64 berth_node_offered_mib(const BerthNodeConfig *config, const BerthHost *host);
/* (transfer full) To be freed with berth_message_free(). */
Berth__NodeInfo *berth_node_info_new(const BerthNodeConfig *config, const BerthHost *host,
                                     const BerthProbeResult *acceleration, const char *cpu_model,
                                     const char *storage_client, const char *cannot_start);
