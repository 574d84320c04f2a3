/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's session with the scheduler: it dials, joins with all its guests, and tells what changes
 * until each change was answered (which means: is durable). */

#include "common/rpc.h"
#include "nodeagent/guest_table.h"

typedef struct BerthSession BerthSession;

typedef struct {
    const BerthNodeConfig *config;
    const BerthTlsConfig *tls;
    ProtobufCService *const *services; /* served to the scheduler */
    BerthGuestTable *table;
    /* (transfer full) What is true of the node now. */
    Berth__NodeInfo *(*node_info)(gpointer user_data);
    /* Joined: how often the scheduler wants reports. */
    void (*joined)(const BerthPaceIntervals *intervals, gpointer user_data);
    /* The scheduler knows, durably, what NODE_INFO says now. */
    void (*known)(gpointer user_data);
    gpointer user_data;
} BerthSessionConfig;

/* Starts to dial. CONFIG's members outlive the session. */
BerthSession *berth_session_new(const BerthSessionConfig *config);
void berth_session_free(BerthSession *session);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthSession, berth_session_free)

/* A guest's status has news: they are told now, or with the next Join. */
void berth_session_guest_changed(BerthSession *session, BerthGuest *guest);
/* More of a guest's output is durable: told soon, together with others'. */
void berth_session_guest_output(BerthSession *session, const BerthGuest *guest);
/* Guests were measured, and the node: tells what is worth telling of all of them. NODE NULL: it was not. */
void berth_session_report(BerthSession *session, const Berth__NodeUsage *node);
/* Ends the connection, if there is one, and joins over another. */
void berth_session_join_again(BerthSession *session);
/* What NODE_INFO says has changed: it is told now, or once it has joined. */
void berth_session_node_changed(BerthSession *session);
