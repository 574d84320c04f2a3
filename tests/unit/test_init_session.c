/* SPDX-License-Identifier: Apache-2.0 */
/* The conversation as a table: what happens, and what the guest then sends. */
#include "tests/lib/assert.h"

#include "images/init/session.h"

#include <glib.h>

typedef struct {
    FilesProgress progress; /* what the task's files are */
    GString *calls;         /* of the effects, a letter each */
    bool task_is_refused;
    bool start_fails;
    unsigned execs_due; /* messages of commands beside the job's */
} Guest;

static void on_clock(void *data, uint64_t clock_usec)
{
    g_string_append_printf(((Guest *)data)->calls, "c%" G_GUINT64_FORMAT, clock_usec);
}

static uint64_t on_ask_clock(void *data)
{
    return 5;
}

static void on_clock_told(void *data, const Berth__ToGuest__Clock *answer)
{
    g_string_append_printf(((Guest *)data)->calls, "z%" G_GUINT64_FORMAT, answer->clock_usec);
}

static void on_interval(void *data, uint32_t msec)
{
    g_string_append_printf(((Guest *)data)->calls, "i%u", msec);
}

static void on_measure(void *data, uint32_t msec)
{
    g_string_append_printf(((Guest *)data)->calls, "m%u", msec);
}

static void on_give_back(void *data, uint64_t resident_mib)
{
    g_string_append_printf(((Guest *)data)->calls, "g%u", (unsigned)resident_mib);
}

/* Only what it is not without. */
static void on_stalls(void *data, uint32_t msec)
{
    if (msec != 0)
        g_string_append_printf(((Guest *)data)->calls, "l%u", msec);
}

static void on_memory_max(void *data, uint64_t mib)
{
    g_string_append_printf(((Guest *)data)->calls, "M%u", (unsigned)mib);
}

static bool on_task(void *data, const Berth__GuestTask *task, FilesProgress *out_progress,
                    Fault *fault)
{
    Guest *guest = data;

    g_string_append_c(guest->calls, 't');
    fault_set(fault, "task refused");
    *out_progress = guest->progress;
    return !guest->task_is_refused;
}

/* A file is complete with its first data; data at offset 9 does not fit, at 8 cannot be written. */
static FilesResult on_file(void *data, uint32_t index, uint64_t offset, const uint8_t *bytes,
                           size_t length, FilesProgress *out_progress, Fault *fault)
{
    Guest *guest = data;

    if (offset == 8) {
        fault_set(fault, "no space");
        return FILES_FAILED;
    }
    if (offset == 9 || index > guest->progress.complete)
        return FILES_GAP;
    if (index == guest->progress.complete)
        guest->progress.complete++;
    *out_progress = guest->progress;
    return FILES_TAKEN;
}

static bool on_start(void *data, Fault *fault)
{
    g_string_append_c(((Guest *)data)->calls, 'r');
    fault_set(fault, "no process");
    return !((Guest *)data)->start_fails;
}

/* Signal 13 finds no process. */
static bool on_signal(void *data, uint32_t signal, bool command_only)
{
    g_string_append_printf(((Guest *)data)->calls, command_only ? "t%u" : "s%u", signal);
    return signal != 13;
}

static void on_power_off(void *data)
{
    g_string_append_c(((Guest *)data)->calls, 'p');
}

/* They begin with a letter, and one more message each is to be sent. */
static void on_exec_renew(void *data, const uint64_t *ids, size_t n)
{
    Guest *guest = data;

    if (n > 0)
        g_string_append_printf(guest->calls, "n%" G_GUINT64_FORMAT, ids[0]);
}

static void on_exec(void *data, const Berth__ToGuest *message)
{
    Guest *guest = data;

    g_string_append_printf(guest->calls, "x%" G_GUINT64_FORMAT, message->exec_close->exec);
    guest->execs_due++;
}

