/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a guest goes on from a checkpoint: its disk and its logs are put back to that instant, its memory goes from
 * storage through a FIFO to libvirt, and then it is as one that was adopted: its command has begun long ago.
 *
 * Invariants: nothing of a checkpoint changes, so that all of this can be done again, here or on another node; the logs
 * are cut before it goes on, and it stands still until the scheduler has stored who has its disk open, for a fence to
 * find. That it does so for this reason, and was not frozen, its domain says, for an agent after us. */
#include <config.h>

#include "nodeagent/guest_private.h"

#include <string.h>

#include "common/error.h"
#include "common/id.h"
#include "nodeagent/checkpoint_record.h"
#include "nodeagent/memory_pipe.h"

/* A QEMU that is to end, and has not: it is told so again after that. */
#define END_AGAIN_MSEC 2000u

/* --- its disk ------------------------------------------------------------------------------- */

/* For so long a disk that somebody has open is waited for, and looked at so often. */
#define CLOSES_USEC     (3 * G_USEC_PER_SEC)
#define LOOK_AGAIN_USEC (100 * 1000)

typedef struct {
    char *checkpoint_id;
    char *disk_id;
    char *log_id;
    gboolean use_kvm;
} DiskInput;

static void disk_input_free(gpointer data)
{
    DiskInput *input = data;
    g_free(input->checkpoint_id);
    g_free(input->disk_id);
    g_free(input->log_id);
    g_free(input);
}

typedef struct {
    BerthDiskSource *disk;
    Berth__CheckpointRecord *record;
} Put;

static void put_free(gpointer data)
{
    Put *put = data;
    berth_disk_source_free(put->disk);
    berth_checkpoint_record_free(put->record);
    g_free(put);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Put, put_free)

static gboolean check_record(const Berth__CheckpointRecord *record, const DiskInput *input,
                             GError **error)
{
    if (!g_str_equal(record->log_id, input->log_id)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
                    "checkpoint %s was taken of a guest with the log %s, and not %s",
                    input->checkpoint_id, record->log_id, input->log_id);
        return FALSE;
    }
    if (record->is_emulated != input->use_kvm)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED,
                "checkpoint %s was taken of a guest under %s, and this node has %s",
                input->checkpoint_id, record->is_emulated ? "emulation" : "KVM",
                input->use_kvm ? "KVM" : "emulation");
    return FALSE;
}

static gboolean cut_logs(BerthStorage *storage, const char *log_id,
                         const Berth__CheckpointGuestReply *taken, GError **error)
{
    const guint64 sizes[BERTH_N_STREAMS] = {
        [BERTH_STDOUT] = taken->stdout_bytes,
        [BERTH_STDERR] = taken->stderr_bytes,
    };
    for (guint i = 0; i < BERTH_N_STREAMS; i++) {
        g_autofree char *name = berth_log_name_format(log_id, i);
        if (!berth_storage_log_cut(storage, name, sizes[i], error))
            return FALSE;
    }
    return TRUE;
}

static gboolean is_in_use(const GError *reason)
{
    return g_error_matches(reason, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION);
}

/* Whoever removes an older checkpoint has the disk open for that, and the QEMU before this one for as long as it takes
 * to end. Storage does not tell when somebody closes a disk. */
static BerthDiskSource *put_back_when_closed(BerthStorage *storage, const DiskInput *input,
                                             GError **error)
{
    gint64 deadline_usec = g_get_monotonic_time() + CLOSES_USEC;
    for (;;) {
        g_autoptr(GError) reason = NULL;
        BerthDiskSource *disk = berth_storage_checkpoint_restore_disk(storage, input->checkpoint_id,
                                                                      input->disk_id, &reason);
        if (disk != NULL)
            return disk;
        if (!is_in_use(reason) || g_get_monotonic_time() >= deadline_usec) {
            g_propagate_error(error, g_steal_pointer(&reason));
            return NULL;
        }
        g_usleep(LOOK_AGAIN_USEC);
    }
}

static BerthCheckpointReader *open_memory(BerthStorage *storage, const char *checkpoint_id,
                                          GError **error)
{
    g_autoptr(GError) reason = NULL;
    BerthCheckpointReader *reader = berth_storage_checkpoint_open(storage, checkpoint_id, &reason);
    if (reader != NULL)
        return reader;
    berth_checkpoint_call_lost(reason);
    g_propagate_error(error, g_steal_pointer(&reason));
    return NULL;
}

