/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Measures the guests and the node from time to time, from the host's side. */

#include "nodeagent/guest_table.h"

typedef struct BerthMeter BerthMeter;

/* A report is due; NODE is (transfer none). */
typedef void (*BerthMeterFunc)(const Berth__NodeUsage *node, gpointer user_data);

/* Measures now and every five seconds, and tells nobody. TABLE and HYPERVISOR outlive the meter. */
BerthMeter *berth_meter_new(BerthGuestTable *table, BerthHypervisor *hypervisor,
                            BerthMeterFunc func, gpointer user_data);
void berth_meter_free(BerthMeter *meter);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthMeter, berth_meter_free)

/* A guest's vCPUs have used CPU_USEC more, whoever has measured it. */
void berth_meter_count(BerthMeter *meter, guint64 cpu_usec);
/* Reports now and each INTERVAL_MSEC (100 at least), each time of a new measurement. */
void berth_meter_set_interval(BerthMeter *meter, guint interval_msec);
