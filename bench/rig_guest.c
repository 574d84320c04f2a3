/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the guests of nodes that are not there (bench/rig_guest.h): when their commands begin and end, and what is
 * measured of them. Invariant: a guest that has ended has no timer. */
#include "config.h"

#include "bench/rig_guest.h"

#include "bench/rig_trace.h"
#include "common/id.h"
#include "common/message.h"

#include <signal.h>
#include <string.h>

/* As berth-node.conf(5) has them. */
static const BerthPaceLimits pace_limits = {.near_memory_percent = 15,
                                            .near_pressure_percent = 5,
                                            .near_wait_percent = 20,
                                            .near_node_memory_percent = 10};

struct BerthGuest {
    BerthGuestId id;
    RigThread *thread;
    RigGuestFunc changed;
    gpointer user_data;
    BerthGuestPhaseOnNode phase; /* BOOTING, RUNNING or ENDED */
    guint64 serial, reported;
    guint run_msec; /* of its command */
    guint64 start_usec, end_usec;
    guint32 vcpus;
    guint32 status, signal;
    gboolean is_kept;
    gint64 frozen_usec; /* since when; 0: it is not */
    gint64 measured_usec;
    Berth__Usage usage;
    BerthPace pace;
    BerthRpcTimer timer; /* until it has booted, or ends: each stops it, or starts it anew */
};

/* --- what it is asked to run ------------------------------------------------------------------- */

/* A script is not looked into. */
static guint run_msec_of(const Berth__GuestTask *task, const RigPlan *plan)
{
    const char *name = task != NULL && task->n_command > 0 ? task->command[0] : "";
    gboolean is_script = task != NULL && task->script != NULL;
    if (!is_script && task != NULL && task->n_command == 2 && strcmp(name, "sleep") == 0)
        return (guint)CLAMP(g_ascii_strtod(task->command[1], NULL) * 1000, 0, G_MAXINT);
    if (!is_script && (strcmp(name, "true") == 0 || strcmp(name, "false") == 0))
        return 0;
    return plan->run_msec;
}

static guint32 status_of(const Berth__GuestTask *task)
{
    return task != NULL && task->script == NULL && task->n_command == 1 &&
           strcmp(task->command[0], "false") == 0;
}

/* --- what becomes of it ------------------------------------------------------------------------ */

static void trace(const BerthGuest *guest, const char *what)
{
    rig_trace(guest->thread->plan,
              "%s %" G_GUINT64_FORMAT " %" G_GUINT32_FORMAT " %" G_GUINT32_FORMAT, what,
              guest->id.job, guest->id.task, guest->id.epoch);
}

static void touch(BerthGuest *guest)
{
    guest->serial++;
    guest->changed(guest, guest->user_data);
}

/* Since it was measured last, or began, or was thawed. */
static void count_cpu(BerthGuest *guest, gint64 now_usec)
{
    gint64 passed_usec = guest->frozen_usec != 0 ? 0 : now_usec - guest->measured_usec;
    guint64 used_usec =
        (guint64)passed_usec * guest->vcpus * guest->thread->plan->busy_percent / 100;
    guest->usage.cpu_usec += used_usec;
    guest->usage.guest_cpu_usec += used_usec;
    guest->measured_usec = now_usec;
}

static void end(BerthGuest *guest)
{
    berth_rpc_poll_timer_stop(&guest->timer);
    if (guest->phase == BERTH_PHASE_RUNNING)
        count_cpu(guest, g_get_monotonic_time());
    guest->phase = BERTH_PHASE_ENDED;
    guest->end_usec = (guint64)g_get_real_time();
    guest->thread->counts.ends++;
    trace(guest, "end");
    touch(guest);
}

static void on_ended(gpointer data)
{
    end(data);
}

static void on_booted(gpointer data)
{
    BerthGuest *guest = data;
    gint64 now_usec = g_get_monotonic_time();
    guest->phase = BERTH_PHASE_RUNNING;
    guest->start_usec = (guint64)g_get_real_time();
    guest->measured_usec = now_usec;
    guest->thread->counts.begins++;
    trace(guest, "begin");
    touch(guest);
    berth_rpc_poll_timer_start(guest->thread->poll, &guest->timer, guest->run_msec, on_ended,
                               guest);
}

