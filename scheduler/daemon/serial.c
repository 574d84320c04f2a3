/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the order of operations on one object of storage, and the object itself.
 *
 * Invariant: the object is touched by one worker at a time, and by none once it was freed. */
#include "config.h"

#include "scheduler/daemon/serial.h"

#include "common/error.h"

typedef struct {
    BerthSerial *serial;
    char *what;
    BerthSerialFunc func;
    gconstpointer input;
    BerthSerialDone done;
    gpointer user_data;
} Operation;

struct BerthSerial {
    BerthStorageLink *link;
    guint32 uid;
    GDestroyNotify object_free;
    gpointer object;
    GQueue waiting; /* Operation */
    gboolean is_running;
    gboolean is_closing;
    GError *failure;
    BerthSerialClosed closed;
    gpointer closed_data;
};

BerthSerial *berth_serial_new(BerthStorageLink *link, guint32 uid, GDestroyNotify object_free)
{
    BerthSerial *serial = g_new0(BerthSerial, 1);
    serial->link = link;
    serial->uid = uid;
    serial->object_free = object_free;
    g_queue_init(&serial->waiting);
    return serial;
}

guint berth_serial_queued(BerthSerial *serial)
{
    return g_queue_get_length(&serial->waiting) + (serial->is_running ? 1 : 0);
}

static void end_operation(Operation *operation, const GError *error)
{
    operation->done(error, operation->user_data);
    g_free(operation->what);
    g_free(operation);
}

static void go_on(BerthSerial *serial);

/* --- one operation ------------------------------------------------------------------------------ */

static gpointer run_operation(BerthStorage *storage, gconstpointer input, GError **error)
{
    const Operation *operation = input;
    BerthSerial *serial = operation->serial;
    if (serial->failure)
        g_propagate_error(error, g_error_copy(serial->failure));
    else
        operation->func(storage, &serial->object, operation->input, error);
    return NULL;
}

static void on_operation(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Operation *operation = user_data;
    BerthSerial *serial = operation->serial;
    g_autoptr(GError) error = NULL;
    berth_work_finish(result, &error);
    if (error && !serial->failure)
        serial->failure = g_error_copy(error);
    if (serial->is_closing) {
        g_autoptr(GError) cancelled =
            g_error_new(BERTH_ERROR, BERTH_ERROR_CANCELLED, "%s: it was given up", operation->what);
        end_operation(operation, cancelled);
    } else {
        end_operation(operation, error);
    }
    serial->is_running = FALSE;
    go_on(serial);
}

/* --- the end ------------------------------------------------------------------------------------ */

static gpointer free_object(gconstpointer input, GCancellable *cancellable, GError **error)
{
    const BerthSerial *serial = input;
    serial->object_free(serial->object);
    return NULL;
}

static void serial_free(BerthSerial *serial)
{
    if (serial->closed)
        serial->closed(serial->closed_data);
    g_clear_error(&serial->failure);
    g_free(serial);
}

static void on_object_freed(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    berth_work_finish(result, &error);
    if (error)
        g_warning("cannot give up what was being written to storage: %s", error->message);
    serial_free(user_data);
}

static void end_serial(BerthSerial *serial)
{
    if (!serial->object) {
        serial_free(serial);
        return;
    }
    berth_workers_run(berth_storage_link_workers(serial->link), BERTH_LANE_STORAGE_CLEAN,
                      "give up a write", free_object, serial, NULL, NULL, 0, on_object_freed,
                      serial);
}

static void go_on(BerthSerial *serial)
{
    if (serial->is_running)
        return;
    if (serial->is_closing) {
        end_serial(serial);
        return;
    }
    Operation *operation = g_queue_pop_head(&serial->waiting);
    if (!operation)
        return;
    serial->is_running = TRUE;
    berth_storage_link_run_for(serial->link, BERTH_LANE_STORAGE_DATA, serial->uid, operation->what,
                               run_operation, operation, NULL, NULL, on_operation, operation);
}

void berth_serial_run(BerthSerial *serial, const char *what, BerthSerialFunc func,
                      gconstpointer input, BerthSerialDone done, gpointer user_data)
{
    Operation *operation = g_new0(Operation, 1);
    *operation = (Operation){serial, g_strdup(what), func, input, done, user_data};
    g_queue_push_tail(&serial->waiting, operation);
    go_on(serial);
}

void berth_serial_close(BerthSerial *serial, BerthSerialClosed closed, gpointer user_data)
{
    serial->is_closing = TRUE;
    serial->closed = closed;
    serial->closed_data = user_data;
    gboolean was_running = serial->is_running;
    serial->is_running = TRUE; /* until all who wait have been told */
    Operation *operation;
    g_autoptr(GError) error =
        g_error_new_literal(BERTH_ERROR, BERTH_ERROR_CANCELLED, "the write was given up");
    while ((operation = g_queue_pop_head(&serial->waiting)))
        end_operation(operation, error);
    serial->is_running = was_running;
    go_on(serial);
}
