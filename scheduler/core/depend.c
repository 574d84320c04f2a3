/* SPDX-License-Identifier: Apache-2.0 */
/* Owns which job waits for which. A dependency is met once and for all; a job with one that never
 * can be is ended, and so are those that come after it.
 *
 * Invariant: job->n_unmet is the number of its dependencies that are not met; one with any is not
 * among the waiting. */
#include "scheduler/core/depend.h"

#include "scheduler/core/job.h"
#include "scheduler/core/mix.h"
#include "scheduler/core/order.h"
#include "scheduler/core/requests.h"

typedef struct {
    guint64 job; /* that waits; it may have ended, and be forgotten, meanwhile */
    BerthDependencyKind kind;
} Dependent;

/* Who waits for a job. */
typedef struct {
    guint64 job; /* first: the key */
    GArray *dependents;
    guint drop_at; /* when there are so many, those that wait no more are dropped */
} Waited;

/* And then not before there are twice as many as are left, and so many. */
#define DROP_AT_MIN 16u

/* Unfinished jobs of one user and name. */
struct CoreFamily {
    guint32 uid;
    guint64 name;
    CoreHeap jobs; /* CoreJob.sibling, by id; never empty */
};

static void waited_free(gpointer data)
{
    Waited *waited = data;
    g_array_unref(waited->dependents);
    g_free(waited);
}

static guint family_hash(gconstpointer data)
{
    const CoreFamily *family = data;
    return core_mix_end(core_mix(core_mix(0, family->uid), family->name));
}

static gboolean family_equal(gconstpointer data_a, gconstpointer data_b)
{
    const CoreFamily *a = data_a;
    const CoreFamily *b = data_b;
    return a->uid == b->uid && a->name == b->name;
}

static void family_free(gpointer data)
{
    CoreFamily *family = data;
    core_heap_clear(&family->jobs);
    g_free(family);
}

void core_depends_init(BerthCore *core)
{
    core->waited = g_hash_table_new_full(g_int64_hash, g_int64_equal, waited_free, NULL);
    core->families = g_hash_table_new_full(family_hash, family_equal, family_free, NULL);
    core->hopeless = g_array_new(FALSE, FALSE, sizeof(guint64));
}

void core_depends_clear(BerthCore *core)
{
    g_hash_table_unref(core->waited);
    g_hash_table_unref(core->families);
    g_array_unref(core->hopeless);
}

gsize core_depends_bytes(BerthCore *core)
{
    gsize bytes = core->hopeless->len * sizeof(guint64);
    GHashTableIter iter;
    gpointer key;
    g_hash_table_iter_init(&iter, core->waited);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        bytes += sizeof(Waited) + CORE_SET_ENTRY_BYTES +
                 ((const Waited *)key)->dependents->len * sizeof(Dependent);
    g_hash_table_iter_init(&iter, core->families);
    while (g_hash_table_iter_next(&iter, &key, NULL))
        bytes += sizeof(CoreFamily) + CORE_SET_ENTRY_BYTES +
                 ((const CoreFamily *)key)->jobs.allocated * sizeof(gpointer);
    return bytes;
}

/* --- families ------------------------------------------------------------------------------- */

static int compare_siblings(const CoreHeapLink *link_a, const CoreHeapLink *link_b)
{
    guint64 a = CORE_CONTAINER_OF(link_a, const CoreJob, sibling)->id;
    guint64 b = CORE_CONTAINER_OF(link_b, const CoreJob, sibling)->id;
    return a < b ? -1 : a > b;
}

static CoreFamily *join_family(BerthCore *core, CoreJob *job, guint32 uid, guint64 name)
{
    CoreFamily key = {.uid = uid, .name = name};
    CoreFamily *family = g_hash_table_lookup(core->families, &key);
    if (family == NULL) {
        family = g_memdup2(&key, sizeof key);
        core_heap_init(&family->jobs, compare_siblings);
        g_hash_table_add(core->families, family);
    }
    core_heap_push(&family->jobs, &job->sibling);
    return family;
}

static CoreJob *eldest(const CoreFamily *family)
{
    CoreHeapLink *first = core_heap_first(&family->jobs);
    return first != NULL ? CORE_CONTAINER_OF(first, CoreJob, sibling) : NULL;
}

/* --- meeting them --------------------------------------------------------------------------- */

static void meet(BerthCore *core, CoreJob *job)
{
    job->n_unmet--;
    core_order_update(core, job);
}

/* The eldest of a family has nobody to wait for. */
static void let_eldest_go(BerthCore *core, const CoreFamily *family)
{
    CoreJob *job = eldest(family);
    if (job == NULL || !job->is_singleton)
        return;
    job->is_singleton = FALSE;
    meet(core, job);
}

static void give_up(BerthCore *core, const CoreJob *job)
{
    g_array_append_val(core->hopeless, job->id);
}

static gboolean is_met_by(BerthDependencyKind kind, gboolean ended_well)
{
    return (kind != BERTH_AFTER_OK || ended_well) && (kind != BERTH_AFTER_NOT_OK || !ended_well);
}

