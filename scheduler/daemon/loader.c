/* SPDX-License-Identifier: Apache-2.0 */
/* Owns recovery from the store. Decides nothing: the core does, once everything is back.
 *
 * Invariant: what is restored is what a daemon that had not ended would know, but for usage and
 * log sizes, which the next report brings. */
#include "config.h"

#include "scheduler/daemon/loader.h"

#include "common/error.h"
#include "scheduler/daemon/dependencies.h"
#include "scheduler/daemon/image_table.h"
#include "scheduler/daemon/job_records.h"
#include "scheduler/daemon/learned.h"
#include "scheduler/daemon/records.h"

/* The journal begins with what the core is given back. */
static void give_back(BerthDaemon *daemon, const BerthJournalEntry *entry)
{
    GString *text = berth_journal_file_begin(daemon->journal);
    if (text) {
        berth_journal_restored(text, entry);
        berth_journal_file_commit(daemon->journal, text);
    }
    berth_journal_restore(daemon->core, entry);
}

static guint32 add_node(BerthDaemon *daemon, const char *name)
{
    guint32 n_before = berth_core_n_nodes(daemon->core);
    guint32 handle = berth_core_add_node(daemon->core, name);
    GString *text = handle > n_before ? berth_journal_file_begin(daemon->journal) : NULL;
    if (text) {
        berth_journal_node(text, handle, name);
        berth_journal_file_commit(daemon->journal, text);
    }
    berth_node_table_add(daemon->nodes, handle, name);
    return handle;
}

/* The core knows a node that was given up as LOST and closed. A kind that this release does not know is of a
 * newer one: the node gets no new guests, at least. */
static BerthNodeAdmission admission_of(const Berth__StoredNode *stored)
{
    Berth__NodeAdmission__Kind kind =
        stored->admission ? stored->admission->kind : BERTH__NODE_ADMISSION__KIND__OPEN;
    return (guint)kind <= BERTH_ADMISSION_DRAINING ? (BerthNodeAdmission)kind
                                                   : BERTH_ADMISSION_CORDONED;
}

static gboolean load_node(const Berth__StoredNode *stored, gpointer user_data, GError **error)
{
    BerthDaemon *daemon = user_data;
    if (!stored->info || !*stored->info->name) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
                            "a record of a node in the state database has no name; put a backup of "
                            "the database in its place");
        return FALSE;
    }
    guint32 handle = add_node(daemon, stored->info->name);
    BerthNodeEntry *node = berth_node_table_find(daemon->nodes, handle);
    berth_node_entry_set_info(node, stored->info);
    node->heard_usec = node->kept_heard_usec = (gint64)stored->heard_usec;
    node->told_state = stored->state;
    berth_node_entry_set_admission(node, stored->admission);
    BerthJournalEntry entry = {.kind = BERTH_JOURNAL_RESTORED_NODE,
                               .restored_node = {.state = (BerthNodeState)stored->state,
                                                 .since_usec = (gint64)stored->since_usec,
                                                 .admission = admission_of(stored),
                                                 .has_joined = TRUE}};
    entry.event.node = handle;
    entry.event.joined.info = berth_record_node_to_core(stored->info);
    give_back(daemon, &entry);
    return TRUE;
}

static gboolean load_image(const Berth__Image *image, gpointer user_data, GError **error)
{
    BerthDaemon *daemon = user_data;
    berth_image_table_put(daemon->images, berth_pb_dup(&image->base));
    return TRUE;
}

static gboolean load_unwanted(const char *image_id, BerthUnwanted why, gpointer user_data,
                              GError **error)
{
    BerthDaemon *daemon = user_data;
    berth_image_table_set_unwanted(daemon->images, image_id, why);
    return TRUE;
}

static gboolean load_use(const Berth__StoredUse *stored, gpointer user_data, GError **error)
{
    BerthJournalEntry entry = {.kind = BERTH_JOURNAL_RESTORED_USE};
    berth_learned_use_to_core(stored, &entry.use);
    give_back(user_data, &entry);
    return TRUE;
}

static gboolean load_prior(const Berth__StoredPrior *stored, gpointer user_data, GError **error)
{
    BerthJournalEntry entry = {.kind = BERTH_JOURNAL_RESTORED_PRIOR};
    berth_learned_prior_to_core(stored, &entry.prior);
    if (entry.prior.n > 0)
        give_back(user_data, &entry);
    return TRUE;
}

/* Takes the records. */
static BerthJobEntry *add_entry(BerthDaemon *daemon, BerthStoreLoadedJob *loaded)
{
    gboolean has_files = *loaded->spec->stdout_path || *loaded->spec->stderr_path;
    BerthJobEntry *entry = berth_job_table_add(daemon->jobs, g_steal_pointer(&loaded->job));
    entry->wants_output = has_files;
    for (gsize i = 0; i < loaded->n_tasks; i++) {
        Berth__StoredTask *stored = g_steal_pointer(&loaded->tasks[i]);
        BerthTaskEntry *task = berth_job_table_add_task(entry, stored->task->index, stored);
        task->wants_output = has_files && !stored->output_copied;
    }
    if (berth_job_state_is_final((BerthJobState)entry->job->state))
        berth_job_table_finished(daemon->jobs, entry->job->id);
    return entry;
}

