/* SPDX-License-Identifier: Apache-2.0 */
/* What tells users which verbs and options there are: help, hints at wrong words, manual, completion. */
#include "config.h"

#include "tests/lib/berthd_test.h"
#include "tests/lib/cli_process.h"

#include "cli/commands.h"

static void help_of_every_verb_is_there(void **state)
{
    BerthdTest *test = *state;
    gsize n_commands = 0;
    const BerthCommand *commands = berth_commands(&n_commands);
    g_autofree char *all = cli_output_of(CLI(test->berthd, "--help"));
    g_autofree char *bare = cli_output_of(CLI(test->berthd, "help"));
    assert_string_equal(bare, all);
    g_autofree char *group = cli_output_of(CLI(test->berthd, "help", "node"));
    assert_contains(group, "node show");
    for (gsize i = 0; i < n_commands; i++) {
        g_autofree char *script = g_strdup_printf("\"$BERTH\" %s --help", commands[i].name);
        g_autofree char *usage = g_strdup_printf("  berth %s [OPTION", commands[i].name);
        g_autofree char *help = cli_output_of(CLI_SHELL(test->berthd, script));
        assert_contains(help, usage);
        g_autofree char *other = g_strdup_printf("\"$BERTH\" help %s", commands[i].name);
        g_autofree char *same = cli_output_of(CLI_SHELL(test->berthd, other));
        assert_string_equal(same, help);
        assert_contains(all, commands[i].name);
        g_autofree char *bad = g_strdup_printf("\"$BERTH\" %s --no-such-option", commands[i].name);
        g_autoptr(CliProcess) refused = CLI_SHELL(test->berthd, bad);
        gboolean is_125 =
            strcmp(commands[i].name, "run") == 0 || strcmp(commands[i].name, "wait") == 0 ||
            strcmp(commands[i].name, "exec") == 0 || strcmp(commands[i].name, "attach") == 0;
        assert_cli_status(refused, is_125 ? 125 : 2);
        assert_contains(cli_err(refused), "Unknown option --no-such-option");
    }
}

/* As berth(1) does. */
static void help_of_submit_says_what_ceilings_are_for(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *help = cli_output_of(CLI(test->berthd, "help", "submit"));
    assert_contains(help, "Virtual CPUs up to which it is grown, and may be resized\n");
    assert_contains(help,
                    "Memory up to which it is grown, and may be resized; above --memory it is "
                    "kept when it needs more\n");
    assert_contains(help,
                    "What to do when it stalls for memory and gets no more (default: freeze); "
                    "one that has its --memory-max may run out of it first\n");
}

