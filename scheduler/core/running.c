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
    if (record->stop_reason != BERTH_REASON_NONE || guest->phase > BERTH_GUEST_RUNNING)
        return core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job, "is ending");
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

/* NULL: there is none. */
static CoreGuest *find_guest(const CoreJob *job)
{
    for (guint32 i = 0; i < job->n_tasks; i++)
        if (job->tasks[i]->guests[0].phase != BERTH_GUEST_NONE)
            return &job->tasks[i]->guests[0];
    return NULL;
}

CoreGuest *core_running_get(BerthCore *core, guint64 number, const char *what, GError **error)
{
    const CoreJob *job = core_get_unfinished(core, number, error);
    CoreGuest *guest = job != NULL ? find_guest(job) : NULL;
    if (job == NULL)
        return NULL;
    if (job->class->shape.guests > 1) {
        core_refuse(error, BERTH_ERROR_UNSUPPORTED, number,
                    "has several guests, which cannot be %s as one", what);
        return NULL;
    }
    if (guest == NULL)
        core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, number,
                    "does not run: only what runs can be %s", what);
    return guest;
}
