/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the questions of a script: what the core says of itself is what the line says, or the test fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scheduler/core/look.h"
#include "tests/unit/core_script_internal.h"

#include <string.h>

static void ask_record(Script *script)
{
    g_auto(GStrv) name = g_strsplit(script->words[1] != NULL ? script->words[1] : "", "/", 2);
    guint64 job = core_script_number(script, name[0]);
    guint32 index = name[1] != NULL ? (guint32)core_script_number(script, name[1]) : 0;
    BerthCoreTask task;
    gboolean known = berth_core_get_task(script->core, job, index, &task);
    if (strcmp(script->words[2], "-") == 0) {
        if (known)
            fail_msg("%s: it is still known", script->line);
        return;
    }
    if (!known)
        fail_msg("%s: it is not known", script->line);
    if ((int)task.state != core_script_value(script, script->words[2]) ||
        (int)task.reason != core_script_value(script, script->words[3]) ||
        (int)task.phase != core_script_value(script, script->words[4]))
        fail_msg("%s: it is state %d reason %d phase %d", script->line, task.state, task.reason,
                 task.phase);
}

static void ask_why(Script *script)
{
    BerthReason reason =
        berth_core_pending_reason(script->core, core_script_number(script, script->words[1]), 0);
    if ((int)reason != core_script_value(script, script->words[2]))
        fail_msg("%s: it is %d", script->line, reason);
}

static void ask_op(Script *script)
{
    BerthCoreGuest guest;
    guint64 job = core_script_number(script, script->words[1]);
    assert_true(berth_core_get_guest(script->core, job, 0, 0, &guest));
    if ((int)guest.op_reason != core_script_value(script, script->words[2]))
        fail_msg("%s: it is %d", script->line, guest.op_reason);
}

static void ask_planned(Script *script)
{
    gint64 planned_usec =
        berth_core_planned_usec(script->core, core_script_number(script, script->words[1]));
    gint64 expected =
        strcmp(script->words[2], "never") == 0
            ? 0
            : SECOND_0_USEC + (gint64)core_script_number(script, script->words[2]) * G_USEC_PER_SEC;
    if (planned_usec != expected)
        fail_msg("%s: it is second %" G_GINT64_FORMAT, script->line,
                 (planned_usec - SECOND_0_USEC) / (gint64)G_USEC_PER_SEC);
}

static void ask_next(Script *script)
{
    gint64 next = berth_core_next_timer_usec(script->core);
    gint64 expected =
        strcmp(script->words[1], "never") == 0
            ? G_MAXINT64
            : SECOND_0_USEC + (gint64)core_script_number(script, script->words[1]) * G_USEC_PER_SEC;
    if (next != expected)
        fail_msg("%s: it is %" G_GINT64_FORMAT " us", script->line, next);
}

static void ask_peak(Script *script)
{
    const BerthCoreTask *told = &script->records[core_script_number(script, script->words[1])].task;
    if (told->peak_milli != core_script_number(script, script->words[2]) ||
        told->peak_mib != core_script_number(script, script->words[3]))
        fail_msg("%s: it is %u %" G_GUINT64_FORMAT, script->line, told->peak_milli, told->peak_mib);
}

static gboolean is_or_is_not_asked(const Script *script, const char *option, guint64 told)
{
    return core_script_option(script, option, told) == told;
}

/* What it would go on from, with what size, and what its checkpoints take. */
static void ask_saved(Script *script)
{
    const BerthCoreTask *told = &script->records[core_script_number(script, script->words[1])].task;
    gint64 ran_usec = (gint64)core_script_option(script, "ran=", 0) * G_USEC_PER_SEC;
    if (told->checkpoint != core_script_number(script, script->words[2]) ||
        told->checkpoint_epoch != core_script_option(script, "epoch=", 0) ||
        told->checkpoint_ran_usec != ran_usec ||
        !is_or_is_not_asked(script, "v=", told->checkpoint_resources.vcpus) ||
        !is_or_is_not_asked(script, "m=", told->checkpoint_resources.memory_mib) ||
        told->checkpoints_mib != core_script_option(script, "stored=", 0) ||
        told->checkpoint_space_mib != core_script_option(script, "kept=", 0))
        fail_msg("%s: it is %u epoch=%u v=%u m=%" G_GUINT64_FORMAT " ran=%" G_GINT64_FORMAT
                 " us stored=%" G_GUINT64_FORMAT " kept=%" G_GUINT64_FORMAT,
                 script->line, told->checkpoint, told->checkpoint_epoch,
                 told->checkpoint_resources.vcpus, told->checkpoint_resources.memory_mib,
                 told->checkpoint_ran_usec, told->checkpoints_mib, told->checkpoint_space_mib);
}

