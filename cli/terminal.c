/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the mode of the terminal, and which keys are for this program. Invariant: what ends this program by a
 * signal, and can be caught, leaves the terminal as it was. */
#include "cli/terminal.h"

#include "common/error.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios before;
static gboolean is_raw;

/* Of those that end this program, and of which the loop does not know: it is ended by it all the same. */
static const int deadly[] = {SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGPIPE, SIGXCPU};

static void on_deadly(int number)
{
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
    (void)raise(number); /* when this returns, and as by default */
}

static void catch_deadly(void)
{
    struct sigaction action = {.sa_handler = on_deadly, .sa_flags = (int)SA_RESETHAND}, old;
    sigemptyset(&action.sa_mask);
    for (gsize i = 0; i < G_N_ELEMENTS(deadly); i++) {
        if (sigaction(deadly[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            (void)sigaction(deadly[i], &action, NULL);
    }
}

gboolean berth_terminal_make_raw(GError **error)
{
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
        g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                            "standard input and output are no terminal, which this needs; without "
                            "one `berth exec` passes them on as they are");
        return FALSE;
    }
    if (tcgetattr(STDIN_FILENO, &before) == 0) {
        struct termios raw = before;
        cfmakeraw(&raw);
        catch_deadly();
        if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0)
            return is_raw = TRUE;
    }
    berth_set_error_errno(error, errno, "cannot set the mode of the terminal");
    return FALSE;
}

void berth_terminal_restore(void)
{
    if (is_raw)
        (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    is_raw = FALSE;
}

void berth_terminal_describe(Berth__Terminal *out_terminal)
{
    struct winsize size = {0};
    const char *type = g_getenv("TERM");
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        out_terminal->rows = size.ws_row;
        out_terminal->columns = size.ws_col;
    }
    if (type != NULL && g_utf8_validate(type, -1, NULL))
        out_terminal->type = (char *)type;
}

gboolean berth_escape_take(BerthEscape *escape, const guint8 *typed, gsize length, guint8 *out,
                           gsize *out_length)
{
    *out_length = 0;
    for (gsize i = 0; i < length; i++) {
        guint8 key = typed[i];
        if (escape->has_tilde && key == '.')
            return TRUE;
        if (escape->at_start && !escape->has_tilde && key == '~') {
            escape->has_tilde = TRUE;
            continue;
        }
        if (escape->has_tilde && key != '~')
            out[(*out_length)++] = '~';
        out[(*out_length)++] = key;
        escape->has_tilde = FALSE;
        escape->at_start = key == '\r' || key == '\n';
    }
    return FALSE;
}
