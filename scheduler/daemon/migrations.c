/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the moves of guests between nodes, between the commit of MIGRATE and its result:
 *
 *     RECEIVING  the node that it goes to makes ready, and says where it is to be sent
 *     LEAVING    the node that it is on sends it there, where it stands still
 *     ARRIVED    it is there, and stands still until it is durable who has its disk open there
 *     TAKING     it goes on
 *     STAYING    it is not to go, or cannot: the node that it is on says so
 *
 * Nothing of it is stored but that a move is open, which is in the task's record: each step may be asked for
 * again, of whichever agent, and the answers say where the guest is.
 *
 * Invariants: a guest is let go on the other node only after its own has said that it has left; the core
 * hears that it has not moved only after that node has said that it is there. So it runs at most once,
 * whoever is killed, and whatever gets lost on the way. Where it goes on it can be cut off from the first moment. */
#include "config.h"

#include "scheduler/daemon/migrations.h"

#include "common/error.h"
#include "common/id.h"
#include "scheduler/daemon/event_log.h"
#include "scheduler/daemon/records.h"
#include "scheduler/daemon/sessions.h"

#include <string.h>

#define RECEIVE_TIMEOUT_MSEC 60000u
#define TAKE_TIMEOUT_MSEC    60000u
#define RELEASE_TIMEOUT_MSEC 120000u
#define RETRY_MIN_MSEC       250u
#define RETRY_MAX_MSEC       8000u
/* A node that has still to remove what an earlier visit left is asked so often, for about 8 s in all. */
#define RECEIVE_TRIES_MAX 6u

struct BerthMigrations {
    BerthDaemon *daemon;
    GHashTable *by_guest; /* BerthGuestId -> Migration, owned */
};

typedef enum {
    RECEIVING,
    LEAVING,
    ARRIVED,
    TAKING,
    STAYING,
} Step;

typedef struct {
    BerthMigrations *migrations;
    BerthCoreAction action;
    Step step;
    Berth__ReceiveGuestReply *received; /* of RECEIVING */
    Berth__Usage *used;                 /* of LEAVING: up to then, in all */
    Berth__TakeGuestReply *taken;       /* of ARRIVED, then of TAKING */
    char *why;                          /* it stays; NULL: it is not known to */
    guint tries;
    guint retry_msec;
    guint timer;
    gboolean awaits_node;      /* the one that it goes to: it is back, or lost */
    GCancellable *cancellable; /* of its calls */
} Migration;

/* A call of it that is under way. */
typedef struct {
    Migration *migration;
    GCancellable *cancellable; /* triggered: MIGRATION is no more, or has changed its mind */
} Call;

static void step(Migration *migration);

/* --- life --------------------------------------------------------------------------------------- */

static void migration_free(gpointer data)
{
    Migration *migration = data;
    g_cancellable_cancel(migration->cancellable);
    g_object_unref(migration->cancellable);
    g_clear_handle_id(&migration->timer, g_source_remove);
    berth_message_free(migration->received ? &migration->received->base : NULL);
    berth_message_free(migration->used ? &migration->used->base : NULL);
    berth_message_free(migration->taken ? &migration->taken->base : NULL);
    g_free(migration->why);
    g_free(migration);
}

BerthMigrations *berth_migrations_new(BerthDaemon *daemon)
{
    BerthMigrations *migrations = g_new0(BerthMigrations, 1);
    migrations->daemon = daemon;
    migrations->by_guest =
        g_hash_table_new_full(berth_guest_id_hash, berth_guest_id_equal_func, NULL, migration_free);
    return migrations;
}

void berth_migrations_free(BerthMigrations *migrations)
{
    if (!migrations)
        return;
    g_hash_table_unref(migrations->by_guest);
    g_free(migrations);
}

static void forget(Migration *migration)
{
    g_hash_table_remove(migration->migrations->by_guest, &migration->action.guest);
}

static const char *node_name(const Migration *migration, guint32 node)
{
    return berth_node_table_name(migration->migrations->daemon->nodes, node);
}

