/* SPDX-License-Identifier: Apache-2.0 */
/* Owns one guest's life on its node: which phase it is in, what begins on entering a phase, and what
 * was asked of it meanwhile. How domains are made is guest_domain.c's, the conversation guest_talk.c's.
 *
 * Invariants: one operation at a time (`is_busy`); who asks to end the guest waits until it is done,
 * so that a domain is never made after its release was answered. */
#include <config.h>

#include "nodeagent/guest_private.h"

#include <glib/gstdio.h>
#include <string.h>

#include "common/error.h"
#include "common/id.h"
#include "common/message.h"
#include "nodeagent/console.h"

/* A libvirt that takes longer to say what an ended guest has used is not waited for. */
#define END_STATS_MSEC 1000u
/* Who a guest is was seen for long: a look in half an hour costs storage next to nothing. */
#define CLIENTS_PACE_MAX_MSEC (30u * 60 * 1000)

/* --- life ----------------------------------------------------------------------------------- */

BerthGuest *berth_guest_new(const BerthGuestContext *context, const BerthGuestId *id)
{
    BerthGuest *guest = g_new0(BerthGuest, 1);
    g_ref_count_init(&guest->refs);
    guest->context = context;
    guest->id = *id;
    guest->name = berth_guest_name_format(id);
    guest->channel_path = g_strdup_printf("%s/%s.sock", context->config->run_dir, guest->name);
    guest->console_path = g_build_filename(context->config->console_dir, guest->name, NULL);
    guest->phase = guest->last_phase = BERTH_PHASE_PREPARING;
    guest->cancellable = g_cancellable_new();
    guest->retry = (BerthBackoff){.min_msec = 500, .max_msec = 10000};
    guest->clients_retry = (BerthBackoff){.min_msec = 500, .max_msec = 30000};
    guest->clients_pace = (BerthBackoff){.min_msec = BERTH_SEEN_CLIENTS_STEADY_USEC / 1000,
                                         .max_msec = CLIENTS_PACE_MAX_MSEC};
    guest->start_answers = berth_guest_answers_new();
    guest->release_answers = berth_guest_answers_new();
    guest->freeze_answers = berth_guest_answers_new();
    guest->leave_answers = berth_guest_answers_new();
    guest->take_answers = berth_guest_answers_new();
    guest->resize_answers = berth_guest_answers_new();
    guest->needed_mib = G_MAXUINT64;
    berth__usage__init(&guest->usage);
    return guest;
}

BerthGuest *berth_guest_ref(BerthGuest *guest)
{
    g_ref_count_inc(&guest->refs);
    return guest;
}

void berth_guest_unref(BerthGuest *guest)
{
    if (!g_ref_count_dec(&guest->refs))
        return;
    berth_message_free(guest->request == NULL ? NULL : &guest->request->base);
    berth_message_free(guest->record == NULL ? NULL : &guest->record->base);
    berth_message_free(guest->exit == NULL ? NULL : &guest->exit->base);
    berth_guest_files_free(guest->files);
    berth_disk_source_free(guest->disk);
    g_clear_error(&guest->start_error);
    g_array_unref(guest->start_answers);
    g_array_unref(guest->release_answers);
    g_array_unref(guest->freeze_answers);
    g_array_unref(guest->leave_answers);
    g_array_unref(guest->take_answers);
    berth_migration_target_free(guest->target);
    g_array_unref(guest->resize_answers);
    g_clear_error(&guest->resize_error);
    g_clear_error(&guest->stay_error);
    g_object_unref(guest->cancellable);
    berth_seen_clients_clear(&guest->clients);
    g_free(guest->name);
    g_free(guest->channel_path);
    g_free(guest->console_path);
    g_free(guest->disk_id);
    g_free(guest->log_id);
    g_free(guest->reason_text);
    g_free(guest->console_tail);
    berth_qemu_counters_free(guest->counters);
    g_free(guest);
}

