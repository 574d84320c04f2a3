/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the text of the core's log. Both directions go by the same tables of members. */
#include "scheduler/core/journal.h"

#include "common/error.h"

#include <string.h>

typedef enum { U32, U64, I32, I64 } Type;

typedef struct {
    const char *name;
    gsize offset;
    Type type;
} Member;

/* A pointer and a number of elements; or an array within the struct, where COUNT is a guint32. */
typedef struct {
    const char *name;
    gsize offset, count_offset, stride;
    gboolean is_inline;
    guint max;
    const Member *members;
    guint n_members;
} List;

#define E(member, type)                                                                            \
    {                                                                                              \
#member, G_STRUCT_OFFSET(BerthCoreEvent, member), type                                     \
    }
#define IN(of, member, type)                                                                       \
    {                                                                                              \
#member, G_STRUCT_OFFSET(of, member), type                                                 \
    }

static const Member config_members[] = {IN(BerthCoreConfig, node_timeout_usec, I64),
                                        IN(BerthCoreConfig, stop_grace_usec, I64),
                                        IN(BerthCoreConfig, guest_overhead_mib, U64),
                                        IN(BerthCoreConfig, requeues_max, U32),
                                        IN(BerthCoreConfig, start_retries_max, U32),
                                        IN(BerthCoreConfig, start_backoff_usec, I64),
                                        IN(BerthCoreConfig, can_fence, I32),
                                        IN(BerthCoreConfig, policy, U32),
                                        IN(BerthCoreConfig, features, U32)};

static const Member action_members[] = {IN(BerthCoreAction, kind, U32),
                                        IN(BerthCoreAction, guest.job, U64),
                                        IN(BerthCoreAction, guest.task, U32),
                                        IN(BerthCoreAction, guest.guest, U32),
                                        IN(BerthCoreAction, guest.epoch, U32),
                                        IN(BerthCoreAction, node, U32),
                                        IN(BerthCoreAction, reason, U32),
                                        IN(BerthCoreAction, grace_usec, I64),
                                        IN(BerthCoreAction, to, U32),
                                        IN(BerthCoreAction, from_epoch, U32),
                                        IN(BerthCoreAction, serial, U32),
                                        IN(BerthCoreAction, resources.vcpus, U32),
                                        IN(BerthCoreAction, resources.memory_mib, U64),
                                        IN(BerthCoreAction, resources.disk_mib, U64),
                                        IN(BerthCoreAction, is_opportunistic, I32),
                                        IN(BerthCoreAction, cells, U32)};

static const Member common_members[] = {E(guest.job, U64),   E(guest.task, U32),
                                        E(guest.guest, U32), E(guest.epoch, U32),
                                        E(node, U32),        E(more, I32)};
static const Member submitted_members[] = {E(submitted.id, U64),
                                           E(submitted.uid, U32),
                                           E(submitted.resources.vcpus, U32),
                                           E(submitted.resources.memory_mib, U64),
                                           E(submitted.resources.disk_mib, U64),
                                           E(submitted.time_limit_usec, I64),
                                           E(submitted.stop_grace_usec, I64),
                                           E(submitted.priority, I32),
                                           E(submitted.held, I32),
                                           E(submitted.held_by_operator, I32),
                                           E(submitted.no_requeue, I32),
                                           E(submitted.submit_usec, I64),
                                           E(submitted.guests, U32),
                                           E(submitted.array_size, U32),
                                           E(submitted.array_throttle, U32),
                                           E(submitted.account, U32),
                                           E(submitted.qos, U32),
                                           E(submitted.family, U64),
                                           E(submitted.ceiling.vcpus, U32),
                                           E(submitted.ceiling.memory_mib, U64),
                                           E(submitted.ceiling.disk_mib, U64),
                                           E(submitted.on_limit, U32),
                                           E(submitted.on_timeout, U32),
                                           E(submitted.may_move, I32),
                                           E(submitted.may_checkpoint, I32),
                                           E(submitted.opportunistic, I32)};
