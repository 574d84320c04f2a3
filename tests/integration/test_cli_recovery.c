/* SPDX-License-Identifier: Apache-2.0 */
/* `berth` while berthd is killed and comes back: what waits goes on, and no byte of output is lost
 * or comes twice. */
#include "tests/lib/berthd_test.h"
#include "tests/lib/cli_process.h"

#include <gio/gio.h>
#include <gio/gunixsocketaddress.h>
#include <glib/gstdio.h>
#include <signal.h>

static void restart(BerthdTest *test)
{
    berthd_fixture_restart(test->berthd);
    run_until(fake_agent_is_joined(test->agent));
}

static gboolean file_holds(const char *path, const char *expected)
{
    g_autofree char *content = NULL;
    return g_file_get_contents(path, &content, NULL, NULL) && g_str_equal(content, expected);
}

/* What came of the job, without what berth says itself: that it waits for a daemon which is away for
 * long, as it may be on a slow machine. (transfer full) */
static char *without_notices(const char *text)
{
    g_autoptr(GString) kept = g_string_new(NULL);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++) {
        if (**line && !g_str_has_prefix(*line, "berth ")) {
            g_string_append_printf(kept, "%s\n", *line);
        }
    }
    return g_string_free(g_steal_pointer(&kept), FALSE);
}

/* Two readers of one job, through a kill that both see while output comes before it, while berthd
 * is away, and after it. */
static void run_and_logs_survive_kill(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE, .out = "one\n", .err = "uno\n"};
    g_autoptr(CliProcess) run = CLI(test->berthd, "run", "--", "true");
    run_until(g_str_equal(cli_out(run), "one\n"));
    guint64 job = berthd_test_newest_job(test);
    g_autofree char *text = cli_job(job);
    g_autoptr(CliProcess) logs = CLI(test->berthd, "logs", "--follow", text);
    run_until(g_str_equal(cli_out(logs), "one\n") && g_str_equal(cli_err(logs), "uno\n"));
    fake_agent_write(test->agent, job, FALSE, "two\n");
    run_until(g_str_equal(cli_out(run), "one\ntwo\n"));
    berthd_fixture_kill(test->berthd);
    fake_agent_write(test->agent, job, FALSE, "three\n");
    fake_agent_write(test->agent, job, TRUE, "due\n");
    restart(test);
    fake_agent_write(test->agent, job, FALSE, "four\n");
    run_until(strstr(cli_out(run), "four\n") && strstr(cli_out(logs), "four\n"));
    berthd_fixture_kill(test->berthd);
    restart(test);
    fake_agent_write(test->agent, job, FALSE, "five\n");
    assert_true(fake_agent_end(test->agent, job, 7));
    assert_cli_status(run, 7);
    assert_cli_status(logs, 0);
    assert_string_equal(cli_out(run), "one\ntwo\nthree\nfour\nfive\n");
    assert_string_equal(cli_out(logs), "one\ntwo\nthree\nfour\nfive\n");
    g_autofree char *logs_err = without_notices(cli_err(logs));
    g_autofree char *run_err = without_notices(cli_err(run));
    assert_string_equal(logs_err, "uno\ndue\n");
    assert_string_equal(run_err, "uno\ndue\n");
}

static void run_that_ends_while_berthd_is_away_gets_its_end(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE, .out = "one\n"};
    g_autoptr(CliProcess) run = CLI(test->berthd, "run", "--", "true");
    run_until(g_str_equal(cli_out(run), "one\n"));
    guint64 job = berthd_test_newest_job(test);
    berthd_fixture_kill(test->berthd);
    fake_agent_write(test->agent, job, FALSE, "the end\n");
    assert_true(fake_agent_end(test->agent, job, 5));
    restart(test);
    assert_cli_status(run, 5);
    assert_string_equal(cli_out(run), "one\nthe end\n");
}

static void wait_survives_kill(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 first = berthd_fixture_submit_plain(test->berthd);
    guint64 second = berthd_fixture_submit_plain(test->berthd);
    g_autofree char *first_text = cli_job(first);
    g_autofree char *second_text = cli_job(second);
    berthd_fixture_wait_state(test->berthd, second, BERTH__JOB_STATE__RUNNING);
    run_until(fake_agent_runs(test->agent, first) && fake_agent_runs(test->agent, second));
    g_autoptr(CliProcess) wait = CLI(test->berthd, "wait", first_text, second_text);
    assert_true(fake_agent_end(test->agent, second, 0));
    g_autofree char *after_one = g_strdup_printf("%s COMPLETED\n", second_text);
    run_until(g_str_equal(cli_out(wait), after_one));
    berthd_fixture_kill(test->berthd);
    assert_true(fake_agent_end(test->agent, first, 9));
    restart(test);
    assert_cli_status(wait, 9);
    g_autofree char *after_both = g_strdup_printf("%s%s FAILED\n", after_one, first_text);
    assert_string_equal(cli_out(wait), after_both);
}

static void run_of_job_that_is_started_again_begins_anew(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE, .out = "the first life\n"};
    g_autoptr(CliProcess) run = CLI(test->berthd, "run", "--", "true");
    g_autoptr(CliProcess) file = CLI(test->berthd, "run", "--output", "file", "--", "true");
    g_autofree char *path = g_build_filename(berthd_fixture_dir(test->berthd), "file", NULL);
    run_until(g_str_equal(cli_out(run), "the first life\n"));
    run_until(file_holds(path, "the first life\n"));
    test->plan = (FakePlan){.out = "second\n"};
    fake_agent_crash(test->agent);
    fake_agent_drop(test->agent);
    assert_cli_status(run, 0);
    assert_cli_status(file, 0);
    assert_string_equal(cli_out(run), "the first life\nsecond\n");
    assert_contains(cli_err(run), "was started again");
    assert_true(file_holds(path, "second\n"));
}

