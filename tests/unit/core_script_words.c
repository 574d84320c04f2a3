/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the words of a script mean: names, numbers, options, guests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/core_script_internal.h"

#include <string.h>

static const struct {
    const char *name;
    int value;
} names[] = {
    {"PENDING", BERTH_JOB_PENDING},
    {"RUNNING", BERTH_JOB_RUNNING},
    {"COMPLETED", BERTH_JOB_COMPLETED},
    {"FAILED", BERTH_JOB_FAILED},
    {"CANCELLED", BERTH_JOB_CANCELLED},
    {"TIMEOUT", BERTH_JOB_TIMEOUT},
    {"NODE_FAIL", BERTH_JOB_NODE_FAIL},
    {"OUT_OF_MEMORY", BERTH_JOB_OUT_OF_MEMORY},
    {"-", BERTH_REASON_NONE},
    {"priority", BERTH_REASON_PRIORITY},
    {"resources", BERTH_REASON_RESOURCES},
    {"held-by-user", BERTH_REASON_HELD_BY_USER},
    {"held-by-operator", BERTH_REASON_HELD_BY_OPERATOR},
    {"node-unavailable", BERTH_REASON_NODE_UNAVAILABLE},
    {"requeued", BERTH_REASON_REQUEUED},
    {"starting-later", BERTH_REASON_STARTING_LATER},
    {"array-throttle", BERTH_REASON_ARRAY_THROTTLE},
    {"room-kept", BERTH_REASON_ROOM_KEPT},
    {"dependency", BERTH_REASON_DEPENDENCY},
    {"dependency-never", BERTH_REASON_DEPENDENCY_NEVER},
    {"account-limit", BERTH_REASON_ACCOUNT_LIMIT},
    {"maintenance", BERTH_REASON_MAINTENANCE},
    {"evicted", BERTH_REASON_EVICTED},
    {"drain", BERTH_REASON_DRAIN},
    {"storage-unavailable", BERTH_REASON_STORAGE_UNAVAILABLE},
    {"exit-status", BERTH_REASON_EXIT_STATUS},
    {"signal", BERTH_REASON_SIGNAL},
    {"time-limit", BERTH_REASON_TIME_LIMIT},
    {"memory-limit", BERTH_REASON_MEMORY_LIMIT},
    {"cancelled-by-user", BERTH_REASON_CANCELLED_BY_USER},
    {"cancelled-by-operator", BERTH_REASON_CANCELLED_BY_OPERATOR},
    {"boot-deadline", BERTH_REASON_BOOT_DEADLINE},
    {"guest-crashed", BERTH_REASON_GUEST_CRASHED},
    {"guest-vanished", BERTH_REASON_GUEST_VANISHED},
    {"crowded-out", BERTH_REASON_CROWDED_OUT},
    {"node-lost", BERTH_REASON_NODE_LOST},
    {"start-failed", BERTH_REASON_START_FAILED},
    {"command-not-found", BERTH_REASON_COMMAND_NOT_FOUND},
    {"disk-full", BERTH_REASON_DISK_FULL},
    {"SUSPENDED", BERTH_JOB_SUSPENDED},
    {"at-limit", BERTH_REASON_AT_LIMIT},
    {"starved", BERTH_REASON_STARVED},
    {"pressure", BERTH_REASON_PRESSURE},
    {"room-needed", BERTH_REASON_ROOM_NEEDED},
    {"promotion", BERTH_REASON_PROMOTION},
    {"balance", BERTH_REASON_BALANCE},
    {"defragment", BERTH_REASON_DEFRAGMENT},
    {"frozen-by-user", BERTH_REASON_FROZEN_BY_USER},
    {"frozen-by-operator", BERTH_REASON_FROZEN_BY_OPERATOR},
    {"restoring", BERTH_REASON_RESTORING},
    {"moved-by-user", BERTH_REASON_MOVED_BY_USER},
    {"moved-by-operator", BERTH_REASON_MOVED_BY_OPERATOR},
    {"resized-by-user", BERTH_REASON_RESIZED_BY_USER},
    {"resized-by-operator", BERTH_REASON_RESIZED_BY_OPERATOR},
    {"none", BERTH_GUEST_NONE},
    {"starting", BERTH_GUEST_STARTING},
    {"running", BERTH_GUEST_RUNNING},
    {"stopping", BERTH_GUEST_STOPPING},
    {"releasing", BERTH_GUEST_RELEASING},
    {"fencing", BERTH_GUEST_FENCING},
};

int core_script_value(const Script *script, const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        if (g_strcmp0(names[i].name, name) == 0)
            return names[i].value;
    fail_msg("%s: no such name: %s", script->line, name);
    return -1;
}

guint64 core_script_number(const Script *script, const char *text)
{
    guint64 number = 0;
    if (text == NULL || !g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT32, &number, NULL))
        fail_msg("%s: no number: %s", script->line, text);
    return number;
}

guint64 core_script_option(const Script *script, const char *name, guint64 fallback)
{
    for (char **word = script->words; *word != NULL; word++)
        if (g_str_has_prefix(*word, name))
            return core_script_number(script, *word + strlen(name));
    return fallback;
}

gboolean core_script_has(const Script *script, const char *word)
{
    return g_strv_contains((const char *const *)script->words, word);
}

BerthGuestId core_script_guest(const Script *script, const char *text)
{
    g_auto(GStrv) parts = g_strsplit(text != NULL ? text : "", ".", 2);
    if (g_strv_length(parts) != 2)
        fail_msg("%s: not JOB.EPOCH: %s", script->line, text);
    g_auto(GStrv) by_plus = g_strsplit(parts[0], "+", 2);
    g_auto(GStrv) by_slash = g_strsplit(by_plus[0], "/", 2);
    BerthGuestId id = {.job = core_script_number(script, by_slash[0]),
                       .epoch = (guint32)core_script_number(script, parts[1])};
    if (by_slash[1] != NULL)
        id.task = (guint32)core_script_number(script, by_slash[1]);
    if (by_plus[1] != NULL)
        id.guest = (guint32)core_script_number(script, by_plus[1]);
    return id;
}
