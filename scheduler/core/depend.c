/* SPDX-License-Identifier: Apache-2.0 */
/* Owns which job waits for which. A dependency is met once and for all; a job with one that never
 * can be is ended, and so are those that come after it. Of arrays that come after each other element by element each
 * task is met, or ended, for itself.
 *
 * Invariants: job->n_unmet is the number of its dependencies that are not met; one with any is not
 * among the waiting. A task that waits for another array's is in a pair, and not in OPEN. */
#include "scheduler/core/depend.h"

#include "scheduler/core/job.h"
#include "scheduler/core/mix.h"
#include "scheduler/core/order.h"
#include "scheduler/core/requests.h"
#include "scheduler/core/timers.h"

/* Tasks that wait for those of JOB with their indices. One that can never start is among them until it is ended. */
typedef struct {
    guint64 job;
    BerthIndexSet *waiting;
    BerthIndexSet *never; /* of these: they are ended with this event. NULL: there is none */
} Pair;

struct CorePairs {
    BerthIndexSet *open; /* of the job's FRESH, who waits in no pair */
    GArray *pairs;       /* Pair */
};

typedef struct {
    guint64 job; /* that waits; it may have ended, and be forgotten, meanwhile */
    BerthDependencyKind kind;
} Dependent;

/* A job that can never start, and the first that keeps it from that. */
typedef struct {
    guint64 job, after;
} Hopeless;

/* Who waits for a job. */
typedef struct {
    guint64 job; /* first: the key */
    GArray *dependents;
    guint drop_at; /* when there are so many, those that wait no more are dropped */
} Waited;

/* And then not before there are twice as many as are left, and so many. */
#define DROP_AT_MIN 16u

/* So many jobs that can never start are ended at a time. */
#define ENDS_PER_EVENT 1000u

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
    core->hopeless = g_array_new(FALSE, FALSE, sizeof(Hopeless));
    core->hopeless_tasks = g_array_new(FALSE, FALSE, sizeof(guint64));
}

void core_depends_clear(BerthCore *core)
{
    g_hash_table_unref(core->waited);
    g_hash_table_unref(core->families);
    g_array_unref(core->hopeless);
    g_array_unref(core->hopeless_tasks);
}

