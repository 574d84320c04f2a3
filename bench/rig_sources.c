/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the context of timers of the real session (nodeagent/session.c), of which an agent has one, in the main context. Here
 * each has the context of its thread: the linker gives these instead of GLib's (--wrap, Makefile-bench.am). */
#include "config.h"

#include <glib.h>

guint __wrap_g_timeout_add_once(guint interval, GSourceOnceFunc func, gpointer data);
gboolean __wrap_g_source_remove(guint tag);

typedef struct {
    GSourceOnceFunc func;
    gpointer data;
} Once;

static gboolean run_once(gpointer data)
{
    const Once *once = data;
    once->func(once->data);
    return G_SOURCE_REMOVE;
}

guint __wrap_g_timeout_add_once(guint interval, GSourceOnceFunc func, gpointer data)
{
    g_autoptr(GSource) source = g_timeout_source_new(interval);
    Once *once = g_new(Once, 1);
    *once = (Once){func, data};
    g_source_set_callback(source, run_once, once, g_free);
    return g_source_attach(source, g_main_context_get_thread_default());
}

gboolean __wrap_g_source_remove(guint tag)
{
    GSource *source = g_main_context_find_source_by_id(g_main_context_get_thread_default(), tag);
    if (source != NULL)
        g_source_destroy(source);
    return source != NULL;
}
