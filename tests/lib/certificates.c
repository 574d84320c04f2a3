/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how tests get their certificates (tests/lib/certificates.h). */
#include "tests/lib/certificates.h"

#include "tests/lib/tool.h"

void certificate_make_root(const char *name, const char *key, const char *certificate)
{
    g_autofree char *subject = g_strconcat("/CN=", name, NULL);
    const char *const argv[] = {
        "openssl", "req",       "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
        "-nodes",  "-subj",     subject, "-days",   "2",  "-keyout",  key,
        "-out",    certificate, NULL};
    tool_run(argv);
}

void certificate_make(const char *name, const char *ca_key, const char *ca, const char *key,
                      const char *certificate)
{
    g_autofree char *request = g_strconcat(certificate, ".csr", NULL);
    g_autofree char *subject = g_strconcat("/CN=", name, NULL);
    const char *const ask[] = {"openssl",
                               "req",
                               "-newkey",
                               "ec",
                               "-pkeyopt",
                               "ec_paramgen_curve:P-256",
                               "-nodes",
                               "-subj",
                               subject,
                               "-addext",
                               "extendedKeyUsage=serverAuth,clientAuth",
                               "-keyout",
                               key,
                               "-out",
                               request,
                               NULL};
    const char *const sign[] = {"openssl",
                                "x509",
                                "-req",
                                "-in",
                                request,
                                "-CA",
                                ca,
                                "-CAkey",
                                ca_key,
                                "-CAcreateserial",
                                "-copy_extensions",
                                "copy",
                                "-days",
                                "2",
                                "-out",
                                certificate,
                                NULL};
    tool_run(ask);
    tool_run(sign);
}
