/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The host's end of a guest's channel, scripted by a test. It keeps what an agent would have made
 * durable over as many connections as the test wants to cut, and it fails on a gap, on changed bytes
 * and on anything out of order. Blocking, with deadlines. */

#include "proto/berth.pb-c.h"

#include <gio/gio.h>

typedef struct {
    /* Made durable. */
    GByteArray *output[2]; /* stdout, stderr */
    gboolean started;
    guint64 start_usec;
    gint64 run_usec;                /* what the last Run said of the clock */
    Berth__FromGuest__Ended *ended; /* NULL: not yet */
    char *failure;                  /* NULL: none */
    gboolean disk_is_full;          /* the failure says */
    /* Of this connection. */
    Berth__FromGuest__State *state; /* NULL: no answer to Hello yet */
    GArray *files_done;             /* guint32, as they came */
    Berth__Usage *usage;            /* newest, or NULL */
    guint ended_count;              /* over all connections */
    guint usage_count;
    guint clock_questions;
    gboolean hold_acks; /* for tests: acknowledge nothing */
    /* Private. */
    char *path;
    int fd;
    guint64 session;
    struct BerthChannelReader *reader;
    guint32 usage_interval_msec;
} GuestPeer;

GuestPeer *guest_peer_new(const char *socket_path, guint32 usage_interval_msec);
void guest_peer_free(GuestPeer *peer);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GuestPeer, guest_peer_free)

/* Connects (again) and says Hello with a new session until the guest has answered with its state. */
gboolean guest_peer_connect(GuestPeer *peer, guint timeout_msec, GError **error);
/* Cuts the connection wherever it stands. */
void guest_peer_cut(GuestPeer *peer);

/* Sends MESSAGE, whose session is filled in; only the first LIMIT bytes of its frame, if not 0. */
gboolean guest_peer_send(GuestPeer *peer, Berth__ToGuest *message, gsize limit, GError **error);

/* Sends TASK, its files' CONTENTS (as many as the task has files) and Run. */
gboolean guest_peer_submit(GuestPeer *peer, Berth__GuestTask *task, GBytes *const *contents,
                           gsize n_contents, GError **error);
gboolean guest_peer_send_task(GuestPeer *peer, Berth__GuestTask *task, GError **error);
/* Sends file INDEX from OFFSET on. */
gboolean guest_peer_send_file(GuestPeer *peer, guint32 index, gsize offset, GBytes *content,
                              GError **error);
gboolean guest_peer_send_run(GuestPeer *peer, GError **error);
gboolean guest_peer_send_signal(GuestPeer *peer, int signal, GError **error);
gboolean guest_peer_send_give_back(GuestPeer *peer, guint64 resident_mib, GError **error);
gboolean guest_peer_send_power_off(GuestPeer *peer, GError **error);

/* Takes messages until DONE(peer, data) holds. FALSE when time is over or the guest broke a rule. */
typedef gboolean (*GuestPeerCondition)(const GuestPeer *peer, gpointer data);
gboolean guest_peer_wait(GuestPeer *peer, GuestPeerCondition done, gpointer data,
                         guint timeout_msec, GError **error);
gboolean guest_peer_wait_ended(GuestPeer *peer, guint timeout_msec, GError **error);
