/* SPDX-License-Identifier: Apache-2.0 */
/* `berth submit`: what is asked on the command line, in the environment and in the script arrives at
 * the node, with its payload to the byte; and what is wrong is said before anything is submitted. */
#include "tests/lib/berthd_test.h"
#include "tests/lib/cli_process.h"

#include "scheduler/daemon/pb.h"

#include <glib/gstdio.h>
#include <sys/stat.h>

#define INPUT_FILE_MAX_MIB 2

/* Submits, waits for the end, and gives what the node was told. */
static const Berth__StartGuestRequest *submit(BerthdTest *test, const char *const *arguments,
                                              const char *const *environment)
{
    g_autoptr(CliProcess) cli =
        cli_start(berthd_fixture_socket(test->berthd), arguments, environment);
    assert_cli_status(cli, 0);
    assert_string_equal(cli_err(cli), "");
    guint64 job = 0;
    g_autofree char *number = g_strndup(cli_out(cli), cli_out_length(cli) - 1);
    g_autofree char *line = g_strconcat(number, "\n", NULL);
    assert_string_equal(cli_out(cli), line);
    assert_true(g_ascii_string_to_unsigned(number, 10, 1, G_MAXUINT64, &job, NULL));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    const Berth__StartGuestRequest *start = fake_agent_start(test->agent, job);
    assert_non_null(start);
    return start;
}

static char *write_file(BerthdTest *test, const char *name, const char *content, gssize length)
{
    g_autoptr(GError) error = NULL;
    char *path = g_build_filename(berthd_fixture_dir(test->berthd), name, NULL);
    g_file_set_contents(path, content, length, &error);
    assert_no_error(error);
    return path;
}

/* The content that BLOB names, from beside the request or from storage; its digest is checked. */
static GBytes *content_of(BerthdTest *test, const Berth__StartGuestRequest *start,
                          const Berth__BlobRef *blob)
{
    g_autoptr(GError) error = NULL;
    assert_non_null(blob);
    GBytes *found = NULL;
    for (gsize i = 0; i < start->n_inline_blobs && !found; i++) {
        const ProtobufCBinaryData *data = &start->inline_blobs[i];
        guint8 digest[32];
        gsize length = sizeof digest;
        g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
        g_checksum_update(checksum, data->data, (gssize)data->len);
        g_checksum_get_digest(checksum, digest, &length);
        if (memcmp(digest, blob->sha256.data, sizeof digest) == 0) {
            found = g_bytes_new(data->data, data->len);
        }
    }
    if (!found) {
        found = berth_storage_blob_read(berthd_fixture_storage(test->berthd), blob->sha256.data, 0,
                                        (gsize)blob->size_bytes, &error);
        assert_no_error(error);
    }
    assert_int_equal(g_bytes_get_size(found), blob->size_bytes);
    return found;
}

static void assert_content(BerthdTest *test, const Berth__StartGuestRequest *start,
                           const Berth__BlobRef *blob, const char *expected, gsize length)
{
    g_autoptr(GBytes) content = content_of(test, start, blob);
    assert_int_equal(g_bytes_get_size(content), length);
    if (length > 0) {
        assert_memory_equal(g_bytes_get_data(content, NULL), expected, length);
    }
}

static gboolean file_holds(const char *path, const char *expected)
{
    g_autofree char *content = NULL;
    return g_file_get_contents(path, &content, NULL, NULL) && g_str_equal(content, expected);
}

/* --- what arrives ------------------------------------------------------------------------------- */

