/* SPDX-License-Identifier: Apache-2.0 */
/* Many jobs in one call to a real berthd: who else is served meanwhile, and what they do to each other. */
#include "tests/lib/berthd_test.h"

#include "scheduler/daemon/pb.h"

static const ProtobufCServiceDescriptor *const jobs = &berth__jobs__descriptor;

/* REQUESTS are sent as one call; *RESULT_AT is set when it is answered, and is taken by take_reply(). */
static void call_many(BerthdTest *test, Berth__SubmitRequest **requests, guint n,
                      GAsyncResult **result_at)
{
    Berth__SubmitManyRequest many = BERTH__SUBMIT_MANY_REQUEST__INIT;
    many.jobs = requests;
    many.n_jobs = n;
    berth_rpc_peer_call_async(berthd_fixture_client(test->berthd), jobs, "SubmitMany", &many.base,
                              0, NULL, berthd_test_keep_result, result_at);
}

static Berth__SubmitManyReply *take_reply(GAsyncResult *result, guint n)
{
    g_autoptr(GError) error = NULL;
    ProtobufCMessage *message = berth_rpc_peer_call_finish(result, &error);
    Berth__SubmitManyReply *reply = (Berth__SubmitManyReply *)message;
    assert_no_error(error);
    assert_int_equal(reply->n_results, n);
    g_object_unref(result);
    return reply;
}

/* N times the same. (transfer container) */
static Berth__SubmitRequest **times(Berth__SubmitRequest *request, guint n)
{
    Berth__SubmitRequest **requests = g_new(Berth__SubmitRequest *, n);
    for (guint i = 0; i < n; i++)
        requests[i] = request;
    return requests;
}

/* --- one key ------------------------------------------------------------------------------------ */

#define N_JOBS 10000u /* of one call */
#define N_MORE 1000u  /* of the next */
#define N_BAD  (N_JOBS - 2)

/* That many were refused, and all others are job 1. */
static void assert_refused(const Berth__SubmitManyReply *reply, guint n_refused)
{
    guint n = 0;
    for (gsize i = 0; i < reply->n_results; i++) {
        n += reply->results[i]->error != NULL;
        assert_int_equal(reply->results[i]->job, reply->results[i]->error ? 0 : 1);
    }
    assert_int_equal(n, n_refused);
}

/* One of them is looked for, and none begins to wait again: of each that was, a worker would tell the loop, which has to read
 * that. */
static void refused_of_one_key_are_looked_for_once(void **state)
{
    BerthdTest *test = *state;
    GAsyncResult *result = NULL, *more = NULL;
    Berth__JobSpec bad = BERTH__JOB_SPEC__INIT, good = berthd_fixture_spec();
    Berth__SubmitRequest refused = BERTH__SUBMIT_REQUEST__INIT, taken = refused;
    g_autofree Berth__SubmitRequest **requests = times(&refused, N_JOBS);
    refused.spec = &bad;
    taken.spec = &good;
    good.hold = TRUE;
    refused.idempotency_key = taken.idempotency_key = (char *)"of all";
    requests[N_BAD] = &taken;
    guint64 before = berthd_fixture_n_reads(test->berthd);
    call_many(test, requests, N_JOBS, &result);
    call_many(test, requests, N_MORE, &more); /* of what has, or will have, the key */
    run_until(result && more);
    assert_true(berthd_fixture_n_reads(test->berthd) - before < N_BAD);
    g_autoptr(ProtobufCMessage) reply = &take_reply(result, N_JOBS)->base;
    g_autoptr(ProtobufCMessage) next = &take_reply(more, N_MORE)->base;
    assert_refused((Berth__SubmitManyReply *)reply, N_BAD);
    assert_refused((Berth__SubmitManyReply *)next, 0);
    assert_int_equal(berthd_fixture_submit_plain(test->berthd), 2);
}

/* --- others ------------------------------------------------------------------------------------- */

#define N_MANY   4000u
#define N_BESIDE 8u

