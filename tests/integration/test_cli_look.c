/* SPDX-License-Identifier: Apache-2.0 */
/* `berth top`, `berth why` and `berth extend`, with a real daemon and a node that is fake. */
#include "tests/lib/berthd_test.h"
#include "tests/lib/cli_process.h"
#include "tests/lib/cli_terminal.h"

#include "scheduler/daemon/pb.h"

#include <signal.h>

#define NOBODY 65534u

/* It loses half of its time for want of memory, of which next to nothing is left. */
static const Berth__Usage stalled = {.base = PROTOBUF_C_MESSAGE_INIT(&berth__usage__descriptor),
                                     .cpu_usec = 1,
                                     .memory_total_mib = 64,
                                     .memory_available_mib = 1,
                                     .psi_memory_some = 5000};

static int setup(void **state)
{
    int status = berthd_test_setup(state);
    ((BerthdTest *)*state)->plan = (FakePlan){.runs_on = TRUE};
    return status;
}

static guint64 run_job(BerthdTest *test, const Berth__JobSpec *spec)
{
    guint64 job = berthd_fixture_submit(test->berthd, spec);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    return job;
}

/* All vCPUs of n1. */
static guint64 run_wide_job(BerthdTest *test)
{
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.vcpus = 64;
    spec.name = (char *)"wide";
    return run_job(test, &spec);
}

/* --- top ---------------------------------------------------------------------------------------- */

static void top_without_a_terminal_shows_all_once(void **state)
{
    BerthdTest *test = *state;
    run_wide_job(test);
    berthd_fixture_submit_plain(test->berthd); /* waits */
    g_autofree char *shown = cli_output_of(CLI(test->berthd, "top"));
    assert_contains(shown, "  1 of 1 node up, 1 guest (0 in slack, 0 moving), 1 job waits\n");
    assert_contains(shown, "vCPUs   64: 64 reserved, ");
    assert_contains(shown, "\nn1    up        64    64");
    assert_contains(shown, "  1  root  wide  n1    backed     64");
    g_autofree char *json = cli_output_of(CLI(test->berthd, "top", "--json"));
    assert_contains(json, "\"guestsTotal\":1");
    assert_contains(json, "\"vcpusReserved\":64");
    assert_true(g_str_has_suffix(json, "}\n"));
    g_autofree char *others = cli_output_of(CLI(test->berthd, "top", "--user", "nobody"));
    assert_contains(others, "1 of 1 node up, 0 guests");
    g_autofree char *of_root = cli_output_of(CLI(test->berthd, "top", "--user", "root"));
    assert_contains(of_root, "1 of 1 node up, 1 guest (0 in slack");
    assert_contains(of_root, "vCPUs   64: 64 reserved, ");
    g_autofree char *of_node = cli_output_of(CLI(test->berthd, "top", "--node", "n1"));
    assert_contains(of_node, "1 of 1 node up, 1 guest (0 in slack");
    g_autoptr(CliProcess) nowhere = CLI(test->berthd, "top", "--node", "n9", "--once");
    assert_cli_status(nowhere, 1);
    assert_contains(cli_err(nowhere), "there is no node \"n9\"; berth node ls");
    g_autoptr(CliProcess) nobody = CLI(test->berthd, "top", "--user", "no-such-user");
    assert_cli_status(nobody, 1);
    assert_contains(cli_err(nobody), "there is no user \"no-such-user\"");
    assert_string_equal(cli_out(nobody), "");
}

/* berth top says how much of its time a guest has no CPU. */
static gboolean tells_of_starvation(BerthdTest *test)
{
    g_autofree char *shown = cli_output_of(CLI(test->berthd, "top", "--json"));
    return g_regex_match_simple("\"starvedPermille\":[1-9]", shown, 0, 0);
}

static void top_of_who_stands_still_says_that_it_lacks_nothing(void **state)
{
    Berth__Usage starved = BERTH__USAGE__INIT;
    BerthdTest *test = *state;
    starved.cpu_usec = 1;
    starved.memory_total_mib = starved.memory_available_mib = 64;
    test->plan.usage = &starved;
    g_autofree char *job = g_strdup_printf("%" G_GUINT64_FORMAT, run_wide_job(test));
    run_until((starved.starved_usec += 1000 * (guint64)G_USEC_PER_SEC,
               fake_agent_report(test->agent), tells_of_starvation(test)));
    g_free(cli_output_of(CLI(test->berthd, "freeze", job)));
    assert_false(tells_of_starvation(test));
}

