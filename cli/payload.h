/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

/* Content that goes with submissions: hashed here, sent inline when small, uploaded otherwise
 * unless the daemon has it already; once, however many of them have it. */

#define BERTH_INLINE_BLOB_MAX (64u * 1024u)
/* All that is sent inline, together with the job's description, must fit into one frame. */
#define BERTH_INLINE_TOTAL_MAX (1024u * 1024u)

typedef struct BerthPayload BerthPayload;
BerthPayload *berth_payload_new(void);
void berth_payload_free(BerthPayload *payload);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthPayload, berth_payload_free)

/* Adds bytes, or a regular file of this host, which is read once for each PATH. The reference returned is a new message (transfer
 * full). Errors for a file: unreadable, a directory, larger than MAX_BYTES (0 = no limit). */
Berth__BlobRef *berth_payload_add_bytes(BerthPayload *payload, GBytes *content);
Berth__BlobRef *berth_payload_add_file(BerthPayload *payload, const char *path, guint64 max_bytes,
                                       GError **error);

/* What the cluster takes of an input file at most, in bytes (0 = no limit); the daemon is asked once. */
gboolean berth_payload_input_max(BerthPayload *payload, BerthCli *cli, guint64 *out_max_bytes,
                                 GError **error);
/* Of its contents, so many bytes are in memory. */
gsize berth_payload_held_bytes(const BerthPayload *payload);

/* Uploads what is not sent inline and not there yet, once more from the start if the daemon is
 * restarted meanwhile. A file that changed since it was added is refused. */
gboolean berth_payload_upload(BerthPayload *payload, BerthCli *cli, GError **error);
/* The others, for SubmitRequest.inline_blobs (transfer none; valid as long as PAYLOAD). */
ProtobufCBinaryData *berth_payload_inline(BerthPayload *payload, gsize *out_n);
