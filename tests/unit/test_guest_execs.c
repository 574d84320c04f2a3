/* SPDX-License-Identifier: Apache-2.0 */
/* Commands beside a guest's job, as the agent has them: over sessions and connections, and with guests that say of
 * them what cannot be. */
#include <config.h>

#include "nodeagent/guest_execs.h"
#include "tests/lib/channel_fixture.h"

#include <signal.h>

typedef struct {
    BerthExec *exec;
    GString *text[2];
    guint n_taken;
    gboolean has_ended;
    Berth__Exit exit;
    char *why;
    int code; /* 0: it has an exit */
} Run;

static void on_output(gboolean is_stderr, guint64 offset, const guint8 *data, gsize length,
                      gpointer user_data)
{
    GString *text = ((Run *)user_data)->text[is_stderr];
    assert_int_equal(offset, text->len);
    g_string_append_len(text, (const char *)data, (gssize)length);
}

static void on_taken(gpointer user_data)
{
    ((Run *)user_data)->n_taken++;
}

static void on_ended(const Berth__Exit *exit, const GError *error, gpointer user_data)
{
    Run *run = user_data;
    assert_false(run->has_ended);
    assert_true((exit == NULL) != (error == NULL));
    run->has_ended = TRUE;
    run->code = error != NULL ? error->code : 0;
    run->why = g_strdup(error != NULL ? error->message : exit->error);
    if (exit != NULL)
        run->exit = *exit;
}

static const BerthExecFuncs funcs = {on_output, on_taken, on_ended};
static char *command[] = {(char *)"sleep", (char *)"1"};

static BerthExec *try_open(ChannelFixture *fixture, Run *run, GError **error)
{
    Berth__Terminal terminal = BERTH__TERMINAL__INIT;
    Berth__ExecRequest request = BERTH__EXEC_REQUEST__INIT;
    request.command = command;
    request.n_command = G_N_ELEMENTS(command);
    terminal.type = (char *)"vt100";
    request.terminal = &terminal;
    return berth_guest_execs_open(berth_guest_channel_execs(fixture->channel), &request, &funcs,
                                  run, error);
}

static void run_clear(Run *run)
{
    g_string_free(run->text[0], TRUE);
    g_string_free(run->text[1], TRUE);
    g_free(run->why);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Run, run_clear)

/* Opens one, of which the guest has heard. */
static guint64 begin(ChannelFixture *fixture, Run *run)
{
    g_autoptr(GError) error = NULL;
    *run = (Run){.text = {g_string_new(NULL), g_string_new(NULL)}};
    run->exec = try_open(fixture, run, &error);
    assert_no_error(error);
    Berth__ToGuest *heard = guest_hear(fixture, BERTH__TO_GUEST__BODY_EXEC);
    guint64 id = heard->exec->exec;
    assert_int_equal(heard->exec->n_command, 2);
    assert_string_equal(heard->exec->command[1], "1");
    assert_string_equal(heard->exec->terminal->type, "vt100");
    berth__to_guest__free_unpacked(heard, NULL);
    return id;
}

/* A guest whose command runs, and which can run others. */
static void start(ChannelFixture *fixture)
{
    channel_fixture_start(fixture, FALSE, 0, 0);
    guest_greet(fixture);
    guest_say_state(fixture,
                    STATE(.has_task = TRUE, .running = TRUE, .execs_max = BERTH_EXECS_MAX));
    run_until(channel_fixture_is_open(fixture));
}

static void say_output(ChannelFixture *fixture, guint64 id, guint64 offset, const void *data,
                       gsize length)
{
    Berth__FromGuest__ExecOutput output = BERTH__FROM_GUEST__EXEC_OUTPUT__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    output.exec = id;
    output.offset = offset;
    output.data = (ProtobufCBinaryData){length, (guint8 *)data};
    message.body_case = BERTH__FROM_GUEST__BODY_EXEC_OUTPUT;
    message.exec_output = &output;
    guest_say(fixture, &message);
}

static void say_taken(ChannelFixture *fixture, guint64 id, guint64 bytes)
{
    Berth__FromGuest__ExecTaken taken = BERTH__FROM_GUEST__EXEC_TAKEN__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    taken.exec = id;
    taken.input_bytes = bytes;
    message.body_case = BERTH__FROM_GUEST__BODY_EXEC_TAKEN;
    message.exec_taken = &taken;
    guest_say(fixture, &message);
}

