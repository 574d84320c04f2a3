/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"

#include "common/id.h"

static void names_format_and_parse_round_trip(void **state)
{
    static const struct {
        char *(*format)(const BerthGuestId *id);
        gboolean (*parse)(const char *text, BerthGuestId *out_id, GError **error);
        const char *expected;
    } kinds[] = {
        {berth_guest_name_format, berth_guest_name_parse, "berth-12-3-4-5"},
        {berth_disk_id_format, berth_disk_id_parse, "disk-12-3-4-5"},
        {berth_log_id_format, berth_log_id_parse, "log-12-3-4-5"},
    };
    const BerthGuestId id = {.job = 12, .task = 3, .guest = 4, .epoch = 5};
    const BerthGuestId largest = {G_MAXUINT64, G_MAXUINT32, G_MAXUINT32, G_MAXUINT32};
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        BerthGuestId read = {0};
        g_autofree char *text = kinds[i].format(&id);
        g_autofree char *large = kinds[i].format(&largest);
        assert_string_equal(text, kinds[i].expected);
        assert_true(kinds[i].parse(text, &read, NULL));
        assert_true(berth_guest_id_equal(&id, &read));
        assert_true(kinds[i].parse(large, &read, NULL));
        assert_true(berth_guest_id_equal(&largest, &read));
    }
}

static void guest_name_parse_bad_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "berth",
                                      "berth-",
                                      "berth-1-2-3",
                                      "berth-1-2-3-4-5",
                                      "berth-0-0-0-1",
                                      "berth-1-02-3-4",
                                      "berth-1-2-3-4x",
                                      "disk-1-2-3-4",
                                      "berth-1-2-3-4294967296",
                                      "berth-1--2-3-4",
                                      "\xff\n"};
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        BerthGuestId id = {.job = 77};
        assert_false(berth_guest_name_parse(bad[i], &id, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "berth-JOB-TASK-GUEST-EPOCH");
        assert_true(g_utf8_validate(error->message, -1, NULL));
        assert_int_equal(id.job, 77);
    }
}

static void job_and_task_ids_are_formatted(void **state)
{
    g_autofree char *job = berth_job_id_format(123);
    g_autofree char *task = berth_task_id_format(123, 4);
    assert_string_equal(job, "123");
    assert_string_equal(task, "123[4]");
    g_autofree char *plain = berth_task_name_format(123, FALSE, 0);
    g_autofree char *first = berth_task_name_format(123, TRUE, 0);
    assert_string_equal(plain, "123");
    assert_string_equal(first, "123[0]");
}

static void guest_ids_are_hash_table_keys(void **state)
{
    g_autoptr(GHashTable) table = g_hash_table_new(berth_guest_id_hash, berth_guest_id_equal_func);
    static const BerthGuestId ids[] = {
        {1, 0, 0, 1}, {1, 0, 0, 2}, {1, 1, 0, 1}, {1, 0, 1, 1}, {2, 0, 0, 1}};
    for (gsize i = 0; i < G_N_ELEMENTS(ids); i++)
        assert_true(g_hash_table_add(table, (gpointer)&ids[i]));
    const BerthGuestId same = ids[2];
    assert_ptr_equal(g_hash_table_lookup(table, &same), &ids[2]);
}

static void job_path_format_expands_the_number(void **state)
{
    static const struct {
        const char *pattern;
        const char *path;
    } cases[] = {
        {"/a/%j.out", "/a/42.out"}, {"/a/%%j", "/a/%j"},         {"/a/%x%", "/a/%x%"}, {"", ""},
        {"/%j/%j", "/42/42"},       {"/%j-%a.out", "/42-7.out"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = berth_job_path_format(cases[i].pattern, 42, 7);
        assert_string_equal(path, cases[i].path);
    }
}

static void job_path_is_of_a_task_where_it_differs(void **state)
{
    assert_true(berth_job_path_is_of_task("/a/%a"));
    assert_true(berth_job_path_is_of_task("%%%a"));
    assert_false(berth_job_path_is_of_task("/a/%%a"));
    assert_false(berth_job_path_is_of_task("/a/%j.out"));
    assert_false(berth_job_path_is_of_task(""));
}

static void job_tasks_parse_reads_both_forms(void **state)
{
    static const struct {
        const char *text;
        guint64 job;
        const char *tasks; /* NULL: all */
    } cases[] = {
        {"1", 1, NULL},
        {"42[7]", 42, "7"},
        {"42[0-9,20-30:2]", 42, "0-9,20-30:2"},
        {"5[3,1-2]", 5, "1-3"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        guint64 job = 0;
        BerthIndexSet *tasks = NULL;
        g_autoptr(GError) error = NULL;
        assert_true(berth_job_tasks_parse(cases[i].text, &job, &tasks, &error));
        assert_int_equal(job, cases[i].job);
        assert_int_equal(tasks == NULL, cases[i].tasks == NULL);
        if (tasks == NULL)
            continue;
        g_autofree char *text = berth_index_set_format(tasks);
        assert_string_equal(text, cases[i].tasks);
        berth_index_set_free(tasks);
    }
}

static void job_tasks_parse_says_what_is_wrong(void **state)
{
    static const struct {
        const char *text;
        const char *why;
    } cases[] = {
        {"", "is not a job"},
        {"0", "is not a job"},
        {"01", "is not a job"},
        {"-1", "is not a job"},
        {" 1", "is not a job"},
        {"18446744073709551616", "is not a job"},
        {"x[1]", "is not a job"},
        {"42[", "is not a job"},
        {"42[]", "is not a job"},
        {"42[1", "is not a job"},
        {"42[1]x", "is not a job"},
        {"42 [1]", "is not a job"},
        {"42[a]", "an index is a number"},
        {"42[5-1]", "a range ends before it begins"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        guint64 job = 0;
        BerthIndexSet *tasks = NULL;
        g_autoptr(GError) error = NULL;
        assert_false(berth_job_tasks_parse(cases[i].text, &job, &tasks, &error));
        assert_null(tasks);
        assert_non_null(strstr(error->message, cases[i].why));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job_tasks_parse_reads_both_forms),
        cmocka_unit_test(job_tasks_parse_says_what_is_wrong),
        cmocka_unit_test(names_format_and_parse_round_trip),
        cmocka_unit_test(guest_name_parse_bad_is_refused),
        cmocka_unit_test(job_and_task_ids_are_formatted),
        cmocka_unit_test(guest_ids_are_hash_table_keys),
        cmocka_unit_test(job_path_format_expands_the_number),
        cmocka_unit_test(job_path_is_of_a_task_where_it_differs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
