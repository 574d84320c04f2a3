/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a running guest leaves its node for another one, and how it is brought back into its life where
 * that fails. libvirt on both hosts does the moving; the guest stands still there until it is taken.
 *
 *     suspended (if emulated) -> measured -> hurries (in slack) -> moved -> gone
 *                                                                     |-> does it stay? -> its vCPUs as they are to be -> stays
 *
 * Who is emulated (TCG) stands still while its memory is copied: QEMU 7.2 loses what such a guest writes
 * meanwhile. What libvirt still moves for an agent before us is followed to its end: no move begins before it
 * is known that there is no such one.
 *
 * Invariants: its vCPUs are not let go here once its domain may be another node's; nobody is told that it
 * stays before libvirt has been seen to have it, and to move it no more, and its vCPUs are as they are to
 * be; one that may have left and is not to be found has left. */
#include <config.h>

#include "nodeagent/guest_private.h"

#include "common/error.h"
#include "common/id.h"

/* How often it is looked how far the copy is. */
#define LOOK_MSEC 500u
/* A measurement before it leaves does not keep it. */
#define STATS_MSEC 1000u
/* How often it is looked whether libvirt has let go of one that is to stay; who waits is told after so long
 * that it is not known, and it is looked less often. */
#define STAY_LOOK_MSEC  50u
#define STAY_AGAIN_MSEC 1000u
#define STAY_USEC       (30 * G_USEC_PER_SEC)

static void look_whether_it_stays(BerthGuest *guest);

gboolean berth_guest_is_leaving(const BerthGuest *guest)
{
    return guest->is_leaving;
}

gboolean berth_guest_has_left(const BerthGuest *guest)
{
    return guest->has_left;
}

gboolean berth_guest_may_have_left(const BerthGuest *guest)
{
    gboolean waits = guest->is_leaving && guest->may_be_moving;
    return (guest->may_have_left || waits) && berth_guest_has_domain(guest);
}

static void set_leaving(BerthGuest *guest, gboolean leaves)
{
    guest->is_leaving = leaves;
    if (guest->channel != NULL)
        berth_guest_channel_set_leaving(guest->channel, leaves || guest->has_left);
}

/* It leaves no more. ERROR: what who waits for that is told; NULL: it has left. */
static void end(BerthGuest *guest, const GError *error)
{
    g_clear_handle_id(&guest->migration_source, g_source_remove);
    g_clear_pointer(&guest->target, berth_migration_target_free);
    set_leaving(guest, FALSE);
    guest->is_followed = guest->may_have_left = FALSE;
    guest->is_held = guest->stays = guest->migration_stalls = FALSE;
    guest->is_pressed_to_leave = FALSE;
    guest->migration_usec = guest->stay_usec = 0;
    guest->migration = (BerthMigrationState){0};
    guest->convergence = (BerthConvergence){0};
    berth_guest_give_answers(guest->leave_answers, BERTH_FAULT_NONE, error);
    g_clear_error(&guest->stay_error);
    berth_guest_hurry_no_more(guest);
    berth_guest_resize_go_on(guest);
    berth_guest_freeze_go_on(guest);
}

/* --- it has left ---------------------------------------------------------------------------- */

static void go(BerthGuest *guest)
{
    guest->was_sent = guest->is_leaving;
    guest->has_left = guest->keep_disk = TRUE;
    guest->may_have_domain = guest->domain_is_up = FALSE;
    g_message("%s has left for another node", guest->name);
    berth_guest_end_resize(guest);
    end(guest, NULL);
    berth_guest_take_step(guest, BERTH_STEP_LEFT);
}

/* While libvirt has still to answer, its answer comes. */
void berth_guest_domain_left(BerthGuest *guest)
{
    if (!guest->domain_is_up)
        return;
    guest->domain_is_up = FALSE;
    guest->has_left = TRUE;
    if (guest->migration_usec == 0 || guest->is_followed)
        go(guest);
}

/* --- it stays ------------------------------------------------------------------------------- */

static void on_stay_due(gpointer data)
{
    BerthGuest *guest = data;
    guest->migration_source = 0;
    look_whether_it_stays(guest);
}

