/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how far a guest has its task and its files, and the one read of a piece that is under way.
 * Invariants: nothing is sent but in a session; a piece that was read for another session is dropped;
 * each piece makes its guest's start later once at most. */
#include <config.h>

#include "nodeagent/task_sender.h"

#include "common/backoff.h"
#include "common/error.h"

/* What a guest may take for a piece of a file: 64 KiB/s. */
#define PIECE_USEC (2 * G_USEC_PER_SEC)

struct BerthTaskSender {
    const BerthTaskSenderFuncs *funcs;
    gpointer user_data;
    BerthGuestFiles *files; /* NULL: not there yet, or no longer needed */
    gboolean is_open;       /* a session */
    gboolean has_task;      /* the guest has it */
    gboolean is_started;    /* its command runs or has ended: nothing is to be sent */
    gboolean run_sent;
    gboolean may_have_begun; /* Run was sent in any session, or it said so */
    guint file;
    guint64 file_offset;
    guint sent_file; /* as far as files were ever sent */
    guint64 sent_offset;
    gint64 wait_usec; /* monotonic: storage keeps the piece waiting since then; 0 = it does not */
    GCancellable *reading; /* NULL: no read of a piece is under way */
    BerthBackoff read_backoff;
    guint read_source;
};

static void send_more(BerthTaskSender *sender);

static gboolean has_room(const BerthTaskSender *sender)
{
    return sender->funcs->has_room(sender->user_data);
}

static void stop_reading(BerthTaskSender *sender)
{
    g_clear_handle_id(&sender->read_source, g_source_remove);
    if (sender->reading != NULL)
        g_cancellable_cancel(sender->reading);
    g_clear_object(&sender->reading);
    sender->wait_usec = 0;
}

/* Storage has answered, with or without the piece: the guest did not make it wait. A piece that was
 * sent before is not waited for again. */
static void end_wait(BerthTaskSender *sender, gboolean has_piece)
{
    gint64 now = g_get_monotonic_time();
    gboolean is_new =
        sender->file > sender->sent_file ||
        (sender->file == sender->sent_file && sender->file_offset >= sender->sent_offset);
    gint64 waited = now - sender->wait_usec;
    sender->wait_usec = has_piece ? 0 : now;
    if (is_new)
        sender->funcs->delayed(waited + (has_piece ? PIECE_USEC : 0), sender->user_data);
}

static void send_piece(BerthTaskSender *sender, GBytes *piece)
{
    gsize length;
    gconstpointer data = g_bytes_get_data(piece, &length);
    Berth__ToGuest__FileData body = BERTH__TO_GUEST__FILE_DATA__INIT;
    body.index = sender->file;
    body.offset = sender->file_offset;
    body.data = (ProtobufCBinaryData){.len = length, .data = (guint8 *)data};
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    message.body_case = BERTH__TO_GUEST__BODY_FILE;
    message.file = &body;
    sender->file_offset += length;
    if (sender->file > sender->sent_file)
        sender->sent_offset = 0;
    sender->sent_file = MAX(sender->sent_file, sender->file);
    if (sender->file == sender->sent_file)
        sender->sent_offset = MAX(sender->sent_offset, sender->file_offset);
    sender->funcs->send(&message, sender->user_data);
}

static void on_read_retry(gpointer data)
{
    BerthTaskSender *sender = data;
    sender->read_source = 0;
    send_more(sender);
}

static gboolean is_passing(const GError *error)
{
    return g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE) ||
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED) ||
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED);
}

static void on_piece_read(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) piece = berth_guest_files_read_finish(result, &error);
    if (g_cancellable_is_cancelled(g_task_get_cancellable(G_TASK(result))))
        return; /* the session or the channel is gone */
    BerthTaskSender *sender = data;
    g_clear_object(&sender->reading);
    if (piece != NULL) {
        berth_backoff_reset(&sender->read_backoff);
        end_wait(sender, TRUE);
        send_piece(sender, piece);
        send_more(sender);
    } else if (is_passing(error)) {
        guint wait = berth_backoff_next_msec(&sender->read_backoff, g_random_double());
        sender->read_source = g_timeout_add_once(wait, on_read_retry, sender);
        end_wait(sender, FALSE);
    } else {
        sender->funcs->failed(error->message, sender->user_data);
    }
}

