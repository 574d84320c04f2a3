/* SPDX-License-Identifier: Apache-2.0 */
/* Submissions to a real berthd, over its socket: what is refused, what a key is answered with, and where their payloads are. */
#include "tests/lib/berthd_test.h"

static const ProtobufCServiceDescriptor *const jobs = &berth__jobs__descriptor;

static void submit_absurd_is_refused(void **state)
{
    BerthdTest *test = *state;
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.vcpus = 1000;
    g_autoptr(GError) large = berthd_fixture_submit_error(test->berthd, &spec);
    assert_berth_error(large, BERTH_ERROR_INVALID_ARGUMENT, "n1");
    spec = berthd_fixture_spec();
    spec.image = (char *)"none";
    g_autoptr(GError) image = berthd_fixture_submit_error(test->berthd, &spec);
    assert_berth_error(image, BERTH_ERROR_NOT_FOUND, "there are: tiny");
    char *nodes[] = {(char *)"n9"};
    spec = berthd_fixture_spec();
    spec.nodes = nodes;
    spec.n_nodes = 1;
    g_autoptr(GError) node = berthd_fixture_submit_error(test->berthd, &spec);
    assert_berth_error(node, BERTH_ERROR_INVALID_ARGUMENT, "no node \"n9\"");
    guint64 next = berthd_fixture_submit_plain(test->berthd);
    assert_int_equal(next, 1); /* refused ones took no number */
}

static guint64 job_of(BerthdTest *test, const Berth__SubmitRequest *request)
{
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, jobs, "Submit", &request->base);
    return ((const Berth__SubmitReply *)reply)->job;
}

static void submit_same_key_is_same_job(void **state)
{
    BerthdTest *test = *state;
    Berth__JobSpec spec = berthd_fixture_spec();
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    request.spec = &spec;
    request.idempotency_key = (char *)"once";
    guint64 first = job_of(test, &request);
    assert_int_equal(job_of(test, &request), first);
    berthd_fixture_kill(test->berthd);
    berthd_fixture_restart(test->berthd);
    assert_int_equal(job_of(test, &request), first);
}

static int setup_one_job(void **state)
{
    return berthd_test_setup_with(state, "[limits]\nuser_jobs_max = 1\n");
}

/* Who asks again is answered, however many he has meanwhile. */
static void submit_same_key_at_the_users_limit_is_same_job(void **state)
{
    BerthdTest *test = *state;
    Berth__JobSpec spec = berthd_fixture_spec();
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    test->plan.run_msec = 60000;
    request.spec = &spec;
    request.idempotency_key = (char *)"once";
    guint64 first = job_of(test, &request);
    assert_int_equal(job_of(test, &request), first);
    g_autoptr(GError) error = berthd_fixture_submit_error(test->berthd, &spec);
    assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "all that one user may have");
    request.idempotency_key = (char *)"another";
    g_autoptr(GError) other =
        berthd_fixture_call_error(test->berthd, jobs, "Submit", &request.base);
    assert_berth_error(other, BERTH_ERROR_RESOURCE_EXHAUSTED, "all that one user may have");
}

/* --- a key, when the rest of the request would be refused now ---------------------------------- */

static GError *error_of(BerthdTest *test, const Berth__SubmitRequest *request)
{
    return berthd_fixture_call_error(test->berthd, jobs, "Submit", &request->base);
}

static int setup_large_arrays(void **state)
{
    return berthd_test_setup_with(state, "[limits]\narray_tasks_max = 100\n");
}

static void allow_small_arrays_only(BerthdTest *test)
{
    const char *path = berthd_fixture_config(test->berthd);
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_auto(GStrv) parts = g_strsplit(text, "array_tasks_max = 100\n", -1);
    g_autofree char *changed = g_strjoinv("array_tasks_max = 2\n", parts);
    assert_int_equal(g_strv_length(parts), 2);
    assert_true(g_file_set_contents(path, changed, -1, NULL));
}

/* What was committed is told of, whatever the configuration says by now. */
static void submit_same_key_after_limits_became_smaller_is_same_job(void **state)
{
    BerthdTest *test = *state;
    Berth__IndexRange range = BERTH__INDEX_RANGE__INIT, *ranges[] = {&range};
    Berth__JobArray array = BERTH__JOB_ARRAY__INIT;
    Berth__JobSpec spec = berthd_fixture_spec();
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    range.last = 9;
    array.tasks = ranges;
    array.n_tasks = 1;
    spec.array = &array;
    spec.hold = TRUE;
    request.spec = &spec;
    request.idempotency_key = (char *)"once";
    guint64 first = job_of(test, &request);
    berthd_fixture_kill(test->berthd);
    allow_small_arrays_only(test);
    berthd_fixture_restart(test->berthd);
    assert_int_equal(job_of(test, &request), first);
    request.idempotency_key = (char *)"another";
    g_autoptr(GError) error = error_of(test, &request);
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "the tasks of the array");
}

