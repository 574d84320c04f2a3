/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"
#include "cli/ended.h"
#include "cli/progress.h"
#include "cli/table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static const BerthColumn columns[] = {
    {.title = "N", .right = TRUE}, {.title = "NAME", .flexible = TRUE}, {.title = "STATE"}};

/* Prints a two-row table of WIDTH into a string. */
static char *printed(guint width)
{
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    g_autoptr(BerthTable) table = berth_table_new(columns, G_N_ELEMENTS(columns));
    berth_table_add(table, g_strdup("7"));
    berth_table_add(table, g_strdup("a-rather-long-name"));
    berth_table_add(table, g_strdup("RUNNING"));
    berth_table_add(table, g_strdup("1234"));
    berth_table_add(table, g_strdup("größe"));
    berth_table_add(table, NULL);
    berth_table_print(table, stream, width);
    fclose(stream);
    return text;
}

static void table_print_unlimited_aligns_by_characters(void **state)
{
    char *text = printed(0);
    assert_string_equal(text, "   N  NAME                STATE\n"
                              "   7  a-rather-long-name  RUNNING\n"
                              "1234  größe               -\n");
    free(text);
}

static void table_print_narrow_shortens_flexible_columns_only(void **state)
{
    char *text = printed(25);
    assert_string_equal(text, "   N  NAME        STATE\n"
                              "   7  a-rather-…  RUNNING\n"
                              "1234  größe       -\n");
    free(text);
}