static const Member request_members[] = {E(request.by_operator, I32)};
static const Member joined_members[] = {E(joined.info.capacity.vcpus, U32),
                                        E(joined.info.capacity.memory_mib, U64),
                                        E(joined.info.capacity.disk_mib, U64),
                                        E(joined.info.cannot_start, I32),
                                        E(joined.info.rack, U32),
                                        E(joined.info.fabric, U32)};
static const Member changed_members[] = {E(changed.capacity.vcpus, U32),
                                         E(changed.capacity.memory_mib, U64),
                                         E(changed.capacity.disk_mib, U64),
                                         E(changed.cannot_start, I32),
                                         E(changed.rack, U32),
                                         E(changed.fabric, U32)};
static const Member running_members[] = {E(running.start_usec, I64)};
static const Member exited_members[] = {
    E(exited.start_usec, I64),      E(exited.end_usec, I64),       E(exited.exit.status, U32),
    E(exited.exit.signal, U32),     E(exited.exit.oom_kills, U32), E(exited.exit.disk_full, I32),
    E(exited.exit.not_started, I32)};
static const Member gone_members[] = {E(gone.reason, U32)};
static const Member failed_members[] = {E(start_failed.reason, U32),
                                        E(start_failed.permanent, I32)};
static const Member usage_members[] = {E(usage.cpu_milli, U32),
                                       E(usage.memory_used_mib, U64),
                                       E(usage.memory_available_mib, U64),
                                       E(usage.cpu_pressure_permille, U32),
                                       E(usage.memory_pressure_permille, U32),
                                       E(usage.throttled_permille, U32),
                                       E(usage.dirty_mib_per_sec, U32),
                                       E(usage.starved_usec, I64),
                                       E(usage.touched_mib, U64)};
static const Member node_usage_members[] = {
    E(node_usage.cpu_milli, U32), E(node_usage.memory_used_mib, U64),
    E(node_usage.cpu_pressure_permille, U32), E(node_usage.memory_pressure_permille, U32)};
static const Member result_members[] = {E(result.ok, I32), E(result.reason, U32),
                                        E(result.serial, U32)};
static const Member account_members[] = {
    E(account_set.account, U32),      E(account_set.parent, U32),
    E(account_set.shares, U32),       E(account_set.limits.running_tasks, U32),
    E(account_set.limits.vcpus, U32), E(account_set.limits.memory_mib, U64),
    E(account_set.limits.jobs, U32)};
static const Member user_members[] = {
    E(user_set.account, U32),      E(user_set.uid, U32),
    E(user_set.shares, U32),       E(user_set.limits.running_tasks, U32),
    E(user_set.limits.vcpus, U32), E(user_set.limits.memory_mib, U64),
    E(user_set.limits.jobs, U32)};
static const Member qos_members[] = {E(qos_set.qos, U32), E(qos_set.priority_permille, I32)};
static const Member maintenance_members[] = {E(maintenance.id, U32), E(maintenance.start_usec, I64),
                                             E(maintenance.end_usec, I64)};

static const Member handle_members[] = {{"node", 0, U32}};
static const Member dependency_members[] = {IN(BerthCoreDependency, kind, U32),
                                            IN(BerthCoreDependency, job, U64),
                                            IN(BerthCoreDependency, outcome, U32)};
static const Member cell_members[] = {IN(BerthCoreCell, vcpus, U32),
                                      IN(BerthCoreCell, memory_mib, U64)};
static const Member found_members[] = {
    IN(BerthFoundGuest, id.job, U64),         IN(BerthFoundGuest, id.task, U32),
    IN(BerthFoundGuest, id.guest, U32),       IN(BerthFoundGuest, id.epoch, U32),
    IN(BerthFoundGuest, phase, U32),          IN(BerthFoundGuest, start_usec, I64),
    IN(BerthFoundGuest, end_usec, I64),       IN(BerthFoundGuest, exit.status, U32),
    IN(BerthFoundGuest, exit.signal, U32),    IN(BerthFoundGuest, exit.oom_kills, U32),
    IN(BerthFoundGuest, exit.disk_full, I32), IN(BerthFoundGuest, exit.not_started, I32),
    IN(BerthFoundGuest, reason, U32)};

