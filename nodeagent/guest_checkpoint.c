/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a checkpoint of a running guest is taken: its memory goes from libvirt through a FIFO into storage, and
 * while it stands still at the end of that its disk gets a snapshot; then it goes on, and the record is written.
 *
 * What storage has to do with it is checkpoint_worker.c's: its news say when it is made, and when the disk's snapshot is
 * taken. What is asked of libvirt is guest_save.c's.
 *
 * Invariants: it lives until the worker and libvirt have answered whatever they were asked; a record is written only of
 * what is durable; who asked is told that there is no checkpoint only when the
 * guest is as it was, or is told to be; what there is of a checkpoint that fails is removed, or torn. */
#include <config.h>

#include "nodeagent/checkpoint_internal.h"

#include "common/error.h"
#include "common/message.h"
#include "nodeagent/checkpoint_record.h"

/* For so long a guest whose command is to get a signal first, and that does not listen, is waited for. */
#define LISTEN_MSEC 30000u

gboolean berth_guest_vcpus_are_taken(const BerthGuest *guest)
{
    return berth_guest_is_leaving(guest) || guest->may_be_moving ||
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

/* Whoever asked for it a second time, of an agent that was started since, has the instant to go by. */
static guint64 stood_still_usec(const Checkpoint *checkpoint, guint64 taken_usec)
{
    guint64 now_usec = (guint64)g_get_real_time();
    if (checkpoint->stopped_usec != 0)
        return (guint64)(g_get_monotonic_time() - checkpoint->stopped_usec);
    return !checkpoint->frozen && taken_usec < now_usec ? now_usec - taken_usec : 0;
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
    if (error == NULL) {
        Berth__CheckpointGuestReply answer = *reply;
        answer.still_usec = checkpoint->stops ? stood_still_usec(checkpoint, reply->taken_usec) : 0;
        give_answers(checkpoint, &answer, NULL);
    } else {
        give_answers(checkpoint, NULL, error);
    }
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
void berth_checkpoint_fail(Checkpoint *checkpoint, GError *error, gboolean is_cause)
{
    if (checkpoint->error == NULL || is_cause) {
        g_clear_error(&checkpoint->error);
        checkpoint->error = error;
    } else {
        g_error_free(error);
    }
}

/* Of libvirt's end. */
void berth_checkpoint_tell_worker(Checkpoint *checkpoint, gboolean ok)
{
    if (ok)
        berth_memory_pipe_end(checkpoint->pipe);
    else
        berth_memory_pipe_stop(checkpoint->pipe);
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
    berth_checkpoint_fail(checkpoint, error, TRUE);
    berth_checkpoint_let_go(checkpoint);
}

static Berth__CheckpointRecord *make_record(const Checkpoint *checkpoint)
{
    Berth__Usage usage = checkpoint->usage;
    Berth__CheckpointGuestReply taken = BERTH__CHECKPOINT_GUEST_REPLY__INIT;
    taken.pause_usec = checkpoint->pause_usec;
    taken.taken_usec = checkpoint->taken_usec;
    taken.usage = &usage;
    taken.unsignalled = checkpoint->is_unsignalled;
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
void berth_checkpoint_proceed(Checkpoint *checkpoint)
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

/* --- its command gets ready --------------------------------------------------------------------- */

static void on_waited(gpointer data)
{
    Checkpoint *checkpoint = data;
    checkpoint->source = 0;
    checkpoint->is_waiting = FALSE;
    checkpoint->is_unsignalled = checkpoint->signal != 0;
    berth_checkpoint_begin_save(checkpoint);
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
    if (!berth_checkpoint_can_go_on(checkpoint)) {
        berth_checkpoint_give_up(checkpoint, berth_checkpoint_not_wanted(checkpoint));
        return;
    }
    checkpoint->is_preparing = TRUE;
    if (checkpoint->signal == 0 || checkpoint->frozen || checkpoint->guest->is_frozen) {
        berth_checkpoint_begin_save(checkpoint);
        return;
    }
    checkpoint->is_waiting = TRUE;
    checkpoint->source = g_timeout_add_once(LISTEN_MSEC, on_waited, checkpoint);
    signal_command(checkpoint);
}

/* --- the worker's news ------------------------------------------------------------------------ */

static void on_snapped(const guint64 log_bytes[BERTH_N_STREAMS], gpointer data)
{
    Checkpoint *checkpoint = data;
    for (guint i = 0; i < BERTH_N_STREAMS; i++)
        checkpoint->log_bytes[i] = log_bytes[i];
    berth_checkpoint_let_go(checkpoint);
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
        berth_checkpoint_fail(checkpoint, error, is_cause);
    } else {
        checkpoint->writer = g_steal_pointer(&filled->writer);
        checkpoint->record = g_steal_pointer(&filled->record);
    }
    if (checkpoint->writer != NULL)
        berth_checkpoint_proceed(checkpoint);
    else if (!checkpoint->is_preparing && !checkpoint->is_saving)
        berth_checkpoint_let_go(checkpoint);
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
    if (guest->may_be_moving)
        return g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                           "whether %s is being moved is not known yet", guest->name);
    if (berth_guest_is_leaving(guest) || guest->is_freezing || guest->checkpoint != NULL)
        return g_error_new(BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                           "%s is being moved, frozen, or checkpointed in another way",
                           guest->name);
    return NULL;
}

static void begin(Checkpoint *checkpoint)
{
    static const BerthCheckpointNews news = {on_made, on_snapped, berth_checkpoint_stalled};
    BerthGuest *guest = checkpoint->guest;
    const BerthCheckpointFill what = {
        .checkpoint_id = checkpoint->checkpoint_id,
        .disk_id = checkpoint->disk_id,
        .log_id = guest->log_id,
        .guest = berth_seen_clients_are_settled(&guest->clients)
                     ? (const char *const *)guest->clients.known
                     : NULL, /* it may be another who was seen */
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
        berth_checkpoint_abort_save(checkpoint);
    } else
        berth_checkpoint_tell_worker(checkpoint, FALSE); /* libvirt will not be asked */
}
