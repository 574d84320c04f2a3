/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Frames over a non-blocking descriptor: one is received at a time, and one sent at a time. */

#include "proto/berth.pb-c.h"

#include <stdbool.h>

typedef struct Link Link;

/* FD is borrowed and non-blocking. All memory is taken now. NULL when there is not enough. */
Link *link_new(int fd);
void link_free(Link *link);

typedef enum {
    LINK_MORE,   /* something was read: take the messages out, then read again */
    LINK_EMPTY,  /* nothing to read now */
    LINK_CLOSED, /* the host has closed; a message that was cut is forgotten */
} LinkRead;

LinkRead link_read(Link *link);

/* The next message that was read, for berth__to_guest__free_unpacked(message, NULL); NULL: read
 * more. Frames that are no message are skipped. */
Berth__ToGuest *link_next(Link *link);

/* Whether everything was written, so that link_send() may be called. */
bool link_is_idle(const Link *link);

/* Makes MESSAGE the frame to write. false when it is larger than a frame may be. */
bool link_send(Link *link, const Berth__FromGuest *message);

typedef enum {
    LINK_WRITTEN, /* all of it */
    LINK_BLOCKED, /* the rest when the descriptor is writable: an event will tell */
    LINK_SHORT,   /* no memory in the kernel for now: nothing will tell, try again soon */
} LinkWrite;

/* A frame once begun is always finished, also after the host has closed: so the stream that the next
 * host reads has whole frames from the first header on. */
LinkWrite link_flush(Link *link);