BerthGuest *rig_guest_new(RigThread *thread, const Berth__StartGuestRequest *request,
                          RigGuestFunc changed, gpointer user_data)
{
    const Berth__GuestId *id = request->id;
    BerthGuest *guest = g_new0(BerthGuest, 1);
    guest->id = (BerthGuestId){id->job, id->task, id->guest, id->epoch};
    guest->thread = thread;
    guest->changed = changed;
    guest->user_data = user_data;
    guest->phase = BERTH_PHASE_BOOTING;
    guest->run_msec = run_msec_of(request->task, thread->plan);
    guest->status = status_of(request->task);
    guest->vcpus = request->vcpus;
    berth__usage__init(&guest->usage);
    guest->usage.memory_total_mib = request->memory_mib;
    guest->usage.memory_available_mib = request->memory_mib / 2;
    guest->usage.memory_peak_mib = guest->usage.host_memory_mib = request->memory_mib / 2;
    thread->counts.guests++;
    thread->counts.starts++;
    berth_rpc_poll_timer_start(thread->poll, &guest->timer, thread->plan->boot_msec, on_booted,
                               guest);
    return guest;
}

void berth_guest_free(BerthGuest *guest)
{
    if (guest == NULL)
        return;
    berth_rpc_poll_timer_stop(&guest->timer);
    guest->thread->counts.guests--;
    g_free(guest);
}

void rig_guest_tell_again(BerthGuest *guest)
{
    if (guest->phase != BERTH_PHASE_BOOTING)
        touch(guest);
}

static void note_kept(BerthGuest *guest)
{
    if (guest->is_kept)
        return;
    guest->is_kept = TRUE;
    guest->thread->counts.kept++;
    trace(guest, "kept");
}

void rig_guest_released(BerthGuest *guest)
{
    if (guest->phase == BERTH_PHASE_ENDED)
        note_kept(guest);
}

void rig_guest_stop(BerthGuest *guest)
{
    if (guest->phase == BERTH_PHASE_ENDED)
        return;
    guest->signal = SIGTERM;
    end(guest);
}

static void freeze(BerthGuest *guest, gint64 now_usec)
{
    berth_rpc_poll_timer_stop(&guest->timer);
    if (guest->phase == BERTH_PHASE_RUNNING)
        count_cpu(guest, now_usec);
    guest->frozen_usec = now_usec;
}

static void thaw(BerthGuest *guest, gint64 now_usec)
{
    gint64 left_usec = MAX(guest->timer.due_usec - guest->frozen_usec, 0);
    guest->measured_usec = now_usec; /* until it was frozen is counted */
    guest->frozen_usec = 0;
    berth_rpc_poll_timer_start(guest->thread->poll, &guest->timer,
                               (guint)((left_usec + 999) / 1000),
                               guest->phase == BERTH_PHASE_BOOTING ? on_booted : on_ended, guest);
}

gboolean rig_guest_freeze(BerthGuest *guest, gboolean freezes)
{
    gint64 now_usec = g_get_monotonic_time();
    if (guest->phase == BERTH_PHASE_ENDED)
        return FALSE;
    if (freezes && guest->frozen_usec == 0)
        freeze(guest, now_usec);
    else if (!freezes && guest->frozen_usec != 0)
        thaw(guest, now_usec);
    return TRUE;
}

/* --- measurements ------------------------------------------------------------------------------ */

static guint32 milli_when_it_runs(const BerthGuest *guest)
{
    return guest->vcpus * guest->thread->plan->busy_percent * 10;
}

/* As those of a steady job are: a little up and down, and nothing of it noteworthy. */
static void measure(BerthGuest *guest, gint64 now_usec, guint window_msec)
{
    guint64 total_mib = guest->usage.memory_total_mib;
    count_cpu(guest, now_usec);
    guest->usage.memory_available_mib =
        total_mib / 2 + (guint64)g_random_int_range(0, (gint32)(total_mib / 128) + 1);
    guest->usage.cpu_milli = guest->frozen_usec != 0 ? 0 : milli_when_it_runs(guest);
    guest->usage.rate_msec = window_msec;
}

