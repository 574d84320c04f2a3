/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A channel to a guest that the test scripts, at the other end of a real unix socket, and logs in
 * memory. */

#include "common/channel.h"
#include "nodeagent/guest_channel.h"
#include "proto/berth.pb-c.h"
#include "tests/lib/assert.h"

typedef struct {
    char *dir;
    BerthStorageConfig storage;
    BerthStorageLane *lane;
    gboolean storage_is_open;
    /* logs */
    GByteArray *logs[BERTH_N_STREAMS];
    gboolean logs_are_down;
    BerthLogWriter *writer;
    guint64 output_bytes_per_sec; /* before it is started; 0 = as many as it can */
    /* the channel and what it said */
    BerthGuestChannel *channel;
    guint answered, started, ended, usage, failed;
    gint64 delayed_usec;
    guint64 start_usec;
    char *failure;
    /* the guest */
    int listener;
    int fd; /* -1: not connected */
    guint connections;
    BerthChannelReader *reader;
    guint64 session;
    Berth__FromGuest__State state; /* said last on this connection, if has_state */
    gboolean has_state;
    guint hellos_again; /* Hellos that were said again for their time */
} ChannelFixture;

/* The setup and teardown of a test: a guest that listens, and no channel yet. */
int channel_fixture_make(void **state);
int channel_fixture_free(void **state);

/* --- the channel ---------------------------------------------------------------------------- */

/* Starts it; STDOUT_MAX and STDERR_MAX: what the guest may say at most that was acknowledged. */
void channel_fixture_start(ChannelFixture *fixture, gboolean is_adopted, guint64 stdout_max,
                           guint64 stderr_max);
/* The same, with an open session of a guest whose command runs. */
void channel_fixture_start_running(ChannelFixture *fixture);
/* Is the session open? Until it is, the channel sends nothing but Hello. */
gboolean channel_fixture_is_open(ChannelFixture *fixture);
/* Waits until the log of a stream has LENGTH bytes, which must be all. */
void channel_fixture_wait_for_log(ChannelFixture *fixture, guint stream, gsize length);

/* --- the guest ------------------------------------------------------------------------------ */

void guest_hang_up(ChannelFixture *fixture);
void guest_accept(ChannelFixture *fixture);
/* Accepts a connection and takes its Hello. */
void guest_greet(ChannelFixture *fixture);

/* NULL: there is no message now. (transfer full) */
Berth__ToGuest *guest_try_hear(ChannelFixture *fixture);
/* The next message, which must be BODY. (transfer full) */
Berth__ToGuest *guest_hear(ChannelFixture *fixture, Berth__ToGuest__BodyCase body);
void guest_hear_and_drop(ChannelFixture *fixture, Berth__ToGuest__BodyCase body);
/* Takes acknowledgements up to the one of so many bytes. */
void guest_hear_ack(ChannelFixture *fixture, guint64 stdout_bytes, guint64 stderr_bytes);

#define STATE(...)                                                                                 \
    ((Berth__FromGuest__State){PROTOBUF_C_MESSAGE_INIT(&berth__from_guest__state__descriptor),     \
                               __VA_ARGS__})

/* A frame with MESSAGE, which gets the session if it has none. (transfer full) */
GByteArray *guest_frame(ChannelFixture *fixture, Berth__FromGuest *message);
void guest_write(ChannelFixture *fixture, const guint8 *bytes, gsize length);
void guest_say(ChannelFixture *fixture, Berth__FromGuest *message);
void guest_say_state(ChannelFixture *fixture, Berth__FromGuest__State state);
void guest_say_output(ChannelFixture *fixture, gboolean is_stderr, guint64 offset, const char *text,
                      gsize length);
void guest_say_started(ChannelFixture *fixture, guint64 start_usec);
void guest_say_ended(ChannelFixture *fixture, guint64 stdout_bytes, guint64 stderr_bytes);

/* --- a task --------------------------------------------------------------------------------- */

typedef struct {
    Berth__StartGuestRequest request;
    Berth__GuestTask task;
    Berth__BlobRef environment;
    Berth__BlobRef input;
    Berth__GuestFile file;
    Berth__GuestFile *files[1];
    ProtobufCBinaryData inline_blobs[1];
    guint8 digests[2][BERTH_SHA256_BYTES];
    char *command[1];
} ChannelTask;

/* With an inline environment, and an input file of LENGTH bytes that is in storage. */
void channel_task_init(ChannelTask *task, const guint8 *content, gsize length);
/* (transfer full) */
BerthGuestFiles *channel_fixture_files(ChannelFixture *fixture, ChannelTask *task);
