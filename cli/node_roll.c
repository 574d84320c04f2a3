/* SPDX-License-Identifier: Apache-2.0 */
/* berth node roll: node after node is drained, a command is run on its host, its agent is waited for, and it is
 * opened again. All of it is asked of the daemon, and nothing is kept here: what this program leaves undone is what
 * `berth node ls` shows, and what it says when it ends.
 *
 * Invariants: the command runs on nodes only that are empty, and drained for the reason of this roll; a node is opened again
 * only when the command has done well there, or another instance of its agent has joined after the command took it
 * along, when its agent can start guests, and when nobody else has closed it; nothing is begun after a failure. */
#include "cli/cli.h"

#include "cli/node_change.h"
#include "cli/node_drain.h"
#include "cli/node_exec.h"
#include "cli/node_rejoin.h"
#include "common/error.h"
#include "common/units.h"

#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define REASON_BYTES_MAX   120
#define REJOIN_DEFAULT_SEC 600u

typedef struct {
    BerthCli *cli;
    char **names;
    guint n;
    char **command;
    guint parallel;
    const char *reason;
    guint64 patience_sec; /* of a drain; 0 = however long it takes */
    guint64 rejoin_sec;
    gboolean keeps_agent; /* the command does not restart it */
    guint next;           /* the first of NAMES that was not begun */
    guint n_done;
    GPtrArray *batch;      /* names of those that were begun, and are not done */
    const char *state;     /* of these; NULL: as they were */
    GHashTable *versions;  /* name -> its agent's before the command, owned */
    GHashTable *instances; /* likewise */
    GPtrArray *lost; /* names of those in the batch whose agent went away during the command */
} Roll;

/* --- may it be? ------------------------------------------------------------------------------ */

static gboolean check_node(const Roll *roll, const Berth__Node *node, GError **error)
{
    const Berth__NodeAdmission *admission = node->admission;
    const char *name = node->info->name;
    if (admission != NULL && !g_str_equal(admission->reason, roll->reason))
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "node %s is closed already, by %s: %s; it would be opened in the end: leave it "
                    "out, open "
                    "it first, or give the same --reason",
                    name, admission->user, admission->reason);
    else if (node->state != BERTH__NODE_STATE__NODE_UP)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_FAILED_PRECONDITION,
                    "node %s is not up: leave it out, or bring it back first", name);
    else
        return TRUE;
    return FALSE;
}

static gboolean check_all(BerthCli *cli, gpointer user_data, GError **error)
{
    Roll *roll = user_data;
    for (char **name = roll->names; *name != NULL; name++) {
        Berth__Node *node = berth_cli_get_node(cli, *name, error);
        gboolean ok = node != NULL && check_node(roll, node, error);
        if (node != NULL)
            berth__node__free_unpacked(node, NULL);
        if (!ok)
            return FALSE;
    }
    return TRUE;
}

/* No drain that is somebody else's is ended, and no node is emptied to find that it runs no commands. */
static gboolean check(Roll *roll, GError **error)
{
    char *nothing[] = {(char *)"true", NULL};
    return berth_cli_persist(roll->cli, FALSE, check_all, roll, error) &&
           berth_cli_exec_on_nodes(roll->cli, roll->names, nothing, roll->reason, NULL, NULL,
                                   error);
}

/* --- how it stands --------------------------------------------------------------------------- */

static void append_name(GString *list, const char *name)
{
    g_string_append_printf(list, "%s%s", list->len > 0 ? "," : "", name);
}

/* What is left of the command line. */
static void print_rest(const Roll *roll)
{
    g_autoptr(GString) nodes = g_string_new(NULL);
    g_autofree char *reason = g_shell_quote(roll->reason);
    for (guint i = 0; i < roll->batch->len; i++)
        append_name(nodes, g_ptr_array_index(roll->batch, i));
    for (guint i = roll->next; i < roll->n; i++)
        append_name(nodes, roll->names[i]);
    fprintf(stderr, "to go on: berth node roll %s --reason %s", nodes->str, reason);
    if (roll->parallel > 1)
        fprintf(stderr, " --parallel %u", roll->parallel);
    if (roll->patience_sec > 0)
        fprintf(stderr, " --deadline %" G_GUINT64_FORMAT, roll->patience_sec);
    if (roll->keeps_agent)
        fputs(" --no-restart", stderr);
    else if (roll->rejoin_sec != REJOIN_DEFAULT_SEC)
        fprintf(stderr, " --rejoin %" G_GUINT64_FORMAT, roll->rejoin_sec);
    fputs(" --", stderr);
    for (char **word = roll->command; *word != NULL; word++) {
        g_autofree char *quoted = g_shell_quote(*word);
        fprintf(stderr, " %s", quoted);
    }
    fputc('\n', stderr);
}

