/* SPDX-License-Identifier: Apache-2.0 */
/* berthd's journal of the core: `berth-sim --replay` decides the same as berthd did, in a run from
 * nothing and in one that begins with what the store had; a changed journal is found out; and no
 * journal harms what it is written for. */
#include "config.h"

#include "tests/lib/berthd_test.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/stat.h>

static int setup_with(void **state, const char *extra)
{
    BerthdTest *test = g_new0(BerthdTest, 1);
    g_autofree char *lines = g_strdup_printf("[berthd]\njournal=yes\n%s", extra);
    test->berthd = berthd_fixture_new(lines);
    *state = test;
    return 0;
}

static void begin(BerthdTest *test)
{
    berthd_fixture_start(test->berthd);
    test->agent = berthd_fixture_add_agent(test->berthd, "n1", berthd_test_plan, &test->plan);
    berthd_fixture_import(test->berthd, "tiny");
}

static int setup(void **state)
{
    return setup_with(state, "");
}

static char *journal_path(BerthdTest *test, const char *suffix)
{
    g_autofree char *name = g_strconcat("core.journal", suffix, NULL);
    return g_build_filename(berthd_fixture_dir(test->berthd), name, NULL);
}

/* What `berth-sim --replay PATH` prints, with --explain JOB unless it is 0 (transfer full); OUT_STATUS: how
 * it ends. */
static char *replay(const char *path, guint64 job, int *out_status)
{
    const char *top = g_getenv("top_builddir");
    g_autofree char *program = g_build_filename(top ? top : ".", "berth-sim", NULL);
    g_autoptr(GError) error = NULL;
    g_autofree char *explain = g_strdup_printf("--explain=%" G_GUINT64_FORMAT, job);
    char *out = NULL;
    g_autoptr(GSubprocess) process =
        g_subprocess_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_MERGE, &error,
                         program, "--replay", path, job != 0 ? explain : NULL, NULL);
    assert_no_error(error);
    g_subprocess_communicate_utf8(process, NULL, NULL, &out, NULL, &error);
    assert_no_error(error);
    *out_status = g_subprocess_get_if_exited(process) ? g_subprocess_get_exit_status(process) : -1;
    return out;
}

static void assert_replays(const char *path)
{
    int status;
    g_autofree char *said = replay(path, 0, &status);
    if (status != 0 || strstr(said, "all decisions are the same") == NULL)
        fail_msg("%s: %d: %s", path, status, said);
}

/* A job that runs until it is told to end, one that is held, one that fails, one that is cancelled,
 * and reports; leaves the first running and the second held. */
static void live(BerthdTest *test, guint64 *out_running)
{
    static const Berth__Usage usage = {.base = PROTOBUF_C_MESSAGE_INIT(&berth__usage__descriptor),
                                       .cpu_usec = 5,
                                       .memory_total_mib = 64,
                                       .memory_available_mib = 9};
    Berth__NodeUsage node = BERTH__NODE_USAGE__INIT;
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.name = (char *)"family";
    test->plan = (FakePlan){.runs_on = TRUE, .usage = &usage};
    *out_running = berthd_fixture_submit(test->berthd, &spec);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, *out_running);
    test->plan = (FakePlan){.status = 3};
    guint64 failing = berthd_fixture_submit(test->berthd, &spec);
    berthd_fixture_wait_state(test->berthd, failing, BERTH__JOB_STATE__FAILED);
    spec.hold = TRUE;
    berthd_fixture_submit(test->berthd, &spec);
    guint64 cancelled = berthd_fixture_submit(test->berthd, &spec);
    Berth__CancelRequest cancel = BERTH__CANCEL_REQUEST__INIT;
    cancel.job = cancelled;
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__jobs__descriptor, "Cancel", &cancel.base);
    berthd_fixture_wait_state(test->berthd, cancelled, BERTH__JOB_STATE__CANCELLED);
    node.psi_memory_some = 2345;
    node.memory_free_mib = 77;
    fake_agent_report_node(test->agent, &node);
    fake_agent_report(test->agent);
    guint64 last = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, last);
}

static void assert_story(const char *path, guint64 job, const char *const *parts)
{
    int status;
    g_autofree char *said = replay(path, job, &status);
    assert_int_equal(status, 0);
    for (guint i = 0; parts[i] != NULL; i++)
        if (strstr(said, parts[i]) == NULL)
            fail_msg("no \"%s\" in the story of job %" G_GUINT64_FORMAT ":\n%s", parts[i], job,
                     said);
}

