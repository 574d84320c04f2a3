/* SPDX-License-Identifier: Apache-2.0 */
/* Starting a command, as the user who runs the test, on the host. */
#include "tests/lib/assert.h"
#include "tests/lib/tempdir.h"

#include "images/init/output.h"
#include "images/init/process.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct {
    GString *out;
    GString *err;
    ProcessReport report;
    uint32_t explained; /* status of a program that could not be started */
    Fault why;
    int wait_status;
} Result;

static void read_all(int fd, GString *text)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    char buffer[4096];
    ssize_t got;

    do {
        assert_int_equal(poll(&ready, 1, 60000), 1);
        got = read(fd, buffer, sizeof buffer);
        assert_true(got >= 0);
        g_string_append_len(text, buffer, got);
    } while (got > 0);
    close(fd);
}

static Result run(const char *program, const char *const *argv, const char *const *envp,
                  const char *directory)
{
    const ProcessSpec spec = {
        .program = program,
        .argv = (char *const *)argv,
        .envp = (char *const *)envp,
        .directory = directory,
        .uid = getuid(),
        .gid = getgid(),
        .cgroup_fd = -1,
        .pipe_bytes = 65536,
    };
    Result result = {.out = g_string_new(NULL), .err = g_string_new(NULL)};
    Process process;

    if (!process_start(&spec, &process, &result.why))
        fail_msg("%s", result.why.text);
    read_all(process.out_fd, result.out);
    read_all(process.err_fd, result.err);
    assert_int_equal(waitpid(process.pid, &result.wait_status, 0), process.pid);
    assert_int_equal(process_report(&process, &result.report), 1);
    close(process.report_fd);
    if (result.report.stage != PROCESS_STARTED)
        result.explained = process_explain(&spec, &result.report, &result.why);
    return result;
}

static void result_clear(Result *result)
{
    g_string_free(result->out, TRUE);
    g_string_free(result->err, TRUE);
}

static const char *const no_environment[] = {"PATH=/usr/bin:/bin", NULL};

static void process_runs_with_its_own_environment_and_directory(void **state)
{
    const char *const argv[] = {"zero", "-c", "echo $0 $X $HOME; pwd; echo e >&2; exit 9", NULL};
    const char *const envp[] = {"X=y", "PATH=/usr/bin:/bin", NULL};
    Result result = run("sh", argv, envp, "/usr");

    assert_int_equal(result.report.stage, PROCESS_STARTED);
    assert_string_equal(result.out->str, "zero y\n/usr\n");
    assert_string_equal(result.err->str, "e\n");
    assert_true(WIFEXITED(result.wait_status));
    assert_int_equal(WEXITSTATUS(result.wait_status), 9);
    result_clear(&result);
}

static void process_that_cannot_start_is_explained(void **state)
{
    const char *directory = *state;
    g_autofree char *plain = g_build_filename(directory, "plain", NULL);
    g_autofree char *orphan = g_build_filename(directory, "orphan", NULL);
    g_autofree char *latin = g_build_filename(directory, "latin", NULL);
    const struct {
        const char *program;
        const char *work;
        uint32_t status;
        const char *text;
    } cases[] = {
        {"berth-no-such", "/", 127, "no such command in PATH"},
        {"/no/such/file", "/", 127, "no such file"},
        {plain, "/", 126, "not executable"},
        {"/", "/", 126, "'/'"},
        {"/etc/passwd/x", "/", 127, "'/etc/passwd/x'"},
        {orphan, "/", 127, "interpreter '/no/such/interpreter' is not in the image"},
        {latin, "/", 127, "interpreter '/bin/caf?' is not in the image"},
        {"true", "/no/such/directory", 126, "working directory '/no/such/directory'"},
    };

    assert_true(g_file_set_contents(plain, "x", -1, NULL));
    assert_int_equal(g_chmod(plain, 0600), 0);
    assert_true(g_file_set_contents(orphan, "#!  /no/such/interpreter -x\n", -1, NULL));
    assert_int_equal(g_chmod(orphan, 0700), 0);
    assert_true(g_file_set_contents(latin, "#!/bin/caf\xe9\n", -1, NULL));
    assert_int_equal(g_chmod(latin, 0700), 0);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *const argv[] = {cases[i].program, NULL};
        Result result = run(cases[i].program, argv, no_environment, cases[i].work);

        assert_int_equal(result.explained, cases[i].status);
        if (strstr(result.why.text, cases[i].text) == NULL)
            fail_msg("no '%s' in '%s'", cases[i].text, result.why.text);
        result_clear(&result);
    }
}

