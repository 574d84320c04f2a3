/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What rpc_tls.c and rpc_tls_config.c share. */

#include "common/rpc.h"

/* Never changed once made; its objects are shared by copies. */
struct BerthTlsConfig {
    char *certificate_path;
    char *ca_path;
    GTlsCertificate *certificate;
    GTlsDatabase *ca;
};

/* What is wrong with a certificate, gravest first. */
const char *berth_tls_flags_text(GTlsCertificateFlags flags);
