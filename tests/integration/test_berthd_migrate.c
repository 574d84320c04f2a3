/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that are moved between nodes: what berthd asks of which node, who may ask for it, and what outlives
 * lost answers and kills. Storage is a real Ceph cluster: without one that nodes share nothing is moved. */
#include "config.h"

#include <signal.h>

#include "tests/lib/berthd_test.h"
#include "tests/lib/storage_cluster.h"

#include "scheduler/daemon/pb.h"

#define BOB      12346u
#define NO_GROUP 65534u

typedef struct {
    BerthdFixture *berthd;
    FakeAgent *first, *second;
    FakePlan plan;
    guint64 job;             /* runs on the first node */
    Berth__JobState ends_as; /* COMPLETED where nothing else is said */
} Test;

static int setup(void **state)
{
    static const Berth__Usage usage = {.base = PROTOBUF_C_MESSAGE_INIT(&berth__usage__descriptor),
                                       .cpu_usec = 5000000,
                                       .memory_total_mib = 64};
    Test *test = g_new0(Test, 1);
    BerthStorageConfig config = cluster_config();
    g_autoptr(GError) error = NULL;
    g_autofree char *lines = g_strdup_printf(
        "kind = rbd\nceph_conf = %s\nkeyring = %s\nop_timeout_sec = 5\ncheck_interval = 1s\n",
        config.ceph_conf, config.keyring);
    BerthStorage *storage = cluster_open(10, &error);
    assert_no_error(error);
    test->berthd = berthd_fixture_new_on("node_timeout = 60s\n", lines, storage);
    berthd_fixture_start_with(test->berthd, "--take-over-storage"); /* the tests share a pool */
    test->plan = (FakePlan){.runs_on = TRUE, .out = "here\n", .usage = &usage};
    test->first = berthd_fixture_add_agent(test->berthd, "n1", berthd_test_plan, &test->plan);
    berthd_fixture_import(test->berthd, "tiny");
    test->job = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, test->job);
    test->second = berthd_fixture_add_agent(test->berthd, "n2", berthd_test_plan, &test->plan);
    fake_agent_set_moves(test->first, &(FakeMoves){.to = test->second});
    *state = test;
    return 0;
}

static int teardown(void **state)
{
    Test *test = *state;
    Berth__RemoveImageRequest request = BERTH__REMOVE_IMAGE_REQUEST__INIT;
    request.name = (char *)"tiny";
    fake_agent_end(test->first, test->job, 0);
    fake_agent_end(test->second, test->job, 0);
    berthd_fixture_wait_state(test->berthd, test->job,
                              test->ends_as != 0 ? test->ends_as : BERTH__JOB_STATE__COMPLETED);
    run_until(fake_agent_n_guests(test->first) + fake_agent_n_guests(test->second) == 0);
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__images__descriptor, "Remove", &request.base);
    berthd_fixture_free(test->berthd);
    g_free(test);
    return 0;
}

static void migrate(Test *test, const char *to)
{
    Berth__MigrateRequest request = BERTH__MIGRATE_REQUEST__INIT;
    request.job = test->job;
    request.node = (char *)to;
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__jobs__descriptor, "Migrate", &request.base);
}

static const Berth__Event *event_of(Test *test, Berth__Event__Kind kind)
{
    berthd_fixture_wait_event(test->berthd, kind, test->job);
    const GPtrArray *events = berthd_fixture_events(test->berthd);
    for (guint i = events->len; i > 0; i--) {
        const Berth__Event *event = g_ptr_array_index(events, i - 1);
        if (event->kind == kind && event->job == test->job)
            return event;
    }
    return NULL;
}

static guint n_events(Test *test, Berth__Event__Kind kind, guint64 job)
{
    const GPtrArray *events = berthd_fixture_events(test->berthd);
    guint n = 0;
    for (guint i = 0; i < events->len; i++) {
        const Berth__Event *event = g_ptr_array_index(events, i);
        n += event->kind == kind && event->job == job;
    }
    return n;
}

/* It runs on NAME and nowhere else, as it was started, and nothing is being done to it. */
static void assert_runs_on(Test *test, const char *name)
{
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, test->job);
    const Berth__Task *task = berthd_test_task(record);
    assert_string_equal(task->node, name);
    assert_int_equal(task->state, BERTH__JOB_STATE__RUNNING);
    assert_int_equal(task->epoch, 1);
    assert_null(task->migration);
    gboolean is_first = g_str_equal(name, "n1");
    assert_int_equal(fake_agent_has(test->first, test->job), is_first);
    assert_int_equal(fake_agent_has(test->second, test->job), !is_first);
    assert_false(fake_agent_is_frozen(is_first ? test->first : test->second, test->job));
    assert_int_equal(fake_agent_runs(test->first, test->job), 1);
    assert_int_equal(fake_agent_runs(test->second, test->job), 0);
}

