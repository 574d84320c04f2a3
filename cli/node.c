/* SPDX-License-Identifier: Apache-2.0 */
/* berth node ls, node show. */
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/listing.h"
#include "cli/node_change.h"
#include "common/units.h"

#include <stdio.h>

static const BerthColumn columns[] = {
    {.title = "NODE", .flexible = TRUE},
    {.title = "STATE"},
    {.title = "GUESTS", .right = TRUE, .drop = 1},
    {.title = "VCPUS", .right = TRUE},
    {.title = "MEMORY", .right = TRUE},
    {.title = "ACCEL", .drop = 2},
    {.title = "VERSION", .drop = 3},
    {.title = "NOTE", .flexible = TRUE, .drop = 4},
};

static gboolean is_emulated(const Berth__NodeInfo *info)
{
    return g_str_equal(info->acceleration, "tcg");
}

/* Why there is no session with a node that is DOWN or LOST; NULL: it is UP. (transfer full) */
static char *absence(const Berth__Node *node)
{
    guint64 heard_usec = node->last_report_usec ? node->last_report_usec : node->since_usec;
    g_autofree char *since = berth_format_time(
        node->state == BERTH__NODE_STATE__NODE_DOWN ? node->since_usec : heard_usec);
    switch (node->state) {
    case BERTH__NODE_STATE__NODE_DOWN:
        return g_strdup_printf("no session since %s", since ? since : "berthd was started");
    case BERTH__NODE_STATE__NODE_LOST:
        if (*node->fence_error)
            return g_strdup_printf(
                "no session since %s; its guests are given up, and cannot be cut "
                "off from storage yet, which their jobs wait for: %s",
                since ? since : "berthd was started", node->fence_error);
        return g_strdup_printf("no session since %s; its guests were given up",
                               since ? since : "berthd was started");
    default:
        return NULL;
    }
}

/* What is in the way of new guests comes before what slows them. (transfer full) */
static char *note(const Berth__Node *node)
{
    if (*node->closed_reason)
        return g_strdup(node->closed_reason);
    char *absent = absence(node);
    if (absent != NULL && node->admission != NULL) {
        g_autofree char *alone = absent;
        return g_strdup_printf("%s; %s by %s: %s", alone,
                               berth_node_admission_name(node->admission), node->admission->user,
                               node->admission->reason);
    }
    if (absent == NULL && is_emulated(node->info))
        return g_strdup("guests are emulated");
    return absent;
}

static void add_row(BerthTable *table, const ProtobufCMessage *item)
{
    const Berth__Node *node = (const Berth__Node *)item;
    g_autofree char *reserved = berth_format_size_mib(node->memory_reserved_mib);
    g_autofree char *memory = berth_format_size_mib(node->info->guest_memory_mib);
    berth_table_add(table, g_strdup(node->info->name));
    berth_table_add(table, g_strdup(berth_node_condition_name(node)));
    berth_table_add(table, g_strdup_printf("%u", node->guests));
    berth_table_add(table, g_strdup_printf("%u/%u", node->vcpus_reserved, node->info->vcpus));
    berth_table_add(table, g_strdup_printf("%s/%s", reserved, memory));
    berth_table_add(table, g_strdup(node->info->acceleration));
    berth_table_add(table, g_strdup(node->info->version));
    berth_table_add(table, note(node));
}

static ProtobufCMessage *ask_page(BerthCli *cli, const char *after, GError **error)
{
    Berth__ListNodesRequest request = BERTH__LIST_NODES_REQUEST__INIT;
    request.after = (char *)after;
    return berth_cli_call(cli, &berth__nodes__descriptor, "List", &request.base, error);
}

static const ProtobufCMessage *item_of_page(const ProtobufCMessage *page, size_t i)
{
    const Berth__ListNodesReply *reply = (const Berth__ListNodesReply *)page;
    return i < reply->n_nodes ? &reply->nodes[i]->base : NULL;
}

static const char *next_of_page(const ProtobufCMessage *page)
{
    return ((const Berth__ListNodesReply *)page)->next_after;
}

static const BerthListing listing = {
    .columns = columns,
    .n_columns = G_N_ELEMENTS(columns),
    .ask = ask_page,
    .item = item_of_page,
    .next_after = next_of_page,
    .add_row = add_row,
};

gboolean berth_cli_node_ls(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "One JSON object per line", NULL}, {NULL}};
    if (!berth_cli_parse(
            &argc, &argv, entries, NULL,
            "VCPUS and MEMORY: reserved/offered; of memory each guest takes more than it\n"
            "sees, as its host needs some for it (overhead in berthd.conf). A node that is\n"
            "cordoned, draining, drained or \"closed\" is up but gets no new jobs; NOTE says why, "
            "since when there is no session\n"
            "with a node that is down or lost, or that guests are emulated there (many times\n"
            "slower).",
            NULL, out_status, error))
        return FALSE;
    if (argc > 1)
        return berth_cli_usage_error(out_status, error, "\"%s\" is one argument too many", argv[1]);
    return berth_listing_print(&listing, cli, error);
}

/* What it means comes before what QEMU said. */
static void print_acceleration(const Berth__NodeInfo *info)
{
    berth_print_fieldf(
        "Acceleration", "%s%s", info->acceleration,
        is_emulated(info) ? ": guests are emulated, which is many times slower than KVM" : "");
    berth_print_field(is_emulated(info) ? "Why not KVM" : "KVM", info->acceleration_reason);
}

