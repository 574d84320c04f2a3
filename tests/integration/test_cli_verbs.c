/* SPDX-License-Identifier: Apache-2.0 */
/* The other verbs of `berth`, as a user sees them: lists, records, logs, changes, nodes, images, and
 * what another user may not do. */
#include "config.h"

#include "tests/lib/berthd_test.h"
#include "tests/lib/cli_process.h"

#include <glib/gstdio.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <unistd.h>

#define NOBODY 65534u

static void discard(CliProcess *process)
{
    g_autofree char *output = cli_output_of(process);
}

/* A job that has ended in STATE. */
static guint64 ended_job(BerthdTest *test, FakePlan plan, Berth__JobState state)
{
    test->plan = plan;
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_state(test->berthd, job, state);
    return job;
}

static guint64 held_job(BerthdTest *test, const char *name)
{
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.hold = TRUE;
    spec.name = (char *)name;
    return berthd_fixture_submit(test->berthd, &spec);
}

/* A held array of 10. */
static guint64 held_array(BerthdTest *test)
{
    Berth__IndexRange range = BERTH__INDEX_RANGE__INIT;
    range.last = 9;
    range.step = 1;
    Berth__JobArray array = BERTH__JOB_ARRAY__INIT;
    array.tasks = (Berth__IndexRange *[]){&range};
    array.n_tasks = 1;
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.hold = TRUE;
    spec.array = &array;
    return berthd_fixture_submit(test->berthd, &spec);
}

/* --- reading ------------------------------------------------------------------------------------ */

static void ls_shows_what_was_asked_for(void **state)
{
    BerthdTest *test = *state;
    guint64 failed = ended_job(test, (FakePlan){.status = 1}, BERTH__JOB_STATE__FAILED);
    guint64 held = held_job(test, "kept back");
    g_autofree char *failed_text = cli_job(failed);
    g_autofree char *current = cli_output_of(CLI(test->berthd, "ls"));
    assert_contains(current, "kept back");
    assert_contains(current, "held-by-user");
    assert_null(strstr(current, "FAILED"));
    g_autofree char *named = cli_output_of(CLI(test->berthd, "ls", failed_text));
    assert_contains(named, "FAILED");
    assert_null(strstr(named, "kept back"));
    g_autofree char *by_state = cli_output_of(CLI(test->berthd, "ls", "-s", "failed,timeout"));
    assert_contains(by_state, "exit-status");
    assert_null(strstr(by_state, "kept back"));
    g_autofree char *held_text = cli_job(held);
    const char *const filtered[][7] = {
        {"ls", "-a", "-s", "failed"},
        {"ls", "-s", "failed", failed_text, held_text},
        {"ls", "-A", "-a", "-s", "failed", NULL},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(filtered); i++) {
        g_autofree char *listed =
            cli_output_of(cli_start(berthd_fixture_socket(test->berthd), filtered[i], NULL));
        assert_contains(listed, "FAILED");
        assert_null(strstr(listed, "kept back"));
    }
    g_autoptr(CliProcess) bad = CLI(test->berthd, "ls", "--state", "DONE");
    assert_cli_status(bad, 2);
    assert_contains(cli_err(bad), "there is no state \"DONE\"; there are PENDING");
    g_autoptr(CliProcess) nobody = CLI(test->berthd, "ls", "--user", "no-such-user");
    assert_cli_status(nobody, 1);
    discard(CLI(test->berthd, "cancel", held_text));
}

static void ls_many_pages_are_one_list(void **state)
{
    BerthdTest *test = *state;
    guint64 first = held_job(test, "page");
    guint64 last = first;
    while (last < first + 249) {
        last = held_job(test, "page");
    }
    g_autofree char *text = cli_output_of(CLI(test->berthd, "ls"));
    g_auto(GStrv) lines = g_strsplit(g_strchomp(text), "\n", -1);
    assert_int_equal(g_strv_length(lines), 1 + 250);
    g_autoptr(GString) command = g_string_new("\"$BERTH\" cancel");
    for (guint64 job = first; job <= last; job++) {
        g_string_append_printf(command, " %" G_GUINT64_FORMAT, job);
        g_autofree char *cell = g_strdup_printf("%" G_GUINT64_FORMAT "  page", job);
        assert_non_null(strstr(lines[1 + job - first], cell));
    }
    discard(CLI_SHELL(test->berthd, command->str));
}

