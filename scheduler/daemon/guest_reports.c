/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how reports of nodes become events of the core. Nodes are trusted with their own guests
 * only; their clocks are not trusted at all.
 *
 * Invariant: a record changes only by the node on which its newest epoch is, and an outcome that
 * the core has taken is not changed by a report that comes again. */
#include "config.h"

#include "scheduler/daemon/guest_reports.h"

#include "common/delta.h"
#include "common/id.h"
#include "scheduler/daemon/actions.h"
#include "scheduler/daemon/checkpoints.h"
#include "scheduler/daemon/logs.h"
#include "scheduler/daemon/migrations.h"
#include "scheduler/daemon/records.h"
#include "scheduler/daemon/told.h"
#include "scheduler/daemon/turn_records.h"
#include "scheduler/daemon/usage.h"

#include <string.h>

#define HELD_TOLD_EVERY_USEC (60 * (gint64)G_USEC_PER_SEC)

static BerthGuestId guest_id(const Berth__GuestId *id)
{
    return (BerthGuestId){.job = id->job, .task = id->task, .guest = id->guest, .epoch = id->epoch};
}

/* It is on its way to NODE, and may have come already. */
static gboolean migrates_to(BerthDaemon *daemon, const BerthGuestId *id, guint32 node)
{
    BerthCoreGuest guest;
    return berth_core_get_guest(daemon->core, id->job, id->task, id->guest, &guest) &&
           guest.op == BERTH_OP_MIGRATING && !guest.waits_for_room && guest.to == node;
}

/* The record of the guest ID if it lives on NODE in this epoch; OUT_TASK says how the core sees it.
 * NULL: it is nothing of ours (any more). */
static BerthTaskEntry *find_entry(BerthDaemon *daemon, guint32 node, const BerthGuestId *id,
                                  BerthCoreTask *out_task)
{
    if (id->guest != 0 || !berth_core_get_task(daemon->core, id->job, id->task, out_task) ||
        out_task->epoch != id->epoch || out_task->phase == BERTH_GUEST_NONE ||
        (out_task->node != node && !migrates_to(daemon, id, node)))
        return NULL;
    return berth_job_table_find_task(daemon->jobs, id->job, id->task);
}

/* Between its start was decided and now, whatever the node's clock says. */
static gint64 believable_usec(BerthDaemon *daemon, const BerthTaskEntry *entry, guint64 said_usec)
{
    gint64 now_usec = berth_engine_now_usec(daemon->engine);
    gint64 said = said_usec > G_MAXINT64 ? G_MAXINT64 : (gint64)said_usec;
    if (said == 0)
        return now_usec;
    gint64 earliest = entry ? entry->started_at_usec : 0;
    return CLAMP(said, MIN(earliest, now_usec), now_usec);
}

/* When its command began, or, restored, went on: its run begins now, whatever its node says. */
static gint64 start_usec(BerthDaemon *daemon, const BerthTaskEntry *entry, guint64 said_usec)
{
    if (entry && entry->stored->task->restores_from != 0 && entry->stored->task->booting)
        return berth_engine_now_usec(daemon->engine);
    return believable_usec(daemon, entry, said_usec);
}

static BerthReason gone_reason(const Berth__GuestStatus *status)
{
    switch (status->reason) {
    case BERTH__REASON__REASON_BOOT_DEADLINE:
    case BERTH__REASON__REASON_GUEST_CRASHED:
    case BERTH__REASON__REASON_DISK_FULL:
    case BERTH__REASON__REASON_START_FAILED:
    case BERTH__REASON__REASON_STORAGE_UNAVAILABLE:
    case BERTH__REASON__REASON_CROWDED_OUT:
        return (BerthReason)status->reason;
    default:
        return BERTH_REASON_GUEST_VANISHED;
    }
}

/* A node may hold a guest back and let it go again for as long as it is short: the event log has no more of that than
 * this, and of each that it has both. */
