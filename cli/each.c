/* SPDX-License-Identifier: Apache-2.0 */
/* Owns how a file of lines becomes the tasks of an array. */
#include "cli/each.h"

#include "common/error.h"
#include "common/task_lines.h"

#include <sys/stat.h>

static gboolean refuse(const char *path, const char *why, GError **error)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "\"%s\" is %s", path, why);
    return FALSE;
}

/* What cannot be looked at is read, which says why. */
static gboolean check_file(const char *path, guint64 max_bytes, GError **error)
{
    struct stat status;
    if (stat(path, &status) != 0)
        return TRUE;
    if (!S_ISREG(status.st_mode))
        return refuse(path, "not a regular file", error);
    if (max_bytes != 0 && (guint64)status.st_size > max_bytes)
        return refuse(path, "larger than the cluster takes (input_file_max)", error);
    return TRUE;
}

static GBytes *read_lines(const char *path, guint64 max_bytes, guint32 *out_count, GError **error)
{
    g_autofree char *text = NULL;
    gsize length = 0;
    g_autoptr(GError) local = NULL;
    if (!check_file(path, max_bytes, error))
        return NULL;
    if (!g_file_get_contents(path, &text, &length, &local)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "%s", local->message);
        return NULL;
    }
    GBytes *packed =
        berth_task_lines_pack(text, length, BERTH_CLI_ARRAY_TASKS_MAX, out_count, error);
    if (packed == NULL)
        g_prefix_error(error, "\"%s\": ", path);
    return packed;
}

static gboolean check_array(const BerthJobOptions *options, guint32 count, GError **error)
{
    guint32 beyond = 0;
    if (options->array == NULL || !berth_index_set_next(options->array, count, &beyond))
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "\"%s\" has %u line%s, and so tasks from 0 to %u, and --array names task %u",
                options->each, count, count == 1 ? "" : "s", count - 1, beyond);
    return FALSE;
}

static void set_lines(Berth__JobSpec *spec, Berth__BlobRef *blob, guint32 count)
{
    spec->each = g_new(Berth__TaskLines, 1);
    berth__task_lines__init(spec->each);
    spec->each->blob = blob;
    spec->each->count = count;
}

static void set_array(Berth__JobSpec *spec, guint32 count)
{
    Berth__IndexRange *all = g_new(Berth__IndexRange, 1);
    berth__index_range__init(all);
    all->last = count - 1;
    spec->array = g_new(Berth__JobArray, 1);
    berth__job_array__init(spec->array);
    spec->array->tasks = g_new(Berth__IndexRange *, 1);
    spec->array->tasks[spec->array->n_tasks++] = all;
}

gboolean berth_each_add(BerthPayload *payload, const BerthJobOptions *options, guint64 max_bytes,
                        Berth__JobSpec *spec, GError **error)
{
    guint32 count = 0;
    if (options->each == NULL)
        return TRUE;
    g_autoptr(GBytes) packed = read_lines(options->each, max_bytes, &count, error);
    if (packed == NULL || !check_array(options, count, error)) {
        g_prefix_error(error, "--each: ");
        return FALSE;
    }
    set_lines(spec, berth_payload_add_bytes(payload, packed), count);
    if (spec->array == NULL)
        set_array(spec, count);
    return TRUE;
}
