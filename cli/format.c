/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how numbers, times and enumerations look to people. */
#include "cli/format.h"

#include "cli/table.h"

#include <string.h>

static const char *enum_name(const ProtobufCEnumDescriptor *descriptor, int value)
{
    const ProtobufCEnumValue *found = protobuf_c_enum_descriptor_get_value(descriptor, value);
    return found ? found->name : "UNKNOWN";
}

/* "REASON_TIME_LIMIT" as "time-limit", interned. */
static const char *words(const char *name, const char *prefix)
{
    if (g_str_has_prefix(name, prefix))
        name += strlen(prefix);
    g_autofree char *lower = g_ascii_strdown(name, -1);
    g_strdelimit(lower, "_", '-');
    return g_intern_string(lower);
}

const char *berth_job_state_name(Berth__JobState state)
{
    return enum_name(&berth__job_state__descriptor, (int)state);
}

const char *berth_event_name(Berth__Event__Kind kind)
{
    return words(enum_name(&berth__event__kind__descriptor, (int)kind), "");
}

const char *berth_reason_name(Berth__Reason reason)
{
    return words(enum_name(&berth__reason__descriptor, (int)reason), "REASON_");
}

/* A job that succeeded has no reason, but may have a text: what became of its output. */
char *berth_reason_format(const Berth__Task *task)
{
    gboolean is_named = task->reason != BERTH__REASON__REASON_NONE;
    return g_strconcat(is_named ? berth_reason_name(task->reason) : "",
                       is_named && *task->reason_text ? ": " : "", task->reason_text, NULL);
}

const char *berth_task_start_name(const Berth__Task *task)
{
    return task->restoring ? "restoring" : task->booting ? "booting" : NULL;
}

char *berth_task_format_state(const Berth__Task *task)
{
    const char *start = berth_task_start_name(task);
    gboolean is_frozen = task->state == BERTH__JOB_STATE__SUSPENDED && task->frozen_usec != 0;
    g_autofree char *since = berth_format_time(is_frozen ? task->frozen_usec : task->start_usec);
    g_autofree char *reason = berth_reason_format(task);
    const char *place = task->to_disk ? "disk" : task->node;
    return g_strdup_printf("%s%s%s%s%s%s%s%s%s%s", berth_job_state_name(task->state),
                           start != NULL ? " (" : "", start != NULL ? start : "",
                           start != NULL ? ")" : "", *place != '\0' ? " on " : "", place,
                           since != NULL ? " since " : "", since != NULL ? since : "",
                           *reason != '\0' ? ": " : "", reason);
}

const char *berth_node_state_name(Berth__NodeState state)
{
    return words(enum_name(&berth__node_state__descriptor, (int)state), "NODE_");
}

const char *berth_node_condition_name(const Berth__Node *node)
{
    const Berth__NodeAdmission *admission = node->admission;
    if (node->state != BERTH__NODE_STATE__NODE_UP)
        return berth_node_state_name(node->state);
    if (admission == NULL)
        return *node->closed_reason ? "closed" : berth_node_state_name(node->state);
    if (admission->kind != BERTH__NODE_ADMISSION__KIND__DRAINING)
        return "cordoned";
    return admission->empty_usec != 0 ? "drained" : "draining";
}

const char *berth_node_admission_name(const Berth__NodeAdmission *admission)
{
    switch (admission->kind) {
    case BERTH__NODE_ADMISSION__KIND__DRAINING:
        return "drained";
    case BERTH__NODE_ADMISSION__KIND__GIVEN_UP:
        return "given up";
    default:
        return "cordoned";
    }
}

guint64 berth_task_used_usec(const Berth__Task *task, guint64 now_usec)
{
    gboolean stands_free = task->state == BERTH__JOB_STATE__SUSPENDED && task->frozen_usec != 0 &&
                           task->reason == BERTH__REASON__REASON_FROZEN_BY_OPERATOR;
    guint64 until_usec = task->end_usec != 0 ? task->end_usec
                         : stands_free       ? task->frozen_usec
                                             : now_usec;
    guint64 ran_usec =
        task->start_usec != 0 && until_usec > task->start_usec ? until_usec - task->start_usec : 0;
    return task->used_usec + ran_usec - MIN(ran_usec, task->spared_usec);
}

char *berth_format_time(guint64 usec)
{
    if (usec == 0)
        return NULL;
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_local((gint64)(usec / G_USEC_PER_SEC));
    return time ? g_date_time_format(time, "%Y-%m-%d %H:%M:%S") : NULL;
}

void berth_print_field(const char *label, const char *value)
{
    if (value == NULL || *value == '\0')
        return;
    g_autofree char *text = berth_printable(value);
    printf("%-16s %s\n", label, text);
}

void berth_print_fieldf(const char *label, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *value = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    berth_print_field(label, value);
}

/* "for memory 42.1 % (all at once 30.0 %)" */
static void append_stall(GString *line, const char *what, const char *unit, guint32 some,
                         guint32 full)
{
    g_string_append_printf(line, "%sfor %s %.1f %%%s", line->len > 0 ? ", " : "", what,
                           some / 100.0, unit);
    if (full > 0)
        g_string_append_printf(line, " (all at once %.1f %%)", full / 100.0);
}

void berth_print_stalls(const BerthStalls *stalls, const char *when, const char *disk)
{
    g_autoptr(GString) line = g_string_new(NULL);
    if (stalls->cpu_some + stalls->memory_some + stalls->io_some == 0)
        return;
    append_stall(line, "CPU", " of the time", stalls->cpu_some, 0);
    append_stall(line, "memory", "", stalls->memory_some, stalls->memory_full);
    append_stall(line, disk, "", stalls->io_some, stalls->io_full);
    berth_print_fieldf("Stalls", "%s%s", when, line->str);
}
