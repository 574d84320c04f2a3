/* SPDX-License-Identifier: Apache-2.0 */
/* A real berth-node with a real libvirt and real guests, for a real berthd. Run by
 * test_nodeagent.sh, which gives it a host of its own. */
#include <config.h>

#include <signal.h>

#include <fcntl.h>
#include <glib/gstdio.h>
#include <sys/mount.h>
#include <unistd.h>

#include "common/message.h"
#include "tests/lib/assert.h"
#include "tests/lib/guest_vm.h"
#include "tests/lib/node_fixture.h"

#include <unistd.h>

#define SMALL_BYTES 16384 /* of a file system that is full */

static int setup(void **state)
{
    *state = node_fixture_new(NULL);
    node_fixture_start(*state);
    return 0;
}

static int teardown(void **state)
{
    node_fixture_free(*state);
    return 0;
}

static void assert_ended(Berth__Job *job, Berth__JobState state, Berth__Reason reason)
{
    if (job->state != state || job->tasks[0]->reason != reason)
        fail_msg("job ended in state %d, reason %d: %s", (int)job->state,
                 (int)job->tasks[0]->reason, job->tasks[0]->reason_text);
}

static void assert_output(NodeFixture *node, guint64 job, gboolean is_stderr, const char *expected)
{
    g_autofree char *output = berthd_fixture_logs(node->berthd, job, is_stderr, FALSE);
    assert_string_equal(output, expected);
}

/* --- jobs ----------------------------------------------------------------------------------- */

static void job_runs_and_leaves_nothing(void **state)
{
    NodeFixture *node = *state;
    guint64 id = node_fixture_submit(node, "echo out; echo err >&2; exit 3", 96);
    g_autoptr(ProtobufCMessage) message = &node_fixture_wait(node, id)->base;
    Berth__Job *job = (Berth__Job *)(void *)message;
    assert_ended(job, BERTH__JOB_STATE__FAILED, BERTH__REASON__REASON_EXIT_STATUS);
    assert_int_equal(job->tasks[0]->exit->status, 3);
    assert_true(job->tasks[0]->start_usec > 0);
    assert_true(job->tasks[0]->usage->cpu_usec > 0);     /* a boot takes more than that */
    assert_true(job->tasks[0]->usage->starved_usec > 0); /* each thread waits a little */
    assert_output(node, id, FALSE, "out\n");
    assert_output(node, id, TRUE, "err\n");
    node_fixture_wait_no_domains();
    g_auto(GStrv) disks = berth_storage_disk_list(berthd_fixture_storage(node->berthd), NULL);
    run_until((g_strfreev(disks),
               disks = berth_storage_disk_list(berthd_fixture_storage(node->berthd), NULL),
               disks[0] == NULL));
}

static void job_that_is_cancelled_gets_a_signal_first(void **state)
{
    NodeFixture *node = *state;
    guint64 id = node_fixture_submit(
        node, "trap 'echo got it; exit 0' TERM; echo ready; while :; do sleep 0.1; done", 96);
    node_fixture_wait_output(node, id, "ready");
    Berth__CancelRequest request = BERTH__CANCEL_REQUEST__INIT;
    request.job = id;
    berth_message_free(
        berthd_fixture_call(node->berthd, &berth__jobs__descriptor, "Cancel", &request.base));
    g_autoptr(ProtobufCMessage) job = &node_fixture_wait(node, id)->base;
    assert_ended((Berth__Job *)(void *)job, BERTH__JOB_STATE__CANCELLED,
                 BERTH__REASON__REASON_CANCELLED_BY_USER);
    assert_output(node, id, FALSE, "ready\ngot it\n");
}