static void tables_fit_the_terminal(void **state)
{
    BerthdTest *test = *state;
    guint64 held =
        held_job(test, "a job with a name that is longer than any terminal of 40 columns");
    static const guint widths[] = {40, 60, 80, 200};
    static const char *const verbs[][3] = {{"ls"}, {"node", "ls"}, {"image", "ls"}};
    for (gsize i = 0; i < G_N_ELEMENTS(widths) * G_N_ELEMENTS(verbs); i++) {
        guint width = widths[i / G_N_ELEMENTS(verbs)];
        g_autofree char *columns = g_strdup_printf("COLUMNS=%u", width);
        g_autofree char *text = cli_output_of(cli_start(berthd_fixture_socket(test->berthd),
                                                        verbs[i % G_N_ELEMENTS(verbs)],
                                                        (const char *const[]){columns, NULL}));
        g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
        assert_true(g_strv_length(lines) >= 2);
        for (char **line = lines; *line; line++) {
            if (g_utf8_strlen(*line, -1) > width) {
                fail_msg("more than %u columns: \"%s\"", width, *line);
            }
        }
        if (i % G_N_ELEMENTS(verbs) == 0) {
            assert_contains(lines[1], "PENDING");
            assert_true((strstr(lines[0], "LIMIT") != NULL) == (width >= 80));
        }
    }
    g_autofree char *held_text = cli_job(held);
    discard(CLI(test->berthd, "cancel", held_text));
}

static void show_says_all_of_a_job(void **state)
{
    BerthdTest *test = *state;
    guint64 job =
        ended_job(test, (FakePlan){.signal = SIGSEGV, .out = "12345"}, BERTH__JOB_STATE__FAILED);
    g_autofree char *text = cli_job(job);
    g_autofree char *shown = cli_output_of(CLI(test->berthd, "show", text));
    static const char *const expected[] = {
        "State            FAILED\n",
        "Image            tiny\n",
        "Command          true\n",
        "Ended by         signal 11 (",
        "Output           5 bytes, and 0 to stderr\n",
        "Node             n1\n",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(expected); i++) {
        assert_contains(shown, expected[i]);
    }
    assert_contains(shown, "Reservation      1 vCPU, ");
    g_autofree char *held = cli_output_of(
        CLI(test->berthd, "submit", "-H", "-o", "/tmp/%j.out", "--error", "/tmp/%%", "--", "x"));
    g_strchomp(held);
    g_autofree char *pending = cli_output_of(CLI(test->berthd, "show", held));
    g_autofree char *output = g_strdup_printf("Output file      /tmp/%s.out\n", held);
    assert_contains(pending, "State            PENDING (held)\n");
    assert_contains(pending, output);
    assert_contains(pending, "Error file       /tmp/%\n");
    discard(CLI(test->berthd, "cancel", held));
    g_autofree char *cancelled = cli_output_of(CLI(test->berthd, "show", held));
    assert_contains(cancelled, "State            CANCELLED\n");
    g_autoptr(CliProcess) none = CLI(test->berthd, "show", "999999");
    assert_cli_status(none, 1);
    assert_contains(cli_err(none), "no job 999999");
    g_autoptr(CliProcess) bad = CLI(test->berthd, "show", "0x1");
    assert_cli_status(bad, 2);
    assert_contains(cli_err(bad), "\"0x1\" is not a job");
}

