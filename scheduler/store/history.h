/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "scheduler/store/db.h"
#include "scheduler/store/store.h"

/* Within the transaction that is open on DB: see berth_store_batch_remove_old(), _remove_events() and _remove_blob(). */
gboolean store_history_remove(StoreDb *db, const BerthStoreOldJob *old, GError **error);
gboolean store_history_remove_events(StoreDb *db, guint64 up_to_seq, GError **error);
gboolean store_history_remove_blob(StoreDb *db, GBytes *sha256, GError **error);