static gboolean is_held_told(BerthTaskEntry *entry, gboolean is_held, gint64 now_usec)
{
    if (!is_held)
        return !entry->holds_untold;
    entry->holds_untold =
        entry->held_told_usec != 0 && now_usec - entry->held_told_usec < HELD_TOLD_EVERY_USEC;
    if (!entry->holds_untold)
        entry->held_told_usec = now_usec;
    return !entry->holds_untold;
}

static void log_held_back(BerthTurn *turn, const Berth__Task *task, gboolean is_held)
{
    const char *why = task->opportunistic
                          ? "the node is short of memory, and the job runs in slack"
                          : "the node is short of memory, until jobs in slack have left";
    if (is_held)
        berth_turn_log_task(turn, task, BERTH__EVENT__KIND__GUEST_HELD_BACK, 0, why);
    else
        berth_turn_log_task(turn, task, BERTH__EVENT__KIND__GUEST_LET_GO, 0, NULL);
}

/* What its node does by itself, of which reports say nothing; the core learns of the node's memory, and that is what it heeds. */
static void take_held_back(BerthDaemon *daemon, BerthTurn *turn, guint32 node,
                           const BerthCoreTask *known, BerthTaskEntry *entry,
                           const Berth__GuestStatus *status)
{
    Berth__Task *task = entry->stored->task;
    gboolean is_held = status->held_back_usec != 0;
    if (known->node != node || known->phase >= BERTH_GUEST_RELEASING ||
        is_held == (task->held_back_usec != 0))
        return;
    task->held_back_usec =
        is_held ? (guint64)believable_usec(daemon, entry, status->held_back_usec) : 0;
    if (is_held_told(entry, is_held, berth_engine_now_usec(daemon->engine)))
        log_held_back(turn, task, is_held);
    berth_turn_put_task(turn, task->job, task->index);
}

/* What ENTRY's guest has reported of itself by now: that its kernel ended processes is told in the log, as the job may go on. */
static void take_kills(BerthDaemon *daemon, BerthTurn *turn, guint32 node,
                       const BerthCoreTask *known, BerthTaskEntry *entry)
{
    const Berth__Task *task = entry->stored->task;
    const BerthJobEntry *job = berth_job_table_find(daemon->jobs, known->job);
    if (known->node != node || known->phase >= BERTH_GUEST_RELEASING)
        return;
    g_autofree char *text =
        berth_told_kills(job->job, entry, berth_engine_now_usec(daemon->engine));
    if (!text)
        return;
    berth_turn_log_task(turn, task, BERTH__EVENT__KIND__GUEST_OOM_KILL,
                        BERTH__REASON__REASON_MEMORY_LIMIT, text);
    berth_turn_put_task(turn, task->job, task->index);
}

/* Takes what STATUS of NODE says into the record, unless the guest's outcome is decided. What the node that it
 * comes to measures counts when it is known to be there. */
static void take_status(BerthDaemon *daemon, BerthTurn *turn, guint32 node, const BerthGuestId *id,
                        const BerthCoreTask *task, BerthTaskEntry *entry,
                        const Berth__GuestStatus *status)
{
    Berth__GuestStatus said = *status;
    if (task->node != node)
        said.usage = NULL;
    if (task->phase == BERTH_GUEST_RELEASING || task->phase == BERTH_GUEST_FENCING)
        return;
    if (status->phase == BERTH__GUEST_STATUS__PHASE__ACTIVE && entry->stored->task->booting &&
        entry->stored->task->restores_from != 0)
        berth_checkpoints_restored(daemon->checkpoints, turn, entry);
    guint64 stdout_bytes = entry->stdout_bytes;
    guint64 stderr_bytes = entry->stderr_bytes;
    if (berth_record_take_status(entry, &said))
        berth_turn_put_task(turn, id->job, id->task);
    if (status->phase != BERTH__GUEST_STATUS__PHASE__ENDED) /* its end says it, too */
        take_kills(daemon, turn, node, task, entry);
    if (entry->stdout_bytes != stdout_bytes || entry->stderr_bytes != stderr_bytes)
        berth_logs_wake(daemon->log_followers, id->job, id->task);
}