/* What its logs have beyond it is lost for later checkpoints: so first it is seen that it is of use. */
static gpointer put_back(BerthStorage *storage, gconstpointer data, GError **error)
{
    const DiskInput *input = data;
    g_autoptr(Put) put = g_new0(Put, 1);
    put->record = berth_checkpoint_record_read(storage, input->checkpoint_id, error);
    if (put->record == NULL || !check_record(put->record, input, error))
        return NULL;
    g_autoptr(BerthCheckpointReader) memory = open_memory(storage, input->checkpoint_id, error);
    if (memory == NULL)
        return NULL;
    put->disk = put_back_when_closed(storage, input, error);
    if (put->disk == NULL || !cut_logs(storage, input->log_id, put->record->taken, error))
        return NULL;
    return g_steal_pointer(&put);
}

/* What it was resized to counts, and not what it was submitted with. What its balloon kept then is in its memory, and is
 * given back when it runs: where it goes on is another place. */
static gboolean take_size(BerthGuest *guest, GError **error)
{
    const char *xml = guest->record->domain_xml;
    g_autoptr(BerthDomain) domain = berth_domain_parse(xml, strlen(xml), error);
    if (domain == NULL)
        return FALSE;
    guest->limits = domain->metadata.limits;
    guest->balloon_mib = domain->metadata.balloon_mib;
    return TRUE;
}

/* What has the disk open still goes, or Ceph forgets it. */
static BerthFault fault_of_put_back(const GError *error)
{
    return is_in_use(error) ? BERTH_FAULT_IN_USE : berth_guest_fault_of_storage(error);
}

static void on_put_back(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    GError *error = NULL;
    g_autoptr(Put) put = berth_work_finish(result, &error);
    if (guest->is_closed) {
        g_clear_error(&error);
    } else if (put == NULL) {
        berth_guest_fail_start(guest, fault_of_put_back(error), error);
    } else {
        guest->disk = g_steal_pointer(&put->disk);
        guest->record = g_steal_pointer(&put->record);
        g_free(guest->name);
        guest->name = g_strdup(guest->record->domain);
        if (take_size(guest, &error))
            berth_guest_take_step(guest, BERTH_STEP_DISK_MADE);
        else
            berth_guest_fail_start(guest, BERTH_FAULT_JOB, error);
    }
}

void berth_guest_restore_disk(BerthGuest *guest)
{
    DiskInput *input = g_new0(DiskInput, 1);
    *input = (DiskInput){
        .checkpoint_id = g_strdup(guest->request->restore->checkpoint_id),
        .disk_id = g_strdup(guest->disk_id),
        .log_id = g_strdup(guest->log_id),
        .use_kvm = guest->context->use_kvm,
    };
    berth_storage_lane_run(guest->context->lane, BERTH_LANE_REMOVAL, "put a disk back", put_back,
                           input, disk_input_free, put_free, guest->cancellable, on_put_back,
                           berth_guest_ref(guest));
}

/* --- until it goes on ----------------------------------------------------------------------- */

#define GO_ON_AGAIN_MSEC 1000u

static void on_noted(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    if (!berth_hypervisor_resume_finish(result, &error) && !guest->is_closed)
        g_message("%s has gone on from a checkpoint, which its domain does not say: %s",
                  guest->name, error->message);
}

/* Of a restored domain libvirt tells the same reason as in the last step of a move: that nobody has frozen it. One that
 * runs was let go by an agent that ended before it could say so. */
void berth_guest_adopt_restored(BerthGuest *guest, gboolean stands_still)
{
    if (stands_still)
        guest->stands_restored = guest->is_frozen = guest->freeze_wanted = TRUE;
    else
        berth_hypervisor_resume_async(guest->context->hypervisor, guest->name, on_noted,
                                      berth_guest_ref(guest));
}

/* As far as it goes; who reaches its limit before that is asked about by the scheduler. */
static void on_balloon_gone(BerthFault fault, const GError *error, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    if (error != NULL)
        g_message("%s keeps the balloon of its checkpoint: %s", guest->name, error->message);
}

static void let_balloon_go(BerthGuest *guest)
{
    const BerthDomainSize size = {guest->limits.vcpus, guest->limits.memory_mib, 0,
                                  guest->is_opportunistic};
    berth_guest_resize(guest, &size, FALSE, on_balloon_gone, berth_guest_ref(guest));
}

static void on_go_on_due(gpointer data)
{
    BerthGuest *guest = data;
    guest->go_on_source = 0;
    berth_guest_let_restored_go(guest);
}

/* libvirtd that is away, or somebody who wanted it frozen meanwhile, is no reason to lose it. */
static gboolean may_pass(const GError *error)
{
    return g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE) ||
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED) ||
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_CANCELLED);
}

static void on_gone_on(BerthFault fault, const GError *error, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    guest->is_let_go = FALSE;
    if (guest->is_closed || !guest->stands_restored || guest->release_wanted)
        return; /* nor is it asked for again when its timers are gone */
    if (may_pass(error)) {
        guest->go_on_source = g_timeout_add_once(GO_ON_AGAIN_MSEC, on_go_on_due, guest);
        return;
    }
    if (error != NULL) {
        berth_guest_break(guest, BERTH__REASON__REASON_GUEST_VANISHED, "it cannot go on: %s",
                          error->message);
        return;
    }
    g_message("%s goes on from a checkpoint", guest->name);
    guest->stands_restored = FALSE;
    berth_guest_expect_answer(guest);
    if (guest->balloon_mib > 0)
        let_balloon_go(guest); /* before, it could have given nothing back */
}

