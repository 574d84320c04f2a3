/* SPDX-License-Identifier: Apache-2.0 */
/* Owns nodes that are not there (bench/rig_node.h): what they say of themselves, what they are asked to do, and when
 * they measure. */
#include "config.h"

#include "bench/rig_node.h"

#include "bench/rig_guest.h"
#include "bench/rig_trace.h"
#include "common/error.h"
#include "common/message.h"
#include "nodeagent/session.h"

/* What is due so soon is looked at with the rest, as nodeagent/meter.c has it. */
#define EARLY_PART 2

#define HOST_MIB_PER_GUEST_MIB 2 /* a host has as much again as its guests may use of it */

struct RigNode {
    Berth__Agent_Service service; /* first: handlers get its address */
    ProtobufCService *services[2];
    RigThread *thread;
    char *name;
    char *host_id;
    char *instance;
    BerthTlsConfig *tls;
    BerthNodeConfig config; /* what the session reads of it */
    BerthGuestTable *table;
    BerthSession *session;
    gboolean has_joined;
    BerthPaceIntervals intervals;
    BerthPace pace;
    gint64 told_usec; /* of itself; 0: not yet */
    guint64 cpu_usec;
    BerthRpcTimer timer; /* of looks */
};

static RigNode *node_of(Berth__Agent_Service *service)
{
    return (RigNode *)(void *)service;
}

static BerthGuest *find(RigNode *node, const Berth__GuestId *id)
{
    const BerthGuestId key = {id->job, id->task, id->guest, id->epoch};
    return berth_guest_table_find(node->table, &key);
}

static void on_guest_changed(BerthGuest *guest, gpointer data)
{
    RigNode *node = data;
    berth_session_guest_changed(node->session, guest);
}

/* --- what it is asked to do -------------------------------------------------------------------- */

static void agent_start_guest(Berth__Agent_Service *service,
                              const Berth__StartGuestRequest *request,
                              Berth__StartGuestReply_Closure closure, void *closure_data)
{
    RigNode *node = node_of(service);
    const Berth__StartGuestReply reply = BERTH__START_GUEST_REPLY__INIT;
    BerthGuest *guest = find(node, request->id);
    if (guest == NULL)
        berth_guest_table_add(node->table,
                              rig_guest_new(node->thread, request, on_guest_changed, node));
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &reply.base);
    if (guest != NULL) {
        node->thread->counts.repeats++;
        rig_guest_tell_again(guest);
    }
}

static void agent_stop_guest(Berth__Agent_Service *service, const Berth__StopGuestRequest *request,
                             Berth__StopGuestReply_Closure closure, void *closure_data)
{
    RigNode *node = node_of(service);
    Berth__StopGuestReply reply = BERTH__STOP_GUEST_REPLY__INIT;
    BerthGuest *guest = find(node, request->id);
    node->thread->counts.stops++;
    reply.unknown = guest == NULL;
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &reply.base);
    if (guest != NULL)
        rig_guest_stop(guest);
}

static void agent_release_guest(Berth__Agent_Service *service,
                                const Berth__ReleaseGuestRequest *request,
                                Berth__ReleaseGuestReply_Closure closure, void *closure_data)
{
    RigNode *node = node_of(service);
    const Berth__ReleaseGuestReply reply = BERTH__RELEASE_GUEST_REPLY__INIT;
    BerthGuest *guest = find(node, request->id);
    node->thread->counts.releases++;
    if (guest != NULL) {
        rig_guest_released(guest);
        berth_guest_table_remove(node->table, guest);
    }
    berth_rpc_call_reply(BERTH_RPC_CALL(closure_data), &reply.base);
}

static void fail(BerthRpcCall *call, BerthErrorCode code, const char *why)
{
    g_autoptr(GError) error = g_error_new_literal(BERTH_ERROR, (gint)code, why);
    berth_rpc_call_fail(call, error);
}

