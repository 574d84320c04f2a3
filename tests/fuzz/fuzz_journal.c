/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of what claims to be a log of the core. What is accepted is written again in one way, which
 * is read back as the same. */
#include "scheduler/core/journal.h"

#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *written(const BerthJournalEntry *entry)
{
    g_autoptr(GString) out = g_string_new(NULL);
    BerthCoreConfig config = entry->config;
    config.tunings = entry->tunings;
    if (entry->kind == BERTH_JOURNAL_CONFIG)
        berth_journal_config(out, &config);
    else if (entry->kind == BERTH_JOURNAL_NODE)
        berth_journal_node(out, entry->node, entry->name);
    else if (entry->kind == BERTH_JOURNAL_RESUME)
        berth_journal_resume(out, entry->now_usec);
    else if (entry->kind == BERTH_JOURNAL_EVENT)
        berth_journal_event(out, entry->now_usec, &entry->event);
    else if (entry->kind != BERTH_JOURNAL_ACTION)
        berth_journal_restored(out, entry);
    g_string_truncate(out, out->len > 0 ? out->len - 1 : 0);
    return g_string_free(g_steal_pointer(&out), FALSE);
}

static void check(char *line)
{
    BerthJournalEntry entry, again;
    g_autoptr(GError) error = NULL;
    if (!berth_journal_parse(line, &entry, &error)) {
        g_assert(error != NULL);
        return;
    }
    g_autofree char *first = written(&entry);
    g_autofree char *copy = g_strdup(first);
    berth_journal_entry_clear(&entry);
    if (*first == '\0') /* an action is not taken apart */
        return;
    g_assert(berth_journal_parse(copy, &again, NULL));
    g_autofree char *second = written(&again);
    g_assert_cmpstr(first, ==, second);
    berth_journal_entry_clear(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = g_strndup((const char *)data, size);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++)
        check(*line);
    return 0;
}
