/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the conversation with one guest, but for the sending of its task (task_sender.c), for what it is told when there is
 * room (guest_outbox.c), and for the commands beside it (guest_execs.c). Connections
 * come and go below it, sessions with them; what lasts is in the log writer (output) and in its owner
 * (phase).
 *
 * Invariants: nothing of another session changes anything; output is taken only where it continues
 * what was taken; the end is passed on only when every byte before it is durable. */
#include <config.h>

#include "nodeagent/guest_channel.h"

#include <errno.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/backoff.h"
#include "common/channel.h"
#include "common/error.h"
#include "nodeagent/allowance.h"
#include "nodeagent/guest_link.h"
#include "nodeagent/guest_outbox.h"
#include "nodeagent/task_sender.h"

/* A Hello without an answer is said again after this long, then after twice as long ... */
#define HELLO_MSEC     1000u
#define HELLO_MSEC_MAX 10000u
/* ... and after so many on a new connection. QEMU (7.2) passes on nothing of what a guest says from then on if it
 * learns by writing that the one before is closed, until this one is closed, too: virtio-serial's port stays throttled. */
#define HELLOS_MAX 3u
/* Hello carries the time. A guest that still booted reads it late: said again, it is right. */
#define HELLO_LATE_USEC (G_USEC_PER_SEC / 5)
/* Task, files and acknowledgements are sent while less than this waits in the link: a guest that
 * does not read makes nothing grow, whatever it says meanwhile. */
#define SEND_WINDOW_BYTES (256u * 1024u)
/* What a guest may send beside output: this much at once, and so much per second. Each message, also of output,
 * costs some work beside its bytes. */
#define NOISE_BURST_BYTES   (8u << 20)
#define NOISE_BYTES_PER_SEC (256u << 10)
#define NOISE_PER_MESSAGE   256u
/* Of output it may send at once what it may send in so long. */
#define OUTPUT_BURST_SEC 2u
/* One that has sent more than it may is not read from for so long at least, so that it costs nothing to hold it up ... */
#define OUTPUT_REST_MSEC_MIN 50u
/* ... and at most, so that what else it has to say comes in time. */
#define OUTPUT_REST_MSEC_MAX 500u
/* A session that held for so long was a good one: the next connection is made at once. */
#define GOOD_SESSION_USEC (10 * G_USEC_PER_SEC)

struct BerthGuestChannel {
    char *socket_path;
    BerthLogWriter *writer;
    guint64 acked_max[BERTH_N_STREAMS];
    gboolean may_be_cut; /* a frame of ours, or of an agent before us, may lie there unfinished */
    guint stall_msec;
    guint64 memory_max_mib;
    const BerthGuestChannelFuncs *funcs;
    gpointer user_data;
    BerthGuestOutbox *outbox;
    BerthTaskSender *sender;
    BerthGuestExecs *execs;
    guint signal; /* 0 = none */
    guint violations;
    gboolean leaves;

    /* The connection. */
    BerthGuestLink *link;
    BerthBackoff connect_backoff;
    guint connect_source;

    /* The session. */
    guint64 session;
    gboolean is_open; /* State has come */
    gint64 open_usec;
    guint hello_source;
    guint hello_msec;
    guint hellos;            /* without an answer, on this connection */
    gint64 hello_usec;       /* monotonic: when it was said */
    gboolean was_said_again; /* because of its time, on this connection */
    gboolean was_open;       /* in any session: the writer's streams have their start */
    guint64 expected[BERTH_N_STREAMS];
    BerthAllowance noise;
    BerthAllowance output;
    gboolean is_output_limited;
    guint rest_source; /* it has sent more than it may */
};

static void connect_later(BerthGuestChannel *channel);

/* --- sending -------------------------------------------------------------------------------- */

static void send_message(BerthGuestChannel *channel, Berth__ToGuest *message)
{
    message->session = channel->session;
    berth_guest_link_send(channel->link, message);
}

static gboolean has_room(const BerthGuestChannel *channel)
{
    return berth_guest_link_queued(channel->link) < SEND_WINDOW_BYTES;
}

