/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the rules of where commands beside a job's own may run: who may, and in which guests one can now. */
#include "config.h"

#include "scheduler/daemon/exec_target.h"

#include "common/error.h"
#include "scheduler/daemon/sessions.h"
#include "scheduler/daemon/task_name.h"

static gboolean set_wrong_state(const char *subject, const char *why, GError **error)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION, "job %s %s", subject, why);
    return FALSE;
}

/* Who may thaw it depends on who froze it. */
static const char *frozen_text(BerthCore *core, const BerthCoreGuest *guest)
{
    BerthCoreTask task;
    gboolean is_operators = berth_core_get_task(core, guest->id.job, guest->id.task, &task) &&
                            task.freeze_reason == BERTH_REASON_FROZEN_BY_OPERATOR;
    return is_operators ? "is frozen by an operator, who alone can thaw it, and nothing runs in it"
                        : "is frozen, and nothing runs in it; berth thaw lets it go on";
}

static const char *why_not(BerthCore *core, const BerthCoreGuest *guest)
{
    if (guest->phase == BERTH_GUEST_STARTING)
        return "is starting, and its command does not run yet";
    if (guest->phase == BERTH_GUEST_STOPPING)
        return "is being ended";
    if (guest->phase != BERTH_GUEST_RUNNING)
        return "does not run any more";
    if (guest->is_frozen || guest->op == BERTH_OP_FREEZING)
        return frozen_text(core, guest);
    if (guest->op == BERTH_OP_MIGRATING && !guest->waits_for_room)
        return "is being moved to another node; try again when it is there";
    return NULL;
}

static gboolean find_guest(BerthDaemon *daemon, const Berth__GuestId *named,
                           BerthCoreGuest *out_guest, GError **error)
{
    BerthCoreJob job;
    BerthCoreGuest guest;
    g_autofree char *subject = berth_task_name_in(daemon->jobs, named->job, named->task);
    if (!berth_core_get_job(daemon->core, named->job, &job) ||
        !berth_job_table_find_task(daemon->jobs, named->job, named->task)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                    "job %s does not run: it has not started, has ended, or there is none; "
                    "berth show %" G_GUINT64_FORMAT " says which",
                    subject, named->job);
        return FALSE;
    }
    guint n_guests = MAX(job.guests, 1);
    if (named->guest >= n_guests) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                    "job %s has no guest %u: it has %u, counted from 0", subject, named->guest,
                    n_guests);
        return FALSE;
    }
    if (!berth_core_get_guest(daemon->core, named->job, named->task, named->guest, &guest))
        return set_wrong_state(subject, "does not run", error);
    const char *why = why_not(daemon->core, &guest);
    if (why)
        return set_wrong_state(subject, why, error);
    *out_guest = guest;
    return TRUE;
}

static gboolean find_node(BerthDaemon *daemon, const char *name, const BerthRpcIdentity *who,
                          BerthExecTarget *out_target, GError **error)
{
    guint32 node = berth_core_find_node(daemon->core, name);
    if (!berth_permission_check_operator(&daemon->operators, who, "run commands on nodes", error))
        return FALSE;
    if (!berth_node_table_find(daemon->nodes, node)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                    "there is no node \"%s\"; berth node ls shows those that there are", name);
        return FALSE;
    }
    BerthRpcPeer *peer = berth_sessions_peer(daemon->sessions, node);
    if (!peer) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE, "node %s is not connected now",
                    name);
        return FALSE;
    }
    *out_target = (BerthExecTarget){.node = node, .peer = peer};
    return TRUE;
}

gboolean berth_exec_target_find(BerthDaemon *daemon, const Berth__ExecRequest *request,
                                const BerthRpcIdentity *who, BerthExecTarget *out_target,
                                GError **error)
{
    BerthCoreGuest guest;
    if (!request->guest)
        return find_node(daemon, request->node, who, out_target, error);
    const BerthJobEntry *entry = berth_job_table_find(daemon->jobs, request->guest->job);
    if (!entry) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND,
                    "job %" G_GUINT64_FORMAT
                    " does not run: it has ended, or there is none; berth ls shows those that do",
                    request->guest->job);
        return FALSE;
    }
    const BerthTaskName name =
        berth_task_name(request->guest->job, request->guest->task, request->of_array);
    if (!berth_permission_check_job(&daemon->operators, who, name.job, entry->job->uid, error) ||
        !berth_task_name_check(&name, entry->unstarted != NULL, error) ||
        !find_guest(daemon, request->guest, &guest, error))
        return FALSE;
    BerthRpcPeer *peer = berth_sessions_peer(daemon->sessions, guest.node);
    if (!peer) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                    "node %s, on which it runs, is not connected now",
                    berth_node_table_name(daemon->nodes, guest.node));
        return FALSE;
    }
    *out_target = (BerthExecTarget){guest.id, guest.node, peer};
    return TRUE;
}
