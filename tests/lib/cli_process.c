/* SPDX-License-Identifier: Apache-2.0 */
/* Owns processes of `berth` (tests/lib/cli_process.h). */
#include "tests/lib/cli_process.h"

#include "tests/lib/assert.h"
#include "tests/lib/child.h"

#include <errno.h>
#include <gio/gio.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <unistd.h>

#define PIECE_BYTES 65536

typedef struct {
    GString *text;
    gboolean is_at_end;
} Collected;

struct CliProcess {
    GSubprocess *process;
    Collected out;
    Collected err;
    gboolean has_ended;
};

static char *program(void)
{
    const char *top = g_getenv("top_builddir");
    g_autofree char *relative = g_build_filename(top ? top : ".", "berth", NULL);
    return g_canonicalize_filename(relative, NULL);
}

/* --- reading ---------------------------------------------------------------------------------- */

static void on_read(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Collected *collected = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GBytes) piece =
        g_input_stream_read_bytes_finish(G_INPUT_STREAM(source), result, &error);
    assert_no_error(error);
    gsize length = 0;
    const char *data = g_bytes_get_data(piece, &length);
    if (length == 0) {
        collected->is_at_end = TRUE;
        return;
    }
    g_string_append_len(collected->text, data, (gssize)length);
    g_input_stream_read_bytes_async(G_INPUT_STREAM(source), PIECE_BYTES, G_PRIORITY_DEFAULT, NULL,
                                    on_read, collected);
}

static void collect(Collected *collected, GInputStream *stream)
{
    collected->text = g_string_new(NULL);
    g_input_stream_read_bytes_async(stream, PIECE_BYTES, G_PRIORITY_DEFAULT, NULL, on_read,
                                    collected);
}

static void on_waited(GObject *source, GAsyncResult *result, gpointer user_data)
{
    *(gboolean *)user_data = g_subprocess_wait_finish(G_SUBPROCESS(source), result, NULL);
}

/* --- starting --------------------------------------------------------------------------------- */

static char **make_environment(const char *socket, const char *const *environment)
{
    static const char *const passed_on[] = {"PATH",         "TMPDIR",        "G_DEBUG",
                                            "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS"};
    g_autofree char *berth = program();
    g_autofree char *dir = g_path_get_dirname(socket);
    char **own = g_new0(char *, 1);
    for (gsize i = 0; i < G_N_ELEMENTS(passed_on); i++) {
        const char *value = g_getenv(passed_on[i]);
        if (value) {
            own = g_environ_setenv(own, passed_on[i], value, TRUE);
        }
    }
    /* What it leaks goes with it, but looking for that takes a sanitized one longer than all else. */
    g_autofree char *options = child_options_without_leak_check();
    if (options != NULL)
        own = g_environ_setenv(own, "ASAN_OPTIONS", options, TRUE);
    own = g_environ_setenv(own, "HOME", dir, TRUE);
    own = g_environ_setenv(own, "LC_ALL", "C.UTF-8", TRUE);
    own = g_environ_setenv(own, "BERTH_SOCKET", socket, TRUE);
    own = g_environ_setenv(own, "BERTH", berth, TRUE);
    for (gsize i = 0; environment && environment[i]; i++) {
        g_auto(GStrv) parts = g_strsplit(environment[i], "=", 2);
        own = g_environ_setenv(own, parts[0], parts[1], TRUE);
    }
    return own;
}

CliProcess *cli_start_program(const char *socket, const char *const *argv,
                              const char *const *environment)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) own = make_environment(socket, environment);
    g_autoptr(GSubprocessLauncher) launcher =
        g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
    child_bind(launcher);
    g_subprocess_launcher_set_environ(launcher, own);
    g_autofree char *dir = g_path_get_dirname(socket);
    g_subprocess_launcher_set_cwd(launcher, dir);
    CliProcess *cli = g_new0(CliProcess, 1);
    cli->process = g_subprocess_launcher_spawnv(launcher, argv, &error);
    assert_no_error(error);
    collect(&cli->out, g_subprocess_get_stdout_pipe(cli->process));
    collect(&cli->err, g_subprocess_get_stderr_pipe(cli->process));
    g_subprocess_wait_async(cli->process, NULL, on_waited, &cli->has_ended);
    return cli;
}