static void job_that_ignores_signals_is_killed(void **state)
{
    NodeFixture *node = *state;
    guint64 id =
        node_fixture_submit(node, "trap '' TERM; echo ready; while :; do sleep 0.1; done", 96);
    node_fixture_wait_output(node, id, "ready");
    Berth__CancelRequest request = BERTH__CANCEL_REQUEST__INIT;
    request.job = id;
    berth_message_free(
        berthd_fixture_call(node->berthd, &berth__jobs__descriptor, "Cancel", &request.base));
    g_autoptr(ProtobufCMessage) job = &node_fixture_wait(node, id)->base;
    assert_ended((Berth__Job *)(void *)job, BERTH__JOB_STATE__CANCELLED,
                 BERTH__REASON__REASON_CANCELLED_BY_USER);
    node_fixture_wait_no_domains();
}

static void job_that_takes_too_much_memory_ends_out_of_memory(void **state)
{
    NodeFixture *node = *state;
    guint64 id = node_fixture_submit(node, "x=a; while :; do x=$x$x; done; echo never", 96);
    g_autoptr(ProtobufCMessage) job = &node_fixture_wait(node, id)->base;
    assert_ended((Berth__Job *)(void *)job, BERTH__JOB_STATE__OUT_OF_MEMORY,
                 BERTH__REASON__REASON_MEMORY_LIMIT);
}

static void job_with_much_output_does_not_grow_the_agent(void **state)
{
    NodeFixture *node = *state;
    guint64 first = node_fixture_submit(node, "echo ready", 96);
    berth_message_free(&node_fixture_wait(node, first)->base);
    guint64 before = node_fixture_rss(node), most = before;
    guint64 id = node_fixture_submit(
        node, "dd if=/dev/zero bs=64k count=1000 2>/dev/null; echo done >&2", 96);
    run_until((most = MAX(most, node_fixture_rss(node)),
               berthd_fixture_state_of(node->berthd, id) >= BERTH__JOB_STATE__COMPLETED));
    g_autoptr(ProtobufCMessage) message = &node_fixture_wait(node, id)->base;
    Berth__Job *job = (Berth__Job *)(void *)message;
    assert_int_equal(job->state, BERTH__JOB_STATE__COMPLETED);
    assert_int_equal(job->tasks[0]->exit->stdout_bytes, 64 * 1024 * 1000);
    guint64 size = 0;
    g_autofree char *log_id = g_strdup_printf("log-%" G_GUINT64_FORMAT "-0-0-1.out", id);
    assert_true(berth_storage_log_size(berthd_fixture_storage(node->berthd), log_id, &size, NULL));
    assert_int_equal(size, 64 * 1024 * 1000);
#ifndef __SANITIZE_ADDRESS__ /* which keeps what was freed */
    assert_true(most < before + (32u << 20));
#endif
    assert_output(node, id, TRUE, "done\n");
}

/* --- what goes wrong ------------------------------------------------------------------------ */

static void image_that_cannot_be_mounted_fails_the_job(void **state)
{
    NodeFixture *node = *state;
    berthd_fixture_import(node->berthd, "zeroes");
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.image = (char *)"zeroes";
    spec.memory_mib = 96;
    guint64 id = berthd_fixture_submit(node->berthd, &spec);
    g_autoptr(ProtobufCMessage) message = &node_fixture_wait(node, id)->base;
    Berth__Job *job = (Berth__Job *)(void *)message;
    assert_int_equal(job->state, BERTH__JOB_STATE__FAILED);
    assert_non_null(strstr(job->tasks[0]->reason_text, "/dev/vda"));
}

#define COUNT                                                                                      \
    "i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); "                                    \
    "[ $((i % 100)) != 0 ] || sleep 0.1; done"

static void assert_count(NodeFixture *node, guint64 id)
{
    GString *expected = g_string_new(NULL);
    for (guint i = 0; i < 2000; i++)
        g_string_append_printf(expected, "line %u\n", i);
    g_autoptr(ProtobufCMessage) message = &node_fixture_wait(node, id)->base;
    Berth__Job *job = (Berth__Job *)(void *)message;
    assert_ended(job, BERTH__JOB_STATE__COMPLETED, BERTH__REASON__REASON_NONE);
    assert_int_equal(job->tasks[0]->epoch, 1);
    assert_output(node, id, FALSE, expected->str);
    g_string_free(expected, TRUE);
}

