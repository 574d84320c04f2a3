/* SPDX-License-Identifier: Apache-2.0 */
/* berth-init for real: the initramfs boots under QEMU, with a scripted host on its channel. */
#include "tests/lib/assert.h"
#include "tests/lib/guest_peer.h"
#include "tests/lib/guest_vm.h"

#include <signal.h>

/* Deadlines for a test that hangs. */
#define BOOT_MSEC 60000
#define RUN_MSEC  120000

#define MIB (1024u * 1024u)

/* Fails with the error's message unless CALL, whose last argument is &error, succeeds. */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        g_autoptr(GError) error = NULL;                                                            \
        if (!(call))                                                                               \
            fail_msg("%s", error->message);                                                        \
    } while (0)

typedef struct {
    GuestVm *vm;
    GuestPeer *peer;
} Fixture;

/* *STATE comes as the guest's options and becomes the fixture: booted, with a session. */
static int boot(void **state)
{
    Fixture *fixture = g_new0(Fixture, 1);
    g_autoptr(GError) error = NULL;

    fixture->vm = guest_vm_start(*state, &error);
    *state = fixture;
    if (fixture->vm == NULL) {
        print_error("%s\n", error->message);
        return -1;
    }
    fixture->peer = guest_peer_new(guest_vm_socket_path(fixture->vm), 200);
    if (guest_peer_connect(fixture->peer, BOOT_MSEC, &error))
        return 0;
    g_autofree char *console = guest_vm_console(fixture->vm);
    print_error("%s; console:\n%s\n", error->message, console);
    return -1;
}

static int switch_off(void **state)
{
    Fixture *fixture = *state;

    g_clear_pointer(&fixture->peer, guest_peer_free);
    g_clear_pointer(&fixture->vm, guest_vm_free);
    g_free(fixture);
    return 0;
}

/* ---- tasks */

typedef struct {
    Berth__GuestTask task;
    Berth__BlobRef blobs[8];
    Berth__GuestFile files[6];
    Berth__GuestFile *inputs[6];
    GBytes *contents[8]; /* borrowed, in the order of the transfer */
    gsize n_contents;
} TestTask;

static void task_init(TestTask *test, const char *const *command)
{
    memset(test, 0, sizeof *test);
    berth__guest_task__init(&test->task);
    test->task.command = (char **)command;
    test->task.n_command = g_strv_length((char **)command);
    test->task.uid = 1234;
    test->task.gid = 2345;
    test->task.user = (char *)"alice";
    test->task.hostname = (char *)"job-7";
    test->task.inputs = test->inputs;
}

static Berth__BlobRef *task_add_blob(TestTask *test, GBytes *content)
{
    Berth__BlobRef *blob = &test->blobs[test->n_contents];

    berth__blob_ref__init(blob);
    blob->size_bytes = g_bytes_get_size(content);
    test->contents[test->n_contents++] = content;
    return blob;
}

static void task_add_input(TestTask *test, const char *path, guint32 mode, GBytes *content)
{
    Berth__GuestFile *file = &test->files[test->task.n_inputs];

    berth__guest_file__init(file);
    file->path = (char *)path;
    file->mode = mode;
    file->blob = task_add_blob(test, content);
    test->inputs[test->task.n_inputs++] = file;
}

static void submit(Fixture *fixture, TestTask *test)
{
    assert_ok(
        guest_peer_submit(fixture->peer, &test->task, test->contents, test->n_contents, &error));
}

static void submit_shell(Fixture *fixture, const char *script)
{
    const char *const command[] = {"sh", "-c", script, NULL};
    TestTask test;

    task_init(&test, command);
    submit(fixture, &test);
}

static const Berth__Exit *run_shell(Fixture *fixture, const char *script)
{
    submit_shell(fixture, script);
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    return fixture->peer->ended->exit;
}

static void assert_output(const Fixture *fixture, int stream, const char *expected)
{
    const GByteArray *output = fixture->peer->output[stream];
    g_autofree char *text =
        output->len > 0 ? g_strndup((const char *)output->data, output->len) : g_strdup("");

    if (strcmp(text, expected) != 0 && fixture->peer->ended != NULL)
        print_error("status %u, error: %s\n", fixture->peer->ended->exit->status,
                    fixture->peer->ended->exit->error);
    assert_string_equal(text, expected);
}