/* Not one of which the scheduler says that it is nobody's here: its task may go on elsewhere, with the same disk. */
void berth_guest_let_restored_go(BerthGuest *guest)
{
    if (!guest->stands_restored || guest->is_let_go || guest->go_on_source != 0 ||
        guest->is_stray || guest->release_wanted || !berth_guest_has_domain(guest))
        return;
    guest->is_let_go = TRUE;
    berth_guest_freeze(guest, FALSE, on_gone_on, berth_guest_ref(guest));
}

/* --- its memory ----------------------------------------------------------------------------- */

struct BerthGuestRestore {
    BerthGuest *guest; /* a reference */
    BerthMemoryPipe *pipe;
    char *xml;
    gboolean is_restoring; /* libvirt was asked to, and has not answered */
    gboolean is_sent;      /* the worker has come to its end */
    gboolean is_called_off;
    gboolean is_ending; /* libvirt was asked to end its QEMU */
    guint end_source;   /* it is to be asked again */
    GError *error;      /* of storage, for which libvirt fails, rather than of libvirt */
    gboolean is_storage_s;
};
typedef struct BerthGuestRestore Restore;

typedef struct {
    BerthMemoryPipe *pipe;
    char *checkpoint_id;
    Restore *restore; /* for the loop only, until it has the result */
} SendInput;

static void send_input_free(gpointer data)
{
    SendInput *input = data;
    berth_memory_pipe_unref(input->pipe);
    g_free(input->checkpoint_id);
    g_free(input);
}

static void restore_free(Restore *restore)
{
    restore->guest->restore = NULL;
    g_clear_handle_id(&restore->end_source, g_source_remove);
    berth_memory_pipe_unref(restore->pipe);
    berth_guest_unref(restore->guest);
    g_clear_error(&restore->error);
    g_free(restore->xml);
    g_free(restore);
}

static void take_restored(BerthGuest *guest)
{
    guest->stands_restored = TRUE;
    g_message("%s is restored, and stands still until it is stored who has its disk open",
              guest->name);
    guest->is_adopted = guest->had_run = TRUE;
    guest->is_frozen = guest->freeze_wanted = TRUE;
    if (!guest->domain_was_up)
        berth_guest_domain_started(guest);
    berth_guest_take_step(guest, BERTH_STEP_DOMAIN_MADE);
    guest->share_is_unknown = guest->is_opportunistic; /* it came with another weight */
    berth_guest_renew_hold(guest);
}

/* When both have come to their ends. */
static void proceed(Restore *restore)
{
    BerthGuest *guest = restore->guest;
    if (!restore->is_sent || restore->is_restoring)
        return;
    if (guest->is_closed) {
        restore_free(restore);
        return;
    }
    if (restore->error == NULL) {
        take_restored(guest);
    } else if (guest->release_wanted || guest->break_wanted) { /* it was called off */
        berth_guest_take_step(guest, BERTH_STEP_START_FAILED);
    } else {
        BerthFault fault =
            restore->is_storage_s ? berth_guest_fault_of_storage(restore->error) : BERTH_FAULT_NODE;
        berth_guest_fail_start(guest, fault, g_steal_pointer(&restore->error));
    }
    restore_free(restore);
}

static void on_restored(GObject *source, GAsyncResult *result, gpointer data)
{
    Restore *restore = data;
    g_autoptr(GError) error = NULL;
    gboolean ok = berth_hypervisor_restore_finish(result, &error);
    restore->is_restoring = FALSE;
    if (!ok && restore->error == NULL)
        restore->error = g_steal_pointer(&error);
    if (ok)
        berth_memory_pipe_end(restore->pipe);
    else
        berth_memory_pipe_stop(restore->pipe);
    proceed(restore);
}

/* From the worker: the memory can be read. */
static gboolean on_opened(gpointer data)
{
    Restore *restore = data;
    BerthGuest *guest = restore->guest;
    if (restore->is_called_off)
        return G_SOURCE_REMOVE;
    restore->is_restoring = TRUE;
    berth_memory_pipe_asked(restore->pipe);
    berth_hypervisor_restore_async(guest->context->hypervisor, guest->name, restore->xml,
                                   berth_memory_pipe_path(restore->pipe), on_restored, restore);
    return G_SOURCE_REMOVE;
}

static void end_qemu(Restore *restore);

static void on_end_due(gpointer data)
{
    Restore *restore = data;
    restore->end_source = 0;
    end_qemu(restore);
}