static void send_task(BerthTaskSender *sender)
{
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    message.body_case = BERTH__TO_GUEST__BODY_TASK;
    message.task = (Berth__GuestTask *)berth_guest_files_task(sender->files);
    sender->funcs->send(&message, sender->user_data);
    sender->has_task = TRUE;
}

static void send_run(BerthTaskSender *sender)
{
    Berth__ToGuest__Run run = BERTH__TO_GUEST__RUN__INIT;
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    message.body_case = BERTH__TO_GUEST__BODY_RUN;
    message.run = &run;
    run.clock_usec = (guint64)g_get_real_time();
    sender->funcs->send(&message, sender->user_data);
    sender->run_sent = sender->may_have_begun = TRUE;
}

/* Sends what comes next of task, files and Run, as far as the link takes it. */
static void send_more(BerthTaskSender *sender)
{
    if (!sender->is_open || sender->is_started || sender->files == NULL || sender->run_sent ||
        sender->reading != NULL || sender->read_source != 0 || !has_room(sender))
        return;
    if (!sender->has_task)
        send_task(sender);
    guint count = berth_guest_files_count(sender->files);
    while (sender->file < count &&
           sender->file_offset >= berth_guest_files_size(sender->files, sender->file)) {
        sender->file++;
        sender->file_offset = 0;
    }
    if (sender->file >= count) {
        send_run(sender);
    } else if (has_room(sender)) {
        if (sender->wait_usec == 0)
            sender->wait_usec = g_get_monotonic_time();
        sender->reading = g_cancellable_new();
        berth_guest_files_read_async(sender->files, sender->file, sender->file_offset,
                                     sender->reading, on_piece_read, sender);
    }
}

/* --- life ----------------------------------------------------------------------------------- */

BerthTaskSender *berth_task_sender_new(const BerthTaskSenderFuncs *funcs, gpointer user_data)
{
    BerthTaskSender *sender = g_new0(BerthTaskSender, 1);
    sender->funcs = funcs;
    sender->user_data = user_data;
    sender->read_backoff = (BerthBackoff){.min_msec = 200, .max_msec = 5000};
    return sender;
}

void berth_task_sender_free(BerthTaskSender *sender)
{
    if (sender == NULL)
        return;
    stop_reading(sender);
    berth_guest_files_free(sender->files);
    g_free(sender);
}

void berth_task_sender_set_files(BerthTaskSender *sender, BerthGuestFiles *files)
{
    berth_guest_files_free(sender->files);
    sender->files = files;
    send_more(sender);
}

void berth_task_sender_begin(BerthTaskSender *sender, const Berth__FromGuest__State *state)
{
    stop_reading(sender);
    sender->is_open = TRUE;
    sender->has_task = state->has_task;
    sender->is_started = state->running || state->ended;
    sender->may_have_begun |= sender->is_started;
    sender->file = state->files_complete;
    sender->file_offset = state->file_bytes;
    sender->run_sent = FALSE;
    send_more(sender);
}

void berth_task_sender_pause(BerthTaskSender *sender)
{
    sender->is_open = FALSE;
    stop_reading(sender);
}

void berth_task_sender_finish(BerthTaskSender *sender)
{
    sender->is_started = sender->may_have_begun = TRUE;
    stop_reading(sender);
    g_clear_pointer(&sender->files, berth_guest_files_free);
}

gboolean berth_task_sender_may_have_begun(const BerthTaskSender *sender)
{
    return sender->may_have_begun;
}

void berth_task_sender_go_on(BerthTaskSender *sender)
{
    send_more(sender);
}