/* Nobody knows yet, because of ERROR. */
static void look_again_whether_it_stays(BerthGuest *guest, const GError *error, guint msec)
{
    gboolean is_soon = berth_hypervisor_is_connected(guest->context->hypervisor) &&
                       g_get_monotonic_time() < guest->stay_usec + STAY_USEC;
    if (!is_soon && guest->leave_answers->len > 0) {
        g_autoptr(GError) why =
            g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                        "whether %s stays is not known yet: %s", guest->name, error->message);
        g_message("%s", why->message);
        berth_guest_give_answers(guest->leave_answers, BERTH_FAULT_NONE, why);
    }
    guest->migration_source =
        g_timeout_add_once(is_soon ? msec : STAY_AGAIN_MSEC, on_stay_due, guest);
}

static void end_here(BerthGuest *guest)
{
    g_autoptr(GError) why = g_steal_pointer(&guest->stay_error);
    if (guest->stays) {
        g_clear_error(&why);
        why = g_error_new_literal(BERTH_ERROR, BERTH_ERROR_CANCELLED, "its move was called off");
    }
    berth_guest_tell_resident(guest);
    end(guest, why);
}

static void on_settled(BerthGuest *guest, gboolean is_frozen, const GError *error)
{
    if (guest->is_closed || !guest->is_leaving)
        return;
    if (error != NULL) {
        look_again_whether_it_stays(guest, error, STAY_AGAIN_MSEC);
        return;
    }
    berth_guest_set_stands(guest, is_frozen);
    end_here(guest);
}

static void on_suspended_here(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    berth_hypervisor_suspend_finish(result, &error);
    on_settled(guest, TRUE, error);
}

static void on_resumed_here(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    berth_hypervisor_resume_finish(result, &error);
    on_settled(guest, FALSE, error);
}

/* Whoever stopped it for the move: this agent, one before, or a libvirtd that ended in its last step. */
static void settle(BerthGuest *guest)
{
    BerthHypervisor *hypervisor = guest->context->hypervisor;
    if (guest->freeze_wanted)
        berth_hypervisor_suspend_async(hypervisor, guest->name, on_suspended_here,
                                       berth_guest_ref(guest));
    else
        berth_hypervisor_resume_async(hypervisor, guest->name, on_resumed_here,
                                      berth_guest_ref(guest));
}

/* One that libvirt does not know, and was not asked to move, has ended: libvirt tells how. */
static void take_not_found(BerthGuest *guest, const GError *error)
{
    g_autoptr(GError) why = NULL;
    if (guest->may_have_left) {
        go(guest);
        return;
    }
    why = g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "%s", error->message);
    end(guest, why);
}

static void on_stays(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    gboolean ok = berth_hypervisor_stay_finish(result, &error);
    if (guest->is_closed || !guest->is_leaving)
        return;
    if (ok)
        settle(guest);
    else if (g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND) &&
             berth_guest_has_domain(guest))
        take_not_found(guest, error);
    else
        look_again_whether_it_stays(guest, error, STAY_LOOK_MSEC);
}

static void look_whether_it_stays(BerthGuest *guest)
{
    if (guest->has_left)
        go(guest);
    else if (!berth_guest_has_domain(guest))
        end_here(guest); /* it has ended, or is being ended */
    else
        berth_hypervisor_stay_async(guest->context->hypervisor, guest->name, on_stays,
                                    berth_guest_ref(guest));
}

/* ERROR (transfer full): why it stays, unless it has left all the same. */
static void stay_here(BerthGuest *guest, GError *error)
{
    g_clear_error(&guest->stay_error);
    guest->stay_error = error;
    guest->stay_usec = g_get_monotonic_time();
    look_whether_it_stays(guest);
}

static GError *is_to_stay(const BerthGuest *guest)
{
    return g_error_new_literal(BERTH_ERROR, BERTH_ERROR_CANCELLED, "its move was called off");
}

/* --- on its way ----------------------------------------------------------------------------- */

static void look_later(BerthGuest *guest);

static void on_told_to_let_go(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(GError) error = NULL;
    if (!berth_hypervisor_abort_job_finish(result, &error))
        g_debug("%s", error->message);
}

/* That the move has ended is its own answer's to say; libvirt is told again with every look until then. */
static void tell_to_let_go(BerthGuest *guest)
{
    berth_hypervisor_abort_job_async(guest->context->hypervisor, guest->name, on_told_to_let_go,
                                     NULL);
}

