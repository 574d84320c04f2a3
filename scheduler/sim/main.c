/* SPDX-License-Identifier: Apache-2.0 */
/* berth-sim: the scheduler's decisions on real workloads, in virtual time. */
#include "config.h"

#include "common/error.h"
#include "scheduler/sim/app.h"

#include <locale.h>
#include <stdio.h>

#define EXIT_FAILED 1
#define EXIT_USAGE  2

static int fail(const GError *error)
{
    fprintf(stderr, "berth-sim: %s\n", error->message);
    return g_error_matches(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT) ? EXIT_USAGE
                                                                             : EXIT_FAILED;
}

int main(int argc, char **argv)
{
    SimOptions options;
    gboolean stop;
    g_autoptr(GError) error = NULL;
    setlocale(LC_CTYPE, "");
    if (!sim_options_parse(argc, argv, &options, &stop, &error))
        return fail(error);
    gboolean ok = stop || sim_app_run(&options, &error);
    sim_options_clear(&options);
    if (!ok)
        return fail(error);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    fputs("berth-sim: cannot write to standard output\n", stderr);
    return EXIT_FAILED;
}
