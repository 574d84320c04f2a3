/* SPDX-License-Identifier: Apache-2.0 */
/* Owns actions between their commit and their answer. Decides nothing: an answer becomes an event,
 * an unknown outcome is asked for again, and what the core has changed its mind about is dropped.
 *
 * Invariants: an action is sent only while the session that it was meant for lives; nothing is told
 * to the core that the node did not answer; no guest is removed before storage has said that it is this
 * state's: to another state, or to none, all guests of a cluster are strays. */
#include "config.h"

#include "scheduler/daemon/actions.h"

#include "common/error.h"
#include "common/id.h"
#include "scheduler/daemon/checkpoint_doubt.h"
#include "scheduler/daemon/checkpoints.h"
#include "scheduler/daemon/collector.h"
#include "scheduler/daemon/event_log.h"
#include "scheduler/daemon/fencing.h"
#include "scheduler/daemon/guest_reports.h"
#include "scheduler/daemon/op_results.h"
#include "scheduler/daemon/pb.h"
#include "scheduler/daemon/records.h"
#include "scheduler/daemon/sessions.h"
#include "scheduler/daemon/start_request.h"
#include "scheduler/daemon/start_window.h"

#define START_TIMEOUT_MSEC   120000u
#define FREEZE_TIMEOUT_MSEC  30000u
#define STOP_TIMEOUT_MSEC    30000u
#define RELEASE_TIMEOUT_MSEC 120000u
#define RETRY_MIN_MSEC       1000u
#define RETRY_MAX_MSEC       30000u

struct BerthActions {
    BerthDaemon *daemon;
    GHashTable *sendings; /* set of Sending: those that wait for their next try, or their turn */
    BerthStartWindow *window;
    GHashTable *strays; /* set of BerthGuestId: releases under way that the core knows not of */
};

/* An action on its way to a node. */
typedef struct {
    BerthActions *actions;
    BerthCoreAction action;
    BerthRpcPeer *peer;              /* a reference: the session that it was meant for */
    Berth__StartGuestRequest *start; /* built, and not sent yet */
    gboolean has_turn;               /* a START: in the window */
    gboolean was_sent;
    gboolean is_stray;
    gboolean is_held;    /* a RELEASE, until storage is ours */
    gboolean keeps_disk; /* a RELEASE, for what the task goes on from */
    guint retry_msec;
    guint timer;
} Sending;

BerthActions *berth_actions_new(BerthDaemon *daemon)
{
    BerthActions *actions = g_new0(BerthActions, 1);
    actions->daemon = daemon;
    actions->sendings = g_hash_table_new(NULL, NULL);
    actions->window = berth_start_window_new();
    actions->strays =
        g_hash_table_new_full(berth_guest_id_hash, berth_guest_id_equal_func, g_free, NULL);
    return actions;
}

static void clear_start(Sending *sending)
{
    if (sending->start)
        berth__start_guest_request__free_unpacked(g_steal_pointer(&sending->start), NULL);
}

static void leave_window(Sending *sending)
{
    if (sending->has_turn) {
        sending->has_turn = FALSE;
        berth_start_window_leave(sending->actions->window, sending->action.node, sending->was_sent);
    }
}

static void sending_free(Sending *sending)
{
    leave_window(sending);
    g_clear_handle_id(&sending->timer, g_source_remove);
    g_hash_table_remove(sending->actions->sendings, sending);
    if (sending->is_stray)
        g_hash_table_remove(sending->actions->strays, &sending->action.guest);
    clear_start(sending);
    berth_rpc_peer_unref(sending->peer);
    g_free(sending);
}

void berth_actions_free(BerthActions *actions)
{
    GList *waiting = g_hash_table_get_keys(actions->sendings);
    g_list_free_full(waiting, (GDestroyNotify)sending_free);
    g_hash_table_unref(actions->sendings);
    berth_start_window_free(actions->window);
    g_hash_table_unref(actions->strays);
    g_free(actions);
}

/* --- is it still wanted? ------------------------------------------------------------------------ */

