/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a guest is measured from its host, and how often it is, by the host and by itself. What is cheap is
 * looked at often: what the kernel counts of its QEMU. What wakes the guest or its QEMU is asked for
 * as its need is: a guest that has nothing to do is left alone, until it uses CPU or its memory grows on the
 * host; then it is asked at once.
 *
 * One that is near a limit, and of which nothing changes, is looked at as often as others that work as much. What it does next is not
 * missed for that: its kernel wakes it when tasks stall (images/init/stall.h); its host sees it work or grow; it measures itself
 * every 2 s while it works, and else every STEADY_MSEC at least. What it says then, if it has less, makes it fast at once, and the
 * scheduler is told. */
#include <config.h>

#include "nodeagent/console.h"
#include "nodeagent/guest_private.h"

/* Memory of a guest that its host has come to hold since the guest said what it uses: so much of the whole is worth
 * asking it again. */
#define GROWTH_PART    16u
#define GROWTH_MIN_MIB 16u
/* Between its own measurements, of one with little memory left that does not change. What its host does not see is who fills
 * memory that the host holds already, with less of a CPU than one has that is calm: some tens of MiB a second. */
#define STEADY_MSEC 10000u

/* --- its own words --------------------------------------------------------------------------- */

static guint usage_msec(const BerthGuest *guest)
{
    guint msec = guest->context->usage_intervals.msec[guest->memory_pace.kind];
    return guest->is_memory_near ? MIN(msec, STEADY_MSEC) : msec;
}

/* Whoever stands still reads nothing, and is asked anew when it has gone on. */
static void ask(BerthGuest *guest)
{
    if (guest->channel != NULL && !guest->is_frozen)
        berth_guest_channel_measure(guest->channel, usage_msec(guest));
}

static void set_paces(BerthGuest *guest, gint64 now_usec)
{
    const BerthPaceLimits *limits = &guest->context->config->pace;
    BerthPaceKind before = guest->memory_pace.kind;
    guint before_msec = usage_msec(guest);
    BerthPaceKind of_guest = berth_pace_of_guest(&guest->usage, limits);
    BerthPaceKind of_memory = berth_pace_of_memory(&guest->usage, limits);
    guest->is_near = of_guest == BERTH_PACE_NEAR;
    guest->is_memory_near = of_memory == BERTH_PACE_NEAR;
    if (!berth_pace_has_changed(&guest->mark, &guest->usage, limits))
        of_guest = of_memory = berth_pace_of_work(&guest->usage);
    if (guest->is_resizing) /* what it gives back depends on what it says */
        of_memory = MAX(of_memory, BERTH_PACE_NORMAL);
    berth_pace_set(&guest->pace, of_guest, now_usec);
    berth_pace_set(&guest->memory_pace, of_memory, now_usec);
    if (guest->memory_pace.kind != before || usage_msec(guest) != before_msec)
        ask(guest);
}

static void rouse(BerthGuest *guest)
{
    berth_pace_set(&guest->memory_pace, MAX(guest->memory_pace.kind, BERTH_PACE_NORMAL),
                   g_get_monotonic_time());
}

void berth_guest_wake(BerthGuest *guest)
{
    rouse(guest);
    ask(guest);
}

/* That libvirt has let it go may not be known yet: it has answered, and reads. */
void berth_guest_ask_anew(BerthGuest *guest)
{
    rouse(guest);
    guest->is_usage_due = TRUE;
    berth_guest_channel_measure(guest->channel, usage_msec(guest));
}

/* What is not near a limit is told of with all that have gone on of late, so that many cost no more than a few. */
void berth_guest_note_usage(BerthGuest *guest)
{
    gboolean was_near = guest->pace.kind == BERTH_PACE_NEAR;
    gboolean was_due = guest->is_usage_due;
    guest->asked_mib = guest->usage.host_memory_mib;
    guest->is_usage_due = FALSE;
    set_paces(guest, g_get_monotonic_time());
    if (was_due)
        berth_pace_look_soon(&guest->pace);
    if (!was_near && guest->pace.kind == BERTH_PACE_NEAR)
        guest->context->pressed(guest, guest->context->user_data);
    else if (was_due)
        guest->context->look_soon(guest, guest->context->user_data);
}

guint berth_guest_usage_msec(const BerthGuest *guest)
{
    return usage_msec(guest);
}

/* It has given memory back, or holds more: one that fills its memory is to be heard of before it is full. One that boots
 * does not fill it. */
static void note_growth(BerthGuest *guest, gint64 now_usec)
{
    guint64 now_mib = guest->usage.host_memory_mib;
    guint64 step_mib = MAX(guest->limits.memory_mib / GROWTH_PART, GROWTH_MIN_MIB);
    guest->asked_mib = MIN(guest->asked_mib, now_mib);
    if (now_mib - guest->asked_mib < step_mib)
        return;
    guest->asked_mib = now_mib;
    if (guest->usage.memory_total_mib > 0) {
        berth_pace_set(&guest->pace, BERTH_PACE_NEAR, now_usec);
        berth_pace_set(&guest->memory_pace, BERTH_PACE_NEAR, now_usec);
    }
    ask(guest);
}