gsize core_depends_bytes(BerthCore *core)
{
    gsize bytes =
        core->hopeless->len * sizeof(Hopeless) + core->hopeless_tasks->len * sizeof(guint64);
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

/* Of one of JOB's pairs TASKS can never start. */
static void give_up_some(BerthCore *core, const CoreJob *job, Pair *pair,
                         const BerthIndexSet *tasks)
{
    if (berth_index_set_count(tasks) == 0)
        return;
    if (pair->never != NULL) {
        berth_index_set_add_all(pair->never, tasks);
    } else {
        pair->never = berth_index_set_copy(tasks);
        g_array_append_val(core->hopeless_tasks, job->id);
    }
}

static void give_up(BerthCore *core, const CoreJob *job, guint64 after)
{
    Hopeless hopeless = {job->id, after};
    g_array_append_val(core->hopeless, hopeless);
}

static gboolean is_met_by(BerthDependencyKind kind, gboolean ended_well)
{
    gboolean is_for_good = kind == BERTH_AFTER_OK || kind == BERTH_AFTER_CORR;
    return (!is_for_good || ended_well) && (kind != BERTH_AFTER_NOT_OK || !ended_well);
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

/* --- element by element ------------------------------------------------------------------------ */

const BerthIndexSet *core_depend_open(const CoreJob *job)
{
    return job->pairs != NULL ? job->pairs->open : NULL;
}

void core_depend_clear_job(CoreJob *job)
{
    if (job->pairs == NULL)
        return;
    for (guint i = 0; i < job->pairs->pairs->len; i++) {
        Pair *pair = &g_array_index(job->pairs->pairs, Pair, i);
        berth_index_set_free(pair->waiting);
        g_clear_pointer(&pair->never, berth_index_set_free);
    }
    berth_index_set_free(job->pairs->open);
    g_array_unref(job->pairs->pairs);
    g_clear_pointer(&job->pairs, g_free);
}

gsize core_depend_job_bytes(const CoreJob *job)
{
    gsize n_ranges = 0;
    if (job->pairs == NULL)
        return 0;
    for (guint i = 0; i < job->pairs->pairs->len; i++)
        n_ranges += berth_index_set_n_ranges(g_array_index(job->pairs->pairs, Pair, i).waiting);
    n_ranges += berth_index_set_n_ranges(job->pairs->open);
    return sizeof *job->pairs + job->pairs->pairs->len * sizeof(Pair) +
           n_ranges * sizeof(BerthIndexRange);
}

void core_depend_take(CoreJob *job, const BerthIndexSet *tasks)
{
    if (job->pairs == NULL)
        return;
    berth_index_set_remove_all(job->pairs->open, tasks);
    for (guint i = 0; i < job->pairs->pairs->len; i++)
        berth_index_set_remove_all(g_array_index(job->pairs->pairs, Pair, i).waiting, tasks);
}

/* In whatever pair. */
static gboolean waits(const CoreJob *job, guint32 index)
{
    for (guint i = 0; i < job->pairs->pairs->len; i++)
        if (berth_index_set_contains(g_array_index(job->pairs->pairs, Pair, i).waiting, index))
            return TRUE;
    return FALSE;
}

/* Those of WAITING of which OTHER (NULL: it has ended, and is forgotten) has no task any more, or one that is over and has not
 * COMPLETED; what has waits no more. Of one whose guest is being removed it is told later. (transfer full) */
static BerthIndexSet *find_hopeless(const CoreJob *other, BerthIndexSet *waiting)
{
    BerthIndexSet *hopeless = berth_index_set_copy(waiting);
    g_autoptr(BerthIndexSet) completed = berth_index_set_new();
    g_autoptr(BerthIndexSet) unfinished = berth_index_set_new();
    if (other != NULL && other->fresh != NULL)
        berth_index_set_remove_all(hopeless, other->fresh);
    else if (other != NULL && core_job_n_fresh(other) > 0)
        berth_index_set_add_one(unfinished, 0);
    for (guint32 i = 0; other != NULL && i < other->n_tasks; i++) {
        const BerthCoreTask *record = &other->tasks[i]->record;
        gboolean is_over =
            berth_job_state_is_final(record->state) && record->phase == BERTH_GUEST_NONE;
        if (!is_over)
            berth_index_set_add_one(unfinished, record->task);
        else if (record->state == BERTH_JOB_COMPLETED)
            berth_index_set_add_one(completed, record->task);
    }
    berth_index_set_remove_all(waiting, completed);
    berth_index_set_remove_all(hopeless, completed);
    berth_index_set_remove_all(hopeless, unfinished);
    return hopeless;
}

/* Those of FRESH that are unfinished in OTHER (NULL: nothing is). (transfer full) */
static BerthIndexSet *find_unfinished(const CoreJob *other, const BerthIndexSet *fresh)
{
    BerthIndexSet *unfinished = berth_index_set_copy(fresh);
    g_autoptr(BerthIndexSet) never = find_hopeless(other, unfinished);
    return berth_index_set_subtract(unfinished, never);
}

static void add_pair(BerthCore *core, CoreJob *job, const BerthCoreJob *source, guint64 number,
                     gboolean is_restored)
{
    const CoreJob *other = number != job->id ? core_job_get(core, number) : NULL;
    Pair pair = {number, NULL, NULL};
    if (is_restored) {
        pair.waiting = find_unfinished(other, job->fresh);
    } else {
        pair.waiting = berth_index_set_copy(job->fresh);
        for (gsize i = 0; i < source->n_completed; i++)
            if (source->completed[i].job == number)
                berth_index_set_remove(pair.waiting, source->completed[i].tasks);
        g_autoptr(BerthIndexSet) hopeless = find_hopeless(other, pair.waiting);
        give_up_some(core, job, &pair, hopeless);
    }
    if (job->pairs == NULL) {
        job->pairs = g_new(CorePairs, 1);
        job->pairs->open = berth_index_set_copy(job->fresh);
        job->pairs->pairs = g_array_new(FALSE, FALSE, sizeof(Pair));
    }
    g_array_append_val(job->pairs->pairs, pair);
    job->pairs->open = berth_index_set_subtract(job->pairs->open, pair.waiting);
    core_job_opened(job);
}

/* One of the pairs of JOB with OTHER, from *PLACE on; NULL: there is no more. */
static Pair *next_pair(const CoreJob *job, guint64 other, guint *place)
{
    while (job->pairs != NULL && *place < job->pairs->pairs->len) {
        Pair *pair = &g_array_index(job->pairs->pairs, Pair, (*place)++);
        if (pair->job == other)
            return pair;
    }
    return NULL;
}

/* Those of TASKS of OTHER have COMPLETED. */
static void meet_some(BerthCore *core, CoreJob *job, guint64 other, const BerthIndexRange *tasks)
{
    guint place = 0;
    for (Pair *pair; (pair = next_pair(job, other, &place)) != NULL;) {
        g_autoptr(BerthIndexSet) met = berth_index_set_within(pair->waiting, tasks);
        berth_index_set_remove(pair->waiting, *tasks);
        guint32 index = 0;
        for (guint32 from = 0; berth_index_set_next(met, from, &index); from = index + 1)
            if (!waits(job, index))
                berth_index_set_add_one(job->pairs->open, index);
    }
    core_job_opened(job);
    core_order_update(core, job);
}

static void end_some(BerthCore *core, const CoreJob *job, guint64 other,
                     const BerthIndexRange *tasks)
{
    guint place = 0;
    for (Pair *pair; (pair = next_pair(job, other, &place)) != NULL;) {
        g_autoptr(BerthIndexSet) never = berth_index_set_within(pair->waiting, tasks);
        give_up_some(core, job, pair, never);
    }
}

void core_depend_task_ended(BerthCore *core, const CoreTask *task)
{
    const BerthCoreTask *record = &task->record;
    const Waited *waited = g_hash_table_lookup(core->waited, &record->job);
    BerthIndexRange tasks =
        berth_index_range_of(record->task, record->rest_last, record->rest_step);
    for (guint i = 0; waited != NULL && i < waited->dependents->len; i++) {
        Dependent dependent = g_array_index(waited->dependents, Dependent, i);
        CoreJob *job = dependent.kind == BERTH_AFTER_CORR ? get_waiting(core, &dependent) : NULL;
        if (job == NULL || job->pairs == NULL)
            continue;
        if (record->state == BERTH_JOB_COMPLETED)
            meet_some(core, job, record->job, &tasks);
        else
            end_some(core, job, record->job, &tasks);
    }
}

/* --- job by job -------------------------------------------------------------------------------- */

static gboolean has_started(const CoreJob *job)
{
    return core_job_n_fresh(job) == 0;
}

/* TRUE: JOB waits for that element by element. One that is no array waits for the whole. */
static gboolean add_by_element(BerthCore *core, CoreJob *job, const BerthCoreJob *source,
                               const BerthCoreDependency *dependency, gboolean is_restored)
{
    if (dependency->kind != BERTH_AFTER_CORR || job->fresh == NULL)
        return FALSE;
    const CoreJob *other = core_job_get(core, dependency->job);
    add_pair(core, job, source, dependency->job, is_restored);
    if (other != NULL && other != job && !other->has_ended)
        wait_for(core, job, dependency);
    return TRUE;
}

static void add_one(BerthCore *core, CoreJob *job, const BerthCoreDependency *dependency)
{
    const CoreJob *other = core_job_get(core, dependency->job);
    if (dependency->kind == BERTH_SINGLETON) {
        if (job->family == NULL || eldest(job->family) == job || job->is_singleton)
            return;
        job->is_singleton = TRUE;
    } else if (other == job) {
        give_up(core, job, job->id); /* nobody comes after himself */
    } else if (other != NULL && !other->has_ended) {
        if (dependency->kind == BERTH_AFTER_START && has_started(other))
            return;
        wait_for(core, job, dependency);
    } else {
        gboolean ended_well =
            other != NULL ? !other->has_failed : dependency->outcome == BERTH_JOB_COMPLETED;
        if (is_met_by(dependency->kind, ended_well))
            return;
        give_up(core, job, dependency->job);
    }
    job->n_unmet++;
}

void core_depend_add(BerthCore *core, CoreJob *job, const BerthCoreJob *source,
                     gboolean is_restored)
{
    if (source->family != 0)
        job->family = join_family(core, job, source->uid, source->family);
    for (gsize i = 0; i < source->n_dependencies; i++)
        if (!add_by_element(core, job, source, &source->dependencies[i], is_restored))
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
        } else if (dependent.kind == BERTH_AFTER_CORR && waiting->fresh != NULL) {
            continue; /* each of its tasks was told for itself */
        } else if (!has_ended || is_met_by(dependent.kind, !job->has_failed)) {
            meet(core, waiting);
            any = TRUE;
        } else {
            give_up(core, waiting, job->id);
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

static void end_whole(BerthCore *core, Hopeless hopeless)
{
    CoreJob *job = core_job_get(core, hopeless.job);
    if (job != NULL && !job->has_ended)
        core_end_hopeless(core, job, NULL, hopeless.after);
}

/* Of each pair all at once: one by one each would move those behind it, of an array of a million. */
static void end_tasks(BerthCore *core, guint64 number)
{
    CoreJob *job = core_job_get(core, number);
    for (guint i = 0; job != NULL && i < job->pairs->pairs->len; i++) {
        Pair *pair = &g_array_index(job->pairs->pairs, Pair, i);
        g_autoptr(BerthIndexSet) never = g_steal_pointer(&pair->never);
        if (never != NULL && !job->has_ended)
            core_end_hopeless(core, job, never, pair->job);
    }
}

/* Those that come after one job may be a hundred thousand: others are decided on between them. Which tasks of an array can never start
 * is not among what is restored: they are ended with what they waited for. With each there may be more of both. */
void core_depend_end_hopeless(BerthCore *core)
{
    GArray *tasks = core->hopeless_tasks;
    GArray *jobs = core->hopeless;
    guint n_tasks = 0, n_jobs = 0;
    guint most_jobs = core_heap_has(&core->ends_hopeless.link) ? 0 : ENDS_PER_EVENT;
    while (n_tasks < tasks->len || n_jobs < MIN(jobs->len, most_jobs)) {
        if (n_tasks < tasks->len)
            end_tasks(core, g_array_index(tasks, guint64, n_tasks++));
        else
            end_whole(core, g_array_index(jobs, Hopeless, n_jobs++));
    }
    g_array_set_size(tasks, 0);
    if (n_jobs > 0)
        g_array_remove_range(jobs, 0, n_jobs);
    if (jobs->len > 0 && !core_heap_has(&core->ends_hopeless.link))
        core_timer_set(core, &core->ends_hopeless, core->now_usec);
}
