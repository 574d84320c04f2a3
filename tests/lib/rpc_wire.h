/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A peer of ours that serves the fixture's jobs, and a test that says raw bytes to it. */

#include "tests/lib/assert.h"
#include "tests/lib/rpc_fixture.h"

typedef struct {
    RpcFixture *server;
    BerthRpcPeer *peer;
    int fd; /* -1: the test has closed it */
    BerthRpcFrameReader *reader;
    GError *reason; /* why the peer has ended; NULL: it has not */
} Wire;

int wire_setup(void **state);
int wire_teardown(void **state);
/* One more, whose `server` is set, with a peer of these limits; NULL = the default ones. */
void wire_open(Wire *wire, const BerthRpcLimits *limits);
void wire_close(Wire *wire);
/* Begins anew, with a peer of these limits. */
void wire_reopen(Wire *wire, const BerthRpcLimits *limits);

/* A Get of job ID in the call ID. (transfer full) */
GBytes *wire_get_request(guint64 id);
/* Says HELLO and takes the peer's. */
void wire_say_hello(Wire *wire);
/* The next frame is a FAILURE of call ID with CODE and TEXT. */
void wire_hear_failure(Wire *wire, guint64 id, BerthErrorCode code, const char *text);
/* The connection still serves. */
void assert_wire_alive(Wire *wire, guint64 id);
/* The peer ends the connection, for that reason. */
void assert_wire_ends(Wire *wire, BerthErrorCode code, const char *text);