static void converge(BerthGuest *guest, guint64 left_bytes)
{
    if (left_bytes == 0 || guest->is_held)
        return;
    switch (berth_convergence_look(&guest->convergence, g_get_monotonic_time(), left_bytes)) {
    case BERTH_CONVERGENCE_RAISE_DOWNTIME:
        g_message("%s writes faster than it is copied: it may stand still for %u ms", guest->name,
                  guest->convergence.downtime_msec);
        berth_hypervisor_migration_allow(guest->context->hypervisor, guest->name,
                                         guest->convergence.downtime_msec);
        break;
    case BERTH_CONVERGENCE_GIVE_UP:
        guest->migration_stalls = TRUE;
        tell_to_let_go(guest);
        break;
    case BERTH_CONVERGENCE_WAIT:
        break;
    }
}

/* libvirt was asked too early to let go of it, or did not listen. */
static void call_off_again(BerthGuest *guest)
{
    if (guest->stays || guest->migration_stalls)
        tell_to_let_go(guest);
}

/* What libvirt did for an agent before us has come to its end. */
static void end_following(BerthGuest *guest)
{
    guest->is_followed = FALSE;
    guest->migration_usec = 0;
    stay_here(guest,
              g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                          "what moved %s since before the node's agent was started has ended",
                          guest->name));
}

static void on_looked(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autofree BerthGuestLook *look = data;
    g_autoptr(BerthGuestRef) guest = look->guest;
    g_autoptr(GError) error = NULL;
    g_autofree BerthMigrationState *state = berth_hypervisor_migration_finish(result, &error);
    if (guest->is_closed || guest->migration_usec == 0 || look->serial != guest->migration_serial)
        return;
    gboolean is_over = state != NULL ? !state->is_under_way
                                     : g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND);
    if (guest->is_followed && is_over) {
        end_following(guest);
        return;
    }
    if (state != NULL) {
        guest->migration = *state;
        /* Whoever waits is shown how far it is: it is reported with what is new of its output. */
        guest->context->output(guest, guest->context->user_data);
        converge(guest, state->left_bytes);
    }
    call_off_again(guest);
    look_later(guest);
}

static void on_look_due(gpointer data)
{
    BerthGuest *guest = data;
    guest->migration_source = 0;
    BerthGuestLook *look = berth_guest_look_new(guest, guest->migration_serial);
    berth_hypervisor_migration_async(guest->context->hypervisor, guest->name, on_looked, look);
}

static void look_later(BerthGuest *guest)
{
    g_clear_handle_id(&guest->migration_source, g_source_remove);
    guest->migration_source = g_timeout_add_once(LOOK_MSEC, on_look_due, guest);
}

/* Why it stays, of what libvirt has said (transfer full). While libvirt is away nobody knows whether it does. */
static GError *why_it_stays(const BerthGuest *guest, const GError *error)
{
    gboolean is_away = !berth_hypervisor_is_connected(guest->context->hypervisor);
    if (guest->migration_stalls && !is_away)
        return g_error_new(
            BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
            "it writes its memory faster than that can be copied, however much it is "
            "slowed down");
    if (is_away || g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE) ||
        g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND))
        return g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "%s", error->message);
    return g_error_new(BERTH_ERROR, BERTH_ERROR_INTERNAL, "%s", error->message);
}

static void on_moved(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    gboolean ok = berth_hypervisor_migrate_finish(result, &error);
    if (guest->is_closed)
        return;
    g_clear_handle_id(&guest->migration_source, g_source_remove);
    guest->migration_usec = 0;
    if (ok)
        go(guest);
    else
        stay_here(guest, why_it_stays(guest, error));
}

static void move(BerthGuest *guest)
{
    if (guest->is_closed || !guest->is_leaving)
        return;
    if (guest->stays || !berth_guest_has_domain(guest)) {
        stay_here(guest, is_to_stay(guest));
        return;
    }
    guest->may_have_left = TRUE;
    guest->migration_usec = g_get_real_time();
    guest->migration_serial++;
    look_later(guest);
    berth_hypervisor_migrate_async(guest->context->hypervisor, guest->name, guest->target, on_moved,
                                   berth_guest_ref(guest));
}

