/* SPDX-License-Identifier: Apache-2.0 */
/* Owns running a log of the core again. After an event the log's actions are compared with those
 * that the core asks for now; differences do not end it, though later ones may follow from them. */
#include "config.h"

#include "scheduler/sim/replay.h"

#include "common/error.h"
#include "scheduler/core/journal.h"
#include "scheduler/sim/input.h"

#define TOLD_MAX 20u

typedef struct {
    SimInput *input;
    BerthCore *core;
    BerthCoreEffects *effects;
    GString *now;  /* actions of the core after the last event */
    GString *then; /* of the log */
    guint64 line, event_line;
    SimReplay counts;
    GError
        *torn; /* of the line before, which is no entry: not the last one's, then it is an error */
    void (*tell)(const char *text, gpointer user_data);
    gpointer user_data;
} Replay;

static void take_actions(Replay *replay)
{
    for (guint i = 0; i < replay->effects->actions->len; i++)
        berth_journal_action(replay->now,
                             &g_array_index(replay->effects->actions, BerthCoreAction, i));
    berth_core_effects_clear(replay->effects);
}

static void compare(Replay *replay)
{
    if (!g_string_equal(replay->now, replay->then) && ++replay->counts.n_different <= TOLD_MAX) {
        g_autofree char *text = g_strdup_printf(
            "line %" G_GUINT64_FORMAT ": after this event the log has\n%sand the core asks for\n%s",
            replay->event_line, replay->then->len > 0 ? replay->then->str : "nothing\n",
            replay->now->len > 0 ? replay->now->str : "nothing\n");
        replay->tell(text, replay->user_data);
    }
    g_string_truncate(replay->now, 0);
    g_string_truncate(replay->then, 0);
}

static gboolean begin_core(Replay *replay, const BerthJournalEntry *entry, GError **error)
{
    BerthCoreConfig config = entry->config;
    if (replay->core != NULL)
        return sim_input_refuse(replay->input, error, "a second config");
    config.tunings = entry->tunings;
    replay->core = berth_core_new(&config);
    return TRUE;
}

/* What is missing of the actions after the last event was not written any more: whoever wrote the log
 * was killed. */
static void compare_last(Replay *replay)
{
    g_autofree char *then =
        g_strndup(replay->then->str, replay->then->len - MIN(replay->then->len, 1));
    if (!g_str_has_prefix(replay->now->str, then))
        compare(replay);
}

static gboolean apply(Replay *replay, const BerthJournalEntry *entry, GError **error)
{
    if (entry->kind == BERTH_JOURNAL_CONFIG)
        return begin_core(replay, entry, error);
    if (replay->core == NULL)
        return sim_input_refuse(replay->input, error, "before config, with which a log begins");
    compare(replay);
    replay->event_line = replay->line;
    if (entry->kind == BERTH_JOURNAL_NODE)
        return berth_core_add_node(replay->core, entry->name) == entry->node ||
               sim_input_refuse(replay->input, error, "handles do not count from 1");
    if (entry->kind == BERTH_JOURNAL_RESUME) {
        berth_core_resume(replay->core, entry->now_usec, replay->effects);
    } else if (entry->kind != BERTH_JOURNAL_EVENT) {
        berth_journal_restore(replay->core, entry);
    } else {
        replay->counts.n_events++;
        berth_core_handle(replay->core, entry->now_usec, &entry->event, replay->effects, NULL);
    }
    take_actions(replay);
    return TRUE;
}

static gboolean take_line(Replay *replay, char *line, GError **error)
{
    BerthJournalEntry entry;
    g_autoptr(GError) problem = NULL;
    g_autofree char *copy = g_strdup(line);
    replay->line++;
    if (replay->torn != NULL) {
        g_propagate_error(error, g_steal_pointer(&replay->torn));
        return FALSE;
    }
    if (!berth_journal_parse(copy, &entry, &problem)) {
        sim_input_refuse(replay->input, &replay->torn, "%s", problem->message);
        return TRUE;
    }
    if (entry.kind == BERTH_JOURNAL_ACTION) {
        replay->counts.n_actions++;
        g_string_append_printf(replay->then, "%s\n", line);
        return TRUE;
    }
    gboolean ok = apply(replay, &entry, error);
    berth_journal_entry_clear(&entry);
    return ok;
}

static gboolean run(Replay *replay, const char *path, GError **error)
{
    const char *file;
    char *line;
    replay->input = sim_input_open(path, error);
    if (replay->input == NULL || !sim_input_next_file(replay->input, &file, error))
        return FALSE;
    while (file != NULL) {
        if (!sim_input_next_line(replay->input, &line, error))
            return FALSE;
        if (line == NULL)
            break;
        if (!take_line(replay, line, error))
            return FALSE;
    }
    compare_last(replay);
    if (replay->counts.n_events > 0)
        return TRUE;
    if (replay->torn == NULL)
        return sim_input_refuse(replay->input, error, "no event in this log");
    g_propagate_error(error, g_steal_pointer(&replay->torn));
    return FALSE;
}

gboolean sim_replay_run(const char *path, void (*tell)(const char *text, gpointer user_data),
                        gpointer user_data, SimReplay *out_replay, GError **error)
{
    Replay replay = {.effects = berth_core_effects_new(),
                     .now = g_string_new(NULL),
                     .then = g_string_new(NULL),
                     .tell = tell,
                     .user_data = user_data};
    gboolean ok = run(&replay, path, error);
    *out_replay = replay.counts;
    g_clear_pointer(&replay.input, sim_input_close);
    g_clear_pointer(&replay.core, berth_core_free);
    berth_core_effects_free(replay.effects);
    g_string_free(replay.now, TRUE);
    g_string_free(replay.then, TRUE);
    g_clear_error(&replay.torn);
    return ok;
}
