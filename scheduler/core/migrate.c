/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the answers to who wants a running job on another node, or does not any more. The move itself is
 * moves.h's, as those that the policy wants are; it is begun at once or refused. */
#include "common/error.h"
#include "scheduler/core/class.h"
#include "scheduler/core/job.h"
#include "scheduler/core/limit.h"
#include "scheduler/core/maintenance.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/profile.h"
#include "scheduler/core/requests.h"
#include "scheduler/core/running.h"
#include "scheduler/core/task.h"

/* --- where to ------------------------------------------------------------------------------- */

static gboolean may_have_guests(const CoreNode *node, guint64 job, GError **error)
{
    const char *why = NULL;
    if (node->state != BERTH_NODE_UP)
        why = "it is not reached";
    else if (node->admission != BERTH_ADMISSION_OPEN)
        why = "it is cordoned or drained";
    else if (!core_node_is_open(node) || node->n_strays > 0)
        why = "it gets no new guests now; berth node show tells why";
    if (why == NULL)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                "job %" G_GUINT64_FORMAT " cannot go to %s: %s", job, node->name, why);
    return FALSE;
}

static gboolean has_room(const BerthCore *core, CoreNode *node, CoreSize size, gint64 left_usec,
                         guint64 job, GError **error)
{
    CoreNeed need = {size, left_usec, TRUE, CORE_HEEDS_FIRM};
    CoreSize room = core_node_free(node);
    if (!core_size_fits(size, room)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                    "%s has no room for job %" G_GUINT64_FORMAT ": it needs %u vCPU%s and %" //
                    G_GUINT64_FORMAT " MiB, and %u vCPU%s and %" G_GUINT64_FORMAT " MiB are free",
                    node->name, job, size.vcpus, size.vcpus == 1 ? "" : "s", size.memory_mib,
                    room.vcpus, room.vcpus == 1 ? "" : "s", room.memory_mib);
        return FALSE;
    }
    if (core_profile_count(core, node, &need, core->now_usec, 1) == 1)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_RESOURCE_EXHAUSTED,
                "the room on %s is planned for others before job %" G_GUINT64_FORMAT " would end",
                node->name, job);
    return FALSE;
}

/* One that could not leave NODE again ends before that is needed for something else. */
static gboolean is_spared(const BerthCore *core, const CoreNode *node, const CoreJob *job,
                          gint64 left_usec, GError **error)
{
    return !core_maintenance_forbids(core, node, job->class, left_usec) ||
           core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job->id,
                       "cannot go to %s: that is needed for maintenance before it would end",
                       node->name);
}

CoreNode *core_migrate_check_node(BerthCore *core, const CoreJob *job, CoreSize size,
                                  gint64 left_usec, guint32 handle, GError **error)
{
    CoreNode *node = core_nodes_get(&core->nodes, handle);
    if (node == NULL) {
        core_refuse(error, BERTH_ERROR_NOT_FOUND, job->id,
                    "cannot be moved: there is no such node");
        return NULL;
    }
    if (job->class->shape.n_nodes > 0 && !core_class_allows(job->class, handle)) {
        core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job->id,
                    "was submitted for other nodes than that one");
        return NULL;
    }
    return may_have_guests(node, job->id, error) && is_spared(core, node, job, left_usec, error) &&
                   has_room(core, node, size, left_usec, job->id, error)
               ? node
               : NULL;
}

static CoreNode *check_node(BerthCore *core, const CoreGuest *guest, guint32 handle, GError **error)
{
    const CoreTask *task = guest->task;
    if (handle == guest->node) {
        core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, task->job->id, "runs there already");
        return NULL;
    }
    return core_migrate_check_node(core, task->job, guest->size,
                                   MAX(task->planned_end_usec - core->now_usec, 1), handle, error);
}

