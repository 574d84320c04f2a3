/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the entry points: an event goes to the file that knows it, and a pass places what can start
 * after it. */
#include "scheduler/core/core.h"

#include "common/error.h"
#include "scheduler/core/charge.h"
#include "scheduler/core/checkpoint.h"
#include "scheduler/core/class.h"
#include "scheduler/core/depend.h"
#include "scheduler/core/drain.h"
#include "scheduler/core/entry.h"
#include "scheduler/core/job.h"
#include "scheduler/core/leaving.h"
#include "scheduler/core/limit.h"
#include "scheduler/core/maintenance.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/order.h"
#include "scheduler/core/order_tree.h"
#include "scheduler/core/owner.h"
#include "scheduler/core/placement.h"
#include "scheduler/core/plan.h"
#include "scheduler/core/predict.h"
#include "scheduler/core/relief.h"
#include "scheduler/core/requests.h"
#include "scheduler/core/room.h"
#include "scheduler/core/rounds.h"
#include "scheduler/core/sessions.h"
#include "scheduler/core/shapes.h"
#include "scheduler/core/task.h"
#include "scheduler/core/timers.h"
#include "scheduler/core/tuning.h"

/* --- life ----------------------------------------------------------------------------------- */

BerthCore *berth_core_new(const BerthCoreConfig *config)
{
    BerthCore *core = g_new0(BerthCore, 1);
    core->room_mib = G_MAXUINT64;
    core->config = *config;
    core_tuning_load(core->tunings, config->tunings);
    core->config.tunings = core->tunings;
    core_nodes_init(&core->nodes);
    core_classes_init(core);
    core_jobs_init(core);
    core_owners_init(core);
    core_depends_init(core);
    core_predict_init(core);
    core->round.kind = CORE_TIMER_ROUND;
    core->maintenance.kind = CORE_TIMER_MAINTENANCE;
    core->drain.kind = CORE_TIMER_DRAIN;
    core->ends_hopeless.kind = CORE_TIMER_HOPELESS;
    core->nodes.keep_cpu_permille = (guint32)core->tunings[BERTH_TUNING_CPU_HEADROOM_PERMILLE];
    core->nodes.keep_memory_permille =
        (guint32)core->tunings[BERTH_TUNING_MEMORY_HEADROOM_PERMILLE];
    core->nodes.evacuated_at_a_time = (guint32)core->tunings[BERTH_TUNING_MOVES_PER_NODE];
    core->nodes.evacuation_mib = core_relief_guest_mib(core);
    core->qos = g_array_new(FALSE, TRUE, sizeof(gint32));
    core->untried = g_ptr_array_new();
    core->unsuited = g_array_new(FALSE, FALSE, sizeof(guint64));
    core->plan = core_plan_new();
    core->shapes = core_shapes_new();
    core_timers_init(&core->timers);
    core->strays = g_array_new(FALSE, FALSE, sizeof(CoreStray));
    core->unsaved = g_array_new(FALSE, FALSE, sizeof(BerthGuestId));
    core->held = g_ptr_array_new();
    core->vacated = g_array_new(FALSE, FALSE, sizeof(guint32));
    core->drains_wanted = g_array_new(FALSE, FALSE, sizeof(guint32));
    core->drains_capped = g_array_new(FALSE, FALSE, sizeof(guint32));
    core->balanced = g_array_new(FALSE, FALSE, sizeof(CoreNodePair));
    return core;
}

void berth_core_free(BerthCore *core)
{
    core_heap_clear(&core->timers);
    core_jobs_clear(core);
    g_ptr_array_unref(core->untried);
    g_array_unref(core->unsuited);
    core_plan_free(core->plan);
    core_shapes_free(core->shapes);
    g_hash_table_unref(core->classes);
    core_depends_clear(core);
    core_predict_clear(core);
    core_owners_clear(core);
    g_array_unref(core->qos);
    core_nodes_clear(&core->nodes);
    g_array_unref(core->strays);
    g_array_unref(core->unsaved);
    g_ptr_array_unref(core->held);
    g_array_unref(core->vacated);
    g_array_unref(core->drains_wanted);
    g_array_unref(core->drains_capped);
    g_array_unref(core->balanced);
    g_free(core);
}

