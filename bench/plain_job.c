/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the request of the job that programs of bench/ submit. */
#include "config.h"

#include "bench/plain_job.h"

#include <glib.h>
#include <string.h>

#define SHA256_BYTES 32u
#define KEY_BYTES    37u /* a UUID as text */

static const char environment[] = "PATH=/usr/bin:/bin\0HOME=/";

static struct {
    guint8 sums[2][SHA256_BYTES];
    Berth__BlobRef blobs[2]; /* script, environment */
    ProtobufCBinaryData contents[2];
    char *command[1];
    Berth__JobSpec spec;
    Berth__SubmitRequest request;
    Berth__SubmitRequest keyed; /* the same, with a key */
    char key[KEY_BYTES];
} job;

static void set_blob(guint i, const void *data, gsize length)
{
    gsize sum_length = SHA256_BYTES;
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    g_checksum_update(checksum, data, (gssize)length);
    g_checksum_get_digest(checksum, job.sums[i], &sum_length);
    berth__blob_ref__init(&job.blobs[i]);
    job.blobs[i].sha256 = (ProtobufCBinaryData){SHA256_BYTES, job.sums[i]};
    job.blobs[i].size_bytes = length;
    job.contents[i] = (ProtobufCBinaryData){length, (uint8_t *)data};
}

void plain_job_set_script(const char *script)
{
    set_blob(0, script, strlen(script));
    set_blob(1, environment, sizeof environment);
    berth__job_spec__init(&job.spec);
    berth__submit_request__init(&job.request);
    job.command[0] = job.spec.name = (char *)"job.sh";
    job.spec.vcpus = 1;
    job.spec.memory_mib = 64;
    job.spec.command = job.command;
    job.spec.n_command = G_N_ELEMENTS(job.command);
    job.spec.script = &job.blobs[0];
    job.spec.environment = &job.blobs[1];
    job.request.spec = &job.spec;
    job.request.inline_blobs = job.contents;
    job.request.n_inline_blobs = G_N_ELEMENTS(job.contents);
}

const Berth__SubmitRequest *plain_job_request(void)
{
    return &job.request;
}

const Berth__SubmitRequest *plain_job_request_with_key(void)
{
    g_autofree char *key = g_uuid_string_random();
    g_strlcpy(job.key, key, sizeof job.key);
    job.keyed = job.request;
    job.keyed.idempotency_key = job.key;
    return &job.keyed;
}
