/* SPDX-License-Identifier: Apache-2.0 */
/* A line for each task: each comes back as it was written, and what is damaged is not guessed at. */
#include "tests/lib/assert.h"

#include "common/task_lines.h"

#include <string.h>

#define COUNT_MAX 5u

typedef struct {
    GBytes *packed;
    guint reads;
    gsize bytes; /* that were read */
} Source;

static GBytes *read_some(gpointer data, guint64 offset, gsize length, GError **error)
{
    Source *source = data;
    gsize size = g_bytes_get_size(source->packed);
    gsize from = (gsize)MIN(offset, size);
    source->reads++;
    source->bytes += length;
    return g_bytes_new_from_bytes(source->packed, from, MIN(length, size - from));
}

static Source pack(const char *text, guint32 count)
{
    g_autoptr(GError) error = NULL;
    guint32 found = 0;
    Source source = {berth_task_lines_pack(text, strlen(text), COUNT_MAX, &found, &error), 0, 0};
    assert_no_error(error);
    assert_int_equal(found, count);
    return source;
}

static void assert_line(Source *source, guint32 index, const char *expected)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *line = berth_task_lines_get(read_some, source, index, &error);
    assert_no_error(error);
    assert_string_equal(line, expected);
}

static void assert_none(Source *source, guint32 index)
{
    g_autoptr(GError) error = NULL;
    assert_null(berth_task_lines_get(read_some, source, index, &error));
    assert_berth_error(error, BERTH_ERROR_DATA_LOSS, "submit it again");
}

static void each_line_comes_back(void **state)
{
    Source source = pack("alpha=1 beta=2\n\n  two  words \n\xc3\xa4\n", 4);
    assert_line(&source, 0, "alpha=1 beta=2");
    assert_line(&source, 1, "");
    assert_line(&source, 2, "  two  words ");
    assert_line(&source, 3, "\xc3\xa4");
    assert_none(&source, 4);
    assert_none(&source, G_MAXUINT32);
    g_bytes_unref(source.packed);
}

static void last_line_need_not_end(void **state)
{
    Source source = pack("a\nb", 2);
    assert_line(&source, 1, "b");
    assert_none(&source, 2);
    g_bytes_unref(source.packed);
    source = pack("\n", 1);
    assert_line(&source, 0, "");
    g_bytes_unref(source.packed);
}

static void line_is_read_without_the_others(void **state)
{
    g_autofree char *long_line = g_strnfill(30000, 'x');
    g_autofree char *text = g_strconcat(long_line, "\nshort\n", long_line, "\n", NULL);
    Source source = pack(text, 3);
    assert_line(&source, 1, "short");
    assert_int_equal(source.reads, 2);
    assert_int_equal(source.bytes, 2 * BERTH_TASK_LINES_OFFSET_BYTES + strlen("short"));
    g_bytes_unref(source.packed);
}

static void assert_refused(const char *text, gsize length, const char *why)
{
    g_autoptr(GError) error = NULL;
    guint32 count = 0;
    assert_null(berth_task_lines_pack(text, length, COUNT_MAX, &count, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, why);
}

static void what_cannot_be_a_line_is_named(void **state)
{
    g_autofree char *longest = g_strnfill(BERTH_TASK_LINE_MAX_BYTES, 'x');
    g_autofree char *longer = g_strconcat("a\n", longest, "x\n", NULL);
    Source source = pack(longest, 1);
    assert_line(&source, 0, longest);
    g_bytes_unref(source.packed);
    assert_refused("", 0, "it has no lines");
    assert_refused(longer, strlen(longer), "line 2 is longer than 32768 bytes");
    assert_refused("a\nb\r\n", 5, "line 2 ends in CR LF");
    assert_refused("a\nb\0c\n", 6, "line 2 has a NUL byte");
    assert_refused("\xff\n", 2, "line 1 is not valid UTF-8");
    assert_refused("1\n2\n3\n4\n5\n6\n", 12, "line 6 is one too many");
}

/* Whatever the offsets say, nothing but a line of it is given, or none. */
static void what_is_damaged_is_no_line(void **state)
{
    Source good = pack("one\ntwo\n", 2);
    gsize size = 0;
    const guint8 *bytes = g_bytes_get_data(good.packed, &size);
    const gsize head = (gsize)3 * BERTH_TASK_LINES_OFFSET_BYTES;
    for (gsize length = 0; length < size; length++) {
        Source cut = {g_bytes_new(bytes, length), 0, 0};
        if (length < head + strlen("one"))
            assert_none(&cut, 0);
        else
            assert_line(&cut, 0, "one");
        assert_none(&cut, 1);
        g_bytes_unref(cut.packed);
    }
    for (guint bit = 0; bit < 64; bit++) {
        g_autofree guint8 *changed = g_memdup2(bytes, size);
        changed[BERTH_TASK_LINES_OFFSET_BYTES + bit / 8] ^= (guint8)(1u << bit % 8);
        Source wrong = {g_bytes_new(changed, size), 0, 0};
        g_autoptr(GError) error = NULL;
        g_autofree char *line = berth_task_lines_get(read_some, &wrong, 0, &error);
        assert_true(line != NULL ? strlen(line) <= strlen("onetwo")
                                 : g_error_matches(error, BERTH_ERROR, BERTH_ERROR_DATA_LOSS));
        g_bytes_unref(wrong.packed);
    }
    g_bytes_unref(good.packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_comes_back),
        cmocka_unit_test(last_line_need_not_end),
        cmocka_unit_test(line_is_read_without_the_others),
        cmocka_unit_test(what_cannot_be_a_line_is_named),
        cmocka_unit_test(what_is_damaged_is_no_line),
    };
    return cmocka_run_group_tests_name("task_lines", tests, NULL, NULL);
}
