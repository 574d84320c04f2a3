/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is known of the jobs that others come after. */
#include "config.h"

#include "scheduler/daemon/dependencies.h"

#include "common/error.h"
#include "common/ranges.h"
#include "common/types.h"

GHashTable *berth_dependencies_new(void)
{
    return g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
}

void berth_dependencies_gather(const Berth__JobSpec *spec, GHashTable *states)
{
    for (gsize i = 0; i < spec->n_dependencies; i++)
        if (spec->dependencies[i]->job != 0)
            g_hash_table_add(states, g_memdup2(&spec->dependencies[i]->job, sizeof(guint64)));
}

GArray *berth_dependencies_look(const Berth__JobSpec *spec, GHashTable *known, GError **error)
{
    g_autoptr(GArray) states = g_array_new(FALSE, FALSE, sizeof(Berth__JobState));
    for (gsize i = 0; i < spec->n_dependencies; i++) {
        guint64 job = spec->dependencies[i]->job;
        Berth__JobState state = (Berth__JobState)GPOINTER_TO_INT(g_hash_table_lookup(known, &job));
        if (job != 0 && state == BERTH__JOB_STATE__JOB_STATE_UNSPECIFIED) {
            g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                        "there is no job %" G_GUINT64_FORMAT " that it could come after; "
                        "berth ls --all shows those that there are",
                        job);
            return NULL;
        }
        g_array_append_val(states, state);
    }
    return g_steal_pointer(&states);
}

void berth_dependencies_note(Berth__JobSpec *spec, const GArray *states)
{
    for (gsize i = 0; i < spec->n_dependencies; i++)
        spec->dependencies[i]->state = g_array_index(states, Berth__JobState, i);
}

gboolean berth_dependencies_renew(Berth__JobSpec *spec, BerthJobTable *jobs)
{
    for (gsize i = 0; i < spec->n_dependencies; i++) {
        Berth__Dependency *dependency = spec->dependencies[i];
        if (dependency->job == 0 || berth_job_state_is_final((BerthJobState)dependency->state))
            continue;
        const BerthJobEntry *entry = berth_job_table_find(jobs, dependency->job);
        if (!entry)
            return FALSE;
        dependency->state = entry->job->state;
    }
    return TRUE;
}

/* --- task by task ------------------------------------------------------------------------------ */

static gboolean is_by_element(const Berth__Dependency *dependency)
{
    return dependency->kind == BERTH__DEPENDENCY__KIND__AFTER_CORR;
}

gboolean berth_dependencies_watch(const Berth__JobSpec *spec, BerthElements *elements)
{
    gboolean is_any = FALSE;
    for (gsize i = 0; i < spec->n_dependencies; i++) {
        if (!is_by_element(spec->dependencies[i]))
            continue;
        berth_elements_watch(elements, spec->dependencies[i]->job);
        is_any = TRUE;
    }
    return is_any;
}

void berth_dependencies_unwatch(const Berth__JobSpec *spec, BerthElements *elements)
{
    for (gsize i = 0; i < spec->n_dependencies; i++)
        if (is_by_element(spec->dependencies[i]))
            berth_elements_unwatch(elements, spec->dependencies[i]->job);
}

void berth_dependencies_add_completed(const Berth__JobSpec *spec, const BerthElements *elements,
                                      GArray *completed)
{
    for (gsize i = 0; i < spec->n_dependencies; i++)
        if (is_by_element(spec->dependencies[i]))
            berth_elements_add(elements, spec->dependencies[i]->job, completed);
}

/* All of INDICES are tasks of JOB. */
static gboolean check_elements(BerthStore *store, guint64 job, const BerthIndexSet *indices,
                               GError **error)
{
    g_autoptr(BerthIndexSet) its = berth_index_set_new();
    Berth__JobSpec *spec = berth_store_get_spec(store, job, error);
    if (!spec)
        return FALSE;
    if (!spec->array)
        berth_index_set_add_one(its, 0);
    for (gsize i = 0; spec->array && i < spec->array->n_tasks; i++)
        berth_index_set_add(its, berth_range_of(spec->array->tasks[i]));
    berth__job_spec__free_unpacked(spec, NULL);
    g_autoptr(BerthIndexSet) beyond = berth_index_set_without(indices, its);
    guint32 index = 0;
    if (!berth_index_set_next(beyond, 0, &index))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "job %" G_GUINT64_FORMAT
                " has no task %u, after which task %u of this one could come; "
                "berth show %" G_GUINT64_FORMAT " says which it has",
                job, index, index, job);
    return FALSE;
}

GArray *berth_dependencies_completed(const Berth__JobSpec *spec, const BerthIndexSet *indices,
                                     BerthStore *store, GError **error)
{
    g_autoptr(GArray) completed = g_array_new(FALSE, FALSE, sizeof(BerthTaskRange));
    guint32 first = 0;
    if (indices)
        berth_index_set_next(indices, 0, &first);
    for (gsize i = 0; i < spec->n_dependencies && indices; i++) {
        guint64 job = spec->dependencies[i]->job;
        if (is_by_element(spec->dependencies[i]) &&
            (!check_elements(store, job, indices, error) ||
             !berth_store_get_completed(store, job, first, berth_index_set_last(indices), completed,
                                        error)))
            return NULL;
    }
    return g_steal_pointer(&completed);
}

/* --- for the core ------------------------------------------------------------------------------ */

/* One that is not known any more was forgotten, long after it had ended (history.h): had it not ended as it must have, who waits would have
 * been cancelled then. */
static BerthJobState outcome_of(const Berth__Dependency *dependency)
{
    BerthJobState state = (BerthJobState)dependency->state;
    if (dependency->job != 0 && dependency->state == BERTH__JOB_STATE__JOB_STATE_UNSPECIFIED)
        return dependency->kind == BERTH__DEPENDENCY__KIND__AFTER_NOT_OK ? BERTH_JOB_FAILED
                                                                         : BERTH_JOB_COMPLETED;
    return berth_job_state_is_final(state) ? state : 0;
}

BerthCoreDependency *berth_dependencies_to_core(const Berth__JobSpec *spec)
{
    BerthCoreDependency *dependencies = g_new0(BerthCoreDependency, spec->n_dependencies);
    for (gsize i = 0; i < spec->n_dependencies; i++) {
        const Berth__Dependency *dependency = spec->dependencies[i];
        dependencies[i] = (BerthCoreDependency){
            .kind = (BerthDependencyKind)dependency->kind,
            .job = dependency->job,
            .outcome = outcome_of(dependency),
        };
    }
    return dependencies;
}
