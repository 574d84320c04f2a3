/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a line of the trace is written (bench/rig_trace.h): in one write, so that those of threads do not mix. */
#include "config.h"

#include "bench/rig_trace.h"

#include <string.h>
#include <unistd.h>

void rig_trace(const RigPlan *plan, const char *format, ...)
{
    va_list arguments;
    if (plan->trace_fd < 0)
        return;
    va_start(arguments, format);
    g_autofree char *what = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_autofree char *line = g_strdup_printf("%s %" G_GINT64_FORMAT "\n", what, g_get_real_time());
    gsize length = strlen(line);
    if (write(plan->trace_fd, line, length) != (gssize)length)
        g_error("the trace cannot be written");
}
