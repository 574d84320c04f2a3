/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/daemon/storage_link.h"

/* Operations on one object of storage that is being written (an image, a blob): on workers, one
 * after the other, in the order in which they were asked for. The first one makes the object. Once
 * one has failed, those after it fail with the same error. */

typedef struct BerthSerial BerthSerial;

/* OBJECT_FREE frees the object, on a worker. LINK outlives it. For UID (berth_workers_run_for()). */
BerthSerial *berth_serial_new(BerthStorageLink *link, guint32 uid, GDestroyNotify object_free);

/* On a worker. OBJECT is NULL until the first operation has set it. INPUT as it was given. */
typedef gboolean (*BerthSerialFunc)(BerthStorage *storage, gpointer *object, gconstpointer input,
                                    GError **error);
/* On the loop, exactly once, never from inside berth_serial_run(). */
typedef void (*BerthSerialDone)(const GError *error, gpointer user_data);
/* INPUT stays valid until DONE has been called; freeing it is the caller's. */
void berth_serial_run(BerthSerial *serial, const char *what, BerthSerialFunc func,
                      gconstpointer input, BerthSerialDone done, gpointer user_data);
guint berth_serial_queued(BerthSerial *serial);

/* Ends it (transfer full): operations that wait fail with CANCELLED now, one that runs does so when
 * it has returned; then the object is freed, and CLOSED (may be NULL) called. */
typedef void (*BerthSerialClosed)(gpointer user_data);
void berth_serial_close(BerthSerial *serial, BerthSerialClosed closed, gpointer user_data);
