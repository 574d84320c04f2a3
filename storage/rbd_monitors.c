/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the reading of monitor addresses. Asks no cluster. */
#include "storage/rbd_monitors.h"

#include <glib.h>
#include <string.h>

/* "HOST:PORT" of one address as ceph.conf and librados write it: "v2:10.0.0.1:3300/0",
 * "[::1]:6789", "ceph.example.org". Appends nothing for an empty one. */
static void add_monitor(GPtrArray *monitors, const char *address)
{
    if (g_str_has_prefix(address, "v1:") || g_str_has_prefix(address, "v2:"))
        address += 3;
    g_autofree char *monitor = g_strndup(address, strcspn(address, "/"));
    if (monitor[0] != '\0' &&
        !g_ptr_array_find_with_equal_func(monitors, monitor, g_str_equal, NULL))
        g_ptr_array_add(monitors, g_steal_pointer(&monitor));
}

static guint count(const char *text, char wanted)
{
    guint found = 0;
    for (; *text != '\0'; text++)
        found += *text == wanted ? 1 : 0;
    return found;
}

/* Brackets group the addresses of one monitor, "[v2:A:3300/0,v1:A:6789/0]", but also stand around
 * an IPv6 address. */
char **berth_rbd_monitors_parse(const char *mon_host)
{
    g_autoptr(GPtrArray) monitors = g_ptr_array_new_with_free_func(g_free);
    g_auto(GStrv) words = g_strsplit_set(mon_host, ", \t;", -1);
    for (guint i = 0; words[i] != NULL; i++) {
        char *word = words[i];
        if (g_str_has_prefix(word, "[v"))
            word++;
        if (count(word, ']') > count(word, '[')) /* the group's end */
            word[strlen(word) - 1] = '\0';
        add_monitor(monitors, word);
    }
    g_ptr_array_add(monitors, NULL);
    return (char **)g_ptr_array_steal(monitors, NULL);
}
