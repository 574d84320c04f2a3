/* SPDX-License-Identifier: Apache-2.0 */
/* `berth bulk`, and the call that it makes: many jobs at once, each taken or refused by itself. */
#include "tests/lib/berthd_test.h"
#include "tests/lib/cli_process.h"

#include "scheduler/daemon/pb.h"

static const ProtobufCServiceDescriptor *const jobs = &berth__jobs__descriptor;

#define MANY 3u

typedef struct {
    Berth__SubmitManyRequest request;
    Berth__SubmitRequest requests[MANY];
    Berth__SubmitRequest *pointers[MANY];
    Berth__JobSpec specs[MANY];
} Many;

static void fill(Many *many)
{
    berth__submit_many_request__init(&many->request);
    for (guint i = 0; i < MANY; i++) {
        berth__submit_request__init(&many->requests[i]);
        many->specs[i] = berthd_fixture_spec();
        many->requests[i].spec = &many->specs[i];
        many->pointers[i] = &many->requests[i];
    }
    many->request.jobs = many->pointers;
    many->request.n_jobs = MANY;
}

static Berth__SubmitManyReply *send(BerthdTest *test, const Many *many)
{
    Berth__SubmitManyReply *reply =
        berthd_fixture_call(test->berthd, jobs, "SubmitMany", &many->request.base);
    assert_int_equal(reply->n_results, many->request.n_jobs);
    return reply;
}

static void each_of_many_is_taken_or_refused_by_itself(void **state)
{
    BerthdTest *test = *state;
    Many many;
    fill(&many);
    many.specs[1].vcpus = 100000;
    Berth__SubmitManyReply *reply = send(test, &many);
    assert_null(reply->results[0]->error);
    assert_non_null(reply->results[1]->error);
    assert_int_equal(reply->results[1]->error->code, BERTH__ERROR_CODE__ERROR_INVALID_ARGUMENT);
    assert_int_equal(reply->results[1]->job, 0);
    assert_null(reply->results[2]->error);
    assert_int_equal(reply->results[2]->job, reply->results[0]->job + 1);
    berthd_fixture_wait_state(test->berthd, reply->results[0]->job, BERTH__JOB_STATE__COMPLETED);
    berthd_fixture_wait_state(test->berthd, reply->results[2]->job, BERTH__JOB_STATE__COMPLETED);
    berth_message_free(&reply->base);
}

static void many_of_none_are_answered(void **state)
{
    BerthdTest *test = *state;
    Many many;
    fill(&many);
    many.request.n_jobs = 0;
    berth_message_free(&send(test, &many)->base);
    many.request.n_jobs = 1;
    many.specs[0].vcpus = 100000;
    berth_message_free(&send(test, &many)->base);
}

/* Numbers are reserved by blocks of ten thousand. */
static void more_than_there_are_numbers_for_wait_for_more(void **state)
{
    enum { N = 6000 };
    BerthdTest *test = *state;
    Berth__JobSpec spec = berthd_fixture_spec();
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    Berth__SubmitManyRequest many = BERTH__SUBMIT_MANY_REQUEST__INIT;
    g_autofree Berth__SubmitRequest **requests = g_new(Berth__SubmitRequest *, N);
    g_autoptr(GHashTable) numbers = g_hash_table_new(NULL, NULL);
    GAsyncResult *results[2] = {NULL, NULL};
    spec.hold = TRUE;
    request.spec = &spec;
    for (guint i = 0; i < N; i++)
        requests[i] = &request;
    many.jobs = requests;
    many.n_jobs = N;
    for (guint call = 0; call < 2; call++)
        berth_rpc_peer_call_async(berthd_fixture_client(test->berthd), jobs, "SubmitMany",
                                  &many.base, 0, NULL, berthd_test_keep_result, &results[call]);
    run_until(results[0] != NULL && results[1] != NULL);
    for (guint call = 0; call < 2; call++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(results[call], &error);
        const Berth__SubmitManyReply *answers = (const Berth__SubmitManyReply *)(void *)reply;
        assert_no_error(error);
        assert_int_equal(answers->n_results, N);
        for (guint i = 0; i < N; i++) {
            assert_null(answers->results[i]->error);
            assert_true(g_hash_table_add(numbers, GUINT_TO_POINTER(answers->results[i]->job)));
        }
        g_object_unref(results[call]);
    }
}

/* In the same call, and in a later one. */
static void same_key_is_one_job(void **state)
{
    BerthdTest *test = *state;
    Many many;
    fill(&many);
    many.requests[0].idempotency_key = many.requests[2].idempotency_key = (char *)"k";
    Berth__SubmitManyReply *first = send(test, &many);
    Berth__SubmitManyReply *again = send(test, &many);
    guint64 job = first->results[0]->job;
    assert_int_equal(first->results[2]->job, job);
    assert_int_not_equal(first->results[1]->job, job);
    assert_int_equal(again->results[0]->job, job);
    assert_int_equal(again->results[2]->job, job);
    assert_int_not_equal(again->results[1]->job, first->results[1]->job);
    berth_message_free(&first->base);
    berth_message_free(&again->base);
}

/* Whoever has the key of one that is refused is refused with it, and may come again. */
static void key_of_one_that_is_refused_is_free(void **state)
{
    BerthdTest *test = *state;
    Many many;
    fill(&many);
    many.requests[0].idempotency_key = many.requests[2].idempotency_key = (char *)"k";
    many.specs[0].image = (char *)"no-such-image";
    Berth__SubmitManyReply *reply = send(test, &many);
    assert_non_null(reply->results[0]->error);
    assert_null(reply->results[1]->error);
    berth_message_free(&reply->base);
    many.specs[0].image = many.specs[1].image;
    reply = send(test, &many);
    assert_null(reply->results[0]->error);
    assert_int_equal(reply->results[2]->job, reply->results[0]->job);
    berth_message_free(&reply->base);
}