static void print_info(const Berth__NodeInfo *info)
{
    g_autofree char *memory = berth_format_size_mib(info->memory_mib);
    g_autofree char *offered = berth_format_size_mib(info->guest_memory_mib);
    berth_print_fieldf("Host", "%u CPU%s, %s memory", info->cpus, info->cpus == 1 ? "" : "s",
                       memory);
    berth_print_fieldf("Offers", "%u vCPU%s, %s memory", info->vcpus, info->vcpus == 1 ? "" : "s",
                       offered);
    for (size_t i = 0; i < info->n_cells; i++) {
        g_autofree char *cell = berth_format_size_mib(info->cells[i]->memory_mib);
        berth_print_fieldf("NUMA cell", "%u: %u CPUs, %s", info->cells[i]->id, info->cells[i]->cpus,
                           cell);
    }
    berth_print_field("Hypervisor", info->hypervisor);
    print_acceleration(info);
    berth_print_fieldf("Guest machine", "%s, CPU %s", info->machine, info->cpu_model);
    for (size_t i = 0; i < info->n_labels; i++)
        berth_print_field("Label", info->labels[i]);
    berth_print_field("Agent", info->version);
}

static void print_admission(const Berth__NodeAdmission *admission)
{
    g_autofree char *since = berth_format_time(admission->since_usec);
    g_autofree char *empty = berth_format_time(admission->empty_usec);
    gboolean is_draining = admission->kind == BERTH__NODE_ADMISSION__KIND__DRAINING;
    berth_print_fieldf("Closed", "%s by %s since %s: %s", berth_node_admission_name(admission),
                       admission->user, since ? since : "-", admission->reason);
    if (is_draining)
        berth_print_field("Empty since", empty ? empty : "not yet");
}

/* What its host measured last. */
static void print_usage(const Berth__NodeUsage *usage)
{
    g_autofree char *left = berth_format_size_mib(usage->memory_free_mib);
    g_autofree char *host_memory = berth_format_size_mib(usage->guests_host_mib);
    g_autofree char *swap = berth_format_size_mib(usage->swap_used_mib);
    const BerthStalls stalls = {usage->psi_cpu_some, usage->psi_memory_some, usage->psi_memory_full,
                                usage->psi_io_some, usage->psi_io_full};
    berth_print_fieldf("Load", "%u.%02u, %s memory left for guests", usage->load_centi / 100,
                       usage->load_centi % 100, left);
    if (usage->memory_total_mib > 0) /* else of an older agent */
        berth_print_fieldf("Guests use", "%.2f CPUs, %s of the host's memory",
                           usage->cpu_milli / 1000.0, host_memory);
    if (usage->swap_used_mib > 0)
        berth_print_field("Swap used", swap);
    berth_print_stalls(&stalls, "", "disks");
}

static void print_pressed(const Berth__Node *node)
{
    g_autofree char *until = berth_format_time(node->pressed_until_usec);
    if (until != NULL && node->pressed_until_usec > (guint64)g_get_real_time())
        berth_print_fieldf(
            "Pressed", "nobody comes into its slack until %s: it lacked memory, or was about to",
            until);
}

/* Memory with what the host needs for guests, as what is reserved. */
static void print_amounts(const Berth__Node *node)
{
    g_autofree char *slack = berth_format_size_mib(node->memory_slack_mib);
    g_autofree char *predicted = berth_format_size_mib(node->predicted_mib);
    if (node->memory_slack_mib > 0)
        berth_print_fieldf("In slack", "%u vCPU%s and %s memory reserved besides",
                           node->vcpus_slack, node->vcpus_slack == 1 ? "" : "s", slack);
    if (node->guests > 0)
        berth_print_fieldf("Predicted use", "at most %.1f vCPUs, %s memory",
                           node->predicted_milli / 1000.0, predicted);
}

static void print_node(const Berth__Node *node)
{
    g_autofree char *since = berth_format_time(node->since_usec);
    g_autofree char *reported = berth_format_time(node->last_report_usec);
    g_autofree char *reserved = berth_format_size_mib(node->memory_reserved_mib);
    berth_print_field("Node", node->info->name);
    berth_print_fieldf("State", "%s since %s", berth_node_state_name(node->state),
                       since ? since : "-");
    g_autofree char *absent = absence(node);
    berth_print_field("Absent", absent);
    if (node->admission != NULL)
        print_admission(node->admission);
    else if (*node->closed_reason)
        berth_print_fieldf("Closed", "it gets no new jobs: %s", node->closed_reason);
    berth_print_field("Address", node->address);
    berth_print_field("Last report", reported);
    berth_print_fieldf("Guests", "%u, with %u vCPU%s and %s memory reserved", node->guests,
                       node->vcpus_reserved, node->vcpus_reserved == 1 ? "" : "s", reserved);
    print_amounts(node);
    print_pressed(node);
    if (node->usage != NULL)
        print_usage(node->usage);
    print_info(node->info);
}

gboolean berth_cli_node_show(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print JSON", NULL}, {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries, "NODE", NULL, NULL, out_status, error))
        return FALSE;
    if (argc != 2)
        return berth_cli_usage_error(out_status, error, "name one node (see %s --help)", argv[0]);
    Berth__Node *node = berth_cli_get_node(cli, argv[1], error);
    if (node == NULL)
        return FALSE;
    if (cli->json)
        berth_cli_print_json(&node->base);
    else
        print_node(node);
    berth__node__free_unpacked(node, NULL);
    return TRUE;
}