/* Nothing of it is looked at but its key. */
static void submit_malformed_with_a_key_is_answered_by_its_key(void **state)
{
    BerthdTest *test = *state;
    Berth__InputFile input = BERTH__INPUT_FILE__INIT, *inputs[] = {&input};
    Berth__Dependency after = BERTH__DEPENDENCY__INIT, *dependencies[] = {&after};
    Berth__JobSpec good = berthd_fixture_spec(), bad = berthd_fixture_spec();
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    input.name = (char *)"without content";
    after.kind = (Berth__Dependency__Kind)99;
    bad.inputs = inputs;
    bad.n_inputs = 1;
    bad.dependencies = dependencies;
    bad.n_dependencies = 1;
    good.hold = TRUE;
    request.spec = &good;
    request.idempotency_key = (char *)"once";
    guint64 first = job_of(test, &request);
    request.spec = &bad;
    assert_int_equal(job_of(test, &request), first);
    request.idempotency_key = (char *)"another";
    g_autoptr(GError) error = error_of(test, &request);
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "what it is to come after (99)");
    request.spec = &good;
    assert_int_equal(job_of(test, &request), first + 1); /* the refusal is not remembered */
}

/* Two of one call: the first is refused, which says nothing of the other. */
static void submit_refused_takes_no_other_of_its_key_with_it(void **state)
{
    BerthdTest *test = *state;
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT, other = request,
                         *both[] = {&request, &other, &other};
    Berth__Dependency after = BERTH__DEPENDENCY__INIT, *dependencies[] = {&after};
    Berth__SubmitManyRequest many = BERTH__SUBMIT_MANY_REQUEST__INIT;
    Berth__JobSpec bad = berthd_fixture_spec(), good = berthd_fixture_spec();
    after.kind = (Berth__Dependency__Kind)99;
    bad.dependencies = dependencies;
    bad.n_dependencies = 1;
    good.hold = TRUE;
    request.spec = &bad;
    other.spec = &good;
    request.idempotency_key = other.idempotency_key = (char *)"of both";
    many.jobs = both;
    many.n_jobs = G_N_ELEMENTS(both);
    g_autoptr(ProtobufCMessage) message =
        berthd_fixture_call(test->berthd, jobs, "SubmitMany", &many.base);
    const Berth__SubmitManyReply *reply = (Berth__SubmitManyReply *)message;
    assert_int_equal(reply->n_results, 3);
    assert_non_null(reply->results[0]->error);
    assert_null(reply->results[1]->error);
    assert_int_equal(reply->results[1]->job, 1);
    assert_int_equal(reply->results[2]->job, 1);
}

static void store_reply(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(ProtobufCMessage) reply = berth_rpc_peer_call_finish(result, &error);
    assert_no_error(error);
    guint64 number = ((Berth__SubmitReply *)reply)->job;
    g_array_append_val((GArray *)user_data, number);
}

static void submit_same_key_at_once_is_same_job(void **state)
{
    BerthdTest *test = *state;
    g_autoptr(GArray) numbers = g_array_new(FALSE, FALSE, sizeof(guint64));
    Berth__JobSpec spec = berthd_fixture_spec();
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    request.spec = &spec;
    request.idempotency_key = (char *)"at once";
    for (guint i = 0; i < 20; i++) {
        berth_rpc_peer_call_async(berthd_fixture_client(test->berthd), jobs, "Submit",
                                  &request.base, 0, NULL, store_reply, numbers);
    }
    run_until(numbers->len == 20);
    for (guint i = 0; i < 20; i++) {
        assert_int_equal(g_array_index(numbers, guint64, i), 1);
    }
}

static Berth__BlobRef blob_of(const char *data, gsize length, guint8 digest[32])
{
    g_autoptr(GChecksum) checksum = g_checksum_new(G_CHECKSUM_SHA256);
    gsize digest_length = 32;
    g_checksum_update(checksum, (const guchar *)data, (gssize)length);
    g_checksum_get_digest(checksum, digest, &digest_length);
    Berth__BlobRef blob = BERTH__BLOB_REF__INIT;
    blob.sha256 = (ProtobufCBinaryData){32, digest};
    blob.size_bytes = length;
    return blob;
}

