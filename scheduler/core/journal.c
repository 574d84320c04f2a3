/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the tables of what entries of the core's log have, and writing them. Both directions go by
 * the same tables. */
#include "scheduler/core/journal_text.h"

#include <string.h>

typedef JournalMember Member;
typedef JournalList List;
typedef JournalTable Event;

#define E(member, type)                                                                            \
    {                                                                                              \
#member, G_STRUCT_OFFSET(BerthCoreEvent, member), JOURNAL_##type                           \
    }
#define IN(of, member, type)                                                                       \
    {                                                                                              \
#member, G_STRUCT_OFFSET(of, member), JOURNAL_##type                                       \
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
                                        IN(BerthCoreAction, balloon_mib, U64),
                                        IN(BerthCoreAction, thaws, I32),
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
                                           E(submitted.checkpoint_every_usec, I64),
                                           E(submitted.checkpoint_signal_usec, I64),
                                           E(submitted.opportunistic, I32),
                                           E(submitted.has_indices, I32),
                                           E(submitted.has_failed, I32)};
static const Member request_members[] = {E(request.by_operator, I32),
                                         E(request.tasks.first, U32),
                                         E(request.tasks.last, U32),
                                         E(request.tasks.step, U32),
                                         E(request.to_disk, I32),
                                         E(request.checkpoint.serial, U32),
                                         E(request.checkpoint.epoch, U32),
                                         E(request.checkpoint.ran_usec, I64),
                                         E(request.checkpoint.resources.vcpus, U32),
                                         E(request.checkpoint.resources.memory_mib, U64)};
static const Member checkpoints_members[] = {E(checkpoints.newest.serial, U32),
                                             E(checkpoints.newest.epoch, U32),
                                             E(checkpoints.newest.ran_usec, I64),
                                             E(checkpoints.newest.resources.vcpus, U32),
                                             E(checkpoints.newest.resources.memory_mib, U64),
                                             E(checkpoints.stored_mib, U64)};
static const Member resize_members[] = {
    E(request.by_operator, I32),     E(request.tasks.first, U32),
    E(request.tasks.last, U32),      E(request.tasks.step, U32),
    E(request.resources.vcpus, U32), E(request.resources.memory_mib, U64)};
static const Member time_limit_members[] = {E(request.by_operator, I32),
                                            E(request.time_limit_usec, I64)};
static const Member checkpoint_every_members[] = {E(request.checkpoint_every_usec, I64)};
static const Member storage_room_members[] = {E(storage_room.mib, U64)};
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
static const Member gone_members[] = {E(gone.reason, U32), E(gone.not_begun, I32),
                                      E(gone.has_left, I32)};
static const Member failed_members[] = {E(start_failed.reason, U32), E(start_failed.permanent, I32),
                                        E(start_failed.passes, I32)};
static const Member usage_members[] = {E(usage.cpu_milli, U32),
                                       E(usage.memory_used_mib, U64),
                                       E(usage.memory_available_mib, U64),
                                       E(usage.cpu_pressure_permille, U32),
                                       E(usage.memory_pressure_permille, U32),
                                       E(usage.dirty_mib_per_sec, U32),
                                       E(usage.starved_usec, I64),
                                       E(usage.touched_mib, U64)};
static const Member node_usage_members[] = {
    E(node_usage.cpu_milli, U32), E(node_usage.memory_used_mib, U64),
    E(node_usage.cpu_pressure_permille, U32), E(node_usage.memory_pressure_permille, U32),
    E(node_usage.memory_available_mib, U64)};
static const Member result_members[] = {E(result.ok, I32),
                                        E(result.reason, U32),
                                        E(result.serial, U32),
                                        E(result.paused_usec, I64),
                                        E(result.stored_mib, U64),
                                        E(result.has.vcpus, U32),
                                        E(result.has.memory_mib, U64)};
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

static const Member handle_members[] = {{"node", 0, JOURNAL_U32}};
static const Member dependency_members[] = {IN(BerthCoreDependency, kind, U32),
                                            IN(BerthCoreDependency, job, U64),
                                            IN(BerthCoreDependency, outcome, U32)};
