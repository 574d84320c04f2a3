/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* Copies the output of ended jobs to the files that their users named, with their users' rights.
 * Begins when the end is committed; what a daemon has not finished, the next one does again. */

BerthOutputs *berth_outputs_new(BerthDaemon *daemon);
void berth_outputs_free(BerthOutputs *outputs);

/* The task's record has changed: copies its output if it has ended and wants that. */
void berth_outputs_consider(BerthOutputs *outputs, guint64 job, guint32 task);
/* After recovery: all jobs. */
void berth_outputs_consider_all(BerthOutputs *outputs);