static void give_to_core(BerthTurn *turn, const BerthCoreEvent *event)
{
    g_autoptr(GError) error = NULL;
    if (!berth_turn_event(turn, event, NULL, &error))
        g_critical("the core refused what a node said: %s", error->message);
}

/* --- guests that have left ----------------------------------------------------------------------- */

typedef struct {
    BerthDaemon *daemon;
    guint32 node;
    BerthGuestId guest;
} Stray;

static void on_left_settled(const GError *error, gpointer user_data)
{
    g_autofree Stray *left = user_data;
    if (!error)
        berth_migrations_release(left->daemon->migrations, left->node, &left->guest);
}

/* TRUE: ID is on NODE, as far as the core knows. If not, NODE is told to forget it, unless it is to come back
 * there, for which its node was told before. */
static gboolean was_here(BerthDaemon *daemon, BerthTurn *turn, guint32 node, const BerthGuestId *id,
                         gboolean is_join)
{
    BerthCoreTask task;
    if (find_entry(daemon, node, id, &task) && task.node == node)
        return TRUE;
    if (is_join || !migrates_to(daemon, id, node)) {
        Stray *left = g_new(Stray, 1);
        *left = (Stray){daemon, node, *id};
        berth_turn_then(turn, on_left_settled, left);
    }
    return FALSE;
}

gboolean berth_guest_reports_is_moved(BerthDaemon *daemon, const BerthGuestId *id)
{
    BerthCoreGuest guest;
    return berth_core_get_guest(daemon->core, id->job, id->task, id->guest, &guest) &&
           guest.id.epoch == id->epoch && guest.op == BERTH_OP_MIGRATING && !guest.waits_for_room;
}

/* --- Join --------------------------------------------------------------------------------------- */

static gboolean found_phase(const Berth__GuestStatus *status, BerthFoundPhase *out_phase)
{
    switch (status->phase) {
    case BERTH__GUEST_STATUS__PHASE__STARTING:
    case BERTH__GUEST_STATUS__PHASE__ARRIVING:
        *out_phase = BERTH_FOUND_STARTING;
        return TRUE;
    case BERTH__GUEST_STATUS__PHASE__ACTIVE:
        *out_phase = BERTH_FOUND_RUNNING;
        return TRUE;
    case BERTH__GUEST_STATUS__PHASE__ENDED:
        *out_phase = BERTH_FOUND_EXITED;
        return TRUE;
    case BERTH__GUEST_STATUS__PHASE__LEFT:
        *out_phase = BERTH_FOUND_LEFT;
        return TRUE;
    case BERTH__GUEST_STATUS__PHASE__GONE:
        *out_phase = status->not_begun ? BERTH_FOUND_NOT_BEGUN : BERTH_FOUND_GONE;
        return TRUE;
    default:
        return FALSE;
    }
}

static void add_found(BerthDaemon *daemon, BerthTurn *turn, guint32 node,
                      const Berth__GuestStatus *status, GArray *found)
{
    BerthFoundGuest guest = {.id = guest_id(status->id)};
    BerthCoreTask task;
    gboolean has_left = status->phase == BERTH__GUEST_STATUS__PHASE__LEFT;
    if (!found_phase(status, &guest.phase) ||
        (has_left && !was_here(daemon, turn, node, &guest.id, TRUE)))
        return;
    BerthTaskEntry *entry = find_entry(daemon, node, &guest.id, &task);
    if (entry && status->phase != BERTH__GUEST_STATUS__PHASE__ARRIVING) {
        take_status(daemon, turn, node, &guest.id, &task, entry, status);
        take_held_back(daemon, turn, node, &task, entry, status);
    }
    if (has_left && berth_guest_reports_is_moved(daemon, &guest.id))
        return; /* it is missing, and who moves it looks for it */
    guest.start_usec = start_usec(daemon, entry, status->start_usec);
    guest.end_usec = believable_usec(daemon, entry, status->end_usec);
    guest.reason = gone_reason(status);
    berth_record_exit_to_core(status->exit, &guest.exit);
    g_array_append_val(found, guest);
}