/* NULL: it waits for nothing any more. */
static CoreJob *get_waiting(const BerthCore *core, const Dependent *dependent)
{
    CoreJob *job = core_job_get(core, dependent->job);
    return job != NULL && !job->has_ended ? job : NULL;
}

static void drop_ended(const BerthCore *core, Waited *waited)
{
    GArray *dependents = waited->dependents;
    guint n = 0;
    for (guint i = 0; i < dependents->len; i++) {
        Dependent dependent = g_array_index(dependents, Dependent, i);
        if (get_waiting(core, &dependent) != NULL)
            g_array_index(dependents, Dependent, n++) = dependent;
    }
    g_array_set_size(dependents, n);
    waited->drop_at = MAX(2 * n, DROP_AT_MIN);
}

static void wait_for(BerthCore *core, const CoreJob *job, const BerthCoreDependency *dependency)
{
    Waited *waited = g_hash_table_lookup(core->waited, &dependency->job);
    if (waited == NULL) {
        waited = g_new(Waited, 1);
        waited->job = dependency->job;
        waited->dependents = g_array_new(FALSE, FALSE, sizeof(Dependent));
        waited->drop_at = DROP_AT_MIN;
        g_hash_table_add(core->waited, waited);
    }
    if (waited->dependents->len >= waited->drop_at)
        drop_ended(core, waited);
    Dependent dependent = {job->id, dependency->kind};
    g_array_append_val(waited->dependents, dependent);
}

static gboolean has_started(const CoreJob *job)
{
    return core_job_n_fresh(job) == 0;
}

static void add_one(BerthCore *core, CoreJob *job, const BerthCoreDependency *dependency)
{
    const CoreJob *other = core_job_get(core, dependency->job);
    if (dependency->kind == BERTH_SINGLETON) {
        if (job->family == NULL || eldest(job->family) == job || job->is_singleton)
            return;
        job->is_singleton = TRUE;
    } else if (other == job) {
        give_up(core, job); /* nobody comes after himself */
    } else if (other != NULL && !other->has_ended) {
        if (dependency->kind == BERTH_AFTER_START && has_started(other))
            return;
        wait_for(core, job, dependency);
    } else {
        gboolean ended_well =
            other != NULL ? !other->has_failed : dependency->outcome == BERTH_JOB_COMPLETED;
        if (is_met_by(dependency->kind, ended_well))
            return;
        give_up(core, job);
    }
    job->n_unmet++;
}

void core_depend_add(BerthCore *core, CoreJob *job, const BerthCoreJob *source)
{
    if (source->family != 0)
        job->family = join_family(core, job, source->uid, source->family);
    for (gsize i = 0; i < source->n_dependencies; i++)
        add_one(core, job, &source->dependencies[i]);
}

void core_depend_remove(BerthCore *core, CoreJob *job)
{
    g_hash_table_remove(core->waited, &job->id);
}

/* Those that JOB meets wait no longer; the others wait on, or in vain. TRUE: it met somebody. */
static gboolean tell(BerthCore *core, const CoreJob *job, gboolean has_ended)
{
    Waited *waited = g_hash_table_lookup(core->waited, &job->id);
    gboolean any = FALSE;
    if (waited == NULL)
        return FALSE;
    g_autoptr(GArray) dependents = g_array_copy(waited->dependents);
    g_array_set_size(waited->dependents, 0);
    for (guint i = 0; i < dependents->len; i++) {
        Dependent dependent = g_array_index(dependents, Dependent, i);
        CoreJob *waiting = get_waiting(core, &dependent);
        if (waiting == NULL)
            continue;
        if (!has_ended && dependent.kind != BERTH_AFTER_START) {
            g_array_append_val(waited->dependents, dependent);
        } else if (!has_ended || is_met_by(dependent.kind, !job->has_failed)) {
            meet(core, waiting);
            any = TRUE;
        } else {
            give_up(core, waiting);
        }
    }
    return any;
}

void core_depend_started(BerthCore *core, CoreJob *job)
{
    /* The pass may be beyond the place of who was let go, or walk what it came into: it has to begin anew. */
    if (has_started(job) && tell(core, job, FALSE))
        core->pass_again = TRUE;
}

/* For good: siblings may end, and the family with them, before JOB is forgotten. */
static void leave_family(BerthCore *core, CoreJob *job)
{
    CoreFamily *family = g_steal_pointer(&job->family);
    if (family == NULL)
        return;
    core_heap_remove(&family->jobs, &job->sibling);
    let_eldest_go(core, family);
    if (family->jobs.n == 0)
        g_hash_table_remove(core->families, family);
}

void core_depend_ended(BerthCore *core, CoreJob *job)
{
    job->has_ended = TRUE;
    tell(core, job, TRUE);
    leave_family(core, job);
}

void core_depend_end_hopeless(BerthCore *core)
{
    for (guint i = 0; i < core->hopeless->len; i++) {
        CoreJob *job = core_job_get(core, g_array_index(core->hopeless, guint64, i));
        if (job != NULL && !job->has_ended)
            core_end_hopeless(core, job);
    }
    g_array_set_size(core->hopeless, 0);
}
