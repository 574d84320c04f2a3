/* SPDX-License-Identifier: Apache-2.0 */
/* berth-init for real: the initramfs boots under QEMU, with a scripted host on its channel. What a command
 * finds, how it ends, and guests that do not come so far. */
#include "tests/lib/guest_fixture.h"

#include <signal.h>

/* ---- the command and what it finds */

static void command_runs_as_the_user_in_its_directory(void **state)
{
    GuestFixture *fixture = *state;
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
    GuestTask test;

    guest_task_init(&test, command);
    test.task.environment = guest_task_add_blob(&test, environment);
    test.task.script = guest_task_add_blob(&test, script);
    guest_task_add_input(&test, "data/in.txt", 0640, input);
    guest_task_add_input(&test, "empty", 0600, empty);
    test.task.groups = groups;
    test.task.n_groups = G_N_ELEMENTS(groups);
    test.task.extra_environment = (char **)extra;
    test.task.n_extra_environment = G_N_ELEMENTS(extra);
    guest_fixture_submit(fixture, &test);
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));

    guest_fixture_assert_output(
        fixture, 0,
        "/run/berth/script/hello.sh|2|one|two words\n"
        "1234\n2345\n2345 3456\nalice\n/work\njob-7\n/work /work alice alice /bin/sh\n"
        "blue||7|/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
        "input\n"
        "755 1234 2345 data\n640 1234 2345 data/in.txt\n755 1234 2345 .\n"
        "/dev/null\n4\n0\n"
        "0000000000000000\n0000000000000000\n0\n0\n"
        "0::/job\n127.0.1.1 job-7\n");
    guest_fixture_assert_output(fixture, 1, "to-stderr\n");
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

static void submit_as_root(GuestFixture *fixture, const char *const *command)
{
    GuestTask test;

    guest_task_init(&test, command);
    test.task.uid = test.task.gid = 0;
    test.task.user = (char *)"root";
    guest_fixture_submit(fixture, &test);
}

/* Nothing but the host's word of its time can bring it back. */
static void clock_that_the_job_sets_is_put_right(void **state)
{
    GuestFixture *fixture = *state;
    const char *const command[] = {
        "sh", "-c",
        "date -s @1000000000 >/dev/null; until [ $(date +%s) -gt 1500000000 ]; do sleep 1; done\n"
        "echo forward\n"
        "date -s @3000000000 >/dev/null; until [ $(date +%s) -lt 2500000000 ]; do sleep 1; done\n"
        "echo back",
        NULL};

    submit_as_root(fixture, command);
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    guest_fixture_assert_output(fixture, 0, "forward\nback\n");
    guest_fixture_assert_output(fixture, 1, "");
    assert_true(fixture->peer->clock_questions >= 3); /* at Hello, and for each of these */
    assert_true((gint64)fixture->peer->start_usec >= fixture->peer->run_usec);
    assert_true(fixture->peer->ended->end_usec >= fixture->peer->start_usec);
    /* A clock that was ahead stays so by a question's way at most. */
    assert_true((gint64)fixture->peer->ended->end_usec <= g_get_real_time() + 10 * G_USEC_PER_SEC);
}

static void disk_is_grown_to_the_whole_device(void **state)
{
    const Berth__Exit *end = guest_fixture_run_shell(
        *state, "df -m / | awk 'NR==2{exit !($2 > 36 && $4 > 28)}'; echo $?");

    assert_int_equal(end->status, 0);
    guest_fixture_assert_output(*state, 0, "0\n");
}

static void large_inputs_arrive_whole(void **state)
{
    GuestFixture *fixture = *state;
    const char *const command[] = {"sh", "-c", "sha256sum < a; sha256sum < deep/er/b", NULL};
    g_autoptr(GBytes) first = guest_bytes_random(3 * MIB + 17, 1);
    g_autoptr(GBytes) second = guest_bytes_random(MIB, 2);
    g_autofree char *first_sum = guest_bytes_sha256(first);
    g_autofree char *second_sum = guest_bytes_sha256(second);
    g_autofree char *expected = g_strdup_printf("%s  -\n%s  -\n", first_sum, second_sum);
    GuestTask test;

    guest_task_init(&test, command);
    guest_task_add_input(&test, "a", 0644, first);
    guest_task_add_input(&test, "deep/er/b", 0644, second);
    guest_fixture_submit(fixture, &test);
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    guest_fixture_assert_output(fixture, 0, expected);
    assert_int_equal(fixture->peer->files_done->len, 2);
}

