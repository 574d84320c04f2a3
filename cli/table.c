/* SPDX-License-Identifier: Apache-2.0 */
/* Owns the layout of tables. Widths are counted in columns of a terminal, not bytes or characters. */
#include "cli/table.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define GAP          2u
#define FLEXIBLE_MIN 8u

struct BerthTable {
    const BerthColumn *columns;
    guint n_columns;
    GPtrArray *cells; /* row by row */
};

BerthTable *berth_table_new(const BerthColumn *columns, guint n_columns)
{
    BerthTable *table = g_new0(BerthTable, 1);
    table->columns = columns;
    table->n_columns = n_columns;
    table->cells = g_ptr_array_new_with_free_func(g_free);
    return table;
}

void berth_table_free(BerthTable *table)
{
    g_ptr_array_unref(table->cells);
    g_free(table);
}

/* Most are of ASCII, and there may be a million of them. */
static gboolean is_printable(gunichar c)
{
    if (c < 0x80)
        return g_ascii_isprint((char)c);
    GUnicodeType type = g_unichar_type(c);
    return !g_unichar_iscntrl(c) && type != G_UNICODE_FORMAT && type != G_UNICODE_LINE_SEPARATOR &&
           type != G_UNICODE_PARAGRAPH_SEPARATOR;
}

char *berth_printable(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    GString *result = g_string_new(NULL);
    for (const char *p = valid, *next; *p != '\0'; p = next) {
        next = g_utf8_next_char(p);
        if (is_printable(g_utf8_get_char(p)))
            g_string_append_len(result, p, next - p);
        else
            g_string_append_c(result, '?');
    }
    return g_string_free(result, FALSE);
}

void berth_table_add(BerthTable *table, char *cell)
{
    g_autofree char *text = cell;
    g_ptr_array_add(table->cells, text ? berth_printable(text) : g_strdup("-"));
}

guint berth_terminal_width(FILE *stream)
{
    const char *environment = g_getenv("COLUMNS");
    guint64 columns;
    if (environment && g_ascii_string_to_unsigned(environment, 10, 20, 10000, &columns, NULL))
        return (guint)columns;
    struct winsize size;
    if (!isatty(fileno(stream)) || ioctl(fileno(stream), TIOCGWINSZ, &size) != 0)
        return 0;
    return size.ws_col >= 20 ? size.ws_col : 80;
}

static guint char_width(gunichar c)
{
    if (c < 0x80)
        return 1;
    return g_unichar_iszerowidth(c) ? 0 : g_unichar_iswide(c) ? 2 : 1;
}

guint berth_text_width(const char *text)
{
    guint width = 0;
    for (const char *p = text; *p != '\0'; p = g_utf8_next_char(p))
        width += char_width(g_utf8_get_char(p));
    return width;
}

char *berth_shorten_middle(const char *text, guint width)
{
    if (berth_text_width(text) <= width)
        return g_strdup(text);
    guint room = MAX(width, 1) - 1; /* beside the ellipsis */
    guint head_room = room / 3;
    guint tail_room = room - head_room;
    const char *head_end = text;
    const char *tail = text + strlen(text);
    for (guint w; (w = char_width(g_utf8_get_char(head_end))) <= head_room;
         head_end = g_utf8_next_char(head_end))
        head_room -= w;
    for (guint w; (w = char_width(g_utf8_get_char(g_utf8_prev_char(tail)))) <= tail_room;
         tail = g_utf8_prev_char(tail))
        tail_room -= w;
    return g_strdup_printf("%.*s…%s", (int)(head_end - text), text, tail);
}

/* Width of each column, 0 = left out. */
static guint *natural_widths(BerthTable *table, guint drop_limit)
{
    guint *widths = g_new0(guint, table->n_columns);
    for (guint c = 0; c < table->n_columns; c++)
        widths[c] = berth_text_width(table->columns[c].title);
    for (guint i = 0; i < table->cells->len; i++) {
        guint width = berth_text_width(g_ptr_array_index(table->cells, i));
        guint c = i % table->n_columns;
        widths[c] = MAX(widths[c], width);
    }
    for (guint c = 0; c < table->n_columns; c++) {
        if (table->columns[c].drop > drop_limit)
            widths[c] = 0;
    }
    return widths;
}

static guint line_width(BerthTable *table, const guint *widths)
{
    guint total = 0;
    for (guint c = 0; c < table->n_columns; c++) {
        if (widths[c] > 0)
            total += widths[c] + (total > 0 ? GAP : 0);
    }
    return total;
}

/* Takes what is too much from the widest flexible column, one character at a time. FALSE: it still
 * is too much. */
static gboolean shrink(BerthTable *table, guint *widths, guint width)
{
    for (guint total = line_width(table, widths); total > width; total--) {
        guint widest = table->n_columns;
        for (guint c = 0; c < table->n_columns; c++) {
            if (table->columns[c].flexible && widths[c] > FLEXIBLE_MIN &&
                (widest == table->n_columns || widths[c] > widths[widest]))
                widest = c;
        }
        if (widest == table->n_columns)
            return FALSE;
        widths[widest]--;
    }
    return TRUE;
}

