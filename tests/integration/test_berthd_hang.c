/* SPDX-License-Identifier: Apache-2.0 */
/* A real berthd whose storage hangs: who waits for it is told in time, and the daemon ends. Storage hangs
 * where it opens the mark, of which the test has a lease (fcntl(2)): the kernel lets others wait for some
 * 45 s, or until the lease is given back. */
#include "config.h"

#include "tests/lib/berthd_storage.h"
#include "tests/lib/berthd_test.h"

#include "common/message.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>

#define BLOCK       10000u /* of scheduler/daemon/job_numbers.c */
#define WAITING_MAX 1024u
#define CALLS_MAX   64u /* that one connection may have open */

typedef struct {
    BerthdTest base; /* for berthd_test_teardown() */
    char *mark;
    int lease; /* a descriptor, or -1 */
} HangTest;

static gboolean storage_answers(BerthdFixture *berthd)
{
    g_autofree char *error = berthd_test_storage_error(berthd);
    return *error == '\0';
}

static int setup_with(void **state, const char *storage_lines)
{
    HangTest *test = g_new0(HangTest, 1);
    signal(SIGIO, SIG_IGN); /* somebody waits for the lease */
    test->base.berthd = berthd_fixture_new_storage(NULL, storage_lines);
    test->mark = g_build_filename(berthd_fixture_dir(test->base.berthd), "storage/mark", NULL);
    test->lease = -1;
    berthd_fixture_start(test->base.berthd);
    test->base.agent =
        berthd_fixture_add_agent(test->base.berthd, "n1", berthd_test_plan, &test->base.plan);
    run_until(storage_answers(test->base.berthd)); /* on a busy disk not at once */
    berthd_fixture_import(test->base.berthd, "tiny");
    *state = test;
    return 0;
}

static int setup_impatient(void **state)
{
    return setup_with(state, "check_interval = 1s\nop_timeout_sec = 1\n");
}

static int setup_patient(void **state)
{
    return setup_with(state, "check_interval = 1s\nop_timeout_sec = 60\n");
}

static void release(HangTest *test)
{
    if (test->lease >= 0)
        assert_int_equal(close(test->lease), 0);
    test->lease = -1;
}

static int teardown(void **state)
{
    HangTest *test = *state;
    release(test);
    g_free(test->mark);
    return berthd_test_teardown(state);
}

/* From now on opening the mark hangs: F_RDLCK: for writing, F_WRLCK: at all. FALSE: it is open. */
static gboolean try_hold(HangTest *test, int kind)
{
    release(test);
    test->lease = open(test->mark, O_RDONLY | O_CLOEXEC);
    assert_true(test->lease >= 0);
    if (fcntl(test->lease, F_SETLEASE, kind) == 0)
        return TRUE;
    if (errno != EAGAIN) {
        print_message("no leases here: %s\n", g_strerror(errno));
        skip();
    }
    return FALSE;
}

static void hold(HangTest *test, int kind)
{
    run_until(try_hold(test, kind));
}

static GError *submit_error(HangTest *test)
{
    Berth__JobSpec spec = berthd_fixture_spec();
    return berthd_fixture_submit_error(test->base.berthd, &spec);
}

static void storage_that_hangs_when_opened_is_away_for_whoever_waits(void **state)
{
    HangTest *test = *state;
    BerthdFixture *berthd = test->base.berthd;
    assert_int_equal(berthd_fixture_terminate(berthd), 0);
    hold(test, F_WRLCK);
    berthd_fixture_restart(berthd);
    g_autoptr(GError) number = submit_error(test);
    assert_berth_error(number, BERTH_ERROR_UNAVAILABLE, "could not be opened within 2 s");
    Berth__ImportBeginRequest begin = BERTH__IMPORT_BEGIN_REQUEST__INIT;
    begin.name = (char *)"other";
    begin.size_bytes = 4096;
    g_autoptr(GError) import =
        berthd_fixture_call_error(berthd, &berth__images__descriptor, "ImportBegin", &begin.base);
    assert_berth_error(import, BERTH_ERROR_UNAVAILABLE, "storage cannot be reached");
    release(test); /* the attempt has gone on */
    berthd_fixture_wait_event(berthd, BERTH__EVENT__KIND__STORAGE_UP, 0);
    assert_int_equal(berthd_fixture_submit_plain(berthd), 1);
    berthd_fixture_wait_state(berthd, 1, BERTH__JOB_STATE__COMPLETED);
}