/* It would be looked at, were it not away. */
static gboolean is_any_away(const BerthCore *core, const CoreGuest *guest)
{
    const CoreClass *class = guest->task->job->class;
    for (guint32 handle = 1; handle <= core->nodes.nodes->len; handle++) {
        const CoreNode *node = core_nodes_get(&core->nodes, handle);
        if (handle != guest->node && node->state != BERTH_NODE_UP &&
            node->admission == BERTH_ADMISSION_OPEN &&
            (class->shape.n_nodes == 0 || core_class_allows(class, handle)))
            return TRUE;
    }
    return FALSE;
}

static CoreNode *find_node(BerthCore *core, const CoreGuest *guest, guint32 handle, GError **error)
{
    if (handle != 0)
        return check_node(core, guest, handle, error);
    CoreNode *node = core_limit_find_place(core, guest, guest->size, CORE_HEEDS_FIRM);
    if (node == NULL)
        core_refuse(
            error, BERTH_ERROR_RESOURCE_EXHAUSTED, guest->task->job->id,
            is_any_away(core, guest)
                ? "cannot be moved now: nodes that it may use are away (berth node ls), and "
                  "no other has room for it"
                : "cannot be moved: no other node that it may use has all free that it reserves, "
                  "and "
                  "who is moved by hand is backed where he goes (a drain also moves who is in "
                  "slack "
                  "into that of others)");
    return node;
}

/* --- who ------------------------------------------------------------------------------------ */

static gboolean may_be_moved(const BerthCore *core, const CoreGuest *guest, GError **error)
{
    if (!core_running_is_at_rest(core, guest, "moved", error))
        return FALSE;
    if (!core_move_may_migrate(core, guest))
        return core_refuse(error, BERTH_ERROR_UNSUPPORTED, guest->task->job->id,
                           "cannot be moved: guests' disks are not in storage that nodes share "
                           "(rbd)");
    return TRUE;
}

gboolean core_migrate(BerthCore *core, const CoreAsk *ask, guint32 to, GError **error)
{
    CoreGuest *guest = core_running_get(core, ask, "moved", error);
    if (guest == NULL)
        return FALSE;
    if (guest->op == BERTH_OP_MIGRATING && guest->to == to && !guest->is_unwanted)
        return TRUE;
    if (!may_be_moved(core, guest, error))
        return FALSE;
    CoreNode *node = find_node(core, guest, to, error);
    if (node == NULL)
        return FALSE;
    if (!core_move_is_below_caps(core, node) ||
        !core_move_is_below_caps(core, core_nodes_get(&core->nodes, guest->node)))
        return core_refuse(error, BERTH_ERROR_RESOURCE_EXHAUSTED, ask->job,
                           "cannot be moved now: as many moves as may be are under way there "
                           "(moves_per_node); try again when one is done");
    core_move_migrate(core, guest, node, FALSE,
                      ask->by_operator ? BERTH_REASON_MOVED_BY_OPERATOR
                                       : BERTH_REASON_MOVED_BY_USER);
    return TRUE;
}

gboolean core_migrate_not(BerthCore *core, const CoreAsk *ask, GError **error)
{
    CoreGuest *guest = core_running_get(core, ask, "moved", error);
    if (guest == NULL)
        return FALSE;
    if (guest->op != BERTH_OP_MIGRATING)
        return core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, ask->job, "is not being moved");
    gboolean is_operators = guest->op_reason == BERTH_REASON_MOVED_BY_OPERATOR ||
                            guest->op_reason == BERTH_REASON_RESIZED_BY_OPERATOR;
    if (is_operators && !ask->by_operator)
        return core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, ask->job,
                           "is being moved for an operator, who alone can call that off");
    if (guest->op_reason == BERTH_REASON_DRAIN)
        return core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, ask->job,
                           "is being moved because its node is drained, not because somebody asked "
                           "for it; berth node undrain ends that");
    if (!is_operators && guest->op_reason != BERTH_REASON_MOVED_BY_USER &&
        guest->op_reason != BERTH_REASON_RESIZED_BY_USER)
        return core_refuse(
            error, BERTH_ERROR_FAILED_PRECONDITION, ask->job,
            "is being moved by the scheduler, not because somebody asked for it, and "
            "would be moved again; berth why says what for");
    core_move_call_off(core, guest);
    return TRUE;
}
