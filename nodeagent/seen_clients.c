/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "nodeagent/seen_clients.h"

static const char *const *as_const(char **clients)
{
    return (const char *const *)clients;
}

static gboolean are_in(const char *const *some, const char *const *all)
{
    for (gsize i = 0; some[i] != NULL; i++) {
        if (!g_strv_contains(all, some[i]))
            return FALSE;
    }
    return TRUE;
}

static gboolean are_same(const char *const *some, const char *const *others)
{
    return are_in(some, others) && are_in(others, some);
}

static void add_all(GStrvBuilder *builder, const char *const *clients)
{
    for (gsize i = 0; clients[i] != NULL; i++)
        g_strv_builder_add(builder, clients[i]);
}

/* Whether there are any that were not known. */
static gboolean add(BerthSeenClients *self, const char *const *seen)
{
    g_autoptr(GStrvBuilder) all = g_strv_builder_new();
    if (self->known != NULL && are_in(seen, as_const(self->known)))
        return FALSE;
    if (self->known != NULL) {
        g_auto(GStrv) before = berth_seen_clients_but(as_const(self->known), seen);
        add_all(all, as_const(before));
    }
    add_all(all, seen);
    g_strfreev(self->known);
    self->known = g_strv_builder_end(all);
    return TRUE;
}

/* Who is seen, and since when. */
static void look(BerthSeenClients *self, const char *const *seen, gint64 now_usec)
{
    if (self->seen == NULL || !are_same(seen, as_const(self->seen))) {
        g_strfreev(self->seen);
        self->seen = g_strdupv((char **)seen);
        self->seen_usec = now_usec;
    }
    self->is_steady = now_usec - self->seen_usec >= BERTH_SEEN_CLIENTS_STEADY_USEC;
}

gboolean berth_seen_clients_note(BerthSeenClients *self, const char *const *seen, gint64 now_usec)
{
    gboolean has_more = add(self, seen);
    look(self, seen, now_usec);
    /* If nobody is, the guest is out of sight. */
    if (seen[0] == NULL || !self->is_steady || are_in(as_const(self->known), seen))
        return has_more;
    g_strfreev(self->known);
    self->known = g_strdupv((char **)seen);
    return TRUE;
}

void berth_seen_clients_miss(BerthSeenClients *self)
{
    g_clear_pointer(&self->seen, g_strfreev);
    self->is_steady = FALSE;
}

gboolean berth_seen_clients_are_settled(const BerthSeenClients *self)
{
    return self->is_steady && g_strv_length(self->known) == 1 &&
           are_same(as_const(self->known), as_const(self->seen));
}

void berth_seen_clients_clear(BerthSeenClients *self)
{
    g_strfreev(self->known);
    g_strfreev(self->seen);
    *self = (BerthSeenClients){NULL};
}

char **berth_seen_clients_but(const char *const *clients, const char *const *those)
{
    g_autoptr(GStrvBuilder) others = g_strv_builder_new();
    for (gsize i = 0; clients[i] != NULL; i++) {
        if (!g_strv_contains(those, clients[i]))
            g_strv_builder_add(others, clients[i]);
    }
    return g_strv_builder_end(others);
}
