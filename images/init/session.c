/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the state of the conversation with the host. It does no I/O: the effects are SessionOps, the
 * messages are taken out by session_next(). Invariants: before the first Hello nothing is sent; each
 * Hello makes everything due again that the host may have missed; Ended is sent only after both
 * streams were acknowledged to their ends; after a failure only State, Failure and AskClock are sent. */
#include "images/init/session.h"

#include "common/exec.h"

#include <stdlib.h>
#include <string.h>

struct Session {
    const SessionOps *ops;
    void *data;
    Ring *rings[2]; /* stdout, stderr */
    SessionPhase phase;
    bool has_task;
    bool open; /* a Hello came */
    uint64_t id;
    FilesProgress files;
    uint64_t start_usec;
    uint64_t end_usec;
    uint32_t signal; /* the last to all of the job's processes */

    /* Due to be sent. */
    bool clock_due;
    bool state_due;
    bool failure_due;
    bool started_due;
    bool usage_due;
    bool ended_due;
    bool gap_told;        /* since the last file data that fitted */
    uint32_t files_told;  /* FileDone was sent for those before it */
    unsigned next_stream; /* whose turn it is */
    bool output_is_next;  /* of the job, before that of other commands */

    Fault failure;
    Fault exit_error;
    Berth__Exit exit;
    Berth__Usage usage;
    Berth__Usage final_usage;

    /* The message that session_next() returns, and its body. */
    Berth__FromGuest message;
    union {
        Berth__FromGuest__AskClock ask_clock;
        Berth__FromGuest__State state;
        Berth__FromGuest__Output output;
        Berth__FromGuest__Started started;
        Berth__FromGuest__Ended ended;
        Berth__FromGuest__FileDone file_done;
        Berth__FromGuest__Failure failure;
    } body;
};

Session *session_new(const SessionOps *ops, void *data, Ring *out, Ring *err)
{
    Session *session = calloc(1, sizeof *session);

    if (session == NULL)
        return NULL;
    session->ops = ops;
    session->data = data;
    session->rings[0] = out;
    session->rings[1] = err;
    berth__exit__init(&session->exit);
    berth__usage__init(&session->usage);
    berth__usage__init(&session->final_usage);
    return session;
}

void session_free(Session *session)
{
    free(session);
}

SessionPhase session_phase(const Session *session)
{
    return session->phase;
}

const char *session_failure(const Session *session)
{
    return session->failure.text;
}

static bool has_started(const Session *session)
{
    return session->start_usec != 0;
}

static void fail_of(Session *session, const Fault *fault)
{
    session_fail(session, fault->text);
    session->failure.disk_full = fault->disk_full;
}

/* ---- from the host */

static void handle_hello(Session *session, const Berth__ToGuest__Hello *hello)
{
    session->open = true;
    session->id = hello->session;
    ring_rewind(session->rings[0]);
    ring_rewind(session->rings[1]);
    session->clock_due = true;
    session->state_due = true;
    session->failure_due = session->phase == SESSION_FAILED;
    session->started_due = has_started(session);
    session->ended_due = session->phase == SESSION_ENDED;
    session->files_told = session->files.complete; /* State says it */
    session->gap_told = false;
    session->ops->set_clock(session->data, hello->clock_usec);
    session->ops->set_usage_interval(session->data, hello->usage_interval_msec);
    session->ops->watch_stalls(session->data, hello->stall_msec);
    if (hello->memory_max_mib != 0)
        session->ops->set_memory_max(session->data, hello->memory_max_mib);
    session->ops->exec_renew(session->data, hello->execs, hello->n_execs);
}

static void handle_task(Session *session, const Berth__GuestTask *task)
{
    Fault fault = {0};

    if (session->has_task || session->phase != SESSION_WAITING)
        return; /* sent again by an agent that did not see our answer */
    if (task->n_command == 0 && task->script == NULL)
        fault_set(&fault, "the task has neither a command nor a script");
    else if (session->ops->take_task(session->data, task, &session->files, &fault))
        session->has_task = true;
    if (!session->has_task)
        fail_of(session, &fault);
}

static void handle_file(Session *session, const Berth__ToGuest__FileData *file)
{
    FilesResult result = FILES_GAP;
    Fault fault = {0};

    if (session->phase == SESSION_FAILED)
        return;
    if (session->has_task)
        result = session->ops->take_file(session->data, file->index, file->offset, file->data.data,
                                         file->data.len, &session->files, &fault);
    switch (result) {
    case FILES_TAKEN:
        session->gap_told = false;
        /* Data of a complete file: the sender missed that it is. */
        if (file->index < session->files_told)
            session->files_told = file->index;
        break;
    case FILES_GAP:
        /* State says from where to send; once, or every frame on its way would ask for all again. */
        session->state_due = session->state_due || !session->gap_told;
        session->gap_told = true;
        break;
    case FILES_FAILED:
        fail_of(session, &fault);
        break;
    }
}

