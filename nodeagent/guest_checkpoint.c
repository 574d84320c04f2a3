/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a checkpoint of a running guest is taken: its memory goes from libvirt through a FIFO into storage, and
 * while it stands still at the end of that its disk gets a snapshot; then it goes on, and the record is written.
 *
 * What storage has to do with it is checkpoint_worker.c's: its news say when it is made, and when the disk's snapshot is
 * taken. A guest that is emulated (TCG) stands still from the start: QEMU 7.2 loses what such a guest writes while its
 * memory is copied.
 *
 * Invariants: it lives until the worker and libvirt have answered whatever they were asked; a record is written only of
 * what is durable; who asked is told that there is no checkpoint only when the
 * guest is as it was, or is told to be; what there is of a checkpoint that fails is removed, or torn. */
#include <config.h>

#include "nodeagent/guest_private.h"

#include "common/error.h"
#include "common/message.h"
#include "nodeagent/checkpoint_record.h"
#include "nodeagent/checkpoint_worker.h"

/* How often it is looked whether a guest that runs meanwhile would write more than there is space for. */
#define LOOK_MSEC 500u
/* A measurement does not keep it. */
#define STATS_MSEC 1000u
/* For so long a guest whose command is to get a signal first, and that does not listen, is waited for. */
#define LISTEN_MSEC 30000u
/* Its vCPUs are to go on, and libvirt does not let them. */
#define RESUME_AGAIN_MSEC 1000u
/* Likewise, and it does not let go of it. */
#define ABORT_AGAIN_MSEC 1000u

typedef struct {
    BerthGuestCheckpointFunc func;
    gpointer user_data;
} Answer;

struct BerthGuestCheckpoint {
    BerthGuest *guest;
    char *checkpoint_id;
    char *disk_id;
    guint64 space_bytes;
    gboolean stops;   /* it is to stand still after it */
    gboolean frozen;  /* it stood still before, and is to */
    gboolean hurries; /* its node needs what it has */
    guint32 signal;   /* to its command first; 0 = none, or it has got it */
    guint32 signal_sec;
    GArray *answers; /* Answer */
    BerthMemoryPipe *pipe;
    gboolean is_waiting; /* for its command, which gets ready */
    gboolean
        is_preparing; /* that, or libvirt measures it, or stops it, before it is asked to save it */
    gboolean is_saving;   /* libvirt was asked to */
    gboolean is_given_up; /* somebody does not want it any more */
    gboolean is_holding;  /* libvirt was asked to stop it for the rest, and has not answered */
    gboolean is_to_go;    /* ... upon which it is let go */
    gboolean is_letting_go;
    gboolean is_let_go;  /* its vCPUs are as they are to be afterwards, if it comes about */
    gboolean is_filled;  /* the worker has come to its end */
    gboolean has_run;    /* though it stood still before, and is to: so that it can be saved */
    guint serial;        /* of the guest's checkpoints */
    guint source;        /* the end of its waiting, or the next try to let it go */
    guint look_source;   /* the next look at how far libvirt is */
    guint abort_source;  /* libvirt is told once more to let go of it */
    gint64 stopped_usec; /* monotonic: since when it stands still; 0 = it does not */
    guint64 taken_usec;  /* the instant */
    guint64 pause_usec;  /* for which it stood still */
    char *domain_xml;    /* as libvirt has saved it */
    Berth__Usage usage;  /* up to it */
    guint64 log_bytes[BERTH_N_STREAMS];
    BerthCheckpointWriter *writer; /* filled, and to be committed */
    GBytes *record;                /* instead: it was committed before */
    GError *error;                 /* what went wrong */
};
typedef struct BerthGuestCheckpoint Checkpoint;

static void let_go(Checkpoint *checkpoint);
static void proceed(Checkpoint *checkpoint);

gboolean berth_guest_vcpus_are_taken(const BerthGuest *guest)
{
    return berth_guest_is_leaving(guest) ||
           (guest->checkpoint != NULL &&
            (!guest->checkpoint->is_let_go || guest->checkpoint->stops));
}

