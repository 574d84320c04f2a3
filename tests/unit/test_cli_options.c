/* SPDX-License-Identifier: Apache-2.0 */
/* Job options: the same table for #BERTH lines, the environment and the command line. */
#include "cli/dependency.h"
#include "cli/job_spec.h"
#include "cli/options.h"
#include "common/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <glib/gstdio.h>
#include <signal.h>
#include <string.h>

static BerthJobOptions *from_script(const char *script, GError **error)
{
    g_autoptr(BerthJobOptions) options = berth_job_options_new();
    if (!berth_job_options_from_script(options, script, strlen(script), "job.sh", error))
        return NULL;
    return g_steal_pointer(&options);
}

static void from_script_directives_in_head_are_taken(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthJobOptions) options =
        from_script("#!/bin/sh\n#BERTH --vcpus=2 --memory 4G   # comment\n\n# other\n"
                    "#BERTH -t 30m -e A=1 -e 'B=two words' -H\n"
                    "#BERTHA --vcpus=9\n"
                    "echo\n#BERTH --vcpus=8\n",
                    &error);
    assert_null(error);
    assert_int_equal(options->vcpus, 2);
    assert_int_equal(options->memory_mib, 4096);
    assert_int_equal(options->time_limit_sec, 1800);
    assert_true(options->hold);
    assert_int_equal(options->environment->len, 2);
    assert_string_equal(g_ptr_array_index(options->environment, 1), "B=two words");
}

static void from_script_signals_by_name_and_number(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthJobOptions) options =
        from_script("#BERTH --checkpoint-signal SIGUSR1@1m --restore-signal=12\n", &error);
    assert_null(error);
    assert_int_equal(options->checkpoint_signal, SIGUSR1);
    assert_int_equal(options->checkpoint_signal_sec, 60);
    assert_int_equal(options->restore_signal, 12);
    g_autoptr(BerthJobOptions) short_one = from_script("#BERTH --checkpoint-signal=hup\n", &error);
    assert_null(error);
    assert_int_equal(short_one->checkpoint_signal, SIGHUP);
    assert_int_equal(short_one->checkpoint_signal_sec, 0); /* the daemon says */
}

static void from_script_array_has_indices_and_how_many_run(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthJobOptions) options = from_script("#BERTH --array 20,1-9:2%5\n", &error);
    assert_null(error);
    g_autofree char *indices = berth_index_set_format(options->array);
    assert_string_equal(indices, "1-9:2,20");
    assert_int_equal(options->array_running_max, 5);
    g_autoptr(BerthJobOptions) plain = from_script("#BERTH --array=0-99\n", &error);
    assert_int_equal(berth_index_set_count(plain->array), 100);
    assert_int_equal(plain->array_running_max, 0);
    static const char *const wrong[] = {"#BERTH --array=\n", "#BERTH --array=5-1\n",
                                        "#BERTH --array=1-5%0\n", "#BERTH --array=1-5%\n",
                                        "#BERTH --array=%5\n"};
    for (guint i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) why = NULL;
        assert_null(from_script(wrong[i], &why));
        assert_non_null(why);
    }
}

static void from_script_dependencies_are_words_and_jobs(void **state)
{
    static const char *const due[] = {"afterok:12", "afterok:13", "after:14", "singleton"};
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthJobOptions) options =
        from_script("#BERTH --dependency afterok:12:13,after:14,singleton\n", &error);
    assert_null(error);
    assert_int_equal(options->dependencies->len, G_N_ELEMENTS(due));
    for (guint i = 0; i < G_N_ELEMENTS(due); i++) {
        g_autofree char *text =
            berth_dependency_format(g_ptr_array_index(options->dependencies, i));
        assert_string_equal(text, due[i]);
    }
    static const char *const wrong[] = {"afterok",    "afterok:",       "afterok:x",
                                        "before:3",   "afterok:3,",     "singleton:3",
                                        "afterany:0", "afterok:3[1-2]", "afterok:3?after:4"};
    for (guint i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autofree char *line = g_strdup_printf("#BERTH --dependency=%s\n", wrong[i]);
        g_autoptr(GError) refused = NULL;
        assert_null(from_script(line, &refused));
        assert_non_null(refused);
        assert_int_equal(refused->code, BERTH_ERROR_INVALID_ARGUMENT);
    }
}

