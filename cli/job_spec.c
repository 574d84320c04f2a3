/* SPDX-License-Identifier: Apache-2.0 */
/* Turns a command line, a script and the environment into a job specification with its payload. */
#include "cli/job_spec.h"

#include "cli/each.h"
#include "cli/table.h"
#include "common/error.h"
#include "common/id.h"
#include "common/message.h"
#include "common/ranges.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCRIPT_MAX_BYTES (16u << 20)
#define HEAD_BYTES       1024u /* of a script, that are looked at */
#define PIECE_BYTES      65536u
#define STDIN_NAME       "stdin" /* of a script that is no file */
#define NAME_MAX_BYTES   128u    /* of the job; the daemon's limit */

void berth_submission_free(BerthSubmission *submission)
{
    g_clear_pointer(&submission->options, berth_job_options_free);
    if (!submission->shares_payload)
        g_clear_pointer(&submission->payload, berth_payload_free);
    g_clear_pointer(&submission->command, g_strfreev);
    g_clear_pointer(&submission->script, g_bytes_unref);
    if (submission->spec != NULL)
        berth__job_spec__free_unpacked(submission->spec, NULL);
    g_free(submission);
}

/* The kernel takes the CR for a part of the interpreter's name, a shell for a part of words: what the
 * guest could say of it leads nowhere. */
static gboolean check_line_ends(const char *path, const char *content, gsize length, GError **error)
{
    const char *end = memchr(content, '\n', length);
    if (end == NULL || end == content || end[-1] != '\r' ||
        memchr(content, '\0', (gsize)(end - content)) != NULL)
        return TRUE;
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                "the script \"%s\": line 1 ends in CR LF (a Windows file); convert it with: "
                "sed -i 's/\\r$//' FILE",
                path);
    return FALSE;
}

/* What every script must be, however it came. */
static gboolean check_script(const char *name, GBytes *script, GError **error)
{
    gsize length;
    const char *content = g_bytes_get_data(script, &length);
    if (length > 0)
        return check_line_ends(name, content, length, error);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "the script \"%s\" is empty",
                name);
    return FALSE;
}

/* All of standard input, up to the limit of a script. */
static gboolean read_stdin(GBytes **out_script, GError **error)
{
    g_autoptr(GByteArray) content = g_byte_array_new();
    g_autofree guint8 *piece = g_malloc(PIECE_BYTES);
    gssize got;
    while ((got = read(STDIN_FILENO, piece, PIECE_BYTES)) != 0) {
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            berth_set_error_errno(error, errno, "cannot read the script from standard input");
            return FALSE;
        }
        g_byte_array_append(content, piece, (guint)got);
        if (content->len > SCRIPT_MAX_BYTES) {
            g_set_error_literal(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
                                "the script on standard input is larger than 16 MiB; send data "
                                "with --input");
            return FALSE;
        }
    }
    g_autoptr(GBytes) script = g_byte_array_free_to_bytes(g_steal_pointer(&content));
    if (!check_script(STDIN_NAME, script, error))
        return FALSE;
    *out_script = g_steal_pointer(&script);
    return TRUE;
}

/* Why STATUS is no file that is sent as a script. */
static const char *irregular_text(const struct stat *status)
{
    return S_ISFIFO(status->st_mode) || S_ISCHR(status->st_mode)
               ? "not a regular file; give \"-\" for a script from standard input"
               : "not a regular file";
}

static gboolean read_file(const char *path, GBytes **out_script, GError **error)
{
    struct stat status;
    char *content;
    gsize length;
    if (stat(path, &status) != 0 || access(path, R_OK) != 0) {
        berth_set_error_errno(error, errno, "cannot read the script \"%s\"%s", path,
                              errno == ENOENT ? " (a command of the image is given after \"--\")"
                                              : "");
        return FALSE;
    }
    if (!S_ISREG(status.st_mode) || (guint64)status.st_size > SCRIPT_MAX_BYTES) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "the script \"%s\" is %s",
                    path,
                    S_ISREG(status.st_mode) ? "larger than 16 MiB; send data with --input"
                                            : irregular_text(&status));
        return FALSE;
    }
    g_autoptr(GError) local = NULL;
    if (!g_file_get_contents(path, &content, &length, &local)) {
        g_set_error(error, BERTH_ERROR, BERTH_ERROR_PERMISSION_DENIED, "the script: %s",
                    local->message);
        return FALSE;
    }
    g_autoptr(GBytes) script = g_bytes_new_take(content, length);
    if (!check_script(path, script, error))
        return FALSE;
    *out_script = g_steal_pointer(&script);
    return TRUE;
}

