/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a guest's disk and domain come and go. Whatever fails on the way leads to steps; what was
 * begun is undone before anybody is told that it failed. */
#include <config.h>

#include "nodeagent/guest_private.h"

#include <glib/gstdio.h>

#include "common/error.h"
#include "nodeagent/console.h"

#define CREATE_MSEC  60000u
#define DESTROY_MSEC 60000u

/* --- answers -------------------------------------------------------------------------------- */

typedef struct {
    BerthGuestAnswerFunc func;
    gpointer user_data;
} Answer;

GArray *berth_guest_answers_new(void)
{
    return g_array_new(FALSE, FALSE, sizeof(Answer));
}

void berth_guest_add_answer(GArray *answers, BerthGuestAnswerFunc func, gpointer user_data)
{
    Answer answer = {func, user_data};
    g_array_append_val(answers, answer);
}

void berth_guest_give_answers(GArray *answers, BerthFault fault, const GError *error)
{
    gsize n;
    g_autofree Answer *given = g_array_steal(answers, &n);
    for (gsize i = 0; i < n; i++)
        given[i].func(fault, error, given[i].user_data);
}

/* --- making --------------------------------------------------------------------------------- */

void berth_guest_fail_start(BerthGuest *guest, BerthFault fault, GError *error)
{
    g_clear_error(&guest->start_error);
    guest->start_error = error;
    guest->start_fault = fault;
    g_message("%s could not be started: %s", guest->name, error->message);
    berth_guest_take_step(guest, BERTH_STEP_START_FAILED);
}

/* An image that is damaged is so everywhere; one that is not found may be there for other nodes. */
BerthFault berth_guest_fault_of_storage(const GError *error)
{
    switch (error->code) {
    case BERTH_ERROR_UNAVAILABLE:
    case BERTH_ERROR_DEADLINE_EXCEEDED:
    case BERTH_ERROR_RESOURCE_EXHAUSTED:
        return BERTH_FAULT_STORAGE;
    case BERTH_ERROR_DATA_LOSS:
        return BERTH_FAULT_JOB;
    default:
        return BERTH_FAULT_NODE;
    }
}

static void on_disk_made(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    GError *error = NULL;
    BerthDiskSource *disk = berth_guest_make_disk_finish(result, &error);
    if (guest->is_closed) {
        berth_disk_source_free(disk);
        g_clear_error(&error);
    } else if (disk == NULL) {
        berth_guest_fail_start(guest, berth_guest_fault_of_storage(error), error);
    } else {
        guest->disk = disk;
        berth_guest_take_step(guest, BERTH_STEP_DISK_MADE);
    }
}

void berth_guest_enter_preparing(BerthGuest *guest)
{
    guest->is_busy = TRUE;
    if (guest->request->restore != NULL)
        berth_guest_restore_disk(guest);
    else
        berth_guest_make_disk(guest, on_disk_made);
}

/* QEMU does not give up where Ceph refuses it, and says nothing. */
static GError *with_advice(const BerthGuest *guest, GError *error)
{
    const BerthStorageConfig *storage = &guest->context->config->storage;
    if (!g_error_matches(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED) ||
        storage->secret_uuid == NULL)
        return error;
    GError *advised = g_error_new(
        BERTH_ERROR, error->code,
        "%s; where that happens each time, the value of libvirt's secret %s on this node may not "
        "be the key of Ceph's client.%s: see berth-setup(7), STORAGE",
        error->message, storage->secret_uuid, storage->ceph_user);
    g_error_free(error);
    return advised;
}

static void on_domain_made(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    GError *error = NULL;
    gboolean ok = berth_hypervisor_create_finish(result, &error);
    if (guest->is_closed) {
        g_clear_error(&error);
    } else if (!ok) {
        berth_guest_fail_start(guest, BERTH_FAULT_NODE, with_advice(guest, error));
    } else {
        if (!guest->domain_was_up)
            berth_guest_domain_started(guest);
        berth_guest_take_step(guest, BERTH_STEP_DOMAIN_MADE);
    }
}

static void make_domain(BerthGuest *guest)
{
    const BerthGuestContext *context = guest->context;
    BerthDomainMetadata metadata = {
        .id = guest->id,
        .limits = guest->limits,
        .is_opportunistic = guest->is_opportunistic,
        .disk_id = guest->disk_id,
        .log_id = guest->log_id,
    };
    BerthDomainConfig config = {
        .name = guest->name,
        .metadata = &metadata,
        .vcpus = guest->limits.vcpus,
        .memory_mib = guest->limits.memory_mib,
        .vcpus_max = guest->request->vcpus_max,
        .memory_max_mib = guest->request->memory_max_mib,
        .is_opportunistic = guest->is_opportunistic,
        .use_kvm = context->use_kvm,
        .machine = context->machine,
        .cpu_model = context->cpu_model,
        .kernel = context->config->kernel,
        .initramfs = context->config->initramfs,
        .cmdline = context->cmdline,
        .disk = guest->disk,
        .disk_cache = context->config->disk_cache,
        .channel_path = guest->channel_path,
        .console_path = guest->console_path,
        .partition = context->config->partition,
        .host_cpus = context->config->host_cpus,
        .guest_cpus = context->config->guest_cpus,
    };
    berth_hypervisor_create_async(context->hypervisor, &config, CREATE_MSEC, on_domain_made,
                                  berth_guest_ref(guest));
}

