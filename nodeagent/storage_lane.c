/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the agent's BerthStorage: when it is opened, and on which threads it is used. What is done
 * with it is its callers'.
 *
 * A node that was fenced comes back with a handle that Ceph refuses for a day. It is given up, and a
 * new one is opened when the caller says that the scheduler knows us again. A handle that is worn
 * serves until a spare one is open and the scheduler knows of that: a fence must not miss the client
 * that makes a disk. Invariant: an operation has the handle of the moment at which it was asked for,
 * so that what was under way when the node was cut off fails, and does not take effect later. */
#include <config.h>

#include "nodeagent/storage_lane.h"

#include "common/backoff.h"
#include "common/error.h"

#define CONTROL_WORKERS 4u
#define DATA_WORKERS    6u
#define REMOVAL_WORKERS 4u
/* Each has a libvirt worker beside it, of which there are few, and 32 MiB on their way. */
#define MEMORY_WORKERS 2u
#define QUEUE_MAX      8192u
/* A new handle is another client, which the scheduler must hear of; while storage is slow, each is
 * worn soon. */
#define REPLACE_EVERY_USEC ((gint64)60 * G_USEC_PER_SEC)

struct BerthStorageLane {
    const BerthStorageConfig *config;
    BerthWorkPool *pools[BERTH_N_LANES];
    BerthStorage *handle; /* NULL: not open; the last operation that uses it closes it */
    gboolean is_fenced;   /* it was cut off, and waits for berth_storage_lane_reopen() */
    char *own_address;    /* of the handle */
    BerthStorage *spare;  /* will replace it once the scheduler knows of it; or NULL */
    char *spare_address;
    char *client_address; /* what is told: whatever a fence must cut off */
    gboolean names_clients;
    GCancellable *stopping;
    BerthBackoff backoff;
    gboolean is_opening;  /* also while that waits to be tried again, for its time, or as a spare */
    gint64 replaced_usec; /* when a worn handle was replaced; 0: never */
    guint retry_source;
    char *error; /* why it is not open; NULL: it is */
    BerthStorageChangedFunc changed_func;
    gpointer changed_data;
};

/* One operation, for a worker. */
typedef struct {
    BerthStorage *handle; /* a reference; NULL: storage is not open */
    BerthStorageFunc func;
    gpointer input;
    GDestroyNotify input_free;
    char *what;
} Operation;

/* The same operation, for the loop. */
typedef struct {
    BerthStorageLane *lane;
    GCancellable *stopping;     /* triggered: the lane is gone */
    const BerthStorage *handle; /* only compared: it may be gone */
    GAsyncReadyCallback callback;
    gpointer user_data;
} Pending;

typedef struct {
    BerthStorage *storage;
    char *client_address;
} Opened;

static void opened_free(gpointer data)
{
    Opened *opened = data;
    berth_storage_free(opened->storage);
    g_free(opened->client_address);
    g_free(opened);
}

static gpointer open_storage(gconstpointer input, GCancellable *cancellable, GError **error)
{
    g_autoptr(BerthStorage) storage = berth_storage_open(input, error);
    if (storage == NULL)
        return NULL;
    Opened *opened = g_new0(Opened, 1);
    opened->client_address = berth_storage_client_address(storage);
    opened->storage = g_steal_pointer(&storage);
    return opened;
}

static void start_open(BerthStorageLane *lane);

static void on_retry_due(gpointer data)
{
    BerthStorageLane *lane = data;
    lane->retry_source = 0;
    start_open(lane);
}

static void set_error(BerthStorageLane *lane, const char *text)
{
    g_free(lane->error);
    lane->error = g_strdup(text);
    if (lane->changed_func != NULL)
        lane->changed_func(lane->changed_data);
}

static gpointer close_handle(gconstpointer input, GCancellable *cancellable, GError **error)
{
    return NULL; /* the work is done when the input is freed */
}

static void free_handle(gpointer handle)
{
    berth_storage_free(handle);
}

/* On a worker, as that may take its time. */
static void release_handle(BerthStorageLane *lane, BerthStorage *handle)
{
    if (handle != NULL)
        berth_work_pool_run(lane->pools[BERTH_LANE_CONTROL], "close storage", close_handle, handle,
                            free_handle, NULL, 0, NULL, NULL, NULL);
}