/* *PATH: a file, or "-", which becomes the name of a script without one. */
static gboolean read_script(char **path, GBytes **out_script, GError **error)
{
    if (!g_str_equal(*path, "-") && !g_str_equal(*path, "/dev/stdin"))
        return read_file(*path, out_script, error);
    *path = (char *)STDIN_NAME;
    return read_stdin(out_script, error);
}

/* --- the parts of the specification ---------------------------------------------------------- */

static void set_strings(char ***out_field, gsize *out_n, char **strings)
{
    *out_n = strings ? g_strv_length(strings) : 0;
    *out_field = *out_n ? g_strdupv(strings) : NULL;
}

static gboolean is_passed_on(const char *entry)
{
    static const char *const kept_back[] = {"BERTH_", "HOME=", "PWD=",  "OLDPWD=",  "SHLVL=",
                                            "_=",     "PATH=", "USER=", "LOGNAME=", "SHELL="};
    for (gsize i = 0; i < G_N_ELEMENTS(kept_back); i++) {
        if (g_str_has_prefix(entry, kept_back[i]))
            return FALSE;
    }
    return strchr(entry, '=') != NULL;
}

/* The NUL-ended entries that JobSpec.environment wants; NULL if there are none. */
static GBytes *environment_block(const BerthJobOptions *options)
{
    GByteArray *block = g_byte_array_new();
    g_auto(GStrv) own = options->environment_all ? g_get_environ() : NULL;
    for (char **entry = own; entry != NULL && *entry != NULL; entry++) {
        if (is_passed_on(*entry))
            g_byte_array_append(block, (const guint8 *)*entry, (guint)strlen(*entry) + 1);
    }
    for (guint i = 0; i < options->environment->len; i++) {
        const char *entry = g_ptr_array_index(options->environment, i);
        g_byte_array_append(block, (const guint8 *)entry, (guint)strlen(entry) + 1);
    }
    if (block->len == 0) {
        g_byte_array_unref(block);
        return NULL;
    }
    return g_byte_array_free_to_bytes(block);
}

static gboolean check_utf8(const char *what, const char *text, GError **error)
{
    if (g_utf8_validate(text, -1, NULL))
        return TRUE;
    g_autofree char *shown = berth_printable(text);
    g_set_error(error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT, "%s \"%s\" is not valid UTF-8",
                what, shown);
    return FALSE;
}

/* TEXT is "NAME=PATH", unless the whole is the path of a file. */
static Berth__InputFile *make_input(BerthPayload *payload, const char *text, guint64 max_bytes,
                                    GError **error)
{
    const char *equals = access(text, F_OK) == 0 ? NULL : strchr(text, '=');
    const char *path = equals ? equals + 1 : text;
    struct stat status;
    g_autofree char *name =
        equals ? g_strndup(text, (gsize)(equals - text)) : g_path_get_basename(path);
    if (!check_utf8("the name of the input file", name, error)) {
        g_prefix_error(error, "give it another one with --input NAME=PATH: ");
        return NULL;
    }
    Berth__BlobRef *blob = berth_payload_add_file(payload, path, max_bytes, error);
    if (blob == NULL) {
        g_prefix_error(error, "input file: ");
        return NULL;
    }
    Berth__InputFile *input = g_new(Berth__InputFile, 1);
    berth__input_file__init(input);
    input->name = g_steal_pointer(&name);
    input->mode = stat(path, &status) == 0 ? status.st_mode & 0777 : 0644;
    input->blob = blob;
    return input;
}

static gboolean add_inputs(BerthSubmission *submission, guint64 max_bytes, GError **error)
{
    const GPtrArray *inputs = submission->options->inputs;
    Berth__JobSpec *spec = submission->spec;
    spec->inputs = g_new0(Berth__InputFile *, inputs->len);
    for (guint i = 0; i < inputs->len; i++) {
        Berth__InputFile *input =
            make_input(submission->payload, g_ptr_array_index(inputs, i), max_bytes, error);
        if (input == NULL)
            return FALSE;
        spec->inputs[spec->n_inputs++] = input;
    }
    return TRUE;
}

