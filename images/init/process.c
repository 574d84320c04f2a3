/* SPDX-License-Identifier: Apache-2.0 */
/* Owns making a process of the job: pipes, fork, becoming the user, exec. It does not reap and does not
 * read output. Invariants: the child keeps no descriptor but 0, 1 and 2, no signal mask or handler of
 * PID 1 and no privilege; between fork and exec it calls only what is safe there. */
#include "images/init/process.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void close_pair(int fds[2])
{
    close(fds[0]);
    close(fds[1]);
}

/* A pipe whose end OURS (0 reads, 1 writes) does not block, as large as may be up to BYTES. */
static bool make_pipe(int fds[2], int ours, size_t bytes)
{
    if (pipe2(fds, O_CLOEXEC) != 0)
        return false;
    if (bytes > 0)
        (void)fcntl(fds[1], F_SETPIPE_SZ, (int)bytes); /* the usual size will do as well */
    if (fcntl(fds[ours], F_SETFL, O_NONBLOCK) == 0)
        return true;
    close_pair(fds);
    fds[0] = fds[1] = -1;
    return false;
}

/* What a process is made with: ends [0] read, [1] write. Of a terminal our side is out[0] and in[1], and its own
 * side the other ends. */
typedef struct {
    int in[2]; /* -1: none */
    int out[2];
    int err[2];
    int report[2];
} Pipes;

static void close_pipes(Pipes *pipes)
{
    close_pair(pipes->in);
    close_pair(pipes->out);
    close_pair(pipes->err);
    close_pair(pipes->report);
}

/* A terminal in the place of the pipes. */
static bool make_terminal(const ProcessSpec *spec, Pipes *pipes)
{
    char name[64];

    pipes->out[0] = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (pipes->out[0] < 0 || grantpt(pipes->out[0]) != 0 || unlockpt(pipes->out[0]) != 0 ||
        ptsname_r(pipes->out[0], name, sizeof name) != 0 ||
        ioctl(pipes->out[0], TIOCSWINSZ, spec->terminal) != 0)
        return false;
    pipes->out[1] = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
    pipes->in[0] = pipes->err[1] = -1;
    pipes->in[1] = fcntl(pipes->out[0], F_DUPFD_CLOEXEC, 3);
    if (geteuid() == 0 && pipes->out[1] >= 0 && fchown(pipes->out[1], spec->uid, (gid_t)-1) != 0)
        return false;
    return pipes->out[1] >= 0 && pipes->in[1] >= 0;
}

static bool make_pipes(const ProcessSpec *spec, Pipes *pipes)
{
    if (!make_pipe(pipes->report, 0, 0))
        return false;
    if (spec->terminal != NULL)
        return make_terminal(spec, pipes);
    return (!spec->has_input || make_pipe(pipes->in, 1, 0)) &&
           make_pipe(pipes->out, 0, spec->pipe_bytes) && make_pipe(pipes->err, 0, spec->pipe_bytes);
}

/* ---- in the child */

static void reset_signals(void)
{
    sigset_t none;

    for (int number = 1; number < NSIG; number++)
        (void)signal(number, SIG_DFL); /* SIGKILL, SIGSTOP and libc's own refuse */
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static bool set_limits(void)
{
    static const struct {
        __rlimit_resource_t resource;
        struct rlimit limit;
    } limits[] = {
        {RLIMIT_CORE, {0, RLIM_INFINITY}},
        {RLIMIT_NOFILE, {1024, 524288}},
        {RLIMIT_NPROC, {RLIM_INFINITY, RLIM_INFINITY}}, /* the control group limits */
    };

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (setrlimit(limits[i].resource, &limits[i].limit) != 0 && errno != EPERM)
            return false;
    return true;
}

static bool become_job(const ProcessSpec *spec, const Pipes *pipes)
{
    bool has_terminal = spec->terminal != NULL;
    int in = has_terminal      ? pipes->out[1]
             : spec->has_input ? pipes->in[0]
                               : open("/dev/null", O_RDONLY | O_CLOEXEC);
    int err = has_terminal ? pipes->out[1] : pipes->err[1];
    int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    reset_signals();
    umask(022);
    if (in < 0 || write(score, "0", 1) != 1 || setsid() < 0 ||
        (has_terminal && ioctl(in, TIOCSCTTY, 0) != 0))
        return false;
    (void)setpriority(PRIO_PROCESS, 0, 0);
    if (dup2(in, 0) < 0 || dup2(pipes->out[1], 1) < 0 || dup2(err, 2) < 0 || !set_limits() ||
        close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) != 0)
        return false;
    if (geteuid() == 0 && setgroups(spec->n_groups, spec->groups) != 0)
        return false;
    return setresgid(spec->gid, spec->gid, spec->gid) == 0 &&
           setresuid(spec->uid, spec->uid, spec->uid) == 0;
}

