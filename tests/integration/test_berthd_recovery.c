/* SPDX-License-Identifier: Apache-2.0 */
/* What a real berthd keeps when it is killed, and what it says when its state cannot be used. */
#include "config.h"

#include "tests/lib/berthd_test.h"

#include "scheduler/daemon/pb.h"

#include <glib/gstdio.h>
#include <sched.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sysexits.h>
#include <unistd.h>

#define JOBS  200u
#define KILLS 8u

/* --- kill -9 ------------------------------------------------------------------------------------ */

typedef struct {
    guint64 numbers[JOBS];
    guint n;
} Batch;

/* Each job has a status of its own, so that mixed-up ends show. */
static void plan_by_job(const Berth__StartGuestRequest *request, FakePlan *out_plan,
                        gpointer user_data)
{
    out_plan->boot_msec = (guint)(request->id->job * 7 % 50);
    out_plan->run_msec = (guint)(request->id->job * 13 % 200);
    out_plan->status = (guint32)(request->id->job % 3);
}

static guint n_ended(BerthdTest *test, const Batch *batch)
{
    guint n = 0;
    for (guint i = 0; i < batch->n; i++) {
        n +=
            berthd_fixture_state_of(test->berthd, batch->numbers[i]) >= BERTH__JOB_STATE__COMPLETED;
    }
    return n;
}

/* Submits one more; again with the same key if the daemon was not there to answer. */
static void submit_next(BerthdTest *test, Batch *batch)
{
    g_autofree char *key = g_strdup_printf("job %u", batch->n);
    Berth__JobSpec spec = berthd_fixture_spec();
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    request.spec = &spec;
    request.idempotency_key = key;
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__jobs__descriptor, "Submit", &request.base);
    batch->numbers[batch->n++] = ((Berth__SubmitReply *)reply)->job;
}

static void on_submitted(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, NULL);
}

/* Kills it while requests and commits are under way: what they become is open, so that the same
 * keys are submitted again later. */
static void kill_in_the_middle(BerthdTest *test, const Batch *batch)
{
    Berth__JobSpec spec = berthd_fixture_spec();
    for (guint i = batch->n; i < MIN(batch->n + 5, JOBS); i++) {
        g_autofree char *key = g_strdup_printf("job %u", i);
        Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
        request.spec = &spec;
        request.idempotency_key = key;
        berth_rpc_peer_call_async(berthd_fixture_client(test->berthd), &berth__jobs__descriptor,
                                  "Submit", &request.base, 0, NULL, on_submitted, NULL);
    }
    for (gint i = g_random_int_range(0, 40); i > 0; i--) {
        g_main_context_iteration(NULL, FALSE);
    }
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
}

static void check_ended(BerthdTest *test, FakeAgent *second, guint64 job)
{
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
    const Berth__Task *task = berthd_test_task(record);
    Berth__JobState expected =
        job % 3 == 0 ? BERTH__JOB_STATE__COMPLETED : BERTH__JOB_STATE__FAILED;
    assert_int_equal(record->state, expected);
    assert_int_equal(task->exit->status, job % 3);
    assert_int_equal(task->requeues, 0); /* a start that never left is none */
    assert_int_equal(fake_agent_runs(test->agent, job) + fake_agent_runs(second, job), 1);
}

static void killed_often_loses_and_doubles_nothing(void **state)
{
    BerthdTest *test = *state;
    guint32 seed = g_random_int();
    print_message("seed %u\n", seed);
    g_random_set_seed(seed);
    FakeAgent *second = berthd_fixture_add_agent(test->berthd, "n2", plan_by_job, NULL);
    Batch batch = {0};
    for (guint i = 0; i < KILLS; i++) {
        while (batch.n < (i + 1) * JOBS / KILLS) {
            submit_next(test, &batch);
        }
        kill_in_the_middle(test, &batch);
    }
    while (batch.n < JOBS) {
        submit_next(test, &batch);
    }
    run_until(n_ended(test, &batch) == JOBS);
    for (guint i = 0; i < JOBS; i++) {
        check_ended(test, second, batch.numbers[i]);
        for (guint j = 0; j < i; j++) {
            assert_int_not_equal(batch.numbers[i], batch.numbers[j]);
        }
    }
    /* Jobs whose answers were lost had the keys of later ones: there are no others. */
    g_autoptr(Berth__Job) last = berthd_fixture_get(test->berthd, JOBS);
    assert_int_equal(last->id, JOBS);
    run_until(fake_agent_n_guests(test->agent) + fake_agent_n_guests(second) == 0);
}

