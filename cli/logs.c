/* SPDX-License-Identifier: Apache-2.0 */
/* berth logs: prints what a job has written, from its start. */
#include "cli/follow.h"

#include <unistd.h>

gboolean berth_cli_logs(BerthCli *cli, int argc, char **argv, int *out_status, GError **error)
{
    gboolean follow = FALSE, only_stdout = FALSE, only_stderr = FALSE;
    const GOptionEntry entries[] = {
        {"follow", 'f', 0, G_OPTION_ARG_NONE, &follow, "Go on until the job has ended", NULL},
        {"stdout", 'o', 0, G_OPTION_ARG_NONE, &only_stdout, "Standard output only", NULL},
        {"stderr", 'e', 0, G_OPTION_ARG_NONE, &only_stderr, "Standard error only", NULL},
        {NULL}};
    if (!berth_cli_parse(&argc, &argv, entries, "JOB[[INDEX]]",
                         "The job's stdout comes on stdout and its stderr on stderr; one of them "
                         "alone comes on stdout.",
                         NULL, out_status, error))
        return FALSE;
    if (argc != 2)
        return berth_cli_usage_error(out_status, error, "name one job (see %s --help)", argv[0]);
    if (only_stdout && only_stderr)
        return berth_cli_usage_error(
            out_status, error, "--stdout and --stderr exclude each other; both is the default");
    BerthFollow request = {
        .follow = follow, .stdout_fd = STDOUT_FILENO, .stderr_fd = STDERR_FILENO};
    if (only_stdout)
        request.stderr_fd = -1;
    if (only_stderr) {
        request.stdout_fd = -1;
        request.stderr_fd = STDOUT_FILENO;
    }
    BerthCliTask task = {0};
    if (!berth_cli_task_argument(argv[1], &task, error)) {
        *out_status = BERTH_EXIT_USAGE;
        return FALSE;
    }
    request.job = task.job;
    request.of_array = task.of_array;
    request.task = task.task;
    gboolean no_reader;
    return berth_follow_logs(cli, &request, &no_reader, error);
}
