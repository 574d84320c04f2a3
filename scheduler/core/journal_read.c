/* SPDX-License-Identifier: Apache-2.0 */
/* Owns reading the text of the core's log, which may be anything: what is returned holds only what
 * its kind of entry may hold. */
#include "scheduler/core/journal_text.h"

#include "common/error.h"

#include <string.h>

static gboolean refuse(GError **error, const char *what, const char *text)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "%s: %.60s", what, text);
    return FALSE;
}

static gboolean read_unsigned(const char *name, const char *text, guint64 max, guint64 *out_value,
                              GError **error)
{
    if (g_ascii_string_to_unsigned(text, 10, 0, max, out_value, NULL))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "%s=%.60s: not a number from 0 to %" G_GUINT64_FORMAT, name, text, max);
    return FALSE;
}

static gboolean read_signed(const char *name, const char *text, gint64 min, gint64 max,
                            gint64 *out_value, GError **error)
{
    if (g_ascii_string_to_signed(text, 10, min, max, out_value, NULL))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "%s=%.60s: not a number from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT, name, text,
                min, max);
    return FALSE;
}

static gboolean read_value(gpointer base, const JournalMember *member, const char *text,
                           GError **error)
{
    guint64 u = 0;
    gint64 i = 0;
    switch (member->type) {
    case JOURNAL_U32:
        if (!read_unsigned(member->name, text, G_MAXUINT32, &u, error))
            return FALSE;
        G_STRUCT_MEMBER(guint32, base, member->offset) = (guint32)u;
        return TRUE;
    case JOURNAL_I32:
        if (!read_signed(member->name, text, G_MININT32, G_MAXINT32, &i, error))
            return FALSE;
        G_STRUCT_MEMBER(gint32, base, member->offset) = (gint32)i;
        return TRUE;
    case JOURNAL_U64:
        if (!read_unsigned(member->name, text, G_MAXUINT64, &u, error))
            return FALSE;
        G_STRUCT_MEMBER(guint64, base, member->offset) = u;
        return TRUE;
    default:
        if (!read_signed(member->name, text, G_MININT64, G_MAXINT64, &i, error))
            return FALSE;
        G_STRUCT_MEMBER(gint64, base, member->offset) = i;
        return TRUE;
    }
}

static gboolean read_element(guint8 *at, const JournalList *list, char *text, GError **error)
{
    g_auto(GStrv) values = g_strsplit(text, ":", -1);
    if (g_strv_length(values) != list->n_members)
        return refuse(error, list->name, text);
    for (guint k = 0; k < list->n_members; k++)
        if (!read_value(at, &list->members[k], values[k], error))
            return FALSE;
    return TRUE;
}

static gboolean read_list(gpointer base, const JournalList *list, const char *text, gpointer *keep,
                          GError **error)
{
    g_auto(GStrv) elements = g_strsplit(text, ",", -1);
    guint n = g_strv_length(elements);
    if (n == 0 || n > list->max)
        return refuse(error, list->name, text);
    guint8 *at = list->is_inline ? (guint8 *)base + list->offset : NULL;
    if (at == NULL) {
        if (*keep != NULL)
            return refuse(error, "a list comes twice", list->name);
        *keep = g_malloc0_n(n, list->stride);
        at = *keep;
        G_STRUCT_MEMBER(gpointer, base, list->offset) = at;
        G_STRUCT_MEMBER(gsize, base, list->count_offset) = n;
    } else {
        G_STRUCT_MEMBER(guint32, base, list->count_offset) = n;
    }
    for (guint i = 0; i < n; i++, at += list->stride)
        if (!read_element(at, list, elements[i], error))
            return FALSE;
    return TRUE;
}

/* What NAME is of BASE, as TABLE says; KEEP: where its lists are kept. *OUT_FOUND FALSE: TABLE has
 * none of that name. */
static gboolean read_of(gpointer base, const JournalTable *table, gpointer *keep, const char *name,
                        const char *text, gboolean *out_found, GError **error)
{
    *out_found = TRUE;
    for (guint i = 0; i < table->n_members; i++)
        if (g_str_equal(name, table->members[i].name))
            return read_value(base, &table->members[i], text, error);
    for (guint i = 0; i < table->n_lists; i++)
        if (g_str_equal(name, table->lists[i].name))
            return read_list(base, &table->lists[i], text, &keep[i], error);
    *out_found = FALSE;
    return TRUE;
}

static gboolean read_event_word(BerthJournalEntry *entry, BerthEventKind kind, const char *name,
                                const char *text, gboolean *out_found, GError **error)
{
    return read_of(&entry->event, &journal_event_common, NULL, name, text, out_found, error) &&
           (*out_found || read_of(&entry->event, journal_event(kind), entry->lists, name, text,
                                  out_found, error));
}

