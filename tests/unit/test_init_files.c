/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/lib/assert.h"
#include "tests/lib/tempdir.h"

#include "images/init/files.h"
#include "images/init/paths.h"

#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

G_DEFINE_AUTOPTR_CLEANUP_FUNC(Files, files_free)

/* A task with an environment, a script and up to two inputs, by their sizes. */
typedef struct {
    Berth__GuestTask task;
    Berth__BlobRef blobs[4];
    Berth__GuestFile files[2];
    Berth__GuestFile *inputs[2];
    char *command[1];
} TestTask;

static Berth__BlobRef *blob(TestTask *test, unsigned index, uint64_t size)
{
    berth__blob_ref__init(&test->blobs[index]);
    test->blobs[index].size_bytes = size;
    return &test->blobs[index];
}

static void add_input(TestTask *test, const char *path, uint32_t mode, uint64_t size)
{
    size_t i = test->task.n_inputs++;

    berth__guest_file__init(&test->files[i]);
    test->files[i].path = (char *)path;
    test->files[i].mode = mode;
    test->files[i].blob = blob(test, (unsigned)(2 + i), size);
    test->inputs[i] = &test->files[i];
}

static void task_init(TestTask *test)
{
    memset(test, 0, sizeof *test);
    berth__guest_task__init(&test->task);
    test->task.uid = getuid();
    test->task.gid = getgid();
    test->task.inputs = test->inputs;
    test->command[0] = (char *)"dir/job.sh";
    test->task.command = test->command;
    test->task.n_command = 1;
}

static Files *files_for(TestTask *test, const char *directory, Fault *fault)
{
    g_autofree char *run = g_build_filename(directory, "run", NULL);
    g_autofree char *work = g_build_filename(directory, "work", NULL);

    (void)g_mkdir(run, 0700);
    (void)g_mkdir(work, 0700);
    return files_new(&test->task, run, work, fault);
}

static FilesResult put(Files *files, uint32_t index, uint64_t offset, const char *text)
{
    Fault fault = {0};

    return files_write(files, index, offset, (const uint8_t *)text, strlen(text), &fault);
}

static void assert_file(const char *directory, const char *name, unsigned mode,
                        const char *expected)
{
    g_autofree char *path = g_build_filename(directory, name, NULL);
    g_autofree char *text = NULL;
    GStatBuf status;

    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    assert_string_equal(text, expected);
    assert_int_equal(g_stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, mode);
}

static void files_in_order_are_written_with_their_modes(void **state)
{
    Fault fault = {0};
    TestTask test;

    task_init(&test);
    test.task.environment = blob(&test, 0, 4);
    test.task.script = blob(&test, 1, 3);
    add_input(&test, "in", 0640, 5);
    add_input(&test, "a/b/c", 0444, 0);
    g_autoptr(Files) files = files_for(&test, *state, &fault);

    assert_int_equal(files_progress(files).total, 4);
    assert_int_equal(put(files, 0, 0, "A=1x"), FILES_TAKEN);
    assert_int_equal(put(files, 1, 0, "#!"), FILES_TAKEN);
    assert_int_equal(files_progress(files).complete, 1);
    assert_int_equal(files_progress(files).bytes, 2);
    assert_int_equal(put(files, 1, 2, "x"), FILES_TAKEN);
    assert_int_equal(put(files, 2, 0, "hello"), FILES_TAKEN);
    assert_int_equal(files_progress(files).complete, 4); /* the empty one needs no data */
    assert_file(*state, "run/environment", 0600, "A=1x");
    assert_file(*state, "run/script/job.sh", 0755, "#!x");
    assert_file(*state, "work/in", 0640, "hello");
    assert_file(*state, "work/a/b/c", 0444, "");
    assert_true(g_str_has_suffix(files_script_path(files), "/run/script/job.sh"));
}

static void files_write_out_of_order_cases(void **state)
{
    /* After "abc" of a first file of six bytes, before a second of two. */
    static const struct {
        uint32_t index;
        uint64_t offset;
        const char *text;
        FilesResult result;
        uint32_t complete;
        uint64_t bytes;
    } cases[] = {
        {0, 0, "abc", FILES_TAKEN, 0, 3},    /* again */
        {0, 1, "bcde", FILES_TAKEN, 0, 5},   /* overlapping */
        {0, 0, "abcdef", FILES_TAKEN, 1, 0}, /* all of it again */
        {0, 3, "def", FILES_TAKEN, 1, 0},    /* as it should be */
        {0, 4, "ef", FILES_GAP, 0, 3},       /* a byte is missing */
        {1, 0, "xy", FILES_GAP, 0, 3},       /* the first is not complete */
        {7, 0, "xy", FILES_GAP, 0, 3},       /* there is no such file */
        {0, 3, "defg", FILES_FAILED, 0, 3},  /* more than its size */
        {0, UINT64_MAX, "x", FILES_GAP, 0, 3}, {0, 3, "", FILES_TAKEN, 0, 3},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Fault fault = {0};
        TestTask test;

        task_init(&test);
        add_input(&test, "first", 0600, 6);
        add_input(&test, "second", 0600, 2);
        g_autoptr(Files) files = files_for(&test, *state, &fault);
        assert_int_equal(put(files, 0, 0, "abc"), FILES_TAKEN);
        assert_int_equal(put(files, cases[i].index, cases[i].offset, cases[i].text),
                         cases[i].result);
        assert_int_equal(files_progress(files).complete, cases[i].complete);
        assert_int_equal(files_progress(files).bytes, cases[i].bytes);
        if (cases[i].complete == 1)
            assert_file(*state, "work/first", 0600, "abcdef");
    }
}