/* Of the jobs of live(), in the order in which they are submitted. */
static void journal_tells_why_a_job_waited_and_how_it_ended(void **state)
{
    static const char *const failing[] = {
        ": submitted: 1 guest(s) of ",
        ": start guest 0 on node ",
        ": guest 0: its command runs\n",
        ": guest 0: its command ended with status 3\n",
        ": FAILED: its command ended with a status other than 0\n",
        NULL};
    static const char *const held[] = {": waits: its user holds it\n", NULL};
    static const char *const cancelled[] = {": cancelled by ", ": CANCELLED: ", NULL};
    BerthdTest *test = *state;
    guint64 running;
    g_autofree char *path = journal_path(test, "");
    begin(test);
    live(test, &running);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    assert_story(path, running + 1, failing);
    assert_story(path, running + 2, held);
    assert_story(path, running + 3, cancelled);
}

static void journal_is_decided_the_same_again(void **state)
{
    BerthdTest *test = *state;
    guint64 running;
    struct stat status;
    g_autofree char *path = journal_path(test, "");
    g_autofree char *before = journal_path(test, ".1");
    begin(test);
    live(test, &running);
    berthd_fixture_kill(test->berthd);
    assert_replays(path);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);

    /* With jobs, tasks, uses and a node to be put back. */
    berthd_fixture_restart(test->berthd);
    run_until(fake_agent_is_joined(test->agent));
    assert_true(fake_agent_end(test->agent, running, 0));
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RELEASED, running);
    live(test, &running);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    assert_replays(path);
    assert_replays(before);
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    static const char *const parts[] = {"\nrestored-node ",
                                        "\nrestored-job ",
                                        "\nrestored-use ",
                                        "\nresume ",
                                        " exited ",
                                        "\naction ",
                                        " node-reported node=1 ",
                                        " node_usage.memory_pressure_permille=234 "
                                        "node_usage.memory_available_mib=77\n"};
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++)
        if (strstr(text, parts[i]) == NULL)
            fail_msg("no \"%s\" in the journal", parts[i]);
}

static void tampered_journal_is_found_out_with_its_place(void **state)
{
    BerthdTest *test = *state;
    guint64 running;
    int status;
    g_autofree char *path = journal_path(test, "");
    g_autofree char *text = NULL;
    begin(test);
    live(test, &running);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    char *action = strstr(text, "\naction kind=1 ") + 1;
    action[strlen("action kind=")] = '2'; /* a start that became a stop */
    guint line = 1;
    for (const char *at = text; at < action; at++)
        line += *at == '\n';
    assert_true(g_file_set_contents(path, text, -1, NULL));
    g_autofree char *said = replay(path, 0, &status);
    g_autofree char *place = g_strdup_printf("line %u: after this event the log has", line - 1);
    assert_int_equal(status, 1);
    if (strstr(said, place) == NULL || strstr(said, "decides otherwise") == NULL)
        fail_msg("no \"%s\" in: %s", place, said);
}

static void cut_journal_is_run_as_far_as_it_goes(void **state)
{
    BerthdTest *test = *state;
    guint64 running;
    g_autofree char *path = journal_path(test, "");
    g_autofree char *text = NULL;
    gsize length = 0;
    begin(test);
    live(test, &running);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    assert_true(g_file_get_contents(path, &text, &length, NULL));
    for (gsize cut = 1; cut < 400; cut += 7) {
        assert_true(g_file_set_contents(path, text, (gssize)(length - cut), NULL));
        assert_replays(path);
    }
}

static void no_journal_is_kept_unless_it_is_wanted(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *path = journal_path(test, "");
    begin(test);
    assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
}

static int setup_without(void **state)
{
    BerthdTest *test = g_new0(BerthdTest, 1);
    test->berthd = berthd_fixture_new(NULL);
    *state = test;
    return 0;
}

/* A directory in its place: it cannot be renamed, nor made. */
static void journal_that_cannot_be_made_harms_nothing(void **state)
{
    BerthdTest *test = *state;
    guint64 running;
    g_autofree char *path = journal_path(test, "");
    g_autofree char *before = journal_path(test, ".1");
    g_autofree char *inside = g_build_filename(before, "file", NULL);
    assert_int_equal(g_mkdir(path, 0755) + g_mkdir(before, 0755) + g_mkdir(inside, 0755), 0);
    begin(test);
    live(test, &running);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
}

#define TEST(function, setup) cmocka_unit_test_setup_teardown(function, setup, berthd_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(journal_is_decided_the_same_again, setup),
        TEST(journal_tells_why_a_job_waited_and_how_it_ended, setup),
        TEST(tampered_journal_is_found_out_with_its_place, setup),
        TEST(cut_journal_is_run_as_far_as_it_goes, setup),
        TEST(no_journal_is_kept_unless_it_is_wanted, setup_without),
        TEST(journal_that_cannot_be_made_harms_nothing, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
