/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the commands beside the job's own: their processes, the bytes to and from them, and what the host is to
 * hear of each. It does not know sessions, but for their beginning.
 *
 * Invariants: each has a control group of its own, in which nothing is left when the host hears of its end; its
 * end is sent after all its output; memory is bounded by BERTH_EXECS_MAX of them. Descriptors are watched
 * edge-triggered, and whatever happens to a command has all its ends looked at. */
#include "images/init/execs.h"

#include "common/exec.h"
#include "images/init/output.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Those that could not begin need a place too, until the host has heard of it. */
#define PLACES (2u * BERTH_EXECS_MAX)
/* One that nobody wants any more is looked at so often, and has so many looks from its SIGHUP on. */
#define CLOSE_NSEC  500000000
#define CLOSE_LOOKS 2u

#define TIMER PLACES /* in an event, where others have their place */

typedef struct {
    uint64_t id; /* 0: the place is free */
    char *program;
    const char *directory; /* the job's */
    Process process;       /* pid 0: it never was; its descriptors are -1 when closed */
    bool has_group;
    bool has_ended; /* the process itself */
    bool is_over;   /* nothing of it is left, but what the host is to hear */
    bool is_closed; /* the host wants no more of it */
    unsigned looks; /* since then */
    Output outputs[2];
    uint8_t *input;      /* BERTH_EXEC_INPUT_MAX_BYTES: one piece */
    size_t input_length; /* of the piece, 0: there is none */
    size_t input_done;
    uint64_t input_taken; /* by the command, of all pieces */
    bool input_ends;
    bool taken_due;
    bool ended_due;
    Berth__Exit exit;
    Fault error; /* why it did not begin, or was ended */
} Exec;

struct Execs {
    const ExecGroups *groups;
    int epoll_fd;
    int timer_fd;
    unsigned turn; /* whose message is next */
    Exec places[PLACES];
    union {
        Berth__FromGuest__ExecOutput output;
        Berth__FromGuest__ExecTaken taken;
        Berth__FromGuest__ExecEnded ended;
    } body;
};

static unsigned number_of(const Execs *execs, const Exec *exec)
{
    return (unsigned)(exec - execs->places);
}

/* ---- places */

