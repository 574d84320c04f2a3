/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "tests/lib/berthd_fixture.h"

/* The real `berth`, run beside a daemon of a test. Its output is read in the test's main context, in
 * which the nodes live too, so that a test can act while it runs. */

typedef struct CliProcess CliProcess;

/* Starts `berth ARGUMENTS` with an environment of its own: BERTH_SOCKET, PATH, LC_ALL=C.UTF-8, BERTH
 * (the program), HOME (the directory of SOCKET, where it also works) and the NAME=VALUEs of
 * ENVIRONMENT (may be NULL). */
CliProcess *cli_start(const char *socket, const char *const *arguments,
                      const char *const *environment);
/* The same for any program: ARGV[0] is looked up in PATH. */
CliProcess *cli_start_program(const char *socket, const char *const *argv,
                              const char *const *environment);
/* Starts it as another user. Skips the test unless it runs as root. */
CliProcess *cli_start_as(const char *socket, uid_t uid, const char *const *arguments);

/* What it has written until now, and as much again. (transfer none) */
const char *cli_out(CliProcess *cli);
gsize cli_out_length(CliProcess *cli);
const char *cli_err(CliProcess *cli);
gboolean cli_has_ended(CliProcess *cli);
void cli_signal(CliProcess *cli, int signal);
/* Waits for its end and all of its output: its exit status, or 128+N for a signal. */
int cli_wait(CliProcess *cli);
void cli_free(CliProcess *cli);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CliProcess, cli_free)

/* Standard output of a command that must succeed without a word on standard error. CLI is (transfer full),
 * and so is what is returned. */
char *cli_output_of(CliProcess *cli);
/* A job's number as a word of a command. (transfer full) */
char *cli_job(guint64 job);

/* CLI(berthd, "run", "--", "true") */
#define CLI(berthd, ...)                                                                           \
    cli_start(berthd_fixture_socket(berthd), (const char *const[]){__VA_ARGS__, NULL}, NULL)
/* CLI_SHELL(berthd, "\"$BERTH\" ls | head -n 1") */
#define CLI_SHELL(berthd, script)                                                                  \
    cli_start_program(berthd_fixture_socket(berthd),                                               \
                      (const char *const[]){"sh", "-c", (script), NULL}, NULL)

/* Waits; fails the test with what it said if its status is another. */
#define assert_cli_status(cli, expected)                                                           \
    do {                                                                                           \
        int cli_status = cli_wait(cli);                                                            \
        if (cli_status != (expected))                                                              \
            fail_msg("status %d instead of %d; stdout \"%.2000s\", stderr \"%.2000s\"",            \
                     cli_status, (expected), cli_out(cli), cli_err(cli));                          \
    } while (0)
/* TEXT contains PART. */
#define assert_contains(text, part)                                                                \
    do {                                                                                           \
        if (strstr((text), (part)) == NULL)                                                        \
            fail_msg("no \"%s\" in \"%.4000s\"", (part), (text));                                  \
    } while (0)
