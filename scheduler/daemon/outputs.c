/* SPDX-License-Identifier: Apache-2.0 */
/* Owns when output is copied to users' files, and what becomes of a copy that fails: storage that
 * does not answer is asked again, anything else is noted in the task's reason. */
#include "config.h"

#include "scheduler/daemon/outputs.h"

#include "common/error.h"
#include "common/id.h"
#include "common/log.h"
#include "scheduler/daemon/output_file.h"
#include "scheduler/daemon/pb.h"
#include "scheduler/daemon/turn_records.h"

#include <string.h>

#define PIECE_BYTES (1u << 20)
#define RETRY_SEC   10u

struct BerthOutputs {
    BerthDaemon *daemon;
    GHashTable *under_way; /* set of BerthGuestId, without epochs */
    GHashTable *waiting;   /* set of BerthGuestId: for the next retry */
    guint timer;
};

/* One task's copy; immutable while a worker has it. */
typedef struct {
    BerthOutputs *outputs;
    BerthGuestId name;
    guint32 gid;
    guint32 uid;
    char *user;
    char *log_id;
    guint64 end[BERTH_N_STREAMS]; /* as the task's exit says; or G_MAXUINT64 */
} Copy;

static GHashTable *new_names(void)
{
    return g_hash_table_new_full(berth_guest_id_hash, berth_guest_id_equal_func, g_free, NULL);
}

static void add_name(GHashTable *names, const BerthGuestId *name)
{
    g_hash_table_add(names, g_memdup2(name, sizeof *name));
}

BerthOutputs *berth_outputs_new(BerthDaemon *daemon)
{
    BerthOutputs *outputs = g_new0(BerthOutputs, 1);
    outputs->daemon = daemon;
    outputs->under_way = new_names();
    outputs->waiting = new_names();
    return outputs;
}

void berth_outputs_free(BerthOutputs *outputs)
{
    g_clear_handle_id(&outputs->timer, g_source_remove);
    g_hash_table_unref(outputs->under_way);
    g_hash_table_unref(outputs->waiting);
    g_free(outputs);
}

/* --- on a worker -------------------------------------------------------------------------------- */

/* Up to END: what is beyond it is not the task's own. */
static gboolean copy_log(BerthStorage *storage, const char *name, guint64 end,
                         BerthOutputFile *file, GError **error)
{
    for (guint64 offset = 0;;) {
        gsize length = (gsize)MIN(end - offset, PIECE_BYTES);
        g_autoptr(GBytes) content = berth_storage_log_read(storage, name, offset, length, error);
        if (!content)
            return FALSE;
        if (g_bytes_get_size(content) == 0)
            return TRUE;
        if (!berth_output_file_write(file, content, error))
            return FALSE;
        offset += g_bytes_get_size(content);
    }
}

/* Copies its streams from FIRST to LAST, one after the other, into one file. */
static gboolean copy_to(BerthStorage *storage, const Copy *copy, const char *pattern, guint first,
                        guint last, GArray *groups, GError **error)
{
    g_autofree char *path = berth_job_path_format(pattern, copy->name.job, copy->name.task);
    if (!*path || strcmp(path, "/dev/null") == 0)
        return TRUE;
    g_autoptr(BerthOutputFile) file = berth_output_file_open(
        path, copy->uid, copy->gid, (const gid_t *)(void *)groups->data, groups->len, error);
    if (!file)
        return FALSE;
    for (guint stream = first; stream <= last; stream++) {
        g_autofree char *name = berth_log_name_format(copy->log_id, stream);
        if (!copy_log(storage, name, copy->end[stream], file, error))
            return FALSE;
    }
    return berth_output_file_close(g_steal_pointer(&file), error);
}

static gpointer copy_output(BerthStorage *storage, gconstpointer input, GError **error)
{
    const Copy *copy = input;
    g_autoptr(Berth__JobSpec) spec =
        berth_store_get_spec(copy->outputs->daemon->store, copy->name.job, error);
    if (!spec)
        return NULL;
    g_autoptr(GArray) groups = berth_user_groups(copy->user, copy->gid, error);
    if (!groups)
        return NULL;
    gboolean is_one = strcmp(spec->stdout_path, spec->stderr_path) == 0;
    if (copy_to(storage, copy, spec->stdout_path, BERTH_STDOUT,
                is_one ? BERTH_STDERR : BERTH_STDOUT, groups, error) &&
        !is_one)
        copy_to(storage, copy, spec->stderr_path, BERTH_STDERR, BERTH_STDERR, groups, error);
    return NULL;
}

/* --- on the loop -------------------------------------------------------------------------------- */

static void copy_free(Copy *copy)
{
    g_free(copy->user);
    g_free(copy->log_id);
    g_free(copy);
}