static GBytes *bytes_random(gsize size, guint32 seed)
{
    g_autoptr(GRand) random = g_rand_new_with_seed(seed);
    guint8 *bytes = g_malloc(size);

    for (gsize i = 0; i < size; i++)
        bytes[i] = (guint8)g_rand_int(random);
    return g_bytes_new_take(bytes, size);
}

static char *bytes_sha256(GBytes *bytes)
{
    return g_compute_checksum_for_bytes(G_CHECKSUM_SHA256, bytes);
}

/* ---- the command and what it finds */

static void command_runs_as_the_user_in_its_directory(void **state)
{
    Fixture *fixture = *state;
    const char *const command[] = {"./hello.sh", "one", "two words", NULL};
    static const char script_text[] =
        "#!/bin/sh\n"
        "echo \"$0|$#|$1|$2\"\n"
        "id -u; id -g; id -G; whoami; pwd; hostname; echo ~ $HOME $USER $LOGNAME $SHELL\n"
        "echo \"$COLOUR|$EMPTY|$BERTH_JOB_ID|$PATH\"\n"
        "cat data/in.txt; stat -c '%a %u %g %n' data data/in.txt .\n"
        "readlink /proc/self/fd/0; ls /proc/self/fd | wc -l; cat empty | wc -c\n"
        "awk '/SigBlk|SigIgn/{print $2}' /proc/self/status; awk '{print $19}' /proc/self/stat; cat "
        "/proc/self/oom_score_adj\n"
        "cat /proc/self/cgroup; ping -c 1 job-7 >/dev/null 2>&1 || grep job-7 /etc/hosts\n"
        "touch mine; echo to-stderr >&2; exit 3\n";
    static const char environment_text[] = "COLOUR=blue\0EMPTY=\0BERTH_JOB_ID=0\0";
    g_autoptr(GBytes) environment =
        g_bytes_new_static(environment_text, sizeof environment_text - 1);
    g_autoptr(GBytes) script = g_bytes_new_static(script_text, sizeof script_text - 1);
    g_autoptr(GBytes) input = g_bytes_new_static("input\n", 6);
    g_autoptr(GBytes) empty = g_bytes_new_static("", 0);
    guint32 groups[] = {2345, 3456};
    const char *extra[] = {"BERTH_JOB_ID=7"};
    TestTask test;

    task_init(&test, command);
    test.task.environment = task_add_blob(&test, environment);
    test.task.script = task_add_blob(&test, script);
    task_add_input(&test, "data/in.txt", 0640, input);
    task_add_input(&test, "empty", 0600, empty);
    test.task.groups = groups;
    test.task.n_groups = G_N_ELEMENTS(groups);
    test.task.extra_environment = (char **)extra;
    test.task.n_extra_environment = G_N_ELEMENTS(extra);
    submit(fixture, &test);
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));

    assert_output(fixture, 0,
                  "/run/berth/script/hello.sh|2|one|two words\n"
                  "1234\n2345\n2345 3456\nalice\n/work\njob-7\n/work /work alice alice /bin/sh\n"
                  "blue||7|/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
                  "input\n"
                  "755 1234 2345 data\n640 1234 2345 data/in.txt\n755 1234 2345 .\n"
                  "/dev/null\n4\n0\n"
                  "0000000000000000\n0000000000000000\n0\n0\n"
                  "0::/job\n127.0.1.1 job-7\n");
    assert_output(fixture, 1, "to-stderr\n");
    const Berth__FromGuest__Ended *ended = fixture->peer->ended;
    assert_int_equal(ended->exit->status, 3);
    assert_int_equal(ended->exit->signal, 0);
    assert_int_equal(ended->exit->oom_kills, 0);
    assert_false(ended->exit->disk_full);
    assert_string_equal(ended->exit->error, "");
    assert_true(fixture->peer->started);
    /* The guest took over the host's clock, which Run told it. */
    assert_true((gint64)fixture->peer->start_usec >= fixture->peer->run_usec);
    assert_true(ended->end_usec >= fixture->peer->start_usec);
    assert_true((gint64)ended->end_usec <= g_get_real_time());
    assert_true(ended->usage->guest_cpu_usec > 0);
    assert_in_range(ended->usage->memory_total_mib, 60, 96);
    assert_true(ended->usage->memory_peak_mib > 0);
}

