/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is another for one of many nodes in one process than for one agent on its host: the linker gives these instead
 * of GLib's (--wrap, Makefile-bench.am). Timers of the real session (nodeagent/session.c) are those of the node's thread; and
 * each connection to this host comes from another address, since berthd lets one address only so many begin at once. */
#include "config.h"

#include "bench/rig.h"

#include <gio/gio.h>

guint __wrap_g_timeout_add_once(guint interval, GSourceOnceFunc func, gpointer data);
gboolean __wrap_g_source_remove(guint tag);
GSocketClient *__real_g_socket_client_new(void);
GSocketClient *__wrap_g_socket_client_new(void);

gboolean rig_sources_are_local;

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

GSocketClient *__wrap_g_socket_client_new(void)
{
    GSocketClient *client = __real_g_socket_client_new();
    if (!rig_sources_are_local)
        return client;
    g_autofree char *text = g_strdup_printf("127.%d.%d.%d", g_random_int_range(1, 255),
                                            g_random_int_range(0, 256), g_random_int_range(1, 255));
    g_autoptr(GSocketAddress) address = g_inet_socket_address_new_from_string(text, 0);
    g_socket_client_set_local_address(client, address);
    return client;
}
