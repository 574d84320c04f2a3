/* SPDX-License-Identifier: Apache-2.0 */
/* From whom the exclusive lock of a disk may be taken. */
#include "storage/rbd_internal.h"
#include "tests/lib/assert.h"

#define WATCH 7u

typedef struct {
    const char *what;
    const char *owner; /* has the lock, with the watch WATCH */
    const char *seen;  /* who watches, each with WATCH, or with another where it has a + */
    const char *guest; /* its clients; NULL: not known */
    gboolean have_ended;
    BerthRbdSight sight;
} Case;

static const Case cases[] = {
    {"the guest watches, with the watch of its lock", "guest", "guest own", "guest", FALSE,
     BERTH_RBD_SEES},
    {"that is so of whoever has the lock", "other", "other own", "guest", FALSE, BERTH_RBD_SEES},
    {"... also if nobody knows the guest", "guest", "guest own", NULL, FALSE, BERTH_RBD_SEES},
    {"the guest watches anew, and has not written since", "guest", "guest+ own", "guest", FALSE,
     BERTH_RBD_UNSEEN},
    {"... nor has an agent", "other", "other+ guest own", "guest", FALSE, BERTH_RBD_UNSEEN},
    {"the guest is out of sight", "guest", "own", "guest", FALSE, BERTH_RBD_UNSEEN},
    {"... while others are seen", "guest", "own other", "guest", FALSE, BERTH_RBD_UNSEEN},
    {"... while one that is taken for it is", "guest", "own other", "guest other", FALSE,
     BERTH_RBD_UNSEEN},
    {"the guest has ended", "guest", "own", "guest", TRUE, BERTH_RBD_GONE},
    {"... and its watch has not", "guest", "guest+ own", "guest", TRUE, BERTH_RBD_UNSEEN},
    {"an agent has died beside the guest", "other", "guest own", "guest", FALSE, BERTH_RBD_GONE},
    {"... and was there when the guest's were looked for", "other", "guest own", "guest other",
     FALSE, BERTH_RBD_UNSEEN},
    {"... and the guest is out of sight", "other", "own", "guest", FALSE, BERTH_RBD_UNSEEN},
    {"... and the guest has ended", "other", "own", "guest", TRUE, BERTH_RBD_UNSEEN},
    {"... which had another guest before, that watches", "other", "own guest", "guest", TRUE,
     BERTH_RBD_UNSEEN},
    {"who asks is no guest", "other", "own", "own", FALSE, BERTH_RBD_UNSEEN},
    {"... nor beside one that is out of sight", "other", "own", "guest own", FALSE,
     BERTH_RBD_UNSEEN},
    {"who asks has the lock, and is out of sight itself", "own", "guest", "guest", FALSE,
     BERTH_RBD_UNSEEN},
    {"... with its other client", "own2", "guest own", "guest", FALSE, BERTH_RBD_UNSEEN},
    {"nobody knows the guest", "other", "own guest", NULL, FALSE, BERTH_RBD_UNSEEN},
};

static gsize watchers_of(char **seen, rbd_image_watcher_t *watchers)
{
    gsize n = 0;
    for (; seen[n] != NULL; n++) {
        char *plus = strchr(seen[n], '+');
        if (plus != NULL)
            *plus = '\0';
        watchers[n] = (rbd_image_watcher_t){
            .addr = seen[n], .id = 1, .cookie = plus != NULL ? WATCH + 1 : WATCH};
    }
    return n;
}

static void lock_is_taken_from_who_loses_nothing(void **state)
{
    static const char *const own[] = {"own", "own2", NULL};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const Case *one = &cases[i];
        g_auto(GStrv) seen = g_strsplit(one->seen, " ", -1);
        g_auto(GStrv) clients = one->guest != NULL ? g_strsplit(one->guest, " ", -1) : NULL;
        rbd_image_watcher_t watchers[4];
        gsize n = watchers_of(seen, watchers);
        const BerthRbdOwner owner = {one->owner, WATCH};
        const BerthRbdGuest guest = {(const char *const *)clients, one->have_ended};
        if (berth_rbd_sight(watchers, n, &owner, own, &guest) != one->sight)
            fail_msg("%s", one->what);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lock_is_taken_from_who_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
