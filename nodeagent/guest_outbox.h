/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a guest is to be told of as it is when it can be told: how much of its output is durable, how often it is to measure
 * itself, and what its host holds for it. A guest that does not read makes nothing grow: what it was not told of yet is replaced by
 * what comes after it. */

#include "nodeagent/log_writer.h"
#include "proto/berth.pb-c.h"

typedef struct BerthGuestOutbox BerthGuestOutbox;

typedef struct {
    /* Less waits to be written than a guest may keep waiting. */
    gboolean (*has_room)(gpointer user_data);
    /* MESSAGE needs its session yet. */
    void (*send)(Berth__ToGuest *message, gpointer user_data);
} BerthGuestOutboxFuncs;

/* WRITER has the guest's output, and outlives it; FUNCS stays valid. The callbacks must not free it. */
BerthGuestOutbox *berth_guest_outbox_new(BerthLogWriter *writer, guint usage_interval_msec,
                                         const BerthGuestOutboxFuncs *funcs, gpointer user_data);
void berth_guest_outbox_free(BerthGuestOutbox *outbox);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthGuestOutbox, berth_guest_outbox_free)

/* It is to measure itself now, and each USAGE_INTERVAL_MSEC from then on, also in new sessions. */
void berth_guest_outbox_measure(BerthGuestOutbox *outbox, guint usage_interval_msec);
/* Its host holds RESIDENT_MIB (above 0) for it. Said in the present session, or never. */
void berth_guest_outbox_give_back(BerthGuestOutbox *outbox, guint64 resident_mib);

/* --- for the channel -------------------------------------------------------------------------- */

/* A Hello is sent that says how often it is to measure itself: so often, in ms. */
guint berth_guest_outbox_hello(BerthGuestOutbox *outbox);
/* The guest has answered in a session: of its output so many bytes were acknowledged to it. */
void berth_guest_outbox_begin(BerthGuestOutbox *outbox, const guint64 acked[BERTH_N_STREAMS]);
/* The session has ended. */
void berth_guest_outbox_pause(BerthGuestOutbox *outbox);
/* There may be room again, or more of its output is durable. */
void berth_guest_outbox_go_on(BerthGuestOutbox *outbox);