static void input_without_room_is_a_failure_that_says_so(void **state)
{
    GuestFixture *fixture = *state;
    const char *const command[] = {"true", NULL};
    g_autoptr(GBytes) content = guest_bytes_random(60 * MIB, 4);
    GuestTask test;

    guest_task_init(&test, command);
    guest_task_add_input(&test, "big", 0644, content);
    guest_fixture_submit(fixture, &test);
    assert_ok(guest_peer_wait(fixture->peer, guest_fixture_has_failure, NULL, RUN_MSEC, &error));
    assert_non_null(strstr(fixture->peer->failure, "no space in the guest for 'big'"));
    assert_true(fixture->peer->disk_is_full);
    /* It is told to the next host too. */
    g_clear_pointer(&fixture->peer->failure, g_free);
    assert_ok(guest_peer_connect(fixture->peer, BOOT_MSEC, &error));
    assert_ok(guest_peer_wait(fixture->peer, guest_fixture_has_failure, NULL, RUN_MSEC, &error));
}

/* ---- ends */

static void missing_command_ends_as_in_a_shell(void **state)
{
    GuestFixture *fixture = *state;
    const char *const command[] = {"no-such-command", NULL};
    GuestTask test;

    guest_task_init(&test, command);
    guest_fixture_submit(fixture, &test);
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    assert_int_equal(fixture->peer->ended->exit->status, 127);
    assert_non_null(strstr(fixture->peer->ended->exit->error, "'no-such-command'"));
    assert_false(fixture->peer->started);
}

static void file_that_is_not_executable_ends_as_in_a_shell(void **state)
{
    GuestFixture *fixture = *state;
    const char *const command[] = {"/etc/passwd", NULL};
    GuestTask test;

    guest_task_init(&test, command);
    guest_fixture_submit(fixture, &test);
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    assert_int_equal(fixture->peer->ended->exit->status, 126);
    assert_non_null(strstr(fixture->peer->ended->exit->error, "not executable"));
}

static void script_with_missing_interpreter_says_so(void **state)
{
    GuestFixture *fixture = *state;
    const char *const command[] = {"x.py", NULL};
    static const char text[] = "#! /usr/bin/python9 -u\n";
    g_autoptr(GBytes) script = g_bytes_new_static(text, sizeof text - 1);
    GuestTask test;

    guest_task_init(&test, command);
    test.task.script = guest_task_add_blob(&test, script);
    guest_fixture_submit(fixture, &test);
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    assert_int_equal(fixture->peer->ended->exit->status, 127);
    assert_non_null(strstr(fixture->peer->ended->exit->error, "'/usr/bin/python9'"));
}

static void script_without_interpreter_line_is_run_by_the_shell(void **state)
{
    GuestFixture *fixture = *state;
    const char *const command[] = {"job", "x", NULL};
    static const char text[] = "echo $1 $#\n";
    g_autoptr(GBytes) script = g_bytes_new_static(text, sizeof text - 1);
    GuestTask test;

    guest_task_init(&test, command);
    test.task.script = guest_task_add_blob(&test, script);
    guest_fixture_submit(fixture, &test);
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    guest_fixture_assert_output(fixture, 0, "x 1\n");
}

static void signal_reaches_all_processes_of_the_job(void **state)
{
    GuestFixture *fixture = *state;

    guest_fixture_submit_shell(
        fixture, "sh -c 'trap \"echo child; exit\" TERM; echo r; while :; do sleep 0.1; done' &"
                 "echo r; wait");
    assert_ok(guest_peer_wait(fixture->peer, guest_fixture_has_output, GSIZE_TO_POINTER(4),
                              RUN_MSEC, &error));
    assert_ok(guest_peer_send_signal(fixture->peer, SIGTERM, &error));
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    assert_int_equal(fixture->peer->ended->exit->signal, SIGTERM);
    guest_fixture_assert_output(fixture, 0, "r\nr\nchild\n");
}

/* What is left in the background may write for a moment; then the job is over. */
static void leftover_processes_end_with_the_command(void **state)
{
    const Berth__Exit *end = guest_fixture_run_shell(
        *state, "(sleep 0.2; echo late) & sleep 1000 & sleep 1000 >&- 2>&- & echo now");

    assert_int_equal(end->status, 0);
    guest_fixture_assert_output(*state, 0, "now\nlate\n");
}