/* The guest waits for the answer to ACTION, and not for that of a later one, or for its end. */
static gboolean is_under_way(BerthDaemon *daemon, const BerthCoreAction *action, BerthGuestOp op)
{
    const BerthGuestId *id = &action->guest;
    BerthCoreGuest guest;
    return berth_core_get_guest(daemon->core, id->job, id->task, id->guest, &guest) &&
           guest.phase == BERTH_GUEST_RUNNING && guest.op == op &&
           guest.op_serial == action->serial;
}

static gboolean is_wanted(BerthDaemon *daemon, const BerthCoreAction *action)
{
    BerthCoreTask task;
    if (action->kind == BERTH_ACTION_RELEASE)
        return TRUE; /* of whatever epoch: it is to go */
    if (!berth_core_get_task(daemon->core, action->guest.job, action->guest.task, &task) ||
        task.epoch != action->guest.epoch || task.node != action->node)
        return FALSE;
    switch (action->kind) {
    case BERTH_ACTION_START:
    case BERTH_ACTION_RESTORE:
        return task.phase == BERTH_GUEST_STARTING;
    case BERTH_ACTION_STOP:
        return task.phase == BERTH_GUEST_STOPPING || task.stop_reason != BERTH_REASON_NONE;
    case BERTH_ACTION_FREEZE:
        return is_under_way(daemon, action, BERTH_OP_FREEZING);
    case BERTH_ACTION_THAW:
        return is_under_way(daemon, action, BERTH_OP_THAWING);
    case BERTH_ACTION_RESIZE:
        return is_under_way(daemon, action, BERTH_OP_RESIZING);
    default:
        return task.phase == BERTH_GUEST_FENCING;
    }
}

static gboolean is_start(const BerthCoreAction *action)
{
    return action->kind == BERTH_ACTION_START || action->kind == BERTH_ACTION_RESTORE;
}

/* Its disk goes with the guest, and that is on another node. */
static gboolean is_elsewhere(BerthDaemon *daemon, const BerthCoreAction *action)
{
    const BerthGuestId *id = &action->guest;
    BerthCoreTask task;
    return berth_core_get_task(daemon->core, id->job, id->task, &task) && task.epoch == id->epoch &&
           task.phase != BERTH_GUEST_NONE && task.node != action->node;
}

/* A call on a connection that has ended fails before its session does. That is no answer: the core
 * sends the action again when the node is back. */
static gboolean has_session(const Sending *sending)
{
    BerthDaemon *daemon = sending->actions->daemon;
    return !berth_engine_is_stopped(daemon->engine) && !berth_rpc_peer_is_closed(sending->peer) &&
           berth_sessions_peer(daemon->sessions, sending->action.node) == sending->peer;
}

/* A START that nobody wants any more, because its guest is to stop. That it has failed is the end
 * of that guest, and the STOP that crossed it on its way may get no other answer. */
static gboolean is_stopped_start(const Sending *sending)
{
    const BerthCoreAction *action = &sending->action;
    BerthCoreTask task;
    return is_start(action) &&
           berth_core_get_task(sending->actions->daemon->core, action->guest.job,
                               action->guest.task, &task) &&
           task.epoch == action->guest.epoch && task.node == action->node &&
           task.phase == BERTH_GUEST_STOPPING;
}

static gboolean is_current(const Sending *sending)
{
    return has_session(sending) && is_wanted(sending->actions->daemon, &sending->action);
}

/* --- sending and asking again ------------------------------------------------------------------- */

static void send_action(Sending *sending);

static void retry(Sending *sending)
{
    sending->is_held = FALSE;
    g_hash_table_remove(sending->actions->sendings, sending);
    send_action(sending);
}

static gboolean on_retry(gpointer user_data)
{
    Sending *sending = user_data;
    sending->timer = 0;
    retry(sending);
    return G_SOURCE_REMOVE;
}

void berth_actions_let_go(BerthActions *actions)
{
    g_autoptr(GList) waiting = g_hash_table_get_keys(actions->sendings);
    for (GList *l = waiting; l; l = l->next) {
        Sending *sending = l->data;
        if (!sending->is_held)
            continue;
        g_clear_handle_id(&sending->timer, g_source_remove);
        sending->retry_msec = RETRY_MIN_MSEC;
        retry(sending);
    }
}

