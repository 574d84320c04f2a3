/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the mapping between three views of a task: the core's, the stored record and a node's
 * report. Pure but for the record that it is told to change.
 *
 * Invariant: to_core(from_core(task)) is task, so that a restarted daemon decides as the one
 * before it would have. */
#include "config.h"

#include "scheduler/daemon/records.h"

#include "common/id.h"
#include "scheduler/daemon/reason_text.h"

#include <string.h>

/* What an untrusted guest may make us store, per text. */
#define CONSOLE_TAIL_MAX_BYTES 8192u
#define DETAIL_MAX_BYTES       1024u
#define STORAGE_CLIENTS_MAX    64u

static void begin_epoch(BerthTaskEntry *entry, const BerthCoreTask *task)
{
    Berth__StoredTask *stored = entry->stored;
    BerthGuestId id = {.job = task->job, .task = task->task, .epoch = task->epoch};
    g_autofree char *log_id = berth_log_id_format(&id);
    g_autofree char *disk_id = berth_disk_id_format(&id);
    berth_pb_set_string(&stored->log_id, log_id);
    berth_pb_set_string(&stored->disk_id, disk_id);
    berth_pb_set_strings(&stored->storage_clients, &stored->n_storage_clients, NULL, 0);
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
    entry->stdout_bytes = 0;
    entry->stderr_bytes = 0;
    entry->starved_seen_usec = 0;
    entry->measured_usec = 0;
}

void berth_record_from_core(BerthTaskEntry *entry, const BerthCoreTask *task, const char *node_name)
{
    Berth__StoredTask *stored = entry->stored;
    if (task->epoch > stored->task->epoch)
        begin_epoch(entry, task);
    stored->phase = (guint32)task->phase;
    stored->stop_reason = (Berth__Reason)task->stop_reason;
    stored->start_failures = task->start_failures;
    stored->start_taken = task->start_taken;
    stored->not_before_usec = (guint64)task->not_before_usec;
    stored->checkpoint_epoch = task->checkpoint_epoch;
    stored->ran_usec = (guint64)task->ran_usec;
    stored->starved_usec = (guint64)task->starved_usec;
    stored->starved_seen_usec = entry->starved_seen_usec;
    stored->peak_milli = task->peak_milli;
    stored->peak_mib = task->peak_mib;
    stored->task->job = task->job;
    stored->task->index = task->task;
    stored->task->state = (Berth__JobState)task->state;
    stored->task->reason = (Berth__Reason)task->reason;
    stored->task->booting = task->state == BERTH_JOB_RUNNING && task->phase == BERTH_GUEST_STARTING;
    stored->task->epoch = task->epoch;
    stored->task->requeues = task->requeues;
    stored->task->start_usec = (guint64)task->start_usec;
    stored->task->end_usec = (guint64)task->end_usec;
    stored->task->frozen_usec = (guint64)task->frozen_usec;
    stored->freeze_reason = (Berth__Reason)task->freeze_reason;
    stored->freeze_is_open = task->freeze_is_open;
    if (task->node != 0)
        berth_pb_set_string(&stored->task->node, node_name);
}

void berth_record_to_core(const Berth__StoredTask *stored, guint32 node, BerthCoreTask *out_task)
{
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
        .checkpoint_epoch = stored->checkpoint_epoch,
        .ran_usec = (gint64)stored->ran_usec,
        .starved_usec = (gint64)stored->starved_usec,
        .peak_milli = stored->peak_milli,
        .peak_mib = stored->peak_mib,
        .freeze_reason = (BerthReason)stored->freeze_reason,
        .frozen_usec = (gint64)stored->task->frozen_usec,
        .freeze_is_open = stored->freeze_is_open,
    };
}

/* The same on every host and in every release: what the core learnt of it is stored by this number.
 * FNV-1a, 64 bits. A job without a name has no siblings. */
