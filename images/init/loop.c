/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the one event loop of PID 1: it carries bytes between the command's pipes, the rings and the
 * channel, and events between kernel, job and session. It decides nothing about the protocol (session.c)
 * nor about the job (job.c). Invariants: nothing here blocks; the port is watched edge-triggered,
 * because it reports a hang-up for as long as no host is there. */
#include "images/init/loop.h"

#include "images/init/cgroups.h"
#include "images/init/cpus.h"
#include "images/init/execs.h"
#include "images/init/give_back.h"
#include "images/init/host_clock.h"
#include "images/init/job.h"
#include "images/init/link.h"
#include "images/init/output.h"
#include "images/init/say.h"
#include "images/init/session.h"
#include "images/init/stall.h"
#include "images/init/uevent.h"
#include "images/init/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Each stream's buffer is this part of the memory, within bounds. */
#define RING_MEMORY_PART 256u
#define RING_MIN_BYTES   (256u * 1024u)
#define RING_MAX_BYTES   (1024u * 1024u)

/* A command that writes in small pieces is read in batches: after a read of less than BATCH_BYTES the
 * next comes so much later. The first bytes after a silence are sent at once. */
#define BATCH_BYTES (64u * 1024u)
#define BATCH_MSEC  2u

/* What the command left running, a tee in the background say, may finish for so long. */
#define LEFTOVER_MSEC 1000u
/* A failed guest ends itself when no host has ended it for so long. */
#define FAILED_MSEC 60000u
/* What takes free memory for a moment may have been stopped, or wait for a disk: others do not wait for it any longer. */
#define GIVING_MSEC 2000u
/* What it could not take in its time is taken so much later, and so many times at most. */
#define GIVE_AGAIN_MSEC 10000u
#define GIVES_MOST      8u
/* When the kernel had no memory to send with. */
#define RETRY_MSEC 10u

typedef enum {
    SOURCE_PORT,
    SOURCE_OUT,
    SOURCE_ERR,
    SOURCE_REPORT,
    SOURCE_SIGNALS,
    SOURCE_UEVENTS,  /* what the kernel has found: vCPUs and memory come and go */
    SOURCE_USAGE,    /* timer: measure */
    SOURCE_LEFTOVER, /* timer: kill what the command left */
    SOURCE_FAILED,   /* timer: give up */
    SOURCE_RETRY,    /* timer: write again */
    SOURCE_BATCH,    /* timer: read the command's output again */
    SOURCE_CLOCK,    /* timer: ask for the host's clock */
    SOURCE_EXECS,    /* of commands beside the job's own */
    SOURCE_STALL,    /* tasks stall for memory */
    SOURCE_GIVING,   /* timer: what gives back free memory has taken too long, or is to go on */
    N_SOURCES,
} Source;

struct Loop {
    int epoll_fd;
    int fds[N_SOURCES]; /* -1: not watched */
    bool paused[N_SOURCES];
    Link *link;
    Session *session;
    Job *job;
    Execs *execs;
    Output outputs[2];
    size_t ring_bytes;
    MemoryLimit memory_limit;
    uint64_t overhead_kib,
        began_kib;           /* when the guest had so much memory, so much of it was taken */
    uint64_t memory_max_kib; /* that it may be given in all; 0: no more than it has */
    Berth__Usage usage;
    UsageStalls stalls;
    HostClock clock;
    pid_t giving_back;     /* the process that takes what is free for a moment; 0: none */
    unsigned gives_left;   /* how often there may be another one */
    uint64_t resident_kib; /* that the host holds, as it has said */
    bool usage_waits;      /* for its end: what it has taken is nobody's need */
    uint32_t stall_msec;   /* that wakes SOURCE_STALL; 0: it is not watched */
    bool batching;         /* output is read when the timer says so */
    bool job_is_empty;     /* the command has ended and so has all that it left */
    bool failure_was_said;
    bool power_off;
};

static void on_usage(Loop *loop);

/* ---- watching */

static bool watch(Loop *loop, Source source, int fd, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.u32 = source};

    loop->fds[source] = fd;
    return fd >= 0 && epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

/* Stops or resumes watching a pipe, whose writer waits meanwhile. */
static void pause_source(Loop *loop, Source source, bool pause)
{
    struct epoll_event event = {.events = pause ? 0 : EPOLLIN, .data.u32 = source};

    if (loop->fds[source] < 0 || loop->paused[source] == pause)
        return;
    loop->paused[source] = pause;
    if (epoll_ctl(loop->epoll_fd, pause ? EPOLL_CTL_DEL : EPOLL_CTL_ADD, loop->fds[source],
                  &event) != 0)
        say("cannot watch the command's output: %m");
}