#define LIST_MAX (1u << 20)
#define POINTED(text, pointer, count, of, table)                                                   \
    {                                                                                              \
        text, G_STRUCT_OFFSET(BerthCoreEvent, pointer), G_STRUCT_OFFSET(BerthCoreEvent, count),    \
            sizeof(of), FALSE, LIST_MAX, table, G_N_ELEMENTS(table)                                \
    }

static const List submitted_lists[] = {
    POINTED("nodes", submitted.nodes, submitted.n_nodes, guint32, handle_members),
    POINTED("dependencies", submitted.dependencies, submitted.n_dependencies, BerthCoreDependency,
            dependency_members)};
static const List joined_lists[] = {
    POINTED("found", joined.guests, joined.n_guests, BerthFoundGuest, found_members),
    {"cells", G_STRUCT_OFFSET(BerthCoreEvent, joined.info.cells),
     G_STRUCT_OFFSET(BerthCoreEvent, joined.info.n_cells), sizeof(BerthCoreCell), TRUE,
     BERTH_CELLS_MAX, cell_members, G_N_ELEMENTS(cell_members)}};
static const List changed_lists[] = {{"cells", G_STRUCT_OFFSET(BerthCoreEvent, changed.cells),
                                      G_STRUCT_OFFSET(BerthCoreEvent, changed.n_cells),
                                      sizeof(BerthCoreCell), TRUE, BERTH_CELLS_MAX, cell_members,
                                      G_N_ELEMENTS(cell_members)}};
static const List maintenance_lists[] = {
    POINTED("nodes", maintenance.nodes, maintenance.n_nodes, guint32, handle_members)};

typedef struct {
    const char *name;
    const Member *members;
    guint n_members;
    const List *lists;
    guint n_lists;
} Event;

#define NONE(name)                                                                                 \
    {                                                                                              \
        name, NULL, 0, NULL, 0                                                                     \
    }
#define WITH(name, m)                                                                              \
    {                                                                                              \
        name, m, G_N_ELEMENTS(m), NULL, 0                                                          \
    }
#define WITH_LISTS(name, m, l)                                                                     \
    {                                                                                              \
        name, m, G_N_ELEMENTS(m), l, G_N_ELEMENTS(l)                                               \
    }

static const Event events[] = {
    [BERTH_EVENT_JOB_SUBMITTED] = WITH_LISTS("submitted", submitted_members, submitted_lists),
    [BERTH_EVENT_JOB_CANCELLED] = WITH("cancelled", request_members),
    [BERTH_EVENT_JOB_HELD] = WITH("held", request_members),
    [BERTH_EVENT_JOB_RELEASED] = WITH("unheld", request_members),
    [BERTH_EVENT_NODE_JOINED] = WITH_LISTS("joined", joined_members, joined_lists),
    [BERTH_EVENT_NODE_LEFT] = NONE("left"),
    [BERTH_EVENT_NODE_CHANGED] = WITH_LISTS("changed", changed_members, changed_lists),
    [BERTH_EVENT_START_TAKEN] = NONE("start-taken"),
    [BERTH_EVENT_GUEST_RUNNING] = WITH("running", running_members),
    [BERTH_EVENT_GUEST_EXITED] = WITH("exited", exited_members),
    [BERTH_EVENT_GUEST_GONE] = WITH("gone", gone_members),
    [BERTH_EVENT_START_FAILED] = WITH("start-failed", failed_members),
    [BERTH_EVENT_GUEST_RELEASED] = NONE("released"),
    [BERTH_EVENT_GUEST_FENCED] = NONE("fenced"),
    [BERTH_EVENT_FENCE_FAILED] = NONE("fence-failed"),
    [BERTH_EVENT_STORAGE_DOWN] = NONE("storage-down"),
    [BERTH_EVENT_STORAGE_UP] = NONE("storage-up"),
    [BERTH_EVENT_TIMER] = NONE("timer"),
    [BERTH_EVENT_GUEST_REPORTED] = WITH("reported", usage_members),
    [BERTH_EVENT_NODE_REPORTED] = WITH("node-reported", node_usage_members),
    [BERTH_EVENT_GUEST_MIGRATED] = WITH("migrated", result_members),
    [BERTH_EVENT_GUEST_CHECKPOINTED] = WITH("checkpointed", result_members),
    [BERTH_EVENT_GUEST_FROZEN] = WITH("frozen", result_members),
    [BERTH_EVENT_GUEST_THAWED] = WITH("thawed", result_members),
    [BERTH_EVENT_GUEST_RESIZED] = WITH("resized", result_members),
    [BERTH_EVENT_GUEST_THAW_WANTED] = NONE("thaw-wanted"),
    [BERTH_EVENT_NODE_DRAINED] = NONE("drained"),
    [BERTH_EVENT_NODE_UNDRAINED] = NONE("undrained"),
    [BERTH_EVENT_ACCOUNT_SET] = WITH("account-set", account_members),
    [BERTH_EVENT_USER_SET] = WITH("user-set", user_members),
    [BERTH_EVENT_QOS_SET] = WITH("qos-set", qos_members),
    [BERTH_EVENT_MAINTENANCE_SET] =
        WITH_LISTS("maintenance-set", maintenance_members, maintenance_lists),
    [BERTH_EVENT_MAINTENANCE_CLEARED] = WITH("maintenance-cleared", maintenance_members),
};

