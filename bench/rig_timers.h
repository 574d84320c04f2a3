/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Any number of timers as one source of a main context, whose loop looks at each source each time that it turns.
 * Times are monotonic. */

#include <glib.h>

typedef struct RigTimers RigTimers;
typedef void (*RigTimerFunc)(gpointer data);

/* Part of what it is for. All zero: not armed. */
typedef struct {
    gint64 due_usec;
    guint64 serial;
    RigTimerFunc func; /* NULL: not armed */
    gpointer data;
} RigTimer;

/* CONTEXT is that of the thread that uses them. */
RigTimers *rig_timers_new(GMainContext *context);
/* None is armed any more. */
void rig_timers_free(RigTimers *timers);

/* FUNC is called once at DUE_USEC, or as soon as it can be. Replaces what TIMER was armed for. */
void rig_timers_arm(RigTimers *timers, RigTimer *timer, gint64 due_usec, RigTimerFunc func,
                    gpointer data);
void rig_timers_disarm(RigTimers *timers, RigTimer *timer);
