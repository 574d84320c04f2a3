/* SPDX-License-Identifier: Apache-2.0 */
/* Owns that an RBD image is removed by one at a time. librbd gives up the lock under which it removes an image when
 * another client asks for it, as one does that is to remove the same image, and then aborts its process: it asserts that
 * it has the lock with each object that it trims (librbd/operation/TrimRequest.cc in Ceph 16). An agent and berthd's
 * collector may well be after the same disk.
 *
 * So who removes an image claims it first: in an attribute of the object that RBD keeps of its name, written only where
 * nobody else's is. It goes with the image, so that a removal that has ended leaves nothing. Of one that was interrupted
 * it tells which client it was; that one is reported with the image's other clients, and once it has been cut off from
 * here its claim is void. Threads of one client have one address: they keep out of each other's way by a set of names. */
#include <errno.h>
#include <string.h>

#include "storage/rbd_internal.h"
#include "storage/storage.h"

#define CLAIM            "berth.removed-by"
#define CLAIM_BYTES_MAX  1024u
#define ID_OBJECT_PREFIX "rbd_id." /* librbd: RBD_ID_PREFIX */
#define NOBODY           ""
#define TAKE_OVER_TRIES  3

struct BerthRbdRemovals {
    GMutex lock;
    GHashTable *names;   /* of images that a thread is removing */
    GHashTable *cut_off; /* addresses of clients that this one has fenced */
};

BerthRbdRemovals *berth_rbd_removals_new(void)
{
    BerthRbdRemovals *removals = g_new0(BerthRbdRemovals, 1);
    g_mutex_init(&removals->lock);
    removals->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    removals->cut_off = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return removals;
}

void berth_rbd_removals_free(BerthRbdRemovals *removals)
{
    if (removals == NULL)
        return;
    g_hash_table_unref(removals->names);
    g_hash_table_unref(removals->cut_off);
    g_mutex_clear(&removals->lock);
    g_free(removals);
}

void berth_rbd_removals_cut_off(BerthRbdRemovals *removals, const char *address)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&removals->lock);
    g_hash_table_add(removals->cut_off, g_strdup(address));
}

static gboolean is_cut_off(BerthRbdRemovals *removals, const char *address)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&removals->lock);
    return g_hash_table_contains(removals->cut_off, address);
}

static gboolean begin(BerthRbdRemovals *removals, const char *name)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&removals->lock);
    return g_hash_table_add(removals->names, g_strdup(name));
}

static void end(BerthRbdRemovals *removals, const char *name)
{
    g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&removals->lock);
    g_hash_table_remove(removals->names, name);
}

static char *id_object(const char *name)
{
    return g_strconcat(ID_OBJECT_PREFIX, name, NULL);
}

/* -ECANCELED: the claim is not EXPECTED. -ENOENT: there is no such image, or the rest of one. */
static int replace_claim(BerthRbdStorage *self, const char *name, const char *expected,
                         const char *claim)
{
    g_autofree char *object = id_object(name);
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_assert_exists(op);
    rados_write_op_cmpxattr(op, CLAIM, LIBRADOS_CMPXATTR_OP_EQ, expected, strlen(expected));
    rados_write_op_setxattr(op, CLAIM, claim, strlen(claim));
    int result = rados_write_op_operate(op, self->images, object, NULL, 0);
    rados_release_write_op(op);
    return result;
}

int berth_rbd_claimer(BerthRbdStorage *self, const char *name, char **out_address)
{
    g_autofree char *object = id_object(name);
    char claim[CLAIM_BYTES_MAX];
    int result = rados_getxattr(self->images, object, CLAIM, claim, sizeof claim);
    if (result == -ENODATA)
        result = 0;
    if (result < 0)
        return result;
    *out_address = g_strndup(claim, (gsize)result);
    return 0;
}

/* Another's claim, if it has one: of a client that is gone, or a removal of our own that did not get that far. */
static int take_over(BerthRbdStorage *self, const char *name, const char *own)
{
    g_autofree char *claimer = NULL;
    int result = berth_rbd_claimer(self, name, &claimer);
    if (result < 0)
        return result;
    if (*claimer != '\0' && !g_str_equal(claimer, own) && !is_cut_off(self->removals, claimer))
        return -EBUSY;
    return replace_claim(self, name, claimer, own);
}

static int claim(BerthRbdStorage *self, const char *name)
{
    g_autofree char *own = berth_storage_client_address(&self->base);
    int result = replace_claim(self, name, NOBODY, own);
    for (guint i = 0; result == -ECANCELED && i < TAKE_OVER_TRIES; i++)
        result = take_over(self, name, own);
    if (result == -ECANCELED)
        return -EBUSY;
    return result == -ENOENT ? 0
                             : result; /* there may be a rest, of which the name's object is gone */
}

int berth_rbd_claim(BerthRbdStorage *self, const char *name)
{
    if (!begin(self->removals, name))
        return -EBUSY;
    int result = claim(self, name);
    if (result < 0)
        end(self->removals, name);
    return result;
}

void berth_rbd_give_up_claim(BerthRbdStorage *self, const char *name)
{
    g_autofree char *own = berth_storage_client_address(&self->base);
    replace_claim(self, name, own, NOBODY);
    end(self->removals, name);
}

int berth_rbd_remove_claimed(BerthRbdStorage *self, const char *name)
{
    int result = berth_rbd_watched(self, rbd_remove(self->images, name));
    return result == -ESTALE ? -EBUSY : result; /* another client has removed it but for its name */
}

int berth_rbd_remove(BerthRbdStorage *self, const char *name)
{
    int result = berth_rbd_claim(self, name);
    if (result < 0)
        return result;
    result = berth_rbd_remove_claimed(self, name);
    berth_rbd_give_up_claim(self, name);
    return result;
}