void berth_guest_free(BerthGuest *guest)
{
    if (guest == NULL)
        return;
    guest->is_closed = TRUE;
    g_cancellable_cancel(guest->cancellable);
    g_clear_handle_id(&guest->retry_source, g_source_remove);
    g_clear_handle_id(&guest->migration_source, g_source_remove);
    berth_guest_stop_talking(guest);
    berth_guest_checkpoint_not(guest);
    berth_guest_restore_not(guest);
    g_clear_pointer(&guest->writer, berth_log_writer_free);
    g_autoptr(GError) error =
        g_error_new_literal(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "the agent of the node ends");
    berth_guest_give_answers(guest->start_answers, BERTH_FAULT_NODE, error);
    berth_guest_give_answers(guest->release_answers, BERTH_FAULT_NONE, error);
    berth_guest_give_answers(guest->freeze_answers, BERTH_FAULT_NONE, error);
    berth_guest_give_answers(guest->leave_answers, BERTH_FAULT_NONE, error);
    berth_guest_give_answers(guest->take_answers, BERTH_FAULT_NONE, error);
    berth_guest_give_answers(guest->resize_answers, BERTH_FAULT_NONE, error);
    berth_guest_end_resize(guest);
    berth_guest_unref(guest);
}

/* --- vCPUs ----------------------------------------------------------------------------------- */

BerthGuestLook *berth_guest_look_new(BerthGuest *guest, guint serial)
{
    BerthGuestLook *look = g_new(BerthGuestLook, 1);
    *look = (BerthGuestLook){berth_guest_ref(guest), serial};
    return look;
}

void berth_guest_set_stands(BerthGuest *guest, gboolean stands)
{
    guest->is_frozen = stands;
    guest->may_be_saved = guest->may_be_saved && stands;
}

/* --- phases --------------------------------------------------------------------------------- */

void berth_guest_touch(BerthGuest *guest)
{
    guest->serial++;
    guest->context->changed(guest, guest->context->user_data);
}

/* It says no more. */
static void enter_draining(BerthGuest *guest)
{
    berth_guest_stop_talking(guest);
    berth_guest_give_answers(guest->start_answers, BERTH_FAULT_NONE, NULL);
    berth_guest_check_drained(guest);
}

static void enter_gone(BerthGuest *guest)
{
    g_free(guest->console_tail);
    guest->console_tail = berth_console_tail(guest->console_path);
    g_message("%s is gone: %s", guest->name, guest->reason_text);
    berth_guest_touch(guest);
}

/* It is known until the scheduler has heard of it, and with what it had used here. Its output is written where it is now, and
 * what was not acknowledged it says again there: a write that is still tried here could come after it was put back. */
static void enter_left(BerthGuest *guest)
{
    berth_guest_stop_talking(guest);
    if (guest->writer != NULL)
        berth_log_writer_give_up(guest->writer);
    g_unlink(guest->channel_path);
    berth_console_remove(guest->console_path);
    berth_guest_touch(guest);
}

static void enter_running(BerthGuest *guest)
{
    g_clear_handle_id(&guest->boot_source, g_source_remove);
    berth_message_free(guest->request == NULL ? NULL : &guest->request->base);
    guest->request = NULL;
    berth_message_free(guest->record == NULL ? NULL : &guest->record->base);
    guest->record = NULL;
    if (!guest->goes_on)
        berth_guest_begin_rates(guest); /* its boot is not its command's */
    berth_guest_touch(guest);
}

static void on_end_measured(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthDomainStats) stats = berth_hypervisor_domain_stats_finish(result, &error);
    if (guest->is_closed)
        return;
    if (stats != NULL)
        berth_guest_measured(guest, stats);
    else
        g_debug("%s: not measured at its end: %s", guest->name, error->message);
    guest->is_end_measured = TRUE;
    berth_guest_touch(guest);
}

/* It is told of when it was measured a last time: no earlier measurement has all that it used, and
 * for a short job there was none. */
static void enter_ended(BerthGuest *guest)
{
    g_clear_handle_id(&guest->boot_source, g_source_remove);
    g_clear_handle_id(&guest->stop_source, g_source_remove);
    berth_hypervisor_domain_stats_async(guest->context->hypervisor, guest->name, END_STATS_MSEC,
                                        on_end_measured, berth_guest_ref(guest));
}

static void enter_booting(BerthGuest *guest)
{
    berth_guest_give_answers(guest->start_answers, BERTH_FAULT_NONE, NULL);
    berth_guest_start_talking(guest);
}

