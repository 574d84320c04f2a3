/* SPDX-License-Identifier: Apache-2.0 */
/* Opening: what is made, who is kept out, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/unit/store_fixture.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <sqlite3.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static void run_sql(const char *path, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* A closed database with 500 jobs: some hundred pages. */
static void make_filled(const char *path)
{
    g_autoptr(BerthStore) store = store_open_ok(path);
    BerthStoreBatch *batch = berth_store_batch_new();
    for (guint64 job = 1; job <= 500; job++)
        store_batch_add_sample(batch, job, 1000, 7);
    store_commit_ok(store, batch);
}

static void open_absent_makes_private_file(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    g_autoptr(BerthStore) store = store_open_ok(fixture->path);
    struct stat status;
    assert_int_equal(stat(fixture->path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_true(status.st_size > 0);
}

static void open_left_over_new_file_is_replaced(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    g_autofree char *new_path = g_strconcat(fixture->path, ".new", NULL);
    assert_true(g_file_set_contents(new_path, "half", -1, NULL));
    g_autoptr(BerthStore) store = store_open_ok(fixture->path);
    assert_int_not_equal(g_access(new_path, F_OK), 0);
}

static void open_twice_is_refused_with_pid(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    BerthStore *store = store_open_ok(fixture->path);
    g_autofree char *pid = g_strdup_printf("(pid %ld)", (long)getpid());
    store_open_fails(fixture->path, BERTH_ERROR_FAILED_PRECONDITION, pid, fixture->path);
    berth_store_close(store);
    berth_store_close(store_open_ok(fixture->path));
}

static void open_twice_elsewhere_is_refused(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    g_autofree char *uri = g_strconcat("file:", fixture->path, NULL);
    g_autoptr(BerthStore) store = store_open_ok(uri);
    store_open_fails(uri, BERTH_ERROR_FAILED_PRECONDITION, "another berthd", uri);
}

static void open_missing_directory_is_not_found(void **state)
{
    store_open_fails("/nonexistent/berth/berth.db", BERTH_ERROR_NOT_FOUND, "/nonexistent/berth",
                     "must exist");
}

static void open_directory_is_refused(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    assert_int_equal(g_mkdir(fixture->path, 0700), 0);
    store_open_fails(fixture->path, BERTH_ERROR_INVALID_ARGUMENT, "not a file", fixture->path);
}

static void open_unwritable_is_permission_denied(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    berth_store_close(store_open_ok(fixture->path));
    gboolean is_root = geteuid() == 0;
    assert_int_equal(chmod(fixture->directory, 0755), 0);
    g_autofree char *lock_path = g_strconcat(fixture->path, ".lock", NULL);
    assert_int_equal(chmod(lock_path, is_root ? 0666 : 0600), 0);
    assert_int_equal(chmod(fixture->path, is_root ? 0600 : 0), 0);
    if (is_root)
        assert_int_equal(seteuid(65534), 0);
    store_open_fails(fixture->path, BERTH_ERROR_PERMISSION_DENIED, fixture->path, "");
    assert_int_equal(chmod(lock_path, 0), is_root ? -1 : 0);
    if (is_root)
        assert_int_equal(seteuid(0), 0);
}

static void open_unwritable_directory_is_permission_denied(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    gboolean is_root = geteuid() == 0;
    assert_int_equal(chmod(fixture->directory, 0500), 0);
    if (is_root)
        assert_int_equal(seteuid(65534), 0);
    store_open_fails(fixture->path, BERTH_ERROR_PERMISSION_DENIED, fixture->path, "writable");
    if (is_root)
        assert_int_equal(seteuid(0), 0);
    assert_int_equal(chmod(fixture->directory, 0700), 0);
}

static void open_text_file_is_data_loss(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    g_autofree char *text = g_strnfill(10000, 'x');
    assert_true(g_file_set_contents(fixture->path, text, -1, NULL));
    store_open_fails(fixture->path, BERTH_ERROR_DATA_LOSS, fixture->path, "backup");
}

static void open_emptied_file_is_data_loss(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    make_filled(fixture->path);
    assert_int_equal(truncate(fixture->path, 0), 0);
    store_open_fails(fixture->path, BERTH_ERROR_DATA_LOSS, "empty", "backup");
}

static void open_truncated_file_is_data_loss(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    make_filled(fixture->path);
    struct stat status;
    assert_int_equal(stat(fixture->path, &status), 0);
    assert_int_equal(truncate(fixture->path, status.st_size / 2), 0);
    store_open_fails(fixture->path, BERTH_ERROR_DATA_LOSS, fixture->path, ".recover");
}

static void open_garbage_inside_is_data_loss(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    make_filled(fixture->path);
    struct stat status;
    assert_int_equal(stat(fixture->path, &status), 0);
    int fd = g_open(fixture->path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    g_autofree char *garbage = g_strnfill(16384, (char)0xa5);
    assert_int_equal(pwrite(fd, garbage, 16384, status.st_size / 2), 16384);
    assert_int_equal(close(fd), 0);
    store_open_fails(fixture->path, BERTH_ERROR_DATA_LOSS, fixture->path, ".recover");
}

static void open_other_database_is_data_loss(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    run_sql(fixture->path, "CREATE TABLE t (a)");
    store_open_fails(fixture->path, BERTH_ERROR_DATA_LOSS, "not Berth's", fixture->path);
}

static void open_newer_schema_names_both_versions(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    berth_store_close(store_open_ok(fixture->path));
    run_sql(fixture->path, "PRAGMA user_version = 4711");
    g_autofree char *ours = g_strdup_printf("up to %d", BERTH_STORE_SCHEMA_VERSION);
    store_open_fails(fixture->path, BERTH_ERROR_FAILED_PRECONDITION, "schema 4711", ours);
    /* Nothing was changed by the refusal. */
    store_open_fails(fixture->path, BERTH_ERROR_FAILED_PRECONDITION, "schema 4711", ours);
}

static void open_schema_zero_is_data_loss(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    berth_store_close(store_open_ok(fixture->path));
    run_sql(fixture->path, "PRAGMA user_version = 0");
    store_open_fails(fixture->path, BERTH_ERROR_DATA_LOSS, "schema 0", "backup");
}

/* A check of a large database takes longer than a manager waits for a start. */
static void open_tells_the_manager_that_it_makes_progress(void **state)
{
    g_autoptr(StoreFixture) fixture = store_fixture_new();
    g_autofree char *path = g_build_filename(fixture->directory, "manager", NULL);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char text[64] = "";
    make_filled(fixture->path);
    g_strlcpy(address.sun_path, path, sizeof address.sun_path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    g_setenv("NOTIFY_SOCKET", path, TRUE);
    berth_store_close(store_open_ok(fixture->path));
    g_unsetenv("NOTIFY_SOCKET");
    assert_true(recv(fd, text, sizeof text - 1, MSG_DONTWAIT) > 0);
    assert_string_equal(text, "EXTEND_TIMEOUT_USEC=60000000");
    /* Once for a short one. */
    assert_int_equal(recv(fd, text, sizeof text - 1, MSG_DONTWAIT), -1);
    close(fd);
    g_unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_absent_makes_private_file),
        cmocka_unit_test(open_left_over_new_file_is_replaced),
        cmocka_unit_test(open_twice_is_refused_with_pid),
        cmocka_unit_test(open_twice_elsewhere_is_refused),
        cmocka_unit_test(open_missing_directory_is_not_found),
        cmocka_unit_test(open_directory_is_refused),
        cmocka_unit_test(open_unwritable_is_permission_denied),
        cmocka_unit_test(open_unwritable_directory_is_permission_denied),
        cmocka_unit_test(open_text_file_is_data_loss),
        cmocka_unit_test(open_emptied_file_is_data_loss),
        cmocka_unit_test(open_truncated_file_is_data_loss),
        cmocka_unit_test(open_garbage_inside_is_data_loss),
        cmocka_unit_test(open_other_database_is_data_loss),
        cmocka_unit_test(open_newer_schema_names_both_versions),
        cmocka_unit_test(open_schema_zero_is_data_loss),
        cmocka_unit_test(open_tells_the_manager_that_it_makes_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