static void submit_option_beats_environment_beats_script(void **state)
{
    BerthdTest *test = *state;
    static const char script[] = "#!/bin/sh\n"
                                 "#BERTH --vcpus 1 --memory 100M --disk 3M --name script\n"
                                 "#BERTH -e A=script -e B=script\n"
                                 "true\n";
    g_autofree char *path = write_file(test, "job.sh", script, -1);
    const Berth__StartGuestRequest *start =
        submit(test,
               (const char *const[]){"submit", "-c3", "--env=A=option", "--chdir", "/data",
                                     "job.sh", "-x", "two words", "größe", NULL},
               (const char *const[]){"BERTH_VCPUS=2", "BERTH_MEMORY=200M",
                                     "BERTH_NAME=", "BERTH_ENV=C=environment", NULL});
    assert_int_equal(start->vcpus, 3);
    assert_int_equal(start->memory_mib, 200);
    assert_int_equal(start->task->n_command, 4);
    assert_string_equal(start->task->command[0], "job.sh");
    assert_string_equal(start->task->command[2], "two words");
    assert_string_equal(start->task->command[3], "größe");
    assert_string_equal(start->task->working_directory, "/data");
    assert_content(test, start, start->task->script, script, strlen(script));
    static const char environment[] = "A=script\0B=script\0C=environment\0A=option";
    assert_content(test, start, start->task->environment, environment, sizeof environment);
    g_autoptr(Berth__Job) job = berthd_fixture_get(test->berthd, start->id->job);
    assert_string_equal(job->name, "script"); /* an empty variable counts as not set */
    assert_int_equal(job->spec->disk_mib, 3);
}

static void submit_command_and_bytes_in_the_environment_arrive(void **state)
{
    BerthdTest *test = *state;
    const Berth__StartGuestRequest *start =
        submit(test,
               (const char *const[]){"submit", "--env", "X=\xff\x80", "--env", "Y", "--", "echo",
                                     "", "--hold", NULL},
               (const char *const[]){"Y=from here", NULL});
    assert_int_equal(start->task->n_command, 3);
    assert_string_equal(start->task->command[1], "");
    assert_null(start->task->script);
    static const char environment[] = "X=\xff\x80\0Y=from here";
    assert_content(test, start, start->task->environment, environment, sizeof environment);
}

static void submit_inputs_small_large_and_empty_arrive(void **state)
{
    BerthdTest *test = *state;
    gsize large_size = INPUT_FILE_MAX_MIB << 20;
    g_autofree char *large = g_malloc(large_size);
    for (gsize i = 0; i < large_size; i++) {
        large[i] = (char)(i * 2654435761u >> 13);
    }
    g_autofree char *small_path = write_file(test, "small", "a\0b", 3);
    g_autofree char *empty_path = write_file(test, "empty", "", 0);
    g_autofree char *large_path = write_file(test, "large=1", large, (gssize)large_size);
    g_autofree char *odd_path = write_file(test, "odd\xff", "odd", 3);
    assert_int_equal(g_chmod(small_path, 0751), 0);
    const Berth__StartGuestRequest *start = submit(
        test,
        (const char *const[]){"submit", "-I", "small", "-I", "large=1", "-I", "empty",
                              "--input=sub/odd=odd\xff", "-I", "again=large=1", "--", "x", NULL},
        NULL);
    const Berth__GuestTask *task = start->task;
    static const char *const names[] = {"small", "large=1", "empty", "sub/odd", "again"};
    assert_int_equal(task->n_inputs, G_N_ELEMENTS(names));
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        assert_string_equal(task->inputs[i]->path, names[i]);
    }
    assert_int_equal(task->inputs[0]->mode, 0751);
    assert_content(test, start, task->inputs[0]->blob, "a\0b", 3);
    assert_content(test, start, task->inputs[1]->blob, large, large_size);
    assert_content(test, start, task->inputs[2]->blob, "", 0);
    assert_content(test, start, task->inputs[3]->blob, "odd", 3);
    assert_content(test, start, task->inputs[4]->blob, large, large_size);
}

/* Each is small enough to go inline, all of them are not. */
static void submit_many_small_inputs_arrive(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(GPtrArray) arguments = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *content = g_strnfill(60000, 'x');
    g_ptr_array_add(arguments, g_strdup("submit"));
    for (guint i = 0; i < 100; i++) {
        char *name = g_strdup_printf("many-%03u", i);
        memcpy(content, name, strlen(name));
        g_autofree char *path = write_file(test, name, content, 60000);
        g_ptr_array_add(arguments, g_strdup("--input"));
        g_ptr_array_add(arguments, name);
    }
    g_ptr_array_add(arguments, g_strdup("--"));
    g_ptr_array_add(arguments, g_strdup("x"));
    g_ptr_array_add(arguments, NULL);
    const Berth__StartGuestRequest *start =
        submit(test, (const char *const *)arguments->pdata, NULL);
    assert_int_equal(start->task->n_inputs, 100);
    for (guint i = 0; i < 100; i++) {
        const Berth__GuestFile *input = start->task->inputs[i];
        memcpy(content, input->path, strlen(input->path));
        assert_content(test, start, input->blob, content, 60000);
    }
}

