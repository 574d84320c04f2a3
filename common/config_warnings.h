/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a configuration names and this host lacks or cannot use. A file that is well formed can still name
 * certificates that nobody has made: --check-config says so before a daemon ends on it. They are
 * warnings, not errors, since the file may be written before what it names, or on another host. */

#include <glib.h>

/* (transfer full) an empty list, of sentences. */
GPtrArray *berth_config_warnings_new(void);

/* Each adds a sentence if something is wrong. OPTION stands in it for what named PATH:
 * "[guests] kernel". */
void berth_config_warn_file(GPtrArray *warnings, const char *option, const char *path);
void berth_config_warn_directory(GPtrArray *warnings, const char *option, const char *path);
/* The three files of TLS that GROUP ("agents") names: there, readable, and fit for each other. NAME:
 * the certificate is to have it as its common name, NULL: any. */
void berth_config_warn_tls(GPtrArray *warnings, const char *group, const char *certificate,
                           const char *key, const char *ca, const char *name);

/* What --check-config of PROGRAM has to say of the well-formed file PATH: its verdict on standard
 * output, the warnings on standard error. */
void berth_config_warnings_print(GPtrArray *warnings, const char *program, const char *path);
