/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "proto/berth.pb-c.h"
#include <glib.h>

/* What `berth why` says of what happened. Pure: the same events give the same sentences. */

/* What EVENT of a job says, as a clause whose subject is the job: "started on node n1" (transfer full); NULL: nothing
 * that is worth a line. *STATE is the task's state as the events before told it, 0 at first; it is kept up. */
char *berth_why_event(const Berth__Event *event, Berth__JobState *state);
