/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sends a guest its task, its files in pieces and then Run, from where the guest has come to in each
 * session. Storage that is slow or away is waited for. */

#include "nodeagent/guest_files.h"

typedef struct BerthTaskSender BerthTaskSender;

typedef struct {
    /* Less waits to be written than a guest may keep waiting. */
    gboolean (*has_room)(gpointer user_data);
    /* MESSAGE needs its session yet. */
    void (*send)(Berth__ToGuest *message, gpointer user_data);
    /* As BerthGuestChannelFuncs has them. */
    void (*delayed)(gint64 usec, gpointer user_data);
    void (*failed)(const char *message, gpointer user_data);
} BerthTaskSenderFuncs;

/* FUNCS stays valid. The callbacks must not free the sender. */
BerthTaskSender *berth_task_sender_new(const BerthTaskSenderFuncs *funcs, gpointer user_data);
void berth_task_sender_free(BerthTaskSender *sender);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthTaskSender, berth_task_sender_free)

/* What the guest is to do (transfer full), sent if a session is open. */
void berth_task_sender_set_files(BerthTaskSender *sender, BerthGuestFiles *files);
/* The guest has said what it has: from there it goes on, until the session ends. */
void berth_task_sender_begin(BerthTaskSender *sender, const Berth__FromGuest__State *state);
/* The session has ended. */
void berth_task_sender_pause(BerthTaskSender *sender);
/* The command has begun: the files are freed, nothing more is sent. */
void berth_task_sender_finish(BerthTaskSender *sender);
/* FALSE: the guest was never told to run its command in a session of this sender, and has not said that
 * it does. */
gboolean berth_task_sender_may_have_begun(const BerthTaskSender *sender);
/* There may be room again. */
void berth_task_sender_go_on(BerthTaskSender *sender);
