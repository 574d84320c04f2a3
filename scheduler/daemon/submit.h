/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/daemon.h"

/* The way of a submission: checked, its blobs made sure of, decided, committed, answered. */

BerthSubmissions *berth_submissions_new(BerthDaemon *daemon);
/* The engine has stopped: those that wait for their turn to be decided on are refused, as are all later ones. */
void berth_submissions_stop(BerthSubmissions *submissions);
/* None may be under way. */
void berth_submissions_free(BerthSubmissions *submissions);

/* Takes CALL on and ends it. */
void berth_submit(BerthDaemon *daemon, const Berth__SubmitRequest *request, BerthRpcCall *call);
void berth_submit_many(BerthDaemon *daemon, const Berth__SubmitManyRequest *request,
                       BerthRpcCall *call);