static void say_ended(ChannelFixture *fixture, guint64 id, const Berth__Exit *exit)
{
    Berth__FromGuest__ExecEnded ended = BERTH__FROM_GUEST__EXEC_ENDED__INIT;
    Berth__FromGuest message = BERTH__FROM_GUEST__INIT;
    ended.exec = id;
    ended.exit = (Berth__Exit *)exit;
    message.body_case = BERTH__FROM_GUEST__BODY_EXEC_ENDED;
    message.exec_ended = &ended;
    guest_say(fixture, &message);
}

/* --- what is to be expected ------------------------------------------------------------------ */

static void command_has_its_streams_and_its_end(void **state)
{
    ChannelFixture *fixture = *state;
    g_auto(Run) run = {0};
    Berth__Exit exit = BERTH__EXIT__INIT;
    start(fixture);
    guint64 id = begin(fixture, &run);
    say_output(fixture, id, 0, "some", 4);
    run_until(run.text[0]->len == 4);
    run.exec->class->control(run.exec, (guint64[]){4, 9}, SIGINT);
    Berth__ToGuest *heard = guest_hear(fixture, BERTH__TO_GUEST__BODY_EXEC_CONTROL);
    assert_int_equal(heard->exec_control->stdout_bytes, 4);
    assert_int_equal(heard->exec_control->stderr_bytes, 0); /* of what there was at all */
    assert_int_equal(heard->exec_control->signal, SIGINT);
    berth__to_guest__free_unpacked(heard, NULL);
    Berth__Terminal size = BERTH__TERMINAL__INIT;
    size.rows = 50;
    size.columns = 132;
    run.exec->class->resize(run.exec, &size);
    heard = guest_hear(fixture, BERTH__TO_GUEST__BODY_EXEC_CONTROL);
    assert_int_equal(heard->exec_control->size->rows, 50);
    assert_int_equal(heard->exec_control->size->columns, 132);
    assert_int_equal(heard->exec_control->signal, 0);
    berth__to_guest__free_unpacked(heard, NULL);
    run.exec->class->input(run.exec, (const guint8 *)"in", 2, TRUE);
    heard = guest_hear(fixture, BERTH__TO_GUEST__BODY_EXEC_INPUT);
    assert_int_equal(heard->exec_input->data.len, 2);
    assert_true(heard->exec_input->end);
    berth__to_guest__free_unpacked(heard, NULL);
    say_taken(fixture, id, 2);
    run_until(run.n_taken == 1);
    exit.status = 0x107;
    exit.signal = 9999;
    exit.error = (char *)"\xff why";
    say_ended(fixture, id, &exit);
    run_until(run.has_ended);
    assert_int_equal(run.exit.status, 7);
    assert_int_equal(run.exit.signal, SIGKILL);
    assert_true(g_utf8_validate(run.why, -1, NULL));
    assert_non_null(strstr(run.why, " why"));
    guest_hear_and_drop(fixture, BERTH__TO_GUEST__BODY_EXEC_CLOSE);
    assert_int_equal(berth_guest_channel_violations(fixture->channel), 0);
}

static void guest_that_cannot_is_said_to_be_so(void **state)
{
    ChannelFixture *fixture = *state;
    g_autoptr(GError) older = NULL;
    channel_fixture_start(fixture, FALSE, 0, 0);
    guest_greet(fixture);
    guest_say_state(fixture, STATE(.has_task = TRUE, .running = TRUE));
    run_until(channel_fixture_is_open(fixture));
    assert_null(try_open(fixture, NULL, &older));
    assert_berth_error(older, BERTH_ERROR_UNSUPPORTED, "release");
}

static void command_counts_until_the_guest_has_ended_it(void **state)
{
    ChannelFixture *fixture = *state;
    Run runs[BERTH_EXECS_MAX];
    guint64 ids[BERTH_EXECS_MAX];
    Berth__Exit exit = BERTH__EXIT__INIT;
    g_autoptr(GError) first = NULL, second = NULL;
    start(fixture);
    for (guint i = 0; i < BERTH_EXECS_MAX; i++)
        ids[i] = begin(fixture, &runs[i]);
    assert_null(try_open(fixture, NULL, &first));
    assert_berth_error(first, BERTH_ERROR_RESOURCE_EXHAUSTED, "all that may");
    runs[0].exec->class->close(runs[0].exec);
    guest_hear_and_drop(fixture, BERTH__TO_GUEST__BODY_EXEC_CLOSE);
    assert_null(try_open(fixture, NULL, &second));
    say_ended(fixture, ids[0], &exit);
    g_autoptr(GError) third = NULL;
    g_auto(Run) last = {.text = {g_string_new(NULL), g_string_new(NULL)}};
    run_until((g_clear_error(&third), try_open(fixture, &last, &third)) != NULL);
    assert_false(runs[0].has_ended); /* nobody waited for it */
    guest_hang_up(fixture);
    run_until(last.has_ended);
    for (guint i = 0; i < BERTH_EXECS_MAX; i++)
        run_clear(&runs[i]);
}

