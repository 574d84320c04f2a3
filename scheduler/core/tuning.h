/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/core.h"

/* Takes VALUES within their bounds; NULL = the defaults. */
void core_tuning_load(gint64 out_values[BERTH_TUNING_N], const gint64 *values);
