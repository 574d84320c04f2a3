/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is told of why a task waits. What the core says has handles, and who asks reads names. */
#include "config.h"

#include "scheduler/daemon/explain.h"

#include "common/error.h"
#include "scheduler/core/look.h"
#include "scheduler/daemon/job_view.h"
#include "scheduler/daemon/node_view.h"
#include "scheduler/daemon/pb.h"

typedef struct {
    Berth__Explanation message;
    char *nodes[BERTH_WAIT_NODES_MAX];
    Berth__Explanation__Leaving leavings[BERTH_WAIT_LEAVINGS_MAX];
    Berth__Explanation__Leaving *leaving_pointers[BERTH_WAIT_LEAVINGS_MAX];
    Berth__Explanation__Closed closed[BERTH_WAIT_NODES_MAX];
    Berth__Explanation__Closed *closed_pointers[BERTH_WAIT_NODES_MAX];
    Berth__Explanation__Hindrance hindrances[BERTH_N_HINDRANCES];
    Berth__Explanation__Hindrance *hindrance_pointers[BERTH_N_HINDRANCES];
} Answer;

static void answer_clear(Answer *answer)
{
    for (gsize i = 0; i < answer->message.n_closed; i++)
        g_free(answer->closed[i].reason);
}

static char *name_of(BerthDaemon *daemon, guint32 node)
{
    return (char *)berth_node_table_name(daemon->nodes, node);
}

static void tell_plan(BerthDaemon *daemon, const BerthCoreWait *wait, Answer *answer)
{
    Berth__Explanation *message = &answer->message;
    message->planned_usec = (guint64)wait->planned_usec;
    message->plan_may_be_put_off = wait->is_gathered;
    for (guint i = 0; i < wait->n_planned_nodes; i++)
        answer->nodes[i] = name_of(daemon, wait->planned_nodes[i]);
    message->planned_nodes = answer->nodes;
    message->n_planned_nodes = wait->n_planned_nodes;
    for (guint i = 0; i < wait->n_leavings; i++) {
        Berth__Explanation__Leaving *leaving = &answer->leavings[i];
        berth__explanation__leaving__init(leaving);
        leaving->job = wait->leavings[i].job;
        leaving->task = wait->leavings[i].task;
        leaving->node = name_of(daemon, wait->leavings[i].node);
        leaving->time_usec = (guint64)wait->leavings[i].time_usec;
        answer->leaving_pointers[i] = leaving;
    }
    message->leavings = answer->leaving_pointers;
    message->n_leavings = wait->n_leavings;
}

static void tell_closed(BerthDaemon *daemon, const BerthCoreWait *wait, Answer *answer)
{
    Berth__Explanation *message = &answer->message;
    for (guint i = 0; i < wait->n_closed; i++) {
        const BerthNodeEntry *entry = berth_node_table_find(daemon->nodes, wait->closed[i]);
        Berth__Explanation__Closed *closed = &answer->closed[message->n_closed];
        Berth__Node node;
        if (!entry)
            continue;
        berth_node_view_fill(daemon, entry, &node);
        berth__explanation__closed__init(closed);
        closed->node = entry->name;
        closed->state = node.state;
        closed->reason = g_strdup(node.closed_reason);
        berth_node_view_clear(&node);
        answer->closed_pointers[message->n_closed++] = closed;
    }
    message->closed = answer->closed_pointers;
    message->nodes_closed = wait->nodes_closed;
}

static void tell_slack(const BerthCoreWait *wait, Answer *answer)
{
    Berth__Explanation *message = &answer->message;
    message->slack = (Berth__Explanation__Slack)wait->slack;
    message->slack_need_milli = wait->slack_need_milli;
    message->slack_need_mib = wait->slack_need_mib;
    message->hindrances = answer->hindrance_pointers;
    for (guint kind = BERTH_HINDRANCE_NONE + 1; kind < BERTH_N_HINDRANCES; kind++) {
        if (wait->hindrances[kind] == 0)
            continue;
        Berth__Explanation__Hindrance *hindrance = &answer->hindrances[kind];
        berth__explanation__hindrance__init(hindrance);
        hindrance->kind = (Berth__Explanation__Hindrance__Kind)kind;
        hindrance->nodes = wait->hindrances[kind];
        answer->hindrance_pointers[message->n_hindrances++] = hindrance;
    }
}

/* WAIT outlives the answer. */
static void tell_wait(BerthDaemon *daemon, BerthCoreWait *wait, Answer *answer)
{
    Berth__Explanation *message = &answer->message;
    message->reason = (Berth__Reason)wait->reason;
    message->not_before_usec = (guint64)wait->not_before_usec;
    message->guests = wait->guests;
    message->need_vcpus = wait->need_vcpus;
    message->need_mib = wait->need_mib;
    message->nodes_open = wait->nodes_open;
    message->nearest = name_of(daemon, wait->nearest);
    message->nearest_vcpus = wait->nearest_vcpus;
    message->nearest_mib = wait->nearest_mib;
    message->jobs_before = wait->jobs_before;
    message->has_more_before = wait->has_more_before;
    message->before = wait->before;
    message->n_before = wait->n_before;
    tell_closed(daemon, wait, answer);
    tell_slack(wait, answer);
    tell_plan(daemon, wait, answer);
}

void berth_explain_answer(BerthDaemon *daemon, const Berth__ExplainRequest *request,
                          BerthRpcCall *call)
{
    Answer answer = {.message = BERTH__EXPLANATION__INIT};
    BerthCoreTask task;
    BerthCoreWait wait;
    if (!berth_core_get_task(daemon->core, request->job, request->task, &task)) {
        g_autoptr(GError) error =
            g_error_new(BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                        "job %" G_GUINT64_FORMAT " is not known, or has ended", request->job);
        berth_rpc_call_fail(call, error);
        return;
    }
    answer.message.now_usec = (guint64)berth_engine_now_usec(daemon->engine);
    answer.message.state = (Berth__JobState)task.state;
    answer.message.away_usec = berth_job_view_away_usec(daemon, &task);
    answer.message.next_look_usec = (guint64)berth_core_next_look_usec(daemon->core);
    if (berth_core_get_wait(daemon->core, request->job, request->task, &wait))
        tell_wait(daemon, &wait, &answer);
    berth_rpc_call_reply(call, &answer.message.base);
    answer_clear(&answer);
}
