/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the mode of the terminal, and which keys are for this program. Invariant: what ends this program by a
 * signal, and can be caught, leaves the terminal as it was. */
#include "cli/terminal.h"

#include "common/error.h"
#include "common/write.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios before;
static gboolean is_raw;
static volatile sig_atomic_t has_screen;

/* The alternate screen of xterm, which all terminals of today know, and no cursor; and back. */
#define SCREEN_ENTER "\033[?1049h\033[?25l\033[H\033[2J"
#define SCREEN_LEAVE "\033[?25h\033[?1049l"

/* Of those that end this program, and of which the loop does not know: it is ended by it all the same. */
static const int deadly[] = {SIGQUIT, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGPIPE, SIGXCPU};

static void on_deadly(int number)
{
    if (has_screen)
        (void)!write(STDOUT_FILENO, SCREEN_LEAVE, strlen(SCREEN_LEAVE));
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &before);
    (void)raise(number); /* when this returns, and as by default */
}

static void catch_each(const int *signals, gsize n_signals)
{
    struct sigaction action = {.sa_handler = on_deadly, .sa_flags = (int)SA_RESETHAND}, old;
    sigemptyset(&action.sa_mask);
    for (gsize i = 0; i < n_signals; i++) {
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
            (void)sigaction(signals[i], &action, NULL);
    }
}

static void catch_deadly(void)
{
    catch_each(deadly, G_N_ELEMENTS(deadly));
}

void berth_terminal_end_by_signals(void)
{
    static const int asking[] = {SIGHUP, SIGINT, SIGTERM};
    catch_each(asking, G_N_ELEMENTS(asking));
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

gboolean berth_terminal_open_screen(void)
{
    const char *type = g_getenv("TERM");
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || type == NULL ||
        g_str_equal(type, "dumb") || tcgetattr(STDIN_FILENO, &before) != 0)
        return FALSE;
    struct termios keys = before;
    keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    keys.c_cc[VMIN] = 1;
    keys.c_cc[VTIME] = 0;
    keys.c_cc[VSUSP] = keys.c_cc[VQUIT] = _POSIX_VDISABLE; /* ^Z is this program's own affair */
    catch_deadly();
    if (tcsetattr(STDIN_FILENO, TCSADRAIN, &keys) != 0)
        return FALSE;
    is_raw = has_screen = TRUE;
    return berth_write_all(STDOUT_FILENO, SCREEN_ENTER, strlen(SCREEN_ENTER));
}

/* In one piece, over what is there: nothing flickers. */
gboolean berth_terminal_draw(const GPtrArray *lines)
{
    g_autoptr(GString) screen = g_string_new("\033[H");
    for (guint i = 0; i < lines->len; i++)
        g_string_append_printf(screen, "%s%s\033[K", i > 0 ? "\r\n" : "",
                               (const char *)g_ptr_array_index(lines, i));
    g_string_append(screen, "\033[J");
    return berth_write_all(STDOUT_FILENO, screen->str, screen->len);
}

void berth_terminal_restore(void)
{
    if (has_screen)
        (void)berth_write_all(STDOUT_FILENO, SCREEN_LEAVE, strlen(SCREEN_LEAVE));
    has_screen = FALSE;
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

/* Sequences as ECMA-48 has them: ESC [, then parameters and one byte from @ on; and ESC O and one byte. */
gsize berth_key_length(const char *keys, gsize length)
{
    if (length < 2 || keys[0] != '\033' || (keys[1] != '[' && keys[1] != 'O'))
        return MIN(length, 1);
    gsize end = 2;
    while (keys[1] == '[' && end < MIN(length, BERTH_KEY_MAX) && keys[end] >= ' ' &&
           keys[end] < '@')
        end++;
    if (end == BERTH_KEY_MAX)
        return end;
    return end < length ? end + 1 : 0;
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