static Run run_new(void)
{
    return (Run){.text = {g_string_new(NULL), g_string_new(NULL)}};
}

/* Of a guest that has come to this node and has not answered yet, or whose agent was started. */
static void command_waits_until_the_guest_has_answered(void **state)
{
    ChannelFixture *fixture = *state;
    g_autoptr(GError) error = NULL;
    g_auto(Run) run = run_new(), second = run_new(), unwanted = run_new();
    channel_fixture_start(fixture, TRUE, 0, 0);
    guest_greet(fixture);
    run.exec = try_open(fixture, &run, &error);
    assert_no_error(error);
    run.exec->class->input(run.exec, (const guint8 *)"in", 2, TRUE);
    unwanted.exec = try_open(fixture, &unwanted, &error);
    unwanted.exec->class->close(unwanted.exec);
    second.exec = try_open(fixture, &second, &error);
    assert_no_error(error);
    guest_hang_up(fixture); /* which it has not heard of */
    guest_greet(fixture);
    guest_say_state(fixture, STATE(.has_task = TRUE, .running = TRUE, .execs_max = 1));
    guest_hear_and_drop(fixture, BERTH__TO_GUEST__BODY_EXEC);
    guest_hear_and_drop(fixture, BERTH__TO_GUEST__BODY_EXEC_INPUT);
    run_until(second.has_ended); /* it was one too many */
    assert_int_equal(second.code, BERTH_ERROR_RESOURCE_EXHAUSTED);
    assert_false(run.has_ended);
    assert_false(unwanted.has_ended);
    assert_null(guest_try_hear(fixture));
    guest_hang_up(fixture);
    run_until(run.has_ended);
}

static void command_that_waits_ends_where_none_can_run(void **state)
{
    ChannelFixture *fixture = *state;
    g_autoptr(GError) error = NULL;
    g_auto(Run) run = run_new();
    channel_fixture_start(fixture, TRUE, 0, 0);
    guest_greet(fixture);
    run.exec = try_open(fixture, &run, &error);
    assert_no_error(error);
    guest_say_state(fixture, STATE(.has_task = TRUE, .running = TRUE));
    run_until(run.has_ended);
    assert_int_equal(run.code, BERTH_ERROR_UNSUPPORTED);
}

static void command_goes_on_in_the_next_session(void **state)
{
    ChannelFixture *fixture = *state;
    g_auto(Run) run = {0};
    start(fixture);
    guint64 id = begin(fixture, &run);
    say_output(fixture, id, 0, "abc", 3);
    run_until(run.text[0]->len == 3);
    run.exec->class->input(run.exec, (const guint8 *)"in", 2, FALSE);
    guest_hear_and_drop(fixture, BERTH__TO_GUEST__BODY_EXEC_INPUT);
    fixture->has_state = FALSE; /* the fixture does not answer by itself */
    berth_guest_channel_renew(fixture->channel);
    Berth__ToGuest *hello = guest_hear(fixture, BERTH__TO_GUEST__BODY_HELLO);
    assert_int_equal(hello->hello->n_execs, 1);
    assert_int_equal(hello->hello->execs[0], id);
    fixture->session = hello->hello->session;
    berth__to_guest__free_unpacked(hello, NULL);
    guest_say_state(fixture,
                    STATE(.has_task = TRUE, .running = TRUE, .execs_max = BERTH_EXECS_MAX));
    say_output(fixture, id, 0, "abcdef", 6); /* what it has not heard of as read, and more */
    run_until(run.text[0]->len == 6);
    say_taken(fixture, id, 2);
    run_until(run.n_taken == 1);
    assert_string_equal(run.text[0]->str, "abcdef");
    guest_hang_up(fixture);
    run_until(run.has_ended);
    assert_int_equal(run.code, BERTH_ERROR_UNAVAILABLE);
    guest_accept(fixture);
    hello = guest_hear(fixture, BERTH__TO_GUEST__BODY_HELLO);
    assert_int_equal(hello->hello->n_execs, 0); /* it is to end */
    berth__to_guest__free_unpacked(hello, NULL);
}