/* The offset in the log of the first life must not be applied to that of the second. */
static void run_of_job_started_again_while_away_loses_nothing(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE, .out = "long output of the first life\n"};
    g_autoptr(CliProcess) run = CLI(test->berthd, "run", "--", "true");
    run_until(strstr(cli_out(run), "first life\n"));
    cli_signal(run, SIGSTOP);
    test->plan = (FakePlan){.out = "second\n"};
    guint64 job = berthd_test_newest_job(test);
    berthd_fixture_kill(test->berthd);
    fake_agent_crash(test->agent);
    restart(test);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    cli_signal(run, SIGCONT);
    assert_cli_status(run, 0);
    assert_string_equal(cli_out(run), "long output of the first life\nsecond\n");
}

static void verbs_without_berthd_say_so_at_once(void **state)
{
    BerthdTest *test = *state;
    static const char *const cases[][5] = {
        {"ls", NULL},
        {"show", "1", NULL},
        {"logs", "1", NULL},
        {"logs", "-f", "1", NULL},
        {"wait", "1", NULL},
        {"cancel", "1", NULL},
        {"submit", "--", "true", NULL},
        {"run", "--", "true", NULL},
        {"node", "ls", NULL},
        {"image", "ls", NULL},
    };
    berthd_fixture_kill(test->berthd);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(CliProcess) cli = cli_start(berthd_fixture_socket(test->berthd), cases[i], NULL);
        gboolean is_125 = strcmp(cases[i][0], "run") == 0 || strcmp(cases[i][0], "wait") == 0;
        assert_cli_status(cli, is_125 ? 125 : 1);
        assert_contains(cli_err(cli), "is it running?");
        assert_string_equal(cli_out(cli), "");
    }
    restart(test);
}

/* A socket at DIR "/labs/" NAME at which somebody listens. */
static GSocket *make_lab(const char *dir, const char *name)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *lab = g_build_filename(dir, "labs", name, NULL);
    g_autofree char *path = g_build_filename(lab, "berthd.sock", NULL);
    assert_int_equal(g_mkdir_with_parents(lab, 0755), 0);
    g_autoptr(GSocketAddress) address = g_unix_socket_address_new(path);
    GSocket *socket = g_socket_new(G_SOCKET_FAMILY_UNIX, G_SOCKET_TYPE_STREAM, 0, &error);
    assert_no_error(error);
    assert_true(g_socket_bind(socket, address, FALSE, NULL) && g_socket_listen(socket, NULL));
    return socket;
}

/* What "ls" says where nothing listens at SOCKET. */
static void assert_advice(const char *dir, const char *socket, const char *expected)
{
    g_autofree char *variable = g_strdup_printf("BERTH_LAB_RUN=%s/labs", dir);
    g_autoptr(CliProcess) cli =
        cli_start(socket, (const char *const[]){"ls", NULL}, (const char *const[]){variable, NULL});
    assert_cli_status(cli, 1);
    if (!g_str_has_suffix(cli_err(cli), expected))
        fail_msg("%s does not end with %s", cli_err(cli), expected);
}

/* A second terminal, in which "berth-lab env" was forgotten; the daemons of two labs were killed. */
static void verbs_without_berthd_name_a_lab_that_there_is(void **state)
{
    BerthdTest *test = *state;
    const char *dir = berthd_fixture_dir(test->berthd);
    g_autofree char *nowhere = g_build_filename(dir, "nowhere", NULL);
    g_autofree char *dead = g_build_filename(dir, "labs", "b", "berthd.sock", NULL);
    g_autofree char *other =
        g_strdup_printf("Start it with \"systemctl start berthd\", or name another socket in "
                        "BERTH_SOCKET (there is a lab, at %s/labs/c/berthd.sock)\n",
                        dir);
    const char *own = "Start it with \"berth-lab start berthd --name b\", or the whole lab with "
                      "\"berth-lab up --name b\"\n";
    g_object_unref(make_lab(dir, "a"));
    g_object_unref(make_lab(dir, "b"));
    GSocket *alive = make_lab(dir, "c");
    assert_advice(dir, nowhere, other);
    assert_advice(dir, dead, own); /* another lab is somebody else's, as like as not */
    GSocket *second = make_lab(dir, "d");
    assert_advice(dir, nowhere, "in BERTH_SOCKET (there are 2 labs: berth-lab list)\n");
    g_object_unref(second);
    g_object_unref(alive);
    assert_advice(dir, nowhere, "or name another socket in BERTH_SOCKET\n");
    assert_advice(dir, dead, own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run_and_logs_survive_kill),
        cmocka_unit_test(run_that_ends_while_berthd_is_away_gets_its_end),
        cmocka_unit_test(wait_survives_kill),
        cmocka_unit_test(run_of_job_that_is_started_again_begins_anew),
        cmocka_unit_test(run_of_job_started_again_while_away_loses_nothing),
        cmocka_unit_test(verbs_without_berthd_say_so_at_once),
        cmocka_unit_test(verbs_without_berthd_name_a_lab_that_there_is),
    };
    return cmocka_run_group_tests(tests, berthd_test_setup, berthd_test_teardown);
}
