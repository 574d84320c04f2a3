/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what the CLI knows of labs: where their sockets are. */
#include "cli/labs.h"

#include <gio/gio.h>
#include <gio/gunixsocketaddress.h>
#include <string.h>
#include <sys/un.h>

#define LAB_RUN    "/run/berth-lab"
#define SOCKET     "berthd.sock"
#define ANSWER_SEC 2u

static char *lab_run(void)
{
    const char *given = g_getenv("BERTH_LAB_RUN");
    return g_canonicalize_filename(given && *given ? given : LAB_RUN, NULL);
}

/* The file outlives a daemon that was killed. */
static gboolean answers(const char *path)
{
    if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
        return FALSE;
    g_autoptr(GSocketAddress) address = g_unix_socket_address_new(path);
    g_autoptr(GSocketClient) client = g_socket_client_new();
    g_socket_client_set_timeout(client, ANSWER_SEC);
    g_autoptr(GSocketConnection) connection =
        g_socket_client_connect(client, G_SOCKET_CONNECTABLE(address), NULL, NULL);
    return connection != NULL;
}

/* Of those that answer the one whose name is first, and never BUT; NULL: there is none. */
static char *find_socket(const char *run, const char *but)
{
    g_autoptr(GDir) dir = g_dir_open(run, 0, NULL);
    g_autofree char *first = NULL;
    for (const char *name; dir && (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename(run, name, SOCKET, NULL);
        if ((first && strcmp(path, first) >= 0) || g_str_equal(path, but) || !answers(path))
            continue;
        g_free(first);
        first = g_steal_pointer(&path);
    }
    return g_steal_pointer(&first);
}

/* The lab whose socket is at PATH; NULL: it is no lab's. */
static char *lab_of(const char *run, const char *path)
{
    g_autofree char *dir = g_path_get_dirname(path);
    g_autofree char *parent = g_path_get_dirname(dir);
    return g_str_equal(parent, run) ? g_path_get_basename(dir) : NULL;
}

char *berth_labs_advice(const char *socket)
{
    g_autofree char *run = lab_run();
    g_autofree char *path = g_canonicalize_filename(socket, NULL);
    g_autofree char *lab = lab_of(run, path);
    g_autofree char *other = find_socket(run, path);
    g_autofree char *start =
        lab ? g_strdup_printf("\"berth-lab start berthd --name %s\", or the whole lab with "
                              "\"berth-lab up --name %s\"",
                              lab, lab)
            : g_strdup("\"systemctl start berthd\"");
    return g_strdup_printf("; is it running? Start it with %s, or name another socket in "
                           "BERTH_SOCKET%s%s%s",
                           start, other ? " (there is a lab, at " : "", other ? other : "",
                           other ? ")" : "");
}
