/* SPDX-License-Identifier: Apache-2.0 */
/* What the policy learnt and owes, in a berthd that is killed: the same as in one that is not, read
 * from its state. */
#include "config.h"

#include "tests/lib/berthd_test.h"

#include <sqlite3.h>
#include <unistd.h>

typedef struct {
    BerthdTest base;
    Berth__Usage usage; /* what every guest has counted */
} LearnedTest;

static int setup_with(void **state, const char *extra)
{
    LearnedTest *test = g_new0(LearnedTest, 1);
    berth__usage__init(&test->usage);
    test->usage.memory_total_mib = 64;
    test->base.berthd = berthd_fixture_new(extra);
    berthd_fixture_start(test->base.berthd);
    test->base.agent =
        berthd_fixture_add_agent(test->base.berthd, "n1", berthd_test_plan, &test->base.plan);
    berthd_fixture_import(test->base.berthd, "tiny");
    test->base.plan = (FakePlan){.runs_on = TRUE, .usage = &test->usage};
    *state = test;
    return 0;
}

static int setup(void **state)
{
    return setup_with(state, NULL);
}

/* Peaks are told from the first report on. */
static int setup_settled(void **state)
{
    return setup_with(state, "[policy]\nsettle_usec=0\n");
}

/* --- the state ---------------------------------------------------------------------------------- */

/* The record that SQL selects, unpacked (transfer full); NULL = there is none. */
static gpointer stored(LearnedTest *test, const char *sql,
                       const ProtobufCMessageDescriptor *descriptor)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    gpointer message = NULL;
    assert_int_equal(
        sqlite3_open_v2(berthd_fixture_state(test->base.berthd), &db, SQLITE_OPEN_READONLY, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    if (sqlite3_step(statement) == SQLITE_ROW) {
        message =
            protobuf_c_message_unpack(descriptor, NULL, (gsize)sqlite3_column_bytes(statement, 0),
                                      sqlite3_column_blob(statement, 0));
        assert_non_null(message);
    }
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return message;
}

static Berth__StoredPrior *stored_prior(LearnedTest *test)
{
    return stored(test, "SELECT record FROM prior", &berth__stored_prior__descriptor);
}

static Berth__StoredUse *stored_use(LearnedTest *test)
{
    g_autofree char *sql =
        g_strdup_printf("SELECT record FROM used WHERE name = 'user 0/%u'", geteuid());
    return stored(test, sql, &berth__stored_use__descriptor);
}

static Berth__StoredTask *stored_task(LearnedTest *test, guint64 job)
{
    g_autofree char *sql =
        g_strdup_printf("SELECT record FROM task WHERE job = %" G_GUINT64_FORMAT, job);
    return stored(test, sql, &berth__stored_task__descriptor);
}

/* --- jobs ---------------------------------------------------------------------------------------- */

static guint64 start(LearnedTest *test)
{
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.name = (char *)"family";
    guint64 job = berthd_fixture_submit(test->base.berthd, &spec);
    berthd_fixture_wait_event(test->base.berthd, BERTH__EVENT__KIND__GUEST_RUNNING, job);
    return job;
}

/* berthd has taken it once it answers what came after it on the same connection. */
static void report(LearnedTest *test, guint64 used_mib, guint64 starved_usec)
{
    Berth__GuestStatus nobody = BERTH__GUEST_STATUS__INIT;
    Berth__GuestId id = BERTH__GUEST_ID__INIT;
    guint before = fake_agent_n_answers(test->base.agent);
    test->usage.memory_available_mib = 64 - used_mib;
    test->usage.starved_usec = starved_usec;
    fake_agent_report(test->base.agent);
    id.job = 4711;
    nobody.id = &id;
    nobody.phase = BERTH__GUEST_STATUS__PHASE__GONE;
    fake_agent_say(test->base.agent, &nobody);
    run_until(fake_agent_n_answers(test->base.agent) > before);
}

static void end(LearnedTest *test, guint64 job)
{
    assert_true(fake_agent_end(test->base.agent, job, 0));
    berthd_fixture_wait_event(test->base.berthd, BERTH__EVENT__KIND__GUEST_RELEASED, job);
}

static void kill_and_restart(LearnedTest *test)
{
    berthd_fixture_kill(test->base.berthd);
    berthd_fixture_restart(test->base.berthd);
    run_until(fake_agent_is_joined(test->base.agent));
}

/* --- tests --------------------------------------------------------------------------------------- */

static void priors_survive_a_kill(void **state)
{
    LearnedTest *test = *state;
    guint64 first = start(test);
    report(test, 10, 0); /* to compare with */
    report(test, 40, 0);
    end(test, first);
    g_autoptr(ProtobufCMessage) before = (ProtobufCMessage *)stored_prior(test);
    assert_non_null(before);
    assert_int_equal(((Berth__StoredPrior *)before)->siblings, 1);
    guint64 peak_mib = ((Berth__StoredPrior *)before)->peak_mib;
    assert_in_range(peak_mib, 40, 40 + 96); /* with the host's overhead */
    kill_and_restart(test);

    guint64 second = start(test);
    report(test, 5, 0);
    report(test, 20, 0);
    end(test, second);
    g_autoptr(ProtobufCMessage) after = (ProtobufCMessage *)stored_prior(test);
    assert_int_equal(((Berth__StoredPrior *)after)->siblings, 2);
    assert_int_equal(((Berth__StoredPrior *)after)->peak_mib, peak_mib);
}

static void usage_survives_a_kill_and_is_charged_once(void **state)
{
    LearnedTest *test = *state;
    gint64 begin_usec = g_get_real_time();
    guint64 jobs[3];
    guint64 used = 0;
    for (guint i = 0; i < G_N_ELEMENTS(jobs); i++) {
        jobs[i] = start(test);
        kill_and_restart(test); /* with all of them running */
        g_autoptr(ProtobufCMessage) use = (ProtobufCMessage *)stored_use(test);
        assert_true(((Berth__StoredUse *)use)->used_mib_sec >= used);
        used = ((Berth__StoredUse *)use)->used_mib_sec;
    }
    for (guint i = 0; i < G_N_ELEMENTS(jobs); i++) {
        end(test, jobs[i]);
    }
    g_autoptr(ProtobufCMessage) last = (ProtobufCMessage *)stored_use(test);
    const Berth__StoredUse *use = (Berth__StoredUse *)last;
    guint64 passed_sec = (guint64)(g_get_real_time() - begin_usec) / G_USEC_PER_SEC + 1;
    assert_true(use->used_mib_sec >= used);
    /* A vCPU of the node's 64 is worth 1 GiB of its 64: at most that for each, all the time. */
    assert_true(use->used_mib_sec <= 3 * 1024 * passed_sec);
    assert_in_range((gint64)use->at_usec, begin_usec, g_get_real_time());
}

static void starvation_survives_a_kill_and_is_counted_once(void **state)
{
    LearnedTest *test = *state;
    guint64 job = start(test);
    report(test, 10, 0); /* to compare with */
    report(test, 10, 50);
    kill_and_restart(test);
    report(test, 10, 70); /* to compare with */
    report(test, 10, 70);
    report(test, 10, 90);
    report(test, 10, 90);
    end(test, job);
    g_autoptr(ProtobufCMessage) task = (ProtobufCMessage *)stored_task(test, job);
    assert_int_equal(((Berth__StoredTask *)task)->starved_usec, 90);
    assert_int_equal(((Berth__StoredTask *)task)->starved_seen_usec, 90);
}

/* Changes whenever somebody else has committed since DB was opened. */
static gint64 data_version(sqlite3 *db)
{
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, "PRAGMA data_version", -1, &statement, NULL),
                     SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    gint64 version = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return version;
}

