/* SPDX-License-Identifier: Apache-2.0 */
/* The store on RADOS: the same database through Ceph's VFS, with a Ceph cluster of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/child.h"
#include "tests/unit/store_fixture.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STATE_URI "file:///berth:berthd/state.db?vfs=ceph"

static char *directory;

/* Runs lab/lib/ceph-cluster; gives its exit status. */
static int lab_ceph(const char *const *arguments)
{
    const char *top = g_getenv("top_srcdir");
    g_autofree char *program =
        g_build_filename(top != NULL ? top : ".", "lab", "lib", "ceph-cluster", NULL);
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_autoptr(GError) error = NULL;
    g_ptr_array_add(argv, program);
    for (; *arguments != NULL; arguments++)
        g_ptr_array_add(argv, (gpointer)*arguments);
    g_ptr_array_add(argv, NULL);
    g_autoptr(GSubprocess) process = g_subprocess_newv((const char *const *)argv->pdata,
                                                       G_SUBPROCESS_FLAGS_STDOUT_SILENCE, &error);
    if (process == NULL || !g_subprocess_wait(process, NULL, &error)) {
        print_message("cannot run %s: %s\n", program, error->message);
        return 77;
    }
    return g_subprocess_get_if_exited(process) ? g_subprocess_get_exit_status(process) : 1;
}

static gboolean start_ceph(void)
{
    g_autofree char *pid = g_strdup_printf("%ld", (long)getpid());
    directory = g_dir_make_tmp("berth-ceph-XXXXXX", NULL);
    g_assert_nonnull(directory);
    int status =
        lab_ceph((const char *const[]){"start", directory, "--size", "2", "--with", pid, NULL});
    if (status == 77)
        return FALSE;
    g_assert_cmpint(status, ==, 0);
    g_autofree char *conf = g_build_filename(directory, "ceph.conf", NULL);
    g_setenv("CEPH_CONF", conf, TRUE);
    g_setenv("CEPH_ARGS", "--id berth", TRUE);
    return TRUE;
}

static void store_on_rados_keeps_what_was_committed(void **state)
{
    BerthStore *store = store_open_ok(STATE_URI);
    g_autofree char *text = g_strnfill(60000, 'x');
    g_autoptr(GBytes) content = g_bytes_new(text, 60000);
    guint8 digest[32];
    memset(digest, 7, sizeof digest);
    BerthStoreBatch *batch = berth_store_batch_new();
    berth_store_batch_put_blob(batch, digest, content);
    for (guint64 job = 1; job <= 1000; job++)
        store_batch_add_sample(batch, job, 1000, 7);
    store_commit_ok(store, batch);
    berth_store_close(store);

    store = store_open_ok(STATE_URI);
    gboolean more = TRUE;
    BerthStoreQuery query = {.limit = 10000, .any_uid = TRUE};
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) jobs = berth_store_list_jobs(store, &query, &more, &error);
    assert_non_null(jobs);
    assert_int_equal(jobs->len, 1000);
    assert_false(more);
    g_autoptr(GBytes) found = berth_store_get_blob(store, digest, &error);
    assert_non_null(found);
    assert_true(g_bytes_equal(found, content));
    berth_store_close(store);
}

static gboolean write_copy(GBytes *content, guint64 offset, gpointer stream, GError **error)
{
    gsize length = 0;
    const void *data = g_bytes_get_data(content, &length);
    assert_int_equal(fseek(stream, (long)offset, SEEK_SET), 0);
    assert_int_equal(fwrite(data, 1, length, stream), length);
    return TRUE;
}

