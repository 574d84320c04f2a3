/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* How images go: their records first, then their objects in storage. */

/* Removes the image called NAME for the caller of CALL, who may do so, and ends CALL. */
void berth_image_removal_run(BerthDaemon *daemon, const char *name, BerthRpcCall *call);
/* Removes the object ID, which is noted as unwanted, from storage now. The collector does so later if
 * this fails. */
void berth_image_removal_object(BerthDaemon *daemon, const char *id);