static void enter(BerthGuest *guest)
{
    switch (guest->phase) {
    case BERTH_PHASE_PREPARING:
        berth_guest_enter_preparing(guest);
        break;
    case BERTH_PHASE_DEFINING:
        berth_guest_enter_defining(guest);
        break;
    case BERTH_PHASE_ARRIVING:
        break;
    case BERTH_PHASE_BOOTING:
        enter_booting(guest);
        break;
    case BERTH_PHASE_RUNNING:
        enter_running(guest);
        break;
    case BERTH_PHASE_ENDED:
        enter_ended(guest);
        break;
    case BERTH_PHASE_DRAINING:
        enter_draining(guest);
        break;
    case BERTH_PHASE_GONE:
        enter_gone(guest);
        break;
    case BERTH_PHASE_LEFT:
        enter_left(guest);
        break;
    case BERTH_PHASE_FAILING:
    case BERTH_PHASE_UNDOING:
    case BERTH_PHASE_RELEASING:
        berth_guest_destroy_domain(guest);
        break;
    case BERTH_PHASE_CLEANING:
        berth_guest_enter_cleaning(guest);
        break;
    case BERTH_PHASE_FORGOTTEN:
        berth_guest_give_answers(guest->release_answers, BERTH_FAULT_NONE, NULL);
        guest->context->forgotten(guest, guest->context->user_data);
        break;
    case BERTH_N_PHASES:
        break;
    }
}

/* The wish that waited for the operation before; else STEP itself. */
static BerthGuestStep pending_step(BerthGuest *guest, BerthGuestStep step)
{
    gboolean is_starting =
        guest->phase == BERTH_PHASE_PREPARING || guest->phase == BERTH_PHASE_DEFINING;
    if (is_starting && guest->release_wanted)
        return BERTH_STEP_RELEASED;
    if (is_starting && guest->break_wanted)
        return BERTH_STEP_BROKEN;
    return step;
}

/* Does STEP end the operation that is under way? */
static gboolean ends_operation(BerthGuestStep step)
{
    return step == BERTH_STEP_DISK_MADE || step == BERTH_STEP_DOMAIN_MADE ||
           step == BERTH_STEP_START_FAILED || step == BERTH_STEP_DESTROYED ||
           step == BERTH_STEP_CLEANED;
}

static gboolean is_drained(const BerthGuest *guest)
{
    return guest->writer == NULL || berth_log_writer_is_idle(guest->writer);
}

void berth_guest_check_drained(BerthGuest *guest)
{
    if (!is_drained(guest))
        return;
    if (guest->phase == BERTH_PHASE_DRAINING)
        berth_guest_take_step(guest, BERTH_STEP_DRAINED);
    else if (guest->phase == BERTH_PHASE_CLEANING && guest->is_clean)
        berth_guest_take_step(guest, BERTH_STEP_CLEANED);
}

void berth_guest_take_step(BerthGuest *guest, BerthGuestStep step)
{
    G_GNUC_UNUSED g_autoptr(BerthGuestRef) keep = berth_guest_ref(guest);
    if (step == BERTH_STEP_CLEANED && !is_drained(guest)) {
        guest->is_clean = TRUE;
        return;
    }
    if (ends_operation(step)) {
        guest->is_busy = FALSE;
        step = pending_step(guest, step);
    } else if (guest->is_busy) {
        guest->release_wanted = guest->release_wanted || step == BERTH_STEP_RELEASED;
        guest->break_wanted = guest->break_wanted || step == BERTH_STEP_BROKEN;
        if (guest->release_wanted || guest->break_wanted)
            berth_guest_restore_not(guest);
        return;
    }
    BerthGuestPhaseOnNode next = berth_guest_phase_next(guest->phase, step);
    if (next == guest->phase)
        return;
    g_debug("%s: %s -> %s", guest->name, berth_guest_phase_name(guest->phase),
            berth_guest_phase_name(next));
    if (guest->phase <= BERTH_PHASE_ENDED || guest->phase == BERTH_PHASE_GONE ||
        guest->phase == BERTH_PHASE_LEFT)
        guest->last_phase = guest->phase;
    guest->phase = next;
    enter(guest);
    if (guest->is_closed || guest->is_busy || guest->phase != next)
        return;
    if (guest->release_wanted)
        berth_guest_take_step(guest, BERTH_STEP_RELEASED);
    else if (next == BERTH_PHASE_BOOTING && guest->domain_was_up && !guest->domain_is_up)
        berth_guest_take_step(guest, BERTH_STEP_VANISHED);
}

void berth_guest_break(BerthGuest *guest, Berth__Reason reason, const char *format, ...)
{
    if (guest->reason_text == NULL) { /* the first reason is the cause */
        va_list arguments;
        va_start(arguments, format);
        guest->reason_text = g_strdup_vprintf(format, arguments);
        va_end(arguments);
        guest->reason = reason;
    }
    berth_guest_take_step(guest, BERTH_STEP_BROKEN);
}

/* --- what is asked -------------------------------------------------------------------------- */