/* More than one page of them; each once. */
static void top_once_shows_all_guests_of_many(void **state)
{
    BerthdTest *test = *state;
    Berth__JobSpec spec = berthd_fixture_spec();
    guint n = 0;
    for (guint i = 0; i < 60; i++)
        berthd_fixture_submit(test->berthd, &spec);
    run_until(fake_agent_n_guests(test->agent) == 60);
    g_autofree char *shown = cli_output_of(CLI(test->berthd, "top", "--sort", "name"));
    g_auto(GStrv) lines = g_strsplit(shown, "\n", -1);
    for (char **line = lines; *line != NULL; line++)
        if (strstr(*line, " root ") != NULL)
            assert_int_equal(g_ascii_strtoull(g_strchug(*line), NULL, 10), ++n);
    assert_int_equal(n, 60);
}

static void top_refuses_what_it_cannot_do(void **state)
{
    static const struct {
        const char *words[4];
        const char *why;
    } cases[] = {
        {{"top", "--sort", "size"}, "\"size\" is none of cpu, memory"},
        {{"top", "--interval", "0.1"}, "from 0.5 to 3600 seconds"},
        {{"top", "--interval", "nan"}, "from 0.5 to 3600 seconds"},
        {{"top", "n1"}, "one argument too many"},
    };
    BerthdTest *test = *state;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(CliProcess) cli =
            cli_start(berthd_fixture_socket(test->berthd), cases[i].words, NULL);
        assert_cli_status(cli, 2);
        assert_contains(cli_err(cli), cases[i].why);
    }
}

/* It asks every INTERVAL seconds. */
static CliTerminal on_terminal_every(BerthdTest *test, const char *interval)
{
    g_autofree char *words = g_strconcat("top --interval ", interval, NULL);
    return cli_terminal_start(berthd_fixture_socket(test->berthd), words);
}

static CliTerminal on_terminal(BerthdTest *test)
{
    return on_terminal_every(test, "0.5");
}

static void top_on_a_terminal_follows_until_q(void **state)
{
    BerthdTest *test = *state;
    CliTerminal terminal = on_terminal(test);
    run_until(strstr(cli_terminal_screen(&terminal), "0 guests") != NULL);
    assert_contains(cli_out(terminal.cli), "\033[?1049h");
    run_wide_job(test);
    run_until(strstr(cli_terminal_screen(&terminal), "wide") != NULL);
    assert_contains(cli_terminal_screen(&terminal), "by cpu; keys:");
    cli_terminal_type(&terminal, "p");
    run_until(strstr(cli_terminal_screen(&terminal), "by pressure; keys:") != NULL);
    cli_terminal_type(&terminal, "\033[B\033[Aq"); /* in one piece */
    cli_terminal_assert_ended(&terminal, "status 0");
    cli_terminal_clear(&terminal);
}

/* More than a screen has lines; the last page is as full as the first. */
static void top_on_a_terminal_pages_through_the_nodes(void **state)
{
    BerthdTest *test = *state;
    for (guint i = 11; i <= 50; i++) {
        g_autofree char *name = g_strdup_printf("n%u", i);
        berthd_fixture_add_agent(test->berthd, name, NULL, NULL);
    }
    CliTerminal terminal = on_terminal(test);
    run_until(strstr(cli_terminal_screen(&terminal), "n11") != NULL);
    assert_null(strstr(cli_terminal_screen(&terminal), "n50"));
    cli_terminal_type(&terminal, ">>>");
    run_until(strstr(cli_terminal_screen(&terminal), "n50") != NULL);
    assert_contains(cli_terminal_screen(&terminal), "n40");
    assert_null(strstr(cli_terminal_screen(&terminal), "n11"));
    cli_terminal_type(&terminal, "<<<");
    run_until(strstr(cli_terminal_screen(&terminal), "n11") != NULL);
    cli_terminal_type(&terminal, "q");
    cli_terminal_assert_ended(&terminal, "status 0");
    cli_terminal_clear(&terminal);
}