static void reservation_that_hangs_is_given_up_and_made_later(void **state)
{
    HangTest *test = *state;
    BerthdFixture *berthd = test->base.berthd;
    run_until(berthd_test_mark_has(test->base.berthd, BLOCK + 1, 1));
    assert_int_equal(berthd_fixture_terminate(berthd), 0);
    Berth__StorageMark *mark = berthd_test_read_mark(test->base.berthd);
    mark->jobs_reserved = 1; /* as if it had been killed before it was written */
    g_autoptr(GBytes) content = berth_message_pack(&mark->base);
    berth__storage_mark__free_unpacked(mark, NULL);
    assert_true(g_file_set_contents(test->mark, g_bytes_get_data(content, NULL),
                                    (gssize)g_bytes_get_size(content), NULL));
    hold(test, F_RDLCK);
    berthd_fixture_restart(berthd);
    g_autoptr(GError) error = submit_error(test);
    assert_berth_error(error, BERTH_ERROR_UNAVAILABLE, "no job number can be given out");
    release(test);
    run_until(berthd_test_mark_has(test->base.berthd, BLOCK + 1, 1));
    assert_int_equal(berthd_fixture_submit_plain(berthd), 1);
    run_until(berthd_test_mark_has(test->base.berthd, BLOCK + 1, 2));
}

typedef struct {
    guint jobs;
    guint others;
    GError *refusal;
} Answers;

static void on_submitted(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Answers *answers = user_data;
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *reply = berth_rpc_peer_call_finish(result, &error);
    if (reply)
        answers->jobs++;
    else if (!answers->refusal)
        answers->refusal = g_steal_pointer(&error);
    else
        answers->others++;
    g_clear_pointer(&reply, berth_message_free);
}

static void submit_held(BerthRpcPeer *peer, Answers *answers)
{
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.hold = TRUE;
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    request.spec = &spec;
    berth_rpc_peer_call_async(peer, &berth__jobs__descriptor, "Submit", &request.base, 0, NULL,
                              on_submitted, answers);
}

static void submissions_beyond_those_that_may_wait_are_resource_exhausted(void **state)
{
    HangTest *test = *state;
    BerthdFixture *berthd = test->base.berthd;
    Answers answers = {0};
    g_autoptr(GError) error = NULL;
    assert_int_equal(berthd_fixture_terminate(berthd), 0);
    hold(test, F_WRLCK);
    berthd_fixture_restart(berthd);
    g_autoptr(GPtrArray) peers =
        g_ptr_array_new_with_free_func((GDestroyNotify)berth_rpc_peer_unref);
    for (guint i = 0; i <= WAITING_MAX; i++) {
        if (i % CALLS_MAX == 0) {
            g_ptr_array_add(peers,
                            berth_rpc_connect_unix(berthd_fixture_socket(berthd), NULL, &error));
            assert_no_error(error);
        }
        submit_held(g_ptr_array_index(peers, peers->len - 1), &answers);
    }
    run_until(answers.refusal != NULL);
    assert_berth_error(answers.refusal, BERTH_ERROR_RESOURCE_EXHAUSTED, "1024 submissions wait");
    assert_int_equal(answers.jobs, 0);
    release(test);
    run_until(answers.jobs == WAITING_MAX);
    assert_int_equal(answers.others, 0);
    g_clear_error(&answers.refusal);
}

/* The file in storage that has CONTENT. (transfer full) */
static char *file_with(HangTest *test, const char *content, gsize length)
{
    g_autofree char *hex =
        g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guint8 *)content, length);
    return g_strdup_printf("%s/storage/blobs/%.2s/%s/data", berthd_fixture_dir(test->base.berthd),
                           hex, hex);
}

