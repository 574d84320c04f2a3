/* SPDX-License-Identifier: Apache-2.0 */
/* Owns who has an RBD image open, and whether it sees what others do to the image.
 *
 * An OSD forgets a client that is gone after 30 s, but for one that was gone before the OSD was
 * done with noting that it watches: there is no connection any more whose end would begin these 30 s
 * (PrimaryLogPG::do_osd_op_effects() in Ceph 16; tracker.ceph.com issue 58120), and cutting the client off does not end such a
 * watch either. librbd does not remove what is watched. The OSD looks at it again when it reads the header anew: after it had
 * dropped the header from its cache of each placement group's latest objects. In a pool in which much is going on that takes
 * moments, in another one it takes for ever.
 *
 * So where an image is watched, the OSD is asked for as many other objects of the header's placement group as it keeps there,
 * none of which exists, and then for the watchers again. A header that is watched by a client with a connection stays in the
 * cache, and the client watches on.
 *
 * A client that an OSD has not heard of for 30 s is forgotten although it lives: its host stood still, or Ceph was paused. It
 * watches again as soon as it hears of that, under another cookie, and gives that one to its exclusive lock. Until then librbd
 * takes it for dead (librbd/managed_lock/BreakRequest.cc in Ceph 16): rbd_live.c. */
#include <errno.h>
#include <string.h>

#include "storage/rbd_internal.h"

#define WATCHERS_MAX 64u
/* Of osd_pg_object_context_cache_count, 64 by default, some times as many: others ask for objects, too. */
#define OTHERS    256u
#define LOCK_NAME "rbd_lock" /* librbd: RBD_LOCK_NAME */
/* The cookie of one that librbd took by itself; that of its owner's watch follows. */
#define LOCK_PREFIX     "auto "
#define LOCK_TEXT_BYTES 256u
#define LOOK_EVERY_USEC ((gulong)100000) /* Ceph tells nobody of who watches */
static const char *const ADDRESS_KINDS[] = {"v1:", "v2:", "any:"}; /* entity_addr_t */

/* The object that is watched (transfer full). */
static int find_header(rbd_image_t image, char **out_header)
{
    char id[BERTH_RBD_ID_BYTES];
    int result = rbd_get_id(image, id, sizeof id);
    if (result >= 0)
        *out_header = g_strconcat(BERTH_RBD_HEADER_PREFIX, id, NULL);
    return result;
}

typedef struct {
    rbd_image_watcher_t all[WATCHERS_MAX];
    size_t n;
} Watchers;

/* To be cleared if the result is not below 0. */
static int read_watchers(rbd_image_t image, Watchers *watchers)
{
    watchers->n = WATCHERS_MAX;
    return rbd_watchers_list(image, watchers->all, &watchers->n);
}

static void watchers_clear(Watchers *watchers)
{
    rbd_watchers_list_cleanup(watchers->all, watchers->n);
}

static int list(rbd_image_t image, GPtrArray *addresses)
{
    Watchers watchers;
    int result = read_watchers(image, &watchers);
    if (result < 0)
        return result;
    for (size_t i = 0; i < watchers.n; i++) {
        const char *address = watchers.all[i].addr;
        if (!g_ptr_array_find_with_equal_func(addresses, address, g_str_equal, NULL))
            g_ptr_array_add(addresses, g_strdup(address));
    }
    watchers_clear(&watchers);
    return 0;
}

/* For an object that does not exist. Only what may be written is looked up so that it is kept in the cache, and nothing is. */
static int ask_for(rados_ioctx_t others, guint number, rados_completion_t *out_asked)
{
    char name[32];
    g_snprintf(name, sizeof name, "berth.none.%u", number);
    int result = rados_aio_create_completion2(NULL, NULL, out_asked);
    if (result < 0)
        return result;
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_assert_exists(op);
    rados_write_op_remove(op);
    result = rados_aio_write_op_operate(op, others, *out_asked, name, NULL, 0);
    rados_release_write_op(op);
    if (result < 0)
        rados_aio_release(*out_asked);
    return result;
}

/* In the placement group of HEADER: its name is what places all of them. */
static int ask_for_others(BerthRbdStorage *self, const char *header)
{
    rados_completion_t asked[OTHERS];
    rados_ioctx_t others = NULL;
    guint n = 0;
    int result = rados_ioctx_create2(self->cluster, rados_ioctx_get_id(self->images), &others);
    if (result < 0)
        return result;
    rados_ioctx_locator_set_key(others, header);
    rados_set_pool_full_try(others);
    for (; n < OTHERS && result >= 0; n += result >= 0)
        result = ask_for(others, n, &asked[n]);
    for (guint i = 0; i < n; i++) {
        rados_aio_wait_for_complete(asked[i]);
        int answer = rados_aio_get_return_value(asked[i]);
        if (answer < 0 && answer != -ENOENT && result >= 0)
            result = answer;
        rados_aio_release(asked[i]);
    }
    rados_ioctx_destroy(others);
    return result;
}

int berth_rbd_watchers(BerthRbdStorage *self, rbd_image_t image, GPtrArray *addresses)
{
    guint had = addresses->len;
    g_autofree char *header = NULL;
    int result = find_header(image, &header);
    if (result >= 0)
        result = list(image, addresses);
    if (result < 0 || addresses->len == had)
        return result;
    result = ask_for_others(self, header);
    if (result < 0)
        return result;
    g_ptr_array_set_size(addresses, (gint)had);
    return list(image, addresses);
}

/* --- the owner of its lock ---------------------------------------------------------------------- */

static gboolean is_among(const BerthRbdGuest *guest, const char *address)
{
    return guest->clients != NULL && g_strv_contains(guest->clients, address);
}

