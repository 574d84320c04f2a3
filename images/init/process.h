/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Starting a command, the job's or one beside it: the only fork for that in the guest. */

#include "images/init/fault.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/types.h>

typedef struct {
    const char *program;   /* looked up in the environment's PATH unless it has a slash */
    char *const *argv;     /* NULL-ended */
    char *const *envp;     /* NULL-ended */
    const char *directory; /* working directory */
    uid_t uid;
    gid_t gid;
    const gid_t *groups; /* supplementary */
    size_t n_groups;
    int cgroup_fd;     /* directory of the control group to run in; -1: stay */
    size_t pipe_bytes; /* wished size of the output pipes */
    bool has_input;    /* its standard input is a pipe, else /dev/null */
    /* Its standard streams are a terminal of this size, its own; NULL: as above. */
    const struct winsize *terminal;
} ProcessSpec;

/* Where a start failed. */
typedef enum {
    PROCESS_STARTED,
    PROCESS_SETUP,     /* becoming the user */
    PROCESS_DIRECTORY, /* entering the working directory */
    PROCESS_EXEC,
} ProcessStage;

typedef struct {
    ProcessStage stage;
    int err; /* errno value */
} ProcessReport;

typedef struct {
    pid_t pid;
    int out_fd;    /* read end of its stdout, or its terminal, non-blocking */
    int err_fd;    /* the same of stderr; -1: it has a terminal */
    int report_fd; /* readable once the program runs or could not be started: process_report() */
    int in_fd; /* write end of its stdin, or its terminal again, non-blocking; -1: it has none */
} Process;

/* Makes the process; whether the program could be executed is told by process_report(). Descriptors
 * are the caller's to close. false with FAULT set when there is no process. */
bool process_start(const ProcessSpec *spec, Process *out_process, Fault *fault);

/* Reads the report: 1 with *OUT_REPORT, 0 when it is not there yet. */
int process_report(const Process *process, ProcessReport *out_report);

/* Exit status and error text of a program that could not be started, as a shell would have it: 127 when
 * it is not there, else 126. */
uint32_t process_explain(const ProcessSpec *spec, const ProcessReport *report, Fault *out_why);