/* --- its end -------------------------------------------------------------------------------- */

static gpointer do_nothing(BerthStorage *storage, gconstpointer writer, GError **error)
{
    return NULL; /* the work is done when the input is freed */
}

static void free_writer(gpointer writer)
{
    berth_checkpoint_writer_free(writer);
}

/* On a worker, as it removes what is not committed; but at the agent's end, when there is none any more. */
static void discard(BerthGuest *guest, BerthCheckpointWriter *writer)
{
    if (guest->is_closed)
        berth_checkpoint_writer_free(writer);
    else if (writer != NULL)
        berth_storage_lane_run(guest->context->lane, BERTH_LANE_REMOVAL, "give up a checkpoint",
                               do_nothing, writer, free_writer, NULL, NULL, NULL, NULL);
}

static void checkpoint_free(Checkpoint *checkpoint)
{
    g_clear_handle_id(&checkpoint->source, g_source_remove);
    g_clear_handle_id(&checkpoint->look_source, g_source_remove);
    g_clear_handle_id(&checkpoint->abort_source, g_source_remove);
    g_clear_pointer(&checkpoint->pipe, berth_memory_pipe_unref);
    discard(checkpoint->guest, checkpoint->writer);
    g_clear_pointer(&checkpoint->record, g_bytes_unref);
    g_clear_error(&checkpoint->error);
    g_array_unref(checkpoint->answers);
    g_free(checkpoint->checkpoint_id);
    g_free(checkpoint->disk_id);
    g_free(checkpoint->domain_xml);
    g_free(checkpoint);
}

static void give_answers(Checkpoint *checkpoint, const Berth__CheckpointGuestReply *reply,
                         const GError *error)
{
    for (guint i = 0; i < checkpoint->answers->len; i++) {
        const Answer *answer = &g_array_index(checkpoint->answers, Answer, i);
        answer->func(reply, error, answer->user_data);
    }
    g_array_set_size(checkpoint->answers, 0);
}

/* REPLY or ERROR. */
static void finish(Checkpoint *checkpoint, const Berth__CheckpointGuestReply *reply,
                   const GError *error)
{
    G_GNUC_UNUSED g_autoptr(BerthGuestRef) keep = berth_guest_ref(checkpoint->guest);
    BerthGuest *guest = checkpoint->guest;
    guest->checkpoint = NULL;
    if (error == NULL && checkpoint->stops)
        guest->freeze_wanted = TRUE;
    if (error == NULL && checkpoint->stops)
        g_message("%s: checkpoint %s is taken: it stands still from now on", guest->name,
                  checkpoint->checkpoint_id);
    else if (error == NULL)
        g_message("%s: checkpoint %s is taken: it stood still for %" G_GUINT64_FORMAT " ms",
                  guest->name, checkpoint->checkpoint_id, reply->pause_usec / 1000);
    else
        g_message("%s: no checkpoint %s: %s", guest->name, checkpoint->checkpoint_id,
                  error->message);
    give_answers(checkpoint, reply, error);
    checkpoint_free(checkpoint);
    if (guest->is_closed)
        return;
    berth_guest_hurry_no_more(guest);
    berth_guest_resize_go_on(guest);
    berth_guest_freeze_go_on(guest);
    if (guest->phase == BERTH_PHASE_CLEANING)
        berth_guest_enter_cleaning(guest); /* which has waited for this */
}

/* ERROR (transfer full): the first counts, but that of storage, for which libvirt fails, more. */
static void fail(Checkpoint *checkpoint, GError *error, gboolean is_cause)
{
    if (checkpoint->error == NULL || is_cause) {
        g_clear_error(&checkpoint->error);
        checkpoint->error = error;
    } else {
        g_error_free(error);
    }
}

