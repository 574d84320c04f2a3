/* SPDX-License-Identifier: Apache-2.0 */
/* berth-sim: the scheduler's decisions on real workloads, in virtual time. */
#include "config.h"

#include "common/error.h"
#include "scheduler/sim/app.h"

#include <locale.h>
#include <signal.h>
#include <stdio.h>

#define EXIT_FAILED 1
#define EXIT_USAGE  2

static volatile sig_atomic_t interrupted; /* by this signal */

static void on_signal(int number)
{
    interrupted = number;
}

/* The first one ends the simulation and lets it say so; a second one ends the program. */
static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* For whoever waits for this program it was ended by the signal. */
static void end_as_interrupted(void)
{
    signal(interrupted, SIG_DFL);
    raise(interrupted);
}

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
    options.sim.interrupted = &interrupted;
    catch_signals();
    gboolean ok = stop || sim_app_run(&options, &error);
    sim_options_clear(&options);
    int status = ok ? 0 : fail(error);
    if (!ok && interrupted != 0) {
        fputs("berth-sim: no results but those shown above; none in --json or --plot\n", stderr);
        end_as_interrupted();
    }
    if (!ok)
        return status;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    fputs("berth-sim: cannot write to standard output\n", stderr);
    return EXIT_FAILED;
}