/* FOUND runs, and nobody has heard of it: who waits for that learns it from the event log. */
static gboolean is_news(BerthDaemon *daemon, const BerthFoundGuest *found)
{
    BerthCoreGuest guest;
    return found->phase == BERTH_FOUND_RUNNING &&
           berth_core_get_guest(daemon->core, found->id.job, found->id.task, found->id.guest,
                                &guest) &&
           guest.id.epoch == found->id.epoch && guest.phase == BERTH_GUEST_STARTING;
}

static void log_running(BerthDaemon *daemon, BerthTurn *turn, guint32 node,
                        const BerthFoundGuest *found)
{
    Berth__Event event = BERTH__EVENT__INIT;
    event.kind = BERTH__EVENT__KIND__GUEST_RUNNING;
    event.job = found->id.job;
    event.task = found->id.task;
    event.epoch = found->id.epoch;
    event.node = (char *)berth_node_table_name(daemon->nodes, node);
    berth_turn_log(turn, &event);
}

static void log_news(BerthDaemon *daemon, BerthTurn *turn, guint32 node, const GArray *found)
{
    for (guint i = 0; i < found->len; i++) {
        const BerthFoundGuest *guest = &g_array_index(found, BerthFoundGuest, i);
        if (is_news(daemon, guest))
            log_running(daemon, turn, node, guest);
    }
}

gboolean berth_guest_reports_is_stray(BerthDaemon *daemon, guint32 node,
                                      const Berth__GuestId *named)
{
    const BerthGuestId id = guest_id(named);
    BerthCoreGuest guest;
    if (!berth_core_get_guest(daemon->core, id.job, id.task, id.guest, &guest) ||
        guest.id.epoch != id.epoch || guest.phase == BERTH_GUEST_NONE)
        return TRUE;
    return guest.node != node &&
           !(guest.op == BERTH_OP_MIGRATING && !guest.waits_for_room && guest.to == node);
}

void berth_guest_reports_join(BerthDaemon *daemon, BerthTurn *turn, guint32 node,
                              const Berth__JoinRequest *request)
{
    g_autoptr(GArray) found = g_array_new(FALSE, FALSE, sizeof(BerthFoundGuest));
    g_autoptr(GHashTable) seen =
        g_hash_table_new_full(berth_guest_id_hash, berth_guest_id_equal_func, g_free, NULL);
    for (gsize i = 0; i < request->n_guests; i++) {
        const Berth__GuestStatus *status = request->guests[i];
        if (!status->id)
            continue;
        BerthGuestId *key = g_new(BerthGuestId, 1);
        *key = guest_id(status->id);
        if (g_hash_table_add(seen, key))
            add_found(daemon, turn, node, status, found);
    }
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_JOINED, .node = node};
    event.joined.info = berth_record_node_to_core(request->info);
    event.joined.guests = (const BerthFoundGuest *)(void *)found->data;
    event.joined.n_guests = found->len;
    log_news(daemon, turn, node, found);
    give_to_core(turn, &event);
}

void berth_guest_reports_node(BerthDaemon *daemon, BerthTurn *turn, guint32 node,
                              const Berth__NodeInfo *info)
{
    BerthNodeEntry *entry = berth_node_table_find(daemon->nodes, node);
    gboolean is_news = strcmp(entry->info->cannot_start, info->cannot_start) != 0;
    berth_node_entry_set_info(entry, info);
    berth_turn_put_node(turn, node);
    if (is_news) {
        Berth__Event cause = BERTH__EVENT__INIT;
        cause.kind = BERTH__EVENT__KIND__NODE_CHANGED;
        cause.node = entry->name;
        cause.text = info->cannot_start;
        berth_turn_log(turn, &cause);
    }
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_CHANGED, .node = node};
    event.changed = berth_record_node_to_core(info);
    give_to_core(turn, &event);
}

