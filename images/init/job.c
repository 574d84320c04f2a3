/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the task's life in the guest: preparing the image for its user, building its command line and
 * environment, and its exit status. It does not read output and does not know the channel.
 * Invariant: the command is started once at most. */
#include "images/init/job.h"

#include "images/init/cgroups.h"
#include "images/init/environment.h"
#include "images/init/etc.h"
#include "images/init/paths.h"
#include "images/init/say.h"
#include "images/init/usage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_PATH "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

struct Job {
    Berth__GuestTask *task;
    Files *files;
    Environment *environment;
    char **argv;
    ProcessSpec spec;
    Process process; /* pid 0: not started */
    bool reported;   /* the start's report was read */
    bool ended;
    uint64_t start_usec;
    uint64_t end_usec;
    Berth__Exit exit;
    Fault exit_error;
};

uint64_t job_clock_usec(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000u;
}

Job *job_new(void)
{
    Job *job = calloc(1, sizeof *job);

    if (job != NULL)
        berth__exit__init(&job->exit);
    return job;
}

void job_free(Job *job)
{
    if (job == NULL)
        return;
    files_free(job->files);
    environment_free(job->environment);
    free(job->argv);
    if (job->task != NULL)
        berth__guest_task__free_unpacked(job->task, NULL);
    free(job);
}

/* ---- before the start */

static Berth__GuestTask *copy_task(const Berth__GuestTask *task)
{
    size_t size = berth__guest_task__get_packed_size(task);
    uint8_t *packed = malloc(size > 0 ? size : 1);
    Berth__GuestTask *copy = NULL;

    if (packed != NULL)
        copy = berth__guest_task__unpack(NULL, berth__guest_task__pack(task, packed), packed);
    free(packed);
    return copy;
}

static const char *work_directory(const Berth__GuestTask *task)
{
    return task->working_directory[0] != '\0' ? task->working_directory : JOB_DEFAULT_DIRECTORY;
}

/* The default directory is always the user's; another is only if it had to be made. */
static bool prepare_work_directory(const Berth__GuestTask *task, Fault *fault)
{
    const char *path = work_directory(task);

    if (!path_make_directory(path, task->uid, task->gid, NULL, fault))
        return false;
    if (strcmp(path, JOB_DEFAULT_DIRECTORY) != 0 || chown(path, task->uid, task->gid) == 0)
        return true;
    fault_set_errno(fault, errno, "cannot give the working directory '%s' to the user", path);
    return false;
}

/* Names for the user's numbers. The command runs without them too, so a failure is only told. */
static void prepare_names(const Berth__GuestTask *task)
{
    Fault fault = {0};
    bool ok = etc_add_group("/etc", task->gid, task->user, &fault);

    for (size_t i = 0; i < task->n_groups; i++)
        ok = etc_add_group("/etc", task->groups[i], "", &fault) && ok;
    ok = etc_add_user("/etc", task->uid, task->gid, task->user, work_directory(task), &fault) && ok;
    if (task->hostname[0] != '\0') {
        ok = etc_add_host("/etc", task->hostname, &fault) && ok;
        if (sethostname(task->hostname, strlen(task->hostname)) != 0)
            say("cannot set the host name '%s': %m", task->hostname);
    }
    if (!ok)
        say("%s", fault.text);
}

bool job_take_task(Job *job, const Berth__GuestTask *task, FilesProgress *out_progress,
                   Fault *fault)
{
    job->task = copy_task(task);
    if (job->task == NULL) {
        fault_set(fault, "not enough memory in the guest for its task");
        return false;
    }
    if (!prepare_work_directory(job->task, fault) ||
        !path_make_directory(JOB_RUN_DIRECTORY, 0, 0, NULL, fault))
        return false;
    prepare_names(job->task);
    job->files = files_new(job->task, JOB_RUN_DIRECTORY, work_directory(job->task), fault);
    if (job->files == NULL)
        return false;
    *out_progress = files_progress(job->files);
    return true;
}

FilesResult job_take_file(Job *job, uint32_t index, uint64_t offset, const uint8_t *bytes,
                          size_t length, FilesProgress *out_progress, Fault *fault)
{
    FilesResult result = files_write(job->files, index, offset, bytes, length, fault);

    *out_progress = files_progress(job->files);
    return result;
}

/* ---- the start */

