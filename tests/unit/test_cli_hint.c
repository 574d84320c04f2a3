/* SPDX-License-Identifier: Apache-2.0 */
/* What is said to who names an option or a command that there is not. */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/hint.h"
#include "cli/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

static void distance_counts_the_least_changes(void **state)
{
    static const struct {
        const char *a, *b;
        guint expected;
    } cases[] = {
        {"", "", 0},
        {"", "abc", 3},
        {"abc", "", 3},
        {"memory", "memory", 0},
        {"memmory", "memory", 1},
        {"memry", "memory", 1},
        {"menory", "memory", 1},
        {"sumbit", "submit", 1},
        {"kitten", "sitting", 3},
        {"ab", "ba", 1},
        {"ca", "abc", 3},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        guint distance = berth_hint_distance(cases[i].a, cases[i].b);
        if (distance != cases[i].expected)
            fail_msg("\"%s\" and \"%s\": %u", cases[i].a, cases[i].b, distance);
    }
}

static void option_near_or_foreign_is_named(void **state)
{
    static const struct {
        const char *word;
        const char *expected;
    } cases[] = {
        {"--memmory", "; did you mean --memory?"},
        {"--mem=4G", "; did you mean --memory?"},
        {"--tiem", "; did you mean --time?"},
        {"--cpus-per-task=4", "; did you mean --vcpus?"},
        {"--job-name", "; did you mean --name?"},
        {"--nodelist=n1", "; did you mean --node?"},
        {"--env_all", "; did you mean --env-all?"},
        {"--arry=1-10", "; did you mean --array?"},
        {"--pty", "; jobs are not interactive: they have no terminal, and their standard input "
                  "is /dev/null"},
        {"--nice=100", "; see --priority, whose sign is the opposite: more is sooner"},
        {"--nodes=2", "; a job has one guest, on one node; --node names the nodes that it may use"},
        {"--hepl", "; did you mean --help?"},
        {"--frobnicate", ""},
        {"--", ""},
        {"--x", ""},
        {"-J", "; did you mean --name?"},
        {"-Jfoo", "; did you mean --name?"},
        {"-tJ", "; did you mean --name?"},
        {"-tc", ""},
        {"-N", "; --name names a job (-N of PBS); it has one guest, on one node (-N of Slurm)"},
        {"--gres=gpu:1", "; there are no GPUs and no other generic resources"},
        {"--mail-type=END", "; no mail is sent; `berth wait` returns when a job has ended"},
        {"-x", ""},
        {"-", ""},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *hint = berth_hint_option(berth_job_option_entries(), cases[i].word);
        if (!g_str_equal(hint, cases[i].expected))
            fail_msg("\"%s\" gives \"%s\"", cases[i].word, hint);
    }
    g_autofree char *none = berth_hint_option(NULL, "--mem");
    assert_string_equal(none, "");
}

static void key_near_or_foreign_is_named(void **state)
{
    static const char *const others[] = {"command", "script", NULL};
    static const struct {
        const char *word;
        const char *expected;
    } cases[] = {
        {"commnd", "; did you mean \"command\"?"},
        {"Script", "; did you mean \"script\"?"},
        {"memmory", "; did you mean \"memory\"?"},
        {"mem", "; did you mean \"memory\"?"},
        {"job-name", "; did you mean \"name\"?"},
        {"colour", ""},
        {"partition", ""},
        {"commandcommandcommandcommandcommand", ""},
        {"", ""},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *hint = berth_hint_key(berth_job_option_entries(), others, cases[i].word);
        assert_string_equal(hint, cases[i].expected);
    }
}

static void command_near_or_foreign_is_named(void **state)
{
    static const struct {
        const char *word;
        const char *expected;
    } cases[] = {
        {"sumbit", "; did you mean \"berth submit\"?"},
        {"sub", "; did you mean \"berth submit\"?"},
        {"cancle", "; did you mean \"berth cancel\"?"},
        {"log", "; did you mean \"berth logs\"?"},
        {"sl", "; did you mean \"berth ls\"?"},
        {"squeue", "; did you mean \"berth ls\"?"},
        {"sinfo", "; did you mean \"berth node ls\"?"},
        {"nodes", "; did you mean \"berth node ls\"?"},
        {"hlep", "; did you mean \"berth help\"?"},
        {"salloc", "; jobs are not interactive: they have no terminal, and their standard input "
                   "is /dev/null"},
        {"info", "; `berth version` is about the cluster, `berth node ls` about nodes, "
                 "`berth show` about a job"},
        {"image list", "; did you mean \"berth image ls\"?"},
        {"image imprt", "; did you mean \"berth image import\"?"},
        {"node resume", "; did you mean \"berth node undrain\"?"},
        {"node rm", ""},
        {"node frobnicate", ""},
        {"frobnicate ls", ""},
        {"frobnicate", ""},
        {"x", ""},
        {"", ""},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *hint = berth_hint_command(cases[i].word);
        if (!g_str_equal(hint, cases[i].expected))
            fail_msg("\"%s\" gives \"%s\"", cases[i].word, hint);
    }
}

/* What is ours needs no translation, and what is said is true of the commands that there are. */
static void command_synonyms_are_no_commands_of_ours(void **state)
{
    gsize n = 0;
    const BerthCommand *commands = berth_commands(&n);
    for (gsize i = 0; i < n; i++) {
        g_autofree char *first = g_strndup(commands[i].name, strcspn(commands[i].name, " "));
        g_autofree char *own = berth_hint_command(first);
        g_autofree char *expected = g_strdup_printf("; did you mean \"berth %s\"?", first);
        assert_string_equal(own, expected);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(distance_counts_the_least_changes),
        cmocka_unit_test(option_near_or_foreign_is_named),
        cmocka_unit_test(key_near_or_foreign_is_named),
        cmocka_unit_test(command_near_or_foreign_is_named),
        cmocka_unit_test(command_synonyms_are_no_commands_of_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
