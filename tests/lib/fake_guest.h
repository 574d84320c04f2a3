/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The guest's end of a channel, as an agent sees it: it listens where QEMU would, answers every Hello
 * by itself, and says what the test has it say. It lives in the loop. */

#include <gio/gio.h>

#include "common/channel.h"
#include "proto/berth.pb-c.h"

typedef struct {
    gboolean has_task, is_running; /* its answer to Hello */
    guint64 said[2];               /* output that the test had it say */
    guint64 acked[2];
    guint hellos; /* that it has heard */
    guint64 session;
    guint64 memory_max_mib;         /* likewise: as the latest one says */
    guint measures;                 /* times that it was told to measure ... */
    guint measure_msec;             /* ... and how often from then on */
    guint gives_back;               /* times that it was told what its host holds for it ... */
    guint64 resident_mib;           /* ... and how much that was */
    guint signal;                   /* newest that it was sent; 0 = none */
    gboolean signal_is_for_command; /* ... alone */
    /* Private. */
    int listener, fd; /* -1: nobody has connected */
    guint listen_source, source;
    BerthChannelReader *reader;
} FakeGuest;

/* Listens at PATH. */
FakeGuest *fake_guest_new(const char *path);
/* Hangs up. */
void fake_guest_free(FakeGuest *guest);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(FakeGuest, fake_guest_free)

/* It has a file of its task; none was sent. */
void fake_guest_say_file_done(FakeGuest *guest);
void fake_guest_say_started(FakeGuest *guest);
/* More of its output, stdout or stderr. */
void fake_guest_say_output(FakeGuest *guest, gboolean is_stderr, const void *data, gsize length);
/* What it measured of itself. */
void fake_guest_say_usage(FakeGuest *guest, const Berth__Usage *usage);
/* Its command has ended with STATUS. */
void fake_guest_say_ended(FakeGuest *guest, guint32 status);
