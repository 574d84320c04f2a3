/* SPDX-License-Identifier: Apache-2.0 */
/* A store that can write no more: says so, keeps saying so, and has lost nothing. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/store_fixture.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <unistd.h>

/* Commits jobs until that fails; gives the number of the last one that was acknowledged. */
static guint64 fill(BerthStore *store, GError **error)
{
    for (guint64 job = 1; job < 100000; job++) {
        BerthStoreBatch *batch = berth_store_batch_new();
        store_batch_add_sample(batch, job, 1000, 0);
        if (!store_commit(store, batch, error))
            return job - 1;
    }
    fail_msg("it never gets full");
    return 0;
}

static void assert_all_there(BerthStore *store, guint64 last)
{
    BerthStoreQuery query = {.after_job = 0, .limit = 10000, .any_uid = TRUE};
    guint64 seen = 0;
    gboolean more = TRUE;
    while (more) {
        query.after_job = seen;
        g_autoptr(GError) error = NULL;
        g_autoptr(GPtrArray) jobs = berth_store_list_jobs(store, &query, &more, &error);
        if (jobs == NULL)
            fail_msg("list: %s", error->message);
        for (guint i = 0; i < jobs->len; i++) {
            const Berth__Job *job = g_ptr_array_index(jobs, i);
            assert_int_equal(job->id, seen + 1);
            assert_int_equal(job->n_tasks, 1);
            seen = job->id;
        }
    }
    assert_int_equal(seen, last);
}

/* Fills PATH, expects CODE and REMEDY now and ever after; MAKE_ROOM lifts the limit. */
static void fill_and_recover(const char *path, int code, const char *remedy,
                             void (*make_room)(void))
{
    BerthStore *store = store_open_ok(path);
    g_autoptr(GError) first = NULL;
    g_autoptr(GError) second = NULL;
    guint64 last = fill(store, &first);
    make_room();
    assert_true(last > 10);
    if (!g_error_matches(first, BERTH_ERROR, code))
        fail_msg("%s", first->message);
    assert_non_null(strstr(first->message, path));
    assert_non_null(strstr(first->message, remedy));
    assert_all_there(store, last);
    /* Even with room again: what the caller has in memory is not what is here. */
    BerthStoreBatch *batch = berth_store_batch_new();
    store_batch_add_sample(batch, last + 1, 1000, 0);
    assert_false(store_commit(store, batch, &second));
    assert_string_equal(first->message, second->message);
    berth_store_close(store);

    store = store_open_ok(path);
    assert_all_there(store, last);
    batch = berth_store_batch_new();
    store_batch_add_sample(batch, last + 1, 1000, 0);
    store_commit_ok(store, batch);
    berth_store_close(store);
}

/* --- files that may not grow ---------------------------------------------------------------- */

static struct rlimit old_limit;

static void lift_limit(void)
{
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old_limit), 0);
}

static void commit_beyond_file_limit_is_unavailable(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old_limit), 0);
    struct rlimit limit = {1024 * 1024, old_limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    fill_and_recover(fixture->path, BERTH_ERROR_UNAVAILABLE, "file size limit", lift_limit);
}

/* --- a full file system --------------------------------------------------------------------- */

static char *tmpfs_path;

static void enlarge_tmpfs(void)
{
    assert_int_equal(mount("none", tmpfs_path, NULL, MS_REMOUNT, "size=64m"), 0);
}

static void commit_on_full_disk_is_resource_exhausted(void **state)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        print_message("skipped: mounting needs root\n");
        skip();
    }
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    tmpfs_path = fixture->directory;
    assert_int_equal(mount("none", tmpfs_path, "tmpfs", 0, "size=2m"), 0);
    fill_and_recover(fixture->path, BERTH_ERROR_RESOURCE_EXHAUSTED, "make room", enlarge_tmpfs);
    assert_int_equal(umount2(tmpfs_path, MNT_DETACH), 0);
}

static void open_on_full_disk_is_resource_exhausted(void **state)
{
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        print_message("skipped: mounting needs root\n");
        skip();
    }
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    assert_int_equal(mount("none", fixture->directory, "tmpfs", 0, "size=16k"), 0);
    store_open_fails(fixture->path, BERTH_ERROR_RESOURCE_EXHAUSTED, fixture->path, "make room");
    /* Nothing half made is taken for a state later. */
    assert_int_not_equal(access(fixture->path, F_OK), 0);
    assert_int_equal(umount2(fixture->directory, MNT_DETACH), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(commit_beyond_file_limit_is_unavailable),
        cmocka_unit_test(commit_on_full_disk_is_resource_exhausted),
        cmocka_unit_test(open_on_full_disk_is_resource_exhausted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
