/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is asked of libvirt for a checkpoint: that the guest is measured, stands still where it has to, is saved, and is let
 * go when its disk has its snapshot, or when there will be none.
 *
 *     measured -> ran for a moment (if it may have been saved before) -> stopped (if emulated) -> hurries -> saved -> let go
 *
 * A guest that is emulated (TCG) stands still from the start: QEMU 7.2 loses what such a guest writes while its memory is
 * copied.
 *
 * Invariants: one question at a time, but that how far it is is looked at; it is let go once libvirt has answered the others. */
#include <config.h>

#include "nodeagent/checkpoint_internal.h"

#include "common/error.h"

/* How often it is looked whether a guest that runs meanwhile would write more than there is space for. */
#define LOOK_MSEC 500u
/* A measurement does not keep it. */
#define STATS_MSEC 1000u
/* Its vCPUs are to go on, and libvirt does not let them. */
#define RESUME_AGAIN_MSEC 1000u
/* Likewise, and it does not let go of it. */
#define ABORT_AGAIN_MSEC 1000u

/* --- letting it go -------------------------------------------------------------------------- */

static void end_pause(Checkpoint *checkpoint)
{
    if (checkpoint->stopped_usec != 0)
        checkpoint->pause_usec = (guint64)(g_get_monotonic_time() - checkpoint->stopped_usec);
    checkpoint->stopped_usec = 0;
}

static void on_let_go_due(gpointer data)
{
    Checkpoint *checkpoint = data;
    checkpoint->source = 0;
    checkpoint->is_letting_go = FALSE;
    berth_checkpoint_let_go(checkpoint);
}

/* It is to, after a moment. */
static gboolean stands_again(const BerthGuest *guest)
{
    return guest->freeze_wanted && !guest->is_closed && berth_guest_has_domain(guest);
}

static void has_let_go(Checkpoint *checkpoint)
{
    checkpoint->is_letting_go = FALSE;
    end_pause(checkpoint);
    checkpoint->is_let_go = TRUE;
    if (!checkpoint->guest->is_closed)
        berth_guest_hurry_no_more(checkpoint->guest); /* though its record is still to be written */
    berth_checkpoint_proceed(checkpoint);
}

static void stand_again(Checkpoint *checkpoint);

static void on_stand_due(gpointer data)
{
    Checkpoint *checkpoint = data;
    checkpoint->source = 0;
    stand_again(checkpoint);
}

static void on_stands_again(GObject *source, GAsyncResult *result, gpointer data)
{
    Checkpoint *checkpoint = data;
    g_autoptr(BerthGuestRef) guest = checkpoint->guest;
    g_autoptr(GError) error = NULL;
    guest->is_frozen = berth_hypervisor_suspend_finish(result, &error);
    if (guest->is_frozen || !stands_again(guest)) {
        has_let_go(checkpoint);
        return;
    }
    g_warning("%s runs after a checkpoint, and is to stand still: %s", guest->name, error->message);
    checkpoint->source = g_timeout_add_once(RESUME_AGAIN_MSEC, on_stand_due, checkpoint);
}

/* It has run for a moment. */
static void stand_again(Checkpoint *checkpoint)
{
    BerthGuest *guest = checkpoint->guest;
    if (!stands_again(guest)) {
        has_let_go(checkpoint);
        return;
    }
    berth_hypervisor_suspend_async(guest->context->hypervisor, guest->name, on_stands_again,
                                   checkpoint);
    berth_guest_ref(guest);
}

static void on_resumed(GObject *source, GAsyncResult *result, gpointer data)
{
    Checkpoint *checkpoint = data;
    g_autoptr(BerthGuestRef) guest = checkpoint->guest;
    g_autoptr(GError) error = NULL;
    gboolean ok = berth_hypervisor_resume_finish(result, &error);
    gboolean is_there = !guest->is_closed && berth_guest_has_domain(guest);
    if (ok)
        berth_guest_set_stands(guest, FALSE);
    if (ok && is_there) {
        stand_again(checkpoint);
    } else if (!ok && is_there) {
        g_warning("%s stands still after a checkpoint, and cannot be let go: %s", guest->name,
                  error->message);
        checkpoint->source = g_timeout_add_once(RESUME_AGAIN_MSEC, on_let_go_due, checkpoint);
    } else {
        has_let_go(checkpoint);
    }
}

