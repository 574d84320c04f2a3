/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the requests that change what nodes are used for: whether the caller may, in whose name, and why.
 * What becomes of the guests is the core's to say.
 *
 * Invariant: an entry's admission and the core's are the same, and change in one turn with the event that
 * says who wanted it. */
#include "config.h"

#include "scheduler/daemon/node_change.h"

#include "common/error.h"
#include "scheduler/core/look.h"
#include "scheduler/daemon/event_log.h"
#include "scheduler/daemon/pb.h"
#include "scheduler/daemon/refusals.h"
#include "scheduler/daemon/sessions.h"
#include "scheduler/daemon/spec_check.h"
#include "scheduler/daemon/turn_records.h"

#define NAMES_MAX 100000u
/* Of so many nodes an answer says what they were closed for before. */
#define REPLACED_TOLD_MAX 10u

typedef struct {
    BerthDaemon *daemon;
    BerthRpcCall *call;
    BerthNodeChange kind;
    const Berth__ChangeNodesRequest *request; /* CALL's */
    GPtrArray *entries;                       /* BerthNodeEntry, once each */
    GPtrArray *replaced;                      /* Berth__ReplacedAdmission, owned: the first */
    guint n_replaced_more;
    guint64 before_seq;
    const BerthNodeEntry *refused; /* because of which the request is; NULL: of none of them */
} Change;

static void free_replaced(gpointer replaced)
{
    berth__replaced_admission__free_unpacked(replaced, NULL);
}

static void change_free(gpointer data)
{
    Change *change = data;
    g_ptr_array_unref(change->entries);
    g_ptr_array_unref(change->replaced);
    g_free(change);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Change, change_free)

static Berth__NodeAdmission__Kind wanted_kind(BerthNodeChange change)
{
    return change == BERTH_NODE_CHANGE_CORDON  ? BERTH__NODE_ADMISSION__KIND__CORDONED
           : change == BERTH_NODE_CHANGE_DRAIN ? BERTH__NODE_ADMISSION__KIND__DRAINING
           : change == BERTH_NODE_CHANGE_DOWN  ? BERTH__NODE_ADMISSION__KIND__GIVEN_UP
                                               : BERTH__NODE_ADMISSION__KIND__OPEN;
}

/* --- what is asked for --------------------------------------------------------------------------- */

static gboolean check_reason(const Change *change, GError **error)
{
    const char *reason = change->request->reason;
    if (*reason || wanted_kind(change->kind) == BERTH__NODE_ADMISSION__KIND__OPEN)
        return berth_why_check(reason, error);
    g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                        "the request gives no reason; say why, so that others know");
    return FALSE;
}

static BerthNodeEntry *find(BerthDaemon *daemon, const char *name, GError **error)
{
    BerthNodeEntry *entry =
        berth_node_table_find(daemon->nodes, berth_core_find_node(daemon->core, name));
    if (!entry)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                    "there is no node \"%s\"; berth node ls shows those that there are", name);
    return entry;
}

/* What ENTRY is by whose word, and WHAT can be done about it. */
static gboolean refuse(const BerthNodeEntry *entry, const char *is, const char *what,
                       GError **error)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION, "node %s %s, by %s: %s; %s",
                entry->name, is, entry->admission->user, entry->admission->reason, what);
    return FALSE;
}

static gboolean check_may(const Change *change, const BerthNodeEntry *entry, GError **error)
{
    gboolean is_given_up = berth_node_entry_is_given_up(entry);
    const char *if_reason = change->request->if_reason;
    if (*if_reason && entry->admission && strcmp(entry->admission->reason, if_reason) != 0)
        return refuse(entry, "is closed for something else",
                      "berth node undrain opens it, if that may be", error);
    if (change->kind == BERTH_NODE_CHANGE_UNCORDON && berth_node_entry_is_draining(entry))
        return refuse(entry, "is drained", "berth node undrain lets it have guests again", error);
    if (change->kind == BERTH_NODE_CHANGE_UP && entry->admission && !is_given_up)
        return refuse(entry, "is not given up, but cordoned or drained",
                      "berth node undrain lets it have guests again", error);
    if (is_given_up && change->kind != BERTH_NODE_CHANGE_DOWN &&
        change->kind != BERTH_NODE_CHANGE_UP)
        return refuse(entry, "was given up", "berth node up lets it join again", error);
    if (change->kind != BERTH_NODE_CHANGE_DOWN || change->request->force ||
        !berth_sessions_peer(change->daemon->sessions, entry->handle))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                "node %s has a session, so that its host is not dead; --force gives it up "
                "nevertheless, and cuts off what runs there",
                entry->name);
    return FALSE;
}

