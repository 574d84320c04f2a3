/* SPDX-License-Identifier: Apache-2.0 */
/* berth node cordon, uncordon, undrain: one request for all nodes that are named, which changes all of them
 * or none. */
#include "cli/node_change.h"

#include "common/node_list.h"

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

gboolean berth_cli_change_nodes(BerthCli *cli, const char *method, char **names, const char *reason,
                                guint64 *out_before_seq, GError **error)
{
    Berth__ChangeNodesRequest request = BERTH__CHANGE_NODES_REQUEST__INIT;
    request.names = names;
    request.n_names = g_strv_length(names);
    request.reason = (char *)reason;
    Berth__ChangeNodesReply *reply = (Berth__ChangeNodesReply *)berth_cli_call(
        cli, &berth__nodes__descriptor, method, &request.base, error);
    if (reply == NULL)
        return FALSE;
    if (out_before_seq != NULL)
        *out_before_seq = reply->before_seq;
    berth__change_nodes_reply__free_unpacked(reply, NULL);
    return TRUE;
}

gboolean berth_cli_print_nodes_json(BerthCli *cli, char **names, GError **error)
{
    for (; *names != NULL; names++) {
        Berth__GetNodeRequest request = BERTH__GET_NODE_REQUEST__INIT;
        request.name = *names;
        Berth__Node *node = (Berth__Node *)berth_cli_call(cli, &berth__nodes__descriptor, "Get",
                                                          &request.base, error);
        if (node == NULL)
            return FALSE;
        berth_cli_print_json(&node->base);
        berth__node__free_unpacked(node, NULL);
    }
    return TRUE;
}

/* METHOD for those that are named; NEEDS_REASON: without one it says nothing to the others. */
static gboolean change(BerthCli *cli, int argc, char **argv, const char *method,
                       gboolean needs_reason, const char *description, int *out_status,
                       GError **error)
{
    g_autofree char *reason = NULL;
    const GOptionEntry entries[] = {
        {"reason", 'r', 0, G_OPTION_ARG_STRING, &reason, "Why, for everybody to see", "TEXT"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print each node as JSON", NULL},
        {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries, "NODES...", description, NULL, out_status, error))
        return FALSE;
    if (needs_reason && (reason == NULL || *reason == '\0'))
        return berth_cli_usage_error(out_status, error, "say why, with --reason TEXT");
    g_auto(GStrv) names = berth_cli_node_arguments(argc, argv, out_status, error);
    return names != NULL &&
           berth_cli_change_nodes(cli, method, names, reason ? reason : "", NULL, error) &&
           (!cli->json || berth_cli_print_nodes_json(cli, names, error));
}

#define LISTS "NODES: n1,n2 or n[1-3,7] or r[1-2]n[01-12]. For operators."

gboolean berth_cli_node_cordon(BerthCli *cli, int argc, char **argv, int *out_status,
                               GError **error)
{
    return change(cli, argc, argv, "Cordon", TRUE,
                  "The nodes get no new jobs; those that run there go on. A node that is being\n"
                  "drained keeps the jobs that it still has. " LISTS,
                  out_status, error);
}

gboolean berth_cli_node_uncordon(BerthCli *cli, int argc, char **argv, int *out_status,
                                 GError **error)
{
    return change(cli, argc, argv, "Uncordon", FALSE,
                  "Cordoned nodes get jobs again. A node that is drained is left alone: see\n"
                  "`berth node undrain`. " LISTS,
                  out_status, error);
}

gboolean berth_cli_node_undrain(BerthCli *cli, int argc, char **argv, int *out_status,
                                GError **error)
{
    return change(
        cli, argc, argv, "Undrain", FALSE,
        "Nodes that are drained, or cordoned, get jobs again, at any time: a drain that is\n"
        "not done ends. " LISTS,
        out_status, error);
}
