/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "proto/berth.pb-c.h"
#include <glib.h>

/* What was asked of JOB, and what came of it, as a table of WIDTH columns (0 = unlimited), the latest last; without
 * lines if nothing was. (char *, transfer full) */
GPtrArray *berth_request_lines(const Berth__Job *job, guint width);