/* Here there is a /bin/sh: what is said where there is none. */
static void process_explain_missing_shell_or_loader_is_named(void **state)
{
    const char *directory = *state;
    g_autofree char *program = g_build_filename(directory, "program", NULL);
    const struct {
        const char *content;
        const char *text;
    } cases[] = {
        {"echo hi\n", "': it has no #! line, and the image no /bin/sh to run it"},
        {"", "': it has no #! line, and the image no /bin/sh to run it"},
        {"#!/bin/sh\n", "': its interpreter '/bin/sh' is not in the image"},
        {"\x7f"
         "ELF\2\1",
         "': the image lacks its interpreter or dynamic loader"},
    };
    const ProcessSpec spec = {.program = program};
    const ProcessReport report = {.stage = PROCESS_EXEC, .err = ENOENT};

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Fault why = {0};

        assert_true(g_file_set_contents(program, cases[i].content, -1, NULL));
        assert_int_equal(process_explain(&spec, &report, &why), 127);
        if (strstr(why.text, cases[i].text) == NULL)
            fail_msg("no '%s' in '%s'", cases[i].text, why.text);
    }
}

static void fault_set_any_bytes_gives_utf8_in_bounds(void **state)
{
    const struct {
        size_t before; /* bytes before TEXT */
        const char *text;
        size_t length;
        const char *end;
    } cases[] = {
        {0, "", 0, ""},
        {0, "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", 14, "\xe2\x82\xac \xf0\x9f\x98\x80"},
        {0, "caf\xe9", 4, "caf?"},
        {0, "\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80\xff", 10, "??????????"},
        {0, "\xe2\x82", 2, "??"},
        {508, "\xe2\x82\xac", 511, "\xe2\x82\xac"},
        {509, "\xe2\x82\xac", 509, "xx"},
        {510, "\xe2\x82\xac", 510, "xx"},
        {508, "\xf0\x9f\x98\x80", 508, "xx"},
        {511, "\xe2\x82\xac", 511, "xx"},
        {509, "\x80\x80\x80", 511, "x??"},
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *before = g_strnfill(cases[i].before, 'x');
        Fault fault;

        fault_set(&fault, "%s%s", before, cases[i].text);
        assert_true(g_utf8_validate(fault.text, -1, NULL));
        if (strlen(fault.text) != cases[i].length || !g_str_has_suffix(fault.text, cases[i].end))
            fail_msg("case %zu: %zu bytes: %s", i, strlen(fault.text), fault.text);
    }
}

static void process_without_interpreter_line_is_run_by_the_shell(void **state)
{
    g_autofree char *script = g_build_filename(*state, "script", NULL);
    const char *const argv[] = {"script", "a b", NULL};

    assert_true(g_file_set_contents(script, "echo \"$1\"\n", -1, NULL));
    assert_int_equal(g_chmod(script, 0700), 0);
    Result result = run(script, argv, no_environment, "/");
    assert_string_equal(result.out->str, "a b\n");
    result_clear(&result);
}

static void process_has_no_descriptor_of_its_parent(void **state)
{
    const char *const argv[] = {"sh", "-c", "ls /proc/self/fd | wc -l", NULL};
    int inherited = open("/dev/null", O_RDONLY); /* not close-on-exec */
    Result result = run("sh", argv, no_environment, "/");

    assert_string_equal(g_strstrip(result.out->str), "4"); /* 0, 1, 2 and that of ls */
    close(inherited);
    result_clear(&result);
}

/* A pipe's bytes go to the ring as far as it has room, and its end is noticed. */
static void output_read_stops_when_the_ring_is_full(void **state)
{
    int fds[2];
    Ring *ring = ring_new(8);

    assert_int_equal(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    Output output = {.ring = ring, .fd = fds[0]};
    assert_int_equal(output_read(&output), 0);
    assert_true(output_is_drained(&output));
    assert_int_equal(write(fds[1], "0123456789", 10), 10);
    assert_int_equal(output_read(&output), 8);
    assert_false(output_is_drained(&output));
    assert_int_equal(output_read(&output), 0);
    assert_false(output_is_drained(&output));
    assert_true(ring_ack(ring, 3));
    assert_int_equal(output_read(&output), 2);
    assert_true(output_is_drained(&output));
    assert_int_equal(output.fd, fds[0]);
    close(fds[1]);
    assert_int_equal(output_read(&output), 0);
    assert_int_equal(output.fd, -1);
    assert_true(output_is_drained(&output));
    ring_free(ring);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(process_runs_with_its_own_environment_and_directory),
        cmocka_unit_test_setup_teardown(process_that_cannot_start_is_explained, tempdir_make,
                                        tempdir_remove),
        cmocka_unit_test(fault_set_any_bytes_gives_utf8_in_bounds),
        cmocka_unit_test_setup_teardown(process_explain_missing_shell_or_loader_is_named,
                                        tempdir_make, tempdir_remove),
        cmocka_unit_test_setup_teardown(process_without_interpreter_line_is_run_by_the_shell,
                                        tempdir_make, tempdir_remove),
        cmocka_unit_test(process_has_no_descriptor_of_its_parent),
        cmocka_unit_test(output_read_stops_when_the_ring_is_full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