/* --- guests that lie ------------------------------------------------------------------------- */

static void assert_broken(ChannelFixture *fixture, const Run *run)
{
    run_until(run->has_ended);
    assert_int_equal(run->code, BERTH_ERROR_UNAVAILABLE);
    assert_non_null(strstr(run->why, "broke the protocol"));
    assert_int_equal(berth_guest_channel_violations(fixture->channel), 1);
}

static void output_with_a_gap_is_refused(void **state)
{
    ChannelFixture *fixture = *state;
    g_auto(Run) run = {0};
    start(fixture);
    say_output(fixture, begin(fixture, &run), 1, "b", 1);
    assert_broken(fixture, &run);
}

static void output_beyond_the_window_is_refused(void **state)
{
    static const guint8 zeroes[BERTH_EXEC_WINDOW_BYTES];
    ChannelFixture *fixture = *state;
    g_auto(Run) run = {0};
    start(fixture);
    guint64 id = begin(fixture, &run);
    say_output(fixture, id, 0, zeroes, sizeof zeroes);
    run_until(run.text[0]->len == sizeof zeroes);
    run.exec->class->control(run.exec, (guint64[]){1, 0}, 0);
    say_output(fixture, id, sizeof zeroes, zeroes, 1);
    run_until(run.text[0]->len == sizeof zeroes + 1);
    say_output(fixture, id, sizeof zeroes + 1, zeroes, 1);
    assert_broken(fixture, &run);
}

static void input_that_was_not_given_cannot_be_taken(void **state)
{
    ChannelFixture *fixture = *state;
    g_auto(Run) run = {0};
    start(fixture);
    guint64 id = begin(fixture, &run);
    run.exec->class->input(run.exec, (const guint8 *)"in", 2, FALSE);
    say_taken(fixture, id, 3);
    assert_broken(fixture, &run);
    assert_int_equal(run.n_taken, 0);
}

static void end_without_an_exit_is_refused(void **state)
{
    ChannelFixture *fixture = *state;
    g_auto(Run) run = {0};
    start(fixture);
    say_ended(fixture, begin(fixture, &run), NULL);
    assert_broken(fixture, &run);
}

static void words_of_a_command_that_is_not_are_noise(void **state)
{
    static const guint8 zeroes[BERTH_EXEC_WINDOW_BYTES];
    ChannelFixture *fixture = *state;
    g_auto(Run) run = {0};
    start(fixture);
    guint64 id = begin(fixture, &run);
    say_output(fixture, id + 1, 77, "?", 1);
    say_output(fixture, id, 0, zeroes, sizeof zeroes);
    run_until(run.text[0]->len == sizeof zeroes);
    assert_int_equal(berth_guest_channel_violations(fixture->channel), 0);
    for (guint i = 0; i < 200 && !run.has_ended; i++) { /* the same again and again: 12.5 MiB */
        say_output(fixture, id, 0, zeroes, sizeof zeroes);
        while (g_main_context_iteration(NULL, FALSE))
            ;
    }
    run_until(run.has_ended);
    assert_int_equal(berth_guest_channel_violations(fixture->channel), 1);
    assert_int_equal(run.text[0]->len, sizeof zeroes);
}

int main(void)
{
#define TEST(function)                                                                             \
    cmocka_unit_test_setup_teardown(function, channel_fixture_make, channel_fixture_free)
    const struct CMUnitTest tests[] = {
        TEST(command_has_its_streams_and_its_end),
        TEST(guest_that_cannot_is_said_to_be_so),
        TEST(command_counts_until_the_guest_has_ended_it),
        TEST(command_waits_until_the_guest_has_answered),
        TEST(command_that_waits_ends_where_none_can_run),
        TEST(command_goes_on_in_the_next_session),
        TEST(output_with_a_gap_is_refused),
        TEST(output_beyond_the_window_is_refused),
        TEST(input_that_was_not_given_cannot_be_taken),
        TEST(end_without_an_exit_is_refused),
        TEST(words_of_a_command_that_is_not_are_noise),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