static gboolean check_name(const char *what, const char *name, GError **error)
{
    gsize length = strlen(name);
    if (length >= 1 && length <= 128 && name[0] != '.' &&
        strspn(name, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "._-") == length)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "cannot start the guest: \"%s\" is no name of %s", name, what);
    return FALSE;
}

static gboolean check_request(const Berth__StartGuestRequest *request, GError **error)
{
    if (!check_name("an image", request->image_id, error) ||
        !check_name("a disk", request->disk_id, error) ||
        !check_name("a log", request->log_id, error) ||
        (request->restore != NULL &&
         !check_name("a checkpoint", request->restore->checkpoint_id, error)))
        return FALSE;
    if (request->vcpus >= 1 && request->vcpus <= 65536 && request->vcpus_max <= 65536 &&
        request->memory_mib >= 1 && request->memory_mib <= G_MAXUINT32 &&
        request->memory_max_mib <= G_MAXUINT32 && request->disk_bytes >= 1 &&
        request->disk_bytes <= G_MAXINT64)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "cannot start the guest: %u vCPU%s, %" G_GUINT64_FORMAT
                " MiB of memory and a disk of %" G_GUINT64_FORMAT " bytes are no guest",
                request->vcpus, request->vcpus == 1 ? "" : "s", request->memory_mib,
                request->disk_bytes);
    return FALSE;
}

/* Keeps what the start needs: all of REQUEST, and its files ready to be sent. */
static gboolean take_request(BerthGuest *guest, const Berth__StartGuestRequest *request,
                             GError **error)
{
    if (!check_request(request, error))
        return FALSE;
    guest->is_to_restore = request->restore != NULL; /* and has its task and its files */
    if (!guest->is_to_restore)
        guest->files = berth_guest_files_new(request, guest->context->lane, error);
    if (guest->files == NULL && !guest->is_to_restore)
        return FALSE;
    Berth__StartGuestRequest head = *request;
    head.task = NULL; /* the files have it, and the contents */
    head.n_inline_blobs = 0;
    guest->request = (Berth__StartGuestRequest *)(void *)berth_message_copy(&head.base);
    if (guest->is_adopted)
        return TRUE;
    guest->limits = (BerthResources){.vcpus = request->vcpus,
                                     .memory_mib = request->memory_mib,
                                     .disk_mib = (request->disk_bytes + (1u << 20) - 1) >> 20};
    guest->is_opportunistic = request->opportunistic;
    guest->disk_id = g_strdup(request->disk_id);
    guest->log_id = g_strdup(request->log_id);
    return TRUE;
}

static void start_new(BerthGuest *guest, const Berth__StartGuestRequest *request,
                      BerthGuestAnswerFunc answer, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    if (!take_request(guest, request, &error)) {
        answer(BERTH_FAULT_JOB, error, user_data);
        guest->phase = BERTH_PHASE_FORGOTTEN;
        enter(guest);
        return;
    }
    berth_guest_add_answer(guest->start_answers, answer, user_data);
    enter(guest);
}

/* The domain of an agent before us, whose command has not begun: what is missing is its task. */
static void start_adopted(BerthGuest *guest, const Berth__StartGuestRequest *request,
                          BerthGuestAnswerFunc answer, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    if (guest->request == NULL && take_request(guest, request, &error)) {
        if (guest->stands_restored && request->restore != NULL)
            guest->restore_signal = request->restore->signal;
        if (guest->channel != NULL)
            berth_guest_channel_set_memory_max(guest->channel, request->memory_max_mib);
        berth_guest_give_task(guest);
    }
    answer(error == NULL ? BERTH_FAULT_NONE : BERTH_FAULT_JOB, error, user_data);
}

void berth_guest_start(BerthGuest *guest, const Berth__StartGuestRequest *request,
                       BerthGuestAnswerFunc answer, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    switch (guest->phase) {
    case BERTH_PHASE_PREPARING:
    case BERTH_PHASE_DEFINING:
        if (guest->is_busy)
            berth_guest_add_answer(guest->start_answers, answer, user_data);
        else
            start_new(guest, request, answer, user_data);
        break;
    case BERTH_PHASE_BOOTING:
        start_adopted(guest, request, answer, user_data);
        break;
    case BERTH_PHASE_RUNNING:
    case BERTH_PHASE_ENDED:
    case BERTH_PHASE_FAILING:
    case BERTH_PHASE_DRAINING:
    case BERTH_PHASE_GONE:
        /* Begun long ago; the scheduler seems not to have heard how it went on. */
        answer(BERTH_FAULT_NONE, NULL, user_data);
        berth_guest_touch(guest);
        break;
    default:
        g_set_error(&error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                    "cannot start %s: what an earlier start has left is being removed",
                    guest->name);
        answer(BERTH_FAULT_NODE, error, user_data);
        break;
    }
}

