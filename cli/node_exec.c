/* SPDX-License-Identifier: Apache-2.0 */
/* berth node exec: a command on the hosts of nodes, side by side. What each writes comes line by line, with the
 * node's name before it; how each ended is summed up at the end. */
#include "cli/node_exec.h"

#include "cli/exec_client.h"
#include "cli/node_change.h"
#include "common/error.h"
#include "common/node_list.h"
#include "common/write.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* So many at once: berthd lets one user have 64. */
#define SIDE_BY_SIDE 32u
/* A line that is longer is cut there. */
#define LINE_MAX_BYTES 16384u

typedef struct {
    GMainLoop *loop;
    BerthCli *cli;
    char **names;
    Berth__ExecRequest request;
    guint n;
    guint next;
    guint running;
    GPtrArray *nodes;  /* Node, all that were begun */
    GString *failures; /* "n1 (status 2), n7 (...)" */
    guint n_failed;
    GError *error;     /* of this program's own: the commands are ended */
    GPtrArray *failed; /* their names, unless NULL */
    GPtrArray *lost;   /* names of those whose agent went away meanwhile; NULL: these have failed */
} Run;

typedef struct {
    Run *run;
    const char *name;
    gboolean has_begun;
    BerthExecClient *client;
    GString *line[2]; /* begun, and not ended yet */
} Node;

static void node_free(gpointer data)
{
    Node *node = data;
    berth_exec_client_free(node->client);
    g_string_free(node->line[0], TRUE);
    g_string_free(node->line[1], TRUE);
    g_free(node);
}

/* --- output ---------------------------------------------------------------------------------- */

/* A reader that is gone ends this program, and with it the commands, by SIGPIPE or here. */
static void print_line(const Node *node, guint stream, const char *line, gsize length)
{
    g_autoptr(GString) text = g_string_new(node->name);
    g_string_append(text, ": ");
    g_string_append_len(text, line, (gssize)length);
    g_string_append_c(text, '\n');
    Run *run = node->run;
    if (run->error != NULL ||
        berth_write_all(stream == 1 ? STDERR_FILENO : STDOUT_FILENO, text->str, text->len))
        return;
    berth_set_error_errno(&run->error, errno, "cannot write what node %s says, and ended all",
                          node->name);
    g_main_loop_quit(run->loop);
}

static void on_output(gboolean is_stderr, const guint8 *data, gsize length, gpointer user_data)
{
    Node *node = user_data;
    GString *line = node->line[is_stderr ? 1 : 0];
    g_string_append_len(line, (const char *)data, (gssize)length);
    gsize begin = 0;
    for (;;) {
        const char *end = memchr(line->str + begin, '\n', line->len - begin);
        gsize size = end != NULL ? (gsize)(end - line->str) - begin : line->len - begin;
        if (end == NULL && size < LINE_MAX_BYTES)
            break;
        size = MIN(size, LINE_MAX_BYTES);
        print_line(node, is_stderr, line->str + begin, size);
        begin += size + (begin + size < line->len && line->str[begin + size] == '\n');
    }
    g_string_erase(line, 0, (gssize)begin);
}

/* --- the end of each ------------------------------------------------------------------------- */

static void begin_more(Run *run);

static void note_failure(Run *run, const char *name, const char *how)
{
    g_string_append_printf(run->failures, "%s%s (%s)", run->n_failed > 0 ? ", " : "", name, how);
    run->n_failed++;
    if (run->failed != NULL)
        g_ptr_array_add(run->failed, (char *)name);
}

/* The connection to its agent ended before it did, and so nobody knows how it ended, or whether. */
static gboolean is_lost(const Node *node, const GError *error)
{
    return node->run->lost != NULL && node->has_begun &&
           g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE) &&
           !berth_rpc_peer_is_closed(node->run->cli->peer);
}

static void on_ended(const Berth__Exit *exit, const GError *error, gpointer user_data)
{
    Node *node = user_data;
    Run *run = node->run;
    for (guint i = 0; i < 2; i++) {
        if (node->line[i]->len > 0)
            print_line(node, i, node->line[i]->str, node->line[i]->len);
        g_string_truncate(node->line[i], 0);
    }
    if (exit == NULL && is_lost(node, error)) {
        g_ptr_array_add(run->lost, (char *)node->name);
    } else if (exit == NULL) {
        fprintf(stderr, "%s: %s: %s\n", g_get_prgname(), node->name, error->message);
        note_failure(run, node->name, node->has_begun ? "did not run to its end" : "did not run");
    } else if (exit->status != 0 || exit->signal != 0) {
        g_autofree char *how = exit->signal != 0 ? g_strdup_printf("signal %u", exit->signal)
                                                 : g_strdup_printf("status %u", exit->status);
        note_failure(run, node->name, how);
    }
    run->running--;
    begin_more(run);
}