static void on_open_failed(BerthStorageLane *lane, const GError *error)
{
    if (lane->handle == NULL && g_strcmp0(lane->error, error->message) != 0) {
        g_warning("storage cannot be used, no guest can be started: %s", error->message);
        set_error(lane, error->message);
    }
    guint wait = berth_backoff_next_msec(&lane->backoff, g_random_double());
    lane->retry_source = g_timeout_add_once(wait, on_retry_due, lane);
}

static void take_handle(BerthStorageLane *lane, BerthStorage *handle, char *address)
{
    lane->is_opening = FALSE;
    lane->handle = handle;
    g_free(lane->own_address);
    lane->own_address = address;
}

static void use_opened(BerthStorageLane *lane, Opened *opened)
{
    lane->names_clients |= *opened->client_address != '\0';
    berth_backoff_reset(&lane->backoff);
    g_free(lane->client_address);
    if (lane->handle == NULL) {
        g_message("storage can be used");
        lane->client_address = g_strdup(opened->client_address);
        take_handle(lane, g_steal_pointer(&opened->storage),
                    g_steal_pointer(&opened->client_address));
    } else {
        lane->client_address = g_strjoin(" ", opened->client_address, lane->own_address, NULL);
        lane->spare = g_steal_pointer(&opened->storage);
        lane->spare_address = g_steal_pointer(&opened->client_address);
    }
    set_error(lane, NULL);
}

static void on_open_done(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autoptr(GError) error = NULL;
    Opened *opened = berth_work_finish(result, &error);
    if (g_error_matches(error, BERTH_ERROR, BERTH_ERROR_CANCELLED))
        return; /* the lane is gone */
    BerthStorageLane *lane = data;
    if (opened == NULL && !lane->is_fenced) {
        on_open_failed(lane, error);
        return;
    }
    /* The node was cut off while a worn handle was being replaced: see berth_storage_lane_reopen(). */
    if (lane->is_fenced)
        lane->is_opening = FALSE;
    if (opened == NULL)
        return;
    if (lane->is_fenced)
        release_handle(lane, g_steal_pointer(&opened->storage));
    else
        use_opened(lane, opened);
    opened_free(opened);
}

static void start_open(BerthStorageLane *lane)
{
    lane->is_opening = TRUE;
    berth_work_pool_run(lane->pools[BERTH_LANE_CONTROL], "open storage", open_storage,
                        (gpointer)lane->config, NULL, opened_free, 0, lane->stopping, on_open_done,
                        lane);
}

BerthStorageLane *berth_storage_lane_new(const BerthStorageConfig *config)
{
    BerthStorageLane *lane = g_new0(BerthStorageLane, 1);
    lane->config = config;
    lane->pools[BERTH_LANE_CONTROL] =
        berth_work_pool_new("storage (control)", CONTROL_WORKERS, QUEUE_MAX);
    lane->pools[BERTH_LANE_DATA] = berth_work_pool_new("storage (data)", DATA_WORKERS, QUEUE_MAX);
    lane->pools[BERTH_LANE_REMOVAL] =
        berth_work_pool_new("storage (removal)", REMOVAL_WORKERS, QUEUE_MAX);
    lane->pools[BERTH_LANE_MEMORY] =
        berth_work_pool_new("storage (memory)", MEMORY_WORKERS, QUEUE_MAX);
    lane->client_address = g_strdup("");
    lane->error = g_strdup("it is being opened");
    lane->stopping = g_cancellable_new();
    lane->backoff = (BerthBackoff){.min_msec = 1000, .max_msec = 15000};
    start_open(lane);
    return lane;
}

void berth_storage_lane_free(BerthStorageLane *lane)
{
    if (lane == NULL)
        return;
    g_cancellable_cancel(lane->stopping);
    g_clear_handle_id(&lane->retry_source, g_source_remove);
    for (gsize i = 0; i < G_N_ELEMENTS(lane->pools); i++)
        berth_work_pool_free(lane->pools[i]);
    berth_storage_free(lane->handle);
    berth_storage_free(lane->spare);
    g_object_unref(lane->stopping);
    g_free(lane->own_address);
    g_free(lane->spare_address);
    g_free(lane->client_address);
    g_free(lane->error);
    g_free(lane);
}

void berth_storage_lane_set_changed_func(BerthStorageLane *lane, BerthStorageChangedFunc func,
                                         gpointer user_data)
{
    lane->changed_func = func;
    lane->changed_data = user_data;
}

const char *berth_storage_lane_error(const BerthStorageLane *lane)
{
    return lane->error;
}