void berth_guest_adopt(BerthGuest *guest, const BerthDomain *domain)
{
    guest->is_adopted = guest->had_run = TRUE;
    g_free(guest->name);
    guest->name = g_strdup(domain->name);
    guest->limits = domain->metadata.limits;
    guest->balloon_mib = domain->metadata.balloon_mib;
    guest->is_opportunistic = domain->metadata.is_opportunistic;
    guest->disk_id = g_strdup(domain->metadata.disk_id);
    guest->log_id = g_strdup(domain->metadata.log_id);
    if (domain->channel_path != NULL) {
        g_free(guest->channel_path);
        guest->channel_path = g_strdup(domain->channel_path);
    }
    if (domain->console_path != NULL) {
        g_free(guest->console_path);
        guest->console_path = g_strdup(domain->console_path);
    }
    guest->may_have_domain = guest->domain_is_up = guest->domain_was_up = TRUE;
    guest->is_frozen = guest->freeze_wanted = guest->may_be_saved = domain->is_frozen;
    if (domain->metadata.stands)
        berth_guest_adopt_restored(guest, domain->stands_still);
    guest->hold_is_unknown = guest->share_is_unknown = TRUE;
    guest->phase = guest->last_phase = BERTH_PHASE_BOOTING;
    berth_guest_start_talking(guest);
    berth_guest_follow_move(guest);
}

gboolean berth_guest_stop(BerthGuest *guest, guint grace_msec)
{
    berth_guest_stay(guest);
    berth_guest_checkpoint_not(guest);
    berth_guest_hold_back(guest, FALSE);
    berth_guest_thaw_to_end(guest);
    switch (guest->phase) {
    case BERTH_PHASE_PREPARING:
    case BERTH_PHASE_DEFINING:
        berth_guest_break(guest, BERTH__REASON__REASON_NONE, "stopped before its command began");
        break;
    case BERTH_PHASE_BOOTING:
        if (berth_guest_is_known(guest))
            berth_guest_break(guest, BERTH__REASON__REASON_NONE,
                              "stopped before its command began");
        else
            berth_guest_begin_stop(guest, grace_msec);
        break;
    case BERTH_PHASE_RUNNING:
        berth_guest_begin_stop(guest, grace_msec);
        break;
    case BERTH_PHASE_ENDED:
    case BERTH_PHASE_GONE:
        berth_guest_touch(guest); /* the scheduler seems not to have heard */
        break;
    case BERTH_PHASE_FAILING:
    case BERTH_PHASE_DRAINING:
        break; /* and will be GONE */
    default:
        return FALSE;
    }
    return TRUE;
}

void berth_guest_release(BerthGuest *guest, const char *disk_id, BerthGuestAnswerFunc answer,
                         gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    if (guest->disk_id == NULL && disk_id != NULL && check_name("a disk", disk_id, &error))
        guest->disk_id = g_strdup(disk_id);
    if ((guest->phase == BERTH_PHASE_CLEANING && !guest->keep_disk) ||
        guest->phase == BERTH_PHASE_FORGOTTEN) {
        answer(BERTH_FAULT_NONE, NULL, user_data);
        return;
    }
    berth_guest_add_answer(guest->release_answers, answer, user_data);
    berth_guest_take_step(guest, BERTH_STEP_RELEASED);
}

void berth_guest_release_here(BerthGuest *guest, BerthGuestAnswerFunc answer, gpointer user_data)
{
    guest->keep_disk = TRUE;
    berth_guest_release(guest, NULL, answer, user_data);
}

/* --- what libvirt says ---------------------------------------------------------------------- */

void berth_guest_domain_started(BerthGuest *guest)
{
    guest->domain_is_up = guest->domain_was_up = TRUE;
}

/* Its clock stood still: a new session sets it. */
void berth_guest_domain_resumed(BerthGuest *guest)
{
    berth_guest_begin_rates_now(guest);
    if (guest->channel != NULL)
        berth_guest_channel_renew(guest->channel);
}