static void show_tells_what_was_asked_of_a_job(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *job = cli_job(held_job(test, "held"));
    g_autofree char *before = cli_output_of(CLI(test->berthd, "show", job));
    assert_null(strstr(before, "What was asked of it"));
    discard(CLI(test->berthd, "extend", "--by", "1h", "--reason", "it is slow", job));
    discard(CLI(test->berthd, "cancel", "-r", "wrong data", job));
    g_autofree char *shown = cli_output_of(CLI(test->berthd, "show", job));
    assert_contains(shown, "\nWhat was asked of it, the latest last:\nWHEN ");
    assert_contains(shown, "  root  extend: 02:00:00, before 01:00:00  done     it is slow\n");
    assert_contains(shown, "  root  cancel                             done     wrong data\n");
    g_autofree char *json = cli_output_of(CLI(test->berthd, "show", "--json", job));
    assert_contains(json, "\"requests\":[{\"kind\":\"JOB_EXTEND_REQUESTED\"");
    assert_contains(json, "\"why\":\"wrong data\"");
    g_autofree char *listed = cli_output_of(CLI(test->berthd, "ls", "--json", job));
    assert_contains(listed, "\"requests\":[]");
}

/* It succeeded, but not all of it is where its user looks for it. */
static void show_completed_job_says_that_its_output_is_lost(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE, .out = "hi\n"};
    g_autofree char *submitted =
        cli_output_of(CLI_SHELL(test->berthd, "mkdir gone && \"$BERTH\" submit -o gone/out -- x"));
    guint64 job = g_ascii_strtoull(submitted, NULL, 10);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    discard(CLI_SHELL(test->berthd, "rmdir gone"));
    assert_true(fake_agent_end(test->agent, job, 0));
    g_autofree char *text = cli_job(job);
    g_autoptr(CliProcess) wait = CLI(test->berthd, "wait", text);
    assert_cli_status(wait, 0);
    assert_contains(cli_out(wait), " COMPLETED\n");
    g_autofree char *warning =
        g_strdup_printf("berth wait: job %s: its output was not copied: ", text);
    assert_true(g_str_has_prefix(cli_err(wait), warning));
    g_autofree char *shown = cli_output_of(CLI(test->berthd, "show", text));
    assert_contains(shown, "State            COMPLETED\n");
    assert_contains(shown, "Reason           its output was not copied: ");
    g_autofree char *path = g_build_filename(berthd_fixture_dir(test->berthd), "berthd.log", NULL);
    g_autofree char *log = NULL;
    assert_true(g_file_get_contents(path, &log, NULL, NULL));
    g_autofree char *logged = g_strdup_printf("warning: the output of job %s of ", text);
    assert_contains(log, logged);
}

/* What a guest sends must not play with the terminal of who looks at it. */
static void show_console_is_harmless(void **state)
{
    BerthdTest *test = *state;
    guint64 job = ended_job(test,
                            (FakePlan){.gone = BERTH__REASON__REASON_GUEST_CRASHED,
                                       .console_tail = "panic\x1b]0;owned\x07\nend"},
                            BERTH__JOB_STATE__FAILED);
    g_autofree char *text = cli_job(job);
    g_autofree char *shown = cli_output_of(CLI(test->berthd, "show", text));
    assert_contains(shown, "panic?]0;owned?\n");
    assert_null(strchr(shown, '\x1b'));
}

static void logs_gives_the_streams_apart_or_one(void **state)
{
    BerthdTest *test = *state;
    guint64 job =
        ended_job(test, (FakePlan){.out = "out\n", .err = "err\n"}, BERTH__JOB_STATE__COMPLETED);
    g_autofree char *text = cli_job(job);
    g_autoptr(CliProcess) both = CLI(test->berthd, "logs", text);
    assert_cli_status(both, 0);
    assert_string_equal(cli_out(both), "out\n");
    assert_string_equal(cli_err(both), "err\n");
    g_autofree char *out = cli_output_of(CLI(test->berthd, "logs", "--stdout", text));
    assert_string_equal(out, "out\n");
    g_autofree char *err = cli_output_of(CLI(test->berthd, "logs", "--stderr", "--follow", text));
    assert_string_equal(err, "err\n");
    g_autoptr(CliProcess) neither = CLI(test->berthd, "logs", "-o", "-e", text);
    assert_cli_status(neither, 2);
}

