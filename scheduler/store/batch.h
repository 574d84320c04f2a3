/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/store/db.h"
#include "scheduler/store/store.h"

/* Writes BATCH within the transaction that is open on DB. */
gboolean store_batch_apply(const BerthStoreBatch *batch, StoreDb *db, GError **error);