static void try_again(Sending *sending)
{
    leave_window(sending);
    clear_start(sending);
    g_hash_table_add(sending->actions->sendings, sending);
    sending->timer = g_timeout_add(sending->retry_msec, on_retry, sending);
    sending->retry_msec = MIN(sending->retry_msec * 2, RETRY_MAX_MSEC);
}

static const char *action_name(BerthActionKind kind)
{
    switch (kind) {
    case BERTH_ACTION_START:
        return "start";
    case BERTH_ACTION_RESTORE:
        return "restore";
    case BERTH_ACTION_STOP:
        return "stop";
    case BERTH_ACTION_FREEZE:
        return "freeze";
    case BERTH_ACTION_THAW:
        return "thaw";
    case BERTH_ACTION_RESIZE:
        return "resize";
    default:
        return "release";
    }
}

static void log_failure(BerthDaemon *daemon, const BerthCoreAction *action, const char *why)
{
    g_autofree char *guest = berth_guest_name_format(&action->guest);
    g_warning("node %s could not %s %s: %s", berth_node_table_name(daemon->nodes, action->node),
              action_name(action->kind), guest, why);
}

gboolean berth_actions_start_is_hopeless(int code)
{
    switch (code) {
    case BERTH_ERROR_INVALID_ARGUMENT:
    case BERTH_ERROR_NOT_FOUND:
    case BERTH_ERROR_PERMISSION_DENIED:
    case BERTH_ERROR_UNSUPPORTED:
    case BERTH_ERROR_DATA_LOSS:
        return TRUE;
    default:
        return FALSE;
    }
}

/* --- starts that fail --------------------------------------------------------------------------- */

typedef Berth__StartGuestReply__Fault Fault;
#define FAULT_NONE    BERTH__START_GUEST_REPLY__FAULT__FAULT_NONE
#define FAULT_JOB     BERTH__START_GUEST_REPLY__FAULT__JOB
#define FAULT_NODE    BERTH__START_GUEST_REPLY__FAULT__NODE
#define FAULT_STORAGE BERTH__START_GUEST_REPLY__FAULT__STORAGE
#define FAULT_IN_USE  BERTH__START_GUEST_REPLY__FAULT__IN_USE

static void keep_text(char **text, const char *new_text)
{
    g_free(*text);
    *text = g_strdup(new_text);
}

static gboolean is_closed(BerthDaemon *daemon, guint32 node)
{
    BerthCoreNode core_node;
    return berth_core_get_node(daemon->core, node, &core_node) && core_node.closed_until_usec > 0;
}

static void start_failed(BerthDaemon *daemon, const BerthCoreAction *action, Fault fault,
                         const char *why)
{
    BerthTaskEntry *task =
        berth_job_table_find_task(daemon->jobs, action->guest.job, action->guest.task);
    BerthNodeEntry *node = berth_node_table_find(daemon->nodes, action->node);
    if (task)
        keep_text(&task->detail, why);
    if (node && fault != FAULT_JOB && fault != FAULT_IN_USE)
        keep_text(&node->start_error, why);
    if (fault == FAULT_STORAGE)
        berth_storage_link_doubt(daemon->storage);
    BerthCoreEvent event = {
        .kind = BERTH_EVENT_START_FAILED, .guest = action->guest, .node = action->node};
    /* One that cannot be used is no fault of the job as long as there is another. */
    event.start_failed.permanent =
        fault == FAULT_JOB &&
        !(action->kind == BERTH_ACTION_RESTORE &&
          berth_checkpoints_give_up(daemon->checkpoints, &action->guest, why));
    event.start_failed.passes = fault == FAULT_IN_USE;
    event.start_failed.reason =
        fault == FAULT_STORAGE ? BERTH_REASON_STORAGE_UNAVAILABLE : BERTH_REASON_START_FAILED;
    gboolean was_closed = is_closed(daemon, action->node);
    berth_engine_tell(daemon->engine, &event);
    if (!was_closed && is_closed(daemon, action->node)) {
        g_warning("node %s gets no new guests for a while, as starts fail on it, the latest: %s",
                  berth_node_table_name(daemon->nodes, action->node), why);
    }
}

