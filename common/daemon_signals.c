/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a daemon takes signals. Does not own its end: that comes after its loop. */
#include "common/daemon_signals.h"

#include <glib-unix.h>
#include <signal.h>

enum { N_SIGNALS = 3 };

struct BerthDaemonSignals {
    GMainLoop *loop;
    const char *config_path;
    BerthLogLevelFunc read_level;
    guint sources[N_SIGNALS];
};

static gboolean on_terminate(gpointer user_data)
{
    BerthDaemonSignals *signals = user_data;
    g_message("ending as asked; guests run on");
    g_main_loop_quit(signals->loop);
    return G_SOURCE_CONTINUE;
}

static gboolean on_hangup(gpointer user_data)
{
    const BerthDaemonSignals *signals = user_data;
    BerthLogLevel level;
    g_autoptr(GError) error = NULL;
    if (!signals->read_level(signals->config_path, &level, &error)) {
        g_warning("the configuration is left as it was: %s", error->message);
        return G_SOURCE_CONTINUE;
    }
    berth_log_set_level(level);
    g_message("took the log level from %s; everything else needs a restart", signals->config_path);
    return G_SOURCE_CONTINUE;
}

BerthDaemonSignals *berth_daemon_signals_new(GMainLoop *loop, const char *config_path,
                                             BerthLogLevelFunc read_level)
{
    BerthDaemonSignals *signals = g_new0(BerthDaemonSignals, 1);
    signals->loop = g_main_loop_ref(loop);
    signals->config_path = config_path;
    signals->read_level = read_level;
    signals->sources[0] = g_unix_signal_add(SIGTERM, on_terminate, signals);
    signals->sources[1] = g_unix_signal_add(SIGINT, on_terminate, signals);
    signals->sources[2] = g_unix_signal_add(SIGHUP, on_hangup, signals);
    return signals;
}

void berth_daemon_signals_free(BerthDaemonSignals *signals)
{
    if (signals == NULL)
        return;
    for (guint i = 0; i < N_SIGNALS; i++)
        g_source_remove(signals->sources[i]);
    g_main_loop_unref(signals->loop);
    g_free(signals);
}
