/* SPDX-License-Identifier: Apache-2.0 */
/* berth backup: has the daemon copy its state into a file of its host. */
#include "cli/cli.h"

#include "cli/progress.h"
#include "common/error.h"

#include <stdio.h>

typedef struct {
    BerthCli *cli;
    const char *path;
    BerthProgress progress; /* of a terminal; begun with the first that the daemon says */
    gboolean is_begun;
    gboolean is_done;
} Backup;

static void print_outcome(const Backup *backup, const Berth__BackupProgress *said)
{
    if (backup->cli->json)
        berth_cli_print_json(&said->base);
    else
        printf("%s: %" G_GUINT64_FORMAT " bytes, %" G_GUINT64_FORMAT " pages\n", backup->path,
               said->total_pages * said->page_bytes, said->total_pages);
}

static gboolean take(const ProtobufCMessage *item, gpointer user_data)
{
    const Berth__BackupProgress *said = (const Berth__BackupProgress *)(const void *)item;
    Backup *backup = user_data;
    if (!backup->is_begun)
        berth_progress_begin(&backup->progress, "backing up to", backup->path,
                             said->total_pages * said->page_bytes);
    backup->is_begun = TRUE;
    if (said->done) {
        berth_progress_end(&backup->progress);
        print_outcome(backup, said);
        backup->is_done = TRUE;
    } else {
        berth_progress_update(&backup->progress, said->copied_pages * said->page_bytes);
    }
    return TRUE;
}

static gboolean ask(BerthCli *cli, const char *path, GError **error)
{
    Backup backup = {.cli = cli, .path = path};
    Berth__BackupRequest request = BERTH__BACKUP_REQUEST__INIT;
    request.path = (char *)path;
    if (!berth_cli_connect(cli, error))
        return FALSE;
    gboolean is_answered = berth_rpc_peer_stream(cli->peer, &berth__server__descriptor, "Backup",
                                                 &request.base, 0, take, &backup, error);
    berth_progress_end(&backup.progress);
    if (is_answered && !backup.is_done)
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_PROTOCOL,
                    "the daemon did not say that the backup %s is complete: make another", path);
    return is_answered && backup.is_done;
}

gboolean berth_cli_backup(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    const GOptionEntry entries[] = {
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print the outcome as JSON", NULL}, {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries, "FILE",
                         "The daemon writes a copy of its state to FILE, on its host, while it "
                         "works on. There must be\n"
                         "no such file yet. For operators, with their own rights. berthd(8) tells "
                         "how it is put back.",
                         NULL, out_status, error))
        return FALSE;
    if (argc != 2)
        return berth_cli_usage_error(out_status, error, "name one file (see %s --help)", argv[0]);
    g_autofree char *path = g_canonicalize_filename(argv[1], NULL);
    return ask(cli, path, error);
}