/* A deadline leaves open what happened: the same again tells. */
static Fault fault_of_error(const GError *error)
{
    return g_error_matches(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED) ? FAULT_NONE
                                                                              : FAULT_NODE;
}

/* What the answer to a START says; REPLY NULL: it is ERROR. */
static Fault fault_of(const Sending *sending, const ProtobufCMessage *reply, const GError *error,
                      const char **out_why)
{
    if (!is_start(&sending->action))
        return FAULT_NONE;
    if (!reply) {
        *out_why = error->message;
        return fault_of_error(error);
    }
    const Berth__StartGuestReply *start = (const Berth__StartGuestReply *)(const void *)reply;
    *out_why = start->error ? start->error->message : "";
    switch (start->fault) {
    case FAULT_NONE:
    case FAULT_JOB:
    case FAULT_STORAGE:
    case FAULT_IN_USE:
        return start->fault;
    default: /* also one that we do not know */
        return FAULT_NODE;
    }
}

/* --- answers ------------------------------------------------------------------------------------ */

/* What the answer says beside that the action was taken on. */
static void take_reply(Sending *sending, const ProtobufCMessage *reply)
{
    BerthCoreEvent event = {.guest = sending->action.guest, .node = sending->action.node};
    if (is_start(&sending->action)) {
        event.kind = BERTH_EVENT_START_TAKEN;
        berth_engine_tell(sending->actions->daemon->engine, &event);
    } else if (sending->action.kind == BERTH_ACTION_STOP &&
               ((const Berth__StopGuestReply *)(const void *)reply)->unknown &&
               !berth_guest_reports_is_moved(sending->actions->daemon, &sending->action.guest)) {
        /* One that has left is stopped again where it arrives. */
        event.kind = BERTH_EVENT_GUEST_GONE;
        event.gone.reason = BERTH_REASON_GUEST_VANISHED;
        berth_engine_tell(sending->actions->daemon->engine, &event);
    }
}

static void fail_and_try_again(Sending *sending, const GError *error)
{
    if (sending->retry_msec == RETRY_MIN_MSEC)
        log_failure(sending->actions->daemon, &sending->action, error->message);
    try_again(sending);
}

/* FOUND: the checkpoint that was in doubt; NULL = there is none. */
static void tell_released(const Sending *sending, const Berth__CheckpointRecord *found)
{
    BerthDaemon *daemon = sending->actions->daemon;
    BerthCoreEvent event = {.kind = BERTH_EVENT_GUEST_RELEASED,
                            .guest = sending->action.guest,
                            .node = sending->action.node};
    berth_checkpoint_tell(daemon, &event, found);
    /* It was cancelled meanwhile, or was not saved: nobody else removes what was kept. */
    if (sending->keeps_disk && !berth_checkpoint_is_known(daemon, &sending->action.guest))
        berth_collector_run(daemon->collector);
}

static gpointer look_for_checkpoint(BerthStorage *storage, gconstpointer id, GError **error)
{
    return berth_checkpoint_look(storage, id, error);
}

static void free_record(gpointer record)
{
    berth_checkpoint_record_free(record);
}

/* If nobody can tell, the node is asked once more, which is harmless. */
static void on_looked_for_checkpoint(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Sending *sending = user_data;
    g_autoptr(GError) error = NULL;
    Berth__CheckpointRecord *found = berth_work_finish(result, &error);
    if (error && is_current(sending)) {
        fail_and_try_again(sending, error);
        return;
    }
    if (is_current(sending))
        tell_released(sending, found);
    berth_checkpoint_record_free(found);
    sending_free(sending);
}

/* A checkpoint of it may have been made, though its node could not say so: it has come to its end there by now. */
static void released(Sending *sending)
{
    BerthDaemon *daemon = sending->actions->daemon;
    g_autofree char *doubted = berth_checkpoint_doubted(daemon, &sending->action.guest);
    if (!doubted) {
        tell_released(sending, NULL);
        sending_free(sending);
        return;
    }
    berth_storage_link_run(daemon->storage, BERTH_LANE_STORAGE_CONTROL, "look for a checkpoint",
                           look_for_checkpoint, g_steal_pointer(&doubted), g_free, free_record,
                           on_looked_for_checkpoint, sending);
}