static void submit_script_larger_than_inline_arrives(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(GString) script = g_string_new("#!/bin/sh\n#BERTH --vcpus=2\n");
    while (script->len < 200000) {
        g_string_append(script, "true # one more line of a generated script\n");
    }
    g_autofree char *path = write_file(test, "long.sh", script->str, -1);
    const Berth__StartGuestRequest *start =
        submit(test, (const char *const[]){"submit", "long.sh", NULL}, NULL);
    assert_int_equal(start->vcpus, 2);
    assert_content(test, start, start->task->script, script->str, script->len);
}

static void submit_what_is_hardly_meant_is_noted(void **state)
{
    BerthdTest *test = *state;
    static const struct {
        const char *name;
        const char *content;
        gsize length;
        const char *err;
    } cases[] = {
        {"slurm.sh", "#!/bin/sh\n#SBATCH --mem=4G\n#SBATCH -c 4\ntrue\n", 0,
         "berth submit: slurm.sh: its #SBATCH lines mean nothing to Berth, whose own begin with "
         "#BERTH\n"},
        {"torque.sh", "#PBS -l nodes=1\ntrue\n", 0,
         "berth submit: torque.sh: its #PBS lines mean nothing to Berth, whose own begin with "
         "#BERTH\n"},
        {"both.sh", "#!/bin/sh\n#BERTH --memory=4G\n#SBATCH -c 4\n", 0,
         "berth submit: both.sh: its #SBATCH lines mean nothing to Berth, whose own begin with "
         "#BERTH\n"},
        {"moved.sh", "#PBS -l mem=4g\n#BERTH --memory=4G\ntrue\n", 0,
         "berth submit: moved.sh: its #PBS lines mean nothing to Berth, whose own begin with "
         "#BERTH\n"},
        {"late.sh", "#!/bin/sh\ntrue\n#SBATCH --mem=4G\n", 0, ""},
        {"program",
         "\x7f"
         "ELF\0\1",
         6, "berth submit: program is a binary file: the job fails if the image cannot run it\n"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = write_file(test, cases[i].name, cases[i].content,
                                           cases[i].length ? (gssize)cases[i].length : -1);
        g_autoptr(CliProcess) cli = CLI(test->berthd, "submit", cases[i].name);
        assert_cli_status(cli, 0);
        assert_string_equal(cli_err(cli), cases[i].err);
    }
}

static void submit_of_what_cannot_grow_is_noted(void **state)
{
    BerthdTest *test = *state;
    static const struct {
        const char *options;
        gboolean is_noted;
    } cases[] = {
        {"--on-limit grow", TRUE},
        {"--on-limit grow --memory 128M", TRUE},
        {"--on-limit grow --memory 128M --memory-max 128M", TRUE},
        {"--on-limit grow --vcpus 1 --vcpus-max 1", TRUE},
        {"--on-limit grow --memory 128M --memory-max 256M", FALSE},
        {"--on-limit grow --memory 128M --vcpus-max 4", FALSE},
        {"--on-limit freeze --memory 128M", FALSE},
        {"--memory 128M", FALSE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *script =
            g_strdup_printf("\"$BERTH\" submit --hold %s -- true", cases[i].options);
        g_autoptr(CliProcess) cli = CLI_SHELL(test->berthd, script);
        assert_cli_status(cli, 0);
        assert_string_equal(cli_err(cli),
                            cases[i].is_noted
                                ? "berth submit: --on-limit grow: the job has no room to grow; "
                                  "--memory-max gives it some, above its --memory\n"
                                : "");
    }
}

static void submit_name_is_made_of_the_command(void **state)
{
    BerthdTest *test = *state;
    static const struct {
        const char *command;
        const char *name;
    } cases[] = {
        {"/usr/bin/env", "env"},
        {"two\nlines", "two?lines"},
        {"ööööööööööööööööööööööööööööööööööööööööööööööööööööööööööööööööööööö",
         "öööööööööööööööööööööööööööööööööööööööööööööööööööööööööööööööö"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const Berth__StartGuestRequest *start =
            submit(test, (const char *const[]){"submit", "--", cases[i].command, NULL}, NULL);
        assert_string_equal(start->task->command[0], cases[i].command);
        g_autoptr(Berth__Job) job = berthd_fixture_get(test->berthd, start->id->job);
        assert_string_equal(job->name, cases[i].name);
    }
}

static void submit_key_gives_one_job(void **state)
{
    BerthdTest *test = *state;
    static const char *const arguments[] = {"submit", "--key", "Monday", "--", "x", NULL};
    const Berth__StartGuestRequest *first = submit(test, arguments, NULL);
    const Berth__StartGuestRequest *second = submit(test, arguments, NULL);
    const Berth__StartGuestRequest *other =
        submit(test, (const char *const[]){"submit", "--", "x", NULL}, NULL);
    assert_int_equal(first->id->job, second->id->job);
    assert_int_not_equal(first->id->job, other->id->job);
}

static void submit_output_files_are_written_at_the_end(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.out = "out\n", .err = "err\n"};
    const Berth__StartGuestRequest *start = submit(
        test, (const char *const[]){"submit", "-o", "%j.out", "--error", "err", "--", "x", NULL},
        NULL);
    test->plan = (FakePlan){0};
    g_autofree char *name = g_strdup_printf("%" G_GUINT64_FORMAT ".out", start->id->job);
    static const char *const expected[] = {"out\n", "err\n"};
    const char *const names[] = {name, "err"};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *path = g_build_filename(berthd_fixture_dir(test->berthd), names[i], NULL);
        run_until(file_holds(path, expected[i]));
    }
}

static void submit_without_options_gets_what_version_shows(void **state)
{
    BerthdTest *test = *state;
    const Berth__StartGuestRequest *start =
        submit(test, (const char *const[]){"submit", "--", "x", NULL}, NULL);
    g_autoptr(Berth__Job) job = berthd_fixture_get(test->berthd, start->id->job);
    assert_int_equal(job->vcpus, 3);
    assert_int_equal(job->memory_mib, 192);
    assert_int_equal(job->spec->disk_mib, 7 * 1024);
    assert_int_equal(job->time_limit_sec, 5400);
    g_autoptr(CliProcess) cli = CLI(test->berthd, "version");
    assert_cli_status(cli, 0);
    assert_contains(cli_out(cli), "\nCheckpoints      0M in storage, 0M kept for others to come, ");
    assert_contains(cli_out(cli), "Default image    tiny\n"
                                  "Default vCPUs    3\n"
                                  "Default memory   192M\n"
                                  "Default disk     7G\n"
                                  "Default time     01:30:00\n");
}

/* --- what is refused ---------------------------------------------------------------------------- */

typedef struct {
    const char *arguments[7];
    const char *environment;
    int status;
    const char *err;
} Refusal;

static const Refusal refusals[] = {
    {{"submit"}, NULL, 2, "name a script, or a command after \"--\""},
    {{"submit", "-c", "0", "--", "x"}, NULL, 2, "-c: \"0\" is not a number"},
    {{"submit", "--memory", "much", "--", "x"}, NULL, 2, "--memory: \"much\" is not a size"},
    {{"submit", "--name", "\xff", "--", "x"}, NULL, 2, "is not valid UTF-8"},
    {{"submit", "--", "x"}, "BERTH_TIME=soon", 2, "variable BERTH_TIME: \"soon\" is not a dur"},
    {{"submit", "bad.sh"}, NULL, 2, "bad.sh:2: --vcpus: \"many\" is not a number"},
    {{"submit", "--", "x", "\xff"}, NULL, 1, "the argument \"\xef\xbf\xbd\" is not valid UTF-8"},
    {{"submit", "--", ""}, NULL, 1, "there is no command to run"},
    {{"submit", "no.sh"}, NULL, 1, "cannot read the script \"no.sh\""},
    {{"submit", "."}, NULL, 1, "is not a regular file"},
    {{"submit", "empty.sh"}, NULL, 1, "is empty"},
    {{"submit", "crlf.sh"},
     NULL,
     1,
     "\"crlf.sh\": line 1 ends in CR LF (a Windows file); convert it with: sed -i 's/\\r$//' FILE"},
    {{"submit", "--image", "nope", "--", "x"}, NULL, 1, "there is no image \"nope\""},
    {{"submit", "-c", "65", "--", "x"}, NULL, 1, "the largest, n1, has 64 vCPUs"},
    {{"submit", "--disk", "1000T", "--", "x"}, NULL, 1, "a disk has 64T at most"},
    {{"submit", "--disk", "64T", "--", "x"}, NULL, 1, "64T of disk beside "},
    {{"submit", "-e", "A B=1", "--", "x"},
     NULL,
     2,
     "-e: \"A B\" cannot be the name of a variable: it has a space"},
    {{"submit", "-w", "n1,n9", "--", "x"}, NULL, 1, "there is no node \"n9\""},
    {{"submit", "-I", "nope", "--", "x"}, NULL, 1, "cannot read \"nope\": No such file"},
    {{"submit", "-I", ".", "--", "x"}, NULL, 1, "is a directory; only regular files"},
    {{"submit", "-I", "fifo", "--", "x"}, NULL, 1, "is not a regular file; only regular files"},
    {{"submit", "-I", "huge", "--", "x"},
     NULL,
     1,
     "has 2097153 bytes; this cluster takes input files of 2M"},
    {{"submit", "-I", "../x=bad.sh", "--", "x"}, NULL, 1, "cannot be the name of an input file"},
    {{"submit", "-I", "a\xff=bad.sh", "--", "x"}, NULL, 1, "give it another one with --input"},
    {{"submit", "--each", "nope", "--", "x"}, NULL, 1, "--each: Failed to open file"},
    {{"submit", "--each", "fifo", "--", "x"}, NULL, 1, "\"fifo\" is not a regular file"},
    {{"submit", "--each", "huge", "--", "x"}, NULL, 1, "larger than the cluster takes"},
    {{"submit", "--each", "empty.sh", "--", "x"}, NULL, 1, "\"empty.sh\": it has no lines"},
    {{"submit", "--each", "crlf.sh", "--", "x"}, NULL, 1, "line 1 ends in CR LF (a Windows file)"},
    {{"submit", "--each=bad.sh", "--array", "0-2", "--", "x"},
     NULL,
     1,
     "\"bad.sh\" has 2 lines, and so tasks from 0 to 1, and --array names task 2"},
    {{"submit", "--each=bad.sh", "-o", "out", "--", "x"}, NULL, 1, "add %a to its name"},
    {{"submit", "-o", "nowhere/x", "--", "x"}, NULL, 1, "cannot be written to \"nowhere/x\""},
    {{"submit", "-o", ".", "--", "x"}, NULL, 1, "cannot be written to \".\": Is a directory"},
};

static void submit_what_is_wrong_is_said(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *bad = write_file(test, "bad.sh", "#!/bin/sh\n#BERTH --vcpus=many\n", -1);
    g_autofree char *empty = write_file(test, "empty.sh", "", 0);
    g_autofree char *crlf = write_file(test, "crlf.sh", "#!/bin/sh\r\ntrue\r\n", -1);
    g_autofree char *large = g_strnfill((INPUT_FILE_MAX_MIB << 20) + 1, 'x');
    g_autofree char *huge = write_file(test, "huge", large, -1);
    g_autofree char *fifo = g_build_filename(berthd_fixture_dir(test->berthd), "fifo", NULL);
    assert_int_equal(mkfifo(fifo, 0600), 0);
    for (gsize i = 0; i < G_N_ELEMENTS(refusals); i++) {
        const Refusal *refusal = &refusals[i];
        const char *const environment[] = {refusal->environment, NULL};
        g_autoptr(CliProcess) cli =
            cli_start(berthd_fixture_socket(test->berthd), refusal->arguments, environment);
        assert_cli_status(cli, refusal->status);
        assert_string_equal(cli_out(cli), "");
        assert_true(g_str_has_prefix(cli_err(cli), "berth submit: "));
        assert_contains(cli_err(cli), refusal->err);
        assert_int_equal(strcspn(cli_err(cli), "\n") + 1, strlen(cli_err(cli))); /* one line */
    }
}

/* --- a line for each task --------------------------------------------------------------------- */

static const char *variable(const Berth__StartGuestRequest *start, const char *name)
{
    g_autofree char *prefix = g_strconcat(name, "=", NULL);
    for (gsize i = 0; i < start->task->n_extra_environment; i++)
        if (g_str_has_prefix(start->task->extra_environment[i], prefix))
            return start->task->extra_environment[i] + strlen(prefix);
    return NULL;
}

/* Submits what has several tasks, and gives its number when all have ended. */
static guint64 submit_array(BerthdTest *test, const char *const *arguments)
{
    const char *const wait[] = {"wait", NULL, NULL};
    const char *words[G_N_ELEMENTS(wait)];
    guint64 job = 0;
    g_autoptr(CliProcess) cli = cli_start(berthd_fixture_socket(test->berthd), arguments, NULL);
    assert_cli_status(cli, 0);
    g_autofree char *number = g_strndup(cli_out(cli), cli_out_length(cli) - 1);
    assert_true(g_ascii_string_to_unsigned(number, 10, 1, G_MAXUINT64, &job, NULL));
    memcpy(words, wait, sizeof words);
    words[1] = number;
    g_autoptr(CliProcess) waits = cli_start(berthd_fixture_socket(test->berthd), words, NULL);
    assert_cli_status(waits, 0);
    return job;
}

static void submit_each_gives_each_task_its_line(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *path = write_file(test, "lines", "alpha 1\n\nbeta  2\n", -1);
    const char *const all[] = {"submit", "--each", path, "--", "work", NULL};
    const char *const one[] = {"submit", "--each", path, "--array", "2", "--", "work", NULL};
    const char *const empty[] = {"submit", "--each", path, "--array", "1", "--", "work", NULL};
    guint64 job = submit_array(test, all);
    assert_int_equal(fake_agent_runs(test->agent, job), 3);
    const Berth__StartGuestRequest *start = fake_agent_start(test->agent, submit_array(test, one));
    assert_int_equal(start->id->task, 2);
    assert_string_equal(variable(start, "BERTH_TASK_LINE"), "beta  2");
    assert_int_equal(start->n_inline_blobs, 0); /* the others' are not sent */
    start = fake_agent_start(test->agent, submit_array(test, empty));
    assert_string_equal(variable(start, "BERTH_TASK_LINE"), "");
    const char *const none[] = {"submit", "--array", "2", "--", "work", NULL};
    assert_null(
        variable(fake_agent_start(test->agent, submit_array(test, none)), "BERTH_TASK_LINE"));
}

/* It is in storage, and of it only the line is read. */
static void submit_each_of_a_large_file_is_read_from_storage(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < 5000; i++)
        g_string_append_printf(text, "line %u of a large file of parameters\n", i);
    g_autofree char *path = write_file(test, "many", text->str, (gssize)text->len);
    const char *const arguments[] = {"submit", "--each", path,   "--array",
                                     "4711",   "--",     "work", NULL};
    const Berth__StartGuestRequest *start =
        fake_agent_start(test->agent, submit_array(test, arguments));
    assert_string_equal(variable(start, "BERTH_TASK_LINE"),
                        "line 4711 of a large file of parameters");
}