BerthRbdSight berth_rbd_sight(const rbd_image_watcher_t *watchers, gsize n,
                              const BerthRbdOwner *owner, const char *const *own,
                              const BerthRbdGuest *guest)
{
    gboolean owner_watches = FALSE, guest_watches = FALSE;
    for (gsize i = 0; i < n; i++) {
        gboolean is_owner = g_str_equal(watchers[i].addr, owner->address);
        if (is_owner && watchers[i].cookie == owner->watch)
            return BERTH_RBD_SEES;
        owner_watches |= is_owner;
        guest_watches |=
            is_among(guest, watchers[i].addr) && !g_strv_contains(own, watchers[i].addr);
    }
    if (owner_watches || g_strv_contains(own, owner->address))
        return BERTH_RBD_UNSEEN;
    gboolean is_gone =
        is_among(guest, owner->address) ? guest->have_ended : !guest->have_ended && guest_watches;
    return is_gone ? BERTH_RBD_GONE : BERTH_RBD_UNSEEN;
}

/* ADDRESS of the owner of a lock as that of a watcher: without the kind, as in "v1:". */
static const char *without_kind(const char *address)
{
    for (guint i = 0; i < G_N_ELEMENTS(ADDRESS_KINDS); i++) {
        if (g_str_has_prefix(address, ADDRESS_KINDS[i]))
            return address + strlen(ADDRESS_KINDS[i]);
    }
    return address;
}

/* As Ceph tells of it. */
typedef struct {
    char client[LOCK_TEXT_BYTES]; /* "client.ID" */
    char cookie[LOCK_TEXT_BYTES];
    char address[LOCK_TEXT_BYTES];
} Locker;

/* *OUT_OWNER is valid for as long as LOCKER is; its address is NULL where librbd has not locked the image. librbd itself would
 * answer with the lock as it was when the image was opened. */
static int read_owner(BerthRbdStorage *self, const char *header, Locker *locker,
                      BerthRbdOwner *out_owner)
{
    char tag[LOCK_TEXT_BYTES];
    size_t tag_bytes = sizeof tag, client_bytes = sizeof locker->client,
           cookie_bytes = sizeof locker->cookie, address_bytes = sizeof locker->address;
    int is_exclusive = 0;
    *out_owner = (BerthRbdOwner){NULL, 0};
    ssize_t lockers = rados_list_lockers(self->images, header, LOCK_NAME, &is_exclusive, tag,
                                         &tag_bytes, locker->client, &client_bytes, locker->cookie,
                                         &cookie_bytes, locker->address, &address_bytes);
    if (lockers <= 0)
        return (int)lockers;
    if (g_str_has_prefix(locker->cookie, LOCK_PREFIX) &&
        g_ascii_string_to_unsigned(locker->cookie + strlen(LOCK_PREFIX), 10, 0, G_MAXUINT64,
                                   &out_owner->watch, NULL))
        out_owner->address = without_kind(locker->address);
    return 0;
}

/* Cut off first, so that it writes nothing more; and only if it has the lock still, when it was seen to be gone: one that gives
 * the lock back gives up its watch after that. */
static int take_lock(BerthRbdStorage *self, const char *header, const Locker *locker)
{
    Locker now;
    BerthRbdOwner owner;
    int result = read_owner(self, header, &now, &owner);
    if (result < 0 || owner.address == NULL || !g_str_equal(now.client, locker->client) ||
        !g_str_equal(now.cookie, locker->cookie) || !g_str_equal(now.address, locker->address))
        return result;
    result = berth_rbd_cut_off(self->cluster, owner.address);
    if (result >= 0) /* with this connection it is locked anew: who hears from it is to know */
        result = rados_wait_for_latest_osdmap(self->live_cluster);
    if (result >= 0)
        result = rados_break_lock(self->images, header, LOCK_NAME, locker->client, locker->cookie);
    return result == -ENOENT ? 0 : result; /* another one did that */
}

static int look_at(BerthRbdStorage *self, rbd_image_t image, const BerthRbdOwner *owner,
                   const BerthRbdGuest *guest, BerthRbdSight *out_sight)
{
    Watchers watchers;
    *out_sight = BERTH_RBD_SEES;
    if (owner->address == NULL)
        return 0; /* nobody has it */
    int result = read_watchers(image, &watchers);
    if (result < 0)
        return result;
    *out_sight = berth_rbd_sight(watchers.all, watchers.n, owner,
                                 (const char *const *)self->addresses, guest);
    watchers_clear(&watchers);
    return 0;
}

/* Of one that is gone the lock is taken, and who has it then is looked at, whatever time that took. */
int berth_rbd_await_owner(BerthRbdStorage *self, rbd_image_t image, const BerthRbdGuest *guest,
                          gint64 patience_usec)
{
    gint64 deadline = g_get_monotonic_time() + patience_usec;
    g_autofree char *header = NULL;
    int result = find_header(image, &header);
    while (result >= 0) {
        Locker locker;
        BerthRbdOwner owner;
        BerthRbdSight sight = BERTH_RBD_UNSEEN;
        result = read_owner(self, header, &locker, &owner);
        if (result >= 0)
            result = look_at(self, image, &owner, guest, &sight);
        if (result < 0 || sight == BERTH_RBD_SEES)
            return result;
        if (sight == BERTH_RBD_GONE) {
            result = take_lock(self, header, &locker);
            continue;
        }
        if (g_get_monotonic_time() >= deadline) {
            /* Left by what has ended: only another client can take it from this one. */
            if (g_strv_contains((const char *const *)self->addresses, owner.address))
                g_atomic_int_set(self->is_worn, TRUE);
            return -EAGAIN;
        }
        g_usleep(LOOK_EVERY_USEC);
    }
    return result;
}
