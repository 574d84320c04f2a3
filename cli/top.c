/* SPDX-License-Identifier: Apache-2.0 */
/* berth top: what the cluster does now. On a terminal a screen that is drawn anew every so often, and sooner when
 * the daemon's events say that something has changed; else once, as text. Asks for no more than is shown. However
 * this program ends, its terminal is as it was. */
#include "cli/cli.h"

#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/top_order.h"
#include "cli/top_view.h"
#include "common/error.h"
#include "common/message.h"

#include <errno.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define INTERVAL_MIN_SEC 0.5
#define INTERVAL_MAX_SEC 3600.0
/* Between two listings, however much happens, it is so many times as long as the last one took; within these. */
#define GAP_TIMES    10
#define GAP_MSEC     500u
#define GAP_MAX_MSEC 5000u
#define TIMEOUT_MSEC 30000u
#define PAGE         500u

typedef struct {
    BerthCli *cli;
    BerthTopLook look;
    char *node, *user; /* or NULL */
    guint interval_msec;
    char keys[4 * BERTH_KEY_MAX]; /* that were typed, and not taken yet */
    gsize n_keys;
    GMainLoop *loop;
    Berth__TopReply *reply; /* newest, or NULL */
    char *note;             /* why there is none newer, or NULL */
    guint tick;             /* the source that asks next, 0 = none */
    gboolean is_asking;
    gboolean asks_again;       /* something has changed since it was asked */
    gint64 asked_usec;         /* monotonic */
    gint64 took_usec;          /* until the last answer came */
    GCancellable *cancellable; /* of the watch, and of what is asked */
    BerthRpcPeer *watched;     /* where the watch is; its own reference */
    GError *error;             /* the end of it all */
} Top;

static Berth__TopRequest request_of(const Top *top, guint n_nodes, guint n_guests)
{
    Berth__TopRequest request = BERTH__TOP_REQUEST__INIT;
    request.order = top->look.order;
    request.node_limit = n_nodes;
    request.guest_limit = n_guests;
    request.node_skip = top->look.node_skip;
    request.guest_skip = top->look.guest_skip;
    if (top->node != NULL)
        request.node = top->node;
    if (top->user != NULL)
        request.user = top->user;
    return request;
}

static void free_reply(Berth__TopReply *reply)
{
    berth__top_reply__free_unpacked(reply, NULL);
}

/* --- once --------------------------------------------------------------------------------------- */

static Berth__TopReply *ask(const Top *top, guint32 node_skip, guint32 guest_skip, GError **error)
{
    Berth__TopRequest request = request_of(top, PAGE, PAGE);
    request.order = BERTH__TOP_REQUEST__ORDER__BY_NAME; /* any other changes between two pages */
    request.node_skip = node_skip;
    request.guest_skip = guest_skip;
    return (Berth__TopReply *)berth_cli_call(top->cli, &berth__nodes__descriptor, "Top",
                                             &request.base, error);
}

/* All nodes and guests, page by page; what comes and goes meanwhile may be missing. */
static Berth__TopReply *ask_for_all(const Top *top, GError **error)
{
    Berth__TopReply *all = ask(top, 0, 0, error);
    guint32 nodes = all != NULL ? (guint32)all->n_nodes : 0;
    guint32 guests = all != NULL ? (guint32)all->n_guests : 0;
    gboolean is_over = FALSE;
    while (all != NULL && !is_over && (nodes < all->nodes_total || guests < all->guests_total)) {
        Berth__TopReply *page = ask(top, nodes, guests, error);
        if (page == NULL) {
            g_clear_pointer(&all, free_reply);
            break;
        }
        is_over = page->n_nodes + page->n_guests == 0;
        nodes += (guint32)page->n_nodes;
        guests += (guint32)page->n_guests;
        berth_top_add_page(all, page);
        free_reply(page);
    }
    return all;
}