static bool put_defaults(Environment *environment, const Berth__GuestTask *task)
{
    EtcUser user;
    bool known = etc_find_user("/etc", task->uid, &user);
    const char *name = task->user[0] != '\0' || !known ? task->user : user.name;
    const char *home = known && access(user.home, F_OK) == 0 ? user.home : work_directory(task);

    return environment_set(environment, "PATH", DEFAULT_PATH) &&
           environment_set(environment, "HOME", home) &&
           environment_set(environment, "USER", name) &&
           environment_set(environment, "LOGNAME", name) &&
           environment_set(environment, "SHELL", "/bin/sh");
}

static bool put_file(Environment *environment, const char *path)
{
    size_t length;
    char *block = path_read(path, &length);
    bool ok = block != NULL && environment_put_block(environment, block, length);

    (void)unlink(path); /* it is in memory now, once is enough */
    free(block);
    return ok;
}

static bool build_environment(Job *job)
{
    const char *file = files_environment_path(job->files);

    job->environment = environment_new();
    if (job->environment == NULL || !put_defaults(job->environment, job->task) ||
        (file != NULL && !put_file(job->environment, file)))
        return false;
    for (size_t i = 0; i < job->task->n_extra_environment; i++)
        if (!environment_put(job->environment, job->task->extra_environment[i]))
            return false;
    return true;
}

static bool build_argv(Job *job)
{
    size_t count = job->task->n_command;

    job->argv = calloc(count + 2, sizeof *job->argv);
    if (job->argv == NULL)
        return false;
    for (size_t i = 0; i < count; i++)
        job->argv[i] = job->task->command[i];
    if (count == 0)
        job->argv[0] = (char *)files_script_path(job->files);
    return true;
}

bool job_start(Job *job, size_t pipe_bytes, Fault *fault)
{
    const char *script = files_script_path(job->files);
    bool ok;

    if (!build_environment(job) || !build_argv(job)) {
        fault_set(fault, "not enough memory in the guest for its environment");
        return false;
    }
    job->spec = (ProcessSpec){
        .program = script != NULL ? script : job->argv[0],
        .argv = job->argv,
        .envp = environment_list(job->environment),
        .directory = work_directory(job->task),
        .uid = job->task->uid,
        .gid = job->task->gid,
        .groups = job->task->groups,
        .n_groups = job->task->n_groups,
        .cgroup_fd = cgroups_open_job(),
        .pipe_bytes = pipe_bytes,
    };
    if (job->spec.cgroup_fd < 0) {
        fault_set_errno(fault, errno, "cannot open the job's control group in the guest");
        return false;
    }
    ok = process_start(&job->spec, &job->process, fault);
    close(job->spec.cgroup_fd);
    return ok;
}

ProcessSpec job_exec_spec(const Job *job)
{
    ProcessSpec spec = job->spec;

    spec.program = NULL;
    spec.argv = NULL;
    spec.cgroup_fd = -1;
    spec.pipe_bytes = 0;
    spec.has_input = true;
    return spec;
}

const Process *job_process(const Job *job)
{
    return job->process.pid > 0 ? &job->process : NULL;
}

/* ---- after it */

uint64_t job_check_start(Job *job)
{
    ProcessReport report;

    if (job->process.pid == 0 || job->reported || process_report(&job->process, &report) == 0)
        return job->start_usec;
    job->reported = true;
    close(job->process.report_fd);
    if (report.stage == PROCESS_STARTED) {
        job->start_usec = job_clock_usec();
    } else {
        job->exit.status = process_explain(&job->spec, &report, &job->exit_error);
        job->exit.error = job->exit_error.text;
    }
    return job->start_usec;
}

void job_note_ended(Job *job, pid_t pid, int wait_status)
{
    if (job->process.pid != pid || job->ended)
        return;
    (void)job_check_start(job);
    job->ended = true;
    job->end_usec = job_clock_usec();
    if (job->end_usec < job->start_usec) /* the clock was set back meanwhile */
        job->end_usec = job->start_usec;
    job->exit.disk_full = usage_disk_is_full();
    if (job->exit_error.text[0] != '\0')
        return; /* it never was the command */
    if (WIFSIGNALED(wait_status))
        job->exit.signal = (uint32_t)WTERMSIG(wait_status);
    else
        job->exit.status = (uint32_t)WEXITSTATUS(wait_status);
}

bool job_has_ended(const Job *job)
{
    return job->ended;
}

uint64_t job_end_usec(const Job *job)
{
    return job->end_usec;
}

const Berth__Exit *job_exit(Job *job)
{
    job->exit.oom_kills = cgroups_job_oom_kills();
    return &job->exit;
}