void berth_guest_enter_defining(BerthGuest *guest)
{
    guest->is_busy = TRUE;
    guest->may_have_domain = berth_hypervisor_is_connected(guest->context->hypervisor);
    guest->domain_is_up = guest->domain_was_up = FALSE;
    berth_console_remove(guest->console_path); /* of a start before */
    if (guest->record != NULL)
        berth_guest_restore_domain(guest);
    else
        make_domain(guest);
}

/* --- destroying ----------------------------------------------------------------------------- */

static void on_retry_due(gpointer data)
{
    BerthGuest *guest = data;
    guest->retry_source = 0;
    berth_guest_destroy_domain(guest);
}

static void on_destroyed(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    gboolean ok = berth_hypervisor_destroy_finish(result, &error);
    if (guest->is_closed)
        return;
    if (ok) {
        berth_backoff_reset(&guest->retry);
        guest->may_have_domain = guest->domain_is_up = FALSE;
        berth_guest_take_step(guest, BERTH_STEP_DESTROYED);
        return;
    }
    if (guest->retry.current_msec == 0)
        g_warning("%s: trying again until it works: %s", guest->name, error->message);
    guest->retry_source = g_timeout_add_once(
        berth_backoff_next_msec(&guest->retry, g_random_double()), on_retry_due, guest);
}

/* A release is asked for by name, and what could have been made without being known here is looked
 * for while libvirt is reached. Without libvirt nothing was made: every domain that ever ran has been
 * adopted or made by a guest that knows it. */
static gboolean may_be_there(const BerthGuest *guest)
{
    return guest->may_have_domain || (guest->phase == BERTH_PHASE_RELEASING &&
                                      berth_hypervisor_is_connected(guest->context->hypervisor));
}

void berth_guest_destroy_domain(BerthGuest *guest)
{
    berth_guest_stop_timers(guest);
    berth_guest_end_resize(guest);
    guest->is_busy = TRUE;
    if (!may_be_there(guest)) {
        berth_guest_take_step(guest, BERTH_STEP_DESTROYED);
        return;
    }
    berth_hypervisor_destroy_async(guest->context->hypervisor, guest->name, &guest->id,
                                   DESTROY_MSEC, on_destroyed, berth_guest_ref(guest));
}

static void on_given_up(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    gboolean ok = berth_hypervisor_destroy_finish(result, &error);
    if (guest->is_closed)
        return;
    guest->is_given_up = FALSE;
    if (ok)
        berth_guest_domain_stopped(guest, BERTH_DOMAIN_STOPPED); /* if libvirt has not said so */
    else
        g_warning("%s could not be ended: %s", guest->name, error->message);
}

void berth_guest_give_up(BerthGuest *guest, const char *why)
{
    guest->is_given_up = TRUE;
    if (guest->reason_text == NULL) {
        guest->reason = BERTH__REASON__REASON_CROWDED_OUT;
        guest->reason_text = g_strdup(why);
    }
    berth_hypervisor_destroy_async(guest->context->hypervisor, guest->name, &guest->id, 0,
                                   on_given_up, berth_guest_ref(guest));
}

/* --- cleaning ------------------------------------------------------------------------------- */

static void on_disk_removed(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    gboolean ok = berth_guest_remove_disk_finish(result, &error);
    if (guest->is_closed)
        return;
    if (!ok)
        g_warning("the disk of %s is left to the scheduler's collection of garbage: %s",
                  guest->name, error->message);
    berth_guest_take_step(guest, BERTH_STEP_CLEANED);
}

static void answer_start(BerthGuest *guest)
{
    g_autoptr(GError) stopped =
        g_error_new(BERTH_ERROR, BERTH_ERROR_CANCELLED,
                    "%s was stopped or released before it was started", guest->name);
    if (guest->start_error != NULL)
        berth_guest_give_answers(guest->start_answers, guest->start_fault, guest->start_error);
    else
        berth_guest_give_answers(guest->start_answers, BERTH_FAULT_NODE, stopped);
}

/* That of a checkpoint is the checkpoint's: what could not be restored from it is tried again, here or elsewhere. */
static gboolean keeps_disk(const BerthGuest *guest)
{
    return guest->disk_id == NULL || guest->keep_disk ||
           (guest->start_error != NULL && guest->is_to_restore && !guest->release_wanted);
}

/* No QEMU runs any more: who waited for that is told first; where it goes on elsewhere, when its output is durable,
 * so that nothing is written any more to logs that go on there. A checkpoint that is being taken has its disk open. */
void berth_guest_enter_cleaning(BerthGuest *guest)
{
    berth_guest_stop_talking(guest);
    answer_start(guest);
    if (!guest->keep_disk)
        berth_guest_give_answers(guest->release_answers, BERTH_FAULT_NONE, NULL);
    guest->is_busy = TRUE;
    if (guest->checkpoint != NULL) {
        berth_guest_checkpoint_not(guest);
        return;
    }
    g_unlink(guest->channel_path);
    guest->stands_restored = FALSE;
    berth_console_remove(guest->console_path);
    if (keeps_disk(guest))
        berth_guest_take_step(guest, BERTH_STEP_CLEANED);
    else
        berth_guest_remove_disk(guest, on_disk_removed);
}
