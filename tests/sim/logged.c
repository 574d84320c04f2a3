/* SPDX-License-Identifier: Apache-2.0 */
/* Owns that a replay could do the same: what the core is told has gone through the text of its log first. */
#include "scheduler/core/journal.h"
#include "tests/sim/world_internal.h"

/* LINE is read, and what was read is written as LINE again. */
static void read_back(World *world, GString *line, BerthJournalEntry *out_entry)
{
    g_autoptr(GError) error = NULL;
    g_string_truncate(line, line->len - 1);
    g_autofree char *copy = g_strdup(line->str);
    if (!berth_journal_parse(copy, out_entry, &error))
        g_error("seed %u: \"%s\" is not read: %s", world->config.seed, line->str, error->message);
}

static void assert_same(const World *world, const GString *line, GString *again)
{
    g_string_truncate(again, again->len - 1);
    if (!g_str_equal(line->str, again->str))
        g_error("seed %u: \"%s\" is read as \"%s\"", world->config.seed, line->str, again->str);
}

gboolean logged_handle(World *world, gint64 now_usec, const BerthCoreEvent *event,
                       BerthCoreEffects *effects, GError **error)
{
    BerthJournalEntry entry;
    g_autoptr(GString) line = g_string_new(NULL);
    g_autoptr(GString) again = g_string_new(NULL);
    berth_journal_event(line, now_usec, event);
    read_back(world, line, &entry);
    berth_journal_event(again, entry.now_usec, &entry.event);
    assert_same(world, line, again);
    gboolean ok = berth_core_handle(world->core, entry.now_usec, &entry.event, effects, error);
    berth_journal_entry_clear(&entry);
    return ok;
}

void logged_restore_job(World *world, const BerthCoreJob *job, const BerthCoreTask *tasks,
                        gsize n_tasks)
{
    BerthJournalEntry entry = {.kind = BERTH_JOURNAL_RESTORED_JOB,
                               .restored_job = {.tasks = tasks, .n_tasks = n_tasks}};
    BerthJournalEntry read;
    g_autoptr(GString) line = g_string_new(NULL);
    g_autoptr(GString) again = g_string_new(NULL);
    entry.event.submitted = *job;
    berth_journal_restored(line, &entry);
    read_back(world, line, &read);
    berth_journal_restored(again, &read);
    assert_same(world, line, again);
    berth_journal_restore(world->core, &read);
    berth_journal_entry_clear(&read);
}
