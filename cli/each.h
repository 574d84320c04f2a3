/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/options.h"
#include "cli/payload.h"
#include "proto/berth.pb-c.h"

/* Reads the file of which each task gets a line, if OPTIONS name one, into PAYLOAD and SPEC, which becomes an array with a task for each
 * line unless OPTIONS say which tasks it has. MAX_BYTES: of the file; 0 = no limit. */
gboolean berth_each_add(BerthPayload *payload, const BerthJobOptions *options, guint64 max_bytes,
                        Berth__JobSpec *spec, GError **error);
