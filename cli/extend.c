/* SPDX-License-Identifier: Apache-2.0 */
/* berth extend: lets jobs run for longer than they were submitted for. */
#include "cli/cli.h"

#include "common/error.h"
#include "common/units.h"

#include <stdio.h>

static gboolean read_duration(const char *option, const char *text, guint64 *out_sec,
                              GError **error)
{
    if (text == NULL)
        return TRUE;
    if (!berth_parse_duration_sec(text, out_sec, error)) {
        g_prefix_error(error, "%s: ", option);
        return FALSE;
    }
    if (*out_sec > 0)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "%s: \"%s\" is too little: 1s at least", option, text);
    return FALSE;
}

/* WANTED but for its job. FALSE: refused. */
static gboolean extend_one(BerthCli *cli, Berth__ExtendRequest wanted, guint64 job, GError **error)
{
    wanted.job = job;
    Berth__JobReply *reply = (Berth__JobReply *)berth_cli_call(cli, &berth__jobs__descriptor,
                                                               "Extend", &wanted.base, error);
    if (reply == NULL)
        return FALSE;
    g_autofree char *limit =
        berth_format_duration_sec(reply->job != NULL ? reply->job->time_limit_sec : 0);
    if (cli->json && reply->job != NULL)
        berth_cli_print_json(&reply->job->base);
    else
        printf("job %" G_GUINT64_FORMAT " may run for %s\n", job, limit);
    berth__job_reply__free_unpacked(reply, NULL);
    return TRUE;
}

gboolean berth_cli_extend(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    g_autofree char *time = NULL, *by = NULL, *reason = NULL;
    Berth__ExtendRequest wanted = BERTH__EXTEND_REQUEST__INIT;
    const GOptionEntry entries[] = {
        {"time", 't', 0, G_OPTION_ARG_STRING, &time, "Time limit from now on, in all: 30m, 2h",
         "TIME"},
        {"by", 'b', 0, G_OPTION_ARG_STRING, &by, "So much more than it has now", "TIME"},
        BERTH_CLI_REASON(&reason),
        {"json", 0, 0, G_OPTION_ARG_NONE, &cli->json, "Print each job as JSON", NULL},
        {NULL}};
    if (!berth_cli_parse(
            &argc, &argv, entries, "JOB...",
            "Gives jobs another time limit. One that stands still at its limit goes on from there "
            "as soon\nas there is room. While a job runs others are planned behind its limit: only "
            "an operator can\nput that off, and anybody else extends it before it starts, or at "
            "its limit.",
            NULL, out_status, error))
        return FALSE;
    if ((time == NULL) == (by == NULL)) {
        berth_cli_usage_error(out_status, error,
                              "for how long? say --time TIME or --by TIME, one of them");
        return FALSE;
    }
    if (!read_duration("--time", time, &wanted.time_limit_sec, error) ||
        !read_duration("--by", by, &wanted.by_sec, error)) {
        *out_status = BERTH_EXIT_USAGE;
        return FALSE;
    }
    if (reason != NULL)
        wanted.reason = reason;
    g_autoptr(GArray) jobs = berth_cli_job_arguments(argc, argv, out_status, error);
    if (jobs == NULL)
        return FALSE;
    for (guint i = 0; i < jobs->len; i++) {
        g_autoptr(GError) local = NULL;
        if (!berth_cli_connect(cli, error))
            return FALSE;
        if (!extend_one(cli, wanted, g_array_index(jobs, guint64, i), &local))
            berth_cli_report(local, out_status);
    }
    return TRUE;
}