const char *berth_storage_lane_client_address(const BerthStorageLane *lane)
{
    return lane->client_address;
}

gboolean berth_storage_lane_names_clients(const BerthStorageLane *lane)
{
    return lane->names_clients;
}

static void operation_free(gpointer data)
{
    Operation *operation = data;
    if (operation->input_free != NULL)
        operation->input_free(operation->input);
    berth_storage_free(operation->handle);
    g_free(operation->what);
    g_free(operation);
}

static gpointer run_operation(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const Operation *operation = input;
    if (operation->handle != NULL)
        return operation->func(operation->handle, operation->input, error);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                "cannot %s: this node does not reach storage", operation->what);
    return NULL;
}

/* --- being cut off ---------------------------------------------------------------------------- */

static void give_up_handle(BerthStorageLane *lane)
{
    g_warning("storage has cut this node off: no guest can be started until the scheduler has "
              "answered again");
    release_handle(lane, g_steal_pointer(&lane->handle));
    /* What is being opened now, on_open_done() gives up. */
    if (lane->retry_source != 0 || lane->spare != NULL)
        lane->is_opening = FALSE;
    g_clear_handle_id(&lane->retry_source, g_source_remove);
    release_handle(lane, g_steal_pointer(&lane->spare));
    g_clear_pointer(&lane->spare_address, g_free);
    g_free(lane->client_address);
    lane->client_address = g_strdup("");
    lane->is_fenced = TRUE;
    set_error(lane, "storage has cut this node off, and it has not joined again yet");
}

gboolean berth_storage_lane_is_fenced(const BerthStorageLane *lane)
{
    return lane->is_fenced;
}

void berth_storage_lane_reopen(BerthStorageLane *lane)
{
    if (!lane->is_fenced)
        return;
    lane->is_fenced = FALSE;
    if (!lane->is_opening)
        start_open(lane);
}

/* --- being worn ------------------------------------------------------------------------------- */

static void replace_handle(BerthStorageLane *lane)
{
    if (lane->is_opening)
        return;
    gint64 due = lane->replaced_usec + REPLACE_EVERY_USEC;
    gint64 now = g_get_monotonic_time();
    if (lane->replaced_usec == 0 || due <= now) {
        start_open(lane);
        return;
    }
    lane->is_opening = TRUE;
    lane->retry_source = g_timeout_add_once((guint)((due - now) / 1000), on_retry_due, lane);
}

void berth_storage_lane_set_known(BerthStorageLane *lane)
{
    if (lane->spare == NULL)
        return;
    g_message("storage was opened anew, as an operation that ran out of time may have left a disk "
              "open");
    lane->replaced_usec = g_get_monotonic_time();
    release_handle(lane, lane->handle);
    take_handle(lane, g_steal_pointer(&lane->spare), g_steal_pointer(&lane->spare_address));
}

/* --- use ---------------------------------------------------------------------------------------- */

static void look_at_handle(BerthStorageLane *lane)
{
    if (berth_storage_is_fenced(lane->handle))
        give_up_handle(lane);
    else if (berth_storage_is_worn(lane->handle))
        replace_handle(lane);
}

static void on_operation_done(GObject *source, GAsyncResult *result, gpointer data)
{
    g_autofree Pending *pending = data;
    BerthStorageLane *lane = g_cancellable_is_cancelled(pending->stopping) ? NULL : pending->lane;
    if (lane != NULL && lane->handle != NULL && lane->handle == pending->handle)
        look_at_handle(lane);
    g_object_unref(pending->stopping);
    if (pending->callback != NULL)
        pending->callback(source, result, pending->user_data);
}

void berth_storage_lane_run(BerthStorageLane *lane, BerthLaneKind kind, const char *what,
                            BerthStorageFunc func, gpointer input, GDestroyNotify input_free,
                            GDestroyNotify result_free, GCancellable *cancellable,
                            GAsyncReadyCallback callback, gpointer user_data)
{
    Operation *operation = g_new0(Operation, 1);
    BerthStorage *handle = lane->handle != NULL ? berth_storage_ref(lane->handle) : NULL;
    *operation = (Operation){handle, func, input, input_free, g_strdup(what)};
    Pending *pending = g_new0(Pending, 1);
    *pending = (Pending){lane, g_object_ref(lane->stopping), lane->handle, callback, user_data};
    berth_work_pool_run(lane->pools[kind], what, run_operation, operation, operation_free,
                        result_free, 0, cancellable, on_operation_done, pending);
}
