/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* What a gang has lost over time. */

/* It has lost SUM_USEC by AT_USEC, as early as that can be: all the time since its start. */
CoreLoss *core_loss_new(gint64 at_usec, gint64 sum_usec);
void core_loss_free(CoreLoss *loss); /* or NULL */
/* One guest says that it lost LOST_USEC of the time from FROM_USEC to UNTIL_USEC, of which it has not
 * spoken before. */
void core_loss_add(CoreLoss *loss, gint64 from_usec, gint64 until_usec, gint64 lost_usec);
/* The gang has lost so much since its start; by AT_USEC. */
gint64 core_loss_sum_usec(const CoreLoss *loss);
gint64 core_loss_at_usec(const CoreLoss *loss, gint64 at_usec);
gsize core_loss_bytes(const CoreLoss *loss); /* or NULL */
