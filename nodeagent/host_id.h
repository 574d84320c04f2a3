/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* What tells this host from all others: 32 hex digits, made of the machine id of its operating system,
 * see machine-id(5), and of the UUID that its firmware or hypervisor gave it. A copy of a machine has
 * the one without the other. Neither can be told from it. NULL for MACHINE_ID or PRODUCT_UUID: the
 * file of the system; tests have their own. "" where neither can be read. (transfer full) */
char *berth_host_id_new(const char *machine_id, const char *product_uuid);