guint32 berth_core_add_node(BerthCore *core, const char *name)
{
    CoreNode *node = core_nodes_find_name(&core->nodes, name);
    if (node == NULL)
        node = core_nodes_add(&core->nodes, name);
    return node->handle;
}

guint32 berth_core_find_node(BerthCore *core, const char *name)
{
    const CoreNode *node = core_nodes_find_name(&core->nodes, name);
    return node != NULL ? node->handle : 0;
}

/* --- events --------------------------------------------------------------------------------- */

void core_event_begin(BerthCore *core, gint64 now_usec, BerthCoreEffects *effects)
{
    core_jobs_forget_over(core);
    core->now_usec = MAX(core->now_usec, now_usec);
    core->space_left_mib = core_checkpoint_space_left_mib(core);
    core->event++;
    core->effects = effects;
}

void core_event_end(BerthCore *core)
{
    core_depend_end_hopeless(core);
    core_drain_go_on(core);
    core_room_serve(core);
    core_checkpoint_begin_some(core);
    core_placement_pass(core);
    while (core_room_is_vacated(
        core)) { /* by whoever had to make room for a start, and had room held elsewhere */
        core_room_serve(core);
        core_placement_pass(core);
    }
    core_drain_tell_emptied(core);
    core->effects = NULL;
}

static gboolean on_request(BerthCore *core, const BerthCoreEvent *event, GError **error)
{
    if (event->kind == BERTH_EVENT_JOB_SUBMITTED)
        return core_submit(core, &event->submitted, error);
    const CoreAsk *ask = &(CoreAsk){.job = event->guest.job,
                                    .tasks = event->request.tasks,
                                    .others = event->request.others,
                                    .n_others = event->request.n_others,
                                    .by_operator = event->request.by_operator};
    switch (event->kind) {
    case BERTH_EVENT_JOB_CANCELLED:
        return core_cancel(core, ask, error);
    case BERTH_EVENT_JOB_HELD:
        return core_hold(core, ask, error);
    case BERTH_EVENT_JOB_FREEZE_WANTED:
        return core_freeze(core, ask, event->request.to_disk, error);
    case BERTH_EVENT_JOB_THAW_WANTED:
        return core_thaw(core, ask, event->node, error);
    case BERTH_EVENT_JOB_CHECKPOINT_WANTED:
        return core_checkpoint(core, ask, error);
    case BERTH_EVENT_JOB_RESTORE_WANTED:
        return core_restore(core, ask, event->guest.task, &event->request.checkpoint, error);
    case BERTH_EVENT_JOB_MIGRATE_WANTED:
        return core_migrate(core, ask, event->node, error);
    case BERTH_EVENT_JOB_MIGRATE_UNWANTED:
        return core_migrate_not(core, ask, error);
    case BERTH_EVENT_JOB_RESIZE_WANTED:
        return core_resize(core, ask, &event->request.resources, error);
    case BERTH_EVENT_JOB_TIME_LIMIT_SET:
        return core_set_time_limit(core, ask, event->request.time_limit_usec, error);
    case BERTH_EVENT_JOB_CHECKPOINT_EVERY_SET:
        return core_set_checkpoint_every(core, ask, event->request.checkpoint_every_usec, error);
    default:
        return core_release(core, ask, error);
    }
}

static void on_node(BerthCore *core, const BerthCoreEvent *event)
{
    CoreNode *node = core_nodes_get(&core->nodes, event->node);
    if (node == NULL)
        return;
    if (event->kind == BERTH_EVENT_NODE_JOINED)
        core_session_joined(core, node, &event->joined.info, event->joined.guests,
                            event->joined.n_guests);
    else if (event->kind == BERTH_EVENT_NODE_CHANGED)
        core_session_changed(core, node, &event->changed);
    else if (event->kind == BERTH_EVENT_NODE_GIVEN_UP)
        core_session_given_up(core, node);
    else
        core_session_left(core, node);
}

