/* SPDX-License-Identifier: Apache-2.0 */
/* Owns a guest's channel and log writer as parts of its life: when they begin, what their news mean
 * for its phase, and the deadlines for its boot and for its end. */
#include <config.h>

#include "nodeagent/guest_private.h"

#include <signal.h>

#include "common/error.h"

#define BOOT_DEADLINE_SEC 120u
/* In its time to boot storage is asked so often whether it answers, and this is too long for that. */
#define BOOT_LOOKS        4u
#define STORAGE_SLOW_USEC (5 * G_USEC_PER_SEC)
/* From SIGKILL to all processes of the job until the guest itself is given up. */
#define KILL_WAIT_MSEC 5000u
/* Output of a job that has no process any more: berth-init's two buffers of 1 MiB, and what is between
 * it and us. */
#define AFTER_KILL_MAX_BYTES (3u << 20)
#define NOT_KNOWN            G_MAXUINT64
#define LOOK_AGAIN_MSEC      2000u

/* --- news from the channel ------------------------------------------------------------------ */

static void on_boot_look_due(gpointer data);

static guint boot_deadline_sec(const BerthGuest *guest)
{
    guint sec = guest->request->boot_deadline_sec;
    return sec == 0 ? BOOT_DEADLINE_SEC : MIN(sec, 3600);
}

static void look_later(BerthGuest *guest)
{
    gint64 left_msec = (guest->boot_deadline_usec - g_get_monotonic_time()) / 1000 + 1;
    gint64 step_msec = boot_deadline_sec(guest) * 1000 / BOOT_LOOKS;
    guest->boot_source =
        g_timeout_add_once((guint)CLAMP(left_msec, 1, step_msec), on_boot_look_due, guest);
}

/* The whole deadline, from now on: for its boot, and once more, when it has booted, for its task. What
 * the guest says later gives it no more time; what the host needs for its files does. */
static void set_boot_deadline(BerthGuest *guest)
{
    if (guest->request == NULL || guest->stands_restored)
        return; /* adopted: nobody has said how long it may take; or that begins when it goes on */
    gint64 deadline_usec = g_get_monotonic_time() + boot_deadline_sec(guest) * G_USEC_PER_SEC;
    guest->boot_deadline_usec = MAX(guest->boot_deadline_usec, deadline_usec);
    if (guest->boot_source == 0 && guest->boot_look_usec == 0)
        look_later(guest);
}

static void break_boot(BerthGuest *guest)
{
    gboolean has_answered = guest->channel != NULL && berth_guest_channel_is_open(guest->channel);
    berth_guest_break(guest, BERTH__REASON__REASON_BOOT_DEADLINE,
                      has_answered ? "it answered, but did not take its task within %u s"
                                   : "it did not answer within %u s; a guest boots the longer the "
                                     "larger its disk is",
                      boot_deadline_sec(guest));
}

static gboolean is_stalled(const GError *error, gint64 passed_usec)
{
    return passed_usec > STORAGE_SLOW_USEC ||
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE) ||
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED) ||
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED);
}

static void on_storage_checked(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    gint64 now = g_get_monotonic_time();
    gint64 passed_usec = now - guest->boot_look_usec;
    guest->boot_look_usec = 0;
    berth_guest_check_storage_finish(result, &error);
    if (guest->is_closed || guest->phase != BERTH_PHASE_BOOTING)
        return;
    if (is_stalled(error, passed_usec))
        set_boot_deadline(guest);
    else if (now >= guest->boot_deadline_usec)
        break_boot(guest);
    else
        look_later(guest);
}

/* A guest boots from its disk: a time in which storage did not answer is none of its own. */
static void on_boot_look_due(gpointer data)
{
    BerthGuest *guest = data;
    guest->boot_source = 0;
    guest->boot_look_usec = g_get_monotonic_time();
    berth_guest_check_storage(guest, on_storage_checked);
}

