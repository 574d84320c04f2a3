/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* A round: a backed guest is wanted elsewhere, so that the first firm planned starts that are far away come near.
 * Nothing without BERTH_FEATURE_BALANCING. */
void core_defragment(BerthCore *core);