/* --- writing ------------------------------------------------------------------------------------ */

static gboolean is_zero(gconstpointer base, const Member *member)
{
    return member->type == U64 || member->type == I64
               ? G_STRUCT_MEMBER(guint64, base, member->offset) == 0
               : G_STRUCT_MEMBER(guint32, base, member->offset) == 0;
}

static void write_value(GString *out, gconstpointer base, const Member *member)
{
    switch (member->type) {
    case U32:
        g_string_append_printf(out, "%u", G_STRUCT_MEMBER(guint32, base, member->offset));
        break;
    case I32:
        g_string_append_printf(out, "%d", G_STRUCT_MEMBER(gint32, base, member->offset));
        break;
    case U64:
        g_string_append_printf(out, "%" G_GUINT64_FORMAT,
                               G_STRUCT_MEMBER(guint64, base, member->offset));
        break;
    case I64:
        g_string_append_printf(out, "%" G_GINT64_FORMAT,
                               G_STRUCT_MEMBER(gint64, base, member->offset));
        break;
    }
}

static void write_members(GString *out, gconstpointer base, const Member *members, guint n)
{
    for (guint i = 0; i < n; i++) {
        if (is_zero(base, &members[i]))
            continue;
        g_string_append_printf(out, " %s=", members[i].name);
        write_value(out, base, &members[i]);
    }
}

static void write_list(GString *out, const BerthCoreEvent *event, const List *list)
{
    gsize n = list->is_inline ? G_STRUCT_MEMBER(guint32, event, list->count_offset)
                              : G_STRUCT_MEMBER(gsize, event, list->count_offset);
    const guint8 *at = list->is_inline ? (const guint8 *)event + list->offset
                                       : G_STRUCT_MEMBER(const guint8 *, event, list->offset);
    if (n == 0)
        return;
    g_string_append_printf(out, " %s=", list->name);
    for (gsize i = 0; i < n; i++, at += list->stride) {
        for (guint k = 0; k < list->n_members; k++) {
            if (k > 0 || i > 0)
                g_string_append_c(out, k > 0 ? ':' : ',');
            write_value(out, at, &list->members[k]);
        }
    }
}

void berth_journal_config(GString *out, const BerthCoreConfig *config)
{
    g_string_append(out, "config");
    write_members(out, config, config_members, G_N_ELEMENTS(config_members));
    g_string_append(out, " tunings=");
    for (guint i = 0; i < BERTH_TUNING_N; i++) {
        gint64 value = config->tunings != NULL ? config->tunings[i]
                                               : berth_core_tuning((BerthCoreTuning)i)->value;
        g_string_append_printf(out, "%s%" G_GINT64_FORMAT, i > 0 ? "," : "", value);
    }
    g_string_append_c(out, '\n');
}

