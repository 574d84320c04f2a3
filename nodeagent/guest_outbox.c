/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what one guest is to be told when there is room for it in its channel. Sessions and the connection are guest_channel.c's.
 *
 * Invariants: nothing is sent outside of a session, or without room; an acknowledgement never runs ahead of what is durable. */
#include <config.h>

#include "nodeagent/guest_outbox.h"

struct BerthGuestOutbox {
    BerthLogWriter *writer;
    const BerthGuestOutboxFuncs *funcs;
    gpointer user_data;
    guint usage_interval_msec;
    gboolean is_measure_due;

    /* The session. */
    gboolean is_open;
    guint64 acked[BERTH_N_STREAMS];
    guint64 resident_mib; /* 0: it is to be told of nothing */
};

typedef union {
    Berth__ToGuest__Ack ack;
    Berth__ToGuest__Measure measure;
    Berth__ToGuest__GiveBack give_back;
} Body;

/* Makes of what is due a MESSAGE with BODY, and counts it as sent. FALSE: nothing is. */
typedef gboolean (*Take)(BerthGuestOutbox *outbox, Body *body, Berth__ToGuest *message);

static gboolean take_ack(BerthGuestOutbox *outbox, Body *body, Berth__ToGuest *message)
{
    gboolean is_news = FALSE;
    for (guint i = 0; i < BERTH_N_STREAMS; i++) {
        guint64 durable = berth_log_writer_durable(outbox->writer, i);
        is_news = is_news || durable > outbox->acked[i];
        outbox->acked[i] = durable;
    }
    berth__to_guest__ack__init(&body->ack);
    body->ack.stdout_bytes = outbox->acked[BERTH_STDOUT];
    body->ack.stderr_bytes = outbox->acked[BERTH_STDERR];
    message->body_case = BERTH__TO_GUEST__BODY_ACK;
    message->ack = &body->ack;
    return is_news;
}

static gboolean take_measure(BerthGuestOutbox *outbox, Body *body, Berth__ToGuest *message)
{
    gboolean is_due = outbox->is_measure_due;
    outbox->is_measure_due = FALSE;
    berth__to_guest__measure__init(&body->measure);
    body->measure.interval_msec = outbox->usage_interval_msec;
    message->body_case = BERTH__TO_GUEST__BODY_MEASURE;
    message->measure = &body->measure;
    return is_due;
}

static gboolean take_give_back(BerthGuestOutbox *outbox, Body *body, Berth__ToGuest *message)
{
    guint64 resident_mib = outbox->resident_mib;
    outbox->resident_mib = 0;
    berth__to_guest__give_back__init(&body->give_back);
    body->give_back.resident_mib = resident_mib;
    message->body_case = BERTH__TO_GUEST__BODY_GIVE_BACK;
    message->give_back = &body->give_back;
    return resident_mib != 0;
}

void berth_guest_outbox_go_on(BerthGuestOutbox *outbox)
{
    static const Take takes[] = {take_ack, take_measure, take_give_back};
    for (guint i = 0; i < G_N_ELEMENTS(takes); i++) {
        Berth__ToGuest message = BERTH__TO_GUEST__INIT;
        Body body;
        if (!outbox->is_open || !outbox->funcs->has_room(outbox->user_data))
            return;
        if (takes[i](outbox, &body, &message))
            outbox->funcs->send(&message, outbox->user_data);
    }
}

void berth_guest_outbox_measure(BerthGuestOutbox *outbox, guint usage_interval_msec)
{
    outbox->usage_interval_msec = usage_interval_msec;
    outbox->is_measure_due = TRUE;
    berth_guest_outbox_go_on(outbox);
}

void berth_guest_outbox_give_back(BerthGuestOutbox *outbox, guint64 resident_mib)
{
    outbox->resident_mib = resident_mib;
    berth_guest_outbox_go_on(outbox);
}

/* --- sessions --------------------------------------------------------------------------------- */

guint berth_guest_outbox_hello(BerthGuestOutbox *outbox)
{
    outbox->is_measure_due = FALSE;
    return outbox->usage_interval_msec;
}

void berth_guest_outbox_begin(BerthGuestOutbox *outbox, const guint64 acked[BERTH_N_STREAMS])
{
    outbox->is_open = TRUE;
    for (guint i = 0; i < BERTH_N_STREAMS; i++)
        outbox->acked[i] = acked[i];
    berth_guest_outbox_go_on(outbox);
}

void berth_guest_outbox_pause(BerthGuestOutbox *outbox)
{
    outbox->is_open = FALSE;
    outbox->resident_mib = 0;
}

/* --- life ------------------------------------------------------------------------------------- */

BerthGuestOutbox *berth_guest_outbox_new(BerthLogWriter *writer, guint usage_interval_msec,
                                         const BerthGuestOutboxFuncs *funcs, gpointer user_data)
{
    BerthGuestOutbox *outbox = g_new0(BerthGuestOutbox, 1);
    outbox->writer = writer;
    outbox->usage_interval_msec = usage_interval_msec;
    outbox->funcs = funcs;
    outbox->user_data = user_data;
    return outbox;
}

void berth_guest_outbox_free(BerthGuestOutbox *outbox)
{
    g_free(outbox);
}
