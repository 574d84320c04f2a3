/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what an event leaves behind for the driver. */
#include "scheduler/core/effects.h"

#include "scheduler/core/job.h"
#include "scheduler/core/learned.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/task.h"

BerthCoreEffects *berth_core_effects_new(void)
{
    BerthCoreEffects *effects = g_new(BerthCoreEffects, 1);
    effects->actions = g_array_new(FALSE, TRUE, sizeof(BerthCoreAction));
    effects->changed = g_array_new(FALSE, TRUE, sizeof(BerthGuestId));
    effects->nodes = g_array_new(FALSE, TRUE, sizeof(guint32));
    effects->given_up = g_array_new(FALSE, TRUE, sizeof(BerthCoreAction));
    effects->uses = g_array_new(FALSE, TRUE, sizeof(BerthCoreUse));
    effects->priors = g_array_new(FALSE, TRUE, sizeof(BerthCorePrior));
    return effects;
}

void berth_core_effects_clear(BerthCoreEffects *effects)
{
    g_array_set_size(effects->actions, 0);
    g_array_set_size(effects->changed, 0);
    g_array_set_size(effects->nodes, 0);
    g_array_set_size(effects->given_up, 0);
    g_array_set_size(effects->uses, 0);
    g_array_set_size(effects->priors, 0);
}

void berth_core_effects_free(BerthCoreEffects *effects)
{
    g_array_unref(effects->actions);
    g_array_unref(effects->changed);
    g_array_unref(effects->nodes);
    g_array_unref(effects->given_up);
    g_array_unref(effects->uses);
    g_array_unref(effects->priors);
    g_free(effects);
}

BerthGuestId core_guest_id(const CoreGuest *guest)
{
    const BerthCoreTask *record = &guest->task->record;
    return (BerthGuestId){
        .job = record->job, .task = record->task, .guest = guest->index, .epoch = record->epoch};
}

BerthCoreAction core_action(BerthCore *core, BerthActionKind kind, const CoreGuest *guest,
                            BerthReason reason)
{
    const CoreJob *job = guest->task->job;
    gint64 grace_usec =
        job->stop_grace_usec > 0 ? job->stop_grace_usec : core->config.stop_grace_usec;
    gboolean begins = kind == BERTH_ACTION_START || kind == BERTH_ACTION_RESTORE;
    return (BerthCoreAction){
        .kind = kind,
        .guest = core_guest_id(guest),
        .node = guest->node,
        .reason = reason,
        .grace_usec = kind == BERTH_ACTION_STOP ? grace_usec : 0,
        .from_epoch = kind == BERTH_ACTION_RESTORE ? guest->task->record.checkpoint_epoch : 0,
        .checkpoint = kind == BERTH_ACTION_RESTORE ? guest->task->record.checkpoint : 0,
        .resources = begins ? core_guest_resources(guest) : (BerthResources){0, 0, 0},
        .cells = begins ? guest->cells : 0,
    };
}

void core_emit_action(BerthCore *core, const BerthCoreAction *action)
{
    const CoreNode *node = core_nodes_get(&core->nodes, action->node);
    /* A fence is storage's to do, not the node's. */
    if (action->kind == BERTH_ACTION_FENCE || node->state == BERTH_NODE_UP)
        g_array_append_val(core->effects->actions, *action);
}

void core_emit(BerthCore *core, BerthActionKind kind, const CoreGuest *guest, BerthReason reason)
{
    BerthCoreAction action = core_action(core, kind, guest, reason);
    core_emit_action(core, &action);
}

void core_emit_release_of_stray(BerthCore *core, const CoreNode *node, BerthGuestId guest)
{
    BerthCoreAction action = {.kind = BERTH_ACTION_RELEASE, .guest = guest, .node = node->handle};
    g_array_append_val(core->effects->actions, action);
}

void core_emit_changed(BerthCore *core, CoreTask *task)
{
    if (task->changed_at == core->event)
        return;
    task->changed_at = core->event;
    BerthGuestId id = {.job = task->record.job, .task = task->record.task};
    g_array_append_val(core->effects->changed, id);
}

void core_emit_job_changed(BerthCore *core, CoreJob *job)
{
    if (job->changed_at == core->event || core_job_n_fresh(job) == 0)
        return;
    job->changed_at = core->event;
    job->changed_as = job->next;
    BerthGuestId id = {.job = job->id, .task = job->next};
    g_array_append_val(core->effects->changed, id);
}

void core_emit_node(BerthCore *core, const CoreNode *node)
{
    g_array_append_val(core->effects->nodes, node->handle);
}
