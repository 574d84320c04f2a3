/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The conversation with one guest: sessions, its task and files, its output and its end. It trusts
 * nothing that the guest says: what breaks the protocol ends the session, and a new one is opened
 * after a pause; a guest can only slow itself down. */

#include "nodeagent/guest_execs.h"
#include "nodeagent/guest_files.h"
#include "nodeagent/log_writer.h"

typedef struct BerthGuestChannel BerthGuestChannel;

/* A guest's words are cut to this length. */
#define BERTH_GUEST_TEXT_MAX_BYTES 4096u

typedef struct {
    /* The guest has answered in a new session; RUNS: its command does already, as it says. */
    void (*answered)(gboolean runs, gpointer user_data);
    /* The start of its command may take USEC longer: for a piece of a file that it is sent for the
     * first time, and for storage that kept it waiting for that. Whatever the guest says, it comes
     * once for each piece. */
    void (*delayed)(gint64 usec, gpointer user_data);
    /* The command runs; may be said again. */
    void (*started)(guint64 start_usec, gpointer user_data);
    /* The command has ended and all its output is durable; may be said again. Its strings may be no
     * UTF-8: berth_guest_channel_text(). */
    void (*ended)(const Berth__FromGuest__Ended *ended, gpointer user_data);
    void (*usage)(const Berth__Usage *usage, gpointer user_data);
    /* The task cannot be run: the guest says so, or one of its files cannot be had. DISK_FULL: its
     * files do not fit into the disk that it asked for. */
    void (*failed)(const char *message, gboolean disk_full, gpointer user_data);
} BerthGuestChannelFuncs;

typedef struct {
    const char *socket_path;
    BerthLogWriter *writer;             /* outlives the channel */
    guint64 acked_max[BERTH_N_STREAMS]; /* what the logs had when it was made */
    gboolean is_adopted;                /* another process has talked to the guest */
    guint usage_interval_msec;
    guint stall_msec;             /* that makes it measure at once; 0 = none */
    guint64 memory_max_mib;       /* that the guest may be given in all; 0 = it knows */
    guint64 output_bytes_per_sec; /* that it may send for long; 0 = as many as it can; up to 2^38 */
} BerthGuestChannelConfig;

/* Starts to connect. The callbacks must not free the channel. */
BerthGuestChannel *berth_guest_channel_new(const BerthGuestChannelConfig *config,
                                           const BerthGuestChannelFuncs *funcs, gpointer user_data);
void berth_guest_channel_free(BerthGuestChannel *channel);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthGuestChannel, berth_guest_channel_free)

/* What the guest is to do (transfer full). It is sent as far as the guest does not have it yet, and freed
 * when the command has started. Once. */
void berth_guest_channel_set_files(BerthGuestChannel *channel, BerthGuestFiles *files);
/* Sends SIGNAL to the job, now or as soon as the guest listens, and again in each new session. */
void berth_guest_channel_set_signal(BerthGuestChannel *channel, guint signal);
/* Sends SIGNAL to the job's command alone, once. FALSE: the guest does not listen now. */
gboolean berth_guest_channel_signal_command(BerthGuestChannel *channel, guint signal);
/* It is to measure now, and each USAGE_INTERVAL_MSEC from then on, also in new sessions. */
void berth_guest_channel_measure(BerthGuestChannel *channel, guint usage_interval_msec);
/* Its host holds RESIDENT_MIB (above 0) for it: of what is free there its kernel is to tell the host anew, if that is much. Said in
 * the present session, or never. */
void berth_guest_channel_give_back(BerthGuestChannel *channel, guint64 resident_mib);
/* The writer made progress: acknowledges, and reads on if there is room again. */
void berth_guest_channel_log_progress(BerthGuestChannel *channel);

/* Begins a new session on the same connection: the guest's clock is set, and what it said is said
 * again. For a guest that was paused. */
void berth_guest_channel_renew(BerthGuestChannel *channel);

/* The guest has answered in the present session. */
gboolean berth_guest_channel_is_open(const BerthGuestChannel *channel);
/* FALSE: nothing was sent through this channel that lets its command begin. */
gboolean berth_guest_channel_may_have_begun(const BerthGuestChannel *channel);
/* Sessions that a broken protocol has ended. */
guint berth_guest_channel_violations(const BerthGuestChannel *channel);

/* What a guest SAID as text that can be passed on: UTF-8, what is none replaced by U+FFFD, of
 * BERTH_GUEST_TEXT_MAX_BYTES of what it said at most (transfer full). */
char *berth_guest_channel_text(const char *said);

/* How much memory the guest may be given in all (0 = it knows) was not known before: it is told in a new session. */
void berth_guest_channel_set_memory_max(BerthGuestChannel *channel, guint64 mib);
/* Its connection may end because it goes to another node, and what ends with that is told so. */
void berth_guest_channel_set_leaving(BerthGuestChannel *channel, gboolean leaves);

/* Commands beside the job's own (transfer none). They end with the connection. */
BerthGuestExecs *berth_guest_channel_execs(BerthGuestChannel *channel);

/* For tests: takes FD as if it had just been connected. */
void berth_guest_channel_take_fd(BerthGuestChannel *channel, int fd);
