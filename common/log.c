/* SPDX-License-Identifier: Apache-2.0 */
/* Owns where a daemon's log lines go and how they look. Does not own what is logged. The writer
 * runs on any thread: its state is set once at the start, but for the level, which is atomic. */
#include "common/log.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const berth_log_level_names[] = {"error", "warning", "notice", "info", "debug", NULL};

static const char *log_component = "berth";
static gboolean log_to_journal;
static gint log_level = BERTH_LOG_INFO; /* atomic */

static BerthLogLevel level_from_flags(GLogLevelFlags flags)
{
    if (flags & (G_LOG_LEVEL_ERROR | G_LOG_LEVEL_CRITICAL))
        return BERTH_LOG_ERROR;
    if (flags & G_LOG_LEVEL_WARNING)
        return BERTH_LOG_WARNING;
    if (flags & G_LOG_LEVEL_MESSAGE)
        return BERTH_LOG_NOTICE;
    if (flags & G_LOG_LEVEL_INFO)
        return BERTH_LOG_INFO;
    return BERTH_LOG_DEBUG;
}

/* sd_journal_stream: JOURNAL_STREAM is "DEVICE:INODE" of the stream that the manager made. */
static gboolean is_journal_stream(int fd)
{
    const char *stream = g_getenv("JOURNAL_STREAM");
    struct stat status;
    if (stream == NULL || fstat(fd, &status) != 0)
        return FALSE;
    g_autofree char *ours = g_strdup_printf("%" G_GUINT64_FORMAT ":%" G_GUINT64_FORMAT,
                                            (guint64)status.st_dev, (guint64)status.st_ino);
    return g_str_equal(ours, stream);
}

char *berth_log_format(gint64 now_usec, const char *component, BerthLogLevel level,
                       const char *message)
{
    g_autoptr(GDateTime) utc = g_date_time_new_from_unix_utc(now_usec / G_USEC_PER_SEC);
    g_autofree char *time = g_date_time_format(utc, "%Y-%m-%dT%H:%M:%S");
    g_autofree char *escaped = g_strescape(message, "\"\\");
    /* A line stays a line, whatever a peer sent; UTF-8 stays readable. */
    g_autofree char *line = g_utf8_validate(message, -1, NULL) ? g_strdup(message) : NULL;
    if (line != NULL)
        g_strdelimit(line, "\n\r\t\v\f\033", ' ');
    return g_strdup_printf("%s.%03dZ %s %s: %s", time, (int)(now_usec % G_USEC_PER_SEC / 1000),
                           component, berth_log_level_names[level], line != NULL ? line : escaped);
}

static const char *find_field(const GLogField *fields, gsize n_fields, const char *key)
{
    for (gsize i = 0; i < n_fields; i++) {
        if (g_str_equal(fields[i].key, key) && fields[i].length < 0)
            return fields[i].value;
    }
    return NULL;
}

static GLogWriterOutput write_log(GLogLevelFlags flags, const GLogField *fields, gsize n_fields,
                                  gpointer user_data)
{
    BerthLogLevel level = level_from_flags(flags);
    if ((gint)level > g_atomic_int_get(&log_level))
        return G_LOG_WRITER_HANDLED;
    if (log_to_journal &&
        g_log_writer_journald(flags, fields, n_fields, NULL) == G_LOG_WRITER_HANDLED)
        return G_LOG_WRITER_HANDLED;
    const char *message = find_field(fields, n_fields, "MESSAGE");
    g_autofree char *line = berth_log_format(g_get_real_time(), log_component, level,
                                             message != NULL ? message : "(no message)");
    fprintf(stderr, "%s\n", line);
    return G_LOG_WRITER_HANDLED;
}

void berth_log_init(const char *component, BerthLogLevel level)
{
    static gboolean initialised;
    g_return_if_fail(!initialised);
    initialised = TRUE;
    log_component = component;
    log_to_journal = is_journal_stream(STDERR_FILENO);
    berth_log_set_level(level);
    g_log_set_writer_func(write_log, NULL, NULL);
}

void berth_log_set_level(BerthLogLevel level)
{
    g_atomic_int_set(&log_level, (gint)level);
}

/* --- bounded repetition -------------------------------------------------------------------- */

gboolean berth_log_limit_pass(BerthLogLimit *limit, gint64 now_usec, guint64 *out_suppressed)
{
    g_mutex_lock(&limit->lock);
    if (limit->in_window == 0 || now_usec - limit->window_start_usec >= 60 * G_USEC_PER_SEC) {
        limit->window_start_usec = now_usec;
        limit->in_window = 0;
    }
    gboolean pass = limit->in_window < BERTH_LOG_LIMIT_BURST;
    if (pass) {
        limit->in_window++;
        *out_suppressed = limit->suppressed;
        limit->suppressed = 0;
    } else {
        limit->suppressed++;
    }
    g_mutex_unlock(&limit->lock);
    return pass;
}

void berth_log_warning_limited(BerthLogLimit *limit, const char *format, ...)
{
    guint64 suppressed = 0;
    if (!berth_log_limit_pass(limit, g_get_monotonic_time(), &suppressed))
        return;
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *message = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    if (suppressed > 0)
        g_warning("%s (%" G_GUINT64_FORMAT " more like it were not logged)", message, suppressed);
    else
        g_warning("%s", message);
}
