/* SPDX-License-Identifier: Apache-2.0 */
/* Owns running a log of the core again. After an event the log's actions are compared with those
 * that the core asks for now; differences do not end it, though later ones may follow from them. */
#include "config.h"

#include "scheduler/sim/replay.h"

#include "common/error.h"
#include "common/words.h"
#include "scheduler/core/journal.h"
#include "scheduler/sim/input.h"
#include "scheduler/sim/story.h"
#include "scheduler/sim/words.h"

#include <string.h>

typedef struct {
    SimSource *source;
    SimInput *input;
    BerthCore *core;
    BerthCoreEffects *effects;
    GString *now;  /* actions of the core after the last event */
    GString *then; /* of the log */
    guint64 line, event_line;
    SimReplay counts;
    GError
        *torn; /* of the line before, which is no entry: not the last one's, then it is an error */
    SimStory *story; /* NULL = nobody's */
    const SimReplayConfig *config;
} Replay;

/* WORD of an action's line, with the name of a kind or reason for its number. */
static void append_word(GString *out, const char *word)
{
    guint64 number;
    const char *equals = strchr(word, '=');
    const char *verb = NULL, *reason = NULL;
    if (equals != NULL &&
        g_ascii_string_to_unsigned(equals + 1, 10, 0, G_MAXUINT32, &number, NULL)) {
        if (g_str_has_prefix(word, "kind="))
            verb = sim_action_verb((guint)number);
        else if (g_str_has_prefix(word, "reason="))
            reason = berth_words_reason_name((guint)number);
    }
    g_autofree char *name = verb != NULL ? g_ascii_strup(verb, -1) : NULL;
    g_string_append_printf(out, " %s%s", reason != NULL ? "reason=" : "",
                           name != NULL     ? name
                           : reason != NULL ? reason
                                            : word);
}

/* Lines of actions as people read them: with names for numbers. */
static char *readable(const GString *actions)
{
    g_auto(GStrv) lines = g_strsplit(actions->str, "\n", -1);
    g_autoptr(GString) out = g_string_new(NULL);
    if (actions->len == 0)
        return g_strdup("    nothing\n");
    for (guint i = 0; lines[i] != NULL && *lines[i] != '\0'; i++) {
        g_autofree char *line = sim_printable(lines[i]);
        g_auto(GStrv) words = g_strsplit(line, " ", -1);
        g_string_append(out, "   ");
        for (guint k = 1; words[0] != NULL && words[k] != NULL; k++)
            append_word(out, words[k]);
        g_string_append_c(out, '\n');
    }
    return g_string_free(g_steal_pointer(&out), FALSE);
}

static void take_actions(Replay *replay)
{
    for (guint i = 0; i < replay->effects->actions->len; i++)
        berth_journal_action(replay->now,
                             &g_array_index(replay->effects->actions, BerthCoreAction, i));
    berth_core_effects_clear(replay->effects);
}

static void compare(Replay *replay)
{
    if (!g_string_equal(replay->now, replay->then) &&
        ++replay->counts.n_different <= SIM_REPLAY_TOLD_MAX) {
        g_autofree char *then = readable(replay->then);
        g_autofree char *now = readable(replay->now);
        g_autofree char *text =
            g_strdup_printf("line %" G_GUINT64_FORMAT
                            ": after this event the log has\n%s  and the core asks for\n%s",
                            replay->event_line, then, now);
        replay->config->tell(text, replay->config->user_data);
    }
    g_string_truncate(replay->now, 0);
    g_string_truncate(replay->then, 0);
}

static gboolean begin_core(Replay *replay, const BerthJournalEntry *entry, GError **error)
{
    const SimReplayConfig *asked = replay->config;
    BerthCoreConfig config = entry->config;
    gint64 tunings[BERTH_TUNING_N];
    if (replay->core != NULL)
        return sim_input_refuse(replay->input, error, "a second config");
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        tunings[i] =
            asked->is_tuned != NULL && asked->is_tuned[i] ? asked->tunings[i] : entry->tunings[i];
    config.tunings = tunings;
    replay->counts.policy = config.policy;
    replay->counts.features = config.features;
    replay->core = berth_core_new(&config);
    return TRUE;
}

/* What is missing of the actions after the last event was not written any more: whoever wrote the log
 * was killed. */
static void compare_last(Replay *replay)
{
    g_autofree char *then =
        g_strndup(replay->then->str, replay->then->len - MIN(replay->then->len, 1));
    if (replay->config->is_tuned != NULL || !g_str_has_prefix(replay->now->str, then))
        compare(replay);
    else if (!g_string_equal(replay->now, replay->then))
        replay->counts.torn_line = replay->line;
}

static gboolean apply(Replay *replay, const BerthJournalEntry *entry, GError **error)
{
    if (entry->kind == BERTH_JOURNAL_CONFIG)
        return begin_core(replay, entry, error);
    if (replay->core == NULL)
        return sim_input_refuse(replay->input, error, "before config, with which a log begins");
    compare(replay);
    replay->event_line = replay->line;
    if (entry->kind == BERTH_JOURNAL_NODE) {
        if (berth_core_add_node(replay->core, entry->name) != entry->node)
            return sim_input_refuse(replay->input, error, "handles do not count from 1");
    } else if (entry->kind == BERTH_JOURNAL_RESUME) {
        berth_core_resume(replay->core, entry->now_usec, replay->effects);
    } else if (entry->kind != BERTH_JOURNAL_EVENT) {
        berth_journal_restore(replay->core, entry);
    } else {
        replay->counts.n_events++;
        berth_core_handle(replay->core, entry->now_usec, &entry->event, replay->effects, NULL);
    }
    if (replay->story != NULL)
        sim_story_entry(replay->story, replay->core, entry, replay->effects);
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

/* At the end of the file. */
static gboolean finish(Replay *replay, GError **error)
{
    compare_last(replay);
    if (replay->counts.n_events == 0 && replay->torn == NULL)
        return sim_input_refuse(replay->input, error, "no event in this log");
    if (replay->counts.n_events == 0) {
        g_propagate_error(error, g_steal_pointer(&replay->torn));
        return FALSE;
    }
    if (replay->torn != NULL)
        replay->counts.torn_line = replay->line;
    if (replay->story == NULL || sim_story_is_begun(replay->story))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "--explain %" G_GUINT64_FORMAT ": no such job in %s", replay->config->explain,
                replay->config->path);
    return FALSE;
}

static gboolean run(Replay *replay, GError **error)
{
    const char *file;
    char *line;
    replay->source = sim_source_new(replay->config->path, error);
    if (replay->source != NULL)
        replay->input = sim_input_open(replay->source, error);
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
    return finish(replay, error);
}

gboolean sim_replay_run(const SimReplayConfig *config, SimReplay *out_replay, GError **error)
{
    Replay replay = {.effects = berth_core_effects_new(),
                     .now = g_string_new(NULL),
                     .then = g_string_new(NULL),
                     .config = config};
    if (config->explain != 0)
        replay.story = sim_story_new(config->explain, config->tell, config->user_data);
    gboolean ok = run(&replay, error);
    *out_replay = replay.counts;
    g_clear_pointer(&replay.input, sim_input_close);
    g_clear_pointer(&replay.source, sim_source_free);
    g_clear_pointer(&replay.core, berth_core_free);
    sim_story_free(replay.story);
    berth_core_effects_free(replay.effects);
    g_string_free(replay.now, TRUE);
    g_string_free(replay.then, TRUE);
    g_clear_error(&replay.torn);
    return ok;
}
