/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what a guest has of vCPUs and memory. libvirt is asked for all that is wanted, again and again as the
 * guest goes along, until it has it. What does not come about is taken back.
 *
 * Invariants: one question to libvirt at a time, and what was wanted last counts; LIMITS is what it had when
 * a resize was last done, which libvirt keeps in its metadata; who asked is answered with an error that is
 * not one of those that pass only if it has no more memory than that. One that neither goes along nor back may be
 * given what it has, if who asked can be told so: there is no end to asking it. */
#include <config.h>

#include "nodeagent/guest_private.h"

#include "common/error.h"

/* A guest that has taken or given back nothing for so long is asked about. */
#define SILENCE_MSEC 3000u
/* After so many of them the balloon is to take what a guest cannot give back in blocks, ... */
#define SILENCES_TO_PRESS 2u
/* ... and after so many its guest does not go along. Half a minute: an emulated guest on a busy host has
 * been seen to take ten seconds for a block. */
#define SILENCES_MAX 10u
/* Memory that stays free in a guest, of what it has, beyond what it uses: what its processes may ask for until
 * its next report, and what its kernel keeps from them (images/init/cgroups.c). */
#define FREE_LEFT_PART    32u
#define FREE_LEFT_MIN_MIB 8u

static void ask(BerthGuest *guest);

static BerthDomainSize settled_size(const BerthGuest *guest)
{
    return (BerthDomainSize){guest->limits.vcpus, guest->limits.memory_mib, guest->balloon_mib,
                             guest->is_opportunistic};
}

static gboolean is_equal(const BerthDomainSize *a, const BerthDomainSize *b)
{
    return a->vcpus == b->vcpus && a->memory_mib == b->memory_mib &&
           a->balloon_mib == b->balloon_mib && a->is_opportunistic == b->is_opportunistic;
}

/* ERROR NULL: it has what was wanted. */
static void end(BerthGuest *guest, const GError *error)
{
    g_autoptr(GError) why = error == NULL ? NULL : g_error_copy(error);
    guest->is_resizing = guest->may_settle = guest->thaws_with_resize = FALSE;
    g_clear_handle_id(&guest->resize_source, g_source_remove);
    g_clear_error(&guest->resize_error);
    berth_guest_give_answers(guest->resize_answers, BERTH_FAULT_NONE, why);
}

static void want(BerthGuest *guest, const BerthDomainSize *size)
{
    if (!guest->is_resizing)
        guest->resized_mib = guest->limits.memory_mib - guest->balloon_mib;
    guest->is_resizing = TRUE;
    guest->size_wanted = *size;
    guest->used_then_mib = G_MAXUINT64;
    guest->silences = 0;
    guest->asks_size_again = guest->is_size_asked;
    if (!guest->is_size_asked)
        ask(guest);
}

/* WHY (transfer full). */
static void go_back(BerthGuest *guest, GError *why)
{
    BerthDomainSize settled = settled_size(guest);
    guest->resize_error = why;
    want(guest, &settled);
}

static gboolean may_pass(const GError *error)
{
    return g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE) ||
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED) ||
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND);
}

/* ERROR (transfer full). One who cannot even be given back what he had may have more than that: whoever has
 * asked is to ask again. */
static void take_error(BerthGuest *guest, GError *error)
{
    if (guest->resize_error == NULL && !may_pass(error)) {
        go_back(guest, error);
        return;
    }
    if (guest->resize_error != NULL && !may_pass(error))
        error->code = BERTH_ERROR_UNAVAILABLE;
    end(guest, error);
    g_error_free(error);
}

static void take_done(BerthGuest *guest)
{
    guest->limits.vcpus = guest->size_wanted.vcpus;
    guest->limits.memory_mib = guest->size_wanted.memory_mib;
    guest->balloon_mib = guest->size_wanted.balloon_mib;
    guest->is_opportunistic = guest->size_wanted.is_opportunistic;
    guest->has_settled = guest->settles;
    end(guest, guest->resize_error);
}

static void on_silence(gpointer data)
{
    BerthGuest *guest = data;
    guest->resize_source = 0;
    guest->silences++;
    ask(guest);
}

/* What its balloon keeps is not told to who asked. */
static gboolean can_settle(const BerthGuest *guest)
{
    return guest->may_settle && !guest->settles && guest->resize_error != NULL &&
           guest->balloon_mib == 0;
}

static void settle(BerthGuest *guest, guint64 has_mib)
{
    BerthDomainSize has = settled_size(guest);
    has.memory_mib = has_mib;
    guest->settles = TRUE;
    want(guest, &has);
}

