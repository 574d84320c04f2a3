/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what, with connections of several users to a real berthd. Needs root. */
#include "tests/lib/berthd_test.h"

#include "scheduler/daemon/pb.h"

#include <glib/gstdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALICE    40001u
#define BOB      40002u
#define NO_GROUP 40000u

static const ProtobufCServiceDescriptor *const jobs = &berth__jobs__descriptor;

static guint64 submit_as(BerthRpcPeer *peer, const Berth__JobSpec *spec)
{
    g_autoptr(GError) error = NULL;
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    request.spec = (Berth__JobSpec *)spec;
    g_autoptr(ProtobufCMessage) reply =
        berth_rpc_peer_call(peer, jobs, "Submit", &request.base, 30000, &error);
    assert_no_error(error);
    return ((Berth__SubmitReply *)reply)->job;
}

static GError *cancel_as(BerthRpcPeer *peer, guint64 job)
{
    GError *error = NULL;
    Berth__CancelRequest request = BERTH__CANCEL_REQUEST__INIT;
    request.job = job;
    g_autoptr(ProtobufCMessage) reply =
        berth_rpc_peer_call(peer, jobs, "Cancel", &request.base, 30000, &error);
    return error;
}

static Berth__Job *get_as(BerthRpcPeer *peer, guint64 job)
{
    g_autoptr(GError) error = NULL;
    Berth__GetJobRequest request = BERTH__GET_JOB_REQUEST__INIT;
    request.job = job;
    ProtobufCMessage *reply = berth_rpc_peer_call(peer, jobs, "Get", &request.base, 30000, &error);
    assert_no_error(error);
    return (Berth__Job *)reply;
}

static void users_act_on_their_own_jobs(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(BerthRpcPeer) alice = berthd_fixture_connect_as(test->berthd, ALICE, NO_GROUP);
    g_autoptr(BerthRpcPeer) bob = berthd_fixture_connect_as(test->berthd, BOB, NO_GROUP);
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.hold = TRUE;
    guint64 first = submit_as(alice, &spec);
    guint64 second = submit_as(alice, &spec);
    g_autoptr(GError) denied = cancel_as(bob, first);
    assert_berth_error(denied, BERTH_ERROR_PERMISSION_DENIED, "belongs to another user");
    assert_null(cancel_as(alice, first));
    assert_null(cancel_as(berthd_fixture_client(test->berthd), second)); /* root */
    g_autoptr(Berth__Job) record = get_as(alice, second);
    assert_int_equal(record->uid, ALICE);
    assert_int_equal(record->tasks[0]->reason, BERTH__REASON__REASON_CANCELLED_BY_OPERATOR);
    assert_non_null(record->spec);
    g_autoptr(Berth__Job) seen = get_as(bob, second);
    assert_null(seen->spec);
}

static gboolean ignore_item(const ProtobufCMessage *item, gpointer user_data)
{
    return TRUE;
}

static void logs_of_others_are_private(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.out = "secret\n"};
    g_autoptr(BerthRpcPeer) alice = berthd_fixture_connect_as(test->berthd, ALICE, NO_GROUP);
    g_autoptr(BerthRpcPeer) bob = berthd_fixture_connect_as(test->berthd, BOB, NO_GROUP);
    Berth__JobSpec spec = berthd_fixture_spec();
    guint64 job = submit_as(alice, &spec);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    Berth__LogsRequest request = BERTH__LOGS_REQUEST__INIT;
    request.job = job;
    g_autoptr(GError) error = NULL;
    assert_true(berth_rpc_peer_stream(alice, jobs, "Logs", &request.base, 30000, ignore_item, NULL,
                                      &error));
    assert_false(
        berth_rpc_peer_stream(bob, jobs, "Logs", &request.base, 30000, ignore_item, NULL, &error));
    assert_berth_error(error, BERTH_ERROR_PERMISSION_DENIED, "belongs to another user");
}

static void only_operators_do_some_things(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(BerthRpcPeer) alice = berthd_fixture_connect_as(test->berthd, ALICE, NO_GROUP);
    g_autoptr(GError) import = NULL;
    Berth__ImportBeginRequest request = BERTH__IMPORT_BEGIN_REQUEST__INIT;
    request.name = (char *)"mine";
    request.size_bytes = 4096;
    assert_null(berth_rpc_peer_call(alice, &berth__images__descriptor, "ImportBegin", &request.base,
                                    30000, &import));
    assert_berth_error(import, BERTH_ERROR_PERMISSION_DENIED, "import images");
    g_autoptr(GError) priority = NULL;
    Berth__JobSpec spec = berthd_fixture_spec();
    Berth__SubmitRequest submit = BERTH__SUBMIT_REQUEST__INIT;
    spec.priority = 5;
    submit.spec = &spec;
    assert_null(berth_rpc_peer_call(alice, jobs, "Submit", &submit.base, 30000, &priority));
    assert_berth_error(priority, BERTH_ERROR_PERMISSION_DENIED, "above 0");
    g_autoptr(BerthRpcPeer) chief = berthd_fixture_connect_as(test->berthd, BOB, 1);
    guint64 job = submit_as(chief, &spec);
    assert_int_not_equal(job, 0);
}

