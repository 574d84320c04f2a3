/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/store/db.h"
#include "scheduler/store/store.h"

/* The store's own thread, the only one that writes. */
typedef struct StoreWriter StoreWriter;

/* Takes DB (transfer full) into a new thread. */
StoreWriter *store_writer_new(StoreDb *db);
/* Ends the thread after all that was asked of it before. */
void store_writer_free(StoreWriter *writer);

/* BATCH and TASK are (transfer full); TASK gets a boolean once BATCH is durable. */
void store_writer_commit(StoreWriter *writer, BerthStoreBatch *batch, GTask *task);

/* Runs FUNC on the writer's connection, after the commits asked for before, and waits for it. For
 * databases that allow one connection only, and for what only the writer's may do. */
typedef gboolean (*StoreReadFunc)(StoreDb *db, gpointer data, GError **error);
gboolean store_writer_read(StoreWriter *writer, StoreReadFunc func, gpointer data, GError **error);