static void disk_is_grown_to_the_whole_device(void **state)
{
    const Berth__Exit *end =
        run_shell(*state, "df -m / | awk 'NR==2{exit !($2 > 36 && $4 > 28)}'; echo $?");

    assert_int_equal(end->status, 0);
    assert_output(*state, 0, "0\n");
}

static void large_inputs_arrive_whole(void **state)
{
    Fixture *fixture = *state;
    const char *const command[] = {"sh", "-c", "sha256sum < a; sha256sum < deep/er/b", NULL};
    g_autoptr(GBytes) first = bytes_random(3 * MIB + 17, 1);
    g_autoptr(GBytes) second = bytes_random(MIB, 2);
    g_autofree char *first_sum = bytes_sha256(first);
    g_autofree char *second_sum = bytes_sha256(second);
    g_autofree char *expected = g_strdup_printf("%s  -\n%s  -\n", first_sum, second_sum);
    TestTask test;

    task_init(&test, command);
    task_add_input(&test, "a", 0644, first);
    task_add_input(&test, "deep/er/b", 0644, second);
    submit(fixture, &test);
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    assert_output(fixture, 0, expected);
    assert_int_equal(fixture->peer->files_done->len, 2);
}

/* The host is cut off in mid-frame, and the next one goes on where the guest says it stands. */
static void transfer_cut_in_mid_frame_is_continued(void **state)
{
    Fixture *fixture = *state;
    GuestPeer *peer = fixture->peer;
    const char *const command[] = {"sha256sum", "a", NULL};
    g_autoptr(GBytes) content = bytes_random(2 * MIB, 3);
    g_autofree char *sum = bytes_sha256(content);
    g_autofree char *expected = g_strdup_printf("%s  a\n", sum);
    const gsize cuts[] = {7, 100, 200 * 1024, 256 * 1024 + 15};
    TestTask test;

    task_init(&test, command);
    task_add_input(&test, "a", 0644, content);
    assert_ok(guest_peer_send_task(peer, &test.task, &error));
    for (gsize i = 0; i < G_N_ELEMENTS(cuts); i++) {
        Berth__ToGuest message = BERTH__TO_GUEST__INIT;
        Berth__ToGuest__FileData data = BERTH__TO_GUEST__FILE_DATA__INIT;
        gsize from;

        from = peer->state->file_bytes;
        data.offset = from;
        data.data.data = (guint8 *)g_bytes_get_data(content, NULL) + from;
        data.data.len = 256 * 1024;
        message.body_case = BERTH__TO_GUEST__BODY_FILE;
        message.file = &data;
        assert_ok(guest_peer_send(peer, &message, 0, &error));
        data.offset += data.data.len;
        data.data.data += data.data.len;
        assert_ok(guest_peer_send(peer, &message, cuts[i], &error));
        assert_ok(guest_peer_connect(peer, BOOT_MSEC, &error));
        assert_true(peer->state->has_task);
        assert_true(peer->state->file_bytes >= from);
    }
    assert_ok(guest_peer_send_file(peer, 0, peer->state->file_bytes, content, &error));
    assert_ok(guest_peer_send_run(peer, &error));
    assert_ok(guest_peer_wait_ended(peer, RUN_MSEC, &error));
    assert_output(fixture, 0, expected);
}

static gboolean has_failure(const GuestPeer *peer, gpointer data)
{
    return peer->failure != NULL;
}

static void input_without_room_is_a_failure_that_says_so(void **state)
{
    Fixture *fixture = *state;
    const char *const command[] = {"true", NULL};
    g_autoptr(GBytes) content = bytes_random(60 * MIB, 4);
    TestTask test;

    task_init(&test, command);
    task_add_input(&test, "big", 0644, content);
    submit(fixture, &test);
    assert_ok(guest_peer_wait(fixture->peer, has_failure, NULL, RUN_MSEC, &error));
    assert_non_null(strstr(fixture->peer->failure, "no space in the guest for 'big'"));
    assert_true(fixture->peer->disk_is_full);
    /* It is told to the next host too. */
    g_clear_pointer(&fixture->peer->failure, g_free);
    assert_ok(guest_peer_connect(fixture->peer, BOOT_MSEC, &error));
    assert_ok(guest_peer_wait(fixture->peer, has_failure, NULL, RUN_MSEC, &error));
}