static int setup_by_job(void **state)
{
    BerthdTest *test = g_new0(BerthdTest, 1);
    test->berthd = berthd_fixture_new(NULL);
    berthd_fixture_start(test->berthd);
    test->agent = berthd_fixture_add_agent(test->berthd, "n1", plan_by_job, NULL);
    berthd_fixture_import(test->berthd, "tiny");
    *state = test;
    return 0;
}

static void ended_orderly_starts_again_where_it_was(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.runs_on = TRUE};
    Berth__JobSpec spec = berthd_fixture_spec();
    guint64 running = berthd_fixture_submit(test->berthd, &spec);
    spec.hold = TRUE;
    guint64 held = berthd_fixture_submit(test->berthd, &spec);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, running);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    berthd_fixture_restart(test->berthd);
    run_until(fake_agent_is_joined(test->agent));
    g_autoptr(Berth__Job) first = berthd_fixture_get(test->berthd, running);
    g_autoptr(Berth__Job) second = berthd_fixture_get(test->berthd, held);
    assert_int_equal(first->state, BERTH__JOB_STATE__RUNNING);
    assert_int_equal(second->state, BERTH__JOB_STATE__PENDING);
    assert_int_equal(second->tasks[0]->reason, BERTH__REASON__REASON_HELD_BY_USER);
    assert_true(fake_agent_end(test->agent, running, 0));
    berthd_fixture_wait_state(test->berthd, running, BERTH__JOB_STATE__COMPLETED);
    assert_int_equal(fake_agent_runs(test->agent, running), 1);
}

/* --- states that cannot be used ------------------------------------------------------------------ */

/* Runs berthd on the fixture's configuration; it must refuse, and say TEXT. */
static void expect_refusal(BerthdTest *test, const char *text)
{
    const char *arguments[] = {"--config", berthd_fixture_config(test->berthd), NULL};
    g_autofree char *said = NULL;
    int status = berthd_fixture_run(test->berthd, arguments, &said);
    assert_int_equal(status, 1);
    if (!strstr(said, text)) {
        fail_msg("no \"%s\" in: %s", text, said);
    }
}

static void second_berthd_is_refused(void **state)
{
    BerthdTest *test = *state;
    expect_refusal(test, "berth.db");
    guint64 job = berthd_fixture_submit_plain(test->berthd); /* the first one is unharmed */
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
}

static void corrupt_state_is_refused_with_advice(void **state)
{
    BerthdTest *test = *state;
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    g_autofree char *garbage = g_strnfill(100000, 'x');
    assert_true(g_file_set_contents(berthd_fixture_state(test->berthd), garbage, 100000, NULL));
    expect_refusal(test, "backup");
}

static void newer_state_is_refused_with_both_versions(void **state)
{
    BerthdTest *test = *state;
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(berthd_fixture_state(test->berthd), &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 4711", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    expect_refusal(test, "4711");
}

static void bad_config_is_refused_with_the_line(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *path = g_build_filename(berthd_fixture_dir(test->berthd), "bad.conf", NULL);
    assert_true(g_file_set_contents(path, "[agents]\nport = 99999\n", -1, NULL));
    const char *arguments[] = {"--check-config", "--config", path, NULL};
    g_autofree char *said = NULL;
    assert_int_equal(berthd_fixture_run(test->berthd, arguments, &said), EX_CONFIG);
    assert_non_null(strstr(said, "bad.conf:2"));
}

static void check_config_warns_of_what_is_absent(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *path = g_build_filename(berthd_fixture_dir(test->berthd), "absent.conf", NULL);
    const char *text = "[berthd]\noperators_group=no-such-group\nstate=/absent/berth.db\n"
                       "[agents]\ncertificate=/absent/c\nkey=/absent/k\nca=/absent/ca\n"
                       "[storage]\nkind=dir\npath=/absent/storage\n";
    assert_true(g_file_set_contents(path, text, -1, NULL));
    const char *arguments[] = {"--check-config", "--config", path, NULL};
    g_autofree char *said = NULL;
    assert_int_equal(berthd_fixture_run(test->berthd, arguments, &said), EX_OK);
    static const char *const wanted[] = {"no-such-group",        "no directory /absent\n",
                                         "no file /absent/c\n",  "no file /absent/k\n",
                                         "no file /absent/ca\n", "no directory /absent/storage\n"};
    for (gsize i = 0; i < G_N_ELEMENTS(wanted); i++) {
        assert_non_null(strstr(said, wanted[i]));
    }
    arguments[2] = berthd_fixture_config(test->berthd);
    g_autofree char *nothing = NULL;
    assert_int_equal(berthd_fixture_run(test->berthd, arguments, &nothing), EX_OK);
    assert_string_equal(nothing, "");
}

/* --- a full disk --------------------------------------------------------------------------------- */

static int setup_small_disk(void **state)
{
    BerthdTest *test = g_new0(BerthdTest, 1);
    test->berthd = berthd_fixture_new(NULL);
    *state = test;
    return 0;
}

static gboolean replace_in_file(const char *path, const char *old, const char *new)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL)) {
        return FALSE;
    }
    g_auto(GStrv) parts = g_strsplit(text, old, -1);
    g_autofree char *changed = g_strjoinv(new, parts);
    return g_file_set_contents(path, changed, -1, NULL);
}