static void files_with_a_bad_path_are_refused(void **state)
{
    static const char *const paths[] = {"../x", "a/../x", "a/./x", "", "a/", "..", ".", "/", "a//"};

    for (size_t i = 0; i < G_N_ELEMENTS(paths); i++) {
        Fault fault = {0};
        TestTask test;

        task_init(&test);
        add_input(&test, paths[i], 0600, 0);
        assert_null(files_for(&test, *state, &fault));
        assert_non_null(strstr(fault.text, "refusing the path"));
    }
}

static void files_never_follow_symbolic_links(void **state)
{
    g_autofree char *outside = g_build_filename(*state, "outside", NULL);
    g_autofree char *work = g_build_filename(*state, "work", NULL);
    g_autofree char *directory_link = g_build_filename(work, "dirlink", NULL);
    g_autofree char *file_link = g_build_filename(work, "filelink", NULL);
    g_autofree char *victim = g_build_filename(outside, "victim", NULL);
    Fault fault = {0};
    TestTask test;

    assert_int_equal(g_mkdir(outside, 0700), 0);
    assert_int_equal(g_mkdir(work, 0700), 0);
    assert_true(g_file_set_contents(victim, "old", -1, NULL));
    assert_int_equal(symlink(outside, directory_link), 0);
    assert_int_equal(symlink(victim, file_link), 0);

    /* A link in place of a directory stops it; one in place of the file is replaced. */
    task_init(&test);
    add_input(&test, "dirlink/victim", 0600, 0);
    assert_null(files_for(&test, *state, &fault));
    assert_non_null(strstr(fault.text, "symbolic link"));
    task_init(&test);
    add_input(&test, "filelink", 0600, 3);
    g_autoptr(Files) files = files_for(&test, *state, &fault);
    assert_int_equal(put(files, 0, 0, "new"), FILES_TAKEN);
    assert_file(*state, "work/filelink", 0600, "new");
    assert_file(*state, "outside/victim", 0644, "old");
}

static void files_with_an_absolute_path_go_there(void **state)
{
    g_autofree char *path = g_build_filename(*state, "else", "where", NULL);
    Fault fault = {0};
    TestTask test;

    task_init(&test);
    add_input(&test, path, 0600, 1);
    g_autoptr(Files) files = files_for(&test, *state, &fault);
    assert_int_equal(put(files, 0, 0, "x"), FILES_TAKEN);
    assert_file(*state, "else/where", 0600, "x");
}

static void files_script_name_cases(void **state)
{
    static const struct {
        const char *command;
        const char *suffix;
    } cases[] = {
        {"job.sh", "/script/job.sh"}, {"/a/b/job.sh", "/script/job.sh"}, {"", "/script/script"},
        {"a/..", "/script/script"},   {"a/", "/script/script"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Fault fault = {0};
        TestTask test;

        task_init(&test);
        test.command[0] = (char *)cases[i].command;
        test.task.script = blob(&test, 1, 1);
        g_autoptr(Files) files = files_for(&test, *state, &fault);
        assert_true(g_str_has_suffix(files_script_path(files), cases[i].suffix));
        assert_null(files_environment_path(files));
    }
}

static void files_where_a_directory_stands_fail(void **state)
{
    g_autofree char *path = g_build_filename(*state, "work", "in", NULL);
    Fault fault = {0};
    TestTask test;

    assert_int_equal(g_mkdir_with_parents(path, 0700), 0);
    task_init(&test);
    add_input(&test, "in", 0600, 1);
    g_autoptr(Files) files = files_for(&test, *state, &fault);
    assert_int_equal(files_write(files, 0, 0, (const uint8_t *)"x", 1, &fault), FILES_FAILED);
    assert_non_null(strstr(fault.text, "cannot write 'in'"));
}

#define with_directory(test) cmocka_unit_test_setup_teardown(test, tempdir_make, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_directory(files_in_order_are_written_with_their_modes),
        with_directory(files_write_out_of_order_cases),
        with_directory(files_with_a_bad_path_are_refused),
        with_directory(files_never_follow_symbolic_links),
        with_directory(files_with_an_absolute_path_go_there),
        with_directory(files_script_name_cases),
        with_directory(files_where_a_directory_stands_fail),
    };

    umask(022);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