/* The job's name when none is given: of its script or command, as far as it can be a name. */
static char *default_name(const char *command)
{
    g_autofree char *base = g_path_get_basename(command);
    char *name = berth_printable(base);
    if (strlen(name) > NAME_MAX_BYTES)
        *g_utf8_find_prev_char(name, name + NAME_MAX_BYTES + 1) = '\0';
    return name;
}

static char *absolute_path(const char *path)
{
    return path ? g_canonicalize_filename(path, NULL) : g_strdup("");
}

static Berth__JobArray *array_of(const BerthJobOptions *options)
{
    Berth__JobArray *array = g_new(Berth__JobArray, 1);
    berth__job_array__init(array);
    array->running_max = options->array_running_max;
    berth_ranges_set(&array->tasks, &array->n_tasks, options->array);
    return array;
}

static void set_dependencies(Berth__JobSpec *spec, const GPtrArray *dependencies)
{
    spec->n_dependencies = dependencies->len;
    spec->dependencies = g_new(Berth__Dependency *, dependencies->len);
    for (guint i = 0; i < dependencies->len; i++) {
        const Berth__Dependency *dependency = g_ptr_array_index(dependencies, i);
        spec->dependencies[i] = (Berth__Dependency *)berth_message_copy(&dependency->base);
    }
}

static void fill_spec(BerthSubmission *submission, char **command, GBytes *script)
{
    const BerthJobOptions *options = submission->options;
    Berth__JobSpec *spec = g_new(Berth__JobSpec, 1);
    berth__job_spec__init(spec);
    submission->spec = spec;
    spec->name = options->name ? g_strdup(options->name) : default_name(command[0]);
    spec->image = g_strdup(options->image ? options->image : "");
    spec->vcpus = options->vcpus;
    spec->memory_mib = options->memory_mib;
    spec->disk_mib = options->disk_mib;
    spec->vcpus_max = options->vcpus_max;
    spec->memory_max_mib = options->memory_max_mib;
    spec->time_limit_sec = options->time_limit_sec;
    spec->on_limit = (Berth__OnLimit)options->on_limit;
    spec->on_timeout = (Berth__OnTimeout)options->on_timeout;
    spec->priority = options->priority;
    set_strings(&spec->command, &spec->n_command, command);
    set_strings(&spec->nodes, &spec->n_nodes, options->nodes);
    spec->working_directory = g_strdup(options->chdir ? options->chdir : "");
    spec->hold = options->hold;
    spec->no_requeue = options->no_requeue;
    spec->guaranteed = options->guaranteed;
    spec->stop_grace_sec = options->grace_sec;
    spec->checkpoint_every_sec = options->checkpoint_every_sec;
    spec->checkpoint_keep = options->checkpoint_keep;
    spec->checkpoint_signal = options->checkpoint_signal;
    spec->checkpoint_signal_sec = options->checkpoint_signal_sec;
    spec->restore_signal = options->restore_signal;
    spec->submit_host = g_strdup(g_get_host_name());
    spec->stdout_path = absolute_path(options->output);
    spec->stderr_path = absolute_path(options->error);
    if (options->array != NULL)
        spec->array = array_of(options);
    if (options->dependencies != NULL)
        set_dependencies(spec, options->dependencies);
    if (script != NULL)
        spec->script = berth_payload_add_bytes(submission->payload, script);
    g_autoptr(GBytes) block = environment_block(options);
    if (block != NULL)
        spec->environment = berth_payload_add_bytes(submission->payload, block);
}

/* --- the command line ------------------------------------------------------------------------ */

static gboolean parse_options(BerthJobOptions *options, const GPtrArray *words,
                              const char *description, int *out_status, GError **error)
{
    int argc = (int)words->len - 1;
    g_autofree char **argv = g_memdup2(words->pdata, sizeof(char *) * words->len);
    char **cursor = argv;
    return berth_cli_parse(&argc, &cursor, berth_job_option_entries(),
                           "SCRIPT [ARGS] | -- COMMAND [ARGS]", description, options, out_status,
                           error);
}

/* Options of the script's own lines, then the environment's, then the command line's: each is
 * stronger than the one before. */
static gboolean gather_options(BerthSubmission *submission, const GPtrArray *words,
                               const char *script_name, GBytes *script, int *out_status,
                               GError **error)
{
    gsize length = 0;
    const char *text = script ? g_bytes_get_data(script, &length) : NULL;
    if ((script != NULL &&
         !berth_job_options_from_script(submission->options, text, length, script_name, error)) ||
        !berth_job_options_from_environment(submission->options, error)) {
        *out_status = BERTH_EXIT_USAGE;
        return FALSE;
    }
    return parse_options(submission->options, words, NULL, out_status, error);
}

