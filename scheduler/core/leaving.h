/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/core/state.h"

/* When a guest is thought to have left its node: who waits for what it has there is planned by that. */

/* At the end of its task, or when what takes it away is thought to be done. G_MAXINT64 = never. */
gint64 core_leaving_usec(const CoreGuest *guest);
/* The same for the node that GUEST is moved to. */
gint64 core_leaving_there_usec(const CoreGuest *guest);
/* What has just begun with GUEST takes it off its node, if it does: its node has that room then. */
void core_leaving_begins(BerthCore *core, CoreGuest *guest);
/* It does not any more, or has: GUEST is still where it was. */
void core_leaving_ends(BerthCore *core, CoreGuest *guest);
/* What has not come to its end SINCE_USEC is thought to take as long again: until then. */
gint64 core_leaving_again_usec(const BerthCore *core, gint64 since_usec);
/* The timer of GUEST is due. */
void core_leaving_due(BerthCore *core, CoreGuest *guest);