/* It says so, keeps what it has, and goes on. */
static void top_on_a_terminal_outlives_the_daemon(void **state)
{
    BerthdTest *test = *state;
    run_wide_job(test);
    CliTerminal terminal = on_terminal(test);
    run_until(strstr(cli_terminal_screen(&terminal), "wide") != NULL);
    berthd_fixture_kill(test->berthd);
    run_until(strstr(cli_terminal_screen(&terminal), "trying again") != NULL);
    assert_contains(cli_terminal_screen(&terminal), "wide");
    berthd_fixture_restart(test->berthd);
    run_until(strstr(cli_terminal_screen(&terminal), "keys:") != NULL);
    cli_terminal_type(&terminal, "q");
    cli_terminal_assert_ended(&terminal, "status 0");
    cli_terminal_clear(&terminal);
}

/* Another question is under way when this returns: berthd does not answer any more. */
static void stop_answering(BerthdTest *test)
{
    gint64 end_usec = g_get_monotonic_time() + 5500 * 1000; /* more than it ever waits to ask */
    berthd_fixture_signal(test->berthd, SIGSTOP);
    run_until(g_get_monotonic_time() > end_usec);
}

/* The answer that comes then is of before. */
static void top_asks_again_for_what_is_pressed_while_it_asks(void **state)
{
    BerthdTest *test = *state;
    CliTerminal terminal = on_terminal_every(test, "3600");
    run_until(strstr(cli_terminal_screen(&terminal), "keys:") != NULL);
    berthd_fixture_signal(test->berthd, SIGSTOP);
    cli_terminal_type(&terminal, "m");
    stop_answering(test);
    guint before = cli_terminal_n_screens(&terminal);
    cli_terminal_type(&terminal, "p");
    stop_answering(test); /* it has seen that */
    berthd_fixture_signal(test->berthd, SIGCONT);
    run_until(cli_terminal_n_screens(&terminal) >= before + 2);
    run_until(strstr(cli_terminal_screen(&terminal), "by pressure; keys:") != NULL);
    cli_terminal_type(&terminal, "q");
    cli_terminal_assert_ended(&terminal, "status 0");
    cli_terminal_clear(&terminal);
}

static void top_that_is_left_while_it_asks_ends_well(void **state)
{
    BerthdTest *test = *state;
    CliTerminal terminal = on_terminal(test);
    run_until(strstr(cli_terminal_screen(&terminal), "keys:") != NULL);
    stop_answering(test);
    cli_terminal_type(&terminal, "q");
    cli_terminal_assert_ended(&terminal, "status 0");
    berthd_fixture_signal(test->berthd, SIGCONT);
    cli_terminal_clear(&terminal);
}

static void terminal_is_as_it_was_after(BerthdTest *test, int number, const char *status)
{
    CliTerminal terminal = on_terminal(test);
    run_until(strstr(cli_terminal_screen(&terminal), "keys:") != NULL);
    cli_terminal_signal(&terminal, number);
    cli_terminal_assert_ended(&terminal, status);
    cli_terminal_clear(&terminal);
}

static void top_that_is_ended_by_a_signal_leaves_the_terminal_as_it_was(void **state)
{
    terminal_is_as_it_was_after(*state, SIGTERM, "status 0");
    terminal_is_as_it_was_after(*state, SIGABRT, "status 134");
}

/* --- why ---------------------------------------------------------------------------------------- */

static void why_of_a_waiting_job_names_what_it_waits_for(void **state)
{
    BerthdTest *test = *state;
    guint64 runs = run_wide_job(test);
    guint64 first = berthd_fixture_submit_plain(test->berthd);
    guint64 second = berthd_fixture_submit_plain(test->berthd);
    assert_int_equal(runs, 1);
    g_autofree char *first_text = cli_job(first);
    g_autofree char *second_text = cli_job(second);
    g_autofree char *of_first = cli_output_of(CLI(test->berthd, "why", first_text));
    assert_contains(of_first, "Job 2 (test) of root: PENDING\n  It waits: no node has room for it");
    assert_contains(of_first,
                    "free on one of 1 node; of these n1 comes nearest, with 0 vCPUs and ");
    assert_contains(of_first, "\n  It is planned to start on n1 at ");
    assert_contains(of_first, "\n  By then job 1 leaves n1: ");
    assert_contains(of_first, "\nWhat happened:\n  20");
    assert_contains(of_first, "  submitted by root\n");
    g_autofree char *of_second = cli_output_of(CLI(test->berthd, "why", second_text));
    assert_contains(of_second, "\n  1 job is before it in the order: 2.\n");
    g_autofree char *json = cli_output_of(CLI(test->berthd, "why", "--json", second_text));
    assert_contains(json, "\"before\":[\"2\"]");
}