static void handle_run(Session *session, const Berth__ToGuest__Run *run)
{
    Fault fault = {0};

    if (session->phase == SESSION_RUNNING || session->phase == SESSION_ENDED)
        session->started_due = has_started(session);
    if (session->phase != SESSION_WAITING)
        return;
    if (!session->has_task || session->files.complete < session->files.total) {
        session->state_due = true;
        return;
    }
    if (run->clock_usec != 0) /* 0: of an older host */
        session->ops->set_clock(session->data, run->clock_usec);
    session->phase = SESSION_STARTING;
    if (!session->ops->start(session->data, &fault))
        fail_of(session, &fault);
}

static void handle_ack(Session *session, const Berth__ToGuest__Ack *ack)
{
    /* An offset beyond the end is of another guest's stream; what is refused changes nothing. */
    (void)ring_ack(session->rings[0], ack->stdout_bytes);
    (void)ring_ack(session->rings[1], ack->stderr_bytes);
}

static void handle_signal(Session *session, const Berth__ToGuest__Signal *message)
{
    bool was_sent = session->ops->signal(session->data, message->signal, message->command_only);

    if (was_sent && !message->command_only)
        session->signal = message->signal;
}

void session_handle(Session *session, const Berth__ToGuest *message)
{
    if (message->body_case == BERTH__TO_GUEST__BODY_HELLO) {
        handle_hello(session, message->hello);
        return;
    }
    if (!session->open || message->session != session->id)
        return; /* of an older session */
    switch (message->body_case) {
    case BERTH__TO_GUEST__BODY_TASK:
        handle_task(session, message->task);
        break;
    case BERTH__TO_GUEST__BODY_FILE:
        handle_file(session, message->file);
        break;
    case BERTH__TO_GUEST__BODY_RUN:
        handle_run(session, message->run);
        break;
    case BERTH__TO_GUEST__BODY_ACK:
        handle_ack(session, message->ack);
        break;
    case BERTH__TO_GUEST__BODY_SIGNAL:
        handle_signal(session, message->signal);
        break;
    case BERTH__TO_GUEST__BODY_CLOCK:
        session->ops->take_clock(session->data, message->clock);
        break;
    case BERTH__TO_GUEST__BODY_MEASURE:
        session->ops->measure(session->data, message->measure->interval_msec);
        break;
    case BERTH__TO_GUEST__BODY_GIVE_BACK:
        session->ops->give_back(session->data, message->give_back->resident_mib);
        break;
    case BERTH__TO_GUEST__BODY_POWER_OFF:
        session->ops->power_off(session->data);
        break;
    case BERTH__TO_GUEST__BODY_EXEC:
    case BERTH__TO_GUEST__BODY_EXEC_INPUT:
    case BERTH__TO_GUEST__BODY_EXEC_CONTROL:
    case BERTH__TO_GUEST__BODY_EXEC_CLOSE:
        session->ops->exec_handle(session->data, message);
        break;
    default:
        break; /* of a newer host */
    }
}

/* ---- from the guest */

void session_started(Session *session, uint64_t start_usec)
{
    if (session->phase != SESSION_STARTING)
        return;
    session->phase = SESSION_RUNNING;
    session->start_usec = start_usec;
    session->started_due = true;
}

void session_ended(Session *session, const Berth__Exit *exit, uint64_t end_usec,
                   const Berth__Usage *usage)
{
    if (session->phase == SESSION_FAILED || session->phase == SESSION_ENDED)
        return;
    session->phase = SESSION_ENDED;
    session->ended_due = true;
    session->end_usec = end_usec;
    session->final_usage = *usage;
    session->exit = *exit;
    fault_set(&session->exit_error, "%s", exit->error);
    session->exit.error = session->exit_error.text;
    session->exit.stdout_bytes = ring_end(session->rings[0]);
    session->exit.stderr_bytes = ring_end(session->rings[1]);
}

void session_fail(Session *session, const char *message)
{
    if (session->phase == SESSION_FAILED)
        return;
    session->phase = SESSION_FAILED;
    session->failure_due = true;
    fault_set(&session->failure, "%s", message);
}

void session_measured(Session *session, const Berth__Usage *usage)
{
    session->usage = *usage;
    session->usage_due = true;
}

void session_ask_clock(Session *session)
{
    session->clock_due = true;
}

/* ---- to the host */

/* Before State, so that the clock is right when the task comes that State asks for. */
static const Berth__FromGuest *next_ask_clock(Session *session)
{
    session->clock_due = false;
    berth__from_guest__ask_clock__init(&session->body.ask_clock);
    session->body.ask_clock.stamp_usec = session->ops->ask_clock(session->data);
    session->message.body_case = BERTH__FROM_GUEST__BODY_ASK_CLOCK;
    session->message.ask_clock = &session->body.ask_clock;
    return &session->message;
}