static void wait_gives_each_end_and_the_first_failure(void **state)
{
    BerthdTest *test = *state;
    guint64 fails = ended_job(test, (FakePlan){.status = 4}, BERTH__JOB_STATE__FAILED);
    guint64 succeeds = ended_job(test, (FakePlan){0}, BERTH__JOB_STATE__COMPLETED);
    guint64 fails_too = ended_job(test, (FakePlan){.status = 5}, BERTH__JOB_STATE__FAILED);
    g_autofree char *first = cli_job(fails);
    g_autofree char *second = cli_job(succeeds);
    g_autofree char *third = cli_job(fails_too);
    /* Those that have ended already: in the order in which they are named. */
    g_autoptr(CliProcess) three = CLI(test->berthd, "wait", second, third, first);
    assert_cli_status(three, 5);
    g_autofree char *expected =
        g_strdup_printf("%s COMPLETED\n%s FAILED\n%s FAILED\n", second, third, first);
    assert_string_equal(cli_out(three), expected);
    g_autofree char *quiet = cli_output_of(CLI(test->berthd, "wait", "-q", second, second));
    assert_string_equal(quiet, "");
    g_autoptr(CliProcess) none = CLI(test->berthd, "wait", "999999");
    assert_cli_status(none, 125);
    g_autoptr(CliProcess) bad = CLI(test->berthd, "wait", "--no-such-option");
    assert_cli_status(bad, 125);
}

/* One job that there is not: the others are still shown, and the status says so. */
static void verbs_with_an_unknown_job_go_on(void **state)
{
    BerthdTest *test = *state;
    guint64 job = ended_job(test, (FakePlan){0}, BERTH__JOB_STATE__COMPLETED);
    g_autofree char *text = cli_job(job);
    const struct {
        const char *arguments[6];
        int status;
    } cases[] = {
        {{"show", "999998", text, "999999"}, 1},
        {{"wait", "999998", text, "999999"}, 125},
        {{"ls", "999998", text, "999999"}, 1},
        {{"events", "999998", text, "999999"}, 1},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(CliProcess) cli =
            cli_start(berthd_fixture_socket(test->berthd), cases[i].arguments, NULL);
        assert_cli_status(cli, cases[i].status);
        assert_contains(cli_out(cli), "COMPLETED");
        g_autofree char *expected =
            g_strdup_printf("berth %s: no job 999998\nberth %s: no job 999999\n",
                            cases[i].arguments[0], cases[i].arguments[0]);
        assert_string_equal(cli_err(cli), expected);
    }
    g_autoptr(CliProcess) none = CLI(test->berthd, "events", "-f", "999998");
    assert_cli_status(none, 1);
    assert_string_equal(cli_err(none), "berth events: no job 999998\n");
    /* It is there, and nothing has happened to it since. */
    discard(CLI(test->berthd, "events", "-s", "2999-01-01", text));
    /* It is there, in another state. */
    discard(CLI(test->berthd, "ls", "-s", "failed", text));
}

/* --- changing ----------------------------------------------------------------------------------- */

static void hold_release_and_cancel_change_a_job(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = held_job(test, "held");
    g_autofree char *text = cli_job(job);
    discard(CLI(test->berthd, "release", text));
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    g_autoptr(CliProcess) hold = CLI(test->berthd, "hold", text);
    assert_cli_status(hold, 1); /* it runs */
    discard(CLI(test->berthd, "cancel", text));
    g_autoptr(CliProcess) wait = CLI(test->berthd, "wait", text);
    assert_cli_status(wait, 128 + SIGTERM);
    g_autoptr(CliProcess) again = CLI(test->berthd, "cancel", text, "999999");
    assert_cli_status(again, 1);
    assert_contains(cli_err(again), "has ended already (CANCELLED)\n");
    assert_contains(cli_err(again), "berth cancel: no job 999999\n");
}