/* It is looked at before the other's environment is read, which takes so long that the first is forgotten by then. */
static void job_after_one_that_ends_while_its_environment_is_read_starts(void **state)
{
    static const char content[] = "A=1";
    HangTest *test = *state;
    BerthdFixture *berthd = test->base.berthd;
    Berth__Dependency dependency = BERTH__DEPENDENCY__INIT;
    Berth__Dependency *dependencies[] = {&dependency};
    Berth__JobSpec spec = berthd_fixture_spec();
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    Berth__PutBlobRequest put = BERTH__PUT_BLOB_REQUEST__INIT;
    Berth__BlobRef blob = BERTH__BLOB_REF__INIT;
    g_autoptr(GAsyncResult) result = NULL;
    g_autoptr(GError) error = NULL;
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    guint8 digest[BERTH_SHA256_BYTES];
    gsize digest_bytes = sizeof digest;
    g_checksum_update(checksum, (const guint8 *)content, sizeof content);
    g_checksum_get_digest(checksum, digest, &digest_bytes);
    blob.sha256 = (ProtobufCBinaryData){sizeof digest, digest};
    blob.size_bytes = sizeof content;
    put.blob = &blob;
    put.data = (ProtobufCBinaryData){sizeof content, (uint8_t *)content};
    berth_message_free(berthd_fixture_call(berthd, &berth__blobs__descriptor, "Put", &put.base));
    test->base.plan = (FakePlan){.runs_on = TRUE};
    dependency.job = berthd_fixture_submit_plain(berthd);
    dependency.kind = BERTH__DEPENDENCY__KIND__AFTER_OK;
    spec.dependencies = dependencies;
    spec.n_dependencies = 1;
    spec.environment = &blob;
    request.spec = &spec;
    berthd_fixture_wait_event(berthd, BERTH__EVENT__KIND__GUEST_RUNNING, dependency.job);
    g_free(test->mark);
    test->mark = file_with(test, content, sizeof content);
    hold(test, F_WRLCK);
    berth_rpc_peer_call_async(berthd_fixture_client(berthd), &berth__jobs__descriptor, "Submit",
                              &request.base, 0, NULL, berthd_test_keep_result, &result);
    /* Both are behind it: the second has been read when the first has. */
    berth_message_free(&berthd_fixture_get(berthd, dependency.job)->base);
    berth_message_free(&berthd_fixture_get(berthd, dependency.job)->base);
    test->base.plan = (FakePlan){.status = 0};
    run_until(fake_agent_end_task(test->base.agent, dependency.job, 0, 0));
    berthd_fixture_wait_state(berthd, dependency.job, BERTH__JOB_STATE__COMPLETED);
    run_until(fake_agent_n_guests(test->base.agent) == 0);
    assert_null(result);
    release(test);
    run_until(result != NULL);
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, &error);
    assert_no_error(error);
    berthd_fixture_wait_state(berthd, ((const Berth__SubmitReply *)reply)->job,
                              BERTH__JOB_STATE__COMPLETED);
}

/* A check that has run out of time looks at whose storage it is when it gets its answer, be it at the end
 * of the daemon: built with a sanitizer, it fails where that is gone. */
static void check_that_is_answered_while_the_daemon_ends_is_harmless(void **state)
{
    HangTest *test = *state;
    BerthdFixture *berthd = test->base.berthd;
    g_autofree char *journal = g_strconcat(berthd_fixture_state(berthd), "-wal", NULL);
    run_until(berthd_test_mark_has(test->base.berthd, BLOCK + 1, 1));
    hold(test, F_WRLCK);
    berthd_fixture_wait_event(berthd, BERTH__EVENT__KIND__STORAGE_DOWN, 0);
    berthd_fixture_signal(berthd, SIGTERM);
    run_until(
        !g_file_test(journal, G_FILE_TEST_EXISTS)); /* the state was closed: nearly at the end */
    release(test);
    assert_int_equal(berthd_fixture_wait(berthd), 0);
}

#define TEST(function, setup) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(storage_that_hangs_when_opened_is_away_for_whoever_waits, setup_impatient),
        TEST(reservation_that_hangs_is_given_up_and_made_later, setup_impatient),
        TEST(submissions_beyond_those_that_may_wait_are_resource_exhausted, setup_patient),
        TEST(job_after_one_that_ends_while_its_environment_is_read_starts, setup_patient),
        TEST(check_that_is_answered_while_the_daemon_ends_is_harmless, setup_impatient),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