static void append_config(BerthdTest *test, const char *limit)
{
    FILE *config = fopen(berthd_fixture_config(test->berthd), "a");
    assert_non_null(config);
    assert_true(fprintf(config, "[limits]\n%s", limit) > 0);
    assert_int_equal(fclose(config), 0);
}

static void full_disk_ends_it_and_loses_nothing(void **state)
{
    BerthdTest *test = *state;
    g_autofree char *mount_point =
        g_build_filename(berthd_fixture_dir(test->berthd), "small", NULL);
    g_autofree char *small_state = g_build_filename(mount_point, "berth.db", NULL);
    /* In a namespace of this program: nothing stays mounted however it ends. */
    if (geteuid() != 0 || unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        print_message("skipped: mounting needs root\n");
        skip();
    }
    assert_int_equal(g_mkdir(mount_point, 0755), 0);
    assert_int_equal(mount("none", mount_point, "tmpfs", 0, "size=1m"), 0);
    assert_true(replace_in_file(berthd_fixture_config(test->berthd),
                                berthd_fixture_state(test->berthd), small_state));
    berthd_fixture_start(test->berthd);
    berthd_fixture_import(test->berthd, "tiny");
    Berth__JobSpec spec = berthd_fixture_spec();
    g_autoptr(GError) refused = berthd_fixture_submit_error(test->berthd, &spec);
    assert_berth_error(refused, BERTH_ERROR_RESOURCE_EXHAUSTED, "(state_kept)");
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    append_config(test, "state_kept = 0\n"); /* others fill it all the same */
    berthd_fixture_start(test->berthd);
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    g_autofree char *argument = g_strnfill(100000, 'x');
    char *command[] = {(char *)"true", argument};
    spec.command = command;
    spec.n_command = 2;
    request.spec = &spec;
    guint64 acknowledged = 0;
    for (;;) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ProtobufCMessage) reply =
            berth_rpc_peer_call(berthd_fixture_client(test->berthd), &berth__jobs__descriptor,
                                "Submit", &request.base, 30000, &error);
        if (!reply) {
            break;
        }
        acknowledged = ((Berth__SubmitReply *)reply)->job;
    }
    int status = berthd_fixture_wait(test->berthd);
    assert_int_equal(status, 1);
    assert_true(acknowledged > 0);
    assert_int_equal(mount("none", mount_point, "tmpfs", MS_REMOUNT, "size=16m"), 0);
    berthd_fixture_start(test->berthd);
    g_autoptr(Berth__Job) last = berthd_fixture_get(test->berthd, acknowledged);
    assert_int_equal(last->id, acknowledged);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    assert_int_equal(umount(mount_point), 0);
}

/* As it would be killed by its host's kernel, and all that there is with it, if it took them. */
static void beyond_its_memory_it_serves_what_runs_and_takes_no_more(void **state)
{
    BerthdTest *test = *state;
    test->plan.runs_on = TRUE;
    guint64 job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    append_config(test, "memory_max = 1M\n");
    berthd_fixture_start(test->berthd);
    Berth__JobSpec spec = berthd_fixture_spec();
    g_autoptr(GError) error = berthd_fixture_submit_error(test->berthd, &spec);
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "of the 1 that it may (memory_max)");
    run_until(fake_agent_is_joined(test->agent));
    assert_true(fake_agent_end(test->agent, job, 0));
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    g_autofree char *log = berthd_fixture_log(test->berthd);
    assert_non_null(strstr(log, "no new jobs are taken"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(killed_often_loses_and_doubles_nothing, setup_by_job,
                                        berthd_test_teardown),
        BERTHD_TEST(ended_orderly_starts_again_where_it_was),
        BERTHD_TEST(beyond_its_memory_it_serves_what_runs_and_takes_no_more),
        BERTHD_TEST(second_berthd_is_refused),
        BERTHD_TEST(corrupt_state_is_refused_with_advice),
        BERTHD_TEST(newer_state_is_refused_with_both_versions),
        BERTHD_TEST(bad_config_is_refused_with_the_line),
        BERTHD_TEST(check_config_warns_of_what_is_absent),
        cmocka_unit_test_setup_teardown(full_disk_ends_it_and_loses_nothing, setup_small_disk,
                                        berthd_test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