static gboolean read_restored_word(BerthJournalEntry *entry, const char *name, const char *text,
                                   gboolean *out_found, GError **error)
{
    BerthEventKind event = journal_restored_event(entry->kind);
    *out_found = FALSE;
    if (event != 0 && !read_event_word(entry, event, name, text, out_found, error))
        return FALSE;
    return *out_found || read_of(entry, journal_restored(entry->kind), &entry->list, name, text,
                                 out_found, error);
}

static gboolean read_tunings(BerthJournalEntry *entry, const char *text, GError **error)
{
    g_auto(GStrv) values = g_strsplit(text, ",", -1);
    if (g_strv_length(values) != BERTH_TUNING_N)
        return refuse(
            error,
            "not as many tunings as this core has: written by another version, which can replay it",
            text);
    for (guint i = 0; i < BERTH_TUNING_N; i++) {
        const BerthCoreTuningInfo *info = berth_core_tuning((BerthCoreTuning)i);
        if (read_signed(info->name, values[i], info->min, info->max, &entry->tunings[i], error))
            continue;
        g_prefix_error(error, "tunings: ");
        return FALSE;
    }
    return TRUE;
}

static gboolean read_config_word(BerthJournalEntry *entry, const char *name, const char *text,
                                 gboolean *out_found, GError **error)
{
    *out_found = g_str_equal(name, "tunings");
    return *out_found
               ? read_tunings(entry, text, error)
               : read_of(&entry->config, &journal_config, NULL, name, text, out_found, error);
}

static gboolean read_word(BerthJournalEntry *entry, const char *name, const char *text,
                          GError **error)
{
    gboolean found, ok;
    if (entry->kind == BERTH_JOURNAL_CONFIG)
        ok = read_config_word(entry, name, text, &found, error);
    else if (entry->kind == BERTH_JOURNAL_EVENT)
        ok = read_event_word(entry, entry->event.kind, name, text, &found, error);
    else
        ok = read_restored_word(entry, name, text, &found, error);
    return ok && (found || refuse(error, "unknown member", name));
}

static gboolean read_words(BerthJournalEntry *entry, char **words, GError **error)
{
    for (; *words != NULL; words++) {
        char *equals = strchr(*words, '=');
        if (equals == NULL)
            return refuse(error, "not NAME=VALUE", *words);
        *equals = '\0';
        if (!read_word(entry, *words, equals + 1, error))
            return FALSE;
    }
    return TRUE;
}

/* Without its tunings they would be 0, which few may be. */
static gboolean read_config(BerthJournalEntry *entry, char **words, GError **error)
{
    gboolean has_tunings = FALSE;
    for (guint i = 1; words[i] != NULL; i++)
        has_tunings |= g_str_has_prefix(words[i], "tunings=");
    if (!has_tunings)
        return refuse(error, "without tunings", words[0]);
    return read_words(entry, words + 1, error);
}

static gboolean check_ranges(const BerthIndexRange *ranges, gsize n, const char *name,
                             GError **error)
{
    for (gsize i = 0; i < n; i++)
        if (!berth_index_range_is_valid(&ranges[i]))
            return refuse(error, "a range without a step, or that ends before it begins", name);
    return TRUE;
}

/* The core takes them as they are. */
static gboolean check_submitted(const BerthCoreJob *job, GError **error)
{
    for (gsize i = 0; i < job->n_completed; i++)
        if (!check_ranges(&job->completed[i].tasks, 1, "completed", error))
            return FALSE;
    return check_ranges(job->tasks_held_by_user, job->n_held_by_user, "held-tasks", error) &&
           check_ranges(job->tasks_held_by_operator, job->n_held_by_operator,
                        "held-tasks-by-operator", error);
}

/* All of an array (step 0), or ranges that rise. */
static gboolean check_tasks(const BerthCoreEvent *event, GError **error)
{
    const BerthIndexRange *before = &event->request.tasks;
    const BerthIndexRange *others = event->request.others;
    gsize n_others = event->request.n_others;
    if (before->step == 0)
        return n_others == 0 || refuse(error, "beside all tasks", "others");
    if (!check_ranges(before, 1, "request.tasks", error) ||
        !check_ranges(others, n_others, "others", error))
        return FALSE;
    for (gsize i = 0; i < n_others; i++) {
        if (others[i].first <= before->last)
            return refuse(error, "ranges that do not rise", "others");
        before = &others[i];
    }
    return TRUE;
}

