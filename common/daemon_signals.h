/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a daemon is asked by signals: to end (SIGTERM, SIGINT), and to look at its configuration
 * again (SIGHUP), of which it takes the log level. All happens in the default main context. */

#include "common/log.h"

/* Reads the log level from the configuration at PATH. */
typedef gboolean (*BerthLogLevelFunc)(const char *path, BerthLogLevel *out_level, GError **error);

typedef struct BerthDaemonSignals BerthDaemonSignals;

/* From now on what would end the process quits LOOP instead. A configuration that READ_LEVEL finds
 * bad is a warning, and changes nothing. CONFIG_PATH must stay valid. */
BerthDaemonSignals *berth_daemon_signals_new(GMainLoop *loop, const char *config_path,
                                             BerthLogLevelFunc read_level);
/* The signals do again what they do to any process. */
void berth_daemon_signals_free(BerthDaemonSignals *signals);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthDaemonSignals, berth_daemon_signals_free)