static void list_shows_own_jobs_unless_asked(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(BerthRpcPeer) alice = berthd_fixture_connect_as(test->berthd, ALICE, NO_GROUP);
    g_autoptr(BerthRpcPeer) bob = berthd_fixture_connect_as(test->berthd, BOB, NO_GROUP);
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.hold = TRUE;
    submit_as(alice, &spec);
    submit_as(bob, &spec);
    for (guint all = 0; all < 2; all++) {
        g_autoptr(GError) error = NULL;
        Berth__ListJobsRequest request = BERTH__LIST_JOBS_REQUEST__INIT;
        request.all_users = all == 1;
        g_autoptr(ProtobufCMessage) reply =
            berth_rpc_peer_call(alice, jobs, "List", &request.base, 30000, &error);
        assert_no_error(error);
        const Berth__ListJobsReply *list = (const Berth__ListJobsReply *)reply;
        assert_int_equal(list->n_jobs, all + 1);
        assert_int_equal(list->jobs[0]->uid, ALICE);
    }
}

static void one_user_cannot_take_all_connections(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(GPtrArray) peers =
        g_ptr_array_new_with_free_func((GDestroyNotify)berth_rpc_peer_unref);
    for (guint i = 0; i < 3; i++) {
        g_ptr_array_add(peers, berthd_fixture_connect_as(test->berthd, ALICE, NO_GROUP));
    }
    Berth__InfoRequest request = BERTH__INFO_REQUEST__INIT;
    g_autoptr(GError) error = NULL;
    assert_null(berth_rpc_peer_call(g_ptr_array_index(peers, 2), &berth__server__descriptor, "Info",
                                    &request.base, 30000, &error));
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "user_connections_max");
    g_autoptr(BerthRpcPeer) bob = berthd_fixture_connect_as(test->berthd, BOB, NO_GROUP);
    Berth__JobSpec spec = berthd_fixture_spec();
    submit_as(bob, &spec);
}

/* Each connection would begin with as many as there may be in a second. */
static void requests_count_over_a_users_connections(void **state)
{
    BerthdTest *test = *state;
    Berth__InfoRequest request = BERTH__INFO_REQUEST__INIT;
    gboolean is_said = FALSE;
    for (guint i = 0; i < 20 && !is_said; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(BerthRpcPeer) alice = berthd_fixture_connect_as(test->berthd, ALICE, NO_GROUP);
        g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call(
            alice, &berth__server__descriptor, "Info", &request.base, 30000, &error);
        assert_no_error(error);
        g_autofree char *log = berthd_fixture_log(test->berthd);
        is_said = strstr(log, "asks more than 1 times a second") != NULL;
    }
    assert_true(is_said);
}

static const char secret[] = "/home/alice/secret/tool: no such file";

static void assert_shown(const Berth__Job *job, gboolean is_shown)
{
    const Berth__Task *task = job->tasks[0];
    assert_int_equal(task->reason, BERTH__REASON__REASON_COMMAND_NOT_FOUND);
    assert_non_null(strstr(task->reason_text, "could not be executed"));
    assert_int_equal(strstr(task->reason_text, secret) != NULL, is_shown);
    assert_int_equal(strstr(task->exit->error, secret) != NULL, is_shown);
}

typedef struct {
    guint64 job;
    guint told; /* texts of the job that were not empty */
} Overheard;

static gboolean overhear(const ProtobufCMessage *item, gpointer user_data)
{
    Overheard *overheard = user_data;
    const Berth__Event *event = (const Berth__Event *)item;
    overheard->told += event->job == overheard->job && *event->text;
    return event->kind != BERTH__EVENT__KIND__GUEST_RELEASED || event->job != overheard->job;
}

static void see(BerthRpcPeer *peer, guint64 job, gboolean is_shown)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Berth__Job) record = get_as(peer, job);
    assert_shown(record, is_shown);
    Berth__ListJobsRequest request = BERTH__LIST_JOBS_REQUEST__INIT;
    request.n_jobs = 1;
    request.jobs = &job;
    g_autoptr(ProtobufCMessage) reply =
        berth_rpc_peer_call(peer, jobs, "List", &request.base, 30000, &error);
    assert_no_error(error);
    assert_shown(((const Berth__ListJobsReply *)reply)->jobs[0], is_shown);
    Berth__WatchRequest watch = BERTH__WATCH_REQUEST__INIT;
    Overheard overheard = {.job = job};
    assert_true(berth_rpc_peer_stream(peer, jobs, "Watch", &watch.base, 60000, overhear, &overheard,
                                      &error));
    assert_int_equal(overheard.told > 0, is_shown);
}