/* What it has used goes with it. */
static void on_measured(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthDomainStats) stats = berth_hypervisor_domain_stats_finish(result, &error);
    if (guest->is_closed || !guest->is_leaving)
        return;
    if (stats != NULL)
        berth_guest_measured(guest, stats);
    berth_guest_hurry(guest, guest->is_pressed_to_leave, move);
}

static void measure(BerthGuest *guest)
{
    berth_hypervisor_domain_stats_async(guest->context->hypervisor, guest->name, STATS_MSEC,
                                        on_measured, berth_guest_ref(guest));
}

static void on_suspended(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    gboolean ok = berth_hypervisor_suspend_finish(result, &error);
    if (guest->is_closed || !guest->is_leaving)
        return;
    guest->is_held = TRUE; /* it may have taken effect all the same */
    if (ok) {
        measure(guest);
        return;
    }
    if (g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND))
        error->code = BERTH_ERROR_UNAVAILABLE; /* libvirt tells how it has gone */
    stay_here(guest, g_steal_pointer(&error));
}

static void suspend(BerthGuest *guest)
{
    berth_hypervisor_suspend_async(guest->context->hypervisor, guest->name, on_suspended,
                                   berth_guest_ref(guest));
}

static void on_run(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    gboolean ok = berth_hypervisor_resume_finish(result, &error);
    if (guest->is_closed || !guest->is_leaving)
        return;
    guest->is_held = TRUE; /* it is to be as it was, if it stays */
    if (ok) {
        berth_guest_set_stands(guest, FALSE);
        suspend(guest);
        return;
    }
    if (g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND))
        error->code = BERTH_ERROR_UNAVAILABLE; /* libvirt tells how it has gone */
    stay_here(guest, g_steal_pointer(&error));
}

/* One that is frozen, and perhaps was saved since, runs for a moment, so that it can be moved. */
static void begin(BerthGuest *guest)
{
    if (guest->is_frozen && guest->freeze_wanted && guest->may_be_saved)
        berth_hypervisor_resume_async(guest->context->hypervisor, guest->name, on_run,
                                      berth_guest_ref(guest));
    else if (guest->context->use_kvm)
        measure(guest);
    else
        suspend(guest);
}

/* --- what an agent before us has begun ------------------------------------------------------ */

static void follow(BerthGuest *guest, const BerthMigrationState *state)
{
    g_message("%s is being moved to another node, since before this agent was started",
              guest->name);
    set_leaving(guest, TRUE);
    guest->is_followed = guest->may_have_left = TRUE;
    guest->is_held = guest->is_frozen;
    guest->migration_usec = g_get_real_time();
    guest->migration_serial++;
    guest->migration = *state;
    look_later(guest);
}

static void look_whether_it_moves(BerthGuest *guest);

static void on_look_whether_it_moves_due(gpointer data)
{
    BerthGuest *guest = data;
    guest->migration_source = 0;
    look_whether_it_moves(guest);
}

/* Nobody knows, because of ERROR: who wants it moved asks again. It is left as it is until somebody does. */
static void look_again_whether_it_moves(BerthGuest *guest, const GError *error)
{
    if (guest->migration_looks++ == 0)
        g_message("whether %s is being moved is not known yet: %s", guest->name, error->message);
    if (guest->is_leaving) {
        g_autoptr(GError) why = g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                                            "whether %s is being moved is not known yet: %s",
                                            guest->name, error->message);
        g_clear_pointer(&guest->target, berth_migration_target_free);
        guest->stays = guest->is_pressed_to_leave = FALSE;
        set_leaving(guest, FALSE);
        berth_guest_give_answers(guest->leave_answers, BERTH_FAULT_NONE, why);
    }
    g_clear_handle_id(&guest->migration_source, g_source_remove);
    guest->migration_source =
        g_timeout_add_once(STAY_AGAIN_MSEC, on_look_whether_it_moves_due, guest);
}

/* It is known now: who waited for that goes on. */
static void go_on_here(BerthGuest *guest)
{
    berth_guest_hurry_no_more(guest);
    berth_guest_resize_go_on(guest);
    berth_guest_freeze_go_on(guest);
}

/* STATE: of its move, NULL: libvirt does not know it. */
static void go_on_to_leave(BerthGuest *guest, const BerthMigrationState *state)
{
    if (!berth_guest_has_domain(guest) || (guest->stays && state != NULL && !state->is_under_way))
        stay_here(guest, is_to_stay(guest));
    else if (state == NULL)
        go(guest);
    else if (state->is_under_way)
        follow(guest, state);
    else
        begin(guest);
}