static void table_print_too_narrow_leaves_columns_out(void **state)
{
    static const BerthColumn droppable[] = {{.title = "N", .right = TRUE},
                                            {.title = "NAME", .flexible = TRUE, .drop = 1},
                                            {.title = "STATE"},
                                            {.title = "WHEN", .drop = 2}};
    static const struct {
        guint width;
        const char *expected;
    } cases[] = {
        {0, "N  NAME         STATE    WHEN\n7  twelve-wide  RUNNING  now\n"},
        {28, "N  NAME        STATE    WHEN\n7  twelve-wi…  RUNNING  now\n"},
        {24, "N  NAME         STATE\n7  twelve-wide  RUNNING\n"},
        {20, "N  NAME      STATE\n7  twelve-…  RUNNING\n"},
        {19, "N  STATE\n7  RUNNING\n"},
        {1, "N  STATE\n7  RUNNING\n"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        char *text = NULL;
        size_t size;
        FILE *stream = open_memstream(&text, &size);
        g_autoptr(BerthTable) table = berth_table_new(droppable, G_N_ELEMENTS(droppable));
        static const char *const cells[] = {"7", "twelve-wide", "RUNNING", "now"};
        for (gsize c = 0; c < G_N_ELEMENTS(cells); c++)
            berth_table_add(table, g_strdup(cells[c]));
        berth_table_print(table, stream, cases[i].width);
        fclose(stream);
        assert_string_equal(text, cases[i].expected);
        free(text);
    }
}

static void table_print_wide_characters_take_two_columns(void **state)
{
    static const BerthColumn two[] = {{.title = "NAME", .flexible = TRUE}, {.title = "S"}};
    char *text = NULL;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    g_autoptr(BerthTable) table = berth_table_new(two, G_N_ELEMENTS(two));
    static const char *const cells[] = {"\xe4\xb8\xad\xe6\x96\x87",
                                        "1",
                                        "e\xcc\x81t\xc3\xa9",
                                        "2",
                                        "\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad"
                                        "\xe4\xb8\xad\xe4\xb8\xad",
                                        "3"};
    for (gsize c = 0; c < G_N_ELEMENTS(cells); c++)
        berth_table_add(table, g_strdup(cells[c]));
    berth_table_print(table, stream, 11);
    fclose(stream);
    assert_string_equal(text, "NAME      S\n"
                              "\xe4\xb8\xad\xe6\x96\x87      1\n"
                              "e\xcc\x81t\xc3\xa9       2\n"
                              "\xe4\xb8\xad\xe4\xb8\xad\xe4\xb8\xad…   3\n");
    free(text);
}

static void printable_what_plays_with_a_terminal_is_replaced(void **state)
{
    g_autofree char *text = berth_printable("a\x1b[2Jb\n\xff\xe2\x80\xaejob\xe2\x80\xa8");
    assert_string_equal(text, "a?[2Jb?\xef\xbf\xbd?job?");
}

static void command_find_knows_words_and_groups(void **state)
{
    static const struct {
        const char *words[3];
        const char *expected;
        int n;
        gboolean group;
    } cases[] = {
        {{"submit", "x"}, "submit", 1, FALSE},
        {{"node", "ls"}, "node ls", 2, TRUE},
        {{"node", "rm"}, NULL, 0, TRUE},
        {{"node"}, NULL, 0, TRUE},
        {{"nod"}, NULL, 0, FALSE},
        {{"image", "rm"}, "image rm", 2, TRUE},
        {{"subm"}, NULL, 0, FALSE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        int n = 0;
        gboolean group;
        int argc = cases[i].words[1] ? 2 : 1;
        const BerthCommand *command = berth_command_find(argc, (char **)cases[i].words, &n, &group);
        if (cases[i].expected == NULL)
            assert_null(command);
        else
            assert_string_equal(command->name, cases[i].expected);
        assert_int_equal(n, cases[i].n);
        assert_int_equal(group, cases[i].group);
    }
}

static void job_exit_status_is_the_commands_own(void **state)
{
    static const struct {
        Berth__JobState state;
        gboolean has_exit;
        guint32 status, signal;
        int expected;
    } cases[] = {
        {BERTH__JOB_STATE__COMPLETED, TRUE, 0, 0, 0},
        {BERTH__JOB_STATE__FAILED, TRUE, 3, 0, 3},
        {BERTH__JOB_STATE__FAILED, TRUE, 0, 11, 139},
        {BERTH__JOB_STATE__OUT_OF_MEMORY, TRUE, 0, 9, 137},
        {BERTH__JOB_STATE__TIMEOUT, TRUE, 0, 15, 143},
        {BERTH__JOB_STATE__TIMEOUT, TRUE, 0, 0, 125},
        {BERTH__JOB_STATE__CANCELLED, FALSE, 0, 0, 125},
        {BERTH__JOB_STATE__NODE_FAIL, FALSE, 0, 0, 125},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Berth__Job job = BERTH__JOB__INIT;
        Berth__Task task = BERTH__TASK__INIT;
        Berth__Exit exit = BERTH__EXIT__INIT;
        Berth__Task *tasks[] = {&task};
        job.state = cases[i].state;
        job.tasks = tasks;
        job.n_tasks = 1;
        exit.status = cases[i].status;
        exit.signal = cases[i].signal;
        task.exit = cases[i].has_exit ? &exit : NULL;
        assert_int_equal(berth_job_exit_status(&job, NULL), cases[i].expected);
    }
}

static void shorten_middle_keeps_both_ends(void **state)
{
    static const struct {
        const char *text;
        guint width;
        const char *expected;
    } cases[] = {
        {"short", 5, "short"},
        {"/a/very/long/path/to/input.tar", 13, "/a/v…nput.tar"},
        {"abcdef", 1, "…"},
        {"abcdef", 0, "…"},
        {"äöüßéèê", 4, "ä…èê"},
        {"漢字漢字漢字", 7, "漢…漢字"},
        {"", 0, ""},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *shown = berth_shorten_middle(cases[i].text, cases[i].width);
        assert_string_equal(shown, cases[i].expected);
    }
}

static void progress_line_is_one_line_of_its_terminal(void **state)
{
    BerthProgress progress = {.verb = "sending",
                              .path = "/scratch/somebody/a/very/long/way/down/to/the/input.tar",
                              .total_bytes = G_GUINT64_CONSTANT(100) << 20};
    g_autofree char *whole = berth_progress_line(&progress, 50u << 20, 0);
    assert_non_null(strstr(whole, progress.path));
    for (guint width = 60; width < 120; width++) {
        g_autofree char *line = berth_progress_line(&progress, 50u << 20, width);
        assert_true(berth_text_width(line) < width);
        assert_non_null(strstr(line, "nput.tar\": 50 of 100 MiB (50%)"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_print_unlimited_aligns_by_characters),
        cmocka_unit_test(table_print_narrow_shortens_flexible_columns_only),
        cmocka_unit_test(table_print_too_narrow_leaves_columns_out),
        cmocka_unit_test(table_print_wide_characters_take_two_columns),
        cmocka_unit_test(shorten_middle_keeps_both_ends),
        cmocka_unit_test(progress_line_is_one_line_of_its_terminal),
        cmocka_unit_test(printable_what_plays_with_a_terminal_is_replaced),
        cmocka_unit_test(command_find_knows_words_and_groups),
        cmocka_unit_test(job_exit_status_is_the_commands_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