static CliProcess *start_after(const char *socket, GPtrArray *argv, const char *berth,
                               const char *const *arguments, const char *const *environment)
{
    g_ptr_array_add(argv, (char *)berth);
    for (gsize i = 0; arguments[i]; i++) {
        g_ptr_array_add(argv, (char *)arguments[i]);
    }
    g_ptr_array_add(argv, NULL);
    return cli_start_program(socket, (const char *const *)argv->pdata, environment);
}

CliProcess *cli_start(const char *socket, const char *const *arguments,
                      const char *const *environment)
{
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_autofree char *berth = program();
    return start_after(socket, argv, berth, arguments, environment);
}

/* (transfer full) */
static char *copy_into(const char *dir, const char *path)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *name = g_path_get_basename(path);
    char *copy_path = g_build_filename(dir, name, NULL);
    g_autoptr(GFile) file = g_file_new_for_path(path);
    g_autoptr(GFile) copy = g_file_new_for_path(copy_path);
    g_file_copy(file, copy, G_FILE_COPY_OVERWRITE, NULL, NULL, NULL, &error);
    assert_no_error(error);
    return copy_path;
}

/* Others may have no way into the tree in which it was built: they run a copy, with that of the program which it runs. */
static char *copy_program(const char *socket)
{
    g_autofree char *path = program();
    g_autofree char *import_path = g_strconcat(path, "-image-import", NULL);
    g_autofree char *dir = g_path_get_dirname(socket);
    g_autofree char *import_copy = copy_into(dir, import_path);
    return copy_into(dir, path);
}

/* Built with coverage, a program writes its counts beside its objects when it ends, and complains on
 * standard error where it may not: another user's go to a directory for all. (transfer full) */
static char **counts_for_all(const char *socket)
{
    g_autofree char *dir = g_path_get_dirname(socket);
    g_autofree char *counts = g_build_filename(dir, "counts", NULL);
    assert_true(g_mkdir(counts, 0777) == 0 || errno == EEXIST);
    assert_int_equal(g_chmod(counts, 0777), 0);
    return g_environ_setenv(g_new0(char *, 1), "GCOV_PREFIX", counts, TRUE);
}

CliProcess *cli_start_as(const char *socket, uid_t uid, const char *const *arguments)
{
    if (geteuid() != 0) {
        skip();
    }
    g_autofree char *user = g_strdup_printf("--reuid=%u", (guint)uid);
    g_autofree char *group = g_strdup_printf("--regid=%u", (guint)uid);
    g_autofree char *berth = copy_program(socket);
    g_auto(GStrv) environment = counts_for_all(socket);
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_ptr_array_add(argv, (char *)"setpriv");
    g_ptr_array_add(argv, user);
    g_ptr_array_add(argv, group);
    g_ptr_array_add(argv, (char *)"--clear-groups");
    return start_after(socket, argv, berth, arguments, (const char *const *)environment);
}

/* --- while it runs ---------------------------------------------------------------------------- */

const char *cli_out(CliProcess *cli)
{
    return cli->out.text->str;
}

gsize cli_out_length(CliProcess *cli)
{
    return cli->out.text->len;
}

const char *cli_err(CliProcess *cli)
{
    return cli->err.text->str;
}

gboolean cli_has_ended(CliProcess *cli)
{
    return cli->has_ended && cli->out.is_at_end && cli->err.is_at_end;
}

void cli_signal(CliProcess *cli, int signal)
{
    g_subprocess_send_signal(cli->process, signal);
}

int cli_wait(CliProcess *cli)
{
    run_until(cli_has_ended(cli));
    return g_subprocess_get_if_exited(cli->process) ? g_subprocess_get_exit_status(cli->process)
                                                    : 128 + g_subprocess_get_term_sig(cli->process);
}

void cli_free(CliProcess *cli)
{
    if (!cli_has_ended(cli)) {
        cli_signal(cli, SIGKILL);
        cli_wait(cli);
    }
    g_object_unref(cli->process);
    g_string_free(cli->out.text, TRUE);
    g_string_free(cli->err.text, TRUE);
    g_free(cli);
}

char *cli_output_of(CliProcess *cli)
{
    g_autoptr(CliProcess) process = cli;
    assert_cli_status(process, 0);
    assert_string_equal(cli_err(process), "");
    return g_strdup(cli_out(process));
}

char *cli_job(guint64 job)
{
    return g_strdup_printf("%" G_GUINT64_FORMAT, job);
}