static guint64 wanted_mib_of(const BerthGuest *guest)
{
    return guest->size_wanted.memory_mib - guest->size_wanted.balloon_mib;
}

/* It has come to HAS_MIB, and gets no nearer. */
static void give_up(BerthGuest *guest, guint64 has_mib)
{
    gboolean goes_back = guest->resize_error != NULL;
    guint64 wanted_mib = wanted_mib_of(guest);
    g_autofree char *text = g_strdup_printf(
        "%s: its guest has come to %" G_GUINT64_FORMAT " MiB of memory, and was to have %" //
        G_GUINT64_FORMAT " MiB%s",
        has_mib > wanted_mib ? "the job's processes do not leave so much free"
                             : "the guest's kernel does not take so much",
        has_mib, wanted_mib, goes_back ? "" : "; it keeps what it had");
    take_error(guest, g_error_new_literal(BERTH_ERROR,
                                          goes_back ? BERTH_ERROR_UNAVAILABLE
                                                    : BERTH_ERROR_FAILED_PRECONDITION,
                                          text));
}

static void take_silence(BerthGuest *guest, guint64 has_mib)
{
    if (can_settle(guest))
        settle(guest, has_mib);
    else
        give_up(guest, has_mib);
}

static void take_progress(BerthGuest *guest, const BerthResizeProgress *progress)
{
    guint64 had_mib = guest->limits.memory_mib - MIN(guest->limits.memory_mib, guest->balloon_mib);
    if (progress->memory_mib != guest->resized_mib)
        guest->silences = 0;
    guest->resized_mib = progress->memory_mib;
    if (progress->is_done)
        take_done(guest);
    else if (guest->resize_error != NULL && progress->memory_mib <= had_mib)
        end(guest, guest->resize_error); /* what is missing comes as it would have */
    else if (guest->silences >= SILENCES_MAX)
        take_silence(guest, progress->memory_mib);
    else if (guest->resize_source == 0)
        guest->resize_source = g_timeout_add_once(SILENCE_MSEC, on_silence, guest);
}

/* Who resizes it asks for that, too, when it has an answer. */
static void ignore(BerthFault fault, const GError *error, gpointer user_data)
{
}

static void thaw(BerthGuest *guest)
{
    if (!guest->thaws_with_resize)
        return;
    guest->thaws_with_resize = FALSE;
    berth_guest_freeze(guest, FALSE, ignore, NULL);
}

static void on_asked(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    GError *error = NULL;
    BerthResizeProgress progress;
    gboolean ok = berth_hypervisor_resize_finish(result, &progress, &error);
    guest->is_size_asked = FALSE;
    if (guest->is_closed || !guest->is_resizing) {
        g_clear_error(&error);
    } else if (guest->asks_size_again) {
        g_clear_error(&error);
        ask(guest);
    } else if (ok) {
        thaw(guest);
        berth_guest_find_threads(guest);
        take_progress(guest, &progress);
    } else {
        take_error(guest, error);
    }
}

static guint64 left_free_mib(const BerthGuest *guest)
{
    return MAX(guest->limits.memory_mib / FREE_LEFT_PART, FREE_LEFT_MIN_MIB);
}

/* Nothing is free in a guest that has not reported. */
static guint64 needed_mib(const BerthGuest *guest)
{
    guint64 left = left_free_mib(guest);
    return guest->needed_mib > G_MAXUINT64 - left ? G_MAXUINT64 : guest->needed_mib + left;
}

/* Not while libvirt copies its memory, or is about to: it would wait for the end of that, or take from the copy the CPU weight
 * that it has. */
static void ask(BerthGuest *guest)
{
    g_clear_handle_id(&guest->resize_source, g_source_remove);
    guest->asks_size_again = berth_guest_vcpus_are_taken(guest);
    if (guest->asks_size_again)
        return;
    guest->is_size_asked = TRUE;
    berth_hypervisor_resize_async(guest->context->hypervisor, guest->name, &guest->size_wanted,
                                  needed_mib(guest), guest->silences >= SILENCES_TO_PRESS, on_asked,
                                  berth_guest_ref(guest));
}

static void answer_with(BerthGuest *guest, BerthErrorCode code, const char *why)
{
    g_autoptr(GError) error = g_error_new(BERTH_ERROR, (gint)code, "%s %s", guest->name, why);
    berth_guest_give_answers(guest->resize_answers, BERTH_FAULT_NONE, error);
}