static int setup(void **state)
{
    g_autofree char *extra =
        g_strdup_printf("[limits]\ninput_file_max = %dM\n"
                        "[defaults]\nvcpus = 3\nmemory = 192M\ndisk = 7G\ntime_limit = 90m\n",
                        INPUT_FILE_MAX_MIB);
    return berthd_test_setup_with(state, extra);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(submit_option_beats_environment_beats_script),
        cmocka_unit_test(submit_command_and_bytes_in_the_environment_arrive),
        cmocka_unit_test(submit_inputs_small_large_and_empty_arrive),
        cmocka_unit_test(submit_many_small_inputs_arrive),
        cmocka_unit_test(submit_script_larger_than_inline_arrives),
        cmocka_unit_test(submit_what_is_hardly_meant_is_noted),
        cmocka_unit_test(submit_of_what_cannot_grow_is_noted),
        cmocka_unit_test(submit_name_is_made_of_the_command),
        cmocka_unit_test(submit_key_gives_one_job),
        cmocka_unit_test(submit_output_files_are_written_at_the_end),
        cmocka_unit_test(submit_without_options_gets_what_version_shows),
        cmocka_unit_test(submit_each_gives_each_task_its_line),
        cmocka_unit_test(submit_each_of_a_large_file_is_read_from_storage),
        cmocka_unit_test(submit_what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, setup, berthd_test_teardown);
}
