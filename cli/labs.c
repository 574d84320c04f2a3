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

/* Of the one that answers; NULL: there is none. *OUT_N: so many do. (transfer full) */
static char *find_socket(const char *run, guint *out_n)
{
    g_autoptr(GDir) dir = g_dir_open(run, 0, NULL);
    g_autofree char *found = NULL;
    guint n = 0;
    for (const char *name; dir && (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename(run, name, SOCKET, NULL);
        if (!answers(path))
            continue;
        n++;
        g_free(found);
        found = g_steal_pointer(&path);
    }
    *out_n = n;
    return g_steal_pointer(&found);
}

/* The lab whose socket is at PATH; NULL: it is no lab's. */
static char *lab_of(const char *run, const char *path)
{
    g_autofree char *dir = g_path_get_dirname(path);
    g_autofree char *parent = g_path_get_dirname(dir);
    return g_str_equal(parent, run) ? g_path_get_basename(dir) : NULL;
}

/* " (there is a lab, at ...)": of several it is not known which was meant. (transfer full) */
static char *labs_note(const char *run)
{
    guint n;
    g_autofree char *socket = find_socket(run, &n);
    if (n > 1)
        return g_strdup_printf(" (there are %u labs: berth-lab list)", n);
    return n == 1 ? g_strdup_printf(" (there is a lab, at %s)", socket) : g_strdup("");
}

char *berth_labs_advice(const char *socket)
{
    g_autofree char *run = lab_run();
    g_autofree char *path = g_canonicalize_filename(socket, NULL);
    g_autofree char *lab = lab_of(run, path);
    if (lab)
        return g_strdup_printf("; is it running? Start it with \"berth-lab start berthd --name "
                               "%s\", or the whole lab with \"berth-lab up --name %s\"",
                               lab, lab);
    g_autofree char *note = labs_note(run);
    return g_strdup_printf("; is it running? Start it with \"systemctl start berthd\", or name "
                           "another socket in BERTH_SOCKET%s",
                           note);
}
