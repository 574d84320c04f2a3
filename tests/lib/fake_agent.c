/* SPDX-License-Identifier: Apache-2.0 */
/* Owns nodes that are not there (tests/lib/fake_agent.h): their connections, and what they say of
 * themselves. */
#include "config.h"

#include "tests/lib/fake_agent_internal.h"

#include "common/error.h"
#include "common/message.h"

/* --- the connection ------------------------------------------------------------------------------ */

static void take_error(FakeAgent *agent, const GError *error)
{
    g_clear_error(&agent->error);
    agent->error = g_error_copy(error);
}

static void forget_connection(FakeAgent *agent)
{
    g_cancellable_cancel(agent->connection);
    g_clear_object(&agent->connection);
    agent->connection = g_cancellable_new();
    agent->is_joined = FALSE;
    agent->peer = NULL;
}

static void on_joined(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, &error);
    if (g_error_matches(error, BERTH_ERROR, BERTH_ERROR_CANCELLED)) {
        return; /* that connection is over */
    }
    FakeAgent *agent = user_data;
    if (!reply) {
        take_error(agent, error);
        return;
    }
    agent->is_joined = TRUE;
    agent->n_strays = (guint)((const Berth__JoinReply *)(const void *)reply)->n_strays;
    g_clear_error(&agent->error);
    /* What has happened since it asked to join. */
    fake_agent_tell_all(agent);
}

/* Its strings are AGENT's, and this function's own. */
static Berth__NodeInfo describe_node(const FakeAgent *agent)
{
    static char instance[32];
    Berth__NodeInfo info = BERTH__NODE_INFO__INIT;
    g_snprintf(instance, sizeof instance, "run %u", agent->instance);
    info.instance = instance;
    info.name = (char *)(agent->config.claims ? agent->config.claims : agent->config.name);
    info.version = (char *)agent->version;
    info.vcpus = agent->config.vcpus;
    info.guest_memory_mib = agent->config.memory_mib;
    info.acceleration = (char *)"tcg";
    info.acceleration_reason = (char *)"qemu: failed to initialize kvm";
    info.cannot_start = agent->cannot_start;
    info.storage_client = agent->storage_client;
    info.host_id = agent->host_id;
    info.boot_id = agent->boot_id;
    return info;
}

static void change(FakeAgent *agent, char **what, const char *value)
{
    g_free(*what);
    *what = g_strdup(value);
    Berth__NodeInfo info = describe_node(agent);
    Berth__NodeChangedRequest request = BERTH__NODE_CHANGED_REQUEST__INIT;
    request.info = &info;
    if (agent->is_joined) {
        berth_rpc_peer_call_async(agent->peer, &berth__sessions__descriptor, "NodeChanged",
                                  &request.base, 0, agent->connection, fake_agent_on_said, agent);
    }
}

void fake_agent_set_cannot_start(FakeAgent *agent, const char *why)
{
    change(agent, &agent->cannot_start, why);
}

void fake_agent_set_version(FakeAgent *agent, const char *version)
{
    agent->version = version;
}

void fake_agent_set_storage_client(FakeAgent *agent, const char *addresses)
{
    change(agent, &agent->storage_client, addresses);
}

void fake_agent_restart(FakeAgent *agent)
{
    agent->instance++;
    fake_agent_drop(agent);
}

void fake_agent_set_host(FakeAgent *agent, const char *host_id, const char *boot_id)
{
    g_free(agent->host_id);
    g_free(agent->boot_id);
    agent->host_id = g_strdup(host_id ? host_id : "");
    agent->boot_id = g_strdup(boot_id ? boot_id : "");
    agent->booted_usec = g_get_monotonic_time();
}

void fake_agent_hide_uptime(FakeAgent *agent)
{
    agent->hides_uptime = TRUE;
}

