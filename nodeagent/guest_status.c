/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the scheduler is told of a guest, and what of the guest's own words is believed. */
#include <config.h>

#include "nodeagent/guest_private.h"

#include <signal.h>

#include "common/message.h"

#define PSI_MAX 10000u
/* Of which a guest tells how much of it tasks have stalled (images/init/stall_share.h). */
#define STALL_WINDOW_USEC (10 * (gint64)G_USEC_PER_SEC)

/* Its tasks get next to no CPU: one that is about to find memory in the guest stalls for as long as that is so, though the guest
 * may have plenty. To its job that is to be no limit. */
static gboolean stalls_as_held_back(const BerthGuest *guest)
{
    return guest->held_usec != 0 ||
           (guest->let_go_usec != 0 &&
            g_get_monotonic_time() - guest->let_go_usec < STALL_WINDOW_USEC);
}

void berth_guest_take_usage(BerthGuest *guest, const Berth__Usage *usage)
{
    Berth__Usage *ours = &guest->usage;
    guint64 total = MIN(usage->memory_total_mib, guest->limits.memory_mib);
    ours->memory_total_mib = total;
    ours->memory_available_mib = MIN(usage->memory_available_mib, total);
    berth_guest_note_memory(guest, total, ours->memory_available_mib);
    guint64 peak = MAX(total - ours->memory_available_mib, MIN(usage->memory_peak_mib, total));
    ours->memory_peak_mib = MAX(ours->memory_peak_mib, peak);
    ours->psi_cpu_some = MIN(usage->psi_cpu_some, PSI_MAX);
    guint32 stalls_max = stalls_as_held_back(guest) ? 0 : PSI_MAX;
    ours->psi_memory_some = MIN(usage->psi_memory_some, stalls_max);
    ours->psi_memory_full = MIN(usage->psi_memory_full, stalls_max);
    ours->psi_io_some = MIN(usage->psi_io_some, PSI_MAX);
    ours->guest_cpu_usec = usage->guest_cpu_usec;
    ours->disk_free_bytes = MIN(usage->disk_free_bytes, guest->limits.disk_mib << 20);
    ours->swap_used_mib = usage->swap_used_mib;
    ours->oom_kills = MAX(ours->oom_kills, usage->oom_kills);
}

/* What is known of an Exit and nothing else: it is stored for good. */
void berth_guest_take_exit(BerthGuest *guest, const Berth__Exit *exit)
{
    g_autofree char *error = berth_guest_channel_text(exit->error);
    Berth__Exit ours = BERTH__EXIT__INIT;
    ours.status = exit->status & 0xff;
    ours.signal = exit->signal < NSIG ? exit->signal : SIGKILL;
    ours.oom_kills = exit->oom_kills;
    ours.disk_full = exit->disk_full;
    ours.stdout_bytes = exit->stdout_bytes;
    ours.stderr_bytes = exit->stderr_bytes;
    ours.error = error;
    berth_message_free(guest->exit == NULL ? NULL : &guest->exit->base);
    guest->exit = (Berth__Exit *)(void *)berth_message_copy(&ours.base);
}

static Berth__GuestStatus__Phase phase_to_tell(const BerthGuest *guest, BerthGuestPhaseOnNode phase)
{
    /* Who was frozen ran: it can say so when it is thawed. */
    if (phase == BERTH_PHASE_BOOTING && guest->is_adopted && guest->is_frozen &&
        !guest->stands_restored)
        return BERTH__GUEST_STATUS__PHASE__ACTIVE;
    switch (phase) {
    case BERTH_PHASE_RUNNING:
        return BERTH__GUEST_STATUS__PHASE__ACTIVE;
    case BERTH_PHASE_ENDED:
        return BERTH__GUEST_STATUS__PHASE__ENDED;
    case BERTH_PHASE_GONE:
        return BERTH__GUEST_STATUS__PHASE__GONE;
    case BERTH_PHASE_LEFT:
        return BERTH__GUEST_STATUS__PHASE__LEFT;
    case BERTH_PHASE_ARRIVING:
        return BERTH__GUEST_STATUS__PHASE__ARRIVING;
    default:
        return BERTH__GUEST_STATUS__PHASE__STARTING;
    }
}

/* While it fails or is released, and until its end was measured, it is told of as it was. */
static BerthGuestPhaseOnNode lasting_phase(const BerthGuest *guest)
{
    switch (guest->phase) {
    case BERTH_PHASE_FAILING:
    case BERTH_PHASE_DRAINING:
    case BERTH_PHASE_UNDOING:
    case BERTH_PHASE_RELEASING:
    case BERTH_PHASE_CLEANING:
    case BERTH_PHASE_FORGOTTEN:
        return guest->last_phase;
    case BERTH_PHASE_ENDED:
        return guest->is_end_measured ? guest->phase : guest->last_phase;
    default:
        return guest->phase;
    }
}

char **berth_guest_storage_clients(const BerthGuest *guest)
{
    return guest->clients.known;
}

guint64 berth_guest_durable(const BerthGuest *guest, guint stream)
{
    return guest->writer != NULL ? berth_log_writer_durable(guest->writer, stream) : 0;
}

gboolean berth_guest_migration(const BerthGuest *guest, Berth__MigrationProgress *out_progress)
{
    berth__migration_progress__init(out_progress);
    out_progress->since_usec = (guint64)guest->migration_usec;
    out_progress->memory_left_bytes = guest->migration.left_bytes;
    out_progress->bytes_per_sec = guest->migration.bytes_per_sec;
    out_progress->dirty_bytes_per_sec = guest->migration.dirty_bytes_per_sec;
    out_progress->downtime_msec = guest->migration.downtime_msec;
    return guest->migration_usec != 0;
}

Berth__GuestStatus *berth_guest_status(const BerthGuest *guest)
{
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    id.job = guest->id.job;
    id.task = guest->id.task;
    id.guest = guest->id.guest;
    id.epoch = guest->id.epoch;
    Berth__Usage usage = guest->usage;
    Berth__GuestStatus status = BERTH__GUEST_STATUS__INIT;
    status.id = &id;
    status.phase = phase_to_tell(guest, lasting_phase(guest));
    status.start_usec = guest->start_usec;
    status.usage = &usage;
    status.held_back_usec = (guint64)guest->held_usec;
    status.storage_clients = guest->clients.known;
    status.n_storage_clients =
        guest->clients.known == NULL ? 0 : g_strv_length(guest->clients.known);
    status.stdout_bytes = berth_guest_durable(guest, BERTH_STDOUT);
    status.stderr_bytes = berth_guest_durable(guest, BERTH_STDERR);
    if (status.phase == BERTH__GUEST_STATUS__PHASE__ENDED) {
        status.end_usec = guest->end_usec;
        status.exit = guest->exit;
    } else if (status.phase == BERTH__GUEST_STATUS__PHASE__GONE) {
        status.reason = guest->reason;
        status.not_begun = !berth_guest_may_have_begun(guest);
        status.reason_text = guest->reason_text == NULL ? (char *)"" : guest->reason_text;
        status.console_tail = guest->console_tail == NULL ? (char *)"" : guest->console_tail;
    }
    if (status.phase == BERTH__GUEST_STATUS__PHASE__LEFT)
        status.reason_text = guest->was_sent
                                 ? (char *)"it was moved to another node"
                                 : (char *)"it was moved to another host, and not by Berth";
    Berth__MigrationProgress migration;
    if (berth_guest_migration(guest, &migration))
        status.migration = &migration;
    return (Berth__GuestStatus *)(void *)berth_message_copy(&status.base);
}