static gboolean print_once(Top *top, GError **error)
{
    top->reply = ask_for_all(top, error);
    if (top->reply == NULL)
        return FALSE;
    berth_top_put_in_order(top->reply, top->look.order);
    if (top->cli->json) {
        berth_cli_print_json(&top->reply->base);
        return TRUE;
    }
    top->look.width = berth_terminal_width(stdout);
    g_autoptr(GPtrArray) lines = berth_top_lines(top->reply, &top->look);
    for (guint i = 0; i < lines->len; i++)
        puts(g_ptr_array_index(lines, i));
    return TRUE;
}

/* --- the screen --------------------------------------------------------------------------------- */

static void leave(Top *top, GError *error)
{
    if (top->error == NULL)
        top->error = error;
    else
        g_clear_error(&error);
    g_main_loop_quit(top->loop);
}

static void draw(Top *top)
{
    static Berth__TopReply nothing = BERTH__TOP_REPLY__INIT;
    Berth__Terminal size = BERTH__TERMINAL__INIT;
    berth_terminal_describe(&size);
    top->look.width = size.columns > 0 ? size.columns : 80;
    top->look.height = size.rows > 0 ? size.rows : 24;
    top->look.note = top->note != NULL ? top->note : top->reply == NULL ? "asking berthd" : NULL;
    g_autoptr(GPtrArray) lines =
        berth_top_lines(top->reply != NULL ? top->reply : &nothing, &top->look);
    if (!berth_terminal_draw(lines))
        leave(top, NULL); /* nobody sees it any more */
}

static gboolean on_tick(gpointer user_data);

static void ask_in(Top *top, guint msec)
{
    g_clear_handle_id(&top->tick, g_source_remove);
    top->tick = g_timeout_add(msec, on_tick, top);
}

static guint gap_msec(const Top *top)
{
    return (guint)CLAMP(GAP_TIMES * top->took_usec / 1000, GAP_MSEC, GAP_MAX_MSEC);
}

/* At once, unless it was asked just now. */
static void ask_soon(Top *top)
{
    gint64 passed_msec = (g_get_monotonic_time() - top->asked_usec) / 1000;
    guint gap = gap_msec(top);
    if (top->is_asking)
        top->asks_again = TRUE;
    else
        ask_in(top, passed_msec >= gap ? 0 : gap - (guint)passed_msec);
}

static void take_reply(Top *top, Berth__TopReply *reply)
{
    g_clear_pointer(&top->note, g_free);
    g_clear_pointer(&top->reply, free_reply);
    top->reply = reply;
    gboolean are_fewer = (top->look.guest_skip > 0 && reply->n_guests == 0) ||
                         (top->look.node_skip > 0 && reply->n_nodes == 0);
    if (are_fewer) {
        top->look.node_skip = top->look.guest_skip = 0;
        ask_soon(top);
    }
}

static void on_reply(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Top *top = user_data;
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *reply = berth_rpc_peer_call_finish(result, &error);
    top->is_asking = FALSE;
    if (g_cancellable_is_cancelled(top->cancellable)) { /* it ends: nobody wants to know any more */
        g_clear_pointer(&reply, berth_message_free);
        return;
    }
    if (reply != NULL) {
        top->took_usec = g_get_monotonic_time() - top->asked_usec;
        take_reply(top, (Berth__TopReply *)(void *)reply);
    } else if (g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE) ||
               g_error_matches(error, BERTH_ERROR, BERTH_ERROR_DEADLINE_EXCEEDED)) {
        g_free(top->note);
        top->note = g_strdup_printf("trying again: %s", error->message);
    } else {
        leave(top, g_steal_pointer(&error));
        return;
    }
    draw(top);
    if (reply != NULL && top->asks_again)
        ask_soon(top);
    if (top->tick == 0)
        ask_in(top, MAX(top->interval_msec, gap_msec(top)));
}

/* --- what happens ------------------------------------------------------------------------------- */