/* The schema's strings are UTF-8. */
static gboolean check_command(char **command, GError **error)
{
    for (char **word = command; *word != NULL; word++) {
        if (check_utf8(word == command ? "the command" : "the argument", *word, error))
            continue;
        g_prefix_error(error, "cannot submit it: ");
        return FALSE;
    }
    return TRUE;
}

/* What is taken as it is, but hardly is what was meant. */
static void print_notes(const BerthJobOptions *options, const char *path, GBytes *script)
{
    gsize length = 0;
    const char *text = g_bytes_get_data(script, &length);
    if (options->foreign != NULL)
        fprintf(stderr, "%s: %s: its %s lines mean nothing to Berth, whose own begin with #BERTH\n",
                g_get_prgname(), path, options->foreign);
    if (memchr(text, '\0', MIN(length, HEAD_BYTES)) != NULL)
        fprintf(stderr, "%s: %s is a binary file: the job fails if the image cannot run it\n",
                g_get_prgname(), path);
}

/* GROW is all that is done at its limit, and cannot be. What the daemon has for who does not say is not known here. */
static gboolean grows_in_vain(const BerthJobOptions *options)
{
    return options->on_limit == BERTH__ON_LIMIT__ON_LIMIT_GROW &&
           (options->memory_max_mib == 0 || options->memory_max_mib == options->memory_mib) &&
           (options->vcpus_max == 0 || options->vcpus_max == options->vcpus);
}

BerthSubmission *berth_submission_parse(int argc, char **argv, const char *description,
                                        int *out_status, GError **error)
{
    int rest;
    gboolean dashes;
    g_autoptr(GBytes) script = NULL;
    g_autoptr(GPtrArray) words = berth_job_option_words(argc, argv, &rest, &dashes);
    g_autoptr(BerthSubmission) submission = g_new0(BerthSubmission, 1);
    g_autoptr(BerthJobOptions) checked = berth_job_options_new();
    if (berth_job_options_want_terminal(argv, rest)) {
        berth_cli_usage_error(out_status, error,
                              "jobs are not interactive: they have no terminal, and their standard "
                              "input is /dev/null (an image \"t\" is named by --image t)");
        return NULL;
    }
    submission->payload = berth_payload_new();
    submission->options = berth_job_options_new();
    /* Wrong options and --help come before whatever the script may hold. */
    if (!parse_options(checked, words, description, out_status, error))
        return NULL;
    if (rest >= argc) {
        berth_cli_usage_error(out_status, error,
                              "name a script, or a command after \"--\" (see %s --help)", argv[0]);
        return NULL;
    }
    if (!check_command(argv + rest, error) ||
        (!dashes && !read_script(&argv[rest], &script, error)) ||
        !gather_options(submission, words, argv[rest], script, out_status, error))
        return NULL;
    if (script != NULL)
        print_notes(submission->options, argv[rest], script);
    if (grows_in_vain(submission->options))
        fprintf(stderr,
                "%s: --on-limit grow: the job has no room to grow; --memory-max gives it some, "
                "above its --memory\n",
                g_get_prgname());
    fill_spec(submission, argv + rest, script);
    return g_steal_pointer(&submission);
}

/* Refuses PATTERN ("%j"; may be NULL) where the caller may not write: the job would have run by the
 * time that berthd finds out. */
static gboolean check_output(const char *pattern, GError **error)
{
    if (pattern == NULL)
        return TRUE;
    if (strchr(pattern, '%') == NULL && access(pattern, F_OK) == 0) {
        if (access(pattern, W_OK) == 0 && !g_file_test(pattern, G_FILE_TEST_IS_DIR))
            return TRUE;
        berth_set_error_errno(error, access(pattern, W_OK) == 0 ? EISDIR : errno,
                              "the job's output cannot be written to \"%s\"", pattern);
        return FALSE;
    }
    g_autofree char *directory = g_path_get_dirname(pattern);
    if (strchr(directory, '%') != NULL || access(directory, W_OK | X_OK) == 0)
        return TRUE;
    berth_set_error_errno(error, errno, "the job's output cannot be written to \"%s\"", pattern);
    return FALSE;
}