static void send_signal(BerthGuestChannel *channel, guint signal, gboolean command_only)
{
    Berth__ToGuest__Signal body = BERTH__TO_GUEST__SIGNAL__INIT;
    body.signal = signal;
    body.command_only = command_only;
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    message.body_case = BERTH__TO_GUEST__BODY_SIGNAL;
    message.signal = &body;
    if (signal != 0)
        send_message(channel, &message);
}

/* --- sessions ------------------------------------------------------------------------------- */

static void end_session(BerthGuestChannel *channel)
{
    if (channel->is_open && g_get_monotonic_time() - channel->open_usec > GOOD_SESSION_USEC)
        berth_backoff_reset(&channel->connect_backoff);
    channel->is_open = FALSE;
    berth_guest_outbox_pause(channel->outbox);
    berth_task_sender_pause(channel->sender);
    berth_guest_execs_pause(channel->execs);
    g_clear_handle_id(&channel->hello_source, g_source_remove);
}

/* Of a command. (transfer full) */
static GError *reason_of(const BerthGuestChannel *channel, const char *why)
{
    return g_error_new_literal(
        BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
        channel->leaves ? "the job was moved to another node, and the command has ended with that; "
                          "it can be run again there"
                        : why);
}

static void drop_link(BerthGuestChannel *channel, const char *why)
{
    g_autoptr(GError) reason = reason_of(channel, why);
    end_session(channel);
    berth_guest_execs_lose(channel->execs, reason);
    g_clear_pointer(&channel->link, berth_guest_link_free);
    channel->may_be_cut = TRUE;
}

static void violate(BerthGuestChannel *channel, const char *what)
{
    g_debug("%s: the guest broke the protocol: %s", channel->socket_path, what);
    channel->violations++;
    drop_link(channel, "the guest broke the protocol of its channel");
    connect_later(channel);
}

static void say_hello(BerthGuestChannel *channel);

static void on_hello_due(gpointer data)
{
    BerthGuestChannel *channel = data;
    channel->hello_source = 0;
    channel->hello_msec = MIN(channel->hello_msec * 2, HELLO_MSEC_MAX);
    if (channel->hellos >= HELLOS_MAX) {
        drop_link(channel, "the guest did not answer");
        connect_later(channel);
        return;
    }
    /* Whatever a frame that was cut off still waits for: it gets it, and fails its check. */
    if (channel->may_be_cut && berth_guest_link_queued(channel->link) == 0)
        berth_guest_link_send_padding(channel->link,
                                      BERTH_CHANNEL_PAYLOAD_MAX + BERTH_CHANNEL_HEADER_BYTES);
    say_hello(channel);
}

static void say_hello(BerthGuestChannel *channel)
{
    Berth__ToGuest__Hello hello = BERTH__TO_GUEST__HELLO__INIT;
    channel->session = (guint64)g_random_int() << 32 | g_random_int();
    hello.session = channel->session;
    hello.clock_usec = (guint64)g_get_real_time();
    hello.usage_interval_msec = berth_guest_outbox_hello(channel->outbox);
    hello.stall_msec = channel->stall_msec;
    hello.memory_max_mib = channel->memory_max_mib;
    g_autoptr(GArray) execs = berth_guest_execs_ids(channel->execs);
    hello.execs = (uint64_t *)(void *)execs->data;
    hello.n_execs = execs->len;
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    message.body_case = BERTH__TO_GUEST__BODY_HELLO;
    message.hello = &hello;
    send_message(channel, &message);
    channel->hellos++;
    channel->hello_usec = g_get_monotonic_time();
    channel->hello_source = g_timeout_add_once(channel->hello_msec, on_hello_due, channel);
}

/* FALSE: what the guest says cannot be. */
static gboolean check_acked(BerthGuestChannel *channel, const guint64 acked[BERTH_N_STREAMS])
{
    for (guint i = 0; i < BERTH_N_STREAMS; i++) {
        guint64 max = channel->was_open ? berth_log_writer_durable(channel->writer, i)
                                        : channel->acked_max[i];
        if (acked[i] > max)
            return FALSE;
    }
    return TRUE;
}

/* Says the signal in a new session, unless the job was sent it in one before: a command that cleans up
 * when it is told to end must not be told twice. (SIGKILL does no harm.) */
