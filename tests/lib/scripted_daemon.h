/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "tests/lib/assert.h"

#include "common/rpc.h"
#include "proto/berth.pb-c.h"

/* A daemon for `berth` that says what a script of a test says of jobs, and that it is there. */
typedef struct {
    Berth__Server_Service server;
    ProtobufCService *services[4]; /* the last but one is for a test to set before it starts */
    BerthRpcListener *listener;
    guint n_peers; /* that have connected */
    char *dir;     /* of the test; all in it goes with the daemon */
    char *socket;
} ScriptedDaemon;

/* JOBS, whose handlers are set, or NULL where none is expected, outlives it. */
void scripted_daemon_start(ScriptedDaemon *daemon, Berth__Jobs_Service *jobs);
void scripted_daemon_stop(ScriptedDaemon *daemon);
