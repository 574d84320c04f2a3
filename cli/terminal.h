/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "proto/berth.pb-c.h"
#include <glib.h>

/* The terminal that this program runs on, as the other end of one elsewhere. */

/* Standard input and output become raw: each key is passed on, none is acted on. FAILED_PRECONDITION: they
 * are no terminal. */
gboolean berth_terminal_make_raw(GError **error);
/* A screen of this program's own, which leaves what was there as it was; keys are read as they are typed, and are not
 * shown, but ^C still interrupts. FALSE: standard input and output are no terminal that can do that. */
gboolean berth_terminal_open_screen(void);
/* SIGHUP, SIGINT and SIGTERM end this program, too, with its terminal as it was: for one whose loop does not hear of them. */
void berth_terminal_end_by_signals(void);
/* LINES (char *) are what it shows. FALSE: it cannot be written to any more. */
gboolean berth_terminal_draw(const GPtrArray *lines);
/* As it was. Nothing to do: nothing is done. */
void berth_terminal_restore(void);
/* Its size, and TERM as its type (transfer none); what is not known stays 0 or "". */
void berth_terminal_describe(Berth__Terminal *out_terminal);

/* Of the bytes that a terminal sends, so many of the LENGTH at KEYS are its first key: one, or a sequence that begins with
 * ESC, BERTH_KEY_MAX at most. 0: more of it is to come, or there is none. ESC by itself, and before what begins no sequence, is a key. */
#define BERTH_KEY_MAX 16u
gsize berth_key_length(const char *keys, gsize length);

/* The keys that are not passed on: "~." after Enter, or first of all, is to leave. "~~" there is "~"; "~" and
 * anything else is both. Zeroed but for `at_start`, which is TRUE, at first. */
typedef struct {
    gboolean at_start; /* of a line */
    gboolean has_tilde;
} BerthEscape;

/* Takes LENGTH bytes that were typed. OUT has room for LENGTH + 1; *out_length: those to be passed on.
 * TRUE: to leave, after these. */
gboolean berth_escape_take(BerthEscape *escape, const guint8 *typed, gsize length, guint8 *out,
                           gsize *out_length);