static void memory_beyond_the_limit_is_counted_as_oom_kill(void **state)
{
    GuestFixture *fixture = *state;
    const Berth__Exit *end = guest_fixture_run_shell(fixture, "exec tail /dev/zero");

    assert_int_equal(end->signal, SIGKILL);
    assert_true(end->oom_kills >= 1);
    assert_true(fixture->peer->ended->usage->memory_peak_mib >= 50);
}

static gboolean has_more_usage(const GuestPeer *peer, gpointer count)
{
    return peer->usage_count >= GPOINTER_TO_UINT(count);
}

/* The kernel's count of huge pages that were taken for files, and how many are. */
#define HUGE_PAGES                                                                                 \
    "taken() { sed -n 's/^thp_file_alloc //p' /proc/vmstat; }\n"                                   \
    "held() { sed -n 's/^ShmemHugePages: *//p' /proc/meminfo; }\n"

static void free_memory_that_the_host_holds_is_taken_and_let_go(void **state)
{
    GuestFixture *fixture = *state;

    guest_fixture_submit_shell(fixture, HUGE_PAGES
                               "before=$(taken); echo go\n"
                               "until [ $(($(taken) - before)) -ge 30 ]; do usleep 1000; done\n"
                               "until [ \"$(held)\" = '0 kB' ]; do usleep 1000; done; echo given");
    assert_ok(guest_peer_wait(fixture->peer, guest_fixture_has_output, GSIZE_TO_POINTER(3),
                              RUN_MSEC, &error));
    assert_ok(guest_peer_send_give_back(fixture->peer, 1000, &error));
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    guest_fixture_assert_output(fixture, 0, "go\ngiven\n");
    assert_int_equal(fixture->peer->ended->exit->oom_kills, 0);
    /* Nobody takes it for the job's need. */
    assert_in_range(fixture->peer->ended->usage->memory_peak_mib, 1, 100);
}

static void free_memory_stays_where_the_host_holds_what_is_used(void **state)
{
    GuestFixture *fixture = *state;

    guest_fixture_submit_shell(fixture, HUGE_PAGES
                               "trap 'echo $(($(taken) - before)); exit' TERM\n"
                               "before=$(taken); echo go; while :; do usleep 10000; done");
    assert_ok(guest_peer_wait(fixture->peer, guest_fixture_has_output, GSIZE_TO_POINTER(3),
                              RUN_MSEC, &error));
    assert_ok(guest_peer_send_give_back(fixture->peer, 200, &error));
    assert_ok(guest_peer_wait(fixture->peer, has_more_usage,
                              GUINT_TO_POINTER(fixture->peer->usage_count + 5), RUN_MSEC, &error));
    assert_ok(guest_peer_send_signal(fixture->peer, SIGTERM, &error));
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    guest_fixture_assert_output(fixture, 0, "go\n0\n");
}

static gboolean has_ended_or_more_usage(const GuestPeer *peer, gpointer count)
{
    return peer->ended != NULL || has_more_usage(peer, count);
}

/* A job of root can stop all processes but PID 1, which waits for none of them. */
static void job_ends_though_what_takes_free_memory_is_stopped(void **state)
{
    GuestFixture *fixture = *state;
    const char *const command[] = {
        "sh", "-c",
        "look() {\n"
        "    while read -r name value unit; do\n"
        "        case $name in ShmemHugePages:) held=$value;; esac\n"
        "    done </proc/meminfo\n"
        "}\n"
        "echo go\n"
        "while look; do\n"
        "    [ $held != 0 ] || continue\n"
        "    kill -STOP -1; look\n"
        "    [ $held = 0 ] || break\n" /* it had ended just before that */
        "done\n"
        "echo held",
        NULL};

    submit_as_root(fixture, command);
    assert_ok(guest_peer_wait(fixture->peer, guest_fixture_has_output, GSIZE_TO_POINTER(3),
                              RUN_MSEC, &error));
    while (fixture->peer->ended == NULL) {
        gpointer next = GUINT_TO_POINTER(fixture->peer->usage_count + 1);
        assert_ok(guest_peer_send_give_back(fixture->peer, 1000, &error));
        assert_ok(guest_peer_wait(fixture->peer, has_ended_or_more_usage, next, RUN_MSEC, &error));
    }
    guest_fixture_assert_output(fixture, 0, "go\nheld\n");
}

