/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* TLS under the RPC: mutual, both certificates from one CA. Internal to common's RPC. */

#include "common/rpc.h"

/* The one common name of CERTIFICATE's subject (transfer full). INVALID_ARGUMENT without one, with
 * several, or with other characters than A-Z a-z 0-9 . _ - in it: it names a node. */
char *berth_tls_common_name(GTlsCertificate *certificate, GError **error);
/* The same from a subject as in RFC 4514: "CN=n1,O=Berth". */
char *berth_tls_common_name_of(const char *subject, GError **error);

/* TLS over STREAM, for a server (HOST NULL) or a client that dialled HOST. The other end must show
 * a certificate of the CA in CONFIG that is valid now; to a client it must also be for HOST or have
 * the common name "berthd". Then CALLBACK. GLib does it on a thread of a small pool that the whole process shares: of a server,
 * when the client has begun. TIMEOUT_MSEC bounds the handshake. WHO names the other
 * end in messages. CONFIG may be freed meanwhile. */
void berth_tls_handshake_async(const BerthTlsConfig *config, GIOStream *stream, const char *host,
                               const char *who, guint timeout_msec, GCancellable *cancellable,
                               GAsyncReadyCallback callback, gpointer user_data);
/* (transfer full) a GTlsConnection. PERMISSION_DENIED: the certificate, and what is wrong with it;
 * PROTOCOL: not TLS, or older than 1.3; DEADLINE_EXCEEDED; UNAVAILABLE: the connection broke. */
GIOStream *berth_tls_handshake_finish(GAsyncResult *result, GError **error);

/* (transfer full) */
BerthTlsConfig *berth_tls_config_copy(const BerthTlsConfig *config);