static void why_of_others_tells_how_they_came_there(void **state)
{
    BerthdTest *test = *state;
    guint64 job = run_wide_job(test);
    g_autofree char *text = cli_job(job);
    g_autofree char *runs = cli_output_of(CLI(test->berthd, "why", text));
    assert_contains(runs, "  It runs on n1, and all that it reserves is kept for it there.\n");
    assert_contains(runs, "  started on node n1; backed: all that it reserves is kept for it; 0 "
                          "vCPUs and ");
    g_autofree char *nothing = cli_output_of(CLI(test->berthd, "cancel", text));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__CANCELLED);
    g_autofree char *ended = cli_output_of(CLI(test->berthd, "why", text));
    assert_contains(ended, "  It ended as CANCELLED at 20");
    assert_contains(ended, "  to be ended, says root\n");
    assert_contains(ended, "  ended on node n1: its user cancelled it\n");
    g_autoptr(CliProcess) unknown = CLI(test->berthd, "why", "99");
    assert_cli_status(unknown, 1);
    assert_contains(cli_err(unknown), "99");
}

#define SECRET "secret"

/* Every word of it that is its owner's has SECRET in it: what it runs, with what, where its output goes, and why things were asked
 * of it. */
static guint64 run_secret_job(BerthdTest *test)
{
    g_autofree char *number = cli_output_of(CLI(
        test->berthd, "submit", "--name", "public", "--env", "TOKEN=" SECRET, "--chdir", "/" SECRET,
        "--output", SECRET "-output", "--checkpoint-keep", "1", "--", "true", SECRET "-argument"));
    g_strchomp(number);
    guint64 job = g_ascii_strtoull(number, NULL, 10);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    g_autofree char *longer = cli_output_of(
        CLI(test->berthd, "extend", "--by", "30m", "--reason", SECRET "-why", number));
    g_autoptr(CliProcess) refused =
        CLI(test->berthd, "release", "--reason", SECRET "-refused", number);
    assert_cli_status(refused, 1);
    return job;
}

/* What `berth WORDS JOB` says to its owner, or to somebody else. JOB is NULL where none is named. (transfer full) */
static char *told_of(BerthdTest *test, const char *const *words, const char *job, gboolean is_owner)
{
    const char *socket = berthd_fixture_socket(test->berthd);
    g_autoptr(GStrvBuilder) builder = g_strv_builder_new();
    g_strv_builder_addv(builder, (const char **)words);
    if (job != NULL)
        g_strv_builder_add(builder, job);
    g_auto(GStrv) all = g_strv_builder_end(builder);
    const char *const *arguments = (const char *const *)all;
    return cli_output_of(is_owner ? cli_start(socket, arguments, NULL)
                                  : cli_start_as(socket, NOBODY, arguments));
}

/* Somebody else's job: its number, name, user and state, and no words of its owner's. */
static void others_are_told_nothing_private(void **state)
{
    static const struct {
        const char *words[5];
        gboolean says_secrets; /* to the owner */
        const char *public;
        gboolean is_of_all; /* no job is named */
    } cases[] = {
        {{"why"}, TRUE, "It runs on n1"},
        {{"why", "--json"}, FALSE, "RUNNING"},
        {{"show"}, TRUE, "public"},
        {{"show", "--json"}, TRUE, "public"},
        {{"ls"}, FALSE, "public"},
        {{"ls", "--json"}, FALSE, "public"},
        {{"events"}, TRUE, "guest-running on n1"},
        {{"events", "--json"}, TRUE, "GUEST_RUNNING"},
        {{"top", "--json", "--node", "n1"}, FALSE, "public", TRUE},
    };
    BerthdTest *test = *state;
    g_autofree char *job = cli_job(run_secret_job(test));
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const char *named = cases[i].is_of_all ? NULL : job;
        g_autofree char *to_owner = told_of(test, cases[i].words, named, TRUE);
        g_autofree char *to_others = told_of(test, cases[i].words, named, FALSE);
        if ((strstr(to_owner, SECRET) != NULL) != cases[i].says_secrets)
            fail_msg("%s %s: its owner reads \"%s\"", cases[i].words[0],
                     cases[i].words[1] != NULL ? cases[i].words[1] : "", to_owner);
        assert_contains(to_others, cases[i].public);
        if (strstr(to_others, SECRET) != NULL)
            fail_msg("%s: others read \"%s\"", cases[i].words[0], to_others);
    }
}

