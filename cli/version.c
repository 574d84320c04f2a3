/* SPDX-License-Identifier: Apache-2.0 */
/* berth version: of this program, and of the daemon if it answers. */
#include "config.h"

#include "cli/cli.h"
#include "cli/format.h"
#include "common/units.h"

#include <stdio.h>

/* What a job gets whose submission does not say. */
static void print_defaults(const Berth__ServerInfo *info)
{
    g_autofree char *memory = berth_format_size_mib(info->default_memory_mib);
    g_autofree char *disk = berth_format_size_mib(info->default_disk_mib);
    g_autofree char *limit = berth_format_duration_sec(info->default_time_limit_sec);
    berth_print_field("Default image", info->default_image);
    berth_print_fieldf("Default vCPUs", "%u", info->default_vcpus);
    berth_print_field("Default memory", memory);
    if (info->default_disk_mib > 0)
        berth_print_field("Default disk", disk);
    berth_print_field("Default time", limit);
}

static void print_checkpoints(const Berth__CheckpointSpace *space)
{
    g_autofree char *stored = berth_format_size_mib(space->stored_mib);
    g_autofree char *kept = berth_format_size_mib(space->kept_mib);
    g_autofree char *left = berth_format_size_mib(space->left_mib);
    berth_print_fieldf("Checkpoints", "%s in storage, %s kept for others to come, %s%s", stored,
                       kept, space->unbounded ? "no bound" : left, space->unbounded ? "" : " left");
}

static void print_info(const Berth__ServerInfo *info)
{
    g_autofree char *since = berth_format_time(info->start_usec);
    berth_print_fieldf("berthd", "%s, cluster %s, up since %s", info->version, info->cluster,
                       since ? since : "-");
    berth_print_fieldf("Storage", "%s, %s%s", info->storage,
                       info->storage_ok ? "answers" : "does not answer: ", info->storage_error);
    if (info->checkpoints != NULL)
        print_checkpoints(info->checkpoints);
    print_defaults(info);
}

gboolean berth_cli_version(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print what the daemon says as JSON", NULL},
        {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries, NULL, NULL, NULL, out_status, error))
        return FALSE;
    if (argc > 1)
        return berth_cli_usage_error(out_status, error, "\"%s\" is one argument too many", argv[1]);
    if (!cli->json)
        berth_print_field("berth", PACKAGE_VERSION);
    Berth__ServerInfo *info = berth_cli_server_info(cli, error);
    if (info == NULL)
        return FALSE;
    if (cli->json)
        berth_cli_print_json(&info->base);
    else
        print_info(info);
    berth__server_info__free_unpacked(info, NULL);
    return TRUE;
}
