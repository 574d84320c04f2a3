/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the mark in storage: what it says, and who may write it. Does not know what the numbers in it
 * are for (job_numbers.h).
 *
 * Invariants: the mark of another state is replaced by a takeover alone. Who writes has looked at what it
 * replaces, which storage compares in the same step: of two that want to write at the same moment one
 * fails. No number in the mark of a state ever becomes smaller.
 *
 * A state has had a mark if it has claimed storage in this process, or if its database has a reservation:
 * none is made before storage was claimed, for which the mark is durable. Killed before the first
 * reservation, a state has a mark without one, and finds its own. So where such a state finds no mark,
 * this is not its storage (a directory that is not mounted, another pool), or the mark was lost. */
#include "config.h"

#include "scheduler/daemon/storage_owner.h"

#include "common/error.h"
#include "common/message.h"
#include "proto/berth.pb-c.h"

#include <string.h>

struct BerthStorageOwner {
    char *state_id;
    char *cluster;
    BerthOwnerMark start;
    BerthOwnerMark found;
    gboolean had_mark;
    gboolean may_take_over;
};

BerthStorageOwner *berth_storage_owner_new(const char *state_id, const char *cluster,
                                           const BerthOwnerMark *start, gboolean may_take_over)
{
    BerthStorageOwner *owner = g_new0(BerthStorageOwner, 1);
    owner->state_id = g_strdup(state_id);
    owner->cluster = g_strdup(cluster);
    owner->start = *start;
    owner->had_mark = start->jobs_reserved > 0;
    owner->may_take_over = may_take_over;
    return owner;
}

void berth_storage_owner_free(BerthStorageOwner *owner)
{
    g_free(owner->state_id);
    g_free(owner->cluster);
    g_free(owner);
}

const BerthOwnerMark *berth_storage_owner_found(const BerthStorageOwner *owner)
{
    return &owner->found;
}

/* --- the record --------------------------------------------------------------------------------- */

static GBytes *pack(const BerthStorageOwner *owner, const BerthOwnerMark *mark)
{
    Berth__StorageMark record = BERTH__STORAGE_MARK__INIT;
    record.state_id = owner->state_id;
    record.cluster = owner->cluster;
    record.jobs_reserved = mark->jobs_reserved;
    record.next_job = mark->next_job;
    return berth_message_pack(&record.base);
}

static void mark_free(Berth__StorageMark *record)
{
    berth__storage_mark__free_unpacked(record, NULL);
}

/* NULL without ERROR: there is none. OUT_CONTENT, which may be NULL: as it is in storage (transfer full). */
static Berth__StorageMark *read_mark(BerthStorage *storage, GBytes **out_content, GError **error)
{
    g_autoptr(GError) failed = NULL;
    g_autoptr(GBytes) content = berth_storage_mark_read(storage, &failed);
    if (!content) {
        if (!g_error_matches(failed, BERTH_ERROR, BERTH_ERROR_NOT_FOUND))
            g_propagate_error(error, g_steal_pointer(&failed));
        return NULL;
    }
    gsize length = 0;
    const guint8 *data = g_bytes_get_data(content, &length);
    Berth__StorageMark *record = (Berth__StorageMark *)berth_message_unpack(
        &berth__storage_mark__descriptor, data, length, NULL);
    if (!record || !*record->state_id) {
        g_clear_pointer(&record, mark_free);
        g_set_error_literal(
            error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS,
            "the mark in storage, which says whose it is, is damaged: if it is this "
            "berthd's for sure, remove the mark (\"mark\" in the directory, or the "
            "object \"mark\" in the pool's namespace \"berth\")");
    } else if (out_content) {
        *out_content = g_steal_pointer(&content);
    }
    return record;
}

static gboolean replace_mark(const BerthStorageOwner *owner, BerthStorage *storage, GBytes *present,
                             const BerthOwnerMark *mark, GError **error)
{
    g_autoptr(GError) failed = NULL;
    g_autoptr(GBytes) content = pack(owner, mark);
    if (berth_storage_mark_replace(storage, present, content, &failed))
        return TRUE;
    /* Whose it is then, the next look at it tells. */
    if (g_error_matches(failed, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION))
        failed->code = BERTH_ERROR_UNAVAILABLE;
    g_propagate_error(error, g_steal_pointer(&failed));
    return FALSE;
}

static gboolean check_own(const BerthStorageOwner *owner, const Berth__StorageMark *record,
                          GError **error)
{
    if (strcmp(record->state_id, owner->state_id) == 0)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                "this storage belongs to state %s of cluster \"%s\", and not to this one, %s of "
                "cluster \"%s\": give each its own pool or directory; if the state it belonged to "
                "is lost for good and this one is to take the storage over, start berthd once with "
                "--take-over-storage",
                record->state_id, record->cluster, owner->state_id, owner->cluster);
    return FALSE;
}

