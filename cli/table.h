/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <glib.h>
#include <stdio.h>

/* A table for people: columns as wide as their content, cut to fit a terminal. */

typedef struct {
    const char *title;
    gboolean right;    /* align right: numbers */
    gboolean flexible; /* may be shortened (with an ellipsis) when the terminal is narrow */
    guint drop;        /* left out when that is not enough, largest first; 0 = never */
} BerthColumn;

typedef struct BerthTable BerthTable;
/* COLUMNS must outlive the table. */
BerthTable *berth_table_new(const BerthColumn *columns, guint n_columns);
void berth_table_free(BerthTable *table);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(BerthTable, berth_table_free)

/* Adds one cell (text transfer full, NULL = "-"); n_columns of them make a row. Control characters
 * in it are shown as '?', so that no job name can play with a terminal. */
void berth_table_add(BerthTable *table, char *cell);
/* WIDTH: columns of the terminal, 0 = unlimited (none). Lines are longer only if the columns that are
 * never dropped do not fit. */
void berth_table_print(BerthTable *table, FILE *stream, guint width);

/* Likewise, as lines without their ends (char *, transfer full). */
GPtrArray *berth_table_lines(BerthTable *table, guint width);
/* Likewise, but flexible cells that are too long go on below, at words: of a row there are as many lines as the longest needs. */
GPtrArray *berth_table_wrapped_lines(BerthTable *table, guint width);

/* Columns of the terminal that STREAM is, 0 if it is none. COLUMNS in the environment overrides. */
guint berth_terminal_width(FILE *stream);

/* TEXT (UTF-8), or its beginning and its end with an ellipsis between them, of WIDTH columns at most; the
 * end is the longer one, as that of a path says more. (transfer full) */
char *berth_shorten_middle(const char *text, guint width);
guint berth_text_width(const char *text);            /* in columns */
char *berth_text_cut(const char *text, guint width); /* its beginning (transfer full) */

/* Text without what plays with a terminal: control characters, those that change the direction of
 * text, and invalid UTF-8 are replaced. (transfer full) */
char *berth_printable(const char *text);
