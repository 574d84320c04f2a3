/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The task that this guest was made for, from its description to its exit status. */

#include "images/init/fault.h"
#include "images/init/files.h"
#include "images/init/process.h"
#include "proto/berth.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

#define JOB_RUN_DIRECTORY     "/run/berth"
#define JOB_DEFAULT_DIRECTORY "/work"

typedef struct Job Job;

Job *job_new(void); /* NULL when out of memory */
void job_free(Job *job);

/* Prepares the guest for TASK (copied): host name, user, group, working directory. Once only. */
bool job_take_task(Job *job, const Berth__GuestTask *task, FilesProgress *out_progress,
                   Fault *fault);
FilesResult job_take_file(Job *job, uint32_t index, uint64_t offset, const uint8_t *bytes,
                          size_t length, FilesProgress *out_progress, Fault *fault);

/* Makes the command's process. All files are there. */
bool job_start(Job *job, size_t pipe_bytes, Fault *fault);
/* NULL before the start. */
const Process *job_process(const Job *job);

/* How a command beside it is to be run, but for its arguments and its group: as the job's own user, with its
 * environment, where it began. Owned by JOB; it was started. */
ProcessSpec job_exec_spec(const Job *job);

/* Looks whether the command runs by now: returns its start time (of the guest's clock, in microseconds), 0:
 * not yet, or it could not be executed. */
uint64_t job_check_start(Job *job);

/* Takes note of an ended process. */
void job_note_ended(Job *job, pid_t pid, int wait_status);
/* The command itself has ended; other processes of the job may be left. */
bool job_has_ended(const Job *job);
uint64_t job_end_usec(const Job *job);
/* How it ended; complete once no process of the job is left. Owned by JOB. */
const Berth__Exit *job_exit(Job *job);

/* Microseconds since the Unix epoch, of the guest's clock. */
uint64_t job_clock_usec(void);
