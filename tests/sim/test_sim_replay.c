/* SPDX-License-Identifier: Apache-2.0 */
/* A run's log, run again: the same decisions; and one that was changed is found out. */
#include "scheduler/core/journal.h"
#include "scheduler/sim/app.h"
#include "scheduler/sim/replay.h"
#include "tests/lib/sim_fixture.h"
#include "tests/lib/tempdir.h"

/* What the command LINE does, its table aside. */
static void run_line(const char *line)
{
    SimOptions options;
    gboolean stop;
    int argc;
    g_auto(GStrv) argv = NULL;
    g_autoptr(GError) error = NULL;
    assert_true(g_shell_parse_argv(line, &argc, &argv, NULL));
    assert_true(sim_options_parse(argc, argv, &options, &stop, &error));
    sim_app_run(&options, &error);
    assert_no_error(error);
    sim_options_clear(&options);
}

static void simulate(const char *dir, const char *arguments)
{
    static const SimFixtureJob jobs[] = {{0, 100, 200, 3},  {10, 100, 100, 2}, {20, 50, 60, 1},
                                         {30, 10, 90, 4},   {35, 400, 500, 2}, {36, 30, 40, 1},
                                         {400, 100, 90, 4}, {410, 20, 30, 1}};
    g_autofree char *text = sim_fixture_swf(2, 2, jobs, G_N_ELEMENTS(jobs));
    g_autofree char *trace = sim_fixture_file(dir, "a.swf", text);
    g_autofree char *line =
        g_strdup_printf("berth-sim --quiet %s --journal %s %s", arguments, dir, trace);
    run_line(line);
}

/* FCFS order, 4 vCPUs: 1 runs; 2 is planned when it ends, 3 when 2 does; 4 would fit beside 1 and 2 at once,
 * but delay 3. */
static void simulate_four(const char *dir)
{
    static const SimFixtureJob jobs[] = {
        {0, 100, 100, 3}, {1, 100, 100, 3}, {2, 100, 100, 4}, {3, 300, 300, 1}};
    g_autofree char *text = sim_fixture_swf(1, 4, jobs, G_N_ELEMENTS(jobs));
    g_autofree char *trace = sim_fixture_file(dir, "four.swf", text);
    g_autofree char *line =
        g_strdup_printf("berth-sim --quiet --policy conservative --journal %s %s", dir, trace);
    run_line(line);
}

static void on_difference(const char *text, gpointer user_data)
{
    g_string_append(user_data, text);
}

/* TUNING: this one is 1; BERTH_TUNING_N = none is said. EXPLAIN: a job, or 0. */
static gboolean replay(const char *path, BerthCoreTuning tuning, guint64 explain, GString *text,
                       SimReplay *counts, GError **error)
{
    gint64 tunings[BERTH_TUNING_N] = {0};
    gboolean is_tuned[BERTH_TUNING_N] = {FALSE};
    SimReplayConfig config = {
        .path = path, .explain = explain, .tell = on_difference, .user_data = text};
    if (tuning < BERTH_TUNING_N) {
        tunings[tuning] = 1;
        is_tuned[tuning] = TRUE;
        config.tunings = tunings;
        config.is_tuned = is_tuned;
    }
    return sim_replay_run(&config, counts, error);
}

static void replay_of_a_run_decides_the_same(void **state)
{
    static const char *const policies[] = {"fcfs", "easy", "conservative", "reserved", "berth"};
    simulate(*state, "--fail-actions 100 --mtbf 5m --mttr 10s --seed 3");
    for (guint i = 0; i < G_N_ELEMENTS(policies); i++) {
        SimReplay counts;
        g_autoptr(GError) error = NULL;
        g_autoptr(GString) text = g_string_new(NULL);
        g_autofree char *name = g_strconcat(policies[i], ".log", NULL);
        g_autofree char *path = g_build_filename(*state, name, NULL);
        assert_true(replay(path, BERTH_TUNING_N, 0, text, &counts, &error));
        assert_string_equal(text->str, "");
        assert_int_equal(counts.n_different, 0);
        assert_int_equal(counts.torn_line, 0);
        assert_true(counts.n_events > 20 && counts.n_actions > 16);
    }
}