/* It may have taken much since it last reported: one that is to give waits for its next report. */
static void forget_needed(BerthGuest *guest, const BerthDomainSize *size)
{
    if (size->memory_mib - size->balloon_mib >= guest->limits.memory_mib - guest->balloon_mib)
        return;
    guest->needed_mib = G_MAXUINT64;
    berth_guest_wake(guest);
}

gboolean berth_guest_has_settled(const BerthGuest *guest, guint32 *out_vcpus,
                                 guint64 *out_memory_mib)
{
    if (!guest->has_settled)
        return FALSE;
    *out_vcpus = guest->limits.vcpus;
    *out_memory_mib = guest->limits.memory_mib;
    return TRUE;
}

void berth_guest_resize(BerthGuest *guest, const BerthDomainSize *size, gboolean settles,
                        BerthGuestAnswerFunc answer, gpointer user_data)
{
    gboolean goes_on =
        guest->is_resizing && guest->resize_error == NULL && is_equal(&guest->size_wanted, size);
    if (!goes_on)
        answer_with(guest, BERTH_ERROR_CANCELLED, "is to have another size after all");
    guest->may_settle = settles;
    berth_guest_add_answer(guest->resize_answers, answer, user_data);
    if (!berth_guest_has_domain(guest) || guest->stop_signal != 0) {
        answer_with(guest, BERTH_ERROR_NOT_FOUND, "has ended, or is being ended");
    } else if (berth_guest_is_leaving(guest)) {
        answer_with(guest, BERTH_ERROR_UNAVAILABLE, "is on its way to another node");
    } else if (!goes_on) {
        g_clear_error(&guest->resize_error);
        guest->settles = guest->has_settled = FALSE;
        forget_needed(guest, size);
        want(guest, size);
    }
}

/* Also long after a resize: a block that the guest gives back at last is to come back out of its balloon. */
void berth_guest_domain_resized(BerthGuest *guest)
{
    BerthDomainSize settled = settled_size(guest);
    if (!berth_guest_has_domain(guest) || berth_guest_is_leaving(guest))
        return;
    if (!guest->is_resizing) {
        want(guest, &settled);
        return;
    }
    guest->asks_size_again = guest->is_size_asked;
    if (!guest->is_size_asked)
        ask(guest);
}

/* It is to give what its processes take more and more of, and now use USED_MIB of: to press it for that would have them killed, and
 * keep from it what it could be given instead. */
static gboolean grows_meanwhile(const BerthGuest *guest, guint64 used_mib)
{
    guint64 wanted_mib = wanted_mib_of(guest);
    guint64 left = left_free_mib(guest);
    return guest->is_resizing && guest->resize_error == NULL && guest->resized_mib > wanted_mib &&
           wanted_mib < guest->limits.memory_mib - guest->balloon_mib &&
           used_mib > guest->used_then_mib + left && used_mib + left > wanted_mib;
}

/* What is available is known of the moment of the report alone, as is its total: what it has by now may be less. */
static void note_used(BerthGuest *guest, guint64 used_mib)
{
    if (guest->used_then_mib == G_MAXUINT64)
        guest->used_then_mib = used_mib;
    else if (grows_meanwhile(guest, used_mib))
        give_up(guest, guest->resized_mib);
}

/* With what its kernel keeps for itself, which is not in its total. A balloon may wait for it. */
void berth_guest_note_memory(BerthGuest *guest, guint64 total_mib, guint64 available_mib)
{
    guint64 has_mib =
        guest->is_resizing ? guest->resized_mib : guest->limits.memory_mib - guest->balloon_mib;
    guint64 before_mib = guest->needed_mib;
    guest->needed_mib = has_mib - MIN(has_mib, available_mib);
    note_used(guest, total_mib - MIN(total_mib, available_mib));
    if (guest->needed_mib < before_mib && guest->is_resizing && !guest->is_size_asked)
        ask(guest);
}

void berth_guest_resize_go_on(BerthGuest *guest)
{
    if (guest->is_resizing && guest->asks_size_again && !guest->is_size_asked)
        ask(guest);
}

void berth_guest_thaw_with_resize(BerthGuest *guest)
{
    guest->thaws_with_resize = TRUE;
}

void berth_guest_end_resize(BerthGuest *guest)
{
    guest->is_resizing = FALSE;
    g_clear_handle_id(&guest->resize_source, g_source_remove);
    g_clear_error(&guest->resize_error);
    answer_with(guest, BERTH_ERROR_NOT_FOUND, "has ended, or is being ended");
}