static bool on_exec_next(void *data, Berth__FromGuest *message)
{
    static Berth__FromGuest__ExecTaken taken = BERTH__FROM_GUEST__EXEC_TAKEN__INIT;
    Guest *guest = data;

    if (guest->execs_due == 0)
        return false;
    guest->execs_due--;
    message->body_case = BERTH__FROM_GUEST__BODY_EXEC_TAKEN;
    message->exec_taken = &taken;
    return true;
}

static const SessionOps ops = {
    .set_clock = on_clock,
    .ask_clock = on_ask_clock,
    .take_clock = on_clock_told,
    .set_usage_interval = on_interval,
    .measure = on_measure,
    .give_back = on_give_back,
    .watch_stalls = on_stalls,
    .set_memory_max = on_memory_max,
    .take_task = on_task,
    .take_file = on_file,
    .start = on_start,
    .signal = on_signal,
    .power_off = on_power_off,
    .exec_renew = on_exec_renew,
    .exec_handle = on_exec,
    .exec_next = on_exec_next,
};

/* ---- the script's events */

static void from_host(Session *session, char what, unsigned number)
{
    static char *command[] = {(char *)"true"};
    Berth__ToGuest message = BERTH__TO_GUEST__INIT;
    Berth__ToGuest__Hello hello = BERTH__TO_GUEST__HELLO__INIT;
    Berth__GuestTask task = BERTH__GUEST_TASK__INIT;
    Berth__ToGuest__FileData file = BERTH__TO_GUEST__FILE_DATA__INIT;
    Berth__ToGuest__Run run = BERTH__TO_GUEST__RUN__INIT;
    Berth__ToGuest__Ack ack = BERTH__TO_GUEST__ACK__INIT;
    Berth__ToGuest__Signal signal = BERTH__TO_GUEST__SIGNAL__INIT;
    Berth__ToGuest__Clock clock = BERTH__TO_GUEST__CLOCK__INIT;
    Berth__ToGuest__PowerOff power_off = BERTH__TO_GUEST__POWER_OFF__INIT;
    Berth__ToGuest__Measure measure = BERTH__TO_GUEST__MEASURE__INIT;
    Berth__ToGuest__GiveBack give_back = BERTH__TO_GUEST__GIVE_BACK__INIT;
    Berth__ToGuest__ExecClose exec = BERTH__TO_GUEST__EXEC_CLOSE__INIT;
    static uint64_t current;

    hello.session = number;
    hello.clock_usec = 77;
    hello.usage_interval_msec = 500;
    hello.stall_msec = number == 6 ? 100 : 0;
    hello.memory_max_mib = number == 6 ? 300 : 0;
    hello.execs = &(uint64_t){number};
    hello.n_execs = number >= 5; /* one that goes on */
    task.command = command;
    task.n_command = number;
    file.index = number % 10;
    file.offset = number / 10;
    ack.stdout_bytes = number;
    ack.stderr_bytes = number;
    signal.signal = number % 100;
    signal.command_only = number > 100;
    run.clock_usec = number;
    clock.clock_usec = number;
    measure.interval_msec = number;
    give_back.resident_mib = number;
    if (what == 'H' || what == 'W')
        current = what == 'H' ? number : current + 1;
    message.session = current;
    switch (what) {
    case 'H':
        message.body_case = BERTH__TO_GUEST__BODY_HELLO;
        message.hello = &hello;
        break;
    case 'T':
        message.body_case = BERTH__TO_GUEST__BODY_TASK;
        message.task = &task;
        break;
    case 'F':
        message.body_case = BERTH__TO_GUEST__BODY_FILE;
        message.file = &file;
        break;
    case 'R':
    case 'W': /* Run in a wrong session */
        message.body_case = BERTH__TO_GUEST__BODY_RUN;
        message.run = &run;
        break;
    case 'A':
        message.body_case = BERTH__TO_GUEST__BODY_ACK;
        message.ack = &ack;
        break;
    case 'K':
        message.body_case = BERTH__TO_GUEST__BODY_SIGNAL;
        message.signal = &signal;
        break;
    case 'Z':
        message.body_case = BERTH__TO_GUEST__BODY_CLOCK;
        message.clock = &clock;
        break;
    case 'C':
        message.body_case = BERTH__TO_GUEST__BODY_EXEC_CLOSE;
        exec.exec = number;
        message.exec_close = &exec;
        break;
    case 'M':
        message.body_case = BERTH__TO_GUEST__BODY_MEASURE;
        message.measure = &measure;
        break;
    case 'G':
        message.body_case = BERTH__TO_GUEST__BODY_GIVE_BACK;
        message.give_back = &give_back;
        break;
    case 'P':
        message.body_case = BERTH__TO_GUEST__BODY_POWER_OFF;
        message.power_off = &power_off;
        break;
    default:
        fail_msg("no event %c", what);
    }
    session_handle(session, &message);
}