static void wrong_commands_say_what_there_is(void **state)
{
    BerthdTest *test = *state;
    static const struct {
        const char *arguments[4];
        const char *err;
    } cases[] = {
        {{NULL}, "Usage: berth"},
        {{"help", "frobnicate"}, "there is no command \"frobnicate\""},
        {{"help", "submit", "x"}, "\"x\" is one argument too many"},
        {{"frobnicate"}, "there is no command \"frobnicate\""},
        {{"node"}, "Usage: berth node COMMAND [OPTIONS] [ARGUMENTS]\n\nCommands:\n  node ls "},
        {{"image", "list"},
         "\"image list\"; did you mean \"berth image ls\"? (see berth image --help)\n"},
        {{"submit", "-J", "x"}, "Unknown option -J; did you mean --name?"},
        {{"image", "frobnicate"}, "there is no command \"image frobnicate\"; there are:\n"},
        {{"--frobnicate", "ls"}, "unknown option --frobnicate"},
        {{"--socket"}, "--socket wants the path"},
        {{"--socket=", "ls"}, "--socket wants the path"},
        {{"version", "x"}, "one argument too many"},
        {{"sumbit", "x.sh"}, "\"sumbit\"; did you mean \"berth submit\"? (see berth --help)\n"},
        {{"squeue"}, "there is no command \"squeue\"; did you mean \"berth ls\"?"},
        {{"ls", "--al"}, "Unknown option --al; did you mean --all? (see berth ls --help)\n"},
        {{"submit", "--mem=4G", "x"}, "Unknown option --mem=4G; did you mean --memory?"},
        {{"--sokcet=x", "ls"}, "--sokcet=x before the command; did you mean --socket?"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(CliProcess) cli =
            cli_start(berthd_fixture_socket(test->berthd), cases[i].arguments, NULL);
        assert_cli_status(cli, 2);
        assert_contains(cli_err(cli), cases[i].err);
    }
}

static void manual_has_every_verb_and_no_warnings(void **state)
{
    BerthdTest *test = *state;
    const char *top = g_getenv("top_srcdir");
    g_autofree char *man = g_find_program_in_path("man");
    if (!man || !top) {
        skip();
    }
    g_autofree char *script = g_strdup_printf(
        "MANWIDTH=100 MANPAGER=cat man --warnings -E UTF-8 -l '%s/doc/berth.1'", top);
    g_autofree char *text = cli_output_of(CLI_SHELL(test->berthd, script));
    gsize n_commands = 0;
    const BerthCommand *commands = berth_commands(&n_commands);
    for (gsize i = 0; i < n_commands; i++) {
        g_autofree char *verb = g_strconcat("berth ", commands[i].name, NULL);
        assert_contains(text, verb);
    }
}

static void completion_knows_verbs_options_and_names(void **state)
{
    BerthdTest *test = *state;
    const char *top = g_getenv("top_srcdir");
    g_autofree char *bash = g_find_program_in_path("bash");
    if (!bash || !top) {
        skip();
    }
    /* A slow machine is not what this looks for. */
    static const char *const patient[] = {"BERTH_COMPLETION_TIMEOUT=60", NULL};
    Berth__JobSpec spec = berthd_fixture_spec();
    Berth__JobArray array = BERTH__JOB_ARRAY__INIT;
    Berth__IndexRange range = BERTH__INDEX_RANGE__INIT, *ranges[] = {&range};
    range.last = 9;
    array.tasks = ranges;
    array.n_tasks = 1;
    spec.array = &array;
    spec.hold = TRUE;
    guint64 job = berthd_fixture_submit(test->berthd, &spec);
    g_autofree char *text = cli_job(job);
    g_autofree char *cancels = g_strconcat(text, " --reason", NULL); /* without its indices */
    const struct {
        const char *words;
        const char *expected;
    } cases[] = {
        {"im", "image"},
        {"node ''", "ls show cordon uncordon drain undrain down up exec roll --help"},
        {"node drain n", "n1"},
        {"node drain n1,n", "n1,n1"},
        {"node drain --p", "--plan"},
        {"node cordon -r n", ""},
        {"image sh", "show"},
        {"image show ti", "tiny"},
        {"submit --im", "--image"},
        {"submit --image = ti", "tiny"},
        {"run -w n", "n1"},
        {"run -w n1,n", "n1,n1"},
        {"help ''", "submit bulk run ls"},
        {"help im", "image"},
        {"ba", "backup"},
        {"backup --j", "--json"},
        {"backup berthd.co", "berthd.conf"},
        {"help node ''", "ls show"},
        {"help image sh", "show"},
        {"help node ls ''", ""},
        {"ls --state PEN", "PENDING"},
        {"events --f", "--follow"},
        {"cancel ''", cancels},
        {"ls --ta", "--tasks"},
        {"cancel --rea", "--reason"},
        {"freeze -r ''", ""},
        {"checkpoint rm --rea", "--reason"},
        {"logs -o --f", "--follow"},
        {"logs --q", "--quiet"},
        {"submit berth.conf berthd.co", "berthd.conf"},
        {"--socket /nowhere image show ti", ""},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *script = g_strdup_printf("source '%s/cli/berth.bash'\n"
                                                  "COMP_WORDS=(berth %s)\n"
                                                  "COMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n"
                                                  "_berth \"$BERTH\"\n"
                                                  "printf '%%s' \"${COMPREPLY[*]}\"\n",
                                                  top, cases[i].words);
        g_autofree char *reply = cli_output_of(
            cli_start_program(berthd_fixture_socket(test->berthd),
                              (const char *const[]){"bash", "-c", script, NULL}, patient));
        if (!g_str_has_prefix(reply, cases[i].expected) ||
            (*cases[i].expected == '\0' && *reply != '\0')) {
            fail_msg("\"berth %s\" gives \"%s\"", cases[i].words, reply);
        }
    }
    g_autofree char *cancelled = cli_output_of(CLI(test->berthd, "cancel", text));
}

static int setup(void **state)
{
    return berthd_test_setup_with(state, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help_of_every_verb_is_there),
        cmocka_unit_test(help_of_submit_says_what_ceilings_are_for),
        cmocka_unit_test(wrong_commands_say_what_there_is),
        cmocka_unit_test(manual_has_every_verb_and_no_warnings),
        cmocka_unit_test(completion_knows_verbs_options_and_names),
    };
    return cmocka_run_group_tests(tests, setup, berthd_test_teardown);
}