static void renew_signal(BerthGuestChannel *channel, guint sent)
{
    if (channel->signal != sent || sent == SIGKILL)
        send_signal(channel, channel->signal, FALSE);
}

/* The first State of a session. */
static void open_session(BerthGuestChannel *channel, const Berth__FromGuest__State *state,
                         const guint64 acked[BERTH_N_STREAMS])
{
    g_clear_handle_id(&channel->hello_source, g_source_remove);
    channel->is_open = TRUE;
    channel->hello_msec = HELLO_MSEC;
    channel->hellos = 0;
    channel->open_usec = g_get_monotonic_time();
    for (guint i = 0; i < BERTH_N_STREAMS; i++) {
        if (!channel->was_open)
            berth_log_writer_set_start(channel->writer, i, acked[i]);
        channel->expected[i] = acked[i];
    }
    channel->was_open = TRUE;
    berth_guest_outbox_begin(channel->outbox, acked);
    renew_signal(channel, state->signal);
    channel->funcs->answered(state->running, channel->user_data);
}

/* TRUE: the State that has come answers a Hello whose time was old when it was read, so that the
 * guest's clock is behind; a new Hello was said. Once a connection: a guest that is always slow
 * cannot be helped. */
static gboolean correct_clock(BerthGuestChannel *channel)
{
    if (channel->is_open || channel->was_said_again ||
        g_get_monotonic_time() - channel->hello_usec < HELLO_LATE_USEC)
        return FALSE;
    channel->was_said_again = TRUE;
    g_clear_handle_id(&channel->hello_source, g_source_remove);
    say_hello(channel);
    return TRUE;
}

static void handle_state(BerthGuestChannel *channel, const Berth__FromGuest__State *state)
{
    const guint64 acked[BERTH_N_STREAMS] = {state->stdout_acked, state->stderr_acked};
    if (correct_clock(channel))
        return;
    if (!channel->is_open && !check_acked(channel, acked)) {
        violate(channel, "it claims to have had output acknowledged that is not in its log");
        return;
    }
    if (!channel->is_open)
        open_session(channel, state, acked);
    berth_task_sender_begin(channel->sender, state);
    berth_guest_execs_begin(channel->execs, state->execs_max);
}

/* --- messages ------------------------------------------------------------------------------- */

/* Accounts for BYTES that are no output. FALSE: too much, the session was ended. */
static gboolean account_noise(BerthGuestChannel *channel, gsize bytes)
{
    if (berth_allowance_use(&channel->noise, bytes, g_get_monotonic_time()) == 0)
        return TRUE;
    channel->noise.used_bytes = 0;
    violate(channel, "it floods the channel");
    return FALSE;
}

/* Reads on, or does not: while there is no room for what it says, or it has said more than it may. */
static void choose_reading(BerthGuestChannel *channel)
{
    if (channel->link != NULL)
        berth_guest_link_set_paused(channel->link, channel->rest_source != 0 ||
                                                       !berth_log_writer_has_room(channel->writer));
}

static void on_rest_over(gpointer data)
{
    BerthGuestChannel *channel = data;
    channel->rest_source = 0;
    choose_reading(channel);
}

/* Output costs work in the agent and in storage, which neighbours would have to do without. */
static void account_output(BerthGuestChannel *channel, gsize bytes)
{
    if (!channel->is_output_limited)
        return;
    gint64 wait_usec = berth_allowance_use(&channel->output, bytes, g_get_monotonic_time());
    if (wait_usec > 0 && channel->rest_source == 0)
        channel->rest_source = g_timeout_add_once(
            (guint)CLAMP(wait_usec / 1000 + 1, OUTPUT_REST_MSEC_MIN, OUTPUT_REST_MSEC_MAX),
            on_rest_over, channel);
}

/* BYTES: of the whole message. */
static void handle_output(BerthGuestChannel *channel, const Berth__FromGuest__Output *output,
                          gsize bytes)
{
    guint stream = output->is_stderr ? BERTH_STDERR : BERTH_STDOUT;
    guint64 accepted = berth_log_writer_accepted(channel->writer, stream);
    if (output->offset != channel->expected[stream] ||
        output->data.len > G_MAXINT64 - output->offset) {
        violate(channel, "its output has a gap");
        return;
    }
    guint64 end = output->offset + output->data.len;
    channel->expected[stream] = end;
    if (end > accepted) {
        gsize known = (gsize)(accepted - output->offset);
        berth_log_writer_append(channel->writer, stream, output->data.data + known,
                                output->data.len - known);
    }
    account_output(channel, bytes + NOISE_PER_MESSAGE);
    choose_reading(channel);
}