/* --- nodes and images --------------------------------------------------------------------------- */

static void node_verbs_show_nodes(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *list = cli_output_of(CLI(test->berthd, "node", "ls"));
    assert_contains(list, "n1    up ");
    assert_contains(list, "guests are emulated\n");
    g_autofree char *node = cli_output_of(CLI(test->berthd, "node", "show", "n1"));
    assert_contains(node, "Offers           64 vCPUs, 64G memory\n");
    assert_contains(node, "Acceleration     tcg: guests are emulated, which is many times slower");
    assert_contains(node, "Why not KVM      qemu: failed to initialize kvm\n");
    g_autoptr(CliProcess) none = CLI(test->berthd, "node", "show", "n2");
    assert_cli_status(none, 1);
    assert_contains(cli_err(none), "there is no node \"n2\"");
    g_autoptr(CliProcess) odd = CLI(test->berthd, "node", "show", "\xff");
    assert_cli_status(odd, 1);
    assert_contains(cli_err(odd), "not UTF-8");
}

static void image_verbs_import_show_and_remove(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *source = g_build_filename(berthd_fixture_dir(test->berthd), "root", NULL);
    g_autofree char *file = g_build_filename(source, "hello", NULL);
    assert_int_equal(g_mkdir(source, 0755), 0);
    assert_true(g_file_set_contents(file, "hello", -1, NULL));
    g_autofree char *imported = cli_output_of(CLI(test->berthd, "image", "import", "mine", "root"));
    assert_contains(imported, "Image            mine\n");
    g_autofree char *list = cli_output_of(CLI(test->berthd, "image", "ls"));
    assert_contains(list, "mine ");
    g_autofree char *shown = cli_output_of(CLI(test->berthd, "image", "show", "mine"));
    assert_contains(shown, source);
    static const struct {
        const char *arguments[5];
        int status;
        const char *err;
    } cases[] = {
        {{"image", "import", "mine", "root"}, 1, "there is an image \"mine\" already"},
        {{"image", "import", ".mine", "root"}, 2, "is no image name"},
        {{"image", "import", "other", "no-such-root"}, 1, "no-such-root"},
        {{"image", "show", "other"}, 1, "there is no image \"other\""},
        {{"image", "rm", "other"}, 1, "there is no image \"other\""},
        {{"image", "rm"}, 2, "name an image"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(CliProcess) cli =
            cli_start(berthd_fixture_socket(test->berthd), cases[i].arguments, NULL);
        assert_cli_status(cli, cases[i].status);
        assert_contains(cli_err(cli), cases[i].err);
    }
    guint64 job = held_job(test, "uses tiny");
    g_autoptr(CliProcess) used = CLI(test->berthd, "image", "rm", "tiny");
    assert_cli_status(used, 1);
    g_autofree char *text = cli_job(job);
    discard(CLI(test->berthd, "cancel", text));
    discard(CLI(test->berthd, "image", "rm", "mine"));
}

/* One that cannot be removed: the others still are, and the status says so. */
static void image_rm_deals_with_every_name(void **state)
{
    BerthdTest *test = *state;
    berthd_fixture_import(test->berthd, "first");
    berthd_fixture_import(test->berthd, "last");
    g_autoptr(CliProcess) some = CLI(test->berthd, "image", "rm", "first", "nope", "last");
    assert_cli_status(some, 1);
    assert_contains(cli_err(some), "berth image rm: there is no image \"nope\"");
    g_autofree char *list = cli_output_of(CLI(test->berthd, "image", "ls"));
    assert_null(strstr(list, "first"));
    assert_null(strstr(list, "last"));
}

static void image_import_without_room_says_where(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *small = g_build_filename(berthd_fixture_dir(test->berthd), "small", NULL);
    g_autofree char *source = g_build_filename(berthd_fixture_dir(test->berthd), "any", NULL);
    g_autofree char *environment = g_strconcat("TMPDIR=", small, NULL);
    /* In a namespace of this program: nothing stays mounted however it ends. */
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        print_message("skipped: mounting needs root\n");
        skip();
    }
    assert_int_equal(g_mkdir(small, 0755), 0);
    assert_int_equal(g_mkdir(source, 0755), 0);
    assert_int_equal(mount("none", small, "tmpfs", 0, "size=64k"), 0);
    g_autoptr(CliProcess) cli =
        cli_start(berthd_fixture_socket(test->berthd),
                  (const char *const[]){"image", "import", "big", source, NULL},
                  (const char *const[]){environment, NULL});
    assert_cli_status(cli, 1);
    assert_contains(cli_err(cli), g_strerror(ENOSPC));
    assert_contains(cli_err(cli), small);
    assert_contains(cli_err(cli), "set TMPDIR");
    assert_int_equal(umount2(small, MNT_DETACH), 0);
}