/* Of libvirt's end. */
static void tell_worker(Checkpoint *checkpoint, gboolean ok)
{
    if (ok)
        berth_memory_pipe_end(checkpoint->pipe);
    else
        berth_memory_pipe_stop(checkpoint->pipe);
}

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
    let_go(checkpoint);
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
    proceed(checkpoint);
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
        guest->is_frozen = guest->may_be_saved = FALSE;
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
static void let_go(Checkpoint *checkpoint)
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
        proceed(checkpoint);
        return;
    }
    checkpoint->is_let_go = FALSE;
    checkpoint->is_letting_go = TRUE;
    berth_hypervisor_resume_async(guest->context->hypervisor, guest->name, on_resumed, checkpoint);
    berth_guest_ref(guest);
}

/* --- committing ----------------------------------------------------------------------------- */

static void on_committed(GObject *source, GAsyncResult *result, gpointer data)
{
    Checkpoint *checkpoint = data;
    g_autoptr(BerthGuestRef) guest = checkpoint->guest;
    GError *error = NULL;
    g_autoptr(ProtobufCMessage) reply = berth_checkpoint_commit_finish(result, &error);
    if (reply != NULL) {
        finish(checkpoint, (const Berth__CheckpointGuestReply *)(const void *)reply, NULL);
        return;
    }
    fail(checkpoint, error, TRUE);
    let_go(checkpoint);
}

static Berth__CheckpointRecord *make_record(const Checkpoint *checkpoint)
{
    Berth__Usage usage = checkpoint->usage;
    Berth__CheckpointGuestReply taken = BERTH__CHECKPOINT_GUEST_REPLY__INIT;
    taken.pause_usec = checkpoint->pause_usec;
    taken.taken_usec = checkpoint->taken_usec;
    taken.usage = &usage;
    taken.stdout_bytes = checkpoint->log_bytes[BERTH_STDOUT];
    taken.stderr_bytes = checkpoint->log_bytes[BERTH_STDERR];
    return berth_checkpoint_record_make(checkpoint->guest, checkpoint->disk_id,
                                        checkpoint->domain_xml, &taken);
}

static void begin_commit(Checkpoint *checkpoint)
{
    berth_checkpoint_commit_async(checkpoint->guest->context->lane,
                                  g_steal_pointer(&checkpoint->writer), checkpoint->checkpoint_id,
                                  make_record(checkpoint), on_committed, checkpoint);
    berth_guest_ref(checkpoint->guest);
}

/* It was made before: that the answer was lost is why it is asked for again. */
static void answer_committed(Checkpoint *checkpoint)
{
    g_autoptr(GError) error = NULL;
    Berth__CheckpointRecord *record =
        berth_checkpoint_record_unpack(checkpoint->record, checkpoint->checkpoint_id, &error);
    finish(checkpoint, record == NULL ? NULL : record->taken, error);
    berth_checkpoint_record_free(record);
}

/* When the worker has come to its end, libvirt to its own, and the guest is let go. */
static void proceed(Checkpoint *checkpoint)
{
    if (!checkpoint->is_filled || checkpoint->is_preparing || checkpoint->is_saving ||
        checkpoint->is_holding || !checkpoint->is_let_go)
        return;
    if (checkpoint->guest->is_closed)
        checkpoint_free(checkpoint);
    else if (checkpoint->error != NULL)
        finish(checkpoint, NULL, checkpoint->error);
    else if (checkpoint->record != NULL)
        answer_committed(checkpoint);
    else
        begin_commit(checkpoint);
}

/* --- libvirt's part ------------------------------------------------------------------------- */

static gboolean can_go_on(const Checkpoint *checkpoint)
{
    const BerthGuest *guest = checkpoint->guest;
    return !guest->is_closed && !checkpoint->is_given_up && berth_guest_has_domain(guest) &&
           !checkpoint->is_filled;
}

/* It has not come to a snapshot, and will not. ERROR (transfer full). */
static void give_up(Checkpoint *checkpoint, GError *error)
{
    checkpoint->is_preparing = FALSE;
    fail(checkpoint, error, FALSE);
    tell_worker(checkpoint, FALSE);
    let_go(checkpoint);
}