/* --- GuestChanged ------------------------------------------------------------------------------- */

static gboolean change_event(BerthDaemon *daemon, const BerthTaskEntry *entry,
                             const Berth__GuestStatus *status, BerthCoreEvent *event)
{
    switch (status->phase) {
    case BERTH__GUEST_STATUS__PHASE__ACTIVE:
        event->kind = BERTH_EVENT_GUEST_RUNNING;
        event->running.start_usec = start_usec(daemon, entry, status->start_usec);
        return TRUE;
    case BERTH__GUEST_STATUS__PHASE__ENDED:
        event->kind = BERTH_EVENT_GUEST_EXITED;
        event->exited.start_usec = start_usec(daemon, entry, status->start_usec);
        event->exited.end_usec = believable_usec(daemon, entry, status->end_usec);
        berth_record_exit_to_core(status->exit, &event->exited.exit);
        return TRUE;
    case BERTH__GUEST_STATUS__PHASE__GONE:
    case BERTH__GUEST_STATUS__PHASE__LEFT: /* and nobody here knows for where */
        event->kind = BERTH_EVENT_GUEST_GONE;
        event->gone.reason = gone_reason(status);
        event->gone.not_begun = status->not_begun;
        event->gone.has_left = status->phase == BERTH__GUEST_STATUS__PHASE__LEFT;
        return TRUE;
    default:
        return FALSE; /* STARTING: no news */
    }
}

static void on_stray_settled(const GError *error, gpointer user_data)
{
    g_autofree Stray *stray = user_data;
    if (!error)
        berth_actions_release_stray(stray->daemon->actions, stray->node, &stray->guest);
}

/* Fenced, requeued or never known: it must not go on. That it is not wanted may have been decided
 * just now: it is told to go once that is durable. */
static void release_stray(BerthDaemon *daemon, BerthTurn *turn, guint32 node,
                          const BerthGuestId *guest)
{
    Stray *stray = g_new(Stray, 1);
    *stray = (Stray){daemon, node, *guest};
    berth_turn_then(turn, on_stray_settled, stray);
}

gboolean berth_guest_reports_change(BerthDaemon *daemon, BerthTurn *turn, guint32 node,
                                    const Berth__GuestStatus *status)
{
    BerthCoreEvent event = {.guest = guest_id(status->id), .node = node};
    BerthCoreTask task;
    gboolean has_left = status->phase == BERTH__GUEST_STATUS__PHASE__LEFT;
    if (has_left && (!was_here(daemon, turn, node, &event.guest, FALSE) ||
                     berth_guest_reports_is_moved(daemon, &event.guest)))
        return FALSE;
    BerthTaskEntry *entry = find_entry(daemon, node, &event.guest, &task);
    if (!entry) {
        release_stray(daemon, turn, node, &event.guest);
        return FALSE;
    }
    take_status(daemon, turn, node, &event.guest, &task, entry, status);
    take_held_back(daemon, turn, node, &task, entry, status);
    if (change_event(daemon, entry, status, &event))
        give_to_core(turn, &event);
    berth_logs_wake(daemon->log_followers, event.guest.job, event.guest.task);
    return task.phase < BERTH_GUEST_RELEASING;
}

/* --- Report ------------------------------------------------------------------------------------- */