static void on_qemu_ended(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(BerthGuestRef) guest = data;
    g_autoptr(GError) error = NULL;
    if (!berth_hypervisor_destroy_finish(result, &error))
        g_warning("%s could not be ended: %s", guest->name, error->message);
    Restore *restore = guest->restore;
    if (restore == NULL || !restore->is_ending)
        return;
    restore->is_ending = FALSE;
    if (restore->is_restoring && !guest->is_closed)
        restore->end_source = g_timeout_add_once(END_AGAIN_MSEC, on_end_due, restore);
}

/* libvirt answers when the QEMU that does not load is gone, and not before. */
static void end_qemu(Restore *restore)
{
    BerthGuest *guest = restore->guest;
    if (guest->is_closed || !restore->is_restoring || restore->is_ending ||
        restore->end_source != 0)
        return;
    restore->is_ending = TRUE;
    berth_hypervisor_destroy_async(guest->context->hypervisor, guest->name, &guest->id, 0,
                                   on_qemu_ended, berth_guest_ref(guest));
}

/* From the worker. */
static gboolean on_stalled(gpointer data)
{
    Restore *restore = data;
    if (restore->error == NULL)
        restore->error = berth_memory_pipe_why_stalled();
    end_qemu(restore);
    return G_SOURCE_REMOVE;
}

static void tell_stalled(gconstpointer input)
{
    g_idle_add_full(G_PRIORITY_DEFAULT, on_stalled, ((const SendInput *)input)->restore, NULL);
}

static gpointer send_memory(BerthStorage *storage, gconstpointer data, GError **error)
{
    const SendInput *input = data;
    g_autoptr(BerthCheckpointReader) reader = open_memory(storage, input->checkpoint_id, error);
    if (reader == NULL)
        return NULL;
    g_idle_add_full(G_PRIORITY_DEFAULT, on_opened, input->restore, NULL);
    berth_memory_pipe_send(input->pipe, reader, tell_stalled, input, error);
    return NULL;
}

static void on_sent(GObject *source, GAsyncResult *result, gpointer data)
{
    Restore *restore = data;
    GError *error = NULL;
    gboolean ok = berth_work_finish_empty(result, &error);
    restore->is_sent = TRUE;
    if (!ok && !g_error_matches(error, BERTH_ERROR, BERTH_ERROR_CANCELLED)) {
        g_clear_error(&restore->error);
        restore->error = g_steal_pointer(&error);
        restore->is_storage_s = TRUE;
    } else if (!ok && restore->error == NULL) {
        restore->error = g_steal_pointer(&error);
    }
    g_clear_error(&error);
    proceed(restore);
}

static char *xml_for(const BerthGuest *guest, GError **error)
{
    g_autoptr(BerthMigrationTarget) host = berth_guest_target(guest);
    const BerthDomainMetadata metadata = {
        .id = guest->id,
        .limits = guest->limits,
        .disk_id = guest->disk_id,
        .log_id = guest->log_id,
        .stands = TRUE,
    };
    return berth_domain_xml_for_restore(guest->record->domain_xml, host, &metadata, guest->disk,
                                        error);
}

void berth_guest_restore_domain(BerthGuest *guest)
{
    GError *error = NULL;
    g_autofree char *xml = xml_for(guest, &error);
    BerthMemoryPipe *pipe =
        xml == NULL ? NULL : berth_memory_pipe_new(guest->context->config->run_dir, &error);
    if (pipe == NULL) {
        berth_guest_fail_start(guest, BERTH_FAULT_NODE, error);
        return;
    }
    guest->restore_signal = guest->request->restore->signal;
    Restore *restore = g_new0(Restore, 1);
    SendInput *input = g_new0(SendInput, 1);
    *restore =
        (Restore){.guest = berth_guest_ref(guest), .pipe = pipe, .xml = g_steal_pointer(&xml)};
    guest->restore = restore;
    *input = (SendInput){berth_memory_pipe_ref(pipe),
                         g_strdup(guest->request->restore->checkpoint_id), restore};
    berth_storage_lane_run(guest->context->lane, BERTH_LANE_MEMORY, "restore a guest's memory",
                           send_memory, input, send_input_free, NULL, NULL, on_sent, restore);
}

void berth_guest_restore_not(BerthGuest *guest)
{
    Restore *restore = guest->restore;
    if (restore == NULL || restore->is_called_off)
        return;
    restore->is_called_off = TRUE;
    if (restore->is_restoring) {
        berth_memory_pipe_give_up(restore->pipe);
        if (!guest->is_closed) /* unless it sees the end of its memory before */
            restore->end_source = g_timeout_add_once(END_AGAIN_MSEC, on_end_due, restore);
    } else
        berth_memory_pipe_stop(restore->pipe); /* libvirt will not be asked */
}