static void migrate_moves_a_guest_and_says_so(void **state)
{
    Test *test = *state;
    migrate(test, "n2");
    assert_string_equal(event_of(test, BERTH__EVENT__KIND__GUEST_MIGRATED)->node, "n2");
    assert_runs_on(test, "n2");
    const Berth__Event *asked = event_of(test, BERTH__EVENT__KIND__JOB_MIGRATE_REQUESTED);
    assert_string_equal(asked->user, "root");
    assert_string_equal(asked->node, "n2");
    const Berth__Event *begun = event_of(test, BERTH__EVENT__KIND__GUEST_MIGRATE);
    assert_string_equal(begun->node, "n1");
    assert_string_equal(begun->text, "n2");
    assert_int_equal(begun->reason, BERTH__REASON__REASON_MOVED_BY_USER);
    assert_true(g_str_has_prefix(begun->place, "backed: "));
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, test->job);
    const Berth__Move *moved = berthd_test_task(record)->moved;
    assert_string_equal(moved->from, "n1");
    assert_string_equal(moved->to, "n2");
    assert_int_equal(moved->reason, BERTH__REASON__REASON_MOVED_BY_USER);
    assert_false(moved->from_checkpoint);
    assert_true(moved->time_usec >= begun->time_usec);
}

/* What its QEMU there counts from 0 is added to what it had used here. */
static void usage_goes_on_where_it_was(void **state)
{
    Test *test = *state;
    fake_agent_report(test->first);
    migrate(test, "");
    event_of(test, BERTH__EVENT__KIND__GUEST_MIGRATED);
    fake_agent_report(test->second);
    guint64 cpu_usec = 0;
    for (gint64 end = g_get_monotonic_time() + 30 * G_USEC_PER_SEC;
         cpu_usec != 10000000 && g_get_monotonic_time() < end;) {
        g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, test->job);
        cpu_usec = berthd_test_task(record)->usage->cpu_usec;
        assert_true(cpu_usec >= 5000000);
    }
    assert_int_equal(cpu_usec, 10000000);
}

static void guest_that_cannot_come_stays_with_the_reason(void **state)
{
    Test *test = *state;
    fake_agent_set_moves(test->second, &(FakeMoves){.receive_error = "it sees no disk"});
    migrate(test, "n2");
    const Berth__Event *failed = event_of(test, BERTH__EVENT__KIND__GUEST_MIGRATE_FAILED);
    assert_non_null(strstr(failed->text, "it sees no disk"));
    assert_string_equal(failed->node, "n1");
    assert_runs_on(test, "n1");
}

static void guest_that_cannot_leave_stays_with_the_reason(void **state)
{
    Test *test = *state;
    fake_agent_set_moves(test->first, &(FakeMoves){.leave_error = "the cable is out"});
    migrate(test, "n2");
    const Berth__Event *failed = event_of(test, BERTH__EVENT__KIND__GUEST_MIGRATE_FAILED);
    assert_non_null(strstr(failed->text, "the cable is out"));
    assert_runs_on(test, "n1");
}

/* Nobody is told that it has arrived, and in what is told its job never ran there. */
static void guest_that_is_lost_on_its_way_has_not_arrived(void **state)
{
    Test *test = *state;
    fake_agent_set_moves(test->second, &(FakeMoves){.loses_guest = TRUE});
    migrate(test, "n2");
    const Berth__Event *failed = event_of(test, BERTH__EVENT__KIND__GUEST_MIGRATE_FAILED);
    assert_string_equal(failed->text, "its guest was lost on the way to n2");
    assert_int_equal(failed->reason, BERTH__REASON__REASON_GUEST_VANISHED);
    assert_string_equal(failed->node, "n1");
    run_until(fake_agent_runs(test->first, test->job) + fake_agent_runs(test->second, test->job) ==
              2);
    assert_int_equal(n_events(test, BERTH__EVENT__KIND__GUEST_MIGRATED, test->job), 0);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, test->job);
    assert_int_equal(berthd_test_task(record)->epoch, 2);
    assert_int_equal(berthd_test_task(record)->requeues, 1);
}

