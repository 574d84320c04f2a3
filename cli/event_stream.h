/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/cli.h"

/* Events that come while other things are asked for on the same connection: it runs the main loop, and so does every call. */
typedef struct BerthEventStream BerthEventStream;

/* TAKE gets the events after AFTER_SEQ. JOBS (guint64): of these alone; NULL, none, or more than the daemon takes: of all, so that TAKE
 * looks whose each is. Its FALSE ends the stream. CLI is connected, and may get another connection meanwhile. (transfer full) */
BerthEventStream *berth_event_stream_open(const BerthCli *cli, guint64 after_seq,
                                          const GArray *jobs, BerthRpcItemFunc take,
                                          gpointer user_data);
/* Else no further event comes. */
gboolean berth_event_stream_is_open(const BerthEventStream *stream);
/* Ends and frees it. FALSE: it had failed, with ERROR. */
gboolean berth_event_stream_close(BerthEventStream *stream, GError **error);