static void measure_guest(BerthDaemon *daemon, BerthTurn *turn, guint32 node,
                          const Berth__GuestStatus *status, GArray *events)
{
    BerthCoreEvent event = {
        .kind = BERTH_EVENT_GUEST_REPORTED, .guest = guest_id(status->id), .node = node};
    BerthCoreTask task;
    BerthTaskEntry *entry = find_entry(daemon, node, &event.guest, &task);
    if (!entry)
        return;
    take_status(daemon, turn, node, &event.guest, &task, entry, status);
    /* Of one that is to go nothing is taken any more: if it has hardly begun to boot, nothing ever was. */
    const Berth__Usage *taken = entry->stored->task->usage;
    if (status->usage && taken && task.node == node &&
        berth_usage_to_core(entry, task.phase == BERTH_GUEST_RUNNING, taken,
                            berth_engine_now_usec(daemon->engine), &event.usage))
        g_array_append_val(events, event);
}

/* What CHANGE says in full. NULL: it leaves out what is not known here. */
static const Berth__Usage *complete(BerthTaskEntry *entry, guint32 node,
                                    const Berth__GuestReport *change)
{
    if (change->whole || (entry->said && entry->said_node != node)) {
        if (entry->said)
            berth__usage__free_unpacked(entry->said, NULL);
        entry->said = NULL;
    }
    if (!entry->said && !change->whole)
        return NULL;
    if (!entry->said) {
        const Berth__Usage none = BERTH__USAGE__INIT;
        entry->said = berth_pb_dup(&none.base);
    }
    entry->said_node = node;
    berth_delta_apply(&entry->said->base, change->usage ? &change->usage->base : NULL,
                      change->zeros, change->n_zeros);
    return entry->said;
}

static gboolean is_measured(const Berth__GuestReport *change)
{
    return change->whole || change->usage || change->n_zeros > 0;
}

/* Adds to UNKNOWN (Berth__GuestId, not owned) whom the node has to tell of wholly. */
static void measure_change(BerthDaemon *daemon, BerthTurn *turn, guint32 node,
                           const Berth__GuestReport *change, GArray *events, GPtrArray *unknown)
{
    const BerthGuestId id = guest_id(change->id);
    Berth__GuestStatus status = BERTH__GUEST_STATUS__INIT;
    BerthCoreTask task;
    BerthTaskEntry *entry = find_entry(daemon, node, &id, &task);
    if (!entry)
        return;
    status.id = change->id;
    status.stdout_bytes = change->stdout_bytes;
    status.stderr_bytes = change->stderr_bytes;
    status.migration = change->migration;
    if (is_measured(change)) {
        status.usage = (Berth__Usage *)complete(entry, node, change);
        if (!status.usage)
            g_ptr_array_add(unknown, change->id);
    }
    measure_guest(daemon, turn, node, &status, events);
}

static void measure_node(BerthNodeEntry *entry, const Berth__ReportRequest *request, GArray *events)
{
    BerthCoreEvent event = {.kind = BERTH_EVENT_NODE_REPORTED, .node = entry->handle};
    berth_usage_node_to_core(entry, request, entry->heard_usec, &event.node_usage);
    g_array_append_val(events, event);
}

void berth_guest_reports_measure(BerthDaemon *daemon, BerthTurn *turn, guint32 node,
                                 const Berth__ReportRequest *request, GPtrArray *unknown)
{
    BerthNodeEntry *node_entry = berth_node_table_find(daemon->nodes, node);
    g_autoptr(GArray) events = g_array_new(FALSE, FALSE, sizeof(BerthCoreEvent));
    for (gsize i = 0; i < request->n_guests; i++)
        if (request->guests[i]->id)
            measure_guest(daemon, turn, node, request->guests[i], events);
    for (gsize i = 0; i < request->n_changes; i++)
        if (request->changes[i]->id)
            measure_change(daemon, turn, node, request->changes[i], events, unknown);
    if (request->node)
        measure_node(node_entry, request, events);
    for (guint i = 0; i < events->len; i++) {
        BerthCoreEvent *event = &g_array_index(events, BerthCoreEvent, i);
        event->more = i + 1 < events->len;
        give_to_core(turn, event);
    }
}