static void submit_with_payloads_reaches_the_node(void **state)
{
    BerthdTest *test = *state;
    static const char script[] = "#!/bin/sh\necho hello\n";
    static const char environment[] = "A=1\0B=2";
    guint8 script_digest[32], environment_digest[32];
    Berth__BlobRef script_blob = blob_of(script, strlen(script), script_digest);
    Berth__BlobRef environment_blob = blob_of(environment, sizeof environment, environment_digest);
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.script = &script_blob;
    spec.environment = &environment_blob;
    ProtobufCBinaryData contents[] = {{strlen(script), (uint8_t *)script},
                                      {sizeof environment, (uint8_t *)environment}};
    Berth__SubmitRequest request = BERTH__SUBMIT_REQUEST__INIT;
    request.spec = &spec;
    request.inline_blobs = contents;
    request.n_inline_blobs = 2;
    g_autoptr(ProtobufCMessage) reply =
        berthd_fixture_call(test->berthd, jobs, "Submit", &request.base);
    guint64 job = ((Berth__SubmitReply *)reply)->job;
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    const Berth__StartGuestRequest *start = fake_agent_start(test->agent, job);
    assert_int_equal(start->n_inline_blobs, 2);
    assert_int_equal(start->disk_bytes, 2u << 20);
    assert_string_equal(start->task->hostname, "job-1");
    assert_string_equal(start->task->working_directory, "/work");
    assert_memory_equal(start->inline_blobs[0].data, environment, sizeof environment);
    assert_memory_equal(start->inline_blobs[1].data, script, strlen(script));
    assert_true(g_strv_contains((const char *const[]){start->task->extra_environment[0], NULL},
                                "BERTH_JOB_ID=1"));
}

static void submit_missing_payload_is_not_found(void **state)
{
    BerthdTest *test = *state;
    guint8 digest[32];
    Berth__BlobRef blob = blob_of("never sent", 10, digest);
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.script = &blob;
    g_autoptr(GError) error = berthd_fixture_submit_error(test->berthd, &spec);
    assert_berth_error(error, BERTH_ERROR_NOT_FOUND, "was not uploaded");
}

static Berth__PutBlobReply *put(BerthdTest *test, Berth__BlobRef *blob, const char *data,
                                guint64 offset, gsize length)
{
    Berth__PutBlobRequest request = BERTH__PUT_BLOB_REQUEST__INIT;
    request.blob = blob;
    request.offset = offset;
    request.data = (ProtobufCBinaryData){length, (uint8_t *)data + offset};
    return berthd_fixture_call(test->berthd, &berth__blobs__descriptor, "Put", &request.base);
}

static void submit_uploaded_input_is_accepted(void **state)
{
    BerthdTest *test = *state;
    gsize length = (1u << 20) + 1000;
    g_autofree char *data = g_strnfill(length, 'x');
    guint8 digest[32];
    Berth__BlobRef blob = blob_of(data, length, digest);
    Berth__PutBlobReply *first = put(test, &blob, data, 0, 1u << 20);
    assert_false(first->complete);
    berth_message_free(&first->base);
    Berth__PutBlobReply *last = put(test, &blob, data, 1u << 20, 1000);
    assert_true(last->complete);
    berth_message_free(&last->base);
    Berth__StatBlobRequest stat = BERTH__STAT_BLOB_REQUEST__INIT;
    stat.blob = &blob;
    g_autoptr(ProtobufCMessage) known =
        berthd_fixture_call(test->berthd, &berth__blobs__descriptor, "Stat", &stat.base);
    assert_true(((Berth__StatBlobReply *)known)->present);
    Berth__InputFile input = BERTH__INPUT_FILE__INIT, *inputs[] = {&input};
    input.name = (char *)"data/x";
    input.mode = 0644;
    input.blob = &blob;
    Berth__JobSpec spec = berthd_fixture_spec();
    spec.inputs = inputs;
    spec.n_inputs = 1;
    guint64 job = berthd_fixture_submit(test->berthd, &spec);
    berthd_fixture_wait_state(test->berthd, job, BERTH__JOB_STATE__COMPLETED);
    assert_int_equal(fake_agent_start(test->agent, job)->n_inline_blobs, 0);
}

#define N_INPUTS    33u /* more than a job may have in the state: the last is for storage */
#define INPUT_BYTES (64u * 1024u)

typedef struct {
    Berth__JobSpec spec;
    Berth__SubmitRequest request;
    Berth__InputFile inputs[N_INPUTS], *input_pointers[N_INPUTS];
    Berth__BlobRef blobs[N_INPUTS];
    ProtobufCBinaryData contents[N_INPUTS];
    guint8 digests[N_INPUTS][32];
    char names[N_INPUTS][16];
} LargeSubmission;

