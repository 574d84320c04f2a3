/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "proto/berth.pb-c.h"
#include <glib.h>

/* What was asked of JOB, and what came of it, as a table of WIDTH columns (0 = unlimited), the latest last; without
 * lines if nothing was. What is longer goes on below. (char *, transfer full) */
GPtrArray *berth_request_lines(const Berth__Job *job, guint width);
/* Likewise, if there are any, onto stdout, as wide as that; of 120 columns where it is no terminal. */
void berth_requests_print(const Berth__Job *job);