static void handle_started(BerthGuestChannel *channel, const Berth__FromGuest__Started *started)
{
    berth_task_sender_finish(channel->sender);
    channel->funcs->started(started->start_usec, channel->user_data);
}

static void handle_ended(BerthGuestChannel *channel, const Berth__FromGuest__Ended *ended)
{
    if (ended->exit == NULL ||
        ended->exit->stdout_bytes != berth_log_writer_durable(channel->writer, 0) ||
        ended->exit->stderr_bytes != berth_log_writer_durable(channel->writer, 1)) {
        violate(channel, "it says that its command has ended, but not all its output has come");
        return;
    }
    berth_task_sender_finish(channel->sender);
    channel->funcs->ended(ended, channel->user_data);
}

static void handle_failure(BerthGuestChannel *channel, const Berth__FromGuest__Failure *failure)
{
    g_autofree char *text = berth_guest_channel_text(failure->message);
    channel->funcs->failed(text, failure->disk_full, channel->user_data);
}

/* The sooner, the more it is worth: while the guest does not read, an answer would only wait. */
static void answer_clock(BerthGuestChannel *channel, const Berth__FromGuest__AskClock *question)
{
    if (!has_room(channel))
        return; /* it asks again */
    Berth__ToGuest__Clock clock = BERTH__TO_GUEST__CLOCK__INIT;
    clock.stamp_usec = question->stamp_usec;
    clock.clock_usec = (guint64)g_get_real_time();
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    message.body_case = BERTH__TO_GUEST__BODY_CLOCK;
    message.clock = &clock;
    send_message(channel, &message);
}

static void handle_in_session(BerthGuestChannel *channel, const Berth__FromGuest *message,
                              gsize bytes)
{
    switch (message->body_case) {
    case BERTH__FROM_GUEST__BODY_OUTPUT:
        handle_output(channel, message->output, bytes);
        break;
    case BERTH__FROM_GUEST__BODY_STARTED:
        handle_started(channel, message->started);
        break;
    case BERTH__FROM_GUEST__BODY_ENDED:
        handle_ended(channel, message->ended);
        break;
    case BERTH__FROM_GUEST__BODY_USAGE:
        channel->funcs->usage(message->usage, channel->user_data);
        break;
    case BERTH__FROM_GUEST__BODY_FAILURE:
        handle_failure(channel, message->failure);
        break;
    default:
        break; /* FileDone, which is for people who watch; or of a newer guest */
    }
}

static gboolean is_of_exec(const Berth__FromGuest *message)
{
    return message->body_case == BERTH__FROM_GUEST__BODY_EXEC_OUTPUT ||
           message->body_case == BERTH__FROM_GUEST__BODY_EXEC_TAKEN ||
           message->body_case == BERTH__FROM_GUEST__BODY_EXEC_ENDED;
}

/* What it says of them once, and in its window, is as little noise as output. */
static void handle_exec(BerthGuestChannel *channel, const Berth__FromGuest *message, gsize bytes)
{
    BerthExecVerdict verdict = berth_guest_execs_take(channel->execs, message);
    if (verdict == BERTH_EXEC_BROKEN)
        violate(channel, "what it says of a command beside the job's cannot be");
    else if (verdict == BERTH_EXEC_STALE)
        account_noise(channel, bytes + NOISE_PER_MESSAGE);
}

static void on_message(const Berth__FromGuest *message, gsize bytes, gpointer data)
{
    BerthGuestChannel *channel = data;
    gboolean is_current = message->session == channel->session;
    if (is_current && channel->is_open && is_of_exec(message)) {
        handle_exec(channel, message, bytes);
        return;
    }
    if ((!is_current || message->body_case != BERTH__FROM_GUEST__BODY_OUTPUT ||
         message->output->data.len == 0) &&
        !account_noise(channel, bytes + NOISE_PER_MESSAGE))
        return;
    if (!is_current)
        return;
    if (message->body_case == BERTH__FROM_GUEST__BODY_STATE)
        handle_state(channel, message->state);
    else if (message->body_case == BERTH__FROM_GUEST__BODY_ASK_CLOCK)
        answer_clock(channel, message->ask_clock);
    else if (channel->is_open)
        handle_in_session(channel, message, bytes);
}