/* Its own node has said so. */
static gboolean has_left(const Migration *migration)
{
    return migration->step == ARRIVED || migration->step == TAKING;
}

/* The core waits for its result, and for no later one's. */
static gboolean is_open(const Migration *migration, BerthCoreGuest *out_guest)
{
    BerthDaemon *daemon = migration->migrations->daemon;
    const BerthGuestId *id = &migration->action.guest;
    return !berth_engine_is_stopped(daemon->engine) &&
           berth_core_get_guest(daemon->core, id->job, id->task, id->guest, out_guest) &&
           out_guest->id.epoch == id->epoch && out_guest->op == BERTH_OP_MIGRATING &&
           out_guest->op_serial == migration->action.serial &&
           out_guest->to == migration->action.to;
}

/* --- the end ------------------------------------------------------------------------------------ */

static void on_released(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, &error);
    if (!reply)
        g_debug("what a guest that did not come has left: %s", error->message);
}

static void fill_id(const BerthGuestId *guest, Berth__GuestId *id)
{
    berth__guest_id__init(id);
    id->job = guest->job;
    id->task = guest->task;
    id->guest = guest->guest;
    id->epoch = guest->epoch;
}

void berth_migrations_release(BerthMigrations *migrations, guint32 node, const BerthGuestId *guest)
{
    BerthRpcPeer *peer = berth_sessions_peer(migrations->daemon->sessions, node);
    Berth__ReleaseGuestRequest request = BERTH__RELEASE_GUEST_REQUEST__INIT;
    Berth__GuestId id;
    fill_id(guest, &id);
    request.id = &id;
    request.keep_disk = TRUE;
    if (peer)
        berth_rpc_peer_call_async(peer, &berth__agent__descriptor, "ReleaseGuest", &request.base,
                                  RELEASE_TIMEOUT_MSEC, NULL, on_released, NULL);
}

static void log_failure(const Migration *migration, BerthTurn *turn)
{
    const BerthCoreAction *action = &migration->action;
    g_autofree char *guest = berth_guest_name_format(&action->guest);
    Berth__Event failure = BERTH__EVENT__INIT;
    g_message("%s stays on %s: %s", guest, node_name(migration, action->node), migration->why);
    berth_event_op_failed(action, node_name(migration, action->node), migration->why, &failure);
    berth_turn_log(turn, &failure);
}

static void log_loss(const Migration *migration, BerthTurn *turn)
{
    const BerthCoreAction *action = &migration->action;
    g_autofree char *guest = berth_guest_name_format(&action->guest);
    g_autofree char *why =
        g_strdup_printf("its guest was lost on the way to %s", node_name(migration, action->to));
    Berth__Event failure = BERTH__EVENT__INIT;
    g_message("%s has left %s: %s", guest, node_name(migration, action->node), why);
    berth_event_op_failed(action, node_name(migration, action->node), why, &failure);
    failure.reason = BERTH__REASON__REASON_GUEST_VANISHED;
    berth_turn_log(turn, &failure);
}

typedef struct {
    BerthMigrations *migrations;
    guint32 node;
    BerthGuestId guest;
} Release;

static void on_settled(const GError *error, gpointer user_data)
{
    g_autofree Release *release = user_data;
    if (!error)
        berth_migrations_release(release->migrations, release->node, &release->guest);
}

/* It is where it is to be once that is durable: until then it is asked again there what it has used. */
static void take_arrival(const Migration *migration, BerthTurn *turn)
{
    const BerthCoreAction *action = &migration->action;
    const Berth__TakeGuestReply *taken = migration->taken;
    BerthTaskEntry *entry = berth_job_table_find_task(migration->migrations->daemon->jobs,
                                                      action->guest.job, action->guest.task);
    Release *release = g_new(Release, 1);
    *release = (Release){migration->migrations, action->node, action->guest};
    berth_turn_then(turn, on_settled, release);
    if (entry)
        berth_record_take_move(entry, migration->used, node_name(migration, action->to),
                               taken ? taken->storage_clients : NULL,
                               taken ? taken->n_storage_clients : 0);
}