static gboolean check_event(const BerthCoreEvent *event, GError **error)
{
    switch (event->kind) {
    case BERTH_EVENT_JOB_SUBMITTED:
        return check_submitted(&event->submitted, error);
    case BERTH_EVENT_JOB_CANCELLED:
    case BERTH_EVENT_JOB_HELD:
    case BERTH_EVENT_JOB_RELEASED:
    case BERTH_EVENT_JOB_FREEZE_WANTED:
        return check_tasks(event, error);
    default:
        return TRUE;
    }
}

/* Later than anybody's clock shows; what is far from that may be added to. */
#define TIME_MAX_USEC ((gint64)1 << 60)

static gboolean read_time(BerthJournalEntry *entry, const char *text, GError **error)
{
    return g_ascii_string_to_signed(text, 10, 0, TIME_MAX_USEC, &entry->now_usec, NULL) ||
           refuse(error, "no time", text);
}

static gboolean read_event(BerthJournalEntry *entry, char **words, guint n, GError **error)
{
    if (n < 3 || !read_time(entry, words[1], error))
        return n >= 3 ? FALSE : refuse(error, "an event without time or kind", words[0]);
    if (journal_event_of(words[2], &entry->event.kind) == NULL)
        return refuse(error, "no kind of event", words[2]);
    return read_words(entry, words + 3, error) && check_event(&entry->event, error);
}

static gboolean read_node(BerthJournalEntry *entry, char **words, guint n, GError **error)
{
    guint64 node;
    if (n != 3 || !g_ascii_string_to_unsigned(words[1], 10, 1, G_MAXUINT32, &node, NULL))
        return refuse(error, "not node HANDLE NAME", words[0]);
    entry->node = (guint32)node;
    entry->name = g_strdup(words[2]);
    return TRUE;
}

/* The core takes what it is given back as it is. */
static gboolean check_restored(const BerthJournalEntry *entry, GError **error)
{
    BerthNodeState node = entry->restored_node.state;
    if (entry->kind == BERTH_JOURNAL_RESTORED_NODE &&
        (node < BERTH_NODE_UP || node > BERTH_NODE_LOST))
        return refuse(error, "no state of a node", "restored_node.state");
    if ((guint)entry->restored_node.admission > BERTH_ADMISSION_DRAINING)
        return refuse(error, "no admission of a node", "restored_node.admission");
    for (gsize i = 0; i < entry->restored_job.n_tasks; i++) {
        const BerthCoreTask *task = &entry->restored_job.tasks[i];
        if ((guint)task->phase > BERTH_GUEST_FENCING || task->state < BERTH_JOB_PENDING ||
            task->state > BERTH_JOB_OUT_OF_MEMORY)
            return refuse(error, "no state or phase of a task", "tasks");
    }
    return entry->kind != BERTH_JOURNAL_RESTORED_JOB ||
           check_submitted(&entry->event.submitted, error);
}

static gboolean read_entry(BerthJournalEntry *entry, char **words, GError **error)
{
    guint n = g_strv_length(words);
    if (n > 0 && g_str_equal(words[0], "event")) {
        entry->kind = BERTH_JOURNAL_EVENT;
        return read_event(entry, words, n, error);
    }
    if (n > 0 && g_str_equal(words[0], "node")) {
        entry->kind = BERTH_JOURNAL_NODE;
        return read_node(entry, words, n, error);
    }
    if (n > 0 && g_str_equal(words[0], "config")) {
        entry->kind = BERTH_JOURNAL_CONFIG;
        return read_config(entry, words, error);
    }
    if (n == 2 && g_str_equal(words[0], "resume")) {
        entry->kind = BERTH_JOURNAL_RESUME;
        return read_time(entry, words[1], error);
    }
    if (n > 0 && journal_restored_of(words[0], &entry->kind) != NULL)
        return read_words(entry, words + 1, error) && check_restored(entry, error);
    return refuse(error, "none of config, node, restored-..., resume, event and action",
                  n > 0 ? words[0] : "");
}

gboolean berth_journal_parse(char *line, BerthJournalEntry *out_entry, GError **error)
{
    BerthJournalEntry entry = {0};
    if (g_str_equal(line, "action") || g_str_has_prefix(line, "action ")) {
        entry.kind = BERTH_JOURNAL_ACTION;
        *out_entry = entry;
        return TRUE;
    }
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    if (!read_entry(&entry, words, error)) {
        berth_journal_entry_clear(&entry);
        return FALSE;
    }
    *out_entry = entry;
    return TRUE;
}

void berth_journal_entry_clear(BerthJournalEntry *entry)
{
    g_free(entry->name);
    g_free(entry->list);
    for (guint i = 0; i < G_N_ELEMENTS(entry->lists); i++)
        g_free(entry->lists[i]);
    *entry = (BerthJournalEntry){0};
}
