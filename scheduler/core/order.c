/* SPDX-License-Identifier: Apache-2.0 */
/* ORDER: who is looked at first. Knows neither nodes nor room.
 *
 * Two levels: within a class by number, and the classes by rank and their first job's number, in a
 * tree (order_tree.h). Invariant: a class is in it exactly while one of its jobs waits, at the place that
 * its HEAD says, unless it is parked. */
#include "scheduler/core/order.h"

#include "common/error.h"
#include "scheduler/core/class.h"
#include "scheduler/core/job.h"
#include "scheduler/core/order_tree.h"
#include "scheduler/core/owner.h"
#include "scheduler/core/placement.h"
#include "scheduler/core/plan.h"

#define QOS_MAX 1024u

/* Points below 2^31 between two priorities of jobs: weights are no more than a million, so that points are from
 * -1000000 to 3000000; and with the least and the highest priority a rank is still one. */
#define PRIORITY_SHIFT 31

static gint64 age_points(const BerthCore *core, gint64 submit_usec)
{
    gint64 max_usec = core->tunings[BERTH_TUNING_AGE_MAX_USEC];
    gint64 age_usec = core->ranked_usec - submit_usec;
    return CLAMP(age_usec, 0, max_usec) / 1000 * core->tunings[BERTH_TUNING_WEIGHT_AGE] /
           MAX(max_usec / 1000, 1);
}

/* Priority first; then fair share, age and QOS, weighted. */
static gint64 rank_of_shape(BerthCore *core, const CoreShape *shape, gint64 submit_usec)
{
    gint64 points = 0;
    if (core->tunings[BERTH_TUNING_WEIGHT_FAIR_SHARE] > 0)
        points +=
            core->tunings[BERTH_TUNING_WEIGHT_FAIR_SHARE] * core_owner_factor(core, shape->owner) >>
            16;
    if (core->tunings[BERTH_TUNING_WEIGHT_AGE] > 0)
        points += age_points(core, submit_usec);
    if (shape->qos < core->qos->len)
        points += core->tunings[BERTH_TUNING_WEIGHT_QOS] *
                  g_array_index(core->qos, gint32, shape->qos) / 1000;
    return shape->priority * ((gint64)1 << PRIORITY_SHIFT) + points;
}

static gint64 rank_of(BerthCore *core, const CoreClass *class)
{
    return rank_of_shape(core, &class->shape, core_class_head(class)->submit_usec);
}

gint64 core_order_rank_of_job(BerthCore *core, const CoreJob *job)
{
    return rank_of_shape(core, &job->class->shape, job->submit_usec);
}

/* Where its first job belongs. */
static void put_class(BerthCore *core, CoreClass *class)
{
    const CoreJob *head = core_class_head(class);
    if (head != NULL && class->is_ordered && class->parked == NULL && class->head == head->id)
        return;
    if (class->is_ordered)
        core_order_tree_remove(core, class);
    class->is_ordered = head != NULL && class->parked == NULL;
    if (!class->is_ordered)
        return;
    class->head = head->id;
    class->rank = rank_of(core, class);
    core_order_tree_add(core, class);
}

static void begin_waiting(BerthCore *core, CoreJob *job)
{
    core_heap_push(&job->class->waiting, &job->waiting);
    core->n_waiting++;
}

static void end_waiting(BerthCore *core, CoreJob *job)
{
    core_heap_remove(&job->class->waiting, &job->waiting);
    core->n_waiting--;
}

static void want_to_try(BerthCore *core, CoreClass *class)
{
    core->pass_wanted = TRUE;
    if (class->is_untried)
        return;
    class->is_untried = TRUE;
    g_ptr_array_add(core->untried, class);
}

/* JOB, not the first of its class, is among those that get a planned start. */
static gboolean is_to_be_planned(const BerthCore *core, const CoreJob *job)
{
    guint depth = core_plan_depth(core, CORE_PLAN_FIRM);
    return depth > 1 && (core_plan_n(core->plan, CORE_PLAN_FIRM) < depth ||
                         !core_plan_is_before(core->plan, job->class->rank, job->id));
}

static CoreSize start_size(const BerthCore *core, const CoreJob *job)
{
    return core_job_start_size(core, job, core_placement_next(job));
}

