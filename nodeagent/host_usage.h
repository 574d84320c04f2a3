/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

#include "proto/berth.pb-c.h"

/* What the whole host uses and lacks. Fills available memory, load and pressure of USAGE from the
 * files below PROC ("/proc"); what a file does not say stays as it is. */
void berth_host_usage_measure(const char *proc, Berth__NodeUsage *usage);
/* How much it could swap out, used or not. */
guint64 berth_host_usage_swap_mib(const char *proc);
