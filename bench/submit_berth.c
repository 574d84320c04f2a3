/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how bench/submit submits to Berth: Jobs.Submit over one connection to the socket in $BERTH_SOCKET; where $BERTH_SUBMIT_KEYS is
 * set, with a key of its own for each job, as `berth submit` does. */
#include "config.h"

#include "bench/submit.h"

#include "bench/plain_job.h"
#include "common/rpc.h"

#include <stdio.h>

#define DEADLINE_MSEC 300000u

static BerthRpcPeer *peer;
static bool has_keys;

bool submitter_open(const char *script)
{
    g_autoptr(GError) error = NULL;
    const char *path = g_getenv("BERTH_SOCKET");
    peer = berth_rpc_connect_unix(path != NULL ? path : BERTH_RUNDIR "/berthd.sock", NULL, &error);
    if (peer == NULL) {
        fprintf(stderr, "submit: %s\n", error->message);
        return false;
    }
    has_keys = g_getenv("BERTH_SUBMIT_KEYS") != NULL;
    plain_job_set_script(script);
    return true;
}

uint64_t submitter_submit(void)
{
    g_autoptr(GError) error = NULL;
    const Berth__SubmitRequest *request =
        has_keys ? plain_job_request_with_key() : plain_job_request();
    ProtobufCMessage *reply = berth_rpc_peer_call(peer, &berth__jobs__descriptor, "Submit",
                                                  &request->base, DEADLINE_MSEC, &error);
    if (reply == NULL) {
        fprintf(stderr, "submit: %s\n", error->message);
        return 0;
    }
    guint64 job = ((const Berth__SubmitReply *)(const void *)reply)->job;
    protobuf_c_message_free_unpacked(reply, NULL);
    return job;
}
