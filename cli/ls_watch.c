/* SPDX-License-Identifier: Apache-2.0 */
/* Owns when a list is asked for again, and where it is shown. Does not know what is listed. Nothing is asked for while nothing
 * happens. */
#include "cli/ls_watch.h"

#include "cli/event_stream.h"
#include "cli/format.h"
#include "cli/table.h"
#include "cli/terminal.h"

#include <errno.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

/* Between two listings, however much happens, it is so many times as long as the last one took; within these. */
#define GAP_TIMES    10
#define GAP_MIN_USEC G_USEC_PER_SEC
#define GAP_MAX_USEC (60 * (gint64)G_USEC_PER_SEC)

typedef struct {
    BerthCli *cli;
    const BerthWatchedList *watched;
    gboolean has_screen;
    gboolean has_shown; /* a list */
    gboolean is_stale;  /* something has happened since it was asked for */
    gboolean is_over;
    gint64 next_usec; /* monotonic: not before then */
    guint timer;      /* that waits for it; 0 = none */
    guint sources[2]; /* keys and sizes of the screen; 0 = none */
} View;

/* --- keys and sizes of a screen ------------------------------------------------------------------ */

/* Whatever is being waited for: also for an answer, or for a daemon that is away. */
static void leave(View *view)
{
    view->is_over = view->cli->is_left = TRUE;
    if (view->cli->peer != NULL)
        berth_rpc_peer_close(view->cli->peer, TRUE);
}

/* It stops as any program does, and its terminal is as it was meanwhile. */
static void suspend(View *view)
{
    berth_terminal_restore();
    raise(SIGTSTP);
    view->is_over |= !berth_terminal_open_screen();
    view->is_stale = TRUE;
}

static gboolean on_keys(gint fd, GIOCondition condition, gpointer user_data)
{
    View *view = user_data;
    char keys[64];
    gssize n = read(fd, keys, sizeof keys);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return G_SOURCE_CONTINUE;
    gsize taken = 0, length = 0;
    while (n > 0 && (length = berth_key_length(keys + taken, (gsize)n - taken)) > 0) {
        view->is_over |= length == 1 && (keys[taken] == 'q' || keys[taken] == 'Q');
        if (length == 1 && keys[taken] == '\032')
            suspend(view);
        taken += length;
    }
    if (n <= 0)
        view->is_over = TRUE; /* nobody is there any more */
    if (view->is_over)
        leave(view);
    if (n > 0)
        return G_SOURCE_CONTINUE;
    view->sources[0] = 0;
    return G_SOURCE_REMOVE;
}

static gboolean on_sigwinch(gpointer user_data)
{
    View *view = user_data;
    view->is_stale = TRUE; /* more may fit, or less */
    return G_SOURCE_CONTINUE;
}

static void open_screen(View *view)
{
    view->has_screen = berth_terminal_open_screen();
    if (!view->has_screen)
        return;
    berth_terminal_end_by_signals();
    view->sources[0] = g_unix_fd_add(STDIN_FILENO, G_IO_IN | G_IO_HUP | G_IO_ERR, on_keys, view);
    view->sources[1] = g_unix_signal_add(SIGWINCH, on_sigwinch, view);
}

static void close_screen(View *view)
{
    for (gsize i = 0; i < G_N_ELEMENTS(view->sources); i++)
        g_clear_handle_id(&view->sources[i], g_source_remove);
    berth_terminal_restore();
}

/* --- a list --------------------------------------------------------------------------------------- */

/* What does not fit is left out; of lines the last one says how many. */
static void draw(View *view, const GPtrArray *lines)
{
    Berth__Terminal size = BERTH__TERMINAL__INIT;
    berth_terminal_describe(&size);
    guint rows = size.rows > 0 ? size.rows : 24, columns = size.columns > 0 ? size.columns : 80;
    guint n = lines->len <= rows ? lines->len : rows - 1;
    g_autoptr(GPtrArray) shown = g_ptr_array_new_with_free_func(g_free);
    for (guint i = 0; i < n; i++)
        g_ptr_array_add(shown, berth_text_cut(g_ptr_array_index(lines, i), columns));
    if (n < lines->len)
        g_ptr_array_add(shown, g_strdup_printf("(%u more)", lines->len - n));
    view->is_over |= !berth_terminal_draw(shown); /* nobody sees it any more */
}