static guint64 family_of(const char *name)
{
    guint64 hash = G_GUINT64_CONSTANT(0xcbf29ce484222325);
    if (!*name)
        return 0;
    for (const char *at = name; *at; at++)
        hash = (hash ^ (guint8)*at) * G_GUINT64_CONSTANT(0x100000001b3);
    return MAX(hash, 1);
}

void berth_record_job_to_core(const Berth__Job *job, const Berth__JobSpec *spec,
                              const guint32 *nodes, gsize n_nodes, BerthCoreJob *out_job)
{
    *out_job = (BerthCoreJob){
        .id = job->id,
        .uid = job->uid,
        .resources = {.vcpus = job->vcpus,
                      .memory_mib = job->memory_mib,
                      .disk_mib = spec->disk_mib},
        .time_limit_usec = (gint64)job->time_limit_sec * G_USEC_PER_SEC,
        .stop_grace_usec = (gint64)spec->stop_grace_sec * G_USEC_PER_SEC,
        .priority = job->priority,
        .held = job->held,
        .held_by_operator = job->held_by_operator,
        .no_requeue = spec->no_requeue,
        .submit_usec = (gint64)job->submit_usec,
        .nodes = nodes,
        .n_nodes = n_nodes,
        .family = family_of(job->name),
    };
}

/* The larger, the more it says about the job as a whole. */
static guint state_weight(Berth__JobState state)
{
    switch (state) {
    case BERTH__JOB_STATE__RUNNING:
        return 9;
    case BERTH__JOB_STATE__SUSPENDED:
        return 8;
    case BERTH__JOB_STATE__PENDING:
        return 7;
    case BERTH__JOB_STATE__CANCELLED:
        return 6;
    case BERTH__JOB_STATE__NODE_FAIL:
        return 5;
    case BERTH__JOB_STATE__OUT_OF_MEMORY:
        return 4;
    case BERTH__JOB_STATE__TIMEOUT:
        return 3;
    case BERTH__JOB_STATE__FAILED:
        return 2;
    default:
        return 1;
    }
}

void berth_record_roll_up(BerthJobEntry *entry)
{
    const Berth__Task *leading = NULL;
    for (guint32 i = 0; i < entry->n_tasks; i++) {
        const Berth__Task *task = entry->tasks[i].stored->task;
        if (!leading || state_weight(task->state) > state_weight(leading->state))
            leading = task;
    }
    if (leading) {
        entry->job->state = leading->state;
        entry->job->reason = leading->reason;
    }
}

void berth_record_describe(const BerthJobEntry *job, BerthTaskEntry *task)
{
    Berth__Task *record = task->stored->task;
    BerthReasonFacts facts = {
        .reason = record->reason,
        .exit = record->exit,
        .vcpus = job->job->vcpus,
        .memory_mib = job->job->memory_mib,
        .time_limit_sec = job->job->time_limit_sec,
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

gboolean berth_record_take_status(BerthTaskEntry *entry, const Berth__GuestStatus *status)
{
    Berth__Task *task = entry->stored->task;
    if (status->usage) {
        if (task->usage)
            berth__usage__free_unpacked(task->usage, NULL);
        task->usage = berth_pb_dup(&status->usage->base);
    }
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

Berth__Job *berth_record_new_job(guint64 number, const Berth__JobSpec *spec, const char *user,
                                 guint32 uid, guint32 gid, gint64 submit_usec)
{
    Berth__Job job = BERTH__JOB__INIT;
    job.id = number;
    job.user = (char *)user;
    job.uid = uid;
    job.gid = gid;
    job.submit_usec = (guint64)submit_usec;
    job.state = BERTH__JOB_STATE__PENDING;
    job.name = spec->name;
    job.image = spec->image;
    job.vcpus = spec->vcpus;
    job.memory_mib = spec->memory_mib;
    job.time_limit_sec = spec->time_limit_sec;
    job.priority = spec->priority;
    job.held = spec->hold;
    return berth_pb_dup(&job.base);
}