static void on_answer(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Sending *sending = user_data;
    BerthDaemon *daemon = sending->actions->daemon;
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, &error);
    const char *why = NULL;
    Fault fault = fault_of(sending, reply, error, &why);
    gboolean is_wanted_still = is_current(sending);
    gboolean is_op = berth_op_result_of(sending->action.kind) != 0;
    gboolean is_refused = error && is_op && !berth_op_may_pass(error);
    if (is_wanted_still && !reply && fault == FAULT_NONE && !is_refused) {
        fail_and_try_again(sending, error);
        return;
    }
    if (is_wanted_still && is_op) {
        const Berth__ResizeGuestReply *has = berth_op_settled(&sending->action, reply);
        berth_op_answered(daemon, &sending->action,
                          error ? error->message
                          : has ? has->error->message
                                : NULL,
                          has);
        sending_free(sending);
        return;
    }
    if (is_wanted_still && sending->action.kind == BERTH_ACTION_RELEASE) {
        released(sending);
        return;
    }
    if (fault != FAULT_NONE &&
        (is_wanted_still || (has_session(sending) && is_stopped_start(sending)))) {
        log_failure(daemon, &sending->action, why);
        start_failed(daemon, &sending->action, fault, why);
    } else if (is_wanted_still) {
        take_reply(sending, reply);
    }
    sending_free(sending);
}

static void on_start_request(Berth__StartGuestRequest *request, const GError *error,
                             gpointer user_data)
{
    Sending *sending = user_data;
    sending->start = request;
    if (!error) {
        send_action(sending);
    } else if (!is_current(sending)) {
        sending_free(sending);
    } else if (!berth_actions_start_is_hopeless(error->code)) {
        fail_and_try_again(sending, error);
    } else {
        log_failure(sending->actions->daemon, &sending->action, error->message);
        start_failed(sending->actions->daemon, &sending->action, FAULT_JOB, error->message);
        sending_free(sending);
    }
}

static void call_agent(Sending *sending, const char *method, const ProtobufCMessage *request,
                       guint timeout_msec)
{
    berth_rpc_peer_call_async(sending->peer, &berth__agent__descriptor, method, request,
                              timeout_msec, NULL, on_answer, sending);
}

static void on_turn(gpointer user_data)
{
    Sending *sending = user_data;
    g_hash_table_remove(sending->actions->sendings, sending);
    sending->has_turn = TRUE;
    sending->was_sent = FALSE;
    send_action(sending);
}

/* In its turn it is built, and it is in memory until it is on its way. */
static void send_start(Sending *sending)
{
    BerthActions *actions = sending->actions;
    if (!sending->has_turn) {
        g_hash_table_add(actions->sendings, sending);
        berth_start_window_enter(actions->window, sending->action.node, on_turn, sending);
    } else if (!sending->start) {
        berth_start_request_make(actions->daemon, &sending->action.guest, on_start_request,
                                 sending);
    } else {
        call_agent(sending, "StartGuest", &sending->start->base, START_TIMEOUT_MSEC);
        clear_start(sending);
        sending->was_sent = TRUE;
        berth_start_window_sent(actions->window);
    }
}

/* It takes as long as the guest takes to go along. */
static void send_resize(Sending *sending, Berth__GuestId *id)
{
    const BerthCoreAction *action = &sending->action;
    Berth__ResizeGuestRequest request = BERTH__RESIZE_GUEST_REQUEST__INIT;
    request.id = id;
    request.vcpus = action->resources.vcpus;
    request.memory_mib = action->resources.memory_mib;
    request.balloon_mib = action->balloon_mib;
    request.opportunistic = action->is_opportunistic;
    request.thaw = action->thaws;
    request.settles = TRUE;
    call_agent(sending, "ResizeGuest", &request.base, 0);
}