/* QEMU lets nobody move or save a guest that has stood still since it was saved: one that is to stand still on, and to be one's own
 * again, runs for a moment. */
static gboolean must_run_a_moment(const Checkpoint *checkpoint)
{
    gboolean stays = checkpoint->stops && checkpoint->error == NULL;
    return (checkpoint->domain_xml != NULL || checkpoint->has_run) && !stays;
}

/* As it is to be from now on: it goes on, or stands still on. */
void berth_checkpoint_let_go(Checkpoint *checkpoint)
{
    BerthGuest *guest = checkpoint->guest;
    gboolean stands = guest->freeze_wanted || (checkpoint->stops && checkpoint->error == NULL);
    if (checkpoint->is_letting_go)
        return;
    checkpoint->is_to_go = checkpoint->is_holding;
    if (checkpoint->is_to_go)
        return; /* libvirt could do the one after the other */
    if ((stands && !must_run_a_moment(checkpoint)) || guest->is_closed ||
        !berth_guest_has_domain(guest)) {
        checkpoint->is_let_go = TRUE;
        berth_checkpoint_proceed(checkpoint);
        return;
    }
    checkpoint->is_let_go = FALSE;
    checkpoint->is_letting_go = TRUE;
    berth_hypervisor_resume_async(guest->context->hypervisor, guest->name, on_resumed, checkpoint);
    berth_guest_ref(guest);
}

/* --- saving -------------------------------------------------------------------------------- */

gboolean berth_checkpoint_can_go_on(const Checkpoint *checkpoint)
{
    const BerthGuest *guest = checkpoint->guest;
    return !guest->is_closed && !checkpoint->is_given_up && berth_guest_has_domain(guest) &&
           !checkpoint->is_filled;
}

/* It has not come to a snapshot, and will not. ERROR (transfer full). */
void berth_checkpoint_give_up(Checkpoint *checkpoint, GError *error)
{
    checkpoint->is_preparing = FALSE;
    berth_checkpoint_fail(checkpoint, error, FALSE);
    berth_checkpoint_tell_worker(checkpoint, FALSE);
    berth_checkpoint_let_go(checkpoint);
}

GError *berth_checkpoint_not_wanted(const Checkpoint *checkpoint)
{
    return g_error_new(BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "%s has ended, or is being ended",
                       checkpoint->guest->name);
}

/* While libvirt is away nobody knows whether the guest runs on. */
static GError *why_not_saved(const Checkpoint *checkpoint, const GError *error)
{
    if (checkpoint->is_given_up || !berth_guest_has_domain(checkpoint->guest))
        return berth_checkpoint_not_wanted(checkpoint);
    if (!berth_hypervisor_is_connected(checkpoint->guest->context->hypervisor))
        return g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "%s", error->message);
    return g_error_copy(error);
}

static void on_saved(GObject *source, GAsyncResult *result, gpointer data)
{
    Checkpoint *checkpoint = data;
    g_autoptr(BerthGuestRef) guest = checkpoint->guest;
    g_autoptr(GError) error = NULL;
    checkpoint->domain_xml = berth_hypervisor_save_finish(result, &error);
    checkpoint->is_saving = FALSE;
    g_clear_handle_id(&checkpoint->look_source, g_source_remove);
    g_clear_handle_id(&checkpoint->abort_source, g_source_remove);
    if (checkpoint->domain_xml == NULL) {
        berth_checkpoint_give_up(checkpoint, why_not_saved(checkpoint, error));
        return;
    }
    guest->is_frozen = guest->may_be_saved = TRUE;
    berth_checkpoint_tell_worker(checkpoint, berth_checkpoint_can_go_on(checkpoint));
    if (checkpoint->is_filled)
        berth_checkpoint_let_go(checkpoint);
}

static void look_later(Checkpoint *checkpoint);

