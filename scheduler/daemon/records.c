/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the mapping between three views of a task: the core's, the stored record and a node's
 * report. Pure but for the record that it is told to change.
 *
 * Invariant: to_core(from_core(task)) is task, so that a restarted daemon decides as the one
 * before it would have. */
#include "config.h"

#include "scheduler/daemon/records.h"

#include "common/id.h"
#include "common/ranges.h"
#include "scheduler/daemon/job_records.h"
#include "scheduler/daemon/reason_text.h"

#include <string.h>

/* What an untrusted guest may make us store, per text. */
#define CONSOLE_TAIL_MAX_BYTES 8192u
#define DETAIL_MAX_BYTES       1024u
#define STORAGE_CLIENTS_MAX    64u

static const Berth__Checkpoint *find_checkpoint(const Berth__Task *task, guint32 serial)
{
    for (gsize i = 0; i < task->n_checkpoints; i++)
        if (task->checkpoints[i]->serial == serial)
            return task->checkpoints[i];
    return NULL;
}

/* What it goes on from had used this. Nobody has measured what it does now. */
static void begin_with(BerthTaskEntry *entry, const Berth__Usage *usage)
{
    Berth__StoredTask *stored = entry->stored;
    Berth__Usage *now = berth_pb_dup(&usage->base);
    now->psi_cpu_some = now->psi_memory_some = now->psi_memory_full = now->psi_io_some = 0;
    now->cpu_milli = now->starved_permille = now->throttled_permille = now->rate_msec = 0;
    stored->moved_usage = berth_pb_dup(&usage->base);
    stored->task->usage = now;
    entry->starved_seen_usec = usage->starved_usec;
}

/* One that is restored goes on with its output, and with what it had used. */
static void begin_epoch(BerthTaskEntry *entry, const BerthCoreTask *task)
{
    Berth__StoredTask *stored = entry->stored;
    BerthGuestId id = {.job = task->job, .task = task->task, .epoch = task->epoch};
    const Berth__Checkpoint *checkpoint = find_checkpoint(stored->task, task->checkpoint);
    g_autofree char *log_id =
        checkpoint && *stored->log_id ? g_strdup(stored->log_id) : berth_log_id_format(&id);
    g_autofree char *disk_id = berth_disk_id_format(&id);
    berth_pb_set_string(&stored->log_id, log_id);
    berth_pb_set_string(&stored->disk_id, disk_id);
    berth_pb_set_strings(&stored->storage_clients, &stored->n_storage_clients, NULL, 0);
    berth_pb_set_string(&stored->storage_clients_of, NULL);
    berth_pb_set_string(&stored->task->console_tail, NULL);
    g_clear_pointer(&entry->detail, g_free);
    if (stored->task->exit) {
        berth__exit__free_unpacked(stored->task->exit, NULL);
        stored->task->exit = NULL;
    }
    if (stored->task->usage) {
        berth__usage__free_unpacked(stored->task->usage, NULL);
        stored->task->usage = NULL;
    }
    if (stored->moved_usage) {
        berth__usage__free_unpacked(stored->moved_usage, NULL);
        stored->moved_usage = NULL;
    }
    if (checkpoint)
        stored->cut_to_checkpoint = stored->cut_to_checkpoint
                                        ? MIN(stored->cut_to_checkpoint, checkpoint->serial)
                                        : checkpoint->serial;
    entry->stdout_bytes = 0;
    entry->stderr_bytes = 0;
    if (entry->said)
        berth__usage__free_unpacked(entry->said, NULL);
    entry->said = NULL;
    entry->starved_seen_usec = 0;
    entry->dirty_bytes_per_sec = 0;
    entry->measured_usec = 0;
    stored->task->held_back_usec = 0;
    stored->oom_told = checkpoint && checkpoint->usage ? checkpoint->usage->oom_kills : 0;
    entry->kills_tellings = 0;
    if (checkpoint && checkpoint->usage)
        begin_with(entry, checkpoint->usage);
}