static void join(FakeAgent *agent)
{
    g_autoptr(GPtrArray) guests = g_ptr_array_new();
    g_autofree FakeWords *words = fake_agent_describe_all(agent, guests, TRUE);
    Berth__NodeInfo info = describe_node(agent);
    Berth__JoinRequest request = BERTH__JOIN_REQUEST__INIT;
    request.info = &info;
    request.guests = (Berth__GuestStatus **)guests->pdata;
    request.n_guests = guests->len;
    if (!agent->hides_uptime)
        request.uptime_msec = (guint64)(g_get_monotonic_time() - agent->booted_usec) / 1000 + 1;
    berth_rpc_peer_call_async(agent->peer, &berth__sessions__descriptor, "Join", &request.base, 0,
                              agent->connection, on_joined, agent);
}

static void on_connected(BerthRpcPeer *peer, gpointer user_data)
{
    FakeAgent *agent = user_data;
    forget_connection(agent);
    agent->peer = peer;
    join(agent);
}

static void on_dial_failed(const GError *reason, guint retry_msec, gpointer user_data)
{
    FakeAgent *agent = user_data;
    forget_connection(agent);
    take_error(agent, reason);
}

gboolean fake_agent_is_joined(FakeAgent *agent)
{
    return agent->is_joined;
}

guint fake_agent_n_strays(FakeAgent *agent)
{
    return agent->n_strays;
}

const GError *fake_agent_error(FakeAgent *agent)
{
    return agent->error;
}

void fake_agent_drop(FakeAgent *agent)
{
    if (agent->peer) {
        berth_rpc_peer_close(agent->peer, TRUE);
        agent->is_joined = FALSE;
    }
}

void fake_agent_cut(FakeAgent *agent)
{
    forget_connection(agent);
    g_clear_pointer(&agent->dialer, berth_rpc_dialer_free);
}

void fake_agent_heal(FakeAgent *agent)
{
    static const BerthRpcLimits limits = {.max_frame_bytes = 16u << 20,
                                          .queue_high_bytes = 4u << 20,
                                          .max_open_calls = 4096,
                                          .hello_timeout_msec = 10000};
    if (!agent->dialer) {
        g_clear_error(&agent->error);
        agent->dialer =
            berth_rpc_dialer_new("127.0.0.1", agent->config.port, agent->tls, agent->services,
                                 &limits, on_connected, on_dial_failed, agent);
    }
}

/* --- life ---------------------------------------------------------------------------------------- */

FakeAgent *fake_agent_new(const FakeAgentConfig *config)
{
    g_autoptr(GError) error = NULL;
    FakeAgent *agent = g_new0(FakeAgent, 1);
    agent->config = *config;
    fake_agent_guests_init(agent);
    fake_agent_execs_init(agent);
    agent->tls = berth_tls_config_new(config->certificate, config->key, config->ca, &error);
    if (!agent->tls) {
        g_error("fake node %s: %s", config->name, error->message);
    }
    agent->connection = g_cancellable_new();
    agent->repeats = 1;
    agent->version = PACKAGE_VERSION;
    agent->cannot_start = g_strdup("");
    agent->storage_client = g_strdup("");
    fake_agent_set_host(agent, config->host_id, config->boot_id);
    fake_agent_heal(agent);
    return agent;
}

void fake_agent_free(FakeAgent *agent)
{
    fake_agent_cut(agent);
    fake_agent_guests_end_delays(agent);
    while (g_main_context_iteration(NULL, FALSE)) {
        /* answers that have come already */
    }
    fake_agent_guests_clear(agent);
    fake_agent_execs_clear(agent);
    g_object_unref(agent->connection);
    berth_tls_config_free(agent->tls);
    g_clear_error(&agent->error);
    g_free(agent->cannot_start);
    g_free(agent->storage_client);
    g_free(agent->host_id);
    g_free(agent->boot_id);
    g_free(agent);
}

void fake_agent_set_repeats(FakeAgent *agent, guint repeats)
{
    agent->repeats = repeats;
}

void fake_agent_set_delay(FakeAgent *agent, guint delay_msec)
{
    agent->delay_msec = delay_msec;
}

guint fake_agent_n_answers(FakeAgent *agent)
{
    return agent->n_answers;
}

guint fake_agent_n_kept(FakeAgent *agent)
{
    return agent->n_kept;
}
