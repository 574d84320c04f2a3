/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's way to storage: opened in the background, again and again until it works, and used
 * on worker threads only. An agent joins without it: guests that run are looked after, their
 * output waits in them; new ones are refused as UNAVAILABLE. */

#include "common/work.h"
#include "storage/storage.h"

typedef struct BerthStorageLane BerthStorageLane;

/* Starts to open it. CONFIG outlives the lane. */
BerthStorageLane *berth_storage_lane_new(const BerthStorageConfig *config);
/* Waits for what runs, up to the storage's own deadline. */
void berth_storage_lane_free(BerthStorageLane *lane);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthStorageLane, berth_storage_lane_free)

/* Called when storage was opened (also anew, as what was open is worn: see berth_storage_is_worn();
 * there is one more address to be known then), was lost to a fence, or cannot be opened for another
 * reason than before. */
typedef void (*BerthStorageChangedFunc)(gpointer user_data);
void berth_storage_lane_set_changed_func(BerthStorageLane *lane, BerthStorageChangedFunc func,
                                         gpointer user_data);
/* Why storage is not open; NULL: it is. */
const char *berth_storage_lane_error(const BerthStorageLane *lane);
/* Was this node cut off? It stays so, and nothing can be done, until reopen(): to be called once the
 * scheduler has answered a Join that was sent after that, as what is left of the guests that were
 * fenced is being released from then on. */
gboolean berth_storage_lane_is_fenced(const BerthStorageLane *lane);
void berth_storage_lane_reopen(BerthStorageLane *lane);
/* Addresses, separated by spaces, of this process as clients of storage: what has to be fenced lest it
 * make or use a disk. "" where there is none or it is not open yet. */
const char *berth_storage_lane_client_address(const BerthStorageLane *lane);
/* Storage tells its clients by addresses: once it has told one, it always will. */
gboolean berth_storage_lane_names_clients(const BerthStorageLane *lane);
/* The scheduler knows, durably, what client_address() says now. What was opened because the other was
 * worn is used from then on, as a fence would include it. */
void berth_storage_lane_set_known(BerthStorageLane *lane);

/* New disks and questions, bytes of logs and blobs, or removals, which take minutes for a large disk
 * of rbd: none waits behind another. */
typedef enum {
    BERTH_LANE_CONTROL,
    BERTH_LANE_DATA,
    BERTH_LANE_REMOVAL,
    BERTH_LANE_MEMORY, /* of guests: as long as their hypervisor takes */
} BerthLaneKind;
#define BERTH_N_LANES 4

/* FUNC on a worker, with INPUT that nobody else touches; the result comes by berth_work_finish().
 * UNAVAILABLE while storage was never opened. There is no deadline beside storage's own: an
 * operation whose outcome is unknown would have to be waited for anyway. */
typedef gpointer (*BerthStorageFunc)(BerthStorage *storage, gconstpointer input, GError **error);
void berth_storage_lane_run(BerthStorageLane *lane, BerthLaneKind kind, const char *what,
                            BerthStorageFunc func, gpointer input, GDestroyNotify input_free,
                            GDestroyNotify result_free, GCancellable *cancellable,
                            GAsyncReadyCallback callback, gpointer user_data);