/* One that is open is left so without a word. */
static gboolean is_to_be_changed(const Change *change, const BerthNodeEntry *entry)
{
    return entry->admission || wanted_kind(change->kind) != BERTH__NODE_ADMISSION__KIND__OPEN;
}

static gboolean find_all(Change *change, GError **error)
{
    const Berth__ChangeNodesRequest *request = change->request;
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    if (request->n_names == 0 || request->n_names > NAMES_MAX) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "the request names %zu nodes; 1 to %u may be changed at a time",
                    request->n_names, NAMES_MAX);
        return FALSE;
    }
    for (gsize i = 0; i < request->n_names; i++) {
        BerthNodeEntry *entry = find(change->daemon, request->names[i], error);
        if (!entry)
            return FALSE;
        if (!check_may(change, entry, error)) {
            change->refused = entry;
            return FALSE;
        }
        if (is_to_be_changed(change, entry) && g_hash_table_add(seen, entry))
            g_ptr_array_add(change->entries, entry);
    }
    return TRUE;
}

/* --- the change ---------------------------------------------------------------------------------- */

static void on_committed(const GError *error, gpointer user_data)
{
    g_autoptr(Change) change = user_data;
    Berth__ChangeNodesReply reply = BERTH__CHANGE_NODES_REPLY__INIT;
    reply.before_seq = change->before_seq;
    reply.replaced = (Berth__ReplacedAdmission **)change->replaced->pdata;
    reply.n_replaced = change->replaced->len;
    reply.n_replaced_more = change->n_replaced_more;
    if (error)
        berth_rpc_call_fail(change->call, error);
    else
        berth_rpc_call_reply(change->call, &reply.base);
}

/* That it is open again is said in other words of some requests. The strings are ADMISSION's. */
static void fill_event(const Change *change, const BerthNodeEntry *entry,
                       const Berth__NodeAdmission *admission, Berth__Event *event)
{
    berth_event_node_admission(entry->name, admission, event);
    if (change->kind == BERTH_NODE_CHANGE_UNCORDON)
        event->kind = BERTH__EVENT__KIND__NODE_UNCORDONED;
    else if (change->kind == BERTH_NODE_CHANGE_UP)
        event->kind = BERTH__EVENT__KIND__NODE_TAKEN_BACK;
}

/* The caller is told of what somebody else had closed it for, or he himself for something else. */
static void keep_replaced(Change *change, const BerthNodeEntry *entry,
                          const Berth__NodeAdmission *admission)
{
    const Berth__NodeAdmission *before = entry->admission;
    if (!before)
        return;
    gboolean is_open = admission->kind == BERTH__NODE_ADMISSION__KIND__OPEN;
    if (strcmp(before->user, admission->user) == 0 &&
        (is_open || strcmp(before->reason, admission->reason) == 0))
        return;
    if (change->replaced->len >= REPLACED_TOLD_MAX) {
        change->n_replaced_more++;
        return;
    }
    Berth__ReplacedAdmission replaced = BERTH__REPLACED_ADMISSION__INIT;
    replaced.node = entry->name;
    replaced.admission = (Berth__NodeAdmission *)before;
    g_ptr_array_add(change->replaced, berth_pb_dup(&replaced.base));
}

/* One that is drained again, for another reason, is as empty as it was. */
static void note(BerthTurn *turn, Change *change, BerthNodeEntry *entry, const char *user)
{
    Berth__NodeAdmission admission = BERTH__NODE_ADMISSION__INIT;
    Berth__Event event = BERTH__EVENT__INIT;
    admission.kind = wanted_kind(change->kind);
    admission.reason = change->request->reason;
    admission.user = (char *)user;
    admission.since_usec = (guint64)berth_engine_now_usec(change->daemon->engine);
    if (change->kind == BERTH_NODE_CHANGE_DRAIN && berth_node_entry_is_draining(entry))
        admission.empty_usec = entry->admission->empty_usec;
    keep_replaced(change, entry, &admission);
    fill_event(change, entry, &admission, &event);
    berth_turn_log(turn, &event);
    gboolean is_open = admission.kind == BERTH__NODE_ADMISSION__KIND__OPEN;
    berth_node_entry_set_admission(entry, is_open ? NULL : &admission);
    berth_turn_put_node(turn, entry->handle);
    g_message("node %s is %s by %s%s%s", entry->name,
              is_open                                   ? "open to new guests again, let so"
              : change->kind == BERTH_NODE_CHANGE_DRAIN ? "drained"
              : change->kind == BERTH_NODE_CHANGE_DOWN  ? "given up"
                                                        : "cordoned",
              user, *admission.reason ? ": " : "", admission.reason);
}

