/* SPDX-License-Identifier: Apache-2.0 */
/* berth checkpoint --every: how often jobs are checkpointed by themselves. */
#include "cli/checkpoint_every.h"

#include "common/error.h"
#include "common/units.h"

#include <stdio.h>

gboolean berth_checkpoint_every_parse(const char *text, guint32 *out_sec, GError **error)
{
    guint64 sec = 0;
    if (g_str_equal(text, "never")) {
        *out_sec = 0;
        return TRUE;
    }
    g_autoptr(GError) reason = NULL;
    if (!berth_parse_duration_sec(text, &sec, &reason)) {
        g_set_error(error, reason->domain, reason->code, "--every: %s; or never", reason->message);
        return FALSE;
    }
    if (sec > 0 && sec <= G_MAXUINT32) {
        *out_sec = (guint32)sec;
        return TRUE;
    }
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "--every: \"%s\" is not a time after which to save a job; try 30m, or never", text);
    return FALSE;
}

/* FALSE: refused. */
static gboolean set_one(BerthCli *cli, Berth__CheckpointEveryRequest wanted, guint64 job,
                        GError **error)
{
    wanted.job = job;
    Berth__JobReply *reply = (Berth__JobReply *)berth_cli_call(
        cli, &berth__jobs__descriptor, "SetCheckpointEvery", &wanted.base, error);
    g_autofree char *every = berth_format_duration_sec(wanted.every_sec);
    if (reply == NULL)
        return FALSE;
    if (cli->json && reply->job != NULL)
        berth_cli_print_json(&reply->job->base);
    else if (wanted.every_sec == 0)
        printf("job %" G_GUINT64_FORMAT " is checkpointed only where that is asked for\n", job);
    else
        printf("job %" G_GUINT64_FORMAT " is checkpointed every %s\n", job, every);
    berth__job_reply__free_unpacked(reply, NULL);
    return TRUE;
}

gboolean berth_cli_checkpoint_every(BerthCli *cli, int argc, char **argv, guint32 every_sec,
                                    const char *reason, int *out_status, GError **error)
{
    Berth__CheckpointEveryRequest wanted = BERTH__CHECKPOINT_EVERY_REQUEST__INIT;
    g_autoptr(GArray) jobs = berth_cli_job_arguments(argc, argv, out_status, error);
    wanted.every_sec = every_sec;
    if (reason != NULL)
        wanted.reason = (char *)reason;
    for (guint i = 0; jobs != NULL && i < jobs->len; i++) {
        g_autoptr(GError) local = NULL;
        if (!berth_cli_connect(cli, error))
            return FALSE;
        if (!set_one(cli, wanted, g_array_index(jobs, guint64, i), &local))
            berth_cli_report(local, out_status);
    }
    return jobs != NULL;
}