static void tell_checkpoint(Berth__Checkpoint *checkpoint, const BerthCoreTask *task)
{
    checkpoint->ran_usec = (guint64)task->checkpoint_ran_usec;
    checkpoint->vcpus = task->checkpoint_resources.vcpus;
    checkpoint->memory_mib = task->checkpoint_resources.memory_mib;
}

/* Its log was cut to what the checkpoint had before its guest went on. */
static void begin_log_run(Berth__StoredTask *stored)
{
    const Berth__Checkpoint *checkpoint =
        find_checkpoint(stored->task, stored->task->restores_from);
    Berth__LogCut cut = BERTH__LOG_CUT__INIT;
    if (checkpoint) {
        cut.stdout_bytes = checkpoint->stdout_bytes;
        cut.stderr_bytes = checkpoint->stderr_bytes;
    }
    if (stored->log_cut)
        berth__log_cut__free_unpacked(stored->log_cut, NULL);
    stored->log_cut = berth_pb_dup(&cut.base);
    stored->log_run++;
}

/* They go with the disk of one that has ended. */
static void drop_checkpoints(Berth__Task *task)
{
    for (gsize i = 0; i < task->n_checkpoints; i++)
        berth__checkpoint__free_unpacked(task->checkpoints[i], NULL);
    g_clear_pointer(&task->checkpoints, g_free);
    task->n_checkpoints = 0;
}

/* What the core alone knows of them. The one that was taken last is told how far it had come by its result. */
static void set_checkpoints(Berth__StoredTask *stored, const BerthCoreTask *task)
{
    Berth__Task *record = stored->task;
    for (gsize i = 0; i < record->n_checkpoints; i++)
        if (record->checkpoints[i]->serial == task->checkpoint)
            tell_checkpoint(record->checkpoints[i], task);
    if (task->checkpoint_open != record->checkpointing)
        record->checkpointing_usec =
            task->checkpoint_open != 0 ? (guint64)task->checkpoint_usec : 0;
    record->checkpointing = task->checkpoint_open;
    if (record->restoring && task->epoch == record->epoch && task->phase != BERTH_GUEST_STARTING &&
        task->state != BERTH_JOB_PENDING)
        begin_log_run(stored);
    record->restores_from = task->checkpoint;
    record->to_disk = task->state == BERTH_JOB_SUSPENDED && task->phase != BERTH_GUEST_RUNNING;
    record->restoring = task->state == BERTH_JOB_RUNNING && task->phase == BERTH_GUEST_STARTING &&
                        task->checkpoint_epoch != 0;
    stored->checkpoint_epoch = task->checkpoint_epoch;
    stored->checkpoint_ran_usec = (guint64)task->checkpoint_ran_usec;
    stored->checkpoint_vcpus = task->checkpoint_resources.vcpus;
    stored->checkpoint_memory_mib = task->checkpoint_resources.memory_mib;
    stored->checkpoint_last = task->checkpoint_last;
    stored->checkpoint_requeues = task->checkpoint_requeues;
    stored->checkpoints_mib = task->checkpoints_mib;
    stored->checkpoint_space_mib = task->checkpoint_space_mib;
    stored->checkpoint_wanted = (Berth__Reason)task->checkpoint_wanted;
    stored->checkpoint_reason = (Berth__Reason)task->checkpoint_reason;
    stored->checkpoint_stops = task->checkpoint_stops;
    stored->checkpoint_usec = (guint64)task->checkpoint_usec;
    stored->checkpoint_missed_usec = (guint64)task->checkpoint_missed_usec;
    stored->drain_missed_usec = (guint64)task->drain_missed_usec;
    stored->checkpoint_doubted = task->checkpoint_doubted;
    stored->checkpoint_doubted_ran_usec = (guint64)task->checkpoint_doubted_ran_usec;
    stored->freeze_to_disk = task->freeze_to_disk;
    if (berth_job_state_is_final(task->state)) /* not before the log was begun from one of them */
        drop_checkpoints(record);
}