/* --- others ------------------------------------------------------------------------------------- */

static void another_user_may_neither_read_nor_cancel(void **state)
{
    BerthdTest *test = *state;
    guint64 job = ended_job(test, (FakePlan){.out = "secret\n"}, BERTH__JOB_STATE__COMPLETED);
    guint64 held = held_job(test, "of root");
    g_autofree char *text = cli_job(job);
    g_autofree char *held_text = cli_job(held);
    g_autofree char *unread = g_build_filename(berthd_fixture_dir(test->berthd), "unread.sh", NULL);
    g_autofree char *unreadable =
        g_strdup_printf("cannot read the script \"%s\": Permission denied", unread);
    assert_true(
        g_file_set_contents_full(unread, "true\n", -1, G_FILE_SET_CONTENTS_NONE, 0600, NULL));
    const char *socket = berthd_fixture_socket(test->berthd);
    const struct {
        const char *arguments[5];
        const char *err;
    } cases[] = {
        {{"logs", text}, "belongs to another user"},
        {{"logs", "--follow", held_text}, "belongs to another user"},
        {{"cancel", held_text}, "belongs to another user"},
        {{"release", held_text}, "belongs to another user"},
        {{"image", "rm", "tiny"}, "only operators"},
        {{"image", "import", "other", "/no/such/source"}, "may import images"},
        {{"submit", "--priority=1", "--", "x"}, "which only operators may ask for"},
        {{"submit", unread}, unreadable},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(CliProcess) cli = cli_start_as(socket, NOBODY, cases[i].arguments);
        assert_cli_status(cli, 1);
        assert_string_equal(cli_out(cli), "");
        assert_contains(cli_err(cli), cases[i].err);
    }
    g_autofree char *shown =
        cli_output_of(cli_start_as(socket, NOBODY, (const char *const[]){"show", text, NULL}));
    assert_null(strstr(shown, "Command"));
    g_autofree char *own =
        cli_output_of(cli_start_as(socket, NOBODY, (const char *const[]){"ls", NULL}));
    assert_null(strstr(own, "of root"));
    test->plan = (FakePlan){.out = "mine\n"};
    g_autofree char *run =
        cli_output_of(cli_start_as(socket, NOBODY, (const char *const[]){"run", "--", "x", NULL}));
    assert_string_equal(run, "mine\n");
    assert_int_equal(fake_agent_start(test->agent, held + 1)->task->uid, NOBODY);
    discard(CLI(test->berthd, "cancel", held_text));
}