static Exec *find(Execs *execs, uint64_t id)
{
    for (unsigned i = 0; i < PLACES && id != 0; i++)
        if (execs->places[i].id == id)
            return &execs->places[i];
    return NULL;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

static void close_all(Exec *exec)
{
    close_fd(&exec->process.in_fd);
    close_fd(&exec->process.report_fd);
    close_fd(&exec->outputs[0].fd);
    close_fd(&exec->outputs[1].fd);
}

static void free_place(Exec *exec)
{
    close_all(exec);
    ring_free(exec->outputs[0].ring);
    ring_free(exec->outputs[1].ring);
    free(exec->input);
    free(exec->program);
    *exec = (Exec){0};
}

/* A free place for ID, without anything; NULL: there is none. */
static Exec *take_place(Execs *execs, uint64_t id)
{
    for (unsigned i = 0; i < PLACES; i++) {
        Exec *exec = &execs->places[i];

        if (exec->id != 0)
            continue;
        *exec = (Exec){.id = id};
        exec->process.in_fd = exec->process.report_fd = -1;
        exec->outputs[0].fd = exec->outputs[1].fd = -1;
        berth__exit__init(&exec->exit);
        return exec;
    }
    return NULL;
}

static unsigned count_running(const Execs *execs)
{
    unsigned count = 0;

    for (unsigned i = 0; i < PLACES; i++)
        count += execs->places[i].id != 0 && !execs->places[i].is_over;
    return count;
}

/* ---- the beginning */

static bool allocate(Exec *exec, const char *program, Fault *fault)
{
    exec->program = strdup(program);
    exec->input = malloc(BERTH_EXEC_INPUT_MAX_BYTES);
    for (unsigned i = 0; i < 2; i++)
        exec->outputs[i].ring = ring_new(BERTH_EXEC_WINDOW_BYTES);
    if (exec->program != NULL && exec->input != NULL && exec->outputs[0].ring != NULL &&
        exec->outputs[1].ring != NULL)
        return true;
    fault_set(fault, "not enough memory in the guest to run '%s'", program);
    return false;
}

static bool watch(Execs *execs, const Exec *exec, int fd)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET,
                                .data.u32 = number_of(execs, exec)};

    return epoll_ctl(execs->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

static bool start_process(Execs *execs, Exec *exec, char *const *argv,
                          const Berth__Terminal *terminal, const ProcessSpec *base, Fault *fault)
{
    ProcessSpec spec = *base;
    struct winsize size = {0};
    bool ok;

    spec.program = exec->program;
    spec.argv = argv;
    if (terminal != NULL) {
        size.ws_row = (unsigned short)terminal->rows;
        size.ws_col = (unsigned short)terminal->columns;
        spec.terminal = &size;
    }
    exec->directory = base->directory;
    if (!execs->groups->open(number_of(execs, exec), &spec.cgroup_fd)) {
        /* Beside the groups it would have no limits, and could not be ended. */
        fault_set_errno(fault, errno, "cannot make a control group for '%s'", exec->program);
        return false;
    }
    exec->has_group = true;
    ok = process_start(&spec, &exec->process, fault);
    if (spec.cgroup_fd >= 0)
        close(spec.cgroup_fd);
    if (!ok) {
        exec->process = (Process){.out_fd = -1, .err_fd = -1, .report_fd = -1, .in_fd = -1};
        return false;
    }
    exec->outputs[0].fd = exec->process.out_fd;
    exec->outputs[1].fd = exec->process.err_fd;
    if (watch(execs, exec, exec->process.out_fd) &&
        (exec->process.err_fd < 0 || watch(execs, exec, exec->process.err_fd)) &&
        watch(execs, exec, exec->process.report_fd) && watch(execs, exec, exec->process.in_fd))
        return true;
    fault_set_errno(fault, errno, "cannot watch '%s'", exec->program);
    return false;
}

/* COMMAND as argv: a copy of the pointers, for free(). */
static char **copy_argv(const Berth__ToGuest__Exec *request)
{
    char **argv = calloc(request->n_command + 1, sizeof *argv);

    for (size_t i = 0; argv != NULL && i < request->n_command; i++)
        argv[i] = request->command[i];
    return argv;
}

/* BASE's environment with TERM of TERMINAL: pointers, for free(), with the text of it behind them. */
static char **copy_environment(const ProcessSpec *base, const Berth__Terminal *terminal)
{
    size_t length = strlen("TERM=") + strlen(terminal->type) + 1;
    size_t n = 0;
    size_t kept = 0;
    char **envp;

    while (base->envp[n] != NULL)
        n++;
    envp = calloc(1, (n + 2) * sizeof *envp + length);
    if (envp == NULL)
        return NULL;
    for (size_t i = 0; i < n; i++)
        if (strncmp(base->envp[i], "TERM=", strlen("TERM=")) != 0)
            envp[kept++] = base->envp[i];
    envp[kept] = (char *)(envp + n + 2);
    (void)snprintf(envp[kept], length, "TERM=%s", terminal->type);
    return envp;
}

static void start(Execs *execs, Exec *exec, const Berth__ToGuest__Exec *request,
                  const ProcessSpec *base)
{
    ProcessSpec spec = *base;
    char **argv = copy_argv(request);
    char **envp = request->terminal != NULL ? copy_environment(base, request->terminal) : NULL;

    if (envp != NULL)
        spec.envp = envp;
    if (argv == NULL || (request->terminal != NULL && envp == NULL))
        fault_set(&exec->error, "not enough memory in the guest to run a command");
    else if (allocate(exec, argv[0], &exec->error))
        (void)start_process(execs, exec, argv, request->terminal, &spec, &exec->error);
    free(argv);
    free(envp);
}

/* Nothing of it is left: the host is to hear that it has ended. */
static void finish(Execs *execs, Exec *exec)
{
    close_all(exec);
    if (exec->has_group)
        execs->groups->remove(number_of(execs, exec));
    exec->has_group = false;
    exec->is_over = true;
    exec->ended_due = true;
}

static void refuse(Execs *execs, Exec *exec, uint32_t status)
{
    exec->exit.status = status;
    finish(execs, exec);
}

static void begin(Execs *execs, const Berth__ToGuest__Exec *request, const ProcessSpec *base)
{
    bool is_full = count_running(execs) >= BERTH_EXECS_MAX;
    Exec *exec;

    if (request->exec == 0 || find(execs, request->exec) != NULL)
        return; /* said again */
    exec = take_place(execs, request->exec);
    if (exec == NULL)
        return; /* a host does not begin so many */
    if (base == NULL || request->n_command == 0)
        fault_set(&exec->error, "the job's command does not run, and nothing can beside it");
    else if (is_full)
        fault_set(&exec->error,
                  "%u commands run in the guest beside the job's, which are all that may",
                  BERTH_EXECS_MAX);
    else
        start(execs, exec, request, base);
    if (exec->process.pid == 0)
        refuse(execs, exec, 126);
    else if (exec->error.text[0] != '\0')
        execs->groups->signal(number_of(execs, exec), SIGKILL);
}

/* ---- while it runs */

static void check_start(Exec *exec)
{
    ProcessReport report;
    ProcessSpec spec = {.program = exec->program, .directory = exec->directory};

    if (exec->process.report_fd < 0 || process_report(&exec->process, &report) == 0)
        return;
    close_fd(&exec->process.report_fd);
    if (report.stage != PROCESS_STARTED)
        exec->exit.status = process_explain(&spec, &report, &exec->error);
}

static void end_piece(Exec *exec)
{
    exec->input_taken += exec->input_length;
    exec->input_length = exec->input_done = 0;
    exec->taken_due = true;
}

/* One that reads no more, or has ended, takes all and loses it. */
static void write_input(Exec *exec)
{
    while (exec->input_length > 0) {
        size_t left = exec->input_length - exec->input_done;
        ssize_t wrote = exec->process.in_fd < 0
                            ? (ssize_t)left
                            : write(exec->process.in_fd, exec->input + exec->input_done, left);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0 && errno == EAGAIN)
            return;
        if (wrote < 0)
            close_fd(&exec->process.in_fd);
        else
            exec->input_done += (size_t)wrote;
        if (exec->input_done == exec->input_length)
            end_piece(exec);
    }
    if (exec->input_ends)
        close_fd(&exec->process.in_fd);
}