static gboolean on_event(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__Event *event = (const Berth__Event *)(const void *)item;
    if (event->kind != BERTH__EVENT__KIND__EXEC_BEGUN &&
        event->kind != BERTH__EVENT__KIND__EXEC_ENDED)
        ask_soon(user_data);
    return TRUE;
}

/* It is watched again with the next connection. */
static void on_watch_ended(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Top *top = user_data;
    berth_rpc_peer_stream_finish(result, NULL);
    g_clear_pointer(&top->watched, berth_rpc_peer_unref);
}

static void watch(Top *top)
{
    Berth__WatchRequest request = BERTH__WATCH_REQUEST__INIT;
    request.from_now = TRUE;
    if (top->watched != NULL)
        return;
    top->watched = berth_rpc_peer_ref(top->cli->peer);
    berth_rpc_peer_stream_async(top->watched, &berth__jobs__descriptor, "Watch", &request.base, 0,
                                top->cancellable, on_event, on_watch_ended, top);
}

static gboolean on_tick(gpointer user_data)
{
    Top *top = user_data;
    g_autoptr(GError) error = NULL;
    top->tick = 0;
    if (top->is_asking)
        return G_SOURCE_REMOVE;
    top->is_asking = TRUE; /* what is pressed while it connects waits */
    top->asks_again = FALSE;
    top->asked_usec = g_get_monotonic_time();
    if (!berth_cli_connect(top->cli, &error)) {
        top->is_asking = FALSE;
        g_free(top->note);
        top->note = g_strdup_printf("trying again: %s", error->message);
        draw(top);
        ask_in(top, MAX(top->interval_msec, GAP_MSEC));
        return G_SOURCE_REMOVE;
    }
    watch(top);
    Berth__Terminal size = BERTH__TERMINAL__INIT;
    berth_terminal_describe(&size);
    guint rows = size.rows > 0 ? size.rows : 24;
    Berth__TopRequest request = request_of(top, rows, rows);
    berth_rpc_peer_call_async(top->cli->peer, &berth__nodes__descriptor, "Top", &request.base,
                              TIMEOUT_MSEC, top->cancellable, on_reply, top);
    return G_SOURCE_REMOVE;
}

/* --- keys and signals --------------------------------------------------------------------------- */

/* What is on the screen now. */
static void pages_of(const Top *top, guint *out_nodes, guint *out_guests)
{
    *out_nodes = *out_guests = 0;
    if (top->reply != NULL)
        berth_top_share(top->look.height, (guint)top->reply->n_nodes, (guint)top->reply->n_guests,
                        out_nodes, out_guests);
}

static guint moved(guint skip, gint by, guint32 total)
{
    return (guint)CLAMP((gint64)skip + by, 0, total > 0 ? (gint64)total - 1 : 0);
}

static void move_guests_by(Top *top, gint by)
{
    guint32 total = top->reply != NULL ? top->reply->guests_total : 0;
    top->look.guest_skip = moved(top->look.guest_skip, by, total);
    ask_soon(top);
}

static void page_guests(Top *top, gint direction)
{
    guint nodes, guests;
    pages_of(top, &nodes, &guests);
    move_guests_by(top, direction * ((gint)MAX(guests, 2) - 1));
}

static void page_nodes(Top *top, gint direction)
{
    guint nodes, guests;
    guint32 total = top->reply != NULL ? top->reply->nodes_total : 0;
    pages_of(top, &nodes, &guests);
    guint last =
        total > nodes ? total - nodes : 0; /* where the last page begins, as full as the others */
    top->look.node_skip =
        MIN(moved(top->look.node_skip, direction * (gint)MAX(nodes, 1), total), last);
    ask_soon(top);
}

/* It stops as any program does, and its terminal is as it was meanwhile. */
static void suspend(Top *top)
{
    berth_terminal_restore();
    raise(SIGTSTP);
    if (berth_terminal_open_screen())
        draw(top);
    else
        leave(top, NULL);
}