static void on_move_found(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    g_autofree BerthMigrationState *state = berth_hypervisor_migration_finish(result, &error);
    if (guest->is_closed || !guest->may_be_moving)
        return;
    if (state == NULL && !g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND) &&
        berth_guest_has_domain(guest)) {
        look_again_whether_it_moves(guest, error);
        return;
    }
    guest->may_be_moving = FALSE;
    if (guest->is_leaving)
        go_on_to_leave(guest, state);
    else if (state != NULL && state->is_under_way && berth_guest_has_domain(guest))
        follow(guest, state);
    else
        go_on_here(guest);
}

static void look_whether_it_moves(BerthGuest *guest)
{
    berth_hypervisor_migration_async(guest->context->hypervisor, guest->name, on_move_found,
                                     berth_guest_ref(guest));
}

void berth_guest_follow_move(BerthGuest *guest)
{
    guest->may_be_moving = TRUE;
    look_whether_it_moves(guest);
}

/* --- what is asked -------------------------------------------------------------------------- */

/* What comes from another node is that node's until it is taken. */
static GError *why_it_cannot_leave(const BerthGuest *guest)
{
    if (guest->phase == BERTH_PHASE_ARRIVING)
        return g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                           "%s has not been taken from the node that it comes from", guest->name);
    if (!berth_guest_has_domain(guest) || guest->phase == BERTH_PHASE_ENDED ||
        guest->stop_signal != 0 || guest->is_freezing)
        return g_error_new_literal(BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                                   "its guest has ended, is being ended or is being frozen");
    if (guest->checkpoint != NULL)
        return g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                           "a checkpoint of %s is being taken", guest->name);
    if (guest->stands_restored)
        return g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "%s has not gone on yet",
                           guest->name);
    return NULL;
}

void berth_guest_leave(BerthGuest *guest, const BerthMigrationTarget *target, gboolean frozen,
                       gboolean hurries, BerthGuestAnswerFunc answer, gpointer user_data)
{
    berth_guest_add_answer(guest->leave_answers, answer, user_data);
    if (guest->has_left && !guest->is_leaving) {
        berth_guest_give_answers(guest->leave_answers, BERTH_FAULT_NONE, NULL);
        return;
    }
    if (guest->is_leaving) {
        guest->freeze_wanted = frozen;
        return;
    }
    g_autoptr(GError) error = why_it_cannot_leave(guest);
    if (error != NULL) {
        berth_guest_give_answers(guest->leave_answers, BERTH_FAULT_NONE, error);
        return;
    }
    guest->target = berth_migration_target_copy(target);
    g_autofree char *name = berth_guest_name_format(&guest->id);
    if (!g_str_equal(name, guest->name)) /* it was restored */
        guest->target->domain = g_steal_pointer(&name);
    guest->freeze_wanted = frozen;
    guest->is_pressed_to_leave = hurries;
    set_leaving(guest, TRUE);
    if (!guest->may_be_moving)
        begin(guest);
}

void berth_guest_stay(BerthGuest *guest)
{
    if (!guest->is_leaving)
        return;
    guest->stays = TRUE;
    if (guest->migration_usec != 0)
        tell_to_let_go(guest);
}

/* Without a move that is known there may be one all the same: libvirt is asked. */
void berth_guest_leave_not(BerthGuest *guest, gboolean frozen, BerthGuestAnswerFunc answer,
                           gpointer user_data)
{
    berth_guest_add_answer(guest->leave_answers, answer, user_data);
    if (guest->phase == BERTH_PHASE_ARRIVING || guest->checkpoint != NULL) {
        g_autoptr(GError) error = why_it_cannot_leave(guest);
        berth_guest_give_answers(guest->leave_answers, BERTH_FAULT_NONE, error);
        return;
    }
    guest->freeze_wanted = frozen;
    if (guest->is_leaving) {
        berth_guest_stay(guest);
        return;
    }
    g_clear_handle_id(&guest->migration_source, g_source_remove);
    set_leaving(guest, TRUE);
    guest->may_be_moving = FALSE; /* that is what is asked now */
    guest->stays = guest->may_have_left = TRUE;
    stay_here(guest, is_to_stay(guest));
}
