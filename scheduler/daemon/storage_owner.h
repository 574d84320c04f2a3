/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "storage/storage.h"

/* Whose storage it is: one state database has a pool or directory for itself, as it removes there
 * what it does not know. Functions that take a BerthStorage block: for workers.
 *
 * FAILED_PRECONDITION from any of them: the storage belongs to another state, or it has no mark and this
 * state had one; the message says so, and what to do. */

/* What the mark says (berth_storage_mark_read()). */
typedef struct {
    guint64 jobs_reserved; /* all numbers that its state gave out are below it */
    guint64 next_job;      /* all below it were given out, durably */
} BerthOwnerMark;

typedef struct BerthStorageOwner BerthStorageOwner;

/* STATE_ID and CLUSTER are copied. START: what the database says, for storage without a mark; a
 * reservation in it means that this state had one. MAY_TAKE_OVER: if storage belongs to another state, or
 * the mark is lost, the first berth_storage_owner_claim() that succeeds makes it this one's. */
BerthStorageOwner *berth_storage_owner_new(const char *state_id, const char *cluster,
                                           const BerthOwnerMark *start, gboolean may_take_over);
void berth_storage_owner_free(BerthStorageOwner *owner);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthStorageOwner, berth_storage_owner_free)

/* Makes the mark where there is none and this state had none. One at a time. */
gboolean berth_storage_owner_claim(BerthStorageOwner *owner, BerthStorage *storage, GError **error);
/* What the newest successful claim found or made. After a takeover both members are what the
 * former owner, or the lost mark, had reserved, so that none of its numbers is given out again. Not while one runs. */
const BerthOwnerMark *berth_storage_owner_found(const BerthStorageOwner *owner);
/* Is it still ours? After a claim. From any thread. */
gboolean berth_storage_owner_check(const BerthStorageOwner *owner, BerthStorage *storage,
                                   GError **error);
/* After a claim. Raises what the mark says to MARK, if it is still ours: what is larger in it already stays, as
 * something that was written later may be. UNAVAILABLE: it was changed at the same moment; look again.
 * From any thread. */
gboolean berth_storage_owner_write(const BerthStorageOwner *owner, BerthStorage *storage,
                                   const BerthOwnerMark *mark, GError **error);
