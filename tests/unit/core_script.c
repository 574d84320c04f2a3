/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the core that a script plays, the clock and what was reported of jobs. Plays line by line: an event,
 * a question, or what is done with the core itself; then the actions that follow must be those that
 * the line names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/error.h"
#include "tests/unit/core_script_internal.h"

#include <string.h>

const BerthCoreConfig core_script_config = {
    .node_timeout_usec = 60 * (gint64)G_USEC_PER_SEC,
    .stop_grace_usec = 10 * (gint64)G_USEC_PER_SEC,
    .requeues_max = 2,
    .start_retries_max = 2,
    .start_backoff_usec = 4 * (gint64)G_USEC_PER_SEC,
    .can_fence = TRUE,
};

static void keep_nodes(Script *script)
{
    for (guint i = 0; i < script->effects->nodes->len; i++) {
        guint32 node = g_array_index(script->effects->nodes, guint32, i);
        assert_true(berth_core_get_node(script->core, node, &script->told[node]));
    }
}

static void keep_records(Script *script)
{
    keep_nodes(script);
    for (guint i = 0; i < script->effects->changed->len; i++) {
        guint64 job = g_array_index(script->effects->changed, BerthGuestId, i).job;
        Record *record = &script->records[job];
        BerthCoreJob now;
        if (!berth_core_get_task(script->core, job, 0, &record->task))
            continue;
        if (!berth_core_get_guest(script->core, job, 0, 0, &record->guest))
            record->guest.phase = BERTH_GUEST_NONE;
        assert_true(berth_core_get_job(script->core, job, &now));
        record->job.held = now.held;
        record->job.held_by_operator = now.held_by_operator;
        record->job.time_limit_usec = now.time_limit_usec;
    }
}

void core_script_handle(Script *script, const BerthCoreEvent *event)
{
    gboolean ok =
        berth_core_handle(script->core, script->now_usec, event, script->effects, &script->error);
    assert_true(ok == (script->error == NULL));
    keep_records(script);
}

static void restart(Script *script)
{
    guint32 n_nodes = berth_core_n_nodes(script->core);
    BerthCoreNode nodes[N_NODES_MAX + 1];
    BerthCore *core = berth_core_new(&script->config);
    for (guint32 node = 1; node <= n_nodes; node++) {
        assert_true(berth_core_get_node(script->core, node, &nodes[node]));
        assert_int_equal(berth_core_add_node(core, nodes[node].name), node);
        berth_core_restore_node(core, node, nodes[node].state, nodes[node].since_usec,
                                script->told[node].admission, &script->infos[node]);
    }
    for (guint i = 1; i < N_JOBS_MAX; i++) {
        const Record *record = &script->records[i];
        if (record->is_known && !(berth_job_state_is_final(record->task.state) &&
                                  record->task.phase == BERTH_GUEST_NONE))
            berth_core_restore_job(core, &record->job, &record->task, 1);
        if (record->is_known && core_script_has(script, "guests") &&
            record->guest.phase != BERTH_GUEST_NONE)
            berth_core_restore_guest(core, &record->guest);
    }
    berth_core_free(script->core);
    script->core = core;
    berth_core_resume(core, script->now_usec, script->effects);
    keep_records(script);
}

/* --- lines ---------------------------------------------------------------------------------- */

static void play(Script *script)
{
    if (strcmp(script->words[0], "at") == 0)
        script->now_usec =
            SECOND_0_USEC + (gint64)core_script_number(script, script->words[1]) * G_USEC_PER_SEC;
    else if (strcmp(script->words[0], "restart") == 0)
        restart(script);
    else if (!core_script_play_event(script) && !core_script_ask(script))
        fail_msg("%s: what is that?", script->line);
}

static void append_guest(GString *text, const BerthGuestId *id)
{
    g_string_append_printf(text, "%u", (guint)id->job);
    if (id->task > 0)
        g_string_append_printf(text, "/%u", id->task);
    if (id->guest > 0)
        g_string_append_printf(text, "+%u", id->guest);
    g_string_append_printf(text, ".%u", id->epoch);
}

static void append_cells(GString *text, guint32 cells)
{
    const char *before = "[";
    for (guint i = 0; i < BERTH_CELLS_MAX; i++) {
        if (!(cells & (1u << i)))
            continue;
        g_string_append_printf(text, "%s%u", before, i);
        before = ",";
    }
    if (cells != 0)
        g_string_append_c(text, ']');
}

