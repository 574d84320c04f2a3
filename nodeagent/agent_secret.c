/* SPDX-License-Identifier: Apache-2.0 */
/* Owns whether this host's libvirt has the secret with which QEMU opens disks. Without it every guest would fail to start, one
 * after the other, on a node that is up. Libvirt tells of no change: it is asked now and then, and sooner while it has none. */
#include <config.h>

#include "nodeagent/agent_private.h"

#include "common/error.h"

#define LOOK_SEC       300u
#define LOOK_AGAIN_SEC 20u

static void on_look_due(gpointer data)
{
    BerthAgent *agent = data;
    agent->secret_source = 0;
    berth_agent_look_for_secret(agent);
}

static void look_later(BerthAgent *agent, guint after_sec)
{
    g_clear_handle_id(&agent->secret_source, g_source_remove);
    agent->secret_source = g_timeout_add_once(after_sec * 1000, on_look_due, agent);
}

static void note(BerthAgent *agent, const GError *error)
{
    const char *why = error == NULL ? NULL : error->message;
    if (g_strcmp0(why, agent->secret_error) == 0)
        return;
    if (why != NULL)
        g_warning("no guest can be started here: %s: berth-setup(7), STORAGE, says how it is made",
                  why);
    else
        g_message("libvirt has the secret for storage now");
    g_free(agent->secret_error);
    agent->secret_error = g_strdup(why);
    berth_agent_tell_changed(agent);
}

/* A libvirt that does not answer, or lacks something else, is another matter. */
static gboolean is_known(const GError *error)
{
    return error == NULL || error->code == BERTH_ERROR_NOT_FOUND ||
           error->code == BERTH_ERROR_INVALID_ARGUMENT ||
           error->code == BERTH_ERROR_PERMISSION_DENIED;
}

static void on_secret(GObject *source, GAsyncResult *result, gpointer data)
{
    BerthAgent *agent = data;
    g_autoptr(GError) error = NULL;
    berth_hypervisor_check_secret_finish(result, &error);
    if (agent->table == NULL || g_error_matches(error, BERTH_ERROR, BERTH_ERROR_CANCELLED))
        return; /* the agent ends */
    if (is_known(error))
        note(agent, error);
    look_later(agent, error == NULL ? LOOK_SEC : LOOK_AGAIN_SEC);
}

void berth_agent_look_for_secret(BerthAgent *agent)
{
    const char *uuid = agent->config->storage.secret_uuid;
    if (uuid != NULL)
        berth_hypervisor_check_secret_async(agent->hypervisor, uuid, on_secret, agent);
}