static void fill_input(LargeSubmission *large, guint i)
{
    char *content = g_strnfill(INPUT_BYTES, (char)('0' + i));
    large->contents[i] = (ProtobufCBinaryData){INPUT_BYTES, (guint8 *)content};
    large->blobs[i] = blob_of(content, INPUT_BYTES, large->digests[i]);
    g_snprintf(large->names[i], sizeof large->names[i], "in%u", i);
    berth__input_file__init(&large->inputs[i]);
    large->inputs[i].name = large->names[i];
    large->inputs[i].mode = 0644;
    large->inputs[i].blob = &large->blobs[i];
    large->input_pointers[i] = &large->inputs[i];
}

static LargeSubmission *large_submission_new(void)
{
    LargeSubmission *large = g_new0(LargeSubmission, 1);
    for (guint i = 0; i < N_INPUTS; i++)
        fill_input(large, i);
    large->spec = berthd_fixture_spec();
    large->spec.disk_mib = 8;
    large->spec.inputs = large->input_pointers;
    large->spec.n_inputs = N_INPUTS;
    berth__submit_request__init(&large->request);
    large->request.spec = &large->spec;
    large->request.inline_blobs = large->contents;
    large->request.n_inline_blobs = N_INPUTS;
    return large;
}

static void large_submission_free(LargeSubmission *large)
{
    for (guint i = 0; i < N_INPUTS; i++)
        g_free(large->contents[i].data);
    g_free(large);
}

static guint n_stored(BerthdTest *test, const LargeSubmission *large)
{
    guint n = 0;
    for (guint i = 0; i < N_INPUTS; i++) {
        g_autoptr(GError) error = NULL;
        gboolean exists = FALSE;
        berth_storage_blob_exists(berthd_fixture_storage(test->berthd), large->digests[i], &exists,
                                  &error);
        assert_no_error(error);
        n += exists ? 1 : 0;
    }
    return n;
}

/* Who may have no more jobs costs storage nothing, with a key or without. */
static void submit_at_the_users_limit_writes_nothing(void **state)
{
    static const char *const keys[] = {"another", ""};
    BerthdTest *test = *state;
    LargeSubmission *large = large_submission_new();
    test->plan.runs_on = TRUE;
    guint64 running = berthd_fixture_submit_plain(test->berthd);
    berthd_fixture_wait_event(test->berthd, BERTH__EVENT__KIND__GUEST_RUNNING, running);
    for (guint i = 0; i < G_N_ELEMENTS(keys); i++) {
        large->request.idempotency_key = (char *)keys[i];
        g_autoptr(GError) error = error_of(test, &large->request);
        assert_berth_error(error, BERTH_ERROR_RESOURCE_EXHAUSTED, "all that one user may have");
        assert_int_equal(n_stored(test, large), 0);
    }
    assert_true(fake_agent_end(test->agent, running, 0));
    berthd_fixture_wait_state(test->berthd, running, BERTH__JOB_STATE__COMPLETED);
    large->request.idempotency_key = (char *)keys[0];
    assert_int_equal(job_of(test, &large->request), running + 1);
    assert_int_equal(n_stored(test, large), 1);
    large_submission_free(large);
}

static void put_wrong_content_is_refused(void **state)
{
    BerthdTest *test = *state;
    guint8 digest[32];
    Berth__BlobRef blob = blob_of("what was promised", 17, digest);
    Berth__PutBlobRequest request = BERTH__PUT_BLOB_REQUEST__INIT;
    request.blob = &blob;
    request.data = (ProtobufCBinaryData){17, (uint8_t *)"something else..."};
    g_autoptr(GError) error =
        berthd_fixture_call_error(test->berthd, &berth__blobs__descriptor, "Put", &request.base);
    assert_berth_error(error, BERTH_ERROR_INVALID_ARGUMENT, "SHA-256");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BERTHD_TEST(submit_absurd_is_refused),
        BERTHD_TEST(submit_same_key_is_same_job),
        BERTHD_TEST(submit_same_key_at_once_is_same_job),
        cmocka_unit_test_setup_teardown(submit_same_key_at_the_users_limit_is_same_job,
                                        setup_one_job, berthd_test_teardown),
        cmocka_unit_test_setup_teardown(submit_same_key_after_limits_became_smaller_is_same_job,
                                        setup_large_arrays, berthd_test_teardown),
        BERTHD_TEST(submit_malformed_with_a_key_is_answered_by_its_key),
        BERTHD_TEST(submit_refused_takes_no_other_of_its_key_with_it),
        BERTHD_TEST(submit_with_payloads_reaches_the_node),
        BERTHD_TEST(submit_missing_payload_is_not_found),
        BERTHD_TEST(submit_uploaded_input_is_accepted),
        cmocka_unit_test_setup_teardown(submit_at_the_users_limit_writes_nothing, setup_one_job,
                                        berthd_test_teardown),
        BERTHD_TEST(put_wrong_content_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