/* KIND of each that it changes. None is placed, or moved, before the last is told. */
static void tell_core(BerthTurn *turn, const Change *change, BerthEventKind kind, gboolean more)
{
    for (guint i = 0; i < change->entries->len; i++) {
        const BerthNodeEntry *entry = g_ptr_array_index(change->entries, i);
        BerthCoreEvent event = {.kind = kind, .node = entry->handle};
        event.more = more || i + 1 < change->entries->len;
        g_autoptr(GError) error = NULL;
        if (!berth_turn_event(turn, &event, NULL, &error))
            g_critical("the core refused what is no request: %s", error->message);
    }
}

/* Nobody is moved from one node that is to be empty to another: first none of them takes anybody. */
static void change_all(Change *change, const char *user)
{
    BerthEngine *engine = change->daemon->engine;
    change->before_seq = berth_engine_last_seq(engine);
    for (guint i = 0; i < change->entries->len && change->kind == BERTH_NODE_CHANGE_DOWN; i++) {
        const BerthNodeEntry *entry = g_ptr_array_index(change->entries, i);
        berth_sessions_end(change->daemon->sessions, entry->handle);
    }
    BerthTurn *turn = berth_engine_begin(engine);
    for (guint i = 0; i < change->entries->len; i++)
        note(turn, change, g_ptr_array_index(change->entries, i), user);
    if (change->kind == BERTH_NODE_CHANGE_DRAIN || change->kind == BERTH_NODE_CHANGE_DOWN) {
        tell_core(turn, change, BERTH_EVENT_NODE_CORDONED, TRUE);
        tell_core(turn, change,
                  change->kind == BERTH_NODE_CHANGE_DRAIN ? BERTH_EVENT_NODE_DRAINED
                                                          : BERTH_EVENT_NODE_GIVEN_UP,
                  FALSE);
    } else {
        tell_core(turn, change,
                  change->kind == BERTH_NODE_CHANGE_CORDON ? BERTH_EVENT_NODE_CORDONED
                                                           : BERTH_EVENT_NODE_UNDRAINED,
                  FALSE);
    }
    berth_turn_then(turn, on_committed, change);
    berth_turn_commit(turn);
}

/* --- what is refused ----------------------------------------------------------------------------- */

/* The first of those that the request names, as far as there are any. */
static const BerthNodeEntry *find_first(const Change *change)
{
    const Berth__ChangeNodesRequest *request = change->request;
    const BerthNodeEntry *entry = NULL;
    for (gsize i = 0; i < MIN(request->n_names, NAMES_MAX) && !entry; i++)
        entry = find(change->daemon, request->names[i], NULL);
    return entry;
}

/* ENTRY: of which it is; NULL: of no node that there is, so that nothing is written. */
static void refuse_request(Change *change, const BerthNodeEntry *entry, const GError *error)
{
    Berth__NodeAdmission admission = BERTH__NODE_ADMISSION__INIT;
    Berth__Event wanted = BERTH__EVENT__INIT;
    if (!entry) {
        berth_rpc_call_fail(change->call, error);
        return;
    }
    admission.kind = wanted_kind(change->kind);
    if (berth_why_check(change->request->reason, NULL))
        admission.reason = change->request->reason;
    fill_event(change, entry, &admission, &wanted);
    berth_refuse(change->daemon->refusals, change->call, &wanted, error);
}

/* --- entry ---------------------------------------------------------------------------------------- */

static void on_user(const char *name, const GError *unnamed, gpointer user_data)
{
    g_autoptr(Change) change = user_data;
    g_autoptr(GError) error = NULL;
    if (berth_engine_check(change->daemon->engine, &error) && find_all(change, &error))
        change_all(g_steal_pointer(&change), name);
    else
        refuse_request(change, change->refused, error);
}