/* To stderr: what was done, what was not, and how it goes on. */
static void explain(const Roll *roll)
{
    g_autoptr(GString) batch = g_string_new(NULL);
    for (guint i = 0; i < roll->batch->len; i++)
        append_name(batch, g_ptr_array_index(roll->batch, i));
    fflush(stdout);
    fprintf(stderr, "%u of %u node%s done", roll->n_done, roll->n, roll->n == 1 ? "" : "s");
    gboolean is_one = roll->batch->len == 1;
    if (roll->batch->len > 0 && roll->state == NULL)
        fprintf(stderr, "; %s %s as before", batch->str, is_one ? "is" : "are");
    else if (roll->batch->len > 0)
        fprintf(stderr, "; %s %s %s: `berth node undrain %s` opens %s", batch->str,
                is_one ? "is" : "are", roll->state, batch->str,
                is_one ? "it as it is" : "them as they are");
    fputc('\n', stderr);
    print_rest(roll);
}

static gboolean on_signal(gpointer user_data)
{
    fprintf(stderr, "%s: interrupted\n", g_get_prgname());
    explain(user_data);
    _exit(128 + SIGINT);
}

/* --- steps ----------------------------------------------------------------------------------- */

/* (transfer container) */
static char **batch_names(const Roll *roll)
{
    char **names = g_new0(char *, roll->batch->len + 1);
    for (guint i = 0; i < roll->batch->len; i++)
        names[i] = g_ptr_array_index(roll->batch, i);
    return names;
}

/* What the batch's agents are before the command. */
static gboolean note_agents(BerthCli *cli, gpointer user_data, GError **error)
{
    const Roll *roll = user_data;
    for (guint i = 0; i < roll->batch->len; i++) {
        char *name = g_ptr_array_index(roll->batch, i);
        Berth__Node *node = berth_cli_get_node(cli, name, error);
        if (node == NULL)
            return FALSE;
        g_hash_table_insert(roll->versions, name, g_strdup(node->info->version));
        g_hash_table_insert(roll->instances, name, g_strdup(node->info->instance));
        berth__node__free_unpacked(node, NULL);
    }
    return TRUE;
}

/* FAILED gets those of the batch on which it did not do well. Of those that are lost nobody knows; their agents, when
 * they join again, tell. FALSE: some have failed. */
static gboolean run_command(Roll *roll, GPtrArray *failed, GError **error)
{
    g_autofree char **names = batch_names(roll);
    g_ptr_array_set_size(roll->lost, 0);
    roll->state = "drained, and the command may have run there";
    gboolean ok = berth_cli_exec_on_nodes(roll->cli, names, roll->command, roll->reason, failed,
                                          roll->keeps_agent ? NULL : roll->lost, error);
    for (guint i = 0; i < roll->lost->len; i++)
        printf("%s: the connection to its agent ended before the command did\n",
               (const char *)g_ptr_array_index(roll->lost, i));
    fflush(stdout);
    return ok;
}

static void say_done(Roll *roll, const Berth__Node *node)
{
    const char *before = g_hash_table_lookup(roll->versions, node->info->name);
    printf("%s: berth-node %s", node->info->name, node->info->version);
    if (g_strcmp0(before, node->info->version) != 0)
        printf(" (it was %s)", before);
    puts(" has joined");
    fflush(stdout);
}

static gboolean open_on(BerthCli *cli, const Roll *roll, char **names, GError **error)
{
    Berth__ChangeNodesRequest request = BERTH__CHANGE_NODES_REQUEST__INIT;
    request.reason = request.if_reason = (char *)roll->reason;
    return berth_cli_change_nodes(cli, "Undrain", names, &request, NULL, error);
}

static void say_open(Roll *roll, char *name)
{
    printf("%s: is open again\n", name);
    fflush(stdout);
    g_ptr_array_remove(roll->batch, name);
    roll->n_done++;
}

