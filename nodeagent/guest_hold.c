/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a guest gets its node's CPUs beside what its size gives it: whether it is held back because its node is short of
 * memory, and whether it hurries, as its memory is being copied. The threads that copy it have the CPU weight of the guest: on
 * a node whose CPUs are all used, one in slack would take many times as long to leave as its node can wait for it. So it
 * has the weight of others meanwhile, and its vCPUs, which are not to gain by that, are held back.
 *
 * What was wanted last counts; one question to libvirt at a time, and one that fails is asked again by the next who wants
 * something.
 *
 * Invariants: HELD_USEC is not 0 only if libvirt was told to hold it back for its node, and has not been told to let it go;
 * what may take effect after it has failed leaves HOLD_IS_UNKNOWN and SHARE_IS_UNKNOWN; that one hurries is asked for before
 * his memory is copied, and not while it is. */
#include <config.h>

#include "nodeagent/guest_private.h"

#include "common/error.h"

static void ask(BerthGuest *guest);

/* Of a guest that leaves, or may, or whose vCPUs a checkpoint has, nothing is to be asked, unless that waits for it: libvirt
 * would wait for the end, and a worker of the agent with it. */
static gboolean can_be_asked(const BerthGuest *guest)
{
    return !guest->asks_hold && berth_guest_has_domain(guest) &&
           (!berth_guest_vcpus_are_taken(guest) || guest->hurry_then != NULL);
}

static void note(BerthGuest *guest, gboolean holds)
{
    gint64 was_usec = guest->held_usec;
    guest->hold_is_unknown = guest->share_is_unknown = FALSE;
    if (!holds && was_usec != 0)
        guest->let_go_usec = g_get_monotonic_time();
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
        guest->hold_is_unknown = guest->share_is_unknown = TRUE;
}

/* A resize that is under way sets the weight, too: both are to set the same. Who hurries is not resized; what copies him has
 * one CPU at most. */
static BerthDomainShare wanted_share(const BerthGuest *guest)
{
    if (guest->hurries)
        return (BerthDomainShare){.is_held_back = TRUE, .vcpus = BERTH_COPYING_CPUS};
    gboolean in_slack =
        guest->is_resizing ? guest->size_wanted.is_opportunistic : guest->is_opportunistic;
    return (BerthDomainShare){
        .is_held_back = guest->hold_wanted,
        .vcpus = guest->is_resizing ? guest->size_wanted.vcpus : guest->limits.vcpus,
        .is_opportunistic = in_slack,
    };
}

static gboolean was_asked(const BerthGuest *guest)
{
    BerthDomainShare share = wanted_share(guest);
    return guest->hold_asked == guest->hold_wanted &&
           guest->share_asked.is_held_back == share.is_held_back &&
           guest->share_asked.vcpus == share.vcpus &&
           guest->share_asked.is_opportunistic == share.is_opportunistic;
}

static void go_on(BerthGuest *guest)
{
    BerthGuestThen then = g_steal_pointer(&guest->hurry_then);
    if (then != NULL)
        then(guest);
}

static void on_asked(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    gboolean ok = berth_hypervisor_hold_back_finish(result, &error);
    guest->asks_hold = FALSE;
    if (guest->is_closed) {
        go_on(guest);
        return;
    }
    if (ok)
        note(guest, guest->hold_asked);
    else
        note_failure(guest, error);
    if (!was_asked(guest) && can_be_asked(guest))
        ask(guest);
    else
        go_on(guest);
}

static void ask(BerthGuest *guest)
{
    guest->asks_hold = TRUE;
    guest->hold_asked = guest->hold_wanted;
    guest->share_asked = wanted_share(guest);
    berth_hypervisor_hold_back_async(guest->context->hypervisor, guest->name, &guest->share_asked,
                                     on_asked, berth_guest_ref(guest));
}

void berth_guest_hold_back(BerthGuest *guest, gboolean holds)
{
    /* One that is to end gives most back; one with a reservation that leaves has its copy to wait for, and no more. */
    if (guest->stop_signal != 0 || (!guest->is_opportunistic && berth_guest_vcpus_are_taken(guest)))
        holds = FALSE;
    gboolean is_so = !guest->hold_is_unknown && (guest->held_usec != 0) == holds;
    guest->hold_wanted = holds;
    if (!is_so && can_be_asked(guest))
        ask(guest);
}

void berth_guest_renew_hold(BerthGuest *guest)
{
    gboolean is_so = !guest->share_is_unknown && guest->hold_wanted == (guest->held_usec != 0);
    if (!is_so && can_be_asked(guest))
        ask(guest);
}

void berth_guest_hurry(BerthGuest *guest, gboolean asked, BerthGuestThen then)
{
    gboolean stands = guest->is_frozen || !guest->context->use_kvm;
    gboolean gains = guest->is_opportunistic && (asked || stands);
    /* Nothing could let it go while it leaves. */
    gboolean is_freed = !guest->is_opportunistic &&
                        (guest->hold_wanted || guest->held_usec != 0 || guest->asks_hold);
    if ((!gains && !is_freed) || guest->is_closed || !berth_guest_has_domain(guest)) {
        then(guest);
        return;
    }
    guest->hurries = gains;
    guest->hold_wanted = guest->hold_wanted && !is_freed;
    guest->hurry_then = then;
    if (can_be_asked(guest))
        ask(guest); /* else what is being asked comes first */
}

void berth_guest_hurry_no_more(BerthGuest *guest)
{
    guest->share_is_unknown = guest->share_is_unknown || guest->hurries;
    guest->hurries = FALSE;
    berth_guest_renew_hold(guest);
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

gboolean berth_guest_is_given_up(const BerthGuest *guest)
{
    return guest->is_given_up;
}

guint64 berth_guest_host_mib(const BerthGuest *guest)
{
    return guest->usage.host_memory_mib;
}