static void agent_killed_while_jobs_print_loses_nothing(void **state)
{
    NodeFixture *node = *state;
    guint64 first = node_fixture_submit(node, COUNT, 96);
    guint64 second = node_fixture_submit(node, COUNT, 96);
    static const char *const marks[] = {"line 10\n", "line 500\n", "line 1200\n"};
    for (gsize i = 0; i < G_N_ELEMENTS(marks); i++) {
        node_fixture_wait_output(node, first, marks[i]);
        node_fixture_kill(node);
        node_fixture_start(node);
    }
    assert_count(node, first);
    assert_count(node, second);
}

static void pump(guint msec)
{
    gint64 end = g_get_monotonic_time() + msec * 1000;
    guint tick = g_timeout_add(10, G_SOURCE_FUNC(run_until_tick), NULL);
    while (g_get_monotonic_time() < end)
        g_main_context_iteration(NULL, TRUE);
    g_source_remove(tick);
}

/* Has it joined, and does it get no guests because of WHY (NULL: it gets them)? */
static gboolean is_closed(NodeFixture *node, const char *why)
{
    Berth__ListNodesRequest request = BERTH__LIST_NODES_REQUEST__INIT;
    g_autoptr(ProtobufCMessage) message =
        berthd_fixture_call(node->berthd, &berth__nodes__descriptor, "List", &request.base);
    const Berth__ListNodesReply *reply = (const Berth__ListNodesReply *)(const void *)message;
    if (reply->n_nodes == 0)
        return FALSE;
    const char *reason = reply->nodes[0]->closed_reason;
    return why != NULL ? strstr(reason, why) != NULL : *reason == '\0';
}

/* At every moment between the disk and the command's first instruction. */
static void agent_killed_during_starts_runs_each_job_once(void **state)
{
    NodeFixture *node = *state;
    guint64 jobs[6];
    run_until(is_closed(node, NULL));
    for (guint i = 0; i < G_N_ELEMENTS(jobs); i++) {
        jobs[i] = node_fixture_submit(node, "echo once", 96);
        pump(100 + 250 * i); /* another moment of a start each time; none is the right one */
        node_fixture_kill(node);
        node_fixture_start(node);
    }
    for (guint i = 0; i < G_N_ELEMENTS(jobs); i++) {
        g_autoptr(ProtobufCMessage) job = &node_fixture_wait(node, jobs[i])->base;
        assert_ended((Berth__Job *)(void *)job, BERTH__JOB_STATE__COMPLETED,
                     BERTH__REASON__REASON_NONE);
        assert_output(node, jobs[i], FALSE, "once\n");
    }
    node_fixture_wait_no_domains();
}

static void libvirtd_killed_while_a_job_runs_is_survived(void **state)
{
    NodeFixture *node = *state;
    guint64 id = node_fixture_submit(node, COUNT, 96);
    node_fixture_wait_output(node, id, "line 10\n");
    node_fixture_kill_libvirtd();
    node_fixture_start_libvirtd();
    assert_count(node, id);
    guint64 next = node_fixture_submit(node, "echo next", 96);
    g_autoptr(ProtobufCMessage) job = &node_fixture_wait(node, next)->base;
    assert_ended((Berth__Job *)(void *)job, BERTH__JOB_STATE__COMPLETED,
                 BERTH__REASON__REASON_NONE);
    node_fixture_wait_no_domains();
}

static void assert_waits_for_node(NodeFixture *node, guint64 id)
{
    g_autoptr(ProtobufCMessage) message = &berthd_fixture_get(node->berthd, id)->base;
    const Berth__Task *task = ((Berth__Job *)(void *)message)->tasks[0];
    assert_int_equal(task->state, BERTH__JOB_STATE__PENDING);
    assert_int_equal(task->reason, BERTH__REASON__REASON_NODE_UNAVAILABLE);
    assert_int_equal(task->epoch, 0);
}

