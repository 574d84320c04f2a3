/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the story of one job: what the core did with it, and why it waited. */
#include "config.h"

#include "common/words.h"
#include "scheduler/core/look.h"
#include "scheduler/sim/state.h"
#include "scheduler/sim/words.h"

#define BEFORE_MAX 3u /* so many of those before a job are named */

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

/* Who comes before it, by their numbers in the trace. */
static char *tell_before(Sim *sim, const BerthCoreWait *wait)
{
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < MIN(wait->n_before, BEFORE_MAX); i++) {
        const SimRun *run = sim_run_find(sim, wait->before[i]);
        g_autofree char *name = run == NULL ? NULL : sim_job_name(run->job.number, run->job.task);
        if (name != NULL)
            g_string_append_printf(text, "%s%s", text->len == 0 ? "; before it: " : ", ", name);
    }
    if (text->len > 0 && wait->jobs_before > BEFORE_MAX)
        g_string_append_printf(text, " and %s%u more", wait->has_more_before ? "at least " : "",
                               wait->jobs_before - BEFORE_MAX);
    return g_string_free(text, FALSE);
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
    BerthCoreWait wait;
    g_autofree char *before = berth_core_get_wait(sim->core, run->job.id, 0, &wait)
                                  ? tell_before(sim, &wait)
                                  : g_strdup("");
    sim_explain(sim, &run->job, "%s%s", text, before);
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