/* Nothing of it runs: it is here because its output is still to be copied. */
static gboolean is_only_output(const Berth__StoredTask *stored)
{
    return stored->phase == BERTH_GUEST_NONE &&
           berth_job_state_is_final((BerthJobState)stored->task->state);
}

static void restore_in_core(BerthDaemon *daemon, const Berth__JobSpec *spec,
                            const BerthJobEntry *entry)
{
    const Berth__Job *job = entry->job;
    g_autofree guint32 *nodes = g_new0(guint32, spec->n_nodes + 1);
    g_autofree BerthCoreTask *tasks = g_new0(BerthCoreTask, entry->n_tasks + 1);
    gsize n_tasks = 0;
    BerthJournalEntry restored = {.kind = BERTH_JOURNAL_RESTORED_JOB};
    for (gsize i = 0; i < spec->n_nodes; i++)
        nodes[i] = add_node(daemon, spec->nodes[i]);
    for (guint32 i = 0; i < entry->n_tasks; i++) {
        const Berth__StoredTask *stored = entry->tasks[i]->stored;
        if (is_only_output(stored))
            continue;
        guint32 node = *stored->task->node ? add_node(daemon, stored->task->node) : 0;
        const char *to_name = berth_record_migrates_to(stored);
        berth_record_to_core(stored, node, *to_name ? add_node(daemon, to_name) : 0,
                             &tasks[n_tasks++]);
    }
    g_autofree BerthCoreDependency *dependencies = berth_dependencies_to_core(spec);
    berth_record_job_to_core(job, spec, entry->unstarted, nodes, spec->n_nodes,
                             &restored.event.submitted);
    g_autofree BerthIndexRange *by_user = berth_record_ranges(job->held_tasks, job->n_held_tasks);
    g_autofree BerthIndexRange *by_operator =
        berth_record_ranges(job->held_tasks_by_operator, job->n_held_tasks_by_operator);
    restored.event.submitted.tasks_held_by_user = by_user;
    restored.event.submitted.n_held_by_user = job->n_held_tasks;
    restored.event.submitted.tasks_held_by_operator = by_operator;
    restored.event.submitted.n_held_by_operator = job->n_held_tasks_by_operator;
    restored.event.submitted.dependencies = dependencies;
    restored.event.submitted.n_dependencies = spec->n_dependencies;
    restored.restored_job.tasks = tasks;
    restored.restored_job.n_tasks = n_tasks;
    if (n_tasks > 0 || restored.event.submitted.n_indices > 0)
        give_back(daemon, &restored);
}

static gboolean is_consistent(const BerthStoreLoadedJob *loaded)
{
    for (gsize i = 0; i < loaded->n_tasks; i++)
        if (!loaded->tasks[i]->task || loaded->tasks[i]->task->job != loaded->job->id)
            return FALSE;
    return loaded->job->array || loaded->n_tasks == 1;
}

static gboolean load_job(BerthStoreLoadedJob *loaded, gpointer user_data, GError **error)
{
    BerthDaemon *daemon = user_data;
    if (!is_consistent(loaded)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
                    "the records of job %" G_GUINT64_FORMAT
                    " in the state database contradict each "
                    "other (%zu tasks, where one of that job is due); put a backup of the database "
                    "in its place",
                    loaded->job->id, loaded->n_tasks);
        return FALSE;
    }
    restore_in_core(daemon, loaded->spec, add_entry(daemon, loaded));
    berth_job_table_rest(daemon->jobs);
    return TRUE;
}

/* A node that had a session was heard of until the daemon before ended: after the newest time in the
 * state, and by less than that is kept late. Of one that had none the time is exact, and a boot that
 * began since is its next one, however often berthd was started meanwhile. Older releases kept none. */
static void settle_heard(BerthDaemon *daemon, gint64 *newest_usec)
{
    g_autoptr(GPtrArray) nodes = berth_node_table_list(daemon->nodes);
    for (guint i = 0; i < nodes->len; i++) {
        const BerthNodeEntry *entry = g_ptr_array_index(nodes, i);
        *newest_usec = MAX(*newest_usec, entry->heard_usec);
    }
    for (guint i = 0; i < nodes->len; i++) {
        BerthNodeEntry *entry = g_ptr_array_index(nodes, i);
        BerthCoreNode node;
        if (berth_core_get_node(daemon->core, entry->handle, &node) &&
            (node.state == BERTH_NODE_UP || entry->heard_usec == 0))
            entry->heard_usec = *newest_usec;
    }
}

gboolean berth_loader_run(BerthDaemon *daemon, BerthStoreCounters *out_counters, GError **error)
{
    static const BerthStoreLoader loader = {.node = load_node,
                                            .image = load_image,
                                            .job = load_job,
                                            .use = load_use,
                                            .prior = load_prior,
                                            .unwanted = load_unwanted};
    if (!berth_store_load(daemon->store, &loader, daemon, out_counters, error))
        return FALSE;
    settle_heard(daemon, &out_counters->last_usec);
    return TRUE;
}
