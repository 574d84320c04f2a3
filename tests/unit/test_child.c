/* SPDX-License-Identifier: Apache-2.0 */
/* What the fixtures rely on: a test program that ends takes its children along. */
#include "tests/lib/assert.h"
#include "tests/lib/child.h"

/* Longer than the deadline of a test; nobody waits for it. */
#define LONG_TIME "600"

/* A test program that fails: it leaves a child behind, which has its standard output too. */
static int leave_child(void)
{
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_NONE);
    child_bind(launcher);
    g_autoptr(GSubprocess) child =
        g_subprocess_launcher_spawn(launcher, NULL, "sleep", LONG_TIME, NULL);
    return child != NULL ? 3 : 4;
}

static void on_end_of_output(GObject *source, GAsyncResult *result, gpointer has_ended)
{
    *(gboolean *)has_ended =
        g_subprocess_communicate_finish(G_SUBPROCESS(source), result, NULL, NULL, NULL);
}

static void bound_child_ends_with_its_parent(void **state)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autoptr(GSubprocess) parent =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE, NULL, self, "leave", NULL);
    gboolean has_ended = FALSE;
    assert_non_null(parent);
    /* The output ends when nobody has it open any more. */
    g_subprocess_communicate_async(parent, NULL, NULL, on_end_of_output, &has_ended);
    run_until(has_ended);
    assert_int_equal(g_subprocess_get_exit_status(parent), 3);
}

/* The parent is gone before the child could ask for its signal. */
static void bound_child_of_another_parent_ends_at_once(void **state)
{
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_NONE);
    g_subprocess_launcher_set_child_setup(launcher, child_die_with, GINT_TO_POINTER(getppid()),
                                          NULL);
    g_autoptr(GSubprocess) child =
        g_subprocess_launcher_spawn(launcher, NULL, "sleep", LONG_TIME, NULL);
    assert_non_null(child);
    assert_true(g_subprocess_wait(child, NULL, NULL));
    assert_int_equal(g_subprocess_get_exit_status(child), 127);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bound_child_ends_with_its_parent),
        cmocka_unit_test(bound_child_of_another_parent_ends_at_once),
    };
    if (argc > 1)
        return leave_child();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