/* What a guest does to itself it would do again; what its host does to it is worth another try. */
static void take_end(BerthGuest *guest, Berth__Reason reason, const char *text)
{
    if (!guest->domain_is_up)
        return; /* of an earlier domain of that name */
    guest->domain_is_up = FALSE;
    if (guest->phase == BERTH_PHASE_ARRIVING)
        return; /* it did not come */
    berth_guest_end_resize(guest);
    if (guest->reason_text == NULL) {
        guest->reason = reason;
        guest->reason_text = g_strdup(text);
    }
    berth_guest_take_step(guest, BERTH_STEP_VANISHED);
}

/* Its domain is gone, and not by itself: a libvirtd that is started anew in the last step of a move ends it so
 * too. Who takes it there sees whether it came. */
static void take_unseen(BerthGuest *guest, const char *text)
{
    if (berth_guest_may_have_left(guest))
        berth_guest_domain_left(guest);
    else
        take_end(guest, BERTH__REASON__REASON_GUEST_VANISHED, text);
}

static const char *why_failed(const BerthGuest *guest)
{
    const char *why = berth_guest_may_have_left(guest) /* that is no end that would be told */
                          ? NULL
                          : guest->context->why_killed(guest->context->user_data);
    return why != NULL ? why
                       : "the guest's QEMU failed or was killed; libvirt's log of it on the node, "
                         "and the node's kernel log, say more";
}

void berth_guest_domain_stopped(BerthGuest *guest, BerthDomainEvent event)
{
    switch (event) {
    case BERTH_DOMAIN_LEFT:
        berth_guest_domain_left(guest);
        break;
    case BERTH_DOMAIN_STOPPED:
        take_unseen(guest, "the guest was ended on its node, which shut down, or by an operator");
        break;
    case BERTH_DOMAIN_FAILED:
        take_unseen(guest, why_failed(guest));
        break;
    default:
        take_end(guest, BERTH__REASON__REASON_GUEST_CRASHED,
                 berth_guest_may_have_begun(guest)
                     ? "the guest ended before its command did"
                     : "the guest ended before its command was to begin");
        break;
    }
}

void berth_guest_domain_missing(BerthGuest *guest)
{
    take_unseen(guest, "the guest ended while libvirt was away, and nobody saw how");
}

/* --- looking -------------------------------------------------------------------------------- */

const BerthGuestId *berth_guest_id(const BerthGuest *guest)
{
    return &guest->id;
}

const char *berth_guest_name(const BerthGuest *guest)
{
    return guest->name;
}

BerthGuestPhaseOnNode berth_guest_phase(const BerthGuest *guest)
{
    return guest->phase;
}

gboolean berth_guest_is_awaited(const BerthGuest *guest)
{
    return !berth_guest_is_known(guest) && !guest->is_frozen;
}

gboolean berth_guest_is_known(const BerthGuest *guest)
{
    return !guest->is_adopted || guest->phase != BERTH_PHASE_BOOTING ||
           (guest->channel != NULL && berth_guest_channel_is_open(guest->channel));
}

gboolean berth_guest_is_over(const BerthGuest *guest)
{
    return guest->phase == BERTH_PHASE_LEFT || guest->phase == BERTH_PHASE_CLEANING ||
           guest->phase == BERTH_PHASE_FORGOTTEN;
}

gboolean berth_guest_is_ours(const BerthGuest *guest)
{
    return guest->phase != BERTH_PHASE_ARRIVING && !guest->has_left && !guest->keep_disk;
}

gboolean berth_guest_is_to_tell(const BerthGuest *guest)
{
    return berth_guest_is_ours(guest) || guest->phase == BERTH_PHASE_LEFT;
}

gboolean berth_guest_has_domain(const BerthGuest *guest)
{
    return guest->domain_is_up &&
           (guest->phase == BERTH_PHASE_BOOTING || guest->phase == BERTH_PHASE_RUNNING ||
            guest->phase == BERTH_PHASE_ENDED);
}

guint64 berth_guest_serial(const BerthGuest *guest)
{
    return guest->serial;
}

void berth_guest_set_reported(BerthGuest *guest, guint64 serial)
{
    guest->reported_serial = MAX(guest->reported_serial, serial);
}

void berth_guest_set_kept(BerthGuest *guest, guint64 serial)
{
    if (guest->clients.known != NULL && serial >= guest->clients_serial)
        berth_guest_let_restored_go(guest);
}

void berth_guest_tell_if_it_stands(BerthGuest *guest)
{
    if (guest->stands_restored)
        berth_guest_touch(guest);
}

gboolean berth_guest_is_reported(const BerthGuest *guest)
{
    return guest->reported_serial >= guest->serial;
}