void berth_journal_node(GString *out, guint32 node, const char *name)
{
    g_string_append_printf(out, "node %u %s\n", node, name);
}

void berth_journal_resume(GString *out, gint64 now_usec)
{
    g_string_append_printf(out, "resume %" G_GINT64_FORMAT "\n", now_usec);
}

void berth_journal_event(GString *out, gint64 now_usec, const BerthCoreEvent *event)
{
    const Event *as = &events[event->kind];
    g_string_append_printf(out, "event %" G_GINT64_FORMAT " %s", now_usec, as->name);
    write_members(out, event, common_members, G_N_ELEMENTS(common_members));
    write_members(out, event, as->members, as->n_members);
    for (guint i = 0; i < as->n_lists; i++)
        write_list(out, event, &as->lists[i]);
    g_string_append_c(out, '\n');
}

void berth_journal_action(GString *out, const BerthCoreAction *action)
{
    g_string_append(out, "action");
    write_members(out, action, action_members, G_N_ELEMENTS(action_members));
    g_string_append_c(out, '\n');
}

/* --- reading ------------------------------------------------------------------------------------ */

static gboolean refuse(GError **error, const char *what, const char *text)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "%s: %.60s", what, text);
    return FALSE;
}

static gboolean read_value(gpointer base, const Member *member, const char *text, GError **error)
{
    guint64 u;
    gint64 i;
    switch (member->type) {
    case U32:
        if (!g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT32, &u, NULL))
            return refuse(error, member->name, text);
        G_STRUCT_MEMBER(guint32, base, member->offset) = (guint32)u;
        return TRUE;
    case I32:
        if (!g_ascii_string_to_signed(text, 10, G_MININT32, G_MAXINT32, &i, NULL))
            return refuse(error, member->name, text);
        G_STRUCT_MEMBER(gint32, base, member->offset) = (gint32)i;
        return TRUE;
    case U64:
        if (!g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT64, &u, NULL))
            return refuse(error, member->name, text);
        G_STRUCT_MEMBER(guint64, base, member->offset) = u;
        return TRUE;
    default:
        if (!g_ascii_string_to_signed(text, 10, G_MININT64, G_MAXINT64, &i, NULL))
            return refuse(error, member->name, text);
        G_STRUCT_MEMBER(gint64, base, member->offset) = i;
        return TRUE;
    }
}

/* *OUT_FOUND FALSE: NAME is none of them. */
static gboolean read_member(gpointer base, const Member *members, guint n, const char *name,
                            const char *text, gboolean *out_found, GError **error)
{
    *out_found = FALSE;
    for (guint i = 0; i < n; i++) {
        if (!g_str_equal(name, members[i].name))
            continue;
        *out_found = TRUE;
        return read_value(base, &members[i], text, error);
    }
    return TRUE;
}

static gboolean read_element(guint8 *at, const List *list, char *text, GError **error)
{
    g_auto(GStrv) values = g_strsplit(text, ":", -1);
    if (g_strv_length(values) != list->n_members)
        return refuse(error, list->name, text);
    for (guint k = 0; k < list->n_members; k++)
        if (!read_value(at, &list->members[k], values[k], error))
            return FALSE;
    return TRUE;
}

static gboolean read_list(BerthJournalEntry *entry, const List *list, gpointer *keep,
                          const char *text, GError **error)
{
    g_auto(GStrv) elements = g_strsplit(text, ",", -1);
    guint n = g_strv_length(elements);
    if (n == 0 || n > list->max || *keep != NULL)
        return refuse(error, list->name, text);
    guint8 *at = list->is_inline ? (guint8 *)&entry->event + list->offset : NULL;
    if (at == NULL) {
        *keep = g_malloc0_n(n, list->stride);
        at = *keep;
        G_STRUCT_MEMBER(gpointer, &entry->event, list->offset) = at;
        G_STRUCT_MEMBER(gsize, &entry->event, list->count_offset) = n;
    } else {
        G_STRUCT_MEMBER(guint32, &entry->event, list->count_offset) = n;
    }
    for (guint i = 0; i < n; i++, at += list->stride)
        if (!read_element(at, list, elements[i], error))
            return FALSE;
    return TRUE;
}