static void json_is_what_python_reads(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *python = g_find_program_in_path("python3");
    if (!python) {
        skip();
    }
    guint64 job = ended_job(test, (FakePlan){.out = "x"}, BERTH__JOB_STATE__COMPLETED);
    guint64 held = held_job(test, "größe \"quoted\"");
    g_autofree char *script = g_strdup_printf(
        "check() { expected=$1; shift; \"$BERTH\" \"$@\" --json | python3 -c '\n"
        "import json, sys\n"
        "objects = [json.loads(line) for line in sys.stdin]\n"
        "assert all(isinstance(o, dict) for o in objects), objects\n"
        "assert len(objects) == int(sys.argv[1]), objects\n"
        "' \"$expected\" || exit 1; }\n"
        "job=%" G_GUINT64_FORMAT " held=%" G_GUINT64_FORMAT "\n"
        "check 2 ls $job $held\ncheck 1 ls\ncheck 2 show $job $held\ncheck 1 wait $job\n"
        "check 1 node ls\ncheck 1 node show n1\ncheck 1 image ls\ncheck 1 image show tiny\n"
        "check 1 version\ncheck 1 release $held\ncheck 1 wait $held\n"
        "\"$BERTH\" ls --json $held | python3 -c '\n"
        "import json, sys\n"
        "job = json.load(sys.stdin)\n"
        "assert job[\"name\"] == \"größe \\\"quoted\\\"\" and job[\"state\"] == \"COMPLETED\", "
        "job\n"
        "'\n",
        job, held);
    discard(CLI_SHELL(test->berthd, script));
}

static void full_disk_is_not_success(void **state)
{
    BerthdTest *test = *state;
    static const char *const verbs[] = {"ls", "version", "--help", "node ls"};
    for (gsize i = 0; i < G_N_ELEMENTS(verbs); i++) {
        g_autofree char *script = g_strdup_printf("\"$BERTH\" %s >/dev/full", verbs[i]);
        g_autoptr(CliProcess) cli = CLI_SHELL(test->berthd, script);
        assert_cli_status(cli, 1);
        assert_contains(cli_err(cli), "cannot write to standard output");
    }
}

static void assert_done(BerthdTest *test, const char *line, const char *said)
{
    g_autofree char *script = g_strdup_printf("\"$BERTH\" %s", line);
    g_autofree char *output = cli_output_of(CLI_SHELL(test->berthd, script));
    assert_string_equal(output, said);
}

static gboolean ls_says(BerthdTest *test, const char *name, const char *said)
{
    g_autofree char *output = cli_output_of(CLI(test->berthd, "ls", name));
    return strstr(output, said) != NULL;
}

/* One call is one decision, whatever the ranges; a list says how many of those that wait are held. */
static void ranges_of_an_array_are_held_and_released(void **state)
{
    BerthdTest *test = *state;
    discard(CLI(test->berthd, "cancel", "--all"));
    test->plan = (FakePlan){.runs_on = TRUE};
    guint64 job = held_array(test);
    g_autofree char *name = cli_job(job);
    g_autofree char *some = g_strconcat(name, "[0,3-4]", NULL);
    g_autofree char *others = g_strconcat(name, "[0-2,9]", NULL);
    assert_true(ls_says(test, name, "10 waiting (held-by-user)\n"));
    discard(CLI(test->berthd, "release", some));
    run_until(ls_says(test, name, "3 running, 7 waiting, 7 of the waiting held\n"));
    discard(CLI(test->berthd, "hold", name));
    assert_true(ls_says(test, name, "3 running, 7 waiting, all held\n"));
    g_autofree char *whole = cli_output_of(CLI(test->berthd, "show", name));
    assert_contains(whole, "all that wait\n");
    g_autofree char *third = g_strconcat(name, "[3]", NULL);
    g_autofree char *plan = cli_output_of(CLI(test->berthd, "node", "drain", "n1", "--plan"));
    assert_contains(plan, third);
    g_autoptr(CliProcess) nowhere = CLI(test->berthd, "migrate", "--to", "", third);
    assert_cli_status(nowhere, 2);
    assert_contains(cli_err(nowhere), "--to: name a node, or leave it out");
    discard(CLI(test->berthd, "release", others)); /* 0 runs; 1, 2 and 9 come beside it */
    run_until(ls_says(test, name, "6 running, 4 waiting, 4 of the waiting held\n"));
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    assert_true(ls_says(test, name, "6 running, 4 waiting, 4 of the waiting held\n"));
    g_autofree char *record = cli_output_of(CLI(test->berthd, "show", name));
    assert_contains(record, "5-8\n");
    g_autofree char *events = cli_output_of(CLI(test->berthd, "events", name));
    assert_contains(events, "tasks 0,3-4");
    assert_contains(events, "tasks 0-2,9");
    g_autofree char *running = g_strconcat(name, "[3]", NULL);
    discard(CLI(test->berthd, "release", running)); /* should it have to wait again */
    g_autofree char *waiting = g_strconcat(name, "[5-8]", NULL);
    discard(CLI(test->berthd, "release", waiting));
    run_until(ls_says(test, name, "10 running\n"));
    assert_done(test, "release --all", "1 job\n"); /* 4 is held likewise */
    assert_done(test, "release --all", "0 jobs\n");
    g_autofree char *other = cli_job(held_array(test));
    discard(CLI(test->berthd, "cancel", other));
    run_until(ls_says(test, other, "10 cancelled\n"));
    discard(CLI(test->berthd, "cancel", name));
}