static void on_begun(gpointer user_data)
{
    Node *node = user_data;
    node->has_begun = TRUE;
    berth_exec_client_input(node->client, NULL, 0, TRUE);
}

static void on_taken(gpointer user_data)
{
    /* It has no more input. */
}

static void begin_more(Run *run)
{
    static const BerthExecClientFuncs funcs = {on_begun, on_output, on_taken, on_ended};
    while (run->next < run->n && run->running < SIDE_BY_SIDE) {
        Node *node = g_new0(Node, 1);
        node->run = run;
        node->name = run->names[run->next++];
        node->line[0] = g_string_new(NULL);
        node->line[1] = g_string_new(NULL);
        g_ptr_array_add(run->nodes, node);
        run->running++;
        run->request.node = (char *)node->name;
        node->client = berth_exec_client_new(run->cli->peer, &run->request, &funcs, node);
    }
    if (run->running == 0)
        g_main_loop_quit(run->loop);
}

static gboolean run_all(Run *run, GError **error)
{
    run->loop = g_main_loop_new(NULL, FALSE);
    run->nodes = g_ptr_array_new_with_free_func(node_free);
    run->failures = g_string_new(NULL);
    begin_more(run);
    g_main_loop_run(run->loop);
    gboolean ok = run->error == NULL && run->n_failed == 0;
    if (run->error != NULL)
        g_propagate_error(error, g_steal_pointer(&run->error));
    else if (run->n_failed > 0 && run->failed != NULL) /* some of those that the caller has */
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION, "the command failed on %s",
                    run->failures->str);
    else if (run->n_failed > 0)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "failed on %u of %u nodes: %s", run->n_failed, run->n, run->failures->str);
    g_ptr_array_unref(run->nodes);
    g_string_free(run->failures, TRUE);
    g_main_loop_unref(run->loop);
    return ok;
}

gboolean berth_cli_exec_on_nodes(BerthCli *cli, char **names, char **command, const char *reason,
                                 GPtrArray *failed, GPtrArray *lost, GError **error)
{
    Run run = {
        .cli = cli, .names = names, .n = g_strv_length(names), .failed = failed, .lost = lost};
    berth__exec_request__init(&run.request);
    run.request.command = command;
    run.request.n_command = g_strv_length(command);
    if (reason != NULL)
        run.request.reason = (char *)reason;
    return berth_cli_connect(cli, error) && run_all(&run, error);
}

static gboolean check_nodes(BerthCli *cli, gpointer user_data, GError **error)
{
    for (char **name = user_data; *name != NULL; name++) {
        Berth__Node *node = berth_cli_get_node(cli, *name, error);
        if (node == NULL)
            return FALSE;
        berth__node__free_unpacked(node, NULL);
    }
    return TRUE;
}

/* --- the verb -------------------------------------------------------------------------------- */

gboolean berth_cli_node_exec(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    g_autofree char *reason = NULL;
    const GOptionEntry entries[] = {
        {"reason", 'r', 0, G_OPTION_ARG_STRING, &reason, "Why, for operators", "TEXT"}, {NULL}};
    if (!berth_cli_parse_command(
            &argc, &argv, entries, "NODES [--] COMMAND [ARGUMENT...]",
            "Runs a command on the hosts of nodes, as root, where their berth-node.conf lets it "
            "(allow_exec).\nEach line that it writes has the node's name before it. Fails if it "
            "failed anywhere.\nNODES: n1,n2 or n[1-3,7] or r[1-2]n[01-12]. For operators.",
            out_status, error))
        return FALSE;
    int first = argc > 2 && g_str_equal(argv[2], "--") ? 3 : 2;
    if (first >= argc)
        return berth_cli_usage_error(out_status, error, "name nodes and a command (see %s --help)",
                                     argv[0]);
    g_auto(GStrv) names = berth_node_list_parse(argv[1], error);
    if (names == NULL) {
        *out_status = BERTH_EXIT_USAGE;
        return FALSE;
    }
    /* It runs on none if one of them does not exist. */
    return berth_cli_persist(cli, FALSE, check_nodes, names, error) &&
           berth_cli_exec_on_nodes(cli, names, argv + first, reason, NULL, NULL, error);
}