/* All tasks of an array would write to one file. */
static gboolean check_pattern(const BerthJobOptions *options, const char *pattern, GError **error)
{
    if ((options->array == NULL && options->each == NULL) || pattern == NULL ||
        g_str_equal(pattern, "/dev/null") || berth_job_path_is_of_task(pattern))
        return TRUE;
    g_set_error(
        error, BERTH_ERROR, BERTH_ERROR_INVALID_ARGUMENT,
        "all tasks of the array would write to \"%s\": add %%a to its name, which stands for "
        "the index of a task",
        pattern);
    return FALSE;
}

/* What its files are. */
static gboolean look_at_files(BerthSubmission *submission, BerthCli *cli, GError **error)
{
    guint64 max_bytes = 0;
    const BerthJobOptions *options = submission->options;
    return check_pattern(options, options->output, error) &&
           check_pattern(options, options->error, error) && check_output(options->output, error) &&
           check_output(options->error, error) &&
           ((options->inputs->len == 0 && options->each == NULL) ||
            (berth_payload_input_max(submission->payload, cli, &max_bytes, error) &&
             add_inputs(submission, max_bytes, error) &&
             berth_each_add(submission->payload, options, max_bytes, submission->spec, error)));
}

gboolean berth_submission_prepare(BerthSubmission *submission, BerthCli *cli, GError **error)
{
    return look_at_files(submission, cli, error) &&
           berth_payload_upload(submission->payload, cli, error);
}

/* --- one of several ---------------------------------------------------------------------------- */

BerthSubmission *berth_submission_begin(BerthPayload *payload, const char *script, char **words,
                                        GError **error)
{
    g_autoptr(BerthSubmission) submission = g_new0(BerthSubmission, 1);
    g_autoptr(GPtrArray) command = g_ptr_array_new_with_free_func(g_free);
    submission->payload = payload;
    submission->shares_payload = TRUE;
    submission->options = berth_job_options_new();
    if (script != NULL) {
        gsize length = 0;
        if (!read_file(script, &submission->script, error))
            return NULL;
        const char *text = g_bytes_get_data(submission->script, &length);
        if (!berth_job_options_from_script(submission->options, text, length, script, error))
            return NULL;
        g_ptr_array_add(command, g_strdup(script));
    }
    for (char **word = words; *word != NULL; word++)
        g_ptr_array_add(command, g_strdup(*word));
    g_ptr_array_add(command, NULL);
    submission->command = (char **)g_ptr_array_steal(command, NULL);
    if (!check_command(submission->command, error) ||
        !berth_job_options_from_environment(submission->options, error))
        return NULL;
    return g_steal_pointer(&submission);
}

gboolean berth_submission_complete(BerthSubmission *submission, BerthCli *cli, GError **error)
{
    fill_spec(submission, submission->command, submission->script);
    g_clear_pointer(&submission->command, g_strfreev);
    g_clear_pointer(&submission->script, g_bytes_unref);
    return look_at_files(submission, cli, error);
}

typedef struct {
    Berth__SubmitRequest request;
    guint64 job;
} Sending;

static gboolean send_attempt(BerthCli *cli, gpointer user_data, GError **error)
{
    Sending *sending = user_data;
    Berth__SubmitReply *reply = (Berth__SubmitReply *)berth_cli_call(
        cli, &berth__jobs__descriptor, "Submit", &sending->request.base, error);
    if (reply == NULL)
        return FALSE;
    sending->job = reply->job;
    berth__submit_reply__free_unpacked(reply, NULL);
    return TRUE;
}

/* A request whose answer was lost may have been committed: the key, of ours if there is none of the
 * user's, makes sending it again safe. */
gboolean berth_submission_send(BerthSubmission *submission, BerthCli *cli, guint64 *out_job,
                               GError **error)
{
    const char *users_key = submission->options->idempotency_key;
    g_autofree char *key = users_key ? g_strdup(users_key) : g_uuid_string_random();
    Sending sending = {BERTH__SUBMIT_REQUEST__INIT, 0};
    sending.request.spec = submission->spec;
    sending.request.inline_blobs =
        berth_payload_inline(submission->payload, &sending.request.n_inline_blobs);
    sending.request.idempotency_key = key;
    if (!berth_cli_persist(cli, FALSE, send_attempt, &sending, error))
        return FALSE;
    *out_job = sending.job;
    return TRUE;
}
