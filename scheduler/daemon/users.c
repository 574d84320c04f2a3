/* SPDX-License-Identifier: Apache-2.0 */
/* Owns what is asked of the system's user database, and the memory of it. */
#include "config.h"

#include "scheduler/daemon/users.h"

#include "common/error.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#define CACHE_USEC       (5 * 60 * G_USEC_PER_SEC)
#define CACHE_MAX        10000u
#define LOOKUP_WAIT_MSEC 10000u
#define PASSWD_MAX_BYTES (1u << 20)

typedef struct {
    char *name;
    gint64 until_usec; /* monotonic */
} Known;

struct BerthUsers {
    BerthWorkers *workers;
    GHashTable *known;   /* uid -> Known */
    GHashTable *lookups; /* uid -> Lookup, under way */
};

static void known_free(gpointer data)
{
    Known *known = data;
    g_free(known->name);
    g_free(known);
}

BerthUsers *berth_users_new(BerthWorkers *workers)
{
    BerthUsers *users = g_new0(BerthUsers, 1);
    users->workers = workers;
    users->known = g_hash_table_new_full(NULL, NULL, NULL, known_free);
    users->lookups = g_hash_table_new(NULL, NULL);
    return users;
}

void berth_users_free(BerthUsers *users)
{
    g_hash_table_unref(users->known);
    g_hash_table_unref(users->lookups);
    g_free(users);
}

/* --- on workers ------------------------------------------------------------------------------ */

/* What getpwnam_r(3) lists for "not found"; all else is a database that does not answer. */
static gboolean says_no_such_user(int failed)
{
    return failed == 0 || failed == ENOENT || failed == ESRCH || failed == EBADF || failed == EPERM;
}

static void set_unavailable(GError **error, const char *what, int failed)
{
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE,
                "cannot look up %s: the user database does not answer (%s); try again", what,
                g_strerror(failed));
}

/* getpwuid_r() or getpwnam_r() with a buffer that is large enough. NULL: *OUT_ERRNO says why. */
static struct passwd *find_passwd(const char *name, uid_t uid, struct passwd *space,
                                  char **out_buffer, int *out_errno)
{
    for (gsize size = 4096; size <= PASSWD_MAX_BYTES; size *= 4) {
        struct passwd *found = NULL;
        g_autofree char *buffer = g_malloc(size);
        int failed = name ? getpwnam_r(name, space, buffer, size, &found)
                          : getpwuid_r(uid, space, buffer, size, &found);
        *out_errno = failed;
        if (failed == ERANGE || failed == EINTR)
            continue;
        if (found)
            *out_buffer = g_steal_pointer(&buffer);
        return found;
    }
    return NULL;
}

gboolean berth_user_uid(const char *name, uid_t *out_uid, GError **error)
{
    struct passwd space;
    g_autofree char *buffer = NULL;
    int failed = 0;
    const struct passwd *found = find_passwd(name, 0, &space, &buffer, &failed);
    if (!found && !says_no_such_user(failed)) {
        set_unavailable(error, name, failed);
        return FALSE;
    }
    if (!found) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_NOT_FOUND, "there is no user \"%s\"", name);
        return FALSE;
    }
    *out_uid = found->pw_uid;
    return TRUE;
}

char *berth_user_name(uid_t uid, GError **error)
{
    struct passwd space;
    g_autofree char *buffer = NULL;
    int failed = 0;
    const struct passwd *found = find_passwd(NULL, uid, &space, &buffer, &failed);
    if (!found && !says_no_such_user(failed)) {
        g_autofree char *what = g_strdup_printf("user %u", (guint)uid);
        set_unavailable(error, what, failed);
        return NULL;
    }
    return found ? g_utf8_make_valid(found->pw_name, -1) : g_strdup_printf("%u", (guint)uid);
}