static void libvirtd_away_closes_the_node_until_it_is_back(void **state)
{
    NodeFixture *node = *state;
    run_until(is_closed(node, NULL));
    node_fixture_kill_libvirtd();
    run_until(is_closed(node, "does not reach libvirt"));
    guint64 id = node_fixture_submit(node, "echo later", 96);
    assert_waits_for_node(node, id);
    node_fixture_start_libvirtd();
    g_autoptr(ProtobufCMessage) job = &node_fixture_wait(node, id)->base;
    assert_ended((Berth__Job *)(void *)job, BERTH__JOB_STATE__COMPLETED,
                 BERTH__REASON__REASON_NONE);
    assert_true(is_closed(node, NULL));
    node_fixture_wait_no_domains();
}

/* Calls that are under way then are not lost: they wait for it. */
static void libvirtd_that_stands_still_is_waited_for(void **state)
{
    NodeFixture *node = *state;
    guint64 id = node_fixture_submit(node, COUNT, 96);
    node_fixture_wait_output(node, id, "line 10\n");
    node_fixture_signal_libvirtd(SIGSTOP);
    guint64 later = node_fixture_submit(node, "echo later", 96);
    run_until(is_closed(node, "does not reach libvirt"));
    node_fixture_signal_libvirtd(SIGCONT);
    assert_count(node, id);
    g_autoptr(ProtobufCMessage) job = &node_fixture_wait(node, later)->base;
    assert_ended((Berth__Job *)(void *)job, BERTH__JOB_STATE__COMPLETED,
                 BERTH__REASON__REASON_NONE);
    assert_output(node, later, FALSE, "later\n");
    node_fixture_wait_no_domains();
}

static guint epoch_of(NodeFixture *node, guint64 id)
{
    g_autoptr(ProtobufCMessage) message = &berthd_fixture_get(node->berthd, id)->base;
    const Berth__Job *job = (const Berth__Job *)(const void *)message;
    assert_true(job->state < BERTH__JOB_STATE__COMPLETED);
    return job->tasks[0]->epoch;
}

static void signal_qemu(const char *domain, int signal)
{
    g_autofree char *path = g_strdup_printf("/run/libvirt/qemu/%s.pid", domain);
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    assert_int_equal(kill((pid_t)g_ascii_strtoll(text, NULL, 10), signal), 0);
}

/* An operator, the host's shutdown, and the host's kernel when it lacks memory. */
static void guest_that_its_host_ends_is_started_again(void **state)
{
    NodeFixture *node = *state;
    static const int signals[] = {0, SIGTERM, SIGKILL};
    for (gsize i = 0; i < G_N_ELEMENTS(signals); i++) {
        guint64 id = node_fixture_submit(node, "echo ready; sleep 1000", 96);
        node_fixture_wait_output(node, id, "ready");
        g_autofree char *name = g_strdup_printf("berth-%" G_GUINT64_FORMAT "-0-0-1", id);
        if (signals[i] == 0)
            g_free(node_fixture_virsh("destroy", name));
        else
            signal_qemu(name, signals[i]);
        run_until(epoch_of(node, id) == 2);
    }
}

static void guest_that_ends_itself_fails_the_job(void **state)
{
    NodeFixture *node = *state;
    guint64 id = node_fixture_submit(node, "poweroff -f; sleep 1000", 96);
    g_autoptr(ProtobufCMessage) job = &node_fixture_wait(node, id)->base;
    assert_ended((Berth__Job *)(void *)job, BERTH__JOB_STATE__FAILED,
                 BERTH__REASON__REASON_GUEST_CRASHED);
}

/* --- what is wrong from the start ----------------------------------------------------------- */