/* How far it is stays as it was reported. */
static void set_migration(Berth__Task *record, const BerthCoreTask *task, const char *to_name)
{
    if (record->migration &&
        (task->migrate_to == 0 || strcmp(record->migration->to, to_name) != 0)) {
        berth__migration_progress__free_unpacked(record->migration, NULL);
        record->migration = NULL;
    }
    if (task->migrate_to == 0)
        return;
    if (!record->migration) {
        Berth__MigrationProgress migration = BERTH__MIGRATION_PROGRESS__INIT;
        migration.to = (char *)to_name;
        record->migration = berth_pb_dup(&migration.base);
    }
    record->migration->reason = (Berth__Reason)task->migrate_reason;
    record->migration->is_cancelled = task->migrate_is_unwanted;
}

/* What its guest has, and is to have. */
static void set_size(Berth__Task *record, const BerthCoreTask *task)
{
    record->vcpus = task->resources.vcpus;
    record->memory_mib = task->resources.memory_mib;
    if (record->resize)
        berth__resize__free_unpacked(record->resize, NULL);
    record->resize = NULL;
    if (task->resize_to.vcpus == 0)
        return;
    Berth__Resize resize = BERTH__RESIZE__INIT;
    resize.vcpus = task->resize_to.vcpus;
    resize.memory_mib = task->resize_to.memory_mib;
    resize.reason = (Berth__Reason)task->resize_reason;
    record->resize = berth_pb_dup(&resize.base);
}

/* What goes on from a checkpoint began before. */
static void set_start(Berth__Task *record, const BerthCoreTask *task)
{
    guint64 start_usec = (guint64)task->start_usec;
    gboolean is_anew = task->ran_usec == 0;
    if (is_anew && (start_usec != 0 || task->state == BERTH_JOB_PENDING))
        record->begun_usec = start_usec;
    record->start_usec = start_usec;
}

const char *berth_record_migrates_to(const Berth__StoredTask *stored)
{
    return stored->task->migration ? stored->task->migration->to : "";
}

void berth_record_from_core(BerthTaskEntry *entry, const BerthCoreTask *task, const char *node_name,
                            const char *to_name)
{
    Berth__StoredTask *stored = entry->stored;
    if (task->epoch > stored->task->epoch)
        begin_epoch(entry, task);
    stored->phase = (guint32)task->phase;
    stored->stop_reason = (Berth__Reason)task->stop_reason;
    stored->start_failures = task->start_failures;
    stored->start_taken = task->start_taken;
    stored->not_before_usec = (guint64)task->not_before_usec;
    set_checkpoints(stored, task);
    stored->ran_usec = (guint64)task->ran_usec;
    stored->starved_usec = (guint64)task->starved_usec;
    stored->task->used_usec = stored->ran_usec;
    stored->task->spared_usec = stored->starved_usec;
    stored->starved_seen_usec = entry->starved_seen_usec;
    stored->peak_milli = task->peak_milli;
    stored->peak_mib = task->peak_mib;
    stored->task->job = task->job;
    stored->task->index = task->task;
    stored->task->rest_last = task->rest_last;
    stored->task->rest_step = task->rest_step;
    stored->task->never_after = task->never_after;
    stored->task->never_by_task = task->never_by_task;
    stored->task->state = (Berth__JobState)task->state;
    stored->task->reason = (Berth__Reason)task->reason;
    stored->task->booting = task->state == BERTH_JOB_RUNNING && task->phase == BERTH_GUEST_STARTING;
    stored->task->epoch = task->epoch;
    stored->task->requeues = task->requeues;
    set_start(stored->task, task);
    stored->task->end_usec = (guint64)task->end_usec;
    stored->task->frozen_usec = (guint64)task->frozen_usec;
    stored->freeze_reason = (Berth__Reason)task->freeze_reason;
    stored->freeze_is_open = task->freeze_is_open;
    stored->wants_backing = task->wants_backing;
    stored->task->short_usec = (guint64)task->short_usec;
    if (task->phase == BERTH_GUEST_NONE || task->phase >= BERTH_GUEST_RELEASING)
        stored->task->held_back_usec = 0; /* there is nothing to hold any more */
    set_migration(stored->task, task, to_name);
    set_size(stored->task, task);
    stored->task->waits_for_room = task->waits_for_room;
    stored->task->opportunistic = task->is_opportunistic;
    stored->task->balloon_mib = task->balloon_mib;
    stored->opportunistic_there = task->is_opportunistic_there;
    stored->to_balloon_mib = task->to_balloon_mib;
    if (task->node != 0)
        berth_pb_set_string(&stored->task->node, node_name);
}