/* NODE: where it is. What comes of it is decided, and MIGRATION is no more. */
static void tell(Migration *migration, gboolean ok)
{
    BerthDaemon *daemon = migration->migrations->daemon;
    const BerthCoreAction *action = &migration->action;
    BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_MIGRATED,
                            .guest = action->guest,
                            .node = ok ? action->to : action->node,
                            .result = {.ok = ok, .serial = action->serial}};
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    g_autoptr(GError) error = NULL;
    if (ok)
        take_arrival(migration, turn);
    else
        log_failure(migration, turn);
    if (!berth_turn_event(turn, &event, NULL, &error))
        g_critical("the core refused the result of a move: %s", error->message);
    berth_turn_commit(turn);
    forget(migration);
}

/* It was there, as far as its node can tell, and is not: nobody is told that it has arrived. */
static void tell_vanished(Migration *migration)
{
    BerthDaemon *daemon = migration->migrations->daemon;
    const BerthCoreAction *action = &migration->action;
    BerthCoreEvent arrived = {.kind = BERTH_EVENT_GUEST_MIGRATED,
                              .guest = action->guest,
                              .node = action->to,
                              .result = {.ok = TRUE, .serial = action->serial}};
    BerthCoreEvent gone = {.kind = BERTH_EVENT_GUEST_GONE,
                           .guest = action->guest,
                           .node = action->to,
                           .gone = {.reason = BERTH_REASON_GUEST_VANISHED}};
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    g_autoptr(GError) error = NULL;
    log_loss(migration, turn);
    take_arrival(migration, turn);
    if (!berth_turn_event_untold(turn, &arrived, &error) ||
        !berth_turn_event(turn, &gone, NULL, &error))
        g_critical("the core refused the result of a move: %s", error->message);
    berth_turn_commit(turn);
    forget(migration);
}

/* --- steps -------------------------------------------------------------------------------------- */

static void on_due(gpointer user_data)
{
    Migration *migration = user_data;
    migration->timer = 0;
    step(migration);
}

static void step_later(Migration *migration)
{
    migration->timer = g_timeout_add_once(migration->retry_msec, on_due, migration);
    migration->retry_msec = MIN(migration->retry_msec * 2, RETRY_MAX_MSEC);
}

/* RECEIVING and LEAVING are tried again together, and ever less often: that the one works again and again
 * is no progress. */
static void go_to(Migration *migration, Step next)
{
    migration->step = next;
    if (next != LEAVING)
        migration->retry_msec = RETRY_MIN_MSEC;
    step(migration);
}

static void stay(Migration *migration, const char *why)
{
    if (!migration->why)
        migration->why = g_strdup(why);
    go_to(migration, STAYING);
}

static gboolean may_pass(const GError *error)
{
    return g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE) ||
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED);
}

static void on_received(Migration *migration, ProtobufCMessage *reply, const GError *error)
{
    if (reply) {
        berth_message_free(migration->received ? &migration->received->base : NULL);
        migration->received = (Berth__ReceiveGuestReply *)(void *)reply;
        go_to(migration, LEAVING);
    } else if (may_pass(error) && ++migration->tries < RECEIVE_TRIES_MAX) {
        step_later(migration);
    } else {
        stay(migration, error->message);
    }
}

/* What it has used goes with it. */
static void take_usage(Migration *migration, const Berth__MigrateGuestReply *reply)
{
    const BerthGuestId *id = &migration->action.guest;
    const BerthTaskEntry *entry =
        berth_job_table_find_task(migration->migrations->daemon->jobs, id->job, id->task);
    berth_message_free(migration->used ? &migration->used->base : NULL);
    migration->used = entry ? berth_record_usage_of_left(entry, reply->usage) : NULL;
}

