/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Frames over one connection to a guest's channel (common/channel.h): non-blocking, bounded. What
 * the messages mean is guest_channel.h's. */

#include <glib.h>

#include "proto/berth.pb-c.h"

typedef struct BerthGuestLink BerthGuestLink;

typedef struct {
    /* A whole message; BYTES that it took on the channel. Its strings may be no UTF-8. */
    void (*message)(const Berth__FromGuest *message, gsize bytes, gpointer user_data);
    /* BYTES came that are no message. */
    void (*noise)(gsize bytes, gpointer user_data);
    /* What was queued is written: more may be sent. */
    void (*drained)(gpointer user_data);
    /* The other end is gone. Nothing is called after it. */
    void (*closed)(gpointer user_data);
} BerthGuestLinkFuncs;

/* Takes FD, a connected stream socket, and starts to read. FUNCS stays valid. */
BerthGuestLink *berth_guest_link_new(int fd, const BerthGuestLinkFuncs *funcs, gpointer user_data);
/* Closes it. Allowed inside its callbacks; none comes after that. */
void berth_guest_link_free(BerthGuestLink *link);

/* MESSAGE packs into BERTH_CHANNEL_PAYLOAD_MAX at most. */
void berth_guest_link_send(BerthGuestLink *link, const Berth__ToGuest *message);
/* Bytes that are no frame: they end one that another connection has cut off. */
void berth_guest_link_send_padding(BerthGuestLink *link, gsize bytes);
/* Bytes that wait to be written. */
gsize berth_guest_link_queued(const BerthGuestLink *link);

/* While PAUSED nothing is read: the guest has to wait. */
void berth_guest_link_set_paused(BerthGuestLink *link, gboolean paused);