static void ask_doubted(Script *script)
{
    const BerthCoreTask *told = &script->records[core_script_number(script, script->words[1])].task;
    gint64 ran_usec = (gint64)core_script_option(script, "ran=", 0) * G_USEC_PER_SEC;
    if (told->checkpoint_doubted != core_script_number(script, script->words[2]) ||
        told->checkpoint_doubted_ran_usec != ran_usec)
        fail_msg("%s: it is %u ran=%" G_GINT64_FORMAT " us", script->line, told->checkpoint_doubted,
                 told->checkpoint_doubted_ran_usec);
}

static void ask_missed(Script *script)
{
    const BerthCoreTask *told = &script->records[core_script_number(script, script->words[1])].task;
    gint64 at_usec =
        SECOND_0_USEC + (gint64)core_script_number(script, script->words[2]) * G_USEC_PER_SEC;
    gint64 told_usec =
        core_script_has(script, "drain") ? told->drain_missed_usec : told->checkpoint_missed_usec;
    if (told_usec != at_usec)
        fail_msg("%s: it is %" G_GINT64_FORMAT, script->line, told_usec);
}

static void ask_needs(Script *script)
{
    BerthCoreGuest guest;
    guint64 job = core_script_number(script, script->words[1]);
    assert_true(berth_core_get_guest(script->core, job, 0, 0, &guest));
    if (guest.predicted_mib != core_script_number(script, script->words[2]))
        fail_msg("%s: it is %" G_GUINT64_FORMAT, script->line, guest.predicted_mib);
}

static void ask_space(Script *script)
{
    BerthCoreSpace space;
    berth_core_get_space(script->core, &space);
    if (space.stored_mib != core_script_number(script, script->words[1]) ||
        space.kept_mib != core_script_number(script, script->words[2]) ||
        space.left_mib != core_script_number(script, script->words[3]))
        fail_msg("%s: it is %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT " %" G_GUINT64_FORMAT,
                 script->line, space.stored_mib, space.kept_mib, space.left_mib);
}

static void ask_limit(Script *script)
{
    gint64 limit_usec =
        berth_core_limit_usec(script->core, core_script_number(script, script->words[1]), 0);
    gint64 expected =
        g_str_equal(script->words[2], "never")
            ? G_MAXINT64
            : SECOND_0_USEC + (gint64)core_script_number(script, script->words[2]) * G_USEC_PER_SEC;
    if (limit_usec != expected)
        fail_msg("%s: it is %" G_GINT64_FORMAT, script->line,
                 (limit_usec - SECOND_0_USEC) / G_USEC_PER_SEC);
}

static void ask_holds(Script *script)
{
    BerthCoreGuest guest;
    guint64 job = core_script_number(script, script->words[1]);
    assert_true(berth_core_get_guest(script->core, job, 0, 0, &guest));
    if (guest.resources.vcpus != core_script_number(script, script->words[2]) ||
        guest.resources.memory_mib != core_script_number(script, script->words[3]))
        fail_msg("%s: it is %u %" G_GUINT64_FORMAT, script->line, guest.resources.vcpus,
                 guest.resources.memory_mib);
}

static void ask_short(Script *script)
{
    const BerthCoreTask *told = &script->records[core_script_number(script, script->words[1])].task;
    gint64 expected =
        g_str_equal(script->words[2], "never")
            ? 0
            : SECOND_0_USEC + (gint64)core_script_number(script, script->words[2]) * G_USEC_PER_SEC;
    if (told->short_usec != expected)
        fail_msg("%s: it is %" G_GINT64_FORMAT, script->line, told->short_usec);
}

static gint64 second(gint64 usec)
{
    return (usec - SECOND_0_USEC) / G_USEC_PER_SEC;
}