static void on_held(GObject *source, GAsyncResult *result, gpointer data)
{
    Checkpoint *checkpoint = data;
    g_autoptr(BerthGuestRef) guest = checkpoint->guest;
    g_autoptr(GError) error = NULL;
    if (!berth_hypervisor_suspend_finish(result, &error))
        g_debug("%s: %s", guest->name, error->message);
    checkpoint->is_holding = FALSE;
    if (checkpoint->is_to_go)
        berth_checkpoint_let_go(checkpoint);
}

static void on_looked(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autofree BerthGuestLook *look = data;
    g_autoptr(BerthGuestRef) guest = look->guest;
    g_autoptr(GError) error = NULL;
    g_autofree BerthMigrationState *state = berth_hypervisor_migration_finish(result, &error);
    Checkpoint *checkpoint = guest->checkpoint;
    if (guest->is_closed || checkpoint == NULL || checkpoint->serial != look->serial ||
        !checkpoint->is_saving)
        return;
    if (state == NULL || !berth_convergence_must_stand(state->copied_bytes, state->left_bytes,
                                                       checkpoint->space_bytes)) {
        look_later(checkpoint);
        return;
    }
    g_message("%s writes its memory again faster than it is saved: it stands still for the rest",
              guest->name);
    checkpoint->is_holding = TRUE;
    berth_hypervisor_suspend_async(guest->context->hypervisor, guest->name, on_held, checkpoint);
    berth_guest_ref(guest);
}

static void on_look_due(gpointer data)
{
    Checkpoint *checkpoint = data;
    checkpoint->look_source = 0;
    if (checkpoint->guest->is_closed)
        return;
    BerthGuestLook *look = berth_guest_look_new(checkpoint->guest, checkpoint->serial);
    berth_hypervisor_migration_async(checkpoint->guest->context->hypervisor,
                                     checkpoint->guest->name, on_looked, look);
}

static void look_later(Checkpoint *checkpoint)
{
    checkpoint->look_source = g_timeout_add_once(LOOK_MSEC, on_look_due, checkpoint);
}

/* --- libvirt is to let go of it ----------------------------------------------------------------- */

static void on_abort_due(gpointer data)
{
    Checkpoint *checkpoint = data;
    checkpoint->abort_source = 0;
    berth_checkpoint_abort_save(checkpoint);
}

static void on_aborted(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autofree BerthGuestLook *look = data;
    g_autoptr(BerthGuestRef) guest = look->guest;
    g_autoptr(GError) error = NULL;
    Checkpoint *checkpoint = guest->checkpoint;
    if (!berth_hypervisor_abort_job_finish(result, &error))
        g_debug("%s: %s", guest->name, error->message);
    if (guest->is_closed || checkpoint == NULL || checkpoint->serial != look->serial)
        return;
    checkpoint->is_aborting = FALSE;
    if (checkpoint->is_saving)
        checkpoint->abort_source = g_timeout_add_once(ABORT_AGAIN_MSEC, on_abort_due, checkpoint);
}

/* Until it has answered: it may not have begun, or not listen. The end of the FIFO is seen by a QEMU alone that writes. One
 * question at a time: a QEMU whose monitor hangs keeps each for as long as it may take. */
void berth_checkpoint_abort_save(Checkpoint *checkpoint)
{
    if (checkpoint->is_aborting || checkpoint->abort_source != 0)
        return;
    BerthGuestLook *look = berth_guest_look_new(checkpoint->guest, checkpoint->serial);
    checkpoint->is_aborting = TRUE;
    berth_hypervisor_abort_job_async(checkpoint->guest->context->hypervisor,
                                     checkpoint->guest->name, on_aborted, look);
}

/* From the worker. */
void berth_checkpoint_stalled(gpointer data)
{
    Checkpoint *checkpoint = data;
    if (!checkpoint->is_saving)
        return;
    g_warning("%s is given up by its checkpoint: libvirt does nothing", checkpoint->guest->name);
    berth_checkpoint_fail(checkpoint, berth_memory_pipe_why_stalled(), FALSE);
    berth_checkpoint_abort_save(checkpoint);
}

/* --- one thing after the other ----------------------------------------------------------------- */