static void refuse_unmarked(const BerthStorageOwner *owner, GError **error)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                "this storage has no mark that says whose it is, and that of state %s of cluster "
                "\"%s\" has one: see that the directory is mounted, or that the pool is the right "
                "one; if the mark is lost for good, start berthd once with --take-over-storage",
                owner->state_id, owner->cluster);
}

/* --- claiming ----------------------------------------------------------------------------------- */

static gboolean create(BerthStorageOwner *owner, BerthStorage *storage, const BerthOwnerMark *mark,
                       GError **error)
{
    g_autoptr(GBytes) content = pack(owner, mark);
    if (!berth_storage_mark_create(storage, content, error))
        return FALSE;
    owner->found = *mark;
    return TRUE;
}

/* As after a takeover: the lost mark may have known of any number below the bound. */
static gboolean create_again(BerthStorageOwner *owner, BerthStorage *storage, GError **error)
{
    guint64 bound = MAX(owner->start.jobs_reserved, owner->start.next_job);
    BerthOwnerMark mark = {.jobs_reserved = bound, .next_job = bound};
    if (!create(owner, storage, &mark, error))
        return FALSE;
    g_warning(
        "made a new mark in storage that had none: what is in it and not known here is removed");
    return TRUE;
}

static gboolean claim_unmarked(BerthStorageOwner *owner, BerthStorage *storage, GError **error)
{
    if (!owner->had_mark)
        return create(owner, storage, &owner->start, error);
    if (owner->may_take_over)
        return create_again(owner, storage, error);
    refuse_unmarked(owner, error);
    return FALSE;
}

/* The former owner's newest numbers are not known but for their bound. Written with it as the next
 * one, the mark tells so after a crash, too, until this state's own reservation is in it. */
static gboolean take_over(BerthStorageOwner *owner, BerthStorage *storage, GBytes *present,
                          const Berth__StorageMark *former, GError **error)
{
    guint64 bound = MAX(former->jobs_reserved, former->next_job);
    BerthOwnerMark mark = {.jobs_reserved = bound, .next_job = bound};
    if (!replace_mark(owner, storage, present, &mark, error))
        return FALSE;
    g_warning("took the storage over that belonged to state %s of cluster \"%s\": what is in it "
              "and not known here is removed",
              former->state_id, former->cluster);
    owner->found = mark;
    return TRUE;
}

gboolean berth_storage_owner_claim(BerthStorageOwner *owner, BerthStorage *storage, GError **error)
{
    g_autoptr(GError) failed = NULL;
    g_autoptr(GBytes) present = NULL;
    Berth__StorageMark *record = read_mark(storage, &present, &failed);
    gboolean is_claimed = FALSE;
    if (failed) {
        g_propagate_error(error, g_steal_pointer(&failed));
    } else if (!record) {
        is_claimed = claim_unmarked(owner, storage, error);
    } else if (check_own(owner, record, &failed)) {
        owner->found = (BerthOwnerMark){record->jobs_reserved, record->next_job};
        is_claimed = TRUE;
    } else if (owner->may_take_over) {
        is_claimed = take_over(owner, storage, present, record, error);
    } else {
        g_propagate_error(error, g_steal_pointer(&failed));
    }
    if (is_claimed) {
        owner->had_mark = TRUE;
        owner->may_take_over = FALSE;
    }
    g_clear_pointer(&record, mark_free);
    return is_claimed;
}

/* --- afterwards --------------------------------------------------------------------------------- */

/* NULL: it is not ours any more, or that is not known. OUT_CONTENT as in read_mark(). */
static Berth__StorageMark *read_own(const BerthStorageOwner *owner, BerthStorage *storage,
                                    GBytes **out_content, GError **error)
{
    g_autoptr(GError) failed = NULL;
    Berth__StorageMark *record = read_mark(storage, out_content, &failed);
    if (failed)
        g_propagate_error(error, g_steal_pointer(&failed));
    else if (!record)
        refuse_unmarked(owner, error);
    else if (!check_own(owner, record, error))
        g_clear_pointer(&record, mark_free);
    return record;
}

gboolean berth_storage_owner_check(const BerthStorageOwner *owner, BerthStorage *storage,
                                   GError **error)
{
    Berth__StorageMark *record = read_own(owner, storage, NULL, error);
    if (!record)
        return FALSE;
    mark_free(record);
    return TRUE;
}

gboolean berth_storage_owner_write(const BerthStorageOwner *owner, BerthStorage *storage,
                                   const BerthOwnerMark *mark, GError **error)
{
    g_autoptr(GBytes) present = NULL;
    Berth__StorageMark *record = read_own(owner, storage, &present, error);
    if (!record)
        return FALSE;
    BerthOwnerMark raised = {.jobs_reserved = MAX(mark->jobs_reserved, record->jobs_reserved),
                             .next_job = MAX(mark->next_job, record->next_job)};
    mark_free(record);
    return replace_mark(owner, storage, present, &raised, error);
}
