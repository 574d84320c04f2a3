/* SPDX-License-Identifier: Apache-2.0 */
/* Owns that an RBD image is removed by one at a time. librbd moves an image to RBD's trash and removes it there, and goes on
 * with one that another client has in the trash for that. Of two that remove an image at the same time one takes its header
 * or its lock away from the other, which aborts its process: it asserts that it has the lock with each object that it trims
 * (librbd/operation/TrimRequest.cc in Ceph 16). An agent and berthd's collector may well be after the same disk.
 *
 * So who removes an image claims it first: in an attribute of its header, which is there for as long as there is anything to
 * trim, and goes with it. A claim holds until a time, which its client puts off while it trims; after that, for as long as the
 * client has the image open. So what a client leaves that dies is removed by others. When the header is gone, only an entry
 * in the trash is left to remove; one that came there a short time ago is left to who has put it there. Threads of one client
 * have one address: they keep out of each other's way by a set of names. Clocks of clients are to agree to within a few
 * seconds, as they do where certificates are to be valid. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "storage/rbd_internal.h"
#include "storage/storage.h"

#define CLAIM           "berth.removed-by" /* "UNTIL,ADDRESS", UNTIL in seconds since 1970 */
#define CLAIM_BYTES_MAX 1024u
#define TAKE_OVER_TRIES 3u
/* A claim holds for as long as so many operations may take. It takes more of them before librbd trims and tells of it, but only
 * in a cluster that fails would each take as long. */
#define OPERATIONS 3u

/* A removal that has told of no progress for as long as so many operations may take is left to its thread. */
#define OPERATIONS_STUCK 10u

/* Of one image, and its removal. */
typedef struct {
    BerthRbdStorage *storage;
    char *name;
    char *header; /* NULL: there is none on which it could be claimed */
    char *text;
    const GThread *owner; /* who has begun it */
    /* Of the removal's thread, who waits for it, and threads of librbd. */
    GMutex lock;
    GCond ended;
    gboolean has_ended;
    gboolean is_left; /* nobody waits any more: the thread ends the claim */
    int result;
    gint64 progress_usec;
    /* To put it off. */
    gboolean is_lost; /* it is another client's */
    gint64 due_usec;
    rados_completion_t writing; /* NEXT; NULL: nothing is */
    char *next;
} Claim;

struct BerthRbdRemovals {
    GMutex lock;
    GHashTable *claims; /* of images that a thread is removing, by name */
};

static void claim_free(gpointer data)
{
    Claim *claim = data;
    g_free(claim->name);
    g_free(claim->header);
    g_free(claim->text);
    g_free(claim->next);
    g_cond_clear(&claim->ended);
    g_mutex_clear(&claim->lock);
    g_free(claim);
}

BerthRbdRemovals *berth_rbd_removals_new(void)
{
    BerthRbdRemovals *removals = g_new0(BerthRbdRemovals, 1);
    g_mutex_init(&removals->lock);
    removals->claims = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, claim_free);
    return removals;
}

void berth_rbd_removals_free(BerthRbdRemovals *removals)
{
    if (removals == NULL)
        return;
    g_hash_table_unref(removals->claims);
    g_mutex_clear(&removals->lock);
    g_free(removals);
}

/* (transfer none) NULL: a thread is removing NAME. */
static Claim *begin(BerthRbdStorage *self, const char *name)
{
    BerthRbdRemovals *removals = self->removals;
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&removals->lock);
    if (g_hash_table_contains(removals->claims, name))
        return NULL;
    Claim *claim = g_new0(Claim, 1);
    claim->storage = self;
    claim->name = g_strdup(name);
    claim->owner = g_thread_self();
    g_mutex_init(&claim->lock);
    g_cond_init(&claim->ended);
    g_hash_table_insert(removals->claims, g_strdup(name), claim);
    return claim;
}

/* That of this thread (transfer none). NULL: it was left to the removal, which ends it, or has; the image may be claimed
 * anew since then. */
static Claim *find(BerthRbdRemovals *removals, const char *name)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&removals->lock);
    Claim *claim = g_hash_table_lookup(removals->claims, name);
    return claim != NULL && !claim->is_left && claim->owner == g_thread_self() ? claim : NULL;
}

static void end(BerthRbdRemovals *removals, const char *name)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&removals->lock);
    g_hash_table_remove(removals->claims, name);
}

/* --- claims ----------------------------------------------------------------------------------- */

/* -ECANCELED: the claim is not EXPECTED; "": there is none. */
static rados_write_op_t new_replacement(const char *expected, const char *claim)
{
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_assert_exists(op);
    rados_write_op_cmpxattr(op, CLAIM, LIBRADOS_CMPXATTR_OP_EQ, expected, strlen(expected));
    rados_write_op_setxattr(op, CLAIM, claim, strlen(claim));
    return op;
}

static int replace_claim(BerthRbdStorage *self, const char *header, const char *expected,
                         const char *claim)
{
    rados_write_op_t op = new_replacement(expected, claim);
    int result = rados_write_op_operate(op, self->images, header, NULL, 0);
    rados_release_write_op(op);
    return result;
}