static void save(BerthGuest *guest)
{
    Checkpoint *checkpoint = guest->checkpoint;
    if (!berth_checkpoint_can_go_on(checkpoint)) {
        berth_checkpoint_give_up(checkpoint, berth_checkpoint_not_wanted(checkpoint));
        return;
    }
    checkpoint->is_preparing = FALSE;
    checkpoint->is_saving = TRUE;
    if (guest->context->use_kvm && !checkpoint->frozen)
        look_later(checkpoint);
    berth_memory_pipe_asked(checkpoint->pipe);
    berth_hypervisor_save_async(guest->context->hypervisor, guest->name,
                                berth_memory_pipe_path(checkpoint->pipe), on_saved, checkpoint);
    berth_guest_ref(guest);
}

static void hurry(Checkpoint *checkpoint)
{
    berth_guest_hurry(checkpoint->guest, checkpoint->hurries, save);
}

static void on_suspended(GObject *source, GAsyncResult *result, gpointer data)
{
    Checkpoint *checkpoint = data;
    g_autoptr(BerthGuestRef) guest = checkpoint->guest;
    g_autoptr(GError) error = NULL;
    gboolean ok = berth_hypervisor_suspend_finish(result, &error);
    guest->is_frozen = TRUE; /* it may have taken effect all the same */
    if (ok)
        hurry(checkpoint);
    else
        berth_checkpoint_give_up(checkpoint, why_not_saved(checkpoint, error));
}

static void on_run(GObject *source, GAsyncResult *result, gpointer data)
{
    Checkpoint *checkpoint = data;
    g_autoptr(BerthGuestRef) guest = checkpoint->guest;
    g_autoptr(GError) error = NULL;
    gboolean ok = berth_hypervisor_resume_finish(result, &error);
    checkpoint->has_run = TRUE; /* it may have taken effect all the same */
    if (!ok) {
        berth_checkpoint_give_up(checkpoint, why_not_saved(checkpoint, error));
        return;
    }
    berth_guest_set_stands(guest, FALSE);
    if (guest->context->use_kvm && !checkpoint->frozen) {
        hurry(checkpoint); /* it is saved as it runs */
        return;
    }
    berth_hypervisor_suspend_async(guest->context->hypervisor, guest->name, on_suspended,
                                   checkpoint);
    berth_guest_ref(guest);
}

/* It may have stood still since it was saved: it runs for a moment, so that it can be saved again. */
static void run_a_moment(Checkpoint *checkpoint)
{
    BerthGuest *guest = checkpoint->guest;
    berth_hypervisor_resume_async(guest->context->hypervisor, guest->name, on_run, checkpoint);
    berth_guest_ref(guest);
}

static void on_measured(GObject *source, GAsyncResult *result, gpointer data)
{
    Checkpoint *checkpoint = data;
    g_autoptr(BerthGuestRef) guest = checkpoint->guest;
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthDomainStats) stats = berth_hypervisor_domain_stats_finish(result, &error);
    if (stats != NULL && !guest->is_closed)
        berth_guest_measured(guest, stats);
    checkpoint->usage = guest->usage;
    checkpoint->taken_usec = (guint64)g_get_real_time();
    if (guest->is_frozen && guest->may_be_saved && berth_checkpoint_can_go_on(checkpoint)) {
        run_a_moment(checkpoint);
        return;
    }
    if (guest->context->use_kvm || checkpoint->frozen || !berth_checkpoint_can_go_on(checkpoint)) {
        hurry(checkpoint);
        return;
    }
    berth_hypervisor_suspend_async(guest->context->hypervisor, guest->name, on_suspended,
                                   checkpoint);
    berth_guest_ref(guest);
}

void berth_checkpoint_begin_save(Checkpoint *checkpoint)
{
    berth_hypervisor_domain_stats_async(checkpoint->guest->context->hypervisor,
                                        checkpoint->guest->name, STATS_MSEC, on_measured,
                                        checkpoint);
    berth_guest_ref(checkpoint->guest);
}

void berth_guest_domain_suspended(BerthGuest *guest)
{
    Checkpoint *checkpoint = guest->checkpoint;
    if (checkpoint == NULL || checkpoint->stopped_usec != 0 || checkpoint->frozen)
        return;
    checkpoint->stopped_usec = g_get_monotonic_time();
    checkpoint->taken_usec = (guint64)g_get_real_time();
}