static void send_action(Sending *sending)
{
    const BerthCoreAction *action = &sending->action;
    if (!is_current(sending)) {
        sending_free(sending);
        return;
    }
    if (action->kind == BERTH_ACTION_RELEASE && !sending->actions->daemon->storage_is_ours) {
        sending->is_held = TRUE;
        try_again(sending); /* which also forgets it, if its session ends meanwhile */
        return;
    }
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    id.job = action->guest.job;
    id.task = action->guest.task;
    id.guest = action->guest.guest;
    id.epoch = action->guest.epoch;
    if (is_start(action)) {
        send_start(sending);
    } else if (action->kind == BERTH_ACTION_STOP) {
        Berth__StopGuestRequest request = BERTH__STOP_GUEST_REQUEST__INIT;
        request.id = &id;
        request.grace_msec = (guint32)CLAMP(action->grace_usec / 1000, 0, G_MAXUINT32);
        call_agent(sending, "StopGuest", &request.base, STOP_TIMEOUT_MSEC);
    } else if (action->kind == BERTH_ACTION_FREEZE) {
        Berth__FreezeGuestRequest request = BERTH__FREEZE_GUEST_REQUEST__INIT;
        request.id = &id;
        call_agent(sending, "FreezeGuest", &request.base, FREEZE_TIMEOUT_MSEC);
    } else if (action->kind == BERTH_ACTION_THAW) {
        Berth__ThawGuestRequest request = BERTH__THAW_GUEST_REQUEST__INIT;
        request.id = &id;
        call_agent(sending, "ThawGuest", &request.base, FREEZE_TIMEOUT_MSEC);
    } else if (action->kind == BERTH_ACTION_RESIZE) {
        send_resize(sending, &id);
    } else {
        g_autofree char *disk_id = berth_disk_id_format(&action->guest);
        Berth__ReleaseGuestRequest request = BERTH__RELEASE_GUEST_REQUEST__INIT;
        request.id = &id;
        request.disk_id = disk_id;
        g_autofree char *doubted =
            berth_checkpoint_doubted(sending->actions->daemon, &action->guest);
        sending->keeps_disk =
            doubted || berth_checkpoint_is_known(sending->actions->daemon, &action->guest);
        request.keep_disk = sending->keeps_disk || is_elsewhere(sending->actions->daemon, action);
        call_agent(sending, "ReleaseGuest", &request.base, RELEASE_TIMEOUT_MSEC);
    }
}

static Sending *sending_new(BerthActions *actions, const BerthCoreAction *action,
                            BerthRpcPeer *peer)
{
    Sending *sending = g_new0(Sending, 1);
    sending->actions = actions;
    sending->action = *action;
    sending->peer = berth_rpc_peer_ref(peer);
    sending->retry_msec = RETRY_MIN_MSEC;
    return sending;
}

/* --- entry -------------------------------------------------------------------------------------- */

void berth_actions_act(BerthActions *actions, const BerthCoreAction *action)
{
    BerthDaemon *daemon = actions->daemon;
    if (!is_wanted(daemon, action))
        return;
    if (action->kind == BERTH_ACTION_FENCE) {
        berth_fence(daemon, action);
        return;
    }
    BerthRpcPeer *peer = berth_sessions_peer(daemon->sessions, action->node);
    if (!peer)
        return;
    send_action(sending_new(actions, action, peer));
}

void berth_actions_release_stray(BerthActions *actions, guint32 node, const BerthGuestId *id)
{
    BerthRpcPeer *peer = berth_sessions_peer(actions->daemon->sessions, node);
    BerthCoreAction action = {.kind = BERTH_ACTION_RELEASE, .guest = *id, .node = node};
    if (!peer || g_hash_table_contains(actions->strays, id))
        return;
    if (is_elsewhere(actions->daemon, &action)) {
        g_autofree char *guest = berth_guest_name_format(id);
        g_warning("node %s speaks for %s, which runs on another node: paid no attention",
                  berth_node_table_name(actions->daemon->nodes, node), guest);
        return;
    }
    g_hash_table_add(actions->strays, g_memdup2(id, sizeof *id));
    Sending *sending = sending_new(actions, &action, peer);
    sending->is_stray = TRUE;
    send_action(sending);
}