/* --- a job that is short of memory -------------------------------------------------------------- */

static guint count(BerthdTest *test, Berth__Event__Kind kind)
{
    const GPtrArray *events = berthd_fixture_events(test->berthd);
    guint n = 0;
    for (guint i = 0; i < events->len; i++)
        n += ((const Berth__Event *)g_ptr_array_index(events, i))->kind == kind;
    return n;
}

static void job_that_is_short_and_goes_on_is_told_of_once(void **state)
{
    BerthdTest *test = *state;
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.on_limit = BERTH__ON_LIMIT__ON_LIMIT_GROW;
    test->plan.usage = &stalled;
    guint64 job = run_job(test, &spec);
    g_autofree char *text = cli_job(job);
    run_until((fake_agent_report(test->agent), count(test, BERTH__EVENT__KIND__GUEST_SHORT) > 0));
    g_autofree char *shown = cli_output_of(CLI(test->berthd, "show", text));
    assert_contains(shown, "Lacks memory     since 20");
    assert_contains(shown, ", can get no more now, and is slow\n");
    g_autofree char *why = cli_output_of(CLI(test->berthd, "why", text));
    assert_contains(why, "its 64M of memory are too little, and it can get no more now "
                         "(--memory-max).\n");
    assert_contains(why, "  short of memory: its 64M of memory are too little, and all that it may "
                         "have (--memory-max): it goes on, slowly\n");
    g_autofree char *top = cli_output_of(CLI(test->berthd, "top"));
    assert_contains(top, "mem 50%, short");
    for (guint i = 0; i < 20; i++)
        fake_agent_report(test->agent);
    g_autofree char *again = cli_output_of(CLI(test->berthd, "events", text));
    assert_contains(again, "guest-short on n1: at-limit: its 64M");
    assert_int_equal(count(test, BERTH__EVENT__KIND__GUEST_SHORT), 1);
}

/* How much memory it has is its owner's business. */
static void processes_that_its_kernel_ended_are_told_of(void **state)
{
    static const Berth__Usage killed = {.base = PROTOBUF_C_MESSAGE_INIT(&berth__usage__descriptor),
                                        .cpu_usec = 1,
                                        .memory_total_mib = 64,
                                        .memory_available_mib = 32,
                                        .oom_kills = 3};
    BerthdTest *test = *state;
    Berth__JobSpec spec = berthd_fixture_spec();
    test->plan.usage = &killed;
    guint64 job = run_job(test, &spec);
    g_autofree char *text = cli_job(job);
    run_until(
        (fake_agent_report(test->agent), count(test, BERTH__EVENT__KIND__GUEST_OOM_KILL) > 0));
    g_autofree char *events = cli_output_of(CLI(test->berthd, "events", text));
    assert_contains(events, "guest-oom-kill on n1: memory-limit: its guest's kernel ended 3 "
                            "processes, as its 64M of memory are too little");
    g_autofree char *why = cli_output_of(CLI(test->berthd, "why", text));
    assert_contains(why, "  out of memory: its guest's kernel ended 3 processes, as its 64M of "
                         "memory are too little, and all that it may have: submit it with more "
                         "--memory, or with --memory-max, ");
    g_autofree char *others = cli_output_of(cli_start_as(
        berthd_fixture_socket(test->berthd), NOBODY, (const char *const[]){"why", text, NULL}));
    assert_contains(others, "  out of memory\n");
}

/* --- extend ------------------------------------------------------------------------------------- */