static void what_a_job_runs_is_its_owners(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.error = secret};
    g_autoptr(BerthRpcPeer) alice = berthd_fixture_connect_as(test->berthd, ALICE, NO_GROUP);
    g_autoptr(BerthRpcPeer) bob = berthd_fixture_connect_as(test->berthd, BOB, NO_GROUP);
    Berth__JobSpec spec = berthd_fixture_spec();
    guint64 job = submit_as(alice, &spec);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__FAILED);
    see(alice, job, TRUE);
    see(bob, job, FALSE);
}

typedef struct {
    Overheard overheard;
    gboolean has_ended;
} Listener;

static gboolean listen_in(const ProtobufCMessage *item, gpointer user_data)
{
    Listener *listener = user_data;
    const Berth__Event *event = (const Berth__Event *)item;
    listener->overheard.job = MAX(listener->overheard.job, event->job); /* it has but one */
    return overhear(item, &listener->overheard);
}

static void on_listened(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    assert_true(berth_rpc_peer_stream_finish(result, &error));
    ((Listener *)user_data)->has_ended = TRUE;
}

/* Its events go to all that listen at once, and not with the same words. */
static void what_a_job_runs_is_told_to_its_owner_alone(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.error = secret};
    g_autoptr(BerthRpcPeer) alice = berthd_fixture_connect_as(test->berthd, ALICE, NO_GROUP);
    g_autoptr(BerthRpcPeer) bob = berthd_fixture_connect_as(test->berthd, BOB, NO_GROUP);
    BerthRpcPeer *const peers[] = {bob, alice, bob, alice};
    Listener listeners[G_N_ELEMENTS(peers)] = {0};
    Berth__WatchRequest watch = BERTH__WATCH_REQUEST__INIT;
    watch.from_now = TRUE;
    for (guint i = 0; i < G_N_ELEMENTS(peers); i++)
        berth_rpc_peer_stream_async(peers[i], jobs, "Watch", &watch.base, 60000, NULL, listen_in,
                                    on_listened, &listeners[i]);
    Berth__JobSpec spec = berthd_fixture_spec();
    g_autoptr(GError) none = cancel_as(bob, 4711); /* what he asked for before was dealt with */
    assert_berth_error(none, BERTH_ERROR_NOT_FOUND, "4711");
    submit_as(alice, &spec);
    for (guint i = 0; i < G_N_ELEMENTS(peers); i++) {
        run_until(listeners[i].has_ended);
        assert_int_equal(listeners[i].overheard.told > 0, peers[i] == alice);
    }
}

static gboolean is_denied(BerthRpcPeer *peer, guint64 job)
{
    g_autoptr(Berth__Job) record = get_as(peer, job);
    return strstr(record->tasks[0]->reason_text, "Permission denied") != NULL;
}

static void output_is_written_with_the_users_rights(void **state)
{
    BerthdTest *test = *state;
    test->plan = (FakePlan){.out = "mine\n", .err = "no\n"};
    g_autofree char *home = g_build_filename(berthd_fixture_dir(test->berthd), "home", NULL);
    g_autofree char *out = g_build_filename(home, "out", NULL);
    g_autofree char *err = g_build_filename(berthd_fixture_dir(test->berthd), "err", NULL);
    assert_int_equal(g_mkdir(home, 0700), 0);
    assert_int_equal(chown(home, ALICE, NO_GROUP), 0);
    g_autoptr(BerthRpcPeer) alice = berthd_fixture_connect_as(test->berthd, ALICE, NO_GROUP);
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.stdout_path = out;
    spec.stderr_path = err; /* in a directory of root's */
    guint64 job = submit_as(alice, &spec);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    run_until(is_denied(alice, job));
    struct stat info;
    assert_int_equal(stat(out, &info), 0);
    assert_int_equal(info.st_uid, ALICE);
    assert_int_equal(info.st_size, 5);
    assert_int_not_equal(stat(err, &info), 0);
}

static int setup_two_connections(void **state)
{
    return berthd_test_setup_with(state, "[limits]\nuser_connections_max = 2\n");
}

static int setup_one_request_per_sec(void **state)
{
    return berthd_test_setup_with(state, "[limits]\nuser_requests_per_sec = 1\n");
}

#define USERS_TEST(function)                                                                       \
    cmocka_unit_test_setup_teardown(function, setup_two_connections, berthd_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        USERS_TEST(users_act_on_their_own_jobs),
        USERS_TEST(logs_of_others_are_private),
        USERS_TEST(only_operators_do_some_things),
        USERS_TEST(list_shows_own_jobs_unless_asked),
        USERS_TEST(what_a_job_runs_is_its_owners),
        USERS_TEST(what_a_job_runs_is_told_to_its_owner_alone),
        USERS_TEST(one_user_cannot_take_all_connections),
        USERS_TEST(output_is_written_with_the_users_rights),
        cmocka_unit_test_setup_teardown(requests_count_over_a_users_connections,
                                        setup_one_request_per_sec, berthd_test_teardown),
    };
    if (geteuid() != 0) {
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
