/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what of the service Agent moves guests between nodes, and when this node can have one. */
#include <config.h>

#include "nodeagent/agent_private.h"

#include "common/error.h"
#include "common/id.h"

typedef struct {
    BerthAgent *agent;
    BerthRpcCall *call;
    BerthGuestId id;
    char *disk_id;
} Move;

static Move *move_new(BerthAgent *agent, const BerthGuestId *id, BerthRpcCall *call)
{
    Move *move = g_new0(Move, 1);
    *move = (Move){.agent = agent, .call = call, .id = *id};
    return move;
}

static void move_free(Move *move)
{
    g_free(move->disk_id);
    g_free(move);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Move, move_free)

static void fail(BerthRpcCall *call, int code, const BerthGuestId *id, const char *why)
{
    g_autofree char *name = berth_guest_name_format(id);
    g_autoptr(GError) error = g_error_new(BERTH_ERROR, code, "%s %s", name, why);
    berth_rpc_call_fail(call, error);
}

/* --- coming --------------------------------------------------------------------------------- */

static void answer_target(const BerthGuest *guest, BerthRpcCall *call)
{
    g_autoptr(BerthMigrationTarget) has = berth_guest_target(guest);
    Berth__MigrationTarget target = BERTH__MIGRATION_TARGET__INIT;
    Berth__ReceiveGuestReply reply = BERTH__RECEIVE_GUEST_REPLY__INIT;
    target.libvirt_uri = has->libvirt_uri;
    target.stream_uri = has->stream_uri;
    target.channel_path = has->channel_path;
    target.console_path = has->console_path;
    target.kernel = has->kernel;
    target.initramfs = has->initramfs;
    target.partition = has->partition == NULL ? (char *)"" : has->partition;
    target.guest_cpus = has->guest_cpus == NULL ? (char *)"" : has->guest_cpus;
    target.host_cpus = has->host_cpus == NULL ? (char *)"" : has->host_cpus;
    target.secret_uuid = has->secret_uuid == NULL ? (char *)"" : has->secret_uuid;
    target.sets_weight = has->sets_weight;
    reply.target = &target;
    berth_rpc_call_reply(call, &reply.base);
}

static void ignore_release(BerthFault fault, const GError *error, gpointer data)
{
}

static void answer_receive(BerthAgent *agent, const BerthGuestId *id, BerthRpcCall *call)
{
    BerthGuest *guest = berth_guest_table_find(agent->table, id);
    /* A scheduler that does not release those that have left has forgotten it; where nothing is to be waited for it is gone. */
    if (guest != NULL && berth_guest_phase(guest) == BERTH_PHASE_LEFT) {
        berth_guest_release_here(guest, ignore_release, NULL);
        guest = berth_guest_table_find(agent->table, id);
    }
    if (guest == NULL) {
        guest = berth_guest_new(&agent->context, id);
        berth_guest_table_add(agent->table, guest);
        berth_guest_expect(guest);
    }
    if (berth_guest_phase(guest) == BERTH_PHASE_ARRIVING || berth_guest_has_domain(guest))
        answer_target(guest, call);
    else
        fail(call, BERTH_ERROR_UNAVAILABLE, id, "was here before, and is still being removed");
}

static gpointer look_for_disk(BerthStorage *storage, gconstpointer disk_id, GError **error)
{
    g_strfreev(berth_storage_disk_clients(storage, disk_id, error));
    return NULL;
}

static void on_disk_found(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(Move) move = data;
    g_autoptr(GError) error = NULL;
    gboolean ok = berth_work_finish_empty(result, &error);
    if (ok && move->agent->table != NULL) {
        answer_receive(move->agent, &move->id, move->call);
        return;
    }
    if (ok)
        g_set_error_literal(&error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                            "the agent of the node ends");
    if (g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND))
        fail(move->call, BERTH_ERROR_FAILED_PRECONDITION, &move->id,
             "cannot come here: this node does not see its disk");
    else
        berth_rpc_call_fail(move->call, error);
}

/* What is in place before the other host is told to send anything: libvirt, storage with the guest's disk, a
 * channel of its own, kernel and initramfs (the agent does not run without). */
