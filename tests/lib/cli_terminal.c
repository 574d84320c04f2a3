/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the terminal that a test's `berth` runs on (tests/lib/cli_terminal.h). */
#include "tests/lib/cli_terminal.h"

#include "tests/lib/assert.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

CliTerminal cli_terminal_start(const char *socket, const char *words)
{
    g_autofree char *script =
        g_strdup_printf("cat >inner <<'EOF'\n"
                        "ulimit -c 0; export TERM=xterm; stty rows 30 cols 120; stty -g >before\n"
                        "sh -c 'echo $$ >pid; exec \"$BERTH\" %s'\n"
                        "s=$?; stty -g >after; cmp before after && echo \"status $s\"\nEOF\n"
                        "script -qc 'sh inner' /dev/null <keys",
                        words);
    CliTerminal terminal = {.dir = g_path_get_dirname(socket)};
    g_autofree char *keys = g_build_filename(terminal.dir, "keys", NULL);
    g_unlink(keys);
    assert_int_equal(mkfifo(keys, 0600), 0);
    terminal.keys = open(keys, O_RDWR | O_CLOEXEC);
    assert_true(terminal.keys >= 0);
    terminal.cli = cli_start_program(socket, (const char *const[]){"sh", "-c", script, NULL}, NULL);
    return terminal;
}

void cli_terminal_type(const CliTerminal *terminal, const char *keys)
{
    assert_int_equal(write(terminal->keys, keys, strlen(keys)), (ssize_t)strlen(keys));
}

void cli_terminal_signal(const CliTerminal *terminal, int number)
{
    g_autofree char *path = g_build_filename(terminal->dir, "pid", NULL);
    g_autofree char *pid = NULL;
    assert_true(g_file_get_contents(path, &pid, NULL, NULL));
    assert_int_equal(kill((pid_t)g_ascii_strtoll(pid, NULL, 10), number), 0);
}

const char *cli_terminal_screen(CliTerminal *terminal)
{
    const char *screen = g_strrstr(cli_out(terminal->cli), "\033[H");
    return screen != NULL ? screen : "";
}

guint cli_terminal_n_screens(CliTerminal *terminal)
{
    guint n = 0;
    for (const char *at = cli_out(terminal->cli); (at = strstr(at, "\033[H")) != NULL; at++)
        n++;
    return n;
}

void cli_terminal_assert_ended(CliTerminal *terminal, const char *status)
{
    assert_cli_status(terminal->cli, 0);
    assert_contains(cli_out(terminal->cli), "\033[?1049l");
    assert_contains(cli_out(terminal->cli), status);
}

void cli_terminal_clear(CliTerminal *terminal)
{
    close(terminal->keys);
    g_free(terminal->dir);
    cli_free(terminal->cli);
}
