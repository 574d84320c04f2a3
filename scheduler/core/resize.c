/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the answers to who wants a running job to have more or less. It is begun at once or refused: where the
 * guest is, if that is no more than it has or its node has room for it, else on a node that has, to which it
 * is moved first. Room that is planned for others is not taken, neither here nor there: unlike a guest that
 * stalls at its limit, which the policy grows (limit.h), this one can go on as it is; or, frozen there, is as its
 * user wanted it.
 *
 * One that is frozen at its limit goes on as it gets more: RESIZE has its agent let it. That it runs is
 * settled after that (freeze.h), whatever came of it. */
#include "scheduler/core/class.h"
#include "scheduler/core/freeze.h"
#include "scheduler/core/limit.h"
#include "scheduler/core/moves.h"
#include "scheduler/core/nodes.h"
#include "scheduler/core/owner.h"
#include "scheduler/core/profile.h"
#include "scheduler/core/requests.h"
#include "scheduler/core/running.h"
#include "scheduler/core/task.h"

/* --- what it may have ----------------------------------------------------------------------- */

static gboolean check_vcpus(const CoreGuest *guest, guint32 vcpus, GError **error)
{
    const CoreShape *shape = &guest->task->job->class->shape;
    guint32 most = MAX(shape->ceiling_vcpus, shape->size.vcpus);
    if (vcpus <= most)
        return TRUE;
    return core_refuse(error, BERTH_ERROR_INVALID_ARGUMENT, guest->task->job->id,
                       "cannot have %u vCPU%s: it was submitted for %u at most (--vcpus-max)",
                       vcpus, vcpus == 1 ? "" : "s", most);
}

static gboolean check_memory(const CoreGuest *guest, guint64 memory_mib, GError **error)
{
    const CoreShape *shape = &guest->task->job->class->shape;
    guint64 most_mib = MAX(shape->ceiling_memory_mib, shape->memory_mib);
    guint64 least_mib = MAX(shape->memory_mib / BERTH_MEMORY_LEFT_MIN_PART, 1);
    guint64 job = guest->task->job->id;
    if (memory_mib > most_mib)
        return core_refuse(error, BERTH_ERROR_INVALID_ARGUMENT, job,
                           "cannot have %" G_GUINT64_FORMAT
                           " MiB of memory: it was submitted for %" G_GUINT64_FORMAT
                           " MiB at most (--memory-max)",
                           memory_mib, most_mib);
    if (memory_mib < least_mib)
        return core_refuse(error, BERTH_ERROR_INVALID_ARGUMENT, job,
                           "cannot do with %" G_GUINT64_FORMAT
                           " MiB of memory: its guest keeps a quarter of what it was started with, "
                           "%" G_GUINT64_FORMAT " MiB",
                           memory_mib, least_mib);
    return TRUE;
}

static gboolean check_owner(const CoreGuest *guest, CoreSize more, GError **error)
{
    CoreSize left = core_owner_left(guest->task->job->class->shape.owner);
    if (core_size_fits(more, left))
        return TRUE;
    gboolean of_vcpus = more.vcpus > left.vcpus;
    const char *vcpus_text = left.vcpus == 1 ? "vCPU" : "vCPUs";
    return core_refuse(error, BERTH_ERROR_RESOURCE_EXHAUSTED, guest->task->job->id,
                       "cannot have that: its user or account may use %" G_GUINT64_FORMAT
                       " %s more, and that takes %" G_GUINT64_FORMAT,
                       of_vcpus ? left.vcpus : left.memory_mib,
                       of_vcpus ? vcpus_text : "MiB of memory",
                       of_vcpus ? more.vcpus : more.memory_mib);
}

/* --- where ---------------------------------------------------------------------------------- */

static gboolean has_room_here(const BerthCore *core, CoreNode *node, const CoreGuest *guest,
                              CoreSize more)
{
    CoreNeed need = {more, MAX(guest->task->planned_end_usec - core->now_usec, 1), TRUE,
                     CORE_HEEDS_FIRM};
    if (guest->is_opportunistic || !core_size_fits(more, core_node_unreserved(node)))
        return FALSE;
    /* Nothing is planned for one that takes no guests. */
    return !core_node_is_open(node) ||
           core_profile_count(core, node, &need, core->now_usec, 1) == 1;
}

/* In slack a guest gets no more than it has, however much its node may have (has_room_here()). */
static gboolean refuse_there(const CoreGuest *guest, const CoreNode *node, const char *why,
                             GError **error)
{
    if (guest->is_opportunistic)
        return core_refuse(error, BERTH_ERROR_RESOURCE_EXHAUSTED, guest->task->job->id,
                           "cannot have that: it runs in slack on %s, where it gets no more than "
                           "it has, and %s",
                           node->name, why);
    return core_refuse(error, BERTH_ERROR_RESOURCE_EXHAUSTED, guest->task->job->id,
                       "cannot have that: %s has no room for it beside what is planned there, "
                       "and %s",
                       node->name, why);
}

