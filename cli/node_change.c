/* SPDX-License-Identifier: Apache-2.0 */
/* berth node cordon, uncordon, undrain, down, up: one request for all nodes that are named, which changes all of them
 * or none. */
#include "cli/node_change.h"

#include "cli/format.h"
#include "cli/table.h"
#include "common/node_list.h"
#include "common/units.h"

#include <stdio.h>

char **berth_cli_node_arguments(int argc, char **argv, int *out_status, GError **error)
{
    if (argc < 2) {
        berth_cli_usage_error(out_status, error, "name at least one node (see %s --help)", argv[0]);
        return NULL;
    }
    char **names = berth_node_list_parse_all((const char *const *)argv + 1, (guint)argc - 1, error);
    if (names == NULL)
        *out_status = BERTH_EXIT_USAGE;
    return names;
}

gboolean berth_cli_patience(const char *text, guint64 *out_sec, int *out_status, GError **error)
{
    if (berth_parse_duration_sec(text, out_sec, error) && *out_sec > 0)
        return TRUE;
    if (error != NULL && *error == NULL)
        return berth_cli_usage_error(out_status, error, "\"%s\" is no time to wait", text);
    *out_status = BERTH_EXIT_USAGE;
    return FALSE;
}

/* Somebody may rely on it. */
static void tell_replaced(const Berth__ChangeNodesReply *reply)
{
    for (size_t i = 0; i < reply->n_replaced; i++) {
        const Berth__NodeAdmission *admission = reply->replaced[i]->admission;
        g_autofree char *since = berth_format_time(admission->since_usec);
        g_autofree char *reason = berth_printable(admission->reason);
        fprintf(stderr, "%s: %s was %s by %s since %s: %s; that is so no more\n", g_get_prgname(),
                reply->replaced[i]->node, berth_node_admission_name(admission), admission->user,
                since != NULL ? since : "-", reason);
    }
    if (reply->n_replaced_more > 0)
        fprintf(stderr, "%s: so were %u more nodes, for something else (berth events)\n",
                g_get_prgname(), reply->n_replaced_more);
}

gboolean berth_cli_change_nodes(BerthCli *cli, const char *method, char **names,
                                const Berth__ChangeNodesRequest *wanted, guint64 *out_before_seq,
                                GError **error)
{
    Berth__ChangeNodesRequest request = *wanted;
    request.names = names;
    request.n_names = g_strv_length(names);
    Berth__ChangeNodesReply *reply = (Berth__ChangeNodesReply *)berth_cli_call(
        cli, &berth__nodes__descriptor, method, &request.base, error);
    if (reply == NULL)
        return FALSE;
    if (out_before_seq != NULL)
        *out_before_seq = reply->before_seq;
    tell_replaced(reply);
    berth__change_nodes_reply__free_unpacked(reply, NULL);
    return TRUE;
}

Berth__Node *berth_cli_get_node(BerthCli *cli, const char *name, GError **error)
{
    Berth__GetNodeRequest request = BERTH__GET_NODE_REQUEST__INIT;
    request.name = (char *)name;
    return (Berth__Node *)berth_cli_call(cli, &berth__nodes__descriptor, "Get", &request.base,
                                         error);
}

gboolean berth_cli_print_nodes_json(BerthCli *cli, char **names, GError **error)
{
    for (; *names != NULL; names++) {
        Berth__Node *node = berth_cli_get_node(cli, *names, error);
        if (node == NULL)
            return FALSE;
        berth_cli_print_json(&node->base);
        berth__node__free_unpacked(node, NULL);
    }
    return TRUE;
}

typedef struct {
    const char *method;
    gboolean needs_reason; /* without one it says nothing to the others */
    gboolean has_force;
    const char *description;
} Verb;

static gboolean change(BerthCli *cli, int argc, char **argv, const Verb *verb, int *out_status,
                       GError **error)
{
    g_autofree char *reason = NULL;
    gboolean force = FALSE;
    const GOptionEntry force_entry = {
        "force", 0, 0, G_OPTION_ARG_NONE, &force, "Also nodes that have a session, which ends",
        NULL};
    const GOptionEntry entries[] = {
        {"reason", 'r', 0, G_OPTION_ARG_STRING, &reason, "Why, for everybody to see", "TEXT"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print each node as JSON", NULL},
        verb->has_force ? force_entry : (GOptionEntry){NULL},
        {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries, "NODES...", verb->description, NULL, out_status,
                         error))
        return FALSE;
    if (verb->needs_reason && (reason == NULL || *reason == '\0'))
        return berth_cli_usage_error(out_status, error, "say why, with --reason TEXT");
    g_auto(GStrv) names = berth_cli_node_arguments(argc, argv, out_status, error);
    Berth__ChangeNodesRequest request = BERTH__CHANGE_NODES_REQUEST__INIT;
    if (reason != NULL)
        request.reason = reason;
    request.force = force;
    return names != NULL &&
           berth_cli_change_nodes(cli, verb->method, names, &request, NULL, error) &&
           (!cli->json || berth_cli_print_nodes_json(cli, names, error));
}

#define LISTS "NODES: n1,n2 or n[1-3,7] or r[1-2]n[01-12]. For operators."

gboolean berth_cli_node_cordon(BerthCli *cli, int argc, char **argv, int *out_status,
                               GError **error)
{
    static const Verb verb = {
        .method = "Cordon",
        .needs_reason = TRUE,
        .description =
            "The nodes get no new jobs; those that run there go on. A node that is being\n"
            "drained keeps the jobs that it still has. " LISTS};
    return change(cli, argc, argv, &verb, out_status, error);
}

gboolean berth_cli_node_uncordon(BerthCli *cli, int argc, char **argv, int *out_status,
                                 GError **error)
{
    static const Verb verb = {
        .method = "Uncordon",
        .description = "Cordoned nodes get jobs again. A node that is drained is left alone: see\n"
                       "`berth node undrain`. " LISTS};
    return change(cli, argc, argv, &verb, out_status, error);
}

gboolean berth_cli_node_undrain(BerthCli *cli, int argc, char **argv, int *out_status,
                                GError **error)
{
    static const Verb verb = {
        .method = "Undrain",
        .description =
            "Nodes that are drained, or cordoned, get jobs again, at any time: a drain that is\n"
            "not done ends. " LISTS};
    return change(cli, argc, argv, &verb, out_status, error);
}

gboolean berth_cli_node_down(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    static const Verb verb = {
        .method = "Down",
        .needs_reason = TRUE,
        .has_force = TRUE,
        .description = "For hosts that are dead for good: the nodes are given up now, and not when "
                       "berthd has\n"
                       "waited for them for its node_timeout. What they ran is cut off from "
                       "storage and starts\n"
                       "again elsewhere. They may not join before `berth node up`. " LISTS};
    return change(cli, argc, argv, &verb, out_status, error);
}

gboolean berth_cli_node_up(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    static const Verb verb = {.method = "Up",
                              .description =
                                  "Nodes that were given up may join again, and get jobs when they "
                                  "do. " LISTS};
    return change(cli, argc, argv, &verb, out_status, error);
}
