/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the memory of unfinished jobs and their counts by image and user. Decides nothing and
 * writes nothing.
 *
 * Of a plain job that has never started nothing is known but its records: it rests, as their bytes, until somebody looks for
 * it, and again from the loop's next turn on. A million that wait take a tenth of what their messages would.
 *
 * Invariants: a job is counted exactly while it is in the table and was not reported finished; every entry that may rest is
 * noted as awake. */
#include "config.h"

#include "scheduler/daemon/job_table.h"

#include "common/ranges.h"

#include <string.h>

struct BerthJobTable {
    GArray *awake;        /* guint64: of those that may rest */
    GSource *rest;        /* NULL: AWAKE is empty */
    GHashTable *jobs;     /* guint64 -> Slot */
    GHashTable *by_image; /* name -> count */
    GHashTable *by_user;  /* uid -> count */
    guint n_counted;      /* the sum of these */
};

typedef struct {
    guint64 number; /* the key */
    union {
        BerthJobEntry *entry;
        guint8 *records; /* as pack() makes it */
    };
    guint is_resting : 1;
    guint is_noted : 1; /* in AWAKE */
    guint is_counted : 1;
    guint wants_output : 1; /* of RECORDS: the entry's, and its task's */
    guint task_wants_output : 1;
} Slot;

static void task_free(BerthTaskEntry *task)
{
    berth__stored_task__free_unpacked(task->stored, NULL);
    g_free(task->detail);
    if (task->said)
        berth__usage__free_unpacked(task->said, NULL);
    g_free(task);
}

static void entry_free(BerthJobEntry *entry)
{
    for (guint32 i = 0; i < entry->n_tasks; i++)
        task_free(entry->tasks[i]);
    g_free(entry->tasks);
    g_clear_pointer(&entry->unstarted, berth_index_set_free);
    berth__job__free_unpacked(entry->job, NULL);
    g_free(entry);
}

static void slot_free(gpointer data)
{
    Slot *slot = data;
    if (slot->is_resting)
        g_free(slot->records);
    else
        entry_free(slot->entry);
    g_free(slot);
}

BerthJobTable *berth_job_table_new(void)
{
    BerthJobTable *table = g_new0(BerthJobTable, 1);
    table->jobs = g_hash_table_new_full(g_int64_hash, g_int64_equal, NULL, slot_free);
    table->by_image = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    table->by_user = g_hash_table_new(NULL, NULL);
    table->awake = g_array_new(FALSE, FALSE, sizeof(guint64));
    return table;
}