static int setup_stopped(void **state)
{
    *state = node_fixture_new(NULL);
    return 0;
}

static void start_what_is_wrong_is_said(void **state)
{
    NodeFixture *node = *state;
    g_autofree char *certificate = NULL;
    g_autofree char *key = NULL;
    g_autofree char *other = NULL;
    g_autofree char *other_key = NULL;
    berthd_fixture_certificate(node->berthd, "n1", FALSE, &certificate, &key);
    berthd_fixture_certificate(node->berthd, "n2", FALSE, &other, &other_key);
    g_autofree char *foreign = NULL;
    g_autofree char *foreign_key = NULL;
    berthd_fixture_certificate(node->berthd, "n1", TRUE, &foreign, &foreign_key);
    g_autofree char *kernel = guest_vm_kernel();
    g_autofree char *no_libvirt = g_strdup_printf("kernel = %s\ninitramfs = %s\n[libvirt]\n"
                                                  "uri = qemu+unix:///system?socket=/nowhere\n",
                                                  kernel, kernel);
    g_autofree char *no_emulation =
        g_strdup_printf("kernel = %s\ninitramfs = %s\nprobe_deadline = 3s\n", kernel, kernel);
    g_autofree char *no_initramfs = g_strdup_printf("kernel = %s\ninitramfs = /\n", kernel);
    const struct {
        const char *certificate, *key, *guests;
        int status;
        const char *text;
    } cases[] = {
        {certificate, key, no_libvirt, 1, "is libvirtd running"},
        {certificate, key, "kernel = /nonexistent/vmlinux\n", 1, "/nonexistent/vmlinux"},
        {certificate, key, no_initramfs, 1, "is no file"},
        {certificate, other_key, no_libvirt, 1, other_key},
        {foreign, foreign_key, no_libvirt, 1, "not signed by the CA"},
        {"/nonexistent.pem", key, no_libvirt, 1, "/nonexistent.pem"},
        {certificate, key, "vcpus = none\n", 78, "vcpus"},
        {certificate, key, no_emulation, 1, "KVM does not work on this host"},
        {certificate, key, no_emulation, 1, "set allow_emulation=true"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *lines =
            node_fixture_lines(node, cases[i].certificate, cases[i].key, cases[i].guests);
        node_fixture_configure(node, lines);
        assert_true(g_file_set_contents(node->log, "", 0, NULL));
        assert_int_equal(node_fixture_run(node), cases[i].status);
        g_autofree char *log = node_fixture_log(node);
        if (strstr(log, cases[i].text) == NULL)
            fail_msg("case %zu: no \"%s\" in: %s", i, cases[i].text, log);
    }
}

/* The usual host: a file system of its own for /run, and it is full. */
static void start_without_room_in_run_dir_is_said(void **state)
{
    NodeFixture *node = *state;
    g_autofree char *run_dir = g_build_filename(node->dir, "run", NULL);
    g_autofree char *filler = g_build_filename(run_dir, "filler", NULL);
    g_autofree char *data = g_malloc0(SMALL_BYTES);
    assert_int_equal(g_mkdir(run_dir, 0755), 0);
    assert_int_equal(mount("none", run_dir, "tmpfs", 0, "size=16k"),
                     0); /* of with-libvirtd alone */
    int fd = g_open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, SMALL_BYTES), SMALL_BYTES);
    close(fd);
    assert_int_equal(node_fixture_run(node), 1);
    g_autofree char *log = node_fixture_log(node);
    g_autofree char *expected = g_strdup_printf("cannot write into %s", run_dir);
    assert_int_equal(umount(run_dir), 0);
    if (strstr(log, expected) == NULL || strstr(log, "free some space there") == NULL)
        fail_msg("no \"%s\" in: %s", expected, log);
}