static gboolean on_retry(gpointer user_data)
{
    BerthOutputs *outputs = user_data;
    outputs->timer = 0;
    g_autoptr(GHashTable) waiting = g_steal_pointer(&outputs->waiting);
    outputs->waiting = new_names();
    GHashTableIter iter;
    gpointer key;
    g_hash_table_iter_init(&iter, waiting);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        const BerthGuestId *name = key;
        berth_outputs_consider(outputs, name->job, name->task);
    }
    return G_SOURCE_REMOVE;
}

static gboolean is_passing(const GError *error)
{
    return g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE) ||
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED);
}

static void try_later(BerthOutputs *outputs, const BerthGuestId *name)
{
    add_name(outputs->waiting, name);
    if (outputs->timer == 0)
        outputs->timer = g_timeout_add_seconds(RETRY_SEC, on_retry, outputs);
}

/* Whoever submits jobs decides how many of them fail here: the log is not theirs to fill. */
static void note_failure(const BerthJobEntry *entry, Berth__Task *task, const GError *error)
{
    static BerthLogLimit limit;
    berth_log_warning_limited(&limit,
                              "the output of job %" G_GUINT64_FORMAT " of %s was not copied: %s",
                              entry->job->id, entry->job->user, error->message);
    g_autofree char *text =
        g_strdup_printf("%s%sits output was not copied: %s (berth logs has it)", task->reason_text,
                        *task->reason_text ? "; " : "", error->message);
    berth_pb_set_string(&task->reason_text, text);
    task->output_lost = TRUE;
}

static void settle(BerthOutputs *outputs, const BerthGuestId *name, const GError *error)
{
    BerthDaemon *daemon = outputs->daemon;
    const BerthJobEntry *entry = berth_job_table_find(daemon->jobs, name->job);
    BerthTaskEntry *task = berth_job_table_find_task(daemon->jobs, name->job, name->task);
    if (!task || berth_engine_is_stopped(daemon->engine))
        return;
    if (error && is_passing(error)) {
        try_later(outputs, name);
        return;
    }
    if (error)
        note_failure(entry, task->stored->task, error);
    BerthTurn *turn = berth_engine_begin(daemon->engine);
    berth_turn_output_copied(turn, name->job, name->task, error ? error->message : NULL);
    berth_turn_commit(turn);
}

static void on_copied(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Copy *copy = user_data;
    g_autoptr(GError) error = NULL;
    berth_work_finish(result, &error);
    g_hash_table_remove(copy->outputs->under_way, &copy->name);
    settle(copy->outputs, &copy->name, error);
    copy_free(copy);
}

void berth_outputs_consider(BerthOutputs *outputs, guint64 job, guint32 index)
{
    BerthDaemon *daemon = outputs->daemon;
    const BerthGuestId name = {.job = job, .task = index};
    const BerthJobEntry *entry = berth_job_table_find(daemon->jobs, job);
    const BerthTaskEntry *task = berth_job_table_find_task(daemon->jobs, job, index);
    if (!task || !task->wants_output ||
        !berth_job_state_is_final((BerthJobState)task->stored->task->state) ||
        g_hash_table_contains(outputs->under_way, &name))
        return;
    const Berth__StoredTask *stored = task->stored;
    if (!*stored->log_id) {
        settle(outputs, &name, NULL); /* it never ran */
        return;
    }
    Copy *copy = g_new0(Copy, 1);
    copy->outputs = outputs;
    copy->name = name;
    copy->uid = entry->job->uid;
    copy->gid = entry->job->gid;
    copy->user = g_strdup(entry->job->user);
    copy->log_id = g_strdup(stored->log_id);
    const Berth__Exit *ended = stored->task->exit;
    copy->end[0] = ended ? ended->stdout_bytes : G_MAXUINT64;
    copy->end[1] = ended ? ended->stderr_bytes : G_MAXUINT64;
    add_name(outputs->under_way, &name);
    berth_storage_link_run_for(daemon->storage, BERTH_LANE_OUTPUT, copy->uid, "copy a job's output",
                               copy_output, copy, NULL, NULL, on_copied, copy);
}

/* What is settled at once is forgotten: the names are taken before. */
static void consider_job(BerthOutputs *outputs, guint64 job)
{
    const BerthJobEntry *entry = berth_job_table_find(outputs->daemon->jobs, job);
    g_autoptr(GArray) tasks = g_array_new(FALSE, FALSE, sizeof(guint32));
    for (guint32 i = 0; entry && i < entry->n_tasks; i++)
        g_array_append_val(tasks, entry->tasks[i]->stored->task->index);
    for (guint i = 0; i < tasks->len; i++)
        berth_outputs_consider(outputs, job, g_array_index(tasks, guint32, i));
}

void berth_outputs_consider_all(BerthOutputs *outputs)
{
    g_autoptr(GArray) numbers = berth_job_table_begun(outputs->daemon->jobs);
    for (guint i = 0; i < numbers->len; i++)
        consider_job(outputs, g_array_index(numbers, guint64, i));
}