static void on_answered(gboolean runs, gpointer data)
{
    BerthGuest *guest = data;
    gboolean is_new = guest->phase == BERTH_PHASE_BOOTING && !guest->has_booted;
    if (is_new) {
        set_boot_deadline(guest);
        guest->goes_on = runs;
    }
    guest->has_booted = TRUE;
    if (guest->restore_signal != 0 &&
        berth_guest_channel_signal_command(guest->channel, guest->restore_signal))
        guest->restore_signal = 0;
    if (!is_new || guest->is_adopted) {
        /* Whatever the session is new for, it may have stood still, or have been copied before. It does not measure itself while it
         * gives back. */
        berth_guest_ask_anew(guest);
        berth_guest_tell_resident(guest);
    }
    berth_guest_checkpoint_answered(guest);
    guest->context->answered(guest, guest->context->user_data);
}

static void on_delayed(gint64 usec, gpointer data)
{
    BerthGuest *guest = data;
    guest->boot_deadline_usec += usec;
}

static void on_started(guint64 start_usec, gpointer data)
{
    BerthGuest *guest = data;
    guest->start_usec = start_usec;
    berth_guest_take_step(guest, BERTH_STEP_STARTED);
}

static void on_ended(const Berth__FromGuest__Ended *ended, gpointer data)
{
    BerthGuest *guest = data;
    if (guest->exit == NULL) {
        berth_guest_take_exit(guest, ended->exit);
        guest->end_usec = ended->end_usec;
        if (ended->usage != NULL)
            berth_guest_take_usage(guest, ended->usage);
    }
    berth_guest_take_step(guest, BERTH_STEP_ENDED);
}

static void on_usage(const Berth__Usage *usage, gpointer data)
{
    berth_guest_take_usage(data, usage);
    berth_guest_note_usage(data);
}

static void on_failed(const char *message, gboolean disk_full, gpointer data)
{
    berth_guest_break(
        data, disk_full ? BERTH__REASON__REASON_DISK_FULL : BERTH__REASON__REASON_START_FAILED,
        "%s", message);
}

static void on_log_progress(gpointer data)
{
    BerthGuest *guest = data;
    if (guest->channel != NULL)
        berth_guest_channel_log_progress(guest->channel);
    guest->context->output(guest, guest->context->user_data);
    berth_guest_check_drained(guest);
}

/* --- beginning ------------------------------------------------------------------------------ */

static void open_channel(BerthGuest *guest, const guint64 acked_max[BERTH_N_STREAMS])
{
    static const BerthGuestChannelFuncs funcs = {on_answered, on_delayed, on_started,
                                                 on_ended,    on_usage,   on_failed};
    BerthGuestChannelConfig config = {
        .socket_path = guest->channel_path,
        .writer = guest->writer,
        .acked_max = {acked_max[0], acked_max[1]},
        .is_adopted = guest->is_adopted,
        .usage_interval_msec = berth_guest_usage_msec(guest),
        .stall_msec = guest->context->stall_msec,
        .memory_max_mib = guest->request != NULL ? guest->request->memory_max_mib : 0,
        .output_bytes_per_sec = guest->context->config->output_rate_mib << 20,
    };
    guest->channel = berth_guest_channel_new(&config, &funcs, guest);
    berth_guest_channel_set_leaving(guest->channel, berth_guest_is_leaving(guest));
    if (guest->files != NULL)
        berth_guest_give_task(guest);
    if (guest->stop_signal != 0)
        berth_guest_channel_set_signal(guest->channel, guest->stop_signal);
}

static void look_at_logs(BerthGuest *guest);

static void on_look_due(gpointer data)
{
    BerthGuest *guest = data;
    guest->retry_source = 0;
    look_at_logs(guest);
}

static void on_logs_sized(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    g_autofree guint64 *sizes = berth_guest_size_logs_finish(result, &error);
    if (guest->is_closed || guest->phase != BERTH_PHASE_BOOTING)
        return;
    if (sizes != NULL)
        open_channel(guest, sizes);
    else
        guest->retry_source = g_timeout_add_once(LOOK_AGAIN_MSEC, on_look_due, guest);
}

