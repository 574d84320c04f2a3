/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* Plans the starts for which room is gathered, unless those that there are may stand: to be called
 * before anybody is told that they are not in the way. TRUE: they are planned anew, and the nodes
 * where some were count as fresh. */
gboolean core_gather(BerthCore *core);
