/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Children that do not outlive their test program, also when a test fails and nobody ends them. */

#include <gio/gio.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

/* In the child, before it becomes another program. PARENT: the pid of the test program, which may be
 * gone already. Signals do what they do by default, whatever the test program was started with: who runs in
 * the background of a script has some ignored, and a shell cannot undo that. */
static inline void child_die_with(gpointer parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGHUP, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    signal(SIGQUIT, SIG_DFL);
    if (getppid() != GPOINTER_TO_INT(parent))
        _exit(127);
}

/* What LAUNCHER starts from now on is killed when the calling thread ends. It takes the place of
 * another child setup. */
static inline void child_bind(GSubprocessLauncher *launcher)
{
    g_subprocess_launcher_set_child_setup(launcher, child_die_with, GINT_TO_POINTER(getpid()),
                                          NULL);
}

/* ASAN_OPTIONS for a sanitized one that is not to look for leaks (transfer full); NULL with BERTH_TEST_FULL=1, where each does. */
static inline char *child_options_without_leak_check(void)
{
    const char *options = g_getenv("ASAN_OPTIONS");
    if (g_strcmp0(g_getenv("BERTH_TEST_FULL"), "1") == 0)
        return NULL;
    return g_strconcat("detect_leaks=0:", options != NULL ? options : "", NULL);
}