static void describe_plan(const BerthCoreWait *wait, GString *text)
{
    for (guint i = 0; i < wait->n_planned_nodes; i++) {
        if (i == 0)
            g_string_append_printf(text, " plan=%s%" G_GINT64_FORMAT, wait->is_gathered ? "~" : "",
                                   second(wait->planned_usec));
        g_string_append_printf(text, "%s%u", i > 0 ? "," : "@", wait->planned_nodes[i]);
    }
    for (guint i = 0; i < wait->n_leavings; i++)
        g_string_append_printf(text, "%s%" G_GUINT64_FORMAT "@%" G_GINT64_FORMAT,
                               i > 0 ? "," : " leaves=", wait->leavings[i].job,
                               second(wait->leavings[i].time_usec));
}

static void describe_hindrances(const BerthCoreWait *wait, GString *text)
{
    static const char *const names[] = {[BERTH_HINDRANCE_LOST] = "lost",
                                        [BERTH_HINDRANCE_CPU] = "cpu",
                                        [BERTH_HINDRANCE_MEMORY] = "memory",
                                        [BERTH_HINDRANCE_OVERCOMMIT] = "overcommit",
                                        [BERTH_HINDRANCE_PRESSED] = "pressed",
                                        [BERTH_HINDRANCE_RESTS] = "rests",
                                        [BERTH_HINDRANCE_AWAITED] = "awaited",
                                        [BERTH_HINDRANCE_EVACUATION] = "evacuation",
                                        [BERTH_HINDRANCE_MAINTENANCE] = "maintenance",
                                        [BERTH_HINDRANCE_OCCUPIED] = "occupied"};
    assert_int_equal(wait->hindrances[BERTH_HINDRANCE_NONE], 0);
    for (guint i = BERTH_HINDRANCE_NONE + 1; i < BERTH_N_HINDRANCES; i++)
        if (wait->hindrances[i] > 0)
            g_string_append_printf(text, ",%s:%u", names[i], wait->hindrances[i]);
}

/* All that it says, as in a script. (transfer full) */
static char *describe_wait(const Script *script, const BerthCoreWait *wait)
{
    static const char *const slack[] = {[BERTH_SLACK_OFF] = "off",
                                        [BERTH_SLACK_NOT_WANTED] = "not-wanted",
                                        [BERTH_SLACK_CANNOT_LEAVE] = "cannot-leave",
                                        [BERTH_SLACK_NO_SPACE] = "no-space",
                                        [BERTH_SLACK_WANTS_BACKING] = "wants-backing",
                                        [BERTH_SLACK_NO_ROOM] = "no-room",
                                        [BERTH_SLACK_ROOM] = "room"};
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "waits %s need=%u/%" G_GUINT64_FORMAT, script->words[1],
                           wait->need_vcpus, wait->need_mib);
    for (guint i = 0; i < wait->n_before; i++) {
        if (i == 0)
            g_string_append_printf(text, " before=%u", wait->jobs_before);
        g_string_append_printf(text, "%s%" G_GUINT64_FORMAT, i > 0 ? "," : ":", wait->before[i]);
    }
    if (wait->nearest != 0)
        g_string_append_printf(text, " open=%u nearest=%u:%u/%" G_GUINT64_FORMAT, wait->nodes_open,
                               wait->nearest, wait->nearest_vcpus, wait->nearest_mib);
    for (guint i = 0; i < wait->n_closed; i++)
        g_string_append_printf(text, "%s%u", i > 0 ? "," : " closed=", wait->closed[i]);
    if (wait->nodes_closed > wait->n_closed)
        g_string_append_printf(text, "+%u", wait->nodes_closed - wait->n_closed);
    describe_plan(wait, text);
    g_string_append_printf(text, " slack=%s", slack[wait->slack]);
    describe_hindrances(wait, text);
    return g_string_free(text, FALSE);
}

static void ask_waits(Script *script)
{
    BerthCoreWait wait;
    if (!berth_core_get_wait(script->core, core_script_number(script, script->words[1]), 0, &wait))
        fail_msg("%s: it does not wait", script->line);
    g_autofree char *said = describe_wait(script, &wait);
    g_autofree char *expected = g_strjoinv(" ", script->words);
    if (!g_str_equal(said, expected))
        fail_msg("%s: it is %s", script->line, said);
}