/* --- what the kernel counts ------------------------------------------------------------------ */

static void take_counts(BerthGuest *guest, const BerthQemuUsage *counts)
{
    Berth__Usage *usage = &guest->usage;
    guint64 before_usec = usage->cpu_usec;
    usage->cpu_usec = MAX(before_usec, counts->cpu_usec);
    usage->starved_usec = MAX(usage->starved_usec, counts->starved_usec);
    usage->throttled_usec = MAX(usage->throttled_usec, counts->throttled_usec);
    if (counts->host_memory_mib > 0)
        usage->host_memory_mib = counts->host_memory_mib;
    guest->context->measured(guest, usage->cpu_usec - before_usec, guest->context->user_data);
}

static gboolean read_counts(BerthGuest *guest, BerthQemuUsage *out_counts)
{
    if (guest->counters == NULL)
        guest->counters = berth_qemu_counters_new(guest->name);
    return berth_qemu_counters_read(guest->counters, out_counts);
}

void berth_guest_tell_resident(BerthGuest *guest)
{
    BerthQemuUsage counts;
    if (guest->channel != NULL && read_counts(guest, &counts) && counts.host_memory_mib > 0)
        berth_guest_channel_give_back(guest->channel, counts.host_memory_mib);
}

static void take_rate(BerthGuest *guest, const BerthRate *rate)
{
    guest->usage.cpu_milli = rate->cpu_milli;
    guest->usage.starved_permille = rate->starved_permille;
    guest->usage.throttled_permille = rate->throttled_permille;
    guest->usage.rate_msec = rate->over_msec;
}

void berth_guest_look(BerthGuest *guest, gint64 now_usec, gint64 window_usec)
{
    BerthQemuUsage counts;
    berth_pace_looked(&guest->pace, now_usec);
    if (!berth_guest_has_domain(guest))
        return;
    berth_console_bound(guest->console_path);
    if (!read_counts(guest, &counts))
        return;
    take_counts(guest, &counts);
    BerthRate rate = berth_rates_add(&guest->rates, now_usec, &counts, window_usec);
    take_rate(guest, &rate);
    note_growth(guest, now_usec);
    set_paces(guest, now_usec);
}

void berth_guest_begin_rates(BerthGuest *guest)
{
    const BerthRate none = {0};
    berth_rates_reset(&guest->rates);
    take_rate(guest, &none);
}

/* As a look: the next one says how fast the counters have risen since. */
void berth_guest_begin_rates_now(BerthGuest *guest)
{
    gint64 now_usec = g_get_monotonic_time();
    BerthQemuUsage counts;
    berth_guest_begin_rates(guest);
    if (!berth_guest_has_domain(guest) || !read_counts(guest, &counts))
        return;
    take_counts(guest, &counts);
    (void)berth_rates_add(&guest->rates, now_usec, &counts, 0);
    berth_pace_looked(&guest->pace, now_usec);
}

void berth_guest_find_threads(BerthGuest *guest)
{
    if (guest->counters != NULL)
        berth_qemu_counters_find(guest->counters);
}

/* --- what libvirt says ----------------------------------------------------------------------- */

static void on_resumed(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    if (!berth_hypervisor_resume_finish(result, &error))
        g_debug("%s: %s", guest->name, error->message);
}

/* What libvirt could not get without waiting for a domain that is busy is 0. */
static void take_traffic(Berth__Usage *usage, const BerthDomainStats *stats)
{
    usage->disk_read_bytes = MAX(usage->disk_read_bytes, stats->disk_read_bytes);
    usage->disk_write_bytes = MAX(usage->disk_write_bytes, stats->disk_write_bytes);
    usage->net_receive_bytes = MAX(usage->net_receive_bytes, stats->net_receive_bytes);
    usage->net_send_bytes = MAX(usage->net_send_bytes, stats->net_send_bytes);
}

void berth_guest_measured(BerthGuest *guest, const BerthDomainStats *stats)
{
    take_counts(guest, &stats->qemu);
    if (stats->has_traffic)
        take_traffic(&guest->usage, stats);
    berth_console_bound(guest->console_path);
    if (stats->paused_by_io_error && !guest->freeze_wanted && !berth_guest_vcpus_are_taken(guest))
        berth_hypervisor_resume_async(guest->context->hypervisor, guest->name, on_resumed,
                                      berth_guest_ref(guest));
}

/* --- looking --------------------------------------------------------------------------------- */

const BerthPace *berth_guest_pace(const BerthGuest *guest)
{
    return &guest->pace;
}

gboolean berth_guest_is_near(const BerthGuest *guest)
{
    return guest->is_near || guest->pace.kind == BERTH_PACE_NEAR;
}

const Berth__Usage *berth_guest_usage(const BerthGuest *guest)
{
    return &guest->usage;
}
