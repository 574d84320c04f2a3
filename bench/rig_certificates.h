/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Certificates of nodes that are not there. */

#include <glib.h>

/* Makes those of the nodes below N_NODES that DIRECTORY does not have yet, signed with its ca.pem and ca.key. All have the
 * key rig.key, which is made with the first. Some twenty milliseconds of a CPU each:
 * who needs many often keeps the directory. */
gboolean rig_certificates_make(const char *directory, guint n_nodes, GError **error);