void berth_record_to_core(const Berth__StoredTask *stored, guint32 node, guint32 migrate_to,
                          BerthCoreTask *out_task)
{
    const Berth__MigrationProgress *migration = stored->task->migration;
    const Berth__Resize *resize = stored->task->resize;
    *out_task = (BerthCoreTask){
        .job = stored->task->job,
        .task = stored->task->index,
        .state = (BerthJobState)stored->task->state,
        .reason = (BerthReason)stored->task->reason,
        .phase = (BerthGuestPhase)stored->phase,
        .stop_reason = (BerthReason)stored->stop_reason,
        .node = node,
        .epoch = stored->task->epoch,
        .start_taken = stored->start_taken,
        .requeues = stored->task->requeues,
        .start_failures = stored->start_failures,
        .not_before_usec = (gint64)stored->not_before_usec,
        .start_usec = (gint64)stored->task->start_usec,
        .end_usec = (gint64)stored->task->end_usec,
        .checkpoint = stored->task->restores_from,
        .checkpoint_epoch = stored->checkpoint_epoch,
        .checkpoint_ran_usec = (gint64)stored->checkpoint_ran_usec,
        .checkpoint_resources = {stored->checkpoint_vcpus, stored->checkpoint_memory_mib, 0},
        .checkpoint_last = stored->checkpoint_last,
        .checkpoint_requeues = stored->checkpoint_requeues,
        .checkpoints_mib = stored->checkpoints_mib,
        .checkpoint_space_mib = stored->checkpoint_space_mib,
        .checkpoint_wanted = (BerthReason)stored->checkpoint_wanted,
        .checkpoint_open = stored->task->checkpointing,
        .checkpoint_reason = (BerthReason)stored->checkpoint_reason,
        .checkpoint_stops = stored->checkpoint_stops,
        .checkpoint_usec = (gint64)stored->checkpoint_usec,
        .checkpoint_missed_usec = (gint64)stored->checkpoint_missed_usec,
        .drain_missed_usec = (gint64)stored->drain_missed_usec,
        .checkpoint_doubted = stored->checkpoint_doubted,
        .checkpoint_doubted_ran_usec = (gint64)stored->checkpoint_doubted_ran_usec,
        .ran_usec = (gint64)stored->ran_usec,
        .starved_usec = (gint64)stored->starved_usec,
        .peak_milli = stored->peak_milli,
        .peak_mib = stored->peak_mib,
        .freeze_reason = (BerthReason)stored->freeze_reason,
        .frozen_usec = (gint64)stored->task->frozen_usec,
        .freeze_to_disk = stored->freeze_to_disk,
        .freeze_is_open = stored->freeze_is_open,
        .wants_backing = stored->wants_backing,
        .migrate_to = migrate_to,
        .migrate_reason = migration ? (BerthReason)migration->reason : BERTH_REASON_NONE,
        .migrate_is_unwanted = migration && migration->is_cancelled,
        .waits_for_room = stored->task->waits_for_room,
        .resources = {.vcpus = stored->task->vcpus, .memory_mib = stored->task->memory_mib},
        .resize_reason = resize ? (BerthReason)resize->reason : BERTH_REASON_NONE,
        .is_opportunistic = stored->task->opportunistic,
        .is_opportunistic_there = stored->opportunistic_there,
        .balloon_mib = stored->task->balloon_mib,
        .to_balloon_mib = stored->to_balloon_mib,
        .short_usec = (gint64)stored->task->short_usec,
        .never_after = stored->task->never_after,
        .never_by_task = stored->task->never_by_task,
    };
    if (resize)
        out_task->resize_to =
            (BerthResources){.vcpus = resize->vcpus, .memory_mib = resize->memory_mib};
}

