/* SPDX-License-Identifier: Apache-2.0 */
/* A process of its own takes the signals; what it logs says what it made of them. */
#include "tests/lib/assert.h"

#include <gio/gio.h>
#include <signal.h>
#include <unistd.h>

#include "common/daemon_signals.h"

#define DEADLINE_SEC 60u

/* --- the process ---------------------------------------------------------------------------- */

static guint reads;

static gboolean read_level(const char *path, BerthLogLevel *out_level, GError **error)
{
    reads++;
    if (g_str_equal(path, "bad")) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "%s: no such level", path);
        return FALSE;
    }
    *out_level = BERTH_LOG_DEBUG;
    return TRUE;
}

static gboolean on_asked(gpointer signal_number)
{
    kill(getpid(), GPOINTER_TO_INT(signal_number));
    return G_SOURCE_REMOVE;
}

/* A daemon with the configuration PATH that is told to look at it again, then to end by NUMBER. */
static int run_daemon(const char *path, int number)
{
    alarm(DEADLINE_SEC);
    berth_log_init("testd", BERTH_LOG_NOTICE);
    g_autoptr(GMainLoop) loop = g_main_loop_new(NULL, FALSE);
    g_autoptr(BerthDaemonSignals) signals = berth_daemon_signals_new(loop, path, read_level);
    kill(getpid(), SIGHUP);
    while (reads == 0)
        g_main_context_iteration(NULL, TRUE);
    g_debug("more than before");
    g_idle_add(on_asked, GINT_TO_POINTER(number));
    g_main_loop_run(loop);
    return 3;
}

/* --- what it does --------------------------------------------------------------------------- */

/* Runs this program again as a daemon; (transfer full) its stderr. */
static char *run(const char *path, int number)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *text_of_number = g_strdup_printf("%d", number);
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDERR_PIPE);
    g_subprocess_launcher_unsetenv(launcher, "G_DEBUG");
    g_subprocess_launcher_unsetenv(launcher, "JOURNAL_STREAM");
    g_autoptr(GSubprocess) child =
        g_subprocess_launcher_spawn(launcher, NULL, self, path, text_of_number, NULL);
    g_autofree char *text = NULL;
    assert_non_null(child);
    assert_true(g_subprocess_communicate_utf8(child, NULL, NULL, NULL, &text, NULL));
    assert_true(g_subprocess_get_if_exited(child));
    assert_int_equal(g_subprocess_get_exit_status(child), 3);
    return g_steal_pointer(&text);
}

static void terminating_signals_quit_the_loop(void **state)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    for (gsize i = 0; i < G_N_ELEMENTS(numbers); i++) {
        g_autofree char *text = run("good", numbers[i]);
        assert_non_null(strstr(text, "notice: ending as asked"));
    }
}

static void hangup_takes_the_log_level(void **state)
{
    g_autofree char *text = run("good", SIGTERM);
    assert_non_null(strstr(text, "notice: took the log level from good"));
    assert_non_null(strstr(text, "debug: more than before"));
}

static void hangup_with_a_bad_configuration_changes_nothing(void **state)
{
    g_autofree char *text = run("bad", SIGTERM);
    assert_non_null(strstr(text, "warning: the configuration is left as it was: bad: no such"));
    assert_null(strstr(text, "more than before"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terminating_signals_quit_the_loop),
        cmocka_unit_test(hangup_takes_the_log_level),
        cmocka_unit_test(hangup_with_a_bad_configuration_changes_nothing),
    };
    if (argc > 2)
        return run_daemon(argv[1], (int)g_ascii_strtoll(argv[2], NULL, 10));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