/* At once: others may take long, or never come. */
static gboolean on_rejoined(BerthCli *cli, const Berth__Node *node, gpointer user_data,
                            GError **error)
{
    Roll *roll = user_data;
    char *names[] = {node->info->name, NULL};
    guint index;
    if (!g_ptr_array_find_with_equal_func(roll->batch, names[0], g_str_equal, &index))
        return TRUE;
    if (!open_on(cli, roll, names, error))
        return FALSE;
    say_done(roll, node);
    say_open(roll, g_ptr_array_index(roll->batch, index));
    return TRUE;
}

typedef struct {
    Roll *roll;
    char **names;
} Opening;

static gboolean open_all(BerthCli *cli, gpointer user_data, GError **error)
{
    const Opening *opening = user_data;
    return open_on(cli, opening->roll, opening->names, error);
}

/* NAMES, of the batch, whose agents nobody waits for. */
static gboolean open_nodes(Roll *roll, char **names, GError **error)
{
    Opening opening = {roll, names};
    if (!berth_cli_persist(roll->cli, FALSE, open_all, &opening, error))
        return FALSE;
    for (char **name = names; *name != NULL; name++)
        say_open(roll, *name);
    return TRUE;
}

/* Those on which the command did well, and whose agents come back, are opened, also when it is otherwise on others. */
static gboolean finish(Roll *roll, const GPtrArray *failed, guint64 seq, GError **error)
{
    g_autoptr(GPtrArray) well = g_ptr_array_new();
    for (guint i = 0; i < roll->batch->len; i++)
        if (!g_ptr_array_find((GPtrArray *)failed, g_ptr_array_index(roll->batch, i), NULL))
            g_ptr_array_add(well, g_ptr_array_index(roll->batch, i));
    if (well->len == 0)
        return TRUE;
    g_ptr_array_add(well, NULL);
    char **names = (char **)well->pdata;
    if (roll->keeps_agent)
        return open_nodes(roll, names, error);
    g_autofree char *patience = berth_format_duration_sec(roll->rejoin_sec);
    for (char **name = names; *name != NULL; name++)
        printf("%s: its agent is waited for, %s at most (--rejoin; --no-restart is for a COMMAND "
               "that restarts none)\n",
               *name, patience);
    fflush(stdout);
    return berth_cli_await_rejoin(roll->cli, names, roll->instances, roll->lost, seq,
                                  roll->rejoin_sec, on_rejoined, roll, error);
}

static gboolean roll_batch(Roll *roll, GError **error)
{
    g_autofree char **names = batch_names(roll);
    g_autoptr(GPtrArray) failed = g_ptr_array_new();
    g_autoptr(GError) first = NULL, second = NULL;
    int status = 0;
    guint64 seq = 0;
    gboolean is_asked = FALSE;
    roll->state = "being drained";
    if (!berth_cli_drain_nodes(roll->cli, names, roll->reason, roll->patience_sec, &is_asked,
                               error)) {
        roll->state = is_asked ? roll->state : NULL;
        return FALSE;
    }
    if (!berth_cli_newest_event(roll->cli, &seq, error) ||
        !berth_cli_persist(roll->cli, FALSE, note_agents, roll, error))
        return FALSE;
    gboolean ok = run_command(roll, failed, &first);
    if (ok || failed->len > 0)
        ok = finish(roll, failed, seq, &second) && ok;
    if (first != NULL && second != NULL)
        berth_cli_report(second, &status);
    if (!ok)
        g_propagate_error(error,
                          first != NULL ? g_steal_pointer(&first) : g_steal_pointer(&second));
    return ok;
}

/* Under nohup(1) it goes on without its terminal. */
static gboolean is_ignored(int signal)
{
    struct sigaction action;
    return sigaction(signal, NULL, &action) == 0 && action.sa_handler == SIG_IGN;
}

static gboolean roll_all(Roll *roll, GError **error)
{
    guint signals[] = {g_unix_signal_add(SIGINT, on_signal, roll),
                       g_unix_signal_add(SIGTERM, on_signal, roll),
                       is_ignored(SIGHUP) ? 0 : g_unix_signal_add(SIGHUP, on_signal, roll)};
    gboolean ok = check(roll, error);
    while (ok && roll->next < roll->n) {
        for (guint i = 0; i < roll->parallel && roll->next < roll->n; i++)
            g_ptr_array_add(roll->batch, roll->names[roll->next++]);
        ok = roll_batch(roll, error);
        if (!ok)
            explain(roll);
    }
    for (guint i = 0; i < G_N_ELEMENTS(signals); i++)
        g_clear_handle_id(&signals[i], g_source_remove);
    return ok;
}