static char *actions_as_text(const BerthCoreEffects *effects)
{
    static const char *const kinds[] = {[BERTH_ACTION_START] = "START",
                                        [BERTH_ACTION_STOP] = "STOP",
                                        [BERTH_ACTION_RELEASE] = "RELEASE",
                                        [BERTH_ACTION_FENCE] = "FENCE",
                                        [BERTH_ACTION_STAY] = "STAY",
                                        [BERTH_ACTION_MIGRATE] = "MIGRATE",
                                        [BERTH_ACTION_CHECKPOINT] = "CHECKPOINT",
                                        [BERTH_ACTION_RESTORE] = "RESTORE",
                                        [BERTH_ACTION_RESIZE] = "RESIZE",
                                        [BERTH_ACTION_FREEZE] = "FREEZE",
                                        [BERTH_ACTION_THAW] = "THAW"};
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < effects->actions->len; i++) {
        const BerthCoreAction *action = &g_array_index(effects->actions, BerthCoreAction, i);
        g_string_append_printf(text, "%s%s ", i > 0 ? " " : "", kinds[action->kind]);
        append_guest(text, &action->guest);
        g_string_append_printf(text, "@%u", action->node);
        if (action->kind == BERTH_ACTION_MIGRATE)
            g_string_append_printf(text, ">%u", action->to);
        if (action->kind == BERTH_ACTION_CHECKPOINT && !action->stops)
            g_string_append_printf(text, "#%u", action->checkpoint);
        append_cells(text, action->cells);
        if (action->balloon_mib > 0)
            g_string_append_printf(text, "(%" G_GUINT64_FORMAT ")", action->balloon_mib);
        if (action->is_opportunistic)
            g_string_append(text, "~");
        if (action->thaws)
            g_string_append(text, "^");
        if (action->kind == BERTH_ACTION_RESIZE &&
            (action->reason == BERTH_REASON_RESIZED_BY_USER ||
             action->reason == BERTH_REASON_RESIZED_BY_OPERATOR))
            g_string_append_printf(text, "=%u/%" G_GUINT64_FORMAT, action->resources.vcpus,
                                   action->resources.memory_mib);
    }
    return g_string_free(text, FALSE);
}

static void check_refusal(const Script *script, const char *words)
{
    if (words == NULL && script->error != NULL)
        fail_msg("%s: refused: %s", script->line, script->error->message);
    if (words != NULL && script->error == NULL)
        fail_msg("%s: not refused", script->line);
    if (words != NULL && strstr(script->error->message, words) == NULL)
        fail_msg("%s: refused with other words: %s", script->line, script->error->message);
    if (words != NULL)
        assert_true(script->error->domain == BERTH_ERROR);
}

static void play_line(Script *script, const char *line)
{
    g_auto(GStrv) by_arrow = g_strsplit(line, "->", 2);
    g_auto(GStrv) by_bang = g_strsplit(by_arrow[0], "!", 2);
    const char *expected = g_strv_length(by_arrow) > 1 ? g_strstrip(by_arrow[1]) : "";
    const char *refusal = g_strv_length(by_bang) > 1 ? g_strstrip(by_bang[1]) : NULL;
    g_auto(GStrv) words = g_strsplit(g_strstrip(by_bang[0]), " ", -1);
    script->line = line;
    script->words = words;
    play(script);
    g_autofree char *actions = actions_as_text(script->effects);
    if (strcmp(actions, expected) != 0)
        fail_msg("%s: the actions are: %s", line, actions);
    check_refusal(script, refusal);
    g_clear_error(&script->error);
    berth_core_effects_clear(script->effects);
    berth_core_assert_invariants(script->core);
}

void core_script_run(const BerthCoreConfig *config, const char *text)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    g_autofree Script *script = g_new0(Script, 1);
    script->config = *config;
    script->now_usec = SECOND_0_USEC;
    script->core = berth_core_new(config);
    script->effects = berth_core_effects_new();
    for (char **line = lines; *line != NULL; line++)
        if (*g_strstrip(*line) != '\0')
            play_line(script, *line);
    berth_core_free(script->core);
    berth_core_effects_free(script->effects);
}

void core_script_run_tuned(guint32 features, BerthCoreTuning tuning, gint64 value,
                           const char *script)
{
    gint64 tunings[BERTH_TUNING_N];
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        tunings[i] = berth_core_tuning((BerthCoreTuning)i)->value;
    tunings[BERTH_TUNING_SETTLE_USEC] = 10 * (gint64)G_USEC_PER_SEC;
    tunings[BERTH_TUNING_PEAK_MARGIN_PERMILLE] = 0;
    tunings[BERTH_TUNING_CPU_HEADROOM_PERMILLE] = 0;
    tunings[BERTH_TUNING_MOVES_PER_CLUSTER_PERMILLE] = 1000;
    tunings[tuning] = value;
    BerthCoreConfig config = core_script_config;
    config.policy = BERTH_POLICY_CONSERVATIVE;
    config.features = features;
    config.tunings = tunings;
    core_script_run(&config, script);
}