static void set_frozen(RigNode *node, const Berth__GuestId *id, gboolean freezes,
                       const ProtobufCMessage *reply, BerthRpcCall *call)
{
    BerthGuest *guest = find(node, id);
    if (guest != NULL && rig_guest_freeze(guest, freezes))
        berth_rpc_call_reply(call, reply);
    else
        fail(call, BERTH_ERROR_NOT_FOUND, "there is no such guest, or it has ended");
}

static void agent_freeze_guest(Berth__Agent_Service *service,
                               const Berth__FreezeGuestRequest *request,
                               Berth__FreezeGuestReply_Closure closure, void *closure_data)
{
    const Berth__FreezeGuestReply reply = BERTH__FREEZE_GUEST_REPLY__INIT;
    set_frozen(node_of(service), request->id, TRUE, &reply.base, BERTH_RPC_CALL(closure_data));
}

static void agent_thaw_guest(Berth__Agent_Service *service, const Berth__ThawGuestRequest *request,
                             Berth__ThawGuestReply_Closure closure, void *closure_data)
{
    const Berth__ThawGuestReply reply = BERTH__THAW_GUEST_REPLY__INIT;
    set_frozen(node_of(service), request->id, FALSE, &reply.base, BERTH_RPC_CALL(closure_data));
}

#define REFUSES(name, Method)                                                                      \
    static void agent_##name(Berth__Agent_Service *service,                                        \
                             const Berth__##Method##Request *request,                              \
                             Berth__##Method##Reply_Closure closure, void *closure_data)           \
    {                                                                                              \
        node_of(service)->thread->counts.refusals++;                                               \
        fail(BERTH_RPC_CALL(closure_data), BERTH_ERROR_UNSUPPORTED,                                \
             "guests of this rig are neither moved nor changed");                                  \
    }
REFUSES(receive_guest, ReceiveGuest)
REFUSES(migrate_guest, MigrateGuest)
REFUSES(take_guest, TakeGuest)
REFUSES(resize_guest, ResizeGuest)
REFUSES(checkpoint_guest, CheckpointGuest)

/* --- what it says of itself -------------------------------------------------------------------- */

static Berth__NodeInfo *describe(gpointer data)
{
    const RigNode *node = data;
    const RigPlan *plan = node->thread->plan;
    Berth__NodeInfo info = BERTH__NODE_INFO__INIT;
    info.name = node->name;
    info.version = (char *)PACKAGE_VERSION;
    info.host_id = node->host_id;
    info.instance = node->instance;
    info.cpus = info.vcpus = plan->vcpus;
    info.memory_mib = plan->memory_mib * HOST_MIB_PER_GUEST_MIB;
    info.guest_memory_mib = plan->memory_mib;
    info.hypervisor = (char *)"none";
    info.acceleration = (char *)"kvm";
    return (Berth__NodeInfo *)(void *)berth_message_copy(&info.base);
}

static BerthPaceKind add_guests(RigNode *node, const GPtrArray *guests, Berth__NodeUsage *usage)
{
    static const BerthPaceLimits limits = {.near_pressure_percent = 5};
    guint64 host_mib = node->thread->plan->memory_mib * HOST_MIB_PER_GUEST_MIB;
    for (guint i = 0; i < guests->len; i++) {
        const BerthGuest *guest = g_ptr_array_index(guests, i);
        usage->cpu_milli += rig_guest_cpu_milli(guest);
        usage->guests_host_mib += berth_guest_usage(guest)->host_memory_mib;
    }
    usage->guests_used_mib = usage->guests_host_mib;
    usage->memory_total_mib = host_mib;
    usage->memory_free_mib = host_mib - MIN(usage->guests_host_mib, host_mib);
    return berth_pace_of_node(usage, &limits);
}

static gboolean is_to_tell(const RigNode *node, gint64 now_usec, gint64 early_usec)
{
    return node->told_usec == 0 ||
           now_usec - node->told_usec >=
               (gint64)node->intervals.msec[node->pace.kind] * 1000 - early_usec;
}