/* ---- ends */

static void missing_command_ends_as_in_a_shell(void **state)
{
    Fixture *fixture = *state;
    const char *const command[] = {"no-such-command", NULL};
    TestTask test;

    task_init(&test, command);
    submit(fixture, &test);
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    assert_int_equal(fixture->peer->ended->exit->status, 127);
    assert_non_null(strstr(fixture->peer->ended->exit->error, "'no-such-command'"));
    assert_false(fixture->peer->started);
}

static void file_that_is_not_executable_ends_as_in_a_shell(void **state)
{
    Fixture *fixture = *state;
    const char *const command[] = {"/etc/passwd", NULL};
    TestTask test;

    task_init(&test, command);
    submit(fixture, &test);
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    assert_int_equal(fixture->peer->ended->exit->status, 126);
    assert_non_null(strstr(fixture->peer->ended->exit->error, "not executable"));
}

static void script_with_missing_interpreter_says_so(void **state)
{
    Fixture *fixture = *state;
    const char *const command[] = {"x.py", NULL};
    static const char text[] = "#! /usr/bin/python9 -u\n";
    g_autoptr(GBytes) script = g_bytes_new_static(text, sizeof text - 1);
    TestTask test;

    task_init(&test, command);
    test.task.script = task_add_blob(&test, script);
    submit(fixture, &test);
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    assert_int_equal(fixture->peer->ended->exit->status, 127);
    assert_non_null(strstr(fixture->peer->ended->exit->error, "'/usr/bin/python9'"));
}

static void script_without_interpreter_line_is_run_by_the_shell(void **state)
{
    Fixture *fixture = *state;
    const char *const command[] = {"job", "x", NULL};
    static const char text[] = "echo $1 $#\n";
    g_autoptr(GBytes) script = g_bytes_new_static(text, sizeof text - 1);
    TestTask test;

    task_init(&test, command);
    test.task.script = task_add_blob(&test, script);
    submit(fixture, &test);
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    assert_output(fixture, 0, "x 1\n");
}

static gboolean has_output(const GuestPeer *peer, gpointer bytes)
{
    return peer->output[0]->len >= GPOINTER_TO_SIZE(bytes);
}

static void signal_reaches_all_processes_of_the_job(void **state)
{
    Fixture *fixture = *state;

    submit_shell(fixture,
                 "sh -c 'trap \"echo child; exit\" TERM; echo r; while :; do sleep 0.1; done' &"
                 "echo r; wait");
    assert_ok(guest_peer_wait(fixture->peer, has_output, GSIZE_TO_POINTER(4), RUN_MSEC, &error));
    assert_ok(guest_peer_send_signal(fixture->peer, SIGTERM, &error));
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    assert_int_equal(fixture->peer->ended->exit->signal, SIGTERM);
    assert_output(fixture, 0, "r\nr\nchild\n");
}

/* What is left in the background may write for a moment; then the job is over. */
static void leftover_processes_end_with_the_command(void **state)
{
    const Berth__Exit *end =
        run_shell(*state, "(sleep 0.2; echo late) & sleep 1000 & sleep 1000 >&- 2>&- & echo now");

    assert_int_equal(end->status, 0);
    assert_output(*state, 0, "now\nlate\n");
}

static void memory_beyond_the_limit_is_counted_as_oom_kill(void **state)
{
    Fixture *fixture = *state;
    const Berth__Exit *end = run_shell(fixture, "exec tail /dev/zero");

    assert_int_equal(end->signal, SIGKILL);
    assert_true(end->oom_kills >= 1);
    assert_true(fixture->peer->ended->usage->memory_peak_mib >= 50);
}