/* It has left, and berthd has not heard of it: its node, back again, says so. */
static void answer_that_is_lost_is_asked_for_again(void **state)
{
    Test *test = *state;
    fake_agent_set_moves(test->first, &(FakeMoves){.to = test->second, .loses_answer = TRUE});
    migrate(test, "n2");
    event_of(test, BERTH__EVENT__KIND__GUEST_MIGRATED);
    assert_runs_on(test, "n2");
    assert_int_equal(fake_agent_n_moves(test->first), 2);
    assert_int_equal(n_events(test, BERTH__EVENT__KIND__GUEST_MIGRATE, test->job),
                     1); /* it is one move */
}

/* It is copied from the first node to the second when berthd is killed, and no node has joined the new one. */
static void restart_in_the_midst(Test *test)
{
    fake_agent_set_moves(test->first, &(FakeMoves){.to = test->second, .holds = TRUE});
    migrate(test, "n2");
    run_until(fake_agent_n_moves(test->first) == 1);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, test->job);
    assert_non_null(berthd_test_task(record)->migration);
    assert_string_equal(berthd_test_task(record)->migration->to, "n2");
    berthd_fixture_kill(test->berthd);
    fake_agent_cut(test->first);
    fake_agent_cut(test->second);
    fake_agent_set_moves(test->first, &(FakeMoves){.to = test->second});
    berthd_fixture_start(test->berthd);
}

static void join(FakeAgent *agent)
{
    fake_agent_heal(agent);
    run_until(fake_agent_is_joined(agent));
}

static void move_outlives_berthd_when_its_source_joins_first(void **state)
{
    Test *test = *state;
    restart_in_the_midst(test);
    join(test->first);
    join(test->second);
    event_of(test, BERTH__EVENT__KIND__GUEST_MIGRATED);
    assert_runs_on(test, "n2");
    assert_int_equal(fake_agent_n_moves(test->first), 2);
}

static void move_outlives_berthd_when_its_destination_joins_first(void **state)
{
    Test *test = *state;
    restart_in_the_midst(test);
    join(test->second);
    join(test->first);
    event_of(test, BERTH__EVENT__KIND__GUEST_MIGRATED);
    assert_runs_on(test, "n2");
    assert_int_equal(fake_agent_n_moves(test->first), 2);
}

/* berthd waits for the node that it goes to no longer than for any, and the guest runs on meanwhile. */
static void move_ends_with_the_node_that_it_goes_to(void **state)
{
    Test *test = *state;
    Berth__ChangeNodesRequest request = BERTH__CHANGE_NODES_REQUEST__INIT;
    char *names[] = {(char *)"n2"};
    restart_in_the_midst(test);
    join(test->first);
    assert_int_equal(fake_agent_n_moves(test->first), 1);
    request.names = names;
    request.n_names = 1;
    request.reason = (char *)"it burns";
    g_autoptr(ProtobufCMessage) down =
        berthd_fixture_call(test->berthd, &berth__nodes__descriptor, "Down", &request.base);
    const Berth__Event *failed = event_of(test, BERTH__EVENT__KIND__GUEST_MIGRATE_FAILED);
    assert_string_equal(failed->text, "node n2 is lost");
    assert_runs_on(test, "n1");
    g_autoptr(ProtobufCMessage) up =
        berthd_fixture_call(test->berthd, &berth__nodes__descriptor, "Up", &request.base);
    join(test->second);
}

/* It has left the first node, and the second one is away. */
static void leave_for_one_that_is_away(Test *test, const FakeMoves *moves)
{
    FakeMoves holds = *moves;
    holds.holds = TRUE;
    fake_agent_set_moves(test->first, &holds);
    migrate(test, "n2");
    run_until(fake_agent_n_moves(test->first) == 1);
    fake_agent_cut(test->second);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__NODE_DOWN, 0);
    fake_agent_set_moves(test->first, moves);
    fake_agent_end_copy(test->first, test->job);
}

/* Its old node does not know it any more, which says nothing: it is told to end where it has arrived. */
static void one_that_has_left_is_stopped_where_it_arrives(void **state)
{
    Test *test = *state;
    leave_for_one_that_is_away(test, &(FakeMoves){.to = test->second});
    Berth__CancelRequest request = BERTH__CANCEL_REQUEST__INIT;
    request.job = test->job;
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__jobs__descriptor, "Cancel", &request.base);
    run_until(fake_agent_n_stops(test->first) == 1);
    join(test->second);
    test->ends_as = BERTH__JOB_STATE__CANCELLED;
    berthd_fixture_wait_state(test->berthd, test->job, test->ends_as);
    assert_int_equal(fake_agent_n_stops(test->second), 1);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, test->job);
    assert_string_equal(berthd_test_task(record)->node, "n2");
    assert_int_equal(berthd_test_task(record)->exit->signal, SIGTERM);
}