static void from_script_bad_directive_names_file_and_line(void **state)
{
    static const struct {
        const char *script;
        const char *expected;
    } cases[] = {
        {"#!/bin/sh\n#BERTH --vcpus=zero\n", "job.sh:2: --vcpus: "},
        {"#BERTH --vcpus=0\n", "job.sh:1: --vcpus: "},
        {"#BERTH --no-such\n", "job.sh:1: Unknown option --no-such"},
        {"#BERTH --memmory 256M\n", "job.sh:1: Unknown option --memmory; did you mean --memory?"},
        {"\n\n#BERTH stray\n", "job.sh:3: \"stray\" is not an option"},
        {"#BERTH --name='open\n",
         "job.sh:1: a quote is not closed, or the line ends in a backslash: #BERTH --name='open"},
        {"#BERTH\t-n a\\\n",
         "job.sh:1: a quote is not closed, or the line ends in a backslash: #BERTH?-n a\\"},
        {"#BERTH --node=\n", "job.sh:1: --node: the value is empty"},
        {"#BERTH --env 1A=3\n",
         "job.sh:1: --env: \"1A\" cannot be the name of a variable: it begins with a digit"},
        {"#BERTH -e 9\n", "job.sh:1: -e: \"9\" cannot be the name of a variable: it begins with"},
        {"#BERTH --memory\n", "job.sh:1: Missing argument for --memory"},
        {"#BERTH --node=a,,b\n", "job.sh:1: --node: \"a,,b\" is not a list"},
        {"#BERTH --chdir=rel\n", "job.sh:1: --chdir: \"rel\" is not an absolute path"},
        {"#BERTH --grace=2h\n", "job.sh:1: --grace: "},
        {"#BERTH --checkpoint-signal=KILL\n",
         "job.sh:1: --checkpoint-signal: \"KILL\" is not a signal that a command can catch"},
        {"#BERTH --checkpoint-signal=@10s\n",
         "job.sh:1: --checkpoint-signal: \"\" is not a signal"},
        {"#BERTH --checkpoint-signal=USR1@2h\n", "job.sh:1: --checkpoint-signal: \"2h\" is more"},
        {"#BERTH --checkpoint-signal=USR1@0s\n",
         "job.sh:1: --checkpoint-signal: \"0s\" is no time"},
        {"#BERTH --checkpoint-signal=USR1@soon\n", "job.sh:1: --checkpoint-signal: "},
        {"#BERTH --on-limit=stop\n",
         "job.sh:1: --on-limit: \"stop\" is none of grow, freeze, kill"},
        {"#BERTH --on-timeout=freeze\n",
         "job.sh:1: --on-timeout: \"freeze\" is none of checkpoint, kill"},
        {"#BERTH --restore-signal=64\n", "job.sh:1: --restore-signal: \"64\" is not a signal"},
        {"#BERTH --restore-signal=19\n", "job.sh:1: --restore-signal: \"19\" is not a signal"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(BerthJobOptions) options = from_script(cases[i].script, &error);
        assert_null(options);
        assert_non_null(error);
        if (!g_str_has_prefix(error->message, cases[i].expected))
            fail_msg("case %zu: \"%s\" does not begin with \"%s\"", i, error->message,
                     cases[i].expected);
    }
}

static void from_script_without_newline_or_with_binary_is_read(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthJobOptions) options = from_script("#BERTH --vcpus=3", &error);
    assert_non_null(options);
    assert_int_equal(options->vcpus, 3);
    static const char binary[] = "\x7f"
                                 "ELF\0\n#BERTH --vcpus=4\n";
    g_autoptr(BerthJobOptions) second = berth_job_options_new();
    assert_true(berth_job_options_from_script(second, binary, sizeof binary - 1, "a.out", &error));
    assert_int_equal(second->vcpus, 0);
}

static void from_environment_bad_value_names_the_variable(void **state)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(BerthJobOptions) options = berth_job_options_new();
    g_setenv("BERTH_MEMORY", "much", TRUE);
    assert_false(berth_job_options_from_environment(options, &error));
    g_unsetenv("BERTH_MEMORY");
    assert_true(g_str_has_prefix(error->message, "environment variable BERTH_MEMORY: "));
}

static BerthSubmission *parse(const char *const *words, int *out_status, GError **error)
{
    int argc = (int)g_strv_length((char **)words);
    g_autofree char **argv = g_new0(char *, (gsize)argc + 1);
    memcpy(argv, words, sizeof(char *) * (gsize)argc);
    *out_status = 0;
    return berth_submission_parse(argc, argv, NULL, out_status, error);
}

static char *write_script(const char *content)
{
    char *path = NULL;
    int fd = g_file_open_tmp("berth-XXXXXX.sh", &path, NULL);
    assert_true(fd >= 0);
    g_close(fd, NULL);
    assert_true(g_file_set_contents(path, content, -1, NULL));
    return path;
}

static void parse_option_beats_environment_beats_script(void **state)
{
    g_autofree char *script =
        write_script("#!/bin/sh\n#BERTH -c 1 -m 1G -d 1G --node=a,b\necho hi\n");
    g_autoptr(GError) error = NULL;
    int status;
    g_setenv("BERTH_MEMORY", "2G", TRUE);
    g_setenv("BERTH_DISK", "2G", TRUE);
    g_autoptr(BerthSubmission) submission = parse(
        (const char *[]){"berth submit", "--disk=3G", "--node", "c", script, "-x", "--", "y", NULL},
        &status, &error);
    g_unsetenv("BERTH_MEMORY");
    g_unsetenv("BERTH_DISK");
    g_unlink(script);
    assert_null(error);
    const Berth__JobSpec *spec = submission->spec;
    assert_int_equal(spec->vcpus, 1);
    assert_int_equal(spec->memory_mib, 2048);
    assert_int_equal(spec->disk_mib, 3072);
    assert_int_equal(spec->n_nodes, 1);
    assert_string_equal(spec->nodes[0], "c");
    assert_int_equal(spec->n_command, 4);
    assert_string_equal(spec->command[0], script);
    assert_string_equal(spec->command[1], "-x");
    assert_string_equal(spec->command[2], "--");
    assert_string_equal(spec->command[3], "y");
    assert_non_null(spec->script);
    assert_int_equal(spec->script->size_bytes, strlen("#!/bin/sh\n#BERTH -c 1 -m 1G -d 1G "
                                                      "--node=a,b\necho hi\n"));
}