/* One job after the other, until the many that came in one call are answered. */
typedef struct {
    BerthdTest *test;
    const Berth__SubmitRequest *request;
    GHashTable *numbers;
    guint n_open;
    GAsyncResult *many;
} Beside;

static void submit_beside(Beside *beside);

static void on_beside(GObject *source, GAsyncResult *result, gpointer user_data)
{
    Beside *beside = user_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, &error);
    assert_no_error(error);
    guint64 number = ((Berth__SubmitReply *)reply)->job;
    g_hash_table_add(beside->numbers, GSIZE_TO_POINTER(number));
    beside->n_open--;
    if (!beside->many)
        submit_beside(beside);
}

static void submit_beside(Beside *beside)
{
    beside->n_open++;
    berth_rpc_peer_call_async(berthd_fixture_client(beside->test->berthd), jobs, "Submit",
                              &beside->request->base, 0, NULL, on_beside, beside);
}

/* Their numbers rise; so many of the others' lie between them. */
static guint submit_many_beside(BerthdTest *test)
{
    Berth__JobSpec spec = berthd_fixture_spec();
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    g_autofree Berth__SubmitRequest **requests = times(&request, N_MANY);
    g_autoptr(GHashTable) numbers = g_hash_table_new(NULL, NULL);
    Beside beside = {.test = test, .request = &request, .numbers = numbers};
    guint64 last = 0;
    guint n_between = 0;
    spec.hold = TRUE;
    request.spec = &spec;
    call_many(test, requests, N_MANY, &beside.many);
    for (guint i = 0; i < N_BESIDE; i++)
        submit_beside(&beside);
    run_until(beside.many && beside.n_open == 0);
    g_autoptr(ProtobufCMessage) message = &take_reply(beside.many, N_MANY)->base;
    const Berth__SubmitManyReply *reply = (Berth__SubmitManyReply *)message;
    for (gsize i = 0; i < N_MANY; i++) {
        assert_null(reply->results[i]->error);
        assert_true(reply->results[i]->job > last);
        for (guint64 number = last + 1; i > 0 && number < reply->results[i]->job; number++)
            n_between += g_hash_table_contains(numbers, GSIZE_TO_POINTER(number));
        last = reply->results[i]->job;
    }
    assert_int_equal(last - reply->results[0]->job, N_MANY - 1 + n_between);
    return n_between;
}

/* All of them may be decided on while a slow disk keeps the others from their first answer. */
static void many_let_others_come_between(void **state)
{
    guint n_between = 0;
    for (guint tries = 0; n_between == 0 && tries < 10; tries++)
        n_between = submit_many_beside(*state);
    assert_true(n_between > 0);
}

/* It has come to some of them, which are there when it runs again; whoever asked has no answer, or that it has not come to the others. */
static void many_end_with_the_daemon(void **state)
{
    BerthdTest *test = *state;
    GAsyncResult *result = NULL;
    g_autoptr(GError) error = NULL;
    Berth__JobSpec spec = berthd_fixture_spec();
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    g_autofree Berth__SubmitRequest **requests = times(&request, N_JOBS);
    spec.hold = TRUE;
    request.spec = &spec;
    call_many(test, requests, N_JOBS, &result);
    run_until(berthd_test_newest_job(test) > 0);
    assert_int_equal(berthd_fixture_terminate(test->berthd), 0);
    run_until(result);
    g_autoptr(ProtobufCMessage) message = berth_rpc_peer_call_finish(result, &error);
    g_object_unref(result);
    assert_true(message || g_error_matches(error, BERTH_ERROR, BERTH_ERROR_UNAVAILABLE));
    berthd_fixture_restart(test->berthd);
    guint64 next = berthd_fixture_submit_plain(test->berthd);
    assert_in_range(next, 2, N_JOBS + 1);
    g_autoptr(Berth__Job) last = berthd_fixture_get(test->berthd, next - 1);
    assert_int_equal(last->state, BERTH__JOB_STATE__PENDING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BERTHD_TEST(refused_of_one_key_are_looked_for_once),
        BERTHD_TEST(many_let_others_come_between),
        BERTHD_TEST(many_end_with_the_daemon),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
