/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "tests/lib/cli_process.h"

/* `berth` on a terminal of its own, of 30 lines and 120 columns. */
typedef struct {
    CliProcess *cli;
    int keys; /* what is typed */
    char *dir;
} CliTerminal;

/* Starts `berth WORDS` (as a shell reads them) beside a daemon at SOCKET. When it has ended, "status N" follows, if the terminal is
 * as it was. To be ended with cli_terminal_clear(). */
CliTerminal cli_terminal_start(const char *socket, const char *words);
void cli_terminal_type(const CliTerminal *terminal, const char *keys);
void cli_terminal_signal(const CliTerminal *terminal, int number);
/* What it drew last, "" before that. (transfer none) */
const char *cli_terminal_screen(CliTerminal *terminal);
guint cli_terminal_n_screens(CliTerminal *terminal);
/* Waits for its end, which is to be with "status N". */
void cli_terminal_assert_ended(CliTerminal *terminal, const char *status);
void cli_terminal_clear(CliTerminal *terminal);