static GError *not_wanted(const Checkpoint *checkpoint)
{
    return g_error_new(BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "%s has ended, or is being ended",
                       checkpoint->guest->name);
}

/* While libvirt is away nobody knows whether the guest runs on. */
static GError *why_not_saved(const Checkpoint *checkpoint, const GError *error)
{
    if (checkpoint->is_given_up || !berth_guest_has_domain(checkpoint->guest))
        return not_wanted(checkpoint);
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
        give_up(checkpoint, why_not_saved(checkpoint, error));
        return;
    }
    guest->is_frozen = guest->may_be_saved = TRUE;
    tell_worker(checkpoint, can_go_on(checkpoint));
    if (checkpoint->is_filled)
        let_go(checkpoint);
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
        let_go(checkpoint);
}

/* A look at how far libvirt is with one checkpoint; its answer may come when there is another. */
typedef struct {
    BerthGuest *guest; /* a reference */
    guint serial;
} Look;

static void on_looked(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autofree Look *look = data;
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
    Look *look = g_new(Look, 1);
    *look = (Look){berth_guest_ref(checkpoint->guest), checkpoint->serial};
    berth_hypervisor_migration_async(checkpoint->guest->context->hypervisor,
                                     checkpoint->guest->name, on_looked, look);
}

static void look_later(Checkpoint *checkpoint)
{
    checkpoint->look_source = g_timeout_add_once(LOOK_MSEC, on_look_due, checkpoint);
}

/* --- libvirt is to let go of it ----------------------------------------------------------------- */

static void abort_save(Checkpoint *checkpoint);

static void on_abort_due(gpointer data)
{
    Checkpoint *checkpoint = data;
    checkpoint->abort_source = 0;
    abort_save(checkpoint);
}

/* Until it has answered: it may not have begun, or not listen. The end of the FIFO is seen by a QEMU alone that writes. */
static void abort_save(Checkpoint *checkpoint)
{
    if (checkpoint->guest->is_closed || checkpoint->abort_source != 0)
        return;
    berth_hypervisor_migration_steer(checkpoint->guest->context->hypervisor,
                                     checkpoint->guest->name, 0);
    checkpoint->abort_source = g_timeout_add_once(ABORT_AGAIN_MSEC, on_abort_due, checkpoint);
}

/* From the worker. */
static void on_stalled(gpointer data)
{
    Checkpoint *checkpoint = data;
    if (!checkpoint->is_saving)
        return;
    g_warning("%s is given up by its checkpoint: libvirt does nothing", checkpoint->guest->name);
    fail(checkpoint, berth_memory_pipe_why_stalled(), FALSE);
    abort_save(checkpoint);
}