/* More than a page, and than are asked of at a time. */
static void jobs_are_selected_rather_than_named(void **state)
{
    BerthdTest *test = *state;
    discard(CLI(test->berthd, "cancel", "--all"));
    test->plan = (FakePlan){.runs_on = TRUE};
    for (guint i = 0; i < 150; i++)
        held_job(test, i % 50 == 7 ? "odd" : "even");
    assert_done(test, "release --name odd", "3 jobs\n");
    assert_done(test, "release --name none", "0 jobs\n");
    assert_done(test, "hold --user root --name even", "147 jobs\n");
    assert_done(test, "cancel --name odd --reason mistake", "3 jobs\n");
    assert_done(test, "cancel --all", "147 jobs\n");
    assert_done(test, "ls --json -s pending", "");
    g_autoptr(CliProcess) both = CLI(test->berthd, "cancel", "--all", "3");
    assert_cli_status(both, 2);
    assert_contains(cli_err(both), "and not both");
    g_autoptr(CliProcess) nothing = CLI(test->berthd, "cancel");
    assert_cli_status(nothing, 2);
}

static int setup(void **state)
{
    return berthd_test_setup_with(state, "[limits]\npage_size = 100\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ls_shows_what_was_asked_for),
        cmocka_unit_test(ls_many_pages_are_one_list),
        cmocka_unit_test(tables_fit_the_terminal),
        cmocka_unit_test(show_says_all_of_a_job),
        cmocka_unit_test(show_tells_what_was_asked_of_a_job),
        cmocka_unit_test(show_completed_job_says_that_its_output_is_lost),
        cmocka_unit_test(show_console_is_harmless),
        cmocka_unit_test(logs_gives_the_streams_apart_or_one),
        cmocka_unit_test(wait_gives_each_end_and_the_first_failure),
        cmocka_unit_test(verbs_with_an_unknown_job_go_on),
        cmocka_unit_test(hold_release_and_cancel_change_a_job),
        cmocka_unit_test(node_verbs_show_nodes),
        cmocka_unit_test(image_verbs_import_show_and_remove),
        cmocka_unit_test(image_rm_deals_with_every_name),
        cmocka_unit_test(image_import_without_room_says_where),
        cmocka_unit_test(another_user_may_neither_read_nor_cancel),
        cmocka_unit_test(json_is_what_python_reads),
        cmocka_unit_test(full_disk_is_not_success),
        cmocka_unit_test(ranges_of_an_array_are_held_and_released),
        cmocka_unit_test(jobs_are_selected_rather_than_named),
    };
    return cmocka_run_group_tests(tests, setup, berthd_test_teardown);
}
