/* SPDX-License-Identifier: Apache-2.0 */
/* A user database that answers, that knows no such user, and that does not answer. */
#include "tests/lib/assert.h"

#include "scheduler/daemon/users.h"

#include <errno.h>
#include <pwd.h>

static int fault;           /* errno of the database; 0 = it answers */
static const char *present; /* the user that it knows; NULL = none */

static int answer(struct passwd *space, struct passwd **out_found)
{
    *out_found = NULL;
    if (fault != 0 || !present) {
        return fault;
    }
    *space = (struct passwd){.pw_name = (char *)present, .pw_uid = 4711, .pw_gid = 4711};
    *out_found = space;
    return 0;
}

int __wrap_getpwuid_r(uid_t uid, struct passwd *space, char *buffer, size_t size,
                      struct passwd **out_found);
int __wrap_getpwuid_r(uid_t uid, struct passwd *space, char *buffer, size_t size,
                      struct passwd **out_found)
{
    return answer(space, out_found);
}

int __wrap_getpwnam_r(const char *name, struct passwd *space, char *buffer, size_t size,
                      struct passwd **out_found);
int __wrap_getpwnam_r(const char *name, struct passwd *space, char *buffer, size_t size,
                      struct passwd **out_found)
{
    return answer(space, out_found);
}

static const int silent[] = {EIO, ETIMEDOUT, EAGAIN, ECONNREFUSED, EMFILE, ENOMEM};
static const int absent[] = {0, ENOENT, ESRCH, EBADF, EPERM};

static void user_name_of_a_known_user_is_found(void **state)
{
    g_autoptr(GError) error = NULL;
    fault = 0;
    present = "somebody";
    g_autofree char *name = berth_user_name(4711, &error);
    assert_no_error(error);
    assert_string_equal(name, "somebody");
}

static void user_name_without_an_entry_is_its_number(void **state)
{
    present = NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(absent); i++) {
        g_autoptr(GError) error = NULL;
        fault = absent[i];
        g_autofree char *name = berth_user_name(4711, &error);
        assert_no_error(error);
        assert_string_equal(name, "4711");
    }
}

static void user_name_without_an_answer_fails(void **state)
{
    present = "somebody";
    for (gsize i = 0; i < G_N_ELEMENTS(silent); i++) {
        g_autoptr(GError) error = NULL;
        fault = silent[i];
        assert_null(berth_user_name(4711, &error));
        assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "try again");
    }
}

static void user_groups_without_an_answer_fail(void **state)
{
    g_autoptr(GError) error = NULL;
    present = "somebody";
    fault = EIO;
    assert_null(berth_user_groups("somebody", 4711, &error));
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "somebody");
}

static void user_groups_of_who_has_no_name_are_its_own(void **state)
{
    g_autoptr(GError) error = NULL;
    present = NULL;
    fault = 0;
    g_autoptr(GArray) groups = berth_user_groups("4711", 99, &error);
    assert_no_error(error);
    assert_int_equal(groups->len, 1);
    assert_int_equal(g_array_index(groups, guint32, 0), 99);
}

static void user_uid_tells_absence_from_silence(void **state)
{
    uid_t uid = 0;
    g_autoptr(GError) no_user = NULL;
    g_autoptr(GError) no_answer = NULL;
    present = NULL;
    fault = 0;
    assert_false(berth_user_uid("nobody-here", &uid, &no_user));
    assert_berth_error(no_user, BERTH_ERROR_NOT_FOUND, "nobody-here");
    fault = ETIMEDOUT;
    assert_false(berth_user_uid("nobody-here", &uid, &no_answer));
    assert_berth_error(no_answer, BERTH_ERROR_UNAVAILABLE, "nobody-here");
}

typedef struct {
    char *name;
    GError *error;
    guint calls;
} Answer;

static void on_name(const char *name, const GError *error, gpointer user_data)
{
    Answer *got = user_data;
    got->calls++;
    g_free(got->name);
    got->name = g_strdup(name);
    g_clear_error(&got->error);
    got->error = error ? g_error_copy(error) : NULL;
}

static void users_name_that_failed_is_asked_for_again(void **state)
{
    g_autoptr(BerthWorkers) workers = berth_workers_new();
    g_autoptr(BerthUsers) users = berth_users_new(workers);
    Answer got = {0};
    present = "somebody";
    fault = EIO;
    berth_users_name(users, 4711, on_name, &got);
    run_until(got.calls == 1);
    assert_berth_error(got.error, BERTH_ERROR_UNAVAILABLE, "4711");
    assert_string_equal(got.name, "4711");
    fault = 0;
    berth_users_name(users, 4711, on_name, &got);
    run_until(got.calls == 2);
    assert_null(got.error);
    assert_string_equal(got.name, "somebody");
    /* It is remembered: the database is not needed for it now. */
    fault = EIO;
    berth_users_name(users, 4711, on_name, &got);
    assert_int_equal(got.calls, 3);
    assert_null(got.error);
    g_free(got.name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(user_name_of_a_known_user_is_found),
        cmocka_unit_test(user_name_without_an_entry_is_its_number),
        cmocka_unit_test(user_name_without_an_answer_fails),
        cmocka_unit_test(user_groups_without_an_answer_fail),
        cmocka_unit_test(user_groups_of_who_has_no_name_are_its_own),
        cmocka_unit_test(user_uid_tells_absence_from_silence),
        cmocka_unit_test(users_name_that_failed_is_asked_for_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