/* However often its old node is asked what it had used there. */
static void usage_of_who_has_left_is_counted_once(void **state)
{
    static const Berth__Usage used = {.base = PROTOBUF_C_MESSAGE_INIT(&berth__usage__descriptor),
                                      .cpu_usec = 7000000};
    Test *test = *state;
    leave_for_one_that_is_away(test, &(FakeMoves){.to = test->second, .used = &used});
    fake_agent_cut(test->first);
    join(test->first);
    join(test->second);
    event_of(test, BERTH__EVENT__KIND__GUEST_MIGRATED);
    assert_runs_on(test, "n2");
    assert_int_equal(fake_agent_n_moves(test->first), 2);
    assert_int_equal(n_events(test, BERTH__EVENT__KIND__GUEST_MIGRATE, test->job), 1);
    g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, test->job);
    assert_int_equal(berthd_test_task(record)->usage->cpu_usec, 7000000);
    fake_agent_report(test->second);
    for (guint64 cpu_usec = 7000000; cpu_usec != 12000000;) {
        g_autoptr(Berth__Job) now = berthd_fixture_get(test->berthd, test->job);
        cpu_usec = berthd_test_task(now)->usage->cpu_usec;
        assert_true(cpu_usec == 7000000 || cpu_usec == 12000000);
    }
}

static void change_node(Test *test, const char *method, const char *name)
{
    Berth__ChangeNodesRequest request = BERTH__CHANGE_NODES_REQUEST__INIT;
    char *names[] = {(char *)name};
    request.names = names;
    request.n_names = 1;
    request.reason = (char *)"it burns";
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__nodes__descriptor, method, &request.base);
}

/* It stands still on a node that was away when its own was lost: nobody else would remove it there. */
static void guest_that_came_for_nobody_is_removed(void **state)
{
    Test *test = *state;
    leave_for_one_that_is_away(test, &(FakeMoves){.to = test->second});
    change_node(test, "Cordon", "n2");
    fake_agent_cut(test->first);
    run_until(n_events(test, BERTH__EVENT__KIND__NODE_DOWN, 0) == 2);
    change_node(test, "Down", "n1");
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_FENCED, test->job);
    join(test->second);
    run_until(fake_agent_n_guests(test->second) == 0);
    change_node(test, "Uncordon", "n2");
    run_until(fake_agent_runs(test->second, test->job) == 1);
}

/* As by virsh migrate: nobody here knows where it is. */
static void guest_that_left_without_being_asked_is_fenced(void **state)
{
    Test *test = *state;
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    Berth__GuestStatus status = BERTH__GUEST_STATUS__INIT;
    id.job = test->job;
    id.epoch = 1;
    status.id = &id;
    status.phase = BERTH__GUEST_STATUS__PHASE__LEFT;
    status.reason_text = (char *)"it was moved to another host, and not by Berth";
    fake_agent_set_moves(test->first, &(FakeMoves){.to = test->second, .holds = TRUE});
    migrate(test, "n2");
    run_until(fake_agent_n_moves(test->first) == 1);
    guint n_answers = fake_agent_n_answers(test->first);
    fake_agent_say(test->first, &status); /* whom berthd moves it knows to ask for */
    run_until(fake_agent_n_answers(test->first) > n_answers);
    fake_agent_end_copy(test->first, test->job);
    event_of(test, BERTH__EVENT__KIND__GUEST_MIGRATED);
    assert_runs_on(test, "n2");
    fake_agent_say(test->first, &status); /* and that it is not there any more is no news */
    fake_agent_say(test->second, &status);
    const Berth__Event *gone = event_of(test, BERTH__EVENT__KIND__GUEST_EXITED);
    assert_int_equal(gone->reason, BERTH__REASON__REASON_GUEST_VANISHED);
    assert_string_equal(gone->node, "n2");
    assert_non_null(strstr(gone->text, "not by Berth"));
    guint64 fenced = event_of(test, BERTH__EVENT__KIND__GUEST_FENCED)->seq;
    run_until(n_events(test, BERTH__EVENT__KIND__GUEST_START, test->job) == 2);
    assert_true(event_of(test, BERTH__EVENT__KIND__GUEST_START)->seq > fenced);
    run_until(fake_agent_runs(test->first, test->job) + fake_agent_runs(test->second, test->job) >
              1);
}