static void pump(Execs *execs, Exec *exec)
{
    if (exec->is_over)
        return;
    check_start(exec);
    (void)output_read(&exec->outputs[0]);
    (void)output_read(&exec->outputs[1]);
    write_input(exec);
    if (exec->has_ended && !execs->groups->is_populated(number_of(execs, exec))) {
        (void)output_read(&exec->outputs[0]);
        (void)output_read(&exec->outputs[1]);
        if (output_is_drained(&exec->outputs[0]) && output_is_drained(&exec->outputs[1]))
            finish(execs, exec);
    }
}

int execs_fd(const Execs *execs)
{
    return execs->epoll_fd;
}

static bool is_ending(const Exec *exec)
{
    return exec->id != 0 && exec->is_closed && !exec->is_over;
}

static bool set_timer(Execs *execs, long nsec)
{
    struct itimerspec when = {{0, nsec}, {0, nsec}};

    return timerfd_settime(execs->timer_fd, 0, &when, NULL) == 0;
}

static void look_at_closed(Execs *execs)
{
    bool is_any = false;
    uint64_t times;

    if (read(execs->timer_fd, &times, sizeof times) < 0)
        return; /* it was set anew meanwhile */
    for (unsigned i = 0; i < PLACES; i++) {
        Exec *exec = &execs->places[i];

        if (!is_ending(exec))
            continue;
        is_any = true;
        if (++exec->looks >= CLOSE_LOOKS)
            execs->groups->signal(i, SIGKILL);
    }
    if (!is_any)
        (void)set_timer(execs, 0);
}

void execs_pump(Execs *execs)
{
    struct epoll_event events[16];
    int count = epoll_wait(execs->epoll_fd, events, 16, 0);

    for (int i = 0; i < count; i++) {
        if (events[i].data.u32 == TIMER)
            look_at_closed(execs);
        else if (execs->places[events[i].data.u32].id != 0)
            pump(execs, &execs->places[events[i].data.u32]);
    }
}

/* ---- its end */