/* What is calm is looked at as often as what is not, and told of less often, as nodeagent/meter.c does. */
static void look(gpointer data)
{
    RigNode *node = data;
    gint64 now_usec = g_get_monotonic_time();
    gint64 early_usec = (gint64)node->intervals.msec[BERTH_PACE_NEAR] * 1000 / EARLY_PART;
    BerthPaceIntervals looks = node->intervals;
    Berth__NodeUsage usage = BERTH__NODE_USAGE__INIT;
    g_autoptr(GPtrArray) guests = berth_guest_table_list(node->table);
    looks.msec[BERTH_PACE_CALM] = looks.msec[BERTH_PACE_NORMAL];
    for (guint i = 0; i < guests->len; i++)
        rig_guest_look(g_ptr_array_index(guests, i), now_usec, &looks, early_usec);
    berth_pace_set(&node->pace, add_guests(node, guests, &usage), now_usec);
    node->cpu_usec += (guint64)usage.cpu_milli * looks.msec[BERTH_PACE_NORMAL];
    usage.cpu_usec = node->cpu_usec;
    gboolean tells = is_to_tell(node, now_usec, early_usec);
    if (tells)
        node->told_usec = now_usec;
    node->thread->counts.reports++;
    berth_session_report(node->session, tells ? &usage : NULL);
}

static void on_joined(const BerthPaceIntervals *intervals, gpointer data)
{
    RigNode *node = data;
    guint report_msec = node->thread->plan->report_msec;
    node->thread->counts.joins++;
    node->thread->counts.nodes += !node->has_joined;
    node->has_joined = TRUE;
    rig_trace(node->thread->plan, "join %s", node->name);
    node->intervals = *intervals;
    for (guint i = 0; i < BERTH_N_PACES && report_msec != 0; i++)
        node->intervals.msec[i] = report_msec;
    node->told_usec = 0;
    look(node);
    berth_rpc_poll_timer_start(node->thread->poll, &node->timer,
                               node->intervals.msec[BERTH_PACE_NORMAL], look, node);
}

static void on_known(gpointer data)
{
}

/* --- life ---------------------------------------------------------------------------------------- */

static BerthTlsConfig *load_tls(const RigPlan *plan, const char *name, GError **error)
{
    g_autofree char *file = g_strconcat(name, ".pem", NULL);
    g_autofree char *certificate = g_build_filename(plan->certificates, file, NULL);
    g_autofree char *key = g_build_filename(plan->certificates, "rig.key", NULL);
    g_autofree char *ca = g_build_filename(plan->certificates, "ca.pem", NULL);
    return berth_tls_config_new(certificate, key, ca, error);
}

RigNode *rig_node_new(RigThread *thread, const char *name, GError **error)
{
    static const Berth__Agent_Service service = BERTH__AGENT__INIT(agent_);
    g_autoptr(BerthTlsConfig) tls = load_tls(thread->plan, name, error);
    if (tls == NULL)
        return NULL;
    RigNode *node = g_new0(RigNode, 1);
    node->service = service;
    node->services[0] = &node->service.base;
    node->thread = thread;
    node->name = g_strdup(name);
    node->host_id = g_strconcat("rig-", name, NULL);
    node->instance = g_uuid_string_random();
    node->tls = g_steal_pointer(&tls);
    node->config.scheduler_address = thread->plan->address;
    node->config.scheduler_port = thread->plan->port;
    node->table = berth_guest_table_new();
    rig_trace(thread->plan, "dial %s", name);
    node->session = berth_session_new(&(BerthSessionConfig){.config = &node->config,
                                                            .tls = node->tls,
                                                            .services = node->services,
                                                            .table = node->table,
                                                            .node_info = describe,
                                                            .joined = on_joined,
                                                            .known = on_known,
                                                            .user_data = node});
    return node;
}

void rig_node_free(RigNode *node)
{
    berth_rpc_poll_timer_stop(&node->timer);
    berth_session_free(node->session);
    berth_guest_table_free(node->table);
    berth_tls_config_free(node->tls);
    g_free(node->name);
    g_free(node->host_id);
    g_free(node->instance);
    g_free(node);
}

void rig_node_join_again(RigNode *node)
{
    rig_trace(node->thread->plan, "part %s", node->name);
    berth_session_join_again(node->session);
}