static void save(BerthGuest *guest)
{
    Checkpoint *checkpoint = guest->checkpoint;
    if (!can_go_on(checkpoint)) {
        give_up(checkpoint, not_wanted(checkpoint));
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
        give_up(checkpoint, why_not_saved(checkpoint, error));
}

static void on_run(GObject *source, GAsyncResult *result, gpointer data)
{
    Checkpoint *checkpoint = data;
    g_autoptr(BerthGuestRef) guest = checkpoint->guest;
    g_autoptr(GError) error = NULL;
    gboolean ok = berth_hypervisor_resume_finish(result, &error);
    checkpoint->has_run = TRUE; /* it may have taken effect all the same */
    if (!ok) {
        give_up(checkpoint, why_not_saved(checkpoint, error));
        return;
    }
    guest->may_be_saved = FALSE;
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
    if (guest->is_frozen && guest->may_be_saved && can_go_on(checkpoint)) {
        run_a_moment(checkpoint);
        return;
    }
    if (guest->context->use_kvm || checkpoint->frozen || !can_go_on(checkpoint)) {
        hurry(checkpoint);
        return;
    }
    berth_hypervisor_suspend_async(guest->context->hypervisor, guest->name, on_suspended,
                                   checkpoint);
    berth_guest_ref(guest);
}

static void measure(Checkpoint *checkpoint)
{
    berth_hypervisor_domain_stats_async(checkpoint->guest->context->hypervisor,
                                        checkpoint->guest->name, STATS_MSEC, on_measured,
                                        checkpoint);
    berth_guest_ref(checkpoint->guest);
}

/* --- its command gets ready --------------------------------------------------------------------- */

static void on_waited(gpointer data)
{
    Checkpoint *checkpoint = data;
    checkpoint->source = 0;
    checkpoint->is_waiting = FALSE;
    measure(checkpoint);
}

static void signal_command(Checkpoint *checkpoint)
{
    BerthGuestChannel *channel = checkpoint->guest->channel;
    if (channel == NULL || !berth_guest_channel_signal_command(channel, checkpoint->signal))
        return; /* when it listens */
    checkpoint->signal = 0;
    g_clear_handle_id(&checkpoint->source, g_source_remove);
    checkpoint->source = g_timeout_add_once(checkpoint->signal_sec * 1000u, on_waited, checkpoint);
}

void berth_guest_checkpoint_answered(BerthGuest *guest)
{
    if (guest->checkpoint != NULL && guest->checkpoint->is_waiting &&
        guest->checkpoint->signal != 0)
        signal_command(guest->checkpoint);
}

/* From the worker: what libvirt saves is taken. */
static void on_made(gpointer data)
{
    Checkpoint *checkpoint = data;
    if (!can_go_on(checkpoint)) {
        give_up(checkpoint, not_wanted(checkpoint));
        return;
    }
    checkpoint->is_preparing = TRUE;
    if (checkpoint->signal == 0 || checkpoint->frozen || checkpoint->guest->is_frozen) {
        measure(checkpoint);
        return;
    }
    checkpoint->is_waiting = TRUE;
    checkpoint->source = g_timeout_add_once(LISTEN_MSEC, on_waited, checkpoint);
    signal_command(checkpoint);
}

void berth_guest_domain_suspended(BerthGuest *guest)
{
    Checkpoint *checkpoint = guest->checkpoint;
    if (checkpoint == NULL || checkpoint->stopped_usec != 0 || checkpoint->frozen)
        return;
    checkpoint->stopped_usec = g_get_monotonic_time();
    checkpoint->taken_usec = (guint64)g_get_real_time();
}

/* --- the worker's news ------------------------------------------------------------------------ */

static void on_snapped(const guint64 log_bytes[BERTH_N_STREAMS], gpointer data)
{
    Checkpoint *checkpoint = data;
    for (guint i = 0; i < BERTH_N_STREAMS; i++)
        checkpoint->log_bytes[i] = log_bytes[i];
    let_go(checkpoint);
}

static void on_filled(GObject *source, GAsyncResult *result, gpointer data)
{
    Checkpoint *checkpoint = data;
    g_autoptr(BerthGuestRef) guest = checkpoint->guest;
    GError *error = NULL;
    g_autoptr(BerthCheckpointFilled) filled = berth_checkpoint_fill_finish(result, &error);
    checkpoint->is_filled = TRUE;
    if (filled == NULL) {
        gboolean is_cause = !g_error_matches(error, BERTH_ERROR, BERTH_ERROR_CANCELLED);
        fail(checkpoint, error, is_cause);
    } else {
        checkpoint->writer = g_steal_pointer(&filled->writer);
        checkpoint->record = g_steal_pointer(&filled->record);
    }
    if (checkpoint->writer != NULL)
        proceed(checkpoint);
    else if (!checkpoint->is_preparing && !checkpoint->is_saving)
        let_go(checkpoint);
}

/* --- what is asked -------------------------------------------------------------------------- */

static GError *why_not_now(const BerthGuest *guest)
{
    if (!berth_guest_has_domain(guest) || guest->phase == BERTH_PHASE_ENDED ||
        guest->stop_signal != 0)
        return g_error_new(BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "%s has ended, or is being ended",
                           guest->name);
    if (guest->phase == BERTH_PHASE_BOOTING && !guest->is_adopted)
        return g_error_new(BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                           "the command of %s has not begun", guest->name);
    if (guest->stands_restored)
        return g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "%s has not gone on yet",
                           guest->name);
    if (berth_guest_is_leaving(guest) || guest->is_freezing || guest->checkpoint != NULL)
        return g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                           "%s is being moved, frozen, or checkpointed in another way",
                           guest->name);
    return NULL;
}