void execs_note_ended(Execs *execs, pid_t pid, int wait_status)
{
    for (unsigned i = 0; i < PLACES; i++) {
        Exec *exec = &execs->places[i];

        if (exec->id == 0 || exec->is_over)
            continue;
        if (exec->process.pid == pid && !exec->has_ended) {
            check_start(exec);
            exec->has_ended = true;
            if (WIFSIGNALED(wait_status))
                exec->exit.signal = (uint32_t)WTERMSIG(wait_status);
            else if (exec->error.text[0] == '\0')
                exec->exit.status = (uint32_t)WEXITSTATUS(wait_status);
            execs->groups->signal(i, SIGKILL); /* what it has left running */
        }
        pump(execs, exec);
    }
}

void execs_kill(Execs *execs)
{
    for (unsigned i = 0; i < PLACES; i++) {
        Exec *exec = &execs->places[i];

        if (exec->id == 0 || exec->is_over || exec->has_ended)
            continue;
        fault_set(&exec->error, "the job has ended, and with it the commands beside it");
        execs->groups->signal(i, SIGKILL);
    }
}

static void close_exec(Execs *execs, Exec *exec)
{
    bool is_watched = false; /* the timer runs */

    if (exec->is_closed)
        return;
    for (unsigned i = 0; i < PLACES; i++)
        is_watched = is_watched || is_ending(&execs->places[i]);
    exec->is_closed = true;
    if (exec->is_over) {
        if (!exec->ended_due)
            free_place(exec);
        return;
    }
    execs->groups->signal(number_of(execs, exec), SIGHUP);
    execs->groups->signal(number_of(execs, exec), SIGCONT);
    if (!is_watched && !set_timer(execs, CLOSE_NSEC))
        execs->groups->signal(number_of(execs, exec), SIGKILL);
}

/* ---- the host */

static void take_input(Exec *exec, const Berth__ToGuest__ExecInput *input)
{
    if (exec->is_over) {
        exec->input_taken = input->offset + input->data.len;
        exec->taken_due = true;
        return;
    }
    if (input->offset != exec->input_taken || exec->input_length > 0 ||
        input->data.len > BERTH_EXEC_INPUT_MAX_BYTES) {
        exec->taken_due = input->offset < exec->input_taken; /* said again */
        return;
    }
    memcpy(exec->input, input->data.data, input->data.len);
    exec->input_length = input->data.len;
    exec->input_done = 0;
    exec->input_ends = exec->input_ends || input->end;
    exec->taken_due = input->data.len == 0; /* only its end */
}

static void take_control(Execs *execs, Exec *exec, const Berth__ToGuest__ExecControl *control)
{
    if (exec->outputs[0].ring != NULL) {
        (void)ring_ack(exec->outputs[0].ring, control->stdout_bytes);
        (void)ring_ack(exec->outputs[1].ring, control->stderr_bytes);
    }
    if (control->size != NULL && exec->process.in_fd >= 0)
        (void)ioctl(exec->process.in_fd, TIOCSWINSZ,
                    &(struct winsize){.ws_row = (unsigned short)control->size->rows,
                                      .ws_col = (unsigned short)control->size->columns});
    if (control->signal > 0 && control->signal < NSIG && !exec->is_over)
        execs->groups->signal(number_of(execs, exec), (int)control->signal);
}

void execs_handle(Execs *execs, const Berth__ToGuest *message, const ProcessSpec *base)
{
    Exec *exec = NULL;

    if (message->body_case == BERTH__TO_GUEST__BODY_EXEC) {
        begin(execs, message->exec, base);
    } else if (message->body_case == BERTH__TO_GUEST__BODY_EXEC_INPUT) {
        exec = find(execs, message->exec_input->exec);
        if (exec != NULL)
            take_input(exec, message->exec_input);
    } else if (message->body_case == BERTH__TO_GUEST__BODY_EXEC_CONTROL) {
        exec = find(execs, message->exec_control->exec);
        if (exec != NULL)
            take_control(execs, exec, message->exec_control);
    } else if (message->body_case == BERTH__TO_GUEST__BODY_EXEC_CLOSE) {
        exec = find(execs, message->exec_close->exec);
        if (exec != NULL)
            close_exec(execs, exec);
        return;
    }
    if (exec != NULL)
        pump(execs, exec);
}