static void extend_gives_jobs_more_time(void **state)
{
    BerthdTest *test = *state;
    guint64 runs = run_wide_job(test);
    guint64 waits = berthd_fixture_submit_plain(test->berthd);
    g_autofree char *first = cli_job(runs);
    g_autofree char *second = cli_job(waits);
    g_autofree char *by = cli_output_of(CLI(test->berthd, "extend", "--by", "30m", first, second));
    assert_string_equal(by, "job 1 may run for 01:30:00\njob 2 may run for 01:30:00\n");
    g_autofree char *in_all = cli_output_of(CLI(test->berthd, "extend", "-t", "2h", second));
    assert_string_equal(in_all, "job 2 may run for 02:00:00\n");
    g_autofree char *json = cli_output_of(CLI(test->berthd, "extend", "-b", "1", "--json", second));
    assert_contains(json, "\"timeLimitSec\":\"7201\"");
    g_autofree char *events = cli_output_of(CLI(test->berthd, "events", second));
    assert_contains(events, "job-extend-requested by root: 02:00:00, before 01:30:00\n");
    g_autofree char *why = cli_output_of(CLI(test->berthd, "why", second));
    assert_contains(why, "  to have a time limit of 02:00:00, before 01:30:00, says root\n");
}

static void extend_one_that_there_is_not_leaves_the_others(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *job = cli_job(run_wide_job(test));
    g_autoptr(CliProcess) cli = CLI(test->berthd, "extend", "--by", "1h", "99", job);
    assert_cli_status(cli, 1);
    assert_string_equal(cli_out(cli), "job 1 may run for 02:00:00\n");
    assert_contains(cli_err(cli), "99");
}

static void extend_says_what_is_wrong(void **state)
{
    static const struct {
        const char *words[7];
        int status;
        const char *why;
    } cases[] = {
        {{"extend", "1"}, 2, "say --time TIME or --by TIME, one of them"},
        {{"extend", "-t", "1h", "-b", "1h", "1"}, 2, "say --time TIME or --by TIME, one of them"},
        {{"extend", "--by", "0", "1"}, 2, "--by: \"0\" is too little"},
        {{"extend", "--time", "soon", "1"}, 2, "--time: "},
        {{"extend", "--by", "1h"}, 2, "job"},
    };
    BerthdTest *test = *state;
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(CliProcess) cli =
            cli_start(berthd_fixture_socket(test->berthd), cases[i].words, NULL);
        assert_cli_status(cli, cases[i].status);
        assert_contains(cli_err(cli), cases[i].why);
        assert_string_equal(cli_out(cli), "");
    }
}

/* While it runs, others are planned behind its limit. */
static void extend_of_what_runs_is_an_operators(void **state)
{
    BerthdTest *test = *state;
    const char *socket = berthd_fixture_socket(test->berthd);
    g_autofree char *number = cli_output_of(
        cli_start_as(socket, NOBODY, (const char *const[]){"submit", "--", "true", NULL}));
    g_strchomp(number);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING,
                              g_ascii_strtoull(number, NULL, 10));
    g_autoptr(CliProcess) cli =
        cli_start_as(socket, NOBODY, (const char *const[]){"extend", "-b", "1h", number, NULL});
    assert_cli_status(cli, 1);
    assert_contains(cli_err(cli), "only an operator may put that off");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, berthd_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(top_without_a_terminal_shows_all_once),
        TEST(top_of_who_stands_still_says_that_it_lacks_nothing),
        TEST(top_once_shows_all_guests_of_many),
        TEST(top_refuses_what_it_cannot_do),
        TEST(top_on_a_terminal_follows_until_q),
        TEST(top_on_a_terminal_pages_through_the_nodes),
        TEST(top_on_a_terminal_outlives_the_daemon),
        TEST(top_asks_again_for_what_is_pressed_while_it_asks),
        TEST(top_that_is_left_while_it_asks_ends_well),
        TEST(top_that_is_ended_by_a_signal_leaves_the_terminal_as_it_was),
        TEST(why_of_a_waiting_job_names_what_it_waits_for),
        TEST(why_of_others_tells_how_they_came_there),
        TEST(others_are_told_nothing_private),
        TEST(job_that_is_short_and_goes_on_is_told_of_once),
        TEST(processes_that_its_kernel_ended_are_told_of),
        TEST(extend_gives_jobs_more_time),
        TEST(extend_one_that_there_is_not_leaves_the_others),
        TEST(extend_says_what_is_wrong),
        TEST(extend_of_what_runs_is_an_operators),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