static void full_disk_is_told_with_the_end(void **state)
{
    GuestFixture *fixture = *state;
    const Berth__Exit *end =
        guest_fixture_run_shell(fixture, "exec dd if=/dev/zero of=fill bs=64k");

    assert_int_equal(end->status, 1);
    assert_true(end->disk_full);
    assert_non_null(g_strstr_len((const char *)fixture->peer->output[1]->data,
                                 fixture->peer->output[1]->len, "No space left on device"));
}

/* The guest goes on answering, and the bomb can be ended. */
static void fork_bomb_does_not_starve_pid_1(void **state)
{
    GuestFixture *fixture = *state;

    guest_fixture_submit_shell(
        fixture, "(b() { b | b & }; while :; do b; done) 2>/dev/null & echo go; exec sleep 1000");
    assert_ok(guest_peer_wait(fixture->peer, guest_fixture_has_output, GSIZE_TO_POINTER(3),
                              RUN_MSEC, &error));
    assert_ok(guest_peer_wait(fixture->peer, has_more_usage,
                              GUINT_TO_POINTER(fixture->peer->usage_count + 10), RUN_MSEC, &error));
    assert_ok(guest_peer_send_signal(fixture->peer, SIGKILL, &error));
    assert_ok(guest_peer_wait_ended(fixture->peer, RUN_MSEC, &error));
    assert_int_equal(fixture->peer->ended->exit->signal, SIGKILL);
}

static void power_off_ends_the_machine(void **state)
{
    GuestFixture *fixture = *state;

    guest_fixture_run_shell(fixture, "true");
    assert_ok(guest_peer_send_power_off(fixture->peer, &error));
    assert_ok(guest_vm_wait_end(fixture->vm, RUN_MSEC, &error));
}

static void power_off_during_the_command_ends_the_machine(void **state)
{
    GuestFixture *fixture = *state;

    guest_fixture_submit_shell(fixture, "echo r; while :; do :; done");
    assert_ok(guest_peer_wait(fixture->peer, guest_fixture_has_output, GSIZE_TO_POINTER(2),
                              RUN_MSEC, &error));
    assert_ok(guest_peer_send_power_off(fixture->peer, &error));
    assert_ok(guest_vm_wait_end(fixture->vm, RUN_MSEC, &error));
}

/* ---- the boot */

static void disk_without_file_system_is_a_failure(void **state)
{
    GuestFixture *fixture = *state;

    assert_ok(guest_peer_wait(fixture->peer, guest_fixture_has_failure, NULL, RUN_MSEC, &error));
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
static GuestVmOptions roomy = {.memory_mib = 256, .vcpus = 2};
static GuestVmOptions small = {.memory_mib = 64};
static GuestVmOptions broken = {.disk_is_broken = TRUE};

int main(void)
{
    const char *missing = guest_vm_missing();
    const struct CMUnitTest tests[] = {
        guest_test(command_runs_as_the_user_in_its_directory, usual),
        guest_test(clock_that_the_job_sets_is_put_right, usual),
        guest_test(disk_is_grown_to_the_whole_device, usual),
        guest_test(large_inputs_arrive_whole, small),
        guest_test(input_without_room_is_a_failure_that_says_so, usual),
        guest_test(missing_command_ends_as_in_a_shell, usual),
        guest_test(file_that_is_not_executable_ends_as_in_a_shell, usual),
        guest_test(script_with_missing_interpreter_says_so, usual),
        guest_test(script_without_interpreter_line_is_run_by_the_shell, usual),
        guest_test(signal_reaches_all_processes_of_the_job, usual),
        guest_test(leftover_processes_end_with_the_command, usual),
        guest_test(memory_beyond_the_limit_is_counted_as_oom_kill, usual),
        guest_test(free_memory_that_the_host_holds_is_taken_and_let_go, roomy),
        guest_test(free_memory_stays_where_the_host_holds_what_is_used, roomy),
        guest_test(job_ends_though_what_takes_free_memory_is_stopped, roomy),
        guest_test(full_disk_is_told_with_the_end, usual),
        guest_test(fork_bomb_does_not_starve_pid_1, small),
        guest_test(power_off_ends_the_machine, usual),
        guest_test(power_off_during_the_command_ends_the_machine, usual),
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