/* What an adopted guest says of its acknowledged output is checked against what storage has. */
static void look_at_logs(BerthGuest *guest)
{
    berth_guest_size_logs(guest, on_logs_sized);
}

static void find_clients(BerthGuest *guest);

static void on_clients_due(gpointer data)
{
    BerthGuest *guest = data;
    guest->clients_source = 0;
    find_clients(guest);
}

/* Each look asks Ceph for hundreds of objects (storage/rbd_watchers.c), and where the guest is known it is not pressing. */
static guint next_look_msec(BerthGuest *guest)
{
    char **known = guest->clients.known;
    if (known == NULL || known[0] == NULL)
        return berth_backoff_next_msec(&guest->clients_retry, g_random_double());
    if (berth_seen_clients_are_settled(&guest->clients))
        return berth_backoff_next_msec(&guest->clients_pace, g_random_double());
    berth_backoff_reset(&guest->clients_pace);
    return BERTH_SEEN_CLIENTS_STEADY_USEC / 1000;
}

static void find_clients_later(BerthGuest *guest)
{
    guest->clients_source = g_timeout_add_once(next_look_msec(guest), on_clients_due, guest);
}

void berth_guest_note_clients(BerthGuest *guest, char **clients)
{
    if (!berth_seen_clients_note(&guest->clients, (const char *const *)clients,
                                 g_get_monotonic_time()))
        return;
    guest->clients_serial = guest->serial + 1;
    berth_guest_touch(guest);
}

static void on_clients_found(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) clients = berth_guest_find_clients_finish(guest, result, &error);
    if (guest->is_closed || guest->phase > BERTH_PHASE_ENDED)
        return;
    if (clients != NULL && clients[0] == NULL &&
        !berth_storage_lane_names_clients(guest->context->lane)) {
        berth_guest_let_restored_go(guest);
        return;
    }
    if (clients != NULL && clients[0] != NULL) {
        berth_guest_note_clients(guest, clients);
    } else {
        g_debug("%s: no client of its disk is seen%s%s", guest->name, error != NULL ? ": " : "",
                error != NULL ? error->message : "");
        berth_seen_clients_miss(&guest->clients);
    }
    find_clients_later(guest);
}

/* Asks for as long as it runs, ever less often: without it, a fence would have to guess. */
static void find_clients(BerthGuest *guest)
{
    berth_guest_find_clients(guest, on_clients_found);
}

void berth_guest_start_talking(BerthGuest *guest)
{
    static const guint64 nothing[BERTH_N_STREAMS] = {0, 0};
    guest->writer = berth_log_writer_new(&berth_log_store_lane, guest->context->lane, guest->log_id,
                                         on_log_progress, guest);
    if (guest->is_stray)
        berth_log_writer_drop(guest->writer);
    if (guest->is_adopted) {
        set_boot_deadline(guest);
        look_at_logs(guest);
    } else {
        open_channel(guest, nothing);
    }
    find_clients(guest);
}

void berth_guest_expect_answer(BerthGuest *guest)
{
    if (guest->phase == BERTH_PHASE_BOOTING)
        set_boot_deadline(guest);
}

void berth_guest_give_task(BerthGuest *guest)
{
    set_boot_deadline(guest);
    if (guest->channel != NULL)
        berth_guest_channel_set_files(guest->channel, g_steal_pointer(&guest->files));
}

void berth_guest_stop_timers(BerthGuest *guest)
{
    g_clear_handle_id(&guest->boot_source, g_source_remove);
    g_clear_handle_id(&guest->stop_source, g_source_remove);
    g_clear_handle_id(&guest->retry_source, g_source_remove);
    g_clear_handle_id(&guest->clients_source, g_source_remove);
    g_clear_handle_id(&guest->go_on_source, g_source_remove);
}

gboolean berth_guest_may_have_begun(const BerthGuest *guest)
{
    return guest->had_run ||
           (guest->channel != NULL && berth_guest_channel_may_have_begun(guest->channel));
}

