/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"
#include "tests/lib/tempdir.h"

#include "images/init/etc.h"

#include <glib/gstdio.h>
#include <unistd.h>

static void write_text(const char *directory, const char *file, const char *text)
{
    g_autofree char *path = g_build_filename(directory, file, NULL);

    if (text == NULL)
        (void)g_unlink(path);
    else
        assert_true(g_file_set_contents(path, text, -1, NULL));
}

static void assert_text(const char *directory, const char *file, const char *expected)
{
    g_autofree char *path = g_build_filename(directory, file, NULL);
    g_autofree char *text = NULL;

    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    assert_string_equal(text, expected);
}

#define ROOT "root:x:0:0:root:/root:/bin/sh\n"

static void etc_add_user_cases(void **state)
{
    static const struct {
        const char *before; /* NULL: no file */
        unsigned uid;
        const char *name;
        const char *home;
        const char *after;
    } cases[] = {
        {ROOT, 0, "root", "/work", ROOT},
        {ROOT, 7, "bob", "/work", ROOT "bob:x:7:8::/work:/bin/sh\n"},
        {NULL, 7, "bob", "/work", "bob:x:7:8::/work:/bin/sh\n"},
        {"a:x:1:1:::", 7, "bob", "/work", "a:x:1:1:::\nbob:x:7:8::/work:/bin/sh\n"},
        {"x:x:77:7:::\n", 7, "bob", "/work", "x:x:77:7:::\nbob:x:7:8::/work:/bin/sh\n"},
        {"img:x:7:9:::\n", 7, "bob", "/work", "img:x:7:9:::\n"}, /* the image's user stays */
        {"", 7, "", "/work", "u7:x:7:8::/work:/bin/sh\n"},
        {"", 7, "a:b", "/w", "u7:x:7:8::/w:/bin/sh\n"},
        {"", 7, "a\nroot", "/w", "u7:x:7:8::/w:/bin/sh\n"},
        {"", 7, "bob", "/a:b", "bob:x:7:8::/:/bin/sh\n"},
        {"broken\n:::\n", 7, "bob", "/w", "broken\n:::\nbob:x:7:8::/w:/bin/sh\n"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Fault fault = {0};

        write_text(*state, "passwd", cases[i].before);
        assert_true(etc_add_user(*state, cases[i].uid, 8, cases[i].name, cases[i].home, &fault));
        assert_text(*state, "passwd", cases[i].after);
    }
}

static void etc_add_group_cases(void **state)
{
    static const struct {
        const char *before;
        unsigned gid;
        const char *name;
        const char *after;
    } cases[] = {
        {"root:x:0:\n", 0, "root", "root:x:0:\n"},
        {"root:x:0:\n", 5, "bob", "root:x:0:\nbob:x:5:\n"},
        {"bob:x:6:\n", 5, "bob", "bob:x:6:\ng5:x:5:\n"}, /* the name is another's */
        {"", 5, "", "g5:x:5:\n"},
        {NULL, 5, "bob", "bob:x:5:\n"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Fault fault = {0};

        write_text(*state, "group", cases[i].before);
        assert_true(etc_add_group(*state, cases[i].gid, cases[i].name, &fault));
        assert_text(*state, "group", cases[i].after);
    }
}

static void etc_add_host_cases(void **state)
{
    static const struct {
        const char *before;
        const char *name;
        const char *after;
    } cases[] = {
        {NULL, "job-1", "127.0.0.1 localhost\n127.0.1.1 job-1\n"},
        {"127.0.0.1\tlocalhost\n", "job-1", "127.0.0.1\tlocalhost\n127.0.1.1 job-1\n"},
        {"::1 localhost job-1\n", "job-1", "::1 localhost job-1\n"},
        {"1.2.3.4 job-12 # job-1\n127.0.0.1 localhost\n", "job-1",
         "1.2.3.4 job-12 # job-1\n127.0.0.1 localhost\n127.0.1.1 job-1\n"},
        {"127.0.0.1 localhost\n", "a b", "127.0.0.1 localhost\n"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Fault fault = {0};

        write_text(*state, "hosts", cases[i].before);
        assert_true(etc_add_host(*state, cases[i].name, &fault));
        assert_text(*state, "hosts", cases[i].after);
    }
}

static void etc_find_user_reads_name_and_home(void **state)
{
    EtcUser user;

    write_text(*state, "passwd", ROOT "bob:x:7:8:Bob B.:/home/bob:/bin/bash\nshort:x:9\n");
    assert_true(etc_find_user(*state, 7, &user));
    assert_string_equal(user.name, "bob");
    assert_string_equal(user.home, "/home/bob");
    assert_false(etc_find_user(*state, 8, &user));
    assert_false(etc_find_user(*state, 9, &user)); /* has no home */
}

static void etc_add_user_through_a_link_is_refused(void **state)
{
    g_autofree char *target = g_build_filename(*state, "target", NULL);
    g_autofree char *link = g_build_filename(*state, "passwd", NULL);
    Fault fault = {0};

    write_text(*state, "target", ROOT);
    assert_int_equal(symlink(target, link), 0);
    assert_false(etc_add_user(*state, 7, 8, "bob", "/work", &fault));
    assert_non_null(strstr(fault.text, "passwd"));
    assert_text(*state, "target", ROOT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(etc_add_user_cases, tempdir_make, tempdir_remove),
        cmocka_unit_test_setup_teardown(etc_add_group_cases, tempdir_make, tempdir_remove),
        cmocka_unit_test_setup_teardown(etc_add_host_cases, tempdir_make, tempdir_remove),
        cmocka_unit_test_setup_teardown(etc_find_user_reads_name_and_home, tempdir_make,
                                        tempdir_remove),
        cmocka_unit_test_setup_teardown(etc_add_user_through_a_link_is_refused, tempdir_make,
                                        tempdir_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
