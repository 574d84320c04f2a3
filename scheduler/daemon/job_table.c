/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the memory of unfinished jobs and their counts by image and user. Decides nothing and
 * writes nothing.
 *
 * Invariant: a job is counted exactly while its entry exists and it was not reported finished. */
#include "config.h"

#include "scheduler/daemon/job_table.h"

struct BerthJobTable {
    GHashTable *jobs;     /* guint64 -> Slot */
    GHashTable *by_image; /* name -> count */
    GHashTable *by_user;  /* uid -> count */
};

typedef struct {
    guint64 number; /* the key */
    BerthJobEntry entry;
    gboolean is_counted;
} Slot;

static void slot_free(gpointer data)
{
    Slot *slot = data;
    for (guint32 i = 0; i < slot->entry.n_tasks; i++) {
        berth__stored_task__free_unpacked(slot->entry.tasks[i].stored, NULL);
        g_free(slot->entry.tasks[i].detail);
        if (slot->entry.tasks[i].said)
            berth__usage__free_unpacked(slot->entry.tasks[i].said, NULL);
    }
    g_free(slot->entry.tasks);
    berth__job__free_unpacked(slot->entry.job, NULL);
    g_free(slot);
}

BerthJobTable *berth_job_table_new(void)
{
    BerthJobTable *table = g_new0(BerthJobTable, 1);
    table->jobs = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, slot_free);
    table->by_image = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    table->by_user = g_hash_table_new(NULL, NULL);
    return table;
}

void berth_job_table_free(BerthJobTable *table)
{
    g_hash_table_unref(table->jobs);
    g_hash_table_unref(table->by_image);
    g_hash_table_unref(table->by_user);
    g_free(table);
}

guint berth_job_table_count_image(BerthJobTable *table, const char *image)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(table->by_image, image));
}

guint berth_job_table_count_user(BerthJobTable *table, guint32 uid)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(table->by_user, GUINT_TO_POINTER(uid)));
}

static Berth__StoredTask *new_task(guint64 job, guint32 index)
{
    Berth__Task task = BERTH__TASK__INIT;
    task.job = job;
    task.index = index;
    task.state = BERTH__JOB_STATE__PENDING;
    Berth__StoredTask stored = BERTH__STORED_TASK__INIT;
    stored.task = &task;
    return berth_pb_dup(&stored.base);
}

static void set_image_count(BerthJobTable *table, const char *image, guint count)
{
    if (count == 0) {
        g_hash_table_remove(table->by_image, image);
        return;
    }
    g_hash_table_insert(table->by_image, g_strdup(image), GUINT_TO_POINTER(count));
}

static void set_user_count(BerthJobTable *table, guint32 uid, guint count)
{
    if (count == 0) {
        g_hash_table_remove(table->by_user, GUINT_TO_POINTER(uid));
        return;
    }
    g_hash_table_insert(table->by_user, GUINT_TO_POINTER(uid), GUINT_TO_POINTER(count));
}

BerthJobEntry *berth_job_table_add(BerthJobTable *table, Berth__Job *job,
                                   Berth__StoredTask *const *tasks, guint32 n_tasks)
{
    g_return_val_if_fail(!g_hash_table_contains(table->jobs, &job->id), NULL);
    Slot *slot = g_new0(Slot, 1);
    slot->number = job->id;
    slot->is_counted = TRUE;
    slot->entry.job = job;
    slot->entry.n_tasks = n_tasks;
    slot->entry.tasks = g_new0(BerthTaskEntry, n_tasks);
    for (guint32 i = 0; i < n_tasks; i++) {
        slot->entry.tasks[i].stored = tasks ? tasks[i] : new_task(job->id, i);
        slot->entry.tasks[i].starved_seen_usec = slot->entry.tasks[i].stored->starved_seen_usec;
    }
    set_image_count(table, job->image, berth_job_table_count_image(table, job->image) + 1);
    set_user_count(table, job->uid, berth_job_table_count_user(table, job->uid) + 1);
    g_hash_table_insert(table->jobs, &slot->number, slot);
    return &slot->entry;
}

static Slot *find_slot(BerthJobTable *table, guint64 job)
{
    return g_hash_table_lookup(table->jobs, &job);
}

BerthJobEntry *berth_job_table_find(BerthJobTable *table, guint64 job)
{
    Slot *slot = find_slot(table, job);
    return slot ? &slot->entry : NULL;
}

BerthTaskEntry *berth_job_table_find_task(BerthJobTable *table, guint64 job, guint32 task)
{
    BerthJobEntry *entry = berth_job_table_find(table, job);
    return entry && task < entry->n_tasks ? &entry->tasks[task] : NULL;
}

void berth_job_table_finished(BerthJobTable *table, guint64 job)
{
    Slot *slot = find_slot(table, job);
    if (!slot || !slot->is_counted)
        return;
    slot->is_counted = FALSE;
    const Berth__Job *record = slot->entry.job;
    set_image_count(table, record->image, berth_job_table_count_image(table, record->image) - 1);
    set_user_count(table, record->uid, berth_job_table_count_user(table, record->uid) - 1);
}

void berth_job_table_remove(BerthJobTable *table, guint64 job)
{
    berth_job_table_finished(table, job);
    g_hash_table_remove(table->jobs, &job);
}

guint berth_job_table_size(BerthJobTable *table)
{
    return g_hash_table_size(table->jobs);
}

static gint compare_numbers(gconstpointer a, gconstpointer b)
{
    guint64 left = *(const guint64 *)a;
    guint64 right = *(const guint64 *)b;
    return left < right ? -1 : left > right;
}

GArray *berth_job_table_numbers(BerthJobTable *table)
{
    GArray *numbers = g_array_new(FALSE, FALSE, sizeof(guint64));
    GHashTableIter iter;
    gpointer number;
    g_hash_table_iter_init(&iter, table->jobs);
    while (g_hash_table_iter_next(&iter, &number, NULL))
        g_array_append_vals(numbers, number, 1);
    g_array_sort(numbers, compare_numbers);
    return numbers;
}