/* Widths of the columns so that lines fit into WIDTH, with as few left out as possible. */
static guint *fit(BerthTable *table, guint width)
{
    guint drop_limit = 0;
    for (guint c = 0; c < table->n_columns; c++)
        drop_limit = MAX(drop_limit, table->columns[c].drop);
    for (;; drop_limit--) {
        g_autofree guint *widths = natural_widths(table, drop_limit);
        if (width == 0 || shrink(table, widths, width) || drop_limit == 0)
            return g_steal_pointer(&widths);
    }
}

char *berth_text_cut(const char *text, guint width)
{
    const char *end = text;
    for (guint left = width; *end != '\0' && char_width(g_utf8_get_char(end)) <= left;
         end = g_utf8_next_char(end))
        left -= char_width(g_utf8_get_char(end));
    return g_strndup(text, (gsize)(end - text));
}

static void append_spaces(GString *line, guint n)
{
    gsize length = line->len;
    g_string_set_size(line, length + n);
    memset(line->str + length, ' ', n);
}

static void append_cell(GString *line, const BerthColumn *column, const char *text, guint width)
{
    guint whole = berth_text_width(text);
    g_autofree char *head = whole > width ? berth_text_cut(text, width - 1) : NULL;
    guint pad = width - (head ? berth_text_width(head) + 1 : whole);
    append_spaces(line, (line->len > 0 ? GAP : 0) + (column->right ? pad : 0));
    g_string_append(line, head ? head : text);
    if (head)
        g_string_append(line, "…");
    append_spaces(line, column->right ? 0 : pad);
}

/* One line of the table, of TEXTS or, if that is NULL, of the titles. */
static char *format_line(BerthTable *table, const guint *widths, char *const *texts)
{
    GString *line = g_string_new(NULL);
    for (guint c = 0; c < table->n_columns; c++) {
        if (widths[c] > 0)
            append_cell(line, &table->columns[c], texts ? texts[c] : table->columns[c].title,
                        widths[c]);
    }
    return g_strchomp(g_string_free(line, FALSE));
}

GPtrArray *berth_table_lines(BerthTable *table, guint width)
{
    g_assert(table->cells->len % table->n_columns == 0);
    g_autofree guint *widths = fit(table, width);
    GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(lines, format_line(table, widths, NULL));
    for (guint i = 0; i < table->cells->len; i += table->n_columns)
        g_ptr_array_add(lines, format_line(table, widths, (char *const *)&table->cells->pdata[i]));
    return lines;
}

/* The first words of *TEXT that fit WIDTH, or as much of the first word; *TEXT becomes the rest. (transfer full) */
static char *take_words(const char **text, guint width)
{
    char *head = berth_text_cut(*text, width);
    gsize length = strlen(head);
    gboolean ends_word = (*text)[length] == '\0' || (*text)[length] == ' ';
    char *space = ends_word ? NULL : strrchr(head, ' ');
    if (space != NULL && space > head) {
        *space = '\0';
        length = (gsize)(space - head);
    }
    *text += length;
    *text += strspn(*text, " ");
    return head;
}

/* What columns of fixed width have is in the first line. */
static char *format_next(BerthTable *table, const guint *widths, const char **rests)
{
    g_autoptr(GPtrArray) parts = g_ptr_array_new_with_free_func(g_free);
    for (guint c = 0; c < table->n_columns; c++) {
        g_ptr_array_add(parts, take_words(&rests[c], MAX(widths[c], 1)));
        if (widths[c] == 0)
            rests[c] = "";
    }
    return format_line(table, widths, (char *const *)parts->pdata);
}

static gboolean is_any_left(const BerthTable *table, const char *const *rests)
{
    for (guint c = 0; c < table->n_columns; c++)
        if (*rests[c] != '\0')
            return TRUE;
    return FALSE;
}

GPtrArray *berth_table_wrapped_lines(BerthTable *table, guint width)
{
    g_assert(table->cells->len % table->n_columns == 0);
    g_autofree guint *widths = fit(table, width);
    g_autofree const char **rests = g_new(const char *, table->n_columns);
    GPtrArray *lines = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(lines, format_line(table, widths, NULL));
    for (guint i = 0; i < table->cells->len; i += table->n_columns) {
        for (guint c = 0; c < table->n_columns; c++)
            rests[c] = g_ptr_array_index(table->cells, i + c);
        do
            g_ptr_array_add(lines, format_next(table, widths, rests));
        while (is_any_left(table, rests));
    }
    return lines;
}

void berth_table_print(BerthTable *table, FILE *stream, guint width)
{
    g_autoptr(GPtrArray) lines = berth_table_lines(table, width);
    for (guint i = 0; i < lines->len; i++)
        fprintf(stream, "%s\n", (const char *)g_ptr_array_index(lines, i));
}