/* --- the verb -------------------------------------------------------------------------------- */

/* What follows the first "--", which ends ARGV then; NULL: there is nothing. */
static char **cut_command(int *argc, char **argv)
{
    for (int i = 1; i + 1 < *argc; i++) {
        if (!g_str_equal(argv[i], "--"))
            continue;
        argv[i] = NULL;
        *argc = i;
        return argv + i + 1;
    }
    return NULL;
}

static gboolean roll_named(Roll *roll, int argc, char **argv, int *out_status, GError **error)
{
    g_auto(GStrv) names = berth_cli_node_arguments(argc, argv, out_status, error);
    if (names == NULL)
        return FALSE;
    g_autoptr(GPtrArray) batch = g_ptr_array_new();
    g_autoptr(GPtrArray) lost = g_ptr_array_new();
    g_autoptr(GHashTable) versions = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    g_autoptr(GHashTable) instances = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, g_free);
    roll->names = names;
    roll->n = g_strv_length(names);
    roll->batch = batch;
    roll->versions = versions;
    roll->instances = instances;
    roll->lost = lost;
    return roll_all(roll, error);
}

/* By its reason a roll knows the drains that it has begun itself, also when it is gone on with: another roll has another. */
static char *default_reason(char **command)
{
    g_autofree char *line = g_strjoinv(" ", command);
    g_autofree char *text = g_strdup_printf("a rolling update by %s: %s", g_get_user_name(), line);
    for (char *c = text; *c != '\0'; c++)
        if (g_ascii_iscntrl(*c))
            *c = ' ';
    return g_utf8_make_valid(text, MIN((gssize)strlen(text), REASON_BYTES_MAX));
}

gboolean berth_cli_node_roll(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    g_autofree char *reason = NULL;
    g_autofree char *deadline = NULL;
    g_autofree char *rejoin = NULL;
    gint parallel = 1;
    Roll roll = {.cli = cli, .rejoin_sec = REJOIN_DEFAULT_SEC, .command = cut_command(&argc, argv)};
    const GOptionEntry entries[] = {
        {"reason", 'r', 0, G_OPTION_ARG_STRING, &reason,
         "Why, for everybody to see (default: who rolls which command)", "TEXT"},
        {"parallel", 'p', 0, G_OPTION_ARG_INT, &parallel, "So many nodes at a time (default: 1)",
         "N"},
        {"deadline", 0, 0, G_OPTION_ARG_STRING, &deadline,
         "Wait so long at most until nodes are empty (default: for ever)", "TIME"},
        {"rejoin", 0, 0, G_OPTION_ARG_STRING, &rejoin,
         "Wait so long at most until agents have joined again (default: 10m)", "TIME"},
        {"no-restart", 0, 0, G_OPTION_ARG_NONE, &roll.keeps_agent,
         "The command does not restart the agent: do not wait for that", NULL},
        {NULL}};
    if (!berth_cli_parse(
            &argc, &argv, entries, "NODES... -- COMMAND [ARGUMENT...]",
            "For one node after the other: drains it, runs a command on its host, as root, waits "
            "until its\n"
            "agent has joined again, in whichever version, and opens it. Stops at the first "
            "failure, and\n"
            "says how things stand and how to go on; so does Ctrl-C. Nodes have to let commands "
            "run on\n"
            "their hosts (allow_exec). NODES: n1,n2 or n[1-3,7] or r[1-2]n[01-12]. For operators.",
            NULL, out_status, error))
        return FALSE;
    if (roll.command == NULL)
        return berth_cli_usage_error(out_status, error,
                                     "name a command, after nodes and -- (see %s --help)", argv[0]);
    if (parallel < 1)
        return berth_cli_usage_error(out_status, error, "--parallel: at least one node at a time");
    if ((deadline != NULL &&
         !berth_cli_patience(deadline, &roll.patience_sec, out_status, error)) ||
        (rejoin != NULL && !berth_cli_patience(rejoin, &roll.rejoin_sec, out_status, error)))
        return FALSE;
    roll.parallel = (guint)parallel;
    if (reason == NULL || *reason == '\0') {
        g_free(reason);
        reason = default_reason(roll.command);
    }
    roll.reason = reason;
    return roll_named(&roll, argc, argv, out_status, error);
}