static void set_timer(Loop *loop, Source source, uint32_t first_msec, uint32_t interval_msec)
{
    struct itimerspec when = {
        .it_value = {first_msec / 1000, (long)(first_msec % 1000) * 1000000},
        .it_interval = {interval_msec / 1000, (long)(interval_msec % 1000) * 1000000},
    };

    if (timerfd_settime(loop->fds[source], 0, &when, NULL) != 0)
        say("cannot set a timer: %m");
}

static void take_timer(Loop *loop, Source source)
{
    uint64_t times;

    if (read(loop->fds[source], &times, sizeof times) < 0)
        return; /* it was set anew meanwhile */
}

/* ---- what the session wants */

/* What the host's clock was when a message was sent, which may have waited until this guest had
 * booted: by now it is there or beyond. So a clock that is behind is set; one that is ahead may be right. */
static void set_clock(void *data, uint64_t clock_usec)
{
    struct timespec clock = {(time_t)(clock_usec / 1000000), (long)(clock_usec % 1000000) * 1000};

    (void)data;
    if (job_clock_usec() < clock_usec && clock_settime(CLOCK_REALTIME, &clock) != 0)
        say("cannot set the clock: %m");
}

static uint64_t monotonic_usec(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

static uint64_t ask_clock(void *data)
{
    Loop *loop = data;
    uint64_t stamp_usec = host_clock_ask(&loop->clock, monotonic_usec());

    set_timer(loop, SOURCE_CLOCK, loop->clock.wait_msec, 0);
    return stamp_usec;
}

static void take_clock(void *data, const Berth__ToGuest__Clock *answer)
{
    Loop *loop = data;
    HostClockAnswer all = {.stamp_usec = answer->stamp_usec, .host_usec = answer->clock_usec};
    bool nobody_looks = session_phase(loop->session) == SESSION_WAITING;
    int64_t offset_usec;

    all.clock_usec = job_clock_usec();
    all.monotonic_usec = monotonic_usec();
    offset_usec = host_clock_offset(&loop->clock, &all);
    if (!host_clock_move(offset_usec, nobody_looks))
        say("cannot set the clock: %m");
    set_timer(loop, SOURCE_CLOCK, loop->clock.wait_msec, 0);
}

static void set_usage_interval(void *data, uint32_t msec)
{
    set_timer(data, SOURCE_USAGE, msec, msec);
}

static void measure(void *data, uint32_t msec)
{
    set_usage_interval(data, msec);
    on_usage(data);
}

static void start_giving_back(Loop *loop)
{
    UsageMemory memory = usage_memory();
    pid_t pid;

    if (loop->giving_back != 0 || loop->gives_left == 0 ||
        !give_back_is_due(&memory, loop->resident_kib))
        return;
    pid = give_back_start();
    if (pid < 0) {
        say("cannot tell the host of free memory: %m");
        return;
    }
    loop->giving_back = pid;
    loop->gives_left--;
    set_timer(loop, SOURCE_GIVING, GIVING_MSEC, 0);
}

static void give_back(void *data, uint64_t resident_mib)
{
    Loop *loop = data;

    loop->resident_kib = resident_mib * 1024;
    loop->gives_left = GIVES_MOST;
    start_giving_back(loop);
}

static void end_giving_back(Loop *loop, bool goes_on)
{
    loop->giving_back = 0;
    set_timer(loop, SOURCE_GIVING, goes_on && loop->gives_left > 0 ? GIVE_AGAIN_MSEC : 0, 0);
    if (loop->usage_waits)
        on_usage(loop);
}

static void on_giving(Loop *loop)
{
    if (loop->giving_back == 0) {
        start_giving_back(loop);
        return;
    }
    (void)kill(loop->giving_back, SIGKILL);
    end_giving_back(loop, false);
}

static void watch_stalls(void *data, uint32_t msec)
{
    Loop *loop = data;

    if (msec == loop->stall_msec)
        return;
    if (loop->fds[SOURCE_STALL] >= 0)
        close(loop->fds[SOURCE_STALL]); /* epoll forgets it */
    loop->fds[SOURCE_STALL] = -1;
    loop->stall_msec = msec;
    if (msec != 0 &&
        !watch(loop, SOURCE_STALL, stall_open("/proc/pressure/memory", msec), EPOLLPRI))
        say("the kernel does not tell of stalls: %m");
}

static void limit_memory(Loop *loop);

static void set_memory_max(void *data, uint64_t mib)
{
    Loop *loop = data;

    if (loop->memory_max_kib == mib * 1024)
        return; /* each session says so */
    loop->memory_max_kib = mib * 1024;
    loop->memory_limit.total_kib = 0; /* it is set anew */
    limit_memory(loop);
}

static bool take_task(void *data, const Berth__GuestTask *task, FilesProgress *out_progress,
                      Fault *fault)
{
    return job_take_task(((Loop *)data)->job, task, out_progress, fault);
}

static FilesResult take_file(void *data, uint32_t index, uint64_t offset, const uint8_t *bytes,
                             size_t length, FilesProgress *out_progress, Fault *fault)
{
    return job_take_file(((Loop *)data)->job, index, offset, bytes, length, out_progress, fault);
}

static bool start(void *data, Fault *fault)
{
    Loop *loop = data;
    const Process *process;

    if (!job_start(loop->job, loop->ring_bytes, fault))
        return false;
    process = job_process(loop->job);
    loop->outputs[0].fd = process->out_fd;
    loop->outputs[1].fd = process->err_fd;
    if (watch(loop, SOURCE_OUT, process->out_fd, EPOLLIN) &&
        watch(loop, SOURCE_ERR, process->err_fd, EPOLLIN) &&
        watch(loop, SOURCE_REPORT, process->report_fd, EPOLLIN))
        return true;
    fault_set_errno(fault, errno, "cannot watch the command's output");
    return false;
}

static bool forward_signal(void *data, uint32_t signal, bool command_only)
{
    const Job *job = ((Loop *)data)->job;
    const Process *process = job_process(job);

    if (signal == 0 || signal >= NSIG || process == NULL)
        return false;
    if (!command_only)
        cgroups_signal_job((int)signal);
    else if (!job_has_ended(job))
        (void)kill(process->pid, (int)signal);
    return true;
}

static void power_off(void *data)
{
    ((Loop *)data)->power_off = true;
}

/* ---- commands beside the job's own */

static void exec_renew(void *data, const uint64_t *ids, size_t n)
{
    execs_renew(((Loop *)data)->execs, ids, n);
}

static void exec_handle(void *data, const Berth__ToGuest *message)
{
    Loop *loop = data;
    bool runs = session_phase(loop->session) == SESSION_RUNNING && !job_has_ended(loop->job);
    ProcessSpec spec = runs ? job_exec_spec(loop->job) : (ProcessSpec){0};

    execs_handle(loop->execs, message, runs ? &spec : NULL);
}

static bool exec_next(void *data, Berth__FromGuest *message)
{
    return execs_next(((Loop *)data)->execs, message);
}

static const ExecGroups exec_groups = {
    .open = cgroups_open_exec,
    .signal = cgroups_signal_exec,
    .is_populated = cgroups_exec_is_populated,
    .remove = cgroups_remove_exec,
};

static const SessionOps session_ops = {
    .set_clock = set_clock,
    .ask_clock = ask_clock,
    .take_clock = take_clock,
    .set_usage_interval = set_usage_interval,
    .measure = measure,
    .give_back = give_back,
    .watch_stalls = watch_stalls,
    .set_memory_max = set_memory_max,
    .take_task = take_task,
    .take_file = take_file,
    .start = start,
    .signal = forward_signal,
    .power_off = power_off,
    .exec_renew = exec_renew,
    .exec_handle = exec_handle,
    .exec_next = exec_next,
};

/* ---- events */

static void on_port(Loop *loop)
{
    while (link_read(loop->link) == LINK_MORE) {
        Berth__ToGuest *message;

        while ((message = link_next(loop->link)) != NULL) {
            session_handle(loop->session, message);
            berth__to_guest__free_unpacked(message, NULL);
        }
    }
}

static void on_report(Loop *loop)
{
    uint64_t start_usec = job_check_start(loop->job);

    loop->fds[SOURCE_REPORT] = -1; /* closed when it was read */
    if (start_usec != 0)
        session_started(loop->session, start_usec);
}

static void on_child(Loop *loop)
{
    struct signalfd_siginfo info;
    struct rusage used;
    int status;
    pid_t pid;

    while (read(loop->fds[SOURCE_SIGNALS], &info, sizeof info) > 0)
        ;
    while ((pid = wait4(-1, &status, WNOHANG, &used)) > 0) {
        bool was_running = !job_has_ended(loop->job);

        usage_note_resident(&loop->usage, (uint64_t)used.ru_maxrss);
        job_note_ended(loop->job, pid, status);
        if (was_running && job_has_ended(loop->job)) {
            on_report(loop);
            set_timer(loop, SOURCE_LEFTOVER, LEFTOVER_MSEC, 0);
            execs_kill(loop->execs);
        }
        execs_note_ended(loop->execs, pid, status);
        if (pid == loop->giving_back)
            end_giving_back(loop, give_back_is_to_go_on(status));
    }
    if (job_has_ended(loop->job))
        loop->job_is_empty = !cgroups_job_is_populated();
}

/* The job is to have what the guest has; what it still uses of less, it is asked for again next time. */
static void limit_memory(Loop *loop)
{
    UsageMemory memory = usage_memory();
    uint64_t overhead_kib =
        cgroups_overhead_kib(loop->overhead_kib, loop->began_kib, memory.total_kib);

    if (memory.total_kib != 0 &&
        memory_limit_is_due(&loop->memory_limit, memory.total_kib, monotonic_usec()) &&
        cgroups_set_job_memory(memory.total_kib, overhead_kib, loop->memory_max_kib))
        loop->memory_limit.total_kib = memory.total_kib;
}

static void on_uevents(Loop *loop)
{
    uevent_drain(loop->fds[SOURCE_UEVENTS]);
    cpus_use_all();
    limit_memory(loop);
}

static void on_usage(Loop *loop)
{
    limit_memory(loop);
    loop->usage_waits = loop->giving_back != 0;
    if (loop->usage_waits)
        return;
    usage_measure(&loop->usage, &loop->stalls, monotonic_usec());
    session_measured(loop->session, &loop->usage);
}

static size_t read_output(Loop *loop, unsigned stream)
{
    size_t bytes = output_read(&loop->outputs[stream]);

    if (loop->outputs[stream].fd < 0)
        loop->fds[SOURCE_OUT + stream] = -1; /* closed at its end */
    return bytes;
}

static void set_batching(Loop *loop, bool batching)
{
    loop->batching = batching;
    if (batching)
        set_timer(loop, SOURCE_BATCH, BATCH_MSEC, 0);
}

static void on_batch(Loop *loop)
{
    size_t bytes = read_output(loop, 0) + read_output(loop, 1);

    take_timer(loop, SOURCE_BATCH);
    set_batching(loop, bytes > 0 && bytes < BATCH_BYTES);
}

static void handle(Loop *loop, Source source)
{
    switch (source) {
    case SOURCE_PORT:
        on_port(loop);
        break;
    case SOURCE_OUT:
    case SOURCE_ERR:
        set_batching(loop, read_output(loop, source - SOURCE_OUT) < BATCH_BYTES);
        break;
    case SOURCE_BATCH:
        on_batch(loop);
        break;
    case SOURCE_REPORT:
        on_report(loop);
        break;
    case SOURCE_SIGNALS:
        on_child(loop);
        break;
    case SOURCE_UEVENTS:
        on_uevents(loop);
        break;
    case SOURCE_USAGE:
        take_timer(loop, source);
        on_usage(loop);
        break;
    case SOURCE_STALL:
        on_usage(loop);
        break;
    case SOURCE_LEFTOVER:
        take_timer(loop, source);
        if (!loop->job_is_empty)
            cgroups_signal_job(SIGKILL);
        break;
    case SOURCE_FAILED:
        loop->power_off = true;
        break;
    case SOURCE_RETRY:
        take_timer(loop, source);
        break;
    case SOURCE_CLOCK:
        take_timer(loop, source);
        session_ask_clock(loop->session);
        break;
    case SOURCE_GIVING:
        take_timer(loop, source);
        on_giving(loop);
        break;
    case SOURCE_EXECS:
        execs_pump(loop->execs);
        break;
    case N_SOURCES:
        break;
    }
}

/* ---- what follows from the events */

/* The job has ended when none of its processes is left and its pipes are empty. */
static void check_end(Loop *loop)
{
    if (!loop->job_is_empty || loop->giving_back != 0 ||
        session_phase(loop->session) == SESSION_ENDED)
        return;
    (void)read_output(loop, 0);
    (void)read_output(loop, 1);
    if (!output_is_drained(&loop->outputs[0]) || !output_is_drained(&loop->outputs[1]))
        return;
    usage_measure_totals(&loop->usage);
    session_ended(loop->session, job_exit(loop->job), job_end_usec(loop->job), &loop->usage);
}

static void check_failure(Loop *loop)
{
    if (session_phase(loop->session) != SESSION_FAILED || loop->failure_was_said)
        return;
    loop->failure_was_said = true;
    say("%s", session_failure(loop->session));
    set_timer(loop, SOURCE_FAILED, FAILED_MSEC, 0);
}

/* Writes as much as the channel takes. */
static void send_messages(Loop *loop)
{
    for (;;) {
        const Berth__FromGuest *message;
        LinkWrite result = link_flush(loop->link);

        if (result == LINK_SHORT)
            set_timer(loop, SOURCE_RETRY, RETRY_MSEC, 0);
        if (result != LINK_WRITTEN)
            return;
        message = session_next(loop->session);
        if (message == NULL)
            return;
        if (!link_send(loop->link, message))
            say("a message is too large for the channel");
    }
}

void loop_fail(Loop *loop, const char *message)
{
    session_fail(loop->session, message);
}

void loop_set_overhead(Loop *loop, uint64_t memory_total_kib, uint64_t overhead_kib)
{
    loop->began_kib = memory_total_kib;
    loop->overhead_kib = overhead_kib;
}

void loop_run(Loop *loop)
{
    struct epoll_event events[N_SOURCES];

    while (!loop->power_off) {
        check_end(loop);
        check_failure(loop);
        send_messages(loop);
        for (unsigned i = 0; i < 2; i++)
            pause_source(loop, SOURCE_OUT + i,
                         loop->batching || ring_room(loop->outputs[i].ring) == 0);

        int count = epoll_wait(loop->epoll_fd, events, N_SOURCES, -1);

        for (int i = 0; i < count; i++)
            if (loop->fds[events[i].data.u32] >= 0)
                handle(loop, events[i].data.u32);
    }
}

/* ---- making it */

static size_t ring_size(uint64_t memory_total_kib)
{
    uint64_t bytes = memory_total_kib * 1024 / RING_MEMORY_PART;

    return (size_t)(bytes < RING_MIN_BYTES   ? RING_MIN_BYTES
                    : bytes > RING_MAX_BYTES ? RING_MAX_BYTES
                                             : bytes);
}

static int open_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

static bool watch_all(Loop *loop, int port_fd)
{
    static const Source timers[] = {SOURCE_USAGE, SOURCE_LEFTOVER, SOURCE_FAILED, SOURCE_RETRY,
                                    SOURCE_BATCH, SOURCE_CLOCK,    SOURCE_GIVING};

    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (loop->epoll_fd < 0 || !watch(loop, SOURCE_PORT, port_fd, EPOLLIN | EPOLLOUT | EPOLLET) ||
        !watch(loop, SOURCE_SIGNALS, open_signals(), EPOLLIN) ||
        !watch(loop, SOURCE_EXECS, execs_fd(loop->execs), EPOLLIN) ||
        !watch(loop, SOURCE_UEVENTS, uevent_open(), EPOLLIN))
        return false;
    for (size_t i = 0; i < sizeof timers / sizeof *timers; i++)
        if (!watch(loop, timers[i], timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
                   EPOLLIN))
            return false;
    return true;
}

static bool allocate(Loop *loop, int port_fd)
{
    loop->link = link_new(port_fd);
    loop->job = job_new();
    loop->execs = execs_new(&exec_groups);
    for (unsigned i = 0; i < 2; i++)
        loop->outputs[i] = (Output){.ring = ring_new(loop->ring_bytes), .fd = -1};
    if (loop->outputs[0].ring == NULL || loop->outputs[1].ring == NULL)
        return false;
    loop->session = session_new(&session_ops, loop, loop->outputs[0].ring, loop->outputs[1].ring);
    return loop->session != NULL && loop->link != NULL && loop->job != NULL && loop->execs != NULL;
}

Loop *loop_new(int port_fd, uint64_t memory_total_kib, Fault *fault)
{
    Loop *loop = calloc(1, sizeof *loop);

    /* PID 1 ends with its guest: what was made before a failure is not taken down. */
    if (loop == NULL) {
        fault_set(fault, "not enough memory in the guest for its event loop");
        return NULL;
    }
    for (unsigned i = 0; i < N_SOURCES; i++)
        loop->fds[i] = -1;
    berth__usage__init(&loop->usage);
    loop->memory_limit.total_kib = loop->memory_limit.seen_kib = memory_total_kib;
    loop->ring_bytes = ring_size(memory_total_kib);
    if (!allocate(loop, port_fd)) {
        fault_set(fault, "not enough memory in the guest for its output buffers");
        return NULL;
    }
    if (!watch_all(loop, port_fd)) {
        fault_set_errno(fault, errno, "cannot set up the guest's event loop");
        return NULL;
    }
    return loop;
}