static void move_is_called_off(void **state)
{
    Test *test = *state;
    Berth__CancelMigrationRequest request = BERTH__CANCEL_MIGRATION_REQUEST__INIT;
    request.job = test->job;
    fake_agent_set_moves(test->first, &(FakeMoves){.to = test->second, .holds = TRUE});
    migrate(test, "n2");
    run_until(fake_agent_n_moves(test->first) == 1);
    g_autoptr(ProtobufCMessage) reply = berthd_fixture_call(test->berthd, &berth__jobs__descriptor,
                                                            "CancelMigration", &request.base);
    const Berth__Event *failed = event_of(test, BERTH__EVENT__KIND__GUEST_MIGRATE_FAILED);
    assert_non_null(strstr(failed->text, "called off"));
    assert_runs_on(test, "n1");
    g_autoptr(GError) again = berthd_fixture_call_error(test->berthd, &berth__jobs__descriptor,
                                                        "CancelMigration", &request.base);
    assert_berth_error(again, BERTH_ERROR_FAILED_PRECONDITION, "is not being moved");
}

static void call_off_outlives_berthd(void **state)
{
    Test *test = *state;
    Berth__CancelMigrationRequest request = BERTH__CANCEL_MIGRATION_REQUEST__INIT;
    request.job = test->job;
    fake_agent_set_moves(test->first, &(FakeMoves){.to = test->second, .holds = TRUE});
    migrate(test, "n2");
    run_until(fake_agent_n_moves(test->first) == 1);
    fake_agent_cut(test->first);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__NODE_DOWN, 0);
    g_autoptr(ProtobufCMessage) reply = berthd_fixture_call(test->berthd, &berth__jobs__descriptor,
                                                            "CancelMigration", &request.base);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    fake_agent_heal(test->first);
    event_of(test, BERTH__EVENT__KIND__GUEST_MIGRATE_FAILED);
    assert_runs_on(test, "n1");
}

static void drain_moves_guests_away(void **state)
{
    Test *test = *state;
    char *names[] = {(char *)"n1"};
    Berth__ChangeNodesRequest request = BERTH__CHANGE_NODES_REQUEST__INIT;
    request.names = names;
    request.n_names = 1;
    request.reason = (char *)"new firmware";
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, &berth__nodes__descriptor, "Drain", &request.base);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__NODE_EMPTY, 0);
    assert_runs_on(test, "n2");
    assert_int_equal(event_of(test, BERTH__EVENT__KIND__GUEST_MIGRATE)->reason,
                     BERTH__REASON__REASON_DRAIN);
}

static GError *migrate_as(BerthRpcPeer *peer, guint64 job, const char *to)
{
    Berth__MigrateRequest request = BERTH__MIGRATE_REQUEST__INIT;
    GError *error = NULL;
    request.job = job;
    request.node = (char *)to;
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call(
        peer, &berth__jobs__descriptor, "Migrate", &request.base, 30000, &error);
    return error;
}

static void migrate_is_for_its_user_and_for_operators(void **state)
{
    Test *test = *state;
    g_autoptr(BerthRpcPeer) bob = berthd_fixture_connect_as(test->berthd, BOB, NO_GROUP);
    g_autoptr(GError) denied = migrate_as(bob, test->job, "n2");
    assert_berth_error(denied, BERTH_ERROR_PERMISSION_DENIED, "belongs to another user");
    g_autoptr(GError) unknown = migrate_as(berthd_fixture_client(test->berthd), test->job, "n7");
    assert_berth_error(unknown, BERTH_ERROR_NOT_FOUND, "no node \"n7\"");
    g_autoptr(GError) there = migrate_as(berthd_fixture_client(test->berthd), test->job, "n1");
    assert_berth_error(there, BERTH_ERROR_FAILED_PRECONDITION, "runs there already");
    assert_int_equal(fake_agent_n_moves(test->first), 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(migrate_moves_a_guest_and_says_so),
        TEST(usage_goes_on_where_it_was),
        TEST(guest_that_cannot_come_stays_with_the_reason),
        TEST(guest_that_cannot_leave_stays_with_the_reason),
        TEST(guest_that_is_lost_on_its_way_has_not_arrived),
        TEST(one_that_has_left_is_stopped_where_it_arrives),
        TEST(answer_that_is_lost_is_asked_for_again),
        TEST(move_outlives_berthd_when_its_source_joins_first),
        TEST(move_outlives_berthd_when_its_destination_joins_first),
        TEST(move_ends_with_the_node_that_it_goes_to),
        TEST(usage_of_who_has_left_is_counted_once),
        TEST(guest_that_came_for_nobody_is_removed),
        TEST(guest_that_left_without_being_asked_is_fenced),
        TEST(move_is_called_off),
        TEST(call_off_outlives_berthd),
        TEST(drain_moves_guests_away),
        TEST(migrate_is_for_its_user_and_for_operators),
    };
    cmocka_set_test_filter(g_getenv("BERTH_TEST_FILTER"));
    return cluster_run("migrate", tests, G_N_ELEMENTS(tests));
}
