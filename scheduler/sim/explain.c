/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the story of one job: what the core did with it, and why it waited. */
#include "config.h"

#include "common/words.h"
#include "scheduler/sim/state.h"
#include "scheduler/sim/words.h"

static gboolean is_wanted(const Sim *sim, const SimJob *job)
{
    return sim->config->explain != 0 &&
           sim_job_is(job, sim->config->explain, sim->config->explain_task) &&
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
    SimRun *run;
    if (sim->config->explain == 0 || (run = sim_run_find(sim, action->guest.job)) == NULL)
        return;
    g_autofree char *node = g_strdup_printf("%u", action->node);
    g_autofree char *to = g_strdup_printf("%u", action->to);
    g_autofree char *text = sim_action_text(action, node, to);
    sim_explain(sim, &run->job, "%s", text);
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
    g_autofree char *text =
        berth_words_waiting(reason, berth_core_planned_usec(sim->core, run->job.id), sim->now_usec);
    sim_explain(sim, &run->job, "%s", text);
}

char *sim_explain_ending(const BerthCoreTask *task)
{
    BerthReason reason = task->reason;
    if (task->state == BERTH_JOB_COMPLETED)
        return g_strdup("completed");
    if (task->state == BERTH_JOB_TIMEOUT)
        reason = BERTH_REASON_TIME_LIMIT;
    if (task->state == BERTH_JOB_OUT_OF_MEMORY)
        reason = BERTH_REASON_MEMORY_LIMIT;
    if (task->state == BERTH_JOB_NODE_FAIL && reason == BERTH_REASON_NONE)
        reason = BERTH_REASON_NODE_LOST;
    gboolean killed = task->state == BERTH_JOB_TIMEOUT || task->state == BERTH_JOB_OUT_OF_MEMORY ||
                      reason == BERTH_REASON_SIGNAL;
    return g_strdup_printf("%s: %s", killed ? "killed" : "ended", berth_words_reason(reason));
}

static double seconds(gint64 usec)
{
    return (double)usec / (double)G_USEC_PER_SEC;
}

void sim_explain_sum(Sim *sim, const SimRun *run, const SimOutcome *outcome)
{
    gint64 waited = outcome->start_usec - run->job.submit_usec;
    gint64 ran = outcome->is_completed ? run->job.run_usec : 0;
    sim_explain(sim, &run->job,
                "in all: waited %.1f s, ran %.1f s, lost %.1f s (slowed, stopped or done again)",
                seconds(waited), seconds(ran),
                seconds(outcome->end_usec - outcome->start_usec - ran));
}