static _Noreturn void run_child(const ProcessSpec *spec, const Pipes *pipes)
{
    ProcessReport report = {.stage = PROCESS_SETUP};

    if (become_job(spec, pipes)) {
        report.stage = PROCESS_DIRECTORY;
        if (chdir(spec->directory) == 0) {
            report.stage = PROCESS_EXEC;
            /* A PATH of the job's, and /bin/sh for a file without a #! line: execvp() does both. */
            environ = (char **)spec->envp;
            execvp(spec->program, spec->argv);
        }
    }
    report.err = errno;
    while (write(pipes->report[1], &report, sizeof report) < 0 && errno == EINTR)
        ;
    _exit(127);
}

/* ---- in the parent */

/* A fork into control group CGROUP_FD. Being born there is cheaper than being moved. */
static pid_t fork_into(int cgroup_fd)
{
    struct clone_args args = {
        .flags = CLONE_INTO_CGROUP,
        .exit_signal = SIGCHLD,
        .cgroup = (uint64_t)cgroup_fd,
    };

    return cgroup_fd < 0 ? fork() : (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

bool process_start(const ProcessSpec *spec, Process *out_process, Fault *fault)
{
    Pipes pipes = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
    pid_t pid = -1;

    if (make_pipes(spec, &pipes))
        pid = fork_into(spec->cgroup_fd);
    if (pid == 0)
        run_child(spec, &pipes);
    if (pid < 0) {
        fault_set_errno(fault, errno, "cannot make a process for '%s' in the guest", spec->program);
        close_pipes(&pipes);
        return false;
    }
    close(pipes.in[0]);
    close(pipes.out[1]);
    close(pipes.err[1]);
    close(pipes.report[1]);
    *out_process = (Process){pid, pipes.out[0], pipes.err[0], pipes.report[0], pipes.in[1]};
    return true;
}

int process_report(const Process *process, ProcessReport *out_report)
{
    ProcessReport report;
    ssize_t got;

    do
        got = read(process->report_fd, &report, sizeof report);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return 0;
    /* Its end was closed by exec, or by a signal that came before. */
    *out_report = got == (ssize_t)sizeof report ? report : (ProcessReport){PROCESS_STARTED, 0};
    return 1;
}

/* The interpreter in the #! line of PROGRAM; false when there is none. */
static bool read_interpreter(const char *program, char *out, size_t size)
{
    int fd = open(program, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, out, size - 1) : -1;
    char *start;

    if (fd >= 0)
        close(fd);
    if (got < 3 || out[0] != '#' || out[1] != '!')
        return false;
    out[got] = '\0';
    start = out + 2 + strspn(out + 2, " \t");
    start[strcspn(start, " \t\r\n")] = '\0';
    memmove(out, start, strlen(start) + 1);
    return true;
}

/* One that is no program of its own is for the shell. */
static bool is_elf(const char *program)
{
    static const char magic[4] = {0x7f, 'E', 'L', 'F'};
    char head[sizeof magic] = {0};
    int fd = open(program, O_RDONLY | O_CLOEXEC);
    /* One that may be run but not read is no script. */
    bool found =
        fd < 0 || read(fd, head, sizeof head) < 0 || memcmp(head, magic, sizeof magic) == 0;

    if (fd >= 0)
        close(fd);
    return found;
}

static void explain_exec(const ProcessSpec *spec, int err, Fault *out_why)
{
    const char *program = spec->program;
    char interpreter[256];

    if (err == ENOENT && strchr(program, '/') == NULL)
        fault_set(out_why, "cannot run '%s': the image has no such command in PATH", program);
    else if (err == ENOENT && read_interpreter(program, interpreter, sizeof interpreter))
        fault_set(out_why, "cannot run '%s': its interpreter '%s' is not in the image", program,
                  interpreter);
    else if (err == ENOENT && access(program, F_OK) == 0 && !is_elf(program))
        fault_set(out_why, "cannot run '%s': it has no #! line, and the image no /bin/sh to run it",
                  program);
    else if (err == ENOENT && access(program, F_OK) == 0)
        fault_set(out_why, "cannot run '%s': the image lacks its interpreter or dynamic loader",
                  program);
    else if (err == ENOENT)
        fault_set(out_why, "cannot run '%s': the image has no such file", program);
    else if (err == E2BIG)
        fault_set(out_why, "cannot run '%s': its arguments and environment are too long", program);
    else if (err == EACCES)
        fault_set(out_why, "cannot run '%s': it is not executable for the user", program);
    else
        fault_set_errno(out_why, err, "cannot run '%s'", program);
}

uint32_t process_explain(const ProcessSpec *spec, const ProcessReport *report, Fault *out_why)
{
    switch (report->stage) {
    case PROCESS_SETUP:
        fault_set_errno(out_why, report->err, "cannot prepare the process for '%s'", spec->program);
        return 126;
    case PROCESS_DIRECTORY:
        fault_set_errno(out_why, report->err, "cannot enter the working directory '%s'",
                        spec->directory);
        return 126;
    case PROCESS_EXEC:
        explain_exec(spec, report->err, out_why);
        return report->err == ENOENT || report->err == ENOTDIR ? 127 : 126;
    case PROCESS_STARTED:
        break;
    }
    return 0;
}
