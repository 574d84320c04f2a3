/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Measures the guests and the node, each as often as its need is (nodeagent/pace.h), from the host's side. */

#include "nodeagent/backstop.h"

typedef struct BerthMeter BerthMeter;

/* Guests were measured, or have said something that is to be known at once; NODE (transfer none) is what was measured
 * of the node, NULL: it need not be told now. */
typedef void (*BerthMeterFunc)(const Berth__NodeUsage *node, gpointer user_data);

/* Measures now and from then on, and tells nobody. TABLE, HYPERVISOR, CONFIG and BACKSTOP, which says what is left of the
 * memory that guests are offered, outlive the meter. */
BerthMeter *berth_meter_new(BerthGuestTable *table, BerthHypervisor *hypervisor,
                            const BerthNodeConfig *config, const BerthBackstop *backstop,
                            BerthMeterFunc func, gpointer user_data);
void berth_meter_free(BerthMeter *meter);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthMeter, berth_meter_free)

/* Measures the node now, and tells of it. */
void berth_meter_report(BerthMeter *meter);
/* A guest's vCPUs have used CPU_USEC more, whoever has measured it. */
void berth_meter_count(BerthMeter *meter, guint64 cpu_usec);
/* A domain has stopped, or may have: libvirt is asked why, soon. */
void berth_meter_check_states(BerthMeter *meter);
/* GUEST has come near a limit: it is measured and told of now. */
void berth_meter_press(BerthMeter *meter, BerthGuest *guest);
/* Some guest is to be looked at sooner than it was, by its pace: with all that are by then, however many say so. */
void berth_meter_look_soon(BerthMeter *meter);
/* Tells from now on, first now; INTERVALS are at least 100 ms. Of them that of what is calm is for telling of the node
 * alone: looking at guests is cheap. */
void berth_meter_set_intervals(BerthMeter *meter, const BerthPaceIntervals *intervals);