static gboolean move_to_resize(BerthCore *core, CoreGuest *guest, CoreSize size, BerthReason reason,
                               GError **error)
{
    const CoreNode *from = core_nodes_get(&core->nodes, guest->node);
    if (!core_move_may_migrate(core, guest))
        return refuse_there(guest, from,
                            "it cannot be moved: guests' disks are not in storage that nodes "
                            "share (rbd)",
                            error);
    CoreNode *to =
        core_limit_find_place(core, guest, core_size_max(guest->size, size), CORE_HEEDS_FIRM);
    if (to == NULL)
        return refuse_there(guest, from,
                            guest->is_opportunistic
                                ? "no other node that it may use can back all of it; try again "
                                  "when it is backed (berth why tells)"
                                : "neither has another node that it may use",
                            error);
    if (!core_move_is_below_caps(core, from) || !core_move_is_below_caps(core, to))
        return refuse_there(guest, from,
                            "it cannot be moved now: as many moves as may be are under way "
                            "(moves_per_node); try again when one is done",
                            error);
    core_move_migrate_to_resize(core, guest, to, size, reason);
    return TRUE;
}

/* --- entry ---------------------------------------------------------------------------------- */

/* A 0 in WANTED: as it has when nothing is being done to it. */
static CoreSize size_wanted(const BerthCore *core, const CoreGuest *guest,
                            const BerthResources *wanted)
{
    CoreSize size = guest->op == BERTH_OP_RESIZING ? guest->old_size : guest->size;
    if (wanted->vcpus > 0)
        size.vcpus = wanted->vcpus;
    if (wanted->memory_mib > 0)
        size.memory_mib = wanted->memory_mib + core->config.guest_overhead_mib;
    return size;
}

static gboolean is_under_way(const CoreGuest *guest, CoreSize size)
{
    gboolean is_here = guest->op == BERTH_OP_RESIZING;
    gboolean is_there = guest->op == BERTH_OP_MIGRATING && !guest->is_unwanted;
    CoreSize now = is_here ? guest->old_size : guest->size;
    return (is_here || is_there) && !core_size_equal(guest->goal, now) &&
           core_size_equal(guest->goal, size);
}

/* A guest that stands still can neither take nor give. One that does so for want of memory goes on with more. */
static gboolean check_frozen(const CoreGuest *guest, CoreSize more, GError **error)
{
    guint64 job = guest->task->job->id;
    if (guest->task->record.freeze_reason == BERTH_REASON_FROZEN_BY_OPERATOR)
        return core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job,
                           "is frozen by an operator, who alone can thaw it: a guest that stands "
                           "still can neither take nor give");
    if (guest->task->record.freeze_reason != BERTH_REASON_AT_LIMIT)
        return core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job,
                           "is frozen: a guest that stands still can neither take nor give; "
                           "berth thaw lets it go on");
    return more.memory_mib > 0 ||
           core_refuse(error, BERTH_ERROR_FAILED_PRECONDITION, job,
                       "is frozen because it needs more memory than it has: give it more, or let "
                       "it go on as it is with berth thaw");
}

static gboolean begin(BerthCore *core, CoreGuest *guest, CoreSize size, BerthReason reason,
                      GError **error)
{
    CoreSize more = core_size_sub(size, guest->size);
    gboolean is_less = more.vcpus == 0 && more.memory_mib == 0;
    gboolean is_here =
        is_less || has_room_here(core, core_nodes_get(&core->nodes, guest->node), guest, more);
    if (!is_here && !move_to_resize(core, guest, size, reason, error))
        return FALSE;
    core_freeze_goes_on(guest);
    if (is_here)
        core_move_resize(core, guest, size, reason);
    return TRUE;
}

gboolean core_resize(BerthCore *core, const CoreAsk *ask, const BerthResources *wanted,
                     GError **error)
{
    BerthReason reason =
        ask->by_operator ? BERTH_REASON_RESIZED_BY_OPERATOR : BERTH_REASON_RESIZED_BY_USER;
    CoreGuest *guest = core_running_get(core, ask, "resized", error);
    if (guest == NULL || !check_vcpus(guest, wanted->vcpus, error) ||
        (wanted->memory_mib > 0 && !check_memory(guest, wanted->memory_mib, error)))
        return FALSE;
    CoreSize size = size_wanted(core, guest, wanted);
    if (is_under_way(guest, size))
        return TRUE;
    if (!core_running_is_at_rest(core, guest, "resized", error))
        return FALSE;
    CoreSize more = core_size_sub(size, guest->size);
    if (guest->is_frozen && !check_frozen(guest, more, error))
        return FALSE;
    if (core_size_equal(size, guest->size))
        return TRUE;
    return check_owner(guest, more, error) && begin(core, guest, size, reason, error);
}
