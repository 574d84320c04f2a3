/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "common/config.h"
#include "scheduler/core/core.h"

/* [policy] of berthd.conf: every constant of the core's table (policy.h) under its name there, in the
 * table's units and within its bounds. VALUES: BERTH_TUNING_N of them, for as long as the table of
 * options is used. */
BerthConfigTable berth_policy_config_table(gint64 *values);