static void replay_of_a_changed_log_says_where(void **state)
{
    SimReplay counts;
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *path = g_build_filename(*state, "easy.log", NULL);
    g_autofree char *data = NULL;
    simulate(*state, "--policy easy");
    assert_true(g_file_get_contents(path, &data, NULL, NULL));
    char *action = strstr(data, "action kind=1 ");
    assert_non_null(action);
    action[strlen("action kind=")] = '2';
    guint line = 1;
    for (const char *at = data; at < action; at++)
        line += *at == '\n';
    assert_true(g_file_set_contents(path, data, -1, NULL));
    assert_true(replay(path, BERTH_TUNING_N, 0, text, &counts, &error));
    assert_int_equal(counts.n_different, 1);
    g_autofree char *where = g_strdup_printf("line %u: ", line - 1); /* the event above it */
    assert_true(g_str_has_prefix(text->str, where));
    assert_non_null(strstr(text->str, "    STOP guest.job=1 "));
    assert_non_null(strstr(text->str, "    START guest.job=1 "));
}

static void replay_names_kinds_and_reasons(void **state)
{
    static const char log[] = "action kind=5 guest.job=7 node=1 reason=43 to=2\n"
                              "action kind=77 reason=1000 \033[31m\n";
    SimReplay counts;
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GString) all = g_string_new(NULL);
    BerthCoreConfig config = {0};
    berth_journal_config(all, &config);
    g_string_append(all, "event 1 timer\n");
    g_string_append(all, log);
    g_string_append(all, "event 2 timer\n");
    g_autofree char *path = sim_fixture_file(*state, "log", all->str);
    assert_true(replay(path, BERTH_TUNING_N, 0, text, &counts, &error));
    assert_string_equal(text->str, "line 2: after this event the log has\n"
                                   "    MIGRATE guest.job=7 node=1 reason=balance to=2\n"
                                   "    kind=77 reason=1000 ?[31m\n"
                                   "  and the core asks for\n"
                                   "    nothing\n");
}

static void replay_with_another_constant_shows_what_it_changes(void **state)
{
    SimReplay counts;
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *path = g_build_filename(*state, "conservative.log", NULL);
    simulate_four(*state);
    assert_true(replay(path, BERTH_TUNING_N, 0, text, &counts, &error));
    assert_int_equal(counts.n_different, 0);
    assert_true(replay(path, BERTH_TUNING_PLAN_DEPTH, 0, text, &counts, &error));
    /* Only the first start is planned: the fourth job starts when it comes. */
    assert_true(counts.n_different > 0);
    const char *first = strstr(text->str, "the log has\n    nothing\n  and the core asks for\n");
    assert_ptr_equal(first, strstr(text->str, "the log has"));
    assert_non_null(strstr(first, "asks for\n    START guest.job=4 "));
}

static void replay_tells_the_story_of_a_job(void **state)
{
    SimReplay counts;
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *path = g_build_filename(*state, "conservative.log", NULL);
    simulate_four(*state);
    assert_true(replay(path, BERTH_TUNING_N, 3, text, &counts, &error));
    assert_int_equal(counts.n_different, 0);
    assert_string_equal(
        text->str,
        "           2 s  job 3: submitted: 1 guest(s) of 4 vCPUs and 16000 MiB, 1 task(s)\n"
        "           2 s  job 3: waits: others are before it; planned to start 198 s from now\n"
        "         100 s  job 3: waits: no node has room for it now; planned to start 100 s from "
        "now\n"
        "         200 s  job 3: start guest 0 on node node1\n"
        "         200 s  job 3: guest 0: its command runs\n"
        "         300 s  job 3: guest 0: its command ended with status 0\n"
        "         300 s  job 3: release guest 0 on node node1\n"
        "         300 s  job 3: COMPLETED\n");
    assert_false(replay(path, BERTH_TUNING_N, 5, text, &counts, &error));
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "--explain 5: no such job in ");
}

static void append_event(GString *log, gint64 seconds, BerthEventKind kind, guint32 task,
                         guint32 epoch)
{
    BerthCoreEvent event = {.kind = kind, .guest = {1, task, 0, epoch}, .node = 1};
    if (kind == BERTH_EVENT_JOB_SUBMITTED)
        event.submitted = (BerthCoreJob){.id = 1,
                                         .resources = {1, 100, 0},
                                         .time_limit_usec = 1000 * (gint64)G_USEC_PER_SEC,
                                         .guests = 1,
                                         .array_size = 3};
    else if (kind == BERTH_EVENT_NODE_JOINED)
        event.joined.info = (BerthCoreNodeInfo){.capacity = {1, 1000, 0}};
    else if (kind == BERTH_EVENT_GUEST_GONE)
        event.gone.reason = BERTH_REASON_GUEST_VANISHED;
    else if (kind == BERTH_EVENT_GUEST_RUNNING)
        event.running.start_usec = seconds * (gint64)G_USEC_PER_SEC;
    berth_journal_event(log, seconds * (gint64)G_USEC_PER_SEC, &event);
}