static void on_left(Migration *migration, ProtobufCMessage *reply, const GError *error)
{
    if (reply) {
        take_usage(migration, (const Berth__MigrateGuestReply *)(const void *)reply);
        berth_message_free(reply);
        go_to(migration, ARRIVED);
    } else if (may_pass(error)) {
        migration->step = migration->step == LEAVING ? RECEIVING : STAYING;
        step_later(migration);
    } else {
        if (!migration->why)
            migration->why = g_strdup(error->message);
        berth_migrations_release(migration->migrations, migration->action.to,
                                 &migration->action.guest);
        tell(migration, FALSE);
    }
}

static void call_free(Call *call)
{
    g_object_unref(call->cancellable);
    g_free(call);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Call, call_free)

static void on_clients_durable(const GError *error, gpointer user_data)
{
    g_autoptr(Call) call = user_data;
    if (!error && !g_cancellable_is_cancelled(call->cancellable))
        go_to(call->migration, TAKING);
}

static void keep_clients(Migration *migration)
{
    BerthDaemon *daemon = migration->migrations->daemon;
    const BerthGuestId *id = &migration->action.guest;
    BerthTaskEntry *entry = berth_job_table_find_task(daemon->jobs, id->job, id->task);
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    Call *call = g_new(Call, 1);
    *call = (Call){migration, g_object_ref(migration->cancellable)};
    if (entry) {
        berth_record_take_arrival(entry, node_name(migration, migration->action.to),
                                  migration->taken->storage_clients,
                                  migration->taken->n_storage_clients);
        berth_store_batch_put_task(berth_turn_batch(turn), entry->stored, FALSE);
    }
    berth_turn_then(turn, on_clients_durable, call);
    berth_turn_commit(turn);
}

static void on_taken(Migration *migration, ProtobufCMessage *reply, const GError *error)
{
    if (reply) {
        berth_message_free(migration->taken ? &migration->taken->base : NULL);
        migration->taken = (Berth__TakeGuestReply *)(void *)reply;
    }
    if (reply && migration->step == ARRIVED)
        keep_clients(migration);
    else if (reply)
        tell(migration, TRUE);
    else if (g_error_matches(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND))
        tell_vanished(migration);
    else
        step_later(migration);
}

static void on_answer(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(Call) call = user_data;
    BerthCoreGuest guest;
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *reply = berth_rpc_peer_call_finish(result, &error);
    if (g_cancellable_is_cancelled(call->cancellable)) {
        berth_message_free(reply);
        return;
    }
    Migration *migration = call->migration;
    if (!is_open(migration, &guest)) {
        berth_message_free(reply);
        forget(migration);
        return;
    }
    switch (migration->step) {
    case RECEIVING:
        on_received(migration, reply, error);
        break;
    case LEAVING:
    case STAYING:
        on_left(migration, reply, error);
        break;
    case ARRIVED:
    case TAKING:
        on_taken(migration, reply, error);
        break;
    }
}

static void ask(Migration *migration, BerthRpcPeer *peer, const char *method,
                const ProtobufCMessage *request, guint timeout_msec)
{
    Call *call = g_new(Call, 1);
    *call = (Call){migration, g_object_ref(migration->cancellable)};
    berth_rpc_peer_call_async(peer, &berth__agent__descriptor, method, request, timeout_msec,
                              migration->cancellable, on_answer, call);
}

static void ask_to_receive(Migration *migration, Berth__GuestId *id, BerthRpcPeer *peer)
{
    g_autofree char *disk_id = berth_disk_id_format(&migration->action.guest);
    Berth__ReceiveGuestRequest request = BERTH__RECEIVE_GUEST_REQUEST__INIT;
    request.id = id;
    request.disk_id = disk_id;
    ask(migration, peer, "ReceiveGuest", &request.base, RECEIVE_TIMEOUT_MSEC);
}

/* Without a target it is to stay. It takes as long as it takes. */
static void ask_to_leave(Migration *migration, Berth__GuestId *id, BerthRpcPeer *peer,
                         gboolean is_frozen)
{
    Berth__MigrateGuestRequest request = BERTH__MIGRATE_GUEST_REQUEST__INIT;
    request.id = id;
    request.target = migration->step == LEAVING ? migration->received->target : NULL;
    request.frozen = is_frozen;
    request.opportunistic = migration->action.is_opportunistic;
    request.hurries = berth_core_action_is_pressing(&migration->action);
    ask(migration, peer, "MigrateGuest", &request.base, 0);
}

