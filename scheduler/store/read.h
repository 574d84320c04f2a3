/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/store/store.h"
#include "scheduler/store/writer.h"

/* Runs FUNC, from any thread, on a connection that nobody else uses meanwhile, within one read
 * transaction: all that it sees is of one instant. */
gboolean store_read(BerthStore *store, StoreReadFunc func, gpointer data, GError **error);