/* What an event of a guest says, in the words of its task. */
static CoreTaskEvent task_event(const BerthCoreEvent *event, CoreTaskInput *out_input)
{
    switch (event->kind) {
    case BERTH_EVENT_START_TAKEN:
        return CORE_TASK_START_TAKEN;
    case BERTH_EVENT_GUEST_RUNNING:
        out_input->start_usec = event->running.start_usec;
        return CORE_TASK_RUNNING;
    case BERTH_EVENT_GUEST_EXITED:
        out_input->start_usec = event->exited.start_usec;
        out_input->end_usec = event->exited.end_usec;
        out_input->exit = event->exited.exit;
        return CORE_TASK_EXITED;
    case BERTH_EVENT_GUEST_GONE:
        out_input->reason = event->gone.reason;
        out_input->not_begun = event->gone.not_begun;
        out_input->has_left = event->gone.has_left;
        return CORE_TASK_GONE;
    case BERTH_EVENT_START_FAILED:
        out_input->reason = event->start_failed.reason;
        out_input->permanent = event->start_failed.permanent;
        out_input->passes = event->start_failed.passes;
        return CORE_TASK_START_FAILED;
    case BERTH_EVENT_GUEST_RELEASED:
        return CORE_TASK_RELEASED;
    case BERTH_EVENT_GUEST_MIGRATED:
        out_input->ok = event->result.ok;
        out_input->serial = event->result.serial;
        return CORE_TASK_MIGRATED;
    case BERTH_EVENT_GUEST_CHECKPOINTED:
        out_input->ok = event->result.ok;
        out_input->serial = event->result.serial;
        out_input->paused_usec = event->result.paused_usec;
        out_input->stored_mib = event->result.stored_mib;
        return CORE_TASK_CHECKPOINTED;
    case BERTH_EVENT_GUEST_FROZEN:
        out_input->ok = event->result.ok;
        out_input->serial = event->result.serial;
        return CORE_TASK_FROZEN;
    case BERTH_EVENT_GUEST_THAWED:
        out_input->ok = event->result.ok;
        out_input->serial = event->result.serial;
        return CORE_TASK_THAWED;
    case BERTH_EVENT_GUEST_RESIZED:
        out_input->ok = event->result.ok;
        out_input->has = event->result.has;
        out_input->serial = event->result.serial;
        return CORE_TASK_RESIZED;
    case BERTH_EVENT_GUEST_FENCED:
        return CORE_TASK_FENCED;
    default:
        return CORE_TASK_FENCE_FAILED;
    }
}

/* A guest runs on one node, and while it migrates on either of two: what another says of it is about
 * nothing that is known here. What one end of a migration released is not the guest itself, and that it is gone where
 * it was to come says nothing of where it came from: who moves it asks both. */
static gboolean is_believed(const CoreGuest *guest, const BerthCoreEvent *event)
{
    if (event->node == 0 || event->node == guest->node)
        return TRUE;
    return guest->op == BERTH_OP_MIGRATING && !guest->waits_for_room && event->node == guest->to &&
           event->kind != BERTH_EVENT_GUEST_RELEASED && event->kind != BERTH_EVENT_GUEST_GONE;
}

static void on_guest(BerthCore *core, const BerthCoreEvent *event)
{
    const BerthGuestId *id = &event->guest;
    if (event->kind == BERTH_EVENT_GUEST_RELEASED &&
        core_session_stray_released(core, id, event->node))
        return;
    CoreGuest *guest = core_guest_get(core, id);
    if (guest == NULL || !is_believed(guest, event))
        return;
    CoreTaskInput input = {0};
    CoreTaskEvent kind = task_event(event, &input);
    core_guest_handle(core, guest, kind, &input);
}