static const Member completed_members[] = {
    IN(BerthTaskRange, job, U64), IN(BerthTaskRange, tasks.first, U32),
    IN(BerthTaskRange, tasks.last, U32), IN(BerthTaskRange, tasks.step, U32)};
static const Member index_members[] = {IN(BerthIndexRange, first, U32),
                                       IN(BerthIndexRange, last, U32),
                                       IN(BerthIndexRange, step, U32)};
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
            dependency_members),
    POINTED("indices", submitted.indices, submitted.n_indices, BerthIndexRange, index_members),
    POINTED("held-tasks", submitted.tasks_held_by_user, submitted.n_held_by_user, BerthIndexRange,
            index_members),
    POINTED("held-tasks-by-operator", submitted.tasks_held_by_operator,
            submitted.n_held_by_operator, BerthIndexRange, index_members),
    POINTED("completed", submitted.completed, submitted.n_completed, BerthTaskRange,
            completed_members)};
G_STATIC_ASSERT(G_N_ELEMENTS(submitted_lists) <= BERTH_JOURNAL_LISTS_MAX);
static const List joined_lists[] = {
    POINTED("found", joined.guests, joined.n_guests, BerthFoundGuest, found_members),
    {"cells", G_STRUCT_OFFSET(BerthCoreEvent, joined.info.cells),
     G_STRUCT_OFFSET(BerthCoreEvent, joined.info.n_cells), sizeof(BerthCoreCell), TRUE,
     BERTH_CELLS_MAX, cell_members, G_N_ELEMENTS(cell_members)}};
static const List changed_lists[] = {{"cells", G_STRUCT_OFFSET(BerthCoreEvent, changed.cells),
                                      G_STRUCT_OFFSET(BerthCoreEvent, changed.n_cells),
                                      sizeof(BerthCoreCell), TRUE, BERTH_CELLS_MAX, cell_members,
                                      G_N_ELEMENTS(cell_members)}};
static const List ranges_lists[] = {
    POINTED("others", request.others, request.n_others, BerthIndexRange, index_members)};
static const List maintenance_lists[] = {
    POINTED("nodes", maintenance.nodes, maintenance.n_nodes, guint32, handle_members)};

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
    [BERTH_EVENT_JOB_CANCELLED] = WITH_LISTS("cancelled", request_members, ranges_lists),
    [BERTH_EVENT_JOB_HELD] = WITH_LISTS("held", request_members, ranges_lists),
    [BERTH_EVENT_JOB_RELEASED] = WITH_LISTS("unheld", request_members, ranges_lists),
    [BERTH_EVENT_JOB_FREEZE_WANTED] = WITH_LISTS("freeze-wanted", request_members, ranges_lists),
    [BERTH_EVENT_JOB_THAW_WANTED] = WITH("thaw-wanted", request_members),
    [BERTH_EVENT_JOB_MIGRATE_WANTED] = WITH("migrate-wanted", request_members),
    [BERTH_EVENT_JOB_MIGRATE_UNWANTED] = WITH("migrate-unwanted", request_members),
    [BERTH_EVENT_JOB_CHECKPOINT_WANTED] = WITH("checkpoint-wanted", request_members),
    [BERTH_EVENT_JOB_RESTORE_WANTED] = WITH("restore-wanted", request_members),
    [BERTH_EVENT_CHECKPOINTS_CHANGED] = WITH("checkpoints-changed", checkpoints_members),
    [BERTH_EVENT_JOB_RESIZE_WANTED] = WITH("resize-wanted", resize_members),
    [BERTH_EVENT_JOB_TIME_LIMIT_SET] = WITH("time-limit-set", time_limit_members),
    [BERTH_EVENT_JOB_CHECKPOINT_EVERY_SET] = WITH("checkpoint-every-set", checkpoint_every_members),
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
    [BERTH_EVENT_STORAGE_ROOM] = WITH("storage-room", storage_room_members),
    [BERTH_EVENT_TIMER] = NONE("timer"),
    [BERTH_EVENT_GUEST_REPORTED] = WITH("reported", usage_members),
    [BERTH_EVENT_NODE_REPORTED] = WITH("node-reported", node_usage_members),
    [BERTH_EVENT_GUEST_MIGRATED] = WITH("migrated", result_members),
    [BERTH_EVENT_GUEST_CHECKPOINTED] = WITH("checkpointed", result_members),
    [BERTH_EVENT_GUEST_FROZEN] = WITH("frozen", result_members),
    [BERTH_EVENT_GUEST_THAWED] = WITH("thawed", result_members),
    [BERTH_EVENT_GUEST_RESIZED] = WITH("resized", result_members),
    [BERTH_EVENT_NODE_CORDONED] = NONE("cordoned"),
    [BERTH_EVENT_NODE_DRAINED] = NONE("drained"),
    [BERTH_EVENT_NODE_UNDRAINED] = NONE("undrained"),
    [BERTH_EVENT_NODE_GIVEN_UP] = NONE("given-up"),
    [BERTH_EVENT_ACCOUNT_SET] = WITH("account-set", account_members),
    [BERTH_EVENT_USER_SET] = WITH("user-set", user_members),
    [BERTH_EVENT_QOS_SET] = WITH("qos-set", qos_members),
    [BERTH_EVENT_MAINTENANCE_SET] =
        WITH_LISTS("maintenance-set", maintenance_members, maintenance_lists),
    [BERTH_EVENT_MAINTENANCE_CLEARED] = WITH("maintenance-cleared", maintenance_members),
};