static void put(Ring *ring, size_t bytes)
{
    struct iovec space[2];

    assert_true(ring_space(ring, space) > 0);
    ring_added(ring, bytes);
}

static void happen(Session *session, Ring *const rings[2], char what, unsigned number)
{
    Berth__Exit end = BERTH__EXIT__INIT;
    Berth__Usage usage = BERTH__USAGE__INIT;

    end.status = number;
    switch (what) {
    case 'o':
        put(rings[0], number);
        break;
    case 'e':
        put(rings[1], number);
        break;
    case 'b':
        session_started(session, number);
        break;
    case 'x':
        session_ended(session, &end, 99, &usage);
        break;
    case 'u':
        session_measured(session, &usage);
        break;
    case 'q':
        session_ask_clock(session);
        break;
    case 'f':
        session_fail(session, "broken");
        break;
    default:
        from_host(session, what, number);
    }
}

/* All that the session sends now, a letter and the telling number each. */
static void drain(Session *session, GString *sent)
{
    const Berth__FromGuest *message;

    while ((message = session_next(session)) != NULL) {
        switch (message->body_case) {
        case BERTH__FROM_GUEST__BODY_ASK_CLOCK:
            g_string_append_printf(sent, "Q%" G_GUINT64_FORMAT, message->ask_clock->stamp_usec);
            break;
        case BERTH__FROM_GUEST__BODY_STATE:
            g_string_append_printf(sent, "S%u%s%s%s", message->state->files_complete,
                                   message->state->has_task ? "t" : "",
                                   message->state->running ? "r" : "",
                                   message->state->ended ? "e" : "");
            if (message->state->signal != 0)
                g_string_append_printf(sent, "k%u", message->state->signal);
            break;
        case BERTH__FROM_GUEST__BODY_OUTPUT:
            g_string_append_printf(sent, "%c%" G_GUINT64_FORMAT "+%zu",
                                   message->output->is_stderr ? 'E' : 'O', message->output->offset,
                                   message->output->data.len);
            break;
        case BERTH__FROM_GUEST__BODY_STARTED:
            g_string_append_printf(sent, "B%" G_GUINT64_FORMAT, message->started->start_usec);
            break;
        case BERTH__FROM_GUEST__BODY_ENDED:
            g_string_append_printf(sent, "X%u", message->ended->exit->status);
            assert_int_equal(message->ended->end_usec, 99);
            break;
        case BERTH__FROM_GUEST__BODY_USAGE:
            g_string_append(sent, "U");
            break;
        case BERTH__FROM_GUEST__BODY_FILE_DONE:
            g_string_append_printf(sent, "D%u", message->file_done->index);
            break;
        case BERTH__FROM_GUEST__BODY_EXEC_TAKEN:
            g_string_append(sent, "C");
            break;
        case BERTH__FROM_GUEST__BODY_FAILURE:
            g_string_append_printf(sent, "!%s", message->failure->message);
            break;
        default:
            fail_msg("message of kind %d", (int)message->body_case);
        }
        g_string_append_c(sent, ' ');
    }
}