void berth_agent_receive_guest(BerthAgent *agent, const BerthGuestId *id, const char *disk_id,
                               BerthRpcCall *call)
{
    g_autofree char *why = berth_agent_cannot_start(agent);
    if (!g_str_equal(agent->config->storage.kind, "rbd")) {
        fail(call, BERTH_ERROR_UNSUPPORTED, id,
             "cannot be moved: its disk is in a directory, which hosts do not share safely");
        return;
    }
    if (why != NULL) {
        g_autofree char *text = g_strdup_printf("cannot come here: %s", why);
        fail(call, BERTH_ERROR_FAILED_PRECONDITION, id, text);
        return;
    }
    Move *move = move_new(agent, id, call);
    berth_storage_lane_run(agent->lane, BERTH_LANE_CONTROL, "look for a disk", look_for_disk,
                           g_strdup(disk_id), g_free, NULL, NULL, on_disk_found, move);
}

static void answer_take(BerthFault fault, const GError *error, gpointer data)
{
    g_autoptr(Move) move = data;
    Berth__TakeGuestReply reply = BERTH__TAKE_GUEST_REPLY__INIT;
    const BerthGuest *guest = berth_agent_find_guest(move->agent, &move->id);
    if (error != NULL) {
        berth_rpc_call_fail(move->call, error);
        return;
    }
    reply.storage_clients = guest == NULL ? NULL : berth_guest_storage_clients(guest);
    reply.n_storage_clients =
        reply.storage_clients == NULL ? 0 : g_strv_length(reply.storage_clients);
    berth_rpc_call_reply(move->call, &reply.base);
}

void berth_agent_take_guest(BerthAgent *agent, const BerthGuestId *id,
                            const Berth__TakeGuestRequest *request, BerthRpcCall *call)
{
    BerthGuest *guest = berth_guest_table_find(agent->table, id);
    if (guest != NULL)
        berth_guest_take(guest, request->frozen, request->waits, answer_take,
                         move_new(agent, id, call));
    else
        fail(call, BERTH_ERROR_NOT_FOUND, id, "has not come here");
}

/* --- leaving -------------------------------------------------------------------------------- */

static void answer_migrate(BerthFault fault, const GError *error, gpointer data)
{
    g_autoptr(Move) move = data;
    Berth__MigrateGuestReply reply = BERTH__MIGRATE_GUEST_REPLY__INIT;
    const BerthGuest *guest = berth_agent_find_guest(move->agent, &move->id);
    if (error != NULL) {
        berth_rpc_call_fail(move->call, error);
        return;
    }
    Berth__GuestStatus *status = guest == NULL ? NULL : berth_guest_status(guest);
    reply.usage = status == NULL ? NULL : status->usage;
    berth_rpc_call_reply(move->call, &reply.base);
    if (status != NULL)
        berth__guest_status__free_unpacked(status, NULL);
}

/* How this host's libvirt calls the other's (transfer full). */
static char *uri_with_pki(const BerthAgent *agent, const char *uri)
{
    const char *dir = agent->config->pki_dir;
    if (dir == NULL)
        return g_strdup(uri);
    g_autofree char *escaped = g_uri_escape_string(dir, "/", FALSE);
    return g_strdup_printf("%s?pkipath=%s", uri, escaped);
}

static char *or_null(char *text)
{
    return *text == '\0' ? NULL : text;
}

/* One that is not here has left, as far as this node can tell: who took it knows. */
void berth_agent_migrate_guest(BerthAgent *agent, const BerthGuestId *id,
                               const Berth__MigrateGuestRequest *request, BerthRpcCall *call)
{
    BerthGuest *guest = berth_guest_table_find(agent->table, id);
    const Berth__MigrationTarget *said = request->target;
    Move *move = move_new(agent, id, call);
    g_autoptr(GError) error = NULL;
    if (guest == NULL || berth_guest_has_left(guest)) {
        answer_migrate(BERTH_FAULT_NONE, NULL, move);
        return;
    }
    if (said == NULL) {
        berth_guest_leave_not(guest, request->frozen, answer_migrate, move);
        return;
    }
    if (!berth_migration_uris_check(said->libvirt_uri, said->stream_uri, &error)) {
        answer_migrate(BERTH_FAULT_NONE, error, move);
        return;
    }
    g_autofree char *uri = uri_with_pki(agent, said->libvirt_uri);
    const BerthMigrationTarget target = {
        .libvirt_uri = uri,
        .stream_uri = said->stream_uri,
        .channel_path = said->channel_path,
        .console_path = said->console_path,
        .kernel = said->kernel,
        .initramfs = said->initramfs,
        .partition = or_null(said->partition),
        .guest_cpus = or_null(said->guest_cpus),
        .host_cpus = or_null(said->host_cpus),
        .secret_uuid = or_null(said->secret_uuid),
        .is_opportunistic = request->opportunistic,
        .sets_weight = said->sets_weight,
    };
    berth_guest_leave(guest, &target, request->frozen, request->hurries, answer_migrate, move);
}
