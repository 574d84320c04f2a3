/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the host wants of the guest and what the guest must tell it: the protocol without its I/O.
 * Messages from the host go in, the next message to send comes out; nothing is queued, so that a new
 * session can begin at any point and memory is bounded. */

#include "images/init/fault.h"
#include "images/init/files.h"
#include "images/init/ring.h"
#include "proto/berth.pb-c.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One frame carries this much output at most: large, so that frames are few, and well below
 * BERTH_CHANNEL_PAYLOAD_MAX. */
#define SESSION_OUTPUT_MAX (256u * 1024u)

/* What the session makes happen. All are called from session_handle(), but for what is to be sent:
 * ask_clock and exec_next. */
typedef struct {
    void (*set_clock)(void *data, uint64_t clock_usec);
    /* The host is about to be asked for its clock: the stamp for that. And its answer. */
    uint64_t (*ask_clock)(void *data);
    void (*take_clock)(void *data, const Berth__ToGuest__Clock *answer);
    void (*set_usage_interval)(void *data, uint32_t msec);
    /* Now, and then each MSEC. */
    void (*measure)(void *data, uint32_t msec);
    /* Its host holds so much memory for it. */
    void (*give_back)(void *data, uint64_t resident_mib);
    /* Measures also when tasks stall for memory for so long in a second; 0: it does not. */
    void (*watch_stalls)(void *data, uint32_t msec);
    /* It may be given so much memory in all. */
    void (*set_memory_max)(void *data, uint64_t mib);
    /* Prepares for the task, which stays the caller's. */
    bool (*take_task)(void *data, const Berth__GuestTask *task, FilesProgress *out_progress,
                      Fault *fault);
    FilesResult (*take_file)(void *data, uint32_t index, uint64_t offset, const uint8_t *bytes,
                             size_t length, FilesProgress *out_progress, Fault *fault);
    bool (*start)(void *data, Fault *fault); /* all files are there */
    /* To all of the job's processes, or to the one that it was started with alone. False: there is none
     * to send it to, or no such signal. */
    bool (*signal)(void *data, uint32_t signal, bool command_only);
    void (*power_off)(void *data);
    /* Commands beside the job's own: those of the N IDS go on in the new session, the others end; what
     * the host says of them; and what they say, valid until the next call. */
    void (*exec_renew)(void *data, const uint64_t *ids, size_t n);
    void (*exec_handle)(void *data, const Berth__ToGuest *message);
    bool (*exec_next)(void *data, Berth__FromGuest *message);
} SessionOps;

typedef enum {
    SESSION_WAITING,  /* for the task and its files */
    SESSION_STARTING, /* Run was accepted, the command is on its way to exec */
    SESSION_RUNNING,  /* the command executes */
    SESSION_ENDED,    /* it has ended and its output is complete, though not all acknowledged */
    SESSION_FAILED,   /* berth-init cannot go on */
} SessionPhase;

typedef struct Session Session;

/* OUT and ERR are borrowed. NULL when out of memory. */
Session *session_new(const SessionOps *ops, void *data, Ring *out, Ring *err);
void session_free(Session *session);

/* Takes one message from the host. What is out of place is answered with State or ignored. */
void session_handle(Session *session, const Berth__ToGuest *message);

/* What happened in the guest. */
void session_started(Session *session, uint64_t start_usec);
/* The command has ended and all its output is in the rings. Copies EXIT (its error too) and USAGE. */
void session_ended(Session *session, const Berth__Exit *exit, uint64_t end_usec,
                   const Berth__Usage *usage);
void session_fail(Session *session, const char *message);
/* The newest measurement; replaces one that was not sent yet. */
void session_measured(Session *session, const Berth__Usage *usage);
/* It is time to ask the host for its clock again; each Hello makes it so too. */
void session_ask_clock(Session *session);

SessionPhase session_phase(const Session *session);
/* What session_fail() said first; "" before. */
const char *session_failure(const Session *session);

/* The next message to send, valid until the next call on SESSION; NULL when there is none now.
 * It counts as sent. */
const Berth__FromGuest *session_next(Session *session);