static void on_noise(gsize bytes, gpointer data)
{
    account_noise(data, bytes);
}

static void on_drained(gpointer data)
{
    BerthGuestChannel *channel = data;
    berth_guest_outbox_go_on(channel->outbox);
    berth_task_sender_go_on(channel->sender);
    berth_guest_execs_go_on(channel->execs);
}

/* --- the connection ------------------------------------------------------------------------- */

static void on_closed(gpointer data)
{
    BerthGuestChannel *channel = data;
    drop_link(channel, "the connection to the guest was lost");
    connect_later(channel);
}

void berth_guest_channel_take_fd(BerthGuestChannel *channel, int fd)
{
    static const BerthGuestLinkFuncs funcs = {on_message, on_noise, on_drained, on_closed};
    g_clear_handle_id(&channel->connect_source, g_source_remove);
    if (channel->link != NULL)
        drop_link(channel, "the connection to the guest was replaced");
    channel->link = berth_guest_link_new(fd, &funcs, channel);
    channel->hellos = 0;
    channel->was_said_again = FALSE;
    say_hello(channel);
}

/* -1 with errno set. A unix socket connects at once or not at all. */
static int connect_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (g_strlcpy(address.sun_path, path, sizeof address.sun_path) >= sizeof address.sun_path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0 &&
        connect(fd, (const struct sockaddr *)(const void *)&address, sizeof address) < 0) {
        int reason = errno;
        close(fd);
        errno = reason;
        return -1;
    }
    return fd;
}

static void on_connect_due(gpointer data)
{
    BerthGuestChannel *channel = data;
    channel->connect_source = 0;
    int fd = connect_socket(channel->socket_path);
    if (fd < 0)
        connect_later(channel);
    else
        berth_guest_channel_take_fd(channel, fd);
}

static void connect_later(BerthGuestChannel *channel)
{
    guint wait = berth_backoff_next_msec(&channel->connect_backoff, g_random_double());
    g_clear_handle_id(&channel->connect_source, g_source_remove);
    channel->connect_source = g_timeout_add_once(wait, on_connect_due, channel);
}

/* --- life ----------------------------------------------------------------------------------- */

static gboolean has_room_for_more(gpointer data)
{
    return has_room(data);
}

static void send_for(Berth__ToGuest *message, gpointer data)
{
    send_message(data, message);
}

static void sender_delayed(gint64 usec, gpointer data)
{
    BerthGuestChannel *channel = data;
    channel->funcs->delayed(usec, channel->user_data);
}

static void sender_failed(const char *message, gpointer data)
{
    BerthGuestChannel *channel = data;
    channel->funcs->failed(message, FALSE, channel->user_data);
}

BerthGuestChannel *berth_guest_channel_new(const BerthGuestChannelConfig *config,
                                           const BerthGuestChannelFuncs *funcs, gpointer user_data)
{
    static const BerthGuestOutboxFuncs outbox_funcs = {has_room_for_more, send_for};
    static const BerthTaskSenderFuncs sender_funcs = {has_room_for_more, send_for, sender_delayed,
                                                      sender_failed};
    static const BerthGuestExecsFuncs execs_funcs = {has_room_for_more, send_for};
    BerthGuestChannel *channel = g_new0(BerthGuestChannel, 1);
    channel->socket_path = g_strdup(config->socket_path);
    channel->writer = config->writer;
    memcpy(channel->acked_max, config->acked_max, sizeof channel->acked_max);
    channel->may_be_cut = config->is_adopted;
    channel->stall_msec = config->stall_msec;
    channel->memory_max_mib = config->memory_max_mib;
    channel->hello_msec = HELLO_MSEC;
    channel->noise =
        (BerthAllowance){.burst_bytes = NOISE_BURST_BYTES, .bytes_per_sec = NOISE_BYTES_PER_SEC};
    channel->output =
        (BerthAllowance){.burst_bytes = OUTPUT_BURST_SEC * config->output_bytes_per_sec,
                         .bytes_per_sec = config->output_bytes_per_sec};
    channel->is_output_limited = config->output_bytes_per_sec > 0;
    channel->funcs = funcs;
    channel->user_data = user_data;
    channel->connect_backoff = (BerthBackoff){.min_msec = 50, .max_msec = 5000};
    channel->outbox =
        berth_guest_outbox_new(config->writer, config->usage_interval_msec, &outbox_funcs, channel);
    channel->sender = berth_task_sender_new(&sender_funcs, channel);
    channel->execs = berth_guest_execs_new(&execs_funcs, channel);
    channel->connect_source = g_idle_add_once(on_connect_due, channel);
    return channel;
}