const JournalTable journal_config = {"config", config_members, G_N_ELEMENTS(config_members), NULL,
                                     0};
const JournalTable journal_event_common = {"event", common_members, G_N_ELEMENTS(common_members),
                                           NULL, 0};

const JournalTable *journal_event(guint kind)
{
    return kind < G_N_ELEMENTS(events) && events[kind].name != NULL ? &events[kind] : NULL;
}

const JournalTable *journal_event_of(const char *word, BerthEventKind *out_kind)
{
    for (guint kind = 0; kind < G_N_ELEMENTS(events); kind++) {
        if (g_strcmp0(events[kind].name, word) != 0)
            continue;
        *out_kind = (BerthEventKind)kind;
        return &events[kind];
    }
    return NULL;
}

/* --- what was put back --------------------------------------------------------------------------- */

static const Member restored_node_members[] = {
    IN(BerthJournalEntry, restored_node.state, U32),
    IN(BerthJournalEntry, restored_node.since_usec, I64),
    IN(BerthJournalEntry, restored_node.admission, U32),
    IN(BerthJournalEntry, restored_node.has_joined, I32)};
static const Member restored_task_members[] = {
    IN(BerthCoreTask, task, U32),
    IN(BerthCoreTask, state, U32),
    IN(BerthCoreTask, reason, U32),
    IN(BerthCoreTask, phase, U32),
    IN(BerthCoreTask, stop_reason, U32),
    IN(BerthCoreTask, node, U32),
    IN(BerthCoreTask, epoch, U32),
    IN(BerthCoreTask, start_taken, I32),
    IN(BerthCoreTask, requeues, U32),
    IN(BerthCoreTask, start_failures, U32),
    IN(BerthCoreTask, not_before_usec, I64),
    IN(BerthCoreTask, start_usec, I64),
    IN(BerthCoreTask, end_usec, I64),
    IN(BerthCoreTask, checkpoint, U32),
    IN(BerthCoreTask, checkpoint_epoch, U32),
    IN(BerthCoreTask, checkpoint_ran_usec, I64),
    IN(BerthCoreTask, checkpoint_resources.vcpus, U32),
    IN(BerthCoreTask, checkpoint_resources.memory_mib, U64),
    IN(BerthCoreTask, checkpoint_last, U32),
    IN(BerthCoreTask, checkpoints_mib, U64),
    IN(BerthCoreTask, checkpoint_space_mib, U64),
    IN(BerthCoreTask, checkpoint_wanted, U32),
    IN(BerthCoreTask, checkpoint_open, U32),
    IN(BerthCoreTask, checkpoint_reason, U32),
    IN(BerthCoreTask, checkpoint_stops, I32),
    IN(BerthCoreTask, checkpoint_usec, I64),
    IN(BerthCoreTask, checkpoint_missed_usec, I64),
    IN(BerthCoreTask, ran_usec, I64),
    IN(BerthCoreTask, starved_usec, I64),
    IN(BerthCoreTask, peak_milli, U32),
    IN(BerthCoreTask, peak_mib, U64),
    IN(BerthCoreTask, freeze_reason, U32),
    IN(BerthCoreTask, frozen_usec, I64),
    IN(BerthCoreTask, freeze_to_disk, I32),
    IN(BerthCoreTask, freeze_is_open, I32),
    IN(BerthCoreTask, migrate_to, U32),
    IN(BerthCoreTask, migrate_reason, U32),
    IN(BerthCoreTask, migrate_is_unwanted, I32),
    IN(BerthCoreTask, resources.vcpus, U32),
    IN(BerthCoreTask, resources.memory_mib, U64),
    IN(BerthCoreTask, resize_to.vcpus, U32),
    IN(BerthCoreTask, resize_to.memory_mib, U64),
    IN(BerthCoreTask, resize_reason, U32),
    IN(BerthCoreTask, wants_backing, I32),
    IN(BerthCoreTask, is_opportunistic, I32),
    IN(BerthCoreTask, is_opportunistic_there, I32),
    IN(BerthCoreTask, balloon_mib, U64),
    IN(BerthCoreTask, to_balloon_mib, U64),
    IN(BerthCoreTask, short_usec, I64),
    IN(BerthCoreTask, checkpoint_doubted, U32),
    IN(BerthCoreTask, checkpoint_doubted_ran_usec, I64),
    IN(BerthCoreTask, drain_missed_usec, I64),
    IN(BerthCoreTask, waits_for_room, I32),
    IN(BerthCoreTask, checkpoint_requeues, U32),
    IN(BerthCoreTask, rest_last, U32),
    IN(BerthCoreTask, rest_step, U32)};
