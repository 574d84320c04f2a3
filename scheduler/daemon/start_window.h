/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>

/* Starts in moderation: each node is asked for a few at a time, and few requests (which may take
 * megabytes) are in memory at a time, however many jobs may start at once. Who waits takes turns by
 * node. */

#define BERTH_START_WINDOW_NODE   8u  /* not answered yet, of one node */
#define BERTH_START_WINDOW_MEMORY 16u /* being built, in all */

typedef struct BerthStartWindow BerthStartWindow;
BerthStartWindow *berth_start_window_new(void);
/* Forgets who waits. */
void berth_start_window_free(BerthStartWindow *window);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthStartWindow, berth_start_window_free)

/* FUNC, maybe from inside this, when a start on NODE may be built. */
typedef void (*BerthStartWindowFunc)(gpointer user_data);
void berth_start_window_enter(BerthStartWindow *window, guint32 node, BerthStartWindowFunc func,
                              gpointer user_data);
/* It was sent: its memory is free. At most once after FUNC. */
void berth_start_window_sent(BerthStartWindow *window);
/* It was answered or given up. Once after FUNC; WAS_SENT: sent() was called. */
void berth_start_window_leave(BerthStartWindow *window, guint32 node, gboolean was_sent);