/* *OUT_CLAIM (transfer full): "" for none. */
static int read_claim(BerthRbdStorage *self, const char *header, char **out_claim)
{
    char claim[CLAIM_BYTES_MAX];
    int result = rados_getxattr(self->images, header, CLAIM, claim, sizeof claim);
    if (result == -ENODATA)
        result = 0;
    if (result < 0)
        return result;
    *out_claim = g_strndup(claim, (gsize)result);
    return 0;
}

/* From now on (transfer full). */
static char *claim_text(BerthRbdStorage *self)
{
    gint64 until_sec = (gint64)time(NULL) + OPERATIONS * self->op_timeout_sec;
    return g_strdup_printf("%" G_GINT64_FORMAT ",%s", until_sec, self->addresses[0]);
}

/* Is the client at ADDRESS at it? */
static int check_watched_by(BerthRbdStorage *self, const char *header, const char *address)
{
    g_autoptr(GPtrArray) clients = g_ptr_array_new_with_free_func(g_free);
    BERTH_RBD_AUTO_IMAGE image = NULL;
    int result = rbd_open_by_id_read_only(self->images, header + strlen(BERTH_RBD_HEADER_PREFIX),
                                          &image, NULL);
    if (result >= 0)
        result = berth_rbd_watchers(self, image, clients);
    if (result < 0)
        return result;
    return g_ptr_array_find_with_equal_func(clients, address, g_str_equal, NULL) ? -EBUSY : 0;
}

static gboolean is_own(BerthRbdStorage *self, const char *claim)
{
    const char *comma = strchr(claim, ',');
    return comma != NULL && g_str_equal(comma + 1, self->addresses[0]);
}

/* -EBUSY: CLAIM holds. Our own does not, as no thread of ours is at it. */
static int check_void(BerthRbdStorage *self, const char *header, const char *claim)
{
    const char *comma = strchr(claim, ',');
    if (comma == NULL || is_own(self, claim))
        return 0;
    if (g_ascii_strtoll(claim, NULL, 10) > (gint64)time(NULL))
        return -EBUSY;
    return check_watched_by(self, header, comma + 1);
}

static int claim_header(Claim *claim)
{
    BerthRbdStorage *self = claim->storage;
    int result = -ECANCELED;
    for (guint i = 0; result == -ECANCELED && i < TAKE_OVER_TRIES; i++) {
        g_autofree char *before = NULL;
        result = read_claim(self, claim->header, &before);
        if (result >= 0)
            result = check_void(self, claim->header, before);
        if (result < 0)
            return result;
        g_free(claim->text);
        claim->text = claim_text(self);
        result = replace_claim(self, claim->header, before, claim->text);
    }
    return result == -ECANCELED ? -EBUSY : result;
}

/* There is no header on which it could be claimed, and nothing to trim: of an image that has come to the trash just now, the
 * client that has put it there is about to remove the rest. */
static int check_rest(BerthRbdStorage *self, const char *name)
{
    g_auto(BerthRbdFound) found = {NULL};
    int result = berth_rbd_find(self, name, &found);
    if (result < 0)
        return result == -ENOENT ? 0 : result;
    return time(NULL) < found.trashed + (time_t)(OPERATIONS * self->op_timeout_sec) ? -EBUSY : 0;
}

static int claim_image(Claim *claim)
{
    g_auto(BerthRbdFound) found = {NULL};
    int result = berth_rbd_find(claim->storage, claim->name, &found);
    if (result == -ENOENT)
        return 0; /* its name may be left in RBD's directory, of an import that was interrupted */
    if (result < 0)
        return result;
    claim->header = g_strconcat(BERTH_RBD_HEADER_PREFIX, found.id, NULL);
    result = claim_header(claim);
    if (result != -ENOENT)
        return result;
    g_clear_pointer(&claim->header, g_free);
    return check_rest(claim->storage, claim->name);
}

int berth_rbd_claim(BerthRbdStorage *self, const char *name)
{
    Claim *claim = begin(self, name);
    if (claim == NULL)
        return -EBUSY;
    int result = claim_image(claim);
    if (result < 0)
        end(self->removals, name);
    return result;
}

void berth_rbd_end_claim(BerthRbdStorage *self, const char *name, int result)
{
    const Claim *claim = find(self->removals, name);
    if (claim == NULL)
        return;
    /* What has timed out may still be done. */
    if (result < 0 && result != -ETIMEDOUT && claim->header != NULL)
        replace_claim(self, claim->header, claim->text, "");
    end(self->removals, name);
}

/* --- the removal ------------------------------------------------------------------------------ */

/* What is being written is written, or has failed: then TEXT stays, and is tried to be replaced again. */
static void settle(Claim *claim)
{
    int result = rados_aio_get_return_value(claim->writing);
    if (result >= 0) {
        g_free(claim->text);
        claim->text = g_steal_pointer(&claim->next);
    }
    claim->is_lost = claim->is_lost || result == -ECANCELED;
    rados_aio_release(claim->writing);
    claim->writing = NULL;
}