/* Events: H hello with session number, T task with so many words, F file (index + 10 * offset), R run
 * at a time of the host (0: not said), W run in a session that is not, A ack of both streams, K signal (above 100: to the command),
 * Z the host's clock, C of a command beside it, M measure, G what its host holds for it, P power off; o, e output, b begun, x ended, u usage, q clock to be asked
 * for, f failure. At a "/" and at the end the channel takes all that is due. */
static const struct {
    const char *name;
    uint32_t files;
    bool task_is_refused;
    bool start_fails;
    const char *events;
    const char *sent;
    const char *calls;
} cases[] = {
    {"nothing is sent before hello", 0, 0, 0, "u o3 f", "", ""},
    {"all goes well", 2, 0, 0, "H1 / T1 F0 / F1 / R / b5 / o3 e2 / A2 / A3 x7 / A3 / P",
     "Q5 S0 D0 D1 B5 O0+3 E0+2 X7 ", "c77i500trp"},
    {"the clock is asked for at hello and when it is due", 0, 0, 0,
     "q / H1 / q q / Z9 / o1 q / f q", "Q5 S0 Q5 Q5 O0+1 Q5 !broken ", "c77i500z9"},
    {"a message of another session is ignored", 0, 0, 0, "H1 T1 W H2", "Q5 S0t ",
     "c77i500tc77i500"},
    {"a task without files runs at once", 0, 0, 0, "H1 T1 R", "Q5 S0tr ", "c77i500tr"},
    {"a task is taken once", 0, 0, 0, "H1 T1 T1", "Q5 S0t ", "c77i500t"},
    {"a task without a command fails", 0, 0, 0, "H1 / T0 / H2",
     "Q5 S0 !the task has neither a command nor a script Q5 S0 !the task has neither a command nor "
     "a script ",
     "c77i500c77i500"},
    {"a refused task fails", 1, 1, 0, "H1 / T1 F0 R", "Q5 S0 !task refused ", "c77i500t"},
    {"files before the task ask for the task", 1, 0, 0, "H1 / F0 F0", "Q5 S0 S0 ", "c77i500"},
    {"a gap is told once", 2, 0, 0, "H1 / T1 F1 F90 F1 / F0 / F91", "Q5 S0 S0t D0 S1t ",
     "c77i500t"},
    {"data of a complete file tells it again", 2, 0, 0, "H1 T1 F0 F1 / F0", "Q5 S2t D0 D1 D0 D1 ",
     "c77i500t"},
    {"hello tells complete files by state only", 2, 0, 0, "H1 / T1 F0 / H2 / F1",
     "Q5 S0 D0 Q5 S1t D1 ", "c77i500tc77i500"},
    {"a file that cannot be written fails", 1, 0, 0, "H1 / T1 F80 / R F0 / H2",
     "Q5 S0 !no space Q5 S0t !no space ", "c77i500tc77i500"},
    {"run before the files are complete is refused", 1, 0, 0, "H1 / T1 R / F0 R", "Q5 S0 S0t D0 ",
     "c77i500tr"},
    {"the clock is set right before the start", 0, 0, 0, "H1 T1 R78 R79", "Q5 S0tr ",
     "c77i500tc78r"},
    {"run twice starts once", 0, 0, 0, "H1 / T1 R R / b5 / R", "Q5 S0 B5 B5 ", "c77i500tr"},
    {"a start that fails is a failure", 0, 0, 1, "H1 / T1 R / x0 b5", "Q5 S0 !no process ",
     "c77i500tr"},
    {"a new host gets all that is not acknowledged", 0, 0, 0, "H1 T1 R b5 / o9 e4 / A3 / H2",
     "Q5 S0tr B5 O0+9 E0+4 Q5 S0tr B5 O3+6 E3+1 ", "c77i500trc77i500"},
    {"a new host that knows more is not sent it again", 0, 0, 0, "H1 T1 R b5 / o9 / H2 A0 o1 A9",
     "Q5 S0tr B5 O0+9 Q5 S0tr B5 O9+1 ", "c77i500trc77i500"},
    {"commands beside the job's are heard in turn with it", 0, 0, 0, "H1 T1 R b5 / C2 C3 o1 e1",
     "Q5 S0tr B5 O0+1 C E0+1 C ", "c77i500trx2x3"},
    {"a new host says which of them go on", 0, 0, 0, "H1 / H5", "Q5 S0 Q5 S0 ", "c77i500c77i500n5"},
    {"an end is said after all of them", 0, 0, 0, "H1 T1 R b5 / x4 C2", "Q5 S0tr B5 C X4 ",
     "c77i500trx2"},
    {"an end waits for both streams", 0, 0, 0, "H1 T1 R b5 / o2 e1 x4 / A1 / A2",
     "Q5 S0tr B5 O0+2 E0+1 X4 ", "c77i500tr"},
    {"an end is told to each host", 0, 0, 0, "H1 T1 R b5 o1 / x4 / A1 / H2 / H3",
     "Q5 S0tr B5 O0+1 X4 Q5 S0te B5 X4 Q5 S0te B5 X4 ", "c77i500trc77i500c77i500"},
    {"an end without a start has no start", 0, 0, 0, "H1 / T1 R / x127 / H2",
     "Q5 S0 X127 Q5 S0te X127 ", "c77i500trc77i500"},
    {"streams take turns", 0, 0, 0, "H1 T1 R b5 / o1 e1 / o1 e1", "Q5 S0tr B5 O0+1 E0+1 O1+1 E1+1 ",
     "c77i500tr"},
    {"a host says what makes it measure", 0, 0, 0, "H6 / M700 / M20", "Q5 S0 ",
     "c77i500l100M300n6m700m20"},
    {"what its host holds is passed on", 0, 0, 0, "H1 / G800", "Q5 S0 ", "c77i500g800"},
    {"only the newest usage is sent", 0, 0, 0, "H1 / u u / u", "Q5 S0 U U ", "c77i500"},
    {"a signal and power-off are passed on", 0, 0, 0, "H1 / K15 P", "Q5 S0 ", "c77i500s15p"},
    {"a new host learns which signal the job was sent", 0, 0, 0, "H1 / K15 / H2 / K9 / H3",
     "Q5 S0 Q5 S0k15 Q5 S0k9 ", "c77i500s15c77i500s9c77i500"},
    {"neither one that reached nobody, nor one to the command, is such", 0, 0, 0,
     "H1 / K13 K110 / H2", "Q5 S0 Q5 S0 ", "c77i500s13t10c77i500"},
    {"a signal to the command alone", 0, 0, 0, "H1 / K110", "Q5 S0 ", "c77i500t10"},
    {"after a failure nothing but it is sent", 0, 0, 0, "H1 T1 R b5 / o5 f u",
     "Q5 S0tr B5 !broken ", "c77i500tr"},
};