static void acknowledged_ones_survive_a_kill(void **state)
{
    BerthdTest *test = *state;
    Many many;
    fill(&many);
    for (guint i = 0; i < MANY; i++)
        many.specs[i].hold = TRUE;
    Berth__SubmitManyReply *reply = send(test, &many);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    for (guint i = 0; i < MANY; i++)
        assert_int_equal(berthd_fixture_state_of(test->berthd, reply->results[i]->job),
                         BERTH__JOB_STATE__PENDING);
    berth_message_free(&reply->base);
}

/* --- the verb --------------------------------------------------------------------------------- */

static void bulk_prints_the_number_of_each_line(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(CliProcess) cli = CLI_SHELL(
        test->berthd,
        "for i in 1 2 3; do echo '{\"command\": [\"echo\", \"'$i'\"], \"env\": [\"A=1\", \"B=2\"],"
        " \"vcpus\": 1, \"memory\": \"64M\", \"name\": \"n'$i'\"}'; echo; done | \"$BERTH\" bulk");
    assert_cli_status(cli, 0);
    assert_string_equal(cli_err(cli), "");
    g_auto(GStrv) lines = g_strsplit(cli_out(cli), "\n", -1);
    assert_int_equal(g_strv_length(lines), 4);
    for (guint i = 0; i < 3; i++) {
        guint64 job = g_ascii_strtoull(lines[i], NULL, 10);
        g_autofree char *name = g_strdup_printf("n%u", i + 1);
        g_autoptr(Berth__Job) record = berthd_fixture_get(test->berthd, job);
        assert_string_equal(record->name, name);
        assert_int_equal(record->spec->environment->size_bytes, 8);
        berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    }
}

static void bulk_says_what_is_wrong_with_which_line(void **state)
{
    BerthdTest *test = *state;
    static const struct {
        const char *line;
        const char *why;
    } cases[] = {
        {"{", "not JSON"},
        {"[1]", "not a JSON object"},
        {"{}", "\"command\" is missing"},
        {"{\"command\": \"true\"}", "\"command\" is not a list of words"},
        {"{\"command\": [{}]}", "a word that is no text"},
        {"{\"command\": [\"true\"], \"colour\": 1}",
         "unknown key \"colour\"; berth bulk --help says which there are"},
        {"{\"commnd\": [\"true\"]}", "unknown key \"commnd\"; did you mean \"command\"?"},
        {"{\"command\": [\"true\"], \"vcpu\": 1}", "unknown key \"vcpu\"; did you mean \"vcpus\"?"},
        {"{\"command\": [\"true\"], \"vcpus\": \"x\"}", "\"vcpus\": "},
        {"{\"command\": [\"true\"], \"vcpus\": {}}", "neither a text"},
        {"{\"script\": \"/no/such/file\"}", "/no/such/file"},
        {"{\"command\": [\"true\"], \"image\": \"no-such-image\"}", "no-such-image"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *script = g_strdup_printf(
            "printf '%%s\\n' '{\"command\": [\"true\"]}' '%s' '{\"command\": [\"true\"]}' |"
            " \"$BERTH\" bulk",
            cases[i].line);
        g_autoptr(CliProcess) cli = CLI_SHELL(test->berthd, script);
        assert_cli_status(cli, 1);
        assert_contains(cli_err(cli), "standard input, line 2: ");
        assert_contains(cli_err(cli), cases[i].why);
        g_auto(GStrv) lines = g_strsplit(cli_out(cli), "\n", -1);
        assert_int_equal(g_strv_length(lines), 4);
        assert_string_equal(lines[1], "-");
        assert_true(g_ascii_isdigit(lines[0][0]) && g_ascii_isdigit(lines[2][0]));
    }
}

static void bulk_with_a_key_submits_once(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(CliProcess) cli =
        CLI_SHELL(test->berthd,
                  "yes '{\"command\": [\"true\"], \"hold\": true}' | head -n 2500 > \"$TMPDIR/l\";"
                  " \"$BERTH\" bulk --key k \"$TMPDIR/l\" > \"$TMPDIR/a\";"
                  " \"$BERTH\" bulk --key k \"$TMPDIR/l\" > \"$TMPDIR/b\";"
                  " cmp \"$TMPDIR/a\" \"$TMPDIR/b\" && sort -u \"$TMPDIR/a\" | wc -l");
    assert_cli_status(cli, 0);
    assert_int_equal(g_ascii_strtoull(cli_out(cli), NULL, 10), 2500);
}

static int setup(void **state)
{
    int status = berthd_test_setup(state);
    const BerthdTest *test = *state;
    g_setenv("TMPDIR", berthd_fixture_dir(test->berthd), TRUE);
    return status;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BERTHD_TEST(each_of_many_is_taken_or_refused_by_itself),
        BERTHD_TEST(many_of_none_are_answered),
        BERTHD_TEST(more_than_there_are_numbers_for_wait_for_more),
        BERTHD_TEST(same_key_is_one_job),
        BERTHD_TEST(key_of_one_that_is_refused_is_free),
        BERTHD_TEST(acknowledged_ones_survive_a_kill),
        BERTHD_TEST(bulk_prints_the_number_of_each_line),
        BERTHD_TEST(bulk_says_what_is_wrong_with_which_line),
        cmocka_unit_test_setup_teardown(bulk_with_a_key_submits_once, setup, berthd_test_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