static const List restored_job_lists[] = {
    {"tasks", G_STRUCT_OFFSET(BerthJournalEntry, restored_job.tasks),
     G_STRUCT_OFFSET(BerthJournalEntry, restored_job.n_tasks), sizeof(BerthCoreTask), FALSE,
     LIST_MAX, restored_task_members, G_N_ELEMENTS(restored_task_members)}};
static const Member restored_use_members[] = {
    IN(BerthJournalEntry, use.account, U32), IN(BerthJournalEntry, use.uid, U32),
    IN(BerthJournalEntry, use.is_user, I32), IN(BerthJournalEntry, use.used_mib_sec, U64),
    IN(BerthJournalEntry, use.at_usec, I64)};
static const Member restored_prior_members[] = {
    IN(BerthJournalEntry, prior.uid, U32),     IN(BerthJournalEntry, prior.family, U64),
    IN(BerthJournalEntry, prior.vcpus, U32),   IN(BerthJournalEntry, prior.memory_mib, U64),
    IN(BerthJournalEntry, prior.n, U32),       IN(BerthJournalEntry, prior.peak_milli, U32),
    IN(BerthJournalEntry, prior.peak_mib, U64)};

static const struct {
    JournalTable table;
    BerthJournalKind kind;
    BerthEventKind event;
} restored[] = {
    {WITH("restored-node", restored_node_members), BERTH_JOURNAL_RESTORED_NODE,
     BERTH_EVENT_NODE_JOINED},
    {{"restored-job", NULL, 0, restored_job_lists, G_N_ELEMENTS(restored_job_lists)},
     BERTH_JOURNAL_RESTORED_JOB,
     BERTH_EVENT_JOB_SUBMITTED},
    {WITH("restored-use", restored_use_members), BERTH_JOURNAL_RESTORED_USE, 0},
    {WITH("restored-prior", restored_prior_members), BERTH_JOURNAL_RESTORED_PRIOR, 0},
};

const JournalTable *journal_restored(BerthJournalKind kind)
{
    for (guint i = 0; i < G_N_ELEMENTS(restored); i++)
        if (restored[i].kind == kind)
            return &restored[i].table;
    return NULL;
}