GArray *berth_user_groups(const char *name, gid_t gid, GError **error)
{
    struct passwd space;
    g_autofree char *buffer = NULL;
    int failed = 0;
    GArray *groups = NULL;
    /* getgrouplist() cannot say that the database does not answer. */
    gboolean is_known = find_passwd(name, 0, &space, &buffer, &failed) != NULL;
    if (!is_known && !says_no_such_user(failed)) {
        set_unavailable(error, name, failed);
        return NULL;
    }
    groups = g_array_new(FALSE, TRUE, sizeof(guint32));
    if (!is_known) {
        guint32 group = gid;
        g_array_append_val(groups, group);
        return groups;
    }
    gid_t *found = g_new0(gid_t, BERTH_USER_GROUPS_MAX);
    int n = BERTH_USER_GROUPS_MAX;
    if (getgrouplist(name, gid, found, &n) < 0)
        n = BERTH_USER_GROUPS_MAX; /* more than that: the first ones */
    for (int i = 0; i < n; i++) {
        guint32 group = found[i];
        g_array_append_val(groups, group);
    }
    if (groups->len == 0) {
        guint32 group = gid;
        g_array_append_val(groups, group);
    }
    g_free(found);
    return groups;
}

/* --- on the loop ----------------------------------------------------------------------------- */

typedef struct {
    BerthUserNameFunc func;
    gpointer user_data;
} Asker;

typedef struct {
    BerthUsers *users;
    uid_t uid;
    GArray *askers; /* Asker */
} Lookup;

static gpointer look_up(gconstpointer input, GCancellable *cancellable, GError **error)
{
    return berth_user_name(*(const uid_t *)input, error);
}

static void remember(BerthUsers *users, uid_t uid, const char *name)
{
    if (g_hash_table_size(users->known) >= CACHE_MAX)
        g_hash_table_remove_all(users->known);
    Known *known = g_new0(Known, 1);
    known->name = g_strdup(name);
    known->until_usec = g_get_monotonic_time() + CACHE_USEC;
    g_hash_table_insert(users->known, GUINT_TO_POINTER(uid), known);
}

static void on_looked_up(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autofree Lookup *lookup = user_data;
    g_autoptr(GError) error = NULL;
    g_autofree char *name = berth_work_finish(result, &error);
    if (name)
        remember(lookup->users, lookup->uid, name);
    else
        name = g_strdup_printf("%u", (guint)lookup->uid);
    g_hash_table_remove(lookup->users->lookups, GUINT_TO_POINTER(lookup->uid));
    for (guint i = 0; i < lookup->askers->len; i++) {
        const Asker *asker = &g_array_index(lookup->askers, Asker, i);
        asker->func(name, error, asker->user_data);
    }
    g_array_unref(lookup->askers);
}

void berth_users_name(BerthUsers *users, uid_t uid, BerthUserNameFunc func, gpointer user_data)
{
    const Known *known = g_hash_table_lookup(users->known, GUINT_TO_POINTER(uid));
    if (known && known->until_usec > g_get_monotonic_time()) {
        g_autofree char *name = g_strdup(known->name);
        func(name, NULL, user_data);
        return;
    }
    Asker asker = {func, user_data};
    Lookup *lookup = g_hash_table_lookup(users->lookups, GUINT_TO_POINTER(uid));
    if (lookup) {
        g_array_append_val(lookup->askers, asker);
        return;
    }
    lookup = g_new0(Lookup, 1);
    *lookup = (Lookup){users, uid, g_array_new(FALSE, FALSE, sizeof(Asker))};
    g_array_append_val(lookup->askers, asker);
    g_hash_table_insert(users->lookups, GUINT_TO_POINTER(uid), lookup);
    uid_t *input = g_new(uid_t, 1);
    *input = uid;
    berth_workers_run_for(users->workers, BERTH_LANE_NAMES, uid, "look up a user", look_up, input,
                          g_free, g_free, LOOKUP_WAIT_MSEC, on_looked_up, lookup);
}
