/* SPDX-License-Identifier: Apache-2.0 */
/* Owns that an RBD image is removed by one at a time. librbd moves an image to RBD's trash and removes it there, and goes on
 * with one that another client has in the trash for that. Of two that remove an image at the same time one takes its header
 * or its lock away from the other, which aborts its process: it asserts that it has the lock with each object that it trims
 * (librbd/operation/TrimRequest.cc in Ceph 16). An agent and berthd's collector may well be after the same disk.
 *
 * So who removes an image claims it first: in an attribute of its header, which is there for as long as there is anything to
 * trim, and goes with it. A claim holds until a time at which its client has the image open, or has given up. From then on it
 * holds for as long as the client has it open, so that what a client leaves that dies, or whose claim was written when it had
 * given up, is removed by others. When the header is gone, only an entry in the trash is left to remove; who has removed
 * the header is given as long for that as for a claim. Threads of one client have one address: they keep out of each
 * other's way by a set of names. Clocks of clients are to agree to within a few seconds, as they do where certificates are
 * to be valid. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "storage/rbd_internal.h"
#include "storage/storage.h"

#define CLAIM            "berth.removed-by" /* "UNTIL,ADDRESS", UNTIL in seconds since 1970 */
#define CLAIM_BYTES_MAX  1024u
#define ID_OBJECT_PREFIX "rbd_id." /* librbd: RBD_ID_PREFIX; holds a length of 4 bytes and the id */
#define HEADER_PREFIX    "rbd_header." /* librbd: RBD_HEADER_PREFIX */
#define TRASH_OBJECT     "rbd_trash" /* librbd: RBD_TRASH; has a key for each image in the trash */
#define TRASH_KEY_PREFIX "id_"
#define TRASH_KEYS_MAX   512u
#define ID_BYTES_MAX     64u
#define LENGTH_BYTES     4u
#define TAKE_OVER_TRIES  3u
/* Operations between a claim and the image's being open, each of which may take as long as one may. */
#define OPERATIONS 3u

struct BerthRbdRemovals {
    GMutex lock;
    GHashTable *names; /* of images that a thread is removing */
};

BerthRbdRemovals *berth_rbd_removals_new(void)
{
    BerthRbdRemovals *removals = g_new0(BerthRbdRemovals, 1);
    g_mutex_init(&removals->lock);
    removals->names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return removals;
}

