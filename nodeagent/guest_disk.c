/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what a guest asks of storage, as functions for workers. Inputs are copies; no guest is
 * touched off the loop. */
#include <config.h>

#include "nodeagent/guest_private.h"

#include "common/error.h"
#include "common/id.h"

typedef struct {
    char *disk_id;
    char *image_id;
    guint64 size_bytes;
} DiskInput;

static void disk_input_free(gpointer data)
{
    DiskInput *input = data;
    g_free(input->disk_id);
    g_free(input->image_id);
    g_free(input);
}

/* --- making --------------------------------------------------------------------------------- */

static gpointer make_disk(BerthStorage *storage, gconstpointer data, GError **error)
{
    const DiskInput *input = data;
    g_autoptr(GError) reason = NULL;
    BerthDiskSource *source = berth_storage_disk_create(storage, input->disk_id, input->image_id,
                                                        input->size_bytes, &reason);
    if (source != NULL)
        return source;
    if (!g_error_matches(reason, BERTH_ERROR, BERTH_ERROR_ALREADY_EXISTS)) {
        g_propagate_error(error, g_steal_pointer(&reason));
        return NULL;
    }
    /* Left by a start that an agent's crash cut off. No domain has it, or this guest would have
     * been adopted; storage refuses if somebody has it open all the same. */
    if (!berth_storage_disk_remove(storage, input->disk_id, error))
        return NULL;
    return berth_storage_disk_create(storage, input->disk_id, input->image_id, input->size_bytes,
                                     error);
}

static void free_source(gpointer source)
{
    berth_disk_source_free(source);
}

void berth_guest_make_disk(BerthGuest *guest, GAsyncReadyCallback callback)
{
    DiskInput *input = g_new0(DiskInput, 1);
    *input = (DiskInput){g_strdup(guest->disk_id), g_strdup(guest->request->image_id),
                         guest->request->disk_bytes};
    berth_storage_lane_run(guest->context->lane, BERTH_LANE_CONTROL, "make a disk", make_disk,
                           input, disk_input_free, free_source, guest->cancellable, callback,
                           berth_guest_ref(guest));
}

BerthDiskSource *berth_guest_make_disk_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish(result, error);
}

/* --- removing ------------------------------------------------------------------------------- */

static gpointer remove_disk(BerthStorage *storage, gconstpointer disk_id, GError **error)
{
    berth_storage_disk_remove_with_checkpoints(storage, disk_id, error);
    return NULL;
}

void berth_guest_remove_disk(BerthGuest *guest, GAsyncReadyCallback callback)
{
    berth_storage_lane_run(guest->context->lane, BERTH_LANE_REMOVAL, "remove a disk", remove_disk,
                           g_strdup(guest->disk_id), g_free, NULL, guest->cancellable, callback,
                           berth_guest_ref(guest));
}

gboolean berth_guest_remove_disk_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish_empty(result, error);
}

/* --- asking --------------------------------------------------------------------------------- */

static gpointer find_clients(BerthStorage *storage, gconstpointer disk_id, GError **error)
{
    return berth_storage_disk_clients(storage, disk_id, error);
}

void berth_guest_find_clients(BerthGuest *guest, GAsyncReadyCallback callback)
{
    berth_storage_lane_run(guest->context->lane, BERTH_LANE_CONTROL, "find a disk's clients",
                           find_clients, g_strdup(guest->disk_id), g_free,
                           (GDestroyNotify)g_strfreev, guest->cancellable, callback,
                           berth_guest_ref(guest));
}

char **berth_guest_find_clients_finish(BerthGuest *guest, GAsyncResult *result, GError **error)
{
    g_auto(GStrv) all = berth_work_finish(result, error);
    if (all == NULL || guest->is_closed) /* its lane may be gone */
        return g_steal_pointer(&all);
    g_auto(GStrv) own =
        g_strsplit(berth_storage_lane_client_address(guest->context->lane), " ", -1);
    return berth_seen_clients_but((const char *const *)all, (const char *const *)own);
}

static gpointer check_storage(BerthStorage *storage, gconstpointer disk_id, GError **error)
{
    if (berth_storage_check(storage, error))
        g_strfreev(berth_storage_disk_clients(storage, disk_id, error));
    return NULL;
}

void berth_guest_check_storage(BerthGuest *guest, GAsyncReadyCallback callback)
{
    berth_storage_lane_run(guest->context->lane, BERTH_LANE_CONTROL, "check a disk's storage",
                           check_storage, g_strdup(guest->disk_id), g_free, NULL,
                           guest->cancellable, callback, berth_guest_ref(guest));
}

gboolean berth_guest_check_storage_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish_empty(result, error);
}

gboolean berth_guest_log_sizes(BerthStorage *storage, const char *log_id,
                               guint64 out_sizes[BERTH_N_STREAMS], GError **error)
{
    for (guint i = 0; i < BERTH_N_STREAMS; i++) {
        g_autofree char *name = berth_log_name_format(log_id, i);
        if (!berth_storage_log_size(storage, name, &out_sizes[i], error))
            return FALSE;
    }
    return TRUE;
}

static gpointer size_logs(BerthStorage *storage, gconstpointer log_id, GError **error)
{
    g_autofree guint64 *sizes = g_new0(guint64, BERTH_N_STREAMS);
    return berth_guest_log_sizes(storage, log_id, sizes, error) ? g_steal_pointer(&sizes) : NULL;
}

void berth_guest_size_logs(BerthGuest *guest, GAsyncReadyCallback callback)
{
    berth_storage_lane_run(guest->context->lane, BERTH_LANE_CONTROL, "look for a log", size_logs,
                           g_strdup(guest->log_id), g_free, g_free, guest->cancellable, callback,
                           berth_guest_ref(guest));
}

guint64 *berth_guest_size_logs_finish(GAsyncResult *result, GError **error)
{
    return berth_work_finish(result, error);
}