/* What `.restore` of sqlite3(1) does. */
static void put_back(const char *path, const char *uri)
{
    sqlite3 *from = NULL, *to = NULL;
    assert_int_equal(sqlite3_open_v2(path, &from, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_open_v2(uri, &to,
                                     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_URI,
                                     NULL),
                     SQLITE_OK);
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");
    assert_non_null(backup);
    assert_int_equal(sqlite3_backup_step(backup, -1), SQLITE_DONE);
    assert_int_equal(sqlite3_backup_finish(backup), SQLITE_OK);
    assert_int_equal(sqlite3_close(to), SQLITE_OK);
    assert_int_equal(sqlite3_close(from), SQLITE_OK);
}

/* Nobody but berthd can open its state there. */
static void backup_of_a_store_on_rados_is_a_file_and_can_be_put_back(void **state)
{
    static const char uri[] = "file:///berth:berthd/put-back.db?vfs=ceph";
    g_autoptr(GError) error = NULL;
    BerthStoreBackupState done = {0};
    g_autofree char *path = g_build_filename(directory, "backup.db", NULL);
    FILE *stream = fopen(path, "we");
    assert_non_null(stream);
    g_autoptr(BerthStore) store = store_open_ok(STATE_URI);
    BerthStoreBackup *backup = berth_store_backup_begin(store, &error);
    assert_non_null(backup);
    for (guint64 job = 1001; !done.is_done; job++) {
        assert_true(berth_store_backup_step(backup, write_copy, stream, &done, &error));
        BerthStoreBatch *batch = berth_store_batch_new();
        store_batch_add_sample(batch, job, 1000, 7);
        store_commit_ok(store, batch);
    }
    berth_store_backup_free(backup);
    assert_int_equal(fclose(stream), 0);
    const char *const paths[] = {path, uri};
    put_back(path, uri);
    for (gsize i = 0; i < G_N_ELEMENTS(paths); i++) {
        g_autoptr(BerthStore) copy = store_open_ok(paths[i]);
        Berth__Job *job = berth_store_get_job(copy, 1000, &error);
        assert_non_null(job);
        berth__job__free_unpacked(job, NULL);
    }
}

/* The child that has the state open: says so on its stdout, and waits to be killed. */
G_NORETURN static void hold(void)
{
    store_open_ok(STATE_URI);
    if (write(STDOUT_FILENO, "!", 1) != 1)
        _exit(1);
    for (;;)
        pause();
}

static char *self_path;

static void store_on_rados_is_refused_while_held_and_taken_from_the_dead(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE);
    child_bind(launcher);
    g_autoptr(GSubprocess) child =
        g_subprocess_launcher_spawn(launcher, &error, self_path, "--hold", NULL);
    assert_non_null(child);
    char ready = 0;
    assert_int_equal(
        g_input_stream_read(g_subprocess_get_stdout_pipe(child), &ready, 1, NULL, &error), 1);
    store_open_fails(STATE_URI, BERTH_ERROR_FAILED_PRECONDITION, "another berthd", STATE_URI);
    g_subprocess_force_exit(child);
    assert_true(g_subprocess_wait(child, NULL, &error));
    g_autoptr(BerthStore) store = store_open_ok(STATE_URI);
    Berth__Job *job = berth_store_get_job(store, 1000, &error);
    assert_non_null(job);
    berth__job__free_unpacked(job, NULL);
}

/* What is missing is a package, not a property of the store. */
static gboolean has_vfs(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthStore) store = berth_store_open(STATE_URI, &error);
    gboolean is_missing = g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNSUPPORTED);
    if (is_missing)
        print_message("%s\n", error->message);
    return !is_missing;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--hold") == 0)
        hold();
    self_path = argv[0];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_on_rados_keeps_what_was_committed),
        cmocka_unit_test(backup_of_a_store_on_rados_is_a_file_and_can_be_put_back),
        cmocka_unit_test(store_on_rados_is_refused_while_held_and_taken_from_the_dead),
    };
    if (!start_ceph())
        return 77;
    int status = has_vfs() ? cmocka_run_group_tests(tests, NULL, NULL) : 77;
    lab_ceph((const char *const[]){"stop", directory, NULL});
    g_free(directory);
    return status;
}