const JournalTable *journal_restored_of(const char *word, BerthJournalKind *out_kind)
{
    for (guint i = 0; i < G_N_ELEMENTS(restored); i++) {
        if (!g_str_equal(restored[i].table.name, word))
            continue;
        *out_kind = restored[i].kind;
        return &restored[i].table;
    }
    return NULL;
}

BerthEventKind journal_restored_event(BerthJournalKind kind)
{
    for (guint i = 0; i < G_N_ELEMENTS(restored); i++)
        if (restored[i].kind == kind)
            return restored[i].event;
    return 0;
}

/* --- writing ------------------------------------------------------------------------------------ */

static gboolean is_zero(gconstpointer base, const Member *member)
{
    return member->type == JOURNAL_U64 || member->type == JOURNAL_I64
               ? G_STRUCT_MEMBER(guint64, base, member->offset) == 0
               : G_STRUCT_MEMBER(guint32, base, member->offset) == 0;
}

static void write_value(GString *out, gconstpointer base, const Member *member)
{
    switch (member->type) {
    case JOURNAL_U32:
        g_string_append_printf(out, "%u", G_STRUCT_MEMBER(guint32, base, member->offset));
        break;
    case JOURNAL_I32:
        g_string_append_printf(out, "%d", G_STRUCT_MEMBER(gint32, base, member->offset));
        break;
    case JOURNAL_U64:
        g_string_append_printf(out, "%" G_GUINT64_FORMAT,
                               G_STRUCT_MEMBER(guint64, base, member->offset));
        break;
    case JOURNAL_I64:
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

static void write_list(GString *out, gconstpointer base, const List *list)
{
    gsize n = list->is_inline ? G_STRUCT_MEMBER(guint32, base, list->count_offset)
                              : G_STRUCT_MEMBER(gsize, base, list->count_offset);
    const guint8 *at = list->is_inline ? (const guint8 *)base + list->offset
                                       : G_STRUCT_MEMBER(const guint8 *, base, list->offset);
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

static void write_table(GString *out, gconstpointer base, const JournalTable *table)
{
    write_members(out, base, table->members, table->n_members);
    for (guint i = 0; i < table->n_lists; i++)
        write_list(out, base, &table->lists[i]);
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
    g_string_append_printf(out, "event %" G_GINT64_FORMAT " %s", now_usec,
                           events[event->kind].name);
    write_table(out, event, &journal_event_common);
    write_table(out, event, &events[event->kind]);
    g_string_append_c(out, '\n');
}

void berth_journal_restored(GString *out, const BerthJournalEntry *entry)
{
    const JournalTable *table = journal_restored(entry->kind);
    BerthEventKind event = journal_restored_event(entry->kind);
    g_string_append(out, table->name);
    if (event != 0) {
        write_table(out, &entry->event, &journal_event_common);
        write_table(out, &entry->event, &events[event]);
    }
    write_table(out, entry, table);
    g_string_append_c(out, '\n');
}

void berth_journal_restore(BerthCore *core, const BerthJournalEntry *entry)
{
    const BerthCoreEvent *event = &entry->event;
    switch (entry->kind) {
    case BERTH_JOURNAL_RESTORED_NODE:
        berth_core_restore_node(core, event->node, entry->restored_node.state,
                                entry->restored_node.since_usec, entry->restored_node.admission,
                                entry->restored_node.has_joined ? &event->joined.info : NULL);
        break;
    case BERTH_JOURNAL_RESTORED_JOB:
        berth_core_restore_job(core, &event->submitted, entry->restored_job.tasks,
                               entry->restored_job.n_tasks);
        break;
    case BERTH_JOURNAL_RESTORED_USE:
        berth_core_restore_use(core, &entry->use);
        break;
    case BERTH_JOURNAL_RESTORED_PRIOR:
        berth_core_restore_prior(core, &entry->prior);
        break;
    default:
        break;
    }
}

void berth_journal_action(GString *out, const BerthCoreAction *action)
{
    g_string_append(out, "action");
    write_members(out, action, action_members, G_N_ELEMENTS(action_members));
    g_string_append_c(out, '\n');
}