static const Berth__FromGuest *next_state(Session *session)
{
    Berth__FromGuest__State *state = &session->body.state;

    session->state_due = false;
    berth__from_guest__state__init(state);
    state->has_task = session->has_task;
    state->files_complete = session->files.complete;
    state->file_bytes = session->files.bytes;
    state->running = session->phase == SESSION_STARTING || session->phase == SESSION_RUNNING;
    state->ended = session->phase == SESSION_ENDED;
    state->stdout_acked = ring_acked(session->rings[0]);
    state->stderr_acked = ring_acked(session->rings[1]);
    state->start_usec = session->start_usec;
    state->execs_max = BERTH_EXECS_MAX;
    state->signal = session->signal;
    session->message.body_case = BERTH__FROM_GUEST__BODY_STATE;
    session->message.state = state;
    return &session->message;
}

static const Berth__FromGuest *next_failure(Session *session)
{
    session->failure_due = false;
    berth__from_guest__failure__init(&session->body.failure);
    session->body.failure.message = session->failure.text;
    session->body.failure.disk_full = session->failure.disk_full;
    session->message.body_case = BERTH__FROM_GUEST__BODY_FAILURE;
    session->message.failure = &session->body.failure;
    return &session->message;
}

static const Berth__FromGuest *next_file_done(Session *session)
{
    berth__from_guest__file_done__init(&session->body.file_done);
    session->body.file_done.index = session->files_told++;
    session->message.body_case = BERTH__FROM_GUEST__BODY_FILE_DONE;
    session->message.file_done = &session->body.file_done;
    return &session->message;
}

static const Berth__FromGuest *next_started(Session *session)
{
    session->started_due = false;
    berth__from_guest__started__init(&session->body.started);
    session->body.started.start_usec = session->start_usec;
    session->message.body_case = BERTH__FROM_GUEST__BODY_STARTED;
    session->message.started = &session->body.started;
    return &session->message;
}

static const Berth__FromGuest *next_usage(Session *session)
{
    session->usage_due = false;
    session->message.body_case = BERTH__FROM_GUEST__BODY_USAGE;
    session->message.usage = &session->usage;
    return &session->message;
}

/* The streams take turns, so that a flood on one does not hold up the other. */
static const Berth__FromGuest *next_output(Session *session)
{
    Berth__FromGuest__Output *output = &session->body.output;

    for (unsigned turn = 0; turn < 2; turn++) {
        unsigned stream = (session->next_stream + turn) % 2;
        uint64_t offset;
        size_t length;
        const uint8_t *bytes =
            ring_peek(session->rings[stream], SESSION_OUTPUT_MAX, &offset, &length);

        if (bytes == NULL)
            continue;
        session->next_stream = (stream + 1) % 2;
        ring_sent(session->rings[stream], length);
        berth__from_guest__output__init(output);
        output->is_stderr = stream == 1;
        output->offset = offset;
        output->data = (ProtobufCBinaryData){.len = length, .data = (uint8_t *)bytes};
        session->message.body_case = BERTH__FROM_GUEST__BODY_OUTPUT;
        session->message.output = output;
        return &session->message;
    }
    return NULL;
}

static const Berth__FromGuest *next_ended(Session *session)
{
    Berth__FromGuest__Ended *ended = &session->body.ended;

    session->ended_due = false;
    berth__from_guest__ended__init(ended);
    ended->exit = &session->exit;
    ended->end_usec = session->end_usec;
    ended->usage = &session->final_usage;
    session->message.body_case = BERTH__FROM_GUEST__BODY_ENDED;
    session->message.ended = ended;
    return &session->message;
}

/* The job's output and that of other commands take turns. */
static const Berth__FromGuest *next_in_turn(Session *session)
{
    const Berth__FromGuest *output = session->output_is_next ? next_output(session) : NULL;

    session->output_is_next = output == NULL;
    if (output == NULL && session->ops->exec_next(session->data, &session->message))
        output = &session->message;
    return output != NULL ? output : next_output(session);
}

const Berth__FromGuest *session_next(Session *session)
{
    const Berth__FromGuest *output;

    if (!session->open)
        return NULL;
    berth__from_guest__init(&session->message);
    session->message.session = session->id;
    if (session->clock_due)
        return next_ask_clock(session);
    if (session->state_due)
        return next_state(session);
    if (session->phase == SESSION_FAILED)
        return session->failure_due ? next_failure(session) : NULL;
    if (session->files_told < session->files.complete)
        return next_file_done(session);
    if (session->started_due)
        return next_started(session);
    if (session->usage_due)
        return next_usage(session);
    output = next_in_turn(session);
    if (output != NULL)
        return output;
    if (session->ended_due && ring_is_empty(session->rings[0]) && ring_is_empty(session->rings[1]))
        return next_ended(session);
    return NULL;
}