void berth_guest_channel_free(BerthGuestChannel *channel)
{
    static const char why[] = "the guest is not here any more: it has ended, or it was moved";
    if (channel == NULL)
        return;
    g_autoptr(GError) reason = reason_of(channel, why);
    drop_link(channel, why);
    berth_guest_execs_fail(channel->execs, reason);
    g_clear_handle_id(&channel->connect_source, g_source_remove);
    g_clear_handle_id(&channel->rest_source, g_source_remove);
    berth_guest_outbox_free(channel->outbox);
    berth_task_sender_free(channel->sender);
    berth_guest_execs_free(channel->execs);
    g_free(channel->socket_path);
    g_free(channel);
}

void berth_guest_channel_set_files(BerthGuestChannel *channel, BerthGuestFiles *files)
{
    berth_task_sender_set_files(channel->sender, files);
}

void berth_guest_channel_set_signal(BerthGuestChannel *channel, guint signal)
{
    channel->signal = signal;
    if (channel->is_open)
        send_signal(channel, signal, FALSE);
}

gboolean berth_guest_channel_signal_command(BerthGuestChannel *channel, guint signal)
{
    if (!channel->is_open)
        return FALSE;
    send_signal(channel, signal, TRUE);
    return TRUE;
}

void berth_guest_channel_measure(BerthGuestChannel *channel, guint usage_interval_msec)
{
    berth_guest_outbox_measure(channel->outbox, usage_interval_msec);
}

void berth_guest_channel_give_back(BerthGuestChannel *channel, guint64 resident_mib)
{
    berth_guest_outbox_give_back(channel->outbox, resident_mib);
}

void berth_guest_channel_log_progress(BerthGuestChannel *channel)
{
    berth_guest_outbox_go_on(channel->outbox);
    choose_reading(channel);
}

void berth_guest_channel_renew(BerthGuestChannel *channel)
{
    if (channel->link == NULL)
        return; /* the next connection begins with a session of its own */
    end_session(channel);
    channel->hello_msec = HELLO_MSEC;
    channel->hellos = 0;
    channel->was_said_again = FALSE;
    say_hello(channel);
}

void berth_guest_channel_set_memory_max(BerthGuestChannel *channel, guint64 mib)
{
    if (channel->memory_max_mib == mib)
        return;
    channel->memory_max_mib = mib;
    berth_guest_channel_renew(channel);
}

void berth_guest_channel_set_leaving(BerthGuestChannel *channel, gboolean leaves)
{
    channel->leaves = leaves;
}

BerthGuestExecs *berth_guest_channel_execs(BerthGuestChannel *channel)
{
    return channel->execs;
}

gboolean berth_guest_channel_is_open(const BerthGuestChannel *channel)
{
    return channel->is_open;
}

gboolean berth_guest_channel_may_have_begun(const BerthGuestChannel *channel)
{
    return berth_task_sender_may_have_begun(channel->sender);
}

guint berth_guest_channel_violations(const BerthGuestChannel *channel)
{
    return channel->violations;
}

char *berth_guest_channel_text(const char *said)
{
    gsize length = strnlen(said, BERTH_GUEST_TEXT_MAX_BYTES);
    if (said[length] != '\0') { /* not within a character */
        const char *start = g_utf8_find_prev_char(said, said + length);
        if (start != NULL && start + g_utf8_skip[(guchar)*start] > said + length)
            length = (gsize)(start - said);
    }
    return g_utf8_make_valid(said, (gssize)length);
}