static gboolean read_event_word(BerthJournalEntry *entry, const char *name, const char *text,
                                GError **error)
{
    const Event *as = &events[entry->event.kind];
    gboolean found;
    if (!read_member(&entry->event, common_members, G_N_ELEMENTS(common_members), name, text,
                     &found, error))
        return FALSE;
    if (!found &&
        !read_member(&entry->event, as->members, as->n_members, name, text, &found, error))
        return FALSE;
    for (guint i = 0; !found && i < as->n_lists; i++)
        if (g_str_equal(name, as->lists[i].name))
            return read_list(entry, &as->lists[i], &entry->lists[i], text, error);
    return found || refuse(error, "unknown member", name);
}

static gboolean read_tunings(BerthJournalEntry *entry, const char *text, GError **error)
{
    g_auto(GStrv) values = g_strsplit(text, ",", -1);
    if (g_strv_length(values) != BERTH_TUNING_N)
        return refuse(error, "not as many tunings as this core has", text);
    for (guint i = 0; i < BERTH_TUNING_N; i++)
        if (!g_ascii_string_to_signed(values[i], 10, G_MININT64, G_MAXINT64, &entry->tunings[i],
                                      NULL))
            return refuse(error, "tunings", values[i]);
    return TRUE;
}

static gboolean read_config_word(BerthJournalEntry *entry, const char *name, const char *text,
                                 GError **error)
{
    gboolean found;
    if (g_str_equal(name, "tunings"))
        return read_tunings(entry, text, error);
    return read_member(&entry->config, config_members, G_N_ELEMENTS(config_members), name, text,
                       &found, error) &&
           (found || refuse(error, "unknown member", name));
}

static gboolean read_words(BerthJournalEntry *entry, char **words, GError **error)
{
    for (; *words != NULL; words++) {
        char *equals = strchr(*words, '=');
        if (equals == NULL)
            return refuse(error, "not NAME=VALUE", *words);
        *equals = '\0';
        gboolean ok = entry->kind == BERTH_JOURNAL_CONFIG
                          ? read_config_word(entry, *words, equals + 1, error)
                          : read_event_word(entry, *words, equals + 1, error);
        if (!ok)
            return FALSE;
    }
    return TRUE;
}

static gboolean read_time(BerthJournalEntry *entry, const char *text, GError **error)
{
    return g_ascii_string_to_signed(text, 10, 0, G_MAXINT64, &entry->now_usec, NULL) ||
           refuse(error, "no time", text);
}

static gboolean read_event(BerthJournalEntry *entry, char **words, guint n, GError **error)
{
    if (n < 3 || !read_time(entry, words[1], error))
        return n >= 3 ? FALSE : refuse(error, "an event without time or kind", words[0]);
    guint kind = BERTH_EVENT_JOB_SUBMITTED;
    while (kind < G_N_ELEMENTS(events) && !g_str_equal(events[kind].name, words[2]))
        kind++;
    if (kind == G_N_ELEMENTS(events))
        return refuse(error, "no kind of event", words[2]);
    entry->event.kind = (BerthEventKind)kind;
    return read_words(entry, words + 3, error);
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
        return read_words(entry, words + 1, error);
    }
    if (n == 2 && g_str_equal(words[0], "resume")) {
        entry->kind = BERTH_JOURNAL_RESUME;
        return read_time(entry, words[1], error);
    }
    return refuse(error, "none of config, node, resume, event and action", n > 0 ? words[0] : "");
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
    g_free(entry->lists[0]);
    g_free(entry->lists[1]);
    *entry = (BerthJournalEntry){0};
}
