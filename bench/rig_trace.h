/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the rig says of what happens, as it happens. */

#include "bench/rig.h"

/* A line of a word and what it is about, with its time added, to the file of PLAN if it has one. */
void rig_trace(const RigPlan *plan, const char *format, ...) G_GNUC_PRINTF(2, 3);