void berth_node_change(BerthDaemon *daemon, BerthNodeChange kind,
                       const Berth__ChangeNodesRequest *request, BerthRpcCall *call)
{
    const BerthRpcIdentity *who = berth_rpc_call_identity(call);
    g_autoptr(GError) error = NULL;
    g_autoptr(Change) change = g_new0(Change, 1);
    *change = (Change){.daemon = daemon, .call = call, .kind = kind, .request = request};
    change->entries = g_ptr_array_new();
    change->replaced = g_ptr_array_new_with_free_func(free_replaced);
    if (!berth_permission_check_operator(&daemon->operators, who, "cordon, drain and give up nodes",
                                         &error))
        refuse_request(change, find_first(change), error);
    else if (check_reason(change, &error))
        berth_users_name(daemon->users, who->uid, on_user, g_steal_pointer(&change));
    else
        berth_rpc_call_fail(call, error);
}

/* --- the plan ------------------------------------------------------------------------------------ */

/* Its strings are those of the job; IDS and STEPS have room for it. */
static void fill_step(BerthDaemon *daemon, const BerthCoreDrainStep *source, Berth__GuestId *id,
                      Berth__DrainStep *step)
{
    const BerthJobEntry *job = berth_job_table_find(daemon->jobs, source->guest.job);
    berth__guest_id__init(id);
    berth__drain_step__init(step);
    id->job = source->guest.job;
    id->task = source->guest.task;
    id->guest = source->guest.guest;
    id->epoch = source->guest.epoch;
    step->guest = id;
    step->state = (Berth__JobState)source->state;
    step->moves = source->moves;
    step->checkpoints = source->checkpoints;
    step->lacks_room = source->lacks_room;
    step->into_slack = source->into_slack;
    step->lacks_space = source->lacks_space;
    step->is_leaving = source->is_leaving;
    step->takes_usec = (guint64)source->takes_usec;
    step->limit_usec = source->limit_usec == G_MAXINT64 ? 0 : (guint64)source->limit_usec;
    if (job) {
        step->job_name = job->job->name;
        step->of_array = job->job->array != NULL;
        step->user = job->job->user;
    }
}

/* Of NODE, with N_NODES drained at a time. */
static void reply_plan(BerthDaemon *daemon, guint32 node, const GArray *source, guint32 n_nodes,
                       BerthRpcCall *call)
{
    BerthCoreNode now;
    g_autofree Berth__GuestId *ids = g_new0(Berth__GuestId, source->len + 1);
    g_autofree Berth__DrainStep *steps = g_new0(Berth__DrainStep, source->len + 1);
    g_autofree Berth__DrainStep **pointers = g_new0(Berth__DrainStep *, source->len + 1);
    Berth__DrainPlan plan = BERTH__DRAIN_PLAN__INIT;
    for (guint i = 0; i < source->len; i++) {
        fill_step(daemon, &g_array_index(source, BerthCoreDrainStep, i), &ids[i], &steps[i]);
        pointers[i] = &steps[i];
    }
    plan.steps = pointers;
    plan.n_steps = source->len;
    plan.away = berth_core_get_node(daemon->core, node, &now) && now.state != BERTH_NODE_UP;
    plan.expected_usec = (guint64)berth_core_drain_usec(daemon->core, source, n_nodes);
    berth_rpc_call_reply(call, &plan.base);
}

/* Handles. NULL: one is not known. */
static GArray *find_others(BerthDaemon *daemon, const Berth__PlanDrainRequest *request,
                           GError **error)
{
    g_autoptr(GArray) handles = g_array_new(FALSE, FALSE, sizeof(guint32));
    for (gsize i = 0; i < request->n_others; i++) {
        const BerthNodeEntry *entry = find(daemon, request->others[i], error);
        if (!entry)
            return NULL;
        g_array_append_val(handles, entry->handle);
    }
    return g_steal_pointer(&handles);
}

void berth_node_plan_drain(BerthDaemon *daemon, const Berth__PlanDrainRequest *request,
                           BerthRpcCall *call)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) others = NULL;
    const BerthNodeEntry *entry = NULL;
    if (berth_permission_check_operator(&daemon->operators, berth_rpc_call_identity(call),
                                        "plan drains", &error))
        entry = find(daemon, request->name, &error);
    if (entry)
        others = find_others(daemon, request, &error);
    if (!others) {
        berth_rpc_call_fail(call, error);
        return;
    }
    g_autoptr(GArray) steps = berth_core_plan_drain(
        daemon->core, entry->handle, (const guint32 *)(const void *)others->data, others->len);
    reply_plan(daemon, entry->handle, steps, others->len, call);
}