static void run_case(size_t index)
{
    g_autoptr(GString) sent = g_string_new(NULL);
    g_autoptr(GString) calls = g_string_new(NULL);
    g_auto(GStrv) events = g_strsplit(cases[index].events, " ", -1);
    Guest guest = {
        {cases[index].files, 0, 0}, calls, cases[index].task_is_refused, cases[index].start_fails};
    Ring *rings[2] = {ring_new(64), ring_new(64)};
    Session *session = session_new(&ops, &guest, rings[0], rings[1]);

    for (char **event = events; *event != NULL; event++) {
        if ((*event)[0] == '/')
            drain(session, sent);
        else
            happen(session, rings, (*event)[0], (unsigned)g_ascii_strtoull(*event + 1, NULL, 10));
    }
    drain(session, sent);
    if (strcmp(sent->str, cases[index].sent) != 0 || strcmp(calls->str, cases[index].calls) != 0)
        fail_msg("%s: %s\n sent '%s', expected '%s'\n calls '%s', expected '%s'", cases[index].name,
                 cases[index].events, sent->str, cases[index].sent, calls->str, cases[index].calls);
    session_free(session);
    ring_free(rings[0]);
    ring_free(rings[1]);
}

static void session_cases(void **state)
{
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        run_case(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(session_cases)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