void berth_record_describe(const BerthJobEntry *job, BerthTaskEntry *task)
{
    Berth__Task *record = task->stored->task;
    BerthReasonFacts facts = {
        .reason = record->reason,
        .exit = record->exit,
        .vcpus = job->job->vcpus,
        .memory_mib = record->memory_mib != 0 ? record->memory_mib : job->job->memory_mib,
        .memory_max_mib = MAX(job->job->memory_max_mib, job->job->memory_mib),
        .time_limit_sec = job->job->time_limit_sec,
        .is_suspended = record->state == BERTH__JOB_STATE__SUSPENDED,
        .is_opportunistic = record->opportunistic,
        .unsaved = record->unsaved_text,
        .never = {record->never_after, record->never_by_task, berth_record_range(record)},
        .requeues = record->requeues,
        .start_failures = task->stored->start_failures,
        .node = record->node,
        .detail = task->detail,
    };
    g_autofree char *text = berth_reason_text(&facts);
    berth_pb_set_string(&record->reason_text, text);
}

/* FNV-1a (Fowler, Noll and Vo) of the rest of the first label with PREFIX; 0 = there is none. */
static guint32 digest_of_label(const Berth__NodeInfo *info, const char *prefix)
{
    for (size_t i = 0; i < info->n_labels; i++) {
        guint32 digest = 2166136261u;
        if (!g_str_has_prefix(info->labels[i], prefix))
            continue;
        for (const char *c = info->labels[i] + strlen(prefix); *c; c++)
            digest = (digest ^ (guint8)*c) * 16777619u;
        return MAX(digest, 1);
    }
    return 0;
}

BerthCoreNodeInfo berth_record_node_to_core(const Berth__NodeInfo *info)
{
    BerthCoreNodeInfo out = {
        .capacity = {.vcpus = info->vcpus, .memory_mib = info->guest_memory_mib},
        .cannot_start = *info->cannot_start != '\0',
        .rack = digest_of_label(info, "rack."),
        .fabric = digest_of_label(info, "fabric.")};
    for (size_t i = 0; info->n_cells <= BERTH_CELLS_MAX && i < info->n_cells; i++) {
        out.cells[out.n_cells++] =
            (BerthCoreCell){info->cells[i]->cpus, info->cells[i]->memory_mib};
    }
    return out;
}

void berth_record_exit_to_core(const Berth__Exit *exit, BerthCoreExit *out_exit)
{
    *out_exit = (BerthCoreExit){0};
    if (!exit)
        return;
    out_exit->status = exit->status;
    out_exit->signal = exit->signal;
    out_exit->oom_kills = exit->oom_kills;
    out_exit->disk_full = exit->disk_full;
    out_exit->not_started = exit->error && *exit->error;
}

static gboolean take_storage_clients(Berth__StoredTask *stored, const Berth__GuestStatus *status)
{
    gsize n = MIN(status->n_storage_clients, STORAGE_CLIENTS_MAX);
    gboolean is_same = n == stored->n_storage_clients;
    for (gsize i = 0; is_same && i < n; i++)
        is_same = strcmp(stored->storage_clients[i], status->storage_clients[i]) == 0;
    if (is_same || n == 0)
        return FALSE;
    berth_pb_set_strings(&stored->storage_clients, &stored->n_storage_clients,
                         status->storage_clients, n);
    return TRUE;
}

static void take_exit(Berth__Task *task, const Berth__Exit *exit)
{
    if (task->exit)
        berth__exit__free_unpacked(task->exit, NULL);
    task->exit = berth_pb_dup(&exit->base);
    g_autofree char *error = g_strdup(task->exit->error);
    berth_pb_set_text(&task->exit->error, error, DETAIL_MAX_BYTES, FALSE);
}

/* Each QEMU counts from 0. */
static void add_moved(Berth__Usage *usage, const Berth__Usage *before)
{
    if (!before)
        return;
    usage->cpu_usec += before->cpu_usec;
    usage->starved_usec += before->starved_usec;
    usage->disk_read_bytes += before->disk_read_bytes;
    usage->disk_write_bytes += before->disk_write_bytes;
    usage->net_receive_bytes += before->net_receive_bytes;
    usage->net_send_bytes += before->net_send_bytes;
    usage->throttled_usec += before->throttled_usec;
}

