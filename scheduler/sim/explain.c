/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the story of one job: what the core did with it, and why it waited. */
#include "config.h"

#include "scheduler/sim/state.h"

const char *sim_reason_text(BerthReason reason)
{
    static const struct {
        BerthReason reason;
        const char *text;
    } texts[] = {
        {BERTH_REASON_NONE, "no reason"},
        {BERTH_REASON_PRIORITY, "others are before it"},
        {BERTH_REASON_RESOURCES, "no node has room for it now"},
        {BERTH_REASON_NODE_UNAVAILABLE, "the nodes that it could use are away"},
        {BERTH_REASON_REQUEUED, "its guest was lost"},
        {BERTH_REASON_STARTING_LATER, "its last start failed"},
        {BERTH_REASON_STORAGE_UNAVAILABLE, "storage is away"},
        {BERTH_REASON_ACCOUNT_LIMIT, "a limit of its user or account"},
        {BERTH_REASON_MAINTENANCE, "nodes are kept for maintenance"},
        {BERTH_REASON_EVICTED, "it made room for another, and waits for some"},
        {BERTH_REASON_TIME_LIMIT, "its time limit"},
        {BERTH_REASON_NODE_LOST, "its node was lost"},
        {BERTH_REASON_GUEST_VANISHED, "its guest vanished"},
        {BERTH_REASON_START_FAILED, "the start failed"},
        {BERTH_REASON_PRESSURE, "its node is short of memory or CPU"},
        {BERTH_REASON_ROOM_NEEDED, "a job with a guaranteed place needs the room"},
        {BERTH_REASON_PROMOTION, "its whole reservation is backed there"},
        {BERTH_REASON_BALANCE, "the load of the nodes differs too much"},
        {BERTH_REASON_DRAIN, "its node is drained"},
        {BERTH_REASON_AT_LIMIT, "it is at its limit"},
        {BERTH_REASON_BELOW_LIMIT, "it is below its limit again"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        if (texts[i].reason == reason)
            return texts[i].text;
    return "another reason";
}

static gboolean is_wanted(const Sim *sim, const SimJob *job)
{
    return sim->config->explain != 0 && sim->config->explain == job->number &&
           sim->config->hooks.explain != NULL;
}

void sim_explain(Sim *sim, const SimJob *job, const char *format, ...)
{
    if (!is_wanted(sim, job))
        return;
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    sim->config->hooks.explain(sim->now_usec, job, text, sim->config->hooks.user_data);
}

void sim_explain_action(Sim *sim, const BerthCoreAction *action)
{
    static const char *const verbs[] = {
        [BERTH_ACTION_START] = "start",     [BERTH_ACTION_STOP] = "stop",
        [BERTH_ACTION_RELEASE] = "release", [BERTH_ACTION_FENCE] = "fence",
        [BERTH_ACTION_MIGRATE] = "migrate", [BERTH_ACTION_CHECKPOINT] = "checkpoint",
        [BERTH_ACTION_RESTORE] = "restore", [BERTH_ACTION_FREEZE] = "freeze",
        [BERTH_ACTION_THAW] = "thaw",       [BERTH_ACTION_RESIZE] = "resize"};
    SimRun *run;
    if (sim->config->explain == 0 || (run = sim_run_find(sim, action->guest.job)) == NULL)
        return;
    g_autofree char *to =
        action->kind == BERTH_ACTION_MIGRATE ? g_strdup_printf(" to node %u", action->to) : NULL;
    sim_explain(sim, &run->job, "%s guest %u on node %u%s%s%s%s", verbs[action->kind],
                action->guest.guest, action->node, to != NULL ? to : "",
                action->is_opportunistic ? ", in slack" : "",
                action->reason != BERTH_REASON_NONE ? ": " : "",
                action->reason != BERTH_REASON_NONE ? sim_reason_text(action->reason) : "");
}

/* Only where the reason is not the one told last. */
void sim_explain_waiting(Sim *sim, SimRun *run)
{
    BerthCoreTask task;
    if (!is_wanted(sim, &run->job) || !berth_core_get_task(sim->core, run->job.id, 0, &task))
        return;
    BerthReason reason = BERTH_REASON_NONE;
    if (task.state == BERTH_JOB_PENDING)
        reason = berth_core_pending_reason(sim->core, run->job.id, 0);
    if (reason == run->explained)
        return;
    run->explained = reason;
    if (reason == BERTH_REASON_NONE)
        return;
    gint64 planned = berth_core_planned_usec(sim->core, run->job.id);
    if (planned > 0)
        sim_explain(sim, &run->job, "waits: %s; planned to start %.0f s from now",
                    sim_reason_text(reason), (double)(planned - sim->now_usec) / G_USEC_PER_SEC);
    else
        sim_explain(sim, &run->job, "waits: %s", sim_reason_text(reason));
}
