/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how the table of guests is brought in line with what libvirt has: at the start, and whenever
 * the connection to libvirt was lost and events may have been missed.
 *
 * A domain that nobody knows after the start was made by a start that was given up. It never ran a
 * command (only an agent tells a guest what to run), so that it can be destroyed. */
#include <config.h>

#include "nodeagent/agent_private.h"

#include <glib/gstdio.h>
#include <string.h>

#include "common/error.h"
#include "common/id.h"
#include "nodeagent/console.h"
#include "nodeagent/memory_pipe.h"

#define LIST_AGAIN_MSEC 1000u

static void on_stray_destroyed(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(GError) error = NULL;
    if (!berth_hypervisor_destroy_finish(result, &error))
        g_debug("%s", error->message); /* the next list finds it again */
}

void berth_agent_destroy_stray(BerthAgent *agent, const char *name, const BerthGuestId *id)
{
    g_message("%s runs, but nobody knows of it any more: destroying it", name);
    berth_hypervisor_destroy_async(agent->hypervisor, name, id, 0, on_stray_destroyed, NULL);
}

static void take_domain(BerthAgent *agent, const BerthDomain *domain)
{
    BerthGuest *guest = berth_guest_table_find(agent->table, &domain->metadata.id);
    if (guest != NULL && !berth_guest_is_over(guest))
        return;
    if (agent->is_ready) {
        berth_agent_destroy_stray(agent, domain->name, &domain->metadata.id);
        return;
    }
    guest = berth_guest_new(&agent->context, &domain->metadata.id);
    berth_guest_table_add(agent->table, guest);
    if (berth_guest_is_coming(guest, domain))
        berth_guest_expect_again(guest, domain);
    else
        berth_guest_adopt(guest, domain);
}

/* A list under way, and whom it must have. */
typedef struct {
    BerthAgent *agent;
    GHashTable *expected; /* names of guests whose domains ran when it was begun */
} Listing;

static void listing_free(Listing *listing)
{
    g_hash_table_unref(listing->expected);
    g_free(listing);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Listing, listing_free)

/* Guests that should have been in the list, and were not, have ended meanwhile. */
static void take_missing(const Listing *listing)
{
    GHashTableIter iter;
    gpointer name;
    g_hash_table_iter_init(&iter, listing->expected);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        BerthGuest *guest = berth_guest_table_find_name(listing->agent->table, name);
        if (guest != NULL)
            berth_guest_domain_missing(guest);
    }
}

static void on_list_again(gpointer data)
{
    BerthAgent *agent = data;
    agent->list_source = 0;
    berth_agent_list_domains(agent);
}

/* Without a list nobody is missing. A new connection makes a new one by itself. */
static void fail_list(BerthAgent *agent, const GError *error)
{
    if (!agent->is_ready) {
        berth_agent_fail(agent, error);
        return;
    }
    g_debug("%s", error->message);
    if (agent->list_source == 0 && berth_hypervisor_is_connected(agent->hypervisor))
        agent->list_source = g_timeout_add_once(LIST_AGAIN_MSEC, on_list_again, agent);
}

static void on_listed(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(Listing) listing = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) domains = berth_hypervisor_list_finish(result, &error);
    BerthAgent *agent = listing->agent;
    if (g_error_matches(error, BERTH_ERROR, BERTH_ERROR_CANCELLED))
        return; /* the agent ends */
    if (domains == NULL) {
        fail_list(agent, error);
        return;
    }
    for (guint i = 0; i < domains->len; i++) {
        const BerthDomain *domain = g_ptr_array_index(domains, i);
        g_hash_table_remove(listing->expected, domain->name);
        take_domain(agent, domain);
    }
    take_missing(listing);
    if (!agent->is_ready)
        berth_agent_become_ready(agent);
}

void berth_agent_list_domains(BerthAgent *agent)
{
    g_autoptr(GPtrArray) guests = berth_guest_table_list(agent->table);
    Listing *listing = g_new0(Listing, 1);
    listing->agent = agent;
    listing->expected = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    for (guint i = 0; i < guests->len; i++) {
        const BerthGuest *guest = g_ptr_array_index(guests, i);
        if (berth_guest_has_domain(guest))
            g_hash_table_add(listing->expected, g_strdup(berth_guest_name(guest)));
    }
    g_clear_handle_id(&agent->list_source, g_source_remove);
    berth_hypervisor_list_async(agent->hypervisor, on_listed, listing);
}

/* --- what the dead have left ---------------------------------------------------------------- */

/* Removes FILE of DIR if NAME is a guest's that is not there. */
static void sweep_file(BerthAgent *agent, const char *dir, const char *file, const char *name)
{
    BerthGuestId id;
    if (!berth_guest_name_parse(name, &id, NULL) ||
        berth_guest_table_find(agent->table, &id) != NULL)
        return;
    g_autofree char *path = g_build_filename(dir, file, NULL);
    g_unlink(path);
}

static char *socket_owner(const char *file)
{
    gboolean is_socket = g_str_has_suffix(file, ".sock");
    return g_strndup(file, is_socket ? strlen(file) - strlen(".sock") : 0);
}

/* OWNER_OF a file's name is the name of its guest, or none. */
static void sweep_dir(BerthAgent *agent, const char *path, char *(*owner_of)(const char *file))
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *file;
    while (dir != NULL && (file = g_dir_read_name(dir)) != NULL) {
        g_autofree char *name = owner_of(file);
        sweep_file(agent, path, file, name);
    }
}

void berth_agent_sweep(BerthAgent *agent)
{
    sweep_dir(agent, agent->config->run_dir, socket_owner);
    berth_memory_pipe_sweep(agent->config->run_dir);
    sweep_dir(agent, agent->config->console_dir, berth_console_owner);
}