static void full_disk_is_told_with_the_end(void **state)
{
    Fixture *fixture = *state;
    const Berth__Exit *end = run_shell(fixture, "exec dd if=/dev/zero of=fill bs=64k");

    assert_int_equal(end->status, 1);
    assert_true(end->disk_full);
    assert_non_null(g_strstr_len((const char *)fixture->peer->output[1]->data,
                                 fixture->peer->output[1]->len, "No space left on device"));
}

static gboolean has_more_usage(const GuestPeer *peer, gpointer count)
{
    return peer->usage_count >= GPOINTER_TO_UINT(count);
}

/* The guest goes on answering, and the bomb can be ended. */
static void fork_bomb_does_not_starve_pid_1(void **state)
{
    Fixture *fixture = *state;

    submit_shell(fixture,
                 "(b() { b | b & }; while :; do b; done) 2>/dev/null & echo go; exec sleep 1000");
    assert_ok(guest_peer_wait(fixture->peer, has_output, GSIZE_TO_POINTER(3), RUN_MSEC, &error));
    assert_ok(guest_peer_wait(fixture->peer, has_more_usage,
                              GUINT_TO_POINTER(fixture->peer->usage_count + 10), RUN_MSEC, &error));
    assert_ok(guest_peer_send_signal(fixture->peer, SIGKILL, &error));
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    assert_int_equal(fixture->peer->ended->exit->signal, SIGKILL);
}

static void power_off_ends_the_machine(void **state)
{
    Fixture *fixture = *state;

    run_shell(fixture, "true");
    assert_ok(guest_peer_send_power_off(fixture->peer, &error));
    assert_ok(guest_vm_wait_end(fixture->vm, RUN_MSEC, &error));
}

static void power_off_during_the_command_ends_the_machine(void **state)
{
    Fixture *fixture = *state;

    submit_shell(fixture, "echo r; while :; do :; done");
    assert_ok(guest_peer_wait(fixture->peer, has_output, GSIZE_TO_POINTER(2), RUN_MSEC, &error));
    assert_ok(guest_peer_send_power_off(fixture->peer, &error));
    assert_ok(guest_vm_wait_end(fixture->vm, RUN_MSEC, &error));
}

/* ---- the channel */

static GByteArray *lines(guint count)
{
    GByteArray *text = g_byte_array_new();

    for (guint i = 1; i <= count; i++) {
        char line[16];

        g_byte_array_append(text, (const guint8 *)line,
                            (guint)g_snprintf(line, sizeof line, "%u\n", i));
    }
    return text;
}

static void assert_same_bytes(const GByteArray *a, const GByteArray *b)
{
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->data, b->data, a->len);
}

/* 20 MB, with the host gone in mid-stream again and again. */
static void output_survives_cut_connections(void **state)
{
    Fixture *fixture = *state;
    GuestPeer *peer = fixture->peer;
    g_autoptr(GByteArray) out = lines(2800000);
    g_autoptr(GByteArray) err = lines(300000);

    submit_shell(fixture, "seq 300000 >&2 & seq 2800000; wait");
    for (guint cut = 1; cut <= 12; cut++) {
        peer->hold_acks = cut % 3 == 0; /* some hosts die before they acknowledge */
        assert_ok(guest_peer_wait(peer, has_output, GSIZE_TO_POINTER(peer->output[0]->len + 100000),
                                  RUN_MSEC, &error));
        assert_ok(guest_peer_connect(peer, BOOT_MSEC, &error));
    }
    peer->hold_acks = FALSE;
    assert_ok(guest_peer_connect(peer, BOOT_MSEC, &error));
    assert_ok(guest_peer_wait_ended(peer, RUN_MSEC, &error));
    assert_int_equal(peer->ended->exit->status, 0);
    assert_same_bytes(peer->output[0], out);
    assert_same_bytes(peer->output[1], err);
}

/* A command that writes more than the buffers hold waits for the host, and loses nothing. */
static void output_waits_for_an_absent_host(void **state)
{
    Fixture *fixture = *state;
    g_autoptr(GByteArray) out = lines(700000);

    submit_shell(fixture, "seq 700000");
    guest_peer_cut(fixture->peer);
    g_usleep(G_USEC_PER_SEC); /* time without a host, which nothing announces */
    assert_ok(guest_peer_connect(fixture->peer, BOOT_MSEC, &error));
    assert_false(fixture->peer->state->ended);
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    assert_same_bytes(fixture->peer->output[0], out);
}