static void take_usage(BerthTaskEntry *entry, const Berth__Usage *usage)
{
    Berth__Task *task = entry->stored->task;
    if (task->usage)
        berth__usage__free_unpacked(task->usage, NULL);
    task->usage = berth_pb_dup(&usage->base);
    add_moved(task->usage, entry->stored->moved_usage);
}

Berth__Usage *berth_record_usage_of_left(const BerthTaskEntry *entry, const Berth__Usage *usage)
{
    const Berth__StoredTask *stored = entry->stored;
    if (!usage)
        return stored->task->usage ? berth_pb_dup(&stored->task->usage->base) : NULL;
    Berth__Usage *all = berth_pb_dup(&usage->base);
    add_moved(all, stored->moved_usage);
    return all;
}

void berth_record_take_usage(BerthTaskEntry *entry, const Berth__Usage *usage)
{
    if (usage)
        take_usage(entry, usage);
}

static void replace_usage(Berth__Usage **usage, const Berth__Usage *by)
{
    if (*usage)
        berth__usage__free_unpacked(*usage, NULL);
    *usage = by ? berth_pb_dup(&by->base) : NULL;
}

static void set_clients(Berth__StoredTask *stored, char **clients, gsize n_clients)
{
    berth_pb_set_strings(&stored->storage_clients, &stored->n_storage_clients, clients,
                         MIN(n_clients, STORAGE_CLIENTS_MAX));
}

void berth_record_take_arrival(BerthTaskEntry *entry, const char *node, char **clients,
                               gsize n_clients)
{
    set_clients(entry->stored, clients, n_clients);
    berth_pb_set_string(&entry->stored->storage_clients_of, node);
}

void berth_record_take_move(BerthTaskEntry *entry, const Berth__Usage *used, const char *node,
                            char **clients, gsize n_clients)
{
    Berth__StoredTask *stored = entry->stored;
    replace_usage(&stored->moved_usage, used);
    replace_usage(&stored->task->usage, used);
    stored->task->held_back_usec = 0; /* it was so by the node that it has left */
    if (n_clients > 0 || !g_str_equal(stored->storage_clients_of, node))
        set_clients(stored, clients, n_clients);
    berth_pb_set_string(&stored->storage_clients_of, NULL);
}

/* One that is slowed down to be moved writes less than it would. */
static void take_dirty_rate(BerthTaskEntry *entry, const Berth__MigrationProgress *said)
{
    gboolean is_same = entry->stored->task->migration->since_usec == said->since_usec;
    entry->dirty_bytes_per_sec =
        MAX(is_same ? entry->dirty_bytes_per_sec : 0, said->dirty_bytes_per_sec);
}

static void take_progress(BerthTaskEntry *entry, const Berth__MigrationProgress *said)
{
    Berth__MigrationProgress *known = entry->stored->task->migration;
    if (!known || !said)
        return;
    take_dirty_rate(entry, said);
    known->since_usec = said->since_usec;
    known->memory_left_bytes = said->memory_left_bytes;
    known->bytes_per_sec = said->bytes_per_sec;
    known->dirty_bytes_per_sec = said->dirty_bytes_per_sec;
    known->downtime_msec = said->downtime_msec;
}

gboolean berth_record_take_status(BerthTaskEntry *entry, const Berth__GuestStatus *status)
{
    Berth__Task *task = entry->stored->task;
    if (status->usage)
        take_usage(entry, status->usage);
    take_progress(entry, status->migration);
    if (status->exit && status->phase == BERTH__GUEST_STATUS__PHASE__ENDED)
        take_exit(task, status->exit);
    if (*status->console_tail)
        berth_pb_set_text(&task->console_tail, status->console_tail, CONSOLE_TAIL_MAX_BYTES, TRUE);
    if (*status->reason_text) {
        g_autofree char *cut = g_strndup(status->reason_text, DETAIL_MAX_BYTES);
        g_free(entry->detail);
        entry->detail = g_utf8_make_valid(cut, -1);
    }
    entry->stdout_bytes = MAX(entry->stdout_bytes, status->stdout_bytes);
    entry->stderr_bytes = MAX(entry->stderr_bytes, status->stderr_bytes);
    return take_storage_clients(entry->stored, status);
}