void berth_guest_disown(BerthGuest *guest)
{
    guest->is_stray = TRUE;
    if (guest->writer != NULL)
        berth_log_writer_drop(guest->writer);
}

void berth_guest_stop_talking(BerthGuest *guest)
{
    berth_guest_stop_timers(guest);
    guest->had_run = berth_guest_may_have_begun(guest);
    g_clear_pointer(&guest->channel, berth_guest_channel_free);
}

BerthExec *berth_guest_exec(BerthGuest *guest, const Berth__ExecRequest *request,
                            const BerthExecFuncs *funcs, gpointer user_data, GError **error)
{
    /* The scheduler says that it runs: it has come to this node, or the agent was started. */
    gboolean has_to_answer =
        guest->is_adopted && guest->phase == BERTH_PHASE_BOOTING && !guest->is_frozen;
    if (has_to_answer && guest->channel == NULL) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                            "the guest's output is looked for in storage before it is talked to on "
                            "this node; try again");
        return NULL;
    }
    if ((guest->phase != BERTH_PHASE_RUNNING && !has_to_answer) || guest->channel == NULL) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                            "the job's command does not run in its guest: it has not begun yet, or "
                            "it has ended");
        return NULL;
    }
    if (guest->is_held) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                            "the job is being moved to another node; try again when it is there");
        return NULL;
    }
    if (guest->is_frozen || guest->freeze_wanted) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                            "the guest is frozen");
        return NULL;
    }
    return berth_guest_execs_open(berth_guest_channel_execs(guest->channel), request, funcs,
                                  user_data, error);
}

/* --- ending --------------------------------------------------------------------------------- */

/* Output taken so far; NOT_KNOWN until an adopted guest has said where its output goes on. */
static guint64 bytes_taken(const BerthGuest *guest)
{
    guint64 bytes = 0;
    if (!berth_guest_is_known(guest))
        return NOT_KNOWN;
    for (guint i = 0; i < BERTH_N_STREAMS; i++)
        bytes += berth_log_writer_accepted(guest->writer, i);
    return bytes;
}

/* Storage, not the guest, keeps it from saying that its command has ended: what the command has put out
 * comes before that, and is taken no faster than it becomes durable. No processes, no more output than
 * was on its way: a guest that has more is not believed. */
static gboolean is_held_up(BerthGuest *guest)
{
    guint64 taken = bytes_taken(guest);
    if (taken == NOT_KNOWN)
        return guest->channel == NULL; /* storage has not said yet how long its logs are */
    gboolean is_news = taken != guest->kill_looked;
    if (guest->kill_bytes == NOT_KNOWN)
        guest->kill_bytes = taken;
    guest->kill_looked = taken;
    return taken - guest->kill_bytes <= AFTER_KILL_MAX_BYTES &&
           (is_news || !berth_log_writer_is_idle(guest->writer));
}

static void on_kill_wait_over(gpointer data)
{
    BerthGuest *guest = data;
    guest->stop_source = 0;
    if (is_held_up(guest)) {
        guest->stop_source = g_timeout_add_once(KILL_WAIT_MSEC, on_kill_wait_over, guest);
        return;
    }
    berth_guest_break(guest, BERTH__REASON__REASON_NONE,
                      "the guest did not end its command after SIGKILL");
}

static void send_stop(BerthGuest *guest, guint signal)
{
    guest->stop_signal = signal;
    if (guest->channel != NULL)
        berth_guest_channel_set_signal(guest->channel, signal);
}

static void on_grace_over(gpointer data)
{
    BerthGuest *guest = data;
    send_stop(guest, SIGKILL);
    guest->kill_bytes = guest->kill_looked = bytes_taken(guest);
    guest->stop_source = g_timeout_add_once(KILL_WAIT_MSEC, on_kill_wait_over, guest);
}

void berth_guest_begin_stop(BerthGuest *guest, guint grace_msec)
{
    if (guest->stop_source != 0)
        return; /* it is on its way */
    send_stop(guest, SIGTERM);
    guest->stop_source = g_timeout_add_once(grace_msec, on_grace_over, guest);
}