static gboolean has_ended_again(const GuestPeer *peer, gpointer data)
{
    return peer->ended_count >= GPOINTER_TO_UINT(data);
}

static void end_is_told_to_each_new_host(void **state)
{
    Fixture *fixture = *state;
    GuestPeer *peer = fixture->peer;

    run_shell(fixture, "echo x; exit 5");
    for (guint i = 2; i < 5; i++) {
        assert_ok(guest_peer_connect(peer, BOOT_MSEC, &error));
        assert_true(peer->state->ended);
        assert_int_equal(peer->state->start_usec, peer->start_usec);
        assert_ok(guest_peer_wait(peer, has_ended_again, GUINT_TO_POINTER(i), RUN_MSEC, &error));
        assert_int_equal(peer->ended->exit->status, 5);
    }
    assert_output(fixture, 0, "x\n");
}

/* ---- the boot */

static void disk_without_file_system_is_a_failure(void **state)
{
    Fixture *fixture = *state;

    assert_ok(guest_peer_wait(fixture->peer, has_failure, NULL, RUN_MSEC, &error));
    assert_non_null(strstr(fixture->peer->failure, "cannot mount the image"));
    assert_ok(guest_peer_send_power_off(fixture->peer, &error));
    assert_ok(guest_vm_wait_end(fixture->vm, RUN_MSEC, &error));
    g_autofree char *console = guest_vm_console(fixture->vm);
    assert_non_null(strstr(console, "berth-init: cannot mount the image"));
}

static void probe_answers_on_the_console_and_ends(void **state)
{
    static const GuestVmOptions options = {.command_line = "berth.probe"};
    g_autoptr(GuestVm) vm = NULL;

    assert_ok((vm = guest_vm_start(&options, &error)) != NULL);
    assert_ok(guest_vm_wait_end(vm, BOOT_MSEC, &error));
    g_autofree char *console = guest_vm_console(vm);
    assert_non_null(strstr(console, "berth-probe-ok\n") != NULL
                        ? console
                        : strstr(console, "berth-probe-ok\r\n"));
}

static GuestVmOptions usual = {0};
static GuestVmOptions small = {.memory_mib = 64};
static GuestVmOptions broken = {.disk_is_broken = TRUE};

#define guest_test(function, options)                                                              \
    {                                                                                              \
#function, function, boot, switch_off, &(options)                                          \
    }

int main(void)
{
    const char *missing = guest_vm_missing();
    const struct CMUnitTest tests[] = {
        guest_test(command_runs_as_the_user_in_its_directory, usual),
        guest_test(disk_is_grown_to_the_whole_device, usual),
        guest_test(large_inputs_arrive_whole, small),
        guest_test(transfer_cut_in_mid_frame_is_continued, usual),
        guest_test(input_without_room_is_a_failure_that_says_so, usual),
        guest_test(missing_command_ends_as_in_a_shell, usual),
        guest_test(file_that_is_not_executable_ends_as_in_a_shell, usual),
        guest_test(script_with_missing_interpreter_says_so, usual),
        guest_test(script_without_interpreter_line_is_run_by_the_shell, usual),
        guest_test(signal_reaches_all_processes_of_the_job, usual),
        guest_test(leftover_processes_end_with_the_command, usual),
        guest_test(memory_beyond_the_limit_is_counted_as_oom_kill, usual),
        guest_test(full_disk_is_told_with_the_end, usual),
        guest_test(fork_bomb_does_not_starve_pid_1, small),
        guest_test(power_off_ends_the_machine, usual),
        guest_test(power_off_during_the_command_ends_the_machine, usual),
        guest_test(output_survives_cut_connections, small),
        guest_test(output_waits_for_an_absent_host, usual),
        guest_test(end_is_told_to_each_new_host, usual),
        guest_test(disk_without_file_system_is_a_failure, broken),
        cmocka_unit_test(probe_answers_on_the_console_and_ends),
    };

    if (missing != NULL) {
        print_message("skipped: this machine lacks %s\n", missing);
        return 77;
    }
    if (g_getenv("BERTH_TEST_FILTER") != NULL)
        cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