/* FALSE: its next task goes on from a checkpoint of another size than the one before it took. */
static gboolean is_suited(const BerthCore *core, const CoreJob *job)
{
    return core_size_equal(start_size(core, job), job->class->shape.start);
}

void core_order_update(BerthCore *core, CoreJob *job)
{
    CoreClass *class = job->class;
    gboolean could_wait = core_job_n_startable(job) > 0;
    gboolean should_wait = could_wait && is_suited(core, job);
    gboolean waits = core_heap_has(&job->waiting);
    const CoreJob *old_head = core_class_head(class);
    if (could_wait && !should_wait)
        g_array_append_val(core->unsuited, job->id);
    if (should_wait && !waits)
        begin_waiting(core, job);
    if (!should_wait && waits)
        end_waiting(core, job);
    put_class(core, class);
    if (should_wait == waits)
        return;
    const CoreJob *head = core_class_head(class);
    if (head != old_head && head != NULL)
        want_to_try(core, class);
    else if (should_wait && is_to_be_planned(core, job))
        core->pass_wanted = core->plan_wanted = TRUE;
    /* Whom it kept from starting may now. */
    if (!should_wait && (old_head == job || core_plan_n_firm_of(core->plan, job->id) > 0))
        core->pass_wanted = core->plan_wanted = TRUE;
}

/* What is behind JOB in the class that it leaves is tried in its place. */
static void leave_class(BerthCore *core, CoreJob *job)
{
    CoreClass *class = job->class;
    if (!core_heap_has(&job->waiting))
        return;
    gboolean was_head = core_class_head(class) == job;
    end_waiting(core, job);
    put_class(core, class);
    if (was_head && core_class_head(class) != NULL)
        want_to_try(core, class);
}

void core_order_set_shape(BerthCore *core, CoreJob *job, const CoreShape *shape)
{
    CoreClass *old = job->class;
    core_plan_drop_job(core, job->id);
    leave_class(core, job);
    job->class = core_class_take(core, shape);
    core_class_drop(core, old);
    core_order_update(core, job);
}

gboolean core_order_suit(BerthCore *core)
{
    gboolean any = core->unsuited->len > 0;
    for (guint i = 0; i < core->unsuited->len; i++) {
        CoreJob *job = core_job_get(core, g_array_index(core->unsuited, guint64, i));
        CoreShape shape = job->class->shape;
        shape.start = start_size(core, job);
        core_order_set_shape(core, job, &shape);
    }
    g_array_set_size(core->unsuited, 0);
    return any;
}

void core_order_park(BerthCore *core, CoreClass *class, CoreOwner *owner)
{
    class->parked = owner;
    core_owner_park(owner, class);
    put_class(core, class);
}

void core_order_unpark(BerthCore *core, CoreClass *class)
{
    class->parked = NULL;
    put_class(core, class);
    if (class->is_ordered)
        want_to_try(core, class);
}

/* --- ranking -------------------------------------------------------------------------------- */

static void rank_all(BerthCore *core)
{
    core->ranking++;
    core->ranked_usec = core->now_usec;
    core_order_tree_rank(core, rank_of);
    core->plan_wanted = TRUE;
}

void core_order_rank(BerthCore *core)
{
    gboolean changes = core->tunings[BERTH_TUNING_WEIGHT_FAIR_SHARE] > 0 ||
                       core->tunings[BERTH_TUNING_WEIGHT_AGE] > 0;
    if (changes &&
        core->now_usec - core->ranked_usec >= core->tunings[BERTH_TUNING_RANK_INTERVAL_USEC])
        rank_all(core);
}

gboolean core_order_set_qos(BerthCore *core, guint32 qos, gint32 priority_permille, GError **error)
{
    if (qos >= QOS_MAX || priority_permille < -1000 || priority_permille > 1000) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                    "a QOS has a number below %u and a priority from -1000 to 1000", QOS_MAX);
        return FALSE;
    }
    if (qos >= core->qos->len)
        g_array_set_size(core->qos, qos + 1);
    g_array_index(core->qos, gint32, qos) = priority_permille;
    rank_all(core);
    core->pass_wanted = TRUE;
    return TRUE;
}