static void take_key(Top *top, const char *key)
{
    Berth__TopRequest__Order order;
    if (*key == 'q' || *key == 'Q') {
        leave(top, NULL);
    } else if (*key == '\032') {
        suspend(top);
    } else if (*key == ' ' || g_str_equal(key, "\033[6~")) {
        page_guests(top, 1);
    } else if (g_str_equal(key, "\033[5~")) {
        page_guests(top, -1);
    } else if (*key == '>') {
        page_nodes(top, 1);
    } else if (*key == '<') {
        page_nodes(top, -1);
    } else if (g_str_equal(key, "\033[A") || g_str_equal(key, "\033OA")) {
        move_guests_by(top, -1);
    } else if (g_str_equal(key, "\033[B") || g_str_equal(key, "\033OB")) {
        move_guests_by(top, 1);
    } else if (berth_top_order_of_key(*key, &order)) {
        top->look.order = order;
        top->look.node_skip = top->look.guest_skip = 0;
        ask_soon(top);
    }
}

static void take_keys(Top *top)
{
    gsize length = 0, taken = 0;
    while ((length = berth_key_length(top->keys + taken, top->n_keys - taken)) > 0) {
        char key[BERTH_KEY_MAX + 1] = {0};
        memcpy(key, top->keys + taken, length);
        taken += length;
        take_key(top, key);
    }
    top->n_keys -= taken;
    memmove(top->keys, top->keys + taken, top->n_keys);
}

/* Several may come in one piece, and the last of them without its end. */
static gboolean on_keys(gint fd, GIOCondition condition, gpointer user_data)
{
    Top *top = user_data;
    gssize n = read(fd, top->keys + top->n_keys, sizeof top->keys - top->n_keys);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return G_SOURCE_CONTINUE;
    if (n <= 0) {
        leave(top, NULL); /* its terminal is gone */
        return G_SOURCE_REMOVE;
    }
    top->n_keys += (gsize)n;
    take_keys(top);
    return G_SOURCE_CONTINUE;
}

static gboolean on_signal(gpointer user_data)
{
    leave(user_data, NULL);
    return G_SOURCE_CONTINUE;
}

static gboolean on_sigwinch(gpointer user_data)
{
    Top *top = user_data;
    draw(top);
    ask_soon(top); /* more may fit */
    return G_SOURCE_CONTINUE;
}

/* What was begun ends before what it would tell is gone. */
static void settle(Top *top)
{
    g_cancellable_cancel(top->cancellable);
    while (top->is_asking || top->watched != NULL)
        g_main_context_iteration(NULL, TRUE);
}

static void run(Top *top)
{
    guint sources[] = {
        g_unix_signal_add(SIGINT, on_signal, top), g_unix_signal_add(SIGTERM, on_signal, top),
        g_unix_signal_add(SIGHUP, on_signal, top), g_unix_signal_add(SIGWINCH, on_sigwinch, top),
        g_unix_fd_add(STDIN_FILENO, G_IO_IN | G_IO_HUP | G_IO_ERR, on_keys, top)};
    top->loop = g_main_loop_new(NULL, FALSE);
    top->cancellable = g_cancellable_new();
    draw(top);
    ask_in(top, 0);
    g_main_loop_run(top->loop);
    for (gsize i = 0; i < G_N_ELEMENTS(sources); i++)
        if (g_main_context_find_source_by_id(NULL, sources[i]) != NULL)
            g_source_remove(sources[i]);
    settle(top);
    g_clear_handle_id(&top->tick, g_source_remove);
    g_clear_object(&top->cancellable);
    g_clear_pointer(&top->loop, g_main_loop_unref);
}

/* --- the verb ----------------------------------------------------------------------------------- */