static void storage_that_comes_late_opens_the_node(void **state)
{
    NodeFixture *node = *state;
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(node->config, &text, NULL, NULL));
    g_autoptr(GString) lines = g_string_new(text);
    assert_int_equal(g_string_replace(lines, "/storage\n", "/late\n", 0), 1);
    node_fixture_configure(node, lines->str);
    node_fixture_start(node);
    run_until(is_closed(node, "does not reach storage"));
    guint64 id = node_fixture_submit(node, "echo late", 96);
    assert_waits_for_node(node, id);
    g_autofree char *late = g_build_filename(berthd_fixture_dir(node->berthd), "late", NULL);
    assert_int_equal(symlink("storage", late), 0);
    g_autoptr(ProtobufCMessage) job = &node_fixture_wait(node, id)->base;
    assert_ended((Berth__Job *)(void *)job, BERTH__JOB_STATE__COMPLETED,
                 BERTH__REASON__REASON_NONE);
}

static gboolean log_has(NodeFixture *node, const char *text)
{
    g_autofree char *log = node_fixture_log(node);
    return strstr(log, text) != NULL;
}

static void second_agent_is_refused(void **state)
{
    NodeFixture *node = *state;
    node_fixture_start(node);
    run_until(log_has(node, "joined cluster"));
    assert_int_equal(node_fixture_run(node), 1);
    assert_true(log_has(node, "another berth-node runs"));
}

static void certificate_of_another_node_is_refused_by_the_scheduler(void **state)
{
    NodeFixture *node = *state;
    g_autofree char *original = NULL;
    g_autofree char *certificate = NULL;
    g_autofree char *key = NULL;
    assert_true(g_file_get_contents(node->config, &original, NULL, NULL));
    berthd_fixture_certificate(node->berthd, "n2", FALSE, &certificate, &key);
    g_auto(GStrv) lines = g_strsplit(original, "\n", -1);
    GString *changed = g_string_new(NULL);
    for (char **line = lines; *line != NULL; line++) {
        if (g_str_has_prefix(*line, "certificate = "))
            g_string_append_printf(changed, "certificate = %s\nkey = %s\n", certificate, key);
        else if (!g_str_has_prefix(*line, "key = "))
            g_string_append_printf(changed, "%s\n", *line);
    }
    node_fixture_configure(node, changed->str);
    g_string_free(changed, TRUE);
    node_fixture_start(node);
    run_until(log_has(node, "issued for \"n2\""));
    assert_false(log_has(node, "joined cluster"));
}

#define TEST(name)         cmocka_unit_test_setup_teardown(name, setup, teardown)
#define TEST_STOPPED(name) cmocka_unit_test_setup_teardown(name, setup_stopped, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(job_runs_and_leaves_nothing),
        TEST(job_that_is_cancelled_gets_a_signal_first),
        TEST(job_that_ignores_signals_is_killed),
        TEST(job_that_takes_too_much_memory_ends_out_of_memory),
        TEST(job_with_much_output_does_not_grow_the_agent),
        TEST(image_that_cannot_be_mounted_fails_the_job),
        TEST(agent_killed_while_jobs_print_loses_nothing),
        TEST(agent_killed_during_starts_runs_each_job_once),
        TEST(libvirtd_killed_while_a_job_runs_is_survived),
        TEST(libvirtd_away_closes_the_node_until_it_is_back),
        TEST(libvirtd_that_stands_still_is_waited_for),
        TEST(guest_that_its_host_ends_is_started_again),
        TEST(guest_that_ends_itself_fails_the_job),
        TEST_STOPPED(start_what_is_wrong_is_said),
        TEST_STOPPED(start_without_room_in_run_dir_is_said),
        TEST_STOPPED(storage_that_comes_late_opens_the_node),
        TEST_STOPPED(second_agent_is_refused),
        TEST_STOPPED(certificate_of_another_node_is_refused_by_the_scheduler),
    };
    const char *missing = node_fixture_missing();
    if (missing != NULL) {
        print_message("skipped: there is no %s\n", missing);
        return 77;
    }
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