static bool is_among(uint64_t id, const uint64_t *ids, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

void execs_renew(Execs *execs, const uint64_t *ids, size_t n)
{
    for (unsigned i = 0; i < PLACES; i++) {
        Exec *exec = &execs->places[i];

        if (exec->id == 0)
            continue;
        exec->taken_due = true;
        exec->ended_due = exec->is_over;
        if (exec->outputs[0].ring != NULL) {
            ring_rewind(exec->outputs[0].ring);
            ring_rewind(exec->outputs[1].ring);
        }
        if (!is_among(exec->id, ids, n))
            close_exec(execs, exec);
    }
    /* The host has missed how these have ended. */
    for (size_t i = 0; i < n; i++) {
        Exec *exec = find(execs, ids[i]) == NULL ? take_place(execs, ids[i]) : NULL;

        if (exec != NULL) {
            fault_set(&exec->error, "it has ended, and how is not known any more");
            refuse(execs, exec, 126);
        }
    }
}

/* ---- what the host is to hear */

static bool next_output(Execs *execs, Exec *exec, Berth__FromGuest *message)
{
    Berth__FromGuest__ExecOutput *output = &execs->body.output;

    for (unsigned stream = 0; stream < 2 && exec->outputs[0].ring != NULL; stream++) {
        uint64_t offset;
        size_t length;
        const uint8_t *bytes =
            ring_peek(exec->outputs[stream].ring, BERTH_EXEC_WINDOW_BYTES, &offset, &length);

        if (bytes == NULL)
            continue;
        ring_sent(exec->outputs[stream].ring, length);
        berth__from_guest__exec_output__init(output);
        output->exec = exec->id;
        output->is_stderr = stream == 1;
        output->offset = offset;
        output->data = (ProtobufCBinaryData){.len = length, .data = (uint8_t *)bytes};
        message->body_case = BERTH__FROM_GUEST__BODY_EXEC_OUTPUT;
        message->exec_output = output;
        return true;
    }
    return false;
}

static void next_taken(Execs *execs, Exec *exec, Berth__FromGuest *message)
{
    exec->taken_due = false;
    berth__from_guest__exec_taken__init(&execs->body.taken);
    execs->body.taken.exec = exec->id;
    execs->body.taken.input_bytes = exec->input_taken;
    message->body_case = BERTH__FROM_GUEST__BODY_EXEC_TAKEN;
    message->exec_taken = &execs->body.taken;
}

static void next_ended(Execs *execs, Exec *exec, Berth__FromGuest *message)
{
    exec->ended_due = false;
    berth__from_guest__exec_ended__init(&execs->body.ended);
    execs->body.ended.exec = exec->id;
    exec->exit.error = exec->error.text;
    execs->body.ended.exit = &exec->exit;
    message->body_case = BERTH__FROM_GUEST__BODY_EXEC_ENDED;
    message->exec_ended = &execs->body.ended;
}

static bool next_of(Execs *execs, Exec *exec, Berth__FromGuest *message)
{
    if (exec->taken_due)
        next_taken(execs, exec, message);
    else if (next_output(execs, exec, message))
        return true;
    else if (exec->ended_due)
        next_ended(execs, exec, message);
    else
        return false;
    return true;
}

bool execs_next(Execs *execs, Berth__FromGuest *out_message)
{
    for (unsigned i = 0; i < PLACES; i++) {
        Exec *exec = &execs->places[(execs->turn + i) % PLACES];

        if (exec->id == 0)
            continue;
        /* What nobody wants, and is told of, is forgotten: not before, as the message was its own. */
        if (exec->is_closed && exec->is_over && !exec->ended_due) {
            free_place(exec);
            continue;
        }
        if (!next_of(execs, exec, out_message))
            continue;
        execs->turn = number_of(execs, exec) + 1;
        return true;
    }
    return false;
}

/* ---- life */

Execs *execs_new(const ExecGroups *groups)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = TIMER};
    Execs *execs = calloc(1, sizeof *execs);

    if (execs == NULL)
        return NULL;
    execs->groups = groups;
    execs->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    execs->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (execs->epoll_fd >= 0 && execs->timer_fd >= 0 &&
        epoll_ctl(execs->epoll_fd, EPOLL_CTL_ADD, execs->timer_fd, &event) == 0)
        return execs;
    execs_free(execs);
    return NULL;
}

void execs_free(Execs *execs)
{
    if (execs == NULL)
        return;
    for (unsigned i = 0; i < PLACES; i++)
        if (execs->places[i].id != 0)
            free_place(&execs->places[i]);
    close_fd(&execs->timer_fd);
    close_fd(&execs->epoll_fd);
    free(execs);
}
