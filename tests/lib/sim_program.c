/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/sim_program.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

void said_free(Said *said)
{
    g_free(said->out);
    g_free(said->err);
    g_free(said);
}

/* Puts what it writes into files: it never waits for who reads it. */
static char *taken(const char *path)
{
    g_autoptr(GError) error = NULL;
    char *text = NULL;
    g_file_get_contents(path, &text, NULL, &error);
    assert_no_error(error);
    unlink(path);
    return text;
}

Said *sim_program(const char *dir, const char *arguments)
{
    Said *said = g_new0(Said, 1);
    int wait_status, argc;
    struct rusage usage;
    GPid pid;
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) argv = NULL;
    g_autofree char *program = g_canonicalize_filename(g_getenv("top_builddir"), NULL);
    g_autofree char *line = g_strdup_printf("'%s/berth-sim' --quiet %s", program, arguments);
    g_autofree char *out = g_strdup_printf("%s.out", dir);
    g_autofree char *err = g_strdup_printf("%s.err", dir);
    int out_fd = g_open(out, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    int err_fd = g_open(err, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(out_fd >= 0 && err_fd >= 0);
    assert_true(g_shell_parse_argv(line, &argc, &argv, NULL));
    g_spawn_async_with_fds(dir, argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD, NULL, NULL, &pid, -1, out_fd,
                           err_fd, &error);
    assert_no_error(error);
    close(out_fd);
    close(err_fd);
    assert_int_equal(wait4(pid, &wait_status, 0, &usage), pid);
    said->status =
        WIFSIGNALED(wait_status) ? 128 + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
    said->peak_kib = usage.ru_maxrss;
    said->out = taken(out);
    said->err = taken(err);
    return said;
}
