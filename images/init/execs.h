/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Commands beside the job's own, which the host runs for people: as the job's user, within the job's
 * limits, and no longer than the job. */

#include "images/init/process.h"
#include "proto/berth.pb-c.h"

#include <stdbool.h>
#include <stdint.h>

/* The control group of each, by number. */
typedef struct {
    /* A new one, as ProcessSpec.cgroup_fd; false with errno set: there is none. */
    bool (*open)(unsigned number, int *out_fd);
    void (*signal)(unsigned number, int signal);
    bool (*is_populated)(unsigned number);
    void (*remove)(unsigned number);
} ExecGroups;

typedef struct Execs Execs;

/* NULL with errno set. */
Execs *execs_new(const ExecGroups *groups);
void execs_free(Execs *execs); /* NULL is allowed; processes are left alone */

/* Readable when execs_pump() has something to do. */
int execs_fd(const Execs *execs);
void execs_pump(Execs *execs);

/* What the host says: one of the ToGuest.Exec... BASE: see job_exec_spec(); NULL: no command can be
 * begun now. */
void execs_handle(Execs *execs, const Berth__ToGuest *message, const ProcessSpec *base);
/* A new session: those of the N IDS say again what the host may have missed; the others end. */
void execs_renew(Execs *execs, const uint64_t *ids, size_t n);
/* The next message about them, in OUT_MESSAGE and owned by EXECS; false: there is none now. It counts as sent. */
bool execs_next(Execs *execs, Berth__FromGuest *out_message);

/* Process PID has ended. */
void execs_note_ended(Execs *execs, pid_t pid, int wait_status);
/* The job has ended: so do they, at once. */
void execs_kill(Execs *execs);
