/* SPDX-License-Identifier: Apache-2.0 */
/* Owns whether a guest's vCPUs run. One question to libvirt at a time; what was wanted last counts.
 *
 * Invariant: who asked is answered with yes only if libvirt has done it and nobody wanted the opposite
 * since. */
#include <config.h>

#include "nodeagent/guest_private.h"

#include "common/error.h"

static void begin(BerthGuest *guest);

static void answer_with(BerthGuest *guest, BerthErrorCode code, const char *why)
{
    g_autoptr(GError) error = g_error_new(BERTH_ERROR, (gint)code, "%s %s", guest->name, why);
    berth_guest_give_answers(guest->freeze_answers, BERTH_FAULT_NONE, error);
}

static void on_done(GObject *source, GAsyncResult *result, gpointer data, gboolean is_frozen)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    gboolean ok = is_frozen ? berth_hypervisor_suspend_finish(result, &error)
                            : berth_hypervisor_resume_finish(result, &error);
    guest->is_freezing = FALSE;
    if (guest->is_closed)
        return;
    if (ok)
        berth_guest_set_stands(guest, is_frozen);
    if (guest->freeze_wanted != is_frozen && berth_guest_has_domain(guest)) {
        begin(guest);
        return;
    }
    if (!ok)
        guest->freeze_wanted = guest->is_frozen;
    berth_guest_give_answers(guest->freeze_answers, BERTH_FAULT_NONE, error);
}

static void on_suspended(GObject *source, GAsyncResult *result, gpointer data)
{
    on_done(source, result, data, TRUE);
}

static void on_resumed(GObject *source, GAsyncResult *result, gpointer data)
{
    on_done(source, result, data, FALSE);
}

static void begin(BerthGuest *guest)
{
    BerthHypervisor *hypervisor = guest->context->hypervisor;
    guest->is_freezing = TRUE;
    if (guest->freeze_wanted)
        berth_hypervisor_suspend_async(hypervisor, guest->name, on_suspended,
                                       berth_guest_ref(guest));
    else
        berth_hypervisor_resume_async(hypervisor, guest->name, on_resumed, berth_guest_ref(guest));
}

static void want(BerthGuest *guest, gboolean freezes)
{
    if (guest->freeze_wanted != freezes)
        answer_with(guest, BERTH_ERROR_CANCELLED,
                    freezes ? "is to be frozen after all" : "is to go on after all");
    guest->freeze_wanted = freezes;
}

void berth_guest_freeze(BerthGuest *guest, gboolean freezes, BerthGuestAnswerFunc answer,
                        gpointer user_data)
{
    gboolean has_ended = !berth_guest_has_domain(guest) || (freezes && guest->stop_signal != 0);
    if (!has_ended)
        want(guest, freezes);
    berth_guest_add_answer(guest->freeze_answers, answer, user_data);
    if (has_ended)
        answer_with(guest, BERTH_ERROR_NOT_FOUND, "has ended, or is being ended");
    else if (!guest->is_freezing && !berth_guest_vcpus_are_taken(guest))
        begin(guest);
}

void berth_guest_freeze_go_on(BerthGuest *guest)
{
    if (guest->is_freezing || berth_guest_vcpus_are_taken(guest))
        return; /* its end comes here again */
    if (!berth_guest_has_domain(guest))
        answer_with(guest, BERTH_ERROR_NOT_FOUND, "has ended, or has left for another node");
    else if (guest->freeze_wanted != guest->is_frozen || guest->freeze_answers->len > 0)
        begin(guest);
}

void berth_guest_thaw_to_end(BerthGuest *guest)
{
    want(guest, FALSE);
    if (guest->is_frozen && !guest->is_freezing && berth_guest_has_domain(guest) &&
        !berth_guest_vcpus_are_taken(guest))
        begin(guest);
}
