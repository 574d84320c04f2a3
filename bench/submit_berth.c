/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how bench/submit submits to Berth: Jobs.Submit over one connection to the socket in $BERTH_SOCKET. Its script and environment go
 * with each request, as they do from `berth submit`. */
#include "config.h"

#include "bench/submit.h"

#include "common/rpc.h"
#include "proto/berth.pb-c.h"

#include <stdio.h>
#include <string.h>

#define DEADLINE_MSEC 300000u
#define SHA256_BYTES  32u

static const char environment[] = "PATH=/usr/bin:/bin\0HOME=/";

static struct {
    BerthRpcPeer *peer;
    const char *script;
    guint8 sums[2][SHA256_BYTES];
    Berth__BlobRef blobs[2]; /* script, environment */
    ProtobufCBinaryData contents[2];
} client;

static void set_blob(guint i, const void *data, gsize length)
{
    gsize sum_length = SHA256_BYTES;
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    g_checksum_update(checksum, data, (gssize)length);
    g_checksum_get_digest(checksum, client.sums[i], &sum_length);
    berth__blob_ref__init(&client.blobs[i]);
    client.blobs[i].sha256 = (ProtobufCBinaryData){SHA256_BYTES, client.sums[i]};
    client.blobs[i].size_bytes = length;
    client.contents[i] = (ProtobufCBinaryData){length, (uint8_t *)data};
}

bool submitter_open(const char *script)
{
    g_autoptr(GError) error = NULL;
    const char *path = g_getenv("BERTH_SOCKET");
    client.peer =
        berth_rpc_connect_unix(path != NULL ? path : BERTH_RUNDIR "/berthd.sock", NULL, &error);
    if (client.peer == NULL) {
        fprintf(stderr, "submit: %s\n", error->message);
        return false;
    }
    set_blob(0, script, strlen(script));
    set_blob(1, environment, sizeof environment);
    return true;
}

uint64_t submitter_submit(void)
{
    g_autoptr(GError) error = NULL;
    char *command[] = {(char *)"job.sh"};
    Berth__JobSpec spec = BERTH__JOB_SPEC__INIT;
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    spec.name = (char *)"job.sh";
    spec.vcpus = 1;
    spec.memory_mib = 64;
    spec.command = command;
    spec.n_command = 1;
    spec.script = &client.blobs[0];
    spec.environment = &client.blobs[1];
    request.spec = &spec;
    request.inline_blobs = client.contents;
    request.n_inline_blobs = 2;
    ProtobufCMessage *reply = berth_rpc_peer_call(client.peer, &berth__jobs__descriptor, "Submit",
                                                  &request.base, DEADLINE_MSEC, &error);
    if (reply == NULL) {
        fprintf(stderr, "submit: %s\n", error->message);
        return 0;
    }
    guint64 job = ((const Berth__SubmitReply *)(const void *)reply)->job;
    protobuf_c_message_free_unpacked(reply, NULL);
    return job;
}