static void ask_looks(Script *script)
{
    gint64 usec = berth_core_next_look_usec(script->core);
    gint64 expected =
        g_str_equal(script->words[1], "never")
            ? 0
            : SECOND_0_USEC + (gint64)core_script_number(script, script->words[1]) * G_USEC_PER_SEC;
    if (usec != expected)
        fail_msg("%s: it is %" G_GINT64_FORMAT, script->line, usec);
}

static void ask_lacks(Script *script)
{
    guint32 node = (guint32)core_script_number(script, script->words[1]);
    const char *now = script->told[node].is_short ? "yes" : "no";
    if (strcmp(now, script->words[2]) != 0)
        fail_msg("%s: %s", script->line, now);
}

static void ask_admits(Script *script)
{
    static const char *const words[] = {[BERTH_ADMISSION_OPEN] = "open",
                                        [BERTH_ADMISSION_CORDONED] = "cordoned",
                                        [BERTH_ADMISSION_DRAINING] = "draining"};
    guint32 node = (guint32)core_script_number(script, script->words[1]);
    const BerthCoreNode *told = &script->told[node];
    BerthCoreNode now;
    assert_true(berth_core_get_node(script->core, node, &now));
    assert_int_equal(now.admission, told->admission);
    gboolean is_empty = core_script_has(script, "empty");
    if (strcmp(words[told->admission], script->words[2]) != 0 || told->is_empty != is_empty)
        fail_msg("%s: it is %s%s", script->line, words[told->admission],
                 told->is_empty ? " empty" : "");
}

static void ask_leave(Script *script)
{
    g_autoptr(GString) text = g_string_new(NULL);
    guint32 with = (guint32)core_script_option(script, "with=", 0);
    g_autoptr(GArray) steps = berth_core_plan_drain(
        script->core, (guint32)core_script_number(script, script->words[1]), &with, with > 0);
    g_autofree char *expected = g_strjoinv(" ", script->words + (with > 0 ? 3 : 2));
    assert_non_null(steps);
    for (guint i = 0; i < steps->len; i++) {
        const BerthCoreDrainStep *step = &g_array_index(steps, BerthCoreDrainStep, i);
        g_string_append_printf(text, "%s%u.%u:%s%s:", i > 0 ? " " : "", (guint)step->guest.job,
                               step->guest.epoch,
                               step->into_slack   ? "slack"
                               : step->lacks_room ? "no-room"
                               : step->moves      ? "moves"
                                                  : "waits",
                               step->lacks_space ? "+no-space" : "");
        if (step->limit_usec == G_MAXINT64)
            g_string_append(text, "never");
        else
            g_string_append_printf(text, "%d",
                                   (int)((step->limit_usec - SECOND_0_USEC) / G_USEC_PER_SEC));
    }
    if (strcmp(text->str, expected) != 0)
        fail_msg("%s: it is %s", script->line, text->str);
}

static void ask_empties(Script *script)
{
    guint32 node = (guint32)core_script_number(script, script->words[1]);
    g_autoptr(GArray) steps = berth_core_plan_drain(script->core, node, NULL, 0);
    gint64 usec = berth_core_drain_usec(script->core, steps,
                                        (guint32)core_script_number(script, script->words[2]));
    assert_int_equal(usec / G_USEC_PER_SEC, core_script_number(script, script->words[3]));
}

gboolean core_script_ask(Script *script)
{
    static const struct {
        const char *word;
        void (*func)(Script *script);
    } questions[] = {
        {"?", ask_record},        {"why", ask_why},         {"next", ask_next},
        {"planned", ask_planned}, {"peak", ask_peak},       {"needs", ask_needs},
        {"admits", ask_admits},   {"leave", ask_leave},     {"empties", ask_empties},
        {"saved", ask_saved},     {"space", ask_space},     {"missed", ask_missed},
        {"holds", ask_holds},     {"doubted", ask_doubted}, {"short", ask_short},
        {"waits", ask_waits},     {"looks", ask_looks},     {"limit", ask_limit},
        {"op", ask_op},           {"lacks", ask_lacks},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(questions); i++) {
        if (strcmp(script->words[0], questions[i].word) != 0)
            continue;
        questions[i].func(script);
        return TRUE;
    }
    return FALSE;
}
