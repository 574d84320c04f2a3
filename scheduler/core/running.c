/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what all who want something done to a running guest are asked first, and what they are told. */
#include "scheduler/core/running.h"

#include "scheduler/core/class.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/requests.h"

gboolean core_refuse(GError **error, BerthErrorCode code, guint64 job, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    GError *refusal = g_error_new_valist(BERTH_ERROR, (gint)code, format, args);
    va_end(args);
    g_prefix_error(&refusal, "job %" G_GUINT64_FORMAT " ", job);
    g_propagate_error(error, refusal);
    return FALSE;
}

static const char *op_text(BerthGuestOp op)
{
    switch (op) {
    case BERTH_OP_MIGRATING:
        return "is being moved already: berth migrate --cancel calls that off";
    case BERTH_OP_CHECKPOINTING:
        return "is being checkpointed: try again when that is done";
    case BERTH_OP_RESIZING:
        return "is being resized: try again when that is done";
    default:
        return "is being frozen or thawed: try again when that is done";
    }
}

gboolean core_running_is_at_rest(const BerthCore *core, const CoreGuest *guest, const char *what,
                                 GError **error)
{
    const BerthCoreTask *record = &guest->task->record;
    const CoreNode *node = core_nodes_get(&core->nodes, guest->node);
    guint64 job = guest->task->job->id;
    gboolean is_ending =
        record->stop_reason != BERTH_REASON_NONE || berth_job_state_is_final(record->state);
    if (is_ending)
        return core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job, "is ending");
    if (guest->phase > BERTH_GUEST_RUNNING)
        return core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job,
                           "does not run now: only what runs can be %s, and what is left of its "
                           "last guest is being removed",
                           what);
    if (guest->phase != BERTH_GUEST_RUNNING)
        return core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job,
                           "does not run yet: only what runs can be %s", what);
    if (guest->op != BERTH_OP_NONE)
        return core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job, "%s", op_text(guest->op));
    if (node->state != BERTH_NODE_UP)
        return core_refuse(error, BERTH_ERROR_UNAVAILABLE, job,
                           "cannot be %s: its node is not reached now", what);
    return TRUE;
}

/* NULL: there is none, or *OUT_MANY. */
static CoreGuest *find_guest(const CoreJob *job, const CoreAsk *ask, gboolean *out_many)
{
    CoreGuest *found = NULL;
    *out_many = FALSE;
    for (guint32 i = 0; i < job->n_tasks && !*out_many; i++) {
        CoreGuest *guest = &job->tasks[i]->guests[0];
        if (guest->phase == BERTH_GUEST_NONE || !core_ask_has(ask, job->tasks[i]))
            continue;
        *out_many = found != NULL;
        found = guest;
    }
    return *out_many ? NULL : found;
}

CoreGuest *core_running_get(BerthCore *core, const CoreAsk *ask, const char *what, GError **error)
{
    const CoreJob *job = core_get_unfinished(core, ask, error);
    gboolean is_many = FALSE;
    CoreGuest *guest = job != NULL ? find_guest(job, ask, &is_many) : NULL;
    if (job == NULL)
        return NULL;
    if (job->class->shape.guests > 1) {
        core_refuse(error, BERTH_ERROR_UNSUPPORTED, ask->job,
                    "has several guests, which cannot be %s as one", what);
        return NULL;
    }
    if (is_many)
        core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, ask->job,
                    "has several tasks that run, which are %s one by one: name one, as JOB[INDEX]",
                    what);
    else if (guest == NULL)
        core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, ask->job,
                    "does not run: only what runs can be %s", what);
    return guest;
}