static void on_report(BerthCore *core, const BerthCoreEvent *event)
{
    CoreGuest *guest = core_guest_get(core, &event->guest);
    if (guest == NULL || guest->phase != BERTH_GUEST_RUNNING || !is_believed(guest, event))
        return;
    CoreNode *node = core_nodes_get(&core->nodes, guest->node);
    gboolean was_awaited = core_predict_is_awaited(core, guest);
    core_predict_report(core, guest, &event->usage);
    if (was_awaited && !core_predict_awaits_any(core, node))
        core->pass_wanted = core->slack_wanted = TRUE;
    core_charge_report(core, guest, event->usage.starved_usec);
    core_nodes_slack_changed(&core->nodes, node);
    core_limit_check(core, guest, &event->usage);
    core_relief_check(core, node);
    core_relief_room_changed(core, node);
}

static void on_node_report(BerthCore *core, const BerthCoreEvent *event)
{
    CoreNode *node = core_nodes_get(&core->nodes, event->node);
    if (node == NULL || node->state != BERTH_NODE_UP)
        return;
    core_relief_report(core, node, &event->node_usage);
}

static void on_timer(BerthCore *core)
{
    CoreTimer *timer;
    while ((timer = core_timers_pop_due(core, core->now_usec)) != NULL) {
        if (timer->kind == CORE_TIMER_ROUND)
            core_round(core);
        else if (timer->kind == CORE_TIMER_MAINTENANCE)
            core_maintenance_due(core);
        else if (timer->kind == CORE_TIMER_DRAIN)
            core_drain_due(core);
        else if (timer->kind == CORE_TIMER_HOPELESS)
            continue; /* as with each event: core_event_end() */
        else if (timer->kind == CORE_TIMER_CHECKPOINT)
            core_checkpoint_due(core, CORE_CONTAINER_OF(timer, CoreTask, checkpoint_timer));
        else if (timer->kind == CORE_TIMER_ROOM)
            core_room_due(core, CORE_CONTAINER_OF(timer, CoreGuest, timer));
        else if (timer->kind == CORE_TIMER_LEAVING)
            core_leaving_due(core, CORE_CONTAINER_OF(timer, CoreGuest, timer));
        else if (timer->kind == CORE_TIMER_OVERSTAY)
            core_task_overstays(core, CORE_CONTAINER_OF(timer, CoreTask, overstay_timer));
        else if (timer->kind == CORE_TIMER_NODE)
            core_session_timed_out(core, CORE_CONTAINER_OF(timer, CoreNode, timer));
        else
            core_task_handle(core, CORE_CONTAINER_OF(timer, CoreTask, timer), CORE_TASK_TIMER,
                             NULL);
    }
}

static void on_storage(BerthCore *core, const BerthCoreEvent *event)
{
    gboolean is_down = event->kind == BERTH_EVENT_STORAGE_DOWN;
    if (event->kind == BERTH_EVENT_STORAGE_ROOM) {
        core_checkpoint_room_changed(core, event->storage_room.mib);
        return;
    }
    if (core->storage_down && !is_down) {
        core->pass_wanted = core->full_pass_wanted = TRUE;
        core_session_reopen_all(core);
        for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++)
            core_room_vacated(core, core_nodes_get(&core->nodes, handle));
    }
    core->storage_down = is_down;
}

static gboolean set_account(BerthCore *core, const BerthCoreEvent *event, GError **error)
{
    if (core_owner_set_account(core, event->account_set.account, event->account_set.parent,
                               event->account_set.shares, &event->account_set.limits))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "account %" G_GUINT32_FORMAT " cannot be below %" G_GUINT32_FORMAT
                ": that is itself below it",
                event->account_set.account, event->account_set.parent);
    return FALSE;
}