static char *lines_with(const char *text, const char *word)
{
    GString *found = g_string_new(NULL);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++)
        if (strstr(*line, word) != NULL)
            g_string_append_printf(found, "%s\n", *line);
    return g_string_free(found, FALSE);
}

/* One vCPU for three tasks, of which the first is lost twice. The log has no actions. */
static void story_of_an_array_is_of_the_first_task_that_waits(void **state)
{
    SimReplay counts;
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GString) log = g_string_new(NULL);
    BerthCoreConfig config = {.requeues_max = 9, .node_timeout_usec = G_USEC_PER_SEC};
    berth_journal_config(log, &config);
    berth_journal_node(log, 1, "a");
    berth_journal_resume(log, 1);
    append_event(log, 1, BERTH_EVENT_NODE_JOINED, 0, 0);
    append_event(log, 1, BERTH_EVENT_JOB_SUBMITTED, 0, 0);
    for (guint32 epoch = 1; epoch <= 2; epoch++) {
        append_event(log, 2 * epoch, BERTH_EVENT_GUEST_RUNNING, 0, epoch);
        append_event(log, 2 * epoch + 1, BERTH_EVENT_GUEST_GONE, 0, epoch);
        append_event(log, 2 * epoch + 1, BERTH_EVENT_GUEST_RELEASED, 0, epoch);
    }
    append_event(log, 6, BERTH_EVENT_GUEST_EXITED, 0, 3);
    append_event(log, 6, BERTH_EVENT_GUEST_RELEASED, 0, 3);
    g_autofree char *path = sim_fixture_file(*state, "log", log->str);
    assert_true(replay(path, BERTH_TUNING_N, 1, text, &counts, &error));
    g_autofree char *waits = lines_with(text->str, "waits: ");
    assert_string_equal(waits, "           1 s  job 1[1]: waits: no node has room for it now\n"
                               "           3 s  job 1[0]: waits: its guest was lost\n"
                               "           3 s  job 1[1]: waits: no node has room for it now\n"
                               "           5 s  job 1[0]: waits: its guest was lost\n"
                               "           5 s  job 1[1]: waits: no node has room for it now\n"
                               "           6 s  job 1[2]: waits: no node has room for it now\n");
}

/* In the midst of a line, and of the actions after an event. */
static void replay_says_that_a_log_breaks_off(void **state)
{
    static const char *const from[] = {"event 2000000 ", "action kind=1 "};
    g_autofree char *path = g_build_filename(*state, "conservative.log", NULL);
    g_autofree char *data = NULL;
    simulate_four(*state);
    assert_true(g_file_get_contents(path, &data, NULL, NULL));
    for (guint i = 0; i < G_N_ELEMENTS(from); i++) {
        SimReplay counts;
        g_autoptr(GError) error = NULL;
        g_autoptr(GString) text = g_string_new(NULL);
        const char *cut = strstr(data, from[i]);
        assert_non_null(cut);
        gsize length = (gsize)(cut - data) + (i == 0 ? strlen("event 2000000 su") : 0);
        guint64 line = i == 0;
        for (const char *at = data; at < cut; at++)
            line += *at == '\n';
        assert_true(g_file_set_contents(path, data, (gssize)length, NULL));
        assert_true(replay(path, BERTH_TUNING_N, 0, text, &counts, &error));
        assert_int_equal(counts.n_different, 0);
        assert_int_equal(counts.torn_line, line);
    }
}

static void replay_refuses_what_is_no_log(void **state)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {{"event 1 timer\n", "log:1: before config"},
                 {"hello\n", "log:1: none of config, node"},
                 {"", "log: no event in this log"},
                 {"hello\033[31m\377\nevent\n",
                  "log:1: none of config, node, restored-..., resume, "
                  "event and action: hello?[31m\357\277\275"},
                 {"config tunings=1\n", "log:1: not as many tunings"}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        SimReplay counts;
        g_autoptr(GError) error = NULL;
        g_autoptr(GString) text = g_string_new(NULL);
        g_autofree char *path = sim_fixture_file(*state, "log", cases[i].text);
        assert_false(replay(path, BERTH_TUNING_N, 0, text, &counts, &error));
        assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, cases[i].expected);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, tempdir_make, tempdir_remove)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(replay_of_a_run_decides_the_same),
        TEST(replay_of_a_changed_log_says_where),
        TEST(replay_names_kinds_and_reasons),
        TEST(replay_with_another_constant_shows_what_it_changes),
        TEST(replay_tells_the_story_of_a_job),
        TEST(story_of_an_array_is_of_the_first_task_that_waits),
        TEST(replay_says_that_a_log_breaks_off),
        TEST(replay_refuses_what_is_no_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
