/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "proto/berth.pb-c.h"
#include <glib.h>

/* What `berth why` says of how things are. Pure: the same facts give the same sentences. */

/* Sentences on why TASK of JOB is as it is now (char *, transfer full). WHY NULL: the daemon says nothing of it, as it
 * has ended or is of an older release. */
GPtrArray *berth_why_now(const Berth__Job *job, const Berth__Task *task,
                         const Berth__Explanation *why);