static void parse_command_after_dashes_needs_no_script(void **state)
{
    static const char *const cases[][6] = {
        {"berth run", "--", "echo", "-n", "x", NULL},
        {"berth run", "-c1", "--", "echo", "x", NULL},
        {"berth run", "--", "-weird", NULL},
        {"berth run", "-Hc1", "--", "-weird", "--", NULL},
    };
    static const char *const first[] = {"echo", "echo", "-weird", "-weird"};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        int status;
        g_autoptr(BerthSubmission) submission = parse(cases[i], &status, &error);
        assert_null(error);
        assert_non_null(submission);
        assert_null(submission->spec->script);
        assert_string_equal(submission->spec->command[0], first[i]);
        assert_string_equal(submission->spec->name, first[i]);
    }
}

static void parse_errors_say_what_to_do(void **state)
{
    static const struct {
        const char *words[5];
        int status;
        const char *expected;
    } cases[] = {
        {{"berth submit", NULL}, 2, "name a script, or a command"},
        {{"berth submit", "--", NULL}, 2, "name a script, or a command"},
        {{"berth submit", "/no/such/script", NULL}, 0, "cannot read the script"},
        {{"berth submit", "/", NULL}, 0, "is not a regular file"},
        {{"berth submit", "-c", "none", "x", NULL}, 2, "-c: "},
        {{"berth submit", "--node", "", "x", NULL}, 2, "--node: the value is empty"},
        {{"berth submit", "--name", "", "x", NULL}, 2, "--name: the value is empty"},
        {{"berth run", "-it", "tiny", "sh", NULL}, 2, "jobs are not interactive"},
        {{"berth run", "-Hti", "tiny", "sh", NULL}, 2, "-t: "},
        {{"berth run", "-ti", "tiny", "sh", NULL}, 2, "jobs are not interactive"},
        {{"berth submit", "--memory=-1", "x", NULL}, 2, "--memory: "},
        {{"berth submit", "-t", "0", "x", NULL}, 2, "-t: \"0\" is too little: 1s at least"},
        {{"berth submit", "--memory=0G", "x", NULL}, 2, "--memory: \"0G\" is too little: 64M"},
        {{"berth submit", "-d0", "x", NULL}, 2, "-d: \"0\" is too little: 1M at least"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        int status;
        g_autoptr(BerthSubmission) submission = parse(cases[i].words, &status, &error);
        assert_null(submission);
        assert_non_null(error);
        assert_int_equal(status, cases[i].status);
        if (strstr(error->message, cases[i].expected) == NULL)
            fail_msg("case %zu: \"%s\" lacks \"%s\"", i, error->message, cases[i].expected);
    }
}

/* What the manual and the completion leave out, nobody finds. */
static void manual_and_completion_name_every_option(void **state)
{
    const char *top = g_getenv("top_srcdir");
    if (top == NULL)
        skip();
    static const char *const files[] = {"doc/berth.1", "cli/berth.bash"};
    for (gsize f = 0; f < G_N_ELEMENTS(files); f++) {
        g_autofree char *path = g_build_filename(top, files[f], NULL);
        g_autofree char *raw = NULL;
        assert_true(g_file_get_contents(path, &raw, NULL, NULL));
        g_autoptr(GString) text = g_string_new(raw);
        g_string_replace(text, "\\-", "-", 0);
        for (const GOptionEntry *entry = berth_job_option_entries(); entry->long_name; entry++) {
            g_autofree char *option = g_strconcat("--", entry->long_name, NULL);
            if (strstr(text->str, option) == NULL)
                fail_msg("%s does not mention %s", files[f], option);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_script_directives_in_head_are_taken),
        cmocka_unit_test(from_script_signals_by_name_and_number),
        cmocka_unit_test(from_script_array_has_indices_and_how_many_run),
        cmocka_unit_test(from_script_dependencies_are_words_and_jobs),
        cmocka_unit_test(from_script_bad_directive_names_file_and_line),
        cmocka_unit_test(from_script_without_newline_or_with_binary_is_read),
        cmocka_unit_test(from_environment_bad_value_names_the_variable),
        cmocka_unit_test(parse_option_beats_environment_beats_script),
        cmocka_unit_test(parse_command_after_dashes_needs_no_script),
        cmocka_unit_test(parse_errors_say_what_to_do),
        cmocka_unit_test(manual_and_completion_name_every_option),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
