/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Logging of daemons: g_critical(), g_warning(), g_message(), g_info(), g_debug() go to the
 * journal where stderr is the journal's stream ($JOURNAL_STREAM), else as lines to stderr:
 *     2026-11-20T22:41:07.123Z berthd warning: what happened
 * Libraries log at debug only. Thread-safe. */

#include <glib.h>

typedef enum {
    BERTH_LOG_ERROR, /* g_critical() */
    BERTH_LOG_WARNING,
    BERTH_LOG_NOTICE, /* g_message() */
    BERTH_LOG_INFO,
    BERTH_LOG_DEBUG,
} BerthLogLevel;

/* Their names, NULL-terminated, in order of the enum: VALUES of a configuration table's
 * BERTH_CONFIG_ENUM. */
extern const char *const berth_log_level_names[];

/* Takes over this process's GLib logging. COMPONENT ("berthd") must stay valid. Once. */
void berth_log_init(const char *component, BerthLogLevel level);
/* What is less important than LEVEL is dropped. */
void berth_log_set_level(BerthLogLevel level);

/* The line for stderr, without the newline (transfer full). NOW_USEC: since the epoch. */
char *berth_log_format(gint64 now_usec, const char *component, BerthLogLevel level,
                       const char *message);

/* Bounds how often one kind of message is logged: BURST messages in a minute, then none until the
 * minute is over; the next one says how many were left out. Make it static, zeroed. */
typedef struct {
    GMutex lock;
    gint64 window_start_usec;
    guint in_window;
    guint64 suppressed;
} BerthLogLimit;
#define BERTH_LOG_LIMIT_BURST 5u

/* May a message be logged at NOW_USEC (monotonic)? OUT_SUPPRESSED: left out since the last one. */
gboolean berth_log_limit_pass(BerthLogLimit *limit, gint64 now_usec, guint64 *out_suppressed);
/* A warning, unless LIMIT is used up. */
void berth_log_warning_limited(BerthLogLimit *limit, const char *format, ...) G_GNUC_PRINTF(2, 3);
