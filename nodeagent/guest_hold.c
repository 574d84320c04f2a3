/* SPDX-License-Identifier: Apache-2.0 */
/* Owns whether a guest is held back because its node is short of memory. What was wanted last counts; one question to
 * libvirt at a time, and one that fails is asked again by the next who wants something.
 *
 * Invariants: HELD_USEC is not 0 only if libvirt was told to hold it back, and has not been told to let it go; what
 * may take effect after it has failed leaves HOLD_IS_UNKNOWN. */
#include <config.h>

#include "nodeagent/guest_private.h"

#include "common/error.h"

static void ask(BerthGuest *guest);

/* Of a guest that leaves, or whose vCPUs a checkpoint has, nothing is to be asked: libvirt would wait for the end. */
static gboolean can_be_asked(const BerthGuest *guest)
{
    return !guest->asks_hold && berth_guest_has_domain(guest) && !berth_guest_is_leaving(guest) &&
           !berth_guest_vcpus_are_taken(guest);
}

static void note(BerthGuest *guest, gboolean holds)
{
    gint64 was_usec = guest->held_usec;
    guest->hold_is_unknown = FALSE;
    if (!holds)
        guest->held_usec = 0;
    else if (guest->held_usec == 0)
        guest->held_usec = g_get_real_time();
    if ((was_usec != 0) != holds)
        berth_guest_touch(guest);
}

/* libvirt may do yet what nobody waits for any more, or may have done a part of it. */
static void note_failure(BerthGuest *guest, const GError *error)
{
    g_debug("%s: %s", guest->name, error->message);
    if (!g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND))
        guest->hold_is_unknown = TRUE;
}

static void on_asked(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    gboolean ok = berth_hypervisor_hold_back_finish(result, &error);
    guest->asks_hold = FALSE;
    if (guest->is_closed)
        return;
    if (ok)
        note(guest, guest->hold_asked);
    else
        note_failure(guest, error);
    if (ok && guest->hold_wanted != guest->hold_asked && can_be_asked(guest))
        ask(guest);
}

static void ask(BerthGuest *guest)
{
    guest->asks_hold = TRUE;
    guest->hold_asked = guest->hold_wanted;
    berth_hypervisor_hold_back_async(guest->context->hypervisor, guest->name, guest->hold_asked,
                                     on_asked, berth_guest_ref(guest));
}

void berth_guest_hold_back(BerthGuest *guest, gboolean holds)
{
    holds = holds && guest->stop_signal == 0; /* it is to end, which gives most back */
    gboolean is_so = !guest->hold_is_unknown && (guest->held_usec != 0) == holds;
    guest->hold_wanted = holds;
    if (!is_so && can_be_asked(guest))
        ask(guest);
}

gboolean berth_guest_can_be_let_go(const BerthGuest *guest)
{
    return guest->held_usec != 0 && can_be_asked(guest);
}

gboolean berth_guest_hold_is_known(const BerthGuest *guest)
{
    return !guest->hold_is_unknown;
}

gint64 berth_guest_held_usec(const BerthGuest *guest)
{
    return guest->held_usec;
}

gboolean berth_guest_is_in_slack(const BerthGuest *guest)
{
    return guest->is_opportunistic;
}