void berth_rbd_removals_free(BerthRbdRemovals *removals)
{
    if (removals == NULL)
        return;
    g_hash_table_unref(removals->names);
    g_mutex_clear(&removals->lock);
    g_free(removals);
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

/* --- which image ------------------------------------------------------------------------------ */

static int read_id(BerthRbdStorage *self, const char *name, char **out_id)
{
    g_autofree char *object = g_strconcat(ID_OBJECT_PREFIX, name, NULL);
    char content[LENGTH_BYTES + ID_BYTES_MAX];
    int result = rados_read(self->images, object, content, sizeof content, 0);
    if (result < 0)
        return result;
    if ((gsize)result <= LENGTH_BYTES)
        return -ENOENT; /* being made */
    *out_id = g_strndup(content + LENGTH_BYTES, (gsize)result - LENGTH_BYTES);
    return 0;
}

typedef struct {
    char *id;
    time_t trashed; /* when it came to the trash; 0: it is not there */
} Image;

static void image_clear(Image *image)
{
    g_free(image->id);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Image, image_clear)

/* Is the image ID in the trash because somebody removes it as NAME? 0 or 1. */
static int check_trashed(BerthRbdStorage *self, const char *id, const char *name, Image *out_image)
{
    rbd_trash_image_info_t info;
    int result = rbd_trash_get(self->images, id, &info);
    if (result < 0)
        return result == -ENOENT ? 0 : result; /* it has gone meanwhile */
    gboolean is_it = info.source == RBD_TRASH_IMAGE_SOURCE_REMOVING && g_str_equal(info.name, name);
    if (is_it)
        *out_image = (Image){g_strdup(id), info.deletion_time};
    rbd_trash_get_cleanup(&info);
    return is_it ? 1 : 0;
}

/* Appends the keys of the trash that follow AFTER, some of them. -ENOENT: there has never been anything in it. */
static int list_trash(BerthRbdStorage *self, const char *after, GPtrArray *keys, gboolean *out_more)
{
    rados_omap_iter_t iterator = NULL;
    unsigned char more = 0;
    rados_read_op_t op = rados_create_read_op();
    rados_read_op_omap_get_keys2(op, after, TRASH_KEYS_MAX, &iterator, &more, NULL);
    int result = rados_read_op_operate(op, self->images, TRASH_OBJECT, 0);
    while (result >= 0) {
        char *key = NULL, *value = NULL;
        size_t key_length = 0, value_length = 0;
        result = rados_omap_get_next2(iterator, &key, &value, &key_length, &value_length);
        if (key == NULL)
            break;
        g_ptr_array_add(keys, g_strndup(key, key_length));
    }
    if (iterator != NULL)
        rados_omap_get_end(iterator);
    rados_release_read_op(op);
    *out_more = more != 0;
    return result;
}

/* Of an image that somebody was removing. (rbd_trash_list() leaves out just those.) */
static int find_in_trash(BerthRbdStorage *self, const char *name, Image *out_image)
{
    g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(g_free);
    int result = 0;
    for (gboolean more = TRUE; more && result >= 0;) {
        const char *after = keys->len > 0 ? g_ptr_array_index(keys, keys->len - 1) : "";
        result = list_trash(self, after, keys, &more);
    }
    for (guint i = 0; result == 0 && i < keys->len; i++) {
        const char *key = g_ptr_array_index(keys, i);
        if (!g_str_has_prefix(key, TRASH_KEY_PREFIX))
            continue;
        result = check_trashed(self, key + strlen(TRASH_KEY_PREFIX), name, out_image);
    }
    return result == 0 ? -ENOENT : MIN(result, 0);
}

/* -ENOENT: there is no such image. It is in the trash before its name is gone, and has its name again before it is out of
 * the trash. */
static int find_image(BerthRbdStorage *self, const char *name, Image *out_image)
{
    int result = read_id(self, name, &out_image->id);
    if (result == -ENOENT)
        result = find_in_trash(self, name, out_image);
    if (result == -ENOENT)
        result = read_id(self, name, &out_image->id); /* it could not be removed */
    return result;
}

/* --- claims ----------------------------------------------------------------------------------- */

/* -ECANCELED: the claim is not EXPECTED; "": there is none. */
static int replace_claim(BerthRbdStorage *self, const char *header, const char *expected,
                         const char *claim)
{
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_assert_exists(op);
    rados_write_op_cmpxattr(op, CLAIM, LIBRADOS_CMPXATTR_OP_EQ, expected, strlen(expected));
    rados_write_op_setxattr(op, CLAIM, claim, strlen(claim));
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

static char *claim_new(BerthRbdStorage *self)
{
    g_autofree char *own = berth_storage_client_address(&self->base);
    gint64 until_sec = (gint64)time(NULL) + OPERATIONS * self->op_timeout_sec;
    return g_strdup_printf("%" G_GINT64_FORMAT ",%s", until_sec, own);
}

/* Is the client at ADDRESS at it? */
static int check_watched_by(BerthRbdStorage *self, const char *header, const char *address)
{
    g_autoptr(GPtrArray) clients = g_ptr_array_new_with_free_func(g_free);
    BERTH_RBD_AUTO_IMAGE image = NULL;
    int result =
        rbd_open_by_id_read_only(self->images, header + strlen(HEADER_PREFIX), &image, NULL);
    if (result >= 0)
        result = berth_rbd_watchers(image, clients);
    if (result < 0)
        return result;
    return g_ptr_array_find_with_equal_func(clients, address, g_str_equal, NULL) ? -EBUSY : 0;
}

static gboolean is_own(BerthRbdStorage *self, const char *claim)
{
    g_autofree char *own = berth_storage_client_address(&self->base);
    const char *comma = strchr(claim, ',');
    return comma != NULL && g_str_equal(comma + 1, own);
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

static int claim_header(BerthRbdStorage *self, const char *id)
{
    g_autofree char *header = g_strconcat(HEADER_PREFIX, id, NULL);
    g_autofree char *claim = claim_new(self);
    int result = -ECANCELED;
    for (guint i = 0; result == -ECANCELED && i < TAKE_OVER_TRIES; i++) {
        g_autofree char *before = NULL;
        result = read_claim(self, header, &before);
        if (result >= 0)
            result = check_void(self, header, before);
        if (result >= 0)
            result = replace_claim(self, header, before, claim);
    }
    return result == -ECANCELED ? -EBUSY : result;
}

/* There is no header any more on which it could be claimed. Who has removed that is about to take it out of the trash. */
static gboolean is_left_to_another(BerthRbdStorage *self, const Image *image)
{
    return time(NULL) < image->trashed + (time_t)(OPERATIONS * self->op_timeout_sec);
}

int berth_rbd_claim(BerthRbdStorage *self, const char *name)
{
    g_auto(Image) image = {NULL};
    if (!begin(self->removals, name))
        return -EBUSY;
    int result = find_image(self, name, &image);
    if (result >= 0)
        result = claim_header(self, image.id);
    if (result == -ENOENT && is_left_to_another(self, &image))
        result = -EBUSY;
    if (result == -ENOENT)
        return 0; /* there may be a rest without a header, of which there is nothing to trim */
    if (result < 0)
        end(self->removals, name);
    return result;
}

static void give_up(BerthRbdStorage *self, const char *name)
{
    g_auto(Image) image = {NULL};
    g_autofree char *claim = NULL;
    if (find_image(self, name, &image) < 0)
        return;
    g_autofree char *header = g_strconcat(HEADER_PREFIX, image.id, NULL);
    if (read_claim(self, header, &claim) >= 0 && is_own(self, claim))
        replace_claim(self, header, claim, "");
}

void berth_rbd_end_claim(BerthRbdStorage *self, const char *name, gboolean is_gone)
{
    if (!is_gone)
        give_up(self, name);
    end(self->removals, name);
}

int berth_rbd_remove_claimed(BerthRbdStorage *self, const char *name)
{
    int result = berth_rbd_watched(self, rbd_remove(self->images, name));
    return result == -ESTALE ? -EBUSY : result; /* another client removes the rest of it */
}

int berth_rbd_remove(BerthRbdStorage *self, const char *name)
{
    int result = berth_rbd_claim(self, name);
    if (result < 0)
        return result;
    result = berth_rbd_remove_claimed(self, name);
    berth_rbd_end_claim(self, name, result >= 0);
    return result;
}