static void begin(Checkpoint *checkpoint)
{
    static const BerthCheckpointNews news = {on_made, on_snapped, on_stalled};
    BerthGuest *guest = checkpoint->guest;
    const BerthCheckpointFill what = {
        .checkpoint_id = checkpoint->checkpoint_id,
        .disk_id = checkpoint->disk_id,
        .log_id = guest->log_id,
        .space_bytes = checkpoint->space_bytes,
        .has_run =
            checkpoint->stops && !guest->is_frozen, /* what it has done since is to be in it */
    };
    guest->checkpoint = checkpoint;
    checkpoint->serial = ++guest->checkpoint_serial;
    berth_checkpoint_fill_async(guest->context->lane, checkpoint->pipe, &what, &news, on_filled,
                                checkpoint);
    berth_guest_ref(guest);
}

void berth_guest_checkpoint(BerthGuest *guest, const Berth__CheckpointGuestRequest *request,
                            BerthGuestCheckpointFunc func, gpointer user_data)
{
    Answer answer = {func, user_data};
    if (guest->checkpoint != NULL &&
        g_str_equal(guest->checkpoint->checkpoint_id, request->checkpoint_id)) {
        g_array_append_val(guest->checkpoint->answers, answer);
        return;
    }
    g_autoptr(GError) error = why_not_now(guest);
    BerthMemoryPipe *pipe =
        error == NULL ? berth_memory_pipe_new(guest->context->config->run_dir, &error) : NULL;
    if (pipe == NULL) {
        func(NULL, error, user_data);
        return;
    }
    Checkpoint *checkpoint = g_new0(Checkpoint, 1);
    checkpoint->guest = guest;
    checkpoint->checkpoint_id = g_strdup(request->checkpoint_id);
    checkpoint->disk_id = g_strdup(request->disk_id);
    checkpoint->space_bytes = request->space_bytes;
    checkpoint->stops = request->stop;
    /* One that its agent was killed under while it ran for a moment runs. */
    checkpoint->frozen = request->frozen && guest->is_frozen;
    guest->freeze_wanted = request->frozen;
    checkpoint->hurries = request->hurries;
    checkpoint->signal = request->signal;
    checkpoint->signal_sec = MIN(request->signal_sec, G_MAXUINT / 1000u);
    checkpoint->pipe = pipe;
    checkpoint->answers = g_array_new(FALSE, FALSE, sizeof(Answer));
    berth__usage__init(&checkpoint->usage);
    g_array_append_val(checkpoint->answers, answer);
    begin(checkpoint);
}

void berth_guest_checkpoint_not(BerthGuest *guest)
{
    Checkpoint *checkpoint = guest->checkpoint;
    if (checkpoint == NULL)
        return;
    checkpoint->is_given_up = TRUE;
    if (checkpoint->is_waiting) {
        g_clear_handle_id(&checkpoint->source, g_source_remove);
        checkpoint->is_waiting = checkpoint->is_preparing = FALSE;
    }
    if (guest->is_closed) {
        g_autoptr(GError) error =
            g_error_new_literal(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "the agent of the node ends");
        give_answers(checkpoint, NULL, error);
    }
    if (checkpoint->is_saving) {
        berth_memory_pipe_give_up(checkpoint->pipe);
        abort_save(checkpoint);
    } else
        tell_worker(checkpoint, FALSE); /* libvirt will not be asked */
}