static void print(View *view, const GPtrArray *lines)
{
    if (view->has_shown)
        putchar('\n');
    for (guint i = 0; i < lines->len; i++)
        puts(g_ptr_array_index(lines, i));
    fflush(stdout);
    view->is_over |= ferror(stdout) != 0;
}

static gboolean show(View *view, GError **error)
{
    const BerthWatchedList *watched = view->watched;
    gint64 asked_usec = g_get_monotonic_time();
    gboolean is_last = FALSE;
    view->is_stale = FALSE;
    g_autoptr(GPtrArray) lines =
        watched->list(berth_terminal_width(stdout), &is_last, watched->user_data, error);
    if (lines == NULL)
        return FALSE;
    if (!view->has_shown)
        open_screen(view); /* what the first list had to say on standard error is seen without it */
    g_ptr_array_insert(lines, 0, berth_format_time((guint64)g_get_real_time()));
    if (view->has_screen)
        draw(view, lines);
    else
        print(view, lines);
    view->has_shown = TRUE;
    view->is_over |= is_last;
    gint64 now_usec = g_get_monotonic_time();
    view->next_usec =
        now_usec + CLAMP(GAP_TIMES * (now_usec - asked_usec), GAP_MIN_USEC, GAP_MAX_USEC);
    return TRUE;
}

/* --- when ----------------------------------------------------------------------------------------- */

static gboolean on_event(const ProtobufCMessage *item, gpointer user_data)
{
    View *view = user_data;
    const Berth__Event *event = (const Berth__Event *)(const void *)item;
    view->is_stale |= event->kind != BERTH__EVENT__KIND__EXEC_BEGUN &&
                      event->kind != BERTH__EVENT__KIND__EXEC_ENDED &&
                      view->watched->concerns(event, view->watched->user_data);
    return TRUE;
}

static gboolean on_timer(gpointer user_data)
{
    ((View *)user_data)->timer = 0;
    return G_SOURCE_REMOVE;
}

/* For whatever comes first. */
static void pause_for(View *view, gint64 left_usec)
{
    if (view->is_stale && view->timer == 0)
        view->timer = g_timeout_add((guint)(left_usec / 1000 + 1), on_timer, view);
    g_main_context_iteration(NULL, TRUE);
    g_clear_handle_id(&view->timer, g_source_remove);
}

/* Until the stream ends, or all does. */
static gboolean follow(BerthCli *cli, View *view, guint64 after_seq, GError **error)
{
    BerthEventStream *stream =
        berth_event_stream_open(cli, after_seq, view->watched->jobs, on_event, view);
    gboolean ok = TRUE;
    while (ok && !view->is_over && berth_event_stream_is_open(stream)) {
        gint64 left_usec = view->next_usec - g_get_monotonic_time();
        if (view->is_stale && left_usec <= 0)
            ok = show(view, error);
        else
            pause_for(view, left_usec);
    }
    gboolean is_good = berth_event_stream_close(stream, ok && !view->is_over ? error : NULL);
    return ok && (is_good || view->is_over);
}

/* One connection's worth. The cursor is taken before the list, so that no event falls between the two. */
static gboolean attempt(BerthCli *cli, gpointer user_data, GError **error)
{
    View *view = user_data;
    while (!view->is_over) {
        Berth__ServerInfo *info = berth_cli_server_info(cli, error);
        if (info == NULL)
            return FALSE;
        guint64 last_seq = info->last_seq;
        berth__server_info__free_unpacked(info, NULL);
        if (!show(view, error) || !follow(cli, view, last_seq, error))
            return FALSE;
    }
    return TRUE;
}

gboolean berth_ls_watch(BerthCli *cli, const BerthWatchedList *watched, GError **error)
{
    View view = {.cli = cli, .watched = watched};
    gboolean ok = berth_cli_persist(cli, TRUE, attempt, &view, error);
    close_screen(&view);
    return ok;
}