static gboolean on_setting(BerthCore *core, const BerthCoreEvent *event, GError **error)
{
    switch (event->kind) {
    case BERTH_EVENT_ACCOUNT_SET:
        return set_account(core, event, error);
    case BERTH_EVENT_USER_SET:
        core_owner_set_user(core, event->user_set.account, event->user_set.uid,
                            event->user_set.shares, &event->user_set.limits);
        return TRUE;
    case BERTH_EVENT_QOS_SET:
        return core_order_set_qos(core, event->qos_set.qos, event->qos_set.priority_permille,
                                  error);
    case BERTH_EVENT_MAINTENANCE_SET:
        core_maintenance_set(core, event->maintenance.id, event->maintenance.nodes,
                             event->maintenance.n_nodes, event->maintenance.start_usec,
                             event->maintenance.end_usec);
        return TRUE;
    case BERTH_EVENT_NODE_CORDONED:
        core_drain_admit(core, event->node, BERTH_ADMISSION_CORDONED);
        return TRUE;
    case BERTH_EVENT_NODE_DRAINED:
        core_drain_admit(core, event->node, BERTH_ADMISSION_DRAINING);
        return TRUE;
    case BERTH_EVENT_NODE_UNDRAINED:
        core_drain_admit(core, event->node, BERTH_ADMISSION_OPEN);
        return TRUE;
    default:
        core_maintenance_clear(core, event->maintenance.id);
        return TRUE;
    }
}

static gboolean dispatch(BerthCore *core, const BerthCoreEvent *event, GError **error)
{
    switch (event->kind) {
    case BERTH_EVENT_JOB_SUBMITTED:
    case BERTH_EVENT_JOB_CANCELLED:
    case BERTH_EVENT_JOB_HELD:
    case BERTH_EVENT_JOB_RELEASED:
    case BERTH_EVENT_JOB_FREEZE_WANTED:
    case BERTH_EVENT_JOB_THAW_WANTED:
    case BERTH_EVENT_JOB_MIGRATE_WANTED:
    case BERTH_EVENT_JOB_MIGRATE_UNWANTED:
    case BERTH_EVENT_JOB_CHECKPOINT_WANTED:
    case BERTH_EVENT_JOB_RESTORE_WANTED:
    case BERTH_EVENT_JOB_RESIZE_WANTED:
    case BERTH_EVENT_JOB_TIME_LIMIT_SET:
    case BERTH_EVENT_JOB_CHECKPOINT_EVERY_SET:
        return on_request(core, event, error);
    case BERTH_EVENT_CHECKPOINTS_CHANGED:
        core_checkpoints_changed(core, &event->guest, &event->checkpoints.newest,
                                 event->checkpoints.stored_mib);
        return TRUE;
    case BERTH_EVENT_NODE_JOINED:
    case BERTH_EVENT_NODE_LEFT:
    case BERTH_EVENT_NODE_CHANGED:
    case BERTH_EVENT_NODE_GIVEN_UP:
        on_node(core, event);
        return TRUE;
    case BERTH_EVENT_STORAGE_DOWN:
    case BERTH_EVENT_STORAGE_UP:
    case BERTH_EVENT_STORAGE_ROOM:
        on_storage(core, event);
        return TRUE;
    case BERTH_EVENT_TIMER:
        on_timer(core);
        return TRUE;
    case BERTH_EVENT_ACCOUNT_SET:
    case BERTH_EVENT_USER_SET:
    case BERTH_EVENT_QOS_SET:
    case BERTH_EVENT_MAINTENANCE_SET:
    case BERTH_EVENT_MAINTENANCE_CLEARED:
    case BERTH_EVENT_NODE_CORDONED:
    case BERTH_EVENT_NODE_DRAINED:
    case BERTH_EVENT_NODE_UNDRAINED:
        return on_setting(core, event, error);
    case BERTH_EVENT_GUEST_REPORTED:
        on_report(core, event);
        return TRUE;
    case BERTH_EVENT_NODE_REPORTED:
        on_node_report(core, event);
        return TRUE;
    default:
        on_guest(core, event);
        return TRUE;
    }
}

gboolean berth_core_handle(BerthCore *core, gint64 now_usec, const BerthCoreEvent *event,
                           BerthCoreEffects *effects, GError **error)
{
    core_event_begin(core, now_usec, effects);
    core->more_follow = event->more;
    gboolean ok = dispatch(core, event, error);
    core_event_end(core);
    return ok;
}

gint64 berth_core_next_timer_usec(BerthCore *core)
{
    const CoreHeapLink *first = core_heap_first(&core->timers);
    return first != NULL ? CORE_CONTAINER_OF(first, const CoreTimer, link)->due_usec : G_MAXINT64;
}