void rig_guest_look(BerthGuest *guest, gint64 now_usec, const BerthPaceIntervals *intervals,
                    gint64 early_usec)
{
    if (guest->phase == BERTH_PHASE_ENDED ||
        berth_pace_due_usec(&guest->pace, intervals) > now_usec + early_usec)
        return;
    berth_pace_looked(&guest->pace, now_usec);
    if (guest->phase == BERTH_PHASE_RUNNING)
        measure(guest, now_usec, intervals->msec[BERTH_PACE_NORMAL]);
    berth_pace_set(&guest->pace, berth_pace_of_guest(&guest->usage, &pace_limits), now_usec);
}

guint32 rig_guest_cpu_milli(const BerthGuest *guest)
{
    return guest->usage.cpu_milli;
}

/* --- what the session asks (nodeagent/guest.h) --------------------------------------------------- */

const BerthGuestId *berth_guest_id(const BerthGuest *guest)
{
    return &guest->id;
}

/* Nobody looks for a domain here. */
const char *berth_guest_name(const BerthGuest *guest)
{
    return "";
}

gboolean berth_guest_is_over(const BerthGuest *guest)
{
    return FALSE;
}

BerthGuestPhaseOnNode berth_guest_phase(const BerthGuest *guest)
{
    return guest->phase;
}

gboolean berth_guest_is_ours(const BerthGuest *guest)
{
    return TRUE;
}

gboolean berth_guest_is_to_tell(const BerthGuest *guest)
{
    return TRUE;
}

guint64 berth_guest_serial(const BerthGuest *guest)
{
    return guest->serial;
}

gboolean berth_guest_is_reported(const BerthGuest *guest)
{
    return guest->reported >= guest->serial;
}

void berth_guest_set_reported(BerthGuest *guest, guint64 serial)
{
    guest->reported = MAX(guest->reported, serial);
    if (guest->phase == BERTH_PHASE_ENDED && berth_guest_is_reported(guest))
        note_kept(guest);
}

/* It was not restored from anything, and has no output that somebody else may go on with. */
void berth_guest_set_kept(BerthGuest *guest, guint64 serial)
{
}

void berth_guest_tell_if_it_stands(BerthGuest *guest)
{
}

void berth_guest_disown(BerthGuest *guest)
{
}

gboolean berth_guest_is_near(const BerthGuest *guest)
{
    return guest->pace.kind == BERTH_PACE_NEAR;
}

const Berth__Usage *berth_guest_usage(const BerthGuest *guest)
{
    return &guest->usage;
}

guint64 berth_guest_durable(const BerthGuest *guest, guint stream)
{
    return 0;
}

gboolean berth_guest_migration(const BerthGuest *guest, Berth__MigrationProgress *out_progress)
{
    berth__migration_progress__init(out_progress);
    return FALSE;
}

static Berth__GuestStatus__Phase phase_to_tell(const BerthGuest *guest)
{
    switch (guest->phase) {
    case BERTH_PHASE_RUNNING:
        return BERTH__GUEST_STATUS__PHASE__ACTIVE;
    case BERTH_PHASE_ENDED:
        return BERTH__GUEST_STATUS__PHASE__ENDED;
    default:
        return BERTH__GUEST_STATUS__PHASE__STARTING;
    }
}

Berth__GuestStatus *berth_guest_status(const BerthGuest *guest)
{
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    Berth__Exit exit = BERTH__EXIT__INIT;
    Berth__Usage usage = guest->usage;
    Berth__GuestStatus status = BERTH__GUEST_STATUS__INIT;
    id.job = guest->id.job;
    id.task = guest->id.task;
    id.guest = guest->id.guest;
    id.epoch = guest->id.epoch;
    exit.status = guest->status;
    exit.signal = guest->signal;
    status.id = &id;
    status.phase = phase_to_tell(guest);
    status.start_usec = guest->start_usec;
    status.usage = &usage;
    if (guest->phase == BERTH_PHASE_ENDED) {
        status.end_usec = guest->end_usec;
        status.exit = &exit;
    }
    return (Berth__GuestStatus *)(void *)berth_message_copy(&status.base);
}
