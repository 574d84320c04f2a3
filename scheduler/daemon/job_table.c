/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the memory of unfinished jobs and their counts by image and user. Decides nothing and
 * writes nothing.
 *
 * Invariant: a job is counted exactly while its entry exists and it was not reported finished. */
#include "config.h"

#include "scheduler/daemon/job_table.h"

#include "common/ranges.h"

#include <string.h>

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

static void task_free(BerthTaskEntry *task)
{
    berth__stored_task__free_unpacked(task->stored, NULL);
    g_free(task->detail);
    if (task->said)
        berth__usage__free_unpacked(task->said, NULL);
    g_free(task);
}

static void slot_free(gpointer data)
{
    Slot *slot = data;
    for (guint32 i = 0; i < slot->entry.n_tasks; i++)
        task_free(slot->entry.tasks[i]);
    g_free(slot->entry.tasks);
    g_clear_pointer(&slot->entry.unstarted, berth_index_set_free);
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

/* As the schema has ranges, a step of 0 is one of 1; one that is none is left out. */
static void take_unstarted(BerthJobEntry *entry)
{
    Berth__Job *job = entry->job;
    entry->unstarted = berth_index_set_new();
    for (gsize i = 0; i < job->n_unstarted; i++) {
        const Berth__IndexRange *range = job->unstarted[i];
        if (range->last >= range->first)
            berth_index_set_add(entry->unstarted,
                                (BerthIndexRange){range->first, range->last, MAX(range->step, 1)});
    }
    berth_ranges_set(&job->unstarted, &job->n_unstarted, NULL);
}

BerthJobEntry *berth_job_table_add(BerthJobTable *table, Berth__Job *job)
{
    g_return_val_if_fail(!g_hash_table_contains(table->jobs, &job->id), NULL);
    Slot *slot = g_new0(Slot, 1);
    slot->number = job->id;
    slot->is_counted = TRUE;
    slot->entry.job = job;
    if (job->array)
        take_unstarted(&slot->entry);
    set_image_count(table, job->image, berth_job_table_count_image(table, job->image) + 1);
    set_user_count(table, job->uid, berth_job_table_count_user(table, job->uid) + 1);
    g_hash_table_insert(table->jobs, &slot->number, slot);
    return &slot->entry;
}

/* The place of INDEX among its tasks, or where it would be. */
static guint32 place_of(const BerthJobEntry *entry, guint32 index)
{
    guint32 low = 0;
    guint32 high = entry->n_tasks;
    while (low < high) {
        guint32 middle = low + (high - low) / 2;
        if (entry->tasks[middle]->stored->task->index < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

BerthTaskEntry *berth_job_table_add_task(BerthJobEntry *entry, guint32 index,
                                         Berth__StoredTask *stored)
{
    guint32 place = place_of(entry, index);
    BerthTaskEntry *task = g_new0(BerthTaskEntry, 1);
    task->stored = stored ? stored : new_task(entry->job->id, index);
    task->starved_seen_usec = task->stored->starved_seen_usec;
    task->wants_output = entry->wants_output;
    /* Grown to powers of two. */
    if ((entry->n_tasks & (entry->n_tasks - 1)) == 0)
        entry->tasks = g_renew(BerthTaskEntry *, entry->tasks, MAX(1, 2 * entry->n_tasks));
    memmove(&entry->tasks[place + 1], &entry->tasks[place],
            (entry->n_tasks - place) * sizeof entry->tasks[0]);
    entry->tasks[place] = task;
    entry->n_tasks++;
    return task;
}

Berth__Job *berth_job_entry_record(const BerthJobEntry *entry)
{
    Berth__Job *record = berth_pb_dup(&entry->job->base);
    berth_ranges_set(&record->unstarted, &record->n_unstarted, entry->unstarted);
    return record;
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
    guint32 place = entry ? place_of(entry, task) : 0;
    gboolean is_there =
        entry && place < entry->n_tasks && entry->tasks[place]->stored->task->index == task;
    return is_there ? entry->tasks[place] : NULL;
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

void berth_job_table_remove_task(BerthJobTable *table, guint64 job, guint32 task)
{
    BerthJobEntry *entry = berth_job_table_find(table, job);
    if (!entry || !berth_job_table_find_task(table, job, task))
        return;
    guint32 place = place_of(entry, task);
    task_free(entry->tasks[place]);
    memmove(&entry->tasks[place], &entry->tasks[place + 1],
            (entry->n_tasks - place - 1) * sizeof entry->tasks[0]);
    entry->n_tasks--;
    if (!berth_job_entry_is_over(entry))
        return;
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