static void reports_write_nothing(void **state)
{
    LearnedTest *test = *state;
    sqlite3 *db = NULL;
    guint64 job = start(test);
    report(test, 10, 0);
    assert_int_equal(
        sqlite3_open_v2(berthd_fixture_state(test->base.berthd), &db, SQLITE_OPEN_READONLY, NULL),
        SQLITE_OK);
    gint64 before = data_version(db);
    for (guint64 i = 1; i <= 20; i++) {
        test->usage.cpu_usec += 1000;
        report(test, i % 2 == 0 ? 10 : 60, i);
    }
    assert_int_equal(data_version(db), before);
    end(test, job);
    assert_int_not_equal(data_version(db), before);
    sqlite3_close(db);
}

static guint64 stored_peak_mib(LearnedTest *test, guint64 job)
{
    g_autoptr(ProtobufCMessage) task = (ProtobufCMessage *)stored_task(test, job);
    assert_non_null(task);
    return ((Berth__StoredTask *)task)->peak_mib;
}

/* A report is answered before what it changed is committed, unlike a request. */
static guint64 wait_for_peak_mib(LearnedTest *test, guint64 job, guint64 least_mib)
{
    run_until(stored_peak_mib(test, job) >= least_mib);
    return stored_peak_mib(test, job);
}

/* What it ends with is known, although nothing is heard of it after the restart. */
static void peak_of_a_running_guest_survives_a_kill(void **state)
{
    LearnedTest *test = *state;
    guint64 job = start(test);
    report(test, 40, 0); /* to compare with */
    assert_int_equal(stored_peak_mib(test, job), 0);
    report(test, 40, 0);
    guint64 peak_mib = wait_for_peak_mib(test, job, 1);
    assert_in_range(peak_mib, 40, 40 + 96); /* with the host's overhead */
    kill_and_restart(test);
    end(test, job);
    g_autoptr(ProtobufCMessage) prior = (ProtobufCMessage *)stored_prior(test);
    assert_non_null(prior);
    assert_int_equal(((Berth__StoredPrior *)prior)->siblings, 1);
    assert_int_equal(((Berth__StoredPrior *)prior)->peak_mib, peak_mib);
}

static void peak_is_written_when_memory_has_grown_by_a_step(void **state)
{
    LearnedTest *test = *state;
    sqlite3 *db = NULL;
    guint64 job = start(test);
    report(test, 1, 0);
    report(test, 1, 0);
    assert_int_equal(
        sqlite3_open_v2(berthd_fixture_state(test->base.berthd), &db, SQLITE_OPEN_READONLY, NULL),
        SQLITE_OK);
    guint64 before_mib = wait_for_peak_mib(test, job, 1);
    report(test, 60, 0);
    assert_int_equal(wait_for_peak_mib(test, job, before_mib + 1), before_mib + 59);
    gint64 before = data_version(db);
    for (guint64 i = 0; i < 20; i++) {
        test->usage.cpu_usec += 1000;
        report(test, i % 2 == 0 ? 10 : 62, 0);
    }
    assert_int_equal(data_version(db), before);
    assert_int_equal(stored_peak_mib(test, job), before_mib + 59);
    sqlite3_close(db);
    end(test, job);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, berthd_test_teardown)
#define SETTLED(function)                                                                          \
    cmocka_unit_test_setup_teardown(function, setup_settled, berthd_test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(priors_survive_a_kill),
        TEST(usage_survives_a_kill_and_is_charged_once),
        TEST(starvation_survives_a_kill_and_is_counted_once),
        TEST(reports_write_nothing),
        SETTLED(peak_of_a_running_guest_survives_a_kill),
        SETTLED(peak_is_written_when_memory_has_grown_by_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