/* The node that it goes to is away. While it may come back, which it does after berthd has begun anew as
 * well, the guest waits for it, where it is. */
static void await_there(Migration *migration)
{
    BerthDaemon *daemon = migration->migrations->daemon;
    guint32 to = migration->action.to;
    BerthCoreNode node;
    gboolean is_lost =
        berth_core_get_node(daemon->core, to, &node) && node.state == BERTH_NODE_LOST;
    if (!is_lost) {
        migration->awaits_node = TRUE;
    } else if (has_left(migration)) { /* it is there: what becomes of it the core knows */
        tell(migration, TRUE);
    } else {
        g_autofree char *why = g_strdup_printf("node %s is lost", node_name(migration, to));
        stay(migration, why);
    }
}

static void ask_to_take(Migration *migration, Berth__GuestId *id, BerthRpcPeer *peer,
                        gboolean is_frozen)
{
    Berth__TakeGuestRequest request = BERTH__TAKE_GUEST_REQUEST__INIT;
    request.id = id;
    request.frozen = is_frozen;
    request.waits = migration->step == ARRIVED;
    ask(migration, peer, "TakeGuest", &request.base, TAKE_TIMEOUT_MSEC);
}

/* Where its own node is away the core asks again when that is back. */
static void step(Migration *migration)
{
    BerthDaemon *daemon = migration->migrations->daemon;
    BerthRpcPeer *from = berth_sessions_peer(daemon->sessions, migration->action.node);
    BerthRpcPeer *to = berth_sessions_peer(daemon->sessions, migration->action.to);
    BerthCoreGuest guest;
    Berth__GuestId id;
    fill_id(&migration->action.guest, &id);
    migration->awaits_node = FALSE;
    if (!is_open(migration, &guest) || (!from && !has_left(migration)))
        forget(migration);
    else if (migration->step == LEAVING || migration->step == STAYING)
        ask_to_leave(migration, &id, from, guest.is_frozen);
    else if (!to)
        await_there(migration);
    else if (migration->step == RECEIVING)
        ask_to_receive(migration, &id, to);
    else
        ask_to_take(migration, &id, to, guest.is_frozen);
}

/* --- entry -------------------------------------------------------------------------------------- */

void berth_migrations_begin(BerthMigrations *migrations, const BerthCoreAction *action)
{
    BerthCoreGuest guest;
    Migration *migration = g_new0(Migration, 1);
    migration->migrations = migrations;
    migration->action = *action;
    migration->cancellable = g_cancellable_new();
    migration->retry_msec = RETRY_MIN_MSEC;
    g_hash_table_replace(migrations->by_guest, &migration->action.guest, migration);
    if (is_open(migration, &guest))
        go_to(migration, RECEIVING);
    else
        forget(migration);
}

/* While its own node has it, that says whether it is too late. */
void berth_migrations_call_off(BerthMigrations *migrations, const BerthCoreAction *action)
{
    Migration *migration = g_hash_table_lookup(migrations->by_guest, &action->guest);
    if (!migration || migration->action.serial != action->serial || has_left(migration))
        return;
    g_cancellable_cancel(migration->cancellable);
    g_object_unref(migration->cancellable);
    migration->cancellable = g_cancellable_new();
    g_clear_handle_id(&migration->timer, g_source_remove);
    stay(migration, "it was called off");
}

void berth_migrations_node_changed(BerthMigrations *migrations, const char *name)
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, migrations->by_guest);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        Migration *migration = value;
        if (!migration->awaits_node || strcmp(node_name(migration, migration->action.to), name))
            continue;
        migration->awaits_node = FALSE;
        migration->timer = g_timeout_add_once(0, on_due, migration);
    }
}
