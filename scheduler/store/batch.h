/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/store/db.h"
#include "scheduler/store/store.h"

/* Digests of all that SPEC names, one after the other. (transfer full) */
GBytes *store_digests_of(const Berth__JobSpec *spec);
/* Writes BATCH within the transaction that is open on DB. */
gboolean store_batch_apply(const BerthStoreBatch *batch, StoreDb *db, GError **error);