static void put_off(Claim *claim)
{
    BerthRbdStorage *self = claim->storage;
    g_free(claim->next);
    claim->next = claim_text(self);
    rados_write_op_t op = new_replacement(claim->text, claim->next);
    if (rados_aio_create_completion2(NULL, NULL, &claim->writing) >= 0 &&
        rados_aio_write_op_operate(op, self->images, claim->writing, claim->header, NULL, 0) < 0) {
        rados_aio_release(claim->writing);
        claim->writing = NULL;
    }
    rados_release_write_op(op);
}

static void put_off_if_due(Claim *claim, gint64 now_usec)
{
    if (claim->header == NULL || now_usec < claim->due_usec)
        return;
    if (claim->writing != NULL && !rados_aio_is_complete(claim->writing))
        return;
    if (claim->writing != NULL)
        settle(claim);
    put_off(claim);
    claim->due_usec = now_usec + (gint64)claim->storage->op_timeout_sec * G_USEC_PER_SEC / 2;
}

/* In a thread of librbd, which must not wait; it removes no more when this fails. A removal that stood still for longer than
 * its claim held may find another client at it. */
static int on_progress(uint64_t done, uint64_t all, void *data)
{
    Claim *claim = data;
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&claim->lock);
    claim->progress_usec = g_get_monotonic_time();
    put_off_if_due(claim, claim->progress_usec);
    return claim->is_lost ? -ESTALE : 0;
}

/* TRUE: who has waited for it has left. */
static gboolean end_removal(Claim *claim, int result)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&claim->lock);
    if (claim->writing != NULL) {
        rados_aio_wait_for_complete(claim->writing);
        settle(claim);
    }
    claim->result = result;
    claim->has_ended = TRUE;
    g_cond_signal(&claim->ended);
    return claim->is_left;
}

/* With a reference to the storage. */
static gpointer remove_image(gpointer data)
{
    Claim *claim = data;
    BerthRbdStorage *self = claim->storage;
    int result = rbd_remove_with_progress(self->images, claim->name, on_progress, claim);
    if (end_removal(claim, result)) {
        g_debug("the removal of RBD image %s, which was given up, has ended", claim->name);
        g_autofree char *name = g_strdup(claim->name);
        end(self->removals, name);
    }
    berth_storage_free(&self->base);
    return NULL;
}

/* FALSE: it tells of no progress any more. */
static gboolean await_removal(Claim *claim)
{
    gint64 patience_usec =
        (gint64)OPERATIONS_STUCK * claim->storage->op_timeout_sec * G_USEC_PER_SEC;
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&claim->lock);
    while (!claim->has_ended && g_get_monotonic_time() < claim->progress_usec + patience_usec)
        g_cond_wait_until(&claim->ended, &claim->lock, claim->progress_usec + patience_usec);
    claim->is_left = !claim->has_ended;
    return claim->has_ended;
}

/* Since it was claimed, or put off, a while may have passed. */
static int renew(Claim *claim)
{
    if (claim->header == NULL)
        return 0;
    g_autofree char *text = claim_text(claim->storage);
    int result = replace_claim(claim->storage, claim->header, claim->text, text);
    if (result == -ENOENT) /* there is nothing left to trim */
        return 0;
    if (result < 0)
        return result == -ECANCELED ? -EBUSY : result;
    g_free(claim->text);
    claim->text = g_steal_pointer(&text);
    return 0;
}

/* In a thread of its own: librbd may stand still for as long as Ceph does, or longer. Who removes an image says so to the
 * pool's trash, and librados (IoCtxImpl.cc in Ceph 16) waits without a deadline for the end of a notification that could not be
 * sent in time. */
int berth_rbd_remove_claimed(BerthRbdStorage *self, const char *name)
{
    Claim *claim = find(self->removals, name);
    int result = renew(claim);
    if (result < 0)
        return berth_rbd_watched(self, result);
    claim->has_ended = FALSE;
    claim->progress_usec = g_get_monotonic_time();
    berth_storage_ref(&self->base);
    GThread *thread = g_thread_try_new("remove image", remove_image, claim, NULL);
    if (thread == NULL) {
        berth_storage_free(&self->base);
        return -EAGAIN;
    }
    if (!await_removal(claim)) {
        g_thread_unref(thread);
        g_debug("RBD image %s: librbd has removed nothing more of it for %u s, and is not waited "
                "for any more",
                name, OPERATIONS_STUCK * self->op_timeout_sec);
        return berth_rbd_watched(self, -ETIMEDOUT);
    }
    g_thread_join(thread);
    result = berth_rbd_watched(self, claim->result);
    return result == -ESTALE ? -EBUSY : result; /* another client removes the rest of it */
}

int berth_rbd_remove(BerthRbdStorage *self, const char *name)
{
    int result = berth_rbd_claim(self, name);
    if (result < 0)
        return result;
    result = berth_rbd_remove_claimed(self, name);
    berth_rbd_end_claim(self, name, result);
    return result;
}