void berth_job_table_free(BerthJobTable *table)
{
    g_hash_table_unref(table->jobs);
    g_hash_table_unref(table->by_image);
    g_hash_table_unref(table->by_user);
    g_array_unref(table->awake);
    if (table->rest)
        g_source_destroy(table->rest);
    g_clear_pointer(&table->rest, g_source_unref);
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

guint berth_job_table_count_all(BerthJobTable *table, guint *out_users)
{
    *out_users = g_hash_table_size(table->by_user);
    return table->n_counted;
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

/* --- rest ------------------------------------------------------------------------------------- */

static Slot *find_slot(const BerthJobTable *table, guint64 job)
{
    return g_hash_table_lookup(table->jobs, &job);
}

/* All that there is to know is in its record. */
static gboolean has_only_record(const BerthTaskEntry *task)
{
    BerthTaskEntry bare;
    memset(&bare, 0, sizeof bare);
    bare.stored = task->stored;
    bare.starved_seen_usec = task->stored->starved_seen_usec;
    bare.wants_output = task->wants_output;
    return memcmp(task, &bare, sizeof bare) == 0;
}

static gboolean may_rest(const BerthJobEntry *entry)
{
    const Berth__Task *task = entry->n_tasks == 1 ? entry->tasks[0]->stored->task : NULL;
    return task && !entry->job->array && task->state == BERTH__JOB_STATE__PENDING &&
           task->epoch == 0 && has_only_record(entry->tasks[0]);
}

/* The size of the job's record, and both records. */
static guint8 *pack(const BerthJobEntry *entry)
{
    const Berth__StoredTask *stored = entry->tasks[0]->stored;
    guint32 sizes[] = {(guint32)berth__job__get_packed_size(entry->job),
                       (guint32)berth__stored_task__get_packed_size(stored)};
    guint8 *records = g_malloc(sizeof sizes + sizes[0] + sizes[1]);
    memcpy(records, sizes, sizeof sizes);
    berth__job__pack(entry->job, records + sizeof sizes);
    berth__stored_task__pack(stored, records + sizeof sizes + sizes[0]);
    return records;
}

static void wake(Slot *slot)
{
    guint32 sizes[2];
    g_autofree guint8 *records = slot->records;
    memcpy(sizes, records, sizeof sizes);
    const guint8 *job = records + sizeof sizes;
    BerthJobEntry *entry = g_new0(BerthJobEntry, 1);
    entry->job = berth__job__unpack(NULL, sizes[0], job);
    entry->wants_output = slot->wants_output;
    berth_job_table_add_task(entry, 0, berth__stored_task__unpack(NULL, sizes[1], job + sizes[0]))
        ->wants_output = slot->task_wants_output;
    slot->entry = entry;
    slot->is_resting = FALSE;
}

static void put_to_rest(Slot *slot)
{
    BerthJobEntry *entry = slot->entry;
    slot->wants_output = entry->wants_output != FALSE;
    slot->task_wants_output = entry->tasks[0]->wants_output != FALSE;
    slot->records = pack(entry);
    slot->is_resting = TRUE;
    entry_free(entry);
}

void berth_job_table_rest(BerthJobTable *table)
{
    for (guint i = 0; i < table->awake->len; i++) {
        Slot *slot = find_slot(table, g_array_index(table->awake, guint64, i));
        if (!slot || !slot->is_noted)
            continue;
        slot->is_noted = FALSE;
        if (may_rest(slot->entry))
            put_to_rest(slot);
    }
    g_array_set_size(table->awake, 0);
    if (table->rest)
        g_source_destroy(table->rest);
    g_clear_pointer(&table->rest, g_source_unref);
}

static gboolean on_rest(gpointer data)
{
    berth_job_table_rest(data);
    return G_SOURCE_REMOVE;
}

/* One that is added has no task yet. */
static void note_awake(BerthJobTable *table, Slot *slot)
{
    const BerthJobEntry *entry = slot->entry;
    if (slot->is_noted || entry->job->array || (entry->n_tasks > 0 && !may_rest(entry)))
        return;
    slot->is_noted = TRUE;
    g_array_append_val(table->awake, slot->number);
    if (table->rest)
        return;
    table->rest = g_idle_source_new();
    g_source_set_priority(table->rest, G_PRIORITY_DEFAULT);
    g_source_set_callback(table->rest, on_rest, table, NULL);
    g_source_attach(table->rest, g_main_context_get_thread_default());
}

/* --- jobs ------------------------------------------------------------------------------------- */

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
    table->n_counted += count - berth_job_table_count_user(table, uid);
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
        const BerthIndexRange range = berth_range_of(job->unstarted[i]);
        if (range.last >= range.first)
            berth_index_set_add(entry->unstarted, range);
    }
    berth_ranges_set(&job->unstarted, &job->n_unstarted, NULL);
}

BerthJobEntry *berth_job_table_add(BerthJobTable *table, Berth__Job *job)
{
    g_return_val_if_fail(!g_hash_table_contains(table->jobs, &job->id), NULL);
    Slot *slot = g_new0(Slot, 1);
    slot->number = job->id;
    slot->is_counted = TRUE;
    slot->entry = g_new0(BerthJobEntry, 1);
    slot->entry->job = job;
    if (job->array)
        take_unstarted(slot->entry);
    set_image_count(table, job->image, berth_job_table_count_image(table, job->image) + 1);
    set_user_count(table, job->uid, berth_job_table_count_user(table, job->uid) + 1);
    g_hash_table_insert(table->jobs, &slot->number, slot);
    note_awake(table, slot);
    return slot->entry;
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

BerthJobEntry *berth_job_table_find(BerthJobTable *table, guint64 job)
{
    Slot *slot = find_slot(table, job);
    if (!slot)
        return NULL;
    if (slot->is_resting)
        wake(slot);
    note_awake(table, slot);
    return slot->entry;
}

gboolean berth_job_table_is_resting(const BerthJobTable *table, guint64 job)
{
    const Slot *slot = find_slot(table, job);
    return slot && slot->is_resting;
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
    const Berth__Job *record = berth_job_table_find(table, job)->job;
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

GArray *berth_job_table_begun(BerthJobTable *table)
{
    GArray *numbers = g_array_new(FALSE, FALSE, sizeof(guint64));
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, table->jobs);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const Slot *slot = value;
        if (!slot->is_resting)
            g_array_append_val(numbers, slot->number);
    }
    g_array_sort(numbers, compare_numbers);
    return numbers;
}