static gboolean has_guests(const Top *top, GError **error)
{
    Berth__TopRequest request = request_of(top, 0, 0);
    Berth__TopReply *reply = (Berth__TopReply *)berth_cli_call(top->cli, &berth__nodes__descriptor,
                                                               "Top", &request.base, error);
    gboolean has_any = reply != NULL && reply->guests_total > 0;
    g_clear_pointer(&reply, free_reply);
    return has_any;
}

/* Of a user whom there is not there are no guests, as of any other that has none: who is known is found out by a list. One
 * that has guests need not be known any more, and who the others are is not known while the user database does not answer. */
static gboolean check_user(const Top *top, GError **error)
{
    Berth__ListJobsRequest request = BERTH__LIST_JOBS_REQUEST__INIT;
    g_autoptr(GError) local = NULL;
    if (top->user == NULL || *top->user == '\0' || has_guests(top, &local))
        return TRUE;
    request.user = top->user;
    request.limit = 1;
    Berth__ListJobsReply *reply =
        local == NULL ? (Berth__ListJobsReply *)berth_cli_call(top->cli, &berth__jobs__descriptor,
                                                               "List", &request.base, &local)
                      : NULL;
    if (reply != NULL)
        berth__list_jobs_reply__free_unpacked(reply, NULL);
    if (local == NULL || g_error_matches(local, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&local));
    return FALSE;
}

static gboolean show(Top *top, gboolean once, GError **error)
{
    if (!berth_cli_connect(top->cli, error) || !check_user(top, error))
        return FALSE;
    if (once || top->cli->json || !berth_terminal_open_screen())
        return print_once(top, error);
    top->look.has_keys = TRUE;
    run(top);
    berth_terminal_restore();
    if (top->error == NULL)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&top->error));
    return FALSE;
}

gboolean berth_cli_top(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    g_autofree char *sort = NULL, *node = NULL, *user = NULL;
    gboolean once = FALSE;
    gdouble interval = 2;
    Top top = {.cli = cli};
    const GOptionEntry entries[] = {
        {"interval", 'i', 0, G_OPTION_ARG_DOUBLE, &interval,
         "Ask so often at least; 2 unless said otherwise", "SECONDS"},
        {"sort", 's', 0, G_OPTION_ARG_STRING, &sort,
         "By cpu (unless said otherwise), memory, pressure, time, move or name", "KEY"},
        {"node", 'n', 0, G_OPTION_ARG_STRING, &node, "This node and its guests alone", "NODE"},
        {"user", 'u', 0, G_OPTION_ARG_STRING, &user, "Guests of this user's alone", "USER"},
        {"once", '1', 0, G_OPTION_ARG_NONE, &once, "Print all of it once, as text", NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Once, as one JSON object", NULL},
        {NULL}};
    if (!berth_cli_parse(
            &argc, &argv, entries, "",
            "Shows nodes and guests: what they have, reserve, are predicted to need and use; "
            "where guests\nare, what they lack and why they were moved last. On a terminal until q "
            "is pressed, with the\nkeys c, m, p, t, v and n for the order; else once.",
            NULL, out_status, error))
        return FALSE;
    if (argc > 1)
        return berth_cli_usage_error(out_status, error, "\"%s\" is one argument too many", argv[1]);
    if (!berth_top_order_find(sort != NULL ? sort : "cpu", &top.look.order))
        return berth_cli_usage_error(
            out_status, error,
            "--sort: \"%s\" is none of cpu, memory, pressure, time, move and name", sort);
    if (!(interval >= INTERVAL_MIN_SEC && interval <= INTERVAL_MAX_SEC))
        return berth_cli_usage_error(out_status, error, "--interval: from %.1f to %.0f seconds",
                                     INTERVAL_MIN_SEC, INTERVAL_MAX_SEC);
    top.interval_msec = (guint)(interval * 1000);
    top.node = node;
    top.user = user;
    gboolean ok = show(&top, once, error);
    g_clear_pointer(&top.reply, free_reply);
    g_free(top.note);
    return ok;
}
